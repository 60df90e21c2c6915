//! Rows: reading, comparing, changing and keeping them.

use crate::machine::Machine;
use crate::report::Report;
use crate::scattered;
use std::hint::black_box;
use tuple::msgpack::{self, Reader};
use tuple::{Arena, FieldType, Format, KeyDef, KeyPart, Tuple, update};

const ROWS: u64 = 1 << 18;
/// The cheapest thing a processor of today does with a value that is in a register or its first cache.
const STEP_NS: f64 = 0.3;

fn row(id: u64, text: usize) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, 3);
    msgpack::encode_uint(&mut out, id);
    msgpack::encode_str(&mut out, &vec![b'a' + (id % 26) as u8; text]);
    msgpack::encode_uint(&mut out, id % 100);
    out
}

pub(crate) fn run(machine: &Machine, report: &Report) {
    if !report.wants("tuple") {
        return;
    }
    let part = |field_no, field_type| KeyPart::new(field_no, field_type);
    let one = row(70_000, 100);
    let other = row(70_001, 100);
    let count = 1_000_000;
    report.case("tuple check of bytes", count, 4.0 * STEP_NS, "4 first bytes", || {
        for _ in 0..count {
            let _ = black_box(msgpack::check(black_box(&one)));
        }
    });
    let format = Format::new(0, Vec::new(), 0, &[part(0, FieldType::Unsigned), part(1, FieldType::String)]);
    if let Ok(format) = format {
        report.case("tuple check of format", count, 8.0 * STEP_NS, "4 first bytes, twice", || {
            for _ in 0..count {
                let _ = black_box(format.check(black_box(&one)));
            }
        });
    }
    for (name, key, steps) in [
        ("unsigned", KeyDef::new(vec![part(0, FieldType::Unsigned)]), 4.0),
        ("string", KeyDef::new(vec![part(1, FieldType::String)]), 6.0),
        ("two parts", KeyDef::new(vec![part(2, FieldType::Unsigned), part(0, FieldType::Unsigned)]), 12.0),
    ] {
        report.case(&format!("tuple compare, {name}"), count, steps * STEP_NS, "both keys read", || {
            for _ in 0..count {
                black_box(key.compare_rows(black_box(&one), black_box(&other)));
            }
        });
        report.case(&format!("tuple hint, {name}"), count, steps / 2.0 * STEP_NS, "one key read", || {
            for _ in 0..count {
                black_box(key.hint(black_box(&one)));
            }
        });
    }
    let arena = Arena::new(1 << 30);
    let Ok(kept) = Tuple::new(&arena, 0, &one) else { return };
    report.case("tuple third field", count, 4.0 * STEP_NS, "3 values passed", || {
        for _ in 0..count {
            black_box(black_box(&kept).field(2));
        }
    });
    let mut ops = Vec::new();
    msgpack::encode_array(&mut ops, 1);
    msgpack::encode_array(&mut ops, 3);
    msgpack::encode_str(&mut ops, b"+");
    msgpack::encode_uint(&mut ops, 2);
    msgpack::encode_uint(&mut ops, 1);
    let mut changed = Vec::new();
    let copy_ns = one.len() as f64 * machine.near_copy_byte_ns;
    report.case("tuple update, one addition", count, copy_ns + 8.0 * STEP_NS, "the row copied once", || {
        for _ in 0..count {
            changed.clear();
            let _ = black_box(update::apply(black_box(&ops), &one, None, 0, &mut changed));
        }
    });
    for size in [20, 100, 1000] {
        let bytes = row(70_000, size);
        let copy_ns = bytes.len() as f64 * machine.near_copy_byte_ns;
        let name = format!("tuple make and free, {size} bytes");
        report.case(&name, count, copy_ns + 4.0 * STEP_NS, "copied within the cache", || {
            for _ in 0..count {
                let _ = black_box(Tuple::new(&arena, 0, black_box(&bytes)));
            }
        });
    }
    let rows: Vec<Tuple> = (0..ROWS).filter_map(|id| Tuple::new(&arena, 0, &row(id, 100)).ok()).collect();
    report.case("tuple read of a random row", ROWS, machine.miss_ns / 10.0, "one miss, ten at once", || {
        for at in scattered(ROWS).take(ROWS as usize) {
            let mut reader = Reader::new(rows[at as usize].data());
            black_box(reader.read_array().and_then(|_| reader.read_uint())).ok();
        }
    });
}
