//! Reading the log back: whole transactions in order, a torn end cut and reported, damage refused.
//!
//! What can be torn: groups that were in flight when the machine stopped, in the newest file, behind everything that was
//! acknowledged. What is damage: anything unreadable in a file that was completed (it has an end marker) or in front of the rows that a
//! later file begins with, and a group that a later group's note declares durable.
//!
//! A file is completed after the next one has its name, so a crash may leave it as it was: behind the last row before the next file there is
//! only space that was prepared, whole or cut anywhere, and that costs nothing.

use crate::block::{EOF_MAGIC, FIXHEADER_BYTES, Note, encode_filler, read_fixheader};
use crate::error::WalError;
use crate::loss::{Applied, Loss, Lost, LostRow, Refusal, Replay, announcement};
use crate::newest::Newest;
use crate::row::{self, Row};
use crate::vclock::Vclock;
use crate::xlog::{Block, Damage, FileMeta, Unpacked, XlogReader, logs, signature_of};
use runtime::{FileSystem, OpenMode, PAGE_BYTES};
use std::fmt;
use std::path::{Path, PathBuf};
use tuple::Lsn;
use tuple::msgpack::Reader;

/// Rows that are foreseen at once.
const FORESEEN_ROWS: usize = 16;
/// Damaged places that a report lists; further ones are only counted.
const LOSSES_MAX: usize = 1000;

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
    /// Damaged places, passed over by force.
    pub losses: Vec<Loss>,
    /// Where the log ends.
    pub vclock: Vclock,
    /// Up to where losses have told of rows. Not part of `vclock`: at the end of the log their lsns are given anew.
    told: Vclock,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows from {} log files, {} bytes; at {}", self.rows, self.files, self.bytes, self.vclock)?;
        if let Some(cut) = &self.cut {
            let (file, offset, bytes) = (cut.file.display(), cut.offset, cut.bytes);
            write!(f, "; torn end of {file} cut at byte {offset} ({bytes} bytes: {})", cut.what)?;
        }
        if let Some(Loss { file, offset, what, .. }) = self.losses.first() {
            let (file, lost) = (file.display(), announcement(&self.losses));
            write!(f, "; PASSED OVER damage in {file} at byte {offset}: {what}; lost {lost}")?;
        }
        Ok(())
    }
}

/// What may be done about damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    /// The files are left as they are. The error tells everything that going on would lose.
    Refuse,
    /// It is passed over and told; the newest file is completed.
    PassOver,
    /// As `PassOver`, but the files are left as they are.
    Survey,
}

