//! The contract of a workload.

use crate::doors::Tongue;
use crate::engines::Engines;
use crate::history::{History, Outcome, Refusal, Violation};
use crate::operation::{Operation, User};
use crate::value::Value;
use runtime::{Randomness, SeededRandomness};

/// Reads what is there now, as a user with all rights, while no client is at work.
pub type View<'a> = dyn FnMut(Operation) -> Result<Value, Refusal> + 'a;

/// Work with something that must always hold.
pub trait Workload: Send + Sync {
    /// One word, by which it is chosen.
    fn name(&self) -> &'static str;

    /// One line for those who choose.
    fn about(&self) -> &'static str;

    /// Makes empty spaces, functions and users, by a user with all rights and before any client. Works over what an earlier run left.
    fn setup(&self, engines: Engines) -> Vec<Operation>;

    /// Fewest clients that make sense of it.
    fn clients_min(&self) -> usize {
        2
    }

    /// A client. All clients of a run have different numbers, from 0, and the same seed.
    fn client(&self, number: usize, seed: u64) -> Box<dyn Client>;

    /// Looks for the first broken promise. The history begins at `setup`; a workload may be checked any number of times as it grows.
    fn check(&self, seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation>;
}

/// One client: asks, is told, asks again.
pub trait Client: Send {
    /// Who it logs in as.
    fn user(&self) -> User {
        User::Admin
    }

    /// The door that it comes by. None: the binary protocol.
    fn tongue(&self) -> Option<Tongue> {
        None
    }

    /// What it asks for next.
    fn next(&mut self) -> Operation;

    /// What came of the last `next`.
    fn answered(&mut self, outcome: &Outcome);
}

/// Random choices that a seed determines.
pub struct Dice {
    source: SeededRandomness,
}

impl Dice {
    /// The choices of one client.
    pub fn new(seed: u64, client: usize) -> Self {
        // Neighbouring seeds give unrelated numbers only after they were stirred once.
        let stirred = SeededRandomness::new(seed ^ (client as u64) << 48).next_u64();
        Dice { source: SeededRandomness::new(stirred) }
    }

    /// A number from 0 up to, not including, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a choice needs something to choose from");
        // The bias of a 64-bit remainder is far below what a workload could notice.
        self.source.next_u64() % bound
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Numbers that no other client of the run gives out.
pub(crate) struct Unique {
    next: u64,
}

impl Unique {
    pub(crate) fn new(client: usize) -> Self {
        Unique { next: (client as u64 + 1) << 32 }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// All rows of a space through an index, as a checker needs them.
pub(crate) fn rows(view: &mut View<'_>, operation: Operation) -> Result<Vec<Value>, Violation> {
    match view(operation.clone()) {
        Ok(Value::Array(rows)) => Ok(rows),
        Ok(other) => Err(Violation::wrong(format!("{operation:?} was answered by {other}"))),
        Err(refusal) => Err(Violation::lost(format!("{operation:?} was refused: {}", refusal.text))),
    }
}
