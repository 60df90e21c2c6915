//! The 128 bytes that a connection begins with: two lines, of which the second is a salt.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 128;
/// Bytes of the salt that a server sends; proofs of passwords use the first 20.
pub const SALT_BYTES: usize = 32;
/// The version that Lycosa greets with: connectors choose what they send by it.
pub const GREETING_VERSION: &str = "2.11.0";
/// Bytes of a line, with its end.
const LINE_BYTES: usize = 64;
/// Characters of the salt.
const SALT_TEXT_BYTES: usize = 44;

/// What a server says first.
pub fn greeting(instance_uuid: &str, salt: &[u8; SALT_BYTES]) -> [u8; GREETING_BYTES] {
    let mut out = [b' '; GREETING_BYTES];
    let first = format!("Tarantool {GREETING_VERSION} (Binary) {instance_uuid}");
    let first = &first.as_bytes()[..first.len().min(LINE_BYTES - 1)];
    out[..first.len()].copy_from_slice(first);
    out[LINE_BYTES - 1] = b'\n';
    let salt = STANDARD.encode(salt);
    out[LINE_BYTES..LINE_BYTES + salt.len()].copy_from_slice(salt.as_bytes());
    out[GREETING_BYTES - 1] = b'\n';
    out
}

/// The part of a greeting's salt that proofs of passwords use. None: this is no greeting.
pub fn read_salt(greeting: &[u8; GREETING_BYTES]) -> Option<[u8; 20]> {
    let text = greeting[LINE_BYTES..LINE_BYTES + SALT_TEXT_BYTES].trim_ascii();
    let salt = STANDARD.decode(text).ok().filter(|_| greeting.starts_with(b"Tarantool"))?;
    salt.first_chunk().copied()
}

const _: () = assert!(LINE_BYTES + SALT_TEXT_BYTES < GREETING_BYTES && SALT_BYTES.div_ceil(3) * 4 == SALT_TEXT_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_greeting_is_two_lines_of_64_bytes_with_a_salt() {
        let salt = std::array::from_fn(|at| at as u8);
        let mut text = greeting("c6ad95d7-aa48-48de-81b2-7d621374567a", &salt);
        assert!(text.starts_with(b"Tarantool 2.11.0 (Binary) c6ad95d7-"));
        assert_eq!((text[63], text[127]), (b'\n', b'\n'));
        assert_eq!(read_salt(&text).as_ref().map(|salt| &salt[..]), Some(&salt[..20]));
        text[64..108].fill(b' ');
        assert_eq!(read_salt(&text), None);
        assert_eq!(read_salt(&[b'H'; 128]), None);
    }

    proptest! {
        #[test]
        fn any_greeting_is_understood_or_refused(bytes in any::<[u8; 32]>(), at in 0usize..97) {
            let mut text = greeting("", &[7; 32]);
            text[at..at + bytes.len().min(128 - at)].copy_from_slice(&bytes[..bytes.len().min(128 - at)]);
            let _ = read_salt(&text);
        }
    }
}
