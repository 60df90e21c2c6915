//! Searches in a database of tables: conditions, an order, a limit, and what is done with what is found.
//!
//! A search looks at every record, in slices between which others have their turn.

use super::records::{Columns, Place, ROWS_AT_ONCE, Work, join_columns};
use database::{Error, ErrorCode, Result};
use hashbrown::HashSet;
use runtime::fiber;
use sql::{Bounded, Manner};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Records that a search keeps for its answer.
const FOUND_MAX: usize = 1 << 20;
/// Bytes of these records.
const FOUND_BYTES_MAX: usize = 256 << 20;
/// Bytes of records that a search works through before others have a turn.
const BYTES_AT_ONCE: usize = 256 << 10;
/// Phrases of a condition times bytes of the text that they are looked for in.
const PHRASE_WORK_MAX: usize = 100_000_000;
/// Bytes of a text that may be a number's.
const NUMBER_BYTES_MAX: usize = 64;
const NEGATED: u32 = 1 << 24;
/// Bytes of a regular expression.
const PATTERN_BYTES_MAX: usize = 4096;
/// The number of the operator.
const STRRX: u32 = 7;

/// How a column is compared. The numbers are those of the protocol.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    name: Vec<u8>,
    operator: u32,
    is_negated: bool,
    operand: Vec<u8>,
    pattern: Option<Pattern>,
}

/// A regular expression.
#[derive(Clone, Debug)]
struct Pattern(Rc<Bounded>);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.text() == other.0.text()
    }
}

impl Pattern {
    /// As Tokyo Cabinet: a star in front passes over the case of letters. None: it is none, or too large a one.
    fn of(text: &[u8]) -> Option<Self> {
        let (text, folds_case) = match text.strip_prefix(b"*") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if text.len() > PATTERN_BYTES_MAX {
            return None;
        }
        let manner =
            Manner { folds_case, is_multi_line: false, is_dot_any: true, skips_space: false, is_of_bytes: true };
        Bounded::new(std::str::from_utf8(text).ok()?, manner).ok().map(|pattern| Pattern(Rc::new(pattern)))
    }
}

/// One search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Query {
    conditions: Vec<Condition>,
    order: Option<(Vec<u8>, u32)>,
    max: Option<usize>,
    skip: usize,
}

/// What is done with what is found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wish {
    gets: bool,
    /// Only these columns.
    columns: Vec<Vec<u8>>,
    removes: bool,
    counts: bool,
    hints: bool,
    /// 0 union, 1 intersection, 2 difference.
    set: u32,
}

/// A number at the start of a text, as C reads it; 0 if there is none.
pub(super) fn number_of(text: &[u8]) -> f64 {
    let text = text.trim_ascii_start();
    let text = String::from_utf8_lossy(&text[..text.len().min(NUMBER_BYTES_MAX)]);
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let mut end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    while end > 0 {
        if let Ok(number) = text[..end].parse() {
            return number;
        }
        end -= 1;
    }
    0.0
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b' ' | b',' | b'\t')).filter(|word| !word.is_empty())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Whether a text has a phrase.
type Has<'h> = dyn Fn(&[u8]) -> bool + 'h;

/// Errors: the operand of a condition has too much to do with a text.
fn too_much(what: &str) -> Error {
    Error::new(ErrorCode::IllegalParams, &[&format!("{what} is too much for one of the values that are searched")])
}

impl Condition {
    /// Errors: the value is too long for the operand.
    fn is_met(&self, key: &[u8], columns: &Columns) -> Result<bool> {
        let value = match &self.name[..] {
            b"" => Some(key),
            name => columns.iter().find(|(known, _)| known == name).map(|(_, value)| &value[..]),
        };
        let is_so = match value {
            Some(value) => self.compare(value)?,
            None => false,
        };
        Ok(is_so != self.is_negated)
    }

