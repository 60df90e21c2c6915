//! Variables: `@@system` ones, which programs ask for and set, and `@user` ones, which they keep values in.

use crate::control::Assignment;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::session::Session;
use crate::types::{Base, Type};
use crate::value::Value;

/// Stands in names of columns for the name of the database.
pub(crate) const DATABASE_MARK: &str = "\u{1}";
/// User variables of a session.
const USER_MAX: usize = 1000;
/// Bytes of their values.
const USER_BYTES_MAX: usize = 16 << 20;

/// Whom a variable is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The session.
    Session,
    /// All sessions.
    Global,
}

/// What gets a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// `@@name`, in small letters.
    System(Scope, String),
    /// `@name`, in small letters.
    User(String),
    /// DO: the value is not kept.
    Nothing,
}

impl Target {
    /// What a name on the left of SET means.
    pub(crate) fn of(name: &str, scope: Scope) -> Self {
        let lower = name.to_ascii_lowercase();
        if let Some(system) = lower.strip_prefix("@@") {
            let (scope, name) = match system.split_once('.') {
                Some(("global" | "persist" | "persist_only", name)) => (Scope::Global, name),
                Some(("session" | "local", name)) => (Scope::Session, name),
                _ => (scope, system),
            };
            return Target::System(scope, name.to_string());
        }
        match lower.strip_prefix('@') {
            Some(name) => Target::User(name.to_string()),
            None => Target::System(scope, lower),
        }
    }
}

/// What a variable is like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A whole number.
    Number,
    /// ON or OFF, shown as 1 or 0 by queries.
    Switch,
    /// Text.
    Text,
}

/// A system variable.
struct Variable {
    name: &'static str,
    kind: Kind,
    default: &'static str,
    /// Clients may not change it.
    is_fixed: bool,
}

macro_rules! variables {
    ($($name:ident $kind:ident $fixed:ident $default:expr;)*) => {
        /// Those that programs ask for, in the order of their names.
        const VARIABLES: &[Variable] = &[$(Variable {
            name: stringify!($name),
            kind: Kind::$kind,
            default: $default,
            is_fixed: variables!($fixed),
        },)*];
    };
    (fixed) => { true };
    (free) => { false };
}

const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

variables! {
    auto_generate_certs Switch fixed "OFF";
    auto_increment_increment Number fixed "1";
    auto_increment_offset Number fixed "1";
    autocommit Switch free "ON";
    back_log Number fixed "128";
    basedir Text fixed "/";
    big_tables Switch free "OFF";
    binlog_format Text free "ROW";
    character_set_client Text free "utf8mb4";
    character_set_connection Text free "utf8mb4";
    character_set_database Text free "utf8mb4";
    character_set_filesystem Text free "binary";
    character_set_results Text free "utf8mb4";
    character_set_server Text free "utf8mb4";
    character_set_system Text fixed "utf8mb3";
    collation_connection Text free "utf8mb4_unicode_ci";
    collation_database Text free "utf8mb4_unicode_ci";
    collation_server Text free "utf8mb4_unicode_ci";
    completion_type Text fixed "NO_CHAIN";
    connect_timeout Number fixed "10";
    default_authentication_plugin Text fixed "mysql_native_password";
    default_storage_engine Text free "InnoDB";
    default_tmp_storage_engine Text free "InnoDB";
    default_week_format Number free "0";
    div_precision_increment Number fixed "4";
    event_scheduler Text fixed "OFF";
    explicit_defaults_for_timestamp Switch fixed "ON";
    foreign_key_checks Switch free "ON";
    general_log Switch fixed "OFF";
    group_concat_max_len Number free "1048576";
    gtid_mode Text fixed "OFF";
    have_openssl Text fixed "DISABLED";
    have_ssl Text fixed "DISABLED";
    hostname Text fixed "localhost";
    information_schema_stats_expiry Number free "0";
    init_connect Text fixed "";
    innodb_flush_log_at_trx_commit Number fixed "1";
    innodb_lock_wait_timeout Number free "50";
    innodb_read_only Switch fixed "OFF";
    interactive_timeout Number free "28800";
    join_buffer_size Number free "262144";
    last_insert_id Number fixed "0";
    lc_time_names Text fixed "en_US";
    license Text fixed "GPL";
    local_infile Switch fixed "OFF";
    lock_wait_timeout Number free "31536000";
    log_bin Switch fixed "OFF";
    lower_case_file_system Switch fixed "OFF";
    lower_case_table_names Number fixed "0";
    max_allowed_packet Number free "67108864";
    max_connections Number fixed "100000";
    max_execution_time Number free "0";
    max_heap_table_size Number free "16777216";
    net_buffer_length Number free "16384";
    net_read_timeout Number free "30";
    net_write_timeout Number free "60";
    optimizer_switch Text free "";
    performance_schema Switch fixed "OFF";
    port Number fixed "3306";
    protocol_version Number fixed "10";
    query_cache_size Number fixed "0";
    query_cache_type Text fixed "OFF";
    read_only Switch fixed "OFF";
    server_id Number fixed "1";
    session_track_gtids Text free "OFF";
    session_track_schema Switch free "OFF";
    session_track_state_change Switch free "OFF";
    session_track_system_variables Text free "";
    skip_networking Switch fixed "OFF";
    socket Text fixed "";
    sort_buffer_size Number free "262144";
    sql_auto_is_null Switch free "OFF";
    sql_big_selects Switch free "ON";
    sql_log_bin Switch free "ON";
    sql_mode Text free SQL_MODE;
    sql_notes Switch free "ON";
    sql_quote_show_create Switch free "ON";
    sql_require_primary_key Switch free "OFF";
    sql_safe_updates Switch free "OFF";
    sql_select_limit Number free "18446744073709551615";
    sql_warnings Switch free "OFF";
    ssl_ca Text fixed "";
    storage_engine Text free "InnoDB";
    super_read_only Switch fixed "OFF";
    system_time_zone Text fixed "UTC";
    table_definition_cache Number fixed "2000";
    thread_stack Number fixed "1048576";
    time_zone Text free "SYSTEM";
    timestamp Number fixed "0";
    tls_version Text fixed "";
    tmp_table_size Number free "16777216";
    transaction_isolation Text free "READ-COMMITTED";
    transaction_read_only Switch free "OFF";
    tx_isolation Text free "READ-COMMITTED";
    tx_read_only Switch free "OFF";
    unique_checks Switch free "ON";
    version Text fixed concat!("8.0.36-lycosa-", env!("CARGO_PKG_VERSION"));
    version_comment Text fixed "Lycosa";
    version_compile_machine Text fixed "x86_64";
    version_compile_os Text fixed "Linux";
    wait_timeout Number free "28800";
}

fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

fn unknown(name: &str) -> Error {
    Error::new(Condition::UnknownVariable, format!("Unknown system variable '{name}'"))
}

/// The name of a variable without what says whose it is; two names that mean one are one.
pub(crate) fn plain_name(name: &str) -> String {
    let lower = name.trim_start_matches("@@").to_ascii_lowercase();
    let name = match lower.split_once('.') {
        Some(("session" | "local" | "global", name)) => name,
        _ => &lower,
    };
    match name {
        "tx_isolation" => "transaction_isolation".to_string(),
        "tx_read_only" => "transaction_read_only".to_string(),
        "identity" => "last_insert_id".to_string(),
        name => name.to_string(),
    }
}

/// The type of what a system variable gives. Errors: there is none of the name.
pub(crate) fn type_of(name: &str) -> Result<Type> {
    let name = plain_name(name);
    let variable = match name.as_str() {
        "warning_count" | "error_count" => return Ok(Type::of(Base::Int8)),
        name => find(name).ok_or_else(|| unknown(name))?,
    };
    Ok(match variable.kind {
        Kind::Number if variable.default.len() > 19 => Type::of(Base::Uint8),
        Kind::Number | Kind::Switch => Type::of(Base::Int8),
        Kind::Text => Type::TEXT,
    })
}

/// The value of a system variable. Errors: there is none of the name.
pub(crate) fn value_of(session: Option<&Session>, name: &str) -> Result<Value> {
    let name = plain_name(name);
    let number = |number: i128| Value::integer(number).unwrap_or_default();
    match name.as_str() {
        "warning_count" => return Ok(number(session.map_or(0, |session| session.warnings.borrow().len() as i128))),
        "error_count" => {
            let count = |session: &Session| session.warnings.borrow().iter().filter(|one| one.0 == "Error").count();
            return Ok(number(session.map_or(0, |session| count(session) as i128)));
        }
        "last_insert_id" => return Ok(number(session.map_or(0, |session| i128::from(session.last_insert_id.get())))),
        _ => {}
    }
    let variable = find(&name).ok_or_else(|| unknown(&name))?;
    let value = session.and_then(|session| session.changed_to(&name));
    let value = value.unwrap_or_else(|| variable.default.to_string());
    Ok(match variable.kind {
        Kind::Text => Value::text(value),
        Kind::Number => number(value.parse().unwrap_or(0)),
        Kind::Switch => Value::Int(i64::from(value == "ON")),
    })
}

