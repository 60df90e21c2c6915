//! Changes of the schema of spaces on disk.
//!
//! An index over rows is built ahead of its statement, as in memory (`build.rs`); the statement then puts it in its place. During a start an index
//! gets the tree that the manifest knows for it, or, if there is none, an empty one which the log fills.

use super::build::{Work, being_modified};
use crate::catalog::Space;
use crate::database::Database;
use crate::disk::Halt;
use crate::error::{Error, ErrorCode, Result};
use crate::options::PAGE_SIZE_MAX;
use crate::session::{Context, Origin};
use crate::time_share::{TimeShare, give_turn};
use crate::txn::{Effect, Placed, Turn};
use runtime::fiber;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use storage::lsm::{BuildStop, DetachedTrees, DiskBuild, LsmEngine, LsmSpace, Stop, TreeOptions, TreeState};
use storage::{IndexDef, IndexKind};
use tuple::msgpack::Reader;
use tuple::{Format, IndexId, KeyDef, KeyPart, Lsn, SpaceId, Tuple};

/// Rows between two looks at the clock.
const STEP_ROWS: usize = 32;
/// No tree of the manifest is there.
const NEVER_DUMPED: Lsn = Lsn(-1);
/// Interval at which a build asks whether its run is written.
const BUSY_WAIT_NS: u64 = 1_000_000;

/// Indexes that are complete and wait for the statement that puts them in their places.
pub(super) struct ReadyIndexes {
    /// The row of the statement.
    row: Tuple,
    build: DiskBuild,
}

/// Trees that were taken out of their places, with the definitions of their indexes.
pub(super) type Detached = Rc<RefCell<Vec<(IndexDef, Option<DetachedTrees>)>>>;

/// The disk half of a new space.
pub(super) fn open_space(database: &Database, id: SpaceId, format: &Format) -> Result<Rc<LsmSpace>> {
    let engine = database
        .disk_engine()
        .ok_or_else(|| Error::new(ErrorCode::Unsupported, &[&"a database without files", &"the vinyl engine"]))?;
    Ok(LsmSpace::new(&engine, id, format.clone()))
}

/// Options of an index that says nothing of them.
pub(super) fn default_options(database: &Database) -> TreeOptions {
    let config = database.config.borrow();
    TreeOptions {
        page_size: config.vinyl_page_size as usize,
        range_size: config.vinyl_range_size,
        run_count_per_level: config.vinyl_run_count_per_level as usize,
        run_size_ratio: config.vinyl_run_size_ratio,
        bloom_fpr: config.vinyl_bloom_fpr,
    }
}

/// Reads one option of an index. Errors: in Tarantool's words.
pub(super) fn read_option(
    options: &mut TreeOptions,
    name: &str,
    value: &[u8],
) -> std::result::Result<(), &'static str> {
    // What is less than nothing is refused as nothing is.
    let integer = || Reader::new(value).read_i128().ok().map(|number| u64::try_from(number).unwrap_or(0));
    let number =
        || Reader::new(value).read_double().ok().or_else(|| Reader::new(value).read_int().ok().map(|n| n as f64));
    match name {
        "page_size" => options.page_size = integer().ok_or("'page_size' must be integer")? as usize,
        "range_size" => options.range_size = integer().ok_or("'range_size' must be integer")?,
        "run_count_per_level" => {
            options.run_count_per_level = integer().ok_or("'run_count_per_level' must be integer")? as usize;
        }
        "run_size_ratio" => options.run_size_ratio = number().ok_or("'run_size_ratio' must be number")?,
        _ => options.bloom_fpr = number().ok_or("'bloom_fpr' must be number")?,
    }
    Ok(())
}

/// Errors: what is wrong with the options of an index, in Tarantool's words.
pub(super) fn check_options(options: &TreeOptions) -> std::result::Result<(), String> {
    let TreeOptions { page_size, range_size, run_count_per_level, run_size_ratio, bloom_fpr } = *options;
    if page_size == 0 || range_size > 0 && page_size as u64 > range_size {
        return Err("page_size must be greater than 0 and less than or equal to range_size".to_string());
    }
    if page_size as u64 > PAGE_SIZE_MAX {
        return Err(format!("page_size must be at most {PAGE_SIZE_MAX}"));
    }
    if run_count_per_level == 0 {
        return Err("run_count_per_level must be greater than 0".to_string());
    }
    if run_size_ratio.is_nan() || run_size_ratio <= 1.0 {
        return Err("run_size_ratio must be greater than 1".to_string());
    }
    if !(bloom_fpr > 0.0 && bloom_fpr <= 1.0) {
        return Err("bloom_fpr must be greater than 0 and less than or equal to 1".to_string());
    }
    Ok(())
}

