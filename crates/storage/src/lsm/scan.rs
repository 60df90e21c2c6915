//! A scan: entries of all memtables and runs in order of their keys, the newest of each key.
//!
//! A scan goes on as far as memory goes. Where a block is missing it stops with what it needs and is continued later, in one of two ways:
//! `hold` freezes the memtables at once, so that what follows belongs to the same moment; or `seek_again` goes on behind the last key in
//! what is there by then.

use super::block::Block;
use super::entry::{Entry, EntryKind};
use super::index_statistics::Counts;
use super::memtable::{Memtable, MemtableHold};
use super::reads::{BlockReader, Need, Stop, Use};
use super::run::Run;
use super::tree::{HeldTree, LsmTree, MergeOperands, Ranges, RowRef};
use index::Cursor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Entries without a row that a scan passes before it lets others run.
const PASSED_MAX: usize = 4_000;

/// Which keys, and which way.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// The first key that may be in the scan.
    pub(crate) from: Vec<u8>,
    /// The first key behind it; none: the end.
    pub(crate) to: Option<Vec<u8>>,
    /// From large to small.
    pub(crate) is_reverse: bool,
}

impl Bounds {
    /// What is left behind a key.
    pub(crate) fn behind(&self, key: &[u8]) -> Bounds {
        let mut rest = self.clone();
        if self.is_reverse {
            rest.to = Some(key.to_vec());
        } else {
            // The smallest key that is larger.
            rest.from = [key, &[0]].concat();
        }
        rest
    }

    /// What is left with a key.
    fn starting_with(&self, key: &[u8]) -> Bounds {
        let mut rest = self.clone();
        if self.is_reverse {
            rest.to = Some([key, &[0]].concat());
        } else {
            rest.from = key.to_vec();
        }
        rest
    }
}

/// A run as far as it lies in the present range.
struct SliceCursor {
    run: Arc<Run>,
    block_at: Option<usize>,
    block: Option<Rc<Block>>,
    /// In the block; meaningless while it is not there.
    at: usize,
    /// The block is entered at this key, or at its edge.
    is_placed: bool,
}

struct MemtableCursor {
    memtable: Rc<Memtable>,
    cursor: Cursor,
}

/// See the head of this file.
pub(crate) struct Scan {
    tree: Rc<LsmTree>,
    /// What was asked for.
    asked: Bounds,
    /// What is left of it since places were found anew.
    bounds: Bounds,
    ranges: Rc<Ranges>,
    range_at: usize,
    memtables: Vec<MemtableCursor>,
    slices: Vec<SliceCursor>,
    holds: Vec<MemtableHold>,
    /// What the tree was at a moment, if that is to be scanned.
    view: Option<Rc<HeldTree>>,
    /// Key of the last entry that was looked at.
    key: Vec<u8>,
    has_key: bool,
    /// The key is to be looked at once more.
    is_key_open: bool,
    passed: usize,
    is_over: bool,
}

impl Scan {
    pub(crate) fn new(tree: &Rc<LsmTree>, bounds: Bounds) -> Self {
        Scan::begin(tree, None, bounds)
    }

    /// A scan of what a tree was.
    pub(crate) fn of_view(tree: &Rc<LsmTree>, view: &Rc<HeldTree>, bounds: Bounds) -> Self {
        Scan::begin(tree, Some(Rc::clone(view)), bounds)
    }

    fn begin(tree: &Rc<LsmTree>, view: Option<Rc<HeldTree>>, bounds: Bounds) -> Self {
        let mut scan = Scan {
            tree: Rc::clone(tree),
            ranges: tree.ranges(),
            range_at: 0,
            memtables: Vec::new(),
            slices: Vec::new(),
            holds: Vec::new(),
            view,
            key: Vec::new(),
            has_key: false,
            is_key_open: false,
            passed: 0,
            is_over: bounds.to.as_ref().is_some_and(|to| *to <= bounds.from),
            asked: bounds.clone(),
            bounds,
        };
        tree.counts.borrow_mut().lookups += 1;
        if !scan.is_over {
            scan.seek();
        }
        scan
    }

