//! Blocks: entries that are read, checked and kept in memory together.
//!
//! A block lies on disk behind a checksum, packed if that saves an eighth. Its entries are followed by their offsets, so that a key is
//! found by halving and nothing has to be unpacked or copied to look at an entry. Layout: docs/formats/lsm.md.
//!
//! Keys are stored whole. To cut the bytes that neighbours share would save what packing saves anyway, and each look would have to put
//! a key together first.

use super::entry::{Entry, EntryKind};

/// Checksum and codec before what is stored of a block.
pub(crate) const HEADER_BYTES: usize = 5;
/// Blocks shorter than this have offsets of two bytes.
const NARROW_MAX: usize = 1 << 16;
/// Marks offsets of four bytes, beside the count.
const WIDE: u32 = 1 << 31;
const RAW: u8 = 0;
const LZ4: u8 = 1;
/// Least bytes that LZ4 has for each 255 unpacked ones.
const LZ4_RATIO_MAX: usize = 255;
/// After this many blocks in a row that were not worth packing, only some are tried.
const HOPELESS_FROM: u32 = 4;
const HOPELESS_STEP: u32 = 64;

/// A block in memory: decoded and checked.
#[derive(Debug)]
pub struct Block {
    bytes: Box<[u8]>,
    count: u32,
    /// Where the offsets begin.
    offsets_at: u32,
    is_wide: bool,
}

/// Where an entry of a block lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    key_at: u32,
    value_at: u32,
    end: u32,
    kind: EntryKind,
}

impl Block {
    /// Checks and unpacks what is stored. Any bytes are allowed. Errors: what is wrong with them.
    pub fn decode(stored: &[u8]) -> Result<Block, String> {
        let Some((checksum, checked)) = stored.split_first_chunk::<4>() else {
            return Err("a block of less than 5 bytes".to_string());
        };
        let (expected, found) = (u32::from_le_bytes(*checksum), crc32c::crc32c(checked));
        #[cfg(feature = "planted-bugs")]
        let expected = match runtime::planted::is_planted(runtime::planted::Plant::IgnoreBlockChecksum) {
            true => found,
            false => expected,
        };
        if expected != found {
            return Err(format!("the checksum of the block is {found:08x}, expected {expected:08x}"));
        }
        let bytes: Box<[u8]> = match checked.split_first() {
            Some((&RAW, content)) => content.into(),
            Some((&LZ4, packed)) => unpack(packed)?,
            Some((codec, _)) => return Err(format!("unknown codec {codec} of a block")),
            None => return Err("a block of less than 5 bytes".to_string()),
        };
        Block::check(bytes).ok_or_else(|| "entries of the block do not fit into it".to_string())
    }

    /// Makes sure that every entry lies within the block.
    fn check(bytes: Box<[u8]>) -> Option<Block> {
        let (content, count) = bytes.split_last_chunk::<4>()?;
        let count = u32::from_le_bytes(*count);
        let (count, is_wide) = (count & !WIDE, count & WIDE != 0);
        let width = if is_wide { 4 } else { 2 };
        let offsets_at = content.len().checked_sub((count as usize).checked_mul(width)?)?;
        let block = Block { offsets_at: u32::try_from(offsets_at).ok()?, bytes, count, is_wide };
        // Each entry begins where the one before ends, at the latest there its key ends.
        let mut end = offsets_at;
        for at in (0..count as usize).rev() {
            let start = block.offset(at);
            let (key_at, key_length, kind) = read_header(block.bytes.get(start..end)?)?;
            EntryKind::from_number(kind)?;
            if key_at.checked_add(key_length)? > end - start {
                return None;
            }
            end = start;
        }
        (end == 0).then_some(block)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> usize {
        size_of::<Block>() + self.bytes.len()
    }

    /// Bytes of entries and offsets.
    pub(crate) fn content_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// An entry, by its number below `len`.
    #[inline]
    pub fn entry(&self, at: usize) -> Entry<'_> {
        self.entry_at(self.place(at))
    }

    /// Where an entry lies, by its number below `len`: for those who look at it several times.
    #[inline]
    pub(crate) fn place(&self, at: usize) -> Place {
        let start = self.offset(at);
        let end = if at + 1 < self.len() { self.offset(at + 1) } else { self.offsets_at as usize };
        let header = read_header(&self.bytes[start..end]);
        let (key_at, key_length, kind) = header.expect("it was checked when the block was decoded");
        let kind = EntryKind::from_number(kind).expect("it was checked when the block was decoded");
        let key_at = start + key_at;
        Place { key_at: key_at as u32, value_at: (key_at + key_length) as u32, end: end as u32, kind }
    }

