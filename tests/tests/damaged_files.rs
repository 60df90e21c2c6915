//! Files cut short and bytes flipped: every start either finds the right rows or is refused, naming file and offset.
//!
//! In this process, over simulated files, so that thousands of starts take seconds. What a single block's reader does with damage is
//! tested in `crates/wal/tests`; here the whole database starts on it.
#![allow(clippy::unwrap_used, reason = "a test")]

use database::{
    CLUSTER_ID, Database, FUNC_ID, INDEX_ID, Operation, PRIV_ID, SCHEMA_ID, SEQUENCE_ID, SPACE_ID, USER_ID,
};
use lycosa_tests::{Field, Seed, Server, open_database};
use runtime::{FileSystem, OpenMode, SimulatedFiles, SystemFiles};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::IteratorKind;
use storage::lsm::{Edit, Entry, EntryKind, LSM_DIR, Manifest, Run, RunOptions, RunWriter};
use tuple::msgpack::Reader;
use tuple::{IndexId, Lsn, SpaceId};

const DIR: &str = "/db";
const SPACE: u32 = 512;
const EOF_MAGIC: [u8; 4] = [0xd5, 0x10, 0xad, 0xed];
const FIXHEADER_BYTES: usize = 19;
/// A log that is still being written has at most this much prepared behind its rows.
const WAL_MAX: u64 = 32 << 10;
/// Of the zeros that fill blocks, every so many bytes are tried.
const PADDING_STEP: usize = 61;

/// The files of a directory.
type Image = BTreeMap<String, Vec<u8>>;
/// Rows by space.
type Rows = BTreeMap<u32, Vec<Vec<u8>>>;

fn take(files: &SimulatedFiles) -> Image {
    let dir = Path::new(DIR);
    let names = files.list(dir).unwrap().into_iter().filter(|name| !name.ends_with(".lock"));
    names
        .map(|name| {
            let file = files.open(&dir.join(&name), OpenMode::READ).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_full_at(&mut bytes, 0).unwrap();
            (name, bytes)
        })
        .collect()
}

fn give(image: &Image) -> SimulatedFiles {
    let files = SimulatedFiles::default();
    for (name, bytes) in image {
        files.open(&PathBuf::from(DIR).join(name), OpenMode::CREATE).unwrap().write_all_at(bytes, 0).unwrap();
    }
    files
}

fn newest(image: &Image, extension: &str) -> String {
    image.keys().rfind(|name| name.ends_with(extension)).unwrap().clone()
}

fn open(image: &Image, force: bool) -> Result<std::rc::Rc<Database>, String> {
    open_database(Arc::new(give(image)), Path::new(DIR), |config| config.force_recovery = force)
        .map_err(|error| error.message().to_string())
}

fn rows(database: &Database) -> Rows {
    let spaces = [SCHEMA_ID, SPACE_ID, INDEX_ID, SEQUENCE_ID, FUNC_ID, USER_ID, PRIV_ID, CLUSTER_ID, SpaceId(SPACE)];
    let mut all = Rows::new();
    for id in spaces {
        let Some(space) = database.catalog.space(id) else { continue };
        let rows = all.entry(id.0).or_default();
        let Some(kept) = space.rows.memory() else { continue };
        kept.borrow().scan(IndexId::PRIMARY, IteratorKind::All, &[], 0, |row| {
            rows.push(row.to_vec());
            true
        });
    }
    all
}

/// A message that tells where the damage is: the file, and a byte of it that is not behind `byte_max`.
fn names_the_place(message: &str, file: &str, byte_max: usize) -> bool {
    let offset = message.split("byte ").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    });
    message.contains(file) && offset.is_some_and(|offset| offset <= byte_max)
}

/// Blocks of a file: where each begins and ends.
fn blocks(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut at = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap() + 2;
    let mut found = Vec::new();
    while at < bytes.len() && bytes[at..at + 4] != EOF_MAGIC {
        let length = Reader::new(&bytes[at + 4..]).read_uint().unwrap() as usize;
        let end = at + FIXHEADER_BYTES + length;
        found.push(at..end);
        at = end;
    }
    found
}

fn create(seed: &Seed) {
    seed.create_space(SPACE, "stock").unwrap();
    seed.create_index(SPACE, 0, "primary", "tree", &[(0, "unsigned", None)]).unwrap();
}

fn add(seed: &Seed, id: u64, difference: u64) {
    let operation = Seed::row(&["+".into(), 1.into(), difference.into()]);
    let ops = Seed::row(&[Field::Raw(&operation)]);
    seed.execute(
        SPACE,
        Operation::Update { index_id: IndexId::PRIMARY, key: &Seed::row(&[id.into()]), ops: &ops, index_base: 0 },
    )
    .unwrap();
}

