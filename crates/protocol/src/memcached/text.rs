//! The text protocol: lines as requests.

use super::binary::Packet;
use super::numbers::{read_i32, read_u32, read_u64};
use super::store::Verb;

/// Longest key.
pub(super) const KEY_BYTES_MAX: usize = 250;
/// Longest line but one of `get`.
pub(crate) const LINE_BYTES_MAX: usize = 2048;
/// Longest line of `get`, with all its keys.
pub(super) const KEYS_LINE_BYTES_MAX: usize = 1 << 20;
/// Words that are looked at in a line; what is behind them belongs to the last one.
pub(super) const WORDS_MAX: usize = 24;

pub(super) const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
pub(super) const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// A request, and the bytes that it stands in.
pub struct Decoded<'a> {
    pub(super) raw: &'a [u8],
    pub(super) request: Request<'a>,
}

/// What a client wants.
pub(crate) enum Request<'a> {
    /// `get` of one key.
    GetOne(&'a [u8]),
    /// `get` and its like: the keys, with spaces between them.
    Get {
        keys: &'a [u8],
        has_cas: bool,
        exptime: Option<i32>,
    },
    /// `set` and its like.
    Store(Store<'a>),
    Delete {
        key: &'a [u8],
        is_quiet: bool,
    },
    Arithmetic {
        key: &'a [u8],
        delta: u64,
        is_incr: bool,
        is_quiet: bool,
    },
    Touch {
        key: &'a [u8],
        exptime: i32,
        is_quiet: bool,
    },
    /// A meta command: its line, and the value of `ms`.
    Meta {
        line: &'a [u8],
        value: &'a [u8],
    },
    Packet(Packet<'a>),
    FlushAll {
        exptime: i32,
        is_quiet: bool,
    },
    /// `stats` with these words.
    Stats {
        words: &'a [u8],
    },
    /// A command of those who look after a server: its line.
    Admin {
        line: &'a [u8],
    },
    Quit,
    /// A line that is the answer. Empty: there is none.
    Say(&'static str),
    /// A value larger than may be kept: this is the answer, the key loses what it has, and so many bytes are passed over.
    Oversized {
        key: &'a [u8],
        answer: &'static str,
        skipped: u64,
        is_binary: Option<(u8, u32)>,
    },
    /// Bytes of a value that is passed over.
    Skip(u64),
    /// `set` as a login: user and password.
    Login(&'a [u8]),
    /// It speaks another protocol, or has gone astray: the connection is closed without an answer.
    Leave(&'static str),
}

impl<'a> Request<'a> {
    /// The keys that are looked for, with spaces between them. A hint.
    #[inline]
    pub(super) fn keys(&self) -> &'a [u8] {
        match self {
            Request::GetOne(key)
            | Request::Delete { key, .. }
            | Request::Arithmetic { key, .. }
            | Request::Touch { key, .. } => key,
            Request::Get { keys, .. } => keys,
            Request::Store(store) => store.key,
            Request::Packet(packet) => packet.key,
            Request::Meta { line, .. } => {
                line.get(3..).and_then(|rest| rest.split(|byte| *byte == b' ').next()).unwrap_or(&[])
            }
            _ => &[],
        }
    }
}

/// `set` and its like.
pub(crate) struct Store<'a> {
    pub(crate) verb: Verb,
    pub(crate) key: &'a [u8],
    pub(crate) flags: u32,
    pub(crate) exptime: i32,
    pub(crate) value: &'a [u8],
    pub(crate) cas: u64,
    pub(crate) is_quiet: bool,
}

/// What the beginning of the input is.
pub(crate) enum Found<'a> {
    /// A request, and the bytes it takes.
    Whole(Request<'a>, usize),
    /// The same, and what follows cannot be told before it was served.
    Last(Request<'a>, usize),
    /// So many bytes are needed in all, as far as that is known.
    Part(u64),
}

/// The words of a line.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    list: [&'a [u8]; WORDS_MAX],
    pub(super) count: usize,
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a [u8]) -> Self {
        let mut words = Words { list: [&[]; WORDS_MAX], count: 0 };
        let mut at = 0;
        while at < line.len() && words.count < WORDS_MAX {
            if line[at] == b' ' {
                at += 1;
                continue;
            }
            let end = line[at..].iter().position(|byte| *byte == b' ').map_or(line.len(), |length| at + length);
            words.list[words.count] = &line[at..end];
            words.count += 1;
            at = end;
        }
        words
    }

    pub(super) fn get(&self, at: usize) -> &'a [u8] {
        if at < self.count { self.list[at] } else { &[] }
    }

    pub(super) fn all(&self) -> &[&'a [u8]] {
        &self.list[..self.count]
    }

    fn is_quiet(&self) -> bool {
        self.count > 0 && self.list[self.count - 1] == b"noreply"
    }
}

/// Where the first line ends, and whether there is a zero byte before. Eight bytes at a time: requests are short, and every byte of them passes here.
#[inline]
fn line_end(input: &[u8]) -> Option<(usize, bool)> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The lowest bit that is set is that of the first byte that is zero.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut has_zero = false;
    let mut at = 0;
    while let Some(chunk) = input[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let (ends, nothings) = (zeros(word ^ (ONES * u64::from(b'\n'))), zeros(word));
        if ends != 0 {
            let end = ends.trailing_zeros();
            return Some((at + end as usize / 8, has_zero || nothings != 0 && nothings.trailing_zeros() < end));
        }
        has_zero |= nothings != 0;
        at += 8;
    }
    let rest = input[at..].iter().position(|byte| *byte == b'\n')?;
    Some((at + rest, has_zero || input[at..at + rest].contains(&0)))
}

