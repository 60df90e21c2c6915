//! A pipe, a socket, a device or a directory where a data file should be: whoever comes to it refuses it by name, at once. A start that opened a
//! pipe as a file would wait for somebody to write into it, for ever.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Rig, binary};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is not over by then waits for somebody who does not come.
const TIME_MAX_S: &str = "60";
/// Rows in memory and on disk, and some of either in the log alone.
const SCRIPT: &str = "
box.once('special', function()
    box.schema.user.grant('guest', 'super')
    box.schema.space.create('memory'):create_index('primary')
    box.schema.space.create('disk', {engine = 'vinyl'}):create_index('primary')
    for i = 1, 50 do box.space.memory:replace{i} box.space.disk:replace{i} end
    box.snapshot()
    box.space.memory:replace{51}
    box.space.disk:replace{51}
end)";

/// Runs the binary, which must fail, and what it said.
fn fails(arguments: &[&dyn AsRef<OsStr>]) -> String {
    let mut command = Command::new("timeout");
    command.arg(TIME_MAX_S).arg(binary()).args(arguments.iter().map(AsRef::as_ref));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_ne!(output.status.code(), Some(124), "{command:?} waits for ever: {text}");
    assert!(!output.status.success(), "{command:?}: {text}");
    text
}

/// Puts something else where a file is. The result has to live as long as it is to be there.
fn replace(path: &Path, what: &str) -> Option<UnixListener> {
    if fs::symlink_metadata(path).is_ok() {
        fs::remove_file(path).unwrap();
    }
    match what {
        "a pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "a directory" => fs::create_dir(path).unwrap(),
        "a device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        _ => {
            // A socket can only be made by a short name.
            let here = tempfile::tempdir().unwrap();
            let listener = UnixListener::bind(here.path().join("s")).unwrap();
            fs::rename(here.path().join("s"), path).unwrap();
            return Some(listener);
        }
    }
    None
}

fn restore(path: &Path, bytes: Option<&[u8]>) {
    match fs::symlink_metadata(path).unwrap().is_dir() {
        true => fs::remove_dir(path).unwrap(),
        false => fs::remove_file(path).unwrap(),
    }
    if let Some(bytes) = bytes {
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn what_is_no_regular_file_is_refused_by_name() {
    let mut rig = Rig::start(SCRIPT, &[]);
    rig.server.terminate();
    assert!(rig.server.ended().success());
    let dir = rig.data();
    let files_of = |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files_of(&dir).chain(files_of(&dir.join("lsm"))).filter(|path| path.is_file()).collect();
    // An older snapshot, and the log from before the newest one, are not read by a start.
    files.retain(|path| path.file_stem().is_none_or(|stem| stem != "00000000000000000000"));
    files.sort();
    for ending in [".snap", ".xlog", ".run", ".newest", ".confirmed"] {
        assert!(files.iter().any(|path| path.to_string_lossy().ends_with(ending)), "{ending}: {files:?}");
    }
    assert!(files.iter().any(|path| path.to_string_lossy().contains("manifest")), "{files:?}");
    // Of Tarantool's, which a start reads behind a snapshot of Tarantool's alone.
    files.push(dir.join("00000000000000000000.vylog"));
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let before = fs::read(path).ok();
        let all = ["a pipe", "a socket", "a device", "a directory"];
        let kinds = if name.ends_with(".snap") || name.ends_with(".run") { &all[..] } else { &all[..1] };
        for what in kinds {
            let _socket = replace(path, what);
            let says_it = |text: &str| {
                assert!(text.contains(&name) && text.contains(&format!("this is {what}")), "{name}, {what}: {text}");
            };
            if !name.ends_with(".vylog") {
                let serve: [&dyn AsRef<OsStr>; 6] =
                    [&"serve", &"--no-console", &"--listen", &"127.0.0.1:0", &"--work-dir", &dir];
                says_it(&fails(&serve));
                // By force a server goes on without the index that has a run missing, and says so.
                if !name.ends_with(".run") {
                    says_it(&fails(&[&serve[..], &[&"--force-recovery"]].concat()));
                }
            }
            if name.ends_with(".lock") {
                restore(path, before.as_deref());
                continue;
            }
            let target = tempfile::tempdir().unwrap();
            says_it(&fails(&[&"backup", &"--dir", &dir, &target.path()]));
            says_it(&fails(&[&"cat", path]));
            if !name.ends_with(".vylog") {
                says_it(&fails(&[&"check", &dir]));
            }
            restore(path, before.as_deref());
        }
    }
    // Nothing was changed by all that.
    files.pop();
    assert!(files.iter().all(|path| path.is_file()));
    rig.restart(&[]);
    assert_eq!(rig.number("return box.space.memory:len() + box.space.disk:len()"), 102);
}
