//! What is compared, section by section. Each can be run alone.

mod connect;
mod disk;
mod footprint;
mod hot_row;
mod inserts;
mod key_value;
mod pipeline;
mod recovery;
pub(crate) mod requests;
mod size;
mod stalls;
mod stock;
mod transfers;

use crate::compare::Settings;
use crate::results::Recorder;

/// A part of the comparison.
pub(crate) struct Section {
    /// On the command line and of the file that keeps what it found.
    pub(crate) name: &'static str,
    /// Over its tables.
    pub(crate) title: &'static str,
    /// What is done, for the reader of the document.
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Settings, &mut Recorder) -> Result<(), String>,
}

impl Section {
    /// True if it is about the engines whose rows are on disk.
    pub(crate) fn is_disk(&self) -> bool {
        self.name.starts_with("disk-")
    }
}

/// All sections, in the document's order.
pub(crate) const SECTIONS: &[Section] = &[
    requests::SECTION,
    pipeline::SECTION,
    connect::SECTION,
    stock::SECTION,
    stock::STATEMENTS,
    transfers::SECTION,
    key_value::SECTION,
    inserts::SECTION,
    size::SECTION,
    stalls::CHECKPOINT,
    stalls::INDEX,
    stalls::DROP,
    recovery::SECTION,
    footprint::SECTION,
    hot_row::SECTION,
    disk::write::SECTION,
    disk::read::SECTION,
    disk::read::MISSING,
    disk::sustained::SECTION,
    disk::deleted::SECTION,
    inserts::DISK,
    stock::DISK,
    disk::start::SECTION,
];
