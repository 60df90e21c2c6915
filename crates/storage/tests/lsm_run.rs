//! Runs against a sorted map: what is written is read back, block by block, in ranges and merged.
#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;
use runtime::{Fault, FileSystem, Randomness, ReadFault, SeededRandomness, SimulatedFiles};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use storage::lsm::{
    Entry, EntryKind, LsmError, Run, RunOptions, RunSource, RunWriter, Source, Upserter, key_hash, merge,
};

const DIR: &str = "/lsm";

type Model = BTreeMap<Vec<u8>, (EntryKind, Vec<u8>)>;

fn write(files: &SimulatedFiles, run_id: u64, options: RunOptions, model: &Model) -> Option<Arc<Run>> {
    let mut writer = RunWriter::create(Arc::new(files.clone()), Path::new(DIR), run_id, options).unwrap();
    for (key, (kind, value)) in model {
        writer.add(Entry { key, kind: *kind, value }, key.len()).unwrap();
    }
    writer.finish().unwrap().map(Arc::new)
}

/// The entries of a source.
fn drain(source: &mut dyn Source) -> Vec<(Vec<u8>, EntryKind, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(entry) = source.entry() {
        found.push((entry.key.to_vec(), entry.kind, entry.value.to_vec()));
        source.advance().unwrap();
    }
    found
}

fn listed(model: impl Iterator<Item = (Vec<u8>, (EntryKind, Vec<u8>))>) -> Vec<(Vec<u8>, EntryKind, Vec<u8>)> {
    model.map(|(key, (kind, value))| (key, kind, value)).collect()
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(0..3u8, 0..8),
        (0..2000u64).prop_map(|number| [&[0x11], &number.to_be_bytes()[..]].concat()),
        (0..50u8).prop_map(|number| [&[7; 20], &[number][..]].concat()),
    ]
}

/// Values are arrays of one number, so that upserts are well-formed: the row, then operations, each of which is a row to put in place.
fn entry() -> impl Strategy<Value = (EntryKind, Vec<u8>)> {
    prop_oneof![
        4 => (0..128u8, 0..40usize).prop_map(|(number, filler)| {
            let mut value = vec![0x92, number, 0xc4, filler as u8];
            value.extend(std::iter::repeat_n(number.wrapping_mul(31), filler));
            (EntryKind::Put, value)
        }),
        2 => Just((EntryKind::Delete, Vec::new())),
        1 => proptest::collection::vec(0..128u8, 2..5)
            .prop_map(|numbers| (EntryKind::Upsert, numbers.iter().flat_map(|&number| [0x91, number]).collect())),
    ]
}

fn model(most: usize) -> impl Strategy<Value = Model> {
    proptest::collection::btree_map(key(), entry(), 0..most)
}

/// Writes down which operations were applied, in which order, behind what the row was.
struct Recorder;

impl Upserter for Recorder {
    fn apply(&self, old: Option<&[u8]>, operand: &[u8], out: &mut Vec<u8>) {
        let (row, operations) = operand.split_at(2);
        match old {
            Some(old) => {
                out.extend_from_slice(old);
                out.extend_from_slice(operations);
            }
            None => {
                out.extend_from_slice(row);
                out.extend_from_slice(&operations[2..]);
            }
        }
    }
}

