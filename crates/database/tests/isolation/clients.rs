//! Clients that do one statement after another and tell in words what came of it.

use super::*;

/// Tree indexes: primary, unique, not unique.
pub(crate) const TREES: u32 = 512;
/// A hash as primary index, a unique one with nulls.
pub(crate) const HASHES: u32 = 513;
/// Not logged.
pub(crate) const TEMPORARY: u32 = 514;
/// One index, so that on disk most statements look at nothing.
pub(crate) const BLIND: u32 = 515;
/// Where the rows of some spaces lie.
pub(crate) const ENGINES: [&str; 2] = ["memtx", "vinyl"];
pub(crate) const CONFLICT: u32 = ErrorCode::TransactionConflict as u32;

thread_local! {
    /// Statements that a transaction may have which waits and is rolled back; what has more keeps them to itself.
    static IN_PLACE_MAX: Cell<usize> = const { Cell::new(16) };
    /// Rows of one slice: what a transaction of more leaves behind is freed in slices.
    static SLICE_ROWS: Cell<usize> = const { Cell::new(2000) };
}

pub(crate) fn choose_slice_rows(rows: usize) {
    SLICE_ROWS.set(rows);
}

/// Whoever waits keeps its writes to itself, and commits in slices.
pub(crate) fn choose_slices(seed: u64) {
    IN_PLACE_MAX.set(0);
    SLICE_ROWS.set(1 + seed as usize % 3);
}

pub(crate) fn choose_limits(seed: u64) {
    IN_PLACE_MAX.set([16, 0, 2][seed as usize % 3]);
    SLICE_ROWS.set([2000, 1, 3, 2000][seed as usize % 4]);
}

/// Rows in memory and on disk; transactions that are rolled back while they wait, and such that keep their writes to themselves.
pub(crate) fn on_each_engine(test: impl Fn(&str)) {
    for in_place_max in [16, 0, 2] {
        IN_PLACE_MAX.set(in_place_max);
        ENGINES.into_iter().for_each(&test);
    }
}

pub(crate) fn open(files: &SimulatedFiles) -> Rc<Database> {
    open_on(Arc::new(files.clone()), Arc::new(ManualClock::default()), Config::default().vinyl_cache)
}

pub(crate) fn open_on(files: Arc<dyn FileSystem>, clock: Arc<dyn Clock>, vinyl_cache: u64) -> Rc<Database> {
    let config = Config {
        vinyl_cache,
        // Without filters every run is looked into.
        vinyl_bloom_fpr: 1.0,
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        vinyl_dir: PathBuf::from("/db"),
        memtx_memory: 64 << 20,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        slice_rows: SLICE_ROWS.get(),
        ..Config::default()
    };
    let environment =
        Environment { files, clock, randomness: Arc::new(SeededRandomness::new(1)), wake: Arc::new(|| {}) };
    let database = Database::new(config, environment).unwrap();
    database.open().unwrap();
    database.limits.in_place_max.set(IN_PLACE_MAX.get());
    database
}

pub(crate) fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => msgpack::encode_nil(out),
        Value::Bool(value) => msgpack::encode_bool(out, *value),
        Value::Number(value) => msgpack::encode_int(out, value.as_i64().unwrap()),
        Value::String(value) => msgpack::encode_str(out, value.as_bytes()),
        Value::Array(values) => {
            msgpack::encode_array(out, values.len() as u32);
            values.iter().for_each(|value| encode(value, out));
        }
        Value::Object(pairs) => {
            msgpack::encode_map(out, pairs.len() as u32);
            for (key, value) in pairs {
                msgpack::encode_str(out, key.as_bytes());
                encode(value, out);
            }
        }
    }
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

pub(crate) fn text(row: &[u8]) -> String {
    let mut text = String::new();
    msgpack::format_value(row, &mut text);
    text
}

/// What one statement does.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Insert(u32, Value),
    Replace(u32, Value),
    Update(u32, u32, Value, Value),
    Upsert(u32, Value, Value),
    Delete(u32, u32, Value),
    Get(u32, u32, Value),
    Select(u32, u32, IteratorKind, Value, u64, u64),
    Count(u32, u32, IteratorKind, Value),
    /// Begins a scan that goes on between other statements.
    Iterate(u32, IteratorKind, Value),
    Next,
    Savepoint,
    RollbackTo,
    Truncate(u32),
}

/// A transaction's owner.
pub(crate) struct Client {
    pub(crate) context: Rc<Context>,
    /// A scan that goes on between other statements.
    pub(crate) cursor: Option<Cursor>,
    pub(crate) savepoint: Option<Savepoint>,
}

impl Client {
    pub(crate) fn new(database: &Database) -> Self {
        let context = Rc::new(Context::for_request(database.open_session(SessionKind::Background, None)));
        Client { context, cursor: None, savepoint: None }
    }

    pub(crate) fn begin(&mut self, database: &Database) {
        database.begin(&self.context).unwrap();
        (self.cursor, self.savepoint) = (None, None);
    }