#[test]
fn a_snapshot_that_was_cut_is_refused_wherever_it_was_cut() {
    let files = SimulatedFiles::default();
    let seed = Seed::open(Arc::new(files.clone()), Path::new(DIR)).unwrap();
    create(&seed);
    for id in 0..4000 {
        // Not easily compressed, so that there are several blocks of some size.
        let text: String = (0..12).map(|at| char::from(b'a' + (id * 7 + at * id * 31) as u8 % 26)).collect();
        seed.replace(SPACE, &[id.into(), (id * id).into(), text.repeat(8).as_str().into()]).unwrap();
    }
    seed.checkpoint().unwrap();
    let expected = rows(seed.database());
    seed.close().unwrap();
    let image = take(&files);
    let name = newest(&image, ".snap");
    let whole = &image[&name];
    assert_eq!(rows(&open(&image, false).unwrap()), expected);

    let blocks = blocks(whole);
    assert!(blocks.len() >= 4, "{} blocks", blocks.len());
    let mut cuts = vec![0, 1, 5, blocks[0].start / 2, blocks[0].start - 1];
    for block in &blocks {
        let middle = (block.start + block.end) / 2;
        let inside = [block.start + 1, block.start + 4, block.start + 18, block.start + FIXHEADER_BYTES, middle];
        cuts.extend(inside.into_iter().chain([block.start, block.end - 1, block.end]));
    }
    cuts.extend((1..=4).map(|left| whole.len() - left));
    for cut in cuts {
        let mut damaged = image.clone();
        damaged.get_mut(&name).unwrap().truncate(cut);
        match open(&damaged, false) {
            Ok(_) => panic!("cut at {cut} of {}: accepted", whole.len()),
            Err(message) => assert!(names_the_place(&message, &name, cut), "cut at {cut}: {message}"),
        }
    }
}

/// Offsets worth a flip: all of them, but only some of long runs of zeros.
fn flips(bytes: &[u8]) -> Vec<usize> {
    let is_padding =
        |at: usize| at >= 32 && at + 32 < bytes.len() && bytes[at - 32..at + 32].iter().all(|byte| *byte == 0);
    (0..bytes.len()).filter(|at| !is_padding(*at) || at % PADDING_STEP == 0).collect()
}

/// What a start on damage led to, if it was not refused with the place.
fn verdict(damaged: &Image, name: &str, byte: usize) -> Option<String> {
    match open(damaged, false) {
        Ok(database) if is_cut_there(&database, name, byte) => None,
        Ok(_) => Some(format!("byte {byte}: accepted")),
        Err(message) => {
            // A block's checksum covers it whole, so the damage is told with the block's beginning.
            (!names_the_place(&message, name, byte)).then(|| format!("byte {byte}: refused, but where? {message}"))
        }
    }
}

/// True if a start took a flip in the header of prepared space for a group that was torn there, cut it and said so: no crash tells the two apart,
/// and nobody was promised what is there.
fn is_cut_there(database: &Database, name: &str, byte: usize) -> bool {
    let cut = database.recovery_report().and_then(|report| report.cut);
    cut.is_some_and(|cut| {
        let start = cut.offset as usize;
        cut.file.ends_with(name) && (start..start + FIXHEADER_BYTES).contains(&byte)
    })
}

fn flipped(image: &Image, name: &str, byte: usize) -> Image {
    let mut damaged = image.clone();
    damaged.get_mut(name).unwrap()[byte] ^= 1 << (byte % 8);
    damaged
}

/// A snapshot with updates before and behind it whose repetition would show.
fn updated_around_a_snapshot() -> (Image, Rows) {
    let files = SimulatedFiles::default();
    let seed = Seed::open(Arc::new(files.clone()), Path::new(DIR)).unwrap();
    create(&seed);
    for id in 0..3 {
        seed.replace(SPACE, &[id.into(), 100.into()]).unwrap();
        add(&seed, id, 1);
    }
    seed.checkpoint().unwrap();
    add(&seed, 1, 10);
    let expected = rows(seed.database());
    seed.close().unwrap();
    (take(&files), expected)
}

