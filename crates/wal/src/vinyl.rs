//! Files of Tarantool's disk engine, to be moved from: which runs hold the rows of which space, and the statements in them.
//!
//! `.vylog` says which indexes there are, how their keys are cut into ranges, and which slices of which runs belong to a range. A run is a
//! `.run` file of statements, in the order of their keys and, of one key, the newest first; its `.index` file says which lsns are in it. Nothing
//! here is written.

use crate::error::WalError;
use crate::row::Row;
use crate::xlog::{XlogReader, numbered};
use runtime::FileSystem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tuple::msgpack::{MsgpackError, Reader};
use tuple::{IndexId, Lsn, SpaceId};

/// Types of records of a `.vylog`.
mod record {
    pub(super) const CREATE_INDEX: u64 = 0;
    pub(super) const DROP_INDEX: u64 = 1;
    pub(super) const INSERT_RANGE: u64 = 2;
    pub(super) const DELETE_RANGE: u64 = 3;
    pub(super) const INSERT_SLICE: u64 = 8;
    pub(super) const DELETE_SLICE: u64 = 9;
    pub(super) const DUMP_INDEX: u64 = 10;
    pub(super) const FORGET_INDEX: u64 = 14;
    pub(super) const PREPARE_INDEX: u64 = 15;
}

/// Row types of `.index` and `.run` files.
const RUN_INFO: u16 = 100;
const ROW_INDEX: u16 = 102;
/// Key of the greatest lsn in a run's info.
const MAX_LSN: u64 = 4;

/// A record of a `.vylog`. What is absent is 0.
#[derive(Default)]
struct Record {
    kind: u64,
    index: u64,
    range: u64,
    run: u64,
    begin: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    index_id: u64,
    space_id: u64,
    slice: u64,
    dump_lsn: Lsn,
    create_lsn: Lsn,
}

impl Record {
    fn decode(body: &[u8]) -> Result<Option<Record>, MsgpackError> {
        let mut record = Record::default();
        let mut reader = Reader::new(body);
        for _ in 0..reader.read_map()? {
            if reader.read_uint()? != wire::key::TUPLE {
                reader.read_value()?;
                continue;
            }
            let mut fields = Reader::new(reader.read_value()?);
            if fields.read_array()? < 2 {
                return Ok(None);
            }
            record.kind = fields.read_uint()?;
            for _ in 0..fields.read_map()? {
                let key = fields.read_uint()?;
                let value = fields.read_value()?;
                let number = || Reader::new(value).read_uint();
                match key {
                    0 => record.index = number()?,
                    1 => record.range = number()?,
                    2 => record.run = number()?,
                    3 => record.begin = Some(value.to_vec()),
                    4 => record.end = Some(value.to_vec()),
                    5 => record.index_id = number()?,
                    6 => record.space_id = number()?,
                    8 => record.slice = number()?,
                    9 => record.dump_lsn = Lsn(number()? as i64),
                    12 => record.create_lsn = Lsn(number()? as i64),
                    _ => {}
                }
            }
        }
        Ok(Some(record))
    }
}

/// An index of Tarantool's disk engine that is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VinylIndex {
    /// The space.
    pub space_id: SpaceId,
    /// The index of the space.
    pub index_id: IndexId,
    /// The lsn of the row that made it.
    pub created_lsn: Lsn,
    /// Rows of the log up to here are in its runs.
    pub dumped_lsn: Lsn,
    /// Its runs, those with older statements first.
    pub runs: Vec<VinylRun>,
}

/// A key, or none.
pub type Bound = Option<Vec<u8>>;

/// A run that an index uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VinylRun {
    /// The file.
    pub path: PathBuf,
    /// The parts of it that count: from a key on, and up to one that does not belong to it. Keys are msgpack arrays; none: without a bound.
    pub slices: Vec<(Bound, Bound)>,
    max_lsn: Lsn,
}

