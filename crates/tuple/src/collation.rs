//! Collations: how strings compare.
//!
//! `BINARY` compares bytes. `HASH` compares hashes of the bytes and then the bytes: where any order will do, one that is found out at a look
//! (no collation of Tarantool's). `JSON` compares documents as PostgreSQL's `jsonb` does (no collation of Tarantool's, and no row: it is there always). `ICU` compares by the Unicode collation algorithm with a locale and the options of a `_collation` row. The
//! collator of a locale is made when it is first used: there are hundreds of rows and few uses.

use crate::msgpack::Reader;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale::Locale;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::OnceLock;

/// A row of `_collation`.
pub struct Collation {
    id: u32,
    name: String,
    kind: Kind,
}

/// The number of the collation of documents: beyond those that rows get.
pub const JSON_COLLATION_ID: u32 = 1 << 20;
/// Its name.
pub const JSON_COLLATION_NAME: &str = "jsonb";

enum Kind {
    Bytes,
    Hash,
    Json,
    Icu(Box<Icu>),
}

/// Options of a row and the values that each may have.
const OPTIONS: [(&str, &[&str]); 7] = [
    ("french_collation", &["on", "off"]),
    ("alternate_handling", &["non_ignorable", "shifted"]),
    ("case_first", &["off", "upper_first", "lower_first"]),
    ("case_level", &["on", "off"]),
    ("normalization_mode", &["on", "off"]),
    ("numeric_collation", &["on", "off"]),
    ("strength", &["primary", "secondary", "tertiary", "quaternary", "identical"]),
];

struct Icu {
    locale: Locale,
    strength: Strength,
    is_shifted: bool,
    has_case_level: bool,
    collator: OnceLock<Option<CollatorBorrowed<'static>>>,
    ascii: OnceLock<Option<Box<Ascii>>>,
}

/// How a collation orders ASCII: by the weights of its characters, one after the other, first those of all letters without their case.
///
/// Only of collations in which no two characters of ASCII make one: the root of all locales. A comparison takes a nanosecond a character; the collator, which
/// has all of Unicode to look at, takes thirty.
struct Ascii {
    /// By character; 0: it is passed over.
    primary: [u8; 128],
    /// The same between characters of one primary weight; all 0 where these are equal.
    tertiary: [u8; 128],
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "collation {}", self.name)
    }
}

impl Collation {
    /// Understands a row of `_collation`: type `BINARY`, `HASH` or `ICU`, locale such as `de_AT_u_co_phonebk`, options as an encoded
    /// map. Errors: a text that says what is wrong.
    pub fn from_row(id: u32, name: &str, kind: &str, locale: &str, options: &[u8]) -> Result<Self, String> {
        let kind = match kind {
            "BINARY" => Kind::Bytes,
            "HASH" => Kind::Hash,
            "ICU" => Kind::Icu(Box::new(Icu::parse(locale, options)?)),
            other => return Err(format!("unknown collation type '{other}'")),
        };
        Ok(Collation { id, name: name.to_string(), kind })
    }

    /// That of documents, which has no row.
    pub fn json() -> Self {
        Collation { id: JSON_COLLATION_ID, name: JSON_COLLATION_NAME.to_string(), kind: Kind::Json }
    }

    /// Number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if strings compare as bytes.
    pub fn is_binary(&self) -> bool {
        matches!(self.kind, Kind::Bytes)
    }

    /// True if strings compare by their hashes first.
    pub(crate) fn is_hash(&self) -> bool {
        matches!(self.kind, Kind::Hash)
    }

