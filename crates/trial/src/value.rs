//! A msgpack value, as clients and checkers handle it.

use tuple::msgpack::{self, Kind, Reader};

/// Strings of equal bytes from this length on are kept as byte and count: a history holds many large rows.
const REPEAT_BYTES_MIN: usize = 32;

/// A value. Numbers that are not negative are always `Uint`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the specification's words")]
pub enum Value {
    Nil,
    Bool(bool),
    Uint(u64),
    /// A negative number.
    Int(i64),
    Double(f64),
    /// Text or binary.
    Str(Vec<u8>),
    /// A string of at least 32 equal bytes. A string with one other byte among them is a `Str`, so a torn one is never equal to it.
    Repeat {
        byte: u8,
        count: u32,
    },
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    /// An extension, with its head, as it came.
    Extension(Vec<u8>),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Uint(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::text(text.as_bytes())
    }
}

impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Self {
        Value::Array(values)
    }
}

impl Value {
    /// A string.
    pub fn text(bytes: &[u8]) -> Self {
        match bytes {
            [byte, ..] if bytes.len() >= REPEAT_BYTES_MIN && bytes.iter().all(|other| other == byte) => {
                Value::Repeat { byte: *byte, count: bytes.len() as u32 }
            }
            _ => Value::Str(bytes.to_vec()),
        }
    }

    /// A string of equal bytes.
    pub fn repeat(byte: u8, count: u32) -> Self {
        if (count as usize) < REPEAT_BYTES_MIN {
            return Value::Str(vec![byte; count as usize]);
        }
        Value::Repeat { byte, count }
    }

    /// An array of numbers.
    pub fn numbers(numbers: &[u64]) -> Self {
        Value::Array(numbers.iter().map(|number| Value::Uint(*number)).collect())
    }

    /// The number, if it is one that is not negative.
    pub fn uint(&self) -> Option<u64> {
        match self {
            Value::Uint(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements; none if this is no array.
    pub fn array(&self) -> &[Value] {
        match self {
            Value::Array(values) => values,
            _ => &[],
        }
    }

    /// The number at a place of an array.
    pub fn uint_at(&self, at: usize) -> Option<u64> {
        self.array().get(at)?.uint()
    }

    /// Appends the value as msgpack.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Nil => msgpack::encode_nil(out),
            Value::Bool(flag) => msgpack::encode_bool(out, *flag),
            Value::Uint(number) => msgpack::encode_uint(out, *number),
            Value::Int(number) => msgpack::encode_int(out, *number),
            Value::Double(number) => msgpack::encode_f64(out, *number),
            Value::Str(bytes) => msgpack::encode_str(out, bytes),
            Value::Repeat { byte, count } => msgpack::encode_str(out, &vec![*byte; *count as usize]),
            Value::Array(values) => {
                msgpack::encode_array(out, values.len() as u32);
                values.iter().for_each(|value| value.encode(out));
            }
            Value::Map(entries) => {
                msgpack::encode_map(out, entries.len() as u32);
                for (key, value) in entries {
                    key.encode(out);
                    value.encode(out);
                }
            }
            Value::Extension(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// Reads one value from the start of `bytes`, which may be anything. `None`: they are no msgpack.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        msgpack::check(bytes).ok()?;
        Self::read(&mut Reader::new(bytes))
    }

    /// Reads the next value. `None`: there is none.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.kind().ok()? {
            Kind::Nil => {
                reader.read_nil().ok()?;
                Value::Nil
            }
            Kind::Bool => Value::Bool(reader.read_bool().ok()?),
            Kind::Uint => Value::Uint(reader.read_uint().ok()?),
            // A signed form may hold a number that is not negative.
            Kind::Int => match reader.read_int().ok()? {
                number if number >= 0 => Value::Uint(number as u64),
                number => Value::Int(number),
            },
            Kind::Float | Kind::Double => Value::Double(reader.read_double().ok()?),
            Kind::Str | Kind::Bin => Value::text(reader.read_str_or_bin().ok()?),
            Kind::Array => {
                let count = reader.read_array().ok()?;
                Value::Array((0..count).map(|_| Self::read(reader)).collect::<Option<_>>()?)
            }
            Kind::Map => {
                let count = reader.read_map().ok()?;
                let entry = |reader: &mut Reader<'_>| Some((Self::read(reader)?, Self::read(reader)?));
                Value::Map((0..count).map(|_| entry(reader)).collect::<Option<_>>()?)
            }
            Kind::Ext => Value::Extension(reader.read_value().ok()?.to_vec()),
        })
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Nil => write!(f, "nil"),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Uint(number) => write!(f, "{number}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Double(number) => write!(f, "{number}"),
            Value::Str(bytes) => write!(f, "'{}'", String::from_utf8_lossy(bytes)),
            Value::Repeat { byte, count } => write!(f, "'{}' x {count}", char::from(*byte)),
            Value::Array(values) => {
                write!(f, "{{")?;
                for (at, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if at == 0 { "" } else { ", " })?;
                }
                write!(f, "}}")
            }
            Value::Map(entries) => write!(f, "a map of {}", entries.len()),
            Value::Extension(_) => write!(f, "an extension"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn values_survive_their_bytes() {
        let value = Value::Array(vec![
            Value::Nil,
            true.into(),
            7.into(),
            Value::Int(-7),
            Value::Double(1.5),
            "text".into(),
            Value::repeat(b'x', 100_000),
            Value::Map(vec![(1.into(), "a".into())]),
        ]);
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(Value::decode(&bytes), Some(value));
        assert_eq!(Value::decode(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn a_torn_string_is_not_equal_to_a_whole_one() {
        let mut torn = vec![b'x'; 1000];
        assert_eq!(Value::text(&torn), Value::repeat(b'x', 1000));
        torn[999] = 0;
        assert_ne!(Value::text(&torn), Value::repeat(b'x', 1000));
    }
}
