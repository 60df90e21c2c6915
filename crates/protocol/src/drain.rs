//! The end of the loop: everything that has come is answered, and connections end behind a whole answer.

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
    /// The last thing before the process ends: nobody is let in any more, every request is refused in words, those that are under way end and
    /// are answered, and connections end behind a whole answer. Returns when that is done, or at a time of the fibers' clock.
    pub fn drain(&mut self, deadline_ns: u64) -> io::Result<()> {
        self.service.is_draining.set(true);
        self.stop.store(false, Ordering::Release);
        self.listeners.close_all();
        if !self.answer_all(deadline_ns)? {
            // What waits for longer is told to give up.
            for connection in self.connections.values() {
                connection.is_cut_short.set(true);
            }
            for (id, ..) in fiber::list() {
                fiber::cancel(id);
            }
            self.answer_all(deadline_ns.saturating_add(LINGER_NS))?;
        }
        // The end of the stream comes behind what was sent. Who goes on asking until he sees it is read, so that the system does not take back what
        // is on its way to him.
        for connection in self.connections.values() {
            let _ = connection.outlet.stream.close_write();
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
            // One turn; what is said of the connections is true between turns.
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
