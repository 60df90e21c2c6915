//! Compression: packets within frames. Source: MySQL's documentation, "Compressed Packet".
//!
//! ```text
//! frame    length u24 | sequence u8 | length of what was packed u24, or 0: it is as it is | bytes
//! ```

use crate::packing::Packing;
use database::{Error, Result};
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read, Write};

const HEAD_BYTES: usize = 7;
/// What is shorter is not packed.
const PACKED_MIN: usize = 50;
/// Plain bytes of a frame of ours.
const FRAME_BYTES: usize = 1 << 20;
/// Buffers beyond this are given back when they are empty.
const KEPT_BYTES: usize = 64 << 10;

/// See the head of this file. What a frame unpacks to is as long as it says, 16 MiB at most, so that no few bytes become very many.
#[derive(Default)]
pub(super) struct Packed {
    come: Vec<u8>,
    /// Of `come`, what was unpacked.
    at: usize,
    /// The number of the next frame of ours.
    sequence: u8,
}

fn number(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16
}

impl Packed {
    /// The first frame: what is in its head, and where it ends.
    fn head(&self) -> Option<(usize, u8, usize)> {
        let head = self.come.get(self.at..self.at + HEAD_BYTES)?;
        Some((number(head), head[3], number(&head[4..])))
    }
}

impl Packing for Packed {
    fn take(&mut self, bytes: &[u8]) {
        self.come.extend_from_slice(bytes);
    }

    fn unpack(&mut self) -> Result<Option<Vec<u8>>> {
        let Some((length, sequence, plain_bytes)) = self.head() else { return Ok(None) };
        let start = self.at + HEAD_BYTES;
        let Some(bytes) = self.come.get(start..start + length) else { return Ok(None) };
        let wrong = || Error::illegal("Malformed compressed packet");
        let plain = match plain_bytes {
            0 => bytes.to_vec(),
            _ => {
                let mut plain = Vec::new();
                // One byte more would be a frame that says too little.
                let mut packed = ZlibDecoder::new(bytes).take(plain_bytes as u64 + 1);
                packed.read_to_end(&mut plain).map_err(|_| wrong())?;
                if plain.len() != plain_bytes {
                    return Err(wrong());
                }
                plain
            }
        };
        self.sequence = sequence.wrapping_add(1);
        self.at = start + length;
        if self.at == self.come.len() {
            self.come.clear();
            self.come.shrink_to(KEPT_BYTES);
            self.at = 0;
        } else if self.at > KEPT_BYTES {
            self.come.drain(..self.at);
            self.at = 0;
        }
        Ok(Some(plain))
    }

    fn has_frame(&self) -> bool {
        self.head().is_some_and(|(length, ..)| self.come.len() - self.at >= HEAD_BYTES + length)
    }

    fn held(&self) -> usize {
        self.come.len() - self.at
    }

    fn pack(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        for part in plain.chunks(FRAME_BYTES) {
            let start = out.len();
            out.extend_from_slice(&[0; HEAD_BYTES]);
            let mut is_packed = part.len() >= PACKED_MIN;
            if is_packed {
                let mut encoder = ZlibEncoder::new(&mut *out, flate2::Compression::fast());
                // A vector takes everything.
                is_packed = encoder.write_all(part).and_then(|()| encoder.finish().map(|_| ())).is_ok();
                is_packed &= out.len() - start - HEAD_BYTES < part.len();
            }
            if !is_packed {
                out.truncate(start + HEAD_BYTES);
                out.extend_from_slice(part);
            }
            let [a, b, c, ..] = ((out.len() - start - HEAD_BYTES) as u32).to_le_bytes();
            let [d, e, f, ..] = (if is_packed { part.len() as u32 } else { 0 }).to_le_bytes();
            out[start..start + HEAD_BYTES].copy_from_slice(&[a, b, c, self.sequence, d, e, f]);
            self.sequence = self.sequence.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_packed_comes_back_wherever_it_is_cut() {
        let plain: Vec<u8> = (0..3_000_000u32).map(|number| (number / 7) as u8).collect();
        for count in [0, 1, 49, 50, 70_000, plain.len()] {
            let (mut out, mut packed) = (Vec::new(), Packed::default());
            packed.pack(&plain[..count], &mut out);
            let (mut other, mut found) = (Packed::default(), Vec::new());
            for part in out.chunks(1000) {
                other.take(part);
                assert!(other.held() > 0);
                while let Some(more) = other.unpack().unwrap() {
                    found.extend(more);
                }
                assert!(!other.has_frame());
            }
            assert_eq!((found == plain[..count], other.held()), (true, 0));
            assert_eq!(other.sequence, packed.sequence);
        }
    }

    #[test]
    fn frames_that_say_less_or_more_than_they_hold_are_refused() {
        let mut out = Vec::new();
        Packed::default().pack(&vec![7; 100_000], &mut out);
        for said in [99_999u32, 100_001, 1, 0xff_ffff] {
            let mut bad = out.clone();
            bad[4..7].copy_from_slice(&said.to_le_bytes()[..3]);
            let mut packed = Packed::default();
            packed.take(&bad);
            assert!(packed.unpack().is_err(), "{said}");
        }
        let mut packed = Packed::default();
        packed.take(&[4, 0, 0, 0, 9, 0, 0, 1, 2, 3, 4]);
        assert!(packed.unpack().is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut packed = Packed::default();
            packed.take(&bytes);
            while let Ok(Some(_)) = packed.unpack() {}
            prop_assert!(packed.held() <= bytes.len());
        }
    }
}
