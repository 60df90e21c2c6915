//! Measuring a case and printing it beside its bound.

use std::time::Instant;

const ROUNDS: usize = 5;

/// Prints cases as they are measured.
pub(crate) struct Report {
    filter: Option<String>,
}

impl Report {
    /// Cases whose names hold `filter`, or all.
    pub(crate) fn new(filter: Option<String>) -> Self {
        println!("{:44} {:>10} {:>10} {:>6}  bound", "case", "ns", "bound ns", "times");
        Report { filter }
    }

    /// True if cases of this group may be wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()) || filter.contains(name))
    }

    /// Measures `work`, which does `count` operations at each call, and prints the best of some rounds: what disturbs only adds.
    pub(crate) fn case(&self, name: &str, count: u64, bound_ns: f64, bound: &str, mut work: impl FnMut()) {
        if self.filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
            return;
        }
        let best = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                work();
                begun.elapsed().as_nanos() as f64 / count as f64
            })
            .fold(f64::INFINITY, f64::min);
        self.print(name, best, bound_ns, bound);
    }

    /// Prints what was measured elsewhere.
    pub(crate) fn print(&self, name: &str, ns: f64, bound_ns: f64, bound: &str) {
        println!("{name:44} {ns:10.1} {bound_ns:10.1} {:6.1}  {bound}", ns / bound_ns);
    }
}
