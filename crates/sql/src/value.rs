//! Values while a statement works with them, and their one order.
//!
//! The order is that of Tarantool's `scalar`: null, booleans, numbers of all kinds beside each other, text, bytes, uuids, moments. Values of one column are
//! of one kind, so that what a dialect says of comparing different kinds is said once, when names and types are found out.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use tuple::datetime::{Datetime, Interval};
use tuple::decimal::Decimal;
use tuple::msgpack::{self, Kind, Reader};

/// A value. Cloning one is cheap.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Not known.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above the largest `Int`.
    Uint(u64),
    /// A number of double precision.
    Double(f64),
    /// An exact number.
    Decimal(Rc<Decimal>),
    /// Text.
    Text(Rc<str>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// A uuid.
    Uuid(Rc<[u8; 16]>),
    /// A moment.
    Datetime(Rc<Datetime>),
    /// A span of time.
    Interval(Rc<Interval>),
    /// An array or a map, in msgpack.
    Document(Rc<[u8]>),
}

impl Value {
    /// Text.
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Value::Text(text.into())
    }

    /// A decimal.
    pub fn decimal(value: Decimal) -> Self {
        Value::Decimal(Rc::new(value))
    }

    /// A whole number, if it is one of 64 bits with or without a sign.
    pub fn integer(value: i128) -> Option<Self> {
        match i64::try_from(value) {
            Ok(value) => Some(Value::Int(value)),
            Err(_) => u64::try_from(value).ok().map(Value::Uint),
        }
    }

    /// True for null.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// A whole number.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Value::Int(value) => Some(i128::from(*value)),
            Value::Uint(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// A number as a double, however exact it is.
    pub fn as_double(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Uint(value) => Some(*value as f64),
            Value::Double(value) => Some(*value),
            Value::Decimal(value) => Some(value.to_f64()),
            _ => None,
        }
    }

    /// A number as a decimal.
    pub fn as_decimal(&self) -> Option<Decimal> {
        match self {
            Value::Int(value) => Some(Decimal::from(*value)),
            Value::Uint(value) => Some(Decimal::from(*value)),
            Value::Double(value) => Decimal::from_f64(*value),
            Value::Decimal(value) => Some(**value),
            _ => None,
        }
    }

    /// The text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A field of a row. Text that is no UTF-8 becomes bytes.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Self {
        match *bytes {
            [small @ ..0x80] => Value::Int(i64::from(small)),
            [0xcc, a] => Value::Int(i64::from(a)),
            [0xcd, a, b] => Value::Int(i64::from(u16::from_be_bytes([a, b]))),
            [0xce, a, b, c, d] => Value::Int(i64::from(u32::from_be_bytes([a, b, c, d]))),
            _ => Self::decode_any(bytes),
        }
    }

    /// The next one of bytes that were checked before, which the reader passes over.
    #[inline]
    pub(crate) fn take(reader: &mut Reader<'_>) -> Self {
        let rest = reader.rest();
        match rest.first() {
            Some(0xa0..=0xbf | 0xd9 | 0xda) => Self::of_text(reader.read_str().unwrap_or_default()),
            _ => {
                reader.skip_checked();
                Self::decode(&rest[..rest.len() - reader.rest().len()])
            }
        }
    }

    fn of_text(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Value::text(text),
            Err(_) => Value::Bytes(bytes.into()),
        }
    }

    fn decode_any(bytes: &[u8]) -> Self {
        let mut reader = Reader::new(bytes);
        Self::decode_known(&mut reader, bytes).unwrap_or(Value::Null)
    }

    fn decode_known(reader: &mut Reader<'_>, bytes: &[u8]) -> Option<Self> {
        Some(match reader.kind().ok()? {
            Kind::Nil => Value::Null,
            Kind::Bool => Value::Bool(reader.read_bool().ok()?),
            Kind::Uint | Kind::Int => Value::integer(reader.read_i128().ok()?)?,
            Kind::Float | Kind::Double => Value::Double(reader.read_double().ok()?),
            Kind::Str => Self::of_text(reader.read_str().ok()?),
            Kind::Bin => Value::Bytes(reader.read_bin().ok()?.into()),
            Kind::Array | Kind::Map => Value::Document(bytes.into()),
            Kind::Ext => {
                let (kind, body) = reader.read_ext().ok()?;
                match kind {
                    msgpack::EXT_DECIMAL => Value::decimal(Decimal::decode(body)?),
                    msgpack::EXT_UUID => Value::Uuid(Rc::new(body.try_into().ok()?)),
                    msgpack::EXT_DATETIME => Value::Datetime(Rc::new(Datetime::decode(body)?)),
                    msgpack::EXT_INTERVAL => Value::Interval(Rc::new(Interval::decode(body)?)),
                    _ => Value::Document(bytes.into()),
                }
            }
        })
    }

    /// Appends the value in msgpack.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => msgpack::encode_nil(out),
            Value::Bool(value) => msgpack::encode_bool(out, *value),
            Value::Int(value) => msgpack::encode_int(out, *value),
            Value::Uint(value) => msgpack::encode_uint(out, *value),
            Value::Double(value) => msgpack::encode_f64(out, *value),
            Value::Text(text) => msgpack::encode_str(out, text.as_bytes()),
            Value::Bytes(bytes) => msgpack::encode_bin(out, bytes),
            Value::Document(bytes) => out.extend_from_slice(bytes),
            Value::Decimal(value) => {
                let mut body = Vec::new();
                value.encode(&mut body);
                msgpack::encode_ext(out, msgpack::EXT_DECIMAL, &body);
            }
            Value::Uuid(value) => msgpack::encode_ext(out, msgpack::EXT_UUID, &value[..]),
            Value::Datetime(value) => value.encode(out),
            Value::Interval(value) => value.encode(out),
        }
    }

    /// Bytes of memory that it takes beside itself, about.
    pub fn weight(&self) -> usize {
        match self {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) => 0,
            Value::Text(text) => text.len() + 24,
            Value::Bytes(bytes) | Value::Document(bytes) => bytes.len() + 24,
            Value::Decimal(_) | Value::Uuid(_) | Value::Datetime(_) => 64,
            Value::Interval(_) => 96,
        }
    }

    fn class(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Decimal(_) => 2,
            Value::Text(_) => 3,
            Value::Bytes(_) => 4,
            Value::Uuid(_) => 5,
            Value::Datetime(_) => 6,
            Value::Interval(_) => 7,
            Value::Document(_) => 8,
        }
    }

    /// Where two values stand to each other in the one order of all values. Nulls are equal, and before all others.
    #[inline]
    pub fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => self.order_slowly(other),
        }
    }

    fn order_slowly(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::Document(a), Value::Document(b)) if a == b => Ordering::Equal,
            (Value::Document(a), Value::Document(b)) => order_documents(self, other).unwrap_or_else(|| a.cmp(b)),
            (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
            (Value::Datetime(a), Value::Datetime(b)) => (a.seconds, a.nanoseconds).cmp(&(b.seconds, b.nanoseconds)),
            (Value::Interval(a), Value::Interval(b)) => span_of(a).cmp(&span_of(b)),
            _ if self.class() != other.class() => self.class().cmp(&other.class()),
            (Value::Null, _) => Ordering::Equal,
            _ => order_numbers(self, other),
        }
    }
}

