//! What procedures send before their answers, packet by packet.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Rig, packet, request};
use std::io::Read;
use tuple::msgpack::{self, Reader};
use wire::{Header, key, request_type};

const SCRIPT: &str = "
    box.cfg{}
    box.schema.user.grant('guest', 'read,write,execute,create,drop', 'universe', nil, {if_not_exists = true})
    fiber = require('fiber')
";

fn eval(sync: u64, source: &str) -> Vec<u8> {
    let mut expression = Vec::new();
    msgpack::encode_str(&mut expression, source.as_bytes());
    packet(request_type::EVAL, sync, &request(&[(key::EXPRESSION, &expression), (key::TUPLE, &[0x90])]))
}

/// The next packet: its type, its sync and its values.
fn next(client: &Client) -> (u64, u64, Vec<u8>) {
    let mut length = [0; 5];
    let mut stream = client.stream();
    stream.read_exact(&mut length).unwrap();
    let mut packet = vec![0; u32::from_be_bytes(length[1..].try_into().unwrap()) as usize];
    stream.read_exact(&mut packet).unwrap();
    let (header, body) = Header::decode(&packet).unwrap();
    let mut reader = Reader::new(body);
    reader.read_map().unwrap();
    reader.read_uint().unwrap();
    (header.request_type, header.sync, reader.rest()[5..].to_vec())
}

#[test]
fn values_come_before_the_answer_and_name_their_request() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let client = &mut rig.client;
    client.send(&eval(5, "box.session.push(1) fiber.sleep(0.05) return box.session.push({a = 2}), box.session.sync()"));
    client.send(&eval(6, "fiber.sleep(0.01) return box.session.push('x'), box.session.push(nil), box.session.sync()"));
    let all: Vec<_> = (0..6).map(|_| next(client)).collect();
    let of = |sync: u64| all.iter().filter(move |packet| packet.1 == sync).map(|packet| (packet.0, packet.2.clone()));
    let expected = [(128, vec![1]), (128, vec![0x81, 0xa1, b'a', 2]), (0, vec![0xc3, 5])];
    assert_eq!(of(5).collect::<Vec<_>>(), expected);
    let expected = [(128, vec![0xa1, b'x']), (128, vec![0xc0]), (0, vec![0xc3, 0xc3, 6])];
    assert_eq!(of(6).collect::<Vec<_>>(), expected);
}

#[test]
fn what_cannot_be_pushed_is_said_and_a_background_fiber_has_no_client() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let mut text = |source: &str| rig.answer(&format!("return 1, tostring({source})")).1;
    assert_eq!(text("select(2, box.session.push(print))"), "unsupported Lua type 'function'");
    assert_eq!(text("select(2, pcall(box.session.push))"), "Usage: box.session.push(data)");
    assert_eq!(text("select(2, pcall(box.session.push, 1, 2))"), "Usage: box.session.push(data)");
    rig.eval("box.ctl.on_shutdown(function() end)");
    let background = "local r box.session.on_disconnect(function() r = select(2, box.session.push(1)) end)
        local s = box.session.id() other = function() return tostring(r) end return 1, 'set'";
    assert_eq!(rig.answer(background).1, "set");
    drop(rig.server.connect());
    rig.eval("while other() == 'nil' do fiber.sleep(0.001) end");
    assert_eq!(rig.answer("return 1, other()").1, "Session is closed");
}

#[test]
fn a_procedure_that_pushes_more_than_the_client_reads_waits_and_ends_with_the_client() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let mut deaf = rig.server.connect();
    let endless = "pushed = 0 while true do
        local ok, reason = box.session.push(('x'):rep(1e6))
        if not ok then ended = tostring(reason) return end
        pushed = pushed + 1 end";
    deaf.send(&eval(1, endless));
    rig.eval("repeat local before = pushed fiber.sleep(0.2) until pushed == before and before ~= nil");
    let pushed = rig.number("return pushed");
    assert!((10..60).contains(&pushed), "{pushed} were pushed");
    // What is read makes room.
    (0..pushed).for_each(|_| assert_eq!(next(&deaf).0, 128));
    assert_eq!(next(&deaf).0, 128);
    drop(deaf);
    rig.eval("while not ended do fiber.sleep(0.001) end");
    assert_eq!(rig.answer("return 1, ended").1, "Session is closed");
    rig.eval("while box.stat.net().REQUESTS.current > 1 do fiber.sleep(0.001) end");
}
