//! Checkpoints: a snapshot of all rows at one moment, written by another thread while writes go on.
//!
//! The moment is between two transactions: the log begins a new file there, so the snapshot's vclock is exactly what its rows
//! are. The snapshot gets its name only when everything it covers is durable in the log; a crash at any time leaves the old
//! one the newest.

use crate::database::{Database, State};
use crate::disposal::Garbage;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use crate::session_spaces::SessionRows;
use runtime::{FileSystem, JoinHandle, Pace, idle_priority, spawn_thread};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use storage::MemoryView;
use tuple::{Lsn, SpaceId, msgpack};
use wal::{FinishedSnapshot, Position, SnapshotWriter, Vclock, WalError};

use crate::statement::row_kind;
use runtime::fiber::{self, FiberId};
use wire::key;

/// While others are busy a checkpoint works one part of so many of the time: it reads every row, and so do they. Slower, it would keep more rows
/// that are replaced meanwhile.
const PACE_SHARE: u32 = 4;
/// Rows that are written in some ten microseconds.
const ROWS_BETWEEN_RESTS: u64 = 64;

/// One space in a snapshot.
struct SpaceView {
    id: SpaceId,
    group_id: u32,
    view: MemoryView,
    /// Rows that are about spaces of sessions stay out.
    left_out: Arc<SessionRows>,
}

// The views are read by the worker while the rows stay where they are; see `MemoryView`.
type Outcome = (std::result::Result<FinishedSnapshot, WalError>, Vec<SpaceView>);

/// The checkpoint that is being made, if any.
#[derive(Default)]
pub(crate) struct CheckpointState {
    running: Option<Running>,
    /// Somebody has asked for it.
    is_asked_for: bool,
    /// Monotonic time of the last one.
    last_ns: u64,
    waiters: Vec<FiberId>,
    /// How the last one ended. Those who wait for it hold it: the next one begins perhaps before they run.
    result: Rc<RefCell<Option<Result<()>>>>,
    /// Bytes of rows that the last one has kept although they were replaced.
    kept_bytes: usize,
    /// A finished one that waits for the log.
    finished: Option<(FinishedSnapshot, Position)>,
    /// One that gets its name.
    publishing: Option<Publishing>,
    /// Nothing of what old files hold is removed: a backup copies it.
    pub(crate) keeps_files: Arc<AtomicBool>,
}

struct Running {
    outcome: Receiver<Outcome>,
    position: Position,
    /// Tells the worker to leave off.
    is_stopped: Arc<AtomicBool>,
    /// None if it works on the calling thread.
    worker: Option<JoinHandle<()>>,
}

struct Publishing {
    outcome: Receiver<std::result::Result<(), WalError>>,
    /// None if it was done on the calling thread.
    worker: Option<JoinHandle<()>>,
}

/// The directories that old files are removed from, and what is kept.
struct Housekeeping {
    files: Arc<dyn FileSystem>,
    snapshots: PathBuf,
    logs: PathBuf,
    keep: usize,
    /// A backup copies files.
    keeps_all: Arc<AtomicBool>,
}

impl Housekeeping {
    /// Number of snapshots to keep, with the logs that the oldest of them needs.
    fn remove_old_files(&self) -> std::result::Result<(), WalError> {
        if self.keeps_all.load(Ordering::Acquire) {
            return Ok(());
        }
        let all = wal::snapshots(&*self.files, &self.snapshots)?;
        let Some(first_kept) = all.len().checked_sub(self.keep) else {
            return Ok(());
        };
        for (_, path) in &all[..first_kept] {
            let what = format!("removing {}", path.display());
            self.files.remove(path).map_err(|source| WalError::Io { what, source })?;
        }
        wal::remove_logs_before(&*self.files, &self.logs, all[first_kept].0)?;
        Ok(())
    }
}

/// Gives a snapshot its name, after which older files go. Takes as long as the disk does.
fn publish(
    finished: FinishedSnapshot,
    kept_bytes: usize,
    housekeeping: &Housekeeping,
) -> std::result::Result<(), WalError> {
    let (rows, bytes) = (finished.rows, finished.bytes);
    let path = finished.publish()?;
    tracing::info!(
        "checkpoint {}: {rows} rows, {bytes} bytes; {kept_bytes} bytes of replaced rows were kept for it",
        path.display()
    );
    housekeeping.remove_old_files().unwrap_or_else(|error| tracing::warn!("old files stay: {error}"));
    Ok(())
}

impl CheckpointState {
    fn is_busy(&self) -> bool {
        self.running.is_some() || self.finished.is_some() || self.publishing.is_some()
    }
}

