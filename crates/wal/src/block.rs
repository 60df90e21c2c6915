//! Blocks: how rows lie in a file, byte by byte. See docs/formats/xlog.md.
//!
//! ```text
//! fixheader, 19 bytes: magic 4 | msgpack length | msgpack 0 | msgpack crc | msgpack string as padding
//! content: rows as they are (magic ..ab), or a zstd stream of rows (magic ..ba)
//! ```
//!
//! Groups of the synced log use the zstd magic with a *stored* frame (no compression) followed by a skippable frame that fills the
//! block to a multiple of 4 KiB, so that a group can be overwritten in place with direct I/O and Tarantool can read it.
//! The skippable frame tells the group's number and how far the file was durable when the group was written; recovery
//! uses it to tell a torn end from damage.

use runtime::{AlignedBuffer, PAGE_BYTES};
use std::cell::RefCell;
use std::io::Read;
use tuple::msgpack::{self, Reader};

pub(crate) const PLAIN_MAGIC: [u8; 4] = [0xd5, 0xba, 0x0b, 0xab];
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0xd5, 0xba, 0x0b, 0xba];
pub(crate) const EOF_MAGIC: [u8; 4] = [0xd5, 0x10, 0xad, 0xed];
pub(crate) const FIXHEADER_BYTES: usize = 19;
/// Content of one block at most: more is a length that lies.
pub(crate) const CONTENT_MAX: usize = 512 << 20;

/// How much larger than its content a block is taken to be, and at least.
const UNPACKED_RATIO_GUESS: usize = 8;
const UNPACKED_GUESS_MIN: usize = 256 << 10;

const FRAME_HEADER: [u8; 5] = [0x28, 0xb5, 0x2f, 0xfd, 0xa0];
const RAW_BLOCK_MAX: usize = 128 << 10;
const SKIPPABLE_MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
/// Marks our note in a skippable frame.
const NOTE_MAGIC: [u8; 8] = *b"LYCOSA01";
/// Ends our note. Without it a write that was torn within the note could differ from the prepared page in one bit, and would be taken for
/// a whole one with a flipped bit.
const NOTE_END: [u8; 8] = *b"10ASOCYL";
const NOTE_BYTES: usize = 32;
const SKIPPABLE_OVERHEAD: usize = 8;

/// What a group says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Counts groups of a file from 1.
    pub number: u64,
    /// The file was durable up to here when the group was written.
    pub durable_offset: u64,
}

/// CRC-32C as Tarantool computes it: initial value 0 and no final inversion.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!0, bytes)
}

/// Writes a fixheader for `content` into `out`, which has 19 bytes.
pub(crate) fn write_fixheader(out: &mut [u8], magic: [u8; 4], content: &[u8]) {
    let is_compressed = magic == ZSTD_MAGIC;
    let header = Fixheader { is_compressed, length: content.len() as u64, checksum: checksum(content) };
    out.copy_from_slice(&header.encode());
}

/// Number of pages that a group with this many bytes of rows takes.
pub(crate) fn group_pages(row_bytes: usize) -> usize {
    let raw_blocks = row_bytes.div_ceil(RAW_BLOCK_MAX).max(1);
    let frame = FRAME_HEADER.len() + 4 + 3 * raw_blocks + row_bytes;
    (FIXHEADER_BYTES + frame + SKIPPABLE_OVERHEAD + NOTE_BYTES).div_ceil(PAGE_BYTES)
}

/// Makes a group: whole pages with the rows stored and the rest skippable.
pub(crate) fn encode_group(rows: &[u8], note: Note, out: &mut AlignedBuffer) {
    let pages = group_pages(rows.len());
    out.resize(pages);
    let bytes = out.bytes_mut();
    let mut at = FIXHEADER_BYTES;
    let mut put = |part: &[u8]| {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    };
    put(&FRAME_HEADER);
    put(&(rows.len() as u32).to_le_bytes());
    let mut chunks = rows.chunks(RAW_BLOCK_MAX).peekable();
    if chunks.peek().is_none() {
        put(&[1, 0, 0]);
    }
    while let Some(chunk) = chunks.next() {
        let header = (chunk.len() as u32) << 3 | u32::from(chunks.peek().is_none());
        put(&header.to_le_bytes()[..3]);
        put(chunk);
    }
    let rest = pages * PAGE_BYTES - at - SKIPPABLE_OVERHEAD;
    put_skippable(&mut bytes[at..], rest, Some(note));
    finish_block(bytes);
    debug_assert!(is_readable(bytes, rows, note), "a group is read back as it was made");
}

/// True if a group says what it was made of.
fn is_readable(group: &[u8], rows: &[u8], note: Note) -> bool {
    let content = &group[FIXHEADER_BYTES..];
    let mut unpacked = Vec::new();
    let is_block = read_fixheader(group)
        .is_ok_and(|header| header.length == content.len() as u64 && header.is_checksum_of(content));
    is_block && find_note(content) == Some(note) && decompress(content, &mut unpacked).is_ok() && unpacked == rows
}

