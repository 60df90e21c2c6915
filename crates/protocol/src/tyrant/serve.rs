//! Serving one request: here and now where it cannot wait, else in a fiber of its own.

use super::records::{Kind, Place, ROWS_AT_ONCE, Work};
use super::request::{self, Put};
use super::{Base, Decoded, Found, Request, State, Tyrant, http, misc, split};
use crate::connection::Connection;
use crate::door::Door;
use crate::memcached::numbers::{push_u64, read_u64};
use crate::memcached::store::Verb;
use crate::memcached::text;
use database::{Context, Error, Result};
use runtime::fiber;
use std::fmt::Write;
use std::rc::Rc;
use tuple::msgpack::{self, Reader};
use wal::Position;

/// Codes of answers of the binary protocol.
const DONE: u8 = 0;
pub(super) const FAILED: u8 = 1;
/// Bytes of an answer about many records.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Parts that a fraction is counted in.
const FRACTION: f64 = 1e12;

pub(super) fn describe(raw: &[u8]) -> String {
    match raw {
        [request::MAGIC, command, ..] => format!("tyrant command {command:#04x}"),
        _ => "tyrant line".to_string(),
    }
}

/// True for a line of memcached's protocol with a value that is too large, which is passed over.
pub(super) fn is_oversized(request: &Request<'_>) -> bool {
    matches!(request, Request::Line(text::Request::Oversized { .. }))
}

/// True if a request may be served on the stack of the event loop: it is about one record.
pub(super) fn is_short(request: &Request<'_>) -> bool {
    use request::Request as Binary;
    match request {
        Request::Binary(binary) => !matches!(
            binary,
            Binary::GetMany { .. }
                | Binary::IterNext
                | Binary::Prefix { .. }
                | Binary::Call { .. }
                | Binary::Misc { .. }
                | Binary::Vanish
        ),
        Request::Http(http) => http.method != b"POST",
        Request::Line(line) => match line {
            text::Request::Get { keys, .. } => !keys.is_empty() && keys.len() <= text::LINE_BYTES_MAX,
            text::Request::FlushAll { .. } => false,
            _ => true,
        },
        Request::Leave(_) => true,
    }
}

fn may_write(request: &Request<'_>) -> bool {
    use request::Request as Binary;
    match request {
        Request::Binary(binary) => {
            !matches!(binary, Binary::Get(_) | Binary::Size(_) | Binary::Count | Binary::Bytes | Binary::Stat)
        }
        Request::Http(http) => !matches!(http.method, b"GET" | b"HEAD" | b"OPTIONS"),
        Request::Line(line) => !matches!(line, text::Request::GetOne(_) | text::Request::Get { .. }),
        Request::Leave(_) => false,
    }
}

/// Nobody listens to how it ends.
fn is_silent(request: &Request<'_>) -> bool {
    match request {
        Request::Binary(request::Request::Put { is_quiet, .. }) => *is_quiet,
        Request::Line(text::Request::Store(store)) => store.is_quiet,
        Request::Line(
            text::Request::Delete { is_quiet, .. }
            | text::Request::Arithmetic { is_quiet, .. }
            | text::Request::FlushAll { is_quiet, .. },
        ) => *is_quiet,
        _ => false,
    }
}

/// Serves a request. Errors: nothing was answered.
pub(super) fn serve(base: &Rc<Base>, connection: &Rc<Connection>, state: &State, decoded: &Decoded<'_>) -> Result<()> {
    match &decoded.request {
        Request::Leave(why) => {
            let peer = connection.session().peer.as_deref().unwrap_or("a client");
            tracing::warn!("{peer} {why} at an address of tyrant: the connection is closed");
            connection.end();
            return Ok(());
        }
        Request::Line(text::Request::Skip(count)) => {
            state.skipped.set(state.skipped.get().saturating_sub(*count));
            return Ok(());
        }
        Request::Line(text::Request::Oversized { skipped, .. }) => state.skipped.set(*skipped),
        Request::Line(text::Request::Quit) => {
            connection.end();
            return Ok(());
        }
        Request::Http(http) if !http.stays => connection.end(),
        _ => {}
    }
    let database = connection.database();
    let bound = base.bound(database)?;
    let may_wait = may_write(&decoded.request) && (bound.space.may_wait() || bound.space.rows.may_wait());
    if may_wait || !is_short(&decoded.request) {
        in_fiber(base, connection, decoded);
        return Ok(());
    }
    let context = connection.context();
    context.seen.set(Position::default());
    let work = Work { database, context, bound: &bound, kind: base.kind, is_in_fiber: false };
    let mut out = Vec::new();
    if let Request::Binary(request::Request::Get(key)) = &decoded.request {
        // The frequent one: straight into the answer.
        let seen = work.written(key)?;
        let answered = connection.answer(seen, super::LOOKS_TAG, |out| get(&work, key, out));
        return or_in_fiber(answered, base, connection, decoded);
    }
    let done = run(base, &work, &decoded.request, &mut out);
    let seen = context.seen.get();
    finish(or_in_fiber_after(done, base, connection, decoded), connection, decoded, seen, &out)
}

