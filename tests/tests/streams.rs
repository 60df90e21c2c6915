//! Interactive transactions over the binary protocol, packet by packet.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Reply, Rig, request};
use tuple::msgpack;
use wire::{key, request_type};

const SCRIPT: &str = "
    box.cfg{}
    box.schema.user.grant('guest', 'read,write,execute,create,drop', 'universe', nil, {if_not_exists = true})
    s = box.schema.space.create('s', {id = 600, if_not_exists = true})
    s:create_index('pk', {if_not_exists = true})
    d = box.schema.space.create('d', {id = 601, engine = 'vinyl', if_not_exists = true})
    d:create_index('pk', {if_not_exists = true})
    fiber = require('fiber')
";

fn rig() -> Rig {
    Rig::start(SCRIPT, &[])
}

/// A packet of a stream.
fn in_stream(stream: u64, request_type: u64, sync: u64, body: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    msgpack::encode_map(&mut header, 3);
    for value in [key::REQUEST_TYPE, request_type, key::SYNC, sync, key::STREAM_ID, stream] {
        msgpack::encode_uint(&mut header, value);
    }
    let mut out = vec![0xce];
    out.extend_from_slice(&((header.len() + body.len()) as u32).to_be_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(body);
    out
}

fn call(client: &mut Client, stream: u64, request_type: u64, body: &[u8]) -> Reply {
    client.send(&in_stream(stream, request_type, 7, body));
    let reply = client.receive();
    assert_eq!(reply.sync, 7);
    reply
}

fn row(space: u64, values: &[u64]) -> Vec<u8> {
    let mut tuple = Vec::new();
    msgpack::encode_array(&mut tuple, values.len() as u32);
    values.iter().for_each(|value| msgpack::encode_uint(&mut tuple, *value));
    let mut id = Vec::new();
    msgpack::encode_uint(&mut id, space);
    request(&[(key::SPACE_ID, &id), (key::TUPLE, &tuple)])
}

fn all(space: u64) -> Vec<u8> {
    let mut id = Vec::new();
    msgpack::encode_uint(&mut id, space);
    request(&[(key::SPACE_ID, &id), (key::LIMIT, &[100]), (key::ITERATOR, &[2]), (key::KEY, &[0x90])])
}

fn source(text: &str) -> Vec<u8> {
    let mut expression = Vec::new();
    msgpack::encode_str(&mut expression, text.as_bytes());
    request(&[(key::EXPRESSION, &expression), (key::TUPLE, &[0x90])])
}

fn insert(client: &mut Client, stream: u64, space: u64, values: &[u64]) -> Reply {
    call(client, stream, request_type::INSERT, &row(space, values))
}

fn begin(client: &mut Client, stream: u64) {
    assert_eq!(call(client, stream, request_type::BEGIN, &[0x80]).error, None);
}

fn commit(client: &mut Client, stream: u64) -> Reply {
    call(client, stream, request_type::COMMIT, &[])
}

fn streams_open(rig: &mut Rig) -> u64 {
    rig.number("return box.stat.net().STREAMS.current")
}

#[test]
fn what_a_stream_writes_is_its_own_until_it_commits() {
    let mut rig = rig();
    let client = &mut rig.client;
    for space in [600, 601] {
        begin(client, 1);
        begin(client, 2);
        assert_eq!(insert(client, 1, space, &[1, 10]).code(), 0);
        assert_eq!(insert(client, 2, space, &[2, 20]).code(), 0);
        for (stream, count) in [(1, 1), (2, 1), (0, 0), (3, 0)] {
            assert_eq!(call(client, stream, request_type::SELECT, &all(space)).count(), count, "stream {stream}");
        }
        assert_eq!(commit(client, 1).error, None);
        assert_eq!(call(client, 0, request_type::SELECT, &all(space)).count(), 1);
        assert_eq!(call(client, 2, request_type::ROLLBACK, &[]).error, None);
        assert_eq!(call(client, 0, request_type::SELECT, &all(space)).count(), 1);
    }
    assert_eq!(streams_open(&mut rig), 0);
    rig.restart(&[]);
    assert_eq!(rig.number("return box.space.s:count() * 10 + box.space.d:count()"), 11);
}

#[test]
fn the_first_of_two_streams_to_commit_wins() {
    let mut rig = rig();
    let client = &mut rig.client;
    begin(client, 1);
    begin(client, 2);
    assert_eq!(insert(client, 1, 600, &[1, 10]).code(), 0);
    assert_eq!(insert(client, 2, 600, &[1, 20]).code(), 0);
    assert_eq!(commit(client, 2).error, None);
    assert_eq!(commit(client, 1).code(), 97);
    // The transaction has ended with that.
    assert_eq!(commit(client, 1).error, None);
    assert_eq!(rig.number("return box.space.s:get(1)[2]"), 20);
    assert_eq!(streams_open(&mut rig), 0);
}

#[test]
fn every_misuse_has_its_own_error() {
    let mut rig = rig();
    let client = &mut rig.client;
    let refused = |reply: Reply| reply.error.unwrap_or_default();
    for (request_type, name) in [(14, "BEGIN"), (15, "COMMIT"), (16, "ROLLBACK")] {
        let reply = call(client, 0, request_type, &[0x80]);
        assert_eq!(refused(reply), (230, format!("Unable to process {name} request out of stream")));
    }
    for (request_type, name) in [(request_type::ID, "ID"), (request_type::AUTH, "AUTH")] {
        let login = client.login("guest", "");
        let reply = call(client, 1, request_type, &login);
        assert_eq!(refused(reply), (229, format!("Unable to process {name} request in stream")));
    }
    // Nothing is committed and nothing is rolled back.
    assert_eq!(commit(client, 1).error, None);
    assert_eq!(call(client, 1, request_type::ROLLBACK, &[]).error, None);
    begin(client, 1);
    assert_eq!(call(client, 1, request_type::BEGIN, &[0x80]).code(), 79);
    // A statement that fails leaves the transaction as it is.
    assert_eq!(insert(client, 1, 600, &[1]).code(), 0);
    assert_eq!(insert(client, 1, 600, &[1]).code(), 3);
    assert_eq!(insert(client, 1, 999, &[1]).code(), 36);
    assert_eq!(call(client, 1, request_type::INSERT, &[0x80]).code(), 69);
    assert_eq!(call(client, 1, request_type::INSERT, &[0xc1]).code(), 20);
    assert_eq!(call(client, 1, request_type::PING, &[]).code(), 0);
    assert_eq!(call(client, 1, request_type::EXECUTE, &[0x80]).code(), 69);
    assert_eq!(commit(client, 1).error, None);
    assert_eq!(call(client, 1, request_type::SELECT, &all(600)).count(), 1);
    let bodies: [(&[u8], u64); 9] = [
        (&[0x81, 0x59, 4], 0),
        (&[0x81, 0x59, 5], 1),
        (&[0x81, 0x59, 0xa0], 20),
        (&[0x81, 0x56, 0xa0], 20),
        (&[0x81, 0x56, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0], 0),
        (&[0x81, 0x56, 0xcb, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0], 1),
        (&[0x81, 0x56, 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], 1),
        (&[0x81, 0x56, 0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0], 0),
        (&[0x83, 0x61, 0xc3, 0xa1, 0x61, 0xc0, 0x56, 5], 0),
    ];
    for (body, code) in bodies {
        assert_eq!(call(client, 5, request_type::BEGIN, body).code(), code, "{body:?}");
        assert_eq!(call(client, 5, request_type::ROLLBACK, &[]).code(), 0);
    }
    assert_eq!(streams_open(&mut rig), 0);
}

#[test]
fn procedures_are_part_of_the_transaction_and_may_begin_and_end_it() {
    let mut rig = rig();
    let client = &mut rig.client;
    begin(client, 1);
    assert_eq!(call(client, 1, request_type::EVAL, &source("fiber.sleep(0.01) box.space.s:insert{1}")).code(), 0);
    assert_eq!(call(client, 0, request_type::SELECT, &all(600)).count(), 0);
    // An error in a procedure leaves the transaction open.
    assert_eq!(call(client, 1, request_type::EVAL, &source("error('no')")).code(), 32);
    assert_eq!(call(client, 1, request_type::EVAL, &source("box.commit()")).code(), 0);
    assert_eq!(call(client, 0, request_type::SELECT, &all(600)).count(), 1);
    assert_eq!(call(client, 1, request_type::EVAL, &source("box.begin()")).code(), 0);
    assert_eq!(insert(client, 1, 600, &[2]).code(), 0);
    assert_eq!(call(client, 0, request_type::SELECT, &all(600)).count(), 1);
    let hook = "box.on_commit(function() fiber.sleep(0.01) committed = true end)";
    assert_eq!(call(client, 1, request_type::EVAL, &source(hook)).code(), 0);
    assert_eq!(commit(client, 1).error, None);
    assert_eq!(rig.number("return committed and box.space.s:count() or 0"), 2);
    // Outside of streams a procedure ends what it has begun.
    assert_eq!(call(&mut rig.client, 0, request_type::EVAL, &source("box.begin()")).code(), 30);
    assert_eq!(streams_open(&mut rig), 0);
}

#[test]
fn requests_of_one_stream_are_served_in_order_and_those_of_others_do_not_wait() {
    let mut rig = rig();
    let client = &mut rig.client;
    let mut bytes = in_stream(1, request_type::BEGIN, 1, &[0x80]);
    bytes.extend(in_stream(1, request_type::EVAL, 2, &source("while not go do fiber.sleep(0.001) end")));
    bytes.extend(in_stream(1, request_type::INSERT, 3, &row(600, &[1])));
    bytes.extend(in_stream(1, request_type::COMMIT, 4, &[0x80]));
    bytes.extend(in_stream(1, request_type::PING, 5, &[]));
    bytes.extend(in_stream(2, request_type::SELECT, 6, &all(600)));
    bytes.extend(in_stream(2, request_type::EVAL, 7, &source("go = true")));
    client.send(&bytes);
    let mut order: Vec<(u64, u64)> = (0..7).map(|_| client.receive()).map(|reply| (reply.sync, reply.code())).collect();
    let first = order.iter().position(|(sync, _)| *sync == 2).unwrap();
    assert!(order.iter().position(|(sync, _)| *sync == 7).unwrap() < first, "{order:?}");
    order.retain(|(sync, _)| *sync < 6);
    assert_eq!(order, (1..6).map(|sync| (sync, 0)).collect::<Vec<_>>());
    assert_eq!(rig.number("return box.space.s:count()"), 1);
}

#[test]
fn a_client_that_vanishes_leaves_no_transaction() {
    let mut rig = rig();
    let mut other = rig.server.connect();
    for stream in 1..=20 {
        begin(&mut other, stream);
        assert_eq!(insert(&mut other, stream, 600 + stream % 2, &[stream]).code(), 0);
    }
    // One of them has a request under way, and requests behind it.
    other.send(&in_stream(3, request_type::EVAL, 1, &source("while not go do fiber.sleep(0.001) end")));
    other.send(&in_stream(3, request_type::INSERT, 1, &row(601, &[99])));
    let hook = "box.on_rollback(function() fiber.sleep(0.001) undone = true end)";
    assert_eq!(call(&mut other, 4, request_type::EVAL, &source(hook)).code(), 0);
    assert_eq!(streams_open(&mut rig), 20);
    // Whatever is unread makes the system reset the connection.
    drop(other);
    assert_eq!(rig.number("while box.stat.net().STREAMS.current > 1 do fiber.sleep(0.001) end go = true return 1"), 1);
    assert_eq!(rig.number("while box.stat.net().STREAMS.current > 0 do fiber.sleep(0.001) end return 1"), 1);
    assert_eq!(streams_open(&mut rig), 0);
    assert_eq!(rig.number("return undone and box.space.d:count() or 99"), 0);
}

#[test]
fn a_transaction_without_end_is_ended_by_its_time() {
    let mut rig = rig();
    let client = &mut rig.client;
    let body = request(&[(key::TIMEOUT, &[0xcb, 0x3f, 0x84, 0x7a, 0xe1, 0x47, 0xae, 0x14, 0x7b])]);
    assert_eq!(call(client, 1, request_type::BEGIN, &body).code(), 0);
    assert_eq!(insert(client, 1, 600, &[1]).code(), 0);
    rig.eval("fiber.sleep(0.1)");
    let client = &mut rig.client;
    assert_eq!(insert(client, 1, 600, &[2]).code(), 231);
    assert_eq!(commit(client, 1).code(), 231);
    assert_eq!(insert(client, 1, 600, &[3]).code(), 0);
    assert_eq!(rig.number("return box.space.s:count()"), 1);
    assert_eq!(streams_open(&mut rig), 0);
}

#[test]
fn streams_are_bounded_and_those_without_a_transaction_cost_nothing() {
    let mut rig = rig();
    let client = &mut rig.client;
    let mut bytes = Vec::new();
    for stream in 1..=100_000_u64 {
        bytes.extend(in_stream(stream * 1_000_003, request_type::PING, stream, &[]));
    }
    client.send(&bytes);
    (0..100_000).for_each(|_| assert_eq!(client.receive().code(), 0));
    assert_eq!(streams_open(&mut rig), 0);
    let client = &mut rig.client;
    (1..=1000).for_each(|stream| begin(client, stream));
    let refused = call(client, 1001, request_type::BEGIN, &[0x80]);
    let text = "Lycosa does not support more than 1000 open streams of one connection";
    assert_eq!(refused.error, Some((5, text.to_string())));
    assert_eq!(commit(client, 500).error, None);
    begin(client, 1001);
    rig.server.connect().ping();
}

#[test]
fn a_stream_that_does_not_go_on_holds_back_its_own_connection_only() {
    let mut rig = rig();
    let mut greedy = rig.server.connect();
    greedy.send(&in_stream(1, request_type::EVAL, 1, &source("while not go do fiber.sleep(0.001) end")));
    greedy.stream().set_nonblocking(true).unwrap();
    // Large requests, as many as the system takes.
    let mut text = "-- ".repeat(1 << 18);
    text.push_str("\nreturn 1");
    let large = in_stream(1, request_type::EVAL, 2, &source(&text));
    let (mut sent, mut at) = (0, 0);
    let mut idle = 0;
    while idle < 50 {
        match std::io::Write::write(&mut greedy.stream(), &large[at..]) {
            Ok(count) => {
                at = (at + count) % large.len();
                sent += count;
                idle = 0;
            }
            Err(_) => {
                idle += 1;
                rig.eval("fiber.sleep(0.01)");
            }
        }
        assert!(sent < 200 << 20, "{sent} bytes were taken");
    }
    rig.eval("go = true");
    greedy.stream().set_nonblocking(false).unwrap();
    // The rest of the request that is under way.
    greedy.send(&large[at..]);
    let whole = sent.div_ceil(large.len());
    for _ in 0..=whole {
        assert_eq!(greedy.receive().code(), 0);
    }
    assert_eq!(streams_open(&mut rig), 0);
}

#[test]
fn a_change_of_the_schema_in_a_stream_is_seen_by_others_when_it_is_committed() {
    let mut rig = rig();
    let client = &mut rig.client;
    begin(client, 1);
    let create = "box.schema.space.create('x')";
    assert_eq!(call(client, 1, request_type::EVAL, &source(create)).code(), 0);
    assert_eq!(rig.number("return box.space.x == nil and 1 or 0"), 1);
    let client = &mut rig.client;
    let more = "box.space.x:create_index('pk') return box.space.x:insert({1})";
    assert_eq!(call(client, 1, request_type::EVAL, &source(more)).code(), 0);
    assert_eq!(rig.number("return box.space.x == nil and 1 or 0"), 1);
    assert_eq!(commit(&mut rig.client, 1).code(), 0);
    assert_eq!(rig.number("return box.space.x:count()"), 1);
    assert_eq!(streams_open(&mut rig), 0);
}

#[test]
fn who_waits_for_a_lock_holds_up_neither_its_holder_nor_others() {
    let mut rig = rig();
    let mut holder = rig.server.connect();
    begin(&mut holder, 1);
    let lock = source("s:replace({1, 0}) s:replace({2, 0}) return s:get(1, {for_update = true})");
    assert_eq!(call(&mut holder, 1, request_type::EVAL, &lock).code(), 0);
    // More than may run in fibers at once: 600 of each of three connections, and of streams beside the holder.
    const EACH: u64 = 600;
    let packets = |streams: bool| -> Vec<u8> {
        let stream = |number| if streams { 100 + number } else { 0 };
        (0..EACH)
            .flat_map(|number| in_stream(stream(number), request_type::REPLACE, number, &row(600, &[1, number])))
            .collect()
    };
    let mut waiting: Vec<Client> = (0..3).map(|_| rig.server.connect()).collect();
    waiting.iter_mut().for_each(|client| client.send(&packets(false)));
    holder.send(&packets(true));
    let all_wait = format!("while box.stat.net().REQUESTS.current < {} do fiber.sleep(0.001) end return 1", 4 * EACH);
    assert_eq!(rig.number(&all_wait), 1);
    // Others read, call and write other rows.
    let mut other = rig.server.connect();
    other.ping();
    assert_eq!(call(&mut other, 0, request_type::SELECT, &all(600)).code(), 0);
    assert_eq!(call(&mut other, 0, request_type::EVAL, &source("fiber.sleep(0.001) return 1")).code(), 0);
    assert_eq!(call(&mut other, 0, request_type::REPLACE, &row(600, &[3, 3])).code(), 0);
    holder.send(&in_stream(1, request_type::COMMIT, EACH, &[]));
    for client in waiting.iter_mut().chain([&mut holder]) {
        (0..EACH).for_each(|_| assert_eq!(client.receive().error, None));
    }
    assert_eq!(holder.receive().error, None);
    assert_eq!((rig.number("return box.stat.net().REQUESTS.current"), streams_open(&mut rig)), (1, 0));
}

#[test]
fn who_has_written_a_row_that_another_has_locked_since_gets_the_conflict() {
    let mut rig = rig();
    let (mut writer, mut holder) = (rig.server.connect(), rig.server.connect());
    assert_eq!(call(&mut writer, 0, request_type::REPLACE, &row(600, &[1, 0])).code(), 0);
    begin(&mut writer, 1);
    assert_eq!(call(&mut writer, 1, request_type::REPLACE, &row(600, &[1, 1])).code(), 0);
    begin(&mut holder, 1);
    let lock = source("return s:get(1, {for_update = true})[2]");
    assert_eq!(call(&mut holder, 1, request_type::EVAL, &lock).code(), 0);
    assert_eq!(commit(&mut writer, 1).code(), 97);
    let change = source("return s:update(1, {{'+', 2, 10}})[2]");
    assert_eq!(call(&mut holder, 1, request_type::EVAL, &change).code(), 0);
    assert_eq!(commit(&mut holder, 1).code(), 0);
    assert_eq!(rig.number("return s:get(1)[2]"), 10);
}

#[test]
fn those_that_wait_for_locks_are_bounded_and_one_more_is_refused() {
    let mut rig = rig();
    let mut holder = rig.server.connect();
    begin(&mut holder, 1);
    let lock = source("s:replace({1, 0}) return s:get(1, {for_update = true})");
    assert_eq!(call(&mut holder, 1, request_type::EVAL, &lock).code(), 0);
    // Of a connection 1,000 wait, of all of them 10,000; what comes then is refused at once or not read.
    let packets: Vec<u8> =
        (0..1500).flat_map(|sync| in_stream(0, request_type::REPLACE, sync, &row(600, &[1, sync]))).collect();
    let mut waiting: Vec<Client> = (0..10).map(|_| rig.server.connect()).collect();
    waiting.iter_mut().for_each(|client| client.send(&packets));
    let all_wait = "while box.stat.net().REQUESTS.current < 10001 do fiber.sleep(0.001) end return box.stat.net().REQUESTS.current";
    assert_eq!(rig.number(all_wait), 10_001);
    let refused = call(&mut rig.client, 0, request_type::REPLACE, &row(600, &[1, 5]));
    assert_eq!(refused.code(), 2);
    assert_eq!(call(&mut rig.client, 0, request_type::REPLACE, &row(600, &[2, 5])).code(), 0);
    drop(holder);
    for client in &mut waiting {
        (0..1500).for_each(|_| assert!(matches!(client.receive().code(), 0 | 2)));
    }
}
