//! Indexes of the disk engine that hold any number of entries of a row, against a model: in memory and in runs, through dumps, compactions,
//! builds and new starts.
#![allow(clippy::unwrap_used, reason = "a test")]

mod entries_rig;
#[allow(dead_code, reason = "its rows are others")]
mod lsm_rig;

use entries_rig::{Model, Row, decode, encode, format, key, model_of, primary, row, secondary};
use proptest::prelude::*;
use runtime::{ManualClock, SimulatedFiles};
use std::rc::Rc;
use std::sync::Arc;
use storage::lsm::{BuildStop, DiskChange, DiskKey, DiskScan, LsmEngine, LsmSpace, TreeOptions};
use storage::{IndexDef, IndexKind, IteratorKind};
use tuple::{IndexId, Lsn, SpaceId};

const SPACE: u32 = 512;
const OPTIONS: TreeOptions =
    TreeOptions { page_size: 100, range_size: 4_000, run_count_per_level: 2, run_size_ratio: 3.5, bloom_fpr: 0.01 };
const WHOLE: DiskKey<'_> = DiskKey { parts: &[], part_count: 0 };

#[derive(Clone, Debug)]
enum Step {
    Put(Row),
    Delete(u64),
    UndoLast,
    /// So many changes are undone and made again.
    UndoAndRedo(usize),
    Dump,
    Compact,
    Restart,
    /// A scan sees the rest of the space as it is now.
    Hold(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => row().prop_map(Step::Put),
        6 => (0..30u64).prop_map(Step::Delete),
        3 => Just(Step::UndoLast),
        2 => (1..10usize).prop_map(Step::UndoAndRedo),
        3 => Just(Step::Dump),
        1 => Just(Step::Compact),
        1 => Just(Step::Restart),
        1 => (0..20u64).prop_map(Step::Hold),
    ]
}

struct World {
    files: SimulatedFiles,
    clock: Arc<ManualClock>,
    engine: Rc<LsmEngine>,
    space: Rc<LsmSpace>,
    lsn: i64,
    model: Model,
}

fn defs() -> Vec<IndexDef> {
    vec![primary(IndexKind::Tree), secondary(1, IndexKind::Tree), secondary(2, IndexKind::Tree)]
}

fn ids(scan: &mut DiskScan) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some(row) = scan.next_row().ok().unwrap() {
        ids.push(row.with(decode).0);
    }
    ids
}

impl World {
    fn new(indexes: usize) -> Self {
        let (files, clock) = (SimulatedFiles::default(), Arc::new(ManualClock::default()));
        let engine = lsm_rig::open(lsm_rig::config(), &files, &clock).unwrap();
        let space = LsmSpace::new(&engine, SpaceId(SPACE), format());
        defs().into_iter().take(indexes).for_each(|def| space.create_index(def, OPTIONS, None).unwrap());
        space.set_created(None, Lsn(1));
        World { files, clock, engine, space, lsn: 1, model: Model::default() }
    }

    fn old(&self, id: u64) -> Option<Vec<u8>> {
        let key = key(id);
        let found = self.space.get(IndexId::PRIMARY, DiskKey { parts: &key, part_count: 1 }).ok().unwrap();
        found.map(|row| row.with(<[u8]>::to_vec))
    }

    /// Puts a row in unless the model forbids it, which the space has to know.
    fn put(&mut self, row: Row) -> Option<DiskChange> {
        let (old, new) = (self.old(row.0), encode(row));
        assert_eq!(old.as_deref().map(decode), self.model.rows.get(&row.0).copied());
        let conflict = self.space.conflict(&new, old.as_deref()).ok().unwrap();
        assert_eq!(conflict.is_some(), self.model.forbids(row) && self.space.index_defs().len() == 3);
        if let Some((index_id, found)) = conflict {
            let found = found.with(decode);
            assert!(index_id == 2 && found.0 != row.0 && self.model.rows[&found.0] == found);
            return None;
        }
        self.model.rows.insert(row.0, row);
        self.lsn += 1;
        Some(self.space.put(old.as_deref(), Some(&new)))
    }

