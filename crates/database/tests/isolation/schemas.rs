//! Transactions that change the schema and wait: others see nothing of them until they commit, and they go on as if they had not waited.

use super::*;
use std::fmt::Write;

/// Numbers of spaces that transactions make and drop. The first is there before.
const SPACES: [u32; 3] = [600, 601, 602];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64: https://prng.di.unimi.it/splitmix64.c
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// Everything that somebody sees who looks from outside: the spaces with their formats and indexes, and the rows by each index.
fn all_that_is_seen(database: &Database) -> String {
    let (mut seen, mut reader) = (String::new(), Client::new(database));
    for space in database.catalog.spaces() {
        if space.is_system() && ![SPACE_ID, INDEX_ID, SEQUENCE_ID].contains(&space.id) {
            continue;
        }
        let names: Vec<String> = space.def().fields.iter().map(|field| field.name.clone()).collect();
        let by_name = database.catalog.space_by_name(&space.name()).map(|space| space.id);
        let attached = space.sequence.borrow().as_ref().map(|attached| attached.field_no);
        let _ = writeln!(seen, "{} {} {by_name:?} {names:?} {attached:?}", space.id, space.name());
        for index in space.indexes().iter() {
            let all = Op::Select(space.id.0, index.id.0, IteratorKind::All, json!([]), 0, 10_000);
            let _ = writeln!(seen, "  {} {}", index.name, reader.run(database, &all).unwrap());
        }
    }
    let sequences: Vec<String> = database.catalog.sequences().iter().map(|one| one.def().name.clone()).collect();
    let _ = writeln!(seen, "{sequences:?}");
    seen
}

/// A statement about the schema, or about rows.
fn some_op(dice: &mut Dice, engine: &str) -> Op {
    let space = SPACES[dice.roll(3) as usize];
    let unique = json!({"unique": true});
    let format = |count: u64| {
        let field = |number: u64| json!({"name": format!("f{number}"), "type": "unsigned", "is_nullable": number > 0});
        (0..count).map(field).collect::<Vec<_>>()
    };
    let row = |dice: &mut Dice| json!([dice.roll(12), dice.roll(4), dice.roll(30)]);
    match dice.roll(26) {
        0..=2 => Op::Insert(SPACE_ID.0, json!([space, 1, format!("s{space}"), engine, 0, {}, format(dice.roll(4))])),
        3 => Op::Delete(SPACE_ID.0, 0, json!([space])),
        4 => {
            let name = format!("t{}", dice.roll(3));
            Op::Update(SPACE_ID.0, 0, json!([space]), json!([["=", 2, name]]))
        }
        5 => Op::Update(SPACE_ID.0, 0, json!([space]), json!([["=", 6, format(dice.roll(5))]])),
        6..=8 => Op::Insert(INDEX_ID.0, json!([space, 0, "primary", "tree", unique, [[0, "unsigned"]]])),
        9 => Op::Insert(INDEX_ID.0, json!([space, 1, "one", "tree", {"unique": false}, [[1, "unsigned"]]])),
        10 => Op::Insert(INDEX_ID.0, json!([space, 2, "two", "tree", unique, [[2, "unsigned"]]])),
        11 => Op::Delete(INDEX_ID.0, 0, json!([space, dice.roll(3)])),
        12 => Op::Replace(INDEX_ID.0, json!([space, 1, "uno", "tree", {"unique": false}, [[2, "unsigned"]]])),
        13 | 24 | 25 => Op::Truncate(space),
        14 => {
            let id = 70 + dice.roll(2);
            Op::Insert(SEQUENCE_ID.0, json!([id, 1, format!("q{id}"), 1, 1, 1000, 1, 0, false]))
        }
        15 => Op::Delete(SEQUENCE_ID.0, 0, json!([70 + dice.roll(2)])),
        16 => Op::Savepoint,
        17 => Op::RollbackTo,
        18 => Op::Delete(space, 0, json!([dice.roll(12)])),
        19 => Op::Replace(space, row(dice)),
        _ => Op::Insert(if dice.roll(4) == 0 { TREES } else { space }, row(dice)),
    }
}

fn prepare(engine: &str) -> Rc<Database> {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let mut admin = Client::new(&database);
    for op in [
        Op::Insert(SPACE_ID.0, json!([600, 1, "s600", engine, 0, {}, []])),
        Op::Insert(INDEX_ID.0, json!([600, 0, "primary", "tree", {"unique": true}, [[0, "unsigned"]]])),
        Op::Insert(INDEX_ID.0, json!([600, 1, "one", "tree", {"unique": false}, [[1, "unsigned"]]])),
        Op::Insert(600, json!([1, 1, 1])),
        Op::Insert(600, json!([2, 1, 2])),
        Op::Insert(TREES, json!([100, 1, 1])),
    ] {
        admin.run(&database, &op).unwrap();
    }
    database
}

