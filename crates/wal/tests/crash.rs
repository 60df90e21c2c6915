//! The log under power loss, damage and full disks: what was reported durable is there, nothing is there in part.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{Fault, File, FileSystem, Loss, ManualClock, OpenMode, SimulatedFiles, SystemFiles};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tuple::{Lsn, msgpack};
use wal::{
    Journal, JournalConfig, Position, Refusal, Replay, Row, SnapshotWriter, Vclock, WalError, WalMode, XlogReader,
    check_file, logs, recover, remove_unfinished,
};

const DIR: &str = "/db";

/// For files that are only looked at.
struct Nobody;

impl Replay for Nobody {
    fn apply(&mut self, _row: &Row<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

fn config(files: Arc<dyn FileSystem>, dir: &Path, in_flight_max: usize, wal_max_size: u64) -> JournalConfig {
    JournalConfig {
        files,
        clock: Arc::new(ManualClock::default()),
        dir: dir.to_path_buf(),
        mode: WalMode::Fsync,
        wal_max_size,
        instance_uuid: "00000000-0000-0000-0000-000000000001".to_string(),
        replica_id: 1,
        in_flight_max,
        queue_bytes_max: 16 << 20,
        prepare_bytes: 1 << 20,
        rewrite_bytes: u64::MAX,
    }
}

fn body(value: u64, padding: usize) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_map(&mut out, 1);
    msgpack::encode_uint(&mut out, 0x21);
    msgpack::encode_array(&mut out, 2);
    msgpack::encode_uint(&mut out, value);
    msgpack::encode_bin(&mut out, &vec![7; padding]);
    out
}

/// A transaction of `rows` rows.
fn commit(journal: &mut Journal, value: u64, rows: usize, padding: usize) -> Result<Position, WalError> {
    journal.begin();
    for _ in 0..rows {
        journal.row(2, 0, |out| out.extend_from_slice(&body(value, padding)));
    }
    journal.commit()
}

/// The lsns that recovery finds, checked to be whole transactions without gaps.
fn recovered(files: &dyn FileSystem, dir: &Path) -> Result<(i64, wal::RecoveryReport), WalError> {
    let mut last = 0;
    let mut whole = 0;
    let report = recover(files, dir, &Vclock::default(), false, |row| {
        assert_eq!(row.header.lsn, last + 1);
        last = row.header.lsn.0;
        if row.header.is_commit {
            whole = last;
        }
        Ok(())
    })?;
    assert_eq!(last, whole, "no transaction is there in part");
    Ok((last, report))
}

#[test]
fn whatever_the_moment_of_power_loss_durable_transactions_survive() {
    let mut runs = 0;
    for off_at in 0..400 {
        let files = SimulatedFiles::default();
        files.set_fault(Fault { changes_until_off: Some(off_at), ..Fault::default() });
        let mut durable = 0;
        if let Ok(mut journal) =
            Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 40_000), Vclock::default())
        {
            for value in 0..30 {
                let padding = if value % 7 == 0 { 9000 } else { 50 };
                if commit(&mut journal, value, 1 + value as usize % 3, padding).is_err() {
                    break;
                }
                journal.submit();
                let state = journal.poll();
                durable = state.durable.0;
                if state.failed.is_some() {
                    break;
                }
            }
        }
        for seed in 0..6 {
            let after = files.crash(seed * 1000 + off_at);
            let (last, _) = recovered(&after, Path::new(DIR)).unwrap();
            assert!(last >= durable, "off at {off_at}, seed {seed}: {last} of {durable} durable rows");
            // A second crash during or after recovery changes nothing.
            let (again, _) = recovered(&after.crash(seed), Path::new(DIR)).unwrap();
            assert_eq!(again, last);
            runs += 1;
        }
    }
    assert_eq!(runs, 2400);
}

