//! The binary protocol of Tokyo Tyrant: requests.
//!
//! ```text
//! 0xc8   command   numbers (big endian)   keys and values, as long as the numbers say
//! ```

pub(super) const MAGIC: u8 = 0xc8;
/// Bytes of one request.
const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Keys and values of one request.
const PARTS_MAX: u32 = 1 << 20;

/// How a value is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// In the place of the old one.
    Set,
    /// Only where there is none.
    Keep,
    /// Behind the old one.
    Append,
    /// Behind the old one, of which so many bytes are left in all.
    Shift(u32),
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request<'a> {
    Put {
        how: Put,
        key: &'a [u8],
        value: &'a [u8],
        is_quiet: bool,
    },
    Out(&'a [u8]),
    Get(&'a [u8]),
    /// Keys, each behind its length.
    GetMany {
        count: u32,
        keys: &'a [u8],
    },
    Size(&'a [u8]),
    IterInit,
    IterNext,
    Prefix {
        prefix: &'a [u8],
        max: i32,
    },
    AddInt {
        key: &'a [u8],
        number: i32,
    },
    AddDouble {
        key: &'a [u8],
        integral: i64,
        fraction: i64,
    },
    Call {
        name: &'a [u8],
        key: &'a [u8],
        value: &'a [u8],
    },
    Nothing,
    Vanish,
    Count,
    Bytes,
    Stat,
    /// Arguments, each behind its length.
    Misc {
        name: &'a [u8],
        count: u32,
        arguments: &'a [u8],
    },
    /// Understood, and not to be had: why.
    Refused(&'static str),
}

impl Request<'_> {
    /// Its failure code is an answer, too: nothing is there, or something.
    pub(super) fn tells_what_is_there(&self) -> bool {
        match self {
            Request::Get(_) | Request::Out(_) | Request::Size(_) | Request::IterNext => true,
            Request::Put { how, .. } => *how == Put::Keep,
            Request::Misc { name, .. } => [&b"get"[..], b"getpart", b"out", b"putkeep", b"iternext"].contains(name),
            _ => false,
        }
    }
}

/// What the beginning of the input is.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    Whole(Request<'a>, usize),
    /// So many bytes are needed at least.
    Part(u64),
    /// Nothing behind this can be understood.
    Bad(&'static str),
}

/// Reads numbers and parts.
struct Parts<'a> {
    input: &'a [u8],
    at: u64,
}

/// Why reading has ended before the request.
enum Halt {
    Part(u64),
    Bad(&'static str),
}

impl<'a> Parts<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], Halt> {
        let end = self.at.saturating_add(count);
        if end > REQUEST_BYTES_MAX {
            return Err(Halt::Bad("announces a request that is too large"));
        }
        let bytes = self.input.get(self.at as usize..end as usize).ok_or(Halt::Part(end))?;
        self.at = end;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Halt> {
        Ok(self.take(4)?.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    fn u64(&mut self) -> Result<u64, Halt> {
        Ok(self.take(8)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// Parts with their lengths in front of each, as they stand.
    fn list(&mut self, count: u32) -> Result<&'a [u8], Halt> {
        if count > PARTS_MAX {
            return Err(Halt::Bad("announces too many parts of a request"));
        }
        let start = self.at as usize;
        for _ in 0..count {
            let length = self.u32()?;
            self.take(u64::from(length))?;
        }
        Ok(&self.input[start..self.at as usize])
    }
}

/// The parts of a list whose lengths were looked at before.
pub(super) fn parts_of(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = list.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let part = rest.get(..length)?;
        list = &rest[length..];
        Some(part)
    })
}

fn read<'a>(parts: &mut Parts<'a>) -> Result<Request<'a>, Halt> {
    let header = parts.take(2)?;
    let put = |parts: &mut Parts<'a>, how: Option<Put>, is_quiet| {
        let (key, value) = (parts.u32()?, parts.u32()?);
        let how = match how {
            Some(how) => how,
            None => Put::Shift(parts.u32()?),
        };
        let (key, value) = (parts.take(key.into())?, parts.take(value.into())?);
        Ok(Request::Put { how, key, value, is_quiet })
    };
    let key = |parts: &mut Parts<'a>| {
        let length = parts.u32()?;
        parts.take(length.into())
    };
    match header[1] {
        0x10 => put(parts, Some(Put::Set), false),
        0x11 => put(parts, Some(Put::Keep), false),
        0x12 => put(parts, Some(Put::Append), false),
        0x13 => put(parts, None, false),
        0x18 => put(parts, Some(Put::Set), true),
        0x20 => key(parts).map(Request::Out),
        0x30 => key(parts).map(Request::Get),
        0x31 => {
            let count = parts.u32()?;
            Ok(Request::GetMany { count, keys: parts.list(count)? })
        }
        0x38 => key(parts).map(Request::Size),
        0x50 => Ok(Request::IterInit),
        0x51 => Ok(Request::IterNext),
        0x58 => {
            let (length, max) = (parts.u32()?, parts.u32()?);
            Ok(Request::Prefix { prefix: parts.take(length.into())?, max: max as i32 })
        }
        0x60 => {
            let (length, number) = (parts.u32()?, parts.u32()?);
            Ok(Request::AddInt { key: parts.take(length.into())?, number: number as i32 })
        }
        0x61 => {
            let (length, integral, fraction) = (parts.u32()?, parts.u64()?, parts.u64()?);
            let key = parts.take(length.into())?;
            Ok(Request::AddDouble { key, integral: integral as i64, fraction: fraction as i64 })
        }
        0x68 => {
            let (name, _, key, value) = (parts.u32()?, parts.u32()?, parts.u32()?, parts.u32()?);
            let (name, key) = (parts.take(name.into())?, parts.take(key.into())?);
            Ok(Request::Call { name, key, value: parts.take(value.into())? })
        }
        0x70 => Ok(Request::Nothing),
        0x71 => key(parts).map(|_| Request::Nothing),
        0x72 => Ok(Request::Vanish),
        0x73 => key(parts).map(|_| Request::Refused("copy: `lycosa backup` copies a running server")),
        0x74 => {
            let length = parts.u32()?;
            parts.take(12)?;
            parts.take(length.into())?;
            Ok(Request::Refused("restore: update logs are not read"))
        }
        0x78 => {
            let length = parts.u32()?;
            parts.take(16)?;
            parts.take(length.into())?;
            Ok(Request::Refused("setmst: nothing is replicated by this protocol"))
        }
        0x80 => Ok(Request::Count),
        0x81 => Ok(Request::Bytes),
        0x88 => Ok(Request::Stat),
        0x90 => {
            let (name, _, count) = (parts.u32()?, parts.u32()?, parts.u32()?);
            let name = parts.take(name.into())?;
            Ok(Request::Misc { name, count, arguments: parts.list(count)? })
        }
        0xa0 => Err(Halt::Bad("asks for the update log, which is not to be had by this protocol")),
        _ => Err(Halt::Bad("sends a command that there is not")),
    }
}

