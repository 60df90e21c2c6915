//! `lycosa check`: reads every block of every file of a data directory, and says what is damaged and what that concerns.

use clap::Args;
use database::Names;
use runtime::{FileSystem, SystemFiles};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use storage::lsm::{Damage, FileReport, FileRole, LSM_DIR, check_directory};
use wal::{Loss, Lost, Refusal, Replay, Row, XlogReader};

/// Options of `check`.
#[derive(Args, Debug)]
pub struct Options {
    /// The data directory
    dir: PathBuf,
    /// Print a JSON array instead of lines
    #[arg(long)]
    json: bool,
}

/// Learns names from the rows that it is given, for those that are lost.
#[derive(Default)]
struct Reading(Names);

impl Replay for Reading {
    fn apply(&mut self, row: &Row<'_>) -> Result<(), Refusal> {
        self.0.learn(row);
        Ok(())
    }

    fn describe(&mut self, row: &Row<'_>) -> String {
        self.0.learn(row);
        self.0.describe(row)
    }
}

fn loss_to_json(loss: &Loss) -> Value {
    let mut object = Map::new();
    object.insert("offset".into(), loss.offset.into());
    object.insert("problem".into(), loss.what.clone().into());
    object.insert("concerned".into(), loss.lost.to_string().into());
    match &loss.lost {
        Lost::Rows(rows) => {
            let rows = rows.iter().map(|row| json!({ "lsn": row.lsn.0, "row": row.what })).collect();
            object.insert("rows".into(), rows);
        }
        Lost::Lsns(from, to) => {
            object.insert("lsn_first".into(), from.0.into());
            object.insert("lsn_last".into(), to.0.into());
        }
        Lost::Behind(lsn) => {
            object.insert("lsn_first".into(), (*lsn + 1).into());
        }
        Lost::Bytes(bytes) => {
            object.insert("bytes".into(), (*bytes).into());
        }
    }
    object.into()
}

/// What `check` has found in all files so far.
struct Checked {
    as_json: bool,
    /// The instance UUID of the newest snapshot, and that snapshot: whose files these should be.
    own: Option<(String, String)>,
    report: Vec<Value>,
    files: u32,
    damaged: u32,
}

impl Checked {
    /// What is wrong with a file of this instance among those of the newest snapshot.
    fn foreign(&self, owner: &str) -> Option<String> {
        let (own, snapshot) = self.own.as_ref()?;
        let is_foreign = !owner.is_empty() && !owner.eq_ignore_ascii_case(own);
        is_foreign.then(|| format!("this is of another server, {owner}; {snapshot} is of {own}"))
    }

    fn add(&mut self, is_damaged: bool) {
        self.files += 1;
        self.damaged += u32::from(is_damaged);
    }
}

/// Reads every block of every file of a directory. Returns the exit code. Errors: the number of damaged files, after a line for each.
pub fn run(options: &Options) -> Result<i32, String> {
    runtime::signals::end_on_closed_output();
    let dir = &options.dir;
    let mut checked = Checked { as_json: options.json, own: None, report: Vec::new(), files: 0, damaged: 0 };
    check_logs(dir, &mut checked)?;
    check_runs(&dir.join(LSM_DIR), &mut checked)?;
    if checked.files == 0 {
        return Err(format!(
            "{} holds no snapshot, log or file of rows on disk: it is not a data directory",
            dir.display()
        ));
    }
    if options.json {
        println!("{}", Value::from(checked.report));
    }
    let Checked { files, damaged, .. } = checked;
    if damaged > 0 { Err(format!("{damaged} of {files} files are damaged")) } else { Ok(0) }
}

