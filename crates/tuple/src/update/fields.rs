//! The short way of most updates: a few operations that change fields of the row which no other one names, or append some. The row is
//! passed over once and nothing is kept of it.

use super::operation::Operation;
use super::scalar;
use crate::field::FieldType;
use crate::format::Format;
use crate::msgpack::{self, Reader};

/// Operations that are looked at; more go the long way.
const OPERATIONS_MAX: usize = 8;

/// Appends the row as the operations change it. False if they are not of this kind or one of them is refused; then nothing is appended, and
/// [`Document`](super::document::Document) has the answer.
pub(super) fn apply(operations: &[Operation<'_>], row: &[u8], format: Option<&Format>, out: &mut Vec<u8>) -> bool {
    let mut reader = Reader::new(row);
    let Ok(old_count) = reader.read_array() else { return false };
    // Position of a field and the number of its operation, ascending.
    let mut changes = [(0, 0); OPERATIONS_MAX];
    if operations.len() > OPERATIONS_MAX {
        return false;
    }
    let mut count = i64::from(old_count);
    for (at, operation) in operations.iter().enumerate() {
        let field_no = operation.field_no.get();
        let position = if field_no < 0 { field_no + count } else { field_no };
        if matches!(operation.code, '!' | '#') || !operation.ends_at(0) {
            return false;
        }
        if operation.code == '=' && position == count {
            count += 1;
        } else if !(0..count).contains(&position) {
            return false;
        }
        let place = changes[..at].partition_point(|change| change.0 < position);
        if changes[..at].get(place).is_some_and(|change| change.0 == position) {
            return false;
        }
        changes.copy_within(place..at, place + 1);
        changes[place] = (position, at);
    }
    let start = out.len();
    out.reserve(row.len() + operations.iter().map(|operation| operation.value().len()).sum::<usize>());
    // Bytes of the row up to here are in `out`.
    let mut copied = 0;
    if count > i64::from(old_count) {
        msgpack::encode_array(out, count as u32);
        copied = reader.position();
    }
    let mut next = 0;
    for (position, at) in &changes[..operations.len()] {
        if *position >= i64::from(old_count) {
            out.extend_from_slice(&row[copied..]);
            copied = row.len();
            out.extend_from_slice(operations[*at].value());
            continue;
        }
        while next < *position {
            reader.skip_checked();
            next += 1;
        }
        let field = reader.position();
        reader.skip_checked();
        next += 1;
        out.extend_from_slice(&row[copied..field]);
        copied = reader.position();
        let operation = &operations[*at];
        let made = out.len();
        if operation.code == '=' {
            out.extend_from_slice(operation.value());
        } else if scalar::change(operation, &row[field..copied], out).is_err() {
            out.truncate(start);
            return false;
        } else {
            scalar::widen(out, made, || {
                format.is_some_and(|format| format.type_of(*position as usize) == FieldType::Double)
            });
        }
    }
    out.extend_from_slice(&row[copied..]);
    true
}