/// Fills `out` with one block that holds nothing.
pub(crate) fn encode_filler(out: &mut [u8]) {
    let rest = out.len() - FIXHEADER_BYTES - SKIPPABLE_OVERHEAD;
    put_skippable(&mut out[FIXHEADER_BYTES..], rest, None);
    finish_block(out);
}

fn put_skippable(out: &mut [u8], payload: usize, note: Option<Note>) {
    out[..4].copy_from_slice(&SKIPPABLE_MAGIC);
    out[4..8].copy_from_slice(&(payload as u32).to_le_bytes());
    out[8..].fill(0);
    if let Some(note) = note {
        out[8..16].copy_from_slice(&NOTE_MAGIC);
        out[16..24].copy_from_slice(&note.number.to_le_bytes());
        out[24..32].copy_from_slice(&note.durable_offset.to_le_bytes());
        out[32..40].copy_from_slice(&NOTE_END);
    }
}

fn finish_block(bytes: &mut [u8]) {
    let (header, content) = bytes.split_at_mut(FIXHEADER_BYTES);
    write_fixheader(header, ZSTD_MAGIC, content);
}

/// Appends a block with rows as they are.
pub(crate) fn encode_plain(rows: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + FIXHEADER_BYTES, 0);
    write_fixheader(&mut out[start..], PLAIN_MAGIC, rows);
    out.extend_from_slice(rows);
}

/// Appends a compressed block.
pub(crate) fn encode_compressed(
    rows: &[u8],
    compressor: &mut zstd::bulk::Compressor<'_>,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let start = out.len();
    let content = start + FIXHEADER_BYTES;
    out.resize(content + zstd::zstd_safe::compress_bound(rows.len()), 0);
    let length = compressor.compress_to_buffer(rows, &mut out[content..])?;
    out.truncate(content + length);
    finish_block(&mut out[start..]);
    Ok(())
}

/// A fixheader, understood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixheader {
    pub is_compressed: bool,
    pub length: u64,
    pub checksum: u32,
}

impl Fixheader {
    /// True if this is the header of that content.
    pub(crate) fn is_checksum_of(&self, content: &[u8]) -> bool {
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::IgnoreChecksum) {
            return true;
        }
        checksum(content) == self.checksum
    }

    /// The only bytes that say this.
    fn encode(&self) -> [u8; FIXHEADER_BYTES] {
        let mut header = Vec::with_capacity(FIXHEADER_BYTES);
        header.extend_from_slice(if self.is_compressed { &ZSTD_MAGIC } else { &PLAIN_MAGIC });
        msgpack::encode_uint(&mut header, self.length);
        msgpack::encode_uint(&mut header, 0);
        msgpack::encode_uint(&mut header, u64::from(self.checksum));
        let padding = FIXHEADER_BYTES - header.len();
        if padding > 0 {
            header.push(0xa0 | (padding - 1) as u8);
        }
        let mut out = [0; FIXHEADER_BYTES];
        out[..header.len()].copy_from_slice(&header);
        out
    }
}

/// Where one flipped bit in `len` bytes turns a checksum into one that differs by `difference`: the byte, and the bit in it.
///
/// The checksum is linear: the difference depends on the place alone. It is the remainder of a power of x, so it is found by
/// going through the powers from the last bit to the first.
pub(crate) fn find_flipped_bit(difference: u32, len: usize) -> Option<(usize, u8)> {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut remainder = 1u32;
    for at in (0..len * 8).rev() {
        remainder = remainder >> 1 ^ if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
        if remainder == difference {
            return Some((at / 8, (at % 8) as u8));
        }
    }
    None
}

/// Reads a fixheader. Errors: a description of what is wrong.
pub(crate) fn read_fixheader(bytes: &[u8]) -> Result<Fixheader, &'static str> {
    let Some((magic, rest)) = bytes.split_first_chunk::<4>() else {
        return Err("the file ends within a block header");
    };
    let is_compressed = match *magic {
        PLAIN_MAGIC => false,
        ZSTD_MAGIC => true,
        _ => return Err("no block begins here (invalid magic)"),
    };
    if bytes.len() < FIXHEADER_BYTES {
        return Err("the file ends within a block header");
    }
    let mut reader = Reader::new(&rest[..FIXHEADER_BYTES - 4]);
    let fields = (reader.read_uint(), reader.read_uint(), reader.read_uint());
    let (Ok(length), Ok(_), Ok(checksum)) = fields else {
        return Err("malformed block header");
    };
    let checksum = u32::try_from(checksum).map_err(|_| "malformed block header")?;
    if length > CONTENT_MAX as u64 {
        return Err("block length is beyond any bound");
    }
    let header = Fixheader { is_compressed, length, checksum };
    // The header itself has no checksum, but there is one way to write it: every other bit of it is checked by that.
    if header.encode() != bytes[..FIXHEADER_BYTES] {
        return Err("malformed block header");
    }
    Ok(header)
}

thread_local! {
    /// One for all blocks: making one costs as much as a small block.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        RefCell::new(zstd::bulk::Decompressor::new().ok());
}

