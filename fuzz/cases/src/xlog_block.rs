//! Doubts that any bytes in place of a log or snapshot are read, cut or refused: never a panic, never more memory than the file is worth, and
//! never rows on the second start that the first did not have.
use runtime::{FileSystem, OpenMode, SimulatedFiles};
use std::path::{Path, PathBuf};
use wal::{Vclock, XlogReader, file_name, recover};

const DIR: &str = "/db";
const HEADER: &[u8] = b"XLOG\n0.13\nVersion: 2.6.0\nInstance: c6ad95d7-aa48-48de-81b2-7d621374567a\nVClock: {}\n\n";

/// A block with a good header and checksum around any content: what a fuzzer does not guess.
fn block(magic: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![0xd5, 0xba, 0x0b, magic, 0xce];
    out.extend_from_slice(&(content.len() as u32).to_be_bytes());
    out.extend_from_slice(&[0, 0xce]);
    // Initial value 0, no inversion at the end.
    out.extend_from_slice(&(!crc32c::crc32c_append(!0, content)).to_be_bytes());
    // A string of zeros up to 19 bytes.
    out.extend_from_slice(&[0xa3, 0, 0, 0]);
    out.extend_from_slice(content);
    out
}

/// Lsns that recovery finds; `None` if it refuses.
fn recovered(files: &SimulatedFiles, force: bool) -> Option<Vec<i64>> {
    let mut lsns = Vec::new();
    let report = recover(files, Path::new(DIR), &Vclock::default(), force, |row| {
        lsns.push(row.header.lsn.0);
        Ok(())
    });
    report.ok().map(|report| {
        assert_eq!(report.rows, lsns.len() as u64);
        lsns
    })
}

fn made_of(path: &Path, parts: [&[u8]; 2]) -> SimulatedFiles {
    let files = SimulatedFiles::default();
    let file = files.open(path, OpenMode::CREATE).expect("files are simulated");
    file.write_all_at(&parts.concat(), 0).expect("files are simulated");
    files
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    // Behind a good header in most cases, so that blocks are reached.
    let header: &[u8] = if choice & 3 == 0 { b"" } else { HEADER };
    let bytes = match choice >> 6 {
        0 => bytes.to_vec(),
        1 => block(0xba, bytes),
        2 => block(0xab, bytes),
        // Two, so that the first has something behind it.
        _ => {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            [block(0xab, first), block(0xab, second)].concat()
        }
    };
    let path = PathBuf::from(DIR).join(file_name(0, "xlog"));
    let length = (header.len() + bytes.len()) as u64;
    let files = made_of(&path, [header, &bytes]);
    if let Ok(mut reader) = XlogReader::open(&files, &path) {
        let mut rows = 0u64;
        let outcome = reader.for_each_row(|_, offset| {
            rows += 1;
            assert!(offset < length);
        });
        if let Err(damage) = outcome {
            assert!(damage.offset <= length);
        }
    }
    let force = choice & 4 != 0;
    let first = recovered(&files, force);
    if let Some(first) = first {
        // The first start has cut and completed the file: the second finds the same, without force.
        if !force {
            assert_eq!(recovered(&files, false), Some(first));
        }
    }
}
