//! Options: flags, environment variables and a TOML file, all by the same names.
//!
//! A flag wins over the environment, the environment over the file, the file over the default.

use clap::Args;
use database::Config;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use wal::WalMode;

/// A request that takes longer is logged, unless the configuration says otherwise.
pub(crate) const TOO_LONG_THRESHOLD_DEFAULT: f64 = 0.5;

/// A text; a number in the file is what it says.
fn text_or_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Text(String),
        Whole(i64),
        Fraction(f64),
    }
    Option::<Given>::deserialize(deserializer).map(|given| {
        given.map(|given| match given {
            Given::Text(text) => text,
            Given::Whole(number) => number.to_string(),
            Given::Fraction(number) => number.to_string(),
        })
    })
}

/// Options of `serve`. Sizes may be written as `512MiB` or `1GB`.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// Address and port of the binary protocol [default: 127.0.0.1:3301]
    #[arg(long, env = "LYCOSA_LISTEN")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) listen: Option<String>,
    /// Directory of snapshots and logs, made if it does not exist [default: ./data]
    #[arg(long, env = "LYCOSA_WORK_DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// When a write is acknowledged: fsync (on disk), write (with the operating system), none (not logged) [default: fsync]
    #[arg(long, env = "LYCOSA_WAL_MODE", value_parser = ["fsync", "write", "none"])]
    pub(crate) wal_mode: Option<String>,
    /// Memory for rows and indexes [default: 1GiB]
    #[arg(long, env = "LYCOSA_MEMTX_MEMORY")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) memtx_memory: Option<String>,
    /// Largest row [default: 1MiB]
    #[arg(long, env = "LYCOSA_MEMTX_MAX_TUPLE_SIZE")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) memtx_max_tuple_size: Option<String>,
    /// Memory of spaces on disk for what was written and is not in files yet [default: 128MiB]
    #[arg(long, env = "LYCOSA_VINYL_MEMORY")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) vinyl_memory: Option<String>,
    /// Memory of spaces on disk for what was read [default: 128MiB]
    #[arg(long, env = "LYCOSA_VINYL_CACHE")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) vinyl_cache: Option<String>,
    /// Largest row of a space on disk [default: 1MiB]
    #[arg(long, env = "LYCOSA_VINYL_MAX_TUPLE_SIZE")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) vinyl_max_tuple_size: Option<String>,
    /// Bytes of a block of a space on disk; an index may say otherwise, as for the following [default: 4096]
    #[arg(long, env = "LYCOSA_VINYL_PAGE_SIZE")]
    pub(crate) vinyl_page_size: Option<u64>,
    /// Bytes of a key range, 0 lets the engine choose [default: 0]
    #[arg(long, env = "LYCOSA_VINYL_RANGE_SIZE")]
    pub(crate) vinyl_range_size: Option<u64>,
    /// Runs of about one size before they are merged [default: 4]
    #[arg(long, env = "LYCOSA_VINYL_RUN_COUNT_PER_LEVEL")]
    pub(crate) vinyl_run_count_per_level: Option<u64>,
    /// How much larger a run may be and still be of about one size [default: 3.5]
    #[arg(long, env = "LYCOSA_VINYL_RUN_SIZE_RATIO")]
    pub(crate) vinyl_run_size_ratio: Option<f64>,
    /// Share of absent keys that filters do not know to be absent, 1 for no filters [default: 0.01]
    #[arg(long, env = "LYCOSA_VINYL_BLOOM_FPR")]
    pub(crate) vinyl_bloom_fpr: Option<f64>,
    /// Merges of files of spaces on disk at once [default: 1]
    #[arg(long, env = "LYCOSA_VINYL_WRITE_THREADS")]
    pub(crate) vinyl_write_threads: Option<u64>,
    /// Size of a log file after which the next is begun [default: 256MiB]
    #[arg(long, env = "LYCOSA_WAL_MAX_SIZE")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) wal_max_size: Option<String>,
    /// Seconds between checkpoints, 0 for none [default: 3600]
    #[arg(long, env = "LYCOSA_CHECKPOINT_INTERVAL")]
    pub(crate) checkpoint_interval: Option<u64>,
    /// Snapshots kept [default: 2]
    #[arg(long, env = "LYCOSA_CHECKPOINT_COUNT")]
    pub(crate) checkpoint_count: Option<usize>,
    /// Bytes of log after which a checkpoint is made [default: no limit]
    #[arg(long, env = "LYCOSA_CHECKPOINT_WAL_THRESHOLD")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) checkpoint_wal_threshold: Option<String>,
    /// Bytes a second that a checkpoint may write [default: no limit]
    #[arg(long, env = "LYCOSA_SNAP_IO_RATE_LIMIT")]
    #[serde(default, deserialize_with = "text_or_number")]
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
    /// Fibers that procedures may have at once; the server's own are beside them [default: 25000]
    #[arg(long, env = "LYCOSA_FIBERS_MAX")]
    pub(crate) fibers_max: Option<usize>,
    /// File for the log of events instead of standard error; opened anew on SIGHUP
    #[arg(long, env = "LYCOSA_LOG")]
    pub(crate) log: Option<PathBuf>,
    /// What is logged: error, warn, info, debug [default: info]
    #[arg(long, env = "LYCOSA_LOG_LEVEL")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) log_level: Option<String>,
    /// How a line of the log looks: plain or json [default: plain]
    #[arg(long, env = "LYCOSA_LOG_FORMAT", value_parser = ["plain", "json"])]
    pub(crate) log_format: Option<String>,
    /// Seconds after which a request is logged as slow, with where its time went [default: 0.5]
    #[arg(long, env = "LYCOSA_TOO_LONG_THRESHOLD")]
    pub(crate) too_long_threshold: Option<f64>,
    /// File that gets the number of the process; removed at a clean stop
    #[arg(long, env = "LYCOSA_PID_FILE")]
    pub(crate) pid_file: Option<PathBuf>,
    /// Memory that Lua may have for itself [default: 2GiB]
    #[arg(long, env = "LYCOSA_LUA_MEMORY")]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) lua_memory: Option<String>,
    /// Seconds that a procedure may run without waiting before it is ended, 0 for no bound [default: 5]
    #[arg(long, env = "LYCOSA_LUA_SLICE_MAX")]
    pub(crate) lua_slice_max: Option<f64>,
    /// Directory of logs, if it is another one. Only through `box.cfg`.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) wal_dir: Option<PathBuf>,
    /// Directory of snapshots, if it is another one. Only through `box.cfg`.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) memtx_dir: Option<PathBuf>,
    /// Directory of spaces on disk, if it is another one. Only through `box.cfg`.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) vinyl_dir: Option<PathBuf>,
    /// Identities to take in an empty directory. Only through `box.cfg`.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) instance_uuid: Option<String>,
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) replicaset_uuid: Option<String>,
    /// Bytes of transactions that may wait for the disk. Only through `box.cfg`.
    #[arg(skip)]
    #[serde(skip)]
    #[serde(default, deserialize_with = "text_or_number")]
    pub(crate) wal_queue_max_size: Option<String>,
    /// Lua script run before the server listens
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
        fill!(self, file: listen, work_dir, wal_mode, memtx_memory, memtx_max_tuple_size, vinyl_memory, vinyl_cache,
            vinyl_max_tuple_size, vinyl_page_size, vinyl_range_size, vinyl_run_count_per_level, vinyl_run_size_ratio,
            vinyl_bloom_fpr, vinyl_write_threads, wal_max_size,
            checkpoint_interval, checkpoint_count, checkpoint_wal_threshold, snap_io_rate_limit, net_msg_max, fibers_max, log,
            log_level, log_format, too_long_threshold, pid_file, lua_memory, lua_slice_max, script);
        Ok(self)
    }

    /// Everything that can be told of the options without starting. Errors: the first one that is wrong.
    pub(crate) fn check(&self) -> Result<Config, String> {
        let config = self.database()?;
        self.lua_memory_bytes()?;
        crate::logging::level(self.log_level.as_deref().unwrap_or("info"))?;
        crate::logging::is_json(self.log_format.as_deref().unwrap_or("plain"))?;
        if let Some(address) = &self.listen {
            let host_and_port = address.rsplit_once('@').map_or(address.as_str(), |(_, rest)| rest);
            runtime::net::Address::resolve(host_and_port)
                .map_err(|error| format!("cannot listen at {address}: {error}"))?;
        }
        Ok(config)
    }

    /// Directory and sizes in a line.
    pub(crate) fn summary(&self, config: &Config) -> String {
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        let dir = std::path::absolute(&config.wal_dir).unwrap_or_else(|_| config.wal_dir.clone());
        format!(
            "directory {}, wal_mode {}, memory for rows {}, for writes of spaces on disk {}, for reads of them {}, for Lua {}",
            dir.display(),
            self.wal_mode.as_deref().unwrap_or("fsync"),
            mib(config.memtx_memory),
            mib(config.vinyl_memory),
            mib(config.vinyl_cache),
            mib(self.lua_memory_bytes().ok().flatten().unwrap_or(lua::LuaConfig::default().memory) as u64),
        )
    }

    /// With the defaults of `lycosa serve`.
    pub(crate) fn for_serve(&self) -> Self {
        let mut options = self.clone();
        options.listen.get_or_insert_with(|| "127.0.0.1:3301".to_string());
        options.work_dir.get_or_insert_with(|| PathBuf::from("data"));
        options
    }

    /// Bytes that Lua may have, if they are given.
    pub(crate) fn lua_memory_bytes(&self) -> Result<Option<usize>, String> {
        match &self.lua_memory {
            None => Ok(None),
            Some(text) => match parse_size(text) {
                Some(bytes) => Ok(Some(bytes as usize)),
                None => Err(format!("Incorrect value for option 'lua_memory': '{text}' is no size")),
            },
        }
    }

    /// The options as `box.cfg` shows them: a msgpack map by Tarantool's names.
    pub(crate) fn shown(&self) -> Vec<u8> {
        use tuple::msgpack::{encode_bool, encode_f64, encode_map, encode_str, encode_uint};
        let Ok(config) = self.database() else { return vec![0x80] };
        let texts = [
            ("listen", self.listen.clone().unwrap_or_default()),
            ("wal_dir", config.wal_dir.display().to_string()),
            ("memtx_dir", config.memtx_dir.display().to_string()),
            ("vinyl_dir", config.vinyl_dir.display().to_string()),
            ("wal_mode", self.wal_mode.clone().unwrap_or_else(|| "fsync".to_string())),
            ("log_format", self.log_format.clone().unwrap_or_else(|| "plain".to_string())),
        ];
        let numbers = [
            ("memtx_memory", config.memtx_memory),
            ("memtx_max_tuple_size", config.memtx_max_tuple_size),
            ("vinyl_memory", config.vinyl_memory),
            ("vinyl_cache", config.vinyl_cache),
            ("vinyl_max_tuple_size", config.vinyl_max_tuple_size),
            ("vinyl_page_size", config.vinyl_page_size),
            ("vinyl_range_size", config.vinyl_range_size),
            ("vinyl_run_count_per_level", config.vinyl_run_count_per_level),
            ("vinyl_write_threads", config.vinyl_write_threads as u64),
            ("wal_max_size", config.wal_max_size),
            ("log_level", crate::logging::number(self.log_level.as_deref().unwrap_or("info"))),
            ("checkpoint_interval", config.checkpoint_interval),
            ("checkpoint_count", config.checkpoint_count as u64),
            ("checkpoint_wal_threshold", config.checkpoint_wal_threshold),
        ];
        let fractions = [
            ("vinyl_run_size_ratio", config.vinyl_run_size_ratio),
            ("vinyl_bloom_fpr", config.vinyl_bloom_fpr),
            ("too_long_threshold", self.too_long_threshold.unwrap_or(TOO_LONG_THRESHOLD_DEFAULT)),
        ];
        let flags = [("read_only", config.read_only), ("force_recovery", config.force_recovery)];
        let mut out = Vec::new();
        encode_map(&mut out, (texts.len() + numbers.len() + fractions.len() + flags.len()) as u32);
        for (name, text) in &texts {
            encode_str(&mut out, name.as_bytes());
            encode_str(&mut out, text.as_bytes());
        }
        for (name, number) in numbers {
            encode_str(&mut out, name.as_bytes());
            encode_uint(&mut out, number);
        }
        for (name, fraction) in fractions {
            encode_str(&mut out, name.as_bytes());
            encode_f64(&mut out, fraction);
        }
        for (name, flag) in flags {
            encode_str(&mut out, name.as_bytes());
            encode_bool(&mut out, flag);
        }
        out
    }

    /// The options with what `box.cfg` was given over them: a msgpack map by Tarantool's names, nil for "no longer". Names that have
    /// nothing to act on here are passed over. Errors: name and reason.
    pub(crate) fn with_changes(&self, changes: &[u8]) -> Result<Self, (String, String)> {
        use tuple::msgpack::{Kind, Reader};
        let mut options = self.clone();
        let malformed = |_| ("options".to_string(), "malformed".to_string());
        let mut reader = Reader::new(changes);
        for _ in 0..reader.read_map().map_err(malformed)? {
            let name = String::from_utf8_lossy(reader.read_str().map_err(malformed)?).into_owned();
            // Every value as text: the names know what they are.
            let text = match reader.kind().map_err(malformed)? {
                Kind::Nil => {
                    reader.read_nil().map_err(malformed)?;
                    None
                }
                Kind::Str => Some(String::from_utf8_lossy(reader.read_str().map_err(malformed)?).into_owned()),
                Kind::Bool => Some(reader.read_bool().map_err(malformed)?.to_string()),
                Kind::Uint | Kind::Int => Some(reader.read_i128().map_err(malformed)?.to_string()),
                Kind::Float | Kind::Double => Some(reader.read_double().map_err(malformed)?.to_string()),
                _ => {
                    reader.skip_checked();
                    continue;
                }
            };
            let number = || match &text {
                None => Ok(None),
                Some(text) => match text.parse::<f64>() {
                    Ok(number) if number >= 0.0 => Ok(Some(number as u64)),
                    _ => Err((name.clone(), "must be a number that is not negative".to_string())),
                },
            };
            let whole = || match &text {
                Some(text) if text.parse::<f64>().is_ok_and(|number| number.fract() != 0.0 || number > WHOLE_MAX) => {
                    Err((name.clone(), "must be a whole number".to_string()))
                }
                _ => number(),
            };
            // A float of no fraction is written without one.
            let size = || number().map(|number| number.map(|number| number.to_string()));
            let path = || text.clone().map(PathBuf::from);
            let fraction = || match &text {
                None => Ok(None),
                Some(text) => match text.parse::<f64>() {
                    Ok(number) if number > 0.0 => Ok(Some(number)),
                    _ => Err((name.clone(), "must be a number above zero".to_string())),
                },
            };
            match name.as_str() {
                "listen" => options.listen = text.filter(|text| !text.is_empty()),
                "work_dir" => options.work_dir = path(),
                "wal_dir" => options.wal_dir = path(),
                "memtx_dir" => options.memtx_dir = path(),
                "vinyl_dir" => options.vinyl_dir = path(),
                "vinyl_memory" => options.vinyl_memory = size()?,
                "vinyl_cache" => options.vinyl_cache = size()?,
                "vinyl_max_tuple_size" => options.vinyl_max_tuple_size = size()?,
                "vinyl_page_size" => options.vinyl_page_size = whole()?,
                "vinyl_range_size" => options.vinyl_range_size = whole()?,
                "vinyl_run_count_per_level" => options.vinyl_run_count_per_level = whole()?,
                "vinyl_run_size_ratio" => options.vinyl_run_size_ratio = fraction()?,
                "vinyl_bloom_fpr" => options.vinyl_bloom_fpr = fraction()?,
                "vinyl_write_threads" => options.vinyl_write_threads = whole()?,
                "wal_mode" => options.wal_mode = text,
                "memtx_memory" => options.memtx_memory = size()?,
                "memtx_max_tuple_size" => options.memtx_max_tuple_size = size()?,
                "wal_max_size" => options.wal_max_size = size()?,
                "wal_queue_max_size" => options.wal_queue_max_size = size()?,
                "checkpoint_interval" => options.checkpoint_interval = number()?,
                "checkpoint_count" => {
                    options.checkpoint_count = number()?.map(|number| number as usize);
                    if options.checkpoint_count == Some(0) {
                        return Err((name, "the value must not be less than one".to_string()));
                    }
                }
                "checkpoint_wal_threshold" => options.checkpoint_wal_threshold = size()?,
                // Tarantool's unit is a megabyte.
                "snap_io_rate_limit" => {
                    options.snap_io_rate_limit = number()?.map(|number| (number << 20).to_string());
                }
                "force_recovery" => options.force_recovery = text.as_deref() == Some("true"),
                "read_only" => options.read_only = text.as_deref() == Some("true"),
                "net_msg_max" => options.net_msg_max = number()?.map(|number| number as usize),
                "fibers_max" => options.fibers_max = number()?.map(|number| number as usize),
                "log" => options.log = path(),
                "log_level" => {
                    if text.as_deref().is_some_and(|text| crate::logging::level(text).is_err()) {
                        return Err((name, "expected crit,warn,info,debug,syserror,verbose,fatal,error".to_string()));
                    }
                    options.log_level = text;
                }
                "log_format" => options.log_format = text,
                // At zero and below it every request is too long.
                "too_long_threshold" => {
                    let seconds = text.as_deref().map(str::parse::<f64>).transpose();
                    options.too_long_threshold = seconds.map_err(|_| (name, "must be a number".to_string()))?;
                }
                "pid_file" => options.pid_file = path(),
                "instance_uuid" => options.instance_uuid = text,
                "replicaset_uuid" => options.replicaset_uuid = text,
                _ => {}
            }
        }
        Ok(options)
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
        let config = Config {
            wal_dir: self.wal_dir.clone().unwrap_or_else(|| dir.clone()),
            memtx_dir: self.memtx_dir.clone().unwrap_or_else(|| dir.clone()),
            vinyl_dir: self.vinyl_dir.clone().unwrap_or(dir),
            vinyl_memory: size("vinyl_memory", &self.vinyl_memory, default.vinyl_memory)?,
            vinyl_cache: size("vinyl_cache", &self.vinyl_cache, default.vinyl_cache)?,
            vinyl_max_tuple_size: size(
                "vinyl_max_tuple_size",
                &self.vinyl_max_tuple_size,
                default.vinyl_max_tuple_size,
            )?,
            vinyl_page_size: self.vinyl_page_size.unwrap_or(default.vinyl_page_size),
            vinyl_range_size: self.vinyl_range_size.unwrap_or(default.vinyl_range_size),
            vinyl_run_count_per_level: self.vinyl_run_count_per_level.unwrap_or(default.vinyl_run_count_per_level),
            vinyl_run_size_ratio: self.vinyl_run_size_ratio.unwrap_or(default.vinyl_run_size_ratio),
            vinyl_bloom_fpr: self.vinyl_bloom_fpr.unwrap_or(default.vinyl_bloom_fpr),
            vinyl_write_threads: self
                .vinyl_write_threads
                .map_or(default.vinyl_write_threads, |threads| threads as usize),
            wal_queue_max_size: size("wal_queue_max_size", &self.wal_queue_max_size, default.wal_queue_max_size)?,
            instance_uuid: self.instance_uuid.clone(),
            replicaset_uuid: self.replicaset_uuid.clone(),
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
            too_long_threshold_ns: (self.too_long_threshold.unwrap_or(TOO_LONG_THRESHOLD_DEFAULT) * 1e9) as u64,
            force_recovery: self.force_recovery,
            read_only: self.read_only,
            ..default
        };
        check_disk(&config)?;
        check_bounds(&config)?;
        Ok(config)
    }
}