/// A request that has to wait begins again in a fiber.
fn or_in_fiber(done: Result<()>, base: &Rc<Base>, connection: &Rc<Connection>, decoded: &Decoded<'_>) -> Result<()> {
    match done {
        Err(error) if error.is_needs_fiber() => {
            in_fiber(base, connection, decoded);
            Ok(())
        }
        done => done,
    }
}

/// The same; `None` if it has begun again.
fn or_in_fiber_after(
    done: Result<()>,
    base: &Rc<Base>,
    connection: &Rc<Connection>,
    decoded: &Decoded<'_>,
) -> Option<Result<()>> {
    match done {
        Err(error) if error.is_needs_fiber() => {
            in_fiber(base, connection, decoded);
            None
        }
        done => Some(done),
    }
}

/// Answers with what a request has come to.
fn finish(
    done: Option<Result<()>>,
    connection: &Connection,
    decoded: &Decoded<'_>,
    seen: Position,
    out: &[u8],
) -> Result<()> {
    match done {
        None => Ok(()),
        Some(Err(error)) if is_silent(&decoded.request) => {
            tracing::debug!("a request without an answer failed: {error}");
            database::increment(&connection.database().statistics.errors);
            Ok(())
        }
        Some(Ok(())) if !out.is_empty() => {
            let seen = seen.max(connection.database().schema_written());
            connection.answer(seen, Tyrant::tag(decoded), |to| {
                to.extend_from_slice(out);
                Ok(())
            })
        }
        Some(done) => done,
    }
}

#[expect(clippy::ptr_arg, reason = "the subject of a fiber is a Vec")]
fn describe_owned(raw: &Vec<u8>) -> String {
    describe(raw)
}

/// Serves a request in a fiber.
fn in_fiber(base: &Rc<Base>, connection: &Rc<Connection>, decoded: &Decoded<'_>) {
    let base = Rc::clone(base);
    let subject = (decoded.raw.to_vec(), describe_owned as fn(&Vec<u8>) -> String);
    connection.in_fiber(Tyrant::tag(decoded), subject, move |connection, context, raw| {
        let (Found::Whole(request, _) | Found::Last(request, _)) = split(raw) else {
            return Err(Error::illegal("a request has lost its end"));
        };
        let bound = base.bound(connection.database())?;
        let work = Work { database: connection.database(), context, bound: &bound, kind: base.kind, is_in_fiber: true };
        let mut out = Vec::new();
        let decoded = Decoded { raw, request };
        let done = match &decoded.request {
            Request::Binary(request::Request::Call { name, key, value }) => {
                call(&work, context, name, key, value).map(|answer| push_call(&mut out, answer))
            }
            Request::Http(http) if http.method == b"POST" && http.function.is_some() => {
                let name = http.function.as_deref().unwrap_or_default().as_bytes();
                call(&work, context, name, &http.key, http.body).map(|answer| match answer {
                    Some(answer) => say_http(&mut out, 200, &answer, http),
                    None => say_http(&mut out, 500, b"the function has returned nothing\n", http),
                })
            }
            request => run(&base, &work, request, &mut out),
        };
        finish(Some(done), connection, &decoded, context.seen.get(), &out)
    });
}

fn say_http(out: &mut Vec<u8>, status: u32, body: &[u8], http: &http::Request<'_>) {
    let kind = if status == 200 { "application/octet-stream" } else { "text/plain" };
    http::answer(out, status, (kind, body), (http.method, http.stays));
}

fn push_call(out: &mut Vec<u8>, answer: Option<Vec<u8>>) {
    match answer {
        None => out.push(FAILED),
        Some(answer) => {
            out.push(DONE);
            push_part(out, &answer);
        }
    }
}

