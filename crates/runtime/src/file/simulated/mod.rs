//! A file system in memory that forgets what was not synced.
//!
//! The idea. A file has its bytes as a reader sees them, its bytes as they are durable, and the changes between the two. A sync makes
//! them the same. A power loss leaves the durable bytes and, of the changes, what [`Loss`] says: each is there, lost or torn, whatever
//! became of those before it. Names follow the same rule for each directory: creations, renames and removals are durable when
//! their own directory was synced. So a file may be whole and have no name, or have a name and be empty.
//!
//! A power loss makes a new file system, which the next life of a process opens; this one stays as it is. Bytes lie in pages that copies
//! share, so a power loss, and a picture of the moment before every change ([`SimulatedFiles::keep_points`]), costs about as
//! much as the directory is long.

mod bytes;
mod fault;
mod loss;
mod operation;

pub use fault::{Fault, ReadFault};
pub use loss::{Loss, Tear};
pub use operation::{FileOperation, OperationKind};

use super::{File, FileSystem, OpenMode};
use crate::aligned::PAGE_BYTES;
use crate::random::SeededRandomness;
use crate::simulation;
use bytes::mix;
use fault::is_due;
use loss::{Change, Content, Directory, Edit, Fate, NameChange};
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file, with or without a name.
#[derive(Clone)]
struct Inode {
    content: Content,
    /// The name it was given last.
    path: Arc<Path>,
}

/// What a power loss meets.
#[derive(Clone, Default)]
struct Disk {
    files: Vec<Inode>,
    directories: BTreeMap<Arc<Path>, Directory>,
    /// Counts changes of contents.
    order: u64,
}

#[derive(Default)]
struct State {
    disk: Disk,
    locks: Vec<PathBuf>,
    fault: Fault,
    read_faults: Vec<(usize, ReadFault)>,
    is_off: bool,
    changes: u64,
    operations: Option<Vec<FileOperation>>,
    points: Option<Vec<ChangePoint>>,
}

/// A simulated file system; clones share it.
#[derive(Clone, Default)]
pub struct SimulatedFiles {
    state: Arc<Mutex<State>>,
}

/// The moment of a change: it was asked for, and the power goes.
#[derive(Clone)]
pub struct ChangePoint {
    /// The change.
    pub operation: FileOperation,
    disk: Disk,
}

impl ChangePoint {
    /// What a machine finds that starts after a power loss at this moment.
    pub fn crash(&self, loss: impl Into<Loss>) -> SimulatedFiles {
        self.disk.crash(loss.into())
    }

    /// Changes of contents that a power loss at this moment may take.
    pub fn unsynced(&self) -> usize {
        self.disk.unsynced().len()
    }
}

fn power_loss() -> io::Error {
    io::Error::other("simulated power loss")
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
}

