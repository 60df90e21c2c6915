//! Every bit of every file of a directory flipped, one after the other: each is found, by a look as by a start, and told exactly.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{File, FileSystem, ManualClock, OpenMode, SimulatedFiles};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuple::{Lsn, msgpack};
use wal::{
    FileReport, Journal, JournalConfig, Lost, OnDamage, Refusal, Replay, Row, SnapshotWriter, Vclock, WalError,
    WalMode, check_file, recover, recover_into,
};

const DIR: &str = "/db";
const UUID: &str = "00000000-0000-0000-0000-000000000001";
/// What little logs prepare behind their rows.
const WAL_MAX: u64 = 16 << 10;

/// Notes the lsns that it is given.
#[derive(Default)]
struct Lsns(Vec<i64>);

impl Replay for Lsns {
    fn apply(&mut self, row: &Row<'_>) -> Result<(), Refusal> {
        self.0.push(row.header.lsn.0);
        Ok(())
    }
}

fn journal(files: &SimulatedFiles, start: Vclock, mode: WalMode) -> Journal {
    let config = JournalConfig {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        dir: PathBuf::from(DIR),
        mode,
        wal_max_size: WAL_MAX,
        instance_uuid: UUID.to_string(),
        replica_id: 1,
        in_flight_max: 0,
        queue_bytes_max: 16 << 20,
        prepare_bytes: 1 << 20,
        rewrite_bytes: u64::MAX,
    };
    Journal::open(config, start).unwrap()
}

fn commit(journal: &mut Journal, rows: u64) {
    journal.begin();
    for value in 0..rows {
        journal.row(2, 0, |out| {
            msgpack::encode_map(out, 1);
            msgpack::encode_uint(out, 0x21);
            msgpack::encode_array(out, 1);
            msgpack::encode_uint(out, value);
        });
    }
    journal.commit().unwrap();
    journal.wait(journal.appended()).unwrap();
}

/// A snapshot, a log that was completed (lsn 1 to 3) and one that a crash left (lsn 4 and 5).
fn sample(mode: WalMode) -> (SimulatedFiles, Vec<PathBuf>) {
    let files = SimulatedFiles::default();
    let clock = Arc::new(ManualClock::default());
    let shared: Arc<dyn FileSystem> = Arc::new(files.clone());
    let mut snapshot = SnapshotWriter::create(shared, clock, Path::new(DIR), &Vclock::default(), UUID, 0).unwrap();
    for value in 0..120u32 {
        // Enough for a compressed block.
        let text = value.wrapping_mul(2_654_435_761).to_be_bytes().repeat(6);
        let mut body = Vec::new();
        msgpack::encode_map(&mut body, 1);
        msgpack::encode_uint(&mut body, 0x21);
        msgpack::encode_array(&mut body, 1);
        msgpack::encode_bin(&mut body, &text);
        snapshot.row(2, 0, &body).unwrap();
    }
    let snapshot = snapshot.finish().unwrap().publish().unwrap();
    let mut log = journal(&files, Vclock::default(), mode);
    commit(&mut log, 1);
    commit(&mut log, 2);
    let vclock = log.vclock();
    log.close().unwrap();
    let mut log = journal(&files, vclock, mode);
    commit(&mut log, 1);
    commit(&mut log, 1);
    // As kill -9 leaves it: not closed.
    drop(log);
    let logs = ["00000000000000000000.xlog", "00000000000000000003.xlog"].map(|name| Path::new(DIR).join(name));
    (files, [vec![snapshot], logs.to_vec()].concat())
}

fn length(files: &SimulatedFiles, path: &Path) -> u64 {
    files.open(path, OpenMode::READ).unwrap().len().unwrap()
}

fn look(files: &SimulatedFiles, path: &Path) -> FileReport {
    check_file(files, path, &mut Lsns::default()).unwrap()
}

/// The lsns that a report says are lost.
fn lost_lsns(losses: &[wal::Loss]) -> Vec<i64> {
    let mut lsns = Vec::new();
    for loss in losses {
        match &loss.lost {
            Lost::Rows(rows) => lsns.extend(rows.iter().map(|row| row.lsn.0)),
            Lost::Lsns(from, to) => lsns.extend(from.0..=to.0),
            Lost::Bytes(_) | Lost::Behind(_) => panic!("what is lost cannot be told: {loss:?}"),
        }
    }
    lsns
}

