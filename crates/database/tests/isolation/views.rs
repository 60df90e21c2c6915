//! Transactions that have only read go on in the state that they saw, whatever others do.

use super::*;

/// Rows that come and go under the readers.
const ROWS: u64 = 200;

/// A database whose views may hold so many bytes, with rows in both spaces that lie in `engine`.
fn with_rows(engine: &str, view_bytes: u64) -> (Rc<Database>, Client) {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    database.reconfigure(|config| config.read_view_memory = view_bytes);
    let mut writer = Client::new(&database);
    fill(&database, &mut writer, 0);
    (database, writer)
}

/// Gives all rows other values, those of a round.
fn fill(database: &Database, writer: &mut Client, round: u64) {
    for id in 0..ROWS {
        writer.run(database, &Op::Replace(TREES, json!([id, id, round, round]))).unwrap();
        writer.run(database, &Op::Replace(BLIND, json!([id, round]))).unwrap();
        writer.run(database, &Op::Replace(HASHES, json!([format!("k{id}"), id, round]))).unwrap();
    }
}

/// Everything that can be read, in words.
fn all(database: &Database, client: &mut Client) -> Vec<String> {
    let mut reads = Vec::new();
    for (space, index_id) in [(TREES, 0), (TREES, 1), (TREES, 2), (HASHES, 0), (HASHES, 1), (BLIND, 0)] {
        reads.push(Op::Select(space, index_id, IteratorKind::All, json!([]), 0, 10_000));
    }
    reads.extend([
        Op::Count(TREES, 2, IteratorKind::Eq, json!([0])),
        Op::Count(HASHES, 0, IteratorKind::All, json!([])),
        Op::Get(TREES, 1, json!([7, 0])),
        Op::Get(TREES, 1, json!([7, 1])),
        Op::Get(HASHES, 0, json!(["k9"])),
        Op::Get(HASHES, 1, json!([9])),
        Op::Select(TREES, 2, IteratorKind::Req, json!([0]), 3, 5),
    ]);
    reads.iter().map(|op| client.run(database, op).unwrap()).collect()
}

/// Begins a transaction that has read a row of each space, and waits.
fn reader(database: &Database) -> Client {
    let mut client = Client::new(database);
    client.begin(database);
    for (space, key) in [(TREES, json!([0])), (BLIND, json!([0])), (HASHES, json!(["k0"]))] {
        client.run(database, &Op::Get(space, 0, key)).unwrap();
    }
    database.suspend(&client.context);
    client
}

#[test]
fn a_reader_sees_one_state_for_as_long_as_it_likes() {
    on_each_engine(|engine| {
        let (database, mut writer) = with_rows(engine, 64 << 20);
        let before = all(&database, &mut writer);
        let (mut one, mut other) = (reader(&database), reader(&database));
        for round in 1..5 {
            fill(&database, &mut writer, round);
            for id in 0..ROWS / 2 {
                writer.run(&database, &Op::Delete(TREES, 0, json!([id]))).unwrap();
                writer.run(&database, &Op::Delete(BLIND, 0, json!([id]))).unwrap();
                writer.run(&database, &Op::Upsert(BLIND, json!([id, round]), json!([["=", 1, 9]]))).unwrap();
                writer.run(&database, &Op::Insert(TREES, json!([1000 * round + id, 1000 * round + id, 1, 1]))).unwrap();
            }
            assert!(all(&database, &mut one) == before, "{engine}, round {round}");
            database.suspend(&one.context);
        }
        // Who has not looked for long has more to catch up with.
        assert!(all(&database, &mut other) == before);
        assert!(database.is_in_view(&other.context));
        database.suspend(&other.context);
        assert_eq!(database.view_counts().open, 1, "both were met by the same commit");
        database.commit(&one.context).unwrap();
        assert!(database.view_counts().bytes > 0);
        database.commit(&other.context).unwrap();
        assert_eq!(database.view_counts(), database::ViewCounts::default());
        assert!(all(&database, &mut writer) != before);
    });
}

