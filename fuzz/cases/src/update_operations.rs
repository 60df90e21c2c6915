//! Doubts that update operations on a good row end in another good row or in an error, and that an upsert refuses only what is malformed.
use tuple::update::{self, UpdateError};
use tuple::{FieldDef, FieldType, Format, msgpack};

/// Rows that operations find something to do in.
const ROWS: [&[u8]; 4] = [
    // [1, "text", -5, 1.5, {"a": [1, {"b": 2}]}, nil]
    b"\x96\x01\xa4text\xfb\xcb\x3f\xf8\0\0\0\0\0\0\x81\xa1a\x92\x01\x81\xa1b\x02\xc0",
    // [decimal 1.2, uuid, binary, 2^64 - 1]
    b"\x94\xc7\x03\x01\x01\x01\x2c\xd8\x02aaaaaaaaaaaaaaaa\xc4\x02\xff\0\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    // []
    b"\x90",
    // [[[[]]], -2^63]
    b"\x92\x91\x91\x90\xd3\x80\0\0\0\0\0\0\0",
];

fn check_row(row: &[u8]) {
    assert_eq!(msgpack::check(row), Ok(row.len()), "the result is one value");
    assert!(msgpack::Reader::new(row).read_array().is_ok(), "the result is a row");
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&choice, ops)) = input.split_first() else { return };
    let row = ROWS[usize::from(choice) % ROWS.len()];
    let index_base = u32::from(choice >> 7);
    let fields =
        vec![FieldDef::new("id".to_string(), FieldType::Any), FieldDef::new("text".to_string(), FieldType::Any)];
    let format = Format::new(1, fields, 0, &[]).expect("a good format");
    let with_names = (choice & 0x40 != 0).then_some(&format);

    let well_formed = update::check_ops(ops, with_names, index_base);
    let mut updated = Vec::new();
    let applied = update::apply(ops, row, with_names, index_base, &mut updated);
    match &applied {
        Ok(()) => check_row(&updated),
        Err(error) => {
            assert!(updated.is_empty(), "a refused update has written nothing");
            if let UpdateError::Msgpack(_) = error {
                assert!(well_formed.is_err());
            }
        }
    }
    let mut upserted = Vec::new();
    let result = update::upsert(ops, row, with_names, index_base, &mut upserted);
    assert_eq!(result.is_ok(), well_formed.is_ok(), "an upsert refuses what is malformed and nothing else");
    if result.is_ok() {
        check_row(&upserted);
    }
    if applied.is_ok() {
        assert_eq!(upserted, updated, "what an update does, an upsert does too");
    }
}