/// Replays all log files from `start` (a snapshot's vclock) on. `apply` gets the rows that `start` does not cover.
///
/// With `force`, recovery skips damage and reports it instead of refusing to start. Cuts torn ends off the files; completes the newest file.
///
/// Errors: `Corrupt`, `Gap`, `Io`, and `Refused` with the words of `apply`.
pub fn recover(
    files: &dyn FileSystem,
    dir: &Path,
    start: &Vclock,
    force: bool,
    apply: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<RecoveryReport, WalError> {
    let on_damage = if force { OnDamage::PassOver } else { OnDamage::Refuse };
    recover_into(files, dir, start, on_damage, &mut Applied { apply, goes_on: force, is_over: false })
}

/// As [`recover`], with a say in what is done about damage, and rows described in the words of `replay`.
///
/// A refusal tells what a forced start would lose. To find that out recovery reads on, so afterwards `replay` holds what a forced start would
/// have, and must not be used.
///
/// Errors: as `recover`.
pub fn recover_into(
    files: &dyn FileSystem,
    dir: &Path,
    start: &Vclock,
    on_damage: OnDamage,
    replay: &mut dyn Replay,
) -> Result<RecoveryReport, WalError> {
    let mut report = RecoveryReport { vclock: *start, ..RecoveryReport::default() };
    let all = logs(files, dir)?;
    let signature = start.signature();
    // The file that begins at or last before the snapshot is the first that may hold rows behind it.
    let first = all.iter().rposition(|(begin, _)| *begin <= signature).unwrap_or(0);
    let wanted = &all[first.min(all.len())..];
    let noted = Newest::read(files, dir)?;
    let missing = noted.and_then(|noted| noted.missing(dir, signature, all.last().map(|(begin, _)| *begin)));
    for (at, (begin, path)) in wanted.iter().enumerate() {
        let place = match wanted.get(at + 1) {
            Some((next, _)) => Place::Before(*next),
            None => Place::last(*begin, noted, missing.is_some()),
        };
        let (mut reader, damage) = XlogReader::open_damaged(files, path)?;
        let is_nothing = reader.meta.bytes == 0 && reader.offset() >= reader.len();
        if let Some(damage) = damage {
            // A file without rows promises nothing. But a log gets its name only when its header is on disk, so this one once had more.
            let lost = if is_nothing { Lost::Behind(*begin) } else { Lost::Rows(Vec::new()) };
            report.lose(path, damage.offset, damage.to_string(), lost);
            replay.damaged();
        }
        let is_header_known = reader.meta.bytes > 0;
        if is_header_known
            && let Some(own) = replay.instance()
            && !own.eq_ignore_ascii_case(&reader.meta.instance_uuid)
        {
            let other = &reader.meta.instance_uuid;
            let what = format!(
                "this log is of server {other}, and the snapshot is of server {own}: one of them does not belong here, \
                 and force_recovery would not help; look at the other files (`lycosa check`, `lycosa cat`) and move \
                 those of the other server to another directory"
            );
            return Err(WalError::Corrupt { file: path.clone(), offset: 0, what });
        }
        if is_header_known && !report.vclock.covers(&reader.meta.vclock) {
            let (from, to) = (report.vclock, reader.meta.vclock);
            if on_damage == OnDamage::Refuse && report.losses.is_empty() {
                return Err(WalError::Gap { from: Box::new(from), to: Box::new(to) });
            }
            let told = from.or(&report.told);
            if !told.covers(&to) {
                let what = format!("rows between {from} and {to} are missing");
                report.lose(path, 0, what, missing_between(&told, &to));
                replay.damaged();
            }
            report.vclock = to;
        }
        report.files += 1;
        let mut known = report.vclock;
        let end = read_on(&mut reader, place, &mut known, on_damage, &mut report, replay);
        report.vclock = known;
        let end = end?;
        let may_change = on_damage == OnDamage::PassOver || on_damage == OnDamage::Refuse && report.losses.is_empty();
        if may_change && is_nothing {
            set_aside(files, dir, path)?;
        } else if may_change && !end.is_complete && (place == Place::Newest || place.ends_with(&known)) {
            complete(files, path, end.offset)?;
        }
        if let Some(loss) = short_end(noted, &report, path, *begin, reader.len()) {
            report.losses.push(loss);
            replay.damaged();
        }
    }
    if let Some(loss) = missing {
        report.losses.push(loss);
        replay.damaged();
    }
    match report.losses.first() {
        Some(loss) if on_damage == OnDamage::Refuse => Err(refusal(loss, &report.losses)),
        _ => Ok(report),
    }
}

/// The rows missing at the end of a log that a clean stop completed. Nothing else shows that the end was cut off.
fn short_end(noted: Option<Newest>, report: &RecoveryReport, path: &Path, begin: i64, len: u64) -> Option<Loss> {
    let end = noted.filter(|noted| noted.begin == begin)?.end?;
    let known = report.vclock.or(&report.told).signature();
    let what = format!("the log ends behind lsn {known}, and a clean stop has noted lsn {end}");
    (known < end).then(|| Loss {
        file: path.to_path_buf(),
        offset: len,
        what,
        lost: Lost::Lsns(Lsn(known + 1), Lsn(end)),
    })
}

/// What is lost because the newest log of a directory is not there although a note says that it was. `start`: what the newest snapshot covers.
/// Changes nothing.
///
/// Errors: `Io`.
pub fn check_newest(files: &dyn FileSystem, dir: &Path, start: i64) -> Result<Option<Loss>, WalError> {
    let newest = logs(files, dir)?.last().map(|(begin, _)| *begin);
    Ok(Newest::read(files, dir)?.and_then(|noted| noted.missing(dir, start, newest)))
}

/// The error of a start on damage: the first place, and what going on by force would lose in all.
pub fn refusal(first: &Loss, losses: &[Loss]) -> WalError {
    let what = format!("{}; force_recovery would lose {}", first.what, announcement(losses));
    WalError::Corrupt { file: first.file.clone(), offset: first.offset, what }
}

/// The rows between two places of the log.
fn missing_between(from: &Vclock, to: &Vclock) -> Lost {
    let mut changed = to.components().filter(|(id, lsn)| from.get(*id) < *lsn);
    match (changed.next(), changed.next()) {
        (Some((id, lsn)), None) => Lost::Lsns(from.get(id).next(), lsn),
        _ => Lost::Lsns(Lsn(from.signature() + 1), Lsn(to.signature())),
    }
}

/// Which file it is that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The newest log.
    Newest,
    /// A log; the next one begins with this signature.
    Before(i64),
    Snapshot,
}

