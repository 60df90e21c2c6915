//! Bytes that are packed on their way, in both directions: what a door's protocol makes of its own stream once it has agreed on it with the client.

use database::Result;

/// See the head of this file.
pub trait Packing {
    /// Takes bytes that have come.
    fn take(&mut self, bytes: &[u8]);

    /// The plain bytes of the next whole frame; none: its rest has not come. Errors: it is none; nothing behind it can be understood.
    fn unpack(&mut self) -> Result<Option<Vec<u8>>>;

    /// True if a whole frame waits.
    fn has_frame(&self) -> bool;

    /// Bytes of frames that have come and were not unpacked.
    fn held(&self) -> usize;

    /// Packs what leaves.
    fn pack(&mut self, plain: &[u8], out: &mut Vec<u8>);
}

/// That of a connection.
pub(crate) struct Packed {
    pub(crate) packing: Box<dyn Packing>,
    /// Bytes that leave as they are: they were answered before both sides began to pack.
    pub(crate) plain_left: usize,
}

impl Packed {
    /// Packs what leaves.
    pub(crate) fn pack(&mut self, ready: &[u8], out: &mut Vec<u8>) {
        let (plain, rest) = ready.split_at(ready.len().min(self.plain_left));
        self.plain_left -= plain.len();
        out.extend_from_slice(plain);
        if !rest.is_empty() {
            self.packing.pack(rest, out);
        }
    }
}
