//! Errors that a client sees: Tarantool's numbers and texts, in one table and nowhere else.
//!
//! The texts are those of Tarantool 2.6 (read off the real one), except 47, which has the form of 3.x: it does not tell
//! whether the user exists. Beside the text an error carries named fields (space, index, field, value) for clients
//! that read the error extension of the protocol.

use std::fmt;
use std::panic::Location;

macro_rules! error_codes {
    ($($variant:ident = $code:literal, $name:literal, $text:literal;)*) => {
        /// Codes of errors that reach clients. Source: answers of Tarantool 2.6 and its `box.error` table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[expect(missing_docs, reason = "each variant is described by its text in the table")]
        pub enum ErrorCode { $($variant = $code,)* }

        /// All codes: number, name in `box.error`, text with `%s`-like holes.
        pub const ERROR_TABLE: &[(ErrorCode, &str, &str)] = &[$((ErrorCode::$variant, $name, $text),)*];
    };
}

error_codes! {
    Unknown = 0, "UNKNOWN", "Unknown error";
    IllegalParams = 1, "ILLEGAL_PARAMS", "Illegal parameters, %s";
    MemoryIssue = 2, "MEMORY_ISSUE", "Failed to allocate %u bytes in %s for %s";
    TupleFound = 3, "TUPLE_FOUND", "Duplicate key exists in unique index '%s' in space '%s'";
    TupleNotFound = 4, "TUPLE_NOT_FOUND", "Tuple doesn't exist in index '%s' in space '%s'";
    Unsupported = 5, "UNSUPPORTED", "%s does not support %s";
    Nonmaster = 6, "NONMASTER", "Can't modify data on a replication slave. My master is: %s";
    Readonly = 7, "READONLY", "Can't modify data because this instance is in read-only mode.";
    Injection = 8, "INJECTION", "Error injection '%s'";
    CreateSpace = 9, "CREATE_SPACE", "Failed to create space '%s': %s";
    SpaceExists = 10, "SPACE_EXISTS", "Space '%s' already exists";
    DropSpace = 11, "DROP_SPACE", "Can't drop space '%s': %s";
    AlterSpace = 12, "ALTER_SPACE", "Can't modify space '%s': %s";
    IndexType = 13, "INDEX_TYPE", "Unsupported index type supplied for index '%s' in space '%s'";
    ModifyIndex = 14, "MODIFY_INDEX", "Can't create or modify index '%s' in space '%s': %s";
    LastDrop = 15, "LAST_DROP", "Can't drop the primary key in a system space, space '%s'";
    TupleFormatLimit = 16, "TUPLE_FORMAT_LIMIT", "Tuple format limit reached: %u";
    DropPrimaryKey = 17, "DROP_PRIMARY_KEY", "Can't drop primary key in space '%s' while secondary keys exist";
    KeyPartType = 18, "KEY_PART_TYPE", "Supplied key type of part %u does not match index part type: expected %s";
    ExactMatch = 19, "EXACT_MATCH", "Invalid key part count in an exact match (expected %u, got %u)";
    InvalidMsgpack = 20, "INVALID_MSGPACK", "Invalid MsgPack - %s";
    ProcRet = 21, "PROC_RET", "msgpack.encode: can not encode Lua type '%s'";
    TupleNotArray = 22, "TUPLE_NOT_ARRAY", "Tuple/Key must be MsgPack array";
    FieldType = 23, "FIELD_TYPE", "Tuple field %s type does not match one required by operation: expected %s";
    IndexPartTypeMismatch = 24, "INDEX_PART_TYPE_MISMATCH", "Field %s has type '%s' in one index, but type '%s' in another";
    UpdateSplice = 25, "UPDATE_SPLICE", "SPLICE error on field %s: %s";
    UpdateArgType = 26, "UPDATE_ARG_TYPE", "Argument type in operation '%c' on field %s does not match field type: expected %s";
    FormatMismatchIndexPart = 27, "FORMAT_MISMATCH_INDEX_PART", "Field %s has type '%s' in space format, but type '%s' in index definition";
    UnknownUpdateOp = 28, "UNKNOWN_UPDATE_OP", "Unknown UPDATE operation #%d: %s";
    UpdateField = 29, "UPDATE_FIELD", "Field %s UPDATE error: %s";
    FunctionTxActive = 30, "FUNCTION_TX_ACTIVE", "Transaction is active at return from function";
    KeyPartCount = 31, "KEY_PART_COUNT", "Invalid key part count (expected [0..%u], got %u)";
    ProcLua = 32, "PROC_LUA", "%s";
    NoSuchProc = 33, "NO_SUCH_PROC", "Procedure '%s' is not defined";
    NoSuchTrigger = 34, "NO_SUCH_TRIGGER", "Trigger '%s' doesn't exist";
    NoSuchIndexId = 35, "NO_SUCH_INDEX_ID", "No index #%u is defined in space '%s'";
    NoSuchSpace = 36, "NO_SUCH_SPACE", "Space '%s' does not exist";
    NoSuchFieldNo = 37, "NO_SUCH_FIELD_NO", "Field %d was not found in the tuple";
    ExactFieldCount = 38, "EXACT_FIELD_COUNT", "Tuple field count %u does not match space field count %u";
    FieldMissing = 39, "FIELD_MISSING", "Tuple field %s required by space format is missing";
    WalIo = 40, "WAL_IO", "Failed to write to disk";
    MoreThanOneTuple = 41, "MORE_THAN_ONE_TUPLE", "Get() doesn't support partial keys and non-unique indexes";
    AccessDenied = 42, "ACCESS_DENIED", "%s access to %s '%s' is denied for user '%s'";
    CreateUser = 43, "CREATE_USER", "Failed to create user '%s': %s";
    DropUser = 44, "DROP_USER", "Failed to drop user or role '%s': %s";
    NoSuchUser = 45, "NO_SUCH_USER", "User '%s' is not found";
    UserExists = 46, "USER_EXISTS", "User '%s' already exists";
    CredsMismatch = 47, "CREDS_MISMATCH", "User not found or supplied credentials are invalid";
    UnknownRequestType = 48, "UNKNOWN_REQUEST_TYPE", "Unknown request type %u";
    UnknownSchemaObject = 49, "UNKNOWN_SCHEMA_OBJECT", "Unknown object type '%s'";
    CreateFunction = 50, "CREATE_FUNCTION", "Failed to create function '%s': %s";
    NoSuchFunction = 51, "NO_SUCH_FUNCTION", "Function '%s' does not exist";
    FunctionExists = 52, "FUNCTION_EXISTS", "Function '%s' already exists";
    BeforeReplaceRet = 53, "BEFORE_REPLACE_RET", "Invalid return value of space:before_replace trigger: expected tuple or nil, got %s";
    MultistatementTransaction = 54, "MULTISTATEMENT_TRANSACTION", "Can not perform %s in a multi-statement transaction";
    TriggerExists = 55, "TRIGGER_EXISTS", "Trigger '%s' already exists";
    UserMax = 56, "USER_MAX", "A limit on the total number of users has been reached: %u";
    NoSuchEngine = 57, "NO_SUCH_ENGINE", "Space engine '%s' does not exist";
    ReloadCfg = 58, "RELOAD_CFG", "Can't set option '%s' dynamically";
    Cfg = 59, "CFG", "Incorrect value for option '%s': %s";
    SavepointEmptyTx = 60, "SAVEPOINT_EMPTY_TX", "Can not set a savepoint in an empty transaction";
    NoSuchSavepoint = 61, "NO_SUCH_SAVEPOINT", "Can not rollback to savepoint: the savepoint does not exist";
    UnknownReplica = 62, "UNKNOWN_REPLICA", "Replica %s is not registered with replica set %s";
    ReplicasetUuidMismatch = 63, "REPLICASET_UUID_MISMATCH", "Replica set UUID mismatch: expected %s, got %s";
    InvalidUuid = 64, "INVALID_UUID", "Invalid UUID: %s";
    ReplicasetUuidIsRo = 65, "REPLICASET_UUID_IS_RO", "Can't reset replica set UUID: it is already assigned";
    InstanceUuidMismatch = 66, "INSTANCE_UUID_MISMATCH", "Instance UUID mismatch: expected %s, got %s";
    ReplicaIdIsReserved = 67, "REPLICA_ID_IS_RESERVED", "Can't initialize replica id with a reserved value %u";
    InvalidOrder = 68, "INVALID_ORDER", "Invalid LSN order for instance %u: previous LSN = %u, new lsn = %u";
    MissingRequestField = 69, "MISSING_REQUEST_FIELD", "Missing mandatory field '%s' in request";
    Identifier = 70, "IDENTIFIER", "Invalid identifier '%s' (expected printable symbols only or it is too long)";
    DropFunction = 71, "DROP_FUNCTION", "Can't drop function %u: %s";
    IteratorType = 72, "ITERATOR_TYPE", "Unknown iterator type '%s'";
    ReplicaMax = 73, "REPLICA_MAX", "Replica count limit reached: %u";
    InvalidXlog = 74, "INVALID_XLOG", "Failed to read xlog: %s";
    InvalidXlogName = 75, "INVALID_XLOG_NAME", "Invalid xlog name: expected %s got %s";
    InvalidXlogOrder = 76, "INVALID_XLOG_ORDER", "Invalid xlog order: %s and %s";
    NoConnection = 77, "NO_CONNECTION", "Connection is not established";
    Timeout = 78, "TIMEOUT", "Timeout exceeded";
    ActiveTransaction = 79, "ACTIVE_TRANSACTION", "Operation is not permitted when there is an active transaction ";
    CursorNoTransaction = 80, "CURSOR_NO_TRANSACTION", "The transaction the cursor belongs to has ended";
    CrossEngineTransaction = 81, "CROSS_ENGINE_TRANSACTION", "A multi-statement transaction can not use multiple storage engines";
    NoSuchRole = 82, "NO_SUCH_ROLE", "Role '%s' is not found";
    RoleExists = 83, "ROLE_EXISTS", "Role '%s' already exists";
    CreateRole = 84, "CREATE_ROLE", "Failed to create role '%s': %s";
    IndexExists = 85, "INDEX_EXISTS", "Index '%s' already exists";
    SessionClosed = 86, "SESSION_CLOSED", "Session is closed";
    RoleLoop = 87, "ROLE_LOOP", "Granting role '%s' to role '%s' would create a loop";
    Grant = 88, "GRANT", "Incorrect grant arguments: %s";
    PrivGranted = 89, "PRIV_GRANTED", "User '%s' already has %s access on %s%s";
    RoleGranted = 90, "ROLE_GRANTED", "User '%s' already has role '%s'";
    PrivNotGranted = 91, "PRIV_NOT_GRANTED", "User '%s' does not have %s access on %s '%s'";
    RoleNotGranted = 92, "ROLE_NOT_GRANTED", "User '%s' does not have role '%s'";
    MissingSnapshot = 93, "MISSING_SNAPSHOT", "Can't find snapshot";
    CantUpdatePrimaryKey = 94, "CANT_UPDATE_PRIMARY_KEY", "Attempt to modify a tuple field which is part of index '%s' in space '%s'";
    UpdateIntegerOverflow = 95, "UPDATE_INTEGER_OVERFLOW", "Integer overflow when performing '%c' operation on field %s";
    GuestUserPassword = 96, "GUEST_USER_PASSWORD", "Setting password for guest user has no effect";
    TransactionConflict = 97, "TRANSACTION_CONFLICT", "Transaction has been aborted by conflict";
    UnsupportedPriv = 98, "UNSUPPORTED_PRIV", "Unsupported %s privilege '%s'";
    LoadFunction = 99, "LOAD_FUNCTION", "Failed to dynamically load function '%s': %s";
    FunctionLanguage = 100, "FUNCTION_LANGUAGE", "Unsupported language '%s' specified for function '%s'";
    RtreeRect = 101, "RTREE_RECT", "RTree: %s must be an array with %u (point) or %u (rectangle/box) numeric coordinates";
    ProcC = 102, "PROC_C", "%s";
    UnknownRtreeIndexDistanceType = 103, "UNKNOWN_RTREE_INDEX_DISTANCE_TYPE", "Unknown RTREE index distance type %s";
    Protocol = 104, "PROTOCOL", "%s";
    UpsertUniqueSecondaryKey = 105, "UPSERT_UNIQUE_SECONDARY_KEY", "Space %s has a unique secondary index and does not support UPSERT";
    WrongIndexRecord = 106, "WRONG_INDEX_RECORD", "Wrong record in _index space: got {%s}, expected {%s}";
    WrongIndexParts = 107, "WRONG_INDEX_PARTS", "Wrong index parts: %s; expected field1 id (number), field1 type (string), ...";
    WrongIndexOptions = 108, "WRONG_INDEX_OPTIONS", "Wrong index options (field %u): %s";
    WrongSchemaVersion = 109, "WRONG_SCHEMA_VERSION", "Wrong schema version, current: %d, in request: %u";
    MemtxMaxTupleSize = 110, "MEMTX_MAX_TUPLE_SIZE", "Failed to allocate %u bytes for tuple: tuple is too large. Check 'memtx_max_tuple_size' configuration option.";
    WrongSpaceOptions = 111, "WRONG_SPACE_OPTIONS", "Wrong space options (field %u): %s";
    UnsupportedIndexFeature = 112, "UNSUPPORTED_INDEX_FEATURE", "Index '%s' (%s) of space '%s' (%s) does not support %s";
    ViewIsRo = 113, "VIEW_IS_RO", "View '%s' is read-only";
    NoTransaction = 114, "NO_TRANSACTION", "No active transaction";
    System = 115, "SYSTEM", "%s";
    Loading = 116, "LOADING", "Instance bootstrap hasn't finished yet";
    ConnectionToSelf = 117, "CONNECTION_TO_SELF", "Connection to self";
    KeyPartIsTooLong = 118, "KEY_PART_IS_TOO_LONG", "Key part is too long: %u of %u bytes";
    Compression = 119, "COMPRESSION", "Compression error: %s";
    CheckpointInProgress = 120, "CHECKPOINT_IN_PROGRESS", "Snapshot is already in progress";
    SubStmtMax = 121, "SUB_STMT_MAX", "Can not execute a nested statement: nesting limit reached";
    CommitInSubStmt = 122, "COMMIT_IN_SUB_STMT", "Can not commit transaction in a nested statement";
    RollbackInSubStmt = 123, "ROLLBACK_IN_SUB_STMT", "Rollback called in a nested statement";
    Decompression = 124, "DECOMPRESSION", "Decompression error: %s";
    InvalidXlogType = 125, "INVALID_XLOG_TYPE", "Invalid xlog type: expected %s, got %s";
    AlreadyRunning = 126, "ALREADY_RUNNING", "Failed to lock WAL directory %s and hot_standby mode is off";
    IndexFieldCountLimit = 127, "INDEX_FIELD_COUNT_LIMIT", "Indexed field count limit reached: %d indexed fields";
    LocalInstanceIdIsReadOnly = 128, "LOCAL_INSTANCE_ID_IS_READ_ONLY", "The local instance id %u is read-only";
    BackupInProgress = 129, "BACKUP_IN_PROGRESS", "Backup is already in progress";
    ReadViewAborted = 130, "READ_VIEW_ABORTED", "The read view is aborted";
    InvalidIndexFile = 131, "INVALID_INDEX_FILE", "Invalid INDEX file %s: %s";
    InvalidRunFile = 132, "INVALID_RUN_FILE", "Invalid RUN file: %s";
    InvalidVylogFile = 133, "INVALID_VYLOG_FILE", "Invalid VYLOG file: %s";
    CheckpointRollback = 134, "CHECKPOINT_ROLLBACK", "Can't start a checkpoint while in cascading rollback";
    VyQuotaTimeout = 135, "VY_QUOTA_TIMEOUT", "Timed out waiting for Vinyl memory quota";
    PartialKey = 136, "PARTIAL_KEY", "%s index  does not support selects via a partial key (expected %u parts, got %u). Please Consider changing index type to TREE.";
    TruncateSystemSpace = 137, "TRUNCATE_SYSTEM_SPACE", "Can't truncate a system space, space '%s'";
    LoadModule = 138, "LOAD_MODULE", "Failed to dynamically load module '%s': %s";
    VinylMaxTupleSize = 139, "VINYL_MAX_TUPLE_SIZE", "Failed to allocate %u bytes for tuple: tuple is too large. Check 'vinyl_max_tuple_size' configuration option.";
    WrongDdVersion = 140, "WRONG_DD_VERSION", "Wrong _schema version: expected 'major.minor[.patch]'";
    WrongSpaceFormat = 141, "WRONG_SPACE_FORMAT", "Wrong space format (field %u): %s";
    CreateSequence = 142, "CREATE_SEQUENCE", "Failed to create sequence '%s': %s";
    AlterSequence = 143, "ALTER_SEQUENCE", "Can't modify sequence '%s': %s";
    DropSequence = 144, "DROP_SEQUENCE", "Can't drop sequence '%s': %s";
    NoSuchSequence = 145, "NO_SUCH_SEQUENCE", "Sequence '%s' does not exist";
    SequenceExists = 146, "SEQUENCE_EXISTS", "Sequence '%s' already exists";
    SequenceOverflow = 147, "SEQUENCE_OVERFLOW", "Sequence '%s' has overflowed";
    NoSuchIndexName = 148, "NO_SUCH_INDEX_NAME", "No index '%s' is defined in space '%s'";
    SpaceFieldIsDuplicate = 149, "SPACE_FIELD_IS_DUPLICATE", "Space field '%s' is duplicate";
    CantCreateCollation = 150, "CANT_CREATE_COLLATION", "Failed to initialize collation: %s.";
    WrongCollationOptions = 151, "WRONG_COLLATION_OPTIONS", "Wrong collation options (field %u): %s";
    NullablePrimary = 152, "NULLABLE_PRIMARY", "Primary index of space '%s' can not contain nullable parts";
    NoSuchFieldNameInSpace = 153, "NO_SUCH_FIELD_NAME_IN_SPACE", "Field '%s' was not found in space '%s' format";
    TransactionYield = 154, "TRANSACTION_YIELD", "Transaction has been aborted by a fiber yield";
    NoSuchGroup = 155, "NO_SUCH_GROUP", "Replication group '%s' does not exist";
    SqlBindValue = 156, "SQL_BIND_VALUE", "%s";
    SqlBindType = 157, "SQL_BIND_TYPE", "%s";
    SqlBindParameterMax = 158, "SQL_BIND_PARAMETER_MAX", "%s";
    SqlExecute = 159, "SQL_EXECUTE", "%s";
    UpdateDecimalOverflow = 160, "UPDATE_DECIMAL_OVERFLOW", "Decimal overflow when performing operation '%c' on field %s";
    SqlBindNotFound = 161, "SQL_BIND_NOT_FOUND", "%s";
    ActionMismatch = 162, "ACTION_MISMATCH", "Field %s contains %s on conflict action, but %s in index parts";
    ViewMissingSql = 163, "VIEW_MISSING_SQL", "%s";
    ForeignKeyConstraint = 164, "FOREIGN_KEY_CONSTRAINT", "%s";
    NoSuchModule = 165, "NO_SUCH_MODULE", "%s";
    NoSuchCollation = 166, "NO_SUCH_COLLATION", "Collation '%s' does not exist";
    CreateFkConstraint = 167, "CREATE_FK_CONSTRAINT", "%s";
    DropFkConstraint = 168, "DROP_FK_CONSTRAINT", "%s";
    NoSuchConstraint = 169, "NO_SUCH_CONSTRAINT", "%s";
    ConstraintExists = 170, "CONSTRAINT_EXISTS", "%s";
    SqlTypeMismatch = 171, "SQL_TYPE_MISMATCH", "%s";
    RowidOverflow = 172, "ROWID_OVERFLOW", "%s";
    DropCollation = 173, "DROP_COLLATION", "Can't drop collation %s : %s";
    IllegalCollationMix = 174, "ILLEGAL_COLLATION_MIX", "%s";
    SqlNoSuchPragma = 175, "SQL_NO_SUCH_PRAGMA", "%s";
    SqlCantResolveField = 176, "SQL_CANT_RESOLVE_FIELD", "%s";
    IndexExistsInSpace = 177, "INDEX_EXISTS_IN_SPACE", "Index '%s' already exists in space '%s'";
    InconsistentTypes = 178, "INCONSISTENT_TYPES", "Inconsistent types: expected %s got %s";
    SqlSyntaxWithPos = 179, "SQL_SYNTAX_WITH_POS", "%s";
    SqlStackOverflow = 180, "SQL_STACK_OVERFLOW", "%s";
    SqlSelectWildcard = 181, "SQL_SELECT_WILDCARD", "%s";
    SqlStatementEmpty = 182, "SQL_STATEMENT_EMPTY", "%s";
    SqlSyntaxNearToken = 184, "SQL_SYNTAX_NEAR_TOKEN", "%s";
    SqlUnknownToken = 185, "SQL_UNKNOWN_TOKEN", "%s";
    SqlParserGeneric = 186, "SQL_PARSER_GENERIC", "%s";
    SqlAnalyzeArgument = 187, "SQL_ANALYZE_ARGUMENT", "%s";
    SqlColumnCountMax = 188, "SQL_COLUMN_COUNT_MAX", "%s";
    HexLiteralMax = 189, "HEX_LITERAL_MAX", "%s";
    IntLiteralMax = 190, "INT_LITERAL_MAX", "%s";
    SqlParserLimit = 191, "SQL_PARSER_LIMIT", "%s";
    IndexDefUnsupported = 192, "INDEX_DEF_UNSUPPORTED", "%s are prohibited in an index definition";
    CkDefUnsupported = 193, "CK_DEF_UNSUPPORTED", "%s";
    MultikeyIndexMismatch = 194, "MULTIKEY_INDEX_MISMATCH", "%s";
    CreateCkConstraint = 195, "CREATE_CK_CONSTRAINT", "%s";
    CkConstraintFailed = 196, "CK_CONSTRAINT_FAILED", "%s";
    SqlColumnCount = 197, "SQL_COLUMN_COUNT", "%s";
    FuncIndexFunc = 198, "FUNC_INDEX_FUNC", "%s";
    FuncIndexFormat = 199, "FUNC_INDEX_FORMAT", "%s";
    FuncIndexParts = 200, "FUNC_INDEX_PARTS", "%s";
    NoSuchFieldName = 201, "NO_SUCH_FIELD_NAME", "Field '%s' was not found in the tuple";
    FuncWrongArgCount = 202, "FUNC_WRONG_ARG_COUNT", "Wrong number of arguments is passed to %s(): expected %s, got %d";
    BootstrapReadonly = 203, "BOOTSTRAP_READONLY", "%s";
    SqlFuncWrongRetCount = 204, "SQL_FUNC_WRONG_RET_COUNT", "%s";
    FuncInvalidReturnType = 205, "FUNC_INVALID_RETURN_TYPE", "Function '%s' returned value of invalid type: expected %s got %s";
    SqlParserGenericWithPos = 206, "SQL_PARSER_GENERIC_WITH_POS", "%s";
    ReplicaNotAnon = 207, "REPLICA_NOT_ANON", "%s";
    CannotRegister = 208, "CANNOT_REGISTER", "%s";
    SessionSettingInvalidValue = 209, "SESSION_SETTING_INVALID_VALUE", "Session setting %s expected a value of type %s";
    SqlPrepare = 210, "SQL_PREPARE", "%s";
    WrongQueryId = 211, "WRONG_QUERY_ID", "%s";
    SequenceNotStarted = 212, "SEQUENCE_NOT_STARTED", "Sequence '%s' is not started";
    NoSuchSessionSetting = 213, "NO_SUCH_SESSION_SETTING", "Session setting %s doesn't exist";
    UncommittedForeignSyncTxns = 214, "UNCOMMITTED_FOREIGN_SYNC_TXNS", "%s";
    SyncMasterMismatch = 215, "SYNC_MASTER_MISMATCH", "%s";
    SyncQuorumTimeout = 216, "SYNC_QUORUM_TIMEOUT", "%s";
    SyncRollback = 217, "SYNC_ROLLBACK", "%s";
    TupleMetadataIsTooBig = 218, "TUPLE_METADATA_IS_TOO_BIG", "%s";
    XlogGap = 219, "XLOG_GAP", "Missing .xlog file between LSN %s and %s";
    UnableToProcessInStream = 229, "UNABLE_TO_PROCESS_IN_STREAM", "Unable to process %s request in stream";
    UnableToProcessOutOfStream = 230, "UNABLE_TO_PROCESS_OUT_OF_STREAM", "Unable to process %s request out of stream";
    TransactionTimeout = 231, "TRANSACTION_TIMEOUT", "Transaction has been aborted by timeout";
    CreateConstraint = 234, "CREATE_CONSTRAINT", "Failed to create constraint '%s' in space '%s': %s";
    FieldConstraintFailed = 235, "FIELD_CONSTRAINT_FAILED", "Check constraint '%s' failed for field '%s'";
    TupleConstraintFailed = 236, "TUPLE_CONSTRAINT_FAILED", "Check constraint '%s' failed for tuple";
    CreateForeignKey = 237, "CREATE_FOREIGN_KEY", "Failed to create foreign key '%s' in space '%s': %s";
    ForeignKeyIntegrity = 238, "FOREIGN_KEY_INTEGRITY", "Foreign key '%s' integrity check failed: %s";
    FieldForeignKeyFailed = 239, "FIELD_FOREIGN_KEY_FAILED", "Foreign key constraint '%s' failed for field '%s': %s";
    ComplexForeignKeyFailed = 240, "COMPLEX_FOREIGN_KEY_FAILED", "Foreign key constraint '%s' failed: %s";
}

