//! Answers on their way to a client: those that may leave, and those that wait for the log.
//!
//! ```text
//! answers --> ready (may leave) ------------------------------> socket
//!        \--> parked, marked with a log position --(durable)--> ready
//! ```
//!
//! Parked answers leave in the order in which they were parked. Where answers name their requests, ready ones pass them; where the client
//! counts on their order, a ready answer behind a parked one is parked, too.
//!
//! Invariants:
//! * The marks stand for the parked bytes, one behind the other: their ends only grow, and the last one is the end of the bytes.
//! * The positions of the marks never fall.

use database::Result;
use std::collections::VecDeque;
use wal::Position;

/// A buffer that has grown beyond this is given back when it is empty.
const BUFFER_KEPT_MAX: usize = 64 << 10;

/// A parked answer.
struct Mark {
    position: Position,
    /// End of its bytes in `parked`, counted from the beginning of all time.
    end: u64,
    /// The door's name for its request, for an error in its place.
    tag: u64,
    /// It waits for nothing itself, only for the answers before it.
    is_behind: bool,
}

/// Bytes on their way to the client.
#[derive(Default)]
pub(crate) struct Output {
    ready: Vec<u8>,
    parked: Vec<u8>,
    /// Bytes of `parked` that were moved to `ready` before, in all.
    moved: u64,
    marks: VecDeque<Mark>,
    /// Answers leave in the order in which they were made.
    is_ordered: bool,
}

impl Output {
    pub(crate) fn new(is_ordered: bool) -> Self {
        Output { is_ordered, ..Output::default() }
    }

    /// Adds an answer, which leaves once the log is durable up to `awaited`, or as soon as its turn has come. Errors: those of `encode`; nothing
    /// is added then.
    #[inline]
    pub(crate) fn add(
        &mut self,
        awaited: Option<Position>,
        tag: u64,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let is_parked = awaited.is_some() || self.is_ordered && self.has_parked();
        let out = if is_parked { &mut self.parked } else { &mut self.ready };
        let start = out.len();
        if let Err(error) = encode(out) {
            out.truncate(start);
            return Err(error);
        }
        if is_parked {
            self.park(awaited, tag);
        }
        Ok(())
    }

    fn park(&mut self, awaited: Option<Position>, tag: u64) {
        let end = self.moved + self.parked.len() as u64;
        let mut position = awaited.unwrap_or_default();
        if let Some(last) = self.marks.back() {
            assert!(last.end <= end, "an answer ends behind the one before it");
            position = position.max(last.position);
        }
        self.marks.push_back(Mark { position, end, tag, is_behind: awaited.is_none() });
    }

    /// Lets answers leave that wait for nothing beyond `durable`.
    pub(crate) fn release(&mut self, durable: Position) {
        let mut end = self.moved;
        while let Some(mark) = self.marks.front()
            && mark.position <= durable
        {
            end = mark.end;
            self.marks.pop_front();
        }
        let count = (end - self.moved) as usize;
        if count == 0 {
            return;
        }
        assert!(count <= self.parked.len(), "the bytes of a parked answer are there");
        if count == self.parked.len() && self.ready.is_empty() {
            std::mem::swap(&mut self.ready, &mut self.parked);
        } else {
            self.ready.extend_from_slice(&self.parked[..count]);
            self.parked.drain(..count);
        }
        self.moved = end;
    }

    /// The log failed: every parked answer becomes an error, which `encode` writes for its tag. Those that only waited for their turn leave as
    /// they are. False: `encode` had no words for one of them, and what comes behind it is dropped, too.
    pub(crate) fn fail(&mut self, mut encode: impl FnMut(&mut Vec<u8>, u64)) -> bool {
        let (mut start, mut is_told) = (0, true);
        for mark in self.marks.drain(..) {
            let end = (mark.end - self.moved) as usize;
            let before = self.ready.len();
            match mark.is_behind {
                _ if !is_told => {}
                true => self.ready.extend_from_slice(&self.parked[start..end]),
                false => {
                    encode(&mut self.ready, mark.tag);
                    is_told = self.ready.len() > before;
                }
            }
            start = end;
        }
        assert!(start == self.parked.len(), "every parked byte belongs to an answer");
        self.moved += self.parked.len() as u64;
        self.parked.clear();
        is_told
    }

