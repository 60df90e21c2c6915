//! Types that users make, through the real binary: where they are kept, who may change them, and what other doors and clients see of them.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::mysql::Mysql;
use lycosa_tests::{Postgres, Rig, field, start_postgres, text};

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";

#[test]
fn types_and_their_values_are_there_after_a_restart() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    for sql in [
        "create type mood as enum ('sad', 'ok', 'happy')",
        "create domain posint as int check (value > 0)",
        "create table t (id int primary key, m mood default 'ok', p posint, l mood[])",
        "create index on t (m)",
        "alter type mood add value 'fine' before 'happy'",
        "alter type mood rename value 'ok' to 'okay'",
        "create view v as select m from t where m > 'sad'",
    ] {
        let answer = db.ask(sql);
        assert!(!answer.contains(": "), "{sql}: {answer}");
    }
    assert_eq!(
        db.ask("insert into t values (1, 'happy', 1, '{sad,fine}'), (2, 'fine', 2, null), (3, 'sad'), (4)"),
        "INSERT 0 4"
    );
    // A change that is taken back, and one of a transaction that is cut off.
    assert_eq!(db.ask("begin; alter type mood add value 'x'; rollback"), "BEGIN; ALTER TYPE; ROLLBACK");
    assert_eq!(
        db.ask("begin; alter type mood rename to feeling; drop domain posint cascade"),
        "BEGIN; ALTER TYPE; DROP DOMAIN"
    );
    rig.restart(&["--listen", "postgres://127.0.0.1:0"]);
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask("select enum_range(null::mood)"), "{sad,okay,fine,happy}; SELECT 1");
    assert_eq!(
        db.ask("select * from t order by m"),
        "3,sad,null,null; 4,okay,null,null; 2,fine,2,null; 1,happy,1,{sad,fine}; SELECT 4"
    );
    assert_eq!(db.ask("select * from v order by m"), "okay; fine; happy; SELECT 3");
    assert!(db.ask("insert into t values (5, 'ok')").starts_with("22P02"));
    assert!(db.ask("insert into t values (5, 'okay', 0)").starts_with("23514"));
    assert_eq!(db.ask("insert into t (id) values (5) returning m"), "okay; INSERT 0 1");
    // Rows that a client loads.
    db.send(b'Q', &text(&["copy t (id, m, l) from stdin"]));
    assert!(loop {
        match db.message().unwrap().0 {
            b'G' => break true,
            b'E' => break false,
            _ => {}
        }
    });
    db.send(b'd', b"6\thappy\t{sad,okay}\n");
    db.send(b'c', b"");
    assert!(db.until_ready().iter().all(|message| message.0 != b'E'));
    assert_eq!(db.ask("delete from t where id = 6 returning m, l"), "happy,{sad,okay}; DELETE 1");
    // No number is given twice: clients keep what they have learnt of one.
    let number = "select oid from pg_type where typname = 'mood'";
    let before = db.ask(number);
    assert_eq!(db.ask("drop type mood cascade; create type mood as enum ('a')"), "DROP TYPE; CREATE TYPE");
    assert_ne!(db.ask(number), before);
    assert_eq!(db.ask("select * from t order by id limit 1"), "1,1; SELECT 1");
    assert_eq!(db.ask("select * from v"), "42P01: relation \"v\" does not exist");
}

