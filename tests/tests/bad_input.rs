//! What a client may get wrong, on purpose or not: each time it is told so by the right error, and nobody else notices.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::seeded::{array, number, numbers, others_are_served, seeded, words};
use lycosa_tests::{Client, Field, Server, packet, request};
use runtime::{Randomness, SeededRandomness};
use tuple::msgpack;

const SELECT: u64 = 1;
const INSERT: u64 = 2;
const REPLACE: u64 = 3;
const UPDATE: u64 = 4;
const DELETE: u64 = 5;
const CALL_16: u64 = 6;
const AUTH: u64 = 7;
const EVAL: u64 = 8;
const UPSERT: u64 = 9;
const CALL: u64 = 10;
const BEGIN: u64 = 14;
const PING: u64 = 64;

const SPACE_ID: u64 = 0x10;
const INDEX_ID: u64 = 0x11;
const LIMIT: u64 = 0x12;
const OFFSET: u64 = 0x13;
const ITERATOR: u64 = 0x14;
const INDEX_BASE: u64 = 0x15;
const KEY: u64 = 0x20;
const TUPLE: u64 = 0x21;
const FUNCTION_NAME: u64 = 0x22;
const USER_NAME: u64 = 0x23;
const EXPRESSION: u64 = 0x27;
const OPS: u64 = 0x28;
const SPACE_NAME: u64 = 0x5e;
const INDEX_NAME: u64 = 0x5f;

const TUPLE_NOT_ARRAY_OR_MSGPACK: [u64; 2] = [20, 22];
const KEY_PART_TYPE: u64 = 18;
const EXACT_MATCH: u64 = 19;
const INVALID_MSGPACK: u64 = 20;
const FIELD_TYPE: u64 = 23;
const KEY_PART_COUNT: u64 = 31;
const NO_SUCH_PROC: u64 = 33;
const NO_SUCH_INDEX_ID: u64 = 35;
const NO_SUCH_SPACE: u64 = 36;
const ACCESS_DENIED: u64 = 42;
const CREDS_MISMATCH: u64 = 47;
const UNKNOWN_REQUEST_TYPE: u64 = 48;
const MISSING_REQUEST_FIELD: u64 = 69;
const WRONG_SCHEMA_VERSION: u64 = 109;
const MEMTX_MAX_TUPLE_SIZE: u64 = 110;
const PARTIAL_KEY: u64 = 136;
const NO_SUCH_INDEX_NAME: u64 = 148;
const UNABLE_TO_PROCESS_OUT_OF_STREAM: u64 = 230;

const MIB: usize = 1 << 20;

/// A body before it is encoded.
type Pairs<'a> = &'a [(u64, &'a [u8])];

fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_str(&mut out, bytes);
    out
}

/// Values of every kind, by name. Numbers come last.
fn values() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nil", vec![0xc0]),
        ("true", vec![0xc3]),
        ("-1", vec![0xff]),
        ("the smallest integer", [&[0xd3, 0x80][..], &[0; 7]].concat()),
        ("a float", vec![0xca, 0x3f, 0x80, 0, 0]),
        ("a double", [&[0xcb, 0x3f, 0xf0][..], &[0; 6]].concat()),
        ("a string", string(b"text")),
        ("binary data", vec![0xc4, 1, 7]),
        ("an array", vec![0x91, 1]),
        ("a map", vec![0x81, 1, 2]),
        ("an extension", vec![0xd4, 99, 1]),
        ("a uuid", [&[0xd8, 2][..], &[7; 16]].concat()),
        ("1", vec![1]),
    ]
}

