//! What can be had of a directory whose manifest is damaged or missing: for those who start by force, and for saying what that would lose.
//!
//! The newest manifest that can be read up to its damage says what there is, and of that the trees count whose runs are all there. Everything
//! else is set aside under another name: nothing is removed, and nobody takes it for current.

use super::witness::{self, Confirmed};
use super::{IDS_PER_START, Manifest, manifest_name, numbers, read_prefix_of, unnamed_runs};
use crate::lsm::error::LsmError;
use crate::lsm::manifest::state::State;
use crate::lsm::manifest::{Item, TreeState};
use crate::lsm::run::{Run, run_name, run_of_name};
use runtime::{FileSystem, OpenMode};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// How names of files end that were set aside.
const ASIDE: &str = ".lost";
/// Number of trees that are reported one by one.
const TOLD_TREES_MAX: usize = 20;

/// Runs of a directory, by their names.
pub(super) fn runs(files: &dyn FileSystem, dir: &Path) -> Result<Vec<u64>, LsmError> {
    if !files.exists(dir) {
        return Ok(Vec::new());
    }
    let names = files.list(dir).map_err(LsmError::io("listing", dir))?;
    Ok(names.iter().filter_map(|name| run_of_name(name)).collect())
}

/// Gives files other names, durably.
pub(super) fn set_aside(files: &dyn FileSystem, dir: &Path, names: &[String]) -> Result<(), LsmError> {
    for name in names {
        let from = dir.join(name);
        // A name that was set aside before stays what it is.
        let free =
            (0..).map(|number| if number == 0 { format!("{name}{ASIDE}") } else { format!("{name}.{number}{ASIDE}") });
        let to = free.map(|name| dir.join(name)).find(|to| !files.exists(to));
        if let Some(to) = to {
            files.rename(&from, &to).map_err(LsmError::io("renaming", &from))?;
        }
    }
    if names.is_empty() { Ok(()) } else { files.sync_dir(dir).map_err(LsmError::io("syncing", dir)) }
}

/// What is left.
struct Salvage {
    state: State,
    /// Trees whose runs are not all there.
    lost: Vec<TreeState>,
    /// Runs that nothing names, and their bytes.
    unnamed: Vec<u64>,
    unnamed_bytes: u64,
}

fn survey(files: &dyn FileSystem, dir: &Path) -> Result<Salvage, LsmError> {
    let there: BTreeSet<u64> = runs(files, dir)?.into_iter().collect();
    let mut state = State::default();
    for number in numbers(files, dir)?.into_iter().rev() {
        if let Some(contents) = read_prefix_of(files, dir, number)?.filter(|contents| contents.records > 0) {
            state = contents.state;
            break;
        }
    }
    let is_whole = |tree: &TreeState| {
        let mut slices = tree.ranges.iter().flat_map(|range| &range.slices);
        slices.all(|run_id| there.contains(run_id) && Run::open(files, dir, *run_id).is_ok())
    };
    let trees = std::mem::take(&mut state.trees);
    let (kept, lost): (Vec<TreeState>, Vec<TreeState>) = trees.into_values().partition(is_whole);
    let unnamed = unnamed_runs(files, dir, kept.iter())?;
    let length = |run_id: &u64| files.open(&dir.join(run_name(*run_id)), OpenMode::READ).and_then(|file| file.len());
    let unnamed_bytes = unnamed.iter().filter_map(|run_id| length(run_id).ok()).sum();
    // Greater than any that a lost record may have given.
    let numbers = there.iter().copied().chain(kept.iter().chain(&lost).flat_map(numbers_of));
    let next_id = numbers.map(|number| number + 1).fold(state.next_id, u64::max);
    let trees = kept.into_iter().map(|tree| (tree.tree_id, tree)).collect();
    Ok(Salvage { state: State { trees, next_id, ..state }, lost, unnamed, unnamed_bytes })
}

fn numbers_of(tree: &TreeState) -> impl Iterator<Item = u64> {
    std::iter::once(tree.tree_id).chain(tree.ranges.iter().map(|range| range.range_id))
}

impl Salvage {
    fn announce(&self) -> String {
        let mut text = format!(
            "what is in {} runs ({} bytes) that are not named any more, as far as the log does not hold it",
            self.unnamed.len(),
            self.unnamed_bytes
        );
        for tree in self.lost.iter().take(TOLD_TREES_MAX) {
            let _ = write!(
                text,
                ", everything in index {} of space {}, some of whose runs are gone",
                tree.index_id, tree.space_id
            );
        }
        if self.lost.len() > TOLD_TREES_MAX {
            let _ = write!(text, " and {} more indexes", self.lost.len() - TOLD_TREES_MAX);
        }
        let _ = write!(text, "; the files would be kept, with names that end in {ASIDE}");
        text
    }
}

/// What going on by force would lose, in words; empty if not even that can be found out. Blocks.
pub(crate) fn announce(files: &dyn FileSystem, dir: &Path) -> String {
    survey(files, dir)
        .map_or_else(|_| String::new(), |salvage| format!("force_recovery would lose {}", salvage.announce()))
}

impl Manifest {
    /// As `open`, but goes on with what is left of a damaged or missing manifest, and begins a new one with that. Returns what was lost, in
    /// words, if anything is damaged.
    ///
    /// Errors: `Io`, `Foreign`: what force cannot mend.
    pub fn open_by_force(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        instance: Option<&str>,
    ) -> Result<(Manifest, Vec<TreeState>, Option<String>), LsmError> {
        let damage = match Manifest::open_of(Arc::clone(&files), dir, instance) {
            Ok((manifest, trees)) => return Ok((manifest, trees, None)),
            Err(error @ LsmError::Corrupt { .. }) => error,
            Err(error) => return Err(error),
        };
        let mut salvage = survey(&*files, dir)?;
        let old = numbers(&*files, dir)?;
        let newest = dir.join(manifest_name(old.last().copied().unwrap_or(1)));
        salvage.state.claim(&newest, instance)?;
        let what = format!("{damage}; lost is {}", salvage.announce());
        let confirmed = witness::read(&*files, dir).unwrap_or_default();
        // First, so that a start behind a crash here takes none of them for left over.
        let runs: Vec<String> = salvage.unnamed.iter().map(|run_id| run_name(*run_id)).collect();
        set_aside(&*files, dir, &runs)?;
        let mut manifest = Manifest::empty(Arc::clone(&files), dir);
        let confirmed = confirmed.map_or(0, |Confirmed { number, .. }| number);
        manifest.number = old.last().copied().unwrap_or(0).max(confirmed);
        manifest.state = salvage.state;
        manifest.state.next_id = (manifest.state.next_id / IDS_PER_START + 1) * IDS_PER_START;
        manifest.write(&[Item::NextId(manifest.state.next_id)])?;
        let names: Vec<String> = old.into_iter().map(manifest_name).collect();
        let there = |name: &String| files.exists(&dir.join(name));
        set_aside(&*files, dir, &names.into_iter().filter(there).collect::<Vec<_>>())?;
        let trees = manifest.state.trees.values().cloned().collect();
        Ok((manifest, trees, Some(what)))
    }
}
