//! How a block comes from a run: from the cache, from the page cache of the machine in passing, or by a read that a fiber waits for.
//!
//! A statement that finds a block missing stops with [`Stop::Wait`] and what it needs. Its fiber calls [`BlockReader::fetch`] and tries again
//! with what it got in hand: blocks that somebody holds are found even if the cache has no room for them.

use super::block::Block;
use super::cache::Cache;
use super::error::LsmError;
use super::index_statistics::{Counts, Volume};
use super::page_cache::PageCache;
use super::run::Run;
use hashbrown::HashMap;
use runtime::fiber::{self, FiberId};
use runtime::{Notifier, ReadQueue};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Reads that the device has at once; more wait in a queue.
const READS_IN_FLIGHT_MAX: usize = 256;
/// Blocks that single rows were read from lately and that are remembered: one that comes again soon is worth its place in the cache.
const RECENT_BLOCKS: usize = 256;

/// Why a statement cannot go on now.
pub enum Stop {
    /// It needs something that is not in memory.
    Wait(Need),
    /// What it needs cannot be read.
    Failed(Rc<LsmError>),
}

impl From<LsmError> for Stop {
    fn from(error: LsmError) -> Self {
        Stop::Failed(Rc::new(error))
    }
}

/// What a statement needs in memory to go on. Nothing: only that others have a turn.
#[derive(Default)]
pub struct Need {
    blocks: Vec<(Arc<Run>, usize, Use)>,
}

/// What a block is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// One row, which has a place of its own in the cache: the block stays only if it is asked for again soon.
    Row,
    /// Its neighbours are wanted as well.
    Scan,
}

impl Need {
    fn one(run: &Arc<Run>, block: usize, purpose: Use) -> Self {
        Need { blocks: vec![(Arc::clone(run), block, purpose)] }
    }

    pub(crate) fn join(&mut self, other: Need) {
        self.blocks.extend(other.blocks);
    }

    /// True if there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

/// Blocks that a statement was waiting for. They stay findable while this lives.
pub struct Fetched {
    _blocks: Vec<Rc<Block>>,
}

type BlockId = (u64, usize);

/// A read that a fiber waits for.
struct PendingRead {
    run: Arc<Run>,
    block: usize,
    is_kept: Cell<bool>,
    is_direct: Cell<bool>,
    result: RefCell<Option<Result<Rc<Block>, Rc<LsmError>>>>,
    waiters: RefCell<Vec<FiberId>>,
}

/// See the head of this file.
pub(crate) struct BlockReader {
    pub(crate) cache: RefCell<Cache>,
    /// Blocks that were fetched and may be in use though the cache has no room for them.
    held: RefCell<HashMap<BlockId, Weak<Block>>>,
    /// So many of them are looked through for those that nobody has any more.
    held_max: Cell<usize>,
    queue: RefCell<Option<ReadQueue>>,
    reading: RefCell<HashMap<BlockId, Rc<PendingRead>>>,
    by_number: RefCell<HashMap<u64, Rc<PendingRead>>>,
    numbers: Cell<u64>,
    /// Bytes that came from the device or the page cache.
    pub(crate) read_bytes: Cell<u64>,
    /// Blocks that the page cache of the machine had.
    pub(crate) passing_reads: Cell<u64>,
    /// Blocks that were waited for.
    pub(crate) waited_reads: Cell<u64>,
    scratch: RefCell<Vec<u8>>,
    page_cache: RefCell<PageCache>,
    recent: RefCell<Box<[BlockId]>>,
}

impl BlockReader {
    pub(crate) fn new(cache_bytes_max: usize, page_cache_sampled_one_of: u64) -> Self {
        BlockReader {
            cache: RefCell::new(Cache::new(cache_bytes_max)),
            held: RefCell::default(),
            held_max: Cell::new(2 * READS_IN_FLIGHT_MAX),
            queue: RefCell::new(None),
            reading: RefCell::default(),
            by_number: RefCell::default(),
            numbers: Cell::new(0),
            read_bytes: Cell::new(0),
            passing_reads: Cell::new(0),
            waited_reads: Cell::new(0),
            scratch: RefCell::default(),
            page_cache: RefCell::new(PageCache::new(page_cache_sampled_one_of)),
            // No run has the number 0.
            recent: RefCell::new(vec![(0, 0); RECENT_BLOCKS].into()),
        }
    }

