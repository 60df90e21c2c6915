//! Completed logs are written once more without padding: the same rows, whatever the moment at which the power goes, and never where anything is
//! wrong.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{Fault, File, FileSystem, ManualClock, OpenMode, SimulatedFiles};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuple::{Lsn, msgpack};
use wal::{
    Journal, JournalConfig, Refusal, Replay, Rewritten, Row, Vclock, WalMode, check_file, logs, recover,
    remove_unfinished, rewrite,
};

const DIR: &str = "/db";
const PAGE: u64 = 4096;

struct Nobody;

impl Replay for Nobody {
    fn apply(&mut self, _row: &Row<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

fn config(files: &SimulatedFiles, in_flight_max: usize, rewrite_bytes: u64) -> JournalConfig {
    JournalConfig {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        dir: PathBuf::from(DIR),
        mode: WalMode::Fsync,
        wal_max_size: 400 << 10,
        instance_uuid: "00000000-0000-0000-0000-000000000001".to_string(),
        replica_id: 1,
        in_flight_max,
        queue_bytes_max: 16 << 20,
        prepare_bytes: 64 << 10,
        rewrite_bytes,
    }
}

/// Transactions of one row and of several, each in a group of its own; now and then one that is larger than a page.
fn fill(journal: &mut Journal, count: u64) {
    for value in 0..count {
        journal.begin();
        for part in 0..1 + value % 3 {
            journal.row(2, 0, |out| {
                msgpack::encode_map(out, 1);
                msgpack::encode_uint(out, 0x21);
                msgpack::encode_array(out, 3);
                msgpack::encode_uint(out, value);
                msgpack::encode_uint(out, part);
                msgpack::encode_bin(out, &vec![value as u8; if value % 29 == 0 { 9000 } else { 20 }]);
            });
        }
        journal.commit().unwrap();
        journal.wait(journal.appended()).unwrap();
    }
}

/// Logs as a server leaves them that rewrites nothing.
fn padded(count: u64) -> SimulatedFiles {
    let files = SimulatedFiles::default();
    let mut journal = Journal::open(config(&files, 0, u64::MAX), Vclock::default()).unwrap();
    fill(&mut journal, count);
    journal.close().unwrap();
    files.crash(runtime::Loss::None)
}

type Rows = Vec<(i64, i64, bool, Vec<u8>)>;

fn rows(files: &SimulatedFiles) -> Rows {
    let mut found = Vec::new();
    let files = files.fork();
    remove_unfinished(&files, Path::new(DIR)).unwrap();
    let report = recover(&files, Path::new(DIR), &Vclock::default(), false, |row| {
        found.push((row.header.lsn.0, row.header.tsn.0, row.header.is_commit, row.body.to_vec()));
        Ok(())
    });
    let report = report.unwrap();
    assert!(report.cut.is_none() && report.losses.is_empty(), "{report}");
    found
}

fn paths(files: &SimulatedFiles) -> Vec<PathBuf> {
    logs(files, Path::new(DIR)).unwrap().into_iter().map(|(_, path)| path).collect()
}

fn bytes(files: &SimulatedFiles, path: &Path) -> Vec<u8> {
    let file = files.open(path, OpenMode::READ).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_full_at(&mut bytes, 0).unwrap();
    bytes
}

fn open(files: &SimulatedFiles, path: &Path) -> Arc<dyn File> {
    files.open(path, OpenMode::MODIFY).unwrap()
}

fn rewrite_all(files: &SimulatedFiles, path: &Path) -> Option<Rewritten> {
    rewrite(files, path, 1, |_| true, || true).unwrap()
}

#[test]
fn a_log_of_small_groups_takes_what_its_rows_take() {
    let files = padded(300);
    let before = rows(&files);
    let all = paths(&files);
    assert!(all.len() > 2, "{all:?}");
    for path in &all {
        let length = bytes(&files, path).len() as u64;
        let Rewritten { before, after } = rewrite_all(&files, path).unwrap();
        assert!(
            before == length && after == bytes(&files, path).len() as u64 && after < before / 20,
            "{before}, {after}"
        );
        let report = check_file(&files, path, &mut Nobody).unwrap();
        assert!(report.losses.is_empty() && report.torn.is_none());
        // There is nothing left to gain.
        assert_eq!(rewrite_all(&files, path), None);
    }
    assert_eq!(rows(&files), before);
    // The log goes on behind it.
    let mut vclock = Vclock::default();
    vclock.set(1, Lsn(before.len() as i64));
    let mut journal = Journal::open(config(&files, 0, u64::MAX), vclock).unwrap();
    fill(&mut journal, 3);
    journal.close().unwrap();
    assert_eq!(rows(&files).len(), before.len() + 6);
}

#[test]
fn whatever_the_moment_of_power_loss_one_of_the_two_files_is_there() {
    let image = padded(60);
    let (expected, path) = (rows(&image), paths(&image).remove(0));
    let (old, mut new) = (bytes(&image, &path), None);
    let mut sides = [0, 0];
    for off_at in 0.. {
        let files = image.fork();
        files.set_fault(Fault { changes_until_off: Some(off_at), ..Fault::default() });
        let done = rewrite(&files, &path, 1, |_| true, || true);
        for seed in 0..8 {
            let after = files.crash(seed * 1000 + off_at);
            assert_eq!(rows(&after), expected, "off at {off_at}, seed {seed}");
            let is_old = bytes(&after, &path) == old;
            sides[usize::from(is_old)] += 1;
            assert!(is_old || done.is_err() || matches!(done, Ok(Some(_))), "it was not said");
        }
        if let Ok(Some(_)) = done {
            new = Some(bytes(&files, &path));
            break;
        }
    }
    assert!(sides.iter().all(|count| *count > 8), "{sides:?}");
    assert!(new.unwrap().len() * 10 < old.len());
}

#[test]
fn whatever_operation_fails_one_of_the_two_files_is_there_and_nothing_else() {
    let image = padded(60);
    let (expected, path) = (rows(&image), paths(&image).remove(0));
    let mut failed = 0;
    for at in 0.. {
        let files = image.fork();
        files.set_fault(Fault { operations_until_error: Some(at), ..Fault::default() });
        let done = rewrite(&files, &path, 1, |_| true, || true);
        let is_behind_all = files.fault().operations_until_error.is_some();
        files.set_fault(Fault::default());
        assert_eq!(rows(&files), expected, "operation {at}: {done:?}");
        let names = files.list(Path::new(DIR)).unwrap();
        assert!(names.iter().all(|name| !name.ends_with(".inprogress")), "operation {at}: {names:?}");
        if is_behind_all {
            assert!(matches!(done, Ok(Some(_))), "{done:?}");
            break;
        }
        failed += 1;
    }
    assert!(failed > 8, "{failed}");
}

#[test]
fn a_log_that_is_not_whole_stays_as_it_is() {
    let image = padded(60);
    let path = paths(&image).remove(0);
    let whole = bytes(&image, &path);
    let stays = |files: &SimulatedFiles, what: &str| {
        let before = bytes(files, &path);
        assert_eq!(rewrite_all(files, &path), None, "{what}");
        assert_eq!(bytes(files, &path), before, "{what}");
        assert!(files.list(Path::new(DIR)).unwrap().iter().all(|name| !name.ends_with(".inprogress")), "{what}");
    };
    let end = whole.len() as u64 - 4;
    for (length, what) in
        [(end, "no marker"), (end - 1, "torn"), (5 * PAGE, "half of it"), (7, "a piece of the header"), (0, "nothing")]
    {
        let files = image.fork();
        open(&files, &path).set_len(length).unwrap();
        stays(&files, what);
    }
    for at in (0..whole.len()).step_by(1009).chain(0..40).chain(whole.len() - 4..whole.len()) {
        let files = image.fork();
        open(&files, &path).write_all_at(&[whole[at] ^ 4], at as u64).unwrap();
        stays(&files, &format!("byte {at}"));
    }
    // A group that never came: prepared space is in its place.
    let files = image.fork();
    let marker = &whole[whole.len() - 4..];
    let hole = (2..20).find(|page| whole[*page * 4096..].starts_with(&whole[4096..4100])).unwrap() * 4096;
    let later = [&whole[..hole], &whole[hole + 4096..]].concat();
    open(&files, &path).set_len(0).unwrap();
    open(&files, &path).write_all_at(&later, 0).unwrap();
    assert!(later.ends_with(marker));
    stays(&files, "a group is missing");
    // Whoever says no is heard, whenever it is.
    let files = image.fork();
    assert_eq!(rewrite(&files, &path, 1, |_| true, || false).unwrap(), None);
    assert_eq!(rewrite(&files, &path, 1, |_| false, || true).unwrap(), None);
    assert_eq!(rewrite(&files, &path, whole.len() as u64, |_| true, || true).unwrap(), None);
    stays(
        &{
            let files = image.fork();
            files.remove(&path).unwrap();
            files.open(&path, OpenMode::CREATE).unwrap();
            files
        },
        "empty",
    );
    assert_eq!(bytes(&files, &path), whole);
}

#[test]
fn a_journal_rewrites_what_it_has_completed_but_not_while_files_are_held() {
    let files = SimulatedFiles::default();
    let mut journal = Journal::open(config(&files, 4, 1), Vclock::default()).unwrap();
    journal.hold_files();
    fill(&mut journal, 150);
    journal.rotate().unwrap();
    journal.wait_files().unwrap();
    let held = paths(&files);
    let lengths = |files: &SimulatedFiles| held.iter().map(|path| bytes(files, path).len()).collect::<Vec<_>>();
    let before = lengths(&files);
    assert!(before[..held.len() - 1].iter().all(|length| length % 4096 == 4), "{before:?}");
    journal.release_files();
    // A stop ends what is under way; the log that it has completed itself comes in any case.
    fill(&mut journal, 50);
    let newest = paths(&files).pop().unwrap();
    journal.close().unwrap();
    assert!(bytes(&files, &newest).len() < 40_000);
    let expected = rows(&files).len();
    assert_eq!(expected, 150 * 2 + 99);
    // The next start does the rest.
    let mut vclock = Vclock::default();
    vclock.set(1, Lsn(expected as i64));
    let journal = Journal::open(config(&files, 4, 1), vclock).unwrap();
    let is_done = || held[..held.len() - 1].iter().all(|path| bytes(&files, path).len() % 4096 != 4);
    while !is_done() {
        runtime::yield_thread();
    }
    journal.close().unwrap();
    assert_eq!(rows(&files).len(), expected);
}
