//! Statements of SQL whose values and expressions are heavy: they end at bounds, others go on beside them, and nothing is lost meanwhile.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Postgres, start_postgres};

#[test]
fn a_statement_of_few_heavy_rows_ends_at_its_time() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("set statement_timeout = 200");
    let canceled = "57014: canceling statement due to statement timeout";
    // Few rows, and each of them hours of work all in all.
    for heavy in [
        "md5(repeat('x', 30000000) || g)",
        "repeat('a', 1000000 + g) like '%' || repeat('a', 100000) || 'b'",
        "regexp_replace(repeat('ab', 1000000) || g, '[^z]*z|b', 'c', 'g')",
        "upper(repeat('x', 30000000)) < repeat('X', 30000000) || g",
    ] {
        let heavy = format!("select count({heavy}) from generate_series(1, 100000000) g");
        assert_eq!(db.ask(&heavy), canceled, "{heavy}");
    }
    db.ask("set statement_timeout = 0");
    assert_eq!(db.ask("select 1"), "1; SELECT 1");
}

#[test]
fn what_a_statement_holds_at_once_is_bounded() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    let big = "repeat('x', 60000000)";
    let many = |count: usize, between: &str| vec![big; count].join(between);
    for statement in [
        format!("select {}", many(1000, ", ")),
        format!("select coalesce(concat({}), '')", many(90, ", ")),
        format!("select array[{}]", many(50, ", ")),
        format!("select array_fill({big}, array[1000])"),
        format!("select string_to_array({big}, 'x')"),
        format!("select regexp_split_to_array({big}, 'x')"),
        format!("select nullif({big}, nullif({big}, nullif({big}, nullif({big}, {big} || 'y'))))"),
    ] {
        let answer = db.ask(&statement);
        assert!(answer.starts_with("54000: "), "{}: {answer}", &statement[..60]);
    }
    // One after the other, they are no more than one.
    let one_by_one = format!("select length({big}) + length({big}) + length({big}) + length({big}) + length({big})");
    assert_eq!(db.ask(&one_by_one), "300000000; SELECT 1");
}

#[test]
fn regular_expressions_with_many_states_are_for_short_texts() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    // Half of a thousand states for each character, whatever engine looks at them.
    let pattern = "'[01]*1[01]{500}2'";
    let text = "translate(md5('1') || md5('2') || md5('3'), '0123456789abcdef', '0101010101010101')";
    assert_eq!(db.ask(&format!("select {text} ~ {pattern}")), "f; SELECT 1");
    let long = format!(
        "select (select string_agg(translate(md5(g::text), '0123456789abcdef', '0101010101010101'), '') \
         from generate_series(1, 20000) g) ~ {pattern}"
    );
    assert_eq!(db.ask(&long), "54000: the text is too long for this regular expression");
    // A usual one has as many bytes as it likes.
    assert_eq!(db.ask("select repeat('ab ', 1000000) || 'me@example.com' ~ '\\w+@\\w+\\.\\w+$'"), "t; SELECT 1");
    assert_eq!(db.ask("select length(regexp_replace(repeat('ab ', 300000), '\\s+', '', 'g'))"), "600000; SELECT 1");
}

#[test]
fn checks_and_columns_neither_wait_nor_work_for_long() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    let refused = db.ask("create table sleepy (id int primary key check (pg_sleep(0.01) is not null))");
    assert_eq!(refused, "0A000: an expression of a check constraint contains disallowed function: pg_sleep");
    db.ask("create table heavy (id int primary key, s text generated always as (md5(repeat('x', id))) stored)");
    assert_eq!(db.ask("insert into heavy values (1000)"), "INSERT 0 1");
    let refused = db.ask("insert into heavy values (50000000)");
    assert!(refused.starts_with("54000: "), "{refused}");
    assert_eq!(db.ask("select count(*) from heavy"), "1; SELECT 1");
}

#[test]
fn nothing_is_lost_where_a_change_of_one_row_has_to_wait() {
    const EACH: usize = 40;
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key, n int, s text)");
    db.ask("insert into t values (1, 0, '')");
    let mut clients: Vec<Postgres> = (0..4).map(|_| Postgres::to(&mut rig, "me")).collect();
    // In the middle of each, others have a turn.
    let updates = [
        "update t set n = n + 1, s = md5(repeat('x', 3000000)) where id = 1",
        "update t set n = n + 1, s = pg_sleep(0.002)::text where id = 1",
        "update t set n = n + (select count(*) / 30000 from generate_series(1, 30000)) where id = 1",
        "update t set n = n + 1 where id = 1",
    ];
    std::thread::scope(|scope| {
        for (client, update) in clients.iter_mut().zip(updates) {
            scope.spawn(move || (0..EACH).for_each(|_| assert_eq!(client.ask(update), "UPDATE 1", "{update}")));
        }
    });
    assert_eq!(db.ask("select n from t"), format!("{}; SELECT 1", 4 * EACH));
}
