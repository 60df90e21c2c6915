//! Numbers as the real server reads them, which are those of C's `strtoull` and its like.

/// True for what C's `isspace` takes for a space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Sign and digits at the start of a text, which has to end there or go on with a space. None: it is no number, or too large a one.
fn read(text: &[u8]) -> Option<(bool, u64)> {
    let mut rest = text;
    while let [first, tail @ ..] = rest
        && is_space(*first)
    {
        rest = tail;
    }
    let is_negative = rest.first() == Some(&b'-');
    if let [b'+' | b'-', tail @ ..] = rest {
        rest = tail;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || rest.get(digits).is_some_and(|byte| !is_space(*byte)) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    Some((is_negative, rest[..digits].iter().try_fold(0, add)?))
}

/// An unsigned number.
pub(crate) fn read_u64(text: &[u8]) -> Option<u64> {
    let (is_negative, size) = read(text)?;
    let value = if is_negative { size.wrapping_neg() } else { size };
    // As the real one: a sign is looked for only in numbers that are very large.
    if is_negative && value > i64::MAX as u64 { None } else { Some(value) }
}

/// An unsigned number, of which 32 bits are taken.
pub(super) fn read_u32(text: &[u8]) -> Option<u32> {
    read_u64(text).map(|value| value as u32)
}

/// A number, of which 32 bits are taken.
pub(super) fn read_i32(text: &[u8]) -> Option<i32> {
    let (is_negative, size) = read(text)?;
    let value = i64::try_from(if is_negative { -i128::from(size) } else { i128::from(size) });
    value.ok().map(|value| value as i32)
}

/// Appends a number in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(read_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(read_u64(b"18446744073709551616"), None);
        assert_eq!(read_u64(b" +12  "), Some(12));
        assert_eq!(read_u64(b"-1"), None);
        assert_eq!(read_u64(b"-0"), Some(0));
        assert_eq!([read_u64(b""), read_u64(b"1x"), read_u64(b"x"), read_u64(b"-")], [None; 4]);
        assert_eq!([read_u32(b"4294967295"), read_u32(b"4294967296")], [Some(u32::MAX), Some(0)]);
        assert_eq!([read_i32(b"-1"), read_i32(b"2147483648")], [Some(-1), Some(i32::MIN)]);
        assert_eq!(read_i32(b"9223372036854775808"), None);
        let mut out = Vec::new();
        [0, 7, 10, u64::MAX].into_iter().for_each(|value| push_u64(&mut out, value));
        assert_eq!(out, b"071018446744073709551615");
    }
}
