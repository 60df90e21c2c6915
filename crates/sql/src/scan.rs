//! Rows of a table: an index finds them, the frame gets those fields that the statement uses.

use crate::error::{Condition, Error, Result};
use crate::expr::{CollationOption, Expr, order};
use crate::plan::{Lock, Scan};
use crate::run::{Flow, Run, Sink};
use crate::value::{HashedValue, Value};
use database::ErrorCode;
use hashbrown::HashSet;
use std::cmp::Ordering;
use storage::{IteratorKind, Key, ScanRequest};
use tuple::msgpack::Reader;
use tuple::{FieldType, IndexId, Tuple, msgpack};

/// Rows of a scan that are taken one by one, and how many are taken together behind them.
const SINGLE_ROWS: usize = 16;
const TOGETHER_MAX: usize = 64;

/// Values that a part of a key has to be compared with, row by row.
struct Bounds {
    lower: Option<(Value, bool)>,
    upper: Option<(Value, bool)>,
    collation: CollationOption,
    /// Rows with NaN are passed over; without bounds those with null are not.
    passes_nan: bool,
}

impl Bounds {
    /// Direction and bound for the engine. `has_prefix`: parts before the bounded one are given.
    fn kind(&self, is_reverse: bool, has_prefix: bool) -> IteratorKind {
        match (is_reverse, &self.lower, &self.upper) {
            (false, Some((_, true)), _) => IteratorKind::Ge,
            (false, Some((_, false)), _) => IteratorKind::Gt,
            (true, _, Some((_, true))) => IteratorKind::Le,
            (true, _, Some((_, false))) => IteratorKind::Lt,
            (false, None, _) if has_prefix => IteratorKind::Eq,
            (true, _, None) if has_prefix => IteratorKind::Req,
            (true, _, None) => IteratorKind::Le,
            (false, None, _) => IteratorKind::All,
        }
    }
}

