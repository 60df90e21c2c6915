//! What every connection has, whatever its protocol: a socket, input not understood yet, answers, and the requests under way.

use crate::door::AnyDoor;
use crate::output::Output;
use crate::packing::Packed;
use crate::sender::Outlet;
use crate::service::{Service, shutting_down};
use crate::settle::HANDED_OVER_BYTES_MIN;
use crate::terms::Terms;
use database::{Acting, Channel, Context, Database, DoorStatistics, Error, ErrorCode, Result, Session, UserId};
use runtime::fiber;
use runtime::net::Token;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use wal::Position;

/// Interval between looks whether a client has read enough to be sent more.
pub(crate) const LOOK_AGAIN_NS: u64 = 10_000_000;

/// Requests of a connection that wait for locked rows: all its streams but the one that is to free them. Beyond it nothing is read from it.
const WAITING_MAX: usize = 1000;

/// One client. Shared between the event loop and the fibers that serve its requests.
pub struct Connection {
    pub(crate) token: Token,
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) service: Rc<Service>,
    pub(crate) door: Rc<dyn AnyDoor>,
    /// What the door keeps with the connection.
    pub(crate) state: Box<dyn Any>,
    /// Requests in fibers that it may have at once.
    pub(crate) requests_max: usize,
    pub(crate) session: Rc<Session>,
    /// What is counted for its protocol.
    pub(crate) counts: Rc<DoorStatistics>,
    /// Requests that cannot wait share this; others get their own.
    context: Rc<Context>,
    /// The beginning of a request whose rest has not come.
    pub(crate) input: RefCell<Vec<u8>>,
    pub(crate) output: RefCell<Output>,
    /// Both sides pack what they send.
    pub(crate) packed: RefCell<Option<Packed>>,
    /// Bytes of frames that were not unpacked, which are counted with `input`.
    pub(crate) packed_bytes: Cell<usize>,
    /// Nothing is done for it but logins.
    pub(crate) must_log_in: Cell<bool>,
    /// Whom its work is checked as in place of its user, see [`Connection::act_as`].
    acts_as: Cell<Option<Acting>>,
    /// Requests in fibers, and a login that waits.
    pub(crate) in_flight: Cell<usize>,
    /// A login waits behind failed ones.
    pub(crate) is_login_waiting: Cell<bool>,
    /// The socket may have more to read.
    pub(crate) is_readable: Cell<bool>,
    /// The other side sends no more.
    pub(crate) is_read_closed: Cell<bool>,
    /// `input` holds whole requests that wait for room for their answers, or for the next turn.
    pub(crate) is_stalled: Cell<bool>,
    /// The last requests took all the time that a connection has in one turn.
    pub(crate) is_slow: Cell<bool>,
    /// When the group of requests that is being served began, by the clock of the fibers.
    pub(crate) group_began: Cell<u64>,
    /// The server stops: a request that fails from now on was cancelled by that.
    pub(crate) is_cut_short: Cell<bool>,
    /// In the list of connections to flush.
    pub(crate) is_dirty: Cell<bool>,
    /// No more requests are read; the socket is closed when the answers are out.
    pub(crate) is_closing: Cell<bool>,
}

impl Connection {
    pub(crate) fn new(
        token: Token,
        outlet: Arc<Outlet>,
        service: &Rc<Service>,
        door: Rc<dyn AnyDoor>,
        state: Box<dyn Any>,
        session: Rc<Session>,
    ) -> Self {
        let is_ordered = door.is_ordered();
        Connection {
            token,
            outlet,
            service: Rc::clone(service),
            counts: service.database.statistics.door(door.name()),
            door,
            state,
            // What comes behind a request that waits would be answered before it.
            requests_max: if is_ordered { 1 } else { service.config.requests_max },
            context: Rc::new(Context::for_request(Rc::clone(&session))),
            session,
            input: RefCell::default(),
            output: RefCell::new(Output::new(is_ordered)),
            packed: RefCell::default(),
            packed_bytes: Cell::new(0),
            must_log_in: Cell::new(false),
            acts_as: Cell::new(None),
            in_flight: Cell::new(0),
            is_login_waiting: Cell::new(false),
            is_readable: Cell::new(false),
            is_read_closed: Cell::new(false),
            is_stalled: Cell::new(false),
            is_slow: Cell::new(false),
            group_began: Cell::new(0),
            is_cut_short: Cell::new(false),
            is_dirty: Cell::new(false),
            is_closing: Cell::new(false),
        }
    }

    /// What it is served by.
    #[inline]
    pub fn database(&self) -> &Rc<Database> {
        &self.service.database
    }

    /// The session, which ends with the connection.
    #[inline]
    pub fn session(&self) -> &Rc<Session> {
        &self.session
    }

    /// The context of requests that cannot wait, with the rights that the session has now.
    #[inline]
    pub fn context(&self) -> &Context {
        self.act(&self.context);
        &self.context
    }

