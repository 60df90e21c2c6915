//! Durable rows: the log, snapshots, and reading both back.
//!
//! The files are Tarantool's `.xlog` and `.snap` (docs/formats/xlog.md). [`Journal`] is the seam to everything above: it takes
//! transactions, gives positions, and says up to which position everything is durable; nothing outside this crate knows what
//! that means. Who calls it: `database`, from the transaction thread.
//!
//! Invariants:
//! * `durable()` never covers a position that a crash could take back.
//! * After a failed write or sync nothing is accepted any more in this life.
//! * Bytes from disk are checked before they are believed; damage is reported with file and offset, or cut and reported
//!   where it can only be the torn end of unacknowledged writes.

mod block;
mod error;
mod journal;
mod loss;
mod newest;
mod read_ahead;
mod recovery;
mod rewrite;
mod row;
mod segment;
mod snapshot;
mod vclock;
mod vinyl;
mod writer;
mod xlog;

pub use error::WalError;
pub use journal::{Journal, JournalConfig, JournalState, PREPARED_LOG, Position, TRANSACTION_BYTES_MAX, WalMode};
pub use loss::{Loss, Lost, LostRow, Refusal, Replay, announcement};
pub use recovery::{
    Cut, FileReport, OnDamage, RecoveryReport, check_file, check_newest, recover, recover_into, refusal,
};
pub use rewrite::{Rewritten, rewrite};
pub use row::{Row, RowHeader};
pub use snapshot::{FinishedSnapshot, SnapshotWriter, remove_unfinished, snapshots};
pub use vclock::{REPLICA_MAX, Vclock};
pub use vinyl::{Bound, VinylIndex, VinylRun, for_each_statement, vinyl_indexes};
pub use xlog::{Damage, FileMeta, Flip, XlogReader, file_name, logs, remove_logs_before};
