//! Transactions that survive a wait.
//!
//! The idea. What a transaction has done is in force in place, which is right as long as nobody else runs. When its fiber has to wait the
//! transaction is *suspended*: its changes are taken back, the newest first, and kept. At its next statement it is *resumed*: they are
//! put in force again. In between others commit. So everybody always sees what is committed and his own changes.
//!
//! ```text
//! begin  read a  write b  | wait            | read c  commit
//!                         | b taken back    | b in force again
//!                         | others commit;  |
//!                         | if one of them touched a or b: error 97 from here on
//! ```
//!
//! For this to be as if the transaction had run at the moment of its commit, nothing that it has seen may have changed: the keys that it has
//! read, found absent or changed are remembered as intervals of ordered bytes, index by index, and a commit dooms the suspended
//! transactions that it touches. The first to commit wins, nobody waits for anybody, and a transaction that goes on has seen
//! one state of the database. That no key of its changes was touched is also what makes putting them in force again succeed always.
//!
//! Reads are remembered only if there are disk spaces ([`Database::remember_reads`]), and only transactions that have touched one survive
//! a wait ([`Database::outlive_yield`]); the others are aborted by it, as Tarantool's. There are at most as many suspended
//! transactions as fibers; what each remembers is bounded by [`IntervalSet`].
//!
//! Refused: versions of rows (each read would pay for transactions that wait), and locks (each wait could be a deadlock).

use crate::catalog::{Space, SpaceKind};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::interval_set::IntervalSet;
use crate::session::Context;
use crate::statement::{Key, Operation};
use crate::txn::Statement;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use storage::{Change, IndexDef, IndexKind, IteratorKind, MemoryIterator};
use tuple::Tuple;

/// Above all bytes that an ordered key goes on with.
const ABOVE: u8 = 0xff;

/// What a transaction depends on.
#[derive(Default)]
pub(crate) struct Reads {
    /// Of each space that it has read or changed: what it has seen in each index, as bytes of the index's whole order.
    spaces: RefCell<BTreeMap<u32, BTreeMap<u32, IntervalSet>>>,
    /// Something of it was changed by another transaction.
    is_doomed: Cell<bool>,
}

/// Transactions whose fibers wait.
#[derive(Default)]
pub(crate) struct Suspended {
    /// By space and number of the transaction. One that was dropped without being ended is gone here, too.
    readers: RefCell<BTreeMap<(u32, u64), Weak<Reads>>>,
}

impl Suspended {
    fn is_empty(&self) -> bool {
        self.readers.borrow().is_empty()
    }

    fn has_readers(&self, space_id: u32) -> bool {
        self.readers.borrow().range((space_id, 0)..=(space_id, u64::MAX)).next().is_some()
    }

    fn add(&self, txn_id: u64, reads: &Rc<Reads>) {
        let mut readers = self.readers.borrow_mut();
        for space_id in reads.spaces.borrow().keys() {
            readers.insert((*space_id, txn_id), Rc::downgrade(reads));
        }
    }

    fn remove(&self, txn_id: u64, reads: &Reads) {
        let mut readers = self.readers.borrow_mut();
        for space_id in reads.spaces.borrow().keys() {
            readers.remove(&(*space_id, txn_id));
        }
    }

    /// Dooms the readers of a space that `is_hit` says.
    fn doom(&self, space_id: u32, mut is_hit: impl FnMut(&BTreeMap<u32, IntervalSet>) -> bool) {
        let mut gone = Vec::new();
        for (key, reads) in self.readers.borrow().range((space_id, 0)..=(space_id, u64::MAX)) {
            let Some(reads) = reads.upgrade() else {
                gone.push((key.1, None));
                continue;
            };
            if reads.spaces.borrow().get(&space_id).is_some_and(&mut is_hit) {
                gone.push((key.1, Some(reads)));
            }
        }
        for (txn_id, reads) in gone {
            match reads {
                Some(reads) => {
                    self.remove(txn_id, &reads);
                    reads.doom();
                }
                None => {
                    self.readers.borrow_mut().remove(&(space_id, txn_id));
                }
            }
        }
    }

    fn doom_all(&self) {
        let all = self.readers.take();
        all.values().filter_map(Weak::upgrade).for_each(|reads| reads.doom());
    }
}

impl Reads {
    fn doom(&self) {
        self.is_doomed.set(true);
        self.spaces.take();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spaces.borrow().is_empty()
    }
}

