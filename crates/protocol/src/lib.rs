//! Front doors: listeners, connections and codecs.
//!
//! A [`Door`] is one protocol, as far as it is about that protocol's bytes; each has a folder of its own, and `iproto` is Tarantool's binary
//! protocol. What is the same behind all doors stands beside them and is not written twice: the event loop, groups and time slices (`serving`),
//! answers parked until the log is durable (`output`), bounds (`service`), failed logins (`logins`). Who calls it: `server`, which runs the event
//! loop.
//!
//! Invariants:
//! * No answer leaves before everything it depends on is durable; if the log fails it becomes an error.
//! * Nothing that a client sends or fails to read costs another client anything: every buffer has a bound.
//! * Nothing beside the doors names a protocol.

use std::rc::Rc;

mod connection;
mod datagrams;
mod door;
mod drain;
mod eagerness;
mod event_loop;
mod handshakes;
pub mod iproto;
mod listeners;
mod logins;
pub mod memcached;
pub mod mysql;
mod occupancy;
mod output;
mod packing;
pub mod postgres;
pub mod redis;
mod sender;
mod service;
mod serving;
mod settle;
mod setup;
mod statements;
mod terms;
pub mod tyrant;
mod watch;

pub use connection::Connection;
pub use door::{AnyDoor, Door, Doors, OpenDoor, Protocol, Split};
pub use event_loop::EventLoop;
pub use listeners::{Listeners, Opened, Place};
pub use service::NetConfig;
pub use terms::Terms;

/// The table of doors: the protocols that Lycosa speaks.
pub fn doors() -> Doors {
    vec![
        Protocol {
            name: iproto::Iproto::NAME,
            clients: "any Tarantool connector",
            has_logins: true,
            open: Box::new(|_, _| Ok(Rc::new(iproto::Iproto))),
        },
        Protocol { name: redis::Redis::NAME, clients: "any client of Redis", has_logins: true, open: redis::opener() },
        postgres::protocol(),
        mysql::protocol(),
        memcached::protocol(),
        tyrant::protocol(),
    ]
}
