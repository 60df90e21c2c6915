//! Sets: a row `{id, member}` for each member.

use super::call::{Call, Head, Kind, SLICE};
use super::failure::{NOT_POSITIVE, Outcome, SYNTAX};
use super::keys::read_text;
use super::resp::integer;
use std::collections::{BTreeMap, BTreeSet};
use tuple::msgpack::{self, Reader};

/// Members that a random choice with repeats gives at most.
const RANDOM_MAX: u64 = 10_000_000;

fn encode_key(out: &mut Vec<u8>, id: u64, member: &[u8]) {
    msgpack::encode_uint(out, id);
    msgpack::encode_str(out, member);
}

pub(super) fn has(call: &Call<'_>, head: &Head, member: &[u8]) -> Outcome<bool> {
    Ok(call.get_element(Kind::Set, 2, |out| encode_key(out, head.id, member))?.is_some())
}

fn put(call: &Call<'_>, head: &Head, member: &[u8]) -> Outcome {
    call.put_element(Kind::Set, |out| {
        msgpack::encode_array(out, 2);
        encode_key(out, head.id, member);
    })
}

fn take(call: &Call<'_>, head: &Head, member: &[u8]) -> Outcome {
    call.remove_element(Kind::Set, |out| {
        msgpack::encode_array(out, 2);
        encode_key(out, head.id, member);
    })
}

