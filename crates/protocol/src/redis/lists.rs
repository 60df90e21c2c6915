//! Lists: a row `{id, position, value}` for each element. Positions follow one another from `first` on, so that an element is found by its number;
//! what is put or removed in the middle moves the shorter side.

use super::call::{Call, Head, Kind, SLICE};
use super::failure::{INDEX_RANGE, NO_KEY, NOT_POSITIVE, Outcome, SYNTAX};
use super::strings::span_of_elements;
use storage::IteratorKind;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, Tuple};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Left,
    Right,
}

impl End {
    /// `LEFT` or `RIGHT`.
    pub(super) fn of(word: &[u8]) -> Outcome<Self> {
        if word.eq_ignore_ascii_case(b"left") {
            Ok(End::Left)
        } else if word.eq_ignore_ascii_case(b"right") {
            Ok(End::Right)
        } else {
            Err(SYNTAX.into())
        }
    }
}

fn encode_key(out: &mut Vec<u8>, id: u64, position: i64) {
    msgpack::encode_uint(out, id);
    msgpack::encode_int(out, position);
}

pub(super) fn put(call: &Call<'_>, head: &Head, position: i64, value: &[u8]) -> Outcome {
    call.put_element(Kind::List, |out| {
        msgpack::encode_array(out, 3);
        encode_key(out, head.id, position);
        msgpack::encode_str(out, value);
    })
}

fn take(call: &Call<'_>, head: &Head, position: i64) -> Outcome {
    call.remove_element(Kind::List, |out| {
        msgpack::encode_array(out, 2);
        encode_key(out, head.id, position);
    })
}

fn get(call: &Call<'_>, head: &Head, position: i64) -> Outcome<Option<Vec<u8>>> {
    let row = call.get_element(Kind::List, 2, |out| encode_key(out, head.id, position))?;
    Ok(row.map(|row| value_of(&row).to_vec()))
}

fn value_of(row: &Tuple) -> &[u8] {
    let mut reader = Reader::new(row.data());
    let read = reader.read_array().and_then(|_| reader.read_uint()).and_then(|_| reader.read_int());
    read.and_then(|_| reader.read_str()).unwrap_or_default()
}

/// Hands the values from a number on to `visit`, until it returns false.
fn range(call: &Call<'_>, head: &Head, from: u64, count: u64, mut visit: impl FnMut(&[u8]) -> bool) -> Outcome {
    let (mut at, mut left) = (from, count);
    if count > SLICE {
        call.go_into_fiber()?;
    }
    let is_own = count > SLICE && !call.context.is_in_txn();
    if is_own {
        call.database.begin(call.context)?;
    }
    let done = loop {
        let step = left.min(SLICE);
        let mut goes_on = true;
        let scanned = call.scan(
            Kind::List,
            (IndexId::PRIMARY, IteratorKind::Ge, 2),
            (0, step),
            |out| encode_key(out, head.id, head.first.wrapping_add(at as i64)),
            |row| {
                let mut reader = Reader::new(row);
                let read = reader.read_array().and_then(|_| reader.read_uint());
                let value = read.and_then(|_| reader.read_int()).and_then(|_| reader.read_str());
                goes_on = read == Ok(head.id) && visit(value.unwrap_or_default());
                goes_on
            },
        );
        (at, left) = (at + step, left - step);
        if scanned.is_err() || left == 0 || !goes_on {
            break scanned;
        }
        call.give_way();
    };
    if is_own {
        call.database.abandon(call.context);
    }
    done
}

