//! Could the transactions of a history have run one after the other?
//!
//! Each transaction is a node. An edge says that one must come before another, and why (Adya, 1999):
//!
//! ```text
//! ww  one wrote a version, the other wrote the next version of that key
//! wr  one wrote a version, the other read it
//! rw  one read a version, the other wrote the next version of that key
//! ```
//!
//! A cycle has no order. Which edges it has names the phenomenon: only ww is G0, ww and wr G1c, one rw G-single (read skew), one key read and written
//! by all of the cycle a lost update, several rw G2-item (write skew), or G2 where a range was read. Some phenomena need no cycle: a read of a write that was
//! rolled back (G1a), of a write that its own transaction wrote over (G1b), or of something that contradicts what the same transaction did
//! before.
//!
//! The edges come from what reads returned, never from the database (Kingsbury and Alvaro, 2020). A list that is only appended to shows the
//! order of all writes to it: the longest read is that order, and every other read must be a beginning of it. A register shows only what a
//! transaction wrote over when it read the register first; the place of a blind write to a register stays unknown, so a workload that wants to know
//! everything reads before it writes. Both need values that are written once.
//!
//! With real time (strict serializability) a transaction that was answered before another was asked also comes before it. A chain of extra nodes,
//! one for each answer, says this in three edges a transaction instead of one for each pair.
//!
//! The cost: sorting and one pass of Tarjan's components for each class of edges, so it grows a little faster than the number of steps. The
//! search for the smallest cycle inside a component stops after a fixed number of edges and then reports the smallest cycle that it has met.
//!
//! Refused: to guess version orders of registers from real time, which reports a database as broken that is only serializable.
//!
//! Reading order: `transaction`, `versions` (edges, and what is wrong without a cycle), `graph`, `anomaly` (names and words).

mod anomaly;
mod graph;
#[cfg(test)]
mod store;
#[cfg(test)]
mod tests;
mod transaction;
mod versions;

pub use anomaly::{Anomaly, Phenomenon};
pub use transaction::{Fate, Step, Transaction};

use anomaly::describe;
use graph::{Graph, Kinds};

/// What the order of transactions has to respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Some order explains all reads.
    Serializable,
    /// Some order does that in which nobody comes after a transaction that was asked later than its own answer.
    Strict,
}

/// Looks for what no serial order of the transactions explains, worst first. Nothing is found if there is such an order as far as the reads
/// tell. Cycles of the worst class only: those of weaker ones are often the same cycle, seen through more edges.
pub fn anomalies(transactions: &[Transaction], promise: Promise) -> Vec<Anomaly> {
    let versions::Findings { mut edges, mut anomalies, is_committed } = versions::compare(transactions);
    let mut nodes = transactions.len();
    if promise == Promise::Strict {
        nodes += versions::add_real_time(transactions, &is_committed, &mut edges);
    }
    let graph = Graph::new(nodes, transactions.len(), edges);
    // Without real time the last two find what the second and third have found.
    for kinds in &[Kinds::WW, Kinds::WW_WR, Kinds::DATA, Kinds::WW_WR_TIME, Kinds::ALL] {
        let cycles = graph.smallest_cycles(*kinds);
        if !cycles.is_empty() {
            anomalies.extend(cycles.iter().map(|cycle| describe(cycle, transactions)));
            break;
        }
    }
    anomalies.sort_by_key(|anomaly| anomaly.phenomenon);
    anomalies
}
