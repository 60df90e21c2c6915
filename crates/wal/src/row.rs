//! Rows of logs and snapshots: a header map and a body map.

use tuple::Lsn;
use tuple::msgpack::{Kind, MsgpackError, Reader};
use wire::key;

/// Set on the last row of a transaction of several.
pub(crate) const FLAG_COMMIT: u8 = 1;

/// What a row's header says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowHeader {
    /// Request type: 2 insert, 3 replace, 5 delete ... Types that are not known are kept.
    pub kind: u16,
    /// The instance that made the row; 0 if it says none.
    pub replica_id: u32,
    /// 1 for rows that stay on their instance.
    pub group_id: u32,
    /// Number among the rows of its replica.
    pub lsn: Lsn,
    /// Seconds since 1970.
    pub timestamp: f64,
    /// Number of the transaction: the lsn of its first row.
    pub tsn: Lsn,
    /// True on the last row of a transaction.
    pub is_commit: bool,
}

/// A row as read.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its header.
    pub header: RowHeader,
    /// Its body, a checked map; empty if there is none.
    pub body: &'a [u8],
}

/// Appends a row. `is_single` transactions leave out what only larger ones need.
pub(crate) fn encode(out: &mut Vec<u8>, header: &RowHeader, is_single: bool, body: &[u8]) {
    let has_replica = header.replica_id != 0 && header.group_id == 0;
    let count = 1
        + u32::from(has_replica)
        + u32::from(header.group_id != 0)
        + u32::from(header.lsn != 0)
        + 1
        + u32::from(!is_single) * (1 + u32::from(header.is_commit));
    // Made beside the log and copied once: most of it are single bytes.
    let mut head = Head { bytes: [0; HEAD_BYTES_MAX], length: 0 };
    head.byte(0x80 | count as u8);
    let mut pair = |key: u64, value: u64| {
        head.uint(key);
        head.uint(value);
    };
    pair(key::REQUEST_TYPE, u64::from(header.kind));
    if has_replica {
        pair(key::REPLICA_ID, u64::from(header.replica_id));
    }
    if header.group_id != 0 {
        pair(key::GROUP_ID, u64::from(header.group_id));
    }
    if header.lsn != 0 {
        pair(key::LSN, header.lsn.0 as u64);
    }
    head.uint(key::TIMESTAMP);
    head.byte(0xcb);
    head.put(&header.timestamp.to_be_bytes());
    if !is_single {
        head.uint(key::TSN);
        head.uint(header.lsn.0.abs_diff(header.tsn.0));
        if header.is_commit {
            head.uint(key::FLAGS);
            head.uint(u64::from(FLAG_COMMIT));
        }
    }
    out.extend_from_slice(&head.bytes[..head.length]);
    out.extend_from_slice(body);
}

/// A map of at most seven pairs, of which one is a number of eight bytes and the others are at most nine and their key.
const HEAD_BYTES_MAX: usize = 1 + 7 * 10;

/// The header of a row being made.
struct Head {
    bytes: [u8; HEAD_BYTES_MAX],
    length: usize,
}

impl Head {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.bytes[self.length..self.length + N].copy_from_slice(bytes);
        self.length += N;
    }

    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        self.put(&[byte]);
    }

    /// As `msgpack::encode_uint`.
    #[inline(always)]
    fn uint(&mut self, value: u64) {
        match value {
            0..=0x7f => self.byte(value as u8),
            0x80..=0xff => self.put(&[0xcc, value as u8]),
            0x100..=0xffff => {
                self.byte(0xcd);
                self.put(&(value as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.byte(0xce);
                self.put(&(value as u32).to_be_bytes());
            }
            _ => {
                self.byte(0xcf);
                self.put(&value.to_be_bytes());
            }
        }
    }
}

/// Reads the next row of a block.
pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Row<'a>, MsgpackError> {
    let mut header = RowHeader::default();
    let mut tsn = None;
    let mut flags = 0;
    for _ in 0..reader.read_map()? {
        let key = reader.read_uint()?;
        match key {
            key::REQUEST_TYPE => header.kind = reader.read_uint()?.min(u64::from(u16::MAX)) as u16,
            key::REPLICA_ID => header.replica_id = reader.read_uint()?.min(u64::from(u32::MAX)) as u32,
            key::GROUP_ID => header.group_id = reader.read_uint()?.min(u64::from(u32::MAX)) as u32,
            key::LSN => header.lsn = Lsn(reader.read_int()?),
            key::TIMESTAMP => header.timestamp = reader.read_double()?,
            key::TSN => tsn = Some(reader.read_int()?),
            key::FLAGS => flags = reader.read_uint()?,
            // Stream ids and keys of later versions say nothing that replaying needs.
            _ => {
                reader.read_value()?;
            }
        }
    }
    header.tsn = Lsn(header.lsn.0 - tsn.unwrap_or(0));
    header.is_commit = tsn.is_none() || flags & u64::from(FLAG_COMMIT) != 0;
    let has_body = !reader.is_empty() && header.kind != 12 && reader.kind()? == Kind::Map;
    let body = if has_body { read_body(reader)? } else { &[] };
    Ok(Row { header, body })
}

/// Reads a map, and checks it value by value: large flat ones, which rows of spaces are, are checked fastest alone.
fn read_body<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], MsgpackError> {
    let body = reader.rest();
    for _ in 0..reader.read_map()? {
        reader.read_value()?;
        reader.read_value()?;
    }
    Ok(&body[..body.len() - reader.rest().len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_written() {
        let header = RowHeader {
            kind: 2,
            replica_id: 1,
            group_id: 0,
            lsn: Lsn(12),
            timestamp: 1.5,
            tsn: Lsn(11),
            is_commit: true,
        };
        let body = [0x81, 0x10, 0x05];
        let mut out = Vec::new();
        encode(&mut out, &header, false, &body);
        let single = RowHeader { lsn: Lsn(13), tsn: Lsn(13), ..header };
        encode(&mut out, &single, true, &body);
        let mut reader = Reader::new(&out);
        let first = decode(&mut reader).expect("a row");
        assert_eq!((first.header, first.body), (header, &body[..]));
        assert_eq!(decode(&mut reader).expect("a row").header, single);
        assert!(reader.is_empty());
    }
}
