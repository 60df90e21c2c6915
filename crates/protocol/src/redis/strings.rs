//! Strings: `GET`, `SET` and their kin.

use super::call::{Call, Entry, double};
use super::failure::{NOT_FLOAT, NOT_INTEGER, Outcome, SYNTAX, TOO_LONG};
use super::keys::Expiry;
use super::reply::push_integer;
use super::resp::integer;

/// Longest value that commands make of pieces.
/// A transaction of the log has to hold the value, and its key and head.
const VALUE_BYTES_MAX: usize = wal::TRANSACTION_BYTES_MAX - (64 << 10);

fn answer_value(call: &mut Call<'_>, entry: Option<&Entry>) -> Outcome {
    match entry {
        Some(entry) => {
            let value = entry.string()?;
            call.reply().bulk(value);
        }
        None => call.reply().null(),
    }
    Ok(())
}

pub(super) fn get(call: &mut Call<'_>) -> Outcome {
    let entry = call.find(call.args[1])?;
    let counter = if entry.is_some() { &call.shared.hits } else { &call.shared.misses };
    counter.set(counter.get() + 1);
    answer_value(call, entry.as_ref())
}

#[derive(Default)]
struct SetOptions {
    expiry: Option<Expiry>,
    keeps_ttl: bool,
    is_nx: bool,
    is_xx: bool,
    wants_old: bool,
}

