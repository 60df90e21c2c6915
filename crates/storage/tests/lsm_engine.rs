//! What the disk engine was found to do wrong once, by the model test and by reading.
#![allow(clippy::unwrap_used, reason = "a test")]

mod lsm_rig;

use lsm_rig::{DIR, addition, config, def, format, numbers_of};
use runtime::{FileSystem, ManualClock, ReadFault, SimulatedFiles};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use storage::lsm::{DiskKey, DiskRow, LsmEngine, LsmSpace, TreeOptions};
use storage::{IndexDef, IteratorKind};
use tuple::{IndexId, Lsn, SpaceId, msgpack};

const SPACE: u32 = 512;

const OPTIONS: TreeOptions =
    TreeOptions { page_size: 100, range_size: 10_000, run_count_per_level: 2, run_size_ratio: 3.5, bloom_fpr: 0.01 };

fn row(id: u64, number: u64) -> Vec<u8> {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 2);
    msgpack::encode_uint(&mut row, id);
    msgpack::encode_uint(&mut row, number);
    row
}

fn encoded(id: u64) -> Vec<u8> {
    let mut key = Vec::new();
    msgpack::encode_uint(&mut key, id);
    key
}

fn number_of(row: &DiskRow) -> u64 {
    row.with(numbers_of).1
}

struct Machine {
    engine: Rc<LsmEngine>,
    space: Rc<LsmSpace>,
    clock: Arc<ManualClock>,
    files: SimulatedFiles,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.engine.close();
    }
}

impl Machine {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let files = SimulatedFiles::default();
        let engine = lsm_rig::open(config(), &files, &clock).unwrap();
        let space = LsmSpace::new(&engine, SpaceId(SPACE), format(SPACE));
        space.create_index(def(0), OPTIONS, None).unwrap();
        space.set_created(None, Lsn(1));
        Machine { engine, space, clock, files }
    }

    /// Everything up to this position becomes runs.
    fn dump(&self, lsn: i64) {
        self.engine.begin_checkpoint(Lsn(lsn));
        self.turns(lsn);
        assert!(self.engine.failure().is_none() && self.engine.is_dumped(Lsn(lsn)));
    }

    fn turns(&self, lsn: i64) {
        for _ in 0..20 {
            self.clock.advance(5_000_000);
            self.engine.poll(Lsn(lsn), Lsn(lsn));
        }
    }

    fn number(&self, id: u64) -> Option<u64> {
        self.space
            .get(IndexId::PRIMARY, DiskKey { parts: &encoded(id), part_count: 1 })
            .ok()
            .unwrap()
            .map(|row| number_of(&row))
    }

    /// Adds to the number of a row without a look at it.
    fn add(&self, id: u64, number: u64) {
        self.space.upsert_blind(&row(id, number), &addition(number), 0);
    }

    fn build_index(&self) {
        let mut build = self.space.begin_build(Rc::new(format(SPACE)), vec![(def(1), OPTIONS)]).unwrap();
        while !build.is_done() {
            _ = build.build_some(10);
        }
        build.end();
        self.space.set_created(Some(IndexId(1)), Lsn(50));
    }
}

#[test]
fn a_row_that_was_cached_below_an_upsert_is_not_found_when_the_upsert_is_in_a_run() {
    let machine = Machine::new();
    machine.space.put(None, Some(&row(1, 10)));
    machine.dump(10);
    machine.add(1, 5);
    // Reads that bring the block to the cache, and then the row.
    (0..3).for_each(|_| assert_eq!(machine.number(1), Some(15)));
    machine.dump(11);
    assert_eq!(machine.number(1), Some(15));
}

