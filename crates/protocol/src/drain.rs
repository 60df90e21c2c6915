//! The stop of the loop: every request that has arrived is answered, and each connection ends behind a whole answer.

use crate::connection::Connection;
use crate::event_loop::EventLoop;
use runtime::fiber;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time for which the other sides of connections that have ended may go on sending when the server stops.
const LINGER_NS: u64 = 200_000_000;

impl EventLoop {
    /// Stops serving, as the last thing before the process ends: new connections are refused, new requests get an error, those under way finish and
    /// are answered, and each connection ends behind a whole answer. Returns when that is done, or at a time of the fibers' clock.
    pub fn drain(&mut self, deadline_ns: u64) -> io::Result<()> {
        self.service.is_draining.set(true);
        self.stop.store(false, Ordering::Release);
        self.listeners.close_all();
        self.drop_handshakes();
        if !self.answer_all(deadline_ns)? {
            // Requests that still wait are cancelled.
            for connection in self.connections.values() {
                connection.is_cut_short.set(true);
            }
            for (id, ..) in fiber::list() {
                fiber::cancel(id);
            }
            self.answer_all(deadline_ns.saturating_add(LINGER_NS))?;
        }
        // The end of the stream follows the last answer. Clients that send until they see it are still read: with unread bytes in a socket that
        // is closed, the system would drop the answers on their way.
        for connection in self.connections.values() {
            let _ = connection.outlet.close_write();
        }
        let linger = fiber::now_ns().saturating_add(LINGER_NS).min(deadline_ns.saturating_add(LINGER_NS));
        let mut buffer = vec![0; 64 << 10];
        while fiber::now_ns() < linger && !self.connections.is_empty() {
            let mut events = Vec::new();
            self.poll.poll(Duration::from_millis(5), &mut events)?;
            self.connections.retain(|_, connection| !has_ended(connection, &mut buffer));
        }
        Ok(())
    }

    /// Runs until every request that has come is answered, or until a time. Returns whether all are.
    fn answer_all(&mut self, deadline_ns: u64) -> io::Result<bool> {
        // The first turn waits for nothing: there may be nobody to answer.
        self.waker.wake()?;
        while fiber::now_ns() < deadline_ns {
            // One turn: the state of the connections is consistent between turns.
            let turns = Cell::new(0);
            self.run(|| turns.replace(turns.get() + 1) > 0)?;
            let is_answered = |connection: &Rc<Connection>| {
                connection.in_flight.get() == 0
                    && connection.unsent() == 0
                    && !connection.output.borrow().has_parked()
                    && !connection.is_stalled.get()
            };
            if self.readable.is_empty() && self.held_back.is_empty() && self.connections.values().all(is_answered) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Reads what is there; true at the end of the stream.
fn has_ended(connection: &Connection, buffer: &mut [u8]) -> bool {
    loop {
        match connection.read(buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}
