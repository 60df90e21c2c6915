//! Operations as they come: what can be said of them without a row.

use super::{OPERATIONS_MAX, UpdateError};
use crate::format::Format;
use crate::msgpack::{self, Kind, Reader};
use crate::path::{Lexer, Step};
use smallvec::SmallVec;
use std::cell::Cell;

/// Steps that are looked at. No row is nested as deeply, so a longer path leads nowhere, and its length costs no memory.
const STEPS_MAX: usize = msgpack::DEPTH_MAX + 1;

/// One operation.
pub(super) struct Operation<'a> {
    pub(super) code: char,
    /// Field from 0, or negative from the end.
    pub(super) field_no: Cell<i64>,
    /// The path as given, if the field was not named by a number.
    pub(super) path: Option<&'a [u8]>,
    /// The path behind the field.
    pub(super) steps: Vec<Step<'a>>,
    /// Position in the path, from 1, at which it stops being one.
    pub(super) malformed_at: Option<usize>,
    /// Number of the first byte of a string for `:`.
    pub(super) index_base: i64,
    /// Raw arguments behind the field; the first is always there.
    pub(super) arguments: [&'a [u8]; 3],
}

impl<'a> Operation<'a> {
    /// True if there is nothing behind step `at`.
    pub(super) fn ends_at(&self, at: usize) -> bool {
        at == self.steps.len() && self.malformed_at.is_none()
    }

    /// The new value of `=` and `!`.
    pub(super) fn value(&self) -> &'a [u8] {
        self.arguments[0]
    }

    /// How many fields `#` removes.
    pub(super) fn delete_count(&self) -> u32 {
        Reader::new(self.arguments[0]).read_uint().map_or(1, |count| count as u32)
    }

    /// The field as messages show it.
    pub(super) fn field_text(&self) -> String {
        match self.path {
            Some(path) => format!("'{}'", String::from_utf8_lossy(path)),
            None => self.field_number().to_string(),
        }
    }

    /// Negative, or from 1.
    fn field_number(&self) -> i64 {
        let field_no = self.field_no.get();
        if field_no < 0 { field_no } else { field_no + 1 }
    }

    pub(super) fn wrong_argument(&self, expected: &'static str) -> UpdateError {
        UpdateError::ArgumentType { operation: self.code, field: self.field_text(), expected }
    }

    pub(super) fn refused(&self, what: impl Into<String>) -> UpdateError {
        UpdateError::Field { field: self.field_text(), what: what.into() }
    }

    pub(super) fn updated_twice(&self) -> UpdateError {
        self.refused("double update of the same field")
    }

    /// The path ends before, or is malformed at, the step that is asked for.
    pub(super) fn malformed(&self, position: usize) -> UpdateError {
        self.refused(format!("invalid JSON in position {position}"))
    }

    pub(super) fn no_such_field(&self) -> UpdateError {
        match self.path {
            Some(path) => UpdateError::NoFieldPath(String::from_utf8_lossy(path).into_owned()),
            None => UpdateError::NoFieldNumber(self.field_number()),
        }
    }
}

/// The operations of an update; most have one or two.
pub(super) type Operations<'a> = SmallVec<[Operation<'a>; 2]>;

/// Reads and checks operations (any bytes).
pub(super) fn parse<'a>(
    ops: &'a [u8],
    format: Option<&Format>,
    index_base: u32,
    operations: &mut Operations<'a>,
) -> Result<(), UpdateError> {
    msgpack::check(ops).map_err(UpdateError::Msgpack)?;
    let mut reader = Reader::new(ops);
    let count = reader
        .read_array()
        .map_err(|_| UpdateError::Illegal("update operations must be an array {{op,..}, {op,..}}"))?;
    if count > OPERATIONS_MAX {
        return Err(UpdateError::Illegal("too many operations for update"));
    }
    operations.reserve_exact(count as usize);
    for number in 1..=count {
        operations.push(parse_one(&mut reader, number, format, i64::from(index_base))?);
    }
    Ok(())
}

