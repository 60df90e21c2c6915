//! How much work merges have left, and how fast writers may be because of it.
//!
//! *Waste* is what merging everything would free: younger runs whose entries overwrite older ones, and files that are needed only in part.
//! Merges take half of the time while there is little waste and more when there is more; writers are slowed down smoothly before waste reaches its limit:
//!
//! ```text
//!   waste / rows   0              CALM             HASTY            PACED                            FULL
//!   merges         half of the time | most of the time | all of the time
//!   writers        as they like                                     | 2 x what merges digest ... 0.5 x
//! ```
//!
//! So somewhere in the last stretch writers and merges are equally fast. Rows that are new need their space anyway: a program that only inserts
//! is not slowed down. A tree learns from its merges how many of its entries overwrite others.

use super::compactions::{RANGE_BYTES_MAX, RANGE_BYTES_MIN};
use super::engine::LsmEngine;
use super::sizes::file_bytes;
use super::tree::LsmTree;
use std::cell::Cell;

/// Below this part of the rows merges take their time.
const CALM: f64 = 0.26;
/// From here on merges take all the time they can get.
const HASTY: f64 = 0.30;
/// From this part on, memtables included, writers may be slowed down.
const PACED: f64 = 0.37;
/// Here they are at half of what merges digest. What is being written, and removed, comes on top of it: all together stays below a half.
const FULL: f64 = 0.44;
/// What of older dumps is still remembered after each new one.
const KEPT_OF_DUMPS: f64 = 0.8;
/// The same of merges, of which many belong together: those of small runs come before those that bring them down.
const KEPT_OF_MERGES: f64 = 0.97;
/// What a tree's part of entries that write over others keeps of itself with each merge.
const KEPT_OF_OVERWRITTEN: f64 = 0.5;
/// Number of ranges that an index gets before ranges become larger: the merge of one holds old and new files for a while.
const RANGES_WANTED: u64 = 64;

/// How a merge treats others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Haste {
    /// It works half of the time while others are busy, and has a processor only as far as they leave it.
    Leisurely,
    /// Most of the time.
    Brisk,
    /// Writers wait for it: it hardly rests.
    Urgent,
}

/// See the head of this file. Sums fade with each event.
#[derive(Default)]
pub(crate) struct Debt {
    /// Bytes that a full merge would free, over those of rows.
    waste: Cell<f64>,
    /// What a byte of keys and values in memtables will add to that.
    waste_per_byte: Cell<f64>,
    /// Bytes of keys and values that were dumped.
    entered: Cell<f64>,
    /// Bytes of the runs made of it.
    dumped: Cell<f64>,
    /// Bytes of younger runs that were merged into the oldest ones by merges in haste.
    merged: Cell<f64>,
    /// Seconds that all merges in haste took.
    merging_s: Cell<f64>,
}

impl Debt {
    /// A dump has made runs of what was written.
    pub(super) fn note_dump(&self, entered_bytes: u64, run_bytes: u64) {
        self.entered.set(KEPT_OF_DUMPS * self.entered.get() + entered_bytes as f64);
        self.dumped.set(KEPT_OF_DUMPS * self.dumped.get() + run_bytes as f64);
    }

    /// A merge that did not take its time has brought so many bytes of younger runs down.
    pub(super) fn note_merge(&self, younger_bytes: u64, took_ns: u64) {
        let before_s = self.merging_s.get();
        // One that was held up by something else, like a machine that was asleep, must not be all that is known.
        let took_s = if before_s > 0.0 { (took_ns as f64 / 1e9).min(before_s) } else { took_ns as f64 / 1e9 };
        self.merged.set(KEPT_OF_MERGES * self.merged.get() + younger_bytes as f64);
        self.merging_s.set(KEPT_OF_MERGES * before_s + took_s);
    }

    /// So many bytes of files are waste beside those of rows, and so will be the part `overwritten` of what comes.
    fn set(&self, waste_bytes: f64, rows_bytes: u64, overwritten: f64) {
        let rows = rows_bytes.max(1) as f64;
        let packed = if self.entered.get() > 0.0 { self.dumped.get() / self.entered.get() } else { 0.0 };
        self.waste.set(waste_bytes / rows);
        self.waste_per_byte.set(overwritten * packed / rows);
    }

    /// Bytes of keys and values a second that merges digest, one at a time; 0 if that is not known.
    fn digested(&self) -> f64 {
        let (dumped, merging_s) = (self.dumped.get(), self.merging_s.get());
        if dumped <= 0.0 || merging_s <= 0.0 {
            return 0.0;
        }
        self.merged.get() / merging_s * self.entered.get() / dumped
    }

    /// How fast a merge that begins now should be, `is_late`: whatever there is to free.
    pub(super) fn haste(&self, is_late: bool) -> Haste {
        match self.waste.get() {
            waste if waste >= HASTY => Haste::Urgent,
            waste if waste >= CALM || is_late => Haste::Brisk,
            _ => Haste::Leisurely,
        }
    }

