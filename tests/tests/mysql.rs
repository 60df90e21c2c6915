//! MySQL's protocol through the real binary: a client of its packets.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const PATIENCE: Duration = Duration::from_secs(20);
/// What the client can do: as usual, with several statements in one text.
const ABILITIES: u32 = 1 | 1 << 2 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 17 | 1 << 19;
const FOUND_ROWS: u32 = 1 << 1;

fn start() -> Rig {
    Rig::start(OPEN, &["--listen", "mysql://127.0.0.1:0"])
}

/// Where a server listens for clients of MySQL.
fn address(rig: &mut Rig) -> String {
    let find = |log: &str| {
        let line = log.lines().find(|line| line.contains("with any client of MySQL"))?;
        Some(line.split_once("ready: connect to ")?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    find(&rig.server.log()).unwrap()
}

struct Mysql {
    stream: TcpStream,
    salt: [u8; 20],
}

/// A number in one to nine bytes.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first().unwrap();
    let count = match first {
        0xfb => {
            *bytes = rest;
            return None;
        }
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        small => {
            *bytes = rest;
            return Some(u64::from(*small));
        }
    };
    let mut value = [0; 8];
    value[..count].copy_from_slice(&rest[..count]);
    *bytes = &rest[count..];
    Some(u64::from_le_bytes(value))
}

fn counted(bytes: &mut &[u8]) -> Option<String> {
    let count = number(bytes)? as usize;
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    *bytes = &bytes[count..];
    Some(text)
}

fn failure(body: &[u8]) -> String {
    let code = u16::from_le_bytes([body[1], body[2]]);
    format!("{code} {}: {}", String::from_utf8_lossy(&body[4..9]), String::from_utf8_lossy(&body[9..]))
}

impl Mysql {
    fn open(rig: &mut Rig) -> Self {
        Self::at(&address(rig))
    }

    fn at(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Mysql { stream, salt: [0; 20] };
        let (sequence, greeting) = client.packet().unwrap();
        assert_eq!((sequence, greeting[0]), (0, 10));
        let end = greeting.iter().position(|byte| *byte == 0).unwrap();
        assert!(greeting[1..end].starts_with(b"8.0.36-lycosa"));
        client.salt[..8].copy_from_slice(&greeting[end + 5..end + 13]);
        client.salt[8..].copy_from_slice(&greeting[end + 32..end + 44]);
        client
    }

    /// None: the connection has ended.
    fn packet(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).ok()?;
        let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut body).ok()?;
        Some((head[3], body))
    }

    /// Sends bytes of its own. Who was told already that it is over is not told again.
    fn send(&mut self, sequence: u8, body: &[u8]) {
        let [a, b, c, _] = (body.len() as u32).to_le_bytes();
        let _ = self.stream.write_all(&[&[a, b, c, sequence][..], body].concat());
    }

    /// Says that no more will come, and reads up to the end: the server ends the connection, whatever it was told.
    fn finish(mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let ended = self.stream.read_to_end(&mut Vec::new());
        let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(is_late), "the connection hangs");
    }

    /// Says who it is. Returns the answer.
    fn enter(&mut self, user: &str, proof: &[u8], method: &str, abilities: u32) -> Option<(u8, Vec<u8>)> {
        let mut body = abilities.to_le_bytes().to_vec();
        body.extend_from_slice(&[0, 0, 0, 1, 255]);
        body.extend_from_slice(&[0; 23]);
        body.extend_from_slice(format!("{user}\0").as_bytes());
        body.push(proof.len() as u8);
        body.extend_from_slice(proof);
        body.extend_from_slice(format!("shop\0{method}\0").as_bytes());
        self.send(1, &body);
        self.packet()
    }

    fn with(rig: &mut Rig, more: u32) -> Self {
        Self::open(rig).entered(more)
    }

    fn entered(self, more: u32) -> Self {
        let mut client = self;
        let (sequence, answer) = client.enter("root", b"", "mysql_native_password", ABILITIES | more).unwrap();
        assert_eq!((sequence, answer[0]), (2, 0), "{answer:?}");
        client
    }

    fn to(rig: &mut Rig) -> Self {
        Self::with(rig, 0)
    }

    /// The answers to one command: rows, columns between commas; `ok` with the numbers of rows and of the last id; or an error. Results are between bars.
    fn answer(&mut self) -> String {
        let mut results = Vec::new();
        loop {
            let (mut at, first) = self.packet().unwrap();
            let mut next = |client: &mut Self| {
                let (sequence, body) = client.packet().unwrap();
                at = at.wrapping_add(1);
                assert_eq!(sequence, at, "packets are in order");
                body
            };
            let status = match first[0] {
                0xff => {
                    results.push(failure(&first));
                    return results.join(" | ");
                }
                0 => {
                    let mut rest = &first[1..];
                    let (rows, id) = (number(&mut rest).unwrap(), number(&mut rest).unwrap());
                    results.push(format!("ok {rows} {id}"));
                    u16::from_le_bytes([rest[0], rest[1]])
                }
                _ => {
                    let count = number(&mut &first[..]).unwrap();
                    for _ in 0..count {
                        assert_eq!(next(self)[..4], *b"\x03def");
                    }
                    assert_eq!(next(self)[0], 0xfe);
                    let mut rows = Vec::new();
                    let end = loop {
                        let body = next(self);
                        match body[0] {
                            0xff => {
                                results.push(failure(&body));
                                return results.join(" | ");
                            }
                            0xfe if body.len() < 9 => break body,
                            _ => {}
                        }
                        let mut rest = &body[..];
                        let columns = (0..count).map(|_| counted(&mut rest).unwrap_or_else(|| "null".to_string()));
                        rows.push(columns.collect::<Vec<_>>().join(","));
                    };
                    results.push(rows.join("; "));
                    u16::from_le_bytes([end[3], end[4]])
                }
            };
            if status & 8 == 0 {
                return results.join(" | ");
            }
        }
    }

    fn ask(&mut self, sql: &str) -> String {
        self.send(0, &[b"\x03", sql.as_bytes()].concat());
        self.answer()
    }

    /// Prepares a statement. Returns its number and those of its columns and parameters.
    fn prepare(&mut self, sql: &str) -> Result<(u32, u16, u16), String> {
        self.send(0, &[b"\x16", sql.as_bytes()].concat());
        let (_, body) = self.packet().unwrap();
        if body[0] == 0xff {
            return Err(failure(&body));
        }
        let id = u32::from_le_bytes(body[1..5].try_into().unwrap());
        let (columns, params) = (u16::from_le_bytes([body[5], body[6]]), u16::from_le_bytes([body[7], body[8]]));
        for count in [params, columns] {
            for _ in 0..if count == 0 { 0 } else { count + 1 } {
                self.packet().unwrap();
            }
        }
        Ok((id, columns, params))
    }

    /// Runs a prepared statement with whole numbers. Returns the bodies of its rows or of the one answer.
    fn execute(&mut self, id: u32, flags: u8, params: &[i64]) -> Vec<Vec<u8>> {
        let mut body = vec![0x17];
        body.extend_from_slice(&id.to_le_bytes());
        body.extend_from_slice(&[flags, 1, 0, 0, 0]);
        if !params.is_empty() {
            body.extend(std::iter::repeat_n(0, params.len().div_ceil(8)));
            body.push(1);
            params.iter().for_each(|_| body.extend_from_slice(&[8, 0]));
            params.iter().for_each(|param| body.extend_from_slice(&param.to_le_bytes()));
        }
        self.send(0, &body);
        let (_, first) = self.packet().unwrap();
        if matches!(first[0], 0 | 0xff) {
            return vec![first];
        }
        for _ in 0..first[0] + 1 {
            self.packet().unwrap();
        }
        if flags == 1 { Vec::new() } else { self.rows().0 }
    }

    /// Rows up to their end, and its status.
    fn rows(&mut self) -> (Vec<Vec<u8>>, u16) {
        let mut rows = Vec::new();
        loop {
            let (_, body) = self.packet().unwrap();
            match body[0] {
                0xfe if body.len() < 9 => return (rows, u16::from_le_bytes([body[3], body[4]])),
                0xff => panic!("{}", failure(&body)),
                _ => rows.push(body),
            }
        }
    }

    fn fetch(&mut self, id: u32, count: u32) -> (Vec<Vec<u8>>, u16) {
        self.send(0, &[&[0x1c][..], &id.to_le_bytes(), &count.to_le_bytes()].concat());
        self.rows()
    }
}

