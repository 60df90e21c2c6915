//! Strings as bits: `SETBIT`, `BITCOUNT`, `BITOP`, `BITFIELD`.

use super::call::Call;
use super::failure::{Outcome, SYNTAX};
use super::resp::integer;
use super::strings::{check_grown, span};

const OFFSET: &str = "ERR bit offset is not an integer or out of range";
const FIELD_TYPE: &str =
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
/// Bits that a string may have.
const BITS_MAX: u64 = (512 << 20) * 8;

fn offset(text: &[u8]) -> Outcome<u64> {
    let offset = integer(text).and_then(|offset| u64::try_from(offset).ok());
    offset.filter(|offset| *offset < BITS_MAX).ok_or_else(|| OFFSET.into())
}

fn value(call: &Call<'_>, key: &[u8]) -> Outcome<(Option<super::call::Entry>, Vec<u8>)> {
    let entry = call.find(key)?;
    let value = match &entry {
        Some(entry) => entry.string()?.to_vec(),
        None => Vec::new(),
    };
    Ok((entry, value))
}

pub(super) fn setbit(call: &mut Call<'_>) -> Outcome {
    let (key, offset) = (call.args[1], offset(call.args[2])?);
    let bit = match call.args[3] {
        b"0" => 0,
        b"1" => 1,
        _ => return Err("ERR bit is not an integer or out of range".into()),
    };
    let (old, mut value) = value(call, key)?;
    let (byte, mask) = ((offset / 8) as usize, 0x80_u8 >> (offset % 8));
    let grows = value.len() <= byte;
    if grows {
        check_grown(key, byte + 1)?;
        value.resize(byte + 1, 0);
    }
    let before = u8::from(value[byte] & mask != 0);
    if before != bit || grows || old.is_none() {
        value[byte] = if bit == 1 { value[byte] | mask } else { value[byte] & !mask };
        let expires = old.as_ref().and_then(|old| old.expires);
        call.put_string(key, &value, expires, old.as_ref())?;
    }
    call.reply().integer(i64::from(before));
    Ok(())
}

pub(super) fn getbit(call: &mut Call<'_>) -> Outcome {
    let offset = offset(call.args[2])?;
    let bit = match call.find(call.args[1])? {
        Some(entry) => {
            let byte = entry.string()?.get((offset / 8) as usize).copied().unwrap_or(0);
            i64::from(byte >> (7 - offset % 8) & 1)
        }
        None => 0,
    };
    call.reply().integer(bit);
    Ok(())
}

fn bit_at(value: &[u8], at: usize) -> u8 {
    value[at / 8] >> (7 - at % 8) & 1
}

/// Reads `[BYTE|BIT]` at an argument: whether places are bits.
fn counts_bits(call: &Call<'_>, at: usize) -> Outcome<bool> {
    match call.args.get(at) {
        None => Ok(false),
        Some(_) if call.is_word(at, "byte") => Ok(false),
        Some(_) if call.is_word(at, "bit") => Ok(true),
        Some(_) => Err(SYNTAX.into()),
    }
}

pub(super) fn bitcount(call: &mut Call<'_>) -> Outcome {
    let (old, value) = value(call, call.args[1])?;
    let range = match call.args.len() {
        2 => None,
        // As Redis, which looks no further then.
        _ if old.is_none() => None,
        4 | 5 => Some((call.integer(2)?, call.integer(3)?, counts_bits(call, 4)?)),
        _ => return Err(SYNTAX.into()),
    };
    let ones = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
    let count = match range {
        None => ones(&value),
        Some((from, to, false)) => ones(&value[span(value.len(), from, to)]),
        Some((from, to, true)) => {
            let places = span(value.len() * 8, from, to);
            let (begin, end) = (places.start.div_ceil(8), places.end / 8);
            match begin < end {
                true => {
                    let edges = (places.start..begin * 8).chain(end * 8..places.end);
                    ones(&value[begin..end]) + edges.map(|at| u64::from(bit_at(&value, at))).sum::<u64>()
                }
                false => places.map(|at| u64::from(bit_at(&value, at))).sum(),
            }
        }
    };
    call.reply().integer(count as i64);
    Ok(())
}