#[test]
fn an_upsert_that_is_applied_again_meets_a_delete_or_a_row_of_somebody_else() {
    let machine = Machine::new();
    machine.space.put(None, Some(&row(2, 10)));
    machine.dump(10);
    for (id, known) in [(1, None), (2, Some(20))] {
        let upsert = machine.space.upsert_blind(&row(id, 5), &addition(7), 0);
        machine.space.undo(&upsert);
        match known {
            None => drop(machine.space.delete_blind(DiskKey { parts: &encoded(id), part_count: 1 })),
            Some(number) => drop(machine.space.put(None, Some(&row(id, number)))),
        }
        let again = machine.space.redo(&upsert);
        let made = known.map_or(5, |number| number + 7);
        assert_eq!(machine.number(id), Some(made));
        machine.space.undo(&again);
        assert_eq!(machine.number(id), known);
        drop(machine.space.redo(&again));
        machine.dump(10 + id as i64);
        assert_eq!(machine.number(id), Some(made));
    }
}

#[test]
fn memory_of_changes_that_were_taken_back_is_given_free_by_a_dump() {
    let machine = Machine::new();
    let change = machine.space.put(None, Some(&row(1, 10)));
    machine.space.undo(&change);
    drop(change);
    assert!(machine.engine.statistics().memtable_bytes > 0);
    machine.dump(10);
    assert_eq!(machine.engine.statistics().memtable_bytes, 0);
}

#[test]
fn memory_that_is_full_of_changes_that_were_taken_back_does_not_stay_full() {
    let machine = Machine::new();
    let filling = vec![0xc0; 1000];
    for id in 0.. {
        let mut large = vec![0xdd];
        large.extend_from_slice(&1002u32.to_be_bytes());
        large.extend_from_slice(&row(id, 1)[1..]);
        large.extend_from_slice(&filling);
        let change = machine.space.put(None, Some(&large));
        machine.space.undo(&change);
        if machine.engine.is_full() {
            break;
        }
    }
    machine.turns(10);
    assert!(!machine.engine.is_full());
}

#[test]
fn a_checkpoint_covers_a_space_whose_index_is_being_built() {
    let machine = Machine::new();
    machine.space.put(None, Some(&row(1, 10)));
    let build = machine.space.begin_build(Rc::new(format(SPACE)), vec![(def(1), OPTIONS)]).unwrap();
    machine.dump(10);
    assert_eq!(machine.space.dumped_lsn(), 10);
    drop(build);
}

#[test]
fn what_a_build_collects_counts_as_memory_of_memtables() {
    let machine = Machine::new();
    (0..5_000).for_each(|id| _ = machine.space.put(None, Some(&row(id, id))));
    machine.dump(10);
    machine.turns(10);
    let taken = || machine.engine.statistics().memtable_bytes;
    assert_eq!(taken(), 0);
    let mut build = machine.space.begin_build(Rc::new(format(SPACE)), vec![(def(1), OPTIONS)]).unwrap();
    let (mut most, mut watermark) = (0, u64::MAX);
    while !build.is_done() {
        _ = build.build_some(10);
        most = most.max(taken());
        watermark = watermark.min(machine.engine.statistics().dump_watermark);
        machine.turns(1);
    }
    // A quarter of what there is, and what ten rows take.
    assert!((1 << 17..=(1 << 18) + (1 << 16)).contains(&most), "{most}");
    assert!(watermark < (1 << 20) * 4 / 10);
    drop(build);
    machine.turns(10);
    assert_eq!(taken(), 0);
}

#[test]
fn an_index_that_was_built_when_there_was_no_row_left_can_be_dumped() {
    let machine = Machine::new();
    machine.space.put(None, Some(&row(1, 10)));
    machine.dump(10);
    machine.space.put(Some(&row(1, 10)), None);
    machine.build_index();
    machine.space.put(None, Some(&row(2, 20)));
    machine.dump(60);
    assert_eq!(machine.number(2), Some(20));
}

#[test]
fn a_scan_goes_on_in_the_rows_that_came_after_a_truncation() {
    let machine = Machine::new();
    (0..10).for_each(|id| _ = machine.space.put(None, Some(&row(id, 1))));
    let mut scan = machine.space.scan(IndexId::PRIMARY, IteratorKind::All, DiskKey { parts: &[], part_count: 0 });
    assert_eq!(scan.next_row().ok().unwrap().map(|row| number_of(&row)), Some(1));
    let old = machine.space.truncate(|_| None).unwrap();
    machine.space.set_created(None, Lsn(20));
    machine.space.discard(old, Lsn(0));
    machine.turns(20);
    machine.space.put(None, Some(&row(5, 2)));
    scan.seek_again();
    assert_eq!(scan.next_row().ok().unwrap().map(|row| number_of(&row)), Some(2));
    assert!(scan.next_row().ok().unwrap().is_none());
    // And without a tree in its place there is nothing more.
    machine.space.drop_index(IndexId::PRIMARY).into_iter().for_each(|(_, trees)| machine.space.discard(trees, Lsn(0)));
    scan.seek_again();
    assert!(scan.next_row().ok().unwrap().is_none());
}

