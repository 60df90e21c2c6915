//! One test for each rule of the simulation.

use super::*;
use std::collections::BTreeSet;

const DIR: &str = "/d";

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// A file whose bytes are durable, name and all.
fn durable(files: &SimulatedFiles, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = files.open(&path(name), OpenMode::CREATE).expect("opens");
    file.write_all_at(bytes, 0).expect("writes");
    file.sync().expect("syncs");
    files.sync_dir(Path::new(DIR)).expect("syncs");
    file
}

fn read(files: &SimulatedFiles, name: &str) -> Option<String> {
    let file = files.open(&path(name), OpenMode::READ).ok()?;
    let mut bytes = vec![0; file.len().expect("has a length") as usize];
    file.read_full_at(&mut bytes, 0).expect("reads");
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn text(text: &str) -> Option<String> {
    Some(text.to_string())
}

#[test]
fn an_unsynced_write_is_there_lost_or_torn_at_any_byte() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"durable");
    file.write_all_at(b"DURABLE", 0).expect("writes");
    let seen: BTreeSet<Option<String>> = (0..400u64).map(|seed| read(&files.crash(seed), "a")).collect();
    let torn = (0..=7).map(|at| Some(format!("{}{}", &"DURABLE"[..at], &"durable"[at..])));
    assert_eq!(seen, torn.collect());
    assert_eq!(read(&files.crash(Loss::All), "a"), text("durable"));
    assert_eq!(read(&files.crash(Loss::None), "a"), text("DURABLE"));
    assert_eq!(read(&files.crash(Loss::Torn(0, Tear::First)), "a"), text("Durable"));
    assert_eq!(read(&files.crash(Loss::Torn(0, Tear::Middle)), "a"), text("DURable"));
    assert_eq!(read(&files.crash(Loss::Torn(0, Tear::Last)), "a"), text("DURABLe"));
    assert_eq!(read(&files.crash(Loss::Torn(0, Tear::Behind)), "a"), text("durABLE"));
    assert_eq!(read(&files, "a"), text("DURABLE"), "the old file system stays as it is");
}

#[test]
fn unsynced_writes_survive_independently_of_each_other() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"...");
    for (at, byte) in [b"1", b"2", b"3"].into_iter().enumerate() {
        file.write_all_at(byte, at as u64).expect("writes");
    }
    let seen: BTreeSet<Option<String>> = (0..400u64).map(|seed| read(&files.crash(seed), "a")).collect();
    assert_eq!(seen.len(), 8, "{seen:?}");
    assert_eq!(read(&files.crash(Loss::AllBut(0)), "a"), text("..3"));
    assert_eq!(read(&files.crash(Loss::Only(0)), "a"), text("12."));
    assert_eq!(read(&files.crash(Loss::Only(2)), "a"), text(".23"));
    assert_eq!(files.unsynced(), 3);
    assert_eq!(Loss::kinds(3, 0..5).count(), 4 + 3 * 6 + 5);
}

#[test]
fn sectors_of_a_large_write_arrive_in_any_order() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", &[b'.'; 4096]);
    file.write_all_at(&[b'x'; 4096], 0).expect("writes");
    let is_reordered = |seed: u64| {
        let found = read(&files.crash(seed), "a").expect("is there");
        found.find('x') > found.find('.') && found.contains('x')
    };
    assert!((0..100).any(is_reordered));
}

#[test]
fn names_are_durable_when_their_own_directory_was_synced() {
    let files = SimulatedFiles::default();
    durable(&files, "a", b"a");
    durable(&files, "old", b"old");
    files.rename(&path("a"), &path("b")).expect("renames");
    files.remove(&path("old")).expect("removes");
    let elsewhere = Path::new("/e/c");
    files.open(elsewhere, OpenMode::CREATE).expect("opens");
    files.sync_dir(Path::new("/e")).expect("syncs");
    let after = files.crash(Loss::All);
    assert_eq!(after.list(Path::new(DIR)).expect("lists"), ["a", "old"]);
    assert!(after.exists(elsewhere), "its directory was synced");
    assert_eq!(files.crash(Loss::None).list(Path::new(DIR)).expect("lists"), ["b"]);
    let seen: BTreeSet<Vec<String>> =
        (0..100u64).map(|seed| files.crash(seed).list(Path::new(DIR)).expect("lists")).collect();
    assert_eq!(seen.len(), 4, "each of the two changes or none: {seen:?}");
    files.sync_dir(Path::new(DIR)).expect("syncs");
    assert_eq!(files.crash(Loss::All).list(Path::new(DIR)).expect("lists"), ["b"]);
}

#[test]
fn a_name_may_be_durable_and_its_contents_not_and_the_other_way_round() {
    let files = SimulatedFiles::default();
    let file = files.open(&path("a"), OpenMode::CREATE).expect("opens");
    file.write_all_at(b"text", 0).expect("writes");
    assert_eq!(read(&files.crash(Loss::Contents), "a"), text(""));
    assert_eq!(read(&files.crash(Loss::Names), "a"), None);
    files.sync_dir(Path::new(DIR)).expect("syncs");
    assert_eq!(read(&files.crash(Loss::All), "a"), text(""));
    file.sync().expect("syncs");
    assert_eq!(read(&files.crash(Loss::All), "a"), text("text"));
}

