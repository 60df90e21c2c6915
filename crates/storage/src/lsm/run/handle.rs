//! Files of runs that are open: a bounded number of them.
//!
//! A descriptor is a bound of the process, and there may be more runs than descriptors. So the file of a run that nobody has read for some time is
//! closed, and opened again when somebody does. The choice is that of a clock: a hand goes round over the open files and closes the first
//! that was not used since it came by last. A run that somebody has is not removed, so its file can be opened as long as it is asked for.

use runtime::{File, FileSystem, OpenMode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// What the files of all runs share.
pub(crate) struct OpenFiles {
    files: Arc<dyn FileSystem>,
    /// So many are open at most, each with up to two descriptors; those that are being read or written come on top.
    max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    handles: Vec<Weak<Handle>>,
    /// Where the hand of the clock is.
    hand: usize,
}

impl OpenFiles {
    pub(crate) fn new(files: Arc<dyn FileSystem>, max: usize) -> Arc<Self> {
        Arc::new(OpenFiles { files, max: max.max(1), open: Mutex::default() })
    }

    /// A file was opened. Another one is closed if there are too many.
    fn add(&self, handle: &Arc<Handle>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while open.handles.len() >= self.max {
            if open.hand >= open.handles.len() {
                open.hand = 0;
            }
            let at = open.hand;
            match open.handles[at].upgrade() {
                Some(other) if other.is_used.swap(false, Ordering::Relaxed) => open.hand += 1,
                other => {
                    open.handles.swap_remove(at);
                    other.inspect(|other| *other.lock() = None);
                }
            }
        }
        open.handles.push(Arc::downgrade(handle));
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.handles.iter().filter_map(Weak::upgrade).filter(|handle| handle.lock().is_some()).count()
    }
}

/// A file while it is open.
struct Opened {
    file: Arc<dyn File>,
    /// The same past the page cache, since it was asked for; `None` inside: there is no such thing.
    direct: Option<Option<Arc<dyn File>>>,
}

impl Opened {
    fn new(file: Arc<dyn File>) -> Self {
        Opened { file, direct: None }
    }
}

/// The file of a run.
pub(super) struct Handle {
    path: PathBuf,
    file: Mutex<Option<Opened>>,
    is_used: AtomicBool,
    /// None: it stays open.
    shared: OnceLock<Arc<OpenFiles>>,
}

impl Handle {
    /// A file that is open.
    pub(super) fn new(path: PathBuf, file: Arc<dyn File>) -> Arc<Self> {
        let (file, is_used) = (Mutex::new(Some(Opened::new(file))), AtomicBool::new(true));
        Arc::new(Handle { path, file, is_used, shared: OnceLock::new() })
    }

    /// From now on it is open only as long as there are not too many.
    pub(super) fn share(self: &Arc<Self>, shared: &Arc<OpenFiles>) {
        if self.shared.set(Arc::clone(shared)).is_ok() {
            shared.add(self);
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The open file. Opens it if it is not, which takes as long as a look into its directory.
    pub(super) fn file(self: &Arc<Self>) -> io::Result<Arc<dyn File>> {
        self.is_used.store(true, Ordering::Relaxed);
        let open = self.lock().as_ref().map(|open| Arc::clone(&open.file));
        if let Some(file) = open {
            return Ok(file);
        }
        let shared = self.shared.get().ok_or_else(|| io::Error::other("a file that is not shared is closed"))?;
        let file = shared.files.open(&self.path, OpenMode::READ)?;
        // Somebody else may have opened it meanwhile: nobody waits for a lock while the directory is looked into.
        let was_open = self.lock().replace(Opened::new(Arc::clone(&file))).is_some();
        if !was_open {
            shared.add(self);
        }
        Ok(file)
    }

    /// The file for reads past the page cache. It is open as long as the other is.
    pub(super) fn direct_file(self: &Arc<Self>) -> Option<Arc<dyn File>> {
        let file = self.file().ok()?;
        if let Some(direct) = self.lock().as_ref().and_then(|open| open.direct.clone()) {
            return direct;
        }
        let direct = file.open_direct();
        if let Some(open) = &mut *self.lock() {
            open.direct = Some(direct.clone());
        }
        direct
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Opened>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]
    use super::*;
    use runtime::{JoinHandle, MachineConfig, PacedFiles, SimulatedFiles, Simulation, spawn_thread};

    fn handles(shared: &Arc<OpenFiles>, files: &SimulatedFiles, count: u8) -> Vec<Arc<Handle>> {
        files.create_dir_all(Path::new("/runs")).unwrap();
        let handle = |number: u8| {
            let path = PathBuf::from(format!("/runs/{number}"));
            let file = files.open(&path, OpenMode::CREATE).unwrap();
            file.write_all_at(&[number], 0).unwrap();
            let handle = Handle::new(path, file);
            handle.share(shared);
            handle
        };
        (0..count).map(handle).collect()
    }

    fn first_byte(handle: &Arc<Handle>) -> u8 {
        let mut byte = [0];
        handle.file().unwrap().read_full_at(&mut byte, 0).unwrap();
        byte[0]
    }

    #[test]
    fn only_so_many_files_are_open_and_all_can_be_read() {
        let files = SimulatedFiles::default();
        let shared = OpenFiles::new(Arc::new(files.clone()), 4);
        let handles = handles(&shared, &files, 20);
        for _ in 0..3 {
            for (number, handle) in handles.iter().enumerate() {
                assert_eq!(usize::from(first_byte(handle)), number);
                assert!(shared.count() <= 4);
            }
        }
    }

    #[test]
    fn a_file_that_is_read_again_and_again_stays_open() {
        let files = SimulatedFiles::default();
        let shared = OpenFiles::new(Arc::new(files.clone()), 4);
        let handles = handles(&shared, &files, 20);
        first_byte(&handles[0]);
        // It has no name any more, so it could not be opened again.
        files.remove(Path::new("/runs/0")).unwrap();
        for handle in &handles[1..] {
            assert_eq!(first_byte(&handles[0]), 0);
            first_byte(handle);
        }
    }

    #[test]
    fn a_file_may_be_opened_by_several_at_once() {
        let simulation = Simulation::new(1, MachineConfig::default());
        simulation.enter(|| {
            let files = SimulatedFiles::default();
            let paced = PacedFiles { files: Arc::new(files.clone()), is_off: Arc::new(|| false) };
            let shared = OpenFiles::new(Arc::new(paced), 1);
            let handles = handles(&shared, &files, 3);
            let read = |number: usize| {
                let handle = Arc::clone(&handles[number % 3]);
                spawn_thread("reader", move || assert_eq!(usize::from(first_byte(&handle)), number % 3)).unwrap()
            };
            let readers: Vec<JoinHandle<()>> = (0..30).map(read).collect();
            assert!(readers.into_iter().all(|reader| reader.join().is_some()));
            assert!(shared.count() <= 1);
        });
    }

    #[test]
    fn files_of_runs_that_are_gone_make_room() {
        let files = SimulatedFiles::default();
        let shared = OpenFiles::new(Arc::new(files.clone()), 2);
        drop(handles(&shared, &files, 2));
        let kept = handles(&shared, &files, 2);
        assert_eq!(shared.count(), 2);
        assert_eq!(first_byte(&kept[1]), 1);
    }
}
