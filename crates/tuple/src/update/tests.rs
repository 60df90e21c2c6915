//! Operations on rows, against a vector and against Tarantool's answers.

use super::document::{PASSED, PLACE_ELEMENTS};
use super::*;
use crate::msgpack;
use proptest::prelude::*;

/// Found by mutating the fuzz corpus.
#[test]
fn the_largest_field_number_is_no_field() {
    let ops = encode_ops(&[('=', i64::MAX, &[1])]);
    let refused = apply(&ops, &[0x90], None, 0, &mut Vec::new());
    assert!(matches!(refused, Err(UpdateError::ArgumentType { expected: "an integer", .. })));
    let ops = encode_ops(&[('=', i64::from(i32::MAX), &[1])]);
    let refused = apply(&ops, &[0x90], None, 0, &mut Vec::new());
    assert_eq!(refused, Err(UpdateError::NoFieldNumber(i64::from(i32::MAX) + 1)));
}

/// `ops` as pairs of an operation and the raw arguments.
fn encode_ops(ops: &[(char, i64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, ops.len() as u32);
    for (code, field, argument) in ops {
        msgpack::encode_array(&mut out, 3);
        msgpack::encode_str(&mut out, &[*code as u8]);
        msgpack::encode_int(&mut out, *field);
        out.extend_from_slice(argument);
    }
    out
}

fn run(row: &[u8], ops: &[(char, i64, &[u8])]) -> Result<String, UpdateError> {
    let mut out = Vec::new();
    apply(&encode_ops(ops), row, None, 1, &mut out)?;
    let mut text = String::new();
    msgpack::format_value(&out, &mut text);
    Ok(text)
}

#[test]
fn operations_change_rows_as_tarantool_does() {
    let row = [0x93, 1, 0xa1, b'x', 10];
    assert_eq!(run(&row, &[('+', 3, &[1])]).as_deref(), Ok("[1, 'x', 11]"));
    assert_eq!(run(&row, &[('-', 3, &[11])]).as_deref(), Ok("[1, 'x', -1]"));
    assert_eq!(run(&row, &[('!', -1, &[5])]).as_deref(), Ok("[1, 'x', 10, 5]"));
    assert_eq!(run(&row, &[('=', -1, &[5])]).as_deref(), Ok("[1, 'x', 5]"));
    assert_eq!(run(&row, &[('#', 2, &[9])]).as_deref(), Ok("[1]"));
    assert_eq!(run(&row, &[('=', 4, &[7]), ('=', 5, &[8])]).as_deref(), Ok("[1, 'x', 10, 7, 8]"));
    assert_eq!(run(&row, &[('=', 10, &[7])]), Err(UpdateError::NoFieldNumber(10)));
    let twice = run(&row, &[('+', 3, &[1]), ('+', 3, &[2])]);
    assert!(matches!(twice, Err(UpdateError::Field { .. })));
    let max = [0x92, 1, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(run(&max, &[('+', 2, &[1])]), Err(UpdateError::IntegerOverflow { .. })));
}

#[test]
fn a_splice_cuts_and_pastes() {
    let mut ops = vec![0x91, 0x95, 0xa1, b':', 2, 1, 1];
    msgpack::encode_str(&mut ops, b"QQ");
    let mut out = Vec::new();
    assert_eq!(apply(&ops, &[0x92, 1, 0xa1, b'x'], None, 1, &mut out), Ok(()));
    assert_eq!(out, [0x92, 1, 0xa2, b'Q', b'Q']);
}

proptest! {
    #[test]
    fn any_bytes_as_operations_never_panic(ops in proptest::collection::vec(any::<u8>(), 0..60)) {
        let row = [0x94, 1, 0xa1, b'x', 10, 0x81, 0xa1, b'a', 0x92, 1, 2];
        let mut out = Vec::new();
        let _ = check_ops(&ops, None, 1);
        if apply(&ops, &row, None, 1, &mut out).is_ok() {
            prop_assert_eq!(msgpack::check(&out), Ok(out.len()));
        }
    }

    #[test]
    fn sets_and_inserts_agree_with_a_vector(
        steps in proptest::collection::vec((0..3u8, 1..12i64, 0..100u8), 0..12)
    ) {
        let row = [0x95, 1, 2, 3, 4, 5];
        let mut model = vec![1u8, 2, 3, 4, 5];
        let mut kept = Vec::new();
        for (kind, field, value) in steps {
            let at = field as usize - 1;
            match kind {
                0 if at < model.len() => { model[at] = value; kept.push(('=', field, [value])); }
                1 if at <= model.len() => { model.insert(at, value); kept.push(('!', field, [value])); }
                2 if at < model.len() => { model.remove(at); kept.push(('#', field, [1])); }
                _ => {}
            }
        }
        let ops: Vec<(char, i64, &[u8])> = kept.iter().map(|(c, f, v)| (*c, *f, &v[..])).collect();
        let mut out = Vec::new();
        prop_assert_eq!(apply(&encode_ops(&ops), &row, None, 1, &mut out), Ok(()));
        let mut expected = Vec::new();
        msgpack::encode_array(&mut expected, model.len() as u32);
        expected.extend_from_slice(&model);
        prop_assert_eq!(out, expected);
    }
}

/// A value as a tree: what operations one after the other are tried on.
#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Leaf(Vec<u8>),
    List(Vec<Plain>),
    Map(Vec<(Vec<u8>, Plain)>),
}

