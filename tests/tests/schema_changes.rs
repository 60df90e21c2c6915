//! Changes of the schema in transactions, through the real binary: nobody sees them before the commit, and a rollback takes them back.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Postgres, Rig, field, text};

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const DOOR: [&str; 2] = ["--listen", "postgres://127.0.0.1:0"];

fn start() -> Rig {
    Rig::start(OPEN, &DOOR)
}

#[test]
fn what_is_made_in_a_transaction_goes_and_comes_with_it() {
    let mut rig = start();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    assert_eq!(db.ask("create table kept (id int primary key, v text)"), "CREATE TABLE");
    assert_eq!(db.ask("insert into kept values (1, 'a'), (2, 'b')"), "INSERT 0 2");
    assert_eq!(db.ask("begin"), "BEGIN");
    assert_eq!(db.ask("create table t (id serial primary key, v text)"), "CREATE TABLE");
    assert_eq!(db.ask("insert into t (v) values ('x'), ('y') returning id"), "1; 2; INSERT 0 2");
    assert_eq!(db.ask("create index tv on t (v)"), "CREATE INDEX");
    assert_eq!(db.ask("alter table kept add column w int not null default 7"), "ALTER TABLE");
    assert_eq!(db.ask("select * from kept"), "1,a,7; 2,b,7; SELECT 2");
    assert_eq!(other.ask("select * from t"), "42P01: relation \"t\" does not exist");
    assert_eq!(other.ask("select * from kept"), "1,a; 2,b; SELECT 2");
    assert_eq!(other.ask("select count(*) from pg_class where relname in ('t', 'tv')"), "0; SELECT 1");
    assert_eq!(rig.number("return box.space.t == nil and 1 or 0"), 1);
    assert_eq!(db.ask("savepoint s"), "SAVEPOINT");
    assert_eq!(db.ask("drop table kept"), "DROP TABLE");
    assert_eq!(db.ask("truncate t"), "TRUNCATE TABLE");
    assert_eq!(db.ask("select * from t"), "SELECT 0");
    assert_eq!(other.ask("select * from kept"), "1,a; 2,b; SELECT 2");
    assert_eq!(db.ask("rollback to s"), "ROLLBACK");
    assert_eq!(db.ask("select * from t"), "1,x; 2,y; SELECT 2");
    assert_eq!(db.ask("select * from kept where v = 'b'"), "2,b,7; SELECT 1");
    assert_eq!(db.ask("rollback"), "ROLLBACK");
    assert_eq!(db.ask("select * from kept"), "1,a; 2,b; SELECT 2");
    assert_eq!(db.ask("select * from t"), "42P01: relation \"t\" does not exist");
    // The same again, and kept.
    assert_eq!(
        db.ask("begin; create table t (id serial primary key, v text); insert into t (v) values ('x')"),
        "BEGIN; CREATE TABLE; INSERT 0 1"
    );
    assert_eq!(db.ask("alter table kept add column w int not null default 7"), "ALTER TABLE");
    assert_eq!(db.ask("create unique index kept_v on kept (v)"), "CREATE INDEX");
    assert_eq!(db.ask("commit"), "COMMIT");
    assert_eq!(other.ask("select * from kept"), "1,a,7; 2,b,7; SELECT 2");
    // One that is cut off leaves nothing; what was committed is there after a crash.
    assert_eq!(
        db.ask("begin; create table cut (id serial primary key); drop table kept"),
        "BEGIN; CREATE TABLE; DROP TABLE"
    );
    assert_eq!(db.ask("insert into cut default values returning id"), "1; INSERT 0 1");
    rig.restart(&DOOR);
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask("select * from kept"), "1,a,7; 2,b,7; SELECT 2");
    assert_eq!(db.ask("insert into t (v) values ('z') returning id"), "2; INSERT 0 1");
    assert_eq!(db.ask("select * from cut"), "42P01: relation \"cut\" does not exist");
    assert!(db.ask("insert into kept values (3, 'b', 0)").starts_with("23505"));
}