const TABLE: &str = "create table t (id int unsigned auto_increment primary key, name varchar(5) not null, price decimal(10,2), at datetime, kind enum('a','b'))";

/// MariaDB's clients say that if they cannot load the way that the greeting names; they take any answer but a question for one.
#[test]
fn who_knows_no_way_of_proof_is_asked_for_one_although_none_is_needed() {
    let mut rig = start();
    let mut client = Mysql::open(&mut rig);
    let (sequence, asked) = client.enter("root", b"", "dummy_fallback_auth", ABILITIES).unwrap();
    assert_eq!((sequence, asked[0]), (2, 0xfe));
    assert!(asked[1..].starts_with(b"mysql_native_password\0"));
    client.send(3, b"");
    let (sequence, answer) = client.packet().unwrap();
    assert_eq!((sequence, answer[0]), (4, 0), "{answer:?}");
    assert_eq!(client.ask("select 1 + 1"), "2");
}

#[test]
fn tables_rows_and_values_go_both_ways() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    assert_eq!(db.ask(TABLE), "ok 0 0");
    let insert = "insert into t (name, price, at, kind) values ('Ada', 1.5, '2024-02-29 01:02:03', 'B'), ('Bob', null, null, null)";
    assert_eq!(db.ask(insert), "ok 2 1");
    assert_eq!(db.ask("select * from t order by id"), "1,Ada,1.50,2024-02-29 01:02:03,b; 2,Bob,null,null,null");
    assert_eq!(db.ask("select id from t where name = 'ADA'"), "1");
    assert_eq!(db.ask("update t set price = 1.5"), "ok 1 0", "a row that is as it should be is not changed");
    assert_eq!(db.ask("select row_count(), last_insert_id(), database()"), "1,1,shop");
    assert_eq!(db.ask("select 1; select 2; update t set price = 3 where id = 1; select 4"), "1 | 2 | ok 1 0 | 4");
    assert_eq!(
        db.ask("insert into t (id, name) values (1, 'x') on duplicate key update name = values(name)"),
        "ok 2 1"
    );
    assert_eq!(db.ask("select count(*), group_concat(name order by name) from t"), "2,Bob,x");
    assert_eq!(db.ask("select distinct name from t order by id desc"), "Bob; x", "the order is of what is not shown");
    assert_eq!(db.ask("delete from t order by id desc limit 1"), "ok 1 0");
    for (sql, wanted) in [
        ("selec", "1064 42000"),
        ("", "1065 42000"),
        ("select * from nothing", "1146 42S02"),
        ("select nothing from t", "1054 42S22"),
        ("insert into t (name) values ('toolong')", "1406 22001"),
        ("insert into t (name) values (null)", "1048 23000"),
        ("insert into t (price) values (1)", "1364 HY000"),
        ("insert into t (id, name) values (1, 'a')", "1062 23000"),
        ("insert into t (id, name) values (-1, 'a')", "1264 22003"),
        ("insert into t (name, kind) values ('a', 'c')", "1265 01000"),
        ("insert into t (name, at) values ('a', 'soon')", "1292 22007"),
        ("set nothing = 1", "1193 42000"),
        ("create table t (a int)", "1050 42S01"),
        ("select match (name) against ('a') from t", "1235 42000"),
    ] {
        let found = db.ask(sql);
        assert!(found.starts_with(wanted), "{sql}: {found}");
    }
    // Amounts that no moment bears, and texts that no memory bears.
    assert_eq!(db.ask("select date_add('2024-01-01', interval 9223372036854775807 year)"), "null");
    assert_eq!(db.ask("select date_sub('2024-01-01', interval -1e300 hour)"), "null");
    db.ask("set @a = repeat('x', 15000000)");
    for call in ["json_array(@a, @a, @a, @a, @a)", "concat_ws(@a, @a, @a, @a)", "regexp_replace(@a, 'x', @a)"] {
        assert!(db.ask(&format!("select {call}")).starts_with("1114"), "{call}");
    }
    for _ in 0..2000 {
        db.ask("selec");
    }
    assert_eq!(db.ask("show count(*) warnings"), "1");
    // Where nobody is strict, what does not fit is made to, and warnings tell.
    db.ask("set sql_mode = ''");
    assert_eq!(db.ask("insert into t (name, kind, at, id) values ('toolong', 'c', '0000-00-00', 9)"), "ok 1 9");
    assert!(db.ask("show warnings").contains("Data too long for column 'name'"));
    assert_eq!(db.ask("select name, kind, at from t where id = 9"), "toolo,,0000-00-00 00:00:00");
    let mut db = Mysql::with(&mut rig, FOUND_ROWS);
    assert_eq!(db.ask("update t set name = 'x' where id = 1"), "ok 1 0", "rows that were found are asked for");
}

