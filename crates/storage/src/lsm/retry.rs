//! When work that has failed is tried again.

use super::error::LsmError;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// After the first failure.
const DELAY_NS: u64 = 1_000_000_000;

/// Work that may fail: tried again after a second, and after each further failure after twice as long.
#[derive(Default)]
pub(crate) struct Retry {
    failures: Cell<u32>,
    at_ns: Cell<u64>,
}

impl Retry {
    /// It has failed once more. It waits for `delay_max_ns` at most.
    pub(crate) fn fail(&self, now_ns: u64, delay_max_ns: u64) {
        let delay_ns = DELAY_NS.saturating_mul(1 << self.failures.get().min(32)).min(delay_max_ns);
        self.failures.set(self.failures.get() + 1);
        self.at_ns.set(now_ns + delay_ns);
    }

    /// It has come to its end.
    pub(crate) fn succeed(&self) {
        self.failures.set(0);
        self.at_ns.set(0);
    }

    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.at_ns.get()
    }

    /// When it is due.
    pub(crate) fn at_ns(&self) -> u64 {
        self.at_ns.get()
    }

    /// Failures since it last came to its end.
    pub(crate) fn failures(&self) -> u32 {
        self.failures.get()
    }
}

/// An unreadable block or a full disk need not stay so, and a merge that is late costs room and speed only.
const MERGE_DELAY_MAX_NS: u64 = 600 * DELAY_NS;

/// Which merges of a tree fail, and why. Other trees, and the other runs of this one, are merged meanwhile.
#[derive(Default)]
pub(crate) struct MergeFailures {
    /// Runs that could not be read, by number.
    of_runs: RefCell<BTreeMap<u64, Retry>>,
    /// All else: nothing of the tree is merged until it is due.
    of_tree: Retry,
    last: RefCell<Option<Rc<LsmError>>>,
    count: Cell<u64>,
}

impl MergeFailures {
    /// A merge has failed, of which this run could not be read, if one is named. Returns true if that is news.
    pub(crate) fn note(&self, run_id: Option<u64>, now_ns: u64, error: LsmError) -> bool {
        self.count.set(self.count.get() + 1);
        *self.last.borrow_mut() = Some(Rc::new(error));
        let mut of_runs = self.of_runs.borrow_mut();
        let retry = match run_id {
            Some(run_id) => of_runs.entry(run_id).or_default(),
            None => &self.of_tree,
        };
        retry.fail(now_ns, MERGE_DELAY_MAX_NS);
        retry.failures() == 1
    }

    /// These runs were merged. Returns true if that has failed before.
    pub(crate) fn clear(&self, runs: impl Iterator<Item = u64>) -> bool {
        let has_failed = self.of_tree.failures() > 0;
        self.of_tree.succeed();
        let mut of_runs = self.of_runs.borrow_mut();
        let has_failed = runs.fold(has_failed, |failed, run_id| of_runs.remove(&run_id).is_some() || failed);
        if of_runs.is_empty() {
            *self.last.borrow_mut() = None;
        }
        has_failed
    }

    /// When anything of the tree may be merged.
    pub(crate) fn tree_due_ns(&self) -> u64 {
        self.of_tree.at_ns()
    }

    /// When this run may be merged.
    pub(crate) fn run_due_ns(&self, run_id: u64) -> u64 {
        self.of_runs.borrow().get(&run_id).map_or(0, Retry::at_ns)
    }

    /// Runs that could not be read when they were merged last.
    pub(crate) fn runs(&self) -> u64 {
        self.of_runs.borrow().len() as u64
    }

    /// Failures since the start.
    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }

    /// Why the last one failed, unless all that has failed has been merged since.
    pub(crate) fn last(&self) -> Option<Rc<LsmError>> {
        self.last.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_waits_twice_as_long_up_to_a_bound() {
        let retry = Retry::default();
        assert!(retry.is_due(0));
        for (now, due) in [(0, 1), (1, 3), (3, 7), (7, 11), (11, 15)] {
            retry.fail(now * DELAY_NS, 4 * DELAY_NS);
            assert_eq!(retry.at_ns(), due * DELAY_NS);
            assert!(!retry.is_due(due * DELAY_NS - 1) && retry.is_due(due * DELAY_NS));
        }
        retry.succeed();
        retry.fail(0, 4 * DELAY_NS);
        assert_eq!(retry.at_ns(), DELAY_NS);
    }
}
