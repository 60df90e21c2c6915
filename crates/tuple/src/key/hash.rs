//! Hashes of keys: equal keys have equal ones.

use super::compare::{class_of, moment, values_of};
use super::hint::prefix;
use super::{KeyDef, KeyPart, RowCursor};
use crate::msgpack::Reader;
use crate::number::{Number, ordered_bits};

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a value into a hash: a folded 128-bit product, as wyhash does.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value ^ 0xa076_1d64_78bd_642f) * u128::from(MULTIPLIER | 1);
    (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ value.wrapping_mul(MULTIPLIER)
}

impl KeyDef {
    /// A hash of a row's key; equal keys have equal hashes.
    pub fn hash_row(&self, row: &[u8]) -> u64 {
        if let ([part], Some(values)) = (&self.parts[..], values_of(row, 1).filter(|_| self.leading == 1)) {
            return mix(0, hash_part(part, Some(values)));
        }
        let mut cursor = RowCursor::new(row);
        self.parts.iter().fold(0, |hash, part| mix(hash, hash_part(part, cursor.field(part.field_no))))
    }

    /// As `hash_row`, for a key of one part that is this text.
    #[inline]
    pub fn hash_text(&self, text: &[u8]) -> u64 {
        let collation = self.parts.first().and_then(KeyPart::text_collation);
        mix(0, collation.map_or_else(|| hash_bytes(text), |collation| collation.hash(text)))
    }

    /// As `hash_row`, for all parts of a key.
    pub fn hash_key(&self, key: &[u8]) -> u64 {
        let mut reader = Reader::new(key);
        self.parts.iter().fold(0, |hash, part| {
            let value = reader.rest();
            reader.skip_checked();
            mix(hash, hash_part(part, Some(value)))
        })
    }
}

/// A hash of bytes. It is an order of collations and as such in files: it stays as it is.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        hash = mix(hash, prefix(chunk));
    }
    mix(hash, 0x5bd1_e995)
}

fn hash_part(part: &KeyPart, value: Option<&[u8]>) -> u64 {
    let Some(value) = value else {
        return 0;
    };
    let mut reader = Reader::new(value);
    // The usual form first.
    if let [0xa0..=0xbf | 0xd9, ..] = value
        && part.collation.is_none()
    {
        return hash_bytes(reader.read_str().unwrap_or(b""));
    }
    match class_of(value) {
        1 => 1 + u64::from(reader.read_bool().unwrap_or(false)),
        2 => match Number::read(value) {
            Some(number) => match number.to_integer() {
                Some(integer) => mix(integer as u64, (integer >> 64) as u64),
                None => mix(ordered_bits(number.to_f64()), 7),
            },
            None => 0,
        },
        3 => {
            let text = reader.read_str().unwrap_or(b"");
            part.text_collation().map_or_else(|| hash_bytes(text), |collation| collation.hash(text))
        }
        4 => hash_bytes(reader.read_bin().unwrap_or(b"")),
        5 => hash_bytes(reader.read_ext().map_or(b"", |(_, body)| body)),
        6 => hash_bytes(&moment(value)),
        _ => 0,
    }
}