#[test]
fn what_tools_ask_for_is_told() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    db.ask(TABLE);
    db.ask("create index by_name on t (name)");
    assert_eq!(db.ask("show tables"), "t");
    assert_eq!(db.ask("show full tables like 'x%'"), "");
    assert!(
        db.ask("describe t").starts_with("id,int unsigned,NO,PRI,null,auto_increment; name,varchar(5),NO,MUL,null,")
    );
    assert!(
        db.ask("show create table t").contains("`price` decimal(10,2) DEFAULT NULL,\n  `at` datetime DEFAULT NULL")
    );
    assert_eq!(db.ask("show index from t").matches("; ").count(), 1);
    assert_eq!(db.ask("show variables like 'autocommit'"), "autocommit,ON");
    assert!(db.ask("show columns from nothing").starts_with("1146"));
    assert_eq!(
        db.ask(
            "select column_name from information_schema.columns where table_schema = database() and column_key = 'PRI'"
        ),
        "id"
    );
    // What is shown is what may be read: guest has rights, the door's user has none on others' tables.
    rig.client.eval("box.schema.space.create('secret', { format = { { 'id', 'unsigned' } } }):create_index('pk')");
    assert_eq!(db.ask("show tables"), "t");
    assert!(db.ask("select * from secret").starts_with("1142"));
    assert!(db.ask("show create table secret").starts_with("1142"));
    assert!(db.ask("drop table secret").starts_with("1142"));
}

#[test]
fn a_failed_statement_leaves_the_transaction_open() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    let mut other = Mysql::to(&mut rig);
    db.ask(TABLE);
    db.ask("begin");
    db.ask("insert into t (id, name) values (1, 'a')");
    assert!(db.ask("insert into t (id, name) values (2, 'b'), (1, 'c')").starts_with("1062"));
    assert_eq!(other.ask("select count(*) from t"), "0");
    db.ask("savepoint s");
    db.ask("delete from t");
    db.ask("rollback to savepoint s");
    assert_eq!(db.ask("commit"), "ok 0 0");
    assert_eq!(other.ask("select id, name from t"), "1,a");
    // UNLOCK TABLES ends one behind LOCK TABLES only: `mysqldump --single-transaction` begins one and says it.
    db.ask("begin");
    db.ask("savepoint s");
    db.ask("unlock tables");
    assert_eq!(db.ask("rollback to savepoint s"), "ok 0 0");
    db.ask("commit");
    db.ask("set autocommit = 0");
    db.ask("lock tables t write");
    db.ask("update t set name = 'l'");
    db.ask("unlock tables");
    assert_eq!(other.ask("select name from t"), "l");
    db.ask("update t set name = 'a'");
    db.ask("commit");
    db.ask("set autocommit = 1");
    // Without autocommit a statement opens one, a change of the schema ends it.
    db.ask("set autocommit = 0");
    db.ask("update t set name = 'z'");
    assert_eq!(other.ask("select name from t"), "a");
    assert_eq!(db.ask("create table u (a int)"), "ok 0 0");
    assert_eq!(other.ask("select name from t"), "z");
    assert!(db.ask("start transaction read only").starts_with("ok"));
    assert!(db.ask("delete from t").starts_with("1792"));
    // Who closes while others wait leaves nothing behind.
    db.ask("rollback");
    db.ask("select * from t for update");
    other.ask("set innodb_lock_wait_timeout = 1");
    assert!(other.ask("update t set name = 'q'").starts_with("1205"));
    other.ask("set innodb_lock_wait_timeout = 20");
    other.send(0, b"\x03update t set name = 'q'");
    drop(db);
    assert_eq!(other.answer(), "ok 1 0");
}

#[test]
fn repeatable_read_is_of_one_moment_however_it_is_asked_for() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    let mut other = Mysql::to(&mut rig);
    db.ask(TABLE);
    db.ask("insert into t (id, name) values (1, 'a')");
    for asked in [
        "set transaction isolation level repeatable read",
        "set transaction isolation level repeatable read, read write",
        "set session transaction isolation level repeatable read",
        "set session transaction isolation level serializable",
    ] {
        other.ask("update t set name = 'a'");
        assert_eq!(db.ask(asked), "ok 0 0");
        db.ask("begin");
        assert_eq!(db.ask("select name from t"), "a", "{asked}");
        other.ask("update t set name = 'b'");
        assert_eq!(db.ask("select name from t"), "a", "{asked}");
        assert!(db.ask("update t set name = concat(name, 'c')").starts_with("1213"), "{asked}");
        db.ask("rollback");
    }
    db.ask("set session transaction isolation level read committed");
    db.ask("begin");
    other.ask("update t set name = 'd'");
    assert_eq!(db.ask("select name from t"), "d");
    db.ask("rollback");
}

