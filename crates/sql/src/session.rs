//! What a client's session is for statements: who it is, which settings it has.

use crate::control::Isolation;
use crate::error::{Condition, Error, Result};
use crate::mysql::text::Quotes;
use crate::value::Value;
use crate::zones::Zone;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A setting: its name as it is shown, what it is if nobody says, what it is about, and whether clients may change it.
struct Setting {
    name: &'static str,
    default: &'static str,
    about: &'static str,
    is_fixed: bool,
}

macro_rules! settings {
    ($($name:literal $kind:ident $default:literal $about:literal;)*) => {
        /// Those that programs ask for, by name in small letters.
        const SETTINGS: &[Setting] = &[$(Setting { name: $name, default: $default, about: $about, is_fixed: settings!($kind) },)*];
    };
    (fixed) => { true };
    (free) => { false };
}

settings! {
    "application_name" free "" "Sets the application name to be reported in statistics and logs.";
    "bytea_output" free "hex" "Sets the output format for bytea.";
    "array_nulls" free "on" "Enable input of NULL elements in arrays.";
    "backslash_quote" free "safe_encoding" "Sets whether \"\\'\" is allowed in string literals.";
    "check_function_bodies" free "on" "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.";
    "client_encoding" free "UTF8" "Sets the client's character set encoding.";
    "client_min_messages" free "notice" "Sets the message levels that are sent to the client.";
    "DateStyle" free "ISO, MDY" "Sets the display format for date and time values.";
    "default_tablespace" free "" "Sets the default tablespace to create tables and indexes in.";
    "default_table_access_method" free "heap" "Sets the default table access method for new tables.";
    "default_transaction_deferrable" free "off" "Sets the default deferrable status of new transactions.";
    "default_transaction_isolation" free "read committed" "Sets the transaction isolation level of each new transaction.";
    "default_transaction_read_only" free "off" "Sets the default read-only status of new transactions.";
    "enable_bitmapscan" free "on" "Enables the planner's use of bitmap-scan plans.";
    "enable_hashjoin" free "on" "Enables the planner's use of hash join plans.";
    "enable_indexscan" free "on" "Enables the planner's use of index-scan plans.";
    "enable_mergejoin" free "on" "Enables the planner's use of merge join plans.";
    "enable_nestloop" free "on" "Enables the planner's use of nested-loop join plans.";
    "enable_seqscan" free "on" "Enables the planner's use of sequential-scan plans.";
    "escape_string_warning" free "on" "Warn about backslash escapes in ordinary string literals.";
    "extra_float_digits" free "1" "Sets the number of digits displayed for floating-point values.";
    "idle_in_transaction_session_timeout" free "0" "Sets the maximum allowed idle time between queries, when in a transaction.";
    "in_hot_standby" fixed "off" "Shows whether hot standby is currently active.";
    "integer_datetimes" fixed "on" "Shows whether datetimes are integer based.";
    "IntervalStyle" free "postgres" "Sets the display format for interval values.";
    "is_superuser" fixed "off" "Shows whether the current user is a superuser.";
    "jit" free "off" "Allow JIT compilation.";
    "lc_collate" fixed "C.UTF-8" "Shows the collation order locale.";
    "lc_ctype" fixed "C.UTF-8" "Shows the character classification and case conversion locale.";
    "lock_timeout" free "0" "Sets the maximum allowed duration of any wait for a lock.";
    "maintenance_work_mem" free "64MB" "Sets the maximum memory to be used for maintenance operations.";
    "max_identifier_length" fixed "63" "Shows the maximum identifier length.";
    "max_index_keys" fixed "32" "Shows the maximum number of index keys.";
    "max_parallel_workers_per_gather" free "0" "Sets the maximum number of parallel processes per executor node.";
    "quote_all_identifiers" free "off" "When generating SQL fragments, quote all identifiers.";
    "role" free "none" "Sets the current role.";
    "row_security" free "on" "Enable row security.";
    "search_path" free "\"$user\", public" "Sets the schema search order for names that are not schema-qualified.";
    "server_encoding" fixed "UTF8" "Shows the server (database) character set encoding.";
    "server_version" fixed "15.8" "Shows the server version.";
    "server_version_num" fixed "150008" "Shows the server version as an integer.";
    "session_authorization" free "" "Sets the session user name.";
    "session_replication_role" free "origin" "Sets the session's behavior for triggers and rewrite rules.";
    "standard_conforming_strings" free "on" "Causes '...' strings to treat backslashes literally.";
    "statement_timeout" free "0" "Sets the maximum allowed duration of any statement.";
    "synchronize_seqscans" free "on" "Enable synchronized sequential scans.";
    "synchronous_commit" free "on" "Sets the current transaction's synchronization level.";
    "TimeZone" free "UTC" "Sets the time zone for displaying and interpreting time stamps.";
    "transaction_deferrable" free "off" "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures.";
    "transaction_isolation" free "read committed" "Sets the current transaction's isolation level.";
    "transaction_read_only" free "off" "Sets the current transaction's read-only status.";
    "transaction_timeout" free "0" "Sets the maximum allowed duration of any transaction within a session.";
    "work_mem" free "4MB" "Sets the maximum memory to be used for query workspaces.";
    "xmloption" free "content" "Sets whether XML data in implicit parsing is to be considered as documents or content fragments.";
}

