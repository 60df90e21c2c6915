//! A limit of memory that includes the page cache: a control group that a server is put into before it reads its files.
//!
//! What a server has read and written stays in the page cache, and on a machine with much memory no read ever comes to the device. In a group of
//! its own the cache counts as the server's, and a limit takes it away. Both layouts of the kernel's are known, the groups of memory alone (v1) and
//! the common ones (v2); either needs rights that root has.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Where a group is made, the file of its limit, what its processes took that no file has, and what a limit that is none is called.
const LAYOUTS: [(&str, &str, &str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "rss", "-1"), ("/sys/fs/cgroup", "memory.max", "anon", "max")];
/// So long the kernel is asked for a limit.
const LIMIT_MAX: Duration = Duration::from_secs(5);
const LIMIT_PAUSE: Duration = Duration::from_millis(50);
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A group; gone on drop, its processes are elsewhere then.
pub(crate) struct Cgroup {
    dir: PathBuf,
    limit_file: &'static str,
    own_memory: &'static str,
    no_limit: &'static str,
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

impl Cgroup {
    /// Makes an empty group without a limit. Errors: the kernel has none here, or this user may not.
    pub(crate) fn new() -> Result<Self, String> {
        let name = format!("lycosa-bench-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut troubles = Vec::new();
        for (root, limit_file, own_memory, no_limit) in LAYOUTS {
            let dir = Path::new(root).join(&name);
            if let Err(error) = std::fs::create_dir(&dir) {
                troubles.push(format!("{}: {error}", dir.display()));
                continue;
            }
            let group = Cgroup { dir, limit_file, own_memory, no_limit };
            if group.dir.join(limit_file).exists() {
                return Ok(group);
            }
            troubles.push(format!("{root} does not control memory"));
        }
        Err(format!("no control group: {}", troubles.join(", ")))
    }

    /// Puts a process into it. Memory that it has taken before stays counted where it was.
    pub(crate) fn hold(&self, pid: u32) -> Result<(), String> {
        write(&self.dir.join("cgroup.procs"), &pid.to_string())
    }

    /// Sets the limit; what is above it is taken from the page cache.
    pub(crate) fn limit(&self, bytes: u64) -> Result<(), String> {
        let begun = Instant::now();
        // The kernel refuses while it has not taken back enough, which may be a matter of pages that are being written.
        loop {
            match write(&self.dir.join(self.limit_file), &bytes.to_string()) {
                Err(_) if begun.elapsed() < LIMIT_MAX => std::thread::sleep(LIMIT_PAUSE),
                result => return result,
            }
        }
    }

    /// Takes the limit away.
    pub(crate) fn unlimit(&self) -> Result<(), String> {
        write(&self.dir.join(self.limit_file), self.no_limit)
    }

    /// Memory of its processes that is no page of a file.
    pub(crate) fn own_bytes(&self) -> Result<u64, String> {
        let path = self.dir.join("memory.stat");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = text.lines().find_map(|line| line.strip_prefix(self.own_memory)?.trim().parse().ok());
        found.ok_or_else(|| format!("{} has no {}", path.display(), self.own_memory))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that is still in it goes back to where all are; a group that stays is empty and does no harm.
        let root = self.dir.parent().map(|root| root.join("cgroup.procs"));
        let processes = std::fs::read_to_string(self.dir.join("cgroup.procs")).unwrap_or_default();
        for (pid, root) in processes.lines().zip(std::iter::repeat(root)) {
            let _ = root.map(|root| std::fs::write(root, pid));
        }
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// Files of a directory and of all below it.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Takes the files of a directory out of the page cache, whoever has put them there: `dd` without a block to copy gives the kernel that advice.
pub(crate) fn forget_pages(dir: &Path) -> Result<(), String> {
    for file in files_below(dir) {
        let output = format!("of={}", file.display());
        let status = Command::new("dd")
            .args([&output, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"])
            .status();
        // A file may have gone away meanwhile.
        match status {
            Ok(status) if status.success() || !file.exists() => {}
            Ok(status) => return Err(format!("dd {output} ended with {status}")),
            Err(error) => return Err(format!("dd: {error}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn files_of_all_levels_are_found_and_stay_whole() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("below/a"), "text").unwrap();
        std::fs::write(dir.path().join("b"), "").unwrap();
        forget_pages(dir.path()).unwrap();
        let mut names = files_below(dir.path());
        names.sort();
        assert_eq!(names, [dir.path().join("b"), dir.path().join("below/a")]);
        assert_eq!(std::fs::read(&names[1]).unwrap(), b"text");
    }

    #[test]
    fn a_group_goes_away() {
        // Who may not make one is told so.
        if let Ok(group) = Cgroup::new() {
            group.limit(1 << 30).unwrap();
            group.unlimit().unwrap();
            assert!(group.own_bytes().is_ok());
            let dir = group.dir.clone();
            drop(group);
            assert!(!dir.exists());
        }
    }
}
