//! Which runs of a range are merged, and when: lazy levelling.
//!
//! The oldest run of a range holds most of its rows; the runs above it are younger and smaller. Younger runs are merged when there are too many
//! of about one size ("tiers"), which costs each row one write for each tier. When the younger runs of a tree exceed a share of its oldest
//! runs, whole ranges are merged, those with most to free first, until the tree is below the share again. Ranges are merged at different
//! times, so the work is as even as the writes; a range waits until it has about twice the share. Levelling everywhere would write each row
//! many times; tiers everywhere would keep many versions of each row. docs/05-storage.md has the measurements.

/// Share of the oldest runs that younger runs, and files that are needed only in part, may take in a tree most of whose entries overwrite others.
const WASTE_SHARE: f64 = 0.25;
/// The same if most entries are new: those need their space anyway, and fewer runs make reads faster.
const GROWTH_SHARE: f64 = 0.12;
/// The same while merges lag behind: larger merges write fewer bytes for a row.
const GROWTH_SHARE_MAX: f64 = 0.4;
/// If more than this part of a tree's entries overwrite others, `WASTE_SHARE` counts; otherwise `GROWTH_SHARE`.
const OVERWRITTEN: f64 = 0.5;
/// A range is merged only if that frees at least this part of its tree's share.
const RANGE_PART_MIN: f64 = 0.5;
/// Younger runs as large as the oldest run of their range are merged with it, whatever the rest of the tree is like.
const RANGE_SHARE_MAX: f64 = 1.0;
/// A range whose rows are to this part gone is merged, whatever its size.
pub(crate) const DELETED_SHARE: f64 = 0.3;
/// Fewer entries that say so are not worth it.
pub(crate) const DELETED_MIN: u64 = 1_000;
/// Where entries write over others, runs of so many tiers come together before those of one are merged.
const TIERS_WAITING: usize = 4;
/// More runs than this are merged, whatever their sizes: each is looked at by reads.
const RUNS_MAX: usize = 24;

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
    /// How late it is: above 1 it is overdue.
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
    /// What its files take beyond its oldest runs, for a byte of these.
    pub(crate) excess: f64,
}

impl Habits {
    /// The part of the oldest runs that all the rest may reach.
    fn share(&self) -> f64 {
        match self.overwritten >= OVERWRITTEN {
            true => WASTE_SHARE,
            false if self.is_lagging => GROWTH_SHARE_MAX,
            false => GROWTH_SHARE,
        }
    }
}

