//! Tarantool's binary protocol. Source: compatibility notes of the project, checked against Tarantool 2.6 and its connectors.

mod decode;
mod encode;
mod login;
mod request;

pub use decode::{DecodeError, Header, Packet, Request, next_packet};
pub use encode::{encode_error, greeting};

use crate::connection::Connection;
use crate::door::{Door, Split};
use database::{Database, Error, Result, SessionKind};
use decode::announced_bytes;
use request::{Decoded, decode_error, decode_packet};
use std::rc::Rc;

/// The door of the binary protocol.
pub struct Iproto;

/// What is kept with each connection.
pub struct State {
    /// Sent in the greeting, for proofs of passwords.
    salt: [u8; 32],
}

impl Door for Iproto {
    type Request<'a> = Decoded<'a>;
    type State = State;
    const NAME: &'static str = "iproto";
    const IS_ORDERED: bool = false;
    const SESSION: SessionKind = SessionKind::Binary;

    fn greet(&self, database: &Database, out: &mut Vec<u8>) -> State {
        let mut salt = [0; 32];
        database.environment().randomness.fill(&mut salt);
        out.extend_from_slice(&greeting(&database.instance_uuid(), &salt));
        State { salt }
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
    fn serve(&self, connection: &Rc<Connection>, _state: &State, request: &Decoded<'_>) -> Result<()> {
        request::serve(connection, request)
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

/// Request types.
#[expect(missing_docs, reason = "the protocol's words")]
pub mod request_type {
    pub const SELECT: u64 = 1;
    pub const INSERT: u64 = 2;
    pub const REPLACE: u64 = 3;
    pub const UPDATE: u64 = 4;
    pub const DELETE: u64 = 5;
    pub const CALL_16: u64 = 6;
    pub const AUTH: u64 = 7;
    pub const EVAL: u64 = 8;
    pub const UPSERT: u64 = 9;
    pub const CALL: u64 = 10;
    pub const EXECUTE: u64 = 11;
    pub const NOP: u64 = 12;
    pub const PREPARE: u64 = 13;
    pub const BEGIN: u64 = 14;
    pub const COMMIT: u64 = 15;
    pub const ROLLBACK: u64 = 16;
    pub const PING: u64 = 64;
    pub const JOIN: u64 = 65;
    pub const SUBSCRIBE: u64 = 66;
    pub const ID: u64 = 73;
}

/// Keys of packets.
#[expect(missing_docs, reason = "the protocol's words")]
pub mod key {
    pub const REQUEST_TYPE: u64 = 0x00;
    pub const SYNC: u64 = 0x01;
    pub const TIMESTAMP: u64 = 0x04;
    pub const SCHEMA_VERSION: u64 = 0x05;
    pub const STREAM_ID: u64 = 0x0a;
    pub const SPACE_ID: u64 = 0x10;
    pub const INDEX_ID: u64 = 0x11;
    pub const LIMIT: u64 = 0x12;
    pub const OFFSET: u64 = 0x13;
    pub const ITERATOR: u64 = 0x14;
    pub const INDEX_BASE: u64 = 0x15;
    pub const KEY: u64 = 0x20;
    pub const TUPLE: u64 = 0x21;
    pub const FUNCTION_NAME: u64 = 0x22;
    pub const USER_NAME: u64 = 0x23;
    pub const EXPRESSION: u64 = 0x27;
    pub const OPS: u64 = 0x28;
    pub const DATA: u64 = 0x30;
    pub const ERROR_24: u64 = 0x31;
    pub const ERROR: u64 = 0x52;
    pub const VERSION: u64 = 0x54;
    pub const FEATURES: u64 = 0x55;
    pub const AUTH_TYPE: u64 = 0x5b;
    pub const SPACE_NAME: u64 = 0x5e;
    pub const INDEX_NAME: u64 = 0x5f;
}

/// The protocol version told by ID.
pub const PROTOCOL_VERSION: u64 = 6;
/// Features told by ID: 2 error extension, 5 space and index names. Only what works.
pub const FEATURES: [u64; 2] = [2, 5];
/// The version in the greeting: connectors choose what they send by it.
pub const GREETING_VERSION: &str = "3.0.0";
