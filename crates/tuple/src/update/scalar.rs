//! Operations on one value: arithmetic, bits, splice.

use super::UpdateError;
use super::operation::Operation;
use crate::decimal::Decimal;
use crate::msgpack::{self, EXT_DECIMAL, Kind, Reader};

/// A number that arithmetic is done with, by the kind it came in.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Integer(i128),
    Float(f32),
    Double(f64),
    Decimal(Decimal),
}

impl Operand {
    /// Reads a number; `None` if the value is of another kind.
    pub(super) fn read(value: &[u8]) -> Option<Operand> {
        let mut reader = Reader::new(value);
        match reader.kind().ok()? {
            Kind::Uint | Kind::Int => reader.read_i128().ok().map(Operand::Integer),
            Kind::Float => reader.read_double().ok().map(|value| Operand::Float(value as f32)),
            Kind::Double => reader.read_double().ok().map(Operand::Double),
            Kind::Ext => match reader.read_ext().ok()? {
                (EXT_DECIMAL, body) => Decimal::decode(body).map(Operand::Decimal),
                _ => None,
            },
            _ => None,
        }
    }

    fn to_f64(self) -> f64 {
        match self {
            Operand::Integer(value) => value as f64,
            Operand::Float(value) => f64::from(value),
            Operand::Double(value) => value,
            Operand::Decimal(value) => value.to_f64(),
        }
    }

    fn to_decimal(self) -> Option<Decimal> {
        match self {
            Operand::Integer(value) => Decimal::new(value, 0),
            Operand::Float(value) => Decimal::from_f64(f64::from(value)),
            Operand::Double(value) => Decimal::from_f64(value),
            Operand::Decimal(value) => Some(value),
        }
    }
}

/// Appends what arithmetic, bits or splice make of a value. On an error nothing is appended.
pub(super) fn change(operation: &Operation<'_>, old: &[u8], out: &mut Vec<u8>) -> Result<(), UpdateError> {
    match operation.code {
        '+' | '-' => arithmetic(operation, old, out),
        ':' => splice(operation, old, out),
        _ => {
            let argument = Reader::new(operation.arguments[0]).read_uint().unwrap_or(0);
            let Ok(value) = Reader::new(old).read_uint() else {
                return Err(operation.wrong_argument("a positive integer"));
            };
            msgpack::encode_uint(
                out,
                match operation.code {
                    '&' => value & argument,
                    '|' => value | argument,
                    _ => value ^ argument,
                },
            );
            Ok(())
        }
    }
}

/// A sum that fits four bytes takes eight in a field of doubles: rewrites the number that `out` ends with from `at` on.
pub(super) fn widen(out: &mut Vec<u8>, at: usize, is_double: impl FnOnce() -> bool) {
    let mut made = Reader::new(&out[at..]);
    if made.kind() == Ok(Kind::Float)
        && is_double()
        && let Ok(value) = made.read_double()
    {
        out.truncate(at);
        msgpack::encode_f64(out, value);
    }
}

fn arithmetic(operation: &Operation<'_>, old: &[u8], out: &mut Vec<u8>) -> Result<(), UpdateError> {
    let (Some(left), Some(right)) = (Operand::read(old), Operand::read(operation.arguments[0])) else {
        return Err(operation.wrong_argument("a number"));
    };
    let is_sum = operation.code == '+';
    match (left, right) {
        (Operand::Integer(a), Operand::Integer(b)) => {
            let result = if is_sum { a + b } else { a - b };
            if let Ok(result) = u64::try_from(result) {
                msgpack::encode_uint(out, result);
            } else if let Ok(result) = i64::try_from(result) {
                msgpack::encode_int(out, result);
            } else {
                return Err(UpdateError::IntegerOverflow { operation: operation.code, field: operation.field_text() });
            }
        }
        (Operand::Decimal(_), _) | (_, Operand::Decimal(_)) => {
            let (Some(a), Some(b)) = (left.to_decimal(), right.to_decimal()) else {
                return Err(operation.wrong_argument("a number convertible to decimal"));
            };
            let result = if is_sum { a.checked_add(b) } else { a.checked_sub(b) };
            let Some(result) = result else {
                return Err(UpdateError::DecimalOverflow { operation: operation.code, field: operation.field_text() });
            };
            let mut body = Vec::new();
            result.encode(&mut body);
            msgpack::encode_ext(out, EXT_DECIMAL, &body);
        }
        (a, b) => {
            let (x, y) = (a.to_f64(), b.to_f64());
            let result = if is_sum { x + y } else { x - y };
            // As Tarantool: four bytes if they are the same number. Infinity takes eight.
            let single = result as f32;
            if f64::from(single) == result && single.is_finite() {
                msgpack::encode_f32(out, single);
            } else {
                msgpack::encode_f64(out, result);
            }
        }
    }
    Ok(())
}

fn splice(operation: &Operation<'_>, old: &[u8], out: &mut Vec<u8>) -> Result<(), UpdateError> {
    let Ok(text) = Reader::new(old).read_str() else {
        return Err(operation.wrong_argument("a string"));
    };
    let number = |at: usize| Reader::new(operation.arguments[at]).read_int().unwrap_or(0);
    let paste = Reader::new(operation.arguments[2]).read_str().unwrap_or(b"");
    let length = text.len() as i64;
    let mut offset = number(0);
    if offset < 0 {
        if offset < -(length + 1) {
            return Err(UpdateError::Splice { field: operation.field_text(), what: "offset is out of bound" });
        }
        offset += length + 1;
    } else {
        // The operation was refused if it lies before the first.
        offset = (offset - operation.index_base).clamp(0, length);
    }
    let rest = length - offset;
    let cut = number(1);
    let cut = if cut < 0 { (rest + cut).max(0) } else { cut.min(rest) };
    let mut result = Vec::with_capacity(text.len() + paste.len());
    result.extend_from_slice(&text[..offset as usize]);
    result.extend_from_slice(paste);
    result.extend_from_slice(&text[(offset + cut) as usize..]);
    msgpack::encode_str(out, &result);
    Ok(())
}
