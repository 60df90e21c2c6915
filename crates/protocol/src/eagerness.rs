//! Whether the event loop looks again and again for the next request before it goes to sleep.
//!
//! A processor that goes to sleep has to be woken when a request comes, 20 to 50 us on most machines and a call of the host on virtual
//! ones: several times what a request takes. A client that asks again as soon as it has its answer waits for that each time. To
//! look for the next request instead costs no more processor time than the sleep and the wake-up, as long as it comes. So it is done
//! while waits have been short, and while few clients take turns: more of them keep the loop busy by themselves, and need the other processors. Those
//! who wait for each other's locks are few at a time, however many there are.

use std::time::Duration;

/// Longest time to look for a request awake. One that has not come by then will probably take much longer.
const SPIN: Duration = Duration::from_micros(50);
/// Longest wait, wake-up included, that looking might have made shorter.
const SHORT: Duration = Duration::from_micros(100);
/// Short waits, less what long ones and other clients take away, after which the loop looks.
const CREDIT_MIN: u32 = 32;
/// Credit that is kept at most: a few looks in vain, and it is over.
const CREDIT_MAX: u32 = 64;
/// What a long wait takes away.
const FINE: u32 = 8;
/// So many clients take turns at most.
const CLIENTS: usize = 4;
/// What a request of another one than the last few takes away.
const FINE_OF_OTHERS: u32 = 4;

/// How eagerly the loop waits.
pub(crate) struct Eagerness {
    /// There is another processor, on which a client can be.
    is_useful: bool,
    credit: u32,
    /// The last few clients, the last one first.
    clients: [usize; CLIENTS],
}

impl Eagerness {
    /// For a process that may use `processors`.
    pub(crate) fn new(processors: usize) -> Self {
        Eagerness { is_useful: processors > 1, credit: 0, clients: [usize::MAX; CLIENTS] }
    }

    /// How long to look for events before the loop sleeps.
    pub(crate) fn spin(&self) -> Duration {
        if self.is_useful && self.credit >= CREDIT_MIN { SPIN } else { Duration::ZERO }
    }

    /// Takes notice of how long it took until an event came, and whether it came from a client. What threads and disks of the server tell says
    /// nothing of how soon a client asks, but what took long was not worth looking for.
    pub(crate) fn note_wait(&mut self, waited: Duration, is_for_client: bool) {
        let is_short = if self.credit >= CREDIT_MIN { waited < SPIN } else { waited < SHORT };
        match (is_short, is_for_client) {
            (true, true) => self.credit = (self.credit + 1).min(CREDIT_MAX),
            (true, false) => {}
            (false, _) => self.credit = self.credit.saturating_sub(FINE),
        }
    }

    /// Takes notice of whom the events came from.
    pub(crate) fn note_events(&mut self, clients: impl Iterator<Item = usize>) {
        for client in clients {
            let place = self.clients.iter().position(|known| *known == client);
            if place.is_none() {
                self.credit = self.credit.saturating_sub(FINE_OF_OTHERS);
            }
            self.clients[..=place.unwrap_or(CLIENTS - 1)].rotate_right(1);
            self.clients[0] = client;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(eagerness: &mut Eagerness, count: usize, client: impl Fn(usize) -> usize, waited_us: u64) {
        for at in 0..count {
            eagerness.note_wait(Duration::from_micros(waited_us), true);
            eagerness.note_events([client(at)].into_iter());
        }
    }

    #[test]
    fn one_client_that_asks_at_once_is_waited_for_awake() {
        let mut eagerness = Eagerness::new(2);
        assert_eq!(eagerness.spin(), Duration::ZERO);
        for _ in 0..100 {
            // A wake-up takes 60 us.
            let waited_us = if eagerness.spin().is_zero() { 70 } else { 10 };
            requests(&mut eagerness, 1, |_| 1, waited_us);
        }
        assert_eq!(eagerness.spin(), SPIN);
        requests(&mut eagerness, 100, |_| 1, 10);
        assert_eq!(eagerness.spin(), SPIN);
        requests(&mut eagerness, 100, |at| at % CLIENTS, 10);
        assert_eq!(eagerness.spin(), SPIN, "a few clients");
    }

    #[test]
    fn a_few_looks_in_vain_end_it() {
        let mut eagerness = Eagerness::new(2);
        requests(&mut eagerness, 1000, |_| 1, 10);
        requests(&mut eagerness, 5, |_| 1, 500);
        assert_eq!(eagerness.spin(), Duration::ZERO);
        requests(&mut eagerness, 1000, |_| 1, 500);
        assert_eq!(eagerness.spin(), Duration::ZERO, "requests that come now and then");
    }

    #[test]
    fn a_disk_is_waited_for_asleep() {
        let mut eagerness = Eagerness::new(2);
        let mut looks = 0;
        for _ in 0..1000 {
            requests(&mut eagerness, 1, |_| 1, 40);
            looks += u32::from(!eagerness.spin().is_zero());
            eagerness.note_wait(Duration::from_micros(90), false);
        }
        assert!(looks < 150, "{looks}");
    }

    #[test]
    fn many_clients_are_waited_for_asleep() {
        let mut eagerness = Eagerness::new(2);
        requests(&mut eagerness, 1000, |_| 1, 10);
        requests(&mut eagerness, 20, |at| at % (CLIENTS + 1), 10);
        assert_eq!(eagerness.spin(), Duration::ZERO);
        requests(&mut eagerness, 1000, |at| at % 16, 10);
        assert_eq!(eagerness.spin(), Duration::ZERO);
    }

    #[test]
    fn those_who_wait_for_each_other_are_waited_for_awake() {
        let mut eagerness = Eagerness::new(2);
        // Six requests in a row from each of many, which have waited for a lock.
        requests(&mut eagerness, 1000, |at| at / 6 % 16, 10);
        assert_eq!(eagerness.spin(), SPIN);
    }

    #[test]
    fn the_only_processor_is_left_to_the_client() {
        let mut eagerness = Eagerness::new(1);
        requests(&mut eagerness, 1000, |_| 1, 10);
        assert_eq!(eagerness.spin(), Duration::ZERO);
    }
}
