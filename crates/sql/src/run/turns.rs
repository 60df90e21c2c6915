//! Turns and memory of a statement that is run: when others have a turn, and what it may have at once.

use super::Run;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Slot;
use crate::value::Value;
use database::Database;
use runtime::fiber;
use std::cell::Cell;
use std::rc::Rc;

/// Bytes that the sorts, hash tables and own tables of one statement may take.
pub const MEMORY_MAX: usize = 256 << 20;
/// Bytes that all statements may have together, for these and for the values at hand.
pub const STATEMENTS_BYTES_MAX: usize = 2 << 30;
/// Bytes that a statement takes of them at once.
const GRANTED_AT_ONCE: usize = 1 << 20;
/// Bytes of one text that an expression makes.
pub(crate) const LENGTH_MAX: usize = 64 << 20;
/// Bytes of values that the expressions of one row work through where nobody may have a turn meanwhile: in checks, defaults and generated columns.
pub(crate) const ROW_WORK_MAX: usize = 64 << 20;
/// How long they may take for it, beyond which they are refused: expressions that look at a value again and again.
const ROW_WORK_NS_MAX: u64 = 1_000_000_000;
/// Bytes of the values of a row and of its expressions, all in all.
const HELD_MAX: usize = 256 << 20;
/// Rows between two looks at the clock.
pub(super) const STEPS_PER_LOOK: u32 = 16;
/// Values with fewer bytes are no step of their own.
const LIGHT_BYTES: usize = 1024;
/// Bytes of values that are worked through in one step.
const BYTES_PER_STEP: usize = 256;
/// Between two looks whether somebody waits for a turn.
const LOOK_NS: u64 = 50_000;
/// The same while others ask: much less than one of their requests takes, all in all, so that they hardly notice.
const SHORT_LOOK_NS: u64 = 5_000;
/// So long after somebody has asked, the next request is expected.
const EXPECTING_NS: u64 = 500_000;
/// Before the first look: a short statement is done by then.
pub(super) const FIRST_LOOK_NS: u64 = 200_000;

/// Whether others may have a turn while something is run.
pub(super) enum Waits {
    /// They may: what has been done so far is part of a transaction, or can be seen by others.
    Freely,
    /// They may not: one row is looked at and changed, and nothing remembers what was seen. True: a turn would be due.
    Alone(bool),
    /// They may not: a statement of somebody else's is in the middle of a row. So many bytes are left, and when it began.
    Never(usize, u64),
}

fn reserve(memory: &Cell<usize>, more: usize) -> Result<()> {
    let all = memory.get().saturating_add(more);
    if all > STATEMENTS_BYTES_MAX {
        let what = format!("all statements and cursors would need more than {} MiB", STATEMENTS_BYTES_MAX >> 20);
        return Err(Error::new(Condition::OutOfMemory, what)
            .hint("Values, sorts, groups, joins and cursors of the others are in the way: try again later."));
    }
    memory.set(all);
    Ok(())
}

/// What outlives a statement, the rows of a cursor, has of the bytes of all statements.
pub struct Granted {
    memory: Rc<Cell<usize>>,
    used: usize,
    bytes: usize,
}

impl Granted {
    /// Nothing yet.
    pub fn of(database: &Database) -> Self {
        Granted { memory: Rc::clone(&crate::Sql::of(database).memory), used: 0, bytes: 0 }
    }

    /// Takes so many more. Errors: `OutOfMemory`.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        let more = self.used.saturating_sub(self.bytes).next_multiple_of(GRANTED_AT_ONCE);
        if more > 0 {
            reserve(&self.memory, more)?;
            self.bytes += more;
        }
        Ok(())
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.memory.set(self.memory.get().saturating_sub(self.bytes));
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if self.granted > 0 {
            let memory = &crate::Sql::of(self.database).memory;
            memory.set(memory.get().saturating_sub(self.granted));
        }
    }
}

