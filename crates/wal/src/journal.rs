//! The log writer: transactions are appended to an open group, groups are written and acknowledged in order.
//!
//! ```text
//! commit -> open group (memory) -> submit: one write of whole pages, several in flight -> durable in order
//! ```
//!
//! In `fsync` mode a group overwrites preallocated pages of the segment with a synced write: no file metadata changes, so the
//! device does little more than the data. Space is prepared ahead by a thread of its own and a transaction is taken only
//! if its pages are there, so that a full disk is known before anything is promised. In `write` mode groups are plain
//! blocks appended through the page cache by the caller. In `none` nothing is written.
//!
//! The next file is made ahead by a thread, and when its turn has come, groups go to it at once. A thread gives the new file its header and its
//! name, and until that is done nothing that is in it counts: so nobody waits for a directory to be synced but those whose answers depend on it.
//! The old file is completed after that, when nobody waits.
//!
//! Invariant: `durable` moves over a group only when it and all before it are written. After one failed write everything behind
//! the durable position is lost and nothing is accepted again.

use crate::block::{self, Note, encode_filler, encode_group, encode_plain, group_pages};
use crate::error::WalError;
use crate::newest::{Newest, NewestNote};
use crate::rewrite::Rewrites;
use crate::row::{self, RowHeader};
use crate::segment::{Change, Segment};
use crate::snapshot::unfinished_name;
use crate::vclock::Vclock;
use crate::writer::{Done, Job, Writer};
use crate::xlog::{FileMeta, file_name};
use runtime::{AlignedBuffer, Clock, FileSystem, JoinHandle, Notifier, OpenMode, PAGE_BYTES, spawn_thread};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A group is handed over at the latest when it has so many bytes.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// A file whose successor could not be made takes so much more before that is tried again.
const ROTATE_AGAIN_BYTES: u64 = 4 << 20;

/// The name, but for the ending of what is unfinished, of a file that comes next.
const NEXT_FILE: &str = "next.xlog";
/// What a crash leaves of it.
pub const PREPARED_LOG: &str = "next.xlog.inprogress";

/// Transactions that make a group worth a third write in flight.
const GROUP_WORTH_IT: usize = 6;

/// When a transaction counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalMode {
    /// When it is on stable storage.
    Fsync,
    /// When the operating system has it.
    Write,
    /// At once; nothing is logged.
    None,
}

/// A place in the log: the sum of the vclock behind a transaction. Grows with every transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub i64);

/// What a journal needs to know.
#[derive(Clone)]
pub struct JournalConfig {
    /// Files.
    pub files: Arc<dyn FileSystem>,
    /// Clock for timestamps of rows.
    pub clock: Arc<dyn Clock>,
    /// Directory of the log.
    pub dir: PathBuf,
    /// When a transaction counts as durable.
    pub mode: WalMode,
    /// A file larger than this is followed by another.
    pub wal_max_size: u64,
    /// Identity for file headers.
    pub instance_uuid: String,
    /// Number of this instance in its replica set.
    pub replica_id: u32,
    /// Synced writes in flight; 0 writes on the calling thread.
    pub in_flight_max: usize,
    /// Bytes of transactions that may wait for the disk before `is_congested`.
    pub queue_bytes_max: usize,
    /// Space that is prepared at once, in bytes: when a file is made, and ahead of the writer.
    pub prepare_bytes: u64,
    /// A completed log that would lose so many bytes of padding, and a quarter of all, is written once more without it. `u64::MAX`: never.
    pub rewrite_bytes: u64,
}

impl JournalConfig {
    /// Whole pages, at least one.
    fn prepare_chunk(&self) -> u64 {
        self.prepare_bytes.max(1).next_multiple_of(PAGE_BYTES as u64)
    }
}

/// How far the log is.
#[derive(Debug)]
pub struct JournalState {
    /// Everything up to here survives a crash.
    pub durable: Position,
    /// The first position that was lost, and why; given once.
    pub failed: Option<(Position, WalError)>,
}

/// The file that comes next, while it has no name and no header.
enum Spare {
    /// Nobody makes it: it is made when it is needed.
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
    /// A thread names the new file. What comes of it comes first, what comes of the rest after it.
    Naming(Receiver<Result<(), WalError>>, JoinHandle<()>),
    /// The new file has its name, and the thread does the rest of it.
    Completing(Receiver<Result<(), WalError>>, JoinHandle<()>),
}

