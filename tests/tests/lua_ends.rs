//! Whatever Lua code does, it ends: loops in finalizers, in patterns, in encoders get an error; the main script's at SIGTERM.

use lycosa_tests::printed;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a function that is given as text ends with, under a short bound.
fn end_of(body: &str) -> String {
    printed(&format!(
        "local fiber = require('fiber')
        fiber.set_max_slice(0.3)
        local work = fiber.new(function() {body} end)
        work:set_joinable(true)
        print(select(2, work:join()))
        os.exit()"
    ))
}

const TOO_LONG: &str = "fiber slice is exceeded: the code ran too long without waiting\n";

#[test]
fn finalizers_that_loop_are_ended() {
    let userdata = "local p = newproxy(true) getmetatable(p).__gc = function() while true do end end p = nil \
                    collectgarbage() collectgarbage()";
    assert_eq!(end_of(userdata), TOO_LONG);
    let cdata = "local ffi = require('ffi') local p = ffi.gc(ffi.new('int[1]'), function() while true do end end) p = nil \
                 collectgarbage() collectgarbage()";
    assert_eq!(end_of(cdata), TOO_LONG);
}

#[test]
fn patterns_that_try_everything_are_ended() {
    for body in [
        "return ('a'):rep(40):find(('a-'):rep(40) .. 'b')",
        "return ('a'):rep(40):match(('a*'):rep(40) .. 'b')",
        "return (('a'):rep(40):gsub(('a?'):rep(40) .. ('a'):rep(40) .. 'b', ''))",
        "for _ in ('a'):rep(40):gmatch(('a-'):rep(40) .. 'b') do end",
    ] {
        let end = end_of(body);
        assert!(end.ends_with(TOO_LONG), "{body}: {end}");
    }
}

#[test]
fn a_plain_search_takes_time_in_the_sum_of_its_lengths() {
    assert_eq!(end_of("return (('a'):rep(1000000):find(('a'):rep(500000) .. 'b', 1, true))"), "nil\n");
    assert_eq!(end_of("return ((('a'):rep(1000000) .. 'b'):find(('a'):rep(500000) .. 'b', 1, true))"), "500001\n");
}

#[test]
fn encoding_tables_that_hold_each_other_many_times_is_ended() {
    for module in ["msgpack", "json"] {
        let body = format!("local x = {{1}} for _ = 1, 100 do x = {{x, x}} end return #require('{module}').encode(x)");
        assert_eq!(end_of(&body), TOO_LONG);
    }
    assert_eq!(end_of("return #require('digest').pbkdf2('a', 'b', 1e9, 64)"), TOO_LONG);
}

#[test]
fn a_script_that_runs_for_ever_ends_at_sigterm() {
    let dir = TempDir::new().expect("a temporary directory");
    let path = dir.path().join("script.lua");
    let script = "local f = io.open('ready', 'w') f:close() while true do pcall(function() while true do end end) end";
    std::fs::write(&path, script).expect("the script can be written");
    let mut child = Command::new(lycosa_tests::binary())
        .arg(&path)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let begun = Instant::now();
    let wait_for = |condition: &mut dyn FnMut() -> bool| {
        while !condition() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it goes on for ever");
            std::thread::yield_now();
        }
    };
    wait_for(&mut || Path::new(&dir.path().join("ready")).exists());
    let killed = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().expect("kill runs");
    assert!(killed.success());
    wait_for(&mut || child.try_wait().expect("it is a child").is_some());
}
