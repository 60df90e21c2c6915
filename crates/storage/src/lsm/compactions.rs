//! Runs become fewer runs.
//!
//! A compaction takes some runs of a range, or of a part of it, and gives back one or more; its record names the range's new runs, after which
//! readers that come see those. A range that has become large is split by it, small neighbours are joined behind it.

use super::debt::Haste;
use super::engine::{LsmEngine, run_options};
use super::error::LsmError;
use super::index_statistics::Volume;
use super::jobs::{self, Compaction, Job, Workplace};
use super::manifest::Edit;
use super::policy::{self, Choice, Habits};
use super::records::range_state;
use super::run::Run;
use super::sizes::{file_bytes, slice_sizes};
use super::tree::{LsmTree, Range};
use runtime::{lower_priority, yield_priority};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a range of a small index, unless told.
pub(super) const RANGE_BYTES_MIN: u64 = 4 << 20;
/// Bytes of a range of a large one.
pub(super) const RANGE_BYTES_MAX: u64 = 128 << 20;
/// Merges that are so late do not take their time.
const OVERDUE: f64 = 1.5;

pub(super) struct RunningCompaction {
    tree: Rc<LsmTree>,
    range_id: u64,
    /// The part of the range that is merged.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    runs: Vec<Arc<Run>>,
    /// The oldest run of the range is among them.
    is_bottom: bool,
    haste: Haste,
    pub(super) job: Job<Result<Vec<Run>, LsmError>>,
    began_ns: u64,
}

impl LsmEngine {
    pub(super) fn begin_compactions(&self) {
        let max = self.config.borrow().compactions_max;
        while self.compactions.borrow().len() < max {
            let now = self.environment.clock.monotonic_ns();
            if !self.has_news.get() && now < self.merge_at_ns.get() {
                return;
            }
            let Some((tree, wanted)) = self.choose(now) else {
                if self.compactions.borrow().is_empty() {
                    self.is_lagging.set(false);
                }
                self.has_news.set(false);
                return;
            };
            self.is_lagging.set(self.is_lagging.get() || wanted.choice.lag > OVERDUE && wanted.is_whole);
            self.begin_compaction(&tree, wanted);
        }
    }

    /// The most wanted compaction of all trees. What has failed before waits until it is due; `merge_at_ns` says when the next of it is.
    fn choose(&self, now_ns: u64) -> Option<(Rc<LsmTree>, Wanted)> {
        let mut best: Option<(Rc<LsmTree>, Wanted)> = None;
        self.merge_at_ns.set(u64::MAX);
        let is_due = |due_ns: u64| {
            if due_ns > now_ns {
                self.merge_at_ns.set(self.merge_at_ns.get().min(due_ns));
            }
            due_ns <= now_ns
        };
        for space in self.spaces() {
            for tree in space.trees() {
                if tree.is_compacting.get() || tree.is_dropped.get() || !tree.is_recorded.get() {
                    continue;
                }
                if !is_due(tree.merge_failures.tree_due_ns()) {
                    continue;
                }
                let habits = self.habits(&tree);
                for (at, mut sizes) in slice_sizes(&tree).into_iter().enumerate() {
                    // What lies above a run that cannot be read is merged as if there were nothing below.
                    let may_be_read = |run: &&Arc<Run>| is_due(tree.merge_failures.run_due_ns(run.id()));
                    let readable = tree.ranges().list[at].slices.iter().take_while(may_be_read).count();
                    let is_readable = readable == sizes.len();
                    sizes.truncate(readable);
                    let stretch = if is_readable { deleted_stretch(&tree, at) } else { None };
                    let choice = match &stretch {
                        Some(stretch) => Some(stretch.choice),
                        None => policy::choose(&sizes, &habits, is_asked(&tree, at, readable)),
                    };
                    let Some(choice) = choice else { continue };
                    if best.as_ref().is_none_or(|(_, other)| choice.urgency > other.choice.urgency) {
                        let wanted = stretch.unwrap_or_else(|| Wanted::whole(&tree, at, choice));
                        best = Some((Rc::clone(&tree), wanted));
                    }
                }
            }
        }
        best
    }

