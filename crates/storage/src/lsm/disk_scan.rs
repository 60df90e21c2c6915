//! A scan of a space on disk: of an index, and of the primary index for the rows that its entries mean.

use super::reads::Stop;
use super::scan::{Bounds, Scan};
use super::space::{DiskRow, LsmSpace};
use super::tree::{LsmTree, RowRef};
use super::view::{DiskView, ViewOfTree};
use crate::engine::{IteratorKind, Key as DiskKey};
use crate::entries::KeySource;
use std::rc::Rc;
use tuple::{IndexId, KeyDef};

/// Which keys a scan means.
pub(super) fn bounds_of(order: &KeyDef, kind: IteratorKind, key: DiskKey<'_>) -> Bounds {
    let is_reverse = kind.is_reverse();
    if key.part_count == 0 {
        return Bounds { from: Vec::new(), to: None, is_reverse };
    }
    let mut prefix = Vec::new();
    order.ordered_of_key(key.parts, key.part_count, &mut prefix);
    let behind = [&prefix[..], &[0xff]].concat();
    match kind {
        IteratorKind::Eq | IteratorKind::Req => Bounds { from: prefix, to: Some(behind), is_reverse },
        IteratorKind::Lt => Bounds { from: Vec::new(), to: Some(prefix), is_reverse },
        IteratorKind::Le => Bounds { from: Vec::new(), to: Some(behind), is_reverse },
        IteratorKind::Gt => Bounds { from: behind, to: None, is_reverse },
        _ => Bounds { from: prefix, to: None, is_reverse },
    }
}

/// Which entries, and those behind which one alone.
struct Wanted<'a> {
    index_id: IndexId,
    kind: IteratorKind,
    key: DiskKey<'a>,
    place: Option<&'a [u8]>,
}

impl LsmSpace {
    /// Begins a scan. `part_count` 0 means the whole index.
    pub fn scan(self: &Rc<Self>, index_id: IndexId, kind: IteratorKind, key: DiskKey<'_>) -> DiskScan {
        self.begin_scan(None, Wanted { index_id, kind, key, place: None })
    }

    /// The same of what a view shows.
    pub fn scan_view(
        self: &Rc<Self>,
        view: &Rc<DiskView>,
        index_id: IndexId,
        kind: IteratorKind,
        key: DiskKey<'_>,
    ) -> DiskScan {
        self.begin_scan(Some(view), Wanted { index_id, kind, key, place: None })
    }

    fn begin_scan(self: &Rc<Self>, view: Option<&Rc<DiskView>>, wanted: Wanted<'_>) -> DiskScan {
        let Wanted { index_id, kind, key, place } = wanted;
        let bounds = |tree: &LsmTree| {
            let bounds = bounds_of(&tree.order, kind, key);
            place.map_or(bounds.clone(), |place| bounds.behind(place))
        };
        let scan = match view {
            Some(view) => view.tree(index_id).map(|seen| {
                let scan = Scan::of_view(&seen.tree, &seen.held, bounds(&seen.tree));
                (Rc::clone(&seen.tree), scan)
            }),
            None => self.index(index_id).map(|tree| {
                let scan = Scan::new(&tree, bounds(&tree));
                (tree, scan)
            }),
        };
        DiskScan { space: Rc::clone(self), scan, row_wanted: None, rows: view.and_then(|view| view.primary()) }
    }

    /// Begins a scan behind an entry, of which this is the place; see [`DiskScan::place`].
    pub fn scan_behind(
        self: &Rc<Self>,
        index_id: IndexId,
        kind: IteratorKind,
        key: DiskKey<'_>,
        place: &[u8],
    ) -> DiskScan {
        self.begin_scan(None, Wanted { index_id, kind, key, place: Some(place) })
    }