/// Bytes that are no msgpack value, whatever follows.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |depth: usize| [vec![0x91; depth], vec![0xc0]].concat();
    vec![
        ("the reserved byte", vec![0xc1]),
        ("a string that is longer than the packet", vec![0xdb, 0xff, 0xff, 0xff, 0xff, b'x']),
        ("a short string that is longer than the packet", vec![0xbf, b'x']),
        ("binary data that is longer than the packet", vec![0xc6, 0xff, 0xff, 0xff, 0xff]),
        ("an array that is longer than the packet", vec![0xdd, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]),
        ("a map that is longer than the packet", vec![0xdf, 0xff, 0xff, 0xff, 0xff, 1, 2]),
        ("a map without its last value", vec![0x82, 1, 2, 3]),
        ("an extension that is longer than the packet", vec![0xc9, 0xff, 0xff, 0xff, 0xff, 1]),
        ("half a number", vec![0xcf, 1, 2, 3]),
        ("half a double", vec![0xcb, 1, 2, 3]),
        ("half the length of a string", vec![0xdb, 0]),
        ("an extension without a type", vec![0xd4]),
        ("a uuid that is too short", vec![0xd4, 2, 1]),
        ("a decimal of no digits", vec![0xc7, 1, 1, 0]),
        ("arrays nested beyond reason", deep(100_000)),
    ]
}

#[test]
fn malformed_bodies_are_refused_and_the_connection_goes_on() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    for (name, bytes) in malformed() {
        for body in [bytes.clone(), request(&[(TUPLE, &bytes)]), request(&[(0x7f, &bytes)])] {
            for request_type in [SELECT, INSERT, CALL, EVAL, AUTH, PING] {
                let reply = client.call(request_type, &body);
                assert_eq!(reply.code(), INVALID_MSGPACK, "{name} in a request of type {request_type}: {reply:?}");
            }
        }
    }
    let behind = client.call(PING, &[0x80, 0xc0]);
    assert_eq!(behind.code(), INVALID_MSGPACK, "something behind the body");
    client.ping();
    seeded.others_are_served();
}

#[test]
fn a_malformed_header_is_an_error_and_the_connection_goes_on() {
    let mut seeded = seeded();
    let mut headers: Vec<(&str, Vec<u8>)> = malformed();
    headers.push(("no map", vec![0x91, 0]));
    headers.push(("nothing", Vec::new()));
    for (name, value) in values().into_iter().filter(|(name, _)| *name != "1") {
        headers.push((name, [vec![0x82, 0], value.clone(), vec![1, 1]].concat()));
        headers.push((name, [vec![0x82, 0, 64, 1], value.clone()].concat()));
        headers.push((name, [vec![0x83, 0, 64, 1, 1, 5], value].concat()));
    }
    for (name, header) in headers {
        let mut client = seeded.server.connect();
        let mut bytes = vec![0xce];
        bytes.extend_from_slice(&(header.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&header);
        client.send(&bytes);
        assert_eq!(client.receive().code(), INVALID_MSGPACK, "{name}");
        // Where the next request begins is known.
        client.ping();
    }
    seeded.others_are_served();
}

#[test]
fn a_length_that_is_none_or_too_large_ends_the_connection_with_an_error() {
    let mut seeded = seeded();
    let lengths: [(&str, &[u8]); 8] = [
        ("nil", &[0xc0]),
        ("a string", &[0xa3, b'G', b'E', b'T']),
        ("a negative number", &[0xff]),
        ("a double", &[0xcb, 0x40, 0, 0, 0, 0, 0, 0, 0]),
        ("an array", &[0x92, 1, 2]),
        ("the reserved byte", &[0xc1]),
        ("4 GiB", &[0xce, 0xff, 0xff, 0xff, 0xff]),
        ("all there is", &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    ];
    for (name, length) in lengths {
        let mut client = seeded.server.connect();
        client.send(length);
        assert_eq!(client.receive().code(), INVALID_MSGPACK, "{name}");
        assert!(client.is_closed(), "{name}");
    }
    // Another protocol altogether.
    let mut client = seeded.server.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.try_receive().is_err() || client.is_closed() || client.try_receive().is_err());
    seeded.others_are_served();
}

#[test]
fn a_packet_may_come_byte_by_byte_and_half_of_one_waits_for_ever() {
    let mut seeded = seeded();
    let ping = packet(PING, 7, &[0x80]);
    for cut in 1..ping.len() {
        let mut client = seeded.server.connect();
        client.send(&ping[..cut]);
        seeded.witness.ping();
        client.send(&ping[cut..]);
        assert_eq!(client.receive().sync, 7, "cut at {cut}");
    }
    let mut slow = seeded.server.connect();
    for byte in &ping {
        slow.send(&[*byte]);
        seeded.witness.ping();
    }
    assert_eq!(slow.receive().sync, 7);
    let mut waiting: Vec<Client> = (1..ping.len())
        .map(|cut| {
            let mut client = seeded.server.connect();
            client.send(&ping[..cut]);
            client
        })
        .collect();
    // It claims much and sends little: what it claims costs nothing.
    let before = seeded.server.memory();
    for _ in 0..50 {
        let mut client = seeded.server.connect();
        client.send(&[0xce, 0x0f, 0xff, 0xff, 0xff, 0x82, 0]);
        waiting.push(client);
    }
    seeded.others_are_served();
    let grown = seeded.server.memory().saturating_sub(before);
    assert!(grown < 64 * MIB as u64, "claims of 256 MiB took {grown} bytes");
}

/// What a key of a body must be.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Number,
    Text,
    Array,
}