    fn habits(&self, tree: &LsmTree) -> Habits {
        let options = tree.options.get();
        let (all, oldest) = file_bytes(tree);
        Habits {
            runs_per_tier: options.run_count_per_level,
            tier_ratio: options.run_size_ratio,
            overwritten: tree.overwritten.get(),
            is_lagging: self.is_lagging.get(),
            excess: all.saturating_sub(oldest) as f64 / oldest.max(1) as f64,
        }
    }

    /// A merge did not come to its end. Dumps and other merges go on; other blocks of a run that cannot be read are read as before. It is
    /// told once, and tried again after longer and longer times.
    fn fail_compaction(&self, tree: &LsmTree, error: LsmError) {
        self.totals.borrow_mut().jobs_failed += 1;
        let unreadable = error.place().and_then(|(file, _)| tree.runs().into_iter().find(|run| run.path() == file));
        let (space_id, index_id) = (tree.space_id, tree.index_id);
        let text =
            format!("a compaction of index {index_id} of space {space_id} failed: {error}; it is tried again later");
        if tree.merge_failures.note(unreadable.map(|run| run.id()), self.now_ns(), error) {
            tracing::error!("{text}");
        } else {
            tracing::debug!("{text}");
        }
    }

    fn begin_compaction(&self, tree: &Rc<LsmTree>, wanted: Wanted) {
        let Wanted { range_at, choice, from, to, .. } = wanted;
        assert!(!tree.is_compacting.get() && tree.is_to_record(), "one merge of a tree at a time, while it is in use");
        let ranges = tree.ranges();
        let range = &ranges.list[range_at];
        debug_assert!(range.begin <= from && to.as_ref().is_none_or(|to| from < *to), "a part of the range is merged");
        let runs: Vec<_> = range.slices[choice.first..choice.first + choice.count].to_vec();
        let is_bottom = choice.first + choice.count == range.slices.len();
        let haste = self.debt.haste(choice.lag > OVERDUE);
        let bytes = |run: &Arc<Run>| run.estimate(&from, to.as_deref()).0 as f64;
        let (oldest, younger) = runs
            .split_last()
            .map_or((0.0, 0.0), |(oldest, younger)| (bytes(oldest), younger.iter().map(bytes).sum::<f64>()));
        let made_bytes = (oldest + younger * (1.0 - tree.overwritten.get())) as u64;
        let job = Compaction {
            runs: runs.clone(),
            from: from.clone(),
            to: to.clone(),
            is_bottom,
            split_bytes: if is_bottom { split_bytes(made_bytes, tree.range_bytes()) } else { None },
            filter_parts: (!tree.is_primary).then_some(tree.own_parts),
            options: run_options(tree),
            upserter: Arc::clone(&tree.upserter.borrow()),
            haste,
        };
        let place = self.place.clone();
        let set_priority = if haste == Haste::Leisurely { yield_priority } else { lower_priority };
        let job = self.run_job("compaction", set_priority, move || jobs::compact(&place, &job));
        tree.is_compacting.set(true);
        let began_ns = self.environment.clock.monotonic_ns();
        let tree = Rc::clone(tree);
        let running = RunningCompaction { tree, range_id: range.id, from, to, runs, is_bottom, haste, job, began_ns };
        self.compactions.borrow_mut().push(running);
    }

    pub(super) fn poll_compactions(&self) {
        let mut at = 0;
        loop {
            let ended = {
                let mut compactions = self.compactions.borrow_mut();
                let Some(running) = compactions.get_mut(at) else { return };
                running.job.poll().map(|result| (compactions.swap_remove(at), result))
            };
            match ended {
                Some((running, result)) => self.take_compaction(running, result),
                None => at += 1,
            }
        }
    }

