//! Which runs of a range are merged, and when: lazy levelling.
//!
//! The oldest run of a range holds most of its rows; what lies above is younger and smaller. Above, runs are merged when there are too many of
//! about one size ("tiers"), which costs each row one write for each tier. With the oldest run all of them are merged when they have
//! come to a share of it, which bounds what is kept of rows that are not wanted any more. Levelling everywhere would write each row
//! many times over; tiers everywhere would keep every row many times over. docs/05-storage.md has the measurements.

/// The part of the oldest run that all younger ones together may reach, with what their merge would free of the disk beside them.
const YOUNGER_SHARE: f64 = 0.24;
/// While merges are behind and most rows are new ones, which take the disk anyway, so much more is let come together first: fewer bytes
/// are written for a row.
const YOUNGER_SHARE_MAX: f64 = 0.8;
/// Runs of one size that together have come to this part of what younger ones may reach go down soon: they are not merged with one another before.
const TIER_PART_MAX: f64 = 0.5;
/// A tree of whose entries so many are written over keeps rows for nothing, and is merged with regard to that.
const OVERWRITTEN: f64 = 0.5;
/// A range whose rows are to this part gone is merged, whatever its size.
pub(crate) const DELETED_SHARE: f64 = 0.3;
/// Fewer entries that say so are not worth it.
pub(crate) const DELETED_MIN: u64 = 1_000;
/// More runs than this are merged, whatever their sizes: each is looked at by reads.
const RUNS_MAX: usize = 16;

/// What was asked for comes behind what is late.
const ASKED_URGENCY: f64 = 0.9;

/// A slice of a run as far as it lies in a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceSize {
    pub(crate) bytes: u64,
    /// Bytes of the disk that wait for its merge: its own, and a part of what no range wants any more of its run, which is there as long as any range
    /// wants something of it.
    pub(crate) held_bytes: u64,
    pub(crate) entries: u64,
    /// Entries that say that a key is gone.
    pub(crate) deletes: u64,
}

/// What to merge: slices `first..first + count`, newest first, and how much it is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The largest goes first.
    pub(crate) urgency: f64,
    /// How late it is, whatever it frees: above 1 it is overdue.
    pub(crate) lag: f64,
}

/// What is known of a tree beside the sizes of its slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Runs of about one size that are left beside one another.
    pub(crate) runs_per_tier: usize,
    /// How much larger the next size is.
    pub(crate) tier_ratio: f64,
    /// The part of its younger entries that write over older ones or delete them.
    pub(crate) overwritten: f64,
    /// Merges are behind.
    pub(crate) is_lagging: bool,
    /// There is much to free: merges that bring files to their end come first.
    pub(crate) frees_files: bool,
}

impl Habits {
    /// The part of the oldest run that younger ones may reach.
    fn younger_share(&self) -> f64 {
        if self.is_lagging && self.overwritten < OVERWRITTEN { YOUNGER_SHARE_MAX } else { YOUNGER_SHARE }
    }
}

/// What to merge in a range whose slices are so large, newest first. `is_asked`: somebody wants all of them to become one run, so no few of them do
/// on their own.
pub(crate) fn choose(slices: &[SliceSize], habits: &Habits, is_asked: bool) -> Option<Choice> {
    let choice = choose_by(slices, habits, habits.younger_share());
    if !is_asked || slices.len() < 2 {
        return choice;
    }
    let (urgency, lag) = choice.map_or((0.0, 0.0), |choice| (choice.urgency, choice.lag));
    Some(Choice { first: 0, count: slices.len(), urgency: urgency.max(ASKED_URGENCY), lag })
}

