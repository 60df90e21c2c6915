//! Parameters of a statement and fields of a COPY in binary, as the client sends them. What is too short is a message that ends too early; what is too long or
//! no value is named by its type. Source: PostgreSQL's documentation, chapter 55, and what it answers.

use super::formats::{EPOCH_SECONDS, element_of, oid_of, type_of};
use super::message::utf8;
use sql::{Base, Condition, Dialect, ELEMENTS_MAX, Error, Type, Value};
use std::fmt::Write;
use std::rc::Rc;
use tuple::datetime::{Datetime, Interval};
use tuple::msgpack;

/// Moments that there are, in microseconds of PostgreSQL's clock: from the year 4714 BC to 294276.
const MOMENTS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// Days that there are: from the year 4714 BC to 5874897.
const DAYS: std::ops::Range<i32> = -2_451_545..2_145_031_949;
/// Minutes ahead of UTC that the zone of a clock may have: a row holds no others.
const ZONES: std::ops::RangeInclusive<i32> = -12 * 60..=14 * 60;
/// Microseconds that a clock may show.
const CLOCK: std::ops::RangeInclusive<i64> = 0..=86_400_000_000;
/// Elements that an array of PostgreSQL's has, and dimensions.
const ARRAY: (i64, i32) = (134_217_727, 6);
/// Groups of four digits before the point of a number: more are none that there is.
const GROUPS: i16 = 100;
/// Digits behind the point.
const SCALE: i16 = 0x3fff;
/// Bytes of a name.
const NAME_BYTES: usize = 63;

/// A parameter. Errors: it is no value of its type.
pub(super) fn read_value(bytes: &[u8], oid: u32, ty: Type, is_binary: bool) -> Result<Value, Error> {
    if !is_binary {
        let text = utf8(bytes)?;
        if ty.base == Base::Array || element_of(oid).is_some() {
            return sql::parse_array(text, type_of(element_of(oid).unwrap_or(0))?);
        }
        return match ty.base {
            Base::Unknown => Ok(Value::text(text)),
            _ => sql::parse_value(Dialect::Postgres, text, ty),
        };
    }
    let oid = if oid == 0 { oid_of(ty) } else { oid };
    let mut rest = Bytes(bytes);
    match read_binary(&mut rest, oid)? {
        _ if !rest.0.is_empty() => Err(wrong(format!("incorrect binary data format for type {oid}"))),
        Value::Datetime(moment) if !moment.is_good() => Err(out_of_range("timestamp")),
        value => Ok(value),
    }
}

fn wrong(what: impl Into<String>) -> Error {
    Error::new(Condition::InvalidBinary, what)
}

fn out_of_range(what: &str) -> Error {
    Error::new(Condition::DatetimeOverflow, format!("{what} out of range"))
}

fn too_large() -> Error {
    Error::new(Condition::LimitExceeded, format!("array size exceeds the maximum allowed ({})", ARRAY.0))
}

/// What has not been read of a value.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], Error> {
        let too_short = || Error::new(Condition::Protocol, "insufficient data left in message");
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn i16(&mut self) -> Result<i16, Error> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32, Error> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, Error> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<&'b str, Error> {
        utf8(self.take(self.0.len())?)
    }
}

