//! `check_directory` finds what is wrong and says where.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{FileSystem, OpenMode, SimulatedFiles};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::lsm::{
    Edit, Entry, EntryKind, FileReport, FileRole, Manifest, Run, RunOptions, RunWriter, check_directory,
};
use tuple::{FieldType, IndexId, KeyDef, KeyPart, Lsn, SpaceId, msgpack};

const DIR: &str = "/db/lsm";

/// A directory with a tree of a primary index, one of a secondary index, and files that a crash left.
fn sample() -> SimulatedFiles {
    let files = SimulatedFiles::default();
    let (mut manifest, _) = Manifest::open(Arc::new(files.clone()), Path::new(DIR)).unwrap();
    let primary = KeyDef::new(vec![KeyPart::new(0, FieldType::Unsigned)]);
    let text = KeyDef::new(vec![KeyPart::new(1, FieldType::String)]);
    let secondary = KeyDef::merge(&text, &primary);
    let rows: Vec<Vec<u8>> = (0..40u64)
        .map(|number| {
            let mut row = Vec::new();
            msgpack::encode_array(&mut row, 2);
            msgpack::encode_uint(&mut row, number);
            msgpack::encode_str(&mut row, format!("{:02}", number / 3).as_bytes());
            row
        })
        .collect();
    for (key_def, prefix_parts) in [(&primary, &primary), (&secondary, &text)] {
        let (tree_id, run_id) = (manifest.next_id(), manifest.next_id());
        let options = RunOptions { page_size: 300, bloom_fpr: 0.1 };
        let mut writer = RunWriter::create(Arc::new(files.clone()), Path::new(DIR), run_id, options).unwrap();
        for (at, row) in rows.iter().enumerate() {
            let (mut key, mut prefix) = (Vec::new(), Vec::new());
            key_def.ordered_of_row(row, &mut key);
            prefix_parts.ordered_of_row(row, &mut prefix);
            let kind = if at % 7 == 3 { EntryKind::Delete } else { EntryKind::Put };
            let value: &[u8] = if kind == EntryKind::Put { row } else { b"" };
            writer.add(Entry { key: &key, kind, value }, prefix.len()).unwrap();
        }
        writer.finish().unwrap();
        let create =
            Edit::CreateTree { tree_id, space_id: SpaceId(512), index_id: IndexId::PRIMARY, created_lsn: Lsn(1) };
        let dumped = Edit::Dumped { tree_id, dumped_lsn: Lsn(9), run_id: Some(run_id), ranges: vec![0] };
        manifest.append(&[create]).unwrap();
        manifest.append(&[dumped]).unwrap();
    }
    files
}

fn check(files: &SimulatedFiles) -> Vec<FileReport> {
    let before = files.fingerprint();
    let reports = check_directory(files, Path::new(DIR)).unwrap();
    assert_eq!(files.fingerprint(), before, "it only looks");
    reports
}

fn length(files: &SimulatedFiles, path: &Path) -> u64 {
    files.open(path, OpenMode::READ).unwrap().len().unwrap()
}

#[test]
fn good_files_are_good_and_orphans_are_named() {
    let files = sample();
    let reports = check(&files);
    let found: Vec<(FileRole, u64)> = reports.iter().map(|report| (report.role, report.items)).collect();
    assert_eq!(found, [(FileRole::Manifest, 4), (FileRole::Run, 40), (FileRole::Run, 40)]);
    assert!(reports.iter().all(|report| report.damage.is_empty() && report.torn.is_none()), "{reports:?}");
    for name in ["00000000000000000099.run", "00000000000000000100.run.inprogress"] {
        files.open(&Path::new(DIR).join(name), OpenMode::CREATE).unwrap();
    }
    files.open(&Path::new(DIR).join("notes.txt"), OpenMode::CREATE).unwrap();
    let orphans: Vec<PathBuf> =
        check(&files).into_iter().filter(|report| report.role == FileRole::Orphan).map(|report| report.path).collect();
    let names = ["00000000000000000099.run", "00000000000000000100.run.inprogress"];
    assert_eq!(orphans, names.map(|name| Path::new(DIR).join(name)));
    assert!(check_directory(&files, Path::new("/elsewhere")).unwrap().is_empty());
}

