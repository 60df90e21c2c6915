//! Entries that an index has made of rows.
//!
//! They live in an arena of the index's own, without a limit: an index must be able to follow a change that was accepted, or to follow it back.
//! The space's arena is charged for them as for the nodes of an index, so the next row is refused where memory is short. When the index goes, all
//! its entries go with the arena.
#![expect(unsafe_code, reason = "entries are kept alive by the index that holds their addresses")]

use crate::entries::Entries;
use std::rc::Rc;
use tuple::{Arena, Tuple};

/// No limit; arenas reckon with half as much again.
const UNLIMITED: usize = usize::MAX / 4;
/// Entries have no format of rows.
const NO_FORMAT: u32 = 0;

/// See the head of this file.
pub(super) struct MadeEntries {
    entries: Rc<Entries>,
    arena: Arena,
}

impl MadeEntries {
    pub(super) fn new(entries: &Rc<Entries>) -> Self {
        MadeEntries { entries: Rc::clone(entries), arena: Arena::new(UNLIMITED) }
    }

    /// Bytes of all entries.
    pub(super) fn bytes(&self) -> usize {
        self.arena.used()
    }

    /// Entries of a row at an address, in their order, each once.
    pub(super) fn of(&self, row: &[u8], address: u64) -> Vec<Vec<u8>> {
        self.entries.of(row, Some(address))
    }

    /// Copies an entry into the arena. The item holds the only reference to it, until `free`.
    pub(super) fn make(&self, entry: &[u8]) -> u64 {
        let tuple = Tuple::new(&self.arena, NO_FORMAT, entry);
        tuple.expect("without a limit only the system can refuse memory, and it ends the process").into_raw()
    }

    /// Frees an entry that the index does not hold any more.
    pub(super) fn free(&self, item: u64) {
        // SAFETY: `make` gave the item away with its only reference, and the index that held it has just given it up.
        drop(unsafe { Tuple::from_raw(item) });
    }
}
