//! Transactions that survive waits: whatever they do and whoever commits between, it is as if each had run alone at its commit.
#![allow(clippy::unwrap_used, reason = "a test")]
mod clients;
mod histories;
mod long;
mod schemas;
mod views;

use clients::*;
use database::{
    Config, Context, Cursor, Database, Environment, ErrorCode, INDEX_ID, Key, Operation, ReplaceTrigger, SEQUENCE_ID,
    SPACE_ID, Savepoint, ScanRequest, SessionKind, Space, TxnOptions,
};
use histories::{contents, open_on_slow_disk};
use runtime::{
    Clock, Fault, FileSystem, MachineConfig, ManualClock, PacedFiles, Randomness, SeededRandomness, SimulatedFiles,
    Simulation, fiber,
};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use tuple::{IndexId, SpaceId, msgpack};

/// A scan in a transaction seeks its place again whenever it has waited, and needs a block of each run there at one time; so does one outside for
/// each row that it looks up by a secondary key.
#[test]
fn a_scan_ends_though_no_memory_keeps_what_it_reads() {
    let simulation = Simulation::new(1, MachineConfig { uncached_percent: 100, ..MachineConfig::default() });
    simulation.enter(|| {
        let database = open_on_slow_disk(&simulation);
        let found = Rc::new(RefCell::new(None));
        let (slot, own) = (Rc::clone(&found), Rc::clone(&database));
        fiber::spawn("client", move || {
            let mut client = Client::new(&own);
            fiber::set_local(Rc::clone(&client.context) as Rc<dyn std::any::Any>);
            // Each checkpoint makes a run of rows that lie between those of the others.
            for run in 0..4 {
                for id in (run..40).step_by(4) {
                    client.run(&own, &Op::Insert(TREES, json!([id, id, id, 0]))).unwrap();
                }
                own.make_checkpoint().unwrap();
            }
            let all = Op::Select(TREES, 2, IteratorKind::All, json!([]), 0, 1000);
            let alone = client.run(&own, &all).unwrap();
            client.begin(&own);
            let rows = client.run(&own, &all).unwrap();
            own.commit(&client.context).unwrap();
            assert_eq!(alone, rows);
            *slot.borrow_mut() = Some(rows);
        });
        for turns in 0.. {
            if found.borrow().is_some() {
                break;
            }
            turn(&database);
            simulation.sleep(10_000);
            assert!(turns < 1_000_000, "the scan never ends");
        }
        let rows = found.take().unwrap();
        assert_eq!(rows.matches('[').count(), 40, "{rows}");
    });
}

/// A transaction does one thing and waits, somebody else does another: does the first get a conflict?
#[test]
fn a_conflict_is_what_changes_something_that_was_seen() {
    on_each_engine(in_a_conflict_is_what_changes_something_that_was_seen);
}

