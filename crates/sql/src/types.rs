//! Types of columns and expressions, in every dialect: what a value can be, how far it goes, what it is called.
//!
//! A type is what the dialects agree on (`Base`), with up to two numbers (`varchar(20)`, `numeric(10, 2)`). A space's format keeps the type of the space's
//! engine, which every door sees, and beside it (`sql_type`) the text of the declared one where that says more.

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use sqlparser::ast::{self, DataType};
use std::fmt;
use tuple::FieldType;

/// What a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// Of a null or a parameter, until something says.
    Unknown,
    /// True or false.
    Bool,
    /// A whole number of 8 bits.
    Int1,
    /// The same without a sign.
    Uint1,
    /// A whole number of 16 bits.
    Int2,
    /// The same without a sign.
    Uint2,
    /// A whole number of 32 bits.
    Int4,
    /// The same without a sign.
    Uint4,
    /// A whole number of 64 bits.
    Int8,
    /// A whole number of 64 bits without a sign.
    Uint8,
    /// A whole number of 64 bits, with or without a sign: Tarantool's `integer`.
    Integer,
    /// A double.
    Double,
    /// An exact number.
    Decimal,
    /// A number of any kind: Tarantool's `number`.
    Number,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// A uuid.
    Uuid,
    /// A day.
    Date,
    /// A moment of some clock.
    Timestamp,
    /// A moment.
    TimestampTz,
    /// A span of time.
    Interval,
    /// What a clock shows; in MySQL's dialect a span of hours, too.
    Time,
    /// The same with the distance of its zone: PostgreSQL's `timetz`.
    TimeTz,
    /// An address and the network it is in: PostgreSQL's `inet`.
    Inet,
    /// A network: PostgreSQL's `cidr`.
    Cidr,
    /// The address of a device, of 6 bytes.
    Macaddr,
    /// The same of 8 bytes.
    Macaddr8,
    /// From one whole number to another: PostgreSQL's `int4range`.
    Int4Range,
    /// The same of 64 bits.
    Int8Range,
    /// From one exact number to another.
    NumRange,
    /// From one day to another.
    DateRange,
    /// From one moment of some clock to another.
    TsRange,
    /// From one moment to another.
    TstzRange,
    /// A document.
    Json,
    /// A value of any type that can be compared: Tarantool's `scalar`.
    Scalar,
    /// An array.
    Array,
    /// A map.
    Map,
    /// Anything.
    Any,
    /// One of the values that a type of a user's lists: `CREATE TYPE ... AS ENUM`. The length is the number of the type.
    Enum,
}

/// All of them, each at its number.
const BASES: [Base; 39] = [
    Base::Unknown,
    Base::Bool,
    Base::Int1,
    Base::Uint1,
    Base::Int2,
    Base::Uint2,
    Base::Int4,
    Base::Uint4,
    Base::Int8,
    Base::Uint8,
    Base::Integer,
    Base::Double,
    Base::Decimal,
    Base::Number,
    Base::Text,
    Base::Bytes,
    Base::Uuid,
    Base::Date,
    Base::Timestamp,
    Base::TimestampTz,
    Base::Interval,
    Base::Time,
    Base::TimeTz,
    Base::Inet,
    Base::Cidr,
    Base::Macaddr,
    Base::Macaddr8,
    Base::Int4Range,
    Base::Int8Range,
    Base::NumRange,
    Base::DateRange,
    Base::TsRange,
    Base::TstzRange,
    Base::Json,
    Base::Scalar,
    Base::Array,
    Base::Map,
    Base::Any,
    Base::Enum,
];

/// The most digits behind the point that a double is shown with; one that would have more is shown with those that it has.
const SHOWN_DIGITS_MAX: u32 = 30;

/// Where the scale of an array has that of its elements, above the number of their base.
const ELEMENT_SCALE_SHIFT: u32 = 8;

const _: () = assert!(BASES.len() < 1 << ELEMENT_SCALE_SHIFT && tuple::decimal::DIGITS_MAX < 1 << ELEMENT_SCALE_SHIFT);