/// With less than this nothing could ever be written, and more than this cannot be had.
fn check_bounds(config: &Config) -> Result<(), String> {
    const MIB: u64 = 1 << 20;
    for (name, value, least, words) in [
        ("memtx_memory", config.memtx_memory, MIB, "must be at least 1 MiB"),
        ("vinyl_memory", config.vinyl_memory, MIB, "must be at least 1 MiB"),
        ("wal_queue_max_size", config.wal_queue_max_size, 64 << 10, "must be at least 64 KiB"),
        ("checkpoint_count", config.checkpoint_count as u64, 1, "must be at least 1"),
        ("memtx_max_tuple_size", config.memtx_max_tuple_size, 1024, "must be at least 1 KiB"),
        ("vinyl_max_tuple_size", config.vinyl_max_tuple_size, 1024, "must be at least 1 KiB"),
    ] {
        if value < least {
            return Err(format!("Incorrect value for option '{name}': {words}"));
        }
    }
    // The tables of the cache are made for all that it may hold.
    let memory = runtime::physical_memory();
    if config.vinyl_cache > memory {
        return Err(format!(
            "Incorrect value for option 'vinyl_cache': must be at most the machine's memory ({memory} bytes)"
        ));
    }
    Ok(())
}

/// Whole numbers up to here are what they say as a double.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Largest page that an index on disk may have.
const PAGE_SIZE_MAX: u64 = 16 << 20;
/// More runs, or a larger ratio, than any index has.
const RUN_COUNT_MAX: u64 = 1_000_000;