    /// From now on reads do not block the thread; `notifier` tells when one has ended.
    pub(crate) fn set_notifier(&self, notifier: Arc<Notifier>) -> std::io::Result<()> {
        *self.queue.borrow_mut() = Some(ReadQueue::new(READS_IN_FLIGHT_MAX, notifier)?);
        Ok(())
    }

    /// A block, if it is in memory. If not, `counts` has it as one that is read.
    pub(crate) fn block(
        &self,
        run: &Arc<Run>,
        block: usize,
        purpose: Use,
        counts: &RefCell<Counts>,
    ) -> Result<Rc<Block>, Stop> {
        let id = (run.id(), block);
        if let Some(found) = self.cache.borrow_mut().block(id.0, id.1) {
            return Ok(found);
        }
        if !self.held.borrow().is_empty()
            && let Some(found) = self.held.borrow().get(&id).and_then(Weak::upgrade)
        {
            return Ok(found);
        }
        counts.borrow_mut().read += Volume::of_block(run, block);
        if self.queue.borrow().is_none() {
            // The start has nobody to let go first.
            let found = Rc::new(run.read_block(block)?);
            self.cache.borrow_mut().put_block(id.0, id.1, &found);
            return Ok(found);
        }
        let is_kept = purpose == Use::Scan || self.is_recent(id);
        let Some(found) = self.read_passing(run, block)? else {
            let purpose = if is_kept { Use::Scan } else { Use::Row };
            return Err(Stop::Wait(Need::one(run, block, purpose)));
        };
        let found = Rc::new(found);
        if is_kept {
            self.cache.borrow_mut().put_block(id.0, id.1, &found);
        }
        Ok(found)
    }

    /// A block that the page cache of the machine has.
    fn read_passing(&self, run: &Run, block: usize) -> Result<Option<Block>, LsmError> {
        let (offset, length) = run.block_extent(block);
        let file = run.file()?;
        let mut page_cache = self.page_cache.borrow_mut();
        // To try and fail has the kernel begin to read through the page cache.
        if !page_cache.is_trusted() && file.is_cached_at(offset, length) == Some(false) {
            page_cache.note(run.id(), block, false);
            return Ok(None);
        }
        let mut stored = self.scratch.borrow_mut();
        if stored.len() < length {
            stored.resize(length, 0);
        }
        let stored = &mut stored[..length];
        // An error here comes again when the block is read in earnest.
        let was_there = file.read_cached_at(stored, offset).is_ok_and(|got| got == Some(length));
        page_cache.note(run.id(), block, was_there);
        if !was_there {
            return Ok(None);
        }
        self.passing_reads.set(self.passing_reads.get() + 1);
        self.read_bytes.set(self.read_bytes.get() + length as u64);
        run.decode_block(block, stored).map(Some)
    }

    /// True if a block was asked for shortly before; from now on it was.
    fn is_recent(&self, id: BlockId) -> bool {
        let slot = (id.0.wrapping_mul(31) as usize).wrapping_add(id.1) % RECENT_BLOCKS;
        std::mem::replace(&mut self.recent.borrow_mut()[slot], id) == id
    }

    /// Waits until what is needed has been read. Yields; outside a fiber nothing ever is needed.
    ///
    /// Errors: a block cannot be read or is damaged.
    pub(crate) fn fetch(&self, need: Need) -> Result<Fetched, Rc<LsmError>> {
        let Some(fiber) = fiber::current() else {
            return Ok(Fetched { _blocks: Vec::new() });
        };
        if need.is_empty() {
            // Not before the next turn of the loop.
            fiber::sleep(1);
            return Ok(Fetched { _blocks: Vec::new() });
        }
        let pending: Vec<_> = need.blocks.into_iter().map(|need| self.begin(need, fiber)).collect();
        // They leave together with those of others, at the end of the turn. A cancelled fiber waits as well: it is not long.
        while pending.iter().any(|read| read.result.borrow().is_none()) {
            fiber::park();
        }
        let blocks = pending.iter().filter_map(|read| read.result.borrow().clone());
        Ok(Fetched { _blocks: blocks.collect::<Result<_, _>>()? })
    }

