//! Transactions that survive a wait.
//!
//! The idea. A transaction applies its changes in place, which is right as long as nobody else runs. When its fiber has to wait, the
//! transaction is *suspended*: its changes are rolled back, the newest first, and kept. At its next statement it is *resumed*: they are
//! applied again. In between others commit. So every transaction sees what is committed and its own changes.
//!
//! ```text
//! begin  read a  write b  | wait            | read c  commit
//!                         | b rolled back   | b applied again
//!                         | others commit;  |
//!                         | if one of them touched a or b: TransactionConflict from here on
//! ```
//!
//! What can and cannot happen between transactions, anomaly by anomaly, is on a page of its own: docs/isolation.md.
//!
//! For this to be as if the transaction had run at the moment of its commit, nothing that it has seen may have changed: the keys that it has
//! read, found absent or changed are remembered as ordered bytes, single ones and intervals, and a commit dooms the suspended
//! transactions that it touches ([`Reads`]). The first to commit wins, nobody waits for anybody, and a transaction that goes on has seen
//! one state of the database. Applying its changes again always succeeds, because no key of them was touched either. One that has only read
//! is not doomed: it goes on in the state before that commit (`views.rs`).
//!
//! A transaction that never waits pays next to nothing for that: of reads in memory it keeps notes ([`Notes`](crate::notes::Notes)), of its
//! changes what undoes them, and only a wait makes keys and intervals of both. There are at most as many suspended transactions as fibers;
//! what each remembers is bounded, too.
//!
//! That costs the length of the transaction at each wait. A transaction of more than a few statements therefore keeps its changes to itself
//! from its first wait on (`private.rs`).
//!
//! Refused: versions of rows (each read would pay for transactions that wait), and locks (each wait could be a deadlock).

use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::notes::NotePlace;
use crate::reads::{Fate, Point, Readers, Reads, above};
use crate::session::Context;
use crate::statistics::increment;
use crate::timeouts::Timeouts;
use crate::txn::{Statement, Txn};
use std::cell::Cell;
use std::rc::Rc;
use storage::{Change, IndexDef, IndexKind, IteratorKind, Key, MemoryIterator, ordered_key};
use tuple::{IndexId, SpaceId, Tuple};

/// What a read has seen of an index.
pub(crate) enum Seen {
    /// One key, present or not: ordered bytes of the declared parts.
    Key(Vec<u8>),
    /// Everything between two keys of the index's whole order, both included; to the end if there is no second.
    Range(Vec<u8>, Option<Vec<u8>>),
}

/// What a scan has seen that ended with the row `last`, or at its end.
pub(crate) fn seen_by(def: &IndexDef, kind: IteratorKind, key: Key<'_>, last: Option<&[u8]>) -> Seen {
    use IteratorKind::{All, Eq, Ge, Gt, Le, Lt, Req};
    let is_ordered = def.kind == IndexKind::Tree || kind == Eq && key.part_count > 0;
    if !is_ordered || def.compare_def.supports_ordered().is_err() {
        return Seen::Range(Vec::new(), None);
    }
    let mut prefix = Vec::with_capacity(32);
    def.key_def.ordered_of_key(key.parts, key.part_count, &mut prefix);
    let is_whole = key.part_count as usize == def.key_def.part_count();
    let (low, high) = match kind {
        _ if key.part_count == 0 => (Vec::new(), None),
        Eq | Req if def.is_unique && is_whole && def.key_def.first_nil_of(key.parts).is_none() => {
            return Seen::Key(prefix);
        }
        Eq | Req => (prefix.clone(), Some(above(prefix))),
        All | Ge => (prefix, None),
        Gt => (above(prefix), None),
        Le => (Vec::new(), Some(above(prefix))),
        Lt => (Vec::new(), Some(prefix)),
        _ => return Seen::Range(Vec::new(), None),
    };
    match last.and_then(|row| ordered_key(&def.compare_def, row)) {
        Some(last) if kind.is_reverse() => Seen::Range(last, high),
        Some(last) => Seen::Range(low, Some(last)),
        None => Seen::Range(low, high),
    }
}

fn add_seen(reads: &Rc<Reads>, space_id: SpaceId, index_id: IndexId, seen: Seen) {
    #[cfg(feature = "planted-bugs")]
    if matches!(seen, Seen::Range(..)) && runtime::planted::is_planted(runtime::planted::Plant::ForgetRanges) {
        return reads.touch(space_id);
    }
    match seen {
        Seen::Key(key) => reads.add_key(space_id, index_id, key),
        Seen::Range(low, high) => reads.add_range(space_id, index_id, low, high),
    }
}