fn in_a_conflict_is_what_changes_something_that_was_seen(engine: &str) {
    let all = || json!([]);
    let select = |index_id, kind, key, limit| Op::Select(TREES, index_id, kind, key, 0, limit);
    let insert = |id: u64, unique: u64, any: u64| Op::Insert(TREES, json!([id, unique, any, 0]));
    let change = |id: u64| Op::Update(TREES, 0, json!([id]), json!([["+", 3, 1]]));
    let delete = |id: u64| Op::Delete(TREES, 0, json!([id]));
    use IteratorKind::{All, Eq, Ge, Gt, Le, Lt};
    // Rows 10, 20, 30 are there, with 1, 2, 3 and 0 as unique key.
    let cases = [
        (Op::Get(TREES, 0, json!([10])), change(10), true),
        (Op::Get(TREES, 0, json!([10])), change(20), false),
        (Op::Get(TREES, 0, json!([11])), insert(11, 5, 5), true),
        (Op::Get(TREES, 0, json!([11])), insert(12, 5, 5), false),
        (Op::Get(TREES, 1, json!([5, 5])), insert(11, 5, 5), true),
        (Op::Get(TREES, 1, json!([5, 5])), insert(11, 5, 6), false),
        (Op::Get(TREES, 1, json!([1, 0])), delete(10), true),
        (select(0, Ge, json!([15]), 1), insert(12, 5, 5), false),
        (select(0, Ge, json!([15]), 1), insert(15, 5, 5), true),
        (select(0, Ge, json!([15]), 1), delete(20), true),
        (select(0, Ge, json!([15]), 1), insert(21, 5, 5), false),
        (select(0, Ge, json!([15]), 9), insert(31, 5, 5), true),
        (select(0, Gt, json!([20]), 9), delete(20), false),
        (select(0, Lt, json!([20]), 9), insert(1, 5, 5), true),
        (select(0, Lt, json!([20]), 1), insert(1, 5, 5), false),
        (select(0, Le, json!([20]), 1), delete(20), true),
        (select(2, Eq, json!([0]), 9), insert(11, 5, 0), true),
        (select(2, Eq, json!([0]), 9), insert(11, 5, 1), false),
        (select(2, Eq, json!([0]), 1), insert(11, 5, 0), false),
        (select(2, All, all(), 9), insert(11, 5, 9), true),
        (Op::Count(TREES, 0, All, all()), insert(11, 5, 9), true),
        (Op::Count(TREES, 0, Ge, json!([25])), insert(11, 5, 9), false),
        // Refused: what was in the way has been seen.
        (insert(10, 9, 9), delete(10), true),
        (insert(11, 1, 0), delete(10), true),
        (insert(11, 5, 5), insert(12, 5, 5), true),
        (insert(11, 5, 5), insert(11, 6, 6), true),
        (insert(11, 5, 5), insert(12, 6, 6), false),
        // Nothing was found.
        (delete(11), insert(11, 5, 5), true),
        (Op::Update(TREES, 1, json!([5, 5]), json!([["+", 3, 1]])), insert(11, 5, 5), true),
        (Op::Replace(TREES, json!([10, 7, 7, 7])), change(10), true),
        (Op::Upsert(TREES, json!([11, 7, 7, 7]), json!([["+", 3, 1]])), insert(11, 5, 5), true),
        (Op::Insert(HASHES, json!(["a", null, 0])), Op::Insert(HASHES, json!(["b", null, 0])), false),
        (Op::Insert(HASHES, json!(["a", 1, 0])), Op::Insert(HASHES, json!(["b", 1, 0])), true),
        (Op::Select(HASHES, 0, All, all(), 0, 9), Op::Insert(HASHES, json!(["b", 1, 0])), true),
        (Op::Get(TEMPORARY, 0, json!([1])), Op::Insert(TEMPORARY, json!([1])), true),
    ];
    for (first, other, is_conflict) in cases {
        for is_short in [true, false] {
            let database = open(&SimulatedFiles::default());
            create_spaces_in(&database, engine);
            let (mut client, mut rival) = (Client::new(&database), Client::new(&database));
            for (id, unique) in [(10, 1), (20, 2), (30, 3)] {
                rival.run(&database, &insert(id, unique, 0)).unwrap();
            }
            client.begin(&database);
            let _ = client.run(&database, &first);
            database.suspend(&client.context);
            if !is_short {
                rival.begin(&database);
            }
            rival.run(&database, &other).unwrap();
            database.commit(&rival.context).unwrap();
            // Who has only read goes on in a view.
            let is_in_view = database.is_in_view(&client.context);
            let outcome = database.commit(&client.context).map_err(|error| error.code());
            assert!(!is_in_view || outcome == Ok(()));
            let outcome = if is_in_view { Err(CONFLICT) } else { outcome };
            assert_eq!(outcome, if is_conflict { Err(CONFLICT) } else { Ok(()) }, "{first:?} against {other:?}");
            assert_eq!(database.suspended(), 0);
        }
    }
}

/// Who forgets what it reads depends on the rows that it writes nevertheless: of two that write to one, the second to commit gets a conflict.
#[test]
fn of_two_that_forget_and_write_one_row_the_second_meets_a_conflict() {
    on_each_engine(in_of_two_that_forget_and_write_one_row_the_second_meets_a_conflict);
}

