//! Decoded values: what the workloads look at in answers.

use tuple::msgpack::{self, Kind, Reader};

/// A decoded value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// Wide enough for all signed and unsigned numbers.
    Int(i128),
    /// A floating-point number.
    Double(f64),
    /// Text or binary; bytes that are no UTF-8 are replaced, for they are only shown.
    Str(String),
    /// Values in a row.
    Array(Vec<Value>),
    /// Names and values.
    Map(Vec<(Value, Value)>),
    /// A value of an extension, not looked into.
    Extension(i8, Vec<u8>),
}

impl Value {
    /// Reads an encoded value. None: the bytes are not exactly one.
    pub fn decode(bytes: &[u8]) -> Option<Value> {
        if msgpack::check(bytes) != Ok(bytes.len()) {
            return None;
        }
        read(&mut Reader::new(bytes))
    }

    /// The number, if it is one from 0 up.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Value::Int(value) => u64::try_from(*value).ok(),
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

    /// The value of a numeric key, out of a map.
    pub fn field(self, key: u64) -> Option<Value> {
        match self {
            Value::Map(fields) => {
                fields.into_iter().find(|(name, _)| *name == Value::Int(i128::from(key))).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// Reads a value of bytes that were checked, so that neither their depth nor their lengths need a bound here.
fn read(reader: &mut Reader<'_>) -> Option<Value> {
    let text = |bytes: &[u8]| Value::Str(String::from_utf8_lossy(bytes).into_owned());
    Some(match reader.kind().ok()? {
        Kind::Nil => {
            reader.read_nil().ok()?;
            Value::Nil
        }
        Kind::Bool => Value::Bool(reader.read_bool().ok()?),
        Kind::Uint | Kind::Int => Value::Int(reader.read_i128().ok()?),
        Kind::Float | Kind::Double => Value::Double(reader.read_double().ok()?),
        Kind::Str | Kind::Bin => text(reader.read_str_or_bin().ok()?),
        Kind::Array => {
            let count = reader.read_array().ok()?;
            Value::Array((0..count).map(|_| read(reader)).collect::<Option<_>>()?)
        }
        Kind::Map => {
            let count = reader.read_map().ok()?;
            Value::Map((0..count).map(|_| Some((read(reader)?, read(reader)?))).collect::<Option<_>>()?)
        }
        Kind::Ext => {
            let (kind, body) = reader.read_ext().ok()?;
            Value::Extension(kind, body.to_vec())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_family_are_read() {
        let check = |bytes: &[u8], value: Value| assert_eq!(Value::decode(bytes), Some(value), "{bytes:x?}");
        check(&[0xff], Value::Int(-1));
        check(&[0xd1, 0xff, 0x00], Value::Int(-256));
        check(&[0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Value::Double(1.5));
        check(&[0xc4, 1, b'a'], Value::Str("a".into()));
        check(&[0xdc, 0, 1, 0xc0], Value::Array(vec![Value::Nil]));
        check(&[0xde, 0, 1, 0x01, 0xc3], Value::Map(vec![(Value::Int(1), Value::Bool(true))]));
        check(&[0xd4, 0x05, 0x09], Value::Extension(5, vec![9]));
        check(&[0xc7, 2, 0xff, 1, 2], Value::Extension(-1, vec![1, 2]));
    }

    #[test]
    fn bytes_that_are_no_value_are_refused() {
        assert_eq!(Value::decode(&[0xdd, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(Value::decode(&[0x91; 10_000]), None);
        assert_eq!(Value::decode(&[]), None);
        assert_eq!(Value::decode(&[1, 2]), None);
    }
}
