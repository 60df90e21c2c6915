//! The end of a turn: answers leave as far as the log is durable, and what is done is closed.

use crate::connection::Connection;
use crate::event_loop::EventLoop;
use database::{SessionEvent, State};
use runtime::fiber;
use std::rc::Rc;
use std::sync::Arc;

/// Connections from which on the sender is woken for answers that have waited for the same sync: their clients all sleep. Small answers of a turn that
/// has just read the requests are sent faster than the sender wakes up.
const HANDED_OVER_MIN: usize = 4;
/// Bytes of answers from which on the sender is woken.
pub(crate) const HANDED_OVER_BYTES_MIN: usize = 8 << 10;
/// Connections from which on the sender is woken for answers that took the loop long.
const LONG_MIN: usize = 8;
/// How long that is for each of them: several times what a send takes, so that who has this much to do for its clients leaves that to others.
const LONG_NS: u64 = 20_000;

impl EventLoop {
    /// Sends what may leave, and closes what is done. If the log has news, answers of many connections may leave at once.
    pub(crate) fn settle(&mut self, has_log_news: bool) {
        let service = Rc::clone(&self.service);
        for connection in std::mem::take(&mut self.leaving) {
            service.mark(&connection);
        }
        let state = service.database.state();
        if let (State::LogFailed(reason), false) = (&state, self.has_failed) {
            self.has_failed = true;
            let error = database::log_error(reason);
            for connection in self.connections.values() {
                if connection.fail_parked(&error) {
                    service.mark(connection);
                }
            }
        }
        service.made_bytes.set(0);
        let dirty = service.dirty.take();
        let mut outlets = std::mem::take(&mut self.outlets);
        for connection in &dirty {
            connection.is_dirty.set(false);
            if connection.release() {
                outlets.push(Arc::clone(&connection.outlet));
            }
        }
        let bytes: usize = outlets.iter().map(|outlet| outlet.unsent()).sum();
        let is_burst = has_log_news && outlets.len() >= HANDED_OVER_MIN;
        let is_long = outlets.len() >= LONG_MIN
            && fiber::now_ns().saturating_sub(self.begun_ns) >= LONG_NS * outlets.len() as u64;
        if is_burst || is_long || bytes >= HANDED_OVER_BYTES_MIN {
            self.sender.send(&mut outlets);
            if is_burst && bytes < HANDED_OVER_BYTES_MIN {
                // Many small answers: half of them would still wait when their clients could go on.
                while self.sender.help() {}
            }
        } else {
            outlets.drain(..).for_each(|outlet| outlet.send());
        }
        self.outlets = outlets;
        for connection in dirty {
            if connection.outlet.has_failed() {
                self.close(&connection);
                continue;
            }
            if connection.is_closing.get() && connection.in_flight.get() == 0 {
                if connection.unsent() == 0 {
                    self.close(&connection);
                } else {
                    connection.outlet.await_sent();
                    self.leaving.push(connection);
                }
                continue;
            }
            if connection.output.borrow().has_parked() {
                // Tried again when the log has news, which ends the sleep.
                service.mark(&connection);
            }
        }
    }

    pub(crate) fn close(&mut self, connection: &Rc<Connection>) {
        connection.is_closing.set(true);
        let service = &self.service;
        connection.door.leave(connection);
        service.database.announce(&connection.session, SessionEvent::Disconnect);
        service.database.close_session(&connection.session);
        // What had come of a request is given up.
        let given_up = connection.input.take().len() + connection.packed_bytes.take();
        service.input_total.set(service.input_total.get() - given_up);
        let outlet = &connection.outlet;
        let _ = self.listeners.registry.deregister_stream(&outlet.stream, connection.token);
        let _ = outlet.close();
        if self.connections.remove(&connection.token.0).is_some() {
            let open = &connection.counts.connections_open;
            open.set(open.get().saturating_sub(1));
        }
        service.database.statistics.connections_open.set(self.connections.len() as u64);
    }
}
