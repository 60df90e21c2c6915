//! Several writes as one, by the short way: those of a command, and those of a group of commands that have come together.
//!
//! What a client has sent ahead is served in groups. Where nobody could tell the difference (short commands outside of a transaction, on spaces in
//! memory, unobserved) a group is one transaction of the log, and the head of a collection that many of its commands change is written once. Answers
//! leave when all of it is durable. If a group cannot be logged everything is taken back, nothing was answered, and its commands are served one by one.

use super::call::{Call, Entry, Head, Kind};
use super::dispatch::write_failure;
use super::failure::{Failure, Outcome};
use super::leftovers;
use super::resp::Parts;
use super::shared::{Shared, Spaces};
use super::state::State;
use super::table::{Flag, Spec, find};
use crate::connection::Connection;
use database::{Batch, Database, Space};
use std::cell::RefCell;
use std::rc::Rc;
use storage::PREFETCH_MAX;
use tuple::msgpack;
use wal::Position;

/// Parts that a command of a group has at most, and their bytes.
const PARTS_MAX: usize = 64;
const PART_BYTES_MAX: usize = 64 << 10;
/// Longest member that is looked for ahead.
const PREFETCHED_MEMBER_BYTES_MAX: usize = 256;

/// Writes that will be one transaction.
#[derive(Default)]
pub(super) struct Group {
    pub(super) batch: Batch,
    /// The head that was looked at last stays here until another one is, and at the end of the group: without, it is written at once.
    keeps_heads: bool,
    head: Option<OpenHead>,
}

/// A head that is not, or not yet, as in its row.
#[derive(Clone)]
struct OpenHead {
    key: Rc<[u8]>,
    head: Head,
    expires: Option<u64>,
    is_changed: bool,
}

/// A place in a group to go back to.
struct Mark {
    writes: usize,
    head: Option<OpenHead>,
    answer: usize,
    left: usize,
}

impl Call<'_> {
    /// Does several writes to a key and to elements of a kind, or none, and asks nobody to wait: the short way, where there is one. `work` may be done
    /// a second time if it could not be done the first time; it tells nobody of what it does.
    pub(super) fn together<T>(
        &mut self,
        kind: Option<Kind>,
        mut work: impl FnMut(&mut Self) -> Outcome<T>,
    ) -> Outcome<T> {
        if self.group.borrow().is_some() {
            // Whoever serves the group takes back what a command has left undone.
            return work(self);
        }
        let Some(batch) = self.begin_batch(kind) else { return self.atomically(work) };
        let (mark, events_mark) = (self.left.borrow().len(), self.events.borrow().len());
        self.group.replace(Some(Group { batch, ..Group::default() }));
        let done = work(self);
        let batch = self.group.take().unwrap_or_default().batch;
        let done = match done {
            Ok(value) => batch.commit(self.database, self.context).map_err(Failure::from).map(|()| value),
            Err(failure) => {
                batch.abandon(self.database);
                Err(failure)
            }
        };
        done.or_else(|failure| {
            self.left.borrow_mut().truncate(mark);
            self.events.borrow_mut().truncate(events_mark);
            match &failure {
                // Memory is short, or a key that has expired is in the way: what can be done about it is done there.
                Failure::Database(error) if !error.is_needs_fiber() => self.atomically(work),
                _ => Err(failure),
            }
        })
    }

    fn begin_batch(&self, kind: Option<Kind>) -> Option<Batch> {
        if self.may_wait {
            return None;
        }
        let keys = self.keys().ok()?;
        match kind {
            Some(kind) => self.database.begin_batch(self.context, &[keys, self.elements(kind).ok()?]),
            None => self.database.begin_batch(self.context, &[keys]),
        }
    }

    /// The head of a key, if the group has it.
    #[inline]
    pub(super) fn open_head(&self, key: &[u8]) -> Option<(Head, Option<u64>)> {
        let group = self.group.borrow();
        let open = group.as_ref()?.head.as_ref().filter(|open| *open.key == *key)?;
        Some((open.head, open.expires))
    }

    /// Keeps a head that was read, if there is a group that does so.
    #[inline]
    pub(super) fn keep_head(&self, key: &[u8], head: &Head, expires: Option<u64>) -> Outcome {
        if self.group.borrow().as_ref().is_some_and(|group| group.keeps_heads) {
            self.close_head()?;
            let open = OpenHead { key: key.into(), head: *head, expires, is_changed: false };
            if let Some(group) = self.group.borrow_mut().as_mut() {
                group.head = Some(open);
            }
        }
        Ok(())
    }

    /// Changes a head where it is kept. False: nobody keeps heads.
    pub(super) fn replace_open_head(&self, key: &[u8], head: &Head, expires: Option<u64>) -> Outcome<bool> {
        if !self.group.borrow().as_ref().is_some_and(|group| group.keeps_heads) {
            return Ok(false);
        }
        if self.open_head(key).is_none() {
            self.keep_head(key, head, expires)?;
        }
        if let Some(open) = self.group.borrow_mut().as_mut().and_then(|group| group.head.as_mut()) {
            (open.head, open.expires, open.is_changed) = (*head, expires, true);
        }
        Ok(true)
    }

    /// Writes the head of a key that the group has: its row is about to be looked at, or to be replaced.
    #[inline]
    pub(super) fn close_head_of(&self, key: &[u8]) -> Outcome {
        if self.open_head(key).is_some() { self.close_head() } else { Ok(()) }
    }

    fn close_head(&self) -> Outcome {
        let open = self.group.borrow_mut().as_mut().and_then(|group| group.head.take());
        if let Some(open) = open.filter(|open| open.is_changed) {
            self.write_row(&open.key, open.expires, |out| open.head.encode(out))?;
        }
        Ok(())
    }

    fn mark(&self) -> Mark {
        let group = self.group.borrow();
        Mark {
            writes: group.as_ref().map_or(0, |group| group.batch.len()),
            head: group.as_ref().and_then(|group| group.head.clone()),
            answer: self.out.len(),
            left: self.left.borrow().len(),
        }
    }

    /// Takes back what a command of the group has done.
    fn go_back(&mut self, mark: Mark) {
        if let Some(group) = self.group.borrow_mut().as_mut() {
            group.batch.keep(self.database, mark.writes);
            group.head = mark.head;
        }
        self.out.truncate(mark.answer);
        self.left.borrow_mut().truncate(mark.left);
    }

    /// Ends the group. Errors: everything was taken back.
    fn end_group(&self) -> Outcome {
        let closed = self.close_head();
        let batch = self.group.take().unwrap_or_default().batch;
        match closed {
            Ok(()) => Ok(batch.commit(self.database, self.context)?),
            Err(failure) => {
                batch.abandon(self.database);
                Err(failure)
            }
        }
    }
}

