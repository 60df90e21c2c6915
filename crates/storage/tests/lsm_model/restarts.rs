//! The end of a life and the begin of another, from the files and the log.

use super::{DIR, Logged, SPACES, World, addition, decoded, encode_key, index_of};
use crate::rows::{COUNT, Row, Value, parts};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use storage::lsm::{BuildStop, FileRole, LsmEngine, LsmEnvironment, LsmSpace, check_directory};
use tuple::{Format, IndexId, Lsn, SpaceId};

impl World {
    /// Ends a life and begins another; in between the directory is looked through.
    pub(super) fn restart(&mut self) {
        self.roll_back();
        if self.one_in(2) {
            self.come_to_rest();
        }
        self.close();
        for report in check_directory(&self.files, Path::new(DIR)).unwrap() {
            assert!(report.damage.is_empty(), "seed {}: {report:?}", self.seed);
        }
        self.open();
        self.compare_all();
    }

    /// Without readers and with everything dumped no memory is taken, and no file is left over.
    fn come_to_rest(&mut self) {
        self.kept.clear();
        self.views.clear();
        self.building = None;
        let end = self.shared.appended.get();
        self.set_durable(end);
        self.engine().begin_checkpoint(Lsn(end));
        let is_at_rest = |world: &World| {
            let statistics = world.engine().statistics();
            let reports = check_directory(&world.files, Path::new(DIR)).unwrap();
            world.engine().is_dumped(Lsn(end))
                && statistics.memtable_bytes == 0
                && reports.iter().all(|report| report.role != FileRole::Orphan)
        };
        for turn in 0.. {
            self.clock.advance(10_000_000);
            self.engine().poll(Lsn(end), Lsn(end));
            if turn % 50 == 0 && is_at_rest(self) {
                break;
            }
            if self.plan.is_threaded || self.plan.is_cold {
                // Other threads dump and merge, or read.
                self.notifier.wait(Duration::from_millis(1));
                self.notifier.clear();
            }
            assert!(
                turn < 3_000,
                "seed {}: no rest: {:?} {:?} {:?}",
                self.seed,
                self.engine().statistics(),
                self.engine().failure().map(|error| error.to_string()),
                check_directory(&self.files, Path::new(DIR)).unwrap()
            );
        }
    }

    pub(super) fn close(&mut self) {
        self.kept.clear();
        self.views.clear();
        self.building = None;
        self.checkpoint = None;
        self.set_durable(self.shared.appended.get());
        if let Some(engine) = self.shared.engine.take() {
            let statistics = engine.statistics();
            self.dumps += statistics.counts.dumps;
            self.compactions += statistics.counts.compactions;
            engine.close();
        }
        self.spaces.clear();
    }

    pub(super) fn open(&mut self) {
        let clock = Arc::clone(&self.clock);
        let notifier = Arc::clone(&self.notifier);
        let environment =
            LsmEnvironment { files: Arc::new(self.files.clone()), clock, wake: Arc::new(move || notifier.notify()) };
        let engine = LsmEngine::open(self.config.clone(), environment).unwrap_or_else(|error| panic!("{error}"));
        *self.shared.engine.borrow_mut() = Some(Rc::clone(&engine));
        for space_id in SPACES {
            let format = Format::new(space_id, Vec::new(), 0, &parts()).unwrap();
            self.spaces.insert(space_id, LsmSpace::new(&engine, SpaceId(space_id), format));
        }
        let mut unbuilt = Vec::new();
        let (lsn, indexes) = self.snapshot.clone();
        for (space_id, index_id) in indexes {
            self.replay_create(space_id, index_id, lsn, false, &mut unbuilt);
        }
        for (lsn, logged) in self.log.clone() {
            self.replay(lsn, &logged, &mut unbuilt);
        }
        for (space_id, index_id) in unbuilt {
            self.build_at_once(space_id, index_id);
        }
        engine.forget_unclaimed(false);
        if self.plan.is_cold {
            engine.serve(Arc::clone(&self.notifier)).unwrap();
        }
    }

    fn replay_create(&self, space_id: u32, index_id: u32, lsn: i64, is_log: bool, unbuilt: &mut Vec<(u32, u32)>) {
        let space = &self.spaces[&space_id];
        let with_primary = (index_id != 0).then(|| space.primary_dumped_lsn().unwrap_or(Lsn(-1)));
        let state = self.engine().claim(SpaceId(space_id), IndexId(index_id), Lsn(lsn), is_log, with_primary);
        unbuilt.retain(|other| *other != (space_id, index_id));
        if state.is_none() && index_id != 0 && !space.is_empty() {
            unbuilt.push((space_id, index_id));
        }
        space.create_index(Self::def(space_id, index_id), self.options, state).unwrap();
        space.set_created(Some(IndexId(index_id)), Lsn(lsn));
        space.begin_with_primary();
    }

