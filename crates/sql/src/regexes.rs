//! Regular expressions of SQL: finding, replacing, taking apart. One is compiled once in a statement.

mod bounded;

pub use bounded::{Bounded, Manner, TooLong};

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::run::Run;
use crate::value::Value;
use regex_automata::Match;
use regex_automata::util::captures::Captures;
use std::rc::Rc;

/// Compiled expressions that a statement keeps.
const REGEXES_MAX: usize = 8;

/// From letters as PostgreSQL has them. Errors: it has none of these.
fn manner_of_postgres(flags: &str) -> Result<Manner> {
    let mut manner =
        Manner { folds_case: false, is_multi_line: false, is_dot_any: true, skips_space: false, is_of_bytes: false };
    for flag in flags.chars() {
        match flag {
            'i' => manner.folds_case = true,
            'c' => manner.folds_case = false,
            'n' | 'm' => (manner.is_multi_line, manner.is_dot_any) = (true, false),
            'x' => manner.skips_space = true,
            's' | 'g' | 't' | 'p' | 'w' | 'e' => {}
            other => {
                let what = format!("invalid regular expression option: \"{other}\"");
                return Err(Error::new(Condition::InvalidArgument, what));
            }
        }
    }
    Ok(manner)
}

/// From letters as MySQL has them, which folds the case of letters unless it is told not to.
fn manner_of_mysql(flags: &str) -> Manner {
    Manner {
        folds_case: !flags.contains('c'),
        is_multi_line: flags.contains('m'),
        is_dot_any: flags.contains('n'),
        skips_space: false,
        is_of_bytes: false,
    }
}

/// A regular expression that was compiled.
#[derive(Debug)]
pub(crate) struct Pattern(Bounded);

impl Pattern {
    /// From a text and letters of PostgreSQL's. Errors: it is none.
    pub(crate) fn of_postgres(text: &str, flags: &str) -> Result<Self> {
        let refused = |reason| Error::new(Condition::InvalidRegex, format!("invalid regular expression: {reason}"));
        Bounded::new(text, manner_of_postgres(flags)?).map(Pattern).map_err(refused)
    }

    fn of_mysql(text: &str, flags: &str) -> Result<Self> {
        let refused = |reason| {
            Error::new(Condition::InvalidRegex, "Got an error from the regular expression engine").detail(reason)
        };
        Bounded::new(text, manner_of_mysql(flags)).map(Pattern).map_err(refused)
    }

    fn find_at(&self, run: &mut Run<'_>, text: &str, from: usize) -> Result<Option<Match>> {
        let found = self.0.find_at(text.as_bytes(), from).map_err(too_long)?;
        run.look()?;
        Ok(found)
    }

    /// True if it is found anywhere. May wait. Errors: the text is too long for it; as [`Run::look`].
    pub(crate) fn is_match(&self, run: &mut Run<'_>, text: &str) -> Result<bool> {
        let is_found = self.0.is_match(text.as_bytes()).map_err(too_long)?;
        if text.len() > bounded::ALWAYS_SHORT {
            run.look()?;
        }
        Ok(is_found)
    }

    /// What is found first, if anything is. May wait. Errors: as [`Pattern::is_match`].
    fn find(&self, run: &mut Run<'_>, text: &str) -> Result<Option<Match>> {
        self.find_at(run, text, 0)
    }

