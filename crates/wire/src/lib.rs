//! Tarantool's binary protocol (IPROTO) as both sides need it: its numbers, its packets, and one client.
//!
//! `request_type` and `key` are the vocabulary, which the log shares. `framing` finds packets in bytes and makes them, `greeting` and `scramble`
//! are how a connection begins, `answer` is what a server says, `client` asks over any stream of bytes. What a request means is not here: bodies are
//! bytes. The layouts are drawn in `docs/formats/iproto.md`.
//!
//! Who calls it: `protocol` for the server's side; the console, backup, `load`, `sim` and the tests for the client's; `wal` and `database` for the
//! keys of rows.
//!
//! Invariants:
//! * Bytes from the other side are understood or refused, never trusted: every length is compared with a bound first.

mod answer;
mod client;
mod framing;
mod greeting;
pub mod key;
pub mod request_type;
mod scram;
mod scramble;
mod sha2_scramble;

pub use answer::{Answer, ErrorPart, Malformed, encode_error, next_answer};
pub use client::{Client, ClientError};
pub use framing::{
    DecodeError, ERROR_FLAG, HEADER_BYTES, Header, PACKET_BYTES_MAX, Packet, SYNC_OFFSET, announced_bytes,
    begin_answer, begin_packet, begin_stream_packet, end_packet, next_packet, put_packet,
};
pub use greeting::{GREETING_BYTES, GREETING_VERSION, SALT_BYTES, greeting, read_salt};
pub use scram::{SCRAM_ITERATIONS, SCRAM_SALT_BYTES, Verifier};
pub use scramble::{AUTH_METHOD, SCRAMBLE_BYTES, is_proof, password_hash, scramble};
pub use sha2_scramble::{SHA2_BYTES, is_sha2_proof, sha2_digest, sha2_proof};
