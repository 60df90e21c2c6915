//! The memory engine against a model: a map of rows, with secondary indexes computed from it when asked.
#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::rc::Rc;
use storage::{Change, IndexDef, IndexKind, IteratorKind, KeySource, MemoryIterator, MemorySpace, Mode, StorageError};
use tuple::{Arena, FieldType, IndexId, KeyDef, KeyPart, Tuple, msgpack};

/// Rows are [id, group, unique value or nil].
type Row = (u64, u64, Option<u64>);

fn encode(row: Row) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, 3);
    msgpack::encode_uint(&mut out, row.0);
    msgpack::encode_uint(&mut out, row.1);
    match row.2 {
        Some(value) => msgpack::encode_uint(&mut out, value),
        None => msgpack::encode_nil(&mut out),
    }
    out
}

fn decode(bytes: &[u8]) -> Row {
    let mut reader = msgpack::Reader::new(bytes);
    assert_eq!(reader.read_array(), Ok(3));
    (reader.read_uint().unwrap(), reader.read_uint().unwrap(), reader.read_uint().ok())
}

fn space(arena: &Arena, primary: IndexKind) -> MemorySpace {
    let part = |field_no, is_nullable| KeyPart { is_nullable, ..KeyPart::new(field_no, FieldType::Unsigned) };
    let id = Rc::new(KeyDef::new(vec![part(0, false)]));
    let group = Rc::new(KeyDef::new(vec![part(1, false)]));
    let value = Rc::new(KeyDef::new(vec![part(2, true)]));
    let mut space = MemorySpace::new(arena);
    let def = |index_id, kind, is_unique, key: &Rc<KeyDef>, compare| IndexDef {
        id: index_id,
        kind,
        is_unique,
        key_def: Rc::clone(key),
        compare_def: compare,
        source: KeySource::Fields,
    };
    space.create_index(def(IndexId::PRIMARY, primary, true, &id, Rc::clone(&id)));
    space.create_index(def(IndexId(1), IndexKind::Tree, false, &group, Rc::new(KeyDef::merge(&group, &id))));
    space.create_index(def(IndexId(2), IndexKind::Tree, true, &value, Rc::new(KeyDef::merge(&value, &id))));
    space
}

#[derive(Clone, Debug)]
enum Step {
    Put(Row, bool),
    Delete(u64),
    UndoLast,
    Forget,
    OpenView,
    CloseView,
}

fn step() -> impl Strategy<Value = Step> {
    let row = (0..60u64, 0..5u64, proptest::option::of(0..40u64));
    prop_oneof![
        10 => (row, any::<bool>()).prop_map(|(row, insert)| Step::Put(row, insert)),
        5 => (0..60u64).prop_map(Step::Delete),
        4 => Just(Step::UndoLast),
        1 => Just(Step::Forget),
        1 => Just(Step::OpenView),
        1 => Just(Step::CloseView),
    ]
}

fn rows(space: &MemorySpace, index_id: u32) -> Vec<Row> {
    let mut all = Vec::new();
    space.scan(IndexId(index_id), IteratorKind::All, &[], 0, |row| {
        all.push(decode(row));
        true
    });
    all
}