    /// All that is found, one behind the other, until `visit` says otherwise. May wait. Errors: as [`Pattern::is_match`]; those of `visit`.
    fn find_each(
        &self,
        run: &mut Run<'_>,
        text: &str,
        visit: &mut dyn FnMut(&mut Run<'_>, Match) -> Result<bool>,
    ) -> Result<()> {
        let (mut from, mut last_end) = (0, None);
        while from <= text.len() {
            let Some(found) = self.find_at(run, text, from)? else { break };
            // Nothing is found where the last one ended.
            if found.is_empty() && last_end == Some(found.end()) {
                from = found.end() + text[found.end()..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            (from, last_end) = (found.end(), Some(found.end()));
            if !visit(run, found)? {
                break;
            }
        }
        Ok(())
    }

    /// The groups of what was found. Errors: that is too long for it.
    fn groups(&self, text: &str, found: Match) -> Result<Captures> {
        self.0.groups(text.as_bytes(), found).map_err(too_long)
    }
}

fn too_long(_: TooLong) -> Error {
    Error::new(Condition::LimitExceeded, "the text is too long for this regular expression")
        .hint("It has many states for each character, as repetitions of choices with counts have.")
}

/// The compiled expressions of a statement.
#[derive(Default)]
pub(crate) struct Regexes(Vec<Rc<Pattern>>);

/// The expression that a text stands for, as PostgreSQL takes it. Errors: it is none.
fn postgres(run: &mut Run<'_>, text: &str, flags: &str) -> Result<Rc<Pattern>> {
    let manner = manner_of_postgres(flags)?;
    compiled(run, text, manner, &|| Pattern::of_postgres(text, flags))
}

/// The same as MySQL takes it.
fn mysql(run: &mut Run<'_>, text: &str, flags: &str) -> Result<Rc<Pattern>> {
    compiled(run, text, manner_of_mysql(flags), &|| Pattern::of_mysql(text, flags))
}

fn compiled(
    run: &mut Run<'_>,
    text: &str,
    manner: Manner,
    compile: &dyn Fn() -> Result<Pattern>,
) -> Result<Rc<Pattern>> {
    let known = &mut run.regexes.0;
    if let Some(at) = known.iter().position(|pattern| pattern.0.manner() == manner && pattern.0.text() == text) {
        return Ok(Rc::clone(&known[at]));
    }
    let pattern = Rc::new(compile()?);
    if known.len() >= REGEXES_MAX {
        known.remove(0);
    }
    known.push(Rc::clone(&pattern));
    run.look()?;
    Ok(pattern)
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_text).unwrap_or_default()
}

/// True if an expression, the second, is found in a text, the first. May wait. Errors: it is none; as [`Pattern::is_match`].
pub(crate) fn is_found(run: &mut Run<'_>, a: &[Value], flags: &str) -> Result<Value> {
    let pattern = postgres(run, text(a.get(1)), flags)?;
    Ok(Value::Bool(pattern.is_match(run, text(a.first()))?))
}

/// The parts of a text between what an expression finds: text, expression, flags. May wait. Errors: too many; as [`is_found`].
pub(crate) fn parts(run: &mut Run<'_>, a: &[Value]) -> Result<Vec<Value>> {
    let pattern = postgres(run, text(a.get(1)), text(a.get(2)))?;
    let whole = text(a.first());
    let mut parts = Vec::new();
    let mut start = 0;
    pattern.find_each(run, whole, &mut |_, found| {
        // What is empty at the ends parts nothing.
        if !found.is_empty() || (found.start() != 0 && found.start() != whole.len()) {
            crate::array::functions::check_elements(parts.len() + 1)?;
            parts.push(Value::text(&whole[start..found.start()]));
            start = found.end();
        }
        Ok(true)
    })?;
    parts.push(Value::text(&whole[start..]));
    Ok(parts)
}

/// The groups of what was found as an array; all of it, if there are none.
fn groups(run: &Run<'_>, whole: &str, captures: &Captures) -> Result<Value> {
    let skipped = usize::from(captures.group_len() > 1);
    let groups: Vec<Value> = captures
        .iter()
        .skip(skipped)
        .map(|group| group.map_or(Value::Null, |group| Value::text(&whole[group.range()])))
        .collect();
    crate::array::functions::array(run, &groups)
}

/// The groups of what is found first, or with the flag `g` each time, as arrays. May wait. Errors: as [`parts`].
pub(crate) fn all_matches(run: &mut Run<'_>, a: &[Value]) -> Result<Vec<Value>> {
    let flags = text(a.get(2));
    let pattern = postgres(run, text(a.get(1)), flags)?;
    let whole = text(a.first());
    let mut arrays = Vec::new();
    pattern.find_each(run, whole, &mut |run, found| {
        crate::array::functions::check_elements(arrays.len() + 1)?;
        arrays.push(groups(run, whole, &pattern.groups(whole, found)?)?);
        Ok(flags.contains('g'))
    })?;
    Ok(arrays)
}

/// The groups of what is found first; null if nothing is. May wait. Errors: as [`is_found`].
pub(crate) fn first_match(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let pattern = postgres(run, text(a.get(1)), text(a.get(2)))?;
    let whole = text(a.first());
    match pattern.find(run, whole)? {
        Some(found) => groups(run, whole, &pattern.groups(whole, found)?),
        None => Ok(Value::Null),
    }
}

/// A replacement as the library writes it: `\1` is a group, `\&` all that was found.
fn replacement_of(text: &str) -> String {
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

/// A text with what is found replaced by a text that may name groups, the first time or each time.
fn replaced(run: &mut Run<'_>, pattern: &Pattern, whole: &str, with: &str, is_each: bool) -> Result<Value> {
    // Each group may be as long as all that was found.
    let groups = with.matches('$').count();
    let (mut out, mut start) = (String::new(), 0);
    pattern.find_each(run, whole, &mut |run, found| {
        out.push_str(&whole[start..found.start()]);
        run.check_length(out.len() + with.len() + groups.saturating_mul(found.len()))?;
        match groups {
            0 => out.push_str(with),
            _ => pattern.groups(whole, found)?.interpolate_string_into(whole, with, &mut out),
        }
        start = found.end();
        Ok(is_each)
    })?;
    out.push_str(&whole[start..]);
    run.check_length(out.len())?;
    Ok(Value::text(out))
}

/// A text with what is found replaced: the first time, or with the flag `g` each time. MySQL's always replaces each. May wait. Errors: as [`is_found`].
pub(crate) fn replace(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let is_mysql = run.dialect == Dialect::Mysql;
    let flags = if is_mysql { "gi" } else { text(a.get(3)) };
    let pattern = postgres(run, text(a.get(1)), flags)?;
    let with = text(a.get(2));
    let with = if is_mysql { with.to_string() } else { replacement_of(with) };
    replaced(run, &pattern, text(a.first()), &with, flags.contains('g'))
}

/// How often something is found. May wait. Errors: as [`is_found`].
pub(crate) fn count(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let pattern = postgres(run, text(a.get(1)), "")?;
    let mut count = 0;
    pattern.find_each(run, text(a.first()), &mut |_, _| {
        count += 1;
        Ok(true)
    })?;
    Ok(Value::Int(count))
}

/// The first that is found; null if nothing is. May wait. Errors: as [`is_found`].
pub(crate) fn part(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let pattern = postgres(run, text(a.get(1)), if run.dialect == Dialect::Mysql { "i" } else { "" })?;
    let whole = text(a.first());
    Ok(pattern.find(run, whole)?.map_or(Value::Null, |found| Value::text(&whole[found.range()])))
}

/// REGEXP of MySQL's dialect. May wait. Errors: as [`is_found`].
pub(crate) fn is_found_mysql(run: &mut Run<'_>, whole: &str, pattern: &str, flags: &str) -> Result<bool> {
    mysql(run, pattern, flags)?.is_match(run, whole)
}

/// `REGEXP_REPLACE` of MySQL's dialect. May wait. Errors: as [`is_found`].
pub(crate) fn replace_mysql(run: &mut Run<'_>, whole: &str, pattern: &str, with: &str, flags: &str) -> Result<Value> {
    let pattern = mysql(run, pattern, flags)?;
    replaced(run, &pattern, whole, with, true)
}

/// What is found first in MySQL's dialect, and behind how many characters. May wait. Errors: as [`is_found`].
pub(crate) fn part_mysql(
    run: &mut Run<'_>,
    whole: &str,
    pattern: &str,
    flags: &str,
) -> Result<Option<(String, usize)>> {
    let found = mysql(run, pattern, flags)?.find(run, whole)?;
    Ok(found.map(|found| (whole[found.range()].to_string(), whole[..found.start()].chars().count())))
}
