//! What bytes from outside may do to each of the places where they enter: a function for each, given to the fuzzer by `fuzz/fuzz_targets`
//! and run on the kept corpus, with seeded mutations, by `tests/corpus.rs`.
//!
//! A case doubts one thing, told at the head of its file. It panics if the doubt is right, and keeps nothing from one input to the next.
#![expect(clippy::missing_panics_doc, reason = "a panic is what a case is for")]

pub mod definition;
pub mod few_rights;
pub mod lsm_files;
pub mod memcached;
pub mod mysql;
pub mod packet;
pub mod postgres;
pub mod redis;
pub mod row;
pub mod session;
pub mod snapshot;
pub mod statement;
pub mod tyrant;
pub mod update_operations;
pub mod value;
pub mod vinyl_files;
pub mod xlog_block;

/// A case by the name of its corpus.
pub type Case = (&'static str, fn(&[u8]));

/// All cases.
pub const CASES: [Case; 17] = [
    ("definition", definition::run),
    ("few_rights", few_rights::run),
    ("lsm_files", lsm_files::run),
    ("memcached", memcached::run),
    ("mysql", mysql::run),
    ("packet", packet::run),
    ("postgres", postgres::run),
    ("redis", redis::run),
    ("row", row::run),
    ("session", session::run),
    ("snapshot", snapshot::run),
    ("statement", statement::run),
    ("tyrant", tyrant::run),
    ("update_operations", update_operations::run),
    ("value", value::run),
    ("vinyl_files", vinyl_files::run),
    ("xlog_block", xlog_block::run),
];
