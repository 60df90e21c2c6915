//! The anomalies that docs/isolation.md lists, one by one, on both engines: what the page says is what happens.
#![allow(clippy::unwrap_used, reason = "a test")]

mod rig;

use database::{Context, Database, ErrorCode, INDEX_ID, Key, Operation, SPACE_ID, ScanRequest};
use rig::{config, drive, encode, insert, open_with, request};
use runtime::SimulatedFiles;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::msgpack::Reader;
use tuple::{IndexId, SpaceId};

const SPACE: u32 = 512;
const CONFLICT: Result<(), u32> = Err(ErrorCode::TransactionConflict as u32);

/// Two transactions that take turns: whoever is not next waits.
struct Turns {
    database: Rc<Database>,
    contexts: [Context; 2],
}

const ONE: usize = 0;
const TWO: usize = 1;

impl Turns {
    /// Rows 1 and 2 with value 10 each; both transactions have begun.
    fn new(engine: &str) -> Self {
        let database = open_with(&SimulatedFiles::default(), config()).unwrap();
        let admin = request(&database);
        insert(&database, &admin, SPACE_ID.0, &format!(r#"[{SPACE}, 1, "accounts", "{engine}", 0, {{}}, []]"#))
            .unwrap();
        let primary = format!(r#"[{SPACE}, 0, "primary", "tree", {{"unique": true}}, [[0, "unsigned"]]]"#);
        insert(&database, &admin, INDEX_ID.0, &primary).unwrap();
        for id in 1..=2 {
            insert(&database, &admin, SPACE, &format!("[{id}, 10]")).unwrap();
        }
        drive(&database);
        let contexts = [request(&database), request(&database)];
        for context in &contexts {
            database.begin(context).unwrap();
        }
        Turns { database, contexts }
    }

    /// The other one waits from here on.
    fn turn(&self, who: usize) -> &Context {
        self.database.suspend(&self.contexts[1 - who]);
        &self.contexts[who]
    }

    fn put(&self, who: usize, id: u64, value: u64) -> Result<(), u32> {
        let space = self.database.space(SpaceId(SPACE)).unwrap();
        let row = encode(&format!("[{id}, {value}]"));
        let done = self.database.execute(self.turn(who), &space, Operation::Replace { tuple: &row });
        done.map(|_| ()).map_err(|error| error.code())
    }

    /// The value of a row, 0 if there is none.
    fn get(&self, who: usize, id: u64) -> Result<u64, u32> {
        let space = self.database.space(SpaceId(SPACE)).unwrap();
        let key = encode(&format!("[{id}]"));
        let found = self.database.get(self.turn(who), &space, IndexId::PRIMARY, Key::decode(&key).unwrap());
        found.map(|row| row.map_or(0, |row| value_of(row.data()))).map_err(|error| error.code())
    }

    /// The sum of all values.
    fn sum(&self, who: usize) -> Result<u64, u32> {
        let space = self.database.space(SpaceId(SPACE)).unwrap();
        let mut sum = 0;
        let all = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
        let done = self.database.select(self.turn(who), &space, &all, |row| {
            sum += value_of(row);
            true
        });
        done.map(|()| sum).map_err(|error| error.code())
    }

    fn commit(&self, who: usize) -> Result<(), u32> {
        self.database.commit(self.turn(who)).map_err(|error| error.code())
    }

    fn rollback(&self, who: usize) {
        self.database.rollback(self.turn(who)).unwrap();
    }

    /// What somebody sees who comes later.
    fn end(&self, id: u64) -> u64 {
        self.contexts.iter().for_each(|context| self.database.abandon(context));
        self.get(ONE, id).unwrap()
    }
}

fn value_of(row: &[u8]) -> u64 {
    let mut reader = Reader::new(row);
    reader.read_array().and_then(|_| reader.read_uint()).and_then(|_| reader.read_uint()).unwrap()
}

fn on_both_engines(history: impl Fn(Turns)) {
    ["memtx", "vinyl"].into_iter().for_each(|engine| history(Turns::new(engine)));
}

#[test]
fn dirty_write() {
    on_both_engines(|turns| {
        turns.put(ONE, 1, 11).unwrap();
        turns.put(TWO, 1, 21).unwrap();
        turns.put(TWO, 2, 22).unwrap();
        turns.commit(TWO).unwrap();
        // In memory the first to commit wins. A blind write on disk depends on nothing, so both commit, one behind the other. The two rows
        // never come from two transactions.
        let first = turns.put(ONE, 2, 12);
        assert_eq!(turns.commit(ONE), first);
        let end = (turns.end(1), turns.end(2));
        assert_eq!(end, if first == CONFLICT { (21, 22) } else { (11, 12) });
    });
}

#[test]
fn dirty_read_and_aborted_read() {
    on_both_engines(|turns| {
        turns.put(ONE, 1, 11).unwrap();
        assert_eq!(turns.get(TWO, 1), Ok(10));
        turns.rollback(ONE);
        assert_eq!(turns.get(TWO, 1), Ok(10));
        assert_eq!(turns.commit(TWO), Ok(()));
    });
}

#[test]
fn intermediate_read() {
    on_both_engines(|turns| {
        turns.put(ONE, 1, 11).unwrap();
        assert_eq!(turns.get(TWO, 1), Ok(10));
        turns.put(ONE, 1, 12).unwrap();
        turns.commit(ONE).unwrap();
        // It has read what was there before, and comes before.
        assert_eq!(turns.get(TWO, 1), Ok(10));
        assert_eq!(turns.commit(TWO), Ok(()));
        assert_eq!(turns.end(1), 12);
    });
}

#[test]
fn fuzzy_read() {
    on_both_engines(|turns| {
        assert_eq!(turns.get(ONE, 1), Ok(10));
        turns.put(TWO, 1, 21).unwrap();
        turns.commit(TWO).unwrap();
        assert_eq!(turns.get(ONE, 1), Ok(10));
        // What it has seen is not true any more: nothing can be made of it.
        assert_eq!(turns.put(ONE, 2, 11), CONFLICT);
        assert_eq!(turns.end(2), 10);
    });
}

#[test]
fn read_skew() {
    on_both_engines(|turns| {
        assert_eq!(turns.get(ONE, 1), Ok(10));
        turns.put(TWO, 1, 5).unwrap();
        turns.put(TWO, 2, 15).unwrap();
        turns.commit(TWO).unwrap();
        // It never sees row 2 beside a row 1 that is no more.
        assert_eq!(turns.get(ONE, 2), Ok(10));
        assert_eq!(turns.commit(ONE), Ok(()));
    });
}

#[test]
fn lost_update() {
    on_both_engines(|turns| {
        assert_eq!((turns.get(ONE, 1), turns.get(TWO, 1)), (Ok(10), Ok(10)));
        turns.put(ONE, 1, 11).unwrap();
        turns.put(TWO, 1, 11).unwrap();
        turns.commit(ONE).unwrap();
        assert_eq!(turns.commit(TWO), CONFLICT);
        assert_eq!(turns.end(1), 11);
    });
}

#[test]
fn phantom() {
    on_both_engines(|turns| {
        assert_eq!(turns.sum(ONE), Ok(20));
        turns.put(TWO, 3, 30).unwrap();
        turns.commit(TWO).unwrap();
        assert_eq!(turns.sum(ONE), Ok(20));
        assert_eq!(turns.get(ONE, 3), Ok(0));
        assert_eq!(turns.commit(ONE), Ok(()));
    });
}

#[test]
fn write_skew() {
    on_both_engines(|turns| {
        // Each may be taken below 0 as long as the sum is not.
        assert_eq!((turns.sum(ONE), turns.sum(TWO)), (Ok(20), Ok(20)));
        turns.put(ONE, 1, 0).unwrap();
        turns.put(TWO, 2, 0).unwrap();
        turns.commit(ONE).unwrap();
        assert_eq!(turns.commit(TWO), CONFLICT);
        assert_eq!((turns.end(1), turns.end(2)), (0, 10));
    });
}

#[test]
fn write_skew_on_absent_rows() {
    on_both_engines(|turns| {
        assert_eq!((turns.get(ONE, 4), turns.get(TWO, 3)), (Ok(0), Ok(0)));
        turns.put(ONE, 3, 1).unwrap();
        turns.put(TWO, 4, 1).unwrap();
        turns.commit(ONE).unwrap();
        assert_eq!(turns.commit(TWO), CONFLICT);
        assert_eq!((turns.end(3), turns.end(4)), (1, 0));
    });
}

#[test]
fn read_only_anomaly() {
    on_both_engines(|turns| {
        // Who reads while others commit is as if alone, too, or told that it is not.
        assert_eq!(turns.get(ONE, 1), Ok(10));
        turns.put(TWO, 2, 0).unwrap();
        turns.commit(TWO).unwrap();
        assert_eq!(turns.get(ONE, 2), Ok(0));
        assert_eq!(turns.commit(ONE), Ok(()));
    });
}

#[test]
fn what_has_nothing_in_common_commits() {
    on_both_engines(|turns| {
        turns.put(ONE, 1, 11).unwrap();
        turns.put(TWO, 2, 22).unwrap();
        assert_eq!((turns.commit(ONE), turns.commit(TWO)), (Ok(()), Ok(())));
        assert_eq!((turns.end(1), turns.end(2)), (11, 22));
    });
}
