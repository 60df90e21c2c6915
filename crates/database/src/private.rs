//! The private writes of a long transaction that has waited: rows laid over those of everybody.
//!
//! A short transaction that waits has its changes rolled back, and applied again when it goes on (`isolation.rs`): that costs its length at each
//! wait. A longer one keeps its writes to itself instead, from its first wait to its commit: in each space that it has written to, a
//! [`Layer`] has the rows that it has put in and those that it has taken away. Its reads look at the layer first and then at the space.
//! A wait costs nothing then, and the whole is linear. At its commit, and where something has to look at the space alone (a change of
//! the schema, a random row), the changes are applied in their order like those of any other transaction.
//!
//! What is below a layer is what it was: who changes a row that the transaction has seen or written dooms it.

use crate::blind_write::BlindWrite;
use crate::catalog::Space;
use crate::database::Database;
use crate::disposal::Garbage;
use crate::error::Result;
use crate::prepare::{Look, Prepared};
use crate::session::Context;
use crate::txn::{Statement, Txn};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use storage::{Change, IndexDef, IndexKind, Key, MemoryIterator, MemorySpace, Mode, StorageError, ordered_key};
use tuple::{IndexId, SpaceId, Tuple};

/// A transaction of up to so many statements is rolled back at a wait and applied again: that is cheaper than a layer.
pub(crate) const IN_PLACE_MAX: usize = 4;

/// What a transaction has written to one space.
pub(crate) struct Layer {
    /// The rows that it has put in, by all indexes of the space.
    puts: MemorySpace,
    /// Rows that it has taken away, by the primary index.
    gone: MemorySpace,
    /// Primary keys that it has taken away without a look, as ordered bytes.
    gone_keys: BTreeSet<Vec<u8>>,
    /// Grows with every change.
    version: u64,
}

/// What one statement did to its layer.
pub(crate) struct LayerUndo {
    layer: Rc<RefCell<Layer>>,
    /// The row that the transaction itself had put there before.
    before: Option<Tuple>,
    added_gone: bool,
    added_key: Option<Vec<u8>>,
}

/// The private writes of one transaction.
#[derive(Default)]
pub(crate) struct Private {
    /// By number: the order in which they go must not be another in each process.
    layers: BTreeMap<SpaceId, Rc<RefCell<Layer>>>,
    /// For each of its statements; none where the space keeps no rows.
    undo: Vec<Option<LayerUndo>>,
}

impl Layer {
    pub(crate) fn new(database: &Database, space: &Space) -> Self {
        let (mut puts, mut gone) = (MemorySpace::new(&database.arena), MemorySpace::new(&database.arena));
        for def in space.index_defs().iter() {
            puts.create_index(def.clone());
            if def.id == 0 {
                gone.create_index(def.clone());
            }
        }
        Layer { puts, gone, gone_keys: BTreeSet::new(), version: 0 }
    }

