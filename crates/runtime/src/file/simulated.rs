//! A file system in memory that forgets what was not synced.
//!
//! Every file has bytes as a reader sees them and bytes that a crash leaves. A sync copies the first to the second; a
//! crash keeps the second and, for each write since, decides by the seed whether it is there, lost, or torn at some byte.
//! Names follow the same rule: creations, renames and removals since the last `sync_dir` of their directory survive as a
//! prefix chosen by the seed.

use super::{File, FileSystem, OpenMode};
use crate::random::{Randomness, SeededRandomness};
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What goes wrong on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fault {
    /// Bytes that may be written in all before the disk is full.
    pub space_left: Option<u64>,
    /// This many more writes succeed, then one fails.
    pub writes_until_error: Option<u64>,
    /// This many more syncs succeed, then one fails.
    pub syncs_until_error: Option<u64>,
    /// This many more changes (writes, syncs, renames, removals) take place, then none does: the machine is off.
    pub changes_until_off: Option<u64>,
}

#[derive(Clone, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Writes and cuts since the last sync, in order.
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(offset, data) => {
                let start = *offset as usize;
                if bytes.len() < start + data.len() {
                    bytes.resize(start + data.len(), 0);
                }
                bytes[start..start + data.len()].copy_from_slice(data);
            }
            Change::SetLen(len) => bytes.resize(*len as usize, 0),
        }
    }
}

#[derive(Clone)]
enum NameChange {
    Link(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
}

#[derive(Default)]
struct State {
    contents: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
    locks: Vec<PathBuf>,
    fault: Fault,
    changes: u64,
}

/// A simulated file system; clones share it.
#[derive(Clone, Default)]
pub struct SimulatedFiles {
    state: Arc<Mutex<State>>,
}

fn apply_name(names: &mut BTreeMap<PathBuf, usize>, change: &NameChange) {
    match change {
        NameChange::Link(path, id) => {
            names.insert(path.clone(), *id);
        }
        NameChange::Rename(from, to) => {
            if let Some(id) = names.remove(from) {
                names.insert(to.clone(), id);
            }
        }
        NameChange::Unlink(path) => {
            names.remove(path);
        }
    }
}

fn other(text: &str) -> io::Error {
    io::Error::other(text.to_string())
}

impl State {
    /// Counts a change against the faults.
    fn change(&mut self, is_write: bool, is_sync: bool, bytes: u64) -> io::Result<()> {
        let step = |counter: &mut Option<u64>| match counter {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        if step(&mut self.fault.changes_until_off) {
            self.fault.changes_until_off = Some(0);
            return Err(other("simulated power loss"));
        }
        self.changes += 1;
        if is_write {
            if step(&mut self.fault.writes_until_error) {
                return Err(other("simulated write error"));
            }
            if let Some(left) = &mut self.fault.space_left {
                if *left < bytes {
                    return Err(io::Error::from(io::ErrorKind::StorageFull));
                }
                *left -= bytes;
            }
        }
        if is_sync && step(&mut self.fault.syncs_until_error) {
            return Err(other("simulated sync error"));
        }
        Ok(())
    }
}

impl SimulatedFiles {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what goes wrong from now on.
    pub fn set_fault(&self, fault: Fault) {
        self.state().fault = fault;
    }

    /// Changes made so far.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// What a machine finds that starts after a power loss now. This file system stays as it is.
    pub fn crash(&self, seed: u64) -> SimulatedFiles {
        let state = self.state();
        let random = SeededRandomness::new(seed);
        let mut names = state.durable_names.clone();
        let kept = random.next_u64() as usize % (state.unsynced_names.len() + 1);
        for change in &state.unsynced_names[..kept] {
            apply_name(&mut names, change);
        }
        let contents = state
            .contents
            .iter()
            .map(|content| {
                let mut bytes = content.durable.clone();
                for change in &content.unsynced {
                    match (random.next_u64() % 3, change) {
                        (0, _) => {}
                        (1, Change::Write(offset, data)) if !data.is_empty() => {
                            let torn = random.next_u64() as usize % data.len();
                            Change::Write(*offset, data[..torn].to_vec()).apply(&mut bytes);
                        }
                        _ => change.apply(&mut bytes),
                    }
                }
                Content { live: bytes.clone(), durable: bytes, unsynced: Vec::new() }
            })
            .collect();
        let state = State { contents, durable_names: names.clone(), names, ..State::default() };
        SimulatedFiles { state: Arc::new(Mutex::new(state)) }
    }

