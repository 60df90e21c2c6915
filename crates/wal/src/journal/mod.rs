//! The log writer: transactions are appended to an open group, groups are written and acknowledged in order.
//!
//! ```text
//! commit -> open group (memory) -> submit: one write of whole pages, several in flight -> durable in order
//! ```
//!
//! This file has groups and positions; [`files`] has the change from one file to the next, [`write_mode`] what differs in that mode.
//!
//! In `fsync` mode a group overwrites preallocated pages of the segment with a synced write: no file metadata changes, so the
//! device does little more than the data. A thread of its own prepares space ahead, and a transaction is taken only if its pages
//! are there, so that a full disk is known before anything is promised. In `write` mode the caller appends groups as plain
//! blocks through the page cache. In `none` nothing is written.
//!
//! Invariant: `durable` moves over a group only when it and all before it are written, and the file that holds it has its name.
//! After one failed write everything behind the durable position is lost and nothing is accepted again.

mod config;
mod files;
mod write_mode;

use crate::block::{self, Note, encode_group, group_pages};
use crate::error::WalError;
use crate::row::{self, RowHeader};
use crate::vclock::Vclock;
use crate::writer::{Done, Job, Writer};
pub use config::{JournalConfig, WalMode};
use files::LogFiles;
pub use files::PREPARED_LOG;
use runtime::{AlignedBuffer, Notifier, PAGE_BYTES};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tuple::Lsn;

/// Bytes of the rows of one transaction, at most.
pub const TRANSACTION_BYTES_MAX: usize = block::CONTENT_MAX / 2;

/// A group with this many bytes is handed over without waiting for the end of the turn.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// Transactions that make a group worth another write in flight.
const GROUP_WORTH_IT: usize = 6;

/// A place in the log: the sum of the vclock behind a transaction. Grows with every transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub i64);

/// How far the log is.
#[derive(Debug)]
pub struct JournalState {
    /// Everything up to here survives a crash.
    pub durable: Position,
    /// The first position that was lost, and why; given once.
    pub failed: Option<(Position, WalError)>,
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
    /// Dropped before the writer: its threads notify through that.
    files: LogFiles,
    writer: Writer,
    in_flight: VecDeque<InFlight>,
    in_flight_bytes: usize,
    finished: BTreeMap<u64, io::Result<()>>,
    done: Vec<Done>,
    buffers: Vec<AlignedBuffer>,
    next_group: u64,
    appended: Position,
    durable: Position,
    /// The calling thread always has something to do.
    is_loaded: bool,
    /// In `write` mode: what the system has, which counts when the file that holds it has its name.
    written: Position,
    failure: Option<String>,
    failed: Option<(Position, WalError)>,
    /// Bytes logged since the last `rotate`, in all files.
    bytes_since_checkpoint: u64,
    now: f64,
}

impl Journal {
    /// Starts a new log file at `vclock`, which recovery found.
    ///
    /// Errors: `DiskFull`, `Io`: there is no log.
    pub fn open(config: JournalConfig, vclock: Vclock) -> Result<Self, WalError> {
        let notifier = Arc::new(Notifier::new().map_err(WalError::io("making a notifier"))?);
        let threads = if config.mode == WalMode::Fsync { config.in_flight_max } else { 0 };
        let writer = Writer::start(threads, notifier)?;
        let position = Position(vclock.signature());
        let files = LogFiles::new(config.clone(), Arc::clone(writer.notifier()));
        let mut journal = Journal {
            config,
            vclock,
            flushed: vclock,
            group: Vec::new(),
            group_transactions: 0,
            bodies: Vec::new(),
            rows: Vec::new(),
            files,
            writer,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            finished: BTreeMap::new(),
            done: Vec::new(),
            buffers: Vec::new(),
            next_group: 1,
            appended: position,
            durable: position,
            is_loaded: false,
            written: position,
            failure: None,
            failed: None,
            bytes_since_checkpoint: 0,
            now: 0.0,
        };
        if journal.config.mode != WalMode::None {
            journal.files.open(vclock)?;
        }
        journal.files.make_spare();
        journal.files.look_at_completed();
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
        let start = self.bodies.len();
        body(&mut self.bodies);
        debug_assert_eq!(tuple::msgpack::skip(&self.bodies[start..]), self.bodies.len() - start, "a body is one value");
        self.rows.push(PendingRow { kind, group_id, end: self.bodies.len() });
    }

