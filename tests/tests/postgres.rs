//! PostgreSQL's protocol through the real binary: a client of its messages.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Message, Postgres, Rig, field, row, text};
use std::io::{Read, Write};
use std::time::Duration;

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const PATIENCE: Duration = Duration::from_secs(20);

fn start() -> Rig {
    Rig::start(OPEN, &["--listen", "postgres://127.0.0.1:0"])
}

fn kinds(messages: &[Message]) -> String {
    messages.iter().map(|(kind, _)| char::from(*kind)).collect()
}

#[test]
fn tables_rows_and_values_go_both_ways() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    let create = "create table t (id serial primary key, name varchar(5), price numeric(10,2), at timestamp, day date, ok boolean, raw bytea)";
    assert_eq!(db.ask(create), "CREATE TABLE");
    let insert = "insert into t (name, price, at, day, ok, raw) values ('a', 1.5, '2020-01-02 03:04:05.25', '2020-01-02', true, '\\x0102'), (null, null, null, null, null, null) returning id";
    assert_eq!(db.ask(insert), "1; 2; INSERT 0 2");
    assert_eq!(
        db.ask("select * from t order by id"),
        "1,a,1.50,2020-01-02 03:04:05.25,2020-01-02,t,\\x0102; 2,null,null,null,null,null,null; SELECT 2"
    );
    assert_eq!(
        db.ask("insert into t (id) values (1)"),
        "23505: duplicate key value violates unique constraint \"t_pkey\""
    );
    assert_eq!(
        db.ask("insert into t (name) values ('too long')"),
        "22001: value too long for type character varying(5)"
    );
    assert_eq!(db.ask("select nothing from t"), "42703: column \"nothing\" does not exist");
    assert_eq!(db.ask("select * from nothing"), "42P01: relation \"nothing\" does not exist");
    assert_eq!(db.ask(""), "");
    // Rows that were declared without a key are rows nevertheless, and may be the same.
    assert_eq!(db.ask("create table free (a int, b text)"), "CREATE TABLE");
    assert_eq!(
        db.ask("insert into free values (1, 'x'), (1, 'x'); select * from free"),
        "INSERT 0 2; 1,x; 1,x; SELECT 2"
    );
    assert_eq!(db.ask("delete from free where a = 1"), "DELETE 2");
    assert_eq!(
        db.ask("insert into free values (1, 'x'); alter table free add primary key (a)"),
        "INSERT 0 1; ALTER TABLE"
    );
    assert!(db.ask("insert into free values (1, 'y')").starts_with("23505"));
    // Other doors see the same rows.
    let rows = rig.answer("return box.space.t:count(), box.space.t.index[0].name");
    assert_eq!(rows, (2, "t_pkey".to_string()));
    assert_eq!(db.ask("select relname from pg_class where relkind = 'r' order by 1"), "free; t; SELECT 2");
    assert_eq!(
        db.ask("select column_name, data_type from information_schema.columns where table_name = 'free' order by ordinal_position"),
        "a,integer; b,text; SELECT 2"
    );
}

#[test]
fn patterns_know_letters_of_all_languages() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask(r"select 'a1' ~ '^\w\d$', 'É' ~* 'é', 'É' ~ 'é'"), "t,t,f; SELECT 1");
}

#[test]
fn a_failed_transaction_waits_for_its_end() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key)");
    assert_eq!(
        db.ask("begin; insert into t values (1); insert into t values (1)"),
        "BEGIN; INSERT 0 1; 23505: duplicate key value violates unique constraint \"t_pkey\""
    );
    assert_eq!(db.status(), b'E');
    assert!(db.ask("select 1").starts_with("25P02"));
    assert_eq!(db.ask("commit"), "ROLLBACK");
    assert_eq!((db.status(), db.ask("select count(*) from t").as_str()), (b'I', "0; SELECT 1"));
    // A savepoint is a way back.
    assert_eq!(db.ask("begin; insert into t values (1); savepoint a"), "BEGIN; INSERT 0 1; SAVEPOINT");
    assert!(db.ask("insert into t values (1)").starts_with("23505"));
    assert_eq!(db.ask("rollback to savepoint a"), "ROLLBACK");
    assert_eq!(db.status(), b'T');
    assert_eq!(db.ask("insert into t values (2); commit"), "INSERT 0 1; COMMIT");
    assert_eq!(db.ask("select id from t order by id"), "1; 2; SELECT 2");
    // Statements of one text are one transaction.
    assert!(db.ask("insert into t values (3); insert into t values (3)").contains("23505"));
    assert_eq!(db.ask("select count(*) from t"), "2; SELECT 1");
    assert_eq!(db.ask("begin read only"), "BEGIN");
    assert!(db.ask("delete from t").starts_with("25006"));
    assert_eq!(db.ask("rollback"), "ROLLBACK");
}

#[test]
fn writers_wait_for_locked_rows_and_see_what_was_committed() {
    let mut rig = start();
    let (mut one, mut two) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    one.ask("create table t (id int primary key, n int); insert into t values (1, 10)");
    assert_eq!(one.ask("begin; select n from t where id = 1 for update"), "BEGIN; 10; SELECT 1");
    two.send(b'Q', &text(&["update t set n = n + 1 where id = 1 returning n"]));
    // It waits: whoever only reads does not.
    let mut reader = Postgres::to(&mut rig, "me");
    assert_eq!(reader.ask("select n from t"), "10; SELECT 1");
    assert!(reader.ask("select n from t for update nowait").starts_with("55P03"));
    assert_eq!(reader.ask("select n from t for update skip locked"), "SELECT 0");
    assert_eq!(one.ask("update t set n = 20 where id = 1; commit"), "UPDATE 1; COMMIT");
    let answers = two.until_ready();
    assert_eq!(answers.iter().find(|(kind, _)| *kind == b'D').map(|(_, body)| row(body)).as_deref(), Some("21"));
    // A circle ends one of those in it.
    one.ask("insert into t values (2, 0); begin; update t set n = 0 where id = 1");
    two.ask("begin; update t set n = 0 where id = 2");
    one.send(b'Q', &text(&["update t set n = 1 where id = 2"]));
    let refused = two.ask("update t set n = 1 where id = 1");
    assert!(refused.starts_with("40"), "{refused}");
    assert_eq!(kinds(&one.until_ready()), "CZ");
    // Whoever leaves leaves no lock.
    drop(one);
    assert_eq!(two.ask("rollback"), "ROLLBACK");
    assert_eq!(two.ask("update t set n = 5"), "UPDATE 2");
}

/// `Bind` of the unnamed statement with parameters as text, for as many rows as there are.
fn bind(params: &[&str]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0];
    body.extend_from_slice(&(params.len() as u16).to_be_bytes());
    for param in params {
        body.extend_from_slice(&(param.len() as u32).to_be_bytes());
        body.extend_from_slice(param.as_bytes());
    }
    body.extend_from_slice(&[0, 0]);
    body
}