#[test]
fn a_view_shows_the_state_before_a_whole_transaction() {
    on_each_engine(|engine| {
        let (database, mut writer) = with_rows(engine, 64 << 20);
        let before = all(&database, &mut writer);
        let mut one = reader(&database);
        writer.begin(&database);
        // The first statement changes nothing that the reader has seen, the second does.
        for op in [
            Op::Replace(TREES, json!([7, 7, 1, 1])),
            Op::Replace(BLIND, json!([7, 1])),
            Op::Replace(TREES, json!([0, 0, 1, 1])),
            Op::Insert(TREES, json!([5000, 5000, 1, 1])),
        ] {
            writer.run(&database, &op).unwrap();
        }
        database.commit(&writer.context).unwrap();
        let after = all(&database, &mut writer);
        assert!(all(&database, &mut one) == before, "{engine}");
        database.rollback(&one.context).unwrap();
        assert!(all(&database, &mut one) == after);
    });
}

#[test]
fn who_has_rolled_back_all_that_it_wrote_is_a_reader() {
    on_each_engine(|engine| {
        let (database, mut writer) = with_rows(engine, 64 << 20);
        let before = all(&database, &mut writer);
        let mut one = reader(&database);
        one.run(&database, &Op::Savepoint).unwrap();
        one.run(&database, &Op::Replace(TREES, json!([3, 3, 3, 3]))).unwrap();
        one.run(&database, &Op::Replace(BLIND, json!([3, 3]))).unwrap();
        database.suspend(&one.context);
        one.run(&database, &Op::RollbackTo).unwrap();
        database.suspend(&one.context);
        fill(&database, &mut writer, 1);
        assert!(all(&database, &mut one) == before, "{engine}");
        database.commit(&one.context).unwrap();
    });
}

#[test]
fn a_scan_that_has_begun_goes_on_in_the_view() {
    on_each_engine(|engine| {
        let (database, mut writer) = with_rows(engine, 64 << 20);
        for (space, index_id) in [(TREES, 0), (TREES, 2), (HASHES, 0), (BLIND, 0)] {
            let mut one = Client::new(&database);
            one.begin(&database);
            let (space, key) = (database.space(SpaceId(space)).unwrap(), bytes(&json!([])));
            let request = ScanRequest::new(IndexId(index_id), IteratorKind::All, Key::decode(&key).unwrap());
            let mut cursor = database.cursor(&one.context, &space, &request).unwrap();
            let mut rows = Vec::new();
            for at in 0.. {
                let Some(row) = cursor.next(&database, &one.context).unwrap() else { break };
                rows.push(text(row.data()));
                if at % 50 == 0 {
                    database.suspend(&one.context);
                    fill(&database, &mut writer, 1 + at);
                    writer.run(&database, &Op::Delete(TREES, 0, json!([180]))).unwrap();
                    writer.run(&database, &Op::Delete(HASHES, 0, json!(["k180"]))).unwrap();
                }
            }
            let values: std::collections::BTreeSet<_> =
                rows.iter().map(|row| row.trim_end_matches(']').rsplit(' ').next().unwrap().to_string()).collect();
            assert_eq!((rows.len() as u64, values.len()), (ROWS, 1), "{engine}: {} index {index_id}", space.name());
            one.run(&database, &Op::Next).unwrap();
            database.commit(&one.context).unwrap();
            fill(&database, &mut writer, 0);
        }
    });
}

#[test]
fn what_is_read_in_a_view_cannot_be_written_on() {
    on_each_engine(|engine| {
        for write in [
            Op::Replace(TREES, json!([3, 3, 3, 3])),
            Op::Delete(BLIND, 0, json!([3])),
            Op::Insert(TEMPORARY, json!([1])),
            Op::Truncate(HASHES),
        ] {
            let (database, mut writer) = with_rows(engine, 64 << 20);
            let mut one = reader(&database);
            fill(&database, &mut writer, 1);
            let before = all(&database, &mut writer);
            assert_eq!(one.run(&database, &write), Err(CONFLICT), "{engine}: {write:?}");
            assert_eq!(database.commit(&one.context).unwrap_err().code(), CONFLICT);
            assert!(all(&database, &mut writer) == before);
            assert_eq!(database.view_counts().open, 0);
        }
    });
}

