//! The disk engine under power loss and errors: with the durable part of the log, everything is there that was, in all indexes.
#![allow(clippy::unwrap_used, reason = "a test")]

mod lsm_rig;

use lsm_rig::{DIR, addition, def, format, numbers_of};
use runtime::{Fault, FileSystem, Loss, ManualClock, OperationKind, Randomness, SeededRandomness, SimulatedFiles};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use storage::lsm::{
    DetachedTrees, DiskKey, FileRole, LsmConfig, LsmEngine, LsmSpace, Stop, TreeOptions, check_directory,
};
use tuple::{IndexId, Lsn, SpaceId, msgpack};

/// With a secondary index, so that rows are looked at before they are written.
const SEEN: u32 = 512;
/// With the primary alone, so that they are not.
const UNSEEN: u32 = 513;
/// Positions of the rows that made the indexes.
const CREATED: [(u32, u32, i64); 3] = [(SEEN, 0, 1), (SEEN, 1, 2), (UNSEEN, 0, 3)];
const IDS: u64 = 150;

/// A row of the log.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Put(u64, u64),
    Delete(u64),
    Add(u64, u64),
    Truncate,
}

/// Rows of a space: id and number.
type Rows = BTreeMap<u64, u64>;

fn row(id: u64, number: u64) -> Vec<u8> {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 3);
    msgpack::encode_uint(&mut row, id);
    msgpack::encode_uint(&mut row, number);
    msgpack::encode_bin(&mut row, &[id as u8; 40]);
    row
}

fn apply(rows: &mut Rows, operation: Operation) {
    match operation {
        Operation::Put(id, number) => _ = rows.insert(id, number),
        Operation::Delete(id) => _ = rows.remove(&id),
        Operation::Truncate => rows.clear(),
        Operation::Add(id, number) => _ = rows.entry(id).and_modify(|old| *old += number).or_insert(number),
    }
}

struct Life {
    engine: Rc<LsmEngine>,
    clock: Arc<ManualClock>,
    spaces: BTreeMap<u32, Rc<LsmSpace>>,
    /// Trees that were taken out of use at a position that may not be durable yet.
    detached: RefCell<Vec<(u32, i64, DetachedTrees)>>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.engine.close();
    }
}

impl Life {
    /// A start, up to where the log is read.
    fn open(files: &SimulatedFiles) -> Result<Life, String> {
        let clock = Arc::new(ManualClock::default());
        let config = LsmConfig {
            memory_bytes_max: 64 << 20,
            cache_bytes_max: 10_000,
            compactions_max: 2,
            manifest_bytes: 20_000,
            open_files_max: 3,
            page_cache_sampled_one_of: 16,
            ..lsm_rig::config()
        };
        let engine = lsm_rig::open(config, files, &clock).map_err(|error| error.to_string())?;
        let mut spaces = BTreeMap::new();
        for (space_id, index_id, lsn) in CREATED {
            let space =
                spaces.entry(space_id).or_insert_with(|| LsmSpace::new(&engine, SpaceId(space_id), format(space_id)));
            let options = TreeOptions {
                page_size: 400,
                range_size: 12_000,
                run_count_per_level: 2,
                run_size_ratio: 3.0,
                bloom_fpr: 0.1,
            };
            let with_primary = (index_id != 0).then(|| space.primary_dumped_lsn().unwrap_or(Lsn(-1)));
            let state = engine.claim(SpaceId(space_id), IndexId(index_id), Lsn(lsn), true, with_primary);
            space.create_index(def(index_id), options, state).map_err(|error| error.to_string())?;
            space.set_created(Some(IndexId(index_id)), Lsn(lsn));
        }
        Ok(Life { engine, clock, spaces, detached: RefCell::default() })
    }

    /// The start's second half: the log from where the runs end.
    fn replay(&self, log: &[(u32, Operation)]) -> Result<(), String> {
        for (at, (space_id, operation)) in log.iter().enumerate() {
            if Lsn(position(at)) > self.spaces[space_id].dumped_lsn() {
                self.write(*space_id, *operation, position(at))?;
            }
        }
        self.engine.forget_unclaimed(false);
        Ok(())
    }