/// The bytes of a row in an index, none if its keys have no ordered bytes.
fn ordered_row(def: &IndexDef, row: &[u8]) -> Option<Vec<u8>> {
    def.compare_def.supports_ordered().is_ok().then(|| {
        let mut bytes = Vec::with_capacity(32);
        def.compare_def.ordered_of_row(row, &mut bytes);
        bytes
    })
}

fn above(mut prefix: Vec<u8>) -> Vec<u8> {
    prefix.push(ABOVE);
    prefix
}

/// What a scan covers that ended at `last`, or at its end.
fn range_of(def: &IndexDef, kind: IteratorKind, key: Key<'_>, last: Option<Vec<u8>>) -> (Vec<u8>, Option<Vec<u8>>) {
    use IteratorKind::{All, Eq, Ge, Gt, Le, Lt, Req};
    let is_ordered = def.kind == IndexKind::Tree || kind == Eq && key.part_count > 0;
    if !is_ordered || def.compare_def.supports_ordered().is_err() {
        return (Vec::new(), None);
    }
    let mut prefix = Vec::with_capacity(32);
    def.key_def.ordered_of_key(key.parts, key.part_count, &mut prefix);
    let (low, high) = match kind {
        _ if key.part_count == 0 => (Vec::new(), None),
        Eq | Req => (prefix.clone(), Some(above(prefix))),
        All | Ge => (prefix, None),
        Gt => (above(prefix), None),
        Le => (Vec::new(), Some(above(prefix))),
        Lt => (Vec::new(), Some(prefix)),
        _ => return (Vec::new(), None),
    };
    match last {
        Some(last) if kind.is_reverse() => (last, high),
        Some(last) => (low, Some(last)),
        None => (low, high),
    }
}

impl Database {
    /// From now on transactions remember what they read. To be called before the first disk space can be written to or read.
    pub fn remember_reads(&self) {
        self.remembers_reads.set(true);
    }