    fn compare(&self, value: &[u8]) -> Result<bool> {
        let operand = &self.operand[..];
        let (number, other) = (|| number_of(value), || number_of(operand));
        let phrases = |is_met: &dyn Fn(&Has<'_>) -> bool, count: usize| {
            if value.len().saturating_mul(count) > PHRASE_WORK_MAX {
                return Err(too_much("a condition of phrases"));
            }
            let value = value.to_ascii_lowercase();
            Ok(is_met(&|phrase| contains(&value, &phrase.to_ascii_lowercase())))
        };
        let known = || words(value).collect::<HashSet<&[u8]>>();
        Ok(match self.operator {
            0 => value == operand,
            1 => contains(value, operand),
            2 => value.starts_with(operand),
            3 => value.ends_with(operand),
            4 => {
                let known = known();
                words(operand).all(|word| known.contains(word))
            }
            5 => {
                let known = known();
                words(operand).any(|word| known.contains(word))
            }
            6 => words(operand).any(|word| word == value),
            STRRX => match &self.pattern {
                Some(pattern) => pattern.0.is_match(value).map_err(|_| too_much("a regular expression"))?,
                None => false,
            },
            8 => number() == other(),
            9 => number() > other(),
            10 => number() >= other(),
            11 => number() < other(),
            12 => number() <= other(),
            13 => {
                let mut bounds = words(operand).map(number_of);
                let (a, b) = (bounds.next().unwrap_or(0.0), bounds.next().unwrap_or(0.0));
                (a.min(b)..=a.max(b)).contains(&number())
            }
            14 => {
                let number = number();
                words(operand).any(|word| number_of(word) == number)
            }
            15 => phrases(&|has| has(operand), 1)?,
            16 => phrases(&|has| words(operand).all(has), words(operand).count())?,
            17 => phrases(&|has| words(operand).any(has), words(operand).count())?,
            18 => {
                let text = String::from_utf8_lossy(operand);
                let parts = text.split("||").map(|group| group.split("&&").count()).sum();
                let all = |group: &str, has: &Has<'_>| group.split("&&").all(|part| has(part.trim().as_bytes()));
                phrases(&|has| text.split("||").any(|group| all(group, has)), parts)?
            }
            _ => false,
        })
    }
}

/// Reads the arguments of `search` or `metasearch`: the searches and the wish. None: an argument is none of theirs.
pub(super) fn read<'a>(arguments: impl Iterator<Item = &'a [u8]>) -> Option<(Vec<Query>, Wish)> {
    let (mut queries, mut wish) = (vec![Query::default()], Wish::default());
    for argument in arguments {
        let mut parts = argument.split(|byte| *byte == 0);
        let word = parts.next()?;
        let query = queries.last_mut()?;
        let mut number = |default: i64| {
            let text = parts.next().map(|text| String::from_utf8_lossy(text).into_owned());
            text.map_or(Some(default), |text| text.trim().parse::<i64>().ok())
        };
        match word {
            b"addcond" => {
                let mut parts = argument.splitn(4, |byte| *byte == 0).skip(1);
                let (name, operator, operand) = (parts.next()?, parts.next()?, parts.next()?);
                let code = operator_of(operator)?;
                let operator = code & 0xffff;
                let pattern = match operator {
                    STRRX => Some(Pattern::of(operand)?),
                    _ => None,
                };
                let is_negated = code & NEGATED != 0;
                query.conditions.push(Condition {
                    name: name.to_vec(),
                    operator,
                    is_negated,
                    operand: operand.to_vec(),
                    pattern,
                });
            }
            b"setorder" => {
                let mut parts = argument.split(|byte| *byte == 0).skip(1);
                let name = parts.next()?.to_vec();
                let kind = match parts.next().unwrap_or(b"0") {
                    b"STRASC" => 0,
                    b"STRDESC" => 1,
                    b"NUMASC" => 2,
                    b"NUMDESC" => 3,
                    digits => std::str::from_utf8(digits).ok()?.parse().ok()?,
                };
                query.order = Some((name, kind));
            }
            b"setlimit" | b"setmax" => {
                let (max, skip) = (number(-1)?, number(0)?);
                query.max = usize::try_from(max).ok();
                query.skip = usize::try_from(skip).unwrap_or(0);
            }
            b"get" => {
                wish.gets = true;
                wish.columns = parts.map(<[u8]>::to_vec).collect();
            }
            b"out" | b"remove" => wish.removes = true,
            b"count" => wish.counts = true,
            b"hint" => wish.hints = true,
            b"next" => queries.push(Query::default()),
            b"mstype" => wish.set = u32::try_from(number(0)?).ok().filter(|kind| *kind <= 2)?,
            _ => return None,
        }
    }
    Some((queries, wish))
}

