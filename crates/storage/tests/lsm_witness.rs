//! A manifest that is damaged, cut or missing is noticed, and nothing that it may have named is removed.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{Fault, FileSystem, ManualClock, OpenMode, SimulatedFiles};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use storage::lsm::{
    Edit, Entry, EntryKind, FileRole, LsmConfig, LsmEngine, LsmEnvironment, LsmError, Manifest, RunOptions, RunWriter,
    TreeState, check_directory,
};
use tuple::{IndexId, Lsn, SpaceId};

const DIR: &str = "/db/lsm";
const WITNESS: &str = "/db/lsm.confirmed";

/// The engine of these files.
fn open(files: &SimulatedFiles, is_forced: bool) -> Result<Rc<LsmEngine>, LsmError> {
    let config = LsmConfig {
        dir: PathBuf::from(DIR),
        memory_bytes_max: 1 << 20,
        cache_bytes_max: 1 << 20,
        is_threaded: false,
        compactions_max: 1,
        manifest_bytes: 1 << 20,
        open_files_max: 100,
        page_cache_sampled_one_of: 16,
        is_forced,
        instance_uuid: None,
    };
    let clock = Arc::new(ManualClock::default());
    LsmEngine::open(config, LsmEnvironment { files: shared(files), clock, wake: Arc::new(|| {}) })
}

fn shared(files: &SimulatedFiles) -> Arc<dyn FileSystem> {
    Arc::new(files.clone())
}

fn write_run(files: &SimulatedFiles, run_id: u64) {
    let mut writer = RunWriter::create(shared(files), Path::new(DIR), run_id, RunOptions::default()).unwrap();
    for number in 0..40u64 {
        let key = number.to_be_bytes();
        writer.add(Entry { key: &key, kind: EntryKind::Put, value: b"row" }, 8).unwrap();
    }
    writer.finish().unwrap();
}

/// Three trees, a run in each, recorded one after the other; the first two in a manifest that another has taken the place of.
fn sample() -> (SimulatedFiles, Vec<TreeState>) {
    let files = SimulatedFiles::default();
    let (mut manifest, _) = Manifest::open(shared(&files), Path::new(DIR)).unwrap();
    for at in 0..3u32 {
        let (tree_id, run_id) = (manifest.next_id(), manifest.next_id());
        manifest
            .append(&[Edit::CreateTree {
                tree_id,
                space_id: SpaceId(512 + at),
                index_id: IndexId::PRIMARY,
                created_lsn: Lsn(1),
            }])
            .unwrap();
        write_run(&files, run_id);
        let ranges = vec![0];
        manifest.append(&[Edit::Dumped { tree_id, dumped_lsn: Lsn(9), run_id: Some(run_id), ranges }]).unwrap();
        if at == 1 {
            manifest.set_switch_bytes(0);
            manifest.append(&[]).unwrap();
            manifest.set_switch_bytes(1 << 20);
        }
    }
    drop(manifest);
    let (_, trees) = Manifest::open(shared(&files.fork()), Path::new(DIR)).unwrap();
    assert_eq!(trees.len(), 3);
    (files, trees)
}

fn names(files: &SimulatedFiles, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    files.list(Path::new(DIR)).unwrap().into_iter().filter(|name| is_wanted(name)).collect()
}

fn manifests(files: &SimulatedFiles) -> Vec<PathBuf> {
    let is_manifest = |name: &str| name.starts_with("manifest-") && !name.ends_with(".lost");
    names(files, is_manifest).iter().map(|name| Path::new(DIR).join(name)).collect()
}

fn runs(files: &SimulatedFiles) -> Vec<String> {
    names(files, |name| name.ends_with(".run"))
}

