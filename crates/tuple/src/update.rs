//! Update operations: `= + - & ^ | : ! #` on fields and on values inside them.
//!
//! Operations are an array of arrays `[op, field, arguments...]`. A field is a number from `index_base`, a negative number from the end, a
//! declared name, or a JSON path. Rules (types, overflow, which combinations are refused) are those of Tarantool 2.6, read
//! off its answers.

use crate::decimal::Decimal;
use crate::format::Format;
use crate::msgpack::{self, EXT_DECIMAL, Kind, MsgpackError, Reader};
use crate::number::Number;
use crate::path::{self, Step};
use std::borrow::Cow;

/// Most operations of one update.
pub const OPERATIONS_MAX: u32 = 4000;

/// Why operations cannot be applied.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateError {
    /// Not msgpack.
    Msgpack(MsgpackError),
    /// The operations as a whole or one of them is no array as wanted; in Tarantool's words.
    Illegal(&'static str),
    /// Operation number (from 1) that is not known or has a wrong number of arguments; in Tarantool's words.
    Unknown(u32, String),
    /// An argument or field of a type that the operation cannot work on.
    ArgumentType {
        /// The operation.
        operation: char,
        /// The field as given.
        field: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A splice that makes no sense.
    Splice {
        /// The field as given.
        field: String,
        /// Why.
        what: &'static str,
    },
    /// No field with this number, as given.
    NoFieldNumber(i64),
    /// No field with this name or path.
    NoFieldName(String),
    /// The operation makes no sense for the field.
    Field {
        /// The field as given.
        field: String,
        /// Why.
        what: String,
    },
    /// The result fits neither signed nor unsigned 64 bits.
    IntegerOverflow {
        /// The operation.
        operation: char,
        /// The field as given.
        field: String,
    },
    /// The result has more than 38 digits.
    DecimalOverflow {
        /// The operation.
        operation: char,
        /// The field as given.
        field: String,
    },
}

/// The field an operation names.
enum Target<'a> {
    Number(i64),
    Name(&'a str),
}

struct Operation<'a> {
    code: char,
    target: Target<'a>,
    index_base: u32,
    /// Raw arguments behind the field.
    arguments: Vec<&'a [u8]>,
}

impl Operation<'_> {
    /// The field as messages show it.
    fn field_text(&self) -> String {
        match &self.target {
            Target::Number(number) if *number < 0 => number.to_string(),
            Target::Number(number) => (number - i64::from(self.index_base) + 1).to_string(),
            Target::Name(name) => format!("'{name}'"),
        }
    }

    fn wrong_argument(&self, expected: &'static str) -> UpdateError {
        UpdateError::ArgumentType { operation: self.code, field: self.field_text(), expected }
    }
}

