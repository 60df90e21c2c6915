//! Rules of `ACL SETUSER`: what a user reaches by them, and by no way around them.

use super::{Redis, Rig, play_to, value};

/// A client of the administrator, and what there is to be reached.
fn begin(rig: &Rig) -> Redis {
    let mut admin = rig.redis();
    assert_eq!(admin.ask("auth admin b"), "+OK|");
    for command in [
        "set a:1 own",
        "set b:1 secret",
        "rpush a:l 1 2",
        "rpush b:l 1 2",
        "sadd b:s x",
        "zadd b:z 1 x",
        "hset b:h f secret",
        "xadd b:x * f secret",
        "geoadd a:g 1 1 x",
    ] {
        assert!(!admin.ask(command).starts_with('-'), "{command}");
    }
    admin
}

fn log_in(rig: &Rig, user: &str) -> Redis {
    let mut client = rig.redis();
    assert_eq!(client.ask(&format!("auth {user} pw")), "+OK|");
    client
}

#[test]
fn who_may_use_some_keys_reaches_no_other_one() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    assert_eq!(admin.ask("acl setuser mallory on >pw ~a:* &a:* +@all"), "+OK|");
    let mut mallory = log_in(&rig, "mallory");
    assert_eq!(mallory.ask("get a:1"), "$3|own|");
    for command in [
        "get b:1",
        "set b:1 x",
        "set b:2 x nx get",
        "mget a:1 b:1",
        "msetnx a:7 1 b:7 2",
        "getex b:1",
        "getdel b:1",
        "append b:1 x",
        "copy b:1 a:2",
        "copy a:1 b:2",
        "rename b:1 a:9",
        "rename a:1 b:9",
        "exists b:1",
        "type b:1",
        "ttl b:1",
        "touch a:1 b:1",
        "unlink a:7 b:1",
        "move b:1 1",
        "dump b:1",
        "restore b:3 0 x",
        "object encoding b:1",
        "memory usage b:1",
        "lcs a:1 b:1",
        "bitop or a:x b:1",
        "pfmerge a:p b:p",
        "sort b:l",
        "sort_ro b:l",
        "sort a:l store b:9",
        "lmove b:l a:l left left",
        "lmpop 2 a:none b:l left",
        "blmpop 0 2 a:none b:l left",
        "brpoplpush b:l a:l 0",
        "sunionstore a:s b:s",
        "smove b:s a:s x",
        "sintercard 2 a:s b:s",
        "zunionstore a:z 1 b:z",
        "zrangestore a:z b:z 0 -1",
        "zinter 2 a:z b:z",
        "zmpop 2 a:none b:z min",
        "georadius a:g 1 1 1 km store b:g",
        "geosearchstore b:g a:g frommember x byradius 1 km",
        "hgetall b:h",
        "xread streams a:x b:x 0 0",
        "xinfo stream b:x",
        "xgroup create b:x g $",
        "watch b:1",
        "eval return_1 1 b:1",
        "eval_ro return_1 1 b:1",
        "fcall f 1 b:1",
        "publish b:x y",
        "subscribe a:x b:x",
        "psubscribe *",
        "psubscribe a:x*",
        "ssubscribe b:x",
        "spublish b:x y",
    ] {
        let answer = mallory.ask(command);
        assert!(
            answer.starts_with("-NOPERM this user has no permissions to access one of the "),
            "{command}: {answer}"
        );
    }
    assert_eq!(
        mallory.ask("sort a:l by b:* get #"),
        "-ERR BY option of SORT denied due to insufficient ACL permissions.|"
    );
    assert_eq!(
        mallory.ask("sort a:l by x get b:*"),
        "-ERR GET option of SORT denied due to insufficient ACL permissions.|"
    );
    assert_eq!(
        mallory.ask("sort a:l by a:* desc"),
        "-ERR BY option of SORT denied due to insufficient ACL permissions.|"
    );
    assert_eq!(mallory.ask("sort a:l desc"), "*2|$1|2|$1|1|");
    // A script is who runs it.
    let mut run = |script: &str| {
        mallory.send(&[b"eval", script.as_bytes(), b"0"]);
        String::from_utf8_lossy(&mallory.answer()).into_owned()
    };
    assert!(run("return redis.call('get', 'b:1')").starts_with(
        "-ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
    ));
    assert!(run("return redis.call('publish', 'b:x', 'y')").contains("can't publish to the channel"));
    assert!(run("return redis.pcall('rename', 'b:1', 'a:9').err").contains("can't access at least one of the keys"));
    assert!(run("return {redis.acl_check_cmd('get', 'a:1'), redis.acl_check_cmd('get', 'b:1')}").contains(":1\r\n$-1"));
    mallory.send(&[
        b"function",
        b"load",
        b"#!lua name=l\nredis.register_function('f', function() return redis.call('get', 'b:1') end)",
    ]);
    mallory.answer();
    assert!(mallory.ask("fcall f 0").contains("can't access at least one of the keys"));
    // So is a transaction.
    assert_eq!(mallory.ask("multi"), "+OK|");
    assert!(mallory.ask("get b:1").starts_with("-NOPERM"));
    assert_eq!(mallory.ask("get a:1"), "+QUEUED|");
    assert!(mallory.ask("exec").starts_with("-EXECABORT"));
    // What has happened to others' keys is not told.
    assert_eq!(admin.ask("config set notify-keyspace-events KEA"), "+OK|");
    assert_eq!(admin.ask("acl setuser mallory &__key*"), "+OK|");
    assert!(mallory.ask("hello 3").starts_with("%7|"));
    assert!(mallory.ask("psubscribe __key*").starts_with(">3|"));
    admin.ask("set b:5 x");
    admin.ask("set a:5 x");
    assert!(String::from_utf8_lossy(&mallory.answer()).contains("__keyspace@0__:a:5"));
    // By the other doors it reaches nothing at all.
    let listener = rig.server.connect().stream().peer_addr().unwrap();
    let asked = rig.server.connect().eval(&format!(
        "local c = require('net.box').connect('{listener}', {{user = 'mallory', password = 'pw'}})
         local is_done, reason = pcall(c.eval, c, 'return box.space.redis:get(\"b:1\")')
         local sees = c.space.redis ~= nil and pcall(c.space.redis.get, c.space.redis, 'b:1')
         return tostring(is_done), tostring(sees), tostring(c.state)"
    ));
    let shown = String::from_utf8_lossy(&asked.data).into_owned();
    assert!(shown.contains("false") && !shown.contains("true") && shown.contains("active"), "{shown}");
}

