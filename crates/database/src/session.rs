//! Who asks: the session of a connection or of the process itself, and the context that one request runs in.

use crate::access::Rights;
use crate::catalog::Catalog;
use crate::database::Database;
use crate::hooks::Channel;
use crate::settings::{self, Setting};
use crate::txn::Txn;
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use wal::Position;

/// Number of a user or role.
pub type UserId = u32;

/// The user of connections that have not authenticated.
pub const GUEST: UserId = 0;
/// The user that may do everything.
pub const ADMIN: UserId = 1;
/// The role that everybody has.
pub const PUBLIC: UserId = 2;
/// No user: who a session is whose user was dropped, and who owns what nobody may.
pub(crate) const NOBODY: UserId = UserId::MAX;
/// The role that may do everything.
pub const SUPER: UserId = 31;

/// Where a session comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// A connection of the binary protocol.
    Binary,
    /// A connection of another protocol, by its name.
    Door(&'static str),
    /// An administrator's console.
    Console,
    /// A script, a background fiber.
    Background,
}

impl SessionKind {
    /// Tarantool's name.
    pub fn name(self) -> &'static str {
        match self {
            SessionKind::Binary => "binary",
            SessionKind::Door(name) => name,
            SessionKind::Console => "console",
            SessionKind::Background => "background",
        }
    }
}

/// A session: lives as long as its connection.
pub struct Session {
    /// Never used twice in the life of a process.
    pub id: u64,
    /// Where it comes from.
    pub kind: SessionKind,
    /// Address of the other side, as text.
    pub peer: Option<String>,
    /// The authenticated user.
    pub user: Cell<UserId>,
    /// [`birth`](crate::catalog::User::birth) of that user, and the version of users and grants when it was last the same.
    pub(crate) birth: Cell<(u64, u64)>,
    /// Identifier of the request being served.
    pub sync: Cell<u64>,
    /// How its client is sent what is no answer, if that can be done.
    pub channel: RefCell<Option<Rc<dyn Channel>>>,
    /// Cleared when the connection is gone.
    pub is_alive: Cell<bool>,
    /// Its client understands error objects among results.
    pub takes_errors: Cell<bool>,
    /// Something was written to a space on disk: the event loop takes notice, and clears it.
    pub writes_disk: Cell<bool>,
    /// Its requests that wait for locked rows.
    pub waiting_requests: Cell<usize>,
    /// Rows of `_session_settings`, in the order of their names.
    pub(crate) settings: RefCell<[Setting; settings::COUNT]>,
}

/// Sessions by their numbers.
#[derive(Default)]
pub struct Sessions {
    last_id: Cell<u64>,
    living: RefCell<HashMap<u64, Weak<Session>>>,
}

impl Database {
    /// A new session.
    pub fn open_session(&self, kind: SessionKind, peer: Option<String>) -> Rc<Session> {
        let sessions = &self.sessions;
        let id = sessions.last_id.get() + 1;
        sessions.last_id.set(id);
        let user = match kind {
            SessionKind::Binary | SessionKind::Door(_) => GUEST,
            SessionKind::Console | SessionKind::Background => ADMIN,
        };
        let session = Rc::new(Session {
            id,
            kind,
            peer,
            user: Cell::new(user),
            birth: Cell::default(),
            sync: Cell::new(0),
            channel: RefCell::default(),
            is_alive: Cell::new(true),
            takes_errors: Cell::new(false),
            writes_disk: Cell::new(false),
            waiting_requests: Cell::new(0),
            settings: RefCell::new(settings::defaults()),
        });
        sessions.living.borrow_mut().insert(id, Rc::downgrade(&session));
        session
    }

    /// A living session.
    pub fn session(&self, id: u64) -> Option<Rc<Session>> {
        let mut living = self.sessions.living.borrow_mut();
        let found = living.get(&id)?.upgrade().filter(|session| session.is_alive.get());
        if found.is_none() {
            living.remove(&id);
        }
        found
    }

    /// Forgets a session whose connection is gone.
    pub fn close_session(&self, session: &Session) {
        session.is_alive.set(false);
        self.sessions.living.borrow_mut().remove(&session.id);
    }

    /// The context that rows of files are applied in.
    pub(crate) fn replay_context(&self) -> Context {
        Context::for_replay(self.open_session(SessionKind::Background, None))
    }

    /// The context of a session of its own, for administrative work.
    pub fn admin_context(&self) -> Context {
        Context::for_background(self.open_session(SessionKind::Background, None))
    }
}

/// A user whom work is checked as: more than a number, which may be given to another one.
#[derive(Clone, Copy, Debug)]
pub struct Acting {
    /// The number.
    pub user: UserId,
    /// [`birth`](crate::catalog::User::birth) of the user when the work began to be checked so.
    pub birth: u64,
    /// The version of users and grants when it was last the same.
    checked: Option<u64>,
}