/// Calls a function of Lua with key and value. Returns what it gives; None: nil or false. May wait. Errors: it is not there or not granted, or raises.
fn call(work: &Work<'_>, context: &Rc<Context>, name: &[u8], key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut arguments = vec![0x92];
    msgpack::encode_str(&mut arguments, key);
    msgpack::encode_str(&mut arguments, value);
    let mut values = Vec::new();
    let count = work.database.call(context, &String::from_utf8_lossy(name), &arguments, false, &mut values)?;
    let mut reader = Reader::new(&values);
    if count == 0 || reader.read_nil().is_ok() {
        return Ok(None);
    }
    let mut reader = Reader::new(&values);
    if let Ok(is_true) = reader.read_bool() {
        return Ok(is_true.then(|| b"true".to_vec()));
    }
    let mut reader = Reader::new(&values);
    if let Ok(text) = reader.read_str_or_bin() {
        return Ok(Some(text.to_vec()));
    }
    let mut reader = Reader::new(&values);
    if let Ok(number) = reader.read_int() {
        return Ok(Some(number.to_string().into_bytes()));
    }
    Ok(Reader::new(&values).read_double().ok().map(|number| number.to_string().into_bytes()))
}

fn push_part(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u32).to_be_bytes());
    out.extend_from_slice(part);
}

/// Appends the answer to a get.
#[inline]
fn get(work: &Work<'_>, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some(row) = work.row(key)? else {
        out.push(FAILED);
        return Ok(());
    };
    out.push(DONE);
    if matches!(work.kind, Kind::Hash | Kind::Tree) {
        let mut reader = Reader::new(row.data());
        let value = reader.read_array().and_then(|_| reader.read_value()).and_then(|_| reader.read_str_or_bin());
        if let Ok(value) = value {
            push_part(out, value);
            return Ok(());
        }
    }
    let (_, value) = work.read(row.data())?;
    push_part(out, &value);
    Ok(())
}

/// Does what a request asks for and appends its answer, or nothing. Errors: as [`Error::needs_fiber`] if it has to wait; nothing was done.
pub(super) fn run(base: &Base, work: &Work<'_>, request: &Request<'_>, out: &mut Vec<u8>) -> Result<()> {
    match request {
        Request::Binary(binary) => run_binary(base, work, binary, out),
        Request::Http(http) => run_http(base, work, http, out),
        Request::Line(line) => run_line(base, work, line, out),
        Request::Leave(_) => Ok(()),
    }
}

fn run_binary(base: &Base, work: &Work<'_>, binary: &request::Request<'_>, out: &mut Vec<u8>) -> Result<()> {
    use request::Request as Binary;
    let code = |is_done: bool| if is_done { DONE } else { FAILED };
    match binary {
        Binary::Put { how, key, value, is_quiet } => {
            let is_done = work.put(*how, key, value)?;
            if !is_quiet {
                out.push(code(is_done));
            }
        }
        Binary::Out(key) => out.push(code(work.out(key)?)),
        Binary::Get(key) => get(work, key, out)?,
        Binary::GetMany { keys, .. } => {
            let (mut found, mut count) = (Vec::new(), 0u32);
            for (number, key) in request::parts_of(keys).enumerate() {
                if let Some(value) = work.get(key)? {
                    found.extend_from_slice(&(key.len() as u32).to_be_bytes());
                    found.extend_from_slice(&(value.len() as u32).to_be_bytes());
                    found.extend_from_slice(key);
                    found.extend_from_slice(&value);
                    count += 1;
                }
                check_size(found.len())?;
                if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
                    fiber::yield_now();
                }
            }
            out.push(DONE);
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(&found);
        }
        Binary::Size(key) => match work.get(key)? {
            Some(value) => {
                out.push(DONE);
                out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            }
            None => out.push(FAILED),
        },
        Binary::IterInit => {
            base.iteration.begin(Place::Start);
            out.push(DONE);
        }
        Binary::IterNext => match base.iteration.next(work)? {
            Some(key) => {
                out.push(DONE);
                push_part(out, &key);
            }
            None => out.push(FAILED),
        },
        Binary::Prefix { prefix, max } => {
            let keys = keys_with(work, prefix, usize::try_from(*max).unwrap_or(usize::MAX))?;
            out.push(DONE);
            out.extend_from_slice(&(keys.len() as u32).to_be_bytes());
            keys.iter().for_each(|key| push_part(out, key));
        }
        Binary::AddInt { key, number } => match work.add_int(key, *number)? {
            Some(sum) => {
                out.push(DONE);
                out.extend_from_slice(&sum.to_be_bytes());
            }
            None => out.push(FAILED),
        },
        Binary::AddDouble { key, integral, fraction } => {
            match work.add_double(key, *integral as f64 + *fraction as f64 / FRACTION)? {
                Some(sum) => {
                    out.push(DONE);
                    out.extend_from_slice(&(sum.trunc() as i64).to_be_bytes());
                    out.extend_from_slice(&((sum.fract() * FRACTION) as i64).to_be_bytes());
                }
                None => out.push(FAILED),
            }
        }
        Binary::Nothing => out.push(DONE),
        Binary::Vanish => {
            work.database.truncate(work.context, &work.bound.space)?;
            out.push(DONE);
        }
        Binary::Count | Binary::Bytes => {
            let rows = &work.bound.space.rows;
            let number = if *binary == Binary::Count { rows.len() } else { rows.row_bytes() };
            out.push(DONE);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Binary::Stat => {
            out.push(DONE);
            push_part(out, stat(base, work, '\t', "").as_bytes());
        }
        Binary::Misc { name, arguments, .. } => {
            let arguments: Vec<&[u8]> = request::parts_of(arguments).collect();
            let elements = misc::call(work, &base.iteration, name, &arguments)?;
            out.push(code(elements.is_some()));
            let elements = elements.unwrap_or_default();
            check_size(elements.iter().map(Vec::len).sum())?;
            out.extend_from_slice(&(elements.len() as u32).to_be_bytes());
            elements.iter().for_each(|element| push_part(out, element));
        }
        Binary::Call { .. } => return Err(Error::needs_fiber()),
        Binary::Refused(why) => {
            tracing::warn!("refused to a client of tyrant: {why}");
            out.push(FAILED);
        }
    }
    Ok(())
}

