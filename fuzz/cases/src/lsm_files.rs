//! Doubts that any bytes in place of a block, a run or a manifest of the disk engine are read or refused: never a panic, never more memory
//! than the file is worth, and a second start finds what the first found.
use runtime::{FileSystem, OpenMode, SimulatedFiles};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::lsm::{Block, LsmError, Manifest, Run, RunSource, Source, check_directory, key_hash};

const DIR: &str = "/db/lsm";
const FOOTER_BYTES: usize = 96;

/// What a fuzzer does not guess: the right checksum in front.
fn summed(content: &[u8]) -> Vec<u8> {
    [&crc32c::crc32c(content).to_le_bytes(), content].concat()
}

fn block(stored: &[u8], key: &[u8]) {
    let Ok(block) = Block::decode(stored) else { return };
    for at in 0..block.len() {
        let entry = block.entry(at);
        assert!(block.lower_bound(entry.key) <= block.len());
    }
    assert!(block.lower_bound(key) <= block.len());
}

fn made_of(name: &str, bytes: &[u8]) -> SimulatedFiles {
    let files = SimulatedFiles::default();
    let file = files.open(&Path::new(DIR).join(name), OpenMode::CREATE).expect("files are simulated");
    file.write_all_at(bytes, 0).expect("files are simulated");
    files
}

/// Puts right the checksums of footer and tail.
fn put_right(bytes: &mut [u8]) {
    let Some(footer_at) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let (content, footer) = bytes.split_at_mut(footer_at);
    let fences_at = u64::from_le_bytes(footer[64..72].try_into().expect("eight bytes"));
    if let Some(tail) = usize::try_from(fences_at).ok().and_then(|at| content.get(at..)) {
        footer[88..92].copy_from_slice(&crc32c::crc32c(tail).to_le_bytes());
    }
    let checksum = crc32c::crc32c(&footer[..92]);
    footer[92..].copy_from_slice(&checksum.to_le_bytes());
}

fn run_file(bytes: &[u8], key: &[u8]) {
    let files = made_of("00000000000000000002.run", bytes);
    check_directory(&files, Path::new(DIR)).expect("simulated reads succeed");
    let Ok(run) = Run::open(&files, Path::new(DIR), 2) else { return };
    let run = Arc::new(run);
    for at in 0..run.block_count() {
        assert_eq!(run.find_block(run.first_key(at)), Some(at));
        let _ = run.read_block(at);
    }
    run.estimate(key, None);
    run.estimate(b"", Some(key));
    run.may_contain(key_hash(key));
    let mut left = run.entries() + 1;
    if let Ok(mut source) = RunSource::new(Arc::clone(&run), key, Some(run.max_key().to_vec())) {
        while source.entry().is_some() && left > 0 && source.advance().is_ok() {
            left -= 1;
        }
    }
    assert!(left > 0, "a source ends");
}

fn manifest(bytes: &[u8]) {
    let files = made_of("manifest-00000000000000000001", bytes);
    check_directory(&files, Path::new(DIR)).expect("simulated reads succeed");
    let open = || Manifest::open(Arc::new(files.clone()), Path::new(DIR)).map(|(_, trees)| trees);
    match open() {
        // The first start has cut what was torn.
        Ok(trees) => assert_eq!(open().expect("it was good before"), trees),
        Err(LsmError::Corrupt { file, offset, .. }) => {
            assert!(file == PathBuf::from(DIR).join("manifest-00000000000000000001") && offset <= bytes.len() as u64);
        }
        Err(error) => panic!("simulated files fail: {error}"),
    }
}

/// Items as a confirmed record behind a good header.
fn recorded(items: &[u8]) -> Vec<u8> {
    let header = [b"LYCOSMAN".as_slice(), &1u32.to_le_bytes(), &1u64.to_le_bytes()].concat();
    let mut bytes = [header.as_slice(), &crc32c::crc32c(&header).to_le_bytes()].concat();
    let offset = (bytes.len() as u64).to_le_bytes();
    let length = (items.len() as u32).to_le_bytes();
    let checksum = crc32c::crc32c(&[&offset, &length[..], items].concat()).to_le_bytes();
    let mark = [b"LYCODONE".as_slice(), &offset, &checksum].concat();
    for part in [&length[..], &checksum, items, &mark, &crc32c::crc32c(&mark).to_le_bytes()] {
        bytes.extend_from_slice(part);
    }
    bytes
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let (key, _) = bytes.split_at(bytes.len().min(9));
    match choice % 6 {
        0 => block(bytes, key),
        1 => block(&summed(bytes), key),
        2 => run_file(bytes, key),
        3 => {
            let mut bytes = bytes.to_vec();
            put_right(&mut bytes);
            run_file(&bytes, key);
        }
        4 => manifest(bytes),
        _ => manifest(&recorded(bytes)),
    }
}
