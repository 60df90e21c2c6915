//! Tarantool's binary protocol. Source: compatibility notes of the project, checked against Tarantool 2.6 and its connectors.

mod decode;
mod encode;
mod execute;
mod login;
mod request;
mod streams;
mod watches;

pub use decode::{Begin, Page, Request, read_begin, read_event_key, read_page};
pub use encode::encode_error;

use crate::connection::Connection;
use crate::door::{Door, Split};
use database::{Database, Error, Result, SessionKind};
use request::{Decoded, decode_error, decode_packet};
use std::rc::Rc;
use streams::Streams;
use watches::Watches;
use wire::{Packet, SALT_BYTES, announced_bytes, next_packet, request_type};

/// The door of the binary protocol.
pub struct Iproto;

/// What is kept with each connection.
pub struct State {
    /// Sent in the greeting, for proofs of passwords.
    salt: [u8; SALT_BYTES],
    streams: Streams,
    watches: Watches,
}

impl Door for Iproto {
    type Request<'a> = Decoded<'a>;
    type State = State;
    const NAME: &'static str = "iproto";
    const IS_ORDERED: bool = false;
    const SESSION: SessionKind = SessionKind::Binary;

    fn greet(&self, database: &Database, out: &mut Vec<u8>) -> State {
        let mut salt = [0; SALT_BYTES];
        database.environment().randomness.fill(&mut salt);
        out.extend_from_slice(&wire::greeting(&database.instance_uuid(), &salt));
        State { salt, streams: Streams::default(), watches: Watches::default() }
    }

    #[inline]
    fn split<'a>(&self, _state: &State, input: &'a [u8]) -> Split<Decoded<'a>> {
        match next_packet(input) {
            Ok(Packet::Incomplete) => Split::Incomplete { announced: announced_bytes(input).unwrap_or(0) },
            Ok(Packet::Complete(packet, length)) => match decode_packet(packet) {
                Ok(decoded) => Split::Request(decoded, length),
                Err(error) => Split::Refused { error: decode_error(error), length: Some(length) },
            },
            // Without a length nothing behind it can be understood.
            Err(error) => Split::Refused { error: decode_error(error), length: None },
        }
    }

    fn prefetch(&self, database: &Database, group: &[Decoded<'_>]) {
        request::prefetch(database, group);
    }

    #[inline]
    fn serve(&self, connection: &Rc<Connection>, state: &State, request: &Decoded<'_>) -> Result<()> {
        request::serve(connection, state, request)
    }

    fn encode_push(&self, database: &Database, out: &mut Vec<u8>, sync: u64, value: &[u8]) -> Result<()> {
        let start = wire::begin_answer(out, request_type::CHUNK as u32, sync, database.catalog.schema_version());
        let at = encode::begin_data(out);
        out.extend_from_slice(value);
        encode::end_data(out, at, 1);
        wire::end_packet(out, start);
        Ok(())
    }

    fn close(&self, connection: &Rc<Connection>, state: &State) {
        streams::close(connection, &state.streams);
        watches::close(connection, &state.watches);
    }

    fn tag(request: &Decoded<'_>) -> u64 {
        request.sync()
    }

    fn describe(request: &Decoded<'_>) -> String {
        request.describe()
    }

    fn encode_failure(&self, database: &Database, out: &mut Vec<u8>, sync: u64, error: &Error) {
        encode_error(out, sync, database.catalog.schema_version(), error);
    }

    fn authenticate(&self, connection: &Connection, state: &State, body: &[u8]) -> Result<()> {
        login::authenticate(connection, &state.salt, body)
    }

    fn user_of(body: &[u8]) -> String {
        login::user_of(body)
    }

    fn encode_welcome(&self, database: &Database, out: &mut Vec<u8>, sync: u64) {
        encode::encode_ok(out, sync, database.catalog.schema_version());
    }
}

/// The protocol version told by ID.
pub const PROTOCOL_VERSION: u64 = 6;
/// The feature of clients that understand error objects among results.
pub(super) const ERROR_EXTENSION: u64 = 2;
/// Features told by ID: 0 streams, 1 transactions in them, 2 error extension, 3 watchers, 4 pagination, 5 space and index names, 6 watching once. Only
/// what works.
pub const FEATURES: [u64; 7] = [0, 1, 2, 3, 4, 5, 6];
