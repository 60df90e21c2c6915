//! Bugs put in on purpose: each must be found, or the tools would not find a real one either.
//!
//! Three are a double of the file system. Nineteen need a place in the product, which the feature `planted-bugs` compiles in; README.md
//! names the places.

use crate::check::Finding;
use crate::report::Progress;
use crate::run::Wrap;
#[cfg(feature = "planted-bugs")]
use crate::run::plain;
use crate::world::Engine;
use crate::{crash_points, errors, histories};
use runtime::{File, FileSystem, OpenMode, SimulatedFiles};
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A write of the log is taken for durable when the system has it.
    AcknowledgeBeforeSync,
    /// Directories are not synced.
    SkipDirectorySync,
    /// An error of what is sent to the disk ahead of a sync is not told: whoever syncs behind it trusts the file.
    IgnoreWriteBehind,
    /// A statement that is taken back leaves its row in the secondary indexes.
    #[cfg(feature = "planted-bugs")]
    KeepSecondaryEntry,
    /// After a failed write the log goes on, and gives the lost positions to others.
    #[cfg(feature = "planted-bugs")]
    ReusePosition,
    /// A block is believed whatever its checksum.
    #[cfg(feature = "planted-bugs")]
    IgnoreChecksum,
    /// A block of a run is believed whatever its checksum.
    #[cfg(feature = "planted-bugs")]
    IgnoreBlockChecksum,
    /// A run is named in the manifest before it is on disk.
    #[cfg(feature = "planted-bugs")]
    RecordBeforeSync,
    /// A run is removed while somebody reads it.
    #[cfg(feature = "planted-bugs")]
    RemoveRunThatIsRead,
    /// A run is removed though another range names it.
    #[cfg(feature = "planted-bugs")]
    RemoveRunThatIsNamed,
    /// Every merge and dump leaves out deletes, whatever lies below.
    #[cfg(feature = "planted-bugs")]
    DropTombstones,
    /// Filters deny some of the keys that they know.
    #[cfg(feature = "planted-bugs")]
    FilterDenies,
    /// Nobody compares the newest log and the manifest with what is noted of them.
    #[cfg(feature = "planted-bugs")]
    IgnoreWitness,
    /// A transaction that waits does not remember the keys that it has read.
    #[cfg(feature = "planted-bugs")]
    ForgetReads,
    /// It does not remember the ranges.
    #[cfg(feature = "planted-bugs")]
    ForgetRanges,
    /// A transaction that has only read sees two moments.
    #[cfg(feature = "planted-bugs")]
    ReaderGoesOn,
    /// A change of a transaction that waits is gone when it goes on.
    #[cfg(feature = "planted-bugs")]
    LosePrivateWrite,
    /// What others commit during a commit in slices is not there behind it.
    #[cfg(feature = "planted-bugs")]
    ForgetFollowing,
    /// A locked row is given to a second transaction.
    #[cfg(feature = "planted-bugs")]
    GrantLockTwice,
    /// A transaction that waited does not look at its foreign keys again when it commits.
    #[cfg(feature = "planted-bugs")]
    ForgetForeignKeys,
    /// A statement of SQL that changes one row waits between the look at it and the change.
    #[cfg(feature = "planted-bugs")]
    WaitWithoutTxn,
    /// A statement of SQL that has waited for a locked row goes on with the row as it was before.
    #[cfg(feature = "planted-bugs")]
    OldRowUnderLock,
    /// `EXEC` of Redis' protocol does not look at what is watched.
    #[cfg(feature = "planted-bugs")]
    ForgetWatches,
    /// memcached's `cas` takes any.
    #[cfg(feature = "planted-bugs")]
    TakeAnyCas,
}