#[test]
fn rules_of_commands_are_those_of_redis() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    let set = "acl setuser bob on >pw ~a:* -@all +@read -mget +set +client|id +select|0 +multi +exec +eval";
    assert_eq!(admin.ask(set), "+OK|");
    let mut bob = log_in(&rig, "bob");
    for (command, refused) in [
        ("mget a:1", "mget"),
        ("del a:1", "del"),
        ("client list", "client|list"),
        ("config get x", "config|get"),
        ("acl whoami", "acl|whoami"),
        ("ping", "ping"),
        ("select 1", "select"),
        ("flushall", "flushall"),
        ("publish a:x y", "publish"),
    ] {
        let wanted = format!("-NOPERM this user has no permissions to run the '{refused}' command|");
        assert_eq!(bob.ask(command), wanted);
    }
    for command in ["set a:1 x", "get a:1", "strlen a:1", "select 0", "client id", "keys a:*", "scan 0"] {
        assert!(!bob.ask(command).starts_with('-'), "{command}");
    }
    assert!(bob.ask("nothing").starts_with("-ERR unknown command") && bob.ask("get").starts_with("-ERR wrong number"));
    bob.send(&[b"eval", b"return redis.call('del', 'a:1')", b"0"]);
    let answer = String::from_utf8_lossy(&bob.answer()).into_owned();
    assert!(
        answer.starts_with("-ERR The user executing the script can't run this command or subcommand script: "),
        "{answer}"
    );
    // It is the same user, whose own rights are not those of the door.
    assert!(bob.ask("acl setuser bob ~*").starts_with("-NOPERM"));
    assert_eq!(admin.ask("acl setuser bob +acl ~a:*"), "+OK|");
    assert_eq!(bob.ask("acl whoami"), "$3|bob|");
    assert!(bob.ask("acl setuser bob ~* +@all").starts_with("-NOPERM"));
    assert!(bob.ask("acl deluser reader").starts_with("-NOPERM") && bob.ask("acl list").starts_with("-NOPERM"));
}

