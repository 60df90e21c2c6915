//! Doubts that any bytes in place of a snapshot, header included, are read or refused, and that what a look finds good a second look
//! finds good as well: never a panic, never more memory than the file is worth.

use runtime::{FileSystem, OpenMode, SimulatedFiles};
use std::path::Path;
use wal::{Refusal, Replay, Row, XlogReader, check_file};

/// Counts rows, and is shown those that are lost.
struct Counted(u64);

impl Replay for Counted {
    fn apply(&mut self, _row: &Row<'_>) -> Result<(), Refusal> {
        self.0 += 1;
        Ok(())
    }
}

/// One case.
pub fn run(input: &[u8]) {
    let files = SimulatedFiles::default();
    // The first byte chooses what the file is taken for.
    let Some((&choice, bytes)) = input.split_first() else { return };
    let is_log = choice & 1 == 1;
    let path = Path::new(if is_log { "/db/00000000000000000000.xlog" } else { "/db/00000000000000000000.snap" });
    let file = files.open(path, OpenMode::CREATE).expect("files are simulated");
    file.write_all_at(bytes, 0).expect("files are simulated");
    let mut counted = Counted(0);
    let report = check_file(&files, path, &mut counted).expect("no file of these cannot be looked at");
    assert_eq!(report.rows, counted.0);
    let len = bytes.len() as u64;
    for loss in &report.losses {
        assert!(loss.offset <= len);
        assert!(!loss.what.is_empty() && !loss.lost.to_string().is_empty());
    }
    let opened = XlogReader::open(&files, path);
    let is_whole = report.losses.is_empty() && report.torn.is_none();
    match opened {
        Ok(mut reader) => {
            let mut rows = 0;
            let outcome = reader.for_each_row(|_, _| rows += 1);
            assert_eq!(outcome.is_ok() && (is_log || outcome == Ok(true)), is_whole, "{outcome:?} {report:?}");
            // Rows of a log that are there twice count once.
            assert!(!is_whole || rows == report.rows || is_log && rows > report.rows);
        }
        Err(_) => assert!(!is_whole),
    }
}