    /// Order of two strings. Bytes that are not UTF-8 compare as replacement characters.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if let Kind::Icu(icu) = &self.kind
            && let Some(ascii) = icu.ascii()
            && let Some(ordering) = ascii.compare(a, b)
        {
            return ordering;
        }
        if matches!(self.kind, Kind::Json) {
            return if a == b { Ordering::Equal } else { self.key_of(a).cmp(&self.key_of(b)) };
        }
        match self.collator() {
            Some(collator) => compare(collator, a, b),
            None if self.is_hash() && a == b => Ordering::Equal,
            None if self.is_hash() => crate::key::hash_bytes(a).cmp(&crate::key::hash_bytes(b)).then_with(|| a.cmp(b)),
            None => a.cmp(b),
        }
    }

    /// The beginning of a text as a number: where the numbers of two texts differ, the texts stand as these do. None: the collation or the text has
    /// none.
    pub fn head(&self, text: &[u8]) -> Option<u64> {
        match &self.kind {
            Kind::Bytes => {
                let mut head = [0; 8];
                let length = text.len().min(8);
                head[..length].copy_from_slice(&text[..length]);
                Some(u64::from_be_bytes(head))
            }
            Kind::Hash | Kind::Json => None,
            Kind::Icu(icu) => icu.ascii()?.head(text),
        }
    }

    /// Appends bytes that are the same for all texts of ASCII, or all documents, that compare as equal. False: the text is not ASCII, or the collation cannot say.
    pub fn fold(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        match &self.kind {
            Kind::Json => {
                crate::json_order::write_key(text, out);
                true
            }
            Kind::Icu(icu) => icu.ascii().is_some_and(|ascii| ascii.fold(text, out)),
            _ => false,
        }
    }

    /// A hash that is equal for strings that compare as equal.
    pub fn hash(&self, text: &[u8]) -> u64 {
        match self.collator() {
            Some(collator) => {
                let mut key = Vec::new();
                let Ok(()) = collator.write_sort_key_utf8_to(&stream_safe(text), &mut key);
                crate::key::hash_bytes(&key)
            }
            None if matches!(self.kind, Kind::Json) => crate::key::hash_bytes(&self.key_of(text)),
            None => crate::key::hash_bytes(text),
        }
    }

    fn key_of(&self, text: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(text.len() + 16);
        self.sort_key(text, &mut key);
        key
    }

    /// Appends bytes that order as the strings do.
    pub(crate) fn sort_key(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.collator() {
            Some(collator) => {
                let Ok(()) = collator.write_sort_key_utf8_to(&stream_safe(text), out);
            }
            None if matches!(self.kind, Kind::Json) => crate::json_order::write_key(text, out),
            None => {
                if self.is_hash() {
                    out.extend_from_slice(&crate::key::hash_bytes(text).to_be_bytes());
                }
                out.extend_from_slice(text);
            }
        }
    }

    fn collator(&self) -> Option<&CollatorBorrowed<'static>> {
        match &self.kind {
            Kind::Icu(icu) => icu.collator(),
            _ => None,
        }
    }
}

/// A beginning that two texts share is looked at again by the collator, which takes time by its square in many scripts. Longer ones with
/// characters of these scripts are compared by their sort keys.
const SHARED_MAX: usize = 256;
/// The first byte of the first character that combines, U+0300.
const FIRST_COMBINING_BYTE: u8 = 0xcc;

fn compare(collator: &CollatorBorrowed<'static>, a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (safe_a, safe_b) = (stream_safe(a), stream_safe(b));
    if a.len().min(b.len()) > SHARED_MAX {
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        if shared > SHARED_MAX && a[..shared].iter().any(|byte| *byte >= FIRST_COMBINING_BYTE) {
            let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
            let Ok(()) = collator.write_sort_key_utf8_to(&safe_a, &mut key_a);
            let Ok(()) = collator.write_sort_key_utf8_to(&safe_b, &mut key_b);
            return key_a.cmp(&key_b);
        }
    }
    collator.compare_utf8(&safe_a, &safe_b)
}

