//! Damaged files in the words of their owner: which rows of which spaces are concerned, and what else could be used.

use crate::alter::{INDEX_ID, SPACE_ID};
use crate::replay::{Body, decode_body};
use crate::statement::row_kind;
use hashbrown::HashMap;
use runtime::FileSystem;
use std::path::{Path, PathBuf};
use tuple::SpaceId;
use tuple::msgpack::{self, Kind, Reader};
use wal::{OnDamage, Refusal, Replay, Row};

/// Longest text of a key that is shown, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// Names of spaces and fields of primary keys, learnt from the rows of `_space` and `_index` as they go by.
#[derive(Default)]
pub struct Names {
    spaces: HashMap<SpaceId, String>,
    /// Numbers of the fields of the primary key, from 0.
    keys: HashMap<SpaceId, Vec<u32>>,
}

impl Names {
    /// Takes notice of a row.
    pub fn learn(&mut self, row: &Row<'_>) {
        if let Ok(body) = decode_body(row.body) {
            self.learn_body(row.header.kind, &body);
        }
    }

    /// As `learn`, of a row that was decoded.
    pub(crate) fn learn_body(&mut self, kind: u16, body: &Body<'_>) {
        if !matches!(kind, row_kind::INSERT | row_kind::REPLACE) {
            return;
        }
        match body.space_id {
            SPACE_ID => {
                if let Some((id, name)) = read_space(body.tuple) {
                    self.spaces.insert(SpaceId(id), name);
                }
            }
            INDEX_ID => {
                if let Some((id, fields)) = read_primary_key(body.tuple) {
                    self.keys.insert(SpaceId(id), fields);
                }
            }
            _ => {}
        }
    }

    /// A row in words, as far as they are known: `replace stock[17]`.
    pub fn describe(&self, row: &Row<'_>) -> String {
        let verb = match row.header.kind {
            row_kind::INSERT => "insert",
            row_kind::REPLACE => "replace",
            row_kind::UPDATE => "update",
            row_kind::DELETE => "delete",
            row_kind::UPSERT => "upsert",
            other => return format!("type {other}"),
        };
        let Ok(body) = decode_body(row.body) else { return verb.to_string() };
        let space = match self.spaces.get(&body.space_id) {
            Some(name) => name.clone(),
            None => format!("space {}", body.space_id),
        };
        let key = match row.header.kind {
            row_kind::UPDATE | row_kind::DELETE => format_list(body.key, None),
            _ => format_list(body.tuple, Some(self.keys.get(&body.space_id).map_or(&[0], |fields| &fields[..]))),
        };
        format!("{verb} {space}{key}")
    }
}

fn read_space(tuple: &[u8]) -> Option<(u32, String)> {
    let mut reader = Reader::new(tuple);
    reader.read_array().ok()?;
    let id = reader.read_uint().ok()?;
    reader.read_value().ok()?;
    Some((id as u32, String::from_utf8_lossy(reader.read_str().ok()?).into_owned()))
}

fn read_primary_key(tuple: &[u8]) -> Option<(u32, Vec<u32>)> {
    let mut reader = Reader::new(tuple);
    reader.read_array().ok()?;
    let id = reader.read_uint().ok()?;
    if reader.read_uint().ok()? != 0 {
        return None;
    }
    // Name, type and options.
    for _ in 0..3 {
        reader.read_value().ok()?;
    }
    let mut fields = Vec::new();
    for _ in 0..reader.read_array().ok()? {
        let mut part = Reader::new(reader.read_value().ok()?);
        if part.kind().ok()? == Kind::Array {
            part.read_array().ok()?;
            fields.push(part.read_uint().ok()? as u32);
            continue;
        }
        for _ in 0..part.read_map().ok()? {
            let name = part.read_str().ok()?;
            let value = part.read_value().ok()?;
            if name == b"field" {
                fields.push(Reader::new(value).read_uint().ok()? as u32);
            }
        }
    }
    Some((id as u32, fields))
}

/// Fields of an encoded list, all or those with the given numbers.
fn format_list(list: &[u8], fields: Option<&[u32]>) -> String {
    let mut reader = Reader::new(list);
    let values: Vec<&[u8]> = (0..reader.read_array().unwrap_or(0)).map_while(|_| reader.read_value().ok()).collect();
    let chosen: Vec<&[u8]> = match fields {
        Some(fields) => fields.iter().filter_map(|field| values.get(*field as usize).copied()).collect(),
        None => values,
    };
    let shown: Vec<String> = chosen
        .iter()
        .map(|value| {
            let mut text = String::new();
            msgpack::format_value(value, &mut text);
            if text.chars().count() > SHOWN_CHARS_MAX {
                text = text.chars().take(SHOWN_CHARS_MAX).collect::<String>() + "...";
            }
            text
        })
        .collect();
    format!("[{}]", shown.join(", "))
}

/// Reads rows and keeps none.
struct Nobody;

impl Replay for Nobody {
    fn apply(&mut self, _row: &Row<'_>) -> Result<(), Refusal> {
        Ok(())
    }
}

/// The newest snapshot before a damaged one that is good, and so are all logs behind it: together they hold everything. Reads all of
/// them.
pub fn older_snapshot(files: &dyn FileSystem, damaged: &Path, wal_dir: &Path) -> Option<PathBuf> {
    let older = wal::snapshots(files, damaged.parent()?).ok()?;
    let older = older.into_iter().rev().map(|(_, path)| path).skip_while(|path| path != damaged).skip(1);
    older.into_iter().find(|path| {
        let is_good = |report: &wal::FileReport| report.losses.is_empty();
        let Some(report) = wal::check_file(files, path, &mut Nobody).ok().filter(is_good) else { return false };
        let logs = wal::recover_into(files, wal_dir, &report.meta.vclock, OnDamage::Survey, &mut Nobody);
        logs.is_ok_and(|logs| logs.losses.is_empty())
    })
}

/// What to do about a damaged snapshot, in words.
pub fn advice(files: &dyn FileSystem, damaged: &Path, wal_dir: &Path) -> String {
    let name = damaged.file_name().unwrap_or_default().display();
    if wal::check_file(files, damaged, &mut Nobody).is_ok_and(|report| report.losses.is_empty()) {
        return format!("{name} itself is whole: what is damaged or missing beside it has to come from a backup");
    }
    match older_snapshot(files, damaged, wal_dir) {
        Some(older) => {
            let older = older.file_name().unwrap_or_default().display();
            format!(
                "{older} and the logs behind it are good and hold every row: move {name} to another directory and start again"
            )
        }
        None => "there is no older snapshot whose logs are all there and good".to_string(),
    }
}