#[test]
fn the_extended_protocol_prepares_binds_and_pages() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key, name text); insert into t values (1, 'a'), (2, 'b'), (3, 'c')");
    db.send(b'P', &[text(&["", "select id, name from t where id >= $1 order by id"]), vec![0, 0]].concat());
    db.send(b'D', b"S\0");
    db.send(b'B', &bind(&["2"]));
    db.send(b'E', &[0, 0, 0, 0, 1]);
    db.send(b'E', &[0, 0, 0, 0, 0]);
    db.send(b'S', &[]);
    let messages = db.until_ready();
    assert_eq!(kinds(&messages), "1tT2DsDCZ");
    assert_eq!(messages[1].1, [0, 1, 0, 0, 0, 23], "the parameter is as the column that it is compared with");
    assert_eq!((row(&messages[4].1).as_str(), row(&messages[6].1).as_str()), ("2,b", "3,c"));
    // After an error all is passed over up to the next Sync.
    db.send(b'B', &bind(&["x"]));
    db.send(b'E', &[0, 0, 0, 0, 0]);
    db.send(b'S', &[]);
    let messages = db.until_ready();
    assert_eq!((kinds(&messages).as_str(), field(&messages[0].1, b'C').as_str()), ("EZ", "22P02"));
    for (kind, body, state) in [
        (b'B', bind(&[]), "08P01"),
        (b'B', [text(&["", "none"]), vec![0; 6]].concat(), "26000"),
        (b'E', [text(&["none"]), vec![0; 4]].concat(), "34000"),
        (b'D', b"X\0".to_vec(), "08P01"),
        (b'B', vec![0], "08P01"),
        (b'P', [text(&["", "select $1"]), vec![0, 1, 0, 0, 0xff, 0xff]].concat(), "42704"),
        (b'P', b"\0select '\xff'\0\0\0".to_vec(), "22021"),
        (b'F', vec![0; 10], "0A000"),
    ] {
        db.send(kind, &body);
        db.send(b'S', &[]);
        let messages = db.until_ready();
        assert_eq!(
            (kinds(&messages).as_str(), field(&messages[0].1, b'C').as_str()),
            ("EZ", state),
            "{}",
            char::from(kind)
        );
    }
    assert_eq!(db.ask("select 1"), "1; SELECT 1");
    db.send(b'!', &[]);
    assert_eq!(db.message().map(|(kind, body)| (kind, field(&body, b'C'))), Some((b'E', "08P01".to_string())));
    assert!(db.message().is_none());
}

#[test]
fn rows_come_and_go_by_copy() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key, name text)");
    db.send(b'Q', &text(&["copy t from stdin"]));
    assert_eq!(db.message().unwrap().0, b'G');
    // Rows are cut wherever messages are.
    for part in ["1\ta\\tb\n2\t", "\\N\n3\tc"] {
        db.send(b'd', part.as_bytes());
    }
    db.send(b'c', &[]);
    assert_eq!(kinds(&db.until_ready()), "CZ");
    assert_eq!(db.ask("select * from t order by id"), "1,a\tb; 2,null; 3,c; SELECT 3");
    let out = db.query("copy (select * from t order by id) to stdout with (format csv, header)");
    let lines: String =
        out.iter().filter(|(kind, _)| *kind == b'd').map(|(_, body)| String::from_utf8_lossy(body)).collect();
    assert_eq!(lines, "id,name\n1,a\tb\n2,\n3,c\n");
    // All rows come, or none.
    for (rows, state) in [("4\td\nx\te\n", "22P02"), ("4\td\n5\n", "22P04"), ("4\td\n1\te\n", "23505")] {
        db.send(b'Q', &text(&["copy t from stdin"]));
        db.send(b'd', rows.as_bytes());
        db.send(b'c', &[]);
        let messages = db.until_ready();
        let error = messages.iter().find(|(kind, _)| *kind == b'E').unwrap();
        assert_eq!(field(&error.1, b'C'), state);
        assert_eq!(db.ask("select count(*) from t"), "3; SELECT 1");
    }
    assert!(db.ask("copy t from '/etc/passwd'").starts_with("42501"));
}

#[test]
fn who_has_a_password_proves_it() {
    let mut rig = start();
    assert_eq!(rig.eval("box.schema.user.create('ann', {password = 'secret'})").code(), 0);
    let mut db = Postgres::open(&mut rig);
    db.first(3 << 16, &[text(&["user", "ann"]), vec![0]].concat());
    let (kind, body) = db.message().unwrap();
    assert_eq!((kind, &body[..4]), (b'R', &10u32.to_be_bytes()[..]), "SASL is asked for");
    let first = "n,,n=,r=abcdef";
    db.send(b'p', &[text(&["SCRAM-SHA-256"]), (first.len() as u32).to_be_bytes().to_vec(), first.into()].concat());
    let (_, body) = db.message().unwrap();
    let challenge = String::from_utf8_lossy(&body[4..]).into_owned();
    let nonce = challenge.split(',').next().unwrap().to_string();
    assert!(nonce.starts_with("r=abcdef"), "{challenge}");
    let proof = format!("c=biws,{nonce},p={}", "A".repeat(43) + "=");
    db.send(b'p', proof.as_bytes());
    let (kind, body) = db.message().unwrap();
    assert_eq!((kind, field(&body, b'C').as_str()), (b'E', "28P01"));
    assert!(db.message().is_none(), "the connection ends");
    // Who names nobody that has a password acts for the listener's user, who has no rights on others' rows.
    let script = "local s = box.schema.space.create('private', {format = {{'id', 'unsigned'}}}) s:create_index('pk')";
    assert_eq!(rig.eval(script).code(), 0);
    let mut db = Postgres::to(&mut rig, "me");
    assert!(db.ask("select * from private").starts_with("42501"));
    assert!(db.ask("drop table private").starts_with("42501"));
    assert!(db.ask("insert into private values (1)").starts_with("42501"));
    assert_eq!(db.ask("select count(*) from pg_class where relname = 'private'"), "0; SELECT 1");
    assert!(db.ask("select * from _user").starts_with("42501"));
}

#[test]
fn bytes_that_are_no_protocol_harm_nobody() {
    let mut rig = start();
    for input in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0, 0, 0, 4],
        &[0xff; 64],
        &[0, 0, 0, 8, 0, 9, 0, 0],
        &[0, 0, 0, 9, 0, 3, 0, 0, b'u'],
    ] {
        let mut db = Postgres::open(&mut rig);
        db.0.write_all(input).unwrap();
        let answer = db.message();
        assert!(answer.as_ref().is_none_or(|(kind, _)| *kind == b'E'), "{answer:?}");
        assert!(db.message().is_none());
    }
    // TLS and GSS are declined, and the client goes on without.
    let mut db = Postgres::open(&mut rig);
    for code in [80_877_103, 80_877_104] {
        db.first(code, &[]);
        let mut answer = [0];
        db.0.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"N");
    }
    db.first(3 << 16, &[text(&["user", "me"]), vec![0]].concat());
    db.until_ready();
    // A transaction of a client that leaves is rolled back.
    db.ask("create table t (id int primary key)");
    db.ask("begin; insert into t values (1)");
    drop(db);
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask("insert into t values (1)"), "INSERT 0 1");
}