impl Run<'_> {
    /// The same run, which fails where others should have a turn: [`Run::wants_txn`] tells then that it is to be tried again in a transaction.
    pub(crate) fn without_txn(mut self) -> Self {
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::WaitWithoutTxn) {
            return self;
        }
        self.waits = Waits::Alone(false);
        self
    }

    /// True if it failed because others should have had a turn.
    pub(crate) fn wants_txn(&self) -> bool {
        matches!(self.waits, Waits::Alone(true))
    }

    /// When the statement is ended, by the clock of the fibers; none: never.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// Bytes of values that are held: see [`Run::hold`].
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// So many are held again, as before.
    #[inline]
    pub(crate) fn hold_again(&mut self, before: usize) {
        self.held = before;
    }

    /// A value with so many bytes stays while others are computed. Errors: `LimitExceeded`.
    #[inline]
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<()> {
        self.held = self.held.saturating_add(bytes);
        if self.held <= HELD_MAX {
            return self.check_granted();
        }
        let what = format!("the values of a row and its expressions would take more than {} MiB", HELD_MAX >> 20);
        Err(Error::new(Condition::LimitExceeded, what))
    }

    /// A value is computed for a place of the frame. Errors: `LimitExceeded`.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot, value: Value) -> Result<()> {
        self.held = self.held.saturating_sub(self.frame[slot].weight());
        let bytes = value.weight();
        self.frame[slot] = value;
        self.hold(bytes)
    }

    /// A row is changed now: what was begun without a transaction is done.
    pub(crate) fn has_changed(&mut self) {
        if matches!(self.waits, Waits::Alone(_)) {
            self.waits = Waits::Freely;
        }
    }

    /// Is to be called before whatever waits. Errors: nothing may wait here.
    pub(crate) fn check_may_wait(&mut self) -> Result<()> {
        match &mut self.waits {
            Waits::Freely => Ok(()),
            Waits::Alone(wants_txn) => {
                *wants_txn = true;
                Err(Error::new(Condition::Serialization, "a statement that waits needs a transaction"))
            }
            Waits::Never(..) => {
                let what = "nothing can wait in the expression of a check, a default or a generated column";
                Err(Error::new(Condition::Unsupported, what))
            }
        }
    }

    /// Values with so many bytes are worked through. May wait. Errors: as [`Run::tick`]; `LimitExceeded` where nothing may wait, and this is too much.
    #[inline]
    pub(crate) fn weigh(&mut self, bytes: usize) -> Result<()> {
        if bytes < LIGHT_BYTES {
            return Ok(());
        }
        self.weigh_heavy(bytes)
    }

    #[inline(never)]
    fn weigh_heavy(&mut self, bytes: usize) -> Result<()> {
        let Waits::Never(left, began_ns) = &mut self.waits else {
            return self.tick_many(u32::try_from(bytes / BYTES_PER_STEP).unwrap_or(u32::MAX / 2));
        };
        let refused = |what: String| Error::new(Condition::LimitExceeded, what);
        *left = left.checked_sub(bytes).ok_or_else(|| {
            let mib = ROW_WORK_MAX >> 20;
            refused(format!(
                "the expressions of a row would work through more than {mib} MiB in its checks and columns"
            ))
        })?;
        if fiber::now_ns().saturating_sub(*began_ns) > ROW_WORK_NS_MAX {
            return Err(refused("the expression of a check or a column takes longer than a second for one row".into()));
        }
        Ok(())
    }

    /// Something was done that may have taken long: looks at the clock. May wait. Errors: as [`Run::weigh`].
    pub(crate) fn look(&mut self) -> Result<()> {
        match self.waits {
            Waits::Never(..) => self.weigh_heavy(0),
            _ => self.tick_many(STEPS_PER_LOOK),
        }
    }

    /// Counts memory that is kept until the statement ends. Errors: `LimitExceeded`.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<()> {
        self.memory += bytes;
        if self.memory <= MEMORY_MAX {
            return self.check_granted();
        }
        let what = format!("the statement needs more than {} MiB for sorts, groups and joins", MEMORY_MAX >> 20);
        Err(Error::new(Condition::LimitExceeded, what)
            .hint("An index that gives the order, or a narrower condition, needs none."))
    }

    #[inline]
    fn check_granted(&mut self) -> Result<()> {
        let used = self.memory + self.held;
        if used <= self.granted {
            return Ok(());
        }
        self.grant(used)
    }

    /// Takes more of what all statements may have. Errors: `OutOfMemory`.
    #[inline(never)]
    fn grant(&mut self, used: usize) -> Result<()> {
        let more = (used - self.granted).next_multiple_of(GRANTED_AT_ONCE);
        reserve(&crate::Sql::of(self.database).memory, more)?;
        self.granted += more;
        Ok(())
    }

    /// So many bytes are not needed any more.
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.memory = self.memory.saturating_sub(bytes);
    }

    /// Bytes that are taken.
    pub(crate) fn memory_taken(&self) -> usize {
        self.memory
    }

    /// Whatever was taken since then is not needed any more.
    pub(crate) fn give_back_to(&mut self, before: usize) {
        self.memory = self.memory.min(before);
    }

    /// The same for a row.
    pub(crate) fn take_row(&mut self, row: &[Value]) -> Result<()> {
        let bytes = 48 + row.iter().map(|value| value.weight() + size_of::<Value>()).sum::<usize>();
        self.take(bytes)
    }

    /// Errors: `LimitExceeded` if a text has so many bytes.
    pub(crate) fn check_length(&self, length: usize) -> Result<()> {
        if length <= LENGTH_MAX {
            return Ok(());
        }
        Err(Error::new(Condition::LimitExceeded, format!("a text would have more than {LENGTH_MAX} bytes")))
    }

    /// Another step was taken: lets others have a turn, now and then. Waits. Errors: `Cancelled`; the transaction met another one.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.tick_many(1)
    }

    /// The same for so many steps at once.
    #[inline]
    pub(crate) fn tick_many(&mut self, steps: u32) -> Result<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps < self.steps_per_look {
            return Ok(());
        }
        self.look_at_clock()
    }

    /// Waits for a time, at most until the statement is ended. Errors: as [`Run::tick`].
    pub(crate) fn sleep(&mut self, ns: u64) -> Result<()> {
        let now = fiber::now_ns();
        let until = now.saturating_add(ns);
        let end = self.deadline_ns.map_or(until, |deadline| deadline.min(until));
        self.check_may_wait()?;
        self.database.suspend(self.context);
        let wake = fiber::sleep(end.saturating_sub(now));
        self.slice_began_ns = fiber::now_ns();
        self.database.resume(self.context)?;
        let reason = match wake {
            fiber::Wake::Cancelled => "canceling statement due to user request",
            _ if end < until => "canceling statement due to statement timeout",
            _ => return Ok(()),
        };
        let reason = if self.dialect == Dialect::Mysql { "Query execution was interrupted" } else { reason };
        Err(Error::new(Condition::Cancelled, reason))
    }

    fn look_at_clock(&mut self) -> Result<()> {
        self.steps = 0;
        let now = fiber::now_ns();
        if let Waits::Never(..) = self.waits {
            return self.weigh_heavy(0);
        }
        if now < self.next_look_ns || fiber::current().is_none() {
            return Ok(());
        }
        if now - self.slice_began_ns < self.slice_ns && !fiber::is_awaited() {
            let is_expecting = self.asked_ns.is_some_and(|asked| now - asked < EXPECTING_NS);
            self.next_look_ns = now + if is_expecting { SHORT_LOOK_NS } else { LOOK_NS };
            return Ok(());
        }
        self.check_may_wait()?;
        self.database.suspend(self.context);
        let gave_way_ns = fiber::now_ns();
        let wake = match self.database.slice_pause_ns() {
            0 | 1 => fiber::yield_turn(),
            pause_ns => fiber::sleep(pause_ns),
        };
        self.slice_began_ns = fiber::now_ns();
        let requests = self.database.statistics.requests.get();
        if requests != self.requests {
            self.asked_ns = Some(self.slice_began_ns);
            self.requests = requests;
        }
        self.next_look_ns = self.slice_began_ns + if self.asked_ns.is_some() { SHORT_LOOK_NS } else { LOOK_NS };
        if wake == fiber::Wake::Cancelled {
            return Err(Error::new(Condition::Cancelled, "canceling statement due to user request"));
        }
        let woke_ns = self.slice_began_ns;
        self.database.resume(self.context)?;
        // A transaction that has changed the schema puts its rows back and forth. It works for as long as that took before it does so again.
        let resumed_ns = fiber::now_ns();
        let cost_ns = (gave_way_ns - now) + (resumed_ns - woke_ns);
        if cost_ns > self.slice_ns {
            self.slice_began_ns = resumed_ns;
            self.next_look_ns = resumed_ns + cost_ns;
        }
        if self.deadline_ns.is_some_and(|deadline| self.slice_began_ns >= deadline) {
            return Err(Error::new(Condition::Cancelled, "canceling statement due to statement timeout"));
        }
        Ok(())
    }
}
