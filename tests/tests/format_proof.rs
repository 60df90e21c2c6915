//! Proof of the file format: Lycosa reads what the real Tarantool wrote, and the other way round.
//!
//! The scripts and fixtures: `tests/format/README.md`.

#![allow(clippy::unwrap_used, reason = "tests")]

use lycosa_tests::{binary, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs one of the scripts in a data directory; what it printed.
fn run(server: &Path, script: &str, dir: &Path) -> String {
    let output = Command::new(server)
        .arg(root().join("tests/format").join(script))
        .current_dir(dir)
        .env("SERVER_LOG", "server.log")
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {script}: {complaint}", server.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn copy(from: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "snap" || kind == "xlog") {
            fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    dir
}

fn fixture_is_read(name: &str) {
    let fixture = root().join("tests/format").join(name);
    let dir = copy(&fixture);
    let wanted = fs::read_to_string(fixture.join("list.txt")).unwrap();
    let given = run(&binary(), "list.lua", dir.path());
    for (line, (wanted, given)) in wanted.lines().zip(given.lines()).enumerate() {
        assert_eq!(wanted, given, "line {} of {name}", line + 1);
    }
    assert_eq!(wanted.lines().count(), given.lines().count());
}

#[test]
fn lycosa_starts_on_a_directory_that_tarantool_wrote() {
    fixture_is_read("tarantool-2.6");
}

#[test]
fn lycosa_starts_on_a_directory_that_an_earlier_version_wrote() {
    fixture_is_read("lycosa-0.1");
}

/// The real Tarantool, if the machine has it.
fn tarantool() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join("tarantool")).find(|path| path.exists());
    if found.is_none() {
        println!("SKIPPED: there is no tarantool on this machine");
    }
    found
}

#[test]
fn tarantool_starts_on_a_directory_that_lycosa_wrote() {
    let Some(tarantool) = tarantool() else { return };
    let dir = tempfile::tempdir().unwrap();
    run(&binary(), "fill.lua", dir.path());
    let (for_lycosa, for_tarantool) = (copy(dir.path()), copy(dir.path()));
    assert_eq!(run(&binary(), "list.lua", for_lycosa.path()), run(&tarantool, "list.lua", for_tarantool.path()));
}

#[test]
fn lycosa_starts_on_a_directory_that_tarantool_has_just_written() {
    let Some(tarantool) = tarantool() else { return };
    let dir = tempfile::tempdir().unwrap();
    run(&tarantool, "fill.lua", dir.path());
    let (for_lycosa, for_tarantool) = (copy(dir.path()), copy(dir.path()));
    assert_eq!(run(&binary(), "list.lua", for_lycosa.path()), run(&tarantool, "list.lua", for_tarantool.path()));
}

/// Both read what one of them has changed, by the log alone. The first truncation of a space was lost when Tarantool read ours: it truncates by
/// REPLACE and UPSERT of `_truncate`, and takes an INSERT for a row of a snapshot.
fn changes_are_read_alike(writer: &Path, tarantool: &Path) {
    let dir = tempfile::tempdir().unwrap();
    run(writer, "fill.lua", dir.path());
    run(writer, "changes.lua", dir.path());
    let (for_lycosa, for_tarantool) = (copy(dir.path()), copy(dir.path()));
    let (given, wanted) =
        (run(&binary(), "list.lua", for_lycosa.path()), run(tarantool, "list.lua", for_tarantool.path()));
    assert_eq!(given, wanted);
    assert!(
        given.contains("renamed.pk 5 behind") && !given.contains("before") && given.contains("raw.pk 2"),
        "{given}"
    );
}

#[test]
fn tarantool_reads_changes_of_the_schema_that_lycosa_has_logged() {
    let Some(tarantool) = tarantool() else { return };
    changes_are_read_alike(&binary(), &tarantool);
}

#[test]
fn lycosa_reads_changes_of_the_schema_that_tarantool_has_logged() {
    let Some(tarantool) = tarantool() else { return };
    changes_are_read_alike(&tarantool, &tarantool);
}

#[test]
fn tarantool_reads_a_log_that_has_lost_its_padding() {
    let dir = tempfile::tempdir().unwrap();
    run(&binary(), "fill.lua", dir.path());
    run(&binary(), "padded.lua", dir.path());
    let files = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let newest = files.filter(|path| path.extension().is_some_and(|kind| kind == "xlog")).max().unwrap();
    let bytes = fs::metadata(newest).unwrap().len();
    assert!(bytes < 50 << 10, "500 commits and more leave {bytes} bytes");
    let Some(tarantool) = tarantool() else { return };
    let (for_lycosa, for_tarantool) = (copy(dir.path()), copy(dir.path()));
    let given = run(&binary(), "list.lua", for_lycosa.path());
    assert_eq!(given, run(&tarantool, "list.lua", for_tarantool.path()));
    assert!(given.contains("row 499") && given.lines().count() > 1000, "{given}");
}
