//! One command under way: who asks, where its keys are, and what every family of commands does to them.
//!
//! A key is a row of the space of its database; `docs/redis.md` has the formats. A string stands in that row. What has many elements (a hash, a list, a
//! set, a sorted set, a stream) has its head there, and an element a row in a space of its own, found by the number in the head. So a key of a million
//! elements is gone when its head is; the elements follow in slices (`leftovers`).

use super::events::{self, Event};
use super::failure::{Failure, NOT_FLOAT, NOT_INTEGER, Outcome, SYNTAX, WRONG_TYPE};
use super::group::Group;
use super::reply::Reply;
use super::resp::integer;
use super::shared::{Shared, Spaces};
use super::state::State;
use crate::connection::Connection;
use database::{Context, Database, Error, Key, Operation, Privileges, ScanRequest, Space};
use runtime::fiber;
use std::cell::RefCell;
use std::rc::Rc;
use storage::{IteratorKind, PREFETCH_MAX};
use tuple::msgpack::{self, Kind as ValueKind, Reader};
use tuple::{IndexId, Tuple};

/// Elements after which others have their turn.
pub(super) const SLICE: u64 = 4096;

/// What a key that is no string has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    List = 1,
    Set = 2,
    SortedSet = 3,
    Hash = 4,
    Stream = 6,
}

impl Kind {
    pub(super) fn from_code(code: u64) -> Option<Self> {
        [Kind::List, Kind::Set, Kind::SortedSet, Kind::Hash, Kind::Stream].into_iter().find(|kind| *kind as u64 == code)
    }

    /// As `TYPE` has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::List => "list",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::Hash => "hash",
            Kind::Stream => "stream",
        }
    }
}

/// The head of what has many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// Of its elements.
    pub(super) id: u64,
    /// How many there are.
    pub(super) count: u64,
    /// Of a list: the position of its first element.
    pub(super) first: i64,
    /// Of a stream: the last entry that was added, how many ever were, and the greatest one that was removed by its number.
    pub(super) last: (u64, u64),
    pub(super) added: u64,
    pub(super) removed: (u64, u64),
}

impl Head {
    pub(super) fn new(kind: Kind, id: u64) -> Self {
        Head { kind, id, count: 0, first: 0, last: (0, 0), added: 0, removed: (0, 0) }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let length = reader.read_array().ok()?;
        let kind = Kind::from_code(reader.read_uint().ok()?)?;
        let (id, count) = (reader.read_uint().ok()?, reader.read_uint().ok()?);
        let mut head = Head { count, ..Head::new(kind, id) };
        match kind {
            Kind::List if length > 3 => head.first = reader.read_int().ok()?,
            Kind::Stream if length > 7 => {
                let mut next = || reader.read_uint().ok();
                head.last = (next()?, next()?);
                head.added = next()?;
                head.removed = (next()?, next()?);
            }
            _ => {}
        }
        Some(head)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let length = match self.kind {
            Kind::List => 4,
            Kind::Stream => 8,
            _ => 3,
        };
        msgpack::encode_array(out, length);
        msgpack::encode_uint(out, self.kind as u64);
        msgpack::encode_uint(out, self.id);
        msgpack::encode_uint(out, self.count);
        match self.kind {
            Kind::List => msgpack::encode_int(out, self.first),
            Kind::Stream => {
                let numbers = [self.last.0, self.last.1, self.added, self.removed.0, self.removed.1];
                numbers.into_iter().for_each(|number| msgpack::encode_uint(out, number));
            }
            _ => {}
        }
    }
}

/// The row of a key.
pub(super) struct Entry {
    row: Tuple,
    /// Milliseconds since the epoch.
    pub(super) expires: Option<u64>,
    value_at: usize,
    /// What it has, if it is no string.
    pub(super) head: Option<Head>,
}

