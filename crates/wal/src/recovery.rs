//! Reading the log back: whole transactions in order, a torn end cut and reported, damage refused.
//!
//! What can be torn: groups that were in flight when the machine stopped, in the newest file, behind everything that was
//! acknowledged. What is damage: anything unreadable in a file that was completed (it has an end marker, or a later
//! file exists), and a group that a later group's note declares durable.

use crate::block::EOF_MAGIC;
use crate::error::WalError;
use crate::row::{self, Row};
use crate::vclock::Vclock;
use crate::xlog::{Block, Damage, XlogReader, logs};
use runtime::{FileSystem, OpenMode};
use std::fmt;
use std::path::{Path, PathBuf};
use tuple::msgpack::Reader;

/// A torn end that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub file: PathBuf,
    /// Everything from here on was cut.
    pub offset: u64,
    /// Bytes cut, space that was only prepared not counted.
    pub bytes: u64,
    /// What was wrong there.
    pub what: &'static str,
}

/// What recovery read and cut.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Log files read.
    pub files: usize,
    /// Rows applied.
    pub rows: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The torn end, if there was one.
    pub cut: Option<Cut>,
    /// Damaged stretches passed over by force: file, offset, in words.
    pub skipped: Vec<(PathBuf, u64, String)>,
    /// Where the log ends.
    pub vclock: Vclock,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows from {} log files, {} bytes; at {}", self.rows, self.files, self.bytes, self.vclock)?;
        if let Some(cut) = &self.cut {
            let (file, offset, bytes) = (cut.file.display(), cut.offset, cut.bytes);
            write!(f, "; torn end of {file} cut at byte {offset} ({bytes} bytes: {})", cut.what)?;
        }
        for (file, offset, what) in &self.skipped {
            write!(f, "; SKIPPED damage in {} at byte {offset}: {what}", file.display())?;
        }
        Ok(())
    }
}

