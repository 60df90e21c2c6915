//! Spaces with a limit of memory: what is refused, what leaves, and how often what is asked for is there.
#![allow(clippy::unwrap_used, reason = "a test")]

mod rig;

use database::{Context, Database, ErrorCode, EvictionCounts, INDEX_ID, Key, Operation, SPACE_ID, ScanRequest, Space};
use rig::{config, drive, encode, insert, open_with, request};
use runtime::{Loss, SimulatedFiles};
use std::collections::BTreeMap;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::{IndexId, SpaceId};

const SPACE: u32 = 512;

fn open(files: &SimulatedFiles) -> Rc<Database> {
    open_with(files, config()).unwrap()
}

fn create(database: &Database, options: &str) {
    let admin = database.admin_context();
    let space = format!(r#"[{SPACE},1,"cache","memtx",0,{{"checks":{options}}},[{{"name":"id","type":"unsigned"}}]]"#);
    insert(database, &admin, SPACE_ID.0, &space).unwrap();
    let index = format!(r#"[{SPACE},0,"pk","tree",{{"unique":true}},[[0,"unsigned"]]]"#);
    insert(database, &admin, INDEX_ID.0, &index).unwrap();
}

/// A database with a space of such options.
fn with_space(options: &str) -> Rc<Database> {
    let database = open(&SimulatedFiles::default());
    create(&database, options);
    database
}

fn space(database: &Database) -> Rc<Space> {
    database.space(SpaceId(SPACE)).unwrap()
}

fn counts(database: &Database) -> EvictionCounts {
    space(database).eviction_counts().unwrap()
}

fn put(database: &Database, context: &Context, id: u64, length: usize) -> database::Result<()> {
    let row = encode(&format!(r#"[{id},"{}"]"#, "x".repeat(length)));
    database.execute(context, &space(database), Operation::Replace { tuple: &row }).map(|_| ())
}

fn has(database: &Database, context: &Context, id: u64) -> bool {
    let key = encode(&format!("[{id}]"));
    let key = Key::decode(&key).unwrap();
    database.get(context, &space(database), IndexId::PRIMARY, key).unwrap().is_some()
}

#[test]
fn writes_beyond_the_limit_are_refused_where_nothing_is_evicted() {
    let database = with_space(r#"{"memory_limit":20000,"eviction":"none"}"#);
    let context = request(&database);
    let mut id = 0;
    let error = loop {
        match put(&database, &context, id, 100) {
            Ok(()) => id += 1,
            Err(error) => break error,
        }
    };
    assert!(id > 50, "{id}");
    assert_eq!(error.code(), ErrorCode::MemoryIssue as u32);
    let text = error.to_string();
    assert!(text.contains("memory_limit") && text.contains("'cache'") && text.contains("20000 bytes"), "{text}");
    assert!(counts(&database).used <= 20_000 && counts(&database).refused == 1);
    // What takes no more room goes on.
    put(&database, &context, 0, 100).unwrap();
    put(&database, &context, 0, 10).unwrap();
    put(&database, &context, 0, 5_000).unwrap_err();
    let key = encode("[1]");
    let delete = Operation::Delete { index_id: IndexId::PRIMARY, key: &key };
    database.execute(&context, &space(&database), delete).unwrap();
    put(&database, &context, id, 100).unwrap();
}

#[test]
fn rows_leave_for_others_and_the_sum_stays_within_the_limit() {
    let database = with_space(r#"{"memory_limit":200000}"#);
    let context = request(&database);
    for id in 0..20_000u64 {
        put(&database, &context, id, (id % 300) as usize).unwrap();
        // A node of an index may come with a row.
        assert!(counts(&database).used <= 200_000 + 4096, "{:?}", counts(&database));
        if id % 100 == 0 {
            drive(&database);
        }
    }
    let found = counts(&database);
    let rows = space(&database).rows.len();
    assert_eq!(found.evicted + rows, 20_000);
    assert!(rows > 300, "{rows}");
    // What no eviction can make room for.
    put(&database, &context, 1, 300_000).unwrap_err();
}

#[test]
fn what_is_used_stays() {
    let database = with_space(r#"{"memory_limit":100000}"#);
    let context = request(&database);
    for id in 0..5_000u64 {
        put(&database, &context, 1_000_000 + id, 100).unwrap();
        for hot in 0..20 {
            if !has(&database, &context, hot) {
                put(&database, &context, hot, 100).unwrap();
            }
        }
        if id % 100 == 0 {
            drive(&database);
        }
    }
    let found = counts(&database);
    assert!(found.misses < 200, "{found:?}");
}

#[test]
fn rows_that_have_left_are_back_when_their_transaction_is_rolled_back() {
    let database = with_space(r#"{"memory_limit":50000}"#);
    let context = request(&database);
    for id in 0..400 {
        put(&database, &context, id, 100).unwrap();
    }
    let all = |context: &Context| {
        let mut rows = Vec::new();
        let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
        database
            .select(context, &space(&database), &request, |row| {
                rows.push(row.to_vec());
                true
            })
            .unwrap();
        rows
    };
    let before = all(&context);
    database.begin(&context).unwrap();
    for id in 1000..1100 {
        put(&database, &context, id, 100).unwrap();
    }
    assert_ne!(all(&context), before);
    database.rollback(&context).unwrap();
    assert_eq!(all(&context), before);
}

#[test]
fn what_has_left_is_gone_behind_a_crash() {
    let files = SimulatedFiles::default();
    let database = open(&files);
    create(&database, r#"{"memory_limit":50000}"#);
    let context = request(&database);
    for id in 0..2_000 {
        put(&database, &context, id, 100).unwrap();
    }
    drive(&database);
    let ids = |database: &Database| (0..2_000).filter(|id| has(database, &request(database), *id)).collect::<Vec<_>>();
    let before = ids(&database);
    let reopened = open(&files.crash(Loss::All));
    assert_eq!(ids(&reopened), before);
    assert_eq!(counts(&reopened).limit, 50_000);
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let database = open(&SimulatedFiles::default());
    let admin = database.admin_context();
    for (engine, options, what) in [
        ("memtx", r#"{"memory_limit":"much"}"#, "number of bytes"),
        ("memtx", r#"{"memory_limit":-1}"#, "number of bytes"),
        ("memtx", r#"{"memory_limit":1000,"eviction":"random"}"#, "'clock' or 'none'"),
        ("memtx", r#"{"eviction":"clock"}"#, "needs 'memory_limit'"),
        ("vinyl", r#"{"memory_limit":1000}"#, "spaces of memtx"),
    ] {
        let row = format!(r#"[{SPACE},1,"cache","{engine}",0,{{"checks":{options}}},[]]"#);
        let error = insert(&database, &admin, SPACE_ID.0, &row).unwrap_err();
        assert_eq!(error.code(), ErrorCode::WrongSpaceOptions as u32);
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn rows_leave_a_hash_too() {
    let database = open(&SimulatedFiles::default());
    let admin = database.admin_context();
    let row = format!(r#"[{SPACE},1,"cache","memtx",0,{{"checks":{{"memory_limit":100000}}}},[]]"#);
    insert(&database, &admin, SPACE_ID.0, &row).unwrap();
    let index = format!(r#"[{SPACE},0,"pk","hash",{{"unique":true}},[[0,"unsigned"]]]"#);
    insert(&database, &admin, INDEX_ID.0, &index).unwrap();
    let context = request(&database);
    for id in 0..5_000 {
        put(&database, &context, id, 100).unwrap();
        if id % 100 == 0 {
            drive(&database);
        }
    }
    assert_eq!(counts(&database).evicted + space(&database).rows.len(), 5_000);
}

#[test]
fn nothing_is_left_of_a_space_whose_rows_have_left() {
    let database = with_space(r#"{"memory_limit":50000}"#);
    let context = request(&database);
    (0..1_000).for_each(|id| put(&database, &context, id, 100).unwrap());
    drive(&database);
    let space = Rc::downgrade(&space(&database));
    drop((context, database));
    assert!(space.upgrade().is_none());
}

/// The least recently used of a number of keys leave.
struct Lru {
    max: usize,
    now: u64,
    used: BTreeMap<u64, u64>,
    order: BTreeMap<u64, u64>,
}

impl Lru {
    /// Asks for a key and puts it in if it is not there. True if it was.
    fn ask(&mut self, key: u64) -> bool {
        self.now += 1;
        let before = self.used.insert(key, self.now);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.now, key);
        if self.used.len() > self.max {
            let (_, oldest) = self.order.pop_first().unwrap();
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

/// 100,000 keys by Zipf's law with exponent 1, room for a tenth of them.
#[test]
fn hits_are_at_least_as_many_as_those_of_an_exact_lru() {
    const KEYS: usize = 100_000;
    const REQUESTS: usize = 600_000;
    let mut sum = 0.0;
    let weights: Vec<f64> = (1..=KEYS)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    // A measure of a tenth, put in as keys come: in no order.
    let database = with_space(r#"{"memory_limit":1000000000}"#);
    let context = request(&database);
    for id in 0..KEYS as u64 / 10 {
        put(&database, &context, id * 7919 % KEYS as u64, 40).unwrap();
        if id % 100 == 0 {
            drive(&database);
        }
    }
    let limit = counts(&database).used;
    let database = with_space(&format!(r#"{{"memory_limit":{limit}}}"#));
    let context = request(&database);
    let mut lru = Lru { max: KEYS / 10, now: 0, used: BTreeMap::new(), order: BTreeMap::new() };
    let (mut seed, mut lru_hits) = (1u64, 0);
    for at in 0..REQUESTS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let point = (seed >> 11) as f64 / (1u64 << 53) as f64 * sum;
        let rank = weights.partition_point(|weight| *weight < point) as u64;
        // Ranks have nothing to do with the order of keys.
        let key = rank * 7919 % KEYS as u64;
        lru_hits += u64::from(lru.ask(key));
        if !has(&database, &context, key) {
            put(&database, &context, key, 40).unwrap();
        }
        if at % 100 == 0 {
            drive(&database);
        }
    }
    let found = counts(&database);
    println!("{} of {REQUESTS} hits, {lru_hits} by an exact LRU, {} rows", found.hits, space(&database).rows.len());
    assert_eq!(found.hits + found.misses, REQUESTS as u64);
    assert!(found.hits >= lru_hits, "{} hits, {lru_hits} by an exact LRU", found.hits);
}
