//! Error objects cross the protocol as themselves for clients that say so, and as text for all others.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Rig, packet, request};
use std::io::Read;
use tuple::msgpack::{self, Reader};
use wire::{key, request_type};

const SCRIPT: &str = "
    box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })
    s = box.schema.space.create('s', { id = 600, if_not_exists = true })
    s:create_index('pk', { parts = { 1, 'string' }, if_not_exists = true })
    first = box.error.new({ code = 5, reason = 'A', type = 'B' })
    second = box.error.new(box.error.TIMEOUT)
    second:set_prev(first)
";

/// The first value that a script returns.
fn value(rig: &mut Rig, source: &str) -> Vec<u8> {
    let reply = rig.eval(source);
    assert_eq!(reply.code(), 0, "{source}: {reply:?}");
    let mut reader = Reader::new(&reply.data);
    reader.read_array().unwrap();
    reader.read_value().unwrap().to_vec()
}

/// The text that a script returns.
fn text(rig: &mut Rig, source: &str) -> String {
    let value = value(rig, source);
    String::from_utf8_lossy(Reader::new(&value).read_str().unwrap()).into_owned()
}

fn says_features(rig: &mut Rig, features: &[u8]) {
    let body = request(&[(key::VERSION, &[3]), (key::FEATURES, features)]);
    assert_eq!(rig.client.call(request_type::ID, &body).code(), 0);
}

/// Type, text, code and named details of an error in a stack.
fn entry(reader: &mut Reader<'_>) -> (String, String, u64, Vec<u8>) {
    let mut found = (String::new(), String::new(), 0, Vec::new());
    for _ in 0..reader.read_map().unwrap() {
        let (name, value) = (reader.read_uint().unwrap(), reader.read_value().unwrap());
        let text = |value| String::from_utf8_lossy(Reader::new(value).read_str().unwrap()).into_owned();
        match name {
            0 => found.0 = text(value),
            3 => found.1 = text(value),
            5 => found.2 = Reader::new(value).read_uint().unwrap(),
            6 => found.3 = value.to_vec(),
            _ => {}
        }
    }
    found
}

#[test]
fn an_error_object_goes_out_with_its_causes_to_who_knows_it_and_as_text_to_others() {
    let mut rig = Rig::start(SCRIPT, &[]);
    assert_eq!(text(&mut rig, "return second"), "Timeout exceeded");
    assert_eq!(
        text(&mut rig, "return setmetatable({}, {__serialize = function() return second end})"),
        "Timeout exceeded"
    );
    says_features(&mut rig, &[0x93, 0, 2, 99]);
    for source in ["return second", "return s:replace({'x', second})[2]", "return s:get('x')[2]"] {
        let value = value(&mut rig, source);
        let (kind, body) = Reader::new(&value).read_ext().unwrap();
        assert_eq!(kind, msgpack::EXT_ERROR, "{source}");
        let mut reader = Reader::new(body);
        assert_eq!((reader.read_map().unwrap(), reader.read_uint().unwrap(), reader.read_array().unwrap()), (1, 0, 2));
        let (kind, message, code, fields) = entry(&mut reader);
        assert_eq!((kind.as_str(), message.as_str(), code, fields.len()), ("ClientError", "Timeout exceeded", 78, 0));
        let (kind, message, code, fields) = entry(&mut reader);
        assert_eq!((kind.as_str(), message.as_str(), code), ("CustomError", "A", 5));
        assert_eq!(fields, b"\x81\xabcustom_type\xa1B");
    }
    // It comes back as what it was, and the switch of msgpack is obeyed.
    let back = "local e = ... or s:get('x')[2] return table.concat({e.type, e.message, e.code, e.prev.type, e.prev.base_type, e.prev.code}, ' ')";
    assert_eq!(text(&mut rig, back), "ClientError Timeout exceeded 78 B CustomError 5");
    assert_eq!(
        text(&mut rig, "require('msgpack').cfg({encode_error_as_ext = false}) return second"),
        "Timeout exceeded"
    );
    let encoded = "return type(require('msgpack').decode(require('msgpack').encode(second)))";
    assert_eq!(text(&mut rig, encoded), "string");
    value(&mut rig, "require('msgpack').cfg({encode_error_as_ext = true}) return 1");
    assert_eq!(text(&mut rig, encoded), "cdata");
    assert_eq!(text(&mut rig, "return require('json').encode(second)"), "\"Timeout exceeded\"");
    says_features(&mut rig, &[0x91, 3]);
    assert_eq!(text(&mut rig, "return second"), "Timeout exceeded");
}