/// The keys that a statement has looked at: that of the row which goes or comes, and those that no other row may have.
fn remember_statement(reads: &Rc<Reads>, statement: &Statement) {
    let Statement { space, change, .. } = statement;
    if space.rows.may_wait() {
        // Remembered while it was looked at.
        return;
    }
    for (row, is_put) in [(&change.old, false), (&change.new, true)] {
        if let Some(row) = row {
            for_each_seen(space, row.data(), is_put, |index_id, seen| add_seen(reads, space.id, index_id, seen));
        }
    }
}

/// The primary key of a row and, if it is put in, those keys that no other row may have.
fn for_each_seen(space: &Space, row: &[u8], is_put: bool, mut each: impl FnMut(IndexId, Seen)) {
    if !space.has_rows() {
        return;
    }
    for def in space.index_defs().iter() {
        if def.id != 0 && !(is_put && def.is_unique) {
            continue;
        }
        def.for_each_entry(row, |entry| {
            if def.id == 0 || !def.key_def.has_null_in(entry) {
                let key = ordered_key(&def.key_def, entry);
                each(def.id, key.map_or(Seen::Range(Vec::new(), None), Seen::Key));
            }
        });
    }
}

/// What stands between transactions.
#[derive(Default)]
pub(crate) struct Isolation {
    pub(crate) readers: Rc<Readers>,
    last_txn_id: Cell<u64>,
    pub(crate) timeouts: Timeouts,
}

impl Isolation {
    /// A number for a transaction.
    pub(crate) fn next_txn_id(&self) -> u64 {
        self.last_txn_id.set(self.last_txn_id.get() + 1);
        self.last_txn_id.get()
    }
}

impl Database {
    /// Transactions whose fibers wait.
    pub fn suspended(&self) -> usize {
        self.isolation.readers.suspended()
    }

    /// The context's fiber is about to wait: the changes of its transaction are rolled back until it is resumed. Does nothing if there is no
    /// transaction or it has nothing to lose.
    pub fn suspend(&self, context: &Context) {
        let taken = context.txn.borrow_mut().take();
        let Some(mut txn) = taken else { return };
        let has_nothing = txn.statements().is_empty() && txn.reads.is_none() && txn.notes.is_empty();
        if context.must_resume.get() || txn.is_aborted() || has_nothing {
            *context.txn.borrow_mut() = Some(txn);
            return;
        }
        assert!(!txn.is_suspended, "a transaction is suspended once");
        let reads = self.settle(&mut txn);
        if txn.has_changed_schema() {
            self.withdraw_schema(&mut txn);
        }
        let is_rolled_back = txn.private.is_some() || txn.has_changed_schema();
        let in_place = if is_rolled_back { &[] } else { txn.statements() };
        for statement in in_place.iter().rev() {
            debug_assert!(statement.space.rows.has_applied(&statement.change), "what is rolled back is there");
            statement.space.rows.undo(&statement.change);
        }
        txn.is_suspended = true;
        txn.has_waited = true;
        txn.was_suspended = true;
        reads.suspend(txn.is_reader());
        context.must_resume.set(true);
        *context.txn.borrow_mut() = Some(txn);
    }

    /// Applies the changes of the context's transaction again, if it is suspended.
    ///
    /// Errors: `TransactionConflict` if another transaction has changed what it depends on. It is rolled back then, and every statement tried in it gets the
    /// same error until it is rolled back. `ReadViewAborted` if it was in a view that was ended at a bound. `TransactionTimeout` if its time is up.
    pub fn resume(&self, context: &Context) -> Result<()> {
        if !context.must_resume.get() {
            return Ok(());
        }
        let taken = context.txn.borrow_mut().take();
        let Some(mut txn) = taken else { return Ok(()) };
        if let Some(code) = txn.aborted() {
            *context.txn.borrow_mut() = Some(txn);
            return Err(Error::new(code, &[]));
        }
        let fate = match txn.reads.as_ref().filter(|_| txn.is_suspended) {
            Some(reads) => reads.resume(),
            None => Fate::Doomed,
        };
        let code = match fate {
            Fate::Alive => {
                txn.view = txn.reads.as_ref().and_then(|reads| reads.view());
                if txn.view.is_some() {
                    // What it has written was rolled back.
                    self.dispose_of_private(txn.private.take());
                }
                if txn.has_changed_schema() {
                    self.restore_schema(&mut txn);
                } else if txn.private.is_none() && !self.make_private(&mut txn) {
                    txn.apply_again();
                }
                txn.is_suspended = false;
                context.must_resume.set(false);
                *context.txn.borrow_mut() = Some(txn);
                return Ok(());
            }
            Fate::ViewEnded => ErrorCode::ReadViewAborted,
            Fate::Hit | Fate::Doomed => ErrorCode::TransactionConflict,
        };
        if txn.is_suspended && code == ErrorCode::TransactionConflict {
            increment(&self.statistics.conflicts);
        }
        *context.txn.borrow_mut() = Some(txn);
        self.abort_txn(context, code);
        Err(Error::new(code, &[]))
    }