#[test]
fn a_client_cancels_what_runs_and_is_told_of_notifications() {
    let mut rig = start();
    let mut db = Postgres::open(&mut rig);
    db.first(3 << 16, &[text(&["user", "me"]), vec![0]].concat());
    let welcome = db.until_ready();
    let key = welcome.iter().find(|(kind, _)| *kind == b'K').unwrap().1.clone();
    db.send(b'Q', &text(&["select count(*) from generate_series(1, 100000000000)"]));
    let mut other = Postgres::open(&mut rig);
    other.first(80_877_102, &[&key[..4], &[0, 0, 0, 0]].concat());
    assert!(other.message().is_none(), "it is answered by nothing");
    let mut other = Postgres::open(&mut rig);
    other.first(80_877_102, &key);
    assert!(other.message().is_none());
    let messages = db.until_ready();
    assert!(messages.iter().any(|(kind, body)| *kind == b'E' && field(body, b'C') == "57014"), "{messages:?}");
    assert_eq!(db.ask("listen news"), "LISTEN");
    let mut other = Postgres::to(&mut rig, "me");
    assert_eq!(
        other.ask("begin; notify news, 'never'; rollback; notify news, 'hello'"),
        "BEGIN; NOTIFY; ROLLBACK; NOTIFY"
    );
    let (kind, body) = db.message().unwrap();
    assert_eq!((kind, &body[4..]), (b'A', &b"news\0hello\0"[..]));
}

#[test]
fn waits_and_statements_have_time_outs() {
    let mut rig = start();
    let (mut one, mut two) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    one.ask("create table t (id int primary key, n int); insert into t values (1, 10)");
    one.ask("begin; update t set n = 1");
    let refused = two.ask("set lock_timeout = '20ms'; update t set n = 2");
    assert_eq!(refused, "SET; 55P03: canceling statement due to lock timeout");
    let refused = two.ask("set statement_timeout = 20; select count(*) from generate_series(1, 100000000000)");
    assert_eq!(refused, "SET; 57014: canceling statement due to statement timeout");
    assert_eq!(two.ask("show statement_timeout"), "20; SHOW");
}

/// `Parse`, `Bind` and `Execute` of a statement without parameters.
fn step(db: &mut Postgres, sql: &str) {
    db.send(b'P', &[text(&["", sql]), vec![0, 0]].concat());
    db.send(b'B', &bind(&[]));
    db.send(b'E', &[0, 0, 0, 0, 0]);
}

/// What a pipeline of statements answers, without what `Parse` and `Bind` say, and the state of the transaction behind it.
fn pipeline(db: &mut Postgres, statements: &[&str]) -> String {
    statements.iter().for_each(|sql| step(db, sql));
    db.send(b'S', &[]);
    let said = db.until_ready().into_iter().filter_map(|(kind, body)| match kind {
        b'E' => Some(field(&body, b'C')),
        b'C' => Some(String::from_utf8_lossy(&body[..body.len() - 1]).into_owned()),
        b'D' => Some(row(&body)),
        b'N' => Some(format!("warning {}", field(&body, b'C'))),
        b'Z' => Some(char::from(body[0]).to_string()),
        _ => None,
    });
    said.collect::<Vec<_>>().join("; ")
}

#[test]
fn statements_up_to_a_sync_are_one_transaction() {
    let mut rig = start();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    db.ask("create table t (id int primary key)");
    let insert = |id: u32| format!("insert into t values ({id})");
    assert_eq!(pipeline(&mut db, &[&insert(1), &insert(1), &insert(2)]), "INSERT 0 1; 23505; I");
    assert_eq!(db.ask("select count(*) from t"), "0; SELECT 1");
    // Nobody sees a part of it.
    step(&mut db, &insert(1));
    db.send(b'H', &[]);
    assert_eq!([db.message().unwrap().0, db.message().unwrap().0, db.message().unwrap().0], *b"12C");
    assert_eq!(other.ask("select count(*) from t"), "0; SELECT 1");
    assert_eq!(pipeline(&mut db, &[&insert(2), "select count(*) from t"]), "INSERT 0 1; 2; SELECT 1; I");
    assert_eq!(other.ask("select count(*) from t"), "2; SELECT 1");
    // A transaction that begins in it takes in what came before; COMMIT ends what there is.
    assert_eq!(pipeline(&mut db, &[&insert(3), "begin", &insert(4)]), "INSERT 0 1; BEGIN; INSERT 0 1; T");
    assert_eq!((db.ask("rollback"), other.ask("select count(*) from t")), ("ROLLBACK".into(), "2; SELECT 1".into()));
    assert_eq!(
        pipeline(&mut db, &[&insert(3), "commit", &insert(4), &insert(4)]),
        "INSERT 0 1; warning 25P01; COMMIT; INSERT 0 1; 23505; I"
    );
    assert_eq!(db.ask("select max(id) from t"), "3; SELECT 1");
    assert_eq!(
        pipeline(&mut db, &[&insert(4), "create table u (a int primary key)", &insert(5)]),
        "INSERT 0 1; CREATE TABLE; INSERT 0 1; I"
    );
    // Who leaves in the middle has done nothing.
    step(&mut db, &insert(6));
    db.send(b'H', &[]);
    assert_eq!([db.message().unwrap().0, db.message().unwrap().0, db.message().unwrap().0], *b"12C");
    drop(db);
    assert_eq!(other.ask("insert into t values (6)"), "INSERT 0 1");
    // Cursors and messages of a pipeline live as long as it does.
    let declared = pipeline(&mut other, &["declare c cursor for select id from t order by id", "fetch 2 c"]);
    assert_eq!(declared, "25P01; I");
    let declared = pipeline(
        &mut other,
        &[
            "update t set id = id",
            "declare c cursor for select id from t order by id",
            "fetch 2 c",
            "listen l",
            "notify l",
        ],
    );
    assert_eq!(declared, "UPDATE 6; DECLARE CURSOR; 1; 2; FETCH 2; LISTEN; NOTIFY; I");
    assert!(other.ask("fetch c").starts_with("34000"));
}

#[test]
fn cursors_are_gone_through_and_end_with_their_transaction() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask(
        "create table t (id int primary key, name text); insert into t select g, 'n' || g from generate_series(1, 5) g",
    );
    assert!(db.ask("declare c cursor for select 1").starts_with("25P01"));
    assert_eq!(
        db.ask("begin; declare c cursor for select id from t order by id; fetch 2 from c; move 1 c; fetch c; fetch prior c; fetch all c"),
        "BEGIN; DECLARE CURSOR; 1; 2; FETCH 2; MOVE 1; 4; FETCH 1; 3; FETCH 1; 4; 5; FETCH 2"
    );
    // It shows what was there when it was declared.
    assert_eq!(
        db.ask("delete from t where id = 1; fetch absolute 1 c; fetch last c; fetch backward 2 c"),
        "DELETE 1; 1; FETCH 1; 5; FETCH 1; 4; 3; FETCH 2"
    );
    assert!(db.ask("declare c cursor for select 2").starts_with("42P03"));
    assert!(db.ask("fetch c").starts_with("25P02"));
    assert_eq!(db.ask("rollback"), "ROLLBACK");
    assert!(db.ask("fetch c").starts_with("34000"));
    let held = db.ask("begin; declare h no scroll cursor with hold for select id, name from t order by id; fetch 1 h; commit; fetch 1 h");
    assert_eq!(held, "BEGIN; DECLARE CURSOR; 1,n1; FETCH 1; COMMIT; 2,n2; FETCH 1");
    assert!(db.ask("fetch prior h").starts_with("55000"));
    // By the extended protocol, with parameters of the query, and in binary.
    db.send(
        b'P',
        &[text(&["", "declare b cursor with hold for select id from t where id > $1 order by id"]), vec![0, 0]]
            .concat(),
    );
    db.send(b'B', &bind(&["3"]));
    db.send(b'E', &[0, 0, 0, 0, 0]);
    db.send(b'P', &[text(&["", "fetch forward 2 from b"]), vec![0, 0]].concat());
    db.send(b'D', b"S\0");
    let mut binary = vec![0, 0, 0, 0, 0, 0];
    binary.extend_from_slice(&[0, 1, 0, 1]);
    db.send(b'B', &binary);
    db.send(b'E', &[0, 0, 0, 0, 0]);
    db.send(b'S', &[]);
    let messages = db.until_ready();
    assert_eq!(kinds(&messages), "12C1tT2DDCZ");
    assert_eq!(messages[7].1, [0, 1, 0, 0, 0, 4, 0, 0, 0, 4]);
    assert_eq!(db.ask("close b; close all"), "CLOSE CURSOR; CLOSE CURSOR ALL");
    assert!(db.ask("close h").starts_with("34000"));
    assert!(db.ask("fetch 1 from").starts_with("42601"));
}

