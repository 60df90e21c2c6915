//! What a request means: catalog, access, statements, transactions, commit, recovery, checkpoints, and every error a client
//! can see.
//!
//! A write on one page: [`Database::execute`] checks access and the row, applies it in all indexes, appends it to the log
//! and remembers how to undo it until the log says it is durable (`statement.rs`, `execute_alone`). Who calls it: `protocol` for connections, `lua` for
//! procedures, `server` for start and stop.
//!
//! Invariants:
//! * Everything runs on one thread, between waits without interruption.
//! * A statement, and a transaction, is applied wholly or not at all, in all indexes.
//! * Nothing tells a client of a change that is not durable: results carry the position they depend on (`Context::seen`).
//! * The catalog is what the rows of the system spaces say.

mod access;
mod alter;
mod backup;
mod batch;
mod blind_write;
mod bootstrap;
mod call;
mod catalog;
mod checkpoint;
mod checks;
mod config;
mod convert;
mod cursor;
mod damage;
mod database;
mod deferred_keys;
mod disk;
mod disposal;
mod error;
mod events;
mod eviction;
mod expiry;
mod fields;
mod foreign_keys;
mod forks;
mod hooks;
mod interval_set;
mod isolation;
mod ledger;
mod locks;
mod moving_in;
mod notes;
pub mod options;
mod pacer;
mod pages;
mod prepare;
mod private;
mod reads;
mod replay;
mod schema_changes;
mod select;
mod sequences;
mod session;
mod session_spaces;
mod settings;
mod start;
mod statement;
mod statistics;
mod time_share;
mod timeouts;
mod triggers;
mod txn;
mod views;

pub use access::{Grant, ObjectType, Privileges, Rights};
pub use alter::{
    CLUSTER_ID, COLLATION_ID, FUNC_ID, INDEX_ID, PRIV_ID, SCHEMA_ID, SEQUENCE_DATA_ID, SEQUENCE_ID, SPACE_ID,
    SPACE_SEQUENCE_ID, TRUNCATE_ID, USER_ID,
};
pub use batch::Batch;
pub use bootstrap::encode_json;
pub use catalog::{
    Action, Catalog, CheckDef, Deferral, FieldRef, ForeignKeyDef, Function, GeneratedDef, IndexInfo, MemoryLimit,
    ReplaceTrigger, SchemaObject, Sequence, SequenceDef, Space, SpaceDef, SpaceKind, SpaceSequence, Ttl, TtlUnit, User,
    UserKind,
};
pub use config::Config;
pub use cursor::Cursor;
pub use damage::{Names, advice, older_snapshot};
pub use database::{Database, Environment, Limits, State};
pub use error::{ERROR_TABLE, Error, ErrorBody, ErrorCode, ErrorKind, Place, Result, fill, name_of, text_of};
pub use events::{Event, SHUTDOWN_KEY, Watcher};
pub use eviction::EvictionCounts;
pub use expiry::{ExpiredRows, ExpiryCounts, Sweeper};
pub use hooks::{
    Channel, Expressions, GeneratedFields, Leaving, LeavingWatcher, Procedures, RowCondition, RowWatcher, ScriptCall,
    ScriptCommands, ScriptFailure, ScriptFunction, ScriptId, Scripts, SessionEvent, Subject,
};
pub use ledger::log_error;
pub use locks::{is_cancelled, is_deadlock};
pub use pages::After;
pub use session::{ADMIN, Acting, Context, GUEST, PUBLIC, SUPER, Session, SessionKind, Sessions, UserId};
pub use session_spaces::{SESSION_ID_MIN, SESSION_PREFIX};
pub use statement::{Operation, index_by_name, no_such_index, row_kind};
pub use statistics::{DoorStatistics, Statistics, add, increment};
pub use storage::{Key, ScanRequest};
pub use time_share::is_out_of_time;
pub use txn::{ChangedRow, Savepoint, Txn, TxnCallback};
pub use txn::{TxnIsolation, TxnOptions};
pub use views::ViewCounts;
