//! Fences: where the blocks of a run lie and with which key each begins. They stay in memory as long as the run is open.

use crate::lsm::cursor::Cursor;

/// What is known of a block without reading it.
#[derive(Clone, Copy)]
pub(crate) struct Fence {
    pub(crate) offset: u64,
    /// Bytes on disk.
    pub(crate) length: u32,
    pub(crate) entries: u32,
    pub(crate) deletes: u32,
    /// Where its first key ends among the keys of all fences.
    key_end: u32,
}

/// The fences of a run.
///
/// A block is found by halving. Eight bytes of each first key, taken behind the bytes that all of them share, lie together and decide
/// most steps; every 64th of them lies in a list of its own, which is short enough to stay near the processor. So a search among a million
/// blocks touches few cache lines.
pub(crate) struct Fences {
    fences: Vec<Fence>,
    keys: Vec<u8>,
    /// Greatest key of the run.
    max_key: Vec<u8>,
    /// Bytes that all first keys share.
    shared: usize,
    hints: Vec<u64>,
    /// Every `STRIDE`th of the hints.
    strides: Vec<u64>,
}

/// Hints that are searched behind one of the strides: eight cache lines.
const STRIDE: usize = 64;

/// The bytes that decide between keys that share `shared` bytes.
#[inline]
fn hint(key: &[u8], shared: usize) -> u64 {
    let rest = key.get(shared..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(chunk)
        }
    }
}

impl Fences {
    pub(crate) fn new() -> Self {
        Fences {
            fences: Vec::new(),
            keys: Vec::new(),
            max_key: Vec::new(),
            shared: 0,
            hints: Vec::new(),
            strides: Vec::new(),
        }
    }

    /// Adds the next block. `false` if there are too many bytes of keys.
    pub(crate) fn push(&mut self, first_key: &[u8], offset: u64, length: u32, entries: u32, deletes: u32) -> bool {
        let Ok(key_end) = u32::try_from(self.keys.len() + first_key.len()) else { return false };
        self.keys.extend_from_slice(first_key);
        self.fences.push(Fence { offset, length, entries, deletes, key_end });
        true
    }

    /// Ends the list; from now on blocks are found.
    pub(crate) fn complete(mut self, max_key: &[u8]) -> Self {
        self.max_key = max_key.to_vec();
        if let Some(last) = self.len().checked_sub(1) {
            let pairs = self.first_key(0).iter().zip(self.first_key(last));
            self.shared = pairs.take_while(|(a, b)| a == b).count();
        }
        self.hints = (0..self.len()).map(|at| hint(self.first_key(at), self.shared)).collect();
        self.strides = self.hints.iter().step_by(STRIDE).copied().collect();
        self.fences.shrink_to_fit();
        self.keys.shrink_to_fit();
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.fences.len()
    }

    pub(crate) fn fence(&self, block: usize) -> &Fence {
        &self.fences[block]
    }

    #[inline]
    pub(crate) fn first_key(&self, block: usize) -> &[u8] {
        let start = if block == 0 { 0 } else { self.fences[block - 1].key_end as usize };
        &self.keys[start..self.fences[block].key_end as usize]
    }

    pub(crate) fn max_key(&self) -> &[u8] {
        &self.max_key
    }

    pub(crate) fn memory(&self) -> usize {
        self.fences.capacity() * size_of::<Fence>()
            + self.keys.capacity()
            + self.max_key.capacity()
            + 8 * (self.hints.len() + self.strides.len())
    }

    /// The last block whose first key is not above `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        if self.fences.is_empty() {
            return None;
        }
        // The first of the shared bytes that differ put the key before or behind all blocks.
        let shared = &self.keys[..self.shared];
        let head = &key[..key.len().min(self.shared)];
        if head != shared {
            return if head < shared { None } else { self.len().checked_sub(1) };
        }
        let sought = hint(key, self.shared);
        let stride = self.strides.partition_point(|&hint| hint <= sought) * STRIDE;
        let begin = stride.saturating_sub(STRIDE);
        let near = &self.hints[begin..stride.min(self.hints.len())];
        let mut high = begin + near.partition_point(|&hint| hint <= sought);
        if high == 0 || self.hints[high - 1] < sought {
            return high.checked_sub(1);
        }
        // Blocks with the same hint are told by the rest of their keys.
        let mut low = self.hints[..high].partition_point(|&hint| hint < sought);
        while low < high {
            let middle = low.midpoint(high);
            if self.first_key(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// Appends the bytes that are stored.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for (block, fence) in self.fences.iter().enumerate() {
            let key = self.first_key(block);
            out.extend_from_slice(&fence.offset.to_le_bytes());
            out.extend_from_slice(&fence.length.to_le_bytes());
            out.extend_from_slice(&fence.entries.to_le_bytes());
            out.extend_from_slice(&fence.deletes.to_le_bytes());
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
        out.extend_from_slice(&(self.max_key.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.max_key);
    }

    /// Understands stored bytes of `count` fences of blocks that end before `data_end`. Errors: what is wrong.
    pub(crate) fn decode(bytes: &[u8], count: u64, data_end: u64) -> Result<Self, &'static str> {
        let mut cursor = Cursor::new(bytes);
        let mut found = Fences::new();
        let mut end = 0;
        for _ in 0..count {
            let fence = (|| Some((cursor.u64()?, cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.counted()?)))();
            let (offset, length, entries, deletes, key) = fence.ok_or("the fences are cut off")?;
            if offset < end || entries == 0 || deletes > entries {
                return Err("a fence contradicts the one before or itself");
            }
            end = offset
                .checked_add(u64::from(length))
                .filter(|&end| end <= data_end)
                .ok_or("a block ends behind the blocks")?;
            if found.len() > 0 && found.first_key(found.len() - 1) >= key {
                return Err("keys of the fences do not ascend");
            }
            if !found.push(key, offset, length, entries, deletes) {
                return Err("the fences have too many bytes of keys");
            }
        }
        let max_key = cursor.counted().ok_or("the fences are cut off")?;
        if !cursor.is_empty() {
            return Err("there is more than the fences");
        }
        if found.len() == 0 || found.first_key(found.len() - 1) > max_key {
            return Err("the greatest key is not the greatest");
        }
        Ok(found.complete(max_key))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_block_of_a_key_is_found(
            shared in proptest::collection::vec(0..3u8, 0..12),
            ends in proptest::collection::btree_set(proptest::collection::vec(0..3u8, 0..14), 1..40),
            sought in proptest::collection::vec(0..3u8, 0..26),
            has_shared: bool,
        ) {
            let keys: Vec<Vec<u8>> = ends.iter().map(|end| [&shared[..], end].concat()).collect();
            let mut fences = Fences::new();
            for (at, key) in keys.iter().enumerate() {
                assert!(fences.push(key, at as u64 * 10, 10, 1, 0));
            }
            let fences = fences.complete(keys.last().unwrap());
            let sought = if has_shared { [&shared[..], &sought].concat() } else { sought };
            let expected = keys.iter().filter(|key| **key <= sought).count().checked_sub(1);
            prop_assert_eq!(fences.find(&sought), expected);
            let mut stored = Vec::new();
            fences.encode(&mut stored);
            let again = Fences::decode(&stored, keys.len() as u64, keys.len() as u64 * 10).unwrap();
            prop_assert_eq!(again.find(&sought), expected);
        }
    }
}