impl Rotation {
    /// True until the new file has its name.
    fn holds_back(&self) -> bool {
        !matches!(self.stage, Stage::Completing(..))
    }
}

struct InFlight {
    number: u64,
    end: Position,
    end_offset: u64,
    bytes: usize,
}

struct PendingRow {
    kind: u16,
    group_id: u32,
    end: usize,
}

/// The log of one instance. Owned and called by one thread.
pub struct Journal {
    config: JournalConfig,
    vclock: Vclock,
    /// The vclock behind the last group that was handed over.
    flushed: Vclock,
    /// Rows of the open group.
    group: Vec<u8>,
    group_transactions: usize,
    /// Rows of the transaction being built.
    bodies: Vec<u8>,
    rows: Vec<PendingRow>,
    segment: Option<Segment>,
    spare: Spare,
    rotation: Option<Rotation>,
    writer: Writer,
    in_flight: VecDeque<InFlight>,
    in_flight_bytes: usize,
    finished: BTreeMap<u64, io::Result<()>>,
    done: Vec<Done>,
    buffers: Vec<AlignedBuffer>,
    next_group: u64,
    appended: Position,
    durable: Position,
    /// In `write` mode: what the system has, which counts when the file that holds it has its name.
    written: Position,
    failure: Option<String>,
    failed: Option<(Position, WalError)>,
    /// Where the present file begins.
    previous: Option<Vclock>,
    note: Arc<NewestNote>,
    rewrites: Rewrites,
    /// Bytes logged since the last `rotate`, in all files.
    bytes_since_checkpoint: u64,
    now: f64,
}

impl Journal {
    /// Starts a new log file at `vclock`, which recovery found.
    pub fn open(config: JournalConfig, vclock: Vclock) -> Result<Self, WalError> {
        let notifier = Arc::new(Notifier::new().map_err(WalError::io("making a notifier"))?);
        let threads = if config.mode == WalMode::Fsync { config.in_flight_max } else { 0 };
        let writer = Writer::start(threads, notifier)?;
        let position = Position(vclock.signature());
        let note = Arc::new(NewestNote::new(&config.dir));
        let mut journal = Journal {
            config,
            vclock,
            flushed: vclock,
            group: Vec::new(),
            group_transactions: 0,
            bodies: Vec::new(),
            rows: Vec::new(),
            segment: None,
            spare: Spare::None,
            rotation: None,
            writer,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            finished: BTreeMap::new(),
            done: Vec::new(),
            buffers: Vec::new(),
            next_group: 1,
            appended: position,
            durable: position,
            written: position,
            failure: None,
            failed: None,
            previous: None,
            note,
            rewrites: Rewrites::default(),
            bytes_since_checkpoint: 0,
            now: 0.0,
        };
        if journal.config.mode != WalMode::None {
            journal.open_segment()?;
        }
        journal.make_spare();
        journal.look_at_completed();
        Ok(journal)
    }

    /// Begins a transaction.
    pub fn begin(&mut self) {
        self.bodies.clear();
        self.rows.clear();
        if self.group.is_empty() {
            self.now = self.config.clock.wall_ns() as f64 / 1e9;
        }
    }

    /// Adds a row to the transaction; `body` writes its map.
    pub fn row(&mut self, kind: u16, group_id: u32, body: impl FnOnce(&mut Vec<u8>)) {
        body(&mut self.bodies);
        self.rows.push(PendingRow { kind, group_id, end: self.bodies.len() });
    }

