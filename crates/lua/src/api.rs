//! The C functions under `box`, as `modules/box.lua` finds them, which makes the public API of them. Here are those on sessions, errors and the process.

use crate::convert::encode;
use crate::disk_statistics::{disk_statistics, index_statistics};
use crate::registry::{context, database, registry};
use crate::state::{Function, Raise, State};
use crate::{module_api, scans, schema, statements, triggers};
use database::options::{Change, OPTIONS, Value};
use database::{Error, ErrorCode, Privileges, Space};
use mlua_sys as ffi;
use std::ffi::c_int;
use std::rc::Rc;
use tuple::{IndexId, SpaceId, Tuple};

pub(crate) type Outcome = Result<c_int, Raise>;

pub(crate) fn space_at(state: State, index: c_int) -> Result<Rc<Space>, Raise> {
    let id = state.check_number(index, "space id")?;
    let database = database();
    let space = database.space(SpaceId(id as u32))?;
    if space.rows.may_wait() || database.has_locks() {
        // Whatever is done to it may have to be waited for.
        state.check_may_wait()?;
    }
    Ok(space)
}

pub(crate) fn id_at(state: State, index: c_int) -> Result<u32, Raise> {
    Ok(state.check_number(index, "id")? as u32)
}

/// For a key, a row or operations: most need no more.
pub(crate) fn buffer() -> Vec<u8> {
    Vec::with_capacity(128)
}

/// A row as a result; no result if there is none.
pub(crate) fn push_found(state: State, tuple: Option<Tuple>) -> c_int {
    match tuple {
        Some(tuple) => {
            state.push_row(tuple.into_raw());
            1
        }
        None => 0,
    }
}

/// check_function_access(id): raises 42 if the user may not execute it
fn check_function_access(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    let database = database();
    if let Some(function) = database.catalog.function(id) {
        database.check_execute(&context(), &function.name, Some(&function))?;
    }
    Ok(0)
}

/// check_su(id): raises if the user may open no session
fn check_su(state: State) -> Outcome {
    database().check_session(id_at(state, 1)?)?;
    Ok(0)
}

fn session_exists(state: State) -> Outcome {
    let id = state.check_number(1, "id")? as u64;
    state.push_bool(database().session(id).is_some());
    Ok(1)
}

/// session_peer(id) -> address or nil
fn session_peer(state: State) -> Outcome {
    let id = state.check_number(1, "id")? as u64;
    match database().session(id) {
        None => return Err(Error::new(ErrorCode::SessionClosed, &[]).into()),
        Some(session) => match &session.peer {
            Some(peer) => state.push_str(peer),
            None => state.push_nil(),
        },
    }
    Ok(1)
}

/// set_session_triggers(name, whether there are any)
fn set_session_triggers(state: State) -> Outcome {
    let name = state.check_string(1, "name")?;
    let mut triggers = registry().session_triggers.borrow_mut();
    if state.boolean(2) {
        triggers.insert(name);
    } else {
        triggers.remove(&name);
    }
    Ok(0)
}

/// refresh_now(): `box.space` and its like show the schema
fn refresh_now(state: State) -> Outcome {
    crate::lua::sync_schema(state);
    Ok(0)
}

/// listen_addresses() -> {text...}
fn listen_addresses(state: State) -> Outcome {
    let addresses = registry().host.borrow().as_ref().map(|host| host.listen_addresses()).unwrap_or_default();
    state.new_table(addresses.len(), 0);
    let table = state.top();
    for (at, address) in addresses.iter().enumerate() {
        state.push_str(address);
        state.raw_set_index(table, at as c_int + 1);
    }
    Ok(1)
}

fn rotate_log(_state: State) -> Outcome {
    if let Some(host) = registry().host.borrow().clone() {
        host.rotate_log();
    }
    Ok(0)
}

