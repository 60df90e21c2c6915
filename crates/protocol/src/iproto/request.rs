//! Serving one request.
//!
//! Reads and writes of rows run at once, on the stack of the event loop, and encode their answer straight into the connection's
//! buffer. What may run Lua (calls, evaluation, spaces with triggers) gets a fiber.

use super::decode::{Request, read_page};
use super::encode::{begin_data, encode_ok, end_data};
use super::{ERROR_EXTENSION, FEATURES, PROTOCOL_VERSION, State};
use super::{execute, streams, watches};
use crate::connection::Connection;
use database::{
    Context, Database, Error, ErrorCode, Key, Operation, Result, ScanRequest, Space, index_by_name, no_such_index,
};
use std::rc::Rc;
use storage::{IteratorKind, PREFETCH_MAX, Prefetch};
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, SpaceId};
use wal::Position;
use wire::{AUTH_METHOD, DecodeError, Header, begin_answer, end_packet, key, request_type};

/// The error that a client gets for bytes that are no request.
pub(super) fn decode_error(error: DecodeError) -> Error {
    match error {
        DecodeError::Length(what) | DecodeError::Header(what) | DecodeError::Body(what) => {
            Error::new(ErrorCode::InvalidMsgpack, &[&what])
        }
        DecodeError::Missing(name) => missing(name),
    }
}

/// A packet whose header could be read. A request that is no good is kept as such until its turn comes.
pub struct Decoded<'a> {
    pub(super) header: Header,
    pub(super) body: &'a [u8],
    pub(super) request: std::result::Result<Request<'a>, DecodeError>,
}

/// Reads a packet. Errors: it has no readable header.
pub(super) fn decode_packet(packet: &[u8]) -> std::result::Result<Decoded<'_>, DecodeError> {
    let (header, body) = Header::decode(packet)?;
    Ok(Decoded { header, body, request: Request::decode(header.request_type, body) })
}

impl Decoded<'_> {
    /// Chosen by the client, comes back in the answer.
    pub(super) fn sync(&self) -> u64 {
        self.header.sync
    }

    /// What it is, for a line of the log.
    pub(super) fn describe(&self) -> String {
        format!("{} (sync {})", type_name(self.header.request_type), self.header.sync)
    }
}