/// What to merge in a range whose slices are so large, newest first. `is_asked`: somebody wants all of them to become one run, so no few of them do
/// on their own.
pub(crate) fn choose(slices: &[SliceSize], habits: &Habits, is_asked: bool) -> Option<Choice> {
    let choice = choose_by(slices, habits, habits.share());
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
    let oldest_bytes = oldest.bytes.max(1) as f64;
    let own = younger.iter().map(|slice| slice.bytes).sum::<u64>() as f64 / oldest_bytes;
    let held_bytes =
        younger.iter().map(|slice| slice.held_bytes).sum::<u64>() + oldest.held_bytes.saturating_sub(oldest.bytes);
    let held = held_bytes as f64 / oldest_bytes;
    let fullness = habits.excess / share;
    if fullness >= 1.0 && held >= share * RANGE_PART_MIN || own >= RANGE_SHARE_MAX {
        // The one that frees most for what it writes comes first.
        return all(fullness.min(2.0) + held.min(1.0), fullness.max(own / RANGE_SHARE_MAX));
    }
    // Entries that write over others wait for the merge of the whole range, which writes fewer bytes, as long as there are not many runs.
    let waits = habits.overwritten >= OVERWRITTEN;
    if !waits || slices.len() > TIERS_WAITING * habits.runs_per_tier {
        // A tier: neighbours of which none is much larger than the newest of them.
        let mut first = 0;
        while first < younger.len() {
            let bound = younger[first].bytes.max(1) as f64 * habits.tier_ratio;
            let count = younger[first..].iter().take_while(|slice| (slice.bytes as f64) < bound).count();
            let tier_bytes: u64 = younger[first..first + count].iter().map(|slice| slice.bytes).sum();
            let goes_down_soon = waits && tier_bytes as f64 >= share * oldest_bytes;
            if count > habits.runs_per_tier && !goes_down_soon {
                let urgency = count as f64 / (habits.runs_per_tier + 1) as f64;
                return Some(Choice { first, count, urgency, lag: urgency });
            }
            first += count.max(1);
        }
    }
    if slices.len() > RUNS_MAX {
        let urgency = slices.len() as f64 / RUNS_MAX as f64;
        return all(urgency, urgency);
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
        Habits { runs_per_tier: 4, tier_ratio: 3.5, overwritten: 0.0, is_lagging: false, excess: 0.0 };
    const OVERWRITES: Habits = Habits { overwritten: 1.0, ..INSERTS };

    #[test]
    fn one_run_is_left_alone_unless_it_is_mostly_deletes() {
        assert_eq!(choose(&[], &INSERTS, false), None);
        assert_eq!(choose(&sizes(&[1 << 20]), &INSERTS, false), None);
        let deleted = SliceSize { bytes: 1 << 20, held_bytes: 1 << 20, entries: 10_000, deletes: 4_000 };
        assert!(choose(&[deleted], &INSERTS, false).is_some_and(|choice| choice.count == 1));
    }

    #[test]
    fn what_has_most_to_free_goes_down_when_a_tree_has_come_to_its_share() {
        let at = |excess, habits: Habits| Habits { excess, ..habits };
        let (little, much) = (sizes(&[100, 100, 1000]), sizes(&[200, 200, 1000]));
        let is_all = |choice: Choice| choice.first == 0 && choice.count == 3 && choice.urgency > 1.0;
        assert_eq!(choose(&much, &at(0.24, OVERWRITES), false), None);
        let (first, second) =
            (choose(&much, &at(0.31, OVERWRITES), false), choose(&little, &at(0.31, OVERWRITES), false));
        assert!(first.is_some_and(is_all) && second.is_some_and(is_all));
        assert!(first.map(|choice| choice.urgency) > second.map(|choice| choice.urgency));
        assert_eq!(choose(&sizes(&[100, 1000]), &at(0.31, OVERWRITES), false), None, "others have more");
        // New rows go down sooner, for the good of reads, and later while merges are behind.
        assert!(choose(&much, &at(0.13, INSERTS), false).is_some_and(is_all));
        assert_eq!(choose(&much, &at(0.13, Habits { is_lagging: true, ..INSERTS }), false), None);
    }

    #[test]
    fn a_range_that_is_mostly_younger_is_merged_on_its_own() {
        assert!(choose(&sizes(&[500, 600, 1000]), &OVERWRITES, false).is_some_and(|choice| choice.count == 3));
    }

    #[test]
    fn a_range_that_keeps_a_file_from_removal_is_merged_for_that() {
        let mut slices = sizes(&[10, 1000]);
        let habits = Habits { excess: 0.4, ..OVERWRITES };
        assert_eq!(choose(&slices, &habits, false), None, "it frees next to nothing");
        slices[0].held_bytes = 500;
        assert!(choose(&slices, &habits, false).is_some_and(|choice| choice.count == 2 && choice.urgency > 1.0));
    }

    #[test]
    fn a_range_whose_only_run_lies_in_a_file_that_is_mostly_unwanted_is_written_anew() {
        let mut slices = sizes(&[1000]);
        let habits = Habits { excess: 0.4, ..OVERWRITES };
        assert_eq!(choose(&slices, &habits, false), None);
        slices[0].held_bytes = 1400;
        assert!(choose(&slices, &habits, false).is_some_and(|choice| choice.count == 1 && choice.urgency > 1.0));
        assert_eq!(choose(&slices, &OVERWRITES, false), None, "its tree has room");
    }

    #[test]
    fn what_is_asked_for_is_all_of_a_range() {
        let slices = sizes(&[10, 11, 10, 12, 10, 100_000]);
        let tier = choose(&slices, &INSERTS, false).expect("a full tier");
        let all = choose(&slices, &INSERTS, true).expect("what is asked for");
        assert_eq!((tier.count, all.first, all.count), (5, 0, 6));
        assert!(all.urgency >= tier.urgency);
        assert!(choose(&sizes(&[10, 100_000]), &OVERWRITES, true).is_some_and(|choice| choice.count == 2));
        assert_eq!(choose(&sizes(&[10]), &OVERWRITES, true), None);
    }

    #[test]
    fn runs_that_soon_go_down_are_not_merged_with_one_another_before() {
        let few = sizes(&[30, 30, 30, 30, 30, 1000]);
        assert!(choose(&few, &INSERTS, false).is_some_and(|choice| choice.count == 5));
        assert_eq!(choose(&few, &OVERWRITES, false), None);
        let many = |bytes: u64| sizes(&[&[bytes; 16][..], &[1000]].concat());
        assert!(choose(&many(10), &OVERWRITES, false).is_some_and(|choice| choice.count == 16));
        assert_eq!(choose(&many(30), &OVERWRITES, false), None);
    }

    #[test]
    fn a_full_tier_is_merged_within_itself() {
        let choice = choose(&sizes(&[10, 11, 10, 12, 10, 100_000]), &INSERTS, false);
        assert!(choice.is_some_and(|choice| choice.first == 0 && choice.count == 5));
    }

    /// What a tree of rows costs that are replaced at random, a fiftieth of them in each dump, when all but the oldest runs may reach `share` of
    /// these: rows written for a row, rows kept for a row, runs of a range.
    fn costs(share: f64) -> (f64, f64, f64) {
        const ROWS: u64 = 20_000;
        const RANGES: u64 = 16;
        const DUMPS: u64 = 300;
        // Those before show how the tree comes to its shape.
        const LOOKED_AT: u64 = 200;
        let mut random = 1u64;
        let all_of = |range: u64| (range * ROWS / RANGES..(range + 1) * ROWS / RANGES).collect::<BTreeSet<u64>>();
        let mut ranges: Vec<Vec<BTreeSet<u64>>> = (0..RANGES).map(|range| vec![all_of(range)]).collect();
        let (mut written, mut kept, mut count) = (0, 0, 0);
        for dump in 0..DUMPS {
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % ROWS
            };
            ranges.iter_mut().for_each(|runs| runs.insert(0, BTreeSet::new()));
            for _ in 0..ROWS / 50 {
                let row = next();
                written += usize::from(ranges[(row * RANGES / ROWS) as usize][0].insert(row));
            }
            let size = |run: &BTreeSet<u64>| {
                let bytes = run.len() as u64;
                SliceSize { bytes, held_bytes: bytes, entries: bytes, deletes: 0 }
            };
            loop {
                let all: usize = ranges.iter().flatten().map(BTreeSet::len).sum();
                let excess = (all as f64 - ROWS as f64) / ROWS as f64;
                let habits = Habits { excess, ..OVERWRITES };
                let sizes = ranges.iter().map(|runs| runs.iter().map(size).collect::<Vec<_>>());
                let choices =
                    sizes.enumerate().filter_map(|(at, sizes)| Some((at, choose_by(&sizes, &habits, share)?)));
                let best = choices.max_by(|(_, a), (_, b)| a.urgency.total_cmp(&b.urgency));
                let Some((at, choice)) = best else { break };
                let gone = choice.first..choice.first + choice.count;
                let merged: BTreeSet<u64> = ranges[at].drain(gone).flatten().collect();
                written += merged.len();
                ranges[at].insert(choice.first, merged);
            }
            if dump >= DUMPS - LOOKED_AT {
                kept += ranges.iter().flatten().map(BTreeSet::len).sum::<usize>();
                count += ranges.iter().map(Vec::len).sum::<usize>();
            }
        }
        let looked_at = LOOKED_AT as f64;
        let runs = count as f64 / looked_at / RANGES as f64;
        (written as f64 / (DUMPS * ROWS / 50) as f64, kept as f64 / looked_at / ROWS as f64, runs)
    }

    /// The table of docs/05-storage.md: run with `--nocapture`.
    #[test]
    fn what_is_written_is_traded_for_what_is_kept() {
        let mut before = (f64::MAX, 0.0, 0.0);
        for share in [0.1, 0.2, WASTE_SHARE, GROWTH_SHARE_MAX, 0.6, 1.0] {
            let (written, kept, runs) = costs(share);
            println!("share {share}: written {written:.1}, kept {kept:.2}, runs {runs:.1}");
            assert!(kept > before.1 && kept < 1.0 + share);
            before = (written, kept, runs);
        }
    }
}
