//! Checkpoints: a snapshot of all rows at one moment, written by another thread while writes go on.
//!
//! The moment is between two transactions: the log begins a new file there, so the snapshot's vclock is exactly what its rows
//! are. The snapshot gets its name only when everything it covers is durable in the log; a crash at any time leaves the old
//! one in force.

use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use runtime::spawn_thread;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use storage::MemoryView;
use tuple::msgpack;
use wal::{FinishedSnapshot, Position, SnapshotWriter, Vclock, WalError};

use crate::statement::{body_key, row_kind};
use runtime::fiber::{self, FiberId};

/// One space in a snapshot.
struct SpaceView {
    id: u32,
    group_id: u32,
    view: MemoryView,
}

// The views are read by the worker while the rows stay where they are; see `MemoryView`.
type Outcome = (std::result::Result<FinishedSnapshot, WalError>, Vec<SpaceView>);

/// The checkpoint that is being made, if any.
#[derive(Default)]
pub(crate) struct CheckpointState {
    running: Option<Running>,
    /// Monotonic time of the last one.
    last_ns: u64,
    waiters: Vec<FiberId>,
    /// How the last one ended, for those who wait for it.
    result: RefCell<Option<Result<()>>>,
    /// A finished one that waits for the log.
    finished: Option<(FinishedSnapshot, Position)>,
}

struct Running {
    outcome: Receiver<Outcome>,
    position: Position,
    /// Tells the worker to leave off.
    is_stopped: Arc<AtomicBool>,
}

impl CheckpointState {
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }
}

fn encode_row(space_id: u32, row: &[u8], body: &mut Vec<u8>) {
    body.clear();
    msgpack::encode_map(body, 2);
    msgpack::encode_uint(body, body_key::SPACE_ID);
    msgpack::encode_uint(body, u64::from(space_id));
    msgpack::encode_uint(body, body_key::TUPLE);
    body.extend_from_slice(row);
}

