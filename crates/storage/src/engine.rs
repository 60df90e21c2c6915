//! What the database and its engines tell each other; [`Rows`](crate::Rows) is the contract itself.

use crate::entries::KeySource;
use crate::lsm::DiskChange;
use std::rc::Rc;
use tuple::msgpack::Reader;
use tuple::{IndexId, KeyDef, Tuple, TupleError};

/// A key: its parts one after the other and their number.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Encoded parts without the array's header.
    pub parts: &'a [u8],
    /// How many.
    pub part_count: u32,
}

/// The bytes of a key are no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnArray;

impl<'a> Key<'a> {
    /// No parts: everything.
    pub const EMPTY: Key<'static> = Key { parts: &[], part_count: 0 };

    /// Reads a key from an encoded array. Errors: it is none.
    pub fn decode(array: &'a [u8]) -> Result<Self, NotAnArray> {
        let mut reader = Reader::new(array);
        match reader.read_array() {
            Ok(part_count) => Ok(Key { parts: reader.rest(), part_count }),
            Err(_) => Err(NotAnArray),
        }
    }
}

/// Which rows of an index are wanted.
#[derive(Clone, Copy, Debug)]
pub struct ScanRequest<'a> {
    /// Number of the index.
    pub index_id: IndexId,
    /// Direction and bound.
    pub kind: IteratorKind,
    /// Where the bound lies; all parts of the index's key or the first of them.
    pub key: Key<'a>,
    /// Rows that are passed over first.
    pub offset: u64,
    /// Rows that are given at most.
    pub limit: u64,
}

impl<'a> ScanRequest<'a> {
    /// All rows that a key and a bound mean.
    pub fn new(index_id: IndexId, kind: IteratorKind, key: Key<'a>) -> Self {
        ScanRequest { index_id, kind, key, offset: 0, limit: u64::MAX }
    }
}

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
    pub id: IndexId,
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

/// What is to be done to rows.
pub enum Write<'a> {
    /// `new` comes in the place of `old`, which is the row that is there if anybody has looked. One of them may be missing.
    Put {
        /// The row that goes.
        old: Option<Tuple>,
        /// The row that comes.
        new: Option<Tuple>,
        /// Whether a row with the primary key of `new` may be there.
        mode: Mode,
    },
    /// The row with a primary key goes, if it is there. Only where [`Rows::is_blind`](crate::Rows::is_blind).
    BlindDelete {
        /// All parts of the primary key.
        key: Key<'a>,
    },
    /// Operations for a row that is not looked for; `row` is put in if there is none. Only where
    /// [`Rows::takes_blind_upsert`](crate::Rows::takes_blind_upsert).
    BlindUpsert {
        /// The row.
        row: &'a [u8],
        /// Its operations.
        operations: &'a [u8],
        /// Number of the first field in them.
        index_base: u32,
    },
}

/// A write that was applied: what it removed and what it put in.
#[derive(Clone)]
pub struct Change {
    /// The row that was there, if that is known.
    pub old: Option<Tuple>,
    /// The row that is there now.
    pub new: Option<Tuple>,
    /// What it did to a space on disk.
    pub(crate) disk: Option<Box<DiskChange>>,
}

impl Change {
    /// A change of rows in memory.
    pub fn new(old: Option<Tuple>, new: Option<Tuple>) -> Self {
        Change { old, new, disk: None }
    }

    /// True if it is operations for a row that nobody has looked at.
    pub fn is_blind_upsert(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.is_blind_upsert())
    }
}

/// Why a statement was refused. Nothing was changed.
#[derive(Debug)]
pub enum StorageError {
    /// A unique index has another row with the key.
    Duplicate {
        /// Number of the index.
        index_id: IndexId,
        /// The row in the way.
        existing: Tuple,
    },
    /// The memory limit is reached.
    OutOfMemory(tuple::OutOfMemory),
    /// An index does not have a row that it must have: a fault of the server or of the machine.
    Damaged {
        /// Number of the index.
        index_id: IndexId,
    },
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
        index_id: IndexId,
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
