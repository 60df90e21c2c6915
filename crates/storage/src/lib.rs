//! Where rows live.
//!
//! `engine` is the contract, `memory` fulfils it, `lsm` has the files of the disk engine. An engine applies statements to all indexes of
//! a space at once and gives back what is needed to undo them; it knows no transactions, no log and no catalog. Who calls it: `database`.
//!
//! Invariants:
//! * A statement that is refused has changed nothing.
//! * `undo` of a [`Change`] cannot fail; changes are undone in reverse order.
//! * Every index of a space holds the same rows; the primary index owns one reference to each.

mod engine;
mod entries;
pub mod lsm;
mod memory;

pub use engine::{BuildError, Change, IndexDef, IndexKind, IteratorKind, Mode, StorageError};
pub use entries::{Entries, EntrySource, KeySource};
/// Look-ups that one hint may announce.
pub use index::PREFETCH_MAX;
pub use memory::{DetachedIndex, MemoryIterator, MemorySpace, MemoryView, Prefetch};
