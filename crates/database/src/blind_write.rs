//! Writes to spaces on disk that do not look at what is there: a delete by primary key, and an upsert of a row that is not in memory.
//!
//! They are logged as what they are, and not as the row that results: nobody knows it. A replacement in a space with one index is
//! blind, too, but has its row. When a write may be blind: `prepare.rs`, `is_blind`.

use crate::catalog::Space;
use crate::statement::row_kind;
use tuple::{Tuple, msgpack};
use wire::key;

/// A write that does not look at what is there. It is never refused for what is.
pub(crate) enum BlindWrite {
    /// The row with this primary key goes, if it is there.
    Delete { key: Vec<u8> },
    /// Operations for a row; it is put in if it is not there.
    Upsert { row: Tuple, operations: Vec<u8>, index_base: u32 },
}

impl BlindWrite {
    /// Kind of its log row.
    pub(crate) fn kind(&self) -> u16 {
        match self {
            BlindWrite::Delete { .. } => row_kind::DELETE,
            BlindWrite::Upsert { .. } => row_kind::UPSERT,
        }
    }

    /// The body of its log row.
    pub(crate) fn encode_body(&self, out: &mut Vec<u8>, space: &Space) {
        let index_base = match self {
            BlindWrite::Upsert { index_base, .. } => *index_base,
            BlindWrite::Delete { .. } => 0,
        };
        let fields = match self {
            BlindWrite::Delete { .. } => 2,
            BlindWrite::Upsert { .. } => 3 + u32::from(index_base != 0),
        };
        msgpack::encode_map(out, fields);
        msgpack::encode_uint(out, key::SPACE_ID);
        msgpack::encode_uint(out, u64::from(space.id));
        if index_base != 0 {
            msgpack::encode_uint(out, key::INDEX_BASE);
            msgpack::encode_uint(out, u64::from(index_base));
        }
        match self {
            BlindWrite::Delete { key } => {
                msgpack::encode_uint(out, key::KEY);
                out.extend_from_slice(key);
            }
            BlindWrite::Upsert { row, operations, .. } => {
                msgpack::encode_uint(out, key::TUPLE);
                out.extend_from_slice(row.data());
                msgpack::encode_uint(out, key::OPS);
                out.extend_from_slice(operations);
            }
        }
    }
}