#[test]
fn rules_hold_at_once_and_after_a_restart_and_go_with_their_user() {
    let mut rig = Rig::start("");
    let mut admin = begin(&rig);
    assert_eq!(admin.ask("acl setuser bob on >pw ~a:* &* +@all"), "+OK|");
    let (mut bob, mut listener) = (log_in(&rig, "bob"), log_in(&rig, "bob"));
    assert!(listener.ask("subscribe news").starts_with("*3|"));
    assert_eq!(bob.ask("multi"), "+OK|");
    assert_eq!(bob.ask("get a:1"), "+QUEUED|");
    assert_eq!(bob.ask("get a:l"), "+QUEUED|");
    assert_eq!(admin.ask("acl setuser bob -get resetchannels &olds"), "+OK|");
    assert!(listener.answer().is_empty(), "who may not listen any more is disconnected");
    let answer = bob.ask("exec");
    assert!(answer.starts_with("*2|-NOPERM ACLs rules changed between the moment"), "{answer}");
    assert!(bob.ask("get a:1").ends_with("run the 'get' command|"));
    assert_eq!(bob.ask("strlen a:1"), ":3|");
    rig.restart("");
    let mut bob = log_in(&rig, "bob");
    assert!(bob.ask("get a:1").ends_with("run the 'get' command|") && bob.ask("strlen b:1").starts_with("-NOPERM"));
    assert_eq!(bob.ask("strlen a:1"), ":3|");
    // Who comes to the same name and number has neither rules nor rights.
    let remade = rig.server.connect().eval(
        "box.session.su('admin') local id = box.space._user.index.name:get('bob').id box.schema.user.drop('bob')
         box.schema.user.create('bob', {password = 'pw'}) return id == box.space._user.index.name:get('bob').id",
    );
    assert_eq!(remade.data.last(), Some(&0xc3));
    assert!(bob.ask("strlen a:1").starts_with('-'));
    let mut bob = log_in(&rig, "bob");
    assert!(bob.ask("strlen a:1").starts_with("-NOPERM"));
    let mut admin = rig.redis();
    admin.ask("auth admin b");
    assert!(admin.ask("acl list").contains("user bob on &* -@all|"));
    assert_eq!(admin.ask("acl setuser bob ~* &* +@all"), "+OK|");
    assert_eq!(bob.ask("strlen a:1"), ":3|", "who may do everything needs no rules");
    assert_eq!(admin.ask("acl setuser bob -set"), "+OK|");
    assert!(bob.ask("set a:1 x").starts_with("-NOPERM") && bob.ask("get a:1") == "$3|own|");
    assert_eq!(admin.ask("acl deluser bob"), ":1|");
    assert!(bob.answer().is_empty(), "who is gone is disconnected");
}

/// Those whom nobody knows act as the door's own user, which may have rules as well; its rights stay for those that other users' rules ask for.
#[test]
fn the_doors_own_user_may_have_rules() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    let mut anyone = rig.redis();
    assert_eq!(anyone.ask("get a:1"), "$3|own|");
    assert_eq!(
        admin.ask("acl setuser redis ~a:* -@all +get"),
        "-ERR Error in ACL SETUSER modifier '~a:*': Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns|"
    );
    assert_eq!(admin.ask("acl setuser redis resetkeys ~a:* -@all +get"), "+OK|");
    assert_eq!(anyone.ask("get a:1"), "$3|own|");
    assert!(anyone.ask("get b:1").starts_with("-NOPERM") && anyone.ask("set a:1 x").starts_with("-NOPERM"));
    let mut later = rig.redis();
    assert!(later.ask("get b:1").starts_with("-NOPERM"));
    assert_eq!(admin.ask("acl setuser bob on >pw ~b:* +get"), "+OK|");
    assert_eq!(later.ask("auth bob pw"), "+OK|");
    assert_eq!(later.ask("get b:1"), "$6|secret|");
    assert_eq!(later.ask("reset"), "+RESET|");
    assert!(later.ask("get b:1").starts_with("-NOPERM"));
    assert!(admin.ask("acl setuser admin -get").starts_with("-ERR the user 'admin' may do everything"));
    assert!(
        admin.ask("acl setuser redis off").starts_with("-ERR the user 'redis' is everybody who has not logged in yet")
    );
    assert_eq!(rig.redis().ask("ping"), "-NOPERM this user has no permissions to run the 'ping' command|");
}