/// Opens the engine on a copy. The file and the text of a refusal; what it removed of runs is an error.
fn refusal(files: &SimulatedFiles) -> Option<(PathBuf, u64, String)> {
    let copy = files.fork();
    let opened = open(&copy, false);
    assert_eq!(runs(&copy), runs(files), "no run goes");
    match opened {
        Ok(_) => None,
        Err(LsmError::Corrupt { file, offset, what }) => {
            assert_eq!(copy.fingerprint(), files.fingerprint(), "a start that is refused changes nothing");
            Some((file, offset, what))
        }
        Err(error) => panic!("{error}"),
    }
}

/// Starts by force, twice. Trees that are left, and the bytes of runs that are there under whatever name.
fn forced(files: &SimulatedFiles) -> (Vec<u32>, usize) {
    let copy = files.fork();
    let mut found = Vec::new();
    for life in 0..2 {
        let engine = open(&copy, life == 0).unwrap();
        let left: Vec<u32> = (512..515)
            .filter(|space| engine.claim(SpaceId(*space), IndexId::PRIMARY, Lsn(9), false, None).is_some())
            .collect();
        assert!(life == 0 || found == left, "the start behind it finds the same");
        found = left;
        engine.close();
    }
    let kept = names(&copy, |name| name.contains(".run")).len();
    (found, kept)
}

#[test]
fn a_manifest_that_is_cut_anywhere_is_refused_and_no_run_is_removed() {
    let (files, _) = sample();
    let [older, path] = &manifests(&files)[..] else { panic!("{:?}", manifests(&files)) };
    let length = files.open(path, OpenMode::READ).unwrap().len().unwrap();
    for cut in 0..length {
        let damaged = files.fork();
        damaged.open(path, OpenMode::MODIFY).unwrap().set_len(cut).unwrap();
        let (file, offset, what) = refusal(&damaged).unwrap_or_else(|| panic!("cut at {cut}"));
        assert!(file == *path && offset <= cut, "cut at {cut}: {file:?}, {offset}");
        assert!(what.contains("force_recovery would lose what is in "), "cut at {cut}: {what}");
        let reports = check_directory(&damaged, Path::new(DIR)).unwrap();
        let bad: Vec<_> = reports.iter().filter(|report| !report.damage.is_empty()).collect();
        assert!(bad.len() == 1 && bad[0].path == *path, "cut at {cut}: {bad:?}");
        assert!(reports.iter().all(|report| report.role != FileRole::Orphan), "cut at {cut}: {reports:?}");
        if cut % 7 == 0 {
            let (left, kept) = forced(&damaged);
            // What an older manifest, or the beginning of this one, says is there.
            assert!(left.starts_with(&[512, 513]) && kept == 3, "cut at {cut}: {left:?}, {kept}");
        }
    }
    // The older one is of no use to anybody, and is not looked at.
    files.remove(older).unwrap();
    assert_eq!(refusal(&files), None);
}

#[test]
fn a_manifest_that_is_overwritten_at_its_end_is_refused() {
    let (files, _) = sample();
    let path = &manifests(&files)[1];
    let length = files.open(path, OpenMode::READ).unwrap().len().unwrap();
    for bytes in 1..length {
        let damaged = files.fork();
        let rest = vec![0; bytes as usize];
        damaged.open(path, OpenMode::MODIFY).unwrap().write_all_at(&rest, length - bytes).unwrap();
        assert!(refusal(&damaged).is_some_and(|(file, ..)| file == *path), "the last {bytes} bytes");
    }
}