impl Acting {
    /// One whom somebody has kept.
    pub fn new(user: UserId, birth: u64) -> Self {
        Acting { user, birth, checked: None }
    }
}

/// Where the work of a context comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client, a procedure, the administrator: everything is checked.
    Client,
    /// The rows of a snapshot or a log, which were checked when they were written: they are not questioned again.
    Replay,
    /// The search for rows that have expired, which sees them.
    Expiry,
}

impl Origin {
    /// True if rows are applied as they come.
    #[inline]
    pub(crate) fn is_replay(self) -> bool {
        self == Origin::Replay
    }
}

/// What one request, or one fiber outside requests, works in: session, effective user, open transaction.
pub struct Context {
    /// The session.
    pub session: Rc<Session>,
    /// Identifier of the request that it is for; 0 if it is for none.
    pub sync: Cell<u64>,
    /// Where the work comes from.
    pub(crate) origin: Origin,
    /// Who the work is checked as; differs from the session's user inside `box.session.su` and setuid functions.
    acting: Cell<Acting>,
    /// The open transaction of `box.begin`.
    pub(crate) txn: RefCell<Option<Box<Txn>>>,
    /// The open transaction is suspended, or was aborted by a conflict.
    pub(crate) must_resume: Cell<bool>,
    /// The newest log position whose effect was seen or made here: an answer waits for it.
    pub seen: Cell<Position>,
    /// Answers do not wait before the open transaction commits (`TxnIsolation::ReadCommitted`).
    pub(crate) defers: Cell<bool>,
    /// True if commits return at once and the answer waits instead (requests of a connection).
    pub answers_wait: bool,
    /// True if a transaction that a request leaves open is gone on with by the next one (streams of a connection).
    pub(crate) keeps_txn: bool,
    /// How deep in triggers the work is.
    pub(crate) trigger_depth: Cell<u32>,
    /// What foreign keys have made of the statement that is under way, if it has any to heed.
    pub(crate) foreign: RefCell<Option<Box<crate::foreign_keys::ForeignWork>>>,
    /// Foreign keys are not looked at: whoever loads rows, or puts rows back that were there, knows what it does.
    pub(crate) skips_foreign_keys: Cell<bool>,
    /// Rows that are there are taken to satisfy constraints that come: they are those that there were, in other words.
    pub(crate) trusts_rows: Cell<bool>,
    /// A change of the schema in a transaction of the client's own may look at more rows at one go: there is no other way.
    pub(crate) looks_at_once: Cell<bool>,
    /// How long a statement waits for a lock if it does not say itself, in nanoseconds.
    pub(crate) lock_timeout_ns: Cell<Option<u64>>,
    /// When the statement is ended that is under way, by the clock of the fibers; none: never.
    pub(crate) deadline_ns: Cell<Option<u64>>,
    rights: RefCell<Option<(u64, UserId, Rc<Rights>)>>,
}

impl Context {
    /// A context for requests of a connection: their answers are held until what they saw is durable.
    pub fn for_request(session: Rc<Session>) -> Self {
        Self::new(session, Origin::Client, true)
    }

    /// A context for the requests of one stream of a connection: an open transaction outlives the request that has begun it.
    pub fn for_stream(session: Rc<Session>) -> Self {
        Context { keeps_txn: true, ..Self::new(session, Origin::Client, true) }
    }

    /// A context for work whose commits wait by themselves: background fibers, scripts, consoles.
    pub fn for_background(session: Rc<Session>) -> Self {
        Self::new(session, Origin::Client, false)
    }

    /// A context for rows of a snapshot or a log.
    pub(crate) fn for_replay(session: Rc<Session>) -> Self {
        Self::new(session, Origin::Replay, false)
    }

    /// A context for the search for rows that have expired.
    pub(crate) fn for_expiry(session: Rc<Session>) -> Self {
        Self::new(session, Origin::Expiry, true)
    }

    fn new(session: Rc<Session>, origin: Origin, answers_wait: bool) -> Self {
        let acting = Cell::new(Acting { user: session.user.get(), birth: session.birth.get().0, checked: None });
        Context {
            session,
            sync: Cell::new(0),
            origin,
            acting,
            txn: RefCell::new(None),
            must_resume: Cell::new(false),
            seen: Cell::new(Position::default()),
            defers: Cell::new(false),
            answers_wait,
            keeps_txn: false,
            trigger_depth: Cell::new(0),
            foreign: RefCell::new(None),
            skips_foreign_keys: Cell::new(false),
            trusts_rows: Cell::new(false),
            looks_at_once: Cell::new(false),
            lock_timeout_ns: Cell::new(None),
            deadline_ns: Cell::new(None),
            rights: RefCell::new(None),
        }
    }

