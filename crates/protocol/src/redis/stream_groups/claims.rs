//! Entries that change hands: `XCLAIM` gives those that are named to a consumer, `XAUTOCLAIM` those that have waited too long.

use super::super::call::Call;
use super::super::failure::{Outcome, SYNTAX};
use super::super::reply::Reply;
use super::super::streams::{Id, MAX, MIN, entry, id_text, parse_bound, parse_id};
use super::{COUNT_MAX, Pending, acknowledge, both, find_pending, pending, put, put_pending, see_at};

/// What `XCLAIM` is told besides the entries.
struct Claim {
    delivered: u64,
    times: Option<u64>,
    forces: bool,
    is_just_id: bool,
    last: Option<Id>,
}

fn claim_options(call: &Call<'_>, mut at: usize) -> Outcome<Claim> {
    let now = call.now_ms();
    let mut claim = Claim { delivered: now, times: None, forces: false, is_just_id: false, last: None };
    while at < call.args.len() {
        let has_value = at + 1 < call.args.len();
        if call.is_word(at, "force") {
            claim.forces = true;
        } else if call.is_word(at, "justid") {
            claim.is_just_id = true;
        } else if call.is_word(at, "idle") && has_value {
            let ms = call.integer(at + 1).map_err(|_| "ERR Invalid IDLE option argument for XCLAIM")?;
            claim.delivered = now.saturating_sub(u64::try_from(ms).unwrap_or(0));
            at += 1;
        } else if call.is_word(at, "time") && has_value {
            let ms = call.integer(at + 1).map_err(|_| "ERR Invalid TIME option argument for XCLAIM")?;
            claim.delivered = u64::try_from(ms).unwrap_or(0).min(now);
            at += 1;
        } else if call.is_word(at, "retrycount") && has_value {
            let times = call.integer(at + 1).map_err(|_| "ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
            claim.times = u64::try_from(times).ok();
            at += 1;
        } else if call.is_word(at, "lastid") && has_value {
            claim.last = Some(parse_id(call.args[at + 1], 0)?);
            at += 1;
        } else {
            let word = String::from_utf8_lossy(call.args[at]).into_owned();
            return Err(format!("ERR Unrecognized XCLAIM option '{word}'").into());
        }
        at += 1;
    }
    Ok(claim)
}

pub(in crate::redis) fn xclaim(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let (key, name, consumer) = (args[1], args[2], args[3]);
    let (head, mut group) = both(call, key, name)?;
    let idle = call.integer(4).map_err(|_| "ERR Invalid min-idle-time argument for XCLAIM")?;
    let idle = u64::try_from(idle).unwrap_or(0);
    let ids: Vec<Id> = args[5..].iter().map_while(|text| parse_id(text, 0).ok()).collect();
    let claim = claim_options(call, 5 + ids.len())?;
    let now = call.now_ms();
    let answer = call.atomically(|call| {
        if let Some(last) = claim.last.filter(|last| *last > group.last) {
            group.last = last;
            put(call, &head, &group)?;
        }
        let mut out = Vec::new();
        let mut count = 0;
        for id in &ids {
            let known = find_pending(call, &head, name, *id)?;
            let Some(found) = entry(call, &head, *id)? else {
                if known.is_some() {
                    acknowledge(call, &head, name, *id)?;
                }
                continue;
            };
            let mut pending = match known {
                Some(known) if now.saturating_sub(known.delivered) < idle => continue,
                Some(known) => known,
                None if claim.forces => Pending { id: *id, consumer: Vec::new(), delivered: now, times: 1 },
                None => continue,
            };
            pending.consumer = consumer.to_vec();
            pending.delivered = claim.delivered;
            pending.times = claim.times.unwrap_or(pending.times + u64::from(!claim.is_just_id));
            put_pending(call, &head, name, &pending)?;
            if count == 0 {
                see_at(call, &head, key, (name, consumer))?;
            }
            count += 1;
            let mut reply = Reply { out: &mut out, resp3: call.state.resp3.get() };
            match claim.is_just_id {
                true => reply.text(&id_text(*id)),
                false => found.write(&mut reply),
            }
        }
        Ok((count, out))
    })?;
    call.reply().array(answer.0);
    call.out.extend_from_slice(&answer.1);
    Ok(())
}

pub(in crate::redis) fn xautoclaim(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let (key, name, consumer) = (args[1], args[2], args[3]);
    let idle = call.integer(4).map_err(|_| "ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
    let idle = u64::try_from(idle).unwrap_or(0);
    let from = parse_bound(args[5], true)?;
    let (mut count, mut is_just_id, mut at) = (100, false, 6);
    while at < args.len() {
        if call.is_word(at, "count") && at + 1 < args.len() {
            count = call.integer(at + 1)?;
            if !(1..=COUNT_MAX).contains(&count) {
                return Err("ERR COUNT must be > 0".into());
            }
            at += 1;
        } else if call.is_word(at, "justid") {
            is_just_id = true;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    let (head, _) = both(call, key, name)?;
    let now = call.now_ms();
    let (next, claimed, out, gone) = call.atomically(|call| {
        // One more says where to go on.
        let attempts = count as u64 * 10;
        let looked = pending(call, &head, (name, None), (from, MAX), attempts + 1, |_| true)?;
        let (mut out, mut claimed, mut gone) = (Vec::new(), 0, Vec::new());
        let mut next = None;
        for (number, mut pending) in looked.into_iter().enumerate() {
            if number as u64 == attempts || claimed as i64 + gone.len() as i64 == count {
                next = Some(pending.id);
                break;
            }
            let Some(found) = entry(call, &head, pending.id)? else {
                acknowledge(call, &head, name, pending.id)?;
                gone.push(pending.id);
                continue;
            };
            if now.saturating_sub(pending.delivered) < idle {
                continue;
            }
            pending.consumer = consumer.to_vec();
            pending.delivered = now;
            pending.times += u64::from(!is_just_id);
            put_pending(call, &head, name, &pending)?;
            if claimed == 0 {
                see_at(call, &head, key, (name, consumer))?;
            }
            claimed += 1;
            let mut reply = Reply { out: &mut out, resp3: call.state.resp3.get() };
            match is_just_id {
                true => reply.text(&id_text(pending.id)),
                false => found.write(&mut reply),
            }
        }
        Ok((next.unwrap_or(MIN), claimed, out, gone))
    })?;
    let mut reply = call.reply();
    reply.array(3);
    reply.text(&id_text(next));
    reply.array(claimed);
    reply.out.extend_from_slice(&out);
    reply.array(gone.len());
    gone.iter().for_each(|id| reply.text(&id_text(*id)));
    Ok(())
}