    /// Finds the places in everything anew.
    fn seek(&mut self) {
        let Bounds { from, to, is_reverse } = &self.bounds;
        self.memtables.clear();
        match &self.view {
            None => {
                self.ranges = self.tree.ranges();
                for memtable in self.tree.memtables() {
                    let cursor =
                        if *is_reverse { memtable.seek_before(to.as_deref()) } else { memtable.seek_from(from, true) };
                    self.memtables.push(MemtableCursor { memtable, cursor });
                }
            }
            Some(view) => {
                self.ranges = Rc::clone(&view.ranges);
                for hold in &view.memtables {
                    let cursor = if *is_reverse { hold.seek_before(to.as_deref()) } else { hold.seek_from(from) };
                    if let Some(cursor) = cursor {
                        self.memtables.push(MemtableCursor { memtable: Rc::clone(hold.memtable()), cursor });
                    }
                }
            }
        }
        self.range_at = match (is_reverse, to) {
            (false, _) => self.ranges.find(from),
            (true, None) => self.ranges.list.len() - 1,
            (true, Some(to)) => {
                let at = self.ranges.find(to);
                // Nothing before the bound lies in a range that begins with it.
                if at > 0 && self.ranges.list[at].begin == *to { at - 1 } else { at }
            }
        };
        self.enter_range();
    }

    /// Goes on behind the last key, in what is there now; `tree` is the scan's own or one of the same order that has taken its place.
    pub(crate) fn seek_again(&mut self, tree: &Rc<LsmTree>) {
        self.go_on(tree, None);
    }

    /// The same in what a tree was.
    pub(crate) fn seek_in_view(&mut self, tree: &Rc<LsmTree>, view: &Rc<HeldTree>) {
        self.go_on(tree, Some(Rc::clone(view)));
    }

    fn go_on(&mut self, tree: &Rc<LsmTree>, view: Option<Rc<HeldTree>>) {
        self.tree = Rc::clone(tree);
        self.view = view;
        self.holds.clear();
        if self.is_over {
            return;
        }
        if self.has_key && !self.is_key_open {
            self.bounds = self.bounds.behind(&self.key);
        }
        self.seek();
    }

    /// The last key was not of use yet: `seek_again` goes on with it, not behind it.
    pub(crate) fn reopen_key(&mut self) {
        if self.has_key {
            self.is_key_open = true;
            self.bounds = self.bounds.starting_with(&self.key);
        }
    }

    /// The last key that was found or passed, if any.
    pub(crate) fn passed_key(&self) -> Option<&[u8]> {
        self.has_key.then_some(self.key.as_slice())
    }

    /// Keeps everything that is to come as it is now. Called before anything is changed since the scan began.
    pub(crate) fn hold(&mut self) {
        if self.holds.is_empty() && self.view.is_none() {
            self.holds = self.memtables.iter().map(|source| source.memtable.hold()).collect();
        }
    }

