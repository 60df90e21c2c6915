//! ALTER TABLE that gives rows another shape: columns that come, go, move or change their type.
//!
//! One transaction reads all rows, empties the table by dropping its indexes, changes its definition, makes the indexes anew and puts the
//! rows in again in their new shape. So it is there as a whole or not at all, and the table keeps its number: rights, keys that name its rows and triggers stay.
//! Nobody else has a turn between the first change and the last row, which is why there is a bound on rows ([`REWRITTEN_MAX`]). The time that a statement
//! may take ends it all the same, and everything is as before.

use crate::bind::Binder;
use crate::cast::Strictness;
use crate::ddl::{Ddl, HIDDEN_KEY, NewColumn, NewIndex, encode_index, encoded_key};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::mysql::assign::{Assigned, Choices};
use crate::run::Run;
use crate::scan::encode_row;
use crate::table::Table;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{CheckDef, FieldRef, ForeignKeyDef, INDEX_ID, Operation, SPACE_SEQUENCE_ID};
use sqlparser::ast;
use std::rc::Rc;
use storage::{IteratorKind, Key, ScanRequest};
use tuple::IndexId;
use tuple::msgpack;

/// Rows of a table whose shape is changed.
pub const REWRITTEN_MAX: usize = 200_000;

/// Rows between two looks at the clock.
const ROWS_PER_LOOK: usize = 256;

/// Where the values of a column come from.
pub(crate) enum Source {
    /// A column as it is.
    Old(usize),
    /// An expression over the columns that there are, as text, in the type of the new column; and which column that was before.
    Expression(Option<String>, Option<usize>),
    /// The number of the row, from 1.
    Number,
}

/// A table as it is to be.
pub(crate) struct Shape {
    pub(crate) columns: Vec<NewColumn>,
    /// The columns in the format; none: as the column says.
    pub(crate) formats: Vec<Option<Vec<u8>>>,
    pub(crate) sources: Vec<Source>,
    pub(crate) indexes: Vec<(u64, NewIndex)>,
    pub(crate) checks: Vec<CheckDef>,
    pub(crate) keys: Vec<ForeignKeyDef>,
    /// The column that a sequence fills.
    pub(crate) generated: Option<usize>,
}

