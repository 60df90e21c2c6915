//! The last bytes of a run: what is in it and where.

use crate::lsm::cursor::Cursor;

const MAGIC: &[u8; 8] = b"LYCOSRUN";
const VERSION: u32 = 1;
/// Bytes of a footer.
pub(crate) const FOOTER_BYTES: usize = 96;

/// The filter knows whole keys.
pub(crate) const WHOLE_KEYS: u16 = 0;
/// The filter knows parts of keys that are no ordered bytes.
pub(crate) const UNKNOWN_PARTS: u16 = u16::MAX;

/// What a footer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Bits that the filter looks at for a key.
    pub(crate) probes: u16,
    /// Parts of each key that the filter knows, or `WHOLE_KEYS` or `UNKNOWN_PARTS`.
    pub(crate) filter_parts: u16,
    pub(crate) run_id: u64,
    pub(crate) blocks: u64,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) upserts: u64,
    /// Bytes of all blocks before packing.
    pub(crate) unpacked_bytes: u64,
    /// Where the fences begin: the end of the blocks.
    pub(crate) fences_at: u64,
    pub(crate) fences_length: u64,
    /// The filter lies behind the fences; 0 if there is none.
    pub(crate) filter_length: u64,
    /// Of fences and filter together.
    pub(crate) tail_checksum: u32,
}

impl Footer {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.probes.to_le_bytes());
        out.extend_from_slice(&self.filter_parts.to_le_bytes());
        let numbers = [
            self.run_id,
            self.blocks,
            self.entries,
            self.deletes,
            self.upserts,
            self.unpacked_bytes,
            self.fences_at,
            self.fences_length,
            self.filter_length,
        ];
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        out.extend_from_slice(&self.tail_checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        debug_assert_eq!(out.len() - start, FOOTER_BYTES);
    }

    /// Understands the last bytes of a file of `file_length` bytes. Errors: what is wrong.
    pub(crate) fn decode(bytes: &[u8; FOOTER_BYTES], file_length: u64) -> Result<Footer, String> {
        let (content, checksum) = bytes.split_last_chunk::<4>().ok_or("cut off")?;
        let mut cursor = Cursor::new(content);
        if cursor.bytes(MAGIC.len()) != Some(MAGIC) {
            return Err("there is no footer of a run".to_string());
        }
        let (expected, found) = (u32::from_le_bytes(*checksum), crc32c::crc32c(content));
        if expected != found {
            return Err(format!("the checksum of the footer is {found:08x}, expected {expected:08x}"));
        }
        Self::read(&mut cursor, file_length)?.ok_or_else(|| "lengths in the footer contradict the file's".to_string())
    }

    fn read(cursor: &mut Cursor<'_>, file_length: u64) -> Result<Option<Footer>, String> {
        let version = cursor.u32().unwrap_or(0);
        if version != VERSION {
            return Err(format!("version {version} of the format, this server knows {VERSION}"));
        }
        let footer = (|| {
            Some(Footer {
                probes: cursor.u16()?,
                filter_parts: cursor.u16()?,
                run_id: cursor.u64()?,
                blocks: cursor.u64()?,
                entries: cursor.u64()?,
                deletes: cursor.u64()?,
                upserts: cursor.u64()?,
                unpacked_bytes: cursor.u64()?,
                fences_at: cursor.u64()?,
                fences_length: cursor.u64()?,
                filter_length: cursor.u64()?,
                tail_checksum: cursor.u32()?,
            })
        })();
        Ok(footer.filter(|footer| {
            let parts = [footer.fences_at, footer.fences_length, footer.filter_length, FOOTER_BYTES as u64];
            parts.iter().try_fold(0u64, |sum, &part| sum.checked_add(part)) == Some(file_length)
        }))
    }
}
