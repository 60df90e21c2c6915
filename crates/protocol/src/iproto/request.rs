//! Serving one request.
//!
//! Reads and writes of rows run at once, on the stack of the event loop, and encode their answer straight into the connection's
//! buffer. What may run Lua (calls, evaluation, spaces with triggers) gets a fiber.

use super::decode::{DecodeError, Header, Request};
use super::encode::{begin_answer, begin_data, encode_error, encode_ok, end_answer, end_data};
use super::login::{self, Logins, Waiting};
use super::{FEATURES, PROTOCOL_VERSION, key, request_type};
use crate::connection::Connection;
use database::{
    Context, Database, Error, ErrorCode, Key, Operation, Result, ScanRequest, SessionEvent, Space, index_by_name,
    no_such_index,
};
use runtime::fiber;
use std::rc::Rc;
use storage::{IteratorKind, PREFETCH_MAX, Prefetch};
use tuple::msgpack::{self, Reader};
use wal::Position;

/// Bytes of a proof that somebody knows a password.
const SCRAMBLE_BYTES: usize = 20;

/// Called when a request gets a fiber (false) and when it is answered (true): the connection has something to send.
pub(crate) type RequestEvents = Rc<dyn Fn(&Rc<Connection>, bool)>;

/// The error that a client gets for bytes that are no request.
pub(crate) fn decode_error(error: DecodeError) -> Error {
    match error {
        DecodeError::Length(what) | DecodeError::Header(what) | DecodeError::Body(what) => {
            Error::new(ErrorCode::InvalidMsgpack, &[&what])
        }
        DecodeError::Missing(name) => missing(name),
    }
}

/// A packet whose header could be read. Requests that are no good are kept as such until it is their turn.
pub(crate) struct Decoded<'a> {
    header: Header,
    body: &'a [u8],
    request: std::result::Result<Request<'a>, DecodeError>,
}

/// Reads a packet. Errors: it has no readable header; the connection is told and ends.
pub(crate) fn decode_packet(packet: &[u8]) -> std::result::Result<Decoded<'_>, DecodeError> {
    let (header, body) = Header::decode(packet)?;
    Ok(Decoded { header, body, request: Request::decode(header.request_type, body) })
}

/// Serves a request. The answer goes to the connection's output now or, from a fiber, later.
pub(crate) fn serve(
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    decoded: &Decoded<'_>,
    events: &RequestEvents,
) {
    let header = decoded.header;
    connection.session.sync.set(header.sync);
    database::increment(&database.statistics.requests);
    if let Err(error) = dispatch(database, connection, decoded, events) {
        answer_error(database, connection, header.sync, &error);
    }
}

impl Decoded<'_> {
    /// Type and number of the request.
    pub(crate) fn kind_and_sync(&self) -> (u64, u64) {
        (self.header.request_type, self.header.sync)
    }
}

/// Answers a request with an error, unlooked at.
pub(crate) fn refuse(database: &Database, connection: &Connection, decoded: &Decoded<'_>, error: &Error) {
    answer_error(database, connection, decoded.header.sync, error);
}

/// Tells the database which rows a group of requests is about to look up by primary key, and which it is about to put in.
pub(crate) fn prefetch<'a>(database: &Database, group: impl Iterator<Item = &'a Decoded<'a>>) {
    let mut values = [0; PREFETCH_MAX];
    let mut count = 0;
    let mut rows: [&[u8]; PREFETCH_MAX] = [&[]; PREFETCH_MAX];
    let mut row_count = 0;
    let mut space_id = None;
    let (mut reads_rows, mut changes_rows) = (false, false);
    for decoded in group.take(PREFETCH_MAX) {
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
        && let Some(space) = database.catalog.space(space_id)
        && space.key_starts_rows()
    {
        let wanted = Prefetch { values: &values[..count], new_rows: &rows[..row_count], reads_rows, changes_rows };
        database.prefetch(&space, wanted);
    }
}

/// An error, too, may tell of rows, rights or spaces that are not durable yet: it waits for everything that was written before it.
fn answer_error(database: &Database, connection: &Connection, sync: u64, error: &Error) {
    database::increment(&database.statistics.errors);
    let schema_version = database.catalog.schema_version();
    let seen = database.appended();
    // What a failed log has lost was taken back before.
    let is_parked = seen > database.durable() && database.lost_from().is_none();
    let mut output = connection.output.borrow_mut();
    encode_error(output.begin(is_parked), sync, schema_version, error);
    if is_parked {
        output.park(seen, sync);
    }
}

