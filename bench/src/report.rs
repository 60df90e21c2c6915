//! Figures for people and for scripts.

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Microseconds up to a minute.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order")
}

/// Percentiles in microseconds.
pub(crate) struct Latencies {
    median: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Latencies {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        Latencies {
            median: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({"median": self.median, "p99": self.p99, "p999": self.p999, "max": self.max})
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "median {} us, 99 % {} us, 99.9 % {} us, worst {} us", self.median, self.p99, self.p999, self.max)
    }
}

/// The middle of some figures.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// Runs work while a bar follows what `done` counts.
pub(crate) fn with_progress<T>(total: usize, is_quiet: bool, done: &AtomicUsize, work: impl FnOnce() -> T) -> T {
    if is_quiet {
        return work();
    }
    let bar = ProgressBar::new(total as u64);
    let style = "{elapsed_precise} {bar:40} {human_pos}/{human_len} {per_sec} eta {eta}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                bar.set_position(done.load(Ordering::Relaxed) as u64);
                std::thread::sleep(Duration::from_millis(100));
            }
            bar.finish_and_clear();
        });
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }
}
