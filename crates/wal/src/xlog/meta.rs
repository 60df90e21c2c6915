//! The text header that a file begins with.

use super::damage::Flip;
use crate::block;
use crate::vclock::Vclock;

/// The text header of a file.
#[derive(Clone, Debug, Default)]
pub struct FileMeta {
    /// `XLOG`, `SNAP` ...
    pub kind: String,
    /// The instance that wrote it.
    pub instance_uuid: String,
    /// Where it begins.
    pub vclock: Vclock,
    /// Bytes of the header.
    pub bytes: u64,
    /// Another program wrote it: Tarantool.
    pub is_foreign: bool,
}

/// Versions that wrote no checksum of the header.
const VERSION_WITHOUT_CHECKSUM: &str = "Lycosa 0.1.0";
/// In front of the checksum of a header, in the line that Tarantool does not look at.
const CHECKSUM_MARK: &str = " header ";
const CHECKSUM_DIGITS: usize = 8;

impl FileMeta {
    /// The text of a header. The checksum covers all of it, with zeros for its own digits.
    pub(crate) fn encode(kind: &str, instance_uuid: &str, vclock: &Vclock, previous: Option<&Vclock>) -> String {
        let previous = previous.map_or_else(String::new, |vclock| format!("PrevVClock: {vclock}\n"));
        let version = env!("CARGO_PKG_VERSION");
        let with = |checksum: u32| {
            format!(
                "{kind}\n0.13\nVersion: Lycosa {version}{CHECKSUM_MARK}{checksum:08x}\nInstance: {instance_uuid}\n\
                 VClock: {vclock}\n{previous}\n"
            )
        };
        with(block::checksum(with(0).as_bytes()))
    }

    /// Reads a header as it is written, by us or by Tarantool, and in no other way: whatever differs is damage.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").ok_or("the file has no complete header")?;
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "the header is no text")?;
        let mut lines = text.split('\n');
        let kind = lines.next().unwrap_or("").to_string();
        if !matches!(kind.as_str(), "XLOG" | "SNAP" | "VYLOG" | "RUN" | "INDEX") {
            return Err("neither a log nor a snapshot");
        }
        let has_vclock = matches!(kind.as_str(), "XLOG" | "SNAP");
        let is_old = match lines.next() {
            Some("0.13") => false,
            Some("0.12") => true,
            _ => return Err("unknown format version"),
        };
        let mut meta = FileMeta { kind, bytes: end as u64 + 2, ..FileMeta::default() };
        let (mut version, mut vclock) = (None, None);
        let mut keys = Vec::new();
        for line in lines {
            let (key, value) = line.split_once(": ").ok_or("malformed header line")?;
            if keys.contains(&key) {
                return Err("a header line is there twice");
            }
            keys.push(key);
            match key {
                "Version" => version = Some(value),
                "Instance" | "Server" => meta.instance_uuid = value.to_string(),
                "VClock" => vclock = Some(decode_vclock(value)?),
                "PrevVClock" => _ = decode_vclock(value)?,
                _ => return Err("unknown header line"),
            }
        }
        meta.is_foreign = version.is_none_or(|version| !version.starts_with("Lycosa"));
        match version {
            Some(VERSION_WITHOUT_CHECKSUM) => {}
            Some(version) if version.starts_with("Lycosa") => check_header(&bytes[..end + 2], version)?,
            Some(version) if !version.starts_with(|first: char| first.is_ascii_digit()) => {
                return Err("written by an unknown program");
            }
            None if !is_old => return Err("the header has no Version"),
            _ => {}
        }
        if meta.instance_uuid.is_empty() {
            return Err("the header has no Instance");
        }
        if has_vclock {
            meta.vclock = vclock.ok_or("the header has no VClock")?;
        }
        Ok(meta)
    }
}

fn decode_vclock(text: &str) -> Result<Vclock, &'static str> {
    let vclock: Vclock = text.parse().map_err(|()| "malformed VClock")?;
    if vclock.to_string() == text { Ok(vclock) } else { Err("malformed VClock") }
}

/// Compares a header with the checksum that its version line ends with.
fn check_header(header: &[u8], version: &str) -> Result<(), &'static str> {
    let (_, digits) = version.split_once(CHECKSUM_MARK).ok_or("the header has no checksum")?;
    let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let checksum = u32::from_str_radix(digits, 16).map_err(|_| "the header has no checksum")?;
    if digits.len() != CHECKSUM_DIGITS || !digits.bytes().all(is_hex) {
        return Err("the header has no checksum");
    }
    let mark = CHECKSUM_MARK.as_bytes();
    let place = header.windows(mark.len()).position(|window| window == mark).ok_or("the header has no checksum")?;
    let mut zeroed = header.to_vec();
    zeroed[place + mark.len()..][..CHECKSUM_DIGITS].fill(b'0');
    if block::checksum(&zeroed) == checksum { Ok(()) } else { Err("checksum mismatch in the header") }
}

/// A header of which one bit was flipped: what it said, the byte and the bit. Tried on the first kilobyte.
pub(super) fn repair_header(head: &[u8]) -> Option<(FileMeta, Flip)> {
    let mut bytes = head[..head.len().min(1024)].to_vec();
    for at in 0..bytes.len() * 8 {
        bytes[at / 8] ^= 1 << (at % 8);
        // Only a checksum can tell the right place from others.
        if let Ok(meta) = FileMeta::decode(&bytes)
            && bytes[..meta.bytes as usize].windows(8).any(|window| window == CHECKSUM_MARK.as_bytes())
        {
            return Some((meta, Flip { byte: (at / 8) as u64, bit: (at % 8) as u8 }));
        }
        bytes[at / 8] ^= 1 << (at % 8);
    }
    None
}
