//! Which rows are asked for.

use crate::random::Random;

/// A sequence of keys.
#[derive(Clone, Debug)]
pub enum Keys {
    /// `next`, `next + 1`, ... and again from 0 at `count`.
    Sequential {
        /// The key that comes next.
        next: u32,
        /// Keys are below it.
        count: u32,
    },
    /// Any of `0..count`, each as often as the others.
    Uniform {
        /// Where chance comes from.
        random: Random,
        /// Keys are below it.
        count: u32,
    },
    /// Few keys often, most keys seldom.
    Zipf(Box<Zipf>),
    /// Keys from a number up, each once until all have come, in no order.
    Fresh {
        /// The number of the draw that comes next.
        next: u32,
        /// Keys are not below it.
        from: u32,
    },
    /// Those of another sequence, each put elsewhere among all numbers: no two meet, and nothing is left of their order.
    Scattered(Box<Keys>),
    /// Always the same.
    One(u32),
}

/// A number that is different for every `number`: rows that come in the order of `number` come in no order by this one.
pub(crate) fn scatter(number: u32) -> u32 {
    // Each step can be undone, so no two numbers meet (the finaliser of MurmurHash3).
    let mut mixed = number;
    mixed ^= mixed >> 16;
    mixed = mixed.wrapping_mul(0x85eb_ca6b);
    mixed ^= mixed >> 13;
    mixed = mixed.wrapping_mul(0xc2b2_ae35);
    mixed ^ mixed >> 16
}

impl Keys {
    /// Any of `0..count`.
    pub fn uniform(count: u32, seed: u64) -> Self {
        Keys::Uniform { random: Random::new(seed), count }
    }

    /// `0..count`, the k-th most frequent of them with a frequency of 1 / k^exponent. Which keys are frequent does not follow from their order.
    pub fn zipf(count: u32, exponent: f64, seed: u64) -> Self {
        Keys::Zipf(Box::new(Zipf::new(count, exponent, seed)))
    }

    /// `next`, `next + 1`, ... each put elsewhere: distinct keys in no order.
    pub fn scattered(next: u32) -> Self {
        Keys::Scattered(Box::new(Keys::Sequential { next, count: u32::MAX }))
    }

    /// The next key.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        match self {
            Keys::Sequential { next, count } => {
                let key = *next;
                *next = if key + 1 >= *count { 0 } else { key + 1 };
                key
            }
            Keys::Uniform { random, count } => random.below(u64::from(*count)) as u32,
            Keys::Zipf(zipf) => zipf.draw(),
            Keys::Fresh { next, from } => loop {
                let key = scatter(*next);
                *next = next.wrapping_add(1);
                if key >= *from {
                    break key;
                }
            },
            Keys::Scattered(keys) => scatter(keys.draw()),
            Keys::One(key) => *key,
        }
    }
}

/// Draws ranks by rejection-inversion (Hörmann, Derflinger 1996): no table, a few operations for each draw at any number of keys.
#[derive(Clone, Debug)]
pub struct Zipf {
    random: Random,
    count: u32,
    exponent: f64,
    /// Integrals of the density below the first and up to the last rank; a draw is a place between them.
    first: f64,
    last: f64,
    /// Ranks that are surely accepted.
    squeeze: f64,
}

/// (exp(x) - 1) / x, also where x is nearly 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// log(1 + x) / x, also where x is nearly 0.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

impl Zipf {
    fn new(count: u32, exponent: f64, seed: u64) -> Self {
        assert!(count > 0 && exponent > 0.0, "there must be a key, and an exponent above 0");
        let mut zipf = Zipf { random: Random::new(seed), count, exponent, first: 0.0, last: 0.0, squeeze: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(f64::from(count) + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, rank: f64) -> f64 {
        (-self.exponent * rank.ln()).exp()
    }

    fn integral(&self, rank: f64) -> f64 {
        let log = rank.ln();
        expm1_over((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, place: f64) -> f64 {
        let scaled = (place * (1.0 - self.exponent)).max(-1.0);
        (ln1p_over(scaled) * place).exp()
    }

    fn draw(&mut self) -> u32 {
        loop {
            let chance = self.random.below(1 << 32) as f64 / (1u64 << 32) as f64;
            let place = self.last + chance * (self.first - self.last);
            let exact = self.inverse(place);
            let rank = (exact + 0.5).floor().clamp(1.0, f64::from(self.count));
            if rank - exact <= self.squeeze || place >= self.integral(rank + 0.5) - self.density(rank) {
                return scatter(rank as u32 - 1) % self.count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn drawn(mut keys: Keys, count: usize) -> Vec<u32> {
        (0..count).map(|_| keys.draw()).collect()
    }

    #[test]
    fn sequential_keys_begin_again_at_their_end() {
        assert_eq!(drawn(Keys::Sequential { next: 1, count: 3 }, 5), [1, 2, 0, 1, 2]);
    }

    #[test]
    fn uniform_keys_are_all_met_about_equally_often() {
        let mut counts = [0u32; 10];
        drawn(Keys::uniform(10, 1), 100_000).into_iter().for_each(|key| counts[key as usize] += 1);
        assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
    }

    #[test]
    fn fresh_keys_do_not_repeat_and_have_no_order() {
        let keys = drawn(Keys::Fresh { next: 0, from: 1 << 31 }, 100_000);
        assert!(keys.iter().all(|key| *key >= 1 << 31));
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        let rising = keys.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((45_000..55_000).contains(&rising), "{rising}");
    }

    #[test]
    fn scattered_keys_are_found_again() {
        let written: BTreeSet<u32> = drawn(Keys::scattered(0), 1000).into_iter().collect();
        assert_eq!(written.len(), 1000);
        assert!(drawn(Keys::Scattered(Box::new(Keys::uniform(1000, 1))), 1000).iter().all(|key| written.contains(key)));
        assert!(drawn(Keys::scattered(1000), 1000).iter().all(|key| !written.contains(key)));
    }

    #[test]
    fn a_zipf_distribution_has_the_frequencies_of_its_formula() {
        for exponent in [0.8, 1.0, 1.2] {
            let (count, draws) = (1000u32, 400_000);
            let mut found: BTreeMap<u32, u32> = BTreeMap::new();
            for key in drawn(Keys::zipf(count, exponent, 7), draws) {
                assert!(key < count);
                *found.entry(key).or_default() += 1;
            }
            let whole: f64 = (1..=count).map(|rank| f64::from(rank).powf(-exponent)).sum();
            // Ranks that share a key with others, by the rest of a division, count together.
            let mut wanted: BTreeMap<u32, f64> = BTreeMap::new();
            for rank in 1..=count {
                *wanted.entry(scatter(rank - 1) % count).or_default() +=
                    f64::from(rank).powf(-exponent) / whole * draws as f64;
            }
            for (key, wanted) in wanted.into_iter().filter(|(_, wanted)| *wanted > 2000.0) {
                let got = f64::from(found.get(&key).copied().unwrap_or(0));
                assert!((got / wanted - 1.0).abs() < 0.1, "exponent {exponent}, key {key}: {got} for {wanted}");
            }
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_keys() {
        assert_eq!(drawn(Keys::zipf(1000, 0.99, 3), 100), drawn(Keys::zipf(1000, 0.99, 3), 100));
        assert_ne!(drawn(Keys::uniform(1000, 3), 100), drawn(Keys::uniform(1000, 4), 100));
    }
}
