//! A tree of two states: the *base*, which is in place, and another that will take its place, or never.
//!
//! The idea. A fork is a read view that can be changed: its root and the tree's are exchanged, which costs nothing, as often as one likes. So whoever
//! changes a million entries does it a slice at a time, and between two slices everybody else finds the base, and changes it, too.
//!
//! ```text
//! fork | changed ...  | base in place  | changed ... | base in place  | one of them stays
//!                       others use it                  others use it
//! ```
//!
//! Invariants:
//! * Nodes of the fork's epoch or older are shared by both states: each copies them before it changes them, as it does because of views. Younger ones
//!   belong to the state that has made them.
//! * So of the shared nodes that one state throws away the other may have them still: [`State`] says who it was, and they are freed if that one stays.
//!
//! The state that does not stay is a root whose own nodes are freed by [`Tree::collect`]. Until then the fork stays a view, so that none of the shared nodes
//! that are passed on the way is freed or used again.

use super::{Inner, Leaf, Root, Tree};

/// The state that is not in place.
pub(super) struct Fork {
    /// Nodes of this epoch or older are shared.
    epoch: u64,
    root: Root,
    len: usize,
    is_base_in_place: bool,
}

/// Who has thrown a node away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The tree, which has one state.
    Only,
    Base,
    Changed,
}

/// What is left of a state that was given up.
pub(super) struct Abandoned {
    /// Of the fork: younger nodes are to be freed.
    epoch: u64,
    /// Nodes that are looked at next, with their heights.
    nodes: Vec<(*mut u8, usize)>,
}

/// Which state becomes the tree when a fork ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The other one.
    Changed,
    /// The one that was in place.
    Base,
}

/// Both kinds of node start with their epoch.
fn epoch_of(node: *mut u8) -> u64 {
    // SAFETY: called for nodes that are not freed yet.
    unsafe { *node.cast::<u64>() }
}

impl Tree {
    /// From now on the tree has two states, which are alike; the base is in place. It must not be forked.
    pub fn fork(&mut self) {
        assert!(self.fork.is_none(), "a tree is forked once at a time");
        let view = self.open_view();
        self.fork = Some(Fork { epoch: view.epoch, root: view.root, len: view.len, is_base_in_place: true });
    }

    /// True between `fork` and `end_fork`.
    pub fn is_forked(&self) -> bool {
        self.fork.is_some()
    }

    /// Puts the base in place, or the other state. Does nothing without a fork.
    pub fn show_base(&mut self, is_base: bool) {
        let Some(fork) = self.fork.as_mut().filter(|fork| fork.is_base_in_place != is_base) else { return };
        fork.is_base_in_place = is_base;
        std::mem::swap(&mut self.root, &mut fork.root);
        std::mem::swap(&mut self.len, &mut fork.len);
        // Cursors, and the last leaf, are of the other state.
        self.version += 1;
    }

    /// One of the states becomes the tree. What only the other one has is freed by `collect`. Does nothing without a fork.
    pub fn end_fork(&mut self, kept: Kept) {
        self.show_base(kept == Kept::Base);
        let Some(fork) = self.fork.take() else { return };
        let given_up = if kept == Kept::Base { State::Changed } else { State::Base };
        // Shared nodes that the state which goes has thrown away: the other one has them, or has thrown them away, too.
        self.garbage.retain(|garbage| garbage.state != given_up || epoch_of(garbage.node) > fork.epoch);
        for garbage in self.garbage.iter_mut().filter(|garbage| garbage.state != State::Only) {
            // A view of the base may have been opened since the other state has thrown it away.
            (garbage.state, garbage.retired) = (State::Only, self.epoch);
        }
        if fork.root.node.is_null() {
            self.forget_view(fork.epoch);
        } else {
            let nodes = vec![(fork.root.node, fork.root.height)];
            self.abandoned.push(Abandoned { epoch: fork.epoch, nodes });
        }
    }

    /// Who throws away what leaves the tree now.
    pub(super) fn state_in_place(&self) -> State {
        match &self.fork {
            None => State::Only,
            Some(fork) if fork.is_base_in_place => State::Base,
            Some(_) => State::Changed,
        }
    }

    /// How many of the views are no views of others.
    pub(super) fn own_views(&self) -> usize {
        usize::from(self.fork.is_some()) + self.abandoned.len()
    }

    fn forget_view(&mut self, epoch: u64) {
        let at = self.views.iter().position(|&view| view == epoch).expect("a fork is a view of its tree");
        self.views.swap_remove(at);
    }

    /// The tree is about to go with all its nodes: only the state in place is looked at.
    pub(super) fn forget_forks(&mut self) {
        if let Some(fork) = self.fork.take() {
            self.forget_view(fork.epoch);
        }
        while let Some(abandoned) = self.abandoned.pop() {
            self.forget_view(abandoned.epoch);
        }
    }

    /// Frees up to about `max` nodes of states that were given up. Returns how many were looked at.
    pub(super) fn free_abandoned(&mut self, max: usize) -> usize {
        let mut looked_at = 0;
        // What is thrown away during a fork is one of its states'.
        while looked_at < max
            && self.fork.is_none()
            && let Some(abandoned) = self.abandoned.last_mut()
        {
            let Some((node, height)) = abandoned.nodes.pop() else {
                let epoch = abandoned.epoch;
                self.abandoned.pop();
                self.forget_view(epoch);
                continue;
            };
            looked_at += 1;
            // Own nodes of the state are freed here only, and the shared ones are kept by its view.
            if epoch_of(node) <= abandoned.epoch {
                continue;
            }
            if height > 0 {
                // SAFETY: nodes above the leaves are inner nodes.
                let inner = unsafe { &*node.cast::<Inner>() };
                abandoned.nodes.extend(inner.children[..inner.len].iter().map(|child| (*child, height - 1)));
            }
            self.retire(node);
        }
        looked_at
    }
}

const _: () = assert!(std::mem::offset_of!(Leaf, epoch) == 0 && std::mem::offset_of!(Inner, epoch) == 0);
