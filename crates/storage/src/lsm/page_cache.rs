//! Whether the page cache of the machine keeps what is read through it.
//!
//! Data that fits into it is best read through it: the second read of a block costs no wait. Where there is far more data than memory, a block that
//! came in by one read is gone before the next, and all that the page cache brings is the work of making room. So some of the blocks that were put
//! into it are remembered, and when most of them are gone when they are wanted again, blocks are read past it for a while. What still is
//! in it is found there all the same.
//!
//! Nothing else is asked for advice: neither the size of the memory nor the limit of a control group says what others will take of it.

const SAMPLES: usize = 4096;
/// Number of answers that make a verdict.
const VERDICT: u32 = 16;
/// The page cache is tried again when it has been passed by so many times as long as it was trusted, within bounds.
const PASSED_BY_TIMES: u64 = 16;
const PASSED_BY_MIN: u64 = 1 << 16;
const PASSED_BY_MAX: u64 = 1 << 20;

/// See the head of this file.
pub(crate) struct PageCache {
    /// One block of so many is remembered, at most 16: of more blocks the few that are kept in mind tell as much.
    sampled_one_of: u64,
    /// Blocks that were in the page cache when last seen, by a hash of theirs; 0: none.
    samples: Box<[u64]>,
    kept: u32,
    lost: u32,
    /// Looks since it was trusted, or looks until it is.
    looks: u64,
    is_trusted: bool,
}

impl PageCache {
    pub(crate) fn new(sampled_one_of: u64) -> Self {
        PageCache { sampled_one_of, samples: vec![0; SAMPLES].into(), kept: 0, lost: 0, looks: 0, is_trusted: true }
    }

    /// True if blocks should be read through it.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// A block was looked for in it. While it is trusted, it has the block from now on.
    pub(crate) fn note(&mut self, run_id: u64, block: usize, was_there: bool) {
        if !self.is_trusted {
            self.looks -= 1;
            self.is_trusted = self.looks == 0;
            return;
        }
        self.looks += 1;
        let hash = (run_id << 32 ^ block as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        if !(hash >> 60).is_multiple_of(self.sampled_one_of) {
            return;
        }
        let sample = &mut self.samples[(hash >> 40) as usize % SAMPLES];
        if *sample != hash {
            *sample = hash;
            return;
        }
        if was_there {
            self.kept += 1;
        } else {
            self.lost += 1;
        }
        if self.lost >= VERDICT && self.lost > self.kept {
            self.is_trusted = false;
            self.looks = (self.looks * PASSED_BY_TIMES).clamp(PASSED_BY_MIN, PASSED_BY_MAX);
            self.samples.fill(0);
        }
        if self.kept + self.lost >= 2 * VERDICT || !self.is_trusted {
            (self.kept, self.lost) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of blocks in turn by a machine that keeps the last `room` of them; the share of reads that go past the page cache.
    fn passed_by(blocks: usize, room: usize, reads: usize) -> f64 {
        let mut cache = PageCache::new(16);
        let mut kept = std::collections::VecDeque::new();
        let mut passed_by = 0;
        let mut random = 1u64;
        for _ in 0..reads {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = (random >> 33) as usize % blocks;
            let was_there = kept.contains(&block);
            cache.note(1, block, was_there);
            if was_there {
                continue;
            }
            if cache.is_trusted() {
                kept.push_back(block);
                if kept.len() > room {
                    kept.pop_front();
                }
            } else {
                passed_by += 1;
            }
        }
        passed_by as f64 / reads as f64
    }

    #[test]
    fn what_fits_is_read_through_it() {
        assert_eq!(passed_by(1000, 1000, 200_000), 0.0);
    }

    #[test]
    fn what_does_not_fit_is_read_past_it() {
        let share = passed_by(5000, 250, 400_000);
        assert!(share > 0.7, "{share}");
    }
}
