//! Reading log and snapshot files.

use crate::block::{
    self, EOF_MAGIC, FIXHEADER_BYTES, Fixheader, Note, PLAIN_MAGIC, ZSTD_MAGIC, find_flipped_bit, find_note,
    read_fixheader,
};
use crate::error::WalError;
use crate::read_ahead::ReadAhead;
use crate::row::{self, Row, RowHeader};
use crate::vclock::Vclock;
use runtime::{File, FileSystem, OpenMode, PAGE_BYTES};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuple::msgpack::Reader;

/// Longest text header.
const META_MAX: usize = 16 << 10;

/// The name of a file that begins at a signature.
pub fn file_name(signature: i64, extension: &str) -> String {
    format!("{signature:020}.{extension}")
}

/// Log files of a directory by signature.
pub fn logs(files: &dyn FileSystem, dir: &Path) -> Result<Vec<(i64, PathBuf)>, WalError> {
    numbered(files, dir, ".xlog")
}

/// Removes log files that no snapshot from `signature` on needs. Returns how many. Any thread may do it beside the writer of the log.
pub fn remove_logs_before(files: &dyn FileSystem, dir: &Path, signature: i64) -> Result<usize, WalError> {
    let found = logs(files, dir)?;
    // A file is needed if rows behind the snapshot are in it: that is, unless the next one begins early enough.
    let obsolete: Vec<&PathBuf> =
        found.windows(2).filter(|pair| pair[1].0 <= signature).map(|pair| &pair[0].1).collect();
    for path in &obsolete {
        files.remove(path).map_err(WalError::io(format!("removing {}", path.display())))?;
    }
    if !obsolete.is_empty() {
        files.sync_dir(dir).map_err(WalError::io(format!("syncing {}", dir.display())))?;
    }
    Ok(obsolete.len())
}

pub(crate) fn numbered(files: &dyn FileSystem, dir: &Path, suffix: &str) -> Result<Vec<(i64, PathBuf)>, WalError> {
    let names = files.list(dir).map_err(WalError::io(format!("listing {}", dir.display())))?;
    let mut found: Vec<(i64, PathBuf)> = names
        .iter()
        .filter_map(|name| {
            let digits = name.strip_suffix(suffix).filter(|digits| digits.len() == 20)?;
            Some((digits.parse().ok()?, dir.join(name)))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// The text header of a file.
#[derive(Clone, Debug, Default)]
pub struct FileMeta {
    /// `XLOG`, `SNAP` ...
    pub kind: String,
    /// The instance that wrote it.
    pub instance_uuid: String,
    /// Where it begins.
    pub vclock: Vclock,
    /// Bytes of the header.
    pub bytes: u64,
    /// Another program wrote it: Tarantool.
    pub is_foreign: bool,
}

/// Versions that wrote no checksum of the header.
const VERSION_WITHOUT_CHECKSUM: &str = "Lycosa 0.1.0";
/// In front of the checksum of a header, in the line that Tarantool does not look at.
const CHECKSUM_MARK: &str = " header ";
const CHECKSUM_DIGITS: usize = 8;

impl FileMeta {
    /// The text of a header. The checksum covers all of it, with zeros for its own digits.
    pub(crate) fn encode(kind: &str, instance_uuid: &str, vclock: &Vclock, previous: Option<&Vclock>) -> String {
        let previous = previous.map_or_else(String::new, |vclock| format!("PrevVClock: {vclock}\n"));
        let version = env!("CARGO_PKG_VERSION");
        let with = |checksum: u32| {
            format!(
                "{kind}\n0.13\nVersion: Lycosa {version}{CHECKSUM_MARK}{checksum:08x}\nInstance: {instance_uuid}\n\
                 VClock: {vclock}\n{previous}\n"
            )
        };
        with(block::checksum(with(0).as_bytes()))
    }

    /// Reads a header as it is written, by us or by Tarantool, and in no other way: whatever differs is damage.
    fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").ok_or("the file has no complete header")?;
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "the header is no text")?;
        let mut lines = text.split('\n');
        let kind = lines.next().unwrap_or("").to_string();
        if !matches!(kind.as_str(), "XLOG" | "SNAP" | "VYLOG" | "RUN" | "INDEX") {
            return Err("neither a log nor a snapshot");
        }
        let has_vclock = matches!(kind.as_str(), "XLOG" | "SNAP");
        let is_old = match lines.next() {
            Some("0.13") => false,
            Some("0.12") => true,
            _ => return Err("unknown format version"),
        };
        let mut meta = FileMeta { kind, bytes: end as u64 + 2, ..FileMeta::default() };
        let (mut version, mut vclock) = (None, None);
        let mut keys = Vec::new();
        for line in lines {
            let (key, value) = line.split_once(": ").ok_or("malformed header line")?;
            if keys.contains(&key) {
                return Err("a header line is there twice");
            }
            keys.push(key);
            match key {
                "Version" => version = Some(value),
                "Instance" | "Server" => meta.instance_uuid = value.to_string(),
                "VClock" => vclock = Some(decode_vclock(value)?),
                "PrevVClock" => _ = decode_vclock(value)?,
                _ => return Err("unknown header line"),
            }
        }
        meta.is_foreign = version.is_none_or(|version| !version.starts_with("Lycosa"));
        match version {
            Some(VERSION_WITHOUT_CHECKSUM) => {}
            Some(version) if version.starts_with("Lycosa") => check_header(&bytes[..end + 2], version)?,
            Some(version) if !version.starts_with(|first: char| first.is_ascii_digit()) => {
                return Err("written by an unknown program");
            }
            None if !is_old => return Err("the header has no Version"),
            _ => {}
        }
        if meta.instance_uuid.is_empty() {
            return Err("the header has no Instance");
        }
        if has_vclock {
            meta.vclock = vclock.ok_or("the header has no VClock")?;
        }
        Ok(meta)
    }
}

fn decode_vclock(text: &str) -> Result<Vclock, &'static str> {
    let vclock: Vclock = text.parse().map_err(|()| "malformed VClock")?;
    if vclock.to_string() == text { Ok(vclock) } else { Err("malformed VClock") }
}