    /// What may leave; whoever takes it leaves it empty.
    pub(crate) fn ready(&mut self) -> &mut Vec<u8> {
        &mut self.ready
    }

    /// Gives back a buffer that was large once.
    pub(crate) fn shrink(&mut self) {
        if self.parked.is_empty() && self.parked.capacity() > BUFFER_KEPT_MAX {
            self.parked = Vec::new();
        }
    }

    /// Bytes of answers that are not with the socket yet.
    pub(crate) fn held(&self) -> usize {
        self.ready.len() + self.parked.len()
    }

    pub(crate) fn has_parked(&self) -> bool {
        !self.marks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use database::Error;

    fn add(output: &mut Output, awaited: Option<i64>, text: &str) {
        let encode = |out: &mut Vec<u8>| {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        };
        output.add(awaited.map(Position), text.len() as u64, encode).expect("it is encoded");
    }

    fn ready(output: &Output) -> &str {
        std::str::from_utf8(&output.ready).expect("text")
    }

    #[test]
    fn parked_answers_leave_in_order_and_ready_ones_pass_them() {
        let mut output = Output::new(false);
        for (position, text) in [(5, "five"), (7, "seven"), (6, "six")] {
            add(&mut output, Some(position), text);
        }
        add(&mut output, None, "read,");
        output.release(Position(4));
        assert_eq!(ready(&output), "read,");
        output.release(Position(6));
        assert_eq!(ready(&output), "read,five");
        output.release(Position(7));
        assert_eq!(ready(&output), "read,fivesevensix");
        assert!(!output.has_parked());
    }

    #[test]
    fn ordered_answers_leave_in_the_order_in_which_they_were_made() {
        let mut output = Output::new(true);
        add(&mut output, None, "first,");
        add(&mut output, Some(5), "five,");
        add(&mut output, None, "read,");
        add(&mut output, Some(7), "seven,");
        add(&mut output, None, "last");
        output.release(Position(4));
        assert_eq!(ready(&output), "first,");
        output.release(Position(5));
        assert_eq!(ready(&output), "first,five,read,");
        output.release(Position(9));
        assert_eq!(ready(&output), "first,five,read,seven,last");
        assert!(!output.has_parked() && output.parked.is_empty());
        add(&mut output, None, ",free");
        assert_eq!(ready(&output), "first,five,read,seven,last,free");
    }

    #[test]
    fn parked_answers_become_errors_when_the_log_fails() {
        for is_ordered in [false, true] {
            let mut output = Output::new(is_ordered);
            add(&mut output, Some(5), "done");
            add(&mut output, None, "read");
            add(&mut output, Some(6), "again!");
            output.fail(|out, tag| out.extend_from_slice(format!("[{tag}]").as_bytes()));
            let expected = if is_ordered { "[4]read[6]" } else { "read[4][6]" };
            assert_eq!(ready(&output), expected);
            assert!(!output.has_parked() && output.held() == expected.len());
        }
    }

    #[test]
    fn nothing_is_told_behind_an_error_without_words() {
        let mut output = Output::new(true);
        add(&mut output, Some(5), "done");
        add(&mut output, Some(6), "again!");
        add(&mut output, None, "read");
        let is_told = output.fail(|out, tag| {
            if tag == 4 {
                out.extend_from_slice(b"[4]");
            }
        });
        assert!(!is_told && !output.has_parked());
        assert_eq!(ready(&output), "[4]");
    }

    #[test]
    fn an_answer_that_cannot_be_made_leaves_nothing() {
        let mut output = Output::new(true);
        add(&mut output, Some(5), "done");
        let result = output.add(None, 1, |out| {
            out.push(b'x');
            Err(Error::system("no"))
        });
        assert!(result.is_err());
        output.release(Position(5));
        assert_eq!(ready(&output), "done");
    }
}