    /// Does it and tells what came of it, in words.
    pub(crate) fn run(&mut self, database: &Database, op: &Op) -> Result<String, u32> {
        self.try_run(database, op).map_err(|error| error.code())
    }

    pub(crate) fn try_run(&mut self, database: &Database, op: &Op) -> database::Result<String> {
        let context = &self.context;
        let found = |row: Option<tuple::Tuple>| row.map_or("nothing".to_string(), |row| text(row.data()));
        let execute =
            |space, operation: Operation<'_>| database.execute(context, &database.space(space)?, operation).map(found);
        match op {
            Op::Insert(space, row) => execute(SpaceId(*space), Operation::Insert { tuple: &bytes(row) }),
            Op::Replace(space, row) => execute(SpaceId(*space), Operation::Replace { tuple: &bytes(row) }),
            Op::Update(space, index_id, key, ops) => {
                let (key, ops) = (bytes(key), bytes(ops));
                execute(
                    SpaceId(*space),
                    Operation::Update { index_id: IndexId(*index_id), key: &key, ops: &ops, index_base: 0 },
                )
            }
            Op::Upsert(space, row, ops) => {
                execute(SpaceId(*space), Operation::Upsert { tuple: &bytes(row), ops: &bytes(ops), index_base: 0 })
            }
            Op::Delete(space, index_id, key) => {
                execute(SpaceId(*space), Operation::Delete { index_id: IndexId(*index_id), key: &bytes(key) })
            }
            Op::Get(space, index_id, key) => {
                let key = bytes(key);
                database
                    .get(context, &database.space(SpaceId(*space))?, IndexId(*index_id), Key::decode(&key)?)
                    .map(found)
            }
            Op::Select(space, index_id, kind, key, offset, limit) => {
                let (key, mut rows) = (bytes(key), Vec::new());
                let space = database.space(SpaceId(*space))?;
                let key = Key::decode(&key)?;
                let request =
                    ScanRequest { index_id: IndexId(*index_id), kind: *kind, key, offset: *offset, limit: *limit };
                database.select(context, &space, &request, |row| {
                    rows.push(text(row));
                    true
                })?;
                if space.id == HASHES && *index_id == 0 {
                    // In any order.
                    rows.sort();
                }
                Ok(rows.join(" "))
            }
            Op::Count(space, index_id, kind, key) => {
                let key = bytes(key);
                let request = ScanRequest::new(IndexId(*index_id), *kind, Key::decode(&key)?);
                let count = database.count(context, &database.space(SpaceId(*space))?, &request)?;
                Ok(count.to_string())
            }
            Op::Iterate(index_id, kind, key) => {
                let (space, key) = (database.space(SpaceId(TREES))?, bytes(key));
                let request = ScanRequest::new(IndexId(*index_id), *kind, Key::decode(&key)?);
                self.cursor = Some(database.cursor(context, &space, &request)?);
                Ok(String::new())
            }
            Op::Next => match &mut self.cursor {
                Some(cursor) => cursor.next(database, context).map(found),
                None => database.resume(context).map(|()| String::new()),
            },
            Op::Savepoint => {
                self.savepoint = Some(database.savepoint(context, None)?);
                Ok(String::new())
            }
            Op::Truncate(space) => {
                database.truncate(context, &database.space(SpaceId(*space))?).map(|()| String::new())
            }
            Op::RollbackTo => match self.savepoint.take() {
                Some(savepoint) => database.rollback_to_savepoint(context, &savepoint).map(|()| String::new()),
                None => database.resume(context).map(|()| String::new()),
            },
        }
    }
}

pub(crate) fn create_spaces(database: &Database) {
    create_spaces_in(database, "memtx");
}

/// `engine`: where the rows of two of them lie.
pub(crate) fn create_spaces_in(database: &Database, engine: &str) {
    let mut admin = Client::new(database);
    let mut insert = |space, row: Value| admin.run(database, &Op::Insert(space, row)).unwrap();
    for (id, name, engine, options) in [
        (TREES, "trees", engine, json!({})),
        (HASHES, "hashes", "memtx", json!({})),
        (TEMPORARY, "temporary", "memtx", json!({"temporary": true})),
        (BLIND, "blind", engine, json!({})),
    ] {
        insert(SPACE_ID.0, json!([id, 1, name, engine, 0, options, []]));
    }
    let unique = json!({"unique": true});
    insert(INDEX_ID.0, json!([TREES, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
    insert(INDEX_ID.0, json!([TREES, 1, "unique", "tree", unique, [[1, "unsigned"], [2, "unsigned"]]]));
    insert(INDEX_ID.0, json!([TREES, 2, "any", "tree", {"unique": false}, [[2, "unsigned"]]]));
    insert(INDEX_ID.0, json!([HASHES, 0, "primary", "hash", unique, [[0, "string"]]]));
    let nullable = json!([{"field": 1, "type": "unsigned", "is_nullable": true}]);
    insert(INDEX_ID.0, json!([HASHES, 1, "nullable", "tree", unique, nullable]));
    insert(INDEX_ID.0, json!([TEMPORARY, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
    insert(INDEX_ID.0, json!([BLIND, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
}