#[test]
fn prepared_statements_have_parameters_and_cursors() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    db.ask("create table n (id bigint primary key, v int)");
    let (insert, columns, params) = db.prepare("insert into n values (?, ? + 1)").unwrap();
    assert_eq!((columns, params), (0, 2));
    for id in 0..10 {
        assert_eq!(db.execute(insert, 0, &[id, id])[0][..2], [0, 1]);
    }
    let (select, columns, params) = db.prepare("select id, v from n where id >= ? order by id").unwrap();
    assert_eq!((columns, params), (2, 1));
    let row = |id: i64| [&[0, 0][..], &id.to_le_bytes(), &(id as i32 + 1).to_le_bytes()].concat();
    assert_eq!(db.execute(select, 0, &[8]), [row(8), row(9)]);
    assert!(db.execute(select, 1, &[7]).is_empty());
    let (rows, status) = db.fetch(select, 2);
    assert_eq!((rows, status & 192), (vec![row(7), row(8)], 64));
    let (rows, status) = db.fetch(select, 2);
    assert_eq!((rows, status & 192), (vec![row(9)], 128));
    // The order of parameters is that of the text.
    let (update, ..) = db.prepare("update n set v = ? where id = ?").unwrap();
    assert_eq!(db.execute(update, 0, &[70, 7])[0][..2], [0, 1]);
    assert_eq!(db.ask("select v from n where id = 7"), "70");
    // Clients that send all as text mean numbers.
    let (named, ..) = db.prepare("select v from n where id in (? + 0)").unwrap();
    db.send(0, &[&[0x17][..], &named.to_le_bytes(), &[0, 1, 0, 0, 0, 0, 1, 253, 0, 1, b'7']].concat());
    for _ in 0..3 {
        db.packet().unwrap();
    }
    assert_eq!(db.rows().0, [[&[0, 0][..], &70u32.to_le_bytes()].concat()]);
    // A table that is changed, a statement that is closed, types that were not sent.
    db.ask("alter table n add column w int");
    assert_eq!(db.execute(select, 0, &[9]), [row(9)]);
    db.send(0, &[&[0x19][..], &insert.to_le_bytes()].concat());
    assert!(failure(&db.execute(insert, 0, &[1, 1])[0]).starts_with("1243"));
    db.send(0, &[&[0x17][..], &update.to_le_bytes(), &[0, 1, 0, 0, 0, 0]].concat());
    assert!(failure(&db.packet().unwrap().1).starts_with("1835"));
    assert!(db.prepare("select ? from nothing").unwrap_err().starts_with("1146"));
    assert!(db.prepare("select 1; select 2").unwrap_err().starts_with("1064"));
    // Parts of a long parameter.
    db.ask("create table l (id int primary key, body longtext)");
    let (long, ..) = db.prepare("insert into l values (1, ?)").unwrap();
    for part in ["ab", "cd"] {
        db.send(0, &[&[0x18][..], &long.to_le_bytes(), &[0, 0], part.as_bytes()].concat());
    }
    db.send(0, &[&[0x17][..], &long.to_le_bytes(), &[0, 1, 0, 0, 0, 0, 1, 252, 0]].concat());
    assert_eq!(db.answer(), "ok 1 0");
    assert_eq!(db.ask("select body from l"), "abcd");
    assert_eq!(db.ask("prepare s from 'select ? + 1'; set @a = 41; execute s using @a"), "ok 0 0 | ok 0 0 | 42");
}

#[test]
fn who_has_a_password_proves_it() {
    let mut rig = start();
    rig.client.eval("box.schema.user.create('ann', { password = 'secret' }) return true");
    let mut good = Mysql::open(&mut rig);
    let proof = wire::scramble(b"secret", &good.salt.clone());
    assert_eq!(good.enter("ann", &proof, "mysql_native_password", ABILITIES).unwrap().1[0], 0);
    assert_eq!(good.ask("select current_user()"), "ann@%");
    // Another way of proving it is switched to one that is known.
    let mut switched = Mysql::open(&mut rig);
    let (_, answer) = switched.enter("ann", &[1; 32], "sha256_password", ABILITIES).unwrap();
    assert!(answer.starts_with(b"\xfemysql_native_password\0"));
    let salt = switched.salt;
    switched.send(3, &wire::scramble(b"secret", &salt));
    assert_eq!(switched.packet().unwrap().1[0], 0);
    for proof in [&wire::sha2_proof(b"Secret", &salt)[..], &[0], &[0; 20]] {
        let mut bad = Mysql::open(&mut rig);
        let (sequence, answer) = bad.enter("ann", proof, "caching_sha2_password", ABILITIES).unwrap();
        assert!(failure(&answer).starts_with("1045 28000: Access denied for user 'ann'@"), "{}", failure(&answer));
        assert_eq!(sequence, 2);
        assert!(bad.packet().is_none());
    }
    for proof in [&wire::scramble(b"Secret", &salt)[..], b"", &[0; 20], &[0; 7]] {
        let mut bad = Mysql::open(&mut rig);
        let (_, answer) = bad.enter("ann", proof, "mysql_native_password", ABILITIES).unwrap();
        assert!(failure(&answer).starts_with("1045 28000: Access denied for user 'ann'@"), "{}", failure(&answer));
        assert!(bad.packet().is_none());
    }
    let mut fast = Mysql::open(&mut rig);
    let proof = wire::sha2_proof(b"secret", &fast.salt.clone());
    assert_eq!(fast.enter("ann", &proof, "caching_sha2_password", ABILITIES).unwrap(), (2, vec![1, 3]));
    assert_eq!(fast.packet().map(|(sequence, body)| (sequence, body[0])), Some((3, 0)));
    assert_eq!(fast.ask("select current_user()"), "ann@%");
    // The user is changed with a proof that is asked for again.
    fast.send(0, b"\x11ann\0\0shop\0\xff\0caching_sha2_password\0");
    assert!(fast.packet().unwrap().1.starts_with(b"\xfecaching_sha2_password\0"));
    fast.send(2, &proof);
    assert_eq!((fast.packet().unwrap(), fast.packet().unwrap().1[0]), ((3, vec![1, 3]), 0));
    // Whose password is from before there was this way is asked for another proof.
    rig.client.eval("box.space._sha2:delete(box.space._user.index.name:get('ann')[1]) return true");
    let mut old = Mysql::open(&mut rig);
    let (_, answer) = old.enter("ann", &[1; 32], "caching_sha2_password", ABILITIES).unwrap();
    assert!(answer.starts_with(b"\xfemysql_native_password\0"));
    old.send(3, &wire::scramble(b"secret", &old.salt.clone()));
    assert_eq!(old.packet().unwrap().1[0], 0);
    // Whoever changes the user to one without a password is nobody in particular again.
    good.send(0, b"\x11root\0\0shop\0");
    assert_eq!(good.answer(), "ok 0 0");
    assert_eq!(good.ask("select current_user()"), "mysql@%");
    good.send(0, b"\x11ann\0\0shop\0");
    assert!(good.packet().unwrap().1.starts_with(b"\xfemysql_native_password\0"));
    good.send(2, b"");
    assert!(good.answer().starts_with("1045"));
}

