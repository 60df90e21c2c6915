//! chap-sha1: a client proves that it knows a password without sending it, to a server that keeps a hash of it.
//!
//! ```text
//! kept by the server   hash     = sha1(sha1(password))
//! sent by the client   scramble = sha1(password) xor sha1(salt + hash)
//! ```

use sha1::{Digest, Sha1};

/// The method's name.
pub const AUTH_METHOD: &str = "chap-sha1";
/// Bytes of a proof.
pub const SCRAMBLE_BYTES: usize = 20;

fn sha1(parts: &[&[u8]]) -> [u8; SCRAMBLE_BYTES] {
    let mut hasher = Sha1::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// What a server keeps of a password.
pub fn password_hash(password: &[u8]) -> [u8; SCRAMBLE_BYTES] {
    sha1(&[&sha1(&[password])])
}

/// What proves that the password is known.
pub fn scramble(password: &[u8], salt: &[u8; 20]) -> [u8; SCRAMBLE_BYTES] {
    let mask = sha1(&[salt, &password_hash(password)]);
    let once = sha1(&[password]);
    std::array::from_fn(|at| once[at] ^ mask[at])
}

/// True if a scramble proves that the password of a hash is known. Of the salt the first 20 bytes count.
pub fn is_proof(scramble: &[u8; SCRAMBLE_BYTES], hash: &[u8; SCRAMBLE_BYTES], salt: &[u8]) -> bool {
    let mask = sha1(&[&salt[..salt.len().min(20)], hash]);
    let once: [u8; SCRAMBLE_BYTES] = std::array::from_fn(|at| scramble[at] ^ mask[at]);
    sha1(&[&once]) == *hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scramble_proves_the_password_to_who_knows_its_double_hash() {
        let (salt, hash) = ([7; 20], password_hash(b"secret"));
        let proof = scramble(b"secret", &salt);
        assert!(is_proof(&proof, &hash, &salt) && is_proof(&proof, &hash, &[7; 32]));
        assert!(!is_proof(&scramble(b"Secret", &salt), &hash, &salt));
        assert!(!is_proof(&proof, &hash, &[8; 20]));
    }
}