#[test]
fn a_value_of_a_wrong_kind_is_refused_for_every_key() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let keys = [
        (SPACE_ID, Wanted::Number),
        (INDEX_ID, Wanted::Number),
        (LIMIT, Wanted::Number),
        (OFFSET, Wanted::Number),
        (ITERATOR, Wanted::Number),
        (INDEX_BASE, Wanted::Number),
        (KEY, Wanted::Array),
        (TUPLE, Wanted::Array),
        (OPS, Wanted::Array),
        (FUNCTION_NAME, Wanted::Text),
        (USER_NAME, Wanted::Text),
        (EXPRESSION, Wanted::Text),
        (SPACE_NAME, Wanted::Text),
        (INDEX_NAME, Wanted::Text),
    ];
    for request_type in [SELECT, INSERT, REPLACE, UPDATE, DELETE, CALL_16, AUTH, EVAL, UPSERT, CALL, PING] {
        for (key, wanted) in keys {
            for (name, value) in values() {
                let is_right = match name {
                    "1" => wanted == Wanted::Number,
                    "a string" => wanted == Wanted::Text,
                    "an array" => wanted == Wanted::Array,
                    _ => false,
                };
                // A request reads its own keys.
                let is_read = match request_type {
                    CALL | CALL_16 | EVAL => [FUNCTION_NAME, EXPRESSION, TUPLE].contains(&key),
                    AUTH => [USER_NAME, TUPLE].contains(&key),
                    PING => false,
                    _ => ![FUNCTION_NAME, USER_NAME, EXPRESSION].contains(&key),
                };
                if is_right || !is_read {
                    continue;
                }
                let reply = client.call(request_type, &request(&[(key, &value)]));
                assert_eq!(reply.code(), INVALID_MSGPACK, "type {request_type}, key {key:#x}, {name}: {reply:?}");
            }
        }
    }
    // Keys that nobody knows are passed over, whatever they hold.
    for (name, value) in values() {
        let body = [vec![0x82, 0x7e], value.clone(), value, vec![1]].concat();
        assert_eq!(client.call(PING, &body).error, None, "{name}");
    }
    seeded.others_are_served();
}

#[test]
fn requests_that_lack_something_name_what_they_lack() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let (id, empty, limit) = (numbers(), [0x90], [1]);
    let incomplete: [(u64, Pairs<'_>, &str); 14] = [
        (SELECT, &[], "space id"),
        (SELECT, &[(SPACE_ID, &id), (KEY, &empty)], "limit"),
        (SELECT, &[(SPACE_ID, &id), (LIMIT, &limit)], "key"),
        (INSERT, &[(TUPLE, &empty)], "space id"),
        (INSERT, &[(SPACE_ID, &id)], "tuple"),
        (REPLACE, &[(SPACE_ID, &id)], "tuple"),
        (UPDATE, &[(SPACE_ID, &id), (TUPLE, &empty)], "key"),
        (UPDATE, &[(SPACE_ID, &id), (KEY, &empty)], "tuple"),
        (DELETE, &[(SPACE_ID, &id)], "key"),
        (UPSERT, &[(SPACE_ID, &id), (OPS, &empty)], "tuple"),
        (UPSERT, &[(SPACE_ID, &id), (TUPLE, &empty)], "operations"),
        (CALL, &[(TUPLE, &empty)], "function name"),
        (EVAL, &[(TUPLE, &empty)], "expression"),
        (AUTH, &[(TUPLE, &empty)], "user name"),
    ];
    for (request_type, pairs, missing) in incomplete {
        for body in [
            request(pairs),
            [vec![0x80 | (pairs.len() + 1) as u8], request(pairs)[1..].to_vec(), vec![0x7e, 0]].concat(),
        ] {
            let reply = client.call(request_type, &body);
            let text = reply.error.clone().map(|(_, text)| text).unwrap_or_default();
            assert_eq!(reply.code(), MISSING_REQUEST_FIELD, "{request_type}: {reply:?}");
            assert!(text.contains(&format!("'{missing}'")), "type {request_type}: {text}");
        }
    }
    // Without a body at all.
    for request_type in [SELECT, INSERT, REPLACE, UPDATE, DELETE, UPSERT] {
        assert_eq!(client.call(request_type, &[]).code(), MISSING_REQUEST_FIELD, "{request_type}");
    }
    for request_type in [CALL, CALL_16, EVAL, AUTH] {
        assert_eq!(client.call(request_type, &[]).code(), INVALID_MSGPACK, "{request_type}");
    }
    seeded.others_are_served();
}

