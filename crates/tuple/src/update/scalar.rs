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

/// What arithmetic, bits or splice make of a value.
pub(super) fn change(operation: &Operation<'_>, old: &[u8]) -> Result<Vec<u8>, UpdateError> {
    match operation.code {
        '+' | '-' => arithmetic(operation, old),
        ':' => splice(operation, old),
        _ => {
            let argument = Reader::new(operation.arguments[0]).read_uint().unwrap_or(0);
            let Ok(value) = Reader::new(old).read_uint() else {
                return Err(operation.wrong_argument("a positive integer"));
            };
            let mut out = Vec::with_capacity(9);
            msgpack::encode_uint(
                &mut out,
                match operation.code {
                    '&' => value & argument,
                    '|' => value | argument,
                    _ => value ^ argument,
                },
            );
            Ok(out)
        }
    }
}

fn arithmetic(operation: &Operation<'_>, old: &[u8]) -> Result<Vec<u8>, UpdateError> {
    let (Some(left), Some(right)) = (Operand::read(old), Operand::read(operation.arguments[0])) else {
        return Err(operation.wrong_argument("a number"));
    };
    let is_sum = operation.code == '+';
    let mut out = Vec::with_capacity(9);
    match (left, right) {
        (Operand::Integer(a), Operand::Integer(b)) => {
            let result = if is_sum { a + b } else { a - b };
            if let Ok(result) = u64::try_from(result) {
                msgpack::encode_uint(&mut out, result);
            } else if let Ok(result) = i64::try_from(result) {
                msgpack::encode_int(&mut out, result);
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
            msgpack::encode_ext(&mut out, EXT_DECIMAL, &body);
        }
        (a, b) => {
            let (x, y) = (a.to_f64(), b.to_f64());
            let result = if is_sum { x + y } else { x - y };
            // As Tarantool: four bytes if they are the same number. Infinity takes eight.
            let single = result as f32;
            if f64::from(single) == result && single.is_finite() {
                msgpack::encode_f32(&mut out, single);
            } else {
                msgpack::encode_f64(&mut out, result);
            }
        }
    }
    Ok(out)
}

fn splice(operation: &Operation<'_>, old: &[u8]) -> Result<Vec<u8>, UpdateError> {
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
    let mut out = Vec::with_capacity(result.len() + 5);
    msgpack::encode_str(&mut out, &result);
    Ok(out)
}
