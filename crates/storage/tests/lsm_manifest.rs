//! The manifest under power loss, damage and errors: what was confirmed applies, and nothing applies in part.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{Fault, FileSystem, Loss, OpenMode, Randomness, SeededRandomness, SimulatedFiles};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::lsm::{
    Edit, Entry, EntryKind, LsmError, Manifest, RangeState, Run, RunOptions, RunWriter, TreeState, remove_orphans,
};
use tuple::{IndexId, Lsn, SpaceId};

const DIR: &str = "/db/lsm";

fn open(files: &SimulatedFiles) -> Result<(Manifest, Vec<TreeState>), LsmError> {
    Manifest::open(Arc::new(files.clone()), Path::new(DIR))
}

fn write_run(files: &SimulatedFiles, run_id: u64) -> Result<Run, LsmError> {
    let mut writer = RunWriter::create(Arc::new(files.clone()), Path::new(DIR), run_id, RunOptions::default())?;
    for number in 0..40u64 {
        let key = number.to_be_bytes();
        writer.add(Entry { key: &key, kind: EntryKind::Put, value: &run_id.to_le_bytes() }, 8)?;
    }
    Ok(writer.finish()?.unwrap())
}

/// Manifest files of the directory.
fn manifests(files: &SimulatedFiles) -> Vec<PathBuf> {
    let names = files.list(Path::new(DIR)).unwrap();
    let is_manifest = |name: &&String| name.starts_with("manifest-") && !name.ends_with(".inprogress");
    names.iter().filter(is_manifest).map(|name| Path::new(DIR).join(name)).collect()
}

fn slices(tree: &TreeState) -> BTreeSet<u64> {
    tree.ranges.iter().flat_map(|range| range.slices.iter().copied()).collect()
}

/// Does what a database does, at random: creates trees, dumps, compacts, splits, drops. Each state that applied is kept.
struct Script {
    random: SeededRandomness,
    states: Vec<Vec<TreeState>>,
    /// What the edit under way would make, if it is not known whether it did.
    doubtful: Option<Vec<TreeState>>,
    ids: BTreeSet<u64>,
    writes_runs: bool,
}

impl Script {
    fn new(seed: u64, writes_runs: bool) -> Self {
        let random = SeededRandomness::new(seed);
        Script { random, states: vec![Vec::new()], doubtful: None, ids: BTreeSet::new(), writes_runs }
    }

    fn below(&self, bound: usize) -> usize {
        (self.random.next_u64() % bound.max(1) as u64) as usize
    }

    fn id(&mut self, manifest: &mut Manifest) -> u64 {
        let id = manifest.next_id();
        assert!(self.ids.insert(id), "{id} was given twice");
        id
    }

