//! Long work in slices: indexes over rows that change meanwhile, formats, spaces that are freed.
#![allow(clippy::unwrap_used, reason = "a test")]

use database::{
    Config, Context, Database, Environment, ErrorCode, INDEX_ID, Key, Operation, SPACE_ID, ScanRequest, SessionKind,
};
use runtime::{Loss, ManualClock, SeededRandomness, SimulatedFiles, fiber};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, SpaceId};

const SPACE: u32 = 512;
/// Some slices.
const ROWS: u64 = 100;
const PRIMARY: &[u8] = b"\x96\xcd\x02\x00\x00\xa7primary\xa4tree\x81\xa6unique\xc3\x91\x92\x00\xa8unsigned";
const BY_VALUE: &[u8] = b"\x96\xcd\x02\x00\x01\xa5value\xa4tree\x81\xa6unique\xc3\x91\x92\x01\xa8unsigned";

fn open(files: &SimulatedFiles, memory: u64) -> Rc<Database> {
    open_with(files, memory, |_| {})
}

fn open_with(files: &SimulatedFiles, memory: u64, change: impl FnOnce(&mut Config)) -> Rc<Database> {
    let mut config = Config {
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        vinyl_dir: PathBuf::from("/db"),
        memtx_memory: memory,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        slice_rows: 7,
        ..Config::default()
    };
    change(&mut config);
    let environment = Environment {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment).unwrap();
    database.open().unwrap();
    // Deadlines come by the turn.
    let time = Cell::new(0);
    fiber::set_clock(Rc::new(move || {
        time.set(time.get() + 1);
        time.get()
    }));
    database
}

fn request(database: &Database) -> Context {
    Context::for_request(database.open_session(SessionKind::Background, None))
}

fn insert(database: &Database, space: u32, tuple: &[u8]) -> database::Result<()> {
    let context = request(database);
    database.execute(&context, &database.space(SpaceId(space))?, Operation::Insert { tuple }).map(|_| ())
}

fn row(id: u64, value: u64) -> Vec<u8> {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 2);
    msgpack::encode_uint(&mut row, id);
    msgpack::encode_uint(&mut row, value);
    row
}

fn replace(database: &Database, tuple: &[u8]) -> database::Result<()> {
    let context = request(database);
    database.execute(&context, &database.space(SpaceId(SPACE))?, Operation::Replace { tuple }).map(|_| ())
}

fn delete(database: &Database, id: u64) {
    let mut key = vec![0x91];
    msgpack::encode_uint(&mut key, id);
    let context = request(database);
    database
        .execute(
            &context,
            &database.space(SpaceId(SPACE)).unwrap(),
            Operation::Delete { index_id: IndexId::PRIMARY, key: &key },
        )
        .unwrap();
}

fn create_space(database: &Database) {
    insert(database, SPACE_ID.0, b"\x97\xcd\x02\x00\x01\xa5stock\xa5memtx\x00\x80\x90").unwrap();
    insert(database, INDEX_ID.0, PRIMARY).unwrap();
}

fn filled(files: &SimulatedFiles) -> Rc<Database> {
    let database = open(files, 64 << 20);
    create_space(&database);
    (0..ROWS).for_each(|id| replace(&database, &row(id, 1000 + id)).unwrap());
    turn(&database);
    database
}

fn turn(database: &Database) {
    fiber::run_ready(1000);
    database.submit();
    database.turn();
    database.submit();
}

/// Rows by id, in the order of an index.
fn rows(database: &Database, index_id: u32) -> Vec<(u64, u64)> {
    let context = request(database);
    let space = database.space(SpaceId(SPACE)).unwrap();
    let mut rows = Vec::new();
    database
        .select(&context, &space, &ScanRequest::new(IndexId(index_id), IteratorKind::All, Key::EMPTY), |row| {
            let mut reader = Reader::new(row);
            reader.read_array().unwrap();
            rows.push((reader.read_uint().unwrap(), reader.read_uint().unwrap()));
            true
        })
        .unwrap();
    rows
}

type Answer = Rc<RefCell<Option<database::Result<()>>>>;

/// Begins a statement on a system space in a fiber.
fn begin(database: &Rc<Database>, space: u32, tuple: &'static [u8]) -> Answer {
    let answer = Answer::default();
    let (database, slot) = (Rc::clone(database), Rc::clone(&answer));
    fiber::spawn("builder", move || *slot.borrow_mut() = Some(insert(&database, space, tuple)));
    answer
}

fn code_of(result: database::Result<()>) -> u32 {
    result.unwrap_err().code()
}

