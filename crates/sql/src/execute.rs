//! EXECUTE and PREPARE as Tarantool has them: parameters and rows in msgpack, for its protocol and for Lua.

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::metadata::{Metadata, encode_key};
use crate::statement::{Prepared, Sql};
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Context, Database, ErrorCode, ErrorKind, Operation};
use std::rc::Rc;
use tuple::msgpack::{self, Kind, Reader};
use tuple::{IndexId, SpaceId};
use wire::key;

/// Bytes of the rows of one result.
pub const RESULT_MAX: usize = 256 << 20;
/// Statements that all sessions may have prepared.
pub const PREPARED_MAX: usize = 100_000;

/// The space `_session_settings`.
const SESSION_SETTINGS_ID: SpaceId = SpaceId(380);

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A text.
    Text(&'a str),
    /// A statement that the session has prepared, by its number.
    Prepared(u32),
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Answer {
    /// The columns of its rows; none if it has no rows.
    pub metadata: Metadata,
    /// True if it has rows, were it none.
    pub has_rows: bool,
    /// The rows: arrays, one after the other.
    pub rows: Vec<u8>,
    /// How many.
    pub count: u32,
    /// Rows that were changed.
    pub changed: u64,
    /// Numbers that sequences have given.
    pub generated: Vec<i64>,
}

/// What a prepared statement tells of itself.
#[derive(Debug)]
pub struct Description {
    /// Its number in its session.
    pub id: u32,
    /// Columns of its rows.
    pub metadata: Metadata,
    /// Names of its parameters.
    pub params: Vec<String>,
}

impl Sql {
    /// Runs a statement with parameters: an array of values, and of maps of one name and its value.
    ///
    /// May wait. Errors: those of the statement; the session has no such one prepared; a result of more than [`RESULT_MAX`] bytes.
    pub fn execute(
        &self,
        database: &Database,
        context: &Rc<Context>,
        source: Source<'_>,
        params: &[u8],
    ) -> database::Result<Answer> {
        let answer = || -> Result<Answer> {
            let text = match source {
                Source::Text(text) => Rc::from(text),
                Source::Prepared(id) => self.named(context, id)?,
            };
            let prepared = self.prepare(database, context, Dialect::Tarantool, &text, &[])?;
            let params = read_params(&prepared, params)?;
            let metadata = Metadata::of(&context.session, &text, prepared.columns().to_vec())?;
            let mut answer = Answer { metadata, has_rows: prepared.has_rows(), ..Answer::default() };
            for column in &mut answer.metadata.columns {
                // What it is, its value says.
                if let Some(value) = column.param.and_then(|number| params.get(number)) {
                    column.ty = Type::of(match value {
                        Value::Null | Value::Bool(_) => Base::Bool,
                        Value::Int(_) | Value::Uint(_) => Base::Integer,
                        Value::Double(_) => Base::Double,
                        Value::Decimal(_) => Base::Decimal,
                        Value::Text(_) => Base::Text,
                        Value::Bytes(_) => Base::Bytes,
                        Value::Uuid(_) => Base::Uuid,
                        Value::Datetime(_) => Base::TimestampTz,
                        Value::Interval(_) => Base::Interval,
                        Value::Document(_) => Base::Any,
                    });
                }
            }
            let outcome = self.run(database, context, &prepared, &params, &mut |row| {
                crate::scan::encode_row(row, &mut answer.rows);
                answer.count += 1;
                match answer.rows.len() <= RESULT_MAX {
                    true => Ok(()),
                    false => {
                        let what = format!("the result has more than {} MiB", RESULT_MAX >> 20);
                        Err(Error::new(Condition::LimitExceeded, what).hint("LIMIT gives a part of it."))
                    }
                }
            })?;
            (answer.changed, answer.generated) = (outcome.counts.rows, outcome.counts.generated);
            Ok(answer)
        };
        answer().map_err(Error::into_database)
    }

    /// Prepares a statement for a session. Errors: those of the text; too many statements are prepared.
    pub fn prepare_for(&self, database: &Database, context: &Rc<Context>, text: &str) -> database::Result<Description> {
        let prepared = self.prepare(database, context, Dialect::Tarantool, text, &[]).map_err(Error::into_database)?;
        let id = number_of(text);
        let mut named = self.named.borrow_mut();
        if named.len() >= PREPARED_MAX {
            // Those of sessions that have ended.
            named.retain(|(session, _), _| database.session(*session).is_some());
        }
        if named.len() >= PREPARED_MAX {
            let what = format!("there are {PREPARED_MAX} prepared statements already");
            return Err(database::Error::raw(ErrorCode::SqlPrepare as u32, ErrorKind::Client, what));
        }
        named.insert((context.session.id, id), Rc::from(text));
        describe(context, &prepared, id).map_err(Error::into_database)
    }

    /// Describes a statement that the session has prepared. Errors: it has not; those of its text.
    pub fn describe_prepared(
        &self,
        database: &Database,
        context: &Rc<Context>,
        id: u32,
    ) -> database::Result<Description> {
        let text = self.named(context, id).map_err(Error::into_database)?;
        let prepared = self.prepare(database, context, Dialect::Tarantool, &text, &[]).map_err(Error::into_database)?;
        describe(context, &prepared, id).map_err(Error::into_database)
    }

    /// Forgets a prepared statement. Errors: the session has no such one.
    pub fn unprepare(&self, context: &Rc<Context>, id: u32) -> database::Result<()> {
        match self.named.borrow_mut().remove(&(context.session.id, id)) {
            Some(_) => Ok(()),
            None => Err(no_such_statement(id)),
        }
    }

    fn named(&self, context: &Rc<Context>, id: u32) -> Result<Rc<str>> {
        let found = self.named.borrow().get(&(context.session.id, id)).cloned();
        found.ok_or_else(|| Error::from(no_such_statement(id)))
    }
}

fn describe(context: &Context, prepared: &Prepared, id: u32) -> Result<Description> {
    let names = prepared.param_names();
    let params = (0..prepared.params().len())
        .map(|number| names.get(number).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| "?".to_string()))
        .collect();
    let metadata = Metadata::of(&context.session, prepared.text(), prepared.columns().to_vec())?;
    Ok(Description { id, metadata, params })
}

