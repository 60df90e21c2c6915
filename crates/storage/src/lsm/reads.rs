//! How a block comes from a run: from the cache, from the page cache of the machine in passing, or by a read that a fiber waits for.
//!
//! A statement that finds a block missing stops with [`Stop::Wait`] and what it needs. Its fiber calls [`BlockReader::fetch`] and tries again
//! with what it got in hand: blocks that somebody holds are found even if the cache has no room for them.

use super::block::Block;
use super::cache::Cache;
use super::error::LsmError;
use super::index_statistics::{Counts, Volume};
use super::run::Run;
use hashbrown::HashMap;
use runtime::fiber::{self, FiberId};
use runtime::{Notifier, ReadQueue};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Reads that the device has at once; more wait in a queue.
const READS_IN_FLIGHT_MAX: usize = 128;

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
    blocks: Vec<(Arc<Run>, usize)>,
}

impl Need {
    pub(crate) fn one(run: &Arc<Run>, block: usize) -> Self {
        Need { blocks: vec![(Arc::clone(run), block)] }
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

/// A read that somebody waits for.
struct PendingRead {
    run: Arc<Run>,
    block: usize,
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
}

impl BlockReader {
    pub(crate) fn new(cache_bytes_max: usize) -> Self {
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
        }
    }

    /// From now on reads do not block the thread; `notifier` tells when one has ended.
    pub(crate) fn set_notifier(&self, notifier: Arc<Notifier>) -> std::io::Result<()> {
        *self.queue.borrow_mut() = Some(ReadQueue::new(READS_IN_FLIGHT_MAX, notifier)?);
        Ok(())
    }

    /// A block, if it is in memory. If not, `counts` has it as one that is read.
    pub(crate) fn block(&self, run: &Arc<Run>, block: usize, counts: &RefCell<Counts>) -> Result<Rc<Block>, Stop> {
        let id = (run.id(), block);
        if let Some(found) = self.cache.borrow_mut().block(id.0, id.1) {
            return Ok(found);
        }
        if let Some(found) = self.held.borrow().get(&id).and_then(Weak::upgrade) {
            return Ok(found);
        }
        counts.borrow_mut().read += Volume::of_block(run, block);
        if self.queue.borrow().is_none() {
            // The start has nobody to let go first.
            let found = Rc::new(run.read_block(block)?);
            self.cache.borrow_mut().put_block(id.0, id.1, &found);
            return Ok(found);
        }
        let (offset, length) = run.block_extent(block);
        let mut stored = self.scratch.borrow_mut();
        stored.resize(length, 0);
        // An error here comes again when the block is read in earnest.
        if run.file()?.read_cached_at(&mut stored, offset).is_ok_and(|got| got == Some(length)) {
            self.passing_reads.set(self.passing_reads.get() + 1);
            self.read_bytes.set(self.read_bytes.get() + length as u64);
            let found = Rc::new(run.decode_block(block, &stored)?);
            self.cache.borrow_mut().put_block(id.0, id.1, &found);
            return Ok(found);
        }
        Err(Stop::Wait(Need::one(run, block)))
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
        let pending: Vec<_> = need.blocks.into_iter().map(|(run, block)| self.begin(run, block, fiber)).collect();
        // They leave together with those of others, at the end of the turn. A cancelled fiber waits as well: it is not long.
        while pending.iter().any(|read| read.result.borrow().is_none()) {
            fiber::park();
        }
        let blocks = pending.iter().filter_map(|read| read.result.borrow().clone());
        Ok(Fetched { _blocks: blocks.collect::<Result<_, _>>()? })
    }

    fn begin(&self, run: Arc<Run>, block: usize, fiber: FiberId) -> Rc<PendingRead> {
        let id = (run.id(), block);
        if let Some(read) = self.reading.borrow().get(&id) {
            read.waiters.borrow_mut().push(fiber);
            return Rc::clone(read);
        }
        let file = match run.file() {
            Ok(file) => file,
            Err(error) => {
                let (result, waiters) = (RefCell::new(Some(Err(Rc::new(error)))), RefCell::default());
                return Rc::new(PendingRead { run, block, result, waiters });
            }
        };
        let (offset, length) = run.block_extent(block);
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        let (result, waiters) = (RefCell::new(None), RefCell::new(vec![fiber]));
        let read = Rc::new(PendingRead { run, block, result, waiters });
        self.reading.borrow_mut().insert(id, Rc::clone(&read));
        self.by_number.borrow_mut().insert(number, Rc::clone(&read));
        if let Some(queue) = self.queue.borrow_mut().as_mut() {
            queue.submit(number, file, offset, length);
        }
        read
    }

    /// Takes in what was read and wakes who waits for it. Called in every turn of the event loop.
    pub(crate) fn poll(&self) {
        let mut ended = Vec::new();
        match self.queue.borrow_mut().as_mut() {
            Some(queue) if queue.in_flight() > 0 => {
                queue.flush();
                queue.complete(|number, result| ended.push((number, result)));
            }
            _ => return,
        }
        for (number, result) in ended {
            let Some(read) = self.by_number.borrow_mut().remove(&number) else { continue };
            let id = (read.run.id(), read.block);
            self.reading.borrow_mut().remove(&id);
            let result = match result {
                Ok(stored) => {
                    self.waited_reads.set(self.waited_reads.get() + 1);
                    self.read_bytes.set(self.read_bytes.get() + stored.len() as u64);
                    read.run.decode_block(read.block, &stored).map(Rc::new)
                }
                Err(source) => {
                    let (offset, _) = read.run.block_extent(read.block);
                    Err(LsmError::Unreadable { file: read.run.path().to_path_buf(), offset, source })
                }
            };
            if let Ok(block) = &result {
                self.cache.borrow_mut().put_block(id.0, id.1, block);
                self.hold(id, block);
            }
            *read.result.borrow_mut() = Some(result.map_err(Rc::new));
            read.waiters.borrow_mut().drain(..).for_each(fiber::wake);
        }
    }

    /// Makes a block findable for as long as somebody has it.
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