fn write(
    mut writer: SnapshotWriter,
    views: &[SpaceView],
    is_stopped: &AtomicBool,
) -> std::result::Result<FinishedSnapshot, WalError> {
    let mut body = Vec::new();
    for space in views {
        space.view.for_each(|row| {
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
    for space in database.catalog.spaces() {
        let def = space.def();
        if space.kind != crate::catalog::SpaceKind::Memory || def.is_temporary {
            continue;
        }
        if let Some(view) = space.store.borrow_mut().open_view() {
            views.push(SpaceView { id: space.id, group_id: def.group_id, view });
        }
    }
    views
}

fn close_views(database: &Database, views: Vec<SpaceView>) {
    for SpaceView { id, view, .. } in views {
        if !view.needs_closing() {
            continue;
        }
        let owner = database.catalog.space(id).filter(|space| space.store.borrow().owns_view(&view));
        match owner {
            Some(space) => {
                let mut store = space.store.borrow_mut();
                store.close_view(view);
                while store.collect(10_000) {}
            }
            // The rows were truncated, dropped or rebuilt meanwhile.
            None => database.close_orphaned_view(view),
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
    /// Makes a checkpoint and waits until it is there. Yields in a fiber; elsewhere it is only begun.
    ///
    /// Errors: 120 if one is being made; the reason if it failed (the old snapshot stays in force).
    pub fn make_checkpoint(&self) -> Result<()> {
        self.begin_checkpoint()?;
        let Some(id) = fiber::current() else {
            return Ok(());
        };
        self.checkpoint.borrow_mut().waiters.push(id);
        loop {
            if let Some(result) = self.checkpoint.borrow().result.borrow().clone() {
                return result;
            }
            fiber::park();
        }
    }

    fn begin_checkpoint(&self) -> Result<()> {
        if self.checkpoint.borrow().running.is_some() || self.checkpoint.borrow().finished.is_some() {
            return Err(Error::new(ErrorCode::CheckpointInProgress, &[]));
        }
        if self.state() != State::Running {
            return Err(Error::new(ErrorCode::Loading, &[]));
        }
        self.with_journal(|journal| journal.rotate())?;
        let vclock = self.vclock();
        let position = self.appended();
        let config = self.config.borrow().clone();
        let path = config.memtx_dir.join(wal::file_name(vclock.signature(), "snap"));
        if self.environment.files.exists(&path) {
            // Nothing was written since the last one.
            let state = self.checkpoint.borrow();
            *state.result.borrow_mut() = Some(Ok(()));
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
        let work = move || {
            let Ok((writer, views)) = job.recv() else { return };
            let result = write(writer, &views, &stop);
            // Nobody listens if the process is stopping.
            let _ = sender.send((result, views));
            wake();
        };
        let unthreaded = match config.wal_writes_in_flight {
            // Simulation: no threads.
            0 => Some(work),
            _ => {
                spawn_thread("checkpoint", work).map_err(Error::system)?;
                None
            }
        };
        job_sender.send((writer, open_views(self))).expect("the worker waits for it");
        if let Some(work) = unthreaded {
            work();
        }
        let mut state = self.checkpoint.borrow_mut();
        *state.result.borrow_mut() = None;
        state.running = Some(Running { outcome, position, is_stopped });
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
        self.begin_due_checkpoint();
    }

    /// What the worker came to: the views are closed, a finished snapshot waits for the log.
    fn take_outcome(&self, (result, views): Outcome) {
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
        let is_ready = self
            .checkpoint
            .borrow()
            .finished
            .as_ref()
            .is_some_and(|(_, position)| *position <= self.durable() || self.lost_from().is_some());
        if is_ready {
            let finished = self.checkpoint.borrow_mut().finished.take();
            if let Some((finished, position)) = finished {
                let result = if position > self.durable() {
                    Err(Error::system("the log failed before the checkpoint was covered by it"))
                } else {
                    self.publish_checkpoint(finished)
                };
                self.end_checkpoint(result);
            }
        }
    }

    /// Ends the checkpoint that is being made, if any, and waits for its worker, which reads rows of this database: they must not be
    /// freed before. Blocks the thread for as long as a block takes.
    pub(crate) fn stop_checkpoint(&self) {
        let outcome = match &self.checkpoint.borrow().running {
            Some(running) => {
                running.is_stopped.store(true, Ordering::Relaxed);
                running.outcome.recv().ok()
            }
            None => None,
        };
        if let Some(outcome) = outcome {
            self.take_outcome(outcome);
        }
    }

    fn publish_checkpoint(&self, finished: FinishedSnapshot) -> Result<()> {
        let (rows, bytes) = (finished.rows, finished.bytes);
        let path = finished.publish().map_err(|error| Error::system(error.to_string()))?;
        tracing::info!("checkpoint {}: {rows} rows, {bytes} bytes", path.display());
        self.remove_old_files().unwrap_or_else(|error| tracing::warn!("old files stay: {error}"));
        Ok(())
    }

    /// Keeps `checkpoint_count` snapshots and the logs that the oldest of them needs.
    fn remove_old_files(&self) -> Result<()> {
        let (dir, keep) = {
            let config = self.config.borrow();
            (config.memtx_dir.clone(), config.checkpoint_count.max(1))
        };
        let files = &self.environment.files;
        let all = wal::snapshots(&**files, &dir).map_err(|error| Error::system(error.to_string()))?;
        let Some(first_kept) = all.len().checked_sub(keep) else {
            return Ok(());
        };
        for (_, path) in &all[..first_kept] {
            files.remove(path).map_err(Error::system)?;
        }
        let oldest = all[first_kept].0;
        self.with_journal(|journal| journal.remove_older_than(oldest))?;
        Ok(())
    }

    fn end_checkpoint(&self, result: Result<()>) {
        let mut state = self.checkpoint.borrow_mut();
        *state.result.borrow_mut() = Some(result);
        for waiter in state.waiters.drain(..) {
            fiber::wake(waiter);
        }
    }

    fn begin_due_checkpoint(&self) {
        if self.state() != State::Running || self.checkpoint.borrow().is_running() {
            return;
        }
        let now = self.environment.clock.monotonic_ns();
        let (interval, threshold) = {
            let config = self.config.borrow();
            (config.checkpoint_interval, config.checkpoint_wal_threshold)
        };
        let since = now - self.checkpoint.borrow().last_ns;
        let is_due = interval > 0 && since >= interval.saturating_mul(1_000_000_000);
        let is_large = self.with_journal(|journal| Ok(journal.bytes_since_checkpoint() > threshold)).unwrap_or(false);
        if is_due || is_large {
            self.checkpoint.borrow_mut().last_ns = now;
            if let Err(error) = self.begin_checkpoint() {
                tracing::warn!("no checkpoint: {error}");
            }
        }
    }
}