    fn step(&mut self, files: &SimulatedFiles, manifest: &mut Manifest) -> Result<(), LsmError> {
        let mut trees = self.states.last().unwrap().clone();
        let lsn = self.states.len() as i64 * 10;
        let live: Vec<usize> = (0..trees.len()).filter(|&at| trees[at].dropped_lsn.is_none()).collect();
        let mut edits = Vec::new();
        let mut old_runs = BTreeSet::new();
        match self.below(10) {
            0 | 1 if live.len() < 4 => {
                let tree_id = self.id(manifest);
                edits.push(Edit::CreateTree {
                    tree_id,
                    space_id: SpaceId(512),
                    index_id: IndexId(3),
                    created_lsn: Lsn(lsn),
                });
                trees.push(TreeState {
                    tree_id,
                    space_id: SpaceId(512),
                    index_id: IndexId(3),
                    created_lsn: Lsn(lsn),
                    dropped_lsn: None,
                    dumped_lsn: Lsn(lsn),
                    ranges: vec![RangeState { range_id: 0, begin: vec![], slices: vec![] }],
                });
            }
            2 if live.len() > 2 => {
                let tree = &mut trees[live[self.below(live.len())]];
                edits.push(Edit::DropTree { tree_id: tree.tree_id, dropped_lsn: Lsn(lsn) });
                old_runs = slices(tree);
                tree.dropped_lsn = Some(Lsn(lsn));
                tree.ranges.clear();
            }
            3 if live.len() < trees.len() => {
                let at = trees.iter().position(|tree| tree.dropped_lsn.is_some()).unwrap();
                edits.push(Edit::ForgetTree { tree_id: trees.remove(at).tree_id });
            }
            4..=6 if !live.is_empty() => {
                // A compaction that splits a range, or joins all.
                let at = live[self.below(live.len())];
                let run = self.run(files, manifest)?;
                let tree = &mut trees[at];
                let before = slices(tree);
                let mut add = Vec::new();
                let mut remove: Vec<u64> = tree.ranges.iter().map(|range| range.range_id).collect();
                if tree.ranges.len() > 5 {
                    add.push(RangeState { range_id: self.id(manifest), begin: vec![], slices: vec![run] });
                    tree.ranges = add.clone();
                } else {
                    let place = self.below(tree.ranges.len());
                    remove = vec![tree.ranges[place].range_id];
                    let begin = tree.ranges[place].begin.clone();
                    let middle = [&begin[..], &[100]].concat();
                    add.push(RangeState { range_id: self.id(manifest), begin, slices: vec![run] });
                    if tree.ranges.get(place + 1).is_none_or(|next| next.begin > middle) {
                        add.push(RangeState { range_id: self.id(manifest), begin: middle, slices: vec![run] });
                    }
                    tree.ranges.splice(place..=place, add.iter().cloned());
                }
                edits.push(Edit::SetRanges { tree_id: tree.tree_id, remove, add });
                old_runs = before.difference(&slices(tree)).copied().collect();
            }
            _ => {
                for at in live {
                    let run = self.run(files, manifest)?;
                    let tree = &mut trees[at];
                    tree.dumped_lsn = Lsn(lsn);
                    let ranges = tree.ranges.iter().map(|range| range.range_id).collect();
                    tree.ranges.iter_mut().for_each(|range| range.slices.insert(0, run));
                    let tree_id = tree.tree_id;
                    edits.push(Edit::Dumped { tree_id, dumped_lsn: Lsn(lsn), run_id: Some(run), ranges });
                }
            }
        }
        self.doubtful = Some(trees.clone());
        manifest.append(&edits)?;
        self.doubtful = None;
        self.states.push(trees);
        if self.writes_runs {
            for run in old_runs {
                files
                    .remove(&Path::new(DIR).join(format!("{run:020}.run")))
                    .map_err(|source| LsmError::Io { what: String::new(), source })?;
            }
        }
        Ok(())
    }

    fn run(&mut self, files: &SimulatedFiles, manifest: &mut Manifest) -> Result<u64, LsmError> {
        let run = self.id(manifest);
        if self.writes_runs {
            write_run(files, run)?;
        }
        Ok(run)
    }

    /// True if this is the last state that applied, or the one under way.
    fn may_be(&self, trees: &[TreeState]) -> bool {
        Some(trees) == self.doubtful.as_deref() || self.states.last().unwrap() == trees
    }
}

#[test]
fn edits_come_back_as_they_were_made() {
    let files = SimulatedFiles::default();
    let mut script = Script::new(1, false);
    for _ in 0..40 {
        let (mut manifest, trees) = open(&files).unwrap();
        assert_eq!(&trees, script.states.last().unwrap());
        for _ in 0..script.below(200) {
            script.step(&files, &mut manifest).unwrap();
        }
    }
    let names = manifests(&files);
    // The current one, and the one before it.
    assert_eq!(names.len(), 2);
    assert!(!names[1].ends_with("manifest-00000000000000000001"), "a new file was begun");
    assert!(files.open(&names[1], OpenMode::READ).unwrap().len().unwrap() < 400 << 10);
}