/// Runs of an index are written and merged like this from now on.
pub(super) fn set_options(space: &Space, index_id: IndexId, options: TreeOptions) {
    if let Some(disk) = space.disk() {
        disk.set_options(index_id, options);
    }
}

/// Errors: `IndexType` if the engine has no such index, `ModifyIndex` if its keys have no order as bytes.
pub(super) fn check_index(space: &Space, name: &str, kind: IndexKind, parts: &[KeyPart]) -> Result<()> {
    if kind != IndexKind::Tree {
        return Err(Error::new(ErrorCode::IndexType, &[&name, &space.name()]));
    }
    if parts.is_empty() {
        return Ok(());
    }
    KeyDef::new(parts.to_vec()).supports_ordered().map_err(|part| {
        let why = format!("field type '{}' is not supported", part.field_type.name());
        Error::new(ErrorCode::ModifyIndex, &[&name, &space.name(), &why])
    })
}

fn read_error(space: &Space, error: impl std::fmt::Display) -> Error {
    Error::system(error).with("space", space.name())
}

/// Makes the trees of new indexes, or takes those that were built. What is told their position.
pub(super) fn create_index(
    database: &Database,
    origin: Origin,
    space: &Rc<Space>,
    work: &Work,
    options: TreeOptions,
    row: &Tuple,
) -> Result<Option<Placed>> {
    let Some(disk) = space.disk() else { return Ok(None) };
    let Some(engine) = database.disk_engine() else { return Ok(None) };
    if let Some(ready) = take_ready(database, disk, row) {
        let replaced = ready.build.end();
        assert!(replaced.iter().all(|(_, trees)| trees.is_none()), "a new index takes nobody's place");
        return Ok(placing(space, None));
    }
    for def in &work.defs {
        if !origin.is_replay() {
            if def.id != 0 && !disk.is_empty() {
                return Err(Error::new(ErrorCode::MultistatementTransaction, &[&work.what]));
            }
            disk.create_index(def.clone(), options, None).map_err(|error| read_error(space, error))?;
            continue;
        }
        let lsn = database.replayed_lsn();
        let state = claim(&engine, disk, def.id, lsn, database.is_replaying_log());
        forget_unbuilt(database, space, def.id);
        // Its rows were never in runs of its own: they are looked for when all is read.
        let is_unbuilt = state.is_none() && def.id != 0 && !disk.is_empty();
        disk.create_index(def.clone(), options, state).map_err(|error| read_error(space, error))?;
        if is_unbuilt {
            disk.set_incomplete(def.id);
            database.disk.unbuilt.borrow_mut().push((Rc::clone(space), def.clone(), options));
        }
        disk.set_created(Some(def.id), lsn);
        disk.begin_with_primary();
    }
    Ok(placing(space, None))
}

/// The tree that the manifest has for an index.
fn claim(engine: &LsmEngine, disk: &LsmSpace, index_id: IndexId, lsn: Lsn, is_made_then: bool) -> Option<TreeState> {
    let with_primary = (index_id != 0).then(|| disk.primary_dumped_lsn().unwrap_or(NEVER_DUMPED));
    engine.claim(disk.id(), index_id, lsn, is_made_then, with_primary)
}

/// What was to be built for an index of this number is out of date.
fn forget_unbuilt(database: &Database, space: &Rc<Space>, index_id: IndexId) {
    database.disk.unbuilt.borrow_mut().retain(|(other, def, _)| !Rc::ptr_eq(other, space) || def.id != index_id);
}