impl Place {
    /// Errors: `Io`.
    fn of(files: &dyn FileSystem, path: &Path) -> Result<Self, WalError> {
        if is_snapshot(path) {
            return Ok(Place::Snapshot);
        }
        let all = logs(files, path.parent().unwrap_or(Path::new("")))?;
        // Whatever has no name of a log is looked at as the newest one.
        let at = all.iter().position(|(_, found)| found == path);
        let next = at.and_then(|at| all.get(at + 1));
        Ok(match (next, at.and_then(|at| all.get(at))) {
            (Some((begin, _)), _) => Place::Before(*begin),
            (None, Some((begin, _))) => {
                let noted = Newest::read(files, path.parent().unwrap_or(Path::new("")))?;
                Place::last(*begin, noted, noted.is_some_and(|noted| noted.begin > *begin))
            }
            (None, None) => Place::Newest,
        })
    }

    /// The newest log. One that a clean stop completed must end where the note says, as if another log followed.
    fn last(begin: i64, noted: Option<Newest>, is_next_missing: bool) -> Self {
        match noted {
            Some(noted) if is_next_missing => Place::Before(noted.begin),
            Some(Newest { begin: noted, end: Some(end) }) if noted == begin && end > begin => Place::Before(end),
            _ => Place::Newest,
        }
    }

    /// True if these are all the rows before the next log.
    fn ends_with(self, known: &Vclock) -> bool {
        matches!(self, Place::Before(begin) if known.signature() >= begin)
    }
}

/// What is known of one file.
#[derive(Debug, Default)]
pub struct FileReport {
    /// The header; its length is 0 if it cannot be read.
    pub meta: FileMeta,
    /// Rows that could be read.
    pub rows: u64,
    /// Damaged places.
    pub losses: Vec<Loss>,
    /// The end of the newest log, if a crash has torn it: nobody was promised what is there.
    pub torn: Option<Cut>,
}

/// Reads one file, changing nothing. The newest log of its directory may end without its marker and in a torn write; one before it may lack the
/// marker if the rows that the next one begins with are the next ones.
///
/// Errors: `Io`; `Refused` if `replay` refuses a row for good.
pub fn check_file(files: &dyn FileSystem, path: &Path, replay: &mut dyn Replay) -> Result<FileReport, WalError> {
    let place = Place::of(files, path)?;
    let (mut reader, damage) = XlogReader::open_damaged(files, path)?;
    let mut report = RecoveryReport::default();
    let mut end_is_told = false;
    if let Some(damage) = damage {
        let is_nothing = reader.meta.bytes == 0 && reader.offset() >= reader.len();
        let lost = match signature_of(path) {
            Some(begin) if is_nothing && place != Place::Snapshot => Lost::Behind(begin),
            _ if is_nothing => Lost::Bytes(reader.len()),
            _ => Lost::Rows(Vec::new()),
        };
        report.lose(path, damage.offset, damage.to_string(), lost);
        end_is_told |= is_nothing;
    }
    let mut known = reader.meta.vclock;
    if place == Place::Snapshot {
        // Rows of a snapshot are numbered from 0, all of no replica.
        known = Vclock::default();
        known.set(0, Lsn(-1));
    }
    let end = read_on(&mut reader, place, &mut known, OnDamage::Survey, &mut report, replay)?;
    if !end.is_complete && !end.is_told && !end_is_told && place != Place::Newest && !place.ends_with(&known) {
        let what = match place {
            Place::Snapshot => "has no EOF marker",
            Place::Before(end)
                if logs(files, path.parent().unwrap_or(Path::new("")))?.iter().all(|(begin, _)| *begin < end) =>
            {
                "has no EOF marker although a clean stop has completed it"
            }
            _ => "has no EOF marker although a later log exists",
        };
        report.lose(path, reader.len(), what.to_string(), Lost::Bytes(0));
    }
    Ok(FileReport { meta: reader.meta, rows: report.rows, losses: report.losses, torn: report.cut })
}