    fn delete(&mut self, id: u64) -> Option<DiskChange> {
        let old = self.old(id)?;
        self.model.rows.remove(&id);
        self.lsn += 1;
        Some(self.space.put(Some(&old), None))
    }

    fn turns(&self) {
        for _ in 0..20 {
            self.clock.advance(5_000_000);
            self.engine.poll(Lsn(self.lsn), Lsn(self.lsn));
        }
    }

    fn dump(&self) {
        self.engine.begin_checkpoint(Lsn(self.lsn));
        self.turns();
        assert!(self.engine.failure().is_none() && self.engine.is_dumped(Lsn(self.lsn)));
    }

    fn compact(&self) {
        self.dump();
        for index_id in 0..3 {
            self.space.compact(IndexId(index_id));
        }
        self.turns();
    }

    /// Everything is in runs; the next life finds it there.
    fn restart(&mut self) {
        self.dump();
        self.engine.close();
        self.engine = lsm_rig::open(lsm_rig::config(), &self.files, &self.clock).unwrap();
        self.space = LsmSpace::new(&self.engine, SpaceId(SPACE), format());
        for def in defs() {
            let with_primary = (def.id != 0).then(|| self.space.primary_dumped_lsn().unwrap());
            let state = self.engine.claim(SpaceId(SPACE), def.id, Lsn(i64::MAX), false, with_primary);
            assert!(state.is_some(), "the manifest knows it");
            self.space.create_index(def, OPTIONS, state).unwrap();
        }
        self.engine.forget_unclaimed(false);
        self.turns();
    }

    fn compare(&self) {
        let Model { rows } = &self.model;
        assert_eq!(
            ids(&mut self.space.scan(IndexId::PRIMARY, IteratorKind::All, WHOLE)),
            rows.keys().copied().collect::<Vec<_>>()
        );
        for index_id in [1, 2] {
            let entries = self.model.entries(index_id);
            let expect = |kind: IteratorKind, parts: Option<u64>, wanted: &dyn Fn(u64) -> bool| {
                let parts = parts.map(key);
                let key = parts.as_ref().map_or(WHOLE, |parts| DiskKey { parts, part_count: 1 });
                let mut expected: Vec<u64> =
                    entries.iter().filter(|(value, _)| wanted(*value)).map(|(_, id)| *id).collect();
                if kind.is_reverse() {
                    expected.reverse();
                }
                assert_eq!(
                    ids(&mut self.space.scan(IndexId(index_id), kind, key)),
                    expected,
                    "index {index_id} {kind:?}"
                );
                // Piece by piece, each behind the place of the last entry.
                let (mut pieces, mut place) = (Vec::new(), None::<Vec<u8>>);
                loop {
                    let mut scan = match &place {
                        None => self.space.scan(IndexId(index_id), kind, key),
                        Some(place) => self.space.scan_behind(IndexId(index_id), kind, key, place),
                    };
                    let Some(row) = scan.next_row().ok().unwrap() else { break };
                    pieces.push(row.with(decode).0);
                    place = scan.place().map(<[u8]>::to_vec);
                }
                assert_eq!(pieces, expected, "index {index_id} {kind:?} piece by piece");
            };
            expect(IteratorKind::All, None, &|_| true);
            expect(IteratorKind::Req, None, &|_| true);
            for at in [0, 3] {
                expect(IteratorKind::Eq, Some(at), &|value| value == at);
                expect(IteratorKind::Ge, Some(at), &|value| value >= at);
                expect(IteratorKind::Lt, Some(at), &|value| value < at);
            }
        }
        for value in 0..60 {
            let wanted = self.model.entries(2).into_iter().find(|entry| entry.0 == value).map(|(_, id)| rows[&id]);
            let key = key(value);
            let found = self.space.get(IndexId(2), DiskKey { parts: &key, part_count: 1 }).ok().unwrap();
            assert_eq!(found.map(|row| row.with(decode)), wanted);
        }
    }
}

