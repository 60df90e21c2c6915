//! Aggregates: one value of many rows.

use crate::arithmetic::{Arithmetic, Manner, calculate, rounded_to};
use crate::cast::display;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{CollationOption, Expr, Slot, order};
use crate::json::Json;
use crate::kept::{Keys, Rows};
use crate::run::Run;
use crate::sort::{Entry, Hints, sort};
use crate::spread::{self, Pairs, Regression};
use crate::types::{Base, Type};
use crate::value::{HashedValue, Value};
use std::cmp::Ordering;

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    /// Rows.
    CountRows,
    /// Values that are not null.
    Count,
    Sum,
    /// A sum that is 0.0 of no rows: SQLite's.
    Total,
    Average,
    Least,
    Greatest,
    /// Texts, one behind the other with something between.
    Concatenate,
    And,
    Or,
    BitAnd,
    BitOr,
    BitXor,
    /// The first value: of columns that are the same in the whole group.
    Any,
    /// Spread of numbers: of a sample or of all, squared or not.
    Variance {
        of_sample: bool,
        squared: bool,
    },
    /// How two numbers go together: the second is what the first depends on.
    Regression(Regression),
    /// All values, nulls among them, as an array.
    Array,
    /// The same as an array of JSON: arguments are JSON already.
    JsonArray {
        is_binary: bool,
    },
    /// Names and values as an object of JSON.
    JsonObject {
        is_binary: bool,
    },
    /// The value that stands at a part of the order, or between two.
    Percentile {
        is_continuous: bool,
    },
    /// The value that is there most often.
    Mode,
}

/// By what the rows of an aggregate are ordered.
pub(crate) struct OrderKey {
    pub(crate) expr: Expr,
    pub(crate) is_descending: bool,
    pub(crate) nulls_first: bool,
    pub(crate) collation: CollationOption,
}

/// An aggregate in a query.
pub(crate) struct AggregateCall {
    pub(crate) aggregate: Aggregate,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) result: Type,
    pub(crate) is_distinct: bool,
    pub(crate) filter: Option<Expr>,
    /// In which order rows are taken.
    pub(crate) order: Vec<OrderKey>,
    pub(crate) collation: CollationOption,
    /// Where the result goes.
    pub(crate) slot: Slot,
}

/// The function of a name and a number of arguments; none of them: of `*`.
pub(crate) fn find(dialect: Dialect, name: &str, is_star: bool) -> Option<Aggregate> {
    Some(match name {
        "count" if is_star => Aggregate::CountRows,
        "count" => Aggregate::Count,
        "sum" => Aggregate::Sum,
        "total" if dialect == Dialect::Tarantool => Aggregate::Total,
        "avg" => Aggregate::Average,
        "min" => Aggregate::Least,
        "max" => Aggregate::Greatest,
        "group_concat" if dialect != Dialect::Postgres => Aggregate::Concatenate,
        "string_agg" => Aggregate::Concatenate,
        "bool_and" | "every" => Aggregate::And,
        "bool_or" => Aggregate::Or,
        "bit_and" => Aggregate::BitAnd,
        "bit_or" => Aggregate::BitOr,
        "bit_xor" => Aggregate::BitXor,
        "any_value" => Aggregate::Any,
        "var_pop" => Aggregate::Variance { of_sample: false, squared: true },
        "variance" | "std" | "stddev" if dialect == Dialect::Mysql => {
            Aggregate::Variance { of_sample: false, squared: name == "variance" }
        }
        "variance" | "var_samp" => Aggregate::Variance { of_sample: true, squared: true },
        "stddev_pop" => Aggregate::Variance { of_sample: false, squared: false },
        "stddev" | "stddev_samp" => Aggregate::Variance { of_sample: true, squared: false },
        "json_arrayagg" if dialect == Dialect::Mysql => Aggregate::JsonArray { is_binary: true },
        "json_objectagg" if dialect == Dialect::Mysql => Aggregate::JsonObject { is_binary: true },
        _ if dialect != Dialect::Postgres => return None,
        "array_agg" => Aggregate::Array,
        "json_agg" => Aggregate::JsonArray { is_binary: false },
        "jsonb_agg" => Aggregate::JsonArray { is_binary: true },
        "json_object_agg" => Aggregate::JsonObject { is_binary: false },
        "jsonb_object_agg" => Aggregate::JsonObject { is_binary: true },
        "percentile_cont" => Aggregate::Percentile { is_continuous: true },
        "percentile_disc" => Aggregate::Percentile { is_continuous: false },
        "mode" => Aggregate::Mode,
        other => Aggregate::Regression(Regression::of(other)?),
    })
}

