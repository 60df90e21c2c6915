//! Tarantool's binary protocol. Source: compatibility notes of the project, checked against Tarantool 2.6 and its connectors.

mod decode;
mod encode;
mod login;
mod request;

pub(crate) use decode::announced_bytes;
pub use decode::{DecodeError, Header, Packet, Request, next_packet};
pub use encode::{encode_error, greeting};
pub(crate) use login::Logins;
pub(crate) use request::{
    RequestEvents, answer_logins, decode_error, decode_packet, log_slow_group, prefetch, refuse, serve, shutting_down,
};

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
