//! Running a plan: every step hands its rows on, one after the other, to whoever asked for them.
//!
//! Rows are pushed. A step calls what it was given for each row that it has put into the frame; `Flow::Stop` says that no more are wanted. So a step is a
//! function, its state are its variables, and whatever waits (a read from disk, a lock, a turn of others) waits in the fiber of the statement.

mod groups;
mod hash_join;
mod order;
mod turns;

pub(crate) use turns::LENGTH_MAX;
pub use turns::{Granted, MEMORY_MAX, STATEMENTS_BYTES_MAX};

use groups::run_groups;
use order::run_sort;
use turns::{FIRST_LOOK_NS, ROW_WORK_MAX, STEPS_PER_LOOK, Waits};

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::kept::Keys;
use crate::plan::{Definition, JoinKind, Plan};
use crate::value::{HashedValue, Value};
use database::{Context, Database};
use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
use runtime::fiber;
use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use tuple::Collation;

/// Rounds of a table that builds on itself.
pub const ROUNDS_MAX: usize = 1_000_000;

/// Whether more rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They are.
    On,
    /// They are not.
    Stop,
}

/// Takes the row that the frame holds.
pub(crate) type Sink<'s> = dyn FnMut(&mut Run<'_>) -> Result<Flow> + 's;

/// Rows that are kept.
pub(crate) type Kept = Rc<Vec<Vec<Value>>>;

/// The values of a subquery's one column, and whether null is among them.
type KnownValues = Rc<(HashSet<HashedValue>, bool)>;

/// A statement that is run.
pub(crate) struct Run<'r> {
    pub(crate) database: &'r Database,
    pub(crate) context: &'r Rc<Context>,
    pub(crate) dialect: Dialect,
    pub(crate) params: &'r [Value],
    /// Whom it is run for, if that is a session of SQL.
    pub(crate) session: Option<Rc<crate::Session>>,
    /// Whose row it is that columns are computed of, which is all that they may ask of a session.
    pub(crate) writer: Option<Rc<crate::Session>>,
    /// Values of columns and expressions, of the row at hand.
    pub(crate) frame: Vec<Value>,
    /// Rows of subqueries that are the same for all rows around them.
    pub(crate) subqueries: Vec<Option<Kept>>,
    sets: Vec<Option<KnownValues>>,
    /// Tables of the statement's own.
    pub(crate) tables: Vec<Option<Kept>>,
    /// A division by zero is refused that else gives null: in statements of MySQL's that put in and change rows, where `sql_mode` is strict.
    pub(crate) refuses_zero: bool,
    /// Rows that are to be changed are locked first: others may come between finding and changing them.
    pub(crate) locks_changed: bool,
    /// How long a lock is waited for, as the session has it; none: as the server has it.
    pub(crate) lock_timeout_ns: Option<u64>,
    /// When the statement is ended, by the clock of the fibers.
    deadline_ns: Option<u64>,
    /// When the statement began, in nanoseconds since 1970.
    pub(crate) now_ns: i128,
    /// Texts that stand for all that their collation takes for equal, by their hashes: as long as all texts are ASCII.
    plain: HashTable<(u64, Collated)>,
    hasher: DefaultHashBuilder,
    folded: Vec<u8>,
    /// The same in the order of their collations, from the first text on that is not ASCII.
    collated: std::collections::BTreeSet<Collated>,
    waits: Waits,
    /// What the catalog has told it.
    pub(crate) seen: crate::catalog::Seen,
    /// Regular expressions that were compiled for it.
    pub(crate) regexes: crate::regexes::Regexes,
    /// Bytes of values that expressions wait with for their other values, and of those that were computed into the frame.
    held: usize,
    memory: usize,
    /// Bytes that it has of those of all statements.
    granted: usize,
    steps: u32,
    steps_per_look: u32,
    /// How long it goes on at most before others have a turn.
    slice_ns: u64,
    slice_began_ns: u64,
    next_look_ns: u64,
    /// Somebody else has asked for something, when this was looked at last.
    asked_ns: Option<u64>,
    /// Requests that the server had begun when the slice began.
    requests: u64,
}