    /// Has work be checked as the connection's user is now, or as whom its door says.
    #[inline]
    pub(crate) fn act(&self, context: &Context) {
        let database = self.database();
        database.act_for_session(context);
        // Who was dropped is nobody, whoever it has acted as.
        if let Some(acting) = self.acts_as.get()
            && database.user_of(&self.session) == self.session.user.get()
        {
            context.act_again(acting);
        }
    }

    /// Has the work of this connection be checked as another user than its own from now on, or no longer: of a door that has looked itself at what the
    /// user may do.
    pub(crate) fn act_as(&self, user: Option<UserId>) {
        let birth = |id| self.database().catalog.user(id).map_or(0, |user| user.birth);
        self.acts_as.set(user.map(|id| Acting::new(id, birth(id))));
    }

    /// Adds an answer, which leaves once the log is durable up to `seen`. Errors: those of `encode`; nothing is answered then.
    #[inline]
    pub fn answer(&self, seen: Position, tag: u64, encode: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let awaited = (seen > self.database().durable()).then_some(seen);
        self.output.borrow_mut().add(awaited, tag, encode)
    }

    /// Answers a request with an error. It, too, may show rows, rights or spaces that are not durable yet: it waits for everything that was
    /// written before it.
    pub(crate) fn answer_error(&self, tag: u64, error: &Error) {
        let database = self.database();
        database::increment(&database.statistics.errors);
        database::increment(&self.counts.errors);
        // What a failed log has lost was taken back before.
        let seen = if database.lost_from().is_some() { Position::default() } else { database.appended() };
        self.add_failure(seen, tag, error);
    }

    /// Adds an error in the place of an answer.
    pub(crate) fn add_failure(&self, seen: Position, tag: u64, error: &Error) {
        let encode = |out: &mut Vec<u8>| {
            let before = out.len();
            self.door.fail(self.database(), out, tag, error);
            if out.len() == before {
                self.end();
            }
            Ok(())
        };
        self.answer(seen, tag, encode).expect("the encoding of an error does not fail");
    }

    /// Whoever has logged in is forgotten: from now on it acts for whom the listener says. Errors: there is no such user.
    pub(crate) fn log_out(&self, terms: &Terms) -> Result<()> {
        self.database().set_session_user(&self.session, database::GUEST);
        terms.begin(self.database(), &self.session, self.door.own_user())?;
        self.must_log_in.set(terms.asks_login_of(self.session.peer.as_deref()));
        Ok(())
    }

    /// True if nobody has logged in where the listener asks for it: doors do nothing but logins then.
    #[inline]
    pub fn must_log_in(&self) -> bool {
        self.must_log_in.get()
    }

    /// True if a password may come as it is: by TLS, or from this machine.
    pub(crate) fn is_private(&self) -> bool {
        crate::logins::is_near(self.session.peer.as_deref()) || self.outlet.is_sealed()
    }

    /// The version of TLS and the cipher, if it is by TLS.
    pub(crate) fn seal(&self) -> Option<(String, String)> {
        self.outlet.seal()
    }

    /// It is one request, which has come as a datagram.
    pub(crate) fn is_datagram(&self) -> bool {
        self.outlet.stream.is_exchange()
    }

    /// Ends the connection behind the answers to what was asked so far.
    pub fn end(&self) {
        self.is_closing.set(true);
    }

    /// True if there are as many of its requests in fibers as there may be.
    pub(crate) fn is_busy(&self) -> bool {
        let (in_flight, waiting) = (self.in_flight.get(), self.session.waiting_requests.get());
        match self.requests_max {
            // Answers are in the order of requests: what comes next waits for whoever waits.
            1 => in_flight >= 1,
            // As in `Service::is_busy`.
            max => in_flight.saturating_sub(waiting) >= max || waiting >= WAITING_MAX,
        }
    }

    /// True if no more requests may be served now: answers must be read first, or requests under way must end.
    pub(crate) fn has_no_room(&self) -> bool {
        self.unsent() > self.service.unread_max() || self.is_busy()
    }

