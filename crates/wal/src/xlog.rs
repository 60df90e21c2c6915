//! Reading log and snapshot files.

use crate::block::{
    self, EOF_MAGIC, FIXHEADER_BYTES, Fixheader, Note, PLAIN_MAGIC, ZSTD_MAGIC, decompress, find_note, read_fixheader,
};
use crate::error::WalError;
use crate::row::{self, Row};
use crate::vclock::Vclock;
use runtime::{File, FileSystem, OpenMode, PAGE_BYTES};
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
}

impl FileMeta {
    /// The text of a header.
    pub(crate) fn encode(kind: &str, instance_uuid: &str, vclock: &Vclock, previous: Option<&Vclock>) -> String {
        let previous = previous.map_or_else(String::new, |vclock| format!("PrevVClock: {vclock}\n"));
        let version = env!("CARGO_PKG_VERSION");
        format!("{kind}\n0.13\nVersion: Lycosa {version}\nInstance: {instance_uuid}\nVClock: {vclock}\n{previous}\n")
    }

    fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").ok_or("the file has no complete header")?;
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "the header is no text")?;
        let mut lines = text.lines();
        let kind = lines.next().unwrap_or("").trim().to_string();
        if !matches!(kind.as_str(), "XLOG" | "SNAP" | "VYLOG" | "RUN" | "INDEX") {
            return Err("neither a log nor a snapshot");
        }
        if !matches!(lines.next(), Some("0.13" | "0.12")) {
            return Err("unknown format version");
        }
        let mut meta = FileMeta { kind, bytes: end as u64 + 2, ..FileMeta::default() };
        for line in lines {
            match line.split_once(':') {
                Some(("Instance" | "Server", value)) => meta.instance_uuid = value.trim().to_string(),
                Some(("VClock", value)) => meta.vclock = value.parse().map_err(|()| "malformed VClock")?,
                Some(_) => {}
                None => return Err("malformed header line"),
            }
        }
        Ok(meta)
    }
}

/// What is wrong with a file, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the block that cannot be read.
    pub offset: u64,
    /// In words.
    pub what: &'static str,
}

/// Reads a file block by block. Memory is bounded by the largest block, whatever lengths the file claims.
pub struct XlogReader {
    file: Arc<dyn File>,
    path: PathBuf,
    /// The file's header.
    pub meta: FileMeta,
    len: u64,
    offset: u64,
    content: Vec<u8>,
    rows: Vec<u8>,
}

/// What `next_block` found.
pub(crate) enum Block {
    /// Rows from here on are in `rows()`; with the offset of the block.
    Rows { offset: u64 },
    /// The end marker.
    Eof,
    /// The file ends without a marker.
    End,
    /// Something that cannot be read.
    Damaged(Damage),
}

/// The signature that the name of a log or snapshot tells.
fn signature_of(path: &Path) -> Option<i64> {
    let stem = path.file_stem()?.to_str()?;
    let kind = path.extension()?.to_str()?;
    let is_named_by_vclock = matches!(kind, "snap" | "xlog") && stem.len() == 20;
    if is_named_by_vclock { stem.parse().ok() } else { None }
}

