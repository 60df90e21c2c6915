//! Scripts that run long: what others are answered meanwhile, and how they are ended.

use super::{Redis, Rig};

const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.|";
const BUSY_FUNCTION: &str =
    "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.|";

fn eval(client: &mut Redis, script: &str) {
    client.send(&[b"eval", script.as_bytes(), b"0"]);
}

/// Asks until the answer says that a script is busy.
fn wait_until_busy(client: &mut Redis) {
    while !client.ask("ping").starts_with("-BUSY") {}
}

/// An endless script answers others with BUSY, as Redis does, and ends when somebody says so: in whatever the loop is.
#[test]
fn a_script_that_runs_long_leaves_others_the_word() {
    let rig = Rig::start("");
    let (mut long, mut other, mut third) = (rig.redis(), rig.redis(), rig.redis());
    assert_eq!(other.ask("script kill"), "-NOTBUSY No scripts in execution right now.|");
    assert_eq!(other.ask("config set lua-time-limit 10"), "+OK|");
    let loops = [
        "while true do end",
        "local function f() while 1 do redis.call('ping') end end while 1 do pcall(f) end",
        "local again = coroutine.wrap(function() while true do end end) again()",
        "while true do pcall(string.rep, 'x', 10) end",
    ];
    for script in loops {
        eval(&mut long, script);
        wait_until_busy(&mut other);
        assert_eq!(other.ask("function kill"), BUSY);
        assert_eq!(other.ask("function stats"), BUSY);
        // What was begun before is over: nothing of it runs, and nothing later is taken for a part of it.
        assert_eq!(third.ask("multi"), "+OK|");
        assert_eq!(third.ask("incr x"), BUSY);
        assert_eq!(third.ask("exec"), format!("-EXECABORT Transaction discarded because of: {}", &BUSY[1..]));
        assert_eq!(third.ask("get x"), BUSY);
        assert_eq!(other.ask("script kill"), "+OK|");
        let answer = String::from_utf8(long.answer()).unwrap();
        assert!(answer.starts_with("-ERR Script killed by user with SCRIPT KILL."), "{answer}");
        for client in [&mut long, &mut other, &mut third] {
            assert_eq!(client.ask("ping"), "+PONG|");
        }
        assert_eq!(third.ask("get x"), "$-1|");
    }
    // Other doors are served, and a start and a stop of the server do not wait for it.
    eval(&mut long, "while true do end");
    wait_until_busy(&mut other);
    assert_eq!(super::value(&mut rig.server.connect(), "return 'served'"), "served");
}

/// One that has written goes on to its end, by itself or within EXEC, and others see all that it did or nothing.
#[test]
fn a_script_that_has_written_is_not_killed() {
    let rig = Rig::start("");
    let (mut long, mut other) = (rig.redis(), rig.redis());
    assert_eq!(other.ask("config set busy-reply-threshold 10"), "+OK|");
    let script = "redis.call('set', 'k', '1') redis.call('set', 'n', '0') \
                  repeat redis.call('incr', 'n') until redis.call('client', 'list'):find('name=enough') \
                  return redis.call('get', 'n')";
    assert_eq!(other.ask("debug set-disable-deny-scripts 1"), "+OK|");
    for is_transaction in [false, true] {
        if is_transaction {
            assert_eq!(long.ask("multi"), "+OK|");
        }
        eval(&mut long, script);
        if is_transaction {
            assert_eq!(long.answer(), b"+QUEUED\r\n");
            long.send(&[b"exec"]);
        }
        wait_until_busy(&mut other);
        assert!(other.ask("script kill").starts_with("-UNKILLABLE Sorry the script already executed write commands"));
        assert_eq!(other.ask("get k"), BUSY);
        assert!(other.ask("hello 2 setname enough").starts_with('*'));
        let answer = String::from_utf8(long.answer()).unwrap();
        let counted = answer.lines().last().unwrap().to_string();
        assert!(counted.parse::<u64>().unwrap() > 1, "{answer}");
        assert_eq!(other.ask("get n"), format!("${}|{counted}|", counted.len()));
        other.ask("hello 2 setname more");
    }
}

/// A function is ended by FUNCTION KILL only, and FUNCTION STATS shows it.
#[test]
fn a_function_that_runs_long_is_shown_and_killed() {
    let rig = Rig::start("");
    let (mut long, mut other) = (rig.redis(), rig.redis());
    assert_eq!(other.ask("config set busy-reply-threshold 10"), "+OK|");
    other.send(&[
        b"function",
        b"load",
        b"#!lua name=l\nredis.register_function('f', function() while true do end end)",
    ]);
    assert_eq!(other.answer(), b"$1\r\nl\r\n");
    long.send(&[b"fcall", b"f", b"0", b"x"]);
    wait_until_busy(&mut other);
    assert_eq!(other.ask("ping"), BUSY_FUNCTION);
    assert_eq!(other.ask("script kill"), BUSY_FUNCTION);
    let stats = other.ask("function stats");
    let shown = "*4|$14|running_script|*6|$4|name|$1|f|$7|command|*4|$5|fcall|$1|f|$1|0|$1|x|$11|duration_ms|:";
    assert!(stats.starts_with(shown), "{stats}");
    // Who may read only ends nobody else's.
    let mut reader = rig.redis();
    assert_eq!(reader.ask("auth reader secret"), "+OK|");
    assert!(reader.ask("function kill").starts_with("-NOPERM"));
    let stats = reader.ask("function stats");
    assert!(stats.contains("|$4|name|$1|f|$7|command|*0|"), "arguments are not everybody's: {stats}");
    assert_eq!(other.ask("function kill"), "+OK|");
    assert!(long.answer().starts_with(b"-ERR Script killed by user"));
    assert!(other.ask("function stats").starts_with("*4|$14|running_script|$-1|"));
}