/// Compares a header with the checksum that its version line ends with.
fn check_header(header: &[u8], version: &str) -> Result<(), &'static str> {
    let (_, digits) = version.split_once(CHECKSUM_MARK).ok_or("the header has no checksum")?;
    let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let checksum = u32::from_str_radix(digits, 16).map_err(|_| "the header has no checksum")?;
    if digits.len() != CHECKSUM_DIGITS || !digits.bytes().all(is_hex) {
        return Err("the header has no checksum");
    }
    let mark = CHECKSUM_MARK.as_bytes();
    let place = header.windows(mark.len()).position(|window| window == mark).ok_or("the header has no checksum")?;
    let mut zeroed = header.to_vec();
    zeroed[place + mark.len()..][..CHECKSUM_DIGITS].fill(b'0');
    if block::checksum(&zeroed) == checksum { Ok(()) } else { Err("checksum mismatch in the header") }
}

/// A header of which one bit was flipped: what it said, the byte and the bit. Tried on the first kilobyte.
fn repair_header(head: &[u8]) -> Option<(FileMeta, Flip)> {
    let mut bytes = head[..head.len().min(1024)].to_vec();
    for at in 0..bytes.len() * 8 {
        bytes[at / 8] ^= 1 << (at % 8);
        // Only a checksum can tell the right place from others.
        if let Ok(meta) = FileMeta::decode(&bytes)
            && bytes[..meta.bytes as usize].windows(8).any(|window| window == CHECKSUM_MARK.as_bytes())
        {
            return Some((meta, Flip { byte: (at / 8) as u64, bit: (at % 8) as u8 }));
        }
        bytes[at / 8] ^= 1 << (at % 8);
    }
    None
}

/// One bit that is not what was written, and the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Offset of its byte in the file.
    pub byte: u64,
    /// Number of the bit, from the lowest.
    pub bit: u8,
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit {} of byte {} is flipped", self.bit, self.byte)
    }
}

/// What is wrong with a file, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the block that cannot be read.
    pub offset: u64,
    /// In words.
    pub what: &'static str,
    /// The flipped bit, if that is all that is wrong. Then it was no write that a crash has torn.
    pub flip: Option<Flip>,
    /// Where the next block begins, known only if a flip is all that is wrong.
    pub(crate) end: Option<u64>,
}

impl Damage {
    fn at(offset: u64, what: &'static str) -> Self {
        Damage { offset, what, flip: None, end: None }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        self.flip.map_or(Ok(()), |flip| write!(f, " ({flip})"))
    }
}