/// What Tarantool refuses of the options of the disk engine, and what no index could be made with.
fn check_disk(config: &Config) -> Result<(), String> {
    let has_page = config.vinyl_page_size > 0
        && (config.vinyl_range_size == 0 || config.vinyl_page_size <= config.vinyl_range_size);
    let share = config.vinyl_bloom_fpr;
    for (name, is_good, wanted) in [
        ("vinyl_page_size", has_page, "must be greater than 0 and less than or equal to vinyl_range_size"),
        ("vinyl_page_size", config.vinyl_page_size <= PAGE_SIZE_MAX, "must be at most 16777216"),
        ("vinyl_run_count_per_level", config.vinyl_run_count_per_level > 0, "must be greater than 0"),
        ("vinyl_run_count_per_level", config.vinyl_run_count_per_level <= RUN_COUNT_MAX, "must be at most 1000000"),
        ("vinyl_run_size_ratio", config.vinyl_run_size_ratio <= RUN_COUNT_MAX as f64, "must be at most 1000000"),
        ("vinyl_run_size_ratio", config.vinyl_run_size_ratio > 1.0, "must be greater than 1"),
        ("vinyl_bloom_fpr", share > 0.0 && share <= 1.0, "must be greater than 0 and less than or equal to 1"),
        ("vinyl_write_threads", config.vinyl_write_threads > 0, "must be greater than 0"),
    ] {
        if !is_good {
            return Err(format!("Incorrect value for option '{name}': {wanted}"));
        }
    }
    Ok(())
}

