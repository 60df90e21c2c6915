//! Tokyo Tyrant's protocols: its binary one, a part of memcached's, and HTTP, on one port. Source: its protocol's description, 1.1.41.
//!
//! ```text
//! request.rs, http.rs, ../memcached/text.rs    bytes -> Request
//! serve.rs      on the loop's stack, or in a fiber if it has to wait
//! misc.rs       calls by name
//! query.rs      searches in a table
//! records.rs    a record as a row
//! ```

mod http;
mod misc;
mod probe;
mod query;
mod records;
mod request;
mod serve;

pub use probe::serve_bytes;

use crate::connection::Connection;
use crate::door::{AnyDoor, Door, Protocol, Split};
use crate::memcached::text;
use crate::setup::set_up;
use crate::terms::Terms;
use database::{Database, Error, ErrorCode, Result, SessionKind};
use records::{Bound, Kind, Place, ROWS_AT_ONCE, Work};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tuple::Tuple;

/// The name of the user that has rights on the spaces, and the beginning of their names.
const OWN_NAME: &str = "tyrant";
/// What a listener may say.
const PARAMETERS: &[&str] = &["type", "space", "engine", "functions"];
/// Largest value by memcached's protocol: what a row may have bounds it sooner.
const ITEM_BYTES: usize = 64 << 20;

/// The door of a listener.
pub struct Tyrant(Rc<Base>);

/// What a listener serves.
struct Base {
    space: String,
    kind: Kind,
    /// Whom connections act as from other machines, which have shown certificates.
    remote_user: Option<String>,
    bound: RefCell<Option<Rc<Bound>>>,
    iteration: Iteration,
}

/// The iteration of a listener: there is one for all clients, as in Tokyo Tyrant.
#[derive(Default)]
struct Iteration {
    /// Where the rows behind `rows` begin; none: there are none, or nothing was begun.
    place: RefCell<Option<Place>>,
    rows: RefCell<VecDeque<Tuple>>,
    last_id: Cell<u64>,
}

impl Iteration {
    fn begin(&self, place: Place) {
        self.rows.borrow_mut().clear();
        *self.place.borrow_mut() = Some(place);
    }

    /// The next key. May wait.
    fn next(&self, work: &Work<'_>) -> Result<Option<Vec<u8>>> {
        loop {
            let row = self.rows.borrow_mut().pop_front();
            if let Some(row) = row {
                let (key, _) = work.read(row.data())?;
                // It may be gone by now.
                if work.row(&key)?.is_some() {
                    return Ok(Some(key));
                }
                continue;
            }
            let Some(place) = self.place.borrow_mut().take() else { return Ok(None) };
            let (rows, next) = work.rows_behind(&place, ROWS_AT_ONCE)?;
            *self.rows.borrow_mut() = rows.into();
            *self.place.borrow_mut() = next;
        }
    }

    /// A number that was not given before.
    fn unique(&self, work: &Work<'_>) -> u64 {
        let now = work.database.environment().clock.wall_ns() >> 8;
        let next = now.max(self.last_id.get() + 1);
        self.last_id.set(next);
        next
    }
}

/// The line of the table of doors.
pub(crate) fn protocol() -> Protocol {
    Protocol {
        name: Tyrant::NAME,
        clients: "any client of Tokyo Tyrant, memcached or HTTP",
        has_logins: false,
        open: Box::new(|database, terms| Ok(Rc::new(Tyrant(Rc::new(Base::open(database, terms)?))) as Rc<dyn AnyDoor>)),
    }
}

impl Base {
    fn open(database: &Rc<Database>, terms: &Terms) -> Result<Self> {
        terms.check(Tyrant::NAME, PARAMETERS)?;
        let name = terms.get("type").unwrap_or("*");
        let kind = Kind::of(name).ok_or_else(|| {
            Error::illegal(format_args!("type '{name}' is none of *, + and files ending in .tch, .tcb, .tcf, .tct"))
        })?;
        if terms.asks_login && !terms.is_reachable {
            return Err(Error::illegal("auth=required asks for logins, which clients of tyrant cannot give"));
        }
        let engine = terms.get("engine").unwrap_or("");
        if !["", "memtx", "vinyl"].contains(&engine) {
            return Err(Error::illegal(format_args!("engine '{engine}' is neither memtx nor vinyl")));
        }
        let default = match kind {
            Kind::Hash => OWN_NAME.to_string(),
            kind => format!("{OWN_NAME}_{}", kind.name()),
        };
        let space = terms.get("space").map_or(default, ToString::to_string);
        set_up(database, include_str!("setup.lua"), &[&space, engine, OWN_NAME, kind.name()])?;
        match terms.get("functions") {
            None | Some("no") => {}
            Some("yes") => set_up(database, include_str!("extension.lua"), &[&space, kind.name()])?,
            Some(text) => return Err(Error::illegal(format_args!("functions '{text}' is neither yes nor no"))),
        }
        let remote_user = terms.asks_login.then(|| terms.user.as_deref().unwrap_or(OWN_NAME).to_string());
        let base = Base { space, kind, remote_user, bound: RefCell::default(), iteration: Iteration::default() };
        base.bound(database)?;
        Ok(base)
    }

