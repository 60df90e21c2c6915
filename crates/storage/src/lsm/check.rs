//! Looking at all files of a directory without changing anything: what `lycosa check` does.

use super::error::LsmError;
use super::manifest::{self, TreeState};
use super::run::{Run, UNFINISHED, run_name, run_of_name};
use runtime::FileSystem;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins in the file, or the part that it is in.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

impl Damage {
    /// The damage that an error reports; other errors stay errors.
    pub(crate) fn of(error: LsmError) -> Result<Damage, LsmError> {
        match error {
            LsmError::Corrupt { offset, what, .. } => Ok(Damage { offset, what }),
            other => Err(other),
        }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// The current manifest. Its items are records.
    Manifest,
    /// A run that the manifest names, or may name since the manifest is damaged. Its items are entries.
    Run,
    /// What a crash left: the next start removes it. It is not read.
    Orphan,
}

/// What was found in a file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub role: FileRole,
    /// The instance UUID that a manifest says.
    pub owner: Option<String>,
    /// Records or entries, where they could be counted.
    pub items: u64,
    /// What is wrong with it.
    pub damage: Vec<Damage>,
    /// Where a record begins that a crash tore, how many bytes are there and what is wrong with them. Nobody was promised what is in it; the
    /// next start cuts it.
    pub torn: Option<(u64, u64, String)>,
}

impl FileReport {
    fn new(path: PathBuf, role: FileRole) -> Self {
        FileReport { path, role, owner: None, items: 0, damage: Vec::new(), torn: None }
    }
}

/// Reads every file of a directory: the manifest, all blocks of all runs, and whether both fit together. Blocks. A directory that does
/// not exist has no files.
///
/// Errors: the system refuses to read.
pub fn check_directory(files: &dyn FileSystem, dir: &Path) -> Result<Vec<FileReport>, LsmError> {
    let mut reports = Vec::new();
    let trees = check_manifest(files, dir, &mut reports)?;
    if !files.exists(dir) {
        return Ok(reports);
    }
    let names = files.list(dir).map_err(LsmError::io("listing", dir))?;
    let named: Option<BTreeSet<u64>> = trees.map(|trees| slices(&trees).collect());
    // The manifest before the current one is kept, for the case that that is lost.
    let older = names.iter().filter(|name| manifest::manifest_of_name(name).is_some()).rev().nth(1);
    for name in &names {
        let is_manifest = Some(name) == older || reports.first().is_some_and(|first| first.path.ends_with(name));
        let run = run_of_name(name);
        let is_needed = run.is_some_and(|run| named.as_ref().is_none_or(|named| named.contains(&run)));
        match run {
            _ if is_manifest => {}
            Some(run) if is_needed => reports.push(check_run(files, dir, run)?),
            None if !name.ends_with(UNFINISHED) && manifest::manifest_of_name(name).is_none() => {}
            _ => reports.push(FileReport::new(dir.join(name), FileRole::Orphan)),
        }
    }
    for run in named.unwrap_or_default() {
        if !names.contains(&run_name(run)) {
            let mut report = FileReport::new(dir.join(run_name(run)), FileRole::Run);
            report.damage.push(Damage { offset: 0, what: "the manifest names it, and it is not there".to_string() });
            reports.push(report);
        }
    }
    Ok(reports)
}

/// The trees; `None` if the manifest does not say them.
fn check_manifest(
    files: &dyn FileSystem,
    dir: &Path,
    reports: &mut Vec<FileReport>,
) -> Result<Option<Vec<TreeState>>, LsmError> {
    match manifest::look(files, dir) {
        Ok(None) => Ok(Some(Vec::new())),
        Ok(Some(found)) => {
            let mut report = FileReport::new(found.path, FileRole::Manifest);
            report.items = found.records;
            report.owner = found.instance;
            report.torn = found.torn.map(|(bytes, what)| (found.end, bytes, what));
            reports.push(report);
            Ok(Some(found.trees))
        }
        Err(LsmError::Corrupt { file, offset, what }) => {
            let mut report = FileReport::new(file, FileRole::Manifest);
            let what = [what, manifest::announce(files, dir)].join("; ");
            report.damage.push(Damage { offset, what });
            reports.push(report);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn check_run(files: &dyn FileSystem, dir: &Path, run_id: u64) -> Result<FileReport, LsmError> {
    let mut report = FileReport::new(dir.join(run_name(run_id)), FileRole::Run);
    match Run::open(files, dir, run_id) {
        Ok(run) => {
            report.items = run.entries();
            report.damage = run.check()?;
        }
        Err(error) => report.damage.push(Damage::of(error)?),
    }
    Ok(report)
}

/// Runs that trees name.
fn slices(trees: &[TreeState]) -> impl Iterator<Item = u64> {
    trees.iter().flat_map(|tree| &tree.ranges).flat_map(|range| range.slices.iter().copied())
}
