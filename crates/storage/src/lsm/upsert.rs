//! What upserts make of rows when they meet them: at a read, or in a compaction.

use super::merge::Upserter;
use std::sync::Arc;
use tuple::{Format, KeyDef, msgpack::Reader, update};

/// Upserts of one space. Operations that cannot be applied are passed over, and one that leads to a row which the space could not hold, or to
/// another primary key, leaves the row as it is, as Tarantool has it.
pub(crate) struct RowUpserter {
    format: Arc<Format>,
    primary_parts: KeyDef,
}

impl RowUpserter {
    pub(crate) fn new(format: Arc<Format>, primary: &KeyDef) -> Self {
        RowUpserter { format, primary_parts: KeyDef::new(primary.parts().to_vec()) }
    }

    /// One set of operations on a row, into `out`. False: the row stays.
    fn change(&self, row: &[u8], operations: &[u8], index_base: u32, out: &mut Vec<u8>) -> bool {
        out.clear();
        update::upsert(operations, row, Some(&self.format), index_base, out).is_ok()
            && self.format.check(out).is_ok()
            && self.primary_parts.compare_rows(row, out).is_eq()
    }
}

/// Value of an upsert: the row, then for each set of operations the number of the first field and the operations.
pub(crate) fn encode_operand(row: &[u8], operations: &[u8], index_base: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(row);
    tuple::msgpack::encode_uint(out, u64::from(index_base));
    out.extend_from_slice(operations);
}

impl Upserter for RowUpserter {
    fn apply(&self, old: Option<&[u8]>, operand: &[u8], out: &mut Vec<u8>) {
        let mut reader = Reader::new(operand);
        let Ok(first) = reader.read_value() else {
            // Cannot be: it was checked when it was written. What is there stays.
            out.extend_from_slice(old.unwrap_or(&[]));
            return;
        };
        let mut row = old.unwrap_or(first).to_vec();
        let mut changed = Vec::new();
        // Who finds no row puts one in, and its operations are for those who do.
        let mut is_passed = old.is_none();
        while let (Ok(index_base), Ok(operations)) = (reader.read_uint(), reader.read_value()) {
            if !std::mem::take(&mut is_passed) && self.change(&row, operations, index_base as u32, &mut changed) {
                std::mem::swap(&mut row, &mut changed);
            }
        }
        out.extend_from_slice(&row);
    }
}
