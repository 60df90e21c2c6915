//! Moving in from Tarantool's disk engine: the first start on its directory reads the rows that are in its files into spaces on disk.
//!
//! That happens while Tarantool's snapshot is the newest one. The rows of a space are read when the snapshot has made its primary index, before there
//! are others: those are built when everything is read. Then the log is replayed, but for what Tarantool had dumped of it. A checkpoint
//! follows, and from then on our own snapshot is the newest. Until it is there every start reads the rows again, from the beginning: what
//! an earlier one has left of its own files is set aside. Tarantool's files are not touched.

use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::replay::decode_body;
use crate::session::Context;
use crate::start::start_error;
use crate::statement::{Operation, row_kind};
use hashbrown::{HashMap, HashSet};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use storage::lsm::LSM_DIR;
use tuple::msgpack::Reader;
use tuple::{IndexId, KeyDef, Lsn, SpaceId};
use wal::{Bound, Row, VinylIndex, VinylRun, WalError, XlogReader};

/// Rows of Tarantool's disk engine that are to be read.
#[derive(Default)]
pub(crate) struct Incoming {
    /// Primary indexes by space.
    indexes: HashMap<SpaceId, VinylIndex>,
    /// Rows of the log up to here are in what was read, by space.
    dumped_lsns: HashMap<SpaceId, Lsn>,
    /// Tarantool's snapshot is the newest, in this directory.
    foreign_dir: Option<PathBuf>,
    /// Spaces that have a primary index by the `.vylog`, whenever it was made.
    named: HashSet<SpaceId>,
    /// Spaces of the snapshot whose primary index the `.vylog` does not name, or names as one that was made later.
    unnamed: Vec<SpaceId>,
}

/// A statement of a run, kept until all of its key are there.
struct Statement {
    kind: u16,
    body: Vec<u8>,
}

impl Incoming {
    /// Looks for files of Tarantool's disk engine behind one of its snapshots. Blocks. Errors: they cannot be read.
    pub(crate) fn look(database: &Database, dir: &Path, snapshot: &Path, signature: i64) -> Result<Incoming> {
        let files = &*database.environment.files;
        // What is wrong with the snapshot is told when it is read.
        let is_foreign = XlogReader::open(files, snapshot).is_ok_and(|reader| reader.meta.is_foreign);
        if !is_foreign {
            return Ok(Incoming::default());
        }
        let Some((path, found)) = wal::vinyl_indexes(files, dir).map_err(start_error)? else {
            return Ok(Incoming { foreign_dir: Some(dir.to_path_buf()), ..Incoming::default() });
        };
        let named = found.iter().filter(|index| index.index_id == 0).map(|index| index.space_id).collect();
        // An index that was made behind the snapshot gets all its rows from the log.
        let is_wanted = |index: &VinylIndex| index.index_id == 0 && index.created_lsn <= signature;
        let indexes: HashMap<SpaceId, VinylIndex> =
            found.into_iter().filter(is_wanted).map(|index| (index.space_id, index)).collect();
        if !indexes.is_empty() {
            tracing::info!(
                "{} names {} spaces on disk, whose rows are moved into files of our own",
                path.display(),
                indexes.len()
            );
            set_aside(database, &dir.join(LSM_DIR))?;
        }
        Ok(Incoming { indexes, named, foreign_dir: Some(dir.to_path_buf()), ..Incoming::default() })
    }

    /// True if anything was read.
    pub(crate) fn has_moved(&self) -> bool {
        !self.dumped_lsns.is_empty()
    }

    /// True if a row of the log is in what was read.
    pub(crate) fn covers(&self, space_id: SpaceId, lsn: Lsn) -> bool {
        self.dumped_lsns.get(&space_id).is_some_and(|dumped_lsn| lsn <= *dumped_lsn)
    }

    /// Everything is read, the log too: are there spaces whose rows are in files that nobody has named? One that the log has emptied, dropped or given
    /// another primary index needs none.
    ///
    /// Errors: there are, unless it is by force, which tells them.
    pub(crate) fn check_complete(&self, database: &Database, is_forced: bool) -> Result<()> {
        let Some(dir) = &self.foreign_dir else { return Ok(()) };
        let lost: Vec<String> = self
            .unnamed
            .iter()
            .filter(|id| !self.named.contains(*id))
            .filter_map(|id| database.catalog.space(*id))
            .filter(|space| space.disk().is_some() && space.has_index(IndexId::PRIMARY))
            .map(|space| space.name().to_string())
            .collect();
        if lost.is_empty() {
            return Ok(());
        }
        let (dir, names) = (dir.display(), lost.join(", "));
        let what = format!("no .vylog in {dir} names the files with the rows of spaces that are on disk: {names}");
        if is_forced {
            tracing::warn!("PASSED OVER damage: {what}; these rows are lost");
            return Ok(());
        }
        Err(Error::system(format!(
            "{what}; copy the .vylog and the directories with .run and .index files beside the snapshot; force_recovery would lose these rows"
        )))
    }

