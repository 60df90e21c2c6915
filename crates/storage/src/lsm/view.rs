//! What a space on disk was at a moment, for readers that go on with it for as long as they like.
//!
//! A view keeps the memtables of all indexes as they are, and the runs below them: whoever writes copies the nodes of a memtable's tree that
//! the view shows, and the files of runs stay until nobody has them. What that costs is memory: of memtables that only views have any more.

use super::disk_scan::bounds_of;
use super::reads::Stop;
use super::scan::Scan;
use super::space::{DiskRow, LsmSpace};
use super::tree::{HeldTree, LsmTree};
use crate::engine::{IteratorKind, Key as DiskKey};
use std::rc::Rc;
use tuple::IndexId;

/// One index as it was.
pub(crate) struct ViewOfTree {
    pub(crate) tree: Rc<LsmTree>,
    pub(crate) held: Rc<HeldTree>,
}

impl ViewOfTree {
    pub(crate) fn new(tree: Rc<LsmTree>) -> Self {
        let held = Rc::new(tree.hold());
        ViewOfTree { tree, held }
    }
}

/// See the head of this file.
pub struct DiskView {
    /// By index id; the primary first.
    trees: Vec<Rc<ViewOfTree>>,
}

impl DiskView {
    pub(crate) fn tree(&self, index_id: IndexId) -> Option<&Rc<ViewOfTree>> {
        self.trees.iter().find(|seen| seen.tree.index_id == index_id)
    }

    pub(crate) fn primary(&self) -> Option<Rc<ViewOfTree>> {
        self.trees.first().cloned()
    }

    /// Bytes of memtables that would be free without views.
    pub fn held_bytes(&self) -> usize {
        self.trees.iter().map(|seen| seen.held.held_bytes()).sum()
    }
}

impl LsmSpace {
    /// What the space is now.
    pub fn view(&self) -> Rc<DiskView> {
        let trees = self.trees().into_iter().map(|tree| Rc::new(ViewOfTree::new(tree)));
        Rc::new(DiskView { trees: trees.collect() })
    }

    /// The row that a view shows of a unique index with this key (all parts).
    ///
    /// Errors: as `get`.
    pub fn get_in_view(&self, view: &DiskView, index_id: IndexId, key: DiskKey<'_>) -> Result<Option<DiskRow>, Stop> {
        let Some(seen) = view.tree(index_id) else { return Ok(None) };
        let tree = &seen.tree;
        if tree.is_primary {
            let mut bytes = Vec::new();
            tree.order.ordered_of_key(key.parts, key.part_count, &mut bytes);
            let row = tree.get_held(&seen.held, &self.engine.reader, &bytes)?;
            return Ok(row.map(|row| DiskRow { row }));
        }
        let mut scan = Scan::of_view(tree, &seen.held, bounds_of(&tree.order, IteratorKind::Eq, key));
        let primary = view.primary();
        loop {
            return match scan.next(&self.engine.reader) {
                Ok(Some(found)) => self.row_of(tree, found, primary.as_deref()),
                Ok(None) => Ok(None),
                // Only that others have a turn: another try would begin where this one did.
                Err(Stop::Wait(need)) if need.is_empty() => continue,
                Err(stop) => Err(stop),
            };
        }
    }
}