    /// True if a row of the space is not there for the transaction: it has taken it away, or put another in its place.
    pub(crate) fn hides(&self, space: &Space, row: &[u8]) -> bool {
        self.puts.get_same_key(row).is_some()
            || self.gone.get_same_key(row).is_some()
            || !self.gone_keys.is_empty()
                && space
                    .index_def(IndexId::PRIMARY)
                    .and_then(|def| ordered_key(&def.key_def, row))
                    .is_some_and(|key| self.gone_keys.contains(&key))
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Applies a change: `old` goes, `new` comes. Both belong to one primary key.
    fn apply(&mut self, change: &Change) -> std::result::Result<(Option<Tuple>, bool), StorageError> {
        self.version += 1;
        let Some(row) = change.new.as_ref().or(change.old.as_ref()) else { return Ok((None, false)) };
        let before = self.puts.get_same_key(row.data());
        if let Some(new) = &change.new {
            self.puts.replace(new.clone(), Mode::Replace)?;
            return Ok((before, false));
        }
        if let Some(before) = &before {
            self.puts.delete(before.clone());
        }
        let is_new = self.gone.get_same_key(row.data()).is_none();
        if is_new {
            self.gone.replace(row.clone(), Mode::Replace)?;
        }
        Ok((before, is_new))
    }

    /// Shows a row that was there, or hides one that was not, unless it is known already what was there by its primary key. True if it was not.
    ///
    /// Errors: `OutOfMemory`.
    pub(crate) fn keep_oldest(&mut self, row: &Tuple, was_there: bool) -> std::result::Result<bool, StorageError> {
        if self.puts.get_same_key(row.data()).is_some() || self.gone.get_same_key(row.data()).is_some() {
            return Ok(false);
        }
        self.version += 1;
        let rows = if was_there { &mut self.puts } else { &mut self.gone };
        rows.replace(row.clone(), Mode::Replace)?;
        Ok(true)
    }

    /// What is left of a scan of a hash, which has no order, at once.
    pub(crate) fn rest_of_hash(&self, space: &Space, rows: &MemorySpace, iterator: &mut MemoryIterator) -> Vec<Tuple> {
        let mut own = iterator.beside();
        let mut rest = Vec::new();
        while let Some(row) = own.next(&self.puts) {
            rest.push(row);
        }
        let taken = iterator.take_batch();
        while let Some(row) = iterator.next(rows) {
            if !self.hides(space, row.data()) {
                rest.push(row);
            }
        }
        rest.extend(taken);
        rest
    }

    fn free_some(&mut self, max: usize) -> bool {
        for _ in 0..max.min(self.gone_keys.len()) {
            self.gone_keys.pop_first();
        }
        self.puts.dismantle_some(max) || self.gone.dismantle_some(max) || !self.gone_keys.is_empty()
    }

    fn undo(&mut self, change: &Change, undo: &LayerUndo) {
        self.version += 1;
        if let Some(key) = &undo.added_key {
            self.gone_keys.remove(key);
        }
        let Some(row) = change.new.as_ref().or(change.old.as_ref()) else { return };
        let present = self.puts.get_same_key(row.data());
        debug_assert_eq!(present.is_some(), change.new.is_some(), "statements are undone from the newest on");
        self.puts.undo(&Change::new(undo.before.clone(), present));
        if undo.added_gone
            && let Some(gone) = self.gone.get_same_key(row.data())
        {
            self.gone.delete(gone);
        }
    }
}

impl Private {
    fn layer_of(&mut self, database: &Database, space: &Space) -> Rc<RefCell<Layer>> {
        let layer = self.layers.entry(space.id);
        Rc::clone(layer.or_insert_with(|| Rc::new(RefCell::new(Layer::new(database, space)))))
    }

    fn apply(&mut self, database: &Database, space: &Space, change: &Change) -> std::result::Result<(), StorageError> {
        if space.rows.are_nowhere() {
            self.undo.push(None);
            return Ok(());
        }
        let layer = self.layer_of(database, space);
        let (before, added_gone) = layer.borrow_mut().apply(change)?;
        self.undo.push(Some(LayerUndo { layer, before, added_gone, added_key: None }));
        Ok(())
    }

    /// Takes in a statement that was applied in place and is rolled back there.
    fn take_in(&mut self, database: &Database, statement: &Statement) -> std::result::Result<(), StorageError> {
        let Statement { space, change, .. } = statement;
        self.apply(database, space, change)?;
        if change.old.is_some() || change.new.is_some() {
            return Ok(());
        }
        // A blind delete: the key is all that is known.
        if let Some(Some(undo)) = self.undo.last_mut() {
            space.rows.for_each_key(&space.index_defs(), change, |def, own, _| {
                if let Some(own) = own.filter(|_| def.id == 0)
                    && undo.layer.borrow_mut().gone_keys.insert(own.to_vec())
                {
                    undo.added_key = Some(own.to_vec());
                }
            });
        }
        Ok(())
    }

    /// Frees about `max` rows of it, when nothing of it is needed any more. Returns true while something is left.
    pub(crate) fn free_some(&mut self, max: usize) -> bool {
        if !self.undo.is_empty() {
            self.undo.truncate(self.undo.len().saturating_sub(max));
            return true;
        }
        let Some(mut layer) = self.layers.last_entry() else { return false };
        // A scan may still look at it.
        let has_more = Rc::get_mut(layer.get_mut()).is_some_and(|layer| layer.get_mut().free_some(max));
        if !has_more {
            layer.remove();
        }
        !self.layers.is_empty()
    }

