//! The memory engine: rows in an arena, indexes that hold pointers to them.

mod build;
mod fork;
mod index;
mod iterator;
mod load;
mod made;
mod prefetch;
mod space;
mod view;

pub use fork::{give_up_new, give_up_old};
pub use iterator::MemoryIterator;
pub use space::{DetachedIndex, MemorySpace, Prefetch};
pub use view::MemoryView;