/// All of them, as SHOW VARIABLES has them.
pub(crate) fn all(session: Option<&Session>) -> Vec<(String, String)> {
    let value = |variable: &Variable| {
        let changed = session.and_then(|session| session.changed_to(&plain_name(variable.name)));
        changed.unwrap_or_else(|| variable.default.to_string())
    };
    VARIABLES.iter().map(|variable| (variable.name.to_string(), value(variable))).collect()
}

/// Gives a target its value; `None`: what it was at the beginning. Returns the name of the system variable that has changed.
///
/// Errors: there is none of the name; it cannot be changed, or not to this.
pub(crate) fn assign(session: &Session, assignment: &Assignment, value: Option<Value>) -> Result<Option<String>> {
    let (scope, name) = match &assignment.target {
        Target::Nothing => return Ok(None),
        Target::User(name) => {
            set_user(session, name, value.unwrap_or_default())?;
            return Ok(None);
        }
        Target::System(scope, name) => (*scope, name.as_str()),
    };
    if name == "names" {
        let charset =
            value.map_or_else(|| "utf8mb4".to_string(), |value| value.display(Dialect::Mysql).to_ascii_lowercase());
        check_charset(&charset)?;
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            session.change(name, Some(charset.clone()))?;
        }
        return Ok(Some("character_set_client".to_string()));
    }
    let name = plain_name(name);
    let variable = find(&name).ok_or_else(|| unknown(&name))?;
    if variable.is_fixed {
        return Err(Error::new(Condition::Unchangeable, format!("Variable '{name}' is a read only variable")));
    }
    if scope == Scope::Global {
        let what = "Access denied; you need (at least one of) the SUPER privilege(s) for this operation";
        return Err(Error::new(Condition::SuperWanted, what).hint("Options of the server are set by box.cfg."));
    }
    let wrong = |shown: &str| {
        Error::new(Condition::WrongValue, format!("Variable '{name}' can't be set to the value of '{shown}'"))
    };
    let Some(value) = value else {
        session.change(&name, None)?;
        return Ok(Some(name));
    };
    let shown = if value.is_null() { "NULL".to_string() } else { value.display(Dialect::Mysql) };
    if name == "character_set_results" && shown.eq_ignore_ascii_case("null") {
        // As they are: all that is sent is UTF-8.
        session.change(&name, Some(String::new()))?;
        return Ok(Some(name));
    }
    let kept = match variable.kind {
        Kind::Switch => match (shown.to_ascii_uppercase().as_str(), value.as_integer()) {
            ("ON" | "TRUE", _) | (_, Some(1)) => "ON".to_string(),
            ("OFF" | "FALSE", _) | (_, Some(0)) => "OFF".to_string(),
            _ => return Err(wrong(&shown)),
        },
        Kind::Number => match value.as_integer() {
            Some(number) => number.max(0).to_string(),
            None => {
                let what = format!("Incorrect argument type to variable '{name}'");
                return Err(Error::new(Condition::WrongType, what));
            }
        },
        Kind::Text => checked_text(&name, &value, shown).map_err(|shown| match name.as_str() {
            "time_zone" => {
                let what = format!("Unknown or incorrect time zone: '{shown}'");
                Error::new(Condition::WrongValue, what).mysql(1298)
            }
            _ => wrong(&shown),
        })?,
    };
    if name.starts_with("character_set_") && !kept.is_empty() {
        check_charset(&kept)?;
    }
    session.change(&name, Some(kept))?;
    Ok(Some(name))
}

/// Text as a variable keeps it; else what is wrong.
fn checked_text(name: &str, value: &Value, shown: String) -> std::result::Result<String, String> {
    match name {
        "transaction_isolation" => match shown.to_ascii_uppercase().as_str() {
            level @ ("READ-UNCOMMITTED" | "READ-COMMITTED" | "REPEATABLE-READ" | "SERIALIZABLE") => {
                Ok(level.to_string())
            }
            _ => Err(shown),
        },
        "time_zone" => match crate::zones::of_mysql(&shown) {
            Some(_) => Ok(shown),
            None => Err(shown),
        },
        "sql_mode" => match value.as_integer() {
            Some(0) => Ok(String::new()),
            Some(_) => Err(shown),
            None => {
                let modes =
                    shown.split(',').map(|mode| mode.trim().to_ascii_uppercase()).filter(|mode| !mode.is_empty());
                let mut modes: Vec<String> = modes.collect();
                // Some stand for others, too.
                if let Some(at) = modes.iter().position(|mode| mode == "ANSI") {
                    let others = ["REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE"];
                    let others = others.map(str::to_string).into_iter().filter(|other| !modes.contains(other));
                    let others: Vec<String> = others.collect();
                    modes.splice(at..at, others);
                }
                match modes.iter().find(|mode| !MODES.contains(&mode.as_str())) {
                    Some(unknown) => Err(unknown.clone()),
                    None => Ok(modes.join(",")),
                }
            }
        },
        _ if value.is_null() && name.starts_with("character_set_") => Ok(String::new()),
        _ => Ok(shown),
    }
}

