//! The log writer, on a real file in the current directory.

use crate::machine::Machine;
use crate::report::Report;
use runtime::{SystemClock, SystemFiles};
use std::sync::Arc;
use std::time::Instant;
use wal::{Journal, JournalConfig, Vclock, WalMode};

const ROW_BYTES: usize = 120;
const GROUPS: u32 = 200;

pub(crate) fn run(machine: &Machine, report: &Report) {
    if !report.wants("log") {
        return;
    }
    for (mode, name) in [(WalMode::Write, "write"), (WalMode::Fsync, "fsync")] {
        for rows in [1u32, 16, 256] {
            if let Err(error) = groups(machine, report, mode, name, rows) {
                println!("log: {error}");
            }
        }
    }
}

/// Appends groups of rows, each waited for.
fn groups(machine: &Machine, report: &Report, mode: WalMode, name: &str, rows: u32) -> Result<(), String> {
    let dir = tempfile::tempdir_in(".").map_err(|error| error.to_string())?;
    let config = JournalConfig {
        files: Arc::new(SystemFiles),
        clock: Arc::new(SystemClock::default()),
        dir: dir.path().to_path_buf(),
        mode,
        wal_max_size: 64 << 20,
        instance_uuid: "00000000-0000-0000-0000-000000000001".to_string(),
        replica_id: 1,
        in_flight_max: 16,
        queue_bytes_max: 16 << 20,
        prepare_bytes: 16 << 20,
        rewrite_bytes: u64::MAX,
    };
    let mut journal = Journal::open(config, Vclock::default()).map_err(|error| error.to_string())?;
    let body = [0xc0; ROW_BYTES];
    let begun = Instant::now();
    for _ in 0..GROUPS {
        for _ in 0..rows {
            journal.begin();
            journal.row(2, 0, |out| out.extend_from_slice(&body));
            journal.commit().map_err(|error| error.to_string())?;
        }
        let appended = journal.appended();
        journal.wait(appended).map_err(|error| error.to_string())?;
    }
    let ns = begun.elapsed().as_nanos() as f64 / f64::from(GROUPS * rows);
    let copy_ns = ROW_BYTES as f64 * machine.copy_byte_ns;
    let (once_ns, bound) = match mode {
        WalMode::Fsync => (machine.sync_ns, "a synced page for each group, rows copied"),
        _ => (machine.call_ns, "a system call for each group, rows copied"),
    };
    report.print(&format!("log append, groups of {rows}, {name}"), ns, once_ns / f64::from(rows) + copy_ns, bound);
    journal.close().map_err(|error| error.to_string())
}