fn read_binary(bytes: &mut Bytes<'_>, oid: u32) -> Result<Value, Error> {
    Ok(match oid {
        16 => Value::Bool(bytes.array::<1>()? != [0]),
        21 => Value::Int(i64::from(bytes.i16()?)),
        23 => Value::Int(i64::from(bytes.i32()?)),
        26 => Value::Int(i64::from(u32::from_be_bytes(bytes.array()?))),
        20 => Value::Int(bytes.i64()?),
        700 => Value::Double(f64::from(f32::from_be_bytes(bytes.array()?))),
        701 => Value::Double(f64::from_be_bytes(bytes.array()?)),
        1700 => read_numeric(bytes)?,
        17 => Value::Bytes(bytes.take(bytes.0.len())?.into()),
        2950 => Value::Uuid(Rc::new(bytes.array()?)),
        650 | 774 | 829 | 869 => {
            let network = sql::network_of_wire(bytes.take(bytes.0.len())?, type_of(oid)?);
            network.ok_or_else(|| wrong(format!("incorrect binary data format for type {oid}")))?
        }
        3904 | 3906 | 3908 | 3910 | 3912 | 3926 => read_range(bytes, type_of(oid)?)?,
        1082 => Value::Datetime(Rc::new(match bytes.i32()? {
            days @ (i32::MAX | i32::MIN) => sql::endless(days > 0),
            days if DAYS.contains(&days) => {
                Datetime { seconds: i64::from(days) * 86_400 + EPOCH_SECONDS, ..Datetime::default() }
            }
            _ => return Err(out_of_range("date")),
        })),
        1083 => read_clock(bytes.i64()?, 0)?,
        1266 => {
            let (micros, behind) = (bytes.i64()?, bytes.i32()?);
            read_clock(micros, behind)?
        }
        1114 | 1184 => Value::Datetime(Rc::new(match bytes.i64()? {
            micros @ (i64::MAX | i64::MIN) => sql::endless(micros > 0),
            micros if MOMENTS.contains(&micros) => Datetime {
                seconds: micros.div_euclid(1_000_000) + EPOCH_SECONDS,
                nanoseconds: (micros.rem_euclid(1_000_000) * 1000) as i32,
                ..Datetime::default()
            },
            _ => return Err(out_of_range("timestamp")),
        })),
        1186 => {
            let (micros, days, months) = (bytes.i64()?, bytes.i32()?, bytes.i32()?);
            let mut interval = Interval::default();
            interval.fields[1] = i64::from(months);
            interval.fields[3] = i64::from(days);
            interval.fields[6] = micros / 1_000_000;
            interval.fields[7] = micros % 1_000_000 * 1000;
            Value::Interval(Rc::new(interval))
        }
        3802 => match bytes.array()? {
            [1] => sql::parse_value(Dialect::Postgres, bytes.text()?, Type::of(Base::Json))?,
            [other] => {
                let what = format!("unsupported jsonb version number {other}");
                return Err(Error::new(Condition::Other, what));
            }
        },
        114 => sql::parse_value(Dialect::Postgres, bytes.text()?, Type::json(false))?,
        oid if let Some(element) = element_of(oid) => read_array(bytes, element)?,
        19 if bytes.0.len() > NAME_BYTES => {
            let error = Error::new(Condition::NameTooLong, "identifier too long");
            return Err(error.detail(format!("Identifier must be less than {} characters.", NAME_BYTES + 1)));
        }
        _ => Value::text(bytes.text()?),
    })
}

/// A clock, and how many seconds its zone is behind UTC.
fn read_clock(micros: i64, behind: i32) -> Result<Value, Error> {
    if !CLOCK.contains(&micros) {
        return Err(out_of_range("time"));
    }
    if behind.checked_neg().is_none_or(|ahead| !ZONES.contains(&(ahead / 60))) {
        return Err(Error::new(Condition::ZoneDisplacement, "time zone displacement out of range"));
    }
    if behind % 60 != 0 {
        return Err(Error::new(Condition::Unsupported, "zones of seconds are not supported"));
    }
    Ok(Value::Datetime(Rc::new(Datetime {
        seconds: micros / 1_000_000 + i64::from(behind),
        nanoseconds: (micros % 1_000_000 * 1000) as i32,
        offset: (-behind / 60) as i16,
        ..Datetime::default()
    })))
}