fn is_snapshot(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "snap")
}

impl RecoveryReport {
    fn lose(&mut self, file: &Path, offset: u64, what: String, lost: Lost) {
        if self.losses.len() < LOSSES_MAX {
            self.losses.push(Loss { file: file.to_path_buf(), offset, what, lost });
        }
    }
}

/// Nothing of this file can be read: it is renamed so that nobody takes it for a log.
fn set_aside(files: &dyn FileSystem, dir: &Path, path: &Path) -> Result<(), WalError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lost");
    let to = PathBuf::from(name);
    files
        .rename(path, &to)
        .and_then(|()| files.sync_dir(dir))
        .map_err(WalError::io(format!("renaming {}", path.display())))
}

/// How a file ends.
struct End {
    /// Behind the last rows.
    offset: u64,
    /// It has its end marker.
    is_complete: bool,
    has_rows: bool,
    /// A loss or a cut has told already that the marker is not there.
    is_told: bool,
    /// Groups are whole pages, which were prepared before.
    is_paged: bool,
}

/// Reads the blocks of a file that has been opened. `known` follows the rows.
fn read_on(
    reader: &mut XlogReader,
    place: Place,
    known: &mut Vclock,
    on_damage: OnDamage,
    report: &mut RecoveryReport,
    replay: &mut dyn Replay,
) -> Result<End, WalError> {
    let path = reader.path().to_path_buf();
    let mut end = End { offset: reader.offset(), is_complete: false, has_rows: false, is_told: false, is_paged: false };
    // Groups are numbered from 1; behind damage the next number is not known.
    let mut last_group = Some(0);
    reader.read_ahead();
    loop {
        match reader.next_block()? {
            Block::Rows { offset, note } => {
                if let (Some(Note { number, .. }), Some(last)) = (note, last_group)
                    && number != last + 1
                {
                    if !pass_hole(reader, &path, place, note, known, report, &mut end)? {
                        break;
                    }
                    replay.damaged();
                    // The search for later groups has read over the rows.
                    reader.seek(offset);
                    last_group = None;
                    continue;
                }
                last_group = note.map(|note| note.number).or(last_group);
                let before = report.rows;
                replay_block(reader.unpacked(), &path, offset, known, on_damage, report, replay)?;
                end.has_rows |= report.rows > before;
                end.is_paged |= reader.rows().is_empty() && reader.offset() == PAGE_BYTES as u64;
                if !reader.rows().is_empty() {
                    end.offset = reader.offset();
                }
            }
            Block::Eof => {
                end.is_complete = true;
                break;
            }
            Block::End => break,
            Block::Damaged(damage) => {
                let goes_on = pass_over(reader, &path, place, damage, known, on_damage, report, replay, &mut end)?;
                if !report.losses.is_empty() {
                    replay.damaged();
                }
                if !goes_on {
                    break;
                }
                last_group = None;
            }
        }
    }
    report.bytes += end.offset;
    Ok(end)
}

