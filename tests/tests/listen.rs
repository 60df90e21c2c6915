//! Listening at several addresses: what the options take, what a change leaves alone, and what comes of one that cannot be had.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Server, binary};
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tuple::msgpack::Reader;

/// A script for the server's own administrator, so that guest may evaluate.
const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";

fn command(dir: &TempDir) -> Command {
    let script = dir.path().join("open.lua");
    fs::write(&script, OPEN).unwrap();
    let mut command = Command::new(binary());
    command.args(["serve", "--script"]).arg(script).arg("--work-dir").arg(dir.path().join("data"));
    command
}

/// The first value that a script returns, a text.
fn text(client: &mut Client, source: &str) -> String {
    let reply = client.eval(source);
    let mut reader = Reader::new(&reply.data);
    reader.read_array().unwrap();
    let text = reader.read_str().unwrap_or_else(|_| panic!("{source}: {reply:?}"));
    String::from_utf8_lossy(text).into_owned()
}

const ALL: &str = "return type(box.info.listen) == 'table' and table.concat(box.info.listen, ' ') or box.info.listen";

fn path_text(dir: &TempDir, name: &str) -> String {
    format!("unix/:{}", dir.path().join(name).display())
}

/// True if a server greets there.
fn serves(address: &str) -> bool {
    let mut greeting = [0; 9];
    let read = match address.strip_prefix("unix/:") {
        Some(path) => UnixStream::connect(path).and_then(|mut stream| stream.read_exact(&mut greeting)),
        None => TcpStream::connect(address).and_then(|mut stream| stream.read_exact(&mut greeting)),
    };
    read.is_ok() && &greeting == b"Tarantool"
}

#[test]
fn flags_the_environment_and_the_file_take_several_addresses() {
    let dir = TempDir::new().unwrap();
    let unix = path_text(&dir, "a.sock");
    let expect = |server: &Server| {
        let listened = text(&mut server.connect(), ALL);
        let (tcp, path) = listened.split_once(' ').unwrap_or_else(|| panic!("{listened}"));
        assert_eq!((tcp, path), (server.address(), unix.as_str()));
        assert!(serves(tcp) && dir.path().join("a.sock").exists());
    };
    let mut flags = command(&dir);
    flags.args(["--listen", "127.0.0.1:0", "--listen", &unix]);
    expect(&Server::spawn(flags).unwrap());
    let mut commas = command(&dir);
    commas.args(["--listen", &format!("127.0.0.1:0 , {unix}")]);
    expect(&Server::spawn(commas).unwrap());
    let mut environment = command(&dir);
    environment.env("LYCOSA_LISTEN", format!("127.0.0.1:0,{unix}"));
    expect(&Server::spawn(environment).unwrap());
    let file = dir.path().join("lycosa.toml");
    for list in [
        format!("['127.0.0.1:0', '{unix}']"),
        format!("'127.0.0.1:0, {unix}'"),
        format!("['127.0.0.1:0', {{ uri = '{unix}', params = {{ transport = 'plain' }} }}]"),
    ] {
        fs::write(&file, format!("listen = {list}\n")).unwrap();
        let mut from_file = command(&dir);
        from_file.arg("--config").arg(&file);
        expect(&Server::spawn(from_file).unwrap_or_else(|said| panic!("{list}: {said}")));
    }
    fs::write(&file, "listen = [{ uri = 3301, parms = {} }]\n").unwrap();
    let mut wrong = command(&dir);
    wrong.arg("--config").arg(&file);
    assert!(Server::spawn(wrong).is_err());
}

