//! Doubts that any bytes in place of a `.vylog`, `.index` or `.run` of Tarantool's disk engine are moved into files of our own or refused, naming a
//! file; and that two starts on the same bytes find the same.
//!
//! The directory is one of Tarantool 2.6: a space with a secondary index, three dumps and a log behind them. The first byte of the input says which file is
//! replaced, its highest bit whether the rest are rows, behind a good header and checksum, or the whole file.

use database::{Config, Database, Environment, Key, ScanRequest};
use runtime::{FileSystem, ManualClock, OpenMode, SeededRandomness, SimulatedFiles};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use tuple::{IndexId, SpaceId};
use wal::{WalError, for_each_statement, vinyl_indexes};

const DIR: &str = "/db";
const SPACE: u32 = 512;
const MEMORY: u64 = 16 << 20;
const EOF_MAGIC: [u8; 4] = [0xd5, 0x10, 0xad, 0xed];

macro_rules! file {
    ($name:literal, $path:literal) => {
        ($name, include_bytes!(concat!("../fixtures/disk-2.6/", $path)))
    };
}

/// Files that an input takes the place of.
const DOUBTED: [(&str, &[u8]); 7] = [
    file!("00000000000000000019.vylog", "00000000000000000019.vylog"),
    file!("512/0/00000000000000000006.index", "512-0-00000000000000000006.index"),
    file!("512/0/00000000000000000010.index", "512-0-00000000000000000010.index"),
    file!("512/0/00000000000000000014.index", "512-0-00000000000000000014.index"),
    file!("512/0/00000000000000000006.run", "512-0-00000000000000000006.run"),
    file!("512/0/00000000000000000010.run", "512-0-00000000000000000010.run"),
    file!("512/0/00000000000000000014.run", "512-0-00000000000000000014.run"),
];
const OTHERS: [(&str, &[u8]); 5] = [
    file!("512/1/00000000000000000011.index", "512-1-00000000000000000011.index"),
    file!("512/1/00000000000000000011.run", "512-1-00000000000000000011.run"),
    file!("00000000000000000019.snap", "00000000000000000019.snap"),
    file!("00000000000000000019.xlog", "00000000000000000019.xlog"),
    file!("00000000000000000025.xlog", "00000000000000000025.xlog"),
];

fn put(files: &SimulatedFiles, name: &str, bytes: &[u8]) {
    let file = files.open(&Path::new(DIR).join(name), OpenMode::CREATE).expect("files are simulated");
    file.write_all_at(bytes, 0).expect("files are simulated");
}

/// Rows as one block behind the header of a file.
fn recorded(original: &[u8], rows: &[u8]) -> Vec<u8> {
    let head = original.windows(2).position(|pair| pair == b"\n\n").map_or(0, |at| at + 2);
    let mut block = vec![0xd5, 0xba, 0x0b, 0xab];
    tuple::msgpack::encode_uint(&mut block, rows.len() as u64);
    block.push(0);
    tuple::msgpack::encode_uint(&mut block, u64::from(!crc32c::crc32c_append(!0, rows)));
    let padding = 19 - block.len();
    if padding > 0 {
        block.push(0xa0 | (padding - 1) as u8);
    }
    block.resize(19, 0);
    [&original[..head], &block, rows, &EOF_MAGIC].concat()
}

fn open(files: &SimulatedFiles) -> database::Result<Rc<Database>> {
    let dir = PathBuf::from(DIR);
    let config = Config {
        wal_dir: dir.clone(),
        memtx_dir: dir.clone(),
        vinyl_dir: dir,
        memtx_memory: MEMORY,
        vinyl_memory: MEMORY,
        wal_writes_in_flight: 0,
        wal_prepare_bytes: 4096,
        checkpoint_interval: 0,
        ..Config::default()
    };
    let environment = Environment {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment)?;
    database.open()?;
    Ok(database)
}

/// What a start finds: the rows, or that it is refused.
fn found(files: &SimulatedFiles) -> Result<Vec<Vec<u8>>, String> {
    let database = open(files).map_err(|error| error.message().to_string())?;
    let mut rows = Vec::new();
    let space = database.space(SpaceId(SPACE)).expect("the snapshot has it");
    let context = database.admin_context();
    database
        .select(&context, &space, &ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY), |row| {
            rows.push(row.to_vec());
            true
        })
        .map_err(|error| error.message().to_string())?;
    Ok(rows)
}

fn check_place(error: &WalError) {
    assert!(matches!(error, WalError::Corrupt { .. } | WalError::Io { .. }), "{error}");
    assert!(error.to_string().contains(DIR), "{error}");
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let files = SimulatedFiles::default();
    let (name, original) = DOUBTED[usize::from(choice & 0x7f) % DOUBTED.len()];
    DOUBTED.iter().chain(&OTHERS).for_each(|(name, bytes)| put(&files, name, bytes));
    match choice & 0x80 {
        0 => put(&files, name, bytes),
        _ => put(&files, name, &recorded(original, bytes)),
    }
    match vinyl_indexes(&files, Path::new(DIR)) {
        Ok(indexes) => {
            assert_eq!(vinyl_indexes(&files, Path::new(DIR)).ok(), Some(indexes.clone()));
            for run in indexes.iter().flat_map(|(_, indexes)| indexes).flat_map(|index| &index.runs) {
                if let Err(error) = for_each_statement(&files, &run.path, |_| {}) {
                    check_place(&error);
                }
            }
        }
        Err(error) => check_place(&error),
    }
    let before = files.fork();
    let first = found(&files);
    if let Ok(Some((_, indexes))) = vinyl_indexes(&before, Path::new(DIR)) {
        let is_named = indexes.iter().any(|index| index.space_id == SPACE && index.index_id == 0);
        assert!(is_named || first.is_err(), "rows are missing without a word");
    }
    assert_eq!(found(&before), first);
    match first {
        Ok(rows) => assert!(rows.len() <= 1 << 10, "{}", rows.len()),
        Err(message) => assert!(!message.is_empty() && bytes != original, "{message}"),
    }
}
