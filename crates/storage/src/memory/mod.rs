//! The memory engine: rows in an arena, indexes that hold pointers to them.

mod build;
mod index;
mod iterator;
mod load;
mod made;
mod prefetch;
mod space;
mod view;

pub use iterator::MemoryIterator;
pub use space::{DetachedIndex, MemorySpace, Prefetch};
pub use view::MemoryView;
