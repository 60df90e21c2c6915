//! Watched keys over the binary protocol, packet by packet.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Reply, Rig, request};
use std::io::{Read, Write};
use tuple::msgpack::{self, Reader};
use wire::{Header, key, request_type};

const SCRIPT: &str = "
    box.cfg{}
    box.schema.user.grant('guest', 'read,write,execute,create,drop', 'universe', nil, {if_not_exists = true})
    fiber = require('fiber')
";

fn rig() -> Rig {
    Rig::start(SCRIPT, &[])
}

fn text(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_str(&mut out, text);
    out
}

fn body(name: &[u8]) -> Vec<u8> {
    request(&[(key::EVENT_KEY, &text(name))])
}

fn watch(client: &mut Client, name: &[u8], sync: u64) {
    client.send(&lycosa_tests::packet(request_type::WATCH, sync, &body(name)));
}

/// The next packet: its type, its sync, its key and its value.
fn next(client: &Client) -> (u64, u64, Vec<u8>, Vec<u8>) {
    let mut length = [0; 5];
    let mut stream = client.stream();
    stream.read_exact(&mut length).unwrap();
    let length = u32::from_be_bytes(length[1..].try_into().unwrap());
    let mut packet = vec![0; length as usize];
    stream.read_exact(&mut packet).unwrap();
    let (header, body) = Header::decode(&packet).unwrap();
    let (mut name, mut value) = (Vec::new(), Vec::new());
    let mut reader = Reader::new(body);
    for _ in 0..reader.read_map().unwrap() {
        match reader.read_uint().unwrap() {
            key::EVENT_KEY => name = reader.read_str().unwrap().to_vec(),
            key::EVENT_DATA => value = reader.read_value().unwrap().to_vec(),
            _ => _ = reader.read_value().unwrap(),
        }
    }
    (header.request_type, header.sync, name, value)
}

fn event(sync: u64, name: &[u8], value: &[u8]) -> (u64, u64, Vec<u8>, Vec<u8>) {
    (request_type::EVENT, sync, name.to_vec(), value.to_vec())
}

fn once(client: &mut Client, name: &[u8]) -> Reply {
    client.call(request_type::WATCH_ONCE, &body(name))
}

#[test]
fn one_event_is_under_way_and_the_newest_value_comes_last() {
    let mut rig = rig();
    let mut watcher = rig.server.connect();
    watch(&mut watcher, b"k", 11);
    // At once, whether it has a value or not.
    assert_eq!(next(&watcher), event(11, b"k", &[]));
    rig.eval("box.broadcast('k', 1)");
    rig.eval("box.broadcast('k', 2)");
    // Not acknowledged: nothing comes but the answer to another request.
    watcher.send(&lycosa_tests::packet(request_type::PING, 1, &[]));
    assert_eq!(next(&watcher).0, 0);
    watch(&mut watcher, b"k", 12);
    assert_eq!(next(&watcher), event(12, b"k", &[2]));
    watch(&mut watcher, b"k", 13);
    rig.eval("box.broadcast('k', {a = 3})");
    assert_eq!(next(&watcher), event(13, b"k", &[0x81, 0xa1, b'a', 3]));
    watch(&mut watcher, b"k", 14);
    rig.eval("box.broadcast('k')");
    assert_eq!(next(&watcher), event(14, b"k", &[]));
    watch(&mut watcher, b"k", 15);
    watcher.send(&lycosa_tests::packet(request_type::UNWATCH, 16, &body(b"k")));
    watcher.send(&lycosa_tests::packet(request_type::UNWATCH, 16, &body(b"never watched")));
    watcher.send(&lycosa_tests::packet(request_type::PING, 17, &[]));
    assert_eq!(next(&watcher).1, 17);
    rig.eval("box.broadcast('k', 5)");
    watcher.send(&lycosa_tests::packet(request_type::PING, 18, &[]));
    assert_eq!(next(&watcher).1, 18);
    let reply = once(&mut rig.client, b"k");
    assert_eq!((reply.count(), &reply.data[5..]), (1, &[5][..]));
    assert_eq!(once(&mut rig.client, b"none").count(), 0);
}

