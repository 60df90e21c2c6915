//! What a power loss leaves: every change since the last sync is there, lost, or torn.

use super::bytes::Bytes;
use crate::random::{Randomness, SeededRandomness};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Sectors of a torn write arrive in any order.
const SECTOR_BYTES: usize = 512;

/// Where the newest write is torn: what is before the place arrived, what is behind it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// Behind its first byte.
    First,
    /// In its middle.
    Middle,
    /// Before its last byte.
    Last,
    /// In its middle, and it is the second half that arrived.
    Behind,
}

/// Which of the changes that were not synced a power loss takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All: nothing that was not synced survives.
    All,
    /// None: everything arrived in time.
    None,
    /// All contents; names survive: files that are there and empty.
    Contents,
    /// All names; contents survive: files that are whole and nowhere.
    Names,
    /// All contents but the newest write; names survive.
    OnlyLast,
    /// The newest write only.
    AllButLast,
    /// None, but the newest write is torn.
    Torn(Tear),
    /// By chance: each change of contents is there, lost, cut at some byte, or there in some sectors only. Of the names of each
    /// directory the first few changes are there, or any of them.
    Seed(u64),
}

impl Loss {
    /// The extremes.
    pub const NAMED: [Loss; 10] = [
        Loss::All,
        Loss::None,
        Loss::Contents,
        Loss::Names,
        Loss::OnlyLast,
        Loss::AllButLast,
        Loss::Torn(Tear::First),
        Loss::Torn(Tear::Middle),
        Loss::Torn(Tear::Last),
        Loss::Torn(Tear::Behind),
    ];

    /// The extremes, then as many drawn by chance.
    pub fn kinds(seeds: u64) -> impl Iterator<Item = Loss> {
        Loss::NAMED.into_iter().chain((0..seeds).map(Loss::Seed))
    }
}

impl From<u64> for Loss {
    fn from(seed: u64) -> Self {
        Loss::Seed(seed)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::All => f.write_str("everything unsynced lost"),
            Loss::None => f.write_str("nothing lost"),
            Loss::Contents => f.write_str("unsynced contents lost, names kept"),
            Loss::Names => f.write_str("unsynced names lost, contents kept"),
            Loss::OnlyLast => f.write_str("of unsynced contents only the newest write kept"),
            Loss::AllButLast => f.write_str("only the newest write lost"),
            Loss::Torn(tear) => write!(f, "the newest write torn ({tear:?})"),
            Loss::Seed(seed) => write!(f, "loss by seed {seed}"),
        }
    }
}

/// A change of a file's contents.
#[derive(Clone)]
pub(super) enum Edit {
    Write(u64, Arc<[u8]>),
    SetLen(u64),
}

impl Edit {
    pub(super) fn apply(&self, bytes: &mut Bytes) {
        match self {
            Edit::Write(offset, data) => bytes.write(data, *offset),
            Edit::SetLen(len) => bytes.set_len(*len as usize),
        }
    }

    /// Applies what a torn write left of itself.
    fn apply_torn(&self, bytes: &mut Bytes, tear: Tear) {
        let Edit::Write(offset, data) = self else { return self.apply(bytes) };
        let middle = data.len() / 2;
        match tear {
            Tear::First => bytes.write(&data[..data.len().min(1)], *offset),
            Tear::Middle => bytes.write(&data[..middle], *offset),
            Tear::Last => bytes.write(&data[..data.len().saturating_sub(1)], *offset),
            Tear::Behind => bytes.write(&data[middle..], offset + middle as u64),
        }
    }

    fn apply_by_chance(&self, bytes: &mut Bytes, random: &SeededRandomness) {
        match (random.next_u64() % 4, self) {
            (0, _) => {}
            (1, Edit::Write(offset, data)) if !data.is_empty() => {
                let cut = random.next_u64() as usize % data.len();
                bytes.write(&data[..cut], *offset);
            }
            (2, Edit::Write(offset, data)) => {
                for (at, sector) in data.chunks(SECTOR_BYTES).enumerate() {
                    if random.next_u64().is_multiple_of(2) {
                        bytes.write(sector, offset + (at * SECTOR_BYTES) as u64);
                    }
                }
            }
            _ => self.apply(bytes),
        }
    }
}

/// Whether a change of contents survives a power loss.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Only by luck; a sync makes it durable.
    Unsynced,
    /// Always.
    Durable,
    /// Only by luck, and no later sync helps: a sync that was to carry it failed, and the system takes it for written since.
    Forgotten,
}