#[test]
fn who_has_changed_the_schema_goes_on_as_if_it_had_not_waited() {
    for engine in ENGINES {
        for seed in 0..250 {
            let mut dice = Dice(seed);
            let (plain, waiting) = (prepare(engine), prepare(engine));
            if dice.roll(2) == 0 {
                // Spaces are copied as soon as the rows that were put back are as many as theirs.
                waiting.limits.in_place_max.set(0);
            }
            let before = all_that_is_seen(&waiting);
            let version = waiting.catalog.schema_version();
            let (mut one, mut other) = (Client::new(&plain), Client::new(&waiting));
            one.begin(&plain);
            other.begin(&waiting);
            let mut ops = Vec::new();
            for _ in 0..3 + dice.roll(25) {
                if dice.roll(3) == 0 {
                    waiting.suspend(&other.context);
                    assert_eq!(all_that_is_seen(&waiting), before, "{engine}, seed {seed}: {ops:#?}");
                    assert_eq!(waiting.catalog.schema_version(), version);
                    // Somebody else has a turn.
                    let _ = Client::new(&waiting).run(&waiting, &Op::Replace(TEMPORARY, json!([dice.roll(9)])));
                    Client::new(&waiting).run(&waiting, &Op::Delete(TEMPORARY, 0, json!([0]))).unwrap();
                    for id in 0..9 {
                        let _ = Client::new(&waiting).run(&waiting, &Op::Delete(TEMPORARY, 0, json!([id])));
                    }
                    waiting.resume(&other.context).unwrap();
                }
                let op = some_op(&mut dice, engine);
                let outcome = one.run(&plain, &op);
                ops.push((op.clone(), outcome.clone()));
                assert_eq!(other.run(&waiting, &op), outcome, "{engine}, seed {seed}: {ops:#?}");
            }
            if dice.roll(2) == 0 {
                waiting.suspend(&other.context);
            }
            if dice.roll(2) == 0 {
                plain.commit(&one.context).unwrap();
                waiting.commit(&other.context).unwrap();
                assert_eq!(all_that_is_seen(&waiting), all_that_is_seen(&plain), "{engine}, seed {seed}: {ops:#?}");
            } else {
                waiting.rollback(&other.context).unwrap();
                assert_eq!(all_that_is_seen(&waiting), before, "{engine}, seed {seed}: {ops:#?}");
            }
            assert_eq!(waiting.suspended(), 0);
            assert_eq!(waiting.lock_counts(), (0, 0), "{engine}, seed {seed}: {ops:#?}");
        }
    }
}

#[test]
fn only_one_transaction_changes_the_schema_and_who_has_not_seen_it_conflicts_with_none() {
    let database = prepare("memtx");
    let (mut first, mut second) = (Client::new(&database), Client::new(&database));
    first.begin(&database);
    let rename = Op::Update(SPACE_ID.0, 0, json!([600]), json!([["=", 2, "renamed"]]));
    first.run(&database, &rename).unwrap();
    database.suspend(&first.context);
    // Without a fiber nobody can wait.
    let create = Op::Insert(SPACE_ID.0, json!([601, 1, "other", "memtx", 0, {}, []]));
    assert!(second.try_run(&database, &create).unwrap_err().is_needs_fiber());
    assert!(second.try_run(&database, &Op::Insert(600, json!([9, 9, 9]))).unwrap_err().is_needs_fiber());
    assert_eq!(second.run(&database, &Op::Get(600, 0, json!([1]))).unwrap(), "[1, 1, 1]");
    second.run(&database, &Op::Insert(TREES, json!([101, 2, 2]))).unwrap();
    database.commit(&first.context).unwrap();
    assert!(database.catalog.space_by_name("renamed").is_some());
    second.run(&database, &create).unwrap();
    second.run(&database, &Op::Insert(600, json!([9, 9, 9]))).unwrap();
    // What it has read of a table that is changed is a conflict.
    first.begin(&database);
    first.run(&database, &Op::Get(TREES, 0, json!([100]))).unwrap();
    first.run(&database, &Op::Insert(SPACE_ID.0, json!([602, 1, "mine", "memtx", 0, {}, []]))).unwrap();
    database.suspend(&first.context);
    second.run(&database, &Op::Delete(TREES, 0, json!([100]))).unwrap();
    assert_eq!(database.commit(&first.context).unwrap_err().code(), CONFLICT);
    assert!(database.space(SpaceId(602)).is_err());
    assert_eq!(database.lock_counts(), (0, 0));
    second.run(&database, &Op::Insert(SPACE_ID.0, json!([602, 1, "mine", "memtx", 0, {}, []]))).unwrap();
}

/// Others have read and written a space of which a copy is made: what they have done is neither lost nor in the copy alone.
#[test]
fn who_writes_to_a_space_that_was_copied_meanwhile_meets_a_conflict() {
    let database = prepare("memtx");
    database.limits.in_place_max.set(0);
    let (mut one, mut other) = (Client::new(&database), Client::new(&database));
    other.begin(&database);
    other.run(&database, &Op::Insert(TREES, json!([200, 2, 2]))).unwrap();
    database.suspend(&other.context);
    one.begin(&database);
    one.run(&database, &Op::Insert(SPACE_ID.0, json!([601, 1, "s601", "memtx", 0, {}, []]))).unwrap();
    for id in 300..310 {
        one.run(&database, &Op::Insert(TREES, json!([id, id, id]))).unwrap();
    }
    let count =
        |client: &mut Client| client.run(&database, &Op::Select(TREES, 0, IteratorKind::All, json!([]), 0, 100));
    database.suspend(&one.context);
    assert_eq!(database.lock_counts().0, 1, "the schema");
    database.resume(&one.context).unwrap();
    // From the second wait on.
    database.suspend(&one.context);
    assert_eq!(database.lock_counts().0, 2, "the schema and the space");
    let seen = all_that_is_seen(&database);
    assert!(seen.contains("[100, 1, 1]") && !seen.contains("[300, 300, 300]"), "{seen}");
    let conflict = database.commit(&other.context).unwrap_err();
    assert_eq!(conflict.code(), CONFLICT);
    database.resume(&one.context).unwrap();
    let own = count(&mut one).unwrap();
    database.commit(&one.context).unwrap();
    assert_eq!(count(&mut Client::new(&database)).unwrap(), own);
    assert_eq!(database.lock_counts(), (0, 0));
    Client::new(&database).run(&database, &Op::Insert(TREES, json!([200, 2, 2]))).unwrap();
}
