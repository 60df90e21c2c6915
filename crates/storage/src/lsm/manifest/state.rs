//! What the manifest says, and how edits change it.

use super::NEXT_ID_MAX;
use crate::lsm::cursor::Cursor;
use crate::lsm::error::LsmError;
use std::collections::BTreeMap;
use std::path::Path;
use tuple::{IndexId, Lsn, SpaceId};

/// A tree: one index of a space, from its creation or truncation to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeState {
    /// Its number, never used for another.
    pub tree_id: u64,
    /// The space.
    pub space_id: SpaceId,
    /// The index of the space.
    pub index_id: IndexId,
    /// The position of the row of the log that made it.
    pub created_lsn: Lsn,
    /// The position of the row that ended it. It has no ranges then.
    pub dropped_lsn: Option<Lsn>,
    /// Rows of the log up to here are in its runs.
    pub dumped_lsn: Lsn,
    /// They cover all keys, in ascending order; the first begins with the empty key.
    pub ranges: Vec<RangeState>,
}

/// A part of the keys of a tree, up to where the next begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeState {
    /// Its number, never used for another.
    pub range_id: u64,
    /// The least key.
    pub begin: Vec<u8>,
    /// Runs that may have its keys, the newest first.
    pub slices: Vec<u64>,
}

/// A change of what the manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A new tree. Its only range covers all keys, has no slices, and the number 0 within the tree.
    CreateTree {
        /// Its number.
        tree_id: u64,
        /// The space.
        space_id: SpaceId,
        /// The index of the space.
        index_id: IndexId,
        /// The row of the log that makes it; rows up to there count as dumped.
        created_lsn: Lsn,
    },
    /// A dump of a tree is complete.
    Dumped {
        /// The tree.
        tree_id: u64,
        /// Rows of the log up to here are in its runs now.
        dumped_lsn: Lsn,
        /// The run that was written, if there was anything to write.
        run_id: Option<u64>,
        /// Ranges that have keys of the run: it becomes their newest slice.
        ranges: Vec<u64>,
    },
    /// Ranges of a tree give way to others that cover the same keys: compaction, split, join.
    SetRanges {
        /// The tree.
        tree_id: u64,
        /// Ranges that go.
        remove: Vec<u64>,
        /// Ranges that come. One that goes may come again.
        add: Vec<RangeState>,
    },
    /// A tree ends. It is remembered, without ranges, until it is forgotten.
    DropTree {
        /// The tree.
        tree_id: u64,
        /// The row of the log that ends it.
        dropped_lsn: Lsn,
    },
    /// A dropped tree is not asked for any more.
    ForgetTree {
        /// The tree.
        tree_id: u64,
    },
}

impl Edit {
    /// The tree that it changes.
    pub fn tree_id(&self) -> u64 {
        match self {
            Edit::CreateTree { tree_id, .. }
            | Edit::Dumped { tree_id, .. }
            | Edit::SetRanges { tree_id, .. }
            | Edit::DropTree { tree_id, .. }
            | Edit::ForgetTree { tree_id } => *tree_id,
        }
    }
}

/// A part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Numbers below this one were given.
    NextId(u64),
    /// Whose rows these are: the UUID of an instance.
    Instance(String),
    /// A tree as it is.
    Tree(TreeState),
    Edit(Edit),
}

/// All trees, and which numbers are free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) trees: BTreeMap<u64, TreeState>,
    pub(super) next_id: u64,
    /// The UUID of the instance whose rows these are; unknown in a manifest of version 1.
    pub(super) instance: Option<String>,
}