#[test]
fn a_byte_flipped_in_the_blocks_of_a_snapshot_is_found() {
    let (image, _) = updated_around_a_snapshot();
    let name = newest(&image, ".snap");
    let start = blocks(&image[&name])[0].start;
    // One checksum covers a block: within it some bytes stand for all.
    let edges = blocks(&image[&name]);
    let is_edge =
        |byte: usize| edges.iter().any(|block| byte.abs_diff(block.start) < 64 || byte.abs_diff(block.end) < 64);
    let offsets =
        flips(&image[&name]).into_iter().filter(|byte| *byte >= start && (is_edge(*byte) || byte.is_multiple_of(7)));
    let wrong: Vec<String> = offsets.filter_map(|byte| verdict(&flipped(&image, &name, byte), &name, byte)).collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every so many bits are tried where a database is opened for each: `FLIP_STRIDE`, or a few thousand in all.
fn stride() -> usize {
    std::env::var("FLIP_STRIDE").ok().and_then(|text| text.parse().ok()).unwrap_or(307)
}

/// Rows of the test's space, by key.
fn stock(database: &Database) -> Vec<u64> {
    let key = |row: &Vec<u8>| {
        let mut reader = Reader::new(row);
        reader.read_array().and_then(|_| reader.read_uint()).unwrap()
    };
    rows(database).get(&SPACE).map(|rows| rows.iter().map(key).collect()).unwrap_or_default()
}

/// Keys of the test's space that an announcement names.
fn announced_keys(announcement: &str) -> Vec<u64> {
    let keys = announcement.split("stock[").skip(1);
    keys.map(|rest| rest.split([',', ']']).next().unwrap().parse().unwrap()).collect()
}

#[test]
fn every_flip_is_refused_and_by_force_exactly_what_was_announced_is_lost() {
    let files = SimulatedFiles::default();
    let change = |config: &mut database::Config| config.wal_max_size = WAL_MAX;
    let seed = Seed::open_with(Arc::new(files.clone()), Path::new(DIR), change).unwrap();
    create(&seed);
    // Large ones, so that each has a block of the snapshot.
    let large = "before".repeat(25_000);
    (1..=3).for_each(|id| seed.replace(SPACE, &[id.into(), large.as_str().into()]).unwrap());
    seed.checkpoint().unwrap();
    (4..=5).for_each(|id| seed.replace(SPACE, &[id.into(), "behind".into()]).unwrap());
    // Not closed: the newest log is as a crash leaves it.
    let image = take(&files);
    let all = stock(&open(&image, false).unwrap());
    assert_eq!(all, [1, 2, 3, 4, 5]);
    let older = image.keys().find(|name| name.ends_with(".snap")).unwrap();
    let (snapshot, log) = (newest(&image, ".snap"), newest(&image, ".xlog"));
    assert_ne!(*older, snapshot);
    let (mut flips, mut lost_rows, mut hopeless) = (0, 0, 0);
    for name in [&snapshot, &log] {
        for bit in (0..image[name].len() * 8).step_by(stride()) {
            let mut damaged = image.clone();
            damaged.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let refusal = match open(&damaged, false) {
                Err(refusal) => refusal,
                Ok(database) => {
                    assert!(is_cut_there(&database, name, bit / 8), "bit {bit} of {name}: accepted");
                    assert_eq!(stock(&database), all, "bit {bit} of {name}");
                    continue;
                }
            };
            assert!(names_the_place(&refusal, name, bit / 8), "bit {bit}: {refusal}");
            assert!(refusal.contains(&format!("bit {} of byte {} is flipped", bit % 8, bit / 8)), "{refusal}");
            if *name == snapshot {
                assert!(refusal.contains(&format!("{older} and the logs behind it are good")), "{refusal}");
            }
            match open(&damaged, true) {
                Ok(database) => {
                    let (_, announced) = refusal.split_once("force_recovery would lose ").unwrap();
                    let announced = announced_keys(announced);
                    let missing: Vec<u64> = all.iter().copied().filter(|id| !stock(&database).contains(id)).collect();
                    assert_eq!(missing, announced, "bit {bit} of {name}: {refusal}");
                    lost_rows += missing.len();
                }
                // Without the rows of the system there is no database, and that is said before.
                Err(error) => {
                    assert_eq!(error, refusal);
                    assert!(error.contains("force_recovery would not help"), "bit {bit} of {name}: {error}");
                    hopeless += 1;
                }
            }
            flips += 1;
        }
    }
    println!(
        "{flips} flips refused; by force {lost_rows} rows lost in all, each announced; {hopeless} refused by force, too"
    );
    assert!(lost_rows > 0 && hopeless > 0 && flips > 2 * hopeless);
    // As the refusal advises.
    let mut advised = image.clone();
    advised.get_mut(&snapshot).unwrap()[1000] ^= 1;
    advised.remove(&snapshot);
    assert_eq!(stock(&open(&advised, false).unwrap()), all);
}

/// Every bit of a header is covered by its checksum, or is the checksum.
fn check_header_flips(extension: &str) {
    let (image, _) = updated_around_a_snapshot();
    let name = newest(&image, extension);
    let start = blocks(&image[&name])[0].start;
    for byte in 0..start {
        for bit in 0..8 {
            let mut damaged = image.clone();
            damaged.get_mut(&name).unwrap()[byte] ^= 1 << bit;
            let shown = String::from_utf8_lossy(&damaged[&name][..start]).into_owned();
            let Err(refusal) = open(&damaged, false).map(|_| ()) else {
                panic!("byte {byte}, bit {bit} of {name}: accepted\n{shown}");
            };
            assert!(refusal.contains(&format!("bit {bit} of byte {byte} is flipped")), "{refusal}\n{shown}");
        }
    }
}

#[test]
fn every_flipped_bit_in_the_header_of_a_snapshot_is_found() {
    check_header_flips(".snap");
}

#[test]
fn every_flipped_bit_in_the_header_of_a_log_is_found() {
    check_header_flips(".xlog");
}

/// A log of one transaction that makes a space and three behind it that each change a row of their own.
fn small_log(is_closed: bool) -> (Image, Rows) {
    let files = SimulatedFiles::default();
    let change = |config: &mut database::Config| config.wal_max_size = WAL_MAX;
    let seed = Seed::open_with(Arc::new(files.clone()), Path::new(DIR), change).unwrap();
    seed.atomically(|seed| {
        create(seed);
        (1..=3).try_for_each(|id| seed.replace(SPACE, &[id.into(), 100.into()]))
    })
    .unwrap();
    add(&seed, 1, 1);
    add(&seed, 2, 1);
    add(&seed, 3, 1);
    let expected = rows(seed.database());
    if is_closed {
        seed.close().unwrap();
    }
    (take(&files), expected)
}

#[test]
fn a_byte_flipped_in_a_completed_log_is_found() {
    let (image, expected) = small_log(true);
    let name = newest(&image, ".xlog");
    assert_eq!(rows(&open(&image, false).unwrap()), expected);
    let wrong: Vec<String> = flips(&image[&name])
        .into_iter()
        .filter_map(|byte| verdict(&flipped(&image, &name, byte), &name, byte))
        .collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_byte_flipped_in_a_log_that_a_crash_left_is_found_although_it_may_be_torn() {
    let (image, expected) = small_log(false);
    let name = newest(&image, ".xlog");
    assert_eq!(rows(&open(&image, false).unwrap()), expected);
    // Nothing behind the last group says that it was durable; but no torn write differs by one bit.
    let wrong: Vec<String> = flips(&image[&name])
        .into_iter()
        .filter_map(|byte| verdict(&flipped(&image, &name, byte), &name, byte))
        .collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_last_group_that_is_not_there_as_a_whole_is_cut_and_that_is_told() {
    let (image, expected) = small_log(false);
    let name = newest(&image, ".xlog");
    let groups: Vec<Range<usize>> = blocks(&image[&name]);
    let last = groups
        .iter()
        .rev()
        .find(|block| image[&name][block.start + FIXHEADER_BYTES..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let last = last.unwrap().clone();
    let mut torn = image.clone();
    torn.get_mut(&name).unwrap()[last.start + 40..last.end].fill(0);
    let database = open(&torn, false).unwrap();
    assert_ne!(rows(&database), expected);
    let cut = database.recovery_report().unwrap().cut.expect("what is cut is told");
    assert_eq!((cut.file.file_name().unwrap().to_str().unwrap(), cut.offset as usize), (name.as_str(), last.start));
}

#[test]
fn by_force_only_the_damaged_transaction_is_lost_and_that_is_told() {
    let (image, expected) = small_log(true);
    let name = newest(&image, ".xlog");
    let groups: Vec<Range<usize>> = blocks(&image[&name]);
    // Behind the first page and the transaction that makes the space.
    for group in groups.iter().skip(2) {
        let damaged = flipped(&image, &name, group.start + 40);
        let refusal = open(&damaged, false).map(|_| ()).unwrap_err();
        assert!(refusal.contains("force_recovery would lose"), "{refusal}");
        let database = open(&damaged, true).unwrap();
        let report = database.recovery_report().unwrap();
        assert_eq!(report.losses.len(), 1, "{report}");
        assert_eq!(report.losses[0].offset as usize, group.start);
        let announced = refusal.split_once("force_recovery would lose ").unwrap().1;
        assert_eq!(announced, wal::announcement(&report.losses));
        assert!(announced.contains("replace stock["), "{announced}");
        let found = rows(&database);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        let lost = found[&SPACE].iter().zip(&expected[&SPACE]).filter(|(found, expected)| found != expected).count();
        assert_eq!(lost, 1);
    }
}

#[test]
fn the_binary_refuses_damage_in_words_and_starts_on_it_by_force() {
    let dir = tempfile::TempDir::new().unwrap();
    let seed = Seed::open(Arc::new(SystemFiles), dir.path()).unwrap();
    create(&seed);
    (1..=5).for_each(|id| seed.replace(SPACE, &[id.into()]).unwrap());
    seed.close().unwrap();
    Server::start_in(dir.path(), &[]).connect().ping();

    let name = "00000000000000000000.xlog";
    let file = SystemFiles.open(&dir.path().join(name), OpenMode::MODIFY).unwrap();
    let offset = 4 * 4096;
    file.write_all_at(b"XX", offset + 100).unwrap();
    let refusal = Server::refused_in(dir.path(), &[]);
    assert!(names_the_place(&refusal, name, offset as usize), "{refusal}");
    assert!(refusal.contains("force_recovery would lose"), "{refusal}");

    let check = |option: &[&str]| {
        std::process::Command::new(lycosa_tests::binary()).arg("check").arg(dir.path()).args(option).output().unwrap()
    };
    let told = check(&[]);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(!told.status.success() && names_the_place(&text, name, offset as usize), "{text}");
    assert!(text.contains("concerned: the row with lsn 4"), "{text}");
    let json = String::from_utf8_lossy(&check(&["--json"]).stdout).into_owned();
    assert!(json.contains("\"lsn_first\":4") && json.contains("\"offset\":16384"), "{json}");
    let lost = refusal.split_once("force_recovery would lose ").unwrap().1.lines().next().unwrap().to_string();

    let server = Server::start_in(dir.path(), &["--force-recovery"]);
    assert!(server.log().contains(&format!("lost {lost}")), "{lost}: {}", server.log());
    server.connect().ping();
    assert!(names_the_place(&server.log(), name, offset as usize), "{}", server.log());
}

#[test]
fn the_binary_checks_the_files_of_the_disk_engine() {
    let dir = tempfile::TempDir::new().unwrap();
    let lsm = dir.path().join(LSM_DIR);
    let files: Arc<dyn FileSystem> = Arc::new(SystemFiles);
    let (mut manifest, _) = Manifest::open(Arc::clone(&files), &lsm).unwrap();
    manifest
        .append(&[Edit::CreateTree {
            tree_id: 1,
            space_id: SpaceId(512),
            index_id: IndexId::PRIMARY,
            created_lsn: Lsn(4),
        }])
        .unwrap();
    for run_id in [2, 3] {
        let mut writer = RunWriter::create(Arc::clone(&files), &lsm, run_id, RunOptions::default()).unwrap();
        (0..1000u16)
            .map(u16::to_be_bytes)
            .try_for_each(|key| writer.add(Entry { key: &key, kind: EntryKind::Put, value: &key.repeat(20) }, 2))
            .unwrap();
        writer.finish().unwrap();
    }
    manifest.append(&[Edit::Dumped { tree_id: 1, dumped_lsn: Lsn(9), run_id: Some(2), ranges: vec![0] }]).unwrap();
    let check = |option: &[&str]| {
        let told = std::process::Command::new(lycosa_tests::binary())
            .arg("check")
            .arg(dir.path())
            .args(option)
            .output()
            .unwrap();
        (told.status.success(), String::from_utf8_lossy(&told.stdout).into_owned())
    };
    let (is_good, text) = check(&[]);
    assert!(is_good && text.contains("manifest-00000000000000000001: 2 records, good"), "{text}");
    assert!(text.contains("00000000000000000002.run: 1000 entries, good"), "{text}");
    assert!(text.contains("00000000000000000003.run: left by a crash"), "{text}");

    let name = "00000000000000000002.run";
    let offset = Run::open(&*files, &lsm, 2).unwrap().block_extent(1).0;
    let file = files.open(&lsm.join(name), OpenMode::MODIFY).unwrap();
    file.write_all_at(b"XX", offset + 20).unwrap();
    let (is_good, text) = check(&[]);
    assert!(!is_good && names_the_place(&text, name, offset as usize), "{text}");
    let (_, json) = check(&["--json"]);
    assert!(json.contains(&format!("\"offset\":{offset}")) && json.contains("\"orphan\":true"), "{json}");
}
