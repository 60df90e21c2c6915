//! The rows of one space: the contract that both engines fulfil.
//!
//! A write is looked at first (`get`, `same_key`, `check`), which may stop with [`Stop::Wait`] where rows are on disk and not in memory: then
//! nothing has happened, and the whole look is repeated when they are. `apply` then changes all indexes or none; what it did is a
//! [`Change`]. Dropping the change commits it. `undo` rolls it back, `redo` applies it again; neither can fail.
//!
//! Rows in memory never wait, and their unique keys are checked while a write is applied: one look-up serves both.

use crate::engine::{Change, IndexDef, Key, Mode, StorageError, Write};
use crate::lsm::{DiskRow, DiskView, LsmSpace, Stop};
use crate::memory::{MemorySpace, Prefetch};
use std::cell::RefCell;
use std::rc::Rc;
use tuple::{Arena, IndexId, KeyDef, OutOfMemory, Tuple};

/// The rows of a space, by where they are.
pub enum Rows {
    /// In memory.
    Memory(RefCell<MemorySpace>),
    /// On disk. What is read becomes tuples of the arena.
    Disk(Rc<LsmSpace>, Arena),
    /// The space has none of its own: it shows those of another one, or forgets what is written.
    Nowhere,
}

/// Why a look at rows has no result.
pub enum Refusal {
    /// A row is not in memory, or cannot be read.
    Stop(Stop),
    /// The write would be refused.
    Storage(StorageError),
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        Refusal::Stop(stop)
    }
}

impl From<OutOfMemory> for Refusal {
    fn from(error: OutOfMemory) -> Self {
        Refusal::Storage(error.into())
    }
}

impl Rows {
    // --- What they are ---

    /// The rows, if they are in memory.
    pub fn memory(&self) -> Option<&RefCell<MemorySpace>> {
        match self {
            Rows::Memory(space) => Some(space),
            _ => None,
        }
    }

    /// The rows, if they are on disk.
    pub fn disk(&self) -> Option<&Rc<LsmSpace>> {
        match self {
            Rows::Disk(space, _) => Some(space),
            _ => None,
        }
    }

    /// True if the space has no rows of its own.
    pub fn are_nowhere(&self) -> bool {
        matches!(self, Rows::Nowhere)
    }

    /// True if a look at them may stop with [`Stop::Wait`].
    #[inline]
    pub fn may_wait(&self) -> bool {
        matches!(self, Rows::Disk(..))
    }

    /// True while new indexes are filled, or rows are looked at for another format.
    pub fn is_building(&self) -> bool {
        match self {
            Rows::Memory(space) => space.borrow().build_id().is_some(),
            Rows::Disk(space, _) => space.is_building(),
            Rows::Nowhere => false,
        }
    }

    /// True if there is no row for sure.
    pub fn is_empty(&self) -> bool {
        match self {
            Rows::Memory(space) => space.borrow().is_empty(),
            Rows::Disk(space, _) => space.is_empty(),
            Rows::Nowhere => true,
        }
    }

    /// Number of rows; on disk an estimate.
    pub fn len(&self) -> u64 {
        match self {
            Rows::Memory(space) => space.borrow().len() as u64,
            Rows::Disk(space, _) => space.len_estimate(),
            Rows::Nowhere => 0,
        }
    }

    /// Bytes of all rows; on disk those of the primary index.
    pub fn row_bytes(&self) -> u64 {
        match self {
            Rows::Memory(space) => space.borrow().row_bytes() as u64,
            Rows::Disk(space, _) => space.index_bytes(IndexId::PRIMARY),
            Rows::Nowhere => 0,
        }
    }

    /// Bytes of one index.
    pub fn index_bytes(&self, index_id: IndexId) -> u64 {
        match self {
            Rows::Memory(space) => space.borrow().index_bytes(index_id) as u64,
            Rows::Disk(space, _) => space.index_bytes(index_id),
            Rows::Nowhere => 0,
        }
    }

    // --- Looking ---

    /// Announces what requests are about to look for.
    #[inline]
    pub fn prefetch(&self, wanted: Prefetch<'_>) {
        match self {
            Rows::Memory(space) => space.borrow().prefetch(wanted),
            Rows::Disk(space, _) => space.prefetch(wanted.values, wanted.reads_rows),
            Rows::Nowhere => {}
        }
    }

    /// The row of a unique index with this key, all parts of it. Rows of a disk get `format_id`.
    ///
    /// Errors: `Stop::Wait` if the row is on disk and not in memory, `Stop::Failed` if it cannot be read there; `OutOfMemory` if there is no room for a copy.
    #[inline]
    pub fn get(&self, index_id: IndexId, key: Key<'_>, format_id: u32) -> Result<Option<Tuple>, Refusal> {
        match self {
            Rows::Memory(space) => Ok(space.borrow().get(index_id, key.parts, key.part_count)),
            Rows::Disk(space, arena) => tuple_of(space.get(index_id, key)?, arena, format_id),
            Rows::Nowhere => Ok(None),
        }
    }

