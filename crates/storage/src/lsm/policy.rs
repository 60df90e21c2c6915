//! Which runs of a range are merged, and when: lazy levelling.
//!
//! The oldest run of a range holds most of its rows; what lies above is younger and smaller. Above, runs are merged when there are too many of
//! about one size ("tiers"), which costs each row one write for each tier. With the oldest run all of them are merged when they have
//! come to a share of it, which bounds what is kept of rows that are not wanted any more. Levelling everywhere would write each row
//! many times over; tiers everywhere would keep every row many times over. docs/05-storage.md has the measurements.

/// The part of the oldest run that all younger ones together may reach. Space amplification stays below one and this.
const YOUNGER_SHARE: f64 = 0.35;
/// While writers wait for merges, so much more is let come together first: fewer bytes are written for a row.
const YOUNGER_SHARE_MAX: f64 = 0.8;
/// A range whose rows are to this part gone is merged, whatever its size.
pub(crate) const DELETED_SHARE: f64 = 0.3;
/// Fewer entries that say so are not worth it.
pub(crate) const DELETED_MIN: u64 = 1_000;
/// More runs than this are merged, whatever their sizes: each is looked at by reads.
const RUNS_MAX: usize = 16;

/// A slice of a run as far as it lies in a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceSize {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Entries that say that a key is gone.
    pub(crate) deletes: u64,
}

/// What to merge: slices `first..first + count`, newest first, and how much it is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The largest goes first. Above 1 it is overdue.
    pub(crate) urgency: f64,
}

/// What to merge in a range whose slices are so large, newest first.
pub(crate) fn choose(slices: &[SliceSize], runs_per_tier: usize, tier_ratio: f64, is_lagging: bool) -> Option<Choice> {
    let (oldest, younger) = slices.split_last()?;
    let all = |urgency| Some(Choice { first: 0, count: slices.len(), urgency });
    let deletes: u64 = slices.iter().map(|slice| slice.deletes).sum();
    let entries: u64 = slices.iter().map(|slice| slice.entries).sum();
    if deletes >= DELETED_MIN && deletes as f64 > entries as f64 * DELETED_SHARE {
        return all(2.0 + deletes as f64 / entries as f64);
    }
    if younger.is_empty() {
        return None;
    }
    let younger_bytes: u64 = younger.iter().map(|slice| slice.bytes).sum();
    let share = if is_lagging { YOUNGER_SHARE_MAX } else { YOUNGER_SHARE };
    let fullness = younger_bytes as f64 / (oldest.bytes.max(1) as f64 * share);
    if fullness >= 1.0 {
        return all(fullness);
    }
    if slices.len() > RUNS_MAX {
        return all(slices.len() as f64 / RUNS_MAX as f64);
    }
    // A tier: neighbours of which none is much larger than the newest of them.
    let mut first = 0;
    while first < younger.len() {
        let bound = younger[first].bytes.max(1) as f64 * tier_ratio;
        let count = younger[first..].iter().take_while(|slice| (slice.bytes as f64) < bound).count();
        if count > runs_per_tier {
            return Some(Choice { first, count, urgency: count as f64 / (runs_per_tier + 1) as f64 });
        }
        first += count.max(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: &[u64]) -> Vec<SliceSize> {
        bytes.iter().map(|&bytes| SliceSize { bytes, entries: bytes / 100, deletes: 0 }).collect()
    }

    #[test]
    fn one_run_is_left_alone_unless_it_is_mostly_deletes() {
        assert_eq!(choose(&[], 4, 3.5, false), None);
        assert_eq!(choose(&sizes(&[1 << 20]), 4, 3.5, false), None);
        let deleted = SliceSize { bytes: 1 << 20, entries: 10_000, deletes: 4_000 };
        assert!(choose(&[deleted], 4, 3.5, false).is_some_and(|choice| choice.count == 1));
    }

    #[test]
    fn younger_runs_go_down_when_they_have_come_to_a_share_of_the_oldest() {
        assert_eq!(choose(&sizes(&[10, 1000]), 4, 3.5, false), None);
        let choice = choose(&sizes(&[200, 200, 1000]), 4, 3.5, false);
        assert!(choice.is_some_and(|choice| choice.first == 0 && choice.count == 3 && choice.urgency > 1.0));
        assert_eq!(choose(&sizes(&[200, 200, 1000]), 4, 3.5, true), None);
    }

    #[test]
    fn a_full_tier_is_merged_within_itself() {
        let choice = choose(&sizes(&[10, 11, 10, 12, 10, 100_000]), 4, 3.5, false);
        assert!(choice.is_some_and(|choice| choice.first == 0 && choice.count == 5));
    }
}
