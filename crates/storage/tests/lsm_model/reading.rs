//! Reads of random keys and scans, some of which go on between other work, each row compared with the one expected.

use super::{SPACES, World, decoded, encode_key};
use crate::rows::{IndexModel, Key, Row, SpaceModel, Value};
use std::collections::VecDeque;
use std::rc::Rc;
use storage::IteratorKind;
use storage::lsm::{DiskScan, DiskView};
use tuple::IndexId;

const KINDS: [IteratorKind; 7] = [
    IteratorKind::Eq,
    IteratorKind::Req,
    IteratorKind::All,
    IteratorKind::Lt,
    IteratorKind::Le,
    IteratorKind::Ge,
    IteratorKind::Gt,
];

/// A scan that goes on between other work.
pub(super) struct KeptScan {
    scan: DiskScan,
    space_id: u32,
    index_id: u32,
    kind: IteratorKind,
    prefix: Vec<Value>,
    /// What is left of it, if it shows one moment.
    held: Option<VecDeque<Rc<Row>>>,
    last: Option<Key>,
}

/// What a space was, for later reads.
pub(super) struct KeptView {
    view: Rc<DiskView>,
    space_id: u32,
    model: SpaceModel,
}

/// How far a scan that waits may have come: it passes entries without a row, but no row. What others put in before that place it need not find.
enum Floor {
    /// It has not waited.
    Nowhere,
    /// At most to the first row that was there.
    At(Key),
    /// There was no row left: perhaps to the end.
    End,
}

impl World {
    fn random_index(&self) -> (u32, u32) {
        let space_id = SPACES[self.pick(3) as usize];
        let ids: Vec<u32> = self.models[&space_id].indexes.keys().copied().collect();
        (space_id, ids[self.pick(ids.len() as u64) as usize])
    }

    fn random_prefix(&self, index: &IndexModel) -> (IteratorKind, Vec<Value>) {
        let mut prefix = self.random_row().key(&index.own);
        prefix.truncate(self.pick(index.own.len() as u64 + 1) as usize);
        (KINDS[self.pick(7) as usize], prefix)
    }

    pub(super) fn read(&mut self) {
        let (space_id, index_id) = self.random_index();
        let space = self.space(space_id);
        let index = &self.models[&space_id].indexes[&index_id];
        if index.is_unique && self.one_in(2) {
            let key = self.random_row().key(&index.own);
            if key.contains(&Value::Nil) {
                return;
            }
            let expected = index.with_prefix(&key).next().cloned();
            let encoded = encode_key(&key);
            let found = self.until_ready(|_| Ok(space.get(IndexId(index_id), encoded.key())?.map(decoded)));
            assert_eq!(found.as_ref(), expected.as_deref(), "seed {}: get {key:?} of {index_id}", self.seed);
            return;
        }
        let (kind, prefix) = self.random_prefix(index);
        let last = if self.one_in(5) {
            let all = index.scan(kind, &prefix, None);
            all.get(self.pick(20) as usize).cloned()
        } else {
            None
        };
        let last_key = last.as_ref().map(|row| row.key(&index.order));
        let expected = index.scan(kind, &prefix, last_key.as_ref());
        let encoded = encode_key(&prefix);
        let mut scan = match &last {
            Some(last) => space.scan_after(None, IndexId(index_id), kind, encoded.key(), &last.encode()),
            None => space.scan(IndexId(index_id), kind, encoded.key()),
        };
        let count = if self.one_in(20) { usize::MAX } else { 1 + self.pick(12) as usize };
        for at in 0..count {
            let row = self.next_of(&mut scan, at % 2 == 0);
            let expected = expected.get(at).map(|row| &**row);
            assert_eq!(row.as_ref(), expected, "seed {}: {kind:?} {prefix:?} of {space_id}.{index_id}", self.seed);
            if row.is_none() {
                break;
            }
        }
        let stretch = scan.seen();
        assert!(stretch.is_some());
    }