    fn take_compaction(&self, ended: RunningCompaction, result: Result<Vec<Run>, LsmError>) {
        let tree = Rc::clone(&ended.tree);
        let made: Vec<Arc<Run>> = match result {
            Ok(runs) => runs.into_iter().map(Arc::new).collect(),
            Err(error) => {
                tree.is_compacting.set(false);
                self.has_news.set(true);
                if !self.place.is_stopped.load(Ordering::Relaxed) {
                    self.fail_compaction(&tree, error);
                }
                return;
            }
        };
        if tree.merge_failures.clear(ended.runs.iter().map(|run| run.id())) {
            tracing::info!(
                "a compaction of index {} of space {} has failed before and is done",
                tree.index_id,
                tree.space_id
            );
        }
        let took_ns = self.environment.clock.monotonic_ns().saturating_sub(ended.began_ns);
        let (mut input, mut output) = (Volume::default(), Volume::default());
        ended.runs.iter().for_each(|run| input += Volume::between(run, &ended.from, ended.to.as_deref()));
        made.iter().for_each(|run| output += Volume::of(run));
        tracing::debug!(
            "a compaction of {} runs into {}: {} bytes read, {} written in {} ms",
            ended.runs.len(),
            made.len(),
            input.packed_bytes,
            output.packed_bytes,
            took_ns / 1_000_000
        );
        let down = match ended.runs.last().filter(|_| ended.is_bottom) {
            Some(oldest) => {
                let oldest = Volume::between(oldest, &ended.from, ended.to.as_deref());
                tree.note_overwritten(oldest.rows, input.rows.saturating_sub(oldest.rows), output.rows);
                input.packed_bytes.saturating_sub(oldest.packed_bytes)
            }
            None => 0,
        };
        if ended.haste != Haste::Leisurely {
            self.debt.note_merge(down, took_ns);
        }
        let mut totals = self.totals.borrow_mut();
        totals.jobs_completed += 1;
        for counts in [&mut *tree.counts.borrow_mut(), &mut totals.counts] {
            counts.compactions += 1;
            counts.compaction_ns += took_ns;
            counts.compaction_input += input;
            counts.compaction_output += output;
        }
        drop(totals);
        let (RunningCompaction { range_id, from, to, runs, .. }, place) = (ended, self.place.clone());
        let result_of = Rc::new(RefCell::new(Vec::new()));
        let made_there = Rc::clone(&result_of);
        let (tree_there, made_for_edit) = (Rc::clone(&tree), made.clone());
        let runs_there = runs.clone();
        let make = move || {
            if tree_there.is_dropped.get() {
                return Vec::new();
            }
            let add =
                replace_slices(&tree_there, range_id, (&from, to.as_deref()), &runs_there, &made_for_edit, &place);
            let edits = vec![Edit::SetRanges {
                tree_id: tree_there.id,
                remove: vec![range_id],
                add: add.iter().map(range_state).collect(),
            }];
            *made_there.borrow_mut() = add;
            edits
        };
        let then = move |engine: &LsmEngine, result: Result<(), Rc<LsmError>>| {
            tree.is_compacting.set(false);
            engine.has_news.set(true);
            let new = result_of.take();
            // If it was recorded it counts, even if the tree has been dropped since: the record that forgets it comes later.
            if result.is_err() || new.is_empty() {
                engine.obsolete.borrow_mut().extend(made);
                return;
            }
            let mut list = Vec::new();
            for range in &tree.ranges().list {
                if range.id == range_id {
                    list.extend(new.iter().cloned().map(Rc::new));
                } else {
                    list.push(Rc::clone(range));
                }
            }
            tree.set_ranges(list);
            engine.measure_debt();
            let named = tree.runs();
            #[cfg(feature = "planted-bugs")]
            let named = match runtime::planted::is_planted(runtime::planted::Plant::RemoveRunThatIsNamed) {
                true => Vec::new(),
                false => named,
            };
            let gone = runs.into_iter().filter(|run| !named.iter().any(|other| other.id() == run.id()));
            engine.obsolete.borrow_mut().extend(gone);
            if !tree.is_dropped.get() {
                engine.join_ranges(&tree);
            }
        };
        self.record(Box::new(make), Box::new(then));
    }

