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
use tuple::msgpack::Reader;

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
    let spaces = [SCHEMA_ID, SPACE_ID, INDEX_ID, SEQUENCE_ID, FUNC_ID, USER_ID, PRIV_ID, CLUSTER_ID, SPACE];
    let mut all = Rows::new();
    for id in spaces {
        let Some(space) = database.catalog.space(id) else { continue };
        let rows = all.entry(id).or_default();
        space.store.borrow().scan(0, IteratorKind::All, &[], 0, |row| {
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
    seed.execute(SPACE, Operation::Update { index_id: 0, key: &Seed::row(&[id.into()]), ops: &ops, index_base: 0 })
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

/// What a start on damage led to, if it is neither of the two good ends.
fn verdict(damaged: &Image, name: &str, byte: usize, right: &[&Rows]) -> Option<String> {
    match open(damaged, false) {
        Ok(database) => {
            let found = rows(&database);
            let is_right = right.iter().any(|rows| **rows == found);
            (!is_right).then(|| {
                format!("byte {byte}: started with {} rows, wrong ones", found.values().map(Vec::len).sum::<usize>())
            })
        }
        Err(message) => {
            // A block's checksum covers it whole, so the damage is told with the block's beginning.
            (!names_the_place(&message, name, byte)).then(|| format!("byte {byte}: refused, but where? {message}"))
        }
    }
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
    let (image, expected) = updated_around_a_snapshot();
    let name = newest(&image, ".snap");
    let start = blocks(&image[&name])[0].start;
    // One checksum covers a block: within it some bytes stand for all.
    let edges = blocks(&image[&name]);
    let is_edge =
        |byte: usize| edges.iter().any(|block| byte.abs_diff(block.start) < 64 || byte.abs_diff(block.end) < 64);
    let offsets =
        flips(&image[&name]).into_iter().filter(|byte| *byte >= start && (is_edge(*byte) || byte.is_multiple_of(7)));
    let wrong: Vec<String> =
        offsets.filter_map(|byte| verdict(&flipped(&image, &name, byte), &name, byte, &[&expected])).collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// No checksum covers a header: a start on a damaged one finds the right rows, or is refused in whatever words.
fn check_header_flips(extension: &str) {
    let (image, expected) = updated_around_a_snapshot();
    let name = newest(&image, extension);
    let start = blocks(&image[&name])[0].start;
    for byte in 0..start {
        for bit in 0..8 {
            let mut damaged = image.clone();
            damaged.get_mut(&name).unwrap()[byte] ^= 1 << bit;
            if let Ok(database) = open(&damaged, false) {
                let shown = String::from_utf8_lossy(&damaged[&name][..start]).into_owned();
                let is_right = rows(&database) == expected;
                assert!(is_right, "byte {byte}, bit {bit} of {name}: wrong rows\n{shown}");
            }
        }
    }
}

#[test]
fn a_byte_flipped_in_the_header_of_a_snapshot_changes_no_row() {
    check_header_flips(".snap");
}

#[test]
fn a_byte_flipped_in_the_header_of_a_log_changes_no_row() {
    check_header_flips(".xlog");
}

/// A log of one transaction that makes a space and three behind it that each change a row of their own. Returns the rows without the last
/// one, too.
fn small_log(is_closed: bool) -> (Image, Rows, Rows) {
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
    let before = rows(seed.database());
    add(&seed, 3, 1);
    let expected = rows(seed.database());
    if is_closed {
        seed.close().unwrap();
    }
    (take(&files), expected, before)
}

#[test]
fn a_byte_flipped_in_a_completed_log_is_found() {
    let (image, expected, _) = small_log(true);
    let name = newest(&image, ".xlog");
    assert_eq!(rows(&open(&image, false).unwrap()), expected);
    let wrong: Vec<String> = flips(&image[&name])
        .into_iter()
        .filter_map(|byte| verdict(&flipped(&image, &name, byte), &name, byte, &[&expected]))
        .collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_byte_flipped_in_a_log_that_a_crash_left_is_found_or_looks_torn_at_the_end() {
    let (image, expected, before) = small_log(false);
    let name = newest(&image, ".xlog");
    assert_eq!(rows(&open(&image, false).unwrap()), expected);
    let groups: Vec<Range<usize>> = blocks(&image[&name]);
    // The last block with rows: the fourth, behind the file's header and the filler up to the first page.
    let last = groups
        .iter()
        .rev()
        .find(|block| image[&name][block.start + FIXHEADER_BYTES..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let last = last.unwrap().clone();
    let mut wrong = Vec::new();
    for byte in flips(&image[&name]) {
        let damaged = flipped(&image, &name, byte);
        // Nothing behind the last group says that it was durable: it may be cut, and then that is told.
        if !last.contains(&byte) {
            wrong.extend(verdict(&damaged, &name, byte, &[&expected]));
            continue;
        }
        wrong.extend(verdict(&damaged, &name, byte, &[&expected, &before]));
        if let Ok(database) = open(&damaged, false)
            && rows(&database) == before
        {
            let cut = database.recovery_report().unwrap().cut.expect("what is lost is told");
            assert_eq!(
                (cut.file.file_name().unwrap().to_str().unwrap(), cut.offset as usize),
                (name.as_str(), last.start)
            );
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn by_force_only_the_damaged_transaction_is_lost_and_that_is_told() {
    let (image, expected, _) = small_log(true);
    let name = newest(&image, ".xlog");
    let groups: Vec<Range<usize>> = blocks(&image[&name]);
    // Behind the first page and the transaction that makes the space.
    for group in groups.iter().skip(2) {
        let damaged = flipped(&image, &name, group.start + 40);
        let refusal = open(&damaged, false).map(|_| ()).unwrap_err();
        assert!(refusal.contains("force_recovery would lose"), "{refusal}");
        let database = open(&damaged, true).unwrap();
        let report = database.recovery_report().unwrap();
        assert_eq!(report.skipped.len(), 1, "{report}");
        assert_eq!(report.skipped[0].1 as usize, group.start);
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

    let server = Server::start_in(dir.path(), &["--force-recovery"]);
    server.connect().ping();
    assert!(names_the_place(&server.log(), name, offset as usize), "{}", server.log());
}