/// Finds the first request. `item_size_max`: bytes of an item with its key.
#[inline]
pub(crate) fn split(input: &[u8], item_size_max: usize) -> Found<'_> {
    let Some((end, has_zero)) = line_end(input) else { return without_end(input) };
    let length = end + 1;
    // As the real one: an empty line keeps its return.
    let mut line = if end > 1 && input[end - 1] == b'\r' { &input[..end - 1] } else { &input[..end] };
    if has_zero {
        // What the C of the real one takes for the end of a text.
        line = line.split(|byte| *byte == 0).next().unwrap_or(line);
    }
    // The most frequent one.
    if let Some(key) = line.strip_prefix(b"get ")
        && !key.is_empty()
        && key.len() <= KEY_BYTES_MAX
        && !key.contains(&b' ')
    {
        return Found::Whole(Request::GetOne(key), length);
    }
    if let Some(set) = line.strip_prefix(b"set ")
        && let Some(store) = usual_set(set)
        && item_size(store.0, store.1, store.3) <= item_size_max
    {
        let (key, flags, exptime, size) = store;
        return match value_of(input, length, size) {
            Err(found) => found,
            Ok((_, end, false)) => bad_chunk(input, length, end, false),
            Ok((value, end, true)) => {
                let store = Store { verb: Verb::Set, key, flags, exptime, value, cas: 0, is_quiet: false };
                Found::Whole(Request::Store(store), end)
            }
        };
    }
    let start = line.iter().take_while(|byte| **byte == b' ').count();
    let word_end = line[start..].iter().position(|byte| *byte == b' ').map_or(line.len(), |at| start + at);
    let (word, rest) = (&line[start..word_end], &line[word_end..]);
    let say = |text| Found::Whole(Request::Say(text), length);
    match word {
        b"get" | b"bget" => get(rest, false, length),
        b"gets" => get(rest, true, length),
        b"set" => store(Verb::Set, line, input, length, item_size_max),
        b"add" => store(Verb::Add, line, input, length, item_size_max),
        b"replace" => store(Verb::Replace, line, input, length, item_size_max),
        b"append" => store(Verb::Append, line, input, length, item_size_max),
        b"prepend" => store(Verb::Prepend, line, input, length, item_size_max),
        b"cas" => store(Verb::Cas, line, input, length, item_size_max),
        b"ms" => meta_set(line, input, length, item_size_max),
        b"mg" | b"md" | b"ma" | b"me" => Found::Whole(Request::Meta { line, value: &[] }, length),
        b"mn" => say("MN"),
        b"version" => say(super::VERSION_LINE),
        b"quit" => Found::Whole(Request::Quit, length),
        b"gat" | b"gats" => {
            let rest = trim(rest);
            let exptime_end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
            let (exptime, keys) = rest.split_at(exptime_end);
            if exptime.is_empty() {
                return say("ERROR");
            }
            match read_i32(exptime) {
                Some(exptime) => keys_of(keys, word == b"gats", Some(exptime), length),
                None => say("CLIENT_ERROR invalid exptime argument"),
            }
        }
        _ => Found::Whole(line_request(line, word), length),
    }
}

