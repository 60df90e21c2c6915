//! Slows down password guessing, by the address that logins come from.
//!
//! The first failures of an address cost nothing: people mistype. After them, the answer to every login from that address, right or wrong,
//! is delayed: twice as long with each failure, and longer when very many logins wait at once. A login that waits is a few bytes in a
//! list, and is checked when its delay is over. No login is refused because others wait, so a user who knows the password gets in after
//! this delay, however many others guess from the same address. Wrong logins are answered no sooner than right ones; the difference
//! would tell.
//! A connection has one login waiting at a time, so an address tries at most one password in `DELAY_MAX_NS` for each connection that it
//! holds open, and `DELAY_MAX_NS` grows tenfold with their number.
//!
//! A login that succeeds clears the failures of its own user only: an account of one's own is no way to guess for ever at another one.
//! Connections that are logged in already are not touched, nor are other addresses.

use crate::connection::Connection;
use database::{Error, ErrorCode, Result, SessionEvent, UserId};
use hashbrown::HashMap;
use runtime::fiber;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::{Rc, Weak};

/// Where a peer comes from.
type Origin = IpAddr;

/// Failures of an address that cost nothing.
const FREE_FAILURES: u32 = 3;
/// Delay behind the first failure that costs.
const DELAY_FIRST_NS: u64 = 100_000_000;
/// Longest delay while few wait.
const DELAY_MAX_NS: u64 = 3_000_000_000;
/// Number of waiting logins that makes delays longer once more.
const CROWD: usize = 256;
/// Longest delay among very many, in parts of what it is among few.
const CROWD_FACTOR_MAX: u64 = 10;
/// Time without a failure after which an address is forgotten.
const FORGOTTEN_AFTER_NS: u64 = 60_000_000_000;
/// Addresses with failures; the one that has not failed for longest is forgotten for another.
const ADDRESSES_MAX: usize = 4096;
/// Longest login that is kept: a name has at most 65,000 bytes, but nobody's is that long.
const LOGIN_BYTES_MAX: usize = 4096;

const _: () = assert!(DELAY_FIRST_NS < DELAY_MAX_NS && DELAY_MAX_NS * CROWD_FACTOR_MAX < FORGOTTEN_AFTER_NS);

#[derive(Default)]
struct Failures {
    count: u32,
    /// Whose passwords were tried; `None` stands for all users that do not exist.
    by_user: BTreeMap<Option<UserId>, u32>,
    last_ns: u64,
}

/// A login whose time has not come.
struct Waiting {
    /// Gone if the client has left.
    connection: Weak<Connection>,
    origin: Origin,
    /// The door's name for the request.
    tag: u64,
    /// As its door understands it.
    login: Vec<u8>,
}

/// Failed logins by address, and the logins that wait behind them.
#[derive(Default)]
pub(crate) struct Logins {
    addresses: RefCell<HashMap<Origin, Failures>>,
    /// By the time when they are looked at, and in the order they came.
    waiting: RefCell<BTreeMap<(u64, u64), Waiting>>,
    next: Cell<u64>,
}

/// Delay of the answer to a login after this many failures.
fn delay_ns(failures: u32) -> u64 {
    match failures.checked_sub(FREE_FAILURES) {
        None | Some(0) => 0,
        Some(beyond) => DELAY_FIRST_NS.saturating_mul(1 << (beyond - 1).min(20)).min(DELAY_MAX_NS),
    }
}

