//! LOAD DATA LOCAL: the client is asked for a file, and its packets up to an empty one are what is in it. Source: MySQL's documentation, "LOAD DATA".

use super::packet::put;
use super::serve::{Form, Work};
use super::startup::abilities;
use super::values::text_or_bytes;
use hashbrown::HashMap;
use runtime::fiber::{self, Wake};
use sql::{Condition, Dialect, Error, Lines, Load, Prepared, Value};
use std::rc::Rc;

/// Bytes of one line of the client's.
pub(crate) const LINE_MAX: usize = 64 << 20;
/// Time that lines are put in before others have a turn.
const SLICE_NS: u64 = 1_000_000;
/// Lines between two looks at the clock.
const LINES_PER_LOOK: u64 = 16;

/// One that is under way.
pub(super) struct LoadIn {
    load: Box<Load>,
    /// Those of the table.
    columns: Vec<String>,
    /// INSERTs for lines of so many fields, and the fields that their parameters get.
    inserts: HashMap<usize, (Rc<Prepared>, Vec<usize>)>,
    /// What has come of a line whose rest has not.
    partial: Vec<u8>,
    to_pass_over: u64,
    records: u64,
    changed: u64,
    skipped: u64,
    deleted: u64,
    odd: u64,
    /// A transaction was begun for it.
    is_own: bool,
    /// Where the client's transaction stood before.
    savepoint: Option<database::Savepoint>,
    /// Why it has failed: the client is told when it has sent everything.
    error: Option<Error>,
    more: u16,
    /// The statements behind it in its text.
    pub(super) rest: Vec<String>,
}

