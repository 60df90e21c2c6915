//! Pure index structures: an ordered tree and a hash table, both with read views.
//!
//! What it is: containers of 64-bit *items* that know nothing of rows. The caller supplies an order-preserving
//! 64-bit *hint* (tree) or a hash (table) beside each item and a comparison to be asked when hints tie.
//!
//! What it is not: no rows, no I/O, no reference counts, no transactions. Who calls it: `storage`.
//!
//! Invariants:
//! * Everything is changed by one thread. A read view may be read by another thread while the owner goes on writing;
//!   it is opened and closed by the owner.
//! * A structure never frees memory that an open view can reach; it frees it in slices (`collect`) afterwards.
//! * No operation takes time proportional to the number of items (no full rehash, no deep copy).

mod hash;
mod nodes;
mod tree;

pub use hash::{Hash, HashCursor, HashView};
pub use tree::{Cursor, Entry, Kept, NODE_BYTES, PREFETCH_MAX, Place, Slot, Tree, TreeView, prefetch_bytes};