/// The newest `.vylog` of a directory and the indexes that it says are in use; none if there is no such file. Blocks.
///
/// Errors: `Io`; `Corrupt` if it, or an `.index` file that it names, cannot be read.
pub fn vinyl_indexes(files: &dyn FileSystem, dir: &Path) -> Result<Option<(PathBuf, Vec<VinylIndex>)>, WalError> {
    if !files.exists(dir) {
        return Ok(None);
    }
    let Some((_, path)) = numbered(files, dir, ".vylog")?.pop() else { return Ok(None) };
    let mut indexes: BTreeMap<u64, VinylIndex> = BTreeMap::new();
    let mut ranges: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut slices: BTreeMap<u64, (u64, Record)> = BTreeMap::new();
    let mut made = BTreeSet::new();
    let mut wrong = None;
    for_each_row(files, &path, |row, offset| match Record::decode(row.body) {
        Ok(Some(record)) => match record.kind {
            record::PREPARE_INDEX | record::CREATE_INDEX => {
                let known = indexes.entry(record.index).or_default();
                // One that was prepared has said whose it is.
                if record.space_id != 0 {
                    known.space_id = SpaceId(record.space_id as u32);
                    known.index_id = IndexId(record.index_id as u32);
                }
                if record.kind == record::PREPARE_INDEX {
                    return;
                }
                made.insert(record.index);
                known.created_lsn = record.create_lsn;
                known.dumped_lsn = known.dumped_lsn.max(record.dump_lsn);
            }
            record::DROP_INDEX | record::FORGET_INDEX => _ = indexes.remove(&record.index),
            record::INSERT_RANGE => _ = ranges.entry(record.index).or_default().insert(record.range),
            record::DELETE_RANGE => ranges.values_mut().for_each(|ranges| _ = ranges.remove(&record.range)),
            record::INSERT_SLICE => _ = slices.insert(record.slice, (record.range, record)),
            record::DELETE_SLICE => _ = slices.remove(&record.slice),
            record::DUMP_INDEX => {
                if let Some(index) = indexes.get_mut(&record.index) {
                    index.dumped_lsn = index.dumped_lsn.max(record.dump_lsn);
                }
            }
            _ => {}
        },
        _ => wrong = wrong.or(Some(offset)),
    })?;
    if let Some(offset) = wrong {
        return Err(WalError::Corrupt { file: path, offset, what: "this is no record of a vylog".to_string() });
    }
    indexes.retain(|number, _| made.contains(number));
    let empty = BTreeSet::new();
    for (number, index) in &mut indexes {
        let own = ranges.get(number).unwrap_or(&empty);
        let mut runs: BTreeMap<u64, VinylRun> = BTreeMap::new();
        for (_, record) in slices.values().filter(|(range, _)| own.contains(range)) {
            let name = format!("{:020}.run", record.run);
            let path = dir.join(index.space_id.to_string()).join(index.index_id.to_string()).join(name);
            let run = runs.entry(record.run).or_insert(VinylRun { path, slices: Vec::new(), max_lsn: Lsn(0) });
            run.slices.push((record.begin.clone(), record.end.clone()));
        }
        index.runs = runs.into_values().collect();
        for run in &mut index.runs {
            run.max_lsn = max_lsn(files, &run.path.with_extension("index"))?;
        }
        index.runs.sort_by_key(|run| run.max_lsn);
    }
    Ok(Some((path, indexes.into_values().collect())))
}

/// Statements of a run in the order of their keys and, of one key, the newest first. Blocks.
///
/// Errors: `Io`; `Corrupt` with the place.
pub fn for_each_statement(
    files: &dyn FileSystem,
    path: &Path,
    mut visit: impl FnMut(&Row<'_>),
) -> Result<(), WalError> {
    for_each_row(files, path, |row, _| {
        if row.header.kind != ROW_INDEX {
            visit(row);
        }
    })
}

/// The greatest lsn of the statements of a run.
fn max_lsn(files: &dyn FileSystem, path: &Path) -> Result<Lsn, WalError> {
    let mut found = None;
    for_each_row(files, path, |row, _| {
        if row.header.kind == RUN_INFO {
            found = find_uint(row.body, MAX_LSN).ok().flatten();
        }
    })?;
    let what = "it does not say which lsns are in its run".to_string();
    found.map(|lsn| Lsn(lsn as i64)).ok_or_else(|| WalError::Corrupt { file: path.to_path_buf(), offset: 0, what })
}

fn find_uint(body: &[u8], wanted: u64) -> Result<Option<u64>, MsgpackError> {
    let mut reader = Reader::new(body);
    for _ in 0..reader.read_map()? {
        let key = reader.read_uint()?;
        let value = reader.read_value()?;
        if key == wanted {
            return Reader::new(value).read_uint().map(Some);
        }
    }
    Ok(None)
}

fn for_each_row(files: &dyn FileSystem, path: &Path, visit: impl FnMut(&Row<'_>, u64)) -> Result<(), WalError> {
    let mut reader = XlogReader::open(files, path)?;
    let is_log = path.extension().is_some_and(|kind| kind == "vylog");
    match reader.for_each_row(visit) {
        Ok(_) => Ok(()),
        // What was being written when Tarantool stopped.
        Err(damage) if is_log && damage.flip.is_none() && reader.find_later_block(damage.offset)?.is_none() => Ok(()),
        Err(damage) => {
            let (file, offset) = (path.to_path_buf(), damage.offset);
            Err(WalError::Corrupt { file, offset, what: damage.to_string() })
        }
    }
}
