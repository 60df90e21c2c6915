//! Refusals of lower crates as a client sees them: code, text and named details.

use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, ErrorCode};
use tuple::update::UpdateError;
use tuple::{FieldName, FormatError, IndexId, KeyError, TupleError};

/// Tarantool 2.6 shows fields by number; the name goes into the details.
fn number_of(field: &FieldName) -> u32 {
    match field {
        FieldName::Number(number) | FieldName::Named(number, _) => *number,
    }
}

fn with_field(error: Error, field: &FieldName) -> Error {
    match field {
        FieldName::Number(_) => error,
        FieldName::Named(_, name) => error.with("field", name),
    }
}

impl Database {
    /// A row that does not fit its space.
    pub(crate) fn tuple_error(&self, error: TupleError, space: &Space) -> Error {
        self.row_error(error).with("space", space.name())
    }

    /// A row that does not fit a format.
    pub fn row_error(&self, error: TupleError) -> Error {
        match &error {
            TupleError::Msgpack(error) => Error::new(ErrorCode::InvalidMsgpack, &[&error]),
            TupleError::NotArray => Error::new(ErrorCode::TupleNotArray, &[]),
            TupleError::FieldCount { got, expected } => Error::new(ErrorCode::ExactFieldCount, &[got, expected]),
            TupleError::FieldMissing { field } => {
                with_field(Error::new(ErrorCode::FieldMissing, &[&number_of(field)]), field)
            }
            TupleError::FieldType { field, expected } => {
                with_field(Error::new(ErrorCode::FieldType, &[&number_of(field), &expected.name()]), field)
            }
        }
    }

    /// A key that does not fit its index.
    pub(crate) fn key_error(&self, error: KeyError, space: &Space, index_id: IndexId) -> Error {
        let error = match error {
            KeyError::Msgpack(error) => Error::new(ErrorCode::InvalidMsgpack, &[&error]),
            KeyError::PartType { part, expected } => Error::new(ErrorCode::KeyPartType, &[&part, &expected.name()]),
            KeyError::PartCount { got, expected } => Error::new(ErrorCode::ExactMatch, &[&expected, &got]),
        };
        error.with("space", space.name()).with("index", space.index_name(index_id))
    }

    /// Operations that cannot be applied.
    pub fn update_error(&self, error: UpdateError) -> Error {
        match error {
            UpdateError::Msgpack(error) => Error::new(ErrorCode::InvalidMsgpack, &[&error]),
            UpdateError::Illegal(what) => Error::illegal(what),
            UpdateError::Unknown(number, what) => Error::new(ErrorCode::UnknownUpdateOp, &[&number, &what]),
            UpdateError::ArgumentType { operation, field, expected } => {
                Error::new(ErrorCode::UpdateArgType, &[&operation, &field, &expected])
            }
            UpdateError::Splice { field, what } => Error::new(ErrorCode::UpdateSplice, &[&field, &what]),
            UpdateError::NoFieldNumber(number) => Error::new(ErrorCode::NoSuchFieldNo, &[&number]),
            UpdateError::NoFieldPath(path) => Error::new(ErrorCode::NoSuchFieldName, &[&format_args!("'{path}'")]),
            UpdateError::NoFieldName(name) => Error::new(ErrorCode::NoSuchFieldName, &[&name]),
            UpdateError::Field { field, what } => Error::new(ErrorCode::UpdateField, &[&field, &what]),
            UpdateError::IntegerOverflow { operation, field } => {
                Error::new(ErrorCode::UpdateIntegerOverflow, &[&operation, &field])
            }
            UpdateError::DecimalOverflow { operation, field } => {
                Error::new(ErrorCode::UpdateDecimalOverflow, &[&operation, &field])
            }
        }
    }

    /// Definitions that exclude each other.
    pub(crate) fn format_error(&self, error: FormatError) -> Error {
        let name = |field: &FieldName| match field {
            FieldName::Number(number) => number.to_string(),
            FieldName::Named(_, name) => format!("'{name}'"),
        };
        match error {
            FormatError::PartTypes { field, first, second } => {
                Error::new(ErrorCode::IndexPartTypeMismatch, &[&name(&field), &second.name(), &first.name()])
            }
            FormatError::FormatAndPart { field, format, part } => {
                // Always by number, as Tarantool 2.6.
                let (FieldName::Number(number) | FieldName::Named(number, _)) = field;
                Error::new(ErrorCode::FormatMismatchIndexPart, &[&number, &format.name(), &part.name()])
            }
        }
    }
}