/// A text file, through the runtime.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    String::from_utf8(runtime::read_file(path)?).map_err(|_| std::io::Error::other("not UTF-8"))
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
    use runtime::Randomness;

    #[test]
    fn any_file_and_any_change_is_taken_or_refused_in_words() {
        let random = runtime::SeededRandomness::new(3);
        let file = "listen = '127.0.0.1:3301'\nmemtx_memory = '512MiB'\nwal_max_size = '1.5 GB'\ncheckpoint_count = 2\n\
                    force_recovery = true\nlua_slice_max = 0.5\n";
        let mut changes = Vec::new();
        tuple::msgpack::encode_map(&mut changes, 3);
        for (name, value) in [("memtx_memory", &b"\xce\x10\0\0\0"[..]), ("listen", b"\xa43301"), ("read_only", b"\xc3")]
        {
            tuple::msgpack::encode_str(&mut changes, name.as_bytes());
            changes.extend_from_slice(value);
        }
        assert!(toml::from_str::<Options>(file).is_ok() && Options::default().with_changes(&changes).is_ok());
        let mutated = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            for _ in 0..1 + random.next_u64() % 3 {
                let at = random.next_u64() as usize % bytes.len();
                bytes[at] = random.next_u64() as u8;
            }
            bytes
        };
        for _ in 0..20_000 {
            if let Ok(options) = toml::from_str::<Options>(&String::from_utf8_lossy(&mutated(file.as_bytes()))) {
                assert!(options.database().err().is_none_or(|text| !text.is_empty()));
            }
            if let Ok(options) = Options::default().with_changes(&mutated(&changes)) {
                let _ = options.database();
                assert!(!options.shown().is_empty());
            }
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("256MiB"), Some(256 << 20));
        assert_eq!(parse_size("1.5 GB"), Some(1_500_000_000));
        assert_eq!(parse_size("77"), Some(77));
        assert_eq!(parse_size("many"), None);
    }
}
