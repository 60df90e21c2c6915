//! How many rows have the same beginning of a key: what the order of joins is chosen by.
//!
//! A few rows of an index are picked, and those beside them that begin alike are counted. The mean of that is what a look by the index finds for a
//! row of another table, if that one refers to all rows alike. Tables on disk are not asked: a look might wait.

use database::{Database, Space};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::rc::Rc;
use storage::{IndexDef, IteratorKind, KeySource};
use tuple::msgpack::Reader;
use tuple::{IndexId, SpaceId};

/// Rows that are picked.
const SAMPLES: u64 = 12;
/// Rows that are counted for one of them; where there are more, a hundredth of all is taken.
const ALIKE_MAX: usize = 500;
/// Tables with fewer rows are not looked at.
const ROWS_MIN: u64 = 200;
/// Indexes of which something is known.
pub(crate) const KNOWN_MAX: usize = 10_000;

/// By the number of parts, from one: rows that are alike in them.
pub(crate) type Alike = Rc<[f64]>;

/// What is known of indexes.
#[derive(Default)]
pub(crate) struct Selectivity {
    known: RefCell<HashMap<(SpaceId, IndexId), Known>>,
}

struct Known {
    schema_version: u64,
    /// Rows of the space when it was found out.
    rows: u64,
    alike: Alike,
}

impl Selectivity {
    /// Of an index in memory. None: it is too small, on disk, or has no order.
    pub(crate) fn of(&self, database: &Database, space: &Space, index: &IndexDef) -> Option<Alike> {
        let rows = space.rows.memory()?;
        let count = rows.borrow().len() as u64;
        let is_ordered = index.kind == storage::IndexKind::Tree && matches!(index.source, KeySource::Fields);
        if count < ROWS_MIN || !is_ordered {
            return None;
        }
        let schema_version = database.catalog.schema_version();
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.get(&(space.id, index.id))
            && known.schema_version == schema_version
            && known.rows / 2 <= count
            && count / 2 <= known.rows
        {
            return Some(Rc::clone(&known.alike));
        }
        let alike = measured(&rows.borrow(), index, count);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert((space.id, index.id), Known { schema_version, rows: count, alike: Rc::clone(&alike) });
        Some(alike)
    }
}

fn measured(rows: &storage::MemorySpace, index: &IndexDef, count: u64) -> Alike {
    let parts = index.key_def.parts().len();
    let mut sums = vec![0.0; parts];
    let mut samples = 0.0;
    for sample in 0..SAMPLES {
        // Seeds far from each other: https://en.wikipedia.org/wiki/Fibonacci_hashing
        let Some(row) = rows.random(index.id, (sample + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) else { continue };
        let mut key = Vec::new();
        index.key_def.extract_key(row.data(), &mut key);
        samples += 1.0;
        let mut reader = Reader::new(&key);
        if reader.read_array().is_err() {
            continue;
        }
        let begin = key.len() - reader.rest().len();
        for (part, sum) in sums.iter_mut().enumerate() {
            if reader.read_value().is_err() {
                break;
            }
            let prefix = &key[begin..key.len() - reader.rest().len()];
            let mut found = 0;
            rows.scan(index.id, IteratorKind::Eq, prefix, part as u32 + 1, |_| {
                found += 1;
                found < ALIKE_MAX
            });
            *sum += if found < ALIKE_MAX { found as f64 } else { (count as f64 / 100.0).max(found as f64) };
        }
    }
    sums.iter().map(|sum| if samples > 0.0 { (sum / samples).max(1.0) } else { 1.0 }).collect()
}