    /// What every statement, read, savepoint and commit begins with.
    #[inline]
    pub(crate) fn enter(&self, context: &Context) -> Result<()> {
        if context.must_resume.get() { self.resume(context) } else { Ok(()) }
    }

    // What is remembered.

    /// True if the open transaction can be suspended later: one that consists of a single statement only in a trigger, or for what foreign keys make of it.
    #[inline]
    pub(crate) fn remembers(&self, context: &Context, space: &Space) -> bool {
        // What a view shows does not change, and nobody else sees a space that the transaction has made.
        let txn = context.txn.borrow();
        let shown = txn.as_ref().filter(|txn| txn.view.is_none() && !txn.schema.is_own(space.id));
        let is_explicit = shown.map(|txn| !txn.is_implicit());
        is_explicit.is_some_and(|is_explicit| {
            is_explicit || context.trigger_depth.get() > 0 || space.has_triggers() || space.has_constraints()
        })
    }

    /// True if what the open transaction reads, beside what it writes, is to be remembered.
    #[inline]
    fn remembers_reads(&self, context: &Context, space: &Space) -> bool {
        self.remembers(context, space) && !self.forgets_reads(context)
    }

    fn reads_of<'a>(&self, txn: &'a mut Txn) -> &'a Rc<Reads> {
        let id = txn.id();
        txn.reads.get_or_insert_with(|| Reads::new(id, &self.isolation.readers))
    }

    /// Calls `add` with what the open transaction depends on.
    fn with_reads(&self, context: &Context, add: impl FnOnce(&Rc<Reads>)) {
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            add(self.reads_of(txn));
        }
    }

    /// Makes keys and intervals of what the transaction has noted of its reads in memory, and of the rows that it has changed there.
    pub(crate) fn settle(&self, txn: &mut Txn) -> Rc<Reads> {
        let reads = Rc::clone(self.reads_of(txn));
        txn.notes.take(|space, index_id, seen| add_seen(&reads, space.id, index_id, seen));
        let (statements, schema) = txn.take_unremembered();
        for statement in statements.iter().filter(|statement| !schema.is_own(statement.space.id)) {
            reads.touch(statement.space.id);
            // Nobody else writes to what it has emptied.
            if !schema.has_emptied(statement.space.id) {
                remember_statement(&reads, statement);
            }
        }
        reads
    }

    /// Statements of a transaction are about to be rolled back: what they have seen counts nevertheless.
    #[cold]
    pub(crate) fn remember_undone(&self, txn: &mut Txn) {
        if !txn.is_suspended {
            self.settle(txn);
        }
    }

    /// Lets `note` write down what the open transaction reads in memory, if that is to be remembered.
    #[inline]
    fn note(&self, context: &Context, space: &Space, note: impl FnOnce(&mut Txn)) {
        if !self.remembers_reads(context, space) {
            return;
        }
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            if txn.notes.are_many() {
                self.settle(txn);
            }
            note(txn);
        }
    }

    /// The open transaction has read rows in memory: those that key and kind mean, up to the row `last` or to the end.
    #[inline]
    pub(crate) fn note_scan(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: IndexId,
        kind: IteratorKind,
        key: Key<'_>,
        last: Option<&Tuple>,
    ) {
        self.note(context, space, |txn| txn.notes.add(space, index_id, kind, key, last.cloned()));
    }

    /// The open transaction has gone on with a scan of rows in memory, from the row `after` or its beginning to the row `last` or its end.
    #[inline]
    pub(crate) fn note_step(
        &self,
        context: &Context,
        space: &Rc<Space>,
        iterator: &MemoryIterator,
        place: &mut NotePlace,
        (after, last): (Option<&Tuple>, Option<&Tuple>),
    ) {
        self.note(context, space, |txn| {
            let id = txn.id();
            *place = txn.notes.go_on(id, *place, space, iterator, (after, last));
        });
    }

    /// The open transaction depends on what lies between two keys in an index's whole order, both included; to the end if there is no `high`.
    pub(crate) fn remember_range(
        &self,
        context: &Context,
        space: &Space,
        index_id: IndexId,
        (low, high): (Vec<u8>, Option<Vec<u8>>),
    ) {
        if self.remembers_reads(context, space) {
            self.remember(context, space.id, index_id, Seen::Range(low, high));
        }
    }

    pub(crate) fn remember(&self, context: &Context, space_id: SpaceId, index_id: IndexId, seen: Seen) {
        if let Some(tried) = context.txn.borrow_mut().as_mut().and_then(|txn| txn.tried.as_mut()) {
            return tried.push((space_id, index_id, seen));
        }
        self.with_reads(context, |reads| add_seen(reads, space_id, index_id, seen));
    }

    /// Something is tried that may have to wait and be tried again.
    pub(crate) fn begin_try(&self, context: &Context) {
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            txn.tried = Some(Vec::new());
        }
    }

    /// The try is over. What it has looked at counts only if it has come to something.
    pub(crate) fn end_try(&self, context: &Context, counts: bool) {
        let tried = context.txn.borrow_mut().as_mut().and_then(|txn| txn.tried.take());
        for (space_id, index_id, seen) in tried.into_iter().flatten().filter(|_| counts) {
            self.remember(context, space_id, index_id, seen);
        }
    }

    /// A change of the definition of a space concerns the open transaction.
    pub(crate) fn remember_space(&self, context: &Context, space: &Space) {
        if self.remembers(context, space) {
            self.with_reads(context, |reads| reads.touch(space.id));
        }
    }

    /// The open transaction depends on everything in an index.
    pub fn remember_all(&self, context: &Context, space: &Space, index_id: IndexId) {
        if self.remembers_reads(context, space) {
            self.remember(context, space.id, index_id, Seen::Range(Vec::new(), None));
        }
    }

    /// The open transaction depends on the row that a full key of an index names, or on its absence.
    #[inline]
    pub(crate) fn remember_key(&self, context: &Context, space: &Rc<Space>, index_id: IndexId, key: Key<'_>) {
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::ForgetReads) {
            return self.remember_space(context, space);
        }
        if !space.rows.may_wait() {
            return self.note_scan(context, space, index_id, IteratorKind::Eq, key, None);
        }
        if self.remembers_reads(context, space)
            && let Some(def) = space.index_def(index_id)
        {
            self.remember(context, space.id, index_id, seen_by(&def, IteratorKind::Eq, key, None));
        }
    }

    /// The open transaction depends on the primary key of a row that fits its space.
    #[inline]
    pub(crate) fn remember_key_of(&self, context: &Context, space: &Space, row: &[u8]) {
        if self.remembers(context, space) {
            self.remember_row(context, space, row, false);
        }
    }

    /// The open transaction depends on the keys of the rows that a statement takes out and puts in.
    #[cold]
    pub(crate) fn remember_rows(&self, context: &Context, space: &Space, old: Option<&Tuple>, new: Option<&Tuple>) {
        if self.remembers(context, space) {
            old.iter().for_each(|row| self.remember_row(context, space, row.data(), false));
            new.iter().for_each(|row| self.remember_row(context, space, row.data(), true));
        }
    }

    /// Remembers the primary key of a row and, if it is to be put in, those keys that no other row may have.
    fn remember_row(&self, context: &Context, space: &Space, row: &[u8], is_put: bool) {
        for_each_seen(space, row, is_put, |index_id, seen| self.remember(context, space.id, index_id, seen));
    }

    // Who is doomed.

    /// A change is committed: those are met who depend on what it has changed.
    #[cold]
    pub(crate) fn doom_readers(&self, space: &Space, change: &Change) {
        if space.is_system() {
            self.doom_readers_of_definition(space, change);
        }
        let has_ranges = self.isolation.readers.has_ranges(space.id);
        space.rows.for_each_key(&space.index_defs(), change, |def, own, whole| {
            if def.is_unique
                && let Some(own) = own
            {
                self.isolation.readers.meet_key(Point::new(space.id, def.id, own));
            }
            if has_ranges {
                self.isolation.readers.meet_ranges(space.id, def.id, whole);
            }
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
                self.isolation.readers.doom_space(SpaceId(id));
            }
        }
    }

    /// The indexes of a space are about to be other ones.
    pub(crate) fn doom_readers_of_space(&self, space_id: SpaceId) {
        self.isolation.readers.doom_space(space_id);
    }

    /// The log lost what was committed: nobody can say on what the suspended transactions depend.
    pub(crate) fn doom_all(&self) {
        self.isolation.readers.doom_all();
    }
}