fn every_bit_is_found(mode: WalMode) {
    let (files, paths) = sample(mode);
    let mut flips = 0;
    for path in &paths {
        let good = look(&files, path);
        assert!(good.losses.is_empty() && good.torn.is_none(), "{}: {good:?}", path.display());
        for bit in 0..length(&files, path) * 8 {
            files.flip_bit(path, bit);
            let found = look(&files, path);
            assert_eq!(found.losses.len(), 1, "bit {bit} of {}: {found:?}", path.display());
            assert!(found.losses[0].offset <= bit / 8, "bit {bit} of {}: {found:?}", path.display());
            let place = format!("bit {} of byte {} is flipped", bit % 8, bit / 8);
            assert!(found.losses[0].what.contains(&place), "bit {bit} of {}: {found:?}", path.display());
            assert_eq!(found.torn, None);
            files.flip_bit(path, bit);
            flips += 1;
        }
    }
    println!("{flips} bits flipped one by one in {} files ({mode:?}), all of them found", paths.len());
}

#[test]
fn every_flipped_bit_of_every_file_of_a_synced_log_is_found_and_placed() {
    every_bit_is_found(WalMode::Fsync);
}

#[test]
fn every_flipped_bit_of_every_file_of_an_appended_log_is_found_and_placed() {
    every_bit_is_found(WalMode::Write);
}

#[test]
fn a_start_refuses_every_flipped_bit_of_a_log_and_by_force_loses_what_it_announced() {
    let (files, paths) = sample(WalMode::Fsync);
    let all: Vec<i64> = (1..=5).collect();
    let dir = Path::new(DIR);
    for path in &paths[1..] {
        // All positions of a bit are the same to what is done here; where they are not, they are all tried above.
        for bit in (0..length(&files, path) * 8).step_by(37) {
            let image = files.crash(0);
            image.flip_bit(path, bit);
            let mut seen = Lsns::default();
            let refused = recover_into(&image, dir, &Vclock::default(), OnDamage::Refuse, &mut seen);
            if let Ok(report) = &refused {
                // Space behind the last group may as well be the beginning of a group that was torn there: it is cut, which is told.
                let cut = report.cut.as_ref().unwrap_or_else(|| panic!("bit {bit} of {}", path.display()));
                assert!(
                    cut.file == *path && cut.offset <= bit / 8 && bit / 8 < cut.offset + 4096,
                    "bit {bit}: {cut:?}"
                );
                assert_eq!(seen.0, all, "bit {bit} of {}", path.display());
                continue;
            }
            let Err(WalError::Corrupt { file, offset, what }) = refused else {
                panic!("bit {bit} of {}: {refused:?}", path.display());
            };
            assert!(file == *path && offset <= bit / 8, "bit {bit} of {}: {what}", path.display());
            let (_, announced) = what.split_once("force_recovery would lose ").unwrap();
            let mut found = Lsns::default();
            let report = recover_into(&image, dir, &Vclock::default(), OnDamage::PassOver, &mut found).unwrap();
            assert_eq!(wal::announcement(&report.losses), announced, "bit {bit}");
            let lost = lost_lsns(&report.losses);
            let missing: Vec<i64> = all.iter().copied().filter(|lsn| !found.0.contains(lsn)).collect();
            assert_eq!(lost, missing, "bit {bit} of {}: {report}", path.display());
        }
    }
}

#[test]
fn wider_damage_between_good_rows_is_told_by_the_lsns_around_it() {
    let (files, paths) = sample(WalMode::Fsync);
    let file = files.open(&paths[1], OpenMode::MODIFY).unwrap();
    file.write_all_at(b"nothing of ours", 4096 + 30).unwrap();
    let found = look(&files, &paths[1]);
    assert_eq!(found.losses.len(), 1, "{found:?}");
    assert_eq!((found.losses[0].offset, &found.losses[0].lost), (4096, &Lost::Lsns(Lsn(1), Lsn(1))));
}

