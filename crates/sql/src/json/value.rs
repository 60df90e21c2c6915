//! Documents of JSON taken apart, and their normal form: what PostgreSQL's `jsonb` and MySQL's `JSON` keep of a text.

use super::{DEPTH_MAX, quote};
use crate::error::{Condition, Error, Result};
use crate::run::LENGTH_MAX;
use std::cmp::Ordering;
use tuple::decimal::Decimal;

/// Values of a document that is taken apart, those within others among them.
pub(crate) const VALUES_MAX: usize = 1_000_000;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As it is written.
    Number(String),
    Text(String),
    Array(Vec<Json>),
    /// In the order of the normal form: shorter names first. Each name once.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// From a text; none if it is no JSON, or one of more than [`VALUES_MAX`] values.
    pub(crate) fn parse(text: &str) -> Option<Json> {
        Parser { rest: text, count: 0 }.whole()
    }

    /// The same. Errors: `LimitExceeded` if there are too many values; what the text is otherwise, if it is no JSON.
    pub(crate) fn parse_or(text: &str, refused: impl FnOnce() -> Error) -> Result<Json> {
        let mut parser = Parser { rest: text, count: 0 };
        match parser.whole() {
            Some(json) => Ok(json),
            None if parser.count > VALUES_MAX => {
                Err(Error::new(Condition::LimitExceeded, format!("a document has at most {VALUES_MAX} values")))
            }
            None => Err(refused()),
        }
    }

    /// True if the character zero is within its texts.
    pub(crate) fn has_zero(&self) -> bool {
        match self {
            Json::Text(text) => text.contains('\0'),
            Json::Array(items) => items.iter().any(Json::has_zero),
            Json::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || value.has_zero()),
            _ => false,
        }
    }

    /// The normal form of a text that is JSON; the text itself, if it is none.
    pub(crate) fn normal(text: &str) -> String {
        Json::parse(text).map_or_else(|| text.to_string(), |value| value.to_string())
    }

    /// An object of members, the last of each name.
    pub(crate) fn object(mut members: Vec<(String, Json)>) -> Json {
        members.sort_by(|a, b| order_names(&a.0, &b.0));
        // Of equal names the last one, which is behind the others.
        let mut kept: Vec<(String, Json)> = Vec::with_capacity(members.len());
        for member in members {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        Json::Object(kept)
    }

    /// The member of a name.
    pub(crate) fn member(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => {
                let at = members.binary_search_by(|(known, _)| order_names(known, name)).ok()?;
                Some(&members[at].1)
            }
            _ => None,
        }
    }

    /// The element of a number, from behind if it is below zero.
    pub(crate) fn element(&self, number: i64) -> Option<&Json> {
        match self {
            Json::Array(elements) => elements.get(place_of(number, elements.len())?),
            _ => None,
        }
    }

    /// What a step of a path means: a name, or the number of an element.
    pub(crate) fn step(&self, step: &str) -> Option<&Json> {
        match self {
            Json::Object(_) => self.member(step),
            Json::Array(_) => self.element(step.trim().parse().ok()?),
            _ => None,
        }
    }

    /// Appends the value as text.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(digits) => out.push_str(digits),
            Json::Text(text) => quote(text, out),
            Json::Array(elements) => {
                out.push('[');
                for (number, element) in elements.iter().enumerate() {
                    out.push_str(if number > 0 { ", " } else { "" });
                    element.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (number, (name, value)) in members.iter().enumerate() {
                    out.push_str(if number > 0 { ", " } else { "" });
                    quote(name, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Appends the value over several lines, as far as [`LENGTH_MAX`].
    pub(crate) fn write_pretty(&self, depth: usize, width: usize, out: &mut String) {
        if out.len() > LENGTH_MAX {
            return;
        }
        let line = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth * width));
        };
        match self {
            Json::Array(elements) if !elements.is_empty() => {
                out.push('[');
                for (number, element) in elements.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    line(depth + 1, out);
                    element.write_pretty(depth + 1, width, out);
                }
                line(depth, out);
                out.push(']');
            }
            Json::Object(members) if !members.is_empty() => {
                out.push('{');
                for (number, (name, value)) in members.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    line(depth + 1, out);
                    quote(name, out);
                    out.push_str(": ");
                    value.write_pretty(depth + 1, width, out);
                }
                line(depth, out);
                out.push('}');
            }
            plain => plain.write(out),
        }
    }

    /// The value as text of SQL: that of a text without its quotes, and none for null.
    pub(crate) fn plain(&self) -> Option<String> {
        match self {
            Json::Null => None,
            Json::Text(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// What it is called.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::Text(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// Whether both are the same value: numbers however they are written.
    pub(crate) fn is_same(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Number(a), Json::Number(b)) => order_numbers(a, b) == Ordering::Equal,
            (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b)),
            (Json::Object(a), Json::Object(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && a.1.is_same(&b.1))
            }
            (a, b) => a == b,
        }
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        self.write(&mut out);
        f.write_str(&out)
    }
}