#[test]
fn whatever_the_moment_of_power_loss_edits_are_there_wholly_and_with_their_runs() {
    let mut crashes = 0;
    for off_at in 0..300 {
        let files = SimulatedFiles::default();
        files.set_fault(Fault { changes_until_off: Some(off_at), ..Fault::default() });
        let mut script = Script::new(off_at / 40, true);
        let (mut manifest, _) = open(&files).unwrap();
        while script.step(&files, &mut manifest).is_ok() {}
        for loss in Loss::kinds(files.unsynced(), off_at * 10..off_at * 10 + 4) {
            let after = files.crash(loss);
            let (mut manifest, trees) = open(&after).unwrap_or_else(|error| panic!("{off_at}, {loss}: {error}"));
            assert!(script.may_be(&trees), "{off_at}, {loss}: {trees:?}");
            for run in trees.iter().flat_map(slices) {
                let run = Run::open(&after, Path::new(DIR), run).unwrap();
                (0..run.block_count()).for_each(|block| assert!(run.read_block(block).is_ok()));
            }
            if manifests(&after).is_empty() {
                continue;
            }
            assert!(!script.ids.contains(&manifest.next_id()));
            remove_orphans(&after, Path::new(DIR), &trees).unwrap();
            let named: BTreeSet<u64> = trees.iter().flat_map(slices).collect();
            assert_eq!(after.list(Path::new(DIR)).unwrap().len(), named.len() + manifests(&after).len());
            // A second crash changes nothing.
            let (_, again) = open(&after.crash(off_at)).unwrap();
            assert_eq!(again, trees);
            crashes += 1;
        }
    }
    assert!(crashes > 2000, "{crashes}");
}

#[test]
fn runs_that_nobody_names_stay_while_one_that_is_named_cannot_be_read() {
    let files = SimulatedFiles::default();
    let mut script = Script::new(7, true);
    let (mut manifest, _) = open(&files).unwrap();
    while script.states.last().unwrap().iter().flat_map(slices).count() < 3 {
        script.step(&files, &mut manifest).unwrap();
    }
    let trees = script.states.last().unwrap().clone();
    let named: Vec<u64> = trees.iter().flat_map(slices).collect();
    // What a merge has read: the start after a kill finds its inputs beside its result.
    let name = |run: u64| PathBuf::from(DIR).join(format!("{run:020}.run"));
    let input = script.ids.iter().max().unwrap() + 1;
    let bytes = |run: u64| {
        let file = files.open(&name(run), OpenMode::READ).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_full_at(&mut bytes, 0).unwrap();
        bytes
    };
    let result = bytes(named[0]);
    files.open(&name(input), OpenMode::CREATE).unwrap().write_all_at(&result, 0).unwrap();
    files.open(&name(named[0]), OpenMode::MODIFY).unwrap().set_len(40).unwrap();
    assert_eq!(remove_orphans(&files, Path::new(DIR), &trees).unwrap(), Vec::<String>::new());
    assert_eq!(bytes(input), result, "the only copy of its rows");
    files.open(&name(named[0]), OpenMode::MODIFY).unwrap().write_all_at(&result, 0).unwrap();
    assert_eq!(remove_orphans(&files, Path::new(DIR), &trees).unwrap().len(), 1);
}

/// A long edit, so that files follow each other. The state that it makes is kept whether it fails or not.
fn grow(manifest: &mut Manifest, lives: &mut Vec<Vec<TreeState>>, number: u8) -> Result<(), LsmError> {
    let mut trees = lives.last().unwrap().clone();
    let tree = &mut trees[0];
    let range_id = manifest.next_id();
    // One range but the first.
    let remove = tree.ranges.iter().skip(1).map(|range| range.range_id).collect();
    tree.ranges.truncate(1);
    let range = RangeState { range_id, begin: vec![number; 50_000], slices: vec![] };
    tree.ranges.push(range.clone());
    let edit = Edit::SetRanges { tree_id: tree.tree_id, remove, add: vec![range] };
    lives.push(trees);
    manifest.append(&[edit])
}

