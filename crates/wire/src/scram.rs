//! SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL's clients speak it: both sides prove that they know a password, and neither sends it.
//!
//! ```text
//! kept by the server   SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>        PostgreSQL's own form
//! client -> server     n,,n=,r=<nonce>
//! server -> client     r=<nonce><more>,s=<salt>,i=<iterations>
//! client -> server     c=biws,r=<nonce><more>,p=<proof>
//! server -> client     v=<signature>
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Rounds of the key derivation, as PostgreSQL makes them.
pub const SCRAM_ITERATIONS: u32 = 4096;
/// Most rounds of a kept verifier: it costs the server nothing, but a client that long.
const ITERATIONS_MAX: u32 = 10_000_000;
/// Bytes of the salt.
pub const SCRAM_SALT_BYTES: usize = 16;

type Key = [u8; 32];

fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    // A key of any length is one.
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else { return [0; 32] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn hash(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}

/// PBKDF2 with one block.
fn salted_password(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let mut last = hmac(password, &[salt, &1u32.to_be_bytes()]);
    let mut sum = last;
    for _ in 1..iterations {
        last = hmac(password, &[&last]);
        sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

/// What a server keeps of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    /// Rounds of the key derivation.
    pub iterations: u32,
    /// Of the key derivation.
    pub salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl Verifier {
    /// Of a password. Takes some milliseconds.
    pub fn new(password: &[u8], salt: &[u8], iterations: u32) -> Self {
        let salted = salted_password(password, salt, iterations);
        let client_key = hmac(&salted, &[b"Client Key"]);
        Verifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: hash(&client_key),
            server_key: hmac(&salted, &[b"Server Key"]),
        }
    }

    /// Of nobody: what is said to who claims to be somebody that does not exist must look the same each time.
    pub fn of_nobody(name: &str, secret: &[u8]) -> Self {
        let salt = hmac(secret, &[name.as_bytes()]);
        let nothing = hmac(secret, &[b"nobody", name.as_bytes()]);
        Verifier {
            iterations: SCRAM_ITERATIONS,
            salt: salt[..SCRAM_SALT_BYTES].to_vec(),
            stored_key: nothing,
            server_key: nothing,
        }
    }

    /// Reads the form in which it is kept.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let key = |text: &str| STANDARD.decode(text).ok().and_then(|bytes| Key::try_from(bytes).ok());
        Some(Verifier {
            iterations: iterations.parse().ok().filter(|count| (1..=ITERATIONS_MAX).contains(count))?,
            salt: STANDARD.decode(salt).ok()?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// The form in which it is kept.
    pub fn to_text(&self) -> String {
        let (salt, stored, server) =
            (STANDARD.encode(&self.salt), STANDARD.encode(self.stored_key), STANDARD.encode(self.server_key));
        format!("SCRAM-SHA-256${}:{salt}${stored}:{server}", self.iterations)
    }

    /// The server's first message: the client's nonce with more behind it.
    pub fn challenge(&self, client_nonce: &str, more: &str) -> String {
        format!("r={client_nonce}{more},s={},i={}", STANDARD.encode(&self.salt), self.iterations)
    }

    /// Looks at the client's proof. Returns the server's last message, which proves the server to the client. None: it proves nothing.
    ///
    /// `first` is the client's first message without its header, `challenge` the answer to it, `last` what the client said then.
    pub fn check(&self, first: &str, challenge: &str, last: &str) -> Option<String> {
        let (without_proof, proof) = last.rsplit_once(",p=")?;
        let proof = STANDARD.decode(proof).ok().and_then(|bytes| Key::try_from(bytes).ok())?;
        let nonce = challenge.strip_prefix("r=")?.split(',').next()?;
        let said = without_proof.split(',').find_map(|part| part.strip_prefix("r="))?;
        if said != nonce {
            return None;
        }
        let parts: [&[u8]; 5] = [first.as_bytes(), b",", challenge.as_bytes(), b",", without_proof.as_bytes()];
        let signature = hmac(&self.stored_key, &parts);
        let client_key: Key = std::array::from_fn(|at| proof[at] ^ signature[at]);
        (hash(&client_key) == self.stored_key).then(|| format!("v={}", STANDARD.encode(hmac(&self.server_key, &parts))))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    /// The example of RFC 7677.
    #[test]
    fn the_conversation_of_the_standard_is_understood() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::new(b"pencil", &salt, 4096);
        let challenge = verifier.challenge("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
        assert_eq!(challenge, "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let first = "n=user,r=rOprNGfwEbeRWgbNEkqO";
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let answer = verifier.check(first, &challenge, last);
        assert_eq!(answer.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert_eq!(verifier.check(first, &challenge, &last.replace("dHzb", "dHzc")), None);
        assert_eq!(verifier.check(first, &challenge, &last.replace("$k0", "$k1")), None);
        let other = Verifier::new(b"Pencil", &salt, 4096);
        assert_eq!(other.check(first, &challenge, last), None);
        assert_eq!(Verifier::parse(&verifier.to_text()), Some(verifier));
    }

    #[test]
    fn a_verifier_that_is_none_is_not_read() {
        for text in ["", "SCRAM-SHA-256$", "SCRAM-SHA-256$0:AA==$AA==:AA==", "md5abc", "SCRAM-SHA-256$1:AA==$AA==:AA=="]
        {
            assert_eq!(Verifier::parse(text), None, "{text}");
        }
        let (one, two) = (Verifier::of_nobody("a", b"x"), Verifier::of_nobody("b", b"x"));
        assert!(one != two && one == Verifier::of_nobody("a", b"x"));
    }
}
