//! What all connections of an event loop share: the database, the bounds, and what is used of them.

use crate::connection::Connection;
use crate::logins::Logins;
use database::{Database, Error, GUEST};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Unread answers that a connection may always have.
const UNREAD_ALWAYS: usize = 64 << 10;

/// Bounds of the network side.
#[derive(Clone, Copy, Debug)]
pub struct NetConfig {
    /// Requests in fibers over all connections, but for those that wait for locked rows; beyond it nothing is read (`net_msg_max`).
    pub requests_max: usize,
    /// Unread answers of one connection; beyond it nothing is read from it.
    pub unread_bytes_max: usize,
    /// Unread answers of all connections; beyond it only those are served that have read almost everything.
    pub unread_total_max: usize,
    /// Connections; further ones are closed at once.
    pub connections_max: usize,
    /// Longest request of a connection that has not logged in, while nothing is granted to guest.
    pub guest_request_max: usize,
    /// Bytes of incomplete requests of all connections; beyond it one that grows larger than `guest_request_max` ends its connection.
    pub input_total_max: usize,
}

impl Default for NetConfig {
    fn default() -> Self {
        NetConfig {
            requests_max: 768,
            unread_bytes_max: 16 << 20,
            unread_total_max: 256 << 20,
            connections_max: 100_000,
            guest_request_max: 16 << 10,
            input_total_max: 512 << 20,
        }
    }
}

/// See the head of this file.
pub(crate) struct Service {
    pub(crate) database: Rc<Database>,
    pub(crate) config: NetConfig,
    /// Failed logins, and those that wait behind them.
    pub(crate) logins: Logins,
    /// Connections with something to do besides reading.
    pub(crate) dirty: RefCell<Vec<Rc<Connection>>>,
    /// Requests in fibers.
    in_flight: Cell<usize>,
    /// A request has ended that others may have waited for.
    has_room: Cell<bool>,
    /// How often requests had begun or ended to wait for locked rows when that was looked at last.
    lock_waits: Cell<u64>,
    /// Answers that sockets have not taken, of all connections.
    pub(crate) unsent_total: Arc<AtomicUsize>,
    /// Bytes of answers that were made in this turn and are not in `unsent_total` yet.
    pub(crate) made_bytes: Cell<usize>,
    /// Bytes of requests that have come in part, of all connections.
    pub(crate) input_total: Cell<usize>,
    /// Whether guest has been granted something, and the version of the grants when that was found out.
    guest_grants: Cell<(u64, bool)>,
    /// No request is served any more: the server is stopping.
    pub(crate) is_draining: Cell<bool>,
}

/// What requests are refused with while the server stops.
pub(crate) fn shutting_down() -> Error {
    Error::system("the server is shutting down")
}

impl Service {
    pub(crate) fn new(database: Rc<Database>, config: NetConfig) -> Rc<Self> {
        Rc::new(Service {
            database,
            config,
            logins: Logins::default(),
            dirty: RefCell::default(),
            in_flight: Cell::new(0),
            has_room: Cell::new(false),
            lock_waits: Cell::new(0),
            unsent_total: Arc::default(),
            made_bytes: Cell::new(0),
            input_total: Cell::new(0),
            guest_grants: Cell::new((0, false)),
            is_draining: Cell::new(false),
        })
    }

    /// Has a connection looked at at the end of the turn.
    pub(crate) fn mark(&self, connection: &Rc<Connection>) {
        if !connection.is_dirty.replace(true) {
            self.dirty.borrow_mut().push(Rc::clone(connection));
        }
    }

    /// A request of a connection begins in a fiber.
    pub(crate) fn begin_request(&self, connection: &Connection) {
        self.in_flight.set(self.in_flight.get() + 1);
        connection.in_flight.set(connection.in_flight.get() + 1);
        let open = &self.database.statistics.requests_open;
        open.set(open.get() + 1);
    }

    /// It is answered.
    pub(crate) fn end_request(&self, connection: &Rc<Connection>) {
        if self.is_busy() || connection.is_busy() {
            self.has_room.set(true);
        }
        let less = |count: usize| count.checked_sub(1).expect("a request that ends has begun");
        self.in_flight.set(less(self.in_flight.get()));
        connection.in_flight.set(less(connection.in_flight.get()));
        let open = &self.database.statistics.requests_open;
        open.set(open.get().saturating_sub(1));
        self.mark(connection);
    }

    /// A connection may be served again, which nothing else announces.
    pub(crate) fn announce_room(&self) {
        self.has_room.set(true);
    }

    /// True once after such an announcement.
    pub(crate) fn take_room(&self) -> bool {
        let (_, changes) = self.database.requests_behind_locks();
        self.has_room.replace(false) | (self.lock_waits.replace(changes) != changes)
    }

    /// True if there are as many requests in fibers as there may be. Those that wait for locked rows are not among them: whoever is to free the rows must be
    /// heard.
    pub(crate) fn is_busy(&self) -> bool {
        let (waiting, _) = self.database.requests_behind_locks();
        self.in_flight.get().saturating_sub(waiting) >= self.config.requests_max
    }

    /// Unread answers that one connection may have now.
    pub(crate) fn unread_max(&self) -> usize {
        let total = self.unsent_total.load(Ordering::Acquire) + self.made_bytes.get();
        if total > self.config.unread_total_max { UNREAD_ALWAYS } else { self.config.unread_bytes_max }
    }

    /// True if guest may do more than connect.
    pub(crate) fn has_guest_grants(&self) -> bool {
        let catalog = &self.database.catalog;
        let version = catalog.access_version();
        let (known, has) = self.guest_grants.get();
        if known == version {
            return has;
        }
        let has = catalog.has_more_than_a_session(GUEST);
        self.guest_grants.set((version, has));
        has
    }
}