fn in_of_two_that_forget_and_write_one_row_the_second_meets_a_conflict(engine: &str) {
    let writes = || {
        let row = json!([10, 1, 0, 9]);
        [
            Op::Update(TREES, 0, json!([10]), json!([["+", 3, 1]])),
            Op::Update(TREES, 1, json!([1, 0]), json!([["+", 3, 1]])),
            Op::Delete(TREES, 0, json!([10])),
            Op::Delete(TREES, 1, json!([1, 0])),
            Op::Replace(TREES, row.clone()),
            Op::Upsert(TREES, row, json!([["+", 3, 1]])),
        ]
    };
    for first in writes() {
        for second in writes() {
            let database = open(&SimulatedFiles::default());
            create_spaces_in(&database, engine);
            let (mut one, mut other) = (Client::new(&database), Client::new(&database));
            one.run(&database, &Op::Insert(TREES, json!([10, 1, 0, 0]))).unwrap();
            for (client, op) in [(&mut one, &first), (&mut other, &second)] {
                let options = TxnOptions { forgets_reads: true, ..TxnOptions::default() };
                database.begin_with(&client.context, options).unwrap();
                client.run(&database, op).unwrap();
                database.suspend(&client.context);
            }
            database.commit(&one.context).unwrap();
            let outcome = database.commit(&other.context).map_err(|error| error.code());
            assert_eq!(outcome, Err(CONFLICT), "{first:?} and then {second:?}");
        }
    }
}

/// A database with a row, and a transaction that has changed it and waits.
fn with_suspended(engine: &str) -> (Rc<Database>, Client) {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let mut client = Client::new(&database);
    client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
    client.begin(&database);
    client.run(&database, &Op::Update(TREES, 0, json!([1]), json!([["=", 3, 7]]))).unwrap();
    client.run(&database, &Op::Insert(TREES, json!([2, 2, 2, 2]))).unwrap();
    database.suspend(&client.context);
    (database, client)
}

fn trees(database: &Database) -> String {
    contents(database).swap_remove(0)
}

#[test]
fn what_a_suspended_transaction_has_done_shows_to_nobody_until_it_commits() {
    on_each_engine(in_what_a_suspended_transaction_has_done_shows_to_nobody_until_it_commits);
}

fn in_what_a_suspended_transaction_has_done_shows_to_nobody_until_it_commits(engine: &str) {
    let (database, mut client) = with_suspended(engine);
    assert_eq!(trees(&database), "[1, 1, 1, 0]");
    assert_eq!(client.run(&database, &Op::Count(TREES, 0, IteratorKind::All, json!([]))).unwrap(), "2");
    database.suspend(&client.context);
    assert_eq!(trees(&database), "[1, 1, 1, 0]");
    database.commit(&client.context).unwrap();
    assert_eq!(trees(&database), "[1, 1, 1, 7] [2, 2, 2, 2]");
}

#[test]
fn a_change_of_the_schema_dooms_who_has_touched_the_space() {
    on_each_engine(in_a_change_of_the_schema_dooms_who_has_touched_the_space);
}

fn in_a_change_of_the_schema_dooms_who_has_touched_the_space(engine: &str) {
    type Change = fn(&Database, &mut Client) -> database::Result<()>;
    let changes: [(Change, bool); 5] = [
        (|database, rival| database.truncate(&rival.context, &database.space(SpaceId(TREES))?), true),
        (
            |database, rival| {
                let row = json!([TREES, 3, "more", "tree", {"unique": false}, [[3, "unsigned"]]]);
                rival.try_run(database, &Op::Insert(INDEX_ID.0, row)).map(|_| ())
            },
            true,
        ),
        (|database, rival| rival.try_run(database, &Op::Delete(INDEX_ID.0, 0, json!([TREES, 2]))).map(|_| ()), true),
        (
            |database, rival| {
                rival.try_run(database, &Op::Update(SPACE_ID.0, 0, json!([TREES]), json!([["=", 2, "x"]]))).map(|_| ())
            },
            true,
        ),
        (|database, rival| database.truncate(&rival.context, &database.space(SpaceId(HASHES))?), false),
    ];
    for (at, (change, is_conflict)) in changes.into_iter().enumerate() {
        if at == 1 && engine == "vinyl" {
            // Looks at rows, which wants a fiber.
            continue;
        }
        let (database, client) = with_suspended(engine);
        change(&database, &mut Client::new(&database)).unwrap();
        let outcome = database.commit(&client.context).map_err(|error| error.code());
        assert_eq!(outcome, if is_conflict { Err(CONFLICT) } else { Ok(()) }, "change {at}");
    }
}

#[test]
fn savepoints_and_callbacks_are_right_while_suspended() {
    on_each_engine(in_savepoints_and_callbacks_are_right_while_suspended);
}