#[test]
fn a_manifest_that_is_missing_is_refused() {
    let (files, _) = sample();
    let [older, path] = &manifests(&files)[..] else { panic!("{:?}", manifests(&files)) };
    files.remove(path).unwrap();
    let (file, _, what) = refusal(&files).unwrap();
    assert!(file == *path && what.contains("the file is not there"), "{what}");
    assert_eq!(forced(&files), (vec![512, 513], 3));
    files.remove(older).unwrap();
    assert_eq!(refusal(&files).unwrap().0, *path);
    assert_eq!(forced(&files), (vec![], 3));
    // As a directory that was never there.
    for name in files.list(Path::new(DIR)).unwrap() {
        files.remove(&Path::new(DIR).join(name)).unwrap();
    }
    assert_eq!(refusal(&files).unwrap().0, *path);
    let reports = check_directory(&files, Path::new(DIR)).unwrap();
    assert!(reports.len() == 1 && !reports[0].damage.is_empty(), "{reports:?}");
    // Without a witness there is no sign that there was anything.
    files.remove(Path::new(WITNESS)).unwrap();
    assert_eq!(refusal(&files), None);
}

#[test]
fn runs_without_manifest_and_witness_are_refused() {
    let (files, _) = sample();
    manifests(&files).iter().chain([&PathBuf::from(WITNESS)]).for_each(|path| files.remove(path).unwrap());
    let (_, _, what) = refusal(&files).unwrap();
    assert!(what.starts_with("no manifest is there, and 3 runs are"), "{what}");
    assert_eq!(forced(&files), (vec![], 3));
}

#[test]
fn a_witness_that_cannot_be_read_is_refused_and_force_takes_what_the_manifest_says() {
    let (files, _) = sample();
    files.open(Path::new(WITNESS), OpenMode::MODIFY).unwrap().set_len(3).unwrap();
    assert_eq!(refusal(&files).unwrap().0, Path::new(WITNESS));
    assert_eq!(forced(&files), (vec![512, 513, 514], 3));
}

#[test]
fn a_directory_of_a_version_without_witness_opens_and_keeps_what_it_does_not_name() {
    let (files, trees) = sample();
    files.remove(Path::new(WITNESS)).unwrap();
    write_run(&files, 99);
    let before: BTreeSet<String> = runs(&files).into_iter().collect();
    for _ in 0..2 {
        let (_, found) = Manifest::open(shared(&files), Path::new(DIR)).unwrap();
        assert_eq!(found, trees);
        assert!(files.exists(Path::new(WITNESS)));
    }
    let left: BTreeSet<String> = runs(&files).into_iter().collect();
    let gone: Vec<&String> = before.difference(&left).collect();
    assert_eq!(gone, ["00000000000000000099.run"]);
    assert!(files.exists(&Path::new(DIR).join("00000000000000000099.run.lost")));
    // An end that may be torn or damaged, and a run that may belong to it: nobody can tell.
    files.remove(Path::new(WITNESS)).unwrap();
    write_run(&files, 98);
    let path = &manifests(&files)[1];
    let file = files.open(path, OpenMode::MODIFY).unwrap();
    file.write_all_at(&[1, 2, 3], file.len().unwrap()).unwrap();
    assert_eq!(refusal(&files).unwrap().0, *path);
}

#[test]
fn an_edit_that_no_witness_could_take_is_refused_and_the_next_begins_a_new_file() {
    for fail_at in 0..8 {
        let (files, trees) = sample();
        let (mut manifest, _) = Manifest::open(shared(&files), Path::new(DIR)).unwrap();
        files.set_fault(Fault { operations_until_error: Some(fail_at), ..Fault::default() });
        let tree_id = manifest.next_id();
        let edit =
            Edit::CreateTree { tree_id, space_id: SpaceId(900), index_id: IndexId::PRIMARY, created_lsn: Lsn(3) };
        let first = manifest.append(std::slice::from_ref(&edit));
        files.set_fault(Fault::default());
        if first.is_err() {
            let found = Manifest::open(shared(&files.fork()), Path::new(DIR)).unwrap().1;
            assert!(found == trees || !manifest.is_settled(), "{fail_at}: {found:?}");
            manifest.append(&[edit]).unwrap();
        }
        assert!(manifest.is_settled());
        let found = Manifest::open(shared(&files), Path::new(DIR)).unwrap().1;
        assert_eq!(found.len(), trees.len() + 1, "{fail_at}");
    }
}