/// A text in the order of a collation.
struct Collated(Arc<Collation>, Rc<str>);

impl PartialEq for Collated {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Collated {}

impl PartialOrd for Collated {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Collated {
    fn cmp(&self, other: &Self) -> Ordering {
        let texts = || self.0.compare(self.1.as_bytes(), other.1.as_bytes());
        self.0.id().cmp(&other.0.id()).then_with(texts)
    }
}

impl<'r> Run<'r> {
    /// Begins one, with so many places, subqueries and own tables.
    pub(crate) fn new(
        database: &'r Database,
        context: &'r Rc<Context>,
        dialect: Dialect,
        params: &'r [Value],
        (slots, subqueries, tables): (usize, usize, usize),
    ) -> Self {
        let session = match dialect {
            Dialect::Tarantool => None,
            _ => crate::Sql::of(database).session(context.session.id),
        };
        let timeout_ns = |name: &str| {
            let ms = session.as_ref().map_or(0, |session| session.milliseconds(name));
            (ms > 0).then(|| ms.saturating_mul(1_000_000))
        };
        let statement_ns = timeout_ns("statement_timeout");
        let lock_timeout_ns = timeout_ns("lock_timeout").into_iter().chain(statement_ns).min();
        context.set_lock_timeout(lock_timeout_ns);
        let now = fiber::now_ns();
        let slice_ns = database.statement_slice_ns();
        Run {
            lock_timeout_ns,
            deadline_ns: statement_ns.map(|ns| now.saturating_add(ns)),
            database,
            context,
            dialect,
            params,
            session,
            writer: None,
            frame: vec![Value::Null; slots],
            subqueries: vec![None; subqueries],
            sets: vec![None; subqueries],
            tables: vec![None; tables],
            refuses_zero: false,
            locks_changed: false,
            now_ns: i128::from(database.environment().clock.wall_ns()),
            plain: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            folded: Vec::new(),
            collated: std::collections::BTreeSet::new(),
            waits: Waits::Freely,
            seen: crate::catalog::Seen::default(),
            regexes: crate::regexes::Regexes::default(),
            held: 0,
            memory: 0,
            granted: 0,
            steps: 0,
            steps_per_look: if slice_ns == 0 { 1 } else { STEPS_PER_LOOK },
            slice_ns,
            slice_began_ns: now,
            next_look_ns: now + if slice_ns == 0 { 0 } else { FIRST_LOOK_NS },
            asked_ns: None,
            requests: database.statistics.requests.get(),
        }
    }

    /// Begins the expressions of one row, by themselves: they never wait, and work through [`ROW_WORK_MAX`] bytes at most.
    pub(crate) fn of_row(
        database: &'r Database,
        context: &'r Rc<Context>,
        dialect: Dialect,
        sizes: (usize, usize, usize),
    ) -> Self {
        let mut run = Self::new(database, context, dialect, &[], sizes);
        run.waits = Waits::Never(ROW_WORK_MAX, run.slice_began_ns);
        run
    }

    /// Of texts that a collation takes for equal, the one that came first. May wait. Errors: `LimitExceeded`; as [`Run::tick`].
    pub(crate) fn canonical(&mut self, collation: &Arc<Collation>, value: Value) -> Result<Value> {
        let Value::Text(text) = value else { return Ok(value) };
        let wanted = Collated(Arc::clone(collation), text);
        if self.collated.is_empty() {
            self.folded.clear();
            if collation.fold(wanted.1.as_bytes(), &mut self.folded) {
                return self.canonical_plain(wanted);
            }
            // From now on all are in one order.
            for (_, plain) in std::mem::take(&mut self.plain) {
                self.collated.insert(plain);
                self.tick()?;
            }
        }
        if let Some(known) = self.collated.get(&wanted) {
            return Ok(Value::Text(Rc::clone(&known.1)));
        }
        self.take(wanted.1.len() + 64)?;
        let text = Rc::clone(&wanted.1);
        self.collated.insert(wanted);
        Ok(Value::Text(text))
    }