fn check_size(bytes: usize) -> Result<()> {
    match bytes > ANSWER_BYTES_MAX {
        true => Err(Error::illegal(format_args!("an answer has more than {ANSWER_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

/// Keys that begin with a prefix, at most so many. May wait.
fn keys_with(work: &Work<'_>, prefix: &[u8], max: usize) -> Result<Vec<Vec<u8>>> {
    let (mut keys, mut bytes) = (Vec::new(), 0);
    let is_ordered = work.is_ordered() && work.kind != Kind::Fixed;
    let mut place = Some(if is_ordered { work.place_of(prefix)? } else { Place::Start });
    while let Some(at) = place {
        let (rows, next) = work.rows_behind(&at, ROWS_AT_ONCE)?;
        for row in &rows {
            if keys.len() >= max {
                return Ok(keys);
            }
            let (key, _) = work.read(row.data())?;
            if key.starts_with(prefix) {
                bytes += key.len();
                check_size(bytes)?;
                keys.push(key);
            } else if is_ordered {
                return Ok(keys);
            }
        }
        place = next;
        fiber::yield_now();
    }
    Ok(keys)
}

/// What `stat` tells, a line each.
fn stat(base: &Base, work: &Work<'_>, between: char, before: &str) -> String {
    let (database, rows) = (work.database, &work.bound.space.rows);
    let now_s = database.environment().clock.wall_ns() as f64 / 1e9;
    let mut text = String::new();
    let mut put = |name: &str, value: &dyn std::fmt::Display| {
        let _ = write!(text, "{before}{name}{between}{value}{}", if before.is_empty() { "\n" } else { "\r\n" });
    };
    let kind = match base.kind {
        Kind::Hash => "hash",
        Kind::Tree => "B+ tree",
        Kind::Fixed => "fixed-length",
        Kind::Table => "table",
    };
    put("version", &"1.1.41");
    put("libver", &"324");
    put("protver", &"0.91");
    put("os", &"Linux");
    put("time", &format_args!("{now_s:.6}"));
    put("pid", &std::process::id());
    put("sid", &1);
    put("type", &kind);
    put("path", &base.space);
    put("rnum", &rows.len());
    put("size", &rows.row_bytes());
    put("bigend", &u8::from(cfg!(target_endian = "big")));
    put("fd", &database.statistics.connections_open.get());
    put("loadavg", &"0.000000");
    text
}

fn run_http(base: &Base, work: &Work<'_>, http: &http::Request<'_>, out: &mut Vec<u8>) -> Result<()> {
    match http.method {
        b"GET" | b"HEAD" => match work.get(&http.key)? {
            Some(value) => say_http(out, 200, &value, http),
            None => say_http(out, 404, b"Not Found\n", http),
        },
        b"PUT" => {
            let how = match http.mode {
                1 => Put::Keep,
                2 => Put::Append,
                _ => Put::Set,
            };
            match work.put(how, &http.key, http.body)? {
                true => say_http(out, 201, b"Created\n", http),
                false => say_http(out, 409, b"Conflict\n", http),
            }
        }
        b"DELETE" => match work.out(&http.key)? {
            true => say_http(out, 200, b"OK\n", http),
            false => say_http(out, 404, b"Not Found\n", http),
        },
        b"OPTIONS" => say_http(out, 200, stat(base, work, '\t', "").as_bytes(), http),
        _ => {
            let Some(name) = &http.misc else {
                say_http(out, 400, b"neither X-TT-XNAME nor X-TT-MNAME\n", http);
                return Ok(());
            };
            let values = http::values_of(http.body);
            let arguments: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            match misc::call(work, &base.iteration, name.as_bytes(), &arguments)? {
                Some(elements) => {
                    let line = |element: &Vec<u8>| [&element[..], b"\n"].concat();
                    let body: Vec<u8> = elements.iter().flat_map(line).collect();
                    say_http(out, 200, &body, http);
                }
                None => say_http(out, 500, b"the call has failed\n", http),
            }
        }
    }
    Ok(())
}

fn run_line(base: &Base, work: &Work<'_>, line: &text::Request<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut say = |text: &str, is_quiet: bool| {
        if !is_quiet && !text.is_empty() {
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    };
    match line {
        text::Request::GetOne(keys) | text::Request::Get { keys, .. } => {
            for key in keys.split(|byte| *byte == b' ').filter(|key| !key.is_empty()) {
                if let Some(value) = work.get(key)? {
                    out.extend_from_slice(b"VALUE ");
                    out.extend_from_slice(key);
                    out.extend_from_slice(b" 0 ");
                    push_u64(out, value.len() as u64);
                    out.extend_from_slice(b"\r\n");
                    out.extend_from_slice(&value);
                    out.extend_from_slice(b"\r\n");
                    check_size(out.len())?;
                }
            }
            out.extend_from_slice(b"END\r\n");
        }
        text::Request::Store(store) => {
            let is_done = match store.verb {
                Verb::Set => work.put(Put::Set, store.key, store.value)?,
                Verb::Add => work.put(Put::Keep, store.key, store.value)?,
                Verb::Cas => {
                    say("ERROR", store.is_quiet);
                    return Ok(());
                }
                verb => work.atomically(|| {
                    let Some(old) = work.get(store.key)? else { return Ok(false) };
                    let joined = match verb {
                        Verb::Append => [&old[..], store.value].concat(),
                        Verb::Prepend => [store.value, &old[..]].concat(),
                        _ => store.value.to_vec(),
                    };
                    work.set(store.key, &joined)
                })?,
            };
            say(if is_done { "STORED" } else { "NOT_STORED" }, store.is_quiet);
        }
        text::Request::Delete { key, is_quiet } => {
            let is_done = work.out(key)?;
            say(if is_done { "DELETED" } else { "NOT_FOUND" }, *is_quiet);
        }
        text::Request::Arithmetic { key, delta, is_incr, is_quiet } => {
            let sum = work.atomically(|| {
                let Some(old) = work.get(key)? else { return Ok(None) };
                let number = read_u64(&old).unwrap_or(0);
                let sum = if *is_incr { number.wrapping_add(*delta) } else { number.saturating_sub(*delta) };
                work.set(key, sum.to_string().as_bytes())?;
                Ok(Some(sum))
            })?;
            match sum {
                Some(sum) => say(&sum.to_string(), *is_quiet),
                None => say("NOT_FOUND", *is_quiet),
            }
        }
        text::Request::FlushAll { is_quiet, .. } => {
            work.database.truncate(work.context, &work.bound.space)?;
            say("OK", *is_quiet);
        }
        text::Request::Stats { .. } => {
            let text = stat(base, work, ' ', "STAT ");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"END\r\n");
        }
        text::Request::Oversized { answer, .. } => say(answer, false),
        text::Request::Say(text) if text.starts_with("VERSION") => say("VERSION 1.1.41", false),
        text::Request::Say("MN") => say("ERROR", false),
        text::Request::Say(text) => say(text, false),
        _ => say("ERROR", false),
    }
    Ok(())
}
