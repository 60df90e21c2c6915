//! The bytes of a manifest: a header, then records, each of them confirmed.
//!
//! ```text
//! header   "LYCOSMAN"  version u32  number u64  checksum u32
//! record   length u32  checksum u32  items ...
//! mark     "LYCODONE"  offset of the record u64  checksum of the record u32  checksum u32
//! ```
//!
//! A checksum alone cannot tell a record that a crash tore, which nobody was promised, from one that was promised and is damaged now. So a
//! record is synced, then the mark is written and synced, and then it counts: bad bytes without a good mark behind them are torn, all
//! others are damage.

use super::state::{Item, State};
use crate::lsm::cursor::Cursor;
use crate::lsm::error::LsmError;
use std::path::Path;

const MAGIC: &[u8; 8] = b"LYCOSMAN";
/// The version that is written. Version 1 does not say whose rows it names.
const VERSION: u32 = 2;
const VERSION_MIN: u32 = 1;
pub(super) const HEADER_BYTES: usize = 24;
const MARK_MAGIC: &[u8; 8] = b"LYCODONE";
pub(super) const MARK_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 8;
/// Longest record. A mark where a record is expected has a length above.
const LENGTH_MAX: usize = 1 << 30;
const _: () =
    assert!(u32::from_le_bytes([MARK_MAGIC[0], MARK_MAGIC[1], MARK_MAGIC[2], MARK_MAGIC[3]]) as usize > LENGTH_MAX);

/// Appends what a manifest begins with.
pub(super) fn encode_header(number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    let checksum = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

fn record_checksum(offset: u64, length: &[u8], items: &[u8]) -> u32 {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&offset.to_le_bytes()), length);
    crc32c::crc32c_append(checksum, items)
}

/// Appends a record that will lie at `offset` of its file. Returns its checksum; `None` if it is too long.
pub(super) fn encode_record(items: &[Item], offset: u64, out: &mut Vec<u8>) -> Option<u32> {
    let start = out.len();
    out.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
    items.iter().for_each(|item| item.encode(out));
    let length = out.len() - start - RECORD_HEADER_BYTES;
    if length > LENGTH_MAX {
        return None;
    }
    let (header, content) = out[start..].split_at_mut(RECORD_HEADER_BYTES);
    header[..4].copy_from_slice(&(length as u32).to_le_bytes());
    let checksum = record_checksum(offset, &header[..4], content);
    header[4..].copy_from_slice(&checksum.to_le_bytes());
    Some(checksum)
}

/// Appends the mark of the record at `offset`.
pub(super) fn encode_mark(offset: u64, checksum: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(MARK_MAGIC);
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
    let checksum = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// The record that a mark at the start of the bytes is of: its offset and checksum.
fn decode_mark(bytes: &[u8]) -> Option<(u64, u32)> {
    let (content, checksum) = bytes.get(..MARK_BYTES)?.split_last_chunk::<4>()?;
    let mut cursor = Cursor::new(content.strip_prefix(MARK_MAGIC)?);
    (crc32c::crc32c(content) == u32::from_le_bytes(*checksum)).then_some((cursor.u64()?, cursor.u32()?))
}

/// Bytes behind the last good record, or mark, that a crash left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Torn {
    pub(super) bytes: u64,
    pub(super) what: String,
}

/// What a manifest was found to say.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    pub(super) state: State,
    pub(super) records: u64,
    /// Bytes up to the end of the last good record or mark.
    pub(super) end: u64,
    pub(super) torn: Option<Torn>,
}