impl Work<'_> {
    /// Asks the client for the file. Errors: it does not send any; the table or its columns are not there.
    pub(super) fn begin_load(&mut self, load: &Load, form: Form, more: u16) -> Result<(), Error> {
        if form == Form::Binary {
            let what = "This command is not supported in the prepared statement protocol yet";
            return Err(Error::new(Condition::Unsupported, what).mysql(1295));
        }
        if !self.can(abilities::LOCAL_FILES) {
            let what = "Loading local data is disabled; this must be enabled on both the client and server sides";
            return Err(Error::new(Condition::AccessDenied, what).mysql(3948));
        }
        let text = format!("SELECT * FROM {} LIMIT 0", load.table);
        let table = self.sql.prepare(self.database, self.context, Dialect::Mysql, &text, &[])?;
        let columns: Vec<String> = table.columns().iter().map(|column| column.name.clone()).collect();
        let width = load.width(columns.len());
        let (insert, places) = load.insert(&columns, width);
        let insert = self.sql.prepare(self.database, self.context, Dialect::Mysql, &insert, &[])?;
        self.before(&insert)?;
        let is_own = !self.context.is_in_txn();
        let savepoint = match is_own {
            true => {
                self.begin(sql::Modes::default())?;
                None
            }
            false => Some(self.database.savepoint(self.context, None)?),
        };
        put(&mut self.out, &mut self.sequence, |out| {
            out.push(0xfb);
            out.extend_from_slice(load.file.as_bytes());
        });
        *self.state.load.borrow_mut() = Some(LoadIn {
            to_pass_over: load.lines.passed_over,
            load: Box::new(load.clone()),
            columns,
            inserts: HashMap::from([(width, (insert, places))]),
            partial: Vec::new(),
            records: 0,
            changed: 0,
            skipped: 0,
            deleted: 0,
            odd: 0,
            is_own,
            savepoint,
            error: None,
            more,
            rest: Vec::new(),
        });
        Ok(())
    }

    /// A packet of the file; an empty one is behind its end. Errors: as those of an INSERT; nothing of the file stands.
    pub(super) fn take_file(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(mut load) = self.state.load.take() else { return Ok(()) };
        let is_last = bytes.is_empty();
        if load.error.is_none()
            && let Err(error) = self.take_lines(&mut load, bytes, is_last)
        {
            load.error = Some(error);
            self.give_up_load(&mut load);
        }
        if !is_last {
            *self.state.load.borrow_mut() = Some(load);
            return Ok(());
        }
        if let Some(error) = load.error {
            return Err(error);
        }
        if load.is_own {
            self.end_transaction(true)?;
        }
        let about = format!(
            "Records: {}  Deleted: {}  Skipped: {}  Warnings: {}",
            load.records,
            load.deleted,
            load.skipped,
            self.session.warnings.borrow().len() as u64 + load.odd
        );
        self.session.row_count.set(i64::try_from(load.changed).unwrap_or(i64::MAX));
        self.done(load.changed, 0, about, load.more);
        self.run_texts(&load.rest)
    }

    fn give_up_load(&mut self, load: &mut LoadIn) {
        load.partial = Vec::new();
        match (load.is_own, load.savepoint.take()) {
            (false, Some(savepoint)) if self.context.is_in_txn() => {
                // A transaction that another one has ended has nothing to be taken back.
                let _ = self.database.rollback_to_savepoint(self.context, &savepoint);
            }
            (true, _) if self.context.is_in_txn() => self.database.abandon(self.context),
            _ => {}
        }
    }

    fn take_lines(&mut self, load: &mut LoadIn, bytes: &[u8], is_last: bool) -> Result<(), Error> {
        let mut kept = std::mem::take(&mut load.partial);
        kept.extend_from_slice(bytes);
        let mut at = 0;
        let mut began = fiber::now_ns();
        let mut number = 0;
        while let Some((fields, length)) = next_line(&load.load.lines, &kept[at..], is_last) {
            at += length;
            number += 1;
            if load.to_pass_over > 0 {
                load.to_pass_over -= 1;
            } else if let Some(fields) = fields {
                self.put_in_line(load, &fields)?;
            }
            if number % LINES_PER_LOOK == 0 && fiber::now_ns().saturating_sub(began) > SLICE_NS {
                self.database.suspend(self.context);
                if fiber::yield_now() == Wake::Cancelled {
                    return Err(Error::new(Condition::Cancelled, "Query execution was interrupted"));
                }
                self.database.resume(self.context)?;
                began = fiber::now_ns();
            }
        }
        kept.drain(..at);
        if kept.len() > LINE_MAX {
            let what = format!("a line of the file has more than {LINE_MAX} bytes");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        load.partial = kept;
        Ok(())
    }

    fn put_in_line(&mut self, load: &mut LoadIn, fields: &[Option<Vec<u8>>]) -> Result<(), Error> {
        load.records += 1;
        let width = load.load.width(load.columns.len());
        load.odd += u64::from(fields.len() != width);
        let count = fields.len().min(width);
        if !load.inserts.contains_key(&count) {
            let (insert, places) = load.load.insert(&load.columns, count);
            let insert = self.sql.prepare(self.database, self.context, Dialect::Mysql, &insert, &[])?;
            load.inserts.insert(count, (insert, places));
        }
        let Some((insert, places)) = load.inserts.get_mut(&count) else { return Ok(()) };
        // Whoever changes the schema meanwhile does not end it.
        *insert = self.sql.renewed(self.database, self.context, insert)?;
        let values = places.iter().map(|place| match fields.get(*place) {
            Some(Some(bytes)) => text_or_bytes(bytes),
            _ => Value::Null,
        });
        let values: Vec<Value> = values.collect();
        let changed = self.sql.load(self.database, self.context, insert, &values)?;
        load.changed += changed;
        load.skipped += u64::from(changed == 0);
        load.deleted += changed.saturating_sub(1);
        Ok(())
    }
}