/// Marks a vector, where other arrays have the length of their elements.
const VECTOR: u32 = u32::MAX;
/// Marks an array of names in the same place.
const NAMES: u32 = u32::MAX - 1;
/// And one of numbers of objects.
const OIDS: u32 = u32::MAX - 2;

const _: () = {
    let mut number = 0;
    while number < BASES.len() {
        assert!(BASES[number] as usize == number);
        number += 1;
    }
};

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// What a value can be.
    pub base: Base,
    /// Characters of text, digits of a decimal, bytes of a short double; 0: any.
    pub length: u32,
    /// Digits of a decimal behind the point; of a double one more than it is shown with, 0: as many as it has.
    pub scale: u32,
}

impl Type {
    /// Of a null or a parameter, until something says.
    pub const UNKNOWN: Type = Type::of(Base::Unknown);
    /// True or false.
    pub const BOOL: Type = Type::of(Base::Bool);
    /// Text of any length.
    pub const TEXT: Type = Type::of(Base::Text);
    /// PostgreSQL's `name`: text of its catalog, which clients tell from other text by its number. Marked where numbers have digits.
    pub const NAME: Type = Type { base: Base::Text, length: 0, scale: 1 };

    /// PostgreSQL's `oid`: the number of an object of its catalog. Marked in the same way.
    pub const OID: Type = Type { base: Base::Int8, length: 0, scale: 1 };

    /// MySQL's `FLOAT` and PostgreSQL's `real`: a double that four bytes hold. It is kept, compared and calculated with as a double; what is put into it is
    /// rounded, and it is shown with the digits that four bytes have.
    pub const FLOAT: Type = Type { base: Base::Double, length: 4, scale: 0 };

    /// MySQL's `YEAR`: whole numbers, of which those of two digits mean years of two centuries.
    pub const YEAR: Type = Type { base: Base::Int2, length: 4, scale: 0 };

    /// A type without numbers.
    pub const fn of(base: Base) -> Self {
        Type { base, length: 0, scale: 0 }
    }

    /// That of arrays whose elements are of a type. Arrays of arrays are arrays of the same elements.
    pub fn array_of(element: Type) -> Self {
        match element.base {
            Base::Array => element,
            base => {
                let (length, scale) = match () {
                    () if element.is_name() => (NAMES, 0),
                    () if element.is_oid() => (OIDS, 0),
                    () => (element.length, element.scale),
                };
                Type { base: Base::Array, length, scale: (base as u32 + 1) | (scale << ELEMENT_SCALE_SHIFT) }
            }
        }
    }

    /// The type of an array's elements; `Any`, if nothing is known of them.
    pub fn element(self) -> Self {
        let number = (self.scale & ((1 << ELEMENT_SCALE_SHIFT) - 1)).checked_sub(1);
        let base = number.and_then(|number| BASES.get(number as usize)).copied();
        match base.filter(|_| self.base == Base::Array) {
            Some(base) if self.is_vector() => Type::of(base),
            Some(Base::Text) if self.length == NAMES => Type::NAME,
            Some(Base::Int8) if self.length == OIDS => Type::OID,
            Some(base) => Type { base, length: self.length, scale: self.scale >> ELEMENT_SCALE_SHIFT },
            None => Type::of(Base::Any),
        }
    }

    /// True for moments with a zone, and arrays of them: their texts mean what they do by the session's.
    pub fn is_zoned(self) -> bool {
        self.base == Base::TimestampTz || self.base == Base::Array && self.element().base == Base::TimestampTz
    }

    /// PostgreSQL's `int2vector`: an array of its catalog that is written without braces.
    pub fn vector() -> Self {
        Type { length: VECTOR, ..Type::array_of(Type::of(Base::Int2)) }
    }

    /// True for that one.
    pub fn is_vector(self) -> bool {
        self.base == Base::Array && self.length == VECTOR
    }

    /// True for PostgreSQL's `name`.
    pub fn is_name(self) -> bool {
        self == Type::NAME
    }

    /// True for PostgreSQL's `oid`.
    pub fn is_oid(self) -> bool {
        self == Type::OID
    }

    /// PostgreSQL's `json`, which is kept as it is written, or `jsonb`.
    pub const fn json(is_binary: bool) -> Self {
        Type { base: Base::Json, length: !is_binary as u32, scale: 0 }
    }

