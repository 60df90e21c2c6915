//! `SORT`: the elements of a list, a set or a sorted set in the order of numbers, of texts, or of what stands under other keys.

use super::allowed;
use super::call::{Call, Entry, Head, Kind, SLICE, double};
use super::failure::{Outcome, SYNTAX, WRONG_TYPE};
use super::keys::read_text;
use super::lists;
use super::table::find;
use std::cmp::Ordering;

/// Elements that are sorted at once.
const ELEMENTS_MAX: u64 = 10_000_000;

#[derive(Default)]
struct Options<'a> {
    by: Option<&'a [u8]>,
    gets: Vec<&'a [u8]>,
    limit: Option<(i64, i64)>,
    is_reverse: bool,
    is_text: bool,
    store: Option<&'a [u8]>,
}

/// True if keys that patterns make of elements may be read, whichever they are.
fn may_read_all(call: &Call<'_>) -> bool {
    let rules = allowed::rules_of(call.shared, call.connection);
    let spec = call.args.first().and_then(|name| find(name));
    rules.is_none_or(|rules| spec.is_some_and(|spec| rules.may_read_all(spec, call.args)))
}

fn options<'a>(call: &Call<'a>, reads_only: bool) -> Outcome<Options<'a>> {
    let (mut options, mut at) = (Options::default(), 2);
    while at < call.args.len() {
        if call.is_word(at, "asc") {
            options.is_reverse = false;
        } else if call.is_word(at, "desc") {
            options.is_reverse = true;
        } else if call.is_word(at, "alpha") {
            options.is_text = true;
        } else if call.is_word(at, "limit") {
            call.args.get(at + 2).ok_or(SYNTAX)?;
            options.limit = Some((call.integer(at + 1)?, call.integer(at + 2)?));
            at += 2;
        } else if call.is_word(at, "by") {
            let by = call.after(at)?;
            if by.contains(&b'*') && !may_read_all(call) {
                return Err("ERR BY option of SORT denied due to insufficient ACL permissions.".into());
            }
            options.by = Some(by);
            at += 1;
        } else if call.is_word(at, "get") {
            if !may_read_all(call) {
                return Err("ERR GET option of SORT denied due to insufficient ACL permissions.".into());
            }
            options.gets.push(call.after(at)?);
            at += 1;
        } else if call.is_word(at, "store") && !reads_only {
            options.store = Some(call.after(at)?);
            at += 1;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    Ok(options)
}

/// What stands under the key that a pattern makes of an element: `weight_*`, or `object_*->field` of a hash. `#` is the element itself.
fn look_up(call: &Call<'_>, pattern: &[u8], element: &[u8]) -> Outcome<Option<Vec<u8>>> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return Ok(None) };
    let arrow = pattern[star..].windows(2).position(|pair| pair == b"->").map(|at| star + at);
    let (name, field) = match arrow {
        Some(at) if at + 2 < pattern.len() => (&pattern[..at], Some(&pattern[at + 2..])),
        _ => (pattern, None),
    };
    let key = [&name[..star], element, &name[star + 1..]].concat();
    let Some(entry) = call.find(&key)? else { return Ok(None) };
    match (field, entry.head) {
        (None, None) => Ok(Some(entry.string()?.to_vec())),
        (Some(field), Some(head)) if head.kind == Kind::Hash => super::hashes::value(call, &head, field),
        _ => Ok(None),
    }
}

fn elements(call: &Call<'_>, entry: Option<Entry>) -> Outcome<Vec<Vec<u8>>> {
    let Some(entry) = entry else { return Ok(Vec::new()) };
    let head: Head = entry.head.ok_or(WRONG_TYPE)?;
    if head.count > ELEMENTS_MAX {
        return Err(format!("ERR at most {ELEMENTS_MAX} elements are sorted at once").into());
    }
    match head.kind {
        Kind::List => lists::values(call, &head),
        Kind::Set => {
            let mut all = Vec::new();
            call.walk(&head, |reader| {
                all.push(read_text(reader).to_vec());
                true
            })?;
            Ok(all)
        }
        Kind::SortedSet => super::sorted_sets::members_in_order(call, &head),
        Kind::Hash | Kind::Stream => Err(WRONG_TYPE.into()),
    }
}

fn sort_as(call: &mut Call<'_>, reads_only: bool) -> Outcome {
    let options = options(call, reads_only)?;
    let entry = call.find(call.args[1])?;
    let head = entry.as_ref().and_then(|entry| entry.head);
    let count = head.map_or(0, |head| head.count);
    if count > SLICE {
        call.go_into_fiber()?;
    }
    let all = elements(call, entry)?;
    let mut is_sorted = options.by.is_none_or(|by| by.contains(&b'*'));
    let mut is_text = options.is_text;
    // A set has no order of its own: what is kept, and what a script does, must be the same each time.
    if !is_sorted && (options.store.is_some() || call.is_script) && head.is_some_and(|head| head.kind == Kind::Set) {
        (is_sorted, is_text) = (true, true);
    }
    let mut keyed = Vec::with_capacity(all.len());
    for (number, element) in all.into_iter().enumerate() {
        let mut text = None;
        let mut weight = 0.0;
        if is_sorted {
            let value = match options.by.filter(|by| by.contains(&b'*')) {
                Some(by) => look_up(call, by, &element)?,
                None => Some(element.clone()),
            };
            match (is_text, value) {
                (true, value) => text = value,
                (false, Some(value)) => {
                    weight = double(&value).ok_or("ERR One or more scores can't be converted into double")?;
                }
                (false, None) => {}
            }
        }
        keyed.push((weight, text, element));
        if number as u64 % SLICE == SLICE - 1 {
            call.give_way();
        }
    }
    if is_sorted {
        let has_weights = options.by.is_some_and(|by| by.contains(&b'*'));
        let order = |a: &(f64, Option<Vec<u8>>, Vec<u8>), b: &(f64, Option<Vec<u8>>, Vec<u8>)| {
            let main = if is_text { a.1.cmp(&b.1) } else { a.0.total_cmp(&b.0) };
            if main == Ordering::Equal && (!is_text || has_weights) { a.2.cmp(&b.2) } else { main }
        };
        keyed.sort_by(|a, b| if options.is_reverse { order(b, a) } else { order(a, b) });
    } else if options.is_reverse {
        keyed.reverse();
    }
    let (skip, limit) = match options.limit {
        None => (0, usize::MAX),
        Some((offset, count)) => {
            (usize::try_from(offset).unwrap_or(0), if count < 0 { usize::MAX } else { count as usize })
        }
    };
    let mut result: Vec<Option<Vec<u8>>> = Vec::new();
    for (_, _, element) in keyed.into_iter().skip(skip).take(limit) {
        if options.gets.is_empty() {
            result.push(Some(element));
        } else {
            for pattern in &options.gets {
                result.push(look_up(call, pattern, &element)?);
            }
        }
    }
    let Some(key) = options.store else {
        let mut reply = call.reply();
        reply.array(result.len());
        for value in &result {
            match value {
                Some(value) => reply.bulk(value),
                None => reply.null(),
            }
        }
        return Ok(());
    };
    let head = Head { count: result.len() as u64, ..call.new_head(Kind::List) };
    call.build(&head, result.len(), |call, at| {
        lists::put(call, &head, at as i64, result[at].as_deref().unwrap_or_default())
    })?;
    call.replace_with(key, &head)?;
    call.reply().count(result.len());
    Ok(())
}

pub(super) fn sort(call: &mut Call<'_>) -> Outcome {
    sort_as(call, false)
}

pub(super) fn sort_ro(call: &mut Call<'_>) -> Outcome {
    sort_as(call, true)
}