/// A number: how many groups of four digits, the weight of the first, sign, digits behind the point, the groups.
fn read_numeric(bytes: &mut Bytes<'_>) -> Result<Value, Error> {
    let (count, weight, sign, scale) = (bytes.i16()? as u16, bytes.i16()?, bytes.i16()? as u16, bytes.i16()?);
    let name = match sign {
        0 | 0x4000 => None,
        0xc000 => Some("NaN"),
        0xd000 => Some("Infinity"),
        0xf000 => Some("-Infinity"),
        _ => return Err(wrong("invalid sign in external \"numeric\" value")),
    };
    if !(0..=SCALE).contains(&scale) {
        return Err(wrong("invalid scale in external \"numeric\" value"));
    }
    let mut groups = Vec::new();
    for _ in 0..count {
        let group = bytes.i16()?;
        if !(0..10_000).contains(&group) {
            return Err(wrong("invalid digit in external \"numeric\" value"));
        }
        groups.push(group);
    }
    if let Some(name) = name {
        return sql::parse_value(Dialect::Postgres, name, Type::of(Base::Decimal));
    }
    if weight > GROUPS {
        return Err(Error::new(Condition::NumericOutOfRange, "value overflows numeric format"));
    }
    // The position of a group is the power of 10,000 that it counts.
    let group = |position: i32| {
        let at = usize::try_from(i32::from(weight) - position).ok();
        at.and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    let mut text = if sign == 0 { "0".to_string() } else { "-0".to_string() };
    for position in (0..=i32::from(weight).max(-1)).rev() {
        let _ = write!(text, "{:04}", group(position));
    }
    let mut behind = String::new();
    for number in 1..=i32::from(scale).div_euclid(4) + 1 {
        let _ = write!(behind, "{:04}", group(-number));
    }
    behind.truncate(scale as usize);
    if !behind.is_empty() {
        text.push('.');
        text.push_str(&behind);
    }
    sql::parse_value(Dialect::Postgres, &text, Type::of(Base::Decimal))
}

/// A range: its flags, and each of its ends with its length.
fn read_range(bytes: &mut Bytes<'_>, ty: Type) -> Result<Value, Error> {
    let malformed = || wrong("malformed binary range");
    let [flags] = bytes.array()?;
    if flags >= 32 {
        return Err(malformed());
    }
    let of = oid_of(ty.of_ends().ok_or_else(malformed)?);
    let count = match flags & 1 {
        0 => usize::from(flags & 8 == 0) + usize::from(flags & 16 == 0),
        _ => 0,
    };
    let mut ends = Vec::with_capacity(count);
    for _ in 0..count {
        let length = usize::try_from(bytes.i32()?).map_err(|_| malformed())?;
        let mut end = Bytes(bytes.take(length)?);
        let value = read_binary(&mut end, of)?;
        let is_good = !matches!(&value, Value::Datetime(moment) if !moment.is_good());
        if !end.0.is_empty() || !is_good {
            return Err(malformed());
        }
        ends.push(value);
    }
    sql::range_of_parts(flags, ends, ty)
}

/// Dimensions, flags, the type of the elements; length and lower bound of each dimension; the elements, each with its length.
fn read_array(bytes: &mut Bytes<'_>, wanted: u32) -> Result<Value, Error> {
    let (dimensions, flags, element) = (bytes.i32()?, bytes.i32()?, bytes.i32()? as u32);
    if dimensions < 0 {
        return Err(wrong(format!("invalid number of dimensions: {dimensions}")));
    }
    if dimensions > ARRAY.1 {
        let what = format!("number of array dimensions ({dimensions}) exceeds the maximum allowed ({})", ARRAY.1);
        return Err(Error::new(Condition::LimitExceeded, what));
    }
    if !matches!(flags, 0 | 1) {
        return Err(wrong("invalid array flags"));
    }
    let is_text = |oid: u32| type_of(oid).is_ok_and(|ty| ty.base == Base::Text);
    if element != wanted && !(is_text(element) && is_text(wanted)) {
        let shown = |oid: u32| type_of(oid).map_or_else(|_| "???".to_string(), |ty| ty.name(Dialect::Postgres));
        let what = format!(
            "binary data has array element type {element} ({}) instead of expected {wanted} ({})",
            shown(element),
            shown(wanted)
        );
        return Err(Error::new(Condition::TypeMismatch, what));
    }
    let mut lengths = Vec::new();
    let mut bounds = Vec::new();
    for _ in 0..dimensions {
        lengths.push(bytes.i32()?);
        bounds.push(bytes.i32()?);
    }
    let product = lengths.iter().try_fold(1i64, |product, length| {
        let product = product.checked_mul(i64::from(*length))?;
        (*length >= 0 && product <= ARRAY.0).then_some(product)
    });
    let count = product.ok_or_else(too_large)?;
    if let Some((_, bound)) = lengths.iter().zip(&bounds).find(|(length, bound)| bound.checked_add(**length).is_none())
    {
        let what = format!("array lower bound is too large: {bound}");
        return Err(Error::new(Condition::LimitExceeded, what));
    }
    if count > ELEMENTS_MAX as i64 {
        let what = format!("an array has at most {ELEMENTS_MAX} elements");
        return Err(Error::new(Condition::LimitExceeded, what));
    }
    let mut out = Vec::new();
    match dimensions == 0 || count == 0 {
        true => msgpack::encode_array(&mut out, 0),
        false => read_level(bytes, element, &lengths, &mut 0, &mut out)?,
    }
    Ok(Value::Document(out.into()))
}

/// The elements of a dimension and of those within it. `number`: elements before them.
fn read_level(
    bytes: &mut Bytes<'_>,
    element: u32,
    lengths: &[i32],
    number: &mut usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let Some((length, within)) = lengths.split_first() else {
        *number += 1;
        let length = bytes.i32()?;
        if length == -1 {
            msgpack::encode_nil(out);
            return Ok(());
        }
        let item = usize::try_from(length).ok().filter(|length| *length <= bytes.0.len());
        let mut item = Bytes(bytes.take(item.ok_or_else(|| wrong("insufficient data left in message"))?)?);
        let value = read_binary(&mut item, element)?;
        if !item.0.is_empty() {
            return Err(wrong(format!("improper binary format in array element {number}")));
        }
        value.encode(out);
        return Ok(());
    };
    msgpack::encode_array(out, *length as u32);
    (0..*length).try_for_each(|_| read_level(bytes, element, within, number, out))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    /// What PostgreSQL 15 answers: the type, the value in binary, and its text or the SQLSTATE.
    const ANSWERS: &[(u32, &str, &str)] = &[
        (1700, "00010000000000002710", "22P03"),
        (1700, "0001000000000000ffff", "22P03"),
        (1700, "0001000000000000270f", "9999"),
        (1700, "00010000400000020001", "-1.00"),
        (1700, "0000000010000000", "22P03"),
        (1700, "0001000000000000", "08P01"),
        (1700, "0001000000000000000178", "22P03"),
        (1700, "", "08P01"),
        (1700, "000100000000ffff0001", "22P03"),
        (1700, "00010000000040000001", "22P03"),
        (1700, "0002000000000002000104d2", "1.12"),
        (1700, "ffff000000000000", "08P01"),
        (23, "000000", "08P01"),
        (23, "0000000000", "22P03"),
        (21, "00", "08P01"),
        (21, "000000", "22P03"),
        (20, "00000000", "08P01"),
        (16, "", "08P01"),
        (16, "0101", "22P03"),
        (16, "02", "t"),
        (700, "0000000000000000", "22P03"),
        (701, "00000000", "08P01"),
        (2950, "000000000000000000000000000000", "08P01"),
        (2950, "0000000000000000000000000000000000", "22P03"),
        (1082, "0000000000000000", "22P03"),
        (1083, "00000000", "08P01"),
        (1266, "0000000000000000", "08P01"),
        (1114, "00000000", "08P01"),
        (1186, "0000000000000000", "08P01"),
        (1186, "0000000000000000000000000000000000", "22P03"),
        (26, "00", "08P01"),
        (26, "", "08P01"),
        (23, "", "08P01"),
        (20, "000000000000000000", "22P03"),
        (25, "610062", "22021"),
        (25, "ff", "22021"),
        (1043, "610062", "22021"),
        (19, "6100", "22021"),
        (3802, "01225c753030303022", "22P05"),
        (3802, "017b2261223a22785c7530303030227d", "22P05"),
        (3802, "0122610022", "22021"),
        (3802, "027b7d", "XX000"),
        (3802, "", "08P01"),
        (3802, "7b7d", "XX000"),
        (3802, "01", "22P02"),
        (114, "225c753030303022", "\"\\u0000\""),
        (114, "220022", "22021"),
        (114, "7b", "22P02"),
        (3802, "017b", "22P02"),
        (114, "ff", "22021"),
        (1007, "0000000100000000000000170000000100000001fffffffe", "22P03"),
        (1007, "0000000100000000000000170000000100000001ffffffff", "{NULL}"),
        (1007, "0000000100000000000000170000000100000001ffffffff", "{NULL}"),
        (1007, "0000000100000001000000170000000100000001ffffffff", "{NULL}"),
        (1007, "0000000100000002000000170000000100000001ffffffff", "22P03"),
        (
            1007,
            "000000070000000000000017000000010000000100000001000000010000000100000001000000010000000100000001000000010000000100000001",
            "54000",
        ),
        (1007, "ffffffff0000000000000017", "22P03"),
        (1007, "000000010000000000000017ffffffff00000001", "54000"),
        (1007, "00000002000000000000001700010000000000010001000000000001", "54000"),
        (1007, "00000002000000000000001700100000000000010010000000000001", "54000"),
        (1007, "0000000100000000000000171000000000000001", "54000"),
        (1007, "0000000100000000000000170800000000000001", "54000"),
        (1007, "0000000100000000000000177fffffff00000001", "54000"),
        (1007, "000000010000000000000017000000027fffffff0000000400000001", "54000"),
        (1007, "000000010000000000000017000000017fffffff0000000400000001", "54000"),
        (1007, "00000001000000000000001700000002000000010000000400000001", "08P01"),
        (1007, "000000010000000000000017000000010000000100000003000000", "08P01"),
        (1007, "00000001000000000000001900000001000000010000000178", "42804"),
        (1007, "0000000100000000000000140000000100000001000000080000000000000001", "42804"),
        (1007, "0000000100000000000000170000000100000001000000040000000178", "22P03"),
        (1007, "", "08P01"),
        (1007, "000000000000000000000017", "{}"),
        (1007, "000000000000000000000019", "42804"),
        (1007, "0000000100000000000000170000000000000001", "{}"),
        (
            1007,
            "000000020000000000000017000000020000000100000002000000010000000400000001000000040000000200000004000000030000000400000004",
            "{{1,2},{3,4}}",
        ),
        (1007, "00000002000000000000001700000002000000010000000000000001", "{}"),
        (1009, "0000000100000000000000190000000100000001000000026100", "22021"),
        (1007, "0000000100000000000000170000000100000001000003e8", "22P03"),
        (
            1007,
            "000000060000000000000017000004000000000100000400000000010000040000000001000004000000000100000400000000010000040000000001",
            "54000",
        ),
        (1231, "0000000100000000000006a400000001000000010000000a00010000000000002710", "22P03"),
        (1114, "4000000000000000", "148138-07-06 14:00:27.387904"),
        (1114, "c000000000000000", "22008"),
        (1114, "fd0f7cc1411f9fff", "22008"),
        (1114, "7fffff5bb3b2a000", "22008"),
        (1114, "7fffffffffffffff", "infinity"),
        (1082, "7ffffffe", "22008"),
        (1082, "ffda97a6", "22008"),
        (1082, "ffda97a7", "4714-11-24 BC"),
        (1082, "7fda970d", "22008"),
        (1082, "7fda970c", "5874897-12-31"),
        (1083, "ffffffffffffffff", "22008"),
        (1083, "000000141dd76001", "22008"),
        (1266, "00000000000000000000e100", "22009"),
        // There, it is 00:00:00-15:59.
        (1266, "00000000000000000000e0c4", "22009"),
        (1266, "00000000000000000000a8c0", "00:00:00-12"),
        (1266, "0000000000000000ffff3b20", "00:00:00+14"),
        (1266, "0000000000000000ffff1f00", "22009"),
        (1266, "ffffffffffffffff00000000", "22008"),
        (1186, "7fffffffffffffff7fffffff7fffffff", "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807"),
        (
            1186,
            "80000000000000008000000080000000",
            "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808",
        ),
        (1186, "00000000000000000000000080000000", "-178956970 years -8 mons"),
        (17, "6100", "\\x6100"),
        (1015, "00000001000000000000041300000001000000010000000178", "{x}"),
        (1005, "00000001000000000000001500000001000000010000000400000000", "22P03"),
    ];

    fn state(bytes: &[u8], oid: u32) -> String {
        let ty = type_of(oid).unwrap();
        match read_value(bytes, oid, ty, true) {
            Ok(value) => {
                let mut out = Vec::new();
                super::super::formats::put_plain(&mut out, &value, ty, None);
                String::from_utf8(out).unwrap()
            }
            Err(error) => error.condition().sqlstate().to_string(),
        }
    }

    #[test]
    fn binary_parameters_are_taken_and_refused_as_by_postgresql() {
        for (oid, hex, answer) in ANSWERS {
            let bytes: Vec<u8> =
                (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
            assert_eq!(state(&bytes, *oid), *answer, "{oid} {hex}");
        }
    }

    #[test]
    fn text_that_is_none_is_refused_by_its_first_wrong_character() {
        let refused = |bytes: &[u8]| read_value(bytes, 25, Type::TEXT, false).unwrap_err();
        assert_eq!(refused(b"a\0b").to_string(), "invalid byte sequence for encoding \"UTF8\": 0x00");
        assert_eq!(refused(b"a\xffb").to_string(), "invalid byte sequence for encoding \"UTF8\": 0xff");
        assert_eq!(refused(b"\xc3(b").to_string(), "invalid byte sequence for encoding \"UTF8\": 0xc3 0x28");
    }
}
