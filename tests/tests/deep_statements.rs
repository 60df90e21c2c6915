//! Statements within statements, of every depth: answered or refused, and the server goes on.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::mysql::Mysql;
use lycosa_tests::{Postgres, Rig};

const DOORS: [&str; 4] = ["--listen", "postgres://admin@127.0.0.1:0", "--listen", "mysql://admin@127.0.0.1:0"];
/// Some that the parser takes, some that it refuses, and some that it is not asked about.
const LEVELS: [usize; 5] = [12, 20, 48, 130, 3000];

/// What a level begins with, what is within all of them, and what each ends with.
type Form = (&'static str, &'static str, &'static str);

const QUERIES: [Form; 16] = [
    ("select * from (", "select 1 as c", ") s"),
    ("select (", "select 1 as c", ") as c"),
    ("select 1 as c where 1 in (", "select 1", ")"),
    ("select 1 as c where exists (", "select 1", ")"),
    ("with a as (", "select 1 as c", ") select * from a"),
    ("select 1 as c union (", "select 2", ")"),
    ("select 1 as c union all ", "select 2", ""),
    ("select 1 as c except ", "select 2", ""),
    ("(", "select 1 as c", ")"),
    ("values ((", "select 1", "))"),
    ("select case when true then (", "select 1", ") end as c"),
    ("select c from (select 1 as c union (", "select 2", ")) s"),
    ("select count(*) as c from (", "select 1 as c", ") s group by c having count(*) in (select 1)"),
    ("select * from t join (", "select 1 as c", ") s on true"),
    ("select * from (select 1 as c) s order by (", "select 1", ")"),
    ("explain ", "select 1", ""),
];
/// The same within FROM.
const FROMS: [Form; 2] = [("(", "t", ")"), ("t cross join ", "t", "")];
/// The same within one expression.
const EXPRESSIONS: [Form; 14] = [
    ("(", "1", ")"),
    ("case when true then ", "1", " end"),
    ("case ", "1", " when 1 then 1 end"),
    ("not ", "true", ""),
    ("- ", "1", ""),
    ("abs(", "1", ")"),
    ("cast(", "1", " as char)"),
    ("1 + ", "1", ""),
    ("", "1", " + 1"),
    ("1 = 1 and ", "true", ""),
    ("coalesce(1, ", "1", ")"),
    ("1 in (", "1", ")"),
    ("(1, ", "1", ")"),
    ("array[", "1", "]"),
];

fn statements() -> impl Iterator<Item = String> {
    let whole = |begin: &'static str, forms: &'static [Form]| {
        forms.iter().flat_map(move |(open, inner, close)| {
            LEVELS.map(|levels| format!("{begin}{}{inner}{}", open.repeat(levels), close.repeat(levels)))
        })
    };
    whole("", &QUERIES).chain(whole("select * from ", &FROMS)).chain(whole("select ", &EXPRESSIONS))
}

/// Statements around a query: one of these for each.
fn around(query: &str, number: usize) -> String {
    match number % 5 {
        0 => format!("create view v{number} as {query}"),
        1 => format!("create table made{number} as {query}"),
        2 => format!("insert into u {query}"),
        3 => format!("explain {query}"),
        _ => format!("prepare p{number} as {query}"),
    }
}

#[test]
fn statements_of_every_depth_are_answered_or_refused() {
    let mut rig = Rig::start("", &DOORS);
    let mut postgres = Postgres::at(&mut rig, 0);
    let mut mysql = Mysql::to(&mut rig);
    // Names are looked for along a path.
    assert_eq!(postgres.ask("create schema deep"), "CREATE SCHEMA");
    assert_eq!(postgres.ask("set search_path to deep, public"), "SET");
    for table in ["t", "u"] {
        assert_eq!(postgres.ask(&format!("create table public.{table} (c int)")), "CREATE TABLE");
    }
    for (number, query) in statements().enumerate() {
        // Not always the same around the same number of levels.
        for statement in [&query, &around(&query, number + number / LEVELS.len())] {
            postgres.ask(statement);
            mysql.ask(statement);
        }
        let lives = (postgres.ask("select 1"), mysql.ask("select 1"));
        assert_eq!(lives, ("1; SELECT 1".to_string(), "1".to_string()), "{query:.200}");
    }
    // What is of use is answered.
    let within = |levels: usize| format!("{}select 1 as c{}", "select * from (".repeat(levels), ") s".repeat(levels));
    assert_eq!(postgres.ask(&within(20)), "1; SELECT 1");
    assert_eq!(mysql.ask(&within(20)), "1");
}

#[test]
fn a_list_of_tables_by_with_is_answered_or_refused() {
    let mut rig = Rig::start("", &DOORS);
    let mut postgres = Postgres::at(&mut rig, 0);
    let mut mysql = Mysql::to(&mut rig);
    let listed = |count: usize| {
        let tables: Vec<String> = (0..count).map(|number| format!("c{number} as (select {number} as c)")).collect();
        format!("with {} select * from c1", tables.join(", "))
    };
    assert_eq!((postgres.ask(&listed(256)), mysql.ask(&listed(256))), ("1; SELECT 1".to_string(), "1".to_string()));
    for count in [257, 3000, 20_000] {
        assert!(postgres.ask(&listed(count)).contains("54000"), "{count}");
        mysql.ask(&listed(count));
        let lives = (postgres.ask("select 1"), mysql.ask("select 1"));
        assert_eq!(lives, ("1; SELECT 1".to_string(), "1".to_string()), "{count}");
    }
}

/// Operators in a row, up to as many as the words that a statement may have, wherever an expression stands: trees of them are as deep, and copied here and there.
#[test]
fn long_chains_of_operators_are_answered_or_refused_wherever_they_stand() {
    let mut rig = Rig::start("", &DOORS);
    let mut postgres = Postgres::at(&mut rig, 0);
    let mut mysql = Mysql::to(&mut rig);
    for table in ["t", "u"] {
        assert_eq!(postgres.ask(&format!("create table {table} (c int, b bool)")), "CREATE TABLE");
        assert_eq!(postgres.ask(&format!("insert into {table} values (1, true)")), "INSERT 0 1");
    }
    assert_eq!(postgres.ask("create table parts (c bool[])"), "CREATE TABLE");
    // What stands around takes a few words of 4,000.
    for count in [400, 1300, 1980] {
        let sum = vec!["c"; count].join(" + ");
        let ones = vec!["1"; count].join(" + ");
        let all = vec!["b"; count].join(" and ");
        let any = vec!["c=1"; count / 2].join(" or ");
        let values = vec!["value=1"; count / 2].join(" or ");
        let statements = [
            format!("update t set c = {sum}"),
            format!("update t set b = {all}"),
            format!("update t set c = 1 where {any} returning {sum}"),
            format!("update parts set c[1] = {all}"),
            format!("delete from t where {all} and false"),
            format!("insert into u values ({ones}, {all}) on conflict do nothing"),
            format!("insert into u select {sum}, b from t"),
            format!("create table checked{count} (c int check ({any}), b bool, check ({all}))"),
            format!("insert into checked{count} values (1, true)"),
            format!("alter table u add check ({any})"),
            format!("create table valued{count} (c int default {ones})"),
            format!("insert into valued{count} values (default)"),
            format!("create table computed{count} (c int, d int generated always as ({sum}) stored)"),
            format!("create index sums{count} on t (({sum}))"),
            format!("create index some{count} on t (c) where {any}"),
            format!("create view seen{count} as select {sum} as s from t where {any}"),
            format!("select * from seen{count}"),
            format!("create domain whole{count} as int check ({values})"),
            format!("begin; declare c cursor for select {sum} from t; commit"),
            "rollback".to_string(),
            format!("declare h cursor with hold for select 1 from t where {any}"),
            format!("prepare p{count} as select {sum} from t where b"),
            format!("merge into u using t on {} when matched then delete", vec!["u.c=t.c"; count / 4].join(" and ")),
            format!("merge into u using t on u.c = t.c when matched and {all} then update set c = {ones}"),
            format!("select case when {any} then {sum} end from t group by c order by {ones}"),
            format!("select sum(c) filter (where {all}) over (partition by {sum} order by c) from t"),
            format!("explain select {sum} from t where {any}"),
            format!("copy (select {sum} from t) to stdout"),
            format!("alter table t add check ({all})"),
            format!("replace into u select {sum}, b from t"),
            format!("insert into u values (1, true) on duplicate key update c = {sum}"),
            format!("update t, u set t.c = {ones} where {}", vec!["t.b"; count].join(" and ")),
            format!("set @a = {ones}"),
            format!("do {ones}"),
        ];
        for statement in &statements {
            postgres.ask(statement);
            mysql.ask(statement);
            let lives = (postgres.ask("select 1"), mysql.ask("select 1"));
            assert_eq!(lives, ("1; SELECT 1".to_string(), "1".to_string()), "{count}: {statement:.100}");
        }
    }
    // What is of use is answered.
    let any: Vec<String> = (0..900).map(|number| format!("c={number}")).collect();
    assert_eq!(postgres.ask(&format!("select count(*) from u where {}", any.join(" or "))).split(';').count(), 2);
}
