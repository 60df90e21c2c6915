//! Reads of rows: one by a key, those of a scan, how many there are.
//!
//! What a read has seen is noted in its context: its answer waits until that is durable, and an open transaction depends on it.

use crate::access::Privileges;
use crate::catalog::{Space, SpaceKind};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use crate::statement::no_such_index;
use std::rc::Rc;
use storage::{IndexKind, IteratorKind, Prefetch};
use tuple::{Tuple, msgpack};

/// A key: its parts one after the other and their number.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Encoded parts without the array's header.
    pub parts: &'a [u8],
    /// How many.
    pub part_count: u32,
}

impl<'a> Key<'a> {
    /// No parts: everything.
    pub const EMPTY: Key<'static> = Key { parts: &[], part_count: 0 };

    /// Reads a key from an encoded array. Errors: 22 if it is none.
    pub fn decode(array: &'a [u8]) -> Result<Self> {
        let mut reader = msgpack::Reader::new(array);
        match reader.read_array() {
            Ok(part_count) => Ok(Key { parts: reader.rest(), part_count }),
            Err(_) => Err(Error::new(ErrorCode::TupleNotArray, &[])),
        }
    }
}

impl Database {
    pub(crate) fn check_exact_key(&self, space: &Space, index_id: u32, key: Key<'_>) -> Result<()> {
        let store = space.store.borrow();
        let Some(def) = store.index_def(index_id) else {
            return Err(no_such_index(space, index_id));
        };
        if !def.is_unique {
            return Err(Error::new(ErrorCode::MoreThanOneTuple, &[]));
        }
        let expected = def.key_def.part_count() as u32;
        if key.part_count != expected {
            return Err(Error::new(ErrorCode::ExactMatch, &[&expected, &key.part_count])
                .with("space", space.name())
                .with("index", space.index_name(index_id)));
        }
        let refused = |error| self.key_error(error, space, index_id);
        def.key_def.validate_key(key.parts, key.part_count, false).map_err(refused)?;
        // Many rows may have a nil there: no row is named by it.
        match def.key_def.first_nil_of(key.parts) {
            Some((part, expected)) => Err(refused(tuple::KeyError::PartType { part, expected })),
            None => Ok(()),
        }
    }

    /// Checks that a scan makes sense. Errors: 35, 31, 18, 112, 136.
    pub fn check_scan(&self, space: &Space, index_id: u32, kind: IteratorKind, key: Key<'_>) -> Result<()> {
        let store = space.store.borrow();
        let Some(def) = store.index_def(index_id) else {
            return Err(no_such_index(space, index_id));
        };
        let unsupported = |what: &str| {
            // Of a view, what it is a view of.
            let base = match space.kind {
                SpaceKind::View { base } => self.space(base).ok(),
                _ => None,
            };
            let (name, engine) = base.map_or_else(
                || (space.name(), space.def().engine.clone()),
                |base| (base.name(), base.def().engine.clone()),
            );
            let type_name = if def.kind == IndexKind::Tree { "TREE" } else { "HASH" };
            Error::new(
                ErrorCode::UnsupportedIndexFeature,
                &[&space.index_name(index_id), &type_name, &name, &engine, &what],
            )
        };
        let part_count = def.key_def.part_count() as u32;
        if kind == IteratorKind::All || (key.part_count == 0 && def.kind == IndexKind::Tree) {
            if key.part_count > part_count {
                return Err(Error::new(ErrorCode::KeyPartCount, &[&part_count, &key.part_count]));
            }
        } else {
            if key.part_count > part_count {
                return Err(Error::new(ErrorCode::KeyPartCount, &[&part_count, &key.part_count])
                    .with("space", space.name())
                    .with("index", space.index_name(index_id)));
            }
            let wants_all = key.part_count == 0 && matches!(kind, IteratorKind::All | IteratorKind::Gt);
            if def.kind == IndexKind::Hash && key.part_count < part_count && !wants_all {
                return Err(Error::new(ErrorCode::PartialKey, &[&"HASH", &part_count, &key.part_count]));
            }
        }
        if key.part_count > 0 {
            def.key_def
                .validate_key(key.parts, key.part_count, true)
                .map_err(|error| self.key_error(error, space, index_id))?;
        }
        let supported = match def.kind {
            IndexKind::Tree => kind as u32 <= IteratorKind::Gt as u32,
            IndexKind::Hash => matches!(kind, IteratorKind::Eq | IteratorKind::All | IteratorKind::Gt),
        };
        if !supported {
            return Err(unsupported("requested iterator type"));
        }
        Ok(())
    }