    /// The same of a text that is folded.
    fn canonical_plain(&mut self, wanted: Collated) -> Result<Value> {
        let hash = self.hasher.hash_one(&self.folded);
        let is_it = |(known, text): &(u64, Collated)| *known == hash && *text == wanted;
        if let Some((_, known)) = self.plain.find(hash, is_it) {
            return Ok(Value::Text(Rc::clone(&known.1)));
        }
        self.take(wanted.1.len() + 64)?;
        let text = Rc::clone(&wanted.1);
        self.plain.insert_unique(hash, (hash, wanted), |(hash, _)| *hash);
        Ok(Value::Text(text))
    }

    /// Whether a value is among the rows of a subquery. None: that is not known.
    pub(crate) fn is_among(&mut self, number: usize, rows: &Kept, value: &Value) -> Option<bool> {
        let set = match &self.sets[number] {
            Some(set) => Rc::clone(set),
            None => {
                let has_null = rows.iter().any(|row| row[0].is_null());
                let values =
                    rows.iter().filter(|row| !row[0].is_null()).map(|row| HashedValue(row[0].clone())).collect();
                let set = Rc::new((values, has_null));
                self.sets[number] = Some(Rc::clone(&set));
                set
            }
        };
        if set.0.is_empty() && !set.1 {
            return Some(false);
        }
        if value.is_null() {
            return None;
        }
        match set.0.contains(&HashedValue(value.clone())) {
            true => Some(true),
            false if set.1 => None,
            false => Some(false),
        }
    }

    /// Copies of places.
    pub(crate) fn row(&self, slots: &[Slot]) -> Vec<Value> {
        slots.iter().map(|slot| self.frame[*slot].clone()).collect()
    }

    /// Puts a row back into its places.
    pub(crate) fn set_row(&mut self, slots: &[Slot], row: &[Value]) {
        for (slot, value) in slots.iter().zip(row) {
            self.frame[*slot] = value.clone();
        }
    }

    fn set_null(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.frame[*slot] = Value::Null;
        }
    }

