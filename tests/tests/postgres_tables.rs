//! Tables as clients of PostgreSQL make, change and find them: constraints, temporary tables, sequences, dumps, the catalog.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Postgres, Rig, start_postgres};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn constraints_hold_for_all_and_are_shown() {
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    assert_eq!(one.ask("create view w as select * from t"), "CREATE VIEW");
    assert!(two.ask("select * from w").starts_with("42P01"), "a view of what is temporary is temporary");
    assert_eq!(one.ask("drop view w"), "DROP VIEW");
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    // Where there is no path names get their schema, and are not found without it.
    assert!(db.ask("select * from a").starts_with("42P01"));
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
        db.ask("select tableoid = 'pg_class'::regclass, tableoid from pg_class where oid = 'public.a'::regclass"),
        "t,1259; SELECT 1"
    );
    assert_eq!(
        db.ask("select c.relname, d.deptype from pg_depend d join pg_class c on c.oid = d.refobjid where d.classid = 'pg_rewrite'::regclass order by 1"),
        "a,n; b,n; v,i; SELECT 3"
    );
    assert_eq!(
        db.ask("select relname from pg_class c where c.oid operator(pg_catalog.=) 'public.a'::regclass"),
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
fn tables_are_truncated_together() {
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
fn a_unique_index_is_a_constraint_only_if_it_was_declared_as_one() {
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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
    let mut rig = start_postgres();
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

#[test]
fn a_table_gets_another_shape_in_time_or_not_at_all() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    assert_eq!(db.ask("create table big (id int primary key, note text, unique (note))"), "CREATE TABLE");
    let filled = db.ask("insert into big select n, 'note' || n from generate_series(1, 50000) as n");
    assert_eq!(filled, "INSERT 0 50000");
    let ended = "57014: canceling statement due to statement timeout";
    db.ask("set statement_timeout = 1");
    // While rows are computed, and when they are put in.
    assert_eq!(db.ask("alter table big alter column id type text using repeat(id::text, 9)"), ended);
    assert_eq!(db.ask("alter table big drop column note"), ended);
    assert_eq!(db.ask("begin; alter table big drop column note"), format!("BEGIN; {ended}"));
    db.ask("rollback");
    db.ask("set statement_timeout = 0");
    assert!(db.ask("insert into big values (5, 'five')").starts_with("23505"));
    assert!(db.ask("insert into big values (0, 'note5')").starts_with("23505"));
    assert_eq!(db.ask("select count(*), sum(id), max(note) from big"), "50000,1250025000,note9999; SELECT 1");
    assert_eq!(db.ask("alter table big drop column note"), "ALTER TABLE");
    assert_eq!(db.ask("select * from big where id = 5"), "5; SELECT 1");
}

/// It met somebody in each of its slices, and gave up after twenty tries.
#[test]
fn an_update_of_all_rows_comes_to_its_end_beside_who_changes_single_ones() {
    const ROWS: u64 = 5000;
    let mut rig = start_postgres();
    let (mut db, mut other) = (Postgres::to(&mut rig, "me"), Postgres::to(&mut rig, "me"));
    db.ask("create table t (id int primary key, all_times int, times int)");
    db.ask(&format!("insert into t select g, 0, 0 from generate_series(1, {ROWS}) g"));
    let is_over = AtomicBool::new(false);
    let changed = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                let id = count * 7919 % ROWS + 1;
                assert_eq!(other.ask(&format!("update t set times = times + 1 where id = {id}")), "UPDATE 1");
                count += 1;
            }
            count
        });
        let updates: Vec<String> = (0..3).map(|_| db.ask("update t set all_times = all_times + 1")).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(updates.iter().all(|done| *done == format!("UPDATE {ROWS}")), "{updates:?}");
        writer.join().unwrap()
    });
    let seen = format!("3,3,{changed}; SELECT 1");
    assert_eq!(db.ask("select min(all_times), max(all_times), sum(times) from t"), seen);
}

#[test]
fn tables_of_many_rows_get_indexes_over_expressions() {
    let mut rig = start_postgres();
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key, b text)");
    db.ask("insert into t select g, 'A' || g from generate_series(1, 20500) g");
    assert_eq!(db.ask("create index on t ((lower(b)))"), "CREATE INDEX");
    assert_eq!(db.ask("select id from t where lower(b) = 'a20123'"), "20123; SELECT 1");
    assert!(db.ask("create table p (a int) partition by range (a)").starts_with("0A000"), "it is not ignored");
}

#[test]
fn nothing_is_lost_of_what_many_add_to_a_row_on_disk() {
    const EACH: usize = 60;
    let open = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
    // Memory for writes is full again and again, and a statement waits between the look at its row and the change.
    let mut rig = Rig::start(open, &["--listen", "postgres://127.0.0.1:0", "--vinyl-memory", "1MiB"]);
    let mut db = Postgres::to(&mut rig, "me");
    db.ask("create table t (id int primary key, n int, body text) with (engine = vinyl)");
    db.ask("insert into t values (1, 0, '')");
    let mut clients: Vec<Postgres> = (0..4).map(|_| Postgres::to(&mut rig, "me")).collect();
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                let update = format!("update t set n = n + 1, body = '{}' where id = 1", "x".repeat(20_000));
                (0..EACH).for_each(|_| assert_eq!(client.ask(&update), "UPDATE 1"));
            });
        }
    });
    assert_eq!(db.ask("select n from t"), format!("{}; SELECT 1", 4 * EACH));
}
