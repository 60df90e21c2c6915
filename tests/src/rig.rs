//! A server with a directory and a start script of a test's own, and a client of it.

use crate::{Client, Reply, Server, binary};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use tuple::msgpack::Reader;

/// See the head of this file. All of it goes away when it is dropped.
pub struct Rig {
    /// Holds the script, and the server's own directory.
    pub dir: TempDir,
    /// The process.
    pub server: Server,
    /// A connection of guest.
    pub client: Client,
    script: &'static str,
}

impl Rig {
    /// Starts a server in an empty directory. What the script makes must not be made again at later starts.
    pub fn start(script: &'static str, options: &[&str]) -> Self {
        Self::start_as(Command::new(binary()), TempDir::new().expect("a directory can be made"), script, options)
    }

    /// The same in a directory that is there, as a command that is or becomes the binary.
    pub fn start_as(command: Command, dir: TempDir, script: &'static str, options: &[&str]) -> Self {
        let server = spawn(command, &dir, script, options);
        let client = server.connect();
        Rig { dir, server, client, script }
    }

    /// Ends the process without warning and starts another on what it left.
    pub fn restart(&mut self, options: &[&str]) {
        self.server.kill();
        self.server = spawn(Command::new(binary()), &self.dir, self.script, options);
        self.client = self.server.connect();
    }

    /// The server's directory.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// What comes of a script.
    pub fn eval(&mut self, source: &str) -> Reply {
        self.client.eval(source)
    }

    /// The number and the text that a script returns; no text is an empty one.
    pub fn answer(&mut self, source: &str) -> (u64, String) {
        let reply = self.eval(source);
        let mut reader = Reader::new(&reply.data);
        let number = reader.read_array().and_then(|_| reader.read_uint());
        let number = number.unwrap_or_else(|_| panic!("{source}: {reply:?}"));
        let text = reader.read_str().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
        (number, text)
    }

    /// The number that a script returns first.
    pub fn number(&mut self, source: &str) -> u64 {
        self.answer(source).0
    }
}

fn spawn(mut command: Command, dir: &TempDir, script: &str, options: &[&str]) -> Server {
    let script_path = dir.path().join("script.lua");
    std::fs::write(&script_path, script).expect("the script can be written");
    command.args(["serve", "--listen", "127.0.0.1:0", "--script"]).arg(script_path);
    command.arg("--work-dir").arg(dir.path().join("data")).args(options);
    Server::spawn(command).unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
}