impl Bug {
    /// All that are compiled in.
    pub const ALL: &[Bug] = &[
        Bug::AcknowledgeBeforeSync,
        Bug::SkipDirectorySync,
        Bug::IgnoreWriteBehind,
        #[cfg(feature = "planted-bugs")]
        Bug::KeepSecondaryEntry,
        #[cfg(feature = "planted-bugs")]
        Bug::ReusePosition,
        #[cfg(feature = "planted-bugs")]
        Bug::IgnoreChecksum,
        #[cfg(feature = "planted-bugs")]
        Bug::IgnoreBlockChecksum,
        #[cfg(feature = "planted-bugs")]
        Bug::RecordBeforeSync,
        #[cfg(feature = "planted-bugs")]
        Bug::RemoveRunThatIsRead,
        #[cfg(feature = "planted-bugs")]
        Bug::RemoveRunThatIsNamed,
        #[cfg(feature = "planted-bugs")]
        Bug::DropTombstones,
        #[cfg(feature = "planted-bugs")]
        Bug::FilterDenies,
        #[cfg(feature = "planted-bugs")]
        Bug::IgnoreWitness,
        #[cfg(feature = "planted-bugs")]
        Bug::ForgetReads,
        #[cfg(feature = "planted-bugs")]
        Bug::ForgetRanges,
        #[cfg(feature = "planted-bugs")]
        Bug::ReaderGoesOn,
        #[cfg(feature = "planted-bugs")]
        Bug::LosePrivateWrite,
        #[cfg(feature = "planted-bugs")]
        Bug::ForgetFollowing,
        #[cfg(feature = "planted-bugs")]
        Bug::GrantLockTwice,
        #[cfg(feature = "planted-bugs")]
        Bug::ForgetForeignKeys,
        #[cfg(feature = "planted-bugs")]
        Bug::WaitWithoutTxn,
        #[cfg(feature = "planted-bugs")]
        Bug::OldRowUnderLock,
        #[cfg(feature = "planted-bugs")]
        Bug::ForgetWatches,
        #[cfg(feature = "planted-bugs")]
        Bug::TakeAnyCas,
    ];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Bug::AcknowledgeBeforeSync => "acknowledge-before-sync",
            Bug::SkipDirectorySync => "skip-directory-sync",
            Bug::IgnoreWriteBehind => "ignore-write-behind",
            #[cfg(feature = "planted-bugs")]
            Bug::KeepSecondaryEntry => "keep-secondary-entry",
            #[cfg(feature = "planted-bugs")]
            Bug::ReusePosition => "reuse-position",
            #[cfg(feature = "planted-bugs")]
            Bug::IgnoreChecksum => "ignore-checksum",
            #[cfg(feature = "planted-bugs")]
            Bug::IgnoreBlockChecksum => "ignore-block-checksum",
            #[cfg(feature = "planted-bugs")]
            Bug::RecordBeforeSync => "record-before-sync",
            #[cfg(feature = "planted-bugs")]
            Bug::RemoveRunThatIsRead => "remove-run-that-is-read",
            #[cfg(feature = "planted-bugs")]
            Bug::RemoveRunThatIsNamed => "remove-run-that-is-named",
            #[cfg(feature = "planted-bugs")]
            Bug::DropTombstones => "drop-tombstones",
            #[cfg(feature = "planted-bugs")]
            Bug::FilterDenies => "filter-denies",
            #[cfg(feature = "planted-bugs")]
            Bug::IgnoreWitness => "ignore-witness",
            #[cfg(feature = "planted-bugs")]
            Bug::ForgetReads => "forget-reads",
            #[cfg(feature = "planted-bugs")]
            Bug::ForgetRanges => "forget-ranges",
            #[cfg(feature = "planted-bugs")]
            Bug::ReaderGoesOn => "reader-goes-on",
            #[cfg(feature = "planted-bugs")]
            Bug::LosePrivateWrite => "lose-private-write",
            #[cfg(feature = "planted-bugs")]
            Bug::ForgetFollowing => "forget-following",
            #[cfg(feature = "planted-bugs")]
            Bug::GrantLockTwice => "grant-lock-twice",
            #[cfg(feature = "planted-bugs")]
            Bug::ForgetForeignKeys => "forget-foreign-keys",
            #[cfg(feature = "planted-bugs")]
            Bug::WaitWithoutTxn => "wait-without-txn",
            #[cfg(feature = "planted-bugs")]
            Bug::OldRowUnderLock => "old-row-under-lock",
            #[cfg(feature = "planted-bugs")]
            Bug::ForgetWatches => "forget-watches",
            #[cfg(feature = "planted-bugs")]
            Bug::TakeAnyCas => "take-any-cas",
        }
    }

    /// True if it shows only in rows on disk.
    pub fn is_of_disk(self) -> bool {
        #[cfg(feature = "planted-bugs")]
        return matches!(
            self,
            Bug::IgnoreWriteBehind
                | Bug::IgnoreBlockChecksum
                | Bug::RecordBeforeSync
                | Bug::RemoveRunThatIsRead
                | Bug::RemoveRunThatIsNamed
                | Bug::DropTombstones
                | Bug::FilterDenies
        );
        #[cfg(not(feature = "planted-bugs"))]
        return self == Bug::IgnoreWriteBehind;
    }

    /// True if only seeds can show it: the exhaustive tools have no file that is damaged at rest, and no transactions beside each other.
    pub fn needs_seeds(self) -> bool {
        #[cfg(feature = "planted-bugs")]
        return matches!(
            self,
            Bug::IgnoreBlockChecksum
                | Bug::IgnoreWitness
                | Bug::ForgetReads
                | Bug::ForgetRanges
                | Bug::ReaderGoesOn
                | Bug::LosePrivateWrite
                | Bug::ForgetFollowing
                | Bug::GrantLockTwice
                | Bug::ForgetForeignKeys
                | Bug::WaitWithoutTxn
                | Bug::OldRowUnderLock
                | Bug::ForgetWatches
                | Bug::TakeAnyCas
        );
        #[cfg(not(feature = "planted-bugs"))]
        false
    }

    /// The workloads of the seeds that are to find it; none: any. Those whose clients come through doors run only when they are named.
    pub fn workloads(self) -> Vec<String> {
        #[cfg(feature = "planted-bugs")]
        match self {
            Bug::ForgetWatches | Bug::TakeAnyCas => return vec!["items".to_string()],
            Bug::ForgetForeignKeys => return vec!["families".to_string()],
            Bug::OldRowUnderLock => return vec!["statements".to_string()],
            Bug::WaitWithoutTxn => return vec!["appends".to_string()],
            // Any finds it, but not soon.
            Bug::ForgetFollowing => return vec!["transactions".to_string()],
            _ => {}
        }
        Vec::new()
    }

    /// True if only rows in memory can show it.
    pub fn is_in_memory(self) -> bool {
        match self {
            #[cfg(feature = "planted-bugs")]
            Bug::ForgetFollowing | Bug::WaitWithoutTxn => true,
            _ => false,
        }
    }

    /// The one of a name, if it is compiled in.
    pub fn named(name: &str) -> Option<Self> {
        Bug::ALL.iter().copied().find(|bug| bug.name() == name)
    }

    /// What it puts between the database and its files.
    pub(crate) fn wrap(self) -> Wrap {
        match self {
            Bug::AcknowledgeBeforeSync => |files| Arc::new(Unsynced(files.clone())),
            Bug::SkipDirectorySync => |files| Arc::new(NamesUnsynced(files.clone())),
            Bug::IgnoreWriteBehind => |files| Arc::new(ErrorsUntold(files.clone())),
            #[cfg(feature = "planted-bugs")]
            _ => plain,
        }
    }

    /// Puts it into the product, on this thread, for as long as the guard lives.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn plant(self) -> Planted {
        use runtime::planted::{Plant, plant};
        plant(match self {
            Bug::KeepSecondaryEntry => Some(Plant::KeepSecondaryEntry),
            Bug::ReusePosition => Some(Plant::ReusePosition),
            Bug::IgnoreChecksum => Some(Plant::IgnoreChecksum),
            Bug::IgnoreBlockChecksum => Some(Plant::IgnoreBlockChecksum),
            Bug::RecordBeforeSync => Some(Plant::RecordBeforeSync),
            Bug::RemoveRunThatIsRead => Some(Plant::RemoveRunThatIsRead),
            Bug::RemoveRunThatIsNamed => Some(Plant::RemoveRunThatIsNamed),
            Bug::DropTombstones => Some(Plant::DropTombstones),
            Bug::FilterDenies => Some(Plant::FilterDenies),
            Bug::IgnoreWitness => Some(Plant::IgnoreWitness),
            Bug::ForgetReads => Some(Plant::ForgetReads),
            Bug::ForgetRanges => Some(Plant::ForgetRanges),
            Bug::ReaderGoesOn => Some(Plant::ReaderGoesOn),
            Bug::LosePrivateWrite => Some(Plant::LosePrivateWrite),
            Bug::ForgetFollowing => Some(Plant::ForgetFollowing),
            Bug::GrantLockTwice => Some(Plant::GrantLockTwice),
            Bug::ForgetForeignKeys => Some(Plant::ForgetForeignKeys),
            Bug::WaitWithoutTxn => Some(Plant::WaitWithoutTxn),
            Bug::OldRowUnderLock => Some(Plant::OldRowUnderLock),
            Bug::ForgetWatches => Some(Plant::ForgetWatches),
            Bug::TakeAnyCas => Some(Plant::TakeAnyCas),
            _ => None,
        });
        Planted(())
    }

    /// Bugs of this build are doubles of the file system only.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) fn plant(self) -> Planted {
        Planted(())
    }
}