/// Tells the database which rows a group of requests is about to look up by primary key, and which it is about to put in.
pub(super) fn prefetch(database: &Database, group: &[Decoded<'_>]) {
    let mut values = [0; PREFETCH_MAX];
    let mut count = 0;
    let mut rows: [&[u8]; PREFETCH_MAX] = [&[]; PREFETCH_MAX];
    let mut row_count = 0;
    let mut space_id = None;
    let (mut reads_rows, mut changes_rows) = (false, false);
    for decoded in group.iter().take(PREFETCH_MAX) {
        let Ok(request) = &decoded.request else { continue };
        let kind = decoded.header.request_type;
        let list = match kind {
            request_type::SELECT | request_type::UPDATE | request_type::DELETE => request.key,
            request_type::INSERT | request_type::REPLACE | request_type::UPSERT => request.tuple,
            _ => continue,
        };
        let puts_row = matches!(kind, request_type::INSERT | request_type::REPLACE);
        reads_rows |= !puts_row;
        changes_rows |= kind != request_type::SELECT;
        if request.space_id.is_none() || request.index_id.unwrap_or(0) != 0 {
            continue;
        }
        if *space_id.get_or_insert(request.space_id) != request.space_id {
            continue;
        }
        let list = list.unwrap_or(&[]);
        let mut reader = Reader::new(list);
        if reader.read_array().is_ok_and(|length| length > 0)
            && let Ok(value) = reader.read_uint()
        {
            values[count] = value;
            count += 1;
            if puts_row {
                rows[row_count] = list;
                row_count += 1;
            }
        }
    }
    if count > 1
        && let Some(Some(space_id)) = space_id
        && let Some(space) = database.catalog.space(SpaceId(space_id))
        && space.key_starts_rows()
    {
        let wanted = Prefetch { values: &values[..count], new_rows: &rows[..row_count], reads_rows, changes_rows };
        database.prefetch(&space, wanted);
    }
}

/// True if the client says in a request of type ID that it has a feature.
fn has_feature(body: &[u8], wanted: u64) -> bool {
    let read = || -> std::result::Result<bool, msgpack::MsgpackError> {
        let mut reader = Reader::new(body);
        let mut is_there = false;
        for _ in 0..reader.read_map()? {
            let name = Reader::new(reader.read_value()?).read_uint();
            let value = reader.read_value()?;
            if name == Ok(key::FEATURES) {
                let mut features = Reader::new(value);
                for _ in 0..features.read_array()? {
                    is_there |= Reader::new(features.read_value()?).read_uint() == Ok(wanted);
                }
            }
        }
        Ok(is_there)
    };
    read().unwrap_or(false)
}

pub(super) fn missing(name: &str) -> Error {
    Error::new(ErrorCode::MissingRequestField, &[&name])
}

/// Serves a request. The answer goes to the connection's output now or, from a fiber, later. Errors: nothing was answered.
pub(super) fn serve(connection: &Rc<Connection>, state: &State, decoded: &Decoded<'_>) -> Result<()> {
    let database = &**connection.database();
    let (header, body) = (decoded.header, decoded.body);
    connection.session().sync.set(header.sync);
    let request = decoded.request.as_ref().map_err(|error| decode_error(*error))?;
    let schema_version = database.catalog.schema_version();
    // A transaction of a stream that has changed the schema has a version of its own, which comes back when it goes on.
    let is_meant = header.schema_version != 0 && !streams::has_own_schema(&state.streams, header.stream_id);
    if is_meant && header.schema_version != schema_version {
        return Err(Error::new(ErrorCode::WrongSchemaVersion, &[&schema_version, &header.schema_version]));
    }
    if header.stream_id != 0 {
        return streams::serve(connection, &state.streams, decoded, request);
    }
    serve_alone(connection, header, body, request)
}

/// Serves a request for itself: it is in no stream, or in one without a transaction and with nothing before it.
pub(super) fn serve_alone(
    connection: &Rc<Connection>,
    header: Header,
    body: &[u8],
    request: &Request<'_>,
) -> Result<()> {
    let database = &**connection.database();
    let schema_version = database.catalog.schema_version();
    match header.request_type {
        request_type::SELECT => {
            let context = connection.context();
            context.seen.set(Position::default());
            match select(database, connection, context, header.sync, request) {
                Err(error) if error.is_needs_fiber() => {
                    select_in_fiber(connection, header.sync, body);
                    Ok(())
                }
                result => result,
            }
        }
        request_type::INSERT
        | request_type::REPLACE
        | request_type::UPDATE
        | request_type::DELETE
        | request_type::UPSERT => write(database, connection, header, request, body),
        request_type::CALL | request_type::CALL_16 | request_type::EVAL => call(connection, header, request),
        request_type::PING => connection.answer(Position::default(), header.sync, |out| {
            encode_ok(out, header.sync, schema_version);
            Ok(())
        }),
        request_type::AUTH => connection.log_in(header.sync, body),
        request_type::ID => connection.answer(Position::default(), header.sync, |out| {
            connection.session().takes_errors.set(has_feature(body, ERROR_EXTENSION));
            let start = begin_answer(out, 0, header.sync, schema_version);
            msgpack::encode_map(out, 3);
            msgpack::encode_uint(out, key::VERSION);
            msgpack::encode_uint(out, PROTOCOL_VERSION);
            msgpack::encode_uint(out, key::FEATURES);
            msgpack::encode_array(out, FEATURES.len() as u32);
            FEATURES.iter().for_each(|feature| msgpack::encode_uint(out, *feature));
            msgpack::encode_uint(out, key::AUTH_TYPE);
            msgpack::encode_str(out, AUTH_METHOD.as_bytes());
            end_packet(out, start);
            Ok(())
        }),
        request_type::EXECUTE | request_type::PREPARE => {
            let kind = header.request_type;
            let subject = ((kind, body.to_vec()), describe_rows as fn(&(u64, Vec<u8>)) -> String);
            answer_in_fiber(connection, header.sync, subject, move |database, context, (_, body), out| {
                execute::run(database, context, kind, body, out)
            });
            Ok(())
        }
        request_type::BEGIN => Err(Error::new(ErrorCode::UnableToProcessOutOfStream, &[&"BEGIN"])),
        request_type::COMMIT => Err(Error::new(ErrorCode::UnableToProcessOutOfStream, &[&"COMMIT"])),
        request_type::ROLLBACK => Err(Error::new(ErrorCode::UnableToProcessOutOfStream, &[&"ROLLBACK"])),
        request_type::JOIN..=72 => Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"replication yet"])),
        request_type::WATCH | request_type::UNWATCH | request_type::WATCH_ONCE => {
            watches::serve(connection, header.request_type, header.sync, body)
        }
        other => Err(Error::new(ErrorCode::UnknownRequestType, &[&other])),
    }
}