/// recovery_report() -> {files, rows, bytes, cut_bytes}
fn recovery_report(state: State) -> Outcome {
    let Some(report) = database().recovery_report() else {
        state.push_nil();
        return Ok(1);
    };
    state.new_table(0, 4);
    let table = state.top();
    for (name, value) in [
        ("files", report.files as u64),
        ("rows", report.rows),
        ("bytes", report.bytes),
        ("cut_bytes", report.cut.map_or(0, |cut| cut.bytes)),
    ] {
        state.push_number(value as f64);
        state.set_field(table, name);
    }
    Ok(1)
}

/// compact_index(space_id, index_id): begins to merge what the index has on disk
fn compact_index(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    database().check_space_access(&context(), &space, Privileges::READ)?;
    if let Some(disk) = space.disk() {
        disk.compact(IndexId(index_id));
    }
    Ok(0)
}

/// wait_for_change(space_id): returns when nobody is changing the definition of the space
fn wait_for_change(state: State) -> Outcome {
    state.check_may_wait()?;
    database().wait_for_change(&context(), SpaceId(id_at(state, 1)?))?;
    crate::lua::sync_schema(state);
    Ok(0)
}

fn reset_statistics(_state: State) -> Outcome {
    database().statistics.reset();
    if let Some(engine) = database().disk_engine() {
        engine.reset_statistics();
    }
    Ok(0)
}

fn snapshot(state: State) -> Outcome {
    state.check_may_wait()?;
    database().make_checkpoint()?;
    Ok(0)
}

/// begin_backup() -> the files to copy, with a zero between them
fn begin_backup(state: State) -> Outcome {
    let files = database().begin_backup()?;
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    state.push_str(&names.join("\0"));
    Ok(1)
}

fn end_backup(_state: State) -> Outcome {
    database().end_backup();
    Ok(0)
}

/// error(code, arguments...) -> the text of a code with its holes filled
fn error_text(state: State) -> Outcome {
    let code = id_at(state, 1)?;
    let mut arguments = Vec::new();
    for index in 2..=state.top() {
        state.push_ref(registry().to_text.get());
        state.push_value(index);
        state.pcall(1, 1)?;
        arguments.push(state.string(-1).unwrap_or_default());
        state.pop(1);
    }
    let row = database::ERROR_TABLE.iter().find(|row| row.0 as u32 == code);
    let shown: Vec<&dyn std::fmt::Display> = arguments.iter().map(|text| text as &dyn std::fmt::Display).collect();
    match row {
        Some((_, _, text)) => state.push_str(&database::fill(text, &shown, false)),
        None => state.push_str("Unknown error"),
    }
    Ok(1)
}

/// error_template(code) -> the text of a code with its holes
fn error_template(state: State) -> Outcome {
    let code = id_at(state, 1)?;
    let row = database::ERROR_TABLE.iter().find(|row| row.0 as u32 == code);
    state.push_str(row.map_or("", |(_, _, text)| text));
    Ok(1)
}

/// error_codes() -> {NAME = code}
fn error_codes(state: State) -> Outcome {
    state.new_table(0, database::ERROR_TABLE.len());
    let table = state.top();
    for (code, name, _) in database::ERROR_TABLE {
        state.push_number(f64::from(*code as u32));
        state.set_field(table, name);
    }
    Ok(1)
}

/// session() -> id, user id, effective user id, kind, peer, sync
fn session(state: State) -> Outcome {
    let context = context();
    let session = &context.session;
    state.push_number(session.id as f64);
    state.push_number(f64::from(session.user.get()));
    state.push_number(f64::from(context.user(&database().catalog)));
    state.push_str(session.kind.name());
    match &session.peer {
        Some(peer) => state.push_str(peer),
        None => state.push_nil(),
    }
    let sync = if context.answers_wait { context.sync.get() } else { session.sync.get() };
    state.push_number(sync as f64);
    state.push_bool(session.is_alive.get());
    Ok(7)
}