impl Plain {
    fn read(reader: &mut msgpack::Reader<'_>) -> Plain {
        match reader.kind().expect("a value") {
            msgpack::Kind::Array => {
                let count = reader.read_array().expect("an array");
                Plain::List((0..count).map(|_| Plain::read(reader)).collect())
            }
            msgpack::Kind::Map => {
                let count = reader.read_map().expect("a map");
                let mut pairs: Vec<(Vec<u8>, Plain)> =
                    (0..count).map(|_| (reader.read_value().expect("a key").to_vec(), Plain::read(reader))).collect();
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                Plain::Map(pairs)
            }
            _ => Plain::Leaf(reader.read_value().expect("a value").to_vec()),
        }
    }

    fn of(bytes: &[u8]) -> Plain {
        Plain::read(&mut msgpack::Reader::new(bytes))
    }

    /// Applies one operation (`=`, `!`, `#` or `+` of a small number) at the end of a path. False if there is no such place.
    fn apply(&mut self, code: char, path: &[Place], argument: &Plain) -> bool {
        let (step, rest) = path.split_first().expect("a path has steps");
        match (self, step) {
            (Plain::List(list), Place::Index(at)) if !rest.is_empty() => {
                list.get_mut(*at).is_some_and(|inner| inner.apply(code, rest, argument))
            }
            (Plain::Map(map), Place::Key(key)) if !rest.is_empty() => {
                map.iter_mut().find(|pair| pair.0 == *key).is_some_and(|pair| pair.1.apply(code, rest, argument))
            }
            (Plain::List(list), Place::Index(at)) => match code {
                '!' if *at <= list.len() => {
                    list.insert(*at, argument.clone());
                    true
                }
                '=' if *at == list.len() => {
                    list.push(argument.clone());
                    true
                }
                '#' if *at < list.len() => {
                    list.remove(*at);
                    true
                }
                '=' | '+' => list.get_mut(*at).is_some_and(|value| value.change(code, argument)),
                _ => false,
            },
            (Plain::Map(map), Place::Key(key)) => {
                let at = map.binary_search_by(|pair| pair.0.cmp(key));
                match (code, at) {
                    ('!' | '=', Err(at)) => {
                        map.insert(at, (key.clone(), argument.clone()));
                        true
                    }
                    ('#', Ok(at)) => {
                        map.remove(at);
                        true
                    }
                    ('=' | '+', Ok(at)) => map[at].1.change(code, argument),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn change(&mut self, code: char, argument: &Plain) -> bool {
        if code == '=' {
            *self = argument.clone();
            return true;
        }
        let number = |value: &Plain| match value {
            Plain::Leaf(bytes) => msgpack::Reader::new(bytes).read_uint().ok(),
            _ => None,
        };
        let (Some(a), Some(b)) = (number(self), number(argument)) else { return false };
        let mut sum = Vec::new();
        msgpack::encode_uint(&mut sum, a + b);
        *self = Plain::Leaf(sum);
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    Index(usize),
    /// Encoded.
    Key(Vec<u8>),
}

fn path_text(path: &[Place]) -> String {
    let step = |place: &Place| match place {
        Place::Index(at) => format!("[{}]", at + 1),
        Place::Key(key) => format!(".{}", String::from_utf8_lossy(&key[1..])),
    };
    path.iter().map(step).collect()
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    let place = prop_oneof![
        3 => (0..5usize).prop_map(Place::Index),
        2 => proptest::sample::select(vec!["a", "b", "c"]).prop_map(|key| {
            let mut out = Vec::new();
            msgpack::encode_str(&mut out, key.as_bytes());
            Place::Key(out)
        }),
    ];
    (0..5usize, proptest::collection::vec(place, 0..4)).prop_map(|(first, mut rest)| {
        rest.insert(0, Place::Index(first));
        rest
    })
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        (0..100u64).prop_map(|value| {
            let mut out = Vec::new();
            msgpack::encode_uint(&mut out, value);
            out
        }),
        Just(vec![0xa1, b'x']),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|list| {
                let mut out = Vec::new();
                msgpack::encode_array(&mut out, list.len() as u32);
                list.iter().for_each(|value| out.extend_from_slice(value));
                out
            }),
            proptest::collection::btree_map(proptest::sample::select(vec!["a", "b", "c"]), inner, 0..4).prop_map(
                |map| {
                    let mut out = Vec::new();
                    msgpack::encode_map(&mut out, map.len() as u32);
                    for (key, value) in map {
                        msgpack::encode_str(&mut out, key.as_bytes());
                        out.extend_from_slice(&value);
                    }
                    out
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// What is refused beyond what a plain tree refuses are second operations on one place, and nothing else.
    #[test]
    fn operations_together_do_what_they_do_one_after_the_other(
        fields in proptest::collection::vec(value(), 1..5),
        steps in proptest::collection::vec(
            (proptest::sample::select(vec!['=', '!', '#', '+']), places(), value()), 1..8,
        ),
        in_numbers: bool,
    ) {
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, fields.len() as u32);
        fields.iter().for_each(|value| row.extend_from_slice(value));
        let mut model = Plain::of(&row);
        let mut ops = Vec::new();
        msgpack::encode_array(&mut ops, steps.len() as u32);
        let mut refused_by_model = false;
        for (code, path, argument) in &steps {
            let argument = match code {
                '#' => vec![1],
                '+' => vec![7],
                _ => argument.clone(),
            };
            msgpack::encode_array(&mut ops, 3);
            msgpack::encode_str(&mut ops, &[*code as u8]);
            match &path[..] {
                [Place::Index(at)] if in_numbers => msgpack::encode_uint(&mut ops, *at as u64 + 1),
                _ => msgpack::encode_str(&mut ops, path_text(path).as_bytes()),
            }
            ops.extend_from_slice(&argument);
            refused_by_model |= !model.apply(*code, path, &Plain::of(&argument));
        }
        let mut out = Vec::new();
        match apply(&ops, &row, None, 1, &mut out) {
            Ok(()) => {
                // A removal of what is not in a map that was updated before passes.
                prop_assert!(!refused_by_model || steps.iter().any(|step| step.0 == '#'));
                prop_assert_eq!(msgpack::check(&out), Ok(out.len()));
                prop_assert_eq!(Plain::of(&out), model);
                let mut upserted = Vec::new();
                prop_assert_eq!(upsert(&ops, &row, None, 1, &mut upserted), Ok(()));
                prop_assert_eq!(upserted, out);
            }
            Err(UpdateError::Field { .. }) => {}
            Err(error) => prop_assert!(refused_by_model, "{error:?}"),
        }
    }
}

/// Issue 14: 27 seconds before operations were applied in one pass over the row.
#[test]
fn many_operations_on_a_large_row_pass_over_it_once() {
    let (elements, pairs) = (300_000u32, 100_000u32);
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 3);
    row.push(1);
    msgpack::encode_array(&mut row, elements);
    (0..elements).for_each(|_| row.extend_from_slice(&[0x92, 1, 0x91, 2]));
    msgpack::encode_map(&mut row, pairs);
    for key in 0..pairs {
        msgpack::encode_str(&mut row, format!("k{key}").as_bytes());
        row.push(1);
    }
    let mut ops = Vec::new();
    msgpack::encode_array(&mut ops, OPERATIONS_MAX);
    for number in 0..OPERATIONS_MAX {
        let (code, path, argument) = match number % 4 {
            0 => ("=", format!("[2][{}][2][1]", elements - 31 * number), 7),
            1 => ("!", format!("[2][{}]", elements - 17 * number), 8),
            2 => ("#", format!("[2][{}]", elements - 13 * number), 1),
            _ => ("+", format!("[3].k{}", pairs - 1 - number), 1),
        };
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, code.as_bytes());
        msgpack::encode_str(&mut ops, path.as_bytes());
        ops.push(argument);
    }
    let mut out = Vec::new();
    let passed_before = PASSED.get();
    upsert(&ops, &row, None, 1, &mut out).expect("well formed");
    let passed = PASSED.get() - passed_before;
    // Elements, keys and values once each, and for each operation no more than lies between two remembered places, at its ends.
    let stretches = u64::from(OPERATIONS_MAX) * 4 * PLACE_ELEMENTS as u64;
    assert!(passed > u64::from(elements) / 2, "{passed}");
    assert!(passed <= u64::from(elements) + 2 * u64::from(pairs) + stretches, "{passed}");
    assert_eq!(msgpack::check(&out), Ok(out.len()));
}