    /// Appends the transaction to the open group.
    ///
    /// Errors: `DiskFull`, `Failed`, `TooLarge`: nothing was appended and the caller takes its changes back.
    pub fn commit(&mut self) -> Result<Position, WalError> {
        self.check_failed()?;
        // A row's header takes less than 64 bytes.
        let row_bytes = self.bodies.len() + 64 * self.rows.len();
        if row_bytes > block::CONTENT_MAX / 2 {
            return Err(WalError::TooLarge { bytes: row_bytes, max: block::CONTENT_MAX / 2 });
        }
        if self.config.mode == WalMode::Fsync {
            self.reserve(row_bytes)?;
        }
        let is_single = self.rows.len() == 1;
        let mut start = 0;
        let mut tsn = 0;
        for (at, pending) in self.rows.iter().enumerate() {
            let component = if pending.group_id == 1 { 0 } else { self.config.replica_id };
            let lsn = self.vclock.get(component) + 1;
            self.vclock.set(component, lsn);
            if at == 0 {
                tsn = lsn;
            }
            let header = RowHeader {
                kind: pending.kind,
                replica_id: self.config.replica_id,
                group_id: pending.group_id,
                lsn,
                timestamp: self.now,
                tsn,
                is_commit: at + 1 == self.rows.len(),
            };
            if self.config.mode != WalMode::None {
                row::encode(&mut self.group, &header, is_single, &self.bodies[start..pending.end]);
            }
            start = pending.end;
        }
        self.appended = Position(self.vclock.signature());
        self.group_transactions += 1;
        if self.config.mode == WalMode::None {
            self.durable = self.appended;
        } else if self.group.len() >= GROUP_BYTES_MAX {
            self.send_group();
        }
        Ok(self.appended)
    }

    /// Makes sure that the open group with so many bytes more has its pages. Errors: `DiskFull`.
    fn reserve(&mut self, more: usize) -> Result<(), WalError> {
        let pages = group_pages(self.group.len() + more) as u64 * PAGE_BYTES as u64;
        let Some(segment) = &self.segment else {
            return self.open_segment();
        };
        if segment.offset + pages > self.config.wal_max_size.max(segment.grows_to)
            && segment.groups > 0
            && !self.is_next_file_coming()
        {
            let rotated = match self.begin_rotation() {
                Ok(false) => self.wait(self.appended).and_then(|()| self.rotate_plain()),
                begun => begun.map(|_| ()),
            };
            let Err(error) = rotated else { return self.reserve(more) };
            self.check_failed()?;
            // No descriptors, or a directory that takes no files: that is no reason to stop writing where there is room.
            if let Some(segment) = &mut self.segment {
                segment.grows_to = segment.offset + pages + ROTATE_AGAIN_BYTES;
                tracing::warn!("{error}; {} is written on", segment.path.display());
            }
            return self.reserve(more);
        }
        if segment.ensure(segment.offset + pages) {
            Ok(())
        } else {
            Err(WalError::DiskFull { dir: self.config.dir.clone() })
        }
    }

    /// Hands the open group to the disk if a write may start; called at the end of every turn of the event loop.
    pub fn submit(&mut self) {
        if self.group.is_empty() || self.failure.is_some() {
            return;
        }
        // A write costs the processor as much as several transactions do: beyond two in flight only groups that are worth it go.
        let max = match self.group_transactions {
            ..GROUP_WORTH_IT => self.config.in_flight_max.min(2),
            _ => self.config.in_flight_max,
        };
        if self.config.mode == WalMode::Write || self.in_flight.len() < max.max(1) {
            self.send_group();
        }
    }

    fn send_group(&mut self) {
        if self.config.mode == WalMode::Write {
            return self.write_plain();
        }
        let Some(segment) = &mut self.segment else { return };
        if let Spare::Ready(spare) = &self.spare
            && segment.is_prepared_upto(self.config.wal_max_size)
        {
            spare.prepare_alongside(segment.offset);
        }
        let mut buffer = self.buffers.pop().unwrap_or_default();
        segment.groups += 1;
        let note = Note { number: segment.groups, durable_offset: segment.durable_offset };
        encode_group(&self.group, note, &mut buffer);
        let bytes = buffer.bytes().len();
        let offset = segment.offset;
        segment.offset += bytes as u64;
        let number = self.next_group;
        self.next_group += 1;
        self.in_flight.push_back(InFlight { number, end: self.appended, end_offset: segment.offset, bytes });
        self.in_flight_bytes += bytes;
        self.bytes_since_checkpoint += bytes as u64;
        self.group.clear();
        self.group_transactions = 0;
        self.flushed = self.vclock;
        self.writer.submit(Job { number, file: Arc::clone(&segment.file), offset, buffer });
    }

