//! Operations, each done to a database and to the model alike.

use crate::model::{Model, SpaceModel};
use crate::world::{Engine, WAL_MAX_SIZE, in_fiber, request};
use database::{Context, Database, INDEX_ID, Operation, SPACE_ID, TRUNCATE_ID};
use runtime::fiber;
use std::rc::Rc;
use tuple::{IndexId, SpaceId, msgpack};

/// The space that most operations work on.
pub const LEFT: u32 = 512;
/// The spaces that come and go; the first exists in the beginning.
pub const RIGHTS: [u32; 2] = [513, 514];
/// The secondary index that comes and goes.
const OTHER_INDEX: u32 = 2;
/// Bytes of a large row: many pages, more than a log file.
const LARGE_BYTES: usize = 100_000;
/// Bytes of a row that leaves no room in its log file.
const FILLING_BYTES: usize = WAL_MAX_SIZE as usize - 12_000;
/// Rows that updates and deletes find in the beginning.
const FIRST_ROWS: u64 = 4;

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A new row.
    Insert,
    /// A row in place of another.
    Replace,
    /// A row of 100 KB.
    LargeInsert,
    /// A row in each of two spaces, and one deleted.
    TwoSpaces,
    /// A number in a row grows.
    Update,
    /// A row that is there grows, one that is not comes.
    Upsert,
    /// A row goes.
    Delete,
    /// All rows go.
    Truncate,
    /// Another secondary index, over rows that are there.
    CreateIndex,
    /// That index goes.
    DropIndex,
    /// Another space with two indexes and a row.
    CreateSpace,
    /// The newest space goes, with indexes and rows.
    DropSpace,
    /// A snapshot, a new log file, and the removal of what is not needed any more.
    Checkpoint,
    /// A row that fills the log file, so that the next begins another.
    Rotate,
    /// A transaction of all kinds of statements, taken back.
    RolledBack,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 15] = [
        Step::Insert,
        Step::Replace,
        Step::LargeInsert,
        Step::TwoSpaces,
        Step::Update,
        Step::Upsert,
        Step::Delete,
        Step::Truncate,
        Step::CreateIndex,
        Step::DropIndex,
        Step::CreateSpace,
        Step::DropSpace,
        Step::Checkpoint,
        Step::Rotate,
        Step::RolledBack,
    ];

    /// Does it to a database as one transaction. `salt` makes its keys and values its own. Errors: as the database's; nothing was done then.
    pub fn run(self, database: &Rc<Database>, context: &Context, salt: u64, engine: Engine) -> database::Result<()> {
        may_wait(database, context, move |database, context| self.attempt(database, context, salt, engine))
    }

    fn attempt(self, database: &Rc<Database>, context: &Context, salt: u64, engine: Engine) -> database::Result<()> {
        let (at, small) = (100 + salt, 10 + salt);
        match self {
            Step::Insert => insert(database, context, LEFT, &row(at, small, 20)),
            Step::Replace => replace(database, context, LEFT, &row(1, small, 30)),
            Step::LargeInsert => insert(database, context, LEFT, &row(at, small, LARGE_BYTES)),
            Step::Rotate => replace(database, context, LEFT, &row(2, small, FILLING_BYTES)),
            Step::Delete => delete(database, context, LEFT, &[1 + salt % FIRST_ROWS]),
            Step::Update => execute(
                database,
                context,
                LEFT,
                Operation::Update { index_id: IndexId::PRIMARY, key: &key(&[3]), ops: &add(1), index_base: 0 },
            ),
            Step::Upsert => execute(
                database,
                context,
                LEFT,
                Operation::Upsert { tuple: &row(50, small, 5), ops: &add(1), index_base: 0 },
            ),
            Step::Truncate => database.truncate(context, &database.space(SpaceId(LEFT))?),
            Step::CreateIndex => {
                let row = index_row(LEFT, OTHER_INDEX, "other", "tree", false, 1);
                // Rows are looked at in slices.
                match fiber::current() {
                    None => in_fiber(database, move |database| insert(database, &request(database), INDEX_ID.0, &row)),
                    Some(_) => insert(database, context, INDEX_ID.0, &row),
                }
            }
            Step::DropIndex => delete(database, context, INDEX_ID.0, &[u64::from(LEFT), u64::from(OTHER_INDEX)]),
            Step::Checkpoint => database.make_checkpoint(),
            Step::TwoSpaces => in_transaction(database, context, |database| {
                insert(database, context, LEFT, &row(at, small, 15))?;
                insert(database, context, newest_right(database), &row(at, small, 15))?;
                delete(database, context, LEFT, &[4])
            }),
            Step::CreateSpace => in_transaction(database, context, |database| {
                let absent = RIGHTS.into_iter().find(|id| database.catalog.space(SpaceId(*id)).is_none());
                create_space(database, context, engine, absent.unwrap_or(LEFT), &format!("right{salt}"))?;
                insert(database, context, absent.unwrap_or(LEFT), &row(1, small, 9))
            }),
            Step::DropSpace => in_transaction(database, context, |database| {
                // Never the left one: with none to drop this is refused.
                let id = u64::from(database.space(SpaceId(newest_right(database).max(RIGHTS[0])))?.id);
                delete(database, context, INDEX_ID.0, &[id, 1])?;
                delete(database, context, INDEX_ID.0, &[id, 0])?;
                delete(database, context, TRUNCATE_ID.0, &[id])?;
                delete(database, context, SPACE_ID.0, &[id])
            }),
            Step::RolledBack => {
                database.begin(context)?;
                let done = (|| {
                    insert(database, context, LEFT, &row(at, small, 40))?;
                    delete(database, context, LEFT, &[1])?;
                    replace(database, context, LEFT, &row(2, small, 40))?;
                    // On disk rows are not looked at in a transaction.
                    let may_build =
                        engine == Engine::Memory && !database.space(SpaceId(LEFT))?.has_index(IndexId(OTHER_INDEX));
                    if may_build {
                        let index = index_row(LEFT, OTHER_INDEX, "other", "tree", false, 1);
                        insert(database, context, INDEX_ID.0, &index)?;
                    }
                    database.truncate(context, &database.space(SpaceId(LEFT))?)?;
                    insert(database, context, LEFT, &row(at, small, 40))
                })();
                database.rollback(context)?;
                done
            }
        }
    }

    /// Does it to the model. Returns false, and does nothing, where a database must refuse.
    pub fn apply(self, model: &mut Model, salt: u64) -> bool {
        let (at, small) = (100 + salt, 10 + salt);
        let newest = RIGHTS.into_iter().rfind(|id| model.spaces.contains_key(id));
        let absent = RIGHTS.into_iter().find(|id| !model.spaces.contains_key(id));
        let left = model.spaces.entry(LEFT).or_default();
        match self {
            Step::Insert => put_new(left, at, small, 20),
            Step::LargeInsert => put_new(left, at, small, LARGE_BYTES),
            Step::Replace => put(left, 1, small, 30),
            Step::Rotate => put(left, 2, small, FILLING_BYTES),
            Step::Delete => {
                left.rows.remove(&(1 + salt % FIRST_ROWS));
                true
            }
            Step::Update => {
                grow(left, 3);
                true
            }
            Step::Upsert => grow(left, 50) || put(left, 50, small, 5),
            Step::Truncate => {
                left.rows.clear();
                true
            }
            Step::CreateIndex => left.indexes.insert(OTHER_INDEX, "other".to_string()).is_none(),
            Step::DropIndex => {
                left.indexes.remove(&OTHER_INDEX);
                true
            }
            Step::Checkpoint | Step::RolledBack => true,
            Step::TwoSpaces => {
                // Without another space the second row meets the first.
                let Some(newest) = newest else { return false };
                if left.rows.contains_key(&at) {
                    return false;
                }
                put(left, at, small, 15);
                left.rows.remove(&4);
                model.spaces.get_mut(&newest).is_some_and(|right| put_new(right, at, small, 15))
            }
            Step::CreateSpace => {
                let Some(absent) = absent else { return false };
                let mut space = new_space(&format!("right{salt}"));
                put(&mut space, 1, small, 9);
                model.spaces.insert(absent, space);
                true
            }
            Step::DropSpace => newest.is_some_and(|newest| model.spaces.remove(&newest).is_some()),
        }
    }
}

