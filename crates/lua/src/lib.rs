//! LuaJIT beside the rows: procedures, the `box` API, built-in modules.
//!
//! One Lua state lives on the transaction thread; every fiber that runs Lua has a Lua thread of its own, so that Lua may wait anywhere. The
//! C functions here are the small set that needs the database or the machine (`api.rs` and the files that it names, `tuples.rs`, `fibers.rs`,
//! `json.rs`, `msgpack.rs`, `yaml.rs`, `utf8.rs`, `decimals.rs`, `key_defs.rs`, `library.rs`, `sockets.rs`, `remote.rs`, `xlogs.rs`, `byte_streams.rs` with `crypto.rs` and `inflate.rs`); the public API is Lua over them, in `modules/`. Who calls it: `server` makes it and hands it to the database, which calls through
//! [`database::Procedures`].
//!
//! Invariants:
//! * No Lua error crosses a Rust frame that has destructors, and no panic crosses a Lua frame (`state.rs`).
//! * Lua code that does not end, recurses without end or allocates without end gets an error in its own request.
//! * `box.space` and its like show the schema as it is whenever Lua code runs.

mod api;
mod byte_streams;
mod convert;
mod crypto;
mod datetimes;
mod decimals;
mod disk_statistics;
mod error;
mod fibers;
mod inflate;
mod json;
mod key_defs;
mod library;
mod libyaml;
mod lua;
mod module_api;
mod modules;
mod msgpack;
mod processes;
mod queries;
mod registry;
mod remote;
mod scans;
mod schema;
mod scripts;
mod secure;
mod sockets;
mod state;
mod statements;
mod triggers;
mod tuples;
mod utf8;
mod watchdog;
mod watches;
mod xlogs;
mod yaml;

pub use lua::{Host, Lua, LuaConfig};
pub use watchdog::ask_to_stop;