/// Replays all log files from `start` (a snapshot's vclock) on. `apply` gets the rows that `start` does not cover.
///
/// With `force`, damage is passed over and reported instead of refused. Cuts torn ends off the files; completes the newest file.
///
/// Errors: `Corrupt`, `Gap`, `Io`, and `Refused` with the words of `apply`.
pub fn recover(
    files: &dyn FileSystem,
    dir: &Path,
    start: &Vclock,
    force: bool,
    mut apply: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<RecoveryReport, WalError> {
    let mut report = RecoveryReport { vclock: *start, ..RecoveryReport::default() };
    let all = logs(files, dir)?;
    let signature = start.signature();
    // The file that begins at or last before the snapshot is the first that may hold rows behind it.
    let first = all.iter().rposition(|(begin, _)| *begin <= signature).unwrap_or(0);
    let wanted = &all[first..];
    for (at, (_, path)) in wanted.iter().enumerate() {
        let is_last = at + 1 == wanted.len();
        let mut reader = match XlogReader::open(files, path) {
            Ok(reader) => reader,
            // The newest file may have been made just before the crash: nothing in it was promised.
            Err(WalError::Corrupt { .. }) if is_last && is_unborn(files, path)? => {
                let reading = || format!("reading {}", path.display());
                let len =
                    files.open(path, OpenMode::READ).and_then(|file| file.len()).map_err(WalError::io(reading()))?;
                remove(files, dir, path)?;
                report.cut =
                    Some(Cut { file: path.clone(), offset: 0, bytes: len, what: "the file was never completed" });
                break;
            }
            Err(error) => return Err(error),
        };
        if !report.vclock.covers(&reader.meta.vclock) {
            if !force {
                return Err(WalError::Gap { from: Box::new(report.vclock), to: Box::new(reader.meta.vclock) });
            }
            let what = format!("rows between {} and {} are missing", report.vclock, reader.meta.vclock);
            report.skipped.push((path.clone(), 0, what));
            report.vclock = reader.meta.vclock;
        }
        report.files += 1;
        replay(files, dir, &mut reader, is_last, force, &mut report, &mut apply)?;
    }
    Ok(report)
}

/// True if a file has no complete header, or no rows at all. Errors: `Io`.
fn is_unborn(files: &dyn FileSystem, path: &Path) -> Result<bool, WalError> {
    let mut head = vec![0; 4096];
    let got = files
        .open(path, OpenMode::READ)
        .and_then(|file| file.read_full_at(&mut head, 0))
        .map_err(WalError::io(format!("reading {}", path.display())))?;
    // Preparing writes the header first: a file without one holds nothing else of ours.
    let text_end = head[..got].windows(2).position(|pair| pair == b"\n\n");
    Ok(text_end.is_none() && (got < 4096 || head.iter().all(|&byte| byte == 0)))
}

fn remove(files: &dyn FileSystem, dir: &Path, path: &Path) -> Result<(), WalError> {
    files.remove(path).and_then(|()| files.sync_dir(dir)).map_err(WalError::io(format!("removing {}", path.display())))
}

fn replay(
    files: &dyn FileSystem,
    dir: &Path,
    reader: &mut XlogReader,
    is_last: bool,
    force: bool,
    report: &mut RecoveryReport,
    apply: &mut impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), WalError> {
    let path = reader.path().to_path_buf();
    let mut end_of_rows = reader.offset();
    let mut row_count = 0u64;
    let is_complete = loop {
        match reader.next_block()? {
            Block::Rows { offset } => {
                let before = report.rows;
                apply_block(reader.rows(), &path, offset, force, report, apply)?;
                row_count += report.rows - before;
                if !reader.rows().is_empty() {
                    end_of_rows = reader.offset();
                }
            }
            Block::Eof => break true,
            Block::End => break false,
            Block::Damaged(damage) => {
                let later = reader.find_later_block(damage.offset)?;
                let was_promised =
                    !is_last || reader.has_end_marker()? || is_damage(damage, later.map(|(_, note)| note));
                if !was_promised {
                    let bytes = cut_bytes(reader, damage.offset)?;
                    report.cut = Some(Cut { file: path.clone(), offset: damage.offset, bytes, what: damage.what });
                    end_of_rows = end_of_rows.max(damage.offset);
                    break false;
                }
                let loss = match later {
                    Some((next, _)) => format!("the transactions in {} bytes up to byte {next}", next - damage.offset),
                    None => format!("everything behind it ({} bytes)", reader.len() - damage.offset),
                };
                if !force {
                    let what = format!("{}; force_recovery would lose {loss}", damage.what);
                    return Err(WalError::Corrupt { file: path, offset: damage.offset, what });
                }
                report.skipped.push((path.clone(), damage.offset, format!("{}; lost {loss}", damage.what)));
                match later {
                    Some((next, _)) => reader.seek(next),
                    None => break true,
                }
            }
        }
    };
    report.bytes += end_of_rows;
    if is_last {
        finish_last(files, dir, &path, end_of_rows, is_complete, row_count > 0)?;
    }
    Ok(())
}

/// True if what cannot be read had been acknowledged: a later group says so, or later rows are there in a file without notes.
fn is_damage(damage: Damage, later: Option<Option<crate::block::Note>>) -> bool {
    match later {
        Some(Some(note)) => note.durable_offset > damage.offset,
        Some(None) => true,
        None => false,
    }
}

/// Bytes behind a torn block that are not prepared space.
fn cut_bytes(reader: &mut XlogReader, offset: u64) -> Result<u64, WalError> {
    let mut end = offset;
    let mut at = offset;
    while let Some((next, _)) = reader.find_later_block(at)? {
        end = next;
        at = next;
    }
    Ok((end - offset).max(1).min(reader.len() - offset))
}

fn apply_block(
    rows: &[u8],
    path: &Path,
    offset: u64,
    force: bool,
    report: &mut RecoveryReport,
    apply: &mut impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), WalError> {
    let mut reader = Reader::new(rows);
    while !reader.is_empty() {
        let corrupt = |what: String| WalError::Corrupt { file: path.to_path_buf(), offset, what };
        let row = row::decode(&mut reader).map_err(|error| corrupt(error.to_string()))?;
        let component = if row.header.group_id == 1 { 0 } else { row.header.replica_id };
        let known = report.vclock.get(component);
        if row.header.lsn <= known {
            continue;
        }
        if let Err(what) = apply(&row) {
            if !force {
                return Err(WalError::Refused { file: path.to_path_buf(), offset, what });
            }
            report.skipped.push((path.to_path_buf(), offset, format!("row {}: {what}", row.header.lsn)));
        }
        report.vclock.set(component, row.header.lsn);
        report.rows += 1;
    }
    Ok(())
}

/// The newest file will not be written again: it ends behind its rows with a marker. One without rows goes.
fn finish_last(
    files: &dyn FileSystem,
    dir: &Path,
    path: &Path,
    end: u64,
    is_complete: bool,
    has_rows: bool,
) -> Result<(), WalError> {
    if !has_rows && !is_complete {
        return remove(files, dir, path);
    }
    if is_complete {
        return Ok(());
    }
    let what = || format!("completing {}", path.display());
    let file = files.open(path, OpenMode::MODIFY).map_err(WalError::io(what()))?;
    let complete = || {
        file.set_len(end)?;
        file.write_all_at(&EOF_MAGIC, end)?;
        file.sync()
    };
    complete().map_err(WalError::io(what()))
}
