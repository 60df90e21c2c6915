//! Figures for people and for scripts.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

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

/// A figure with as many digits as mean something.
pub(crate) fn rounded(figure: f64) -> String {
    let digits = match figure.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{figure:.digits$}")
}

/// Runs work while a bar on standard error follows what `done` counts. Without a terminal, or if `is_quiet`, there is no bar.
pub(crate) fn with_progress<T>(what: &str, total: u64, is_quiet: bool, work: impl FnOnce(&AtomicU64) -> T) -> T {
    let done = AtomicU64::new(0);
    if is_quiet {
        return work(&done);
    }
    let bar = ProgressBar::new(total).with_message(what.to_string());
    let style = "{msg:24} {elapsed_precise} {bar:32} {human_pos}/{human_len} {per_sec} eta {eta}";
    bar.set_style(ProgressStyle::with_template(style).expect("the template is well formed"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                bar.set_position(done.load(Ordering::Relaxed));
                std::thread::park_timeout(Duration::from_millis(100));
            }
            bar.finish_and_clear();
        });
        // If the work panics the scope waits for the watcher, so the flag is set on the way out in any case.
        let guard = SetOnDrop(&is_over);
        let result = work(&done);
        drop(guard);
        watcher.thread().unpark();
        result
    })
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn small_figures_keep_their_digits() {
        assert_eq!([1234.5, 12.34, 1.234].map(rounded), ["1234", "12.3", "1.23"]);
    }
}
