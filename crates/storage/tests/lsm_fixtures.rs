//! Files of old versions of the format are read forever: `fixtures/lsm1` was written when version 1 was made, and is never written again.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{FileSystem, OpenMode, SimulatedFiles};
use std::path::Path;
use std::sync::Arc;
use storage::lsm::{
    EntryKind, FileRole, LsmError, Manifest, RangeState, Run, RunSource, Source, TreeState, check_directory, key_hash,
};
use tuple::{IndexId, Lsn, SpaceId};

const DIR: &str = "/db/lsm";
const FILES: [(&str, &[u8]); 3] = [
    ("manifest-00000000000000000001", include_bytes!("fixtures/lsm1/manifest-00000000000000000001")),
    ("00000000000000000002.run", include_bytes!("fixtures/lsm1/00000000000000000002.run")),
    ("00000000000000000004.run", include_bytes!("fixtures/lsm1/00000000000000000004.run")),
];

fn fixture() -> SimulatedFiles {
    let files = SimulatedFiles::default();
    for (name, bytes) in FILES {
        let file = files.open(&Path::new(DIR).join(name), OpenMode::CREATE).unwrap();
        file.write_all_at(bytes, 0).unwrap();
    }
    files
}

fn range(range_id: u64, begin: &[u8], slices: &[u64]) -> RangeState {
    RangeState { range_id, begin: begin.to_vec(), slices: slices.to_vec() }
}

/// The key of an unsigned field.
fn key(number: u64) -> Vec<u8> {
    [&[0x11], &number.to_be_bytes()[..]].concat()
}

#[test]
fn files_of_version_1_are_good() {
    let reports = check_directory(&fixture(), Path::new(DIR)).unwrap();
    let found: Vec<(FileRole, u64)> = reports.iter().map(|report| (report.role, report.items)).collect();
    assert_eq!(found, [(FileRole::Manifest, 6), (FileRole::Run, 60), (FileRole::Run, 60)]);
    assert!(reports.iter().all(|report| report.damage.is_empty() && report.torn.is_none()), "{reports:?}");
}

#[test]
fn a_manifest_of_version_1_says_what_it_said() {
    let (mut manifest, trees) = Manifest::open(Arc::new(fixture()), Path::new(DIR)).unwrap();
    let tree = |tree_id, index_id, dumped_lsn, ranges| TreeState {
        tree_id,
        space_id: SpaceId(512),
        index_id,
        created_lsn: Lsn(7),
        dropped_lsn: None,
        dumped_lsn,
        ranges,
    };
    let expected = [
        tree(1, IndexId::PRIMARY, Lsn(90), vec![range(5, b"", &[2]), range(6, &key(30), &[2])]),
        tree(3, IndexId(1), Lsn(90), vec![range(0, b"", &[4])]),
        TreeState {
            dropped_lsn: Some(Lsn(99)),
            dumped_lsn: Lsn(8),
            created_lsn: Lsn(8),
            ranges: vec![],
            ..tree(9, IndexId(2), Lsn(0), vec![])
        },
    ];
    assert_eq!(trees, expected);
    assert!(manifest.next_id() >= 1 << 32);
}

#[test]
fn runs_of_version_1_have_their_entries() {
    let files = fixture();
    let run = Arc::new(Run::open(&files, Path::new(DIR), 2).unwrap());
    let mut source = RunSource::new(Arc::clone(&run), b"", None).unwrap();
    for number in 0..60u64 {
        let entry = source.entry().unwrap();
        assert_eq!(entry.key, key(number));
        let (kind, value) = match number % 10 {
            3 => (EntryKind::Delete, Vec::new()),
            // [number, 1], and from field 0 on [['+', 1, 2]].
            5 => (EntryKind::Upsert, vec![0x92, number as u8, 1, 0, 0x91, 0x93, 0xa1, b'+', 1, 2]),
            // Those that pack lie in other blocks than those that do not.
            _ => (EntryKind::Put, [&[0x92, number as u8, 0xc4, 20], &filler(number)[..]].concat()),
        };
        assert_eq!((entry.kind, entry.value), (kind, value.as_slice()), "{number}");
        assert!(run.may_contain(key_hash(entry.key)));
        source.advance().unwrap();
    }
    assert!(source.entry().is_none());
    let lies = (1000..2000).filter(|&number| run.may_contain(key_hash(&key(number)))).count();
    assert!(lies < 40, "{lies} of 1000 keys that are not there");

    // A secondary index: a string, then the primary key.
    let run = Arc::new(Run::open(&files, Path::new(DIR), 4).unwrap());
    let mut source = RunSource::new(Arc::clone(&run), b"", None).unwrap();
    for number in 0..60u64 {
        let name = format!("\x20name {:02}\0\0", number / 4);
        let entry = source.entry().unwrap();
        assert_eq!(entry.key, [name.as_bytes(), &key(number)].concat());
        assert_eq!((entry.kind, entry.value), (EntryKind::Put, &[0x91, number as u8][..]));
        assert!(run.may_contain(key_hash(name.as_bytes())));
        source.advance().unwrap();
    }
}

/// Twenty bytes: the same ones in the first half, others in the second.
fn filler(number: u64) -> [u8; 20] {
    let mut state = number;
    std::array::from_fn(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if number < 30 { 7 } else { (state >> 56) as u8 }
    })
}

#[test]
fn a_manifest_of_version_1_becomes_that_of_whoever_opens_it_and_nobody_elses() {
    let files = fixture();
    let open = |instance| Manifest::open_of(Arc::new(files.clone()), Path::new(DIR), instance);
    let owner = || {
        let reports = check_directory(&files, Path::new(DIR)).unwrap();
        reports.into_iter().find(|report| report.role == FileRole::Manifest).unwrap().owner
    };
    let (_, trees) = open(None).unwrap();
    assert_eq!(owner(), None);
    assert_eq!(open(Some("aa-1")).unwrap().1, trees);
    assert_eq!(owner().as_deref(), Some("aa-1"));
    assert_eq!(open(Some("AA-1")).unwrap().1, trees);
    let before = files.fingerprint();
    for _ in 0..2 {
        let error = open(Some("bb-2")).err().unwrap();
        assert!(matches!(&error, LsmError::Foreign { owner, own, .. } if owner == "aa-1" && own == "bb-2"), "{error}");
    }
    let (files, dir) = (Arc::new(files.clone()), Path::new(DIR));
    assert!(matches!(Manifest::open_by_force(files.clone(), dir, Some("bb-2")), Err(LsmError::Foreign { .. })));
    assert_eq!(files.fingerprint(), before, "nothing was changed");
    assert_eq!(open(None).unwrap().1, trees);

    // By force a manifest that is damaged behind its first record is salvaged, but not another one's.
    let newest = files.list(dir).unwrap().into_iter().rfind(|name| name.starts_with("manifest-")).unwrap();
    let file = files.open(&dir.join(newest), OpenMode::MODIFY).unwrap();
    file.set_len(file.len().unwrap() - 30).unwrap();
    assert!(matches!(open(Some("aa-1")), Err(LsmError::Corrupt { .. })));
    assert!(matches!(Manifest::open_by_force(files.clone(), dir, Some("bb-2")), Err(LsmError::Foreign { .. })));
    let (_, found, lost) = Manifest::open_by_force(files.clone(), dir, Some("aa-1")).unwrap();
    assert!(lost.is_some() && found == trees, "{lost:?}");
    assert_eq!(owner().as_deref(), Some("aa-1"));
}