    /// The next row of a scan that nobody else is writing under.
    fn next_of(&mut self, scan: &mut DiskScan, holds: bool) -> Option<Row> {
        let mut fetched = Vec::new();
        loop {
            match scan.next_row() {
                Ok(row) => return row.map(decoded),
                Err(stop) => {
                    let holds = holds && self.txn.is_empty();
                    if holds {
                        scan.hold();
                    }
                    fetched.push(self.wait_for(stop));
                    if !holds {
                        scan.seek_again();
                    }
                }
            }
        }
    }

    pub(super) fn keep_scan(&mut self) {
        if self.kept.len() >= 6 {
            return self.drop_kept();
        }
        let (space_id, index_id) = self.random_index();
        let index = &self.models[&space_id].indexes[&index_id];
        let (kind, prefix) = self.random_prefix(index);
        let mut scan = self.space(space_id).scan(IndexId(index_id), kind, encode_key(&prefix).key());
        let held = self.one_in(2).then(|| {
            scan.hold();
            index.scan(kind, &prefix, None).into()
        });
        self.kept.push(KeptScan { scan, space_id, index_id, kind, prefix, held, last: None });
        let at = self.kept.len() - 1;
        if self.kept[at].held.is_none() {
            self.go_on_with(at);
        }
    }

    pub(super) fn go_on_with_kept(&mut self) {
        if !self.kept.is_empty() {
            let at = self.pick(self.kept.len() as u64) as usize;
            self.go_on_with(at);
        }
    }

    fn go_on_with(&mut self, at: usize) {
        let mut kept = self.kept.swap_remove(at);
        let count = self.pick(8);
        if let Some(mut held) = kept.held.take() {
            for _ in 0..count {
                let row = self.next_of(&mut kept.scan, true);
                let expected = held.pop_front();
                assert_eq!(row.as_ref(), expected.as_deref(), "seed {}: a scan that was kept", self.seed);
            }
            kept.held = Some(held);
            return self.kept.push(kept);
        }
        kept.scan.seek_again();
        for _ in 0..count {
            let mut fetched = Vec::new();
            let mut floor = Floor::Nowhere;
            let row = loop {
                match kept.scan.next_row() {
                    Ok(row) => break row.map(decoded),
                    Err(stop) => {
                        floor =
                            self.rest_of(&kept, &floor).first().map_or(Floor::End, |(key, _)| Floor::At(key.clone()));
                        fetched.push(self.wait_for(stop));
                        // Others were faster.
                        (0..self.pick(4)).for_each(|_| self.statement());
                        kept.scan.seek_again();
                    }
                }
            };
            let all = self.rest_of(&kept, &Floor::Nowhere);
            let expected = self.rest_of(&kept, &floor);
            let latest = expected.first().map_or(all.len(), |(key, _)| all.iter().position(|(k, _)| k == key).unwrap());
            let found = row
                .as_ref()
                .map_or(all.len(), |row| all.iter().position(|(_, other)| **other == *row).unwrap_or(usize::MAX));
            assert!(
                found <= latest && (!matches!(floor, Floor::Nowhere) || found == 0 || all.is_empty()),
                "seed {}: a scan that goes on: {row:?}, expected {expected:?}",
                self.seed
            );
            let index = self.models[&kept.space_id].indexes.get(&kept.index_id);
            let (Some(row), Some(index)) = (row, index) else {
                // At its end for good.
                return;
            };
            kept.last = Some(row.key(&index.order));
        }
        self.kept.push(kept);
    }

    /// What is left of a scan, from a key on.
    fn rest_of(&self, kept: &KeptScan, from: &Floor) -> Vec<(Key, Rc<Row>)> {
        let Some(index) = self.models[&kept.space_id].indexes.get(&kept.index_id) else { return Vec::new() };
        let rows = index.scan(kept.kind, &kept.prefix, kept.last.as_ref());
        let keyed = rows.into_iter().map(|row| (row.key(&index.order), row));
        let is_before = |key: &Key| match from {
            Floor::Nowhere => false,
            Floor::At(from) if kept.kind.is_reverse() => key > from,
            Floor::At(from) => key < from,
            Floor::End => true,
        };
        keyed.skip_while(|(key, _)| is_before(key)).collect()
    }