fn parse<'a>(ops: &'a [u8], index_base: u32) -> Result<Vec<Operation<'a>>, UpdateError> {
    msgpack::check(ops).map_err(UpdateError::Msgpack)?;
    let mut reader = Reader::new(ops);
    let count = reader
        .read_array()
        .map_err(|_| UpdateError::Illegal("update operations must be an array {{op,..}, {op,..}}"))?;
    if count > OPERATIONS_MAX {
        return Err(UpdateError::Illegal("too many operations for update"));
    }
    let mut operations = Vec::with_capacity(count as usize);
    for number in 1..=count {
        let length =
            reader.read_array().map_err(|_| UpdateError::Illegal("update operation must be an array {op,..}"))?;
        if length == 0 {
            return Err(UpdateError::Illegal("update operation must be an array {op,..}, got empty array"));
        }
        let code = reader.read_str().map_err(|_| UpdateError::Illegal("update operation name must be a string"))?;
        let code = match code {
            [one] if b"=+-&^|:!#".contains(one) => char::from(*one),
            other => return Err(UpdateError::Unknown(number, format!("\"{}\"", String::from_utf8_lossy(other)))),
        };
        let expected = if code == ':' { 5 } else { 3 };
        if length != expected {
            let what = format!("wrong number of arguments, expected {expected}, got {length}");
            return Err(UpdateError::Unknown(number, what));
        }
        let target = match reader.kind() {
            Ok(Kind::Uint | Kind::Int) => match reader.read_int() {
                Ok(value) if (0..i64::from(index_base)).contains(&value) => {
                    return Err(UpdateError::NoFieldNumber(value));
                }
                Ok(value) => Target::Number(value),
                Err(_) => return Err(UpdateError::Illegal("field id must be a number")),
            },
            Ok(Kind::Str) => match std::str::from_utf8(reader.read_str().map_err(UpdateError::Msgpack)?) {
                Ok(name) => Target::Name(name),
                Err(_) => return Err(UpdateError::Illegal("field name must be valid UTF-8")),
            },
            _ => return Err(UpdateError::Illegal("field id must be a number")),
        };
        let mut arguments = Vec::with_capacity(3);
        for _ in 2..length {
            arguments.push(reader.read_value().map_err(UpdateError::Msgpack)?);
        }
        let operation = Operation { code, target, index_base, arguments };
        check_arguments(&operation)?;
        operations.push(operation);
    }
    Ok(operations)
}

/// What can be said of the arguments without the row.
fn check_arguments(operation: &Operation<'_>) -> Result<(), UpdateError> {
    let first = operation.arguments[0];
    match operation.code {
        '+' | '-' if Number::read(first).is_none() => Err(operation.wrong_argument("a number")),
        '&' | '|' | '^' if Reader::new(first).read_uint().is_err() => {
            Err(operation.wrong_argument("a positive integer"))
        }
        ':' => {
            let is_integer = |raw: &[u8]| Reader::new(raw).read_int().is_ok();
            if !is_integer(operation.arguments[0]) || !is_integer(operation.arguments[1]) {
                return Err(operation.wrong_argument("an integer"));
            }
            if Reader::new(operation.arguments[2]).read_str().is_err() {
                return Err(operation.wrong_argument("a string"));
            }
            Ok(())
        }
        '#' => match Reader::new(first).read_uint() {
            Ok(0) => Err(UpdateError::Field { field: operation.field_text(), what: "cannot delete 0 fields".into() }),
            Ok(_) => Ok(()),
            Err(_) => Err(operation.wrong_argument("a positive integer")),
        },
        _ => Ok(()),
    }
}

/// Checks operations (any bytes) as far as that is possible without a row.
pub fn check_ops(ops: &[u8], index_base: u32) -> Result<(), UpdateError> {
    parse(ops, index_base).map(|_| ())
}

struct Field<'a> {
    bytes: Cow<'a, [u8]>,
    /// The operation that changed it as a whole.
    changed_by: Option<char>,
}

/// Applies operations (any bytes) to a row and appends the new row to `out`.
pub fn apply(
    ops: &[u8],
    row: &[u8],
    format: Option<&Format>,
    index_base: u32,
    out: &mut Vec<u8>,
) -> Result<(), UpdateError> {
    let operations = parse(ops, index_base)?;
    let mut fields = split(row);
    for operation in &operations {
        apply_one(operation, &mut fields, format)?;
    }
    join(&fields, out);
    Ok(())
}

/// As `apply`, but an operation that cannot be applied is passed over, as the upsert of Tarantool does. Malformed operations are
/// still refused.
pub fn upsert(
    ops: &[u8],
    row: &[u8],
    format: Option<&Format>,
    index_base: u32,
    out: &mut Vec<u8>,
) -> Result<(), UpdateError> {
    let operations = parse(ops, index_base)?;
    let mut fields = split(row);
    for operation in &operations {
        // A refused operation has changed nothing.
        let _ = apply_one(operation, &mut fields, format);
    }
    join(&fields, out);
    Ok(())
}

