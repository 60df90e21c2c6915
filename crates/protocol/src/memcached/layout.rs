//! Which fields of a space are what of an item, and items as rows.

use database::{Error, Result, Space};
use std::rc::Rc;
use tuple::FieldType;
use tuple::msgpack::{self, Kind, Reader};

/// What an item has, and where it stands in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) key: u32,
    pub(super) value: u32,
    pub(super) flags: Option<u32>,
    pub(super) cas: Option<u32>,
    pub(super) expires: Option<u32>,
    pub(super) state: Option<u32>,
    /// Rows have exactly the fields of the door's own spaces.
    pub(super) is_own: bool,
}

/// Names of the fields of a listener's space. None: the rows have nothing of the kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) flags: Option<String>,
    pub(super) cas: Option<String>,
    pub(super) expires: Option<String>,
    pub(super) state: Option<String>,
}

/// A new value is worked at by somebody, or the value there is out of date. Bits of [`Item::state`].
pub(super) const STALE: u8 = 1;
/// Somebody was told to make a new value.
pub(super) const TOKEN_SENT: u8 = 2;
/// The key is shown as base64: it was set that way.
pub(super) const BINARY_KEY: u8 = 4;

/// What is kept under a key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Item<'a> {
    pub(super) value: &'a [u8],
    pub(super) flags: u32,
    /// Another one behind each write.
    pub(super) cas: u64,
    /// Seconds since 1970 from which on it is not there; 0: never.
    pub(super) expires: u64,
    /// [`STALE`], [`TOKEN_SENT`], [`BINARY_KEY`].
    pub(super) state: u8,
}

impl Layout {
    /// Looks the fields up. Errors: the space has no such field, or not the type or the index that is needed.
    pub(super) fn of(space: &Rc<Space>, names: &Names) -> Result<Self> {
        let format = space.format();
        let wrong =
            |what: String| Error::illegal(format_args!("space '{}' cannot be behind memcached: {what}", space.name()));
        let find = |name: &str| format.field_no(name).ok_or_else(|| wrong(format!("it has no field '{name}'")));
        let check =
            |name: &str, no: u32, fits: fn(FieldType) -> bool, wanted: &str| match fits(format.type_of(no as usize)) {
                true => Ok(no),
                false => Err(wrong(format!("field '{name}' is not of type {wanted}"))),
            };
        let is_text = |kind| matches!(kind, FieldType::String | FieldType::Scalar | FieldType::Any);
        let is_number = |kind| {
            matches!(
                kind,
                FieldType::Unsigned | FieldType::Integer | FieldType::Number | FieldType::Scalar | FieldType::Any
            )
        };
        let number = |name: &Option<String>| match name {
            Some(name) => check(name, find(name)?, is_number, "unsigned").map(Some),
            None => Ok(None),
        };
        let key = check(&names.key, find(&names.key)?, |kind| kind == FieldType::String, "string")?;
        let primary = space.indexes().first().cloned().ok_or_else(|| wrong("it has no index".to_string()))?;
        if primary.parts.len() != 1 || primary.parts[0].field_no != key {
            return Err(wrong(format!("its primary key is not field '{}' alone", names.key)));
        }
        if primary.parts[0].collation.is_some() {
            return Err(wrong(format!("its primary key compares field '{}' by a collation", names.key)));
        }
        let value = check(&names.value, find(&names.value)?, is_text, "string")?;
        let layout = Layout {
            key,
            value,
            flags: number(&names.flags)?,
            cas: number(&names.cas)?,
            expires: number(&names.expires)?,
            state: number(&names.state)?,
            is_own: false,
        };
        let places = [Some(key), Some(value), layout.flags, layout.cas, layout.expires, layout.state];
        let places: Vec<u32> = places.into_iter().flatten().collect();
        if (1..places.len()).any(|at| places[..at].contains(&places[at])) {
            return Err(wrong("one field is named twice".to_string()));
        }
        let is_own = places == [0, 1, 2, 3, 4, 5] && format.fields().len() == 6;
        Ok(Layout { is_own, ..layout })
    }