impl Aggregate {
    /// How many arguments it takes.
    pub(crate) fn arguments(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Aggregate::CountRows => 0..=0,
            Aggregate::Count => 1..=usize::MAX,
            Aggregate::Concatenate | Aggregate::JsonObject { .. } | Aggregate::Regression(_) => 2..=2,
            Aggregate::Percentile { .. } => 2..=2,
            _ => 1..=1,
        }
    }

    /// True if nulls count.
    fn takes_nulls(self) -> bool {
        matches!(self, Aggregate::Any | Aggregate::Array | Aggregate::JsonArray { .. } | Aggregate::JsonObject { .. })
    }

    /// True if its value depends on the order of rows.
    pub(crate) fn depends_on_order(self) -> bool {
        matches!(self, Aggregate::Array | Aggregate::Concatenate | Aggregate::JsonArray { .. })
    }

    /// True if its order stands in WITHIN GROUP.
    pub(crate) fn is_of_ordered_set(self) -> bool {
        matches!(self, Aggregate::Percentile { .. } | Aggregate::Mode)
    }
}

/// What an aggregate of one group has come to.
pub(crate) struct State {
    /// Values that were taken already.
    seen: Option<Box<Keys>>,
    count: i64,
    value: Value,
    text: String,
    /// The sum of squares.
    squares: Value,
    /// Values that are kept, and those of the second argument.
    values: Rows,
    pairs: Pairs,
    waiting: Option<Box<Waiting>>,
}

/// Rows that wait for their order: by what they are ordered, then the arguments.
struct Waiting {
    rows: Rows,
    entries: Vec<Entry>,
    hints: Hints,
}

/// Rows up to this number are freed at once.
const FREED_AT_ONCE: usize = 512;

const MANNER: Manner = Manner { zero_gives_null: false, short_quotients: false };

impl AggregateCall {
    /// One over a column, as a call of nothing else.
    pub(crate) fn any_of(column: Slot, slot: Slot) -> Self {
        AggregateCall {
            aggregate: Aggregate::Any,
            arguments: vec![Expr::Slot(column)],
            result: Type::UNKNOWN,
            is_distinct: false,
            filter: None,
            order: Vec::new(),
            collation: None,
            slot,
        }
    }

