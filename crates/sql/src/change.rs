//! Running INSERT, REPLACE, UPDATE and DELETE: first all rows are found, then they are changed.

use crate::bind::{Change, Changed, OnConflict, Write};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::kept::Pieces;
use crate::plan::Plan;
use crate::run::{Flow, Run, Sink};
use crate::scan::{encode_key, encode_row, primary_key};
use crate::value::Value;
use database::{ErrorCode, Operation, Privileges};
use hashbrown::HashSet;
use std::rc::Rc;
use storage::Key;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, Tuple};

/// What a statement has done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Rows that were put in, changed, removed or found.
    pub rows: u64,
    /// Rows that an UPDATE has found: those that were as they should be among them.
    pub matched: u64,
    /// Numbers that a sequence has given to new rows.
    pub generated: Vec<i64>,
    /// The number that the last new row has brought itself where a sequence would have given it one.
    pub brought: Option<i64>,
}

/// Rows, and the values that come in their columns.
type Changes = Pieces<(Value, Vec<Value>)>;
/// Rows of one more table of an UPDATE: which were seen, and what becomes of them.
type OtherRows = (HashSet<Rc<[u8]>>, Changes);

/// Primary keys of rows that an INSERT of PostgreSQL's has put in or changed: ON CONFLICT DO UPDATE comes to none of them again.
pub(crate) type OwnRows = HashSet<Vec<u8>>;

/// Rows of one INSERT that are locked before they are there.
const LOCKED_ROWS_MAX: usize = 1000;
/// Numbers that are remembered of one statement.
const GENERATED_MAX: usize = 100_000;

impl Write {
    /// Changes the rows; what RETURNING asks for goes to `sink`. Errors: those of finding rows and of `Database::execute`; a null where none may be.
    pub(crate) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Counts> {
        let heeds_zero = match &self.change {
            Change::Update { passes_over, .. } => !passes_over,
            Change::Insert { on_conflict, .. } => !on_conflict.is_lenient(run.dialect),
            Change::Delete { .. } | Change::Merge { .. } => false,
        };
        let refuses_zero = heeds_zero && crate::mysql::assign::refuses_zero(run.session.as_deref());
        let before = std::mem::replace(&mut run.refuses_zero, refuses_zero);
        let done = self.run_by_its_rules(run, sink);
        run.refuses_zero = before;
        done
    }