fn find_space(database: &Database, request: &Request<'_>) -> Result<Rc<Space>> {
    match (request.space_id, request.space_name) {
        (Some(id), _) => database.space(SpaceId(id)),
        (None, Some(name)) => {
            let name = String::from_utf8_lossy(name);
            database.catalog.space_by_name(&name).ok_or_else(|| Error::new(ErrorCode::NoSuchSpace, &[&name]))
        }
        (None, None) => Err(missing("space id")),
    }
}

fn find_index(space: &Space, request: &Request<'_>) -> Result<IndexId> {
    match (request.index_id, request.index_name) {
        (None, Some(name)) => Ok(index_by_name(space, &String::from_utf8_lossy(name))?.id),
        (id, _) => Ok(IndexId(id.unwrap_or(0))),
    }
}

/// Reads rows and answers with them. Errors: as [`Error::needs_fiber`] if it must wait; nothing was answered.
pub(super) fn select(
    database: &Database,
    connection: &Connection,
    context: &Context,
    sync: u64,
    request: &Request<'_>,
) -> Result<()> {
    if request.has_page {
        return Err(Error::needs_fiber());
    }
    let kind = IteratorKind::from_code(request.iterator).ok_or_else(|| Error::illegal("Invalid iterator type"))?;
    let space = find_space(database, request)?;
    let index_id = find_index(&space, request)?;
    let limit = request.limit.ok_or_else(|| missing("limit"))?;
    let key = Key::decode(request.key.ok_or_else(|| missing("key"))?)?;
    if !space.has_index(index_id) {
        return Err(no_such_index(&space, index_id));
    }
    let scan = ScanRequest { index_id, kind, key, offset: request.offset, limit };
    context.see(database.written_of(&space, &scan));
    connection.answer(context.awaited(), sync, |out| {
        let start = begin_answer(out, 0, sync, database.catalog.schema_version());
        let at = begin_data(out);
        let mut count = 0;
        database.select(context, &space, &scan, |row| {
            out.extend_from_slice(row);
            count += 1;
            true
        })?;
        end_data(out, at, count);
        end_packet(out, start);
        Ok(())
    })
}

fn operation<'a>(request_type: u64, index_id: IndexId, request: &Request<'a>) -> Result<Operation<'a>> {
    let tuple = || request.tuple.ok_or_else(|| missing("tuple"));
    let key = || request.key.ok_or_else(|| missing("key"));
    let index_base = request.index_base;
    Ok(match request_type {
        request_type::INSERT => Operation::Insert { tuple: tuple()? },
        request_type::REPLACE => Operation::Replace { tuple: tuple()? },
        request_type::UPDATE => Operation::Update { index_id, key: key()?, ops: tuple()?, index_base },
        request_type::DELETE => Operation::Delete { index_id, key: key()? },
        _ => {
            let ops = request.ops.ok_or_else(|| missing("operations"))?;
            Operation::Upsert { tuple: tuple()?, ops, index_base }
        }
    })
}

fn write(
    database: &Database,
    connection: &Rc<Connection>,
    header: Header,
    request: &Request<'_>,
    body: &[u8],
) -> Result<()> {
    let space = find_space(database, request)?;
    let index_id = find_index(&space, request)?;
    let operation = operation(header.request_type, index_id, request)?;
    if space.may_wait() {
        write_in_fiber(connection, header, body);
        return Ok(());
    }
    let context = connection.context();
    context.seen.set(Position::default());
    let row = match database.execute(context, &space, operation) {
        Err(error) if error.is_needs_fiber() => {
            write_in_fiber(connection, header, body);
            return Ok(());
        }
        result => result?,
    };
    let row = row.as_ref().map(|row| row.data());
    answer_data(connection, header.sync, context.seen.get(), u32::from(row.is_some()), row.unwrap_or(&[]))
}

/// Writes in the open transaction of a context and answers. Errors: as [`Error::needs_fiber`] if it may have to wait; nothing was done then.
pub(super) fn write_in(
    database: &Database,
    connection: &Connection,
    context: &Context,
    header: Header,
    request: &Request<'_>,
) -> Result<()> {
    let space = find_space(database, request)?;
    if space.may_wait() {
        return Err(Error::needs_fiber());
    }
    let operation = operation(header.request_type, find_index(&space, request)?, request)?;
    let row = database.execute(context, &space, operation)?;
    let row = row.as_ref().map(|row| row.data());
    answer_data(connection, header.sync, context.awaited(), u32::from(row.is_some()), row.unwrap_or(&[]))
}

/// A write that may have to wait: it runs triggers, looks at all rows of a space, or needs what is on disk.
fn write_in_fiber(connection: &Rc<Connection>, header: Header, body: &[u8]) {
    let subject = ((header.request_type, body.to_vec()), describe_rows as fn(&(u64, Vec<u8>)) -> String);
    answer_in_fiber(connection, header.sync, subject, move |database, context, (_, body), out| {
        run_write(database, context, header, body, out)
    });
}

