//! HTTP as Tokyo Tyrant speaks it: a record is a resource whose path is its key.

/// Bytes of a request before its body.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of a body.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// A request.
#[derive(Debug, PartialEq)]
pub(super) struct Request<'a> {
    pub(super) method: &'a [u8],
    pub(super) key: Vec<u8>,
    pub(super) body: &'a [u8],
    /// `X-TT-PDMODE`: 1 keep, 2 append.
    pub(super) mode: u32,
    /// `X-TT-XNAME` and `X-TT-MNAME`.
    pub(super) function: Option<String>,
    pub(super) misc: Option<String>,
    /// The connection stays.
    pub(super) stays: bool,
}

/// What the beginning of the input is.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    Whole(Request<'a>, usize),
    Part(u64),
    Bad(&'static str),
}

/// True if a line is the first of a request.
pub(super) fn is_first_line(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == b' ');
    let is_method =
        words.next().is_some_and(|word| matches!(word, b"GET" | b"HEAD" | b"PUT" | b"POST" | b"DELETE" | b"OPTIONS"));
    is_method && words.nth(1).is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// Bytes of which some are written as `%` and two digits.
pub(super) fn decode(text: &[u8], has_plus: bool) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 2;
            }
            (b'+', ..) if has_plus => out.push(b' '),
            (byte, ..) => out.push(byte),
        }
        at += 1;
    }
    out
}

/// Values of a form, whatever their names.
pub(super) fn values_of(body: &[u8]) -> Vec<Vec<u8>> {
    let pairs = body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split(|byte| *byte == b'=').nth(1).unwrap_or(pair)).map(|value| decode(value, true)).collect()
}

/// Finds the first request, whose first line is one.
pub(super) fn split(input: &[u8]) -> Found<'_> {
    let head = input.iter().take(HEAD_BYTES_MAX);
    let mut line_start = 0;
    let mut end = None;
    for (at, byte) in head.enumerate() {
        if *byte == b'\n' {
            if matches!(&input[line_start..at], b"" | b"\r") && line_start > 0 {
                end = Some(at + 1);
                break;
            }
            line_start = at + 1;
        }
    }
    let Some(head_end) = end else {
        return if input.len() < HEAD_BYTES_MAX {
            Found::Part(0)
        } else {
            Found::Bad("sends a head that does not end")
        };
    };
    let trim = |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).to_vec();
    let mut lines = input[..head_end].split(|byte| *byte == b'\n');
    let first_length = lines.next().map_or(0, <[u8]>::len);
    let first = &input[..first_length];
    let mut words = first.split(|byte| *byte == b' ');
    let (method, path, version) =
        (words.next().unwrap_or(b""), words.next().unwrap_or(b""), words.next().unwrap_or(b""));
    // With or without the name of the machine in front.
    let path = match path.strip_prefix(b"http://") {
        Some(rest) => rest.iter().position(|byte| *byte == b'/').map_or(&b""[..], |at| &rest[at..]),
        None => path,
    };
    let key = decode(path.strip_prefix(b"/").unwrap_or(path), false);
    let mut request =
        Request { method, key, body: &[], mode: 0, function: None, misc: None, stays: trim(version) == b"HTTP/1.1" };
    let mut length = 0;
    for line in lines {
        let line = trim(line);
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = line[..colon].to_ascii_lowercase();
        let value = String::from_utf8_lossy(&line[colon + 1..]).trim().to_string();
        match &name[..] {
            b"content-length" => match value.parse() {
                Ok(bytes) => length = bytes,
                Err(_) => return Found::Bad("sends a length that is no number"),
            },
            b"transfer-encoding" => return Found::Bad("sends a body in pieces"),
            b"connection" => {
                request.stays =
                    value.eq_ignore_ascii_case("keep-alive") || request.stays && !value.eq_ignore_ascii_case("close")
            }
            b"x-tt-pdmode" => request.mode = value.parse().unwrap_or(0),
            b"x-tt-xname" => request.function = Some(value),
            b"x-tt-mname" => request.misc = Some(value),
            _ => {}
        }
    }
    if length > BODY_BYTES_MAX {
        return Found::Bad("announces a body that is too large");
    }
    let whole = head_end + length as usize;
    match input.get(head_end..whole) {
        Some(body) => Found::Whole(Request { body, ..request }, whole),
        None => Found::Part(whole as u64),
    }
}

/// Appends an answer.
pub(super) fn answer(out: &mut Vec<u8>, status: u32, (kind, body): (&str, &[u8]), request: (&[u8], bool)) {
    let (method, stays) = request;
    let reason = match status {
        200 => "OK",
        201 => "Created",
        400 => "Bad Request",
        404 => "Not Found",
        409 => "Conflict",
        500 => "Internal Server Error",
        _ => "Not Implemented",
    };
    let end = if stays { "keep-alive" } else { "close" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: {end}\r\n\r\n"
    );
    out.extend_from_slice(head.as_bytes());
    if method != b"HEAD" {
        out.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_with_its_body() {
        let text = b"PUT /a%20b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-TT-PDMODE: 1\r\n\r\nabcGET /";
        let whole = text.len() - 5;
        let Found::Whole(request, length) = split(text) else { panic!("it is whole") };
        assert_eq!((length, &request.key[..], request.body, request.mode), (whole, &b"a b"[..], &b"abc"[..], 1));
        assert!(request.stays);
        for cut in 0..whole {
            assert!(matches!(split(&text[..cut]), Found::Part(_)), "{cut}");
        }
        assert!(matches!(split(b"PUT / HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\n"), Found::Bad(_)));
        assert!(matches!(split(b"PUT / HTTP/1.0\r\nContent-Length: -1\r\n\r\n"), Found::Bad(_)));
        assert_eq!(values_of(b"a=1+2&b=%41&c"), [b"1 2".to_vec(), b"A".to_vec(), b"c".to_vec()]);
        assert_eq!(decode(b"%4", true), b"%4");
    }
}