/// Makes the spaces and rows that operations begin with, in one transaction. Errors: as the database's.
pub fn prepare(database: &Rc<Database>, context: &Context, engine: Engine) -> database::Result<()> {
    in_transaction(database, context, |database| {
        for (id, name) in [(LEFT, "left"), (RIGHTS[0], "right")] {
            create_space(database, context, engine, id, name)?;
        }
        (1..=FIRST_ROWS).try_for_each(|id| insert(database, context, LEFT, &row(id, id % 3, 10)))
    })
}

/// What `prepare` makes.
pub fn prepared() -> Model {
    let mut left = new_space("left");
    for id in 1..=FIRST_ROWS {
        put(&mut left, id, id % 3, 10);
    }
    Model { spaces: [(LEFT, left), (RIGHTS[0], new_space("right"))].into() }
}

/// A row that a recovered database must take.
pub fn probe(database: &Rc<Database>, context: &Context) -> database::Result<()> {
    may_wait(database, context, |database, context| replace(database, context, LEFT, &row(7777, 1, 10)))
}

/// What `probe` does; false if there is no space for it.
pub fn apply_probe(model: &mut Model) -> bool {
    model.spaces.get_mut(&LEFT).is_some_and(|left| put(left, 7777, 1, 10))
}

/// `[id, value, text]`.
fn row(id: u64, value: u64, text_bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text_bytes + 20);
    msgpack::encode_array(&mut out, 3);
    msgpack::encode_uint(&mut out, id);
    msgpack::encode_uint(&mut out, value);
    // Not one byte again and again: a piece in a wrong place must show.
    let text: Vec<u8> = (0..text_bytes).map(|at| b'a' + ((at / 7 + at / 509 + id as usize) % 26) as u8).collect();
    msgpack::encode_str(&mut out, &text);
    out
}

