//! The note of the newest log: a small durable file beside the logs.
//!
//! A newest log that is missing leaves no gap, and one that was cut after a clean stop looks like one that a crash has torn. So it is noted
//! which log is the newest, and after a clean stop where it ends. The note follows: it is written when a log has its name, and again when a
//! clean stop has completed it. It may be behind what is there, never ahead of it. A directory without it is one of an older version, or of
//! Tarantool.

use crate::error::WalError;
use crate::loss::{Loss, Lost};
use crate::xlog::file_name;
use runtime::{FileSystem, SlotFile, Slots};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tuple::Lsn;

const NAME: &str = "lycosa.newest";
const CONTENT_BYTES: usize = 16;
/// Stands for an end that is not known.
const OPEN: i64 = -1;

/// What is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    /// The signature in the name of the log.
    pub(crate) begin: i64,
    /// The signature behind its last row, if it was completed by a clean stop.
    pub(crate) end: Option<i64>,
}

impl Newest {
    fn encode(self) -> [u8; CONTENT_BYTES] {
        let mut content = [0; CONTENT_BYTES];
        content[..8].copy_from_slice(&self.begin.to_le_bytes());
        content[8..].copy_from_slice(&self.end.unwrap_or(OPEN).to_le_bytes());
        content
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let (begin, end) = <&[u8; CONTENT_BYTES]>::try_from(content).ok()?.split_at(8);
        let number_of = |bytes: &[u8]| bytes.try_into().ok().map(i64::from_le_bytes);
        let end = number_of(end)?;
        Some(Newest { begin: number_of(begin)?, end: (end != OPEN).then_some(end) })
    }

    /// Reads the note of a directory. One that cannot be understood says nothing. Errors: `Io`.
    pub(crate) fn read(files: &dyn FileSystem, dir: &Path) -> Result<Option<Self>, WalError> {
        let path = dir.join(NAME);
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::IgnoreWitness) {
            return Ok(None);
        }
        let slots = Slots::read(files, &path).map_err(WalError::io(format!("reading {}", path.display())))?;
        let noted = match &slots {
            Slots::Absent => return Ok(None),
            Slots::Damaged => None,
            Slots::Content(content) => Newest::decode(content),
        };
        if noted.is_none() {
            tracing::warn!("{} is damaged: a log that is missing as a whole would not be noticed", path.display());
        }
        Ok(noted)
    }

    /// What is lost if this log is not there. `start`: the signature up to where the rows are known otherwise; `newest`: of the newest log that is
    /// there. None: it is there, or somebody went on behind it.
    pub(crate) fn missing(self, dir: &Path, start: i64, newest: Option<i64>) -> Option<Loss> {
        let Newest { begin, end } = self;
        let is_needed =
            newest.is_none_or(|newest| newest < begin) && start <= begin && end.is_none_or(|end| end > start);
        is_needed.then(|| Loss {
            file: dir.join(file_name(begin, "xlog")),
            offset: 0,
            what: "the newest log is not there".to_string(),
            lost: end.map_or(Lost::Behind(begin), |end| Lost::Lsns(Lsn(begin + 1), Lsn(end))),
        })
    }
}

/// The note, shared by those who change files.
pub(crate) struct NewestNote {
    path: PathBuf,
    file: Mutex<Option<SlotFile>>,
}

impl NewestNote {
    pub(crate) fn new(dir: &Path) -> Self {
        NewestNote { path: dir.join(NAME), file: Mutex::new(None) }
    }

    /// Writes the note durably. Blocks. A failure leaves the older note, is logged, and is no reason to stop.
    pub(crate) fn write(&self, files: &dyn FileSystem, newest: Newest) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let content = newest.encode();
        let written = match &mut *file {
            Some(file) => file.write(&content),
            none => SlotFile::open(files, &self.path, &content).and_then(|opened| none.insert(opened).write(&content)),
        };
        if let Err(error) = written {
            *file = None;
            tracing::warn!("{}: {error}; the loss of the newest log would not be noticed", self.path.display());
        }
    }
}