#[test]
fn only_its_owner_and_administrators_change_a_type() {
    let options: Vec<String> =
        ["admin", "owner", "other"].iter().map(|user| format!("postgres://{user}@127.0.0.1:0")).collect();
    let options: Vec<&str> = options.iter().flat_map(|listener| ["--listen", listener]).collect();
    let mut rig = Rig::start(OPEN, &options);
    let mut admin = Postgres::at(&mut rig, 0);
    for sql in [
        "create role owner login",
        "create role other login",
        "grant create on schema public to owner",
        "grant create on schema public to other",
    ] {
        let answer = admin.ask(sql);
        assert!(!answer.contains(": "), "{sql}: {answer}");
    }
    let (mut owner, mut other) = (Postgres::at(&mut rig, 1), Postgres::at(&mut rig, 2));
    assert_eq!(
        owner.ask("create type mood as enum ('sad', 'ok'); create domain posint as int check (value > 0)"),
        "CREATE TYPE; CREATE DOMAIN"
    );
    for sql in [
        "alter type mood add value 'x'",
        "alter type mood add value if not exists 'ok'",
        "alter type mood rename value 'ok' to 'x'",
        "alter type mood rename to x",
        "drop type mood",
        "drop type if exists mood cascade",
        "drop domain posint",
        "drop type posint cascade",
    ] {
        assert!(other.ask(sql).starts_with("42501: must be owner of type"), "{sql}");
    }
    let same = "box.session.su('other', function() box.space.mood:drop() end)";
    assert_ne!(rig.eval(same).code(), 0);
    // Whoever may make tables uses it.
    assert_eq!(other.ask("create table t (id int primary key, m mood, p posint)"), "CREATE TABLE");
    assert_eq!(other.ask("insert into t values (1, 'ok', 1) returning m"), "ok; INSERT 0 1");
    assert_eq!(owner.ask("alter type mood add value 'x'"), "ALTER TYPE");
    assert_eq!(admin.ask("alter type mood add value 'y' before 'x'"), "ALTER TYPE");
    assert_eq!(other.ask("select 'y'::mood < 'x'"), "t; SELECT 1");
    assert!(owner.ask("drop type mood").starts_with("2BP01"));
    // The columns of others go with it.
    assert_eq!(owner.ask("drop type mood cascade; drop domain posint cascade"), "DROP TYPE; DROP DOMAIN");
    assert_eq!(other.ask("select * from t"), "1; SELECT 1");
    // Nobody makes types who may make nothing.
    assert_eq!(admin.ask("revoke create on schema public from other"), "REVOKE");
    assert!(other.ask("create type c as enum ('a')").starts_with("42501"));
}

#[test]
fn parameters_and_columns_have_the_number_of_their_type() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(
        db.ask("create type mood as enum ('sad', 'ok'); create table t (id int primary key, m mood, l mood[])"),
        "CREATE TYPE; CREATE TABLE"
    );
    let number = |db: &mut Postgres, name: &str| -> u32 {
        let found = db.ask(&format!("select oid from pg_type where typname = '{name}'"));
        found.split(';').next().unwrap().parse().unwrap()
    };
    let (mood, moods) = (number(&mut db, "mood"), number(&mut db, "_mood"));
    assert_eq!(db.ask("select 'mood'::regtype::oid, 'mood[]'::regtype::oid"), format!("{mood},{moods}; SELECT 1"));
    db.send(
        b'P',
        &text(&["", "insert into t values (1, $1, $2) returning m, l"]).into_iter().chain([0, 0]).collect::<Vec<_>>(),
    );
    db.send(b'D', b"S\0");
    let mut bind = b"\0\0".to_vec();
    // Texts, and the answer in binary form, which is the text as well.
    bind.extend([0, 0, 0, 2]);
    for value in [&b"ok"[..], b"{ok,sad}"] {
        bind.extend((value.len() as u32).to_be_bytes());
        bind.extend(value);
    }
    bind.extend([0, 1, 0, 1]);
    db.send(b'B', &bind);
    db.send(b'E', b"\0\0\0\0\0");
    db.send(b'S', b"");
    let messages = db.until_ready();
    let of = |kind: u8| messages.iter().find(|message| message.0 == kind).map(|message| message.1.clone());
    if let Some(error) = of(b'E') {
        panic!("{}", field(&error, b'M'));
    }
    let parameters = of(b't').unwrap();
    assert_eq!(parameters[2..6], mood.to_be_bytes());
    assert_eq!(parameters[6..10], moods.to_be_bytes());
    let columns = of(b'T').unwrap();
    assert!(columns.windows(4).any(|bytes| bytes == mood.to_be_bytes()));
    assert!(columns.windows(4).any(|bytes| bytes == moods.to_be_bytes()));
    let row = of(b'D').unwrap();
    assert!(row.windows(6).any(|bytes| bytes == b"\0\0\0\x02ok"), "{row:?}");
    assert!(row.windows(4).any(|bytes| bytes == mood.to_be_bytes()), "the array says of what it is");
    // What other doors see: the place among the values.
    assert_eq!(rig.eval("assert(box.space.t:get(1).m == 2)").code(), 0);
    assert_eq!(rig.eval("assert(box.execute([[SELECT \"m\" FROM \"t\"]]).rows[1][1] == 'ok')").code(), 0);
    assert_eq!(rig.eval("assert(#box.execute([[SELECT \"id\" FROM \"t\" WHERE \"m\" = 'ok']]).rows == 1)").code(), 0);
    assert_eq!(
        rig.eval("assert(#box.execute([[SELECT \"id\" FROM \"t\" WHERE \"m\" = ?]], {'ok'}).rows == 1)").code(),
        0
    );
    assert_eq!(rig.eval("assert(box.execute([[INSERT INTO \"t\" (\"id\", \"m\") VALUES (2, 'sad')]]))").code(), 0);
    assert_eq!(db.ask("select m from t order by m"), "sad; ok; SELECT 2");
    // A number that stands for nothing is shown as it is.
    assert_eq!(rig.eval("box.space.t:insert({3, 7, box.NULL})").code(), 0);
    assert_eq!(db.ask("select m from t where id = 3"), "7; SELECT 1");
}

