//! Sorted sets: a row `{id, member, score}` for each member, found by that and, by the index `score`, in the order of scores and members.

use super::call::{Call, Head, Kind, SLICE, double};
use super::failure::{NOT_POSITIVE, Outcome, SYNTAX};
use super::keys::read_text;
use super::resp::integer;
use super::strings::span_of_elements;
use std::ops::Bound;
use storage::IteratorKind;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, Tuple};

/// The index in the order of scores.
const BY_SCORE: IndexId = IndexId(1);
const NOT_FLOAT_RANGE: &str = "ERR min or max is not a float";
const NOT_TEXT_RANGE: &str = "ERR min or max not valid string range item";

/// A member and its score.
pub(super) type Scored = (Vec<u8>, f64);

fn encode_key(out: &mut Vec<u8>, id: u64, member: &[u8]) {
    msgpack::encode_uint(out, id);
    msgpack::encode_str(out, member);
}

pub(super) fn score(call: &Call<'_>, head: &Head, member: &[u8]) -> Outcome<Option<f64>> {
    let row = call.get_element(Kind::SortedSet, 2, |out| encode_key(out, head.id, member))?;
    Ok(row.and_then(|row| score_in(&row)))
}

fn score_in(row: &Tuple) -> Option<f64> {
    let mut reader = Reader::new(row.data());
    let read = reader.read_array().and_then(|_| reader.read_uint()).and_then(|_| reader.read_str());
    read.and_then(|_| reader.read_double()).ok()
}

/// Puts a member. Gives the score that it had, if writes know it.
fn put(call: &Call<'_>, head: &Head, member: &[u8], score: f64) -> Outcome<Option<f64>> {
    // One zero, so that members with it are in their own order.
    let score = if score == 0.0 { 0.0 } else { score };
    let old = call.replace_element(Kind::SortedSet, |out| {
        msgpack::encode_array(out, 3);
        encode_key(out, head.id, member);
        msgpack::encode_f64(out, score);
    })?;
    Ok(old.and_then(|row| score_in(&row)))
}

fn take(call: &Call<'_>, head: &Head, member: &[u8]) -> Outcome {
    call.remove_element(Kind::SortedSet, |out| {
        msgpack::encode_array(out, 2);
        encode_key(out, head.id, member);
    })
}

/// `numkeys key ...` from an argument on: the keys and where what follows begins.
pub(super) fn numbered_keys<'a>(call: &Call<'a>, at: usize) -> Outcome<(&'a [&'a [u8]], usize)> {
    let count = match call.args.get(at).and_then(|text| integer(text)) {
        Some(count) if count > 0 => count as usize,
        _ => return Err("ERR numkeys should be greater than 0".into()),
    };
    let end = (at + 1).checked_add(count).filter(|end| *end <= call.args.len());
    match end {
        Some(end) => Ok((&call.args[at + 1..end], end)),
        None => Err("ERR Number of keys can't be greater than number of args".into()),
    }
}

/// How members are added.
#[derive(Default)]
pub(super) struct AddOptions {
    pub(super) is_nx: bool,
    pub(super) is_xx: bool,
    is_gt: bool,
    is_lt: bool,
    pub(super) counts_changed: bool,
    increments: bool,
}

impl AddOptions {
    /// Whether a member may get a score.
    fn allows(&self, old: Option<f64>, new: f64) -> bool {
        match old {
            None => !self.is_xx,
            Some(old) => !(self.is_nx || self.is_gt && new <= old || self.is_lt && new >= old),
        }
    }

    /// True if the score that a member has makes no difference to the one that it gets.
    fn ignores_old(&self) -> bool {
        !(self.is_nx || self.is_xx || self.is_gt || self.is_lt || self.increments)
    }
}