impl Entry {
    /// Reads a row. None: it is not of the format of a key.
    pub(super) fn of(row: Tuple) -> Option<Self> {
        let data = row.data();
        let mut reader = Reader::new(data);
        let length = reader.read_array().ok()?;
        reader.read_str().ok()?;
        let value_at = reader.position();
        let head = match reader.kind().ok()? {
            ValueKind::Array => Some(Head::read(&mut reader)?),
            _ => {
                reader.read_str().ok()?;
                None
            }
        };
        let expires = if length > 2 { reader.read_uint().ok() } else { None };
        Some(Entry { expires, value_at, head, row })
    }

    /// The head in a row of keys.
    pub(super) fn head_in(row: &[u8]) -> Option<Head> {
        let mut reader = Reader::new(row);
        reader.read_array().and_then(|_| reader.read_str()).ok()?;
        if reader.kind() == Ok(ValueKind::Array) { Head::read(&mut reader) } else { None }
    }

    pub(super) fn key(&self) -> &[u8] {
        let mut reader = Reader::new(self.row.data());
        reader.read_array().and_then(|_| reader.read_str()).unwrap_or_default()
    }

    /// The value of a string.
    pub(super) fn string(&self) -> Outcome<&[u8]> {
        match self.head {
            None => Ok(Reader::new(&self.row.data()[self.value_at..]).read_str().unwrap_or_default()),
            Some(_) => Err(WRONG_TYPE.into()),
        }
    }

    /// The head of what has to be of a kind.
    pub(super) fn head_of(&self, kind: Kind) -> Outcome<Head> {
        self.head.filter(|head| head.kind == kind).ok_or_else(|| WRONG_TYPE.into())
    }

    /// Bytes of the row.
    pub(super) fn row_bytes(&self) -> usize {
        self.row.data().len()
    }

    pub(super) fn kind_name(&self) -> &'static str {
        self.head.map_or("string", |head| head.kind.name())
    }
}

/// A command and everything that it may touch.
pub(super) struct Call<'a> {
    pub(super) database: &'a Rc<Database>,
    pub(super) connection: &'a Rc<Connection>,
    pub(super) context: &'a Context,
    pub(super) state: &'a State,
    pub(super) shared: &'a Rc<Shared>,
    pub(super) spaces: Rc<Spaces>,
    /// Its answer.
    pub(super) out: &'a mut Vec<u8>,
    /// The name and what stands behind it.
    pub(super) args: &'a [&'a [u8]],
    /// The database that it is about.
    pub(super) db: usize,
    /// It is one that writes.
    pub(super) is_write: bool,
    /// It runs in a fiber, and may wait.
    pub(super) may_wait: bool,
    /// It is one of a transaction or a script: it must not wait for others.
    pub(super) is_inside: bool,
    /// It is one of a script.
    pub(super) is_script: bool,
    /// Others have changed what it had seen, several times: it gives nobody a turn of its own will any more.
    pub(super) is_hurried: bool,
    /// Heads of what was replaced or removed; their elements are still there.
    pub(super) left: RefCell<Vec<Head>>,
    /// What has happened to keys, if somebody wants to know.
    pub(super) events: RefCell<Vec<Event>>,
    /// Writes that will be one transaction, see `together`.
    pub(super) group: RefCell<Option<Group>>,
}