    fn count_of(&mut self, expr: &Option<Expr>, what: &str) -> Result<Option<u64>> {
        let Some(expr) = expr else { return Ok(None) };
        let value = expr.eval(self)?;
        match value.as_integer().map(u64::try_from) {
            _ if value.is_null() => Ok(None),
            Some(Ok(count)) => Ok(Some(count)),
            Some(Err(_)) => Err(Error::new(Condition::InvalidArgument, format!("{what} must not be negative"))),
            None => Err(Error::new(Condition::TypeMismatch, format!("{what} must be a whole number"))),
        }
    }
}

fn is_true(on: &Option<Expr>, run: &mut Run<'_>) -> Result<bool> {
    match on {
        Some(on) => on.is_true(run),
        None => Ok(true),
    }
}

impl Plan {
    /// Hands the rows on to `sink`, until there are no more or it wants none. May wait. Errors: those of expressions, of reading, and those of `sink`.
    pub(crate) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        match self {
            Plan::One => sink(run),
            Plan::Nothing => Ok(Flow::On),
            Plan::Scan(scan) => scan.run(run, sink),
            Plan::Rows(rows, slots) => {
                for row in rows {
                    run.tick()?;
                    for (slot, expr) in slots.iter().zip(row) {
                        let value = expr.eval(run)?;
                        run.put(*slot, value)?;
                    }
                    if sink(run)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::On)
            }
            Plan::Series { from, to, step, slot } => run_series(run, (from, to, step), *slot, sink),
            Plan::Filter(input, condition) => {
                input.run(run, &mut |run| if condition.is_true(run)? { sink(run) } else { Ok(Flow::On) })
            }
            Plan::Map(input, columns) => input.run(run, &mut |run| {
                for (slot, expr) in columns {
                    let value = expr.eval(run)?;
                    run.put(*slot, value)?;
                }
                sink(run)
            }),
            Plan::Loop { outer, inner, kind, on, slots } => outer.run(run, &mut |run| {
                let mut is_any = false;
                let flow = inner.run(run, &mut |run| {
                    run.tick()?;
                    if !is_true(on, run)? {
                        return Ok(Flow::On);
                    }
                    is_any = true;
                    sink(run)
                })?;
                if !is_any && *kind != JoinKind::Inner {
                    run.set_null(slots);
                    return sink(run);
                }
                Ok(flow)
            }),
            Plan::Hash(join) => join.run(run, sink),
            Plan::Window(step) => step.run(run, sink),
            Plan::GroupingSets(step) => step.run(run, sink),
            Plan::Owned(step) => step.run(run, sink),
            Plan::Measured(step) => step.run(run, sink),
            Plan::Write(write) => write.run(run, sink).map(|_| Flow::On),
            Plan::Ties { input, keys, limit, offset } => {
                let limit = Some(limit.clone());
                let mut skip = run.count_of(offset, "OFFSET")?.unwrap_or(0);
                let mut left = run.count_of(&limit, "LIMIT")?.unwrap_or(u64::MAX);
                if left == 0 {
                    return Ok(Flow::On);
                }
                let mut last: Option<Vec<Value>> = None;
                let mut stopped = Flow::On;
                input.run(run, &mut |run| {
                    if skip > 0 {
                        skip -= 1;
                        return Ok(Flow::On);
                    }
                    if left == 0 {
                        let is_tied = last.iter().flatten().zip(keys).all(|(value, key)| {
                            crate::expr::order(&key.collation, value, &run.frame[key.slot]) == Ordering::Equal
                        });
                        if !is_tied {
                            return Ok(Flow::Stop);
                        }
                    } else {
                        left -= 1;
                        if left == 0 {
                            last = Some(keys.iter().map(|key| run.frame[key.slot].clone()).collect());
                        }
                    }
                    stopped = sink(run)?;
                    Ok(stopped)
                })?;
                Ok(stopped)
            }
            Plan::Aggregate { input, groups, calls } => run_groups(run, input, groups, calls, sink),
            Plan::Sort { input, keys, slots, limit } => run_sort(run, input, keys, slots, limit.as_ref(), sink),
            Plan::Distinct { input, slots } => {
                let mut seen = Keys::new(slots.len());
                let mut key = Vec::with_capacity(slots.len());
                let mut taken = 0;
                let flow = input.run(run, &mut |run| {
                    run.tick()?;
                    let before = run.memory;
                    key.clear();
                    key.extend(slots.iter().map(|slot| HashedValue(run.frame[*slot].clone())));
                    let (_, is_new) = seen.number(run, &mut key)?;
                    taken += run.memory - before;
                    if is_new { sink(run) } else { Ok(Flow::On) }
                })?;
                seen.free(run)?;
                run.give_back(taken);
                Ok(flow)
            }
            Plan::Limit { input, limit, offset } => {
                let mut skip = run.count_of(offset, "OFFSET")?.unwrap_or(0);
                let mut left = run.count_of(limit, "LIMIT")?.unwrap_or(u64::MAX);
                if left == 0 {
                    return Ok(Flow::On);
                }
                let mut stopped = Flow::On;
                input.run(run, &mut |run| {
                    if skip > 0 {
                        skip -= 1;
                        return Ok(Flow::On);
                    }
                    left -= 1;
                    stopped = sink(run)?;
                    Ok(if left == 0 { Flow::Stop } else { stopped })
                })?;
                Ok(stopped)
            }
            Plan::Concat(inputs) => {
                for input in inputs {
                    if input.run(run, sink)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::On)
            }
            Plan::Among { left, right, left_slots, right_slots, keeps, all } => {
                let mut counts: HashMap<Vec<HashedValue>, u64> = HashMap::new();
                let before = run.memory;
                right.run(run, &mut |run| {
                    let row = run.row(right_slots);
                    run.take_row(&row)?;
                    *counts.entry(row.into_iter().map(HashedValue).collect()).or_default() += 1;
                    Ok(Flow::On)
                })?;
                let taken = run.memory - before;
                let mut seen: HashSet<Vec<HashedValue>> = HashSet::new();
                let flow = left.run(run, &mut |run| {
                    let key: Vec<HashedValue> = run.row(left_slots).into_iter().map(HashedValue).collect();
                    let is_there = match counts.get_mut(&key) {
                        Some(count) if *count > 0 => {
                            *count -= u64::from(*all);
                            true
                        }
                        _ => false,
                    };
                    if is_there != *keeps || !all && !seen.insert(key) {
                        return Ok(Flow::On);
                    }
                    sink(run)
                })?;
                run.give_back(taken);
                Ok(flow)
            }
            Plan::With { number, definition, body } => {
                run.tables[*number] = None;
                let before = run.memory;
                let rows = definition.rows(run, *number)?;
                let taken = run.memory - before;
                run.tables[*number] = Some(Rc::new(rows));
                let flow = body.run(run, sink)?;
                run.give_back(taken);
                Ok(flow)
            }
            Plan::Virtual(table, slots) => {
                let rows = table.seen_rows(run)?;
                for row in rows.iter() {
                    run.tick()?;
                    run.set_row(slots, row);
                    if sink(run)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::On)
            }
            Plan::Unnest { array, slot } => {
                let array = array.eval(run)?;
                for value in crate::array::elements(&array) {
                    run.tick()?;
                    run.frame[*slot] = value;
                    if sink(run)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::On)
            }
            Plan::Sets { calls, number } => crate::sets::run_sets(run, calls, *number, sink),
            Plan::Own { number, slots } => {
                let rows = run.tables[*number].clone().unwrap_or_default();
                for row in rows.iter() {
                    run.tick()?;
                    run.set_row(slots, row);
                    if sink(run)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::On)
            }
        }
    }
}