fn encode_row(space_id: SpaceId, row: &[u8], body: &mut Vec<u8>) {
    body.clear();
    msgpack::encode_map(body, 2);
    msgpack::encode_uint(body, key::SPACE_ID);
    msgpack::encode_uint(body, u64::from(space_id));
    msgpack::encode_uint(body, key::TUPLE);
    body.extend_from_slice(row);
}

fn write(
    mut writer: SnapshotWriter,
    views: &[SpaceView],
    is_stopped: &AtomicBool,
) -> std::result::Result<FinishedSnapshot, WalError> {
    let mut body = Vec::new();
    let mut pace = Pace::new(PACE_SHARE);
    let mut rows = 0u64;
    for space in views {
        space.view.for_each(|row| {
            if space.left_out.has(space.id, row) {
                return Ok(());
            }
            rows += 1;
            if rows.is_multiple_of(ROWS_BETWEEN_RESTS) {
                pace.rest();
            }
            if is_stopped.load(Ordering::Relaxed) {
                let source = std::io::Error::from(std::io::ErrorKind::Interrupted);
                return Err(WalError::Io { what: "the database is being closed".to_string(), source });
            }
            encode_row(space.id, row, &mut body);
            writer.row(row_kind::INSERT, space.group_id, &body)
        })?;
    }
    writer.finish()
}

fn open_views(database: &Database) -> Vec<SpaceView> {
    database.arena.open_view();
    let mut views = Vec::new();
    let left_out = Arc::new(SessionRows::of(database));
    for space in database.catalog.spaces() {
        let def = space.def();
        let Some(rows) = space.rows.memory().filter(|_| !def.is_temporary) else { continue };
        if let Some(view) = rows.borrow_mut().open_view() {
            let left_out = Arc::clone(&left_out);
            views.push(SpaceView { id: space.id, group_id: def.group_id, view, left_out });
        }
    }
    views
}

fn close_views(database: &Database, views: Vec<SpaceView>) {
    for SpaceView { id, view, .. } in views {
        if !view.needs_closing() {
            continue;
        }
        let space = database.catalog.space(id);
        let owned = space.as_ref().and_then(|space| space.rows.memory()).filter(|rows| rows.borrow().owns_view(&view));
        match (&space, owned) {
            (Some(space), Some(rows)) => {
                rows.borrow_mut().close_view(view);
                database.discard(Garbage::NodesOf(Rc::clone(space)));
            }
            // The rows were truncated, dropped or rebuilt meanwhile.
            _ => database.disposal.close_orphaned_view(view),
        }
    }
    database.arena.close_view();
}

/// The snapshot of a new database, written at once.
pub(crate) fn write_first(database: &Database, vclock: &Vclock) -> Result<()> {
    let config = database.config.borrow().clone();
    let environment = &database.environment;
    let views = open_views(database);
    let written = SnapshotWriter::create(
        environment.files.clone(),
        environment.clock.clone(),
        &config.memtx_dir,
        vclock,
        &database.instance_uuid(),
        0,
    )
    .and_then(|writer| write(writer, &views, &AtomicBool::new(false)))
    .and_then(FinishedSnapshot::publish);
    close_views(database, views);
    written.map(|_| ()).map_err(|error| Error::system(error.to_string()))
}

impl Database {
    /// Makes a checkpoint and waits until it is there. Yields in a fiber; elsewhere it is only begun. One that began by itself is waited for
    /// first: it lacks what was written since.
    ///
    /// Errors: `CheckpointInProgress` if one is being made that somebody else has asked for; the reason if it failed (the old snapshot stays the newest).
    pub fn make_checkpoint(&self) -> Result<()> {
        // It waits, and a snapshot has nothing that is not committed: what a wait does to the caller's transaction is done before.
        if let Some(context) = fiber::local::<Context>() {
            self.suspend(&context);
        }
        let fiber = fiber::current();
        while let Some(id) = fiber.filter(|_| self.is_making_own_checkpoint()) {
            self.checkpoint.borrow_mut().waiters.push(id);
            fiber::park();
        }
        self.begin_checkpoint()?;
        self.checkpoint.borrow_mut().is_asked_for = true;
        let Some(id) = fiber else {
            return Ok(());
        };
        self.checkpoint.borrow_mut().waiters.push(id);
        let result = Rc::clone(&self.checkpoint.borrow().result);
        loop {
            if let Some(result) = result.borrow().clone() {
                return result;
            }
            fiber::park();
        }
    }

