//! Is there an order of the operations on one row that explains all their answers?
//!
//! A history is linearizable if each operation can be given one moment between its asking and its answer such that the operations, done one by
//! one at these moments, give the answers that were given (Herlihy and Wing, 1990). The search is that of Wing and Gong (1993), which tries
//! the operations under way in every order, in the form of Lowe's just-in-time linearization (2016): events are taken in the order of time, and only when an
//! operation is answered must it have had its moment, it and whatever had to come before it. Kept is the set of all configurations that are
//! still possible, each a state of the row and the operations under way that have had their moment already. Equal configurations are one,
//! which is the memory that keeps the search from trying the same thing twice. Operations on different rows do not concern each other, so each
//! row is searched alone.
//!
//! An operation without an answer has its moment before the server's death or never. It may be left out at any time, so a configuration that
//! differs from another one only in that fewer of these were used can do all that the other one can, and the other one is dropped. Without this the
//! configurations would double with each lost connection.
//!
//! An answered operation that changes nothing is given its moment as soon as the state fits: that takes nothing from anybody, so trying it
//! later as well would only multiply the configurations.
//!
//! Refused: depth-first search with undo, which is faster on histories that are in order but keeps a bit for each operation of the whole history
//! in each remembered configuration.

use std::collections::{BTreeMap, VecDeque};

/// The value of a row; `None` if there is no such row.
type State = Option<u64>;

/// What was asked of a row, with what was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This was there.
    Read(Option<u64>),
    /// Puts a value there, whatever was.
    Write(u64),
    /// Puts a value where nothing is.
    Insert(u64),
    /// Found that something is there.
    Occupied,
    /// Puts a value where some other is.
    Change(u64),
    /// Found something else than this value, or nothing.
    Differs(u64),
    /// Puts the second value where the first is.
    Swap(u64, u64),
    /// Removes whatever is there.
    Clear,
    /// Removed this.
    Removed(Option<u64>),
    /// Removed something.
    Emptied,
    /// Removes this value if it is there; without an answer.
    Remove(u64),
    /// Removed this value if it was there, which the answer does not tell.
    Without(u64),
}

impl Action {
    /// It changes nothing.
    fn only_looks(self) -> bool {
        matches!(self, Action::Read(_) | Action::Occupied | Action::Differs(_))
    }

    /// The state after it, if its answer fits the state before.
    fn step(self, state: State) -> Option<State> {
        match self {
            Action::Read(seen) => (seen == state).then_some(state),
            Action::Write(value) => Some(Some(value)),
            Action::Insert(value) => state.is_none().then_some(Some(value)),
            Action::Occupied => state.is_some().then_some(state),
            Action::Change(value) => state.is_some().then_some(Some(value)),
            Action::Differs(value) => (state != Some(value)).then_some(state),
            Action::Swap(old, new) => (state == Some(old)).then_some(Some(new)),
            Action::Clear => Some(None),
            Action::Removed(old) => (state == old).then_some(None),
            Action::Emptied => state.is_some().then_some(None),
            Action::Remove(old) => (state == Some(old)).then_some(None),
            Action::Without(old) => Some(state.filter(|value| *value != old)),
        }
    }
}

/// An operation on one row.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// What.
    pub action: Action,
    /// When it was asked.
    pub invoked_at: u64,
    /// When it was answered, or when its fate was sealed without an answer.
    pub decided_at: u64,
    /// It was answered. If not, it may be left out.
    pub is_answered: bool,
}

/// A possible present: the state, and those under way that have had their moment.
#[derive(Clone, PartialEq, Eq)]
struct Configuration {
    state: State,
    /// Sorted.
    used: Vec<usize>,
}

impl Configuration {
    fn with(&self, at: usize, state: State) -> Self {
        let mut used = self.used.clone();
        if let Err(place) = used.binary_search(&at) {
            used.insert(place, at);
        }
        Configuration { state, used }
    }

    fn without(mut self, at: usize) -> Self {
        self.used.retain(|other| *other != at);
        self
    }
}

/// Configurations of which none is covered by another one that came before it.
#[derive(Default)]
struct Configurations {
    by_state: BTreeMap<State, Vec<Vec<usize>>>,
}

