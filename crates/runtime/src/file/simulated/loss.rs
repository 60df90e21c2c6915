//! What a power loss leaves: every change since the last sync is there, lost, or torn.

use super::bytes::Bytes;
use crate::random::{Randomness, SeededRandomness};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Sectors of a torn write arrive in any order.
const SECTOR_BYTES: usize = 512;

/// Where a write is torn: what is before the place arrived, what is behind it did not.
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

/// Which of the changes that were not synced a power loss takes. Changes of contents are counted back from the newest, number 0, over
/// all files.
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
    /// All contents but this change; names survive.
    AllBut(usize),
    /// Only this change.
    Only(usize),
    /// None, but this write is torn.
    Torn(usize, Tear),
    /// By chance: each change of contents is there, lost, cut at some byte, or there in some sectors only. Of the names of each
    /// directory the first few changes are there, or any of them.
    Seed(u64),
}

impl Loss {
    /// Changes that `kinds` loses, keeps and tears one by one; the older ones of a long row are left to chance.
    pub const SINGLED_OUT_MAX: usize = 8;

    /// Every kind of loss for so many unsynced changes of contents: the named ones, then those by the seeds.
    pub fn kinds(unsynced: usize, seeds: Range<u64>) -> impl Iterator<Item = Loss> {
        let single = (0..unsynced.min(Loss::SINGLED_OUT_MAX)).flat_map(|at| {
            let torn = [Tear::First, Tear::Middle, Tear::Last, Tear::Behind].map(|tear| Loss::Torn(at, tear));
            [Loss::Only(at), Loss::AllBut(at)].into_iter().chain(torn)
        });
        let all = [Loss::All, Loss::None, Loss::Contents, Loss::Names];
        all.into_iter().chain(single).chain(seeds.map(Loss::Seed))
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
            Loss::AllBut(at) => write!(f, "unsynced contents lost but the write {at} before the newest"),
            Loss::Only(at) => write!(f, "only the write {at} before the newest lost"),
            Loss::Torn(at, tear) => write!(f, "the write {at} before the newest torn ({tear:?})"),
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

    /// Bytes that are sent to the disk ahead of a sync: of each write in this range all arrive, the first sectors, or none yet.
    pub(super) fn send(&mut self, range: Range<u64>, random: impl Fn() -> u64) {
        let mut changes = Vec::with_capacity(self.changes.len());
        for mut change in std::mem::take(&mut self.changes) {
            if let (Edit::Write(offset, data), Fate::Unsynced) = (&change.edit, change.fate)
                && *offset < range.end
                && range.start < offset + data.len() as u64
            {
                let sectors = data.len().div_ceil(SECTOR_BYTES);
                let arrived = match random() % 3 {
                    0 => 0,
                    1 => data.len(),
                    _ => (random() as usize % sectors) * SECTOR_BYTES,
                };
                let edit = Edit::Write(*offset, Arc::from(&data[..arrived]));
                let rest = Edit::Write(offset + arrived as u64, Arc::from(&data[arrived..]));
                changes.push(Change { edit, fate: Fate::Durable, order: change.order });
                if arrived == data.len() {
                    continue;
                }
                change.edit = rest;
            }
            changes.push(change);
        }
        self.changes = changes;
        self.fold();
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

    /// Changes that are not durable, by their order.
    pub(super) fn unsynced(&self) -> impl Iterator<Item = u64> {
        self.changes.iter().filter(|change| change.fate != Fate::Durable).map(|change| change.order)
    }

    /// What is on the disk after a power loss. `chosen` is the change that the loss speaks of.
    pub(super) fn after(&self, loss: Loss, chosen: Option<u64>, random: &SeededRandomness) -> Bytes {
        let mut bytes = self.base.clone();
        for change in &self.changes {
            let is_chosen = Some(change.order) == chosen;
            let survives = match (change.fate, loss) {
                (Fate::Durable, _) => true,
                (_, Loss::All | Loss::Contents) => false,
                (_, Loss::None | Loss::Names) => true,
                (_, Loss::AllBut(_)) => is_chosen,
                (_, Loss::Only(_)) => !is_chosen,
                (_, Loss::Torn(_, tear)) if is_chosen => {
                    change.edit.apply_torn(&mut bytes, tear);
                    false
                }
                (_, Loss::Torn(..)) => true,
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
