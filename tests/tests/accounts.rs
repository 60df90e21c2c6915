//! Accounts and rights by SQL, as one who has few of them meets them. The statements come through PostgreSQL's protocol, by listeners that act as one user each.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Postgres, Rig};

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";

/// A server with a listener for each of these users, who are not there yet but for the door's own.
fn start(users: &[&str]) -> Rig {
    let listeners: Vec<String> = users.iter().map(|user| format!("postgres://{user}@127.0.0.1:0")).collect();
    let options: Vec<&str> = listeners.iter().flat_map(|listener| ["--listen", listener]).collect();
    Rig::start(OPEN, &options)
}

/// Statements of an administrator, all of which do what they say.
fn prepare(admin: &mut Postgres, statements: &[&str]) {
    for sql in statements {
        let answer = admin.ask(sql);
        assert!(!answer.contains(": "), "{sql}: {answer}");
    }
}

fn refuses(client: &mut Postgres, statements: &[&str]) {
    for sql in statements {
        let answer = client.ask(sql);
        assert!(answer.split("; ").last().unwrap().starts_with("42501"), "{sql}: {answer}");
        client.ask("rollback");
    }
}

#[test]
fn roles_and_rights_are_managed_by_statements() {
    let mut rig = start(&["postgres"]);
    let mut nobody = Postgres::to(&mut rig, "me");
    assert!(nobody.ask("create user eve password 'e'").starts_with("42501"));
    assert_eq!(rig.eval("box.session.su('admin', box.schema.user.grant, 'postgres', 'super')").code(), 0);
    for sql in [
        "create role crew",
        "create user u1 with encrypted password 'p1' nosuperuser valid until 'infinity' connection limit -1",
        "create role u2 login password 'p2' in role crew; create table pt (id serial primary key, v text)",
        "grant select, insert on public.pt to crew",
        "grant usage, select on sequence pt_id_seq to crew",
        "grant select on all tables in schema public to u1",
        "grant usage on schema public to u1, u2",
        "revoke create on schema public from u1 cascade",
    ] {
        assert!(!nobody.ask(sql).contains(':'), "{sql}");
    }
    let refused = [
        ("create user u1", "42710"),
        ("create role r password 'x'", "0A000"),
        ("grant u1 to u2", "0A000"),
        ("create user e password 'md5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "0A000"),
        ("grant update (v) on pt to u1", "0A000"),
        ("grant select on nothing to u1", "42P01"),
        ("grant wish on pt to u1", "42601"),
        ("drop role nobody", "42704"),
    ];
    for (sql, state) in refused {
        let answer = nobody.ask(sql);
        assert!(answer.starts_with(state), "{sql}: {answer}");
    }
    let can = "select rolname, rolsuper, rolcanlogin from pg_roles where rolname in ('crew', 'u1', 'u2') order by 1";
    assert_eq!(nobody.ask(can), "crew,f,f; u1,f,t; u2,f,t; SELECT 3");
    let as_user = |user: &str, sql: &str| format!("box.session.su('{user}', function() return box.space.pt:{sql} end)");
    assert_eq!(rig.eval(&as_user("u2", "insert({box.NULL, 'a'})")).code(), 0);
    assert_ne!(rig.eval(&as_user("u2", "delete(1)")).code(), 0);
    assert_ne!(rig.eval(&as_user("u1", "insert({box.NULL, 'b'})")).code(), 0);
    assert_eq!(rig.eval(&as_user("u1", "select()")).code(), 0);
    assert_eq!(nobody.ask("drop owned by u1").split(':').next().map(str::len), Some(5));
    assert_eq!(nobody.ask("drop role if exists crew, u1, u2, nobody"), "DROP ROLE");
}

#[test]
fn a_view_reads_with_the_rights_of_who_made_it_and_of_nobody_else() {
    let mut rig = start(&["admin", "maker"]);
    let mut admin = Postgres::at(&mut rig, 0);
    prepare(
        &mut admin,
        &[
            "create role maker login",
            "grant create on schema public to maker",
            "create table secret (id int primary key, v text); insert into secret values (1, 'top')",
            "create view open as select 1 as one",
        ],
    );
    // Who may read all spaces may not read hashes of passwords, not by a view of the administrator's either.
    assert_eq!(rig.eval("box.session.su('admin', box.schema.user.grant, 'maker', 'read,alter', 'space')").code(), 0);
    let mut maker = Postgres::at(&mut rig, 1);
    assert_eq!(maker.ask("create view v as select * from _user"), "CREATE VIEW");
    refuses(
        &mut maker,
        &[
            "select * from v",
            "update _space set owner = 1 where name = 'v'",
            "create or replace view open as select count(*)::int as one from _user",
            "update _space set name = 'shut' where name = 'open'",
        ],
    );
    let made = "box.session.su('maker', function() box.space._space:insert({ 900, 1, 'w', 'memtx', 0, { view = true, sql = 'SELECT * FROM \"_user\"' }, { { name = 'id', type = 'unsigned' } } }) end)";
    assert_ne!(rig.eval(made).code(), 0, "in the name of the administrator");
    let made_anew = "drop view v; create view v as select 2 as two; select * from v";
    assert_eq!(maker.ask(made_anew), "DROP VIEW; CREATE VIEW; 2; SELECT 1");
    assert_eq!(admin.ask("update _space set owner = 1 where name = 'v'"), "UPDATE 1");
    assert_eq!(admin.ask("select * from v"), "2; SELECT 1");
}

#[test]
fn who_makes_tables_changes_none_of_others() {
    let mut rig = start(&["admin", "maker"]);
    let mut admin = Postgres::at(&mut rig, 0);
    prepare(
        &mut admin,
        &[
            "create role maker login",
            "grant create on schema public to maker",
            "create table secret (id int primary key, v text, n int); insert into secret values (1, 'top', 1)",
        ],
    );
    let mut maker = Postgres::at(&mut rig, 1);
    refuses(
        &mut maker,
        &[
            "create unique index one on secret (n)",
            "create index two on secret (v)",
            "create table copy (like secret including all)",
            "create table copy as select * from secret",
            "create table child (id int primary key, p int references secret (id))",
            "delete from _schema where key = 'version'",
            "delete from _schema where key = 'max_id'",
            "update _schema set value = '4000000' where key = 'max_id'",
        ],
    );
    let same = "box.session.su('maker', function() box.space.secret:create_index('three', { parts = { { 3, 'integer' } } }) end)";
    assert_ne!(rig.eval(same).code(), 0);
    let leap = "box.session.su('maker', function() box.space._schema:replace({ 'max_id', 2000000000 }) end)";
    assert_ne!(rig.eval(leap).code(), 0, "soon nobody could make one");
    assert_eq!(
        maker.ask("create table own (id int primary key, n int unique); create index on own (n)"),
        "CREATE TABLE; CREATE INDEX"
    );
    let by_lua = "box.session.su('maker', function() box.schema.space.create('luas'):create_index('pk') end)";
    assert_eq!(rig.eval(by_lua).code(), 0);
    // The key that nobody has declared is nobody's business, nor is what fills it.
    assert_eq!(admin.ask("create table keyless (a int)"), "CREATE TABLE");
    assert_eq!(maker.ask("select relname from pg_class where relname like 'keyless%'"), "SELECT 0");
}

#[test]
fn the_right_to_put_rows_in_is_one_to_put_rows_in() {
    let mut rig = start(&["admin", "adder", "reader", "writer"]);
    let mut admin = Postgres::at(&mut rig, 0);
    prepare(
        &mut admin,
        &[
            "create role adder login; create role reader login; create role writer login",
            "create table t (id int primary key, v text); insert into t values (1, 'a')",
            "grant insert on t to adder; grant select, insert on t to reader; grant select, update on t to writer",
        ],
    );
    let (mut adder, mut reader) = (Postgres::at(&mut rig, 1), Postgres::at(&mut rig, 2));
    assert_eq!(adder.ask("begin; insert into t values (2, 'b'); commit"), "BEGIN; INSERT 0 1; COMMIT");
    refuses(&mut adder, &["select * from t", "update t set v = 'x'", "begin; select * from t for update"]);
    // A lock keeps others from changing the row: it takes the right to change rows.
    refuses(&mut reader, &["begin; select * from t for update", "begin; select * from t where id = 1 for share"]);
    let lock = "box.session.su('reader', function() box.begin() local ok, e = pcall(box.space.t.get_for_update, box.space.t, 1) box.rollback() assert(ok, e) end)";
    assert_ne!(rig.eval(lock).code(), 0);
    let mut writer = Postgres::at(&mut rig, 3);
    assert_eq!(writer.ask("begin; select v from t where id = 1 for update; commit"), "BEGIN; a; SELECT 1; COMMIT");
    assert_eq!(reader.ask("begin; insert into t values (3, 'c'); rollback"), "BEGIN; INSERT 0 1; ROLLBACK");
}

#[test]
fn who_manages_accounts_without_all_rights_has_none_on_those_with_them() {
    let mut rig = start(&["admin", "clerk", "mate"]);
    let mut admin = Postgres::at(&mut rig, 0);
    prepare(
        &mut admin,
        &["create role clerk login", "create role chief login password 'c' superuser", "create role mate login"],
    );
    let everything =
        "box.session.su('admin', box.schema.user.grant, 'clerk', 'read,write,execute,create,alter,drop', 'universe')";
    assert_eq!(rig.eval(everything).code(), 0);
    let mut clerk = Postgres::at(&mut rig, 1);
    assert_eq!(
        clerk.ask("create role helper login password 'h'; alter role helper password 'i'; drop role helper"),
        "CREATE ROLE; ALTER ROLE; DROP ROLE"
    );
    refuses(&mut clerk, &["alter role chief password 'mine'", "drop role chief", "alter role admin password 'mine'"]);
    let by_lua = "box.session.su('clerk', box.schema.user.passwd, 'chief', 'mine')";
    assert_ne!(rig.eval(by_lua).code(), 0);
    assert_eq!(admin.ask("alter role chief password 'd'"), "ALTER ROLE");
    let mut mate = Postgres::at(&mut rig, 2);
    assert!(mate.ask("drop role clerk").starts_with('4'));
}

#[test]
fn rights_end_with_what_they_came_from() {
    let mut rig = start(&["admin", "reader"]);
    let mut admin = Postgres::at(&mut rig, 0);
    prepare(
        &mut admin,
        &[
            "create role reader login",
            "create table t (id int primary key); insert into t values (1)",
            "grant select on t to reader",
        ],
    );
    let mut reader = Postgres::at(&mut rig, 1);
    assert_eq!(reader.ask("prepare q as select id from t; execute q"), "PREPARE; 1; SELECT 1");
    assert_eq!(admin.ask("revoke select on t from reader"), "REVOKE");
    refuses(&mut reader, &["execute q"]);
    assert_eq!(admin.ask("grant select on t to reader"), "GRANT");
    assert_eq!(reader.ask("execute q"), "1; SELECT 1");
    assert_eq!(admin.ask("drop role reader"), "DROP ROLE");
    refuses(&mut reader, &["execute q", "select id from t"]);
    // Another one of its number is not the one who has gone.
    assert_eq!(admin.ask("create role other login; grant select on t to other"), "CREATE ROLE; GRANT");
    refuses(&mut reader, &["execute q", "select id from t"]);
}

#[test]
fn a_plan_is_shown_to_who_may_run_the_statement() {
    let mut rig = start(&["admin", "maker", "reader"]);
    let mut admin = Postgres::at(&mut rig, 0);
    prepare(
        &mut admin,
        &[
            "create role maker login; create role reader login; grant create on schema public to maker",
            "create table secret (id int primary key, n int unique); create table open (id int primary key)",
            "grant select on open to reader",
            "create view shown as select n from secret; grant select on shown to reader",
            "create view hidden as select n from secret",
        ],
    );
    let mut reader = Postgres::at(&mut rig, 2);
    let refused = [
        "explain select * from secret",
        "explain (format json) select * from secret where n = 1",
        "explain analyze select * from open where id = 1 and exists (select 1 from secret)",
        "explain select * from open where id in (select n from secret)",
        "explain select (select count(*) from secret) from open order by 1",
        "explain with w as (select * from secret) select * from w",
        "explain select * from open left join secret using (id)",
        "explain select * from hidden",
        "explain select * from open for update",
        "explain insert into secret values (1, 1)",
        "explain insert into open values (1) on conflict do nothing",
        "explain update open set id = 1",
        "explain delete from open",
        "prepare q as explain select * from secret; execute q",
        "explain select * from _user",
    ];
    // Plans that an administrator has seen are kept, and are nobody else's for that.
    for sql in refused {
        let answer = admin.ask(sql);
        assert!(answer.ends_with("EXPLAIN") || answer.starts_with("42601"), "{sql}: {answer}");
    }
    refuses(&mut reader, &refused[..13]);
    refuses(&mut reader, &refused[14..]);
    for sql in ["explain select * from open", "explain analyze select * from shown", "explain select * from pg_class"] {
        assert!(reader.ask(sql).ends_with("EXPLAIN"), "{sql}");
    }
    assert_eq!(admin.ask("grant insert on open to reader"), "GRANT");
    assert!(reader.ask("explain insert into open values (1)").ends_with("EXPLAIN"));
    // A view shows what its owner may read, and no more.
    let mut maker = Postgres::at(&mut rig, 1);
    assert_eq!(maker.ask("create view theirs as select * from secret"), "CREATE VIEW");
    refuses(&mut maker, &["explain select * from theirs"]);
    assert_eq!(admin.ask("grant select on theirs to reader"), "GRANT");
    refuses(&mut reader, &["explain select * from theirs"]);
    let by_lua = |user: &str, table: &str| {
        let sql = format!("EXPLAIN QUERY PLAN SELECT * FROM \"{table}\"");
        format!("box.session.su('{user}', function() assert(box.execute([[{sql}]])) end)")
    };
    assert_eq!(rig.eval(&by_lua("admin", "secret")).code(), 0);
    assert_eq!(rig.eval(&by_lua("reader", "open")).code(), 0);
    assert_ne!(rig.eval(&by_lua("reader", "secret")).code(), 0);
}

#[test]
fn whom_clients_act_as_without_a_name_is_not_dropped() {
    let mut rig = Rig::start(OPEN, &["--listen", "postgres://127.0.0.1:0", "--listen", "postgres://admin@127.0.0.1:0"]);
    let mut admin = Postgres::at(&mut rig, 1);
    assert!(admin.ask("drop role postgres").starts_with("2BP01: cannot drop role postgres"));
    assert_ne!(rig.eval("box.session.su('admin', box.schema.user.drop, 'postgres')").code(), 0);
    let raw = "box.session.su('admin', function() box.space._user.index.name:delete('postgres') end)";
    assert_ne!(rig.eval(raw).code(), 0);
    assert_eq!(admin.ask("create role mysql login; drop role mysql"), "CREATE ROLE; DROP ROLE");
    assert_eq!(Postgres::at(&mut rig, 0).ask("select current_user"), "postgres; SELECT 1");
}