/// The command of a request, if it may be one of a group.
fn grouped(request: &Parts<'_>) -> Option<&'static Spec> {
    let args: &[&[u8]] = request;
    let spec = find(args.first()?).filter(|spec| spec.is(Flag::Grouped) && spec.takes(args.len()))?;
    (args.len() <= PARTS_MAX && args.iter().map(|part| part.len()).sum::<usize>() <= PART_BYTES_MAX).then_some(spec)
}

/// True if what a client sends may be served in groups.
fn may_group(connection: &Connection, shared: &Shared, state: &State) -> bool {
    let is_plain = !state.is_special.get() && state.multi.borrow().is_none() && !connection.must_log_in();
    let is_answered = !state.is_silent.get() && !state.skips_next.get() && !state.skips_after.get();
    is_plain && is_answered && shared.is_unobserved()
}

/// Serves the first commands of what has come together as one, and says how many they were: 0 if it has to be one by one.
pub(super) fn serve(
    connection: &Rc<Connection>,
    shared: &Rc<Shared>,
    state: &Rc<State>,
    requests: &[Parts<'_>],
) -> usize {
    let mut specs: [Option<&'static Spec>; PREFETCH_MAX] = [None; PREFETCH_MAX];
    if requests.len() < 2 || !may_group(connection, shared, state) {
        return 0;
    }
    let mut count = 0;
    for (spec, request) in specs.iter_mut().zip(requests) {
        *spec = grouped(request);
        if spec.is_none() {
            break;
        }
        count += 1;
    }
    if count < 2 {
        return 0;
    }
    let (database, context) = (connection.database(), connection.context());
    let spaces = shared.spaces(database);
    let Some(batch) = begin(connection, state, &spaces) else { return 0 };
    context.seen.set(Position::default());
    shared.with_answer(|out| {
        let mut call = Call {
            database,
            connection,
            context,
            state,
            shared,
            spaces,
            out,
            args: &[],
            db: state.db.get(),
            is_write: false,
            may_wait: false,
            is_inside: false,
            is_script: false,
            is_hurried: false,
            left: RefCell::default(),
            events: RefCell::default(),
            group: RefCell::new(Some(Group { batch, keeps_heads: true, head: None })),
        };
        let served = run(&mut call, &specs[..count], requests);
        if call.end_group().is_err() || served == 0 {
            return 0;
        }
        let wrote = specs[..served].iter().flatten().any(|spec| spec.is(Flag::Write));
        if wrote && context.seen.get() == Position::default() {
            call.see_all();
        }
        specs[..served].iter().flatten().for_each(|spec| shared.stats.count(spec));
        let left = call.left.take();
        if !left.is_empty() {
            leftovers::add(shared, database, left);
        }
        let answered = connection.answer(context.seen.get(), 0, |to| {
            to.extend_from_slice(out);
            Ok(())
        });
        debug_assert!(answered.is_ok(), "bytes that are there are answered");
        served
    })
}

/// A batch for all that commands of a group may write to.
fn begin(connection: &Connection, state: &State, spaces: &Spaces) -> Option<Batch> {
    let of = |kind| spaces.elements(kind).ok();
    let all: [&Rc<Space>; 5] =
        [spaces.keys(state.db.get()).ok()?, of(Kind::List)?, of(Kind::Set)?, of(Kind::SortedSet)?, of(Kind::Hash)?];
    connection.database().begin_batch(connection.context(), &all)
}

/// Runs commands until one has to be served alone. Returns how many were.
fn run<'a>(call: &mut Call<'a>, specs: &[Option<&'static Spec>], requests: &'a [Parts<'a>]) -> usize {
    let mut served = 0;
    for (spec, request) in specs.iter().zip(requests) {
        let Some(spec) = spec else { break };
        let mark = call.mark();
        call.args = request;
        call.is_write = spec.is(Flag::Write);
        call.state.last.set(Some(spec));
        match (spec.run)(call) {
            Ok(()) => {}
            Err(failure @ Failure::Text(_)) => {
                call.go_back(mark);
                database::increment(&call.connection.counts.errors);
                let start = call.out.len();
                write_failure(call.out, &failure);
                call.shared.stats.fail(spec, call.args);
                call.shared.stats.count_error(call.out.get(start + 1..).unwrap_or_default());
            }
            Err(Failure::Database(_)) => {
                call.go_back(mark);
                break;
            }
        }
        served += 1;
    }
    served
}

/// The kind of collection that a command is most likely about, and its first member or field.
fn member_of<'a>(request: &Parts<'a>) -> Option<(Kind, &'a [u8])> {
    let (kind, at) = match *request.first()? {
        [b'h' | b'H', ..] => (Kind::Hash, 2),
        [b's' | b'S', b'a' | b'A' | b'r' | b'R' | b'i' | b'I', ..] => (Kind::Set, 2),
        [b'z' | b'Z', b'a' | b'A' | b'i' | b'I', ..] => (Kind::SortedSet, 3),
        [b'z' | b'Z', b's' | b'S' | b'r' | b'R', ..] => (Kind::SortedSet, 2),
        _ => return None,
    };
    Some((kind, request.get(at)?))
}

/// Has the members fetched that commands ask for, those of one kind: a group is mostly of that.
pub(super) fn prefetch_members(database: &Database, spaces: &Spaces, keys: &Space, requests: &[Parts<'_>]) {
    let Some((kind, _)) = requests.first().and_then(member_of) else { return };
    let Ok(elements) = spaces.elements(kind) else { return };
    let mut last: (&[u8], Option<u64>) = (&[], None);
    let (mut bytes, mut ends) = (Vec::with_capacity(1024), [0; PREFETCH_MAX]);
    let (mut rows, mut row_ends) = (Vec::new(), [0; PREFETCH_MAX]);
    let (mut count, mut row_count) = (0, 0);
    for request in requests.iter().take(PREFETCH_MAX) {
        let Some((_, member)) = member_of(request).filter(|(other, _)| *other == kind) else { continue };
        let key = request.get(1).copied().unwrap_or_default();
        if key != last.0 || last.1.is_none() {
            let id = database.peek_text(keys, key, |row| Entry::head_in(row).map(|head| head.id)).flatten();
            last = (key, id);
        }
        let Some(id) = last.1.filter(|_| member.len() <= PREFETCHED_MEMBER_BYTES_MAX) else { continue };
        msgpack::encode_uint(&mut bytes, id);
        msgpack::encode_str(&mut bytes, member);
        ends[count] = bytes.len();
        count += 1;
        // Its place in the order of scores is asked for as well.
        if let Some(score) = score_of(request) {
            msgpack::encode_array(&mut rows, 3);
            msgpack::encode_uint(&mut rows, id);
            msgpack::encode_str(&mut rows, member);
            msgpack::encode_f64(&mut rows, score);
            row_ends[row_count] = rows.len();
            row_count += 1;
        }
    }
    let mut new_rows: [&[u8]; PREFETCH_MAX] = [&[]; PREFETCH_MAX];
    for (row, piece) in new_rows.iter_mut().zip(pieces(&rows, &row_ends[..row_count])) {
        *row = piece;
    }
    database.prefetch_full_keys(elements, pieces(&bytes, &ends[..count]), &new_rows[..row_count]);
}

/// The score that a `ZADD` of one member without options gives it.
fn score_of(request: &Parts<'_>) -> Option<f64> {
    let [command, _, score, _] = **request else { return None };
    let text = std::str::from_utf8(score).ok().filter(|_| command.eq_ignore_ascii_case(b"zadd"))?;
    text.parse().ok().filter(|score: &f64| !score.is_nan())
}

/// Bytes by where each piece of them ends.
fn pieces<'a>(bytes: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut start = 0;
    ends.iter().map(move |end| &bytes[std::mem::replace(&mut start, *end)..*end])
}