/// The place of an element that a number means, from behind if it is below zero.
pub(crate) fn place_of(number: i64, count: usize) -> Option<usize> {
    let number = if number < 0 { number.checked_add(i64::try_from(count).ok()?)? } else { number };
    usize::try_from(number).ok().filter(|place| *place < count)
}

/// Shorter names first, then by their bytes.
pub(crate) fn order_names(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// How two numbers compare.
pub(crate) fn order_numbers(a: &str, b: &str) -> Ordering {
    match (a.parse::<Decimal>(), b.parse::<Decimal>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => {
            let double = |text: &str| text.parse::<f64>().unwrap_or(0.0);
            double(a).partial_cmp(&double(b)).unwrap_or(Ordering::Equal)
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
    count: usize,
}

impl<'t> Parser<'t> {
    fn whole(&mut self) -> Option<Json> {
        let value = self.value(0)?;
        self.skip_space();
        self.rest.is_empty().then_some(value)
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, wanted: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        self.skip_space();
        self.count += 1;
        if self.count > VALUES_MAX {
            return None;
        }
        match self.rest.as_bytes().first()? {
            b'{' | b'[' if depth >= DEPTH_MAX => None,
            b'{' => {
                self.take("{")?;
                let mut members = Vec::new();
                self.skip_space();
                if self.take("}").is_some() {
                    return Some(Json::Object(members));
                }
                loop {
                    self.skip_space();
                    let name = self.text()?;
                    self.skip_space();
                    self.take(":")?;
                    members.push((name, self.value(depth + 1)?));
                    self.skip_space();
                    if self.take("}").is_some() {
                        return Some(Json::object(members));
                    }
                    self.take(",")?;
                }
            }
            b'[' => {
                self.take("[")?;
                let mut elements = Vec::new();
                self.skip_space();
                if self.take("]").is_some() {
                    return Some(Json::Array(elements));
                }
                loop {
                    elements.push(self.value(depth + 1)?);
                    self.skip_space();
                    if self.take("]").is_some() {
                        return Some(Json::Array(elements));
                    }
                    self.take(",")?;
                }
            }
            b'"' => self.text().map(Json::Text),
            b't' => self.take("true").map(|()| Json::Bool(true)),
            b'f' => self.take("false").map(|()| Json::Bool(false)),
            b'n' => self.take("null").map(|()| Json::Null),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Option<Json> {
        let mut behind = self.rest.as_bytes();
        super::check_number(&mut behind)?;
        let (digits, rest) = self.rest.split_at(self.rest.len() - behind.len());
        self.rest = rest;
        let is_long = digits.contains(['e', 'E']);
        let digits = match digits.parse::<Decimal>() {
            Ok(value) if is_long => value.to_string(),
            // There is one zero.
            Ok(value) if digits.starts_with('-') && value.parts().0 == 0 => digits[1..].to_string(),
            _ => digits.to_string(),
        };
        Some(Json::Number(digits))
    }

    fn text(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut text = String::new();
        loop {
            let end = self.rest.find(['"', '\\'])?;
            let (plain, rest) = self.rest.split_at(end);
            if plain.bytes().any(|byte| byte < 0x20) {
                return None;
            }
            text.push_str(plain);
            self.rest = rest;
            if self.take("\"").is_some() {
                return Some(text);
            }
            self.take("\\")?;
            let escaped = self.rest.chars().next()?;
            self.rest = &self.rest[escaped.len_utf8()..];
            text.push(match escaped {
                '"' | '\\' | '/' => escaped,
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let high = self.unit()?;
                    match high {
                        0xd800..0xdc00 => {
                            self.take("\\u")?;
                            let low = self.unit()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                            char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?
                        }
                        unit => char::from_u32(unit)?,
                    }
                }
                _ => return None,
            });
        }
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.rest = &self.rest[4..];
        u32::from_str_radix(digits, 16).ok()
    }
}