/// Adds members. Returns how many are new, how many have another score now, and the last score that was given.
pub(super) fn add(
    call: &mut Call<'_>,
    key: &[u8],
    options: &AddOptions,
    pairs: &[(&[u8], f64)],
) -> Outcome<(u64, u64, Option<f64>)> {
    let found = call.find_head(key, Kind::SortedSet)?;
    let next = |old: Option<f64>, given: f64| -> Outcome<f64> {
        let score = if options.increments { old.unwrap_or(0.0) + given } else { given };
        if score.is_nan() { Err("ERR resulting score is not a number (NaN)".into()) } else { Ok(score) }
    };
    if found.is_none() && options.is_xx {
        return Ok((0, 0, None));
    }
    call.together(Some(Kind::SortedSet), |call| {
        let (mut head, expires) = found.unwrap_or_else(|| (call.new_head(Kind::SortedSet), None));
        let (mut added, mut changed, mut last) = (0, 0, None);
        // What a write tells anyway needs no look.
        let is_told = options.ignores_old() && call.writes_know();
        for (number, (member, given)) in pairs.iter().enumerate() {
            let old = if is_told { None } else { score(call, &head, member)? };
            let new = next(old, *given)?;
            if options.allows(old, new) {
                last = Some(new);
                if old != Some(new) {
                    match put(call, &head, member, new)?.or(old) {
                        None => added += 1,
                        Some(old) => changed += u64::from(old != new),
                    }
                }
            }
            if number as u64 % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        match added {
            0 if changed > 0 => call.touch(key),
            0 => {}
            added => {
                head.count += added;
                call.put_head(key, &head, expires)?;
            }
        }
        Ok((added, changed, last))
    })
}

pub(super) fn zadd(call: &mut Call<'_>) -> Outcome {
    let (key, mut options, mut at) = (call.args[1], AddOptions::default(), 2);
    loop {
        if call.is_word(at, "nx") {
            options.is_nx = true;
        } else if call.is_word(at, "xx") {
            options.is_xx = true;
        } else if call.is_word(at, "gt") {
            options.is_gt = true;
        } else if call.is_word(at, "lt") {
            options.is_lt = true;
        } else if call.is_word(at, "ch") {
            options.counts_changed = true;
        } else if call.is_word(at, "incr") {
            options.increments = true;
        } else {
            break;
        }
        at += 1;
    }
    let rest = &call.args[at.min(call.args.len())..];
    if rest.is_empty() || rest.len() % 2 == 1 {
        return Err(SYNTAX.into());
    }
    if options.is_nx && options.is_xx {
        return Err("ERR XX and NX options at the same time are not compatible".into());
    }
    if options.is_gt && options.is_lt || (options.is_gt || options.is_lt) && options.is_nx {
        return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
    }
    if options.increments && rest.len() > 2 {
        return Err("ERR INCR option supports a single increment-element pair".into());
    }
    let mut pairs = Vec::with_capacity(rest.len() / 2);
    for pair in rest.chunks_exact(2) {
        pairs.push((pair[1], double(pair[0]).ok_or(super::failure::NOT_FLOAT)?));
    }
    let (added, changed, last) = add(call, key, &options, &pairs)?;
    match (options.increments, last) {
        (true, Some(score)) => call.reply().double(score),
        (true, None) => call.reply().null(),
        (false, _) => call.reply().integer((added + if options.counts_changed { changed } else { 0 }) as i64),
    }
    Ok(())
}

pub(super) fn zincrby(call: &mut Call<'_>) -> Outcome {
    let by = call.double(2)?;
    let options = AddOptions { increments: true, ..AddOptions::default() };
    let (_, _, score) = add(call, call.args[1], &options, &[(call.args[3], by)])?;
    call.reply().double(score.unwrap_or(by));
    Ok(())
}

pub(super) fn zcard(call: &mut Call<'_>) -> Outcome {
    let count = call.find_head(call.args[1], Kind::SortedSet)?.map_or(0, |(head, _)| head.count);
    call.reply().integer(count as i64);
    Ok(())
}

pub(super) fn zscore(call: &mut Call<'_>) -> Outcome {
    let found = match call.find_head(call.args[1], Kind::SortedSet)? {
        Some((head, _)) => score(call, &head, call.args[2])?,
        None => None,
    };
    match found {
        Some(score) => call.reply().double(score),
        None => call.reply().null(),
    }
    Ok(())
}

pub(super) fn zmscore(call: &mut Call<'_>) -> Outcome {
    let found = call.find_head(call.args[1], Kind::SortedSet)?;
    let count = call.args.len() - 2;
    call.reply().array(count);
    for member in &call.args[2..] {
        let score = match &found {
            Some((head, _)) => score(call, head, member)?,
            None => None,
        };
        match score {
            Some(score) => call.reply().double(score),
            None => call.reply().null(),
        }
    }
    Ok(())
}

pub(super) fn zrem(call: &mut Call<'_>) -> Outcome {
    let (key, args) = (call.args[1], call.args);
    let removed = match call.find_head(key, Kind::SortedSet)? {
        None => 0,
        Some((head, expires)) => call.together(Some(Kind::SortedSet), |call| {
            let mut removed = 0;
            for member in &args[2..] {
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

/// What part of a sorted set is wanted.
#[derive(Clone, Debug)]
pub(super) enum Range {
    /// Between two places, that may be counted from the end.
    Rank(i64, i64),
    Score(Bound<f64>, Bound<f64>),
    /// Between two members, where all scores are equal.
    Text(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Nothing.
    Empty,
}

fn score_bound(text: &[u8]) -> Outcome<Bound<f64>> {
    match text.strip_prefix(b"(") {
        Some(rest) => double(rest).map(Bound::Excluded),
        None => double(text).map(Bound::Included),
    }
    .ok_or_else(|| NOT_FLOAT_RANGE.into())
}

/// Bounds of members: `-`, `+`, `[text`, `(text`. The truth value: it is the greatest of all.
fn text_bound(text: &[u8]) -> Outcome<(Bound<Vec<u8>>, Option<bool>)> {
    match text {
        b"-" => Ok((Bound::Unbounded, Some(false))),
        b"+" => Ok((Bound::Unbounded, Some(true))),
        [b'[', rest @ ..] => Ok((Bound::Included(rest.to_vec()), None)),
        [b'(', rest @ ..] => Ok((Bound::Excluded(rest.to_vec()), None)),
        _ => Err(NOT_TEXT_RANGE.into()),
    }
}

fn text_range(low: &[u8], high: &[u8]) -> Outcome<Range> {
    let ((low, low_is), (high, high_is)) = (text_bound(low)?, text_bound(high)?);
    Ok(if low_is == Some(true) || high_is == Some(false) { Range::Empty } else { Range::Text(low, high) })
}

/// The score of all members, if they have the same.
fn one_score(call: &Call<'_>, head: &Head) -> Outcome<Option<f64>> {
    let mut ends = [None, None];
    for (end, kind) in ends.iter_mut().zip([IteratorKind::Eq, IteratorKind::Req]) {
        let of_head = |out: &mut Vec<u8>| msgpack::encode_uint(out, head.id);
        call.scan(Kind::SortedSet, (BY_SCORE, kind, 1), (0, 1), of_head, |row| {
            let mut reader = Reader::new(row);
            let read = reader.read_array().and_then(|_| reader.read_uint()).and_then(|_| reader.read_str());
            *end = read.and_then(|_| reader.read_double()).ok();
            false
        })?;
    }
    Ok(ends[0].filter(|score| Some(*score) == ends[1]))
}

/// Members of a range, in its order or backwards, `skip` passed over and `limit` given at most. Many are read in slices.
pub(super) fn select(
    call: &Call<'_>,
    head: &Head,
    range: &Range,
    is_reverse: bool,
    (skip, limit): (u64, u64),
) -> Outcome<Vec<Scored>> {
    let (mut skip, mut limit) = (skip, limit);
    let by_rank = match range {
        Range::Rank(from, to) => {
            let places = span_of_elements(head.count, *from, *to);
            skip = skip.saturating_add(places.start as u64);
            limit = limit.min(places.len() as u64);
            true
        }
        Range::Empty => return Ok(Vec::new()),
        Range::Score(..) | Range::Text(..) => false,
    };
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    if skip.saturating_add(limit).min(head.count) > SLICE {
        call.go_into_fiber()?;
    }
    let is_own = call.may_wait && !call.context.is_in_txn();
    if is_own {
        call.database.begin(call.context)?;
    }
    // Members are in their own order where all have one score; others are looked through one by one.
    let one_score = match range {
        Range::Text(..) => one_score(call, head)?,
        _ => None,
    };
    let is_unordered = matches!(range, Range::Text(..)) && one_score.is_none();
    // Where it begins.
    let mut parts = Vec::new();
    msgpack::encode_uint(&mut parts, head.id);
    let mut part_count = 1;
    let mut kind = if is_reverse { IteratorKind::Le } else { IteratorKind::Ge };
    match range {
        Range::Score(low, high) => {
            if let Bound::Included(score) | Bound::Excluded(score) = if is_reverse { high } else { low } {
                msgpack::encode_f64(&mut parts, *score);
                part_count = 2;
            }
        }
        Range::Text(low, high) => {
            if let (Some(score), Bound::Included(text) | Bound::Excluded(text)) =
                (one_score, if is_reverse { high } else { low })
            {
                msgpack::encode_f64(&mut parts, score);
                msgpack::encode_str(&mut parts, text);
                part_count = 3;
            }
        }
        Range::Rank(..) | Range::Empty => {}
    }
    let is_above = |member: &[u8], score: f64| match range {
        Range::Score(low, _) => match low {
            Bound::Included(low) => score >= *low,
            Bound::Excluded(low) => score > *low,
            Bound::Unbounded => true,
        },
        Range::Text(low, _) => match low {
            Bound::Included(low) => member >= low.as_slice(),
            Bound::Excluded(low) => member > low.as_slice(),
            Bound::Unbounded => true,
        },
        Range::Rank(..) | Range::Empty => true,
    };
    let is_below = |member: &[u8], score: f64| match range {
        Range::Score(_, high) => match high {
            Bound::Included(high) => score <= *high,
            Bound::Excluded(high) => score < *high,
            Bound::Unbounded => true,
        },
        Range::Text(_, high) => match high {
            Bound::Included(high) => member <= high.as_slice(),
            Bound::Excluded(high) => member < high.as_slice(),
            Bound::Unbounded => true,
        },
        Range::Rank(..) | Range::Empty => true,
    };
    // Places are passed over by the index itself where all before them are in the range.
    let mut offset = if by_rank { std::mem::take(&mut skip) } else { 0 };
    let done = loop {
        let (mut seen, mut is_over, mut last) = (0, false, Vec::new());
        let jump = offset.min(SLICE);
        let scanned = call.scan(
            Kind::SortedSet,
            (BY_SCORE, kind, part_count),
            (if offset > jump { jump - 1 } else { jump }, if offset > jump { 1 } else { SLICE }),
            |out| out.extend_from_slice(&parts),
            |row| {
                let mut reader = Reader::new(row);
                if reader.read_array().and_then(|_| reader.read_uint()) != Ok(head.id) {
                    is_over = true;
                    return false;
                }
                let member = reader.read_str().unwrap_or_default();
                let score = reader.read_double().unwrap_or_default();
                seen += 1;
                last.clear();
                msgpack::encode_uint(&mut last, head.id);
                msgpack::encode_f64(&mut last, score);
                msgpack::encode_str(&mut last, member);
                if offset > jump {
                    return true;
                }
                let (begins, ends) = if is_reverse {
                    (is_below(member, score), is_above(member, score))
                } else {
                    (is_above(member, score), is_below(member, score))
                };
                if !ends && !is_unordered {
                    is_over = true;
                    return false;
                }
                if begins && ends {
                    if skip > 0 {
                        skip -= 1;
                    } else {
                        found.push((member.to_vec(), score));
                        limit -= 1;
                    }
                }
                is_over = limit == 0;
                !is_over
            },
        );
        let is_jump = offset > jump;
        offset -= jump;
        if scanned.is_err() || is_over || seen == 0 || !is_jump && seen < SLICE {
            break scanned;
        }
        parts = last;
        part_count = 3;
        kind = if is_reverse { IteratorKind::Lt } else { IteratorKind::Gt };
        call.give_way();
    };
    if is_own {
        call.database.abandon(call.context);
    }
    done?;
    Ok(found)
}

/// All members, in the order of their scores.
pub(super) fn members_in_order(call: &Call<'_>, head: &Head) -> Outcome<Vec<Vec<u8>>> {
    let all = select(call, head, &Range::Rank(0, -1), false, (0, u64::MAX))?;
    Ok(all.into_iter().map(|(member, _)| member).collect())
}

pub(super) fn answer(call: &mut Call<'_>, found: &[Scored], with_scores: bool) {
    let mut reply = call.reply();
    let pairs = with_scores && reply.resp3;
    reply.array(if with_scores && !pairs { found.len() * 2 } else { found.len() });
    for (member, score) in found {
        if pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(*score);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Text,
}

struct RangeRequest {
    range: Range,
    is_reverse: bool,
    with_scores: bool,
    limit: (u64, u64),
}

/// Reads `min max [options]` from an argument on.
fn range_request(
    call: &Call<'_>,
    at: usize,
    mut by: By,
    mut is_reverse: bool,
    is_general: bool,
) -> Outcome<RangeRequest> {
    let (mut with_scores, mut limit) = (false, None);
    let mut option = at + 2;
    while option < call.args.len() {
        if call.is_word(option, "withscores") {
            with_scores = true;
        } else if call.is_word(option, "limit") {
            call.args.get(option + 2).ok_or(SYNTAX)?;
            limit = Some((call.integer(option + 1)?, call.integer(option + 2)?));
            option += 2;
        } else if is_general && call.is_word(option, "byscore") && by == By::Rank {
            by = By::Score;
        } else if is_general && call.is_word(option, "bylex") && by == By::Rank {
            by = By::Text;
        } else if is_general && call.is_word(option, "rev") {
            is_reverse = true;
        } else {
            return Err(SYNTAX.into());
        }
        option += 1;
    }
    if by == By::Rank && limit.is_some() {
        return Err("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX".into());
    }
    if by == By::Text && with_scores {
        return Err("ERR syntax error, WITHSCORES not supported in combination with BYLEX".into());
    }
    let (first, second) = (call.args[at], call.args[at + 1]);
    let (low, high) = if is_reverse && by != By::Rank { (second, first) } else { (first, second) };
    let range = match by {
        By::Rank => Range::Rank(call.integer(at)?, call.integer(at + 1)?),
        By::Score => Range::Score(score_bound(low)?, score_bound(high)?),
        By::Text => text_range(low, high)?,
    };
    let limit = match limit {
        None => (0, u64::MAX),
        Some((offset, _)) if offset < 0 => (0, 0),
        Some((offset, count)) => (offset as u64, u64::try_from(count).unwrap_or(u64::MAX)),
    };
    Ok(RangeRequest { range, is_reverse, with_scores, limit })
}

fn answer_range(call: &mut Call<'_>, by: By, is_reverse: bool, is_general: bool) -> Outcome {
    let request = range_request(call, 2, by, is_reverse, is_general)?;
    let found = match call.find_head(call.args[1], Kind::SortedSet)? {
        Some((head, _)) => select(call, &head, &request.range, request.is_reverse, request.limit)?,
        None => Vec::new(),
    };
    answer(call, &found, request.with_scores);
    Ok(())
}

pub(super) fn zrange(call: &mut Call<'_>) -> Outcome {
    answer_range(call, By::Rank, false, true)
}

pub(super) fn zrevrange(call: &mut Call<'_>) -> Outcome {
    answer_range(call, By::Rank, true, false)
}

pub(super) fn zrangebyscore(call: &mut Call<'_>) -> Outcome {
    answer_range(call, By::Score, false, false)
}

pub(super) fn zrevrangebyscore(call: &mut Call<'_>) -> Outcome {
    answer_range(call, By::Score, true, false)
}

pub(super) fn zrangebylex(call: &mut Call<'_>) -> Outcome {
    answer_range(call, By::Text, false, false)
}

pub(super) fn zrevrangebylex(call: &mut Call<'_>) -> Outcome {
    answer_range(call, By::Text, true, false)
}

pub(super) fn zrangestore(call: &mut Call<'_>) -> Outcome {
    let request = range_request(call, 3, By::Rank, false, true)?;
    if request.with_scores {
        return Err(SYNTAX.into());
    }
    let found = match call.find_head(call.args[2], Kind::SortedSet)? {
        Some((head, _)) => select(call, &head, &request.range, request.is_reverse, request.limit)?,
        None => Vec::new(),
    };
    store(call, call.args[1], &found)?;
    call.reply().count(found.len());
    Ok(())
}

/// Makes a key a sorted set of these members, or removes it.
pub(super) fn store(call: &mut Call<'_>, key: &[u8], members: &[Scored]) -> Outcome {
    let head = Head { count: members.len() as u64, ..call.new_head(Kind::SortedSet) };
    call.build(&head, members.len(), |call, at| put(call, &head, &members[at].0, members[at].1).map(drop))?;
    call.replace_with(key, &head)
}

/// How many members are in a range.
fn count_in(call: &mut Call<'_>, range: &Range) -> Outcome {
    let count = match call.find_head(call.args[1], Kind::SortedSet)? {
        Some((head, _)) => select(call, &head, range, false, (0, u64::MAX))?.len(),
        None => 0,
    };
    call.reply().count(count);
    Ok(())
}

pub(super) fn zcount(call: &mut Call<'_>) -> Outcome {
    let range = Range::Score(score_bound(call.args[2])?, score_bound(call.args[3])?);
    count_in(call, &range)
}

pub(super) fn zlexcount(call: &mut Call<'_>) -> Outcome {
    let range = text_range(call.args[2], call.args[3])?;
    count_in(call, &range)
}

fn rank(call: &mut Call<'_>, is_reverse: bool) -> Outcome {
    let member = call.args[2];
    let place = match call.find_head(call.args[1], Kind::SortedSet)? {
        None => None,
        Some((head, _)) => match score(call, &head, member)? {
            None => None,
            Some(score) => {
                // Those before it, of a smaller score or of the same one and a smaller name.
                let range = match is_reverse {
                    false => Range::Score(Bound::Unbounded, Bound::Included(score)),
                    true => Range::Score(Bound::Included(score), Bound::Unbounded),
                };
                let found = select(call, &head, &range, is_reverse, (0, u64::MAX))?;
                found.iter().position(|(other, _)| other == member)
            }
        },
    };
    match place {
        Some(place) => call.reply().count(place),
        None => call.reply().null(),
    }
    Ok(())
}

pub(super) fn zrank(call: &mut Call<'_>) -> Outcome {
    rank(call, false)
}

pub(super) fn zrevrank(call: &mut Call<'_>) -> Outcome {
    rank(call, true)
}

/// Removes members that were found. Many are removed in slices.
fn remove_found(
    call: &mut Call<'_>,
    key: &[u8],
    (mut head, expires): (Head, Option<u64>),
    found: &[Scored],
) -> Outcome {
    if found.is_empty() {
        return Ok(());
    }
    if found.len() as u64 > SLICE {
        call.go_into_fiber()?;
    }
    call.atomically(|call| {
        for (number, (member, _)) in found.iter().enumerate() {
            take(call, &head, member)?;
            if number as u64 % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        head.count -= found.len() as u64;
        call.put_head(key, &head, expires)
    })
}

fn remove_range(call: &mut Call<'_>, range: &Range) -> Outcome {
    let key = call.args[1];
    let mut count = 0;
    if let Some(found) = call.find_head(key, Kind::SortedSet)? {
        let members = select(call, &found.0, range, false, (0, u64::MAX))?;
        count = members.len();
        remove_found(call, key, found, &members)?;
    }
    call.reply().count(count);
    Ok(())
}

pub(super) fn zremrangebyrank(call: &mut Call<'_>) -> Outcome {
    let range = Range::Rank(call.integer(2)?, call.integer(3)?);
    remove_range(call, &range)
}

pub(super) fn zremrangebyscore(call: &mut Call<'_>) -> Outcome {
    let range = Range::Score(score_bound(call.args[2])?, score_bound(call.args[3])?);
    remove_range(call, &range)
}

pub(super) fn zremrangebylex(call: &mut Call<'_>) -> Outcome {
    let range = text_range(call.args[2], call.args[3])?;
    remove_range(call, &range)
}

/// Takes the smallest or greatest members of a sorted set that is there.
pub(super) fn pop_members(
    call: &mut Call<'_>,
    key: &[u8],
    is_max: bool,
    count: u64,
    found: (Head, Option<u64>),
) -> Outcome<Vec<Scored>> {
    let members = select(call, &found.0, &Range::Rank(0, -1), is_max, (0, count))?;
    remove_found(call, key, found, &members)?;
    Ok(members)
}

fn pop(call: &mut Call<'_>, is_max: bool) -> Outcome {
    let key = call.args[1];
    let count = match call.args.len() {
        2 => None,
        3 => Some(u64::try_from(call.integer(2).map_err(|_| NOT_POSITIVE)?).map_err(|_| NOT_POSITIVE)?),
        _ => return Err(SYNTAX.into()),
    };
    let members = match call.find_head(key, Kind::SortedSet)? {
        Some(found) if count != Some(0) => pop_members(call, key, is_max, count.unwrap_or(1), found)?,
        _ => Vec::new(),
    };
    if count.is_none() {
        // One member and its score, without a list of lists in either version.
        let mut reply = call.reply();
        reply.array(members.len() * 2);
        for (member, score) in &members {
            reply.bulk(member);
            reply.double(*score);
        }
        return Ok(());
    }
    answer(call, &members, true);
    Ok(())
}

pub(super) fn zpopmin(call: &mut Call<'_>) -> Outcome {
    pop(call, false)
}

pub(super) fn zpopmax(call: &mut Call<'_>) -> Outcome {
    pop(call, true)
}

/// `numkeys key ... MIN|MAX [COUNT n]`, from an argument on: keys, whether the greatest are wanted, and count.
pub(super) fn pop_request<'a>(call: &Call<'a>, at: usize) -> Outcome<(&'a [&'a [u8]], bool, u64)> {
    let (keys, rest) = numbered_keys(call, at)?;
    let is_max = if call.is_word(rest, "max") {
        true
    } else if call.is_word(rest, "min") {
        false
    } else {
        return Err(SYNTAX.into());
    };
    let count = match call.args.len() - rest {
        1 => 1,
        3 if call.is_word(rest + 1, "count") => match call.integer(rest + 2) {
            Ok(count) if count > 0 => count as u64,
            _ => return Err("ERR count should be greater than 0".into()),
        },
        _ => return Err(SYNTAX.into()),
    };
    Ok((keys, is_max, count))
}

/// Takes members from the first sorted set that has some and answers with its name and them. False: all are empty; nothing was answered.
pub(super) fn pop_first(call: &mut Call<'_>, keys: &[&[u8]], is_max: bool, count: u64) -> Outcome<bool> {
    for key in keys {
        if let Some(found) = call.find_head(key, Kind::SortedSet)? {
            let members = pop_members(call, key, is_max, count, found)?;
            let mut reply = call.reply();
            reply.array(2);
            reply.bulk(key);
            reply.array(members.len());
            for (member, score) in &members {
                reply.array(2);
                reply.bulk(member);
                reply.double(*score);
            }
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn zmpop(call: &mut Call<'_>) -> Outcome {
    let (keys, is_max, count) = pop_request(call, 1)?;
    if !pop_first(call, keys, is_max, count)? {
        call.reply().null_array();
    }
    Ok(())
}

pub(super) fn zrandmember(call: &mut Call<'_>) -> Outcome {
    let with_scores = match call.args.len() {
        2 | 3 => false,
        4 if call.is_word(3, "withscores") => true,
        _ => return Err(SYNTAX.into()),
    };
    let count = if call.args.len() > 2 { Some(call.integer(2)?) } else { None };
    let head = call.find_head(call.args[1], Kind::SortedSet)?.map(|(head, _)| head);
    super::sets::answer_random(call, head, count, |out, reader, resp3| {
        let (member, score) = (read_text(reader), reader.read_double().unwrap_or_default());
        let mut reply = super::reply::Reply { out, resp3 };
        if with_scores && resp3 {
            reply.array(2);
        }
        reply.bulk(member);
        if with_scores {
            reply.double(score);
        }
        if with_scores && !resp3 { 2 } else { 1 }
    })
}