fn operator_of(text: &[u8]) -> Option<u32> {
    const NAMES: [&str; 19] = [
        "STREQ", "STRINC", "STRBW", "STREW", "STRAND", "STROR", "STROREQ", "STRRX", "NUMEQ", "NUMGT", "NUMGE", "NUMLT",
        "NUMLE", "NUMBT", "NUMOREQ", "FTSPH", "FTSAND", "FTSOR", "FTSEX",
    ];
    let text = std::str::from_utf8(text).ok()?;
    let (text, negated) = match text.strip_prefix('~').or_else(|| text.strip_prefix('!')) {
        Some(rest) => (rest, NEGATED),
        None => (text, 0),
    };
    let named = NAMES.iter().position(|name| name.eq_ignore_ascii_case(text)).map(|at| at as u32);
    let code = named.or_else(|| text.parse().ok())?;
    ((code & 0xffff) < NAMES.len() as u32).then_some(code | negated)
}

type Record = (Vec<u8>, Columns);

/// What a search is in the order of.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum OrderKey {
    None,
    Text(Vec<u8>),
    /// The bits of a double such that they are in its order.
    Number(u64),
}

impl OrderKey {
    fn of(query: &Query, key: &[u8], columns: &Columns) -> Self {
        let Some((name, kind)) = &query.order else { return OrderKey::None };
        let value = match &name[..] {
            b"" => key,
            name => columns.iter().find(|(known, _)| known == name).map(|(_, value)| &value[..]).unwrap_or_default(),
        };
        match kind {
            0 | 1 => OrderKey::Text(value.to_vec()),
            _ => {
                let bits = number_of(value).to_bits();
                OrderKey::Number(if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            OrderKey::Text(text) => text.len(),
            _ => 0,
        }
    }
}

/// Records in the order of a search, which have not more bytes than they may have.
struct Found {
    records: BTreeMap<(OrderKey, usize), Record>,
    bytes: usize,
    /// How many are wanted.
    wanted: usize,
    is_descending: bool,
}

impl Found {
    fn bytes_of(key: &OrderKey, record: &Record) -> usize {
        let columns: usize = record.1.iter().map(|(name, value)| name.len() + value.len() + 64).sum();
        key.bytes() + record.0.len() + columns + 128
    }

    /// Errors: `MemoryIssue`, with too many bytes.
    fn put(&mut self, key: OrderKey, number: usize, record: Record) -> Result<()> {
        self.bytes += Self::bytes_of(&key, &record);
        self.records.insert((key, number), record);
        if self.records.len() > self.wanted {
            let left = if self.is_descending { self.records.pop_first() } else { self.records.pop_last() };
            if let Some(((key, _), record)) = left {
                self.bytes -= Self::bytes_of(&key, &record);
            }
        }
        match self.bytes <= FOUND_BYTES_MAX {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::MemoryIssue, &[&self.bytes, &"records", &"a search"])),
        }
    }
}