/// A group is missing, and a later one was just read: several were being written when the machine stopped, and prepared space is left where the
/// missing one belongs. If it was acknowledged its rows are lost; otherwise the log ends before it. True
/// if reading goes on. Errors: `Io`.
fn pass_hole(
    reader: &mut XlogReader,
    path: &Path,
    place: Place,
    note: Option<Note>,
    known: &Vclock,
    report: &mut RecoveryReport,
    end: &mut End,
) -> Result<bool, WalError> {
    let what = "a group is missing although a later one is there";
    // Groups begin at pages; the first one behind the page of the header.
    let hole = end.offset.next_multiple_of(PAGE_BYTES as u64);
    let lost = lost_before(reader.rows(), known).unwrap_or(Lost::Bytes(reader.offset() - hole));
    if place == Place::Newest && !reader.has_end_marker()? && !was_durable(reader, hole, note)? {
        let bytes = cut_bytes(reader, hole)?;
        report.cut = Some(Cut { file: path.to_path_buf(), offset: hole, bytes, what });
        end.is_told = true;
        return Ok(false);
    }
    report.lose(path, hole, what.to_string(), lost);
    Ok(true)
}

/// True if the group at `offset` had been acknowledged: a later one, the one of this note or one behind it, says so. Errors: `Io`.
fn was_durable(reader: &mut XlogReader, offset: u64, note: Option<Note>) -> Result<bool, WalError> {
    let mut at = offset;
    let mut is_durable = note.is_some_and(|note| note.durable_offset > offset);
    while !is_durable && let Some((next, note)) = reader.find_later_block(at)? {
        is_durable = note.is_none_or(|note| note.durable_offset > offset);
        at = next;
    }
    Ok(is_durable)
}

/// Notes what a damaged block costs and goes on behind it. False if nothing is behind it. Errors: `Io`.
#[expect(clippy::too_many_arguments, reason = "the state of the loop it was taken from")]
fn pass_over(
    reader: &mut XlogReader,
    path: &Path,
    place: Place,
    damage: Damage,
    known: &Vclock,
    on_damage: OnDamage,
    report: &mut RecoveryReport,
    replay: &mut dyn Replay,
    end: &mut End,
) -> Result<bool, WalError> {
    let offset = damage.offset;
    // Prepared space with one wrong bit in its header may be a group that was torn within its own. Nobody was promised either.
    let is_space = |next: u64| next - offset > EOF_MAGIC.len() as u64 && reader.rows().is_empty();
    let is_in_header = damage.flip.is_some_and(|flip| flip.byte - offset < FIXHEADER_BYTES as u64);
    let may_be_torn = on_damage != OnDamage::Survey && is_in_header && damage.end.is_some_and(is_space);
    let is_newest = place == Place::Newest && !is_cut(reader, damage, end);
    let is_torn = may_be_torn && is_newest && !reader.has_end_marker()? && !was_durable(reader, offset, None)?;
    if let Some(next) = damage.end
        && !is_torn
    {
        // One bit is wrong, so no crash has torn this; and what was there is known.
        let rows = match may_be_torn {
            // The search for later groups has read over what was not there.
            true => Vec::new(),
            false => lost_rows(reader.rows(), known, &mut report.told, replay),
        };
        report.lose(path, offset, damage.to_string(), Lost::Rows(rows));
        reader.seek(next);
        end.is_told |= next == reader.len();
        return Ok(true);
    }
    if place.ends_with(known) && !reader.has_end_marker()? {
        end.is_told = true;
        return Ok(false);
    }
    if is_newest && !reader.has_end_marker()? && !was_durable(reader, offset, None)? {
        let bytes = cut_bytes(reader, offset)?;
        report.cut = Some(Cut { file: path.to_path_buf(), offset, bytes, what: damage.what });
        end.offset = end.offset.max(offset);
        end.is_told = true;
        return Ok(false);
    }
    let later = reader.find_later_block(offset)?;
    let lost = match later {
        Some((next, _)) => lost_before(reader.rows(), known).unwrap_or(Lost::Bytes(next - offset)),
        None => Lost::Bytes(reader.len() - offset),
    };
    report.lose(path, offset, damage.to_string(), lost);
    match later {
        Some((next, _)) => {
            reader.seek(next);
            Ok(true)
        }
        None => {
            // The file is as complete as it will ever be.
            end.is_complete = true;
            Ok(false)
        }
    }
}

