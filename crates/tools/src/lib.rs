//! What the binary `lycosa` does beside serving: `bench`, `torture`, `backup`, `cat`, `check`.
//!
//! A module for each verb, with its [`clap::Args`] as `Options` and a function `run` that gives the exit code. No part of a running
//! server: `bench`, `torture` and `backup` are clients of one, `cat` and `check` read files that nobody needs to have open. Who calls
//! it: `server`, whose command line names the verbs.
//!
//! Invariants:
//! * Nothing here changes a data directory; `backup` writes only into an empty one.
//! * What a file or a server says may be wrong: it is reported, never asserted.

pub mod backup;
pub mod bench;
pub mod cat;
pub mod check;
pub mod client;
pub mod torture;