    /// Hands every expression of it to `visit`.
    pub(crate) fn expressions<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        self.arguments.iter().chain(&self.filter).for_each(&mut *visit);
        self.order.iter().for_each(|key| visit(&key.expr));
    }

    /// Of no rows.
    pub(crate) fn begin(&self) -> State {
        State {
            seen: self.is_distinct.then(|| Box::new(Keys::new(1))),
            count: 0,
            value: Value::Null,
            text: String::new(),
            squares: Value::Null,
            values: Rows::new(if matches!(self.aggregate, Aggregate::JsonObject { .. }) { 2 } else { 1 }),
            pairs: Pairs::default(),
            waiting: None,
        }
    }

    /// With the row that the frame holds. Errors: those of its expressions and of the sum.
    pub(crate) fn add(&self, run: &mut Run<'_>, state: &mut State) -> Result<()> {
        if let Some(filter) = &self.filter
            && !filter.is_true(run)?
        {
            return Ok(());
        }
        if self.aggregate == Aggregate::CountRows {
            state.count += 1;
            return Ok(());
        }
        if let [argument] = &self.arguments[..]
            && state.seen.is_none()
            && self.order.is_empty()
        {
            // Without a copy where the usual form allows.
            if let Expr::Slot(slot) = argument
                && let Value::Int(number) = run.frame[*slot]
                && self.add_integer(state, number)
            {
                return Ok(());
            }
            let value = argument.eval(run)?;
            return match value.is_null() && !self.aggregate.takes_nulls() {
                true => Ok(()),
                false => self.add_values(run, state, &[value]),
            };
        }
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            arguments.push(argument.eval(run)?);
        }
        self.add_arguments(run, state, arguments)
    }

    /// With a row whose arguments are known. Errors: as [`AggregateCall::add`].
    pub(crate) fn add_arguments(&self, run: &mut Run<'_>, state: &mut State, arguments: Vec<Value>) -> Result<()> {
        if self.aggregate == Aggregate::CountRows {
            state.count += 1;
            return Ok(());
        }
        let is_skipped = match self.aggregate {
            aggregate if aggregate.takes_nulls() => false,
            // What stands between may be null, and is nothing then.
            Aggregate::Concatenate if run.dialect == Dialect::Postgres => arguments[0].is_null(),
            _ => arguments.iter().any(Value::is_null),
        };
        if is_skipped {
            return Ok(());
        }
        if let Some(seen) = &mut state.seen {
            let mut value = match &self.collation {
                Some(collation) => run.canonical(collation, arguments[0].clone())?,
                None => arguments[0].clone(),
            };
            if self.aggregate == Aggregate::Count && arguments.len() > 1 {
                let mut all = Vec::new();
                crate::scan::encode_row(&arguments, &mut all);
                value = Value::Document(all.into());
            }
            let (_, is_new) = seen.number(run, &mut vec![HashedValue(value)])?;
            if !is_new {
                return Ok(());
            }
        }
        if self.order.is_empty() {
            return self.add_values(run, state, &arguments);
        }
        let mut keys = Vec::with_capacity(self.order.len());
        for key in &self.order {
            keys.push(key.expr.eval(run)?);
        }
        let waiting = state.waiting.get_or_insert_with(|| {
            let first = &self.order[0];
            let rows = Rows::new(keys.len() + arguments.len());
            let hints = Hints::new(first.is_descending, &first.collation);
            Box::new(Waiting { rows, entries: Vec::new(), hints })
        });
        run.take(2 * size_of::<Entry>())?;
        let hint = waiting.hints.of(&keys[0]);
        waiting.entries.push((hint, waiting.rows.len() as u32));
        waiting.rows.push_values(run, keys.into_iter().chain(arguments))
    }

    /// Adds a whole number, if that is simple.
    #[inline]
    fn add_integer(&self, state: &mut State, number: i64) -> bool {
        // A decimal, too, is a whole number until one that is none comes.
        let is_exact = matches!(self.result.base, Base::Int8 | Base::Integer | Base::Number | Base::Decimal);
        match (self.aggregate, &mut state.value) {
            (Aggregate::Count, _) => {}
            (Aggregate::Sum | Aggregate::Average, Value::Int(sum)) if is_exact => match sum.checked_add(number) {
                Some(more) => *sum = more,
                None => return false,
            },
            (Aggregate::Least, Value::Int(least)) => *least = number.min(*least),
            (Aggregate::Greatest, Value::Int(greatest)) => *greatest = number.max(*greatest),
            _ => return false,
        }
        state.count += 1;
        true
    }

    fn add_values(&self, run: &mut Run<'_>, state: &mut State, arguments: &[Value]) -> Result<()> {
        let value = &arguments[0];
        state.count += 1;
        match self.aggregate {
            Aggregate::CountRows | Aggregate::Count => {}
            Aggregate::Sum
            | Aggregate::Total
            | Aggregate::Average
            | Aggregate::Least
            | Aggregate::Greatest
            | Aggregate::And
            | Aggregate::Or
            | Aggregate::BitAnd
            | Aggregate::BitOr
            | Aggregate::BitXor => {
                let before = std::mem::take(&mut state.value);
                state.value = self.joined(&before, value)?;
            }
            Aggregate::Concatenate => {
                let length = state.text.len();
                if state.count > 1 {
                    match arguments.get(1) {
                        None => state.text.push(','),
                        Some(Value::Null) => {}
                        Some(between) => state.text.push_str(&display(run.dialect, between)),
                    }
                }
                match value {
                    Value::Bytes(bytes) if run.dialect == Dialect::Mysql => {
                        state.text.push_str(&String::from_utf8_lossy(bytes));
                    }
                    value => state.text.push_str(&display(run.dialect, value)),
                }
                run.check_length(state.text.len())?;
                run.take(state.text.len() - length)?;
            }
            Aggregate::Any => {
                if state.count == 1 {
                    state.value = value.clone();
                }
            }
            Aggregate::Variance { .. } if self.result.base == Base::Decimal => {
                // Exact: the sum, and that of the squares.
                let square = calculate(Arithmetic::Multiply, Type::of(Base::Decimal), MANNER, value, value)?;
                let add = |a: &Value, b: &Value| match a {
                    Value::Null => Ok(b.clone()),
                    a => calculate(Arithmetic::Add, Type::of(Base::Decimal), MANNER, a, b),
                };
                state.value = add(&state.value, value)?;
                state.squares = add(&state.squares, &square)?;
            }
            Aggregate::Variance { .. } => {
                let number = value.as_double().map_or_else(|| not_a_number(value).map(|_| 0.0), Ok)?;
                state.pairs.add(number, 0.0);
            }
            Aggregate::Regression(_) => {
                let number = |value: &Value| value.as_double().map_or_else(|| not_a_number(value).map(|_| 0.0), Ok);
                state.pairs.add(number(&arguments[1])?, number(value)?);
            }
            Aggregate::Array | Aggregate::JsonArray { .. } | Aggregate::Mode => {
                state.values.push_values(run, std::iter::once(value.clone()))?;
            }
            Aggregate::JsonObject { .. } => {
                if value.is_null() {
                    return Err(Error::new(Condition::InvalidArgument, "field name must not be null"));
                }
                let name = Value::text(display(run.dialect, value));
                state.values.push_values(run, [name, arguments[1].clone()].into_iter())?;
            }
            Aggregate::Percentile { .. } => {
                state.values.push_values(run, std::iter::once(value.clone()))?;
                // The same for all rows.
                state.value = arguments[1].clone();
            }
        }
        Ok(())
    }

    /// True if the value of many rows is that of the values of its parts, joined.
    pub(crate) fn is_of_parts(&self) -> bool {
        use Aggregate as A;
        let is_one = matches!(
            self.aggregate,
            A::CountRows | A::Count | A::Sum | A::Total | A::Average | A::Least | A::Greatest | A::And | A::Or
        );
        is_one || matches!(self.aggregate, A::BitAnd | A::BitOr | A::BitXor)
    }

    /// The values of two parts as one; null is that of no rows. Errors: those of the sum.
    pub(crate) fn joined(&self, before: &Value, value: &Value) -> Result<Value> {
        if value.is_null() {
            return Ok(before.clone());
        }
        let is_first = before.is_null();
        Ok(match self.aggregate {
            Aggregate::Sum | Aggregate::Total | Aggregate::Average => match is_first {
                true if self.sum_type().base == Base::Double => {
                    value.as_double().map_or_else(|| not_a_number(value), |value| Ok(Value::Double(value)))?
                }
                true if value.as_double().is_none() && !matches!(value, Value::Interval(_)) => not_a_number(value)?,
                true => value.clone(),
                false if let (Value::Interval(a), Value::Interval(b)) = (before, value) => spread::sum_of(a, b)?,
                false => calculate(Arithmetic::Add, self.sum_type(), MANNER, before, value)?,
            },
            Aggregate::Least | Aggregate::Greatest => {
                let wanted = if self.aggregate == Aggregate::Least { Ordering::Less } else { Ordering::Greater };
                match is_first || order(&self.collation, value, before) == wanted {
                    true => value.clone(),
                    false => before.clone(),
                }
            }
            Aggregate::And | Aggregate::Or => {
                let is = matches!(value, Value::Bool(true));
                Value::Bool(match (before, self.aggregate) {
                    (Value::Bool(before), Aggregate::And) => *before && is,
                    (Value::Bool(before), _) => *before || is,
                    _ => is,
                })
            }
            Aggregate::BitAnd | Aggregate::BitOr | Aggregate::BitXor => {
                let operation = match self.aggregate {
                    Aggregate::BitAnd => Arithmetic::BitAnd,
                    Aggregate::BitOr => Arithmetic::BitOr,
                    _ => Arithmetic::BitXor,
                };
                match is_first {
                    // Without a sign in MySQL.
                    true if let (Base::Uint8, Value::Int(number)) = (self.result.base, value) => {
                        Value::integer(i128::from(*number as u64)).unwrap_or_default()
                    }
                    true => value.clone(),
                    false => calculate(operation, self.result, MANNER, before, value)?,
                }
            }
            _ => Value::Null,
        })
    }

    /// What so many rows have come to whose parts give a value together.
    pub(crate) fn state_of(&self, value: Value, count: i64) -> State {
        State { value, count, ..self.begin() }
    }

    fn sum_type(&self) -> Type {
        match (self.aggregate, self.result.base) {
            (Aggregate::Total, _) => Type::of(Base::Double),
            (Aggregate::Sum, Base::Double) => self.result,
            (_, Base::Double) => Type::of(Base::Double),
            (_, Base::Decimal) => Type::of(Base::Decimal),
            (_, base) => Type::of(base),
        }
    }

    /// The value of all rows that were added. May wait. Errors: those of the sum; as [`Run::tick`].
    pub(crate) fn end(&self, run: &mut Run<'_>, mut state: State) -> Result<Value> {
        if let Some(waiting) = state.waiting.take() {
            let Waiting { rows, mut entries, hints } = *waiting;
            if !hints.are_good() {
                for piece in entries.chunks_mut(1024) {
                    piece.iter_mut().for_each(|entry| entry.0 = 0);
                    run.tick_many(32)?;
                }
            }
            sort(run, &mut entries, rows.bytes(), &|a, b| self.order_of(rows.row(a as usize), rows.row(b as usize)))?;
            for (_, number) in entries {
                run.tick()?;
                self.add_values(run, &mut state, &rows.row(number as usize)[self.order.len()..])?;
            }
            free(run, rows)?;
        }
        let value = self.end_of(run, &state)?;
        free(run, state.values)?;
        if let Some(seen) = state.seen {
            seen.free(run)?;
        }
        Ok(value)
    }

    /// The value of what there is so far, whose rows wait for no order. May wait. Errors: as [`AggregateCall::end`].
    pub(crate) fn end_of(&self, run: &mut Run<'_>, state: &State) -> Result<Value> {
        let is_mysql = run.dialect == Dialect::Mysql;
        Ok(match self.aggregate {
            Aggregate::CountRows | Aggregate::Count => Value::Int(state.count),
            Aggregate::Total => Value::Double(state.value.as_double().unwrap_or(0.0)),
            Aggregate::Average if state.count > 0 => self.average(is_mysql, state)?,
            Aggregate::Concatenate if state.count > 0 => Value::text(state.text.as_str()),
            Aggregate::Concatenate => Value::Null,
            Aggregate::BitAnd if is_mysql && state.count == 0 => Value::Uint(u64::MAX),
            Aggregate::BitOr | Aggregate::BitXor if is_mysql && state.count == 0 => Value::Int(0),
            Aggregate::Variance { of_sample, squared } => {
                let count = state.count - i64::from(of_sample);
                if count <= 0 {
                    return Ok(Value::Null);
                }
                match (self.result.base, &state.squares) {
                    (Base::Decimal, Value::Null) => Value::Null,
                    (Base::Decimal, squares) => spread::exact(&state.value, squares, (state.count, count), squared)?,
                    _ => {
                        let variance = state.pairs.spread_x / count as f64;
                        Value::Double(if squared { variance } else { variance.sqrt() })
                    }
                }
            }
            Aggregate::Regression(which) => state.pairs.value(which),
            Aggregate::Array if state.count > 0 => {
                let mut out = Vec::new();
                tuple::msgpack::encode_array(&mut out, state.values.len() as u32);
                for number in 0..state.values.len() {
                    run.tick()?;
                    state.values.row(number)[0].encode(&mut out);
                    run.check_length(out.len())?;
                }
                Value::Document(out.into())
            }
            Aggregate::JsonArray { is_binary } if state.count > 0 => {
                let mut out = String::from("[");
                for number in 0..state.values.len() {
                    run.tick()?;
                    out.push_str(if number > 0 { ", " } else { "" });
                    // The normal form of an array is that of its elements.
                    push_json(&state.values.row(number)[0], is_binary, &mut out);
                    run.check_length(out.len())?;
                }
                out.push(']');
                Value::text(out)
            }
            Aggregate::JsonObject { is_binary } if state.count > 0 => {
                let entries = if is_binary { members(run, &state.values)? } else { Vec::new() };
                let number_of = |at: usize| entries.get(at).map_or(at, |(_, number)| *number as usize);
                let count = if is_binary { entries.len() } else { state.values.len() };
                let mut out = String::from(if is_binary { "{" } else { "{ " });
                for at in 0..count {
                    run.tick()?;
                    let pair = state.values.row(number_of(at));
                    out.push_str(if at > 0 { ", " } else { "" });
                    crate::json::quote(pair[0].as_text().unwrap_or_default(), &mut out);
                    out.push_str(if is_binary { ": " } else { " : " });
                    push_json(&pair[1], is_binary, &mut out);
                    run.check_length(out.len())?;
                }
                out.push_str(if is_binary { "}" } else { " }" });
                Value::text(out)
            }
            Aggregate::Mode => spread::mode(run, &self.collation, &state.values)?,
            Aggregate::Percentile { is_continuous } => spread::percentiles(&state.values, &state.value, is_continuous)?,
            _ => state.value.clone(),
        })
    }

    /// MySQL's has four digits more than the sum.
    fn average(&self, is_mysql: bool, state: &State) -> Result<Value> {
        if let Value::Interval(sum) = &state.value {
            return spread::part_of(sum, state.count);
        }
        let result = match self.result.base {
            Base::Number if !matches!(state.value, Value::Double(_) | Value::Decimal(_)) => {
                // As the quotient of the sum: whole numbers give a whole one only if it is exact.
                let (Some(sum), count) = (state.value.as_integer(), i128::from(state.count)) else {
                    return Ok(Value::Null);
                };
                return match sum % count {
                    0 => Ok(Value::integer(sum / count).unwrap_or_default()),
                    _ => Ok(Value::Double(state.value.as_double().unwrap_or(0.0) / state.count as f64)),
                };
            }
            Base::Number => {
                Type::of(if matches!(state.value, Value::Double(_)) { Base::Double } else { Base::Decimal })
            }
            _ => self.result,
        };
        let manner = Manner { short_quotients: is_mysql, ..MANNER };
        let value = calculate(Arithmetic::Divide, result, manner, &state.value, &Value::Int(state.count))?;
        match (&value, self.result.scale) {
            (Value::Decimal(value), scale) if scale > 0 && !is_mysql => {
                Ok(Value::decimal(rounded_to(**value, scale as i32).unwrap_or(**value)))
            }
            _ => Ok(value),
        }
    }

    fn order_of(&self, a: &[Value], b: &[Value]) -> Ordering {
        for (key, (a, b)) in self.order.iter().zip(a.iter().zip(b)) {
            let ordering = order_with_nulls(&key.collation, key.is_descending, key.nulls_first, a, b);
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }
}

