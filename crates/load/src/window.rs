//! The requests in flight on one connection.

/// A request in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// When it was sent, or in an open loop when it was due.
    pub(crate) begun_ns: u64,
    pub(crate) key: u32,
    /// Which of the flow's shares it is of.
    pub(crate) share: u32,
}

/// Slots, of which each holds a request or is free. The number of a slot is what the request carries over the wire and its answer brings back;
/// where answers are in order they need to bring nothing.
pub(crate) struct Window {
    slots: Vec<Slot>,
    /// Where answers name their request: slots that are free, and which are not.
    free: Vec<u32>,
    is_used: Vec<bool>,
    is_ordered: bool,
    /// Where answers are in order: the oldest request and the number of all.
    oldest: usize,
    count: usize,
}

impl Window {
    pub(crate) fn new(depth: u32, is_ordered: bool) -> Self {
        assert!(depth > 0, "a window without slots sends nothing");
        Window {
            slots: vec![Slot::default(); depth as usize],
            free: if is_ordered { Vec::new() } else { (0..depth).rev().collect() },
            is_used: vec![false; if is_ordered { 0 } else { depth as usize }],
            is_ordered,
            oldest: 0,
            count: 0,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.count
    }

    /// Takes a free slot for a request. `None`: there is none.
    #[inline]
    pub(crate) fn begin(&mut self, request: Slot) -> Option<u32> {
        let slot = if self.is_ordered {
            if self.count == self.slots.len() {
                return None;
            }
            let at = self.oldest + self.count;
            (if at < self.slots.len() { at } else { at - self.slots.len() }) as u32
        } else {
            let slot = self.free.pop()?;
            self.is_used[slot as usize] = true;
            slot
        };
        self.slots[slot as usize] = request;
        self.count += 1;
        Some(slot)
    }

    /// Frees the slot that an answer names, or the oldest one. `None`: no such request is in flight.
    #[inline]
    pub(crate) fn end(&mut self, sync: Option<u64>) -> Option<Slot> {
        let slot = match sync {
            None if self.count == 0 => return None,
            None => {
                let slot = self.oldest;
                self.oldest = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
                slot
            }
            Some(sync) => {
                let slot = usize::try_from(sync).ok()?;
                let is_used = self.is_used.get_mut(slot)?;
                if !std::mem::take(is_used) {
                    return None;
                }
                self.free.push(slot as u32);
                slot
            }
        };
        self.count -= 1;
        Some(self.slots[slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: u32) -> Slot {
        Slot { begun_ns: 0, key, share: 0 }
    }

    #[test]
    fn in_order_the_oldest_request_is_answered() {
        let mut window = Window::new(2, true);
        for round in 0..5 {
            assert!(window.begin(request(round)).is_some() && window.begin(request(round + 100)).is_some());
            assert_eq!((window.begin(request(9)), window.in_flight()), (None, 2));
            assert_eq!(window.end(None), Some(request(round)));
            assert_eq!(window.end(None), Some(request(round + 100)));
            assert_eq!(window.end(None), None);
        }
    }

    #[test]
    fn an_answer_names_a_request_that_is_in_flight_and_only_once() {
        let mut window = Window::new(2, false);
        let (first, second) = (window.begin(request(1)), window.begin(request(2)));
        assert_eq!(window.begin(request(3)), None);
        assert_eq!(window.end(second.map(u64::from)), Some(request(2)));
        assert_eq!(window.end(second.map(u64::from)), None);
        assert_eq!((window.end(Some(7)), window.end(Some(u64::MAX))), (None, None));
        assert_eq!(window.end(first.map(u64::from)), Some(request(1)));
        assert_eq!(window.in_flight(), 0);
    }
}