/// The class that Lua and the error extension of the protocol report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Most errors of requests.
    Client,
    /// A missing grant.
    AccessDenied,
    /// Memory at its limit.
    OutOfMemory,
    /// An error of the operating system.
    System,
    /// The write-ahead log or a snapshot.
    Xlog,
    /// Raised by Lua code.
    Lua,
    /// Made by `box.error.new{type = ...}`.
    Custom,
}

impl ErrorKind {
    /// Tarantool's name of the class.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Client => "ClientError",
            ErrorKind::AccessDenied => "AccessDeniedError",
            ErrorKind::OutOfMemory => "OutOfMemory",
            ErrorKind::System => "SystemError",
            ErrorKind::Xlog => "XlogError",
            ErrorKind::Lua => "LuajitError",
            ErrorKind::Custom => "CustomError",
        }
    }
}

/// An error on its way to a client. One pointer wide, so that results stay small.
#[derive(Clone, PartialEq)]
pub struct Error(Box<ErrorBody>);

/// Result of everything a client can ask for.
pub type Result<T> = std::result::Result<T, Error>;

/// What an [`Error`] holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBody {
    /// Number in [`ERROR_TABLE`], or a user's own.
    pub code: u32,
    /// Class.
    pub kind: ErrorKind,
    /// Text without code or class.
    pub message: String,
    /// Named details: space, index, field, value ... in the order they were added.
    pub fields: Vec<(&'static str, String)>,
    /// What caused it.
    pub previous: Option<Error>,
    /// Where it was made.
    pub place: Place,
}

