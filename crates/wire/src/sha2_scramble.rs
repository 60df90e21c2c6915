//! caching_sha2_password: as `scramble`, by SHA-256 and with the salt behind what is kept. Source: MySQL's documentation, "Caching_sha2_password
//! information".
//!
//! ```text
//! kept by the server   digest = sha256(sha256(password))
//! sent by the client   proof  = sha256(password) xor sha256(digest + salt)
//! ```

use sha2::{Digest, Sha256};

/// Bytes of a digest, and of a proof.
pub const SHA2_BYTES: usize = 32;

fn sha256(parts: &[&[u8]]) -> [u8; SHA2_BYTES] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// What a server keeps of a password.
pub fn sha2_digest(password: &[u8]) -> [u8; SHA2_BYTES] {
    sha256(&[&sha256(&[password])])
}

/// What proves that the password is known.
pub fn sha2_proof(password: &[u8], salt: &[u8]) -> [u8; SHA2_BYTES] {
    let mask = sha256(&[&sha2_digest(password), salt]);
    let once = sha256(&[password]);
    std::array::from_fn(|at| once[at] ^ mask[at])
}

/// True if a proof shows that the password of a digest is known.
pub fn is_sha2_proof(proof: &[u8; SHA2_BYTES], digest: &[u8; SHA2_BYTES], salt: &[u8]) -> bool {
    let mask = sha256(&[digest, salt]);
    let once: [u8; SHA2_BYTES] = std::array::from_fn(|at| proof[at] ^ mask[at]);
    sha256(&[&once]) == *digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_password_and_one_salt() {
        let digest = sha2_digest(b"secret");
        assert!(is_sha2_proof(&sha2_proof(b"secret", b"salt"), &digest, b"salt"));
        assert!(!is_sha2_proof(&sha2_proof(b"secret", b"salt"), &digest, b"other"));
        assert!(!is_sha2_proof(&sha2_proof(b"Secret", b"salt"), &digest, b"salt"));
    }
}