impl State {
    /// Applies a part of a record. Errors: it contradicts what is known; nothing was changed.
    pub(super) fn apply(&mut self, item: &Item) -> Result<(), String> {
        match item {
            Item::NextId(next_id) if *next_id < self.next_id => Err("numbers go backwards".to_string()),
            Item::NextId(next_id) => {
                self.next_id = *next_id;
                Ok(())
            }
            Item::Instance(found) => match &self.instance {
                Some(known) if known != found => Err(format!("it is of {known} and of {found}")),
                _ => {
                    self.instance = Some(found.clone());
                    Ok(())
                }
            },
            Item::Tree(tree) => {
                check_ranges(tree)?;
                match self.trees.insert(tree.tree_id, tree.clone()) {
                    None => Ok(()),
                    Some(_) => Err(format!("tree {} is there twice", tree.tree_id)),
                }
            }
            Item::Edit(edit) => self.apply_edit(edit),
        }
    }

    fn apply_edit(&mut self, edit: &Edit) -> Result<(), String> {
        let id = edit.tree_id();
        if let Edit::CreateTree { tree_id, space_id, index_id, created_lsn } = *edit {
            if self.trees.contains_key(&id) {
                return Err(format!("tree {id} is created twice"));
            }
            let range = RangeState { range_id: 0, begin: Vec::new(), slices: Vec::new() };
            let tree = TreeState {
                tree_id,
                space_id,
                index_id,
                created_lsn,
                dropped_lsn: None,
                dumped_lsn: created_lsn,
                ranges: vec![range],
            };
            self.trees.insert(id, tree);
            return Ok(());
        }
        let tree = self.trees.get_mut(&id).ok_or_else(|| format!("tree {id} is unknown"))?;
        if let Edit::ForgetTree { .. } = edit {
            if tree.dropped_lsn.is_none() {
                return Err(format!("tree {id} is forgotten before it is dropped"));
            }
            self.trees.remove(&id);
            return Ok(());
        }
        if tree.dropped_lsn.is_some() {
            return Err(format!("tree {id} is changed after it was dropped"));
        }
        match edit {
            Edit::Dumped { dumped_lsn, run_id, ranges, .. } => dump(tree, *dumped_lsn, *run_id, ranges),
            Edit::SetRanges { remove, add, .. } => set_ranges(tree, remove, add),
            Edit::DropTree { dropped_lsn, .. } => {
                tree.dropped_lsn = Some(*dropped_lsn);
                tree.ranges.clear();
                Ok(())
            }
            Edit::CreateTree { .. } | Edit::ForgetTree { .. } => Ok(()),
        }
    }

