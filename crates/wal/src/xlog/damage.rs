//! What is wrong with a file, and where.

use std::fmt;

/// One bit that is not what was written, and the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Offset of its byte in the file.
    pub byte: u64,
    /// Number of the bit, from the lowest.
    pub bit: u8,
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit {} of byte {} is flipped", self.bit, self.byte)
    }
}

/// What is wrong with a file, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the block that cannot be read.
    pub offset: u64,
    /// A description for people.
    pub what: &'static str,
    /// The flipped bit, if that is all that is wrong. Then it was no write that a crash has torn.
    pub flip: Option<Flip>,
    /// Where the next block begins, known only if a flip is all that is wrong.
    pub(crate) end: Option<u64>,
}

impl Damage {
    pub(super) fn at(offset: u64, what: &'static str) -> Self {
        Damage { offset, what, flip: None, end: None }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        self.flip.map_or(Ok(()), |flip| write!(f, " ({flip})"))
    }
}
