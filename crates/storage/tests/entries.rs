//! Indexes of the memory engine that hold any number of entries of a row, against a model.
#![allow(clippy::unwrap_used, reason = "a test")]

mod entries_rig;

use entries_rig::{Model, Row, decode, encode, format, key, model_of, primary, row, secondary};
use proptest::prelude::*;
use std::rc::Rc;
use storage::{BuildError, Change, IndexDef, IndexKind, IteratorKind, MemoryIterator, MemorySpace, Mode, StorageError};
use tuple::{Arena, IndexId, Tuple};

#[derive(Clone, Debug)]
enum Step {
    Put(Row, bool),
    Delete(u64),
    UndoLast,
    /// So many changes are undone and made again.
    UndoAndRedo(usize),
    Fill(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (row(), any::<bool>()).prop_map(|(row, is_insert)| Step::Put(row, is_insert)),
        4 => (0..30u64).prop_map(Step::Delete),
        3 => Just(Step::UndoLast),
        2 => (1..10usize).prop_map(Step::UndoAndRedo),
        4 => (1..8usize).prop_map(Step::Fill),
    ]
}

/// When the secondary indexes get their entries.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    AtOnce,
    InSlices,
    AtTheEnd,
}

fn defs() -> Vec<IndexDef> {
    vec![secondary(1, IndexKind::Tree), secondary(2, IndexKind::Tree), secondary(3, IndexKind::Hash)]
}

fn ids(space: &MemorySpace, index_id: u32, kind: IteratorKind, parts: &[u8], part_count: u32) -> Vec<u64> {
    let mut ids = Vec::new();
    space.scan(IndexId(index_id), kind, parts, part_count, |row| {
        ids.push(decode(row).0);
        true
    });
    ids
}

fn stepped(space: &MemorySpace, index_id: u32, kind: IteratorKind, parts: &[u8], part_count: u32) -> Vec<u64> {
    let mut iterator = MemoryIterator::new(IndexId(index_id), kind, parts, part_count);
    std::iter::from_fn(|| iterator.next(space)).map(|row| decode(row.data()).0).collect()
}

fn compare(space: &MemorySpace, model: &Model) {
    assert_eq!(space.len(), model.rows.len());
    for index_id in [1, 2] {
        let entries = model.entries(index_id);
        let expect = |found: Vec<u64>, wanted: &dyn Fn(u64) -> bool, is_reverse: bool| {
            let mut ids: Vec<u64> = entries.iter().filter(|(value, _)| wanted(*value)).map(|(_, id)| *id).collect();
            if is_reverse {
                ids.reverse();
            }
            assert_eq!(found, ids);
        };
        expect(ids(space, index_id, IteratorKind::All, &[], 0), &|_| true, false);
        expect(ids(space, index_id, IteratorKind::Req, &[], 0), &|_| true, true);
        assert_eq!(space.count(IndexId(index_id), IteratorKind::All, &[], 0), entries.len());
        for at in 0..6 {
            for find in [ids, stepped] {
                let find = |kind| find(space, index_id, kind, &key(at), 1);
                expect(find(IteratorKind::Eq), &|value| value == at, false);
                expect(find(IteratorKind::Req), &|value| value == at, true);
                expect(find(IteratorKind::Ge), &|value| value >= at, false);
                expect(find(IteratorKind::Lt), &|value| value < at, true);
            }
        }
    }
    for index_id in [2, 3] {
        for value in 0..60 {
            let wanted = model.entries(2).into_iter().find(|entry| entry.0 == value).map(|(_, id)| model.rows[&id]);
            assert_eq!(space.get(IndexId(index_id), &key(value), 1).map(|row| decode(row.data())), wanted);
        }
    }
    let mut hashed = ids(space, 3, IteratorKind::All, &[], 0);
    let mut expected = model.ids(3);
    hashed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(hashed, expected);
}

