//! What packets of the binary protocol are answered.

use super::VERSION;
use super::binary::{Packet, Status, answer, be_u32, be_u64, opcode, refuse};
use super::numbers::push_u64;
use super::onlookers::Seen;
use super::stats;
use super::store::{Outcome, Sum, Verb, Wanted, Work};
use database::Result;

/// An incr that shall not make what is not there.
const NEVER_BEGIN: u32 = u32::MAX;

/// Serves a packet: appends its answer, or nothing. Errors: those of the database.
pub(super) fn serve(work: &Work<'_>, packet: &Packet<'_>, out: &mut Vec<u8>) -> Result<()> {
    let to = (packet.opcode, packet.opaque);
    let fail = |out: &mut Vec<u8>, status: Status| refuse(out, to, status, status.text());
    let succeed = |out: &mut Vec<u8>, cas: u64, value: &[u8]| {
        if !packet.is_quiet {
            answer(out, to, Status::Ok, cas, (&[], &[], value));
        }
    };
    if let Some(status) = packet.refused {
        // Its parts are not what its command needs.
        fail(out, status);
        return Ok(());
    }
    // The real one reads it as a number with a sign.
    let moment = |bytes: &[u8]| work.door.moment(work.database, be_u32(bytes) as i32);
    let counters = &work.door.counters;
    match packet.command {
        opcode::VERSION => succeed(out, 0, VERSION.as_bytes()),
        opcode::NOOP | opcode::VERBOSITY => succeed(out, 0, &[]),
        opcode::GET | opcode::GETK => get(work, packet, out)?,
        opcode::TOUCH | opcode::GAT | opcode::GATK => {
            let expires = moment(packet.extras);
            let (mut made, hidden) = (Vec::new(), work.database.hidden_reads());
            let is_hit = work.touch(packet.key, expires, |found| {
                found.map(|item| {
                    let key = if packet.command == opcode::GATK { packet.key } else { &[] };
                    let value = if packet.command == opcode::TOUCH { &[] } else { item.value };
                    let mut bytes = Vec::new();
                    answer(&mut bytes, to, Status::Ok, item.cas, (&item.flags.to_be_bytes(), key, value));
                    (bytes, Seen::of(item))
                })
            })?;
            let has_hit = is_hit.is_some();
            if packet.command != opcode::TOUCH {
                work.saw_get(packet.key, is_hit.as_ref().map(|(_, seen)| *seen));
                if !has_hit {
                    work.note_miss(packet.key, hidden);
                }
            }
            made.extend_from_slice(&is_hit.map(|(bytes, _)| bytes).unwrap_or_default());
            counters.count_touches(u64::from(has_hit), u64::from(!has_hit), packet.command != opcode::TOUCH);
            match has_hit {
                true => out.extend_from_slice(&made),
                false => miss(packet, out),
            }
        }
        opcode::SET | opcode::ADD | opcode::REPLACE | opcode::APPEND | opcode::PREPEND => {
            let verb = match packet.command {
                opcode::SET => Verb::Set,
                opcode::ADD => Verb::Add,
                opcode::REPLACE => Verb::Replace,
                opcode::APPEND => Verb::Append,
                _ => Verb::Prepend,
            };
            let is_joined = matches!(verb, Verb::Append | Verb::Prepend);
            let wanted = Wanted {
                verb: if packet.cas != 0 && !is_joined { Verb::Cas } else { verb },
                key: packet.key,
                value: packet.value,
                flags: if is_joined { 0 } else { be_u32(packet.extras) },
                expires: if is_joined { 0 } else { moment(&packet.extras[4..]) },
                cas: packet.cas,
                given_cas: 0,
                is_binary: false,
                takes_stale: false,
                begins: None,
            };
            match work.store(&wanted)? {
                Outcome::Stored(cas) => succeed(out, cas, &[]),
                Outcome::Exists => fail(out, Status::Exists),
                Outcome::NotFound => fail(out, Status::NotFound),
                Outcome::NotStored => fail(
                    out,
                    match verb {
                        Verb::Add => Status::Exists,
                        Verb::Replace => Status::NotFound,
                        _ => Status::NotStored,
                    },
                ),
            }
        }
        opcode::DELETE => {
            let outcome = work.delete(packet.key, packet.cas)?;
            counters.count_deletes(matches!(outcome, Outcome::Stored(_)));
            match outcome {
                Outcome::Stored(_) => succeed(out, 0, &[]),
                Outcome::Exists => fail(out, Status::Exists),
                _ => fail(out, Status::NotFound),
            }
        }
        opcode::INCREMENT | opcode::DECREMENT => {
            let (delta, initial) = (be_u64(packet.extras), be_u64(&packet.extras[8..]));
            let expires = &packet.extras[16..];
            let is_incr = packet.command == opcode::INCREMENT;
            let mut sum = work.add(packet.key, delta, is_incr, packet.cas)?;
            if matches!(sum, Sum::NotFound) && be_u32(expires) != NEVER_BEGIN {
                let mut text = Vec::new();
                push_u64(&mut text, initial);
                let wanted = Wanted {
                    verb: Verb::Add,
                    key: packet.key,
                    value: &text,
                    flags: 0,
                    expires: moment(expires),
                    cas: 0,
                    given_cas: 0,
                    is_binary: false,
                    takes_stale: false,
                    begins: None,
                };
                sum = match work.store(&wanted)? {
                    Outcome::Stored(cas) => Sum::Done { value: initial, cas, expires: 0 },
                    // Somebody else was faster: the number is there now.
                    _ => work.add(packet.key, delta, is_incr, packet.cas)?,
                };
            }
            counters.count_sums(is_incr, matches!(sum, Sum::Done { .. }));
            match sum {
                Sum::Done { value, cas, .. } => succeed(out, cas, &value.to_be_bytes()),
                Sum::NotFound => fail(out, Status::NotFound),
                Sum::Exists => fail(out, Status::Exists),
                Sum::NoNumber => fail(out, Status::BadDelta),
            }
        }
        opcode::STAT => match packet.key {
            b"reset" => {
                stats::reset(work);
                succeed(out, 0, &[]);
            }
            b"detail on" | b"detail off" | b"detail dump" => {
                let mut text = Vec::new();
                stats::detail(work, &packet.key[b"detail ".len()..], &mut text)?;
                let text = text.strip_suffix(b"END\r\n").unwrap_or(&[]);
                if !text.is_empty() {
                    answer(out, to, Status::Ok, 0, (&[], b"detailed", text));
                }
                answer(out, to, Status::Ok, 0, (&[], &[], &[]));
            }
            words => match stats::lines(work, words)? {
                None => fail(out, Status::NotFound),
                Some(lines) => {
                    for (name, value) in lines {
                        answer(out, to, Status::Ok, 0, (&[], name.as_bytes(), value.as_bytes()));
                    }
                    answer(out, to, Status::Ok, 0, (&[], &[], &[]));
                }
            },
        },
        opcode::SASL_LIST => succeed(out, 0, b"PLAIN"),
        _ => fail(out, Status::Unknown),
    }
    Ok(())
}

/// There is nothing under the key of a packet.
fn miss(packet: &Packet<'_>, out: &mut Vec<u8>) {
    if packet.is_quiet {
        return;
    }
    let to = (packet.opcode, packet.opaque);
    match packet.command {
        opcode::GETK | opcode::GATK => answer(out, to, Status::NotFound, 0, (&[], packet.key, &[])),
        _ => refuse(out, to, Status::NotFound, Status::NotFound.text()),
    }
}

fn get(work: &Work<'_>, packet: &Packet<'_>, out: &mut Vec<u8>) -> Result<()> {
    let to = (packet.opcode, packet.opaque);
    let key = if packet.command == opcode::GETK { packet.key } else { &[] };
    let hidden = work.database.hidden_reads();
    let found = work.look(packet.key, true, |found| {
        Ok(found.map(|(item, _)| {
            answer(out, to, Status::Ok, item.cas, (&item.flags.to_be_bytes(), key, item.value));
            Seen::of(item)
        }))
    })?;
    work.saw_get(packet.key, found);
    let is_hit = found.is_some();
    if !is_hit {
        work.note_miss(packet.key, hidden);
        miss(packet, out);
    }
    work.door.counters.count_gets(u64::from(is_hit), u64::from(!is_hit));
    Ok(())
}