    pub(super) fn drop_kept(&mut self) {
        if !self.kept.is_empty() {
            let at = self.pick(self.kept.len() as u64) as usize;
            self.kept.swap_remove(at);
        }
    }

    /// Opens a view, or closes one.
    pub(super) fn keep_view(&mut self) {
        if self.views.len() >= 4 {
            let at = self.pick(self.views.len() as u64) as usize;
            self.views.swap_remove(at);
            return;
        }
        let space_id = SPACES[self.pick(3) as usize];
        let (view, model) = (self.space(space_id).view(), self.models[&space_id].clone());
        self.views.push(KeptView { view, space_id, model });
    }

    /// Reads what a space was: whatever has become of it, it is what it was when the view was opened.
    pub(super) fn read_view(&mut self) {
        if self.views.is_empty() {
            return;
        }
        let at = self.pick(self.views.len() as u64) as usize;
        let kept = self.views.swap_remove(at);
        let space = self.space(kept.space_id);
        let ids: Vec<u32> = kept.model.indexes.keys().copied().collect();
        let index_id = ids[self.pick(ids.len() as u64) as usize];
        let index = &kept.model.indexes[&index_id];
        let key = self.random_row().key(&index.own);
        if index.is_unique && !key.contains(&Value::Nil) {
            let expected = index.with_prefix(&key).next();
            let encoded = encode_key(&key);
            let found =
                self.until_ready(|_| Ok(space.get_in_view(&kept.view, IndexId(index_id), encoded.key())?.map(decoded)));
            assert_eq!(found.as_ref(), expected.map(|row| &**row), "seed {}: get {key:?} in a view", self.seed);
        }
        let (kind, prefix) = self.random_prefix(index);
        let encoded = encode_key(&prefix);
        let expected = index.scan(kind, &prefix, None);
        // Begun in the view, or before it was the reader's.
        let is_gone = !self.models[&kept.space_id].indexes.contains_key(&index_id);
        let mut scan = match is_gone || self.one_in(2) {
            true => space.scan_view(&kept.view, IndexId(index_id), kind, encoded.key()),
            false => {
                let mut scan = space.scan(IndexId(index_id), kind, encoded.key());
                scan.seek_in_view(&kept.view);
                scan
            }
        };
        for at in 0..1 + self.pick(20) as usize {
            let mut fetched = Vec::new();
            let row = loop {
                match scan.next_row() {
                    Ok(row) => break row.map(decoded),
                    Err(stop) => {
                        fetched.push(self.wait_for(stop));
                        (0..self.pick(4)).for_each(|_| self.statement());
                        if self.one_in(2) {
                            scan.seek_in_view(&kept.view);
                        }
                    }
                }
            };
            let expected = expected.get(at).map(|row| &**row);
            let seed = self.seed;
            assert_eq!(row.as_ref(), expected, "seed {seed}: {kind:?} {prefix:?} of {index_id} in a view");
            if row.is_none() {
                break;
            }
        }
        self.views.push(kept);
    }

    /// Every index, row by row.
    pub(super) fn compare_all(&mut self) {
        for space_id in SPACES {
            let indexes: Vec<u32> = self.models[&space_id].indexes.keys().copied().collect();
            for index_id in indexes {
                let kind = if self.one_in(2) { IteratorKind::All } else { IteratorKind::Le };
                let expected = self.models[&space_id].indexes[&index_id].scan(kind, &[], None);
                let mut scan = self.space(space_id).scan(IndexId(index_id), kind, encode_key(&[]).key());
                for row in expected {
                    let found = self.next_of(&mut scan, true);
                    assert_eq!(found.as_ref(), Some(&*row), "seed {}: all of {space_id}.{index_id}", self.seed);
                }
                assert_eq!(self.next_of(&mut scan, true), None, "seed {}: all of {space_id}.{index_id}", self.seed);
            }
        }
    }
}
