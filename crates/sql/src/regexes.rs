//! Regular expressions: finding, replacing, taking apart.

use crate::error::{Condition, Error, Result};
use crate::run::Run;
use crate::value::Value;

/// Bytes of a regular expression that was compiled.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Compiles one. `flags` are letters as PostgreSQL has them. Errors: it is none.
pub(crate) fn compile(pattern: &str, flags: &str) -> Result<regex::Regex> {
    let mut builder = regex::RegexBuilder::new(pattern);
    builder.size_limit(REGEX_BYTES_MAX).dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'i' => drop(builder.case_insensitive(true)),
            'c' => drop(builder.case_insensitive(false)),
            'n' | 'm' => drop(builder.multi_line(true).dot_matches_new_line(false)),
            'x' => drop(builder.ignore_whitespace(true)),
            's' | 'g' | 't' | 'p' | 'w' | 'e' => {}
            other => {
                let what = format!("invalid regular expression option: \"{other}\"");
                return Err(Error::new(Condition::InvalidArgument, what));
            }
        }
    }
    builder.build().map_err(|error| Error::new(Condition::InvalidRegex, format!("invalid regular expression: {error}")))
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_text).unwrap_or_default()
}

/// The parts of a text between what an expression finds: text, expression, flags.
pub(crate) fn parts(a: &[Value]) -> Result<Vec<Value>> {
    let regex = compile(text(a.get(1)), text(a.get(2)))?;
    let whole = text(a.first());
    let mut found = Vec::new();
    let mut start = 0;
    for matched in regex.find_iter(whole) {
        // What is empty at the ends parts nothing.
        if matched.is_empty() && (matched.start() == 0 || matched.start() == whole.len()) {
            continue;
        }
        found.push(Value::text(&whole[start..matched.start()]));
        start = matched.end();
    }
    found.push(Value::text(&whole[start..]));
    Ok(found)
}

fn groups(run: &Run<'_>, captures: &regex::Captures<'_>) -> Result<Value> {
    let skipped = usize::from(captures.len() > 1);
    let groups: Vec<Value> = captures
        .iter()
        .skip(skipped)
        .map(|group| group.map_or(Value::Null, |group| Value::text(group.as_str())))
        .collect();
    crate::array::functions::array(run, &groups)
}

/// The groups of what is found first, or with the flag `g` each time, as arrays.
pub(crate) fn all_matches(run: &Run<'_>, a: &[Value]) -> Result<Vec<Value>> {
    let flags = text(a.get(2));
    let regex = compile(text(a.get(1)), flags)?;
    let limit = if flags.contains('g') { usize::MAX } else { 1 };
    regex.captures_iter(text(a.first())).take(limit).map(|captures| groups(run, &captures)).collect()
}

/// The groups of what is found first; null if nothing is.
pub(crate) fn first_match(run: &Run<'_>, a: &[Value]) -> Result<Value> {
    let regex = compile(text(a.get(1)), text(a.get(2)))?;
    match regex.captures(text(a.first())) {
        Some(captures) => groups(run, &captures),
        None => Ok(Value::Null),
    }
}

/// A replacement as the library writes it: `\1` is a group, `\&` all that was found.
fn replacement_of(text: &str, is_mysql: bool) -> String {
    if is_mysql {
        return text.to_string();
    }
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '$' => out.push_str("$$"),
            '\\' => match chars.next() {
                Some(digit @ '0'..='9') => out.push_str(&format!("${{{digit}}}")),
                Some('&') => out.push_str("${0}"),
                Some(other) => {
                    out.push('\\');
                    if other != '\\' {
                        out.push(other);
                    }
                }
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

/// A text with what is found replaced: the first time, or with the flag `g` each time. MySQL's always replaces each.
pub(crate) fn replace(run: &Run<'_>, a: &[Value]) -> Result<Value> {
    let is_mysql = run.dialect == crate::Dialect::Mysql;
    let flags = if is_mysql { "gi" } else { text(a.get(3)) };
    let regex = compile(text(a.get(1)), flags)?;
    let whole = text(a.first());
    let replacement = replacement_of(text(a.get(2)), is_mysql);
    let limit = if flags.contains('g') { usize::MAX } else { 1 };
    // Each group may be as long as all that was found.
    let groups = replacement.matches('$').count();
    let (mut out, mut start) = (String::new(), 0);
    for captures in regex.captures_iter(whole).take(limit) {
        let Some(matched) = captures.get(0) else { break };
        out.push_str(&whole[start..matched.start()]);
        run.check_length(out.len() + replacement.len() + groups.saturating_mul(matched.len()))?;
        captures.expand(&replacement, &mut out);
        start = matched.end();
    }
    out.push_str(&whole[start..]);
    run.check_length(out.len())?;
    Ok(Value::text(out))
}

/// How often something is found.
pub(crate) fn count(a: &[Value]) -> Result<Value> {
    let regex = compile(text(a.get(1)), "")?;
    Ok(Value::Int(regex.find_iter(text(a.first())).count() as i64))
}

/// The first that is found; null if nothing is.
pub(crate) fn part(run: &Run<'_>, a: &[Value]) -> Result<Value> {
    let regex = compile(text(a.get(1)), if run.dialect == crate::Dialect::Mysql { "i" } else { "" })?;
    Ok(regex.find(text(a.first())).map_or(Value::Null, |found| Value::text(found.as_str())))
}
