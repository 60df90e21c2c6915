//! The kept corpus and a bounded number of seeded mutations of it through every case, on the stable compiler. More of them:
//! `FUZZ_MUTATIONS=100000`.
#![allow(clippy::unwrap_used, reason = "a test")]

use fuzz_cases::CASES;
use runtime::{Randomness, SeededRandomness};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Inputs do not grow beyond this.
const LENGTH_MAX: usize = 16 << 10;

fn corpus(case: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(case);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Changes an input a little, or joins it with another.
fn mutate(input: &[u8], other: &[u8], random: &SeededRandomness) -> Vec<u8> {
    const TELLING: [u8; 16] =
        [0, 1, 0x7f, 0x80, 0x90, 0x91, 0xa0, 0xc0, 0xc1, 0xc4, 0xc7, 0xcb, 0xcf, 0xd5, 0xdd, 0xff];
    let below = |bound: usize| (random.next_u64() % bound.max(1) as u64) as usize;
    let mut bytes = input.to_vec();
    for _ in 0..1 + below(4) {
        let at = below(bytes.len());
        match below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << below(8),
            1 if !bytes.is_empty() => bytes[at] = random.next_u64() as u8,
            2 if !bytes.is_empty() => bytes[at] = TELLING[below(TELLING.len())],
            3 => bytes.insert(at, TELLING[below(TELLING.len())]),
            4 if !bytes.is_empty() => _ = bytes.remove(at),
            5 => bytes.truncate(at),
            6 => {
                let to = (at + below(32)).min(bytes.len());
                bytes.extend_from_within(at.min(to)..to);
            }
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[below(other.len())..]);
            }
        }
    }
    bytes.truncate(LENGTH_MAX);
    bytes
}

/// Runs a case on an input; one that panics is kept beside the corpus and named.
fn run(name: &str, case: fn(&[u8]), input: &[u8], source: &str) {
    if catch_unwind(AssertUnwindSafe(|| case(input))).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{name}, {source}: panicked on {hex}");
    }
}

fn check(name: &str, mutations: usize) {
    let mutations = std::env::var("FUZZ_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(mutations);
    let case = CASES.iter().find(|(found, _)| *found == name).unwrap().1;
    let corpus = corpus(name);
    assert!(!corpus.is_empty());
    for (path, input) in &corpus {
        run(name, case, input, &path.display().to_string());
    }
    let random = SeededRandomness::new(7);
    for number in 0..mutations {
        let pick = || &corpus[(random.next_u64() % corpus.len() as u64) as usize].1;
        let (first, second) = (pick(), pick());
        run(name, case, &mutate(first, second, &random), &format!("mutation {number}"));
    }
}

#[test]
fn definitions() {
    check("definition", 1_000);
}

#[test]
fn files_of_the_disk_engine() {
    check("lsm_files", 20_000);
}

#[test]
fn packets() {
    check("packet", 50_000);
}

#[test]
fn commands_of_redis() {
    check("redis", 50_000);
}

#[test]
fn requests_of_memcached() {
    check("memcached", 2_000);
}

#[test]
fn commands_of_mysql() {
    check("mysql", 20_000);
}

#[test]
fn messages_of_postgres() {
    check("postgres", 20_000);
}

#[test]
fn sessions_of_sql() {
    check("session", 1_000);
}

#[test]
fn texts_of_statements() {
    check("statement", 3_000);
}

#[test]
fn requests_of_tyrant() {
    check("tyrant", 2_000);
}

#[test]
fn requests_of_few_rights() {
    check("few_rights", 3_000);
}

#[test]
fn rows() {
    check("row", 50_000);
}

#[test]
fn snapshots() {
    check("snapshot", 5_000);
}

#[test]
fn update_operations() {
    check("update_operations", 50_000);
}

#[test]
fn values() {
    check("value", 50_000);
}

#[test]
fn files_of_tarantools_disk_engine() {
    check("vinyl_files", 500);
}

#[test]
fn logs() {
    check("xlog_block", 5_000);
}
