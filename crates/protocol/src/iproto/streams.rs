//! Streams: interactive transactions of one connection, beside each other.
//!
//! A request with the number of a stream is served behind the requests before it with the same number, and in the transaction that one of them has
//! begun. Streams know nothing of each other.
//!
//! ```text
//! no state ---BEGIN, or a request that waits---> open: a context, perhaps a transaction, perhaps a fiber that serves
//!    ^                                             |
//!    +------no transaction and no request left-----+
//! ```
//!
//! A stream without a transaction and without a request under way has no state here: its next request is served as one without a stream. What
//! cannot wait is served on the stack of the event loop; what may wait gets a fiber, behind which the requests of the stream queue up. Between
//! requests the transaction is suspended.
//!
//! Invariants:
//! * A stream has a fiber exactly while `is_busy`; only then its queue has something.
//! * What is queued weighs on the connection's requests under way: a client that sends more than the bound waits with all of its streams.
//! * A client that sends no more leaves nothing: its streams are rolled back as soon as their requests have ended. If the connection is gone, those
//!   in the queues are dropped.

use super::decode::read_begin;
use super::encode::encode_ok;
use super::request::{
    Decoded, Values, answer_values, decode_error, describe_rows, run, select, serve_alone, type_name, write_in,
};
use super::{Iproto, Request};
use crate::connection::Connection;
use crate::door::Door;
use database::{Context, Database, Error, ErrorCode, Result, TxnIsolation, TxnOptions};
use hashbrown::HashMap;
use runtime::fiber;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use wire::{Header, request_type};

/// Streams of one connection that have a transaction or a request under way.
const STREAMS_MAX: usize = 1000;
/// The same of all connections: each may hold rows that it has written.
const STREAMS_TOTAL_MAX: usize = 50_000;
/// The same two of connections that have not logged in, while guest may do nothing: they leave room for everybody else.
const STRANGER_STREAMS_MAX: usize = 8;
const STRANGER_STREAMS_TOTAL_MAX: usize = 5_000;
/// Bytes of a queued request that weigh as much as another request.
const QUEUED_BYTES: usize = 16 << 10;
/// Time that the queue of a stream gets before other fibers have their turn.
const SLICE_NS: u64 = 2_000_000;

/// The streams of a connection that have something to remember.
#[derive(Default)]
pub(super) struct Streams {
    open: RefCell<HashMap<u64, Rc<Stream>>>,
    /// No more requests will come.
    is_closed: Cell<bool>,
}

struct Stream {
    id: u64,
    context: Rc<Context>,
    /// A fiber serves its requests.
    is_busy: Cell<bool>,
    queue: RefCell<VecDeque<Queued>>,
}

/// A request that waits for those before it, or is served in the fiber of its stream.
struct Queued {
    header: Header,
    body: Vec<u8>,
    /// When it came, by the clock of the fibers.
    begun_ns: u64,
}

impl Queued {
    /// How many requests under way it counts for.
    fn weight(&self) -> usize {
        1 + self.body.len() / QUEUED_BYTES
    }

    fn describe(&self) -> String {
        format!("{} of stream {}", describe_rows(&(self.header.request_type, self.body.clone())), self.header.stream_id)
    }
}

/// Requests that have a place in a stream. Errors: `UnableToProcessInStream` for others.
fn check_type(request_type: u64) -> Result<()> {
    match request_type {
        request_type::AUTH => Err(Error::new(ErrorCode::UnableToProcessInStream, &[&type_name(request_type)])),
        0..=request_type::ROLLBACK | request_type::PING => Ok(()),
        _ => Err(Error::new(ErrorCode::UnableToProcessInStream, &[&type_name(request_type)])),
    }
}

/// True for a stream whose transaction has changed the schema, so that requests in it are about another one than those beside.
pub(super) fn has_own_schema(streams: &Streams, stream_id: u64) -> bool {
    stream_id != 0 && streams.open.borrow().get(&stream_id).is_some_and(|stream| stream.context.has_changed_schema())
}

/// Serves a request that names a stream, now or behind those before it. Errors: nothing was answered.
pub(super) fn serve(
    connection: &Rc<Connection>,
    streams: &Streams,
    decoded: &Decoded<'_>,
    request: &Request<'_>,
) -> Result<()> {
    let (header, body) = (decoded.header, decoded.body);
    check_type(header.request_type)?;
    let stream = streams.open.borrow().get(&header.stream_id).cloned();
    match stream {
        Some(stream) if stream.is_busy.get() => {
            let queued = Queued { header, body: body.to_vec(), begun_ns: fiber::now_ns() };
            connection.in_flight.set(connection.in_flight.get() + queued.weight());
            stream.queue.borrow_mut().push_back(queued);
            Ok(())
        }
        Some(stream) => serve_open(connection, streams, &stream, header, body, request),
        None => serve_new(connection, streams, header, body, request),
    }
}