/// Adds values at an end, one after the other.
pub(super) fn push_values(
    call: &mut Call<'_>,
    key: &[u8],
    end: End,
    values: &[&[u8]],
    found: Option<(Head, Option<u64>)>,
) -> Outcome<u64> {
    call.together(Some(Kind::List), |call| {
        let (mut head, expires) = found.unwrap_or_else(|| (call.new_head(Kind::List), None));
        for (number, value) in values.iter().enumerate() {
            match end {
                End::Left => {
                    head.first -= 1;
                    put(call, &head, head.first, value)?;
                }
                End::Right => put(call, &head, head.first + head.count as i64, value)?,
            }
            head.count += 1;
            if number as u64 % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        call.put_head(key, &head, expires)?;
        Ok(head.count)
    })
}

fn push(call: &mut Call<'_>, end: End, only_there: bool) -> Outcome {
    let (key, args) = (call.args[1], call.args);
    let found = call.find_head(key, Kind::List)?;
    let length = match found.is_none() && only_there {
        true => 0,
        false => push_values(call, key, end, &args[2..], found)?,
    };
    call.reply().integer(length as i64);
    Ok(())
}

pub(super) fn lpush(call: &mut Call<'_>) -> Outcome {
    push(call, End::Left, false)
}

pub(super) fn rpush(call: &mut Call<'_>) -> Outcome {
    push(call, End::Right, false)
}

pub(super) fn lpushx(call: &mut Call<'_>) -> Outcome {
    push(call, End::Left, true)
}

pub(super) fn rpushx(call: &mut Call<'_>) -> Outcome {
    push(call, End::Right, true)
}

/// Takes values from an end of a list that is there.
pub(super) fn pop_values(
    call: &mut Call<'_>,
    key: &[u8],
    end: End,
    count: u64,
    (found, expires): (Head, Option<u64>),
) -> Outcome<Vec<Vec<u8>>> {
    let count = count.min(found.count);
    if count > SLICE {
        call.go_into_fiber()?;
    }
    call.together(Some(Kind::List), |call| {
        let (mut head, mut values) = (found, Vec::new());
        for number in 0..count {
            let position = match end {
                End::Left => head.first,
                End::Right => head.first + head.count as i64 - 1,
            };
            // A row that somebody has removed counts as empty.
            let row = call.take_element(Kind::List, 2, |out| encode_key(out, head.id, position))?;
            values.push(row.map_or_else(Vec::new, |row| value_of(&row).to_vec()));
            head.count -= 1;
            head.first += i64::from(end == End::Left);
            if number % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        if !values.is_empty() {
            call.put_head(key, &head, expires)?;
        }
        Ok(values)
    })
}

fn pop(call: &mut Call<'_>, end: End) -> Outcome {
    let key = call.args[1];
    let count = match call.args.len() {
        2 => None,
        3 => Some(u64::try_from(call.integer(2).map_err(|_| NOT_POSITIVE)?).map_err(|_| NOT_POSITIVE)?),
        _ => return Err(super::dispatch::wrong_count(if end == End::Left { "lpop" } else { "rpop" }).into()),
    };
    let Some(found) = call.find_head(key, Kind::List)? else {
        if count.is_some() {
            call.reply().null_array()
        } else {
            call.reply().null()
        }
        return Ok(());
    };
    let values = pop_values(call, key, end, count.unwrap_or(1), found)?;
    let mut reply = call.reply();
    if count.is_some() {
        reply.array(values.len());
    }
    values.iter().for_each(|value| reply.bulk(value));
    Ok(())
}

pub(super) fn lpop(call: &mut Call<'_>) -> Outcome {
    pop(call, End::Left)
}

pub(super) fn rpop(call: &mut Call<'_>) -> Outcome {
    pop(call, End::Right)
}

pub(super) fn llen(call: &mut Call<'_>) -> Outcome {
    let count = call.find_head(call.args[1], Kind::List)?.map_or(0, |(head, _)| head.count);
    call.reply().integer(count as i64);
    Ok(())
}

/// The number of an element, which may be counted from the end.
fn place(head: &Head, at: i64) -> Option<u64> {
    let at = if at < 0 { at.checked_add(head.count as i64)? } else { at };
    u64::try_from(at).ok().filter(|at| *at < head.count)
}

pub(super) fn lindex(call: &mut Call<'_>) -> Outcome {
    let value = match call.find_head(call.args[1], Kind::List)? {
        Some((head, _)) => match place(&head, call.integer(2)?) {
            Some(at) => get(call, &head, head.first + at as i64)?,
            None => None,
        },
        None => None,
    };
    match value {
        Some(value) => call.reply().bulk(&value),
        None => call.reply().null(),
    }
    Ok(())
}

pub(super) fn lset(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let (head, _) = call.find_head(key, Kind::List)?.ok_or(NO_KEY)?;
    let at = place(&head, call.integer(2)?).ok_or(INDEX_RANGE)?;
    put(call, &head, head.first + at as i64, call.args[3])?;
    call.touch(key);
    call.reply().ok();
    Ok(())
}

pub(super) fn lrange(call: &mut Call<'_>) -> Outcome {
    let (from, to) = (call.integer(2)?, call.integer(3)?);
    let Some((head, _)) = call.find_head(call.args[1], Kind::List)? else {
        call.reply().array(0);
        return Ok(());
    };
    let wanted = span_of_elements(head.count, from, to);
    let mut list = Vec::new();
    let mut count = 0;
    if !wanted.is_empty() {
        range(call, &head, wanted.start as u64, wanted.len() as u64, |value| {
            super::reply::Reply { out: &mut list, resp3: false }.bulk(value);
            count += 1;
            true
        })?;
    }
    call.reply().array(count);
    call.out.extend_from_slice(&list);
    Ok(())
}

pub(super) fn ltrim(call: &mut Call<'_>) -> Outcome {
    let (key, from, to) = (call.args[1], call.integer(2)?, call.integer(3)?);
    if let Some((mut head, expires)) = call.find_head(key, Kind::List)? {
        let kept = span_of_elements(head.count, from, to);
        if kept.is_empty() {
            call.remove_row(key)?;
            call.left.borrow_mut().push(head);
        } else if kept.len() < head.count as usize {
            if head.count - kept.len() as u64 > SLICE {
                call.go_into_fiber()?;
            }
            call.atomically(|call| {
                let outside = (0..kept.start).chain(kept.end..head.count as usize);
                for (number, at) in outside.enumerate() {
                    take(call, &head, head.first + at as i64)?;
                    if number as u64 % SLICE == SLICE - 1 {
                        call.give_way();
                    }
                }
                head.first += kept.start as i64;
                head.count = kept.len() as u64;
                call.put_head(key, &head, expires)
            })?;
        }
    }
    call.reply().ok();
    Ok(())
}

/// All values of a list.
pub(super) fn values(call: &Call<'_>, head: &Head) -> Outcome<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    range(call, head, 0, head.count, |value| {
        all.push(value.to_vec());
        true
    })?;
    Ok(all)
}