#[derive(Clone)]
pub(super) struct Change {
    pub edit: Edit,
    pub fate: Fate,
    /// Counts the changes of all files and directories.
    pub order: u64,
}

/// A file's bytes.
#[derive(Clone, Default)]
pub(super) struct Content {
    /// As a reader sees them.
    pub live: Bytes,
    /// As they are on the disk without `changes`.
    pub base: Bytes,
    /// What came since, in order. The first of them is not durable.
    pub changes: Vec<Change>,
}

impl Content {
    /// A change that is in force for readers.
    pub(super) fn apply(&mut self, edit: Edit, fate: Fate, order: u64) {
        edit.apply(&mut self.live);
        self.changes.push(Change { edit, fate, order });
        self.fold();
    }

    /// A sync that worked.
    pub(super) fn sync(&mut self) {
        for change in &mut self.changes {
            if change.fate == Fate::Unsynced {
                change.fate = Fate::Durable;
            }
        }
        self.fold();
    }

    /// A sync that failed.
    pub(super) fn forget(&mut self) {
        for change in &mut self.changes {
            if change.fate == Fate::Unsynced {
                change.fate = Fate::Forgotten;
            }
        }
    }

    fn fold(&mut self) {
        if self.changes.iter().all(|change| change.fate == Fate::Durable) {
            self.base = self.live.clone();
            self.changes.clear();
            return;
        }
        let durable = self.changes.iter().take_while(|change| change.fate == Fate::Durable).count();
        for change in self.changes.drain(..durable) {
            change.edit.apply(&mut self.base);
        }
    }

    /// The newest write that is not durable.
    pub(super) fn newest(&self) -> Option<u64> {
        let is_open = |change: &&Change| change.fate != Fate::Durable && matches!(change.edit, Edit::Write(..));
        self.changes.iter().rev().find(is_open).map(|change| change.order)
    }

    /// What is on the disk after a power loss. `newest` is the newest unsynced write of all files.
    pub(super) fn after(&self, loss: Loss, newest: Option<u64>, random: &SeededRandomness) -> Bytes {
        let mut bytes = self.base.clone();
        for change in &self.changes {
            let is_newest = Some(change.order) == newest;
            let survives = match (change.fate, loss) {
                (Fate::Durable, _) => true,
                (_, Loss::All | Loss::Contents) => false,
                (_, Loss::None | Loss::Names) => true,
                (_, Loss::OnlyLast) => is_newest,
                (_, Loss::AllButLast) => !is_newest,
                (_, Loss::Torn(tear)) if is_newest => {
                    change.edit.apply_torn(&mut bytes, tear);
                    false
                }
                (_, Loss::Torn(_)) => true,
                (_, Loss::Seed(_)) => {
                    change.edit.apply_by_chance(&mut bytes, random);
                    false
                }
            };
            if survives {
                change.edit.apply(&mut bytes);
            }
        }
        bytes
    }
}

/// A change of a directory. Files are told by number, so that each may survive without those before it.
#[derive(Clone)]
pub(super) enum NameChange {
    Link(String, usize),
    Unlink(String),
    Rename { from: String, to: String, id: usize },
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Link(name, id) => {
                names.insert(name.clone(), *id);
            }
            NameChange::Unlink(name) => {
                names.remove(name);
            }
            NameChange::Rename { from, to, id } => {
                names.remove(from);
                names.insert(to.clone(), *id);
            }
        }
    }
}

/// The names in a directory.
#[derive(Clone, Default)]
pub(super) struct Directory {
    pub live: BTreeMap<String, usize>,
    pub durable: BTreeMap<String, usize>,
    /// What came since the last sync of the directory, in order.
    pub changes: Vec<NameChange>,
}

impl Directory {
    pub(super) fn apply(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.changes.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.durable = self.live.clone();
        self.changes.clear();
    }

    /// The names that are there after a power loss.
    pub(super) fn after(&self, loss: Loss, random: &SeededRandomness) -> BTreeMap<String, usize> {
        let mut names = self.durable.clone();
        match loss {
            Loss::All | Loss::Names => {}
            Loss::Seed(_) if !self.changes.is_empty() => {
                let is_prefix = random.next_u64().is_multiple_of(2);
                let kept = random.next_u64() as usize % (self.changes.len() + 1);
                for (at, change) in self.changes.iter().enumerate() {
                    let survives = if is_prefix { at < kept } else { random.next_u64().is_multiple_of(2) };
                    if survives {
                        change.apply(&mut names);
                    }
                }
            }
            _ => self.changes.iter().for_each(|change| change.apply(&mut names)),
        }
        names
    }
}
