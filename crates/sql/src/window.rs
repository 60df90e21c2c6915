//! Window functions: a value for each row, of the rows around it.
//!
//! A step keeps the rows that come, sorts them by partition and order, and goes through one partition after the other. A *frame* is the part of its
//! partition that a row looks at: all of it, up to the row, or from some rows before to some behind.
//!
//! ```text
//! partition   a a a b b b b
//! frames        s---e            of the second a, ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING
//! ```
//!
//! An aggregate over frames that only grow adds each row once. Where frames lose rows, counts and sums and extremes come from a tree over the partition: each
//! of its nodes has the value of the rows below it, so that a frame of any length takes as many steps as the tree is high. Taking rows out of a sum was
//! refused: doubles would not come back to what they were, and extremes cannot be taken back at all. Frames that are short are added up row by row.

use crate::aggregates::{Aggregate, AggregateCall, State, order_with_nulls};
use crate::arithmetic::{Arithmetic, Manner, calculate};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::{Plan, SortKey};
use crate::run::{Flow, Run, Sink};
use crate::sort::{free_rows, sort_all};
use crate::types::{Base, Type};
use crate::value::Value;
use crate::zones::Zone;
use std::cmp::Ordering;
use std::rc::Rc;

/// Rows that are added one by one for each row of the result before a tree is built.
const ROWS_EACH_MAX: usize = 64;

/// Window functions over one order of rows.
pub(crate) struct WindowStep {
    pub(crate) input: Plan,
    /// Rows that have equal values here are one partition.
    pub(crate) partition: Vec<Slot>,
    pub(crate) order: Vec<SortKey>,
    /// Places that are kept: those above, arguments, and what is read later.
    pub(crate) slots: Vec<Slot>,
    pub(crate) calls: Vec<WindowCall>,
}

/// A window function.
pub(crate) struct WindowCall {
    pub(crate) function: WindowFunction,
    /// Places of its arguments.
    pub(crate) arguments: Vec<Slot>,
    /// Only rows for which this place is true count.
    pub(crate) filter: Option<Slot>,
    pub(crate) frame: Frame,
    /// Where the result goes.
    pub(crate) slot: Slot,
}

/// Which function.
pub(crate) enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    /// A value of a row before; behind, if its flag is set.
    Neighbour {
        is_behind: bool,
    },
    First,
    Last,
    Nth,
    Aggregate(Box<AggregateCall>),
}

/// Which rows a row looks at.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) units: Units,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    pub(crate) excluded: Excluded,
    /// Its values are moments that months and days go on from by the clock of the session.
    pub(crate) is_zoned: bool,
}

/// What a frame is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    Rows,
    /// By the value that rows are ordered by.
    Range,
    /// Rows that are equal in the order are one.
    Groups,
}

/// Where a frame begins or ends.
#[derive(Clone)]
pub(crate) enum Bound {
    First,
    Before(Expr),
    Current,
    Behind(Expr),
    Last,
}

/// What a frame leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excluded {
    Nothing,
    Current,
    /// The row and those that are equal to it in the order.
    Group,
    /// Those that are equal to it, but not itself.
    Ties,
}

impl Frame {
    /// That of a window of which nothing is said: up to the last row that is equal to this one.
    pub(crate) fn usual() -> Self {
        Frame {
            units: Units::Range,
            start: Bound::First,
            end: Bound::Current,
            excluded: Excluded::Nothing,
            is_zoned: false,
        }
    }

    /// The expressions of its bounds.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        [&self.start, &self.end].into_iter().filter_map(|bound| match bound {
            Bound::Before(expr) | Bound::Behind(expr) => Some(expr),
            _ => None,
        })
    }
}

/// A partition: its rows, and which of them are equal in the order.
struct Partition<'p> {
    step: &'p WindowStep,
    rows: &'p [Vec<Value>],
    /// By row, the number of its group.
    group_of: Vec<usize>,
    /// Where each group begins, and the end of the last one.
    starts: Vec<usize>,
}

/// A bound whose value is known.
enum Known {
    First,
    Before(Value, usize),
    Current,
    Behind(Value, usize),
    Last,
}