#[test]
fn unknown_request_types_are_error_48() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    for request_type in (19..30).chain(42..64).chain(80..300).chain([1 << 16, 1 << 31, (1 << 32) + 1, u64::MAX]) {
        for body in [&[][..], &[0x80]] {
            let reply = client.call(request_type, body);
            assert_eq!(reply.code(), UNKNOWN_REQUEST_TYPE, "{request_type}: {reply:?}");
        }
    }
    seeded.others_are_served();
}

#[test]
fn unknown_spaces_and_indexes_are_named() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let id = numbers();
    let (key, row, limit) = (array(&[1.into()]), array(&[1.into(), 2.into()]), [1]);
    for unknown in [0, 599, 1 << 20, u64::from(u32::MAX)] {
        let unknown_id = number(unknown);
        for (request_type, rest) in
            [(SELECT, (KEY, &key)), (INSERT, (TUPLE, &row)), (REPLACE, (TUPLE, &row)), (DELETE, (KEY, &key))]
        {
            let body = request(&[(SPACE_ID, &unknown_id), (LIMIT, &limit), (rest.0, rest.1)]);
            let reply = client.call(request_type, &body);
            assert_eq!(reply.code(), NO_SUCH_SPACE, "{unknown}: {reply:?}");
            assert!(reply.error.unwrap().1.contains(&unknown.to_string()));
        }
    }
    for unknown in [2, 127, 100_000, u64::from(u32::MAX)] {
        for (request_type, more) in [(SELECT, 0x7e), (DELETE, 0x7e), (UPDATE, TUPLE)] {
            let body = request(&[
                (SPACE_ID, &id),
                (INDEX_ID, &number(unknown)),
                (KEY, &key),
                (LIMIT, &limit),
                (more, &[0x90]),
            ]);
            let reply = client.call(request_type, &body);
            assert_eq!(reply.code(), NO_SUCH_INDEX_ID, "{request_type}, index {unknown}: {reply:?}");
            assert!(reply.error.unwrap().1.contains("numbers"), "the space is named");
        }
    }
    // A number that is none of 32 bits is no space at all.
    let reply = client.call(SELECT, &request(&[(SPACE_ID, &number(u64::MAX)), (KEY, &key), (LIMIT, &limit)]));
    assert!([INVALID_MSGPACK, NO_SUCH_SPACE].contains(&reply.code()), "{reply:?}");
    for name in [&b"nobody"[..], b"", b"\xff\xfe", b"numbers\0"] {
        let reply = client.call(SELECT, &request(&[(SPACE_NAME, &string(name)), (KEY, &key), (LIMIT, &limit)]));
        assert_eq!(reply.code(), NO_SUCH_SPACE, "{reply:?}");
        let pairs: [(u64, &[u8]); 4] = [(SPACE_ID, &id), (INDEX_NAME, &string(name)), (KEY, &key), (LIMIT, &limit)];
        let reply = client.call(SELECT, &request(&pairs));
        assert_eq!(reply.code(), NO_SUCH_INDEX_NAME, "{reply:?}");
    }
    seeded.others_are_served();
}

