//! Random numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random bytes.
pub trait Randomness: Send + Sync {
    /// Fills `out`.
    fn fill(&self, out: &mut [u8]);

    /// A random number.
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// The operating system's source, fit for salts and keys.
#[derive(Default)]
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    #[expect(unsafe_code, reason = "getrandom(2)")]
    fn fill(&self, out: &mut [u8]) {
        let mut at = 0;
        while at < out.len() {
            let rest = &mut out[at..];
            // SAFETY: the pointer and length describe `rest`.
            let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
            if got > 0 {
                at += got as usize;
            }
        }
    }
}

/// The same numbers for the same seed (splitmix64).
pub struct SeededRandomness {
    state: AtomicU64,
}

impl SeededRandomness {
    /// A source that is wholly determined by `seed`.
    pub fn new(seed: u64) -> Self {
        SeededRandomness { state: AtomicU64::new(seed) }
    }
}

impl Randomness for SeededRandomness {
    fn next_u64(&self) -> u64 {
        let state = self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn fill(&self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