/// Writes into many small files with threads at work. What was durable before the end without a goodbye is there, in files without gaps.
fn files_follow_each_other(mode: WalMode) {
    let dir = tempfile::tempdir().unwrap();
    let files: Arc<dyn FileSystem> = Arc::new(SystemFiles);
    let mut config = config(Arc::clone(&files), dir.path(), 4, 300_000);
    (config.mode, config.prepare_bytes) = (mode, 8 << 10);
    let mut journal = Journal::open(config.clone(), Vclock::default()).unwrap();
    let mut durable = Position::default();
    for value in 0..3000 {
        commit(&mut journal, value, 1 + value as usize % 3, 100).unwrap();
        journal.submit();
        let state = journal.poll();
        assert!(state.failed.is_none() && state.durable >= durable, "{state:?}");
        durable = state.durable;
        if value % 500 == 499 {
            // As a checkpoint does.
            journal.rotate().unwrap();
        }
    }
    durable = journal.poll().durable;
    drop(journal);
    let named = logs(&*files, dir.path()).unwrap().len();
    assert!(named > 5, "{named} files");
    remove_unfinished(&*files, dir.path()).unwrap();
    let (last, _) = recovered(&*files, dir.path()).unwrap();
    assert!(Position(last) >= durable && durable > Position::default(), "{last} of {durable:?}");

    // Another life, ended well: everything is there, in whole files, and nothing else.
    let mut vclock = Vclock::default();
    vclock.set(1, Lsn(last));
    let mut journal = Journal::open(config, vclock).unwrap();
    let appended = (0..1000).map(|value| commit(&mut journal, value, 1, 100).unwrap()).last().unwrap();
    journal.close().unwrap();
    assert_eq!(recovered(&*files, dir.path()).unwrap().0, appended.0);
    assert!(remove_unfinished(&*files, dir.path()).unwrap().is_empty());
}

#[test]
fn files_follow_each_other_beside_synced_writes() {
    files_follow_each_other(WalMode::Fsync);
}

#[test]
fn files_follow_each_other_beside_writes() {
    files_follow_each_other(WalMode::Write);
}

/// Waits until the next file is made, and the one before is complete.
fn wait_for_files(journal: &mut Journal) {
    while journal.is_next_file_coming() {
        journal.notifier().clear();
        assert!(journal.poll().failed.is_none());
        if journal.is_next_file_coming() {
            journal.notifier().wait(Duration::from_millis(100));
        }
    }
}

#[test]
fn power_may_be_lost_between_the_name_of_a_new_file_and_the_end_of_the_old_one() {
    let files = SimulatedFiles::default();
    files.keep_points();
    let mut config = config(Arc::new(files.clone()), Path::new(DIR), 4, 200_000);
    config.prepare_bytes = 32 << 10;
    let mut journal = Journal::open(config, Vclock::default()).unwrap();
    // How many changes there were at most when so many rows were durable.
    let mut durable = vec![(0, 0)];
    for value in 1..=4 {
        commit_durably(&mut journal, value);
        durable.push((files.changes() as usize, value as i64));
        wait_for_files(&mut journal);
        journal.rotate().unwrap();
    }
    journal.close().unwrap();
    let mut between = 0;
    for (at, point) in files.take_points().into_iter().enumerate() {
        let least = durable.iter().rev().find(|(changes, _)| *changes <= at).unwrap().1;
        for loss in Loss::kinds(point.unsynced(), 0..10) {
            let when = format!("{} {at}, {loss}", point.operation);
            let after = point.crash(loss);
            remove_unfinished(&after, Path::new(DIR)).unwrap();
            let named = logs(&after, Path::new(DIR)).unwrap();
            for (_, path) in &named {
                let found = check_file(&after, path, &mut Nobody).unwrap();
                assert!(found.losses.is_empty(), "{when}: {found:?}");
            }
            let is_incomplete = |path: &Path| {
                let complete = XlogReader::open(&after, path).unwrap().for_each_row(|_, _| {});
                complete != Ok(true)
            };
            let before_last = named.iter().rev().nth(1).map(|(_, path)| path.clone());
            let is_between = before_last.as_deref().is_some_and(is_incomplete);
            between += u32::from(is_between);
            let (last, report) = recovered(&after, Path::new(DIR)).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert!(last >= least, "{when}: {last} of {least} durable rows");
            assert!(report.losses.is_empty(), "{when}: {report}");
            assert!(
                !before_last.as_deref().is_some_and(is_incomplete),
                "{when}: every file but the newest is complete"
            );
            let (again, _) = recovered(&after.crash(1), Path::new(DIR)).unwrap();
            assert_eq!(again, last, "{when}");
        }
    }
    assert!(between > 20, "{between} power losses met two files of which none was complete");
}