/// Tells new trees their position, and has indexes that were built recorded soon.
fn placing(space: &Rc<Space>, index_id: Option<IndexId>) -> Option<Placed> {
    let space = Rc::clone(space);
    Some(Box::new(move |database, lsn| {
        if let Some(disk) = space.disk() {
            disk.set_created(index_id, Lsn(lsn));
            let mut seal_soon = database.disk.seal_soon.borrow_mut();
            // Each index of a transaction says so, and a space is sealed once.
            if !disk.is_empty() && !seal_soon.iter().any(|other| Rc::ptr_eq(other, disk)) {
                seal_soon.push(Rc::clone(disk));
            }
        }
    }))
}

/// Takes an index out of its place.
pub(super) fn detach_index(space: &Space, index_id: IndexId) -> Detached {
    let taken = space.disk().and_then(|disk| disk.drop_index(index_id));
    Rc::new(RefCell::new(taken.into_iter().map(|(def, trees)| (def, Some(trees))).collect()))
}

/// Puts trees in the places of those that have them, which are detached then: done twice, it has changed nothing.
pub(super) fn exchange_indexes(space: &Space, detached: &Detached) {
    let Some(disk) = space.disk() else { return };
    let others = detached.take().into_iter().filter_map(|(def, trees)| {
        let there = disk.index_defs().iter().find(|other| other.id == def.id).cloned();
        match trees {
            Some(trees) => {
                let replaced = disk.restore_index(&def, trees);
                Some((there.unwrap_or(def), replaced))
            }
            None => disk.drop_index(def.id).map(|(def, trees)| (def, Some(trees))),
        }
    });
    detached.replace(others.collect());
}

/// Trees are out of use for good.
pub(super) fn discard(space: &Space, detached: &Detached) {
    let Some(disk) = space.disk() else { return };
    for (_, trees) in detached.take() {
        trees.into_iter().for_each(|trees| disk.discard(trees, Lsn(0)));
    }
}

/// Puts altered indexes in the places of the old ones, which are returned.
pub(super) fn alter_index(
    database: &Database,
    origin: Origin,
    space: &Rc<Space>,
    work: &Work,
    options: TreeOptions,
    row: &Tuple,
) -> Result<(Detached, Option<Placed>)> {
    let nothing = Detached::default();
    let Some(disk) = space.disk() else { return Ok((nothing, None)) };
    if let Some(ready) = take_ready(database, disk, row) {
        return Ok((Rc::new(RefCell::new(ready.build.end())), placing(space, None)));
    }
    if !needs_rebuild(disk, work) {
        return Ok((nothing, None));
    }
    let is_loading = origin.is_replay();
    check_alter(space, disk, work)?;
    if !disk.is_empty() && !is_loading {
        return Err(Error::new(ErrorCode::MultistatementTransaction, &[&work.what]));
    }
    let mut replaced = Vec::new();
    for def in &work.defs {
        let old = disk.drop_index(def.id);
        let lsn = database.replayed_lsn();
        let claimed = database.disk_engine().filter(|_| is_loading);
        let state = claimed.and_then(|engine| claim(&engine, disk, def.id, lsn, true));
        forget_unbuilt(database, space, def.id);
        let is_unbuilt = is_loading && state.is_none() && !disk.is_empty();
        disk.create_index(def.clone(), options, state).map_err(|error| read_error(space, error))?;
        if is_unbuilt {
            disk.set_incomplete(def.id);
            database.disk.unbuilt.borrow_mut().push((Rc::clone(space), def.clone(), options));
        }
        if is_loading {
            disk.set_created(Some(def.id), lsn);
            disk.begin_with_primary();
        }
        replaced.extend(old.map(|(def, trees)| (def, Some(trees))));
    }
    Ok((Rc::new(RefCell::new(replaced)), placing(space, None)))
}

/// True if entries of an altered index are other ones than before.
fn needs_rebuild(disk: &Rc<LsmSpace>, work: &Work) -> bool {
    let old = disk.index_defs();
    work.defs.iter().any(|def| {
        old.iter()
            .find(|old| old.id == def.id)
            .is_none_or(|old| old.is_unique != def.is_unique || !old.key_def.has_parts_of(&def.key_def))
    })
}