impl Ascii {
    /// Asks the collator for the weights.
    fn of(collator: &CollatorBorrowed<'static>, strength: Strength) -> Option<Box<Self>> {
        let mut options = CollatorOptions::default();
        options.strength = Some(Strength::Primary);
        let primaries = Collator::try_new(CollatorPreferences::default(), options).ok()?;
        let key = |collator: &CollatorBorrowed<'static>, character: u8| {
            let mut key = Vec::new();
            let Ok(()) = collator.write_sort_key_utf8_to(&[character], &mut key);
            key
        };
        let ignored = {
            let mut key = Vec::new();
            let Ok(()) = primaries.write_sort_key_utf8_to(b"", &mut key);
            key
        };
        // Two characters with one primary weight take neighbouring numbers otherwise.
        let numbered = |collator: &CollatorBorrowed<'static>| {
            let keys: Vec<Vec<u8>> = (0..128).map(|character| key(collator, character)).collect();
            let mut sorted: Vec<&Vec<u8>> = keys.iter().collect();
            sorted.sort();
            sorted.dedup();
            let number = |key: &Vec<u8>| sorted.binary_search(&key).map_or(0, |at| at as u8 + 1);
            let mut weights = [0; 128];
            weights.iter_mut().zip(&keys).for_each(|(weight, key)| *weight = number(key));
            weights
        };
        let mut made = Ascii { primary: numbered(&primaries), tertiary: [0; 128] };
        for character in 0..128 {
            if key(&primaries, character) == ignored {
                made.primary[character as usize] = 0;
            }
        }
        if strength == Strength::Tertiary {
            made.tertiary = numbered(collator);
        }
        Some(Box::new(made))
    }

    /// The first eight weights; 0 behind the end. None: as [`Ascii::compare`].
    fn head(&self, text: &[u8]) -> Option<u64> {
        let (mut head, mut count) = (0u64, 0);
        for character in text {
            let weight = *self.primary.get(usize::from(*character))?;
            // The character behind the last one stands alone, too.
            if count == 8 {
                break;
            }
            if weight > 0 {
                head = head << 8 | u64::from(weight);
                count += 1;
            }
        }
        Some(if count == 0 { 0 } else { head << (8 * (8 - count)) })
    }

    fn fold(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        if !text.is_ascii() {
            return false;
        }
        let start = out.len();
        out.resize(start + text.len(), 0);
        let mut count = 0;
        for character in text {
            // Without a branch: one of weight 0 is written over.
            let weight = self.primary[usize::from(*character & 0x7f)];
            out[start + count] = weight;
            count += usize::from(weight > 0);
        }
        out.truncate(start + count);
        true
    }

    /// None: what has to be looked at is not ASCII. A difference before that counts, if the characters it is found at stand alone: what follows
    /// them could make others of them.
    fn compare(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        /// At the end of a text.
        const END: usize = 128;
        let next = |text: &[u8], at: &mut usize| loop {
            let Some(character) = text.get(*at).copied() else { return Some(END) };
            *at += 1;
            match self.primary.get(usize::from(character)) {
                None => return None,
                Some(0) => {}
                Some(_) => return Some(usize::from(character)),
            }
        };
        let stands_alone = |text: &[u8], at: usize| text.get(at).is_none_or(u8::is_ascii);
        let (mut at_a, mut at_b) = (0, 0);
        let mut tertiary = Ordering::Equal;
        loop {
            let (in_a, in_b) = (next(a, &mut at_a)?, next(b, &mut at_b)?);
            let primary = match (in_a, in_b) {
                (END, END) => return Some(tertiary),
                (END, _) => Ordering::Less,
                (_, END) => Ordering::Greater,
                _ => self.primary[in_a].cmp(&self.primary[in_b]),
            };
            if primary != Ordering::Equal {
                return (stands_alone(a, at_a) && stands_alone(b, at_b)).then_some(primary);
            }
            if tertiary == Ordering::Equal {
                tertiary = self.tertiary[in_a].cmp(&self.tertiary[in_b]);
            }
        }
    }
}

/// Characters that combine with the one before them, in a row, which any text has at most: UAX 15, section 13.
const COMBINING_MAX: usize = 30;