fn in_savepoints_and_callbacks_are_right_while_suspended(engine: &str) {
    let (database, mut client) = with_suspended(engine);
    let heard = Rc::new(RefCell::new(Vec::new()));
    let listen = |client: &Client| {
        for (name, is_commit) in [("commit", true), ("rollback", false)] {
            let heard = Rc::clone(&heard);
            let callback = Box::new(move |_: &Context, rows: &[database::ChangedRow]| {
                let words = |row: &database::ChangedRow| row.new.as_ref().map_or(String::new(), |row| text(row.data()));
                heard.borrow_mut().push(format!("{name} {}", rows.iter().map(words).collect::<Vec<_>>().join(" ")));
            });
            if is_commit {
                database.on_commit(&client.context, callback).unwrap();
            } else {
                database.on_rollback(&client.context, callback).unwrap();
            }
        }
    };
    listen(&client);
    // Rolled back while it waits: nothing of it is in force, nothing has to be taken back.
    database.rollback(&client.context).unwrap();
    assert_eq!(heard.take(), ["rollback [2, 2, 2, 2] [1, 1, 1, 7]"]);
    assert_eq!((trees(&database).as_str(), database.suspended()), ("[1, 1, 1, 0]", 0));
    // A savepoint from before a wait.
    client.begin(&database);
    listen(&client);
    client.run(&database, &Op::Insert(TREES, json!([3, 3, 3, 3]))).unwrap();
    client.run(&database, &Op::Savepoint).unwrap();
    client.run(&database, &Op::Insert(TREES, json!([4, 4, 4, 4]))).unwrap();
    database.suspend(&client.context);
    client.run(&database, &Op::RollbackTo).unwrap();
    database.suspend(&client.context);
    // Whoever commits outside of a fiber blocks until it is durable.
    database.commit(&client.context).unwrap();
    assert_eq!(heard.take(), ["commit [3, 3, 3, 3]"]);
    assert_eq!(trees(&database), "[1, 1, 1, 0] [3, 3, 3, 3]");
    // A conflict: told of at the end, once.
    client.begin(&database);
    listen(&client);
    client.run(&database, &Op::Delete(TREES, 0, json!([3]))).unwrap();
    database.suspend(&client.context);
    Client::new(&database).run(&database, &Op::Delete(TREES, 0, json!([3]))).unwrap();
    assert_eq!(client.run(&database, &Op::Savepoint), Err(CONFLICT));
    assert!(heard.borrow().is_empty());
    assert_eq!(database.commit(&client.context).unwrap_err().code(), CONFLICT);
    assert_eq!(heard.take().len(), 1);
    assert!(!client.context.is_in_txn());
}

#[test]
fn a_transaction_that_is_forgotten_while_suspended_leaves_nothing() {
    on_each_engine(in_a_transaction_that_is_forgotten_while_suspended_leaves_nothing);
}

fn in_a_transaction_that_is_forgotten_while_suspended_leaves_nothing(engine: &str) {
    let (database, client) = with_suspended(engine);
    drop(client);
    Client::new(&database).run(&database, &Op::Delete(TREES, 0, json!([1]))).unwrap();
    assert_eq!((trees(&database).as_str(), database.suspended()), ("", 0));
}

#[test]
fn a_failed_log_dooms_all() {
    on_each_engine(in_a_failed_log_dooms_all);
}

fn in_a_failed_log_dooms_all(engine: &str) {
    let files = SimulatedFiles::default();
    let database = open(&files);
    create_spaces_in(&database, engine);
    database.submit();
    database.turn();
    let (mut client, mut rival) = (Client::new(&database), Client::new(&database));
    rival.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 1]))).unwrap();
    client.begin(&database);
    // It builds on what is going to be lost.
    client.run(&database, &Op::Update(TREES, 0, json!([1]), json!([["=", 3, 7]]))).unwrap();
    database.suspend(&client.context);
    files.set_fault(Fault { writes_until_error: Some(0), ..Fault::default() });
    database.submit();
    database.turn();
    assert!(database.lost_from().is_some());
    assert_eq!(client.run(&database, &Op::Get(TREES, 0, json!([1]))), Err(CONFLICT));
    database.rollback(&client.context).unwrap();
    assert_eq!(trees(&database), "");
}