fn check(kind: IndexKind, steps: Vec<Step>) {
    let arena = Arena::new(16 << 20);
    let mut space = space(&arena, kind);
    let mut model: BTreeMap<u64, Row> = BTreeMap::new();
    let mut changes: Vec<(Change, BTreeMap<u64, Row>)> = Vec::new();
    let mut views = Vec::new();
    for step in steps {
        match step {
            Step::Put(row, is_insert) => {
                let tuple = Tuple::new(&arena, 0, &encode(row)).unwrap();
                let mode = if is_insert { Mode::Insert } else { Mode::Replace };
                let taken = model.values().any(|other| other.0 != row.0 && row.2.is_some() && other.2 == row.2);
                let exists = is_insert && model.contains_key(&row.0);
                match space.replace(tuple, mode) {
                    Ok(change) => {
                        assert!(!taken && !exists);
                        changes.push((change, model.clone()));
                        model.insert(row.0, row);
                    }
                    Err(StorageError::Duplicate { index_id, .. }) => {
                        assert_eq!(index_id, if exists { 0 } else { 2 });
                        assert!(taken || exists);
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            Step::Delete(id) => {
                let mut key = Vec::new();
                msgpack::encode_uint(&mut key, id);
                let found = space.get(IndexId::PRIMARY, &key, 1);
                assert_eq!(found.as_ref().map(|tuple| decode(tuple.data())), model.get(&id).copied());
                if let Some(tuple) = found {
                    changes.push((space.delete(tuple), model.clone()));
                    model.remove(&id);
                }
            }
            Step::UndoLast => {
                if let Some((change, before)) = changes.pop() {
                    space.undo(&change);
                    model = before;
                }
            }
            Step::Forget => changes.clear(),
            Step::OpenView => {
                arena.open_view();
                views.push((space.open_view().unwrap(), model.clone()));
            }
            Step::CloseView => {
                if let Some((view, then)) = views.pop() {
                    check_view(&view, &then);
                    space.close_view(view);
                    arena.close_view();
                }
            }
        }
    }
    let mut by_id = rows(&space, 0);
    by_id.sort_unstable();
    let expected: Vec<Row> = model.values().copied().collect();
    assert_eq!(by_id, expected);
    let mut by_group = expected.clone();
    by_group.sort_by_key(|row| (row.1, row.0));
    assert_eq!(rows(&space, 1), by_group);
    let mut by_value = expected.clone();
    by_value.sort_by_key(|row| (row.2, row.0));
    assert_eq!(rows(&space, 2), by_value);
    for group in 0..5u64 {
        let mut key = Vec::new();
        msgpack::encode_uint(&mut key, group);
        let count = expected.iter().filter(|row| row.1 == group).count();
        assert_eq!(space.count(IndexId(1), IteratorKind::Eq, &key, 1), count);
        let mut backwards = Vec::new();
        let mut iterator = MemoryIterator::new(IndexId(1), IteratorKind::Req, &key, 1);
        while let Some(tuple) = iterator.next(&space) {
            backwards.push(decode(tuple.data()).0);
        }
        assert!(backwards.is_sorted_by(|a, b| a > b) && backwards.len() == count);
        let below = expected.iter().filter(|row| row.1 < group).count();
        assert_eq!(space.count(IndexId(1), IteratorKind::Lt, &key, 1), below);
        let above = expected.iter().filter(|row| row.1 > group).count();
        assert_eq!(space.count(IndexId(1), IteratorKind::Gt, &key, 1), above);
    }
    for (view, then) in views {
        check_view(&view, &then);
        space.close_view(view);
        arena.close_view();
    }
    drop(changes);
    drop(space);
    while arena.collect(100) > 0 {}
    assert_eq!((arena.used(), arena.charged()), (0, 0));
}

fn check_view(view: &storage::MemoryView, then: &BTreeMap<u64, Row>) {
    let mut seen = Vec::new();
    let done: Result<(), ()> = view.for_each(|row| {
        seen.push(decode(row));
        Ok(())
    });
    assert_eq!(done, Ok(()));
    seen.sort_unstable();
    assert_eq!(seen, then.values().copied().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_tree_space_agrees_with_a_map(steps in proptest::collection::vec(step(), 1..300)) {
        check(IndexKind::Tree, steps);
    }

    #[test]
    fn a_hash_space_agrees_with_a_map(steps in proptest::collection::vec(step(), 1..300)) {
        check(IndexKind::Hash, steps);
    }
}

#[test]
fn an_iterator_goes_on_behind_its_last_row_whatever_changes() {
    let arena = Arena::new(16 << 20);
    let mut space = space(&arena, IndexKind::Tree);
    for id in 0..100 {
        space.replace(Tuple::new(&arena, 0, &encode((id, 0, None))).unwrap(), Mode::Insert).unwrap();
    }
    let mut iterator = MemoryIterator::new(IndexId::PRIMARY, IteratorKind::Ge, &[10], 1);
    let mut seen = Vec::new();
    while let Some(tuple) = iterator.next(&space) {
        seen.push(decode(tuple.data()).0);
        space.delete(tuple);
    }
    assert_eq!(seen, (10..100).collect::<Vec<_>>());
    assert_eq!(space.len(), 10);
}

fn check_loading(kind: IndexKind, loaded: Vec<Step>, later: Vec<Step>) {
    let arena = Arena::new(16 << 20);
    let mut space = space(&arena, kind);
    let mut model: BTreeMap<u64, Row> = BTreeMap::new();
    space.defer_secondary_indexes();
    assert!(space.is_deferring() && space.index_def(IndexId(1)).is_none());
    for step in loaded {
        match step {
            Step::Put(row, is_insert) => {
                let mode = if is_insert { Mode::Insert } else { Mode::Replace };
                let put = space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), mode);
                let is_refused = is_insert && model.contains_key(&row.0);
                assert_eq!(put.is_err(), is_refused);
                if !is_refused {
                    model.insert(row.0, row);
                }
            }
            Step::Delete(id) if model.remove(&id).is_some() => {
                let mut key = Vec::new();
                msgpack::encode_uint(&mut key, id);
                let old = space.get(IndexId::PRIMARY, &key, 1).unwrap();
                space.delete(old);
            }
            _ => {}
        }
    }
    let mut values: Vec<u64> = model.values().filter_map(|row| row.2).collect();
    values.sort_unstable();
    let is_unique = values.windows(2).all(|pair| pair[0] != pair[1]);
    match space.complete_indexes() {
        Ok(()) => assert!(is_unique && !space.is_deferring()),
        Err(StorageError::Duplicate { index_id, existing }) => {
            let (_, _, value) = decode(existing.data());
            assert!(index_id == 2 && values.iter().filter(|other| Some(**other) == value).count() > 1);
            assert!(space.is_deferring());
            return;
        }
        Err(error) => panic!("{error:?}"),
    }
    // The indexes are as if they had always been there.
    for step in later {
        match step {
            Step::Put(row, _) => {
                let taken = model.values().any(|other| other.0 != row.0 && row.2.is_some() && other.2 == row.2);
                let put = space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), Mode::Replace);
                assert_eq!(put.is_err(), taken);
                if !taken {
                    model.insert(row.0, row);
                }
            }
            Step::Delete(id) if model.remove(&id).is_some() => {
                let mut key = Vec::new();
                msgpack::encode_uint(&mut key, id);
                let old = space.get(IndexId::PRIMARY, &key, 1).unwrap();
                space.delete(old);
            }
            _ => {}
        }
    }
    let mut expected: Vec<Row> = model.values().copied().collect();
    expected.sort_unstable_by_key(|row| (row.1, row.0));
    assert_eq!(rows(&space, 1), expected);
    expected.sort_unstable_by_key(|row| (row.2, row.0));
    assert_eq!(rows(&space, 2), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn indexes_filled_at_the_end_are_as_if_they_had_been_there(
        is_hash in any::<bool>(),
        loaded in proptest::collection::vec(step(), 0..40),
        later in proptest::collection::vec(step(), 0..200),
    ) {
        check_loading(if is_hash { IndexKind::Hash } else { IndexKind::Tree }, loaded, later);
    }
}

#[test]
fn many_rows_are_sorted_by_several_threads_and_found() {
    let arena = Arena::new(256 << 20);
    let mut space = space(&arena, IndexKind::Tree);
    space.defer_secondary_indexes();
    let count = 120_000;
    for at in 0..count {
        let id = at * 7919 % count;
        let row = (id, id % 10, (id % 3 > 0).then(|| count - id));
        space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), Mode::Insert).unwrap();
    }
    space.complete_indexes().unwrap();
    assert!(rows(&space, 1).is_sorted_by_key(|row| (row.1, row.0)));
    let by_value = rows(&space, 2);
    assert!(by_value.is_sorted_by_key(|row| (row.2, row.0)) && by_value.len() == count as usize);
}