fn split(row: &[u8]) -> Vec<Field<'_>> {
    let mut reader = Reader::new(row);
    let count = reader.read_array().unwrap_or(0);
    (0..count)
        .map(|_| {
            let rest = reader.rest();
            let start = reader.position();
            reader.skip_checked();
            Field { bytes: Cow::Borrowed(&rest[..reader.position() - start]), changed_by: None }
        })
        .collect()
}

fn join(fields: &[Field<'_>], out: &mut Vec<u8>) {
    msgpack::encode_array(out, fields.len() as u32);
    for field in fields {
        out.extend_from_slice(&field.bytes);
    }
}

fn apply_one<'a>(
    operation: &Operation<'a>,
    fields: &mut Vec<Field<'a>>,
    format: Option<&Format>,
) -> Result<(), UpdateError> {
    let number = match operation.target {
        Target::Number(number) => number,
        Target::Name(name) => match format.and_then(|format| format.field_no(name)) {
            Some(field_no) => i64::from(field_no) + i64::from(operation.index_base),
            None => return apply_path(operation, name, fields, format),
        },
    };
    let missing = || match operation.target {
        Target::Name(name) => UpdateError::NoFieldName(name.to_string()),
        Target::Number(number) if number < 0 => UpdateError::NoFieldNumber(number),
        Target::Number(number) => {
            UpdateError::NoFieldNumber((number - i64::from(operation.index_base)).saturating_add(1))
        }
    };
    let count = fields.len() as i64;
    // An insertion may go behind the last field, and counts so from the end.
    let from_end = if operation.code == '!' { count + 1 } else { count };
    let at = if number < 0 { from_end + number } else { number - i64::from(operation.index_base) };
    let is_append = at == count && matches!(operation.code, '=' | '!');
    if at < 0 || at > count || at == count && !is_append {
        return Err(missing());
    }
    let at = at as usize;
    match operation.code {
        '=' if is_append => {
            fields.push(Field { bytes: Cow::Borrowed(operation.arguments[0]), changed_by: Some('=') });
        }
        '!' => fields.insert(at, Field { bytes: Cow::Borrowed(operation.arguments[0]), changed_by: Some('!') }),
        '#' => {
            let length = Reader::new(operation.arguments[0]).read_uint().unwrap_or(1);
            let end = (at as u64).saturating_add(length).min(fields.len() as u64) as usize;
            fields.drain(at..end);
        }
        code => {
            let field = &mut fields[at];
            if field.changed_by.is_some_and(|before| code != '=' || !matches!(before, '=' | '!')) {
                let what = "double update of the same field".to_string();
                return Err(UpdateError::Field { field: operation.field_text(), what });
            }
            field.bytes = change(operation, &field.bytes)?;
            field.changed_by = Some(code);
        }
    }
    Ok(())
}

/// The new value of something that exists: for `=`, arithmetic, bits and splice.
fn change<'a>(operation: &Operation<'a>, old: &[u8]) -> Result<Cow<'a, [u8]>, UpdateError> {
    match operation.code {
        '=' => Ok(Cow::Borrowed(operation.arguments[0])),
        '+' | '-' => arithmetic(operation, old).map(Cow::Owned),
        '&' | '|' | '^' => {
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
            Ok(Cow::Owned(out))
        }
        _ => splice(operation, old).map(Cow::Owned),
    }
}