fn missing(name: &str) -> Error {
    Error::new(ErrorCode::MissingRequestField, &[&name])
}

fn dispatch(
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    decoded: &Decoded<'_>,
    events: &RequestEvents,
) -> Result<()> {
    let (header, body) = (decoded.header, decoded.body);
    let decode = || decoded.request.as_ref().map_err(|error| decode_error(*error));
    decode()?;
    let schema_version = database.catalog.schema_version();
    if header.schema_version != 0 && header.schema_version != schema_version {
        return Err(Error::new(ErrorCode::WrongSchemaVersion, &[&schema_version, &header.schema_version]));
    }
    if header.stream_id != 0 {
        return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"streams yet"]));
    }
    match header.request_type {
        request_type::SELECT => match select(database, connection, header.sync, decode()?) {
            Err(error) if error.is_needs_fiber() => select_in_fiber(database, connection, header.sync, body, events),
            result => result,
        },
        request_type::INSERT
        | request_type::REPLACE
        | request_type::UPDATE
        | request_type::DELETE
        | request_type::UPSERT => write(database, connection, header, decode()?, body, events),
        request_type::CALL | request_type::CALL_16 | request_type::EVAL => {
            call(database, connection, header, decode()?, events)
        }
        request_type::PING => {
            decode()?;
            encode_ok(connection.output.borrow_mut().begin(false), header.sync, schema_version);
            Ok(())
        }
        request_type::AUTH => log_in(database, connection, header.sync, decode()?, body),
        request_type::ID => {
            decode()?;
            let mut output = connection.output.borrow_mut();
            let out = output.begin(false);
            let start = begin_answer(out, 0, header.sync, schema_version);
            msgpack::encode_map(out, 3);
            msgpack::encode_uint(out, key::VERSION);
            msgpack::encode_uint(out, PROTOCOL_VERSION);
            msgpack::encode_uint(out, key::FEATURES);
            msgpack::encode_array(out, FEATURES.len() as u32);
            FEATURES.iter().for_each(|feature| msgpack::encode_uint(out, *feature));
            msgpack::encode_uint(out, key::AUTH_TYPE);
            msgpack::encode_str(out, b"chap-sha1");
            end_answer(out, start);
            Ok(())
        }
        request_type::EXECUTE | request_type::PREPARE => {
            Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"SQL yet"]))
        }
        request_type::BEGIN => Err(Error::new(ErrorCode::UnableToProcessOutOfStream, &[&"BEGIN"])),
        request_type::COMMIT => Err(Error::new(ErrorCode::UnableToProcessOutOfStream, &[&"COMMIT"])),
        request_type::ROLLBACK => Err(Error::new(ErrorCode::UnableToProcessOutOfStream, &[&"ROLLBACK"])),
        request_type::JOIN..=72 => Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"replication yet"])),
        other => {
            decode()?;
            Err(Error::new(ErrorCode::UnknownRequestType, &[&other]))
        }
    }
}

fn find_space(database: &Database, request: &Request<'_>) -> Result<Rc<Space>> {
    match (request.space_id, request.space_name) {
        (Some(id), _) => database.space(id),
        (None, Some(name)) => {
            let name = String::from_utf8_lossy(name);
            database.catalog.space_by_name(&name).ok_or_else(|| Error::new(ErrorCode::NoSuchSpace, &[&name]))
        }
        (None, None) => Err(missing("space id")),
    }
}

fn find_index(space: &Space, request: &Request<'_>) -> Result<u32> {
    match (request.index_id, request.index_name) {
        (None, Some(name)) => Ok(index_by_name(space, &String::from_utf8_lossy(name))?.id),
        (id, _) => Ok(id.unwrap_or(0)),
    }
}

