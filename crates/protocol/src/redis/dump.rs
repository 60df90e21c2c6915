//! `DUMP` and `RESTORE`: values as Redis writes them into its files. Here the plain forms are written; every form that Redis 7.0 writes is read.
//!
//! Source: the description of Redis' RDB files, of listpacks, ziplists and intsets, and payloads of Redis 7.0.

mod streams;

use super::call::{Call, Entry, Head, Kind};
use super::failure::{Failure, Outcome, SYNTAX};
use super::keys::read_text;
use super::resp::integer;
use std::collections::{BTreeMap, BTreeSet};
use tuple::msgpack;

/// Of the files of Redis 7.0.
const VERSION: u16 = 10;
/// The largest value that a payload may unpack to.
const VALUE_BYTES_MAX: usize = 512 << 20;

pub(super) const WRONG: &str = "ERR DUMP payload version or checksum are wrong";
pub(super) const BAD: &str = "ERR Bad data format";

static CRC: [u64; 256] = {
    // CRC-64 by Jones, reflected.
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

fn crc64(data: &[u8]) -> u64 {
    data.iter().fold(0, |crc, byte| CRC[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

/// Appends the version and the checksum.
pub(super) fn seal(mut payload: Vec<u8>) -> Vec<u8> {
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc64(&payload);
    payload.extend_from_slice(&crc.to_le_bytes());
    payload
}

/// The payload without its end. Errors: it is cut, damaged or of a later version.
pub(super) fn unseal(payload: &[u8]) -> Outcome<&[u8]> {
    let (rest, crc) = payload.split_last_chunk::<8>().ok_or(WRONG)?;
    let (body, version) = rest.split_last_chunk::<2>().ok_or(WRONG)?;
    let is_good = u16::from_le_bytes(*version) <= VERSION && crc64(rest) == u64::from_le_bytes(*crc);
    if is_good { Ok(body) } else { Err(WRONG.into()) }
}

fn write_length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..64 => out.push(length as u8),
        64..16384 => out.extend_from_slice(&[0x40 | (length >> 8) as u8, length as u8]),
        _ => {
            out.push(0x80);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

/// A number as lengths are written.
pub(super) fn write_number(out: &mut Vec<u8>, number: u64) {
    match usize::try_from(number) {
        Ok(length) if number <= u64::from(u32::MAX) => write_length(out, length),
        _ => {
            out.push(0x81);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

pub(super) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    write_length(out, text.len());
    out.extend_from_slice(text);
}

fn bad<T>(found: Option<T>) -> Outcome<T> {
    found.ok_or_else(|| Failure::from(BAD))
}

/// Reads a payload.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes that may still be unpacked: few packed ones may stand for very many.
    room: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Reader { rest, room: VALUE_BYTES_MAX }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Outcome<u8> {
        bad(self.take(1)).map(|bytes| bytes[0])
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn chunk<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        bad(self.take(N).and_then(|bytes| bytes.try_into().ok()))
    }

    /// A length, or the number of a special form.
    fn length_or_form(&mut self) -> Outcome<Result<u64, u8>> {
        let first = self.byte()?;
        Ok(match first {
            0x80 => Ok(u64::from(u32::from_be_bytes(self.chunk()?))),
            0x81 => Ok(u64::from_be_bytes(self.chunk()?)),
            0xc0.. => Err(first & 0x3f),
            0x40..0x80 => Ok(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            0..0x40 => Ok(u64::from(first)),
            _ => return Err(BAD.into()),
        })
    }

    fn length(&mut self) -> Outcome<usize> {
        let length = self.length_or_form()?.map_err(|_| BAD)?;
        bad(usize::try_from(length).ok().filter(|length| *length <= VALUE_BYTES_MAX))
    }

    pub(super) fn number(&mut self) -> Outcome<u64> {
        Ok(self.length_or_form()?.map_err(|_| BAD)?)
    }

    /// How many elements follow: each takes a byte at least.
    pub(super) fn count(&mut self) -> Outcome<usize> {
        let count = self.length()?;
        bad(Some(count).filter(|count| *count <= self.rest.len()))
    }

    pub(super) fn text(&mut self) -> Outcome<Vec<u8>> {
        Ok(match self.length_or_form()? {
            Ok(length) => bad(usize::try_from(length).ok().and_then(|length| self.take(length)))?.to_vec(),
            Err(0) => i64::from(i8::from_le_bytes(self.chunk()?)).to_string().into_bytes(),
            Err(1) => i64::from(i16::from_le_bytes(self.chunk()?)).to_string().into_bytes(),
            Err(2) => i64::from(i32::from_le_bytes(self.chunk()?)).to_string().into_bytes(),
            Err(3) => {
                let (packed, length) = (self.length()?, self.length()?);
                self.room = bad(self.room.checked_sub(length))?;
                bad(self.take(packed).and_then(|packed| unpack(packed, length)))?
            }
            Err(_) => return Err(BAD.into()),
        })
    }
}

/// Unpacks LZF.
fn unpack(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut reader = Reader::new(packed);
    while !reader.is_empty() {
        let control = usize::from(reader.byte().ok()?);
        if control < 32 {
            out.extend_from_slice(reader.take(control + 1)?);
        } else {
            let mut count = control >> 5;
            if count == 7 {
                count += usize::from(reader.byte().ok()?);
            }
            let back = (control & 0x1f) << 8 | usize::from(reader.byte().ok()?);
            let from = out.len().checked_sub(back + 1)?;
            for at in from..from + count + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

fn number(value: i64) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn int24(bytes: [u8; 3]) -> i64 {
    i64::from(i32::from_le_bytes([0, bytes[0], bytes[1], bytes[2]]) >> 8)
}

/// The values of a listpack.
fn listpack(data: &[u8]) -> Outcome<Vec<Vec<u8>>> {
    let mut reader = Reader::new(data);
    let total = u32::from_le_bytes(reader.chunk()?);
    reader.chunk::<2>()?;
    if total as usize != data.len() {
        return Err(BAD.into());
    }
    let mut values = Vec::new();
    loop {
        let before = reader.rest.len();
        let value = match reader.byte()? {
            0xff => return if reader.is_empty() { Ok(values) } else { Err(BAD.into()) },
            first @ 0..0x80 => number(i64::from(first)),
            first @ 0x80..0xc0 => bad(reader.take(usize::from(first & 0x3f)))?.to_vec(),
            first @ 0xc0..0xe0 => {
                let bits = u16::from(first & 0x1f) << 8 | u16::from(reader.byte()?);
                number(i64::from((bits << 3) as i16 >> 3))
            }
            first @ 0xe0..0xf0 => {
                let length = usize::from(first & 0x0f) << 8 | usize::from(reader.byte()?);
                bad(reader.take(length))?.to_vec()
            }
            0xf0 => {
                let length = u32::from_le_bytes(reader.chunk()?) as usize;
                bad(reader.take(length))?.to_vec()
            }
            0xf1 => number(i64::from(i16::from_le_bytes(reader.chunk()?))),
            0xf2 => number(int24(reader.chunk()?)),
            0xf3 => number(i64::from(i32::from_le_bytes(reader.chunk()?))),
            0xf4 => number(i64::from_le_bytes(reader.chunk()?)),
            _ => return Err(BAD.into()),
        };
        values.push(value);
        let size = before - reader.rest.len();
        let back = match size {
            0..=127 => 1,
            128..16383 => 2,
            16383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        };
        bad(reader.take(back))?;
    }
}

/// The values of a ziplist.
fn ziplist(data: &[u8]) -> Outcome<Vec<Vec<u8>>> {
    let mut reader = Reader::new(data);
    let total = u32::from_le_bytes(reader.chunk()?);
    reader.chunk::<6>()?;
    if total as usize != data.len() {
        return Err(BAD.into());
    }
    let mut values = Vec::new();
    loop {
        match reader.byte()? {
            0xff => return if reader.is_empty() { Ok(values) } else { Err(BAD.into()) },
            0xfe => _ = reader.chunk::<4>()?,
            _ => {}
        }
        values.push(match reader.byte()? {
            first @ 0..0x40 => bad(reader.take(usize::from(first)))?.to_vec(),
            first @ 0x40..0x80 => {
                let length = usize::from(first & 0x3f) << 8 | usize::from(reader.byte()?);
                bad(reader.take(length))?.to_vec()
            }
            0x80 => {
                let length = u32::from_be_bytes(reader.chunk()?) as usize;
                bad(reader.take(length))?.to_vec()
            }
            0xc0 => number(i64::from(i16::from_le_bytes(reader.chunk()?))),
            0xd0 => number(i64::from(i32::from_le_bytes(reader.chunk()?))),
            0xe0 => number(i64::from_le_bytes(reader.chunk()?)),
            0xf0 => number(int24(reader.chunk()?)),
            0xfe => number(i64::from(i8::from_le_bytes(reader.chunk()?))),
            first @ 0xf1..=0xfd => number(i64::from(first & 0x0f) - 1),
            _ => return Err(BAD.into()),
        });
    }
}

fn intset(data: &[u8]) -> Outcome<Vec<Vec<u8>>> {
    let mut reader = Reader::new(data);
    let (width, count) = (u32::from_le_bytes(reader.chunk()?), u32::from_le_bytes(reader.chunk()?));
    if !matches!(width, 2 | 4 | 8) || reader.rest.len() as u64 != u64::from(width) * u64::from(count) {
        return Err(BAD.into());
    }
    let value = |bytes: &[u8]| match bytes {
        [a, b] => i64::from(i16::from_le_bytes([*a, *b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([*a, *b, *c, *d])),
        _ => i64::from_le_bytes(bytes.try_into().unwrap_or_default()),
    };
    Ok(reader.rest.chunks_exact(width as usize).map(|bytes| number(value(bytes))).collect())
}

/// What a payload holds.
#[derive(Debug, PartialEq)]
enum Value {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    SortedSet(BTreeMap<Vec<u8>, f64>),
    Stream(streams::Stream),
}

fn pairs(values: Vec<Vec<u8>>) -> Outcome<Vec<(Vec<u8>, Vec<u8>)>> {
    if values.is_empty() || values.len() % 2 == 1 {
        return Err(BAD.into());
    }
    let mut values = values.into_iter();
    Ok(std::iter::from_fn(|| values.next().zip(values.next())).collect())
}

fn hash(values: Vec<Vec<u8>>) -> Outcome<Value> {
    let pairs = pairs(values)?;
    let count = pairs.len();
    let map: BTreeMap<_, _> = pairs.into_iter().collect();
    if map.len() == count { Ok(Value::Hash(map)) } else { Err(BAD.into()) }
}

fn set(values: Vec<Vec<u8>>) -> Outcome<Value> {
    let count = values.len();
    let set: BTreeSet<_> = values.into_iter().collect();
    if set.len() == count && count > 0 { Ok(Value::Set(set)) } else { Err(BAD.into()) }
}

fn sorted(pairs: Vec<(Vec<u8>, f64)>) -> Outcome<Value> {
    let count = pairs.len();
    let map: BTreeMap<_, _> = pairs.into_iter().collect();
    let is_good = map.len() == count && count > 0 && map.values().all(|score| !score.is_nan());
    if is_good { Ok(Value::SortedSet(map)) } else { Err(BAD.into()) }
}

fn scored(values: Vec<Vec<u8>>) -> Outcome<Value> {
    let score = |text: Vec<u8>| bad(super::call::double(&text));
    let pairs = pairs(values)?.into_iter().map(|(member, text)| Ok((member, score(text)?)));
    sorted(pairs.collect::<Outcome<_>>()?)
}

/// A score as text behind its length, as older versions write it.
fn old_score(reader: &mut Reader<'_>) -> Outcome<f64> {
    match reader.byte()? {
        253 => Ok(f64::NAN),
        254 => Ok(f64::INFINITY),
        255 => Ok(f64::NEG_INFINITY),
        length => bad(reader.take(usize::from(length)).and_then(super::call::double)),
    }
}

fn read_value(body: &[u8]) -> Outcome<Value> {
    let mut reader = Reader::new(body);
    let kind = reader.byte()?;
    let texts = |reader: &mut Reader<'_>, each: usize| -> Outcome<Vec<Vec<u8>>> {
        let count = reader.count()?;
        (0..count * each).map(|_| reader.text()).collect()
    };
    let value = match kind {
        0 => Value::Text(reader.text()?),
        1 => Value::List(texts(&mut reader, 1)?),
        2 => set(texts(&mut reader, 1)?)?,
        4 => hash(texts(&mut reader, 2)?)?,
        3 | 5 => {
            let count = reader.count()?;
            let one = |_| {
                let member = reader.text()?;
                let score = if kind == 5 { f64::from_le_bytes(reader.chunk()?) } else { old_score(&mut reader)? };
                Ok((member, score))
            };
            sorted((0..count).map(one).collect::<Outcome<_>>()?)?
        }
        10 => Value::List(ziplist(&reader.text()?)?),
        11 => set(intset(&reader.text()?)?)?,
        12 => scored(ziplist(&reader.text()?)?)?,
        13 => hash(ziplist(&reader.text()?)?)?,
        14 => {
            let nodes = texts(&mut reader, 1)?;
            let lists = nodes.iter().map(|node| ziplist(node));
            Value::List(lists.collect::<Outcome<Vec<_>>>()?.concat())
        }
        16 => hash(listpack(&reader.text()?)?)?,
        17 => scored(listpack(&reader.text()?)?)?,
        18 => {
            let count = reader.count()?;
            let mut values = Vec::new();
            for _ in 0..count {
                match reader.length()? {
                    1 => values.push(reader.text()?),
                    2 => values.extend(listpack(&reader.text()?)?),
                    _ => return Err(BAD.into()),
                }
            }
            Value::List(values)
        }
        streams::OLD | streams::NOW => Value::Stream(streams::read(&mut reader, kind)?),
        _ => return Err(BAD.into()),
    };
    let is_empty = matches!(&value, Value::List(values) if values.is_empty());
    if is_empty || !reader.is_empty() { Err(BAD.into()) } else { Ok(value) }
}

fn write_value(call: &Call<'_>, entry: &Entry) -> Outcome<Vec<u8>> {
    let Some(head) = entry.head else {
        let mut out = vec![0];
        write_text(&mut out, entry.string()?);
        return Ok(out);
    };
    let kind = match head.kind {
        Kind::List => 1,
        Kind::Set => 2,
        Kind::Hash => 4,
        Kind::SortedSet => 5,
        Kind::Stream => return streams::write(call, &head),
    };
    let mut out = vec![kind];
    write_length(&mut out, usize::try_from(head.count).unwrap_or(usize::MAX));
    call.walk(&head, |reader| {
        if head.kind == Kind::List {
            reader.skip_checked();
        }
        write_text(&mut out, read_text(reader));
        match head.kind {
            Kind::Hash => write_text(&mut out, read_text(reader)),
            Kind::SortedSet => out.extend_from_slice(&reader.read_double().unwrap_or(0.0).to_le_bytes()),
            _ => {}
        }
        true
    })?;
    Ok(out)
}

pub(super) fn dump(call: &mut Call<'_>) -> Outcome {
    let Some(entry) = call.find(call.args[1])? else {
        call.reply().null();
        return Ok(());
    };
    let payload = seal(write_value(call, &entry)?);
    call.reply().bulk(&payload);
    Ok(())
}

/// Puts the elements of a value. Returns the head that has them.
fn build(call: &mut Call<'_>, value: &Value) -> Outcome<Head> {
    let (kind, count) = match value {
        Value::Text(_) => return Err(BAD.into()),
        Value::Stream(stream) => return streams::build(call, stream),
        Value::List(values) => (Kind::List, values.len()),
        Value::Set(values) => (Kind::Set, values.len()),
        Value::Hash(values) => (Kind::Hash, values.len()),
        Value::SortedSet(values) => (Kind::SortedSet, values.len()),
    };
    let head = Head { count: count as u64, ..call.new_head(kind) };
    // What each row has behind the number of its head.
    let rows: Vec<Vec<u8>> = match value {
        Value::Text(_) | Value::Stream(_) => Vec::new(),
        Value::List(values) => {
            let row = |(at, value): (usize, &Vec<u8>)| {
                let mut row = Vec::new();
                msgpack::encode_int(&mut row, at as i64);
                msgpack::encode_str(&mut row, value);
                row
            };
            values.iter().enumerate().map(row).collect()
        }
        Value::Set(values) => values.iter().map(|value| encoded(&[value])).collect(),
        Value::Hash(values) => values.iter().map(|(field, value)| encoded(&[field, value])).collect(),
        Value::SortedSet(values) => {
            let row = |(member, score): (&Vec<u8>, &f64)| {
                let mut row = encoded(&[member]);
                msgpack::encode_f64(&mut row, *score);
                row
            };
            values.iter().map(row).collect()
        }
    };
    call.build(&head, rows.len(), |call, at| {
        call.put_element(kind, |out| {
            msgpack::encode_array(out, super::keys::fields_of(kind));
            msgpack::encode_uint(out, head.id);
            out.extend_from_slice(&rows[at]);
        })
    })?;
    Ok(head)
}

fn encoded(texts: &[&[u8]]) -> Vec<u8> {
    let mut row = Vec::new();
    texts.iter().for_each(|text| msgpack::encode_str(&mut row, text));
    row
}

pub(super) fn restore(call: &mut Call<'_>) -> Outcome {
    let (key, args) = (call.args[1], call.args);
    let mut uses = (0, 0);
    let (mut replaces, mut is_absolute, mut at) = (false, false, 4);
    while at < args.len() {
        let has_value = at + 1 < args.len();
        if call.is_word(at, "replace") {
            replaces = true;
        } else if call.is_word(at, "absttl") {
            is_absolute = true;
        } else if has_value && (call.is_word(at, "idletime") || call.is_word(at, "freq")) {
            let number = call.integer(at + 1)?;
            if number < 0 || call.is_word(at, "freq") && number > 255 {
                let name = String::from_utf8_lossy(args[at]).to_uppercase();
                let bound = if name == "FREQ" { ">= 0 and <= 255" } else { ">= 0" };
                return Err(format!("ERR Invalid {name} value, must be {bound}").into());
            }
            match call.is_word(at, "freq") {
                true => uses.1 = number,
                false => uses.0 = number,
            }
            at += 1;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    if !replaces && call.find(key)?.is_some() {
        return Err("BUSYKEY Target key name already exists.".into());
    }
    let ttl = integer(args[2]).ok_or(super::failure::NOT_INTEGER)?;
    let ttl = u64::try_from(ttl).map_err(|_| "ERR Invalid TTL value, must be >= 0")?;
    let value = read_value(unseal(args[3])?)?;
    let expires = match (ttl, is_absolute) {
        (0, _) => None,
        (ttl, true) => Some(ttl),
        (ttl, false) => Some(call.now_ms().saturating_add(ttl)),
    };
    if expires.is_some_and(|expires| expires <= call.now_ms()) {
        call.remove(key)?;
        call.reply().ok();
        return Ok(());
    }
    if let Value::Text(text) = &value {
        let old = call.find(key)?;
        call.put_string(key, text, expires, old.as_ref())?;
        note_uses(call, key, uses);
        call.reply().ok();
        return Ok(());
    }
    let head = build(call, &value)?;
    call.atomically(|call| {
        let taken = call.find(key)?.and_then(|entry| entry.head);
        call.put_entry_head(key, &head, expires)?;
        call.left.borrow_mut().extend(taken);
        Ok(())
    })?;
    note_uses(call, key, uses);
    call.reply().ok();
    Ok(())
}

/// Says when a key was used last, and how much, where that is noted.
fn note_uses(call: &Call<'_>, key: &[u8], (idle_s, count): (i64, i64)) {
    if let Some(uses) = call.shared.uses.borrow_mut().as_mut() {
        let (idle_s, count) = (u64::try_from(idle_s).unwrap_or(0), u8::try_from(count).unwrap_or(0));
        uses.set(call.db, key, call.database.now_ms(), idle_s, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn payloads_of_redis_are_read() {
        // Of Redis 7.0.15: SET a 1, RPUSH l 1 2, HSET h f v.
        let cases: [(&[u8], Value); 3] = [
            (b"\x00\xc0\x01", Value::Text(b"1".to_vec())),
            (
                b"\x12\x01\x02\x0b\x0b\x00\x00\x00\x02\x00\x01\x01\x02\x01\xff",
                Value::List(vec![b"1".to_vec(), b"2".to_vec()]),
            ),
            (
                b"\x10\x0d\x0d\x00\x00\x00\x02\x00\x81f\x02\x81v\x02\xff",
                Value::Hash(BTreeMap::from([(b"f".to_vec(), b"v".to_vec())])),
            ),
        ];
        for (body, value) in cases {
            assert_eq!(read_value(body).ok(), Some(value), "{body:?}");
            for end in 0..body.len() {
                assert!(read_value(&body[..end]).is_err(), "{body:?} cut at {end}");
            }
            let sealed = seal(body.to_vec());
            assert_eq!(unseal(&sealed).ok(), Some(body));
            for at in 0..sealed.len() {
                let mut damaged = sealed.clone();
                damaged[at] ^= 1;
                assert!(unseal(&damaged).is_err());
            }
        }
    }

    #[test]
    fn packed_text_is_unpacked_within_its_bound() {
        // "aaaaaaaaaa": a literal and a copy of what was just written.
        assert_eq!(unpack(&[0, b'a', 0xe0, 0, 0], 10).as_deref(), Some(&b"aaaaaaaaaa"[..]));
        assert_eq!(unpack(&[0, b'a', 0xe0, 0, 0], 9), None);
        assert_eq!(unpack(&[0x20, 5], 10), None);
    }

    #[test]
    fn all_packed_texts_of_a_payload_are_bounded_together() {
        let packed = [0, b'a', 0xe0, 0, 0];
        let mut text = vec![0xc3, packed.len() as u8, 10];
        text.extend_from_slice(&packed);
        let twice = [text.clone(), text].concat();
        let mut reader = Reader { rest: &twice, room: 19 };
        assert_eq!(reader.text().ok().as_deref(), Some(&b"aaaaaaaaaa"[..]));
        assert!(reader.text().is_err());
        assert_eq!(Reader::new(&twice).room, VALUE_BYTES_MAX);
    }
}