fn no_such_statement(id: u32) -> database::Error {
    let what = format!("Prepared statement with id {id} does not exist");
    database::Error::raw(ErrorCode::WrongQueryId as u32, ErrorKind::Client, what)
}

/// The number of a text: the same one each time, as in Tarantool, where it is another hash.
fn number_of(text: &str) -> u32 {
    // FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.max(1)
}

/// Parameters by their places. Errors: no array; a name that the statement has not.
/// The value of a setting as a literal says it. Errors: `Syntax` for one that no setting has.
pub(crate) fn setting_of(literal: &sqlparser::ast::Value) -> Result<Value> {
    use sqlparser::ast::Value as V;
    match literal {
        V::Boolean(value) => Ok(Value::Bool(*value)),
        V::SingleQuotedString(text) => Ok(Value::text(text.as_str())),
        V::Number(digits, _) => digits.parse().map(Value::Int).map_err(|_| {
            let what = format!("'{digits}' is no value of a setting");
            Error::new(Condition::Syntax, what)
        }),
        other => Err(Error::new(Condition::Syntax, format!("'{other}' is no value of a setting"))),
    }
}

/// Changes a setting of the session. Errors: there is no such one; it has no such value.
pub(crate) fn set(database: &Database, context: &Rc<Context>, name: &str, value: &Value) -> Result<()> {
    let space = database.space(SESSION_SETTINGS_ID)?;
    let (mut key, mut ops) = (Vec::new(), Vec::new());
    msgpack::encode_array(&mut key, 1);
    msgpack::encode_str(&mut key, name.as_bytes());
    msgpack::encode_array(&mut ops, 1);
    msgpack::encode_array(&mut ops, 3);
    msgpack::encode_str(&mut ops, b"=");
    msgpack::encode_uint(&mut ops, 1);
    value.encode(&mut ops);
    let update = Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 };
    match database.execute(context, &space, update)? {
        Some(_) => Ok(()),
        None => Err(Error::new(Condition::UndefinedObject, format!("Session setting {name} doesn't exist"))),
    }
}