    /// Flips one bit of a file.
    pub fn flip_bit(&self, path: &Path, bit: u64) {
        let mut state = self.state();
        if let Some(&id) = state.names.get(path) {
            let content = &mut state.contents[id];
            content.live[(bit / 8) as usize] ^= 1 << (bit % 8);
            content.durable = content.live.clone();
        }
    }
}

struct SimulatedFile {
    files: SimulatedFiles,
    id: usize,
    is_synced: bool,
}

impl FileSystem for SimulatedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let id = match state.names.get(path) {
            Some(&id) => id,
            None if mode.create => {
                state.change(false, false, 0)?;
                let id = state.contents.len();
                state.contents.push(Content::default());
                state.names.insert(path.to_path_buf(), id);
                state.unsynced_names.push(NameChange::Link(path.to_path_buf(), id));
                id
            }
            None => {
                return Err(io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display())));
            }
        };
        if mode.truncate && !state.contents[id].live.is_empty() {
            state.change(true, false, 0)?;
            state.contents[id].live.clear();
            state.contents[id].unsynced.push(Change::SetLen(0));
        }
        drop(state);
        Ok(Arc::new(SimulatedFile { files: self.clone(), id, is_synced: mode.synced }))
    }

    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let names = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(names.filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change(false, false, 0)?;
        if !state.names.contains_key(from) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let change = NameChange::Rename(from.to_path_buf(), to.to_path_buf());
        apply_name(&mut state.names, &change);
        state.unsynced_names.push(change);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change(false, false, 0)?;
        if state.names.remove(path).is_none() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        state.unsynced_names.push(NameChange::Unlink(path.to_path_buf()));
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change(false, true, 0)?;
        state.durable_names = state.names.clone();
        state.unsynced_names.clear();
        Ok(())
    }

    fn exists(&self, path: &Path) -> bool {
        let state = self.state();
        state.names.contains_key(path) || state.names.keys().any(|name| name.parent() == Some(path))
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

impl File for SimulatedFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.files.state();
        let live = &state.contents[self.id].live;
        let start = (offset as usize).min(live.len());
        let count = out.len().min(live.len() - start);
        out[..count].copy_from_slice(&live[start..start + count]);
        Ok(count)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.files.state();
        let grows = (offset + bytes.len() as u64).saturating_sub(state.contents[self.id].live.len() as u64);
        let result = state.change(true, false, grows);
        let content = &mut state.contents[self.id];
        let change = Change::Write(offset, bytes.to_vec());
        if let Err(error) = result {
            // A write that the power loss met may be on the disk in part.
            content.unsynced.push(change);
            return Err(error);
        }
        change.apply(&mut content.live);
        content.unsynced.push(change);
        if self.is_synced {
            drop(state);
            return self.sync();
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.files.state().contents[self.id].live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.files.state();
        let grows = len.saturating_sub(state.contents[self.id].live.len() as u64);
        state.change(true, false, grows)?;
        let content = &mut state.contents[self.id];
        let change = Change::SetLen(len);
        change.apply(&mut content.live);
        content.unsynced.push(change);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.files.state();
        state.change(false, true, 0)?;
        let content = &mut state.contents[self.id];
        content.durable = content.live.clone();
        content.unsynced.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_survives_and_what_was_not_may_not() {
        let files = SimulatedFiles::default();
        let dir = Path::new("/d");
        let file = files.open(&dir.join("a"), OpenMode::CREATE).expect("opens");
        file.write_all_at(b"durable", 0).expect("writes");
        file.sync().expect("syncs");
        files.sync_dir(dir).expect("syncs");
        file.write_all_at(b"DURABLE", 0).expect("writes");
        files.rename(&dir.join("a"), &dir.join("b")).expect("renames");
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let after = files.crash(seed);
            let name = after.list(dir).expect("lists").remove(0);
            let mut bytes = [0; 7];
            let found = after.open(&dir.join(&name), OpenMode::READ).expect("opens");
            assert_eq!(found.read_full_at(&mut bytes, 0).ok(), Some(7));
            assert!(bytes.eq_ignore_ascii_case(b"durable"));
            seen.insert((name, bytes));
        }
        assert!(seen.len() > 8, "both names, and the write whole, torn and lost: {}", seen.len());
    }
}
