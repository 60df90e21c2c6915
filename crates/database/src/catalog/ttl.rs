//! When the rows of a space expire: the option `ttl`, understood.

use tuple::msgpack::{self, Kind, Reader};
use tuple::{FieldDef, FieldType};

/// Rows that the walk over a space without a fitting index looks at in a second, if the option says nothing.
const WALK_ROWS: u32 = 20_000;
/// The same, at most.
const WALK_ROWS_MAX: u64 = 10_000_000;

/// The unit of numbers in the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TtlUnit {
    /// Seconds since 1970.
    #[default]
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
}

/// Which field of a row says when it expires, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// The field, from 0.
    pub field_no: u32,
    /// Unit of its numbers; a datetime has its own.
    pub unit: TtlUnit,
    /// Rows that a walk looks at in a second where no index begins with the field.
    pub walk_rows: u32,
}

impl Ttl {
    /// The moment at which a row expires, in milliseconds since 1970. None: never.
    #[inline]
    pub fn expires_at_ms(&self, row: &[u8]) -> Option<i64> {
        moment_of(tuple::field(row, self.field_no)?, self.unit)
    }

    /// True if a row has expired by `now_ms`.
    #[inline]
    pub fn is_over(&self, row: &[u8], now_ms: u64) -> bool {
        self.expires_at_ms(row).is_some_and(|at_ms| i128::from(at_ms) <= i128::from(now_ms))
    }

    /// From the option's keys and values. Errors: what is wrong with it, in words.
    pub(crate) fn parse(option: &[u8], fields: &[FieldDef]) -> Result<Self, String> {
        let mut reader = Reader::new(option);
        let not_a_map = || "'ttl' must be a map with the key 'field'".to_string();
        let count = reader.read_map().map_err(|_| not_a_map())?;
        let mut ttl = Ttl { field_no: u32::MAX, unit: TtlUnit::default(), walk_rows: WALK_ROWS };
        for _ in 0..count {
            let key = reader.read_str().map_err(|_| not_a_map())?;
            let value = reader.read_value().map_err(|_| not_a_map())?;
            match key {
                b"field" => ttl.field_no = field_of(value, fields)?,
                b"unit" => {
                    ttl.unit = match Reader::new(value).read_str() {
                        Ok(b"s") => TtlUnit::Seconds,
                        Ok(b"ms") => TtlUnit::Milliseconds,
                        _ => return Err("'ttl.unit' must be 's' or 'ms'".to_string()),
                    };
                }
                b"walk_rows_per_second" => {
                    let rows = Reader::new(value).read_uint().ok().filter(|rows| (1..=WALK_ROWS_MAX).contains(rows));
                    let rows = rows.and_then(|rows| u32::try_from(rows).ok());
                    let wrong = || format!("'ttl.walk_rows_per_second' must be 1 to {WALK_ROWS_MAX}");
                    ttl.walk_rows = rows.ok_or_else(wrong)?;
                }
                other => return Err(format!("unexpected option 'ttl.{}'", String::from_utf8_lossy(other))),
            }
        }
        let Some(field) = fields.get(ttl.field_no as usize) else { return Err(not_a_map()) };
        let is_moment = field.field_type == FieldType::Datetime || field.field_type.is_within(FieldType::Number);
        if !is_moment {
            let (name, found) = (&field.name, field.field_type.name());
            return Err(format!(
                "'ttl.field' must be of a type of numbers or datetime, but field '{name}' is of type {found}"
            ));
        }
        Ok(ttl)
    }
}

/// The field that an option names, by its name or its number from 1.
fn field_of(value: &[u8], fields: &[FieldDef]) -> Result<u32, String> {
    let mut reader = Reader::new(value);
    let (at, shown) = match reader.kind() {
        Ok(Kind::Str) => {
            let name = reader.read_str().unwrap_or_default();
            let at = fields.iter().position(|field| field.name.as_bytes() == name);
            (at, format!("'{}'", String::from_utf8_lossy(name)))
        }
        Ok(Kind::Uint) => {
            let number = reader.read_uint().unwrap_or_default();
            let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            (at.filter(|at| *at < fields.len()), number.to_string())
        }
        _ => return Err("'ttl.field' must be the name or the number of a field".to_string()),
    };
    let at = at.and_then(|at| u32::try_from(at).ok());
    at.ok_or_else(|| format!("'ttl.field' names field {shown}, which the format of the space does not have"))
}