#[test]
fn what_a_failed_sync_was_to_carry_is_lost_although_later_syncs_succeed() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"1...");
    file.write_all_at(b"2", 1).expect("writes");
    files.set_fault(Fault { syncs_until_error: Some(0), ..Fault::default() });
    assert!(file.sync().is_err());
    file.write_all_at(b"3", 2).expect("writes");
    file.sync().expect("syncs again");
    assert_eq!(read(&files, "a"), text("123."), "the page cache shows it");
    assert_eq!(read(&files.crash(Loss::All), "a"), text("1.3."));
    // Written once more it is dirty again.
    file.write_all_at(b"2", 1).expect("writes");
    file.sync().expect("syncs");
    assert_eq!(read(&files.crash(Loss::All), "a"), text("123."));
}

#[test]
fn a_lying_disk_says_yes_and_carries_nothing() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"old");
    files.set_fault(Fault { syncs_lie: true, directory_syncs_lie: true, ..Fault::default() });
    file.write_all_at(b"new", 0).expect("writes");
    file.sync().expect("says yes");
    files.rename(&path("a"), &path("b")).expect("renames");
    files.sync_dir(Path::new(DIR)).expect("says yes");
    assert_eq!(read(&files.crash(Loss::All), "a"), text("old"));
}

#[test]
fn a_synced_write_is_durable_when_it_returns_and_carries_nothing_else() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"....");
    file.write_all_at(b"x", 0).expect("writes");
    let synced = files.open(&path("a"), OpenMode { synced: true, ..OpenMode::MODIFY }).expect("opens");
    synced.write_all_at(b"yy", 2).expect("writes");
    assert_eq!(read(&files.crash(Loss::All), "a"), text("..yy"));
    files.set_fault(Fault { changes_until_off: Some(0), ..Fault::default() });
    assert!(synced.write_all_at(b"zz", 2).is_err());
    let seen: BTreeSet<Option<String>> = (0..100u64).map(|seed| read(&files.crash(seed), "a")).collect();
    assert!(seen.contains(&text("..zz")) && seen.contains(&text("..zy")) && seen.contains(&text("..yy")), "{seen:?}");
}

#[test]
fn nothing_changes_once_the_machine_is_off() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"....");
    files.set_fault(Fault { changes_until_off: Some(1), ..Fault::default() });
    file.write_all_at(b"1", 0).expect("writes");
    assert!(file.write_all_at(b"2", 1).is_err(), "the power goes");
    assert!(file.write_all_at(b"3", 2).is_err() && file.sync().is_err());
    assert!(files.rename(&path("a"), &path("b")).is_err());
    assert_eq!(read(&files.crash(Loss::None), "a"), text("12.."));
    assert_eq!(read(&files.crash(Loss::All), "a"), text("...."));
}

#[test]
fn a_full_disk_takes_what_fits() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"1234");
    files.set_fault(Fault { space_left: Some(2), ..Fault::default() });
    file.write_all_at(b"xx", 0).expect("no growth");
    let error = file.write_all_at(b"56789", 3).expect_err("full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(read(&files, "a"), text("xx3567"));
    assert!(file.set_len(7).is_err());
}

#[test]
fn reads_fail_are_short_or_flipped() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"abcdef");
    let mut out = [0; 6];
    files.set_fault(Fault { reads_until_error: Some(1), read_bytes_max: Some(4), ..Fault::default() });
    assert_eq!(file.read_at(&mut out, 0).expect("reads"), 4);
    assert!(file.read_at(&mut out, 0).is_err());
    assert_eq!(file.read_full_at(&mut out, 0).expect("reads"), 6);
    files.add_read_fault(&path("a"), ReadFault::Flipped(8));
    file.read_full_at(&mut out, 0).expect("reads");
    assert_eq!(&out, b"accdef");
    files.add_read_fault(&path("a"), ReadFault::Unreadable(3..5));
    assert_eq!(file.read_full_at(&mut out[..3], 0).expect("reads"), 3);
    assert!(file.read_at(&mut out[..1], 4).is_err());
    files.flip_bit(&path("a"), 8);
    assert_eq!(read(&files.crash(Loss::All), "a"), text("accdef"), "at rest it is flipped for good");
}

#[test]
fn any_operation_may_be_the_one_that_fails_and_only_that_one() {
    let run = |nth: u64| {
        let files = SimulatedFiles::default();
        files.set_fault(Fault {
            operations_until_error: Some(nth),
            error_kind: Some(io::ErrorKind::StorageFull),
            ..Fault::default()
        });
        let result = (|| {
            let file = files.open(&path("a"), OpenMode::CREATE)?;
            file.write_all_at(b"x", 0)?;
            file.sync()?;
            files.rename(&path("a"), &path("b"))?;
            files.sync_dir(Path::new(DIR))?;
            files.list(Path::new(DIR))
        })();
        assert!(result.is_ok() || files.list(Path::new("/")).is_ok(), "one error and no more");
        result.map_err(|error| error.kind())
    };
    for nth in 0..6 {
        assert_eq!(run(nth), Err(io::ErrorKind::StorageFull));
    }
    assert_eq!(run(6), Ok(vec!["b".to_string()]));
}