    /// The space. Errors: it is not there, or its key is no key of this kind of database.
    fn bound(&self, database: &Database) -> Result<Rc<Bound>> {
        let schema_version = database.catalog.schema_version();
        if let Some(bound) = &*self.bound.borrow()
            && bound.schema_version == schema_version
        {
            return Ok(Rc::clone(bound));
        }
        let space = database.catalog.space_by_name(&self.space);
        let space = space.ok_or_else(|| Error::new(ErrorCode::NoSuchSpace, &[&self.space]))?;
        let wanted = if self.kind == Kind::Fixed { tuple::FieldType::Unsigned } else { tuple::FieldType::String };
        let primary = space.indexes().first().cloned();
        let fits = primary.is_some_and(|primary| {
            matches!(&primary.parts[..], [part] if part.field_no == 0 && part.field_type == wanted && part.collation.is_none())
        });
        if !fits {
            let kind = self.kind.name();
            let words = format!("space '{}' cannot be a {kind} database: its first field must be its key", self.space);
            return Err(Error::illegal(words));
        }
        let bound = Rc::new(Bound { schema_version, space });
        *self.bound.borrow_mut() = Some(Rc::clone(&bound));
        Ok(bound)
    }
}

/// A request, and the bytes that it stands in.
pub struct Decoded<'a> {
    raw: &'a [u8],
    request: Request<'a>,
}