/// A session of a user who has a password.
fn entered_as(rig: &mut Rig, user: &str, password: &str) -> Mysql {
    let mut client = Mysql::open(rig);
    let proof = wire::scramble(password.as_bytes(), &client.salt.clone());
    let (_, answer) = client.enter(user, &proof, "mysql_native_password", ABILITIES).unwrap();
    assert_eq!(answer[0], 0, "{}", failure(&answer));
    client
}

#[test]
fn accounts_are_managed_by_statements() {
    let mut rig = start();
    let mut nobody = Mysql::to(&mut rig);
    assert!(nobody.ask("create user eve identified by 'e'").starts_with("1142"));
    assert!(nobody.ask("set password = 'mine'").starts_with("1142"), "the listener's account is others', too");
    assert_eq!(
        rig.client
            .eval(
                "box.session.su('admin', function() box.schema.user.create('boss', { password = 'b' }) box.schema.user.grant('boss', 'super') end) return true"
            )
            .code(),
        0
    );
    let mut boss = entered_as(&mut rig, "boss", "b");
    for sql in [
        "create table ua (id int primary key auto_increment, v int)",
        "create user 'reader'@'%' identified by 'r', adder@'%' identified by 'a'",
        "create user if not exists adder identified by 'other'",
        "create user wp@localhost identified by 'w'",
        "grant select on shop.* to reader",
        "grant select, insert on shop.ua to 'adder'@'%'",
        "grant all privileges on wordpress.* to 'wp'@'localhost'",
        "create role team",
        "grant delete on ua to team",
    ] {
        assert_eq!(boss.ask(sql), "ok 0 0", "{sql}");
    }
    assert!(boss.ask("create user adder").starts_with("1396"));
    assert_eq!(boss.ask("create user chief identified by 'c'"), "ok 0 0");
    assert_eq!(boss.ask("grant all privileges on *.* to 'chief'@'%' with grant option"), "ok 0 0");
    assert_eq!(entered_as(&mut rig, "chief", "c").ask("create user more; drop user more"), "ok 0 0 | ok 0 0");
    assert!(boss.ask("grant select (v) on ua to reader").starts_with("1235"));
    assert!(boss.ask("grant select on ua to nobody").starts_with("1396"));
    assert!(boss.ask("show grants for adder").contains("GRANT SELECT, INSERT ON `shop`.`ua` TO `adder`@`%`"));
    let mut reader = entered_as(&mut rig, "reader", "r");
    assert_eq!(reader.ask("select count(*) from ua"), "0");
    let secrets = ["select * from _user", "select * from _sha2"];
    for sql in secrets.into_iter().chain([
        "insert into ua (v) values (1)",
        "create table x (a int primary key)",
        "create user z",
        "grant select on ua to reader",
    ]) {
        assert!(reader.ask(sql).starts_with("1142"), "{sql}");
    }
    assert_eq!(reader.ask("set password = 'r2'"), "ok 0 0");
    entered_as(&mut rig, "reader", "r2");
    let mut adder = entered_as(&mut rig, "adder", "a");
    assert_eq!(adder.ask("insert into ua (v) values (1), (2)"), "ok 2 1");
    for sql in [
        "update ua set v = 2",
        "delete from ua where id = 1",
        "replace into ua values (1, 5)",
        "truncate table ua",
        "drop table ua",
    ] {
        assert!(adder.ask(sql).starts_with("1142"), "{sql}");
    }
    assert_eq!(boss.ask("grant team to adder"), "ok 0 0");
    assert_eq!(adder.ask("delete from ua where id = 1"), "ok 1 0", "by a role");
    assert_eq!(boss.ask("grant update on ua to team"), "ok 0 0");
    assert_eq!(adder.ask("update ua set v = 7"), "ok 1 0");
    assert_eq!(boss.ask("revoke insert, delete on ua from adder"), "ok 0 0");
    assert_eq!(boss.ask("revoke delete on ua from team"), "ok 0 0");
    assert_eq!(adder.ask("update ua set v = 8"), "ok 1 0", "by the right to update alone");
    assert!(adder.ask("replace into ua values (2, 5)").starts_with("1142"));
    assert!(adder.ask("delete from ua").starts_with("1142"));
    assert!(adder.ask("insert into ua (v) values (3)").starts_with("1142"));
    let mut wp = entered_as(&mut rig, "wp", "w");
    assert_eq!(wp.ask("create table posts (id int auto_increment primary key, t text)"), "ok 0 0");
    assert_eq!(wp.ask("insert into posts (t) values ('hello')"), "ok 1 1");
    assert!(wp.ask("grant all on *.* to wp").starts_with("1142"));
    assert!(wp.ask("delete from _priv").starts_with("1142"));
    assert!(wp.ask("delete from _sha2").starts_with("1142"), "who changes what proves a password enters as others");
    assert!(boss.ask("drop user wp").starts_with("1451"), "its tables would go with it");
    assert_eq!(boss.ask("drop table posts"), "ok 0 0");
    assert_eq!(boss.ask("drop user wp, reader"), "ok 0 0");
    assert_eq!(boss.ask("revoke all privileges, grant option from adder"), "ok 0 0");
    assert!(adder.ask("select * from ua").starts_with("1142"));
    assert_eq!(boss.ask("alter user adder account lock"), "ok 0 0");
    assert_eq!(boss.ask("alter user adder account unlock"), "ok 0 0");
    assert_eq!(boss.ask("alter user adder account lock"), "ok 0 0");
    let mut locked = Mysql::open(&mut rig);
    let proof = wire::scramble(b"a", &locked.salt.clone());
    assert_eq!(locked.enter("adder", &proof, "mysql_native_password", ABILITIES).unwrap().1[0], 0xff);
}