#[test]
fn operations_and_the_moments_of_changes_are_kept() {
    let files = SimulatedFiles::default();
    files.keep_operations();
    files.keep_points();
    let file = durable(&files, "a", b"text");
    file.read_at(&mut [0; 4], 0).expect("reads");
    let lines: Vec<String> = files.operations().iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["create /d/a", "write /d/a 0+4", "sync /d/a", "sync_dir /d", "read /d/a 0+4"]);
    let points = files.take_points();
    let found: Vec<_> = points.iter().map(|point| read(&point.crash(Loss::None), "a")).collect();
    assert_eq!(found, [text(""), text("text"), text("text"), text("text")]);
    let found: Vec<_> = points.iter().map(|point| read(&point.crash(Loss::All), "a")).collect();
    assert_eq!(found, [None, None, None, None], "the directory was never synced before");
    assert_eq!(files.changes(), 4);
}

#[test]
fn a_fingerprint_tells_names_and_contents_apart() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b"text");
    let before = files.fingerprint();
    assert_eq!(files.crash(Loss::All).fingerprint(), before);
    assert_eq!(files.fork().fingerprint(), before);
    file.write_all_at(b"T", 0).expect("writes");
    assert_ne!(files.fingerprint(), before);
    file.write_all_at(b"t", 0).expect("writes");
    assert_eq!(files.fingerprint(), before);
    files.rename(&path("a"), &path("b")).expect("renames");
    assert_ne!(files.fingerprint(), before);
}

#[test]
fn what_is_sent_behind_arrives_wholly_in_part_or_not_yet() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let files = SimulatedFiles::default();
        let file = durable(&files, "a", &[b'.'; 1024]);
        let send = || {
            file.write_all_at(&[b'x'; 1024], 0).expect("writes");
            file.write_all_at(b"behind", 1024).expect("writes");
            file.write_behind(0, 1024).expect("sends");
        };
        crate::Simulation::new(seed, crate::MachineConfig::default()).enter(send);
        let left = read(&files.crash(Loss::All), "a").expect("is there");
        assert!(!left.contains("behind"), "what was not sent does not arrive");
        seen.insert(left.matches('x').count());
        assert_eq!(read(&files, "a"), text(&format!("{}behind", "x".repeat(1024))));
        file.sync().expect("syncs");
        assert_eq!(read(&files.crash(Loss::All), "a"), read(&files, "a"));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 512, 1024]);
}

#[test]
fn without_a_machine_what_is_sent_behind_is_as_unsure_as_before() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", b".");
    file.write_all_at(b"x", 0).expect("writes");
    file.write_behind(0, 1).expect("sends");
    assert_eq!(read(&files.crash(Loss::All), "a"), text("."));
    assert_eq!(read(&files.crash(Loss::None), "a"), text("x"));
}

#[test]
fn what_a_failed_write_behind_was_to_carry_is_lost_although_a_later_sync_succeeds() {
    let alone = Fault { writes_behind_until_error: Some(0), ..Fault::default() };
    for fault in [alone, Fault { syncs_until_error: Some(0), ..Fault::default() }] {
        let files = SimulatedFiles::default();
        let file = durable(&files, "a", b"1..");
        file.write_all_at(b"2", 1).expect("writes");
        files.set_fault(fault);
        assert!(file.write_behind(1, 1).is_err());
        file.write_all_at(b"3", 2).expect("writes");
        file.write_behind(2, 1).expect("sends again");
        file.sync().expect("syncs");
        assert_eq!(read(&files, "a"), text("123"), "the page cache shows it");
        assert_eq!(read(&files.crash(Loss::All), "a"), text("1.3"));
    }
}

#[test]
fn past_the_page_cache_whole_pages_are_read() {
    let files = SimulatedFiles::default();
    let file = durable(&files, "a", &[b'x'; 5000]).open_direct().expect("opens");
    let mut pages = [0; 8192];
    assert_eq!(file.read_at(&mut pages, 0).expect("reads"), 5000);
    assert_eq!(file.read_at(&mut pages[..4096], 4096).expect("reads"), 904);
    assert!(file.read_at(&mut pages[..100], 0).is_err());
    assert!(file.read_at(&mut pages[..4096], 100).is_err());
}

#[test]
fn a_file_is_removed_when_its_name_stands_for_another_or_for_none() {
    let files = SimulatedFiles::default();
    let (first, second) = (durable(&files, "a", b"1"), durable(&files, "b", b"2"));
    files.rename(&path("b"), &path("a")).expect("renames");
    assert!(first.is_removed().expect("looks") && !second.is_removed().expect("looks"));
    files.remove(&path("a")).expect("removes");
    assert!(second.is_removed().expect("looks"));
}
