//! Streams in payloads of `DUMP`: nodes of entries, what is known of the whole, groups with their consumers.
//!
//! A node is a listpack behind the number of its first entry:
//!
//! ```text
//! count, removed, n, n fields, 0                                of the first entry: others may have the same fields
//! flags, ms, seq, [n values | n, n fields and values], length   of each; ms and seq are distances from the first
//! ```
//!
//! Source: the description of Redis' RDB files and payloads of Redis 5 and 7.0.

use super::super::call::{Call, Head, Kind};
use super::super::failure::Outcome;
use super::super::keys::read_text;
use super::super::stream_groups::payload::{self, GroupValue};
use super::super::streams::{Id, MIN};
use super::{BAD, Reader, bad, listpack, write_text};
use tuple::msgpack;

/// The forms: as Redis wrote it before 7.0, and now.
pub(super) const OLD: u8 = 15;
pub(super) const NOW: u8 = 19;

/// Flags of an entry.
const REMOVED: u64 = 1;
const SAME_FIELDS: u64 = 2;
/// Entries and bytes of a node that is written, as Redis has them unless it is told otherwise.
const NODE_ENTRIES: usize = 100;
const NODE_BYTES: usize = 4096;
/// Bytes of names of fields that entries of one payload share.
const SHARED_BYTES_MAX: usize = 256 << 20;

/// An entry: its number, and fields and values by turns.
type Entry = (Id, Vec<Vec<u8>>);

/// A stream of a payload.
#[derive(Debug, PartialEq)]
pub(super) struct Stream {
    pub(super) entries: Vec<Entry>,
    last: Id,
    added: u64,
    removed: Id,
    groups: Vec<GroupValue>,
}

// --- reading ---

fn id_of(bytes: &[u8]) -> Option<Id> {
    let (ms, seq) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*ms), u64::from_be_bytes(seq.try_into().ok()?)))
}

/// Numbers of a listpack are texts here, since a value of an entry may be one.
fn whole(text: &[u8]) -> Outcome<i64> {
    bad(std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()))
}

/// The entries of a node that are not removed. `shared`: how many more bytes of names its entries may share, each of which gets them.
fn read_node(first: Id, node: &[u8], entries: &mut Vec<Entry>, shared: &mut usize) -> Outcome {
    let values = listpack(node)?;
    let mut values = values.into_iter();
    let mut next = || bad(values.next());
    let (count, removed) = (whole(&next()?)?, whole(&next()?)?);
    let field_count = whole(&next()?)?;
    let fields: Vec<Vec<u8>> = (0..field_count).map(|_| next()).collect::<Outcome<_>>()?;
    let names = fields.iter().map(Vec::len).sum::<usize>();
    if whole(&next()?)? != 0 || count < 0 || removed < 0 {
        return Err(BAD.into());
    }
    for _ in 0..bad(count.checked_add(removed))? {
        let flags = whole(&next()?)? as u64;
        let id = (first.0.wrapping_add_signed(whole(&next()?)?), first.1.wrapping_add_signed(whole(&next()?)?));
        let mut pairs = Vec::new();
        if flags & SAME_FIELDS != 0 {
            *shared = bad(shared.checked_sub(names))?;
            for field in &fields {
                pairs.push(field.clone());
                pairs.push(next()?);
            }
        } else {
            let pair_count = whole(&next()?)?;
            for _ in 0..bad(pair_count.checked_mul(2))? {
                pairs.push(next()?);
            }
        }
        whole(&next()?)?;
        if flags & REMOVED == 0 {
            let is_next = !pairs.is_empty() && entries.last().is_none_or(|(before, _)| *before < id) && id > MIN;
            bad(is_next.then_some(()))?;
            entries.push((id, pairs));
        }
    }
    if values.next().is_some() { Err(BAD.into()) } else { Ok(()) }
}

pub(super) fn read(reader: &mut Reader<'_>, form: u8) -> Outcome<Stream> {
    let (mut entries, mut shared) = (Vec::new(), SHARED_BYTES_MAX);
    for _ in 0..reader.count()? {
        let first = bad(id_of(&reader.text()?))?;
        read_node(first, &reader.text()?, &mut entries, &mut shared)?;
    }
    let count = reader.number()?;
    let last = (reader.number()?, reader.number()?);
    let (mut added, mut removed) = (count, MIN);
    if form == NOW {
        // The number of the first entry is known from the entries.
        reader.number()?;
        reader.number()?;
        removed = (reader.number()?, reader.number()?);
        added = reader.number()?;
    }
    let is_good = entries.len() as u64 == count && added >= count && entries.last().is_none_or(|(id, _)| *id <= last);
    bad(is_good.then_some(()))?;
    let groups = payload::read(reader, form == NOW)?;
    Ok(Stream { entries, last, added, removed, groups })
}

