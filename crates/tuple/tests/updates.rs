//! Update operations give what Tarantool 2.6 gives: `updates/answers.tsv` holds its answers to random operations on random rows, written
//! by `updates/record.sh`. What Tarantool does not survive has no line there.

use tuple::msgpack::{self, Kind, Reader};
use tuple::update::{self, UpdateError};

/// Cases in which Tarantool loses an operation: one goes on behind the place that an insertion or a removal before it has named.
const LOST: [u32; 7] = [899, 1192, 1222, 1403, 2069, 2108, 2144];

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect()
}

/// A value as text that does not depend on the order of keys in its maps.
fn canonical(reader: &mut Reader<'_>) -> String {
    match reader.kind() {
        Ok(Kind::Array) => {
            let count = reader.read_array().expect("an array");
            let elements: Vec<String> = (0..count).map(|_| canonical(reader)).collect();
            format!("[{}]", elements.join(","))
        }
        Ok(Kind::Map) => {
            let count = reader.read_map().expect("a map");
            let mut pairs: Vec<String> =
                (0..count).map(|_| format!("{}:{}", canonical(reader), canonical(reader))).collect();
            pairs.sort();
            format!("{{{}}}", pairs.join(","))
        }
        _ => format!("{:02x?}", reader.read_value().expect("a value")),
    }
}

/// The number that Tarantool gives to a refusal.
fn code_of(error: &UpdateError) -> u32 {
    match error {
        UpdateError::Msgpack(_) => 20,
        UpdateError::Illegal(_) => 1,
        UpdateError::Unknown(..) => 28,
        UpdateError::ArgumentType { .. } => 26,
        UpdateError::Splice { .. } => 25,
        UpdateError::NoFieldNumber(_) => 37,
        UpdateError::NoFieldName(_) | UpdateError::NoFieldPath(_) => 201,
        UpdateError::Field { .. } => 29,
        UpdateError::IntegerOverflow { .. } => 95,
        UpdateError::DecimalOverflow { .. } => 160,
    }
}

fn answer(result: Result<(), UpdateError>, row: &[u8]) -> String {
    match result {
        Ok(()) => canonical(&mut Reader::new(row)),
        Err(error) => format!("error {}", code_of(&error)),
    }
}

fn expected(recorded: &str) -> String {
    match recorded.split_once(' ') {
        Some((code, _)) => format!("error {code}"),
        None => canonical(&mut Reader::new(&bytes_of(recorded))),
    }
}

#[test]
fn update_operations_answer_as_tarantool_does() {
    let mut different = Vec::new();
    let recorded = include_str!("updates/answers.tsv");
    for line in recorded.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [number, row, ops, updated, upserted] = columns[..] else { panic!("five columns: {line}") };
        let (row, ops) = (bytes_of(row), bytes_of(ops));
        for (name, recorded) in [("update", updated), ("upsert", upserted)] {
            let mut out = Vec::new();
            let result = match name {
                "update" => update::apply(&ops, &row, None, 1, &mut out),
                _ => update::upsert(&ops, &row, None, 1, &mut out),
            };
            let (got, expected) = (answer(result, &out), expected(recorded));
            if got != expected && !LOST.contains(&number.parse().expect("a number")) {
                let (mut row_text, mut ops_text) = (String::new(), String::new());
                msgpack::format_value(&row, &mut row_text);
                msgpack::format_value(&ops, &mut ops_text);
                different.push(format!("{number} {name}: {row_text} {ops_text}\n  {recorded}\n  {expected}\n  {got}"));
            }
        }
    }
    assert!(recorded.lines().count() > 1000);
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different[..different.len().min(20)].join("\n"));
}