impl<'a> Call<'a> {
    /// The answer.
    #[inline]
    pub(super) fn reply(&mut self) -> Reply<'_> {
        Reply { resp3: self.state.resp3.get(), out: self.out }
    }

    /// The moment of the command, of its transaction or its script: within one of these no time goes by.
    pub(super) fn now_ms(&self) -> u64 {
        self.database.moment_ms(self.context)
    }

    /// Continues in a fiber, if it does not run in one: it may take long.
    pub(super) fn go_into_fiber(&self) -> Outcome {
        if self.may_wait { Ok(()) } else { Err(Error::needs_fiber().into()) }
    }

    /// Errors: who asks may not write to the space of keys: what is about the door as a whole is for those who may.
    pub(super) fn check_writer(&self) -> Outcome {
        Ok(self.database.check_space_access(self.context, self.spaces.keys(0)?, Privileges::WRITE)?)
    }

    /// Lets others have their turn where it runs in a fiber, unless it is one of several commands that others see as one. A transaction goes on in what
    /// it has seen.
    pub(super) fn give_way(&self) {
        if self.may_wait && !self.is_inside && !self.is_hurried {
            fiber::yield_turn();
        }
    }

    /// A random number below a bound.
    pub(super) fn random(&self, below: u64) -> u64 {
        let mut bytes = [0; 8];
        self.database.environment().randomness.fill(&mut bytes);
        u64::from_le_bytes(bytes) % below.max(1)
    }

    /// Tells those who look at a key that what it has was changed; `put_row` and `remove_row` do so by themselves.
    pub(super) fn touch(&self, key: &[u8]) {
        self.has_changed(key, false);
    }

    #[inline]
    pub(super) fn has_changed(&self, key: &[u8], is_removed: bool) {
        self.shared.touch(self.db, key);
        self.shared.changes.set(self.shared.changes.get() + 1);
        if self.shared.is_watchful.get() {
            events::note(self, key, is_removed);
        }
    }

    /// A head for a key that is not there yet.
    pub(super) fn new_head(&self, kind: Kind) -> Head {
        Head::new(kind, self.shared.next_id())
    }

    // --- arguments ---

    pub(super) fn integer(&self, at: usize) -> Outcome<i64> {
        self.args.get(at).and_then(|text| integer(text)).ok_or_else(|| NOT_INTEGER.into())
    }

    pub(super) fn double(&self, at: usize) -> Outcome<f64> {
        self.args.get(at).and_then(|text| double(text)).ok_or_else(|| NOT_FLOAT.into())
    }

    /// True if an argument is this word, in whatever case.
    pub(super) fn is_word(&self, at: usize, word: &str) -> bool {
        self.args.get(at).is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The argument behind a word. Errors: there is none.
    pub(super) fn after(&self, at: usize) -> Outcome<&'a [u8]> {
        self.args.get(at + 1).copied().ok_or_else(|| SYNTAX.into())
    }

    // --- keys ---

    /// The space of the keys.
    pub(super) fn keys(&self) -> Outcome<&Rc<Space>> {
        self.spaces.keys(self.db)
    }

    /// A row by its key. A command that writes waits for all that was written before; `see_all` is for one that does not come to it.
    #[inline]
    fn get(&self, space: &Rc<Space>, key: Key<'_>) -> Result<Option<Tuple>, Error> {
        match self.is_write {
            true => self.database.get_before_write(self.context, space, IndexId::PRIMARY, key),
            false => self.database.get(self.context, space, IndexId::PRIMARY, key),
        }
    }

    /// Has the answer wait for everything that was written to the spaces of the door.
    pub(super) fn see_all(&self) {
        self.spaces.all().for_each(|space| self.context.see(self.database.written(space)));
    }

    /// The row of a key. What has expired is not there.
    pub(super) fn find(&self, key: &[u8]) -> Outcome<Option<Entry>> {
        self.close_head_of(key)?;
        let space = self.keys()?;
        let found = self.shared.with_scratch(|scratch| {
            msgpack::encode_str(scratch, key);
            let key = Key { parts: scratch, part_count: 1 };
            self.get(space, key)
        })?;
        let Some(row) = found else {
            if self.shared.is_watchful.get() || self.shared.expires_on_sight.get() {
                events::miss(self, key);
            }
            return Ok(None);
        };
        let entry = Entry::of(row).ok_or_else(|| self.foreign_row(key))?;
        if self.shared.tracks_uses.get() {
            super::uses::note(self, key);
        }
        // The engine removes what has expired; a space without that is one of somebody's own.
        match entry.expires {
            Some(expires) if expires <= self.now_ms() => Ok(None),
            _ => Ok(Some(entry)),
        }
    }

    /// Has the rows of keys fetched that a command of many, every `step` parts one, is coming to: it has come to this one.
    #[inline]
    pub(super) fn prefetch(&self, step: usize, number: usize) {
        let from = 1 + number * step;
        if number.is_multiple_of(PREFETCH_MAX)
            && self.args.len() > from + step
            && let Ok(space) = self.keys()
        {
            self.database.prefetch_texts(space, self.args[from..].iter().step_by(step).take(PREFETCH_MAX).copied());
        }
    }

    #[cold]
    fn foreign_row(&self, key: &[u8]) -> Failure {
        let name = self.keys().map_or(String::new(), |space| space.name());
        let key = String::from_utf8_lossy(key).into_owned();
        format!("ERR the row of key '{key}' in space '{name}' is not one of this door: {{key, value}} or {{key, value, expires}}").into()
    }

    /// The head of a key that is of a kind. None: there is no key.
    pub(super) fn find_head(&self, key: &[u8], kind: Kind) -> Outcome<Option<(Head, Option<u64>)>> {
        if let Some((head, expires)) = self.open_head(key) {
            return if head.kind == kind { Ok(Some((head, expires))) } else { Err(WRONG_TYPE.into()) };
        }
        let Some(entry) = self.find(key)? else { return Ok(None) };
        let head = entry.head_of(kind)?;
        self.keep_head(key, &head, entry.expires)?;
        Ok(Some((head, entry.expires)))
    }

    /// Does a write. Of what is known of the row that was there: that, in a batch.
    #[inline]
    fn write(&self, space: &Rc<Space>, operation: Operation<'_>) -> Result<Option<Tuple>, Error> {
        match self.group.borrow_mut().as_mut() {
            Some(group) => group.batch.write(self.database, self.context, space, operation),
            None => self.database.execute(self.context, space, operation).map(|_| None),
        }
    }

    /// Puts the row of a key; in a batch, gives the one that was there.
    fn put_row(&self, key: &[u8], expires: Option<u64>, value: impl FnOnce(&mut Vec<u8>)) -> Outcome<Option<Tuple>> {
        self.close_head_of(key)?;
        self.write_row(key, expires, value)
    }

    pub(super) fn write_row(
        &self,
        key: &[u8],
        expires: Option<u64>,
        value: impl FnOnce(&mut Vec<u8>),
    ) -> Outcome<Option<Tuple>> {
        let space = self.keys()?;
        let old = self.shared.with_scratch(|scratch| {
            msgpack::encode_array(scratch, if expires.is_some() { 3 } else { 2 });
            msgpack::encode_str(scratch, key);
            value(scratch);
            if let Some(expires) = expires {
                msgpack::encode_uint(scratch, expires);
            }
            self.write(space, Operation::Replace { tuple: scratch })
        })?;
        self.has_changed(key, false);
        Ok(old)
    }

    /// Puts a string, whatever the key has; elements that it had are left over.
    pub(super) fn overwrite(&self, key: &[u8], value: &[u8], expires: Option<u64>) -> Outcome {
        if self.group.borrow().is_none() || self.shared.is_watchful.get() {
            let old = self.find(key)?;
            return self.put_string(key, value, expires, old.as_ref());
        }
        // As where the row is looked at first.
        self.database.check_space_access(self.context, self.keys()?, Privileges::READ)?;
        let Some(old) = self.put_row(key, expires, |out| msgpack::encode_str(out, value))? else { return Ok(()) };
        let old = Entry::of(old).ok_or_else(|| self.foreign_row(key))?;
        if let Some(head) = old.head {
            self.left.borrow_mut().push(head);
        }
        Ok(())
    }

    /// Puts a string in the place of what a key has; elements that it had are left over.
    pub(super) fn put_string(&self, key: &[u8], value: &[u8], expires: Option<u64>, old: Option<&Entry>) -> Outcome {
        self.put_row(key, expires, |out| msgpack::encode_str(out, value))?;
        if let Some(head) = old.and_then(|old| old.head) {
            self.left.borrow_mut().push(head);
        }
        Ok(())
    }

    /// Writes the head of a key; one without elements is removed with its key.
    pub(super) fn put_head(&self, key: &[u8], head: &Head, expires: Option<u64>) -> Outcome {
        if head.count == 0 && head.kind != Kind::Stream {
            return self.remove_row(key);
        }
        if !self.replace_open_head(key, head, expires)? {
            self.write_row(key, expires, |out| head.encode(out))?;
        }
        Ok(())
    }

    /// Writes what a row has under another key or with another time.
    pub(super) fn put_entry(&self, key: &[u8], entry: &Entry, expires: Option<u64>) -> Outcome {
        match entry.head {
            Some(head) => self.put_row(key, expires, |out| head.encode(out))?,
            None => self.put_row(key, expires, |out| msgpack::encode_str(out, entry.string().unwrap_or_default()))?,
        };
        Ok(())
    }

    /// Writes a head under a key, whatever it has.
    pub(super) fn put_entry_head(&self, key: &[u8], head: &Head, expires: Option<u64>) -> Outcome {
        self.put_row(key, expires, |out| head.encode(out))?;
        Ok(())
    }

    /// Removes the row of a key, and nothing else.
    pub(super) fn remove_row(&self, key: &[u8]) -> Outcome {
        self.close_head_of(key)?;
        let space = self.keys()?;
        self.shared.with_scratch(|scratch| {
            msgpack::encode_array(scratch, 1);
            msgpack::encode_str(scratch, key);
            let operation = Operation::Delete { index_id: IndexId::PRIMARY, key: scratch };
            self.write(space, operation)
        })?;
        self.has_changed(key, true);
        Ok(())
    }

    /// Removes a key with what it has. False: it was not there.
    pub(super) fn remove(&self, key: &[u8]) -> Outcome<bool> {
        let Some(entry) = self.find(key)? else { return Ok(false) };
        self.remove_row(key)?;
        if let Some(head) = entry.head {
            self.left.borrow_mut().push(head);
        }
        Ok(true)
    }

    // --- elements ---

    /// The space of elements of a kind.
    pub(super) fn elements(&self, kind: Kind) -> Outcome<&Rc<Space>> {
        self.spaces.elements(kind)
    }

    /// A row of elements by a full key, made by `encode`.
    pub(super) fn get_element(
        &self,
        kind: Kind,
        part_count: u32,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Outcome<Option<Tuple>> {
        let space = self.elements(kind)?;
        let found = self.shared.with_scratch(|scratch| {
            encode(scratch);
            self.get(space, Key { parts: scratch, part_count })
        });
        Ok(found?)
    }

    /// Puts a row of elements, made by `encode`.
    pub(super) fn put_element(&self, kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) -> Outcome {
        self.replace_element(kind, encode)?;
        Ok(())
    }

    /// The same; if writes [know](Self::writes_know) it, gives the row that was there.
    pub(super) fn replace_element(&self, kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) -> Outcome<Option<Tuple>> {
        let space = self.elements(kind)?;
        let old = self.shared.with_scratch(|scratch| {
            encode(scratch);
            self.write(space, Operation::Replace { tuple: scratch })
        })?;
        Ok(old)
    }

    /// True if a write gives the row that was there, which nobody has to look for then: those of a batch do.
    pub(super) fn writes_know(&self) -> bool {
        self.group.borrow().is_some()
    }

    /// The same of a row of two fields of key, the number of a head and a text, and of what `encode` writes. True: no row had that key.
    pub(super) fn put_member(
        &self,
        head: &Head,
        member: &[u8],
        field_count: u32,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Outcome<bool> {
        let space = self.elements(head.kind)?;
        let was_there = match self.writes_know() {
            true => false,
            false => self.get_element(head.kind, 2, |out| encode_member(out, head, member))?.is_some(),
        };
        let old = self.shared.with_scratch(|scratch| {
            msgpack::encode_array(scratch, field_count);
            encode_member(scratch, head, member);
            encode(scratch);
            self.write(space, Operation::Replace { tuple: scratch })
        })?;
        Ok(!was_there && old.is_none())
    }

    /// Puts a row into a space.
    pub(super) fn put_into(&self, space: &Rc<Space>, row: &[u8]) -> Outcome {
        self.write(space, Operation::Replace { tuple: row })?;
        Ok(())
    }

    /// Takes a row of elements out whose key has the number of a head and a text. False: there is none.
    pub(super) fn take_member(&self, head: &Head, member: &[u8]) -> Outcome<bool> {
        let taken = self.take_element(head.kind, 2, |out| encode_member(out, head, member))?;
        Ok(taken.is_some())
    }

    /// Takes a row of elements out, if there is one with the key of which `encode` writes the parts, and gives it.
    pub(super) fn take_element(
        &self,
        kind: Kind,
        part_count: u32,
        encode: impl Fn(&mut Vec<u8>),
    ) -> Outcome<Option<Tuple>> {
        let space = self.elements(kind)?;
        let found = match self.group.borrow().is_some() {
            true => None,
            false => match self.get_element(kind, part_count, &encode)? {
                None => return Ok(None),
                found => found,
            },
        };
        let old = self.shared.with_scratch(|scratch| {
            msgpack::encode_array(scratch, part_count);
            encode(scratch);
            self.write(space, Operation::Delete { index_id: IndexId::PRIMARY, key: scratch })
        })?;
        Ok(found.or(old))
    }

    /// Removes a row of elements by its key, an array made by `encode`.
    pub(super) fn remove_element(&self, kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) -> Outcome {
        let space = self.elements(kind)?;
        self.shared.with_scratch(|scratch| {
            encode(scratch);
            let operation = Operation::Delete { index_id: IndexId::PRIMARY, key: scratch };
            self.write(space, operation)
        })?;
        Ok(())
    }

    /// Hands the rows of a scan of elements to `visit` until it returns false; `encode` writes the parts of the key.
    pub(super) fn scan(
        &self,
        kind: Kind,
        (index_id, iterator, part_count): (IndexId, IteratorKind, u32),
        (offset, limit): (u64, u64),
        encode: impl FnOnce(&mut Vec<u8>),
        visit: impl FnMut(&[u8]) -> bool,
    ) -> Outcome {
        let mut parts = Vec::with_capacity(32);
        encode(&mut parts);
        let key = Key { parts: &parts, part_count };
        let request = ScanRequest { index_id, kind: iterator, key, offset, limit };
        self.database.select(self.context, self.elements(kind)?, &request, visit)?;
        Ok(())
    }

    /// Hands all elements of a head to `visit`, behind their number, until it returns false. Many are read in slices, of one state.
    pub(super) fn walk(&self, head: &Head, mut visit: impl FnMut(&mut Reader<'_>) -> bool) -> Outcome {
        let skip_id = |row: &[u8]| -> usize {
            let mut reader = Reader::new(row);
            let read = reader.read_array().and_then(|_| reader.read_uint());
            if read == Ok(head.id) { reader.position() } else { 0 }
        };
        let primary = (IndexId::PRIMARY, IteratorKind::Eq, 1);
        if head.count <= SLICE {
            return self.scan(
                head.kind,
                primary,
                (0, u64::MAX),
                |out| msgpack::encode_uint(out, head.id),
                |row| visit(&mut Reader::new(&row[skip_id(row)..])),
            );
        }
        self.go_into_fiber()?;
        let is_own = !self.context.is_in_txn();
        if is_own {
            self.database.begin(self.context)?;
        }
        let mut parts = Vec::new();
        msgpack::encode_uint(&mut parts, head.id);
        let (mut iterator, mut part_count) = (IteratorKind::Ge, 1);
        let walked = loop {
            let (mut seen, mut is_over, mut last) = (0, false, Vec::new());
            let scanned = self.scan(
                head.kind,
                (IndexId::PRIMARY, iterator, part_count),
                (0, SLICE),
                |out| out.extend_from_slice(&parts),
                |row| {
                    let at = skip_id(row);
                    seen += 1;
                    is_over = at == 0 || !visit(&mut Reader::new(&row[at..]));
                    if seen == SLICE {
                        last = row.to_vec();
                    }
                    !is_over
                },
            );
            if scanned.is_err() || is_over || seen < SLICE {
                break scanned;
            }
            // The key of the last one: its number and what stands behind it, which is one field or two.
            let mut reader = Reader::new(&last);
            let fields = if head.kind == Kind::Stream { 3 } else { 2 };
            let begin = reader.read_array().map_or(0, |_| reader.position());
            (0..fields).for_each(|_| reader.skip_checked());
            parts = last[begin..reader.position()].to_vec();
            (iterator, part_count) = (IteratorKind::Gt, fields);
            self.give_way();
        };
        if is_own {
            self.database.abandon(self.context);
        }
        walked
    }

    /// Puts the elements of a head that no key has yet: many in slices, each a transaction of its own, since nobody can see them. What comes of a failure
    /// is left over. Within a transaction, and if they are few, all are written at once.
    pub(super) fn build(
        &mut self,
        head: &Head,
        count: usize,
        mut put: impl FnMut(&mut Self, usize) -> Outcome,
    ) -> Outcome {
        const AT_ONCE: usize = 256;
        if self.context.is_in_txn() || count <= AT_ONCE {
            return self.atomically(|call| (0..count).try_for_each(|at| put(call, at)));
        }
        self.go_into_fiber()?;
        self.shared.building.borrow_mut().insert(head.id);
        let mut at = 0;
        let built = loop {
            let end = (at + AT_ONCE).min(count);
            let written = self.atomically(|call| (at..end).try_for_each(|at| put(call, at)));
            if written.is_err() || end == count {
                break written;
            }
            at = end;
            self.give_way();
        };
        self.shared.building.borrow_mut().remove(&head.id);
        if built.is_err() {
            super::leftovers::add(self.shared, self.database, vec![*head]);
        }
        built
    }

    /// Gives a key a head whose elements are there, in the place of whatever it has; one without elements removes it.
    pub(super) fn replace_with(&mut self, key: &[u8], head: &Head) -> Outcome {
        self.atomically(|call| {
            let taken = call.find(key)?.map(|entry| entry.head);
            if head.count > 0 {
                call.put_entry_head(key, head, None)?;
            } else if taken.is_some() {
                call.remove_row(key)?;
            }
            call.left.borrow_mut().extend(taken.flatten());
            Ok(())
        })
    }

    // --- all or nothing ---

    /// Does several writes or none.
    pub(super) fn atomically<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let (database, context) = (self.database, self.context);
        let (mark, events_mark) = (self.left.borrow().len(), self.events.borrow().len());
        if context.is_in_txn() {
            let savepoint = database.savepoint(context, None)?;
            return work(self).inspect_err(|_| {
                self.left.borrow_mut().truncate(mark);
                self.events.borrow_mut().truncate(events_mark);
                // What fails here has ended the transaction, which its next statement says.
                let _ = database.rollback_to_savepoint(context, &savepoint);
            });
        }
        database.begin(context)?;
        let done = work(self).and_then(|value| {
            database.commit(context)?;
            Ok(value)
        });
        if done.is_err() {
            self.left.borrow_mut().truncate(mark);
            self.events.borrow_mut().truncate(events_mark);
            database.abandon(context);
        }
        done
    }
}

/// The key of a row of elements that has the number of a head and a text.
fn encode_member(out: &mut Vec<u8>, head: &Head, member: &[u8]) {
    msgpack::encode_uint(out, head.id);
    msgpack::encode_str(out, member);
}

/// A whole number of so many digits is a float as it is.
const EXACT_DIGITS: usize = 15;

/// A floating-point number as Redis takes it: nothing around it, no NaN.
pub(super) fn double(text: &[u8]) -> Option<f64> {
    if !text.is_empty() && text.len() <= EXACT_DIGITS && text.iter().all(u8::is_ascii_digit) {
        return Some(text.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0')) as f64);
    }
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() || text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return None;
    }
    let is_infinite = |text: &str| {
        let text = text.trim_start_matches(['+', '-']);
        text.eq_ignore_ascii_case("inf") || text.eq_ignore_ascii_case("infinity")
    };
    let value: f64 = text.parse().ok()?;
    (!value.is_nan() && (value.is_finite() || is_infinite(text))).then_some(value)
}
