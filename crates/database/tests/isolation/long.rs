//! Transactions of many rows: they are put in place in slices, show at one moment, and what they leave behind is freed in slices.

use super::*;

const ROWS: u64 = 100;
/// Rows of a slice.
const SLICE: usize = 7;

/// A database with some rows, whose clients wait in fibers.
fn filled(files: &SimulatedFiles) -> Rc<Database> {
    choose_slice_rows(SLICE);
    let database = open(files);
    create_spaces(&database);
    prepare_fibers(&database);
    let time = Cell::new(0);
    fiber::set_clock(Rc::new(move || {
        time.set(time.get() + 1);
        time.get()
    }));
    let mut client = Client::new(&database);
    for id in 0..ROWS {
        client.run(&database, &Op::Insert(TREES, json!([id, id, 1, 0]))).unwrap();
    }
    turn(&database);
    database
}

fn in_fiber<T: 'static>(
    database: &Rc<Database>,
    work: impl FnOnce(&Rc<Database>, &mut Client) -> T + 'static,
) -> Rc<RefCell<Option<T>>> {
    let done = Rc::new(RefCell::new(None));
    let (slot, database) = (Rc::clone(&done), Rc::clone(database));
    fiber::spawn("client", move || {
        let mut client = Client::new(&database);
        fiber::set_local(Rc::clone(&client.context) as Rc<dyn std::any::Any>);
        let found = work(&database, &mut client);
        *slot.borrow_mut() = Some(found);
    });
    done
}

fn lock(database: &Database, client: &Client, id: u64) {
    let mut key = Vec::new();
    encode(&json!([id]), &mut key);
    let (space, key) = (database.space(SpaceId(TREES)).unwrap(), Key::decode(&key).unwrap());
    database.get_for_update(&client.context, &space, IndexId::PRIMARY, key, None).unwrap();
}

/// Has all rows changed, and locked, by a transaction that waits meanwhile, so that it keeps its writes to itself.
fn change_all(database: &Rc<Database>, client: &mut Client) {
    client.begin(database);
    for id in 0..ROWS {
        lock(database, client, id);
        client.run(database, &Op::Update(TREES, 0, json!([id]), json!([["=", 2, 2], ["+", 1, 1000]]))).unwrap();
        if id == 50 {
            fiber::sleep(1);
        }
    }
}

/// How many rows have the old value and the new one, by the index over it.
fn counts(database: &Rc<Database>) -> (String, String) {
    let mut reader = Client::new(database);
    let mut of = |value: u64| reader.run(database, &Op::Count(TREES, 2, IteratorKind::Eq, json!([value]))).unwrap();
    (of(1), of(2))
}

fn all(old: bool) -> (String, String) {
    let (none, all) = ("0".to_string(), ROWS.to_string());
    if old { (all, none) } else { (none, all) }
}

/// Its rows go one by one, which finds every reference that is one too many or too few.
fn delete_all(database: &Rc<Database>) {
    let mut client = Client::new(database);
    for id in 0..ROWS {
        client.run(database, &Op::Delete(TREES, 0, json!([id]))).unwrap();
    }
    turn(database);
    assert_eq!(counts(database), ("0".to_string(), "0".to_string()));
}