/// session_push(value): sends it to the client of the request
fn session_push(state: State) -> Outcome {
    state.check_may_wait()?;
    let mut value = Vec::new();
    crate::convert::encode(state, 1, &mut value)?;
    let context = context();
    let channel = context.session.channel.borrow().clone();
    let Some(channel) = channel else {
        let what = format!("Session '{}'", context.session.kind.name());
        return Err(Error::new(ErrorCode::Unsupported, &[&what, &"push()"]).into());
    };
    let result = channel.push(context.sync.get(), context.awaited(), &value);
    crate::lua::sync_schema(state);
    result?;
    Ok(0)
}

/// set_user(id, is_session) -> id, birth: makes the context, or the whole session, another user's; whose it was
fn set_user(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    let context = context();
    let before = context.act_as(id, &database().catalog);
    if state.boolean(2) {
        database().set_session_user(&context.session, id);
    }
    state.push_number(f64::from(before.user));
    state.push_number(before.birth as f64);
    Ok(2)
}

/// restore_user(id, birth): gives the context back to the user whom `set_user` returned
fn restore_user(state: State) -> Outcome {
    let birth = state.check_number(2, "birth")? as u64;
    context().act_again(database::Acting::new(id_at(state, 1)?, birth));
    Ok(0)
}

/// check_drop_account(id): fails if who asks may not take all its rights from an account
fn check_drop_account(state: State) -> Outcome {
    database().check_may_drop_account(&context(), id_at(state, 1)?)?;
    Ok(0)
}

/// user_by_name(name) -> id, kind; user_name(id) -> name
fn user_name(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    state.push_str(&database().catalog.user_name(id));
    Ok(1)
}

fn password_hash(state: State) -> Outcome {
    use base64::Engine;
    let password = state.check_string(1, "password")?;
    let hash = wire::password_hash(password.as_bytes());
    state.push_str(&base64::engine::general_purpose::STANDARD.encode(hash));
    Ok(1)
}

/// scram_verifier(password) -> text
fn scram_verifier(state: State) -> Outcome {
    let password = state.check_string(1, "password")?;
    let mut salt = [0; wire::SCRAM_SALT_BYTES];
    database().environment().randomness.fill(&mut salt);
    let verifier = wire::Verifier::new(password.as_bytes(), &salt, wire::SCRAM_ITERATIONS);
    state.push_str(&verifier.to_text());
    Ok(1)
}

/// sha2_digest(password) -> text
fn sha2_digest(state: State) -> Outcome {
    use base64::Engine;
    let password = state.check_string(1, "password")?;
    let digest = wire::sha2_digest(password.as_bytes());
    state.push_str(&base64::engine::general_purpose::STANDARD.encode(digest));
    Ok(1)
}

