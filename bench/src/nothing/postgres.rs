//! PostgreSQL's protocol of a server that does nothing. (Messages: <https://www.postgresql.org/docs/current/protocol-message-formats.html>.)

use super::Talk;
use super::statement::{Column, Statement};
use std::collections::HashMap;

/// Requests of a client to speak something else, which it is told to forget.
const TLS: i32 = 80_877_103;
const GSS: i32 = 80_877_104;

#[derive(Default)]
pub(super) struct Postgres {
    is_welcome: bool,
    statements: HashMap<Vec<u8>, Statement>,
    /// What the portal without a name was made of, and whether its rows are wanted in binary.
    bound: (Statement, bool),
}

fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(4 + body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
}

/// The text before a zero, and what follows it.
fn string(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

fn type_number(column: Column) -> i32 {
    match column {
        Column::Number => 20,
        Column::Integer => 23,
        Column::Text => 25,
    }
}

fn describe(out: &mut Vec<u8>, statement: &Statement, is_binary: bool) {
    if statement.columns.is_empty() {
        return put(out, b'n', b"");
    }
    let mut body = (statement.columns.len() as u16).to_be_bytes().to_vec();
    for column in &statement.columns {
        body.extend_from_slice(b"n\0\0\0\0\0\0\0");
        body.extend_from_slice(&type_number(*column).to_be_bytes());
        body.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, u8::from(is_binary)]);
    }
    put(out, b'T', &body);
}

fn rows(out: &mut Vec<u8>, statement: &Statement, is_binary: bool) {
    if statement.columns.is_empty() {
        return put(out, b'C', b"UPDATE 1\0");
    }
    let mut body = (statement.columns.len() as u16).to_be_bytes().to_vec();
    for column in &statement.columns {
        let value = if is_binary { column.binary() } else { column.text() };
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(&value);
    }
    for _ in 0..statement.rows {
        put(out, b'D', &body);
    }
    put(out, b'C', format!("SELECT {}\0", statement.rows).as_bytes());
}

/// Whether a Bind message, after the names, wants its rows in binary: formats and values of parameters, then formats of columns, of which the first counts.
fn wants_binary(bytes: &[u8]) -> Option<bool> {
    let number = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2 + 2 * usize::from(number(0)?);
    let values = number(at)?;
    at += 2;
    for _ in 0..values {
        let length = i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
        at += 4 + usize::try_from(length).unwrap_or(0);
    }
    Some(number(at)? > 0 && number(at + 2)? == 1)
}

impl Talk for Postgres {
    fn greet(&mut self, _: &mut Vec<u8>) {}

    fn message(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let number = |at: usize| Some(i32::from_be_bytes(input.get(at..at + 4)?.try_into().ok()?));
        if !self.is_welcome {
            let length = usize::try_from(number(0)?).ok().filter(|length| *length >= 8 && *length <= input.len())?;
            if matches!(number(4)?, TLS | GSS) {
                out.push(b'N');
                return Some(length);
            }
            self.is_welcome = true;
            put(out, b'R', &[0; 4]);
            for (name, value) in [("server_version", "15.0"), ("client_encoding", "UTF8")] {
                put(out, b'S', format!("{name}\0{value}\0").as_bytes());
            }
            put(out, b'K', &[0; 8]);
            put(out, b'Z', b"I");
            return Some(length);
        }
        let length = 1 + usize::try_from(number(1)?).ok().filter(|length| *length >= 4)?;
        let body = input.get(5..length)?;
        match input[0] {
            b'P' => {
                let (name, rest) = string(body);
                let statement = Statement::of(&String::from_utf8_lossy(string(rest).0));
                self.statements.insert(name.to_vec(), statement);
                put(out, b'1', b"");
            }
            b'B' => {
                let (name, rest) = string(string(body).1);
                let statement = self.statements.get(name).cloned().unwrap_or_default();
                self.bound = (statement, wants_binary(rest).unwrap_or(false));
                put(out, b'2', b"");
            }
            b'D' if body.first() == Some(&b'S') => {
                let statement = self.statements.get(string(&body[1..]).0).cloned().unwrap_or_default();
                let mut told = (statement.parameters.len() as u16).to_be_bytes().to_vec();
                for parameter in &statement.parameters {
                    told.extend_from_slice(&type_number(*parameter).to_be_bytes());
                }
                put(out, b't', &told);
                describe(out, &statement, false);
            }
            b'D' => describe(out, &self.bound.0, self.bound.1),
            b'E' => rows(out, &self.bound.0, self.bound.1),
            b'S' => put(out, b'Z', b"I"),
            b'Q' => {
                let statement = Statement::of(&String::from_utf8_lossy(string(body).0));
                if !statement.columns.is_empty() {
                    describe(out, &statement, false);
                }
                rows(out, &statement, false);
                put(out, b'Z', b"I");
            }
            _ => {}
        }
        Some(length)
    }
}