/// A frame as up to three ranges of rows.
type Ranges = [(usize, usize); 3];

impl WindowStep {
    /// Hands on each row with the values of its functions. May wait. Errors: those of the functions; `LimitExceeded`.
    pub(crate) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let before = run.memory_taken();
        self.input.run(run, &mut |run| {
            run.tick()?;
            let row = run.row(&self.slots);
            run.take_row(&row)?;
            rows.push(row);
            Ok(Flow::On)
        })?;
        let at = |slot: Slot| self.slots.iter().position(|kept| *kept == slot).unwrap_or(0);
        let partition: Vec<usize> = self.partition.iter().map(|slot| at(*slot)).collect();
        let keys: Vec<(usize, &SortKey)> = self.order.iter().map(|key| (at(key.slot), key)).collect();
        let by_partition = |a: &[Value], b: &[Value]| {
            let orders = partition.iter().map(|at| a[*at].order(&b[*at]));
            orders.into_iter().find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
        };
        let by_order = |a: &[Value], b: &[Value]| {
            let orders = keys.iter().map(|(at, key)| {
                order_with_nulls(&key.collation, key.is_descending, key.nulls_first, &a[*at], &b[*at])
            });
            orders.into_iter().find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
        };
        if !partition.is_empty() || !keys.is_empty() {
            let bytes = run.memory_taken() - before;
            sort_all(run, &mut rows, bytes, &|a, b| by_partition(a, b).then_with(|| by_order(a, b)))?;
        }
        let mut flow = Flow::On;
        let mut rest = &rows[..];
        while let Some(first) = rest.first() {
            let mut end = 1;
            while end < rest.len() && by_partition(first, &rest[end]) == Ordering::Equal {
                run.tick()?;
                end += 1;
            }
            let rows = &rest[..end];
            rest = &rest[end..];
            let mut known = Partition { step: self, rows, group_of: Vec::with_capacity(end), starts: vec![0] };
            run.take(end * 2 * size_of::<usize>())?;
            for number in 0..end {
                run.tick()?;
                if number > 0 && by_order(&rows[number - 1], &rows[number]) != Ordering::Equal {
                    known.starts.push(number);
                }
                known.group_of.push(known.starts.len() - 1);
            }
            known.starts.push(end);
            flow = self.hand_on(run, &known, sink)?;
            if flow == Flow::Stop {
                break;
            }
        }
        run.give_back_to(before);
        free_rows(run, rows)?;
        Ok(flow)
    }

    fn hand_on(&self, run: &mut Run<'_>, partition: &Partition<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        let before = run.memory_taken();
        let mut results = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            run.take(partition.rows.len() * size_of::<Value>())?;
            results.push(partition.values(run, call)?);
        }
        for (number, row) in partition.rows.iter().enumerate() {
            run.tick()?;
            run.set_row(&self.slots, row);
            for (call, values) in self.calls.iter().zip(&results) {
                run.frame[call.slot] = values[number].clone();
            }
            if sink(run)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        run.give_back_to(before);
        Ok(Flow::On)
    }
}