#[test]
fn bytes_that_are_no_protocol_harm_nobody() {
    let mut rig = start();
    let place = address(&mut rig);
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff, 0xff, 0xff, 1],
        &[1, 0, 0, 7, 0],
        &[4, 0, 0, 1, 1, 2, 3, 4],
        &[0, 0, 0, 1],
        &[32, 0, 0, 1],
    ] {
        let mut bad = Mysql::at(&place);
        bad.stream.write_all(bytes).unwrap();
        bad.finish();
    }
    // Every command with bodies that are none, one connection after the other.
    for kind in 0..=0x20u8 {
        for body in [&b""[..], b"\xff", b"\xff\xff\xff\xff", &[0xff; 40], b"\x01\0\0\0\x01\xff\xff\xff\xff\xff"] {
            let mut bad = Mysql::at(&place).entered(0);
            let (id, ..) = bad.prepare("select ?, ?").unwrap();
            assert_eq!(id, 1);
            bad.send(0, &[&[kind][..], body].concat());
            bad.send(0, b"\x0e");
            bad.finish();
        }
    }
    // Commands out of order end the connection with a word.
    let mut bad = Mysql::to(&mut rig);
    bad.send(5, b"\x0e");
    assert!(failure(&bad.packet().unwrap().1).starts_with("1156"));
    assert!(bad.packet().is_none());
    // Bytes in a literal are bytes; elsewhere they are refused.
    let mut db = Mysql::to(&mut rig);
    db.send(0, b"\x03select length('\xff\xfe'), '\xc3\xa9'");
    assert_eq!(db.answer(), "2,\u{e9}");
    db.send(0, b"\x03select \xff");
    assert!(db.answer().starts_with("1366"));
    // A packet that goes on in another one.
    let (length, ..) = db.prepare("select length(?)").unwrap();
    let count = 17u32 << 20;
    let head = [&[0x17][..], &length.to_le_bytes(), &[0, 1, 0, 0, 0, 0, 1, 253, 0, 0xfe]].concat();
    let head = [head, u64::from(count).to_le_bytes().to_vec()].concat();
    let body = [head, vec![b'x'; count as usize]].concat();
    let (first, rest) = body.split_at(0xff_ffff);
    db.send(0, first);
    db.send(1, rest);
    let (_, columns) = db.packet().unwrap();
    assert_eq!(columns, [1]);
    db.packet().unwrap();
    db.packet().unwrap();
    assert_eq!(db.rows().0, [[&[0, 0][..], &u64::from(count).to_le_bytes()].concat()]);
    assert!(db.ask(&format!("select {}1{}", "(".repeat(5000), ")".repeat(5000))).starts_with("1114"));
    assert_eq!(db.ask("select 1"), "1");
}

#[test]
fn who_owns_a_session_ends_it() {
    let mut rig = start();
    let (mut db, mut other) = (Mysql::to(&mut rig), Mysql::to(&mut rig));
    let id = other.ask("select connection_id()");
    other.send(0, b"\x03select sleep(100)");
    assert_eq!(db.ask(&format!("kill query {id}")), "ok 0 0");
    assert!(other.answer().starts_with("1317"));
    assert!(db.ask("kill 99999").starts_with("1094"));
    rig.client.eval("box.schema.user.create('ann', { password = 'secret' }) return true");
    let mut ann = Mysql::open(&mut rig);
    let proof = wire::scramble(b"secret", &ann.salt.clone());
    ann.enter("ann", &proof, "mysql_native_password", ABILITIES).unwrap();
    assert!(ann.ask(&format!("kill {id}")).starts_with("1095"));
    assert_eq!(ann.ask("show processlist").matches("; ").count(), 0);
    db.ask(&format!("kill {id}"));
    assert!(other.packet().is_none());
}

const LOCAL_FILES: u32 = 1 << 7;
const COMPRESSION: u32 = 1 << 5;

/// A client that sends files.
fn with_files(rig: &mut Rig) -> Mysql {
    let mut client = Mysql::open(rig);
    let (_, answer) = client.enter("root", b"", "mysql_native_password", ABILITIES | LOCAL_FILES).unwrap();
    assert_eq!(answer[0], 0);
    client
}

/// Sends a file that was asked for, in packets of so many bytes. Returns the answer.
fn send_file(client: &mut Mysql, text: &str, file: &[u8], size: usize) -> String {
    client.send(0, &[b"\x03", text.as_bytes()].concat());
    let (mut sequence, asked) = client.packet().unwrap();
    if asked[0] != 0xfb {
        return failure(&asked);
    }
    assert_eq!(&asked[1..], b"f");
    for part in file.chunks(size) {
        sequence = sequence.wrapping_add(1);
        client.send(sequence, part);
    }
    client.send(sequence.wrapping_add(1), b"");
    client.answer()
}