#[test]
fn sequences_make_no_conflicts_and_give_no_value_twice() {
    let files = SimulatedFiles::default();
    let database = open(&files);
    create_spaces(&database);
    let mut admin = Client::new(&database);
    let sequence = json!([1, 1, "s", 1, 1, 1_000_000, 1, 0, false]);
    admin.run(&database, &Op::Insert(SEQUENCE_ID.0, sequence)).unwrap();
    admin.run(&database, &Op::Insert(database::SPACE_SEQUENCE_ID.0, json!([TREES, 1, false, 0, ""]))).unwrap();
    let mut clients = [Client::new(&database), Client::new(&database)];
    for round in 0..2 {
        for (at, client) in clients.iter_mut().enumerate() {
            if round == 0 {
                client.begin(&database);
            }
            client.run(&database, &Op::Insert(TREES, json!([null, round, at, 0]))).unwrap();
            database.suspend(&client.context);
        }
    }
    // In the other order, and one of them not at all.
    database.commit(&clients[1].context).unwrap();
    database.rollback(&clients[0].context).unwrap();
    assert_eq!(trees(&database), "[2, 0, 1, 0] [4, 1, 1, 0]");
    assert_eq!(database.sequence_next(&admin.context, 1).unwrap(), 5);
    database.submit();
    database.turn();
    drop(database);
    let database = open(&files.crash(runtime::Loss::All));
    assert_eq!(trees(&database), "[2, 0, 1, 0] [4, 1, 1, 0]");
    assert_eq!(database.sequence_next(&Client::new(&database).context, 1).unwrap(), 6);
}

type Act = Box<dyn Fn(&Database, &Context)>;

/// Waits in the statement's fiber, as one that reads from a disk does, or changes rows itself.
struct Trigger {
    database: Rc<Database>,
    run: Act,
    is_enabled: Cell<bool>,
}

impl ReplaceTrigger for Trigger {
    fn run(
        &self,
        context: &Context,
        _old: Option<&tuple::Tuple>,
        new: Option<&tuple::Tuple>,
        _space: &Rc<Space>,
        _operation: &str,
    ) -> database::Result<Option<tuple::Tuple>> {
        if self.is_enabled.replace(false) {
            (self.run)(&self.database, context);
        }
        Ok(new.cloned())
    }
}

/// Puts another row in.
struct Changer(tuple::Tuple);

impl ReplaceTrigger for Changer {
    fn run(
        &self,
        _context: &Context,
        _old: Option<&tuple::Tuple>,
        _new: Option<&tuple::Tuple>,
        _space: &Rc<Space>,
        _operation: &str,
    ) -> database::Result<Option<tuple::Tuple>> {
        Ok(Some(self.0.clone()))
    }
}

#[test]
fn a_row_that_a_trigger_puts_in_counts_too() {
    on_each_engine(in_a_row_that_a_trigger_puts_in_counts_too);
}

fn in_a_row_that_a_trigger_puts_in_counts_too(engine: &str) {
    for rival_op in [Op::Insert(TREES, json!([6, 0, 0, 0])), Op::Insert(TREES, json!([7, 5, 5, 0]))] {
        let database = open(&SimulatedFiles::default());
        create_spaces_in(&database, engine);
        let space = database.space(SpaceId(TREES)).unwrap();
        let row = tuple::Tuple::new(database.arena(), space.format().id(), &bytes(&json!([6, 5, 5, 5]))).unwrap();
        let mut client = Client::new(&database);
        client.begin(&database);
        *space.before_replace.borrow_mut() = vec![Rc::new(Changer(row))];
        client.run(&database, &Op::Replace(TREES, json!([1, 1, 1, 1]))).unwrap();
        space.before_replace.borrow_mut().clear();
        database.suspend(&client.context);
        Client::new(&database).run(&database, &rival_op).unwrap();
        let code = database.commit(&client.context).map_err(|error| error.code());
        assert_eq!(code, Err(CONFLICT), "{rival_op:?}");
    }
}

/// Gives `TREES` a trigger that does something once.
fn set_trigger(database: &Rc<Database>, is_before: bool, run: impl Fn(&Database, &Context) + 'static) {
    let trigger = Trigger { database: Rc::clone(database), run: Box::new(run), is_enabled: Cell::new(true) };
    let space = database.space(SpaceId(TREES)).unwrap();
    let triggers = if is_before { &space.before_replace } else { &space.on_replace };
    *triggers.borrow_mut() = vec![Rc::new(trigger)];
}