#[test]
fn an_index_is_built_while_rows_change_and_nothing_else_changes_the_space() {
    let files = SimulatedFiles::default();
    let database = filled(&files);
    let answer = begin(&database, INDEX_ID.0, BY_VALUE);
    let mut turns = 0u64;
    let mut model: BTreeMap<u64, u64> = (0..ROWS).map(|id| (id, 1000 + id)).collect();
    while answer.borrow().is_none() {
        turn(&database);
        turns += 1;
        let space = database.space(SpaceId(SPACE)).unwrap();
        assert!(turns > 3 || !space.has_index(IndexId(1)), "it shows before it is complete");
        if answer.borrow().is_some() {
            break;
        }
        // Behind the building and ahead of it.
        for (at, id) in [turns % ROWS, ROWS - 1 - turns % ROWS, ROWS + turns].into_iter().enumerate() {
            let value = 5000 + turns * 10 + at as u64;
            replace(&database, &row(id, value)).unwrap();
            model.insert(id, value);
        }
        delete(&database, turns * 7 % ROWS);
        model.remove(&(turns * 7 % ROWS));
        let context = request(&database);
        assert_eq!(code_of(database.truncate(&context, &space)), ErrorCode::AlterSpace as u32);
        assert_eq!(code_of(insert(&database, INDEX_ID.0, BY_VALUE)), ErrorCode::AlterSpace as u32);
        let indexes = database.space(INDEX_ID).unwrap();
        let drop = Operation::Delete { index_id: IndexId::PRIMARY, key: b"\x92\xcd\x02\x00\x00" };
        assert_eq!(code_of(database.execute(&context, &indexes, drop).map(|_| ())), ErrorCode::AlterSpace as u32);
    }
    answer.take().unwrap().unwrap();
    assert!(turns > ROWS / 7, "it took no slices");
    let mut expected: Vec<(u64, u64)> = model.into_iter().collect();
    assert_eq!(rows(&database, 0), expected);
    expected.sort_by_key(|row| row.1);
    assert_eq!(rows(&database, 1), expected);
    // And so after a restart.
    turn(&database);
    drop(database);
    let database = open(&files.crash(Loss::All), 64 << 20);
    assert_eq!(rows(&database, 1), expected);
}

#[test]
fn a_second_change_of_a_space_waits_for_the_first() {
    let files = SimulatedFiles::default();
    let database = filled(&files);
    let first = begin(&database, INDEX_ID.0, BY_VALUE);
    (0..3).for_each(|_| turn(&database));
    assert!(first.borrow().is_none(), "it is under way");
    // Another index, and the end of all rows: each in a fiber, as clients' requests are.
    let second = begin(
        &database,
        INDEX_ID.0,
        b"\x96\xcd\x02\x00\x02\xa5again\xa4tree\x81\xa6unique\xc2\x91\x92\x01\xa8unsigned",
    );
    let emptied = Answer::default();
    let (own, slot) = (Rc::clone(&database), Rc::clone(&emptied));
    fiber::spawn("truncation", move || {
        let context = request(&own);
        let space = own.space(SpaceId(SPACE)).unwrap();
        *slot.borrow_mut() = Some(own.truncate(&context, &space));
    });
    let mut turns = 0;
    while first.borrow().is_none() || second.borrow().is_none() || emptied.borrow().is_none() {
        turn(&database);
        turns += 1;
        assert!(turns < 100_000, "somebody waits for ever");
    }
    first.take().unwrap().unwrap();
    second.take().unwrap().unwrap();
    emptied.take().unwrap().unwrap();
    let space = database.space(SpaceId(SPACE)).unwrap();
    assert!(space.has_index(IndexId(1)) && space.has_index(IndexId(2)));
}

#[test]
fn of_an_index_that_was_not_complete_nothing_is_found_after_a_crash() {
    let files = SimulatedFiles::default();
    let database = filled(&files);
    let answer = begin(&database, INDEX_ID.0, BY_VALUE);
    (0..3).for_each(|_| turn(&database));
    assert!(answer.borrow().is_none());
    let database = open(&files.crash(Loss::None), 64 << 20);
    assert!(!database.space(SpaceId(SPACE)).unwrap().has_index(IndexId(1)));
    assert_eq!(rows(&database, 0).len() as u64, ROWS);
}

#[test]
fn a_row_that_an_index_cannot_take_ends_its_building_whenever_it_comes() {
    for at in [1, ROWS - 1] {
        let files = SimulatedFiles::default();
        let database = filled(&files);
        let answer = begin(&database, INDEX_ID.0, BY_VALUE);
        (0..ROWS / 14).for_each(|_| turn(&database));
        // The statement itself is good: there is no such index yet.
        replace(&database, &row(at, 1000 + ROWS / 2)).unwrap();
        (0..ROWS).for_each(|_| turn(&database));
        assert_eq!(code_of(answer.take().unwrap()), ErrorCode::TupleFound as u32);
        assert!(!database.space(SpaceId(SPACE)).unwrap().has_index(IndexId(1)));
        // Without that row it can be built.
        delete(&database, at);
        let answer = begin(&database, INDEX_ID.0, BY_VALUE);
        (0..ROWS).for_each(|_| turn(&database));
        answer.take().unwrap().unwrap();
        assert_eq!(rows(&database, 1).len() as u64, ROWS - 1);
    }
}