fn choose_by(slices: &[SliceSize], habits: &Habits, share: f64) -> Option<Choice> {
    let (oldest, younger) = slices.split_last()?;
    let all = |urgency, lag| Some(Choice { first: 0, count: slices.len(), urgency, lag });
    let deletes: u64 = slices.iter().map(|slice| slice.deletes).sum();
    let entries: u64 = slices.iter().map(|slice| slice.entries).sum();
    if deletes >= DELETED_MIN && deletes as f64 > entries as f64 * DELETED_SHARE {
        let urgency = 2.0 + deletes as f64 / entries as f64;
        return all(urgency, urgency);
    }
    if younger.is_empty() {
        return None;
    }
    let full_bytes = oldest.bytes.max(1) as f64 * share;
    let own_bytes: u64 = younger.iter().map(|slice| slice.bytes).sum();
    let held_bytes: u64 = younger.iter().map(|slice| slice.held_bytes).sum();
    let lag = own_bytes as f64 / full_bytes;
    let fullness = if habits.frees_files { held_bytes as f64 / full_bytes } else { lag };
    if fullness >= 1.0 {
        return all(fullness, lag);
    }
    if slices.len() > RUNS_MAX {
        let urgency = slices.len() as f64 / RUNS_MAX as f64;
        return all(urgency, urgency);
    }
    // A tier: neighbours of which none is much larger than the newest of them.
    let mut first = 0;
    while first < younger.len() {
        let bound = younger[first].bytes.max(1) as f64 * habits.tier_ratio;
        let count = younger[first..].iter().take_while(|slice| (slice.bytes as f64) < bound).count();
        let tier_bytes: u64 = younger[first..first + count].iter().map(|slice| slice.bytes).sum();
        let goes_down_soon = habits.overwritten >= OVERWRITTEN && tier_bytes as f64 >= full_bytes * TIER_PART_MAX;
        if count > habits.runs_per_tier && !goes_down_soon {
            let urgency = count as f64 / (habits.runs_per_tier + 1) as f64;
            return Some(Choice { first, count, urgency, lag: urgency });
        }
        first += count.max(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn sizes(bytes: &[u64]) -> Vec<SliceSize> {
        bytes.iter().map(|&bytes| SliceSize { bytes, held_bytes: bytes, entries: bytes / 100, deletes: 0 }).collect()
    }

    const INSERTS: Habits =
        Habits { runs_per_tier: 4, tier_ratio: 3.5, overwritten: 0.0, is_lagging: false, frees_files: false };
    const OVERWRITES: Habits = Habits { overwritten: 1.0, ..INSERTS };

    #[test]
    fn one_run_is_left_alone_unless_it_is_mostly_deletes() {
        assert_eq!(choose(&[], &INSERTS, false), None);
        assert_eq!(choose(&sizes(&[1 << 20]), &INSERTS, false), None);
        let deleted = SliceSize { bytes: 1 << 20, held_bytes: 1 << 20, entries: 10_000, deletes: 4_000 };
        assert!(choose(&[deleted], &INSERTS, false).is_some_and(|choice| choice.count == 1));
    }

    #[test]
    fn younger_runs_go_down_when_they_have_come_to_a_share_of_the_oldest() {
        let is_all = |choice: Choice| choice.first == 0 && choice.count == 3 && choice.urgency > 1.0;
        assert_eq!(choose(&sizes(&[10, 1000]), &INSERTS, false), None);
        assert!(choose(&sizes(&[200, 200, 1000]), &INSERTS, false).is_some_and(is_all));
        // Rows that are new are let wait for longer while merges are behind, rows that take the place of others are not.
        assert_eq!(choose(&sizes(&[200, 200, 1000]), &Habits { is_lagging: true, ..INSERTS }, false), None);
        assert!(
            choose(&sizes(&[200, 200, 1000]), &Habits { is_lagging: true, ..OVERWRITES }, false).is_some_and(is_all)
        );
    }

    #[test]
    fn a_range_that_keeps_a_file_from_removal_is_merged_for_that() {
        let mut slices = sizes(&[10, 1000]);
        slices[0].held_bytes = 500;
        assert_eq!(choose(&slices, &OVERWRITES, false), None, "there is room");
        let choice = choose(&slices, &Habits { frees_files: true, ..OVERWRITES }, false);
        assert!(choice.is_some_and(|choice| choice.count == 2 && choice.urgency > 1.0 && choice.lag < 0.1));
    }

    #[test]
    fn what_is_asked_for_is_all_of_a_range() {
        let slices = sizes(&[10, 11, 10, 12, 10, 100_000]);
        let tier = choose(&slices, &OVERWRITES, false).expect("a full tier");
        let all = choose(&slices, &OVERWRITES, true).expect("what is asked for");
        assert_eq!((tier.count, all.first, all.count), (5, 0, 6));
        assert!(all.urgency >= tier.urgency);
        assert!(choose(&sizes(&[10, 100_000]), &OVERWRITES, true).is_some_and(|choice| choice.count == 2));
        assert_eq!(choose(&sizes(&[10]), &OVERWRITES, true), None);
    }

    #[test]
    fn runs_that_soon_go_down_are_not_merged_with_one_another_before() {
        let slices = sizes(&[30, 30, 30, 30, 30, 1000]);
        assert!(choose(&slices, &INSERTS, false).is_some_and(|choice| choice.count == 5));
        assert_eq!(choose(&slices, &OVERWRITES, false), None);
    }

    #[test]
    fn a_full_tier_is_merged_within_itself() {
        let choice = choose(&sizes(&[10, 11, 10, 12, 10, 100_000]), &OVERWRITES, false);
        assert!(choice.is_some_and(|choice| choice.first == 0 && choice.count == 5));
    }

    /// What a range of rows costs that are replaced at random, a fiftieth of them in each dump, when younger runs may reach `share` of the oldest:
    /// rows written for a row, rows kept for a row, runs.
    fn costs(share: f64) -> (f64, f64, f64) {
        const ROWS: u64 = 20_000;
        const DUMPS: u64 = 300;
        // Those before show how the range comes to its shape.
        const LOOKED_AT: u64 = 200;
        let mut random = 1u64;
        let mut runs = vec![(0..ROWS).collect::<BTreeSet<u64>>()];
        let (mut written, mut kept, mut count) = (0, 0, 0);
        for dump in 0..DUMPS {
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % ROWS
            };
            runs.insert(0, (0..ROWS / 50).map(|_| next()).collect());
            written += runs[0].len();
            let size = |run: &BTreeSet<u64>| {
                let bytes = run.len() as u64;
                SliceSize { bytes, held_bytes: bytes, entries: bytes, deletes: 0 }
            };
            let habits = Habits { runs_per_tier: 2, ..OVERWRITES };
            while let Some(choice) = choose_by(&runs.iter().map(size).collect::<Vec<_>>(), &habits, share) {
                let merged: BTreeSet<u64> = runs.drain(choice.first..choice.first + choice.count).flatten().collect();
                written += merged.len();
                runs.insert(choice.first, merged);
            }
            if dump >= DUMPS - LOOKED_AT {
                kept += runs.iter().map(BTreeSet::len).sum::<usize>();
                count += runs.len();
            }
        }
        let looked_at = LOOKED_AT as f64;
        (written as f64 / (DUMPS * ROWS / 50) as f64, kept as f64 / looked_at / ROWS as f64, count as f64 / looked_at)
    }

    /// The table of docs/05-storage.md: run with `--nocapture`.
    #[test]
    fn what_is_written_is_traded_for_what_is_kept() {
        let mut before = (f64::MAX, 0.0, 0.0);
        for share in [0.1, 0.2, YOUNGER_SHARE, 0.5, YOUNGER_SHARE_MAX, 1.5] {
            let (written, kept, runs) = costs(share);
            println!("share {share}: written {written:.1}, kept {kept:.2}, runs {runs:.1}");
            assert!(written < before.0 && kept > before.1 && kept < 1.0 + share);
            before = (written, kept, runs);
        }
        let (written, kept, runs) = costs(YOUNGER_SHARE);
        assert!(written < 6.5 && kept < 1.2 && runs < 4.0);
    }
}