impl Partition<'_> {
    fn value(&self, row: usize, slot: Slot) -> &Value {
        let at = self.step.slots.iter().position(|kept| *kept == slot).unwrap_or(0);
        &self.rows[row][at]
    }

    /// The rows that are equal to one in the order.
    fn peers(&self, row: usize) -> (usize, usize) {
        let group = self.group_of[row];
        (self.starts[group], self.starts[group + 1])
    }

    /// The function's value for each row.
    fn values(&self, run: &mut Run<'_>, call: &WindowCall) -> Result<Vec<Value>> {
        use WindowFunction as F;
        let count = self.rows.len();
        let int = |number: usize| Value::Int(number as i64);
        let each = |of: &dyn Fn(usize) -> Value| Ok((0..count).map(of).collect());
        match &call.function {
            F::RowNumber => each(&|row| int(row + 1)),
            F::Rank => each(&|row| int(self.peers(row).0 + 1)),
            F::DenseRank => each(&|row| int(self.group_of[row] + 1)),
            F::PercentRank => each(&|row| match count {
                1 => Value::Double(0.0),
                _ => Value::Double(self.peers(row).0 as f64 / (count - 1) as f64),
            }),
            F::CumeDist => each(&|row| Value::Double(self.peers(row).1 as f64 / count as f64)),
            F::Ntile => self.tiles(call),
            F::Neighbour { is_behind } => (0..count).map(|row| self.neighbour(call, *is_behind, row)).collect(),
            F::First | F::Last | F::Nth => {
                let frames = self.frames(run, call)?;
                let mut values = Vec::with_capacity(count);
                for (row, frame) in frames.iter().enumerate() {
                    run.tick()?;
                    values.push(self.of_frame(call, row, frame)?);
                }
                Ok(values)
            }
            F::Aggregate(aggregate) => {
                let frames = self.frames(run, call)?;
                self.aggregates(run, call, aggregate, &frames)
            }
        }
    }

    fn tiles(&self, call: &WindowCall) -> Result<Vec<Value>> {
        let count = self.rows.len();
        let wanted = self.value(0, call.arguments[0]);
        if wanted.is_null() {
            return Ok(vec![Value::Null; count]);
        }
        let tiles = wanted.as_integer().filter(|tiles| *tiles > 0).and_then(|tiles| usize::try_from(tiles).ok());
        let tiles =
            tiles.ok_or_else(|| Error::new(Condition::InvalidNtile, "argument of ntile must be greater than zero"))?;
        // The first ones have one row more.
        let (least, longer) = (count / tiles, count % tiles);
        Ok((0..count)
            .map(|row| {
                let behind = longer * (least + 1);
                let tile = if row < behind { row / (least + 1) } else { longer + (row - behind) / least.max(1) };
                Value::Int(tile as i64 + 1)
            })
            .collect())
    }

    fn neighbour(&self, call: &WindowCall, is_behind: bool, row: usize) -> Result<Value> {
        let away = match call.arguments.get(1) {
            None => 1,
            Some(slot) => match self.value(row, *slot) {
                Value::Null => return Ok(Value::Null),
                value => value
                    .as_integer()
                    .ok_or_else(|| Error::new(Condition::InvalidArgument, "the offset must be a whole number"))?,
            },
        };
        let away = if is_behind { away } else { away.saturating_neg() };
        let at = usize::try_from((row as i128).saturating_add(away)).ok().filter(|at| *at < self.rows.len());
        Ok(match (at, call.arguments.get(2)) {
            (Some(at), _) => self.value(at, call.arguments[0]).clone(),
            (None, Some(default)) => self.value(row, *default).clone(),
            (None, None) => Value::Null,
        })
    }

    fn of_frame(&self, call: &WindowCall, row: usize, frame: &Ranges) -> Result<Value> {
        let ranges = frame.iter().filter(|(start, end)| start < end);
        let found = match &call.function {
            WindowFunction::First => ranges.map(|(start, _)| *start).next(),
            WindowFunction::Last => ranges.map(|(_, end)| end - 1).next_back(),
            _ => {
                let wanted = self.value(row, call.arguments[1]);
                if wanted.is_null() {
                    return Ok(Value::Null);
                }
                let wanted = wanted.as_integer().filter(|number| *number > 0).ok_or_else(|| {
                    Error::new(Condition::InvalidNth, "argument of nth_value must be greater than zero")
                })?;
                let mut left = usize::try_from(wanted - 1).unwrap_or(usize::MAX);
                let mut found = None;
                for (start, end) in ranges {
                    if left < end - start {
                        found = Some(start + left);
                        break;
                    }
                    left -= end - start;
                }
                found
            }
        };
        Ok(found.map_or(Value::Null, |at| self.value(at, call.arguments[0]).clone()))
    }

    /// The frame of each row.
    fn frames(&self, run: &mut Run<'_>, call: &WindowCall) -> Result<Vec<Ranges>> {
        let frame = &call.frame;
        let start = self.known(run, frame, &frame.start, "starting")?;
        let end = self.known(run, frame, &frame.end, "ending")?;
        let zone = if frame.is_zoned { run.zone() } else { None };
        let count = self.rows.len();
        run.take(count * size_of::<Ranges>())?;
        let mut frames = Vec::with_capacity(count);
        for row in 0..count {
            run.tick()?;
            let start = self.edge(frame.units, &start, zone.as_ref(), row, false)?;
            let end = self.edge(frame.units, &end, zone.as_ref(), row, true)?;
            frames.push(self.without(frame.excluded, row, (start.min(count), end.min(count))));
        }
        Ok(frames)
    }

    fn known(&self, run: &mut Run<'_>, frame: &Frame, bound: &Bound, which: &str) -> Result<Known> {
        let (expr, is_before) = match bound {
            Bound::First => return Ok(Known::First),
            Bound::Last => return Ok(Known::Last),
            Bound::Current => return Ok(Known::Current),
            Bound::Before(expr) => (expr, true),
            Bound::Behind(expr) => (expr, false),
        };
        let value = expr.eval(run)?;
        let refused = |what: &str| {
            let message = match run.dialect {
                Dialect::Mysql => {
                    "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type"
                        .to_string()
                }
                _ => format!("frame {which} offset must not be {what}"),
            };
            Err(Error::new(Condition::WindowFrame, message))
        };
        if value.is_null() {
            return refused("null");
        }
        let count = match (&value, frame.units) {
            (Value::Interval(_), Units::Range) => 0,
            (value, Units::Range) if value.as_double().is_some_and(|number| number < 0.0) => {
                return Err(Error::new(
                    Condition::WindowFrame,
                    "invalid preceding or following size in window function",
                ));
            }
            (_, Units::Range) => 0,
            (value, _) => match value.as_integer() {
                None => return refused("anything but a whole number"),
                Some(number) if number < 0 => return refused("negative"),
                Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
            },
        };
        Ok(if is_before { Known::Before(value, count) } else { Known::Behind(value, count) })
    }

    /// Where a frame begins, or the row behind its last one.
    fn edge(&self, units: Units, bound: &Known, zone: Option<&Zone>, row: usize, is_end: bool) -> Result<usize> {
        let count = self.rows.len();
        let last = self.starts.len() - 2;
        Ok(match (units, bound) {
            (_, Known::First) => 0,
            (_, Known::Last) => count,
            (Units::Rows, Known::Current) => row + usize::from(is_end),
            (Units::Rows, Known::Before(_, away)) => (row + usize::from(is_end)).saturating_sub(*away),
            (Units::Rows, Known::Behind(_, away)) => row.saturating_add(*away).saturating_add(usize::from(is_end)),
            (_, Known::Current) if is_end => self.peers(row).1,
            (_, Known::Current) => self.peers(row).0,
            (Units::Groups, Known::Before(_, away)) => match (self.group_of[row].checked_sub(*away), is_end) {
                (Some(group), _) => self.starts[group + usize::from(is_end)],
                (None, _) => 0,
            },
            (Units::Groups, Known::Behind(_, away)) => {
                let group = self.group_of[row].saturating_add(*away);
                if group > last { count } else { self.starts[group + usize::from(is_end)] }
            }
            (Units::Range, Known::Before(offset, _)) => self.edge_by_value((offset, zone), row, true, is_end)?,
            (Units::Range, Known::Behind(offset, _)) => self.edge_by_value((offset, zone), row, false, is_end)?,
        })
    }

    /// The first row whose value is not before that of the row moved by an offset; for an end, the first one behind it.
    fn edge_by_value(
        &self,
        (offset, zone): (&Value, Option<&Zone>),
        row: usize,
        is_before: bool,
        is_end: bool,
    ) -> Result<usize> {
        let Some(key) = self.step.order.first() else { return Ok(0) };
        let current = self.value(row, key.slot);
        let (first, behind) = self.peers(row);
        if current.is_null() {
            return Ok(if is_end { behind } else { first });
        }
        // Nulls are at one end, and in no frame of others.
        let groups = self.starts.len() - 1;
        let (mut low, mut high) = (0, self.rows.len());
        if self.value(0, key.slot).is_null() {
            low = self.starts[1];
        }
        if self.value(high - 1, key.slot).is_null() {
            high = self.starts[groups - 1];
        }
        let Some(target) = moved(zone, current, offset, is_before != key.is_descending)? else {
            return Ok(if is_before { low } else { high });
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let value = self.value(middle, key.slot);
            let order = if key.is_descending { target.order(value) } else { value.order(&target) };
            let is_in_front = if is_end { order != Ordering::Greater } else { order == Ordering::Less };
            if is_in_front {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn without(&self, excluded: Excluded, row: usize, (start, end): (usize, usize)) -> Ranges {
        let none = (0, 0);
        let cut = |from: usize, to: usize| if from < to { (from, to) } else { none };
        let (first, behind) = self.peers(row);
        match excluded {
            Excluded::Nothing => [cut(start, end), none, none],
            Excluded::Current => [cut(start, end.min(row)), cut(start.max(row + 1), end), none],
            Excluded::Group => [cut(start, end.min(first)), cut(start.max(behind), end), none],
            Excluded::Ties => {
                let own = if (start..end).contains(&row) { (row, row + 1) } else { none };
                [cut(start, end.min(first)), own, cut(start.max(behind), end)]
            }
        }
    }

    fn aggregates(
        &self,
        run: &mut Run<'_>,
        call: &WindowCall,
        aggregate: &AggregateCall,
        frames: &[Ranges],
    ) -> Result<Vec<Value>> {
        // How many rows are added if frames that go on from the one before are not begun anew.
        let mut work = 0usize;
        let mut before = (0, 0);
        for frame in frames {
            let span = whole(frame);
            work = work.saturating_add(match (span, goes_on(before, frame)) {
                (_, true) => frame[0].1 - before.1,
                _ => frame.iter().map(|(start, end)| end - start).sum(),
            });
            before = if is_one(frame) { frame[0] } else { (usize::MAX, usize::MAX) };
        }
        if work > frames.len().saturating_mul(ROWS_EACH_MAX).saturating_add(1000)
            && let Some(tree) = Tree::of(self, run, call, aggregate)?
        {
            let mut values = Vec::with_capacity(frames.len());
            for frame in frames {
                run.tick()?;
                let state = tree.of_frame(aggregate, frame)?;
                values.push(aggregate.end_of(run, &state)?);
            }
            return Ok(values);
        }
        let mut values: Vec<Value> = Vec::with_capacity(frames.len());
        let mut state = aggregate.begin();
        let mut before = (usize::MAX, usize::MAX);
        for frame in frames {
            run.tick()?;
            if let Some(last) = values.last()
                && is_one(frame)
                && before == frame[0]
            {
                values.push(last.clone());
                continue;
            }
            if goes_on(before, frame) {
                self.add(run, call, aggregate, &mut state, (before.1, frame[0].1))?;
            } else {
                state = aggregate.begin();
                for range in frame {
                    self.add(run, call, aggregate, &mut state, *range)?;
                }
            }
            before = if is_one(frame) { frame[0] } else { (usize::MAX, usize::MAX) };
            let value = aggregate.end_of(run, &state)?;
            run.take(value.weight())?;
            values.push(value);
        }
        Ok(values)
    }

    fn add(
        &self,
        run: &mut Run<'_>,
        call: &WindowCall,
        aggregate: &AggregateCall,
        state: &mut State,
        (start, end): (usize, usize),
    ) -> Result<()> {
        for row in start..end {
            run.tick()?;
            if self.counts(call, row) {
                let arguments: Vec<Value> = call.arguments.iter().map(|slot| self.value(row, *slot).clone()).collect();
                aggregate.add_arguments(run, state, arguments)?;
            }
        }
        Ok(())
    }

    fn counts(&self, call: &WindowCall, row: usize) -> bool {
        call.filter.is_none_or(|slot| matches!(self.value(row, slot), Value::Bool(true)))
    }
}

/// True for a frame that is one range, which may be empty.
fn is_one(frame: &Ranges) -> bool {
    frame[1].0 == frame[1].1 && frame[2].0 == frame[2].1
}

fn whole(frame: &Ranges) -> Option<(usize, usize)> {
    is_one(frame).then_some(frame[0])
}

/// True if a frame is another one with more rows at its end.
fn goes_on(before: (usize, usize), frame: &Ranges) -> bool {
    is_one(frame) && before.0 < before.1 && frame[0].0 == before.0 && frame[0].1 >= before.1
}

/// A value moved by an offset. None: there is nothing as far away.
fn moved(zone: Option<&Zone>, value: &Value, offset: &Value, is_less: bool) -> Result<Option<Value>> {
    if let (Value::Datetime(moment), Value::Interval(interval)) = (value, offset) {
        let sign = if is_less { -1 } else { 1 };
        return Ok(crate::zones::moved(zone, moment, interval, sign).map(|moment| Value::Datetime(Rc::new(moment))));
    }
    if let (Value::Interval(a), Value::Interval(b)) = (value, offset) {
        let mut sum = **a;
        for (field, other) in sum.fields.iter_mut().zip(&b.fields) {
            *field = if is_less { field.saturating_sub(*other) } else { field.saturating_add(*other) };
        }
        return Ok(Some(Value::Interval(Rc::new(sum))));
    }
    if let (Some(a), Some(b)) = (value.as_integer(), offset.as_integer()) {
        let sum = if is_less { a.checked_sub(b) } else { a.checked_add(b) };
        return Ok(sum.and_then(Value::integer));
    }
    let operation = if is_less { Arithmetic::Subtract } else { Arithmetic::Add };
    let manner = Manner { zero_gives_null: false, short_quotients: false };
    match calculate(operation, Type::of(Base::Number), manner, value, offset) {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.condition(), Condition::NumericOutOfRange | Condition::ResultOutOfRange) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The values of an aggregate over parts of a partition: each node that of the rows below it, the leaves behind the others.
struct Tree {
    nodes: Vec<Value>,
    /// By row, how many rows before it count.
    counts: Vec<i64>,
    leaves: usize,
}

impl Tree {
    /// None: the aggregate is not one of parts.
    fn of(
        partition: &Partition<'_>,
        run: &mut Run<'_>,
        call: &WindowCall,
        aggregate: &AggregateCall,
    ) -> Result<Option<Tree>> {
        if !aggregate.is_of_parts() {
            return Ok(None);
        }
        let leaves = partition.rows.len();
        run.take(leaves * (2 * size_of::<Value>() + size_of::<i64>()))?;
        let mut counts = vec![0; leaves + 1];
        let mut nodes = vec![Value::Null; 2 * leaves];
        for row in 0..leaves {
            run.tick()?;
            let value = match (partition.counts(call, row), call.arguments.first()) {
                (false, _) => Value::Null,
                (true, Some(slot)) => partition.value(row, *slot).clone(),
                (true, None) => Value::Bool(true),
            };
            counts[row + 1] = counts[row] + i64::from(!value.is_null());
            if aggregate.aggregate != Aggregate::CountRows && aggregate.aggregate != Aggregate::Count {
                nodes[leaves + row] = value;
            }
        }
        for node in (1..leaves).rev() {
            run.tick()?;
            nodes[node] = aggregate.joined(&nodes[2 * node], &nodes[2 * node + 1])?;
            run.take(nodes[node].weight())?;
        }
        Ok(Some(Tree { nodes, counts, leaves }))
    }

    fn of_frame(&self, aggregate: &AggregateCall, frame: &Ranges) -> Result<State> {
        let (mut value, mut count) = (Value::Null, 0);
        for (start, end) in frame.iter().filter(|(start, end)| start < end) {
            count += self.counts[*end] - self.counts[*start];
            let (mut low, mut high) = (start + self.leaves, end + self.leaves);
            let mut behind = Value::Null;
            while low < high {
                if low & 1 == 1 {
                    value = aggregate.joined(&value, &self.nodes[low])?;
                    low += 1;
                }
                if high & 1 == 1 {
                    high -= 1;
                    behind = aggregate.joined(&self.nodes[high], &behind)?;
                }
                low /= 2;
                high /= 2;
            }
            value = aggregate.joined(&value, &behind)?;
        }
        Ok(aggregate.state_of(value, count))
    }
}
