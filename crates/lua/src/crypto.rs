//! The C functions under the module `crypto`: ciphers, digests and keyed digests, piece by piece.
//!
//! The algorithms are RustCrypto's. Here is what OpenSSL adds to them and Tarantool's users see: how much comes out after each piece, and what is said of
//! bytes that no cipher made.

use crate::byte_streams::{ByteStream, keep, refuse};
use crate::state::{Function, Raise, State};
use cipher::block_padding::{Padding, Pkcs7};
use cipher::{Block, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, KeyInit, KeyIvInit, StreamCipher};
use hmac::{Hmac, Mac};
use sha1::Digest;
use std::ffi::c_int;

type Outcome = Result<c_int, Raise>;

/// What OpenSSL says of a text whose length no cipher gives, and of one whose last block is not filled as it should be.
const WRONG_LENGTH: &str = "OpenSSL error: error:1C80006B:Provider routines::wrong final block length";
const WRONG_FILLING: &str = "OpenSSL error: error:1C800064:Provider routines::bad decrypt";

/// Gives back what it gets: the cipher `none`.
struct Plain;

impl ByteStream for Plain {
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String> {
        Ok(input.to_vec())
    }

    fn finish(&mut self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }
}

/// A mode that works on whole blocks; the last one is filled up.
struct EncryptBlocks<M> {
    mode: M,
    /// Bytes of a block that is not complete.
    pending: Vec<u8>,
}

impl<M: BlockModeEncrypt> ByteStream for EncryptBlocks<M> {
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String> {
        self.pending.extend_from_slice(input);
        let whole = self.pending.len() - self.pending.len() % M::block_size();
        let rest = self.pending.split_off(whole);
        let mut output = std::mem::replace(&mut self.pending, rest);
        for block in output.chunks_exact_mut(M::block_size()) {
            self.mode.encrypt_block(block_of::<M>(block));
        }
        Ok(output)
    }

    fn finish(&mut self) -> Result<Vec<u8>, String> {
        let mut block = Block::<M>::default();
        block[..self.pending.len()].copy_from_slice(&self.pending);
        Pkcs7::raw_pad(&mut block, self.pending.len());
        self.mode.encrypt_block(&mut block);
        Ok(block.to_vec())
    }
}

/// The way back. A whole block is held until something follows it, for it may be the last.
struct DecryptBlocks<M> {
    mode: M,
    pending: Vec<u8>,
}

impl<M: BlockModeDecrypt> ByteStream for DecryptBlocks<M> {
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String> {
        self.pending.extend_from_slice(input);
        let blocks = self.pending.len().saturating_sub(1) / M::block_size();
        let rest = self.pending.split_off(blocks * M::block_size());
        let mut output = std::mem::replace(&mut self.pending, rest);
        for block in output.chunks_exact_mut(M::block_size()) {
            self.mode.decrypt_block(block_of::<M>(block));
        }
        Ok(output)
    }

    fn finish(&mut self) -> Result<Vec<u8>, String> {
        if self.pending.len() != M::block_size() {
            return Err(WRONG_LENGTH.into());
        }
        let mut block = std::mem::take(&mut self.pending);
        self.mode.decrypt_block(block_of::<M>(&mut block));
        Pkcs7::raw_unpad(&block).map(<[u8]>::to_vec).map_err(|_| WRONG_FILLING.into())
    }
}

fn block_of<M: BlockSizeUser>(bytes: &mut [u8]) -> &mut Block<M> {
    bytes.try_into().expect("cut into pieces of this size")
}

/// A mode that gives a byte for a byte.
struct Bytewise<F>(F);

impl<F: FnMut(&mut [u8])> ByteStream for Bytewise<F> {
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String> {
        let mut output = input.to_vec();
        (self.0)(&mut output);
        Ok(output)
    }

    fn finish(&mut self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }
}

struct Hash<D>(D);

impl<D: Digest + Clone> ByteStream for Hash<D> {
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String> {
        self.0.update(input);
        Ok(Vec::new())
    }

    fn finish(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.0.clone().finalize().to_vec())
    }
}

struct KeyedHash<M>(M);