    /// Reads the rows of a space that has just got its primary index. Blocks.
    pub(crate) fn read_space(&mut self, database: &Database, context: &Context, space: &Rc<Space>) -> Result<()> {
        if space.disk().is_none() {
            return Ok(());
        }
        let Some(index) = self.indexes.remove(&space.id) else {
            if self.foreign_dir.is_some() && !database.is_replaying_log() {
                self.unnamed.push(space.id);
            }
            return Ok(());
        };
        let Some(key_def) = space.index_def(IndexId::PRIMARY).map(|def| Rc::clone(&def.key_def)) else { return Ok(()) };
        let mut statements = 0;
        for run in &index.runs {
            statements += read_run(database, context, space, &key_def, run)?;
        }
        let (name, runs) = (space.name(), index.runs.len());
        tracing::info!("{statements} statements from {runs} runs of Tarantool for space '{name}'");
        self.dumped_lsns.insert(space.id, index.dumped_lsn);
        Ok(())
    }
}

/// Files of our own that an earlier attempt has left: Tarantool's are what counts.
fn set_aside(database: &Database, dir: &Path) -> Result<()> {
    let files = &*database.environment.files;
    let witness = PathBuf::from(format!("{}.confirmed", dir.display()));
    for from in [dir.to_path_buf(), witness].into_iter().filter(|path| files.exists(path)) {
        let free = (0..).map(|number| PathBuf::from(format!("{}.{number}.lost", from.display())));
        let Some(to) = free.into_iter().find(|to| !files.exists(to)) else { continue };
        tracing::warn!("{} is of an earlier attempt to move rows; it is kept as {}", from.display(), to.display());
        files.rename(&from, &to).map_err(Error::system)?;
    }
    dir.parent().map_or(Ok(()), |parent| files.sync_dir(parent)).map_err(Error::system)
}

/// Applies the statements of a run. Returns how many there were.
fn read_run(
    database: &Database,
    context: &Context,
    space: &Rc<Space>,
    key_def: &KeyDef,
    run: &VinylRun,
) -> Result<u64> {
    let mut count = 0;
    let mut failed: Option<Error> = None;
    let mut key = Vec::new();
    let mut group: Vec<Statement> = Vec::new();
    let bounds: Vec<(Bound, Bound)> = run
        .slices
        .iter()
        .map(|(begin, end)| {
            (begin.as_ref().map(|key| bytes_of_key(key_def, key)), end.as_ref().map(|key| bytes_of_key(key_def, key)))
        })
        .collect();
    let read = wal::for_each_statement(&*database.environment.files, &run.path, |row| {
        if failed.is_some() {
            return;
        }
        count += 1;
        let this = bytes_of(key_def, row);
        if this.cmp(&key) != Ordering::Equal {
            failed = apply(database, context, space, &mut group).err();
            key = this;
        }
        let is_inside = |(begin, end): &(Bound, Bound)| {
            begin.as_ref().is_none_or(|begin| *begin <= key) && end.as_ref().is_none_or(|end| key < *end)
        };
        if bounds.iter().any(is_inside) {
            group.push(Statement { kind: row.header.kind, body: row.body.to_vec() });
        }
    });
    read.map_err(start_error)?;
    failed.map_or_else(|| apply(database, context, space, &mut group), Err).map_err(|error| {
        let what = format!("a row cannot be applied: {error}");
        start_error(WalError::Corrupt { file: run.path.clone(), offset: 0, what })
    })?;
    Ok(count)
}

/// The statements of one key, the newest of which comes first.
fn apply(database: &Database, context: &Context, space: &Rc<Space>, group: &mut Vec<Statement>) -> Result<()> {
    // What is below one that takes the place of all is of no account.
    let last = group.iter().position(|statement| statement.kind != row_kind::UPSERT);
    group.truncate(last.map_or(usize::MAX, |last| last + 1));
    for Statement { kind, body } in group.drain(..).rev() {
        let body = decode_body(&body).map_err(Error::illegal)?;
        let operation = match kind {
            row_kind::INSERT | row_kind::REPLACE => Operation::Replace { tuple: body.tuple },
            row_kind::DELETE => Operation::Delete { index_id: IndexId::PRIMARY, key: body.key },
            row_kind::UPSERT => Operation::Upsert { tuple: body.tuple, ops: body.ops, index_base: body.index_base },
            other => return Err(Error::system(format!("statements of type {other} are not known"))),
        };
        database.put_moved(context, space, operation)?;
    }
    Ok(())
}

/// The bytes that the key of a statement compares by.
fn bytes_of(key_def: &KeyDef, row: &Row<'_>) -> Vec<u8> {
    let Ok(body) = decode_body(row.body) else { return Vec::new() };
    if row.header.kind == row_kind::DELETE {
        return bytes_of_key(key_def, body.key);
    }
    let mut bytes = Vec::new();
    key_def.ordered_of_row(body.tuple, &mut bytes);
    bytes
}

fn bytes_of_key(key_def: &KeyDef, key: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(key);
    let parts = reader.read_array().unwrap_or(0).min(key_def.part_count() as u32);
    let mut bytes = Vec::new();
    key_def.ordered_of_key(reader.rest(), parts, &mut bytes);
    bytes
}
