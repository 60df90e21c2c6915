//! The row: its bytes, what they mean, how rows compare and change.
//!
//! A row is msgpack as it came from the wire behind a small header. This crate checks msgpack, keeps rows in an arena with a hard
//! limit, knows field types and formats, compares by key definitions and applies update operations. It knows no
//! spaces, no indexes and no error codes of clients: its errors carry the facts from which `database` makes texts.
//!
//! Invariants:
//! * The bytes of a [`Tuple`] were checked: they are one well-formed msgpack array.
//! * Functions that take `row` expect such bytes; functions that take anything else say so and never panic.
//! * Equal keys have equal hints and equal hashes; `a < b` implies `hint(a) <= hint(b)`.

mod arena;
mod collation;
pub mod datetime;
pub mod decimal;
mod error;
mod field;
mod format;
mod ids;
mod json_order;
mod key;
pub mod msgpack;
mod number;
mod ordered;
pub mod path;
mod row;
mod text;
pub mod update;

pub use arena::{Arena, OutOfMemory};
pub use collation::{Collation, JSON_COLLATION_ID, JSON_COLLATION_NAME};
pub use error::{FieldName, FormatError, KeyError, TupleError};
pub use field::{FieldDef, FieldType};
pub use format::Format;
pub use ids::{IndexId, Lsn, SpaceId};
pub use key::{KeyDef, KeyPart};
pub use ordered::{ORDERED_NIL, ordered_prefix_length};
pub use row::{FORMAT_ID_MAX, Tuple, field_of as field};
pub use text::{format_double, format_uuid};