#[test]
fn at_the_bound_the_oldest_view_ends() {
    let aborted = ErrorCode::ReadViewAborted as u32;
    let (database, mut writer) = with_rows("memtx", 400 << 10);
    let mut oldest = reader(&database);
    writer.run(&database, &Op::Replace(TREES, json!([0, 0, 5, 5]))).unwrap();
    let mut newest = reader(&database);
    let mut rounds = 0;
    while database.view_counts().ended == 0 {
        rounds += 1;
        // Rows that come count like those that were there.
        for id in 0..ROWS {
            writer.run(&database, &Op::Insert(TREES, json!([1000 * rounds + id, 1000 * rounds + id, 1, 1]))).unwrap();
        }
        fill(&database, &mut writer, rounds);
        assert!(database.view_counts().bytes <= 400 << 10, "{:?}", database.view_counts());
        assert!(rounds < 100);
    }
    assert!(rounds > 1, "what is changed again and again is held once");
    let read = Op::Get(TREES, 0, json!([0]));
    assert_eq!(oldest.run(&database, &read), Err(aborted));
    assert_eq!(oldest.run(&database, &read), Err(aborted), "until it is rolled back");
    assert_eq!(newest.run(&database, &read).unwrap(), "[0, 0, 5, 5]");
    database.rollback(&oldest.context).unwrap();
    assert!(oldest.run(&database, &read).is_ok());
    database.commit(&newest.context).unwrap();
    assert_eq!(database.view_counts().bytes, 0);
}

#[test]
fn views_of_many_moments_are_bounded() {
    let (database, mut writer) = with_rows("memtx", 64 << 20);
    let mut readers = Vec::new();
    for round in 0..150 {
        let client = reader(&database);
        writer.run(&database, &Op::Replace(TREES, json!([0, 0, 1, round]))).unwrap();
        readers.push(client);
    }
    let counts = database.view_counts();
    assert_eq!((counts.open, counts.ended), (128, 22));
    for (at, client) in readers.iter_mut().enumerate() {
        let seen = client.run(&database, &Op::Get(TREES, 0, json!([0])));
        match at {
            0..22 => assert_eq!(seen, Err(ErrorCode::ReadViewAborted as u32)),
            _ => assert_eq!(seen.unwrap(), format!("[0, 0, 1, {}]", at - 1)),
        }
    }
    readers.iter().for_each(|client| database.abandon(&client.context));
    assert_eq!((database.view_counts().open, database.view_counts().bytes), (0, 0));
}

#[test]
fn a_reader_that_is_far_behind_is_brought_nearer_by_who_writes() {
    let (database, mut writer) = with_rows("memtx", 1 << 30);
    let before = all(&database, &mut writer);
    let mut one = reader(&database);
    for round in 0..100 {
        fill(&database, &mut writer, round);
    }
    // Each row once: the changes are not kept beyond what a reader may be behind.
    assert!(database.view_counts().bytes < 8 << 20, "{:?}", database.view_counts());
    assert!(all(&database, &mut one) == before);
}

#[test]
fn what_views_keep_of_dumped_memtables_counts() {
    let (database, mut writer) = with_rows("vinyl", 256 << 10);
    let long = "x".repeat(1000);
    for id in 0..300 {
        writer.run(&database, &Op::Replace(BLIND, json!([id, long]))).unwrap();
    }
    let mut one = reader(&database);
    writer.run(&database, &Op::Replace(BLIND, json!([0, 1]))).unwrap();
    assert!(one.run(&database, &Op::Get(BLIND, 0, json!([0]))).unwrap().contains(&long));
    database.suspend(&one.context);
    database.make_checkpoint().unwrap();
    (0..10).for_each(|_| turn(&database));
    assert_eq!(database.view_counts().ended, 1, "{:?}", database.view_counts());
    assert_eq!(one.run(&database, &Op::Get(BLIND, 0, json!([0]))), Err(ErrorCode::ReadViewAborted as u32));
}

#[test]
fn a_space_that_has_become_another_cannot_be_shown() {
    on_each_engine(|engine| {
        let (database, mut writer) = with_rows(engine, 64 << 20);
        let before = all(&database, &mut writer);
        let (mut one, mut other) = (reader(&database), reader(&database));
        writer.run(&database, &Op::Replace(TREES, json!([0, 0, 5, 5]))).unwrap();
        assert!(all(&database, &mut one) == before);
        database.suspend(&one.context);
        writer.run(&database, &Op::Truncate(HASHES)).unwrap();
        assert_eq!(one.run(&database, &Op::Get(TREES, 0, json!([0]))).unwrap(), "[0, 0, 0, 0]");
        assert_eq!(one.run(&database, &Op::Get(HASHES, 0, json!(["k1"]))), Err(CONFLICT));
        assert_eq!(other.run(&database, &Op::Count(TREES, 0, IteratorKind::All, json!([]))).unwrap(), "200");
        database.commit(&other.context).unwrap();
    });
}
