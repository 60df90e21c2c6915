//! Bugs put in on purpose, to see that the simulator finds them. Compiled with the feature `planted-bugs` only, and off until a test
//! plants one on its own thread. sim/README.md lists where they are.

use std::cell::Cell;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A statement that is rolled back leaves its row in the secondary indexes.
    KeepSecondaryEntry,
    /// After a failed write the log goes on, and gives the lost positions to others.
    ReusePosition,
    /// A block is believed whatever its checksum.
    IgnoreChecksum,
    /// A block of a run is believed whatever its checksum.
    IgnoreBlockChecksum,
    /// A run is named in the manifest before it is on disk.
    RecordBeforeSync,
    /// A run is removed while somebody reads it.
    RemoveRunThatIsRead,
    /// A run is removed though another range names it.
    RemoveRunThatIsNamed,
    /// Every merge and dump leaves out deletes, whatever lies below.
    DropTombstones,
    /// Filters deny some of the keys that they know.
    FilterDenies,
    /// Nobody compares the newest log and the manifest with what is noted of them.
    IgnoreWitness,
    /// A transaction that waits does not remember the keys that it has read.
    ForgetReads,
    /// It does not remember the ranges.
    ForgetRanges,
    /// A transaction that has only read goes on although what it read has changed, so it sees two moments.
    ReaderGoesOn,
    /// The last of the changes that were rolled back for a wait is not applied again.
    LosePrivateWrite,
    /// What others commit during a commit in slices is not there behind it.
    ForgetFollowing,
    /// A locked row is given to whoever asks next, too.
    GrantLockTwice,
    /// A transaction that waited does not look at its foreign keys again when it commits.
    ForgetForeignKeys,
    /// A statement of SQL that has waited for a locked row goes on with the row as it was before.
    OldRowUnderLock,
    /// A statement of SQL that changes one row waits between the look at it and the change, and remembers nothing.
    WaitWithoutTxn,
    /// `EXEC` of Redis' protocol does not look at what is watched.
    ForgetWatches,
    /// memcached's `cas` takes any.
    TakeAnyCas,
}

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
}

/// Plants a bug on this thread, or takes it out.
pub fn plant(bug: Option<Plant>) {
    PLANTED.set(bug);
}

/// True if this bug is planted here.
pub fn is_planted(bug: Plant) -> bool {
    PLANTED.get() == Some(bug)
}