#[test]
fn users_are_shown_and_refusals_are_logged() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    assert_eq!(admin.ask("acl setuser bob on >pw ~a:* %R~c:* &n:* +@read -mget (~d +set)"), "+OK|");
    let shown = "*12|$5|flags|*1|$2|on|$9|passwords|*1|$6|(kept)|$8|commands|$18|-@all +@read -mget|$4|keys|$11|~a:* %R~c:*|\
                 $8|channels|$4|&n:*|$9|selectors|*1|*6|$8|commands|$10|-@all +set|$4|keys|$2|~d|$8|channels|$0||";
    assert_eq!(admin.ask("acl getuser bob"), shown);
    let line = "user bob on ~a:* %R~c:* resetchannels &n:* -@all +@read -mget (~d resetchannels -@all +set)|";
    assert!(admin.ask("acl list").contains(line));
    for (command, wanted) in [
        ("get a:1", "+OK|"),
        ("set d x", "+OK|"),
        ("get b:1", "|This user has no permissions to access the 'b:1' key|"),
        ("set a:1 x", "|This user has no permissions to access the 'a:1' key|"),
        ("client list", "|This user has no permissions to run the 'client|list' command|"),
    ] {
        assert!(admin.ask(&format!("acl dryrun bob {command}")).ends_with(wanted), "{command}");
    }
    let mut bob = log_in(&rig, "bob");
    bob.ask("get b:1");
    bob.ask("get b:1");
    bob.ask("del a:1");
    assert!(rig.redis().ask("auth bob wrong").starts_with("-WRONGPASS"));
    assert!(rig.redis().ask("acl setuser bob off").starts_with("-NOPERM"));
    let log = admin.ask("acl log");
    for wanted in [
        "*14|$5|count|:1|$6|reason|$4|auth|$7|context|$8|toplevel|$6|object|$4|AUTH|$8|username|$3|bob|",
        "|:1|$6|reason|$7|command|$7|context|$8|toplevel|$6|object|$3|del|$8|username|$3|bob|",
        "|:2|$6|reason|$3|key|$7|context|$8|toplevel|$6|object|$3|b:1|$8|username|$3|bob|",
    ] {
        assert!(log.contains(wanted), "{log}");
    }
    assert_eq!(admin.ask("acl log reset"), "+OK|");
    assert_eq!(admin.ask("acl log"), "*0|");
    for (rules, wanted) in [
        ("+nothing", "Error in ACL SETUSER modifier '+nothing': Unknown command or category name in ACL|"),
        ("%~x", "Error in ACL SETUSER modifier '%~x': Syntax error|"),
        ("(+get ~x", "Unmatched parenthesis in acl selector starting at '(+get'.|"),
        ("+get nopass", "a user has one password here: '>' with a new one replaces it|"),
    ] {
        assert!(admin.ask(&format!("acl setuser bob {rules}")).ends_with(wanted), "{rules}");
    }
    assert_eq!(admin.ask("acl getuser bob"), shown, "all or nothing");
    let long = format!("acl setuser bob ~{}", "x".repeat(70_000));
    assert!(admin.ask(&long).contains("at most 65536 bytes"));
}

/// What users may do by rules is what Redis says, of every command.
#[test]
fn rules_mean_what_they_mean_in_redis() {
    let rig = Rig::start("");
    let mut admin = rig.redis();
    assert_eq!(admin.ask("auth admin b"), "+OK|");
    play_to(&rig, &mut admin, "rules.txt", 16);
}

/// Keys are where the commands themselves look for them: a value may look like an option.
#[test]
fn a_value_that_looks_like_an_option_is_no_way_around() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    assert_eq!(admin.ask("xgroup create b:x streams 0"), "+OK|");
    assert_eq!(admin.ask("acl setuser eve on >pw ~a:* ~asc ~storedist ~streams ~s &* +@all"), "+OK|");
    let mut eve = log_in(&rig, "eve");
    for command in [
        "sort a:l store b:9 by store asc",
        "sort a:l store store asc",
        "sort a:l store a:9 store b:9 by store asc",
        "georadius a:g 1 1 1 km store a:x storedist b:9",
        "georadius a:g 1 1 1 km storedist a:x store b:9",
        "georadiusbymember a:g x 1 km storedist a:x store b:9 count 1",
        "georadius a:g 1 1 1 km store b:9 storedist a:x",
        "xreadgroup group streams s streams b:x >",
        "xreadgroup group streams s noack streams b:x >",
    ] {
        let answer = eve.ask(command);
        assert!(
            answer.starts_with("-NOPERM this user has no permissions to access one of the keys"),
            "{command}: {answer}"
        );
    }
    assert_eq!(admin.ask("exists b:9 store"), ":0|");
    assert_eq!(eve.ask("sort a:l store a:9 by store asc"), ":2|");
    assert_eq!(eve.ask("georadius a:g 1 1 1 km store a:x storedist a:y"), ":1|");
    assert_eq!(admin.ask("exists a:9 a:x a:y"), ":2|");
}