#[test]
fn keys_that_do_not_fit_their_index_are_refused() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let id = numbers();
    let many = array(&[1.into(), 2.into(), 3.into()]);
    let partial = array(&[1.into()]);
    let wrong = array(&["one".into(), 2.into()]);
    let huge = array(&(0..10_000).map(Field::Uint).collect::<Vec<_>>());
    let (limit, ops) = ([10], [0x90]);
    for iterator in 0..=6 {
        for (key, code) in [(&many, KEY_PART_COUNT), (&huge, KEY_PART_COUNT), (&wrong, KEY_PART_TYPE)] {
            let pairs: [(u64, &[u8]); 4] =
                [(SPACE_ID, &id), (KEY, key), (LIMIT, &limit), (ITERATOR, &number(iterator))];
            let reply = client.call(SELECT, &request(&pairs));
            assert_eq!(reply.code(), code, "iterator {iterator}: {reply:?}");
        }
    }
    for iterator in [7, 8, 9, 10, 11, 100, u64::MAX] {
        let pairs: [(u64, &[u8]); 4] =
            [(SPACE_ID, &id), (KEY, &partial), (LIMIT, &limit), (ITERATOR, &number(iterator))];
        let reply = client.call(SELECT, &request(&pairs));
        assert_ne!(reply.code(), 0, "iterator {iterator} of a tree: {reply:?}");
    }
    for (key, codes) in [
        (&many, [KEY_PART_COUNT, EXACT_MATCH]),
        (&huge, [KEY_PART_COUNT, EXACT_MATCH]),
        (&partial, [EXACT_MATCH, PARTIAL_KEY]),
        (&vec![0x90], [EXACT_MATCH, PARTIAL_KEY]),
        (&wrong, [KEY_PART_TYPE, KEY_PART_TYPE]),
    ] {
        for request_type in [UPDATE, DELETE] {
            let reply = client.call(request_type, &request(&[(SPACE_ID, &id), (KEY, key), (TUPLE, &ops)]));
            assert!(codes.contains(&reply.code()), "{request_type}: {reply:?}");
        }
    }
    // An offset and a limit beyond everything.
    let all = number(u64::MAX);
    let pairs: [(u64, &[u8]); 4] = [(SPACE_ID, &id), (KEY, &[0x90]), (LIMIT, &all), (OFFSET, &all)];
    assert_eq!(client.call(SELECT, &request(&pairs)).count(), 0);
    seeded.others_are_served();
}

