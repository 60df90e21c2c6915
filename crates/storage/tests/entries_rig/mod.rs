//! Indexes that hold none, one or two entries of a row, and a model of them: what tests of both engines set up alike.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use storage::{EntrySource, IndexDef, IndexKind, KeySource};
use tuple::msgpack::{self, Reader};
use tuple::{FieldType, Format, IndexId, KeyDef, KeyPart};

/// An id, two values that rows may share, two that they may not.
pub(crate) type Row = (u64, [Option<u64>; 2], [Option<u64>; 2]);

pub(crate) fn encode(row: Row) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, 5);
    msgpack::encode_uint(&mut out, row.0);
    for value in row.1.into_iter().chain(row.2) {
        match value {
            Some(value) => msgpack::encode_uint(&mut out, value),
            None => msgpack::encode_nil(&mut out),
        }
    }
    out
}

pub(crate) fn decode(bytes: &[u8]) -> Row {
    let mut reader = Reader::new(bytes);
    assert_eq!(reader.read_array(), Ok(5));
    let id = reader.read_uint().unwrap();
    let mut value = || {
        let found = Reader::new(reader.rest()).read_uint().ok();
        reader.skip_checked();
        found
    };
    (id, [value(), value()], [value(), value()])
}

pub(crate) fn key(value: u64) -> Vec<u8> {
    let mut key = Vec::new();
    msgpack::encode_uint(&mut key, value);
    key
}

/// Makes a key of each of two neighbouring fields that is no nil, the same twice if they are equal.
struct TwoFields {
    first: u32,
}

impl EntrySource for TwoFields {
    fn for_each_key(&self, row: &[u8], visit: &mut dyn FnMut(&[u8])) {
        for field_no in [self.first, self.first + 1] {
            if let Some(value) = tuple::field(row, field_no).filter(|value| Reader::new(value).read_uint().is_ok()) {
                visit(value);
            }
        }
    }
}

pub(crate) fn parts(field_no: u32) -> Vec<KeyPart> {
    vec![KeyPart::new(field_no, FieldType::Unsigned)]
}

pub(crate) fn primary(kind: IndexKind) -> IndexDef {
    let key_def = Rc::new(KeyDef::new(parts(0)));
    IndexDef {
        id: IndexId::PRIMARY,
        kind,
        is_unique: true,
        compare_def: Rc::clone(&key_def),
        key_def,
        source: KeySource::Fields,
    }
}

/// 1: by the values that are shared. 2: by those that are not. 3: as 2, a hash where there can be one.
pub(crate) fn secondary(id: u32, kind: IndexKind) -> IndexDef {
    let first = if id == 1 { 1 } else { 3 };
    let primary = Rc::new(KeyDef::new(parts(0)));
    IndexDef::with_entries(IndexId(id), kind, id != 1, &parts(first), primary, Box::new(TwoFields { first }))
}

pub(crate) fn format() -> Format {
    Format::new(512, Vec::new(), 0, &parts(0)).unwrap()
}

fn values(row: Row, index_id: u32) -> BTreeSet<u64> {
    let values = if index_id == 1 { row.1 } else { row.2 };
    values.into_iter().flatten().collect()
}

#[derive(Clone, Default)]
pub(crate) struct Model {
    pub(crate) rows: BTreeMap<u64, Row>,
}

impl Model {
    /// Values and ids in the order of a secondary index.
    pub(crate) fn entries(&self, index_id: u32) -> Vec<(u64, u64)> {
        let of = |row: &Row| values(*row, index_id).into_iter().map(|value| (value, row.0)).collect::<Vec<_>>();
        self.rows.values().flat_map(of).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(crate) fn ids(&self, index_id: u32) -> Vec<u64> {
        self.entries(index_id).into_iter().map(|(_, id)| id).collect()
    }

    /// True if another row has a value that no two rows may have.
    pub(crate) fn forbids(&self, row: Row) -> bool {
        self.rows.values().any(|other| other.0 != row.0 && !values(*other, 2).is_disjoint(&values(row, 2)))
    }
}

pub(crate) fn row() -> impl Strategy<Value = Row> {
    let shared = || proptest::option::of(0..5u64);
    let own = || proptest::option::weighted(0.7, 0..60u64);
    (0..30u64, shared(), shared(), own(), own()).prop_map(|(id, a, b, c, d)| (id, [a, b], [c, d]))
}

/// Every row that fits beside those before it.
pub(crate) fn model_of(rows: Vec<Row>) -> Model {
    let mut model = Model::default();
    for row in rows {
        if !model.forbids(row) {
            model.rows.insert(row.0, row);
        }
    }
    model
}
