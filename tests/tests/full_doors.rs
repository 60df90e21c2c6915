//! What clients of other protocols are told while the disk is full.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const SCRIPT: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const PATIENCE: Duration = Duration::from_secs(20);
/// The log cannot grow beyond it.
const FILE_BYTES: u64 = 8 << 20;

fn start() -> Rig {
    let mut command = Command::new("sh");
    // Without the trap the signal that such a write raises would end the server.
    let limited = "trap '' XFSZ; ulimit -S -f \"$0\" && exec \"$@\"";
    command.args(["-c", limited, &(FILE_BYTES / 512).to_string()]).arg(lycosa_tests::binary());
    let options = ["--wal-mode", "write", "--listen", "redis://127.0.0.1:0", "--listen", "tyrant://127.0.0.1:0"];
    Rig::start_as(command, TempDir::new().unwrap(), SCRIPT, &options)
}

fn connect(rig: &mut Rig, clients: &str) -> TcpStream {
    let find = |log: &str| {
        let line = log.lines().find(|line| line.contains(clients))?;
        Some(line.split_once("connect to ")?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    let stream = TcpStream::connect(find(&rig.server.log()).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a line and reads one.
fn ask(stream: &mut TcpStream, line: &str) -> String {
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\n") {
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap().trim_end().to_string()
}

/// Everything that comes until the connection ends, or one byte.
fn one_byte(stream: &mut TcpStream, request: &[u8]) -> Option<u8> {
    stream.write_all(request).unwrap();
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(byte[0]),
    }
}

#[test]
fn a_full_disk_leaves_no_transaction_open_and_tells_nobody_what_is_not_so() {
    let mut rig = start();
    let mut redis = connect(&mut rig, "any client of Redis");
    let value = "x".repeat(60_000);
    let refused = (0..300).find_map(|at| {
        let answer = ask(&mut redis, &format!("SET fill{at} {value}"));
        (!answer.starts_with('+')).then_some(answer)
    });
    assert!(refused.as_ref().is_some_and(|text| text.starts_with("-MISCONF")), "{refused:?}");

    assert_eq!(ask(&mut redis, "MULTI"), "+OK");
    assert_eq!(ask(&mut redis, &format!("SET other {value}")), "+QUEUED");
    let executed = ask(&mut redis, "EXEC");
    assert!(executed.starts_with("-MISCONF"), "{executed}");
    assert_eq!(ask(&mut redis, "EXISTS other"), ":0");

    let mut tyrant = connect(&mut rig, "any client of Tokyo Tyrant");
    let absent = [&[0xc8, 0x30, 0, 0, 0, 1][..], b"k"].concat();
    assert_eq!(one_byte(&mut tyrant, &absent), Some(1), "it is not there, which the log has nothing to do with");
    let mut request = vec![0xc8, 0x11, 0, 0, 0, 1];
    request.extend_from_slice(&(value.len() as u32).to_be_bytes());
    request.extend_from_slice(b"k");
    request.extend_from_slice(value.as_bytes());
    assert_eq!(one_byte(&mut tyrant, &request), None, "1 would say that there is such a record");
    let mut tyrant = connect(&mut rig, "any client of Tokyo Tyrant");
    request[1] = 0x10;
    assert_eq!(one_byte(&mut tyrant, &request), Some(1), "a put that fails is no answer to a question");
}