#[test]
fn operations_that_make_no_sense_are_refused() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let (id, key) = (numbers(), array(&[1.into(), 2.into()]));
    let operation = |fields: &[Field<'_>]| array(&[Field::Raw(&array(fields))]);
    let deep = operation(&["=".into(), 2.into(), Field::Raw(&[vec![0x91; 100], vec![0xc0]].concat())]);
    let refused = [
        ("no array", array(&[1.into()])),
        ("empty", array(&[Field::Raw(&[0x90])])),
        ("unknown", operation(&["?".into(), 2.into(), 1.into()])),
        ("a name that is none", operation(&[7.into(), 2.into(), 1.into()])),
        ("too few arguments", operation(&["+".into(), 2.into()])),
        ("too many arguments", operation(&["+".into(), 2.into(), 1.into(), 1.into()])),
        ("a field far behind", operation(&["+".into(), u64::MAX.into(), 1.into()])),
        ("a field that is no number", operation(&["+".into(), Field::Raw(&[0xc3]), 1.into()])),
        ("a sum with text", operation(&["+".into(), 2.into(), 1.into()])),
        ("a sum with nil", operation(&["+".into(), 1.into(), Field::Raw(&[0xc0])])),
        ("an overflow", operation(&["+".into(), 1.into(), u64::MAX.into()])),
        ("a path that is none", operation(&["=".into(), "[[[".into(), 1.into()])),
        ("a path into a number", operation(&["=".into(), "[1].a.b.c".into(), 1.into()])),
        ("invalid UTF-8 as a path", operation(&["=".into(), Field::Raw(&string(b"\xff\xfe")), 1.into()])),
        ("a splice of a number", operation(&[":".into(), 1.into(), 0.into(), 0.into(), "x".into()])),
        ("a key part", operation(&["=".into(), 0.into(), 7.into()])),
        ("5,000 at once", array(&(0..5000).map(|_| Field::Raw(&[0x93, 0xa1, b'+', 1, 1])).collect::<Vec<_>>())),
    ];
    for (name, ops) in refused {
        let reply = client.call(UPDATE, &request(&[(SPACE_ID, &id), (KEY, &key), (TUPLE, &ops)]));
        assert_ne!(reply.code(), 0, "{name}: {reply:?}");
        assert_ne!(reply.code(), INVALID_MSGPACK, "{name}: {reply:?}");
    }
    assert_eq!(client.call(UPDATE, &request(&[(SPACE_ID, &id), (KEY, &key), (TUPLE, &deep)])).error, None);
    for base in [2, 1000, u64::from(u32::MAX)] {
        let ops = operation(&["=".into(), 1.into(), 1.into()]);
        let pairs: [(u64, &[u8]); 4] = [(SPACE_ID, &id), (KEY, &key), (TUPLE, &ops), (INDEX_BASE, &number(base))];
        assert_ne!(client.call(UPDATE, &request(&pairs)).code(), 0, "index base {base}");
    }
    seeded.others_are_served();
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let id = numbers();
    let insert = |client: &mut Client, row: &[u8]| client.call(INSERT, &request(&[(SPACE_ID, &id), (TUPLE, row)]));
    assert_ne!(insert(&mut client, &array(&[])).code(), 0);
    assert_ne!(insert(&mut client, &array(&[1.into()])).code(), 0);
    assert_eq!(insert(&mut client, &array(&["a".into(), 1.into()])).code(), FIELD_TYPE);
    assert_eq!(insert(&mut client, &array(&[Field::Raw(&[0xff]), 1.into()])).code(), FIELD_TYPE);
    let reply = client.call(INSERT, &request(&[(SPACE_ID, &id), (TUPLE, &[0x81, 1, 2])]));
    assert!(TUPLE_NOT_ARRAY_OR_MSGPACK.contains(&reply.code()), "{reply:?}");
    // As large as allowed, with the row's own header, and beyond.
    let text = "x".repeat(MIB - 100);
    let row = |id: u64, text: &str| array(&[id.into(), id.into(), text.into()]);
    assert_eq!(insert(&mut client, &row(5000, &text)).error, None);
    for size in [MIB, MIB + 1, 3 * MIB, 16 * MIB] {
        let reply = insert(&mut client, &row(5001, &"x".repeat(size)));
        assert_eq!(reply.code(), MEMTX_MAX_TUPLE_SIZE, "{size}: {:?}", reply.error);
        let key = array(&[5001.into(), 5001.into()]);
        assert_eq!(client.call(SELECT, &request(&[(SPACE_ID, &id), (KEY, &key), (LIMIT, &[1])])).count(), 0);
    }
    // A row that an update makes too large.
    let paste = array(&[Field::Raw(&array(&["!".into(), 3.into(), "y".repeat(1000).as_str().into()]))]);
    let key = array(&[5000.into(), 5000.into()]);
    let reply = client.call(UPDATE, &request(&[(SPACE_ID, &id), (KEY, &key), (TUPLE, &paste)]));
    assert_eq!(reply.code(), MEMTX_MAX_TUPLE_SIZE, "{:?}", reply.error);
    seeded.others_are_served();
}

#[test]
fn invalid_utf8_is_data_in_strings_and_an_error_in_names() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let broken: [&[u8]; 5] = [b"\xff", b"\xc3", b"a\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\0\xfe\0"];
    for (at, bytes) in broken.into_iter().enumerate() {
        let text = string(bytes);
        let row = array(&[(6000 + at as u64).into(), 1.into(), Field::Raw(&text)]);
        let reply = client.call(REPLACE, &request(&[(SPACE_ID, &numbers()), (TUPLE, &row)]));
        assert_eq!(reply.error, None);
        assert!(reply.data.ends_with(&text), "it comes back as it was");
        // Compared by a collation it is refused or ordered, and never the end.
        let key = array(&[Field::Raw(&text)]);
        let reply = client.call(REPLACE, &request(&[(SPACE_ID, &words()), (TUPLE, &key)]));
        let found = client.call(SELECT, &request(&[(SPACE_ID, &words()), (KEY, &key), (LIMIT, &[1])]));
        assert_eq!(found.count(), u32::from(reply.code() == 0), "{bytes:?}: {reply:?}, {found:?}");
        for (key, request_type, codes) in [
            (FUNCTION_NAME, CALL, [NO_SUCH_PROC, ACCESS_DENIED]),
            (FUNCTION_NAME, CALL_16, [NO_SUCH_PROC, ACCESS_DENIED]),
            (USER_NAME, AUTH, [CREDS_MISMATCH, INVALID_MSGPACK]),
        ] {
            let reply = client.call(request_type, &request(&[(key, &text), (TUPLE, &[0x90])]));
            assert!(codes.contains(&reply.code()), "type {request_type}, {bytes:?}: {reply:?}");
        }
        assert_ne!(client.call(EVAL, &request(&[(EXPRESSION, &text), (TUPLE, &[0x90])])).code(), 0);
    }
    seeded.others_are_served();
}

