//! Functions about the server, its session and its catalog, most of them PostgreSQL's.

use crate::catalog;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::run::Run;
use crate::session::Session;
use crate::types::Base;
use crate::value::Value;
use std::rc::Rc;

const TEXT: Returns = Returns::Type(Base::Text);
const BOOL: Returns = Returns::Type(Base::Bool);
const INT8: Returns = Returns::Type(Base::Int8);
const ARRAY: Returns = Returns::Type(Base::Array);

fn session(run: &Run<'_>) -> Option<Rc<Session>> {
    crate::Sql::of(run.database).session(run.context.session.id)
}

fn text(text: impl Into<Rc<str>>) -> Result<Value> {
    Ok(Value::text(text))
}

fn as_text(value: &Value) -> &str {
    value.as_text().unwrap_or_default()
}

fn as_int(value: &Value) -> i64 {
    value.as_integer().and_then(|value| i64::try_from(value).ok()).unwrap_or(0)
}

fn optional(found: Option<String>) -> Result<Value> {
    Ok(found.map_or(Value::Null, Value::text))
}

fn optional_int(found: Option<i64>) -> Result<Value> {
    Ok(found.map_or(Value::Null, Value::Int))
}

fn user(run: &Run<'_>) -> Result<Value> {
    text(run.database.catalog.user_name(run.context.user(&run.database.catalog)))
}

/// The name of a type of a user's, by its number.
fn user_type_name(run: &Run<'_>, number: i64) -> Option<String> {
    crate::Sql::of(run.database).speak(run.context);
    catalog::name_of_number(run.database, number)
}

/// The names of the schemas that the session looks into.
fn path_names(run: &Run<'_>) -> Vec<String> {
    crate::Sql::of(run.database).speak(run.context);
    crate::schemas::path_names(run.database)
}

/// The sequence of a name, which may be quoted and have a schema before it, or of a number (`nextval('s'::regclass)`).
fn sequence_of(run: &Run<'_>, named: &Value) -> Result<Rc<database::Sequence>> {
    let name = match named {
        Value::Text(name) => name.to_string(),
        number => catalog::sequence_of_number(run, as_int(number)).unwrap_or_default(),
    };
    let missing = |name: &str| Error::new(Condition::UndefinedTable, format!("relation \"{name}\" does not exist"));
    if run.dialect != Dialect::Postgres {
        let last = name.rsplit('.').next().unwrap_or(&name).trim_matches('"');
        return run.database.catalog.sequence_by_name(last).ok_or_else(|| missing(last));
    }
    if let Some(found) = run.database.catalog.sequence_by_name(&name) {
        return Ok(found);
    }
    crate::Sql::of(run.database).speak(run.context);
    let full = crate::schemas::named(run.database, crate::schemas::Kind::Relation, &name)?;
    let found = run.database.catalog.sequence_by_name(&full).filter(|_| !crate::schemas::is_nowhere(&full));
    found.ok_or_else(|| missing(&full))
}

/// Ends what a session of PostgreSQL's clients does, or the session. Errors: it is somebody else's; it is one's own.
fn stop(run: &Run<'_>, number: i64, ends: bool) -> Result<Value> {
    let all = crate::Sql::of(run.database).all_sessions();
    let Some(found) = all.into_iter().find(|session| !session.is_mysql && i64::from(session.number) == number) else {
        return Ok(Value::Bool(false));
    };
    let own = session(run);
    let is_own = own.as_ref().is_some_and(|own| Rc::ptr_eq(own, &found));
    let is_same_user = own.is_some_and(|own| *own.user.borrow() == *found.user.borrow());
    if !is_same_user && run.context.user(&run.database.catalog) != database::ADMIN {
        let what = match ends {
            true => "must be a member of the role whose process is being terminated",
            false => "must be a member of the role whose query is being canceled",
        };
        return Err(Error::new(Condition::AccessDenied, what));
    }
    match (is_own, ends) {
        (true, true) => {
            let what = "terminating connection due to administrator command";
            return Err(Error::new(Condition::Terminated, what));
        }
        (true, false) => {
            return Err(Error::new(Condition::Cancelled, "canceling statement due to user request"));
        }
        _ => {}
    }
    if let Some(stop) = &*found.stop.borrow() {
        stop(ends);
    }
    Ok(Value::Bool(true))
}

