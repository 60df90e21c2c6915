//! New indexes for a space that has rows, or a look whether its rows fit another format, while it is written to.
//!
//! The rows are read as they were when the build began, in slices; their entries are collected, and each collection that has become large is
//! written as a run. What is written to the space meanwhile goes into the new indexes' active memtables as well, which lie above those runs: it is
//! newer. Collections count as memtables do. In the end unique indexes are read once in order, to see whether two rows have one key.
//!
//! Until the indexes are put in their places nothing in the manifest knows them, and a crash leaves orphans that the next start removes.

use super::disk_scan::DiskScan;
use super::engine::{FIRST_RANGE, LsmEngine};
use super::entry::{Entry, EntryKind};
use super::error::LsmError;
use super::jobs::RunJob;
use super::memtable::Memtable;
use super::reads::Stop;
use super::run::Run;
use super::scan::{Bounds, Scan};
use super::space::{DetachedTrees, DiskIndex, LsmSpace};
use super::tree::{Range, TreeOptions};
use crate::engine::Key as DiskKey;
use crate::engine::{IndexDef, IteratorKind};
use crate::entries::KeySource;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tuple::{Format, IndexId, TupleError};

/// Bytes of entries that are collected for a run, at most.
const COLLECTION_BYTES_MAX: usize = 16 << 20;
/// All collections of a build together take one part of so many of the memory for memtables.
const COLLECTIONS_PART: usize = 4;

/// Why a build cannot go on now, or ever.
pub enum BuildStop {
    /// Something is not in memory.
    Stop(Stop),
    /// A run is being written: to be called again in a while.
    Busy,
    /// Two rows have one key of a unique index.
    Duplicate {
        /// The index.
        index_id: IndexId,
    },
    /// A row does not fit the format.
    Format(TupleError),
}

impl From<Stop> for BuildStop {
    fn from(stop: Stop) -> Self {
        BuildStop::Stop(stop)
    }
}

/// What writers of the space and the build share.
pub(crate) struct Building {
    pub(crate) indexes: Vec<DiskIndex>,
    format: Rc<Format>,
    /// All rows are in: nobody may put in another with a key that is there.
    pub(crate) is_complete: Cell<bool>,
    /// A row that was written meanwhile does not fit.
    refused: RefCell<Option<TupleError>>,
}

impl Building {
    /// A row was written to the space.
    pub(crate) fn check(&self, new: &[u8]) {
        if let Err(error) = self.format.check(new) {
            self.refused.borrow_mut().get_or_insert(error);
        }
    }
}

enum Stage {
    /// Reads rows.
    Fill(Box<DiskScan>),
    /// Looks for keys that are there twice, in the index of this place.
    Verify(usize, Option<Box<Verification>>),
    Done,
}

struct Verification {
    scan: Scan,
    last: Vec<u8>,
}

/// See the head of this file. Dropped before it is done, it leaves nothing.
pub struct DiskBuild {
    space: Rc<LsmSpace>,
    building: Rc<Building>,
    /// For each new index.
    collections: Vec<Rc<Memtable>>,
    runs: Vec<Vec<Arc<Run>>>,
    writing: Option<(usize, RunJob, Rc<Memtable>)>,
    stage: Stage,
    rows: u64,
}

impl LsmSpace {
    /// Begins to fill new indexes with the rows, which must fit `format`. Without definitions the rows are only looked at. Nobody else changes
    /// the definition of the space meanwhile.
    ///
    /// Errors: never at once; what a tree of the manifest would have cannot be read.
    pub fn begin_build(
        self: &Rc<Self>,
        format: Rc<Format>,
        defs: Vec<(IndexDef, TreeOptions)>,
    ) -> Result<DiskBuild, LsmError> {
        let mut indexes = Vec::new();
        for (def, options) in defs {
            let tree = self.make_tree(&def, options, None)?;
            indexes.push(DiskIndex { def, tree });
        }
        let building =
            Rc::new(Building { indexes, format, is_complete: Cell::new(false), refused: RefCell::new(None) });
        self.set_building(Some(Rc::clone(&building)));
        let mut scan = self.scan(IndexId::PRIMARY, IteratorKind::All, DiskKey { parts: &[], part_count: 0 });
        scan.hold();
        let collections = building.indexes.iter().map(|index| index.tree.new_memtable()).collect();
        let runs = building.indexes.iter().map(|_| Vec::new()).collect();
        let stage = Stage::Fill(Box::new(scan));
        Ok(DiskBuild { space: Rc::clone(self), building, collections, runs, writing: None, stage, rows: 0 })
    }
}

