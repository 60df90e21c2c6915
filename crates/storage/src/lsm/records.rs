//! Changes of the manifest, one after the other.
//!
//! A change is composed when its turn comes, from the trees as they are then, and takes effect here once it is on disk.

use super::engine::{FIRST_RANGE, LsmEngine};
use super::error::LsmError;
use super::jobs::Job;
use super::manifest::{Edit, RangeState};
use super::tree::{LsmTree, Range};
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use tuple::Lsn;

/// A record that is being written, and what follows.
pub(super) type Recording = (Job<Result<(), LsmError>>, Then);
pub(super) type Making = Box<dyn FnOnce() -> Vec<Edit>>;
pub(super) type Then = Box<dyn FnOnce(&LsmEngine, Result<(), Rc<LsmError>>)>;

impl LsmEngine {
    /// Puts a change of the manifest in the queue. `make` is called when it is its turn, `then` when it is on disk.
    pub(crate) fn record(&self, make: Making, then: Then) {
        self.records.borrow_mut().push_back((make, then));
    }

    pub(super) fn begin_record(&self) {
        while self.recording.borrow().is_none() {
            if !self.record_retry.is_due(self.now_ns()) {
                return;
            }
            let Some((make, then)) = self.records.borrow_mut().pop_front() else { return };
            let edits = make();
            if edits.is_empty() {
                then(self, Ok(()));
                continue;
            }
            let manifest = Arc::clone(&self.manifest);
            let job = self.run_job(
                "manifest",
                || {},
                move || manifest.lock().unwrap_or_else(PoisonError::into_inner).append(&edits),
            );
            *self.recording.borrow_mut() = Some((job, then));
            self.poll_record();
        }
    }

    pub(super) fn poll_record(&self) {
        let ended = {
            let mut recording = self.recording.borrow_mut();
            let result = recording.as_mut().and_then(|(job, _)| job.poll());
            result.and_then(|result| recording.take().map(|(_, then)| (then, result)))
        };
        let Some((then, result)) = ended else { return };
        match result {
            Ok(()) => {
                self.record_retry.succeed();
                then(self, Ok(()));
            }
            Err(error) => {
                let error = self.fail("a record of the manifest", &self.record_retry, error);
                then(self, Err(error));
            }
        }
    }
}

pub(super) fn range_state(range: &Range) -> RangeState {
    let slices = range.slices.iter().map(|run| run.id()).collect();
    RangeState { range_id: range.id, begin: range.begin.clone(), slices }
}

/// The edit that makes a tree known to the manifest.
pub(super) fn tree_edit(tree: &LsmTree) -> Vec<Edit> {
    if tree.is_recorded.get() {
        return Vec::new();
    }
    let (tree_id, space_id, index_id) = (tree.id, tree.space_id, tree.index_id);
    let mut edits = vec![Edit::CreateTree { tree_id, space_id, index_id, created_lsn: tree.created_lsn.get() }];
    let ranges = tree.ranges();
    if ranges.list.len() > 1 || ranges.list.iter().any(|range| !range.slices.is_empty()) {
        let add = ranges.list.iter().map(|range| range_state(range)).collect();
        edits.push(Edit::SetRanges { tree_id, remove: vec![FIRST_RANGE], add });
    }
    edits
}

/// A tree ends and leaves nothing. Nobody asks for it again: a start that reads the log from before makes an empty one in its place, and
/// empties it at the same row.
pub(super) fn forget(tree_id: u64, lsn: Lsn) -> Vec<Edit> {
    vec![Edit::DropTree { tree_id, dropped_lsn: lsn }, Edit::ForgetTree { tree_id }]
}
