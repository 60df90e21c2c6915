//! Update operations: `= + - & ^ | : ! #` on fields and on values inside them.
//!
//! Operations are an array of arrays `[op, field, arguments...]`. A field is a number from `index_base`, a negative number from the end, a
//! declared name, or a JSON path, whose positions count from 1. Rules (types, overflow, which combinations are refused) are those of
//! Tarantool 2.6: `tests/updates` holds some thousand of its answers.
//!
//! The row becomes a [`document`], which is opened only where an operation goes, so that a request costs what its operations and its row
//! have in bytes, and not their product. What most requests ask for, a few whole [`fields`], goes a shorter way.

mod document;
mod fields;
mod operation;
mod scalar;

use crate::format::Format;
use crate::msgpack::MsgpackError;
use document::Document;
use operation::Operations;

/// Most operations of one update.
pub const OPERATIONS_MAX: u32 = 4000;

/// Why operations cannot be applied.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateError {
    /// Not msgpack.
    Msgpack(MsgpackError),
    /// The operations as a whole or one of them is no array as wanted; in Tarantool's words.
    Illegal(&'static str),
    /// Operation number (from 1) that is not known or has a wrong number of arguments; in Tarantool's words.
    Unknown(u32, String),
    /// An argument or field of a type that the operation cannot work on.
    ArgumentType {
        /// The operation.
        operation: char,
        /// The field as given.
        field: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A splice that makes no sense.
    Splice {
        /// The field as given.
        field: String,
        /// Why.
        what: &'static str,
    },
    /// No field with this number, as given.
    NoFieldNumber(i64),
    /// No field has the name that a path begins with.
    NoFieldName(String),
    /// The path leads nowhere in this row.
    NoFieldPath(String),
    /// The operation makes no sense for the field.
    Field {
        /// The field as given.
        field: String,
        /// Why.
        what: String,
    },
    /// The result fits neither signed nor unsigned 64 bits.
    IntegerOverflow {
        /// The operation.
        operation: char,
        /// The field as given.
        field: String,
    },
    /// The result has more than 38 digits.
    DecimalOverflow {
        /// The operation.
        operation: char,
        /// The field as given.
        field: String,
    },
}

/// Checks operations (any bytes) as far as that is possible without a row. Errors: the first that is wrong.
pub fn check_ops(ops: &[u8], format: Option<&Format>, index_base: u32) -> Result<(), UpdateError> {
    operation::parse(ops, format, index_base, &mut Operations::new())
}

/// Applies operations (any bytes) to a row and appends the new row to `out`. On an error nothing is appended.
pub fn apply(
    ops: &[u8],
    row: &[u8],
    format: Option<&Format>,
    index_base: u32,
    out: &mut Vec<u8>,
) -> Result<(), UpdateError> {
    let mut operations = Operations::new();
    operation::parse(ops, format, index_base, &mut operations)?;
    if fields::apply(&operations, row, format, out) {
        return Ok(());
    }
    let mut document = Document::new(row, &operations);
    for at in 0..operations.len() {
        document.apply(at)?;
    }
    document.write(format, out);
    Ok(())
}

/// As `apply`, but an operation that cannot be applied is passed over, as the upsert of Tarantool does. Malformed operations are
/// still refused.
pub fn upsert(
    ops: &[u8],
    row: &[u8],
    format: Option<&Format>,
    index_base: u32,
    out: &mut Vec<u8>,
) -> Result<(), UpdateError> {
    let mut operations = Operations::new();
    operation::parse(ops, format, index_base, &mut operations)?;
    if fields::apply(&operations, row, format, out) {
        return Ok(());
    }
    let mut document = Document::new(row, &operations);
    for at in 0..operations.len() {
        // A refused operation has changed nothing.
        let _ = document.apply(at);
    }
    document.write(format, out);
    Ok(())
}

#[cfg(test)]
mod tests;
