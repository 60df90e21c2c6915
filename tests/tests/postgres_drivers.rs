//! What drivers of PostgreSQL count on beside their statements: where an error is, sessions that are ended, values in binary, names of levels.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Message, Postgres, field, row, start_postgres, text};

/// The fields of the error among messages: state, place, words.
fn error(messages: &[Message]) -> (String, String, String) {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'E').unwrap();
    (field(body, b'C'), field(body, b'P'), field(body, b'M'))
}

#[test]
fn an_error_says_where_in_the_text_it_is() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    for (statement, state, place, words) in [
        ("select nowhere", "42703", "8", "column \"nowhere\" does not exist"),
        ("select '€€€',\n'€',a", "42703", "19", "column \"a\" does not exist"),
        ("select 1; select * from nothing", "42P01", "25", "relation \"nothing\" does not exist"),
        ("create table t (\n  a int,\n)", "42601", "27", "syntax error at or near \")\""),
        ("select 1 +", "42601", "", "syntax error at end of input"),
    ] {
        let found = error(&db.query(statement));
        assert_eq!(found, (state.to_string(), place.to_string(), words.to_string()), "{statement}");
    }
    db.send(b'P', &[text(&["", "select x from nothing"]), vec![0, 0]].concat());
    db.send(b'S', &[]);
    assert_eq!(error(&db.until_ready()).1, "15");
    db.send(b'P', &[text(&["", "select 1; select 2"]), vec![0, 0]].concat());
    db.send(b'S', &[]);
    assert_eq!(error(&db.until_ready()).2, "cannot insert multiple commands into a prepared statement");
}

#[test]
fn a_session_is_ended_by_its_number() {
    let mut rig = start_postgres();
    let (mut one, mut two) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    let number = |db: &mut Postgres| db.ask("select pg_backend_pid()").split(';').next().unwrap().to_string();
    let (first, second) = (number(&mut one), number(&mut two));
    assert_eq!(one.ask("select pg_terminate_backend(0), pg_cancel_backend(-1)"), "f,f; SELECT 1");
    two.send(b'Q', &text(&["select count(*) from generate_series(1, 100000000000)"]));
    assert_eq!(one.ask(&format!("select pg_cancel_backend({second})")), "t; SELECT 1");
    assert_eq!(error(&two.until_ready()).0, "57014");
    assert_eq!(one.ask(&format!("select pg_terminate_backend({second})")), "t; SELECT 1");
    let (kind, body) = two.message().unwrap();
    assert_eq!((kind, field(&body, b'S').as_str(), field(&body, b'C').as_str()), (b'E', "FATAL", "57P01"));
    assert!(two.message().is_none(), "the connection has ended");
    // Itself.
    one.send(b'Q', &text(&[&format!("select pg_terminate_backend({first})")]));
    let mut last = None;
    while let Some((kind, body)) = one.message() {
        if kind == b'E' {
            last = Some((field(&body, b'S'), field(&body, b'C')));
        }
    }
    assert_eq!(last, Some(("FATAL".to_string(), "57P01".to_string())));
    assert_eq!(Postgres::to(&mut rig, "me").ask("select 1"), "1; SELECT 1");
}

/// `Parse`, `Bind` with a parameter in binary and `Execute`, whose rows are in binary; the state of an error in their place.
fn binary(db: &mut Postgres, sql: &str, oid: u32, value: &[u8]) -> Result<Vec<u8>, String> {
    db.send(b'P', &[&text(&["", sql])[..], &[0, 1], &oid.to_be_bytes()].concat());
    let length = value.len() as u32;
    db.send(b'B', &[&[0, 0, 0, 1, 0, 1, 0, 1][..], &length.to_be_bytes(), value, &[0, 1, 0, 1]].concat());
    db.send(b'E', &[0, 0, 0, 0, 0]);
    db.send(b'S', &[]);
    let messages = db.until_ready();
    match messages.iter().find(|(kind, _)| *kind == b'D') {
        Some((_, body)) => Ok(body[6..].to_vec()),
        None => Err(error(&messages).0),
    }
}

#[test]
fn endless_moments_and_times_of_day_go_both_ways_in_binary() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    for number in [i64::MAX, i64::MIN, 0, -1, 252_455_615_999_999_999] {
        for (name, oid) in [("timestamp", 1114), ("timestamptz", 1184)] {
            let bytes = number.to_be_bytes();
            assert_eq!(
                binary(&mut db, &format!("select $1::{name}"), oid, &bytes),
                Ok(bytes.to_vec()),
                "{name} {number}"
            );
        }
    }
    for number in [i32::MAX, i32::MIN, 0, 2_921_939] {
        let bytes = number.to_be_bytes();
        assert_eq!(binary(&mut db, "select $1::date", 1082, &bytes), Ok(bytes.to_vec()), "{number}");
    }
    let beyond = (i64::MAX - 1).to_be_bytes();
    assert_eq!(binary(&mut db, "select $1::timestamp", 1114, &beyond), Err("22008".to_string()));
    for micros in [0i64, 1, 86_399_999_999, 86_400_000_000] {
        let bytes = micros.to_be_bytes();
        assert_eq!(binary(&mut db, "select $1::time", 1083, &bytes), Ok(bytes.to_vec()), "{micros}");
    }
    assert_eq!(binary(&mut db, "select $1::time", 1083, &(-1i64).to_be_bytes()), Err("22008".to_string()));
    db.ask("create table t (id int primary key, at time, day date)");
    db.ask("insert into t values (1, '10:00', 'infinity'), (2, '09:00', '-infinity'), (3, null, '9999-12-31')");
    assert_eq!(
        db.ask("select id, at, day from t order by day"),
        "2,09:00:00,-infinity; 3,null,9999-12-31; 1,10:00:00,infinity; SELECT 3"
    );
    // Everybody sees a moment of the first day.
    assert_eq!(rig.number("return box.space.t:get(1)[2].hour"), 10);
}

