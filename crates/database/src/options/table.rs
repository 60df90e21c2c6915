//! The table of options. Entries stand in the order of `lycosa serve --help`; behind them what only `box.cfg` takes.

use super::Change::{AtOnce, NextStart, OnlyMore, Refused};
use super::{CfgDefault, Field, Kind, Spec};
use crate::Config;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Largest page that an index on disk may have, in bytes: it is read and unpacked as a whole.
pub const PAGE_SIZE_MAX: u64 = 16 << 20;
/// More runs, or a larger ratio, than any index has.
const RUN_COUNT_MAX: u64 = 1_000_000;
/// Connections read no further ahead than this, as far as Tarantool's `readahead` is taken.
const READAHEAD_MAX: f64 = 4_294_967_295.0;

/// With less than this nothing could ever be written.
fn at_least(value: u64, least: u64, words: &str) -> Result<(), String> {
    ensure(value >= least, words)
}

fn ensure(is_good: bool, words: &str) -> Result<(), String> {
    if is_good { Ok(()) } else { Err(words.to_string()) }
}

fn check_page_size(config: &Config) -> Result<(), String> {
    let page = config.vinyl_page_size;
    let fits = page > 0 && (config.vinyl_range_size == 0 || page <= config.vinyl_range_size);
    ensure(fits, "must be greater than 0 and less than or equal to vinyl_range_size")?;
    ensure(page <= PAGE_SIZE_MAX, "must be at most 16777216")
}

fn check_cache(config: &Config) -> Result<(), String> {
    // The tables of the cache are made for all that it may hold.
    let memory = runtime::physical_memory();
    let is_good = config.vinyl_cache <= memory;
    if is_good { Ok(()) } else { Err(format!("must be at most the machine's memory ({memory} bytes)")) }
}

fn check_run_count(config: &Config) -> Result<(), String> {
    ensure(config.vinyl_run_count_per_level > 0, "must be greater than 0")?;
    ensure(config.vinyl_run_count_per_level <= RUN_COUNT_MAX, "must be at most 1000000")
}

fn check_size_ratio(config: &Config) -> Result<(), String> {
    ensure(config.vinyl_run_size_ratio <= RUN_COUNT_MAX as f64, "must be at most 1000000")?;
    ensure(config.vinyl_run_size_ratio > 1.0, "must be greater than 1")
}

fn check_bloom(config: &Config) -> Result<(), String> {
    let share = config.vinyl_bloom_fpr;
    ensure(share > 0.0 && share <= 1.0, "must be greater than 0 and less than or equal to 1")
}

/// An option that is taken so that configurations written for Tarantool load.
const fn inert(name: &'static str, types: &'static str) -> Spec {
    Spec::new(name, Kind::Inert(types)).cfg(Refused)
}

/// The same for one that may change.
const fn inert_dynamic(name: &'static str, types: &'static str) -> Spec {
    Spec::new(name, Kind::Inert(types)).cfg(AtOnce)
}

const fn number(number: f64) -> CfgDefault {
    CfgDefault::Number(number)
}

