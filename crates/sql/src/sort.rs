//! Sorting in slices: others have a turn while a million rows are put in order.
//!
//! Rows stay where they are; numbers of them are sorted, each beside a *hint*: the beginning of its first key as a number that orders as the key does. Most
//! comparisons see two different hints and touch no row.

use crate::error::Result;
use crate::expr::CollationOption;
use crate::run::Run;
use crate::value::Value;
use std::cmp::Ordering;

/// Rows that are sorted without a look at the clock.
const PIECE_MIN: usize = 32;
/// Rows with more bytes are compared one by one.
const HEAVY_BYTES: usize = 4096;
/// So few are sorted in one go, if they are light.
const AT_ONCE: usize = 1024;

/// A row: its hint, and its number.
pub(crate) type Entry = (u64, u32);

/// The hint of the first key's value. Of two values that differ in kind, or of which one is null, hints say nothing: all are 0 then.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    Integer,
    Double,
    Text,
    Other,
}

/// Makes hints while rows come.
pub(crate) struct Hints {
    kind: Kind,
    is_descending: bool,
    collation: CollationOption,
}

impl Hints {
    /// For a first key in this order.
    pub(crate) fn new(is_descending: bool, collation: &CollationOption) -> Self {
        Hints { kind: Kind::Unknown, is_descending, collation: collation.clone() }
    }

    /// The hint of the next row. It is good only if [`Hints::are_good`] in the end.
    #[inline]
    pub(crate) fn of(&mut self, value: &Value) -> u64 {
        let (kind, hint) = match value {
            Value::Int(number) => (Kind::Integer, (*number as u64) ^ (1 << 63)),
            Value::Double(number) if !number.is_nan() => {
                // The sign apart, bits of doubles order as the numbers; 0 and -0 are one.
                let bits = (number + 0.0).to_bits();
                (Kind::Double, if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
            }
            Value::Text(text) if let Some(collation) = &self.collation => {
                // One text without a hint, and all have none: none is asked for any more.
                let hint = if self.kind == Kind::Other { None } else { collation.head(text.as_bytes()) };
                hint.map_or((Kind::Other, 0), |hint| (Kind::Text, hint))
            }
            Value::Text(text) => {
                let mut head = [0; 8];
                let length = text.len().min(8);
                head[..length].copy_from_slice(&text.as_bytes()[..length]);
                (Kind::Text, u64::from_be_bytes(head))
            }
            _ => (Kind::Other, 0),
        };
        match self.kind {
            Kind::Unknown => self.kind = kind,
            same if same == kind => {}
            _ => self.kind = Kind::Other,
        }
        if self.is_descending { !hint } else { hint }
    }

    /// True if all values were of one kind that has hints.
    pub(crate) fn are_good(&self) -> bool {
        self.kind != Kind::Other
    }
}

/// Sorts entries by their hints and then by `order`, which is given the numbers of two rows; those that it takes for equal stay as they came. The rows have so
/// many bytes all in all: to compare long texts takes long.
///
/// May wait. Errors: as [`Run::tick`].
pub(crate) fn sort(
    run: &mut Run<'_>,
    entries: &mut Vec<Entry>,
    bytes: usize,
    order: &dyn Fn(u32, u32) -> Ordering,
) -> Result<()> {
    let row_bytes = bytes / entries.len().max(1);
    let piece = if row_bytes > HEAVY_BYTES { 1 } else { PIECE_MIN };
    let compare = |a: &Entry, b: &Entry| a.0.cmp(&b.0).then_with(|| order(a.1, b.1)).then_with(|| a.1.cmp(&b.1));
    for piece in entries.chunks_mut(piece) {
        piece.sort_unstable_by(compare);
        run.tick_many(piece.len() as u32)?;
    }
    let mut sorted = Vec::with_capacity(entries.len());
    let mut width = piece;
    while width < entries.len() {
        sorted.clear();
        for pair in entries.chunks(width * 2) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let (Some(a), Some(b)) = (left.first(), right.first()) {
                if sorted.len().is_multiple_of(piece) {
                    run.tick_many(PIECE_MIN as u32)?;
                }
                if compare(a, b) == Ordering::Greater {
                    sorted.push(*b);
                    right = &right[1..];
                } else {
                    sorted.push(*a);
                    left = &left[1..];
                }
            }
            for rest in [left, right] {
                for part in rest.chunks(4096) {
                    sorted.extend_from_slice(part);
                    run.tick_many(PIECE_MIN as u32)?;
                }
            }
        }
        std::mem::swap(entries, &mut sorted);
        width *= 2;
    }
    Ok(())
}

/// Sorts rows, or what else there is, as [`sort`] does. May wait. Errors: as [`Run::tick`].
pub(crate) fn sort_all<T>(
    run: &mut Run<'_>,
    rows: &mut Vec<T>,
    bytes: usize,
    order: &dyn Fn(&T, &T) -> Ordering,
) -> Result<()> {
    if rows.len() <= AT_ONCE && bytes / rows.len().max(1) <= HEAVY_BYTES {
        rows.sort_by(order);
        return Ok(());
    }
    let mut entries: Vec<Entry> = (0..rows.len() as u32).map(|number| (0, number)).collect();
    sort(run, &mut entries, bytes, &|a, b| order(&rows[a as usize], &rows[b as usize]))?;
    let mut unsorted: Vec<Option<T>> = std::mem::take(rows).into_iter().map(Some).collect();
    rows.extend(entries.iter().filter_map(|(_, number)| unsorted[*number as usize].take()));
    Ok(())
}

/// Frees rows by and by. May wait. Errors: as [`Run::tick`].
pub(crate) fn free_rows<T>(run: &mut Run<'_>, rows: Vec<T>) -> Result<()> {
    for row in rows {
        drop(row);
        run.tick()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn hints_order_as_values_do(
            whole in proptest::collection::vec(proptest::num::i64::ANY, 2),
            real in proptest::collection::vec(proptest::num::f64::ANY, 2),
            text in proptest::collection::vec("[a-b\\x00]{0,10}", 2),
            is_descending: bool,
        ) {
            let pairs = [
                [Value::Int(whole[0]), Value::Int(whole[1])],
                [Value::Double(real[0]), Value::Double(real[1])],
                [Value::text(text[0].as_str()), Value::text(text[1].as_str())],
                [Value::Int(whole[0]), Value::Double(real[0])],
                [Value::Null, Value::Int(whole[0])],
            ];
            for [a, b] in pairs {
                let mut hints = Hints::new(is_descending, &None);
                let (x, y) = (hints.of(&a), hints.of(&b));
                if hints.are_good() && x != y {
                    let by_value = if is_descending { b.order(&a) } else { a.order(&b) };
                    proptest::prop_assert_eq!(x.cmp(&y), by_value);
                }
            }
        }
    }
}
