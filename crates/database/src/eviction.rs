//! Spaces with a limit of memory: what they take is summed up, and rows leave for those that come, or writes are refused.
//!
//! Rows leave by a clock. A hand goes round the primary index; a table beside the space has two bits of use for each key, by its hash, which reads by key
//! raise and the hand lowers. A row without use leaves; if the hand meets none for a stretch, the row with the least use does. The table outlives rows, so a
//! key that comes back may find the use of another one there: that costs a little of the hit ratio and nothing else.
//!
//! A row that leaves is deleted like any other, in the log and in the transaction of the write that needs its room: if that is rolled back, the row is there again.
//!
//! Refused: a list in the order of use (LRU). It takes 16 bytes a row, is written by every read, and has fewer hits: `tests/eviction.rs`. Queues of hashes
//! (S3-FIFO) take 8 bytes and more a row, and no row is found by its hash in an ordered index.

use crate::catalog::{MemoryLimit, Space};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::Leaving;
use crate::session::{Context, SessionKind};
use crate::statement::Operation;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::rc::Rc;
use storage::{IndexDef, IndexKind, IteratorKind, Key, ScanRequest};
use tuple::msgpack::Reader;
use tuple::{IndexId, Tuple};

/// Rows that the hand passes for one that leaves.
const STRETCH: usize = 16;
/// Rows that leave for one statement, at most.
const EVICTED_MAX: usize = 1024;
/// The most use that a key may have.
const USE_MAX: u8 = 3;
/// The smallest table of uses, in bytes; a power of two.
const USES_MIN: usize = 1024;
/// Bytes of it for a row, at least: so few keys share their bits that rows which nobody uses do not stay for it.
const USE_BYTES: usize = 4;

/// How a space with a limit fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounts {
    /// The limit in bytes.
    pub limit: u64,
    /// Bytes of rows, their headers, all index entries and the table of uses.
    pub used: u64,
    /// Rows that have left for others, and their bytes.
    pub evicted: u64,
    /// Bytes of those rows.
    pub evicted_bytes: u64,
    /// Reads by a full unique key that have found a row.
    pub hits: u64,
    /// Those that have found none.
    pub misses: u64,
    /// Writes that were refused for want of room.
    pub refused: u64,
}

/// What a space with a limit keeps beside its rows.
#[derive(Default)]
pub(crate) struct Evictor {
    /// Two bits each, four in a byte.
    uses: RefCell<Vec<u8>>,
    /// The primary key of the row that the hand has passed last.
    hand: RefCell<Option<Vec<u8>>>,
    /// Who looks for rows that leave.
    reader: OnceCell<Context>,
    /// The next row of a hash that is looked at.
    seed: Cell<u64>,
    counts: Cell<EvictionCounts>,
}

