//! Files that are large enough to be read ahead by another thread.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{FileSystem, ManualClock, OpenMode, SimulatedFiles};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuple::msgpack;
use wal::{
    Journal, JournalConfig, Refusal, Replay, Row, SnapshotWriter, Vclock, WalError, WalMode, check_file, recover,
};

const DIR: &str = "/db";
const UUID: &str = "00000000-0000-0000-0000-000000000001";
const ROWS: u64 = 20_000;

fn body(out: &mut Vec<u8>, value: u64) {
    msgpack::encode_map(out, 1);
    msgpack::encode_uint(out, 0x21);
    msgpack::encode_array(out, 2);
    msgpack::encode_uint(out, value);
    msgpack::encode_bin(out, &value.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().repeat(9));
}

fn value_of(row: &Row<'_>) -> u64 {
    let mut reader = msgpack::Reader::new(row.body);
    assert_eq!((reader.read_map(), reader.read_uint(), reader.read_array()), (Ok(1), Ok(0x21), Ok(2)));
    reader.read_uint().unwrap()
}

#[derive(Default)]
struct Values(Vec<u64>);

impl Replay for Values {
    fn apply(&mut self, row: &Row<'_>) -> Result<(), Refusal> {
        self.0.push(value_of(row));
        Ok(())
    }
}

fn log(files: &SimulatedFiles) -> PathBuf {
    let config = JournalConfig {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        dir: PathBuf::from(DIR),
        mode: WalMode::Fsync,
        wal_max_size: 64 << 20,
        instance_uuid: UUID.to_string(),
        replica_id: 1,
        in_flight_max: 4,
        queue_bytes_max: 16 << 20,
        prepare_bytes: 1 << 20,
        rewrite_bytes: u64::MAX,
    };
    let mut journal = Journal::open(config, Vclock::default()).unwrap();
    for value in 0..ROWS {
        journal.begin();
        journal.row(2, 0, |out| body(out, value));
        journal.commit().unwrap();
        // Groups of very different sizes.
        if value % 97 == 0 || value % 1013 > 1000 {
            journal.wait(journal.appended()).unwrap();
        }
    }
    journal.close().unwrap();
    Path::new(DIR).join("00000000000000000000.xlog")
}

fn snapshot(files: &SimulatedFiles) -> PathBuf {
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let clock = Arc::new(ManualClock::default());
    let mut snapshot = SnapshotWriter::create(shared, clock, Path::new(DIR), &Vclock::default(), UUID, 0).unwrap();
    let mut row = Vec::new();
    for value in 0..ROWS {
        row.clear();
        body(&mut row, value);
        snapshot.row(2, 0, &row).unwrap();
    }
    snapshot.finish().unwrap().publish().unwrap()
}

#[test]
fn all_rows_of_large_files_come_in_order() {
    let files = SimulatedFiles::default();
    let (log, snapshot) = (log(&files), snapshot(&files));
    for path in [log, snapshot] {
        assert!(files.open(&path, OpenMode::READ).unwrap().len().unwrap() > 256 << 10);
        let mut values = Values::default();
        let report = check_file(&files, &path, &mut values).unwrap();
        assert!(report.losses.is_empty() && report.rows == ROWS);
        assert!(values.0.iter().copied().eq(0..ROWS));
    }
}

#[test]
fn damage_in_the_middle_of_a_large_file_costs_one_block_and_is_told() {
    let files = SimulatedFiles::default();
    let (log, snapshot) = (log(&files), snapshot(&files));
    for path in [log, snapshot] {
        let length = files.open(&path, OpenMode::READ).unwrap().len().unwrap();
        for place in [length / 4, length / 2, length - 100_000] {
            files.flip_bit(&path, place * 8);
            let mut values = Values::default();
            let report = check_file(&files, &path, &mut values).unwrap();
            let [loss] = &report.losses[..] else { panic!("{:?}", report.losses) };
            assert!(loss.offset <= place && loss.what.contains("is flipped"), "{loss:?}");
            assert!(values.0.is_sorted() && values.0.len() < ROWS as usize && values.0.contains(&(ROWS - 1)));
            files.flip_bit(&path, place * 8);
        }
    }
}

#[test]
fn a_refused_row_ends_reading_ahead() {
    let files = SimulatedFiles::default();
    log(&files);
    let mut rows = 0;
    let refused = recover(&files, Path::new(DIR), &Vclock::default(), false, |_| {
        rows += 1;
        if rows < 10_000 { Ok(()) } else { Err("enough".to_string()) }
    });
    assert!(matches!(refused, Err(WalError::Refused { .. })) && rows == 10_000);
}

#[test]
fn an_error_of_reading_ahead_is_an_error_of_reading() {
    let files = SimulatedFiles::default();
    log(&files);
    let mut nth = 0;
    loop {
        files.set_fault(runtime::Fault { reads_until_error: Some(nth), ..runtime::Fault::default() });
        let recovered = recover(&files, Path::new(DIR), &Vclock::default(), false, |_| Ok(()));
        let untouched = files.fault().reads_until_error.is_some();
        files.set_fault(runtime::Fault::default());
        match recovered {
            Ok(report) => assert_eq!(report.rows, ROWS),
            Err(error) => assert!(matches!(error, WalError::Io { .. }), "read error {nth}: {error}"),
        }
        if untouched {
            break;
        }
        nth += 1;
    }
}