/// The part of a peer's address that stands for somebody: a whole network of IPv6 belongs to one. Who comes through a unix socket is on this
/// machine, as who comes from 127.0.0.1.
fn origin(peer: Option<&str>) -> Option<Origin> {
    let peer = peer?;
    if peer.starts_with("unix/:") {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let address = peer.parse::<SocketAddr>().ok()?.ip().to_canonical();
    Some(match address {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    })
}

/// True for a peer on this machine.
pub(crate) fn is_near(peer: Option<&str>) -> bool {
    origin(peer).is_some_and(|origin| origin.is_loopback())
}

impl Logins {
    /// How long a login from an address has to wait before it is looked at.
    fn delay_ns(&self, origin: Origin, now_ns: u64) -> u64 {
        let mut addresses = self.addresses.borrow_mut();
        let Some(failures) = addresses.get(&origin) else { return 0 };
        if now_ns.saturating_sub(failures.last_ns) > FORGOTTEN_AFTER_NS {
            addresses.remove(&origin);
            return 0;
        }
        let crowd = 1 + (self.waiting.borrow().len() / CROWD) as u64;
        delay_ns(failures.count) * crowd.min(CROWD_FACTOR_MAX)
    }

    /// Keeps a login until a time.
    fn wait(&self, until_ns: u64, login: Waiting) {
        let number = self.next.get();
        self.next.set(number + 1);
        self.waiting.borrow_mut().insert((until_ns, number), login);
    }

    /// A login whose time has come.
    fn take_due(&self, now_ns: u64) -> Option<Waiting> {
        let mut waiting = self.waiting.borrow_mut();
        waiting.first_entry().filter(|first| first.key().0 <= now_ns).map(|first| first.remove())
    }

    /// When the next login is to be looked at.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.waiting.borrow().keys().next().map(|(until, _)| *until)
    }

    /// A login as a user failed. Returns how late the next answer will come.
    fn failed(&self, origin: Origin, user: Option<UserId>, now_ns: u64) -> u64 {
        let mut addresses = self.addresses.borrow_mut();
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&origin) {
            let oldest = addresses.iter().min_by_key(|(address, failures)| (failures.last_ns, **address));
            let oldest = oldest.map(|(address, _)| *address);
            oldest.map(|address| addresses.remove(&address));
        }
        let failures = addresses.entry(origin).or_default();
        failures.count = failures.count.saturating_add(1);
        let of_user = failures.by_user.entry(user).or_default();
        *of_user = of_user.saturating_add(1);
        failures.last_ns = now_ns;
        delay_ns(failures.count)
    }

    /// A user has logged in: what failed as this user before is forgiven to the address.
    fn succeeded(&self, origin: Origin, user: UserId) {
        let mut addresses = self.addresses.borrow_mut();
        let Some(failures) = addresses.get_mut(&origin) else { return };
        let forgiven = failures.by_user.remove(&Some(user)).unwrap_or(0);
        failures.count = failures.count.saturating_sub(forgiven);
        if failures.by_user.is_empty() {
            addresses.remove(&origin);
        }
    }
}

impl Connection {
    /// Looks at a login, later if its address has failed too often. `login` is what the door understands: [`Door::authenticate`] gets it
    /// when its time has come. Errors: it is wrong, or is not looked at.
    ///
    /// [`Door::authenticate`]: crate::Door::authenticate
    pub fn log_in(self: &Rc<Self>, tag: u64, login: &[u8]) -> Result<()> {
        let Some(origin) = origin(self.session.peer.as_deref()) else {
            return self.look_at_login(tag, login, None);
        };
        // Whatever is refused here is refused unlooked at: whether a password is right must not show sooner than it may.
        let refuse = |why: &str| {
            let mut error = Error::new(ErrorCode::CredsMismatch, &[]);
            error.push_text(why);
            Err(error)
        };
        if self.is_login_waiting.get() {
            return refuse("; not looked at: a login of this connection is waiting behind failed ones");
        }
        let logins = &self.service.logins;
        let now = fiber::now_ns();
        let delay_ns = logins.delay_ns(origin, now);
        if delay_ns == 0 {
            return self.look_at_login(tag, login, Some(origin));
        }
        if login.len() > LOGIN_BYTES_MAX {
            return refuse("; not looked at: it is too long");
        }
        self.is_login_waiting.set(true);
        // Not counted with the requests that may be served at once: those who guess must not use them up.
        self.in_flight.set(self.in_flight.get() + 1);
        let waiting = Waiting { connection: Rc::downgrade(self), origin, tag, login: login.to_vec() };
        logins.wait(now.saturating_add(delay_ns), waiting);
        Ok(())
    }

    fn look_at_login(&self, tag: u64, login: &[u8], origin: Option<Origin>) -> Result<()> {
        let (database, logins) = (self.database(), &self.service.logins);
        if let Err(mut error) = self.door.check_login(self, login) {
            if let Some(origin) = origin
                && error.code() == ErrorCode::CredsMismatch as u32
            {
                let user = database.catalog.user_by_name(&self.door.login_user(login)).map(|user| user.id);
                let delay_ms = logins.failed(origin, user, fiber::now_ns()) / 1_000_000;
                if delay_ms > 0 {
                    let text = format!("; after failed logins from {origin} the next answer comes {delay_ms} ms later");
                    error.push_text(&text);
                }
            }
            return Err(error);
        }
        self.must_log_in.set(false);
        if let Some(origin) = origin {
            logins.succeeded(origin, self.session.user.get());
        }
        self.answer(database.schema_written(), tag, |out| {
            self.door.welcome(database, out, tag);
            Ok(())
        })?;
        database.announce(&self.session, SessionEvent::Auth);
        Ok(())
    }
}