/// A number of up to nine digits and what is behind it: nothing, or one space that is taken, too.
#[inline]
fn usual_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0;
    for (at, byte) in text.iter().enumerate().take(10) {
        match byte {
            b'0'..=b'9' if at < 9 => number = number * 10 + u32::from(byte - b'0'),
            b' ' if at > 0 => return Some((number, &text[at + 1..])),
            _ => return None,
        }
    }
    // It ends with the line.
    if text.is_empty() || text.len() > 9 { None } else { Some((number, &[])) }
}

/// Key, flags, time of expiry and bytes of a `set` in the form that clients use. None: it may be right, in another form.
#[inline]
fn usual_set(words: &[u8]) -> Option<(&[u8], u32, i32, usize)> {
    let key_end = words.iter().take(KEY_BYTES_MAX + 1).position(|byte| *byte == b' ')?;
    let (key, rest) = (&words[..key_end], &words[key_end + 1..]);
    let (flags, rest) = usual_number(rest)?;
    let (exptime, rest) = usual_number(rest)?;
    let (size, _) = usual_number(rest).filter(|(_, behind)| behind.is_empty() && rest.last() != Some(&b' '))?;
    (!key.is_empty()).then_some((key, flags, exptime as i32, size as usize))
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().take_while(|byte| **byte == b' ').count();
    &text[start..]
}

/// There is no whole line.
fn without_end(input: &[u8]) -> Found<'_> {
    let start = input.iter().take_while(|byte| **byte == b' ').count();
    let is_get = |name: &[u8]| input[start..].starts_with(name);
    let bound = if is_get(b"get ") || is_get(b"gets ") { KEYS_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
    if input.len() <= bound {
        return Found::Part(0);
    }
    Found::Whole(Request::Leave("sends a line that does not end"), input.len())
}

/// Commands that are not among the frequent ones.
fn line_request<'a>(line: &'a [u8], word: &[u8]) -> Request<'a> {
    let words = Words::of(line);
    let (count, key, is_quiet) = (words.count, words.get(1), words.is_quiet());
    let say = |text: &'static str| Request::Say(if is_quiet { "" } else { text });
    match word {
        b"delete" => {
            if !(2..=4).contains(&count) {
                return Request::Say("ERROR");
            }
            let is_zero = words.get(2) == b"0";
            if count > 2 && !(count == 3 && (is_zero || is_quiet) || count == 4 && is_zero && is_quiet) {
                return say("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]");
            }
            if key.len() > KEY_BYTES_MAX {
                return say(BAD_FORMAT);
            }
            Request::Delete { key, is_quiet: is_quiet && count > 2 }
        }
        b"incr" | b"decr" => {
            if count != 3 && count != 4 {
                return Request::Say("ERROR");
            }
            if key.len() > KEY_BYTES_MAX {
                return say(BAD_FORMAT);
            }
            match read_u64(words.get(2)) {
                Some(delta) => Request::Arithmetic { key, delta, is_incr: word == b"incr", is_quiet },
                None => say("CLIENT_ERROR invalid numeric delta argument"),
            }
        }
        b"touch" => {
            if count != 3 && count != 4 {
                return Request::Say("ERROR");
            }
            if key.len() > KEY_BYTES_MAX {
                return say(BAD_FORMAT);
            }
            match read_i32(words.get(2)) {
                Some(exptime) => Request::Touch { key, exptime, is_quiet },
                None => say("CLIENT_ERROR invalid exptime argument"),
            }
        }
        b"flush_all" => {
            if count > 3 {
                return Request::Say("ERROR");
            }
            if count == 1 + usize::from(is_quiet) {
                return Request::FlushAll { exptime: 0, is_quiet };
            }
            match read_i32(words.get(1)) {
                Some(exptime) => Request::FlushAll { exptime, is_quiet },
                None => say("CLIENT_ERROR invalid exptime argument"),
            }
        }
        b"stats" => Request::Stats { words: trim(&line[line.len() - trim(line).len() + word.len()..]) },
        b"verbosity" => match count {
            2 if is_quiet => Request::Say(""),
            2 | 3 if read_u64(key).is_none() => say(BAD_FORMAT),
            2 | 3 => say("OK"),
            _ => Request::Say("ERROR"),
        },
        b"slabs" | b"lru" | b"lru_crawler" | b"cache_memlimit" | b"watch" | b"shutdown" => Request::Admin { line },
        _ if is_http(line) => Request::Leave("speaks HTTP"),
        _ => Request::Say("ERROR"),
    }
}

/// A browser was talked into sending this.
fn is_http(line: &[u8]) -> bool {
    let starts = |name: &str| line.len() >= name.len() && line[..name.len()].eq_ignore_ascii_case(name.as_bytes());
    starts("post ")
        || starts("host:")
        || starts("get /")
        || Words::of(line).all().last().is_some_and(|word| word.starts_with(b"HTTP/"))
}