#[test]
fn who_leaves_a_transaction_alone_is_disconnected_where_the_session_says_so() {
    let mut rig = start();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    db.ask("create table t (id int primary key, n int); insert into t values (1, 10)");
    db.ask("set idle_in_transaction_session_timeout = '100ms'");
    // Outside of a transaction nobody is in a hurry, and work is no pause.
    assert_eq!(other.ask("select pg_sleep(0.3)"), "; SELECT 1");
    assert_eq!(db.ask("begin; update t set n = 1; select pg_sleep(0.3)"), "BEGIN; UPDATE 1; ; SELECT 1");
    let (kind, body) = db.message().unwrap();
    assert_eq!((kind, field(&body, b'C').as_str()), (b'E', "25P03"));
    assert!(db.message().is_none());
    assert_eq!(other.ask("update t set n = 2; select n from t"), "UPDATE 1; 2; SELECT 1");
}

#[test]
fn a_deadlock_ends_one_with_its_code() {
    let mut rig = start();
    let (mut one, mut two) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    one.ask("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)");
    assert_eq!(one.ask("begin; update t set n = 1 where id = 1"), "BEGIN; UPDATE 1");
    assert_eq!(two.ask("begin; update t set n = 1 where id = 2"), "BEGIN; UPDATE 1");
    one.send(b'Q', &text(&["update t set n = 2 where id = 2"]));
    let refused = two.ask("update t set n = 2 where id = 1");
    let waited: Vec<_> = one.until_ready();
    let is_one = waited.iter().any(|(kind, body)| *kind == b'E' && field(body, b'C') == "40P01");
    assert!(is_one != (refused == "40P01: deadlock detected"), "{refused} {waited:?}");
    assert_eq!([one.ask("rollback"), two.ask("rollback")], ["ROLLBACK", "ROLLBACK"]);
}

/// COPY of rows as text. Returns the state of the error, or what completed it.
fn copy(db: &mut Postgres, statement: &str, rows: &[u8]) -> String {
    db.send(b'Q', &text(&[statement]));
    db.send(b'd', rows);
    db.send(b'c', &[]);
    let messages = db.until_ready();
    let told = messages.iter().find_map(|(kind, body)| match kind {
        b'E' => Some(field(body, b'C')),
        b'C' => Some(String::from_utf8_lossy(&body[..body.len() - 1]).into_owned()),
        _ => None,
    });
    told.unwrap()
}

#[test]
fn rows_of_copy_are_as_their_columns_want_them() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    // With a key and without: the second one's rows are put in one by one.
    for key in ["primary key", ""] {
        db.ask("drop table if exists t");
        db.ask(&format!("create table t (id int {key}, name varchar(3), n numeric(4, 1), ok boolean default true, must int not null default 5)"));
        assert_eq!(copy(&mut db, "copy t from stdin", b"1\tabc\t1.25\tt\t-7\r\n2\tab   \t\\N\t\\N\t007\n"), "COPY 2");
        assert_eq!(copy(&mut db, "copy t (id, name) from stdin (format csv)", b"3,\"\"\"x\"\n"), "COPY 1");
        assert_eq!(
            db.ask("select * from t order by id"),
            "1,abc,1.3,t,-7; 2,ab ,null,null,7; 3,\"x,null,t,5; SELECT 3"
        );
        for (rows, state) in [
            (&b"4\tabcd\t1\tt\t1\n"[..], "22001"),
            (b"2147483648\ta\t1\tt\t1\n", "22003"),
            (b"4\ta\t1234.5\tt\t1\n", "22003"),
            (b"4\ta\t1\tt\t\\N\n", "23502"),
            (b"4\ta\t1\tperhaps\t1\n", "22P02"),
            (b"4\ta\t1\tt\t1\t1\n", "22P04"),
            (b"4\ta\t1\tt\n", "22P04"),
            (b"4\t\xff\t1\tt\t1\n", "22021"),
            (b"\n", "22P04"),
        ] {
            let shown = String::from_utf8_lossy(rows).into_owned();
            assert_eq!(copy(&mut db, "copy t from stdin", &[b"9\tz\t1\tt\t1\n", rows].concat()), state, "{shown}");
        }
        assert_eq!(db.ask("select count(*) from t"), "3; SELECT 1");
    }
    // In a transaction of the client's it goes with it.
    assert_eq!(db.ask("begin"), "BEGIN");
    assert_eq!(copy(&mut db, "copy t from stdin", b"4\ta\t1\tt\t1\n"), "COPY 1");
    assert_eq!(
        db.ask("select count(*) from t; rollback; select count(*) from t"),
        "4; SELECT 1; ROLLBACK; 3; SELECT 1"
    );
    // Somebody has locked a row: rows are put in by a transaction.
    db.ask("drop table t; create table t (id int primary key)");
    db.ask("insert into t values (1)");
    let mut other = Postgres::to(&mut rig, "me");
    assert_eq!(other.ask("begin; select id from t for update"), "BEGIN; 1; SELECT 1");
    assert_eq!(copy(&mut db, "copy t from stdin", b"2\n3\n"), "COPY 2");
    assert_eq!(copy(&mut db, "copy t from stdin", b"4\n3\n"), "23505");
    assert_eq!(db.ask("select count(*) from t"), "3; SELECT 1");
    let mut guest = Postgres::to(&mut rig, "me");
    assert_eq!(rig.eval("box.schema.user.create('ann', {password = 'secret'}) box.schema.space.create('own', {format = {{'id', 'unsigned'}}}):create_index('i')").code(), 0);
    assert_eq!(copy(&mut guest, "copy own from stdin", b"1\n"), "42501");
}

