//! Slowing down those who try passwords, by the address that they come from.
//!
//! The first failures of an address cost nothing: people mistype. From then on every answer to a login from there, right or wrong,
//! comes later, twice as late with each failure. A login that waits is a parked answer: a fiber of its own that holds nothing else up. How
//! many may wait is bounded, for one address and for all; those beyond are refused at once, unlooked at. So one address tries at most
//! `WAITING_PER_ADDRESS_MAX` passwords in `DELAY_MAX_NS`, however many connections it has. A login that succeeds clears the address.
//! Connections that are logged in already are not touched, nor are other addresses.

use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a peer comes from.
pub(crate) type Origin = IpAddr;

/// Failures of an address that cost nothing.
pub(crate) const FREE_FAILURES: u32 = 3;
/// Delay behind the first failure that costs.
pub(crate) const DELAY_FIRST_NS: u64 = 100_000_000;
/// Longest delay.
pub(crate) const DELAY_MAX_NS: u64 = 3_000_000_000;
/// An address without a failure for so long is forgotten.
const FORGOTTEN_AFTER_NS: u64 = 60_000_000_000;
/// Addresses with failures; the one that has not failed for longest is forgotten for another.
const ADDRESSES_MAX: usize = 4096;
/// Logins of one address that may wait at a time.
const WAITING_PER_ADDRESS_MAX: u32 = 16;
/// Logins that may wait at a time in all.
const WAITING_MAX: u32 = 1024;

const _: () = assert!(WAITING_PER_ADDRESS_MAX < WAITING_MAX && DELAY_FIRST_NS < DELAY_MAX_NS);

#[derive(Default)]
struct Failures {
    count: u32,
    last_ns: u64,
    waiting: u32,
}

/// What is done with a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is looked at now.
    Now,
    /// It is looked at after so many nanoseconds; `leave` is called then.
    After(u64),
    /// It is not looked at: too many are waiting.
    Refused,
}

/// Failed logins by address.
#[derive(Default)]
pub(crate) struct Logins {
    addresses: RefCell<HashMap<Origin, Failures>>,
    waiting: Cell<u32>,
}

/// How late the answer to a login comes behind so many failures.
fn delay_ns(failures: u32) -> u64 {
    match failures.checked_sub(FREE_FAILURES) {
        None | Some(0) => 0,
        Some(beyond) => DELAY_FIRST_NS.saturating_mul(1 << (beyond - 1).min(20)).min(DELAY_MAX_NS),
    }
}

/// The part of a peer's address that stands for somebody: a whole network of IPv6 belongs to one.
pub(crate) fn origin(peer: Option<&str>) -> Option<Origin> {
    let address = peer?.parse::<SocketAddr>().ok()?.ip().to_canonical();
    Some(match address {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    })
}

impl Logins {
    /// Asks for a login at a time.
    pub(crate) fn admit(&self, origin: Origin, now_ns: u64) -> Admission {
        let mut addresses = self.addresses.borrow_mut();
        let Some(failures) = addresses.get_mut(&origin) else { return Admission::Now };
        if failures.waiting == 0 && now_ns.saturating_sub(failures.last_ns) > FORGOTTEN_AFTER_NS {
            addresses.remove(&origin);
            return Admission::Now;
        }
        let delay = delay_ns(failures.count);
        if delay == 0 {
            return Admission::Now;
        }
        if failures.waiting >= WAITING_PER_ADDRESS_MAX || self.waiting.get() >= WAITING_MAX {
            return Admission::Refused;
        }
        failures.waiting += 1;
        self.waiting.set(self.waiting.get() + 1);
        Admission::After(delay)
    }

    /// A login has waited.
    pub(crate) fn leave(&self, origin: Origin) {
        self.waiting.set(self.waiting.get() - 1);
        if let Some(failures) = self.addresses.borrow_mut().get_mut(&origin) {
            failures.waiting -= 1;
        }
    }

    /// A login failed. Returns how late the next answer will come.
    pub(crate) fn failed(&self, origin: Origin, now_ns: u64) -> u64 {
        let mut addresses = self.addresses.borrow_mut();
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&origin) {
            let idle = addresses.iter().filter(|(_, failures)| failures.waiting == 0);
            let oldest =
                idle.min_by_key(|(address, failures)| (failures.last_ns, **address)).map(|(address, _)| *address);
            // At most `WAITING_MAX` addresses have somebody waiting, so there is an idle one.
            oldest.map(|address| addresses.remove(&address));
        }
        let failures = addresses.entry(origin).or_default();
        failures.count = failures.count.saturating_add(1);
        failures.last_ns = now_ns;
        delay_ns(failures.count)
    }

    /// A login succeeded: its address may fail anew.
    pub(crate) fn succeeded(&self, origin: Origin) {
        let mut addresses = self.addresses.borrow_mut();
        match addresses.get_mut(&origin) {
            Some(failures) if failures.waiting > 0 => failures.count = 0,
            _ => _ = addresses.remove(&origin),
        }
    }
}

const _: () = assert!((WAITING_MAX as usize) < ADDRESSES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn the_delay_doubles_behind_the_free_failures_and_a_success_clears_it() {
        let logins = Logins::default();
        let delays: Vec<u64> = (0..11).map(|_| logins.failed(address(1), 0) / MS).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 400, 800, 1600, 3000, 3000, 3000]);
        assert_eq!(logins.admit(address(2), 0), Admission::Now);
        assert_eq!(logins.admit(address(1), 0), Admission::After(3000 * MS));
        logins.succeeded(address(1));
        assert_eq!(logins.admit(address(1), 0), Admission::Now);
        logins.leave(address(1));
        assert_eq!(logins.waiting.get(), 0);
    }

    #[test]
    fn few_logins_of_an_address_wait_and_an_idle_address_is_forgotten() {
        let logins = Logins::default();
        (0..4).for_each(|_| _ = logins.failed(address(1), 0));
        let admitted = (0..100).filter(|_| logins.admit(address(1), 0) != Admission::Refused).count();
        assert_eq!(admitted, WAITING_PER_ADDRESS_MAX as usize);
        (0..admitted).for_each(|_| logins.leave(address(1)));
        assert_eq!(logins.admit(address(1), FORGOTTEN_AFTER_NS + 1), Admission::Now);
        assert!(logins.addresses.borrow().is_empty());
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_oldest() {
        let logins = Logins::default();
        (0..5000).for_each(|number| _ = logins.failed(address(number), u64::from(number)));
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
    }
}