#[test]
fn a_text_of_several_statements_is_one_transaction() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(
        db.ask("create table a (id int primary key); insert into a values (1); create table a (id int)"),
        "CREATE TABLE; INSERT 0 1; 42P07: relation \"a\" already exists"
    );
    assert_eq!(db.ask("select * from a"), "42P01: relation \"a\" does not exist");
    assert_eq!(db.ask("create table a (id int primary key); insert into a values (1)"), "CREATE TABLE; INSERT 0 1");
    assert_eq!(db.ask("select * from a"), "1; SELECT 1");
}

#[test]
fn others_wait_to_write_and_to_change_the_schema() {
    let mut rig = start();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    db.ask("create table t (id int primary key, v int); insert into t values (1, 1), (2, 2)");
    db.ask("create table beside (id int primary key)");
    assert_eq!(db.ask("begin; create index tv on t (v)"), "BEGIN; CREATE INDEX");
    other.ask("set lock_timeout = '20ms'");
    for refused in [
        "insert into t values (3, 3)",
        "update t set v = 5 where id = 1",
        "delete from t",
        "select * from t where id = 1 for update",
        "truncate t",
        "create table u (id int primary key)",
        "alter table beside add column v int",
        "drop table beside",
    ] {
        let what = "55P03: canceling statement due to lock timeout";
        assert_eq!(other.ask(refused), what, "{refused}");
    }
    assert_eq!(other.ask("insert into beside values (1)"), "INSERT 0 1");
    assert_eq!(other.ask("select v from t where v = 2"), "2; SELECT 1");
    assert_eq!(
        other.ask("create temporary table own (id int primary key); insert into own values (1); select * from own"),
        "CREATE TABLE; INSERT 0 1; 1; SELECT 1"
    );
    assert_eq!(db.ask("insert into t values (4, 4)"), "INSERT 0 1");
    // Who waits goes on when the other one is over.
    other.ask("set lock_timeout = 0");
    other.send(b'Q', &text(&["insert into t values (3, 3)"]));
    assert_eq!(db.ask("commit"), "COMMIT");
    let kinds: String = other.until_ready().iter().map(|(kind, _)| char::from(*kind)).collect();
    assert_eq!(kinds, "CZ");
    assert_eq!(db.ask("select id from t where v > 2 order by v"), "3; 4; SELECT 2");
    // Who was refused keeps nobody from changing the schema.
    assert_eq!(
        other.ask("begin; savepoint s; create table t (id int)"),
        "BEGIN; SAVEPOINT; 42P07: relation \"t\" already exists"
    );
    assert_eq!(db.ask("create table u (id int primary key)"), "CREATE TABLE");
    assert_eq!(other.ask("rollback"), "ROLLBACK");
    // A circle is found.
    assert_eq!(db.ask("begin; alter table t add column w int"), "BEGIN; ALTER TABLE");
    assert_eq!(other.ask("begin; insert into beside values (2)"), "BEGIN; INSERT 0 1");
    assert_eq!(other.ask("select id from beside where id = 1 for update"), "1; SELECT 1");
    other.send(b'Q', &text(&["insert into t values (5, 5)"]));
    let ended = db.query("update beside set id = 10 where id = 1");
    let told = other.until_ready();
    let codes: Vec<String> =
        ended.iter().chain(&told).filter(|(kind, _)| *kind == b'E').map(|(_, body)| field(body, b'C')).collect();
    assert_eq!(codes, ["40P01"], "one of the two");
}

#[test]
fn procedures_and_streams_go_on_behind_a_wait() {
    let mut rig = start();
    let script = "local fiber = require('fiber') box.begin() \
        local s = box.schema.space.create('s') s:create_index('pk', {sequence = true}) \
        s:insert{box.NULL, 'a'} fiber.sleep(0) \
        local seen = box.space.s ~= nil and box.space.s:insert{box.NULL, 'b'}[1] or 0 \
        local outside = fiber.new(function() return box.space.s == nil end) outside:set_joinable(true) \
        local _, is_hidden = outside:join() box.commit() \
        return seen, is_hidden and 'hidden' or 'shown'";
    assert_eq!(rig.answer(script), (2, "hidden".to_string()));
    rig.restart(&DOOR);
    assert_eq!(rig.number("return box.space.s:insert{box.NULL, 'c'}[1]"), 3);
}

