//! The C functions under `box` that run SQL.

use crate::api::Outcome;
use crate::convert::{encode_array, push_bytes_value};
use crate::lua::sync_schema;
use crate::registry::{context, database};
use crate::state::{Function, State};
use sql::{Source, Sql};

/// sql_execute(text or number of a prepared statement, parameters or nil) -> what came of it
fn sql_execute(state: State) -> Outcome {
    state.check_may_wait()?;
    let mut params = Vec::new();
    if !state.is_nil(2) {
        encode_array(state, 2, &mut params)?;
    }
    let (database, context) = (database(), context());
    let text;
    let source = match state.number(1) {
        Some(id) if state.kind(1) == mlua_sys::LUA_TNUMBER => Source::Prepared(id as u32),
        _ => {
            text = state.check_string(1, "sql")?;
            Source::Text(&text)
        }
    };
    let done = Sql::of(&database).execute(&database, &context, source, &params);
    sync_schema(state);
    let mut answer = Vec::new();
    done?.encode(&mut answer, true);
    push_bytes_value(state, &answer)?;
    Ok(1)
}

/// sql_prepare(text or number of a prepared statement) -> what it tells of itself
fn sql_prepare(state: State) -> Outcome {
    let (database, context) = (database(), context());
    let sql = Sql::of(&database);
    let description = match state.number(1) {
        Some(id) if state.kind(1) == mlua_sys::LUA_TNUMBER => sql.describe_prepared(&database, &context, id as u32)?,
        _ => sql.prepare_for(&database, &context, &state.check_string(1, "sql")?)?,
    };
    let mut answer = Vec::new();
    description.encode(&mut answer, true);
    push_bytes_value(state, &answer)?;
    Ok(1)
}

/// sql_unprepare(number of a prepared statement)
fn sql_unprepare(state: State) -> Outcome {
    let id = state.check_number(1, "statement id")? as u32;
    Sql::of(&database()).unprepare(&context(), id)?;
    Ok(0)
}

/// See the head of this file.
pub(crate) const FUNCTIONS: &[(&str, Function)] =
    &[("sql_execute", sql_execute), ("sql_prepare", sql_prepare), ("sql_unprepare", sql_unprepare)];