fn get(keys: &[u8], has_cas: bool, length: usize) -> Found<'_> {
    if trim(keys).is_empty() {
        return Found::Whole(Request::Say("ERROR"), length);
    }
    keys_of(keys, has_cas, None, length)
}

fn keys_of(keys: &[u8], has_cas: bool, exptime: Option<i32>, length: usize) -> Found<'_> {
    let request = match keys.split(|byte| *byte == b' ').any(|key| key.len() > KEY_BYTES_MAX) {
        true => Request::Say(BAD_FORMAT),
        false => Request::Get { keys, has_cas, exptime },
    };
    Found::Whole(request, length)
}

/// The value that follows a line, and where it ends with its line end. Errors: what is found instead.
fn value_of<'a>(input: &'a [u8], line_length: usize, size: usize) -> Result<(&'a [u8], usize, bool), Found<'a>> {
    let end = line_length + size + 2;
    match input.get(line_length..end) {
        Some(bytes) => Ok((&bytes[..size], end, bytes[size..] == *b"\r\n")),
        None => Err(Found::Part(end as u64)),
    }
}

/// Bytes of memory that the real server counts for an item.
pub(super) fn item_size(key: &[u8], flags: u32, size: usize) -> usize {
    48 + 8 + key.len() + 1 + if flags == 0 { 0 } else { 4 } + size + 2
}

/// A value of `size` bytes that may not be kept: what is here of it is taken, the rest is passed over as it comes.
fn oversized<'a>(input: &'a [u8], line_length: usize, size: u64, key: &'a [u8], answer: &'static str) -> Found<'a> {
    let whole = line_length as u64 + size + 2;
    let taken = whole.min(input.len() as u64);
    Found::Last(Request::Oversized { key, answer, skipped: whole - taken, is_binary: None }, taken as usize)
}

fn store<'a>(verb: Verb, line: &'a [u8], input: &'a [u8], length: usize, item_size_max: usize) -> Found<'a> {
    let words = Words::of(line);
    let needed = if verb == Verb::Cas { 6 } else { 5 };
    if words.count != needed && words.count != needed + 1 {
        return Found::Whole(Request::Say("ERROR"), length);
    }
    let is_quiet = words.is_quiet();
    let bad = || Found::Whole(Request::Say(if is_quiet { "" } else { BAD_FORMAT }), length);
    let key = words.get(1);
    let (flags, exptime, size) = (read_u32(words.get(2)), read_i32(words.get(3)), read_i32(words.get(4)));
    let (Some(flags), Some(exptime), Some(size)) = (flags, exptime, size) else { return bad() };
    let cas = if verb == Verb::Cas { read_u64(words.get(5)) } else { Some(0) };
    let (Some(cas), Ok(size)) = (cas, usize::try_from(size)) else { return bad() };
    if key.len() > KEY_BYTES_MAX || size > i32::MAX as usize - 2 {
        return bad();
    }
    if item_size(key, flags, size) > item_size_max {
        // Nobody reads an old value where a new one was refused.
        let lost = if verb == Verb::Set { key } else { &[] };
        return oversized(input, length, size as u64, lost, if is_quiet { "" } else { TOO_LARGE });
    }
    match value_of(input, length, size) {
        Err(found) => found,
        Ok((_, end, false)) => bad_chunk(input, length, end, is_quiet),
        Ok((value, end, true)) => {
            Found::Whole(Request::Store(Store { verb, key, flags, exptime, value, cas, is_quiet }), end)
        }
    }
}

/// A value without a line end where it should be.
fn bad_chunk(_input: &[u8], _length: usize, end: usize, is_quiet: bool) -> Found<'_> {
    Found::Whole(Request::Say(if is_quiet { "" } else { "CLIENT_ERROR bad data chunk" }), end)
}

fn meta_set<'a>(line: &'a [u8], input: &'a [u8], length: usize, item_size_max: usize) -> Found<'a> {
    let words = Words::of(line);
    let say = |text| Found::Whole(Request::Say(text), length);
    let key = words.get(1);
    if words.count < 2 {
        return say("ERROR");
    }
    let size = read_i32(words.get(2)).and_then(|size| usize::try_from(size).ok());
    let (true, Some(size)) = (key.len() <= KEY_BYTES_MAX, size.filter(|size| *size <= i32::MAX as usize - 2)) else {
        return say(BAD_FORMAT);
    };
    let flags = words.all()[3..].iter().find_map(|word| word.strip_prefix(b"F"));
    let flags = flags.and_then(read_u32).unwrap_or(0);
    if item_size(key, flags, size) > item_size_max {
        return oversized(input, length, size as u64, key, TOO_LARGE);
    }
    match value_of(input, length, size) {
        Err(found) => found,
        Ok((_, end, false)) => bad_chunk(input, length, end, false),
        Ok((value, end, true)) => Found::Whole(Request::Meta { line, value }, end),
    }
}

