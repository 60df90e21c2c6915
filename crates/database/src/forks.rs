//! Transactions of many rows: what they have changed is put in place a slice at a time, and shows at one moment.
//!
//! The idea. A space in memory can be *forked*: it has a second state then, which changes places with the first one at no cost
//! ([`MemorySpace::begin_fork`](storage::MemorySpace::begin_fork)). A transaction of a million rows that commits forks the spaces that it has changed, puts its rows
//! in the second states slice by slice, and in the end these are what everybody sees, with the record in the log.
//!
//! ```text
//! commit | 2,000 rows | others | 2,000 rows | others | ... | the log, and the new state is everybody's
//!                       read and write what was there;
//!                       what they commit comes to both states
//! ```
//!
//! Meanwhile the transaction is one that waits: who commits a change of something that it depends on dooms it, as ever, and its second states are given up. So
//! whatever others commit else concerns none of its rows, and can be done to both states in any order. Nobody waits for it.
//!
//! Invariants:
//! * A fork is that of one transaction which commits. Others that commit many rows to the same space meanwhile do it at one go.
//! * Whatever changes a forked space for good passes [`Database::tell_readers`].
//!
//! Refused: versions of rows (each read would pay); keeping others from writing to the space meanwhile (what reads and writes without a transaction would wait
//! between the two, and lose what came there).

use crate::catalog::Space;
use crate::database::Database;
use crate::disposal::Garbage;
use crate::error::ErrorCode;
use crate::reads::{Fate, Point, Reads};
use crate::session::Context;
use crate::statistics::increment;
use crate::time_share::TimeShare;
use crate::txn::{Statement, Txn};
use hashbrown::HashSet;
use runtime::fiber;
use std::cell::RefCell;
use std::rc::Rc;
use storage::{Change, Kept, give_up_new, give_up_old};

/// Rows between two looks at the clock.
const STEP_ROWS: usize = 64;

/// The second states of a transaction that commits.
struct Fork {
    reads: Rc<Reads>,
    spaces: Vec<(Rc<Space>, u64)>,
}

impl Fork {
    fn has(&self, space: &Rc<Space>) -> bool {
        self.spaces.iter().any(|(forked, _)| Rc::ptr_eq(forked, space))
    }

    /// True if nothing that the transaction depends on was changed, and all of its states are there.
    fn is_whole(&self) -> bool {
        let is_there = |(space, id): &(Rc<Space>, u64)| {
            space.rows.memory().is_some_and(|rows| rows.borrow().fork_id() == Some(*id))
        };
        self.reads.fate() == Fate::Alive && self.spaces.iter().all(is_there)
    }

    fn end(&self, database: &Database, kept: Kept) {
        for (space, id) in &self.spaces {
            let Some(rows) = space.rows.memory() else { continue };
            if rows.borrow().fork_id() == Some(*id) {
                rows.borrow_mut().end_fork(kept);
            }
            database.discard(Garbage::NodesOf(Rc::clone(space)));
        }
    }
}

/// All that there are.
#[derive(Default)]
pub(crate) struct Forks(RefCell<Vec<Rc<Fork>>>);

/// Statements that were put in second states of these spaces: of one row in each of their changes a reference is left that belonged to an index.
pub(crate) struct Aside {
    spaces: Vec<Rc<Space>>,
    kept: Kept,
    /// The keys of unique indexes that these changes are about.
    points: HashSet<Point>,
}

impl Aside {
    /// True if a statement was put in a second state.
    fn has(&self, statement: &Statement) -> bool {
        self.spaces.iter().any(|space| Rc::ptr_eq(space, &statement.space))
    }

    /// The reference that is too many goes.
    pub(crate) fn settle(&self, statement: &Statement) {
        if self.has(statement) {
            match self.kept {
                Kept::Changed => give_up_old(&statement.change),
                Kept::Base => give_up_new(&statement.change),
            }
        }
    }
}

impl Database {
    /// Second states go along with what was committed to the first ones; those of transactions that this has met are given up.
    pub(crate) fn follow_in_forks(&self, statements: &[Statement]) {
        for fork in self.forks.0.borrow().iter() {
            if !fork.is_whole() {
                fork.end(self, Kept::Base);
                continue;
            }
            #[cfg(feature = "planted-bugs")]
            if runtime::planted::is_planted(runtime::planted::Plant::ForgetFollowing) {
                continue;
            }
            for statement in statements.iter().filter(|statement| fork.has(&statement.space)) {
                if let Some(rows) = statement.space.rows.memory() {
                    rows.borrow_mut().follow_aside(&statement.change);
                }
            }
        }
    }

    /// Takes a change back that second states may have followed already: they are given up.
    #[cold]
    pub(crate) fn take_back_told(&self, space: &Space, change: &Change) {
        if let Some(rows) = space.rows.memory() {
            rows.borrow_mut().lose_fork();
        }
        space.rows.undo(change);
    }

    /// As [`Database::doom_readers`] for each of many statements, of whose keys there is a set.
    pub(crate) fn doom_readers_of_many(&self, statements: &[Statement], aside: &Aside) {
        let readers = &self.isolation.readers;
        let is_summed_up = |statement: &Statement| aside.has(statement) && !readers.has_ranges(statement.space.id);
        for space in aside.spaces.iter().filter(|space| !readers.has_ranges(space.id)) {
            readers.meet_keys(space.id, &aside.points);
        }
        for statement in statements.iter().filter(|statement| !is_summed_up(statement)) {
            self.doom_readers(&statement.space, &statement.change);
        }
    }