/// Makes a list be these values, writing only what differs.
fn rewrite(
    call: &mut Call<'_>,
    key: &[u8],
    (mut head, expires): (Head, Option<u64>),
    old: &[Vec<u8>],
    new: &[Vec<u8>],
) -> Outcome {
    // What both begin or end with stays; the shorter end is moved.
    let begin = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let bound = old.len().min(new.len()) - begin;
    let end = old.iter().rev().zip(new.iter().rev()).take(bound).take_while(|(a, b)| a == b).count();
    let shifts_left_side = begin < end;
    call.atomically(|call| {
        let grown = new.len() as i64 - old.len() as i64;
        let first = if shifts_left_side { head.first - grown } else { head.first };
        // The side that moves, and what is between.
        let written = if shifts_left_side { 0..new.len() - end } else { begin..new.len() };
        for (number, at) in written.enumerate() {
            put(call, &head, first + at as i64, &new[at])?;
            if number as u64 % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        for gone in 0..(-grown).max(0) {
            let position = if shifts_left_side { head.first + gone } else { head.first + old.len() as i64 - 1 - gone };
            take(call, &head, position)?;
        }
        head.first = first;
        head.count = new.len() as u64;
        call.put_head(key, &head, expires)
    })
}

pub(super) fn linsert(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let is_after = if call.is_word(2, "after") {
        true
    } else if call.is_word(2, "before") {
        false
    } else {
        return Err(SYNTAX.into());
    };
    let Some(found) = call.find_head(key, Kind::List)? else {
        call.reply().integer(0);
        return Ok(());
    };
    let old = values(call, &found.0)?;
    let Some(at) = old.iter().position(|value| value == call.args[3]) else {
        call.reply().integer(-1);
        return Ok(());
    };
    let mut new = old.clone();
    new.insert(at + usize::from(is_after), call.args[4].to_vec());
    rewrite(call, key, found, &old, &new)?;
    call.reply().count(new.len());
    Ok(())
}

pub(super) fn lrem(call: &mut Call<'_>) -> Outcome {
    let (key, count, wanted) = (call.args[1], call.integer(2)?, call.args[3]);
    let Some(found) = call.find_head(key, Kind::List)? else {
        call.reply().integer(0);
        return Ok(());
    };
    let old = values(call, &found.0)?;
    let mut left = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let mut keeps = |value: &Vec<u8>| {
        let goes = left > 0 && value == wanted;
        left -= u64::from(goes && left != u64::MAX);
        !goes
    };
    let new: Vec<Vec<u8>> = if count < 0 {
        let mut kept: Vec<_> = old.iter().rev().filter(|value| keeps(value)).cloned().collect();
        kept.reverse();
        kept
    } else {
        old.iter().filter(|value| keeps(value)).cloned().collect()
    };
    let removed = old.len() - new.len();
    if removed > 0 {
        rewrite(call, key, found, &old, &new)?;
    }
    call.reply().count(removed);
    Ok(())
}

pub(super) fn lpos(call: &mut Call<'_>) -> Outcome {
    let (mut rank, mut count, mut longest) = (1_i64, None, 0_u64);
    let mut at = 3;
    while at < call.args.len() {
        call.after(at)?;
        let value = call.integer(at + 1)?;
        if call.is_word(at, "rank") {
            if value == 0 || value == i64::MIN {
                return Err("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list".into());
            }
            rank = value;
        } else if call.is_word(at, "count") {
            count = Some(u64::try_from(value).map_err(|_| "ERR COUNT can't be negative")?);
        } else if call.is_word(at, "maxlen") {
            longest = u64::try_from(value).map_err(|_| "ERR MAXLEN can't be negative")?;
        } else {
            return Err(SYNTAX.into());
        }
        at += 2;
    }
    let all = match call.find_head(call.args[1], Kind::List)? {
        Some((head, _)) => values(call, &head)?,
        None => Vec::new(),
    };
    let wanted = call.args[2];
    let places: Box<dyn Iterator<Item = usize>> =
        if rank < 0 { Box::new((0..all.len()).rev()) } else { Box::new(0..all.len()) };
    let looked = if longest == 0 { usize::MAX } else { longest as usize };
    let skipped = rank.unsigned_abs() as usize - 1;
    let limit = match count {
        None => 1,
        Some(0) => usize::MAX,
        Some(count) => count as usize,
    };
    let found: Vec<usize> = places.take(looked).filter(|at| all[*at] == wanted).skip(skipped).take(limit).collect();
    let mut reply = call.reply();
    match (count, found.first()) {
        (Some(_), _) => {
            reply.array(found.len());
            found.iter().for_each(|at| reply.count(*at));
        }
        (None, Some(at)) => reply.count(*at),
        (None, None) => reply.null(),
    }
    Ok(())
}

/// Moves a value from an end of a list to one of another or of itself. None: there is no source.
pub(super) fn move_value(
    call: &mut Call<'_>,
    (from, to): (&[u8], &[u8]),
    (out_of, into): (End, End),
) -> Outcome<Option<Vec<u8>>> {
    let Some(source) = call.find_head(from, Kind::List)? else { return Ok(None) };
    if from != to {
        call.find_head(to, Kind::List)?;
    }
    call.atomically(|call| {
        let Some(value) = pop_values(call, from, out_of, 1, source)?.pop() else { return Ok(None) };
        let target = call.find_head(to, Kind::List)?;
        // A list of one element that turns keeps the time of its key.
        let (target, expires) = match target {
            Some((head, expires)) => (Some(head), expires),
            None => (None, if from == to { source.1 } else { None }),
        };
        let target =
            target.map(|head| (head, expires)).or_else(|| (from == to).then(|| (call.new_head(Kind::List), expires)));
        push_values(call, to, into, &[&value], target)?;
        Ok(Some(value))
    })
}

fn answer_moved(call: &mut Call<'_>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => call.reply().bulk(&value),
        None => call.reply().null(),
    }
}