/// Takes the bug out of the product when it goes.
pub(crate) struct Planted(());

impl Drop for Planted {
    fn drop(&mut self) {
        #[cfg(feature = "planted-bugs")]
        runtime::planted::plant(None);
    }
}

/// How a bug was found.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// By which tool.
    pub tool: &'static str,
    /// States looked at before, and runs with errors, by all tools so far.
    pub states: u64,
    /// What it looked like.
    pub finding: Finding,
}

/// Plants a bug on this thread and runs the tools until one finds it.
pub fn find(bug: Bug, progress: &Progress) -> Option<Discovery> {
    let _planted = bug.plant();
    let engine = if bug.is_of_disk() { Engine::Disk } else { Engine::Memory };
    if bug == Bug::IgnoreWriteBehind {
        // Without an error there is none to ignore.
        return hunt_by_errors(bug.wrap(), engine, 0, progress);
    }
    hunt(bug.wrap(), engine, progress)
}

fn hunt(wrap: Wrap, engine: Engine, progress: &Progress) -> Option<Discovery> {
    let options = crash_points::Options { wrap, engine, again: false, ..crash_points::Options::default() };
    let outcome = crash_points::run(options, progress);
    let mut states = outcome.counts.states;
    if let Some(finding) = outcome.finding {
        return Some(Discovery { tool: "crash-points", states, finding });
    }
    let outcome = histories::run(histories::Options { wrap, engine, ..histories::Options::default() }, progress);
    states += outcome.counts.states;
    if let Some(finding) = outcome.finding {
        return Some(Discovery { tool: "histories", states, finding });
    }
    hunt_by_errors(wrap, engine, states, progress)
}