/// Puts a stream. Returns the head that has its rows.
pub(super) fn build(call: &mut Call<'_>, stream: &Stream) -> Outcome<Head> {
    let count = stream.entries.len();
    let head = Head {
        count: count as u64,
        last: stream.last,
        added: stream.added,
        removed: stream.removed,
        ..call.new_head(Kind::Stream)
    };
    call.build(&head, count, |call, at| {
        let (id, pairs) = &stream.entries[at];
        call.put_element(Kind::Stream, |out| {
            msgpack::encode_array(out, 4);
            [head.id, id.0, id.1].into_iter().for_each(|number| msgpack::encode_uint(out, number));
            msgpack::encode_array(out, pairs.len() as u32);
            pairs.iter().for_each(|text| msgpack::encode_str(out, text));
        })
    })?;
    if !stream.groups.is_empty() {
        let put = call.atomically(|call| payload::put_all(call, &head, &stream.groups));
        put.inspect_err(|_| super::super::leftovers::add(call.shared, call.database, vec![head]))?;
    }
    Ok(head)
}

// --- writing ---

/// A node under construction.
#[derive(Default)]
struct Node {
    first: Id,
    fields: Vec<Vec<u8>>,
    count: usize,
    /// What stands behind the head.
    body: Listpack,
}

impl Node {
    fn add(&mut self, id: Id, pairs: &[Vec<u8>]) {
        if self.count == 0 {
            self.first = id;
            self.fields = pairs.iter().step_by(2).cloned().collect();
        }
        self.count += 1;
        let is_same = pairs.len() == 2 * self.fields.len() && pairs.iter().step_by(2).eq(&self.fields);
        self.body.number(if is_same { SAME_FIELDS as i64 } else { 0 });
        self.body.number(id.0.wrapping_sub(self.first.0) as i64);
        self.body.number(id.1.wrapping_sub(self.first.1) as i64);
        let length = if is_same {
            pairs.iter().skip(1).step_by(2).for_each(|value| self.body.text(value));
            3 + pairs.len() / 2
        } else {
            self.body.number((pairs.len() / 2) as i64);
            pairs.iter().for_each(|text| self.body.text(text));
            4 + pairs.len()
        };
        self.body.number(length as i64);
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut whole = Listpack::default();
        whole.number(self.count as i64);
        whole.number(0);
        whole.number(self.fields.len() as i64);
        self.fields.iter().for_each(|field| whole.text(field));
        whole.number(0);
        whole.bytes.extend_from_slice(&self.body.bytes);
        whole.count += self.body.count;
        let first = [self.first.0.to_be_bytes(), self.first.1.to_be_bytes()].concat();
        write_text(out, &first);
        write_text(out, &whole.sealed());
    }
}

/// A listpack under construction.
#[derive(Default)]
struct Listpack {
    bytes: Vec<u8>,
    count: usize,
}

impl Listpack {
    /// Ends a value that begins at a place: its length stands behind it, to be read backwards.
    fn end(&mut self, begin: usize) {
        let length = self.bytes.len() - begin;
        let groups = match length {
            0..=127 => 1,
            128..16383 => 2,
            16383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        };
        for group in (0..groups).rev() {
            let bits = (length >> (7 * group)) as u8 & 0x7f;
            self.bytes.push(if group + 1 == groups { bits } else { bits | 0x80 });
        }
        self.count += 1;
    }