    /// True for JSON that is kept as it is written.
    pub fn is_plain_json(self) -> bool {
        self.base == Base::Json && self.length == 1
    }

    /// The type as a number, for those who take it as a value.
    pub(crate) fn code(self) -> i64 {
        i64::from(self.base as u8) | i64::from(self.scale) << 8 | i64::from(self.length) << 24
    }

    /// The type of such a number.
    pub(crate) fn of_code(code: i64) -> Self {
        let base = BASES.get((code & 0xff) as usize).copied().unwrap_or(Base::Any);
        Type { base, scale: (code >> 8 & 0xffff) as u32, length: (code >> 24 & 0xffff_ffff) as u32 }
    }

    /// True for doubles that four bytes hold.
    pub fn is_float(self) -> bool {
        self.base == Base::Double && self.length == Type::FLOAT.length
    }

    /// The type without what it says of length and digits.
    pub fn without_length(self) -> Self {
        match self.base {
            Base::Double if self.is_float() => Type::FLOAT,
            // Which one it is, is no length.
            Base::Enum => self,
            base => Type::of(base),
        }
    }

    /// A double that is shown with so many digits behind the point; None: with those that it has.
    pub fn double(digits: Option<u32>) -> Self {
        let scale = digits.filter(|digits| *digits <= SHOWN_DIGITS_MAX).map_or(0, |digits| digits + 1);
        Type { scale, ..Type::of(Base::Double) }
    }

    /// The digits behind the point that a double is shown with, if they are fixed.
    pub fn double_digits(self) -> Option<u32> {
        self.scale.checked_sub(1).filter(|_| self.base == Base::Double)
    }

    /// True for doubles that are shown with other digits than they have.
    pub fn is_shown_shorter(self) -> bool {
        self.base == Base::Double && (self.length > 0 || self.scale > 0)
    }

    /// True for numbers of all kinds.
    pub fn is_number(self) -> bool {
        self.is_integer() || matches!(self.base, Base::Double | Base::Decimal | Base::Number)
    }

    /// True for whole numbers.
    pub fn is_integer(self) -> bool {
        use Base::{Int1, Int2, Int4, Int8, Integer, Uint1, Uint2, Uint4, Uint8};
        matches!(self.base, Int1 | Uint1 | Int2 | Uint2 | Int4 | Uint4 | Int8 | Uint8 | Integer)
    }

    /// True for whole numbers that are never below zero.
    pub fn is_unsigned(self) -> bool {
        matches!(self.base, Base::Uint1 | Base::Uint2 | Base::Uint4 | Base::Uint8)
    }

    /// True for days and moments.
    pub fn is_moment(self) -> bool {
        matches!(self.base, Base::Date | Base::Timestamp | Base::TimestampTz)
    }

    /// True for what a clock shows.
    pub fn is_clock(self) -> bool {
        matches!(self.base, Base::Time | Base::TimeTz)
    }

    /// The least and the greatest whole number of the type.
    pub fn range(self) -> Option<(i128, i128)> {
        Some(match self.base {
            Base::Int1 => (-128, 127),
            Base::Uint1 => (0, 255),
            Base::Uint2 => (0, i128::from(u16::MAX)),
            Base::Uint4 => (0, i128::from(u32::MAX)),
            Base::Int2 => (i128::from(i16::MIN), i128::from(i16::MAX)),
            Base::Int4 => (i128::from(i32::MIN), i128::from(i32::MAX)),
            Base::Int8 => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Base::Uint8 => (0, i128::from(u64::MAX)),
            Base::Integer => (i128::from(i64::MIN), i128::from(u64::MAX)),
            _ => return None,
        })
    }

    /// The type of a field whose format says no more.
    pub fn of_field(field_type: FieldType) -> Self {
        Type::of(match field_type.name() {
            "unsigned" => Base::Uint8,
            "integer" => Base::Integer,
            "number" => Base::Number,
            "double" => Base::Double,
            "decimal" => Base::Decimal,
            "string" => Base::Text,
            "boolean" => Base::Bool,
            "varbinary" => Base::Bytes,
            "uuid" => Base::Uuid,
            "datetime" => Base::TimestampTz,
            "interval" => Base::Interval,
            "scalar" => Base::Scalar,
            "array" => Base::Array,
            "map" => Base::Map,
            _ => Base::Any,
        })
    }

