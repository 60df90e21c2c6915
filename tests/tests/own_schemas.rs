//! Schemas beside `public`: through every protocol, after a restart, for those without rights, and with plans that are kept.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::mysql::Mysql;
use lycosa_tests::{Postgres, Rig};

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const DOORS: [&str; 6] = [
    "--listen",
    "postgres://admin@127.0.0.1:0",
    "--listen",
    "mysql://admin@127.0.0.1:0",
    "--listen",
    "postgres://guest@127.0.0.1:0",
];

#[test]
fn every_protocol_knows_what_is_in_a_schema() {
    let mut rig = Rig::start(OPEN, &DOORS);
    let mut db = Postgres::at(&mut rig, 0);
    assert_eq!(db.ask("create schema shop"), "CREATE SCHEMA");
    assert_eq!(db.ask("create table shop.t (id serial primary key, v text unique)"), "CREATE TABLE");
    assert_eq!(db.ask("create table t (id int primary key, v text)"), "CREATE TABLE");
    assert_eq!(db.ask("create table shop.c (id int primary key, t int references shop.t)"), "CREATE TABLE");
    assert_eq!(db.ask("create view shop.seen as select v from shop.t"), "CREATE VIEW");
    assert_eq!(db.ask("insert into shop.t (v) values ('sql')"), "INSERT 0 1");
    assert_eq!(rig.number("return box.space['shop.t']:insert({2, 'lua'})[1]"), 2);
    let mut my = Mysql::to(&mut rig);
    assert_eq!(my.ask("select v from `shop.t` order by id"), "sql; lua");
    assert_eq!(db.ask("select v from shop.seen order by v"), "lua; sql; SELECT 2");
    // Constraints belong to the rows.
    let refused = "return pcall(box.space['shop.c'].insert, box.space['shop.c'], {1, 99}) and 1 or 0";
    assert_eq!(rig.number(refused), 0);
    assert!(db.ask("insert into shop.t (id, v) values (9, 'sql')").contains("\"t_v_key\""));
    rig.restart(&DOORS);
    let mut db = Postgres::at(&mut rig, 0);
    assert_eq!(db.ask("set search_path to shop"), "SET");
    assert_eq!(db.ask("select id, v from t order by id"), "1,sql; 2,lua; SELECT 2");
    assert_eq!(db.ask("insert into t (id, v) values (default, 'more')"), "INSERT 0 1");
    assert_eq!(db.ask("select count(*) from public.t"), "0; SELECT 1");
    assert_eq!(db.ask("drop schema shop cascade"), "DROP SCHEMA");
    assert_eq!(rig.number("return (box.space['shop.t'] or box.space['shop.'] or box.space['shop.c']) and 1 or 0"), 0);
    assert!(db.ask("select * from t").starts_with("42P01: relation \"t\" does not exist"));
}

#[test]
fn who_has_no_rights_makes_and_changes_no_schema() {
    let mut rig = Rig::start("", &DOORS);
    let mut db = Postgres::at(&mut rig, 0);
    assert_eq!(db.ask("create schema shop"), "CREATE SCHEMA");
    assert_eq!(db.ask("create table shop.t (id int primary key)"), "CREATE TABLE");
    assert_eq!(db.ask("create table shop.u (id int primary key)"), "CREATE TABLE");
    assert_eq!(db.ask("create table v (id int primary key)"), "CREATE TABLE");
    let mut guest = Postgres::at(&mut rig, 1);
    for refused in [
        "create schema own",
        "create table shop.made (id int)",
        "create sequence shop.q",
        "create type shop.e as enum ('a')",
        "drop schema shop",
        "drop schema shop cascade",
        "alter schema shop rename to other",
        "alter schema shop owner to guest",
        "alter table shop.t set schema public",
        "drop table shop.t",
        "select * from shop.t",
        "insert into shop.t values (1)",
    ] {
        assert!(guest.ask(refused).starts_with("42501: "), "{refused}: {}", guest.ask(refused));
    }
    assert_eq!(db.ask("grant select on all tables in schema shop to guest"), "GRANT");
    assert_eq!(guest.ask("select * from shop.u"), "SELECT 0");
    assert!(guest.ask("select * from v").starts_with("42501: "));
    assert!(db.ask("grant select on all tables in schema nowhere to guest").starts_with("3F000: "));
    assert!(db.ask("grant create on schema shop to guest").starts_with("0A000: "));
    assert_eq!(db.ask("grant usage on schema shop to guest"), "GRANT");
    assert_eq!(db.ask("select count(*) from pg_namespace where nspname = 'shop'"), "1; SELECT 1");
}

#[test]
fn a_plan_is_that_of_the_path_of_its_session() {
    let mut rig = Rig::start(OPEN, &DOORS);
    let (mut first, mut second) = (Postgres::at(&mut rig, 0), Postgres::at(&mut rig, 0));
    let mut guest = Postgres::at(&mut rig, 1);
    for (schema, value) in [("a", "of a"), ("b", "of b")] {
        assert_eq!(first.ask(&format!("create schema {schema}")), "CREATE SCHEMA");
        assert_eq!(first.ask(&format!("create table {schema}.t (v text)")), "CREATE TABLE");
        assert_eq!(first.ask(&format!("insert into {schema}.t values ('{value}')")), "INSERT 0 1");
    }
    let text = "select v from t";
    for _ in 0..3 {
        assert!(guest.ask(text).starts_with("42P01: "));
        assert_eq!(
            (first.ask("set search_path to a"), second.ask("set search_path to b, a")),
            ("SET".into(), "SET".into())
        );
        assert_eq!(first.ask(text), "of a; SELECT 1");
        assert_eq!(second.ask(text), "of b; SELECT 1");
        assert_eq!(second.ask("set search_path to a, b"), "SET");
        assert_eq!(second.ask(text), "of a; SELECT 1");
    }
    // The schema of a user's name comes first, for that user.
    assert_eq!(first.ask("create table public.t (v text)"), "CREATE TABLE");
    assert_eq!(guest.ask(text), "SELECT 0");
    assert_eq!(first.ask("create schema guest"), "CREATE SCHEMA");
    assert_eq!(first.ask("create table guest.t (v text)"), "CREATE TABLE");
    assert_eq!(first.ask("insert into guest.t values ('own')"), "INSERT 0 1");
    assert_eq!(guest.ask(text), "own; SELECT 1");
    assert_eq!(first.ask("reset search_path"), "RESET");
    assert_eq!(first.ask(text), "SELECT 0");
    assert_eq!(guest.ask("select current_schema()"), "guest; SELECT 1");
    // A path that holds for a transaction.
    assert_eq!(first.ask("begin"), "BEGIN");
    assert_eq!(first.ask("set local search_path to b"), "SET");
    assert_eq!(first.ask(text), "of b; SELECT 1");
    assert_eq!(first.ask("commit"), "COMMIT");
    assert_eq!(first.ask(text), "SELECT 0");
}