#[test]
fn a_file_that_ends_before_the_rows_of_the_next_one_is_damaged() {
    let files = SimulatedFiles::default();
    let config = config(Arc::new(files.clone()), Path::new(DIR), 0, 1 << 20);
    let mut journal = Journal::open(config, Vclock::default()).unwrap();
    commit_durably(&mut journal, 1);
    commit_durably(&mut journal, 2);
    journal.rotate().unwrap();
    commit_durably(&mut journal, 3);
    journal.close().unwrap();
    let (_, first) = logs(&files, Path::new(DIR)).unwrap()[0].clone();
    let file = files.open(&first, OpenMode::MODIFY).unwrap();
    // Without its marker, and with half of it: nothing is lost.
    for length in [3 * 4096, 3 * 4096 + 2] {
        file.set_len(length).unwrap();
        assert!(check_file(&files, &first, &mut Nobody).unwrap().losses.is_empty());
        assert_eq!(recovered(&files.crash(Loss::None), Path::new(DIR)).unwrap().0, 3);
    }
    // Without its last group, or a part of that.
    for length in [3 * 4096 - 7, 2 * 4096] {
        file.set_len(length).unwrap();
        assert_eq!(check_file(&files, &first, &mut Nobody).unwrap().losses.len(), 1);
        assert!(recovered(&files.crash(Loss::None), Path::new(DIR)).is_err());
    }
}

#[test]
fn a_log_file_has_its_name_only_when_its_header_is_whole() {
    let files = SimulatedFiles::default();
    files.keep_points();
    drop(Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 1 << 20), Vclock::default()).unwrap());
    for point in files.take_points() {
        // The header is torn, the prepared space behind it is there.
        for loss in Loss::kinds(point.unsynced(), 0..10) {
            let after = point.crash(loss);
            let (last, _) = recovered(&after, Path::new(DIR)).unwrap_or_else(|error| panic!("{loss}: {error}"));
            assert_eq!(last, 0);
        }
    }
}

#[test]
fn what_cannot_be_read_now_is_not_taken_for_a_torn_end() {
    let files = SimulatedFiles::default();
    let mut journal =
        Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 1 << 20), Vclock::default()).unwrap();
    commit(&mut journal, 1, 1, 9000).unwrap();
    journal.wait(journal.appended()).unwrap();
    drop(journal);
    let mut nth = 0;
    loop {
        let after = files.crash(Loss::All);
        after.set_fault(Fault { reads_until_error: Some(nth), ..Fault::default() });
        match recovered(&after, Path::new(DIR)) {
            Ok((last, _)) => assert_eq!(last, 1, "read error {nth}"),
            Err(error) => assert!(matches!(error, WalError::Io { .. }), "read error {nth}: {error}"),
        }
        let untouched = after.fault().reads_until_error.is_some();
        after.set_fault(Fault::default());
        assert_eq!(recovered(&after, Path::new(DIR)).unwrap().0, 1, "after read error {nth}");
        if untouched {
            break;
        }
        nth += 1;
    }
    assert!(nth > 3);
}

#[test]
fn a_failed_sync_loses_what_was_not_durable_and_stops_the_log() {
    let files = SimulatedFiles::default();
    let mut journal =
        Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 1 << 20), Vclock::default()).unwrap();
    commit(&mut journal, 1, 1, 10).unwrap();
    journal.submit();
    assert_eq!(journal.poll().durable, Position(1));
    files.set_fault(Fault { syncs_until_error: Some(0), ..Fault::default() });
    commit(&mut journal, 2, 1, 10).unwrap();
    journal.submit();
    let state = journal.poll();
    assert_eq!(state.durable, Position(1));
    assert_eq!(state.failed.map(|(lost, _)| lost), Some(Position(2)));
    files.set_fault(Fault::default());
    assert!(matches!(commit(&mut journal, 3, 1, 10), Err(WalError::Failed(_))));
}

/// The rows that are there after every kind of loss.
fn check_every_loss(files: &SimulatedFiles, durable: i64, when: &str) {
    for loss in Loss::kinds(files.unsynced(), 0..20) {
        let after = files.crash(loss);
        remove_unfinished(&after, Path::new(DIR)).unwrap();
        let (last, _) = recovered(&after, Path::new(DIR)).unwrap_or_else(|error| panic!("{when}, {loss}: {error}"));
        assert_eq!(last, durable, "{when}, {loss}");
    }
}

fn journal_of_one(files: &SimulatedFiles) -> Journal {
    let mut journal =
        Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 1 << 20), Vclock::default()).unwrap();
    commit_durably(&mut journal, 1);
    journal
}

fn commit_durably(journal: &mut Journal, value: u64) {
    let position = commit(journal, value, 1, 10).unwrap();
    journal.wait(position).unwrap();
}

