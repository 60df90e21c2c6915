//! The voting service of `examples/voting`: its procedures on the binary, and its own tests with nginx, PHP and a browser where those are installed.

use lycosa_tests::{Client, Rig, binary, request, root};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tuple::msgpack;
use wire::{key, request_type};

const VOTERS: u64 = 4;
const KILLS: u64 = 3;
/// Votes that are acknowledged between two kills.
const VOTES: u64 = 200;
/// Until so many votes must have come.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(session_seconds: u64) -> Rig {
    let script = format!(
        "package.path = [[{}/?.lua;]] .. package.path
         voting = require('voting')
         voting.start({{ stickers = 50, session_seconds = {session_seconds}, web_password = 'secret' }})
         box.schema.user.grant('guest', 'read,write,execute', 'universe', nil, {{ if_not_exists = true }})",
        root().join("examples/voting").display()
    );
    Rig::start(script.leak(), &[])
}

/// Of all votes: how many are for a sticker, how many against one, and whether every rating is what its votes say.
const SUMS: &str = "
    local plus, minus, wrong = 0, 0, 0
    for _, sticker in box.space.stickers:pairs() do
        plus, minus = plus + sticker.plus, minus + sticker.minus
        wrong = wrong + (sticker.rating == sticker.plus - sticker.minus and 0 or 1)
    end
    return plus * 1000000 + minus, tostring(wrong)
";

#[test]
fn a_vote_counts_once_and_only_with_its_token() {
    let mut rig = start(1000);
    let said = rig.answer(
        "local id, is_new, left, right = voting.page(nil, nil, 'secret of the first', 'token of a page')
         local _, other_is_new = voting.page(id, 'secret of another', 'secret of the second', 'token of the second')
         local said = { tostring(is_new), tostring(other_is_new), tostring(left ~= right) }
         for _, call in ipairs({
             { id, 'secret of another', 'token of a page', 1 }, { id, 'secret of the first', 'token of the second', 1 },
             { id, 'secret of the first', 'token of a page', 3 }, { -1, 'secret of the first', 'token of a page', 1 },
             { 'x', 'secret of the first', 'token of a page', 1 }, { id, 'secret of the first', 'token of a page', 1 },
             { id, 'secret of the first', 'token of a page', 1 }, { id, 'secret of the first', 'token of a page', 2 },
         }) do
             table.insert(said, voting.vote(unpack(call)))
         end
         return id, table.concat(said, ', ')",
    );
    let refusals = "no session, no ballot, no ballot, no session, no session";
    assert_eq!(said, (1, format!("true, true, true, {refusals}, counted, counted before, counted before")));
    assert_eq!(rig.answer(SUMS), (1_000_001, "0".to_string()));
}

#[test]
fn a_session_that_has_ended_is_another_one() {
    let mut rig = start(1);
    assert_eq!(rig.number("return (voting.page(nil, nil, 'secret', 'token'))"), 1);
    let waited = "local until_time = require('clock').time() + 30
        while box.space.sessions:get(1) ~= nil and require('clock').time() < until_time do require('fiber').yield() end
        local said = voting.vote(1, 'secret', 'token', 1)
        return voting.page(1, 'secret', 'secret', 'token'), said";
    assert_eq!(rig.number(waited), 2);
}

#[test]
fn the_web_servers_user_may_call_and_nothing_else() {
    let rig = start(1000);
    let mut web = rig.server.connect();
    let login = web.login("web", "secret");
    assert_eq!(web.call(request_type::AUTH, &login).error, None);
    assert_eq!(call(&mut web, "voting.best", &[]).error, None);
    for name in ["voting.add_sessions", "box.space.sessions:select", "box.schema.user.create"] {
        assert!(call(&mut web, name, &[]).error.is_some(), "{name}");
    }
    assert!(web.eval("return box.space.sessions:select()").error.is_some());
}

fn call(client: &mut Client, name: &str, arguments: &[u64]) -> lycosa_tests::Reply {
    let (mut function, mut encoded) = (Vec::new(), Vec::new());
    msgpack::encode_str(&mut function, name.as_bytes());
    msgpack::encode_array(&mut encoded, arguments.len() as u32);
    arguments.iter().for_each(|&argument| msgpack::encode_uint(&mut encoded, argument));
    client.call(request_type::CALL, &request(&[(key::FUNCTION_NAME, &function), (key::TUPLE, &encoded)]))
}

/// One that votes until it is told to stop or its server dies. The token of each vote is its number, and every other vote is sent twice.
fn vote_on(address: &str, voter: u64, life: u64, is_over: &AtomicBool, acknowledged: &AtomicU64) {
    let Ok(mut client) = Client::connect(address) else { return };
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let token = format!("{life}-{voter}-{number}");
        let again = if number % 2 == 0 { "" } else { "voting.vote(id, '', token, 1)" };
        let source = format!(
            "local token = '{token}' local id = voting.page(nil, nil, '', token) {again} return voting.vote(id, '', token, 1)"
        );
        let mut expression = Vec::new();
        msgpack::encode_str(&mut expression, source.as_bytes());
        client.send(&lycosa_tests::packet(
            request_type::EVAL,
            number,
            &request(&[(key::EXPRESSION, &expression), (key::TUPLE, &[0x90])]),
        ));
        match client.try_receive() {
            Ok(reply) => assert_eq!(reply.error, None),
            Err(_) => return,
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn no_vote_is_lost_or_counted_twice_when_the_server_is_killed() {
    let mut rig = start(1000);
    let acknowledged = AtomicU64::new(0);
    for life in 1..=KILLS {
        let is_over = AtomicBool::new(false);
        let address = rig.server.address().to_string();
        std::thread::scope(|scope| {
            for voter in 0..VOTERS {
                let (address, is_over, acknowledged) = (&address, &is_over, &acknowledged);
                scope.spawn(move || vote_on(address, voter, life, is_over, acknowledged));
            }
            let begun = Instant::now();
            while acknowledged.load(Ordering::Relaxed) < life * VOTES && begun.elapsed() < PATIENCE {
                rig.client.ping();
            }
            rig.server.kill();
            is_over.store(true, Ordering::Relaxed);
        });
        rig.restart(&[]);
        let (sums, wrong) = rig.answer(SUMS);
        let (plus, minus) = (sums / 1_000_000, sums % 1_000_000);
        let known = acknowledged.load(Ordering::Relaxed);
        assert!(known >= life * VOTES, "{known} votes were counted");
        assert_eq!((plus, &wrong[..]), (minus, "0"), "a vote is all there or not at all");
        // Those whose answers were on their way may be there.
        assert!((known..=known + life * VOTERS).contains(&plus), "{known} were acknowledged, {plus} are there");
    }
}

#[test]
fn the_pages_keep_their_promises_where_nginx_and_php_are_installed() {
    let tests = root().join("examples/voting/tests.py");
    let done =
        Command::new("python3").arg(tests).arg("--server").arg(binary()).args(["Pages", "PagesThroughRedis"]).output();
    let done = done.expect("python3 is there");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
    for line in said.lines().filter(|line| line.starts_with("SKIPPED")) {
        println!("{line}");
    }
}
