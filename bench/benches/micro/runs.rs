//! Runs of the disk engine: writing, merging, finding. Files lie in the current directory and in the page cache.

use crate::machine::Machine;
use crate::report::Report;
use crate::scattered;
use runtime::{Randomness, SeededRandomness, SystemFiles};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use storage::lsm::{
    Block, Entry, EntryKind, LsmError, Run, RunOptions, RunSource, RunWriter, Source, Upserter, key_hash, merge,
};

const ENTRIES: u64 = 500_000;
const ROW_BYTES: usize = 100;
const KEY_BYTES: usize = 9;
/// Blocks that stay in the caches of the processor.
const BLOCKS: usize = 64;

struct NoUpserts;

impl Upserter for NoUpserts {
    fn apply(&self, _: Option<&[u8]>, _: &[u8], _: &mut Vec<u8>) {}
}

pub(crate) fn run(machine: &Machine, report: &Report) {
    if report.wants("run")
        && let Err(error) = cases(machine, report)
    {
        println!("run: {error}");
    }
}

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0x11; KEY_BYTES];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

fn writer(dir: &Path, run_id: u64) -> Result<RunWriter, LsmError> {
    RunWriter::create(Arc::new(SystemFiles), dir, run_id, RunOptions::default())
}

fn sources<'a>(runs: &[Arc<Run>]) -> Result<Vec<Box<dyn Source + 'a>>, LsmError> {
    runs.iter().map(|run| Ok(Box::new(RunSource::new(Arc::clone(run), b"", None)?) as Box<dyn Source + 'a>)).collect()
}

fn cases(machine: &Machine, report: &Report) -> Result<(), LsmError> {
    let dir = tempfile::tempdir_in(".").map_err(|source| LsmError::Io { what: "making a directory".into(), source })?;
    let random = SeededRandomness::new(7);
    let mut rows = vec![0; ROW_BYTES << 10];
    random.fill(&mut rows);
    let mut runs = Vec::new();
    for half in 0..2 {
        let mut writer = writer(dir.path(), half)?;
        for number in 0..ENTRIES {
            let at = (number % 1024) as usize * ROW_BYTES;
            let value = &rows[at..at + ROW_BYTES];
            writer.add(Entry { key: &key(number * 2 + half), kind: EntryKind::Put, value }, KEY_BYTES)?;
        }
        runs.extend(writer.finish()?.map(Arc::new));
    }
    let entry_ns = (KEY_BYTES + ROW_BYTES) as f64 * machine.copy_byte_ns;
    let count = 2 * ENTRIES;
    let mut failed = None;
    report.case("run merge of two, without writing", count, entry_ns, "each entry copied once", || {
        let merged = sources(&runs).and_then(|sources| {
            merge(sources, true, &NoUpserts, &mut |entry| {
                black_box(entry);
                Ok(())
            })
        });
        failed = merged.err();
    });
    report.case("run merge of two, written and synced", count, 2.0 * entry_ns, "each entry copied twice", || {
        let merged = sources(&runs).and_then(|sources| {
            let mut writer = writer(dir.path(), 9)?;
            merge(sources, true, &NoUpserts, &mut |entry| writer.add(entry, KEY_BYTES))?;
            writer.finish()
        });
        failed = merged.err();
    });
    if let Some(error) = failed {
        return Err(error);
    }
    finding(machine, report, &runs[0])
}

fn finding(machine: &Machine, report: &Report, run: &Run) -> Result<(), LsmError> {
    let numbers: Vec<u64> = scattered(2 * ENTRIES).take(1 << 16).collect();
    let count = numbers.len() as u64;
    report.case("run fence search", count, machine.miss_ns, "a miss", || {
        numbers.iter().for_each(|&number| _ = black_box(run.find_block(&key(number))));
    });
    report.case("run filter", count, machine.miss_ns, "a miss", || {
        numbers.iter().for_each(|&number| _ = black_box(run.may_contain(key_hash(&key(number)))));
    });
    let mut stored = Vec::new();
    for block in 0..BLOCKS.min(run.block_count()) {
        let (offset, length) = run.block_extent(block);
        let mut bytes = vec![0; length];
        let read = run.file()?.read_full_at(&mut bytes, offset);
        read.map_err(|source| LsmError::Io { what: "reading a block".into(), source })?;
        stored.push(bytes);
    }
    let copy_ns = stored[0].len() as f64 * machine.copy_byte_ns;
    report.case("run block decoded", stored.len() as u64, copy_ns, "the block copied", || {
        stored.iter().for_each(|bytes| _ = black_box(Block::decode(bytes)));
    });
    let blocks: Vec<Block> = stored.iter().filter_map(|bytes| Block::decode(bytes).ok()).collect();
    let entries: Vec<(usize, [u8; KEY_BYTES])> = (0..blocks.len())
        .flat_map(|at| (0..blocks[at].len()).map(move |number| (at, number)))
        .filter_map(|(at, number)| Some((at, blocks[at].entry(number).key.try_into().ok()?)))
        .collect();
    let steps = f64::from(blocks[0].len().max(1).ilog2()) + 1.0;
    report.case("run block search", entries.len() as u64, steps * machine.near_miss_ns, "near misses, halving", || {
        entries.iter().for_each(|(at, key)| _ = black_box(blocks[*at].lower_bound(key)));
    });
    Ok(())
}