#[test]
fn a_cancelled_builder_leaves_nothing() {
    let files = SimulatedFiles::default();
    let database = filled(&files);
    let answer = Answer::default();
    let (own, slot) = (Rc::clone(&database), Rc::clone(&answer));
    let id = fiber::spawn("builder", move || *slot.borrow_mut() = Some(insert(&own, INDEX_ID.0, BY_VALUE)));
    (0..3).for_each(|_| turn(&database));
    fiber::cancel(id);
    turn(&database);
    assert!(answer.take().unwrap().is_err());
    let space = database.space(SpaceId(SPACE)).unwrap();
    assert!(!space.has_index(IndexId(1)));
    database.truncate(&request(&database), &space).unwrap();
}

#[test]
fn a_full_memory_takes_rows_as_soon_as_a_space_is_dropped() {
    let files = SimulatedFiles::default();
    let database = open(&files, 4 << 20);
    create_space(&database);
    let text = |id: u64| {
        let mut row = row(id, id);
        row[0] = 0x93;
        msgpack::encode_str(&mut row, &[b'x'; 200]);
        row
    };
    let fill = |from: u64| (from..).take_while(|id| insert(&database, SPACE, &text(*id)).is_ok()).count() as u64;
    let fitted = fill(0);
    turn(&database);
    let context = request(&database);
    database.truncate(&context, &database.space(SpaceId(SPACE)).unwrap()).unwrap();
    database.submit();
    // One look at the log, and no turn for what is to be freed.
    database.turn();
    let fitted_later = fill(1 << 20);
    assert!(fitted_later >= fitted * 9 / 10, "{fitted} rows, then {fitted_later}");
}

/// Begins a checkpoint in a fiber.
fn begin_checkpoint(database: &Rc<Database>) -> Answer {
    let answer = Answer::default();
    let (database, slot) = (Rc::clone(database), Rc::clone(&answer));
    fiber::spawn("checkpoint", move || *slot.borrow_mut() = Some(database.make_checkpoint()));
    answer
}

#[test]
fn whoever_asks_for_a_checkpoint_waits_for_one_that_began_by_itself_and_gets_his_own() {
    let files = SimulatedFiles::default();
    let database = open_with(&files, 64 << 20, |config| config.checkpoint_wal_threshold = 1);
    create_space(&database);
    turn(&database);
    // The log has come to its threshold: a checkpoint begins, without what is written now.
    replace(&database, &row(1, 10)).unwrap();
    let asked = begin_checkpoint(&database);
    fiber::run_ready(1000);
    assert!(asked.borrow().is_none());
    for _ in 0..10 {
        turn(&database);
    }
    asked.take().unwrap().unwrap();
    drop(database);
    let reopened = open(&files, 64 << 20);
    assert_eq!(reopened.recovery_report().unwrap().rows, 0, "the snapshot has everything");
    assert_eq!(rows(&reopened, 0), [(1, 10)]);
}

#[test]
fn two_who_ask_for_a_checkpoint_at_once_do_not_both_get_one() {
    let files = SimulatedFiles::default();
    let database = filled(&files);
    let (first, second) = (begin_checkpoint(&database), begin_checkpoint(&database));
    for _ in 0..10 {
        turn(&database);
    }
    first.take().unwrap().unwrap();
    assert_eq!(code_of(second.take().unwrap()), ErrorCode::CheckpointInProgress as u32);
}

#[test]
fn a_space_on_disk_that_is_made_and_filled_in_one_transaction_is_dumped() {
    let files = SimulatedFiles::default();
    let database = open(&files, 64 << 20);
    let context = request(&database);
    database.begin(&context).unwrap();
    let space = b"\x97\xcd\x02\x00\x01\xa5stock\xa5vinyl\x00\x80\x90";
    for (id, tuple) in [(SPACE_ID.0, &space[..]), (INDEX_ID.0, PRIMARY), (INDEX_ID.0, BY_VALUE), (SPACE, &row(1, 10))] {
        database.execute(&context, &database.space(SpaceId(id)).unwrap(), Operation::Insert { tuple }).unwrap();
    }
    database.commit(&context).unwrap();
    for _ in 0..10 {
        turn(&database);
    }
    // Each index had asked for it, and the record of a space that was sealed twice contradicts itself: no dump ever came to its end.
    let engine = database.disk_engine().unwrap();
    assert!(engine.failure().is_none(), "{:?}", engine.failure());
    assert_eq!(engine.statistics().run_count, 2);
}