    /// Bytes a second that writers should keep to for the sake of so many merges at once; none: as many as they like. What memtables have
    /// counts as if it were in runs: it grows evenly, where a dump is one large step.
    pub(super) fn pace_of_merges(&self, merges: usize, memtable_bytes: usize) -> Option<f64> {
        let waste = self.waste.get() + self.waste_per_byte.get() * memtable_bytes as f64;
        let digested = self.digested() * merges as f64;
        if waste < PACED || digested <= 0.0 {
            return None;
        }
        // A third of what merges digest at the worst: they catch up, and nobody stands still.
        let left = ((FULL - waste) / (FULL - PACED)).max(-0.1);
        Some(digested * (0.5 + 1.5 * left))
    }
}

impl LsmEngine {
    /// Looks how much there is to free. To be called when runs have changed.
    pub(super) fn measure_debt(&self) {
        let (mut waste, mut rows, mut overwritten) = (0.0, 0, 0.0);
        for tree in self.spaces().iter().flat_map(|space| space.trees()) {
            let (all, oldest) = file_bytes(&tree);
            rows += oldest;
            // Where merges fail, waiting for them would help nobody.
            if tree.merge_failures.last().is_none() {
                waste += tree.overwritten.get() * all.saturating_sub(oldest) as f64;
                overwritten += tree.overwritten.get() * oldest as f64;
            }
        }
        self.debt.set(waste, rows, overwritten / rows.max(1) as f64);
    }
}

impl LsmTree {
    /// A merge with the oldest run has made so many entries of those of the oldest and of younger runs.
    pub(super) fn note_overwritten(&self, oldest: u64, younger: u64, made: u64) {
        if younger > 0 {
            let gone = (oldest + younger).saturating_sub(made) as f64 / younger as f64;
            let kept = KEPT_OF_OVERWRITTEN * self.overwritten.get();
            self.overwritten.set(kept + (1.0 - KEPT_OF_OVERWRITTEN) * gone.min(1.0));
        }
    }