    /// True if the commit of a transaction may wait, because it is put in place in slices.
    pub(crate) fn commits_in_slices(&self, txn: &Txn) -> bool {
        txn.private.is_some() && !txn.has_changed_schema() && self.are_many(txn.statements().len())
    }

    /// The open transaction is about to commit: brings its private writes in place, a slice at a time if they are many and can be. What is left is for
    /// [`Database::bring_in_place`]. May wait. If it meets another one it is aborted.
    pub(crate) fn bring_in_slices(&self, context: &Context) {
        let is_long = || context.txn.borrow().as_ref().is_some_and(|txn| self.commits_in_slices(txn));
        if !is_long() || fiber::current().is_none() || context.trigger_depth.get() > 0 {
            return;
        }
        // It may have had to be resumed, with which it may have ended.
        if self.enter(context).is_err() || !is_long() {
            return;
        }
        let taken = context.txn.borrow_mut().take();
        let Some(mut txn) = taken else { return };
        let spaces = self.fork_written(&txn);
        let is_done = spaces.is_empty() || self.put_in_slices(&mut txn, spaces);
        *context.txn.borrow_mut() = Some(txn);
        if !is_done {
            increment(&self.statistics.conflicts);
            self.abort_txn(context, ErrorCode::TransactionConflict);
        }
    }

    /// Forks the spaces of which a transaction has changed many rows, where that can be done.
    fn fork_written(&self, txn: &Txn) -> Vec<(Rc<Space>, u64)> {
        let mut counts: Vec<(&Rc<Space>, usize)> = Vec::new();
        let mut at = 0;
        for Statement { space, .. } in txn.statements() {
            if counts.get(at).is_none_or(|(known, _)| !Rc::ptr_eq(known, space)) {
                let found = counts.iter().position(|(known, _)| Rc::ptr_eq(known, space));
                at = found.unwrap_or(counts.len());
                if found.is_none() {
                    counts.push((space, 0));
                }
            }
            counts[at].1 += 1;
        }
        // What foreign keys ask is asked of rows that are in place.
        if self.locks.definitions.get() > 0 || counts.iter().any(|(space, _)| space.has_constraints()) {
            return Vec::new();
        }
        let fork = |(space, count): (&Rc<Space>, usize)| {
            let rows = space.rows.memory().filter(|_| self.are_many(count) && !space.is_being_changed())?;
            let mut rows = rows.borrow_mut();
            rows.can_fork().then(|| (Rc::clone(space), rows.begin_fork()))
        };
        counts.into_iter().filter_map(fork).collect()
    }

    /// Puts the private writes of a transaction in forked spaces in slices, and then all others. Waits. False: it has met another one, and nothing of it is left.
    fn put_in_slices(&self, txn: &mut Txn, spaces: Vec<(Rc<Space>, u64)>) -> bool {
        let reads = self.settle(txn);
        reads.suspend(false);
        (txn.is_suspended, txn.has_waited, txn.was_suspended) = (true, true, true);
        let fork = Rc::new(Fork { reads, spaces });
        self.forks.0.borrow_mut().push(Rc::clone(&fork));
        let mut points = HashSet::new();
        let applied = self.apply_in_slices(txn.statements(), &fork, &mut points);
        self.forks.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, &fork));
        let is_alive = fork.is_whole() && !self.are_taken(txn);
        fork.reads.resume();
        txn.is_suspended = false;
        fork.end(self, if is_alive { Kept::Changed } else { Kept::Base });
        let spaces = fork.spaces.iter().map(|(space, _)| Rc::clone(space)).collect();
        self.dispose_of_private(txn.private.take());
        if is_alive {
            txn.apply_again_but(|space| fork.has(space));
            txn.aside = Some(Aside { spaces, kept: Kept::Changed, points });
            increment(&self.statistics.sliced_commits);
            return true;
        }
        let mut statements = txn.take_all_statements();
        let rest = statements.split_off(applied);
        self.discard(Garbage::Statements(rest, None));
        self.discard(Garbage::Statements(statements, Some(Aside { spaces, kept: Kept::Base, points: HashSet::new() })));
        false
    }

    /// Applies statements to second states, collects their keys, and lets others have turns meanwhile. Returns how many were applied: fewer than there are if
    /// the fork has ended.
    fn apply_in_slices(&self, statements: &[Statement], fork: &Fork, points: &mut HashSet<Point>) -> usize {
        let (clock, step_rows) = (&*self.environment.clock, STEP_ROWS.min(self.slice_rows()));
        let pause_ns = self.config.borrow().slice_pause_ns;
        let (share, mut at) = (TimeShare::default(), 0);
        loop {
            let step = || {
                let end = statements.len().min(at + step_rows);
                for (space, _) in &fork.spaces {
                    let own = statements[at..end].iter().filter(|statement| Rc::ptr_eq(&statement.space, space));
                    let Some(rows) = space.rows.memory() else { continue };
                    rows.borrow_mut().apply_aside(own.clone().map(|statement| &statement.change));
                    let defs = space.index_defs();
                    for Statement { change, .. } in own {
                        space.rows.for_each_key(&defs, change, |def, key, _| {
                            points.extend(key.filter(|_| def.is_unique).map(|key| Point::new(space.id, def.id, key)));
                        });
                    }
                }
                at = end;
                Ok::<bool, std::convert::Infallible>(end < statements.len())
            };
            let Ok(has_more) = share.run(clock, self.slice_rows() / step_rows, step);
            if !has_more {
                return at;
            }
            // Not before the next turn of the loop. Nobody ends a commit that is under way.
            fiber::sleep(pause_ns);
            if !fork.is_whole() {
                return at;
            }
        }
    }
}