fn key(parts: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, parts.len() as u32);
    parts.iter().for_each(|part| msgpack::encode_uint(&mut out, *part));
    out
}

/// `[['+', 1, by]]`.
fn add(by: u64) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, 1);
    msgpack::encode_array(&mut out, 3);
    msgpack::encode_str(&mut out, b"+");
    msgpack::encode_uint(&mut out, 1);
    msgpack::encode_uint(&mut out, by);
    out
}

fn new_space(name: &str) -> SpaceModel {
    let indexes = [(0, "primary".to_string()), (1, "value".to_string())].into();
    SpaceModel { name: name.to_string(), indexes, ..SpaceModel::default() }
}

fn put(space: &mut SpaceModel, id: u64, value: u64, text_bytes: usize) -> bool {
    space.rows.insert(id, Rc::from(row(id, value, text_bytes)));
    true
}

fn put_new(space: &mut SpaceModel, id: u64, value: u64, text_bytes: usize) -> bool {
    !space.rows.contains_key(&id) && put(space, id, value, text_bytes)
}

/// Adds 1 to the second field of a row; false if it is not there.
fn grow(space: &mut SpaceModel, id: u64) -> bool {
    let Some(row) = space.rows.get_mut(&id) else { return false };
    // One digit of a number below 128 is one byte: behind the array's header and the id.
    let mut changed = row.to_vec();
    changed[2] += 1;
    *row = Rc::from(changed);
    true
}

fn newest_right(database: &Database) -> u32 {
    RIGHTS.into_iter().rfind(|id| database.catalog.space(SpaceId(*id)).is_some()).unwrap_or(LEFT)
}

fn execute(database: &Database, context: &Context, space: u32, operation: Operation<'_>) -> database::Result<()> {
    let space = database.space(SpaceId(space))?;
    database.execute(context, &space, operation).map(|_| ())
}

fn insert(database: &Database, context: &Context, space: u32, row: &[u8]) -> database::Result<()> {
    execute(database, context, space, Operation::Insert { tuple: row })
}

fn replace(database: &Database, context: &Context, space: u32, row: &[u8]) -> database::Result<()> {
    execute(database, context, space, Operation::Replace { tuple: row })
}

fn delete(database: &Database, context: &Context, space: u32, parts: &[u64]) -> database::Result<()> {
    execute(database, context, space, Operation::Delete { index_id: IndexId::PRIMARY, key: &key(parts) })
}

/// What has to wait is done again in a fiber, as a connection does.
fn may_wait(
    database: &Rc<Database>,
    context: &Context,
    work: impl Fn(&Rc<Database>, &Context) -> database::Result<()> + 'static,
) -> database::Result<()> {
    match work(database, context) {
        Err(error) if error.is_needs_fiber() => in_fiber(database, move |database| work(database, &request(database))),
        result => result,
    }
}

fn in_transaction(
    database: &Database,
    context: &Context,
    work: impl FnOnce(&Database) -> database::Result<()>,
) -> database::Result<()> {
    database.begin(context)?;
    let done = work(database).and_then(|()| database.commit(context));
    if done.is_err() {
        database.abandon(context);
    }
    done
}

fn create_space(database: &Database, context: &Context, engine: Engine, id: u32, name: &str) -> database::Result<()> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, 7);
    msgpack::encode_uint(&mut out, u64::from(id));
    msgpack::encode_uint(&mut out, 1);
    msgpack::encode_str(&mut out, name.as_bytes());
    msgpack::encode_str(&mut out, engine.name());
    msgpack::encode_uint(&mut out, 0);
    msgpack::encode_map(&mut out, 0);
    msgpack::encode_array(&mut out, 0);
    insert(database, context, SPACE_ID.0, &out)?;
    insert(database, context, INDEX_ID.0, &index_row(id, 0, "primary", "tree", true, 0))?;
    insert(database, context, INDEX_ID.0, &index_row(id, 1, "value", "tree", false, 1))
}

/// A row of `_index` with one unsigned part.
fn index_row(space: u32, id: u32, name: &str, kind: &str, is_unique: bool, field: u64) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, 6);
    msgpack::encode_uint(&mut out, u64::from(space));
    msgpack::encode_uint(&mut out, u64::from(id));
    msgpack::encode_str(&mut out, name.as_bytes());
    msgpack::encode_str(&mut out, kind.as_bytes());
    msgpack::encode_map(&mut out, 1);
    msgpack::encode_str(&mut out, b"unique");
    msgpack::encode_bool(&mut out, is_unique);
    msgpack::encode_array(&mut out, 1);
    msgpack::encode_array(&mut out, 2);
    msgpack::encode_uint(&mut out, field);
    msgpack::encode_str(&mut out, b"unsigned");
    out
}