/// Before a login: `set` with a user and a password as its value.
pub(super) fn split_login(input: &[u8]) -> Found<'_> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return match input.len() > LINE_BYTES_MAX {
            true => Found::Whole(Request::Leave("sends a line that does not end before it has logged in"), input.len()),
            false => Found::Part(0),
        };
    };
    let words = Words::of(&input[..end]);
    let say = |text, end| Found::Last(Request::Say(text), end);
    if is_http(input[..end].strip_suffix(b"\r").unwrap_or(&input[..end])) {
        return Found::Whole(Request::Leave("speaks HTTP"), end + 1);
    }
    if words.get(0) == b"quit" || words.get(0) == b"quit\r" {
        return Found::Whole(Request::Quit, end + 1);
    }
    let size = read_u32(words.get(4)).map(|size| size as usize);
    let (b"set", Some(size)) = (words.get(0), size) else {
        return say("CLIENT_ERROR unauthenticated", end + 1);
    };
    match value_of(input, end + 1, size) {
        Err(found) => found,
        Ok((_, end, false)) => say("CLIENT_ERROR bad command line termination", end),
        Ok((value, end, true)) => match Words::of(value).count {
            0 | 1 => say("CLIENT_ERROR bad authentication token format", end),
            _ => Found::Last(Request::Login(value), end),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_line_ends_where_its_first_end_is(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(0u8), any::<u8>()], 0..40)) {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            prop_assert_eq!(line_end(&bytes), end.map(|end| (end, bytes[..end].contains(&0))));
        }

        #[test]
        fn any_bytes_are_cut_the_same_whatever_follows(text in "(set|ms|get|gat|incr|cas|mg| )[ -~\r\n]{0,60}", tail in any::<Vec<u8>>()) {
            let long = [text.as_bytes(), &tail].concat();
            if let Found::Whole(_, length) = split(text.as_bytes(), 1 << 20) {
                prop_assert!(matches!(split(&long, 1 << 20), Found::Whole(_, again) if again == length));
            }
        }
    }

    proptest! {
        #[test]
        fn a_usual_set_is_read_as_any_other(
            line in prop_oneof!["set [a-z]{0,3} [0-9]{0,11} [0-9]{0,11} [0-9]{0,2}", "set [a-z ]{0,3}( ?-?[0-9]{0,3}){0,4} ?(noreply)?"],
            value in "[a-z]{0,12}\r\n",
        ) {
            let read = |found: Found<'_>| match found {
                Found::Whole(Request::Store(store), length) => {
                    format!("{:?} {} {} {:?} {length}", store.key, store.flags, store.exptime, store.value)
                }
                Found::Whole(Request::Say(text), length) => format!("{text} {length}"),
                Found::Part(count) => format!("part {count}"),
                Found::Whole(_, length) | Found::Last(_, length) => format!("other {length}"),
            };
            let short = format!("{line}\r\n{value}");
            let at_once = read(split(short.as_bytes(), 1 << 20));
            let by_words = read(store(Verb::Set, line.as_bytes(), short.as_bytes(), line.len() + 2, 1 << 20));
            prop_assert_eq!(at_once, by_words);
        }
    }

    #[test]
    fn one_key_goes_the_short_way_and_others_do_not() {
        assert!(matches!(split(b"get a\r\n", 100), Found::Whole(Request::GetOne(b"a"), 7)));
        assert!(matches!(split(b"get a b\r\n", 100), Found::Whole(Request::Get { .. }, 9)));
        assert!(matches!(split(b" get a\r\n", 100), Found::Whole(Request::Get { .. }, 8)));
        assert!(matches!(split(b"get a \r\n", 100), Found::Whole(Request::Get { .. }, 8)));
        assert!(matches!(split(b"get a\0b\r\n", 100), Found::Whole(Request::GetOne(b"a"), 9)));
        assert!(matches!(split(b"get \r\n", 100), Found::Whole(Request::Say("ERROR"), 6)));
    }
}
