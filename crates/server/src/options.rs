//! Options: flags, environment variables and a TOML file, all by the same names.
//!
//! A flag wins over the environment, the environment over the file, the file over the default.

use clap::Args;
use database::Config;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use wal::WalMode;

/// Options of `serve`. Sizes may be written as `512MiB` or `1GB`.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// Address and port of the binary protocol [default: 127.0.0.1:3301]
    #[arg(long, env = "LYCOSA_LISTEN")]
    pub(crate) listen: Option<String>,
    /// Directory of snapshots and logs, made if it does not exist [default: ./data]
    #[arg(long, env = "LYCOSA_WORK_DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// When a write is acknowledged: fsync (on disk), write (with the operating system), none (not logged) [default: fsync]
    #[arg(long, env = "LYCOSA_WAL_MODE", value_parser = ["fsync", "write", "none"])]
    pub(crate) wal_mode: Option<String>,
    /// Memory for rows and indexes [default: 1GiB]
    #[arg(long, env = "LYCOSA_MEMTX_MEMORY")]
    pub(crate) memtx_memory: Option<String>,
    /// Largest row [default: 1MiB]
    #[arg(long, env = "LYCOSA_MEMTX_MAX_TUPLE_SIZE")]
    pub(crate) memtx_max_tuple_size: Option<String>,
    /// Size of a log file after which the next is begun [default: 256MiB]
    #[arg(long, env = "LYCOSA_WAL_MAX_SIZE")]
    pub(crate) wal_max_size: Option<String>,
    /// Seconds between checkpoints, 0 for none [default: 3600]
    #[arg(long, env = "LYCOSA_CHECKPOINT_INTERVAL")]
    pub(crate) checkpoint_interval: Option<u64>,
    /// Snapshots kept [default: 2]
    #[arg(long, env = "LYCOSA_CHECKPOINT_COUNT")]
    pub(crate) checkpoint_count: Option<usize>,
    /// Bytes of log after which a checkpoint is made [default: no limit]
    #[arg(long, env = "LYCOSA_CHECKPOINT_WAL_THRESHOLD")]
    pub(crate) checkpoint_wal_threshold: Option<String>,
    /// Bytes a second that a checkpoint may write [default: no limit]
    #[arg(long, env = "LYCOSA_SNAP_IO_RATE_LIMIT")]
    pub(crate) snap_io_rate_limit: Option<String>,
    /// Start although files are damaged, losing what the refusal announced
    #[arg(long, env = "LYCOSA_FORCE_RECOVERY")]
    #[serde(default)]
    pub(crate) force_recovery: bool,
    /// Refuse all writes
    #[arg(long, env = "LYCOSA_READ_ONLY")]
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Requests in fibers at once [default: 768]
    #[arg(long, env = "LYCOSA_NET_MSG_MAX")]
    pub(crate) net_msg_max: Option<usize>,
    /// File for the log of events instead of standard error; opened anew on SIGHUP
    #[arg(long, env = "LYCOSA_LOG")]
    pub(crate) log: Option<PathBuf>,
    /// What is logged: error, warn, info, debug [default: info]
    #[arg(long, env = "LYCOSA_LOG_LEVEL")]
    pub(crate) log_level: Option<String>,
    /// Lua script run once the server is up
    #[arg(long, env = "LYCOSA_SCRIPT")]
    pub(crate) script: Option<PathBuf>,
}

macro_rules! fill {
    ($to:ident, $from:ident: $($field:ident),*) => { $( if $to.$field.is_none() { $to.$field = $from.$field; } )* };
}

impl Options {
    /// Adds what only the file says. Errors: the file cannot be read or has an option that does not exist.
    pub(crate) fn with_file(mut self, path: &Path) -> Result<Self, String> {
        let read = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = read_text(path).map_err(|error| read(&error))?;
        let file: Options = toml::from_str(&text).map_err(|error| read(&error))?;
        self.force_recovery |= file.force_recovery;
        self.read_only |= file.read_only;
        fill!(self, file: listen, work_dir, wal_mode, memtx_memory, memtx_max_tuple_size, wal_max_size,
            checkpoint_interval, checkpoint_count, checkpoint_wal_threshold, snap_io_rate_limit, net_msg_max, log,
            log_level, script);
        Ok(self)
    }

    /// The database's part. Errors: a size that is none.
    pub(crate) fn database(&self) -> Result<Config, String> {
        let default = Config::default();
        let dir = self.work_dir.clone().unwrap_or_else(|| PathBuf::from("data"));
        let size = |name: &str, text: &Option<String>, default: u64| match text {
            None => Ok(default),
            Some(text) => {
                parse_size(text).ok_or_else(|| format!("Incorrect value for option '{name}': '{text}' is no size"))
            }
        };
        Ok(Config {
            wal_dir: dir.clone(),
            memtx_dir: dir,
            memtx_memory: size("memtx_memory", &self.memtx_memory, default.memtx_memory)?,
            memtx_max_tuple_size: size(
                "memtx_max_tuple_size",
                &self.memtx_max_tuple_size,
                default.memtx_max_tuple_size,
            )?,
            wal_mode: match self.wal_mode.as_deref() {
                None | Some("fsync") => WalMode::Fsync,
                Some("write") => WalMode::Write,
                Some("none") => WalMode::None,
                Some(other) => return Err(format!("Incorrect value for option 'wal_mode': '{other}'")),
            },
            wal_max_size: size("wal_max_size", &self.wal_max_size, default.wal_max_size)?,
            checkpoint_interval: self.checkpoint_interval.unwrap_or(default.checkpoint_interval),
            checkpoint_count: self.checkpoint_count.unwrap_or(default.checkpoint_count),
            checkpoint_wal_threshold: size(
                "checkpoint_wal_threshold",
                &self.checkpoint_wal_threshold,
                default.checkpoint_wal_threshold,
            )?,
            snap_io_rate_limit: size("snap_io_rate_limit", &self.snap_io_rate_limit, 0)?,
            force_recovery: self.force_recovery,
            read_only: self.read_only,
            ..default
        })
    }
}

/// A text file, through the runtime.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    use runtime::{FileSystem, OpenMode, SystemFiles};
    let file = SystemFiles.open(path, OpenMode::READ)?;
    let mut bytes = vec![0; file.len()? as usize];
    let got = file.read_full_at(&mut bytes, 0)?;
    bytes.truncate(got);
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("not UTF-8"))
}

/// `1048576`, `1MiB`, `1.5 GB`.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..split].trim().parse().ok()?;
    let factor: f64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        _ => return None,
    };
    (number >= 0.0 && number.is_finite()).then_some((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("256MiB"), Some(256 << 20));
        assert_eq!(parse_size("1.5 GB"), Some(1_500_000_000));
        assert_eq!(parse_size("77"), Some(77));
        assert_eq!(parse_size("many"), None);
    }
}