#[test]
fn constraints_hold_for_all_and_are_shown() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table p (id serial primary key, code text unique, price int check (price > 0), constraint cap check (price < 1000))");
    db.ask(
        "create table c (id int primary key, pid int references p on delete cascade, \
         code text references p(code) on update cascade on delete set null)",
    );
    assert_eq!(db.ask("insert into p (code, price) values ('a', 1), ('b', 2), ('n', null)"), "INSERT 0 3");
    assert_eq!(
        db.ask("insert into p (code, price) values ('c', 0)"),
        "23514: new row for relation \"p\" violates check constraint \"p_price_check\""
    );
    assert!(db.ask("update p set price = 5000 where id = 1").contains("\"cap\""));
    assert_eq!(db.ask("insert into c values (1, 1, 'a'), (2, 2, 'b'), (3, null, 'a')"), "INSERT 0 3");
    assert_eq!(
        db.ask("insert into c values (4, 9, null)"),
        "23503: insert or update on table \"c\" violates foreign key constraint \"c_pid_fkey\""
    );
    assert_eq!(db.ask("update p set code = 'z' where id = 1"), "UPDATE 1");
    assert_eq!(db.ask("select id, pid, code from c order by id"), "1,1,z; 2,2,b; 3,null,z; SELECT 3");
    // What follows is undone with its statement.
    assert_eq!(db.ask("begin; delete from p where id = 1; rollback"), "BEGIN; DELETE 1; ROLLBACK");
    assert_eq!(db.ask("select count(*) from c"), "3; SELECT 1");
    assert_eq!(db.ask("delete from p where id = 1"), "DELETE 1");
    assert_eq!(db.ask("select id, pid, code from c order by id"), "2,2,b; 3,null,null; SELECT 2");
    assert!(db.ask("drop table p").starts_with("2BP01"));
    // Lua writes to the same table under the same conditions.
    let refused = rig.number("local _, e = pcall(box.space.c.insert, box.space.c, {7, 7, box.NULL}) return e.code");
    assert_eq!(refused, 240);
    assert_eq!(
        db.ask("select conname, contype, pg_get_constraintdef(oid) from pg_constraint where contype in ('c', 'f') order by 1"),
        "c_code_fkey,f,FOREIGN KEY (code) REFERENCES p(code) ON UPDATE CASCADE ON DELETE SET NULL; \
         c_pid_fkey,f,FOREIGN KEY (pid) REFERENCES p(id) ON DELETE CASCADE; cap,c,CHECK (price < 1000); \
         p_price_check,c,CHECK (price > 0); SELECT 4"
    );
    assert_eq!(db.ask("alter table p rename column price to cost"), "ALTER TABLE");
    assert!(db.ask("insert into p (code, cost) values ('q', 0)").contains("p_price_check"));
    assert!(db.ask("alter table c add constraint k check (id < 3)").starts_with("23514"));
    assert_eq!(db.ask("alter table c drop constraint c_pid_fkey"), "ALTER TABLE");
    assert_eq!(db.ask("insert into c values (8, 77, null)"), "INSERT 0 1");
    assert!(db.ask("alter table c add foreign key (pid) references p").starts_with("23503"));
    // A row that names one of the same statement.
    db.ask("create table tree (id int primary key, up int references tree)");
    assert_eq!(db.ask("insert into tree values (2, 1), (1, null), (3, 2)"), "INSERT 0 3");
    assert_eq!(db.ask("delete from tree"), "DELETE 3");
    assert_eq!(db.ask("drop table p cascade; drop table c"), "DROP TABLE; DROP TABLE");
}

#[test]
fn tables_get_another_shape_with_their_rows() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key, a text, b int check (b > 0))");
    db.ask("insert into t values (1, '5', 1), (2, '7', 2)");
    assert_eq!(db.ask("alter table t add column d int not null default 9"), "ALTER TABLE");
    assert_eq!(db.ask("select * from t order by id"), "1,5,1,9; 2,7,2,9; SELECT 2");
    assert!(db.ask("alter table t add column e int not null").starts_with("23502"));
    assert_eq!(db.ask("alter table t alter column a type int using a::int"), "ALTER TABLE");
    assert_eq!(db.ask("select a + 1 from t order by id"), "6; 8; SELECT 2");
    assert!(db.ask("alter table t alter column a type uuid using 'x'").contains(':'));
    assert_eq!(db.ask("alter table t drop column b, alter column a set default 77"), "ALTER TABLE");
    assert_eq!(db.ask("insert into t (id) values (3) returning a, d"), "77,9; INSERT 0 1");
    // All of it or nothing.
    assert!(db.ask("alter table t drop column a, drop column nosuch").starts_with("42703"));
    assert_eq!(db.ask("select a from t where id = 1"), "5; SELECT 1");
    db.ask("create table c (id int primary key, tid int references t)");
    assert_eq!(db.ask("insert into c values (1, 1); alter table t drop column a"), "INSERT 0 1; ALTER TABLE");
    assert!(db.ask("delete from t where id = 1").starts_with("23503"));
    assert_eq!(db.ask("alter table t add column s serial"), "ALTER TABLE");
    assert_eq!(db.ask("insert into t (id) values (9) returning s"), "4; INSERT 0 1");
    assert_eq!(db.ask("create table u as select id, d * 2 as e from t"), "CREATE TABLE");
    assert_eq!(db.ask("select count(*), sum(e) from u"), "4,72; SELECT 1");
    assert_eq!(db.ask("create sequence q start with 5 increment by 2"), "CREATE SEQUENCE");
    assert_eq!(db.ask("select nextval('q'), nextval('q')"), "5,7; SELECT 1");
    assert_eq!(
        db.ask("select setval('q', 21); select nextval('q'); drop sequence q"),
        "21; SELECT 1; 23; SELECT 1; DROP SEQUENCE"
    );
}

#[test]
fn temporary_tables_are_private_and_go_with_their_session() {
    let mut rig = start();
    let (mut one, mut two) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    one.ask("create table t (id int primary key, v text); insert into t values (1, 'all')");
    one.ask("create view v as select * from t");
    assert_eq!(
        one.ask("create temp table t (id serial primary key, v text unique check (v <> 'bad'), n int default 5)"),
        "CREATE TABLE"
    );
    assert_eq!(one.ask("insert into t (v) values ('a'), ('b') returning id, n"), "1,5; 2,5; INSERT 0 2");
    assert!(one.ask("insert into t (v) values ('bad')").starts_with("23514"));
    assert!(one.ask("insert into t (v) values ('a')").starts_with("23505"));
    assert_eq!(one.ask("create index t_n on t (n); alter table t add w int default 7"), "CREATE INDEX; ALTER TABLE");
    assert_eq!(one.ask("select * from t order by id"), "1,a,5,7; 2,b,5,7; SELECT 2");
    // Others, and views, mean the one that everybody sees.
    assert_eq!(two.ask("select * from t"), "1,all; SELECT 1");
    assert_eq!(one.ask("select * from v"), "1,all; SELECT 1");
    assert!(two.ask("select * from pg_temp_1_t").starts_with("42P01"));
    assert!(one.ask("create view w as select * from t").starts_with("0A000"));
    assert!(one.ask("create table c (a int references t)").starts_with("42P16"));
    // The open transaction goes on beside them.
    assert_eq!(one.ask("begin; insert into v0 values (1)"), "BEGIN; 42P01: relation \"v0\" does not exist");
    one.ask("rollback");
    one.ask("alter table t rename to mine; begin; insert into t values (2, 'x')");
    assert_eq!(one.ask("create temp table d on commit drop as select * from t"), "CREATE TABLE");
    assert_eq!(
        one.ask("create temp table e (a int) on commit delete rows; insert into e values (1)"),
        "CREATE TABLE; INSERT 0 1"
    );
    assert_eq!(two.ask("select count(*) from t"), "1; SELECT 1");
    assert_eq!(one.ask("select count(*) from d; select count(*) from e"), "2; SELECT 1; 1; SELECT 1");
    one.ask("commit");
    assert!(one.ask("select * from d").starts_with("42P01"));
    assert_eq!(one.ask("select count(*) from e; select count(*) from t"), "0; SELECT 1; 2; SELECT 1");
    assert_eq!(one.ask("begin; create temp table f (a int); rollback"), "BEGIN; CREATE TABLE; ROLLBACK");
    assert!(one.ask("select * from f").starts_with("42P01"));
    // Nothing is left of a session, nor behind a start.
    assert_eq!(one.ask("discard all"), "DISCARD ALL");
    assert!(one.ask("select * from mine").starts_with("42P01"));
    one.ask("create temp table g (id serial primary key, v text check (v > '')); insert into g (v) values ('a')");
    drop(one);
    let is_gone = "local n = 0; for _, s in box.space._space:pairs() do if s[3]:startswith('pg_temp_') then n = n + 1 end end; return n";
    let deadline = std::time::Instant::now() + PATIENCE;
    while rig.number(is_gone) != 0 {
        assert!(std::time::Instant::now() < deadline, "temporary tables outlive their session");
    }
    two.ask("create temp table h (id serial primary key, v text check (v > '')); insert into h (v) values ('a')");
    assert_eq!(rig.number("box.snapshot() return 1"), 1);
    two.ask("insert into h (v) values ('b'); create temp table i (a int)");
    rig.restart(&[]);
    assert_eq!(rig.number(is_gone), 0);
}