/// What a letter behind the escape stands for.
fn escaped(letter: u8) -> u8 {
    match letter {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

/// The fields of a line; none of one that is passed over.
pub(super) type Fields = Option<Vec<Option<Vec<u8>>>>;

/// The fields of the first line, and the bytes that it takes. None: its end has not come, or there is none.
pub(super) fn next_line(lines: &Lines, input: &[u8], is_last: bool) -> Option<(Fields, usize)> {
    if input.is_empty() {
        return None;
    }
    let mut at = 0;
    if !lines.start.is_empty() {
        match input.windows(lines.start.len()).position(|window| window == lines.start) {
            Some(found) => at = found + lines.start.len(),
            None => return is_last.then_some((None, input.len())),
        }
    }
    let mut fields = Vec::new();
    loop {
        let mut field = Vec::new();
        let is_quoted = lines.quote.is_some() && input.get(at) == lines.quote.as_ref();
        at += usize::from(is_quoted);
        let (mut is_null, mut has_escape, mut is_open) = (false, false, is_quoted);
        // What ends the field: None is the end of what there is.
        let is_end = loop {
            let rest = &input[at.min(input.len())..];
            let ends = |rest: &[u8]| rest.starts_with(&lines.between) || rest.starts_with(&lines.end);
            let Some(&byte) = rest.first() else {
                if !is_last {
                    return None;
                }
                break None;
            };
            // What follows may be the rest of what ends it.
            let is_cut = !is_last && rest.len() < lines.between.len().max(lines.end.len()) + 2;
            if lines.escape == Some(byte) && lines.quote != Some(byte) {
                match rest.get(1) {
                    Some(&letter) => {
                        is_null = !is_quoted && field.is_empty() && !has_escape && letter == b'N';
                        has_escape = true;
                        field.push(escaped(letter));
                        at += 2;
                    }
                    None if is_last => at += 1,
                    None => return None,
                }
                continue;
            }
            if is_open && lines.quote == Some(byte) {
                if rest.get(1) == Some(&byte) {
                    field.push(byte);
                    at += 2;
                    continue;
                }
                if is_cut && !ends(&rest[1..]) {
                    return None;
                }
                if rest.len() == 1 || ends(&rest[1..]) {
                    is_open = false;
                    at += 1;
                    continue;
                }
            }
            if !is_open {
                // The longer one first, where one begins as the other does.
                if rest.starts_with(&lines.end) && lines.end.len() >= lines.between.len() {
                    break Some(true);
                }
                if rest.starts_with(&lines.between) {
                    break Some(false);
                }
                if rest.starts_with(&lines.end) {
                    break Some(true);
                }
                let may_end = lines.between.starts_with(rest) || lines.end.starts_with(rest);
                if !is_last && may_end {
                    return None;
                }
            }
            field.push(byte);
            at += 1;
        };
        is_null &= field == b"N";
        is_null |= lines.quote.is_some() && !is_quoted && !has_escape && field == b"NULL";
        fields.push((!is_null).then_some(field));
        match is_end {
            Some(false) => at += lines.between.len(),
            Some(true) => return Some((Some(fields), at + lines.end.len())),
            None => return Some((Some(fields), input.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines() -> Lines {
        Lines {
            between: b"\t".to_vec(),
            quote: None,
            escape: Some(b'\\'),
            start: Vec::new(),
            end: b"\n".to_vec(),
            passed_over: 0,
        }
    }

    fn all(lines: &Lines, input: &str) -> Vec<Vec<String>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some((fields, length)) = next_line(lines, &input.as_bytes()[at..], true) {
            at += length;
            let shown = |field: &Option<Vec<u8>>| match field {
                None => "null".to_string(),
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            };
            found.extend(fields.map(|fields| fields.iter().map(shown).collect::<Vec<_>>()));
        }
        found
    }

    #[test]
    fn lines_are_cut_as_mysql_cuts_them() {
        assert_eq!(
            all(&lines(), "1\ta\\tb\n2\t\\N\n\n3\t\\\\N\\\nx"),
            [vec!["1", "a\tb"], vec!["2", "null"], vec![""], vec!["3", "\\N\nx"],]
        );
        let csv = Lines { between: b",".to_vec(), quote: Some(b'"'), end: b"\r\n".to_vec(), ..lines() };
        assert_eq!(
            all(&csv, "1,\"a,\"\"b\"\"\",NULL\r\n2,\"x\r\ny\",\"NULL\"\r\n3,a\"b,\"c"),
            [vec!["1", "a,\"b\"", "null"], vec!["2", "x\r\ny", "NULL"], vec!["3", "a\"b", "c"],]
        );
        let marked = Lines { start: b"=>".to_vec(), escape: None, ..lines() };
        assert_eq!(all(&marked, "no\n..=>1\ta\\t\n=>2\nno more"), [vec!["1", "a\\t"], vec!["2"]]);
    }

    proptest! {
        /// Lines are the same wherever what comes is cut.
        #[test]
        fn a_file_may_be_cut_anywhere(input in "[a\"\\\\N,\r\n]{0,40}", cut in 0usize..40, is_csv: bool) {
            let lines = match is_csv {
                true => Lines { between: b",".to_vec(), quote: Some(b'"'), end: b"\r\n".to_vec(), ..lines() },
                false => lines(),
            };
            let whole = all(&lines, &input);
            let cut = cut.min(input.len());
            let (mut found, mut at) = (Vec::new(), 0);
            while let Some((fields, length)) = next_line(&lines, &input.as_bytes()[at..cut], false) {
                at += length;
                let shown = |field: &Option<Vec<u8>>| match field {
                    None => "null".to_string(),
                    Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                };
                found.extend(fields.map(|fields| fields.iter().map(shown).collect::<Vec<_>>()));
            }
            found.extend(all(&lines, &input[at..]));
            prop_assert_eq!(found, whole);
        }
    }
}
