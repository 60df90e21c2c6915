//! The binary protocol: packets as requests, and their answers.
//!
//! ```text
//!  0      1       2          4        5         6                8            12        16     24
//!  0x80   opcode  key bytes  extras   0         vbucket          body bytes   opaque    cas    extras, key, value
//!  0x81   opcode  key bytes  extras   0         status           body bytes   opaque    cas    extras, key, value
//! ```

use super::text::{Found, KEY_BYTES_MAX, Request, item_size};

pub(super) const REQUEST_MAGIC: u8 = 0x80;
const ANSWER_MAGIC: u8 = 0x81;
pub(super) const HEADER_BYTES: usize = 24;
/// Longest body of a packet that carries no value.
const SMALL_BODY_BYTES_MAX: usize = 4096;

/// Numbers of commands.
pub(super) mod opcode {
    pub(in super::super) const GET: u8 = 0x00;
    pub(in super::super) const SET: u8 = 0x01;
    pub(in super::super) const ADD: u8 = 0x02;
    pub(in super::super) const REPLACE: u8 = 0x03;
    pub(in super::super) const DELETE: u8 = 0x04;
    pub(in super::super) const INCREMENT: u8 = 0x05;
    pub(in super::super) const DECREMENT: u8 = 0x06;
    pub(in super::super) const QUIT: u8 = 0x07;
    pub(in super::super) const FLUSH: u8 = 0x08;
    pub(in super::super) const GETQ: u8 = 0x09;
    pub(in super::super) const NOOP: u8 = 0x0a;
    pub(in super::super) const VERSION: u8 = 0x0b;
    pub(in super::super) const GETK: u8 = 0x0c;
    pub(in super::super) const GETKQ: u8 = 0x0d;
    pub(in super::super) const APPEND: u8 = 0x0e;
    pub(in super::super) const PREPEND: u8 = 0x0f;
    pub(in super::super) const STAT: u8 = 0x10;
    pub(in super::super) const SETQ: u8 = 0x11;
    pub(in super::super) const PREPENDQ: u8 = 0x1a;
    pub(in super::super) const VERBOSITY: u8 = 0x1b;
    pub(in super::super) const TOUCH: u8 = 0x1c;
    pub(in super::super) const GAT: u8 = 0x1d;
    pub(in super::super) const GATQ: u8 = 0x1e;
    pub(in super::super) const SASL_LIST: u8 = 0x20;
    pub(in super::super) const SASL_AUTH: u8 = 0x21;
    pub(in super::super) const SASL_STEP: u8 = 0x22;
    pub(in super::super) const GATK: u8 = 0x23;
    pub(in super::super) const GATKQ: u8 = 0x24;
}

/// Numbers that say how a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Status {
    Ok = 0x00,
    NotFound = 0x01,
    Exists = 0x02,
    TooLarge = 0x03,
    Invalid = 0x04,
    NotStored = 0x05,
    BadDelta = 0x06,
    Auth = 0x20,
    Unknown = 0x81,
    NoMemory = 0x82,
    Internal = 0x84,
}

impl Status {
    pub(super) fn text(self) -> &'static str {
        match self {
            Status::Ok => "",
            Status::NotFound => "Not found",
            Status::Exists => "Data exists for key.",
            Status::TooLarge => "Too large.",
            Status::Invalid => "Invalid arguments",
            Status::NotStored => "Not stored.",
            Status::BadDelta => "Non-numeric server-side value for incr or decr",
            Status::Auth => "Auth failure.",
            Status::Unknown => "Unknown command",
            Status::NoMemory => "Out of memory",
            Status::Internal => "Internal error",
        }
    }
}

/// A packet whose parts are as long as it says.
#[derive(Clone, Copy)]
pub(crate) struct Packet<'a> {
    /// As it was sent.
    pub(super) opcode: u8,
    /// The command without its being quiet.
    pub(super) command: u8,
    pub(super) is_quiet: bool,
    pub(super) opaque: u32,
    pub(super) cas: u64,
    pub(super) extras: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    /// Answered with this, whatever else it is.
    pub(super) refused: Option<Status>,
    /// The connection ends behind the answer.
    pub(super) is_last: bool,
}

/// The command of an opcode, and whether it is the quiet form.
fn command_of(code: u8) -> (u8, bool) {
    match code {
        opcode::GETQ => (opcode::GET, true),
        opcode::GETKQ => (opcode::GETK, true),
        opcode::GATQ => (opcode::GAT, true),
        opcode::GATKQ => (opcode::GATK, true),
        // SETQ, ADDQ, REPLACEQ, DELETEQ, INCREMENTQ, DECREMENTQ, QUITQ, FLUSHQ
        opcode::SETQ..=0x18 => (code - 0x10, true),
        0x19 | opcode::PREPENDQ => (code - 0x0b, true),
        _ => (code, false),
    }
}

pub(super) fn be_u32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