#[test]
fn temporary_tables_of_a_text_of_statements_go_with_it() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    for _ in 0..3 {
        let said = db.ask("create temp table t (a int); insert into t values (1); drop table t");
        assert_eq!(said, "CREATE TABLE; INSERT 0 1; DROP TABLE");
    }
    assert_eq!(
        db.ask("create temp table t (a int) on commit drop; select count(*) from t"),
        "CREATE TABLE; 0; SELECT 1"
    );
    assert!(db.ask("select * from t").starts_with("42P01"));
    assert!(db.ask("create temp table t (a int); select 1 / (count(*)) from t").contains("22012"));
    assert!(db.ask("select * from t").starts_with("42P01"));
}

#[test]
fn a_cursor_may_be_described_before_it_is_there() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("begin");
    db.send(b'P', &[text(&["f", "fetch 2 from c"]), vec![0, 0]].concat());
    db.send(b'D', &text(&["Sf"]));
    db.send(b'S', &[]);
    let kinds: String = db.until_ready().iter().map(|(kind, _)| char::from(*kind)).collect();
    assert_eq!(kinds, "1tnZ");
    db.ask("declare c cursor for select generate_series(1, 5)");
    db.send(b'B', &[&text(&["", "f"])[..], &[0, 0, 0, 0, 0, 0]].concat());
    db.send(b'E', &[0, 0, 0, 0, 0]);
    db.send(b'S', &[]);
    let rows: Vec<String> =
        db.until_ready().iter().filter(|(kind, _)| *kind == b'D').map(|(_, body)| row(body)).collect();
    assert_eq!(rows, ["1", "2"]);
    assert_eq!(db.ask("fetch from nothing"), "34000: cursor \"nothing\" does not exist");
}

#[test]
fn execute_is_described_by_what_it_executes() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key); insert into t values (7); prepare p as select id from t");
    db.send(b'P', &[text(&["", "execute p"]), vec![0, 0]].concat());
    db.send(b'B', &[0, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
    db.send(b'D', &text(&["P"]));
    db.send(b'E', &[0, 0, 0, 0, 0]);
    db.send(b'S', &[]);
    let messages = db.until_ready();
    let kinds: String = messages.iter().map(|(kind, _)| char::from(*kind)).collect();
    assert_eq!(kinds, "12TDCZ");
    assert_eq!(messages[3].1[6..], 7i32.to_be_bytes());
    // Names of the catalog are in binary what they are as text, and who has changed a table is told in words that drivers look for.
    assert_eq!(binary(&mut db, "select relname from pg_class where relname = $1", 25, b"t"), Ok(b"t".to_vec()));
    db.send(b'P', &[text(&["s", "select * from t"]), vec![0, 0]].concat());
    db.send(b'S', &[]);
    db.until_ready();
    db.ask("alter table t add column n text");
    db.send(b'B', &[&text(&["", "s"])[..], &[0, 0, 0, 0, 0, 0]].concat());
    db.send(b'S', &[]);
    let messages = db.until_ready();
    assert_eq!(field(&messages[0].1, b'R'), "RevalidateCachedQuery");
}

#[test]
fn who_enters_is_told_what_it_calls_itself() {
    let mut rig = start_postgres();
    let mut db = Postgres::open(&mut rig);
    db.first(3 << 16, &[text(&["user", "me", "application_name", "till"]), vec![0]].concat());
    let told = db.until_ready();
    assert!(told.iter().any(|(kind, body)| *kind == b'S' && *body == text(&["application_name", "till"])));
}

#[test]
fn quotes_of_csv_are_forced_where_it_is_said() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (a int primary key, b text)");
    let copy = |db: &mut Postgres, statement: &str, rows: &[u8]| {
        db.send(b'Q', &text(&[statement]));
        db.send(b'd', rows);
        db.send(b'c', &[]);
        db.until_ready();
    };
    copy(&mut db, "copy t from stdin with (format csv, force_not_null (b))", b"1,\n2,x\n");
    copy(&mut db, "copy t from stdin with (format csv, force_null (b))", b"3,\"\"\n4,\n");
    assert_eq!(db.ask("select a, b is null from t order by a"), "1,f; 2,f; 3,t; 4,t; SELECT 4");
    let lines: Vec<u8> = db
        .query("copy (select a, b from t where a < 4 order by a) to stdout with (format csv, force_quote (b))")
        .into_iter()
        .filter(|(kind, _)| *kind == b'd')
        .flat_map(|(_, body)| body)
        .collect();
    assert_eq!(String::from_utf8(lines).unwrap(), "1,\"\"\n2,\"x\"\n3,\n");
    assert!(db.ask("copy t to stdout with (format csv, force_quote (c))").starts_with("42703"));
}