/// info() -> table
fn info(state: State) -> Outcome {
    let database = database();
    state.new_table(0, 16);
    let table = state.top();
    state.push_str(&database.instance_uuid());
    state.set_field(table, "uuid");
    state.push_str(&database.replicaset_uuid());
    state.set_field(table, "cluster_uuid");
    state.push_bool(database.config.borrow().read_only || database.state() != database::State::Running);
    state.set_field(table, "ro");
    state.push_number(database.vclock().get(1).0 as f64);
    state.set_field(table, "lsn");
    state.push_number(database.vclock().signature() as f64);
    state.set_field(table, "signature");
    state.push_number((database.uptime_ns() / 1_000_000_000) as f64);
    state.set_field(table, "uptime");
    state.push_str(match database.state() {
        database::State::Loading => "loading",
        database::State::Running => "running",
        database::State::LogFailed(_) => "log failed",
        database::State::Stopped => "stopped",
    });
    state.set_field(table, "status");
    state.push_number(database.catalog.schema_version() as f64);
    state.set_field(table, "schema_version");
    state.new_table(0, 2);
    let vclock = state.top();
    for (id, lsn) in database.vclock().components() {
        state.push_number(f64::from(id));
        state.push_number(lsn.0 as f64);
        state.raw_set(vclock);
    }
    state.set_field(table, "vclock");
    let arena = database.arena();
    for (name, value) in [
        ("memory_used", arena.used() + arena.charged()),
        ("memory_limit", arena.limit()),
        ("memory_rows", arena.used()),
        ("memory_indexes", arena.charged()),
        ("memory_reserved", arena.reserved()),
        ("lua_kb", state.memory_kb()),
    ] {
        state.push_number(value as f64);
        state.set_field(table, name);
    }
    state.new_table(0, 10);
    let statistics = state.top();
    for (name, count) in database.statistics.all().into_iter().chain(database.statistics.network()) {
        state.push_number(count as f64);
        state.set_field(statistics, name);
    }
    state.set_field(table, "statistics");
    state.new_table(0, 4);
    let doors = state.top();
    for (name, door) in database.statistics.doors() {
        state.new_table(0, 6);
        let counts = state.top();
        for (count, number) in door.all() {
            state.push_number(number as f64);
            state.set_field(counts, count);
        }
        state.set_field(doors, name);
    }
    state.set_field(table, "doors");
    let expiry = database.expiry_counts();
    state.new_table(0, 4);
    let counts = state.top();
    for (name, count) in [("spaces", expiry.spaces), ("removed", expiry.removed), ("late_ms", expiry.late_ms)] {
        state.push_number(count as f64);
        state.set_field(counts, name);
    }
    state.push_bool(expiry.is_behind);
    state.set_field(counts, "is_behind");
    state.set_field(table, "expiry");
    state.new_table(0, 4);
    let limited = state.top();
    for space in database.catalog.spaces() {
        let Some(counts) = space.eviction_counts() else { continue };
        state.new_table(0, 7);
        let own = state.top();
        for (name, count) in [
            ("limit", counts.limit),
            ("used", counts.used),
            ("evicted", counts.evicted),
            ("evicted_bytes", counts.evicted_bytes),
            ("hits", counts.hits),
            ("misses", counts.misses),
            ("refused", counts.refused),
        ] {
            state.push_number(count as f64);
            state.set_field(own, name);
        }
        state.set_field(limited, &space.name());
    }
    state.set_field(table, "eviction");
    Ok(1)
}

/// set_shutdown_timeout(seconds)
fn set_shutdown_timeout(state: State) -> Outcome {
    let seconds = state.number(1).unwrap_or(0.0).max(0.0);
    registry().shutdown_timeout_ns.set(Some((seconds * 1e9) as u64));
    Ok(0)
}

/// set_errors_as_text(boolean)
fn set_errors_as_text(state: State) -> Outcome {
    registry().errors_as_text.set(state.boolean(1));
    Ok(0)
}

/// options() -> what `box.cfg` takes: {[name] = {types, default, is_dynamic, min, max, bounds_error, type_error}}
fn options(state: State) -> Outcome {
    state.new_table(0, OPTIONS.len());
    let list = state.top();
    for (spec, cfg) in OPTIONS.iter().filter_map(|spec| Some((spec, spec.cfg?))) {
        state.new_table(0, 7);
        let option = state.top();
        state.push_str(spec.kind.lua_types());
        state.set_field(option, "types");
        match spec.cfg_default_value() {
            None => state.push_nil(),
            Some(Value::Switch(is_on)) => state.push_bool(is_on),
            Some(Value::Whole(number)) => state.push_number(number as f64),
            Some(Value::Fraction(number)) => state.push_number(number),
            Some(text) => state.push_str(&text.to_string()),
        }
        state.set_field(option, "default");
        state.push_bool(cfg.change != Change::Refused);
        state.set_field(option, "is_dynamic");
        if let Some((min, max, text)) = cfg.bounds {
            state.push_number(min);
            state.set_field(option, "min");
            state.push_number(max);
            state.set_field(option, "max");
            state.push_str(text);
            state.set_field(option, "bounds_error");
        }
        if let Some(text) = cfg.type_error {
            state.push_str(text);
            state.set_field(option, "type_error");
        }
        state.set_field(list, spec.name);
    }
    Ok(1)
}