/// Every operation of a rotation fails once: how often the old file was written on, a new one begun, the log ended.
fn rotations_with_an_error(error_kind: Option<io::ErrorKind>) -> [usize; 3] {
    let mut outcomes = [0; 3];
    for nth in 0.. {
        let files = SimulatedFiles::default();
        let mut journal = journal_of_one(&files);
        files.set_fault(Fault { operations_until_error: Some(nth), error_kind, ..Fault::default() });
        let rotated = journal.rotate();
        let is_untouched = files.fault().operations_until_error.is_some();
        files.set_fault(Fault::default());
        if is_untouched {
            break;
        }
        let when = format!("error {nth}");
        check_every_loss(&files, 1, &when);
        if let Err(error @ WalError::Failed(_)) = rotated {
            assert!(matches!(commit(&mut journal, 2, 1, 10), Err(WalError::Failed(_))), "{when}: {error}");
            outcomes[2] += 1;
            continue;
        }
        commit_durably(&mut journal, 2);
        check_every_loss(&files, 2, &when);
        let is_new = logs(&files, Path::new(DIR)).unwrap().len() == 2;
        assert_eq!(is_new, rotated.is_ok(), "{when}");
        outcomes[usize::from(is_new)] += 1;
        // What was left behind is in nobody's way.
        journal.rotate().unwrap();
        commit_durably(&mut journal, 3);
        check_every_loss(&files, 3, &when);
    }
    outcomes
}

#[test]
fn a_failed_rotation_goes_on_in_the_old_file_unless_that_may_be_completed_in_part() {
    let [old, new, ended] = rotations_with_an_error(None);
    // The note of the newest log may fail.
    assert!(old >= 4 && new <= 2, "{old} went on, {new} are new");
    assert_eq!(ended, 5, "the marker, the cut, the sync, the name, the directory");
}

#[test]
fn a_rotation_on_a_full_disk_takes_the_space_that_the_old_file_has_prepared() {
    let [old, new, ended] = rotations_with_an_error(Some(io::ErrorKind::StorageFull));
    assert!(old == 0 && new >= 4, "{old} went on, {new} are new");
    assert_eq!(ended, 5);
}

#[test]
fn bytes_since_a_checkpoint_are_counted_over_all_files_of_the_log() {
    let files = SimulatedFiles::default();
    let mut journal =
        Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 40_000), Vclock::default()).unwrap();
    for value in 0..30 {
        commit_durably(&mut journal, value);
    }
    assert!(logs(&files, Path::new(DIR)).unwrap().len() > 2);
    assert_eq!(journal.bytes_since_checkpoint(), 30 * 4096);
    journal.rotate().unwrap();
    assert_eq!(journal.bytes_since_checkpoint(), 0);
}

#[test]
fn a_rotation_on_a_disk_that_stays_full_goes_on_in_the_old_file_when_there_is_space() {
    let files = SimulatedFiles::default();
    let mut journal = journal_of_one(&files);
    files.set_fault(Fault { space_left: Some(0), ..Fault::default() });
    assert!(matches!(journal.rotate(), Err(WalError::DiskFull { .. })));
    assert!(matches!(commit(&mut journal, 2, 1, 10), Err(WalError::DiskFull { .. })));
    check_every_loss(&files, 1, "full");
    files.set_fault(Fault::default());
    commit_durably(&mut journal, 2);
    check_every_loss(&files, 2, "space again");
    assert_eq!(logs(&files, Path::new(DIR)).unwrap().len(), 1);
}

#[test]
fn a_full_disk_refuses_before_anything_is_taken_and_recovers_by_itself() {
    let files = SimulatedFiles::default();
    let mut journal =
        Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 64 << 20), Vclock::default()).unwrap();
    files.set_fault(Fault { space_left: Some(0), ..Fault::default() });
    let mut taken = 0;
    let refused = loop {
        match commit(&mut journal, 1, 1, 100_000) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        journal.submit();
        journal.poll();
    };
    assert!(matches!(refused, WalError::DiskFull { .. }) && taken > 3);
    files.set_fault(Fault::default());
    assert_eq!(commit(&mut journal, 1, 1, 100_000).unwrap(), Position(taken + 1));
    journal.close().unwrap();
    assert_eq!(recovered(&files, Path::new(DIR)).unwrap().0, taken + 1);
}

