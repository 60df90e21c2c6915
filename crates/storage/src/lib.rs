//! Where rows live.
//!
//! [`Rows`] is the contract: the rows of one space, in memory (`memory`) or on disk (`lsm`). An engine applies a write to all indexes of a
//! space at once and returns what undoes it. It knows no transactions, no log and no catalog. Who calls it: `database`.
//!
//! Invariants:
//! * A write that is refused has changed nothing.
//! * `undo` of a [`Change`] cannot fail; changes are undone in reverse order.
//! * Every index of a space holds the same rows; the primary index owns one reference to each.

mod engine;
mod entries;
pub mod lsm;
mod memory;
mod rows;

pub use engine::{
    BuildError, Change, IndexDef, IndexKind, IteratorKind, Key, Mode, NotAnArray, ScanRequest, StorageError, Write,
};
pub use entries::{Entries, EntrySource, KeySource};
/// Look-ups that one hint may announce.
pub use index::PREFETCH_MAX;
pub use memory::{DetachedIndex, MemoryIterator, MemorySpace, MemoryView, Prefetch};
pub use rows::{Refusal, Rows, ordered_key};
