//! Sequences: generators of integers.

use crate::error::{Error, ErrorCode, Result};
use crate::session::UserId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// One row of `_sequence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceDef {
    /// Number.
    pub id: u32,
    /// Who made it.
    pub owner: UserId,
    /// Name.
    pub name: String,
    /// Added for every value; not 0.
    pub step: i64,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// First value.
    pub start: i64,
    /// Accepted and kept; nothing depends on it.
    pub cache: i64,
    /// Starts again when the end is reached.
    pub is_cyclic: bool,
}

/// A sequence and where it stands.
///
/// Invariant: the value only moves on by `next`; a rolled back transaction does not take it back, so no value that was
/// handed out comes again while the process lives.
pub struct Sequence {
    def: RefCell<Rc<SequenceDef>>,
    value: Cell<Option<i64>>,
}

impl Sequence {
    /// A sequence that has not started.
    pub fn new(def: SequenceDef) -> Self {
        Sequence { def: RefCell::new(Rc::new(def)), value: Cell::new(None) }
    }

    /// The definition.
    pub fn def(&self) -> Rc<SequenceDef> {
        Rc::clone(&self.def.borrow())
    }

    pub(crate) fn set_def(&self, def: Rc<SequenceDef>) {
        *self.def.borrow_mut() = def;
    }

    /// The last value, if it has started.
    pub fn value(&self) -> Option<i64> {
        self.value.get()
    }

    /// Sets or clears the last value.
    pub fn set_value(&self, value: Option<i64>) {
        self.value.set(value);
    }

    /// Moves on and gives the new value.
    ///
    /// Errors: `SequenceOverflow` at the end of a sequence that is not cyclic.
    pub fn next(&self) -> Result<i64> {
        let def = self.def();
        let next = match self.value.get() {
            None => def.start,
            // A value that was set beyond the end that counting begins at.
            Some(value) if def.step > 0 && value < def.min => def.min,
            Some(value) if def.step < 0 && value > def.max => def.max,
            Some(value) => match value.checked_add(def.step).filter(|next| (def.min..=def.max).contains(next)) {
                Some(next) => next,
                None if def.is_cyclic && def.step > 0 => def.min,
                None if def.is_cyclic => def.max,
                None => return Err(Error::new(ErrorCode::SequenceOverflow, &[&def.name])),
            },
        };
        self.value.set(Some(next));
        Ok(next)
    }

    /// Takes notice of a value that was inserted by hand: the sequence goes on behind it.
    pub fn advance(&self, value: i64) -> bool {
        let def = self.def();
        let is_ahead = match self.value.get() {
            None => {
                // Not started: a value before the start leaves it so.
                if def.step > 0 { value >= def.start } else { value <= def.start }
            }
            Some(current) if def.step > 0 => value > current,
            Some(current) => value < current,
        };
        if is_ahead {
            self.value.set(Some(value));
        }
        is_ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(step: i64, min: i64, max: i64, is_cyclic: bool) -> Sequence {
        let start = if step > 0 { min } else { max };
        let name = "s".to_string();
        Sequence::new(SequenceDef { id: 1, owner: 1, name, step, min, max, start, cache: 0, is_cyclic })
    }

    #[test]
    fn a_sequence_counts_wraps_or_overflows() {
        let up = sequence(2, 1, 5, false);
        assert_eq!([up.next().ok(), up.next().ok(), up.next().ok(), up.next().ok()], [Some(1), Some(3), Some(5), None]);
        let around = sequence(-1, 1, 2, true);
        assert_eq!([around.next().ok(), around.next().ok(), around.next().ok()], [Some(2), Some(1), Some(2)]);
    }

    /// As Tarantool.
    #[test]
    fn what_follows_a_value_that_was_set_out_of_range() {
        let next = |sequence: &Sequence, value: i64| {
            sequence.set_value(Some(value));
            sequence.next().ok()
        };
        let up = sequence(1, 1, 10, false);
        assert_eq!([next(&up, 0), next(&up, -5), next(&up, 10), next(&up, 100)], [Some(1), Some(1), None, None]);
        assert_eq!(next(&sequence(1, 1, 10, true), 100), Some(1));
        let down = sequence(-1, -10, -1, false);
        assert_eq!([next(&down, 5), next(&down, -100)], [Some(-1), None]);
        assert_eq!(next(&sequence(-1, -10, -1, true), -100), Some(-1));
    }

    #[test]
    fn a_value_inserted_by_hand_moves_the_sequence_on() {
        let sequence = sequence(1, 1, 100, false);
        assert!(sequence.advance(10));
        assert_eq!(sequence.next().ok(), Some(11));
        assert!(!sequence.advance(5));
        assert_eq!(sequence.next().ok(), Some(12));
    }
}
