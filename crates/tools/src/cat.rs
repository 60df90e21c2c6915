//! `lycosa cat`: prints the rows of logs, snapshots, runs and manifests without a server.

use clap::Args;
use runtime::{FileSystem, OpenMode, SystemFiles};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use storage::lsm::{EntryKind, LsmError, Run, TreeState, newest_trees, read_manifest};
use tuple::msgpack::{Kind, Reader};
use wal::{Row, XlogReader};
use wire::key;

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
    head.insert("lsn".into(), header.lsn.0.into());
    if header.replica_id != 0 {
        head.insert("replica_id".into(), header.replica_id.into());
    }
    if header.group_id != 0 {
        head.insert("group_id".into(), header.group_id.into());
    }
    head.insert("timestamp".into(), header.timestamp.into());
    if !header.is_commit || header.tsn != header.lsn {
        head.insert("tsn".into(), header.tsn.0.into());
    }
    let mut body = Map::new();
    let mut reader = Reader::new(row.body);
    for _ in 0..reader.read_map().unwrap_or(0) {
        let name = match reader.read_uint().unwrap_or(0) {
            key::SPACE_ID => "space_id",
            key::INDEX_ID => "index_id",
            key::INDEX_BASE => "index_base",
            key::KEY => "key",
            key::TUPLE => "tuple",
            key::OPS => "operations",
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
#[derive(Args, Debug)]
pub struct Options {
    /// Files: .xlog, .snap, .run and manifest files of the directory `lsm`, and Tarantool's .run, .index and .vylog
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object a line instead of YAML
    #[arg(long)]
    json: bool,
    /// Print rows of system spaces, too
    #[arg(long)]
    show_system: bool,
    /// Print only rows of the space with this number; may be repeated
    #[arg(long)]
    space: Vec<u64>,
    /// Print only rows with this lsn or a greater one
    #[arg(long)]
    from: Option<i64>,
    /// Print only rows with lsns below this one
    #[arg(long)]
    to: Option<i64>,
}

impl Options {
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

/// Prints what is in files. Returns the exit code. Errors: damage, with what was readable before it printed.
pub fn run(options: &Options) -> Result<i32, String> {
    runtime::signals::end_on_closed_output();
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
    Ok(0)
}

fn cat_rows(path: &Path, options: &Options) -> Result<(), String> {
    let mut reader = XlogReader::open(&SystemFiles, path).map_err(|error| error.to_string())?;
    let outcome = reader.for_each_row(|row, _| {
        if !options.wants_lsn(row.header.lsn.0) {
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
fn cat_run(run: &Run, options: &Options) -> Result<(), LsmError> {
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
                head.insert("space_id".into(), tree.space_id.0.into());
                head.insert("index_id".into(), tree.index_id.0.into());
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

fn cat_tree(tree: &TreeState, options: &Options) {
    if !options.wants_space(Some(u64::from(tree.space_id))) {
        return;
    }
    let ranges: Vec<Value> = tree
        .ranges
        .iter()
        .map(|range| json!({ "range_id": range.range_id, "begin": hex(&range.begin), "runs": range.slices }))
        .collect();
    let head =
        json!({ "type": "TREE", "tree_id": tree.tree_id, "space_id": tree.space_id.0, "index_id": tree.index_id.0 });
    let body = json!({
        "created_lsn": tree.created_lsn.0, "dropped_lsn": tree.dropped_lsn.map(|lsn| lsn.0), "dumped_lsn": tree.dumped_lsn.0, "ranges": ranges,
    });
    options.print(&json!({ "HEADER": head, "BODY": body }));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