    /// The same, with what counts at the end of the statement or of each row.
    fn run_by_its_rules(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Counts> {
        let is_by_rows = match &self.change {
            Change::Update { passes_over, .. } | Change::Delete { passes_over, .. } => *passes_over,
            Change::Insert { on_conflict, .. } => on_conflict.is_lenient(run.dialect),
            Change::Merge { .. } => false,
        };
        if is_by_rows || !self.table.space.has_constraints() {
            return self.run_as_it_is(run, sink);
        }
        // What is so at the end of the statement counts.
        let (database, context) = (run.database, run.context);
        let dialect = run.dialect;
        let goes_by_rows = dialect == Dialect::Mysql && !matches!(self.change, Change::Delete { .. });
        let done = database.as_one_statement(context, || {
            let done = self.run_as_it_is(run, sink);
            match &done {
                // Rows before the one that is refused may name none that is there: MySQL tells of that first.
                Err(error) if goes_by_rows && (is_of_value(error) || breaks_a_rule(error)) => {
                    database.look_at_foreign_keys_now(context)?;
                }
                _ => {}
            }
            done
        });
        done.map_err(|error| error.in_words_of(dialect))
    }

    fn run_as_it_is(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Counts> {
        let mut counts = Counts::default();
        match &self.change {
            Change::Merge { source, row, clauses } => self.merge(run, (source, *row, clauses), &mut counts, sink)?,
            Change::Insert { source, values, on_conflict, is_single } => {
                let is_mysql = run.dialect == Dialect::Mysql;
                let is_lenient = on_conflict.is_lenient(run.dialect);
                let is_strict = crate::mysql::assign::is_strict(run.session.as_deref());
                let fills_nulls = is_lenient || is_mysql && !is_strict && !is_single;
                if is_mysql && is_strict && !is_lenient {
                    // A column that nothing is said of comes before any value.
                    let missing = values.iter().filter(|value| value.is_call_of("implicit_default"));
                    missing.map(|value| value.eval(run)).collect::<Result<Vec<_>>>()?;
                }
                let mut rows: Pieces<Vec<Value>> = Pieces::default();
                let found = source.run(run, &mut |run| {
                    let mut row = Vec::with_capacity(values.len());
                    for (number, value) in values.iter().enumerate() {
                        let value = value.eval(run)?;
                        if is_mysql && value.is_null() && !fills_nulls && self.refuses_null(number) {
                            return Err(self.not_null(run.dialect, &self.table.columns[number].name));
                        }
                        row.push(value);
                    }
                    run.take_row(&row)?;
                    rows.push(row);
                    Ok(Flow::On)
                });
                // MySQL goes from row to row: what is wrong with one is told of only if those before it could come.
                let failed = match found {
                    Err(error) if is_mysql && is_of_value(&error) => Some(error),
                    found => {
                        found?;
                        None
                    }
                };
                // Who loads many rows at once has keys that nobody else has.
                run.locks_changed &= rows.len() <= LOCKED_ROWS_MAX;
                // Of PostgreSQL's ON CONFLICT DO UPDATE: the rows that the statement has put in or changed.
                let mut own = OwnRows::default();
                for mut row in rows {
                    run.tick()?;
                    if fills_nulls {
                        self.fill_nulls(run, &mut row);
                    }
                    self.insert(run, &row, (on_conflict, &mut own), &mut counts, sink)?;
                }
                if let Some(error) = failed {
                    return Err(error);
                }
            }
            Change::Update { source, row, sets, implied, is_joined, passes_over, others } => {
                let mut seen: HashSet<Rc<[u8]>> = HashSet::new();
                let mut changes = Changes::default();
                let mut of_others: Vec<OtherRows> = others.iter().map(|_| OtherRows::default()).collect();
                source.run(run, &mut |run| {
                    for (other, (seen, changes)) in others.iter().zip(&mut of_others) {
                        if let Value::Document(old) = run.frame[other.row].clone()
                            && seen.insert(Rc::clone(&old))
                        {
                            let mut values = Vec::with_capacity(other.sets.len());
                            for (_, expr) in &other.sets {
                                values.push(expr.eval(run)?);
                            }
                            run.take(old.len() + 64)?;
                            changes.push((Value::Document(old), values));
                        }
                    }
                    // Nothing of an outer join is no row.
                    if run.frame[*row].is_null() {
                        return Ok(Flow::On);
                    }
                    if *is_joined
                        && let Value::Document(old) = &run.frame[*row]
                        && !seen.insert(Rc::clone(old))
                    {
                        return Ok(Flow::On);
                    }
                    let mut values = Vec::with_capacity(sets.len());
                    for (_, expr) in sets {
                        values.push(expr.eval(run)?);
                    }
                    let old = run.frame[*row].clone();
                    run.take(old.weight() + 64)?;
                    changes.push((old, values));
                    Ok(Flow::On)
                })?;
                if *passes_over {
                    self.update_each(run, (sets, *implied), &changes, &mut counts, sink)?;
                } else {
                    self.update_all(run, (sets, *implied), &changes, &mut counts, sink)?;
                }
                changes.free(run)?;
                for (other, (_, changes)) in others.iter().zip(of_others) {
                    let change =
                        Change::Delete { source: Plan::Nothing, row: 0, others: Vec::new(), passes_over: false };
                    let write = Write { table: Rc::clone(&other.table), change, returning: None };
                    let (sets, mut nowhere) = ((&other.sets[..], other.implied), |_: &mut Run<'_>| Ok(Flow::On));
                    match passes_over {
                        true => write.update_each(run, sets, &changes, &mut counts, &mut nowhere)?,
                        false => write.update_all(run, sets, &changes, &mut counts, &mut nowhere)?,
                    }
                    changes.free(run)?;
                }
            }
            Change::Delete { source, row, others, passes_over } => {
                let mut rows = Pieces::default();
                let mut seen: HashSet<(usize, Rc<[u8]>)> = HashSet::new();
                let mut of_others = Vec::new();
                source.run(run, &mut |run| {
                    let old = run.frame[*row].clone();
                    run.take(old.weight() + 48)?;
                    if others.is_empty() {
                        rows.push(old);
                        return Ok(Flow::On);
                    }
                    // A row may come several times, each time with another one.
                    if let Value::Document(row) = &old
                        && seen.insert((0, Rc::clone(row)))
                    {
                        rows.push(old);
                    }
                    for (at, (_, slot)) in others.iter().enumerate() {
                        if let Value::Document(row) = run.frame[*slot].clone()
                            && seen.insert((at + 1, Rc::clone(&row)))
                        {
                            run.take(row.len() + 48)?;
                            of_others.push((at, row));
                        }
                    }
                    Ok(Flow::On)
                })?;
                for (at, row) in &of_others {
                    run.tick()?;
                    let space = &others[*at].0.space;
                    let Some(key) = primary_key(space, row) else { continue };
                    let delete = |run: &mut Run<'_>| {
                        let delete = Operation::Delete { index_id: IndexId::PRIMARY, key: &key };
                        let done = run.database.execute(run.context, space, delete);
                        done.map_err(|error| Error::of_database(error, run.dialect))
                    };
                    let is_done = match passes_over {
                        true => unless_refused(run, delete)?.is_some(),
                        false => delete(run).map(|_| true)?,
                    };
                    counts.rows += u64::from(is_done);
                }
                for old in rows {
                    run.tick()?;
                    let Value::Document(old) = &old else { continue };
                    match passes_over {
                        true if unless_refused(run, |run| self.remove(run, old))?.is_none() => continue,
                        true => {}
                        false => self.remove(run, old)?,
                    }
                    counts.rows += 1;
                    self.give_back(run, old, sink)?;
                }
            }
        }
        Ok(counts)
    }

    fn execute(&self, run: &mut Run<'_>, operation: Operation<'_>) -> Result<Option<Tuple>> {
        run.has_changed();
        let done = run.database.execute(run.context, &self.table.space, operation);
        done.map_err(|error| Error::of_database(error, run.dialect))
    }

    pub(crate) fn remove(&self, run: &mut Run<'_>, old: &[u8]) -> Result<()> {
        let Some(key) = primary_key(&self.table.space, old) else { return Ok(()) };
        self.execute(run, Operation::Delete { index_id: IndexId::PRIMARY, key: &key }).map(drop)
    }

    /// Makes a row another one of the same key.
    fn update(&self, run: &mut Run<'_>, old: &[u8], new: &[u8]) -> Result<Option<Tuple>> {
        let Some(key) = primary_key(&self.table.space, old) else { return Ok(None) };
        let (mut before, mut after) = (Reader::new(old), Reader::new(new));
        let (old_count, new_count) = (before.read_array().unwrap_or(0), after.read_array().unwrap_or(0));
        let mut changed = Vec::new();
        for number in 0..new_count {
            let is_there = number < old_count;
            let was = if is_there { before.read_value().ok() } else { None };
            let Ok(value) = after.read_value() else { break };
            if was != Some(value) {
                changed.push((number, value));
            }
        }
        let mut ops = Vec::new();
        msgpack::encode_array(&mut ops, changed.len() as u32);
        for (number, value) in changed {
            msgpack::encode_array(&mut ops, 3);
            msgpack::encode_str(&mut ops, b"=");
            msgpack::encode_uint(&mut ops, u64::from(number));
            ops.extend_from_slice(value);
        }
        self.execute(run, Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 })
    }

    fn check_nulls(&self, run: &Run<'_>, row: &[Value]) -> Result<()> {
        for (number, (column, value)) in self.table.columns.iter().zip(row).enumerate() {
            if value.is_null() && self.refuses_null(number) {
                return Err(self.not_null(run.dialect, &column.name));
            }
        }
        Ok(())
    }

    /// True for a column that may not be null, and that no sequence fills.
    fn refuses_null(&self, number: usize) -> bool {
        let column = &self.table.columns[number];
        let is_filled = column.generated.is_some() || self.table.generated.is_some_and(|(field, _)| field == number);
        !self.table.columns[number].is_nullable && !is_filled
    }

    /// What is null and may not be is what the column has where nothing is said, and a warning tells.
    fn fill_nulls(&self, run: &Run<'_>, row: &mut [Value]) {
        for (number, (column, value)) in self.table.columns.iter().zip(row).enumerate() {
            if value.is_null() && self.refuses_null(number) {
                *value = self.instead_of_null(run, column);
            }
        }
    }

    fn instead_of_null(&self, run: &Run<'_>, column: &crate::table::Column) -> Value {
        let what = self.not_null(run.dialect, &column.name).to_string();
        crate::mysql::assign::warn(run.session.as_deref(), Condition::NotNull, what);
        crate::mysql::assign::implicit_of(column)
    }

    fn not_null(&self, dialect: Dialect, column: &str) -> Error {
        let table = &self.table.name;
        let error = Error::new(
            Condition::NotNull,
            match dialect {
                Dialect::Tarantool => format!("NOT NULL constraint failed: {table}.{column}"),
                Dialect::Mysql => format!("Column '{column}' cannot be null"),
                Dialect::Postgres => {
                    format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint")
                }
            },
        );
        error.about(&self.table.full, Some(column), None)
    }

    pub(crate) fn insert(
        &self,
        run: &mut Run<'_>,
        row: &[Value],
        (on_conflict, own): (&OnConflict, &mut OwnRows),
        counts: &mut Counts,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let owned;
        let mut row = row;
        let is_lenient = on_conflict.is_lenient(run.dialect);
        if let Err(error) = self.check_nulls(run, row) {
            return match on_conflict {
                OnConflict::Ignore(None) if run.dialect == Dialect::Tarantool => Ok(()),
                _ => Err(error),
            };
        }
        if run.dialect == Dialect::Mysql
            && let Some((field, _)) = self.table.generated
            && matches!(row.get(field), Some(Value::Int(0)))
        {
            // 0 asks for a number, as null does.
            let mut asking = row.to_vec();
            asking[field] = Value::Null;
            owned = asking;
            row = &owned;
        }
        if run.locks_changed {
            self.lock_new(run, row)?;
        }
        let mut bytes = Vec::new();
        encode_row(row, &mut bytes);
        let with_generated: Vec<Value>;
        if self.table.has_generated() && !matches!(on_conflict, OnConflict::Refuse) {
            // Keys may be among what is computed.
            let filled = run.database.fill_generated(run.context, &self.table.space, &bytes);
            if let Some(filled) = filled.map_err(|error| Error::of_database(error, run.dialect))? {
                let value = |at: usize| tuple::field(&filled, at as u32).map_or(Value::Null, Value::decode);
                with_generated = (0..row.len()).map(value).collect();
                row = &with_generated;
            }
        }
        let mut replaced = 0;
        match on_conflict {
            OnConflict::Refuse => {}
            OnConflict::Ignore(index_id) => {
                if self.conflicting(run, row, *index_id)?.is_some() {
                    if run.dialect == Dialect::Mysql {
                        let what = format!("Duplicate entry for table '{}'", self.table.name);
                        crate::mysql::assign::warn(run.session.as_deref(), Condition::UniqueViolation, what);
                    }
                    return Ok(());
                }
            }
            OnConflict::Replace => {
                while let Some(old) = self.conflicting(run, row, None)? {
                    self.remove(run, old.data())?;
                    replaced += 1;
                }
            }
            OnConflict::Update(changed) => {
                if let Some(old) = self.conflicting(run, row, changed.index_id)? {
                    let counts_own = run.dialect == Dialect::Postgres;
                    let key = primary_key(&self.table.space, old.data()).filter(|_| counts_own);
                    if key.as_ref().is_some_and(|key| own.contains(key)) {
                        return Err(refuse_second_update());
                    }
                    let new = self.change(run, changed, &old, row, counts, sink)?;
                    let becomes = new.and_then(|new| primary_key(&self.table.space, &new));
                    if let (Some(key), Some(becomes)) = (key, becomes) {
                        run.take(key.len() + becomes.len() + 128)?;
                        own.extend([key, becomes]);
                    }
                    return Ok(());
                }
            }
        }
        let insert = |run: &mut Run<'_>| self.execute(run, Operation::Insert { tuple: &bytes });
        let written = match is_lenient && self.table.space.has_constraints() {
            true => match unless_refused(run, insert)? {
                Some(written) => written,
                None => return Ok(()),
            },
            false => insert(run)?,
        };
        counts.rows += 1;
        // Tarantool and MySQL count the row that has left as well.
        counts.rows += if run.dialect == Dialect::Postgres { 0 } else { replaced };
        let Some(written) = written else { return Ok(()) };
        if run.dialect == Dialect::Postgres
            && matches!(on_conflict, OnConflict::Update(_))
            && let Some(key) = primary_key(&self.table.space, written.data())
        {
            run.take(key.len() + 64)?;
            own.insert(key);
        }
        if let Some((field, _)) = self.table.generated
            && !self.table.columns[field].is_hidden
            && let Some(Value::Int(number)) = written.field(field as u32).map(Value::decode)
        {
            let is_given = row.get(field).is_some_and(Value::is_null);
            match is_given {
                true if counts.generated.len() < GENERATED_MAX => counts.generated.push(number),
                true => {}
                false => counts.brought = Some(number),
            }
        }
        self.give_back(run, written.data(), sink)
    }

    /// Waits for others who are about to put in a row of the same key, and keeps them waiting.
    fn lock_new(&self, run: &Run<'_>, row: &[Value]) -> Result<()> {
        let key: Vec<Value> = self.table.primary_key().iter().map(|(field, ..)| row[*field].clone()).collect();
        if let Some(parts) = encode_key(&self.table.space, IndexId::PRIMARY, &key) {
            let key = Key { parts: &parts, part_count: key.len() as u32 };
            run.database.lock_for_insert(run.context, &self.table.space, key, run.lock_timeout_ns)?;
        }
        Ok(())
    }

    /// The row that has a key of this one, by one unique index or by any.
    fn conflicting(&self, run: &Run<'_>, row: &[Value], index_id: Option<IndexId>) -> Result<Option<Tuple>> {
        for index in
            self.table.indexes.iter().filter(|index| index.is_unique && index_id.is_none_or(|id| id == index.id))
        {
            let values: Vec<Value> = index.parts.iter().map(|(field, ..)| row[*field].clone()).collect();
            let Some(parts) = encode_key(&self.table.space, index.id, &values) else { continue };
            let key = Key { parts: &parts, part_count: values.len() as u32 };
            if let Some(old) = run.database.get(run.context, &self.table.space, index.id, key)? {
                return Ok(Some(old));
            }
        }
        Ok(None)
    }

    /// ON CONFLICT DO UPDATE, ON DUPLICATE KEY UPDATE. Returns the row as it becomes; none: it stays as it is.
    fn change(
        &self,
        run: &mut Run<'_>,
        changed: &Changed,
        old: &Tuple,
        row: &[Value],
        counts: &mut Counts,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Vec<u8>>> {
        fill(run, &changed.fields, old.data());
        for (field, slot) in &changed.new_fields {
            run.frame[*slot] = row[*field as usize].clone();
        }
        if let Some(filter) = &changed.filter
            && !filter.is_true(run)?
        {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(changed.sets.len());
        for (_, expr) in &changed.sets {
            values.push(expr.eval(run)?);
        }
        let number = self.table.generated.and_then(|(field, _)| old.field(field as u32)).map(Value::decode);
        let new = updated(old.data(), &changed.sets, &values);
        let old = Value::Document(old.data().into());
        let before = counts.rows;
        self.update_all(run, (&changed.sets, changed.implied), &Pieces::of((old, values)), counts, sink)?;
        // MySQL counts a row twice that was there and is another one now.
        counts.rows += u64::from(run.dialect == Dialect::Mysql && counts.rows > before);
        if counts.rows > before
            && let Some(Value::Int(number)) = number
        {
            counts.brought = Some(number);
        }
        Ok(Some(new))
    }

    pub(crate) fn update_all(
        &self,
        run: &mut Run<'_>,
        (sets, implied): (&[(usize, Expr)], usize),
        changes: &Changes,
        counts: &mut Counts,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let key = self.table.primary_key();
        let moves = sets.iter().any(|(number, _)| key.iter().any(|(field, ..)| field == number));
        // Who may update, and no more, may not put in a row in place of another one.
        let may = |right: u32| run.database.check_space_access(run.context, &self.table.space, right).is_ok();
        let may_replace = may(Privileges::WRITE) || !may(Privileges::UPDATE);
        // Rows that get another key leave before any comes, so that they can exchange keys.
        let mut moved = Vec::new();
        let fills_nulls = run.dialect == Dialect::Mysql && !crate::mysql::assign::is_strict(run.session.as_deref());
        let mut filled: Vec<Value>;
        for (old, values) in changes.iter() {
            run.tick()?;
            let Value::Document(old) = old else { continue };
            let mut values = values;
            for (at, (number, _)) in sets.iter().enumerate() {
                let column = &self.table.columns[*number];
                if !values[at].is_null() || column.is_nullable {
                    continue;
                }
                if !fills_nulls {
                    return Err(self.not_null(run.dialect, &column.name));
                }
                filled = values.clone();
                filled[at] = self.instead_of_null(run, column);
                values = &filled;
            }
            counts.matched += 1;
            let said = sets.len() - implied;
            // MySQL counts and writes the rows that get other values.
            if run.dialect == Dialect::Mysql && is_same_row(old, &updated(old, &sets[..said], &values[..said])) {
                continue;
            }
            let new = updated(old, sets, values);
            counts.rows += 1;
            if moves && primary_key(&self.table.space, old) != primary_key(&self.table.space, &new) {
                run.database.while_moving(run.context, || self.remove(run, old))?;
                moved.push((old, new));
                continue;
            }
            let written = match may_replace {
                true => self.execute(run, Operation::Replace { tuple: &new })?,
                false => self.update(run, old, &new)?,
            };
            self.give_back(run, written.as_ref().map_or(&new, Tuple::data), sink)?;
        }
        for (old, new) in moved {
            run.tick()?;
            let written = self.execute(run, Operation::Insert { tuple: &new })?;
            if let Some(written) = written.as_ref().filter(|_| self.table.space.has_constraints()) {
                let moved = run.database.moved(run.context, &self.table.space, old, written);
                moved.map_err(|error| Error::of_database(error, run.dialect))?;
            }
            self.give_back(run, written.as_ref().map_or(&new, Tuple::data), sink)?;
        }
        Ok(())
    }

    /// Changes one row after the other: those that would break a rule stay as they are, and a warning tells.
    fn update_each(
        &self,
        run: &mut Run<'_>,
        (sets, implied): (&[(usize, Expr)], usize),
        changes: &Changes,
        counts: &mut Counts,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        for (old, values) in changes.iter() {
            let mut values = values.clone();
            for ((number, _), value) in sets.iter().zip(&mut values) {
                let column = &self.table.columns[*number];
                if run.dialect == Dialect::Mysql && value.is_null() && !column.is_nullable {
                    *value = self.instead_of_null(run, column);
                }
            }
            let change = Pieces::of((old.clone(), values));
            let mut done = Counts::default();
            let outcome = unless_refused(run, |run| self.update_all(run, (sets, implied), &change, &mut done, sink))?;
            counts.matched += done.matched;
            counts.rows += outcome.map_or(0, |()| done.rows);
        }
        Ok(())
    }

    /// Hands on what RETURNING asks for.
    fn give_back(&self, run: &mut Run<'_>, row: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        let Some(returning) = &self.returning else { return Ok(()) };
        fill(run, &returning.fields, row);
        for (slot, expr) in &returning.columns {
            run.frame[*slot] = expr.eval(run)?;
        }
        sink(run).map(drop)
    }
}

fn refuse_second_update() -> Error {
    let what = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
    Error::new(Condition::Cardinality, what).hint(hint)
}

fn fill(run: &mut Run<'_>, fields: &[(u32, Slot)], row: &[u8]) {
    for (field, slot) in fields {
        run.frame[*slot] = tuple::field(row, *field).map_or(Value::Null, Value::decode);
    }
}

/// The row with other values in some columns.
fn updated(old: &[u8], sets: &[(usize, Expr)], values: &[Value]) -> Vec<u8> {
    let mut reader = Reader::new(old);
    let count = reader.read_array().unwrap_or(0) as usize;
    let length = sets.iter().map(|(number, _)| number + 1).max().unwrap_or(0).max(count);
    let mut new = Vec::with_capacity(old.len() + 16);
    msgpack::encode_array(&mut new, length as u32);
    for number in 0..length {
        let field = if number < count { reader.read_value().ok() } else { None };
        // The last counts that sets it.
        match sets.iter().rposition(|(set, _)| *set == number) {
            Some(at) => values[at].encode(&mut new),
            None => match field {
                Some(bytes) => new.extend_from_slice(bytes),
                None => msgpack::encode_nil(&mut new),
            },
        }
    }
    new
}

/// True for rows of the same values; what an older row has no field for is null.
fn is_same_row(old: &[u8], new: &[u8]) -> bool {
    let (mut before, mut after) = (Reader::new(old), Reader::new(new));
    let (old_count, new_count) = (before.read_array().unwrap_or(0), after.read_array().unwrap_or(0));
    let mut fields = (0..new_count).map(|number| {
        let was = if number < old_count { before.read_value().ok() } else { Some([0xc0].as_slice()) };
        was == after.read_value().ok()
    });
    old[..] == new[..] || old_count < new_count && fields.all(|is_same| is_same)
}

/// True for an error that says which rule a row would break.
/// Does something to one row of a statement that passes over what would break a rule. None: it would, and a warning tells. Errors: others.
fn unless_refused<'a, T>(run: &mut Run<'a>, work: impl FnOnce(&mut Run<'a>) -> Result<T>) -> Result<Option<T>> {
    let (database, context, dialect) = (run.database, run.context, run.dialect);
    let savepoint = database.savepoint(context, None)?;
    let outcome = database.as_one_statement(context, || work(run)).map_err(|error| error.in_words_of(dialect));
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if breaks_a_rule(&error) && context.is_in_txn() => {
            database.rollback_to_savepoint(context, &savepoint)?;
            crate::mysql::assign::warn_of(run.session.as_deref(), &error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// True for what is wrong with a value on its way into a column.
fn is_of_value(error: &Error) -> bool {
    use Condition as C;
    matches!(
        error.condition(),
        C::NotNull
            | C::NoDefault
            | C::TypeMismatch
            | C::InvalidText
            | C::InvalidDatetime
            | C::NumericOutOfRange
            | C::ResultOutOfRange
            | C::DivisionByZero
            | C::TooLong
            | C::Truncated
    )
}

fn breaks_a_rule(error: &Error) -> bool {
    use Condition as C;
    matches!(
        error.condition(),
        C::UniqueViolation | C::NotNull | C::CheckViolation | C::ForeignKeyViolation | C::DependentObjects
    )
}

/// True if a statement that was alone in its transaction may be tried again.
pub(crate) fn may_try_again(error: &Error) -> bool {
    error.body().source.as_ref().is_some_and(|source| source.is(ErrorCode::TransactionConflict))
}