#[test]
fn every_flipped_bit_of_a_completed_log_is_found() {
    let dir = Path::new(DIR);
    let make = || {
        let files = SimulatedFiles::default();
        let mut journal = Journal::open(config(Arc::new(files.clone()), dir, 0, 1 << 20), Vclock::default()).unwrap();
        for value in 0..3 {
            commit(&mut journal, value, 2, 30).unwrap();
            journal.wait(journal.appended()).unwrap();
        }
        journal.close().unwrap();
        files
    };
    let path = dir.join("00000000000000000000.xlog");
    let len = make().open(&path, OpenMode::READ).unwrap().len().unwrap();
    for byte in 4096..len {
        let files = make();
        files.flip_bit(&path, byte * 8 + byte % 8);
        match recovered(&files, dir) {
            Err(WalError::Corrupt { file, offset, what }) => {
                assert_eq!(file, path);
                assert!(offset <= byte && byte < offset + 8192, "{offset} for a flip at {byte}: {what}");
            }
            other => panic!("{byte}: {other:?}"),
        }
    }
}

/// Writes groups, several in flight or each durable before the next, and damages the second.
fn damaged_group(wait_for_each: bool) -> (PathBuf, Result<(i64, wal::RecoveryReport), WalError>) {
    let dir = tempfile::tempdir().unwrap();
    let files: Arc<dyn FileSystem> = Arc::new(SystemFiles);
    let mut journal = Journal::open(config(Arc::clone(&files), dir.path(), 8, 1 << 20), Vclock::default()).unwrap();
    // Groups of many transactions, so that all four may be in flight.
    for group in 0..4 {
        for value in 0..8 {
            commit(&mut journal, group * 8 + value, 1, 30).unwrap();
        }
        journal.submit();
        if wait_for_each {
            journal.wait(journal.appended()).unwrap();
        }
    }
    journal.wait(journal.appended()).unwrap();
    // As kill -9 leaves it: not closed.
    drop(journal);
    let path = dir.path().join("00000000000000000000.xlog");
    let file = files.open(&path, OpenMode::MODIFY).unwrap();
    file.write_all_at(b"XX", 2 * 4096 + 40).unwrap();
    let result = recovered(&*files, dir.path());
    (path, result)
}

#[test]
fn a_damaged_group_that_was_acknowledged_is_refused_and_one_that_was_not_is_cut() {
    let (path, refused) = damaged_group(true);
    match refused {
        Err(WalError::Corrupt { file, offset, what }) => {
            assert_eq!((file, offset), (path, 8192));
            assert!(what.contains("force_recovery would lose"), "{what}");
        }
        other => panic!("{other:?}"),
    }
    let (_, cut) = damaged_group(false);
    let (last, report) = cut.unwrap();
    assert_eq!(last, 8);
    let cut = report.cut.unwrap();
    assert_eq!((cut.offset, cut.bytes), (8192, 8192));
}

#[test]
fn a_snapshot_cut_anywhere_is_not_taken_for_a_complete_one() {
    let files: Arc<dyn FileSystem> = Arc::new(SimulatedFiles::default());
    let mut vclock = Vclock::default();
    vclock.set(1, Lsn(77));
    let clock = Arc::new(ManualClock::default());
    let mut writer = SnapshotWriter::create(Arc::clone(&files), clock, Path::new(DIR), &vclock, "uuid", 0).unwrap();
    for value in 0..100 {
        writer.row(2, 0, &body(value, 40)).unwrap();
    }
    let finished = writer.finish().unwrap();
    assert!(wal::snapshots(&*files, Path::new(DIR)).unwrap().is_empty(), "it has no name before it is published");
    let path = finished.publish().unwrap();
    let mut rows = 0;
    let mut reader = XlogReader::open(&*files, &path).unwrap();
    assert_eq!(reader.meta.vclock, vclock);
    assert_eq!(reader.for_each_row(|_, _| rows += 1), Ok(true));
    assert_eq!(rows, 100);
    let file = files.open(&path, OpenMode::MODIFY).unwrap();
    for len in (0..file.len().unwrap()).rev() {
        file.set_len(len).unwrap();
        let complete = XlogReader::open(&*files, &path).ok().map(|mut reader| reader.for_each_row(|_, _| {}));
        assert!(!matches!(complete, Some(Ok(true))), "cut to {len}");
    }
}