#[test]
fn files_of_clients_become_rows() {
    let mut rig = start();
    let mut db = with_files(&mut rig);
    db.ask("create table t (id int primary key, name varchar(20), price decimal(10, 2), more varchar(20) default 'x')");
    let load = |more: &str| format!("load data local infile 'f' into table t {more}");
    for size in [1, 3, 1000] {
        assert!(
            send_file(&mut db, &load("(id, name, price)"), b"1\ta\\tb\t1.5\n2\t\\N\t2\n3\tc\t3", size)
                .starts_with("ok 3")
        );
        assert_eq!(db.ask("select * from t order by id"), "1,a\tb,1.50,x; 2,null,2.00,x; 3,c,3.00,x");
        db.ask("delete from t");
    }
    let csv = "fields terminated by ',' enclosed by '\"' lines terminated by '\\r\\n' ignore 1 lines (id, @name, price) set name = upper(@name), more = 'set'";
    assert!(
        send_file(&mut db, &load(csv), b"id,name,price\r\n1,\"a,\"\"b\"\"\",1\r\n2,c,2\r\n", 5).starts_with("ok 2")
    );
    assert_eq!(db.ask("select * from t order by id"), "1,A,\"B\",1.00,set; 2,C,2.00,set");
    // Rows that are there stay, or leave.
    assert!(send_file(&mut db, &load("(id, name)"), b"2\tnew\n3\tnew\n", 100).starts_with("ok 1"));
    assert!(
        send_file(&mut db, "load data local infile 'f' replace into table t (id, name)", b"2\tnew\n", 100)
            .starts_with("ok 2")
    );
    assert_eq!(db.ask("select id, name from t order by id"), "1,A,\"B\"; 2,new; 3,new");
    // What fails leaves nothing, and the client's transaction goes on.
    db.ask("begin; delete from t where id = 1");
    assert!(send_file(&mut db, &load("(id, nothing)"), b"", 1).starts_with("1054"));
    assert_eq!(db.ask("rollback; select count(*) from t"), "ok 0 0 | 3");
    // Statements behind the file follow it.
    db.send(0, b"\x03load data local infile 'f' into table t (id); select count(*) from t");
    let (sequence, _) = db.packet().unwrap();
    db.send(sequence + 1, b"7\n");
    db.send(sequence + 2, b"");
    assert_eq!(db.answer(), "ok 1 0 | 4");
    assert!(db.ask("load data infile '/etc/passwd' into table t").starts_with("1290"));
    assert!(db.ask("load data local infile 'f' into table nothing").starts_with("1146"));
    // Who has not said that it sends files is asked for none.
    let mut other = Mysql::to(&mut rig);
    assert!(other.ask("load data local infile 'f' into table t").starts_with("3948"));
}

/// Packs a packet as it is, and unpacks the answer.
struct Packed(Mysql, Vec<u8>);

impl Packed {
    fn send(&mut self, body: &[u8]) {
        let plain = [&(body.len() as u32).to_le_bytes()[..3], &[0], body].concat();
        let frame = [&(plain.len() as u32).to_le_bytes()[..3], &[0, 0, 0, 0], &plain].concat();
        self.0.stream.write_all(&frame).unwrap();
    }

    /// None: the connection has ended.
    fn packet(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(head) = self.1.get(..4) {
                let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
                if self.1.len() >= 4 + length {
                    let body = self.1[4..4 + length].to_vec();
                    self.1.drain(..4 + length);
                    return Some(body);
                }
            }
            let mut head = [0; 7];
            self.0.stream.read_exact(&mut head).ok()?;
            let mut bytes = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
            self.0.stream.read_exact(&mut bytes).ok()?;
            if u32::from_le_bytes([head[4], head[5], head[6], 0]) > 0 {
                let mut plain = Vec::new();
                flate2::read::ZlibDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
                bytes = plain;
            }
            self.1.extend(bytes);
        }
    }
}

#[test]
fn packets_are_compressed_where_the_client_asks_for_it() {
    let mut rig = start();
    let open = |rig: &mut Rig| {
        let mut client = Mysql::open(rig);
        let (_, answer) = client.enter("root", b"", "mysql_native_password", ABILITIES | COMPRESSION).unwrap();
        assert_eq!(answer[0], 0, "the answer to the login is as it is");
        Packed(client, Vec::new())
    };
    let mut db = open(&mut rig);
    db.send(b"\x03select repeat('x', 200000), 1");
    let packets: Vec<Vec<u8>> = (0..6).map(|_| db.packet().unwrap()).collect();
    assert_eq!(packets[0], [2]);
    assert!(packets[4].ends_with(b"x\x011") && packets[4].len() > 200_000);
    db.send(&[0x0e]);
    assert_eq!(db.packet().unwrap()[0], 0);
    // Frames that say too much or too little, and bytes that are none.
    for frame in [
        &[4, 0, 0, 0, 100, 0, 0, 1, 2, 3, 4][..],
        &[12, 0, 0, 0, 0xff, 0xff, 0xff, 0x78, 0x9c, 0x4b, 0x04, 0, 0, 0x62, 0, 0x62, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff],
    ] {
        let bad = open(&mut rig);
        let mut stream = bad.0.stream.try_clone().unwrap();
        stream.write_all(frame).unwrap();
        bad.0.finish();
    }
    db.send(&[0x0e]);
    assert_eq!(db.packet().unwrap()[0], 0);
}

#[test]
fn temporary_tables_hide_others_and_comments_are_shown() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    db.ask(
        "create table m (id int primary key auto_increment, v varchar(20) comment 'it''s', key kv (v)) comment='all'",
    );
    db.ask("insert into m (v) values ('p')");
    db.ask("begin");
    db.ask("insert into m (v) values ('q')");
    db.ask("create temporary table m (z int)");
    db.ask("insert into m values (5)");
    assert!(db.ask("select * from m").contains('5'));
    db.ask("drop temporary table m");
    assert!(db.ask("select * from m").contains('q'), "the transaction goes on");
    db.ask("rollback");
    assert!(!db.ask("select * from m").contains('q'));
    db.ask("create temporary table n like m");
    db.ask("insert into n (v) values ('l')");
    assert!(db.ask("select v from n").contains('l'));
    assert!(db.ask("show create table n").contains("CREATE TEMPORARY TABLE `n`"));
    assert!(!db.ask("show tables").contains('n'));
    assert!(db.ask("drop temporary table m").contains("1051"));
    let shown = db.ask("show create table m");
    assert!(shown.contains("COMMENT 'it''s'") && shown.contains("COMMENT='all'"), "{shown}");
    db.ask("alter table m comment = 'new'");
    assert!(db.ask("select table_comment from information_schema.tables where table_name = 'm'").contains("new"));
    db.ask("alter table m rename index kv to kw");
    assert!(db.ask("show create table m").contains("KEY `kw`"));
    db.ask("alter table m engine = InnoDB");
    assert!(db.ask("alter table m engine = nothing").contains("1286"));
}

