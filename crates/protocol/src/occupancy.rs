//! How much of its time the event loop has something to do.
//!
//! What a thread that waits for most of its time does by itself is done sooner than another one could be woken for it. To one that always has something to do
//! the same work costs other clients' answers, and a second processor is better used.

/// What is known of a turn counts for this many turns.
const TURNS: u64 = 64;
/// A loop that waits less than one part in this many of its time has always something to do.
const BUSY_PARTS: u64 = 4;
/// And one that waits more than one part in this many has not.
const IDLE_PARTS: u64 = 2;

/// The last turns, and how much of them was waiting.
#[derive(Default)]
pub(crate) struct Occupancy {
    waited_ns: u64,
    turns_ns: u64,
    is_busy: bool,
}

impl Occupancy {
    /// True if the loop has always something to do.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Takes notice of a turn: how long it was, its wait for events included, and how long that was, in nanoseconds. True if the loop has always something to
    /// do.
    pub(crate) fn note_turn(&mut self, turn_ns: u64, waited_ns: u64) -> bool {
        self.turns_ns = self.turns_ns - self.turns_ns / TURNS + turn_ns;
        self.waited_ns = self.waited_ns - self.waited_ns / TURNS + waited_ns.min(turn_ns);
        let parts = if self.is_busy { IDLE_PARTS } else { BUSY_PARTS };
        self.is_busy = self.waited_ns.saturating_mul(parts) < self.turns_ns;
        self.is_busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(occupancy: &mut Occupancy, count: usize, turn_ns: u64, waited_ns: u64) -> bool {
        (0..count).fold(false, |_, _| occupancy.note_turn(turn_ns, waited_ns))
    }

    #[test]
    fn a_loop_is_busy_while_it_hardly_waits() {
        let mut occupancy = Occupancy::default();
        assert!(!turns(&mut occupancy, 1000, 100_000, 60_000), "waits for more than half of its time");
        assert!(turns(&mut occupancy, 1000, 100_000, 10_000));
        assert!(turns(&mut occupancy, 1000, 100_000, 40_000), "stays what it was");
        assert!(!turns(&mut occupancy, 1000, 100_000, 60_000));
        assert!(!turns(&mut occupancy, 1000, 100_000, 40_000), "stays what it was");
    }

    #[test]
    fn a_long_sleep_ends_it() {
        let mut occupancy = Occupancy::default();
        assert!(turns(&mut occupancy, 1000, 100_000, 0));
        assert!(!occupancy.note_turn(1_000_000_000, 999_900_000));
        assert!(!turns(&mut occupancy, 10, 100_000, 0));
        assert!(turns(&mut occupancy, 1000, 100_000, 0));
    }
}