    /// The row with the primary key of `row`.
    ///
    /// Errors: `Stop::Wait` if the row is on disk and not in memory, `Stop::Failed` if it cannot be read there; `OutOfMemory` if there is no room for a copy.
    #[inline]
    pub fn same_key(&self, row: &[u8], format_id: u32) -> Result<Option<Tuple>, Refusal> {
        match self {
            Rows::Memory(space) => Ok(space.borrow().get_same_key(row)),
            Rows::Disk(space, arena) => tuple_of(space.get_same_key(row)?, arena, format_id),
            Rows::Nowhere => Ok(None),
        }
    }

    /// The same of what a view shows of a space on disk.
    ///
    /// Errors: as `get`.
    pub fn get_in_view(
        &self,
        view: &DiskView,
        index_id: IndexId,
        key: Key<'_>,
        format_id: u32,
    ) -> Result<Option<Tuple>, Refusal> {
        match self {
            Rows::Disk(space, arena) => tuple_of(space.get_in_view(view, index_id, key)?, arena, format_id),
            _ => Ok(None),
        }
    }

    /// The row with the primary key of `row`, if rows are in memory.
    pub fn same_key_in_memory(&self, row: &[u8]) -> Option<Tuple> {
        self.memory().and_then(|space| space.borrow().get_same_key(row))
    }

    /// Looks whether `new` may come in the place of `old`. Where rows are in memory that is found out by `apply`.
    ///
    /// Errors: `Duplicate`.
    #[inline]
    pub fn check(&self, mode: Mode, old: Option<&Tuple>, new: &Tuple, format_id: u32) -> Result<(), Refusal> {
        let Rows::Disk(space, arena) = self else { return Ok(()) };
        if mode == Mode::Insert
            && let Some(existing) = tuple_of(space.get_same_key(new.data())?, arena, format_id)?
        {
            return Err(Refusal::Storage(StorageError::Duplicate { index_id: IndexId::PRIMARY, existing }));
        }
        self.check_secondaries(old, new, format_id)
    }

    /// Looks whether another row than `old` has a key of `new` in a unique secondary index. Where rows are in memory that is found out by
    /// `apply`.
    ///
    /// Errors: `Duplicate`.
    fn check_secondaries(&self, old: Option<&Tuple>, new: &Tuple, format_id: u32) -> Result<(), Refusal> {
        let Rows::Disk(space, arena) = self else { return Ok(()) };
        let Some((index_id, existing)) = space.conflict(new.data(), old.map(Tuple::data))? else { return Ok(()) };
        let existing = existing.with(|row| Tuple::new(arena, format_id, row))?;
        Err(Refusal::Storage(StorageError::Duplicate { index_id, existing }))
    }

    /// True if rows are replaced and deleted by primary key without a look at what is there.
    #[inline]
    pub fn is_blind(&self) -> bool {
        self.disk().is_some_and(|space| space.has_one_index())
    }

    /// True if operations for the row with the primary key of `row` need no look at it: nothing in memory says what it is.
    pub fn takes_blind_upsert(&self, row: &[u8]) -> bool {
        self.is_blind() && self.disk().is_some_and(|space| space.takes_blind_upsert(row))
    }

    // --- Writing ---

    /// Applies a write in all indexes, or in none.
    ///
    /// Errors: `Duplicate`, `OutOfMemory`, `Damaged`; on disk none.
    #[inline]
    pub fn apply(&self, write: Write<'_>) -> Result<Change, StorageError> {
        match (self, write) {
            (Rows::Memory(space), Write::Put { old, new, mode }) => put_in_memory(space, old, new, mode),
            (Rows::Disk(space, _), write) => Ok(write_on_disk(space, write)),
            (_, Write::Put { new, .. }) => Ok(Change::new(None, new)),
            (_, Write::BlindDelete { .. } | Write::BlindUpsert { .. }) => Ok(Change::new(None, None)),
        }
    }

    /// Rolls a change back: the newest that is applied.
    pub fn undo(&self, change: &Change) {
        match self {
            Rows::Memory(space) => space.borrow_mut().undo(change),
            Rows::Disk(space, _) => change.disk.iter().for_each(|change| space.undo(change)),
            Rows::Nowhere => {}
        }
    }