/// Writes and appends the row that a write answers with. May wait.
fn run_write(database: &Database, context: &Context, header: Header, body: &[u8], out: &mut Values) -> Result<u32> {
    let request = Request::decode(header.request_type, body).map_err(decode_error)?;
    let space = find_space(database, &request)?;
    let operation = operation(header.request_type, find_index(&space, &request)?, &request)?;
    let row = database.execute(context, &space, operation)?;
    Ok(row.map_or(0, |row| {
        out.bytes.extend_from_slice(row.data());
        1
    }))
}

/// A read that has to wait for the disk.
fn select_in_fiber(connection: &Rc<Connection>, sync: u64, body: &[u8]) {
    let subject = ((request_type::SELECT, body.to_vec()), describe_rows as fn(&(u64, Vec<u8>)) -> String);
    answer_in_fiber(connection, sync, subject, move |database, context, (_, body), out| {
        run_select(database, context, body, out)
    });
}

/// Reads rows, appends them and returns how many they are. May wait.
fn run_select(database: &Database, context: &Context, body: &[u8], out: &mut Values) -> Result<u32> {
    let request = Request::decode(request_type::SELECT, body).map_err(decode_error)?;
    let space = find_space(database, &request)?;
    let index_id = find_index(&space, &request)?;
    let limit = request.limit.ok_or_else(|| missing("limit"))?;
    let key = Key::decode(request.key.ok_or_else(|| missing("key"))?)?;
    let kind = IteratorKind::from_code(request.iterator).ok_or_else(|| Error::illegal("Invalid iterator type"))?;
    let mut count = 0;
    let scan = ScanRequest { index_id, kind, key, offset: request.offset, limit };
    if request.has_page {
        let page = read_page(body).map_err(decode_error)?;
        let (rows, position) = database.select_page(context, &space, &scan, page.after)?;
        rows.iter().for_each(|row| out.bytes.extend_from_slice(row.data()));
        out.position = Some(position).filter(|position| page.fetches_position && !position.is_empty());
        return Ok(rows.len() as u32);
    }
    database.select(context, &space, &scan, |row| {
        out.bytes.extend_from_slice(row);
        count += 1;
        true
    })?;
    Ok(count)
}

/// What a request is answered with.
#[derive(Default)]
pub(super) struct Values {
    /// Encoded, one after the other.
    pub(super) bytes: Vec<u8>,
    /// Where the rows end, if that was asked for.
    pub(super) position: Option<Vec<u8>>,
    /// The whole body of the answer, in place of values: of SQL.
    pub(super) body: Option<Vec<u8>>,
}

/// Serves a request of a stream in the fiber that calls: on rows, a call or an evaluation. May wait. Returns the number of values it has
/// appended.
pub(super) fn run(
    database: &Rc<Database>,
    context: &Rc<Context>,
    header: Header,
    body: &[u8],
    out: &mut Values,
) -> Result<u32> {
    match header.request_type {
        request_type::SELECT => run_select(database, context, body, out),
        request_type::CALL | request_type::CALL_16 | request_type::EVAL => {
            let request = Request::decode(header.request_type, body).map_err(decode_error)?;
            let arguments = request.tuple.unwrap_or(&[0x90]);
            if header.request_type == request_type::EVAL {
                let source = request.expression.ok_or_else(|| missing("expression"))?;
                return database.eval(context, &String::from_utf8_lossy(source), arguments, &mut out.bytes);
            }
            let name = request.function_name.ok_or_else(|| missing("function name"))?;
            let is_old_style = header.request_type == request_type::CALL_16;
            database.call(context, &String::from_utf8_lossy(name), arguments, is_old_style, &mut out.bytes)
        }
        request_type::EXECUTE | request_type::PREPARE => {
            execute::run(database, context, header.request_type, body, out)
        }
        _ => run_write(database, context, header, body, out),
    }
}

/// An answer with encoded values that depends on a log position.
pub(super) fn answer_data(connection: &Connection, sync: u64, seen: Position, count: u32, values: &[u8]) -> Result<()> {
    let database = connection.database();
    connection.answer(seen.max(database.schema_written()), sync, |out| {
        let start = begin_answer(out, 0, sync, database.catalog.schema_version());
        let at = begin_data(out);
        out.extend_from_slice(values);
        end_data(out, at, count);
        end_packet(out, start);
        Ok(())
    })
}