/// Unpacks zstd content. Errors: a description of what is wrong.
pub(crate) fn decompress(content: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    out.clear();
    // Most contents unpack to a few times their size, and at once they do it faster than as a stream.
    let guess = (content.len().saturating_mul(UNPACKED_RATIO_GUESS)).clamp(UNPACKED_GUESS_MIN, CONTENT_MAX);
    out.reserve(guess);
    let is_done = DECOMPRESSOR.with_borrow_mut(|decompressor| {
        decompressor.as_mut().is_some_and(|decompressor| decompressor.decompress_to_buffer(content, out).is_ok())
    });
    if is_done {
        return if out.len() > CONTENT_MAX { Err("unpacked length is beyond any bound") } else { Ok(()) };
    }
    out.clear();
    let decoder = zstd::stream::read::Decoder::with_buffer(content).map_err(|_| "zstd cannot be started")?;
    let mut limited = decoder.take(CONTENT_MAX as u64 + 1);
    limited.read_to_end(out).map_err(|_| "not a zstd stream")?;
    if out.len() > CONTENT_MAX { Err("unpacked length is beyond any bound") } else { Ok(()) }
}

/// The note at the end of a group's content, if it has one.
pub(crate) fn find_note(content: &[u8]) -> Option<Note> {
    // Frame header, content size, raw blocks, then the skippable frame.
    let mut at = 0;
    if content.starts_with(&FRAME_HEADER) {
        at = FRAME_HEADER.len() + 4;
        loop {
            let header = content.get(at..at + 3)?;
            let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            at += 3 + (header >> 3) as usize;
            if header & 1 == 1 {
                break;
            }
        }
    }
    let frame = content.get(at..)?;
    // The first logs had no end of the note.
    let note = frame.get(8..8 + NOTE_BYTES - NOTE_END.len())?;
    if !frame.starts_with(&SKIPPABLE_MAGIC) || !note.starts_with(&NOTE_MAGIC) {
        return None;
    }
    let number = |at: usize| note[at..at + 8].try_into().ok().map(u64::from_le_bytes);
    Some(Note { number: number(8)?, durable_offset: number(16)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_tarantools() {
        // A real fixheader of Tarantool 2.6: length 0x25, crc 0x5aea634f, seven bytes of padding.
        let real = [0xd5, 0xba, 0x0b, 0xab, 0x25, 0, 0xce, 0x5a, 0xea, 0x63, 0x4f, 0xa7, 0, 0, 0, 0, 0, 0, 0];
        let header = read_fixheader(&real).expect("a header");
        assert_eq!((header.length, header.checksum, header.is_compressed), (0x25, 0x5aea_634f, false));
    }

    #[test]
    fn the_place_of_a_flipped_bit_follows_from_the_checksums() {
        let good: Vec<u8> = (0..300).map(|at| (at * 31) as u8).collect();
        for at in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[at / 8] ^= 1 << (at % 8);
            let difference = checksum(&good) ^ checksum(&bad);
            assert_eq!(find_flipped_bit(difference, good.len()), Some((at / 8, (at % 8) as u8)));
        }
        assert_eq!(find_flipped_bit(0, good.len()), None);
    }

    #[test]
    fn a_header_is_read_only_as_it_is_written() {
        for length in [0usize, 1, 127, 128, 300, 70_000] {
            let content = vec![7; length];
            let mut good = [0; FIXHEADER_BYTES];
            write_fixheader(&mut good, PLAIN_MAGIC, &content);
            for bit in 0..FIXHEADER_BYTES * 8 {
                let mut bad = good;
                bad[bit / 8] ^= 1 << (bit % 8);
                let is_good = read_fixheader(&bad)
                    .is_ok_and(|header| header.length as usize == length && header.checksum == checksum(&content));
                assert!(!is_good, "bit {bit} of the header of {length} bytes");
            }
        }
    }

    #[test]
    fn groups_of_any_size_unpack_to_their_rows() {
        for size in [0, 1, 100, 4000, 4036, 4037, 4096, 10_000, 131_072, 131_073, 400_000] {
            let rows: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
            let note = Note { number: 5, durable_offset: 4096 };
            let mut buffer = AlignedBuffer::default();
            encode_group(&rows, note, &mut buffer);
            let header = read_fixheader(buffer.bytes()).expect("a header");
            let content = &buffer.bytes()[FIXHEADER_BYTES..];
            assert_eq!(header.length as usize, content.len());
            assert_eq!(checksum(content), header.checksum);
            let mut unpacked = Vec::new();
            decompress(content, &mut unpacked).expect("zstd");
            assert_eq!(unpacked, rows, "{size}");
            assert_eq!(find_note(content), Some(note));
        }
    }

    #[test]
    fn a_filler_is_an_empty_block() {
        let mut page = vec![1; 4096];
        encode_filler(&mut page);
        let mut unpacked = vec![1];
        decompress(&page[FIXHEADER_BYTES..], &mut unpacked).expect("zstd");
        assert!(unpacked.is_empty() && find_note(&page[FIXHEADER_BYTES..]).is_none());
    }
}