#[test]
fn what_a_long_transaction_leaves_behind_is_freed_in_slices() {
    for is_committed in [true, false] {
        let files = SimulatedFiles::default();
        let database = filled(&files);
        let empty = database.arena().used();
        let done = in_fiber(&database, move |database, client| {
            change_all(database, client);
            if is_committed { database.commit(&client.context) } else { database.rollback(&client.context) }
        });
        let mut turns = 0;
        while done.borrow().is_none() {
            turn(&database);
            turns += 1;
            let seen = counts(&database);
            assert!(seen == all(true) || done.borrow().is_some() && seen == all(!is_committed), "in turn {turns}");
            assert!(turns < 1000, "it comes to an end");
        }
        done.take().unwrap().unwrap();
        assert_eq!(counts(&database), all(!is_committed), "it shows at one moment");
        assert_eq!(turns > ROWS as usize / SLICE, is_committed, "{turns} turns");
        assert_eq!(database.statistics.sliced_commits.get(), u64::from(is_committed));
        let (mut used, mut slices) = (vec![database.arena().used()], 0);
        for _ in 0..200 {
            turn(&database);
            slices += usize::from(database.arena().used() < *used.last().unwrap());
            used.push(database.arena().used());
        }
        assert!(slices > ROWS as usize / SLICE / 2, "freed in {slices} slices: {used:?}");
        // A number above 1000 takes two bytes more.
        let longer = if is_committed { 2 * ROWS as usize } else { 0 };
        assert_eq!(database.arena().used(), empty + longer, "nothing is left");
        assert_eq!(database.lock_counts(), (0, 0));
        assert_eq!(counts(&database), all(!is_committed));
        let seen = contents(&database);
        delete_all(&database);
        drop(database);
        let database = open(&files.crash(runtime::Loss::All));
        assert!(contents(&database).iter().zip(&seen).all(|(now, then)| now.len() <= then.len()));
        choose_slice_rows(2000);
    }
}

/// Who waits for rows that a long transaction has locked gets each of them.
#[test]
fn locks_of_a_long_transaction_go_in_slices_and_all_of_them() {
    let database = filled(&SimulatedFiles::default());
    let done = in_fiber(&database, |database, client| {
        change_all(database, client);
        fiber::sleep(1);
        database.commit(&client.context).unwrap();
    });
    (0..5).for_each(|_| turn(&database));
    let waiting: Vec<_> = (0..ROWS)
        .map(|id| {
            in_fiber(&database, move |database, client| {
                client.begin(database);
                lock(database, client, id);
                client.run(database, &Op::Update(TREES, 0, json!([id]), json!([["=", 3, 5]]))).unwrap();
                database.commit(&client.context).map_err(|error| error.code())
            })
        })
        .collect();
    for turns in 0.. {
        turn(&database);
        if waiting.iter().all(|one| one.borrow().is_some()) {
            break;
        }
        assert!(turns < 1000, "somebody waits for ever");
    }
    assert!(done.borrow().is_some());
    waiting.iter().for_each(|one| assert_eq!(one.take(), Some(Ok(()))));
    assert_eq!(database.lock_counts(), (0, 0));
    assert!(contents(&database)[0].contains("[7, 1007, 2, 5]"));
    delete_all(&database);
    choose_slice_rows(2000);
}

/// The log fails with the long transaction in it.
#[test]
fn a_log_that_fails_takes_all_of_a_long_transaction_back() {
    let files = SimulatedFiles::default();
    let database = filled(&files);
    let before = contents(&database);
    let failing = files.clone();
    let done = in_fiber(&database, move |database, client| {
        change_all(database, client);
        failing.set_fault(Fault { syncs_until_error: Some(0), ..Fault::default() });
        // Whoever has asked for it is answered when the log has it.
        database.commit(&client.context).unwrap();
    });
    for _ in 0..200 {
        turn(&database);
    }
    assert!(matches!(database.state(), database::State::LogFailed(_)));
    assert!(done.borrow().is_some());
    assert_eq!(contents(&database), before);
    assert_eq!(counts(&database), all(true));
    assert_eq!(database.lock_counts(), (0, 0));
    choose_slice_rows(2000);
}

