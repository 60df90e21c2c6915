//! The options of the database, by Tarantool's names.

use crate::txn::TxnIsolation;
use std::path::PathBuf;
use wal::WalMode;

/// Options that the database itself obeys. Those of the process (listen, log ...) are `server`'s.
#[derive(Clone, Debug)]
pub struct Config {
    /// Directory of log files.
    pub wal_dir: PathBuf,
    /// Directory of snapshots.
    pub memtx_dir: PathBuf,
    /// Bytes for rows and indexes.
    pub memtx_memory: u64,
    /// Bytes of the largest row.
    pub memtx_max_tuple_size: u64,
    /// When a transaction counts as durable.
    pub wal_mode: WalMode,
    /// A log file larger than this is followed by another, in bytes.
    pub wal_max_size: u64,
    /// Bytes of transactions that may wait for the disk.
    pub wal_queue_max_size: u64,
    /// Synced log writes in flight; 0 writes on the transaction thread (simulation).
    pub wal_writes_in_flight: usize,
    /// Space of a log file that is prepared at once, in bytes.
    pub wal_prepare_bytes: u64,
    /// A completed log is rewritten without padding if that saves at least this many bytes and a quarter of the file.
    pub wal_rewrite_bytes: u64,
    /// Seconds between checkpoints; 0 for none.
    pub checkpoint_interval: u64,
    /// Snapshots kept.
    pub checkpoint_count: usize,
    /// Bytes of log after which a checkpoint is made.
    pub checkpoint_wal_threshold: u64,
    /// Bytes a second of a checkpoint; 0 for no limit.
    pub snap_io_rate_limit: u64,
    /// A request that takes longer is logged.
    pub too_long_threshold_ns: u64,
    /// A transaction that is open for longer is ended when it waits; 0 for no bound.
    pub txn_timeout_ns: u64,
    /// Who waits longer for a row that another transaction has locked is refused; 0 for no bound.
    pub lock_timeout_ns: u64,
    /// Rows that long work on the transaction thread (building an index, freeing a dropped space) handles at most before requests have their
    /// turn.
    pub slice_rows: usize,
    /// How long a commit in slices, or a statement of SQL, leaves the thread to others between two of them, at least: until the next turn of the event loop.
    pub slice_pause_ns: u64,
    /// How long a statement of SQL goes on before others have their turn; 0: they have it at each of its steps.
    pub statement_slice_ns: u64,
    /// Damage found at start is passed over and reported instead of refused.
    pub force_recovery: bool,
    /// Writes are refused.
    pub read_only: bool,
    /// Directory of the disk engine; its files are in `lsm` there.
    pub vinyl_dir: PathBuf,
    /// Bytes of memory for what was written to spaces on disk and is not there yet.
    pub vinyl_memory: u64,
    /// Bytes of memory for what was read of spaces on disk.
    pub vinyl_cache: u64,
    /// What read views of transactions may hold, in bytes.
    pub read_view_memory: u64,
    /// What transactions may see that do not say it themselves.
    pub txn_isolation: TxnIsolation,
    /// Bytes of a row of a space on disk.
    pub vinyl_max_tuple_size: u64,
    /// Bytes of a block before it is compressed, unless an index says otherwise.
    pub vinyl_page_size: u64,
    /// Bytes of a key range; 0 lets the engine choose.
    pub vinyl_range_size: u64,
    /// Runs of about one size before they are merged.
    pub vinyl_run_count_per_level: u64,
    /// How much larger runs may be and still be of about one size.
    pub vinyl_run_size_ratio: f64,
    /// Share of false answers of the filters.
    pub vinyl_bloom_fpr: f64,
    /// Compactions at once.
    pub vinyl_write_threads: usize,
    /// Size in bytes at which a new manifest of the disk engine replaces the old one.
    pub vinyl_manifest_bytes: u64,
    /// Files of the disk engine that are open at once.
    pub vinyl_open_files_max: usize,
    /// One block in this many, 1 to 16, is sampled to learn whether the machine's page cache keeps what is read through it.
    pub vinyl_page_cache_sampled_one_of: u64,
    /// Identity to take in an empty directory.
    pub instance_uuid: Option<String>,
    /// Identity of the replica set to take in an empty directory.
    pub replicaset_uuid: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            wal_dir: PathBuf::from("."),
            memtx_dir: PathBuf::from("."),
            memtx_memory: 1 << 30,
            memtx_max_tuple_size: 1 << 20,
            wal_mode: WalMode::Fsync,
            wal_max_size: 256 << 20,
            wal_queue_max_size: 16 << 20,
            wal_writes_in_flight: 8,
            wal_prepare_bytes: 1 << 20,
            wal_rewrite_bytes: 1 << 20,
            checkpoint_interval: 3600,
            checkpoint_count: 2,
            checkpoint_wal_threshold: 1 << 60,
            snap_io_rate_limit: 0,
            too_long_threshold_ns: 500_000_000,
            txn_timeout_ns: 0,
            lock_timeout_ns: 0,
            slice_rows: 2_000,
            slice_pause_ns: 1,
            statement_slice_ns: 1_000_000,
            force_recovery: false,
            read_only: false,
            vinyl_dir: PathBuf::from("."),
            vinyl_memory: 128 << 20,
            vinyl_cache: 128 << 20,
            read_view_memory: 64 << 20,
            txn_isolation: TxnIsolation::BestEffort,
            vinyl_max_tuple_size: 1 << 20,
            vinyl_page_size: 4096,
            vinyl_range_size: 0,
            vinyl_run_count_per_level: 4,
            vinyl_run_size_ratio: 3.5,
            vinyl_bloom_fpr: 0.01,
            vinyl_write_threads: 1,
            vinyl_manifest_bytes: 256 << 10,
            vinyl_open_files_max: 500,
            vinyl_page_cache_sampled_one_of: 16,
            instance_uuid: None,
            replicaset_uuid: None,
        }
    }
}