impl Scan {
    /// Hands the rows on. May wait. Errors: as `Database::cursor`; those of expressions; a lock that cannot be had.
    pub(crate) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        let mut equal = Vec::with_capacity(self.equal.len() + 1);
        for expr in &self.equal {
            equal.push(expr.eval(run)?);
        }
        let Some(among) = &self.among else {
            return match self.bounds(run)? {
                Some(bounds) if self.has_nan_apart => self.find_apart(run, equal, bounds, sink),
                Some(bounds) => self.find(run, &equal, &bounds, sink),
                None => Ok(Flow::On),
            };
        };
        let mut values = Vec::with_capacity(among.len());
        let mut seen = HashSet::new();
        for expr in among {
            let value = expr.eval(run)?;
            if seen.insert(HashedValue(value.clone())) {
                values.push(value);
            }
        }
        values.sort_by(|a, b| if self.is_reverse { b.order(a) } else { a.order(b) });
        let bounds = Bounds { lower: None, upper: None, collation: None, passes_nan: false };
        for value in values {
            equal.push(value);
            let flow = self.find(run, &equal, &bounds, sink)?;
            equal.pop();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::On)
    }

    /// The bounds' values. None: one of them is null, and no row is within.
    fn bounds(&self, run: &mut Run<'_>) -> Result<Option<Bounds>> {
        let mut values = [None, None];
        for (value, bound) in values.iter_mut().zip([&self.lower, &self.upper]) {
            if let Some((expr, is_within)) = bound {
                let bound = expr.eval(run)?;
                if bound.is_null() {
                    return Ok(None);
                }
                *value = Some((bound, *is_within));
            }
        }
        let [lower, upper] = values;
        let index = self.table.indexes.iter().find(|index| index.id == self.index_id);
        let collation = index.and_then(|index| index.parts.get(self.equal.len())).and_then(|part| part.2.clone());
        Ok(Some(Bounds { lower, upper, collation, passes_nan: false }))
    }

    /// Rows within bounds, those with NaN behind all numbers.
    fn find_apart(
        &self,
        run: &mut Run<'_>,
        mut equal: Vec<Value>,
        mut bounds: Bounds,
        sink: &mut Sink<'_>,
    ) -> Result<Flow> {
        let is_nan = |bound: &Option<(Value, bool)>| {
            let Some((Value::Double(number), is_within)) = bound else { return None };
            number.is_nan().then_some(*is_within)
        };
        let (lower, upper) = (is_nan(&bounds.lower), is_nan(&bounds.upper));
        let has_numbers = lower.is_none();
        let has_nan = lower != Some(false) && (bounds.upper.is_none() || upper == Some(true));
        bounds.passes_nan = bounds.lower.is_none() && bounds.upper.is_none();
        if !bounds.passes_nan {
            bounds.lower = bounds.lower.or(Some((Value::Double(f64::NEG_INFINITY), true)));
        }
        bounds.upper = bounds.upper.filter(|_| upper.is_none());
        let whole = Bounds { lower: None, upper: None, collation: None, passes_nan: false };
        for finds_nan in [self.is_reverse, !self.is_reverse] {
            let flow = match finds_nan {
                true if has_nan => {
                    equal.push(Value::Double(f64::NAN));
                    let flow = self.find(run, &equal, &whole, sink)?;
                    equal.pop();
                    flow
                }
                false if has_numbers => self.find(run, &equal, &bounds, sink)?,
                _ => Flow::On,
            };
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::On)
    }

    fn find(&self, run: &mut Run<'_>, equal: &[Value], bounds: &Bounds, sink: &mut Sink<'_>) -> Result<Flow> {
        let space = &self.table.space;
        let part_types: Vec<FieldType> = match space.index_def(self.index_id) {
            Some(def) => def.key_def.parts().iter().map(|part| part.field_type).collect(),
            None => return Err(changed(&self.table.name)),
        };
        let mut parts = Vec::new();
        for (value, part) in equal.iter().zip(&part_types) {
            match value.is_null() {
                false if encode_part(*part, value, &mut parts) => {}
                // Nothing equals it.
                _ => return Ok(Flow::On),
            }
        }
        let mut part_count = equal.len() as u32;
        if self.is_unique {
            let key = Key { parts: &parts, part_count };
            let row = run.database.get(run.context, space, self.index_id, key)?;
            return match row {
                Some(row) => self.hand_on(run, &row, sink),
                None => Ok(Flow::On),
            };
        }
        let mut kind = bounds.kind(self.is_reverse, !equal.is_empty());
        let bound = if self.is_reverse { &bounds.upper } else { &bounds.lower };
        let is_bounded = bounds.lower.is_some() || bounds.upper.is_some() || bounds.passes_nan;
        if let Some((value, _)) = bound
            && let Some(part) = part_types.get(equal.len())
        {
            match encode_part(*part, value, &mut parts) {
                true => part_count += 1,
                // The value is none that the index could hold: rows are compared with it, one by one.
                false if equal.is_empty() => kind = if self.is_reverse { IteratorKind::Le } else { IteratorKind::All },
                false => kind = if self.is_reverse { IteratorKind::Req } else { IteratorKind::Eq },
            }
        }
        let prefix: &[Value] = if part_count as usize > equal.len() { equal } else { &[] };
        let request = ScanRequest::new(self.index_id, kind, Key { parts: &parts, part_count });
        let mut cursor = run.database.cursor(run.context, space, &request)?;
        let fields = self.part_fields();
        let field = fields.get(equal.len()).map(|(field, _)| *field);
        let mut rows = Vec::new();
        let mut found = 0;
        loop {
            // Who is content with a few rows depends on no others.
            let max = if found < SINGLE_ROWS { 1 } else { TOGETHER_MAX };
            cursor.next_some(run.database, run.context, max, &mut rows)?;
            if rows.is_empty() {
                return Ok(Flow::On);
            }
            found += rows.len();
            for row in rows.drain(..) {
                run.tick()?;
                if space.is_dropped.get() {
                    return Err(changed(&self.table.name));
                }
                if !prefix.is_empty() && !has_prefix(&row, prefix, &fields) {
                    return Ok(Flow::On);
                }
                if is_bounded {
                    match is_within(&row, field, bounds, self.is_reverse) {
                        Place::Within => {}
                        Place::Before => continue,
                        Place::Behind => return Ok(Flow::On),
                    }
                }
                if self.hand_on(run, &row, sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
    }

    /// The fields of the index's parts, and how they are compared.
    fn part_fields(&self) -> Vec<(u32, CollationOption)> {
        let index = self.table.indexes.iter().find(|index| index.id == self.index_id);
        index.map_or_else(Vec::new, |index| {
            index.parts.iter().map(|(field, _, collation)| (*field as u32, collation.clone())).collect()
        })
    }

    /// Puts a row into the frame, looks at it and hands it on.
    fn hand_on(&self, run: &mut Run<'_>, row: &Tuple, sink: &mut Sink<'_>) -> Result<Flow> {
        self.fill(run, row);
        if let Some(filter) = &self.filter
            && !filter.is_true(run)?
        {
            return Ok(Flow::On);
        }
        let changed = (run.locks_changed && self.row.is_some()).then_some(Lock::Wait);
        let Some(lock) = self.lock.or(changed) else { return sink(run) };
        #[cfg(feature = "planted-bugs")]
        let before = row.clone();
        let Some(row) = self.locked(run, row, lock)? else { return Ok(Flow::On) };
        #[cfg(feature = "planted-bugs")]
        let row = if runtime::planted::is_planted(runtime::planted::Plant::OldRowUnderLock) { before } else { row };
        // Somebody may have changed it while it was waited for.
        self.fill(run, &row);
        match &self.filter {
            Some(filter) if !filter.is_true(run)? => Ok(Flow::On),
            _ => sink(run),
        }
    }

    fn locked(&self, run: &mut Run<'_>, row: &Tuple, lock: Lock) -> Result<Option<Tuple>> {
        let key = primary_key(&self.table.space, row.data()).ok_or_else(|| changed(&self.table.name))?;
        let key = Key::decode(&key).map_err(database::Error::from)?;
        let timeout_ns = if lock == Lock::Wait { run.lock_timeout_ns } else { Some(0) };
        let found = run.database.get_for_update(run.context, &self.table.space, IndexId::PRIMARY, key, timeout_ns);
        match found {
            Err(error) if error.is(ErrorCode::Timeout) && lock == Lock::Skip => Ok(None),
            Err(error) if error.is(ErrorCode::Timeout) && lock == Lock::NoWait => {
                let what = format!("could not obtain lock on row in relation \"{}\"", self.table.name);
                Err(Error::new(Condition::LockTimeout, what))
            }
            Err(error) if error.is(ErrorCode::Timeout) && run.lock_timeout_ns.is_some() => {
                Err(Error::new(Condition::LockTimeout, "canceling statement due to lock timeout"))
            }
            found => Ok(found?),
        }
    }

    fn fill(&self, run: &mut Run<'_>, row: &Tuple) {
        let bytes = row.data();
        let mut reader = Reader::new(bytes);
        let count = reader.read_array().unwrap_or(0);
        let mut at = 0;
        for (field, slot) in &self.fields {
            while at < *field && at < count {
                reader.skip_checked();
                at += 1;
            }
            run.frame[*slot] = match at < count {
                true => {
                    at += 1;
                    Value::take(&mut reader)
                }
                false => Value::Null,
            };
        }
        if let Some(slot) = self.row {
            run.frame[slot] = Value::Document(bytes.into());
        }
    }
}

/// Where a row lies to the bounds of a scan.
enum Place {
    Before,
    Within,
    Behind,
}

fn is_within(row: &Tuple, field: Option<u32>, bounds: &Bounds, is_reverse: bool) -> Place {
    let value = field.and_then(|field| row.field(field)).map_or(Value::Null, Value::decode);
    if bounds.passes_nan {
        return if matches!(value, Value::Double(number) if number.is_nan()) { Place::Before } else { Place::Within };
    }
    let (before, behind) = if is_reverse { (Place::Behind, Place::Before) } else { (Place::Before, Place::Behind) };
    if value.is_null() {
        return before;
    }
    if let Some((lower, is_within)) = &bounds.lower {
        match order(&bounds.collation, &value, lower) {
            Ordering::Less => return before,
            Ordering::Equal if !is_within => return before,
            _ => {}
        }
    }
    if let Some((upper, is_within)) = &bounds.upper {
        match order(&bounds.collation, &value, upper) {
            Ordering::Greater => return behind,
            Ordering::Equal if !is_within => return behind,
            _ => {}
        }
    }
    Place::Within
}

fn has_prefix(row: &Tuple, prefix: &[Value], fields: &[(u32, CollationOption)]) -> bool {
    prefix.iter().zip(fields).all(|(value, (field, collation))| {
        row.field(*field).is_some_and(|bytes| order(collation, &Value::decode(bytes), value) == Ordering::Equal)
    })
}

/// The encoded primary key of a row.
pub(crate) fn primary_key(space: &database::Space, row: &[u8]) -> Option<Vec<u8>> {
    let def = space.index_def(IndexId::PRIMARY)?;
    let mut key = Vec::new();
    def.key_def.extract_key(row, &mut key);
    Some(key)
}

/// Appends a value as a part of a key, if an index of such parts can hold an equal one.
pub(crate) fn encode_part(part: FieldType, value: &Value, out: &mut Vec<u8>) -> bool {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    if part.accepts(&bytes) {
        out.extend_from_slice(&bytes);
        return true;
    }
    // The same number in another form.
    let other = match (part.name(), value) {
        ("unsigned" | "integer", Value::Double(number)) if number.trunc() == *number && number.abs() < 1e19 => {
            Value::integer(*number as i128)
        }
        ("unsigned" | "integer", Value::Decimal(number)) => number
            .to_integer()
            .filter(|whole| tuple::decimal::Decimal::new(*whole, 0) == Some(**number))
            .and_then(Value::integer),
        ("double", number) => number.as_double().map(Value::Double),
        ("decimal", number) => number.as_decimal().map(Value::decimal),
        ("varbinary", Value::Text(text)) => Some(Value::Bytes(text.as_bytes().into())),
        _ => None,
    };
    bytes.clear();
    match other {
        Some(other) => other.encode(&mut bytes),
        None => return false,
    }
    let fits = part.accepts(&bytes);
    if fits {
        out.extend_from_slice(&bytes);
    }
    fits
}

fn changed(table: &str) -> Error {
    let what = format!("table '{table}' was changed while the statement ran");
    Error::new(Condition::Serialization, what)
}

/// Appends an array of values.
pub(crate) fn encode_row(values: &[Value], out: &mut Vec<u8>) {
    msgpack::encode_array(out, values.len() as u32);
    for value in values {
        value.encode(out);
    }
}

/// The parts of a key, without its header: nothing if a value is null or fits no such part.
pub(crate) fn encode_key(space: &database::Space, index_id: IndexId, values: &[Value]) -> Option<Vec<u8>> {
    let def = space.index_def(index_id)?;
    let mut parts = Vec::new();
    for (value, part) in values.iter().zip(def.key_def.parts()) {
        if value.is_null() || !encode_part(part.field_type, value, &mut parts) {
            return None;
        }
    }
    Some(parts)
}

impl Expr {
    /// The constant that it is.
    pub(crate) fn constant(&self) -> Option<&Value> {
        match self {
            Expr::Const(value) => Some(value),
            _ => None,
        }
    }
}