    /// The type that a field is declared with in a space's format.
    pub fn field_name(self) -> &'static str {
        match self.base {
            Base::Unknown | Base::Any => "any",
            Base::Bool => "boolean",
            Base::Int1 | Base::Int2 | Base::Int4 | Base::Int8 | Base::Integer => "integer",
            Base::Uint1 | Base::Uint2 | Base::Uint4 | Base::Uint8 => "unsigned",
            Base::Double => "double",
            Base::Decimal => "decimal",
            Base::Number | Base::Enum => "number",
            Base::Text | Base::Json => "string",
            Base::Bytes | Base::Inet | Base::Cidr | Base::Macaddr | Base::Macaddr8 => "varbinary",
            Base::Int4Range | Base::Int8Range | Base::NumRange => "varbinary",
            Base::DateRange | Base::TsRange | Base::TstzRange => "varbinary",
            Base::Uuid => "uuid",
            Base::Date | Base::Timestamp | Base::TimestampTz | Base::Time | Base::TimeTz => "datetime",
            Base::Interval => "interval",
            Base::Scalar => "scalar",
            Base::Array => "array",
            Base::Map => "map",
        }
    }

    /// From the text of a type in a statement. Errors: there is no such type.
    pub fn of_ast(dialect: Dialect, declared: &DataType) -> Result<Self> {
        use DataType as D;
        let text = |length: &Option<ast::CharacterLength>| match length {
            Some(ast::CharacterLength::IntegerLength { length, .. }) => {
                Type { length: u32::try_from(*length).unwrap_or(u32::MAX), ..Type::TEXT }
            }
            _ => Type::TEXT,
        };
        let exact = |info: &ast::ExactNumberInfo| match *info {
            ast::ExactNumberInfo::None => Ok(Type::of(Base::Decimal)),
            ast::ExactNumberInfo::Precision(length) => decimal(dialect, length, 0),
            ast::ExactNumberInfo::PrecisionAndScale(length, scale) => {
                decimal(dialect, length, u64::try_from(scale).unwrap_or(u64::MAX))
            }
        };
        let is_tarantool = dialect == Dialect::Tarantool;
        if dialect == Dialect::Mysql
            && let Some(own) = Type::of_mysql(declared)
        {
            return Ok(own);
        }
        Ok(match declared {
            D::Bool | D::Boolean => Type::BOOL,
            D::TinyInt(_) => Type::of(Base::Int1),
            D::Int2(_) | D::SmallInt(_) => Type::of(Base::Int2),
            D::Int(_) | D::Integer(_) if is_tarantool => Type::of(Base::Integer),
            D::TinyIntUnsigned(_) => Type::of(Base::Int2),
            D::MediumInt(_) | D::Int(_) | D::Int4(_) | D::Integer(_) | D::Int2Unsigned(_) | D::SmallIntUnsigned(_) => {
                Type::of(Base::Int4)
            }
            D::IntUnsigned(_) | D::Int4Unsigned(_) | D::IntegerUnsigned(_) | D::MediumIntUnsigned(_) => {
                Type::of(Base::Int8)
            }
            D::BigInt(_) | D::Int8(_) | D::Signed | D::SignedInteger => Type::of(Base::Int8),
            D::BigIntUnsigned(_) | D::Int8Unsigned(_) | D::Unsigned | D::UnsignedInteger => Type::of(Base::Uint8),
            D::Real | D::Float4 if dialect == Dialect::Postgres => Type::FLOAT,
            D::Float(ast::ExactNumberInfo::None) if dialect == Dialect::Postgres => Type::of(Base::Double),
            D::Float(info) if dialect == Dialect::Postgres => float(info),
            D::Real | D::Float(_) | D::Float4 | D::Float8 | D::Double(_) | D::DoublePrecision => Type::of(Base::Double),
            D::Numeric(info) | D::Decimal(info) | D::Dec(info) => exact(info)?,
            D::Char(length)
            | D::Character(length)
            | D::Varchar(length)
            | D::CharVarying(length)
            | D::CharacterVarying(length)
            | D::Nvarchar(length) => text(length),
            D::Text | D::TinyText | D::MediumText | D::LongText | D::String(_) | D::Clob(_) => Type::TEXT,
            D::Bytea
            | D::Blob(_)
            | D::TinyBlob
            | D::MediumBlob
            | D::LongBlob
            | D::Binary(_)
            | D::Varbinary(_)
            | D::Bytes(_) => Type::of(Base::Bytes),
            D::Uuid => Type::of(Base::Uuid),
            D::Date => Type::of(Base::Date),
            D::Datetime(_) if is_tarantool => Type::of(Base::TimestampTz),
            D::Datetime(_) => Type::of(Base::Timestamp),
            D::Timestamp(digits, zone) => {
                let is_zoned = matches!(zone, ast::TimezoneInfo::Tz | ast::TimezoneInfo::WithTimeZone);
                let base = if is_zoned { Base::TimestampTz } else { Base::Timestamp };
                Type { length: digits.filter(|_| !is_tarantool).map_or(0, digits_of_second), ..Type::of(base) }
            }
            D::Interval { precision, fields } => {
                let digits = precision.filter(|_| dialect == Dialect::Postgres);
                let fields = fields.as_ref().filter(|_| dialect == Dialect::Postgres);
                let scale = fields.map_or(0, |fields| crate::spans::scale_of(&fields.to_string()));
                Type { length: digits.map_or(0, digits_of_second), scale, ..Type::of(Base::Interval) }
            }
            D::Time(digits, ast::TimezoneInfo::None | ast::TimezoneInfo::WithoutTimeZone)
                if dialect == Dialect::Postgres =>
            {
                let digits = digits.map(|digits| u32::try_from(digits.min(6)).unwrap_or(6));
                digits.map_or(Type::of(Base::Time), crate::clock::type_of)
            }
            D::Time(digits, _) if dialect == Dialect::Postgres => {
                let digits = digits.map(|digits| u32::try_from(digits.min(6)).unwrap_or(6));
                Type { length: digits.map_or(0, |digits| digits + 1), ..Type::of(Base::TimeTz) }
            }
            D::JSON if dialect == Dialect::Postgres => Type::json(false),
            D::JSON | D::JSONB => Type::json(true),
            D::Array(
                ast::ArrayElemTypeDef::SquareBracket(element, _)
                | ast::ArrayElemTypeDef::AngleBracket(element)
                | ast::ArrayElemTypeDef::Parenthesis(element),
            ) if dialect == Dialect::Postgres => Type::array_of(Type::of_ast(dialect, element)?),
            D::AnyType => Type::of(Base::Any),
            D::Custom(name, _) => {
                // A name of a type may stand within quotes.
                return Type::of_name(dialect, &name.to_string().replace('"', ""))
                    .ok_or_else(|| no_such_type(dialect, &name.to_string()));
            }
            D::Array(_) if is_tarantool => Type::of(Base::Array),
            other => {
                return Type::of_name(dialect, &other.to_string())
                    .ok_or_else(|| no_such_type(dialect, &other.to_string()));
            }
        })
    }

    /// A type that MySQL has in its own way.
    fn of_mysql(declared: &DataType) -> Option<Self> {
        use DataType as D;
        // Moments have as many digits of a second as is said.
        let moment = |digits: &Option<u64>| Type {
            length: 1 + digits.map_or(0, |digits| u32::try_from(digits.min(6)).unwrap_or(0)),
            ..Type::of(Base::Timestamp)
        };
        Some(match declared {
            D::Bool | D::Boolean => Type { length: 1, ..Type::of(Base::Int1) },
            D::TinyInt(Some(1)) => Type { length: 1, ..Type::of(Base::Int1) },
            D::TinyIntUnsigned(_) => Type::of(Base::Uint1),
            D::SmallIntUnsigned(_) | D::Int2Unsigned(_) => Type::of(Base::Uint2),
            D::IntUnsigned(_) | D::Int4Unsigned(_) | D::IntegerUnsigned(_) | D::MediumIntUnsigned(_) => {
                Type::of(Base::Uint4)
            }
            D::Datetime(digits) | D::Timestamp(digits, _) => moment(digits),
            D::Float(info) => float(info),
            D::Float4 => Type::FLOAT,
            D::Time(digits, _) => {
                crate::clock::type_of(digits.map_or(0, |digits| u32::try_from(digits.min(6)).unwrap_or(0)))
            }
            D::Enum(..) | D::Set(..) => Type::TEXT,
            // Numbers of such columns have no sign.
            D::Zerofill(number) => match Type::of_ast(Dialect::Mysql, number).ok()? {
                Type { base: Base::Int1, .. } => Type::of(Base::Uint1),
                Type { base: Base::Int2, .. } => Type::of(Base::Uint2),
                Type { base: Base::Int4, .. } => Type::of(Base::Uint4),
                Type { base: Base::Int8, .. } => Type::of(Base::Uint8),
                other => other,
            },
            D::Bit(bits) | D::BitVarying(bits) => {
                let length = bits.map_or(1, |bits| u32::try_from(bits.clamp(1, 64)).unwrap_or(64));
                Type { length, ..Type::of(Base::Uint8) }
            }
            D::Decimal(ast::ExactNumberInfo::None)
            | D::Numeric(ast::ExactNumberInfo::None)
            | D::Dec(ast::ExactNumberInfo::None) => Type { length: 10, ..Type::of(Base::Decimal) },
            D::Custom(name, _) => match name.to_string().to_ascii_lowercase().as_str() {
                "year" => Type::YEAR,
                "serial" => Type::of(Base::Uint8),
                "time" => crate::clock::type_of(0),
                _ => return None,
            },
            other => {
                let shown = other.to_string().to_ascii_lowercase();
                match () {
                    () if shown.starts_with("decimal") && shown.contains("unsigned") => {
                        let digits: Vec<u32> = shown
                            .split(|c: char| !c.is_ascii_digit())
                            .filter_map(|digits| digits.parse().ok())
                            .collect();
                        let scale = digits.get(1).copied().unwrap_or(0);
                        Type { length: digits.first().copied().unwrap_or(10), scale, ..Type::of(Base::Decimal) }
                    }
                    () if shown.contains("unsigned") && shown.starts_with("float") => Type::FLOAT,
                    () if shown.contains("unsigned") && shown.starts_with("double") => Type::of(Base::Double),
                    () => return None,
                }
            }
        })
    }

    fn of_name(dialect: Dialect, name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let short = lower.trim_start_matches("pg_catalog.");
        if let (Dialect::Postgres, Some(element)) = (dialect, short.strip_prefix('_')) {
            // The catalog's names of arrays.
            return Type::of_name(dialect, element).filter(|ty| ty.base != Base::Array).map(Type::array_of);
        }
        let base = match short {
            "bool" => Base::Bool,
            "int1" => Base::Int1,
            "int2" | "smallserial" | "serial2" => Base::Int2,
            "int4" | "serial" | "serial4" => Base::Int4,
            "int8" | "bigserial" | "serial8" => Base::Int8,
            "oid" if dialect == Dialect::Postgres => return Some(Type::OID),
            "xid" | "cid" if dialect == Dialect::Postgres => Base::Int8,
            "unsigned" => Base::Uint8,
            "number" => Base::Number,
            "scalar" => Base::Scalar,
            "any" => Base::Any,
            "map" => Base::Map,
            "array" => Base::Array,
            "float4" if dialect != Dialect::Tarantool => return Some(Type::FLOAT),
            "float4" | "float8" => Base::Double,
            "name" | "string" | "bpchar" | "text" | "varchar" => Base::Text,
            "bytea" => Base::Bytes,
            "date" => Base::Date,
            "timestamp" => Base::Timestamp,
            "interval" => Base::Interval,
            "numeric" => Base::Decimal,
            "uuid" => Base::Uuid,
            "json" if dialect == Dialect::Postgres => return Some(Type::json(false)),
            "json" | "jsonb" => Base::Json,
            "timestamptz" => Base::TimestampTz,
            short if let Some((name, digits)) = short.strip_suffix(')').and_then(|rest| rest.split_once('(')) => {
                // timestamptz(3) and its kin.
                let known = matches!(name, "timestamptz" | "timestamp" | "timetz" | "interval");
                let digits = digits.trim().parse().ok().filter(|_| known && dialect == Dialect::Postgres)?;
                return Type::of_name(dialect, name).map(|ty| Type { length: digits_of_second(digits), ..ty });
            }
            "time" if dialect == Dialect::Postgres => Base::Time,
            "timetz" if dialect == Dialect::Postgres => Base::TimeTz,
            "inet" if dialect == Dialect::Postgres => Base::Inet,
            "cidr" if dialect == Dialect::Postgres => Base::Cidr,
            "macaddr" if dialect == Dialect::Postgres => Base::Macaddr,
            "macaddr8" if dialect == Dialect::Postgres => Base::Macaddr8,
            "int4range" if dialect == Dialect::Postgres => Base::Int4Range,
            "int8range" if dialect == Dialect::Postgres => Base::Int8Range,
            "numrange" if dialect == Dialect::Postgres => Base::NumRange,
            "daterange" if dialect == Dialect::Postgres => Base::DateRange,
            "tsrange" if dialect == Dialect::Postgres => Base::TsRange,
            "tstzrange" if dialect == Dialect::Postgres => Base::TstzRange,
            "varbinary" if dialect == Dialect::Tarantool => Base::Bytes,
            _ => return None,
        };
        Some(Type::of(base))
    }

    /// What the type is called in a dialect.
    pub fn name(self, dialect: Dialect) -> String {
        let base = match dialect {
            Dialect::Tarantool => self.field_name(),
            Dialect::Postgres | Dialect::Mysql => match self.base {
                Base::Unknown => "unknown",
                Base::Bool => "boolean",
                Base::Int1 => "tinyint",
                Base::Uint1 => "tinyint unsigned",
                Base::Uint2 => "smallint unsigned",
                Base::Uint4 => "int unsigned",
                Base::Int2 => "smallint",
                Base::Int4 => "integer",
                Base::Int8 if self.is_oid() && dialect == Dialect::Postgres => "oid",
                Base::Int8 | Base::Integer => "bigint",
                Base::Uint8 => "bigint unsigned",
                Base::Double if self.is_float() => "real",
                Base::Double => "double precision",
                Base::Decimal | Base::Number => "numeric",
                Base::Text if self.is_name() && dialect == Dialect::Postgres => "name",
                Base::Text | Base::Scalar | Base::Any => "text",
                Base::Bytes => "bytea",
                Base::Uuid => "uuid",
                Base::Date => "date",
                Base::Timestamp => "timestamp without time zone",
                Base::TimestampTz => "timestamp with time zone",
                Base::Interval => "interval",
                Base::Time => "time without time zone",
                Base::TimeTz => "time with time zone",
                Base::Inet => "inet",
                Base::Cidr => "cidr",
                Base::Macaddr => "macaddr",
                Base::Macaddr8 => "macaddr8",
                Base::Int4Range => "int4range",
                Base::Int8Range => "int8range",
                Base::NumRange => "numrange",
                Base::DateRange => "daterange",
                Base::TsRange => "tsrange",
                Base::TstzRange => "tstzrange",
                Base::Array if self.scale > 0 => return format!("{}[]", self.element().name(dialect)),
                Base::Array => "anyarray",
                Base::Enum => return crate::user_types::marked(self.length),
                Base::Json if self.is_plain_json() => "json",
                Base::Json | Base::Map => "jsonb",
            },
        };
        base.to_string()
    }

    /// The type that values of both can be brought to, to be compared or stand in one column. None: there is none.
    pub fn common(self, other: Type) -> Option<Type> {
        use Base::{Any, Date, Decimal, Double, Integer, Number, Scalar, Text, Timestamp, TimestampTz, Uint8, Unknown};
        if let (Base::Array, Base::Array) = (self.base, other.base) {
            let element = self.element().common(other.element())?;
            return Some(if element.base == Any { Type::of(Base::Array) } else { Type::array_of(element) });
        }
        if self.base == other.base {
            return Some(match self.base {
                _ if self == other => self,
                // Two types of users' own have nothing in common.
                Base::Enum => return None,
                // With the digits of the one that has more.
                Base::Time | Base::TimeTz | Base::Timestamp if self.length > 0 && other.length > 0 => {
                    Type { length: self.length.max(other.length), ..self }
                }
                base => Type::of(base),
            });
        }
        Some(match (self.base, other.base) {
            (Unknown, _) => other,
            (_, Unknown) => self,
            (Any, _) | (_, Any) => Type::of(Any),
            (Scalar, _) | (_, Scalar) => Type::of(Scalar),
            _ if self.is_unsigned() && other.is_unsigned() => {
                Type::of(if int_rank(self.base) > int_rank(other.base) || self.base == Uint8 {
                    self.base
                } else {
                    other.base
                })
            }
            _ if self.is_integer() && other.is_integer() => match (self.base, other.base) {
                (Uint8 | Integer, _) | (_, Uint8 | Integer) => Type::of(Integer),
                (a, b) => {
                    let wider = if int_rank(a) > int_rank(b) { a } else { b };
                    Type::of(match wider {
                        Base::Uint1 => Base::Int2,
                        Base::Uint2 => Base::Int4,
                        Base::Uint4 => Base::Int8,
                        wider => wider,
                    })
                }
            },
            _ if self.is_number() && other.is_number() => Type::of(match (self.base, other.base) {
                (Number, _) | (_, Number) => Number,
                (Double, _) | (_, Double) => Double,
                _ => Decimal,
            }),
            (Date, Timestamp) => other,
            (Timestamp, Date) => self,
            (Date | Timestamp, TimestampTz) | (TimestampTz, Date | Timestamp) => Type::of(TimestampTz),
            (Base::Time, Base::TimeTz) | (Base::TimeTz, Base::Time) => Type::of(Base::TimeTz),
            (Base::Inet, Base::Cidr) | (Base::Cidr, Base::Inet) => Type::of(Base::Inet),
            (Base::Macaddr, Base::Macaddr8) | (Base::Macaddr8, Base::Macaddr) => Type::of(Base::Macaddr8),
            (Text, Base::Json) | (Base::Json, Text) => Type::of(Text),
            _ => return None,
        })
    }
}

