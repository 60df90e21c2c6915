//! The bytes of a block, and the rows in them.

use crate::block;
use crate::row::{self, Row, RowHeader};
use runtime::File;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use tuple::msgpack::Reader;

/// Bytes that one read of the file fetches, if fewer are asked for.
const WINDOW_BYTES: usize = 1 << 20;

/// Reads a file in small pieces, mostly in sequence.
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

    pub(super) fn file(&self) -> &Arc<dyn File> {
        &self.file
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
                    // The unreadable part may lie behind the wanted bytes.
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

/// Rows of a block: their bytes, and their headers as decoded when the block was checked.
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
        assert!(self.bytes.len() <= block::CONTENT_MAX, "ranges of rows are 32 bits");
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
