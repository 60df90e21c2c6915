//! Files of another server beside those of one: numbers of spaces, indexes and rows agree, so nothing but the UUID in their headers tells that the rows
//! are wrong.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Rig, Server, binary};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCRIPT: &str = "
box.once('foreign', function()
    box.schema.user.grant('guest', 'super')
    box.schema.space.create('disk', {engine = 'vinyl'}):create_index('primary')
    for i = 1, 50 do box.space.disk:replace{i, box.info.uuid} end
    box.snapshot()
    box.space.disk:replace{51, box.info.uuid}
end)";

struct Stopped {
    rig: Rig,
    dir: PathBuf,
    uuid: String,
}

fn stopped() -> Stopped {
    let mut rig = Rig::start(SCRIPT, &[]);
    let uuid = rig.answer("return 1, box.info.uuid").1;
    rig.server.terminate();
    assert!(rig.server.ended().success());
    Stopped { dir: rig.data(), rig, uuid }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => _ = fs::copy(&path, to.join(name)).unwrap(),
        }
    }
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    found
}

fn check(dir: &Path) -> (bool, String) {
    let Output { status, stdout, .. } = Command::new(binary()).arg("check").arg(dir).output().unwrap();
    (status.success(), String::from_utf8_lossy(&stdout).into_owned())
}

#[test]
fn files_of_another_server_are_refused_and_named() {
    let (mut ours, theirs) = (stopped(), stopped());
    assert_ne!(ours.uuid, theirs.uuid);
    assert!(check(&ours.dir).0);
    let says_it = |text: &str| {
        assert!(text.contains(&ours.uuid) && text.contains(&theirs.uuid) && text.contains("other server"), "{text}");
    };
    // Their rows on disk.
    let here = tempfile::tempdir().unwrap();
    copy(&ours.dir, here.path());
    fs::remove_dir_all(here.path().join("lsm")).unwrap();
    copy(&theirs.dir.join("lsm"), &here.path().join("lsm"));
    fs::copy(theirs.dir.join("lsm.confirmed"), here.path().join("lsm.confirmed")).unwrap();
    let (is_good, text) = check(here.path());
    assert!(!is_good && text.contains("manifest-"), "{text}");
    says_it(&text);
    for options in [&[][..], &["--force-recovery"]] {
        let refusal = Server::refused_in(here.path(), options);
        assert!(refusal.contains("manifest-") && refusal.contains("put the directory"), "{refusal}");
        says_it(&refusal);
    }
    // Their newest log, and a snapshot of theirs that is older than ours.
    let here = tempfile::tempdir().unwrap();
    copy(&ours.dir, here.path());
    let log = files(&theirs.dir, ".xlog").pop().unwrap();
    fs::copy(&log, here.path().join(log.file_name().unwrap())).unwrap();
    let (is_good, text) = check(here.path());
    assert!(!is_good && text.contains(".xlog: damaged at byte 0"), "{text}");
    says_it(&text);
    says_it(&Server::refused_in(here.path(), &[]));
    let here = tempfile::tempdir().unwrap();
    copy(&ours.dir, here.path());
    let snapshot = files(&theirs.dir, ".snap").remove(0);
    fs::copy(&snapshot, here.path().join(snapshot.file_name().unwrap())).unwrap();
    let (is_good, text) = check(here.path());
    assert!(!is_good && text.contains("00000000000000000000.snap: damaged at byte 0"), "{text}");
    says_it(&text);

    ours.rig.restart(&[]);
    let mine = "local n = 0 for _, row in box.space.disk:pairs() do if row[2] == box.info.uuid then n = n + 1 end end return n";
    assert_eq!(ours.rig.number(mine), 51);
}