fn moment_of(nanoseconds: i128) -> Value {
    let micros = nanoseconds.div_euclid(1000) as i64;
    Value::Datetime(Rc::new(tuple::datetime::Datetime {
        seconds: micros.div_euclid(1_000_000),
        nanoseconds: (micros.rem_euclid(1_000_000) * 1000) as i32,
        ..Default::default()
    }))
}

crate::functions::alike! {
    is_volatile: true;
    "current_user" (0, 0) TEXT, true => |run, _| user(run);
    "session_user" (0, 0) TEXT, true => |run, _| user(run);
    "user" (0, 0) TEXT, true => |run, _| user(run);
    "current_role" (0, 0) TEXT, true => |run, _| user(run);
    "current_database" (0, 0) TEXT, true => |run, _| text(session(run).map_or_else(|| "lycosa".to_string(), |session| session.database.borrow().clone()));
    "current_catalog" (0, 0) TEXT, true => |run, _| text(session(run).map_or_else(|| "lycosa".to_string(), |session| session.database.borrow().clone()));
    "current_schema" (0, 0) TEXT, true => |run, _| Ok(path_names(run).first().map_or(Value::Null, |name| Value::text(name.as_str())));
    "current_schemas" (1, 1) ARRAY, true => |run, a| {
        let implied = matches!(&a[0], Value::Bool(true)).then(|| "pg_catalog".to_string());
        Ok(crate::schemas::as_array(&implied.into_iter().chain(path_names(run)).collect::<Vec<_>>()))
    };
    "pg_backend_pid" (0, 0) Returns::Type(Base::Int4), true => |run, _| Ok(Value::Int(session(run).map_or(0, |session| i64::from(session.number))));
    "pg_terminate_backend" (1, 2) BOOL, true => |run, a| stop(run, as_int(&a[0]), true);
    "pg_cancel_backend" (1, 1) BOOL, true => |run, a| stop(run, as_int(&a[0]), false);
    "clock_timestamp" (0, 0) Returns::Type(Base::TimestampTz), true => |run, _| {
        Ok(moment_of(i128::from(run.database.environment().clock.wall_ns())))
    };
    "localtimestamp" (0, 0) Returns::Type(Base::Timestamp), true => |run, _| Ok(moment_of(run.now_ns));
    "pg_is_in_recovery" (0, 0) BOOL, true => |_, _| Ok(Value::Bool(false));
    "inet_server_addr" (0, 0) TEXT, true => |_, _| Ok(Value::Null);
    "inet_server_port" (0, 0) INT8, true => |_, _| Ok(Value::Null);
    "inet_client_addr" (0, 0) TEXT, true => |_, _| Ok(Value::Null);
    "txid_current" (0, 0) INT8, true => |run, _| Ok(Value::Int(run.database.txn_id_or_fresh(run.context) as i64));
    "current_setting" (1, 2) TEXT, true => |run, a| {
        let found = session(run).and_then(|session| session.get(as_text(&a[0])));
        match (found, a.get(1)) {
            (Some(value), _) => text(value),
            (None, Some(Value::Bool(true))) => Ok(Value::Null),
            (None, _) => {
                let what = format!("unrecognized configuration parameter \"{}\"", as_text(&a[0]));
                Err(Error::new(Condition::UndefinedObject, what))
            }
        }
    };
    "set_config" (3, 3) TEXT, false => |run, a| {
        if let Some(session) = session(run) {
            session.set(as_text(&a[0]), Some(as_text(&a[1])), matches!(a[2], Value::Bool(true)))?;
        }
        text(as_text(&a[1]))
    };
    "format_type" (2, 2) TEXT, false => |run, a| match &a[0] {
        Value::Null => Ok(Value::Null),
        number if let Some(own) = user_type_name(run, as_int(number)) => text(own),
        number => text(catalog::format_type(as_int(number), a[1].as_integer().map_or(-1, |value| value as i64))),
    };
    "pg_table_is_visible" (1, 1) BOOL, true => |run, a| Ok(Value::Bool(catalog::is_visible(run, as_int(&a[0]))));
    "pg_type_is_visible" (1, 1) BOOL, true => |run, a| {
        Ok(Value::Bool(user_type_name(run, as_int(&a[0])).is_none_or(|name| !name.contains('.'))))
    };
    "pg_collation_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_operator_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_opclass_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_opfamily_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_ts_config_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_ts_dict_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_ts_parser_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_ts_template_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "getdatabaseencoding" (0, 0) TEXT, true => |_, _| text("UTF8");
    "pg_conversion_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_statistics_obj_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "to_regtype" (1, 1) INT8, true => |run, a| {
        let wanted = as_text(&a[0]).trim_start_matches("pg_catalog.");
        let found = catalog::PG_TYPES.iter().find(|known| known.1 == wanted || catalog::format_type(known.0, -1) == wanted);
        optional_int(found.map(|known| known.0).or_else(|| catalog::number_of_name(run.database, as_text(&a[0]))))
    };
    "pg_get_function_result" (1, 1) TEXT, true => |_, _| Ok(Value::Null);
    "pg_get_function_arguments" (1, 1) TEXT, true => |_, _| Ok(Value::Null);
    "pg_function_is_visible" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(true));
    "pg_get_userbyid" (1, 1) TEXT, true => |run, a| {
        let id = u32::try_from(as_int(&a[0]) - 10).unwrap_or(u32::MAX);
        match as_int(&a[0]) {
            catalog::DATABASE_OWNER => text("pg_database_owner"),
            _ => text(run.database.catalog.user_name(id)),
        }
    };
    "pg_get_expr" (2, 3) TEXT, true => |_, a| Ok(a[0].clone());
    "pg_get_indexdef" (1, 3) TEXT, true => |run, a| optional(catalog::describe_index(run, as_int(&a[0]), a.get(1).map_or(0, as_int)));
    "pg_get_constraintdef" (1, 2) TEXT, true => |run, a| optional(catalog::describe_constraint(run, as_int(&a[0])));
    "pg_get_viewdef" (1, 2) TEXT, true => |run, a| {
        let number = match &a[0] {
            Value::Text(name) => catalog::number_of(run, name),
            number => Some(as_int(number)),
        };
        optional(number.and_then(|number| catalog::describe_view(run, number)))
    };
    "pg_get_ruledef" (1, 2) TEXT, true => |_, _| Ok(Value::Null);
    "pg_get_triggerdef" (1, 2) TEXT, true => |_, _| Ok(Value::Null);
    "pg_get_statisticsobjdef_columns" (1, 1) TEXT, true => |_, _| Ok(Value::Null);
    "pg_get_partkeydef" (1, 1) TEXT, true => |_, _| Ok(Value::Null);
    "pg_get_function_identity_arguments" (1, 1) TEXT, true => |_, _| Ok(Value::Null);
    "pg_relation_is_publishable" (1, 1) BOOL, true => |_, _| Ok(Value::Bool(false));
    "character_of_name" (2, 2) TEXT, false => |_, a| {
        let at = usize::try_from(as_int(&a[1])).ok();
        let found = at.and_then(|at| as_text(&a[0]).chars().nth(at));
        optional(found.map(String::from))
    };
    "pg_table_size" (1, 1) INT8, true => |run, a| optional_int(catalog::size_of(run, &a[0]));
    "pg_relation_size" (1, 2) INT8, true => |run, a| optional_int(catalog::size_of(run, &a[0]));
    "pg_total_relation_size" (1, 1) INT8, true => |run, a| optional_int(catalog::size_of(run, &a[0]));
    "acldefault" (2, 2) TEXT, true => |_, _| Ok(Value::Null);
    "sequence_last_value" (1, 1) INT8, true => |run, a| {
        let sequence = sequence_of(run, &a[0])?;
        run.database.check_sequence(run.context, &sequence, database::Privileges::READ)?;
        Ok(Value::Int(sequence.value().unwrap_or(sequence.def().start)))
    };
    "sequence_is_called" (1, 1) BOOL, true => |run, a| Ok(Value::Bool(sequence_of(run, &a[0])?.value().is_some()));
    "regnamespace_number" (1, 1) INT8, true => |run, a| match catalog::schema_number(run.database, as_text(&a[0])) {
        Some(number) => Ok(Value::Int(number)),
        None => Err(Error::new(Condition::UndefinedObject, format!("schema \"{}\" does not exist", as_text(&a[0])))),
    };
    "regnamespace_name" (1, 1) TEXT, true => |run, a| match catalog::schema_of_number(run.database, as_int(&a[0])) {
        Some(name) => text(catalog::quoted(&name)),
        None if as_int(&a[0]) == 0 => text("-"),
        None => text(as_int(&a[0]).to_string()),
    };
    "pg_get_serial_sequence" (2, 2) TEXT, true => |run, a| {
        crate::Sql::of(run.database).speak(run.context);
        let table = crate::schemas::named(run.database, crate::schemas::Kind::Relation, as_text(&a[0]))?;
        let table = crate::table::Table::find(run.database, run.dialect, &table)?;
        let number = table.columns.iter().position(|column| column.name == as_text(&a[1]));
        let Some(number) = number else {
            let what = format!("column \"{}\" of relation \"{}\" does not exist", as_text(&a[1]), table.name);
            return Err(Error::new(Condition::UndefinedColumn, what));
        };
        let found = catalog::sequence_of_column(run.database, &table, number);
        optional(found.map(|sequence| {
            let def = sequence.def();
            let (schema, local) = crate::schemas::split(run.database, &def.name);
            let schema = crate::schemas::schema_name(schema.as_deref());
            format!("{}.{}", catalog::quoted(schema), catalog::quoted(local))
        }))
    };
    "setval" (2, 3) INT8, true => |run, a| {
        let def = sequence_of(run, &a[0])?.def();
        let wanted = as_int(&a[1]);
        let is_called = !matches!(a.get(2), Some(Value::Bool(false)));
        let last = if is_called { wanted } else { wanted.saturating_sub(def.step) };
        match !is_called && wanted == def.start {
            true => run.database.sequence_reset(run.context, def.id)?,
            false => run.database.sequence_set(run.context, def.id, last)?,
        }
        Ok(Value::Int(wanted))
    };
    "name_along_path" (1, 1) TEXT, true => |run, a| {
        let name = crate::schemas::named(run.database, crate::schemas::Kind::Relation, a[0].as_text().unwrap_or_default())?;
        Ok(Value::text(name))
    };
    "nextval" (1, 1) INT8, true => |run, a| {
        let id = sequence_of(run, &a[0])?.def().id;
        let next = run.database.sequence_next(run.context, id)?;
        if let Some(session) = &run.session {
            session.last_insert_id.set(next as u64);
        }
        Ok(Value::Int(next))
    };
    "pg_sleep" (1, 1) TEXT, true => |run, a| {
        let seconds = a[0].as_double().unwrap_or(0.0).clamp(0.0, 31_536_000.0);
        run.sleep((seconds * 1e9) as u64)?;
        text("")
    };
    "lastval" (0, 0) INT8, true => |run, _| {
        let last = run.session.as_ref().map_or(0, |session| session.last_insert_id.get());
        match last {
            0 => Err(Error::new(Condition::NotInState, "lastval is not yet defined in this session")),
            last => Ok(Value::Int(last as i64)),
        }
    };
    "currval" (1, 1) INT8, true => |run, a| {
        let sequence = sequence_of(run, &a[0])?;
        sequence.value().map(Value::Int).ok_or_else(|| {
            Error::new(Condition::TransactionState, format!("currval of sequence \"{}\" is not yet defined", sequence.def().name))
        })
    };
    "obj_description" (1, 2) TEXT, true => |run, a| Ok(crate::catalog::description(run, as_int(&a[0]), 0, a.get(1).map(|class| class.as_text().unwrap_or_default())));
    "col_description" (2, 2) TEXT, true => |run, a| Ok(crate::catalog::description(run, as_int(&a[0]), as_int(&a[1]), Some("pg_class")));
    "shobj_description" (2, 2) TEXT, true => |_, _| Ok(Value::Null);
    "pg_encoding_to_char" (1, 1) TEXT, true => |_, _| text("UTF8");
    "pg_char_to_encoding" (1, 1) INT8, true => |_, _| Ok(Value::Int(6));
    "pg_tablespace_location" (1, 1) TEXT, true => |_, _| text("");
    "pg_size_pretty" (1, 1) TEXT, true => |_, a| text(format!("{} bytes", as_int(&a[0])));
    "has_table_privilege" (2, 3) BOOL, true => |run, a| {
        let (name, wanted) = if a.len() == 3 { (&a[1], &a[2]) } else { (&a[0], &a[1]) };
        let name = as_text(name).rsplit('.').next().unwrap_or_default().trim_matches('"');
        let table = crate::table::Table::find(run.database, run.dialect, name)?;
        let (right, finer) = match as_text(wanted).to_ascii_lowercase().as_str() {
            "select" => (database::Privileges::READ, database::Privileges::READ),
            "insert" => (database::Privileges::WRITE, database::Privileges::INSERT),
            "update" => (database::Privileges::WRITE, database::Privileges::UPDATE),
            "delete" => (database::Privileges::WRITE, database::Privileges::DELETE),
            _ => (database::Privileges::WRITE, database::Privileges::WRITE),
        };
        let may = |right: u32| run.database.check_space_access(run.context, &table.space, right).is_ok();
        Ok(Value::Bool(may(right) || may(finer)))
    };
    "regclass_number" (1, 1) INT8, true => |run, a| run.once("regclass_number", &a[0], |run| match catalog::number_of(run, as_text(&a[0])) {
        Some(number) => Ok(Value::Int(number)),
        None => match as_text(&a[0]).parse::<i64>() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => Err(Error::new(Condition::UndefinedTable, format!("relation \"{}\" does not exist", as_text(&a[0])))),
        },
    });
    "to_regclass" (1, 1) INT8, true => |run, a| {
        run.once("to_regclass", &a[0], |run| Ok(catalog::number_of(run, as_text(&a[0])).map_or(Value::Null, Value::Int)))
    };
    "regclass_name" (1, 1) TEXT, true => |run, a| run.once("regclass_name", &a[0], |run| match catalog::name_of(run, as_int(&a[0])) {
        Some(name) => text(name),
        None if as_int(&a[0]) == 0 => text("-"),
        None => text(as_int(&a[0]).to_string()),
    });
    "regtype_number" (1, 1) INT8, true => |run, a| run.once("regtype_number", &a[0], |run| {
        let wanted = as_text(&a[0]).replace('"', "");
        let wanted = wanted.trim_start_matches("pg_catalog.");
        let found = catalog::PG_TYPES.iter().find(|known| known.1 == wanted || catalog::format_type(known.0, -1) == wanted);
        let found = found.map(|known| known.0).or_else(|| catalog::number_of_name(run.database, as_text(&a[0])));
        found.map(Value::Int).ok_or_else(|| {
            Error::new(Condition::UndefinedObject, format!("type \"{wanted}\" does not exist"))
        })
    });
    "regtype_name" (1, 1) TEXT, true => |run, a| {
        text(user_type_name(run, as_int(&a[0])).unwrap_or_else(|| catalog::format_type(as_int(&a[0]), -1)))
    };
}

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}