    fn replay(&self, lsn: i64, logged: &Logged, unbuilt: &mut Vec<(u32, u32)>) {
        let engine = self.engine();
        match *logged {
            Logged::Create(space_id, index_id) => self.replay_create(space_id, index_id, lsn, true, unbuilt),
            Logged::Drop(space_id, index_id) => {
                unbuilt.retain(|other| *other != (space_id, index_id));
                let (_, trees) = self.spaces[&space_id].drop_index(IndexId(index_id)).unwrap();
                self.spaces[&space_id].discard(trees, Lsn(0));
            }
            Logged::Truncate(space_id) => {
                let space = &self.spaces[&space_id];
                let dumped_lsn = Cell::new(None);
                let claim = |index_id| {
                    let wanted = dumped_lsn.get().or((index_id != 0).then_some(Lsn(-1)));
                    let state = engine.claim(SpaceId(space_id), index_id, Lsn(lsn), true, wanted)?;
                    dumped_lsn.set(Some(state.dumped_lsn));
                    Some(state)
                };
                let old = space.truncate(claim).unwrap();
                space.set_created(None, Lsn(lsn));
                space.begin_with_primary();
                space.discard(old, Lsn(0));
            }
            Logged::Put(space_id, _) | Logged::Delete(space_id, _) | Logged::Add(space_id, ..)
                if Lsn(lsn) > self.spaces[&space_id].dumped_lsn() =>
            {
                self.replay_statement(space_id, logged);
                if engine.is_full() {
                    engine.dump_all(Lsn(lsn)).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
                }
            }
            _ => {}
        }
    }

    fn replay_statement(&self, space_id: u32, logged: &Logged) {
        let space = &self.spaces[&space_id];
        let (Logged::Put(_, row) | Logged::Delete(_, row) | Logged::Add(_, row, _)) = logged else { return };
        let encoded = row.encode();
        if space.has_one_index() {
            match logged {
                Logged::Put(..) => _ = space.put(None, Some(&encoded)),
                Logged::Delete(..) => {
                    space.delete_blind(encode_key(&row.key(index_of(space_id, 0).0)).key());
                }
                Logged::Add(_, _, number) if space.takes_blind_upsert(&encoded) => {
                    space.upsert_blind(&encoded, &addition(*number, 0), 0);
                }
                _ => self.replay_seen(space, row, logged),
            }
            return;
        }
        self.replay_seen(space, row, logged);
    }

    fn replay_seen(&self, space: &LsmSpace, row: &Row, logged: &Logged) {
        let old = match space.get_same_key(&row.encode()) {
            Ok(old) => old.map(decoded),
            Err(_) => panic!("nobody waits during a start"),
        };
        let new = match (logged, &old) {
            (Logged::Delete(..), _) => None,
            (Logged::Add(_, _, number), Some(old)) => {
                let mut changed = old.clone();
                changed.fields[COUNT] = Value::Number(old.count() + number);
                Some(changed)
            }
            _ => Some(row.clone()),
        };
        if old.is_some() || new.is_some() {
            space.put(old.map(|row| row.encode()).as_deref(), new.map(|row| row.encode()).as_deref());
        }
    }

    fn build_at_once(&self, space_id: u32, index_id: u32) {
        let space = &self.spaces[&space_id];
        let format = Rc::new(Format::new(space_id, Vec::new(), 0, &parts()).unwrap());
        let mut build = space.begin_build(format, vec![(Self::def(space_id, index_id), self.options)]).unwrap();
        loop {
            match build.build_some(100) {
                Ok(false) => break,
                Ok(true) => {}
                Err(BuildStop::Busy) => {
                    runtime::pause(100_000);
                    let end = self.shared.appended.get();
                    self.engine().poll(Lsn(end), Lsn(end));
                }
                Err(_) => panic!("seed {}: an index that was there cannot be built", self.seed),
            }
        }
        let created_lsn = space.created_lsn(IndexId(index_id));
        for (_, trees) in build.end() {
            trees.into_iter().for_each(|trees| space.discard(trees, Lsn(0)));
        }
        space.set_created(Some(IndexId(index_id)), created_lsn);
        space.begin_with_primary();
    }
}