    fn write_plain(&mut self) {
        let wanted = self.group.len() as u64;
        let is_over = self.segment.as_ref().is_some_and(|segment| {
            segment.groups > 0 && segment.offset + wanted > self.config.wal_max_size.max(segment.grows_to)
        });
        // With the next file at hand this group is the last one of the present file.
        let is_last_group = is_over && matches!(self.spare, Spare::Ready(_)) && self.rotation.is_none();
        if is_over
            && !is_last_group
            && !self.is_next_file_coming()
            && let Err(error) = self.rotate_plain()
            && let Some(segment) = &mut self.segment
        {
            segment.grows_to = segment.offset + wanted + ROTATE_AGAIN_BYTES;
            tracing::warn!("{error}; {} is written on", segment.path.display());
        }
        if self.failure.is_some() || !self.check_removed() {
            return;
        }
        let Some(segment) = &mut self.segment else { return };
        let mut block = Vec::with_capacity(self.group.len() + block::FIXHEADER_BYTES);
        encode_plain(&self.group, &mut block);
        match segment.file.write_all_at(&block, segment.offset) {
            Ok(()) => {
                segment.offset += block.len() as u64;
                segment.groups += 1;
                self.bytes_since_checkpoint += block.len() as u64;
                self.group.clear();
                self.group_transactions = 0;
                self.flushed = self.vclock;
                segment.flush_ahead(&self.config);
                self.written = self.appended;
                if !self.is_held_back() {
                    self.durable = self.written;
                }
                if is_last_group && let Err(error) = self.begin_rotation() {
                    self.write_on(&error);
                }
            }
            Err(source) => {
                let what = format!("writing {}", segment.path.display());
                self.fail(WalError::Io { what, source });
            }
        }
    }

    /// Takes notice of finished writes.
    pub fn poll(&mut self) -> JournalState {
        self.writer.take_done(&mut self.done);
        for done in self.done.drain(..) {
            self.finished.insert(done.number, done.result);
            if self.buffers.len() < 16 && done.buffer.bytes().len() <= 1 << 20 {
                self.buffers.push(done.buffer);
            }
        }
        self.poll_files();
        // Asked behind the writes and before anybody is told of them.
        let may_count = self.finished.is_empty() || self.check_removed();
        let is_held_back = self.is_held_back();
        let last_counting = match &self.rotation {
            Some(rotation) if is_held_back => rotation.last_group,
            _ => u64::MAX,
        };
        while let Some(first) = self.in_flight.front().filter(|first| may_count && first.number <= last_counting) {
            let Some(result) = self.finished.remove(&first.number) else { break };
            match result {
                Ok(()) => {
                    self.durable = first.end;
                    if let Some(segment) = &mut self.segment
                        && !is_held_back
                    {
                        segment.durable_offset = first.end_offset;
                    }
                    self.in_flight_bytes -= first.bytes;
                    self.in_flight.pop_front();
                }
                Err(source) => {
                    let what = "writing the log".to_string();
                    self.in_flight.clear();
                    self.fail(WalError::Io { what, source });
                }
            }
        }
        self.begin_naming();
        JournalState { durable: self.durable, failed: self.failed.take() }
    }