    fn number(&mut self, value: i64) {
        let begin = self.bytes.len();
        match value {
            0..=127 => self.bytes.push(value as u8),
            -4096..=4095 => self.bytes.extend_from_slice(&[0xc0 | (value >> 8) as u8 & 0x1f, value as u8]),
            _ => {
                self.bytes.push(0xf4);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        self.end(begin);
    }

    fn text(&mut self, text: &[u8]) {
        let begin = self.bytes.len();
        match text.len() {
            length @ 0..64 => self.bytes.push(0x80 | length as u8),
            length @ 64..4096 => self.bytes.extend_from_slice(&[0xe0 | (length >> 8) as u8, length as u8]),
            length => {
                self.bytes.push(0xf0);
                self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(text);
        self.end(begin);
    }

    fn sealed(&self) -> Vec<u8> {
        let mut out = ((self.bytes.len() + 7) as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&u16::try_from(self.count).unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(&self.bytes);
        out.push(0xff);
        out
    }
}

/// The payload of a stream, of one moment.
pub(super) fn write(call: &Call<'_>, head: &Head) -> Outcome<Vec<u8>> {
    let mut out = vec![NOW];
    let is_own = !call.context.is_in_txn();
    if is_own {
        call.go_into_fiber()?;
        call.database.begin(call.context)?;
    }
    let written = write_inside(call, head, &mut out);
    if is_own {
        call.database.abandon(call.context);
    }
    written.map(|()| out)
}

fn write_inside(call: &Call<'_>, head: &Head, out: &mut Vec<u8>) -> Outcome {
    let (mut nodes, mut node, mut node_count) = (Vec::new(), Node::default(), 0);
    let mut first = MIN;
    call.walk(head, |reader| {
        let id = (reader.read_uint().unwrap_or(0), reader.read_uint().unwrap_or(0));
        let count = reader.read_array().unwrap_or(0);
        let pairs: Vec<Vec<u8>> = (0..count).map(|_| read_text(reader).to_vec()).collect();
        if node.count == NODE_ENTRIES || node.body.bytes.len() > NODE_BYTES {
            std::mem::take(&mut node).write(&mut nodes);
            node_count += 1;
        }
        if first == MIN {
            first = id;
        }
        node.add(id, &pairs);
        true
    })?;
    if node.count > 0 {
        node.write(&mut nodes);
        node_count += 1;
    }
    super::write_number(out, node_count);
    out.extend_from_slice(&nodes);
    let known = [head.count, head.last.0, head.last.1, first.0, first.1, head.removed.0, head.removed.1, head.added];
    known.into_iter().for_each(|number| super::write_number(out, number));
    payload::write(call, head, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is read again, and what is cut or damaged is refused or read as something else, and never worse.
    #[test]
    fn nodes_are_read_as_they_were_written() {
        let text = |length: usize| vec![b'v'; length];
        let pairs = |values: &[Vec<u8>]| values.iter().flat_map(|value| [b"f".to_vec(), value.clone()]).collect();
        let mut entries: Vec<Entry> = vec![((5, 1), pairs(&[text(1)])), ((5, 2), pairs(&[text(200)]))];
        entries.push(((6, 0), pairs(&[text(0), text(5000)])));
        entries.push(((u64::MAX, 3), vec![b"g".to_vec(), b"-12".to_vec()]));
        let mut node = Node::default();
        entries.iter().for_each(|(id, pairs)| node.add(*id, pairs));
        let mut out = Vec::new();
        node.write(&mut out);
        let mut reader = Reader::new(&out);
        assert_eq!(id_of(&reader.text().ok().unwrap_or_default()), Some((5, 1)));
        let body = reader.text().ok().unwrap_or_default();
        let mut read = Vec::new();
        assert!(read_node((5, 1), &body, &mut read, &mut 1000).is_ok());
        assert_eq!(read, entries);
        for at in 0..body.len() {
            let _ = read_node((5, 1), &body[..at], &mut Vec::new(), &mut 1000);
            let mut damaged = body.clone();
            damaged[at] ^= 0x41;
            let _ = read_node((5, 1), &damaged, &mut Vec::new(), &mut 1000);
        }
        // The same once more is not behind what is there.
        assert!(read_node((5, 1), &body, &mut read, &mut 1000).is_err());
    }

    /// Of Redis 7.0.15: XADD s 1-1 a b, XADD s 2-0 a 5, XGROUP CREATE s g 0, XREADGROUP GROUP g c COUNT 1 STREAMS s >.
    #[test]
    fn a_stream_of_redis_is_read() {
        let payload = include_bytes!("stream-7.0.15.bin");
        let body = super::super::unseal(payload).ok().unwrap_or_default();
        let Ok(super::super::Value::Stream(stream)) = super::super::read_value(body) else { panic!("no stream") };
        let texts = |a: &[u8], b: &[u8]| vec![a.to_vec(), b.to_vec()];
        assert_eq!(stream.entries, [((1, 1), texts(b"a", b"b")), ((2, 0), texts(b"a", b"5"))]);
        assert_eq!((stream.last, stream.added, stream.removed), ((2, 0), 2, MIN));
        assert_eq!(stream.groups.len(), 1);
        for end in 0..body.len() {
            assert!(super::super::read_value(&body[..end]).is_err(), "cut at {end}");
        }
    }
}
