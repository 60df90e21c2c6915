//! Conditions of domains through every protocol that writes rows, and time-outs of looks at rows.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::mysql::Mysql;
use lycosa_tests::{Postgres, Rig, start_postgres};

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const DOORS: [&str; 4] = ["--listen", "postgres://admin@127.0.0.1:0", "--listen", "mysql://admin@127.0.0.1:0"];

#[test]
fn conditions_of_domains_hold_for_every_protocol() {
    let mut rig = Rig::start(OPEN, &DOORS);
    let mut db = Postgres::at(&mut rig, 0);
    assert_eq!(db.ask("create domain posint as int check (value > 0)"), "CREATE DOMAIN");
    assert_eq!(db.ask("create domain must as posint not null"), "CREATE DOMAIN");
    assert_eq!(db.ask("create table d (id int primary key, p posint, a posint[], m must)"), "CREATE TABLE");
    let lua = |rig: &mut Rig, row: &str| {
        rig.number(&format!("return pcall(box.space.d.replace, box.space.d, {row}) and 1 or 0"))
    };
    assert_eq!(lua(&mut rig, "{1, 1, {1, 2}, 1}"), 1);
    assert_eq!(lua(&mut rig, "{1, box.NULL, box.NULL, 2}"), 1);
    assert_eq!(lua(&mut rig, "{1, 0, {1, 2}, 1}"), 0);
    assert_eq!(lua(&mut rig, "{1, 1, {1, -2}, 1}"), 0);
    assert_eq!(lua(&mut rig, "{1, 1, {1, 2}, 0}"), 0);
    assert_eq!(lua(&mut rig, "{1, 1, {1, 2}, box.NULL}"), 0);
    assert_eq!(rig.number("return pcall(box.space.d.update, box.space.d, 1, {{'=', 2, -1}}) and 1 or 0"), 0);
    let mut my = Mysql::to(&mut rig);
    assert!(my.ask("insert into d (id, p, m) values (2, 0, 1)").contains("Check constraint 'posint_check'"));
    assert!(my.ask("insert into d (id, p, m) values (2, 1, 0)").contains("Check constraint 'posint_check'"));
    assert!(my.ask("update d set p = -1").contains("Check constraint 'posint_check'"));
    let refused = "23514: value for domain posint violates check constraint \"posint_check\"";
    assert_eq!(db.ask("update d set a = '{1,0}'"), refused);
    assert_eq!(db.ask("select * from d"), "1,null,null,2; SELECT 1");
    // A condition that comes holds at once, and after a restart.
    assert_eq!(db.ask("alter domain posint add constraint small check (value < 10)"), "ALTER DOMAIN");
    assert_eq!(lua(&mut rig, "{1, 10, {1, 2}, 1}"), 0);
    assert_eq!(lua(&mut rig, "{1, 9, {9}, 9}"), 1);
    rig.restart(&DOORS);
    assert_eq!(lua(&mut rig, "{1, 10, {1, 2}, 1}"), 0);
    assert_eq!(lua(&mut rig, "{1, 1, {10}, 1}"), 0);
    assert_eq!(lua(&mut rig, "{1, 1, {1}, 1}"), 1);
    let mut db = Postgres::at(&mut rig, 0);
    assert_eq!(db.ask("alter domain posint drop constraint small"), "ALTER DOMAIN");
    assert_eq!(lua(&mut rig, "{1, 10, {1, 2}, 1}"), 1);
}

#[test]
fn a_type_is_given_away_by_administrators_only() {
    let mut rig = Rig::start(OPEN, &DOORS);
    let mut db = Postgres::at(&mut rig, 0);
    assert_eq!(db.ask("create type mood as enum ('a')"), "CREATE TYPE");
    assert_eq!(db.ask("create user other"), "CREATE ROLE");
    assert!(db.ask("alter type mood owner to nobody").starts_with("42704: "));
    assert!(db.ask("alter type nothing owner to other").starts_with("42704: "));
    assert_eq!(db.ask("alter type mood owner to other"), "ALTER TYPE");
    let owner = "select rolname from pg_type t join pg_roles r on r.oid = typowner where typname = 'mood'";
    assert_eq!(db.ask(owner), "other; SELECT 1");
}

#[test]
fn a_look_at_all_rows_ends_at_the_time_of_its_statement() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask("create table t (id int primary key, n int, m int)"), "CREATE TABLE");
    for part in 0..4 {
        let from = part * 50_000;
        let insert = format!("insert into t select g, g, g from generate_series({}, {}) g", from + 1, from + 50_000);
        assert_eq!(db.ask(&insert), "INSERT 0 50000");
    }
    let canceled = "57014: canceling statement due to statement timeout";
    db.ask("set statement_timeout = 1");
    for change in [
        "create index tn on t (n)",
        "create unique index tn on t (n, m)",
        "alter table t add constraint positive check (n > 0)",
        "alter table t add constraint named foreign key (n) references t",
        "alter table t add unique (n)",
    ] {
        assert_eq!(db.ask(change), canceled, "{change}");
    }
    db.ask("set statement_timeout = 0");
    let left = "select count(*) from pg_constraint where conrelid = 't'::regclass";
    assert_eq!(db.ask(left), "1; SELECT 1");
    assert_eq!(db.ask("select indexname from pg_indexes where tablename = 't'"), "t_pkey; SELECT 1");
    assert_eq!(db.ask("insert into t values (200001, -1, 1)"), "INSERT 0 1");
    assert_eq!(db.ask("create index tn on t (n)"), "CREATE INDEX");
}