fn select(database: &Database, connection: &Connection, sync: u64, request: &Request<'_>) -> Result<()> {
    let kind = IteratorKind::from_code(request.iterator).ok_or_else(|| Error::illegal("Invalid iterator type"))?;
    let space = find_space(database, request)?;
    let index_id = find_index(&space, request)?;
    let limit = request.limit.ok_or_else(|| missing("limit"))?;
    let key = Key::decode(request.key.ok_or_else(|| missing("key"))?)?;
    if !space.has_index(index_id) {
        return Err(no_such_index(&space, index_id));
    }
    let context = &*connection.context;
    database.act_for_session(context);
    context.seen.set(database.written(&space));
    let is_parked = context.seen.get() > database.durable();
    let mut output = connection.output.borrow_mut();
    let out = output.begin(is_parked);
    let start = begin_answer(out, 0, sync, database.catalog.schema_version());
    let at = begin_data(out);
    let mut count = 0;
    let scan = ScanRequest { index_id, kind, key, offset: request.offset, limit };
    let result = database.select(context, &space, &scan, |row| {
        out.extend_from_slice(row);
        count += 1;
        true
    });
    if let Err(error) = result {
        out.truncate(start);
        return Err(error);
    }
    end_data(out, at, count);
    end_answer(out, start);
    if is_parked {
        output.park(context.seen.get(), sync);
    }
    Ok(())
}

fn operation<'a>(request_type: u64, index_id: u32, request: &Request<'a>) -> Result<Operation<'a>> {
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
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    header: Header,
    request: &Request<'_>,
    body: &[u8],
    events: &RequestEvents,
) -> Result<()> {
    let space = find_space(database, request)?;
    let index_id = find_index(&space, request)?;
    let operation = operation(header.request_type, index_id, request)?;
    if space.may_wait() {
        return write_in_fiber(database, connection, header, index_id, body, events);
    }
    let context = &*connection.context;
    database.act_for_session(context);
    context.seen.set(Position::default());
    let row = match database.execute(context, &space, operation) {
        Err(error) if error.is_needs_fiber() => {
            return write_in_fiber(database, connection, header, index_id, body, events);
        }
        result => result?,
    };
    let row = row.as_ref().map(|row| row.data());
    answer_data(database, connection, header.sync, context.seen.get(), u32::from(row.is_some()), row.unwrap_or(&[]));
    Ok(())
}

/// A write that may have to wait: it runs triggers, looks at all rows of a space, or needs what is on disk.
fn write_in_fiber(
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    header: Header,
    index_id: u32,
    body: &[u8],
    events: &RequestEvents,
) -> Result<()> {
    let subject = ((header.request_type, body.to_vec()), describe_rows as fn(&(u64, Vec<u8>)) -> String);
    in_fiber(database, connection, header.sync, events, subject, move |database, context, (_, body), out| {
        let request = Request::decode(header.request_type, body).map_err(decode_error)?;
        let space = find_space(database, &request)?;
        let operation = self::operation(header.request_type, index_id, &request)?;
        let row = database.execute(context, &space, operation)?;
        Ok(row.map_or(0, |row| {
            out.extend_from_slice(row.data());
            1
        }))
    })
}

/// A read that has to wait for the disk.
fn select_in_fiber(
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    sync: u64,
    body: &[u8],
    events: &RequestEvents,
) -> Result<()> {
    let subject = ((request_type::SELECT, body.to_vec()), describe_rows as fn(&(u64, Vec<u8>)) -> String);
    in_fiber(database, connection, sync, events, subject, move |database, context, (_, body), out| {
        let request = Request::decode(request_type::SELECT, body).map_err(decode_error)?;
        let space = find_space(database, &request)?;
        let index_id = find_index(&space, &request)?;
        let limit = request.limit.ok_or_else(|| missing("limit"))?;
        let key = Key::decode(request.key.ok_or_else(|| missing("key"))?)?;
        let kind = IteratorKind::from_code(request.iterator).ok_or_else(|| Error::illegal("Invalid iterator type"))?;
        let mut count = 0;
        let scan = ScanRequest { index_id, kind, key, offset: request.offset, limit };
        database.select(context, &space, &scan, |row| {
            out.extend_from_slice(row);
            count += 1;
            true
        })?;
        Ok(count)
    })
}

/// An answer with encoded values that depends on a log position.
fn answer_data(database: &Database, connection: &Connection, sync: u64, seen: Position, count: u32, values: &[u8]) {
    let seen = seen.max(database.schema_written());
    let is_parked = seen > database.durable();
    let mut output = connection.output.borrow_mut();
    let out = output.begin(is_parked);
    let start = begin_answer(out, 0, sync, database.catalog.schema_version());
    let at = begin_data(out);
    out.extend_from_slice(values);
    end_data(out, at, count);
    end_answer(out, start);
    if is_parked {
        output.park(seen, sync);
    }
}

