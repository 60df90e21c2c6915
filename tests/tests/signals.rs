//! What signals do to a server that goes on. Those that end it are in `lua_ends.rs`.

use lycosa_tests::Rig;
use std::time::Duration;

/// A checkpoint of a few rows is made by then.
const MADE_MAX: Duration = Duration::from_secs(30);

const SCRIPT: &str = r#"
local space = box.schema.space.create('wolves')
space:create_index('primary')
for id = 1, 10 do space:insert { id } end
box.schema.user.grant('guest', 'read,execute', 'universe')
"#;

/// Names of snapshots in the server's directory, sorted.
fn snapshots(rig: &Rig) -> Vec<String> {
    let entries = std::fs::read_dir(rig.data()).expect("the directory is there");
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".snap")).collect();
    names.sort();
    names
}

#[test]
fn sigusr1_makes_a_checkpoint() {
    let mut rig = Rig::start(SCRIPT, &["--checkpoint-interval", "0"]);
    let before = snapshots(&rig);
    rig.server.signal("USR1");
    let data = rig.data();
    let Rig { server, client, .. } = &mut rig;
    let count = |_: &lycosa_tests::Server| {
        let entries = std::fs::read_dir(&data).expect("the directory is there").flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "snap")).count()
    };
    let is_made = server.wait(client, MADE_MAX, |server| count(server) > before.len());
    assert!(is_made, "there are {before:?}, and no more came:\n{}", rig.server.log());
    assert_ne!(snapshots(&rig).last(), before.last());
    assert_eq!(rig.number("return box.space.wolves:len()"), 10);
}