/// configure(options as a table of plain values) -> nil, or raises
fn configure(state: State) -> Outcome {
    let mut bytes = Vec::new();
    encode(state, 1, &mut bytes)?;
    let host = registry().host.borrow().clone();
    match host {
        Some(host) => host.configure(&bytes)?,
        None => return Err("box.cfg is not available here".into()),
    }
    Ok(0)
}

/// exit(code)
fn exit(state: State) -> Outcome {
    let code = match state.kind(1) {
        ffi::LUA_TBOOLEAN => i32::from(!state.boolean(1)),
        _ => state.number(1).unwrap_or(0.0) as i32,
    };
    let host = registry().host.borrow().clone();
    if let Some(host) = host {
        host.exit(code);
    }
    // The process ends in the next turn of the event loop; this fiber never goes on.
    loop {
        if runtime::fiber::current().is_none() {
            return Ok(0);
        }
        runtime::fiber::park();
    }
}

/// What `box.internal` offers.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("insert", statements::insert),
    ("replace", statements::replace),
    ("update", statements::update_row),
    ("upsert", statements::upsert),
    ("delete", statements::delete),
    ("get", scans::get),
    ("get_for_update", scans::get_for_update),
    ("check_key", scans::check_key),
    ("check_row", statements::check_row),
    ("select", scans::select),
    ("select_page", scans::select_page),
    ("tuple_position", scans::tuple_position),
    ("iterator", scans::iterator),
    ("iterator_next", scans::iterator_next),
    ("iterator_close", scans::iterator_close),
    ("count", scans::count),
    ("random", scans::random),
    ("size", scans::size),
    ("index_size", scans::index_size),
    ("compact_index", compact_index),
    ("wait_for_change", wait_for_change),
    ("index_statistics", index_statistics),
    ("disk_statistics", disk_statistics),
    ("truncate", statements::truncate),
    ("begin", statements::begin),
    ("commit", statements::commit),
    ("rollback", statements::rollback),
    ("is_in_txn", statements::is_in_txn),
    ("txn_id", statements::txn_id),
    ("run_triggers", triggers::run_triggers),
    ("savepoint", statements::savepoint),
    ("savepoint_close", statements::savepoint_close),
    ("rollback_to_savepoint", statements::rollback_to_savepoint),
    ("on_commit", triggers::on_commit),
    ("on_rollback", triggers::on_rollback),
    ("set_triggers", triggers::set_triggers),
    ("spaces", schema::spaces),
    ("space_definition", schema::space_definition),
    ("sequence_next", schema::sequence_next),
    ("sequence_set", schema::sequence_set),
    ("sequence_reset", schema::sequence_reset),
    ("sequence_current", schema::sequence_current),
    ("snapshot", snapshot),
    ("begin_backup", begin_backup),
    ("end_backup", end_backup),
    ("sequences", schema::sequences),
    ("sequence_definition", schema::sequence_definition),
    ("functions", schema::functions),
    ("function_definition", schema::function_definition),
    ("check_function_access", check_function_access),
    ("call_stored", module_api::functions::call_stored),
    ("reload_module", module_api::functions::reload_module),
    ("check_su", check_su),
    ("session_exists", session_exists),
    ("session_peer", session_peer),
    ("session_push", session_push),
    ("set_session_triggers", set_session_triggers),
    ("refresh_now", refresh_now),
    ("listen_addresses", listen_addresses),
    ("rotate_log", rotate_log),
    ("recovery_report", recovery_report),
    ("reset_statistics", reset_statistics),
    ("error_text", error_text),
    ("error_template", error_template),
    ("error_codes", error_codes),
    ("session", session),
    ("check_drop_account", check_drop_account),
    ("set_user", set_user),
    ("restore_user", restore_user),
    ("user_name", user_name),
    ("password_hash", password_hash),
    ("scram_verifier", scram_verifier),
    ("sha2_digest", sha2_digest),
    ("info", info),
    ("options", options),
    ("configure", configure),
    ("exit", exit),
    ("set_shutdown_timeout", set_shutdown_timeout),
    ("set_errors_as_text", set_errors_as_text),
];