#[test]
fn a_raised_error_keeps_its_own_type_and_its_details() {
    let mut rig = Rig::start(SCRIPT, &[]);
    let mut expression = Vec::new();
    msgpack::encode_str(&mut expression, b"first:raise()");
    let body = request(&[(key::EXPRESSION, &expression), (key::TUPLE, &[0x90])]);
    rig.client.send(&packet(request_type::EVAL, 1, &body));
    let mut said = [0; 1000];
    let length = rig.client.stream().read(&mut said).unwrap();
    let said = &said[..length];
    assert!(said.windows(11).any(|window| window == b"CustomError"), "{said:x?}");
    // Where the script made it.
    assert!(said.windows(10).any(|window| window == b"script.lua"), "{said:x?}");
    assert!(said.ends_with(b"\x06\x81\xabcustom_type\xa1B"), "{said:x?}");
}

#[test]
fn bytes_that_are_no_error_object_are_refused() {
    let mut rig = Rig::start(SCRIPT, &[]);
    // A body: none, no map, no stack, an empty one, entries without type or text, a list longer than its bytes, bytes too many.
    let bodies: [&[u8]; 10] = [
        b"",
        b"\xc0",
        b"\x80",
        b"\x81\x00\x90",
        b"\x81\x00\x91\x80",
        b"\x81\x00\x91\x81\x00\xa1x",
        b"\x81\x00\x91\x82\x00\x05\x03\xa1x",
        b"\x81\x00\xdd\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\x81\x00\x91\x82\x00\xa1x\x03\xa1y\x00",
    ];
    for body in bodies {
        let mut value = Vec::new();
        msgpack::encode_ext(&mut value, msgpack::EXT_ERROR, body);
        let mut expression = Vec::new();
        msgpack::encode_str(&mut expression, b"return 1");
        let arguments = [&[0x91], &value[..]].concat();
        let reply =
            rig.client.call(request_type::EVAL, &request(&[(key::EXPRESSION, &expression), (key::TUPLE, &arguments)]));
        assert_ne!(reply.code(), 0, "{body:x?}");
    }
    let mut value = Vec::new();
    msgpack::encode_ext(&mut value, msgpack::EXT_ERROR, b"\x81\x00\x91\x82\x00\xa1x\x03\xa1y");
    let mut expression = Vec::new();
    msgpack::encode_str(&mut expression, b"return #(...).message");
    let arguments = [&[0x91], &value[..]].concat();
    let reply =
        rig.client.call(request_type::EVAL, &request(&[(key::EXPRESSION, &expression), (key::TUPLE, &arguments)]));
    assert_eq!((reply.code(), &reply.data[5..]), (0, &[1][..]), "{reply:?}");
}

#[test]
fn the_time_that_a_stop_waits_for_clients_can_be_set() {
    let mut rig = Rig::start(SCRIPT, &[]);
    for wrong in ["", "-1", "'x'", "0/0"] {
        assert_eq!(rig.eval(&format!("box.ctl.set_on_shutdown_timeout({wrong})")).code(), 32, "{wrong}");
    }
    assert_eq!(rig.eval("box.ctl.set_on_shutdown_timeout(1e300) box.ctl.set_on_shutdown_timeout(60)").code(), 0);
    // A trigger that takes longer than the usual 0.8 seconds ends, and the process goes on at once when it has.
    let trigger =
        "box.ctl.on_shutdown(function() require('fiber').sleep(1.2) require('log').warn('the trigger has ended') end)";
    assert_eq!(rig.eval(trigger).code(), 0);
    let begun = std::time::Instant::now();
    rig.server.terminate();
    assert!(rig.server.ended().success());
    assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
    assert!(rig.server.log().contains("the trigger has ended"), "{}", rig.server.log());
}
