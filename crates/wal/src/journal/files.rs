//! The files of the log: the one that is written, the one that comes next, and the change between them.
//!
//! ```text
//! Making -> Ready --begin_change--> Draining -> Naming ------> Completing -> Making ...
//! a thread makes   groups go to     old groups  a thread       it completes
//! the next file    the new file     are written names the new  the old file
//! ```
//!
//! The next file is made ahead by a thread, and when its turn comes, groups go to it at once. Once the old file has all its groups, a thread
//! gives the new file its header and its name. Until then nothing in the new file counts, so only those whose answers depend on it wait for the
//! directory to be synced. The old file is completed last, when nobody waits.
//!
//! Files know no groups and no positions: [`Journal`](super::Journal) says which group is the last of a file and when all up to it are written.

use super::{JournalConfig, WalMode};
use crate::block::encode_filler;
use crate::error::WalError;
use crate::newest::{Newest, NewestNote};
use crate::rewrite::Rewrites;
use crate::segment::{Change, Segment};
use crate::snapshot::unfinished_name;
use crate::vclock::Vclock;
use crate::xlog::{FileMeta, file_name};
use runtime::{JoinHandle, Notifier, OpenMode, PAGE_BYTES, spawn_thread};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// If the next file could not be made, the present one takes this many bytes more before the next attempt.
const ROTATE_AGAIN_BYTES: u64 = 4 << 20;

/// The name of the next file, without the ending that marks it as unfinished.
const NEXT_FILE: &str = "next.xlog";
/// What a crash leaves of it.
pub const PREPARED_LOG: &str = "next.xlog.inprogress";

/// The file that comes next, while it has no name and no header.
enum Spare {
    /// No thread makes it: the caller makes it when it is needed.
    None,
    Making(Receiver<io::Result<Segment>>, JoinHandle<()>),
    Ready(Box<Segment>),
}

/// The change from one file to the next.
struct Rotation {
    /// The last group of the old file.
    last_group: u64,
    stage: Stage,
}

enum Stage {
    /// Groups of the old file are being written.
    Draining(Box<Change>),
    /// A thread names the new file. It sends the outcome of that first, then the outcome of completing the old file.
    Naming(Receiver<Result<(), WalError>>, JoinHandle<()>),
    /// The new file has its name, and the thread completes the old one.
    Completing(Receiver<Result<(), WalError>>, JoinHandle<()>),
}

/// See the head of this file. Owned by the [`Journal`](super::Journal).
pub(super) struct LogFiles {
    config: JournalConfig,
    /// The file that groups go to. None until the first one is opened, and behind the last.
    pub(super) segment: Option<Segment>,
    spare: Spare,
    rotation: Option<Rotation>,
    /// Where the present file begins.
    begin: Option<Vclock>,
    note: Arc<NewestNote>,
    rewrites: Rewrites,
    /// Notified when a thread has made, named or completed a file.
    notifier: Arc<Notifier>,
}

impl LogFiles {
    pub(super) fn new(config: JournalConfig, notifier: Arc<Notifier>) -> Self {
        let note = Arc::new(NewestNote::new(&config.dir));
        LogFiles {
            config,
            segment: None,
            spare: Spare::None,
            rotation: None,
            begin: None,
            note,
            rewrites: Rewrites::default(),
            notifier,
        }
    }

    // --- The present file ---

    /// Begins the first file, at `start`. Blocks.
    ///
    /// Errors: `DiskFull`, `Io`: there is no file.
    pub(super) fn open(&mut self, start: Vclock) -> Result<(), WalError> {
        let segment = self.make(&start)?;
        self.begin(segment, start)
    }