    /// Joins neighbouring ranges that have become small, as far as none of their runs reaches beyond them.
    fn join_ranges(&self, tree: &Rc<LsmTree>) {
        let ranges = tree.ranges();
        let max = tree.range_bytes() / 4;
        let size = |at: usize| -> u64 {
            let range = &ranges.list[at];
            range.slices.iter().map(|run| run.estimate(&range.begin, ranges.end(at)).0).sum()
        };
        let is_own = |at: usize| {
            let (range, end) = (&ranges.list[at], ranges.end(at));
            range
                .slices
                .iter()
                .all(|run| run.min_key() >= range.begin.as_slice() && end.is_none_or(|end| run.max_key() < end))
        };
        let found = (1..ranges.list.len()).find(|&at| is_own(at - 1) && is_own(at) && size(at - 1) + size(at) < max);
        let Some(at) = found else { return };
        let (left, right) = (Rc::clone(&ranges.list[at - 1]), Rc::clone(&ranges.list[at]));
        let tree = Rc::clone(tree);
        tree.is_compacting.set(true);
        let id = self.place.next_id();
        let joined = move |tree: &LsmTree| {
            // A dump may have given them more runs meanwhile, which then reach over both.
            let find = |id: u64| tree.ranges().list.iter().find(|range| range.id == id).cloned();
            let (left, right) = (find(left.id)?, find(right.id)?);
            let shares = left.slices.iter().any(|run| right.slices.iter().any(|other| other.id() == run.id()));
            if shares {
                return None;
            }
            let slices = left.slices.iter().chain(&right.slices).cloned().collect();
            Some((left.id, right.id, Range { id, begin: left.begin.clone(), slices }))
        };
        let made = Rc::new(RefCell::new(None));
        let (tree_there, made_there) = (Rc::clone(&tree), Rc::clone(&made));
        let make = move || {
            *made_there.borrow_mut() = joined(&tree_there);
            match &*made_there.borrow() {
                Some((left, right, range)) => vec![Edit::SetRanges {
                    tree_id: tree_there.id,
                    remove: vec![*left, *right],
                    add: vec![range_state(range)],
                }],
                None => Vec::new(),
            }
        };
        let then = move |engine: &LsmEngine, result: Result<(), Rc<LsmError>>| {
            tree.is_compacting.set(false);
            let Some((left, right, range)) = made.take().filter(|_| result.is_ok()) else { return };
            tracing::debug!("two ranges are joined");
            let mut list = Vec::new();
            for other in &tree.ranges().list {
                if other.id == left {
                    list.push(Rc::new(range.clone()));
                } else if other.id != right {
                    list.push(Rc::clone(other));
                }
            }
            tree.set_ranges(list);
            // A compaction of a part of a range makes two more of it, so one join for each would be too few.
            if !tree.is_dropped.get() {
                engine.join_ranges(&tree);
            }
        };
        self.record(Box::new(make), Box::new(then));
    }
}

/// A compaction: of which range, of which of its slices, and of which part of its keys.
struct Wanted {
    range_at: usize,
    choice: Choice,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    is_whole: bool,
}

impl Wanted {
    fn whole(tree: &LsmTree, range_at: usize, choice: Choice) -> Self {
        let ranges = tree.ranges();
        let (from, to) = (ranges.list[range_at].begin.clone(), ranges.end(range_at).map(<[u8]>::to_vec));
        Wanted { range_at, choice, from, to, is_whole: true }
    }
}