#[test]
fn nothing_that_is_logged_hangs_on_a_temporary_table() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create temp table t (id serial primary key, v text check (v > ''))");
    let refused = "local n = 0 local function try(f) if not pcall(f) then n = n + 1 end end \
        local space, sequence, func \
        for _, s in box.space._space:pairs() do if s[3]:startswith('pg_temp_') then space = s[3] end end \
        for _, s in box.space._sequence:pairs() do if s[3]:startswith('pg_temp_') then sequence = s[3] end end \
        for _, f in box.space._func:pairs() do if f[3]:startswith('pg_temp_') then func = f[3] end end \
        local own = box.schema.create_space('own') own:create_index('pk') \
        box.space._sequence:insert{1073741999, 1, 'mine', 1, 1, 100, 1, 0, false} \
        try(function() box.schema.create_space('pg_temp_1_x', {id = 1073741900}) end) \
        try(function() box.schema.create_space('linked'):create_index('pk', {sequence = sequence}) end) \
        try(function() box.schema.create_space('checked', {constraint = func}) end) \
        try(function() own:rename('pg_temp_1_own') box.space._space:update(own.id, {{'=', 1, 1073741901}}) end) \
        try(function() box.space._sequence:update(1073741999, {{'=', 3, 'pg_temp_1_mine'}}) end) \
        try(function() box.space._space:update(box.space[space].id, {{'=', 6, setmetatable({}, {__serialize = 'map'})}}) end) \
        box.session.su('admin', box.schema.user.grant, 'guest', 'alter', 'space', space) \
        return n";
    assert_eq!(rig.number(refused), 6);
    // Each start is one that nothing is missing for.
    rig.restart(&[]);
    assert_eq!(
        rig.number("box.snapshot() return box.space.pg_temp_1_own ~= nil and box.sequence.mine ~= nil and 1 or 0"),
        1
    );
    rig.restart(&[]);
    assert_eq!(rig.number("return box.space.pg_temp_1_own:insert{1}[1]"), 1);
}

#[test]
fn dumps_of_postgresql_load_and_pg_dump_finds_what_it_asks_for() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    let dump = "set standard_conforming_strings = on; select pg_catalog.set_config('search_path', '', false); \
        set check_function_bodies = false; set xmloption = content; set row_security = off; set default_table_access_method = heap; \
        create table public.a (id integer not null, name text); alter table public.a owner to me; \
        create sequence public.a_id_seq as integer start with 1 increment by 1 no minvalue no maxvalue cache 1; \
        alter sequence public.a_id_seq owned by public.a.id; \
        alter table only public.a alter column id set default nextval('public.a_id_seq'::regclass); \
        insert into public.a values (1, 'x'), (7, 'y'); select pg_catalog.setval('public.a_id_seq', 7, true); \
        alter table only public.a add constraint a_pkey primary key (id); \
        create table public.b (id integer not null, a integer); alter table only public.b add constraint b_a foreign key (a) references public.a(id); \
        create view public.v as select b.id, a.name from (public.b join public.a on ((a.id = b.a)))";
    assert!(!db.ask(dump).contains(": "), "{}", db.ask(dump));
    assert_eq!(db.ask("select last_value, is_called from public.a_id_seq"), "7,t; SELECT 1");
    // Names that stand alone are found without a path, and get their schema where there is none.
    assert_eq!(
        db.ask("select pg_get_constraintdef(oid) from pg_constraint where conname = 'b_a'"),
        "FOREIGN KEY (a) REFERENCES public.a(id); SELECT 1"
    );
    assert_eq!(db.ask("select pg_catalog.current_schemas(false)"), "{}; SELECT 1");
    assert_eq!(
        db.ask("select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'public.a'::regclass"),
        "nextval('public.a_id_seq'::regclass); SELECT 1"
    );
    assert!(db.ask("select pg_get_viewdef('public.v'::regclass)").contains("FROM (public.b JOIN public.a ON"));
    // Each object of the catalog says which table it is of, and what it depends on.
    assert_eq!(
        db.ask("select tableoid = 'pg_class'::regclass, tableoid from pg_class where oid = 'a'::regclass"),
        "t,1259; SELECT 1"
    );
    assert_eq!(
        db.ask("select c.relname, d.deptype from pg_depend d join pg_class c on c.oid = d.refobjid where d.classid = 'pg_rewrite'::regclass order by 1"),
        "a,n; b,n; v,i; SELECT 3"
    );
    assert_eq!(
        db.ask("select relname from pg_class c where c.oid operator(pg_catalog.=) 'a'::regclass"),
        "a; SELECT 1"
    );
    db.ask("begin");
    assert_eq!(db.ask("set transaction isolation level repeatable read, read only"), "SET");
    assert_eq!(db.ask("select con.conkey[1] from pg_constraint con where con.conname = 'b_a'"), "2; SELECT 1");
    assert_eq!(db.ask("commit"), "COMMIT");
    // Nothing of it is left where its tables have gone.
    assert_eq!(db.ask("drop view public.v; drop table public.b, public.a"), "DROP VIEW; DROP TABLE");
    assert!(db.ask("select last_value from public.a_id_seq").starts_with("42P01"));
}

#[test]
fn subqueries_behind_group_by_read_the_values_of_their_group() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table g (id int primary key, a int, b int); insert into g values (1, 1, 1), (2, 1, 2), (3, 2, 3)");
    assert_eq!(
        db.ask("select a, sum(b), (select count(*) from g x where x.a = g.a) from g group by a order by 1"),
        "1,3,2; 2,3,1; SELECT 2"
    );
    // A column that the key of a group gives.
    assert_eq!(
        db.ask("select id, (select max(x.b) from g x where x.a = g.a) from g group by id order by 1"),
        "1,2; 2,2; 3,3; SELECT 3"
    );
    let having = "select a from g group by a having count(*) <> (select count(*) from g x where x.a = g.a)";
    assert_eq!(db.ask(having), "SELECT 0");
    assert_eq!(
        db.ask("select a, sum(b) from g group by a order by (select max(x.b) from g x where x.a = g.a) desc"),
        "2,3; 1,3; SELECT 2"
    );
}

#[test]
fn tables_are_truncated_together() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table p (id serial primary key); create table c (id serial primary key, p int references p)");
    db.ask("insert into p default values; insert into c (p) values (1)");
    assert!(db.ask("truncate p").starts_with("0A000"));
    assert_eq!(db.ask("truncate p, c restart identity"), "TRUNCATE TABLE");
    assert_eq!(db.ask("insert into p default values returning id"), "1; INSERT 0 1");
    assert_eq!(db.ask("insert into c (p) values (1)"), "INSERT 0 1");
    assert_eq!(db.ask("truncate p cascade"), "TRUNCATE TABLE");
    assert_eq!(db.ask("select count(*) from c"), "0; SELECT 1");
}