/// All options.
pub static OPTIONS: &[Spec] = &[
    Spec::new("listen", Kind::Addresses)
        .flag("Address and port of the binary protocol, or the path of a unix socket as `unix/:/path`; may be given several times, or with commas between")
        .more("`postgres://`, `mysql://`, `redis://`, `memcached://` or `tyrant://` before an address opens it to programs of these. One that other machines reach is refused while no user has a password. A list in the file and in `box.cfg`, where an \
               element may be a table of `uri` and `params`, too")
        .default("127.0.0.1:3301")
        .cfg(AtOnce)
        .cfg_text("none: Lycosa listens nowhere"),
    Spec::new("work_dir", Kind::Path)
        .flag("Directory of snapshots and logs, made if it does not exist")
        .default("./data")
        .cfg(Refused)
        .cfg_text("`.`"),
    Spec::new("wal_mode", Kind::OneOf(&["fsync", "write", "none"]))
        .flag("When a write is acknowledged: fsync (on disk), write (with the operating system), none (not logged)")
        .cfg(Refused)
        .cfg_text("`fsync` (Tarantool: `write`)")
        .field(|config| Field::WalMode(&mut config.wal_mode)),
    Spec::new("memtx_memory", Kind::Size)
        .flag("Memory for rows and indexes")
        .more("At the limit Lycosa refuses writes that need memory with error 2 (ER_MEMORY_ISSUE); [reads and deletes go on](reliability.md#limits)")
        .cfg(OnlyMore)
        .cfg_default(number(268_435_456.0))
        .field(|config| Field::Number(&mut config.memtx_memory))
        .check(|config| at_least(config.memtx_memory, MIB, "must be at least 1 MiB")),
    Spec::new("memtx_max_tuple_size", Kind::Size)
        .flag("Largest row")
        .cfg(AtOnce)
        .field(|config| Field::Number(&mut config.memtx_max_tuple_size))
        .check(|config| at_least(config.memtx_max_tuple_size, KIB, "must be at least 1 KiB")),
    Spec::new("vinyl_memory", Kind::Size)
        .flag("Write buffer of spaces on disk")
        .more(
            "At 40 % of it the largest space is written to files; from 70 % on, and while merges lag behind, writers are slowed down. One \
             transaction may write half of it. Building an index takes up to 16 MiB for itself, all builds together up to a quarter of it",
        )
        .cfg(OnlyMore)
        .field(|config| Field::Number(&mut config.vinyl_memory))
        .check(|config| at_least(config.vinyl_memory, MIB, "must be at least 1 MiB")),
    Spec::new("vinyl_cache", Kind::Size)
        .flag("Read cache of spaces on disk: blocks and rows")
        .cfg(AtOnce)
        .field(|config| Field::Number(&mut config.vinyl_cache))
        .check(check_cache),
    Spec::new("read_view_memory", Kind::Size)
        .flag("What transactions that only read may hold of rows that others have changed since")
        .more("At the limit the oldest ends with error 130 (ER_READ_VIEW_ABORTED)")
        .cfg(AtOnce)
        .field(|config| Field::Number(&mut config.read_view_memory)),
    Spec::new("vinyl_max_tuple_size", Kind::Size)
        .flag("Largest row of a space on disk")
        .cfg(AtOnce)
        .field(|config| Field::Number(&mut config.vinyl_max_tuple_size))
        .check(|config| at_least(config.vinyl_max_tuple_size, KIB, "must be at least 1 KiB")),
    Spec::new("vinyl_page_size", Kind::Whole)
        .flag("Bytes of a block on disk; an index may have its own, as for the next four options")
        .more("The index calls them `page_size`, `range_size`, `run_count_per_level`, `run_size_ratio`, `bloom_fpr`")
        .cfg(Refused)
        .cfg_text("4096 (Tarantool: 8192); an index keeps the value it was created with until `index:alter` changes it, as for the next four")
        .field(|config| Field::Number(&mut config.vinyl_page_size))
        .check(check_page_size),
    Spec::new("vinyl_range_size", Kind::Whole)
        .flag("Bytes of a key range, the part of an index that is merged at once; 0 lets the engine choose")
        .more("The engine chooses a sixty-fourth of the index, but at least 4 MiB and at most 128 MiB")
        .cfg(Refused)
        // Unset in Tarantool, and shown so until a script says otherwise.
        .cfg_default(CfgDefault::Absent)
        .cfg_text("none: the engine chooses")
        .field(|config| Field::Number(&mut config.vinyl_range_size)),
    Spec::new("vinyl_run_count_per_level", Kind::Whole)
        .flag("Runs of similar size before they are merged")
        .cfg(Refused)
        .cfg_text("4 (Tarantool: 2)")
        .field(|config| Field::Number(&mut config.vinyl_run_count_per_level))
        .check(check_run_count),
    Spec::new("vinyl_run_size_ratio", Kind::Fraction)
        .flag("How many times larger a run may be and still count as of similar size")
        .cfg(Refused)
        .field(|config| Field::Fraction(&mut config.vinyl_run_size_ratio))
        .check(check_size_ratio),
    Spec::new("vinyl_bloom_fpr", Kind::Fraction)
        .flag("False-positive rate of a run's Bloom filter; 1 for no filter")
        .cfg(Refused)
        .cfg_text("0.01 (Tarantool: 0.05)")
        .field(|config| Field::Fraction(&mut config.vinyl_bloom_fpr))
        .check(check_bloom),
    Spec::new("vinyl_write_threads", Kind::Whole)
        .flag("Merges of runs at once")
        .cfg(Refused)
        .cfg_text("1 (Tarantool: 4)")
        .field(|config| Field::Count(&mut config.vinyl_write_threads))
        .check(|config| at_least(config.vinyl_write_threads as u64, 1, "must be greater than 0")),
    Spec::new("wal_max_size", Kind::Size)
        .flag("Size of a log file after which the next one begins")
        .more("If the next one cannot be created, the current one grows on")
        .cfg(Refused)
        .field(|config| Field::Number(&mut config.wal_max_size)),
    Spec::new("checkpoint_interval", Kind::Number)
        .flag("Seconds between checkpoints, 0 for none")
        .cfg(AtOnce)
        .field(|config| Field::Number(&mut config.checkpoint_interval)),
    Spec::new("checkpoint_count", Kind::Number)
        .flag("Snapshots kept, with the logs that they need")
        .cfg(AtOnce)
        .cfg_bounds(1.0, f64::INFINITY, "the value must not be less than one")
        .field(|config| Field::Count(&mut config.checkpoint_count))
        .check(|config| at_least(config.checkpoint_count as u64, 1, "must be at least 1")),
    Spec::new("checkpoint_wal_threshold", Kind::Size)
        .flag("Bytes of log after which a checkpoint is made")
        .more("With spaces on disk a checkpoint is made after 512 MiB at the latest, or after twice the size of the rows in memory if that is more")
        .default("no limit")
        .cfg(AtOnce)
        .cfg_default(number(1e18))
        .cfg_text("10^18")
        .field(|config| Field::Number(&mut config.checkpoint_wal_threshold)),
    Spec::new("snap_io_rate_limit", Kind::Size)
        .flag("Bytes a second that a checkpoint may write")
        .default("no limit")
        .cfg(AtOnce)
        .cfg_default(CfgDefault::Absent)
        .cfg_text("none; in megabytes a second, as in Tarantool")
        .cfg_unit(MIB)
        .field(|config| Field::Number(&mut config.snap_io_rate_limit)),
    Spec::new("force_recovery", Kind::Switch)
        .flag("Start although files are damaged, losing exactly what the refusal announced")
        .more("See [damage](reliability.md#damage)")
        .cfg(NextStart)
        .field(|config| Field::Switch(&mut config.force_recovery)),
    Spec::new("read_only", Kind::Switch)
        .flag("Refuse all writes")
        .cfg(AtOnce)
        .field(|config| Field::Switch(&mut config.read_only)),
    Spec::new("net_msg_max", Kind::Number)
        .flag("Requests in fibers at once; while there are more, nothing is read")
        .default("768")
        .cfg(AtOnce)
        .cfg_default(number(768.0))
        .cfg_text("768; without effect")
        .cfg_bounds(2.0, f64::INFINITY, "minimal value is 2"),
    Spec::new("fibers_max", Kind::Number)
        .flag("Fibers that procedures may have at once, beside the server's own")
        .more(
            "One more is refused with error 2 (ER_MEMORY_ISSUE). A Linux process has room for about 30,000 in all; more need a higher `vm.max_map_count`",
        )
        .default("25000")
        .cfg(Refused)
        .cfg_text("25000"),
    Spec::new("log", Kind::Path)
        .flag("File for the log of events, opened anew on SIGHUP")
        .default("standard error")
        .cfg(Refused)
        .cfg_text("standard error"),
    Spec::new("log_level", Kind::Word)
        .flag("What is logged: error, warn, info, debug")
        .more("Or Tarantool's numbers 0 to 7")
        .default("info")
        .cfg(AtOnce)
        .cfg_default(number(5.0))
        .cfg_type_error("must be a number or a string"),
    Spec::new("log_format", Kind::OneOf(&["plain", "json"]))
        .flag("How a line of the log looks: plain or json")
        .default("plain")
        .cfg(AtOnce)
        .cfg_default(CfgDefault::Text("plain"))
        .cfg_type_error("expected json,plain"),
    Spec::new("too_long_threshold", Kind::Seconds)
        .flag("Seconds after which a request is logged as slow, with where its time went")
        .more("See [the log of events](observability.md#the-log-of-events)")
        .cfg(AtOnce)
        .field(|config| Field::Seconds(&mut config.too_long_threshold_ns)),
    Spec::new("txn_timeout", Kind::Seconds)
        .flag("Seconds after which a transaction that is still open is rolled back when it waits")
        .more("`box.begin{timeout = ...}` and BEGIN of the protocol may ask for another")
        .default("no bound")
        .cfg(AtOnce)
        .cfg_default(CfgDefault::Absent)
        .cfg_text("none; Tarantool: 100 years")
        .cfg_bounds(f64::MIN_POSITIVE, f64::INFINITY, "must be greater than 0")
        .field(|config| Field::Seconds(&mut config.txn_timeout_ns)),
    Spec::new("txn_isolation", Kind::OneOf(&["best-effort", "read-confirmed", "read-committed", "linearizable"]))
        .flag("What answers inside of a transaction may show: only what no crash could take back, or (read-committed) all that is committed")
        .more("`box.begin{txn_isolation = ...}` and BEGIN of the protocol may ask for another; see [isolation](isolation.md#levels)")
        .cfg(AtOnce)
        .field(|config| Field::Isolation(&mut config.txn_isolation)),
    Spec::new("lock_timeout", Kind::Seconds)
        .flag("Seconds after which whoever waits for a locked row is refused with error 78 (ER_TIMEOUT)")
        .more("`index:get(key, {for_update = true, timeout = ...})` may ask for another; see [isolation](isolation.md#locks)")
        .default("no bound")
        .cfg(AtOnce)
        .cfg_default(CfgDefault::Absent)
        .cfg_text("none; Lycosa's own")
        .cfg_bounds(f64::MIN_POSITIVE, f64::INFINITY, "must be greater than 0")
        .field(|config| Field::Seconds(&mut config.lock_timeout_ns)),
    Spec::new("pid_file", Kind::Path)
        .flag("File that gets the number of the process; removed at a clean stop")
        .default("none")
        .cfg(Refused)
        .cfg_text("none"),
    Spec::new("lua_memory", Kind::Size).flag("Memory for Lua itself").default("2GiB"),
    Spec::new("lua_slice_max", Kind::Seconds)
        .flag("Seconds that a procedure may run without waiting before it is ended, 0 for no bound")
        .default("5"),
    Spec::new("script", Kind::Path)
        .flag("Lua script run before the server listens; an error in it ends the server")
        .default("none"),
    // Only box.cfg.
    Spec::new("wal_dir", Kind::Path)
        .cfg(Refused)
        .cfg_default(CfgDefault::Text("."))
        .field(|config| Field::Path(&mut config.wal_dir)),
    Spec::new("memtx_dir", Kind::Path)
        .cfg(Refused)
        .cfg_default(CfgDefault::Text("."))
        .field(|config| Field::Path(&mut config.memtx_dir)),
    Spec::new("vinyl_dir", Kind::Path)
        .cfg(Refused)
        .cfg_default(CfgDefault::Text("."))
        .cfg_text("`.`; the files are in its directory `lsm`")
        .field(|config| Field::Path(&mut config.vinyl_dir)),
    Spec::new("wal_queue_max_size", Kind::Size)
        .cfg(NextStart)
        .cfg_text("16777216: bytes of transactions that may wait for the disk; while there are more, connections are not read")
        .field(|config| Field::Number(&mut config.wal_queue_max_size))
        .check(|config| at_least(config.wal_queue_max_size, 64 * KIB, "must be at least 64 KiB")),
    Spec::new("instance_uuid", Kind::Text)
        .cfg(Refused)
        .cfg_text("none; taken in an empty directory")
        .field(|config| Field::Text(&mut config.instance_uuid)),
    Spec::new("replicaset_uuid", Kind::Text)
        .cfg(Refused)
        .cfg_text("none; taken in an empty directory")
        .field(|config| Field::Text(&mut config.replicaset_uuid)),
    // Nothing looks at these, so that configurations written for Tarantool load.
    inert("background", "boolean").cfg_default(CfgDefault::Switch(false)),
    inert("username", "string"),
    inert_dynamic("custom_proc_title", "string"),
    inert_dynamic("readahead", "number").cfg_default(number(16320.0)).cfg_bounds(
        128.0,
        READAHEAD_MAX,
        "specified value is out of bounds",
    ),
    inert_dynamic("io_collect_interval", "number"),
    inert_dynamic("worker_pool_threads", "number").cfg_default(number(4.0)),
    inert("iproto_threads", "number"),
    inert("coredump", "boolean").cfg_default(CfgDefault::Switch(false)),
    inert("strip_core", "boolean").cfg_default(CfgDefault::Switch(true)),
    inert("log_nonblock", "boolean").cfg_default(CfgDefault::Switch(true)),
    inert_dynamic("sql_cache_size", "number").cfg_default(number(5_242_880.0)),
    inert("slab_alloc_factor", "number").cfg_default(number(1.05)),
    inert("slab_alloc_granularity", "number"),
    inert("memtx_allocator", "string"),
    inert("memtx_min_tuple_size", "number").cfg_default(number(16.0)),
    inert("memtx_use_mvcc_engine", "boolean"),
    inert_dynamic("wal_dir_rescan_delay", "number").cfg_default(number(2.0)),
    inert("wal_cleanup_delay", "number").cfg_default(number(14400.0)),
    inert("vinyl_read_threads", "number").cfg_default(number(1.0)),
    inert_dynamic("vinyl_timeout", "number").cfg_default(number(60.0)),
    inert("hot_standby", "boolean").cfg_default(CfgDefault::Switch(false)),
    inert_dynamic("feedback_enabled", "boolean").cfg_default(CfgDefault::Switch(false)),
    inert("feedback_host", "string"),
    inert("feedback_interval", "number"),
    inert_dynamic("replication", "string, number, table"),
    inert_dynamic("replication_timeout", "number").cfg_default(number(1.0)).cfg_bounds(
        f64::MIN_POSITIVE,
        f64::INFINITY,
        "the value must be greather than 0",
    ),
    inert_dynamic("replication_connect_timeout", "number").cfg_default(number(30.0)),
    inert_dynamic("replication_connect_quorum", "number"),
    inert_dynamic("replication_sync_lag", "number").cfg_default(number(10.0)),
    inert_dynamic("replication_sync_timeout", "number").cfg_default(number(300.0)),
    inert_dynamic("replication_skip_conflict", "boolean").cfg_default(CfgDefault::Switch(false)),
    inert("replication_anon", "boolean").cfg_default(CfgDefault::Switch(false)),
    inert_dynamic("replication_synchro_quorum", "number, string").cfg_default(number(1.0)),
    inert_dynamic("replication_synchro_timeout", "number").cfg_default(number(5.0)),
    inert_dynamic("election_mode", "string").cfg_default(CfgDefault::Text("off")),
    inert_dynamic("election_timeout", "number").cfg_default(number(5.0)),
];
