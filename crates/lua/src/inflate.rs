//! Packed bodies of answers: `gzip`, and `deflate` in both its meanings. The caller bounds what comes out.

use crate::byte_streams::{ByteStream, keep, refuse};
use crate::state::{Function, Raise, State};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::ffi::c_int;
use std::io::Write;

type Outcome = Result<c_int, Raise>;

enum Inflate {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// `deflate`, whose first two bytes tell what is meant. Holds what has come of them.
    Unknown(Vec<u8>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
}

/// The two bytes that zlib's form begins with: the method in the lowest bits, and a number that 31 divides.
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && (u16::from(first) << 8 | u16::from(second)).is_multiple_of(31)
}

impl ByteStream for Inflate {
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String> {
        if let Inflate::Unknown(begun) = self {
            begun.extend_from_slice(input);
            let [first, second, ..] = begun[..] else { return Ok(Vec::new()) };
            let begun = std::mem::take(begun);
            *self = match is_zlib(first, second) {
                true => Inflate::Zlib(ZlibDecoder::new(Vec::new())),
                false => Inflate::Raw(DeflateDecoder::new(Vec::new())),
            };
            return self.update(&begun);
        }
        let (written, output) = match self {
            Inflate::Gzip(decoder) => (decoder.write_all(input).and_then(|()| decoder.flush()), decoder.get_mut()),
            Inflate::Zlib(decoder) => (decoder.write_all(input).and_then(|()| decoder.flush()), decoder.get_mut()),
            Inflate::Raw(decoder) => (decoder.write_all(input).and_then(|()| decoder.flush()), decoder.get_mut()),
            Inflate::Unknown(_) => return Ok(Vec::new()),
        };
        written.map_err(|error| error.to_string())?;
        Ok(std::mem::take(output))
    }

    fn finish(&mut self) -> Result<Vec<u8>, String> {
        let (finished, output) = match self {
            Inflate::Gzip(decoder) => (decoder.try_finish(), decoder.get_mut()),
            Inflate::Zlib(decoder) => (decoder.try_finish(), decoder.get_mut()),
            Inflate::Raw(decoder) => (decoder.try_finish(), decoder.get_mut()),
            Inflate::Unknown(_) => return Err("the body is cut".into()),
        };
        finished.map_err(|error| error.to_string())?;
        Ok(std::mem::take(output))
    }
}

/// inflate(number, coding) -> number; or nil and what is wrong. A number of 0 is one to be made.
fn inflate(state: State) -> Outcome {
    let number = state.check_number(1, "number")?;
    match state.check_string(2, "coding")?.as_str() {
        "gzip" | "x-gzip" => keep(state, number, Box::new(Inflate::Gzip(MultiGzDecoder::new(Vec::new())))),
        "deflate" => keep(state, number, Box::new(Inflate::Unknown(Vec::new()))),
        other => refuse(state, &format!("unknown coding {other}")),
    }
}

/// Functions of `box.internal` for packed bodies.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[("inflate", inflate)];

#[cfg(test)]
mod tests {
    use super::{ByteStream, Inflate};
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, MultiGzDecoder, ZlibEncoder};
    use std::io::Write;

    #[test]
    fn packed_bytes_come_back_and_damaged_ones_are_refused_or_others() {
        let text: Vec<u8> = (0..100_000u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        for encoder in [&mut gzip as &mut dyn Write, &mut zlib, &mut raw] {
            encoder.write_all(&text).expect("memory takes it");
        }
        let (gzip, zlib, raw) = (gzip.finish(), zlib.finish(), raw.finish());
        for (is_gzip, packed) in [(true, gzip), (false, zlib), (false, raw)] {
            let packed = packed.expect("memory takes it");
            let unpack = |packed: &[u8], piece| -> Result<Vec<u8>, String> {
                let mut stream = match is_gzip {
                    true => Inflate::Gzip(MultiGzDecoder::new(Vec::new())),
                    false => Inflate::Unknown(Vec::new()),
                };
                let mut output = Vec::new();
                for part in packed.chunks(piece) {
                    output.extend(stream.update(part)?);
                }
                output.extend(stream.finish()?);
                Ok(output)
            };
            for piece in [1, 2, 1000, 1 << 20] {
                assert_eq!(unpack(&packed, piece).as_deref(), Ok(&text[..]));
            }
            for at in (0..packed.len()).step_by(packed.len() / 200 + 1) {
                let mut damaged = packed.clone();
                damaged[at] ^= 0x55;
                let _ = unpack(&damaged, 4096);
                let _ = unpack(&packed[..at], 4096);
            }
        }
    }
}
