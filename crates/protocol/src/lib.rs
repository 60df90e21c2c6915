//! Front doors: listeners, connections and codecs.
//!
//! `connection` holds what is the same for every protocol: buffers, answers parked until the log is durable, bounds. `iproto` knows
//! Tarantool's binary protocol. Decoding and encoding touch no shared state, so they can move to other threads. Who
//! calls it: `server`, which runs the event loop.
//!
//! Invariants:
//! * No answer leaves before everything it depends on is durable; if the log fails it becomes an error.
//! * Nothing that a client sends or fails to read costs another client anything: every buffer has a bound.

mod connection;
mod eagerness;
mod event_loop;
pub mod iproto;
mod sender;

pub use event_loop::{EventLoop, Listeners, NetConfig};