fn hunt_by_errors(wrap: Wrap, engine: Engine, states: u64, progress: &Progress) -> Option<Discovery> {
    let outcome = errors::run(errors::Options { wrap, engine, ..errors::Options::default() }, progress);
    let states = states + outcome.counts.states + outcome.runs.values().sum::<u64>();
    outcome.finding.map(|finding| Discovery { tool: "errors", states, finding })
}

/// Synced writes are not.
struct Unsynced(SimulatedFiles);

/// Directories are not synced.
struct NamesUnsynced(SimulatedFiles);

/// Errors of what is sent to the disk ahead of a sync are kept back.
struct ErrorsUntold(SimulatedFiles);

/// The methods that a double leaves as they are.
macro_rules! as_simulated {
    () => {
        fn create_dir_all(&self, path: &Path) -> io::Result<()> {
            self.0.create_dir_all(path)
        }

        fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
            self.0.list(dir)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.0.rename(from, to)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            self.0.remove(path)
        }

        fn exists(&self, path: &Path) -> bool {
            self.0.exists(path)
        }

        fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
            self.0.lock(path)
        }
    };
}

impl FileSystem for Unsynced {
    as_simulated!();

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.0.open(path, OpenMode { synced: false, ..mode })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

impl FileSystem for NamesUnsynced {
    as_simulated!();

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.0.open(path, mode)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl FileSystem for ErrorsUntold {
    as_simulated!();

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(ErrorsUntoldFile(self.0.open(path, mode)?)))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

struct ErrorsUntoldFile(Arc<dyn File>);

impl File for ErrorsUntoldFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn read_cached_at(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.0.read_cached_at(out, offset)
    }

    fn is_cached_at(&self, offset: u64, length: usize) -> Option<bool> {
        self.0.is_cached_at(offset, length)
    }

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        self.0.open_direct()
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn write_behind(&self, offset: u64, length: u64) -> io::Result<()> {
        // The bug.
        let _ = self.0.write_behind(offset, length);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn is_removed(&self) -> io::Result<bool> {
        self.0.is_removed()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}
