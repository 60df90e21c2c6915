//! Rows that a client loads, encoded as they come: a field of text goes straight into the row where its column allows it.
//!
//! [`Loader::of`] says no to whatever an INSERT may do besides: defaults that are computed, RETURNING, conflicts that are no errors. Those rows
//! are put in by [`Sql::load`](crate::Sql::load), one INSERT each.

use crate::bind::{Change, OnConflict, Write};
use crate::cast::{Strictness, cast};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::plan::Plan;
use crate::statement::{Prepared, Sql};
use crate::table::Table;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Context, Database, Operation, Space};
use runtime::fiber;
use std::rc::Rc;
use tuple::msgpack;

/// Time of one go.
const SLICE_NS: u64 = 1_000_000;
/// Digits of a number that surely fits 64 bits.
const DIGITS: usize = 18;

/// What a column of a row gets.
#[derive(PartialEq)]
enum Source {
    /// The field of that number.
    Field(usize),
    /// Always the same, encoded; and whether that is null.
    Constant(Vec<u8>, bool),
}

/// See the head of this file.
pub struct Loader {
    table: Rc<Table>,
    sources: Vec<Source>,
    dialect: Dialect,
    prepared: Rc<Prepared>,
}

/// Encoded rows, one behind the other.
#[derive(Default)]
pub struct LoadedRows {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl LoadedRows {
    /// Number of the rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<u32>()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let row = &self.bytes[start..*end as usize];
            start = *end as usize;
            row
        })
    }
}

impl Loader {
    /// That of an INSERT of one row of parameters. None: it does more than that.
    pub fn of(prepared: &Rc<Prepared>) -> Option<Self> {
        let write = prepared.write()?;
        let Write { table, change: Change::Insert { source, values, on_conflict, .. }, returning: None } = write else {
            return None;
        };
        if table.has_generated() {
            return None;
        }
        let (Plan::Rows(rows, slots), OnConflict::Refuse) = (source, on_conflict) else { return None };
        let [row] = rows.as_slice() else { return None };
        let mut sources = Vec::with_capacity(values.len());
        for value in values {
            sources.push(match value {
                Expr::Slot(slot) => {
                    let at = slots.iter().position(|known| known == slot)?;
                    match row.get(at)? {
                        Expr::Param(number) => Source::Field(*number),
                        // Which number a text stands for, the statement finds out.
                        Expr::Cast(to, _, _) if to.has_labels() => return None,
                        Expr::Cast(_, Strictness::Assignment, inner) => match &**inner {
                            Expr::Param(number) => Source::Field(*number),
                            _ => return None,
                        },
                        _ => return None,
                    }
                }
                Expr::Const(value) => {
                    let mut bytes = Vec::new();
                    value.encode(&mut bytes);
                    Source::Constant(bytes, value.is_null())
                }
                _ => return None,
            });
        }
        Some(Loader { table: Rc::clone(table), sources, dialect: prepared.dialect(), prepared: Rc::clone(prepared) })
    }

    /// Adds a row of fields of text; none is null. Errors: a field that its column does not take; there is no row then.
    pub fn add(&self, rows: &mut LoadedRows, fields: &[Option<&str>]) -> Result<()> {
        self.encode(rows, |number| Ok(fields.get(number).copied().flatten().map_or(Field::Null, Field::Text)))
    }

    /// Adds a row of values. Errors: as [`Loader::add`].
    pub fn add_values(&self, rows: &mut LoadedRows, values: &[Value]) -> Result<()> {
        self.encode(rows, |number| {
            Ok(match values.get(number) {
                None | Some(Value::Null) => Field::Null,
                Some(value) => Field::Value(value),
            })
        })
    }

