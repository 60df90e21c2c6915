//! What damage costs: which rows cannot be read, told alike by `lycosa check`, by a start that refuses and by one that is forced.

use crate::row::Row;
use std::fmt;
use std::path::{Path, PathBuf};
use tuple::Lsn;

/// Number of rows that an announcement names one by one; of the rest it gives only the count.
const ROWS_NAMED_MAX: usize = 20;

/// Receives the rows of a file.
pub trait Replay {
    /// Puts a row in force. Errors: why it cannot be.
    fn apply(&mut self, row: &Row<'_>) -> Result<(), Refusal>;

    /// These rows of a log will be given next, or some of them: a chance to fetch what they will touch.
    fn foresee(&mut self, _rows: &mut dyn Iterator<Item = Row<'_>>) {}

    /// Damage was found. Rows behind it are given, too: what they meet tells what the damage costs.
    fn damaged(&mut self) {}

    /// Whose rows these must be; a log of another server is refused. `None`: anybody's.
    fn instance(&self) -> Option<String> {
        None
    }

    /// A row in words, for the report of its loss.
    fn describe(&mut self, row: &Row<'_>) -> String {
        format!("type {}", row.header.kind)
    }
}

/// A row that cannot be put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub what: String,
    /// It is not the row's fault (no memory, say): passing over it by force would be wrong.
    pub is_final: bool,
}

impl From<String> for Refusal {
    fn from(what: String) -> Self {
        Refusal { what, is_final: false }
    }
}

/// A closure gets the rows; none behind damage unless that is passed over.
pub(crate) struct Applied<F> {
    pub(crate) apply: F,
    pub(crate) goes_on: bool,
    pub(crate) is_over: bool,
}

impl<F: FnMut(&Row<'_>) -> Result<(), String>> Replay for Applied<F> {
    fn apply(&mut self, row: &Row<'_>) -> Result<(), Refusal> {
        if self.is_over { Ok(()) } else { (self.apply)(row).map_err(Refusal::from) }
    }

    fn damaged(&mut self) {
        self.is_over = !self.goes_on;
    }
}

/// A row that cannot be read, or not be put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRow {
    /// Its lsn; in a snapshot its number.
    pub lsn: Lsn,
    /// What it is, as far as that could be found out.
    pub what: String,
}

/// Rows that go with a damaged stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Exactly these; none if no row is concerned.
    Rows(Vec<LostRow>),
    /// All rows from one lsn to another, both included.
    Lsns(Lsn, Lsn),
    /// Unknown content of this many bytes: no good block behind them says what it was.
    Bytes(u64),
    /// All rows behind this lsn, as many as there were.
    Behind(i64),
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file.
    pub file: PathBuf,
    /// Where the damage begins: the block that cannot be read.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// What that costs.
    pub lost: Lost,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Rows(rows) if rows.is_empty() => f.write_str("no row"),
            Lost::Rows(rows) => {
                for (at, row) in rows.iter().take(ROWS_NAMED_MAX).enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}lsn {} ({})", row.lsn, row.what)?;
                }
                match (rows.len().checked_sub(ROWS_NAMED_MAX), rows.last()) {
                    (Some(more), Some(last)) if more > 0 => write!(f, " and {more} more up to lsn {}", last.lsn),
                    _ => Ok(()),
                }
            }
            Lost::Lsns(from, to) if from == to => write!(f, "the row with lsn {from}"),
            Lost::Lsns(from, to) => write!(f, "the rows with lsn {from} to {to}"),
            Lost::Behind(lsn) => write!(f, "whatever rows were logged behind lsn {lsn}"),
            Lost::Bytes(bytes) => write!(f, "whatever rows are in {bytes} bytes"),
        }
    }
}

/// What all the damage costs, as one text: the same before and after.
pub fn announcement(losses: &[Loss]) -> String {
    let mut text = String::new();
    for (at, loss) in losses.iter().enumerate() {
        if at > 0 {
            let name = loss.file.file_name().map_or(Path::new(""), Path::new).display();
            text.push_str(&format!("; {name} at byte {}: {}: ", loss.offset, loss.what));
        }
        text.push_str(&loss.lost.to_string());
    }
    text
}