fn check(kind: IndexKind, when: When, before: Vec<Row>, steps: Vec<Step>) {
    let arena = Arena::new(16 << 20);
    let make = |row: Row| Tuple::new(&arena, 0, &encode(row)).unwrap();
    let mut space = MemorySpace::new(&arena);
    space.create_index(primary(kind));
    if when != When::InSlices {
        defs().into_iter().for_each(|def| space.create_index(def));
    }
    if when == When::AtTheEnd {
        space.defer_secondary_indexes();
    }
    let mut model = model_of(before);
    model.rows.values().for_each(|row| {
        space.replace(make(*row), Mode::Insert).unwrap();
    });
    match when {
        When::AtOnce => {}
        When::InSlices => _ = space.begin_build(Rc::new(format()), defs()),
        When::AtTheEnd => space.complete_indexes().unwrap(),
    }
    let mut changes: Vec<(Change, Model)> = Vec::new();
    for step in steps {
        match step {
            Step::Put(row, is_insert) => {
                let is_there = is_insert && model.rows.contains_key(&row.0);
                let is_forbidden = model.forbids(row);
                // Nobody refuses it while the index is not there.
                if when == When::InSlices && is_forbidden {
                    continue;
                }
                match space.replace(make(row), if is_insert { Mode::Insert } else { Mode::Replace }) {
                    Ok(change) => {
                        assert!(!is_there && !is_forbidden);
                        changes.push((change, model.clone()));
                        model.rows.insert(row.0, row);
                    }
                    Err(StorageError::Duplicate { index_id, existing }) => {
                        assert_eq!(index_id, if is_there { 0 } else { 2 });
                        assert!(is_there || is_forbidden);
                        let existing = decode(existing.data());
                        assert_eq!(model.rows[&existing.0], existing);
                        assert_eq!(existing.0 == row.0, is_there);
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            Step::Delete(id) => {
                if let Some(old) = space.get(IndexId::PRIMARY, &key(id), 1) {
                    changes.push((space.delete(old), model.clone()));
                    model.rows.remove(&id);
                }
            }
            Step::UndoLast => {
                if let Some((change, earlier)) = changes.pop() {
                    space.undo(&change);
                    model = earlier;
                }
            }
            Step::UndoAndRedo(count) => {
                let from = changes.len().saturating_sub(count);
                changes[from..].iter().rev().for_each(|(change, _)| space.undo(change));
                if let Some((_, then)) = changes.get(from)
                    && when != When::InSlices
                {
                    compare(&space, then);
                }
                changes[from..].iter().for_each(|(change, _)| space.redo(change));
            }
            Step::Fill(max) if when == When::InSlices => _ = space.build_some(max).unwrap(),
            Step::Fill(_) => {}
        }
        assert_eq!(space.take_damage(), None);
    }
    if when == When::InSlices {
        while space.build_some(7).unwrap() {}
        assert!(space.end_build().is_empty());
    }
    compare(&space, &model);
    assert!(model.rows.is_empty() || space.random(IndexId(1), 7).is_some() || model.entries(1).is_empty());
    let emptied = space.take_all();
    assert!(space.is_empty() && ids(&space, 1, IteratorKind::All, &[], 0).is_empty());
    compare(&emptied, &model);
    drop((changes, space, emptied));
    while arena.collect(100) > 0 {}
    assert_eq!((arena.used(), arena.charged()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn indexes_with_entries_agree_with_a_model(
        is_hash in any::<bool>(),
        when in prop_oneof![Just(When::AtOnce), Just(When::InSlices), Just(When::AtTheEnd)],
        before in proptest::collection::vec(row(), 0..40),
        steps in proptest::collection::vec(step(), 0..120),
    ) {
        check(if is_hash { IndexKind::Hash } else { IndexKind::Tree }, when, before, steps);
    }

    /// A scan gives what lies behind its last entry, not behind its last row.
    #[test]
    fn a_scan_goes_on_behind_its_last_entry(
        before in proptest::collection::vec(row(), 0..40),
        changes in proptest::collection::vec((row(), any::<bool>()), 0..60),
        is_reverse in any::<bool>(),
    ) {
        let arena = Arena::new(16 << 20);
        let mut space = MemorySpace::new(&arena);
        space.create_index(primary(IndexKind::Tree));
        space.create_index(secondary(1, IndexKind::Tree));
        let mut model = model_of(before);
        for row in model.rows.values() {
            space.replace(Tuple::new(&arena, 0, &encode(*row)).unwrap(), Mode::Insert).unwrap();
        }
        let kind = if is_reverse { IteratorKind::Req } else { IteratorKind::All };
        let mut iterator = MemoryIterator::new(IndexId(1), kind, &[], 0);
        let mut last: Option<(u64, u64)> = None;
        let mut changes = changes.into_iter();
        loop {
            let is_behind = |entry: &(u64, u64)| match last {
                None => true,
                Some(last) if is_reverse => *entry < last,
                Some(last) => *entry > last,
            };
            let entries = model.entries(1);
            let expected = if is_reverse { entries.into_iter().rev().find(is_behind) } else { entries.into_iter().find(is_behind) };
            let found = iterator.next(&space).map(|row| decode(row.data()).0);
            assert_eq!(found, expected.map(|(_, id)| id));
            let Some(expected) = expected else { break };
            last = Some(expected);
            if let Some((row, is_delete)) = changes.next() {
                if is_delete {
                    if let Some(old) = space.get(IndexId::PRIMARY, &key(row.0), 1) {
                        space.delete(old);
                    }
                    model.rows.remove(&row.0);
                } else {
                    space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), Mode::Replace).unwrap();
                    model.rows.insert(row.0, row);
                }
            }
        }
    }
}

#[test]
fn two_rows_with_one_key_in_any_of_their_entries_end_a_build_and_a_load() {
    let arena = Arena::new(16 << 20);
    for kind in [IndexKind::Tree, IndexKind::Hash] {
        for is_load in [false, true] {
            let mut space = MemorySpace::new(&arena);
            space.create_index(primary(IndexKind::Tree));
            if is_load {
                space.create_index(secondary(2, kind));
                space.defer_secondary_indexes();
            }
            for row in [(1, [None; 2], [Some(7), Some(8)]), (2, [None; 2], [Some(9), Some(8)])] {
                space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), Mode::Insert).unwrap();
            }
            if is_load {
                let refused = space.complete_indexes();
                assert!(matches!(refused, Err(StorageError::Duplicate { index_id: IndexId(2), .. })));
                continue;
            }
            space.begin_build(Rc::new(format()), vec![secondary(2, kind)]);
            let refused = space.build_some(10);
            assert!(
                matches!(&refused, Err(BuildError::Duplicate { index_id: IndexId(2), existing }) if decode(existing.data()).0 == 1)
            );
            drop(refused);
            space.abandon_build();
        }
    }
    assert_eq!((arena.used(), arena.charged()), (0, 0));
}

#[test]
fn an_index_with_entries_taken_out_of_its_space_is_freed_in_slices() {
    let arena = Arena::new(64 << 20);
    let mut space = MemorySpace::new(&arena);
    space.create_index(primary(IndexKind::Tree));
    space.create_index(secondary(1, IndexKind::Tree));
    for id in 0..5_000 {
        let row = (id, [Some(id % 5), Some(id % 7)], [None; 2]);
        space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), Mode::Insert).unwrap();
    }
    assert!(space.index_bytes(IndexId(1)) > space.index_bytes(IndexId::PRIMARY));
    let before = arena.charged();
    let mut index = space.drop_index(IndexId(1)).unwrap();
    assert!(arena.charged() < before / 2);
    while index.release_some() {}
    drop(index);
    assert_eq!(space.len(), 5_000);
}