fn read_params(prepared: &Prepared, bytes: &[u8]) -> Result<Vec<Value>> {
    let malformed = || Error::from(database::Error::new(ErrorCode::InvalidMsgpack, &[&"SQL bind parameters"]));
    let mut reader = Reader::new(bytes);
    let count = match bytes.is_empty() {
        true => 0,
        false => reader.read_array().map_err(|_| malformed())?,
    };
    if count as usize > crate::PARAMETERS_MAX {
        let what = format!("SQL bind parameter limit reached: {}", crate::PARAMETERS_MAX);
        let error = database::Error::raw(ErrorCode::SqlBindParameterMax as u32, ErrorKind::Client, what);
        return Err(error.into());
    }
    let mut values = vec![Value::Null; prepared.params().len()];
    let mut put = |number: usize, value: Value| {
        if let Some(place) = values.get_mut(number) {
            *place = value;
        }
    };
    for number in 0..count as usize {
        let item = reader.read_value().map_err(|_| malformed())?;
        if !matches!(Reader::new(item).kind(), Ok(Kind::Map)) {
            put(number, param(item, &format!("{}", number + 1))?);
            continue;
        }
        let mut map = Reader::new(item);
        if map.read_map() != Ok(1) {
            return Err(malformed());
        }
        let name = map.read_str().ok().and_then(|name| std::str::from_utf8(name).ok()).ok_or_else(malformed)?;
        let value = param(map.rest(), name)?;
        match prepared.param_names().iter().position(|known| known == name) {
            Some(place) => put(place, value),
            None => {
                let what = format!("Parameter '{name}' was not found in the statement");
                return Err(database::Error::raw(ErrorCode::SqlBindNotFound as u32, ErrorKind::Client, what).into());
            }
        }
    }
    Ok(values)
}

fn param(bytes: &[u8], name: &str) -> Result<Value> {
    match Value::decode(bytes) {
        Value::Document(_) => {
            let kind = match Reader::new(bytes).kind() {
                Ok(Kind::Map) => "MAP",
                Ok(Kind::Array) => "ARRAY",
                _ => "USERDATA",
            };
            let what = format!("Bind value type {kind} for parameter {name} is not supported");
            Err(database::Error::raw(ErrorCode::SqlBindType as u32, ErrorKind::Client, what).into())
        }
        value => Ok(value),
    }
}

impl Answer {
    /// Appends the body of an answer of the protocol, or the same with names (`metadata`, `rows`, `row_count`, `autoincrement_ids`), as Lua shows it.
    pub fn encode(&self, out: &mut Vec<u8>, by_name: bool) {
        if self.has_rows {
            msgpack::encode_map(out, 2);
            encode_key(out, by_name, "metadata", key::METADATA);
            self.metadata.encode(out, by_name);
            encode_key(out, by_name, "rows", key::DATA);
            msgpack::encode_array(out, self.count);
            out.extend_from_slice(&self.rows);
            return;
        }
        if !by_name {
            msgpack::encode_map(out, 1);
            msgpack::encode_uint(out, key::SQL_INFO);
        }
        msgpack::encode_map(out, 1 + u32::from(!self.generated.is_empty()));
        encode_key(out, by_name, "row_count", key::SQL_ROW_COUNT);
        msgpack::encode_uint(out, self.changed);
        if !self.generated.is_empty() {
            encode_key(out, by_name, "autoincrement_ids", key::SQL_AUTOINCREMENT_IDS);
            msgpack::encode_array(out, self.generated.len() as u32);
            self.generated.iter().for_each(|id| msgpack::encode_int(out, *id));
        }
    }
}

impl Description {
    /// Appends the body of an answer of the protocol, or the same with names (`stmt_id`, `param_count`, `params`, `metadata`).
    pub fn encode(&self, out: &mut Vec<u8>, by_name: bool) {
        let has_rows = !self.metadata.columns.is_empty();
        msgpack::encode_map(out, 3 + u32::from(has_rows));
        encode_key(out, by_name, "stmt_id", key::STMT_ID);
        msgpack::encode_uint(out, u64::from(self.id));
        encode_key(out, by_name, "param_count", key::BIND_COUNT);
        msgpack::encode_uint(out, self.params.len() as u64);
        encode_key(out, by_name, "params", key::BIND_METADATA);
        msgpack::encode_array(out, self.params.len() as u32);
        for name in &self.params {
            msgpack::encode_map(out, 2);
            encode_key(out, by_name, "name", key::FIELD_NAME);
            msgpack::encode_str(out, name.as_bytes());
            encode_key(out, by_name, "type", key::FIELD_TYPE);
            msgpack::encode_str(out, b"ANY");
        }
        if has_rows {
            encode_key(out, by_name, "metadata", key::METADATA);
            self.metadata.encode(out, by_name);
        }
    }
}