impl Evictor {
    fn count(&self, change: impl FnOnce(&mut EvictionCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Changes the use of a key, the encoded parts of a primary key. Returns what it was.
    fn change(&self, key: &[u8], change: impl FnOnce(u8) -> u8) -> u8 {
        let mut uses = self.uses.borrow_mut();
        if uses.is_empty() {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(key);
        let place = hasher.finish() as usize & (uses.len() * 4 - 1);
        let (at, shift) = (place / 4, place % 4 * 2);
        let before = uses[at] >> shift & USE_MAX;
        uses[at] = uses[at] & !(USE_MAX << shift) | (change(before) & USE_MAX) << shift;
        before
    }

    /// A key was used.
    fn raise(&self, key: &[u8]) {
        self.change(key, |uses| (uses + 1).min(USE_MAX));
    }

    /// The hand passes a key. Its use before.
    fn lower(&self, key: &[u8]) -> u8 {
        self.change(key, |uses| uses.saturating_sub(1))
    }

    /// Has a place for each of so many rows. What is known stays known.
    fn fit(&self, rows: usize) {
        let mut uses = self.uses.borrow_mut();
        if uses.is_empty() {
            uses.resize(USES_MIN, 0);
        }
        while uses.len() < rows.saturating_mul(USE_BYTES) {
            uses.extend_from_within(..);
        }
    }
}

/// The encoded parts of the primary key of a row.
fn primary_key(space: &Space, row: &[u8], key: &mut Vec<u8>) -> bool {
    key.clear();
    match space.index_def(IndexId::PRIMARY) {
        Some(primary) => primary.key_def.extract_key(row, key),
        None => return false,
    }
    true
}

fn parts_of(key: &[u8]) -> &[u8] {
    let mut reader = Reader::new(key);
    reader.read_array().map_or(&[][..], |_| reader.rest())
}

/// What a row takes beside its index entries.
fn bytes_of(row_bytes: usize) -> u64 {
    (row_bytes + Tuple::HEADER_BYTES) as u64
}

impl Space {
    /// Bytes of rows with their headers, of all index entries and of what eviction keeps.
    pub fn used_bytes(&self) -> u64 {
        let rows = self.rows.memory().map_or(0, |rows| rows.borrow().used_bytes()) as u64;
        rows + self.evictor().map_or(0, |evictor| evictor.uses.borrow().len() as u64)
    }

    /// How a space with a limit fares. None: it has no limit.
    pub fn eviction_counts(&self) -> Option<EvictionCounts> {
        let (limit, evictor) = (self.memory_limit()?, self.evictor()?);
        Some(EvictionCounts { limit: limit.bytes, used: self.used_bytes(), ..evictor.counts.get() })
    }
}

impl Database {
    /// A read of a space with a limit has found a row first, or none: by a full key of a unique index that is a use.
    #[cold]
    pub(crate) fn note_use(&self, space: &Space, request: &ScanRequest<'_>, found: Option<&[u8]>) {
        let is_full_key = |def: &IndexDef| def.is_unique && def.key_def.part_count() as u32 == request.key.part_count;
        if request.kind != IteratorKind::Eq || !space.index_def(request.index_id).is_some_and(|def| is_full_key(&def)) {
            return;
        }
        let Some(evictor) = space.evictor() else { return };
        evictor.count(|counts| match found {
            Some(_) => counts.hits += 1,
            None => counts.misses += 1,
        });
        let mut key = Vec::new();
        if let Some(row) = found
            && primary_key(space, row, &mut key)
        {
            evictor.raise(parts_of(&key));
        }
    }

    /// Makes room for what a statement writes to a space with a limit, or refuses it.
    ///
    /// Errors: `MemoryIssue`; those of deletes.
    #[cold]
    pub(crate) fn keep_limit(
        &self,
        context: &Context,
        space: &Rc<Space>,
        limit: MemoryLimit,
        operation: &Operation<'_>,
    ) -> Result<()> {
        let (row, growth) = match *operation {
            Operation::Insert { tuple } | Operation::Replace { tuple } => (Some(tuple), bytes_of(tuple.len())),
            // What the operations add is no more than they are.
            Operation::Upsert { tuple, ops, .. } => (Some(tuple), bytes_of(tuple.len().max(ops.len()))),
            Operation::Update { ops, .. } => (None, ops.len() as u64),
            Operation::Delete { .. } | Operation::Expire { .. } => return Ok(()),
        };
        let (Some(rows), Some(evictor)) = (space.rows.memory(), space.evictor()) else { return Ok(()) };
        if limit.evicts {
            evictor.fit(rows.borrow().len());
        }
        let used = space.used_bytes();
        if used.saturating_add(growth) <= limit.bytes {
            return Ok(());
        }
        let old =
            row.filter(|row| space.format().check(row).is_ok()).and_then(|row| space.rows.same_key_in_memory(row));
        let replaced = old.as_ref().map_or(0, |old| bytes_of(old.size()));
        let wanted = used.saturating_add(growth).saturating_sub(replaced).saturating_sub(limit.bytes);
        if growth <= replaced || wanted == 0 {
            return Ok(());
        }
        let freed = if limit.evicts { self.evict(context, space, &evictor, wanted, old.as_ref())? } else { 0 };
        if freed >= wanted {
            return Ok(());
        }
        evictor.count(|counts| counts.refused += 1);
        let what = format!(
            "a row of space '{}' (the limit is {} bytes, {} are in use)",
            space.name(),
            limit.bytes,
            space.used_bytes()
        );
        Err(Error::new(ErrorCode::MemoryIssue, &[&growth, &"memory_limit", &what])
            .with("space", space.name())
            .with("limit", limit.bytes))
    }

    /// Has rows but one leave until so many bytes are free, or no more may leave for one statement. Returns how many are.
    fn evict(
        &self,
        context: &Context,
        space: &Rc<Space>,
        evictor: &Evictor,
        wanted: u64,
        stays: Option<&Tuple>,
    ) -> Result<u64> {
        let mut freed = 0;
        for _ in 0..EVICTED_MAX {
            if freed >= wanted {
                break;
            }
            let Some(row) = self.next_to_leave(space, evictor, stays)? else { break };
            let mut key = Vec::new();
            if !primary_key(space, row.data(), &mut key) {
                break;
            }
            let delete = match self.shows(context, space, row.data()) {
                true => Operation::Delete { index_id: IndexId::PRIMARY, key: &key },
                false => Operation::Expire { key: &key },
            };
            self.is_evicting.set(true);
            let removed = self.execute_as_it_is(context, space, delete);
            self.is_evicting.set(false);
            if removed?.is_some() {
                freed += bytes_of(row.size());
                self.tell_leaving(context, space, &row, Leaving::Evicted);
                evictor.count(|counts| {
                    counts.evicted += 1;
                    counts.evicted_bytes += bytes_of(row.size());
                });
            }
        }
        Ok(freed)
    }

    /// The row at which the hand stops, not at `stays`, which is about to be replaced.
    fn next_to_leave(&self, space: &Rc<Space>, evictor: &Evictor, stays: Option<&Tuple>) -> Result<Option<Tuple>> {
        let is_ordered = space.index_def(IndexId::PRIMARY).is_some_and(|def| def.kind == IndexKind::Tree);
        let mut hand = evictor.hand.take();
        let reader =
            evictor.reader.get_or_init(|| Context::for_expiry(self.open_session(SessionKind::Background, None)));
        // Kept no longer than this: it holds the space, which holds the hand.
        let mut cursor = None;
        let mut least: Option<(u8, Tuple)> = None;
        let (mut key, mut ends) = (Vec::new(), 0);
        for _ in 0..STRETCH {
            let row = match (&mut cursor, is_ordered) {
                // A hash has no order that stays: any row.
                (_, false) => {
                    let seed = evictor.seed.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    evictor.seed.set(seed);
                    space.rows.memory().and_then(|rows| rows.borrow().random(IndexId::PRIMARY, seed >> 16))
                }
                (None, true) => {
                    let request = match hand.as_deref() {
                        Some(key) => ScanRequest::new(IndexId::PRIMARY, IteratorKind::Gt, Key::decode(key)?),
                        None => ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY),
                    };
                    cursor.insert(self.cursor(reader, space, &request)?).next(self, reader)?
                }
                (Some(cursor), true) => cursor.next(self, reader)?,
            };
            let Some(row) = row else {
                // Round, once: there may be nothing.
                (hand, cursor, ends) = (None, None, ends + 1);
                if ends > 1 {
                    break;
                }
                continue;
            };
            if !primary_key(space, row.data(), &mut key) {
                break;
            }
            hand = Some(key.clone());
            if stays.is_some_and(|stays| stays.ptr_eq(&row)) {
                continue;
            }
            if self.locks.are_any() && self.is_locked(space, &row) {
                continue;
            }
            let was_used = evictor.lower(parts_of(&key));
            if least.as_ref().is_none_or(|(least, _)| was_used < *least) {
                least = Some((was_used, row));
            }
            if was_used == 0 {
                break;
            }
        }
        *evictor.hand.borrow_mut() = hand;
        Ok(least.map(|(_, row)| row))
    }
}
