//! A directory of Tarantool with rows in files of its disk engine is moved into ours by the first start.
#![allow(clippy::unwrap_used, reason = "tests")]

use lycosa_tests::{binary, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tarantool() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join("tarantool")).find(|path| path.exists());
    if found.is_none() {
        println!("SKIPPED: there is no tarantool on this machine");
    }
    found
}

fn start(server: &Path, script: &str, dir: &Path, checkpoint: bool) -> Output {
    let mut command = Command::new(server);
    command.arg(root().join("tests/format").join(script)).current_dir(dir).env("SERVER_LOG", "server.log");
    if checkpoint {
        command.env("CHECKPOINT", "yes");
    }
    command.output().unwrap()
}

fn run(server: &Path, script: &str, dir: &Path, checkpoint: bool) -> String {
    let output = start(server, script, dir, checkpoint);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let log = fs::read_to_string(dir.join("server.log")).unwrap_or_default();
    assert!(output.status.success(), "{} {script}: {complaint}{log}", server.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All files below a directory.
fn files_of(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                false => _ = found.insert(path.strip_prefix(dir).unwrap().to_path_buf(), fs::read(&path).unwrap()),
            }
        }
    }
    found
}

fn copy(from: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in files_of(from) {
        let to = dir.path().join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    dir
}

fn is_vinyl(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "run" || kind == "index" || kind == "vylog") && !path.starts_with("lsm")
}

#[test]
fn rows_that_tarantool_has_on_disk_are_moved_by_the_first_start() {
    let Some(tarantool) = tarantool() else { return };
    let dir = tempfile::tempdir().unwrap();
    run(&tarantool, "disk_fill.lua", dir.path(), false);
    let before = files_of(dir.path());
    assert!(before.keys().filter(|path| is_vinyl(path)).count() > 10, "it has written runs");
    let for_tarantool = copy(dir.path());
    let wanted = run(&tarantool, "disk_list.lua", for_tarantool.path(), false);
    assert!(wanted.contains("numbers.pk [10001,\"log only\",7]") && wanted.contains("emptied.pk: 1 rows"), "{wanted}");
    // The process may end before the checkpoint is there: the next start reads all of it again.
    for checkpoint in [false, true, false] {
        let given = run(&binary(), "disk_list.lua", dir.path(), checkpoint);
        let differs = wanted.lines().zip(given.lines()).find(|(wanted, given)| wanted != given);
        assert!(given == wanted, "{differs:?}");
    }
    let after = files_of(dir.path());
    for (path, bytes) in before.iter().filter(|(path, _)| is_vinyl(path)) {
        assert!(after.get(path) == Some(bytes), "{} is as it was", path.display());
    }
    // They are of no use any more.
    fs::remove_dir_all(dir.path().join("512")).unwrap();
    assert!(run(&binary(), "disk_list.lua", dir.path(), false) == wanted);
}

#[test]
fn a_run_that_is_missing_or_damaged_is_refused() {
    let Some(tarantool) = tarantool() else { return };
    let dir = tempfile::tempdir().unwrap();
    run(&tarantool, "disk_fill.lua", dir.path(), false);
    let files = files_of(dir.path());
    let is_named = |path: &&PathBuf| path.starts_with("512/0") && is_vinyl(path);
    let last = files.keys().filter(is_named).rfind(|path| path.extension().is_some_and(|kind| kind == "run")).unwrap();
    let path = dir.path().join(last);
    let mut bytes = files[last].clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&path, bytes).unwrap();
    let output = start(&binary(), "disk_list.lua", dir.path(), false);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stderr),
        fs::read_to_string(dir.path().join("server.log")).unwrap()
    );
    let name = last.file_name().unwrap().to_str().unwrap();
    assert!(!output.status.success() && text.contains(name) && text.contains("damaged at byte"), "{text}");
    fs::remove_file(&path).unwrap();
    let output = start(&binary(), "disk_list.lua", dir.path(), false);
    assert!(!output.status.success());
}

/// Rows of local spaces count in a component of their own: a start took rows on disk behind them for dumped, and they were gone.
#[test]
fn rows_on_disk_behind_rows_of_local_spaces_are_there_after_a_start() {
    let dir = tempfile::tempdir().unwrap();
    run(&binary(), "disk_fill.lua", dir.path(), false);
    let listed = run(&binary(), "disk_list.lua", dir.path(), false);
    assert!(listed.contains("numbers.pk [10001,\"log only\",7]") && listed.contains("late.pk: 1 rows"), "{listed}");
    if let Some(tarantool) = tarantool() {
        let other = tempfile::tempdir().unwrap();
        run(&tarantool, "disk_fill.lua", other.path(), false);
        let wanted = run(&tarantool, "disk_list.lua", other.path(), false);
        let differs = wanted.lines().zip(listed.lines()).find(|(wanted, given)| wanted != given);
        assert!(listed == wanted, "{differs:?}");
    }
}
