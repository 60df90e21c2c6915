//! The binary protocol's requests and answers.

use crate::machine::Machine;
use crate::report::Report;
use protocol::iproto::{Request, encode_error};
use std::hint::black_box;
use tuple::msgpack;
use wire::{Header, Packet, next_packet};

const REPLACE: u64 = 3;
const PACKETS: usize = 256;

/// A replace of a row with 100 bytes of text, as a connector sends it.
fn packet(sync: u64) -> Vec<u8> {
    let mut body = Vec::new();
    msgpack::encode_map(&mut body, 2);
    msgpack::encode_uint(&mut body, 0);
    msgpack::encode_uint(&mut body, REPLACE);
    msgpack::encode_uint(&mut body, 1);
    msgpack::encode_uint(&mut body, sync);
    msgpack::encode_map(&mut body, 2);
    msgpack::encode_uint(&mut body, 0x10);
    msgpack::encode_uint(&mut body, 512);
    msgpack::encode_uint(&mut body, 0x21);
    msgpack::encode_array(&mut body, 2);
    msgpack::encode_uint(&mut body, sync * 1000);
    msgpack::encode_str(&mut body, &[b'x'; 100]);
    let mut out = vec![0xce];
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(&body);
    out
}

pub(crate) fn run(machine: &Machine, report: &Report) {
    if !report.wants("codec") {
        return;
    }
    let input: Vec<u8> = (0..PACKETS as u64).flat_map(packet).collect();
    let bytes = input.len() as f64 / PACKETS as f64;
    let rounds = 1000;
    let bound_ns = bytes * machine.copy_byte_ns / 2.0;
    report.case("codec decode of a replace", rounds * PACKETS as u64, bound_ns, "its bytes read", || {
        for _ in 0..rounds {
            let mut rest = black_box(&input[..]);
            while let Ok(Packet::Complete(packet, length)) = next_packet(rest) {
                if let Ok((header, body)) = Header::decode(packet) {
                    let _ = black_box((header.sync, Request::decode(header.request_type, body)));
                }
                rest = &rest[length..];
            }
        }
    });
    let error = database::Error::illegal("a text that is about as long as most are");
    let mut out = Vec::new();
    encode_error(&mut out, 1, 1, &error);
    let bound_ns = out.len() as f64 * machine.copy_byte_ns;
    report.case("codec encode of an error", rounds, bound_ns, "its bytes written", || {
        for sync in 0..rounds {
            out.clear();
            encode_error(&mut out, sync, 1, black_box(&error));
        }
        black_box(&out);
    });
}