fn arithmetic(operation: &Operation<'_>, old: &[u8]) -> Result<Vec<u8>, UpdateError> {
    let (Some(left), Some(right)) = (Number::read(old), Number::read(operation.arguments[0])) else {
        return Err(operation.wrong_argument("a number"));
    };
    let is_sum = operation.code == '+';
    let mut out = Vec::with_capacity(9);
    match (left, right) {
        (Number::Integer(a), Number::Integer(b)) => {
            let result = if is_sum { a + b } else { a - b };
            if let Ok(result) = u64::try_from(result) {
                msgpack::encode_uint(&mut out, result);
            } else if let Ok(result) = i64::try_from(result) {
                msgpack::encode_int(&mut out, result);
            } else {
                return Err(UpdateError::IntegerOverflow { operation: operation.code, field: operation.field_text() });
            }
        }
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            let overflow = || UpdateError::DecimalOverflow { operation: operation.code, field: operation.field_text() };
            let decimal = |number| match number {
                Number::Integer(value) => Decimal::new(value, 0),
                Number::Double(value) => Decimal::from_f64(value),
                Number::Decimal(value) => Some(value),
            };
            let (Some(a), Some(b)) = (decimal(left), decimal(right)) else {
                return Err(overflow());
            };
            let result = if is_sum { a.checked_add(b) } else { a.checked_sub(b) };
            let mut body = Vec::new();
            result.ok_or_else(overflow)?.encode(&mut body);
            msgpack::encode_ext(&mut out, EXT_DECIMAL, &body);
        }
        (a, b) => {
            let (x, y) = (a.to_f64(), b.to_f64());
            let result = if is_sum { x + y } else { x - y };
            let is_single = |raw: &[u8], number: &Number| {
                matches!(number, Number::Integer(_)) || Reader::new(raw).kind() == Ok(Kind::Float)
            };
            if is_single(old, &a) && is_single(operation.arguments[0], &b) {
                msgpack::encode_f32(&mut out, result as f32);
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
    let out_of_bound = || UpdateError::Splice { field: operation.field_text(), what: "offset is out of bound" };
    let mut offset = number(0);
    if offset < 0 {
        if offset < -(length + 1) {
            return Err(out_of_bound());
        }
        offset += length + 1;
    } else {
        offset -= i64::from(operation.index_base);
        if offset < 0 {
            return Err(out_of_bound());
        }
        offset = offset.min(length);
    }
    let rest = length - offset;
    let cut = number(1);
    let cut = if cut < 0 { (rest.saturating_add(cut)).max(0) } else { cut.min(rest) };
    let mut result = Vec::with_capacity(text.len() + paste.len());
    result.extend_from_slice(&text[..offset as usize]);
    result.extend_from_slice(paste);
    result.extend_from_slice(&text[(offset + cut) as usize..]);
    let mut out = Vec::with_capacity(result.len() + 5);
    msgpack::encode_str(&mut out, &result);
    Ok(out)
}

/// An operation on something inside a field.
fn apply_path<'a>(
    operation: &Operation<'a>,
    text: &str,
    fields: &mut [Field<'a>],
    format: Option<&Format>,
) -> Result<(), UpdateError> {
    let missing = || UpdateError::NoFieldName(text.to_string());
    let steps = path::parse(text, operation.index_base).ok_or_else(missing)?;
    let at = match &steps[0] {
        Step::Index(index) => *index,
        Step::Key(name) => format.and_then(|format| format.field_no(name)).ok_or_else(missing)?,
    };
    let field = fields.get_mut(at as usize).ok_or_else(missing)?;
    if field.changed_by.is_some() {
        let what = "double update of the same field".to_string();
        return Err(UpdateError::Field { field: operation.field_text(), what });
    }
    if steps.len() == 1 {
        field.bytes = change(operation, &field.bytes)?;
        field.changed_by = Some(operation.code);
        return Ok(());
    }
    let mut out = Vec::with_capacity(field.bytes.len() + 16);
    rewrite(operation, &field.bytes, &steps[1..], &mut out)?.then_some(()).ok_or_else(missing)?;
    field.bytes = Cow::Owned(out);
    Ok(())
}

/// Copies `value` to `out` with the operation applied at the end of `steps`. False if there is no such place.
fn rewrite(operation: &Operation<'_>, value: &[u8], steps: &[Step], out: &mut Vec<u8>) -> Result<bool, UpdateError> {
    let mut reader = Reader::new(value);
    let is_last = steps.len() == 1;
    match (&steps[0], reader.kind()) {
        (Step::Index(index), Ok(Kind::Array)) => {
            let count = reader.read_array().unwrap_or(0);
            let index = *index;
            let is_append = is_last && index == count && matches!(operation.code, '=' | '!');
            if index >= count && !is_append {
                return Ok(false);
            }
            let (mut removed, mut added) = (0, u32::from(is_append));
            match operation.code {
                '#' if is_last => {
                    let wanted = Reader::new(operation.arguments[0]).read_uint().unwrap_or(1);
                    removed = wanted.min(u64::from(count - index)) as u32;
                }
                '!' if is_last => added = 1,
                _ => {}
            }
            msgpack::encode_array(out, count - removed + added);
            for at in 0..count {
                let element = reader.read_value().map_err(UpdateError::Msgpack)?;
                if at < index || at > index && at >= index + removed {
                    out.extend_from_slice(element);
                } else if at == index && removed == 0 {
                    if !is_last {
                        if !rewrite(operation, element, &steps[1..], out)? {
                            return Ok(false);
                        }
                    } else if operation.code == '!' {
                        out.extend_from_slice(operation.arguments[0]);
                        out.extend_from_slice(element);
                    } else {
                        out.extend_from_slice(&change(operation, element)?);
                    }
                }
            }
            if is_append {
                out.extend_from_slice(operation.arguments[0]);
            }
            Ok(true)
        }
        (Step::Key(key), Ok(Kind::Map)) => {
            let count = reader.read_map().unwrap_or(0);
            let pairs_start = reader;
            let has_key = (0..count).any(|_| {
                let name = reader.rest();
                reader.skip_checked();
                reader.skip_checked();
                Reader::new(name).read_str() == Ok(key.as_bytes())
            });
            let is_new = !has_key && is_last && matches!(operation.code, '=' | '!');
            if !has_key && !is_new {
                return Ok(false);
            }
            if has_key && is_last && operation.code == '!' {
                let what = "the key exists already".to_string();
                return Err(UpdateError::Field { field: operation.field_text(), what });
            }
            if has_key && is_last && operation.code == '#' {
                if Reader::new(operation.arguments[0]).read_uint() != Ok(1) {
                    let what = "can delete only 1 field from a map in a row".to_string();
                    return Err(UpdateError::Field { field: operation.field_text(), what });
                }
                msgpack::encode_map(out, count - 1);
            } else {
                msgpack::encode_map(out, count + u32::from(is_new));
            }
            if is_new {
                msgpack::encode_str(out, key.as_bytes());
                out.extend_from_slice(operation.arguments[0]);
            }
            let mut reader = pairs_start;
            for _ in 0..count {
                let name = reader.read_value().map_err(UpdateError::Msgpack)?;
                let element = reader.read_value().map_err(UpdateError::Msgpack)?;
                if Reader::new(name).read_str() != Ok(key.as_bytes()) {
                    out.extend_from_slice(name);
                    out.extend_from_slice(element);
                    continue;
                }
                if is_last && operation.code == '#' {
                    continue;
                }
                out.extend_from_slice(name);
                if is_last {
                    out.extend_from_slice(&change(operation, element)?);
                } else if !rewrite(operation, element, &steps[1..], out)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Found by mutating the fuzz corpus.
    #[test]
    fn the_largest_field_number_is_no_field() {
        let ops = encode_ops(&[('=', i64::MAX, &[1])]);
        assert_eq!(apply(&ops, &[0x90], None, 0, &mut Vec::new()), Err(UpdateError::NoFieldNumber(i64::MAX)));
    }

    /// `ops` as pairs of an operation and the raw arguments.
    fn encode_ops(ops: &[(char, i64, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        msgpack::encode_array(&mut out, ops.len() as u32);
        for (code, field, argument) in ops {
            msgpack::encode_array(&mut out, 3);
            msgpack::encode_str(&mut out, &[*code as u8]);
            msgpack::encode_int(&mut out, *field);
            out.extend_from_slice(argument);
        }
        out
    }

    fn run(row: &[u8], ops: &[(char, i64, &[u8])]) -> Result<String, UpdateError> {
        let mut out = Vec::new();
        apply(&encode_ops(ops), row, None, 1, &mut out)?;
        let mut text = String::new();
        msgpack::format_value(&out, &mut text);
        Ok(text)
    }

    #[test]
    fn operations_change_rows_as_tarantool_does() {
        let row = [0x93, 1, 0xa1, b'x', 10];
        assert_eq!(run(&row, &[('+', 3, &[1])]).as_deref(), Ok("[1, 'x', 11]"));
        assert_eq!(run(&row, &[('-', 3, &[11])]).as_deref(), Ok("[1, 'x', -1]"));
        assert_eq!(run(&row, &[('!', -1, &[5])]).as_deref(), Ok("[1, 'x', 10, 5]"));
        assert_eq!(run(&row, &[('=', -1, &[5])]).as_deref(), Ok("[1, 'x', 5]"));
        assert_eq!(run(&row, &[('#', 2, &[9])]).as_deref(), Ok("[1]"));
        assert_eq!(run(&row, &[('=', 4, &[7]), ('=', 5, &[8])]).as_deref(), Ok("[1, 'x', 10, 7, 8]"));
        assert_eq!(run(&row, &[('=', 10, &[7])]), Err(UpdateError::NoFieldNumber(10)));
        let twice = run(&row, &[('+', 3, &[1]), ('+', 3, &[2])]);
        assert!(matches!(twice, Err(UpdateError::Field { .. })));
        let max = [0x92, 1, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(run(&max, &[('+', 2, &[1])]), Err(UpdateError::IntegerOverflow { .. })));
    }

    #[test]
    fn a_splice_cuts_and_pastes() {
        let mut ops = vec![0x91, 0x95, 0xa1, b':', 2, 1, 1];
        msgpack::encode_str(&mut ops, b"QQ");
        let mut out = Vec::new();
        assert_eq!(apply(&ops, &[0x92, 1, 0xa1, b'x'], None, 1, &mut out), Ok(()));
        assert_eq!(out, [0x92, 1, 0xa2, b'Q', b'Q']);
    }

    proptest! {
        #[test]
        fn any_bytes_as_operations_never_panic(ops in proptest::collection::vec(any::<u8>(), 0..60)) {
            let row = [0x94, 1, 0xa1, b'x', 10, 0x81, 0xa1, b'a', 0x92, 1, 2];
            let mut out = Vec::new();
            let _ = check_ops(&ops, 1);
            if apply(&ops, &row, None, 1, &mut out).is_ok() {
                prop_assert_eq!(msgpack::check(&out), Ok(out.len()));
            }
        }

        #[test]
        fn sets_and_inserts_agree_with_a_vector(
            steps in proptest::collection::vec((0..3u8, 1..12i64, 0..100u8), 0..12)
        ) {
            let row = [0x95, 1, 2, 3, 4, 5];
            let mut model = vec![1u8, 2, 3, 4, 5];
            let mut kept = Vec::new();
            for (kind, field, value) in steps {
                let at = field as usize - 1;
                match kind {
                    0 if at < model.len() => { model[at] = value; kept.push(('=', field, [value])); }
                    1 if at <= model.len() => { model.insert(at, value); kept.push(('!', field, [value])); }
                    2 if at < model.len() => { model.remove(at); kept.push(('#', field, [1])); }
                    _ => {}
                }
            }
            let ops: Vec<(char, i64, &[u8])> = kept.iter().map(|(c, f, v)| (*c, *f, &v[..])).collect();
            let mut out = Vec::new();
            prop_assert_eq!(apply(&encode_ops(&ops), &row, None, 1, &mut out), Ok(()));
            let mut expected = Vec::new();
            msgpack::encode_array(&mut expected, model.len() as u32);
            expected.extend_from_slice(&model);
            prop_assert_eq!(out, expected);
        }
    }
}