impl Definition {
    fn rows(&self, run: &mut Run<'_>, number: usize) -> Result<Vec<Vec<Value>>> {
        let mut seen: HashSet<Vec<HashedValue>> = HashSet::new();
        let drops = self.step.as_ref().is_some_and(|(.., drops)| *drops);
        let mut rows = Vec::new();
        let mut collect = |run: &mut Run<'_>, plan: &Plan, slots: &[Slot]| -> Result<Vec<Vec<Value>>> {
            let mut found = Vec::new();
            plan.run(run, &mut |run| {
                let row = run.row(slots);
                if drops && !seen.insert(row.iter().cloned().map(HashedValue).collect()) {
                    return Ok(Flow::On);
                }
                run.take_row(&row)?;
                found.push(row);
                Ok(Flow::On)
            })?;
            Ok(found)
        };
        let mut last = collect(run, &self.plan, &self.outputs)?;
        let Some((step, slots, _)) = &self.step else { return Ok(last) };
        for _ in 0..ROUNDS_MAX {
            if last.is_empty() {
                return Ok(rows);
            }
            let before = Rc::new(last);
            run.tables[number] = Some(Rc::clone(&before));
            last = collect(run, step, slots)?;
            run.tables[number] = None;
            rows.extend(Rc::try_unwrap(before).unwrap_or_else(|shared| (*shared).clone()));
        }
        Err(Error::new(Condition::LimitExceeded, format!("a recursive query took more than {ROUNDS_MAX} rounds")))
    }
}

fn run_series(
    run: &mut Run<'_>,
    (from, to, step): (&Expr, &Expr, &Expr),
    slot: Slot,
    sink: &mut Sink<'_>,
) -> Result<Flow> {
    let mut bounds = [0i128; 3];
    for (bound, expr) in bounds.iter_mut().zip([from, to, step]) {
        let value = expr.eval(run)?;
        match value.as_integer() {
            _ if value.is_null() => return Ok(Flow::On),
            Some(number) => *bound = number,
            None => return Err(Error::new(Condition::TypeMismatch, "generate_series takes whole numbers")),
        }
    }
    let [mut at, to, step] = bounds;
    if step == 0 {
        return Err(Error::new(Condition::InvalidArgument, "step size cannot equal zero"));
    }
    while if step > 0 { at <= to } else { at >= to } {
        run.tick()?;
        run.frame[slot] = Value::integer(at).unwrap_or_default();
        if sink(run)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        at += step;
    }
    Ok(Flow::On)
}
