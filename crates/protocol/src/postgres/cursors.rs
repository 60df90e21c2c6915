//! DECLARE, FETCH, MOVE and CLOSE: rows of a query that are kept under a name, and a place among them.
//!
//! All rows are found by DECLARE, so that they are those of one moment, and may be gone through in any direction; `WITH HOLD` costs nothing more then.

use super::rows::put_row;
use super::serve::Work;
use sql::{Column, Condition, CursorEntry, CursorShown, Dialect, Error, Granted, Prepared, Step, Value};
use std::rc::Rc;

/// Cursors of a connection.
pub(crate) const CURSORS_MAX: usize = 1000;
/// Bytes of the rows of all cursors of a connection.
pub(crate) const CURSOR_BYTES_MAX: usize = 256 << 20;
/// What a row takes beside its values.
const ROW_BYTES: usize = 32;

/// See the head of this file.
pub(super) struct Cursor {
    columns: Rc<[Column]>,
    rows: Vec<Vec<Value>>,
    bytes: usize,
    /// The same bytes among those of all statements.
    _granted: Option<Granted>,
    /// The number of the row that it stands at, from 1 on; 0: before the first; one more than there are: behind the last.
    place: usize,
    kind: Kind,
    /// The transaction that has made it is open.
    is_new: bool,
    /// Has it shown while it is there; none if nobody is to see it.
    _entry: Option<CursorEntry>,
}

/// How it was declared.
#[derive(Clone, Copy, Default)]
pub(super) struct Kind {
    /// It outlives its transaction.
    pub(super) is_held: bool,
    /// Nobody goes back in it.
    pub(super) is_forward_only: bool,
    /// The simple protocol gives its rows in binary, too.
    pub(super) is_binary: bool,
}

fn unknown(name: &str) -> Error {
    Error::new(Condition::UndefinedCursor, format!("cursor \"{name}\" does not exist"))
}

impl Cursor {
    /// The rows that a step gives, as numbers from 0 on in their order; afterwards it stands where the step leads.
    fn step(&mut self, step: Step) -> Result<Vec<usize>, Error> {
        let (count, place) = (self.rows.len() as i128, self.place as i128);
        let is_row = |at: i128| (1..=count).contains(&at);
        let clamp = |at: i128| at.clamp(0, count + 1);
        let (to, rows): (i128, Vec<i128>) = match step {
            Step::Forward(0) => (place, if is_row(place) { vec![place] } else { Vec::new() }),
            Step::Forward(steps) if steps > 0 => {
                let to = clamp(place + i128::from(steps));
                (to, (place + 1..=to).filter(|at| is_row(*at)).collect())
            }
            Step::Forward(steps) => {
                let to = clamp(place + i128::from(steps));
                (to, (to..place).rev().filter(|at| is_row(*at)).collect())
            }
            Step::Absolute(_) | Step::Relative(_) => {
                let to = clamp(match step {
                    Step::Absolute(at) if at < 0 => count + 1 + i128::from(at),
                    Step::Absolute(at) => i128::from(at),
                    Step::Relative(steps) => place + i128::from(steps),
                    Step::Forward(_) => place,
                });
                (to, if is_row(to) { vec![to] } else { Vec::new() })
            }
        };
        let goes_back = to < place || rows.first().is_some_and(|first| *first <= place);
        if self.kind.is_forward_only && goes_back {
            let error = Error::new(Condition::NotInState, "cursor can only scan forward");
            return Err(error.hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.place = usize::try_from(to).unwrap_or(0);
        Ok(rows.into_iter().filter_map(|at| usize::try_from(at - 1).ok()).collect())
    }
}

impl Work<'_> {
    /// DECLARE: finds the rows.
    pub(super) fn declare(
        &mut self,
        name: &str,
        query: &str,
        kind: Kind,
        params: &[Value],
        declared: &Prepared,
    ) -> Result<(), Error> {
        if !kind.is_held && !self.context.is_in_txn() {
            let what = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Error::new(Condition::TransactionState, what));
        }
        {
            let cursors = self.state.cursors.borrow();
            if cursors.contains_key(name) || self.state.portals.borrow().contains_key(name) && !name.is_empty() {
                return Err(Error::new(Condition::DuplicateCursor, format!("cursor \"{name}\" already exists")));
            }
            if cursors.len() >= CURSORS_MAX {
                let what = format!("the session has {CURSORS_MAX} cursors already");
                return Err(Error::new(Condition::LimitExceeded, what));
            }
        }
        let taken: usize = self.state.cursors.borrow().values().map(|cursor| cursor.bytes).sum();
        let prepared = self.sql.prepare(self.database, self.context, Dialect::Postgres, query, declared.params())?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let mut granted = Granted::of(self.database);
        self.sql.run(self.database, self.context, &prepared, params, &mut |row| {
            let more = ROW_BYTES + row.iter().map(Value::weight).sum::<usize>();
            bytes += more;
            granted.take(more)?;
            if taken + bytes > CURSOR_BYTES_MAX {
                let what = format!("the rows of cursors have more than {} MiB", CURSOR_BYTES_MAX >> 20);
                return Err(Error::new(Condition::LimitExceeded, what).hint("A query without a cursor is streamed."));
            }
            rows.push(row.to_vec());
            Ok(())
        })?;
        let shown = CursorShown {
            statement: declared.text().to_string(),
            is_held: kind.is_held,
            is_binary: kind.is_binary,
            is_scrollable: !kind.is_forward_only,
            made_ns: i128::from(self.database.environment().clock.wall_ns()),
        };
        let cursor = Cursor {
            _entry: Some(CursorEntry::new(&self.session, name, shown)),
            columns: prepared.columns().into(),
            rows,
            bytes,
            _granted: Some(granted),
            place: 0,
            kind,
            is_new: self.context.is_in_txn(),
        };
        self.state.cursors.borrow_mut().insert(name.to_string(), cursor);
        Ok(())
    }