/// What `merge` should make of several sources, the newest first.
fn merged(models: &[Model], is_bottom: bool) -> Model {
    let mut found = Model::new();
    for model in models.iter().rev() {
        for (key, (kind, value)) in model {
            let older = found.get(key).cloned();
            let new = match (kind, older) {
                (EntryKind::Upsert, Some((EntryKind::Upsert, older))) => {
                    (EntryKind::Upsert, [&older, &value[2..]].concat())
                }
                (EntryKind::Upsert, Some((older_kind, older))) => {
                    let mut row = Vec::new();
                    let old = (older_kind == EntryKind::Put).then_some(older.as_slice());
                    Recorder.apply(old, value, &mut row);
                    (EntryKind::Put, row)
                }
                _ => (*kind, value.clone()),
            };
            found.insert(key.clone(), new);
        }
    }
    if is_bottom {
        found.retain(|_, (kind, _)| *kind != EntryKind::Delete);
        for (kind, value) in found.values_mut().filter(|(kind, _)| *kind == EntryKind::Upsert) {
            let mut row = Vec::new();
            Recorder.apply(None, value, &mut row);
            (*kind, *value) = (EntryKind::Put, row);
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_run_holds_what_was_written(
        model in model(400),
        page_size in proptest::sample::select(vec![1, 100, 1000, 4096, 100_000]),
        bloom_fpr in proptest::sample::select(vec![0.01, 0.3, 1.0]),
        from in key(), to in key(),
    ) {
        let files = SimulatedFiles::default();
        let Some(run) = write(&files, 7, RunOptions { page_size, bloom_fpr }, &model) else {
            prop_assert!(model.is_empty());
            prop_assert!(files.list(Path::new(DIR)).unwrap().is_empty());
            return Ok(());
        };
        let opened = Arc::new(Run::open(&files, Path::new(DIR), 7).unwrap());
        for run in [run, opened] {
            let count = |kind| model.values().filter(|entry| entry.0 == kind).count() as u64;
            prop_assert_eq!(run.id(), 7);
            prop_assert_eq!(run.entries(), model.len() as u64);
            prop_assert_eq!((run.deletes(), run.upserts()), (count(EntryKind::Delete), count(EntryKind::Upsert)));
            prop_assert_eq!(run.min_key(), model.keys().next().unwrap().as_slice());
            prop_assert_eq!(run.max_key(), model.keys().next_back().unwrap().as_slice());
            prop_assert_eq!(run.bytes(), run.file().unwrap().len().unwrap());
            // Every key is found where the fences say.
            for (key, (kind, value)) in &model {
                prop_assert!(run.may_contain(key_hash(key)));
                let block = run.read_block(run.find_block(key).unwrap()).unwrap();
                prop_assert_eq!(block.entry(block.lower_bound(key)), Entry { key, kind: *kind, value });
            }
            let mut entries = 0;
            for at in 0..run.block_count() {
                let block = run.read_block(at).unwrap();
                let deletes = (0..block.len()).filter(|&at| block.entry(at).kind == EntryKind::Delete).count();
                prop_assert_eq!(run.block_counts(at), (block.len() as u32, deletes as u32));
                prop_assert_eq!(run.first_key(at), block.entry(0).key);
                entries += block.len() as u64;
            }
            prop_assert_eq!(entries, run.entries());
            let all = RunSource::new(Arc::clone(&run), b"", None).map(|mut source| drain(&mut source)).unwrap();
            prop_assert_eq!(all, listed(model.clone().into_iter()));
            let bounded = RunSource::new(Arc::clone(&run), &from, Some(to.clone())).map(|mut source| drain(&mut source));
            let wanted: Model = match from <= to {
                true => model.range(from.clone()..to.clone()).map(|(key, entry)| (key.clone(), entry.clone())).collect(),
                false => Model::new(),
            };
            prop_assert_eq!(bounded.unwrap(), listed(wanted.clone().into_iter()));
            // An estimate is right but for two blocks.
            let (_, estimated) = run.estimate(&from, Some(&to));
            let block_max = (0..run.block_count()).map(|at| run.block_counts(at).0).max().unwrap();
            if page_size >= 1000 && wanted.len() as u64 == run.entries() {
                prop_assert!(estimated + 2 * u64::from(block_max) >= run.entries());
            }
            prop_assert!(run.estimate(&from, Some(&from)) == (0, 0));
        }
    }

    #[test]
    fn merging_keeps_the_newest(
        models in proptest::collection::vec(model(60), 0..7), is_bottom: bool, from in key(), is_cut: bool,
    ) {
        let files = SimulatedFiles::default();
        let runs: Vec<Option<Arc<Run>>> = models
            .iter()
            .enumerate()
            .map(|(at, model)| write(&files, at as u64, RunOptions { page_size: 300, bloom_fpr: 0.1 }, model))
            .collect();
        let from = if is_cut { from } else { Vec::new() };
        let sources = runs.iter().flatten().map(|run| {
            Box::new(RunSource::new(Arc::clone(run), &from, None).unwrap()) as Box<dyn Source>
        });
        let mut found = Vec::new();
        merge(sources.collect(), is_bottom, &Recorder, &mut |entry| {
            found.push((entry.key.to_vec(), entry.kind, entry.value.to_vec()));
            Ok(())
        })
        .unwrap();
        let mut expected = merged(&models, is_bottom);
        expected.retain(|key, _| *key >= from);
        prop_assert_eq!(found, listed(expected.into_iter()));
    }
}

/// Rows of a hundred bytes that do not pack.
fn rows(numbers: std::ops::Range<u64>) -> Model {
    let random = SeededRandomness::new(1);
    let value = || {
        let mut value = vec![0; 96];
        random.fill(&mut value);
        (EntryKind::Put, value)
    };
    numbers.map(|number| ([&[0x11], &number.to_be_bytes()[..]].concat(), value())).collect()
}

#[test]
fn blocks_of_a_page_lie_on_one_page() {
    let files = SimulatedFiles::default();
    let run = write(&files, 1, RunOptions::default(), &rows(0..10_000)).unwrap();
    for block in 0..run.block_count() {
        let (offset, length) = run.block_extent(block);
        assert!(
            length <= 4096 && offset / 4096 == (offset + length as u64 - 1) / 4096,
            "block {block}: {length} at {offset}"
        );
    }
    let pure = 10_000 * 105;
    assert!(run.bytes() < pure * 108 / 100, "{} bytes for {pure}", run.bytes());
    assert!(run.memory() < 40_000, "{} bytes of memory", run.memory());
}

#[test]
fn a_long_run_is_written_in_steps_and_synced_once() {
    let files = SimulatedFiles::default();
    files.keep_operations();
    let mut writer = RunWriter::create(Arc::new(files.clone()), Path::new(DIR), 1, RunOptions::default()).unwrap();
    let told = Arc::new(Mutex::new(0));
    let steps = Arc::clone(&told);
    writer.on_step(Box::new(move |bytes| *steps.lock().unwrap() += bytes));
    for (key, (kind, value)) in &rows(0..200_000) {
        writer.add(Entry { key, kind: *kind, value }, key.len()).unwrap();
    }
    let run = writer.finish().unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), run.bytes());
    let names: Vec<(&str, u64)> =
        files.operations().iter().map(|operation| (operation.kind.name(), operation.length)).collect();
    let longest = names.iter().filter(|(name, _)| *name == "write").map(|(_, length)| *length).max().unwrap();
    assert!(longest < 300 << 10, "{longest}");
    let syncs = names.iter().filter(|(name, _)| *name == "sync").count() as u64;
    assert_eq!(syncs, 1);
    let last: Vec<&str> = names[names.len() - 3..].iter().map(|(name, _)| *name).collect();
    assert_eq!(last, ["sync", "rename", "sync_dir"]);
}

