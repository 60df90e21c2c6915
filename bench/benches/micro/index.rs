//! The ordered index.

use crate::machine::Machine;
use crate::report::Report;
use crate::scattered;
use index::{Entry, PREFETCH_MAX, Tree};
use std::cmp::Ordering;
use std::hint::black_box;

/// Entries of a leaf, and children of an inner node that most nodes have.
const LEAF_ENTRIES: f64 = 62.0;
const INNER_CHILDREN: f64 = 40.0;
const CACHED_BYTES: f64 = (1 << 20) as f64;
const LOOKUPS: u64 = 200_000;

/// Levels whose nodes no cache holds: each costs a look-up two misses that wait for each other, hints and then items or children.
fn misses(entries: u64) -> f64 {
    let mut nodes = entries as f64 / LEAF_ENTRIES;
    let mut levels = 0.0;
    while nodes * 1024.0 > CACHED_BYTES {
        levels += 1.0;
        nodes /= INNER_CHILDREN;
    }
    2.0 * levels
}

fn key(at: u64) -> Entry {
    Entry { hint: at, item: at }
}

pub(crate) fn run(machine: &Machine, report: &Report) {
    if !report.wants("index") {
        return;
    }
    for (name, entries) in [("1 k", 1_000u64), ("1 M", 1_000_000), ("10 M", 10_000_000)] {
        let mut tree = Tree::from_sorted((0..entries).map(key));
        let far = misses(entries);
        // Without misses there are still the levels in near caches.
        let descent_ns = (far * machine.miss_ns).max(2.0 * machine.near_miss_ns);
        let bound = format!("{far:.0} misses, one after the other");
        report.case(&format!("index get, {name}"), LOOKUPS, descent_ns, &bound, || {
            for at in scattered(entries).take(LOOKUPS as usize) {
                black_box(tree.get(at, |_| Ordering::Equal));
            }
        });
        let overlapped_ns = (descent_ns / PREFETCH_MAX as f64).max(machine.near_miss_ns);
        let bound = format!("the same, {PREFETCH_MAX} at once");
        report.case(&format!("index get of {PREFETCH_MAX}, {name}"), LOOKUPS, overlapped_ns, &bound, || {
            let mut keys = scattered(entries);
            for _ in 0..LOOKUPS / PREFETCH_MAX as u64 {
                let group: [u64; PREFETCH_MAX] = std::array::from_fn(|_| keys.next().unwrap_or(0));
                tree.prefetch(&group, |entry, _| {
                    black_box(entry);
                });
            }
        });
        let scan_ns = 16.0 * machine.copy_byte_ns / 2.0;
        report.case(&format!("index scan, {name}"), entries, scan_ns, "16 bytes read", || {
            let mut cursor = tree.first();
            while let Some(entry) = cursor.get() {
                black_box(entry);
                cursor.next();
            }
        });
        let changes = LOOKUPS.min(entries);
        let bound = format!("{far:.0} misses, and 16 bytes");
        report.case(&format!("index insert and remove, {name}"), 2 * changes, descent_ns, &bound, || {
            for is_insert in [false, true] {
                for at in scattered(entries).take(changes as usize) {
                    let slot = tree.locate(at, |_| Ordering::Equal);
                    match (slot.found, is_insert) {
                        (Some(_), false) => tree.remove_at(slot),
                        (None, true) => tree.insert_at(slot, key(at)),
                        _ => {}
                    }
                }
            }
        });
        let append_ns = 16.0 * machine.copy_byte_ns;
        report.case(&format!("index fill in order, {name}"), entries, append_ns, "16 bytes written", || {
            black_box(Tree::from_sorted((0..entries).map(key)).len());
        });
    }
}