impl Ddl<'_> {
    /// A table as it is.
    pub(crate) fn shape_of(&self, table: &Table) -> Result<Shape> {
        let row = self.space_row(table.space.id)?;
        let mut formats = Vec::new();
        if let Some(format) = row.get(6) {
            let mut reader = msgpack::Reader::new(format);
            for _ in 0..reader.read_array().unwrap_or(0) {
                formats.push(reader.read_value().ok().map(<[u8]>::to_vec));
            }
        }
        let columns = self.columns_of(table);
        formats.resize(columns.len(), None);
        let def = table.space.def();
        let indexes = table.indexes.iter().map(|index| {
            let fields = index.parts.iter().map(|(field, ..)| *field).collect();
            (u64::from(index.id.0), NewIndex { name: index.name.clone(), is_unique: index.is_unique, fields })
        });
        Ok(Shape {
            sources: (0..columns.len()).map(Source::Old).collect(),
            formats,
            indexes: indexes.collect(),
            checks: def.checks.clone(),
            keys: def.foreign_keys.clone(),
            generated: table.generated.map(|(field, _)| field),
            columns,
        })
    }

    /// Removes a column, with the indexes and constraints that speak of it.
    pub(crate) fn remove_column(&self, table: &Table, shape: &mut Shape, at: usize) -> Result<()> {
        let name = shape.columns[at].name.clone();
        let is_named = self.children_of(table).iter().any(|(_, key)| {
            let fields = &table.space.def().fields;
            key.pairs.iter().any(|(_, foreign)| foreign.resolve(fields) == Some(at as u32))
        });
        if is_named {
            let what = format!("cannot drop column {name} of table {} because other objects depend on it", table.name);
            return Err(Error::new(Condition::DependentObjects, what).mysql(1829));
        }
        let is_primary = shape.indexes.iter().any(|(id, index)| *id == 0 && index.fields.contains(&at));
        let is_whole = shape.indexes.iter().any(|(id, index)| *id == 0 && index.fields == [at]);
        if is_primary && (self.dialect == Dialect::Postgres || self.dialect == Dialect::Mysql && is_whole) {
            if shape.generated == Some(at) {
                shape.generated = None;
            }
            self.hide_primary(table, shape)?;
        } else if is_primary && self.dialect != Dialect::Mysql {
            let what = format!("cannot drop column \"{name}\": it is a part of the primary key of \"{}\"", table.name);
            return Err(Error::new(Condition::InvalidTable, what).hint("Drop the primary key first."));
        }
        // Columns that are computed of it: PostgreSQL's CASCADE has removed them before.
        if !self.generated_of(table, at).is_empty() {
            return Err(match self.dialect {
                Dialect::Mysql => {
                    let what = format!("Column '{name}' has a generated column dependency.");
                    Error::new(Condition::DependentObjects, what).mysql(3108)
                }
                _ => {
                    let what =
                        format!("cannot drop column {name} of table {} because other objects depend on it", table.name);
                    Error::new(Condition::DependentObjects, what)
                        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
                }
            });
        }
        let fields = table.space.def().fields.clone();
        shape.keys.retain(|key| !key.pairs.iter().any(|(local, _)| local.resolve(&fields) == Some(at as u32)));
        let mut kept = Vec::new();
        for check in shape.checks.drain(..) {
            if !self.speaks_of(table, &check, at) {
                kept.push(check);
            } else if self.dialect == Dialect::Mysql {
                let what = format!(
                    "Check constraint '{}' uses column '{name}', hence column cannot be dropped or renamed.",
                    check.name
                );
                return Err(Error::new(Condition::DependentObjects, what).mysql(3959));
            }
        }
        shape.checks = kept;
        match self.dialect {
            // The others stay, as far as they have columns.
            Dialect::Mysql => {
                shape.indexes.iter_mut().for_each(|(_, index)| index.fields.retain(|field| *field != at));
                shape.indexes.retain(|(_, index)| !index.fields.is_empty());
            }
            _ => shape.indexes.retain(|(_, index)| !index.fields.contains(&at)),
        }
        if shape.generated == Some(at) {
            shape.generated = None;
        }
        shape.columns.remove(at);
        shape.formats.remove(at);
        shape.sources.remove(at);
        let moved = |field: usize| if field > at { field - 1 } else { field };
        renumber(shape, moved);
        Ok(())
    }

    /// The generated columns that are computed of a column.
    pub(crate) fn generated_of(&self, table: &Table, at: usize) -> Vec<usize> {
        let Ok(known) = Table::of(self.database, Rc::clone(&table.space)).map(Rc::new) else { return Vec::new() };
        let reads = |number: &usize| {
            let Some(generated) = known.columns.get(*number).and_then(|column| column.generated.as_ref()) else {
                return false;
            };
            let (dialect, text) = generated.text();
            let bound = Binder::new(self.database, dialect).bind_generated(&known, *number, text);
            bound.is_ok_and(|(_, fields)| fields.iter().any(|(field, _)| *field as usize == at))
        };
        (0..known.columns.len()).filter(reads).collect()
    }

    /// True if a check reads a column.
    fn speaks_of(&self, table: &Table, check: &CheckDef, at: usize) -> bool {
        if check.field.is_some() {
            return check.field == Some(at as u32);
        }
        let Some(function) = self.database.catalog.function(check.function_id) else { return false };
        let (dialect, text) = crate::condition::text_of(&function.body);
        let Ok(table) = Table::of(self.database, Rc::clone(&table.space)) else { return false };
        let binder = Binder::new(self.database, dialect);
        let bound = binder.bind_check(&Rc::new(table), text, None);
        bound.is_ok_and(|(_, fields)| fields.iter().any(|(field, _)| *field as usize == at))
    }

    /// True if a column is a part of a foreign key of its table, or of one that names it.
    pub(crate) fn is_in_foreign_key(&self, table: &Table, at: usize) -> bool {
        let is_it = |field: &FieldRef| matches!(field, FieldRef::Number(number) if *number as usize == at);
        let own = table.space.def();
        own.foreign_keys.iter().any(|key| {
            key.pairs.iter().any(|(child, parent)| is_it(child) || key.space == table.space.id && is_it(parent))
        }) || self.children_of(table).iter().any(|(_, key)| key.pairs.iter().any(|(_, parent)| is_it(parent)))
    }

    /// Foreign keys of other tables that name rows of this one.
    pub(crate) fn children_of(&self, table: &Table) -> Vec<(Rc<database::Space>, ForeignKeyDef)> {
        let spaces = self.database.catalog.spaces();
        let others = spaces.into_iter().filter(|space| space.id != table.space.id);
        let keys = others.flat_map(|space| {
            let keys = space.def().foreign_keys.clone();
            keys.into_iter().filter(|key| key.space == table.space.id).map(move |key| (Rc::clone(&space), key))
        });
        keys.collect()
    }

    /// Puts a column at a place: at the end if `at` is none.
    pub(crate) fn place_column(
        &self,
        table: &Table,
        shape: &mut Shape,
        position: Option<&ast::MySQLColumnPosition>,
        moved: Option<usize>,
        column: NewColumn,
        source: Source,
    ) -> Result<usize> {
        let to = match position {
            None if moved.is_some() => moved.unwrap_or_default(),
            // The hidden key stays where it is: nobody counts it.
            None => shape.columns.len(),
            Some(ast::MySQLColumnPosition::First) => 0,
            Some(ast::MySQLColumnPosition::After(name)) => {
                let name = self.dialect.fold(name);
                let found = shape.columns.iter().position(|known| known.is_named(self.dialect, &name));
                let at = found.ok_or_else(|| {
                    let what = format!("Unknown column '{name}' in '{}'", table.name);
                    Error::new(Condition::UndefinedColumn, what)
                })?;
                // Behind it, and without the column that moves.
                at + 1 - usize::from(moved.is_some_and(|moved| moved <= at))
            }
        };
        if let Some(from) = moved {
            shape.columns.remove(from);
            shape.formats.remove(from);
            shape.sources.remove(from);
        }
        shape.columns.insert(to, column);
        shape.formats.insert(to, None);
        shape.sources.insert(to, source);
        renumber(shape, |field| match moved {
            Some(from) if field == from => to,
            Some(from) => {
                let without = if field > from { field - 1 } else { field };
                if without >= to { without + 1 } else { without }
            }
            None if field >= to => field + 1,
            None => field,
        });
        Ok(to)
    }

    /// The key that nobody sees takes the place of the primary key.
    pub(crate) fn hide_primary(&self, table: &Table, shape: &mut Shape) -> Result<()> {
        if shape.generated.is_some() {
            let what = "Incorrect table definition; there can be only one auto column and it must be defined as a key";
            return Err(Error::new(Condition::InvalidTable, what).mysql(1075));
        }
        let primary = table.indexes.iter().find(|index| index.id == IndexId::PRIMARY);
        if primary.is_some_and(|primary| !self.keys_by_index(table, primary).is_empty()) {
            let what = format!("cannot drop the primary key of {} because other objects depend on it", table.name);
            return Err(Error::new(Condition::DependentObjects, what).mysql(1553));
        }
        // One that is left from before serves again.
        let left = shape.columns.iter().position(|column| column.is_hidden && column.generated.is_none());
        let field = left.unwrap_or(shape.columns.len());
        if left.is_none() {
            shape.columns.push(NewColumn::hidden_key());
            shape.formats.push(None);
            shape.sources.push(Source::Number);
        }
        shape.columns[field].is_nullable = false;
        shape.formats[field] = None;
        shape.sources[field] = Source::Number;
        if let Some((_, primary)) = shape.indexes.iter_mut().find(|(id, _)| *id == 0) {
            primary.fields = vec![field];
            primary.name = HIDDEN_KEY.to_string();
        }
        shape.generated = Some(field);
        Ok(())
    }

    /// Gives a table another shape, as a whole or not at all. Errors: values that do not fit; too many rows.
    pub(crate) fn reshape(&self, table: &Table, shape: Shape) -> Result<()> {
        self.at_once(|| self.reshape_in_txn(table, shape))
    }

    fn reshape_in_txn(&self, table: &Table, mut shape: Shape) -> Result<()> {
        let id = u64::from(table.space.id.0);
        for (at, column) in shape.columns.iter_mut().enumerate() {
            let is_key = shape.indexes.iter().any(|(id, index)| *id == 0 && index.fields.contains(&at));
            column.is_nullable &= !is_key;
        }
        let rows = self.rows_in_shape(table, &shape)?;
        let before = table.space.def();
        let link = table.space.sequence.borrow().as_ref().map(|link| (link.sequence.def().id, link.is_generated));
        let sources = &shape.sources;
        let follow = |key: &mut ForeignKeyDef| {
            // Keys name columns by their numbers.
            for (_, foreign) in &mut key.pairs {
                if let FieldRef::Number(number) = foreign {
                    let old = *number as usize;
                    let is_it = |source: &Source| matches!(source, Source::Old(field) | Source::Expression(_, Some(field)) if *field == old);
                    *number = sources.iter().position(is_it).unwrap_or(old) as u32;
                }
            }
        };
        let mut own_keys = shape.keys.clone();
        own_keys.iter_mut().filter(|key| key.space == table.space.id).for_each(follow);
        let children = self.children_of(table);
        let work = || -> Result<()> {
            if link.is_some() {
                self.delete(SPACE_SEQUENCE_ID, &[id])?;
            }
            for index in table.indexes.iter().rev() {
                self.delete(INDEX_ID, &[id, u64::from(index.id.0)])?;
            }
            for (at, (child, _)) in children.iter().enumerate() {
                // Each once, however many keys it has.
                if children[..at].iter().any(|(other, _)| other.id == child.id) {
                    continue;
                }
                let def = child.def();
                let mut keys = def.foreign_keys.clone();
                keys.iter_mut().filter(|key| key.space == table.space.id).for_each(follow);
                if keys != def.foreign_keys {
                    self.put_options(child, &def.checks, &keys)?;
                }
            }
            let mut row = self.space_row(table.space.id)?;
            row[5] = self.options_with(&table.space, &shape.checks, &own_keys)?;
            let mut format = Vec::new();
            msgpack::encode_array(&mut format, shape.columns.len() as u32);
            for (column, raw) in shape.columns.iter().zip(&shape.formats) {
                match raw {
                    Some(raw) => format.extend_from_slice(raw),
                    None => self.encode_column(column, &mut format),
                }
            }
            row[6] = format;
            row[4] = Vec::new();
            msgpack::encode_uint(&mut row[4], 0);
            self.put_space_row(&row)?;
            for (number, index) in &shape.indexes {
                let row = encode_index(id, *number, &index.name, index, &shape.columns);
                self.execute(INDEX_ID, Operation::Insert { tuple: &row })?;
            }
            for (number, row) in rows.iter().enumerate() {
                self.check_time(number)?;
                let put = self.database.execute(self.context, &table.space, Operation::Insert { tuple: row });
                put.map_err(|error| Error::of_database(error, self.dialect))?;
            }
            let drop_own = |sequence: u32| {
                self.as_admin(|| {
                    self.delete(database::SEQUENCE_DATA_ID, &[u64::from(sequence)])?;
                    self.delete(database::SEQUENCE_ID, &[u64::from(sequence)])
                })
            };
            let was_seen = table.generated.is_some_and(|(field, _)| !table.columns[field].is_hidden);
            let mut link = link;
            if let (Some((sequence, true)), Some(field)) = (link, shape.generated)
                && was_seen
                && shape.columns[field].is_hidden
            {
                // That of a column which has gone is not the one of the key in its place.
                drop_own(sequence)?;
                link = None;
            }
            match (link, shape.generated) {
                (Some((sequence, is_own)), Some(field)) => self.put_link(id, sequence, is_own, field),
                (Some((sequence, true)), None) => drop_own(sequence),
                (None, Some(field)) => {
                    let name = format!("{}_{}_seq", table.full, shape.columns[field].name);
                    let name = self.full_name(&name, table.space.def().is_session);
                    self.put_sequence(id, &name, field, rows.len() as u64 + 1)
                }
                _ => Ok(()),
            }
        };
        let runs_triggers = table.space.runs_triggers.replace(false);
        let skipped = self.context.skip_foreign_keys(true);
        let done = work();
        self.context.skip_foreign_keys(skipped);
        table.space.runs_triggers.set(runs_triggers);
        done?;
        self.drop_functions(&before.checks)
    }

    /// Looks at the clock at some of the rows. Errors: `Cancelled` if the statement has taken longer than it may.
    fn check_time(&self, number: usize) -> Result<()> {
        match number.is_multiple_of(ROWS_PER_LOOK) && self.context.is_out_of_time() {
            true => Err(Error::new(Condition::Cancelled, "canceling statement due to statement timeout")),
            false => Ok(()),
        }
    }

    /// All rows of a table as they are to be, encoded.
    fn rows_in_shape(&self, table: &Table, shape: &Shape) -> Result<Vec<Vec<u8>>> {
        let known = Rc::new(Table::of(self.database, Rc::clone(&table.space))?);
        let binder = Binder::new(self.database, self.dialect);
        let mut exprs: Vec<Option<Expr>> = Vec::new();
        let mut fields = Vec::new();
        for (column, source) in shape.columns.iter().zip(&shape.sources) {
            exprs.push(match source {
                Source::Expression(Some(text), old) => {
                    let is_mysql = self.dialect == Dialect::Mysql && old.is_some();
                    let was_choice = old
                        .and_then(|old| known.columns[old].raw_declared.as_deref().and_then(Choices::of))
                        .is_some_and(|choices| !choices.is_set());
                    let was_float = old.is_some_and(|old| known.columns[old].ty.is_float());
                    let to = match is_mysql {
                        // Text of a number of four bytes has the digits that it is shown with.
                        true if was_float && column.ty.base == Base::Text => Type::TEXT,
                        // The number of a time has its digits.
                        true if old.is_some_and(|old| known.columns[old].ty.base == Base::Time)
                            && column.ty.is_number() =>
                        {
                            Type::of(Base::Double)
                        }
                        true => Type::of(Base::Any),
                        false => column.ty,
                    };
                    // What is too long for PostgreSQL's new type is refused as in a row that comes, and not cut.
                    let strictness = match self.dialect {
                        Dialect::Postgres => Strictness::Assignment,
                        _ => Strictness::Explicit,
                    };
                    let (expr, read) = binder.bind_value(&known, text, to, strictness)?;
                    fields.extend(read);
                    Some(match is_mysql {
                        false => expr,
                        // Values that the new type does not hold are refused as any others.
                        true => Expr::Assigned(Box::new(Assigned {
                            column: column.name.clone(),
                            to: column.ty,
                            choices: Choices::of(&column.declared),
                            is_choice: was_choice,
                            refuses_null: false,
                            computed_in: None,
                            is_lenient: false,
                            value: expr,
                        })),
                    })
                }
                _ => None,
            });
        }
        let mut run = Run::new(self.database, self.context, self.dialect, &[], binder.sizes());
        let all = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
        let found = self.database.select_tuples(
            self.context,
            &table.space,
            &ScanRequest { limit: REWRITTEN_MAX as u64 + 1, ..all },
        )?;
        if found.len() > REWRITTEN_MAX {
            let what = format!("a table of more than {REWRITTEN_MAX} rows cannot be given another shape in place");
            let hint = "Make another table, copy the rows in steps, and rename both.";
            return Err(Error::new(Condition::LimitExceeded, what).hint(hint));
        }
        let mut rows = Vec::with_capacity(found.len());
        for (number, row) in found.iter().enumerate() {
            self.check_time(number)?;
            for (field, slot) in &fields {
                run.frame[*slot] = row.field(*field).map_or(Value::Null, Value::decode);
            }
            let mut values = Vec::with_capacity(shape.columns.len());
            for ((column, source), expr) in shape.columns.iter().zip(&shape.sources).zip(&exprs) {
                let value = match (source, expr) {
                    (Source::Old(field), _) => row.field(*field as u32).map_or(Value::Null, Value::decode),
                    (Source::Number, _) => Value::Int(number as i64 + 1),
                    (Source::Expression(..), Some(expr)) => expr.eval(&mut run)?,
                    (Source::Expression(..), None) => Value::Null,
                };
                // What is computed comes when the row is put in.
                if value.is_null() && !column.is_nullable && column.generated.is_none() {
                    let what = match self.dialect {
                        Dialect::Mysql => format!("Invalid use of NULL value: column '{}'", column.name),
                        _ => format!("column \"{}\" of relation \"{}\" contains null values", column.name, table.name),
                    };
                    let error = Error::new(Condition::NotNull, what).mysql(1138);
                    return Err(error.about(&table.full, Some(&column.name), None));
                }
                values.push(value);
            }
            let mut bytes = Vec::new();
            encode_row(&values, &mut bytes);
            run.take(bytes.len() + 32)?;
            rows.push(bytes);
        }
        Ok(rows)
    }

    fn put_link(&self, space_id: u64, sequence: u32, is_own: bool, field: usize) -> Result<()> {
        let mut link = Vec::new();
        msgpack::encode_array(&mut link, 5);
        msgpack::encode_uint(&mut link, space_id);
        msgpack::encode_uint(&mut link, u64::from(sequence));
        msgpack::encode_bool(&mut link, is_own);
        msgpack::encode_uint(&mut link, field as u64);
        msgpack::encode_str(&mut link, b"");
        self.execute(SPACE_SEQUENCE_ID, Operation::Insert { tuple: &link })
    }

    /// Gives an index another name.
    pub(crate) fn rename_index(&self, table: &Table, old: &str, new: &str) -> Result<bool> {
        let Some(index) = table.indexes.iter().find(|index| self.dialect.is_same(&index.name, old)) else {
            return Ok(false);
        };
        let key = encoded_key(&[u64::from(table.space.id.0), u64::from(index.id.0)]);
        let mut ops = Vec::new();
        msgpack::encode_array(&mut ops, 1);
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, b"=");
        msgpack::encode_uint(&mut ops, 2);
        msgpack::encode_str(&mut ops, new.as_bytes());
        let update = Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 };
        self.execute(INDEX_ID, update)?;
        self.rename_spelled(table.space.id, &index.name, new)?;
        self.rename_comments(table.space.id, &index.name, new)?;
        self.rename_unique(table.space.id, &index.name, new)?;
        Ok(true)
    }
}

/// Columns have other numbers.
fn renumber(shape: &mut Shape, moved: impl Fn(usize) -> usize) {
    for (_, index) in &mut shape.indexes {
        index.fields.iter_mut().for_each(|field| *field = moved(*field));
    }
    for key in &mut shape.keys {
        for (local, _) in &mut key.pairs {
            if let FieldRef::Number(number) = local {
                *number = moved(*number as usize) as u32;
            }
        }
        if let Some(field) = &mut key.field {
            *field = moved(*field as usize) as u32;
        }
    }
    for field in shape.checks.iter_mut().filter_map(|check| check.field.as_mut()) {
        *field = moved(*field as usize) as u32;
    }
    shape.generated = shape.generated.map(&moved);
}