#[test]
fn a_run_that_is_not_finished_leaves_nothing() {
    let files = SimulatedFiles::default();
    let mut writer = RunWriter::create(Arc::new(files.clone()), Path::new(DIR), 1, RunOptions::default()).unwrap();
    assert_eq!(files.list(Path::new(DIR)).unwrap(), ["00000000000000000001.run.inprogress"]);
    writer.add(Entry { key: b"b", kind: EntryKind::Put, value: b"" }, 1).unwrap();
    assert!(writer.add(Entry { key: b"b", kind: EntryKind::Put, value: b"" }, 1).is_err(), "keys ascend");
    drop(writer);
    assert!(files.list(Path::new(DIR)).unwrap().is_empty());
}

#[test]
fn a_full_disk_and_errors_of_the_device_are_told_and_leave_nothing() {
    let model = rows(0..5000);
    for fault in [
        Fault { space_left: Some(300_000), ..Fault::default() },
        Fault { writes_until_error: Some(1), ..Fault::default() },
        Fault { syncs_until_error: Some(0), ..Fault::default() },
        // Of the directory.
        Fault { syncs_until_error: Some(1), ..Fault::default() },
    ] {
        let files = SimulatedFiles::default();
        files.set_fault(fault);
        let mut writer = RunWriter::create(Arc::new(files.clone()), Path::new(DIR), 1, RunOptions::default()).unwrap();
        let result =
            model.iter().try_for_each(|(key, (kind, value))| writer.add(Entry { key, kind: *kind, value }, key.len()));
        let error = match result {
            Ok(()) => writer.finish().err().unwrap(),
            Err(error) => {
                drop(writer);
                error
            }
        };
        assert!(matches!(error, LsmError::Io { .. }) && error.to_string().contains("/lsm"), "{error}");
        assert!(files.list(Path::new(DIR)).unwrap().is_empty());
    }
}

