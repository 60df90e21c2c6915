//! How a cached thing lies in a segment: `owner | length of the key | length of the value | key | value`, the numbers seven bits to a byte.

use std::ops::Range;

/// Bytes of the three numbers at most.
pub(super) const HEAD_BYTES_MAX: usize = 10 + 5 + 5;

/// A record that was read.
pub(super) struct Record {
    pub(super) owner: u64,
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
}

/// Appends a record.
pub(super) fn write(out: &mut Vec<u8>, owner: u64, key: &[u8], value: &[u8]) {
    for number in [owner, key.len() as u64, value.len() as u64] {
        write_number(out, number);
    }
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

impl Record {
    /// Reads the record at `at`, which was written there.
    pub(super) fn read(bytes: &[u8], mut at: usize) -> Self {
        let owner = read_number(bytes, &mut at);
        let key_length = read_number(bytes, &mut at) as usize;
        let value_length = read_number(bytes, &mut at) as usize;
        let middle = at + key_length;
        Record { owner, key: at..middle, value: middle..middle + value_length }
    }
}

fn read_number(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte <= 0x7f {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        let values = [0, 1, 127, 128, 300, 70_000];
        let mut places = Vec::new();
        for (at, length) in values.iter().enumerate() {
            places.push(bytes.len());
            let key = vec![at as u8; length / 3];
            write(&mut bytes, u64::MAX >> (at * 9), &key, &vec![1; *length]);
            assert!(bytes.len() <= places[at] + HEAD_BYTES_MAX + key.len() + length);
        }
        for (at, length) in values.iter().enumerate() {
            let record = Record::read(&bytes, places[at]);
            assert_eq!(record.owner, u64::MAX >> (at * 9));
            assert_eq!(bytes[record.key], vec![at as u8; length / 3]);
            assert_eq!(record.value.len(), *length);
            assert_eq!(record.value.end, places.get(at + 1).copied().unwrap_or(bytes.len()));
        }
    }
}