/// Settings of a session that are its own, like `my.name`.
const OWN_MAX: usize = 1000;
/// Bytes of a setting.
const VALUE_MAX: usize = 64 << 10;

/// What ends a session, or what it does.
pub type Stop = Box<dyn Fn(bool)>;

/// See the head of this file.
#[derive(Default)]
pub struct Session {
    /// Whom it has logged in as, or acts for.
    pub user: RefCell<String>,
    /// The database that the client has named: there is one, whatever it is called.
    pub database: RefCell<String>,
    /// The number that a client cancels it by.
    pub number: u32,
    /// It speaks MySQL's dialect: its settings are that one's variables.
    pub is_mysql: bool,
    /// `@name` of MySQL's dialect.
    pub(crate) user_variables: RefCell<BTreeMap<String, Value>>,
    /// The first number that the last INSERT has got from a sequence.
    pub last_insert_id: Cell<u64>,
    /// The number that LAST_INSERT_ID(number) has set since the last answer.
    pub told_insert_id: Cell<Option<u64>>,
    /// LOCK TABLES was said, and no UNLOCK TABLES since.
    pub has_locked_tables: Cell<bool>,
    /// Rows that the last statement has changed; -1: it has changed none.
    pub row_count: Cell<i64>,
    /// Rows that the last query has found.
    pub found_rows: Cell<u64>,
    /// What is to be said of the last statement: `Error` or `Warning`, a number, words.
    pub warnings: RefCell<Vec<(&'static str, u16, String)>>,
    /// What `sql_mode` of MySQL's dialect says of quotes.
    quotes: Cell<Quotes>,
    /// The zone that it reads and shows moments in, if that is not UTC; whether there is one.
    zone: RefCell<Option<Zone>>,
    is_zoned: Cell<bool>,
    /// The names of `search_path`, if it is not as it is by itself; whether it is not.
    path: RefCell<Option<Rc<[String]>>>,
    has_path: Cell<bool>,
    /// Its cursors, as they are shown.
    pub(crate) cursors: RefCell<BTreeMap<String, crate::cursors::CursorShown>>,
    /// Its temporary tables.
    pub(crate) temporary: RefCell<Vec<crate::temporary::Temporary>>,
    /// How often a transaction has dropped some of them, whose names in the catalog are free when it ends.
    pub(crate) names_again: Cell<u64>,
    /// Ends what it does (false), or the session itself (true).
    pub stop: RefCell<Option<Stop>>,
    /// The version of TLS and the cipher of its connection, if that is sealed.
    pub seal: RefCell<Option<(String, String)>>,
    /// Grows when a setting may have changed.
    pub settings_changes: Cell<u64>,
    /// Settings that are not as they are by themselves.
    changed: RefCell<BTreeMap<String, String>>,
    /// What settings that are changed until the end of the transaction were before.
    before: RefCell<Vec<(String, Option<String>)>>,
}

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> Error {
    Error::new(Condition::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
}

impl Session {
    /// Of a client.
    pub fn new(user: &str, database: &str, number: u32) -> Self {
        Session {
            user: RefCell::new(user.to_string()),
            database: RefCell::new(database.to_string()),
            number,
            ..Session::default()
        }
    }

    /// Of a client that speaks MySQL's dialect.
    pub fn of_mysql(user: &str, database: &str, number: u32) -> Self {
        Session { is_mysql: true, row_count: Cell::new(-1), ..Session::new(user, database, number) }
    }

    /// What a setting was changed to.
    pub(crate) fn changed_to(&self, name: &str) -> Option<String> {
        self.changed.borrow().get(name).cloned()
    }

    /// Changes a setting that was looked at; none: as it was at the beginning. Errors: the value is too long.
    pub(crate) fn change(&self, name: &str, value: Option<String>) -> Result<()> {
        if name == "sql_mode" {
            self.quotes.set(value.as_deref().map_or_else(Quotes::default, Quotes::of));
        }
        match value {
            Some(value) if value.len() > VALUE_MAX => {
                let what = format!("the value of '{name}' has more than {VALUE_MAX} bytes");
                return Err(Error::new(Condition::LimitExceeded, what));
            }
            Some(value) => self.changed.borrow_mut().insert(name.to_string(), value),
            None => self.changed.borrow_mut().remove(name),
        };
        if name == "time_zone" {
            self.find_zone();
        }
        Ok(())
    }

    /// The zone that it reads and shows moments in. None: UTC.
    pub fn zone(&self) -> Option<Zone> {
        if self.is_zoned.get() { self.zone.borrow().clone() } else { None }
    }

    /// True if that is not UTC.
    pub(crate) fn is_zoned(&self) -> bool {
        self.is_zoned.get()
    }

    /// The names of `search_path`. None: it is as it is by itself.
    pub(crate) fn path(&self) -> Option<Rc<[String]>> {
        if self.has_path.get() { self.path.borrow().clone() } else { None }
    }

    /// The path, as a part of what plans are kept by. None: it is as it is by itself.
    pub(crate) fn path_setting(&self) -> Option<String> {
        if self.has_path.get() { self.changed_to("search_path") } else { None }
    }

    /// The setting of the path may have changed.
    fn find_path(&self) {
        let setting = if self.is_mysql { None } else { self.changed_to("search_path") };
        let path = setting.and_then(|setting| crate::schemas::names_of_setting(&setting));
        self.has_path.set(path.is_some());
        *self.path.borrow_mut() = path;
    }

    /// The setting of the zone may have changed.
    fn find_zone(&self) {
        let setting = self.changed_to(if self.is_mysql { "time_zone" } else { "timezone" });
        let zone = setting.and_then(|setting| Zone::of_setting(&setting, self.is_mysql));
        self.is_zoned.set(zone.is_some());
        *self.zone.borrow_mut() = zone;
    }

    /// A statement of MySQL's dialect in the words that it has for all sessions: what `sql_mode` of this one says of quotes is done.
    pub fn respelled<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        crate::mysql::text::with_usual_quotes(text, self.quotes.get())
    }

    /// True if a backslash in a literal of MySQL's dialect is one: NO_BACKSLASH_ESCAPES.
    pub fn keeps_backslashes(&self) -> bool {
        self.quotes.get().keep_backslashes
    }

    /// The value of a variable of MySQL's dialect as text. None: there is no such one.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = crate::mysql::variables::value_of(Some(self), name).ok()?;
        Some(value.display(crate::Dialect::Mysql))
    }