fn check(before: Vec<Row>, steps: Vec<Step>, is_built: bool) {
    let before = model_of(before);
    let mut world = World::new(if is_built { 1 } else { 3 });
    for row in before.rows.values() {
        world.put(*row).unwrap();
    }
    let mut changes: Vec<(DiskChange, Model)> = Vec::new();
    let mut steps = steps.into_iter();
    if is_built {
        // A part of the rows is in runs, and some are written while the indexes are filled.
        world.dump();
        let mut build = world
            .space
            .begin_build(Rc::new(format()), defs()[1..].iter().map(|def| (def.clone(), OPTIONS)).collect())
            .unwrap();
        while !build.is_done() {
            match build.build_some(3) {
                Ok(_) | Err(BuildStop::Busy) => {}
                Err(_) => panic!("rows that can be held"),
            }
            match steps.next() {
                Some(Step::Put(row)) if !build.is_done() && !world.model.forbids(row) => _ = world.put(row),
                Some(Step::Delete(id)) => _ = world.delete(id),
                _ => {}
            }
        }
        assert!(build.end().iter().all(|(_, replaced)| replaced.is_none()));
        world.lsn += 1;
        world.space.set_created(None, Lsn(world.lsn));
        world.engine.seal(&[Rc::clone(&world.space)], Lsn(world.lsn));
        world.compare();
    }
    for step in steps {
        match step {
            Step::Put(row) => {
                let earlier = world.model.clone();
                changes.extend(world.put(row).map(|change| (change, earlier)));
            }
            Step::Delete(id) => {
                let earlier = world.model.clone();
                changes.extend(world.delete(id).map(|change| (change, earlier)));
            }
            Step::UndoLast => {
                if let Some((change, earlier)) = changes.pop() {
                    world.space.undo(&change);
                    world.model = earlier;
                }
            }
            Step::UndoAndRedo(count) => {
                let from = changes.len().saturating_sub(count);
                changes[from..].iter().rev().for_each(|(change, _)| world.space.undo(change));
                for (change, _) in &mut changes[from..] {
                    *change = world.space.redo(change);
                }
            }
            Step::Dump | Step::Compact | Step::Restart => {
                // What is in runs is never undone.
                changes.clear();
                match step {
                    Step::Dump => world.dump(),
                    Step::Compact => world.compact(),
                    _ => world.restart(),
                }
                world.compare();
            }
            Step::Hold(passed) => {
                let mut scan = world.space.scan(IndexId(1), IteratorKind::All, WHOLE);
                let mut found = Vec::new();
                for _ in 0..passed {
                    found.extend(scan.next_row().ok().unwrap().map(|row| row.with(decode).0));
                }
                scan.hold();
                let expected = world.model.ids(1);
                for id in 0..10 {
                    let change = world.delete(id);
                    let put = world.put((id + 40, [Some(id % 5), Some(4)], [None; 2]));
                    let earlier = Model::default();
                    changes.extend(change.into_iter().chain(put).map(|change| (change, earlier.clone())));
                }
                found.extend(ids(&mut scan));
                assert_eq!(found, expected);
                changes.clear();
            }
        }
    }
    world.compare();
    world.restart();
    world.compare();
    world.compact();
    world.compare();
    world.engine.close();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn indexes_with_entries_agree_with_a_model(
        before in proptest::collection::vec(row(), 0..40),
        steps in proptest::collection::vec(step(), 0..150),
        is_built in any::<bool>(),
    ) {
        check(before, steps, is_built);
    }
}

#[test]
fn two_rows_with_one_key_in_any_of_their_entries_end_a_build() {
    let mut world = World::new(1);
    world.put((1, [None; 2], [Some(7), Some(8)])).unwrap();
    world.put((2, [None; 2], [Some(9), Some(8)])).unwrap();
    let mut build = world.space.begin_build(Rc::new(format()), vec![(defs().remove(2), OPTIONS)]).unwrap();
    let refused = loop {
        match build.build_some(10) {
            Ok(_) | Err(BuildStop::Busy) => assert!(!build.is_done()),
            Err(stop) => break stop,
        }
    };
    assert!(matches!(refused, BuildStop::Duplicate { index_id: IndexId(2) }));
    drop(build);
    world.engine.close();
}