impl<M: Mac + Clone> ByteStream for KeyedHash<M> {
    fn update(&mut self, input: &[u8]) -> Result<Vec<u8>, String> {
        self.0.update(input);
        Ok(Vec::new())
    }

    fn finish(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.0.clone().finalize().into_bytes().to_vec())
    }
}

/// A stream of a cipher in a mode; None: there is no such mode. Key and first block have the right sizes.
///
/// A macro, since the bounds of OFB's blocks cannot be written for any cipher.
macro_rules! cipher_of {
    ($cipher:ty, $mode:expr, $encrypts:expr, $key:expr, $iv:expr) => {{
        let (key, iv): (&[u8], &[u8]) = ($key, $iv);
        let pending = Vec::new();
        let stream: Box<dyn ByteStream> = match ($mode, $encrypts) {
            ("cbc", true) => {
                Box::new(EncryptBlocks { mode: cbc::Encryptor::<$cipher>::new_from_slices(key, iv).ok()?, pending })
            }
            ("cbc", false) => {
                Box::new(DecryptBlocks { mode: cbc::Decryptor::<$cipher>::new_from_slices(key, iv).ok()?, pending })
            }
            ("ecb", true) => {
                Box::new(EncryptBlocks { mode: ecb::Encryptor::<$cipher>::new_from_slice(key).ok()?, pending })
            }
            ("ecb", false) => {
                Box::new(DecryptBlocks { mode: ecb::Decryptor::<$cipher>::new_from_slice(key).ok()?, pending })
            }
            ("cfb", true) => {
                let mut mode = cfb_mode::BufEncryptor::<$cipher>::new_from_slices(key, iv).ok()?;
                Box::new(Bytewise(move |bytes: &mut [u8]| mode.encrypt(bytes)))
            }
            ("cfb", false) => {
                let mut mode = cfb_mode::BufDecryptor::<$cipher>::new_from_slices(key, iv).ok()?;
                Box::new(Bytewise(move |bytes: &mut [u8]| mode.decrypt(bytes)))
            }
            ("ofb", _) => {
                let mut mode = ofb::Ofb::<$cipher>::new_from_slices(key, iv).ok()?;
                Box::new(Bytewise(move |bytes: &mut [u8]| mode.apply_keystream(bytes)))
            }
            _ => return None,
        };
        Some(stream)
    }};
}

fn cipher_in_mode(name: &str, mode: &str, encrypts: bool, key: &[u8], iv: &[u8]) -> Option<Box<dyn ByteStream>> {
    match name {
        "aes128" => cipher_of!(aes::Aes128, mode, encrypts, key, iv),
        "aes192" => cipher_of!(aes::Aes192, mode, encrypts, key, iv),
        "aes256" => cipher_of!(aes::Aes256, mode, encrypts, key, iv),
        "des" => cipher_of!(des::Des, mode, encrypts, key, iv),
        _ => Some(Box::new(Plain)),
    }
}

fn cipher_named(name: &str, mode: &str, encrypts: bool, key: &[u8], iv: &[u8]) -> Result<Box<dyn ByteStream>, String> {
    let (key_size, block_size) = match name {
        "none" => (0, 0),
        "aes128" => (16, 16),
        "aes192" => (24, 16),
        "aes256" => (32, 16),
        "des" => (8, 8),
        other => return Err(format!("unknown cipher {other}")),
    };
    let iv_size = if mode == "ecb" { 0 } else { block_size };
    if key.len() != key_size {
        return Err(format!("key size expected {key_size}, got {}", key.len()));
    }
    if iv.len() != iv_size {
        return Err(format!("IV size expected {iv_size}, got {}", iv.len()));
    }
    cipher_in_mode(name, mode, encrypts, key, iv).ok_or_else(|| format!("unknown mode {mode}"))
}