    /// Has the next file made by a thread.
    fn make_spare(&mut self) {
        let is_wanted = self.config.mode != WalMode::None && self.config.in_flight_max > 0;
        if !is_wanted || !matches!(self.spare, Spare::None) {
            return;
        }
        let (sender, made) = channel();
        let config = self.config.clone();
        let notifier = Arc::clone(self.writer.notifier());
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

    /// True if a change of files is under way, or only waits for the next file: the present one grows meanwhile, and `rotate` would wait.
    pub fn is_next_file_coming(&self) -> bool {
        self.rotation.is_some() || matches!(self.spare, Spare::Making(..))
    }

    /// True while what is in the present file does not count, because that has no name yet.
    fn is_held_back(&self) -> bool {
        self.rotation.as_ref().is_some_and(Rotation::holds_back)
    }

    /// The next file cannot have its turn: the present one is written on.
    fn write_on(&mut self, error: &WalError) {
        if let Some(segment) = &mut self.segment {
            segment.grows_to = segment.offset + ROTATE_AGAIN_BYTES;
            tracing::warn!("{error}; {} is written on", segment.path.display());
        }
    }

    /// Lets the groups from now on go to the next file. False if there is none yet.
    ///
    /// Errors: the directory takes no names, or there is no descriptor to sync it with. Nothing has changed.
    fn begin_rotation(&mut self) -> Result<bool, WalError> {
        let (Spare::Ready(spare), Some(segment), None) = (&mut self.spare, &self.segment, &self.rotation) else {
            return Ok(false);
        };
        // What the thread will do must not fail for a reason that could have been known.
        let files = &self.config.files;
        let path = self.config.dir.join(file_name(self.vclock.signature(), "xlog"));
        if spare.path != path {
            files
                .rename(&unfinished_name(&spare.path), &unfinished_name(&path))
                .map_err(WalError::io(format!("making {}", path.display())))?;
            spare.path = path;
        }
        files.open(&segment.path, OpenMode::READ).map_err(WalError::io(format!("making {}", spare.path.display())))?;
        if !self.group.is_empty() {
            assert!(self.config.mode == WalMode::Fsync, "in `write` mode the open group is written before");
            self.send_group();
        }
        let (Spare::Ready(spare), Some(old)) = (std::mem::replace(&mut self.spare, Spare::None), self.segment.take())
        else {
            return Ok(false);
        };
        let mut next = *spare;
        let start = self.vclock;
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
        self.previous = Some(start);
        self.segment = Some(next);
        let stage = Stage::Draining(Box::new(change));
        self.rotation = Some(Rotation { last_group: self.next_group - 1, stage });
        self.begin_naming();
        Ok(true)
    }

    /// Once the old file has all its groups, a thread does the rest.
    fn begin_naming(&mut self) {
        let Some(rotation) = self.rotation.take() else { return };
        let is_drained = self.in_flight.front().is_none_or(|first| first.number > rotation.last_group);
        let mut change = match rotation.stage {
            Stage::Draining(change) if is_drained && self.failure.is_none() => change,
            stage => {
                self.rotation = Some(Rotation { stage, ..rotation });
                return;
            }
        };
        let (sender, named) = channel();
        let notifier = Arc::clone(self.writer.notifier());
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
            }
            // What a thread would have done is done here.
            Err(_) => {
                if let Err(error) = change.name().and_then(|()| change.complete()) {
                    self.in_flight.clear();
                    self.fail(error);
                }
            }
        }
    }

    /// Takes notice of files that were made or named.
    fn poll_files(&mut self) {
        let news = match &self.rotation {
            Some(Rotation { stage: Stage::Naming(news, _) | Stage::Completing(news, _), .. }) => news.try_recv().ok(),
            _ => None,
        };
        if let Some(result) = news
            && let Some(rotation) = self.rotation.take()
        {
            match (result, rotation.stage) {
                (Err(error), _) => {
                    self.in_flight.clear();
                    self.fail(error);
                }
                (Ok(()), Stage::Naming(news, worker)) => {
                    if self.config.mode == WalMode::Write {
                        self.durable = self.written;
                    }
                    self.rotation = Some(Rotation { stage: Stage::Completing(news, worker), ..rotation });
                    // That may have come at once.
                    return self.poll_files();
                }
                (Ok(()), _) => {
                    self.make_spare();
                    self.look_at_completed();
                }
            }
        }
        let made = match &self.spare {
            Spare::Making(made, _) => made.try_recv().ok(),
            _ => None,
        };
        match made {
            Some(Ok(segment)) => {
                segment.prepare_ahead();
                self.spare = Spare::Ready(Box::new(segment));
            }
            // Tried again when the file is needed.
            Some(Err(_)) => self.spare = Spare::None,
            None => {}
        }
    }

    /// Has logs that are complete lose their padding.
    fn look_at_completed(&mut self) {
        if let Some(start) = self.previous
            && self.config.mode != WalMode::None
        {
            self.rewrites.look(&self.config, start.signature());
        }
    }

    /// Until `release_files` no log is written once more: somebody copies them. Blocks shortly.
    pub fn hold_files(&self) {
        self.rewrites.hold();
    }

    /// Ends `hold_files`.
    pub fn release_files(&mut self) {
        self.rewrites.release();
        self.look_at_completed();
    }

    /// Blocks the thread until no change of files is under way: then all logs but the newest are complete.
    pub fn wait_files(&mut self) -> Result<(), WalError> {
        while self.rotation.is_some() {
            self.writer.notifier().clear();
            self.submit();
            let state = self.poll();
            self.failed = state.failed;
            self.check_failed()?;
            if self.rotation.is_some() {
                self.writer.notifier().wait(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    /// Ends the making of the next file, and takes it away.
    fn drop_spare(&mut self) {
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

    /// Nothing behind the durable position counts any more.
    fn fail(&mut self, error: WalError) {
        if self.failure.is_none() {
            self.failure = Some(error.to_string());
            #[cfg(feature = "planted-bugs")]
            if runtime::planted::is_planted(runtime::planted::Plant::ReusePosition) {
                // As if it could be trusted again.
                self.failure = None;
                self.vclock.set(self.config.replica_id, self.durable.0 - self.vclock.get(0));
                self.flushed = self.vclock;
                self.appended = self.durable;
                self.group.clear();
                return;
            }
            self.failed = Some((Position(self.durable.0 + 1), error));
            self.group.clear();
        }
    }

    /// Blocks the thread until a position is durable. For start, stop and rotation.
    pub fn wait(&mut self, position: Position) -> Result<(), WalError> {
        loop {
            // Before the look, so that what ends after it is noticed.
            self.writer.notifier().clear();
            self.submit();
            let state = self.poll();
            // Put back: the caller of `poll` must hear of it.
            self.failed = state.failed;
            self.check_failed()?;
            if self.durable >= position {
                return Ok(());
            }
            self.writer.notifier().wait(Duration::from_millis(100));
        }
    }

    /// Newest position of a transaction.
    pub fn appended(&self) -> Position {
        self.appended
    }

    /// Everything up to here survives a crash.
    pub fn durable(&self) -> Position {
        self.durable
    }

    /// The vclock behind the newest transaction.
    pub fn vclock(&self) -> Vclock {
        self.vclock
    }

    /// Readable when `poll` has news.
    pub fn notifier(&self) -> &Arc<Notifier> {
        self.writer.notifier()
    }

    /// True if more bytes wait for the disk than the bound.
    pub fn is_congested(&self) -> bool {
        self.group.len() + self.in_flight_bytes > self.config.queue_bytes_max
    }

    /// Bytes logged since the last checkpoint called `rotate`.
    pub fn bytes_since_checkpoint(&self) -> u64 {
        self.bytes_since_checkpoint
    }

    /// Counts these, too, as logged since the last checkpoint: a file was begun for another reason.
    pub fn count_bytes(&mut self, bytes: u64) {
        self.bytes_since_checkpoint += bytes;
    }

    /// Begins a new file at the present position, so that a checkpoint's logs begin where it ends. Waits for what is in flight if the next file
    /// is not made yet.
    pub fn rotate(&mut self) -> Result<(), WalError> {
        self.bytes_since_checkpoint = 0;
        match self.config.mode {
            WalMode::None => Ok(()),
            WalMode::Write => {
                self.submit();
                self.check_failed()?;
                let has_rows = self.segment.as_ref().is_some_and(|segment| segment.groups > 0);
                if has_rows && self.begin_rotation()? {
                    return self.check_failed();
                }
                self.rotate_plain()
            }
            WalMode::Fsync => {
                self.check_failed()?;
                if self.segment.as_ref().is_some_and(|segment| segment.groups == 0) && self.group.is_empty() {
                    return Ok(());
                }
                if self.begin_rotation()? {
                    return self.check_failed();
                }
                self.wait(self.appended)?;
                self.rotate_plain()
            }
        }
    }

    /// The new file is made under another name first, so that the old one is completed only when there is a next.
    ///
    /// Errors: `Failed`, for good: whether the old file is complete, or the new one has its name, is unknown, and only the newest file
    /// may be incomplete. Others: there is no new file; the old one is as it was and is written on.
    fn rotate_plain(&mut self) -> Result<(), WalError> {
        self.wait_files()?;
        // Made here and now, under the same name.
        self.drop_spare();
        let has_rows = self.segment.as_ref().is_some_and(|segment| segment.groups > 0);
        if !has_rows {
            return Ok(());
        }
        if !self.check_removed() {
            return self.check_failed();
        }
        let (next, start) = match self.make_segment() {
            Err(WalError::DiskFull { .. }) => {
                self.give_back_prepared()?;
                self.make_segment()?
            }
            made => made?,
        };
        let begun = self.close_segment().and_then(|()| self.begin_segment(next, start));
        if let Err(error) = begun {
            self.fail(error);
        }
        self.make_spare();
        self.check_failed()
    }

    /// On a full disk the next file finds its space where the present one has prepared more than it takes.
    fn give_back_prepared(&mut self) -> Result<(), WalError> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        segment.give_back_prepared().map_err(WalError::io(format!("cutting {}", segment.path.display())))
    }

    /// Completes the file that is being written.
    fn close_segment(&mut self) -> Result<(), WalError> {
        self.segment.take().map_or(Ok(()), |mut segment| segment.complete())
    }

    fn check_failed(&self) -> Result<(), WalError> {
        match &self.failure {
            Some(reason) => Err(WalError::Failed(reason.clone())),
            None => Ok(()),
        }
    }

    /// A file without a name keeps nothing: the log has failed. False then.
    fn check_removed(&mut self) -> bool {
        let segment = match &self.rotation {
            // The next one has its name yet to get.
            Some(Rotation { stage: Stage::Draining(change), .. }) => Some(&change.old),
            Some(Rotation { stage: Stage::Naming(..), .. }) => None,
            Some(_) | None => self.segment.as_ref(),
        };
        // One that cannot be asked is as good as any: its writes tell.
        let removed = segment.filter(|segment| segment.file.is_removed().unwrap_or(false));
        let Some(file) = removed.map(|segment| segment.path.clone()) else { return true };
        self.fail(WalError::Removed { file });
        false
    }

    fn open_segment(&mut self) -> Result<(), WalError> {
        let (segment, start) = self.make_segment()?;
        self.begin_segment(segment, start)
    }

    /// Makes the next file, which has no name yet, and the vclock that it begins with.
    fn make_segment(&self) -> Result<(Segment, Vclock), WalError> {
        // Rows of the open group belong to the new file and are behind its vclock.
        let start = if self.group.is_empty() { self.vclock } else { self.flushed };
        let path = self.config.dir.join(file_name(start.signature(), "xlog"));
        let head = self.head_of(&start);
        let is_direct = self.config.mode == WalMode::Fsync;
        let segment = Segment::create(
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
        })?;
        Ok((segment, start))
    }

    /// The bytes that a file begins with.
    fn head_of(&self, start: &Vclock) -> Vec<u8> {
        let meta = FileMeta::encode("XLOG", &self.config.instance_uuid, start, self.previous.as_ref());
        let mut head = meta.into_bytes();
        if self.config.mode == WalMode::Fsync {
            // Groups begin at page boundaries: an empty block fills the first page.
            let text = head.len();
            head.resize(PAGE_BYTES, 0);
            encode_filler(&mut head[text..]);
        }
        head
    }

    /// Gives a file its name and writes to it from now on.
    fn begin_segment(&mut self, segment: Segment, start: Vclock) -> Result<(), WalError> {
        let what = format!("naming {}", segment.path.display());
        segment.publish(&*self.config.files).map_err(WalError::io(what))?;
        self.note.write(&*self.config.files, Newest { begin: start.signature(), end: None });
        self.previous = Some(start);
        self.segment = Some(segment);
        Ok(())
    }

    /// Writes everything out and completes the file.
    pub fn close(mut self) -> Result<(), WalError> {
        if self.config.mode != WalMode::None {
            self.wait(self.appended)?;
            self.wait_files()?;
            self.drop_spare();
            self.rewrites.stop();
            let path = self.segment.as_ref().map(|segment| segment.path.clone());
            self.close_segment()?;
            if let Some(start) = &self.previous {
                let newest = Newest { begin: start.signature(), end: Some(self.vclock.signature()) };
                self.note.write(&*self.config.files, newest);
            }
            if let Some(path) = path {
                self.rewrites.rewrite_last(&self.config, &path);
            }
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Files may be taken away behind it.
        if let Some(Rotation { stage: Stage::Naming(_, worker) | Stage::Completing(_, worker), .. }) =
            self.rotation.take()
        {
            worker.join();
        }
        self.drop_spare();
        self.rewrites.stop();
    }
}
