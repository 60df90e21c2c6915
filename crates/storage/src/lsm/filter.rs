//! Filters: which keys a run certainly does not have.
//!
//! A Bloom filter whose bits for one key lie in one cache line, so that a key that is not there costs one miss of the cache however many
//! bits are looked at. For that it takes a tenth more bits than a plain one for the same share of false positives: 10 bits a key give
//! about 1 %.

/// Bytes of a cache line, and of a line of the filter.
pub(crate) const LINE_BYTES: usize = 64;
const LINE_WORDS: usize = LINE_BYTES / 8;
/// Most bits looked at for a key.
const PROBES_MAX: u16 = 16;
/// Keys that are put in between two rests.
const KEYS_BETWEEN_RESTS: usize = 4096;
const SEED: u64 = 0x9fb2_1c65_1e98_df25;
const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;
const STEP: u32 = 0x9e37_79b1;

/// The high and low half of a product, folded.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash that filters are asked by. It is part of the format of runs.
#[inline]
pub fn key_hash(prefix: &[u8]) -> u64 {
    let mut hash = SEED ^ prefix.len() as u64;
    let (words, rest) = prefix.as_chunks::<8>();
    for word in words {
        hash = fold(hash ^ u64::from_le_bytes(*word), MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = fold(hash ^ u64::from_le_bytes(word), MULTIPLIER);
    }
    fold(hash ^ SEED.rotate_left(32), MULTIPLIER.rotate_left(17))
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; LINE_WORDS]);

/// A filter in memory.
pub(crate) struct Filter {
    lines: Box<[Line]>,
    probes: u16,
}

impl Filter {
    /// A filter of these keys that lies to about `false_share` of all other keys. None of 1 and above: such a filter says nothing. Calls `rest` now
    /// and then.
    pub(crate) fn build(hashes: &[u64], false_share: f64, mut rest: impl FnMut()) -> Option<Filter> {
        if false_share >= 1.0 || hashes.is_empty() {
            return None;
        }
        let bits = bits_per_key(false_share);
        let line_count =
            ((hashes.len() as f64 * bits / (LINE_BYTES * 8) as f64).ceil() as usize).clamp(1, u32::MAX as usize);
        let probes = ((bits * std::f64::consts::LN_2).round() as u16).clamp(1, PROBES_MAX);
        let mut filter = Filter { lines: vec![Line::default(); line_count].into_boxed_slice(), probes };
        for part in hashes.chunks(KEYS_BETWEEN_RESTS) {
            for &hash in part {
                let at = filter.line_of(hash);
                let line = &mut filter.lines[at].0;
                for (word, bit) in places(hash, probes) {
                    line[word] |= bit;
                }
            }
            rest();
        }
        Some(filter)
    }

    /// Understands stored bytes; `None` if they are no filter.
    pub(crate) fn decode(bytes: &[u8], probes: u16) -> Option<Filter> {
        let (stored, rest) = bytes.as_chunks::<LINE_BYTES>();
        if !rest.is_empty()
            || stored.is_empty()
            || !(1..=PROBES_MAX).contains(&probes)
            || stored.len() > u32::MAX as usize
        {
            return None;
        }
        let line = |stored: &[u8; LINE_BYTES]| {
            let mut line = Line::default();
            for (word, bytes) in line.0.iter_mut().zip(stored.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            line
        };
        Some(Filter { lines: stored.iter().map(line).collect(), probes })
    }

    /// Appends the bytes that are stored.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.memory());
        for word in self.lines.iter().flat_map(|line| line.0) {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Bits looked at for a key.
    pub(crate) fn probes(&self) -> u16 {
        self.probes
    }

    pub(crate) fn memory(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// False if no key with this hash was put in.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let line = &self.lines[self.line_of(hash)].0;
        places(hash, self.probes).all(|(word, bit)| line[word] & bit != 0)
    }

    /// Brings what `may_contain` looks at nearer to the processor.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        index::prefetch_bytes((&raw const self.lines[self.line_of(hash)]).cast(), LINE_BYTES);
    }

    /// The high half of the hash, scaled to the number of lines.
    #[inline]
    fn line_of(&self, hash: u64) -> usize {
        (((hash >> 32) * self.lines.len() as u64) >> 32) as usize
    }
}

/// Word and bit of each probe: nine high bits of the low half of the hash, multiplied once more for each.
#[inline]
fn places(hash: u64, probes: u16) -> impl Iterator<Item = (usize, u64)> {
    let mut state = hash as u32;
    (0..probes).map(move |_| {
        state = state.wrapping_mul(STEP);
        let place = state >> 23;
        ((place >> 6) as usize, 1 << (place & 63))
    })
}

/// Bits of a plain Bloom filter, and what lines of 512 bits cost more: the fuller ones lie more often.
fn bits_per_key(false_share: f64) -> f64 {
    let plain = -false_share.max(1e-6).log2() * std::f64::consts::LOG2_E;
    plain * (1.0 + plain * plain / 1400.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    /// Hashes of keys as primary indexes have them.
    fn hashes(numbers: std::ops::Range<u64>) -> Vec<u64> {
        numbers.map(|number| key_hash(&[&[0x11], &number.to_be_bytes()[..]].concat())).collect()
    }

    #[test]
    fn the_share_of_false_positives_is_what_was_asked_for() {
        let present = hashes(0..200_000);
        let absent = hashes(1_000_000..2_000_000);
        for asked in [0.5, 0.1, 0.05, 0.01, 0.001] {
            let filter = Filter::build(&present, asked, || {}).unwrap();
            assert!(present.iter().all(|&hash| filter.may_contain(hash)));
            let share = absent.iter().filter(|&&hash| filter.may_contain(hash)).count() as f64 / absent.len() as f64;
            let bits = filter.memory() as f64 * 8.0 / present.len() as f64;
            println!("asked {asked}: {share:.5} with {bits:.1} bits a key and {} probes", filter.probes);
            assert!(share < asked * 1.25 && share > asked * 0.5, "asked {asked}: {share} with {bits} bits a key");
            assert!(asked != 0.01 || (9.5..10.5).contains(&bits), "{bits} bits a key");
        }
    }

    #[test]
    fn stored_filters_are_the_same() {
        let present = hashes(0..1000);
        let filter = Filter::build(&present, 0.01, || {}).unwrap();
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        let again = Filter::decode(&bytes, filter.probes()).unwrap();
        for hash in hashes(0..5000) {
            assert_eq!(filter.may_contain(hash), again.may_contain(hash));
        }
        assert!(Filter::decode(&bytes[1..], 7).is_none() && Filter::decode(&bytes, 0).is_none());
        assert!(Filter::build(&present, 1.0, || {}).is_none());
    }

    /// The hash is part of the format: files written before would lose keys if it changed.
    #[test]
    fn the_hash_stays() {
        let hashes = [key_hash(b""), key_hash(b"lycosa"), key_hash(b"123456789")];
        assert_eq!(hashes, [0x1832_3353_d78d_021b, 0x651e_af6e_acee_aab5, 0xfefb_c452_be06_f483]);
    }
}