    fn write(&self, space_id: u32, operation: Operation, lsn: i64) -> Result<(), String> {
        let space = &self.spaces[&space_id];
        let fresh = match operation {
            Operation::Put(id, number) | Operation::Add(id, number) => row(id, number),
            Operation::Delete(id) => row(id, 0),
            Operation::Truncate => {
                let dumped_lsn = Cell::new(None);
                let state = |index_id| {
                    let wanted = dumped_lsn.get().or((index_id != 0).then_some(Lsn(-1)));
                    let state = self.engine.claim(SpaceId(space_id), index_id, Lsn(lsn), true, wanted)?;
                    dumped_lsn.set(Some(state.dumped_lsn));
                    Some(state)
                };
                let detached = space.truncate(state).map_err(|error| error.to_string())?;
                space.set_created(None, Lsn(lsn));
                self.detached.borrow_mut().push((space_id, lsn, detached));
                return Ok(());
            }
        };
        if space_id == UNSEEN {
            match operation {
                Operation::Put(..) => _ = space.put(None, Some(&fresh)),
                Operation::Delete(id) => {
                    let mut key = Vec::new();
                    msgpack::encode_uint(&mut key, id);
                    space.delete_blind(DiskKey { parts: &key, part_count: 1 });
                }
                Operation::Add(_, number) if space.takes_blind_upsert(&fresh) => {
                    space.upsert_blind(&fresh, &addition(number), 0);
                }
                _ => write_seen(space, fresh, operation)?,
            }
            return Ok(());
        }
        write_seen(space, fresh, operation)
    }

    /// Rows of an index, in its order.
    fn rows(&self, space_id: u32, index_id: u32) -> Result<Vec<(u64, u64)>, String> {
        let key = DiskKey { parts: &[], part_count: 0 };
        let mut scan = self.spaces[&space_id].scan(IndexId(index_id), IteratorKind::All, key);
        let mut found = Vec::new();
        while let Some(row) = scan.next_row().map_err(in_words)? {
            found.push(row.with(numbers_of));
        }
        Ok(found)
    }

    fn assert_rows(&self, expected: &BTreeMap<u32, Rows>, context: &str) {
        for (space_id, rows) in expected {
            let mut listed: Vec<(u64, u64)> = rows.iter().map(|(&id, &number)| (id, number)).collect();
            assert_eq!(self.rows(*space_id, 0).unwrap(), listed, "{context}: space {space_id}");
            if *space_id == SEEN {
                listed.sort_by_key(|&(id, number)| (number, id));
                assert_eq!(self.rows(SEEN, 1).unwrap(), listed, "{context}: the secondary index");
            }
        }
    }

    fn turn(&self, appended: i64, durable: i64) {
        // Beyond the pause after an error.
        self.clock.advance(2_000_000_000);
        let detached = self.detached.take();
        let (gone, waiting): (Vec<_>, Vec<_>) = detached.into_iter().partition(|(_, lsn, _)| *lsn <= durable);
        *self.detached.borrow_mut() = waiting;
        gone.into_iter().for_each(|(space_id, lsn, trees)| self.spaces[&space_id].discard(trees, Lsn(lsn)));
        self.engine.poll(Lsn(appended), Lsn(durable));
    }
}

/// Looks at the row that is there, and then writes.
fn write_seen(space: &LsmSpace, fresh: Vec<u8>, operation: Operation) -> Result<(), String> {
    let old = space.get_same_key(&fresh).map_err(in_words)?.map(|row| row.with(<[u8]>::to_vec));
    let new = match (operation, &old) {
        (Operation::Add(id, number), Some(old)) => Some(row(id, numbers_of(old).1 + number)),
        (Operation::Delete(_), _) => None,
        _ => Some(fresh),
    };
    if old.is_some() || new.is_some() {
        space.put(old.as_deref(), new.as_deref());
    }
    Ok(())
}

fn in_words(stop: Stop) -> String {
    match stop {
        Stop::Wait(_) => panic!("nobody waits before reads are served"),
        Stop::Failed(error) => error.to_string(),
    }
}

/// The position of a row of the log.
fn position(at: usize) -> i64 {
    10 + at as i64
}

