//! Meta commands: two letters, a key, and flags of one letter that say what is done and what is answered.

use super::classes::class_of;
use super::layout::{BINARY_KEY, Item, STALE, TOKEN_SENT};
use super::numbers::{push_u64, read_i32, read_u32, read_u64};
use super::onlookers::Seen;
use super::store::{Outcome, Sum, Verb, Wanted, Work};
use super::text::{BAD_FORMAT, KEY_BYTES_MAX, Words};
use database::Result;

/// Words of a command that are looked at.
const COMMAND_WORDS_MAX: usize = 19;
/// Longest opaque token, with its letter.
const OPAQUE_BYTES_MAX: usize = 32;

/// What the flags of a command say.
#[derive(Default)]
struct Flags {
    is_binary: bool,
    value: bool,
    is_quiet: bool,
    is_invalidating: bool,
    keeps_key: bool,
    no_update: bool,
    /// N: the item is made if it is not there, and expires then.
    vivify: Option<i32>,
    /// T.
    exptime: Option<i32>,
    /// R.
    recache: Option<i32>,
    client_flags: u32,
    cas: Option<u64>,
    /// E: the cas that it gets; 0: one of its own.
    given_cas: u64,
    mode: u8,
    initial: u64,
    delta: Option<u64>,
}

type Refusal = &'static str;
const BAD_KEY: Refusal = "CLIENT_ERROR error decoding key";
const BAD_TOKEN: Refusal = "CLIENT_ERROR bad token in command line format";

/// `newer`: flags that are not flags of every command.
fn read_flags(words: &[&[u8]], newer: &[u8], key: &[u8]) -> std::result::Result<Flags, Refusal> {
    let mut flags = Flags::default();
    let mut seen = [false; 127];
    let mut refused = None;
    for word in words {
        let Some((&letter, token)) = word.split_first() else { continue };
        match seen.get_mut(usize::from(letter)) {
            Some(was_seen) if !*was_seen => *was_seen = true,
            _ => return Err("CLIENT_ERROR duplicate flag"),
        }
        if matches!(letter, b'x' | b'E') && !newer.contains(&letter) {
            return Err("CLIENT_ERROR invalid flag");
        }
        let moment = |refused: &mut Option<Refusal>| {
            let read = read_i32(token);
            if read.is_none() {
                *refused = Some(BAD_TOKEN);
            }
            read
        };
        match letter {
            b'b' => {
                flags.is_binary = true;
                if decode_base64(key).is_none() {
                    refused = Some(BAD_KEY);
                }
            }
            b'N' => flags.vivify = moment(&mut refused),
            b'T' => flags.exptime = moment(&mut refused),
            b'R' => flags.recache = moment(&mut refused),
            b'v' => flags.value = true,
            b'u' => flags.no_update = true,
            b'q' => flags.is_quiet = true,
            b'x' => flags.keeps_key = true,
            b'I' => flags.is_invalidating = true,
            b'F' => match read_u32(token) {
                Some(value) => flags.client_flags = value,
                None => refused = Some(BAD_FORMAT),
            },
            b'E' => match read_u64(token) {
                Some(cas) => flags.given_cas = cas,
                None => refused = Some(BAD_TOKEN),
            },
            b'C' => match read_u64(token) {
                Some(cas) => flags.cas = Some(cas),
                None => refused = Some(BAD_TOKEN),
            },
            b'M' => match token {
                [mode] => flags.mode = *mode,
                _ => refused = Some("CLIENT_ERROR incorrect length for M token"),
            },
            b'J' => match read_u64(token) {
                Some(initial) => flags.initial = initial,
                None => refused = Some("CLIENT_ERROR invalid numeric initial value"),
            },
            b'D' => match read_u64(token) {
                Some(delta) => flags.delta = Some(delta),
                None => refused = Some("CLIENT_ERROR invalid numeric delta value"),
            },
            b'l' | b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'h' => {}
            _ => return Err("CLIENT_ERROR invalid flag"),
        }
    }
    refused.map_or(Ok(flags), Err)
}

/// Bytes of base64. None: they are none.
pub(super) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.chunks(4) {
        let mut bits = 0u32;
        for (at, byte) in group.iter().enumerate() {
            let six = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' if at >= 2 => 0,
                _ => return None,
            };
            bits = bits << 6 | u32::from(six);
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    out.truncate(out.len() - padding);
    // A sign of padding stands at the end only.
    (text.iter().filter(|byte| **byte == b'=').count() == padding).then_some(out)
}

/// Appends bytes as base64.
pub(super) fn encode_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let six = (bits >> (18 - 6 * at)) as usize & 63;
            out.push(if at <= group.len() { LETTERS[six] } else { b'=' });
        }
    }
}