    /// True if there is a cursor of the name, and no portal.
    pub(super) fn is_cursor(&self, name: &str) -> bool {
        self.state.cursors.borrow().contains_key(name) && !self.state.portals.borrow().contains_key(name)
    }

    /// The columns that FETCH gives, and in what form where the client does not say.
    pub(super) fn cursor_columns(&self, name: &str) -> Result<(Rc<[Column]>, &'static [bool]), Error> {
        let cursors = self.state.cursors.borrow();
        let cursor = cursors.get(name).ok_or_else(|| unknown(name))?;
        Ok((Rc::clone(&cursor.columns), self.form_of(cursor)))
    }

    fn form_of(&self, cursor: &Cursor) -> &'static [bool] {
        if cursor.kind.is_binary && !self.is_extended { &[true] } else { &[] }
    }

    /// FETCH and MOVE. Returns how many rows there were.
    pub(super) fn fetch(&mut self, name: &str, step: Step, is_move: bool, formats: &[bool]) -> Result<usize, Error> {
        let mut cursors = self.state.cursors.borrow_mut();
        let cursor = cursors.get_mut(name).ok_or_else(|| unknown(name))?;
        let found = cursor.step(step)?;
        let formats = if formats.is_empty() { self.form_of(cursor) } else { formats };
        if !is_move {
            let zone = self.state.session.borrow().zone();
            for number in &found {
                put_row(&mut self.out, &cursor.rows[*number], &cursor.columns, formats, zone.as_ref())?;
                if self.out.len() >= super::serve::CHUNK_BYTES {
                    super::serve::hand_on(self.connection, self.context, &mut self.out)?;
                }
            }
        }
        Ok(found.len())
    }

    /// CLOSE.
    pub(super) fn close_cursors(&self, name: Option<&str>) -> Result<(), Error> {
        let mut cursors = self.state.cursors.borrow_mut();
        match name {
            None => cursors.clear(),
            Some(name) => _ = cursors.remove(name).ok_or_else(|| unknown(name))?,
        }
        Ok(())
    }

    /// A transaction has ended, and the cursors that do not outlive it.
    pub(super) fn end_cursors(&self, is_committed: bool) {
        let mut cursors = self.state.cursors.borrow_mut();
        cursors.retain(|_, cursor| cursor.kind.is_held && (is_committed || !cursor.is_new));
        cursors.values_mut().for_each(|cursor| cursor.is_new = false);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn a_cursor_goes_where_postgresql_s_goes() {
        let mut cursor = Cursor {
            _entry: None,
            columns: Rc::from([]),
            rows: vec![Vec::new(); 4],
            bytes: 0,
            _granted: None,
            place: 0,
            kind: Kind::default(),
            is_new: false,
        };
        // Step, numbers of the rows that come, place behind it.
        for (step, rows, place) in [
            (Step::Forward(0), &[][..], 0),
            (Step::Forward(-1), &[], 0),
            (Step::Forward(2), &[0, 1], 2),
            (Step::Forward(0), &[1], 2),
            (Step::Relative(0), &[1], 2),
            (Step::Forward(5), &[2, 3], 5),
            (Step::Forward(1), &[], 5),
            (Step::Forward(-2), &[3, 2], 3),
            (Step::Forward(-i64::MAX), &[1, 0], 0),
            (Step::Forward(i64::MAX), &[0, 1, 2, 3], 5),
            (Step::Absolute(-1), &[3], 4),
            (Step::Absolute(2), &[1], 2),
            (Step::Absolute(i64::MIN), &[], 0),
            (Step::Absolute(9), &[], 5),
            (Step::Relative(-2), &[2], 3),
            (Step::Relative(i64::MAX), &[], 5),
            (Step::Absolute(0), &[], 0),
        ] {
            assert_eq!((cursor.step(step).unwrap(), cursor.place), (rows.to_vec(), place), "{step:?}");
        }
        cursor.kind.is_forward_only = true;
        assert_eq!(cursor.step(Step::Forward(3)).unwrap().len(), 3);
        for step in [Step::Forward(-1), Step::Forward(0), Step::Absolute(1), Step::Relative(-1)] {
            assert!(cursor.step(step).is_err(), "{step:?}");
        }
        assert_eq!(cursor.step(Step::Absolute(4)).unwrap(), [3]);
    }
}
