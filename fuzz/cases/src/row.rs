//! Doubts that the check of a row is the last one it needs: whatever a format accepts can be walked, shown, stored and compared, and two
//! rows compare by their keys, hints and hashes as they compare themselves.
use std::cmp::Ordering;
use tuple::msgpack::{self, Reader};
use tuple::{Arena, FieldDef, FieldType, Format, KeyDef, KeyPart, Tuple};

const MEMORY: usize = 64 << 20;
const TYPES: [FieldType; 13] = [
    FieldType::Unsigned,
    FieldType::String,
    FieldType::Scalar,
    FieldType::Any,
    FieldType::Number,
    FieldType::Double,
    FieldType::Integer,
    FieldType::Boolean,
    FieldType::Varbinary,
    FieldType::Decimal,
    FieldType::Uuid,
    FieldType::Array,
    FieldType::Map,
];

/// A format of three fields by the first bytes of the input, with a key over the first two, and the rest.
fn split(input: &[u8]) -> Option<(Format, KeyDef, &[u8])> {
    let (choice, row) = input.split_first_chunk::<3>()?;
    let field_type = |at: usize| TYPES[usize::from(choice[at]) % TYPES.len()];
    let mut fields: Vec<FieldDef> = (0..3).map(|at| FieldDef::new(format!("field {at}"), field_type(at))).collect();
    fields[2].is_nullable = choice[2] & 0x80 != 0;
    let in_keys = |field_type: FieldType| !matches!(field_type, FieldType::Any | FieldType::Array | FieldType::Map);
    let part = |at: usize| {
        let chosen = field_type(at);
        KeyPart::new(at as u32, if in_keys(chosen) { chosen } else { FieldType::Scalar })
    };
    let parts = vec![part(0), part(1)];
    let format = Format::new(1, fields, 0, &parts).ok()?;
    Some((format, KeyDef::new(parts), row))
}

/// One case.
pub fn run(input: &[u8]) {
    let checked = msgpack::check(input);
    if let Ok(length) = checked {
        assert!(length > 0 && length <= input.len());
        assert_eq!(msgpack::skip(input), length, "the fast way skips as far as the careful one checks");
        let mut text = String::new();
        msgpack::format_value(&input[..length], &mut text);
        assert!(!text.is_empty());
    } else {
        // On anything else it goes nowhere outside.
        assert!(msgpack::skip(input) <= input.len());
    }
    let Some((format, key, rows)) = split(input) else { return };
    // Two rows, one behind the other.
    let Ok(length) = msgpack::check(rows) else { return };
    let (first, second) = rows.split_at(length);
    if format.check(first).is_err() {
        return;
    }
    check_row(&format, &key, first);
    if format.check(second).is_ok() {
        let order = key.compare_rows(first, second);
        assert_eq!(key.compare_rows(second, first), order.reverse());
        let hints = key.hint(first).cmp(&key.hint(second));
        assert!(hints == order || hints == Ordering::Equal, "{order:?}, but hints say {hints:?}");
        if order == Ordering::Equal {
            assert_eq!(key.hint(first), key.hint(second));
            assert_eq!(key.hash_row(first), key.hash_row(second));
        }
        assert_eq!(key.compare_row_key(first, &key_of(&key, second), key.part_count() as u32), order);
    }
}

/// The parts of a row's key, one after the other.
fn key_of(key: &KeyDef, row: &[u8]) -> Vec<u8> {
    let mut extracted = Vec::new();
    key.extract_key(row, &mut extracted);
    // Without the header of the array.
    extracted.remove(0);
    extracted
}

fn check_row(format: &Format, key: &KeyDef, row: &[u8]) {
    let count = Reader::new(row).read_array().expect("an accepted row is an array");
    let arena = Arena::new(MEMORY);
    let tuple = Tuple::new(&arena, format.id(), row).expect("there is memory for one row");
    assert_eq!((tuple.data(), tuple.field_count()), (row, count));
    for at in 0..count {
        let field = tuple.field(at).expect("a field that is there");
        assert!(msgpack::check(field).is_ok());
    }
    assert!(tuple.field(count).is_none());
    assert_eq!(key.compare_rows(row, row), Ordering::Equal);
    let part_count = key.part_count() as u32;
    let extracted = key_of(key, row);
    assert_eq!(key.compare_row_key(row, &extracted, part_count), Ordering::Equal);
    assert_eq!(key.key_hint(&extracted, part_count), key.hint(row));
    assert_eq!(key.hash_key(&extracted), key.hash_row(row));
    assert!(key.validate_key(&extracted, part_count, false).is_ok());
}