#[test]
fn mutated_files_never_panic_the_reader() {
    let dir = Path::new(DIR);
    let random = runtime::SeededRandomness::new(5);
    use runtime::Randomness;
    let files = SimulatedFiles::default();
    let mut journal = Journal::open(config(Arc::new(files.clone()), dir, 0, 1 << 20), Vclock::default()).unwrap();
    commit(&mut journal, 1, 3, 30).unwrap();
    journal.close().unwrap();
    let path = dir.join("00000000000000000000.xlog");
    let file: Arc<dyn File> = files.open(&path, OpenMode::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_full_at(&mut bytes, 0).unwrap();
    for _ in 0..2000 {
        let mut mutated = bytes.clone();
        for _ in 0..1 + random.next_u64() % 8 {
            let at = 4000 + random.next_u64() as usize % (mutated.len() - 4000);
            mutated[at] = random.next_u64() as u8;
        }
        mutated.truncate(mutated.len() - random.next_u64() as usize % 200);
        let copy = SimulatedFiles::default();
        let file = copy.open(&path, OpenMode::CREATE).unwrap();
        file.write_all_at(&mutated, 0).unwrap();
        let _ = recover(&copy, dir, &Vclock::default(), random.next_u64().is_multiple_of(2), |_| Ok(()));
    }
}

/// Writes groups with several in flight, or each durable before the next, and puts prepared space in the page of one: a write that never came
/// to the disk although later ones did.
fn missing_group(wait_for_each: bool, missing: u64) -> Result<(i64, wal::RecoveryReport), WalError> {
    let dir = tempfile::tempdir().unwrap();
    let files: Arc<dyn FileSystem> = Arc::new(SystemFiles);
    let mut journal = Journal::open(config(Arc::clone(&files), dir.path(), 8, 1 << 20), Vclock::default()).unwrap();
    let path = dir.path().join("00000000000000000000.xlog");
    let mut prepared = vec![0; 4096];
    files.open(&path, OpenMode::READ).unwrap().read_full_at(&mut prepared, 2 * 4096).unwrap();
    for group in 0..4 {
        for value in 0..8 {
            commit(&mut journal, group * 8 + value, 1, 30).unwrap();
        }
        journal.submit();
        if wait_for_each {
            journal.wait(journal.appended()).unwrap();
        }
    }
    journal.wait(journal.appended()).unwrap();
    // As kill -9 leaves it: not closed.
    drop(journal);
    files.open(&path, OpenMode::MODIFY).unwrap().write_all_at(&prepared, missing * 4096).unwrap();
    recovered(&*files, dir.path())
}

#[test]
fn a_group_that_never_arrived_ends_the_log_or_is_refused_if_it_was_acknowledged() {
    assert_eq!(missing_group(false, 1).unwrap().0, 0);
    let (last, report) = missing_group(false, 2).unwrap();
    assert_eq!(last, 8);
    let cut = report.cut.unwrap();
    assert_eq!(cut.offset, 8192);
    match missing_group(true, 2) {
        Err(WalError::Corrupt { offset, what, .. }) => {
            assert_eq!(offset, 8192);
            assert!(
                what.contains("a group is missing")
                    && what.contains("force_recovery would lose the rows with lsn 9 to 16"),
                "{what}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_group_that_is_torn_at_a_byte_looks_like_one_flipped_bit() {
    // Numbers of one bit stand last in a group's note: its durable offset is a power of two.
    for groups in 1..9 {
        let files = SimulatedFiles::default();
        let mut journal =
            Journal::open(config(Arc::new(files.clone()), Path::new(DIR), 0, 1 << 20), Vclock::default()).unwrap();
        let path = Path::new(DIR).join("00000000000000000000.xlog");
        for value in 0..groups {
            commit(&mut journal, value, 1, 10).unwrap();
            journal.wait(journal.appended()).unwrap();
        }
        let prepared = read_page(&files, &path, groups + 1);
        commit(&mut journal, groups, 1, 10).unwrap();
        journal.wait(journal.appended()).unwrap();
        drop(journal);
        let whole = read_page(&files, &path, groups + 1);
        for cut in 0..200 {
            let torn = [&whole[..cut], &prepared[cut..]].concat();
            let fork = files.crash(runtime::Loss::None);
            let file = fork.open(&path, OpenMode::MODIFY).unwrap();
            file.write_all_at(&torn, (groups + 1) * 4096).unwrap();
            let expected = groups + u64::from(torn == whole);
            assert_eq!(recovered(&fork, Path::new(DIR)).unwrap().0 as u64, expected, "cut at {cut} of group {groups}");
        }
    }
}

fn read_page(files: &SimulatedFiles, path: &Path, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    files.open(path, OpenMode::READ).unwrap().read_full_at(&mut bytes, page * 4096).unwrap();
    bytes
}
