//! Field types and declared fields.

use crate::collation::Collation;
use crate::msgpack::{EXT_DATETIME, EXT_DECIMAL, EXT_INTERVAL, EXT_UUID, Kind, Reader};
use std::str::FromStr;
use std::sync::Arc;

/// The type a field is declared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "Tarantool's public words")]
pub enum FieldType {
    Any,
    Unsigned,
    String,
    Number,
    Double,
    Integer,
    Boolean,
    Varbinary,
    Scalar,
    Decimal,
    Uuid,
    Datetime,
    Interval,
    Array,
    Map,
}

const NAMES: [(FieldType, &str); 15] = [
    (FieldType::Any, "any"),
    (FieldType::Unsigned, "unsigned"),
    (FieldType::String, "string"),
    (FieldType::Number, "number"),
    (FieldType::Double, "double"),
    (FieldType::Integer, "integer"),
    (FieldType::Boolean, "boolean"),
    (FieldType::Varbinary, "varbinary"),
    (FieldType::Scalar, "scalar"),
    (FieldType::Decimal, "decimal"),
    (FieldType::Uuid, "uuid"),
    (FieldType::Datetime, "datetime"),
    (FieldType::Interval, "interval"),
    (FieldType::Array, "array"),
    (FieldType::Map, "map"),
];

impl FromStr for FieldType {
    type Err = ();

    /// Any letter case; the short names that Tarantool takes, too.
    fn from_str(text: &str) -> Result<Self, ()> {
        let lower = text.to_ascii_lowercase();
        let full = match lower.as_str() {
            "num" => "unsigned",
            "str" => "string",
            "*" => "any",
            other => other,
        };
        NAMES.iter().find(|(_, name)| *name == full).map(|(field_type, _)| *field_type).ok_or(())
    }
}

impl FieldType {
    /// The name in formats and messages.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(field_type, _)| *field_type == self).map_or("any", |(_, name)| name)
    }

    /// By a short name that only definitions of earlier versions have.
    pub fn of_old_name(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "int" => Some(FieldType::Integer),
            "uint" => Some(FieldType::Unsigned),
            "bool" => Some(FieldType::Boolean),
            _ => None,
        }
    }

    /// True if the value at the start of checked bytes is of this type. nil is not looked at here.
    #[inline]
    pub fn accepts(self, value: &[u8]) -> bool {
        // The usual forms first.
        match (self, value.first()) {
            (FieldType::String, Some(0xa0..=0xbf)) | (FieldType::Unsigned, Some(0x00..=0x7f)) => return true,
            (FieldType::String, Some(0xd9)) | (FieldType::Unsigned, Some(0xcc)) if value.len() > 1 => return true,
            (FieldType::Unsigned, Some(0xcd)) if value.len() > 2 => return true,
            (FieldType::Unsigned, Some(0xce)) if value.len() > 4 => return true,
            (FieldType::Double, Some(0xcb)) if value.len() > 8 => return true,
            _ => {}
        }
        let reader = Reader::new(value);
        let Ok(kind) = reader.kind() else {
            return false;
        };
        let is_ext = |wanted: i8| reader.clone().read_ext().is_ok_and(|(found, _)| found == wanted);
        match self {
            FieldType::Any => true,
            FieldType::Unsigned => kind == Kind::Uint,
            FieldType::String => kind == Kind::Str,
            FieldType::Integer => matches!(kind, Kind::Uint | Kind::Int),
            FieldType::Double => matches!(kind, Kind::Double | Kind::Float),
            FieldType::Number => {
                matches!(kind, Kind::Uint | Kind::Int | Kind::Float | Kind::Double)
                    || kind == Kind::Ext && is_ext(EXT_DECIMAL)
            }
            FieldType::Boolean => kind == Kind::Bool,
            FieldType::Varbinary => kind == Kind::Bin,
            FieldType::Decimal => kind == Kind::Ext && is_ext(EXT_DECIMAL),
            FieldType::Uuid => kind == Kind::Ext && is_ext(EXT_UUID),
            FieldType::Datetime => kind == Kind::Ext && is_ext(EXT_DATETIME),
            FieldType::Interval => kind == Kind::Ext && is_ext(EXT_INTERVAL),
            FieldType::Array => kind == Kind::Array,
            FieldType::Map => kind == Kind::Map,
            FieldType::Scalar => match kind {
                Kind::Nil | Kind::Array | Kind::Map => false,
                Kind::Ext => is_ext(EXT_DECIMAL) || is_ext(EXT_UUID) || is_ext(EXT_DATETIME),
                _ => true,
            },
        }
    }

    /// True if every value of type `self` is one of type `other`.
    pub fn is_within(self, other: FieldType) -> bool {
        use FieldType::*;
        self == other
            || match other {
                Any => true,
                Scalar => !matches!(self, Any | Interval | Array | Map),
                Number => matches!(self, Unsigned | Integer | Double | Decimal),
                Integer => self == Unsigned,
                _ => false,
            }
    }

    /// True if a field of the format may be indexed as `part`: one type contains the other.
    pub fn is_compatible_with(self, part: FieldType) -> bool {
        self.is_within(part) || part.is_within(self)
    }
}

/// One field of a space's format.
#[derive(Clone, Debug)]
pub struct FieldDef {
    /// Name; unique in its format.
    pub name: String,
    /// Type.
    pub field_type: FieldType,
    /// nil and absence are allowed.
    pub is_nullable: bool,
    /// How strings compare in indexes that do not say.
    pub collation: Option<Arc<Collation>>,
}

impl FieldDef {
    /// A field that must be there.
    pub fn new(name: String, field_type: FieldType) -> Self {
        FieldDef { name, field_type, is_nullable: false, collation: None }
    }
}
