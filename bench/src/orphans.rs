//! Servers and directories that go away with this program also when it is ended by a signal, where nothing is dropped.

use runtime::signals::{HANG_UP, INTERRUPT, TERMINATE, handle_signals};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The directory of each server and its process, if one runs.
static SERVERS: Mutex<BTreeMap<PathBuf, Option<u32>>> = Mutex::new(BTreeMap::new());

/// From now on the process, if there is one, and the directory go away with this program.
pub(crate) fn watch_over(dir: &Path, pid: Option<u32>) {
    SERVERS.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_path_buf(), pid);
}

/// The directory is somebody else's care, or gone.
pub(crate) fn forget(dir: &Path) {
    SERVERS.lock().unwrap_or_else(PoisonError::into_inner).remove(dir);
}

/// Ends all servers that run and removes all directories.
fn clear() {
    for (dir, pid) in std::mem::take(&mut *SERVERS.lock().unwrap_or_else(PoisonError::into_inner)) {
        // There is nobody left to tell of a failure.
        if let Some(pid) = pid {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        let _ = std::fs::remove_dir_all(dir);
    }
}

/// Makes signals that end this program end its servers first.
pub(crate) fn handle() -> Result<(), String> {
    handle_signals(&[TERMINATE, INTERRUPT, HANG_UP], |_| {
        clear();
        std::process::exit(130);
    })
    .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use std::process::Stdio;

    #[test]
    fn what_is_watched_over_goes_away_and_the_rest_stays() {
        let (ours, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        watch_over(ours.path(), Some(child.id()));
        watch_over(kept.path(), None);
        forget(kept.path());
        clear();
        assert!(!child.wait().unwrap().success());
        assert!(!ours.path().exists() && kept.path().exists());
    }
}
