//! PostgreSQL's protocol through the real binary, message by message: transactions, prepared statements, COPY, cursors, logins; tables are in `postgres_tables.rs`.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Message, Postgres, field, row, start_postgres, text};
use std::io::{Read, Write};

fn kinds(messages: &[Message]) -> String {
    messages.iter().map(|(kind, _)| char::from(*kind)).collect()
}

#[test]
fn tables_rows_and_values_go_both_ways() {
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask(r"select 'a1' ~ '^\w\d$', 'É' ~* 'é', 'É' ~ 'é'"), "t,t,f; SELECT 1");
}

#[test]
fn a_failed_transaction_waits_for_its_end() {
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    // Generated columns are left out, and cannot be asked for.
    db.ask("create table g (id int primary key, twice int generated always as (id * 2) stored, note text)");
    db.ask("create index on g (lower(note))");
    assert_eq!(copy(&mut db, "copy g from stdin", b"1\tA\n2\t\\N\n"), "COPY 2");
    assert_eq!(copy(&mut db, "copy g from stdin", b"3\t6\tA\n"), "22P04");
    assert_eq!(copy(&mut db, "copy g (note, id) from stdin", b"C\t3\n"), "COPY 1");
    assert_eq!(db.ask("select * from g order by id"), "1,2,A; 2,4,null; 3,6,C; SELECT 3");
    let out = db.query("copy g to stdout");
    assert!(out.iter().any(|(kind, body)| *kind == b'd' && body == b"1\tA\n"), "{out:?}");
    for statement in ["copy g (id, twice) from stdin", "copy g (twice) to stdout"] {
        assert!(db.ask(statement).starts_with("42P10"), "{statement}");
    }
}

#[test]
fn a_row_that_is_too_large_is_beyond_a_limit() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key, a text)");
    let refused = db.ask("insert into t values (1, repeat('x', 2000000))");
    assert!(refused.starts_with("54000"), "{refused}");
}

#[test]
fn copy_goes_on_where_others_change_the_schema() {
    let mut rig = start_postgres();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    for key in ["primary key", ""] {
        for begins in [false, true] {
            db.ask("drop table if exists t, u");
            db.ask(&format!("create table t (id int {key}, name text)"));
            if begins {
                db.ask("begin");
            }
            db.send(b'Q', &text(&["copy t from stdin"]));
            db.send(b'd', b"1\ta\n");
            assert_eq!(db.message().map(|(kind, _)| kind), Some(b'G'));
            assert_eq!(other.ask("create table u (id int primary key)"), "CREATE TABLE");
            db.send(b'd', b"2\tb\n");
            db.send(b'c', &[]);
            let done = db.until_ready();
            assert!(done.iter().any(|(kind, body)| *kind == b'C' && body.starts_with(b"COPY 2")), "{key} {done:?}");
            if begins {
                db.ask("commit");
            }
            assert_eq!(db.ask("select * from t order by id"), "1,a; 2,b; SELECT 2");
        }
    }
}

#[test]
fn subqueries_behind_group_by_read_the_values_of_their_group() {
    let mut rig = start_postgres();
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
fn columns_of_results_say_where_they_come_from() {
    let mut rig = start_postgres();
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
