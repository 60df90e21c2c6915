//! `lycosa backup` and `box.backup`: what is copied while a server works starts as another one, with everything up to one moment.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Rig, Server, binary};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use tuple::msgpack::Reader;

/// `fill(from, to)` puts each number into a space in memory and one on disk, in one transaction.
const SCRIPT: &str = "
box.once('backup', function()
    box.schema.user.grant('guest', 'super')
    box.schema.space.create('memory'):create_index('primary')
    local disk = box.schema.space.create('disk', {engine = 'vinyl'})
    disk:create_index('primary')
    disk:create_index('second', {parts = {2, 'unsigned'}})
end)
function fill(from, to)
    for i = from, to do
        box.begin()
        box.space.memory:replace{i}
        box.space.disk:replace{i, i * 2, ('row'):rep(100)}
        box.commit()
    end
    return to
end
-- How many there are, if all of them are there in all indexes.
function complete()
    local count = box.space.memory:len()
    local seen = 0
    for _, row in box.space.disk:pairs() do
        seen = seen + 1
        if row[1] ~= seen or row[2] ~= seen * 2 or not box.space.memory:get(seen) or not box.space.disk.index.second:get(seen * 2) then
            return 0, 'at ' .. seen
        end
    end
    return seen == count and count or 0, seen .. ' on disk, ' .. count .. ' in memory'
end";

fn lycosa(arguments: &[&str]) -> Output {
    Command::new(binary()).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn succeeds(arguments: &[&str]) -> String {
    let output = lycosa(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

fn fails(arguments: &[&str]) -> String {
    let output = lycosa(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output));
    text(&output)
}

/// The rows of a restored directory.
fn restored(dir: &Path) -> u64 {
    succeeds(&["check", &dir.display().to_string()]);
    let script = dir.with_extension("lua");
    fs::write(&script, SCRIPT).unwrap();
    let mut counts = Vec::new();
    for _ in 0..2 {
        let mut server = Server::start_in(dir, &["--script", &script.display().to_string()]);
        let reply =
            server.connect().eval("local count, what = complete() if count == 0 then error(what) end return count");
        assert_eq!(reply.code(), 0, "{reply:?}");
        let mut reader = Reader::new(&reply.data);
        reader.read_array().unwrap();
        counts.push(reader.read_uint().unwrap());
        server.kill();
    }
    assert_eq!(counts[0], counts[1]);
    counts[0]
}

#[test]
fn a_backup_under_load_is_restored_and_complete() {
    let mut rig = Rig::start(SCRIPT, &["--checkpoint-count", "1", "--vinyl-memory", "4MiB"]);
    assert_eq!(rig.number("return fill(1, 512)"), 512);
    rig.answer("box.snapshot() return 0");
    assert_eq!(rig.number("return fill(513, 1024)"), 1024);
    let address = rig.server.address().to_string();
    let (is_over, filled) = (AtomicBool::new(false), AtomicU64::new(1024));
    let dir = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        let (mut writer, mut checkpointer) = (rig.server.connect(), rig.server.connect());
        let (is_over, filled) = (&is_over, &filled);
        scope.spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                let from = filled.load(Ordering::Acquire) + 1;
                assert_eq!(writer.eval(&format!("return fill({from}, {})", from + 63)).code(), 0);
                filled.store(from + 63, Ordering::Release);
            }
        });
        scope.spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                checkpointer
                    .eval("pcall(box.snapshot) box.space.disk.index.primary:compact() require('fiber').sleep(0.02)");
            }
        });
        for number in 0..3 {
            let before = filled.load(Ordering::Acquire);
            let target = dir.path().join(number.to_string());
            let said = succeeds(&["backup", "--uri", &address, &target.display().to_string()]);
            assert!(said.contains(" files, ") && said.contains(&target.display().to_string()), "{said}");
            let found = restored(&target);
            assert!(found >= before, "{found} rows, and {before} were acknowledged before it began");
        }
        is_over.store(true, Ordering::Release);
    });
}

fn lengths(names: &[String]) -> BTreeMap<&String, u64> {
    names
        .iter()
        .map(|name| (name, fs::metadata(name).unwrap_or_else(|error| panic!("{name}: {error}")).len()))
        .collect()
}

#[test]
fn files_of_a_backup_stay_as_they_are_until_its_end() {
    let mut rig = Rig::start(SCRIPT, &["--checkpoint-count", "1"]);
    rig.answer("fill(1, 300) box.snapshot() fill(301, 600) return 0");
    let begin = "local fio, names = require('fio'), {}
        for at, name in ipairs(box.backup.start()) do names[at] = fio.abspath(name) end
        return #names, table.concat(names, ' ')";
    let (count, names) = rig.answer(begin);
    let names: Vec<String> = names.split(' ').map(str::to_string).collect();
    assert!(count >= 4 && names.len() as u64 == count, "{names:?}");
    let kinds = [".snap", ".xlog", ".run", "manifest-"];
    assert!(kinds.iter().all(|kind| names.iter().any(|name| name.contains(kind))), "{names:?}");
    let before = lengths(&names);
    let (is_refused, why) =
        rig.answer("local ok, error = pcall(box.backup.start) return ok and 0 or 1, tostring(error)");
    assert!(is_refused == 1 && why.contains("Backup is already in progress"), "{why}");
    for _ in 0..4 {
        rig.answer(
            "fill(1, 300) box.snapshot() box.space.disk.index.primary:compact() require('fiber').sleep(0.05) return 0",
        );
    }
    assert_eq!(lengths(&names), before);
    rig.answer("box.backup.stop() fill(1, 10) box.snapshot() require('fiber').sleep(0.2) return 0");
    let snapshot = names.iter().find(|name| name.ends_with(".snap")).unwrap();
    assert!(!Path::new(snapshot).exists(), "{snapshot} may go now");
    assert_eq!(rig.number("return complete()"), 600);
}