/// Bytes that are read of a file at once, where less is asked for.
const WINDOW_BYTES: usize = 1 << 20;

/// A file of which mostly small pieces are read, one behind the other.
pub(crate) struct BlockReader {
    file: Arc<dyn File>,
    len: u64,
    /// What was read last, and where it begins.
    window: RefCell<(Vec<u8>, u64)>,
}

impl BlockReader {
    pub(crate) fn new(file: Arc<dyn File>, len: u64) -> Self {
        BlockReader { file, len, window: RefCell::default() }
    }

    /// Length of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads bytes, as many as there are.
    pub(crate) fn read(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        if out.len() >= WINDOW_BYTES / 2 {
            return self.file.read_full_at(out, offset);
        }
        let (window, start) = &mut *self.window.borrow_mut();
        let is_inside = offset >= *start && offset + out.len() as u64 <= *start + window.len() as u64;
        if !is_inside {
            let wanted = (self.len.saturating_sub(offset)).clamp(out.len() as u64, WINDOW_BYTES as u64);
            window.resize(wanted as usize, 0);
            match self.file.read_full_at(window, offset) {
                Ok(got) => window.truncate(got),
                Err(_) => {
                    // What cannot be read may be behind what is wanted.
                    window.clear();
                    return self.file.read_full_at(out, offset);
                }
            }
            *start = offset;
        }
        let bytes = &window[(offset - *start) as usize..];
        let got = bytes.len().min(out.len());
        out[..got].copy_from_slice(&bytes[..got]);
        Ok(got)
    }
}

/// Rows of a block: their bytes, and what was found out about them when they were checked.
#[derive(Default)]
pub(crate) struct Unpacked {
    pub(crate) bytes: Vec<u8>,
    /// Headers, and where in the bytes the bodies are.
    rows: Vec<(RowHeader, Range<u32>)>,
}

impl Unpacked {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// One of the rows.
    pub(crate) fn row(&self, at: usize) -> Row<'_> {
        let (header, body) = &self.rows[at];
        Row { header: *header, body: &self.bytes[body.start as usize..body.end as usize] }
    }

    /// Turns the content of a block into rows, which must be whole.
    pub(crate) fn unpack(&mut self, content: &[u8], is_compressed: bool) -> Result<(), &'static str> {
        self.clear();
        if is_compressed {
            block::decompress(content, &mut self.bytes)?;
        } else {
            self.bytes.extend_from_slice(content);
        }
        let mut reader = Reader::new(&self.bytes);
        while !reader.is_empty() {
            let row = row::decode(&mut reader).map_err(|_| "malformed row")?;
            let end = reader.position() as u32;
            self.rows.push((row.header, end - row.body.len() as u32..end));
        }
        Ok(())
    }
}

const _: () = assert!(block::CONTENT_MAX < u32::MAX as usize);

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

/// The kind that the header of a file has to tell, by its name.
fn kind_of(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "xlog" => "XLOG",
        "snap" => "SNAP",
        "vylog" => "VYLOG",
        "run" => "RUN",
        "index" => "INDEX",
        _ => return None,
    })
}

/// The signature that the name of a log or snapshot tells.
pub(crate) fn signature_of(path: &Path) -> Option<i64> {
    let stem = path.file_stem()?.to_str()?;
    let kind = path.extension()?.to_str()?;
    let is_named_by_vclock = matches!(kind, "snap" | "xlog") && stem.len() == 20;
    if is_named_by_vclock { stem.parse().ok() } else { None }
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

    /// Opens a file whose header may be damaged. Of a damaged one `meta` says what could be found out; blocks are read from the
    /// first one that is good.
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
        self.ahead = ReadAhead::start(&self.blocks.file, self.offset, self.blocks.len);
    }

    /// Reads bytes, as many as there are. Errors: the system's, which says nothing about the bytes: what cannot be read now must not be
    /// taken for a torn end.
    pub(crate) fn read(&self, out: &mut [u8], offset: u64) -> Result<usize, WalError> {
        let what = || format!("reading {} at byte {offset}", self.path.display());
        self.blocks.read(out, offset).map_err(|source| WalError::Io { what: what(), source })
    }

    /// Reads one block at `offset` into memory: its length and its note, or in words what is wrong with it.
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

    /// Reads so many bytes of content. False if the file has not so many.
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

    /// Calls `visit` with every row and the offset of its block. Stops at the first damage, which is returned.
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
