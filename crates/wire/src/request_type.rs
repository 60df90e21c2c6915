//! Request types. The log uses those of rows for its own.
#![expect(missing_docs, reason = "the protocol's words")]

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
pub const WATCH: u64 = 74;
pub const UNWATCH: u64 = 75;
pub const EVENT: u64 = 76;
pub const WATCH_ONCE: u64 = 77;
pub const CHUNK: u64 = 128;