/// A part of a range whose rows were deleted one after the other: what says so is merged with them, which reads and writes no others.
fn deleted_stretch(tree: &LsmTree, range_at: usize) -> Option<Wanted> {
    let ranges = tree.ranges();
    let range = &ranges.list[range_at];
    let end = ranges.end(range_at);
    // One that holds other rows, too, may reach far beyond the deleted ones.
    let is_of_deletes =
        |run: &&Arc<Run>| run.deletes() >= policy::DELETED_MIN && run.deletes() * 10 > run.entries() * 9;
    let mut from: Option<&[u8]> = None;
    let mut last: Option<&[u8]> = None;
    for run in range.slices.iter().filter(is_of_deletes) {
        from = Some(from.map_or(run.min_key(), |from| from.min(run.min_key())));
        last = Some(last.map_or(run.max_key(), |last| last.max(run.max_key())));
    }
    let from = from?.max(&range.begin).to_vec();
    // Behind the last key, unless the range ends before.
    let behind = [last?, &[0]].concat();
    let to = match end {
        Some(end) if end <= behind.as_slice() => Some(end.to_vec()),
        _ => Some(behind),
    };
    let estimate = |run: &Arc<Run>| run.estimate(&from, to.as_deref());
    let (mut entries, mut deletes) = (0, 0);
    for run in &range.slices {
        let here = estimate(run).1;
        entries += here;
        deletes += (run.deletes() as f64 * here as f64 / run.entries().max(1) as f64) as u64;
    }
    let is_dense = deletes >= policy::DELETED_MIN && deletes as f64 > entries as f64 * policy::DELETED_SHARE;
    let urgency = 2.0 + deletes as f64 / entries.max(1) as f64;
    is_dense.then(|| Wanted {
        range_at,
        choice: Choice { first: 0, count: range.slices.len(), urgency, lag: urgency },
        is_whole: from == range.begin && to.as_deref() == end,
        from,
        to,
    })
}

/// True if the range has runs from before it was asked for that all become one.
fn is_asked(tree: &LsmTree, at: usize, readable: usize) -> bool {
    let below = tree.compact_below.get();
    let ranges = tree.ranges();
    ranges.list[at].slices[..readable].iter().filter(|run| run.id() < below).count() > 1
}

/// At how many bytes a run that is made of so many is followed by another, if it is: parts of about one size. They are a little larger than equal ones,
/// or packing a little worse would leave a mere rest for one more.
fn split_bytes(bytes: u64, range_bytes: u64) -> Option<u64> {
    let parts = (bytes + range_bytes / 2) / range_bytes.max(1);
    (parts > 1).then(|| bytes / parts + bytes / parts / 16)
}

/// The range as it is with other runs in the place of some, in a part of its keys: one range, or several if that is a part or there are several new
/// runs.
fn replace_slices(
    tree: &LsmTree,
    range_id: u64,
    (from, to): (&[u8], Option<&[u8]>),
    runs: &[Arc<Run>],
    made: &[Arc<Run>],
    place: &Workplace,
) -> Vec<Range> {
    let ranges = tree.ranges();
    let Some(at) = ranges.list.iter().position(|range| range.id == range_id) else { return Vec::new() };
    let (range, end) = (&ranges.list[at], ranges.end(at));
    let is_replaced = |run: &Arc<Run>| runs.iter().any(|other| other.id() == run.id());
    let first = range.slices.iter().position(is_replaced).unwrap_or(0);
    let newer = &range.slices[..first];
    let replaced = range.slices[first..].iter().take(runs.len());
    assert!(replaced.map(|run| run.id()).eq(runs.iter().map(|run| run.id())), "the merged runs lie beside each other");
    let older = &range.slices[first + runs.len()..];
    assert!(made.len() < 2 || older.is_empty(), "only a merge with the oldest run is split");
    let mut new = Vec::new();
    let mut push = |begin: &[u8], end: Option<&[u8]>, slices: &mut dyn Iterator<Item = &Arc<Run>>| {
        let is_here = |run: &&Arc<Run>| run.max_key() >= begin && end.is_none_or(|end| run.min_key() < end);
        let slices = slices.filter(is_here).cloned().collect();
        new.push(Range { id: place.next_id(), begin: begin.to_vec(), slices });
    };
    if from > range.begin.as_slice() {
        push(&range.begin, Some(from), &mut range.slices.iter());
    }
    for number in 0..made.len().max(1) {
        let begin = if number == 0 { from } else { made[number].min_key() };
        let end = made.get(number + 1).map(|next| next.min_key()).or(to);
        push(begin, end, &mut newer.iter().chain(made.get(number)).chain(older));
    }
    if let Some(to) = to.filter(|to| end != Some(*to)) {
        push(to, end, &mut range.slices.iter());
    }
    assert!(new[0].begin == range.begin && new.is_sorted_by(|a, b| a.begin < b.begin), "no key falls out of the range");
    new
}
