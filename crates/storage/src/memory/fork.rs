//! A space of two states: one that everybody uses and changes, and one that will take its place, or never ([`Tree::fork`](index::Tree::fork)).
//!
//! What the other state has more than the first are the changes of one transaction, which come there a slice at a time ([`MemorySpace::apply_aside`]); whatever
//! others change meanwhile comes to both ([`MemorySpace::follow_aside`]), and concerns none of the rows of that transaction. In the end one of the
//! states stays, which costs nothing however many rows were changed.
//!
//! References. The primary index of each state has one reference to each row of its own; to a row that is in both there is only one. So a row that comes to the
//! other state by the transaction gets a reference then, and the one that goes keeps that of the first state. Whoever ends the fork has all changes
//! that were applied, and gives up what is too many, sooner or later: the references of the new rows if the first state stays ([`give_up_new`]), of the old
//! ones if it goes ([`give_up_old`]).

use super::index::MemoryIndex;
use super::space::{MemorySpace, drop_item};
use crate::engine::Change;
use index::Kept;
use std::cell::Cell;

/// That a space is forked.
pub(super) struct SpaceFork {
    id: u64,
    /// Bytes of the rows of the state that is not in place.
    row_bytes: usize,
}

thread_local! {
    static LAST_ID: Cell<u64> = const { Cell::new(0) };
}

impl MemorySpace {
    /// True if it can be forked: its indexes are trees of rows, none is being filled, and it is not forked yet.
    pub fn can_fork(&self) -> bool {
        let is_whole = self.build_id().is_none() && self.deferred.is_empty() && self.fork.is_none();
        is_whole && !self.indexes.is_empty() && self.indexes.iter().all(MemoryIndex::can_fork)
    }

    /// From now on it has two states, which are alike. Only if [`MemorySpace::can_fork`]. Returns what tells this fork from all others.
    pub fn begin_fork(&mut self) -> u64 {
        assert!(self.can_fork(), "whoever forks a space has asked whether it can be");
        self.indexes.iter_mut().for_each(MemoryIndex::fork);
        LAST_ID.set(LAST_ID.get() + 1);
        self.fork = Some(SpaceFork { id: LAST_ID.get(), row_bytes: self.row_bytes });
        LAST_ID.get()
    }

    /// The fork that it has. One ends by itself when something else than rows is changed: nothing is left then but the first state.
    pub fn fork_id(&self) -> Option<u64> {
        self.fork.as_ref().map(|fork| fork.id)
    }

    fn show_other_state(&mut self, is_shown: bool) {
        self.indexes.iter_mut().for_each(|index| index.show_base(!is_shown));
        if let Some(fork) = &mut self.fork {
            std::mem::swap(&mut self.row_bytes, &mut fork.row_bytes);
        }
    }

    /// Changes of the transaction for which it was forked come to the other state, in the order in which they were made. The space must be forked.
    pub fn apply_aside<'a>(&mut self, changes: impl Iterator<Item = &'a Change>) {
        self.show_other_state(true);
        for change in changes {
            self.swap_aside(change);
            if let Some(new) = &change.new {
                new.clone().into_raw();
            }
        }
        self.show_other_state(false);
        self.charge();
    }

    /// A change that was made to the first state comes to the other one. Does nothing without a fork.
    pub fn follow_aside(&mut self, change: &Change) {
        if self.fork.is_some() {
            self.show_other_state(true);
            self.swap_aside(change);
            self.show_other_state(false);
        }
    }

    fn swap_aside(&mut self, change: &Change) {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        for (position, index) in self.indexes.iter_mut().enumerate() {
            let is_found = index.swap(old, new, position == 0);
            debug_assert!(is_found, "nobody else has changed the rows of the transaction");
        }
        self.row_bytes += new.map_or(0, tuple::Tuple::size);
        self.row_bytes = self.row_bytes.saturating_sub(old.map_or(0, tuple::Tuple::size));
    }

    /// One of the states stays. What the other one has is freed by [`MemorySpace::collect`].
    pub fn end_fork(&mut self, kept: Kept) {
        let Some(fork) = self.fork.take() else { return };
        if kept == Kept::Changed {
            self.row_bytes = fork.row_bytes;
        }
        self.indexes.iter_mut().for_each(|index| index.end_fork(kept));
    }

    /// Something else than rows is about to change: only the first state stays.
    pub fn lose_fork(&mut self) {
        self.end_fork(Kept::Base);
    }
}

/// A change goes whose state was given up: its new row loses the reference of that state's index.
pub fn give_up_new(change: &Change) {
    if let Some(new) = &change.new {
        drop_item(new.as_raw());
    }
}

/// A change stays, and the state before it is no more: its old row loses the reference of that state's index.
pub fn give_up_old(change: &Change) {
    if let Some(old) = &change.old {
        drop_item(old.as_raw());
    }
}