#[test]
fn bodies_that_are_wrong_are_refused_and_keys_may_be_any_bytes() {
    let mut rig = rig();
    let client = &mut rig.client;
    for request_type in [request_type::WATCH, request_type::UNWATCH, request_type::WATCH_ONCE] {
        assert_eq!(client.call(request_type, &[]).code(), 69);
        assert_eq!(client.call(request_type, &[0x80]).code(), 69);
        for wrong in [&[0x81, 0x57, 5][..], &[0x81, 0x57], &[0x90], &[0x82, 0x57, 0xa1, b'k'], &[0x81, 0x57, 0xa0, 1]] {
            assert_eq!(client.call(request_type, wrong).code(), 20, "{wrong:?}");
        }
        client.ping();
    }
    assert_eq!(client.call(request_type::WATCH, &body(&[b'x'; 1025])).code(), 5);
    assert_eq!(client.call(request_type::EVENT, &body(b"k")).code(), 48);
    watch(client, &[0xff, 0, 0xc1], 3);
    assert_eq!(next(client), event(3, &[0xff, 0, 0xc1], &[]));
    rig.eval("box.broadcast('\\255\\0\\193', 'v')");
    let client = &mut rig.client;
    watch(client, &[0xff, 0, 0xc1], 4);
    assert_eq!(next(client), event(4, &[0xff, 0, 0xc1], &[0xa1, b'v']));
}

#[test]
fn keys_of_the_server_follow_what_is_so() {
    let mut rig = rig();
    let value = |rig: &mut Rig, script: &str| {
        let reply = rig.eval(&format!("return require('json').encode({script})"));
        String::from_utf8_lossy(Reader::new(&reply.data[6..]).read_str().unwrap_or(&reply.data)).into_owned()
    };
    let check = "(function() local w, i = box.watch_once, box.info
        local id, st, el = w('box.id'), w('box.status'), w('box.election')
        return {id.id == 1 and id.instance_uuid == i.uuid and id.replicaset_uuid == i.cluster.uuid,
            st.is_ro == false and st.is_ro_cfg == false and st.status == 'running' and type(st.dd_version) == 'string',
            el.term == 1 and el.is_ro == false and el.leader == 0 and el.role == 'follower',
            w('box.schema').version == box.internal.schema_version(), w('box.shutdown')} end)()";
    assert!(value(&mut rig, check).contains("[true,true,true,true,false]"), "{}", value(&mut rig, check));
    watch(&mut rig.client, b"box.schema", 5);
    assert_eq!(next(&rig.client).1, 5);
    watch(&mut rig.client, b"box.schema", 6);
    let mut other = rig.server.connect();
    other.eval("box.schema.space.create('x') box.cfg{read_only = true}");
    let (_, sync, name, _) = next(&rig.client);
    assert_eq!((sync, name), (6, b"box.schema".to_vec()));
    watch(&mut rig.client, b"box.status", 7);
    let (_, _, _, status) = next(&rig.client);
    assert!(status.windows(6).any(|bytes| bytes == b"is_ro\xc3"), "{status:?}");
}