    fn encode<'f>(&self, rows: &mut LoadedRows, field: impl Fn(usize) -> Result<Field<'f>>) -> Result<()> {
        let start = rows.bytes.len();
        let done = self.encode_at_end(&mut rows.bytes, field).and_then(|()| {
            u32::try_from(rows.bytes.len()).map_err(|_| Error::new(Condition::LimitExceeded, "too many rows at once"))
        });
        match done {
            Ok(end) => rows.ends.push(end),
            Err(error) => {
                rows.bytes.truncate(start);
                return Err(error);
            }
        }
        Ok(())
    }

    fn encode_at_end<'f>(&self, out: &mut Vec<u8>, field: impl Fn(usize) -> Result<Field<'f>>) -> Result<()> {
        msgpack::encode_array(out, self.sources.len() as u32);
        for (place, (source, column)) in self.sources.iter().zip(&self.table.columns).enumerate() {
            // A sequence fills a null.
            let is_nullable = column.is_nullable || self.table.generated.is_some_and(|(field, _)| field == place);
            let number = match source {
                Source::Field(number) => *number,
                Source::Constant(bytes, is_null) => {
                    if *is_null && !is_nullable {
                        return Err(self.null_in(&column.name));
                    }
                    out.extend_from_slice(bytes);
                    continue;
                }
            };
            match field(number)? {
                Field::Null if is_nullable => msgpack::encode_nil(out),
                Field::Null => return Err(self.null_in(&column.name)),
                Field::Text(text) => {
                    let ty = column.ty;
                    let (least, greatest) = ty.range().unwrap_or((0, -1));
                    if ty.is_integer()
                        && let Some(whole) = digits(text.as_bytes())
                        && (least..=greatest).contains(&i128::from(whole))
                    {
                        msgpack::encode_int(out, whole);
                    } else if ty.base == Base::Text && (ty.length == 0 || text.len() <= ty.length as usize) {
                        msgpack::encode_str(out, text.as_bytes());
                    } else {
                        cast(self.dialect, Value::text(text), ty, Strictness::Assignment)?.encode(out);
                    }
                }
                Field::Value(value) => {
                    cast(self.dialect, value.clone(), column.ty, Strictness::Assignment)?.encode(out)
                }
            }
        }
        Ok(())
    }

    fn null_in(&self, column: &str) -> Error {
        let table = &self.table.name;
        let what = format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
        Error::new(Condition::NotNull, what).about(table, Some(column), None)
    }

    fn space(&self) -> &Rc<Space> {
        &self.table.space
    }

    /// Goes on with the table as it is now, if the rows that were encoded are rows of it as well. Errors: `Serialization`; it is another one, or gone.
    fn renew(&mut self, database: &Database, context: &Context) -> Result<()> {
        if self.prepared.is_current(database) {
            return Ok(());
        }
        let prepared = Sql::of(database).renewed(database, context, &self.prepared)?;
        let shape = |table: &Table| -> Vec<(String, Type, bool)> {
            table.columns.iter().map(|column| (column.name.clone(), column.ty, column.is_nullable)).collect()
        };
        match Loader::of(&prepared) {
            Some(next)
                if next.table.space.id == self.table.space.id
                    && shape(&next.table) == shape(&self.table)
                    && next.table.generated == self.table.generated
                    && next.sources == self.sources =>
            {
                *self = next;
                Ok(())
            }
            _ => Err(Error::new(Condition::Serialization, "the table was changed while rows were loaded")),
        }
    }

    /// Puts rows in as a transaction of their own, without waiting. False: they have to be put in by a transaction, and nothing was done. Errors: as
    /// `Database::execute`, with the number of the row from 0 on; nothing stands then.
    pub fn put_in_alone(
        &mut self,
        database: &Database,
        context: &Context,
        rows: &LoadedRows,
    ) -> std::result::Result<bool, (usize, Error)> {
        self.renew(database, context).map_err(|error| (0, error))?;
        let Some(mut batch) = database.begin_batch(context, &[self.space()]) else { return Ok(false) };
        for (number, tuple) in rows.iter().enumerate() {
            if let Err(error) = batch.write(database, context, self.space(), Operation::Insert { tuple }) {
                batch.abandon(database);
                return Err((number, Error::of_database(error, self.dialect)));
            }
        }
        batch.commit(database, context).map_err(|error| (rows.len(), error.into()))?;
        Ok(true)
    }

    /// Puts rows into the open transaction; others have turns meanwhile. May wait. Errors: as `Loader::put_in_alone`; the transaction has to be taken back.
    pub fn put_in(
        &mut self,
        database: &Database,
        context: &Rc<Context>,
        rows: &LoadedRows,
    ) -> std::result::Result<(), (usize, Error)> {
        self.renew(database, context).map_err(|error| (0, error))?;
        let mut began = fiber::now_ns();
        for (number, tuple) in rows.iter().enumerate() {
            let done = database.execute(context, self.space(), Operation::Insert { tuple });
            done.map_err(|error| (number, Error::of_database(error, self.dialect)))?;
            if number % 16 == 0 && fiber::now_ns().saturating_sub(began) > SLICE_NS {
                database.suspend(context);
                if fiber::yield_now() == fiber::Wake::Cancelled {
                    let error = Error::new(Condition::Cancelled, "canceling statement due to user request");
                    return Err((number, error));
                }
                database.resume(context).map_err(|error| (number, error.into()))?;
                self.renew(database, context).map_err(|error| (number, error))?;
                began = fiber::now_ns();
            }
        }
        Ok(())
    }
}

/// What a row has for a column.
enum Field<'f> {
    Null,
    Text(&'f str),
    Value(&'f Value),
}

/// A number in plain digits, as long as it surely fits.
fn digits(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        all => (false, all),
    };
    if digits.is_empty() || digits.len() > DIGITS {
        return None;
    }
    let mut number = 0i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(byte - b'0');
    }
    Some(if is_negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn plain_numbers_are_read_without_a_detour_and_others_not_at_all() {
        for (text, number) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("007", Some(7)),
            ("-12", Some(-12)),
            ("999999999999999999", Some(999_999_999_999_999_999)),
            ("9999999999999999999", None),
            ("", None),
            ("-", None),
            ("+1", None),
            (" 1", None),
            ("1e3", None),
            ("--1", None),
        ] {
            assert_eq!(digits(text.as_bytes()), number, "{text}");
        }
    }
}