impl XlogReader {
    /// Opens a file and reads its header. Errors: `Corrupt` at offset 0 if there is no good header.
    pub fn open(files: &dyn FileSystem, path: &Path) -> Result<Self, WalError> {
        let reading = || format!("reading {}", path.display());
        let file = files.open(path, OpenMode::READ).map_err(WalError::io(reading()))?;
        let len = file.len().map_err(WalError::io(reading()))?;
        let mut head = vec![0; META_MAX.min(len as usize)];
        let got = file.read_full_at(&mut head, 0).map_err(WalError::io(reading()))?;
        let meta = FileMeta::decode(&head[..got]).map_err(|what| WalError::Corrupt {
            file: path.to_path_buf(),
            offset: 0,
            what: what.to_string(),
        })?;
        // The header has no checksum: what it says of the place in the log is compared with the file's name.
        if let Some(named) = signature_of(path)
            && named != meta.vclock.signature()
        {
            let what = format!("the header's VClock {} does not fit the file's name", meta.vclock);
            return Err(WalError::Corrupt { file: path.to_path_buf(), offset: 0, what });
        }
        let offset = meta.bytes;
        Ok(XlogReader { file, path: path.to_path_buf(), meta, len, offset, content: Vec::new(), rows: Vec::new() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if it holds nothing at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Rows of the block read last, one after the other.
    pub(crate) fn rows(&self) -> &[u8] {
        &self.rows
    }

    /// Reads bytes, as many as there are. Errors: the system's, which says nothing about the bytes: what cannot be read now must not be
    /// taken for a torn end.
    fn read(&self, out: &mut [u8], offset: u64) -> Result<usize, WalError> {
        let what = || format!("reading {} at byte {offset}", self.path.display());
        self.file.read_full_at(out, offset).map_err(|source| WalError::Io { what: what(), source })
    }

    /// Reads one block at `offset` into memory: its length and its note, or in words what is wrong with it.
    fn read_block(&mut self, offset: u64) -> Result<Result<(u64, Option<Note>), &'static str>, WalError> {
        let mut header = [0; FIXHEADER_BYTES];
        let got = self.read(&mut header, offset)?;
        let fixheader = match read_fixheader(&header[..got]) {
            Ok(fixheader) => fixheader,
            Err(what) => return Ok(Err(what)),
        };
        let start = offset + FIXHEADER_BYTES as u64;
        if fixheader.length > self.len.saturating_sub(start) {
            return Ok(Err("the file ends within a block"));
        }
        let mut content = std::mem::take(&mut self.content);
        content.resize(fixheader.length as usize, 0);
        let got = self.read(&mut content, start);
        self.content = content;
        if got? < self.content.len() {
            return Ok(Err("the file ends within a block"));
        }
        Ok(self.unpack(fixheader))
    }

    /// Checks the content that was read and takes the rows out of it.
    fn unpack(&mut self, fixheader: Fixheader) -> Result<(u64, Option<Note>), &'static str> {
        let Fixheader { is_compressed, length, checksum } = fixheader;
        #[cfg(feature = "planted-bugs")]
        let checksum = match runtime::planted::is_planted(runtime::planted::Plant::IgnoreChecksum) {
            true => block::checksum(&self.content),
            false => checksum,
        };
        if block::checksum(&self.content) != checksum {
            return Err("checksum mismatch");
        }
        let note = if is_compressed { find_note(&self.content) } else { None };
        if is_compressed {
            decompress(&self.content, &mut self.rows)?;
        } else {
            std::mem::swap(&mut self.rows, &mut self.content);
        }
        let mut reader = Reader::new(&self.rows);
        while !reader.is_empty() {
            row::decode(&mut reader).map_err(|_| "malformed row")?;
        }
        Ok((FIXHEADER_BYTES as u64 + length, note))
    }

    /// Reads on to the next block. Errors: `Io`.
    pub(crate) fn next_block(&mut self) -> Result<Block, WalError> {
        let offset = self.offset;
        if offset >= self.len {
            return Ok(Block::End);
        }
        let mut magic = [0; 4];
        let got = self.read(&mut magic, offset)?;
        if magic[..got] == EOF_MAGIC {
            if offset + 4 == self.len {
                return Ok(Block::Eof);
            }
            return Ok(Block::Damaged(Damage { offset, what: "bytes behind the end marker" }));
        }
        Ok(match self.read_block(offset)? {
            Ok((length, _)) => {
                self.offset = offset + length;
                Block::Rows { offset }
            }
            Err(what) => Block::Damaged(Damage { offset, what }),
        })
    }

    /// True if the file ends with the end marker, whatever is before it. Errors: `Io`.
    pub(crate) fn has_end_marker(&self) -> Result<bool, WalError> {
        let mut tail = [0; 4];
        let got = self.read(&mut tail, self.len.saturating_sub(4))?;
        Ok(tail[..got] == EOF_MAGIC)
    }

    /// The next readable block that holds rows behind `offset`: where it is, and its note. Searches byte by byte for the magics.
    /// Errors: `Io`.
    pub(crate) fn find_later_block(&mut self, offset: u64) -> Result<Option<(u64, Option<Note>)>, WalError> {
        let mut window = vec![0; 1 << 20];
        let mut start = offset + 1;
        while start < self.len {
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
                    && !self.rows.is_empty()
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
        self.offset = offset;
    }

    /// Calls `visit` with every row and the offset of its block. Stops at the first damage, which is returned.
    pub fn for_each_row(&mut self, mut visit: impl FnMut(&Row<'_>, u64)) -> Result<bool, Damage> {
        loop {
            let unreadable = Damage { offset: self.offset, what: "the file cannot be read" };
            match self.next_block().map_err(|_| unreadable)? {
                Block::Rows { offset } => {
                    let mut reader = Reader::new(&self.rows);
                    while !reader.is_empty() {
                        match row::decode(&mut reader) {
                            Ok(row) => visit(&row, offset),
                            Err(_) => return Err(Damage { offset, what: "malformed row" }),
                        }
                    }
                }
                Block::Eof => return Ok(true),
                Block::End => return Ok(false),
                Block::Damaged(damage) => return Err(damage),
            }
        }
    }
}

const _: () = assert!(META_MAX >= PAGE_BYTES);