/// Serves a request of a stream that has no transaction and nothing under way.
fn serve_new(
    connection: &Rc<Connection>,
    streams: &Streams,
    header: Header,
    body: &[u8],
    request: &Request<'_>,
) -> Result<()> {
    let database = connection.database();
    match header.request_type {
        request_type::BEGIN => {
            let options = begin_options(body)?;
            let stream = streams.open(connection, header.stream_id)?;
            let result = database.begin_with(&stream.context, options);
            if let Err(error) = result {
                streams.forget(database, &stream);
                return Err(error);
            }
            database.begin_wait(&stream.context);
            answer_ok(connection, &stream.context, header.sync)
        }
        // Nothing is committed and nothing rolled back, which succeeds.
        request_type::COMMIT | request_type::ROLLBACK => answer_ok(connection, connection.context(), header.sync),
        request_type::SELECT => {
            let context = connection.context();
            context.seen.set(wal::Position::default());
            match select(database, connection, context, header.sync, request) {
                Err(error) if error.is_needs_fiber() => {
                    start(connection, streams.open(connection, header.stream_id)?, header, body);
                    Ok(())
                }
                result => result,
            }
        }
        request_type::INSERT..=request_type::DELETE | request_type::UPSERT => {
            let context = connection.context();
            context.seen.set(wal::Position::default());
            match write_in(database, connection, context, header, request) {
                Err(error) if error.is_needs_fiber() => {
                    start(connection, streams.open(connection, header.stream_id)?, header, body);
                    Ok(())
                }
                result => result,
            }
        }
        request_type::CALL
        | request_type::CALL_16
        | request_type::EVAL
        | request_type::EXECUTE
        | request_type::PREPARE => {
            start(connection, streams.open(connection, header.stream_id)?, header, body);
            Ok(())
        }
        _ => serve_alone(connection, header, body, request),
    }
}

/// Serves a request of a stream with a transaction and nothing under way.
fn serve_open(
    connection: &Rc<Connection>,
    streams: &Streams,
    stream: &Rc<Stream>,
    header: Header,
    body: &[u8],
    request: &Request<'_>,
) -> Result<()> {
    let database = connection.database();
    let context = &stream.context;
    database.act_for_session(context);
    let result = match header.request_type {
        request_type::SELECT => select(database, connection, context, header.sync, request),
        request_type::INSERT..=request_type::DELETE | request_type::UPSERT => {
            write_in(database, connection, context, header, request)
        }
        request_type::BEGIN | request_type::COMMIT | request_type::ROLLBACK => {
            if database.has_txn_callbacks(context) {
                Err(Error::needs_fiber())
            } else {
                control(connection, context, header, body)
            }
        }
        request_type::CALL
        | request_type::CALL_16
        | request_type::EVAL
        | request_type::EXECUTE
        | request_type::PREPARE => Err(Error::needs_fiber()),
        _ => serve_alone(connection, header, body, request),
    };
    match result {
        Err(error) if error.is_needs_fiber() => {
            start(connection, Rc::clone(stream), header, body);
            Ok(())
        }
        result => {
            rest(database, streams, stream);
            result
        }
    }
}

/// A stream has no request now: its transaction is suspended, and without one it is forgotten.
fn rest(database: &Rc<Database>, streams: &Streams, stream: &Rc<Stream>) {
    if stream.context.is_in_txn() {
        database.begin_wait(&stream.context);
    } else {
        streams.forget(database, stream);
    }
}

/// Begins, commits or rolls back. May wait if the transaction has callbacks.
fn control(connection: &Connection, context: &Context, header: Header, body: &[u8]) -> Result<()> {
    let database = connection.database();
    match header.request_type {
        request_type::BEGIN => database.begin_with(context, begin_options(body)?)?,
        request_type::COMMIT => database.commit(context)?,
        _ => database.rollback(context)?,
    }
    answer_ok(connection, context, header.sync)
}

fn answer_ok(connection: &Connection, context: &Context, sync: u64) -> Result<()> {
    let schema_version = connection.database().catalog.schema_version();
    connection.answer(context.awaited(), sync, |out| {
        encode_ok(out, sync, schema_version);
        Ok(())
    })
}

fn begin_options(body: &[u8]) -> Result<TxnOptions> {
    let begin = read_begin(body).map_err(decode_error)?;
    let isolation = TxnIsolation::from_code(begin.isolation);
    let isolation = isolation.ok_or_else(|| Error::illegal("unknown isolation level"))?;
    let timeout_ns = match begin.timeout {
        Some(seconds) if seconds > 0.0 => Some((seconds * 1e9) as u64),
        // Clients without a time-out of their own send 0.
        None | Some(0.0) => None,
        Some(_) => return Err(Error::illegal("timeout must be a number greater than 0")),
    };
    Ok(TxnOptions { timeout_ns, isolation, ..TxnOptions::default() })
}