/// Reads the bytes of a manifest.
pub(super) fn read(path: &Path, number: u64, bytes: &[u8]) -> Result<Contents, LsmError> {
    check_header(bytes, number).map_err(|what| LsmError::corrupt(path, 0, what))?;
    let mut found = Contents { state: State::default(), records: 0, end: HEADER_BYTES as u64, torn: None };
    // The last record, if it has no mark yet.
    let mut unmarked = None;
    while (found.end as usize) < bytes.len() {
        let rest = &bytes[found.end as usize..];
        let at = found.end;
        if unmarked.is_some() && decode_mark(rest) == unmarked {
            unmarked = None;
            found.end += MARK_BYTES as u64;
            continue;
        }
        let (checksum, items) = match decode_record(rest, at) {
            Ok(record) => record,
            Err(what) if is_marked_behind(bytes, at) => return Err(LsmError::corrupt(path, at, what)),
            Err(what) => {
                found.torn = Some(Torn { bytes: rest.len() as u64, what: what.to_string() });
                break;
            }
        };
        let mut cursor = Cursor::new(items);
        while !cursor.is_empty() {
            let item_at = at + (RECORD_HEADER_BYTES + items.len() - cursor.rest().len()) as u64;
            let item = Item::decode(&mut cursor).ok_or_else(|| "this is no edit of a manifest".to_string());
            let applied = item.and_then(|item| found.state.apply(&item));
            applied.map_err(|what| LsmError::corrupt(path, item_at, what))?;
        }
        found.records += 1;
        found.end += (RECORD_HEADER_BYTES + items.len()) as u64;
        unmarked = Some((at, checksum));
    }
    Ok(found)
}

/// What the records say that lie before the first damage; `None` if the header is damaged.
pub(super) fn read_prefix(path: &Path, number: u64, bytes: &[u8]) -> Option<Contents> {
    let mut end = bytes.len();
    loop {
        match read(path, number, &bytes[..end]) {
            Ok(contents) => return Some(contents),
            // Cut there, the record that the damage is in counts as torn.
            Err(LsmError::Corrupt { offset, .. }) if offset >= HEADER_BYTES as u64 && offset < end as u64 => {
                end = offset as usize;
            }
            Err(_) => return None,
        }
    }
}

fn check_header(bytes: &[u8], number: u64) -> Result<(), String> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or("too short for a manifest")?;
    let (content, checksum) = header.split_last_chunk::<4>().ok_or("too short for a manifest")?;
    let mut cursor = Cursor::new(content.strip_prefix(MAGIC).ok_or("this is no manifest")?);
    if crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
        return Err("the checksum of the header is wrong".to_string());
    }
    let (version, found) = (cursor.u32().unwrap_or(0), cursor.u64().unwrap_or(0));
    if !(VERSION_MIN..=VERSION).contains(&version) {
        return Err(format!("version {version} of the format, this server knows {VERSION_MIN} to {VERSION}"));
    }
    if found != number { Err(format!("this is manifest {found}")) } else { Ok(()) }
}

/// The checksum and the items of the record that bytes at `offset` begin with. Errors: what is wrong.
fn decode_record(bytes: &[u8], offset: u64) -> Result<(u32, &[u8]), &'static str> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or("a record is cut off")?;
    let (checksum, rest) = rest.split_first_chunk::<4>().ok_or("a record is cut off")?;
    let count = u32::from_le_bytes(*length) as usize;
    if count == 0 || count > LENGTH_MAX {
        return Err("neither a record nor the mark of one");
    }
    let items = rest.get(..count).ok_or("a record is cut off")?;
    let checksum = u32::from_le_bytes(*checksum);
    if record_checksum(offset, length, items) != checksum {
        return Err("the checksum of a record is wrong");
    }
    Ok((checksum, items))
}

/// True if a good mark lies behind `at` that is of a record at `at` or behind.
fn is_marked_behind(bytes: &[u8], at: u64) -> bool {
    let behind = bytes.windows(MARK_BYTES).enumerate().skip(at as usize);
    behind
        .filter(|(_, window)| window.starts_with(MARK_MAGIC))
        .any(|(place, window)| decode_mark(window).is_some_and(|(record, _)| (at..place as u64).contains(&record)))
}
