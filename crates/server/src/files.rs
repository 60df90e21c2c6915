//! `lycosa cat` and `lycosa check`: looking at files without starting a server.

use clap::Args;
use database::Names;
use runtime::{FileSystem, OpenMode, SystemFiles};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use storage::lsm::{
    Damage, EntryKind, FileReport, FileRole, LSM_DIR, LsmError, Run, TreeState, check_directory, newest_trees,
    read_manifest,
};
use tuple::msgpack::{Kind, Reader};
use wal::{Loss, Lost, Refusal, Replay, Row, XlogReader};

fn to_json(reader: &mut Reader<'_>) -> Value {
    let kind = reader.kind();
    match kind {
        Ok(Kind::Nil) => reader.read_nil().map_or(Value::Null, |()| Value::Null),
        Ok(Kind::Bool) => reader.read_bool().map_or(Value::Null, Value::Bool),
        Ok(Kind::Uint) => reader.read_uint().map_or(Value::Null, Value::from),
        Ok(Kind::Int) => reader.read_int().map_or(Value::Null, Value::from),
        Ok(Kind::Float | Kind::Double) => reader.read_double().map_or(Value::Null, Value::from),
        Ok(Kind::Str) => reader.read_str().map_or(Value::Null, |text| String::from_utf8_lossy(text).into()),
        Ok(Kind::Bin) => reader.read_bin().map_or(Value::Null, |text| String::from_utf8_lossy(text).into()),
        Ok(Kind::Array) => {
            let count = reader.read_array().unwrap_or(0);
            (0..count).map(|_| to_json(reader)).collect()
        }
        Ok(Kind::Map) => {
            let mut object = Map::new();
            for _ in 0..reader.read_map().unwrap_or(0) {
                let key = match to_json(reader) {
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                object.insert(key, to_json(reader));
            }
            Value::Object(object)
        }
        Ok(Kind::Ext) => {
            let mut text = String::new();
            match reader.read_value() {
                Ok(raw) => tuple::msgpack::format_value(raw, &mut text),
                Err(_) => text.push('?'),
            }
            text.into()
        }
        Err(_) => Value::Null,
    }
}

fn type_name(kind: u16) -> String {
    match kind {
        2 => "INSERT".into(),
        3 => "REPLACE".into(),
        4 => "UPDATE".into(),
        5 => "DELETE".into(),
        9 => "UPSERT".into(),
        12 => "NOP".into(),
        30 => "RAFT".into(),
        31 => "PROMOTE".into(),
        40 => "CONFIRM".into(),
        41 => "ROLLBACK".into(),
        other => other.to_string(),
    }
}

fn row_to_json(row: &Row<'_>) -> Value {
    let header = &row.header;
    let mut head = Map::new();
    head.insert("type".into(), type_name(header.kind).into());
    head.insert("lsn".into(), header.lsn.into());
    if header.replica_id != 0 {
        head.insert("replica_id".into(), header.replica_id.into());
    }
    if header.group_id != 0 {
        head.insert("group_id".into(), header.group_id.into());
    }
    head.insert("timestamp".into(), header.timestamp.into());
    if !header.is_commit || header.tsn != header.lsn {
        head.insert("tsn".into(), header.tsn.into());
    }
    let mut body = Map::new();
    let mut reader = Reader::new(row.body);
    for _ in 0..reader.read_map().unwrap_or(0) {
        let key = reader.read_uint().unwrap_or(0);
        let name = match key {
            0x10 => "space_id",
            0x11 => "index_id",
            0x15 => "index_base",
            0x20 => "key",
            0x21 => "tuple",
            0x28 => "operations",
            _ => "other",
        };
        body.insert(name.into(), to_json(&mut reader));
    }
    json!({ "HEADER": head, "BODY": body })
}

/// The text form of `cat`.
fn print_yaml(row: &Value) {
    println!("---");
    for part in ["HEADER", "BODY"] {
        println!("{part}:");
        for (key, value) in row[part].as_object().into_iter().flatten() {
            println!("  {key}: {value}");
        }
    }
}

/// Options of `cat`.
#[derive(Args)]
pub(crate) struct CatOptions {
    /// Files: .xlog, .snap, a .run or manifest of the directory `lsm`, and Tarantool's .run, .index and .vylog
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// One JSON object a line instead of YAML
    #[arg(long)]
    json: bool,
    /// Rows of system spaces too
    #[arg(long)]
    show_system: bool,
    /// Only rows of the spaces with these numbers
    #[arg(long)]
    space: Vec<u64>,
    /// Only rows with this lsn and greater ones
    #[arg(long)]
    from: Option<i64>,
    /// Only rows with lsns below this one
    #[arg(long)]
    to: Option<i64>,
}

impl CatOptions {
    fn print(&self, value: &Value) {
        if self.json {
            println!("{value}");
        } else {
            print_yaml(value);
        }
    }

    fn wants_space(&self, space_id: Option<u64>) -> bool {
        match space_id {
            Some(id) if self.space.is_empty() => id >= 512 || self.show_system,
            Some(id) => self.space.contains(&id),
            None => self.space.is_empty(),
        }
    }

    fn wants_lsn(&self, lsn: i64) -> bool {
        self.from.is_none_or(|from| lsn >= from) && self.to.is_none_or(|to| lsn < to)
    }
}

/// Prints what is in files. Errors: damage, with what was readable before it printed.
pub(crate) fn cat(options: &CatOptions) -> Result<(), String> {
    for path in &options.files {
        let is_ours = SystemFiles.open(path, OpenMode::READ).and_then(|file| {
            let mut head = [0; 4];
            file.read_full_at(&mut head, 0).map(|got| got < 4 || head != *b"RUN\n")
        });
        let is_ours = is_ours.map_err(|error| format!("{}: {error}", path.display()))?;
        let failed = |error: LsmError| error.to_string();
        if is_ours && let Some(run) = Run::open_file(&SystemFiles, path).map_err(failed)? {
            cat_run(&run, options).map_err(failed)?;
        } else if let Some(trees) = read_manifest(&SystemFiles, path).map_err(failed)? {
            trees.iter().for_each(|tree| cat_tree(tree, options));
        } else {
            cat_rows(path, options)?;
        }
    }
    Ok(())
}

fn cat_rows(path: &Path, options: &CatOptions) -> Result<(), String> {
    let mut reader = XlogReader::open(&SystemFiles, path).map_err(|error| error.to_string())?;
    let outcome = reader.for_each_row(|row, _| {
        if !options.wants_lsn(row.header.lsn) {
            return;
        }
        let value = row_to_json(row);
        if options.wants_space(value["BODY"]["space_id"].as_u64()) {
            options.print(&value);
        }
    });
    match outcome {
        Ok(_) => Ok(()),
        Err(damage) => Err(format!("{}: damaged at byte {}: {damage}", path.display(), damage.offset)),
    }
}

/// Entries of a run, with the space and the index that the manifest beside it names, if it does.
fn cat_run(run: &Run, options: &CatOptions) -> Result<(), LsmError> {
    let trees = newest_trees(&SystemFiles, run.path().parent().unwrap_or(Path::new("")))?;
    let names_it = |tree: &&TreeState| tree.ranges.iter().any(|range| range.slices.contains(&run.id()));
    let owner = trees.iter().find(names_it);
    if !options.wants_space(owner.map(|tree| u64::from(tree.space_id))) {
        return Ok(());
    }
    for block in 0..run.block_count() {
        let block = run.read_block(block)?;
        for at in 0..block.len() {
            let entry = block.entry(at);
            let mut head = Map::new();
            let kind = match entry.kind {
                EntryKind::Put => "PUT",
                EntryKind::Delete => "DELETE",
                EntryKind::Upsert => "UPSERT",
            };
            head.insert("type".into(), kind.into());
            if let Some(tree) = owner {
                head.insert("space_id".into(), tree.space_id.into());
                head.insert("index_id".into(), tree.index_id.into());
            }
            let mut body = Map::new();
            body.insert("key".into(), hex(entry.key).into());
            let mut reader = Reader::new(entry.value);
            if entry.kind != EntryKind::Delete {
                body.insert("tuple".into(), to_json(&mut reader));
            }
            let mut operations = Vec::new();
            while entry.kind == EntryKind::Upsert && !reader.is_empty() && reader.read_uint().is_ok() {
                operations.push(to_json(&mut reader));
            }
            if !operations.is_empty() {
                body.insert("operations".into(), operations.into());
            }
            options.print(&json!({ "HEADER": head, "BODY": body }));
        }
    }
    Ok(())
}

fn cat_tree(tree: &TreeState, options: &CatOptions) {
    if !options.wants_space(Some(u64::from(tree.space_id))) {
        return;
    }
    let ranges: Vec<Value> = tree
        .ranges
        .iter()
        .map(|range| json!({ "range_id": range.range_id, "begin": hex(&range.begin), "runs": range.slices }))
        .collect();
    let head = json!({ "type": "TREE", "tree_id": tree.tree_id, "space_id": tree.space_id, "index_id": tree.index_id });
    let body = json!({
        "created_lsn": tree.created_lsn, "dropped_lsn": tree.dropped_lsn, "dumped_lsn": tree.dumped_lsn, "ranges": ranges,
    });
    options.print(&json!({ "HEADER": head, "BODY": body }));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
            let rows = rows.iter().map(|row| json!({ "lsn": row.lsn, "row": row.what })).collect();
            object.insert("rows".into(), rows);
        }
        Lost::Lsns(from, to) => {
            object.insert("lsn_first".into(), (*from).into());
            object.insert("lsn_last".into(), (*to).into());
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

/// Reads every block of every file of a directory. Errors: the number of damaged files, after a line for each.
pub(crate) fn check(dir: &Path, as_json: bool) -> Result<(), String> {
    let mut checked = Checked { as_json, own: None, report: Vec::new(), files: 0, damaged: 0 };
    check_logs(dir, &mut checked)?;
    check_runs(&dir.join(LSM_DIR), &mut checked)?;
    if checked.files == 0 {
        return Err(format!(
            "{} holds no snapshot, log or file of rows on disk: it is no data directory",
            dir.display()
        ));
    }
    if as_json {
        println!("{}", Value::from(checked.report));
    }
    let Checked { files, damaged, .. } = checked;
    if damaged > 0 { Err(format!("{damaged} of {files} files are damaged")) } else { Ok(()) }
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
                "{path}: {rows} rows, good; behind them {} bytes from byte {} on are torn ({}): nobody was promised what is \
                 there, and the next start cuts it",
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
                "{path}: {items} {unit}, good; behind them {bytes} bytes from byte {offset} on are torn ({what}): nobody was promised what \
                 is there, and the next start cuts it"
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