impl Streams {
    /// Remembers a stream from now on. Errors: there are too many.
    fn open(&self, connection: &Connection, id: u64) -> Result<Rc<Stream>> {
        let total = &connection.database().statistics.streams_open;
        let (max, total_max) = match connection.is_stranger() {
            true => (STRANGER_STREAMS_MAX, STRANGER_STREAMS_TOTAL_MAX),
            false => (STREAMS_MAX, STREAMS_TOTAL_MAX),
        };
        let mut open = self.open.borrow_mut();
        if open.len() >= max || total.get() >= total_max as u64 {
            let what = match open.len() >= max {
                true => format!("more than {max} open streams of one connection"),
                false => format!("more than {total_max} open streams"),
            };
            return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &what]));
        }
        total.set(total.get() + 1);
        database::increment(&connection.database().statistics.streams);
        let context = Rc::new(Context::for_stream(Rc::clone(connection.session())));
        connection.database().act_for_session(&context);
        let stream = Stream { id, context, is_busy: Cell::new(false), queue: RefCell::default() };
        let stream = Rc::new(stream);
        open.insert(id, Rc::clone(&stream));
        Ok(stream)
    }

    fn forget(&self, database: &Database, stream: &Stream) {
        debug_assert!(!stream.context.is_in_txn() && stream.queue.borrow().is_empty(), "what is forgotten is over");
        if self.open.borrow_mut().remove(&stream.id).is_some() {
            let total = &database.statistics.streams_open;
            total.set(total.get() - 1);
        }
    }
}

/// Serves a request in a fiber, and what queues up behind it.
fn start(connection: &Rc<Connection>, stream: Rc<Stream>, header: Header, body: &[u8]) {
    let first = Queued { header, body: body.to_vec(), begun_ns: connection.group_began.get() };
    let connection = Rc::clone(connection);
    stream.is_busy.set(true);
    connection.service.begin_request(&connection);
    fiber::run_now(Iproto::NAME, move || {
        fiber::set_local(Rc::clone(&stream.context) as Rc<dyn Any>);
        let mut next = Some(first);
        let mut slice_began = fiber::now_ns();
        while let Some(request) = next {
            serve_queued(&connection, &stream, &request);
            next = take_next(&connection, &stream);
            if next.is_some() && fiber::now_ns().saturating_sub(slice_began) > SLICE_NS {
                connection.service.mark(&connection);
                fiber::yield_now();
                slice_began = fiber::now_ns();
            }
        }
        stream.is_busy.set(false);
        let streams = streams_of(&connection);
        if streams.is_closed.get() {
            connection.database().abandon(&stream.context);
        }
        rest(connection.database(), streams, &stream);
        connection.service.end_request(&connection);
    });
}

/// The next request of a stream that came behind others.
fn take_next(connection: &Rc<Connection>, stream: &Stream) -> Option<Queued> {
    let next = stream.queue.borrow_mut().pop_front()?;
    if connection.is_busy() {
        // The others of the connection may be read again.
        connection.service.announce_room();
        connection.service.mark(connection);
    }
    let rest = connection.in_flight.get().checked_sub(next.weight());
    connection.in_flight.set(rest.expect("what was queued has been counted"));
    Some(next)
}

fn serve_queued(connection: &Connection, stream: &Stream, request: &Queued) {
    let header = request.header;
    if !connection.session().is_alive.get() {
        // Nobody waits for what was queued.
        return;
    }
    let (database, context) = (connection.database(), &stream.context);
    database.act_for_session(context);
    connection.session().sync.set(header.sync);
    context.sync.set(header.sync);
    let work = || match header.request_type {
        request_type::BEGIN | request_type::COMMIT | request_type::ROLLBACK => {
            control(connection, context, header, &request.body)
        }
        request_type::SELECT..=request_type::CALL_16
        | request_type::EVAL..=request_type::CALL
        | request_type::EXECUTE
        | request_type::PREPARE => {
            let mut values = Values::default();
            let count = run(database, context, header, &request.body, &mut values)?;
            answer_values(connection, header.sync, context.awaited(), count, &values)
        }
        request_type::PING => answer_ok(connection, context, header.sync),
        other => Err(Error::new(ErrorCode::UnknownRequestType, &[&other])),
    };
    connection.serve_here(header.sync, request.begun_ns, || request.describe(), work);
}

/// The streams of a connection.
fn streams_of(connection: &Connection) -> &Streams {
    &connection.state.downcast_ref::<super::State>().expect("the door of a connection has made its state").streams
}

/// No more requests will come: transactions are rolled back, now or behind the requests under way.
pub(super) fn close(connection: &Rc<Connection>, streams: &Streams) {
    streams.is_closed.set(true);
    let open = streams.open.borrow();
    let mut idle: Vec<_> = open.values().filter(|stream| !stream.is_busy.get()).cloned().collect();
    drop(open);
    if idle.is_empty() {
        return;
    }
    idle.sort_unstable_by_key(|stream| stream.id);
    idle.iter().for_each(|stream| stream.is_busy.set(true));
    let connection = Rc::clone(connection);
    // What a transaction calls back may wait.
    fiber::run_now(Iproto::NAME, move || {
        let database = connection.database();
        for stream in idle {
            fiber::set_local(Rc::clone(&stream.context) as Rc<dyn Any>);
            database.abandon(&stream.context);
            streams_of(&connection).forget(database, &stream);
        }
    });
}
