//! Settings of a session: the rows of `_session_settings`, computed, one for each setting by its name.
//!
//! They exist so that programs written for Tarantool find them. `sql_full_metadata` and `sql_full_column_names` say what metadata of statements has, and
//! `sql_default_engine` where tables are; the others change nothing, and errors are always sent with their stack to those who ask for it.

use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Session;
use crate::statement::Operation;
use std::rc::Rc;
use storage::IteratorKind;
use storage::Key;
use tuple::msgpack::{self, Kind, Reader};
use tuple::{Tuple, update};

/// A value that a setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    Flag(bool),
    Engine(&'static str),
}

/// Names, in their order, and what each is at the beginning of a session.
const SETTINGS: [(&str, Setting); 11] = [
    ("error_marshaling_enabled", Setting::Flag(false)),
    ("sql_default_engine", Setting::Engine("memtx")),
    ("sql_defer_foreign_keys", Setting::Flag(false)),
    ("sql_full_column_names", Setting::Flag(false)),
    ("sql_full_metadata", Setting::Flag(false)),
    ("sql_parser_debug", Setting::Flag(false)),
    ("sql_recursive_triggers", Setting::Flag(true)),
    ("sql_reverse_unordered_selects", Setting::Flag(false)),
    ("sql_select_debug", Setting::Flag(false)),
    // Of 2.11: statements may look at whole spaces without saying so, whatever it is.
    ("sql_seq_scan", Setting::Flag(true)),
    ("sql_vdbe_debug", Setting::Flag(false)),
];

/// Number of settings.
pub(crate) const COUNT: usize = SETTINGS.len();

/// What every setting is at the beginning.
pub(crate) fn defaults() -> [Setting; COUNT] {
    SETTINGS.map(|(_, setting)| setting)
}

fn row_of(session: &Session, at: usize) -> Vec<u8> {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 2);
    msgpack::encode_str(&mut row, SETTINGS[at].0.as_bytes());
    match session.settings.borrow()[at] {
        Setting::Flag(value) => msgpack::encode_bool(&mut row, value),
        Setting::Engine(name) => msgpack::encode_str(&mut row, name.as_bytes()),
    }
    row
}

/// The row with `value` in the place of that of a setting. Errors: `SessionSettingInvalidValue`, `NoSuchEngine`.
fn understood(row: &[u8], name: &str, before: Setting) -> Result<Setting> {
    let mut reader = Reader::new(row);
    let wrong = |expected: &str| Error::new(ErrorCode::SessionSettingInvalidValue, &[&name, &expected]);
    let malformed = |_| Error::new(ErrorCode::FieldMissing, &[&2]);
    reader.read_array().map_err(malformed)?;
    reader.read_value().map_err(malformed)?;
    let kind = reader.kind().map_err(malformed)?;
    match (before, kind) {
        (Setting::Flag(_), Kind::Bool) => Ok(Setting::Flag(reader.read_bool().map_err(malformed)?)),
        (Setting::Engine(_), Kind::Str) => match reader.read_str().map_err(malformed)? {
            b"memtx" => Ok(Setting::Engine("memtx")),
            b"vinyl" => Ok(Setting::Engine("vinyl")),
            other => Err(Error::new(ErrorCode::NoSuchEngine, &[&String::from_utf8_lossy(other)])),
        },
        (Setting::Flag(_), _) => Err(wrong("boolean")),
        (Setting::Engine(_), _) => Err(wrong("string")),
    }
}

impl Session {
    /// True if a setting of that name is on.
    pub fn has_setting(&self, name: &str) -> bool {
        let at = SETTINGS.iter().position(|(known, _)| *known == name);
        at.is_some_and(|at| self.settings.borrow()[at] == Setting::Flag(true))
    }

    /// The engine of tables that do not say theirs, in Tarantool's dialect.
    pub fn default_engine(&self) -> &'static str {
        let engines = self.settings.borrow();
        let engine = engines.iter().find_map(|setting| match setting {
            Setting::Engine(name) => Some(*name),
            Setting::Flag(_) => None,
        });
        engine.unwrap_or("memtx")
    }
}

impl Database {
    /// Visits the settings of a session that a scan finds, until `visit` returns false.
    pub(crate) fn scan_settings(
        &self,
        session: &Session,
        kind: IteratorKind,
        key: Key<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) {
        let wanted = (key.part_count > 0).then(|| Reader::new(key.parts).read_str().unwrap_or(b""));
        let matches = |name: &str| {
            let Some(wanted) = wanted else { return true };
            let order = name.as_bytes().cmp(wanted);
            match kind {
                IteratorKind::Eq | IteratorKind::Req => order.is_eq(),
                IteratorKind::Ge | IteratorKind::All => order.is_ge(),
                IteratorKind::Gt => order.is_gt(),
                IteratorKind::Le => order.is_le(),
                IteratorKind::Lt => order.is_lt(),
                _ => false,
            }
        };
        let is_backward = matches!(kind, IteratorKind::Req | IteratorKind::Le | IteratorKind::Lt);
        for step in 0..COUNT {
            let at = if is_backward { COUNT - 1 - step } else { step };
            if matches(SETTINGS[at].0) && !visit(&row_of(session, at)) {
                return;
            }
        }
    }

    /// Changes a setting of a session. Only updates do.
    pub(crate) fn change_setting(
        &self,
        session: &Session,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Tuple>> {
        let refuse = |what: &str| Err(Error::new(ErrorCode::Unsupported, &[&"Session_settings space", &what]));
        let Operation::Update { index_id, key, ops, index_base } = operation else {
            return refuse(match operation {
                Operation::Delete { .. } => "delete()",
                Operation::Upsert { .. } => "upsert()",
                _ => "replace()",
            });
        };
        let key = Key::decode(key)?;
        self.check_exact_key(space, index_id, key)?;
        let name = Reader::new(key.parts).read_str().unwrap_or(b"");
        let Some(at) = SETTINGS.iter().position(|(known, _)| known.as_bytes() == name) else { return Ok(None) };
        let (before, format) = (row_of(session, at), space.format());
        let mut row = Vec::new();
        update::apply(ops, &before, Some(&format), index_base, &mut row).map_err(|error| self.update_error(error))?;
        format.check(&row).map_err(|error| self.tuple_error(error, space))?;
        self.check_same_primary_key(space, &before, &row)?;
        let setting = understood(&row, SETTINGS[at].0, session.settings.borrow()[at])?;
        session.settings.borrow_mut()[at] = setting;
        self.make_row(space, &format, &row_of(session, at), || 0).map(Some)
    }
}