    /// The item in a row. `wants_cas`: where rows have none, it is computed. Errors: its value is no string.
    #[inline]
    pub(super) fn read<'a>(&self, row: &'a [u8], wants_cas: bool) -> Result<Item<'a>> {
        let item = self.try_read(row);
        let mut item =
            item.ok_or_else(|| Error::illegal("the row under this key is no item: its value is no string"))?;
        if wants_cas && item.cas == 0 {
            item.cas = fingerprint(row);
        }
        Ok(item)
    }

    /// The key in a row.
    pub(super) fn read_key<'a>(&self, row: &'a [u8]) -> Option<&'a [u8]> {
        let mut reader = Reader::new(row);
        reader.read_array().ok()?;
        for _ in 0..self.key {
            reader.read_value().ok()?;
        }
        reader.read_str().ok()
    }

    #[inline]
    fn try_read<'a>(&self, row: &'a [u8]) -> Option<Item<'a>> {
        if self.is_own { read_own(row) } else { self.read_foreign(row) }
    }

    fn read_foreign<'a>(&self, row: &'a [u8]) -> Option<Item<'a>> {
        let mut reader = Reader::new(row);
        let count = reader.read_array().ok()?;
        let (mut item, mut has_value) = (Item::default(), false);
        for at in 0..count {
            if at == self.value {
                item.value = reader.read_str_or_bin().ok()?;
                has_value = true;
            } else if at == self.key || reader.kind().ok()? != Kind::Uint {
                reader.read_value().ok()?;
            } else {
                let number = reader.read_uint().ok()?;
                let place = Some(at);
                if place == self.cas {
                    item.cas = number;
                } else if place == self.flags {
                    item.flags = number as u32;
                } else if place == self.expires {
                    item.expires = number;
                } else if place == self.state {
                    item.state = number as u8;
                }
            }
        }
        has_value.then_some(item)
    }

    /// Appends the row of an item: `old` is the row in whose place it comes, whose other fields it keeps.
    pub(super) fn encode(&self, out: &mut Vec<u8>, key: &[u8], item: &Item<'_>, old: Option<&[u8]>) {
        if self.is_own {
            let (has_expires, has_state) = (item.expires != 0, item.state != 0);
            msgpack::encode_array(out, if has_state { 6 } else { 4 + u32::from(has_expires) });
            msgpack::encode_str(out, key);
            msgpack::encode_str(out, item.value);
            msgpack::encode_uint(out, u64::from(item.flags));
            msgpack::encode_uint(out, item.cas);
            if has_expires {
                msgpack::encode_uint(out, item.expires);
            } else if has_state {
                msgpack::encode_nil(out);
            }
            if has_state {
                msgpack::encode_uint(out, u64::from(item.state));
            }
            return;
        }
        let mut reader = Reader::new(old.unwrap_or(&[0x90]));
        let old_count = reader.read_array().unwrap_or(0);
        let places = [Some(self.key), Some(self.value), self.flags, self.cas, self.expires, self.state];
        let needed = places.into_iter().flatten().max().unwrap_or(0) + 1;
        let count = needed.max(old_count);
        msgpack::encode_array(out, count);
        for at in 0..count {
            let kept = if at < old_count { reader.read_value().ok() } else { None };
            let place = Some(at);
            if at == self.key {
                msgpack::encode_str(out, key);
            } else if at == self.value {
                msgpack::encode_str(out, item.value);
            } else if place == self.flags {
                msgpack::encode_uint(out, u64::from(item.flags));
            } else if place == self.cas {
                msgpack::encode_uint(out, item.cas);
            } else if place == self.expires {
                match item.expires {
                    0 => msgpack::encode_nil(out),
                    moment => msgpack::encode_uint(out, moment),
                }
            } else if place == self.state {
                msgpack::encode_uint(out, u64::from(item.state));
            } else {
                match kept {
                    Some(value) => out.extend_from_slice(value),
                    None => msgpack::encode_nil(out),
                }
            }
        }
    }
}

