//! The manifest: which trees there are, how their keys are cut into ranges, and which runs each range has.
//!
//! A file of edits, in records that apply as a whole or not at all. When it has grown to many times what is live, a new file begins with all
//! that is live: it is written under a name that ends in `.inprogress`, synced, named and the directory synced. The file with the greatest
//! number is the current one; the one before it is kept, older ones go. Layout: docs/formats/lsm.md.
//!
//! A small file beside the directory, the *witness*, says up to where which manifest was confirmed. It is what a manifest is proven whole by:
//! one that is missing, or ends before, is damage, and nothing that it might have named may be removed.
//!
//! The file is made before the first run: a server without disk spaces has none.

mod record;
mod salvage;
mod state;
mod witness;

pub(crate) use salvage::announce;

pub use state::{Edit, RangeState, TreeState};

use super::error::LsmError;
use super::run::{Run, UNFINISHED, run_name};
use runtime::{File, FileSystem, OpenMode};
use state::{Item, State};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use witness::{Confirmed, Witness};

const PREFIX: &str = "manifest-";
/// A manifest shorter than this is left to grow.
const SWITCH_FROM_BYTES: u64 = 256 << 10;
/// Otherwise a new manifest begins when the old one has grown by this factor.
const SWITCH_GROWTH: u64 = 8;
/// Each start takes as many numbers as no life of a process uses, so that a number is not given again though nobody wrote it down.
const IDS_PER_START: u64 = 1 << 32;
/// A billion starts take numbers up to here: a greater one in a file is damage, and the next start's would not fit.
const NEXT_ID_MAX: u64 = 1_000_000_000 * IDS_PER_START;

/// The name of a manifest.
fn manifest_name(number: u64) -> String {
    format!("{PREFIX}{number:020}")
}

/// The number of a manifest, by the name of its file.
pub(crate) fn manifest_of_name(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok().filter(|&number| manifest_name(number) == name)
}

/// The file that edits are appended to.
struct Open {
    file: Arc<dyn File>,
    path: PathBuf,
    length: u64,
    /// The length at which a new file begins.
    switch_at: u64,
}

/// The manifest of a directory. Methods block, but `next_id`.
pub struct Manifest {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    state: State,
    /// The greatest number that a file has, or may have.
    number: u64,
    /// `None` if there is no file, or it is not known what an append left of it: then the next one begins a new file.
    open: Option<Open>,
    /// False if what a failed append has left could not be removed.
    is_settled: bool,
    buffer: Vec<u8>,
    /// A file shorter than this is left to grow.
    switch_from_bytes: u64,
    /// `None` until the first file is made, and after an error.
    witness: Option<Witness>,
    /// A file is there for sure.
    has_begun: bool,
    /// Files that others have taken the place of stay: a backup copies one of them.
    keeps_older: bool,
}

/// What was found in a directory.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) trees: Vec<TreeState>,
    pub(crate) instance: Option<String>,
    pub(crate) records: u64,
    /// Where the last good record or mark ends.
    pub(crate) end: u64,
    /// Bytes behind it that a crash left, and what is wrong with them.
    pub(crate) torn: Option<(u64, String)>,
}