impl Machine {
    /// Replaces rows and has them dumped, so that there is something to merge.
    fn replace_all(&self, number: u64, lsn: i64) {
        (0..50).for_each(|id| _ = self.space.put(None, Some(&row(id, number))));
        self.dump(lsn);
    }

    fn wait(&self, seconds: u64, lsn: i64) {
        self.clock.advance(seconds * 1_000_000_000);
        self.turns(lsn);
    }

    fn merges(&self) -> (u64, u64) {
        let all = self.space.statistics(IndexId::PRIMARY).unwrap();
        (all.counts.compactions, all.merges_failed)
    }
}

#[test]
fn a_run_that_cannot_be_read_is_merged_again_when_it_can() {
    let machine = Machine::new();
    machine.replace_all(1, 10);
    let name = machine.files.list(Path::new(DIR)).unwrap().into_iter().find(|name| name.ends_with(".run")).unwrap();
    let path = Path::new(DIR).join(name);
    machine.files.add_read_fault(&path, ReadFault::Unreadable(0..1));
    machine.replace_all(2, 20);
    assert_eq!(machine.merges(), (0, 1));
    let all = machine.space.statistics(IndexId::PRIMARY).unwrap();
    assert_eq!(all.unreadable_runs, 1);
    assert!(all.merge_error.unwrap().contains(&path.display().to_string()));
    // What lies above it is merged meanwhile.
    machine.replace_all(3, 30);
    machine.replace_all(4, 40);
    let (done, failed) = machine.merges();
    assert!(done > 0 && failed == 1, "{done} {failed}");
    // Again after one second, then after two, then after four.
    for (second, failed) in [(1, 2), (1, 2), (1, 3), (1, 3), (2, 3), (1, 4)] {
        machine.wait(second, 40);
        assert_eq!(machine.merges().1, failed);
    }
    machine.files.clear_read_faults();
    machine.wait(8, 40);
    let all = machine.space.statistics(IndexId::PRIMARY).unwrap();
    assert_eq!((all.run_count, all.unreadable_runs, all.merge_error), (1, 0, None));
    assert_eq!(machine.number(7), Some(4));
}

#[test]
fn a_merge_that_fails_does_not_hold_up_those_of_other_spaces() {
    let machine = Machine::new();
    let other = LsmSpace::new(&machine.engine, SpaceId(SPACE + 1), format(SPACE));
    other.create_index(def(0), OPTIONS, None).unwrap();
    other.set_created(None, Lsn(2));
    machine.replace_all(1, 10);
    let name = machine.files.list(Path::new(DIR)).unwrap().into_iter().find(|name| name.ends_with(".run")).unwrap();
    machine.files.add_read_fault(&Path::new(DIR).join(name), ReadFault::Unreadable(0..1));
    for round in 2..6 {
        (0..50).for_each(|id| _ = other.put(None, Some(&row(id, round))));
        machine.replace_all(round, round as i64 * 10);
    }
    assert!(other.statistics(IndexId::PRIMARY).unwrap().counts.compactions > 0);
    assert_eq!(machine.merges().1, 1);
}