/// Errors: `Unsupported` if the primary index of a space with rows would be another.
fn check_alter(space: &Space, disk: &Rc<LsmSpace>, work: &Work) -> Result<()> {
    let is_primary = work.defs.iter().any(|def| def.id == 0);
    if is_primary && !disk.is_empty() && !space.is_dropped.get() {
        return Err(Error::new(
            ErrorCode::Unsupported,
            &[&"Vinyl", &"rebuilding the primary index of a non-empty space"],
        ));
    }
    Ok(())
}

/// Errors: `MultistatementTransaction` if a space has rows that nobody has looked at for the format that `row` of `_space` gives it, which takes waiting, and so a
/// transaction that has done nothing before.
pub(super) fn check_format(
    database: &Database,
    origin: Origin,
    space: &Space,
    format: &Format,
    row: &Tuple,
) -> Result<()> {
    let Some(disk) = space.disk() else { return Ok(()) };
    let is_checked = database.ready.checked_format.take().is_some_and(|checked| checked.data() == row.data());
    if is_checked || origin.is_replay() || disk.is_empty() || format.accepts_all_of(&space.format()) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::MultistatementTransaction, &[&"space format check"]))
}

fn take_ready(database: &Database, disk: &Rc<LsmSpace>, row: &Tuple) -> Option<ReadyIndexes> {
    let mut ready = database.ready.indexes.borrow_mut();
    ready.take_if(|ready| ready.row.data() == row.data() && ready.build.is_of(disk))
}

/// Removes all rows. During a start trees may come back that were made by this very row.
pub(super) fn truncate(database: &Database, origin: Origin, space: &Rc<Space>) -> Result<Option<Effect>> {
    let Some(disk) = space.disk() else { return Ok(None) };
    let is_loading = origin.is_replay();
    if is_loading && !database.is_replaying_log() {
        // The trees of a snapshot are those behind the truncation.
        return Ok(None);
    }
    let (engine, lsn) = (database.disk_engine().filter(|_| is_loading), database.replayed_lsn());
    // The primary comes first; the others must be where it is.
    let dumped_lsn = Cell::new(None);
    let state = |index_id| {
        let wanted = dumped_lsn.get().or((index_id != 0).then_some(NEVER_DUMPED));
        let state = engine.as_ref()?.claim(space.id, index_id, lsn, true, wanted)?;
        dumped_lsn.set(Some(state.dumped_lsn));
        Some(state)
    };
    let old = disk.truncate(state).map_err(|error| read_error(space, error))?;
    if is_loading {
        disk.set_created(None, lsn);
        disk.begin_with_primary();
    }
    let taken = Rc::new(RefCell::new(Some(old)));
    let (kept, owner, disk_there) = (Rc::clone(&taken), Rc::clone(disk), Rc::clone(disk));
    Ok(Some(
        Effect::new(move |_, turn| {
            let mut other = taken.borrow_mut();
            match turn {
                Turn::Back | Turn::Forth => *other = other.take().map(|trees| disk_there.exchange(trees)),
                Turn::GiveUp => other.take().into_iter().for_each(|trees| disk_there.discard(trees, Lsn(0))),
            }
        })
        .and_finish(move |_| {
            if let Some(trees) = kept.borrow_mut().take() {
                owner.discard(trees, Lsn(0));
            }
        })
        .and_placed(placing(space, None)),
    ))
}

impl Database {
    /// Does the long part of a change of a space on disk: builds indexes, or looks whether the rows fit a format. Yields.
    ///
    /// Errors: as the statement's, which then need not be tried.
    pub(super) fn build_on_disk(&self, context: &Context, work: Work, row: Tuple) -> Result<()> {
        let Work { space, format, defs, name, .. } = &work;
        let Some(disk) = space.disk() else { return Ok(()) };
        if disk.is_empty() {
            return Ok(());
        }
        if disk.is_building() {
            return Err(being_modified(space));
        }
        let is_index = !defs.is_empty();
        if !is_index && format.accepts_all_of(&space.format()) {
            return Ok(());
        }
        if is_index {
            let is_new = defs.iter().all(|def| !disk.index_defs().iter().any(|old| old.id == def.id));
            if !is_new && !needs_rebuild(disk, &work) {
                return Ok(());
            }
            check_alter(space, disk, &work)?;
        }
        let options = super::index::parse_index(self, context.origin, row.data())
            .map_or_else(|_| default_options(self), |parsed| parsed.info.tree);
        let defs = defs.iter().map(|def| (def.clone(), options)).collect();
        let mut build = disk.begin_build(Rc::clone(format), defs).map_err(|error| read_error(space, error))?;
        // What a suspended transaction has changed before does not tell the new indexes.
        self.doom_readers_of_space(space.id);
        let built = self.apart(context, || self.build_in_slices(context, space, &mut build, name));
        built.inspect_err(|error| tracing::info!("a change of space '{}' is given up: {error}", space.name()))?;
        if is_index {
            *self.ready.indexes.borrow_mut() = Some(ReadyIndexes { row, build });
        } else {
            *self.ready.checked_format.borrow_mut() = Some(row);
        }
        Ok(())
    }