    /// The open transaction has touched a space whose reads may wait: it will be suspended by a wait, not aborted.
    pub fn outlive_yield(&self, context: &Context) {
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            txn.outlives_yield = true;
        }
    }

    /// Transactions whose fibers wait, counted once for each space that they have touched.
    pub fn suspended(&self) -> usize {
        self.suspended.readers.borrow().len()
    }

    /// The context's fiber is about to wait: what its transaction has changed is taken back until it is resumed. Does nothing if there is no
    /// transaction or it has nothing to lose; one that has changed the schema is aborted instead (154).
    pub fn suspend(&self, context: &Context) {
        let taken = context.txn.borrow_mut().take();
        let Some(mut txn) = taken else { return };
        let has_nothing = txn.statements().is_empty() && txn.reads.is_empty();
        if context.must_resume.get() || txn.is_aborted() || has_nothing {
            *context.txn.borrow_mut() = Some(txn);
            return;
        }
        if !self.remembers_reads.get() || txn.has_changed_schema() {
            *context.txn.borrow_mut() = Some(txn);
            return self.abort_txn(context, ErrorCode::TransactionYield);
        }
        for statement in txn.statements().iter().rev() {
            self.withdraw(statement);
        }
        txn.is_suspended = true;
        self.suspended.add(txn.id(), &txn.reads);
        context.must_resume.set(true);
        *context.txn.borrow_mut() = Some(txn);
    }

    /// Puts the changes of the context's transaction in force again, if it is suspended.
    ///
    /// Errors: 97 if another transaction has changed what it depends on. It has been taken back then, and whatever is tried in it gets the
    /// same error until it is rolled back.
    pub fn resume(&self, context: &Context) -> Result<()> {
        if !context.must_resume.get() {
            return Ok(());
        }
        let taken = context.txn.borrow_mut().take();
        let Some(mut txn) = taken else { return Ok(()) };
        if txn.is_suspended {
            self.suspended.remove(txn.id(), &txn.reads);
        }
        let is_alive = txn.is_suspended && !txn.reads.is_doomed.get();
        if is_alive {
            for statement in txn.statements() {
                self.reinstate(statement);
            }
            txn.is_suspended = false;
            context.must_resume.set(false);
            *context.txn.borrow_mut() = Some(txn);
            return Ok(());
        }
        *context.txn.borrow_mut() = Some(txn);
        self.abort_txn(context, ErrorCode::TransactionConflict);
        Err(Error::new(ErrorCode::TransactionConflict, &[]))
    }

    /// What every statement, read, savepoint and commit begins with.
    #[inline]
    pub(crate) fn enter(&self, context: &Context) -> Result<()> {
        if context.must_resume.get() { self.resume(context) } else { Ok(()) }
    }

    /// The context has no transaction any more, `reads` is what it depended on.
    pub(crate) fn forget_reads(&self, context: &Context, txn_id: u64, reads: &Reads) {
        if context.must_resume.replace(false) {
            self.suspended.remove(txn_id, reads);
        }
    }

    fn withdraw(&self, statement: &Statement) {
        statement.space.store.borrow_mut().undo(&statement.change);
    }

    fn reinstate(&self, statement: &Statement) {
        statement.space.store.borrow_mut().redo(&statement.change);
    }

    // What is remembered.

    #[inline]
    fn remembers(&self, context: &Context) -> bool {
        self.remembers_reads.get() && context.txn.borrow().is_some()
    }

    /// The open transaction depends on what lies between two keys of an index, both included, given as ordered bytes; to the end if there is no
    /// `high`.
    pub(crate) fn remember(
        &self,
        context: &Context,
        space_id: u32,
        index_id: u32,
        (low, high): (Vec<u8>, Option<Vec<u8>>),
    ) {
        if let Some(txn) = context.txn.borrow().as_ref() {
            let mut spaces = txn.reads.spaces.borrow_mut();
            spaces.entry(space_id).or_default().entry(index_id).or_default().insert(low, high);
        }
    }

    /// The open transaction depends on everything in an index.
    pub fn remember_all(&self, context: &Context, space: &Space, index_id: u32) {
        if self.remembers(context) {
            self.remember(context, space.id, index_id, (Vec::new(), None));
        }
    }

    /// The open transaction depends on the row that a full key of an index names, or on its absence.
    #[inline]
    pub(crate) fn remember_key(&self, context: &Context, space: &Space, index_id: u32, key: Key<'_>) {
        self.remember_scan(context, space, index_id, IteratorKind::Eq, key, None);
    }

    /// The open transaction depends on the rows of a scan: those up to `last`, behind which it was not continued, or all.
    #[inline]
    pub fn remember_scan(
        &self,
        context: &Context,
        space: &Space,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
        last: Option<&[u8]>,
    ) {
        if self.remembers(context)
            && let Some(def) = space.store.borrow().index_def(index_id)
        {
            let last = last.and_then(|row| ordered_row(def, row));
            self.remember(context, space.id, index_id, range_of(def, kind, key, last));
        }
    }

    /// A scan of a space in memory that is remembered as far as it goes.
    #[inline]
    pub(crate) fn scan_memory(
        &self,
        context: &Context,
        space: &Space,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) {
        if self.remembers(context) {
            self.scan_remembered(context, space, index_id, kind, key, &mut visit);
        } else {
            space.store.borrow().scan(index_id, kind, key.parts, key.part_count, visit);
        }
    }

    #[cold]
    fn scan_remembered(
        &self,
        context: &Context,
        space: &Space,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) {
        let store = space.store.borrow();
        let Some(def) = store.index_def(index_id) else { return };
        let mut last = None;
        store.scan(index_id, kind, key.parts, key.part_count, |row| {
            let goes_on = visit(row);
            if !goes_on {
                last = ordered_row(def, row);
            }
            goes_on
        });
        self.remember(context, space.id, index_id, range_of(def, kind, key, last));
    }

    /// The next row of a suspended scan of a space in memory. Errors: 97.
    pub fn next_row(&self, context: &Context, space: &Space, iterator: &mut MemoryIterator) -> Result<Option<Tuple>> {
        self.enter(context)?;
        context.see(self.written(space));
        let store = space.store.borrow();
        if !self.remembers(context) || iterator.is_done() {
            return Ok(iterator.next(&store));
        }
        let before = iterator.last().cloned();
        let found = iterator.next(&store);
        if let Some(def) = store.index_def(iterator.index_id()) {
            let (parts, part_count) = iterator.key();
            let last = found.as_ref().and_then(|row| ordered_row(def, row.data()));
            let mut range = range_of(def, iterator.kind(), Key { parts, part_count }, last);
            match before.and_then(|row| ordered_row(def, row.data())) {
                Some(before) if iterator.kind().is_reverse() => range.1 = Some(before),
                Some(before) => range.0 = before,
                None => {}
            }
            self.remember(context, space.id, def.id, range);
        }
        Ok(found)
    }

    /// The open transaction depends on what a statement has looked up, `rows` being what it is going to do. Must be called before it is done, and
    /// also if it was refused or has nothing to do: that, too, was seen.
    #[inline]
    pub(crate) fn remember_statement(
        &self,
        context: &Context,
        space: &Space,
        operation: &Operation<'_>,
        rows: Option<(Option<&Tuple>, Option<&Tuple>)>,
    ) {
        if self.remembers(context) {
            self.remember_lookup(context, space, operation);
            if let Some((old, new)) = rows {
                self.remember_rows(context, space, old, new);
            }
        }
    }

    #[cold]
    fn remember_lookup(&self, context: &Context, space: &Space, operation: &Operation<'_>) {
        // A change of its definition concerns the statement, whatever it finds.
        if let Some(txn) = context.txn.borrow().as_ref() {
            txn.reads.spaces.borrow_mut().entry(space.id).or_default();
        }
        match operation {
            Operation::Update { index_id, key, .. } | Operation::Delete { index_id, key } => {
                if let Ok(key) = Key::decode(key)
                    && self.check_exact_key(space, *index_id, key).is_ok()
                {
                    self.remember_key(context, space, *index_id, key);
                }
            }
            Operation::Upsert { tuple, .. } if space.format().check(tuple).is_ok() => {
                self.remember_row(context, space, tuple, false);
            }
            _ => {}
        }
    }

    /// The open transaction depends on the keys of the rows that a statement takes out and puts in.
    #[cold]
    pub(crate) fn remember_rows(&self, context: &Context, space: &Space, old: Option<&Tuple>, new: Option<&Tuple>) {
        if self.remembers(context) {
            old.iter().for_each(|row| self.remember_row(context, space, row.data(), false));
            new.iter().for_each(|row| self.remember_row(context, space, row.data(), true));
        }
    }

    /// Remembers the primary key of a row and, if it is to be put in, those keys that no other row may have.
    fn remember_row(&self, context: &Context, space: &Space, row: &[u8], is_put: bool) {
        if space.kind != SpaceKind::Memory {
            return;
        }
        for def in space.store.borrow().index_defs() {
            let is_looked_at = def.id == 0 || is_put && def.is_unique && !def.key_def.has_null_in(row);
            if !is_looked_at {
                continue;
            }
            let range = if def.key_def.supports_ordered().is_ok() {
                let mut prefix = Vec::with_capacity(32);
                def.key_def.ordered_of_row(row, &mut prefix);
                (prefix.clone(), Some(above(prefix)))
            } else {
                (Vec::new(), None)
            };
            self.remember(context, space.id, def.id, range);
        }
    }

    // Who is doomed.

    /// A change is committed: the suspended transactions that depend on it have no chance any more.
    #[inline]
    pub(crate) fn doom_readers(&self, space: &Space, change: &Change) {
        if !self.suspended.is_empty() {
            self.doom_readers_of(space, change);
        }
    }

    #[cold]
    fn doom_readers_of(&self, space: &Space, change: &Change) {
        if space.is_system() {
            self.doom_readers_of_definition(space, change);
        }
        if !self.suspended.has_readers(space.id) {
            return;
        }
        let store = space.store.borrow();
        let rows = || [&change.old, &change.new].into_iter().flatten();
        // The bytes of the rows in each index; without them every reader of the index is meant.
        let keys_in = |def: &IndexDef| rows().map(|row| ordered_row(def, row.data())).collect::<Option<Vec<_>>>();
        let keys: Vec<_> = store.index_defs().map(|def| (def.id, keys_in(def))).collect();
        self.suspended.doom(space.id, |indexes| {
            indexes.iter().any(|(index_id, seen)| match keys.iter().find(|(id, _)| id == index_id) {
                Some((_, Some(keys))) => keys.iter().any(|key| seen.contains(key)),
                _ => true,
            })
        });
    }

    /// A row of a system space that says what a space is, or empties it: whoever has read or changed the space is meant.
    fn doom_readers_of_definition(&self, space: &Space, change: &Change) {
        use crate::alter::{INDEX_ID, SPACE_ID, SPACE_SEQUENCE_ID, TRUNCATE_ID};
        if !matches!(space.id, SPACE_ID | INDEX_ID | TRUNCATE_ID | SPACE_SEQUENCE_ID) {
            return;
        }
        for row in [&change.old, &change.new].into_iter().flatten() {
            if let Ok(id) = Fields::new(row.data()).and_then(|mut fields| fields.uint()) {
                self.suspended.doom(id, |_| true);
            }
        }
    }

    /// What was committed is taken back: nobody can say on what the suspended transactions depend.
    pub(crate) fn doom_all(&self) {
        self.suspended.doom_all();
    }
}