    /// Rolls the newest statement back.
    pub(crate) fn undo(&mut self, statement: &Statement) {
        if let Some(Some(undo)) = self.undo.pop() {
            undo.layer.borrow_mut().undo(&statement.change, &undo);
        }
    }
}

impl Txn {
    /// True if it may keep its writes to itself from now on.
    fn can_be_private(&self) -> bool {
        !self.has_changed_schema() && self.statements().iter().all(|statement| !statement.change.is_blind_upsert())
    }
}

impl Database {
    /// The changes of a transaction that is resumed, and which are rolled back, become private if there are many. False: they are to be applied
    /// again.
    pub(crate) fn make_private(&self, txn: &mut Txn) -> bool {
        if txn.statements().len() <= self.limits.in_place_max.get() || !txn.can_be_private() {
            return false;
        }
        let mut private = Private::default();
        for statement in txn.statements() {
            if private.take_in(self, statement).is_err() {
                debug_assert!(false, "what was applied once can be applied to nothing");
                return false;
            }
        }
        txn.private = Some(Box::new(private));
        true
    }

    /// Brings the private writes of the open transaction to where everybody's rows are, until it waits again.
    ///
    /// Errors: as `resume`.
    pub fn bring_in_place(&self, context: &Context) -> Result<()> {
        self.enter(context)?;
        if let Some(txn) = context.txn.borrow_mut().as_mut()
            && let Some(private) = txn.private.take()
        {
            txn.apply_again();
            self.dispose_of_private(Some(private));
        }
        Ok(())
    }

    /// Private writes that are in place, or are no more.
    pub(crate) fn dispose_of_private(&self, private: Option<Box<Private>>) {
        self.disposal.discard(private.map(Garbage::Private));
    }

    /// True if the open transaction keeps its writes to itself, or reads in a view.
    #[inline]
    pub(crate) fn is_private(&self, context: &Context) -> bool {
        context.txn.borrow().as_ref().is_some_and(|txn| txn.private.is_some() || txn.view.is_some())
    }

    /// What the open transaction has written to a space, if it keeps that to itself, or what its view lays over the space.
    #[inline]
    pub(crate) fn layer(&self, context: &Context, space: &Space) -> Option<Rc<RefCell<Layer>>> {
        let txn = context.txn.borrow();
        let txn = txn.as_ref()?;
        match (&txn.private, &txn.view) {
            (Some(private), _) => private.layers.get(&space.id).cloned(),
            (None, Some(view)) => self.layer_of_view(view, space),
            (None, None) => None,
        }
    }

    /// A row by a full key of a unique index, as the open transaction sees it; `below` looks at the space.
    pub(crate) fn get_through(
        &self,
        space: &Space,
        layer: &RefCell<Layer>,
        index_id: IndexId,
        key: Key<'_>,
        below: impl FnOnce() -> Look<Option<Tuple>>,
    ) -> Look<Option<Tuple>> {
        if let Some(own) = layer.borrow().puts.get(index_id, key.parts, key.part_count) {
            return Ok(Some(own));
        }
        let found = below()?;
        Ok(found.filter(|row| !layer.borrow().hides(space, row.data())))
    }

    /// The same by the primary key of a row.
    pub(crate) fn same_key_through(
        &self,
        space: &Space,
        layer: &RefCell<Layer>,
        row: &[u8],
        below: impl FnOnce() -> Look<Option<Tuple>>,
    ) -> Look<Option<Tuple>> {
        if let Some(own) = layer.borrow().puts.get_same_key(row) {
            return Ok(Some(own));
        }
        if layer.borrow().hides(space, row) { Ok(None) } else { below() }
    }