    /// False for who works with rows whether they have expired or not.
    #[inline]
    pub(crate) fn sees_present(&self) -> bool {
        self.origin == Origin::Client
    }

    /// Has foreign keys not looked at from now on, or looked at again. Returns what was so before.
    pub fn skip_foreign_keys(&self, skips: bool) -> bool {
        self.skips_foreign_keys.replace(skips)
    }

    /// True if foreign keys are not looked at.
    pub fn skips_foreign_keys(&self) -> bool {
        self.skips_foreign_keys.get()
    }

    /// Has rows that are there not looked at for constraints that come, or looked at again. Returns what was so before.
    pub fn trust_rows(&self, trusts: bool) -> bool {
        self.trusts_rows.replace(trusts)
    }

    /// True if the open transaction has changed the schema.
    pub fn has_changed_schema(&self) -> bool {
        self.txn.borrow().as_ref().is_some_and(|txn| txn.system_statements() > 0)
    }

    /// Has a look at all rows of a space end when the clock of the fibers shows this, or never. Returns what was so before.
    pub fn set_deadline(&self, ns: Option<u64>) -> Option<u64> {
        self.deadline_ns.replace(ns)
    }

    /// True if the statement has taken longer than it may.
    pub fn is_out_of_time(&self) -> bool {
        self.deadline_ns.get().is_some_and(|deadline| runtime::fiber::now_ns() >= deadline)
    }

    /// Has statements wait for a lock for so long, unless they say themselves how long; without, as the configuration says.
    pub fn set_lock_timeout(&self, ns: Option<u64>) {
        self.lock_timeout_ns.set(ns);
    }

    /// Whether a change of the schema may look at many rows at one go, because it is one step of a client's transaction. Returns what was so before.
    pub fn look_at_once(&self, looks: bool) -> bool {
        self.looks_at_once.replace(looks)
    }

    /// Notes that the effect of `position` was seen.
    pub fn see(&self, position: Position) {
        if position > self.seen.get() {
            self.seen.set(position);
        }
    }

    /// The position that an answer waits for which is given now.
    #[inline]
    pub fn awaited(&self) -> Position {
        if self.defers.get() { Position::default() } else { self.seen.get() }
    }

    /// True between `begin` and `commit`.
    pub fn is_in_txn(&self) -> bool {
        self.txn.borrow().is_some()
    }

    /// True if nothing is lost when others have a turn now: no transaction is open, or it has neither done anything nor seen rows of clients.
    pub(crate) fn may_wait(&self) -> bool {
        self.txn.borrow().as_ref().is_none_or(|txn| txn.may_wait())
    }

    /// Who the work is checked as: nobody if that user was dropped, even if another user has the number now.
    pub fn user(&self, catalog: &Catalog) -> UserId {
        let Acting { user, birth, checked } = self.acting.get();
        let version = catalog.access_version();
        // Neither guest nor the administrator can be dropped.
        if user <= ADMIN || user == NOBODY || checked == Some(version) {
            return user;
        }
        let is_same = catalog.user(user).is_some_and(|user| user.birth == birth);
        let user = if is_same { user } else { NOBODY };
        self.acting.set(Acting { user, birth, checked: Some(version) });
        user
    }

    /// Has the work be checked as a user from now on. Returns what `act_again` takes to go back.
    pub fn act_as(&self, user: UserId, catalog: &Catalog) -> Acting {
        let before = self.acting.get();
        let birth = catalog.user(user).map_or(0, |user| user.birth);
        self.acting.set(Acting { user, birth, checked: None });
        before
    }

    /// Has the work be checked as whom it was before: the same user, not another one who has got the number meanwhile.
    pub fn act_again(&self, acting: Acting) {
        self.acting.set(Acting { checked: None, ..acting });
    }

    /// Who it is, for a context that others make for the same user.
    pub fn acting(&self) -> Acting {
        self.acting.get()
    }

    /// Has the work be checked as the session's user, who was looked at under this version of users and grants.
    #[inline]
    pub(crate) fn act_for_session(&self, user: UserId, version: u64) {
        self.acting.set(Acting { user, birth: self.session.birth.get().0, checked: Some(version) });
    }

    /// The rights of the effective user, computed again only when grants have changed.
    #[inline]
    pub(crate) fn rights(&self, catalog: &Catalog) -> Rc<Rights> {
        let (version, user) = (catalog.access_version(), self.user(catalog));
        if let Some((cached_version, cached_user, rights)) = &*self.rights.borrow()
            && *cached_version == version
            && *cached_user == user
        {
            return Rc::clone(rights);
        }
        let rights = catalog.rights_of(user);
        *self.rights.borrow_mut() = Some((version, user, Rc::clone(&rights)));
        rights
    }
}