#[test]
fn numbers_that_rows_bring_are_told_and_not_remembered() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    db.ask("create table o (id int auto_increment primary key, a int not null, b varchar(20) unique)");
    assert_eq!(db.ask("insert into o values (7, 1, 'x')"), "ok 1 7");
    assert_eq!(db.ask("select last_insert_id()"), "0");
    assert_eq!(db.ask("insert into o values (null, 1, 'y')"), "ok 1 8");
    assert_eq!(db.ask("insert into o values (20, 1, 'z'), (22, 1, 'zz')"), "ok 2 22");
    assert_eq!(db.ask("insert into o values (30, 1, 'q'), (null, 1, 'qq')"), "ok 2 31");
    assert_eq!(db.ask("insert into o (a, b) values (1, 'x') on duplicate key update a = a + 1"), "ok 2 7");
    assert_eq!(db.ask("insert into o (id, a, b) values (7, 1, 'x') on duplicate key update a = a"), "ok 0 0");
    assert_eq!(
        db.ask("insert into o (a, b) values (1, 'y') on duplicate key update id = last_insert_id(id), a = 5"),
        "ok 2 8"
    );
    assert_eq!(db.ask("insert ignore into o values (7, 1, 'x')"), "ok 0 0");
    assert_eq!(db.ask("replace into o values (7, 3, 'x')"), "ok 2 7");
    assert_eq!(db.ask("update o set a = last_insert_id(a + 10) where id = 7"), "ok 1 13");
    assert_eq!(db.ask("select last_insert_id()"), "13");
    assert_eq!(db.ask("select last_insert_id(77)"), "77");
    assert_eq!(db.ask("update o set a = 1 where id = 7"), "ok 1 0");
}

#[test]
fn columns_of_results_say_where_they_come_from() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    db.ask("create table o (id int auto_increment primary key, a int not null, b varchar(20) unique, c int default 5, d text, key (c))");
    db.ask("create table p (x int not null, y int not null, primary key (x, y))");
    db.ask("create view v as select a from o");
    let mut of = |sql: &str| {
        db.send(0, &[b"\x03", sql.as_bytes()].concat());
        let (_, first) = db.packet().unwrap();
        let columns = (0..first[0]).map(|_| {
            let (_, body) = db.packet().unwrap();
            let mut rest = &body[..];
            let names: Vec<String> = (0..6).map(|_| counted(&mut rest).unwrap()).collect();
            format!(
                "{} {} {} {} {} {}",
                names[2],
                names[3],
                names[4],
                names[5],
                rest[7],
                u16::from_le_bytes([rest[8], rest[9]])
            )
        });
        let columns: Vec<String> = columns.collect();
        db.packet().unwrap();
        db.rows();
        columns.join("; ")
    };
    // Tables, names, the number of the type, flags: 1 not null, 2 primary, 4 unique, 8 of an index, 16 text, 512 generated, 4096 no default, 16384 of a key.
    assert_eq!(
        of("select id as i, q.a, b, c, d, a + 1 from o q"),
        "q o i id 3 16899; q o a a 3 4097; q o b b 253 16388; q o c c 3 16392; q o d d 252 16;   a + 1  8 0"
    );
    assert_eq!(of("select x, q.id from p left join o q on q.id = x"), "p p x x 3 20483; q o id id 3 16898");
    assert_eq!(of("select distinct b from o"), "o o b b 253 16388");
    assert_eq!(of("select a, count(*) from o group by a"), "o o a a 3 4097;   count(*)  8 0");
    // Of a view, nothing is told.
    assert_eq!(of("select a from v"), "  a  3 0");
}

#[test]
fn binary_binds_closer_than_operators() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    db.ask("create table b (id int primary key, n varchar(20)); insert into b values (1, 'Author x'), (2, 'author y')");
    db.ask("create table c (v varbinary(9), w binary(3))");
    for (condition, ids) in [
        ("n like binary 'Author%' and id < 9", "1"),
        ("id < 9 and binary n = 'author y' or id > 9", "2"),
        ("binary b.n = 'author y'", "2"),
        ("binary(n) = 'Author x'", "1"),
        ("n like 'AUTHOR%' and id = 2", "2"),
    ] {
        let found = db.ask(&format!("select group_concat(id) from b where {condition}"));
        assert!(found.contains(ids) && !found.contains(','), "{condition}: {found}");
    }
}

#[test]
fn dumps_are_loaded_over_tables_that_are_there() {
    let mut rig = start();
    let mut db = Mysql::to(&mut rig);
    let tables = [
        "/*!40014 SET @old = @@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS = 0 */",
        "drop table if exists p",
        "create table p (id int not null auto_increment, primary key (id)) engine=InnoDB auto_increment=8 comment='a table'",
        "insert into p values (7)",
        "drop table if exists c",
        "create table c (id int not null, p int, bits bit(8), primary key (id), constraint cp foreign key (p) references p (id))",
        "lock tables c write",
        "insert into c values (1, 7, '\x05')",
        "unlock tables",
        "drop table if exists v",
        "drop view if exists v",
        "create view v as select c.id from c join p on p.id = c.p",
        "/*!40014 SET FOREIGN_KEY_CHECKS = @old */",
    ];
    for _ in 0..2 {
        for statement in tables {
            let answer = db.ask(statement);
            assert!(answer.starts_with("ok") || answer.is_empty(), "{statement}: {answer}");
        }
    }
    // The key of a table that stayed waits for the one that it names.
    db.ask("set foreign_key_checks = 0");
    db.ask("drop table p");
    db.ask("create table p (id int not null auto_increment primary key)");
    db.ask("insert into p values (7)");
    db.ask("set foreign_key_checks = 1");
    assert!(db.ask("insert into c values (2, 99, null)").starts_with("1452"));
    assert_eq!(db.ask("select id, bits from c"), "1,5");
    assert!(db.ask("show create table v").starts_with("v,CREATE ALGORITHM"));
    assert!(db.ask("show create table c").contains("COLLATE=utf8mb4_unicode_ci"));
    assert_eq!(
        db.ask("select 'Author' like binary 'A%', 'Author' like binary 'a%', convert_tz('2024-02-29 23:00:00', '+00:00', '+02:30'), convert_tz('2024-01-01', 'UTC', 'Mars/Base')"),
        "1,0,2024-03-01 01:30:00,null"
    );
    assert_eq!(
        db.ask("select p, count(*) from c group by p having count(*) <> (select count(*) from c x where x.p = c.p)"),
        ""
    );
}