/// Writes at random, with dumps and what follows from them. Returns the log and how much of it was durable, when the machine goes off or the
/// script is at its end.
fn work(files: &SimulatedFiles, seed: u64, steps: usize) -> (Vec<(u32, Operation)>, usize) {
    watched_work(files, seed, steps, |_, _| {})
}

/// The same; `watch` is called after every turn, with the durable part of the log.
fn watched_work(
    files: &SimulatedFiles,
    seed: u64,
    steps: usize,
    mut watch: impl FnMut(&Life, &[(u32, Operation)]),
) -> (Vec<(u32, Operation)>, usize) {
    let random = SeededRandomness::new(seed);
    let below = |bound: u64| random.next_u64() % bound;
    let mut log = Vec::new();
    let mut durable = 0;
    let Ok(life) = Life::open(files) else { return (log, durable) };
    for _ in 0..steps {
        for _ in 0..below(60) {
            let (id, number) = (below(IDS), below(1000));
            let operation = match below(400) {
                0 => Operation::Truncate,
                1..=200 => Operation::Put(id, number),
                201..=320 => Operation::Add(id, number),
                _ => Operation::Delete(id),
            };
            let space_id = if below(2) == 0 { SEEN } else { UNSEEN };
            if life.write(space_id, operation, position(log.len())).is_ok() {
                log.push((space_id, operation));
            }
        }
        let appended = position(log.len()) - 1;
        if below(3) == 0 {
            life.engine.begin_checkpoint(Lsn(appended));
        }
        for _ in 0..below(6) {
            durable += below((log.len() - durable) as u64 + 1) as usize;
            life.turn(appended, position(durable) - 1);
            watch(&life, &log[..durable]);
        }
        if files.is_off() {
            break;
        }
    }
    (log, durable)
}

/// Rows of all spaces after these rows of the log.
fn rows_after(log: &[(u32, Operation)]) -> BTreeMap<u32, Rows> {
    let mut rows = BTreeMap::from([(SEEN, Rows::new()), (UNSEEN, Rows::new())]);
    for (space_id, operation) in log {
        apply(rows.get_mut(space_id).unwrap(), *operation);
    }
    rows
}

/// Starts on what a crash left, and compares.
fn check_start(files: &SimulatedFiles, log: &[(u32, Operation)], context: &str) {
    let life = Life::open(files).unwrap_or_else(|error| panic!("{context}: {error}"));
    life.replay(log).unwrap_or_else(|error| panic!("{context}: {error}"));
    life.assert_rows(&rows_after(log), context);
    // And after all of it was written and merged.
    let end = position(log.len());
    life.engine.begin_checkpoint(Lsn(end));
    (0..30).for_each(|_| life.turn(end, end));
    assert!(
        life.engine.failure().is_none() && life.engine.is_dumped(Lsn(end)),
        "{context}: {:?}",
        life.engine.failure()
    );
    life.assert_rows(&rows_after(log), context);
    for report in check_directory(files, Path::new(DIR)).unwrap() {
        assert!(report.damage.is_empty() && report.role != FileRole::Orphan, "{context}: {report:?}");
    }
}

#[test]
fn whatever_the_moment_of_power_loss_runs_and_the_durable_log_are_everything() {
    let mut crashes = 0;
    for seed in 0..60 {
        // Where the power goes differs, so that all kinds of moments are met.
        let files = SimulatedFiles::default();
        let off_at = seed * 7 % 230;
        files.set_fault(Fault { changes_until_off: Some(off_at), ..Fault::default() });
        let (log, durable) = work(&files, seed / 3, 60);
        for loss in [Loss::All, Loss::None, Loss::Contents, Loss::Names, Loss::Seed(seed), Loss::Seed(seed + 1000)] {
            let context = format!("seed {seed}, off at {off_at}, {loss}");
            check_start(&files.crash(loss), &log[..durable], &context);
            crashes += 1;
        }
    }
    assert_eq!(crashes, 360);
}