/// Waits until so many clients wait for keys.
fn wait_for_blocked(admin: &mut Redis, count: usize) {
    while !admin.ask("info clients").contains(&format!("blocked_clients:{count}|")) {}
}

/// Who waits gets nothing that it may not have when it comes.
#[test]
fn who_waits_may_lose_the_right_meanwhile() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    assert_eq!(admin.ask("acl setuser bob on >pw ~a:* &* +@all"), "+OK|");
    let mut bob = log_in(&rig, "bob");
    bob.send(&[b"blpop", b"a:w", b"0"]);
    wait_for_blocked(&mut admin, 1);
    assert_eq!(admin.ask("acl setuser bob -blpop"), "+OK|");
    assert_eq!(admin.ask("rpush a:w 1"), ":1|");
    let refused = String::from_utf8(bob.answer()).unwrap();
    assert_eq!(refused, "-NOPERM this user has no permissions to run the 'blpop' command\r\n");
    bob.send(&[b"xread", b"block", b"0", b"streams", b"a:x", b"$"]);
    wait_for_blocked(&mut admin, 1);
    assert_eq!(admin.ask("acl setuser bob resetkeys ~c:*"), "+OK|");
    assert!(String::from_utf8(bob.answer()).unwrap().starts_with("-NOPERM this user has no permissions to access"));
    // A pause is a wait, too.
    assert_eq!(admin.ask("acl setuser bob ~a:*"), "+OK|");
    assert_eq!(admin.ask("client pause 1000000 write"), "+OK|");
    bob.send(&[b"set", b"a:1", b"x"]);
    wait_for_blocked(&mut admin, 1);
    assert_eq!(admin.ask("acl setuser bob -set"), "+OK|");
    assert_eq!(admin.ask("client unpause"), "+OK|");
    assert!(String::from_utf8(bob.answer()).unwrap().ends_with("run the 'set' command\r\n"));
    // Who is dropped waits no longer, and takes nothing.
    assert_eq!(admin.ask("acl setuser bob +blpop"), "+OK|");
    assert_eq!(admin.ask("del a:w"), ":1|");
    bob.send(&[b"blpop", b"a:w", b"0"]);
    wait_for_blocked(&mut admin, 1);
    assert_eq!(admin.ask("acl deluser bob"), ":1|");
    let answer = String::from_utf8(bob.answer()).unwrap();
    assert!(answer.is_empty() || answer == "*-1\r\n", "{answer}");
    assert!(bob.answer().is_empty());
    // Users without rules, and those whom another door takes something from, are no exception.
    let make = "box.session.su('admin') box.schema.user.create('plain', {password = 'pw'})
                for _, name in ipairs{'redis', 'redis_lists'} do box.schema.user.grant('plain', 'read,write', 'space', name) end return 'made'";
    assert_eq!(value(&mut rig.server.connect(), make), "made");
    let mut plain = log_in(&rig, "plain");
    plain.send(&[b"blpop", b"a:w", b"0"]);
    assert_eq!(admin.ask("acl setuser cat on >pw ~a:* &* +@all"), "+OK|");
    let mut cat = log_in(&rig, "cat");
    cat.send(&[b"blpop", b"a:w", b"0"]);
    wait_for_blocked(&mut admin, 2);
    let take = "box.session.su('admin') box.schema.user.revoke('plain', 'read,write', 'space', 'redis')
                box.schema.user.revoke('cat', 'execute', 'role', 'redis_acl') return 'taken'";
    assert_eq!(value(&mut rig.server.connect(), take), "taken");
    assert_eq!(admin.ask("rpush a:w 1"), ":1|");
    for client in [&mut plain, &mut cat] {
        assert!(String::from_utf8(client.answer()).unwrap().starts_with("-NOPERM"));
    }
    assert_eq!(admin.ask("lrange a:w 0 -1"), "*1|$1|1|");
}