    /// Changes a variable of MySQL's dialect. Errors: there is no such one, or it cannot be this.
    pub fn set_variable(&self, name: &str, value: Value) -> Result<()> {
        use crate::mysql::variables::{Scope, Target, assign};
        let assignment = crate::control::Assignment { target: Target::of(name, Scope::Session), value: None };
        assign(self, &assignment, Some(value)).map(drop)
    }

    /// The name of the database, as MySQL's clients know it.
    pub fn database_name(&self) -> String {
        crate::mysql::schema::database(Some(self))
    }

    /// Everything is as it was when the session began.
    pub fn reset(&self) {
        self.note_change();
        self.changed.borrow_mut().clear();
        self.find_zone();
        self.find_path();
        self.quotes.set(Quotes::default());
        self.before.borrow_mut().clear();
        self.user_variables.borrow_mut().clear();
        self.warnings.borrow_mut().clear();
        self.last_insert_id.set(0);
        self.told_insert_id.set(None);
        self.has_locked_tables.set(false);
        self.row_count.set(-1);
        self.found_rows.set(0);
    }

    /// The value of a setting. None: there is no such one.
    pub fn get(&self, name: &str) -> Option<String> {
        let name = name.to_lowercase();
        if let Some(value) = self.changed.borrow().get(&name) {
            return Some(value.clone());
        }
        match name.as_str() {
            "session_authorization" => Some(self.user.borrow().clone()),
            _ => find(&name).map(|setting| setting.default.to_string()),
        }
    }