pub(super) fn bitpos(call: &mut Call<'_>) -> Outcome {
    let bit = match call.args[2] {
        b"0" => 0,
        b"1" => 1,
        _ => return Err("ERR The bit argument must be 1 or 0.".into()),
    };
    let Some(entry) = call.find(call.args[1])? else {
        call.reply().integer(if bit == 1 { -1 } else { 0 });
        return Ok(());
    };
    let value = entry.string()?;
    let has_end = call.args.len() > 4;
    let from = if call.args.len() > 3 { call.integer(3)? } else { 0 };
    let to = if has_end { call.integer(4)? } else { -1 };
    let by_bits = counts_bits(call, 5)?;
    if call.args.len() > 6 {
        return Err(SYNTAX.into());
    }
    let places = match by_bits {
        true => span(value.len() * 8, from, to),
        false => {
            let bytes = span(value.len(), from, to);
            bytes.start * 8..bytes.end * 8
        }
    };
    let end = places.end;
    let is_empty = places.is_empty();
    let plain = if bit == 1 { 0x00 } else { 0xff };
    let mut at = places.start;
    let found = loop {
        if at >= end {
            break None;
        }
        if at.is_multiple_of(8) && at + 8 <= end && value[at / 8] == plain {
            at += 8;
        } else if bit_at(value, at) == bit {
            break Some(at as i64);
        } else {
            at += 1;
        }
    };
    let answer = match found {
        Some(at) => at,
        // Behind the end of a string all bits are 0.
        None if bit == 0 && !has_end && !is_empty => end as i64,
        None => -1,
    };
    call.reply().integer(answer);
    Ok(())
}

pub(super) fn bitop(call: &mut Call<'_>) -> Outcome {
    let (key, sources) = (call.args[2], &call.args[3..]);
    let is = |word: &str| call.is_word(1, word);
    let operation: fn(u8, u8) -> u8 = if is("and") {
        |a, b| a & b
    } else if is("or") {
        |a, b| a | b
    } else if is("xor") {
        |a, b| a ^ b
    } else if is("not") {
        |a, _| !a
    } else {
        return Err(SYNTAX.into());
    };
    if is("not") && sources.len() != 1 {
        return Err("ERR BITOP NOT must be called with a single source key.".into());
    }
    let mut values = Vec::new();
    for source in sources {
        values.push(value(call, source)?.1);
    }
    let length = values.iter().map(Vec::len).max().unwrap_or(0);
    let byte = |value: &Vec<u8>, at: usize| value.get(at).copied().unwrap_or(0);
    let result: Vec<u8> = (0..length)
        .map(|at| match values.as_slice() {
            [only] if is("not") => operation(byte(only, at), 0),
            all => all.iter().map(|value| byte(value, at)).reduce(operation).unwrap_or(0),
        })
        .collect();
    let old = call.find(key)?;
    match (result.is_empty(), &old) {
        (true, Some(_)) => {
            call.remove(key)?;
        }
        (true, None) => {}
        (false, old) => call.put_string(key, &result, None, old.as_ref())?,
    }
    call.reply().count(result.len());
    Ok(())
}