#[test]
fn wrong_credentials_are_error_47_and_change_nothing() {
    let scramble = |kind: u8, length: usize| [vec![0xc4 + kind, length as u8], vec![7; length]].concat();
    let attempts = [
        ("a wrong scramble", array(&["chap-sha1".into(), Field::Raw(&scramble(0, 20))]), CREDS_MISMATCH),
        ("a scramble as text", array(&["chap-sha1".into(), Field::Raw(&string(&[7; 20]))]), CREDS_MISMATCH),
    ];
    for user in [&b"admin"[..], b"nobody", b""] {
        // Failed logins of one address are answered later and later.
        let server = Server::start();
        let mut witness = server.connect();
        let mut client = server.connect();
        for (name, credentials, code) in &attempts {
            let reply = client.call(AUTH, &request(&[(USER_NAME, &string(user)), (TUPLE, credentials)]));
            assert_eq!(reply.code(), *code, "{name} for {user:?}: {reply:?}");
        }
        for (name, credentials) in [
            ("a scramble that is too short", array(&["chap-sha1".into(), Field::Raw(&scramble(0, 3))])),
            ("a scramble that is too long", array(&["chap-sha1".into(), Field::Raw(&scramble(0, 200))])),
            ("a scramble that is a number", array(&["chap-sha1".into(), 5.into()])),
            ("no scramble", array(&["chap-sha1".into()])),
            ("no method", array(&[])),
            ("an unknown method", array(&["trust-me".into(), "please".into()])),
            ("a method that is a number", array(&[1.into(), 2.into()])),
        ] {
            let reply = client.call(AUTH, &request(&[(USER_NAME, &string(user)), (TUPLE, &credentials)]));
            assert_ne!(reply.code(), 0, "{name} for {user:?}");
        }
        // Still guest, who may do nothing here.
        let reply = client.call(SELECT, &request(&[(SPACE_ID, &number(304)), (KEY, &[0x90]), (LIMIT, &[1])]));
        assert_eq!(reply.code(), ACCESS_DENIED, "{reply:?}");
        others_are_served(&server, &mut witness);
    }
}

#[test]
fn guest_may_do_nothing_until_granted() {
    let server = Server::start();
    let mut client = server.connect();
    let (key, row, limit) = (array(&[1.into()]), array(&[1.into()]), [1]);
    for space in [272, 280, 288, 296, 304, 312, 320] {
        let id = number(space);
        for (request_type, body) in [
            (SELECT, request(&[(SPACE_ID, &id), (KEY, &[0x90]), (LIMIT, &limit)])),
            (INSERT, request(&[(SPACE_ID, &id), (TUPLE, &row)])),
            (REPLACE, request(&[(SPACE_ID, &id), (TUPLE, &row)])),
            (DELETE, request(&[(SPACE_ID, &id), (KEY, &key)])),
            (UPDATE, request(&[(SPACE_ID, &id), (KEY, &key), (TUPLE, &[0x90])])),
            (UPSERT, request(&[(SPACE_ID, &id), (TUPLE, &row), (OPS, &[0x90])])),
        ] {
            assert_eq!(client.call(request_type, &body).code(), ACCESS_DENIED, "type {request_type} of space {space}");
        }
    }
    for (request_type, key, text) in
        [(EVAL, EXPRESSION, &b"return 1"[..]), (CALL, FUNCTION_NAME, b"os.exit"), (CALL_16, FUNCTION_NAME, b"box.cfg")]
    {
        let reply = client.call(request_type, &request(&[(key, &string(text)), (TUPLE, &[0x90])]));
        assert_eq!(reply.code(), ACCESS_DENIED, "{reply:?}");
    }
    client.ping();
}