pub(super) fn sadd(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let found = call.find_head(key, Kind::Set)?;
    let added = call.together(Some(Kind::Set), |call| {
        let (mut head, expires) = found.unwrap_or_else(|| (call.new_head(Kind::Set), None));
        let before = head.count;
        for (number, member) in call.args[2..].iter().enumerate() {
            if !has(call, &head, member)? {
                put(call, &head, member)?;
                head.count += 1;
            }
            if number as u64 % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        // What is there already needs no write, and that is often all.
        if head.count > before {
            call.put_head(key, &head, expires)?;
        }
        Ok(head.count - before)
    })?;
    call.reply().integer(added as i64);
    Ok(())
}

pub(super) fn srem(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let removed = match call.find_head(key, Kind::Set)? {
        None => 0,
        Some((head, expires)) => call.together(Some(Kind::Set), |call| {
            let mut removed = 0;
            for member in &call.args[2..] {
                removed += u64::from(call.take_member(&head, member)?);
            }
            if removed > 0 {
                call.put_head(key, &Head { count: head.count - removed, ..head }, expires)?;
            }
            Ok(removed)
        })?,
    };
    call.reply().integer(removed as i64);
    Ok(())
}

pub(super) fn scard(call: &mut Call<'_>) -> Outcome {
    let count = call.find_head(call.args[1], Kind::Set)?.map_or(0, |(head, _)| head.count);
    call.reply().integer(count as i64);
    Ok(())
}

pub(super) fn sismember(call: &mut Call<'_>) -> Outcome {
    let is_there = match call.find_head(call.args[1], Kind::Set)? {
        Some((head, _)) => has(call, &head, call.args[2])?,
        None => false,
    };
    call.reply().integer(i64::from(is_there));
    Ok(())
}

pub(super) fn smismember(call: &mut Call<'_>) -> Outcome {
    let found = call.find_head(call.args[1], Kind::Set)?;
    let count = call.args.len() - 2;
    call.reply().array(count);
    for member in &call.args[2..] {
        let is_there = match &found {
            Some((head, _)) => has(call, head, member)?,
            None => false,
        };
        call.reply().integer(i64::from(is_there));
    }
    Ok(())
}

pub(super) fn smembers(call: &mut Call<'_>) -> Outcome {
    let found = call.find_head(call.args[1], Kind::Set)?;
    let (mut list, mut count) = (Vec::new(), 0);
    if let Some((head, _)) = &found {
        call.walk(head, |reader| {
            super::reply::Reply { out: &mut list, resp3: true }.bulk(read_text(reader));
            count += 1;
            true
        })?;
    }
    call.reply().set(count);
    call.out.extend_from_slice(&list);
    Ok(())
}

pub(super) fn smove(call: &mut Call<'_>) -> Outcome {
    let (from, to, member) = (call.args[1], call.args[2], call.args[3]);
    let source = call.find_head(from, Kind::Set)?;
    let target = if source.is_some() { call.find_head(to, Kind::Set)? } else { None };
    let is_there = match &source {
        Some((head, _)) => has(call, head, member)?,
        None => false,
    };
    if let (Some((mut source, source_expires)), true, true) = (source, is_there, from != to) {
        call.atomically(|call| {
            take(call, &source, member)?;
            source.count -= 1;
            call.put_head(from, &source, source_expires)?;
            let (mut target, expires) = target.unwrap_or_else(|| (call.new_head(Kind::Set), None));
            if !has(call, &target, member)? {
                put(call, &target, member)?;
                target.count += 1;
                call.put_head(to, &target, expires)?;
            }
            Ok(())
        })?;
    }
    call.reply().integer(i64::from(is_there));
    Ok(())
}

/// Numbers of elements, counted from the first: different ones if `are_different`.
fn random_places(call: &Call<'_>, of: u64, count: u64, are_different: bool) -> Vec<u64> {
    if !are_different {
        return (0..count).map(|_| call.random(of)).collect();
    }
    if count >= of {
        return (0..of).collect();
    }
    // Floyd's choice of different numbers.
    let mut chosen = BTreeSet::new();
    for bound in of - count..of {
        let place = call.random(bound + 1);
        if !chosen.insert(place) {
            chosen.insert(bound);
        }
    }
    chosen.into_iter().collect()
}

/// Reads the elements at some places and hands each to `visit` as often as it was chosen.
fn at_places(call: &Call<'_>, head: &Head, places: &[u64], mut visit: impl FnMut(usize, &[u8])) -> Outcome {
    let mut wanted: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (order, place) in places.iter().enumerate() {
        wanted.entry(*place).or_default().push(order);
    }
    let mut at = 0;
    let mut left = wanted.len();
    call.walk(head, |reader| {
        if let Some(orders) = wanted.get(&at) {
            orders.iter().for_each(|order| visit(*order, reader.rest()));
            left -= 1;
        }
        at += 1;
        left > 0
    })
}

/// Answers with elements chosen at random: one, or `count` different ones, or as many with repeats if it is negative. `write` writes one and says how
/// many values that were.
pub(super) fn answer_random(
    call: &mut Call<'_>,
    head: Option<Head>,
    count: Option<i64>,
    mut write: impl FnMut(&mut Vec<u8>, &mut Reader<'_>, bool) -> usize,
) -> Outcome {
    let resp3 = call.state.resp3.get();
    let Some(head) = head else {
        match count {
            Some(_) => call.reply().array(0),
            None => call.reply().null(),
        }
        return Ok(());
    };
    let wanted = count.unwrap_or(1);
    if wanted.unsigned_abs() > RANDOM_MAX {
        return Err("ERR value is out of range".into());
    }
    let places = random_places(call, head.count, wanted.unsigned_abs(), wanted >= 0);
    let mut texts = vec![Vec::new(); places.len()];
    let mut values = 0;
    at_places(call, &head, &places, |order, rest| values += write(&mut texts[order], &mut Reader::new(rest), resp3))?;
    if count.is_some() {
        call.reply().array(values);
    }
    texts.iter().for_each(|text| call.out.extend_from_slice(text));
    Ok(())
}

pub(super) fn srandmember(call: &mut Call<'_>) -> Outcome {
    let count = match call.args.len() {
        2 => None,
        3 => Some(call.integer(2)?),
        _ => return Err(SYNTAX.into()),
    };
    let head = call.find_head(call.args[1], Kind::Set)?.map(|(head, _)| head);
    answer_random(call, head, count, |out, reader, resp3| {
        super::reply::Reply { out, resp3 }.bulk(read_text(reader));
        1
    })
}

pub(super) fn spop(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let count = match call.args.len() {
        2 => None,
        3 => Some(u64::try_from(call.integer(2)?).map_err(|_| NOT_POSITIVE)?),
        _ => return Err(SYNTAX.into()),
    };
    let Some((head, expires)) = call.find_head(key, Kind::Set)? else {
        match count {
            Some(_) => call.reply().set(0),
            None => call.reply().null(),
        }
        return Ok(());
    };
    if head.count > SLICE {
        call.go_into_fiber()?;
    }
    let places = random_places(call, head.count, count.unwrap_or(1), true);
    let mut members = Vec::new();
    call.atomically(|call| {
        at_places(call, &head, &places, |_, rest| members.push(read_text(&mut Reader::new(rest)).to_vec()))?;
        if members.len() as u64 == head.count {
            call.remove_row(key)?;
            call.left.borrow_mut().push(head);
            return Ok(());
        }
        for (number, member) in members.iter().enumerate() {
            take(call, &head, member)?;
            if number as u64 % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        let left = Head { count: head.count - members.len() as u64, ..head };
        call.put_head(key, &left, expires)
    })?;
    let mut reply = call.reply();
    if count.is_some() {
        reply.set(members.len());
    }
    members.iter().for_each(|member| reply.bulk(member));
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Algebra {
    Union,
    Intersection,
    Difference,
}

/// The members of a combination of sets, up to a number of them.
fn combine(call: &Call<'_>, keys: &[&[u8]], algebra: Algebra, limit: u64) -> Outcome<BTreeSet<Vec<u8>>> {
    let mut heads = Vec::new();
    for key in keys {
        heads.push(call.find_head(key, Kind::Set)?.map(|(head, _)| head));
    }
    // Where others get a turn between two of them, all are read in one state.
    let is_own = call.may_wait && !call.context.is_in_txn();
    if is_own {
        call.database.begin(call.context)?;
    }
    let found = combine_heads(call, heads, algebra, limit);
    if is_own {
        call.database.abandon(call.context);
    }
    found
}

fn combine_heads(
    call: &Call<'_>,
    mut heads: Vec<Option<Head>>,
    algebra: Algebra,
    limit: u64,
) -> Outcome<BTreeSet<Vec<u8>>> {
    let mut found = BTreeSet::new();
    match algebra {
        Algebra::Union => {
            for head in heads.iter().flatten() {
                call.walk(head, |reader| {
                    found.insert(read_text(reader).to_vec());
                    true
                })?;
            }
        }
        Algebra::Intersection | Algebra::Difference => {
            let is_intersection = algebra == Algebra::Intersection;
            if is_intersection {
                if heads.iter().any(Option::is_none) {
                    return Ok(found);
                }
                // The smallest is gone through, the others are asked.
                heads.sort_by_key(|head| head.map_or(0, |head| head.count));
            }
            let Some((Some(first), others)) = heads.split_first() else { return Ok(found) };
            let others: Vec<Head> = others.iter().flatten().copied().collect();
            let mut failed = Ok(());
            call.walk(first, |reader| {
                let member = read_text(reader);
                let mut is_wanted = true;
                for other in &others {
                    match has(call, other, member) {
                        Ok(is_there) if is_there == is_intersection => {}
                        Ok(_) => {
                            is_wanted = false;
                            break;
                        }
                        Err(failure) => {
                            failed = Err(failure);
                            return false;
                        }
                    }
                }
                if is_wanted {
                    found.insert(member.to_vec());
                }
                (found.len() as u64) < limit
            })?;
            failed?;
        }
    }
    Ok(found)
}

fn answer_members(call: &mut Call<'_>, algebra: Algebra) -> Outcome {
    let found = combine(call, &call.args[1..], algebra, u64::MAX)?;
    let mut reply = call.reply();
    reply.set(found.len());
    found.iter().for_each(|member| reply.bulk(member));
    Ok(())
}

pub(super) fn sunion(call: &mut Call<'_>) -> Outcome {
    answer_members(call, Algebra::Union)
}

pub(super) fn sinter(call: &mut Call<'_>) -> Outcome {
    answer_members(call, Algebra::Intersection)
}

pub(super) fn sdiff(call: &mut Call<'_>) -> Outcome {
    answer_members(call, Algebra::Difference)
}

fn store(call: &mut Call<'_>, algebra: Algebra) -> Outcome {
    let key = call.args[1];
    let found: Vec<Vec<u8>> = combine(call, &call.args[2..], algebra, u64::MAX)?.into_iter().collect();
    let head = Head { count: found.len() as u64, ..call.new_head(Kind::Set) };
    call.build(&head, found.len(), |call, at| put(call, &head, &found[at]))?;
    call.replace_with(key, &head)?;
    call.reply().count(found.len());
    Ok(())
}

pub(super) fn sunionstore(call: &mut Call<'_>) -> Outcome {
    store(call, Algebra::Union)
}

pub(super) fn sinterstore(call: &mut Call<'_>) -> Outcome {
    store(call, Algebra::Intersection)
}

pub(super) fn sdiffstore(call: &mut Call<'_>) -> Outcome {
    store(call, Algebra::Difference)
}

pub(super) fn sintercard(call: &mut Call<'_>) -> Outcome {
    let (keys, rest) = super::sorted_sets::numbered_keys(call, 1)?;
    let limit = match call.args.len() - rest {
        0 => 0,
        2 if call.is_word(rest, "limit") => match integer(call.args[rest + 1]) {
            Some(limit) if limit >= 0 => limit as u64,
            _ => return Err("ERR LIMIT can't be negative".into()),
        },
        _ => return Err(SYNTAX.into()),
    };
    let found = combine(call, keys, Algebra::Intersection, if limit == 0 { u64::MAX } else { limit })?;
    call.reply().count(found.len());
    Ok(())
}