/// As dumps of PostgreSQL name them.
#[test]
fn sequences_are_found_by_their_numbers() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    let made =
        db.ask("create sequence s; create table t (id integer default nextval('public.s'::regclass) not null, v text)");
    assert!(!made.contains(": "), "{made}");
    assert_eq!(db.ask("insert into t (v) values ('a') returning id"), "1; INSERT 0 1");
    assert_eq!(db.ask("select setval('s'::regclass, 10)"), "10; SELECT 1");
    assert_eq!(db.ask("insert into t (v) values ('b') returning id"), "11; INSERT 0 1");
    assert!(db.ask("select nextval(999)").contains("42P01"));
    assert_eq!(db.ask("select 'integer'::\"regtype\""), "integer; SELECT 1");
}

#[test]
fn sequences_are_altered() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create sequence q start with 5");
    assert_eq!(db.ask("select nextval('q')"), "5; SELECT 1");
    assert_eq!(db.ask("alter sequence q restart with 100 increment by 10"), "ALTER SEQUENCE");
    assert_eq!(db.ask("select nextval('q'), nextval('q')"), "100,110; SELECT 1");
    assert_eq!(db.ask("alter sequence if exists public.q restart; select nextval('q')"), "ALTER SEQUENCE; 5; SELECT 1");
    assert_eq!(
        db.ask("alter sequence q minvalue -3 maxvalue 7 start -3 restart cycle cache 1; select nextval('q')"),
        "ALTER SEQUENCE; -3; SELECT 1"
    );
    assert_eq!(db.ask("select nextval('q'); select nextval('q')"), "7; SELECT 1; -3; SELECT 1");
    assert_eq!(
        db.ask("alter sequence q no cycle no maxvalue; alter sequence q rename to r"),
        "ALTER SEQUENCE; ALTER TABLE"
    );
    assert_eq!(db.ask("select nextval('r')"), "7; SELECT 1");
    assert!(db.ask("alter sequence q restart").starts_with("42P01"));
    assert_eq!(db.ask("alter sequence if exists q restart"), "ALTER SEQUENCE");
    assert!(db.ask("alter sequence r restart with -9").starts_with("22023"));
    assert!(db.ask("alter sequence r increment 0").starts_with("22023"));
    assert!(db.ask("alter sequence r minvalue 9 maxvalue 3").starts_with("22023"));
    assert!(db.ask("alter sequence r restart with 99999999999999999999").starts_with("22023"));
    assert!(db.ask("alter sequence r nonsense 3").starts_with("42601"));
    assert!(db.ask("alter sequence r restart with").starts_with("42601"));
    db.ask("create table t (id serial primary key, a int default nextval('r'))");
    assert!(db.ask("alter sequence r rename to s").starts_with("0A000"));
    assert_eq!(
        db.ask("alter sequence t_id_seq restart with 50; insert into t (a) values (1) returning id"),
        "ALTER SEQUENCE; 50; INSERT 0 1"
    );
}

#[test]
fn tables_are_made_like_others() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id serial primary key, a text not null default 'x' unique, b int check (b > 0))");
    db.ask("create index by_b on t (b); comment on column t.a is 'of a'; insert into t (b) values (1)");
    let shape = |db: &mut Postgres, name: &str| {
        let indexes =
            format!("select string_agg(indexname, ',' order by indexname) from pg_indexes where tablename = '{name}'");
        let comment = format!("select col_description('{name}'::regclass, 2)");
        format!("{}; {}", db.ask(&indexes), db.ask(&comment))
    };
    assert_eq!(db.ask("create table p (like t)"), "CREATE TABLE");
    assert_eq!(shape(&mut db, "p"), "null; SELECT 1; null; SELECT 1");
    assert!(db.ask("insert into p (id, b) values (1, 1)").starts_with("23502"));
    assert_eq!(db.ask("insert into p (id, a, b) values (1, 'y', -1), (1, 'y', -1)"), "INSERT 0 2");
    assert_eq!(db.ask("create table w (LIKE public.t INCLUDING ALL)"), "CREATE TABLE");
    assert_eq!(shape(&mut db, "w"), "w_a_key,w_b_idx,w_pkey; SELECT 1; of a; SELECT 1");
    assert_eq!(db.ask("insert into w (b) values (5) returning *"), "1,x,5; INSERT 0 1");
    assert!(db.ask("insert into w (a, b) values ('z', -5)").starts_with("23514"));
    assert!(db.ask("insert into w (a, b) values ('x', 5)").starts_with("23505"));
    assert_eq!(db.ask("drop table w; insert into t (a, b) values ('n', 2)"), "DROP TABLE; INSERT 0 1");
    assert!(db.ask("insert into t (a, b) values ('m', -2)").starts_with("23514"));
    assert_eq!(db.ask("create table d (like t including all excluding indexes excluding comments)"), "CREATE TABLE");
    assert_eq!(shape(&mut db, "d"), "null; SELECT 1; null; SELECT 1");
    assert_eq!(db.ask("insert into d (b) values (7), (8) returning id, a"), "1,x; 2,x; INSERT 0 2");
    assert_eq!(
        db.ask("create table i (like d including indexes); insert into i values (1, 'a', 2)"),
        "CREATE TABLE; INSERT 0 1"
    );
    assert!(db.ask("create table e (like nosuch including all)").starts_with("42P01"));
    assert!(db.ask("create table e (like t including nonsense)").starts_with("42601"));
    assert!(db.ask("create table t (like d)").starts_with("42P07"));
}

#[test]
fn columns_of_results_say_where_they_come_from() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table f (id serial primary key, a text, b int)");
    db.ask("create view v as select a from f");
    let number: u32 = db.ask("select 'f'::regclass::oid").split(';').next().unwrap().parse().unwrap();
    let mut of = |sql: &str| {
        let (_, body) = db.query(sql).into_iter().find(|(kind, _)| *kind == b'T').unwrap();
        let mut rest = &body[2..];
        let mut columns = Vec::new();
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == 0).unwrap();
            let table = u32::from_be_bytes(rest[end + 1..end + 5].try_into().unwrap());
            columns.push((table, u16::from_be_bytes([rest[end + 5], rest[end + 6]])));
            rest = &rest[end + 19..];
        }
        columns
    };
    assert_eq!(of("select b + 1, b, a as z, g.id from f g"), [(0, 0), (number, 3), (number, 2), (number, 1)]);
    assert_eq!(of("select a, count(*) from f group by a"), [(number, 2), (0, 0)]);
    assert_eq!(of("insert into f (a) values ('x') returning id"), [(number, 1)]);
    assert_eq!(of("select z from (select a as z from f) d"), [(number, 2)]);
    assert_eq!(of("select a from v"), [(0, 0)]);
}

