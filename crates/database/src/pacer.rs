//! Limits the rate of writers: bytes a second, granted in steps too small to notice.

use std::cell::Cell;

/// Allowance that is not used within this time is lost, so that nobody saves up for a burst.
const SAVED_NS: f64 = 5_000_000.0;

/// Counts what was written against what was allowed.
#[derive(Default)]
pub(crate) struct Pacer {
    /// When it was asked last.
    at_ns: Cell<u64>,
    /// Bytes written until then.
    written: Cell<u64>,
    /// Bytes that may be written before others have to be waited for; negative: written in advance.
    allowed: Cell<f64>,
}

impl Pacer {
    /// True if more was written than `bytes_per_s` allow. `None`: everything is allowed.
    pub(crate) fn is_ahead(&self, now_ns: u64, bytes_per_s: Option<f64>, written: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns.replace(now_ns)) as f64;
        let more = written.saturating_sub(self.written.replace(written)) as f64;
        let Some(rate) = bytes_per_s else {
            self.allowed.set(0.0);
            return false;
        };
        let saved_max = rate * SAVED_NS / 1e9;
        let allowed = (self.allowed.get() + elapsed_ns * rate / 1e9).min(saved_max) - more;
        self.allowed.set(allowed);
        allowed < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_keep_to_the_rate_and_save_little() {
        let pacer = Pacer::default();
        assert!(!pacer.is_ahead(0, None, 1 << 30));
        let rate = Some(1_000_000.0);
        // A kilobyte is a millisecond's.
        assert!(pacer.is_ahead(1_000_000_000, rate, (1 << 30) + 10_000));
        assert!(pacer.is_ahead(1_002_000_000, rate, (1 << 30) + 10_000));
        assert!(!pacer.is_ahead(1_006_000_000, rate, (1 << 30) + 10_000));
        // Not a second's worth of bytes after a second.
        assert!(pacer.is_ahead(2_006_000_000, rate, (1 << 30) + 30_000));
    }
}