#[test]
fn power_loss_while_a_new_file_takes_the_place_of_the_old_one_loses_nothing() {
    let files = SimulatedFiles::default();
    let (mut manifest, _) = open(&files).unwrap();
    let tree_id = manifest.next_id();
    manifest
        .append(&[Edit::CreateTree { tree_id, space_id: SpaceId(1), index_id: IndexId(2), created_lsn: Lsn(3) }])
        .unwrap();
    files.keep_points();
    let (_, trees) = open(&files.fork()).unwrap();
    let mut lives = vec![trees];
    for number in 0..40 {
        grow(&mut manifest, &mut lives, number).unwrap();
        assert!(manifests(&files).len() <= 2);
    }
    let mut switches = 0;
    let mut last = 0;
    for (at, point) in files.take_points().iter().enumerate() {
        switches += u32::from(point.operation.kind.name() == "rename");
        for loss in Loss::kinds(point.unsynced(), at as u64 * 3..at as u64 * 3 + 3) {
            let after = point.crash(loss);
            let (_, trees) = open(&after).unwrap_or_else(|error| panic!("{}, {loss}: {error}", point.operation));
            let found =
                lives.iter().position(|state| *state == trees).unwrap_or_else(|| panic!("{}, {loss}", point.operation));
            assert!(found >= last && found <= last + 1, "{}, {loss}: {found} after {last}", point.operation);
        }
        // What is durable for sure.
        let (_, trees) = open(&point.crash(Loss::All)).unwrap();
        last = lives.iter().position(|state| *state == trees).unwrap();
    }
    assert!(switches > 3, "{switches}");
}

/// A manifest after five edits, and then the fault.
fn faulty(fault: Fault, seed: u64) -> (SimulatedFiles, Script, Manifest) {
    let files = SimulatedFiles::default();
    let mut script = Script::new(seed, false);
    let (mut manifest, _) = open(&files).unwrap();
    for _ in 0..5 {
        script.step(&files, &mut manifest).unwrap();
    }
    files.set_fault(fault);
    (files, script, manifest)
}

#[test]
fn an_edit_that_fails_is_taken_back() {
    for at in 0..12 {
        for fault in [
            Fault { writes_until_error: Some(at), ..Fault::default() },
            Fault { syncs_until_error: Some(at), ..Fault::default() },
            Fault { operations_until_error: Some(at), ..Fault::default() },
            Fault { space_left: Some(at * 20), ..Fault::default() },
        ] {
            let (files, mut script, mut manifest) = faulty(fault, at);
            let mut failed = 0;
            for _ in 0..12 {
                if script.step(&files, &mut manifest).is_ok() {
                    continue;
                }
                failed += 1;
                files.set_fault(Fault::default());
                for loss in Loss::kinds(files.unsynced(), 0..4) {
                    let (_, trees) = open(&files.crash(loss)).unwrap();
                    // What only the witness did not take may be there.
                    let is_as_before = &trees == script.states.last().unwrap();
                    assert!(is_as_before || !manifest.is_settled() && script.may_be(&trees), "{fault:?}, {loss}");
                }
            }
            assert_eq!(failed, 1, "{fault:?}");
            let (_, trees) = open(&files.crash(Loss::All)).unwrap();
            assert_eq!(&trees, script.states.last().unwrap());
        }
    }
}

