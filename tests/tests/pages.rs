//! Pages that say what works: the blocks of Lua in the tutorial and the README, run as a reader would paste them, through the console and one after
//! the other; and the page of options.

use lycosa_tests::{Server, binary, root};
use std::io::Write;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The blocks of one language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let mut list = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(name)) => open = Some(if name == language { String::new() } else { "-- other\n".to_string() }),
            (Some(_), Some(_)) => list.extend(open.take()),
            (Some(block), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    list.retain(|block| !block.starts_with("-- other\n"));
    list
}

/// Types a block at the console of a server, as a paste does.
fn paste(address: &str, block: &str) {
    let mut command = Command::new(binary());
    command.args(["console", &format!("admin:a secret@{address}")]);
    if block.contains("\nlocal ") {
        // A script: its local names live from line to line.
        command.args(["-f", "-"]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let mut input = child.stdin.take().expect("it was asked for");
    input.write_all(block.as_bytes()).expect("the console reads");
    drop(input);
    let output = child.wait_with_output().expect("it is our child");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{block}\n{}", String::from_utf8_lossy(&said));
}

/// A server whose administrator has a password.
fn start(dir: &TempDir) -> Server {
    let script = dir.path().join("init.lua");
    std::fs::write(&script, "box.schema.user.passwd('admin', 'a secret')").expect("the script can be written");
    let script = script.display().to_string();
    Server::start_in(&dir.path().join("data"), &["--script", &script])
}

#[test]
fn every_block_of_the_tutorial_runs() {
    let dir = TempDir::new().expect("a directory can be made");
    let server = start(&dir);
    let list = blocks("docs/tutorial.md", "lua");
    assert!(list.len() >= 12, "the tutorial has {} blocks", list.len());
    list.iter().for_each(|block| paste(server.address(), block));
}

#[test]
fn every_block_of_the_readme_runs() {
    let dir = TempDir::new().expect("a directory can be made");
    let server = start(&dir);
    let list = blocks("README.md", "lua");
    assert!(list.len() >= 3, "the README has {} blocks", list.len());
    list.iter().for_each(|block| paste(server.address(), block));
}

#[test]
fn the_page_of_options_is_what_the_table_says() {
    let output = Command::new(binary()).args(["options", "--markdown"]).output().expect("the binary can be started");
    let page = std::fs::read_to_string(root().join("docs/options.md")).expect("it is there");
    let made = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && made.len() > 1000, "{made}");
    for (at, (line, made)) in page.lines().zip(made.lines()).enumerate() {
        assert_eq!(line, made, "docs/options.md:{}: `make options-page` writes it anew", at + 1);
    }
    assert_eq!(page, made, "`make options-page` writes docs/options.md anew");
}