/// The bytes of a string in a usual form, and what is behind it. None: it is none, or of another form.
#[inline]
fn take_str(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match bytes {
        [head @ 0xa0..=0xbf, rest @ ..] => (usize::from(head & 0x1f), rest),
        [0xd9, length, rest @ ..] => (usize::from(*length), rest),
        [0xda, high, low, rest @ ..] => (usize::from(*high) << 8 | usize::from(*low), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// The same of a number, or of nil for 0.
#[inline]
fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [small @ 0..=0x7f, rest @ ..] => Some((u64::from(*small), rest)),
        [0xc0, rest @ ..] => Some((0, rest)),
        [0xcc, byte, rest @ ..] => Some((u64::from(*byte), rest)),
        [0xcd, rest @ ..] => {
            rest.split_first_chunk().map(|(number, rest)| (u64::from(u16::from_be_bytes(*number)), rest))
        }
        [0xce, rest @ ..] => {
            rest.split_first_chunk().map(|(number, rest)| (u64::from(u32::from_be_bytes(*number)), rest))
        }
        [0xcf, rest @ ..] => rest.split_first_chunk().map(|(number, rest)| (u64::from_be_bytes(*number), rest)),
        _ => None,
    }
}

/// The item in a row that this door has written: in the shortest forms. None: it is another one.
#[inline]
fn read_usual(row: &[u8]) -> Option<Item<'_>> {
    let (head, rest) = row.split_first()?;
    let (_, rest) = take_str(rest)?;
    let (value, rest) = take_str(rest)?;
    let (flags, rest) = take_number(rest)?;
    let (cas, rest) = take_number(rest)?;
    let mut item = Item { value, flags: flags as u32, cas, ..Item::default() };
    match head {
        0x94 => {}
        0x95 => item.expires = take_number(rest)?.0,
        0x96 => {
            let (expires, rest) = take_number(rest)?;
            item.expires = expires;
            item.state = take_number(rest)?.0 as u8;
        }
        _ => return None,
    }
    Some(item)
}

/// The item in a row of the door's own spaces.
#[inline]
fn read_own(row: &[u8]) -> Option<Item<'_>> {
    match read_usual(row) {
        Some(item) => Some(item),
        None => read_any(row),
    }
}

/// The same of any row, whoever has written it.
#[cold]
fn read_any(row: &[u8]) -> Option<Item<'_>> {
    let mut reader = Reader::new(row);
    let count = reader.read_array().ok()?;
    reader.read_str().ok()?;
    let mut item = Item { value: reader.read_str().ok()?, ..Item::default() };
    let mut number = |at: u32| -> Option<u64> {
        if at >= count {
            return Some(0);
        }
        match reader.kind().ok()? {
            Kind::Uint => reader.read_uint().ok(),
            _ => reader.read_value().ok().map(|_| 0),
        }
    };
    item.flags = number(2)? as u32;
    item.cas = number(3)?;
    item.expires = number(4)?;
    item.state = number(5)? as u8;
    Some(item)
}

/// Stands for the cas of a row that has none: another one, almost surely, whenever the row is another one. Never 0.
fn fingerprint(row: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    // 53 bits, which every client can hold.
    (row.iter().fold(0xcbf2_9ce4_8422_2325, step) >> 11).max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_read_at_once_is_what_is_read_step_by_step(
            key in proptest::collection::vec(any::<u8>(), 0..300),
            value in proptest::collection::vec(any::<u8>(), 0..70_000),
            flags: u32, cas: u64, expires in prop_oneof![Just(0), any::<u64>()], state in 0u8..8, cut in 0usize..400,
        ) {
            let layout = Layout { is_own: true, ..Layout::default() };
            let item = Item { value: &value, flags, cas, expires, state };
            let mut row = Vec::new();
            layout.encode(&mut row, &key, &item, None);
            prop_assert_eq!(read_own(&row), Some(item));
            prop_assert_eq!(read_any(&row), Some(item));
            if let Some(usual) = read_usual(&row) {
                prop_assert_eq!(usual, item);
            }
            // Of a row with fewer fields both say the same, or the short way says nothing.
            let short = &row[..row.len().saturating_sub(cut)];
            if let Some(usual) = read_usual(short) {
                prop_assert_eq!(Some(usual), read_any(short));
            }
        }
    }
}
