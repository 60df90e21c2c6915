//! `lycosa backup`: copies the files of a server into an empty directory, on which another server can start.
//!
//! A running server lists its files, and leaves them as they are until they are copied. Of a stopped server's directory it copies all files
//! that belong to it. It runs on the machine of the files, and syncs what it has copied before it reports success.

use crate::client::Client;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use runtime::{FileSystem, OpenMode, SystemFiles};
use serde_json::Value;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use storage::lsm::LSM_DIR;

/// Bytes that are copied at once.
const STEP_BYTES: usize = 1 << 20;
/// Asks a server for its files, by names that mean the same everywhere.
const BEGIN: &str = "local fio, list = require('fio'), {}
for at, name in ipairs(box.backup.start()) do list[at] = fio.abspath(name) end
return list";

/// Options of `backup`.
#[derive(Args, Debug)]
pub struct Options {
    /// The running server, on this machine: [user:password@]host:port[?transport=ssl&...] or port. Its user needs the right to execute the universe
    #[arg(long, default_value = "127.0.0.1:3301", conflicts_with = "dir")]
    uri: String,
    /// Instead, the data directory of a stopped server
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Directory for the copy, created if it does not exist; it must be empty
    target: PathBuf,
}

/// A file and where its copy goes.
struct Copy {
    from: PathBuf,
    to: PathBuf,
    bytes: u64,
}

/// Makes a backup. Returns the exit code. Errors: what went wrong, as text; the target may then hold a part of it.
pub fn run(options: &Options) -> Result<i32, String> {
    let target = &options.target;
    let failed = |error: std::io::Error| format!("{}: {error}", target.display());
    SystemFiles.create_dir_all(target).map_err(failed)?;
    if !SystemFiles.list(target).map_err(failed)?.is_empty() {
        return Err(format!("{} is not empty", target.display()));
    }
    let copies = match &options.dir {
        Some(dir) => {
            let lock = SystemFiles.lock(&dir.join("lycosa.lock"));
            let _lock = lock.map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => format!("{}: there is no such directory of data", dir.display()),
                _ => format!("{}: {error}; if a server runs on it, back it up by --uri", dir.display()),
            })?;
            let copies = files_of(dir, target)?;
            copy_all(&copies, target, options.quiet)?;
            copies
        }
        None => {
            let mut client = Client::connect(&options.uri)?;
            let list = client.eval(BEGIN, "")?;
            let copied = asked_for(&list, target).and_then(|copies| {
                copy_all(&copies, target, options.quiet)?;
                Ok(copies)
            });
            let ended = client.eval("box.backup.stop()", "");
            let copies = copied?;
            ended?;
            copies
        }
    };
    let bytes: u64 = copies.iter().map(|copy| copy.bytes).sum();
    println!("{} files, {bytes} bytes in {}", copies.len(), target.display());
    Ok(0)
}

fn copy_of(from: PathBuf, to: PathBuf) -> Result<Copy, String> {
    let length = SystemFiles.open(&from, OpenMode::READ).and_then(|file| file.len());
    let bytes = length.map_err(|error| format!("{}: {error}", from.display()))?;
    Ok(Copy { from, to, bytes })
}

/// What a server has listed.
fn asked_for(list: &Value, target: &Path) -> Result<Vec<Copy>, String> {
    let list = list.as_array().ok_or("the server has not listed its files")?;
    let paths = list.iter().filter_map(Value::as_str).map(PathBuf::from);
    paths
        .map(|from| {
            let name = from.file_name().ok_or("the server has listed a file without a name")?;
            let is_of_disk = from.parent().and_then(Path::file_name).is_some_and(|dir| dir == LSM_DIR);
            let to = if is_of_disk { target.join(LSM_DIR).join(name) } else { target.join(name) };
            copy_of(from, to)
        })
        .collect()
}

/// What belongs to a server in a directory of its own.
fn files_of(dir: &Path, target: &Path) -> Result<Vec<Copy>, String> {
    let list = |dir: &Path| SystemFiles.list(dir).map_err(|error| format!("{}: {error}", dir.display()));
    let is_ours = |name: &str| {
        let kinds = [".snap", ".xlog", ".vylog", ".newest", ".confirmed"];
        kinds.iter().any(|kind| name.ends_with(kind))
    };
    let mut copies = Vec::new();
    for name in list(dir)?.into_iter().filter(|name| is_ours(name)) {
        copies.push(copy_of(dir.join(&name), target.join(&name))?);
    }
    if copies.is_empty() {
        return Err(format!("{} holds no snapshot and no log", dir.display()));
    }
    let disk = dir.join(LSM_DIR);
    if SystemFiles.exists(&disk) {
        let is_left = |name: &str| name.ends_with(".inprogress") || name.ends_with(".lost");
        for name in list(&disk)?.into_iter().filter(|name| !is_left(name)) {
            copies.push(copy_of(disk.join(&name), target.join(LSM_DIR).join(&name))?);
        }
    }
    Ok(copies)
}

/// Copies files and syncs them, and the directories.
fn copy_all(copies: &[Copy], target: &Path, is_quiet: bool) -> Result<(), String> {
    let total = copies.iter().map(|copy| copy.bytes).sum();
    let progress = match is_quiet || !std::io::stderr().is_terminal() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(total),
    };
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}") {
        progress.set_style(style);
    }
    if copies.iter().any(|copy| copy.to.parent() != Some(target)) {
        let dir = target.join(LSM_DIR);
        SystemFiles.create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    for copy in copies {
        copy_file(copy, &progress).map_err(|error| format!("{}: {error}", copy.from.display()))?;
    }
    for dir in [target.join(LSM_DIR), target.to_path_buf()].iter().filter(|dir| SystemFiles.exists(dir)) {
        SystemFiles.sync_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    progress.finish_and_clear();
    Ok(())
}

fn copy_file(copy: &Copy, progress: &ProgressBar) -> std::io::Result<()> {
    let from = SystemFiles.open(&copy.from, OpenMode::READ)?;
    let to = SystemFiles.open(&copy.to, OpenMode::CREATE)?;
    let mut buffer = vec![0; STEP_BYTES];
    let mut at = 0;
    loop {
        let got = from.read_full_at(&mut buffer, at)?;
        if got == 0 {
            break;
        }
        to.write_all_at(&buffer[..got], at)?;
        at += got as u64;
        progress.inc(got as u64);
    }
    to.sync()
}