/// Where an error was made: a line of this program or of a script. It says nothing about the error: any two are equal.
#[derive(Clone, Debug)]
pub enum Place {
    /// Of this program.
    Source(&'static Location<'static>),
    /// File and line of a script.
    Script(String, u32),
}

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Place {
    /// The file.
    pub fn file(&self) -> &str {
        match self {
            Place::Source(location) => location.file(),
            Place::Script(file, _) => file,
        }
    }

    /// The line in the file, from 1.
    pub fn line(&self) -> u32 {
        match self {
            Place::Source(location) => location.line(),
            Place::Script(_, line) => *line,
        }
    }
}

impl From<storage::NotAnArray> for Error {
    fn from(_: storage::NotAnArray) -> Self {
        Error::new(ErrorCode::TupleNotArray, &[])
    }
}

impl Error {
    /// Fills the holes of the code's text with `arguments`, in order.
    #[track_caller]
    pub fn new(code: ErrorCode, arguments: &[&dyn fmt::Display]) -> Self {
        let kind = match code {
            ErrorCode::AccessDenied => ErrorKind::AccessDenied,
            ErrorCode::MemoryIssue => ErrorKind::OutOfMemory,
            _ => ErrorKind::Client,
        };
        Error(Box::new(ErrorBody {
            code: code as u32,
            kind,
            message: fill(text_of(code), arguments, true),
            fields: Vec::new(),
            previous: None,
            place: Place::Source(Location::caller()),
        }))
    }