/// Words of `sql_mode`.
const MODES: &[&str] = &[
    "ALLOW_INVALID_DATES",
    "ANSI",
    "ANSI_QUOTES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "HIGH_NOT_PRECEDENCE",
    "IGNORE_SPACE",
    "NO_AUTO_CREATE_USER",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "NO_DIR_IN_CREATE",
    "NO_ENGINE_SUBSTITUTION",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "PAD_CHAR_TO_FULL_LENGTH",
    "PIPES_AS_CONCAT",
    "REAL_AS_FLOAT",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TIME_TRUNCATE_FRACTIONAL",
    "TRADITIONAL",
];

/// Errors: text is none of these.
fn check_charset(charset: &str) -> Result<()> {
    match charset.to_ascii_lowercase().as_str() {
        "utf8mb4" | "utf8" | "utf8mb3" | "ascii" | "binary" | "us-ascii" => Ok(()),
        // What such clients say is read as UTF-8; what is not ASCII has to be it.
        "latin1" => Ok(()),
        other => Err(Error::new(Condition::UnknownCharset, format!("Unknown character set: '{other}'"))),
    }
}

/// The value of a user variable; null if it has none.
pub(crate) fn user_value(session: Option<&Session>, name: &str) -> Value {
    let value = session.and_then(|session| session.user_variables.borrow().get(name).cloned());
    value.unwrap_or_default()
}

/// Keeps a value in a user variable. Errors: `LimitExceeded`.
pub(crate) fn set_user(session: &Session, name: &str, value: Value) -> Result<()> {
    let mut kept = session.user_variables.borrow_mut();
    let is_new = !kept.contains_key(name);
    let others = kept.iter().filter(|(other, _)| *other != name).map(|(_, value)| value.weight());
    if is_new && kept.len() >= USER_MAX || others.sum::<usize>() + value.weight() > USER_BYTES_MAX || name.len() > 64 {
        let what =
            format!("a session has at most {USER_MAX} variables with names of 64 bytes and values of 16 MiB in all");
        return Err(Error::new(Condition::LimitExceeded, what));
    }
    kept.insert(name.to_string(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn set(session: &Session, name: &str, value: Value) -> Result<Option<String>> {
        assign(session, &Assignment { target: Target::of(name, Scope::Session), value: None }, Some(value))
    }

    #[test]
    fn variables_are_set_and_read() {
        let session = Session::of_mysql("me", "shop", 7);
        assert!(matches!(value_of(Some(&session), "@@autocommit"), Ok(Value::Int(1))));
        set(&session, "autocommit", Value::text("off")).unwrap();
        assert!(matches!(value_of(Some(&session), "@@session.autocommit"), Ok(Value::Int(0))));
        set(&session, "@@sql_mode", Value::text("ansi_quotes, NO_ZERO_DATE")).unwrap();
        assert_eq!(value_of(Some(&session), "sql_mode").unwrap().as_text(), Some("ANSI_QUOTES,NO_ZERO_DATE"));
        assert_eq!(session.respelled("select \"a\""), "select `a`");
        set(&session, "sql_mode", Value::text("ANSI,NO_ZERO_DATE")).unwrap();
        let modes = "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI,NO_ZERO_DATE";
        assert_eq!(value_of(Some(&session), "sql_mode").unwrap().as_text(), Some(modes));
        set(&session, "sql_mode", Value::text("")).unwrap();
        assert_eq!(session.respelled("select \"a\""), "select \"a\"");
        set(&session, "tx_isolation", Value::text("serializable")).unwrap();
        assert_eq!(value_of(Some(&session), "transaction_isolation").unwrap().as_text(), Some("SERIALIZABLE"));
        set(&session, "@a", Value::Int(5)).unwrap();
        assert!(matches!(user_value(Some(&session), "a"), Value::Int(5)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let session = Session::of_mysql("me", "shop", 7);
        for (name, value) in [
            ("nothing", Value::Int(1)),
            ("version", Value::text("9")),
            ("autocommit", Value::text("maybe")),
            ("@@global.wait_timeout", Value::Int(1)),
            ("sql_mode", Value::text("CHAOS")),
            ("time_zone", Value::text("Europe/Nowhere")),
            ("wait_timeout", Value::text("long")),
            ("names", Value::text("koi8r")),
        ] {
            assert!(set(&session, name, value).is_err(), "{name}");
        }
    }
}