/// Manifests of a directory by number.
fn numbers(files: &dyn FileSystem, dir: &Path) -> Result<Vec<u64>, LsmError> {
    if !files.exists(dir) {
        return Ok(Vec::new());
    }
    let names = files.list(dir).map_err(LsmError::io("listing", dir))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| manifest_of_name(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn read_bytes(files: &dyn FileSystem, path: &Path, mode: OpenMode) -> Result<(Arc<dyn File>, Vec<u8>), LsmError> {
    let file = files.open(path, mode).map_err(LsmError::io("opening", path))?;
    let length = file.len().map_err(LsmError::io("reading", path))?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    let found = file.read_full_at(&mut bytes, 0).map_err(LsmError::io("reading", path))?;
    bytes.truncate(found);
    Ok((file, bytes))
}

/// Opens and reads a manifest.
fn read(
    files: &dyn FileSystem,
    path: &Path,
    number: u64,
    mode: OpenMode,
) -> Result<(Arc<dyn File>, record::Contents), LsmError> {
    let (file, bytes) = read_bytes(files, path, mode)?;
    let contents = record::read(path, number, &bytes)?;
    Ok((file, contents))
}

/// What a manifest says before its first damage; `None` if that is in its header.
fn read_prefix_of(files: &dyn FileSystem, dir: &Path, number: u64) -> Result<Option<record::Contents>, LsmError> {
    let path = dir.join(manifest_name(number));
    Ok(record::read_prefix(&path, number, &read_bytes(files, &path, OpenMode::READ)?.1))
}

/// The current manifest as it was read.
struct InForce {
    number: u64,
    file: Arc<dyn File>,
    contents: record::Contents,
    /// There is a witness. A version that kept none may have written it otherwise.
    is_proven: bool,
}

/// The trees that a manifest says there are, by its file. Blocks. `None` if the file has no name of a manifest.
///
/// Errors: it is damaged.
pub fn read_manifest(files: &dyn FileSystem, path: &Path) -> Result<Option<Vec<TreeState>>, LsmError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(number) = manifest_of_name(&name) else { return Ok(None) };
    let (_, contents) = read(files, path, number, OpenMode::READ)?;
    Ok(Some(contents.state.trees.into_values().collect()))
}

/// The trees of the newest manifest of a directory, as far as it can be read. Blocks. Errors: the system's.
pub fn newest_trees(files: &dyn FileSystem, dir: &Path) -> Result<Vec<TreeState>, LsmError> {
    let Some(number) = numbers(files, dir)?.pop() else { return Ok(Vec::new()) };
    let contents = read_prefix_of(files, dir, number)?;
    Ok(contents.map_or(Vec::new(), |contents| contents.state.trees.into_values().collect()))
}

/// Reads the current manifest, if there is one, and compares it with what its witness knows.
///
/// Errors: it is damaged, cut or missing.
fn read_in_force(files: &dyn FileSystem, dir: &Path, mode: OpenMode) -> Result<Option<InForce>, LsmError> {
    let confirmed = witness::read(files, dir)?;
    let newest = numbers(files, dir)?.pop();
    if let Some(Confirmed { number, end }) = confirmed.filter(|confirmed| *confirmed != Confirmed::NOTHING)
        && newest.is_none_or(|newest| newest < number)
    {
        let what = format!("the file is not there; {end} bytes of it were confirmed");
        return Err(LsmError::corrupt(&dir.join(manifest_name(number)), 0, what));
    }
    let Some(number) = newest else {
        let runs = salvage::runs(files, dir)?;
        return match runs.len() {
            0 => Ok(None),
            count => Err(LsmError::corrupt(
                &dir.join(manifest_name(1)),
                0,
                format!("no manifest is there, and {count} runs are, which it may have named"),
            )),
        };
    };
    let path = dir.join(manifest_name(number));
    let (file, contents) = read(files, &path, number, mode)?;
    match confirmed {
        Some(confirmed) if confirmed.number == number && contents.end < confirmed.end => {
            let found = contents.torn.as_ref().map_or("the file ends here", |torn| torn.what.as_str());
            let what = format!("{found}; it was confirmed up to byte {}", confirmed.end);
            return Err(LsmError::corrupt(&path, contents.end, what));
        }
        // It was whole when it got its name, and nothing is appended before it is confirmed.
        Some(confirmed) if confirmed.number < number && (contents.torn.is_some() || contents.records == 0) => {
            let what = contents.torn.as_ref().map_or("the file ends behind its header", |torn| torn.what.as_str());
            return Err(LsmError::corrupt(&path, contents.end, what));
        }
        // Written by a version that kept no witness: a torn end and a damaged one look the same.
        None => {
            if let Some(torn) = &contents.torn {
                let unnamed = unnamed_runs(files, dir, contents.state.trees.values())?;
                if !unnamed.is_empty() {
                    let count = unnamed.len();
                    let what = format!("{}; what is missing may have named {count} runs that are there", torn.what);
                    return Err(LsmError::corrupt(&path, contents.end, what));
                }
            }
        }
        Some(_) => {}
    }
    Ok(Some(InForce { number, file, contents, is_proven: confirmed.is_some() }))
}

/// What the current manifest says, without changing anything. Blocks. `None` if there is none, and no sign that there was one.
pub(crate) fn look(files: &dyn FileSystem, dir: &Path) -> Result<Option<Found>, LsmError> {
    let Some(InForce { number, contents, .. }) = read_in_force(files, dir, OpenMode::READ)? else { return Ok(None) };
    Ok(Some(Found {
        path: dir.join(manifest_name(number)),
        trees: contents.state.trees.into_values().collect(),
        instance: contents.state.instance,
        records: contents.records,
        end: contents.end,
        torn: contents.torn.map(|torn| (torn.bytes, torn.what)),
    }))
}

impl Manifest {
    /// Reads the current manifest, whoever's it is. See `open_of`.
    ///
    /// Errors: as `open_of`, but never `Foreign`.
    pub fn open(files: Arc<dyn FileSystem>, dir: &Path) -> Result<(Manifest, Vec<TreeState>), LsmError> {
        Self::open_of(files, dir, None)
    }

    /// Reads the current manifest of an instance; there are no trees if there is none. A record at the end that a crash tore is cut, any other
    /// damage is an error, and so is a manifest that is missing although it was there or may have been, or that is another instance's. One
    /// that does not say whose it is becomes this one's.
    pub fn open_of(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        instance: Option<&str>,
    ) -> Result<(Manifest, Vec<TreeState>), LsmError> {
        let found = read_in_force(&*files, dir, OpenMode::MODIFY)?;
        let mut manifest = Manifest::empty(files, dir);
        manifest.state.instance = instance.map(str::to_string);
        if let Some(InForce { number, file, mut contents, is_proven }) = found {
            let is_new_owner = contents.state.claim(&dir.join(manifest_name(number)), instance)?;
            if !is_proven {
                // Before the witness is there: from then on what is not named is removed.
                manifest.set_orphans_aside(&contents.state)?;
            }
            manifest.number = number;
            manifest.has_begun = true;
            manifest.resume(file, contents, is_new_owner)?;
            manifest.remove_older();
        }
        let trees = manifest.state.trees.values().cloned().collect();
        Ok((manifest, trees))
    }

    fn empty(files: Arc<dyn FileSystem>, dir: &Path) -> Manifest {
        Manifest {
            files,
            dir: dir.to_path_buf(),
            state: State { next_id: 1, ..State::default() },
            number: 0,
            open: None,
            is_settled: true,
            buffer: Vec::new(),
            switch_from_bytes: SWITCH_FROM_BYTES,
            witness: None,
            has_begun: false,
            keeps_older: false,
        }
    }

    /// Gives runs that a manifest of an older version does not name other names, by which nobody takes them for runs: nobody knows whether it
    /// is whole.
    fn set_orphans_aside(&self, state: &State) -> Result<(), LsmError> {
        let runs = unnamed_runs(&*self.files, &self.dir, state.trees.values())?;
        let names: Vec<String> = runs.into_iter().map(run_name).collect();
        salvage::set_aside(&*self.files, &self.dir, &names)?;
        for name in names {
            tracing::warn!(
                "{name} is not named by the manifest of an older version: set aside under a name that ends in .lost"
            );
        }
        Ok(())
    }

    /// Makes the file if there is none. Before the first run: runs without a manifest are a manifest that is missing. Blocks.
    pub(crate) fn begin(&mut self) -> Result<(), LsmError> {
        if self.has_begun { Ok(()) } else { self.append(&[]) }
    }

    /// Begins a new file, so that the one before it says for ever what applies now. That file and the runs that it names; nothing if there
    /// is no manifest. It stays until `end_backup`. Blocks.
    pub(crate) fn begin_backup(&mut self) -> Result<Option<(PathBuf, Vec<u64>)>, LsmError> {
        let Some(open) = self.open.take() else {
            if !self.has_begun {
                return Ok(None);
            }
            // It is not known what the last append has left: a file that says what applies comes first.
            self.append(&[])?;
            return self.begin_backup();
        };
        let path = open.path.clone();
        self.keeps_older = true;
        let now = Confirmed { number: self.number, end: open.length };
        self.open_witness(now).and_then(|()| self.switch(Some(open))).inspect_err(|_| self.keeps_older = false)?;
        let trees = self.state.trees.values();
        let runs: BTreeSet<u64> =
            trees.flat_map(|tree| &tree.ranges).flat_map(|range| range.slices.iter().copied()).collect();
        Ok(Some((path, runs.into_iter().collect())))
    }

    /// Nobody copies files any more.
    pub(crate) fn end_backup(&mut self) {
        self.keeps_older = false;
        self.remove_older();
    }

    /// Has files give way to new ones earlier or later than by itself.
    pub fn set_switch_bytes(&mut self, bytes: u64) {
        self.switch_from_bytes = bytes;
        if let Some(open) = &mut self.open {
            open.switch_at = open.switch_at.min(bytes.max(1));
        }
    }

    /// The length at which a file gives way to a new one that began with so many bytes.
    fn switch_at(&self, live: u64) -> u64 {
        self.switch_from_bytes.max(SWITCH_GROWTH * live)
    }

    /// Goes on behind what is in a file, or in a new file if it has to say whose it is.
    fn resume(&mut self, file: Arc<dyn File>, contents: record::Contents, is_new_owner: bool) -> Result<(), LsmError> {
        let path = self.dir.join(manifest_name(self.number));
        if contents.torn.is_some() {
            file.set_len(contents.end).map_err(LsmError::io("cutting", &path))?;
            file.sync().map_err(LsmError::io("syncing", &path))?;
        }
        self.state = contents.state;
        self.state.next_id = (self.state.next_id / IDS_PER_START + 1) * IDS_PER_START;
        let mut live = Vec::new();
        self.state.items().iter().for_each(|item| item.encode(&mut live));
        let switch_at = if is_new_owner { 0 } else { self.switch_at(live.len() as u64) };
        self.open = Some(Open { file, path, length: contents.end, switch_at });
        // From here on no other start gives these numbers.
        self.append(&[])
    }

    /// Removes files that another has taken the place of, but for the one before this: it is what is left if this one is lost.
    fn remove_older(&self) {
        if self.keeps_older {
            return;
        }
        let mut older = numbers(&*self.files, &self.dir).unwrap_or_default();
        older.retain(|&number| number < self.number);
        older.pop();
        for number in older {
            let _ = self.files.remove(&self.dir.join(manifest_name(number)));
        }
    }

    /// Applies edits, all or none: they are durable when it returns.
    ///
    /// Errors: the edits are not applied. If what was written of them cannot be removed either, a crash may find them all the same,
    /// see `is_settled`.
    pub fn append(&mut self, edits: &[Edit]) -> Result<(), LsmError> {
        let mut items = vec![Item::NextId(self.state.next_id)];
        items.extend(edits.iter().cloned().map(Item::Edit));
        // What the trees were, to roll it back.
        let touched: BTreeSet<u64> = edits.iter().map(Edit::tree_id).collect();
        let before: Vec<_> = touched.iter().map(|id| (*id, self.state.trees.get(id).cloned())).collect();
        let result = match items.iter().try_for_each(|item| self.state.apply(item)) {
            Ok(()) => self.write(&items),
            Err(what) => Err(LsmError::Io {
                what: format!("changing the manifest in {}", self.dir.display()),
                source: io::Error::new(io::ErrorKind::InvalidInput, what),
            }),
        };
        if result.is_err() {
            for (id, tree) in before {
                match tree {
                    Some(tree) => _ = self.state.trees.insert(id, tree),
                    None => _ = self.state.trees.remove(&id),
                }
            }
        }
        result
    }

    /// False if a crash may find edits applied that `append` has refused with an error. Until an append succeeds the runs that they name, and
    /// those that they drop, must stay.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A number that no tree, range or run has had, or will be given by another call.
    pub fn next_id(&mut self) -> u64 {
        self.state.next_id += 1;
        self.state.next_id - 1
    }

    /// Writes a record, or a new file with all that is live.
    fn write(&mut self, items: &[Item]) -> Result<(), LsmError> {
        let now =
            self.open.as_ref().map_or(Confirmed::NOTHING, |open| Confirmed { number: self.number, end: open.length });
        self.open_witness(now)?;
        match self.open.take() {
            Some(open) if open.length < open.switch_at => self.write_record(open, items),
            open => self.switch(open),
        }
    }

    fn write_record(&mut self, mut open: Open, items: &[Item]) -> Result<(), LsmError> {
        match self.write_confirmed(&open, items) {
            Ok(length) => {
                assert!(open.length < length, "the manifest only grows");
                open.length = length;
                // It may have been confirmed: it must stay, and the next edit begins a new file.
                self.confirm(length).inspect_err(|_| self.is_settled = false)?;
            }
            Err(error) => {
                // What a sync failed to carry is gone with the bytes that are cut.
                if open.file.set_len(open.length).and_then(|()| open.file.sync()).is_ok() {
                    self.open = Some(open);
                } else {
                    self.is_settled = false;
                }
                return Err(error);
            }
        }
        self.open = Some(open);
        Ok(())
    }

    /// Opens the witness, or makes it say what is there now: later it takes no room. Before anything is written.
    fn open_witness(&mut self, now: Confirmed) -> Result<(), LsmError> {
        if self.witness.is_none() {
            let path = witness::path(&self.dir);
            self.files.create_dir_all(&self.dir).map_err(LsmError::io("making", &self.dir))?;
            // One that cannot be read is made anew by who starts by force; all others have been refused.
            let known = witness::read(&*self.files, &self.dir).ok().flatten();
            let mut opened = Witness::open(&*self.files, &self.dir, now).map_err(LsmError::io("opening", &path))?;
            if let Some(open) = self.open.as_ref().filter(|_| known.is_some_and(|known| known.number < now.number)) {
                // The end of a life came between the file's name and its confirmation. What is appended to it may be torn, and so may nothing of
                // a file that is not confirmed.
                open.file.sync().map_err(LsmError::io("syncing", &open.path))?;
                self.files.sync_dir(&self.dir).map_err(LsmError::io("syncing", &self.dir))?;
                opened.write(now).map_err(LsmError::io("writing", &path))?;
            }
            self.witness = Some(opened);
        }
        Ok(())
    }

    /// Has the witness know how far the file is.
    fn confirm(&mut self, end: u64) -> Result<(), LsmError> {
        let confirmed = Confirmed { number: self.number, end };
        let written = match &mut self.witness {
            Some(witness) => witness.write(confirmed),
            None => Ok(()),
        };
        written.map_err(LsmError::io("writing", &witness::path(&self.dir)))
    }

    /// Writes a record and its mark. Returns where they end.
    fn write_confirmed(&mut self, open: &Open, items: &[Item]) -> Result<u64, LsmError> {
        self.buffer.clear();
        let checksum = record::encode_record(items, open.length, &mut self.buffer).ok_or_else(|| self.too_long())?;
        let write = |bytes: &[u8], offset| {
            open.file.write_all_at(bytes, offset).map_err(LsmError::io("writing", &open.path))?;
            open.file.sync().map_err(LsmError::io("syncing", &open.path))
        };
        write(&self.buffer, open.length)?;
        let mark_at = open.length + self.buffer.len() as u64;
        self.buffer.clear();
        record::encode_mark(open.length, checksum, &mut self.buffer);
        write(&self.buffer, mark_at)?;
        Ok(mark_at + self.buffer.len() as u64)
    }

    /// Begins a new file with all that is live. `old` is the one that it takes the place of.
    fn switch(&mut self, old: Option<Open>) -> Result<(), LsmError> {
        // Also if this fails, for the name may be there all the same.
        self.number += 1;
        self.buffer.clear();
        record::encode_header(self.number, &mut self.buffer);
        let offset = self.buffer.len() as u64;
        let checksum =
            record::encode_record(&self.state.items(), offset, &mut self.buffer).ok_or_else(|| self.too_long())?;
        record::encode_mark(offset, checksum, &mut self.buffer);
        let path = self.dir.join(manifest_name(self.number));
        let unfinished = self.dir.join(manifest_name(self.number) + UNFINISHED);
        match self.write_file(&unfinished, &path) {
            Ok(file) => {
                let length = self.buffer.len() as u64;
                // As above: it may have been confirmed.
                self.confirm(length).inspect_err(|_| self.is_settled = false)?;
                self.open = Some(Open { file, path, length, switch_at: self.switch_at(length) });
                self.is_settled = true;
                self.has_begun = true;
            }
            Err((error, is_named)) => {
                // What is left of it otherwise is removed at the next start.
                let _ = self.files.remove(&unfinished);
                let removed = || self.files.remove(&path).and_then(|()| self.files.sync_dir(&self.dir));
                if is_named && removed().is_err() {
                    self.is_settled = false;
                } else {
                    self.open = old;
                }
                return Err(error);
            }
        }
        self.remove_older();
        Ok(())
    }

    /// Writes the buffer to a file and gives it its name. Errors: with them, whether it may have its name.
    fn write_file(&self, unfinished: &Path, path: &Path) -> Result<Arc<dyn File>, (LsmError, bool)> {
        let write = || {
            self.files.create_dir_all(&self.dir).map_err(LsmError::io("making", &self.dir))?;
            let file = self.files.open(unfinished, OpenMode::CREATE).map_err(LsmError::io("making", unfinished))?;
            file.write_all_at(&self.buffer, 0).map_err(LsmError::io("writing", unfinished))?;
            file.sync().map_err(LsmError::io("syncing", unfinished))?;
            self.files.rename(unfinished, path).map_err(LsmError::io("naming", path))?;
            Ok(file)
        };
        let file = write().map_err(|error| (error, false))?;
        self.files.sync_dir(&self.dir).map_err(|error| (LsmError::io("syncing", &self.dir)(error), true))?;
        Ok(file)
    }

    fn too_long(&self) -> LsmError {
        LsmError::Io {
            what: format!("changing the manifest in {}", self.dir.display()),
            source: io::Error::new(io::ErrorKind::InvalidInput, "a record is too long"),
        }
    }
}

/// Removes runs that no tree names, and files that were being written. Returns their names. Blocks; for the start, before anything is
/// written. The trees must be those of a manifest that is proven whole, as `Manifest::open` sees to.
///
/// Errors: `Io`; some may be removed.
pub fn remove_orphans(files: &dyn FileSystem, dir: &Path, trees: &[TreeState]) -> Result<Vec<String>, LsmError> {
    let orphans = orphans(files, dir, trees)?;
    // What a merge has read may be among them: as long as its result cannot be opened, they are the only copies of its rows.
    let has_runs = orphans.iter().any(|name| !name.ends_with(UNFINISHED));
    if has_runs && let Some(error) = first_bad_run(files, dir, trees) {
        tracing::warn!("runs that no index on disk names are kept, since one that is named cannot be read: {error}");
        return Ok(Vec::new());
    }
    for name in &orphans {
        let path = dir.join(name);
        match files.remove(&path) {
            // A thread of the life before may have come to it by itself.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(LsmError::io("removing", &path))?,
        }
    }
    Ok(orphans)
}

/// What is wrong with the first run of the trees that cannot be opened.
fn first_bad_run(files: &dyn FileSystem, dir: &Path, trees: &[TreeState]) -> Option<LsmError> {
    let named: BTreeSet<u64> =
        trees.iter().flat_map(|tree| &tree.ranges).flat_map(|range| range.slices.iter().copied()).collect();
    named.into_iter().find_map(|run_id| Run::open(files, dir, run_id).err())
}

/// The highest number that a file of a run in the directory has; 0 if there is none. Numbers that no server has come to are nobody's.
pub(crate) fn highest_run(files: &dyn FileSystem, dir: &Path) -> Result<u64, LsmError> {
    const NUMBER_MAX: u64 = 1 << 62;
    Ok(salvage::runs(files, dir)?.into_iter().filter(|run_id| *run_id < NUMBER_MAX).max().unwrap_or(0))
}

/// Runs of the directory that no tree names.
fn unnamed_runs<'a>(
    files: &dyn FileSystem,
    dir: &Path,
    trees: impl Iterator<Item = &'a TreeState>,
) -> Result<Vec<u64>, LsmError> {
    let named: BTreeSet<u64> =
        trees.flat_map(|tree| &tree.ranges).flat_map(|range| range.slices.iter().copied()).collect();
    let mut runs = salvage::runs(files, dir)?;
    runs.retain(|run_id| !named.contains(run_id));
    Ok(runs)
}

/// The files that `remove_orphans` removes.
pub(crate) fn orphans(files: &dyn FileSystem, dir: &Path, trees: &[TreeState]) -> Result<Vec<String>, LsmError> {
    if !files.exists(dir) {
        return Ok(Vec::new());
    }
    let mut orphans: Vec<String> = unnamed_runs(files, dir, trees.iter())?.into_iter().map(run_name).collect();
    let names = files.list(dir).map_err(LsmError::io("listing", dir))?;
    orphans.extend(names.into_iter().filter(|name| name.ends_with(UNFINISHED)));
    Ok(orphans)
}