#[test]
fn box_cfg_takes_every_form_and_shows_what_it_was_given() {
    let dir = TempDir::new().unwrap();
    let mut command = command(&dir);
    command.args(["--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command).unwrap();
    let mut client = server.connect();
    let (a, b) = (path_text(&dir, "a"), path_text(&dir, "b"));
    for form in [
        format!("'{a}, {b}'"),
        format!("{{ '{a}', '{b}' }}"),
        format!("{{ '{a}', {{ uri = '{b}', params = {{ transport = 'plain' }} }} }}"),
        format!("{{ {{ '{a}', params = {{ transport = {{ 'plain' }} }} }}, '{b}?transport=plain' }}"),
        format!("{{ '{a}', '{b}', default_params = {{ transport = 'plain' }} }}"),
    ] {
        let source = format!("local form = {form} box.cfg{{ listen = form }} assert(box.cfg.listen == form) {ALL}");
        assert_eq!(text(&mut client, &source), format!("{a} {b}"), "{form}");
    }
    assert!(!serves(server.address()), "an address that is not named any more is left");
    // One of them is a text, none is nil; an order is kept.
    assert_eq!(text(&mut client, &format!("box.cfg{{ listen = {{ '{b}', '{a}' }} }} {ALL}")), format!("{b} {a}"));
    assert_eq!(text(&mut client, &format!("box.cfg{{ listen = {{ uri = '{a}' }} }} {ALL}")), a);
    assert_eq!(text(&mut client, "box.cfg{ listen = '' } return tostring(box.info.listen)"), "nil");
    assert!(!dir.path().join("a").exists() && !dir.path().join("b").exists());
    for (form, words) in [
        ("{ 'no such host.invalid:1' }", "cannot listen at no such host.invalid:1"),
        ("{ {} }", "an address should be a string, a number or a table"),
        ("{ true }", "an address should be a string, a number or a table"),
        ("{ a = 1 }", "should be a list of addresses"),
        ("{ { uri = 1, params = 5 } }", "'params' of an address should be a table"),
        ("{ { uri = 1, params = { true } } }", "parameters of an address should be strings"),
        ("{ { uri = '127.0.0.1:0', params = { transport = 'pigeon' } } }", "transport"),
        ("'127.0.0.1:0, '", "cannot listen at"),
        ("true", "should be one of types string, number, table"),
    ] {
        let said = text(&mut client, &format!("return tostring(select(2, pcall(box.cfg, {{ listen = {form} }})))"));
        assert!(said.contains(words), "{form}: {said}");
    }
    assert_eq!(text(&mut client, &format!("box.cfg{{ listen = '{a}' }} {ALL}")), a);
}

#[test]
fn a_change_leaves_alone_what_stays_and_a_failed_one_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let (a, b, c) = (path_text(&dir, "a"), path_text(&dir, "b"), path_text(&dir, "c"));
    let mut command = command(&dir);
    command.args(["--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command).unwrap();
    let mut client = server.connect();
    assert_eq!(text(&mut client, &format!("box.cfg{{ listen = '{a}, {b}' }} {ALL}")), format!("{a} {b}"));
    let number =
        |name: &str| std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(dir.path().join(name)).unwrap());
    let before = number("b");
    assert_eq!(text(&mut client, &format!("box.cfg{{ listen = '{c}, {b}' }} {ALL}")), format!("{c} {b}"));
    assert_eq!(number("b"), before, "the same listener goes on");
    assert!(serves(&b) && serves(&c) && !dir.path().join("a").exists());
    // The second of these is a file.
    fs::write(dir.path().join("taken"), "precious").unwrap();
    let taken = path_text(&dir, "taken");
    let source =
        format!("return tostring(select(2, pcall(box.cfg, {{ listen = '{a}, {taken}', too_long_threshold = 7 }})))");
    let said = text(&mut client, &source);
    assert!(said.contains("taken") && said.contains("no socket"), "{said}");
    let state =
        "return box.cfg.listen .. ' ' .. box.cfg.too_long_threshold .. ' ' .. table.concat(box.info.listen, ' ')";
    assert_eq!(text(&mut client, state), format!("{c}, {b} 0.5 {c} {b}"));
    assert!(serves(&b) && serves(&c) && !dir.path().join("a").exists());
    // The same twice cannot be had.
    let said = text(&mut client, &format!("return tostring(select(2, pcall(box.cfg, {{ listen = '{a}, {a}' }})))"));
    assert!(said.contains("somebody listens there already"), "{said}");
    assert!(!dir.path().join("a").exists());
}

#[test]
fn an_address_in_the_way_of_a_new_one_is_left_first_and_taken_back_if_that_fails() {
    let dir = TempDir::new().unwrap();
    let mut command = command(&dir);
    command.args(["--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command).unwrap();
    let mut client = server.connect();
    let port = server.address().rsplit(':').next().unwrap().to_string();
    let source = format!(
        "box.schema.user.create('me', {{ password = 'x' }}) box.cfg{{ listen = '0.0.0.0:{port}' }} return box.info.listen"
    );
    assert_eq!(text(&mut client, &source), format!("0.0.0.0:{port}"));
    let source = format!(
        "return tostring(select(2, pcall(box.cfg, {{ listen = '127.0.0.1:{port}, unix/:/no/such/place' }}))) .. box.info.listen"
    );
    let said = text(&mut client, &source);
    assert!(said.contains("/no/such/place") && said.ends_with(&format!("0.0.0.0:{port}")), "{said}");
    assert!(serves(server.address()));
}

#[test]
fn a_thousand_changes_leave_no_listener_behind() {
    let dir = TempDir::new().unwrap();
    let home = path_text(&dir, "home");
    let mut command = command(&dir);
    command.args(["--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command).unwrap();
    let mut client = server.connect();
    let before = server.sockets();
    let source = format!(
        "for at = 1, 1200 do box.cfg{{ listen = {{ '{home}', '{home}' .. at % 3 }} }} end box.cfg{{ listen = '{home}' }} {ALL}"
    );
    assert_eq!(text(&mut client, &source), home);
    assert_eq!(server.sockets(), before);
    let left = |path: &Path| fs::read_dir(path).unwrap().flatten().filter(|entry| entry.file_name() != "data").count();
    // The script and the socket.
    assert_eq!(left(dir.path()), 2);
}