impl Configurations {
    /// Adds a configuration unless one is there that can do all that this one can. True if it was added.
    fn add(&mut self, new: Configuration, operations: &[Single]) -> bool {
        // More is used up of what may be left out, or less is done of what must be.
        let is_covered = |used: &Vec<usize>| {
            let looks = |at: &usize| operations[*at].is_answered && operations[*at].action.only_looks();
            used.iter().all(|at| new.used.binary_search(at).is_ok() || looks(at))
                && new.used.iter().all(|at| used.binary_search(at).is_ok() || !operations[*at].is_answered)
        };
        let known = self.by_state.entry(new.state).or_default();
        if known.iter().any(is_covered) {
            return false;
        }
        known.push(new.used);
        true
    }

    fn is_empty(&self) -> bool {
        self.by_state.is_empty()
    }

    fn into_all(self) -> impl Iterator<Item = Configuration> {
        self.by_state
            .into_iter()
            .flat_map(|(state, all)| all.into_iter().map(move |used| Configuration { state, used }))
    }
}

/// Gives those under way that only look their moment, where they see what they saw.
fn look(mut here: Configuration, under_way: &[usize], operations: &[Single]) -> Configuration {
    for &at in under_way {
        let operation = &operations[at];
        if operation.is_answered
            && operation.action.only_looks()
            && operation.action.step(here.state).is_some()
            && let Err(place) = here.used.binary_search(&at)
        {
            here.used.insert(place, at);
        }
    }
    here
}

/// All configurations in which `last` has had its moment, starting from one in which it has not.
fn reach(from: Configuration, last: usize, under_way: &[usize], operations: &[Single], found: &mut Configurations) {
    let mut tried = Configurations::default();
    tried.add(from.clone(), operations);
    // Those that used fewer operations come first: they cover the others.
    let mut open = VecDeque::from([from]);
    while let Some(here) = open.pop_front() {
        for &at in under_way.iter().filter(|at| !operations[**at].action.only_looks()) {
            if here.used.binary_search(&at).is_ok() {
                continue;
            }
            let Some(state) = operations[at].action.step(here.state) else { continue };
            let next = look(here.with(at, state), under_way, operations);
            let is_there = next.used.binary_search(&last).is_ok();
            if is_there {
                found.add(next.clone().without(last), operations);
            }
            // Whoever only looked has had its moment on the way; further changes are for others to need.
            if !is_there && tried.add(next.clone(), operations) {
                open.push_back(next);
            }
        }
    }
}

