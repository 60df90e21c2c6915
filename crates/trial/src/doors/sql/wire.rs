//! Statements as messages of PostgreSQL's protocol and packets of MySQL's. Each is said in two ways, by the client's dialect: PostgreSQL's simple queries
//! and extended protocol, MySQL's texts and prepared statements with binary rows.

use super::super::Door;
use super::super::speaker::{Failure, Speaker};
use std::io::{Read, Write};

/// A row's values as text, nulls as nothing.
pub(super) type Row = Vec<Vec<u8>>;

/// What a statement gave: its rows, and how many it changed.
#[derive(Default)]
pub(super) struct Given {
    pub(super) rows: Vec<Row>,
    pub(super) changed: u64,
}

/// Types of MySQL's columns that are no text in binary rows, and how many bytes they have.
const MYSQL_NUMBERS: [(u8, usize); 6] = [(0x01, 1), (0x02, 2), (0x03, 4), (0x08, 8), (0x09, 4), (0x0d, 2)];
const MYSQL_QUERY: u8 = 0x03;
const MYSQL_PREPARE: u8 = 0x16;
const MYSQL_EXECUTE: u8 = 0x17;
const MYSQL_CLOSE: u8 = 0x19;

/// Logs in: the listener says as whom.
pub(in super::super) fn begin<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<(), Failure> {
    if speaker.tongue.door == Door::Postgres {
        let body = b"\0\x03\0\0user\0trial\0database\0lycosa\0\0";
        speaker.send(&[&(body.len() as u32 + 4).to_be_bytes()[..], body].concat())?;
        loop {
            match message(speaker)? {
                (b'Z', _) => return Ok(()),
                (b'E', _) => return Err(Failure::Broken),
                _ => {}
            }
        }
    }
    packet(speaker)?;
    // Long passwords, rows that were found count as changed, a database, 4.1, secure, authentication by a plugin.
    let abilities: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;
    let rest = b"trial\0\0lycosa\0mysql_native_password\0";
    let body = [&abilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23], rest].concat();
    send_packet(speaker, 1, &body)?;
    match packet(speaker)?.first() {
        Some(0) => Ok(()),
        _ => Err(Failure::Broken),
    }
}

/// Runs a statement.
pub(super) fn run<S: Read + Write>(speaker: &mut Speaker<S>, sql: &str) -> Result<Given, Failure> {
    let is_second = !speaker.tongue.dialect.is_multiple_of(2);
    match (speaker.tongue.door, is_second) {
        (Door::Postgres, is_extended) => run_postgres(speaker, sql, is_extended),
        // What begins and ends transactions cannot be prepared everywhere.
        (_, true) if ["SELECT", "INSERT", "UPDATE", "DELETE"].iter().any(|word| sql.starts_with(word)) => {
            run_prepared(speaker, sql)
        }
        _ => {
            send_packet(speaker, 0, &[&[MYSQL_QUERY], sql.as_bytes()].concat())?;
            read_result(speaker, false)
        }
    }
}

/// A message of PostgreSQL's protocol.
fn message<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<(u8, Vec<u8>), Failure> {
    let kind = speaker.take(1)?[0];
    let length = speaker.u32()?.checked_sub(4).ok_or(Failure::Broken)?;
    Ok((kind, speaker.take(length as usize)?))
}

fn run_postgres<S: Read + Write>(speaker: &mut Speaker<S>, sql: &str, is_extended: bool) -> Result<Given, Failure> {
    let framed = |kind: u8, body: &[u8]| [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
    let text = [sql.as_bytes(), b"\0"].concat();
    let asked = match is_extended {
        false => framed(b'Q', &text),
        true => [
            framed(b'P', &[b"\0", &text[..], b"\0\0"].concat()),
            framed(b'B', &[0; 8]),
            framed(b'E', &[0; 5]),
            framed(b'S', &[]),
        ]
        .concat(),
    };
    speaker.send(&asked)?;
    let (mut given, mut refused) = (Given::default(), None);
    loop {
        let (kind, body) = message(speaker)?;
        match kind {
            b'Z' => break,
            b'E' => {
                let parts = body.split(|byte| *byte == 0).filter(|part| matches!(part.first(), Some(b'C' | b'M')));
                let words: Vec<_> = parts.map(|part| String::from_utf8_lossy(&part[1..]).into_owned()).collect();
                refused = Some(words.join(" "));
            }
            b'C' => {
                let tag = String::from_utf8_lossy(&body);
                let count = tag.trim_end_matches('\0').rsplit(' ').next().and_then(|word| word.parse().ok());
                given.changed = count.unwrap_or(0);
            }
            b'D' => {
                let mut rest = body.get(2..).ok_or(Failure::Broken)?;
                let mut row = Vec::new();
                while let Some((length, more)) = rest.split_first_chunk::<4>() {
                    // Null is -1.
                    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
                    let (value, more) = more.split_at_checked(length).ok_or(Failure::Broken)?;
                    row.push(value.to_vec());
                    rest = more;
                }
                given.rows.push(row);
            }
            _ => {}
        }
    }
    refused.map_or(Ok(given), |text| Err(Failure::Refused(text)))
}

/// A packet of MySQL's protocol.
fn packet<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<Vec<u8>, Failure> {
    let head = speaker.take(4)?;
    Ok(speaker.take(usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16)?)
}

fn send_packet<S: Read + Write>(speaker: &mut Speaker<S>, sequence: u8, body: &[u8]) -> Result<(), Failure> {
    let [a, b, c, _] = (body.len() as u32).to_le_bytes();
    Ok(speaker.send(&[&[a, b, c, sequence][..], body].concat())?)
}

/// A number as MySQL writes lengths; null is 0. None: it is cut.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let width = match first {
        0xfb => return Some((0, rest)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        short => return Some((usize::from(*short), rest)),
    };
    let (number, rest) = rest.split_at_checked(width)?;
    Some((number.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest))
}