    /// Makes it that of an instance, if nobody's so far. True if it was nobody's. Errors: it is another one's.
    pub(super) fn claim(&mut self, file: &Path, instance: Option<&str>) -> Result<bool, LsmError> {
        match (&self.instance, instance) {
            (Some(owner), Some(own)) if !owner.eq_ignore_ascii_case(own) => {
                Err(LsmError::Foreign { file: file.to_path_buf(), owner: owner.clone(), own: own.to_string() })
            }
            (None, Some(own)) => {
                self.instance = Some(own.to_string());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Everything, as the parts of one record.
    pub(super) fn items(&self) -> Vec<Item> {
        let trees = self.trees.values().cloned().map(Item::Tree);
        let instance = self.instance.iter().cloned().map(Item::Instance);
        std::iter::once(Item::NextId(self.next_id)).chain(instance).chain(trees).collect()
    }
}

fn dump(tree: &mut TreeState, dumped_lsn: Lsn, run_id: Option<u64>, ranges: &[u64]) -> Result<(), String> {
    let id = tree.tree_id;
    if dumped_lsn < tree.dumped_lsn {
        return Err(format!("tree {id} was dumped up to {} before, now up to {dumped_lsn}", tree.dumped_lsn));
    }
    if run_id.is_some() == ranges.is_empty() {
        return Err(format!("a dump of tree {id} has a run without ranges, or ranges without a run"));
    }
    let mut places = Vec::with_capacity(ranges.len());
    for range_id in ranges {
        let place = tree.ranges.iter().position(|range| range.range_id == *range_id);
        let place = place.ok_or_else(|| format!("range {range_id} of tree {id} is unknown"))?;
        if places.contains(&place) || run_id.is_some_and(|run_id| tree.ranges[place].slices.contains(&run_id)) {
            return Err(format!("range {range_id} of tree {id} gets a run twice"));
        }
        places.push(place);
    }
    tree.dumped_lsn = dumped_lsn;
    if let Some(run_id) = run_id {
        places.iter().for_each(|&place| tree.ranges[place].slices.insert(0, run_id));
    }
    Ok(())
}

fn set_ranges(tree: &mut TreeState, remove: &[u64], add: &[RangeState]) -> Result<(), String> {
    let id = tree.tree_id;
    let mut ranges = tree.ranges.clone();
    for range_id in remove {
        let place = ranges.iter().position(|range| range.range_id == *range_id);
        ranges.remove(place.ok_or_else(|| format!("range {range_id} of tree {id} is unknown"))?);
    }
    ranges.extend(add.iter().cloned());
    ranges.sort_by(|a, b| a.begin.cmp(&b.begin));
    let before = std::mem::replace(&mut tree.ranges, ranges);
    check_ranges(tree).inspect_err(|_| tree.ranges = before)
}

/// Ranges cover all keys, each once, and their numbers differ.
fn check_ranges(tree: &TreeState) -> Result<(), String> {
    let id = tree.tree_id;
    if tree.dropped_lsn.is_some() {
        return if tree.ranges.is_empty() { Ok(()) } else { Err(format!("tree {id} is dropped and has ranges")) };
    }
    if tree.ranges.first().is_none_or(|first| !first.begin.is_empty()) {
        return Err(format!("the ranges of tree {id} do not begin with the empty key"));
    }
    if tree.ranges.windows(2).any(|pair| pair[0].begin >= pair[1].begin) {
        return Err(format!("the ranges of tree {id} do not ascend"));
    }
    let mut ids: Vec<u64> = tree.ranges.iter().map(|range| range.range_id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(format!("tree {id} has a range twice"));
    }
    Ok(())
}

const NEXT_ID: u8 = 0;
const TREE: u8 = 1;
const CREATE_TREE: u8 = 2;
const DUMPED: u8 = 3;
const SET_RANGES: u8 = 4;
const DROP_TREE: u8 = 5;
const FORGET_TREE: u8 = 6;
const INSTANCE: u8 = 7;

fn put_numbers(numbers: &[u64], out: &mut Vec<u8>) {
    out.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

/// A number that may be missing.
fn put_option(number: Option<[u8; 8]>, out: &mut Vec<u8>) {
    out.push(u8::from(number.is_some()));
    out.extend_from_slice(&number.unwrap_or_default());
}

fn put_ranges(ranges: &[RangeState], out: &mut Vec<u8>) {
    out.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
    for range in ranges {
        out.extend_from_slice(&range.range_id.to_le_bytes());
        out.extend_from_slice(&(range.begin.len() as u32).to_le_bytes());
        out.extend_from_slice(&range.begin);
        put_numbers(&range.slices, out);
    }
}

impl Item {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut begin = |kind: u8, number: u64| {
            out.push(kind);
            out.extend_from_slice(&number.to_le_bytes());
        };
        match self {
            Item::NextId(next_id) => begin(NEXT_ID, *next_id),
            Item::Instance(uuid) => {
                begin(INSTANCE, uuid.len() as u64);
                out.extend_from_slice(uuid.as_bytes());
            }
            Item::Tree(tree) => {
                begin(TREE, tree.tree_id);
                out.extend_from_slice(&tree.space_id.0.to_le_bytes());
                out.extend_from_slice(&tree.index_id.0.to_le_bytes());
                out.extend_from_slice(&tree.created_lsn.0.to_le_bytes());
                put_option(tree.dropped_lsn.map(|lsn| lsn.0.to_le_bytes()), out);
                out.extend_from_slice(&tree.dumped_lsn.0.to_le_bytes());
                put_ranges(&tree.ranges, out);
            }
            Item::Edit(Edit::CreateTree { tree_id, space_id, index_id, created_lsn }) => {
                begin(CREATE_TREE, *tree_id);
                out.extend_from_slice(&space_id.0.to_le_bytes());
                out.extend_from_slice(&index_id.0.to_le_bytes());
                out.extend_from_slice(&created_lsn.0.to_le_bytes());
            }
            Item::Edit(Edit::Dumped { tree_id, dumped_lsn, run_id, ranges }) => {
                begin(DUMPED, *tree_id);
                out.extend_from_slice(&dumped_lsn.0.to_le_bytes());
                put_option(run_id.map(u64::to_le_bytes), out);
                put_numbers(ranges, out);
            }
            Item::Edit(Edit::SetRanges { tree_id, remove, add }) => {
                begin(SET_RANGES, *tree_id);
                put_numbers(remove, out);
                put_ranges(add, out);
            }
            Item::Edit(Edit::DropTree { tree_id, dropped_lsn }) => {
                begin(DROP_TREE, *tree_id);
                out.extend_from_slice(&dropped_lsn.0.to_le_bytes());
            }
            Item::Edit(Edit::ForgetTree { tree_id }) => begin(FORGET_TREE, *tree_id),
        }
    }

    /// Takes an item off the front; `None` if there is none.
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Option<Item> {
        let kind = cursor.u8()?;
        let number = cursor.u64()?;
        let edit = match kind {
            NEXT_ID => return (number <= NEXT_ID_MAX).then_some(Item::NextId(number)),
            INSTANCE => {
                let bytes = cursor.bytes(usize::try_from(number).ok()?)?;
                return Some(Item::Instance(String::from_utf8(bytes.to_vec()).ok()?));
            }
            TREE => {
                return Some(Item::Tree(TreeState {
                    tree_id: number,
                    space_id: SpaceId(cursor.u32()?),
                    index_id: IndexId(cursor.u32()?),
                    created_lsn: Lsn(cursor.i64()?),
                    dropped_lsn: take_option(cursor)?.map(|bytes| Lsn(i64::from_le_bytes(bytes))),
                    dumped_lsn: Lsn(cursor.i64()?),
                    ranges: take_ranges(cursor)?,
                }));
            }
            CREATE_TREE => Edit::CreateTree {
                tree_id: number,
                space_id: SpaceId(cursor.u32()?),
                index_id: IndexId(cursor.u32()?),
                created_lsn: Lsn(cursor.i64()?),
            },
            DUMPED => Edit::Dumped {
                tree_id: number,
                dumped_lsn: Lsn(cursor.i64()?),
                run_id: take_option(cursor)?.map(u64::from_le_bytes),
                ranges: take_numbers(cursor)?,
            },
            SET_RANGES => Edit::SetRanges { tree_id: number, remove: take_numbers(cursor)?, add: take_ranges(cursor)? },
            DROP_TREE => Edit::DropTree { tree_id: number, dropped_lsn: Lsn(cursor.i64()?) },
            FORGET_TREE => Edit::ForgetTree { tree_id: number },
            _ => return None,
        };
        Some(Item::Edit(edit))
    }
}

fn take_option(cursor: &mut Cursor<'_>) -> Option<Option<[u8; 8]>> {
    let is_there = cursor.u8()?;
    let number = cursor.u64()?.to_le_bytes();
    match is_there {
        0 => Some(None),
        1 => Some(Some(number)),
        _ => None,
    }
}

fn take_numbers(cursor: &mut Cursor<'_>) -> Option<Vec<u64>> {
    // A count that lies costs no memory: the vector grows with what is there.
    (0..cursor.u32()?).map(|_| cursor.u64()).collect()
}

fn take_ranges(cursor: &mut Cursor<'_>) -> Option<Vec<RangeState>> {
    let count = cursor.u32()?;
    let range = |cursor: &mut Cursor<'_>| {
        let range_id = cursor.u64()?;
        let begin = cursor.counted()?.to_vec();
        Some(RangeState { range_id, begin, slices: take_numbers(cursor)? })
    };
    (0..count).map(|_| range(cursor)).collect()
}
