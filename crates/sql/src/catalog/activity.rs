//! `pg_stat_activity`, the sessions of whoever asks, and `pg_cursors`.

use super::{View, int, text};
use crate::value::Value;

crate::catalog::virtuals! {
    pg_catalog.pg_stat_activity [
        datid: Int8, datname: Text, pid: Int4, leader_pid: Int4, usesysid: Int8, usename: Text, application_name: Text, client_addr: Text,
        client_hostname: Text, client_port: Int4, backend_start: TimestampTz, xact_start: TimestampTz, query_start: TimestampTz,
        state_change: TimestampTz, wait_event_type: Text, wait_event: Text, state: Text, backend_xid: Int8, backend_xmin: Int8,
        query_id: Int8, query: Text, backend_type: Text,
    ] => activity;
    pg_catalog.pg_cursors [name: Text, statement: Text, is_holdable: Bool, is_binary: Bool, is_scrollable: Bool, creation_time: TimestampTz] => cursors;
}

fn cursors(view: &View<'_>) -> Vec<Vec<Value>> {
    let session = crate::Sql::of(view.database).session(view.context.session.id);
    session.map_or_else(Vec::new, |session| crate::cursors::rows_of(&session))
}

/// What other sessions do is not told: their state is null, as where PostgreSQL does not track it.
fn activity(view: &View<'_>) -> Vec<Vec<Value>> {
    let sql = crate::Sql::of(view.database);
    let Some(mine) = sql.session(view.context.session.id) else { return Vec::new() };
    let is_admin = view.context.user(&view.database.catalog) == database::ADMIN;
    let mut sessions = sql.all_sessions();
    sessions.retain(|session| !session.is_mysql && (is_admin || *session.user.borrow() == *mine.user.borrow()));
    sessions.sort_by_key(|session| session.number);
    let mut rows = Vec::new();
    for session in sessions {
        let state = if session.number == mine.number { text("active") } else { Value::Null };
        let mut row = vec![Value::Null; 22];
        row[0] = int(1);
        row[1] = text(&session.database.borrow());
        row[2] = int(i64::from(session.number));
        row[5] = text(&session.user.borrow());
        row[6] = text(&session.get("application_name").unwrap_or_default());
        row[16] = state;
        row[20] = text("");
        row[21] = text("client backend");
        rows.push(row);
    }
    rows
}