/// Finds the first request of the input, which begins with [`MAGIC`].
#[inline]
pub(super) fn split(input: &[u8]) -> Found<'_> {
    let mut parts = Parts { input, at: 0 };
    match read(&mut parts) {
        Ok(request) => Found::Whole(request, parts.at as usize),
        Err(Halt::Part(needed)) => Found::Part(needed),
        Err(Halt::Bad(why)) => Found::Bad(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_where_their_numbers_say() {
        let put = [&[0xc8, 0x10, 0, 0, 0, 1, 0, 0, 0, 2][..], b"kvv"].concat();
        let whole = Request::Put { how: Put::Set, key: b"k", value: b"vv", is_quiet: false };
        assert_eq!(split(&[&put[..], b"rest"].concat()), Found::Whole(whole, put.len()));
        for cut in 1..put.len() {
            assert!(matches!(split(&put[..cut]), Found::Part(needed) if needed as usize > cut));
        }
        let huge = [0xc8, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(split(&huge), Found::Bad(_)));
        let long = [0xc8, 0x30, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(split(&long), Found::Bad(_)));
        let misc =
            [&[0xc8, 0x90, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2][..], b"get", &[0, 0, 0, 1], b"a", &[0; 4]].concat();
        let Found::Whole(Request::Misc { name, count, arguments }, _) = split(&misc) else { panic!("it is whole") };
        assert_eq!((name, count), (&b"get"[..], 2));
        assert_eq!(parts_of(arguments).collect::<Vec<_>>(), [&b"a"[..], b""]);
    }
}