/// What is put into a table that the transaction has emptied stays where it is while the transaction waits: else each of these statements would put
/// a hundred thousand rows back and forth.
#[test]
fn a_table_that_is_emptied_and_filled_again_costs_later_statements_nothing() {
    let mut rig = start();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    assert_eq!(db.ask("create table t (id int primary key, v int)"), "CREATE TABLE");
    assert_eq!(db.ask("insert into t values (1, 10), (2, 20)"), "INSERT 0 2");
    assert_eq!(db.ask("begin; insert into t values (3, 30); truncate t"), "BEGIN; INSERT 0 1; TRUNCATE TABLE");
    assert_eq!(db.ask("insert into t select g, g from generate_series(1, 100000) g"), "INSERT 0 100000");
    for id in 1..=500 {
        assert_eq!(db.ask(&format!("update t set v = v + 1 where id = {id}")), "UPDATE 1");
    }
    assert_eq!(other.ask("select * from t"), "1,10; 2,20; SELECT 2");
    assert_eq!(db.ask("create index tv on t (v)"), "CREATE INDEX");
    assert_eq!(db.ask("select count(*) from t where v = 500"), "1; SELECT 1");
    assert_eq!(db.ask("commit"), "COMMIT");
    assert_eq!(other.ask("select count(*), sum(v) from t"), "100000,5000050500; SELECT 1");
    rig.restart(&DOOR);
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask("select count(*), sum(v) from t"), "100000,5000050500; SELECT 1");
}

/// Nor are the rows of a table that has got another shape, or those of one that the transaction fills beside it.
#[test]
fn a_table_that_gets_another_shape_costs_later_statements_nothing() {
    let mut rig = start();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    assert_eq!(
        db.ask("create table t (id int primary key, v int); create index tv on t (v)"),
        "CREATE TABLE; CREATE INDEX"
    );
    assert_eq!(db.ask("create table filled (id int primary key)"), "CREATE TABLE");
    assert_eq!(db.ask("insert into t select g, g from generate_series(1, 60000) g"), "INSERT 0 60000");
    assert_eq!(db.ask("begin; alter table t add column w int not null default 7"), "BEGIN; ALTER TABLE");
    assert_eq!(db.ask("insert into filled select g from generate_series(1, 60000) g"), "INSERT 0 60000");
    for id in 1..=300 {
        assert_eq!(db.ask(&format!("update t set w = w + 1 where v = {id}")), "UPDATE 1");
    }
    assert_eq!(other.ask("select count(*) from filled"), "0; SELECT 1");
    assert_eq!(other.ask("select * from t where v = 300"), "300,300; SELECT 1");
    assert_eq!(db.ask("savepoint s; delete from t where id > 100"), "SAVEPOINT; DELETE 59900");
    assert_eq!(other.ask("select count(*) from t"), "60000; SELECT 1");
    assert_eq!(db.ask("rollback to s"), "ROLLBACK");
    assert_eq!(db.ask("select count(*), sum(w) from t"), "60000,420300; SELECT 1");
    assert_eq!(db.ask("rollback"), "ROLLBACK");
    assert_eq!(other.ask("select count(*), sum(v) from t"), "60000,1800030000; SELECT 1");
    assert_eq!(other.ask("update t set v = 0 where v = 5"), "UPDATE 1");
    assert_eq!(other.ask("insert into filled values (1)"), "INSERT 0 1");
}

#[test]
fn a_wait_for_another_change_of_the_schema_is_cancelled() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask("begin; create table t (id int primary key)"), "BEGIN; CREATE TABLE");
    let mut waiting = Postgres::open(&mut rig);
    waiting.first(3 << 16, &[text(&["user", "me"]), vec![0]].concat());
    let welcome = waiting.until_ready();
    let key = welcome.iter().find(|(kind, _)| *kind == b'K').unwrap().1.clone();
    waiting.send(b'Q', &text(&["create table u (id int primary key)"]));
    let mut other = Postgres::open(&mut rig);
    other.first(80_877_102, &key);
    assert!(other.message().is_none());
    let messages = waiting.until_ready();
    assert!(messages.iter().any(|(kind, body)| *kind == b'E' && field(body, b'C') == "57014"), "{messages:?}");
    assert_eq!(db.ask("commit"), "COMMIT");
}