impl Logins {
    /// Looks at the logins whose time has come. `answered` gets each connection that has an answer now.
    pub(crate) fn answer_due(&self, answered: impl Fn(&Rc<Connection>)) {
        while let Some(waiting) = self.take_due(fiber::now_ns()) {
            let Some(connection) = waiting.connection.upgrade() else { continue };
            connection.is_login_waiting.set(false);
            connection.in_flight.set(connection.in_flight.get().checked_sub(1).expect("a login that waits is counted"));
            if let Err(error) = connection.look_at_login(waiting.tag, &waiting.login, Some(waiting.origin)) {
                connection.answer_error(waiting.tag, &error);
            }
            answered(&connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    fn waiting() -> Waiting {
        Waiting { connection: Weak::new(), origin: address(1), tag: 0, login: Vec::new() }
    }

    #[test]
    fn the_delay_doubles_behind_the_free_failures() {
        let logins = Logins::default();
        let delays: Vec<u64> = (0..11).map(|_| logins.failed(address(1), Some(7), 0) / MS).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 400, 800, 1600, 3000, 3000, 3000]);
        assert_eq!(logins.delay_ns(address(2), 0), 0);
        assert_eq!(logins.delay_ns(address(1), 0), 3000 * MS);
        assert_eq!(logins.delay_ns(address(1), FORGOTTEN_AFTER_NS + 1), 0);
        assert!(logins.addresses.borrow().is_empty());
    }

    #[test]
    fn a_success_clears_the_failures_of_its_own_user_only() {
        let logins = Logins::default();
        (0..10).for_each(|_| _ = logins.failed(address(1), Some(7), 0));
        logins.succeeded(address(1), 8);
        assert_eq!(logins.delay_ns(address(1), 0), 3000 * MS);
        logins.failed(address(1), None, 0);
        logins.succeeded(address(1), 7);
        assert_eq!(logins.delay_ns(address(1), 0), 0, "one failure is left, which is free");
        assert_eq!(logins.addresses.borrow().len(), 1);
    }

    #[test]
    fn logins_come_out_in_the_order_of_their_times_and_many_wait_longer() {
        let logins = Logins::default();
        (0..4).for_each(|_| _ = logins.failed(address(1), None, 0));
        assert_eq!(logins.delay_ns(address(1), 0), 100 * MS);
        for at in [30, 10, 20] {
            logins.wait(at, Waiting { tag: at, ..waiting() });
        }
        assert_eq!(logins.next_due_ns(), Some(10));
        assert!(logins.take_due(9).is_none());
        let order: Vec<u64> = std::iter::from_fn(|| logins.take_due(30)).map(|login| login.tag).collect();
        assert_eq!(order, [10, 20, 30]);
        (0..CROWD as u64).for_each(|at| logins.wait(at, waiting()));
        assert_eq!(logins.delay_ns(address(1), 0), 200 * MS);
        (0..100 * CROWD as u64).for_each(|at| logins.wait(at, waiting()));
        assert_eq!(logins.delay_ns(address(1), 0), 1000 * MS);
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_oldest() {
        let logins = Logins::default();
        (0..5000).for_each(|number| _ = logins.failed(address(number), None, u64::from(number)));
        assert_eq!(logins.addresses.borrow().len(), ADDRESSES_MAX);
        assert!(!logins.addresses.borrow().contains_key(&address(903)));
        assert!(logins.addresses.borrow().contains_key(&address(904)));
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let one = origin(Some("[2001:db8:1:2::1]:1000"));
        assert!(one.is_some() && one == origin(Some("[2001:db8:1:2:ffff::9]:7")));
        assert_ne!(one, origin(Some("[2001:db8:1:3::1]:1000")));
        assert_eq!(origin(Some("[::ffff:10.0.0.1]:5")), origin(Some("10.0.0.1:6")));
        assert_eq!(origin(None), None);
        assert_eq!(origin(Some("unix/:(socket)")), origin(Some("127.0.0.1:6")));
    }
}
