//! Divides the transaction thread's time between long work and everybody else.
//!
//! A slice of the work takes a part of the time that others had since the last one. So it takes a fifth of a thread that is busy, and most of one
//! that is not, where a slice is as short as a request's time.

use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use runtime::Clock;
use runtime::fiber::{self, Wake};
use std::cell::Cell;

/// The work gets one part in this many of a busy thread's time.
const PARTS: u64 = 5;
/// Shortest and longest slice.
const SLICE_NS_MIN: u64 = 50_000;
const SLICE_NS_MAX: u64 = 1_000_000;

/// One kind of work.
#[derive(Default)]
pub(crate) struct TimeShare {
    /// When its last slice ended.
    ended_ns: Cell<u64>,
}

impl TimeShare {
    /// Takes steps until there is nothing more to do, or the slice is over: by the clock, or after so many steps. `step` returns true while there
    /// is more. Returns what it returned last.
    pub(crate) fn run<E>(
        &self,
        clock: &dyn Clock,
        steps_max: usize,
        mut step: impl FnMut() -> std::result::Result<bool, E>,
    ) -> std::result::Result<bool, E> {
        let began = clock.monotonic_ns();
        let slice_ns = (began.saturating_sub(self.ended_ns.get()) / (PARTS - 1)).clamp(SLICE_NS_MIN, SLICE_NS_MAX);
        let mut has_more = true;
        for _ in 0..steps_max.max(1) {
            has_more = step()?;
            self.ended_ns.set(clock.monotonic_ns());
            if !has_more || self.ended_ns.get() - began >= slice_ns {
                break;
            }
        }
        Ok(has_more)
    }
}

/// What a statement is told that takes longer than it may.
const OUT_OF_TIME: &str = "statement timeout";

/// True for the error of a statement that has taken longer than it may.
pub fn is_out_of_time(error: &Error) -> bool {
    error.is(ErrorCode::ProcLua) && error.message() == OUT_OF_TIME
}

/// Others have a turn, for so long at least. Yields. Errors: the fiber was cancelled; the statement has taken longer than it may.
pub(crate) fn give_turn(context: &Context, ns: u64) -> Result<()> {
    if fiber::sleep(ns) == Wake::Cancelled {
        return Err(Error::new(ErrorCode::ProcLua, &[&"fiber is cancelled"]));
    }
    match context.is_out_of_time() {
        true => Err(Error::new(ErrorCode::ProcLua, &[&OUT_OF_TIME])),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use runtime::ManualClock;

    #[test]
    fn work_takes_a_part_of_the_time_and_ends_with_its_steps() {
        let clock = ManualClock::default();
        let share = TimeShare::default();
        let taken = |share: &TimeShare, clock: &ManualClock, steps_max| {
            let began = clock.monotonic_ns();
            let step = || {
                clock.advance(10_000);
                Ok::<bool, ()>(true)
            };
            assert!(share.run(clock, steps_max, step).unwrap());
            clock.monotonic_ns() - began
        };
        taken(&share, &clock, usize::MAX);
        // Others had two milliseconds, or none, or a second.
        clock.advance(2_000_000);
        assert_eq!(taken(&share, &clock, usize::MAX), 500_000);
        assert_eq!(taken(&share, &clock, usize::MAX), SLICE_NS_MIN);
        clock.advance(1_000_000_000);
        assert_eq!(taken(&share, &clock, usize::MAX), SLICE_NS_MAX);
        clock.advance(2_000_000);
        assert_eq!(taken(&share, &clock, 3), 30_000);
        assert!(!share.run(&clock, 3, || Ok::<bool, ()>(false)).unwrap());
    }
}
