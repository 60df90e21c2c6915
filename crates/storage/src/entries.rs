//! What an index holds of a row.
//!
//! An index holds *entries*. The entry of an ordinary index is the row itself: the parts of its key are fields of the row, and nothing is made or
//! copied. An index over an [`EntrySource`] holds arrays that are made of a row, any number of them:
//!
//! ```text
//! entry   [ own parts ... | parts of the primary key ... | address of the row, in memory only ]
//! ```
//!
//! So `key_def` and `compare_def` of a definition say where the parts are in an entry, and whatever compares, hashes or orders entries need not
//! know what kind of index it works for. Two equal entries of one row are one.
//!
//! Refused: numbering the entries of a row and finding the key in the row at each comparison, as Tarantool's multikey indexes do. It needs a
//! path for each comparison and cannot hold keys that are in no field.

use crate::engine::{IndexDef, IndexKind};
use std::rc::Rc;
use tuple::{IndexId, KeyDef, KeyPart, msgpack};

/// What an index makes of a row.
#[derive(Clone)]
pub enum KeySource {
    /// One entry, the row itself: parts of the key are its fields.
    Fields,
    /// Any number of entries. Never the source of a primary index.
    Entries(Rc<Entries>),
}

/// Makes keys of rows.
///
/// Invariant: a row always has the same keys. They are made again when the row is changed, deleted, or a change of it is undone.
pub trait EntrySource {
    /// Hands over the keys of a row that fits the space's format: all own parts of each, encoded one after the other, of the types that the
    /// index declares. Cannot fail: what a source cannot take is refused before it comes here.
    fn for_each_key(&self, row: &[u8], visit: &mut dyn FnMut(&[u8]));
}

/// An [`EntrySource`] and what entries of its keys are like.
pub struct Entries {
    source: Box<dyn EntrySource>,
    own_parts: u32,
    /// Parts of the primary key, in the row.
    primary: Rc<KeyDef>,
    /// All parts of an entry: its own and those of the primary key.
    order: Rc<KeyDef>,
}

/// A part of a key, at another place.
fn moved(part: &KeyPart, field_no: usize) -> KeyPart {
    KeyPart { field_no: field_no as u32, ..part.clone() }
}

impl Entries {
    /// The entries of a row, in their order, each once. In memory they end with the row's address.
    pub(crate) fn of(&self, row: &[u8], address: Option<u64>) -> Vec<Vec<u8>> {
        let mut primary_key = Vec::new();
        self.primary.extract_key(row, &mut primary_key);
        let mut reader = msgpack::Reader::new(&primary_key);
        let primary_parts = reader.read_array().map_or(&[][..], |_| reader.rest());
        let field_count = self.order.part_count() as u32 + u32::from(address.is_some());
        let mut entries = Vec::new();
        self.source.for_each_key(row, &mut |key| {
            let mut entry = Vec::with_capacity(key.len() + primary_parts.len() + 16);
            msgpack::encode_array(&mut entry, field_count);
            entry.extend_from_slice(key);
            entry.extend_from_slice(primary_parts);
            if let Some(address) = address {
                entry.push(ADDRESS_MARKER);
                entry.extend_from_slice(&address.to_be_bytes());
            }
            debug_assert_eq!(msgpack::skip(&entry), entry.len(), "a key has {} parts", self.own_parts);
            entries.push(entry);
        });
        entries.sort_by(|a, b| self.order.compare_rows(a, b));
        entries.dedup_by(|a, b| self.order.compare_rows(a, b).is_eq());
        entries
    }

    /// Ordered bytes of the entries of a row, in their order, each once.
    pub(crate) fn ordered_of(&self, row: &[u8]) -> Vec<Vec<u8>> {
        let ordered = |entry: Vec<u8>| {
            let mut parts = msgpack::Reader::new(&entry);
            let count = parts.read_array().unwrap_or(0);
            let mut key = Vec::new();
            self.order.ordered_of_key(parts.rest(), count, &mut key);
            key
        };
        let keys: Vec<_> = self.of(row, None).into_iter().map(ordered).collect();
        debug_assert!(keys.is_sorted_by(|a, b| a < b), "both orders are one");
        keys
    }
}

/// An unsigned number of eight bytes follows: an address always takes as many.
const ADDRESS_MARKER: u8 = 0xcf;

/// The address of the row that an entry in memory was made of.
pub(crate) fn address_in(entry: &[u8]) -> u64 {
    let tail = entry.last_chunk::<8>().expect("an entry in memory ends with an address");
    debug_assert_eq!(entry[entry.len() - 9], ADDRESS_MARKER);
    u64::from_be_bytes(*tail)
}

impl IndexDef {
    /// A secondary index over the keys that `source` makes: `parts` are their types, whatever their field numbers say. `primary` is the key of
    /// the space's primary index; when that changes, the index is to be built anew.
    pub fn with_entries(
        id: IndexId,
        kind: IndexKind,
        is_unique: bool,
        parts: &[KeyPart],
        primary: Rc<KeyDef>,
        source: Box<dyn EntrySource>,
    ) -> Self {
        assert!(id != 0, "the primary index holds rows");
        let own: Vec<KeyPart> = parts.iter().enumerate().map(|(at, part)| moved(part, at)).collect();
        let further = primary.parts().iter().enumerate().map(|(at, part)| moved(part, parts.len() + at));
        let order = Rc::new(KeyDef::new(own.iter().cloned().chain(further).collect()));
        let key_def = Rc::new(KeyDef::new(own));
        let compare_def = if is_unique && !key_def.is_nullable() { Rc::clone(&key_def) } else { Rc::clone(&order) };
        let entries = Entries { source, own_parts: parts.len() as u32, primary, order };
        IndexDef { id, kind, is_unique, key_def, compare_def, source: KeySource::Entries(Rc::new(entries)) }
    }

    /// Hands over what the index holds of a row, which its definition finds parts in: the row, or the entries that are made of it.
    pub fn for_each_entry(&self, row: &[u8], mut visit: impl FnMut(&[u8])) {
        match &self.source {
            KeySource::Fields => visit(row),
            KeySource::Entries(entries) => entries.of(row, None).iter().for_each(|entry| visit(entry)),
        }
    }

    /// All parts that order the index, whether it is unique or not: its own, and those of the primary key that they lack.
    pub(crate) fn order(&self, primary: Option<&KeyDef>) -> Rc<KeyDef> {
        match (&self.source, primary) {
            (KeySource::Entries(entries), _) => Rc::clone(&entries.order),
            (KeySource::Fields, Some(primary)) if self.id != 0 => Rc::new(KeyDef::merge(&self.key_def, primary)),
            (KeySource::Fields, _) => Rc::clone(&self.key_def),
        }
    }
}