fn refused(body: &[u8]) -> Failure {
    let code = body.get(1..3).map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
    Failure::Refused(format!("{code} {}", String::from_utf8_lossy(body.get(9..).unwrap_or_default())))
}

/// Prepares a statement, runs it, and forgets it again.
fn run_prepared<S: Read + Write>(speaker: &mut Speaker<S>, sql: &str) -> Result<Given, Failure> {
    send_packet(speaker, 0, &[&[MYSQL_PREPARE], sql.as_bytes()].concat())?;
    let head = packet(speaker)?;
    let (id, columns) = match &head[..] {
        [0, a, b, c, d, low, high, 0, 0, ..] => ([*a, *b, *c, *d], u16::from_le_bytes([*low, *high])),
        [0xff, ..] => return Err(refused(&head)),
        _ => return Err(Failure::Broken),
    };
    if columns > 0 {
        for _ in 0..=columns {
            packet(speaker)?;
        }
    }
    send_packet(speaker, 0, &[&[MYSQL_EXECUTE][..], &id, &[0, 1, 0, 0, 0]].concat())?;
    let given = read_result(speaker, true);
    if !matches!(given, Err(Failure::Broken)) {
        send_packet(speaker, 0, &[&[MYSQL_CLOSE][..], &id].concat())?;
    }
    given
}

fn read_result<S: Read + Write>(speaker: &mut Speaker<S>, is_binary: bool) -> Result<Given, Failure> {
    let first = packet(speaker)?;
    let mut given = Given::default();
    let columns = match first.first() {
        None => return Err(Failure::Broken),
        Some(0xff) => return Err(refused(&first)),
        Some(0) => {
            given.changed = length(&first[1..]).ok_or(Failure::Broken)?.0 as u64;
            return Ok(given);
        }
        Some(count) => *count,
    };
    let mut kinds = Vec::new();
    for _ in 0..columns {
        let column = packet(speaker)?;
        // Behind it: flags, decimals, two bytes of nothing.
        let kind = column.len().checked_sub(6).and_then(|at| column.get(at));
        kinds.push(*kind.ok_or(Failure::Broken)?);
    }
    // The end of the columns.
    packet(speaker)?;
    loop {
        let body = packet(speaker)?;
        match body.first() {
            Some(0xff) => return Err(refused(&body)),
            Some(0xfe) if body.len() < 9 => return Ok(given),
            _ => {}
        }
        let row = if is_binary { binary_row(&body, &kinds) } else { text_row(&body) };
        given.rows.push(row.ok_or(Failure::Broken)?);
    }
}

fn text_row(body: &[u8]) -> Option<Row> {
    let (mut row, mut rest) = (Vec::new(), body);
    while !rest.is_empty() {
        let (size, more) = length(rest)?;
        let (value, more) = more.split_at_checked(size)?;
        row.push(value.to_vec());
        rest = more;
    }
    Some(row)
}

/// Numbers become text.
fn binary_row(body: &[u8], kinds: &[u8]) -> Option<Row> {
    // A zero and the nulls, from the third bit on.
    let nulls = body.get(1..1 + (kinds.len() + 9) / 8)?;
    let mut rest = &body[1 + nulls.len()..];
    let mut row = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        if nulls[(at + 2) / 8] >> ((at + 2) % 8) & 1 == 1 {
            row.push(Vec::new());
            continue;
        }
        let width = MYSQL_NUMBERS.iter().find(|(of, _)| of == kind).map(|(_, width)| *width);
        let (size, more) = match width {
            Some(width) => (width, rest),
            None => length(rest)?,
        };
        let (value, more) = more.split_at_checked(size)?;
        row.push(match width {
            Some(_) => value.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)).to_string().into_bytes(),
            None => value.to_vec(),
        });
        rest = more;
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_both_forms_are_read() {
        let row = |cells: &[&str]| Some(cells.iter().map(|cell| cell.as_bytes().to_vec()).collect());
        assert_eq!(text_row(b"\x021,\xfb\x03abc"), row(&["1,", "", "abc"]));
        assert_eq!(text_row(b"\x05ab"), None);
        let body = [&[0, 0b1000][..], &7u64.to_le_bytes(), b"\x02ab"].concat();
        assert_eq!(binary_row(&body, &[0x08, 0x03, 0xfd]), row(&["7", "", "ab"]));
        assert_eq!(binary_row(&body[..6], &[0x08]), None);
    }
}