fn turn(database: &Database) {
    fiber::run_ready(100);
    database.submit();
    database.turn();
}

/// Fibers of other databases are gone; those of this one do when they wait what connections' do.
fn prepare_fibers(database: &Rc<Database>) {
    fiber::abandon();
    let aborter = Rc::clone(database);
    fiber::on_yield(Rc::new(move || {
        if let Some(context) = fiber::local::<Context>() {
            aborter.suspend(&context);
        }
    }));
}

/// A fiber that works in a context of its own, as those of connections do.
fn in_fiber(database: &Rc<Database>, work: impl FnOnce(&Database, &Context) + 'static) -> fiber::FiberId {
    prepare_fibers(database);
    let own = Rc::clone(database);
    fiber::spawn("worker", move || {
        let context = Client::new(&own).context;
        fiber::set_local(Rc::clone(&context) as Rc<dyn std::any::Any>);
        work(&own, &context);
        own.abandon(&context);
    })
}

#[test]
fn a_trigger_that_waits_sees_and_leaves_its_statement_whole() {
    on_each_engine(in_a_trigger_that_waits_sees_and_leaves_its_statement_whole);
}

fn in_a_trigger_that_waits_sees_and_leaves_its_statement_whole(engine: &str) {
    for is_before in [true, false] {
        for (rival_op, is_conflict) in [
            (Op::Insert(TREES, json!([9, 9, 9, 9])), false),
            (Op::Update(TREES, 0, json!([1]), json!([["=", 3, 9]])), true),
            (Op::Delete(TREES, 0, json!([1])), true),
        ] {
            let database = open(&SimulatedFiles::default());
            create_spaces_in(&database, engine);
            let mut rival = Client::new(&database);
            rival.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
            set_trigger(&database, is_before, move |_, _| {
                fiber::park();
            });
            let outcome = Rc::new(RefCell::new(None));
            let slot = Rc::clone(&outcome);
            let id = in_fiber(&database, move |database, context| {
                let space = database.space(SpaceId(TREES)).unwrap();
                let row = bytes(&json!([1, 1, 1, 7]));
                let done = database.execute(context, &space, Operation::Replace { tuple: &row });
                *slot.borrow_mut() = Some(done.map(|_| ()).map_err(|error| error.code()));
            });
            turn(&database);
            assert!(outcome.borrow().is_none());
            assert_eq!(trees(&database), "[1, 1, 1, 0]");
            rival.run(&database, &rival_op).unwrap();
            let before = trees(&database);
            fiber::wake(id);
            turn(&database);
            let expected = if is_conflict { Err(CONFLICT) } else { Ok(()) };
            assert_eq!(outcome.take(), Some(expected), "before {is_before}, {rival_op:?}");
            let after = if expected.is_ok() { before.replace("[1, 1, 1, 0]", "[1, 1, 1, 7]") } else { before };
            assert_eq!(trees(&database), after);
            assert_eq!(database.suspended(), 0);
        }
    }
}

#[test]
fn a_trigger_may_change_the_row_of_its_statement() {
    on_each_engine(in_a_trigger_may_change_the_row_of_its_statement);
}

