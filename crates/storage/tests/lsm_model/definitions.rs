//! Indexes that come and go on filled spaces, and spaces that are emptied.

use super::{Logged, SPACES, World, first_indexes, index_of};
use crate::rows::{IndexModel, key_def, parts};
use std::rc::Rc;
use storage::lsm::{BuildStop, DiskBuild};
use storage::{IndexDef, IndexKind, KeySource};
use tuple::{Format, IndexId, Lsn};

pub(super) struct Building {
    pub(super) build: DiskBuild,
    pub(super) space_id: u32,
    pub(super) index_id: u32,
    pub(super) index: IndexModel,
    pub(super) was_forbidden: bool,
}

impl World {
    pub(super) fn def(space_id: u32, index_id: u32) -> IndexDef {
        let (own, is_unique) = index_of(space_id, index_id);
        let (primary, _) = index_of(space_id, 0);
        let key_def = key_def(own);
        let order = IndexModel::new(own, primary, is_unique).order;
        IndexDef {
            id: IndexId(index_id),
            kind: IndexKind::Tree,
            is_unique,
            key_def,
            compare_def: crate::rows::key_def(&order),
            source: KeySource::Fields,
        }
    }

    fn index_model(&self, space_id: u32, index_id: u32) -> IndexModel {
        let (own, is_unique) = index_of(space_id, index_id);
        let mut index = IndexModel::new(own, index_of(space_id, 0).0, is_unique);
        if let Some(primary) = self.models[&space_id].indexes.get(&0) {
            index.rows = primary.rows.values().map(|row| (row.key(&index.order), Rc::clone(row))).collect();
        }
        index
    }

    pub(super) fn add_index_model(&mut self, space_id: u32, index_id: u32) {
        let index = self.index_model(space_id, index_id);
        self.models.get_mut(&space_id).unwrap().indexes.insert(index_id, index);
    }

    pub(super) fn begin_build(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        let ids = first_indexes(space_id).1;
        let index_id = ids.start + self.pick(u64::from(ids.end - ids.start)) as u32;
        if self.building.is_some() || self.models[&space_id].indexes.contains_key(&index_id) {
            return;
        }
        let index = self.index_model(space_id, index_id);
        let format = Rc::new(Format::new(space_id, Vec::new(), 0, &parts()).unwrap());
        let build = self.space(space_id).begin_build(format, vec![(Self::def(space_id, index_id), self.options)]);
        let was_forbidden = index.is_unique && index.has_duplicates();
        self.building = Some(Building { build: build.unwrap(), space_id, index_id, index, was_forbidden });
    }

    pub(super) fn go_on_building(&mut self) {
        if self.one_in(300) {
            // The statement is cancelled.
            self.building = None;
        }
        let max = 1 + self.pick(40) as usize;
        let Some(mut building) = self.building.take() else { return };
        match building.build.build_some(max) {
            Ok(true) | Err(BuildStop::Busy) => self.building = Some(building),
            Ok(false) => {
                assert!(!building.index.is_unique || !building.index.has_duplicates(), "seed {}: built", self.seed);
                let Building { build, space_id, index_id, index, .. } = building;
                for (_, trees) in build.end() {
                    assert!(trees.is_none());
                }
                let lsn = self.append(Logged::Create(space_id, index_id));
                let space = self.space(space_id);
                space.set_created(Some(IndexId(index_id)), Lsn(lsn));
                self.models.get_mut(&space_id).unwrap().indexes.insert(index_id, index);
                if !space.is_empty() {
                    self.engine().seal(&[space], Lsn(lsn));
                }
            }
            Err(BuildStop::Stop(stop)) => {
                drop(self.wait_for(stop));
                self.building = Some(building);
            }
            Err(BuildStop::Duplicate { index_id }) => {
                assert!(building.was_forbidden && index_id == building.index_id, "seed {}: not built", self.seed);
            }
            Err(BuildStop::Format(error)) => panic!("seed {}: {error:?}", self.seed),
        }
    }

    pub(super) fn drop_index(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        let ids = first_indexes(space_id).1;
        let is_building = self.building.as_ref().is_some_and(|building| building.space_id == space_id);
        let there = ids.into_iter().find(|id| self.models[&space_id].indexes.contains_key(id));
        let Some(index_id) = there.filter(|_| !is_building) else { return };
        let space = self.space(space_id);
        let (def, trees) = space.drop_index(IndexId(index_id)).unwrap();
        if self.one_in(3) {
            // The statement fails.
            assert!(space.restore_index(&def, trees).is_none());
            return;
        }
        let lsn = self.append(Logged::Drop(space_id, index_id));
        self.detached.push((lsn, space_id, trees));
        self.models.get_mut(&space_id).unwrap().indexes.remove(&index_id);
    }

    pub(super) fn truncate(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        if self.building.as_ref().is_some_and(|building| building.space_id == space_id) {
            return;
        }
        let space = self.space(space_id);
        let old = space.truncate(|_| None).unwrap();
        if self.one_in(3) {
            // The statement fails.
            let empty = space.exchange(old);
            return space.discard(empty, Lsn(0));
        }
        let lsn = self.append(Logged::Truncate(space_id));
        space.set_created(None, Lsn(lsn));
        self.detached.push((lsn, space_id, old));
        self.models.get_mut(&space_id).unwrap().indexes.values_mut().for_each(|index| index.rows.clear());
    }
}
