//! Ranges as text: `[1,5)`, `empty`.

use super::{End, Range};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::types::{Base, Type};
use crate::value::Value;
use crate::zones::Zone;

/// The value of a text; moments without a zone have that of the session. Errors: it is none.
pub(crate) fn parse(text: &str, ty: Type, zone: Option<&Zone>) -> Result<Value> {
    let Some(ends) = ty.of_ends() else { return Err(malformed(text, "Its type is no range.")) };
    let trimmed = text.trim_start();
    if let (Some(word), Some(rest)) = (trimmed.get(..5), trimmed.get(5..))
        && word.eq_ignore_ascii_case("empty")
    {
        return match rest.trim().is_empty() {
            true => Ok(Range::Empty.value()),
            false => Err(malformed(text, "Junk after \"empty\" key word.")),
        };
    }
    let mut chars = trimmed.chars();
    let is_lower_in = match chars.next() {
        Some('[') => true,
        Some('(') => false,
        _ => return Err(malformed(text, "Missing left parenthesis or bracket.")),
    };
    let (lower, stop) =
        take_word(&mut chars, &[',', ']', ')']).ok_or_else(|| malformed(text, "Unexpected end of input."))?;
    if stop != ',' {
        return Err(malformed(text, "Missing comma after lower bound."));
    }
    let (upper, stop) =
        take_word(&mut chars, &[',', ']', ')']).ok_or_else(|| malformed(text, "Unexpected end of input."))?;
    if stop == ',' {
        return Err(malformed(text, "Too many commas."));
    }
    if !chars.as_str().trim().is_empty() {
        return Err(malformed(text, "Junk after right parenthesis or bracket."));
    }
    let value = |word: Option<String>| -> Result<Option<Value>> {
        match word {
            None => Ok(None),
            Some(word) if ends.base == Base::TimestampTz && zone.is_some() => {
                crate::zones::moment_of_text(zone, &word).map(Some)
            }
            Some(word) => {
                let value = crate::parse_value(Dialect::Postgres, &word, ends)?;
                check_digits(&word, &value)?;
                Ok(Some(value))
            }
        }
    };
    let lower = End { value: value(lower)?, is_in: is_lower_in };
    let upper = End { value: value(upper)?, is_in: stop == ']' };
    Ok(Range::of_ends(lower, upper, ty)?.value())
}

/// Errors: a decimal has not all digits of its text. An end that is another number would make it another range.
fn check_digits(word: &str, value: &Value) -> Result<()> {
    let Value::Decimal(decimal) = value else { return Ok(()) };
    let mantissa = word.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let count = |digits: &str| digits.trim_matches('0').len();
    let (kept, _) = decimal.parts();
    match count(&digits) == count(&kept.unsigned_abs().to_string()) {
        true => Ok(()),
        false => {
            let what =
                format!("an end of a range has more than 38 digits, or more than 38 behind the point: \"{word}\"");
            Err(Error::new(Condition::NumericOutOfRange, what))
        }
    }
}

fn malformed(text: &str, detail: &str) -> Error {
    Error::new(Condition::InvalidText, format!("malformed range literal: \"{text}\"")).detail(detail)
}

/// An end, None if nothing is there, and the letter behind it. None: the text ends before.
fn take_word(chars: &mut std::str::Chars<'_>, stops: &[char]) -> Option<(Option<String>, char)> {
    let (mut word, mut is_there, mut is_quoted) = (String::new(), false, false);
    loop {
        match chars.next()? {
            c if !is_quoted && stops.contains(&c) => return Some((is_there.then_some(word), c)),
            '\\' => {
                word.push(chars.next()?);
                is_there = true;
            }
            '"' if is_quoted && chars.as_str().starts_with('"') => {
                chars.next();
                word.push('"');
            }
            '"' => (is_quoted, is_there) = (!is_quoted, true),
            c => {
                word.push(c);
                is_there = true;
            }
        }
    }
}

/// The value as text, moments as they are in a zone. None: it is no range of its type.
pub(crate) fn display(bytes: &[u8], ty: Type, zone: Option<&Zone>) -> Option<String> {
    let Range::Of(lower, upper) = Range::of_bytes(bytes, ty)? else { return Some("empty".to_string()) };
    let ends = ty.of_ends()?;
    let shown =
        |end: &End| end.value.as_ref().map(|value| crate::text::display_in(Dialect::Postgres, value, ends, zone));
    let mut out = String::from(if lower.is_in { '[' } else { '(' });
    put_word(&mut out, shown(&lower));
    out.push(',');
    put_word(&mut out, shown(&upper));
    out.push(if upper.is_in { ']' } else { ')' });
    Some(out)
}

/// An end, within quotes where it needs them.
fn put_word(out: &mut String, word: Option<String>) {
    let Some(word) = word else { return };
    let is_special = |c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\\' | '(' | ')' | '[' | ']' | ',');
    if !word.contains(is_special) && !word.is_empty() {
        return out.push_str(&word);
    }
    out.push('"');
    for c in word.chars() {
        if matches!(c, '"' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('"');
}
