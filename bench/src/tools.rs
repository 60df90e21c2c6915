//! Measurements of others that need no server: RocksDB in the process of its own `db_bench`, and the device itself by `fio`.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Bytes of a key of RocksDB, as of an unsigned number of eight bytes.
const KEY_BYTES: u32 = 8;
/// Bytes of a value.
const VALUE_BYTES: u32 = 100;
/// Bits of a filter for each key: about one wrong answer in a hundred, as the others have it.
const FILTER_BITS: u32 = 10;

/// Bytes of a row of RocksDB as its user counts them.
pub(crate) const ROCKSDB_ROW_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// What RocksDB may take of memory. `None`: its defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RocksDbMemory {
    pub(crate) write_bytes: u64,
    pub(crate) cache_bytes: u64,
}

/// A run of `db_bench`.
pub(crate) struct RocksDb<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) rows: u64,
    pub(crate) memory: Option<RocksDbMemory>,
}

/// What `db_bench` printed.
#[derive(Debug, Default)]
pub(crate) struct RocksDbReport {
    text: String,
}

impl RocksDb<'_> {
    /// Runs benchmarks by their names, such as `fillrandom,stats`, with further options. Its log is on, not synced.
    pub(crate) fn run(&self, benchmarks: &str, options: &[String]) -> Result<RocksDbReport, String> {
        let mut command = Command::new("db_bench");
        command.current_dir(self.dir).arg(format!("--benchmarks={benchmarks}"));
        command.arg("--db=data").arg(format!("--num={}", self.rows)).arg("--disable_wal=0");
        command.arg(format!("--key_size={KEY_BYTES}")).arg(format!("--value_size={VALUE_BYTES}"));
        // Values that cannot be packed, as the others get them; its own can by half.
        command.arg("--compression_ratio=1");
        if let Some(RocksDbMemory { write_bytes, cache_bytes }) = self.memory {
            // Two of them: one is written while the other one is brought to disk.
            command.arg(format!("--write_buffer_size={}", write_bytes / 2)).arg(format!("--cache_size={cache_bytes}"));
            command.arg(format!("--bloom_bits={FILTER_BITS}"));
        }
        let output = command.args(options).output().map_err(|error| format!("db_bench: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(RocksDbReport { text });
        }
        let told = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "db_bench {benchmarks} ended with {}: {}",
            output.status,
            told.lines().last().unwrap_or("it said nothing")
        ))
    }
}

impl RocksDbReport {
    /// Operations a second of a benchmark, from `fillrandom   :       6.067 micros/op 164820 ops/sec ...`.
    pub(crate) fn per_second(&self, benchmark: &str) -> Result<f64, String> {
        let of_it =
            self.text.lines().filter(|line| line.split(':').next().is_some_and(|name| name.trim() == benchmark));
        let rate =
            of_it.filter_map(|line| line.split_once("micros/op")?.1.trim().split(' ').next()?.parse().ok()).next();
        rate.ok_or_else(|| format!("db_bench says nothing about {benchmark}"))
    }

    /// A percentile of the last benchmark in microseconds, from `Percentiles: P50: 1.2 ... P99.9: 20.0 ...` of `--histogram`.
    pub(crate) fn percentile(&self, name: &str) -> Option<f64> {
        let line = self.text.lines().rfind(|line| line.starts_with("Percentiles:"))?;
        line.split_once(&format!("{name}:"))?.1.trim().split(' ').next()?.parse().ok()
    }

    /// Bytes written so far for each byte that was put in: log, flushes and compactions, by `stats`.
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        let gigabytes = |head: &str, before: &str| -> Option<f64> {
            let line = self.text.lines().rfind(|line| line.starts_with(head))?;
            line.split_once(before)?.0.trim().rsplit([' ', ':']).next()?.parse().ok()
        };
        let compacted = gigabytes("Cumulative compaction:", "GB write")?;
        let logged = {
            let line = self.text.lines().rfind(|line| line.starts_with("Cumulative WAL:"))?;
            line.split_once("written:")?.1.trim().split(' ').next()?.parse::<f64>().ok()?
        };
        let put_in = {
            let line = self.text.lines().rfind(|line| line.starts_with("Cumulative writes:"))?;
            line.split_once("ingest:")?.1.trim().split(' ').next()?.parse::<f64>().ok()?
        };
        Some((compacted + logged) / put_in)
    }
}

/// Random reads of 4 KiB past the page cache: reads a second with so many of them in flight.
pub(crate) fn device_reads(dir: &Path, file_bytes: u64, depth: u32, time: Duration) -> Result<f64, String> {
    let output = Command::new("fio")
        .args(["--name=reads", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--time_based"])
        .args(["--group_reporting", "--output-format=json", "--filename=device", "--randrepeat=0"])
        .arg(format!("--size={file_bytes}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={}ms", time.as_millis()))
        .current_dir(dir)
        .output()
        .map_err(|error| format!("fio: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // A version may talk before its JSON.
    let json = text.find('{').and_then(|start| serde_json::from_str::<Value>(&text[start..]).ok());
    let rate = json.as_ref().and_then(|json| json["jobs"][0]["read"]["iops"].as_f64());
    rate.filter(|_| output.status.success()).ok_or_else(|| {
        let told = String::from_utf8_lossy(&output.stderr);
        format!("fio ended with {}: {}", output.status, told.lines().last().unwrap_or("it said nothing"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    const REPORT: &str = "\
fillrandom   :       6.067 micros/op 164820 ops/sec 6.067 seconds 1000000 operations;   17.0 MB/s
overwrite    :       5.165 micros/op 193597 ops/sec 5.165 seconds 1000000 operations;   19.9 MB/s
Percentiles: P50: 1.05 P75: 1.71 P99: 9.11 P99.9: 21.50 P99.99: 1032.26
Cumulative compaction: 0.36 GB write, 33.05 MB/s write, 0.30 GB read, 27.20 MB/s read, 6.1 seconds
Cumulative writes: 2000K writes, 2000K keys, 2000K commit groups, 1.0 writes per commit group, ingest: 0.23 GB, 20.88 MB/s
Cumulative WAL: 2000K writes, 0 syncs, 2000000.00 writes per sync, written: 0.23 GB, 20.88 MB/s
";

    #[test]
    fn a_report_of_rocksdb_is_read() {
        let report = RocksDbReport { text: REPORT.to_string() };
        assert_eq!(report.per_second("overwrite").unwrap(), 193_597.0);
        assert!(report.per_second("readrandom").is_err());
        assert_eq!(report.percentile("P99.9"), Some(21.5));
        let amplification = report.write_amplification().unwrap();
        assert!((amplification - 0.59 / 0.23).abs() < 1e-9, "{amplification}");
    }
}
