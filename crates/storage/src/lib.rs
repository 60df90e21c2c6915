//! Where rows live: in memory, or on disk with the newest in memory.
//!
//! [`Rows`] is the contract that both engines fulfil. `memory` holds rows in an arena and indexes over them; [`lsm`] has a log-structured merge
//! tree for each index. `engine` has the types that both share with `database`, and `entries` says what an index holds of a row. An engine
//! applies a statement to all indexes of a space at once and returns what undoes it. It knows no transactions, no log and no catalog.
//! Who calls it: `database`, from the transaction thread.
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
/// Which state of a forked space stays.
pub use index::Kept;
/// Look-ups that one hint may announce.
pub use index::PREFETCH_MAX;
pub use memory::{DetachedIndex, MemoryIterator, MemorySpace, MemoryView, Prefetch, give_up_new, give_up_old};
pub use rows::{Refusal, Rows, ordered_key};
