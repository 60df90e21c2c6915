//! Rules of `ACL SETUSER`: what a user reaches by them, and by no way around them.

use super::{Redis, Rig};

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
