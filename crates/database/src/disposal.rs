//! Rows and indexes that are out of use, freed in slices; and views whose rows have left their space while they were read.

use crate::catalog::Space;
use crate::database::Database;
use crate::forks::Aside;
use crate::locks::Held;
use crate::private::Private;
use crate::time_share::TimeShare;
use crate::txn::Statement;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use storage::{DetachedIndex, MemorySpace, MemoryView};

/// Rows that are freed between two looks at the clock.
const GARBAGE_STEP_ROWS: usize = 128;

/// Something to be freed.
pub(crate) enum Garbage {
    Space(MemorySpace),
    Index(Box<DetachedIndex>),
    /// Index nodes of a space in use that only closed views held.
    NodesOf(Rc<Space>),
    /// Statements that cannot be rolled back any more, or were.
    Statements(Vec<Statement>, Option<Aside>),
    /// Writes that a transaction has kept to itself.
    Private(Box<Private>),
    /// Rows that a transaction had locked.
    Locks(Held),
}

impl Garbage {
    fn owns_view(&self, view: &MemoryView) -> bool {
        match self {
            Garbage::Space(space) => space.owns_view(view),
            Garbage::Index(index) => index.owns_view(view),
            _ => false,
        }
    }

    /// True while a view reads it.
    fn is_held(&self) -> bool {
        match self {
            Garbage::Space(space) => space.has_views(),
            Garbage::Index(index) => index.has_views(),
            _ => false,
        }
    }

    fn close_view(&mut self, view: MemoryView) {
        match self {
            Garbage::Space(space) => space.close_view(view),
            Garbage::Index(index) => index.close_view(view),
            _ => {}
        }
    }

    /// Frees up to about `max` rows or a stretch of nodes. Returns true while something is left.
    fn free_some(&mut self, max: usize) -> bool {
        match self {
            Garbage::Space(space) => space.dismantle_some(max),
            Garbage::Index(index) => index.release_some(),
            Garbage::NodesOf(space) => space.rows.memory().is_some_and(|rows| rows.borrow_mut().collect(max)),
            Garbage::Statements(statements, aside) => {
                for statement in statements.drain(statements.len().saturating_sub(max)..) {
                    aside.iter().for_each(|aside| aside.settle(&statement));
                }
                !statements.is_empty()
            }
            Garbage::Private(private) => private.free_some(max),
            Garbage::Locks(held) => held.free_some(max),
        }
    }
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Disposal {
    garbage: RefCell<VecDeque<Garbage>>,
    /// That the first of it has taken.
    steps: Cell<u64>,
    share: TimeShare,
    orphaned_views: RefCell<Vec<MemoryView>>,
}

impl Disposal {
    /// Has something freed, in slices.
    pub(crate) fn discard(&self, garbage: impl IntoIterator<Item = Garbage>) {
        self.garbage.borrow_mut().extend(garbage);
    }

    /// The same before anything else: somebody may wait for it.
    pub(crate) fn discard_first(&self, garbage: Garbage) {
        self.garbage.borrow_mut().push_front(garbage);
    }

    /// Frees what refers to rows and does not keep their memory: that is about to go.
    pub(crate) fn forget_rows(&self) {
        let keeps = |garbage: &Garbage| matches!(garbage, Garbage::Space(_) | Garbage::Index(_) | Garbage::NodesOf(_));
        self.garbage.borrow_mut().retain(keeps);
    }

    /// A view whose space holds other rows by now: it is closed where its rows turn up.
    pub(crate) fn close_orphaned_view(&self, view: MemoryView) {
        self.orphaned_views.borrow_mut().push(view);
    }
}

impl Database {
    pub(crate) fn discard(&self, garbage: Garbage) {
        self.disposal.discard([garbage]);
    }

    pub(crate) fn discard_indexes(&self, indexes: impl IntoIterator<Item = DetachedIndex>) {
        self.disposal.discard(indexes.into_iter().map(|index| Garbage::Index(Box::new(index))));
    }

    pub(crate) fn close_orphaned_views(&self) {
        for view in self.disposal.orphaned_views.take() {
            let mut garbage = self.disposal.garbage.borrow_mut();
            if let Some(owner) = garbage.iter_mut().find(|garbage| garbage.owns_view(&view)) {
                owner.close_view(view);
                continue;
            }
            let spaces = self.catalog.spaces();
            let mut all = spaces.iter().filter_map(|space| space.rows.memory());
            match all.find(|rows| rows.borrow().owns_view(&view)) {
                Some(rows) => rows.borrow_mut().close_view(view),
                None => self.disposal.close_orphaned_view(view),
            }
        }
    }

    /// Frees for a part of the time. Returns true while there is more to free.
    pub(crate) fn collect_slice(&self) -> bool {
        if !self.disposal.orphaned_views.borrow().is_empty() {
            self.close_orphaned_views();
        }
        let step_rows = GARBAGE_STEP_ROWS.min(self.slice_rows());
        let step = || Ok::<bool, std::convert::Infallible>(self.collect_garbage(step_rows));
        let Ok(has_more) = self.disposal.share.run(&*self.environment.clock, self.slice_rows() / step_rows, step);
        has_more
    }

    /// Frees about so many rows, or a stretch of nodes. Returns true if there may be more.
    fn collect_garbage(&self, max: usize) -> bool {
        let disposal = &self.disposal;
        let found = disposal.garbage.borrow().iter().position(|garbage| !garbage.is_held());
        let Some(mut garbage) = found.and_then(|at| disposal.garbage.borrow_mut().remove(at)) else {
            return self.arena.collect(max) > 0;
        };
        let steps = disposal.steps.get() + 1;
        if garbage.free_some(max) {
            disposal.garbage.borrow_mut().push_front(garbage);
            disposal.steps.set(steps);
        } else {
            if steps > 1 && matches!(garbage, Garbage::Space(_)) {
                tracing::info!("freed a space in {steps} steps");
            }
            disposal.steps.set(0);
        }
        true
    }

    /// Frees rows and nodes that are waiting for it until there is room for so many bytes. True if there is.
    pub(crate) fn make_room(&self, bytes: usize) -> bool {
        let has_room = || self.arena.used() + self.arena.charged() + bytes <= self.arena.limit();
        // Each time more is freed than most rows take.
        while !has_room() && self.collect_garbage(self.slice_rows()) {}
        has_room()
    }
}