    fn begin(&self, (run, block, purpose): (Arc<Run>, usize, Use), fiber: FiberId) -> Rc<PendingRead> {
        let id = (run.id(), block);
        if let Some(read) = self.reading.borrow().get(&id) {
            // A second reader wants it: it is kept.
            read.is_kept.set(true);
            read.waiters.borrow_mut().push(fiber);
            return Rc::clone(read);
        }
        let (result, waiters) = (RefCell::new(None), RefCell::new(vec![fiber]));
        let (is_kept, is_direct) = (Cell::new(purpose == Use::Scan), Cell::new(false));
        let read = Rc::new(PendingRead { run, block, is_kept, is_direct, result, waiters });
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        match self.submit(number, &read, !self.page_cache.borrow().is_trusted()) {
            Ok(()) => {
                self.reading.borrow_mut().insert(id, Rc::clone(&read));
                self.by_number.borrow_mut().insert(number, Rc::clone(&read));
            }
            Err(error) => *read.result.borrow_mut() = Some(Err(Rc::new(error))),
        }
        read
    }

    /// Errors: the file cannot be opened.
    fn submit(&self, number: u64, read: &PendingRead, wants_direct: bool) -> Result<(), LsmError> {
        let (offset, length) = read.run.block_extent(read.block);
        let file = read.run.file()?;
        let mut queue = self.queue.borrow_mut();
        let Some(queue) = queue.as_mut() else { return Ok(()) };
        // Threads read into memory that is not laid out for it.
        let direct = if wants_direct && queue.has_ring() { read.run.direct_file() } else { None };
        read.is_direct.set(direct.is_some());
        match direct {
            Some(file) => queue.submit_direct(number, file, offset, length),
            None => queue.submit(number, file, offset, length),
        }
        Ok(())
    }

    /// Takes in what was read and wakes who waits for it. Called in every turn of the event loop.
    pub(crate) fn poll(&self) {
        let mut ended = Vec::new();
        match self.queue.borrow_mut().as_mut() {
            Some(queue) if queue.in_flight() > 0 => {
                queue.flush();
                let mut by_number = self.by_number.borrow_mut();
                queue.complete(|number, result| {
                    let Some(read) = by_number.remove(&number) else { return };
                    let result = match result {
                        Ok(stored) => {
                            self.waited_reads.set(self.waited_reads.get() + 1);
                            self.read_bytes.set(self.read_bytes.get() + stored.len() as u64);
                            read.run.decode_block(read.block, stored).map(Rc::new)
                        }
                        Err(source) => {
                            let (offset, _) = read.run.block_extent(read.block);
                            Err(LsmError::Unreadable { file: read.run.path().to_path_buf(), offset, source })
                        }
                    };
                    ended.push((number, read, result));
                });
            }
            _ => return,
        }
        for (number, read, result) in ended {
            // Not every file system that allows it does it in every place.
            if result.is_err() && read.is_direct.get() && self.submit(number, &read, false).is_ok() {
                self.by_number.borrow_mut().insert(number, read);
                continue;
            }
            let id = (read.run.id(), read.block);
            self.reading.borrow_mut().remove(&id);
            if let Ok(block) = &result {
                if read.is_kept.get() {
                    self.cache.borrow_mut().put_block(id.0, id.1, block);
                }
                self.hold(id, block);
            }
            *read.result.borrow_mut() = Some(result.map_err(Rc::new));
            read.waiters.borrow_mut().drain(..).for_each(fiber::wake);
        }
    }

    /// Lets a block be found for as long as it is held anywhere.
    fn hold(&self, id: BlockId, block: &Rc<Block>) {
        let mut held = self.held.borrow_mut();
        if held.len() >= self.held_max.get() {
            held.retain(|_, block| block.strong_count() > 0);
            self.held_max.set(2 * held.len().max(READS_IN_FLIGHT_MAX));
        }
        held.insert(id, Rc::downgrade(block));
    }

    /// Starts all counts at zero again.
    pub(crate) fn reset_counts(&self) {
        let mut cache = self.cache.borrow_mut();
        (cache.hits, cache.misses, cache.row_hits) = (0, 0, 0);
        [&self.read_bytes, &self.passing_reads, &self.waited_reads].iter().for_each(|count| count.set(0));
    }

    /// Reads that were begun and have not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.reading.borrow().len()
    }
}