    /// What comes before a scan of a space in memory: access and key are checked, what is seen is noted. Errors: as `select`.
    pub fn check_select(
        &self,
        context: &Context,
        space: &Space,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
    ) -> Result<()> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        self.check_scan(space, index_id, kind, key)?;
        self.statistics.selects.set(self.statistics.selects.get() + 1);
        context.see(self.written(space));
        self.note_read(context, space);
        Ok(())
    }

    /// Reads rows: those of a scan behind the first `offset`, at most `limit`, until `visit` returns false.
    ///
    /// Checks access. Errors: 42 and those of `check_scan`.
    #[expect(clippy::too_many_arguments, reason = "a select has so many parameters in the protocol")]
    pub fn select(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
        offset: u64,
        limit: u64,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        self.check_scan(space, index_id, kind, key)?;
        self.statistics.selects.set(self.statistics.selects.get() + 1);
        if limit == 0 {
            return Ok(());
        }
        let (mut skip, mut left) = (offset, limit);
        let take = |row: &[u8]| {
            if skip > 0 {
                skip -= 1;
                return true;
            }
            left -= 1;
            visit(row) && left > 0
        };
        match space.kind {
            SpaceKind::Memory => {
                context.see(self.written(space));
                self.note_read(context, space);
                self.scan_memory(context, space, index_id, kind, key, take);
            }
            SpaceKind::Disk => self.scan_disk(context, space, index_id, kind, key, take)?,
            SpaceKind::View { base } => self.scan_view(context, space, base, index_id, kind, key, take)?,
            SpaceKind::Service => self.scan_settings(&context.session, kind, key, take),
            SpaceKind::Blackhole => {}
        }
        Ok(())
    }

    /// A hint at what the requests that follow will look for.
    pub fn prefetch(&self, space: &Space, wanted: Prefetch<'_>) {
        match space.kind {
            SpaceKind::Memory => space.store.borrow().prefetch(wanted),
            SpaceKind::Disk => {
                if let Some(disk) = space.disk() {
                    disk.prefetch(wanted.values, wanted.reads_rows);
                }
            }
            _ => {}
        }
    }

    /// The row that a full key of a unique index names, after checking access. Errors: 41, 19, 18.
    pub fn get(&self, context: &Context, space: &Rc<Space>, index_id: u32, key: Key<'_>) -> Result<Option<Tuple>> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        self.check_exact_key(space, index_id, key)?;
        self.statistics.selects.set(self.statistics.selects.get() + 1);
        match space.kind {
            SpaceKind::Memory => {
                context.see(self.written(space));
                self.note_read(context, space);
                self.remember_key(context, space, index_id, key);
                Ok(space.store.borrow().get(index_id, key.parts, key.part_count))
            }
            SpaceKind::Disk => self.get_disk(context, space, index_id, key),
            SpaceKind::View { base } => {
                let mut found = None;
                self.scan_view(context, space, base, index_id, IteratorKind::Eq, key, |row| {
                    found = Some(Tuple::new(&self.loose_rows, space.format().id(), row));
                    false
                })?;
                found.transpose().map_err(|error| self.storage_error(error.into(), space))
            }
            SpaceKind::Service => {
                let mut found = None;
                self.scan_settings(&context.session, IteratorKind::Eq, key, |row| {
                    found = Some(self.make_row(space, &space.format(), row, || 0));
                    false
                });
                found.transpose()
            }
            SpaceKind::Blackhole => Ok(None),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "as select")]
    fn scan_view(
        &self,
        context: &Context,
        view: &Space,
        base: u32,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let base = self.space(base)?;
        context.see(self.written(&base));
        self.remember_all(context, &base, index_id);
        let rights = context.rights(&self.catalog);
        let user = context.user(&self.catalog);
        base.store.borrow().scan(index_id, kind, key.parts, key.part_count, |row| {
            !self.is_visible(&rights, user, view.id, row) || visit(row)
        });
        Ok(())
    }

    /// Number of rows of a scan. Checks access.
    pub fn count(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
    ) -> Result<u64> {
        // As Tarantool: ALL counts all rows, whatever the key.
        if space.kind == SpaceKind::Memory && (key.part_count == 0 || kind == IteratorKind::All) {
            self.enter(context)?;
            self.check_space_access(context, space, Privileges::READ)?;
            self.check_scan(space, index_id, kind, key)?;
            context.see(self.written(space));
            self.remember_all(context, space, index_id);
            return Ok(space.store.borrow().len() as u64);
        }
        let mut count = 0;
        self.select(context, space, index_id, kind, key, 0, u64::MAX, |_| {
            count += 1;
            true
        })?;
        Ok(count)
    }
}
