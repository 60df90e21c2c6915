//! How much of the disk each slice of a tree takes, and how much waits for its merge.
//!
//! A run of a dump has slices in many ranges, and its file stays until all of them are merged. What was merged already is there for
//! nothing meanwhile: it is put down to the slices that are left, so that a look at a range tells what its merge brings nearer to an end.

use super::policy::SliceSize;
use super::run::Run;
use super::tree::LsmTree;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sizes of the slices of each range, newest first.
pub(crate) fn slice_sizes(tree: &LsmTree) -> Vec<Vec<SliceSize>> {
    let ranges = tree.ranges();
    let size = |run: &Arc<Run>, at: usize| {
        let (bytes, entries) = run.estimate(&ranges.list[at].begin, ranges.end(at));
        let deletes = run.deletes() as f64 * entries as f64 / run.entries().max(1) as f64;
        SliceSize { bytes, held_bytes: bytes, entries, deletes: deletes as u64 }
    };
    let slice = |run: &Arc<Run>, at: usize| (run.id(), run.data_bytes(), size(run, at));
    let mut slices: Vec<Vec<_>> =
        (0..ranges.list.len()).map(|at| ranges.list[at].slices.iter().map(|run| slice(run, at)).collect()).collect();
    hold(&mut slices);
    slices.into_iter().map(|range| range.into_iter().map(|(_, _, size)| size).collect()).collect()
}

/// Puts down what no range wants any more of a run to its slices that are left, in equal parts. A slice comes with the number and the bytes of
/// its run.
pub(super) fn hold(ranges: &mut [Vec<(u64, u64, SliceSize)>]) {
    // Bytes and number of the slices of each run.
    let mut left: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (run_id, _, size) in ranges.iter().flatten() {
        let (bytes, count) = left.entry(*run_id).or_default();
        *bytes += size.bytes;
        *count += 1;
    }
    for (run_id, run_bytes, size) in ranges.iter_mut().flatten() {
        if let Some((bytes, count)) = left.get(run_id) {
            size.held_bytes = size.bytes + run_bytes.saturating_sub(*bytes) / count;
        }
    }
}

/// Bytes of all files of runs, and of what the oldest runs of the ranges have: the rest is younger, or not wanted any more.
pub(crate) fn file_bytes(tree: &LsmTree) -> (u64, u64) {
    let ranges = tree.ranges();
    let oldest = ranges.list.iter().enumerate().filter_map(|(at, range)| {
        let run = range.slices.last()?;
        Some(run.estimate(&range.begin, ranges.end(at)).0)
    });
    (tree.runs().iter().map(|run| run.data_bytes()).sum(), oldest.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_run_answers_for_all_of_it() {
        let slice = |run_id, run_bytes, bytes| {
            (run_id, run_bytes, SliceSize { bytes, held_bytes: bytes, entries: bytes / 10, deletes: 0 })
        };
        // Of run 2 two slices of four are left, of run 3 all, and run 1 is the range's own.
        let mut ranges = vec![
            vec![slice(3, 400, 100), slice(2, 400, 100), slice(1, 1000, 1000)],
            vec![slice(3, 400, 300), slice(2, 400, 60), slice(4, 500, 500)],
        ];
        hold(&mut ranges);
        let held: Vec<Vec<u64>> =
            ranges.iter().map(|range| range.iter().map(|(_, _, size)| size.held_bytes).collect()).collect();
        assert_eq!(held, [[100, 220, 1000], [300, 180, 500]]);
    }
}