#[test]
fn after_an_edit_that_cannot_be_taken_back_the_next_one_makes_it_certain() {
    let mut survived = 0;
    for at in [0, 1] {
        // Both the sync and what should remove the bytes fail.
        let fault = Fault { syncs_until_error: Some(at), operations_until_error: Some(2 + 2 * at), ..Fault::default() };
        let (files, mut script, mut manifest) = faulty(fault, 3);
        script.step(&files, &mut manifest).unwrap_err();
        assert!(!manifest.is_settled());
        files.set_fault(Fault::default());
        for loss in Loss::kinds(files.unsynced(), 0..20) {
            let (_, trees) = open(&files.crash(loss)).unwrap();
            assert!(script.may_be(&trees), "{loss}");
            survived += u32::from(Some(trees) == script.doubtful);
        }
        script.step(&files, &mut manifest).unwrap();
        assert!(manifest.is_settled() && manifests(&files).len() <= 2);
        for loss in Loss::kinds(files.unsynced(), 0..20) {
            let (_, trees) = open(&files.crash(loss)).unwrap();
            assert_eq!(&trees, script.states.last().unwrap(), "{loss}");
        }
    }
    assert!(survived > 0);
}

#[test]
fn a_new_file_that_fails_leaves_the_old_one_in_force() {
    for at in 0..10 {
        let files = SimulatedFiles::default();
        let (mut manifest, _) = open(&files).unwrap();
        let tree_id = manifest.next_id();
        manifest
            .append(&[Edit::CreateTree { tree_id, space_id: SpaceId(1), index_id: IndexId(2), created_lsn: Lsn(3) }])
            .unwrap();
        let mut lives = vec![open(&files.fork()).unwrap().1];
        // The seventh edit begins a new file.
        let mut edits = 0;
        let failed = loop {
            edits += 1;
            let fault = Fault { operations_until_error: Some(at), ..Fault::default() };
            files.set_fault(if edits == 7 { fault } else { Fault::default() });
            if grow(&mut manifest, &mut lives, edits).is_err() {
                break true;
            }
            if edits == 12 {
                break false;
            }
        };
        files.set_fault(Fault::default());
        // Five for the file, and two for the witness.
        assert_eq!(failed, at < 7, "operation {at}");
        if failed {
            lives.pop();
        }
        for loss in Loss::kinds(files.unsynced(), 0..4) {
            let (_, trees) = open(&files.crash(loss)).unwrap();
            assert!(!manifest.is_settled() || &trees == lives.last().unwrap(), "operation {at}, {loss}");
        }
        grow(&mut manifest, &mut lives, 100).unwrap();
        assert_eq!(&open(&files.crash(Loss::All)).unwrap().1, lives.last().unwrap());
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_damage_with_its_place() {
    let files = SimulatedFiles::default();
    let mut script = Script::new(3, false);
    let (mut manifest, _) = open(&files).unwrap();
    for _ in 0..8 {
        script.step(&files, &mut manifest).unwrap();
    }
    let path = manifests(&files).remove(0);
    let length = files.open(&path, OpenMode::READ).unwrap().len().unwrap();
    for bit in 0..length * 8 {
        let damaged = files.fork();
        damaged.flip_bit(&path, bit);
        match open(&damaged) {
            Err(LsmError::Corrupt { file, offset, .. }) => {
                assert!(file == path && offset <= bit / 8 && bit / 8 < offset + 400, "bit {bit}: {offset}")
            }
            Err(error) => panic!("bit {bit}: {error}"),
            Ok(_) => panic!("bit {bit}"),
        }
    }
    for cut in 0..length {
        let damaged = files.fork();
        damaged.open(&path, OpenMode::MODIFY).unwrap().set_len(cut).unwrap();
        match open(&damaged) {
            Ok(_) => panic!("cut at {cut}"),
            Err(LsmError::Corrupt { file, offset, .. }) => assert!(file == path && offset <= cut, "cut at {cut}"),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
}

#[test]
fn errors_of_reading_are_errors() {
    let files = SimulatedFiles::default();
    let mut script = Script::new(3, false);
    let (mut manifest, _) = open(&files).unwrap();
    for _ in 0..8 {
        script.step(&files, &mut manifest).unwrap();
    }
    let before = files.fingerprint();
    for at in 0..4 {
        files.set_fault(Fault { operations_until_error: Some(at), ..Fault::default() });
        assert!(matches!(open(&files), Err(LsmError::Io { .. })), "operation {at}");
        assert_eq!(files.fingerprint(), before);
    }
    files.set_fault(Fault { read_bytes_max: Some(7), ..Fault::default() });
    assert_eq!(&open(&files).unwrap().1, script.states.last().unwrap());
}

/// A start after which no number was left wrapped around, and the next one refused what it had written.
#[test]
fn a_next_number_that_no_server_can_have_come_to_is_refused() {
    let header = [b"LYCOSMAN".as_slice(), &1u32.to_le_bytes(), &1u64.to_le_bytes()].concat();
    let mut bytes = [header.as_slice(), &crc32c::crc32c(&header).to_le_bytes()].concat();
    let (offset, length) = (24u64.to_le_bytes(), 9u32.to_le_bytes());
    let items = [[0].as_slice(), &(u64::MAX - 1).to_le_bytes()].concat();
    let checksum = crc32c::crc32c(&[&offset, &length[..], &items].concat()).to_le_bytes();
    bytes.extend([&length[..], &checksum, &items].concat());
    let files = SimulatedFiles::default();
    let path = Path::new(DIR).join("manifest-00000000000000000001");
    files.open(&path, OpenMode::CREATE).unwrap().write_all_at(&bytes, 0).unwrap();
    assert!(matches!(open(&files), Err(LsmError::Corrupt { file, offset: 32, .. }) if file == path));
}

#[test]
fn edits_that_contradict_what_is_known_are_refused_and_change_nothing() {
    let files = SimulatedFiles::default();
    let (mut manifest, _) = open(&files).unwrap();
    let create =
        |tree_id| Edit::CreateTree { tree_id, space_id: SpaceId(1), index_id: IndexId::PRIMARY, created_lsn: Lsn(10) };
    manifest.append(&[create(1)]).unwrap();
    let range = |range_id, begin: &[u8]| RangeState { range_id, begin: begin.to_vec(), slices: vec![] };
    let refused = [
        vec![create(1)],
        vec![create(5), create(1)],
        vec![Edit::Dumped { tree_id: 1, dumped_lsn: Lsn(9), run_id: None, ranges: vec![] }],
        vec![Edit::Dumped { tree_id: 1, dumped_lsn: Lsn(11), run_id: Some(4), ranges: vec![7] }],
        vec![Edit::Dumped { tree_id: 1, dumped_lsn: Lsn(11), run_id: Some(4), ranges: vec![0, 0] }],
        vec![Edit::Dumped { tree_id: 2, dumped_lsn: Lsn(11), run_id: None, ranges: vec![] }],
        vec![Edit::SetRanges { tree_id: 1, remove: vec![0], add: vec![] }],
        vec![Edit::SetRanges { tree_id: 1, remove: vec![0], add: vec![range(2, b"a")] }],
        vec![Edit::SetRanges { tree_id: 1, remove: vec![], add: vec![range(2, b"")] }],
        vec![Edit::SetRanges { tree_id: 1, remove: vec![], add: vec![range(0, b"a")] }],
        vec![Edit::ForgetTree { tree_id: 1 }],
        vec![Edit::DropTree { tree_id: 1, dropped_lsn: Lsn(12) }, Edit::DropTree { tree_id: 1, dropped_lsn: Lsn(12) }],
    ];
    let before = files.fingerprint();
    for edits in refused {
        let error = manifest.append(&edits).unwrap_err();
        let LsmError::Io { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        assert_eq!(files.fingerprint(), before);
    }
    manifest.append(&[Edit::Dumped { tree_id: 1, dumped_lsn: Lsn(12), run_id: None, ranges: vec![] }]).unwrap();
    assert_eq!(open(&files).unwrap().1[0].dumped_lsn, 12);
}
