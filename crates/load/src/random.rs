//! Numbers that look random: the same seed gives the same ones everywhere.

/// xorshift64* (Marsaglia, Vigna): a few instructions for each number, which matters inside the load loop.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        // The state must not be zero, and small seeds must not begin alike.
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    /// 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number of `0..count`; `count` is below 2^32. The high bits are the good ones, and a product is cheaper than a remainder.
    pub fn below(&mut self, count: u64) -> u64 {
        ((self.next() >> 32) * count) >> 32
    }

    /// A number of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_them() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(3, 7)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&7)));
    }

    #[test]
    fn neighbouring_seeds_differ() {
        // The lowest bit of a state is always set, so 0 and 1 are told apart by the others.
        let first: Vec<u64> = (0..10).map(|seed| Random::new(seed).next()).collect();
        assert!(first.iter().enumerate().all(|(at, number)| !first[..at].contains(number)), "{first:?}");
    }
}