fn find(work: &Work<'_>, query: &Query) -> Result<Vec<Record>> {
    let wanted = query.max.unwrap_or(FOUND_MAX).saturating_add(query.skip).min(FOUND_MAX);
    let is_descending = query.order.as_ref().is_some_and(|(_, kind)| kind % 2 == 1);
    let mut found = Found { records: BTreeMap::new(), bytes: 0, wanted, is_descending };
    let mut place = Some(Place::Start);
    let mut number = 0;
    let mut bytes = 0;
    // Without an order the first ones are enough.
    while let Some(at) = place
        && (query.order.is_some() || found.records.len() < wanted)
    {
        let (rows, next) = work.rows_behind(&at, ROWS_AT_ONCE)?;
        for row in &rows {
            let (key, columns) = work.read_record(row.data())?;
            let mut is_met = true;
            for condition in &query.conditions {
                is_met = is_met && condition.is_met(&key, &columns)?;
            }
            if is_met {
                number += 1;
                found.put(OrderKey::of(query, &key, &columns), number, (key, columns))?;
            }
            bytes += row.data().len().saturating_mul(query.conditions.len() + 1);
            if bytes > BYTES_AT_ONCE && !work.context.is_in_txn() {
                bytes = 0;
                fiber::yield_now();
            }
        }
        place = next;
        if !work.context.is_in_txn() {
            fiber::yield_now();
        }
    }
    let records = found.records.into_values();
    let skip = query.skip;
    let most = query.max.unwrap_or(FOUND_MAX);
    Ok(match is_descending {
        true => records.rev().skip(skip).take(most).collect(),
        false => records.skip(skip).take(most).collect(),
    })
}

/// Searches, and does what is wished with what is found. Returns the elements of the answer. May wait.
pub(super) fn search(work: &Work<'_>, queries: &[Query], wish: &Wish) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        let more = find(work, query)?;
        if number == 0 {
            found = more;
            continue;
        }
        let keys: std::collections::BTreeSet<Vec<u8>> = more.iter().map(|record| record.0.clone()).collect();
        match wish.set {
            0 => {
                let known: std::collections::BTreeSet<Vec<u8>> = found.iter().map(|record| record.0.clone()).collect();
                found.extend(more.into_iter().filter(|record| !known.contains(&record.0)));
            }
            1 => found.retain(|record| keys.contains(&record.0)),
            _ => found.retain(|record| !keys.contains(&record.0)),
        }
    }
    if wish.removes {
        for (key, _) in &found {
            work.out(key)?;
        }
        return Ok(Vec::new());
    }
    let mut elements = match (wish.counts, wish.gets) {
        (true, _) => vec![found.len().to_string().into_bytes()],
        (_, true) => found.into_iter().map(|record| shown(record, &wish.columns)).collect(),
        _ => found.into_iter().map(|(key, _)| key).collect(),
    };
    if wish.hints {
        elements.push(b"\0\0[[HINT]]\nscanning the whole table\n".to_vec());
    }
    Ok(elements)
}