    /// The key that was looked at last.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.key
    }

    /// The stretch of keys that has been looked at so far: from, to (none: to the end).
    pub(crate) fn seen(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let Bounds { from, to, is_reverse } = &self.asked;
        match (self.is_over, self.has_key, is_reverse) {
            (true, ..) => (from.clone(), to.clone()),
            // Others may name a key by the index's own parts, which is before it.
            (false, true, true) => {
                (self.key[..super::tree::own_prefix(&self.key, self.tree.own_parts)].to_vec(), to.clone())
            }
            (false, true, false) => (from.clone(), Some([&self.key[..], &[0]].concat())),
            // Nothing yet: an empty stretch.
            (false, false, _) => (from.clone(), Some(from.clone())),
        }
    }

    fn enter_range(&mut self) {
        let range = &self.ranges.list[self.range_at];
        let (from, to) = range_bounds(&self.ranges, self.range_at, &self.bounds);
        let mut slices = Vec::with_capacity(range.slices.len());
        for run in &range.slices {
            let is_outside = to.is_some_and(|to| run.min_key() >= to) || run.max_key() < from;
            if is_outside {
                continue;
            }
            let block_at = if self.bounds.is_reverse {
                match to {
                    None => Some(run.block_count() - 1),
                    // The bound itself is not wanted, but the block that it lies in may begin before it.
                    Some(to) => run.find_block(to),
                }
            } else {
                Some(run.find_block(from).unwrap_or(0))
            };
            slices.push(SliceCursor { run: Arc::clone(run), block_at, block: None, at: 0, is_placed: false });
        }
        self.slices = slices;
    }

    /// Puts every slice on an entry within the range, or at its end.
    fn settle_slices(&mut self, reader: &BlockReader) -> Result<(), Stop> {
        let (from, to) = range_bounds(&self.ranges, self.range_at, &self.bounds);
        let is_reverse = self.bounds.is_reverse;
        let mut need = Need::default();
        let mut failed = None;
        for slice in &mut self.slices {
            match slice.settle(reader, &self.tree.counts, (from, to), is_reverse) {
                Ok(()) => {}
                Err(Stop::Wait(more)) => need.join(more),
                Err(Stop::Failed(error)) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(Stop::Failed(error)),
            None if !need.is_empty() => Err(Stop::Wait(need)),
            None => Ok(()),
        }
    }

    /// The next row and, as `last_key`, its key. Err: something is not in memory; to be called again when it is.
    pub(crate) fn next(&mut self, reader: &BlockReader) -> Result<Option<RowRef>, Stop> {
        loop {
            if self.is_over {
                return Ok(None);
            }
            if self.passed >= PASSED_MAX {
                self.passed = 0;
                return Err(Stop::Wait(Need::default()));
            }
            self.settle_slices(reader)?;
            if !self.find_key() {
                if !self.next_range() {
                    self.is_over = true;
                }
                continue;
            }
            if let Some(row) = self.take_entries() {
                self.passed = 0;
                self.tree.counts.borrow_mut().found.add(row.with(<[u8]>::len));
                return Ok(Some(row));
            }
            self.passed += 1;
        }
    }

    /// Makes `key` the next key of all sources in this range. False: there is none.
    fn find_key(&mut self) -> bool {
        let is_reverse = self.bounds.is_reverse;
        #[cfg(debug_assertions)]
        let last = (self.has_key && !self.is_key_open).then(|| self.key.clone());
        let mut best = std::mem::take(&mut self.key);
        let mut is_found = false;
        let (from, to) = range_bounds(&self.ranges, self.range_at, &self.bounds);
        let mut offer = |key: &[u8]| {
            if key < from || to.is_some_and(|to| key >= to) {
                return;
            }
            let is_better = !is_found || if is_reverse { key > best.as_slice() } else { key < best.as_slice() };
            if is_better {
                best.clear();
                best.extend_from_slice(key);
                is_found = true;
            }
        };
        for source in &self.memtables {
            if let Some(found) = source.cursor.get() {
                source.memtable.read(found.item, |entry, _| offer(entry.key));
            }
        }
        for slice in &self.slices {
            if let Some(entry) = slice.entry() {
                offer(entry.key);
            }
        }
        #[cfg(debug_assertions)]
        assert!(
            !is_found || last.is_none_or(|last| if is_reverse { best < last } else { best > last }),
            "a scan comes to each key once, in order"
        );
        self.key = best;
        self.has_key |= is_found;
        self.is_key_open &= !is_found;
        is_found
    }

    /// Passes the entries that all sources have of `key`. Returns the row that they amount to, if any.
    fn take_entries(&mut self) -> Option<RowRef> {
        let is_reverse = self.bounds.is_reverse;
        let mut operands = MergeOperands::default();
        let mut decided: Option<Option<RowRef>> = None;
        for source in &mut self.memtables {
            let Some(found) = source.cursor.get() else { continue };
            let is_here = source.memtable.read(found.item, |entry, _| {
                if entry.key != self.key {
                    return false;
                }
                if decided.is_none() {
                    match entry.kind {
                        EntryKind::Put => {
                            decided = Some(Some(RowRef::Memtable(Rc::clone(&source.memtable), found.item)));
                        }
                        EntryKind::Delete => decided = Some(None),
                        EntryKind::Upsert => operands.push(entry.value.to_vec()),
                    }
                }
                true
            });
            if is_here {
                if is_reverse { source.cursor.prev() } else { source.cursor.next() }
            }
        }
        for slice in &mut self.slices {
            let Some(block) = &slice.block else { continue };
            let entry = block.entry(slice.at);
            if entry.key != self.key {
                continue;
            }
            if decided.is_none() {
                match entry.kind {
                    EntryKind::Put => decided = Some(Some(RowRef::Block(Rc::clone(block), slice.at))),
                    EntryKind::Delete => decided = Some(None),
                    EntryKind::Upsert => operands.push(entry.value.to_vec()),
                }
            }
            slice.step(is_reverse);
        }
        let upserter = Arc::clone(&self.tree.upserter.borrow());
        operands.apply(decided.flatten(), &*upserter)
    }

    /// Goes on to the neighbouring range. False: there is none that the scan wants.
    fn next_range(&mut self) -> bool {
        if self.bounds.is_reverse {
            if self.range_at == 0 || self.ranges.list[self.range_at].begin <= self.bounds.from {
                return false;
            }
            self.range_at -= 1;
        } else {
            let end = self.ranges.end(self.range_at);
            if end.is_none_or(|end| self.bounds.to.as_deref().is_some_and(|to| to <= end)) {
                return false;
            }
            self.range_at += 1;
        }
        self.enter_range();
        true
    }
}

