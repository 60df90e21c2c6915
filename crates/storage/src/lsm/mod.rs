//! The disk engine: rows in memtables and in runs on disk, and the manifest that says which runs count.
//!
//! In the order to read: `tree` is one index (memtables above, ranges with runs below) and `scan` an ordered way through it; `space` keeps
//! the indexes of a space alike; `engine` is what all spaces share, with `dumps`, `compactions`, `debt` and `records` as its parts; `jobs` is what other
//! threads do for it. Below lie the files: `run`, `block`, `filter`, `manifest`, and `merge` for those who write them. `reads` and `cache` bring
//! blocks to memory, `build` fills new indexes, `check` looks through a directory.
//!
//! Nothing here knows catalogs, transactions or the log, and but for waiting in `reads` no fibers. Keys are ordered bytes
//! (`tuple::KeyDef::ordered_of_row`) and compare as bytes. Everything belongs to the transaction thread but the jobs and the writing of records.
//! Layouts: docs/formats/lsm.md; the story of a write and of a read: docs/05-storage.md.
//!
//! Invariants:
//! * What lies above is newer: memtables before runs, a younger run before an older one, for every key.
//! * A run holds nothing that a crash could take back: its record is written when the log is durable up to its dump.
//! * A file that has its name (no `.inprogress` behind it) is whole and synced, and never changes; the manifest only grows, and is
//!   replaced by a whole new one.
//! * The manifest names a run only after the run has its name.
//! * Bytes from disk are refused with file and offset, never asserted.

mod block;
mod build;
mod cache;
mod check;
mod compactions;
mod cursor;
mod debt;
mod disk_scan;
mod dumps;
mod engine;
mod entry;
mod error;
mod filter;
mod index_statistics;
mod jobs;
mod manifest;
mod memtable;
mod merge;
mod page_cache;
mod policy;
mod reads;
mod records;
mod retry;
mod run;
mod scan;
mod sizes;
mod space;
mod statistics;
mod tree;
mod upsert;
mod view;

pub use crate::engine::Key as DiskKey;
pub use block::Block;
pub use build::{BuildStop, DiskBuild};
pub use check::{Damage, FileReport, FileRole, check_directory};
pub use disk_scan::DiskScan;
pub use engine::{LsmConfig, LsmEngine, LsmEnvironment};
pub use entry::{Entry, EntryKind};
pub use error::LsmError;
pub use filter::key_hash;
pub use index_statistics::{Amount, Counts, IndexStatistics, Volume};
pub use manifest::{Edit, Manifest, RangeState, TreeState, newest_trees, read_manifest, remove_orphans};
pub use merge::{Source, Upserter, join_upserts, merge};
pub use reads::{Fetched, Need, Stop};
pub use run::{Run, RunOptions, RunSource, RunWriter};
pub use space::{DetachedTrees, DiskChange, DiskRow, LsmSpace};
pub use statistics::LsmStatistics;
pub use tree::TreeOptions;
pub use view::DiskView;

/// The directory of all these files, below `vinyl_dir`.
pub const LSM_DIR: &str = "lsm";
