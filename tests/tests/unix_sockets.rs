//! Listening at a path: what a client sees, and what becomes of the file there, whatever it is.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Reply, Server, binary, packet, request};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tuple::msgpack;

/// A script for the server's own administrator, so that guest may evaluate.
const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";

fn start(dir: &TempDir, listen: &str) -> Result<Server, String> {
    let script = dir.path().join("open.lua");
    fs::write(&script, OPEN).unwrap();
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", listen, "--script"]).arg(script);
    command.arg("--work-dir").arg(dir.path().join("data"));
    Server::spawn(command)
}

fn eval(path: &Path, source: &str) -> Reply {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut expression = Vec::new();
    msgpack::encode_str(&mut expression, source.as_bytes());
    stream.write_all(&packet(8, 1, &request(&[(0x27, &expression), (0x21, &[0x90])]))).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    Client::replies(&received[128..]).remove(0)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

#[test]
fn clients_come_through_a_path_and_the_file_goes_with_the_server() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.sock");
    let address = format!("unix/:{}", path.display());
    let mut server = start(&dir, &address).unwrap();
    assert_eq!(server.address(), address);
    // What Tarantool calls the other side.
    let mut expected = vec![0x93];
    for text in ["unix/:(socket)", "binary", &address] {
        msgpack::encode_str(&mut expected, text.as_bytes());
    }
    let reply = eval(&path, "return box.session.peer(), box.session.type(), box.info.listen");
    assert_eq!(reply.data[5..], expected[1..], "{reply:?}");
    // A path alone is an address, too.
    let console = console(&path.display().to_string());
    assert!(String::from_utf8_lossy(&console.stdout).contains("42"), "{console:?}");
    server.terminate();
    assert!(server.ended().success());
    assert!(!path.exists());
    // One that was killed leaves its file, and the next replaces it.
    let mut server = start(&dir, &address).unwrap();
    server.kill();
    assert!(is_socket(&path));
    let _server = start(&dir, &path.display().to_string()).unwrap();
    assert_eq!(eval(&path, "return 1").code(), 0);
}

fn console(address: &str) -> Output {
    let mut child = Command::new(binary())
        .args(["console", address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"return 6 * 7\n").unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_script_changes_where_the_server_listens() {
    let dir = TempDir::new().unwrap();
    let (first, second) = (dir.path().join("a.sock"), dir.path().join("b.sock"));
    let _server = start(&dir, &format!("unix/:{}", first.display())).unwrap();
    let reply = eval(&first, &format!("box.cfg{{ listen = '{}' }} return box.info.listen", second.display()));
    assert_eq!(reply.code(), 0, "{reply:?}");
    assert!(!first.exists() && is_socket(&second));
    let reply = eval(&second, "return pcall(box.cfg, { listen = 'unix/:' })");
    assert!(reply.data.contains(&0xc2), "{reply:?}");
}

#[test]
fn what_is_no_abandoned_socket_is_left_alone_and_named() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("taken");
    let refused = |path: &Path| start(&dir, &format!("unix/:{}", path.display())).map(|_| ()).unwrap_err();
    fs::write(&path, "precious").unwrap();
    let said = refused(&path);
    assert!(said.contains("no socket") && said.contains("taken"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let said = refused(dir.path());
    assert!(said.contains("no socket"), "{said}");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(refused(&link).contains("no socket") && fs::read_link(&link).is_ok());
    let live = dir.path().join("live");
    let _listener = UnixListener::bind(&live).unwrap();
    let said = refused(&live);
    assert!(said.contains("somebody listens there already"), "{said}");
    assert!(UnixStream::connect(&live).is_ok());
    let said = refused(&dir.path().join("no/such"));
    assert!(said.contains("No such file"), "{said}");
    let said = refused(&dir.path().join("x".repeat(200)));
    assert!(said.contains("at most 107 bytes"), "{said}");
    assert!(refused(Path::new("")).contains("is empty"));
}
