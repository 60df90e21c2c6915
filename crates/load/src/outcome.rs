//! What came of a run.

use hdrhistogram::Histogram;
use serde_json::json;
use std::fmt;

/// For microseconds up to a minute, three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order")
}

/// Percentiles in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// Half of all are faster.
    pub median: u64,
    /// Nine of ten are faster.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
    /// 9,999 of 10,000.
    pub p9999: u64,
    /// The slowest of all.
    pub max: u64,
}

impl Latencies {
    /// Those of a histogram.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Latencies {
            median: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            p9999: histogram.value_at_quantile(0.9999),
            max: histogram.max(),
        }
    }

    /// For scripts.
    pub fn json(&self) -> serde_json::Value {
        let Latencies { median, p90, p99, p999, p9999, max } = self;
        json!({"median": median, "p90": p90, "p99": p99, "p999": p999, "p9999": p9999, "max": max})
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Latencies { median, p90, p99, p999, p9999, max } = self;
        write!(
            f,
            "median {median} us, 90 % {p90} us, 99 % {p99} us, 99.9 % {p999} us, 99.99 % {p9999} us, worst {max} us"
        )
    }
}

/// One second of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Second {
    /// Which one, from 0.
    pub at: u32,
    /// Requests sent in it.
    pub requests: u64,
    /// Answers that came in it.
    pub responses: u64,
    /// Requests without an answer at its end; in an open loop with those that are due and not sent.
    pub pending: u64,
    /// Percentiles of the answers that came in it.
    pub latencies: Latencies,
}

impl Second {
    /// For scripts.
    pub fn json(&self) -> serde_json::Value {
        let Second { at, requests, responses, pending, latencies } = self;
        json!({
            "at": at, "requests": requests, "responses": responses, "pending": pending, "latency_us": latencies.json(),
        })
    }
}

impl fmt::Display for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Second { at, requests, responses, pending, latencies: Latencies { median, p99, max, .. } } = self;
        write!(
            f,
            "{at:>4} s  {requests:>9} requests  {responses:>9} responses  {pending:>7} pending  latency {median} us, \
             99 % {p99} us, worst {max} us"
        )
    }
}

/// What came of a flow.
pub struct FlowOutcome {
    /// Answers that came, all of them right.
    pub responses: u64,
    /// From the start to the last answer.
    pub seconds: f64,
    /// Microseconds from sending a request, or in an open loop from when it was due, to its answer.
    pub latencies: Histogram<u64>,
    /// Second by second; the last one is rarely a whole one.
    pub series: Vec<Second>,
    /// Answers that each connection got.
    pub of_connections: Vec<u64>,
    /// Requests whose fate is not known, because the connection broke; 0 unless the flow may break.
    pub lost: u64,
}

impl FlowOutcome {
    /// Answers in a second.
    pub fn per_second(&self) -> f64 {
        self.responses as f64 / self.seconds
    }

    /// For scripts.
    pub fn json(&self) -> serde_json::Value {
        json!({
            "requests": self.responses,
            "seconds": self.seconds,
            "per_second": self.per_second(),
            "latency_us": Latencies::of(&self.latencies).json(),
            "series": self.series.iter().map(Second::json).collect::<Vec<_>>(),
        })
    }
}