    /// The entry at a place of this block.
    #[inline]
    pub(crate) fn entry_at(&self, place: Place) -> Entry<'_> {
        let bytes = &self.bytes[place.key_at as usize..place.end as usize];
        let (key, value) = bytes.split_at((place.value_at - place.key_at) as usize);
        Entry { key, kind: place.kind, value }
    }

    /// The number of the first entry whose key is not below `key`; `len` if there is none.
    #[inline]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    #[inline]
    fn key(&self, at: usize) -> &[u8] {
        let bytes = &self.bytes[self.offset(at)..];
        let (key_at, key_length, _) = read_header(bytes).expect("it was checked when the block was decoded");
        &bytes[key_at..key_at + key_length]
    }

    #[inline]
    fn offset(&self, at: usize) -> usize {
        let offsets = &self.bytes[self.offsets_at as usize..];
        if self.is_wide {
            u32::from_le_bytes(offsets.as_chunks().0[at]) as usize
        } else {
            usize::from(u16::from_le_bytes(offsets.as_chunks().0[at]))
        }
    }
}

fn unpack(packed: &[u8]) -> Result<Box<[u8]>, String> {
    let malformed = || "a packed block does not unpack".to_string();
    let (length, packed) = packed.split_first_chunk::<4>().ok_or_else(malformed)?;
    let length = u32::from_le_bytes(*length) as usize;
    // A length that lies costs no memory.
    if length / LZ4_RATIO_MAX > packed.len() {
        return Err(malformed());
    }
    let mut bytes = vec![0; length].into_boxed_slice();
    match lz4_flex::block::decompress_into(packed, &mut bytes) {
        Ok(found) if found == length => Ok(bytes),
        _ => Err(malformed()),
    }
}

/// The header of an entry: where its key begins, the key's length, the kind.
#[inline]
fn read_header(bytes: &[u8]) -> Option<(usize, usize, usize)> {
    let first = usize::from(*bytes.first()?);
    if first < 0x80 {
        return Some((1, first >> 2, first & 3));
    }
    let mut word = first & 0x7f;
    for at in 1..5 {
        let byte = usize::from(*bytes.get(at)?);
        word |= (byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((at + 1, word >> 2, word & 3));
        }
    }
    None
}

/// Puts blocks together.
pub(crate) struct BlockBuilder {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    packed: Vec<u8>,
    /// Blocks in a row that were not worth packing.
    hopeless: u32,
}

