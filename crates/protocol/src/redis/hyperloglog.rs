//! HyperLogLog: how many different elements there were, in a string of Redis' form.
//!
//! Source: the description of that form in Redis' documentation, O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), and
//! MurmurHash64A by A. Appleby, which is in the public domain.

use super::call::Call;
use super::config;
use super::failure::{Outcome, SYNTAX, WRONG_TYPE};

const REGISTERS: usize = 1 << 14;
const MAGIC: &[u8; 4] = b"HYLL";
const HEADER_BYTES: usize = 16;
const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * 6 / 8;
/// The largest value in the short form.
const SPARSE_VALUE_MAX: u8 = 32;
const SEED: u64 = 0xadc8_3b19;

const NOT_ONE: &str = "WRONGTYPE Key is not a valid HyperLogLog string value.";
const BROKEN: &str = "INVALIDOBJ Corrupted HLL object detected";

fn murmur(data: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = SEED ^ (data.len() as u64).wrapping_mul(M);
    let mut chunks = data.chunks_exact(8);
    for chunk in &mut chunks {
        let mut key = u64::from_le_bytes(chunk.try_into().unwrap_or_default()).wrapping_mul(M);
        key = (key ^ (key >> 47)).wrapping_mul(M);
        hash = (hash ^ key).wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        rest.iter().enumerate().for_each(|(at, byte)| hash ^= u64::from(*byte) << (8 * at));
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(M);
    hash ^ (hash >> 47)
}

/// Registers, and whether they came in the long form.
struct Sketch {
    registers: Vec<u8>,
    is_dense: bool,
}

impl Sketch {
    fn empty() -> Self {
        Sketch { registers: vec![0; REGISTERS], is_dense: false }
    }

    /// Reads the string of a key. Errors: it is none of these, or damaged.
    fn read(value: &[u8]) -> Outcome<Self> {
        let is_known = value.len() >= HEADER_BYTES && value.starts_with(MAGIC) && value[4] <= 1;
        if !is_known || value[4] == 0 && value.len() != DENSE_BYTES {
            return Err(NOT_ONE.into());
        }
        let body = &value[HEADER_BYTES..];
        let mut sketch = Sketch { registers: Vec::with_capacity(REGISTERS), is_dense: value[4] == 0 };
        if sketch.is_dense {
            for group in body.chunks_exact(3) {
                let bits = u32::from_le_bytes([group[0], group[1], group[2], 0]);
                sketch.registers.extend((0..4).map(|at| (bits >> (6 * at) & 63) as u8));
            }
            return Ok(sketch);
        }
        let mut at = 0;
        while at < body.len() {
            let (value, count) = match body[at] {
                first @ 0x80.. => ((first >> 2 & 31) + 1, usize::from(first & 3) + 1),
                first @ 0x40.. => {
                    at += 1;
                    let low = *body.get(at).ok_or(BROKEN)?;
                    (0, (usize::from(first & 63) << 8 | usize::from(low)) + 1)
                }
                first => (0, usize::from(first & 63) + 1),
            };
            at += 1;
            if sketch.registers.len() + count > REGISTERS {
                return Err(BROKEN.into());
            }
            sketch.registers.resize(sketch.registers.len() + count, value);
        }
        if sketch.registers.len() == REGISTERS { Ok(sketch) } else { Err(BROKEN.into()) }
    }

    /// Notes an element. True: it changed something.
    fn add(&mut self, element: &[u8]) -> bool {
        let hash = murmur(element);
        let register = &mut self.registers[(hash % REGISTERS as u64) as usize];
        let value = ((hash >> 14 | 1 << 50).trailing_zeros() + 1) as u8;
        let is_more = value > *register;
        *register = (*register).max(value);
        is_more
    }

    fn merge(&mut self, other: &Sketch) {
        self.registers.iter_mut().zip(&other.registers).for_each(|(own, other)| *own = (*own).max(*other));
        self.is_dense |= other.is_dense;
    }

    /// The short form. None: it is too long, or has values that do not fit.
    fn sparse(&self, bytes_max: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < REGISTERS {
            let value = self.registers[at];
            let run = self.registers[at..].iter().take_while(|other| **other == value).count();
            let taken = match (value, run) {
                (0, 65..) => {
                    let rest = (run - 1) as u16;
                    out.extend_from_slice(&[0x40 | (rest >> 8) as u8, rest as u8]);
                    run
                }
                (0, _) => {
                    out.push((run - 1) as u8);
                    run
                }
                (1..=SPARSE_VALUE_MAX, _) => {
                    let run = run.min(4);
                    out.push(0x80 | (value - 1) << 2 | (run - 1) as u8);
                    run
                }
                _ => return None,
            };
            at += taken;
            if out.len() + HEADER_BYTES > bytes_max {
                return None;
            }
        }
        Some(out)
    }

    /// As the string of a key: without a count that was made before.
    fn write(&self, bytes_max: usize) -> Vec<u8> {
        let short = if self.is_dense { None } else { self.sparse(bytes_max) };
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&[u8::from(short.is_some()), 0, 0, 0]);
        out.extend_from_slice(&(1u64 << 63).to_le_bytes());
        match short {
            Some(short) => out.extend_from_slice(&short),
            None => {
                for group in self.registers.chunks_exact(4) {
                    let bits = group.iter().rev().fold(0u32, |bits, value| bits << 6 | u32::from(*value));
                    out.extend_from_slice(&bits.to_le_bytes()[..3]);
                }
            }
        }
        out
    }

    /// How many different elements there were, about.
    fn count(&self) -> u64 {
        const ALPHA: f64 = 0.721_347_520_444_481_7;
        let mut histogram = [0u32; 64];
        self.registers.iter().for_each(|value| histogram[usize::from(value & 63)] += 1);
        let m = REGISTERS as f64;
        let mut z = m * tau((m - f64::from(histogram[51])) / m);
        for count in histogram[1..=50].iter().rev() {
            z = (z + f64::from(*count)) * 0.5;
        }
        z += m * sigma(f64::from(histogram[0]) / m);
        (ALPHA * m * m / z).round() as u64
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

/// The sketch of a key and when it ends.
fn find(call: &Call<'_>, key: &[u8]) -> Outcome<Option<(Sketch, Option<u64>)>> {
    match call.find(key)? {
        Some(entry) if entry.head.is_some() => Err(WRONG_TYPE.into()),
        Some(entry) => Ok(Some((Sketch::read(entry.string()?)?, entry.expires))),
        None => Ok(None),
    }
}

fn bytes_max(call: &Call<'_>) -> usize {
    config::number(call, "hll-sparse-max-bytes") as usize
}

pub(super) fn pfadd(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let found = find(call, key)?;
    let is_new = found.is_none();
    let (mut sketch, expires) = found.unwrap_or_else(|| (Sketch::empty(), None));
    let changed = call.args[2..].iter().fold(is_new, |changed, element| sketch.add(element) || changed);
    if changed {
        let value = sketch.write(bytes_max(call));
        call.put_string(key, &value, expires, None)?;
    }
    call.reply().integer(i64::from(changed));
    Ok(())
}

fn merged(call: &Call<'_>, keys: &[&[u8]]) -> Outcome<Sketch> {
    let mut all = Sketch::empty();
    for key in keys {
        if let Some((sketch, _)) = find(call, key)? {
            all.merge(&sketch);
        }
    }
    Ok(all)
}

pub(super) fn pfcount(call: &mut Call<'_>) -> Outcome {
    let count = merged(call, &call.args[1..])?.count();
    call.reply().integer(count as i64);
    Ok(())
}

pub(super) fn pfmerge(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let sketch = merged(call, &call.args[1..])?;
    let expires = call.find(key)?.and_then(|entry| entry.expires);
    let value = sketch.write(bytes_max(call));
    call.put_string(key, &value, expires, None)?;
    call.reply().ok();
    Ok(())
}

/// `PFSELFTEST`: tests are not run where values are served.
pub(super) fn pfselftest(call: &mut Call<'_>) -> Outcome {
    call.reply().ok();
    Ok(())
}

/// `PFDEBUG`: what tests of clients look at.
pub(super) fn pfdebug(call: &mut Call<'_>) -> Outcome {
    let key = call.args[2];
    let (mut sketch, expires) = find(call, key)?.ok_or("ERR The specified key does not exist")?;
    match call.args[1].to_ascii_lowercase().as_slice() {
        b"getreg" => {
            let mut reply = call.reply();
            reply.array(REGISTERS);
            sketch.registers.iter().for_each(|value| reply.integer(i64::from(*value)));
        }
        b"encoding" => call.reply().simple(if sketch.is_dense { "dense" } else { "sparse" }),
        b"todense" => {
            let is_changed = !sketch.is_dense;
            if is_changed {
                sketch.is_dense = true;
                call.put_string(key, &sketch.write(0), expires, None)?;
            }
            call.reply().integer(i64::from(is_changed));
        }
        _ => return Err(SYNTAX.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_hold_the_same_and_counts_are_near() {
        let mut sketch = Sketch::empty();
        for number in 0..100_000u64 {
            sketch.add(&number.to_le_bytes());
            if [10, 1000, 99_999].contains(&number) {
                let (short, long) = (sketch.write(3000), sketch.write(0));
                for form in [&short, &long] {
                    let read = Sketch::read(form).unwrap_or_else(|_| Sketch::empty());
                    assert!(read.registers == sketch.registers, "{number}");
                }
                let error = (sketch.count() as f64 - number as f64 - 1.0).abs() / (number as f64 + 1.0);
                assert!(error < 0.03, "{number}: {error}");
            }
        }
        assert_eq!(Sketch::empty().count(), 0);
    }

    #[test]
    fn damaged_strings_are_refused() {
        let good = Sketch::empty().write(3000);
        for end in 0..good.len() {
            assert!(Sketch::read(&good[..end]).is_err());
        }
        for damaged in
            [&b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff\x7f\xff"[..], b"HYLL\x00", b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\x80"]
        {
            assert!(Sketch::read(damaged).is_err());
        }
    }
}