/// Others change rows of the same space in every turn of a slow commit: what they have done is there with it, and none of them waits.
#[test]
fn others_write_to_a_space_while_many_rows_come_to_it() {
    for ends in [Ending::Well, Ending::Met, Ending::LogFails] {
        let files = SimulatedFiles::default();
        let database = filled(&files);
        // The transaction changes these only.
        let own = 0..60;
        let done = in_fiber(&database, move |database, client| {
            client.begin(database);
            for id in own {
                // Each row twice, so that a change has the row of another one for its old one.
                client.run(database, &Op::Replace(TREES, json!([id, 1000 + id, 2, 0]))).unwrap();
                client.run(database, &Op::Update(TREES, 0, json!([id]), json!([["=", 3, 7]]))).unwrap();
            }
            fiber::sleep(1);
            client.run(database, &Op::Get(TREES, 0, json!([0]))).unwrap();
            database.commit(&client.context).map_err(|error| error.code())
        });
        let mut writer = Client::new(&database);
        let (mut turns, mut fresh) = (0, 500);
        while done.borrow().is_none() {
            turn(&database);
            turns += 1;
            assert!(turns < 1000, "it comes to an end");
            let id = 60 + turns % 40;
            writer.run(&database, &Op::Update(TREES, 0, json!([id]), json!([["+", 3, 1]]))).unwrap();
            writer.run(&database, &Op::Insert(TREES, json!([fresh, fresh, 1, 0]))).unwrap();
            if fresh % 3 == 0 {
                writer.run(&database, &Op::Delete(TREES, 0, json!([fresh]))).unwrap();
            }
            fresh += 1;
            // One that is rolled back leaves nothing in either state.
            let mut other = Client::new(&database);
            other.begin(&database);
            other.run(&database, &Op::Delete(TREES, 0, json!([id]))).unwrap();
            database.rollback(&other.context).unwrap();
            match ends {
                Ending::Met if turns == 6 => {
                    writer.run(&database, &Op::Update(TREES, 0, json!([59]), json!([["=", 3, 3]]))).unwrap();
                }
                Ending::LogFails if turns == 6 => {
                    files.set_fault(Fault { syncs_until_error: Some(0), ..Fault::default() });
                    break;
                }
                _ => {}
            }
        }
        let before = contents(&database);
        (0..200).for_each(|_| turn(&database));
        let result = done.take();
        assert_eq!(database.lock_counts(), (0, 0));
        let row = |id: u64| Client::new(&database).run(&database, &Op::Get(TREES, 0, json!([id]))).unwrap();
        match ends {
            Ending::Well => {
                assert!(turns > 60 * 2 / SLICE as u64, "{turns} turns");
                assert_eq!((result, row(59)), (Some(Ok(())), "[59, 1059, 2, 7]".to_string()));
                assert_eq!(contents(&database), before);
            }
            Ending::Met => {
                assert_eq!((result, row(59)), (Some(Err(CONFLICT)), "[59, 59, 1, 3]".to_string()));
                assert_eq!(row(58), "[58, 58, 1, 0]");
            }
            Ending::LogFails => {
                assert!(matches!(result, Some(Err(_))), "{result:?}");
                assert_eq!(row(59), "[59, 59, 1, 0]");
            }
        }
        // All indexes have the same rows, by whose keys they go.
        let count = |index| {
            let all = Op::Count(TREES, index, IteratorKind::All, json!([]));
            Client::new(&database).run(&database, &all).unwrap()
        };
        assert_eq!(count(0), count(1));
        assert_eq!(count(0), count(2));
        if ends != Ending::LogFails {
            let seen = contents(&database);
            let kept = files.crash(runtime::Loss::All);
            let rows: Vec<u64> = (0..fresh).filter(|id| row(*id) != "nil").collect();
            for id in &rows {
                writer.run(&database, &Op::Delete(TREES, 0, json!([id]))).unwrap();
            }
            assert_eq!(count(2), "0");
            let again = open(&kept);
            assert_eq!(contents(&again), seen, "and so after a restart");
        }
        choose_slice_rows(2000);
    }
}

/// How a slow commit ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Well,
    /// Somebody changes one of its rows.
    Met,
    LogFails,
}

