//! A set of closed intervals of byte strings: which keys of an index a transaction has seen, or seen to be absent.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Where an interval ends: its last key, or none if it has no end.
type End = Option<Vec<u8>>;

/// Disjoint intervals, in bounded memory: beyond the bounds neighbours are joined, so that the set has more keys than were put in, never fewer.
#[derive(Default)]
pub(crate) struct IntervalSet {
    /// First key of each interval, and its end.
    intervals: BTreeMap<Vec<u8>, End>,
    /// Of all keys above.
    bytes: usize,
}

/// True if the end lies before a key.
fn is_before(end: &End, key: &[u8]) -> bool {
    end.as_deref().is_some_and(|end| end < key)
}

/// True if one end lies behind another.
fn is_later(end: &End, other: &End) -> bool {
    other.as_deref().is_some_and(|other| end.as_deref().is_none_or(|end| end > other))
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

fn end_bytes(end: &End) -> usize {
    end.as_ref().map_or(0, Vec::len)
}

impl IntervalSet {
    /// Most intervals.
    pub(crate) const INTERVALS_MAX: usize = 10_000;
    /// Most bytes of keys, unless a single interval has more.
    pub(crate) const BYTES_MAX: usize = 4 << 20;

    /// Adds all keys from `low` to `high`, both included; to the end if there is no `high`. What overlaps becomes one.
    pub(crate) fn insert(&mut self, mut low: Vec<u8>, mut high: Option<Vec<u8>>) {
        if is_before(&high, &low) {
            return;
        }
        // Who adds key after key behind all others makes the last interval longer, where there are many.
        if self.intervals.len() >= Self::INTERVALS_MAX / 2
            && let Some(mut last) = self.intervals.last_entry()
            && is_before(last.get(), &low)
        {
            self.bytes = self.bytes + end_bytes(&high) - end_bytes(last.get());
            *last.get_mut() = high;
            self.keep_bounds();
            return;
        }
        if let Some((start, end)) = self.intervals.range::<[u8], _>(up_to(&low)).next_back()
            && !is_before(end, &low)
        {
            if !is_later(&high, end) {
                return;
            }
            low.clone_from(start);
        }
        // What begins inside is taken in.
        while let Some((start, _)) = self.intervals.range::<[u8], _>((Bound::Included(&*low), Bound::Unbounded)).next()
            && !is_before(&high, start)
        {
            let start = start.clone();
            let Some(end) = self.intervals.remove(&start) else { break };
            self.bytes -= start.len() + end_bytes(&end);
            if is_later(&end, &high) {
                high = end;
            }
        }
        self.bytes += low.len() + end_bytes(&high);
        self.intervals.insert(low, high);
        self.keep_bounds();
    }

    /// Joins every interval with the next one until there are few enough.
    fn keep_bounds(&mut self) {
        while self.intervals.len() > 1 && (self.intervals.len() > Self::INTERVALS_MAX || self.bytes > Self::BYTES_MAX) {
            let mut all = std::mem::take(&mut self.intervals).into_iter();
            while let Some((low, end)) = all.next() {
                let end = all.next().map_or(end, |(_, end)| end);
                self.intervals.insert(low, end);
            }
            self.bytes = self.intervals.iter().map(|(low, end)| low.len() + end_bytes(end)).sum();
        }
    }

    /// True if a key is in the set.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.intervals.range::<[u8], _>(up_to(key)).next_back().is_some_and(|(_, end)| !is_before(end, key))
    }

    /// Number of intervals.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.intervals.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]
    use super::*;
    use runtime::{Randomness, SeededRandomness};

    /// Keys of up to three small bytes, so that some are prefixes of others.
    fn key(random: &SeededRandomness) -> Vec<u8> {
        (0..random.next_u64() % 4).map(|_| (random.next_u64() % 5) as u8).collect()
    }

    fn all_keys() -> Vec<Vec<u8>> {
        let mut keys = vec![Vec::new()];
        for length in 0..3 {
            let longer = keys.iter().filter(|key| key.len() == length).cloned().collect::<Vec<_>>();
            keys.extend(longer.iter().flat_map(|key| (0..6).map(|byte| [&key[..], &[byte]].concat())));
        }
        keys
    }

    fn check(set: &IntervalSet, model: &[(Vec<u8>, End)]) {
        for key in all_keys() {
            let expected = model.iter().any(|(low, high)| *low <= key && !is_before(high, &key));
            assert_eq!(set.contains(&key), expected, "{key:?} in {model:?}");
        }
        let intervals: Vec<_> = set.intervals.iter().collect();
        for pair in intervals.windows(2) {
            assert!(is_before(pair[0].1, pair[1].0), "{pair:?} overlap");
        }
        let bytes: usize = set.intervals.iter().map(|(low, end)| low.len() + end_bytes(end)).sum();
        assert_eq!(set.bytes, bytes);
    }

    #[test]
    fn a_set_has_the_keys_of_its_intervals_and_no_others() {
        for seed in 0..400 {
            let random = SeededRandomness::new(seed);
            let (mut set, mut model) = (IntervalSet::default(), Vec::new());
            for _ in 0..1 + seed % 12 {
                let low = key(&random);
                let high = match random.next_u64() % 8 {
                    0 => None,
                    1 | 2 => Some(low.clone()),
                    3 => Some([&low[..], &[0xff]].concat()),
                    _ => Some(key(&random)),
                };
                set.insert(low.clone(), high.clone());
                model.push((low, high));
                check(&set, &model);
            }
        }
    }

    #[test]
    fn a_large_set_becomes_coarser_and_loses_nothing() {
        let random = SeededRandomness::new(1);
        let (mut set, mut keys) = (IntervalSet::default(), Vec::new());
        for _ in 0..3 * IntervalSet::INTERVALS_MAX {
            let key = random.next_u64().to_be_bytes().to_vec();
            set.insert(key.clone(), Some(key.clone()));
            keys.push(key);
            assert!(set.len() <= IntervalSet::INTERVALS_MAX);
        }
        assert!(set.len() > IntervalSet::INTERVALS_MAX / 4, "it stays as fine as it may");
        assert!(keys.iter().all(|key| set.contains(key)));
        let mut set = IntervalSet::default();
        for byte in 0..100 {
            let key = vec![byte; IntervalSet::BYTES_MAX / 8];
            set.insert(key.clone(), Some(key));
            assert!(set.bytes <= IntervalSet::BYTES_MAX);
        }
        assert!((0..100).all(|byte| set.contains(&vec![byte; IntervalSet::BYTES_MAX / 8])));
    }
}
