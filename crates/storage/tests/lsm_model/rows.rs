//! Rows and the sorted maps that the engine is compared with. Keys are compared here as values, never as bytes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::msgpack::{self, Kind, Reader};
use tuple::{FieldType, KeyDef, KeyPart};

/// A field. In the order in which keys sort.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Nil,
    Number(u64),
    Text(Vec<u8>),
}

pub(crate) const ID: usize = 0;
pub(crate) const GROUP: usize = 1;
pub(crate) const NAME: usize = 2;
/// May be nil.
pub(crate) const VALUE: usize = 3;
/// What upserts add to. In no key.
pub(crate) const COUNT: usize = 4;

/// Fields by number, and how many bytes come behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) fields: [Value; 5],
    pub(crate) filling: usize,
}

pub(crate) type Key = Vec<Value>;

pub(crate) fn encode_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => msgpack::encode_nil(out),
        Value::Number(number) => msgpack::encode_uint(out, *number),
        Value::Text(text) => msgpack::encode_str(out, text),
    }
}

impl Row {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        msgpack::encode_array(&mut out, 6);
        self.fields.iter().for_each(|field| encode_value(&mut out, field));
        msgpack::encode_bin(&mut out, &vec![7; self.filling]);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Row {
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.read_array(), Ok(6));
        let mut field = || match reader.kind().unwrap() {
            Kind::Nil => {
                reader.skip_checked();
                Value::Nil
            }
            Kind::Str => Value::Text(reader.read_str().unwrap().to_vec()),
            _ => Value::Number(reader.read_uint().unwrap()),
        };
        let fields = [field(), field(), field(), field(), field()];
        Row { fields, filling: reader.read_bin().unwrap().len() }
    }

    pub(crate) fn key(&self, fields: &[usize]) -> Key {
        fields.iter().map(|&field| self.fields[field].clone()).collect()
    }

    pub(crate) fn count(&self) -> u64 {
        match self.fields[COUNT] {
            Value::Number(count) => count,
            _ => panic!("a count is a number"),
        }
    }
}

fn part(field: usize) -> KeyPart {
    let field_type = if field == NAME { FieldType::String } else { FieldType::Unsigned };
    KeyPart { is_nullable: field == VALUE, ..KeyPart::new(field as u32, field_type) }
}

pub(crate) fn key_def(fields: &[usize]) -> Rc<KeyDef> {
    Rc::new(KeyDef::new(fields.iter().map(|&field| part(field)).collect()))
}

pub(crate) fn parts() -> Vec<KeyPart> {
    (ID..=COUNT).map(part).collect()
}

/// An index: rows by the declared fields and those of the primary key behind them.
#[derive(Clone)]
pub(crate) struct IndexModel {
    pub(crate) own: Vec<usize>,
    pub(crate) order: Vec<usize>,
    pub(crate) is_unique: bool,
    pub(crate) rows: BTreeMap<Key, Rc<Row>>,
}

impl IndexModel {
    pub(crate) fn new(own: &[usize], primary: &[usize], is_unique: bool) -> Self {
        let more = primary.iter().filter(|field| !own.contains(field));
        let order = own.iter().chain(more).copied().collect();
        IndexModel { own: own.to_vec(), order, is_unique, rows: BTreeMap::new() }
    }

    /// Rows whose keys begin so.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a [Value]) -> impl Iterator<Item = &'a Rc<Row>> {
        let from = (Bound::Included(prefix.to_vec()), Bound::Unbounded);
        self.rows.range(from).take_while(move |(key, _)| key.starts_with(prefix)).map(|(_, row)| row)
    }

    /// Rows that a scan gives, behind the key `last` if it is given.
    pub(crate) fn scan(&self, kind: IteratorKind, prefix: &[Value], last: Option<&Key>) -> Vec<Rc<Row>> {
        let is_wanted = |key: &Key| {
            let order = key[..prefix.len()].cmp(prefix);
            prefix.is_empty()
                || match kind {
                    IteratorKind::Eq | IteratorKind::Req => order.is_eq(),
                    IteratorKind::Lt => order.is_lt(),
                    IteratorKind::Le => order.is_le(),
                    IteratorKind::Gt => order.is_gt(),
                    _ => order.is_ge(),
                }
        };
        let is_behind = |key: &Key| last.is_none_or(|last| if kind.is_reverse() { key < last } else { key > last });
        let wanted =
            self.rows.iter().filter(|(key, _)| is_wanted(key) && is_behind(key)).map(|(_, row)| Rc::clone(row));
        let mut rows: Vec<_> = wanted.collect();
        if kind.is_reverse() {
            rows.reverse();
        }
        rows
    }

    /// Keys that two rows have though the index is unique.
    pub(crate) fn has_duplicates(&self) -> bool {
        let own = self.own.len();
        let keys: Vec<&[Value]> = self.rows.keys().map(|key| &key[..own]).collect();
        keys.windows(2).any(|pair| pair[0] == pair[1] && !pair[0].contains(&Value::Nil))
    }
}

/// A space.
#[derive(Clone, Default)]
pub(crate) struct SpaceModel {
    pub(crate) indexes: BTreeMap<u32, IndexModel>,
}

impl SpaceModel {
    pub(crate) fn primary(&self) -> &IndexModel {
        &self.indexes[&0]
    }

    /// The row with the primary key of another.
    pub(crate) fn same_key(&self, row: &Row) -> Option<&Rc<Row>> {
        self.primary().rows.get(&row.key(&self.primary().own))
    }

    pub(crate) fn change(&mut self, old: Option<&Rc<Row>>, new: Option<&Rc<Row>>) {
        for index in self.indexes.values_mut() {
            if let Some(old) = old {
                assert!(index.rows.remove(&old.key(&index.order)).is_some());
            }
            if let Some(new) = new {
                assert!(index.rows.insert(new.key(&index.order), Rc::clone(new)).is_none());
            }
        }
    }

    /// The keys that no other transaction may touch while one that has changed this row is suspended.
    pub(crate) fn guarded(&self, space_id: u32, row: &Row) -> Vec<(u32, u32, Key)> {
        let unique = self.indexes.iter().filter(|(_, index)| index.is_unique);
        unique.map(|(&index_id, index)| (space_id, index_id, row.key(&index.own))).collect()
    }
}