/// Looks for an order. Returns the number of the first operation, by the time of answering, that no order explains.
pub fn first_impossible(initial: Option<u64>, operations: &[Single]) -> Option<usize> {
    // Asked before answered at the same moment: moments that touch overlap.
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(operations.len() * 2);
    for (at, operation) in operations.iter().enumerate() {
        events.push((operation.invoked_at, false, at));
        // What may still happen after everything else decides nothing.
        if operation.is_answered || operation.decided_at < u64::MAX {
            events.push((operation.decided_at, true, at));
        }
    }
    events.sort_unstable();
    let mut possible = Configurations::default();
    possible.add(Configuration { state: initial, used: Vec::new() }, operations);
    let mut under_way: Vec<usize> = Vec::new();
    for (_, is_answer, last) in events {
        if !is_answer {
            under_way.push(last);
            if operations[last].action.only_looks() {
                let looked = possible.into_all().map(|configuration| look(configuration, &under_way, operations));
                possible = looked.fold(Configurations::default(), |mut all, configuration| {
                    all.add(configuration, operations);
                    all
                });
            }
            continue;
        }
        let mut found = Configurations::default();
        for configuration in possible.into_all() {
            if configuration.used.binary_search(&last).is_ok() {
                found.add(configuration.without(last), operations);
                continue;
            }
            if !operations[last].is_answered {
                found.add(configuration.clone(), operations);
            }
            reach(configuration, last, &under_way, operations, &mut found);
        }
        if found.is_empty() {
            return Some(last);
        }
        possible = found;
        under_way.retain(|at| *at != last);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(action: Action, invoked_at: u64, decided_at: u64) -> Single {
        Single { action, invoked_at, decided_at, is_answered: true }
    }

    fn unknown(action: Action, invoked_at: u64, decided_at: u64) -> Single {
        Single { action, invoked_at, decided_at, is_answered: false }
    }

    use Action::*;

    #[test]
    fn operations_one_after_the_other_have_one_order() {
        let good = [answered(Read(None), 1, 2), answered(Write(1), 3, 4), answered(Read(Some(1)), 5, 6)];
        assert_eq!(first_impossible(None, &good), None);
        let stale = [answered(Write(1), 1, 2), answered(Write(2), 3, 4), answered(Read(Some(1)), 5, 6)];
        assert_eq!(first_impossible(None, &stale), Some(2));
    }

    #[test]
    fn operations_at_the_same_time_may_have_any_order() {
        let good = [
            answered(Write(1), 1, 10),
            answered(Write(2), 2, 9),
            answered(Read(Some(2)), 3, 4),
            answered(Read(Some(1)), 5, 6),
        ];
        assert_eq!(first_impossible(None, &good), None);
        // Seen, then not seen any more.
        let back = [answered(Write(1), 1, 10), answered(Read(Some(1)), 2, 3), answered(Read(None), 4, 5)];
        assert_eq!(first_impossible(None, &back), Some(2));
    }

    #[test]
    fn an_operation_without_an_answer_may_be_left_out_but_not_come_late() {
        let write = unknown(Write(1), 1, 10);
        for seen in [None, Some(1)] {
            assert_eq!(first_impossible(None, &[write, answered(Read(seen), 11, 12)]), None);
        }
        let late = [write, answered(Read(None), 11, 12), answered(Read(Some(1)), 13, 14)];
        assert_eq!(first_impossible(None, &late), Some(2));
        let taken_back = [write, answered(Read(Some(1)), 2, 3), answered(Read(None), 11, 12)];
        assert_eq!(first_impossible(None, &taken_back), Some(2));
    }

    #[test]
    fn comparing_and_setting_has_one_winner() {
        let one = [answered(Write(1), 1, 2), answered(Swap(1, 2), 3, 8), answered(Differs(1), 4, 7)];
        assert_eq!(first_impossible(None, &one), None);
        let two = [answered(Write(1), 1, 2), answered(Swap(1, 2), 3, 8), answered(Swap(1, 3), 4, 7)];
        assert!(first_impossible(None, &two).is_some());
    }

    #[test]
    fn inserts_and_removals_see_what_is_there() {
        let good = [
            answered(Insert(1), 1, 2),
            answered(Occupied, 3, 4),
            answered(Change(2), 5, 6),
            answered(Removed(Some(2)), 7, 8),
            answered(Removed(None), 9, 10),
            answered(Insert(3), 11, 12),
            answered(Clear, 13, 14),
            answered(Read(None), 15, 16),
        ];
        assert_eq!(first_impossible(None, &good), None);
        let twice = [answered(Insert(1), 1, 2), answered(Insert(2), 3, 4)];
        assert_eq!(first_impossible(None, &twice), Some(1));
    }

    #[test]
    fn many_lost_connections_do_not_double_the_work() {
        let mut operations: Vec<Single> = (0..200).map(|at| unknown(Write(at), at, u64::MAX)).collect();
        operations.push(answered(Read(Some(7)), 300, 301));
        operations.push(answered(Read(Some(8)), 302, 303));
        assert_eq!(first_impossible(None, &operations), None);
        operations.push(answered(Read(Some(7)), 304, 305));
        assert_eq!(first_impossible(None, &operations), Some(202));
    }

    /// Compares with trying every order of small histories.
    #[test]
    fn the_verdict_is_that_of_trying_every_order() {
        use runtime::{Randomness, SeededRandomness};
        fn exists(state: State, left: &mut Vec<Single>) -> bool {
            let Some(bound) = left.iter().map(|one| one.decided_at).min() else { return true };
            for at in 0..left.len() {
                let one = left[at];
                if one.invoked_at > bound {
                    continue;
                }
                left.remove(at);
                let is_found = one.action.step(state).is_some_and(|next| exists(next, left))
                    || !one.is_answered && exists(state, left);
                left.insert(at, one);
                if is_found {
                    return true;
                }
            }
            false
        }
        let source = SeededRandomness::new(1);
        let below = |bound: u64| source.next_u64() % bound;
        let (mut good, mut bad) = (0, 0);
        for _ in 0..3000 {
            let count = 2 + below(5);
            let mut operations: Vec<Single> = (0..count)
                .map(|_| {
                    let value = below(3);
                    let action = match below(6) {
                        0 => Write(value),
                        1 => Swap(value, below(3)),
                        2 => Insert(value),
                        3 => Differs(value),
                        4 => Clear,
                        _ => Read((value > 0).then_some(value)),
                    };
                    let invoked_at = below(20);
                    Single { action, invoked_at, decided_at: invoked_at + 1 + below(10), is_answered: below(4) > 0 }
                })
                .collect();
            let expected = exists(None, &mut operations);
            assert_eq!(first_impossible(None, &operations).is_none(), expected, "{operations:?}");
            match expected {
                true => good += 1,
                false => bad += 1,
            }
        }
        assert!(good > 100 && bad > 100, "{good} good, {bad} bad");
    }
}
