//! Groups of a stream in payloads of `DUMP`: each with what it has read, what it waits for, and its consumers.

use super::super::call::{Call, Head};
use super::super::dump::{BAD, Reader, write_number, write_text};
use super::super::failure::Outcome;
use super::super::streams::{Id, MAX, MIN};
use super::OfGroups;
use super::{Group, Pending, all, consumers, distance, pending, prefix, put, put_pending};
use std::collections::{BTreeMap, BTreeSet};
use tuple::msgpack;

/// What stands for a number of entries that is not known.
const UNKNOWN: u64 = u64::MAX;

/// A group of a payload.
#[derive(Debug, PartialEq)]
pub(in super::super) struct GroupValue {
    name: Vec<u8>,
    last: Id,
    /// How many entries it was given: `Some(None)` if that is not known, `None` if the payload does not say.
    read: Option<Option<u64>>,
    /// By name, and when each was seen.
    consumers: Vec<(Vec<u8>, u64)>,
    /// By the number of the entry: consumer, moment, times.
    pending: BTreeMap<Id, (Vec<u8>, u64, u64)>,
}

fn read_id(reader: &mut Reader<'_>) -> Outcome<Id> {
    Ok((u64::from_be_bytes(reader.chunk()?), u64::from_be_bytes(reader.chunk()?)))
}

fn read_group(reader: &mut Reader<'_>, says_read: bool) -> Outcome<GroupValue> {
    let name = reader.text()?;
    let last = (reader.number()?, reader.number()?);
    let read = if says_read { Some(Some(reader.number()?).filter(|read| *read != UNKNOWN)) } else { None };
    let mut waiting = BTreeMap::new();
    for _ in 0..reader.count()? {
        let id = read_id(reader)?;
        let delivered = u64::from_le_bytes(reader.chunk()?);
        if waiting.insert(id, (delivered, reader.number()?)).is_some() {
            return Err(BAD.into());
        }
    }
    let mut names = BTreeSet::new();
    let mut group = GroupValue { name, last, read, consumers: Vec::new(), pending: BTreeMap::new() };
    for _ in 0..reader.count()? {
        let consumer = reader.text()?;
        let seen = u64::from_le_bytes(reader.chunk()?);
        if !names.insert(consumer.clone()) {
            return Err(BAD.into());
        }
        for _ in 0..reader.count()? {
            let id = read_id(reader)?;
            let (delivered, times) = waiting.remove(&id).ok_or(BAD)?;
            group.pending.insert(id, (consumer.clone(), delivered, times));
        }
        group.consumers.push((consumer, seen));
    }
    // Whatever waits is somebody's.
    if waiting.is_empty() { Ok(group) } else { Err(BAD.into()) }
}

/// Reads the groups. `says_read`: the form says how many entries each was given.
pub(in super::super) fn read(reader: &mut Reader<'_>, says_read: bool) -> Outcome<Vec<GroupValue>> {
    let (mut groups, mut names) = (Vec::new(), BTreeSet::new());
    for _ in 0..reader.count()? {
        let group = read_group(reader, says_read)?;
        if !names.insert(group.name.clone()) {
            return Err(BAD.into());
        }
        groups.push(group);
    }
    Ok(groups)
}

/// Puts the groups of a stream whose entries are there.
pub(in super::super) fn put_all(call: &Call<'_>, head: &Head, groups: &[GroupValue]) -> Outcome {
    for value in groups {
        let read = match value.read {
            Some(read) => read,
            None => distance(call, head, value.last)?,
        };
        put(call, head, &Group { name: value.name.clone(), last: value.last, read })?;
        for (consumer, seen) in &value.consumers {
            let mut row = Vec::new();
            msgpack::encode_array(&mut row, 4);
            row.extend_from_slice(&prefix(head.id, &[&value.name, consumer]));
            msgpack::encode_uint(&mut row, *seen);
            call.put_into(call.spaces.of_groups(OfGroups::Consumers)?, &row)?;
        }
        for (id, (consumer, delivered, times)) in &value.pending {
            let pending = Pending { id: *id, consumer: consumer.clone(), delivered: *delivered, times: *times };
            put_pending(call, head, &value.name, &pending)?;
        }
    }
    Ok(())
}

fn write_id(out: &mut Vec<u8>, id: Id) {
    out.extend_from_slice(&id.0.to_be_bytes());
    out.extend_from_slice(&id.1.to_be_bytes());
}

/// Writes the groups of a stream.
pub(in super::super) fn write(call: &Call<'_>, head: &Head, out: &mut Vec<u8>) -> Outcome {
    let groups = all(call, head)?;
    write_number(out, groups.len() as u64);
    for group in groups {
        write_text(out, &group.name);
        [group.last.0, group.last.1, group.read.unwrap_or(UNKNOWN)]
            .into_iter()
            .for_each(|number| write_number(out, number));
        let waiting = pending(call, head, (&group.name, None), (MIN, MAX), u64::MAX, |_| true)?;
        write_number(out, waiting.len() as u64);
        for one in &waiting {
            write_id(out, one.id);
            out.extend_from_slice(&one.delivered.to_le_bytes());
            write_number(out, one.times);
        }
        let mut of_consumers: BTreeMap<&[u8], Vec<Id>> = BTreeMap::new();
        waiting.iter().for_each(|one| of_consumers.entry(&one.consumer).or_default().push(one.id));
        let names = consumers(call, head, &group.name)?;
        write_number(out, names.len() as u64);
        for (name, seen) in names {
            write_text(out, &name);
            out.extend_from_slice(&seen.to_le_bytes());
            let own = of_consumers.remove(name.as_slice()).unwrap_or_default();
            write_number(out, own.len() as u64);
            own.into_iter().for_each(|id| write_id(out, id));
        }
    }
    Ok(())
}