impl DiskBuild {
    /// Rows that were looked at.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// True if the indexes are complete.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// True if it fills indexes of this space.
    pub fn is_of(&self, space: &Rc<LsmSpace>) -> bool {
        Rc::ptr_eq(&self.space, space)
    }

    fn engine(&self) -> &Rc<LsmEngine> {
        self.space.engine()
    }

    /// Looks at up to `max` rows more. Returns true while there are any. Between calls the space may be written to.
    ///
    /// Errors: what is to be waited for before the next call, or why there is none.
    pub fn build_some(&mut self, max: usize) -> Result<bool, BuildStop> {
        self.take_written()?;
        if let Some(error) = self.building.refused.borrow().clone() {
            return Err(BuildStop::Format(error));
        }
        match &mut self.stage {
            Stage::Fill(_) => self.fill(max),
            Stage::Verify(..) => self.verify(max),
            Stage::Done => Ok(false),
        }
    }

    fn fill(&mut self, max: usize) -> Result<bool, BuildStop> {
        let Stage::Fill(scan) = &mut self.stage else { return Ok(true) };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for _ in 0..max {
            let Some(row) = scan.next_row()? else {
                return self.complete();
            };
            self.rows += 1;
            row.with(|row| {
                self.building.format.check(row).map_err(BuildStop::Format)?;
                value.clear();
                self.space.primary_key_of(row, &mut value);
                for (index, memtable) in self.building.indexes.iter().zip(&self.collections) {
                    index.for_each_entry(row, &mut key, |key| {
                        let entry = Entry { key, kind: EntryKind::Put, value: &value };
                        memtable.put(entry, index.tree.filter_prefix(key));
                        Ok::<(), BuildStop>(())
                    })?;
                }
                Ok::<(), BuildStop>(())
            })?;
        }
        match self.full_collection() {
            Some(at) => self.write(at),
            None => Ok(true),
        }
    }

    /// The collection that has to be written now, if one has. Counts the growth of all.
    fn full_collection(&self) -> Option<usize> {
        let engine = self.engine();
        let growth: usize = self.collections.iter().map(|memtable| memtable.growth()).sum();
        engine.build_bytes.set(engine.build_bytes.get() + growth);
        let memory = engine.memory_bytes_max();
        let each_max = COLLECTION_BYTES_MAX.min(memory / COLLECTIONS_PART / self.collections.len().max(1));
        let (at, largest) = self.collections.iter().enumerate().max_by_key(|(_, memtable)| memtable.charged())?;
        // Several builds at once have smaller ones.
        let is_full = largest.charged() >= each_max || engine.build_bytes.get() >= memory / 2;
        (is_full && !largest.is_empty()).then_some(at)
    }

    /// A collection is in a run, or not wanted any more.
    fn release(&self, memtable: Rc<Memtable>) {
        let engine = self.engine();
        engine.build_bytes.set(engine.build_bytes.get() - memtable.charged());
        engine.garbage.borrow_mut().push_back(memtable);
    }

    /// Begins to write what was collected for an index.
    fn write(&mut self, at: usize) -> Result<bool, BuildStop> {
        let tree = &self.building.indexes[at].tree;
        let memtable = std::mem::replace(&mut self.collections[at], tree.new_memtable());
        let job = self.engine().write_memtable(tree, &memtable);
        self.writing = Some((at, job, memtable));
        Err(BuildStop::Busy)
    }

