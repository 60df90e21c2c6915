//! Load on a database server, and what it answered: how fast, how late, how evenly.
//!
//! [`drive`] keeps one or several [`Flow`]s of requests going in one thread, each over connections of its own: in a closed loop, where an answer
//! makes room for the next request, or in an open one, where requests are due at a rate whatever the server does. Three protocols are spoken
//! ([`Door`]), pipelined and raw: requests are copies of an encoded [`Template`], answers are recognised by their first bytes, and every one is
//! checked. [`Client`] is the blocking connection beside it that prepares the server; [`process`] says what the kernel knows about it.
//!
//! `lycosa bench` and the comparisons of `bench/` use it. It knows no server from inside and no part of one uses it.
//!
//! Reading order: `keys`, `template`, `door`, `window`, `lane`, `drive`, `outcome`.
//!
//! Invariants:
//! * The same seed asks for the same keys in the same order on each flow.
//! * An answer counts once its request was in flight and its content is what was expected; anything else ends the run with an error.
//! * In an open loop latency is from the moment at which the request was due, also if it could not be sent then.

mod client;
mod door;
mod drive;
mod keys;
mod lane;
mod outcome;
pub mod process;
mod random;
mod template;
mod value;
mod window;

pub use client::{Client, Link, Order};
pub use door::{Door, Expect};
pub use drive::{Drive, End, Flow, OnSecond, Pace, drive};
pub use keys::Keys;
pub use outcome::{FlowOutcome, Latencies, Second, histogram};
pub use random::Random;
pub use template::{FIRST_KEY, Row, Share, Template};
pub use value::Value;
pub use wire::ClientError;