/// A path's directory and name.
fn split(path: &Path) -> (&Path, String) {
    let dir = path.parent().unwrap_or(Path::new(""));
    (dir, path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

impl Disk {
    fn find(&self, path: &Path) -> Option<usize> {
        let (dir, name) = split(path);
        self.directories.get(dir)?.live.get(&name).copied()
    }

    fn directory(&mut self, dir: &Path) -> &mut Directory {
        if !self.directories.contains_key(dir) {
            self.directories.insert(Arc::from(dir), Directory::default());
        }
        self.directories.get_mut(dir).expect("it was just made")
    }

    fn create(&mut self, path: &Path) -> usize {
        let id = self.files.len();
        self.files.push(Inode { content: Content::default(), path: Arc::from(path) });
        let (dir, name) = split(path);
        self.directory(dir).apply(NameChange::Link(name, id));
        id
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let Some(id) = self.find(from) else { return };
        let (from_dir, from_name) = split(from);
        let (to_dir, to_name) = split(to);
        if from_dir == to_dir {
            self.directory(to_dir).apply(NameChange::Rename { from: from_name, to: to_name, id });
        } else {
            self.directory(to_dir).apply(NameChange::Link(to_name, id));
            self.directory(from_dir).apply(NameChange::Unlink(from_name));
        }
        self.files[id].path = Arc::from(to);
    }

    fn remove(&mut self, path: &Path) {
        let (dir, name) = split(path);
        self.directory(dir).apply(NameChange::Unlink(name));
    }

    fn edit(&mut self, id: usize, edit: Edit, fate: Fate) {
        self.order += 1;
        let order = self.order;
        self.files[id].content.apply(edit, fate, order);
    }

    /// A write that nobody was told of: readers do not see it, the disk may have it.
    fn may_have(&mut self, id: usize, edit: Edit, fate: Fate) {
        self.order += 1;
        let order = self.order;
        self.files[id].content.changes.push(Change { edit, fate, order });
    }

    /// Changes of contents that are not durable, the newest first.
    fn unsynced(&self) -> Vec<u64> {
        let mut found: Vec<u64> = self.files.iter().flat_map(|file| file.content.unsynced()).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }

    fn crash(&self, loss: Loss) -> SimulatedFiles {
        let seed = if let Loss::Seed(seed) = loss { seed } else { 0 };
        let random = SeededRandomness::new(seed);
        let chosen = match loss {
            Loss::AllBut(at) | Loss::Only(at) | Loss::Torn(at, _) => self.unsynced().get(at).copied(),
            _ => None,
        };
        let mut disk = Disk::default();
        // Files may have several names, or none that survives.
        let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
        for (path, directory) in &self.directories {
            let mut names = directory.after(loss, &random);
            for (name, id) in &mut names {
                *id = *kept.entry(*id).or_insert_with(|| {
                    let bytes = self.files[*id].content.after(loss, chosen, &random);
                    let content = Content { live: bytes.clone(), base: bytes, changes: Vec::new() };
                    disk.files.push(Inode { content, path: Arc::from(path.join(name)) });
                    disk.files.len() - 1
                });
            }
            let directory = Directory { live: names.clone(), durable: names, changes: Vec::new() };
            disk.directories.insert(Arc::clone(path), directory);
        }
        SimulatedFiles { state: Arc::new(Mutex::new(State { disk, ..State::default() })) }
    }
}

impl State {
    fn error(&self, text: &str) -> io::Error {
        io::Error::new(self.fault.error_kind.unwrap_or(io::ErrorKind::Other), text.to_string())
    }

    /// Counts an operation against the faults and writes it down. `in_flight` is what the disk may have of a change that a power
    /// loss meets, `failed` what it may have of one that fails.
    fn begin(
        &mut self,
        kind: OperationKind,
        path: &Path,
        offset: u64,
        length: u64,
        in_flight: impl Fn(&mut Disk, Fate),
    ) -> io::Result<()> {
        let result = self.check(kind, &in_flight);
        if self.operations.is_some() || self.points.is_some() {
            let operation = FileOperation { kind, path: path.into(), offset, length, succeeded: result.is_ok() };
            if let (Some(points), true) = (&mut self.points, kind.is_change() && !self.is_off) {
                let mut disk = self.disk.clone();
                if result.is_ok() {
                    in_flight(&mut disk, Fate::Unsynced);
                }
                points.push(ChangePoint { operation: operation.clone(), disk });
            }
            if let Some(operations) = &mut self.operations {
                operations.push(operation);
            }
        }
        result
    }

    fn check(&mut self, kind: OperationKind, in_flight: &impl Fn(&mut Disk, Fate)) -> io::Result<()> {
        if kind.is_change() {
            if self.is_off {
                return Err(power_loss());
            }
            if is_due(&mut self.fault.changes_until_off) {
                self.is_off = true;
                in_flight(&mut self.disk, Fate::Unsynced);
                return Err(power_loss());
            }
            self.changes += 1;
        }
        let fails = is_due(&mut self.fault.operations_until_error)
            || (kind.is_write() && is_due(&mut self.fault.writes_until_error))
            || (kind.is_sync() && is_due(&mut self.fault.syncs_until_error))
            || (kind == OperationKind::WriteBehind && is_due(&mut self.fault.writes_behind_until_error))
            || (kind == OperationKind::Read && is_due(&mut self.fault.reads_until_error));
        if !fails {
            return Ok(());
        }
        if kind.is_write() {
            in_flight(&mut self.disk, Fate::Forgotten);
        }
        Err(self.error(&format!("simulated {} error", kind.name())))
    }

    /// Bytes of a write that fit when a file grows by `grows`.
    fn take_space(&mut self, bytes: usize, grows: u64) -> usize {
        let Some(left) = &mut self.fault.space_left else { return bytes };
        let taken = grows.min(*left);
        *left -= taken;
        bytes - (grows - taken) as usize
    }
}

impl SimulatedFiles {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what goes wrong from now on; what was set before is forgotten. A machine that is off stays off.
    pub fn set_fault(&self, fault: Fault) {
        self.state().fault = fault;
    }

    /// What goes wrong, counted down to now.
    pub fn fault(&self) -> Fault {
        self.state().fault
    }

    /// Damages reads of a file.
    pub fn add_read_fault(&self, path: &Path, fault: ReadFault) {
        let mut state = self.state();
        if let Some(id) = state.disk.find(path) {
            state.read_faults.push((id, fault));
        }
    }

    /// Reads are right again.
    pub fn clear_read_faults(&self) {
        self.state().read_faults.clear();
    }

    /// True once the machine has lost its power.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Changes made so far.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// From now on every operation is written down.
    pub fn keep_operations(&self) {
        self.state().operations.get_or_insert_default();
    }

    /// What was written down since `keep_operations`.
    pub fn operations(&self) -> Vec<FileOperation> {
        self.state().operations.clone().unwrap_or_default()
    }

    /// From now on the moment of every change is kept, to lose the power at it later.
    pub fn keep_points(&self) {
        self.state().points.get_or_insert_default();
    }

    /// The moments kept since the last call.
    pub fn take_points(&self) -> Vec<ChangePoint> {
        self.state().points.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What a machine finds that starts after a power loss now. This file system stays as it is.
    pub fn crash(&self, loss: impl Into<Loss>) -> SimulatedFiles {
        self.state().disk.crash(loss.into())
    }

    /// Changes of contents that a power loss now may take.
    pub fn unsynced(&self) -> usize {
        self.state().disk.unsynced().len()
    }

    /// The same files once more, with everything that is not synced yet, and without faults.
    pub fn fork(&self) -> SimulatedFiles {
        let disk = self.state().disk.clone();
        SimulatedFiles { state: Arc::new(Mutex::new(State { disk, ..State::default() })) }
    }

    /// A hash of all names and contents as readers see them.
    pub fn fingerprint(&self) -> u128 {
        let state = self.state();
        let mut lanes = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
        for (path, directory) in &state.disk.directories {
            for (name, id) in &directory.live {
                for text in [path.as_os_str().as_encoded_bytes(), name.as_bytes()] {
                    mix(&mut lanes, text.len() as u64);
                    text.iter().for_each(|&byte| mix(&mut lanes, u64::from(byte)));
                }
                state.disk.files[*id].content.live.hash(&mut lanes);
            }
        }
        u128::from(lanes[0]) << 64 | u128::from(lanes[1])
    }

    /// Flips one bit of a file, on the disk too.
    pub fn flip_bit(&self, path: &Path, bit: u64) {
        let mut state = self.state();
        if let Some(id) = state.disk.find(path) {
            let content = &mut state.disk.files[id].content;
            content.live.flip(bit);
            content.base.flip(bit);
        }
    }
}

struct SimulatedFile {
    files: SimulatedFiles,
    id: usize,
    is_synced: bool,
    /// Past the page cache: whole pages only.
    is_direct: bool,
}

impl FileSystem for SimulatedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let id = match state.disk.find(path) {
            Some(id) if mode.truncate && state.disk.files[id].content.live.len() > 0 => {
                let cut = |disk: &mut Disk, fate| disk.may_have(id, Edit::SetLen(0), fate);
                state.begin(OperationKind::Truncate, path, 0, 0, cut)?;
                state.disk.edit(id, Edit::SetLen(0), Fate::Unsynced);
                id
            }
            Some(id) => {
                state.begin(OperationKind::Open, path, 0, 0, |_, _| {})?;
                id
            }
            None if mode.create => {
                let create = |disk: &mut Disk, _| {
                    disk.create(path);
                };
                state.begin(OperationKind::Create, path, 0, 0, create)?;
                state.disk.create(path)
            }
            None => return Err(not_found(path)),
        };
        drop(state);
        Ok(Arc::new(SimulatedFile { files: self.clone(), id, is_synced: mode.synced, is_direct: false }))
    }

    /// Directories are durable at once.
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.state().disk.directory(path);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.begin(OperationKind::List, dir, 0, 0, |_, _| {})?;
        let found = state.disk.directories.get(dir);
        Ok(found.map(|directory| directory.live.keys().cloned().collect()).unwrap_or_default())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.disk.find(from).is_none() {
            return Err(not_found(from));
        }
        let rename = |disk: &mut Disk, _| disk.rename(from, to);
        state.begin(OperationKind::Rename, from, 0, 0, rename)?;
        state.disk.rename(from, to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.disk.find(path).is_none() {
            return Err(not_found(path));
        }
        let remove = |disk: &mut Disk, _| disk.remove(path);
        state.begin(OperationKind::Remove, path, 0, 0, remove)?;
        state.disk.remove(path);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.begin(OperationKind::SyncDir, dir, 0, 0, |_, _| {})?;
        if !state.fault.directory_syncs_lie {
            state.disk.directory(dir).sync();
        }
        Ok(())
    }

    fn exists(&self, path: &Path) -> bool {
        let state = self.state();
        state.disk.find(path).is_some() || state.disk.directories.contains_key(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
        struct Held(SimulatedFiles, PathBuf);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.state().locks.retain(|path| *path != self.1);
            }
        }
        let mut state = self.state();
        if state.locks.iter().any(|locked| locked == path) {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        state.locks.push(path.to_path_buf());
        Ok(Box::new(Held(self.clone(), path.to_path_buf())))
    }
}

impl SimulatedFile {
    /// Begins an operation on this file by its name.
    fn begin(
        &self,
        state: &mut State,
        kind: OperationKind,
        offset: u64,
        length: u64,
        in_flight: impl Fn(&mut Disk, Fate),
    ) -> io::Result<()> {
        let path = Arc::clone(&state.disk.files[self.id].path);
        state.begin(kind, &path, offset, length, in_flight)
    }
}

impl File for SimulatedFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let page = PAGE_BYTES as u64;
        if self.is_direct && !(offset.is_multiple_of(page) && (out.len() as u64).is_multiple_of(page)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a part of a page is read past the page cache"));
        }
        let mut state = self.files.state();
        self.begin(&mut state, OperationKind::Read, offset, out.len() as u64, |_, _| {})?;
        let most = state.fault.read_bytes_max.unwrap_or(usize::MAX).max(1).min(out.len());
        let count = state.disk.files[self.id].content.live.read(&mut out[..most], offset);
        let read = offset..offset + count as u64;
        for (id, fault) in &state.read_faults {
            match fault {
                _ if *id != self.id => {}
                ReadFault::Unreadable(range) if range.start < read.end && read.start < range.end => {
                    return Err(state.error("simulated unreadable sector"));
                }
                ReadFault::Flipped(bit) if read.contains(&(bit / 8)) => {
                    out[(bit / 8 - offset) as usize] ^= 1 << (bit % 8);
                }
                _ => {}
            }
        }
        Ok(count)
    }

    fn read_cached_at(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let is_cold = self.files.state().fault.is_cache_cold;
        if is_cold { Ok(None) } else { self.read_at(out, offset).map(Some) }
    }

    fn is_cached_at(&self, _offset: u64, _length: usize) -> Option<bool> {
        Some(!self.files.state().fault.is_cache_cold)
    }

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        Some(Arc::new(SimulatedFile { files: self.files.clone(), id: self.id, is_synced: false, is_direct: true }))
    }

    fn is_removed(&self) -> io::Result<bool> {
        let state = self.files.state();
        Ok(state.disk.find(&state.disk.files[self.id].path) != Some(self.id))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.files.state();
        let (id, kind) = match self.is_synced {
            true => (self.id, OperationKind::SyncedWrite),
            false => (self.id, OperationKind::Write),
        };
        let edit = Edit::Write(offset, Arc::from(bytes));
        let in_flight = |disk: &mut Disk, fate| disk.may_have(id, edit.clone(), fate);
        self.begin(&mut state, kind, offset, bytes.len() as u64, in_flight)?;
        let len = state.disk.files[id].content.live.len() as u64;
        let grows = (offset + bytes.len() as u64).saturating_sub(len).min(bytes.len() as u64);
        let fits = state.take_space(bytes.len(), grows);
        let is_whole = fits == bytes.len();
        let edit = if is_whole { edit } else { Edit::Write(offset, Arc::from(&bytes[..fits])) };
        let is_durable = self.is_synced && is_whole && !state.fault.syncs_lie;
        state.disk.edit(id, edit, if is_durable { Fate::Durable } else { Fate::Unsynced });
        if is_whole { Ok(()) } else { Err(io::Error::from(io::ErrorKind::StorageFull)) }
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.files.state();
        self.begin(&mut state, OperationKind::Len, 0, 0, |_, _| {})?;
        Ok(state.disk.files[self.id].content.live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.files.state();
        let id = self.id;
        let in_flight = |disk: &mut Disk, fate| disk.may_have(id, Edit::SetLen(len), fate);
        self.begin(&mut state, OperationKind::SetLen, 0, len, in_flight)?;
        let grows = len.saturating_sub(state.disk.files[id].content.live.len() as u64);
        if (state.take_space(grows as usize, grows) as u64) < grows {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        state.disk.edit(id, Edit::SetLen(len), Fate::Unsynced);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.files.state();
        let result = self.begin(&mut state, OperationKind::Sync, 0, 0, |_, _| {});
        let (is_off, lies) = (state.is_off, state.fault.syncs_lie);
        let content = &mut state.disk.files[self.id].content;
        match result {
            Ok(()) if !lies => content.sync(),
            // The pages are clean now and will not be written again.
            Err(_) if !is_off => content.forget(),
            _ => {}
        }
        result
    }

    /// On a simulated machine some of the bytes arrive, by its seed. Elsewhere none do: what a power loss leaves without a sync is said by the
    /// loss alone.
    fn write_behind(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.files.state();
        let result = self.begin(&mut state, OperationKind::WriteBehind, offset, length, |_, _| {});
        let (is_off, lies) = (state.is_off, state.fault.syncs_lie);
        let content = &mut state.disk.files[self.id].content;
        match (&result, simulation::current()) {
            (Ok(()), Some(simulation)) if !lies => content.send(offset..offset + length, || simulation.random()),
            // Which pages could not be written nobody is told, and none of them will be written again.
            (Err(_), _) if !is_off => content.forget(),
            _ => {}
        }
        result
    }
}

#[cfg(test)]
mod tests;