/// What another door does to users and their rules holds for the next command.
#[test]
fn rules_are_looked_after_whichever_door_changes_them() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    let mut client = rig.server.connect();
    let mut lua = |text: &str| {
        let text = format!(
            "box.session.su('admin') local users, rules = box.space._user.index.name, box.space.redis_acl {text} return 'done'"
        );
        assert_eq!(value(&mut client, &text), "done");
    };
    assert_eq!(admin.ask("acl setuser bob on >pw ~a:* &* +get +publish"), "+OK|");
    let mut bob = log_in(&rig, "bob");
    assert_eq!(bob.ask("get a:1"), "$3|own|");
    lua("rules:update(users:get('bob').id, {{'=', 2, '~b:* -@all +get'}})");
    assert!(bob.ask("get a:1").starts_with("-NOPERM") && bob.ask("get b:1") == "$6|secret|");
    // What cannot be read allows nothing, and is shown as what it is.
    for text in [
        "'~* &* +@all +nothing'",
        "'~* +@all ( '",
        "'\\0\\1'",
        "''",
        "('( a'):rep(100000)",
        "('~* '):rep(30000) .. '+@all'",
    ] {
        lua(&format!("rules:replace{{users:get('bob').id, {text}}}"));
        assert!(bob.ask("get b:1").ends_with("run the 'get' command|"), "{text}");
        assert!(admin.ask("acl getuser bob").contains("|$8|commands|$5|-@all|$4|keys|$0||"), "{text}");
    }
    lua(
        "rules:format({}) rules:replace{users:get('bob').id} rules:replace{4000000000000, {1, 2}} rules:replace{0, {}}",
    );
    assert!(bob.ask("get b:1").ends_with("run the 'get' command|"));
    lua("rules:replace{users:get('bob').id, '~* +@all'}");
    assert_eq!(bob.ask("get b:1"), "$6|secret|");
    lua("rules:truncate()");
    assert!(bob.ask("get b:1").ends_with("run the 'get' command|"));
    // Rights on the spaces are no rules: who has the role has none but those that stand there.
    lua("box.schema.user.grant('bob', 'read', 'space', 'redis')");
    assert!(bob.ask("get b:1").ends_with("run the 'get' command|"));
    assert!(admin.ask("acl getuser bob").contains("|$8|commands|$5|-@all|"));
    assert_eq!(admin.ask("acl setuser bob +get ~a:*"), "+OK|");
    assert!(bob.ask("get a:1") == "$3|own|" && bob.ask("get b:1").starts_with("-NOPERM"));
    // Who is dropped is gone, also for what no space is needed for, and whoever has the number now.
    assert_eq!(admin.ask("acl setuser bob &* +publish"), "+OK|");
    let mut other = log_in(&rig, "bob");
    assert_eq!(bob.ask("publish x y"), ":0|");
    lua("box.schema.user.drop('bob')");
    assert!(bob.ask("publish x y").starts_with("-NOPERM") && bob.answer().is_empty());
    assert_eq!(admin.ask("acl setuser eve on >pw ~* &* +@all -flushall"), "+OK|");
    assert!(other.answer().is_empty(), "another user has the number");
    // Without the space nobody has more than before.
    let mut eve = log_in(&rig, "eve");
    lua("rules:drop()");
    assert!(eve.ask("get a:1").ends_with("run the 'get' command|") && eve.ask("ping").starts_with("-NOPERM"));
    assert!(
        admin
            .ask("acl setuser eve +get")
            .contains("the space 'redis_acl' is gone: it is made when the server begins to listen")
    );
}

#[test]
fn who_may_do_everything_may_use_every_database() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    assert_eq!(admin.ask("acl setuser full on >pw ~* &* +@all"), "+OK|");
    assert_eq!(admin.ask("acl setuser sees on >pw ~* &* +@all -@write"), "+OK|");
    let (mut full, mut sees) = (log_in(&rig, "full"), log_in(&rig, "sees"));
    assert_eq!(full.ask("select 3"), "+OK|");
    assert_eq!(full.ask("set x 1"), "+OK|");
    assert_eq!(sees.ask("select 3"), "+OK|");
    assert_eq!(sees.ask("get x"), "$1|1|");
    // By other doors, too, and nobody else.
    let may = |user: &str, privilege: &str| {
        value(
            &mut rig.server.connect(),
            &format!(
                "box.session.su('{user}') return tostring(pcall(box.space.redis_3.{privilege}, box.space.redis_3, {{'y', 'z'}}))"
            ),
        )
    };
    assert!(may("full", "replace").starts_with("true") && may("sees", "replace").starts_with("false"));
    // `reader` has the right on everything.
    assert_eq!(admin.ask("acl setuser few on >pw ~a +get"), "+OK|");
    assert!(may("few", "replace").starts_with("false"));
}