    /// Bytes that a range should have.
    pub(crate) fn range_bytes(&self) -> u64 {
        match self.options.get().range_size {
            0 => (file_bytes(self).1 / RANGES_WANTED).clamp(RANGE_BYTES_MIN, RANGE_BYTES_MAX),
            asked => asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsm::dumps::RUNS_OF_DUMP;
    use crate::lsm::policy::{Choice, Habits, SliceSize, choose};
    use crate::lsm::sizes::hold;
    use std::collections::{BTreeMap, BTreeSet};

    /// A tree whose rows, a million bytes in ranges of one size, are written over at random.
    struct World {
        /// Number of the run and bytes, newest first.
        ranges: Vec<Vec<(u64, u64)>>,
        /// Bytes of the files.
        files: BTreeMap<u64, u64>,
        debt: Debt,
        written: u64,
        most: f64,
    }

    const ROWS: u64 = 1_000_000;
    const DUMP: u64 = 36_000;
    const HABITS: Habits =
        Habits { runs_per_tier: 4, tier_ratio: 3.5, overwritten: 1.0, is_lagging: false, excess: 0.0 };
    /// Ticks of a second.
    const TICKS: u64 = 100;

    impl World {
        fn new(ranges: u64) -> Self {
            let size = ROWS / ranges;
            World {
                ranges: (0..ranges).map(|id| vec![(id, size)]).collect(),
                files: (0..ranges).map(|id| (id, size)).collect(),
                debt: Debt::default(),
                written: 0,
                most: 0.0,
            }
        }

        fn add_run(&mut self, bytes: u64) -> u64 {
            let id = self.files.last_key_value().map_or(0, |(id, _)| id + 1);
            self.files.insert(id, bytes);
            self.written += bytes;
            id
        }

        fn dump(&mut self) {
            let count = self.ranges.len();
            let ids: Vec<u64> = (0..RUNS_OF_DUMP).map(|_| self.add_run(DUMP / RUNS_OF_DUMP as u64)).collect();
            for (at, range) in self.ranges.iter_mut().enumerate() {
                range.insert(0, (ids[at * RUNS_OF_DUMP / count], DUMP / count as u64));
            }
            self.debt.note_dump(DUMP, DUMP);
            self.look();
        }

        fn merge(&mut self, at: usize, choice: Choice, output: u64) {
            let id = self.add_run(output);
            self.ranges[at].splice(choice.first..choice.first + choice.count, [(id, output)]);
            let named: BTreeSet<u64> = self.ranges.iter().flatten().map(|(id, _)| *id).collect();
            self.files.retain(|id, _| named.contains(id));
            self.look();
        }

        fn look(&mut self) {
            let all: u64 = self.files.values().sum();
            self.debt.set((all - ROWS) as f64, ROWS, 1.0);
        }

        fn choose(&self) -> Option<(usize, Choice)> {
            let size = |bytes| SliceSize { bytes, held_bytes: bytes, entries: bytes / 100, deletes: 0 };
            let of_range = |range: &Vec<(u64, u64)>| {
                range.iter().map(|&(id, bytes)| (id, self.files[&id], size(bytes))).collect::<Vec<_>>()
            };
            let mut ranges: Vec<_> = self.ranges.iter().map(of_range).collect();
            hold(&mut ranges);
            let sizes = ranges.iter().map(|range| range.iter().map(|(_, _, size)| *size).collect::<Vec<_>>());
            let all: u64 = self.files.values().sum();
            let habits = Habits { excess: (all - ROWS) as f64 / ROWS as f64, ..HABITS };
            let choices = sizes.enumerate().filter_map(|(at, sizes)| Some((at, choose(&sizes, &habits, false)?)));
            choices.max_by(|(_, a), (_, b)| a.urgency.total_cmp(&b.urgency))
        }

        /// Lets writers write `asked` bytes a second, if they may, and one merge at a time write `merged` bytes a second, for so long. What
        /// was written.
        fn run(&mut self, seconds: u64, asked: u64, merged: u64) -> u64 {
            let (mut entered, mut undumped) = (0, 0);
            // Which, what it will write and has written, ticks that it took.
            let mut merge: Option<(usize, Choice, u64, u64, u64)> = None;
            for _ in 0..seconds * TICKS {
                let pace = self.debt.pace_of_merges(1, undumped as usize).map_or(asked, |pace| asked.min(pace as u64));
                entered += pace / TICKS;
                undumped += pace / TICKS;
                if undumped >= DUMP {
                    undumped -= DUMP;
                    self.dump();
                    // The merge that is under way goes on with the runs that it began with.
                    merge.iter_mut().for_each(|(_, choice, ..)| choice.first += 1);
                }
                if merge.is_none()
                    && let Some((at, choice)) = self.choose()
                {
                    let slices = &self.ranges[at][choice.first..choice.first + choice.count];
                    let is_bottom = choice.first + choice.count == self.ranges[at].len();
                    let sum = slices.iter().map(|(_, bytes)| bytes).sum();
                    let output = if is_bottom { ROWS / self.ranges.len() as u64 } else { sum };
                    merge = Some((at, choice, output, 0, 0));
                }
                if let Some((at, choice, output, done, ticks)) = &mut merge {
                    (*done, *ticks) = (*done + merged / TICKS, *ticks + 1);
                    let all = self.files.values().sum::<u64>() + *done.min(output);
                    self.most = self.most.max(all as f64 / ROWS as f64);
                    if done >= output {
                        let slices = &self.ranges[*at][choice.first..choice.first + choice.count];
                        let is_bottom = choice.first + choice.count == self.ranges[*at].len();
                        let younger: u64 = slices[..choice.count - 1].iter().map(|(_, bytes)| bytes).sum();
                        self.debt.note_merge(if is_bottom { younger } else { 0 }, *ticks * 1_000_000_000 / TICKS);
                        let (at, choice, output) = (*at, *choice, *output);
                        self.merge(at, choice, output);
                        merge = None;
                    }
                }
            }
            entered
        }
    }

    #[test]
    fn overwrites_that_go_on_keep_to_their_space() {
        for (asked, merged) in
            [(20_000, 400_000), (90_000, 400_000), (150_000, 400_000), (190_000, 400_000), (400_000, 400_000)]
        {
            let mut world = World::new(64);
            world.run(20, asked, merged);
            world.written = 0;
            let entered = world.run(100, asked, merged);
            let (rate, amplification) = (entered / 100, world.written as f64 / entered as f64);
            println!("asked {asked}: {rate} a second, {:.2} of the space, written {amplification:.1}", world.most);
            assert!(world.most < 1.5, "{}", world.most);
            assert!(amplification < 3.2, "{amplification}");
            // What merges can digest is digested.
            assert!(rate as f64 > 0.95 * asked.min(merged / 2) as f64, "{rate}");
        }
    }

    #[test]
    fn merges_hurry_when_there_is_much_to_free_or_they_are_late() {
        let haste = |waste: f64, is_late| {
            let debt = Debt::default();
            debt.set(waste * 1000.0, 1000, 1.0);
            debt.haste(is_late)
        };
        assert_eq!([haste(0.2, false), haste(0.2, true)], [Haste::Leisurely, Haste::Brisk]);
        assert_eq!([haste(0.27, false), haste(0.31, false)], [Haste::Brisk, Haste::Urgent]);
    }

    #[test]
    fn writers_are_slowed_down_step_by_step_and_never_stopped() {
        let debt = Debt::default();
        debt.note_dump(200, 100);
        debt.set(42.0, 100, 1.0);
        assert_eq!(debt.pace_of_merges(1, 0), None, "nobody knows how fast merges are");
        debt.note_merge(1_000, 1_000_000_000);
        let pace = |waste| {
            debt.set(1000.0 * waste, 1000, 1.0);
            debt.pace_of_merges(1, 0)
        };
        assert_eq!((pace(0.0), pace(0.369)), (None, None));
        assert!(debt.pace_of_merges(1, 10).is_some(), "what is in memory comes to it");
        let paces: Vec<f64> = [0.37, 0.38, 0.40, 0.42, 0.44, 0.5, 5.0].into_iter().filter_map(pace).collect();
        assert!(paces.is_sorted_by(|a, b| a >= b) && paces.len() == 7, "{paces:?}");
        assert!(paces[0] < 4_001.0 && paces[0] > 3_999.0 && paces[6] > 0.0, "{paces:?}");
    }
}