#[test]
fn functions_watch_one_call_at_a_time_as_who_has_made_them() {
    let mut rig = rig();
    let script = "
        log, running, most = {}, 0, 0
        handle = box.watch('k', function(key, value)
            running = running + 1
            most = math.max(most, running)
            fiber.sleep(0.001)
            table.insert(log, key .. '=' .. tostring(value) .. ' as ' .. box.session.effective_user())
            running = running - 1
            if value == 7 then error('no') end
        end)
        fiber.sleep(0.02)
        box.session.su('admin', function() for i = 1, 9 do box.broadcast('k', i) end end)
        fiber.sleep(0.02)
        box.broadcast('k', 7)
        fiber.sleep(0.02)
        handle:unregister()
        local ok, text = pcall(handle.unregister, handle)
        box.broadcast('k', 8)
        fiber.sleep(0.01)
        return most, table.concat(log, ',') .. ' ' .. tostring(text)";
    let (most, log) = rig.answer(script);
    assert_eq!(most, 1);
    assert_eq!(log, "k=nil as guest,k=9 as guest,k=7 as guest Watcher is already unregistered");
    for wrong in ["box.watch()", "box.watch('k')", "box.watch(1, print)", "box.broadcast(1)", "box.watch_once({})"] {
        assert_eq!(rig.eval(wrong).code(), 32, "{wrong}");
    }
    for unsupported in ["box.broadcast('k', ('x'):rep(2^20))", "box.broadcast(('x'):rep(1025), 1)"] {
        assert_eq!(rig.eval(unsupported).code(), 5, "{unsupported}");
    }
    let filled = "for i = 1, 100 do box.broadcast('big' .. i, ('x'):rep(2^20 - 100)) end";
    assert!(rig.eval(filled).error.unwrap().1.contains("bytes of events"));
    assert_eq!(rig.number("for i = 1, 100 do box.broadcast('big' .. i) end box.broadcast('big', 1) return 1"), 1);
}

#[test]
fn a_client_that_reads_no_events_costs_its_keys_once_and_leaves_nothing() {
    let mut rig = rig();
    let mut deaf = rig.server.connect();
    let mut bytes = Vec::new();
    for number in 0..10_001_u64 {
        bytes.extend(lycosa_tests::packet(request_type::WATCH, number, &body(format!("key {number}").as_bytes())));
    }
    deaf.send(&bytes);
    let refused = (0..10_001).map(|_| next(&deaf)).filter(|(code, ..)| *code == 0x8005).count();
    assert_eq!(refused, 1);
    assert_eq!(rig.number("return box.stat.net().WATCHERS.current"), 10_000);
    // Large values for some of them, acknowledged again and again and never read.
    rig.eval("for i = 0, 50 do box.broadcast('key ' .. i, ('x'):rep(2^20 - 100)) end");
    deaf.stream().set_nonblocking(true).unwrap();
    for round in 0..20 {
        for number in 0..50_u64 {
            let again = lycosa_tests::packet(request_type::WATCH, number, &body(format!("key {number}").as_bytes()));
            let _ = deaf.stream().write(&again);
        }
        rig.eval(&format!("for i = 0, 50 do box.broadcast('key ' .. i, {round} .. ('x'):rep(2^20 - 100)) end"));
    }
    assert!(rig.server.memory() < 700 << 20, "{} bytes", rig.server.memory());
    drop(deaf);
    rig.eval("while box.stat.net().WATCHERS.current > 0 do fiber.sleep(0.001) end");
    assert_eq!(rig.number("return box.stat.net().WATCHERS.current"), 0);
}

#[test]
fn a_server_that_stops_waits_for_clients_that_watch_for_it() {
    let mut rig = rig();
    watch(&mut rig.client, b"box.shutdown", 9);
    assert_eq!(next(&rig.client), event(9, b"box.shutdown", &[0xc2]));
    watch(&mut rig.client, b"box.shutdown", 10);
    rig.client.send(&lycosa_tests::packet(
        request_type::EVAL,
        11,
        &request(&[(key::EXPRESSION, &text(b"fiber.sleep(1) return 5")), (key::TUPLE, &[0x90])]),
    ));
    rig.server.terminate();
    assert_eq!(next(&rig.client), event(10, b"box.shutdown", &[0xc3]));
    // The request under way ends in peace, and new ones are served: only the client knows when it is done.
    assert_eq!(next(&rig.client).1, 11);
    rig.client.ping();
    rig.client.finish();
    assert!(rig.server.ended().success());
}
