//! What runs and memtables consist of.

/// What an entry says of its key, whatever older entries say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// The key has this value, whatever it had before.
    Put = 0,
    /// The key has no value. Without a value of its own.
    Delete = 1,
    /// A row and the operations of statements, the oldest first: absent, the key gets the row and all operations but those of the first;
    /// present, all of them.
    Upsert = 2,
}

impl EntryKind {
    /// By its number on disk.
    pub(crate) fn from_number(number: usize) -> Option<Self> {
        match number {
            0 => Some(EntryKind::Put),
            1 => Some(EntryKind::Delete),
            2 => Some(EntryKind::Upsert),
            _ => None,
        }
    }
}

/// What a run or memtable says of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Ordered bytes.
    pub key: &'a [u8],
    /// What happened to the key.
    pub kind: EntryKind,
    /// A row in a primary index, a primary key in a secondary one; see [`EntryKind`].
    pub value: &'a [u8],
}