/// Logs and snapshots.
fn check_logs(dir: &Path, checked: &mut Checked) -> Result<(), String> {
    let names = SystemFiles.list(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let files: Vec<PathBuf> = names
        .iter()
        .filter(|name| name.ends_with(".snap") || name.ends_with(".xlog"))
        .map(|name| dir.join(name))
        .collect();
    let newest_snapshot = files.iter().rev().find(|path| path.extension().is_some_and(|e| e == "snap"));
    checked.own = newest_snapshot.and_then(|path| {
        let reader = XlogReader::open(&SystemFiles, path).ok()?;
        Some((reader.meta.instance_uuid, path.file_name()?.to_string_lossy().into_owned()))
    });
    let mut reading = Reading::default();
    for path in &files {
        let mut found = wal::check_file(&SystemFiles, path, &mut reading).map_err(|error| error.to_string())?;
        if let Some(what) = checked.foreign(&found.meta.instance_uuid) {
            found.losses.insert(0, Loss { file: path.clone(), offset: 0, what, lost: Lost::Rows(Vec::new()) });
        }
        checked.add(!found.losses.is_empty());
        let needs_advice = !found.losses.is_empty() && Some(path) == newest_snapshot;
        let advice = needs_advice.then(|| database::advice(&SystemFiles, path, dir));
        if checked.as_json {
            let mut object = Map::new();
            object.insert("file".into(), path.display().to_string().into());
            object.insert("rows".into(), found.rows.into());
            object.insert("ok".into(), found.losses.is_empty().into());
            if let Some(first) = found.losses.first() {
                object.insert("offset".into(), first.offset.into());
                object.insert("problem".into(), first.what.clone().into());
                object.insert("damage".into(), found.losses.iter().map(loss_to_json).collect());
            }
            if let Some(torn) = &found.torn {
                object.insert("torn_offset".into(), torn.offset.into());
                object.insert("torn_bytes".into(), torn.bytes.into());
            }
            if let Some(advice) = &advice {
                object.insert("advice".into(), advice.clone().into());
            }
            checked.report.push(object.into());
            continue;
        }
        let (path, rows) = (path.display(), found.rows);
        match &found.torn {
            _ if !found.losses.is_empty() => println!("{path}: {rows} good rows, DAMAGED:"),
            Some(torn) => println!(
                "{path}: {rows} rows, good; after them {} bytes from byte {} on are torn ({}): no client was promised them, and \
                 the next start cuts them",
                torn.bytes, torn.offset, torn.what
            ),
            None => println!("{path}: {rows} rows, good"),
        }
        for loss in &found.losses {
            println!("  {path}: damaged at byte {}: {}; concerned: {}", loss.offset, loss.what, loss.lost);
        }
        if let Some(advice) = advice {
            println!("  {advice}");
        }
    }
    check_missing(dir, &files, checked)
}

/// Files that should be there.
fn check_missing(dir: &Path, files: &[PathBuf], checked: &mut Checked) -> Result<(), String> {
    let snapshots = wal::snapshots(&SystemFiles, dir).map_err(|error| error.to_string())?;
    let start = snapshots.last().map_or(0, |(signature, _)| *signature);
    let newest = wal::check_newest(&SystemFiles, dir, start).map_err(|error| error.to_string())?;
    let has_no_snapshot = snapshots.is_empty() && !files.is_empty();
    let snapshot = has_no_snapshot.then(|| Loss {
        file: dir.join("*.snap"),
        offset: 0,
        what: "there are logs and no snapshot: no start is possible without the rows that are before them".to_string(),
        lost: Lost::Behind(0),
    });
    for loss in newest.into_iter().chain(snapshot) {
        checked.add(true);
        if checked.as_json {
            let mut object = Map::new();
            object.insert("file".into(), loss.file.display().to_string().into());
            object.insert("ok".into(), false.into());
            object.insert("offset".into(), loss.offset.into());
            object.insert("problem".into(), loss.what.clone().into());
            object.insert("damage".into(), vec![loss_to_json(&loss)].into());
            checked.report.push(object.into());
        } else {
            println!("{}: MISSING: {}; concerned: {}", loss.file.display(), loss.what, loss.lost);
        }
    }
    Ok(())
}

/// Runs of the disk engine and their manifest.
fn check_runs(dir: &Path, checked: &mut Checked) -> Result<(), String> {
    for mut found in check_directory(&SystemFiles, dir).map_err(|error| error.to_string())? {
        if let Some(what) = found.owner.as_deref().and_then(|owner| checked.foreign(owner)) {
            found.damage.insert(0, Damage { offset: 0, what });
        }
        checked.add(!found.damage.is_empty());
        if checked.as_json {
            checked.report.push(file_to_json(&found));
            continue;
        }
        let (path, items) = (found.path.display(), found.items);
        let unit = if found.role == FileRole::Manifest { "records" } else { "entries" };
        match &found.torn {
            _ if !found.damage.is_empty() => println!("{path}: DAMAGED:"),
            _ if found.role == FileRole::Orphan => println!("{path}: left by a crash, the next start removes it"),
            Some((offset, bytes, what)) => println!(
                "{path}: {items} {unit}, good; after them {bytes} bytes from byte {offset} on are torn ({what}): no client was promised \
                 them, and the next start cuts them"
            ),
            None => println!("{path}: {items} {unit}, good"),
        }
        for damage in &found.damage {
            println!("  {path}: damaged at byte {}: {}", damage.offset, damage.what);
        }
    }
    Ok(())
}

fn file_to_json(found: &FileReport) -> Value {
    let mut object = Map::new();
    object.insert("file".into(), found.path.display().to_string().into());
    let unit = if found.role == FileRole::Manifest { "records" } else { "entries" };
    object.insert(unit.into(), found.items.into());
    object.insert("ok".into(), found.damage.is_empty().into());
    if found.role == FileRole::Orphan {
        object.insert("orphan".into(), true.into());
    }
    if let Some(first) = found.damage.first() {
        object.insert("offset".into(), first.offset.into());
        object.insert("problem".into(), first.what.clone().into());
        let damage = found.damage.iter().map(|damage| json!({ "offset": damage.offset, "problem": damage.what }));
        object.insert("damage".into(), damage.collect());
    }
    if let Some((offset, bytes, _)) = &found.torn {
        object.insert("torn_offset".into(), (*offset).into());
        object.insert("torn_bytes".into(), (*bytes).into());
    }
    object.into()
}