/// Serves a meta command: appends the answer, or nothing. Errors: those of the database.
pub(super) fn serve(work: &Work<'_>, line: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let words = Words::of(line);
    let name = words.get(0);
    let start = out.len();
    let refusal = match name {
        b"mg" => get(work, &words, out)?,
        b"ms" => set(work, &words, value, out)?,
        b"md" => delete(work, &words, out)?,
        b"ma" => add(work, &words, out)?,
        _ => debug(work, &words, out)?,
    };
    if let Some(text) = refusal {
        out.truncate(start);
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

/// The key and the flags of a command that has `before` words in front of its flags.
fn read<'a>(
    words: &Words<'a>,
    before: usize,
    newer: &[u8],
) -> std::result::Result<(std::borrow::Cow<'a, [u8]>, Flags), Refusal> {
    let key = words.get(1);
    if words.count < 2 {
        return Err("ERROR");
    }
    if key.len() > KEY_BYTES_MAX || words.count < before {
        return Err(BAD_FORMAT);
    }
    if words.count > COMMAND_WORDS_MAX {
        return Err("CLIENT_ERROR options flags are too long");
    }
    let flags = read_flags(&words.all()[before..], newer, key)?;
    if !flags.is_binary {
        return Ok((key.into(), flags));
    }
    let key = decode_base64(key).ok_or(BAD_KEY)?;
    Ok((key.into(), flags))
}

/// Appends the flags of an answer that only say again what was asked with.
fn echo(out: &mut Vec<u8>, words: &Words<'_>, before: usize, (key, is_binary): (&[u8], bool)) -> Option<Refusal> {
    for word in &words.all()[before..] {
        if let Some(refusal) = echo_word(out, word, (key, is_binary)) {
            return Some(refusal);
        }
    }
    None
}

fn echo_word(out: &mut Vec<u8>, word: &[u8], (key, is_binary): (&[u8], bool)) -> Option<Refusal> {
    match word.first() {
        Some(b'O') if word.len() > OPAQUE_BYTES_MAX => return Some("CLIENT_ERROR opaque token too long"),
        Some(b'O') => {
            out.push(b' ');
            out.extend_from_slice(word);
        }
        Some(b'k') => {
            out.extend_from_slice(b" k");
            match is_binary {
                true => {
                    encode_base64(out, key);
                    out.extend_from_slice(b" b");
                }
                false => out.extend_from_slice(key),
            }
        }
        _ => {}
    }
    None
}

fn push_number(out: &mut Vec<u8>, letter: u8, number: u64) {
    out.extend_from_slice(&[b' ', letter]);
    push_u64(out, number);
}

fn push_ttl(out: &mut Vec<u8>, expires: u64, now: u64) {
    match expires {
        0 => out.extend_from_slice(b" t-1"),
        expires => push_number(out, b't', expires.saturating_sub(now)),
    }
}

fn get(work: &Work<'_>, words: &Words<'_>, out: &mut Vec<u8>) -> Result<Option<Refusal>> {
    let (key, flags) = match read(words, 2, b"") {
        Ok(read) => read,
        Err(refusal) => return Ok(Some(refusal)),
    };
    let (door, database) = (work.door, work.database);
    let moment = |exptime: Option<i32>| exptime.map(|exptime| door.moment(database, exptime));
    let (vivify, exptime, recache) = (moment(flags.vivify), moment(flags.exptime), moment(flags.recache));
    let asks_recent = words.all()[2..].iter().any(|word| matches!(word.first(), Some(b'h' | b'l')));
    if asks_recent {
        door.recent.begin();
    }
    let start = out.len();
    let hidden = database.hidden_reads();
    let result = work.atomically(|| {
        work.look(&key, true, |found| {
            let mut answer = Vec::new();
            let state = if flags.is_binary { BINARY_KEY } else { 0 };
            let made = Item { state, ..Item::default() };
            let (old, row, is_made) = match (found, vivify) {
                (Some((item, row)), _) => (*item, Some(row), false),
                (None, Some(_)) => (Item { cas: work.cas_or(0), ..made }, None, true),
                (None, None) => return Ok(None),
            };
            let mut item = old;
            let mut has_won = is_made;
            match flags.value {
                true => {
                    answer.extend_from_slice(b"VA ");
                    push_u64(&mut answer, item.value.len() as u64);
                }
                false => answer.extend_from_slice(b"HD"),
            }
            let now = work.now();
            // What is told of an item is what it is at that flag: the others may come later.
            for word in &words.all()[2..] {
                match word.first() {
                    Some(b'T') => item.expires = exptime.unwrap_or(item.expires),
                    Some(b'N') if is_made => item.expires = vivify.unwrap_or(0),
                    Some(b'R') => {
                        let is_due = item.expires != 0 && recache.is_some_and(|recache| item.expires < recache);
                        has_won |= item.state & TOKEN_SENT == 0 && !is_made && is_due;
                    }
                    Some(b's') => push_number(&mut answer, b's', item.value.len() as u64),
                    Some(b't') => push_ttl(&mut answer, item.expires, now),
                    Some(b'c') => push_number(&mut answer, b'c', item.cas),
                    Some(b'f') => push_number(&mut answer, b'f', u64::from(item.flags)),
                    Some(b'l') => {
                        let asked = door.recent.look(&key).map_or(now, |(seconds, _)| seconds);
                        push_number(&mut answer, b'l', now.saturating_sub(asked));
                    }
                    Some(b'h') => {
                        let is_read = door.recent.look(&key).is_some_and(|(_, is_read)| is_read);
                        push_number(&mut answer, b'h', u64::from(is_read));
                    }
                    _ => {
                        if let Some(refusal) = echo_word(&mut answer, word, (&key, item.state & BINARY_KEY != 0)) {
                            return Ok(Some(Err(refusal)));
                        }
                    }
                }
            }
            if item.state & TOKEN_SENT != 0 {
                answer.extend_from_slice(b" Z");
            }
            if item.state & STALE != 0 {
                answer.extend_from_slice(b" X");
                has_won |= item.state & TOKEN_SENT == 0;
            }
            if has_won {
                answer.extend_from_slice(b" W");
                item.state |= TOKEN_SENT;
            }
            answer.extend_from_slice(b"\r\n");
            if flags.value {
                answer.extend_from_slice(item.value);
                answer.extend_from_slice(b"\r\n");
            }
            if item != old || is_made {
                work.put(&key, &item, row.map(|row| row.data()))?;
            }
            Ok(Some(Ok(answer)))
        })
    })?;
    let counters = &door.counters;
    let is_hit = matches!(result, Some(Ok(_)));
    if work.door.onlookers.is_any() {
        let found = work.look(&key, false, |found| Ok(found.map(|(item, _)| Seen::of(item))))?;
        work.saw_get(&key, found);
    }
    match flags.exptime {
        Some(_) => counters.count_touches(u64::from(is_hit), u64::from(!is_hit), true),
        None => counters.count_gets(u64::from(is_hit), u64::from(!is_hit)),
    }
    match result {
        Some(Ok(answer)) => {
            if !flags.no_update {
                door.recent.note(&key, || work.now(), true);
            }
            out.extend_from_slice(&answer);
        }
        Some(Err(refusal)) => return Ok(Some(refusal)),
        None => {
            work.note_miss(&key, hidden);
            out.extend_from_slice(b"EN");
            if let Some(refusal) = echo(out, words, 2, (&key, flags.is_binary)) {
                return Ok(Some(refusal));
            }
            out.extend_from_slice(b"\r\n");
            if flags.is_quiet {
                out.truncate(start);
            }
        }
    }
    Ok(None)
}

fn set(work: &Work<'_>, words: &Words<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<Option<Refusal>> {
    let (key, flags) = match read(words, 3, b"E") {
        Ok(read) => read,
        Err("CLIENT_ERROR options flags are too long") => return Ok(Some("CLIENT_ERROR options flags too long")),
        Err(refusal) => return Ok(Some(refusal)),
    };
    let moment = |exptime: Option<i32>| work.door.moment(work.database, exptime.unwrap_or(0));
    let (mut verb, mut begins) = match flags.mode {
        b'E' => (Verb::Add, None),
        b'A' => (Verb::Append, flags.vivify.map(|_| moment(flags.vivify))),
        b'P' => (Verb::Prepend, flags.vivify.map(|_| moment(flags.vivify))),
        b'R' => (Verb::Replace, None),
        b'S' | 0 => (Verb::Set, None),
        _ => return Ok(Some("CLIENT_ERROR invalid mode for ms M token")),
    };
    if flags.cas.is_some() && matches!(verb, Verb::Set | Verb::Replace) {
        verb = Verb::Cas;
        begins = None;
    }
    let wanted = Wanted {
        verb,
        key: &key,
        value,
        flags: flags.client_flags,
        expires: moment(flags.exptime),
        cas: flags.cas.unwrap_or(0),
        given_cas: flags.given_cas,
        is_binary: flags.is_binary,
        takes_stale: flags.is_invalidating,
        begins,
    };
    let outcome = work.store(&wanted)?;
    let start = out.len();
    out.extend_from_slice(match outcome {
        Outcome::Stored(_) => b"HD",
        Outcome::NotStored => b"NS",
        Outcome::Exists => b"EX",
        Outcome::NotFound => b"NF",
    });
    for word in &words.all()[3..] {
        if word.first() == Some(&b'c') {
            push_number(out, b'c', if let Outcome::Stored(cas) = outcome { cas } else { 0 });
        } else if let Some(refusal) = echo_word(out, word, (&key, flags.is_binary)) {
            return Ok(Some(refusal));
        }
    }
    out.extend_from_slice(b"\r\n");
    if let Outcome::Stored(_) = outcome {
        work.door.recent.note(&key, || work.now(), false);
        if flags.is_quiet {
            out.truncate(start);
        }
    }
    Ok(None)
}

fn delete(work: &Work<'_>, words: &Words<'_>, out: &mut Vec<u8>) -> Result<Option<Refusal>> {
    let (key, flags) = match read(words, 2, b"xE") {
        Ok(read) => read,
        Err("CLIENT_ERROR options flags are too long") => return Ok(Some("CLIENT_ERROR options flags too long")),
        Err(refusal @ (BAD_FORMAT | "ERROR")) => return Ok(Some(refusal)),
        Err(_) => return Ok(Some("CLIENT_ERROR invalid or duplicate flag")),
    };
    let start = out.len();
    out.extend_from_slice(b"HD");
    if let Some(refusal) = echo(out, words, 2, (&key, flags.is_binary)) {
        return Ok(Some(refusal));
    }
    out.extend_from_slice(b"\r\n");
    let expires = flags.exptime.map(|exptime| work.door.moment(work.database, exptime));
    let outcome = match flags.is_invalidating || flags.keeps_key {
        false => work.delete(&key, flags.cas.unwrap_or(0))?,
        true => work.atomically(|| {
            work.look(&key, true, |found| {
                let Some((old, row)) = found else { return Ok(Outcome::NotFound) };
                if flags.cas.is_some_and(|cas| cas != old.cas) {
                    return Ok(Outcome::Exists);
                }
                let mut made = Item { cas: work.cas_or(flags.given_cas), ..*old };
                if flags.keeps_key {
                    made.value = &[];
                    made.flags = 0;
                }
                if flags.is_invalidating {
                    made.expires = expires.unwrap_or(old.expires);
                    made.state = (old.state | STALE) & !TOKEN_SENT;
                }
                work.put(&key, &made, Some(row.data())).map(Outcome::Stored)
            })
        })?,
    };
    let is_silent = match outcome {
        Outcome::Stored(_) => flags.is_quiet,
        Outcome::NotFound => {
            out[start..start + 2].copy_from_slice(b"NF");
            false
        }
        _ => {
            out[start..start + 2].copy_from_slice(b"EX");
            false
        }
    };
    work.door.counters.count_deletes(matches!(outcome, Outcome::Stored(_)));
    if is_silent {
        out.truncate(start);
    }
    Ok(None)
}

fn add(work: &Work<'_>, words: &Words<'_>, out: &mut Vec<u8>) -> Result<Option<Refusal>> {
    let (key, flags) = match read(words, 2, b"E") {
        Ok(read) => read,
        Err("CLIENT_ERROR options flags are too long") => return Ok(Some("CLIENT_ERROR options flags too long")),
        Err(refusal @ (BAD_FORMAT | "ERROR")) => return Ok(Some(refusal)),
        Err(_) => return Ok(Some("CLIENT_ERROR invalid or duplicate flag")),
    };
    let is_incr = match flags.mode {
        0 | b'I' | b'+' => true,
        b'D' | b'-' => false,
        _ => return Ok(Some("CLIENT_ERROR invalid mode for ma M token")),
    };
    let (door, database) = (work.door, work.database);
    let vivify = flags.vivify.map(|exptime| door.moment(database, exptime));
    let exptime = flags.exptime.map(|exptime| door.moment(database, exptime));
    let delta = flags.delta.unwrap_or(1);
    let (mut text, mut is_made) = (Vec::new(), false);
    // The item as it is behind this, with its number: made, counted, or out of reach.
    let (change, cas) = ((delta, is_incr), (flags.cas.unwrap_or(0), flags.given_cas));
    let sum = match work.add_and(&key, change, cas, exptime)? {
        Sum::NotFound if vivify.is_some() => {
            push_u64(&mut text, flags.initial);
            // Of the two the last one counts.
            let last = words.all()[2..].iter().rev().find(|word| matches!(word.first(), Some(b'T' | b'N')));
            let is_touched = last.is_some_and(|word| word.first() == Some(&b'T'));
            let expires = if is_touched { exptime } else { vivify }.unwrap_or(0);
            let wanted = Wanted {
                verb: Verb::Add,
                key: &key,
                value: &text,
                flags: 0,
                expires,
                cas: 0,
                given_cas: flags.given_cas,
                is_binary: flags.is_binary,
                takes_stale: false,
                begins: None,
            };
            is_made = true;
            match work.store(&wanted)? {
                Outcome::Stored(cas) => Sum::Done { value: flags.initial, cas, expires: 0 },
                // Somebody else was faster: the number is there now.
                _ => work.add_and(&key, change, cas, exptime)?,
            }
        }
        sum => sum,
    };
    door.counters.count_sums(is_incr, matches!(sum, Sum::Done { .. }));
    let start = out.len();
    match sum {
        Sum::Done { value, cas, expires } => {
            text.clear();
            push_u64(&mut text, value);
            match flags.value {
                true => {
                    out.extend_from_slice(b"VA ");
                    push_u64(out, text.len() as u64);
                }
                false => out.extend_from_slice(b"HD"),
            }
            // What is told is what it is at that flag: the others may come later.
            let mut expires = expires;
            for word in &words.all()[2..] {
                match word.first() {
                    Some(b'T') => expires = exptime.unwrap_or(expires),
                    Some(b'N') if is_made => expires = vivify.unwrap_or(0),
                    Some(b'c') => push_number(out, b'c', cas),
                    Some(b't') => push_ttl(out, expires, work.now()),
                    _ => {
                        if let Some(refusal) = echo_word(out, word, (&key, flags.is_binary)) {
                            return Ok(Some(refusal));
                        }
                    }
                }
            }
            out.extend_from_slice(b"\r\n");
            if flags.value {
                out.extend_from_slice(&text);
                out.extend_from_slice(b"\r\n");
            }
            // As the real one: that a number was made is told.
            if flags.is_quiet && !is_made {
                out.truncate(start);
            }
        }
        Sum::NoNumber => return Ok(Some("CLIENT_ERROR cannot increment or decrement non-numeric value")),
        Sum::NotFound | Sum::Exists => {
            let is_missing = matches!(sum, Sum::NotFound);
            out.extend_from_slice(if is_missing { b"NF" } else { b"EX" });
            if let Some(refusal) = echo(out, words, 2, (&key, flags.is_binary)) {
                return Ok(Some(refusal));
            }
            out.extend_from_slice(b"\r\n");
        }
    }
    Ok(None)
}

/// `me`: what is known of an item.
fn debug(work: &Work<'_>, words: &Words<'_>, out: &mut Vec<u8>) -> Result<Option<Refusal>> {
    let key = words.get(1);
    if words.count < 2 || key.len() > KEY_BYTES_MAX {
        return Ok(Some(BAD_FORMAT));
    }
    let is_binary = words.get(2) == b"b";
    let key = match is_binary.then(|| decode_base64(key)) {
        None => key.to_vec(),
        Some(Some(key)) => key,
        Some(None) => return Ok(Some("CLIENT_ERROR error decoding key")),
    };
    work.door.recent.begin();
    work.look(&key, true, |found| {
        let Some((item, _)) = found else {
            out.extend_from_slice(b"EN\r\n");
            return Ok(());
        };
        let now = work.now();
        let (asked, is_read) = work.door.recent.look(&key).unwrap_or((now, false));
        out.extend_from_slice(b"ME ");
        out.extend_from_slice(words.get(1));
        let exp = if item.expires == 0 { -1 } else { item.expires.saturating_sub(now) as i64 };
        let size = super::text::item_size(&key, item.flags, item.value.len());
        let words = format!(
            " exp={exp} la={} cas={} fetch={} cls={} size={size}\r\n",
            now.saturating_sub(asked),
            item.cas,
            if is_read { "yes" } else { "no" },
            class_of(size),
        );
        out.extend_from_slice(words.as_bytes());
        Ok(())
    })?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn base64_goes_there_and_back() {
        for length in 0..40u8 {
            let bytes: Vec<u8> = (0..length).map(|at| at.wrapping_mul(73)).collect();
            let mut text = Vec::new();
            encode_base64(&mut text, &bytes);
            let back = decode_base64(&text);
            assert_eq!(back, (length > 0).then_some(bytes));
        }
        let wrong: [&[u8]; 6] = [b"", b"a", b"abc", b"ab=c", b"====", b"ab c"];
        wrong.iter().for_each(|text| assert_eq!(decode_base64(text), None));
    }
}