/// The same, with the position of the last row if it was asked for.
pub(super) fn answer_values(
    connection: &Connection,
    sync: u64,
    seen: Position,
    count: u32,
    values: &Values,
) -> Result<()> {
    if let Some(body) = &values.body {
        let database = connection.database();
        return connection.answer(seen.max(database.schema_written()), sync, |out| {
            let start = begin_answer(out, 0, sync, database.catalog.schema_version());
            out.extend_from_slice(body);
            end_packet(out, start);
            Ok(())
        });
    }
    let Some(position) = &values.position else {
        return answer_data(connection, sync, seen, count, &values.bytes);
    };
    let database = connection.database();
    connection.answer(seen.max(database.schema_written()), sync, |out| {
        let start = begin_answer(out, 0, sync, database.catalog.schema_version());
        msgpack::encode_map(out, 2);
        msgpack::encode_uint(out, key::DATA);
        msgpack::encode_array(out, count);
        out.extend_from_slice(&values.bytes);
        msgpack::encode_uint(out, key::POSITION);
        msgpack::encode_str(out, position);
        end_packet(out, start);
        Ok(())
    })
}

fn call(connection: &Rc<Connection>, header: Header, request: &Request<'_>) -> Result<()> {
    let arguments = request.tuple.unwrap_or(&[0x90]).to_vec();
    if header.request_type == request_type::EVAL {
        let source = request.expression.ok_or_else(|| missing("expression"))?;
        let source = String::from_utf8_lossy(source).into_owned();
        let subject = (source, describe_eval as fn(&String) -> String);
        answer_in_fiber(connection, header.sync, subject, move |database, context, source, out| {
            database.eval(context, source, &arguments, &mut out.bytes)
        });
        return Ok(());
    }
    let name = request.function_name.ok_or_else(|| missing("function name"))?;
    let name = String::from_utf8_lossy(name).into_owned();
    let is_old_style = header.request_type == request_type::CALL_16;
    let subject = (name, describe_call as fn(&String) -> String);
    answer_in_fiber(connection, header.sync, subject, move |database, context, name, out| {
        database.call(context, name, &arguments, is_old_style, &mut out.bytes)
    });
    Ok(())
}

/// Runs `work` on a subject in a fiber and answers with the values it encodes, of which it returns the number.
fn answer_in_fiber<S: 'static>(
    connection: &Rc<Connection>,
    sync: u64,
    subject: (S, fn(&S) -> String),
    work: impl FnOnce(&Rc<Database>, &Rc<Context>, &S, &mut Values) -> Result<u32> + 'static,
) {
    connection.in_fiber(sync, subject, move |connection, context, subject| {
        let mut values = Values::default();
        let count = work(connection.database(), context, subject, &mut values)?;
        answer_values(connection, sync, context.seen.get(), count, &values)
    });
}

pub(super) fn type_name(request_type: u64) -> &'static str {
    match request_type {
        request_type::SELECT => "SELECT",
        request_type::INSERT => "INSERT",
        request_type::REPLACE => "REPLACE",
        request_type::UPDATE => "UPDATE",
        request_type::DELETE => "DELETE",
        request_type::UPSERT => "UPSERT",
        request_type::CALL | request_type::CALL_16 => "CALL",
        request_type::EVAL => "EVAL",
        request_type::AUTH => "AUTH",
        request_type::BEGIN => "BEGIN",
        request_type::COMMIT => "COMMIT",
        request_type::ROLLBACK => "ROLLBACK",
        request_type::EXECUTE => "EXECUTE",
        request_type::PREPARE => "PREPARE",
        request_type::PING => "PING",
        request_type::ID => "ID",
        request_type::WATCH => "WATCH",
        request_type::UNWATCH => "UNWATCH",
        request_type::WATCH_ONCE => "WATCH_ONCE",
        _ => "request",
    }
}

fn describe_call(name: &String) -> String {
    format!("CALL of {name}")
}

/// The beginning of what was evaluated, in one line.
#[expect(clippy::ptr_arg, reason = "the subject of a fiber is a String")]
fn describe_eval(source: &String) -> String {
    const SHOWN_MAX: usize = 60;
    let shown: String = source.chars().take(SHOWN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("EVAL of '{shown}'{}", if source.chars().nth(SHOWN_MAX).is_some() { "..." } else { "" })
}

/// What a request on rows was, from its body.
pub(super) fn describe_rows((request_type, body): &(u64, Vec<u8>)) -> String {
    let request = Request::decode(*request_type, body).ok();
    let space = request.and_then(|request| request.space_id).map_or_else(String::new, |id| format!(" of space {id}"));
    format!("{}{space}", type_name(*request_type))
}
