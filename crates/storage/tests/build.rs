//! Indexes that are filled in slices against a model: whatever happens to the rows meanwhile, at the end they hold what the space holds, and
//! they come to no end only if a row was there that they could not hold.
#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::rc::Rc;
use storage::{Change, IndexDef, IndexKind, IteratorKind, KeySource, MemorySpace, Mode};
use tuple::{Arena, FieldType, Format, IndexId, KeyDef, KeyPart, Tuple, msgpack};

/// Rows are [id, group, value]: a value is a number, nil, or text, which the new indexes refuse.
type Row = (u64, u64, Value);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Nil,
    Number(u64),
    Text,
}

fn encode(row: Row) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, 3);
    msgpack::encode_uint(&mut out, row.0);
    msgpack::encode_uint(&mut out, row.1);
    match row.2 {
        Value::Nil => msgpack::encode_nil(&mut out),
        Value::Number(value) => msgpack::encode_uint(&mut out, value),
        Value::Text => msgpack::encode_str(&mut out, b"text"),
    }
    out
}

fn decode(bytes: &[u8]) -> Row {
    let mut reader = msgpack::Reader::new(bytes);
    assert_eq!(reader.read_array(), Ok(3));
    let (id, group) = (reader.read_uint().unwrap(), reader.read_uint().unwrap());
    let value = match reader.kind().unwrap() {
        msgpack::Kind::Nil => Value::Nil,
        msgpack::Kind::Str => Value::Text,
        _ => Value::Number(reader.read_uint().unwrap()),
    };
    (id, group, value)
}

fn part(field_no: u32) -> KeyPart {
    KeyPart { is_nullable: field_no == 2, ..KeyPart::new(field_no, FieldType::Unsigned) }
}

fn def(id: u32, kind: IndexKind, is_unique: bool, fields: &[u32], more: &[u32]) -> IndexDef {
    let key = |fields: &[u32]| KeyDef::new(fields.iter().map(|field| part(*field)).collect());
    let key_def = Rc::new(key(fields));
    let compare_def = if more.is_empty() { Rc::clone(&key_def) } else { Rc::new(KeyDef::merge(&key_def, &key(more))) };
    IndexDef { id: IndexId(id), kind, is_unique, key_def, compare_def, source: KeySource::Fields }
}

/// What is built.
#[derive(Clone, Copy, Debug)]
enum Plan {
    /// Three more indexes.
    Add,
    /// The primary index, by group and id, and with it the one by group.
    AlterPrimary,
    /// Nothing: rows are only looked at.
    Check,
}

impl Plan {
    fn defs(self) -> Vec<IndexDef> {
        match self {
            Plan::Add => vec![
                def(1, IndexKind::Tree, false, &[1], &[0]),
                def(2, IndexKind::Tree, true, &[2], &[0]),
                def(3, IndexKind::Hash, true, &[0, 1], &[]),
            ],
            Plan::AlterPrimary => {
                vec![def(0, IndexKind::Tree, true, &[1, 0], &[]), def(1, IndexKind::Tree, false, &[1], &[1, 0])]
            }
            Plan::Check => Vec::new(),
        }
    }