/// Arrays by the first elements that differ, nulls behind all others; then the shorter one. None: one is no array, or they are equal so.
fn order_documents(a: &Value, b: &Value) -> Option<Ordering> {
    let is_array = |value: &Value| match value {
        Value::Document(bytes) => matches!(bytes.first(), Some(0x90..=0x9f | 0xdc | 0xdd)),
        _ => false,
    };
    if !is_array(a) || !is_array(b) {
        return None;
    }
    let (a, b) = (crate::array::elements(a), crate::array::elements(b));
    for (a, b) in a.iter().zip(&b) {
        let order = match (a.is_null(), b.is_null()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => a.order(b),
        };
        if order != Ordering::Equal {
            return Some(order);
        }
    }
    Some(a.len().cmp(&b.len())).filter(|order| *order != Ordering::Equal)
}

/// About how long an interval is, in nanoseconds, with months of 30 days.
fn span_of(interval: &Interval) -> i128 {
    let [years, months, weeks, days, hours, minutes, seconds, nanoseconds] = interval.fields.map(i128::from);
    let days = years * 360 + months * 30 + weeks * 7 + days;
    ((days * 24 + hours) * 60 + minutes) * 60_000_000_000 + seconds * 1_000_000_000 + nanoseconds
}

fn order_numbers(a: &Value, b: &Value) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_integer(), b.as_integer()) {
        return a.cmp(&b);
    }
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => order_doubles(*a, *b),
        (Value::Double(a), b) => order_double_with(*a, b),
        (a, Value::Double(b)) => order_double_with(*b, a).reverse(),
        _ => match (a.as_decimal(), b.as_decimal()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Ordering::Equal,
        },
    }
}

/// NaN is above all numbers, and equal to itself.
fn order_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn order_double_with(a: f64, b: &Value) -> Ordering {
    let rounded = order_doubles(a, b.as_double().unwrap_or(0.0));
    if rounded != Ordering::Equal || a.abs() < 9_007_199_254_740_992.0 && b.as_integer().is_some() {
        return rounded;
    }
    // The double stands for the exact value nearest to it: look at all digits.
    match (Value::Double(a).as_decimal(), b.as_decimal()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => rounded,
    }
}

/// A value as part of a key of a hash table: equal where the order says so.
#[derive(Clone, Debug)]
pub(crate) struct HashedValue(pub(crate) Value);

impl PartialEq for HashedValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.order(&other.0) == Ordering::Equal
    }
}

impl Eq for HashedValue {}

impl Hash for HashedValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Value::Null => state.write_u8(0),
            Value::Bool(value) => state.write_u8(1 + u8::from(*value)),
            Value::Text(text) => state.write(text.as_bytes()),
            Value::Bytes(bytes) | Value::Document(bytes) => state.write(bytes),
            Value::Uuid(bytes) => state.write(&bytes[..]),
            Value::Datetime(moment) => {
                state.write_i64(moment.seconds);
                state.write_i32(moment.nanoseconds);
            }
            Value::Interval(interval) => state.write_i128(span_of(interval)),
            Value::Int(value) => state.write_u64((*value as f64).to_bits()),
            // Numbers of different kinds are equal where their nearest doubles are, or else not equal at all.
            number => state.write_u64((number.as_double().unwrap_or(0.0) + 0.0).to_bits()),
        }
    }
}