fn set_options(call: &Call<'_>) -> Outcome<SetOptions> {
    let mut options = SetOptions::default();
    let mut at = 3;
    while at < call.args.len() {
        if call.is_word(at, "nx") && !options.is_xx {
            options.is_nx = true;
        } else if call.is_word(at, "xx") && !options.is_nx {
            options.is_xx = true;
        } else if call.is_word(at, "get") {
            options.wants_old = true;
        } else if call.is_word(at, "keepttl") && options.expiry.is_none() {
            options.keeps_ttl = true;
        } else if !options.keeps_ttl
            && options.expiry.is_none()
            && let Some(given) = Expiry::of(call.args[at])
        {
            options.expiry = Some(given.with(call.after(at)?, call, "set")?);
            at += 1;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    Ok(options)
}

pub(super) fn set(call: &mut Call<'_>) -> Outcome {
    let (key, value) = (call.args[1], call.args[2]);
    if call.args.len() == 3 {
        call.together(None, |call| call.overwrite(key, value, None))?;
        call.reply().ok();
        return Ok(());
    }
    let options = set_options(call)?;
    let old = call.find(key)?;
    if options.wants_old {
        answer_value(call, old.as_ref())?;
    }
    if options.is_nx && old.is_some() || options.is_xx && old.is_none() {
        if !options.wants_old {
            call.reply().null();
        }
        return Ok(());
    }
    let kept = old.as_ref().filter(|_| options.keeps_ttl).and_then(|old| old.expires);
    let expires = options.expiry.map_or(kept, |expiry| Some(expiry.at_ms));
    call.put_string(key, value, expires, old.as_ref())?;
    if !options.wants_old {
        call.reply().ok();
    }
    Ok(())
}

pub(super) fn setnx(call: &mut Call<'_>) -> Outcome {
    let is_free = call.find(call.args[1])?.is_none();
    if is_free {
        call.put_string(call.args[1], call.args[2], None, None)?;
    }
    call.reply().integer(i64::from(is_free));
    Ok(())
}

fn set_for(call: &mut Call<'_>, word: &[u8], name: &str) -> Outcome {
    let Some(given) = Expiry::of(word) else { return Err(SYNTAX.into()) };
    let expiry = given.with(call.args[2], call, name)?;
    let old = call.find(call.args[1])?;
    call.put_string(call.args[1], call.args[3], Some(expiry.at_ms), old.as_ref())?;
    call.reply().ok();
    Ok(())
}

pub(super) fn setex(call: &mut Call<'_>) -> Outcome {
    set_for(call, b"ex", "setex")
}

pub(super) fn psetex(call: &mut Call<'_>) -> Outcome {
    set_for(call, b"px", "psetex")
}

pub(super) fn getset(call: &mut Call<'_>) -> Outcome {
    let old = call.find(call.args[1])?;
    answer_value(call, old.as_ref())?;
    call.put_string(call.args[1], call.args[2], None, old.as_ref())
}

pub(super) fn getdel(call: &mut Call<'_>) -> Outcome {
    let old = call.find(call.args[1])?;
    answer_value(call, old.as_ref())?;
    if old.is_some() { call.remove_row(call.args[1]) } else { Ok(()) }
}

pub(super) fn getex(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let unit = match call.args.len() {
        2 => None,
        3 if call.is_word(2, "persist") => None,
        4 => Some(Expiry::of(call.args[2]).ok_or(SYNTAX)?),
        _ => return Err(SYNTAX.into()),
    };
    let old = call.find(key)?;
    if let Some(entry) = &old {
        entry.string()?;
    }
    let change = match unit {
        _ if old.is_none() => None,
        Some(unit) => Some(Some(unit.with(call.args[3], call, "getex")?.at_ms)),
        None => (call.args.len() == 3).then_some(None),
    };
    answer_value(call, old.as_ref())?;
    if let (Some(old), Some(expires)) = (old, change) {
        match expires {
            Some(at) if at <= call.now_ms() => call.remove_row(key)?,
            expires if expires != old.expires => call.put_entry(key, &old, expires)?,
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn mget(call: &mut Call<'_>) -> Outcome {
    let count = call.args.len() - 1;
    call.reply().array(count);
    for (number, key) in call.args[1..].iter().enumerate() {
        call.prefetch(1, number);
        match call.find(key)? {
            Some(entry) if entry.head.is_none() => answer_value(call, Some(&entry))?,
            _ => call.reply().null(),
        }
    }
    Ok(())
}

fn put_all(call: &mut Call<'_>) -> Outcome {
    call.together(None, |call| {
        for (number, pair) in call.args[1..].chunks_exact(2).enumerate() {
            call.prefetch(2, number);
            call.overwrite(pair[0], pair[1], None)?;
        }
        Ok(())
    })
}

pub(super) fn mset(call: &mut Call<'_>) -> Outcome {
    if call.args.len().is_multiple_of(2) {
        return Err("ERR wrong number of arguments for 'mset' command".into());
    }
    put_all(call)?;
    call.reply().ok();
    Ok(())
}

pub(super) fn msetnx(call: &mut Call<'_>) -> Outcome {
    if call.args.len().is_multiple_of(2) {
        return Err("ERR wrong number of arguments for 'msetnx' command".into());
    }
    for pair in call.args[1..].chunks_exact(2) {
        if call.find(pair[0])?.is_some() {
            call.reply().integer(0);
            return Ok(());
        }
    }
    put_all(call)?;
    call.reply().integer(1);
    Ok(())
}

/// Refuses a value that could not be logged before it is made. Errors: it would have too many bytes.
pub(super) fn check_grown(key: &[u8], length: usize) -> Outcome {
    match length.saturating_add(key.len()) > VALUE_BYTES_MAX {
        true => Err(TOO_LONG.into()),
        false => Ok(()),
    }
}

pub(super) fn append(call: &mut Call<'_>) -> Outcome {
    let (key, more) = (call.args[1], call.args[2]);
    let old = call.find(key)?;
    let before = match &old {
        Some(entry) => entry.string()?,
        None => &[],
    };
    check_grown(key, before.len() + more.len())?;
    let value = [before, more].concat();
    let expires = old.as_ref().and_then(|old| old.expires);
    if !more.is_empty() || old.is_none() {
        call.put_string(key, &value, expires, old.as_ref())?;
    }
    call.reply().count(value.len());
    Ok(())
}

pub(super) fn strlen(call: &mut Call<'_>) -> Outcome {
    let length = match call.find(call.args[1])? {
        Some(entry) => entry.string()?.len(),
        None => 0,
    };
    call.reply().count(length);
    Ok(())
}

fn add(call: &mut Call<'_>, by: i64) -> Outcome {
    let key = call.args[1];
    let old = call.find(key)?;
    let before = match &old {
        Some(entry) => integer(entry.string()?).ok_or(NOT_INTEGER)?,
        None => 0,
    };
    let Some(value) = before.checked_add(by) else {
        return Err("ERR increment or decrement would overflow".into());
    };
    let mut text = itoa::Buffer::new();
    let expires = old.as_ref().and_then(|old| old.expires);
    call.put_string(key, text.format(value).as_bytes(), expires, old.as_ref())?;
    call.reply().integer(value);
    Ok(())
}

pub(super) fn incr(call: &mut Call<'_>) -> Outcome {
    add(call, 1)
}

pub(super) fn decr(call: &mut Call<'_>) -> Outcome {
    add(call, -1)
}

pub(super) fn incrby(call: &mut Call<'_>) -> Outcome {
    let by = call.integer(2)?;
    add(call, by)
}

pub(super) fn decrby(call: &mut Call<'_>) -> Outcome {
    let by = call.integer(2)?.checked_neg().ok_or("ERR decrement would overflow")?;
    add(call, by)
}

/// The sum of two numbers given as text, as text: exact where both are decimal fractions of a length that people write, as doubles otherwise. None:
/// one is no number, or the sum is none.
pub(super) fn add_floats(before: &[u8], by: &[u8]) -> Outcome<Vec<u8>> {
    let (a, b) = (double(before).ok_or(NOT_FLOAT)?, double(by).ok_or(NOT_FLOAT)?);
    let sum = a + b;
    if !sum.is_finite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let exact = std::str::from_utf8(before).ok().zip(std::str::from_utf8(by).ok()).and_then(|(a, b)| exact_sum(a, b));
    Ok(exact.unwrap_or_else(|| plain_text(sum)).into_bytes())
}

/// Without an exponent, with at most 17 digits behind the point and no zeros at the end.
fn plain_text(value: f64) -> String {
    trimmed(&format!("{value:.17}"))
}

fn trimmed(text: &str) -> String {
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// The sum of two decimal fractions. None: one of them has an exponent or too many digits.
fn exact_sum(a: &str, b: &str) -> Option<String> {
    /// Digits behind the point.
    const SCALE: usize = 17;
    let scaled = |text: &str| -> Option<i128> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain(whole) || !is_plain(fraction) || whole.len() > 20 || fraction.len() > SCALE {
            return None;
        }
        let text = format!("{whole}{fraction:0<SCALE$}");
        let value: i128 = text.parse().ok()?;
        Some(if is_negative { -value } else { value })
    };
    let sum = scaled(a)? + scaled(b)?;
    let unit = 10_i128.pow(SCALE as u32);
    let sign = if sum < 0 { "-" } else { "" };
    Some(trimmed(&format!("{sign}{}.{:0SCALE$}", sum.abs() / unit, sum.abs() % unit)))
}

pub(super) fn incrbyfloat(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let old = call.find(key)?;
    let before = match &old {
        Some(entry) => entry.string()?,
        None => b"0",
    };
    let value = add_floats(before, call.args[2])?;
    let expires = old.as_ref().and_then(|old| old.expires);
    call.put_string(key, &value, expires, old.as_ref())?;
    call.reply().bulk(&value);
    Ok(())
}

/// The part of a sequence of `length` between two places that may be counted from its end; empty if there is none.
pub(super) fn span(length: usize, from: i64, to: i64) -> std::ops::Range<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let place = |at: i64| if at < 0 { (length.saturating_add(at)).max(0) } else { at };
    if from < 0 && to < 0 && from > to {
        return 0..0;
    }
    let (from, to) = (place(from), place(to).min(length - 1));
    if from > to || length == 0 { 0..0 } else { from as usize..to as usize + 1 }
}

/// The same of a collection: a last place before its first one leaves nothing.
pub(super) fn span_of_elements(length: u64, from: i64, to: i64) -> std::ops::Range<usize> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let is_before = i64::try_from(length).is_ok_and(|length| to < -length);
    if is_before { 0..0 } else { span(length, from, to) }
}

pub(super) fn getrange(call: &mut Call<'_>) -> Outcome {
    let (from, to) = (call.integer(2)?, call.integer(3)?);
    match call.find(call.args[1])? {
        Some(entry) => {
            let value = entry.string()?;
            let part = &value[span(value.len(), from, to)];
            call.reply().bulk(part);
        }
        None => call.reply().bulk(b""),
    }
    Ok(())
}

pub(super) fn setrange(call: &mut Call<'_>) -> Outcome {
    let (key, offset, part) = (call.args[1], call.integer(2)?, call.args[3]);
    let offset = usize::try_from(offset).map_err(|_| "ERR offset is out of range")?;
    let old = call.find(key)?;
    let before = match &old {
        Some(entry) => entry.string()?,
        None => &[],
    };
    if part.is_empty() {
        call.reply().count(before.len());
        return Ok(());
    }
    let end = offset.saturating_add(part.len());
    check_grown(key, end)?;
    let mut value = before.to_vec();
    value.resize(value.len().max(end), 0);
    value[offset..end].copy_from_slice(part);
    let expires = old.as_ref().and_then(|old| old.expires);
    call.put_string(key, &value, expires, old.as_ref())?;
    call.reply().count(value.len());
    Ok(())
}

/// Cells of the table that `LCS` fills: its time and memory.
const LCS_CELLS_MAX: usize = 4 << 20;

pub(super) fn lcs(call: &mut Call<'_>) -> Outcome {
    let (mut wants_length, mut wants_places, mut with_lengths, mut least) = (false, false, false, 0_i64);
    let mut at = 3;
    while at < call.args.len() {
        if call.is_word(at, "len") {
            wants_length = true;
        } else if call.is_word(at, "idx") {
            wants_places = true;
        } else if call.is_word(at, "withmatchlen") {
            with_lengths = true;
        } else if call.is_word(at, "minmatchlen") {
            call.after(at)?;
            least = call.integer(at + 1)?.max(0);
            at += 1;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    if wants_length && wants_places {
        return Err("ERR If you want both the length and indexes, please just use IDX.".into());
    }
    let read = |key: &[u8]| -> Outcome<Vec<u8>> {
        match call.find(key)? {
            Some(entry) if entry.head.is_some() => Err("ERR The specified keys must contain string values".into()),
            Some(entry) => Ok(entry.string()?.to_vec()),
            None => Ok(Vec::new()),
        }
    };
    let (a, b) = (read(call.args[1])?, read(call.args[2])?);
    let width = b.len() + 1;
    if (a.len() + 1).saturating_mul(width) > LCS_CELLS_MAX {
        return Err("ERR the strings are too long for LCS: the product of their lengths may be 4194304".into());
    }
    let mut table = vec![0_u32; (a.len() + 1) * width];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            table[i * width + j] = match a[i - 1] == b[j - 1] {
                true => table[(i - 1) * width + j - 1] + 1,
                false => table[(i - 1) * width + j].max(table[i * width + j - 1]),
            };
        }
    }
    let total = table[a.len() * width + b.len()];
    if wants_length {
        call.reply().integer(i64::from(total));
        return Ok(());
    }
    // Backwards from the end; what matches one behind the other is one piece.
    let (mut i, mut j) = (a.len(), b.len());
    let (mut common, mut pieces) = (Vec::new(), Vec::<(usize, usize, usize)>::new());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            common.push(a[i - 1]);
            (i, j) = (i - 1, j - 1);
            match pieces.last_mut() {
                Some(piece) if piece.0 == i + 1 && piece.1 == j + 1 => *piece = (i, j, piece.2 + 1),
                _ => pieces.push((i, j, 1)),
            }
        } else if table[(i - 1) * width + j] > table[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    if !wants_places {
        common.reverse();
        call.reply().bulk(&common);
        return Ok(());
    }
    pieces.retain(|piece| piece.2 as i64 >= least);
    let mut reply = call.reply();
    reply.map(2);
    reply.text("matches");
    reply.array(pieces.len());
    for (i, j, length) in pieces {
        reply.array(if with_lengths { 3 } else { 2 });
        for at in [i, j] {
            reply.array(2);
            reply.count(at);
            reply.count(at + length - 1);
        }
        if with_lengths {
            reply.count(length);
        }
    }
    reply.text("len");
    reply.integer(i64::from(total));
    Ok(())
}

/// A number as a string's value.
pub(super) fn number(value: i64) -> Vec<u8> {
    let mut text = Vec::new();
    push_integer(&mut text, value);
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn decimal_fractions_add_up_exactly() {
        let sum = |a: &str, b: &str| String::from_utf8(add_floats(a.as_bytes(), b.as_bytes()).unwrap()).unwrap();
        assert_eq!(sum("0.1", "0.2"), "0.3");
        assert_eq!(sum("3", "1.5"), "4.5");
        assert_eq!(sum("10.5", "-10.5"), "0");
        assert_eq!(sum("-0.75", "0.5"), "-0.25");
        assert_eq!(sum("5.0e3", "200"), "5200");
        assert!(add_floats(b"abc", b"1").is_err() && add_floats(b" 1", b"1").is_err());
    }

    #[test]
    fn places_may_be_counted_from_the_end() {
        assert_eq!(span(5, 0, -1), 0..5);
        assert_eq!(span(5, -3, -2), 2..4);
        assert_eq!(span(5, 3, 100), 3..5);
        assert_eq!(span(5, -100, 0), 0..1);
        for (from, to) in [(5, 6), (3, 2), (-1, -2)] {
            assert!(span(5, from, to).is_empty());
        }
        assert!(span(0, 0, -1).is_empty());
    }
}