#[test]
fn a_read_that_fails_or_is_short_is_an_error_of_that_block() {
    let files = SimulatedFiles::default();
    let run = write(&files, 1, RunOptions::default(), &rows(0..1000)).unwrap();
    let (offset, length) = run.block_extent(3);
    files.add_read_fault(run.path(), ReadFault::Unreadable(offset..offset + 1));
    assert!(matches!(run.read_block(3), Err(LsmError::Unreadable { .. })));
    assert!(run.read_block(2).is_ok() && run.read_block(4).is_ok());
    files.add_read_fault(run.path(), ReadFault::Flipped((run.block_extent(5).0 + 100) * 8));
    let Err(LsmError::Corrupt { offset, file, .. }) = run.read_block(5) else { panic!("a flipped bit") };
    assert_eq!((offset, file.as_path()), (run.block_extent(5).0, run.path()));
    // The same bytes where another block should be.
    let mut stored = vec![0; length];
    run.file().unwrap().read_full_at(&mut stored, run.block_extent(4).0).unwrap();
    assert!(run.decode_block(4, &stored[..run.block_extent(4).1]).is_ok());
    assert!(matches!(run.decode_block(6, &stored[..run.block_extent(4).1]), Err(LsmError::Corrupt { .. })));
    // Reads that bring less than was asked for are continued.
    files.set_fault(Fault { read_bytes_max: Some(700), ..Fault::default() });
    assert!(run.read_block(2).is_ok() && Run::open(&files, Path::new(DIR), 1).is_ok());
    files.set_fault(Fault::default());
    run.file().unwrap().len().unwrap();
    files.open(run.path(), runtime::OpenMode::MODIFY).unwrap().set_len(offset).unwrap();
    assert!(matches!(run.read_block(8), Err(LsmError::Corrupt { .. })));
    assert!(matches!(Run::open(&files, Path::new(DIR), 1), Err(LsmError::Corrupt { .. })));
}

#[test]
fn a_merge_ends_with_the_error_of_its_source() {
    let files = SimulatedFiles::default();
    let runs: Vec<Arc<Run>> =
        (0..2).map(|at| write(&files, at, RunOptions::default(), &rows(at * 5000..9000)).unwrap()).collect();
    let middle = runs[1].block_extent(runs[1].block_count() - 10).0;
    for fault in [ReadFault::Unreadable(middle..middle + 1), ReadFault::Flipped(middle * 8)] {
        files.add_read_fault(runs[1].path(), fault);
        let merged = runs
            .iter()
            .map(|run| Ok(Box::new(RunSource::new(Arc::clone(run), b"", None)?) as Box<dyn Source>))
            .collect::<Result<Vec<_>, LsmError>>()
            .and_then(|sources| merge(sources, true, &Recorder, &mut |_| Ok(())));
        assert!(merged.is_err_and(|error| error.to_string().contains("00000000000000000001.run")));
    }
    // And with that of who takes its entries.
    let sources = vec![Box::new(RunSource::new(Arc::clone(&runs[0]), b"", None).unwrap()) as Box<dyn Source>];
    let mut left = 10;
    let refused = merge(sources, true, &Recorder, &mut |_| {
        left -= 1;
        if left > 0 {
            Ok(())
        } else {
            Err(LsmError::Io { what: "enough".into(), source: std::io::ErrorKind::Other.into() })
        }
    });
    assert!(refused.is_err() && left == 0);
}