/// Backslashes and quotes went lost where an expression was kept as text: another condition, and other values, from the next reading on.
#[test]
fn what_is_kept_as_text_means_the_same_when_it_is_read_again() {
    let mut rig = lycosa_tests::mysql::start();
    let mut db = Mysql::to(&mut rig);
    let made = db.ask(
        r#"create table kt (id int primary key, a varchar(40) default 'a\\b\'c\n' comment 'co\\\'m',
            b varchar(40) default (concat('it\'s', "q\"\\", '''''')), c varchar(40), g varchar(60) as (concat(c, 'n\\d\'')) stored,
            e enum('a\\b', 'it\'s') default 'a\\b', `q\` int, constraint kc check (c <> 'x\\y' and c <> 'it\'s' and c <> ''''''),
            key kf ((concat(c, '\\')))) comment = 'of\\all\''"#,
    );
    assert_eq!(made, "ok 0 0");
    let view = r"create view kv as select id, concat(c, '\\n\'', '''''') as `x``\` from kt where c <> '\\'";
    assert_eq!(db.ask(view), "ok 0 0");
    let check = |db: &mut Mysql| {
        db.ask("set sql_mode = ''; delete from kt");
        assert_eq!(db.ask(r"insert into kt (id, c) values (1, 'q'), (2, '\\'), (3, '''')"), "ok 3 0");
        let row = r"615C622763\0A,it'sq".replace(r"\0", "0") + r#""\'',q,716E5C6427,a\b,null"#;
        assert_eq!(db.ask("select hex(a), b, c, hex(g), e, `q\\` from kt where id = 1"), row);
        for refused in [r"'x\\y'", r"'it\'s'", "''''''"] {
            let answer = db.ask(&format!("insert into kt (id, c) values (9, {refused})"));
            assert!(answer.starts_with("3819 HY000"), "{refused}: {answer}");
        }
        assert_eq!(db.ask(r"select id, `x``\` from kv order by id"), r"1,q\n'''; 3,'\n'''");
    };
    check(&mut db);
    rig.restart(&["--listen", "mysql://127.0.0.1:0"]);
    let mut db = Mysql::to(&mut rig);
    check(&mut db);
    // What is shown makes the same again.
    let table = db.ask("show create table kt").strip_prefix("kt,").unwrap().to_string();
    let shown = db.ask("show create view kv");
    let view = &shown[shown.find("VIEW `kv`").unwrap()..shown.find(",utf8mb4").unwrap()];
    assert_eq!(db.ask("drop view kv; drop table kt"), "ok 0 0 | ok 0 0");
    assert_eq!(db.ask(&table), "ok 0 0", "{table}");
    assert_eq!(db.ask(&format!("CREATE {view}")), "ok 0 0", "{view}");
    check(&mut db);
    assert_eq!(db.ask("show create table kt"), format!("kt,{table}"));
    // What a session says of quotes is of what it writes, not of what is there.
    for mode in ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"] {
        db.ask(&format!("set sql_mode = '{mode}'"));
        assert_eq!(db.ask("alter table kt rename column c to d, rename column a to z"), "ok 0 0", "{mode}");
        assert_eq!(db.ask("alter table kt rename column z to a, rename column d to c"), "ok 0 0", "{mode}");
        check(&mut db);
    }
}

#[test]
fn what_postgresql_keeps_as_text_means_the_same_when_it_is_read_again() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "guest");
    let made = db.ask(
        r#"create domain kd as text default E'd\\\'' check (value <> E'\\' and value <> '''''');
           create table kt (id int primary key, a text default E'a\\b\'' || '\''' || U&'\0041''', c text, d kd, "q""\" int default 4,
               g text generated always as (c || E'\\n' || $q$it's$q$) stored, constraint kc check (c <> '\''' and c <> E'it\'s' and c <> ''''''));
           create unique index ki on kt ((c || E'\\')) where c <> E'\'';
           create view kv as select id, c || E'\\\'' as "x""\" from kt where c <> E'\\' and c not like '%\%';"#,
    );
    assert_eq!(made, "CREATE DOMAIN; CREATE TABLE; CREATE INDEX; CREATE VIEW");
    let check = |db: &mut Postgres| {
        db.ask("delete from kt");
        assert_eq!(db.ask(r"insert into kt (id, c) values (1, 'q'), (2, '\'), (3, ''''), (4, '''')"), "INSERT 0 4");
        let row = db.ask(r#"select a, c, d, "q""\", g from kt where id = 1"#);
        assert_eq!(row, r"a\b'\'A',q,d\',4,q\nit's; SELECT 1");
        for refused in [r"'\'''", "'it''s'", "''''''"] {
            let answer = db.ask(&format!("insert into kt (id, c) values (9, {refused})"));
            assert!(answer.starts_with("23514"), "{refused}: {answer}");
        }
        assert!(db.ask(r"insert into kt (id, c) values (9, '\')").starts_with("23505"));
        assert!(db.ask(r"insert into kt (id, d) values (9, '\')").starts_with("23514"));
        assert_eq!(db.ask(r#"select id, "x""\" from kv order by id"#), r"1,q\'; 3,'\'; 4,'\'; SELECT 3");
    };
    check(&mut db);
    rig.restart(&["--listen", "postgres://127.0.0.1:0"]);
    let mut db = Postgres::to(&mut rig, "guest");
    check(&mut db);
    // What is shown makes the same again.
    let shown = |db: &mut Postgres, what: &str| db.ask(what).rsplit_once("; SELECT").unwrap().0.to_string();
    let view = shown(&mut db, "select pg_get_viewdef('kv'::regclass)");
    let check_text = shown(&mut db, "select pg_get_constraintdef(oid) from pg_constraint where conname = 'kc'");
    let index = shown(&mut db, "select indexdef from pg_indexes where indexname = 'ki'");
    assert_eq!(db.ask("drop view kv; drop index ki; alter table kt drop constraint kc").matches("; ").count(), 2);
    assert_eq!(db.ask(&format!("create view kv as {view}")), "CREATE VIEW", "{view}");
    assert_eq!(db.ask(&format!("alter table kt add constraint kc {check_text}")), "ALTER TABLE", "{check_text}");
    assert_eq!(db.ask(&index), "CREATE INDEX", "{index}");
    check(&mut db);
    assert_eq!(
        db.ask("alter table kt rename column c to e; alter table kt rename column e to c"),
        "ALTER TABLE; ALTER TABLE"
    );
    check(&mut db);
}
