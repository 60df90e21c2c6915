//! The whole database over simulated files: power loss at every change, restarts, a failing log, checkpoints under writes.
#![allow(clippy::unwrap_used, reason = "a test")]

mod rig;

use database::{
    Config, Context, Database, Environment, ErrorCode, INDEX_ID, Key, Operation, SPACE_ID, ScanRequest, Space, State,
    TxnIsolation, TxnOptions,
};
use rig::{config, drive, encode, insert, open_with, request};
use runtime::{Fault, SeededRandomness, SimulatedFiles, SystemClock, SystemFiles, fiber};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use tuple::msgpack::Reader;
use tuple::{IndexId, SpaceId};
use wal::Position;

fn open(files: &SimulatedFiles) -> database::Result<Rc<Database>> {
    open_with(files, Config { wal_max_size: 100_000, ..config() })
}

/// Over files of the machine, with the threads of the real thing.
fn open_real(dir: &std::path::Path) -> database::Result<Rc<Database>> {
    let config = Config {
        wal_dir: dir.to_path_buf(),
        memtx_dir: dir.to_path_buf(),
        memtx_memory: 64 << 20,
        ..Config::default()
    };
    let environment = Environment {
        files: Arc::new(SystemFiles),
        clock: Arc::new(SystemClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment)?;
    database.open()?;
    Ok(database)
}

fn create_space(database: &Database, context: &Context) -> database::Result<()> {
    insert(
        database,
        context,
        SPACE_ID.0,
        r#"[512, 1, "stock", "memtx", 0, {}, [{"name": "id", "type": "unsigned"}]]"#,
    )?;
    insert(database, context, INDEX_ID.0, r#"[512, 0, "primary", "tree", {"unique": true}, [[0, "unsigned"]]]"#)?;
    insert(database, context, INDEX_ID.0, r#"[512, 1, "count", "tree", {"unique": false}, [[1, "unsigned"]]]"#)
}

fn rows(database: &Database, index_id: u32) -> BTreeMap<u64, u64> {
    let context = request(database);
    let Some(space) = database.catalog.space(SpaceId(512)) else { return BTreeMap::new() };
    if !space.has_index(IndexId(index_id)) {
        return BTreeMap::new();
    }
    let mut rows = BTreeMap::new();
    database
        .select(&context, &space, &ScanRequest::new(IndexId(index_id), IteratorKind::All, Key::EMPTY), |row| {
            let mut reader = Reader::new(row);
            reader.read_array().unwrap();
            rows.insert(reader.read_uint().unwrap(), reader.read_uint().unwrap());
            true
        })
        .unwrap();
    rows
}

#[test]
fn power_loss_at_any_change_keeps_acknowledged_writes_and_splits_no_transaction() {
    let mut checked = 0;
    for off_at in (0..260).chain((260..700).step_by(7)) {
        let files = SimulatedFiles::default();
        files.set_fault(Fault { changes_until_off: Some(off_at), ..Fault::default() });
        let mut acknowledged = 0;
        if let Ok(database) = open(&files) {
            let context = request(&database);
            let mut positions = Vec::new();
            if create_space(&database, &context).is_ok() {
                for value in 0..60u64 {
                    // Two rows that must come together.
                    database.begin(&context).unwrap();
                    let done = insert(&database, &context, 512, &format!("[{}, {value}]", value * 2))
                        .and_then(|()| insert(&database, &context, 512, &format!("[{}, {value}]", value * 2 + 1)))
                        .and_then(|()| database.commit(&context));
                    if done.is_err() {
                        database.abandon(&context);
                        break;
                    }
                    positions.push(database.appended());
                    drive(&database);
                    if value % 20 == 10 {
                        let _ = database.make_checkpoint();
                        drive(&database);
                    }
                }
            }
            drive(&database);
            acknowledged = positions.iter().filter(|position| **position <= database.durable()).count();
        }
        for seed in 0..3 {
            let after = files.crash(off_at * 10 + seed);
            let reopened = match open(&after) {
                Ok(reopened) => reopened,
                Err(error) => panic!("off at {off_at}, seed {seed}: {error}"),
            };
            let found = rows(&reopened, 0);
            assert!(found.len() / 2 >= acknowledged, "off at {off_at}: {} of {acknowledged}", found.len() / 2);
            assert_eq!(found.len() % 2, 0, "a transaction is there in part");
            assert!(found.iter().all(|(id, value)| id / 2 == *value));
            assert_eq!(found, rows(&reopened, 1));
            checked += 1;
        }
    }
    assert!(checked > 900);
}

#[test]
fn a_failed_log_takes_back_what_was_not_durable_and_refuses_writes() {
    let files = SimulatedFiles::default();
    let database = open(&files).unwrap();
    let context = request(&database);
    create_space(&database, &context).unwrap();
    insert(&database, &context, 512, "[1, 10]").unwrap();
    drive(&database);
    let before = rows(&database, 0);
    files.set_fault(Fault { syncs_until_error: Some(0), ..Fault::default() });
    insert(&database, &context, 512, "[2, 20]").unwrap();
    let space = database.space(SpaceId(512)).unwrap();
    database.execute(&context, &space, Operation::Replace { tuple: &encode("[1, 99]") }).unwrap();
    assert!(context.seen.get() > database.durable(), "the answers are held");
    drive(&database);
    assert_eq!(rows(&database, 0), before);
    assert_eq!(rows(&database, 1), before);
    assert!(matches!(database.state(), State::LogFailed(_)));
    let refused = insert(&database, &context, 512, "[3, 30]").unwrap_err();
    assert!(refused.is(ErrorCode::WalIo), "{refused}");
}

/// Whoever could not wait asked again and again, for ever.
#[test]
fn behind_a_failed_log_rows_on_disk_are_read_by_those_who_can_wait() {
    let files = SimulatedFiles::default();
    let database = open(&files).unwrap();
    let context = request(&database);
    let space = r#"[512, 1, "stock", "vinyl", 0, {}, [{"name": "id", "type": "unsigned"}]]"#;
    insert(&database, &context, SPACE_ID.0, space).unwrap();
    insert(&database, &context, INDEX_ID.0, r#"[512, 0, "primary", "tree", {"unique": true}, [[0, "unsigned"]]]"#)
        .unwrap();
    insert(&database, &context, 512, "[1, 10]").unwrap();
    drive(&database);
    let engine = database.disk_engine().unwrap();
    database.make_checkpoint().unwrap();
    while engine.statistics().run_count == 0 {
        drive(&database);
    }
    files.set_fault(Fault { syncs_until_error: Some(0), is_cache_cold: true, ..Fault::default() });
    insert(&database, &context, 512, "[2, 20]").unwrap();
    drive(&database);
    assert!(matches!(database.state(), State::LogFailed(_)));
    let space = database.space(SpaceId(512)).unwrap();
    let read =
        database.select(&context, &space, &ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY), |_| true);
    assert!(read.unwrap_err().is_needs_fiber());
    let found = Rc::new(RefCell::new(None));
    let (slot, own) = (Rc::clone(&found), Rc::clone(&database));
    fiber::spawn("reader", move || *slot.borrow_mut() = Some(rows(&own, 0)));
    while found.borrow().is_none() {
        fiber::run_ready(100);
        drive(&database);
    }
    assert_eq!(found.take(), Some(BTreeMap::from([(1, 10)])));
}

#[test]
fn a_checkpoint_holds_what_its_vclock_covers_and_logs_before_it_go() {
    let files = SimulatedFiles::default();
    let database = open(&files).unwrap();
    let context = request(&database);
    create_space(&database, &context).unwrap();
    for round in 0..5u64 {
        for id in 0..500 {
            insert(&database, &context, 512, &format!("[{}, {round}]", round * 1000 + id)).unwrap();
            drive(&database);
        }
        database.make_checkpoint().unwrap();
        drive(&database);
    }
    let names = runtime::FileSystem::list(&files, &PathBuf::from("/db")).unwrap();
    assert_eq!(names.iter().filter(|name| name.ends_with(".snap")).count(), 2, "{names:?}");
    let expected = rows(&database, 0);
    assert_eq!(expected.len(), 2500);
    database.close().unwrap();
    let reopened = open(&files).unwrap();
    assert_eq!(rows(&reopened, 0), expected);
    assert_eq!(reopened.recovery_report().unwrap().rows, 0);
}

#[test]
fn a_rolled_back_schema_change_leaves_nothing() {
    let files = SimulatedFiles::default();
    let database = open(&files).unwrap();
    let context = request(&database);
    create_space(&database, &context).unwrap();
    insert(&database, &context, 512, "[1, 10]").unwrap();
    database.begin(&context).unwrap();
    insert(&database, &context, 512, "[2, 20]").unwrap();
    insert(
        &database,
        &context,
        INDEX_ID.0,
        r#"[512, 2, "both", "tree", {"unique": true}, [[1, "unsigned"], [0, "unsigned"]]]"#,
    )
    .unwrap();
    insert(&database, &context, 512, "[3, 30]").unwrap();
    let space = database.space(SpaceId(512)).unwrap();
    database.truncate(&context, &space).unwrap();
    insert(&database, &context, 512, "[4, 40]").unwrap();
    insert(&database, &context, SPACE_ID.0, r#"[513, 1, "other", "memtx", 0, {}, []]"#).unwrap();
    assert_eq!(rows(&database, 2).len(), 1);
    database.rollback(&context).unwrap();
    assert_eq!(rows(&database, 0), BTreeMap::from([(1, 10)]));
    assert_eq!(rows(&database, 1), BTreeMap::from([(1, 10)]));
    assert!(!space.has_index(IndexId(2)) && database.catalog.space(SpaceId(513)).is_none());
    let duplicate = insert(&database, &context, 512, "[1, 11]").unwrap_err();
    assert_eq!(duplicate.message(), "Duplicate key exists in unique index 'primary' in space 'stock'");
}

#[test]
fn a_checkpoint_that_nobody_waited_for_ends_with_the_database() {
    let files = SimulatedFiles::default();
    let database = open(&files).unwrap();
    let context = request(&database);
    create_space(&database, &context).unwrap();
    insert(&database, &context, 512, "[1, 10]").unwrap();
    drive(&database);
    database.make_checkpoint().unwrap();
    // No turn: the views are open still.
    database.close().unwrap();
    drop((context, database));
    let reopened = open(&files).unwrap();
    assert_eq!(reopened.recovery_report().unwrap().rows, 0, "the snapshot was finished and is kept");
    assert_eq!(rows(&reopened, 0), BTreeMap::from([(1, 10)]));
    // Neither a turn nor a close; and the rows that the view shows have left their space.
    let context = request(&reopened);
    insert(&reopened, &context, 512, "[2, 20]").unwrap();
    drive(&reopened);
    reopened.make_checkpoint().unwrap();
    let space = reopened.space(SpaceId(512)).unwrap();
    reopened.truncate(&context, &space).unwrap();
    drop((space, context, reopened));
    assert_eq!(rows(&open(&files).unwrap(), 0), BTreeMap::from([(1, 10), (2, 20)]));
}

#[test]
fn a_checkpoint_on_its_own_thread_ends_with_the_database() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..20u64 {
        let database = open_real(dir.path()).unwrap();
        let context = request(&database);
        if round == 0 {
            create_space(&database, &context).unwrap();
        }
        for id in 0..500 {
            insert(&database, &context, 512, &format!("[{}, {round}]", round * 1000 + id)).unwrap();
        }
        database.make_checkpoint().unwrap();
        if round % 2 == 0 {
            database.close().unwrap();
        }
        drop((context, database));
    }
}

#[test]
fn what_a_refusal_or_a_delete_of_nothing_tells_of_is_seen() {
    let files = SimulatedFiles::default();
    let database = open(&files).unwrap();
    create_space(&database, &request(&database)).unwrap();
    drive(&database);
    let schema = database.schema_written();
    assert_eq!(schema, database.appended());
    // Appended and not durable: nobody may hear of it.
    insert(&database, &request(&database), 512, "[1, 1]").unwrap();
    let inserted = database.appended();
    assert!(inserted > database.durable());
    let refused = request(&database);
    assert_eq!(insert(&database, &refused, 512, "[1, 2]").unwrap_err().code(), ErrorCode::TupleFound as u32);
    assert_eq!(refused.seen.get(), inserted);
    drive(&database);
    let space = database.space(SpaceId(512)).unwrap();
    let delete = |context: &Context| {
        database
            .execute(context, &space, Operation::Delete { index_id: IndexId::PRIMARY, key: &encode("[1]") })
            .unwrap()
    };
    assert!(delete(&request(&database)).is_some());
    let deleted = database.appended();
    let of_nothing = request(&database);
    assert!(delete(&of_nothing).is_none());
    assert_eq!(of_nothing.seen.get(), deleted);
    // Rows are no schema.
    assert_eq!(database.schema_written(), schema);
}

/// What one does in the open transaction of a context, with the position that the answer waits for.
fn awaited(database: &Database, level: TxnIsolation, act: impl Fn(&Context, &Rc<Space>)) -> Position {
    let context = request(database);
    let space = database.space(SpaceId(512)).unwrap();
    database.begin_with(&context, TxnOptions { isolation: level, ..TxnOptions::default() }).unwrap();
    act(&context, &space);
    let awaited = context.awaited();
    // What was shown counts for the commit, whatever the level.
    database.commit(&context).unwrap();
    assert!(context.awaited() >= awaited && context.awaited() == context.seen.get());
    awaited
}

#[test]
fn who_looks_at_one_row_waits_for_the_last_write_to_it() {
    for engine in ["memtx", "vinyl"] {
        let files = SimulatedFiles::default();
        let database = open(&files).unwrap();
        let admin = request(&database);
        insert(&database, &admin, SPACE_ID.0, &format!(r#"[512, 1, "stock", "{engine}", 0, {{}}, []]"#)).unwrap();
        insert(&database, &admin, INDEX_ID.0, r#"[512, 0, "primary", "tree", {"unique": true}, [[0, "unsigned"]]]"#)
            .unwrap();
        for id in 1..=4 {
            insert(&database, &admin, 512, &format!("[{id}, 1]")).unwrap();
        }
        drive(&database);
        let schema = database.schema_written();
        let change = |id: u64, op: &str| {
            let space = database.space(SpaceId(512)).unwrap();
            let (key, ops) = (encode(&format!("[{id}]")), encode(op));
            let update = Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 };
            database.execute(&request(&database), &space, update).unwrap();
            database.appended()
        };
        let (first, second) = (change(1, r#"[["+", 1, 1]]"#), change(2, r#"[["+", 1, 1]]"#));
        assert!(database.durable() < first && first < second);
        let get = |id: u64| {
            let database = &database;
            move |context: &Context, space: &Rc<Space>| {
                let key = encode(&format!("[{id}]"));
                database.get(context, space, IndexId::PRIMARY, Key::decode(&key).unwrap()).unwrap();
            }
        };
        let select = |kind: IteratorKind, key: &'static str| {
            let database = &database;
            move |context: &Context, space: &Rc<Space>| {
                let key = encode(key);
                let request = ScanRequest::new(IndexId::PRIMARY, kind, Key::decode(&key).unwrap());
                database.select(context, space, &request, |_| true).unwrap();
            }
        };
        let strict = |act: &dyn Fn(&Context, &Rc<Space>)| awaited(&database, TxnIsolation::Default, act);
        assert_eq!([1, 2, 3, 9].map(|id| strict(&get(id))), [first, second, schema, schema], "{engine}");
        assert_eq!(strict(&select(IteratorKind::Eq, "[1]")), first);
        assert_eq!(strict(&select(IteratorKind::Eq, "[3]")), schema);
        assert_eq!(strict(&select(IteratorKind::Ge, "[3]")), second, "of more than one row");
        assert_eq!(strict(&select(IteratorKind::All, "[]")), second);
        // Answers of one that says so leave at once; its commit waits.
        let loose = |act: &dyn Fn(&Context, &Rc<Space>)| awaited(&database, TxnIsolation::ReadCommitted, act);
        assert_eq!(loose(&get(2)), Position::default());
        let context = request(&database);
        database.reconfigure(|config| config.txn_isolation = TxnIsolation::ReadCommitted);
        database.begin(&context).unwrap();
        get(2)(&context, &database.space(SpaceId(512)).unwrap());
        assert_eq!(context.awaited(), Position::default());
        database.commit(&context).unwrap();
        assert_eq!(context.awaited(), second);
        // So many writes are on their way that nobody looks through them.
        let mut last = second;
        for _ in 0..100 {
            last = change(4, r#"[["+", 1, 1]]"#);
        }
        let context = request(&database);
        get(3)(&context, &database.space(SpaceId(512)).unwrap());
        assert_eq!(context.awaited(), last);
        drive(&database);
        let context = request(&database);
        get(4)(&context, &database.space(SpaceId(512)).unwrap());
        assert!(context.awaited() <= database.durable());
    }
}