    /// True if a group was written to the present file.
    pub(super) fn has_rows(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.groups > 0)
    }

    /// True if `bytes` more would make the present file larger than it should be, and there is something in it.
    pub(super) fn is_full(&self, bytes: u64) -> bool {
        self.segment.as_ref().is_some_and(|segment| {
            segment.groups > 0 && segment.offset + bytes > self.config.wal_max_size.max(segment.grows_to)
        })
    }

    /// The next file could not be made or named: the present one takes `bytes` and some more before that is tried again.
    pub(super) fn write_on(&mut self, bytes: u64, error: &WalError) {
        if let Some(segment) = &mut self.segment {
            segment.grows_to = segment.offset + bytes + ROTATE_AGAIN_BYTES;
            tracing::warn!("{error}; {} is written on", segment.path.display());
        }
    }

    /// The file that is written, if its name was removed: what it holds is lost with the process.
    pub(super) fn removed(&self) -> Option<PathBuf> {
        let segment = match &self.rotation {
            // The new file has no name yet that could be removed.
            Some(Rotation { stage: Stage::Draining(change), .. }) => Some(&change.old),
            Some(Rotation { stage: Stage::Naming(..), .. }) => None,
            Some(_) | None => self.segment.as_ref(),
        };
        // If the system cannot say, the file counts as there: its writes will tell.
        let removed = segment.filter(|segment| segment.file.is_removed().unwrap_or(false));
        removed.map(|segment| segment.path.clone())
    }

    /// Has space of the next file prepared at the pace at which the present one fills.
    pub(super) fn prepare_spare_alongside(&self) {
        if let (Spare::Ready(spare), Some(segment)) = (&self.spare, &self.segment)
            && segment.is_prepared_upto(self.config.wal_max_size)
        {
            spare.prepare_alongside(segment.offset);
        }
    }

    // --- The next file, made ahead ---

    /// Has a thread make the next file.
    pub(super) fn make_spare(&mut self) {
        let is_wanted = self.config.mode != WalMode::None && self.config.in_flight_max > 0;
        if !is_wanted || !matches!(self.spare, Spare::None) {
            return;
        }
        let (sender, made) = channel();
        let config = self.config.clone();
        let notifier = Arc::clone(&self.notifier);
        let work = move || {
            let path = config.dir.join(NEXT_FILE);
            // The header comes with the name: its page is left free, and in `write` mode groups begin where it ends.
            let is_direct = config.mode == WalMode::Fsync;
            let head = if is_direct { vec![0; PAGE_BYTES] } else { Vec::new() };
            let made = Segment::create(
                &config.files,
                &path,
                head,
                is_direct,
                config.prepare_chunk(),
                config.wal_max_size,
                config.in_flight_max,
            );
            // Nobody listens if the log is closed.
            let _ = sender.send(made);
            notifier.notify();
        };
        // Without a thread the file is made when it is needed.
        if let Ok(worker) = spawn_thread("wal-files", work) {
            self.spare = Spare::Making(made, worker);
        }
    }

    /// Takes the next file in when its thread has made it.
    pub(super) fn poll_spare(&mut self) {
        let Spare::Making(made, _) = &self.spare else { return };
        match made.try_recv() {
            Ok(Ok(segment)) => {
                segment.prepare_ahead();
                self.spare = Spare::Ready(Box::new(segment));
            }
            // Tried again when the file is needed.
            Ok(Err(_)) => self.spare = Spare::None,
            Err(_) => {}
        }
    }

    /// Ends the making of the next file, and removes it. Blocks.
    pub(super) fn drop_spare(&mut self) {
        let spare = match std::mem::replace(&mut self.spare, Spare::None) {
            Spare::None => return,
            Spare::Making(made, worker) => {
                worker.join();
                made.try_recv().ok().and_then(Result::ok)
            }
            Spare::Ready(segment) => Some(*segment),
        };
        if let Some(mut segment) = spare {
            segment.stop_preparing();
            // If it stays all the same, the next start removes it.
            let _ = self.config.files.remove(&unfinished_name(&segment.path));
        }
    }

    // --- The change to a file made ahead: blocks nobody ---

    /// True if the next file is made and no change is under way.
    pub(super) fn can_change(&self) -> bool {
        matches!(self.spare, Spare::Ready(_)) && self.rotation.is_none()
    }

    /// True while the next file is being made or a change is under way. The present file grows meanwhile.
    pub(super) fn is_next_coming(&self) -> bool {
        self.rotation.is_some() || matches!(self.spare, Spare::Making(..))
    }

    /// True while a change is under way.
    pub(super) fn is_changing(&self) -> bool {
        self.rotation.is_some()
    }

    /// Meets every reason known now for which a change at `start` would fail later. False if there is no next file yet.
    ///
    /// Errors: `Io`: the directory takes no names, or there is no descriptor to sync it with. Nothing has changed.
    pub(super) fn prepare_change(&mut self, start: &Vclock) -> Result<bool, WalError> {
        let (Spare::Ready(spare), Some(segment), None) = (&mut self.spare, &self.segment, &self.rotation) else {
            return Ok(false);
        };
        let files = &self.config.files;
        let path = self.config.dir.join(file_name(start.signature(), "xlog"));
        if spare.path != path {
            files
                .rename(&unfinished_name(&spare.path), &unfinished_name(&path))
                .map_err(WalError::io(format!("making {}", path.display())))?;
            spare.path = path;
        }
        files.open(&segment.path, OpenMode::READ).map_err(WalError::io(format!("making {}", spare.path.display())))?;
        Ok(true)
    }

    /// Groups from now on go to the next file, which begins at `start`; `last_group` is the last one of the old file. After `prepare_change`.
    pub(super) fn begin_change(&mut self, start: Vclock, last_group: u64) {
        assert!(self.can_change() && self.segment.is_some(), "a change begins behind its preparation");
        let (Spare::Ready(spare), Some(old)) = (std::mem::replace(&mut self.spare, Spare::None), self.segment.take())
        else {
            return;
        };
        let mut next = *spare;
        assert!(old.groups > 0 && next.groups == 0, "a file that is left has rows, and one that comes has none");
        let unfinished = unfinished_name(&next.path);
        let head = self.head_of(&start);
        if self.config.mode == WalMode::Write {
            (next.offset, next.durable_offset) = (head.len() as u64, head.len() as u64);
        }
        old.close_preparing();
        let change = Change {
            old,
            files: Arc::clone(&self.config.files),
            file: Arc::clone(&next.file),
            head,
            unfinished,
            path: next.path.clone(),
            is_synced: self.config.mode == WalMode::Fsync,
            begin: start.signature(),
            note: Arc::clone(&self.note),
        };
        self.begin = Some(start);
        self.segment = Some(next);
        self.rotation = Some(Rotation { last_group, stage: Stage::Draining(Box::new(change)) });
    }

    /// The last group of the old file, while that one still gets its groups.
    pub(super) fn draining(&self) -> Option<u64> {
        match &self.rotation {
            Some(Rotation { last_group, stage: Stage::Draining(_) }) => Some(*last_group),
            _ => None,
        }
    }

    /// The last group of the old file, while the new one has no name: no later group counts.
    pub(super) fn holds_back(&self) -> Option<u64> {
        match &self.rotation {
            Some(Rotation { last_group, stage: Stage::Draining(_) | Stage::Naming(..) }) => Some(*last_group),
            _ => None,
        }
    }

    /// The old file has all its groups: a thread does the rest. Blocks where there can be no thread.
    ///
    /// Errors: `Io`, `Removed`: whether the new file has its name is unknown.
    pub(super) fn begin_naming(&mut self) -> Result<(), WalError> {
        let Some(rotation) = self.rotation.take() else { return Ok(()) };
        let Stage::Draining(mut change) = rotation.stage else {
            self.rotation = Some(rotation);
            return Ok(());
        };
        let (sender, named) = channel();
        let notifier = Arc::clone(&self.notifier);
        let (job_sender, job) = channel::<Box<Change>>();
        let work = move || {
            let Ok(mut change) = job.recv() else { return };
            let named = change.name();
            let is_named = named.is_ok();
            // Nobody listens if the process ends.
            let _ = sender.send(named);
            notifier.notify();
            if is_named {
                let _ = sender.send(change.complete());
                notifier.notify();
            }
        };
        match spawn_thread("wal-files", work) {
            Ok(worker) => {
                job_sender.send(change).expect("the thread waits for it");
                self.rotation = Some(Rotation { stage: Stage::Naming(named, worker), ..rotation });
                Ok(())
            }
            Err(_) => change.name().and_then(|()| change.complete()),
        }
    }

    /// The next event of a change. `Ok`: the new file has its name, and its groups count. Call again until it returns `None`.
    ///
    /// Errors: `Io`, `Removed`: the new file has no name, or the old one is not complete.
    pub(super) fn poll_change(&mut self) -> Option<Result<(), WalError>> {
        let outcome = match &self.rotation {
            Some(Rotation { stage: Stage::Naming(news, _) | Stage::Completing(news, _), .. }) => {
                news.try_recv().ok()?
            }
            _ => return None,
        };
        let rotation = self.rotation.take()?;
        match (outcome, rotation.stage) {
            (Err(error), _) => Some(Err(error)),
            (Ok(()), Stage::Naming(news, worker)) => {
                self.rotation = Some(Rotation { stage: Stage::Completing(news, worker), ..rotation });
                Some(Ok(()))
            }
            (Ok(()), _) => {
                self.make_spare();
                self.look_at_completed();
                None
            }
        }
    }

    // --- The change to a file made here and now: blocks ---

    /// Makes the file that begins at `start`. On a full disk it takes the space that the present one has prepared and not used.
    ///
    /// Errors: `DiskFull`, `Io`: there is no next file, and the present one is as it was.
    pub(super) fn make_next(&mut self, start: &Vclock) -> Result<Segment, WalError> {
        match (self.make(start), &mut self.segment) {
            (Err(WalError::DiskFull { .. }), Some(segment)) => {
                let what = format!("cutting {}", segment.path.display());
                segment.give_back_prepared().map_err(WalError::io(what))?;
                self.make(start)
            }
            (made, _) => made,
        }
    }

    /// Completes the present file and goes on with `next`, from `make_next`.
    ///
    /// Errors: `Io`: whether the old file is complete, or the new one has its name, is unknown.
    pub(super) fn change_to(&mut self, next: Segment, start: Vclock) -> Result<(), WalError> {
        self.complete()?;
        self.begin(next, start)
    }

    /// Makes a file that has no name yet.
    fn make(&self, start: &Vclock) -> Result<Segment, WalError> {
        let path = self.config.dir.join(file_name(start.signature(), "xlog"));
        let head = self.head_of(start);
        let is_direct = self.config.mode == WalMode::Fsync;
        Segment::create(
            &self.config.files,
            &path,
            head,
            is_direct,
            self.config.prepare_chunk(),
            self.config.wal_max_size,
            self.config.in_flight_max,
        )
        .map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull => WalError::DiskFull { dir: self.config.dir.clone() },
            _ => WalError::Io { what: format!("making {}", path.display()), source },
        })
    }

    /// The bytes that a file begins with.
    fn head_of(&self, start: &Vclock) -> Vec<u8> {
        let meta = FileMeta::encode("XLOG", &self.config.instance_uuid, start, self.begin.as_ref());
        let mut head = meta.into_bytes();
        if self.config.mode == WalMode::Fsync {
            // Groups begin at page boundaries: an empty block fills the first page.
            let text = head.len();
            assert!(text < PAGE_BYTES, "a header fits a page");
            head.resize(PAGE_BYTES, 0);
            encode_filler(&mut head[text..]);
        }
        head
    }

    /// Gives a file its name. Groups go to it from now on.
    fn begin(&mut self, segment: Segment, start: Vclock) -> Result<(), WalError> {
        let what = format!("naming {}", segment.path.display());
        segment.publish(&*self.config.files).map_err(WalError::io(what))?;
        self.note.write(&*self.config.files, Newest { begin: start.signature(), end: None });
        self.begin = Some(start);
        self.segment = Some(segment);
        Ok(())
    }

    fn complete(&mut self) -> Result<(), WalError> {
        self.segment.take().map_or(Ok(()), |mut segment| segment.complete())
    }

    // --- Files that are complete ---

    /// Has complete files written once more without padding.
    pub(super) fn look_at_completed(&mut self) {
        if let Some(begin) = self.begin
            && self.config.mode != WalMode::None
        {
            self.rewrites.look(&self.config, begin.signature());
        }
    }

    /// See [`Journal::hold_files`](super::Journal::hold_files).
    pub(super) fn hold(&self) {
        self.rewrites.hold();
    }

    /// Ends `hold`.
    pub(super) fn release(&mut self) {
        self.rewrites.release();
        self.look_at_completed();
    }

    /// Completes the last file, in which the log ends at signature `end`. No change is under way. Blocks.
    ///
    /// Errors: `Io`: the file may be incomplete.
    pub(super) fn close(&mut self, end: i64) -> Result<(), WalError> {
        assert!(self.rotation.is_none(), "a change of files has ended");
        self.drop_spare();
        self.rewrites.stop();
        let path = self.segment.as_ref().map(|segment| segment.path.clone());
        self.complete()?;
        if let Some(begin) = &self.begin {
            self.note.write(&*self.config.files, Newest { begin: begin.signature(), end: Some(end) });
        }
        if let Some(path) = path {
            self.rewrites.rewrite_last(&self.config, &path);
        }
        Ok(())
    }
}

impl Drop for LogFiles {
    fn drop(&mut self) {
        // Whoever dropped the log may remove its files next, so no thread may be left.
        if let Some(Rotation { stage: Stage::Naming(_, worker) | Stage::Completing(_, worker), .. }) =
            self.rotation.take()
        {
            worker.join();
        }
        self.drop_spare();
        self.rewrites.stop();
    }
}