    /// Whether a row may come, as the open transaction sees the space. Errors: `TupleFound`.
    pub(crate) fn check_unique_privately(&self, context: &Context, space: &Space, mode: Mode, new: &Tuple) -> Look<()> {
        let refuse =
            |index_id, existing| Err(self.storage_error(StorageError::Duplicate { index_id, existing }, space).into());
        if mode == Mode::Insert
            && let Some(existing) = self.same_key(context, space, new.data())?
        {
            return refuse(IndexId::PRIMARY, existing);
        }
        let defs = space.index_defs();
        let Some(primary) = defs.first() else { return Ok(()) };
        for def in defs.iter().filter(|def| def.id != 0 && def.is_unique) {
            let mut keys = Vec::new();
            def.for_each_entry(new.data(), |entry| {
                if !def.key_def.has_null_in(entry) {
                    let mut key = Vec::new();
                    def.key_def.extract_key(entry, &mut key);
                    keys.push(key);
                }
            });
            for key in keys {
                if let Some(existing) = self.row_of_key(context, space, def.id, Key::decode(&key)?)?
                    && primary.key_def.compare_rows(existing.data(), new.data()).is_ne()
                {
                    return refuse(def.id, existing);
                }
            }
        }
        Ok(())
    }

    /// Applies what was prepared to the layer of the open transaction. Errors: as `apply`.
    pub(crate) fn apply_privately(
        &self,
        context: &Context,
        space: &Space,
        prepared: Prepared,
    ) -> Result<(Change, Option<Box<BlindWrite>>)> {
        debug_assert!(prepared.blind.is_none(), "who keeps its writes to itself looks at what is there");
        let change = Change::new(prepared.old, prepared.new);
        let mut txn = context.txn.borrow_mut();
        if let Some(private) = txn.as_mut().and_then(|txn| txn.private.as_mut()) {
            private.apply(self, space, &change).map_err(|error| self.storage_error(error, space))?;
        }
        Ok((change, None))
    }
}

/// The next row of a scan of an ordered index in memory, with the transaction's own rows in their places.
pub(crate) fn next_through(
    rows: &MemorySpace,
    space: &Space,
    layer: &Layer,
    iterator: &mut MemoryIterator,
) -> Option<Tuple> {
    let mut beside = iterator.over_again();
    let own = beside.next(&layer.puts);
    let def = rows.index_def(iterator.index_id())?;
    debug_assert_eq!(def.kind, IndexKind::Tree, "rows of a hash have no places");
    let below = loop {
        let Some(row) = iterator.next(rows) else { break None };
        let is_first =
            own.as_ref().is_none_or(|own| is_before(def, iterator.kind().is_reverse(), row.data(), own.data()));
        if !is_first {
            break None;
        }
        if !layer.hides(space, row.data()) {
            break Some(row);
        }
    };
    if below.is_none() {
        match &own {
            Some(own) => iterator.go_behind(own),
            None => iterator.end(),
        }
    }
    below.or(own)
}

fn is_before(def: &IndexDef, is_reverse: bool, row: &[u8], other: &[u8]) -> bool {
    let order = def.compare_def.compare_rows(row, other);
    order == if is_reverse { Ordering::Greater } else { Ordering::Less }
}

/// The transaction's own rows of a scan whose other rows are on disk.
pub(crate) struct OwnRows {
    layer: Rc<RefCell<Layer>>,
    space: Rc<Space>,
    def: IndexDef,
    iterator: MemoryIterator,
    next: Option<Tuple>,
}

impl OwnRows {
    /// Those of `iterator`, which has come to where the scan begins.
    pub(crate) fn new(space: &Rc<Space>, layer: Rc<RefCell<Layer>>, mut iterator: MemoryIterator) -> Option<Self> {
        let def = space.index_def(iterator.index_id())?.clone();
        let next = iterator.next(&layer.borrow().puts);
        Some(OwnRows { layer, space: Rc::clone(space), def, iterator, next })
    }

    /// The next own row if it comes before a row of the disk, or at all without one.
    pub(crate) fn take_before(&mut self, row: Option<&[u8]>) -> Option<Tuple> {
        let is_first = |own: &Tuple| {
            row.is_none_or(|row| is_before(&self.def, self.iterator.kind().is_reverse(), own.data(), row))
        };
        let found = self.next.take_if(|own| is_first(own))?;
        self.next = self.iterator.next(&self.layer.borrow().puts);
        Some(found)
    }

    /// True if a row of the disk is not there for the transaction.
    pub(crate) fn hides(&self, row: &[u8]) -> bool {
        self.layer.borrow().hides(&self.space, row)
    }
}
