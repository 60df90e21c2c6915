//! Reads of rows: one by a key, how many there are; what a key and a bound must be like. Scans are in `cursor.rs`.
//!
//! What a read has seen is noted in its context: its answer waits until that is durable, and an open transaction depends on it.

use crate::access::Privileges;
use crate::catalog::{Space, SpaceKind};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use crate::statement::no_such_index;
use std::rc::Rc;
use storage::{IndexKind, IteratorKind, Key, Prefetch, Rows, ScanRequest};
use tuple::{IndexId, Tuple};

impl Database {
    pub(crate) fn check_exact_key(&self, space: &Space, index_id: IndexId, key: Key<'_>) -> Result<()> {
        let Some(def) = space.index_def(index_id) else {
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

    /// Checks that a scan makes sense. Errors: `NoSuchIndexId`, `KeyPartCount`, `KeyPartType`, `UnsupportedIndexFeature`, `PartialKey`.
    pub(crate) fn check_scan(&self, space: &Space, request: &ScanRequest<'_>) -> Result<()> {
        let (index_id, kind, key) = (request.index_id, request.kind, request.key);
        let Some(def) = space.index_def(index_id) else {
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

    /// A hint at what the requests that follow will look for.
    pub fn prefetch(&self, space: &Space, wanted: Prefetch<'_>) {
        space.rows.prefetch(wanted);
    }

    /// The same for keys of one string each, in a space in memory whose primary index is a hash index of such keys.
    pub fn prefetch_texts<'a>(&self, space: &Space, texts: impl Iterator<Item = &'a [u8]>) {
        let Rows::Memory(rows) = &space.rows else { return };
        let is_fit = space.index_def(IndexId::PRIMARY).is_some_and(|def| {
            let parts = def.compare_def.parts();
            parts.len() == 1 && parts[0].field_type == tuple::FieldType::String
        });
        if is_fit {
            rows.borrow().prefetch_texts(texts);
        }
    }

    /// Hands the row of a text to `look`, for a hint at what is asked for next: rights are not looked at, and nobody may be told of it. The space is one in
    /// memory whose primary index has that one part.
    pub fn peek_text<R>(&self, space: &Space, text: &[u8], look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let Rows::Memory(rows) = &space.rows else { return None };
        let def = space.index_def(IndexId::PRIMARY)?;
        if !matches!(def.compare_def.parts(), [part] if part.field_type == tuple::FieldType::String) {
            return None;
        }
        let mut key = Vec::with_capacity(64);
        tuple::msgpack::encode_str(&mut key, text);
        rows.borrow().get_row(IndexId::PRIMARY, &key, 1, look)
    }

    /// A hint at full keys of the primary index, made by the server itself, that are asked for next, and at rows that will be put in.
    pub fn prefetch_full_keys<'a>(&self, space: &Space, keys: impl Iterator<Item = &'a [u8]>, new_rows: &[&[u8]]) {
        if let Rows::Memory(rows) = &space.rows {
            rows.borrow().prefetch_full_keys(keys, new_rows);
        }
    }

    /// The row that a full key of a unique index names, after checking access. Errors: `MoreThanOneTuple`, `ExactMatch`, `KeyPartType`.
    pub fn get(&self, context: &Context, space: &Rc<Space>, index_id: IndexId, key: Key<'_>) -> Result<Option<Tuple>> {
        self.get_row(context, space, index_id, key, true)
    }

    /// The same for who is going to write, or else sees to it himself that his answer waits for [`Database::written`]: of a row in memory it is not looked
    /// for what it has to wait for, since a write waits for all before it.
    pub fn get_before_write(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: IndexId,
        key: Key<'_>,
    ) -> Result<Option<Tuple>> {
        self.get_row(context, space, index_id, key, false)
    }

    #[inline]
    fn get_row(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: IndexId,
        key: Key<'_>,
        answers_wait: bool,
    ) -> Result<Option<Tuple>> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        self.check_exact_key(space, index_id, key)?;
        self.check_shown(context, space)?;
        self.statistics.selects.set(self.statistics.selects.get() + 1);
        match &space.rows {
            Rows::Memory(rows) => {
                if answers_wait {
                    context.see(self.written_of(space, &ScanRequest::new(index_id, IteratorKind::Eq, key)));
                }
                self.note_read(context, space);
                self.note_scan(context, space, index_id, IteratorKind::Eq, key, None);
                let found = match self.layer(context, space) {
                    None => rows.borrow().get(index_id, key.parts, key.part_count),
                    Some(_) => self.row_of_key(context, space, index_id, key).map_err(|halt| self.halt_error(halt))?,
                };
                let found = found.filter(|row| self.shows(context, space, row.data()) || self.expiry.note_hidden());
                if space.memory_limit().is_some() {
                    let request = ScanRequest::new(index_id, IteratorKind::Eq, key);
                    self.note_use(space, &request, found.as_ref().map(Tuple::data));
                }
                Ok(found)
            }
            Rows::Disk(..) => {
                self.note_disk(context);
                let found = self.until_ready(context, || {
                    self.remember_key(context, space, index_id, key);
                    context.see(self.written_of(space, &ScanRequest::new(index_id, IteratorKind::Eq, key)));
                    self.row_of_key(context, space, index_id, key)
                })?;
                Ok(found.filter(|row| self.shows(context, space, row.data())))
            }
            Rows::Nowhere => {
                let request = ScanRequest { limit: 1, ..ScanRequest::new(index_id, IteratorKind::Eq, key) };
                let mut found = None;
                self.scan_elsewhere(context, space, &request, |row| {
                    found = Some(self.make_row(space, &space.format(), row, || 0));
                    false
                })?;
                found.transpose()
            }
        }
    }

    /// Hands `count` rows and more of a hash index to `visit`, from a place of it on, after checking access. Returns the place behind them, 0 at its end. A
    /// row that stays all the time is seen once by who goes on so. None: there are no such places, since the index is ordered, or the open transaction has
    /// writes of its own. Errors: `AccessDenied`.
    pub fn select_some(
        &self,
        context: &Context,
        space: &Rc<Space>,
        (from, count): (u64, usize),
        mut visit: impl FnMut(Tuple),
    ) -> Result<Option<u64>> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        let Rows::Memory(rows) = &space.rows else { return Ok(None) };
        if self.layer(context, space).is_some() {
            return Ok(None);
        }
        context.see(self.written(space));
        self.note_read(context, space);
        let Some(past) = self.past_of(context, space) else {
            return Ok(rows.borrow().next_some(IndexId::PRIMARY, from, count, visit));
        };
        let shown = |row: Tuple| {
            if !past.has(row.data()) {
                visit(row);
            }
        };
        Ok(rows.borrow().next_some(IndexId::PRIMARY, from, count, shown))
    }

