//! Sorted sets made of others: unions, intersections, differences.

use super::call::{Call, Kind, double};
use super::failure::{Outcome, SYNTAX};
use super::keys::read_text;
use super::resp::integer;
use super::sorted_sets::{Scored, answer, numbered_keys, store};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Algebra {
    Union,
    Intersection,
    Difference,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

/// Members of a sorted set, or of a set, each of which counts 1.
fn members_of(call: &Call<'_>, key: &[u8]) -> Outcome<Option<BTreeMap<Vec<u8>, f64>>> {
    let Some(entry) = call.find(key)? else { return Ok(None) };
    let head =
        entry.head.filter(|head| matches!(head.kind, Kind::Set | Kind::SortedSet)).ok_or(super::failure::WRONG_TYPE)?;
    let mut members = BTreeMap::new();
    call.walk(&head, |reader| {
        let member = read_text(reader).to_vec();
        let score = if head.kind == Kind::Set { 1.0 } else { reader.read_double().unwrap_or_default() };
        members.insert(member, score);
        true
    })?;
    Ok(Some(members))
}

/// Options of the commands that combine sorted sets, from an argument on: weights, how scores are put together, whether they are shown.
fn combine_options(
    call: &Call<'_>,
    keys: usize,
    at: usize,
    algebra: Algebra,
    is_store: bool,
) -> Outcome<(Vec<f64>, Aggregate, bool)> {
    let (mut weights, mut aggregate, mut with_scores, mut at) = (vec![1.0; keys], Aggregate::Sum, false, at);
    while at < call.args.len() {
        if algebra != Algebra::Difference && call.is_word(at, "weights") {
            for (number, weight) in weights.iter_mut().enumerate() {
                let text = call.args.get(at + 1 + number).ok_or(SYNTAX)?;
                *weight = double(text).ok_or("ERR weight value is not a float")?;
            }
            at += keys;
        } else if algebra != Algebra::Difference && call.is_word(at, "aggregate") {
            call.after(at)?;
            aggregate = if call.is_word(at + 1, "sum") {
                Aggregate::Sum
            } else if call.is_word(at + 1, "min") {
                Aggregate::Min
            } else if call.is_word(at + 1, "max") {
                Aggregate::Max
            } else {
                return Err(SYNTAX.into());
            };
            at += 1;
        } else if !is_store && call.is_word(at, "withscores") {
            with_scores = true;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    Ok((weights, aggregate, with_scores))
}

fn combine(
    call: &Call<'_>,
    keys: &[&[u8]],
    algebra: Algebra,
    weights: &[f64],
    aggregate: Aggregate,
) -> Outcome<Vec<Scored>> {
    let weighted = |score: f64, weight: f64| {
        let value = score * weight;
        if value.is_nan() { 0.0 } else { value }
    };
    let together = |a: f64, b: f64| match aggregate {
        Aggregate::Sum => {
            let sum = a + b;
            if sum.is_nan() { 0.0 } else { sum }
        }
        Aggregate::Min => a.min(b),
        Aggregate::Max => a.max(b),
    };
    let mut result: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
    for (number, (key, weight)) in keys.iter().zip(weights).enumerate() {
        let members = members_of(call, key)?.unwrap_or_default();
        match algebra {
            _ if number == 0 => {
                result = members.into_iter().map(|(member, score)| (member, weighted(score, *weight))).collect();
            }
            Algebra::Union => {
                for (member, score) in members {
                    let score = weighted(score, *weight);
                    result.entry(member).and_modify(|old| *old = together(*old, score)).or_insert(score);
                }
            }
            Algebra::Intersection => {
                result.retain(|member, old| match members.get(member) {
                    Some(score) => {
                        *old = together(*old, weighted(*score, *weight));
                        true
                    }
                    None => false,
                });
            }
            Algebra::Difference => result.retain(|member, _| !members.contains_key(member)),
        }
    }
    let mut result: Vec<Scored> = result.into_iter().collect();
    // In the order of scores; those of one score are in that of their names already.
    result.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    Ok(result)
}

/// Errors: a key has something else than a set.
fn check_kinds(call: &Call<'_>, keys: &[&[u8]]) -> Outcome {
    for key in keys {
        if let Some(entry) = call.find(key)?
            && !entry.head.is_some_and(|head| matches!(head.kind, Kind::Set | Kind::SortedSet))
        {
            return Err(super::failure::WRONG_TYPE.into());
        }
    }
    Ok(())
}

fn combined(call: &mut Call<'_>, algebra: Algebra) -> Outcome {
    let (keys, rest) = combine_keys(call, 1)?;
    check_kinds(call, keys)?;
    let (weights, aggregate, with_scores) = combine_options(call, keys.len(), rest, algebra, false)?;
    let found = combine(call, keys, algebra, &weights, aggregate)?;
    answer(call, &found, with_scores);
    Ok(())
}

fn combine_keys<'a>(call: &Call<'a>, at: usize) -> Outcome<(&'a [&'a [u8]], usize)> {
    let count = call.integer(at)?;
    if count < 1 {
        let name = String::from_utf8_lossy(call.args[0]).to_lowercase();
        return Err(format!("ERR at least 1 input key is needed for '{name}' command").into());
    }
    let end = (at + 1).saturating_add(count as usize);
    if end > call.args.len() { Err(SYNTAX.into()) } else { Ok((&call.args[at + 1..end], end)) }
}

fn combined_store(call: &mut Call<'_>, algebra: Algebra) -> Outcome {
    let (keys, rest) = combine_keys(call, 2)?;
    check_kinds(call, keys)?;
    let (weights, aggregate, _) = combine_options(call, keys.len(), rest, algebra, true)?;
    let found = combine(call, keys, algebra, &weights, aggregate)?;
    store(call, call.args[1], &found)?;
    call.reply().count(found.len());
    Ok(())
}

pub(super) fn zunion(call: &mut Call<'_>) -> Outcome {
    combined(call, Algebra::Union)
}

pub(super) fn zinter(call: &mut Call<'_>) -> Outcome {
    combined(call, Algebra::Intersection)
}

pub(super) fn zdiff(call: &mut Call<'_>) -> Outcome {
    combined(call, Algebra::Difference)
}

pub(super) fn zunionstore(call: &mut Call<'_>) -> Outcome {
    combined_store(call, Algebra::Union)
}

pub(super) fn zinterstore(call: &mut Call<'_>) -> Outcome {
    combined_store(call, Algebra::Intersection)
}

pub(super) fn zdiffstore(call: &mut Call<'_>) -> Outcome {
    combined_store(call, Algebra::Difference)
}

pub(super) fn zintercard(call: &mut Call<'_>) -> Outcome {
    if call.integer(1)? < 1 {
        return Err("ERR at least 1 input key is needed for 'zintercard' command".into());
    }
    let (keys, rest) = numbered_keys(call, 1)?;
    let limit = match call.args.len() - rest {
        0 => 0,
        2 if call.is_word(rest, "limit") => match integer(call.args[rest + 1]) {
            Some(limit) if limit >= 0 => limit as usize,
            _ => return Err("ERR LIMIT can't be negative".into()),
        },
        _ => return Err(SYNTAX.into()),
    };
    let found = combine(call, keys, Algebra::Intersection, &vec![1.0; keys.len()], Aggregate::Sum)?;
    call.reply().count(if limit == 0 { found.len() } else { found.len().min(limit) });
    Ok(())
}