    /// True if the new indexes could not hold these rows.
    fn forbids(self, rows: &BTreeMap<u64, Row>) -> bool {
        let mut values: Vec<Value> = rows.values().map(|row| row.2).filter(|value| *value != Value::Nil).collect();
        values.sort_unstable();
        let has_duplicates = values.windows(2).any(|pair| pair[0] == pair[1]);
        values.contains(&Value::Text) || matches!(self, Plan::Add) && has_duplicates
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(Row),
    Delete(u64),
    UndoLast,
    Fill(usize),
    View,
}

/// Few seeds should have rows that end the building.
fn step(values: u64, text: u32) -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        6 => Just(Value::Nil),
        20 => (0..values).prop_map(Value::Number),
        text => Just(Value::Text),
    ];
    prop_oneof![
        8 => (0..80u64, 0..5u64, value).prop_map(Step::Put),
        4 => (0..80u64).prop_map(Step::Delete),
        2 => Just(Step::UndoLast),
        3 => (1..12usize).prop_map(Step::Fill),
        1 => Just(Step::View),
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

fn check(primary: IndexKind, plan: Plan, before: Vec<Row>, steps: Vec<Step>) {
    let arena = Arena::new(16 << 20);
    let mut space = MemorySpace::new(&arena);
    space.create_index(def(0, primary, true, &[0], &[]));
    if let Plan::AlterPrimary = plan {
        space.create_index(def(1, IndexKind::Tree, false, &[1], &[0]));
    }
    let mut model: BTreeMap<u64, Row> = BTreeMap::new();
    for row in before {
        space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), Mode::Replace).unwrap();
        model.insert(row.0, row);
    }
    let mut changes: Vec<(Change, BTreeMap<u64, Row>)> = Vec::new();
    let format = Format::new(0, Vec::new(), 0, &[part(0), part(1), part(2)]).unwrap();
    space.begin_build(Rc::new(format), plan.defs());
    let mut was_forbidden = plan.forbids(&model);
    let mut failure = None;
    let mut views = Vec::new();
    for step in steps {
        match step {
            Step::Put(row) => {
                let change = space.replace(Tuple::new(&arena, 0, &encode(row)).unwrap(), Mode::Replace).unwrap();
                changes.push((change, model.clone()));
                model.insert(row.0, row);
            }
            Step::Delete(id) => {
                let mut key = Vec::new();
                msgpack::encode_uint(&mut key, id);
                if let Some(tuple) = space.get(IndexId::PRIMARY, &key, 1) {
                    changes.push((space.delete(tuple), model.clone()));
                    model.remove(&id);
                }
            }
            Step::UndoLast => {
                if let Some((change, earlier)) = changes.pop() {
                    space.undo(&change);
                    model = earlier;
                }
            }
            Step::Fill(max) => failure = failure.or(space.build_some(max).err()),
            Step::View => {
                arena.open_view();
                views.push(space.open_view().unwrap());
            }
        }
        was_forbidden |= plan.forbids(&model);
    }
    let ended = loop {
        match space.build_some(7) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let mut by_id: Vec<Row> = model.values().copied().collect();
    let unused = match &ended {
        Ok(()) => {
            assert!(failure.is_none() && !plan.forbids(&model), "rows that cannot be held were taken");
            space.end_build()
        }
        Err(error) => {
            assert!(was_forbidden, "{error:?} of rows that can be held");
            space.abandon_build()
        }
    };
    let mut shown = rows(&space, 0);
    if let (Plan::AlterPrimary, Ok(())) = (plan, &ended) {
        let mut by_group = by_id.clone();
        by_group.sort_by_key(|row| (row.1, row.0));
        assert_eq!(shown, by_group);
        assert_eq!(rows(&space, 1), by_group);
    }
    shown.sort_unstable();
    assert_eq!(shown, by_id);
    if let (Plan::Add, Ok(())) = (plan, &ended) {
        let mut hashed = rows(&space, 3);
        hashed.sort_unstable();
        assert_eq!(hashed, by_id);
        by_id.sort_by_key(|row| (row.1, row.0));
        assert_eq!(rows(&space, 1), by_id);
        by_id.sort_by_key(|row| (row.2, row.0));
        assert_eq!(rows(&space, 2), by_id);
    }
    let mut unused = unused;
    for view in views {
        match unused.iter_mut().find(|index| index.owns_view(&view)) {
            Some(index) => index.close_view(view),
            None => space.close_view(view),
        }
        arena.close_view();
    }
    // They hold rows.
    drop((changes, unused, space, ended, failure));
    while arena.collect(100) > 0 {}
    assert_eq!((arena.used(), arena.charged()), (0, 0));
}

fn row() -> impl Strategy<Value = Row> {
    (0..80u64, 0..5u64, (0..1_000_000u64).prop_map(Value::Number))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn indexes_built_in_slices_hold_what_the_space_holds(
        is_hash in any::<bool>(),
        plan in prop_oneof![Just(Plan::Add), Just(Plan::AlterPrimary), Just(Plan::Check)],
        before in proptest::collection::vec(row(), 0..80),
        steps in prop_oneof![
            3 => proptest::collection::vec(step(1_000_000, 0), 1..200),
            1 => proptest::collection::vec(step(200, 1), 1..60),
        ],
    ) {
        check(if is_hash { IndexKind::Hash } else { IndexKind::Tree }, plan, before, steps);
    }
}

/// Issue 14: a row that an index lacks ended the process.
#[test]
fn a_row_that_an_index_lacks_is_reported_and_never_freed() {
    let arena = Arena::new(1 << 24);
    let mut space = MemorySpace::new(&arena);
    space.create_index(def(0, IndexKind::Tree, true, &[0], &[]));
    space.create_index(def(1, IndexKind::Hash, true, &[1], &[]));
    let make = |row: Row| Tuple::new(&arena, 0, &encode(row)).unwrap();
    space.replace(make((1, 1, Value::Nil)), Mode::Insert).unwrap();
    assert_eq!(space.take_damage(), None);
    let change = space.delete(make((2, 2, Value::Nil)));
    assert_eq!(space.take_damage(), Some(IndexId(1)));
    space.undo(&change);
    space.take_damage();
    assert_eq!(space.count(IndexId::PRIMARY, IteratorKind::All, &[], 0), 2);
}