/// The space is emptied, or gets another index, while many rows are about to come to it.
#[test]
fn a_change_of_the_schema_ends_a_slow_commit() {
    for is_truncated in [true, false] {
        let database = filled(&SimulatedFiles::default());
        let done = in_fiber(&database, |database, client| {
            change_all(database, client);
            database.commit(&client.context).map_err(|error| error.code())
        });
        (0..6).for_each(|_| turn(&database));
        assert!(done.borrow().is_none(), "it is under way");
        let changed = in_fiber(&database, move |database, client| {
            let op = match is_truncated {
                true => Op::Truncate(TREES),
                false => Op::Delete(INDEX_ID.0, 0, json!([TREES, 2])),
            };
            client.run(database, &op)
        });
        (0..200).for_each(|_| turn(&database));
        let (done, changed) = (done.take().unwrap(), changed.take().unwrap());
        assert!(done == Ok(()) || done == Err(CONFLICT), "{done:?}");
        changed.unwrap();
        assert_eq!(database.lock_counts(), (0, 0));
        let count = Client::new(&database).run(&database, &Op::Count(TREES, 0, IteratorKind::All, json!([]))).unwrap();
        assert_eq!(count, if is_truncated { "0".to_string() } else { ROWS.to_string() });
        choose_slice_rows(2000);
    }
}

/// Two transactions of many rows each in one space: the second is put in place at one go.
#[test]
fn of_two_that_bring_many_rows_none_loses_any() {
    let database = filled(&SimulatedFiles::default());
    let commits: Vec<_> = (1..=3u64)
        .map(|number| {
            in_fiber(&database, move |database, client| {
                client.begin(database);
                for id in 0..30 {
                    let id = number * 1000 + id;
                    client.run(database, &Op::Insert(TREES, json!([id, id, 3, 0]))).unwrap();
                    client.run(database, &Op::Replace(BLIND, json!([id]))).unwrap();
                }
                fiber::sleep(1);
                client.run(database, &Op::Get(TREES, 0, json!([number]))).unwrap();
                database.commit(&client.context).map_err(|error| error.code())
            })
        })
        .collect();
    (0..300).for_each(|_| turn(&database));
    commits.iter().for_each(|one| assert_eq!(one.take(), Some(Ok(()))));
    for space in [TREES, BLIND] {
        let count = Op::Count(space, 0, IteratorKind::Ge, json!([1000]));
        assert_eq!(Client::new(&database).run(&database, &count).unwrap(), "90");
    }
    choose_slice_rows(2000);
}

/// Who has read what a transaction of many rows changes is met by its commit, whatever it has read; who has not goes on.
#[test]
fn who_has_read_what_many_rows_take_the_place_of_is_met() {
    let range = || Op::Select(TREES, 0, IteratorKind::Ge, json!([55]), 0, 3);
    let by_value = || Op::Select(TREES, 1, IteratorKind::Eq, json!([7]), 0, 3);
    let elsewhere = || Op::Get(TREES, 0, json!([80]));
    let cases: [(Op, bool); 4] =
        [(Op::Get(TREES, 0, json!([7])), true), (range(), true), (by_value(), true), (elsewhere(), false)];
    for (read, is_met) in cases {
        let database = filled(&SimulatedFiles::default());
        let long = in_fiber(&database, |database, client| {
            client.begin(database);
            for id in 0..60 {
                client.run(database, &Op::Update(TREES, 0, json!([id]), json!([["=", 3, 7]]))).unwrap();
            }
            fiber::sleep(1);
            client.run(database, &Op::Get(TREES, 0, json!([0]))).unwrap();
            database.commit(&client.context).map_err(|error| error.code())
        });
        let other = in_fiber(&database, move |database, client| {
            client.begin(database);
            client.run(database, &read).unwrap();
            client.run(database, &Op::Insert(TREES, json!([900, 900, 1, 0]))).unwrap();
            while database.statistics.sliced_commits.get() == 0 {
                fiber::sleep(1);
            }
            database.commit(&client.context).map_err(|error| error.code())
        });
        (0..200).for_each(|_| turn(&database));
        assert_eq!(long.take(), Some(Ok(())));
        assert_eq!(other.take(), Some(if is_met { Err(CONFLICT) } else { Ok(()) }));
        choose_slice_rows(2000);
    }
}
