//! Black box: what the tests need to start the real binary and to talk to it byte by byte.
//!
//! [`Server`] is a running process, [`Client`] a raw connection that may also misbehave, [`Rig`] both with a directory and a script, [`Seed`] a data directory made in this
//! process, [`Source`] the text of a Rust file for the tests that read the tree; [`memcached`], [`mysql`] and [`Postgres`] are clients of those protocols. The tests themselves are in `tests/tests`; the
//! programs over real connectors in `tests/clients`. No part of the product uses this package.
//!
//! Invariants:
//! * No fixed ports, no sleeps: a test waits for an event, with a bound.
//! * Nothing here outlives its test: processes are killed and directories removed on drop.

mod client;
pub mod memcached;
pub mod mysql;
mod postgres;
mod rig;
mod seed;
pub mod seeded;
mod server;
mod source;

pub use client::{Client, Reply, packet, request};
pub use postgres::{Message, Postgres, field, postgres_address, row, start_postgres, text};
pub use rig::Rig;
pub use seed::{Field, MEMORY, Seed, open_database};
pub use server::{Server, bench_binary, binary, printed};
pub use source::{Source, files, lines_with, root};
