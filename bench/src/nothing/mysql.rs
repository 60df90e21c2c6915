//! MySQL's protocol of a server that does nothing. (Packets: <https://mariadb.com/docs/server/reference/clientserver-protocol>.)

use super::Talk;
use super::statement::{Column, Statement};

/// LONG_PASSWORD, FOUND_ROWS, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_STATEMENTS, MULTI_RESULTS, PS_MULTI_RESULTS, PLUGIN_AUTH.
const CAPABILITIES: u32 = 0x1 | 0x2 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x4_0000 | 0x8_0000;
const AUTOCOMMIT: u16 = 2;
const LONG: u8 = 3;
const LONGLONG: u8 = 8;
const VAR_STRING: u8 = 253;
const BINARY: u16 = 63;
const UTF8MB4: u16 = 45;
/// Commands.
const QUERY: u8 = 3;
const PREPARE: u8 = 22;
const EXECUTE: u8 = 23;
/// Commands that nobody answers: QUIT, STMT_SEND_LONG_DATA, STMT_CLOSE.
const UNANSWERED: [u8; 3] = [1, 24, 25];

#[derive(Default)]
pub(super) struct Mysql {
    is_welcome: bool,
    statements: Vec<Statement>,
    /// Of the next packet.
    number: u8,
}

impl Mysql {
    fn put(&mut self, out: &mut Vec<u8>, body: &[u8]) {
        out.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
        out.push(self.number);
        out.extend_from_slice(body);
        self.number = self.number.wrapping_add(1);
    }

    fn changed(&mut self, out: &mut Vec<u8>) {
        self.put(out, &[0, 1, 0, AUTOCOMMIT as u8, 0, 0, 0]);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.put(out, &[0xfe, 0, 0, AUTOCOMMIT as u8, 0]);
    }

    fn columns(&mut self, out: &mut Vec<u8>, columns: &[Column]) {
        for column in columns {
            let (kind, collation, bytes) = match column {
                Column::Number => (LONGLONG, BINARY, 20u32),
                Column::Integer => (LONG, BINARY, 11),
                Column::Text => (VAR_STRING, UTF8MB4, 480),
            };
            let mut body = b"\x03def\x00\x01t\x01t\x01n\x01n\x0c".to_vec();
            body.extend_from_slice(&collation.to_le_bytes());
            body.extend_from_slice(&bytes.to_le_bytes());
            body.extend_from_slice(&[kind, 0, 0, 0, 0, 0]);
            self.put(out, &body);
        }
        self.end(out);
    }

    fn rows(&mut self, out: &mut Vec<u8>, statement: &Statement, is_binary: bool) {
        if statement.columns.is_empty() {
            return self.changed(out);
        }
        self.put(out, &[statement.columns.len() as u8]);
        self.columns(out, &statement.columns);
        let mut row = Vec::new();
        if is_binary {
            row.push(0);
            row.resize(1 + (statement.columns.len() + 9) / 8, 0);
        }
        for column in &statement.columns {
            let mut value = if is_binary { column.binary() } else { column.text() };
            match column {
                Column::Number | Column::Integer if is_binary => value.reverse(),
                _ => row.push(value.len() as u8),
            }
            row.extend_from_slice(&value);
        }
        for _ in 0..statement.rows {
            self.put(out, &row);
        }
        self.end(out);
    }
}

impl Talk for Mysql {
    fn greet(&mut self, out: &mut Vec<u8>) {
        let mut body = b"\x0a8.0.0-nothing\0\x01\0\0\0".to_vec();
        body.extend_from_slice(b"abcdefgh\0");
        body.extend_from_slice(&(CAPABILITIES as u16).to_le_bytes());
        body.push(UTF8MB4 as u8);
        body.extend_from_slice(&AUTOCOMMIT.to_le_bytes());
        body.extend_from_slice(&((CAPABILITIES >> 16) as u16).to_le_bytes());
        body.push(21);
        body.extend_from_slice(&[0; 10]);
        body.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        self.put(out, &body);
    }

    fn message(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let head = input.get(..4)?;
        let end = 4 + (head[0] as usize | (head[1] as usize) << 8 | (head[2] as usize) << 16);
        let body = input.get(4..end)?;
        self.number = head[3].wrapping_add(1);
        if !self.is_welcome {
            self.is_welcome = true;
            self.changed(out);
            return Some(end);
        }
        let (command, rest) = body.split_first()?;
        match *command {
            QUERY => self.rows(out, &Statement::of(&String::from_utf8_lossy(rest)), false),
            PREPARE => {
                let statement = Statement::of(&String::from_utf8_lossy(rest));
                self.statements.push(statement.clone());
                let mut told = vec![0];
                told.extend_from_slice(&(self.statements.len() as u32).to_le_bytes());
                told.extend_from_slice(&(statement.columns.len() as u16).to_le_bytes());
                told.extend_from_slice(&(statement.parameters.len() as u16).to_le_bytes());
                told.extend_from_slice(&[0, 0, 0]);
                self.put(out, &told);
                for columns in [&statement.parameters, &statement.columns] {
                    if !columns.is_empty() {
                        self.columns(out, columns);
                    }
                }
            }
            EXECUTE => {
                let number = rest.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
                let statement = self.statements.get(number.wrapping_sub(1)).cloned().unwrap_or_default();
                self.rows(out, &statement, true);
            }
            other if UNANSWERED.contains(&other) => {}
            _ => self.changed(out),
        }
        Some(end)
    }
}
