//! Reading a whole run, to see whether everything in it agrees.

use super::footer::{UNKNOWN_PARTS, WHOLE_KEYS};
use super::{Run, read_exactly};
use crate::lsm::block::Block;
use crate::lsm::check::Damage;
use crate::lsm::entry::EntryKind;
use crate::lsm::error::LsmError;
use crate::lsm::filter::key_hash;
use tuple::ordered_prefix_length;

impl Run {
    /// Reads every block: checksums, order of keys, counts, whether the filter knows all keys, and whether there is nothing between
    /// blocks. What lies behind them was checked when the run was opened. Blocks.
    ///
    /// Errors: the system refuses to read.
    pub(crate) fn check(&self) -> Result<Vec<Damage>, LsmError> {
        let mut found = Vec::new();
        let mut end = 0;
        let mut counts = Counts::default();
        for number in 0..self.block_count() {
            let (offset, length) = self.block_extent(number);
            self.check_gap(end, offset, &mut found)?;
            end = offset + length as u64;
            match self.read_block(number) {
                Ok(block) => {
                    counts.add(&block);
                    found.extend(self.check_block(number, &block).map(|what| Damage { offset, what }));
                }
                Err(error) => found.push(Damage::of(error)?),
            }
        }
        let footer = &self.footer;
        self.check_gap(end, footer.fences_at, &mut found)?;
        let expected = (footer.entries, footer.deletes, footer.upserts, footer.unpacked_bytes);
        if found.is_empty() && (counts.entries, counts.deletes, counts.upserts, counts.bytes) != expected {
            let what = "counts in the footer are not those of the blocks".to_string();
            found.push(Damage { offset: footer.fences_at + footer.fences_length + footer.filter_length, what });
        }
        Ok(found)
    }

    /// What is wrong with a block that was read.
    fn check_block(&self, number: usize, block: &Block) -> Option<String> {
        let entries = || (0..block.len()).map(|at| block.entry(at));
        if entries().zip(entries().skip(1)).any(|(entry, next)| entry.key >= next.key) {
            return Some("keys do not ascend".to_string());
        }
        let last = block.entry(block.len().checked_sub(1)?).key;
        let is_last = number + 1 == self.block_count();
        let is_in_order = if is_last { last == self.max_key() } else { last < self.first_key(number + 1) };
        if !is_in_order {
            return Some("its last key contradicts the fences".to_string());
        }
        let deletes = entries().filter(|entry| entry.kind == EntryKind::Delete).count();
        if self.block_counts(number) != (block.len() as u32, deletes as u32) {
            return Some("its counts contradict the fences".to_string());
        }
        let is_unknown = |key: &[u8]| self.filtered(key).is_some_and(|prefix| !self.may_contain(key_hash(prefix)));
        entries().any(|entry| is_unknown(entry.key)).then(|| "the filter does not know one of its keys".to_string())
    }

    /// The part of a key that the filter knows.
    fn filtered<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match self.footer.filter_parts {
            WHOLE_KEYS => Some(key),
            UNKNOWN_PARTS => None,
            parts => key.get(..ordered_prefix_length(key, u32::from(parts))?),
        }
    }

    /// Between blocks there are a few zeros, so that the next begins on a page of its own.
    fn check_gap(&self, from: u64, to: u64, found: &mut Vec<Damage>) -> Result<(), LsmError> {
        let mut bytes = [0; 4096];
        let gap = usize::try_from(to - from).unwrap_or(usize::MAX);
        let Some(gap) = bytes.get_mut(..gap) else {
            found.push(Damage { offset: from, what: format!("{gap} bytes that belong to no block") });
            return Ok(());
        };
        if let Err(error) = self.file().and_then(|file| read_exactly(&*file, self.path(), gap, from)) {
            found.push(Damage::of(error)?);
        } else if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            found.push(Damage {
                offset: from + at as u64,
                what: "between two blocks there are not only zeros".to_string(),
            });
        }
        Ok(())
    }
}

#[derive(Default)]
struct Counts {
    entries: u64,
    deletes: u64,
    upserts: u64,
    bytes: u64,
}

impl Counts {
    fn add(&mut self, block: &Block) {
        self.entries += block.len() as u64;
        self.bytes += block.content_bytes() as u64;
        for at in 0..block.len() {
            match block.entry(at).kind {
                EntryKind::Put => {}
                EntryKind::Delete => self.deletes += 1,
                EntryKind::Upsert => self.upserts += 1,
            }
        }
    }
}