#[test]
fn errors_of_the_disk_delay_the_work_and_lose_nothing() {
    for seed in 0..80 {
        let files = SimulatedFiles::default();
        let fault = match seed % 4 {
            0 => Fault { writes_until_error: Some(seed), ..Fault::default() },
            1 => Fault { syncs_until_error: Some(seed), ..Fault::default() },
            2 => Fault { space_left: Some(seed * 1_000), ..Fault::default() },
            _ => Fault { operations_until_error: Some(3 * seed), ..Fault::default() },
        };
        files.set_fault(fault);
        let (log, durable) = work(&files, seed, 40);
        files.set_fault(Fault::default());
        let context = format!("seed {seed}, {fault:?}");
        for loss in [Loss::All, Loss::None, Loss::Seed(seed)] {
            check_start(&files.crash(loss), &log[..durable], &context);
        }
    }
}

#[test]
fn a_disk_that_stays_full_is_not_filled_further() {
    let mut failed = 0;
    for space_left in (500..12_000).step_by(500) {
        let files = SimulatedFiles::default();
        let life = Life::open(&files).unwrap();
        let log: Vec<(u32, Operation)> = (0..IDS).map(|id| (SEEN, Operation::Put(id, id))).collect();
        (0..log.len()).for_each(|at| life.write(log[at].0, log[at].1, position(at)).unwrap());
        let end = position(log.len());
        for attempt in 0..5 {
            // Space that is given back counts again.
            files.set_fault(Fault { space_left: Some(space_left), ..Fault::default() });
            if attempt == 0 {
                life.engine.begin_checkpoint(Lsn(end));
            }
            life.turn(end, end);
            if life.engine.failure().is_some() {
                failed += 1;
                let names = files.list(Path::new(DIR)).unwrap();
                // A manifest, and a run of each index.
                assert!(names.len() <= 3, "{space_left}: {names:?}");
            }
        }
        files.set_fault(Fault::default());
        (0..5).for_each(|_| life.turn(end, end));
        assert!(life.engine.is_dumped(Lsn(end)));
        life.assert_rows(&rows_after(&log), "with space again");
    }
    assert!(failed > 20, "{failed}");
}

#[test]
fn runs_stay_while_a_crash_may_find_them_in_force() {
    let dry = SimulatedFiles::default();
    dry.keep_operations();
    work(&dry, 5, 25);
    let operations = dry.operations();
    let mut syncs = 0;
    let mut survived = 0;
    for (at, operation) in operations.iter().enumerate() {
        let is_sync = matches!(operation.kind, OperationKind::Sync | OperationKind::SyncDir);
        syncs += u64::from(is_sync);
        let is_manifest = operation.path.to_string_lossy().contains("manifest");
        if operation.kind != OperationKind::Sync || !is_manifest {
            continue;
        }
        // The manifest cannot be synced, and what was written cannot be removed.
        let files = SimulatedFiles::default();
        let fault = Fault {
            syncs_until_error: Some(syncs - 1),
            operations_until_error: Some(at as u64 + 1),
            ..Fault::default()
        };
        files.set_fault(fault);
        let mut turns = 0;
        watched_work(&files, 5, 25, |life, log| {
            if life.engine.failure().is_some() && turns < 6 {
                turns += 1;
                for loss in [Loss::All, Loss::None, Loss::Seed(1), Loss::Seed(2)] {
                    check_start(&files.crash(loss), log, &format!("operation {at}, turn {turns}, {loss}"));
                }
            }
        });
        survived += turns;
    }
    assert!(survived > 100, "{survived}");
}

#[test]
#[cfg(feature = "planted-bugs")]
fn planted_bugs_are_found() {
    use runtime::planted::{Plant, plant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    for bug in [Plant::RecordBeforeSync, Plant::DropTombstones, Plant::FilterDenies] {
        plant(Some(bug));
        let is_found = (0..40).any(|seed| {
            catch_unwind(AssertUnwindSafe(|| {
                let files = SimulatedFiles::default();
                files.set_fault(Fault { changes_until_off: Some(60 + seed * 7), ..Fault::default() });
                let (log, durable) = work(&files, seed, 60);
                check_start(&files.crash(Loss::Seed(seed)), &log[..durable], "planted");
            }))
            .is_err()
        });
        plant(None);
        assert!(is_found, "{bug:?}");
    }
}