impl BlockBuilder {
    pub(crate) fn new() -> Self {
        BlockBuilder { bytes: Vec::new(), offsets: Vec::new(), packed: Vec::new(), hopeless: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Bytes that the block takes on disk at most if an entry with so long a key and value comes to it.
    pub(crate) fn bytes_with(&self, entry: &Entry<'_>) -> usize {
        // The usual header is one byte, and so is the mistake where it is two.
        let bytes = self.bytes.len() + 1 + entry.key.len() + entry.value.len();
        let width = if bytes < NARROW_MAX { 2 } else { 4 };
        HEADER_BYTES + bytes + width * (self.offsets.len() + 1) + 4
    }

    /// Adds an entry; keys ascend. Errors: it is too long for a block.
    #[inline]
    pub(crate) fn add(&mut self, entry: &Entry<'_>) -> Result<(), ()> {
        if entry.key.len() + entry.value.len() + self.bytes.len() >= WIDE as usize >> 2 {
            return Err(());
        }
        self.offsets.push(self.bytes.len() as u32);
        let mut word = entry.key.len() << 2 | entry.kind as usize;
        while word >= 0x80 {
            self.bytes.push(word as u8 | 0x80);
            word >>= 7;
        }
        self.bytes.push(word as u8);
        self.bytes.extend_from_slice(entry.key);
        self.bytes.extend_from_slice(entry.value);
        Ok(())
    }

    /// Appends the block as it is stored and begins the next one. Returns bytes before packing.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> usize {
        let is_wide = self.bytes.len() >= NARROW_MAX;
        for &offset in &self.offsets {
            let bytes = offset.to_le_bytes();
            self.bytes.extend_from_slice(if is_wide { &bytes } else { &bytes[..2] });
        }
        let count = self.offsets.len() as u32 | if is_wide { WIDE } else { 0 };
        self.bytes.extend_from_slice(&count.to_le_bytes());
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        if let Some(length) = self.pack() {
            out.push(LZ4);
            out.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(&self.packed[..length]);
        } else {
            out.push(RAW);
            out.extend_from_slice(&self.bytes);
        }
        let checksum = crc32c::crc32c(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        let length = self.bytes.len();
        self.bytes.clear();
        self.offsets.clear();
        length
    }

    /// Packs the block. `None` if it is not worth it.
    fn pack(&mut self) -> Option<usize> {
        if self.hopeless >= HOPELESS_FROM && !self.hopeless.is_multiple_of(HOPELESS_STEP) {
            self.hopeless += 1;
            return None;
        }
        let length_max = lz4_flex::block::get_maximum_output_size(self.bytes.len());
        if self.packed.len() < length_max {
            self.packed.resize(length_max, 0);
        }
        let length = lz4_flex::block::compress_into(&self.bytes, &mut self.packed).ok();
        let length = length.filter(|length| *length < self.bytes.len() - self.bytes.len() / 8);
        self.hopeless = if length.is_some() { 0 } else { self.hopeless + 1 };
        length
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn stored(entries: &[(Vec<u8>, EntryKind, Vec<u8>)]) -> Vec<u8> {
        let mut builder = BlockBuilder::new();
        for (key, kind, value) in entries {
            builder.add(&Entry { key, kind: *kind, value }).unwrap();
        }
        let mut out = Vec::new();
        builder.finish(&mut out);
        out
    }

    fn kind(number: u8) -> EntryKind {
        EntryKind::from_number(usize::from(number % 3)).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_stored_is_found(
            entries in proptest::collection::btree_map(
                proptest::collection::vec(0..4u8, 0..60),
                (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..30), 0..20usize),
                0..50,
            ),
            sought in proptest::collection::vec(0..4u8, 0..60),
        ) {
            let entries: BTreeMap<Vec<u8>, (EntryKind, Vec<u8>)> =
                entries.into_iter().map(|(key, (of, value, times))| (key, (kind(of), value.repeat(times)))).collect();
            let list: Vec<_> = entries.iter().map(|(key, (kind, value))| (key.clone(), *kind, value.clone())).collect();
            let block = Block::decode(&stored(&list)).unwrap();
            prop_assert_eq!(block.len(), list.len());
            for (at, (key, kind, value)) in list.iter().enumerate() {
                prop_assert_eq!(block.entry(at), Entry { key, kind: *kind, value });
                prop_assert_eq!(block.lower_bound(key), at);
            }
            prop_assert_eq!(block.lower_bound(&sought), entries.range(..sought.clone()).count());
        }

        #[test]
        fn any_content_is_a_block_or_refused(content in proptest::collection::vec(any::<u8>(), 0..80), codec in 0..3u8) {
            let mut stored = vec![0; 4];
            stored.push(codec);
            stored.extend_from_slice(&content);
            let checksum = crc32c::crc32c(&stored[4..]);
            stored[..4].copy_from_slice(&checksum.to_le_bytes());
            if let Ok(block) = Block::decode(&stored) {
                for at in 0..block.len() {
                    block.entry(at);
                }
                block.lower_bound(&content);
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for filler in [0u8, 1] {
            let value: Vec<u8> = (0..200u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8 * filler).collect();
            let good = stored(&[(vec![1], EntryKind::Put, value), (vec![2], EntryKind::Delete, vec![])]);
            assert_eq!(good[4], 1 - filler, "one is packed, the other is not");
            for bit in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(Block::decode(&bad).is_err(), "bit {bit}");
            }
            for length in 0..good.len() {
                assert!(Block::decode(&good[..length]).is_err());
            }
        }
    }

    #[test]
    fn entries_beyond_64_kib_are_reached() {
        let list: Vec<_> = (0..5u8).map(|at| (vec![at], EntryKind::Put, vec![at; 30_000])).collect();
        let block = Block::decode(&stored(&list)).unwrap();
        for (at, (key, kind, value)) in list.iter().enumerate() {
            assert_eq!(block.entry(at), Entry { key, kind: *kind, value });
        }
    }
}