pub(super) fn be_u64(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Finds the first packet.
pub(super) fn split(input: &[u8], item_size_max: usize) -> Found<'_> {
    if input.first().is_some_and(|magic| *magic != REQUEST_MAGIC) {
        return Found::Whole(Request::Leave("sends a packet that begins with no magic byte"), input.len());
    }
    let Some(header) = input.get(..HEADER_BYTES) else { return Found::Part(0) };
    let (command, is_quiet) = command_of(header[1]);
    let (key_length, extras_length) = (usize::from(header[2]) << 8 | usize::from(header[3]), usize::from(header[4]));
    let body_length = be_u32(&header[8..]) as usize;
    let mut packet = Packet {
        opcode: header[1],
        command,
        is_quiet,
        opaque: be_u32(&header[12..]),
        cas: be_u64(&header[16..]),
        extras: &[],
        key: &[],
        value: &[],
        refused: None,
        is_last: false,
    };
    let refuse = |status, is_last, length| {
        Found::Last(Request::Packet(Packet { refused: Some(status), is_last, ..packet }), length)
    };
    if key_length + extras_length > body_length {
        return refuse(Status::Unknown, true, HEADER_BYTES);
    }
    if key_length > KEY_BYTES_MAX {
        return refuse(Status::Invalid, true, HEADER_BYTES);
    }
    let value_length = body_length - key_length - extras_length;
    let is_storing = matches!(command, opcode::SET | opcode::ADD | opcode::REPLACE | opcode::APPEND | opcode::PREPEND);
    let whole = HEADER_BYTES + body_length;
    let start = HEADER_BYTES + extras_length;
    if !is_storing && body_length > SMALL_BODY_BYTES_MAX {
        return refuse(Status::Invalid, true, HEADER_BYTES);
    }
    if is_storing {
        let Some(prefix) = input.get(HEADER_BYTES..start + key_length) else { return Found::Part(0) };
        let (extras, key) = prefix.split_at(extras_length);
        let flags = if extras_length == 8 { be_u32(extras) } else { 0 };
        if item_size(key, flags, value_length) > item_size_max {
            let taken = whole.min(input.len());
            let lost = if command == opcode::SET { key } else { &[] };
            let is_binary = Some((packet.opcode, packet.opaque));
            let skipped = (whole - taken) as u64;
            return Found::Last(Request::Oversized { key: lost, answer: "", skipped, is_binary }, taken);
        }
    }
    let Some(body) = input.get(HEADER_BYTES..whole) else { return Found::Part(whole as u64) };
    packet.extras = &body[..extras_length];
    packet.key = &body[extras_length..extras_length + key_length];
    packet.value = &body[extras_length + key_length..];
    if !is_well_formed(&packet) {
        packet.refused = Some(Status::Invalid);
        packet.is_last = true;
        return Found::Last(Request::Packet(packet), whole);
    }
    match command {
        opcode::QUIT | opcode::SASL_AUTH | opcode::SASL_STEP => Found::Last(Request::Packet(packet), whole),
        _ => Found::Whole(Request::Packet(packet), whole),
    }
}

/// True if a packet has the parts that its command needs, and no others.
fn is_well_formed(packet: &Packet<'_>) -> bool {
    let (extras, has_key, has_value) = (packet.extras.len(), !packet.key.is_empty(), !packet.value.is_empty());
    match packet.command {
        opcode::VERSION | opcode::NOOP | opcode::QUIT | opcode::SASL_LIST => extras == 0 && !has_key && !has_value,
        opcode::FLUSH => !has_key && !has_value && (extras == 0 || extras == 4),
        opcode::SET | opcode::ADD | opcode::REPLACE => extras == 8 && has_key,
        opcode::GET | opcode::GETK | opcode::DELETE => extras == 0 && has_key && !has_value,
        opcode::INCREMENT | opcode::DECREMENT => extras == 20 && has_key && !has_value,
        opcode::APPEND | opcode::PREPEND => extras == 0 && has_key,
        opcode::STAT => extras == 0,
        opcode::VERBOSITY => extras == 4 && !has_key && !has_value,
        opcode::TOUCH | opcode::GAT | opcode::GATK => extras == 4 && has_key,
        opcode::SASL_AUTH | opcode::SASL_STEP => extras == 0 && has_key,
        _ => true,
    }
}

/// Appends an answer.
pub(super) fn answer(
    out: &mut Vec<u8>,
    (opcode, opaque): (u8, u32),
    status: Status,
    cas: u64,
    (extras, key, value): (&[u8], &[u8], &[u8]),
) {
    let body = extras.len() + key.len() + value.len();
    out.extend_from_slice(&[ANSWER_MAGIC, opcode]);
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&(status as u16).to_be_bytes());
    out.extend_from_slice(&(body as u32).to_be_bytes());
    out.extend_from_slice(&opaque.to_be_bytes());
    out.extend_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(extras);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Appends an answer that says how a request has failed.
pub(super) fn refuse(out: &mut Vec<u8>, to: (u8, u32), status: Status, text: &str) {
    answer(out, to, status, 0, (&[], &[], text.as_bytes()));
}