/// A text as collators see it. They take time by the square of how many characters combine with the one before, so a joiner, which no
/// collation looks at, parts them (the Stream-Safe Text Process of UAX 15). No text that somebody would write has so many.
fn stream_safe(text: &[u8]) -> Cow<'_, [u8]> {
    const JOINER: &str = "\u{34f}";
    // Such characters have two bytes or more.
    if text.len() <= 2 * COMBINING_MAX || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let classes = CanonicalCombiningClassMapBorrowed::new();
    // Three vowels are made of combining characters alone, and are none themselves.
    let combines =
        |c: char| c >= '\u{300}' && (classes.get_u8(c) != 0 || matches!(c, '\u{f73}' | '\u{f75}' | '\u{f81}'));
    let mut safe = Vec::new();
    let (mut copied, mut at, mut count) = (0, 0, 0);
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            count = if combines(c) { count + 1 } else { 0 };
            if count > COMBINING_MAX {
                safe.extend_from_slice(&text[copied..at]);
                safe.extend_from_slice(JOINER.as_bytes());
                (copied, count) = (at, 1);
            }
            at += c.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            at += chunk.invalid().len();
            count = 0;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.extend_from_slice(&text[copied..]);
    Cow::Owned(safe)
}

impl Icu {
    fn collator(&self) -> Option<&CollatorBorrowed<'static>> {
        self.collator
            .get_or_init(|| {
                let mut options = CollatorOptions::default();
                options.strength = Some(self.strength);
                if self.is_shifted {
                    options.alternate_handling = Some(AlternateHandling::Shifted);
                }
                if self.has_case_level {
                    options.case_level = Some(CaseLevel::On);
                }
                Collator::try_new(CollatorPreferences::from(&self.locale), options).ok()
            })
            .as_ref()
    }

    fn ascii(&self) -> Option<&Ascii> {
        let made = self.ascii.get_or_init(|| {
            let is_plain = self.locale == Locale::UNKNOWN && !self.is_shifted && !self.has_case_level;
            let has_three_levels =
                matches!(self.strength, Strength::Primary | Strength::Secondary | Strength::Tertiary);
            match is_plain && has_three_levels {
                true => self.collator().and_then(|collator| Ascii::of(collator, self.strength)),
                false => None,
            }
        });
        made.as_deref()
    }

    fn parse(locale: &str, options: &[u8]) -> Result<Self, String> {
        let tag = locale.replace('_', "-");
        let locale = if tag.is_empty() {
            Locale::UNKNOWN
        } else {
            Locale::try_from_str(&tag).map_err(|_| format!("unknown locale '{locale}'"))?
        };
        let mut icu = Icu {
            locale,
            strength: Strength::Tertiary,
            is_shifted: false,
            has_case_level: false,
            collator: OnceLock::new(),
            ascii: OnceLock::new(),
        };
        let mut reader = Reader::new(options);
        let count = reader.read_map().unwrap_or(0);
        for _ in 0..count {
            let malformed = |_| "malformed options".to_string();
            let key = reader.read_str().map_err(malformed)?;
            let value = reader.read_value().map_err(malformed)?;
            let text = Reader::new(value).read_str().unwrap_or(b"").to_ascii_lowercase();
            let name = String::from_utf8_lossy(key);
            let Some((_, known)) = OPTIONS.iter().find(|(option, _)| *option == name) else {
                return Err(format!("unexpected option '{name}'"));
            };
            if !known.iter().any(|one| one.as_bytes() == text) {
                let expected: Vec<String> = known.iter().map(|one| one.to_ascii_uppercase()).collect();
                return Err(format!("ICU wrong {name} option setting, expected {}", expected.join(" | ")));
            }
            match (key, text.as_slice()) {
                (b"strength", b"primary") => icu.strength = Strength::Primary,
                (b"strength", b"secondary") => icu.strength = Strength::Secondary,
                (b"strength", b"tertiary") => icu.strength = Strength::Tertiary,
                (b"strength", b"quaternary") => icu.strength = Strength::Quaternary,
                (b"strength", b"identical") => icu.strength = Strength::Identical,
                (b"alternate_handling", b"shifted") => icu.is_shifted = true,
                (b"case_level", b"on") => icu.has_case_level = true,
                _ => {}
            }
        }
        Ok(icu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msgpack::{encode_map, encode_str};

    fn collation(strength: &str) -> Collation {
        let mut options = Vec::new();
        encode_map(&mut options, 1);
        encode_str(&mut options, b"strength");
        encode_str(&mut options, strength.as_bytes());
        Collation::from_row(1, "test", "ICU", "", &options).expect("a good row")
    }

    #[test]
    fn unicode_ci_ignores_case_and_unicode_does_not() {
        let ci = collation("primary");
        assert_eq!(ci.compare("ёлка".as_bytes(), "ЁЛКА".as_bytes()), Ordering::Equal);
        assert_eq!(ci.hash("ёлка".as_bytes()), ci.hash("ЁЛКА".as_bytes()));
        let full = collation("tertiary");
        assert_eq!(full.compare(b"a", b"A"), Ordering::Less);
        assert_eq!(full.compare(b"A", b"b"), Ordering::Less);
    }

    proptest::proptest! {
        /// Long beginnings in common are compared another way.
        #[test]
        fn texts_compare_as_their_sort_keys_do(
            shared in "[a-zé\u{301}\u{327}क\u{94d}й]{0,300}",
            a in "[a-cA-Cé\u{301}\u{34f}]{0,8}",
            b in "[a-cA-Cé\u{301}\u{34f}]{0,8}",
        ) {
            for strength in ["primary", "tertiary"] {
                let collation = collation(strength);
                let (a, b) = (format!("{shared}{a}"), format!("{shared}{b}"));
                let keys = [&a, &b].map(|text| {
                    let mut key = Vec::new();
                    collation.sort_key(text.as_bytes(), &mut key);
                    key
                });
                proptest::prop_assert_eq!(collation.compare(a.as_bytes(), b.as_bytes()), keys[0].cmp(&keys[1]));
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn ascii_compares_as_the_collator_says(a in "[\\x00-\\x7fé\u{301}·ß]{0,12}", b in "[\\x00-\\x7fé\u{301}·ß]{0,12}", same in "[ -~]{0,4}") {
            for strength in ["primary", "secondary", "tertiary"] {
                let collation = collation(strength);
                let collator = collation.collator().expect("there is one");
                for (a, b) in [(a.clone(), b.clone()), (format!("{same}{a}"), format!("{}{b}", same.to_uppercase()))] {
                    let by_collator = compare(collator, a.as_bytes(), b.as_bytes());
                    proptest::prop_assert_eq!(collation.compare(a.as_bytes(), b.as_bytes()), by_collator, "{:?} {:?}", a, b);
                    if let (Some(head_a), Some(head_b)) = (collation.head(a.as_bytes()), collation.head(b.as_bytes()))
                        && head_a != head_b
                    {
                        proptest::prop_assert_eq!(head_a.cmp(&head_b), by_collator, "{:?} {:?}", a, b);
                    }
                    let (mut folded_a, mut folded_b) = (Vec::new(), Vec::new());
                    if collation.fold(a.as_bytes(), &mut folded_a) && collation.fold(b.as_bytes(), &mut folded_b) {
                        proptest::prop_assert!(by_collator != Ordering::Equal || folded_a == folded_b, "{:?} {:?}", a, b);
                    }
                }
            }
        }
    }

    #[test]
    fn characters_without_end_that_combine_are_parted_and_others_are_left() {
        let marks = "\u{301}\u{327}".repeat(COMBINING_MAX / 2);
        let few = format!("a{marks}b\u{301}c");
        assert!(matches!(stream_safe(few.as_bytes()), Cow::Borrowed(_)));
        let many = format!("a{}", marks.repeat(1000));
        let safe = stream_safe(many.as_bytes());
        assert_eq!(safe.len(), many.len() + 999 * 2);
        assert_eq!(std::str::from_utf8(&safe).map(|text| text.replace('\u{34f}', "")), Ok(many.clone()));
        // Where the joiner stands does not depend on the rest, so equal texts stay equal, and a longer one is greater.
        let full = collation("tertiary");
        let longer = format!("{many}\u{301}");
        assert_eq!(full.compare(many.as_bytes(), many.as_bytes()), Ordering::Equal);
        assert_eq!(full.compare(many.as_bytes(), longer.as_bytes()), Ordering::Less);
        assert_eq!(full.hash(many.as_bytes()), full.hash(many.as_bytes()));
    }
}
