//! Reading rows of system spaces field by field.

use crate::error::{Error, ErrorCode, Result};
use tuple::msgpack::{Kind, Reader};

/// A reader of the fields of one row. Wrong types are reported as Tarantool reports them (`FieldType`).
pub(crate) struct Fields<'a> {
    reader: Reader<'a>,
    count: u32,
    next: u32,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(row: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(row);
        let count = reader.read_array().map_err(|_| Error::new(ErrorCode::TupleNotArray, &[]))?;
        Ok(Fields { reader, count, next: 0 })
    }

    fn wrong(&self, expected: &str) -> Error {
        Error::new(ErrorCode::FieldType, &[&self.next, &expected])
    }

    pub(crate) fn has_more(&self) -> bool {
        self.next < self.count
    }

    fn begin(&mut self) -> Result<()> {
        if !self.has_more() {
            return Err(Error::new(ErrorCode::FieldMissing, &[&(self.next + 1)]));
        }
        self.next += 1;
        Ok(())
    }

    pub(crate) fn uint(&mut self) -> Result<u32> {
        self.begin()?;
        let value = self.reader.read_uint().map_err(|_| self.wrong("unsigned"))?;
        u32::try_from(value).map_err(|_| self.wrong("unsigned"))
    }

    pub(crate) fn int(&mut self) -> Result<i64> {
        self.begin()?;
        let value = self.reader.read_i128().map_err(|_| self.wrong("integer"))?;
        // Tarantool keeps sequence limits as signed 64-bit numbers.
        Ok(value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    pub(crate) fn str(&mut self) -> Result<&'a str> {
        self.begin()?;
        let bytes = self.reader.read_str().map_err(|_| self.wrong("string"))?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong("string"))
    }

    pub(crate) fn bool(&mut self) -> Result<bool> {
        self.begin()?;
        if self.reader.kind().ok() == Some(Kind::Uint) {
            return Ok(self.reader.read_uint().map_err(|_| self.wrong("boolean"))? != 0);
        }
        self.reader.read_bool().map_err(|_| self.wrong("boolean"))
    }

    /// The raw bytes of the next field.
    pub(crate) fn raw(&mut self) -> Result<&'a [u8]> {
        self.begin()?;
        self.reader.read_value().map_err(|_| self.wrong("any"))
    }
}

/// Calls `entry` with every key (a string) and the raw value of an encoded map. An empty array counts as an empty map,
/// since Lua cannot tell them apart.
pub(crate) fn for_each_entry<'a>(
    map: &'a [u8],
    mut entry: impl FnMut(&'a str, &'a [u8]) -> Result<()>,
) -> std::result::Result<(), Option<Error>> {
    let mut reader = Reader::new(map);
    if reader.kind().ok() == Some(Kind::Array) {
        return match reader.read_array() {
            Ok(0) => Ok(()),
            _ => Err(None),
        };
    }
    let count = reader.read_map().map_err(|_| None)?;
    for _ in 0..count {
        let key = match reader.kind() {
            Ok(Kind::Str) => std::str::from_utf8(reader.read_str().map_err(|_| None)?).map_err(|_| None)?,
            Ok(_) => {
                // Keys of other kinds name no option.
                reader.read_value().map_err(|_| None)?;
                reader.read_value().map_err(|_| None)?;
                continue;
            }
            Err(_) => return Err(None),
        };
        let value = reader.read_value().map_err(|_| None)?;
        entry(key, value)?;
    }
    Ok(())
}

pub(crate) fn as_bool(value: &[u8]) -> Option<bool> {
    Reader::new(value).read_bool().ok()
}

pub(crate) fn as_uint(value: &[u8]) -> Option<u64> {
    Reader::new(value).read_uint().ok()
}

pub(crate) fn as_str(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(Reader::new(value).read_str().ok()?).ok()
}
