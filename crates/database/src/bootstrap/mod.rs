//! What a database begins with: the system spaces and their first rows.
//!
//! `rows.jsonl` holds the rows as Tarantool 2.6 makes them (`record.lua` recorded them), so that either server starts on what the
//! other wrote. The definitions of the system spaces are read from it at every start; the other rows only go into an
//! empty directory.

use crate::alter;
use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::session::{Context, Origin};
use crate::statement::Operation;
use serde_json::Value;
use std::rc::Rc;
use tuple::{SpaceId, msgpack};

const ROWS: &str = include_str!("rows.jsonl");

/// The recorded rows: space id and encoded row.
fn rows() -> impl Iterator<Item = (SpaceId, Vec<u8>)> {
    ROWS.lines().filter_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        let id = SpaceId(value.get(0)?.as_u64()? as u32);
        let mut row = Vec::new();
        encode_json(value.get(1)?, &mut row);
        Some((id, row))
    })
}

/// Appends a value that was written as JSON, as msgpack. For rows that are written down: those of a new database, and of tests.
pub fn encode_json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => msgpack::encode_nil(out),
        Value::Bool(value) => msgpack::encode_bool(out, *value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => msgpack::encode_uint(out, value),
            (_, Some(value)) => msgpack::encode_int(out, value),
            _ => msgpack::encode_f64(out, number.as_f64().unwrap_or(0.0)),
        },
        Value::String(text) => msgpack::encode_str(out, text.as_bytes()),
        Value::Array(values) => {
            msgpack::encode_array(out, values.len() as u32);
            values.iter().for_each(|value| encode_json(value, out));
        }
        Value::Object(pairs) => {
            msgpack::encode_map(out, pairs.len() as u32);
            for (key, value) in pairs {
                msgpack::encode_str(out, key.as_bytes());
                encode_json(value, out);
            }
        }
    }
}

/// Makes the system spaces, without rows. They must be there before any row can be read.
pub(crate) fn create_system_spaces(database: &Database) -> Result<()> {
    for (_, row) in rows().filter(|(id, _)| *id == alter::SPACE_ID) {
        let def = alter::parse_space(database, Origin::Replay, &row, crate::error::ErrorCode::CreateSpace)?;
        let format = alter::make_format(database, &def, &[])?;
        let kind = alter::kind_of(&def);
        let rows = alter::rows_of_kind(database, kind, def.id, &format)?;
        let space = Space::new(kind, def, format, rows);
        database.catalog.add_space(Rc::new(space));
    }
    for (_, row) in rows().filter(|(id, _)| *id == alter::INDEX_ID) {
        let parsed = alter::parse_index(database, Origin::Replay, &row)?;
        let space = database.space(parsed.space_id)?;
        alter::define_engine_indexes(database, &space, parsed)?;
    }
    // A view of sequences belongs to the space two before it in older layouts; ids here are adjacent except for this one.
    Ok(())
}

/// Fills an empty database with its first rows. Nothing is logged: the first snapshot holds them.
pub(crate) fn fill(database: &Database) -> Result<()> {
    let context = database.replay_context();
    let replicaset = database.replicaset_uuid();
    let instance = database.instance_uuid();
    for (id, row) in rows() {
        insert(database, &context, id, &row)?;
    }
    let mut row = Vec::new();
    encode_json(&serde_json::json!(["cluster", replicaset]), &mut row);
    insert(database, &context, alter::SCHEMA_ID, &row)?;
    row.clear();
    encode_json(&serde_json::json!([1, instance]), &mut row);
    insert(database, &context, alter::CLUSTER_ID, &row)
}

/// Applies a row without logging it: for rows of bootstrap and snapshot.
pub(crate) fn insert(database: &Database, context: &Context, space_id: SpaceId, row: &[u8]) -> Result<()> {
    let space = database.space(space_id)?;
    database
        .replay(context, &space, Operation::Insert { tuple: row })
        .map_err(|error| Error::system(format!("space {}: {error}", space.name())))
}