    fn build_in_slices(&self, context: &Context, space: &Rc<Space>, build: &mut DiskBuild, name: &str) -> Result<()> {
        let clock = &*self.environment.clock;
        let share = TimeShare::default();
        let mut _fetched = None;
        loop {
            let step = || build.build_some(STEP_ROWS.min(self.slice_rows()));
            match share.run(clock, self.slice_rows() / STEP_ROWS.min(self.slice_rows()), step) {
                Ok(false) => return Ok(()),
                Ok(true) => {
                    // Not before the next turn of the loop.
                    self.pause_build(context, 1)?;
                }
                Err(BuildStop::Busy) => self.pause_build(context, BUSY_WAIT_NS)?,
                Err(BuildStop::Stop(stop)) => {
                    let mut stop = Some(stop);
                    _fetched = Some(self.wait_for_stop(context, space, &mut stop)?);
                }
                Err(BuildStop::Duplicate { .. }) => {
                    return Err(Error::new(ErrorCode::TupleFound, &[&name, &space.name()])
                        .with("space", space.name())
                        .with("index", name));
                }
                Err(BuildStop::Format(error)) => return Err(self.tuple_error(error, space)),
            }
            self.check_writable_or_loading()?;
        }
    }

    fn pause_build(&self, context: &Context, ns: u64) -> Result<()> {
        if fiber::current().is_none() {
            runtime::pause(ns);
            if let Some(engine) = self.disk_engine() {
                // Rows that were read of the log are durable.
                let lsn = self.replayed_lsn();
                engine.poll(lsn, lsn);
            }
            return Ok(());
        }
        give_turn(context, ns)
    }

    fn wait_for_stop(
        &self,
        context: &Context,
        space: &Space,
        stop: &mut Option<Stop>,
    ) -> Result<storage::lsm::Fetched> {
        match stop.take().map(Halt::from) {
            Some(Halt::Wait(need)) => self.wait_for(context, need),
            Some(Halt::Refused(error)) => Err(error.with("space", space.name())),
            Some(Halt::Unreadable(error)) => Err(self.read_error(&error)),
            None => Err(Error::system("nothing to wait for")),
        }
    }

    fn check_writable_or_loading(&self) -> Result<()> {
        if self.is_loading() { Ok(()) } else { self.check_writable() }
    }

    /// Fills indexes whose entries were in no run when the server stopped. For the end of a start. Blocks.
    pub(crate) fn build_unbuilt(&self, context: &Context) -> Result<()> {
        for (space, def, options) in self.disk.unbuilt.take() {
            let Some(disk) = space.disk() else { continue };
            let is_there = disk.index_defs().iter().any(|other| other.id == def.id);
            if space.is_dropped.get() || !is_there {
                continue;
            }
            let (name, def_id) = (space.index_name(def.id), def.id);
            tracing::info!("index '{name}' of space '{}' is built anew: it was not on disk yet", space.name());
            let mut build =
                disk.begin_build(space.format(), vec![(def, options)]).map_err(|error| read_error(&space, error))?;
            self.build_in_slices(context, &space, &mut build, &name)?;
            let created_lsn = disk.created_lsn(def_id);
            for (_, trees) in build.end() {
                trees.into_iter().for_each(|trees| disk.discard(trees, Lsn(0)));
            }
            disk.set_created(Some(def_id), created_lsn);
            disk.begin_with_primary();
        }
        Ok(())
    }
}
