//! What rows cost in memory: the server's resident size before and after a fill.

use crate::plain;
use load::process;
use serde_json::json;

/// What came of it, in bytes.
pub(crate) struct Outcome {
    before: u64,
    pub(crate) after: u64,
    rows: u32,
}

impl Outcome {
    /// Bytes that the process grew by for each row: the row, its place in the index, and what was kept besides.
    pub(crate) fn row_bytes(&self) -> f64 {
        (self.after as f64 - self.before as f64) / f64::from(self.rows)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({"rows": self.rows, "before": self.before, "after": self.after, "bytes_per_row": self.row_bytes()})
    }

    pub(crate) fn print(&self) {
        let megabytes = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
        println!("resident     {:.1} MiB before, {:.1} MiB after", megabytes(self.before), megabytes(self.after));
        println!("a row        {:.1} bytes, {} rows", self.row_bytes(), self.rows);
    }
}

/// Fills the space `bench` and measures. The server should be fresh: memory that an earlier fill left behind is used again and not counted.
pub(crate) fn run(settings: &plain::Settings, pid: u32, is_quiet: bool) -> Result<Outcome, String> {
    let before = process::resident_bytes(pid)?;
    if !plain::fill(settings, is_quiet)? {
        return Err("the space `bench` is full already: start a fresh server".to_string());
    }
    Ok(Outcome { before, after: process::resident_bytes(pid)?, rows: settings.rows })
}