    /// Keeps the first rows of the transaction and forgets the others.
    pub fn keep_rows(&mut self, count: usize) {
        self.rows.truncate(count);
        self.bodies.truncate(self.rows.last().map_or(0, |row| row.end));
    }

    /// Appends the transaction to the open group.
    ///
    /// Errors: `DiskFull`, `Failed`, `TooLarge`: nothing was appended and the caller takes its changes back.
    pub fn commit(&mut self) -> Result<Position, WalError> {
        self.check_failed()?;
        // A row's header takes less than 64 bytes.
        let row_bytes = self.bodies.len() + 64 * self.rows.len();
        if row_bytes > TRANSACTION_BYTES_MAX {
            return Err(WalError::TooLarge { bytes: row_bytes, max: TRANSACTION_BYTES_MAX });
        }
        if self.config.mode == WalMode::Fsync {
            self.reserve(row_bytes)?;
        }
        let is_single = self.rows.len() == 1;
        let mut start = 0;
        let mut tsn = Lsn(0);
        for (at, pending) in self.rows.iter().enumerate() {
            let component = if pending.group_id == 1 { 0 } else { self.config.replica_id };
            let lsn = self.vclock.get(component).next();
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
        debug_assert_eq!(start, self.bodies.len(), "every byte belongs to a row");
        let position = Position(self.vclock.signature());
        debug_assert_eq!(position.0, self.appended.0 + self.rows.len() as i64, "each row takes the next position");
        self.appended = position;
        self.group_transactions += 1;
        if self.config.mode == WalMode::None {
            self.durable = self.appended;
        } else if self.group.len() >= GROUP_BYTES_MAX {
            self.send_group();
        }
        Ok(self.appended)
    }

    /// Makes sure that the open group with `more` bytes has its pages.
    ///
    /// Errors: `DiskFull`, `Failed`.
    fn reserve(&mut self, more: usize) -> Result<(), WalError> {
        let pages = group_pages(self.group.len() + more) as u64 * PAGE_BYTES as u64;
        let Some(segment) = &self.files.segment else {
            return self.files.open(self.next_file_start());
        };
        if self.files.is_full(pages) && !self.files.is_next_coming() {
            let rotated = match self.begin_rotation() {
                Ok(false) => self.wait(self.appended).and_then(|()| self.rotate_plain()),
                begun => begun.map(|_| ()),
            };
            let Err(error) = rotated else { return self.reserve(more) };
            self.check_failed()?;
            // No descriptors, or a directory that takes no files, is no reason to stop writing where there is room.
            self.files.write_on(pages, &error);
            return self.reserve(more);
        }
        if segment.ensure(segment.offset + pages) {
            Ok(())
        } else {
            Err(WalError::DiskFull { dir: self.config.dir.clone() })
        }
    }

    /// Takes notice whether the calling thread always has something to do: then the disk is told of small groups by a thread of the system's, which costs more
    /// time until they are durable, and takes less of the caller's.
    pub fn note_load(&mut self, is_loaded: bool) {
        self.is_loaded = is_loaded;
    }

    /// Hands the open group to the disk if a write may start; called at the end of every turn of the event loop.
    pub fn submit(&mut self) {
        if self.group.is_empty() || self.failure.is_some() {
            return;
        }
        // A write costs the processor as much as several transactions do: beyond two in flight only groups that are worth it go. While the thread
        // always has something to do, beyond one: what waits becomes a larger group meanwhile.
        let max = match self.group_transactions {
            ..GROUP_WORTH_IT if self.is_loaded => 1,
            ..GROUP_WORTH_IT => self.config.in_flight_max.min(2),
            _ => self.config.in_flight_max,
        };
        if self.config.mode == WalMode::Write || self.in_flight.len() < max.max(1) {
            self.send_group();
        }
    }

    fn send_group(&mut self) {
        debug_assert!(!self.group.is_empty() && self.failure.is_none(), "a group has rows, and the log is trusted");
        if self.config.mode == WalMode::Write {
            return self.write_plain();
        }
        self.files.prepare_spare_alongside();
        let Some(segment) = &mut self.files.segment else { return };
        let mut buffer = self.buffers.pop().unwrap_or_default();
        segment.groups += 1;
        let note = Note { number: segment.groups, durable_offset: segment.durable_offset };
        encode_group(&self.group, note, &mut buffer);
        let bytes = buffer.bytes().len();
        let offset = segment.offset;
        assert!(
            offset.is_multiple_of(PAGE_BYTES as u64) && bytes.is_multiple_of(PAGE_BYTES),
            "a group has pages of its own: no other write can tear it"
        );
        assert!(segment.durable_offset <= offset, "nothing behind the last group is durable");
        segment.offset += bytes as u64;
        debug_assert!(segment.is_prepared_upto(segment.offset), "a transaction is taken only if its pages are there");
        // To tell the disk takes as long as a few small transactions, some of which wait for it: large groups hardly notice.
        let is_left_to_others = self.is_loaded && self.group_transactions < GROUP_WORTH_IT;
        let number = self.next_group;
        self.next_group += 1;
        debug_assert!(self.in_flight.back().is_none_or(|last| last.number + 1 == number && last.end < self.appended));
        self.in_flight.push_back(InFlight { number, end: self.appended, end_offset: segment.offset, bytes });
        self.in_flight_bytes += bytes;
        self.bytes_since_checkpoint += bytes as u64;
        let file = Arc::clone(&segment.file);
        self.writer.submit(Job { number, file, offset, buffer, is_left_to_others });
        self.end_group();
    }

    /// The open group was handed over: the next one begins.
    fn end_group(&mut self) {
        self.group.clear();
        self.group_transactions = 0;
        self.flushed = self.vclock;
    }

    /// Everything up to `position` survives a crash.
    fn set_durable(&mut self, position: Position) {
        assert!(
            self.durable <= position && position <= self.appended,
            "the durable position only grows, up to the last"
        );
        self.durable = position;
    }

    /// Collects finished writes and moves the durable position.
    pub fn poll(&mut self) -> JournalState {
        self.writer.take_done(&mut self.done);
        for done in self.done.drain(..) {
            debug_assert!(done.number < self.next_group, "only what was handed over ends");
            self.finished.insert(done.number, done.result);
            if self.buffers.len() < 16 && done.buffer.bytes().len() <= 1 << 20 {
                self.buffers.push(done.buffer);
            }
        }
        self.poll_files();
        // Asked after the writes and before they are acknowledged.
        let may_count = self.finished.is_empty() || self.check_removed();
        let held_back_behind = self.files.holds_back();
        let last_counting = held_back_behind.unwrap_or(u64::MAX);
        while let Some(first) = self.in_flight.front().filter(|first| may_count && first.number <= last_counting) {
            let InFlight { number, end, end_offset, bytes } = *first;
            let Some(result) = self.finished.remove(&number) else { break };
            match result {
                Ok(()) => {
                    self.set_durable(end);
                    if let Some(segment) = &mut self.files.segment
                        && held_back_behind.is_none()
                    {
                        segment.durable_offset = end_offset;
                    }
                    self.in_flight_bytes -= bytes;
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

    /// True if a change of files is under way, or only waits for the next file: the present one grows meanwhile, and `rotate` would wait.
    pub fn is_next_file_coming(&self) -> bool {
        self.files.is_next_coming()
    }

    /// Where a file would begin now. Rows of the open group would belong to it, so they are behind its vclock.
    fn next_file_start(&self) -> Vclock {
        if self.group.is_empty() { self.vclock } else { self.flushed }
    }

    /// Lets the groups from now on go to the next file. False if there is none yet.
    ///
    /// Errors: `Io`: the directory takes no names, or there is no descriptor to sync it with. Nothing has changed.
    fn begin_rotation(&mut self) -> Result<bool, WalError> {
        let start = self.vclock;
        if !self.files.prepare_change(&start)? {
            return Ok(false);
        }
        if !self.group.is_empty() {
            assert!(self.config.mode == WalMode::Fsync, "in `write` mode the open group is written before");
            self.send_group();
        }
        self.files.begin_change(start, self.next_group - 1);
        self.begin_naming();
        Ok(true)
    }

    /// Has the next file named once the old one has all its groups.
    fn begin_naming(&mut self) {
        let Some(last_group) = self.files.draining() else { return };
        let is_drained = self.in_flight.front().is_none_or(|first| first.number > last_group);
        if is_drained
            && self.failure.is_none()
            && let Err(error) = self.files.begin_naming()
        {
            self.in_flight.clear();
            self.fail(error);
        }
    }

    /// Collects files that were made or named.
    fn poll_files(&mut self) {
        while let Some(news) = self.files.poll_change() {
            match news {
                Ok(()) if self.config.mode == WalMode::Write => self.set_durable(self.written),
                Ok(()) => {}
                Err(error) => {
                    self.in_flight.clear();
                    self.fail(error);
                }
            }
        }
        self.files.poll_spare();
    }

    /// Until `release_files` no complete log is replaced by its rewritten form, so that they can be copied. Blocks while one is being replaced.
    pub fn hold_files(&self) {
        self.files.hold();
    }

    /// Ends `hold_files`.
    pub fn release_files(&mut self) {
        self.files.release();
    }

    /// Blocks the thread until no change of files is under way: then all logs but the newest are complete.
    ///
    /// Errors: `Failed`.
    pub fn wait_files(&mut self) -> Result<(), WalError> {
        while self.files.is_changing() {
            self.writer.notifier().clear();
            self.submit();
            let state = self.poll();
            self.failed = state.failed;
            self.check_failed()?;
            if self.files.is_changing() {
                self.writer.notifier().wait(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    /// Nothing behind the durable position counts any more.
    fn fail(&mut self, error: WalError) {
        if self.failure.is_none() {
            self.failure = Some(error.to_string());
            #[cfg(feature = "planted-bugs")]
            if runtime::planted::is_planted(runtime::planted::Plant::ReusePosition) {
                // As if it could be trusted again.
                self.failure = None;
                let local = self.vclock.get(0).0;
                self.vclock.set(self.config.replica_id, tuple::Lsn(self.durable.0 - local));
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
    ///
    /// Errors: `Failed`.
    pub fn wait(&mut self, position: Position) -> Result<(), WalError> {
        loop {
            // Cleared before the poll, so that a write that ends after the poll is noticed.
            self.writer.notifier().clear();
            self.submit();
            let state = self.poll();
            // Put back: it must reach the next caller of `poll`.
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

    /// Adds bytes to those logged since the last checkpoint, after a `rotate` for another reason.
    pub fn count_bytes(&mut self, bytes: u64) {
        self.bytes_since_checkpoint += bytes;
    }

    /// Begins a new file at the present position, so that a checkpoint's logs begin where it ends. Blocks until everything in flight is written
    /// if the next file is not made yet.
    ///
    /// Errors: `Failed`, for good. `DiskFull`, `Io`: there is no new file, and the present one is written on.
    pub fn rotate(&mut self) -> Result<(), WalError> {
        self.bytes_since_checkpoint = 0;
        match self.config.mode {
            WalMode::None => Ok(()),
            WalMode::Write => self.rotate_written(),
            WalMode::Fsync => {
                self.check_failed()?;
                if self.files.segment.is_some() && !self.files.has_rows() && self.group.is_empty() {
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

    /// Changes to a file that is made here and now, under another name first, so that the old one is completed only when there is a next.
    ///
    /// Errors: `Failed`, for good: whether the old file is complete, or the new one has its name, is unknown, and only the newest file
    /// may be incomplete. Others: there is no new file; the old one is as it was and is written on.
    fn rotate_plain(&mut self) -> Result<(), WalError> {
        self.wait_files()?;
        // The file that is made here has the name of the spare one.
        self.files.drop_spare();
        if !self.files.has_rows() {
            return Ok(());
        }
        if !self.check_removed() {
            return self.check_failed();
        }
        let start = self.next_file_start();
        let next = self.files.make_next(&start)?;
        if let Err(error) = self.files.change_to(next, start) {
            self.fail(error);
        }
        self.files.make_spare();
        self.check_failed()
    }

    fn check_failed(&self) -> Result<(), WalError> {
        match &self.failure {
            Some(reason) => Err(WalError::Failed(reason.clone())),
            None => Ok(()),
        }
    }

    /// A file without a name keeps nothing: the log has failed. False then.
    fn check_removed(&mut self) -> bool {
        let Some(file) = self.files.removed() else { return true };
        self.fail(WalError::Removed { file });
        false
    }

    /// Writes everything out and completes the file. Blocks.
    ///
    /// Errors: `Failed`; `Io`: the last file may be incomplete, which the next start reports.
    pub fn close(mut self) -> Result<(), WalError> {
        if self.config.mode != WalMode::None {
            self.wait(self.appended)?;
            self.wait_files()?;
            self.files.close(self.vclock.signature())?;
        }
        Ok(())
    }
}