/// FLOAT with a number says how many bits count: four bytes have 24 of them.
fn float(info: &ast::ExactNumberInfo) -> Type {
    match info {
        ast::ExactNumberInfo::Precision(25..) => Type::of(Base::Double),
        _ => Type::FLOAT,
    }
}

/// Programs that want all digits there are say so by the most that PostgreSQL takes; values have those that there are here.
fn decimal(dialect: Dialect, length: u64, scale: u64) -> Result<Type> {
    let digits_max = u64::from(tuple::decimal::DIGITS_MAX);
    let length_max = if dialect == Dialect::Postgres { 1000 } else { digits_max };
    let fits = (1..=length_max).contains(&length) && scale <= length.min(digits_max);
    match (u32::try_from(length), u32::try_from(scale)) {
        (Ok(length), Ok(scale)) if fits => Ok(Type { base: Base::Decimal, length, scale }),
        _ => Err(Error::new(
            Condition::InvalidArgument,
            format!(
                "precision {length} and scale {scale} of a decimal must be within 1 and {length_max}, the scale within {digits_max}"
            ),
        )),
    }
}

/// The length of a type whose values have so many digits of a second.
fn digits_of_second(digits: u64) -> u32 {
    u32::try_from(digits.min(6)).unwrap_or(6) + 1
}

fn int_rank(base: Base) -> u8 {
    match base {
        Base::Int1 => 1,
        Base::Uint1 | Base::Int2 => 2,
        Base::Uint2 | Base::Int4 => 3,
        _ => 4,
    }
}

fn no_such_type(dialect: Dialect, name: &str) -> Error {
    if dialect == Dialect::Tarantool {
        let what = format!("Syntax error at line 1 near '{name}'");
        return Error::new(Condition::UndefinedObject, what).tarantool(database::ErrorCode::SqlSyntaxNearToken);
    }
    Error::new(Condition::UndefinedObject, format!("type \"{}\" does not exist", name.to_ascii_lowercase()))
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name(Dialect::Postgres))
    }
}
