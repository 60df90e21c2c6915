//! Reading log and snapshot files.
//!
//! This file has the reader. [`names`] has what names of files say, [`meta`] their text headers, [`damage`] what can be wrong with them,
//! [`content`] the bytes and rows of one block.

mod content;
mod damage;
mod meta;
mod names;

pub use damage::{Damage, Flip};
pub use meta::FileMeta;
pub use names::{file_name, logs, remove_logs_before};

pub(crate) use content::{BlockReader, Unpacked};
pub(crate) use names::{numbered, signature_of};

use crate::block::{
    self, EOF_MAGIC, FIXHEADER_BYTES, Fixheader, Note, PLAIN_MAGIC, ZSTD_MAGIC, find_flipped_bit, find_note,
    read_fixheader,
};
use crate::error::WalError;
use crate::read_ahead::ReadAhead;
use crate::row::Row;
use meta::repair_header;
use names::kind_of;
use runtime::{FileSystem, OpenMode, PAGE_BYTES};
use std::path::{Path, PathBuf};

/// Longest text header.
const META_MAX: usize = 16 << 10;

/// Reads a file block by block. Memory is bounded by the largest block, whatever lengths the file claims; the blocks that are read ahead
/// have a bound of their own.
pub struct XlogReader {
    blocks: BlockReader,
    path: PathBuf,
    /// The file's header.
    pub meta: FileMeta,
    offset: u64,
    content: Vec<u8>,
    unpacked: Unpacked,
    ahead: Option<ReadAhead>,
}

/// What `next_block` found.
pub(crate) enum Block {
    /// Rows from here on are in `rows()`; with the offset of the block, and what a group says about itself.
    Rows { offset: u64, note: Option<Note> },
    /// The end marker.
    Eof,
    /// The file ends without a marker.
    End,
    /// Something that cannot be read.
    Damaged(Damage),
}

impl XlogReader {
    /// Opens a file and reads its header. Errors: `Corrupt` at offset 0 if there is no good header.
    pub fn open(files: &dyn FileSystem, path: &Path) -> Result<Self, WalError> {
        match Self::open_damaged(files, path)? {
            (reader, None) => Ok(reader),
            (_, Some(damage)) => {
                Err(WalError::Corrupt { file: path.to_path_buf(), offset: damage.offset, what: damage.to_string() })
            }
        }
    }

    /// Opens a file whose header may be damaged. `meta` then holds what could be recovered of it, and blocks are read from the
    /// first good one.
    pub(crate) fn open_damaged(files: &dyn FileSystem, path: &Path) -> Result<(Self, Option<Damage>), WalError> {
        let reading = || format!("reading {}", path.display());
        let file = files.open(path, OpenMode::READ).map_err(WalError::io(reading()))?;
        let len = file.len().map_err(WalError::io(reading()))?;
        let mut head = vec![0; META_MAX.min(len as usize)];
        let got = file.read_full_at(&mut head, 0).map_err(WalError::io(reading()))?;
        let path = path.to_path_buf();
        let blocks = BlockReader::new(file, len);
        let (content, unpacked, ahead) = (Vec::new(), Unpacked::default(), None);
        let named = signature_of(&path);
        // What the header says of the place in the log is compared with the file's name.
        let decoded = match FileMeta::decode(&head[..got]) {
            Ok(meta) if kind_of(&path).is_some_and(|kind| kind != meta.kind) => {
                Err("the header is that of another kind of file")
            }
            Ok(meta) if named.is_some_and(|named| named != meta.vclock.signature()) => {
                Err("the header's VClock does not fit the file's name")
            }
            other => other,
        };
        match decoded {
            Ok(meta) => {
                let offset = meta.bytes;
                Ok((XlogReader { blocks, path, meta, offset, content, unpacked, ahead }, None))
            }
            Err(what) => {
                let (meta, flip) = match repair_header(&head[..got]) {
                    Some((meta, flip)) => (Some(meta), Some(flip)),
                    None => (None, None),
                };
                let damage = Damage { flip, ..Damage::at(0, what) };
                let is_known = meta.is_some();
                let meta = meta.unwrap_or_default();
                let offset = meta.bytes;
                let mut reader = XlogReader { blocks, path, meta, offset, content, unpacked, ahead };
                if !is_known {
                    reader.offset = reader.find_later_block(0)?.map_or(len, |(first, _)| first);
                    reader.unpacked.clear();
                }
                Ok((reader, Some(damage)))
            }
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.blocks.len()
    }

    /// True if it holds nothing at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Rows of the block read last, one after the other.
    pub(crate) fn rows(&self) -> &[u8] {
        &self.unpacked.bytes
    }

    /// The same rows, understood.
    pub(crate) fn unpacked(&self) -> &Unpacked {
        &self.unpacked
    }

    /// Whole blocks are read by another thread from now on, until something else is met.
    pub(crate) fn read_ahead(&mut self) {
        self.ahead = ReadAhead::start(self.blocks.file(), self.offset, self.blocks.len());
    }

    /// Reads bytes, as many as there are. Errors: the system's, which says nothing about the bytes: what cannot be read now must not be
    /// taken for a torn end.
    pub(crate) fn read(&self, out: &mut [u8], offset: u64) -> Result<usize, WalError> {
        let what = || format!("reading {} at byte {offset}", self.path.display());
        self.blocks.read(out, offset).map_err(|source| WalError::Io { what: what(), source })
    }

    /// Reads the block at `offset` into memory. Returns its length and note, or a description of what is wrong with it.
    fn read_block(&mut self, offset: u64) -> Result<Result<(u64, Option<Note>), &'static str>, WalError> {
        let mut header = [0; FIXHEADER_BYTES];
        let got = self.read(&mut header, offset)?;
        let fixheader = match read_fixheader(&header[..got]) {
            Ok(fixheader) => fixheader,
            Err(what) => return Ok(Err(what)),
        };
        if !self.read_content(offset + FIXHEADER_BYTES as u64, fixheader.length)? {
            return Ok(Err("the file ends within a block"));
        }
        Ok(self.check_content(fixheader))
    }