    /// The name of a setting as it is shown.
    pub fn shown_name(name: &str) -> &str {
        find(name).map_or(name, |setting| setting.name)
    }

    /// All settings: name, value, and what they are about.
    pub fn all(&self) -> Vec<(String, String, String)> {
        let known = SETTINGS.iter().map(|setting| {
            (setting.name.to_string(), self.get(setting.name).unwrap_or_default(), setting.about.to_string())
        });
        let changed = self.changed.borrow();
        let own = changed.iter().filter(|(name, _)| find(name).is_none());
        known.chain(own.map(|(name, value)| (name.clone(), value.clone(), String::new()))).collect()
    }

    /// Changes a setting; none: as it was at the beginning. Errors: there is no such one; it cannot be changed or not to this.
    pub fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<()> {
        let name = name.to_lowercase();
        self.note_change();
        if name == "all" && value.is_none() {
            self.changed.borrow_mut().clear();
            self.find_zone();
            self.find_path();
            return Ok(());
        }
        let known = find(&name);
        if known.is_none() && !name.contains('.') {
            return Err(unknown(&name));
        }
        if known.is_some_and(|setting| setting.is_fixed) {
            let what = format!("parameter \"{name}\" cannot be changed");
            return Err(Error::new(Condition::Unchangeable, what));
        }
        let value = value.map(|value| checked(&name, value)).transpose()?;
        let mut changed = self.changed.borrow_mut();
        if changed.len() >= OWN_MAX && !changed.contains_key(&name) {
            let what = format!("a session has at most {OWN_MAX} settings of its own");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        if is_local {
            self.before.borrow_mut().push((name.clone(), changed.get(&name).cloned()));
        }
        let (is_zone, is_path) = (name == "timezone", name == "search_path");
        match value {
            Some(value) => changed.insert(name, value),
            None => changed.remove(&name),
        };
        drop(changed);
        if is_zone {
            self.find_zone();
        }
        if is_path {
            self.find_path();
        }
        Ok(())
    }

    fn note_change(&self) {
        self.settings_changes.set(self.settings_changes.get() + 1);
    }

    /// The transaction has ended: what was changed for it alone is as before.
    pub fn end_transaction(&self) {
        let mut before = self.before.borrow_mut();
        if before.is_empty() {
            return;
        }
        self.note_change();
        let mut changed = self.changed.borrow_mut();
        for (name, value) in before.drain(..).rev() {
            match value {
                Some(value) => changed.insert(name, value),
                None => changed.remove(&name),
            };
        }
        drop(changed);
        self.find_zone();
        self.find_path();
    }

    /// How far its transactions are kept apart where nothing is said.
    pub fn isolation(&self) -> Isolation {
        let level = match self.is_mysql {
            true => self.variable("transaction_isolation"),
            false => self.get("default_transaction_isolation"),
        };
        match level.as_deref() {
            Some("SERIALIZABLE" | "REPEATABLE-READ" | "serializable" | "repeatable read") => Isolation::Serializable,
            _ => Isolation::ReadCommitted,
        }
    }

    /// A transaction begins: what it is can be asked for until it ends.
    pub fn note_transaction(&self, level: &str, is_read_only: bool) {
        let read_only = if is_read_only { "on" } else { "off" };
        let mut changed = self.changed.borrow_mut();
        for (name, value) in [("transaction_isolation", level), ("transaction_read_only", read_only)] {
            let before = changed.insert(name.to_string(), value.to_string());
            self.before.borrow_mut().push((name.to_string(), before));
        }
    }

    /// A time-out that is set, in milliseconds; 0: none.
    pub fn milliseconds(&self, name: &str) -> u64 {
        if self.is_mysql {
            let seconds = |name: &str, default: u64| {
                self.changed.borrow().get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
            };
            return match name {
                "statement_timeout" => seconds("max_execution_time", 0),
                "lock_timeout" => seconds("innodb_lock_wait_timeout", 50).saturating_mul(1000),
                _ => 0,
            };
        }
        match self.changed.borrow().get(name) {
            Some(value) => milliseconds(value).unwrap_or(0),
            None => 0,
        }
    }
}

/// A span of time as settings have it: `100`, `100ms`, `2s`, `1min`.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// The value as it is kept. Errors: one that the setting cannot have.
fn checked(name: &str, value: &str) -> Result<String> {
    let wrong = || {
        let what = format!("invalid value for parameter \"{name}\": \"{value}\"");
        Error::new(Condition::InvalidArgument, what)
    };
    if value.len() > VALUE_MAX {
        return Err(wrong());
    }
    Ok(match name {
        "client_encoding" => match value.to_lowercase().replace(['-', '_', '\''], "").as_str() {
            "utf8" | "unicode" => "UTF8".to_string(),
            "sqlascii" => "SQL_ASCII".to_string(),
            _ => return Err(wrong().hint("The only encoding is UTF8.")),
        },
        "search_path"
            if crate::schemas::names_of_setting(value).is_some_and(|names| names.len() > crate::schemas::PATH_MAX) =>
        {
            let what = format!("search_path has at most {} names", crate::schemas::PATH_MAX);
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        "timezone" => crate::zones::checked_setting(value).ok_or_else(wrong)?,
        "intervalstyle" if !value.eq_ignore_ascii_case("postgres") => {
            return Err(wrong().hint("Spans of time are shown in PostgreSQL's own style."));
        }
        "standard_conforming_strings" if !is_true(value) => return Err(wrong()),
        "default_transaction_isolation" | "transaction_isolation" => match value.to_lowercase().as_str() {
            level @ ("serializable" | "repeatable read" | "read committed" | "read uncommitted") => level.to_string(),
            _ => return Err(wrong()),
        },
        "default_transaction_read_only" | "transaction_read_only" | "row_security" => {
            (if is_true(value) { "on" } else { "off" }).to_string()
        }
        "statement_timeout" | "lock_timeout" | "idle_in_transaction_session_timeout" => {
            milliseconds(value).ok_or_else(wrong)?;
            value.to_string()
        }
        _ => value.to_string(),
    })
}

fn is_true(value: &str) -> bool {
    matches!(value.to_lowercase().as_str(), "on" | "true" | "yes" | "1" | "t" | "y")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn settings_are_changed_and_come_back() {
        let session = Session::new("me", "shop", 7);
        assert_eq!(session.get("datestyle").as_deref(), Some("ISO, MDY"));
        assert_eq!(session.get("session_authorization").as_deref(), Some("me"));
        session.set("application_name", Some("a"), false).unwrap();
        session.set("application_name", Some("b"), true).unwrap();
        session.set("my.own", Some("c"), true).unwrap();
        assert_eq!(session.get("Application_Name").as_deref(), Some("b"));
        session.end_transaction();
        assert_eq!((session.get("application_name").as_deref(), session.get("my.own")), (Some("a"), None));
        session.set("all", None, false).unwrap();
        assert_eq!(session.get("application_name").as_deref(), Some(""));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let session = Session::new("me", "shop", 7);
        for (name, value) in [
            ("nothing", "1"),
            ("server_version", "16"),
            ("client_encoding", "latin1"),
            ("timezone", "Europe/Nowhere"),
            ("statement_timeout", "soon"),
            ("default_transaction_isolation", "chaos"),
            ("standard_conforming_strings", "off"),
        ] {
            assert!(session.set(name, Some(value), false).is_err(), "{name}");
        }
        session.set("statement_timeout", Some("2s"), false).unwrap();
        assert_eq!(session.milliseconds("statement_timeout"), 2000);
    }
}