    /// Takes in runs that were being written.
    fn take_written(&mut self) -> Result<(), BuildStop> {
        let Some((at, mut job, memtable)) = self.writing.take() else { return Ok(()) };
        match job.poll() {
            None => {
                self.writing = Some((at, job, memtable));
                Err(BuildStop::Busy)
            }
            Some((shared, result)) => {
                memtable.unshare(shared.memtable);
                self.release(memtable);
                let runs = result.map_err(Stop::from)?;
                // They have no key in common: their order does not matter.
                self.runs[at].extend(runs.into_iter().map(Arc::new));
                Ok(())
            }
        }
    }

    /// All rows were read: the rest is written, and the runs go where the indexes have them.
    fn complete(&mut self) -> Result<bool, BuildStop> {
        if let Some(at) = self.collections.iter().position(|memtable| !memtable.is_empty()) {
            return self.write(at);
        }
        for (index, runs) in self.building.indexes.iter().zip(&self.runs) {
            let entries: u64 = runs.iter().map(|run| run.entries()).sum();
            // A new primary key may be that of two rows, and other sources have other numbers of entries.
            let has_each_row = !index.tree.is_primary && matches!(index.def.source, KeySource::Fields);
            assert!(!has_each_row || entries == self.rows, "{entries} entries were written of {} rows", self.rows);
            // Its number is the one that the only range of a new tree has in the manifest.
            let range = Range { id: FIRST_RANGE, begin: Vec::new(), slices: runs.clone() };
            index.tree.set_ranges(vec![Rc::new(range)]);
        }
        self.building.is_complete.set(true);
        self.stage = Stage::Verify(0, None);
        Ok(true)
    }

    fn verify(&mut self, max: usize) -> Result<bool, BuildStop> {
        let Stage::Verify(at, verification) = &mut self.stage else { return Ok(true) };
        let Some(index) = self.building.indexes.get(*at) else {
            self.stage = Stage::Done;
            return Ok(false);
        };
        if !index.def.is_unique || index.tree.is_primary {
            self.stage = Stage::Verify(*at + 1, None);
            return Ok(true);
        }
        let verification = verification.get_or_insert_with(|| {
            let mut scan = Scan::new(&index.tree, Bounds { from: Vec::new(), to: None, is_reverse: false });
            scan.hold();
            Box::new(Verification { scan, last: Vec::new() })
        });
        for _ in 0..max {
            if verification.scan.next(&self.space.engine().reader)?.is_none() {
                self.stage = Stage::Verify(*at + 1, None);
                return Ok(true);
            }
            let key = verification.scan.last_key();
            let own = &key[..index.tree.filter_prefix(key)];
            let is_twice = own == verification.last && !index.tree.has_nil(own);
            if is_twice {
                return Err(BuildStop::Duplicate { index_id: index.def.id });
            }
            verification.last.clear();
            verification.last.extend_from_slice(own);
        }
        Ok(true)
    }

    /// Puts the indexes in their places. Those that had the places are returned, with the numbers of the new ones.
    pub fn end(self) -> Vec<(IndexDef, Option<DetachedTrees>)> {
        assert!(self.is_done(), "new indexes hold every row");
        self.space.set_building(None);
        let indexes = self.building.indexes.iter();
        indexes.map(|index| (index.def.clone(), self.space.place_index(&index.def, &index.tree))).collect()
    }
}

impl Drop for DiskBuild {
    fn drop(&mut self) {
        if let Some((_, job, memtable)) = self.writing.take() {
            self.release(Rc::clone(&memtable));
            self.engine().give_up(job, memtable);
        }
        std::mem::take(&mut self.collections).into_iter().for_each(|memtable| self.release(memtable));
        if self.space.building().is_some_and(|building| Rc::ptr_eq(&building, &self.building)) {
            self.space.set_building(None);
            self.engine()
                .discard_unplaced(self.building.indexes.iter().map(|index| Rc::clone(&index.tree)), &self.runs);
        }
    }
}