fn call(
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    header: Header,
    request: &Request<'_>,
    events: &RequestEvents,
) -> Result<()> {
    let arguments = request.tuple.unwrap_or(&[0x90]).to_vec();
    if header.request_type == request_type::EVAL {
        let source = request.expression.ok_or_else(|| missing("expression"))?;
        let source = String::from_utf8_lossy(source).into_owned();
        let subject = (source, describe_eval as fn(&String) -> String);
        return in_fiber(database, connection, header.sync, events, subject, move |database, context, source, out| {
            database.eval(context, source, &arguments, out)
        });
    }
    let name = request.function_name.ok_or_else(|| missing("function name"))?;
    let name = String::from_utf8_lossy(name).into_owned();
    let is_old_style = header.request_type == request_type::CALL_16;
    let subject = (name, describe_call as fn(&String) -> String);
    in_fiber(database, connection, header.sync, events, subject, move |database, context, name, out| {
        database.call(context, name, &arguments, is_old_style, out)
    })
}

/// What requests are refused with while the server stops.
pub(crate) fn shutting_down() -> Error {
    Error::system("the server is shutting down")
}

/// Runs `work` on a subject in a fiber with a context of its own and answers with the values it encodes. `describe` says what it was if it
/// waited and took long; what did not wait is in the time of its group.
fn in_fiber<S: 'static>(
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    sync: u64,
    events: &RequestEvents,
    (subject, describe): (S, fn(&S) -> String),
    work: impl FnOnce(&Rc<Database>, &Rc<Context>, &S, &mut Vec<u8>) -> Result<u32> + 'static,
) -> Result<()> {
    let database = Rc::clone(database);
    let connection = Rc::clone(connection);
    let events = Rc::clone(events);
    connection.in_flight.set(connection.in_flight.get() + 1);
    let open = &database.statistics.requests_open;
    open.set(open.get() + 1);
    events(&connection, false);
    let begun = connection.group_began.get();
    fiber::run_now("iproto", move || {
        let context = Rc::new(Context::for_request(Rc::clone(&connection.session)));
        database.act_for_session(&context);
        fiber::set_local(Rc::clone(&context) as Rc<dyn std::any::Any>);
        let mut values = Vec::new();
        let outcome = work(&database, &context, &subject, &mut values);
        let waited = fiber::waited_ns();
        if waited > 0 {
            let total = fiber::now_ns().saturating_sub(begun);
            if total > database.limits.too_long_ns.get() {
                log_slow(&describe(&subject), total, waited);
            }
        }
        match outcome {
            Err(_) if connection.is_cut_short.get() => answer_error(&database, &connection, sync, &shutting_down()),
            Ok(count) => answer_data(&database, &connection, sync, context.seen.get(), count, &values),
            Err(error) => answer_error(&database, &connection, sync, &error),
        }
        connection.in_flight.set(connection.in_flight.get() - 1);
        let open = &database.statistics.requests_open;
        open.set(open.get().saturating_sub(1));
        events(&connection, true);
    });
    Ok(())
}

/// Says that something took long, and where the time went.
fn log_slow(what: &str, total_ns: u64, waited_ns: u64) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let waited_ns = waited_ns.min(total_ns);
    tracing::warn!(
        "too long {what}: {:.3} sec, {:.3} running and {:.3} waiting",
        seconds(total_ns),
        seconds(total_ns - waited_ns),
        seconds(waited_ns)
    );
}

/// Says that requests which were served together on the event loop's own stack took long.
pub(crate) fn log_slow_group((request_type, sync): (u64, u64), count: usize, total_ns: u64) {
    let name = type_name(request_type);
    match count {
        1 => log_slow(&format!("{name} (sync {sync})"), total_ns, 0),
        count => log_slow(&format!("group of {count} requests that begins with {name} (sync {sync})"), total_ns, 0),
    }
}

fn type_name(request_type: u64) -> &'static str {
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
fn describe_rows((request_type, body): &(u64, Vec<u8>)) -> String {
    let request = Request::decode(*request_type, body).ok();
    let space = request.and_then(|request| request.space_id).map_or_else(String::new, |id| format!(" of space {id}"));
    format!("{}{space}", type_name(*request_type))
}