    /// Checks the content that was read and takes the rows out of it.
    fn check_content(&mut self, fixheader: Fixheader) -> Result<(u64, Option<Note>), &'static str> {
        let Fixheader { is_compressed, length, .. } = fixheader;
        if !fixheader.is_checksum_of(&self.content) {
            return Err("checksum mismatch");
        }
        let note = if is_compressed { find_note(&self.content) } else { None };
        self.unpack(is_compressed)?;
        Ok((FIXHEADER_BYTES as u64 + length, note))
    }

    /// Reads on to the next block. Errors: `Io`.
    pub(crate) fn next_block(&mut self) -> Result<Block, WalError> {
        let offset = self.offset;
        if let Some(ahead) = &self.ahead {
            let reading = format_args!("reading {} behind byte {offset}", self.path.display()).to_string();
            match ahead.next().map_err(WalError::io(reading))? {
                Some(ready) if ready.offset == offset => {
                    ahead.give_back(std::mem::replace(&mut self.unpacked, ready.unpacked));
                    self.offset = ready.end;
                    return Ok(Block::Rows { offset, note: ready.note });
                }
                _ => self.ahead = None,
            }
        }
        if offset >= self.len() {
            return Ok(Block::End);
        }
        let mut magic = [0; 4];
        let got = self.read(&mut magic, offset)?;
        if magic[..got] == EOF_MAGIC {
            if offset + 4 == self.len() {
                return Ok(Block::Eof);
            }
            return Ok(Block::Damaged(Damage::at(offset, "bytes behind the end marker")));
        }
        let has_marker_bits =
            magic.iter().zip(EOF_MAGIC).map(|(found, right)| (found ^ right).count_ones()).sum::<u32>();
        if offset + 4 == self.len() && has_marker_bits == 1 {
            let at = magic.iter().zip(EOF_MAGIC).position(|(found, right)| *found != right).unwrap_or(0);
            let bit = (magic[at] ^ EOF_MAGIC[at]).trailing_zeros() as u8;
            let flip = Some(Flip { byte: offset + at as u64, bit });
            self.unpacked.clear();
            let what = "the end marker is damaged";
            return Ok(Block::Damaged(Damage { offset, what, flip, end: Some(self.len()) }));
        }
        Ok(match self.read_block(offset)? {
            Ok((length, note)) => {
                self.offset = offset + length;
                Block::Rows { offset, note }
            }
            Err(what) => Block::Damaged(self.diagnose(offset, what)?),
        })
    }

    /// Finds out whether one flipped bit is all that is wrong with the block at `offset`. Then its rows are in `rows()`.
    fn diagnose(&mut self, offset: u64, what: &'static str) -> Result<Damage, WalError> {
        self.unpacked.clear();
        Ok(match self.find_flip(offset)? {
            Some((flip, end)) => Damage { offset, what, flip: Some(flip), end: Some(end) },
            None => {
                self.unpacked.clear();
                Damage::at(offset, what)
            }
        })
    }

    fn find_flip(&mut self, offset: u64) -> Result<Option<(Flip, u64)>, WalError> {
        let mut header = [0; FIXHEADER_BYTES];
        if self.read(&mut header, offset)? < FIXHEADER_BYTES {
            return Ok(None);
        }
        let start = offset + FIXHEADER_BYTES as u64;
        if let Ok(found) = read_fixheader(&header)
            && self.read_content(start, found.length)?
        {
            // The header may be right and the content wrong.
            let difference = block::checksum(&self.content) ^ found.checksum;
            if let Some((byte, bit)) = find_flipped_bit(difference, self.content.len()) {
                self.content[byte] ^= 1 << bit;
                if self.unpack(found.is_compressed).is_ok() {
                    return Ok(Some((Flip { byte: start + byte as u64, bit }, start + found.length)));
                }
            }
        }
        for at in 0..FIXHEADER_BYTES * 8 {
            let mut repaired = header;
            repaired[at / 8] ^= 1 << (at % 8);
            let Ok(found) = read_fixheader(&repaired) else { continue };
            if self.read_content(start, found.length)?
                && block::checksum(&self.content) == found.checksum
                && self.unpack(found.is_compressed).is_ok()
            {
                return Ok(Some((Flip { byte: offset + at as u64 / 8, bit: (at % 8) as u8 }, start + found.length)));
            }
        }
        Ok(None)
    }

    /// Reads `length` bytes of content. False if the file ends before.
    fn read_content(&mut self, start: u64, length: u64) -> Result<bool, WalError> {
        if length > self.len().saturating_sub(start) {
            return Ok(false);
        }
        let mut content = std::mem::take(&mut self.content);
        content.resize(length as usize, 0);
        let got = self.read(&mut content, start);
        self.content = content;
        Ok(got? == self.content.len())
    }

    /// Turns the content that was read into rows.
    fn unpack(&mut self, is_compressed: bool) -> Result<(), &'static str> {
        self.unpacked.unpack(&self.content, is_compressed)
    }

    /// True if the file ends with the end marker, whatever is before it. Errors: `Io`.
    pub(crate) fn has_end_marker(&self) -> Result<bool, WalError> {
        let mut tail = [0; 4];
        let got = self.read(&mut tail, self.len().saturating_sub(4))?;
        Ok(tail[..got] == EOF_MAGIC)
    }

    /// The next readable block that holds rows behind `offset`: where it is, and its note. Searches byte by byte for the magics.
    /// Errors: `Io`.
    pub(crate) fn find_later_block(&mut self, offset: u64) -> Result<Option<(u64, Option<Note>)>, WalError> {
        let mut window = vec![0; 1 << 20];
        let mut start = offset + 1;
        while start < self.len() {
            let got = self.read(&mut window, start)?;
            if got < 4 {
                return Ok(None);
            }
            for at in 0..got - 3 {
                let magic = &window[at..at + 4];
                if magic != PLAIN_MAGIC && magic != ZSTD_MAGIC {
                    continue;
                }
                let candidate = start + at as u64;
                if let Ok((_, note)) = self.read_block(candidate)?
                    && !self.rows().is_empty()
                {
                    return Ok(Some((candidate, note)));
                }
            }
            start += (got - 3) as u64;
        }
        Ok(None)
    }

    /// Goes on at another offset.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.ahead = None;
        self.offset = offset;
    }

    /// Calls `visit` with the rows of the next block that can be read; what is damaged before it is passed over. False at the end.
    ///
    /// Errors: `Io`.
    pub fn next_rows(&mut self, mut visit: impl FnMut(&Row<'_>)) -> Result<bool, WalError> {
        loop {
            match self.next_block()? {
                Block::Rows { .. } if self.unpacked.len() == 0 => {}
                Block::Rows { .. } => {
                    (0..self.unpacked.len()).for_each(|at| visit(&self.unpacked.row(at)));
                    return Ok(true);
                }
                Block::Eof | Block::End => return Ok(false),
                Block::Damaged(damage) => match self.find_later_block(damage.offset)? {
                    Some((offset, _)) => self.seek(offset),
                    None => return Ok(false),
                },
            }
        }
    }

    /// Calls `visit` with every row and the offset of its block. Stops at the first damage, which is returned.
    ///
    /// Errors: the damage; it may also say that the file cannot be read.
    pub fn for_each_row(&mut self, mut visit: impl FnMut(&Row<'_>, u64)) -> Result<bool, Damage> {
        loop {
            let unreadable = Damage::at(self.offset, "the file cannot be read");
            match self.next_block().map_err(|_| unreadable)? {
                Block::Rows { offset, .. } => {
                    (0..self.unpacked.len()).for_each(|at| visit(&self.unpacked.row(at), offset));
                }
                Block::Eof => return Ok(true),
                Block::End => return Ok(false),
                Block::Damaged(damage) => return Err(damage),
            }
        }
    }
}

const _: () = assert!(META_MAX >= PAGE_BYTES);