/// A whole number within a string.
#[derive(Clone, Copy)]
struct Field {
    is_signed: bool,
    bits: u32,
    at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Field {
    fn read(kind: &[u8], place: &[u8]) -> Outcome<Self> {
        let (is_signed, digits) = match kind {
            [b'i' | b'I', digits @ ..] => (true, digits),
            [b'u' | b'U', digits @ ..] => (false, digits),
            _ => return Err(FIELD_TYPE.into()),
        };
        let bits = integer(digits)
            .filter(|bits| (1..=if is_signed { 64 } else { 63 }).contains(bits))
            .ok_or(FIELD_TYPE)? as u32;
        let at = match place {
            [b'#', number @ ..] => offset(number)?.checked_mul(u64::from(bits)).ok_or(OFFSET)?,
            place => offset(place)?,
        };
        if at + u64::from(bits) > BITS_MAX {
            return Err(OFFSET.into());
        }
        Ok(Field { is_signed, bits, at })
    }

    fn get(self, value: &[u8]) -> i64 {
        let mut raw: u64 = 0;
        for at in self.at..self.at + u64::from(self.bits) {
            let byte = value.get((at / 8) as usize).copied().unwrap_or(0);
            raw = raw << 1 | u64::from(byte >> (7 - at % 8) & 1);
        }
        let unused = 64 - self.bits;
        if self.is_signed { (raw << unused) as i64 >> unused } else { raw as i64 }
    }

    /// Puts a number into a string that is long enough.
    fn set(self, value: &mut [u8], number: i64) {
        for number_bit in 0..self.bits {
            let at = self.at + u64::from(number_bit);
            let bit = (number as u64) >> (self.bits - 1 - number_bit) & 1;
            let (byte, mask) = ((at / 8) as usize, 0x80_u8 >> (at % 8));
            value[byte] = if bit == 1 { value[byte] | mask } else { value[byte] & !mask };
        }
    }

    /// A number brought into what the field takes. None: it does not fit, and that is to fail.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (low, high) = match self.is_signed {
            true => (-(1_i128 << (self.bits - 1)), (1_i128 << (self.bits - 1)) - 1),
            false => (0, (1_i128 << self.bits) - 1),
        };
        if (low..=high).contains(&number) {
            return i64::try_from(number).ok();
        }
        match overflow {
            Overflow::Fail => None,
            Overflow::Saturate => i64::try_from(number.clamp(low, high)).ok(),
            Overflow::Wrap => {
                let wrapped = number & ((1_i128 << self.bits) - 1);
                let wrapped = if self.is_signed && wrapped > high { wrapped - (1_i128 << self.bits) } else { wrapped };
                i64::try_from(wrapped).ok()
            }
        }
    }
}

fn bitfield_as(call: &mut Call<'_>, reads_only: bool) -> Outcome {
    let key = call.args[1];
    let mut steps = Vec::new();
    let (mut at, mut overflow) = (2, Overflow::Wrap);
    while at < call.args.len() {
        let part = |number: usize| call.args.get(at + number).copied().ok_or(SYNTAX);
        if call.is_word(at, "get") {
            steps.push((Field::read(part(1)?, part(2)?)?, None, overflow));
            at += 3;
        } else if call.is_word(at, "overflow") && !reads_only {
            part(1)?;
            overflow = if call.is_word(at + 1, "wrap") {
                Overflow::Wrap
            } else if call.is_word(at + 1, "sat") {
                Overflow::Saturate
            } else if call.is_word(at + 1, "fail") {
                Overflow::Fail
            } else {
                return Err("ERR Invalid OVERFLOW type specified".into());
            };
            at += 2;
        } else if call.is_word(at, "set") || call.is_word(at, "incrby") {
            if reads_only {
                return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
            }
            let field = Field::read(part(1)?, part(2)?)?;
            part(3)?;
            let number = call.integer(at + 3)?;
            steps.push((field, Some((call.is_word(at, "set"), number)), overflow));
            at += 4;
        } else {
            return Err(SYNTAX.into());
        }
    }
    let (old, mut value) = value(call, key)?;
    // As Redis: a string that is to be changed is made long enough, whether it changes or not.
    let writes = steps.iter().filter(|(_, change, _)| change.is_some());
    let length = writes.map(|(field, ..)| (field.at + u64::from(field.bits)).div_ceil(8) as usize).max().unwrap_or(0);
    let mut is_changed = length > value.len();
    check_grown(key, length)?;
    value.resize(value.len().max(length), 0);
    call.reply().array(steps.len());
    for (field, change, overflow) in steps {
        let before = field.get(&value);
        let Some((is_set, number)) = change else {
            call.reply().integer(before);
            continue;
        };
        let wanted = if is_set { i128::from(number) } else { i128::from(before) + i128::from(number) };
        match field.fit(wanted, overflow) {
            None => call.reply().null(),
            Some(number) => {
                field.set(&mut value, number);
                is_changed |= number != before;
                call.reply().integer(if is_set { before } else { number });
            }
        }
    }
    if is_changed {
        let expires = old.as_ref().and_then(|old| old.expires);
        call.put_string(key, &value, expires, old.as_ref())?;
    }
    Ok(())
}

pub(super) fn bitfield(call: &mut Call<'_>) -> Outcome {
    bitfield_as(call, false)
}

pub(super) fn bitfield_ro(call: &mut Call<'_>) -> Outcome {
    bitfield_as(call, true)
}