    /// Applies a change again that was rolled back, or for the first time one that was put together elsewhere. All that it depends on must be as
    /// it was.
    pub fn redo(&self, change: &mut Change) {
        match self {
            Rows::Memory(space) => space.borrow_mut().redo(change),
            Rows::Disk(space, _) => match &mut change.disk {
                Some(disk) => **disk = space.redo(disk),
                None => {
                    let (old, new) = (change.old.take(), change.new.take());
                    *change = write_on_disk(space, Write::Put { old, new, mode: Mode::Replace });
                }
            },
            Rows::Nowhere => {}
        }
    }

    /// True if rows are as a change has left them, as far as that is known. For assertions.
    pub fn has_applied(&self, change: &Change) -> bool {
        self.is_state(change.new.as_ref(), change.old.as_ref())
    }

    /// True if rows are as they were before a change, as far as that is known. For assertions.
    pub fn has_rolled_back(&self, change: &Change) -> bool {
        self.is_state(change.old.as_ref(), change.new.as_ref())
    }

    /// `there` is in memory, or nothing is where `gone` was.
    fn is_state(&self, there: Option<&Tuple>, gone: Option<&Tuple>) -> bool {
        let Some(space) = self.memory() else { return true };
        let space = space.borrow();
        match (there, gone) {
            (Some(row), _) => space.get_same_key(row.data()).is_some_and(|found| found.ptr_eq(row)),
            (None, Some(row)) => space.get_same_key(row.data()).is_none(),
            (None, None) => true,
        }
    }

    /// Hands over the keys that a change has touched: the index, and the ordered bytes of a row's key by its own parts and by the index's whole
    /// order. None: such keys have no ordered bytes.
    pub fn for_each_key(
        &self,
        defs: &[IndexDef],
        change: &Change,
        mut visit: impl FnMut(&IndexDef, Option<&[u8]>, Option<&[u8]>),
    ) {
        let Rows::Disk(space, _) = self else {
            for def in defs {
                for row in [&change.old, &change.new].into_iter().flatten() {
                    def.for_each_entry(row.data(), |entry| {
                        let (own, whole) = (ordered_key(&def.key_def, entry), ordered_key(&def.compare_def, entry));
                        visit(def, own.as_deref(), whole.as_deref());
                    });
                }
            }
            return;
        };
        let mut visit = |index_id: IndexId, own: &[u8], whole: &[u8]| {
            if let Some(def) = defs.iter().find(|def| def.id == index_id) {
                visit(def, Some(own), Some(whole));
            }
        };
        // What was there may not be known, but all keys that were written are.
        change.disk.iter().for_each(|change| change.for_each_key(|id, _, own, whole| visit(id, own, whole)));
        if let Change { old: Some(_), new: Some(new), .. } = change {
            // Who has found the row by a key that stays as it is has seen the row all the same.
            space.for_each_key_of(new.data(), |id, _, own, whole| visit(id, own, whole));
        }
    }
}

/// The ordered bytes of a row's key; none if keys of the definition have no such.
pub fn ordered_key(def: &KeyDef, row: &[u8]) -> Option<Vec<u8>> {
    def.supports_ordered().is_ok().then(|| {
        let mut bytes = Vec::with_capacity(32);
        def.ordered_of_row(row, &mut bytes);
        bytes
    })
}

fn tuple_of(row: Option<DiskRow>, arena: &Arena, format_id: u32) -> Result<Option<Tuple>, Refusal> {
    let made = row.map(|row| row.with(|row| Tuple::new(arena, format_id, row)));
    Ok(made.transpose()?)
}

#[inline]
fn put_in_memory(
    space: &RefCell<MemorySpace>,
    old: Option<Tuple>,
    new: Option<Tuple>,
    mode: Mode,
) -> Result<Change, StorageError> {
    let mut space = space.borrow_mut();
    let applied = match (old, new) {
        (Some(old), Some(new)) => space.update(&old, new),
        (Some(old), None) => Ok(space.delete(old)),
        (None, Some(new)) => space.replace(new, mode),
        (None, None) => return Ok(Change::new(None, None)),
    };
    if let Some(index_id) = space.take_damage() {
        if let Ok(change) = &applied {
            space.undo(change);
            space.take_damage();
        }
        return Err(StorageError::Damaged { index_id });
    }
    applied
}

fn write_on_disk(space: &Rc<LsmSpace>, write: Write<'_>) -> Change {
    match write {
        Write::Put { old, new, .. } => {
            let disk = space.put(old.as_ref().map(Tuple::data), new.as_ref().map(Tuple::data));
            Change { old, new, disk: Some(Box::new(disk)) }
        }
        Write::BlindDelete { key } => Change { old: None, new: None, disk: Some(Box::new(space.delete_blind(key))) },
        Write::BlindUpsert { row, operations, index_base } => {
            let disk = space.upsert_blind(row, operations, index_base);
            Change { old: None, new: None, disk: Some(Box::new(disk)) }
        }
    }
}
