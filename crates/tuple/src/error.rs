//! What can be wrong with rows, keys and formats. The facts; texts are made in `database`.

use crate::field::FieldType;
use crate::msgpack::MsgpackError;

/// A field as messages name it: the number from 1, or the name if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldName {
    /// Number from 1.
    Number(u32),
    /// Number from 1 and name.
    Named(u32, String),
}

impl std::fmt::Display for FieldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FieldName::Number(number) => write!(f, "{number}"),
            FieldName::Named(number, name) => write!(f, "{number} ({name})"),
        }
    }
}

/// Why a row does not fit a format.
#[derive(Clone, Debug, PartialEq)]
pub enum TupleError {
    /// Not msgpack.
    Msgpack(MsgpackError),
    /// Not an array.
    NotArray,
    /// Another number of fields than declared.
    FieldCount {
        /// Fields of the row.
        got: u32,
        /// Fields declared.
        expected: u32,
    },
    /// A field that must be there is not.
    FieldMissing {
        /// Which.
        field: FieldName,
    },
    /// A value of another type.
    FieldType {
        /// Which.
        field: FieldName,
        /// The declared type.
        expected: FieldType,
    },
}

/// Why a key does not fit an index.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyError {
    /// Not msgpack.
    Msgpack(MsgpackError),
    /// A part of another type.
    PartType {
        /// Number of the part from 0.
        part: u32,
        /// The declared type.
        expected: FieldType,
    },
    /// More or fewer parts than wanted.
    PartCount {
        /// Parts of the key.
        got: u32,
        /// Parts of the index.
        expected: u32,
    },
}

/// Why a format cannot be made.
#[derive(Clone, Debug, PartialEq)]
pub enum FormatError {
    /// Two indexes want a field to have types that exclude each other.
    PartTypes {
        /// Which.
        field: FieldName,
        /// In one.
        first: FieldType,
        /// In the other.
        second: FieldType,
    },
    /// Format and index disagree.
    FormatAndPart {
        /// Which.
        field: FieldName,
        /// In the format.
        format: FieldType,
        /// In the index.
        part: FieldType,
    },
}