    /// True from a checkpoint's beginning until its snapshot has its name, or is given up.
    pub(crate) fn is_making_checkpoint(&self) -> bool {
        self.checkpoint.borrow().is_busy()
    }

    /// True while one is made that nobody has asked for.
    fn is_making_own_checkpoint(&self) -> bool {
        let state = self.checkpoint.borrow();
        state.is_busy() && !state.is_asked_for
    }

    pub(crate) fn begin_checkpoint(&self) -> Result<()> {
        if self.checkpoint.borrow().is_busy() {
            return Err(Error::new(ErrorCode::CheckpointInProgress, &[]));
        }
        if self.state() != State::Running {
            return Err(Error::new(ErrorCode::Loading, &[]));
        }
        self.ledger.with_journal(|journal| journal.rotate())?;
        let vclock = self.vclock();
        let position = self.appended();
        if let Some(engine) = self.disk_engine() {
            engine.begin_checkpoint(Lsn(position.0));
        }
        let config = self.config.borrow().clone();
        let path = config.memtx_dir.join(wal::file_name(vclock.signature(), "snap"));
        if self.environment.files.exists(&path) {
            // Nothing was written since the last one.
            self.checkpoint.borrow_mut().result = Rc::new(RefCell::new(Some(Ok(()))));
            return Ok(());
        }
        let environment = &self.environment;
        let writer = SnapshotWriter::create(
            environment.files.clone(),
            environment.clock.clone(),
            &config.memtx_dir,
            &vclock,
            &self.instance_uuid(),
            config.snap_io_rate_limit,
        )
        .map_err(|error| Error::system(error.to_string()))?;
        // The worker gets its views when it is there: they must not be lost with one that cannot be started.
        let (job_sender, job) = channel::<(SnapshotWriter, Vec<SpaceView>)>();
        let (sender, outcome) = channel();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (stop, wake) = (Arc::clone(&is_stopped), environment.wake.clone());
        let is_threaded = config.wal_writes_in_flight > 0;
        let work = move || {
            let Ok((writer, views)) = job.recv() else { return };
            if is_threaded {
                idle_priority();
            }
            let result = write(writer, &views, &stop);
            // Nobody listens if the process is stopping.
            let _ = sender.send((result, views));
            wake();
        };
        let (worker, unthreaded) = match is_threaded {
            false => (None, Some(work)),
            true => (Some(spawn_thread("checkpoint", work).map_err(Error::system)?), None),
        };
        job_sender.send((writer, open_views(self))).expect("the worker waits for it");
        if let Some(work) = unthreaded {
            work();
        }
        let mut state = self.checkpoint.borrow_mut();
        state.result = Rc::default();
        state.is_asked_for = false;
        state.running = Some(Running { outcome, position, is_stopped, worker });
        state.last_ns = environment.clock.monotonic_ns();
        tracing::info!("checkpoint at {vclock} has begun");
        Ok(())
    }

    /// Takes notice of a finished checkpoint and begins one that is due. Called in every turn of the event loop.
    pub(crate) fn poll_checkpoint(&self) {
        let received = match &self.checkpoint.borrow().running {
            Some(running) => running.outcome.try_recv().ok(),
            None => None,
        };
        if let Some(outcome) = received {
            self.take_outcome(outcome);
        }
        self.publish_ready_checkpoint();
        self.take_published();
        self.begin_due_checkpoint();
    }

    /// What the worker came to: the views are closed, a finished snapshot waits for the log.
    fn take_outcome(&self, (result, views): Outcome) {
        self.checkpoint.borrow_mut().kept_bytes = self.arena.delayed();
        close_views(self, views);
        let running = self.checkpoint.borrow_mut().running.take();
        match (result, running) {
            (Ok(finished), Some(running)) => {
                self.checkpoint.borrow_mut().finished = Some((finished, running.position));
            }
            (Err(error), _) => {
                tracing::error!("the checkpoint failed: {error}; the old snapshot stays in force");
                self.end_checkpoint(Err(Error::system(error.to_string())));
            }
            (Ok(_), None) => {}
        }
    }

    /// Publishes a finished snapshot once the log covers it.
    pub(crate) fn publish_ready_checkpoint(&self) {
        let is_ready = self.checkpoint.borrow().finished.as_ref().is_some_and(|(_, position)| {
            let is_dumped = self.disk_engine().is_none_or(|engine| engine.is_dumped(Lsn(position.0)));
            if *position <= self.durable() { is_dumped } else { self.lost_from().is_some() }
        });
        if is_ready {
            let finished = self.checkpoint.borrow_mut().finished.take();
            if let Some((finished, position)) = finished {
                if position > self.durable() {
                    self.end_checkpoint(Err(Error::system("the log failed before the checkpoint was covered by it")));
                } else {
                    self.begin_publishing(finished);
                }
            }
        }
    }