    /// An error whose text is made elsewhere (Lua, the operating system, the log).
    #[track_caller]
    pub fn raw(code: u32, kind: ErrorKind, message: impl Into<String>) -> Self {
        let place = Place::Source(Location::caller());
        Error(Box::new(ErrorBody { code, kind, message: message.into(), fields: Vec::new(), previous: None, place }))
    }

    /// `Illegal parameters, ...`
    #[track_caller]
    pub fn illegal(what: impl fmt::Display) -> Self {
        Error::new(ErrorCode::IllegalParams, &[&what])
    }

    /// An error of the system below: io, memory map, log.
    #[track_caller]
    pub fn system(what: impl fmt::Display) -> Self {
        Error::raw(ErrorCode::System as u32, ErrorKind::System, what.to_string())
    }

    /// What is asked for has to wait, which only a fiber can: the caller tries again in one. Clients never see it.
    #[track_caller]
    pub fn needs_fiber() -> Self {
        Error::raw(NEEDS_FIBER, ErrorKind::System, "the request has to wait".to_string())
    }

    /// True for [`Error::needs_fiber`].
    pub fn is_needs_fiber(&self) -> bool {
        self.0.code == NEEDS_FIBER
    }

    /// Says more behind the text.
    pub fn push_text(&mut self, text: &str) {
        self.0.message.push_str(text);
    }