/// What a start is refused for, or none; then one by force, which has to lose what was announced, and one behind it, which has to go on.
fn refusal(files: &SimulatedFiles) -> Option<(PathBuf, String)> {
    let dir = Path::new(DIR);
    let before = files.fingerprint();
    let refused = recover(files, dir, &Vclock::default(), false, |_| Ok(()));
    let (file, what) = match refused {
        Ok(_) => return None,
        Err(WalError::Corrupt { file, what, .. }) => (file, what),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(files.fingerprint(), before, "a start that is refused changes nothing");
    let (_, announced) = what.split_once("force_recovery would lose ").unwrap();
    let forced = files.fork();
    let report = recover(&forced, dir, &Vclock::default(), true, |_| Ok(())).unwrap();
    assert_eq!(wal::announcement(&report.losses), announced);
    journal(&forced, report.vclock, WalMode::Fsync).close().unwrap();
    Some((file, what))
}

fn set_length(files: &SimulatedFiles, path: &Path, length: u64) {
    files.open(path, OpenMode::MODIFY).unwrap().set_len(length).unwrap();
}

/// 3,000 acknowledged transactions were gone with a warning when the newest log was cut to nothing, or to the beginning of its header.
#[test]
fn a_newest_log_without_a_whole_header_is_refused() {
    for mode in [WalMode::Fsync, WalMode::Write] {
        let (files, paths) = sample(mode);
        let path = paths.last().unwrap();
        let mut head = vec![0; 4096];
        let got = files.open(path, OpenMode::READ).unwrap().read_full_at(&mut head, 0).unwrap();
        let text = head[..got].windows(2).position(|pair| pair == b"\n\n").unwrap() + 2;
        for cut in 0..text {
            for is_page_there in [false, true] {
                let torn = files.fork();
                let file: Arc<dyn File> = torn.open(path, OpenMode::CREATE).unwrap();
                file.write_all_at(&head[..cut], 0).unwrap();
                if is_page_there {
                    file.set_len(4096).unwrap();
                }
                let (file, what) = refusal(&torn).unwrap_or_else(|| panic!("cut at {cut}"));
                assert!(
                    file == *path && what.ends_with("whatever rows were logged behind lsn 3"),
                    "cut at {cut}: {what}"
                );
                let found = look(&torn, path);
                assert!(!found.losses.is_empty() && found.torn.is_none(), "cut at {cut}: {found:?}");
            }
        }
    }
}

/// The sample behind a clean stop: the newest log has lsn 4 and 5 and its end marker.
fn stopped(mode: WalMode) -> (SimulatedFiles, Vec<PathBuf>) {
    let (files, paths) = sample(mode);
    files.remove(&paths[2]).unwrap();
    let mut vclock = Vclock::default();
    vclock.set(1, Lsn(3));
    let mut log = journal(&files, vclock, mode);
    commit(&mut log, 1);
    commit(&mut log, 1);
    log.close().unwrap();
    assert_eq!(refusal(&files), None);
    (files, paths)
}

#[test]
fn a_newest_log_that_is_cut_after_a_clean_stop_is_refused() {
    for mode in [WalMode::Fsync, WalMode::Write] {
        let (files, paths) = stopped(mode);
        let path = &paths[2];
        for cut in 0..length(&files, path) {
            let damaged = files.fork();
            set_length(&damaged, path, cut);
            let found = look(&damaged, path);
            let is_bad = !found.losses.is_empty();
            match refusal(&damaged) {
                Some((file, _)) => assert!(file == *path && is_bad, "cut at {cut}: {found:?}"),
                // Only the marker is missing.
                None => assert!(cut >= length(&files, path) - 4 && !is_bad, "cut at {cut}: {found:?}"),
            }
        }
    }
}

#[test]
fn a_newest_log_that_is_missing_is_refused() {
    for mode in [WalMode::Fsync, WalMode::Write] {
        let (crashed, paths) = sample(mode);
        crashed.remove(&paths[2]).unwrap();
        let (file, what) = refusal(&crashed).unwrap();
        assert!(file == paths[2] && what.ends_with("whatever rows were logged behind lsn 3"), "{what}");
        let loss = wal::check_newest(&crashed, Path::new(DIR), 0).unwrap().unwrap();
        assert_eq!((loss.file, loss.lost), (paths[2].clone(), Lost::Behind(3)));
        crashed.remove(&paths[1]).unwrap();
        assert_eq!(refusal(&crashed).unwrap().0, paths[2]);
        // A note that is missing, too, or is of no use: as in a directory of an older version.
        for content in [None, Some(0)] {
            let (files, _) = sample(mode);
            files.remove(&paths[2]).unwrap();
            match content {
                None => files.remove(&Path::new(DIR).join("lycosa.newest")).unwrap(),
                Some(length) => set_length(&files, &Path::new(DIR).join("lycosa.newest"), length),
            }
            assert_eq!(refusal(&files), None);
        }
        let (stopped, _) = stopped(mode);
        stopped.remove(&paths[2]).unwrap();
        let (file, what) = refusal(&stopped).unwrap();
        assert!(file == paths[2] && what.ends_with("the rows with lsn 4 to 5"), "{what}");
        // A snapshot has what was in it.
        let mut behind = Vclock::default();
        behind.set(1, Lsn(5));
        recover(&stopped, Path::new(DIR), &behind, false, |_| Ok(())).unwrap();
        assert_eq!(wal::check_newest(&stopped, Path::new(DIR), 5).unwrap(), None);
    }
}

#[test]
fn a_synced_log_that_is_cut_within_a_group_is_refused_also_after_a_crash() {
    let (files, paths) = sample(WalMode::Fsync);
    let path = &paths[2];
    for cut in 4096..3 * 4096 {
        let damaged = files.fork();
        set_length(&damaged, path, cut);
        let refused = refusal(&damaged);
        // Where a page ends, and before there is a whole header, nobody can tell.
        assert_eq!(refused.is_some(), cut % 4096 >= 19, "cut at {cut}: {refused:?}");
    }
}