/// What a client wants, in one of the three protocols.
enum Request<'a> {
    Binary(request::Request<'a>),
    Http(http::Request<'a>),
    Line(text::Request<'a>),
    /// The connection ends without an answer.
    Leave(&'static str),
}

/// What is kept with each connection.
#[derive(Default)]
pub struct State {
    /// Bytes of a refused value that are passed over.
    skipped: Cell<u64>,
}

/// In which protocol an error is told.
const BINARY_TAG: u64 = 1;
const HTTP_TAG: u64 = 2;
/// As `BINARY_TAG`; a failure would look like the answer that nothing is there, or something.
const LOOKS_TAG: u64 = 3;

enum Found<'a> {
    Whole(Request<'a>, usize),
    Last(Request<'a>, usize),
    Part(u64),
}

/// Finds the first request of the input.
fn split(input: &[u8]) -> Found<'_> {
    if input.first() == Some(&request::MAGIC) {
        return match request::split(input) {
            request::Found::Whole(request, length) => Found::Whole(Request::Binary(request), length),
            request::Found::Part(needed) => Found::Part(needed),
            request::Found::Bad(why) => Found::Last(Request::Leave(why), input.len()),
        };
    }
    let line = input.iter().position(|byte| *byte == b'\n').map(|end| &input[..end]);
    if line.is_some_and(http::is_first_line) {
        return match http::split(input) {
            http::Found::Whole(request, length) => Found::Last(Request::Http(request), length),
            http::Found::Part(needed) => Found::Part(needed),
            http::Found::Bad(why) => Found::Last(Request::Leave(why), input.len()),
        };
    }
    match text::split(input, ITEM_BYTES) {
        text::Found::Whole(text::Request::Leave(why), length) => Found::Last(Request::Leave(why), length),
        text::Found::Whole(request, length) => Found::Whole(Request::Line(request), length),
        text::Found::Last(request, length) => Found::Last(Request::Line(request), length),
        text::Found::Part(needed) => Found::Part(needed),
    }
}

/// The request will never be served, whatever is there; otherwise the database could not say.
fn is_refusal(error: &Error) -> bool {
    [ErrorCode::AccessDenied, ErrorCode::IllegalParams, ErrorCode::NoSuchSpace]
        .iter()
        .any(|code| error.code() == *code as u32)
}

impl Door for Tyrant {
    type Request<'a> = Decoded<'a>;
    type State = State;
    const NAME: &'static str = "tyrant";
    const IS_ORDERED: bool = true;
    const SESSION: SessionKind = SessionKind::Door("tyrant");
    const OWN_USER: Option<&'static str> = Some(OWN_NAME);

    fn greet(&self, _database: &Database, _out: &mut Vec<u8>) -> State {
        State::default()
    }

    fn opened(&self, connection: &Rc<Connection>, _state: &State) {
        let Some(name) = &self.0.remote_user else { return };
        let database = connection.database();
        let user = database.catalog.user_by_name(name).map(|user| user.id);
        let user = user.ok_or_else(|| Error::new(ErrorCode::NoSuchUser, &[name]));
        match user.and_then(|user| database.log_in(connection.session(), user)) {
            Ok(()) => connection.must_log_in.set(false),
            Err(error) => {
                tracing::warn!("a connection to tyrant is closed: {error}");
                connection.end();
            }
        }
    }

    #[inline]
    fn split<'a>(&self, state: &State, input: &'a [u8]) -> Split<Decoded<'a>> {
        if input.is_empty() {
            return Split::Incomplete { announced: 0 };
        }
        let skipped = state.skipped.get();
        if skipped > 0 {
            let length = (input.len() as u64).min(skipped);
            let request = Request::Line(text::Request::Skip(length));
            return Split::Last(Decoded { raw: &[], request }, length as usize);
        }
        match split(input) {
            Found::Part(announced) => Split::Incomplete { announced },
            Found::Whole(request, length) => Split::Request(Decoded { raw: &input[..length], request }, length),
            Found::Last(request, length) => Split::Last(Decoded { raw: &input[..length], request }, length),
        }
    }

    #[inline]
    fn serve(&self, connection: &Rc<Connection>, state: &State, request: &Decoded<'_>) -> Result<()> {
        serve::serve(&self.0, connection, state, request)
    }

    fn tag(request: &Decoded<'_>) -> u64 {
        match request.request {
            Request::Binary(ref binary) if binary.tells_what_is_there() => LOOKS_TAG,
            Request::Binary(_) => BINARY_TAG,
            Request::Http(_) => HTTP_TAG,
            _ => 0,
        }
    }

    fn describe(request: &Decoded<'_>) -> String {
        serve::describe(request.raw)
    }

    fn encode_failure(&self, _database: &Database, out: &mut Vec<u8>, tag: u64, error: &Error) {
        match tag {
            BINARY_TAG => out.push(serve::FAILED),
            LOOKS_TAG if is_refusal(error) => out.push(serve::FAILED),
            // The connection ends: to the client its request has no answer, which is what happened.
            LOOKS_TAG => {}
            HTTP_TAG => http::answer(out, 500, ("text/plain", error.message().as_bytes()), (b"GET", true)),
            _ => {
                out.extend_from_slice(b"SERVER_ERROR ");
                out.extend(error.message().bytes().map(|byte| if byte < b' ' { b' ' } else { byte }));
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn length_of(found: &Found<'_>) -> Option<usize> {
        match found {
            Found::Part(_) => None,
            Found::Whole(_, length) | Found::Last(_, length) => Some(*length),
        }
    }

    /// Requests of each protocol, some of them spoiled.
    fn input() -> impl Strategy<Value = Vec<u8>> {
        let number = prop_oneof![8 => (0u32..6).prop_map(|number| number.to_be_bytes()), 1 => any::<[u8; 4]>()];
        let binary = (any::<u8>(), proptest::collection::vec(number, 0..6), any::<[u8; 12]>());
        let binary =
            binary.prop_map(|(command, numbers, rest)| [&[0xc8, command][..], &numbers.concat(), &rest].concat());
        let command =
            prop::sample::select(vec![0x10u8, 0x11, 0x12, 0x13, 0x18, 0x20, 0x30, 0x31, 0x58, 0x60, 0x61, 0x68, 0x90]);
        let known = (command, binary.clone()).prop_map(|(command, mut bytes)| {
            bytes[1] = command;
            bytes
        });
        let text = "(GET|PUT|POST|get|set) /?[a-z%]{0,5} (HTTP/1.[01]|0 0 2)\r\n(Content-Length: [0-9]{1,3}\r\n)?\r?\n?[a-z]{0,9}";
        prop_oneof![binary, known, text.prop_map(String::into_bytes)]
    }

    proptest! {
        #[test]
        fn requests_are_cut_the_same_whatever_follows_and_are_never_longer_than_what_is_there(
            input in input(),
            tail in any::<Vec<u8>>(),
        ) {
            let found = split(&input);
            if let Some(length) = length_of(&found) {
                prop_assert!(length > 0 && length <= input.len());
                if !matches!(found, Found::Last(Request::Leave(_), _)) {
                    prop_assert_eq!(length_of(&split(&[&input[..], &tail].concat())), Some(length));
                    prop_assert_eq!(length_of(&split(&input[..length])), Some(length));
                }
            }
        }
    }
}
