//! Logging in, as a connector does it.

use crate::{Client, request};
use sha1::{Digest, Sha1};
use tuple::msgpack;

const TUPLE: u64 = 0x21;
const USER_NAME: u64 = 0x23;

fn sha(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = Sha1::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().to_vec()
}

/// The body of a login by chap-sha1 to the server that greeted `client`.
pub fn login(client: &Client, user: &str, password: &str) -> Vec<u8> {
    // 44 characters behind the first line: 32 bytes of salt, of which 20 count: 27 characters.
    let text = &client.greeting()[64..108];
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bits: Vec<u8> = text.iter().flat_map(|byte| (0..6).rev().map(|bit| value(*byte) >> bit & 1)).collect();
    let salt: Vec<u8> = bits.chunks(8).take(20).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit)).collect();
    let first = sha(&[password.as_bytes()]);
    let mask = sha(&[&salt, &sha(&[&first])]);
    let scramble: Vec<u8> = first.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    let mut credentials = Vec::new();
    msgpack::encode_array(&mut credentials, 2);
    msgpack::encode_str(&mut credentials, b"chap-sha1");
    msgpack::encode_str(&mut credentials, &scramble);
    let mut name = Vec::new();
    msgpack::encode_str(&mut name, user.as_bytes());
    request(&[(USER_NAME, &name), (TUPLE, &credentials)])
}
