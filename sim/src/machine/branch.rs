//! Every fault and every rare branch that a seed may reach, by name: one that no seed of a long run reaches is a gap in the test.

macro_rules! branches {
    ($($(#[$doc:meta])* $branch:ident = $name:literal,)*) => {
        /// A fault, or a branch of the product or of the simulation that is rarely taken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Branch {
            $($(#[$doc])* $branch,)*
        }

        impl Branch {
            /// All, in the order in which reports name them.
            pub const ALL: &[Branch] = &[$(Branch::$branch,)*];

            /// As reports name it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Branch::$branch => $name,)*
                }
            }
        }
    };
}

branches! {
    // How a life ends.
    /// The machine goes off.
    PowerLoss = "power loss",
    /// It goes off with some change of a file.
    PowerLossAtChange = "power lost at a change of a file",
    /// It goes off during a start.
    PowerLossAtStart = "power loss during a start",
    /// Only the process ends.
    Kill = "kill",
    /// The process is asked to end.
    CleanStop = "clean stop",
    /// It is asked, and the log cannot be completed.
    UncleanStop = "clean stop that could not complete the log",
    /// Connections are half open after the end.
    SilentEnd = "clients hear nothing of the end",
    // Faults of files.
    /// A sync is planned to fail.
    SyncFails = "a sync fails, later ones lie",
    /// The server was told of a failed sync.
    SyncErrorMet = "a failed sync met",
    /// A write is planned to fail.
    WriteFails = "a write fails",
    /// The server was told of a failed write.
    WriteErrorMet = "a failed write met",
    /// The disk is planned to be full for a time.
    DiskFull = "the disk becomes full",
    /// The server was told that it is full.
    DiskFullMet = "a full disk met",
    /// Bytes were sent to the disk ahead of a sync, and some of them arrived.
    WrittenBehind = "bytes sent to the disk ahead of a sync",
    /// This is planned to fail.
    WriteBehindFails = "a write behind fails, later syncs lie",
    /// The server was told that it failed.
    WriteBehindErrorMet = "a failed write behind met",
    /// A block was read past the page cache.
    DirectRead = "a block read past the page cache",
    /// The file system does not open files so.
    DirectRefused = "a file not opened past the page cache",
    /// It opens them, and does not read them in every place.
    DirectReadRefused = "a read past the page cache refused",
    /// The kernel does not say what it has in memory.
    CacheUnknown = "the page cache could not be asked",
    /// An operation took a hundred times as long.
    SlowFile = "slow file operation",
    /// A bit of a file flips between two lives.
    BitFlip = "a bit flips at rest",
    /// The newest log, or the manifest, is missing or cut between two lives.
    FileMissing = "the newest log or the manifest is missing or cut",
    /// The start refuses and names the file.
    BitFlipRefused = "a start refused a flipped bit",
    /// The flipped bit was in something that a start does not read.
    BitFlipUnread = "a flipped bit was not needed",
    /// It is a bit of the disk engine's files.
    BitFlipOnDisk = "a bit of a run or manifest flips",
    /// A client was told of a damaged block.
    DamageRead = "a damaged block was asked for",
    /// A merge met a damaged block.
    DamageMerged = "a damaged block stopped a merge",
    // Faults of everything else.
    /// The time of day is wrong by up to an hour.
    ClockJump = "the clock jumps",
    /// A connection was cut at some byte.
    ConnectionCut = "connection cut",
    /// The socket took only a part of what was written.
    PartialWrite = "a part of a write taken by a socket",
    /// The socket took nothing.
    SocketFull = "a socket was full",
    /// A client found nobody who listens.
    ConnectionRefused = "a client found nobody to connect to",
    // The log.
    /// The server gave up its log.
    LogFailed = "the log failed",
    /// A client was told of it.
    LogFailedAnswered = "a client was told that the log failed",
    /// The server waits for space for its log.
    LogOutOfSpace = "no space for the log",
    /// No new log file could be made; the old one is written on.
    LogNotRotated = "a log file could not be followed by another",
    /// A second log file in one life.
    LogRotated = "log rotated",
    // Checkpoints.
    /// One was made.
    CheckpointMade = "checkpoint made",
    /// One could not be made.
    CheckpointFailed = "checkpoint failed",
    /// The next life found an unfinished snapshot.
    CheckpointInterrupted = "checkpoint interrupted by the end of a life",
    /// The next life found an unfinished log file.
    RotationInterrupted = "log file left unfinished by the end of a life",
    /// Files that no snapshot needs any more are gone.
    OldFilesRemoved = "old files removed",
    // Long work in slices.
    /// The rows of a space were looked at for a change of the schema while others had their turns.
    RowsLookedAt = "rows looked at in slices for the schema",
    /// Such a look was given up.
    LookGivenUp = "a look at rows given up",
    /// Somebody wanted another change of the space meanwhile.
    ChangeRefused = "a change of the schema refused beside another",
    /// A dropped or truncated space was freed while others had their turns.
    FreedInSlices = "rows freed in slices",
    // The disk engine.
    /// Levels became runs.
    Dump = "dump",
    /// A dump failed and is tried again.
    DumpFailed = "dump failed",
    /// The disk was full in a dump.
    DumpDiskFull = "disk full in a dump",
    /// Runs became fewer.
    Compaction = "compaction",
    /// A compaction failed and is tried again.
    CompactionFailed = "compaction failed",
    /// A compaction made several runs, each of a range of its own.
    RangeSplit = "range split",
    /// Two small ranges became one.
    RangesJoined = "ranges joined",
    /// Another manifest took the place of the one that had grown.
    ManifestSwitched = "manifest switched",
    /// A record of the manifest could not be written.
    ManifestFailed = "a record of the manifest failed",
    /// A statement waited for a block.
    ReadWaited = "a read waited for the disk",
    /// A transaction was taken back while its fiber waited.
    Suspended = "transaction suspended by a wait",
    /// Others had turns while a transaction was put in place.
    CommittedInSlices = "commit in slices",
    /// A commit of another one ended it.
    Conflict = "transaction aborted by conflict",
    /// Writers waited until a dump had freed memory.
    LevelsFull = "memory levels full",
    /// A start found files that no index names.
    OrphansRemoved = "orphans of the disk engine removed",
    /// An index whose entries were in no run was filled by a start.
    IndexRebuilt = "index built anew by a start",
    // Starts.
    /// From a snapshot of its own and logs behind it.
    SnapshotAndLogs = "recovery from a later snapshot and logs",
    /// From more than one log file.
    SeveralLogs = "recovery from several log files",
    /// The end of the newest log was torn.
    TornTail = "torn end of the log cut",
    // Clients.
    /// Nobody was answered in a whole life.
    NobodyAnswered = "a life in which nobody was answered",
    /// A unique key was taken.
    DuplicateRefused = "a duplicate key refused",
    /// Somebody has no right to it.
    AccessRefused = "access refused",
    /// No memory for the row.
    MemoryRefused = "refused for want of memory",
}

impl Branch {
    /// The branch of a refusal, if it is one that is waited for.
    pub(super) fn of_refusal(code: u32) -> Option<Self> {
        match code {
            2 => Some(Branch::MemoryRefused),
            3 => Some(Branch::DuplicateRefused),
            12 => Some(Branch::ChangeRefused),
            42 => Some(Branch::AccessRefused),
            97 => Some(Branch::Conflict),
            _ => None,
        }
    }
}