/// Many rows had a number in turn and gave it up. Whoever looks for it stops now and then and goes on where it was; what is written behind its back
/// is found all the same.
#[test]
fn the_look_for_a_unique_key_passes_many_deleted_entries_in_steps() {
    let machine = Machine::new();
    let unique = IndexDef { is_unique: true, ..def(1) };
    machine.space.create_index(unique, OPTIONS, None).unwrap();
    machine.space.set_created(None, Lsn(1));
    for id in 0..9_000 {
        machine.space.put(None, Some(&row(id, 7)));
        machine.space.put(Some(&row(id, 7)), None);
    }
    let mut key = Vec::new();
    msgpack::encode_uint(&mut key, 7);
    let look = || machine.space.get(IndexId(1), DiskKey { parts: &key, part_count: 1 }).map(|row| row.is_some());
    assert!(look().is_err() && look().is_err());
    assert_eq!(look().ok(), Some(false));
    assert!(look().is_err());
    let change = machine.space.put(None, Some(&row(10, 7)));
    assert_eq!(look().ok(), Some(true));
    machine.space.undo(&change);
    assert!(look().is_err() && look().is_err());
    assert_eq!(look().ok(), Some(false));
    machine.space.put(None, Some(&row(8_999, 7)));
    assert!(look().is_err() && look().is_err());
    assert_eq!(look().ok(), Some(true));
}

#[test]
fn runs_become_one_when_that_is_asked_for() {
    let machine = Machine::new();
    // A large run, and one so small that nothing would be merged for it.
    (0..100).for_each(|id| drop(machine.space.put(None, Some(&row(id, 1)))));
    machine.dump(10);
    machine.space.put(None, Some(&row(7, 2)));
    machine.dump(11);
    let runs = || machine.space.statistics(IndexId::PRIMARY).unwrap().runs_of_ranges;
    assert!(runs().contains(&2), "{:?}", runs());
    machine.space.compact(IndexId::PRIMARY);
    machine.turns(11);
    assert!(runs().iter().all(|&count| count == 1), "{:?}", runs());
    assert_eq!((machine.number(7), machine.number(8)), (Some(2), Some(1)));
    // What comes later is not merged for it.
    machine.space.put(None, Some(&row(7, 3)));
    machine.dump(12);
    assert!(runs().contains(&2), "{:?}", runs());
    machine.space.compact(IndexId(9));
}

#[test]
fn a_start_dumps_one_space_while_another_is_in_runs_beyond_it() {
    let machine = Machine::new();
    machine.space.put(None, Some(&row(1, 10)));
    machine.dump(20);
    let other = LsmSpace::new(&machine.engine, SpaceId(SPACE + 1), format(SPACE + 1));
    other.create_index(def(0), OPTIONS, None).unwrap();
    other.set_created(None, Lsn(1));
    other.put(None, Some(&row(2, 11)));
    machine.engine.dump_all(Lsn(15)).unwrap();
    assert_eq!((machine.space.dumped_lsn(), other.dumped_lsn()), (Lsn(20), Lsn(15)));
    assert_eq!(machine.engine.statistics().memtable_bytes, 0);
}

#[test]
fn an_index_that_lacks_rows_does_not_pass_for_whole_after_the_next_crash() {
    for is_incomplete in [false, true] {
        let machine = Machine::new();
        machine.space.put(None, Some(&row(1, 10)));
        machine.dump(10);
        // As a start finds it whose log has the index, and whose manifest has not.
        machine.space.create_index(def(1), OPTIONS, None).unwrap();
        if is_incomplete {
            machine.space.set_incomplete(IndexId(1));
        }
        machine.space.set_created(Some(IndexId(1)), Lsn(11));
        machine.space.begin_with_primary();
        machine.space.put(None, Some(&row(2, 20)));
        // There is no room for what the log has more.
        machine.engine.dump_all(Lsn(12)).unwrap();
        assert_eq!((machine.space.dumped_lsn(), machine.engine.statistics().memtable_bytes), (Lsn(12), 0));
        machine.engine.close();
        let engine = lsm_rig::open(config(), &machine.files, &machine.clock).unwrap();
        assert!(
            engine
                .claim(SpaceId(SPACE), IndexId::PRIMARY, Lsn(1), true, None)
                .is_some_and(|tree| tree.dumped_lsn == 12)
        );
        assert_eq!(engine.claim(SpaceId(SPACE), IndexId(1), Lsn(11), true, Some(Lsn(12))).is_none(), is_incomplete);
        engine.close();
    }
}