#[test]
fn a_stopped_directory_is_backed_up_and_a_target_must_be_empty() {
    let mut rig = Rig::start(SCRIPT, &[]);
    rig.answer("fill(1, 256) box.snapshot() fill(257, 512) return 0");
    let data = rig.data().display().to_string();
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("copy").display().to_string();
    let why = fails(&["backup", "--dir", &data, &target]);
    assert!(why.contains("if a server runs on it"), "{why}");
    rig.server.kill();
    succeeds(&["backup", "--dir", &data, &target]);
    assert!(restored(Path::new(&target)) >= 512);
    let why = fails(&["backup", "--dir", &data, &target]);
    assert!(why.contains("is not empty"), "{why}");
    let nothing = dir.path().join("nothing").display().to_string();
    fs::create_dir(&nothing).unwrap();
    fails(&["backup", "--dir", &nothing, &dir.path().join("other").display().to_string()]);
}

fn remove(dir: &Path, ending: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    let last = found.pop().unwrap();
    fs::remove_file(&last).unwrap();
    last
}

#[test]
fn check_of_what_is_no_data_directory_fails_and_missing_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    assert!(fails(&["check", &path("missing")]).contains("missing"));
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert!(fails(&["check", &path("empty")]).contains("not a data directory"));
    fs::create_dir(dir.path().join("foreign")).unwrap();
    fs::write(dir.path().join("foreign/notes.txt"), "nothing of ours").unwrap();
    assert!(fails(&["check", &path("foreign")]).contains("not a data directory"));
    let mut rig = Rig::start(SCRIPT, &[]);
    rig.answer("fill(1, 10) return 0");
    rig.server.kill();
    let data = rig.data();
    succeeds(&["check", &data.display().to_string()]);
    let log = remove(&data, ".xlog");
    let said = fails(&["check", &data.display().to_string()]);
    assert!(said.contains(&log.display().to_string()) && said.contains("the newest log is not there"), "{said}");
    let mut rig = Rig::start(SCRIPT, &[]);
    rig.answer("fill(1, 10) return 0");
    rig.server.kill();
    remove(&rig.data(), ".snap");
    let said = fails(&["check", &rig.data().display().to_string()]);
    assert!(said.contains("there are logs and no snapshot"), "{said}");
    let said = fails(&["check", "--json", &rig.data().display().to_string()]);
    assert!(said.contains("\"ok\":false"), "{said}");
}

#[test]
fn cat_reads_files_of_rows_on_disk_and_takes_what_is_asked_for() {
    let mut rig = Rig::start(SCRIPT, &[]);
    rig.answer("fill(1, 5) box.snapshot() fill(6, 8) require('fiber').sleep(0.1) return 0");
    rig.server.kill();
    let paths = |dir: &Path, part: &str| {
        let mut found: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path().display().to_string()).collect();
        found.retain(|path| path.contains(part) && !path.ends_with(".inprogress"));
        found.sort();
        found
    };
    let lsm = rig.data().join("lsm");
    let cat = |files: &[String], options: &[&str]| {
        let mut arguments = vec!["cat", "--json"];
        arguments.extend(options);
        arguments.extend(files.iter().map(String::as_str));
        succeeds(&arguments).lines().map(str::to_string).collect::<Vec<_>>()
    };
    let runs = paths(&lsm, ".run");
    assert_eq!(runs.len(), 2);
    assert_eq!(cat(&runs, &[]).len(), 10);
    assert_eq!(cat(&runs, &["--space", "512"]).len(), 0);
    let rows = cat(&runs, &["--space", "513"]);
    assert!(rows.iter().any(|row| row.contains("\"tuple\":[5,10,\"row")), "{rows:?}");
    let trees = cat(&paths(&lsm, "manifest-"), &[]);
    assert!(trees.iter().any(|tree| tree.contains("\"index_id\":1") && tree.contains("\"dumped_lsn\"")), "{trees:?}");
    let logs = paths(&rig.data(), ".xlog");
    let all = cat(&logs, &[]);
    assert_eq!(all.len(), 16);
    assert_eq!(cat(&logs, &["--space", "512"]).len(), 8);
    let lsn = |row: &String| row.split("\"lsn\":").nth(1).unwrap().split(',').next().unwrap().parse::<i64>().unwrap();
    let (from, to) = (lsn(&all[4]), lsn(&all[9]));
    let part = cat(&logs, &["--from", &from.to_string(), "--to", &to.to_string()]);
    assert_eq!(part, all[4..9]);
}
