//! Keys of headers and bodies, of packets and of rows in the log.
#![expect(missing_docs, reason = "the protocol's words")]

pub const REQUEST_TYPE: u64 = 0x00;
pub const SYNC: u64 = 0x01;
pub const REPLICA_ID: u64 = 0x02;
pub const LSN: u64 = 0x03;
pub const TIMESTAMP: u64 = 0x04;
pub const SCHEMA_VERSION: u64 = 0x05;
pub const GROUP_ID: u64 = 0x07;
pub const TSN: u64 = 0x08;
pub const FLAGS: u64 = 0x09;
pub const STREAM_ID: u64 = 0x0a;
pub const SPACE_ID: u64 = 0x10;
pub const INDEX_ID: u64 = 0x11;
pub const LIMIT: u64 = 0x12;
pub const OFFSET: u64 = 0x13;
pub const ITERATOR: u64 = 0x14;
pub const INDEX_BASE: u64 = 0x15;
pub const FETCH_POSITION: u64 = 0x1f;
pub const KEY: u64 = 0x20;
pub const TUPLE: u64 = 0x21;
pub const FUNCTION_NAME: u64 = 0x22;
pub const USER_NAME: u64 = 0x23;
pub const EXPRESSION: u64 = 0x27;
pub const OPS: u64 = 0x28;
pub const AFTER_POSITION: u64 = 0x2e;
pub const AFTER_TUPLE: u64 = 0x2f;
pub const DATA: u64 = 0x30;
pub const ERROR_24: u64 = 0x31;
pub const POSITION: u64 = 0x35;
pub const ERROR: u64 = 0x52;
pub const VERSION: u64 = 0x54;
pub const FEATURES: u64 = 0x55;
pub const TIMEOUT: u64 = 0x56;
pub const EVENT_KEY: u64 = 0x57;
pub const EVENT_DATA: u64 = 0x58;
pub const TXN_ISOLATION: u64 = 0x59;
pub const AUTH_TYPE: u64 = 0x5b;
pub const SPACE_NAME: u64 = 0x5e;
pub const INDEX_NAME: u64 = 0x5f;
pub const IS_SYNC: u64 = 0x61;
/// Column metadata of a result of SQL.
pub const METADATA: u64 = 0x32;
/// Metadata of the parameters of a prepared statement.
pub const BIND_METADATA: u64 = 0x33;
/// Number of the parameters of a prepared statement.
pub const BIND_COUNT: u64 = 0x34;
/// Text of a statement.
pub const SQL_TEXT: u64 = 0x40;
/// Parameters of a statement.
pub const SQL_BIND: u64 = 0x41;
/// What a statement without rows has done.
pub const SQL_INFO: u64 = 0x42;
/// Number of a prepared statement.
pub const STMT_ID: u64 = 0x43;
/// In metadata: the name of a column.
pub const FIELD_NAME: u64 = 0;
/// In metadata: the type of a column.
pub const FIELD_TYPE: u64 = 1;
/// In metadata: the collation of a column, if it has one.
pub const FIELD_COLLATION: u64 = 2;
/// In metadata: whether a column may be null.
pub const FIELD_IS_NULLABLE: u64 = 3;
/// In metadata: true for a column that a sequence gives numbers.
pub const FIELD_IS_AUTOINCREMENT: u64 = 4;
/// In metadata: the expression of a column as the statement has it; nil for what `*` stands for.
pub const FIELD_SPAN: u64 = 5;
/// In what a statement has done: rows changed.
pub const SQL_ROW_COUNT: u64 = 0;
/// In what a statement has done: numbers given by sequences.
pub const SQL_AUTOINCREMENT_IDS: u64 = 1;
