//! What commands do to items, whatever the words or bytes they were asked with.
//!
//! A command that looks at a row and then writes it runs to its end on the event loop's own stack, where nobody comes between; or, if it has to
//! wait, in a fiber and a transaction, which is begun again if somebody was faster.

use super::Bound;
use super::Cache;
use super::layout::{BINARY_KEY, Item, STALE, TOKEN_SENT};
use super::numbers::{push_u64, read_u64};
use super::onlookers::Seen;
use super::text::KEY_BYTES_MAX;
use database::{Context, Database, Error, ErrorCode, Key, Operation, Result, ScanRequest};
use storage::IteratorKind;
use tuple::{IndexId, Tuple};
use wal::Position;

/// Attempts of a transaction that others get in the way of.
const ATTEMPTS_MAX: u32 = 1000;

/// How a value is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With this cas.
    Stored(u64),
    NotStored,
    Exists,
    NotFound,
}

/// What is to be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) verb: Verb,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) flags: u32,
    /// When it expires: seconds since 1970, 0 never.
    pub(super) expires: u64,
    /// The cas that the item must have; 0: any.
    pub(super) cas: u64,
    /// The cas that it gets; 0: one of its own.
    pub(super) given_cas: u64,
    /// The key came as base64.
    pub(super) is_binary: bool,
    /// An older cas is taken, and the item is out of date then.
    pub(super) takes_stale: bool,
    /// Where nothing is to be appended to: the item begins with the value, and expires then.
    pub(super) begins: Option<u64>,
}

/// What incr and decr have come to.
pub(super) enum Sum {
    /// With the time when it would have expired before.
    Done {
        value: u64,
        cas: u64,
        expires: u64,
    },
    NotFound,
    NoNumber,
    Exists,
}

/// A full primary key as a scan takes it.
pub(super) struct KeyBytes {
    bytes: [u8; KEY_BYTES_MAX + 3],
    length: usize,
}

impl KeyBytes {
    #[inline]
    pub(super) fn of(key: &[u8]) -> Self {
        let mut made = KeyBytes { bytes: [0; KEY_BYTES_MAX + 3], length: 0 };
        let length = key.len().min(KEY_BYTES_MAX);
        // An array of one string: a short one has its length in its first byte.
        let header: &[u8] = if length < 32 { &[0x91, 0xa0 | length as u8] } else { &[0x91, 0xd9, length as u8] };
        made.bytes[..header.len()].copy_from_slice(header);
        made.bytes[header.len()..header.len() + length].copy_from_slice(&key[..length]);
        made.length = header.len() + length;
        made
    }

    fn array(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline]
    fn key(&self) -> Key<'_> {
        Key { parts: &self.bytes[1..self.length], part_count: 1 }
    }
}

/// One request at work.
pub(super) struct Work<'a> {
    pub(super) door: &'a Cache,
    pub(super) database: &'a Database,
    pub(super) context: &'a Context,
    pub(super) bound: &'a Bound,
    /// It may wait, and others come between.
    pub(super) is_in_fiber: bool,
}