fn in_a_trigger_may_change_the_row_of_its_statement(engine: &str) {
    for op in [
        Op::Update(TREES, 0, json!([1]), json!([["+", 3, 2]])),
        Op::Upsert(TREES, json!([1, 1, 1, 2]), json!([["+", 3, 2]])),
        Op::Replace(TREES, json!([1, 1, 1, 7])),
        Op::Delete(TREES, 0, json!([1])),
    ] {
        for trigger_op in [Op::Replace(TREES, json!([1, 1, 1, 5])), Op::Delete(TREES, 0, json!([1]))] {
            let database = open(&SimulatedFiles::default());
            create_spaces_in(&database, engine);
            let mut client = Client::new(&database);
            client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
            let of_trigger = trigger_op.clone();
            set_trigger(&database, true, move |database, context| {
                let space = database.space(SpaceId(TREES)).unwrap();
                let (row, key) = (bytes(&json!([1, 1, 1, 5])), bytes(&json!([1])));
                let operation = match of_trigger {
                    Op::Replace(..) => Operation::Replace { tuple: &row },
                    _ => Operation::Delete { index_id: IndexId::PRIMARY, key: &key },
                };
                database.execute(context, &space, operation).unwrap();
            });
            database.begin(&client.context).unwrap();
            client.run(&database, &op).unwrap();
            // As if the statement came after what the trigger has done.
            let is_there = matches!(trigger_op, Op::Replace(..));
            let expected = match op {
                Op::Delete(..) => "",
                Op::Update(..) if !is_there => "",
                Op::Upsert(..) if !is_there => "[1, 1, 1, 2]",
                _ => "[1, 1, 1, 7]",
            };
            assert_eq!(trees(&database), expected, "{op:?} around {trigger_op:?}");
            database.rollback(&client.context).unwrap();
            assert_eq!(trees(&database), "[1, 1, 1, 0]", "{op:?} around {trigger_op:?}");
        }
    }
}

#[test]
fn a_trigger_does_not_make_an_insert_replace_a_row() {
    on_each_engine(in_a_trigger_does_not_make_an_insert_replace_a_row);
}

fn in_a_trigger_does_not_make_an_insert_replace_a_row(engine: &str) {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let mut client = Client::new(&database);
    client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
    for is_done_by_trigger in [false, true] {
        set_trigger(&database, true, move |database, context| {
            if is_done_by_trigger {
                let space = database.space(SpaceId(TREES)).unwrap();
                let row = bytes(&json!([1, 1, 1, 5]));
                database.execute(context, &space, Operation::Replace { tuple: &row }).unwrap();
            }
        });
        let outcome = client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 7])));
        assert_eq!(outcome, Err(ErrorCode::TupleFound as u32));
        assert_eq!(trees(&database), "[1, 1, 1, 0]");
    }
}

#[test]
fn a_snapshot_asked_for_in_a_transaction_has_nothing_of_it() {
    on_each_engine(in_a_snapshot_asked_for_in_a_transaction_has_nothing_of_it);
}

fn in_a_snapshot_asked_for_in_a_transaction_has_nothing_of_it(engine: &str) {
    let files = SimulatedFiles::default();
    let database = open(&files);
    create_spaces_in(&database, engine);
    let outcome = Rc::new(Cell::new(None));
    let slot = Rc::clone(&outcome);
    in_fiber(&database, move |database, context| {
        let space = database.space(SpaceId(TREES)).unwrap();
        database.begin(context).unwrap();
        database.execute(context, &space, Operation::Insert { tuple: &bytes(&json!([1, 1, 1, 1])) }).unwrap();
        database.make_checkpoint().unwrap();
        slot.set(Some(database.commit(context).is_ok()));
    });
    while outcome.get().is_none() {
        turn(&database);
        runtime::yield_thread();
    }
    assert_eq!(outcome.get(), Some(true));
    // Its row is in the log behind the snapshot or nowhere.
    let logs: Vec<_> = files.list("/db".as_ref()).unwrap().into_iter().filter(|name| name.ends_with("xlog")).collect();
    files.remove(&PathBuf::from("/db").join(logs.last().unwrap())).unwrap();
    // Nor is anything left that would miss it.
    files.remove("/db/lycosa.newest".as_ref()).unwrap();
    drop(database);
    assert_eq!(trees(&open(&files.fork())), "");
}

#[test]
fn a_cancelled_fiber_takes_its_transaction_with_it() {
    on_each_engine(in_a_cancelled_fiber_takes_its_transaction_with_it);
}

fn in_a_cancelled_fiber_takes_its_transaction_with_it(engine: &str) {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let id = in_fiber(&database, |database, context| {
        database.begin(context).unwrap();
        let space = database.space(SpaceId(TREES)).unwrap();
        database.execute(context, &space, Operation::Insert { tuple: &bytes(&json!([1, 1, 1, 1])) }).unwrap();
        assert_eq!(fiber::park(), fiber::Wake::Cancelled);
    });
    turn(&database);
    assert_eq!((trees(&database).as_str(), database.suspended()), ("", 1));
    fiber::cancel(id);
    turn(&database);
    assert_eq!((trees(&database).as_str(), database.suspended()), ("", 0));
}