/// A record with its key under the name of no bytes.
fn shown((key, columns): Record, wanted: &[Vec<u8>]) -> Vec<u8> {
    let mut shown: Columns = vec![(Vec::new(), key)];
    match wanted {
        [] => shown.extend(columns),
        wanted => {
            let column = |name: &Vec<u8>| columns.iter().find(|(known, _)| known == name).cloned();
            shown.extend(wanted.iter().filter(|name| !name.is_empty()).filter_map(column));
        }
    }
    join_columns(&shown)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn is_met(operator: &str, operand: &str, value: &str) -> bool {
        let argument = [b"addcond\0name\0", operator.as_bytes(), b"\0", operand.as_bytes()].concat();
        let (queries, _) = read([&argument[..]].into_iter()).unwrap();
        queries[0].conditions[0].is_met(b"key", &vec![(b"name".to_vec(), value.as_bytes().to_vec())]).unwrap()
    }

    #[test]
    fn conditions_compare_texts_words_and_numbers() {
        for (operator, operand, met, unmet) in [
            ("0", "abc", "abc", "abcd"),
            ("STRINC", "b", "abc", "ac"),
            ("STRBW", "ab", "abc", "cab"),
            ("STREW", "bc", "abc", "bca"),
            ("STRAND", "a b", "b,a c", "a c"),
            ("STROR", "a b", "b c", "c d"),
            ("STROREQ", "a b", "b", "c"),
            ("STRRX", "^a[bc]+d$", "abcd", "Abcd"),
            ("STRRX", "*^a.c", "xA\nC".trim_start_matches('x'), "xac"),
            ("~STRRX", "b|c", "xyz", "axc"),
            ("7", "[[:digit:]]{3}", "a123", "a12"),
            ("NUMEQ", "10", "10.0", "11"),
            ("NUMGT", "10", "10.5 m", "10"),
            ("NUMGE", "10", "10", "9"),
            ("NUMLT", "10", "9", "10"),
            ("NUMLE", "10", "10", "1e2"),
            ("NUMBT", "20 10", "15", "21"),
            ("NUMOREQ", "1 2 3", "2", "4"),
            ("FTSPH", "Hello World", "say hello world", "hello my world"),
            ("FTSEX", "a && b || c", "xc", "a d"),
            ("16777216", "abc", "x", "abc"),
            ("~STREQ", "abc", "x", "abc"),
        ] {
            assert!(is_met(operator, operand, met), "{operator} {operand} {met}");
            assert!(!is_met(operator, operand, unmet), "{operator} {operand} {unmet}");
        }
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        let wrong: [&[u8]; 6] =
            [b"addcond\0a\0", b"addcond\0a\0STRXX\0b", b"addcond\0a\x007\0(b", b"other", b"mstype\09", b"setlimit\0x"];
        for argument in wrong {
            assert_eq!(read([argument].into_iter()), None, "{argument:?}");
        }
        let (queries, wish) =
            read([&b"setlimit\x005\x002"[..], b"next", b"mstype\x002", b"count"].into_iter()).unwrap();
        assert_eq!((queries.len(), queries[0].max, queries[0].skip, wish.set, wish.counts), (2, Some(5), 2, 2, true));
    }
    #[test]
    fn regular_expressions_are_bounded() {
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        let deep = "(".repeat(100) + &")".repeat(100);
        for wrong in ["a{1000}{1000}{1000}", "(", "[", "(?=a)", "\\1", &long, &deep] {
            assert_eq!(Pattern::of(wrong.as_bytes()), None, "{wrong:.20}");
        }
        assert_eq!(Pattern::of(b"\xff"), None);
        // What takes others forever.
        let long = [vec![b'a'; 1_000_000], vec![b'b']].concat();
        assert_eq!(Pattern::of(b"^(a+)+$").unwrap().0.is_match(&long), Ok(false));
    }

    #[test]
    fn long_operands_are_compared_with_long_values_at_once() {
        let long = "a".repeat(500_000);
        let words = "a b ".repeat(200_000);
        for (operator, operand, value, is_so) in [
            ("STRINC", format!("{long}b"), "a".repeat(1_000_000), false),
            ("STRAND", format!("{words} c"), words.clone(), false),
            ("STROR", "x ".repeat(200_000), words.clone(), false),
            ("NUMEQ", "10".to_string(), "1e".repeat(500_000), true),
            ("NUMOREQ", "2 ".repeat(200_000), long.clone(), false),
        ] {
            assert_eq!(is_met(operator, &operand, &value), is_so, "{operator}");
        }
        let argument = [b"addcond\0name\0FTSAND\0", words.as_bytes()].concat();
        let (queries, _) = read([&argument[..]].into_iter()).unwrap();
        let columns = vec![(b"name".to_vec(), long.into_bytes())];
        assert!(queries[0].conditions[0].is_met(b"key", &columns).is_err());
    }
}