impl Work<'_> {
    /// The position that an answer depends on which tells of a key.
    #[inline]
    pub(super) fn written(&self, key: &[u8]) -> Position {
        let (database, space) = (self.database, &self.bound.space);
        let written = database.written(space);
        if written <= database.durable() {
            return written;
        }
        let key = KeyBytes::of(key);
        database.written_of(space, &ScanRequest::new(IndexId::PRIMARY, IteratorKind::Eq, key.key()))
    }

    /// The row under a key, even one that has expired.
    #[inline]
    fn row(&self, key: &[u8]) -> Result<Option<Tuple>> {
        let key = KeyBytes::of(key);
        self.database.get(self.context, &self.bound.space, IndexId::PRIMARY, key.key())
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.door.now(self.database)
    }

    /// True if an item is no longer there: rows of the door's own spaces, which expire by themselves, are not even found then.
    #[inline]
    fn is_gone(&self, item: &Item<'_>) -> bool {
        item.expires != 0 && item.expires <= self.now()
    }

    /// A new cas, unless one is given.
    pub(super) fn cas_or(&self, given: u64) -> u64 {
        match given {
            _ if !self.door.has_cas => 0,
            0 => self.door.next_cas(self.database),
            given => given,
        }
    }

    /// Looks an item up; `work` gets it with its row.
    #[inline]
    pub(super) fn look<T>(
        &self,
        key: &[u8],
        wants_cas: bool,
        work: impl FnOnce(Option<(&Item<'_>, &Tuple)>) -> Result<T>,
    ) -> Result<T> {
        let Some(row) = self.row(key)? else { return work(None) };
        let mut item = self.bound.layout.read(row.data(), wants_cas && self.door.has_cas)?;
        if !self.door.has_cas {
            item.cas = 0;
        }
        if self.is_gone(&item) {
            self.database.note_hidden_read();
            return work(None);
        }
        work(Some((&item, &row)))
    }

    /// Writes an item: `old` is the row that it comes for.
    pub(super) fn put(&self, key: &[u8], item: &Item<'_>, old: Option<&[u8]>) -> Result<u64> {
        self.door.flushed.forget(key);
        let mut row = self.door.scratch.take();
        row.clear();
        self.bound.layout.encode(&mut row, key, item, old);
        let done = self.database.execute(self.context, &self.bound.space, Operation::Replace { tuple: &row });
        // Where rows have no cas of their own, it is made of what they are.
        let cas = match self.bound.layout.cas {
            _ if !self.door.has_cas => Ok(0),
            Some(_) => Ok(item.cas),
            None => self.bound.layout.read(&row, true).map(|item| item.cas),
        };
        super::give_back(&self.door.scratch, row);
        done.inspect_err(|error| self.note_refusal(error, key, item))?;
        cas
    }

    /// An item could not be stored: counts it if that was for want of room.
    #[cold]
    fn note_refusal(&self, error: &Error, key: &[u8], item: &Item<'_>) {
        if error.is(ErrorCode::MemoryIssue) {
            self.door.survey.count(super::survey::class(key, item), |left| left.refused += 1);
        }
    }

    pub(super) fn remove(&self, key: &[u8]) -> Result<()> {
        let key = KeyBytes::of(key);
        let operation = Operation::Delete { index_id: IndexId::PRIMARY, key: key.array() };
        self.database.execute(self.context, &self.bound.space, operation).map(drop)
    }

    /// Does what looks at rows and writes them as one. `work` may run several times.
    pub(super) fn atomically<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        if !self.is_in_fiber {
            return work();
        }
        let mut attempts = 0;
        loop {
            self.database.begin(self.context)?;
            let done = work().and_then(|value| self.database.commit(self.context).map(|()| value));
            match done {
                Err(error) => {
                    self.database.abandon(self.context);
                    attempts += 1;
                    if !error.is(ErrorCode::TransactionConflict) || attempts == ATTEMPTS_MAX {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// One item was asked for and is not there: counts why. `hidden`: [`Database::hidden_reads`] before it was asked for.
    pub(super) fn note_miss(&self, key: &[u8], hidden: u64) {
        let expired = u64::from(self.is_miss_of_expired(key, hidden));
        super::stats::add(&self.door.counters.get_expired, expired);
    }

    /// True if what is not there has expired, which is left to the caller to count: he may be about to look again. Counts what was flushed. What was read
    /// meanwhile by others, while this read has waited for a disk, is not told apart: of spaces on disk nothing is counted.
    #[inline]
    pub(super) fn is_miss_of_expired(&self, key: &[u8], hidden: u64) -> bool {
        if self.database.hidden_reads() != hidden && self.bound.space.rows.memory().is_some() {
            return true;
        }
        if self.door.flushed.take(key) {
            super::stats::add(&self.door.counters.get_flushed, 1);
        }
        false
    }

    /// An item was asked for: those who look on are told.
    #[inline]
    pub(super) fn saw_get(&self, key: &[u8], found: Option<Seen>) {
        if self.door.onlookers.is_any() {
            self.door.onlookers.fetched(self.database, self.context.session.id, key, found);
        }
    }

    /// The same behind [`Work::store_item`].
    #[cold]
    fn store_seen(&self, wanted: &Wanted<'_>) -> Result<Outcome> {
        let (onlookers, client) = (&self.door.onlookers, self.context.session.id);
        let found = self.look(wanted.key, false, |found| Ok(found.map(|(item, _)| Seen::of(item))))?;
        onlookers.looked(self.database, client, wanted.key, found);
        let outcome = self.store_item(wanted)?;
        let seen = Seen { length: wanted.value.len(), flags: wanted.flags };
        let ttl = if wanted.expires == 0 { 0 } else { wanted.expires.saturating_sub(self.now()) };
        onlookers.stored(self.database, client, wanted.key, wanted.verb, ttl, (outcome, seen));
        Ok(outcome)
    }

    /// Stores a value.
    #[inline]
    pub(super) fn store(&self, wanted: &Wanted<'_>) -> Result<Outcome> {
        if self.door.onlookers.is_any() { self.store_seen(wanted) } else { self.store_item(wanted) }
    }

    fn store_item(&self, wanted: &Wanted<'_>) -> Result<Outcome> {
        let (layout, counters) = (&self.bound.layout, &self.door.counters);
        let item = Item {
            value: wanted.value,
            flags: wanted.flags,
            cas: self.cas_or(wanted.given_cas),
            expires: wanted.expires,
            state: if wanted.is_binary { BINARY_KEY } else { 0 },
        };
        if wanted.verb == Verb::Set && layout.is_own {
            self.put(wanted.key, &item, None)?;
            let outcome = Outcome::Stored(item.cas);
            counters.count_store(outcome, false);
            return Ok(outcome);
        }
        let outcome = self.atomically(|| {
            self.look(wanted.key, wanted.cas != 0, |found| {
                let Some((old, row)) = found else {
                    return match wanted.verb {
                        Verb::Set | Verb::Add => self.put(wanted.key, &item, None).map(Outcome::Stored),
                        Verb::Cas => Ok(Outcome::NotFound),
                        Verb::Append | Verb::Prepend if wanted.begins.is_some() => {
                            let expires = wanted.begins.unwrap_or(0);
                            self.put(wanted.key, &Item { expires, ..item }, None).map(Outcome::Stored)
                        }
                        _ => Ok(Outcome::NotStored),
                    };
                };
                let is_stale = wanted.takes_stale && wanted.cas < old.cas;
                let is_same = wanted.cas == 0 || wanted.cas == old.cas;
                let mut joined = Vec::new();
                let mut made = item;
                match wanted.verb {
                    Verb::Add => return Ok(Outcome::NotStored),
                    #[cfg(feature = "planted-bugs")]
                    Verb::Cas if runtime::planted::is_planted(runtime::planted::Plant::TakeAnyCas) => {}
                    Verb::Cas if wanted.cas == old.cas && wanted.cas != 0 => {}
                    Verb::Cas if wanted.cas != 0 && is_stale => {
                        made.expires = old.expires;
                        made.state |= STALE | old.state & TOKEN_SENT;
                    }
                    Verb::Cas => return Ok(Outcome::Exists),
                    Verb::Append | Verb::Prepend if !is_same => return Ok(Outcome::Exists),
                    Verb::Append | Verb::Prepend => {
                        let length = old.value.len() + wanted.value.len();
                        if super::text::item_size(wanted.key, old.flags, length) > self.door.item_size_max {
                            return Ok(Outcome::NotStored);
                        }
                        joined.reserve_exact(length);
                        let is_append = wanted.verb == Verb::Append;
                        let (first, second) =
                            if is_append { (old.value, wanted.value) } else { (wanted.value, old.value) };
                        joined.extend_from_slice(first);
                        joined.extend_from_slice(second);
                        made.flags = old.flags;
                        made.expires = old.expires;
                    }
                    Verb::Set | Verb::Replace => {}
                }
                if !joined.is_empty() {
                    made.value = &joined;
                }
                self.put(wanted.key, &made, Some(row.data())).map(Outcome::Stored)
            })
        })?;
        counters.count_store(outcome, wanted.verb == Verb::Cas);
        Ok(outcome)
    }

    /// Adds to a number, or takes away from it but not below 0. `cas`: the one that the item must have; 0: any.
    pub(super) fn add(&self, key: &[u8], delta: u64, is_incr: bool, cas: u64) -> Result<Sum> {
        self.add_and(key, (delta, is_incr), (cas, 0), None)
    }

    /// The same; `given_cas`: the one that it gets, 0 for one of its own. `expires`: from now on it expires then.
    pub(super) fn add_and(
        &self,
        key: &[u8],
        (delta, is_incr): (u64, bool),
        (cas, given_cas): (u64, u64),
        expires: Option<u64>,
    ) -> Result<Sum> {
        self.atomically(|| {
            self.look(key, true, |found| {
                let Some((old, row)) = found else { return Ok(Sum::NotFound) };
                // As the real one: nothing is no number, whatever the cas.
                if old.value.is_empty() {
                    return Ok(Sum::NoNumber);
                }
                if cas != 0 && cas != old.cas {
                    return Ok(Sum::Exists);
                }
                let Some(number) = read_u64(old.value) else { return Ok(Sum::NoNumber) };
                let value = if is_incr { number.wrapping_add(delta) } else { number.saturating_sub(delta) };
                let mut text = Vec::with_capacity(20);
                push_u64(&mut text, value);
                // As the real one, which writes into the place of the old text.
                while text.len() < old.value.len() {
                    text.push(b' ');
                }
                let expires = expires.unwrap_or(old.expires);
                let made = Item { value: &text, cas: self.cas_or(given_cas), expires, ..*old };
                let cas = self.put(key, &made, Some(row.data()))?;
                Ok(Sum::Done { value, cas, expires: old.expires })
            })
        })
    }

    /// Removes an item. `cas`: the one that it must have; 0: any.
    pub(super) fn delete(&self, key: &[u8], cas: u64) -> Result<Outcome> {
        let (outcome, seen) = self.atomically(|| {
            self.look(key, cas != 0, |found| match found {
                None => Ok((Outcome::NotFound, None)),
                Some((old, _)) if cas != 0 && cas != old.cas => Ok((Outcome::Exists, None)),
                Some((old, _)) => self.remove(key).map(|()| (Outcome::Stored(0), Some(Seen::of(old)))),
            })
        })?;
        if self.door.onlookers.is_any() {
            self.door.onlookers.deleted(self.database, self.context.session.id, key, seen);
        }
        Ok(outcome)
    }

    /// Changes when an item expires; `work` gets the item as it is then.
    pub(super) fn touch<T>(&self, key: &[u8], expires: u64, work: impl Fn(Option<&Item<'_>>) -> T) -> Result<T> {
        if self.bound.layout.expires.is_none() {
            return Err(Error::illegal("no field of the space says when a row expires"));
        }
        self.atomically(|| {
            self.look(key, true, |found| {
                let Some((old, row)) = found else { return Ok(work(None)) };
                let made = Item { expires, ..*old };
                if made.expires != old.expires {
                    self.put(key, &made, Some(row.data()))?;
                }
                Ok(work(Some(&made)))
            })
        })
    }
}