/// Appends a value that is JSON, in its normal form if that is wanted.
fn push_json(value: &Value, is_normal: bool, out: &mut String) {
    let text = value.as_text().unwrap_or("null");
    let is_number =
        |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    match is_normal && !is_number(text) {
        true => match Json::parse(text) {
            Some(value) => value.write(out),
            None => out.push_str(text),
        },
        false => out.push_str(text),
    }
}

/// The members of an object in the order of its normal form, by their numbers: of those of one name the last. May wait. Errors: as [`Run::tick`].
fn members(run: &mut Run<'_>, pairs: &Rows) -> Result<Vec<Entry>> {
    let name = |number: u32| pairs.row(number as usize)[0].as_text().unwrap_or_default();
    let mut entries: Vec<Entry> = Vec::with_capacity(pairs.len());
    for number in 0..pairs.len() as u32 {
        run.tick()?;
        // Shorter names come first.
        entries.push((name(number).len() as u64, number));
    }
    sort(run, &mut entries, pairs.bytes(), &|a, b| crate::json::order_names(name(a), name(b)))?;
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        run.tick()?;
        match kept.last_mut() {
            Some(last) if name(last.1) == name(entry.1) => *last = entry,
            _ => kept.push(entry),
        }
    }
    Ok(kept)
}

/// Frees rows, by and by if they are many. May wait. Errors: as [`Run::tick`].
fn free(run: &mut Run<'_>, rows: Rows) -> Result<()> {
    if rows.len() > FREED_AT_ONCE { rows.free(run) } else { Ok(()) }
}

fn not_a_number(value: &Value) -> Result<Value> {
    let what = format!("Type mismatch: can not convert {} to number", display(Dialect::Tarantool, value));
    Err(Error::new(Condition::TypeMismatch, what))
}

/// The order of two values of ORDER BY.
#[inline]
pub(crate) fn order_with_nulls(
    collation: &CollationOption,
    is_descending: bool,
    nulls_first: bool,
    a: &Value,
    b: &Value,
) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if is_descending => order(collation, b, a),
        (false, false) => order(collation, a, b),
    }
}