#[inline]
fn parse_one<'a>(
    reader: &mut Reader<'a>,
    number: u32,
    format: Option<&Format>,
    index_base: i64,
) -> Result<Operation<'a>, UpdateError> {
    let length = reader.read_array().map_err(|_| UpdateError::Illegal("update operation must be an array {op,..}"))?;
    if length == 0 {
        return Err(UpdateError::Illegal("update operation must be an array {op,..}, got empty array"));
    }
    let code = reader.read_str().map_err(|_| UpdateError::Illegal("update operation name must be a string"))?;
    let code = match code {
        [one] if b"=+-&^|:!#".contains(one) => char::from(*one),
        other => return Err(UpdateError::Unknown(number, format!("\"{}\"", String::from_utf8_lossy(other)))),
    };
    let expected = if code == ':' { 5 } else { 3 };
    if length != expected {
        let what = format!("wrong number of arguments, expected {expected}, got {length}");
        return Err(UpdateError::Unknown(number, what));
    }
    let field = read_checked(reader);
    let mut operation = Operation {
        code,
        field_no: Cell::new(0),
        path: None,
        steps: Vec::new(),
        malformed_at: None,
        index_base,
        arguments: [&[]; 3],
    };
    for at in 0..length as usize - 2 {
        operation.arguments[at] = read_checked(reader);
    }
    find_field(&mut operation, field, format, index_base)?;
    check_arguments(&operation, index_base)?;
    Ok(operation)
}

/// The next value of bytes that were checked.
fn read_checked<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    let rest = reader.rest();
    reader.skip_checked();
    &rest[..rest.len() - reader.rest().len()]
}

/// Which field of the row is meant, and where in it.
fn find_field<'a>(
    operation: &mut Operation<'a>,
    field: &'a [u8],
    format: Option<&Format>,
    index_base: i64,
) -> Result<(), UpdateError> {
    let mut reader = Reader::new(field);
    match reader.kind() {
        Ok(Kind::Uint | Kind::Int) => {
            let Some(number) = read_i32(field) else { return Err(operation.wrong_argument("an integer")) };
            if (0..index_base).contains(&number) {
                return Err(UpdateError::NoFieldNumber(number));
            }
            operation.field_no.set(if number < 0 { number } else { number - index_base });
            Ok(())
        }
        Ok(Kind::Str) => {
            let path = reader.read_str().map_err(UpdateError::Msgpack)?;
            operation.path = Some(path);
            let named = |name: &[u8]| {
                let name = std::str::from_utf8(name).ok()?;
                format?.field_no(name).map(i64::from)
            };
            if let Some(field_no) = named(path) {
                operation.field_no.set(field_no);
                return Ok(());
            }
            let unknown = || UpdateError::NoFieldName(String::from_utf8_lossy(path).into_owned());
            let mut lexer = Lexer::new(path);
            let field_no = match lexer.next() {
                Ok(Some(Step::Index(index))) => i64::from(index),
                Ok(Some(Step::Key(name))) => named(name).ok_or_else(unknown)?,
                Ok(Some(Step::Any) | None) => return Err(unknown()),
                Err(position) => return Err(operation.malformed(position)),
            };
            operation.field_no.set(field_no);
            loop {
                match lexer.next() {
                    Ok(None) => return Ok(()),
                    Ok(Some(step)) if step != Step::Any && operation.steps.len() < STEPS_MAX => {
                        operation.steps.push(step);
                    }
                    Ok(Some(_)) => operation.malformed_at = Some(lexer.position() - 1),
                    Err(position) => operation.malformed_at = Some(position),
                }
                if operation.malformed_at.is_some() {
                    return Ok(());
                }
            }
        }
        _ => Err(UpdateError::Illegal("field id must be a number or a string")),
    }
}

fn read_i32(value: &[u8]) -> Option<i64> {
    let number = Reader::new(value).read_int().ok()?;
    i32::try_from(number).is_ok().then_some(number)
}

/// What can be said of the arguments without the row.
fn check_arguments(operation: &Operation<'_>, index_base: i64) -> Result<(), UpdateError> {
    let first = operation.arguments[0];
    match operation.code {
        '+' | '-' if super::scalar::Operand::read(first).is_none() => Err(operation.wrong_argument("a number")),
        '&' | '|' | '^' if Reader::new(first).read_uint().is_err() => {
            Err(operation.wrong_argument("a positive integer"))
        }
        ':' => {
            let Some(offset) = read_i32(first) else { return Err(operation.wrong_argument("an integer")) };
            if (0..index_base).contains(&offset) {
                return Err(UpdateError::Splice { field: operation.field_text(), what: "offset is out of bound" });
            }
            if read_i32(operation.arguments[1]).is_none() {
                return Err(operation.wrong_argument("an integer"));
            }
            if Reader::new(operation.arguments[2]).read_str().is_err() {
                return Err(operation.wrong_argument("a string"));
            }
            Ok(())
        }
        // Tarantool takes the lower 32 bits of the number.
        '#' => match Reader::new(first).read_uint() {
            Ok(count) if count as u32 == 0 => Err(operation.refused("cannot delete 0 fields")),
            Ok(_) => Ok(()),
            Err(_) => Err(operation.wrong_argument("a positive integer")),
        },
        _ => Ok(()),
    }
}
