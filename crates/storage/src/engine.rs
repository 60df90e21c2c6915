//! The contract between the database and its engines.
//!
//! A statement goes `prepare` (may refuse: duplicate key, no memory) and is then in force; what it did is described by a
//! [`Change`]. Dropping the change commits it (nothing can fail); `undo` takes it back (nothing can fail either).
//! Reads of the memory engine never wait. An engine whose reads wait has methods of another type for them.

use crate::entries::KeySource;
use std::rc::Rc;
use tuple::{KeyDef, Tuple, TupleError};

/// How the rows of an index are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Ordered.
    Tree,
    /// By hash of the whole key.
    Hash,
}

/// What an engine needs to know of an index.
#[derive(Clone)]
pub struct IndexDef {
    /// Number within the space; 0 is the primary index.
    pub id: u32,
    /// Arrangement.
    pub kind: IndexKind,
    /// No two rows with equal keys (keys with a null part excepted).
    pub is_unique: bool,
    /// The parts as declared.
    pub key_def: Rc<KeyDef>,
    /// The parts by which entries are ordered: for a non-unique or nullable index the declared ones and the primary key's.
    pub compare_def: Rc<KeyDef>,
    /// What entries of a row there are; both definitions say where their parts are in an entry.
    pub source: KeySource,
}

/// Which rows a statement may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The key must be absent.
    Insert,
    /// A row with the same primary key is replaced.
    Replace,
}

/// A statement in force: what it removed and what it put in.
#[derive(Clone, Debug)]
pub struct Change {
    /// The row that was there.
    pub old: Option<Tuple>,
    /// The row that is there now.
    pub new: Option<Tuple>,
}

/// Why a statement was refused. Nothing was changed.
#[derive(Debug)]
pub enum StorageError {
    /// A unique index has another row with the key.
    Duplicate {
        /// Number of the index.
        index_id: u32,
        /// The row in the way.
        existing: Tuple,
    },
    /// The memory limit is reached.
    OutOfMemory(tuple::OutOfMemory),
}

impl From<tuple::OutOfMemory> for StorageError {
    fn from(error: tuple::OutOfMemory) -> Self {
        StorageError::OutOfMemory(error)
    }
}

/// Why new indexes cannot hold the rows of their space.
#[derive(Clone, Debug)]
pub enum BuildError {
    /// Two rows have one key of a unique index.
    Duplicate {
        /// Number of the index.
        index_id: u32,
        /// One of the rows.
        existing: Tuple,
    },
    /// A row does not fit the format.
    Format(TupleError),
}

/// Direction and bound of a scan, by Tarantool's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "Tarantool's public names")]
pub enum IteratorKind {
    Eq = 0,
    Req = 1,
    All = 2,
    Lt = 3,
    Le = 4,
    Ge = 5,
    Gt = 6,
    BitsAllSet = 7,
    BitsAnySet = 8,
    BitsAllNotSet = 9,
    Overlaps = 10,
    Neighbor = 11,
}

impl IteratorKind {
    const ALL_KINDS: [IteratorKind; 12] = [
        IteratorKind::Eq,
        IteratorKind::Req,
        IteratorKind::All,
        IteratorKind::Lt,
        IteratorKind::Le,
        IteratorKind::Ge,
        IteratorKind::Gt,
        IteratorKind::BitsAllSet,
        IteratorKind::BitsAnySet,
        IteratorKind::BitsAllNotSet,
        IteratorKind::Overlaps,
        IteratorKind::Neighbor,
    ];

    /// By number on the wire.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL_KINDS.get(usize::try_from(code).ok()?).copied()
    }

    /// Tarantool's name.
    pub fn name(self) -> &'static str {
        match self {
            IteratorKind::Eq => "EQ",
            IteratorKind::Req => "REQ",
            IteratorKind::All => "ALL",
            IteratorKind::Lt => "LT",
            IteratorKind::Le => "LE",
            IteratorKind::Ge => "GE",
            IteratorKind::Gt => "GT",
            IteratorKind::BitsAllSet => "BITS_ALL_SET",
            IteratorKind::BitsAnySet => "BITS_ANY_SET",
            IteratorKind::BitsAllNotSet => "BITS_ALL_NOT_SET",
            IteratorKind::Overlaps => "OVERLAPS",
            IteratorKind::Neighbor => "NEIGHBOR",
        }
    }

    /// True if rows come from large to small.
    pub fn is_reverse(self) -> bool {
        matches!(self, IteratorKind::Req | IteratorKind::Lt | IteratorKind::Le)
    }
}