pub(super) fn rpoplpush(call: &mut Call<'_>) -> Outcome {
    let keys = (call.args[1], call.args[2]);
    let value = move_value(call, keys, (End::Right, End::Left))?;
    answer_moved(call, value);
    Ok(())
}

pub(super) fn lmove(call: &mut Call<'_>) -> Outcome {
    let (keys, ends) = ((call.args[1], call.args[2]), (End::of(call.args[3])?, End::of(call.args[4])?));
    let value = move_value(call, keys, ends)?;
    answer_moved(call, value);
    Ok(())
}

/// `numkeys key ... LEFT|RIGHT [COUNT n]`, from an argument on: keys, end and count.
pub(super) fn pop_request<'a>(call: &Call<'a>, at: usize) -> Outcome<(&'a [&'a [u8]], End, u64)> {
    let (keys, rest) = super::sorted_sets::numbered_keys(call, at)?;
    let end = End::of(call.args.get(rest).copied().ok_or(SYNTAX)?)?;
    let count = match call.args.len() - rest {
        1 => 1,
        3 if call.is_word(rest + 1, "count") => match call.integer(rest + 2) {
            Ok(count) if count > 0 => count as u64,
            _ => return Err("ERR count should be greater than 0".into()),
        },
        _ => return Err(SYNTAX.into()),
    };
    Ok((keys, end, count))
}

/// Takes values from the first list that has some and answers with its name and them. False: all are empty; nothing was answered.
pub(super) fn pop_first(call: &mut Call<'_>, keys: &[&[u8]], end: End, count: u64) -> Outcome<bool> {
    for key in keys {
        if let Some(found) = call.find_head(key, Kind::List)? {
            let values = pop_values(call, key, end, count, found)?;
            let mut reply = call.reply();
            reply.array(2);
            reply.bulk(key);
            reply.array(values.len());
            values.iter().for_each(|value| reply.bulk(value));
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn lmpop(call: &mut Call<'_>) -> Outcome {
    let (keys, end, count) = pop_request(call, 1)?;
    if !pop_first(call, keys, end, count)? {
        call.reply().null_array();
    }
    Ok(())
}