#[test]
fn what_costs_much_or_is_half_done_is_bounded() {
    let rig = Rig::start("");
    let mut admin = begin(&rig);
    // Rules that are too long are not read.
    let mut open = vec![b"acl".as_slice(), b"setuser", b"slow", b"("];
    open.resize(200_000, b"a");
    admin.send(&open);
    assert!(String::from_utf8(admin.answer()).unwrap().contains("at most 65536 bytes"));
    assert_eq!(admin.ask("acl setuser bob on >pw %R~* %W~* ~a:* &* +@all"), "+OK|");
    let mut bob = log_in(&rig, "bob");
    assert_eq!(bob.ask("get b:1"), "$6|secret|");
    admin.send(&[b"acl", b"setuser", b"\xff\xfe"]);
    assert_eq!(admin.answer(), b"-ERR the name of a user is a text in UTF-8\r\n");
    // Names of those who do not come in are cut.
    let mut stranger = rig.redis();
    assert!(stranger.ask(&format!("auth {} x", "u".repeat(1 << 20))).starts_with("-WRONGPASS"));
    assert!(admin.ask("acl log 1").contains(&format!("|$8|username|$1024|{}|", "u".repeat(1024))));
    // A login within a transaction is refused, and the transaction with it.
    assert_eq!(stranger.ask("multi"), "+OK|");
    assert!(stranger.ask("auth bob pw").starts_with("-ERR Command not allowed inside a transaction"));
    assert_eq!(stranger.ask("set a:9 x"), "+QUEUED|");
    assert!(stranger.ask("exec").starts_with("-EXECABORT"));
    // Of several users those who can be dropped are gone at once.
    let mut listener = log_in(&rig, "bob");
    assert!(listener.ask("subscribe x").starts_with("*3|"));
    assert!(admin.ask("acl deluser bob admin").starts_with("-ERR Failed to drop user or role 'admin'"));
    assert!(bob.answer().is_empty() && listener.answer().is_empty());
    assert!(admin.ask("acl deluser redis").starts_with("-ERR Failed to drop user or role 'redis'"));
    // Modules are a part of rules that programs come with.
    assert_eq!(admin.ask("acl setuser app on >pw ~* &* +@all -module -@dangerous"), "+OK|");
    assert_eq!(admin.ask("module list"), "*0|");
    assert!(log_in(&rig, "app").ask("module list").starts_with("-NOPERM"));
}

/// Clients that are told a password and no name say `default`, or nothing: they mean the user that the listener names.
#[test]
fn who_gives_a_password_only_is_the_listeners_user() {
    let rig = Rig::start_for("boss@", "?auth=required");
    let mut client = rig.redis();
    assert_eq!(client.ask("get a"), "-NOAUTH Authentication required.|");
    assert!(client.ask("hello 3 auth default wrong").starts_with("-WRONGPASS"));
    assert!(client.ask("hello 3 auth default b").starts_with("%7|"));
    assert_eq!(client.ask("acl whoami"), "$4|boss|");
    for login in ["auth b", "auth default b"] {
        let mut client = rig.redis();
        assert_eq!(client.ask(login), "+OK|");
        assert_eq!(client.ask("acl whoami"), "$4|boss|");
    }
    // Unless somebody is called so.
    assert_eq!(client.ask("auth admin b"), "+OK|");
    assert_eq!(client.ask("acl setuser default on >own +acl|whoami"), "+OK|");
    let mut client = rig.redis();
    assert!(client.ask("auth default b").starts_with("-WRONGPASS"));
    assert_eq!(client.ask("auth default own"), "+OK|");
    assert!(client.ask("acl whoami") == "$7|default|" && client.ask("get a").starts_with("-NOPERM"));
    assert!(Rig::start("").redis().ask("hello 3 auth default b").starts_with("-WRONGPASS"));
}