/// True if a synced log ends inside a group and not at a page boundary. Pages are allocated before they are written, so no crash does that; only
/// prepared space may be there in part, where the disk was full.
fn is_cut(reader: &XlogReader, damage: Damage, end: &End) -> bool {
    let page = PAGE_BYTES as u64;
    if !end.is_paged || reader.len().is_multiple_of(page) || !damage.offset.is_multiple_of(page) {
        return false;
    }
    let mut space = vec![0; PAGE_BYTES];
    encode_filler(&mut space);
    let mut header = [0; FIXHEADER_BYTES];
    // What cannot be read is told by whoever needs it.
    let got = reader.read(&mut header, damage.offset).unwrap_or(0);
    let is_long = |length: u64| damage.offset + (FIXHEADER_BYTES as u64) + length > reader.len();
    let length = read_fixheader(&header[..got]).ok().map(|fixheader| fixheader.length);
    header != space[..FIXHEADER_BYTES] && length.is_some_and(is_long)
}

/// Rows that are not known by other means, in words.
fn lost_rows(rows: &[u8], known: &Vclock, told: &mut Vclock, replay: &mut dyn Replay) -> Vec<LostRow> {
    let mut reader = Reader::new(rows);
    let mut lost = Vec::new();
    while let Ok(row) = row::decode(&mut reader) {
        if row.header.lsn > known.get(component(&row)) {
            lost.push(LostRow { lsn: row.header.lsn, what: replay.describe(&row) });
            told.set(component(&row), row.header.lsn);
        }
        if reader.is_empty() {
            break;
        }
    }
    lost
}

/// What is missing in front of good rows, where that can be told: lsns of one replica have no gaps.
fn lost_before(rows: &[u8], known: &Vclock) -> Option<Lost> {
    let row = row::decode(&mut Reader::new(rows)).ok()?;
    let component = component(&row);
    if known.components().any(|(id, _)| id != component) {
        return None;
    }
    let (last, next) = (known.get(component), row.header.lsn);
    Some(if next > last.next() { Lost::Lsns(last.next(), next.previous()) } else { Lost::Rows(Vec::new()) })
}

/// The part of the vclock that a row moves.
fn component(row: &Row<'_>) -> u32 {
    if row.header.group_id == 1 { 0 } else { row.header.replica_id }
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

fn replay_block(
    rows: &Unpacked,
    path: &Path,
    offset: u64,
    known: &mut Vclock,
    on_damage: OnDamage,
    report: &mut RecoveryReport,
    replay: &mut dyn Replay,
) -> Result<(), WalError> {
    // In a snapshot, rows whose count is wrong are still rows.
    let is_snapshot = is_snapshot(path);
    for at in 0..rows.len() {
        if at % FORESEEN_ROWS == 0 && !is_snapshot {
            replay.foresee(&mut (at..rows.len().min(at + FORESEEN_ROWS)).map(|at| rows.row(at)));
        }
        let row = rows.row(at);
        let component = component(&row);
        if row.header.lsn <= known.get(component) && !is_snapshot {
            continue;
        }
        if let Err(Refusal { what, is_final }) = replay.apply(&row) {
            let must_refuse = is_final || on_damage == OnDamage::Refuse && report.losses.is_empty();
            if must_refuse {
                return Err(WalError::Refused { file: path.to_path_buf(), offset, what });
            }
            let lost = Lost::Rows(vec![LostRow { lsn: row.header.lsn, what: replay.describe(&row) }]);
            report.lose(path, offset, what, lost);
        }
        known.set(component, row.header.lsn);
        report.rows += 1;
    }
    Ok(())
}

/// A file that will not be written again ends behind its rows with a marker.
fn complete(files: &dyn FileSystem, path: &Path, end: u64) -> Result<(), WalError> {
    let what = || format!("completing {}", path.display());
    let file = files.open(path, OpenMode::MODIFY).map_err(WalError::io(what()))?;
    let complete = || {
        file.set_len(end)?;
        file.write_all_at(&EOF_MAGIC, end)?;
        file.sync()
    };
    complete().map_err(WalError::io(what()))
}