#[test]
fn every_flipped_bit_is_found_and_placed() {
    let files = sample();
    let paths: Vec<PathBuf> = check(&files).into_iter().map(|report| report.path).collect();
    for path in &paths {
        let length = length(&files, path);
        let run_id = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        let run = run_id.map(|run_id| Run::open(&files, Path::new(DIR), run_id).unwrap());
        // Where the blocks, or the records, end.
        let blocks_end = run
            .as_ref()
            .map(|run| run.block_extent(run.block_count() - 1))
            .map_or(0, |(at, length)| at + length as u64);
        for bit in 0..length * 8 {
            let byte = bit / 8;
            let damaged = files.fork();
            damaged.flip_bit(path, bit);
            let reports = check(&damaged);
            let (bad, good): (Vec<_>, Vec<_>) =
                reports.iter().partition(|report| !report.damage.is_empty() || report.torn.is_some());
            assert_eq!((bad.len(), good.len()), (1, 2), "bit {bit} of {}: {reports:?}", path.display());
            assert_eq!(&bad[0].path, path);
            if let Some((offset, bytes, _)) = &bad[0].torn {
                assert!(bad[0].role == FileRole::Manifest && *offset == length - 24 && *bytes == 24 && byte >= *offset);
                continue;
            }
            assert_eq!(bad[0].damage.len(), 1, "bit {bit} of {}: {reports:?}", path.display());
            let offset = bad[0].damage[0].offset;
            assert!(offset <= byte, "bit {bit} of {}: {reports:?}", path.display());
            if let (Some(run), true) = (&run, byte < blocks_end) {
                let extents = (0..run.block_count()).map(|block| run.block_extent(block));
                let block =
                    extents.filter(|(at, length)| (*at..at + *length as u64).contains(&byte)).map(|(at, _)| at).next();
                assert_eq!(offset, block.unwrap_or(byte), "bit {bit} of {}: {reports:?}", path.display());
            }
        }
    }
}

#[test]
fn a_filter_that_lacks_a_key_is_found() {
    let files = SimulatedFiles::default();
    let (mut manifest, _) = Manifest::open(Arc::new(files.clone()), Path::new(DIR)).unwrap();
    manifest
        .append(&[Edit::CreateTree {
            tree_id: 1,
            space_id: SpaceId(512),
            index_id: IndexId::PRIMARY,
            created_lsn: Lsn(1),
        }])
        .unwrap();
    let mut writer = RunWriter::create(Arc::new(files.clone()), Path::new(DIR), 2, RunOptions::default()).unwrap();
    for number in 0..100u8 {
        // The filter is told of whole keys, and then of what is none.
        let told = if number == 60 { 0 } else { 2 };
        writer.add(Entry { key: &[7, number], kind: EntryKind::Put, value: b"" }, told).unwrap();
    }
    let run = writer.finish().unwrap().unwrap();
    manifest.append(&[Edit::Dumped { tree_id: 1, dumped_lsn: Lsn(3), run_id: Some(2), ranges: vec![0] }]).unwrap();
    let reports = check(&files);
    let found: Vec<&str> =
        reports.iter().flat_map(|report| &report.damage).map(|damage| damage.what.as_str()).collect();
    assert_eq!(found, ["the filter does not know one of its keys"], "{}", run.path().display());
}

#[test]
fn files_that_are_cut_or_missing_are_found() {
    let files = sample();
    for report in check(&files).iter().filter(|report| report.role == FileRole::Run) {
        for cut in 0..length(&files, &report.path) {
            let damaged = files.fork();
            damaged.open(&report.path, OpenMode::MODIFY).unwrap().set_len(cut).unwrap();
            let bad = check(&damaged).into_iter().filter(|report| !report.damage.is_empty()).count();
            assert_eq!(bad, 1, "cut at {cut}");
        }
        let damaged = files.fork();
        damaged.remove(&report.path).unwrap();
        let bad: Vec<FileReport> = check(&damaged).into_iter().filter(|report| !report.damage.is_empty()).collect();
        assert!(bad.len() == 1 && bad[0].path == report.path && bad[0].damage[0].what.contains("not there"), "{bad:?}");
    }
}