/// Answers a login, later if its address has failed too often.
fn log_in(
    database: &Rc<Database>,
    connection: &Rc<Connection>,
    sync: u64,
    request: &Request<'_>,
    body: &[u8],
) -> Result<()> {
    let Some(origin) = login::origin(connection.session.peer.as_deref()) else {
        return authenticate(database, connection, sync, request, None);
    };
    // Whatever is refused here is refused unlooked at: whether a password is right must not show sooner than it may.
    let refuse = |why: &str| {
        let mut error = Error::new(ErrorCode::CredsMismatch, &[]);
        error.push_text(why);
        Err(error)
    };
    if connection.is_login_waiting.get() {
        return refuse("; not looked at: a login of this connection is waiting behind failed ones");
    }
    let now = fiber::now_ns();
    let delay_ns = connection.logins.delay_ns(origin, now);
    if delay_ns == 0 {
        return authenticate(database, connection, sync, request, Some(origin));
    }
    if body.len() > login::BODY_MAX {
        return refuse("; not looked at: it is too long");
    }
    connection.is_login_waiting.set(true);
    // Not counted with the requests that may be served at once: those who guess must not use them up.
    connection.in_flight.set(connection.in_flight.get() + 1);
    connection.logins.wait(now.saturating_add(delay_ns), Waiting::new(connection, origin, sync, body));
    Ok(())
}

/// Looks at the logins whose time has come. `answered` gets each connection that has an answer now.
pub(crate) fn answer_logins(database: &Rc<Database>, logins: &Logins, answered: impl Fn(&Rc<Connection>)) {
    while let Some(waiting) = logins.take_due(fiber::now_ns()) {
        let Some(connection) = waiting.connection.upgrade() else { continue };
        connection.is_login_waiting.set(false);
        connection.in_flight.set(connection.in_flight.get() - 1);
        let outcome = Request::decode(request_type::AUTH, &waiting.body)
            .map_err(decode_error)
            .and_then(|request| authenticate(database, &connection, waiting.sync, &request, Some(waiting.origin)));
        if let Err(error) = outcome {
            answer_error(database, &connection, waiting.sync, &error);
        }
        answered(&connection);
    }
}

fn authenticate(
    database: &Rc<Database>,
    connection: &Connection,
    sync: u64,
    request: &Request<'_>,
    origin: Option<login::Origin>,
) -> Result<()> {
    match (check_credentials(database, connection, request), origin) {
        (Ok(()), Some(origin)) => connection.logins.succeeded(origin, connection.session.user.get()),
        (Ok(()), None) => {}
        (Err(mut error), Some(origin)) if error.code() == ErrorCode::CredsMismatch as u32 => {
            let name = String::from_utf8_lossy(request.user_name.unwrap_or(b""));
            let user = database.catalog.user_by_name(&name).map(|user| user.id);
            let delay_ms = connection.logins.failed(origin, user, fiber::now_ns()) / 1_000_000;
            if delay_ms > 0 {
                error.push_text(&format!(
                    "; after failed logins from {origin} the next answer comes {delay_ms} ms later"
                ));
            }
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    }
    let seen = database.schema_written();
    let is_parked = seen > database.durable();
    let mut output = connection.output.borrow_mut();
    encode_ok(output.begin(is_parked), sync, database.catalog.schema_version());
    if is_parked {
        output.park(seen, sync);
    }
    drop(output);
    database.announce(&connection.session, SessionEvent::Auth);
    Ok(())
}

fn check_credentials(database: &Rc<Database>, connection: &Connection, request: &Request<'_>) -> Result<()> {
    let name = request.user_name.ok_or_else(|| missing("user name"))?;
    let name = String::from_utf8_lossy(name);
    let raw = request.tuple.ok_or_else(|| missing("tuple"))?;
    let malformed = |what: &str| Error::new(ErrorCode::InvalidMsgpack, &[&what]);
    let mut reader = Reader::new(raw);
    let body = "authentication request body";
    let count = reader.read_array().map_err(|_| malformed(body))?;
    if count == 0 && name == "guest" {
        return database.log_in(&connection.session, database::GUEST);
    }
    if count < 2 {
        return Err(malformed(body));
    }
    let method = reader.read_value().map_err(|_| malformed(body))?;
    let scramble = reader.read_str_or_bin().map_err(|_| malformed("authentication scramble"))?;
    if scramble.len() != SCRAMBLE_BYTES {
        return Err(malformed("invalid scramble size"));
    }
    if !Reader::new(method).read_str().is_ok_and(|method| method == b"chap-sha1") {
        let method = Reader::new(method).read_str().unwrap_or(method);
        let method = String::from_utf8_lossy(method);
        return Err(Error::illegal(format_args!("unknown authentication method '{}'", method.escape_debug())));
    }
    database.authenticate(&connection.session, &name, scramble, &connection.salt)
}