    /// Adds a named detail.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.fields.push((name, value.to_string()));
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, previous: Error) -> Self {
        self.0.previous = Some(previous);
        self
    }

    /// Number of the code.
    pub fn code(&self) -> u32 {
        self.0.code
    }

    /// True if the error has this code.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.0.code == code as u32
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Everything.
    pub fn body(&self) -> &ErrorBody {
        &self.0
    }

    /// Everything, to be changed.
    pub fn body_mut(&mut self) -> &mut ErrorBody {
        &mut self.0
    }

    /// Name of the class.
    pub fn kind_name(&self) -> &'static str {
        self.0.kind.name()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind_name(), self.0.code, self.0.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

/// Code of [`Error::needs_fiber`]: none of Tarantool's.
const NEEDS_FIBER: u32 = u32::MAX;

/// The text of a code, with holes.
pub fn text_of(code: ErrorCode) -> &'static str {
    ERROR_TABLE.iter().find(|row| row.0 == code).map_or("%s", |row| row.2)
}

/// The name of a numeric code in `box.error`, without the class prefix.
pub fn name_of(code: u32) -> Option<&'static str> {
    ERROR_TABLE.iter().find(|row| row.0 as u32 == code).map(|row| row.1)
}

/// Puts `arguments` into the `%s`, `%u`, `%d`, `%c` holes of `text`. Missing arguments leave the hole as it is.
/// `is_cut`: an argument ends at its first zero byte, as a text for C does.
pub fn fill(text: &str, arguments: &[&dyn fmt::Display], is_cut: bool) -> String {
    use fmt::Write;
    let mut out = String::with_capacity(text.len() + 32);
    let mut arguments = arguments.iter();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let hole_end = (at + 2).min(rest.len());
        match arguments.next() {
            Some(argument) => {
                let start = out.len();
                let _ = write!(out, "{argument}");
                if is_cut && let Some(zero) = out[start..].find('\0') {
                    out.truncate(start + zero);
                }
            }
            None => out.push_str(&rest[at..hole_end]),
        }
        rest = &rest[hole_end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_in_order() {
        let error = Error::new(ErrorCode::TupleFound, &[&"primary", &"stock"]);
        assert_eq!(error.message(), "Duplicate key exists in unique index 'primary' in space 'stock'");
        assert_eq!(error.code(), 3);
        assert_eq!(fill("[0..%u], got %u", &[&1, &2], true), "[0..1], got 2");
        assert_eq!(fill("'%s' is", &[&"a\0b"], true), "'a' is");
    }
}