#[test]
fn headers_that_ask_for_what_is_not_there_are_refused() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let mut send = |header: &[u8]| {
        client.send(&[&[header.len() as u8], header].concat());
        client.receive()
    };
    // A schema version of another time, in any request.
    assert_eq!(send(&[0x83, 0, 64, 1, 9, 5, 0xcd, 0x7f, 0xff]).code(), WRONG_SCHEMA_VERSION);
    assert_eq!(send(&[0x83, 0, 64, 1, 9, 5, 0]).code(), 0);
    for (request_type, sync) in [(BEGIN, 3), (15, 4), (16, 5)] {
        let reply = send(&[0x82, 0, request_type as u8, 1, sync]);
        assert_eq!((reply.code(), reply.sync), (UNABLE_TO_PROCESS_OUT_OF_STREAM, u64::from(sync)));
    }
    // The type twice, keys of no type, no sync: whatever it means, there is an answer.
    assert_eq!(send(&[0x83, 0, 1, 0, 64, 1, 6]).sync, 6);
    assert_eq!(send(&[0x83, 0xa1, b'x', 7, 0, 64, 1, 8]).code(), INVALID_MSGPACK);
    assert_eq!(send(&[0x81, 0, 64]).sync, 0);
    assert_eq!(send(&[0x81, 1, 5]).code(), UNKNOWN_REQUEST_TYPE);
    seeded.others_are_served();
}

#[test]
fn random_bytes_are_answered_or_refused() {
    let mut seeded = seeded();
    let random = SeededRandomness::new(20_260_717);
    for _ in 0..200 {
        let mut client = seeded.server.connect();
        let mut bytes = vec![0; 1 + random.next_u64() as usize % 2000];
        random.fill(&mut bytes);
        client.send(&bytes);
        client.finish();
        seeded.witness.ping();
    }
    seeded.others_are_served();
}

#[test]
fn mutated_requests_are_answered_one_by_one() {
    let mut seeded = seeded();
    let random = SeededRandomness::new(7);
    let id = numbers();
    let (key, row) = (array(&[1.into(), 2.into()]), array(&[1.into(), 2.into(), "text".into()]));
    let ops = array(&[Field::Raw(&array(&["=".into(), 2.into(), "new".into()]))]);
    let requests = [
        (SELECT, request(&[(SPACE_ID, &id), (KEY, &key), (LIMIT, &[9]), (ITERATOR, &[0]), (OFFSET, &[0])])),
        (REPLACE, request(&[(SPACE_ID, &id), (TUPLE, &row)])),
        (UPDATE, request(&[(SPACE_ID, &id), (KEY, &key), (TUPLE, &ops), (INDEX_BASE, &[0])])),
        (UPSERT, request(&[(SPACE_ID, &id), (TUPLE, &row), (OPS, &ops)])),
        (DELETE, request(&[(SPACE_ID, &id), (KEY, &key)])),
        (CALL, request(&[(FUNCTION_NAME, &string(b"box.info")), (TUPLE, &[0x90])])),
        (AUTH, request(&[(USER_NAME, &string(b"guest")), (TUPLE, &[0x90])])),
    ];
    let mut client = seeded.server.connect();
    for round in 0..4000 {
        // Answers to failed logins come later and later: few of those, and last in the list.
        let kinds = if round < 50 { requests.len() } else { requests.len() - 1 };
        let (request_type, body) = &requests[round % kinds];
        let mut body = body.clone();
        for _ in 0..1 + random.next_u64() % 3 {
            let at = random.next_u64() as usize % body.len();
            match random.next_u64() % 3 {
                0 => body[at] = random.next_u64() as u8,
                1 => body[at] ^= 1 << (random.next_u64() % 8),
                _ => body.truncate(at.max(1)),
            }
        }
        // `call` checks that exactly this request is answered.
        client.call(*request_type, &body);
    }
    seeded.others_are_served();
}