    fn begin_publishing(&self, finished: FinishedSnapshot) {
        let (housekeeping, is_threaded) = {
            let config = self.config.borrow();
            let files = self.environment.files.clone();
            let (snapshots, logs) = (config.memtx_dir.clone(), config.wal_dir.clone());
            let keep = config.checkpoint_count.max(1);
            (
                Housekeeping {
                    files,
                    snapshots,
                    logs,
                    keep,
                    keeps_all: Arc::clone(&self.checkpoint.borrow().keeps_files),
                },
                config.wal_writes_in_flight > 0,
            )
        };
        let kept_bytes = self.checkpoint.borrow().kept_bytes;
        let (sender, outcome) = channel();
        let (job_sender, job) = channel::<FinishedSnapshot>();
        let wake = self.environment.wake.clone();
        let work = move || {
            let Ok(finished) = job.recv() else { return };
            // Nobody listens if the process is stopping.
            let _ = sender.send(publish(finished, kept_bytes, &housekeeping));
            wake();
        };
        let (worker, unthreaded) = match is_threaded {
            true => match spawn_thread("checkpoint", work) {
                Ok(worker) => (Some(worker), None),
                Err(error) => return self.end_checkpoint(Err(Error::system(error))),
            },
            false => (None, Some(work)),
        };
        job_sender.send(finished).expect("the worker waits for it");
        if let Some(work) = unthreaded {
            work();
        }
        self.checkpoint.borrow_mut().publishing = Some(Publishing { outcome, worker });
    }

    /// Takes notice of a snapshot that has got its name, or cannot.
    fn take_published(&self) {
        let received = match &self.checkpoint.borrow().publishing {
            Some(publishing) => publishing.outcome.try_recv().ok(),
            None => None,
        };
        if let Some(result) = received {
            self.checkpoint.borrow_mut().publishing = None;
            self.end_checkpoint(result.map_err(|error| Error::system(error.to_string())));
        }
    }

    /// Ends the checkpoint that is being made, if any, and waits for its worker, which reads rows of this database: they must not be
    /// freed before. Blocks the thread for as long as a block takes.
    pub(crate) fn stop_checkpoint(&self) {
        let outcome = match &mut self.checkpoint.borrow_mut().running {
            Some(running) => {
                running.is_stopped.store(true, Ordering::Relaxed);
                running.worker.take().map(JoinHandle::join);
                running.outcome.recv().ok()
            }
            None => None,
        };
        if let Some(outcome) = outcome {
            self.take_outcome(outcome);
        }
    }

    /// Waits until a snapshot that may get its name has it. Blocks the thread for as long as the disk takes.
    pub(crate) fn finish_publishing(&self) {
        self.publish_ready_checkpoint();
        self.join_publishing();
    }

    /// Waits for the thread that gives a snapshot its name, if there is one. Blocks as `finish_publishing`.
    pub(crate) fn join_publishing(&self) {
        let worker = self.checkpoint.borrow_mut().publishing.as_mut().and_then(|publishing| publishing.worker.take());
        worker.map(JoinHandle::join);
        self.take_published();
    }

    fn end_checkpoint(&self, result: Result<()>) {
        let mut state = self.checkpoint.borrow_mut();
        *state.result.borrow_mut() = Some(result);
        for waiter in state.waiters.drain(..) {
            fiber::wake(waiter);
        }
    }

    fn begin_due_checkpoint(&self) {
        if self.state() != State::Running || self.checkpoint.borrow().is_busy() {
            return;
        }
        let now = self.environment.clock.monotonic_ns();
        let (interval, threshold) = {
            let config = self.config.borrow();
            (config.checkpoint_interval, config.checkpoint_wal_threshold)
        };
        let since = now - self.checkpoint.borrow().last_ns;
        let is_due = interval > 0 && since >= interval.saturating_mul(1_000_000_000);
        let threshold = threshold.min(self.disk_log_max());
        let (is_large, is_held_up) = self
            .ledger
            .with_journal(|journal| Ok((journal.bytes_since_checkpoint() > threshold, journal.is_next_file_coming())))
            .unwrap_or_default();
        // Everybody would wait for the next log file.
        if (is_due || is_large) && !is_held_up {
            self.checkpoint.borrow_mut().last_ns = now;
            if let Err(error) = self.begin_checkpoint() {
                tracing::warn!("no checkpoint: {error}");
            }
        }
    }
}