/// A digest, keyed if there is a key; None: there is none of that name.
fn hash_named(name: &str, key: Option<&[u8]>) -> Option<Box<dyn ByteStream>> {
    macro_rules! hash {
        ($kind:ty) => {
            match key {
                // A key of any length will do: new_from_slice refuses none.
                Some(key) => {
                    Box::new(KeyedHash(<Hmac<$kind> as KeyInit>::new_from_slice(key).ok()?)) as Box<dyn ByteStream>
                }
                None => Box::new(Hash(<$kind>::new())),
            }
        };
    }
    Some(match name {
        "md4" => hash!(md4::Md4),
        "md5" => hash!(md5::Md5),
        "ripemd160" => hash!(ripemd::Ripemd160),
        "sha1" => hash!(sha1::Sha1),
        "sha224" => hash!(sha2::Sha224),
        "sha256" => hash!(sha2::Sha256),
        "sha384" => hash!(sha2::Sha384),
        "sha512" => hash!(sha2::Sha512),
        _ => return None,
    })
}

/// crypto_cipher(number, cipher, mode, encrypts, key, iv) -> number; or nil and what is wrong. A number of 0 is one to be made.
fn crypto_cipher(state: State) -> Outcome {
    let number = state.check_number(1, "number")?;
    let (name, mode) = (state.check_string(2, "cipher")?, state.check_string(3, "mode")?);
    let key = state.bytes(5).ok_or("a string is expected")?;
    let iv = state.bytes(6).ok_or("a string is expected")?;
    match cipher_named(&name, &mode, state.boolean(4), key, iv) {
        Ok(stream) => keep(state, number, stream),
        Err(text) => refuse(state, &text),
    }
}

/// crypto_hash(number, digest, key or nil) -> number; or nil and what is wrong
fn crypto_hash(state: State) -> Outcome {
    let number = state.check_number(1, "number")?;
    let name = state.check_string(2, "digest")?;
    match hash_named(&name, state.bytes(3)) {
        Some(stream) => keep(state, number, stream),
        None => refuse(state, &format!("unknown digest {name}")),
    }
}

/// Functions of `box.internal` for the module crypto.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[("crypto_cipher", crypto_cipher), ("crypto_hash", crypto_hash)];

#[cfg(test)]
mod tests {
    use super::{cipher_named, hash_named};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What OpenSSL gives only where its old algorithms are switched on, and so is not in the golden script.
    #[test]
    fn old_algorithms_give_openssls_bytes() {
        let text = b"hello world, this is long text";
        for (mode, expected) in [
            ("cbc", "5bfeaa21937a61f79be174dee19760d14f52a097bf05bb221dd4a0f7f88f9983"),
            ("cfb", "84751f6b17d03f30086a96bfeff0226dcd8eb5ef4a90c0ab419ca8e19013"),
            ("ofb", "84751f6b17d03f3039d82f20874a6b214e3381e0796a2224354f4fb00e31"),
        ] {
            let mut stream = cipher_named("des", mode, true, b"kkkkkkkk", b"iiiiiiii").expect("known");
            let mut output = stream.update(text).expect("known");
            output.extend(stream.finish().expect("known"));
            assert_eq!(hex(&output), expected, "{mode}");
        }
        let mut stream = hash_named("md4", None).expect("known");
        stream.update(b"abc").expect("known");
        assert_eq!(hex(&stream.finish().expect("known")), "a448017aaf21d8525fc10ae87aa6729d");
    }

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives() {
        let text: Vec<u8> = (0..200u8).collect();
        for (name, key, block) in [("aes128", 16, 16), ("aes192", 24, 16), ("aes256", 32, 16), ("des", 8, 8)] {
            for mode in ["cbc", "cfb", "ecb", "ofb"] {
                let (key, iv) = (vec![7; key], vec![9; if mode == "ecb" { 0 } else { block }]);
                for length in [0, 1, 15, 16, 17, 32, 200] {
                    let run = |encrypts, input: &[u8], piece| {
                        let mut stream = cipher_named(name, mode, encrypts, &key, &iv).expect("known");
                        let mut output: Vec<u8> =
                            input.chunks(piece).flat_map(|part| stream.update(part).expect("taken")).collect();
                        output.extend(stream.finish().expect("known"));
                        output
                    };
                    let whole = run(true, &text[..length], 1000);
                    for piece in [1, 7, 8, 16, 33] {
                        assert_eq!(run(true, &text[..length], piece), whole);
                        assert_eq!(run(false, &whole, piece), &text[..length]);
                    }
                }
            }
        }
    }
}