/// What a scan wants of a range.
fn range_bounds<'a>(ranges: &'a Ranges, range_at: usize, bounds: &'a Bounds) -> (&'a [u8], Option<&'a [u8]>) {
    let begin = ranges.list[range_at].begin.as_slice();
    let from = begin.max(bounds.from.as_slice());
    let to = match (ranges.end(range_at), bounds.to.as_deref()) {
        (Some(end), Some(to)) => Some(end.min(to)),
        (end, to) => end.or(to),
    };
    (from, to)
}

impl SliceCursor {
    fn entry(&self) -> Option<Entry<'_>> {
        self.block.as_ref().map(|block| block.entry(self.at))
    }

    /// Puts the cursor on an entry of `[from, to)`; without one it has no block.
    fn settle(
        &mut self,
        reader: &BlockReader,
        counts: &RefCell<Counts>,
        (from, to): (&[u8], Option<&[u8]>),
        is_reverse: bool,
    ) -> Result<(), Stop> {
        while let Some(block_at) = self.block_at {
            if self.block.is_none() {
                let block = reader.block(&self.run, block_at, Use::Scan, counts)?;
                if !self.is_placed {
                    // A whole block is entered at its edge unless the bound lies in it.
                    self.at = match (is_reverse, to) {
                        (false, _) => block.lower_bound(from),
                        (true, Some(to)) => block.lower_bound(to).wrapping_sub(1),
                        (true, None) => block.len() - 1,
                    };
                    self.is_placed = true;
                } else {
                    self.at = if is_reverse { block.len() - 1 } else { 0 };
                }
                self.block = Some(block);
            }
            let Some(block) = &self.block else { return Ok(()) };
            if self.at < block.len() {
                let key = block.entry(self.at).key;
                let is_past = if is_reverse { key < from } else { to.is_some_and(|to| key >= to) };
                if !is_past {
                    return Ok(());
                }
                self.block_at = None;
                self.block = None;
                return Ok(());
            }
            self.block = None;
            self.block_at = if is_reverse {
                block_at.checked_sub(1)
            } else {
                (block_at + 1 < self.run.block_count()).then_some(block_at + 1)
            };
        }
        Ok(())
    }

    fn step(&mut self, is_reverse: bool) {
        // Before the first entry is behind the last one: no block is as long as that.
        self.at = if is_reverse { self.at.wrapping_sub(1) } else { self.at + 1 };
        let is_inside = self.block.as_ref().is_some_and(|block| self.at < block.len());
        if !is_inside {
            self.leave_block(is_reverse);
        }
    }

    fn leave_block(&mut self, is_reverse: bool) {
        self.block = None;
        self.block_at = match self.block_at {
            Some(at) if is_reverse => at.checked_sub(1),
            Some(at) => (at + 1 < self.run.block_count()).then_some(at + 1),
            None => None,
        };
    }
}
