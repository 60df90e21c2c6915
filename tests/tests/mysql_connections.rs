//! Connections of MySQL's clients through the real binary: logins and accounts, bytes that are none, files of clients, compression.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;
use lycosa_tests::mysql::{ABILITIES, COMPRESSION, LOCAL_FILES, Mysql, address, failure, start};
use std::io::{Read, Write};

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
