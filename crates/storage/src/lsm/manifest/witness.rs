//! What a manifest must say at least: its number, and up to where it was confirmed.
//!
//! A manifest that lost its end looks like one that was never longer, and a missing one like a directory without spaces. So what was
//! confirmed is noted in a file of its own, beside the directory, which may get lost as a whole. An edit counts when it is noted there.

use crate::lsm::error::LsmError;
use runtime::{FileSystem, SlotFile, Slots};
use std::io;
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".confirmed";
const CONTENT_BYTES: usize = 16;

/// What was confirmed of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Confirmed {
    /// The number of the manifest.
    pub(super) number: u64,
    /// Its records and marks up to here are promised.
    pub(super) end: u64,
}

impl Confirmed {
    /// There is no manifest yet.
    pub(super) const NOTHING: Confirmed = Confirmed { number: 0, end: 0 };

    fn encode(self) -> [u8; CONTENT_BYTES] {
        let mut content = [0; CONTENT_BYTES];
        content[..8].copy_from_slice(&self.number.to_le_bytes());
        content[8..].copy_from_slice(&self.end.to_le_bytes());
        content
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let (number, end) = <&[u8; CONTENT_BYTES]>::try_from(content).ok()?.split_at(8);
        let number_of = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        Some(Confirmed { number: number_of(number)?, end: number_of(end)? })
    }
}

/// The file's name.
pub(super) fn path(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(SUFFIX);
    PathBuf::from(name)
}

/// What the witness of a directory knows; `None` if there is no witness.
///
/// Errors: it cannot be read.
pub(super) fn read(files: &dyn FileSystem, dir: &Path) -> Result<Option<Confirmed>, LsmError> {
    let path = path(dir);
    #[cfg(feature = "planted-bugs")]
    if runtime::planted::is_planted(runtime::planted::Plant::IgnoreWitness) {
        return Ok(None);
    }
    let damaged = || LsmError::corrupt(&path, 0, "nobody can tell what the manifest should say");
    match Slots::read(files, &path).map_err(LsmError::io("reading", &path))? {
        Slots::Absent => Ok(None),
        Slots::Damaged => Err(damaged()),
        Slots::Content(content) => Confirmed::decode(&content).map(Some).ok_or_else(damaged),
    }
}

/// The file, open for writing.
pub(super) struct Witness(SlotFile);

impl Witness {
    /// Opens the file, or makes one that says this.
    pub(super) fn open(files: &dyn FileSystem, dir: &Path, confirmed: Confirmed) -> io::Result<Self> {
        SlotFile::open(files, &path(dir), &confirmed.encode()).map(Witness)
    }

    /// From now on this is promised. Durable when it returns.
    pub(super) fn write(&mut self, confirmed: Confirmed) -> io::Result<()> {
        self.0.write(&confirmed.encode())
    }
}
