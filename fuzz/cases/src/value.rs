//! Doubts the small decoders: decimals, UUIDs, paths into rows, names and options of collations. What is understood is written as it was
//! meant, and understood again as the same.

use tuple::decimal::Decimal;
use tuple::msgpack;
use tuple::{Collation, format_uuid, path};

fn check_decimal(decimal: Decimal) {
    let mut encoded = Vec::new();
    decimal.encode(&mut encoded);
    assert_eq!(Decimal::decode(&encoded), Some(decimal), "{decimal} comes back");
    let text = decimal.to_string();
    let (_, scale) = decimal.parts();
    // Zeros before the point may make more digits than a text may have.
    // Rows written elsewhere may have more places than a text is read with.
    if scale > 38 || scale < 0 && text.trim_start_matches('-').len() > 38 {
        return;
    }
    assert_eq!(text.parse::<Decimal>().ok(), Some(decimal), "{text} is read as it was written");
    assert_eq!(decimal.normalized(), decimal);
    let _ = decimal.to_f64();
    let _ = decimal.to_integer();
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    match choice % 4 {
        0 => {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let decimals = [bytes, first, second].map(Decimal::decode);
            decimals.into_iter().flatten().for_each(check_decimal);
            if let [_, Some(first), Some(second)] = decimals {
                assert_eq!(first.cmp(&second), second.cmp(&first).reverse());
                first.checked_add(second).into_iter().for_each(check_decimal);
                first.checked_sub(second).into_iter().for_each(check_decimal);
            }
            text.parse::<Decimal>().into_iter().for_each(check_decimal);
        }
        1 => {
            let _ = format_uuid(bytes);
            let mut encoded = Vec::new();
            msgpack::encode_ext(&mut encoded, 2, bytes);
            if msgpack::check(&encoded).is_ok() {
                let mut shown = String::new();
                msgpack::format_value(&encoded, &mut shown);
                assert!(bytes.len() != 16 || shown.contains(&format_uuid(bytes)), "{shown}");
            }
        }
        2 => {
            let steps = path::parse(&text);
            assert!(steps.is_none_or(|steps| steps.len() <= text.len()));
        }
        _ => {
            let (locale, options) = bytes.split_at(bytes.len() / 2);
            let locale = String::from_utf8_lossy(locale);
            if let Ok(collation) = Collation::from_row(300, "ours", "ICU", &locale, options) {
                let (a, b) = bytes.split_at(bytes.len() / 3);
                assert_eq!(collation.compare(a, b), collation.compare(b, a).reverse());
                if collation.compare(a, b).is_eq() {
                    assert_eq!(collation.hash(a), collation.hash(b));
                }
            }
        }
    }
}