#[test]
fn a_unique_index_is_a_constraint_only_if_it_was_declared_as_one() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    let of_u = "select conname, contype from pg_constraint where conrelid = 'u'::regclass order by 1";
    let standard = "select constraint_name from information_schema.table_constraints where table_name = 'u' and constraint_type = 'UNIQUE' order by 1";
    assert_eq!(
        db.ask("create table u (id int primary key, a int unique, b int, c int); create unique index u_b on u (b)"),
        "CREATE TABLE; CREATE INDEX"
    );
    assert_eq!(db.ask(of_u), "u_a_key,u; u_pkey,p; SELECT 2");
    assert_eq!(db.ask(standard), "u_a_key; SELECT 1");
    assert!(db.ask("insert into u values (1, 1, 1, 1), (2, 2, 1, 2)").starts_with("23505"));
    assert!(db.ask("alter table u drop constraint u_b").starts_with("42704"));
    assert!(db.ask("alter table u rename constraint u_b to x").starts_with("42704"));
    assert_eq!(db.ask("comment on table u is 'said'; alter index u_b rename to u_bb"), "COMMENT; ALTER INDEX");
    assert_eq!(db.ask("alter table u add column d int default 5"), "ALTER TABLE", "rows get another shape");
    assert_eq!(db.ask(standard), "u_a_key; SELECT 1");
    rig.restart(&["--listen", "postgres://127.0.0.1:0"]);
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask(standard), "u_a_key; SELECT 1");
    assert_eq!(db.ask("select obj_description('u'::regclass)"), "said; SELECT 1");
    assert_eq!(db.ask("create table w (like u including all)"), "CREATE TABLE");
    assert_eq!(db.ask(&of_u.replace("'u'", "'w'")), "w_a_key,u; w_pkey,p; SELECT 2");
    assert_eq!(
        db.ask("select indexname from pg_indexes where tablename = 'w' order by 1"),
        "w_a_key; w_b_idx; w_pkey; SELECT 3"
    );
    assert_eq!(db.ask("alter table u add constraint u_b unique using index u_bb"), "ALTER TABLE");
    assert_eq!(db.ask(standard), "u_a_key; u_b; SELECT 2");
    assert!(db.ask("alter table u add constraint x unique using index u_b").starts_with('4'));
    // A constraint that takes the name of an index that has gone is one.
    assert_eq!(
        db.ask("create unique index u_c on u (c); drop index u_c; alter table u add constraint u_c unique (c)"),
        "CREATE INDEX; DROP INDEX; ALTER TABLE"
    );
    assert_eq!(db.ask(standard), "u_a_key; u_b; u_c; SELECT 3");
    assert_eq!(db.ask("alter table u drop constraint u_c, drop constraint u_b"), "ALTER TABLE");
    assert_eq!(db.ask(standard), "u_a_key; SELECT 1");
}

#[test]
fn names_of_the_catalog_have_a_type_of_their_own() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (ab int primary key, cd varchar(5))");
    let mut type_of = |sql: &str| {
        let messages = db.query(sql);
        let (_, body) = messages.iter().find(|(kind, _)| *kind == b'T').unwrap();
        let name = body[2..].iter().position(|byte| *byte == 0).unwrap();
        u32::from_be_bytes(body[2 + name + 7..2 + name + 11].try_into().unwrap())
    };
    assert_eq!(type_of("select attname from pg_attribute"), 19);
    assert_eq!(type_of("select array_agg(attname) from pg_attribute"), 1003);
    assert_eq!(type_of("select array(select relname from pg_class)"), 1003);
    assert_eq!(type_of("select array_agg(attnum) from pg_attribute"), 1005);
    assert_eq!(type_of("select table_name from information_schema.tables"), 19);
    assert_eq!(type_of("select relname || 'x' from pg_class"), 25);
    assert_eq!(type_of("select array_agg(cd) from t"), 1015);
    assert_eq!(
        db.ask("select array_agg(attname order by attnum) from pg_attribute where attrelid = 't'::regclass"),
        "{ab,cd}; SELECT 1"
    );
    // As pg_dump asks whether a type is one of arrays: by its first character.
    assert_eq!(db.ask("select typname from pg_type where typname[0] = '_' and oid = 1003"), "_name; SELECT 1");
    assert_eq!(db.ask("select count(*) from pg_class where relname = 't' and relname in ('t', 'u')"), "1; SELECT 1");
    assert!(db.ask("select cd[1] from t").starts_with("42804"));
    let owner = "select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'public'";
    assert_eq!(db.ask(owner), "pg_database_owner; SELECT 1");
}

#[test]
fn a_large_table_gets_a_primary_key_a_slice_at_a_time() {
    let mut rig = start();
    let mut db = Postgres::to(&mut rig, "guest");
    // As dumps and pgbench make tables: rows first, then the key; more of them than are looked at in one go.
    assert_eq!(db.ask("create table big (id int, note text)"), "CREATE TABLE");
    assert_eq!(
        db.ask("create table other (id int, note text); create index on other (id)"),
        "CREATE TABLE; CREATE INDEX"
    );
    assert_eq!(db.ask("insert into other select n, '' from generate_series(1, 20001) as n"), "INSERT 0 20001");
    assert_eq!(db.ask("alter table other add primary key (id)"), "ALTER TABLE");
    assert!(db.ask("insert into other values (5, 'twice')").starts_with("23505"));
    let filled = db.ask("insert into big select n, 'note' from generate_series(1, 20001) as n");
    assert_eq!(filled, "INSERT 0 20001");
    assert_eq!(db.ask("insert into big values (null, 'none')"), "INSERT 0 1");
    let refused = db.ask("alter table big add primary key (id)");
    assert_eq!(refused, "23502: column \"id\" of relation \"big\" contains null values");
    assert_eq!(db.ask("update big set id = 7 where id is null"), "UPDATE 1");
    let refused = db.ask("alter table big add primary key (id)");
    assert!(refused.starts_with("23505"), "{refused}");
    assert_eq!(db.ask("delete from big where id = 7 and note = 'none'"), "DELETE 1");
    assert_eq!(db.ask("alter table big add primary key (id)"), "ALTER TABLE");
    let again = db.ask("alter table big add primary key (id)");
    assert_eq!(again, "42P16: multiple primary keys for table \"big\" are not allowed");
    assert!(db.ask("insert into big values (5, 'twice')").starts_with("23505"));
    assert_eq!(db.ask("insert into big values (-1, 'new')"), "INSERT 0 1");
    assert_eq!(db.ask("create unique index big_note on big (note, id)"), "CREATE INDEX");
    assert_eq!(db.ask("alter table big add constraint big_both unique (id, note)"), "ALTER TABLE");
    assert_eq!(
        db.ask("select conname from pg_constraint where conname like 'big%' order by 1"),
        "big_both; big_pkey; SELECT 2"
    );
    rig.restart(&["--listen", "postgres://127.0.0.1:0"]);
    let mut db = Postgres::to(&mut rig, "guest");
    assert_eq!(db.ask("select * from big where id = -1"), "-1,new; SELECT 1");
    assert_eq!(db.ask("select count(*), sum(id) from big"), "20002,200030000; SELECT 1");
    assert!(db.ask("insert into big values (5, 'twice')").starts_with("23505"));
    // With fewer rows the key can go, and come again, though a column of the hidden one is left.
    assert_eq!(db.ask("delete from big where id > 3"), "DELETE 19998");
    assert_eq!(db.ask("alter table big drop constraint big_pkey"), "ALTER TABLE");
    assert_eq!(db.ask("insert into big values (3, 'twice')"), "INSERT 0 1");
    assert_eq!(db.ask("delete from big where note = 'twice'"), "DELETE 1");
    assert_eq!(db.ask("alter table big add primary key (id)"), "ALTER TABLE");
    assert_eq!(db.ask("select * from big order by id"), "-1,new; 1,note; 2,note; 3,note; SELECT 4");
}