/// The moment that a value means, in milliseconds. What is no moment at all is none: the row never expires.
fn moment_of(value: &[u8], unit: TtlUnit) -> Option<i64> {
    let mut reader = Reader::new(value);
    let factor = if unit == TtlUnit::Seconds { 1000 } else { 1 };
    let of_real = |value: f64| (!value.is_nan()).then_some((value * f64::from(factor)).floor() as i64);
    match reader.kind().ok()? {
        Kind::Uint | Kind::Int => {
            let value = reader.read_i128().ok()?.saturating_mul(i128::from(factor));
            Some(value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
        }
        Kind::Float | Kind::Double => of_real(reader.read_double().ok()?),
        Kind::Ext => match reader.read_ext().ok()? {
            (msgpack::EXT_DATETIME, body) => {
                let moment = tuple::datetime::Datetime::decode(body)?;
                Some(moment.seconds.saturating_mul(1000).saturating_add(i64::from(moment.nanoseconds) / 1_000_000))
            }
            (msgpack::EXT_DECIMAL, body) => of_real(tuple::decimal::Decimal::decode(body)?.to_f64()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use tuple::msgpack;

    fn encoded(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        crate::encode_json(&serde_json::from_str(text).unwrap(), &mut out);
        out
    }

    fn fields() -> Vec<FieldDef> {
        vec![
            FieldDef::new("id".to_string(), FieldType::Unsigned),
            FieldDef::new("at".to_string(), FieldType::Number),
            FieldDef::new("text".to_string(), FieldType::String),
        ]
    }

    #[test]
    fn a_field_is_named_or_numbered() {
        let parse = |text: &str| Ttl::parse(&encoded(text), &fields());
        assert_eq!(parse(r#"{"field":"at"}"#).unwrap().field_no, 1);
        let ttl = parse(r#"{"field":2,"unit":"ms","walk_rows_per_second":5}"#).unwrap();
        assert_eq!(ttl, Ttl { field_no: 1, unit: TtlUnit::Milliseconds, walk_rows: 5 });
        for (text, what) in [
            (r#"{}"#, "must be a map with the key 'field'"),
            (r#"[]"#, "must be a map with the key 'field'"),
            (r#"{"field":"gone"}"#, "field 'gone', which"),
            (r#"{"field":0}"#, "field 0, which"),
            (r#"{"field":4}"#, "field 4, which"),
            (r#"{"field":18446744073709551615}"#, "which the format"),
            (r#"{"field":true}"#, "name or the number"),
            (r#"{"field":"text"}"#, "of type string"),
            (r#"{"field":"at","unit":"h"}"#, "'s' or 'ms'"),
            (r#"{"field":"at","walk_rows_per_second":0}"#, "1 to 10000000"),
            (r#"{"field":"at","walk_rows_per_second":10000001}"#, "1 to 10000000"),
            (r#"{"field":"at","other":1}"#, "unexpected option 'ttl.other'"),
        ] {
            assert!(parse(text).unwrap_err().contains(what), "{text}");
        }
    }

    #[test]
    fn values_mean_moments_and_the_others_none() {
        let of = |text: &str| moment_of(&encoded(text), TtlUnit::Seconds);
        assert_eq!(of("12"), Some(12_000));
        assert_eq!(of("-3"), Some(-3_000));
        assert_eq!(of("1.2345"), Some(1_234));
        assert_eq!(of("18446744073709551615"), Some(i64::MAX));
        assert_eq!(of("1e300"), Some(i64::MAX));
        assert_eq!(of("null"), None);
        assert_eq!(of("\"x\""), None);
        assert_eq!(moment_of(&encoded("12"), TtlUnit::Milliseconds), Some(12));
        let mut out = Vec::new();
        msgpack::encode_f64(&mut out, f64::NAN);
        assert_eq!(moment_of(&out, TtlUnit::Seconds), None);
        let mut out = Vec::new();
        tuple::datetime::Datetime { seconds: 7, nanoseconds: 8_900_000, ..Default::default() }.encode(&mut out);
        assert_eq!(moment_of(&out, TtlUnit::Seconds), Some(7_008));
    }

    #[test]
    fn a_row_is_over_from_its_moment_on() {
        let ttl = Ttl { field_no: 1, unit: TtlUnit::Milliseconds, walk_rows: 1 };
        let row = encoded("[1, 1000]");
        assert!(!ttl.is_over(&row, 999) && ttl.is_over(&row, 1000) && ttl.is_over(&row, u64::MAX));
        assert!(!ttl.is_over(&encoded("[1]"), u64::MAX) && !ttl.is_over(&encoded("[1,null]"), u64::MAX));
        assert!(ttl.is_over(&encoded("[1,-5]"), 0));
    }
}
