//! The disk engine's files: runs of sorted entries, and the manifest that says which of them are in force.
//!
//! Nothing here knows rows, catalogs or fibers. Keys are ordered bytes (`tuple::KeyDef::ordered_of_row`) and compare as bytes. What writes
//! and merges is for worker threads and blocks. Layouts: docs/formats/lsm.md.
//!
//! Invariants:
//! * A file that has its name (no `.inprogress` behind it) is whole and synced, and never changes; the manifest only grows, and is
//!   replaced by a whole new one.
//! * The manifest names a run only after the run has its name.
//! * Bytes from disk are refused with file and offset, never asserted.

mod block;
mod build;
mod cache;
mod check;
mod cursor;
mod engine;
mod entry;
mod error;
mod filter;
mod jobs;
mod level;
mod manifest;
mod merge;
mod policy;
mod reads;
mod run;
mod scan;
mod space;
mod tree;
mod upsert;

pub use block::Block;
pub use build::{BuildStop, DiskBuild};
pub use check::{Damage, FileReport, FileRole, check_directory};
pub use engine::{LsmConfig, LsmEngine, LsmEnvironment, LsmStatistics};
pub use entry::{Entry, EntryKind};
pub use error::LsmError;
pub use filter::key_hash;
pub use manifest::{Edit, Manifest, RangeState, TreeState, remove_orphans};
pub use merge::{Source, Upserter, join_upserts, merge};
pub use reads::{Fetched, Need, Stop};
pub use run::{Run, RunOptions, RunSource, RunWriter};
pub use space::{DetachedTrees, DiskChange, DiskKey, DiskRow, DiskScan, LsmSpace};
pub use tree::TreeOptions;

/// The directory of all these files, below `vinyl_dir`.
pub const LSM_DIR: &str = "lsm";