    /// Serves a request in a fiber: `work` gets a context of its own and the subject, may wait, and answers. Its error is answered here.
    /// `describe` says what it was if it waited and took long; what did not wait is in the time of its group.
    pub fn in_fiber<S: 'static>(
        self: &Rc<Self>,
        tag: u64,
        (subject, describe): (S, fn(&S) -> String),
        work: impl FnOnce(&Connection, &Rc<Context>, &S) -> Result<()> + 'static,
    ) {
        let connection = Rc::clone(self);
        self.service.begin_request(self);
        let begun = self.group_began.get();
        fiber::run_now(self.door.name(), move || {
            let context = Rc::new(Context::for_request(Rc::clone(&connection.session)));
            context.sync.set(tag);
            connection.act(&context);
            fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
            connection.serve_here(tag, begun, || describe(&subject), || work(&connection, &context, &subject));
            connection.service.end_request(&connection);
        });
    }

    /// True if nobody has logged in and guest may do nothing but connect: whoever that is gets little to hold.
    pub(crate) fn is_stranger(&self) -> bool {
        self.must_log_in() || self.session.user.get() == database::GUEST && !self.service.has_guest_grants()
    }

    /// The same in the fiber that calls, for a request that has come at `begun`, by the clock of the fibers.
    pub(crate) fn serve_here(
        &self,
        tag: u64,
        begun: u64,
        describe: impl FnOnce() -> String,
        work: impl FnOnce() -> Result<()>,
    ) {
        let waited_before = fiber::waited_ns();
        let outcome = work();
        let waited = fiber::waited_ns() - waited_before;
        if waited > 0 {
            let total = fiber::now_ns().saturating_sub(begun);
            if total > self.database().limits.too_long_ns.get() {
                log_slow(&describe(), total, waited);
            }
        }
        if let Err(error) = outcome {
            let error = if self.is_cut_short.get() { shutting_down() } else { error };
            self.answer_error(tag, &error);
        }
    }

    /// Hands on a part of a long answer, and waits while the client has not taken what came before. False: the fiber was cancelled. Errors: the transaction of
    /// `context` met another one meanwhile.
    pub(crate) fn hand_on(self: &Rc<Self>, context: &Rc<Context>, out: &mut Vec<u8>) -> Result<bool> {
        let bytes = std::mem::take(out);
        self.answer(context.awaited(), 0, |out| {
            out.extend_from_slice(&bytes);
            Ok(())
        })?;
        self.service.mark(self);
        if self.unsent() <= self.service.unread_max() {
            return Ok(true);
        }
        self.database().suspend(context);
        while self.unsent() > self.service.unread_max() {
            self.outlet.await_sent();
            self.service.mark(self);
            if fiber::sleep(LOOK_AGAIN_NS) == fiber::Wake::Cancelled {
                return Ok(false);
            }
        }
        self.database().resume(context)?;
        Ok(true)
    }

    /// Reads what is there, at most what `buffer` takes. Returns the number of bytes; 0 at the end of the stream.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.outlet.read(buffer) {
                Ok((count, is_over)) => {
                    if is_over {
                        self.is_read_closed.set(true);
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Bytes that the client has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.output.borrow().held() + self.outlet.unsent()
    }

    /// Bytes of answers that are not with the outlet yet.
    pub(crate) fn held(&self) -> usize {
        self.output.borrow().held()
    }

    /// The log failed: what waited for it becomes an error. True if there was something.
    pub(crate) fn fail_parked(&self, error: &Error) -> bool {
        let database = self.database();
        let mut output = self.output.borrow_mut();
        output.release(database.durable());
        let has_parked = output.has_parked();
        if has_parked && !output.fail(|out, tag| self.door.fail(database, out, tag, error)) {
            self.end();
        }
        has_parked
    }

    /// Hands what may leave to the outlet. True if the outlet has something to send.
    pub(crate) fn release(&self) -> bool {
        let database = self.database();
        let mut output = self.output.borrow_mut();
        output.release(database.durable());
        if !output.ready().is_empty() {
            database::add(&database.statistics.sent_bytes, output.ready().len() as u64);
            database::add(&self.counts.sent_bytes, output.ready().len() as u64);
            match self.packed.borrow_mut().as_mut() {
                None => self.outlet.push(output.ready()),
                Some(packed) => {
                    let mut out = Vec::new();
                    packed.pack(output.ready(), &mut out);
                    output.ready().clear();
                    self.outlet.push(&mut out);
                }
            }
        }
        output.shrink();
        self.outlet.unsent() > 0
    }

    /// Sends what may leave before the end of the turn, unless it is so much that the sender does it then.
    pub(crate) fn answer_soon(&self) {
        if self.release() && self.outlet.unsent() < HANDED_OVER_BYTES_MIN {
            self.outlet.send();
        }
    }
}

/// The way to the client of a connection for what is no answer.
pub(crate) struct ToClient(pub(crate) Weak<Connection>);

impl Channel for ToClient {
    fn push(&self, sync: u64, seen: Position, value: &[u8]) -> Result<()> {
        let closed = || Error::new(ErrorCode::SessionClosed, &[]);
        let find = || self.0.upgrade().filter(|connection| connection.session.is_alive.get()).ok_or_else(closed);
        let mut connection = find()?;
        while connection.unsent() > connection.service.unread_max() && fiber::current().is_some() {
            connection.outlet.await_sent();
            connection.service.mark(&connection);
            drop(connection);
            if fiber::sleep(LOOK_AGAIN_NS) == fiber::Wake::Cancelled {
                return Err(closed());
            }
            connection = find()?;
        }
        let door = Rc::clone(&connection.door);
        connection.answer(seen, sync, |out| door.push(connection.database(), out, sync, value))?;
        connection.service.mark(&connection);
        Ok(())
    }
}

/// Logs that something took long, and where the time went.
pub(crate) fn log_slow(what: &str, total_ns: u64, waited_ns: u64) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let waited_ns = waited_ns.min(total_ns);
    tracing::warn!(
        "too long {what}: {:.3} sec, {:.3} running and {:.3} waiting",
        seconds(total_ns),
        seconds(total_ns - waited_ns),
        seconds(waited_ns)
    );
}