    /// Begins a scan behind a row, of what is there or of what a view shows. For an ordinary index: elsewhere a row may be found in several
    /// places.
    pub fn scan_after(
        self: &Rc<Self>,
        view: Option<&Rc<DiskView>>,
        index_id: IndexId,
        kind: IteratorKind,
        key: DiskKey<'_>,
        last: &[u8],
    ) -> DiskScan {
        let indexes = self.indexes.borrow();
        let index = indexes.iter().find(|index| index.def.id == index_id);
        assert!(index.is_none_or(|index| matches!(index.def.source, KeySource::Fields)), "a row has one place");
        let mut place = Vec::new();
        if let Some(index) = index {
            index.tree.key_of(last, &mut place);
        }
        drop(indexes);
        self.begin_scan(view, Wanted { index_id, kind, key, place: Some(&place) })
    }
}

/// A scan of a space on disk.
pub struct DiskScan {
    space: Rc<LsmSpace>,
    scan: Option<(Rc<LsmTree>, Scan)>,
    /// An entry of a secondary index whose row is not in memory yet.
    row_wanted: Option<RowRef>,
    /// The primary index as it was when the scan was held.
    rows: Option<Rc<ViewOfTree>>,
}

impl DiskScan {
    /// The next row, `None` at the end. Err: something is not in memory; to be called again when it is, after `hold` or `seek_again`.
    pub fn next_row(&mut self) -> Result<Option<DiskRow>, Stop> {
        let Some((tree, scan)) = &mut self.scan else { return Ok(None) };
        loop {
            let found = match self.row_wanted.take() {
                Some(found) => found,
                None => match scan.next(&self.space.engine.reader)? {
                    Some(found) => found,
                    None => return Ok(None),
                },
            };
            match self.space.row_of(tree, found.clone(), self.rows.as_deref()) {
                Ok(Some(row)) => return Ok(Some(row)),
                Ok(None) => {}
                Err(stop) => {
                    self.row_wanted = Some(found);
                    return Err(stop);
                }
            }
        }
    }

    /// The place of the entry that was found last, for [`LsmSpace::scan_behind`]; `None` before the first.
    pub fn place(&self) -> Option<&[u8]> {
        let (_, scan) = self.scan.as_ref()?;
        scan.passed_key()
    }

    /// Has the rest of the scan show the space as it is now. Called before anybody else has a turn.
    pub fn hold(&mut self) {
        if let Some((tree, scan)) = &mut self.scan {
            scan.hold();
            if !tree.is_primary && self.rows.is_none() {
                self.rows = self.space.primary().map(|primary| Rc::new(ViewOfTree::new(primary)));
            }
        }
    }

    /// Goes on behind the last row in what is there now. If the index is gone, or is another one by now, there is no more.
    pub fn seek_again(&mut self) {
        self.rows = None;
        let Some((tree, scan)) = &mut self.scan else { return };
        if self.row_wanted.take().is_some() {
            // By now the row may be another, with another key.
            scan.reopen_key();
        }
        match self.space.index(tree.index_id).filter(|now| now.order.has_parts_of(&tree.order)) {
            Some(now) => {
                scan.seek_again(&now);
                *tree = now;
            }
            None => self.scan = None,
        }
    }

    /// The same in what a view shows from now on.
    pub fn seek_in_view(&mut self, view: &Rc<DiskView>) {
        self.rows = view.primary();
        let Some((tree, scan)) = &mut self.scan else { return };
        if self.row_wanted.take().is_some() {
            scan.reopen_key();
        }
        match view.tree(tree.index_id).filter(|seen| seen.tree.order.has_parts_of(&tree.order)) {
            Some(seen) => {
                scan.seek_in_view(&seen.tree, &seen.held);
                *tree = Rc::clone(&seen.tree);
            }
            None => self.scan = None,
        }
    }

    /// The stretch of ordered keys that has been looked at so far: from, to (none: to the end). For those who remember what was read.
    pub fn seen(&self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let (_, scan) = self.scan.as_ref()?;
        Some(scan.seen())
    }
}