    /// Some row of a space in memory, chosen by `seed`, after checking access. Errors: `AccessDenied`.
    pub fn random_row(&self, context: &Context, space: &Rc<Space>, seed: u64) -> Result<Option<Tuple>> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        context.see(self.written(space));
        self.note_read(context, space);
        Ok(self.some_row(context, space, IndexId::PRIMARY, seed))
    }

    /// Number of rows of a scan. Checks access. Errors: as `select`.
    pub fn count(&self, context: &Context, space: &Rc<Space>, request: &ScanRequest<'_>) -> Result<u64> {
        self.enter(context)?;
        // As Tarantool: ALL counts all rows, whatever the key.
        if let Rows::Memory(rows) = &space.rows
            && (request.key.part_count == 0 || request.kind == IteratorKind::All)
            && !self.is_private(context)
            && space.ttl().is_none()
        {
            self.check_space_access(context, space, Privileges::READ)?;
            self.check_scan(space, request)?;
            context.see(self.written(space));
            self.remember_all(context, space, request.index_id);
            return Ok(rows.borrow().len() as u64);
        }
        let everything = ScanRequest { key: Key::EMPTY, ..*request };
        let counts_all = request.kind == IteratorKind::All && space.rows.memory().is_some();
        let mut count = 0;
        self.select(context, space, if counts_all { &everything } else { request }, |_| {
            count += 1;
            true
        })?;
        Ok(count)
    }
}
