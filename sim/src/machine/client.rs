//! A client of the simulated server: the binary protocol over a simulated connection, one request at a time.

use super::branch::Branch;
use super::watch;
use database::password_hash;
use runtime::net::SimulatedStream;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use trial::{Operation, Outcome, User, Value};
use tuple::msgpack::{self, Reader};

/// The user with all rights that the first life of the server makes.
pub(super) const ADMIN: (&str, &str) = ("trial_admin", "torture");
/// An answer that takes longer in simulated time is given up by the clients of a workload, for which its fate is unknown.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// The log failed: whether the operation happened is known after the next start.
const WAL_IO: u32 = 40;

/// A connection that performs operations.
pub(super) struct Connection {
    stream: SimulatedStream,
    /// Without a byte for longer than this in simulated time, the connection counts as dead.
    patience: Duration,
    input: Vec<u8>,
    sync: u64,
    spaces: BTreeMap<&'static str, u64>,
    /// The server has said that its log failed.
    pub(super) has_log_failed: bool,
}

impl Connection {
    /// Connects and logs in. None: the server is not there, or died meanwhile.
    pub(super) fn open(address: SocketAddr, user: User, patience: Duration) -> Option<Self> {
        let (name, password) = match user {
            User::Admin => ADMIN,
            User::Named { name, password } => (name, password),
        };
        let stream = SimulatedStream::connect(address).ok()?;
        let mut connection =
            Connection { stream, patience, input: Vec::new(), sync: 0, spaces: BTreeMap::new(), has_log_failed: false };
        connection.receive(128)?;
        let greeting: Vec<u8> = connection.input.drain(..128).collect();
        let salt = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, &greeting[64..108]).ok()?;
        let stored = password_hash(password.as_bytes());
        let mut mask = Sha1::new();
        mask.update(&salt[..20]);
        mask.update(stored);
        let mut scramble: [u8; 20] = Sha1::digest(password.as_bytes()).into();
        let mask: [u8; 20] = mask.finalize().into();
        scramble.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        let mut body = vec![0x82, 0x23];
        msgpack::encode_str(&mut body, name.as_bytes());
        body.extend_from_slice(&[0x21, 0x92]);
        msgpack::encode_str(&mut body, b"chap-sha1");
        msgpack::encode_str(&mut body, &scramble);
        match connection.exchange(7, &body) {
            Outcome::Done(_) => Some(connection),
            _ => None,
        }
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        let mut space_id = |name| {
            if let Some(id) = self.spaces.get(name) {
                return Ok(*id);
            }
            let (kind, body) = Operation::find_space(name).encode(&mut |_| Err(Outcome::Unknown))?;
            let id = self.exchange(kind, &body).space_id(name)?;
            self.spaces.insert(name, id);
            Ok(id)
        };
        match operation.encode(&mut space_id) {
            Ok((kind, body)) => self.exchange(kind, &body),
            Err(outcome) => outcome,
        }
    }

    fn exchange(&mut self, kind: u8, body: &[u8]) -> Outcome {
        match self.try_exchange(kind, body) {
            Some(Outcome::Refused(refusal)) if refusal.code == WAL_IO => {
                watch::count(Branch::LogFailedAnswered);
                self.has_log_failed = true;
                Outcome::Unknown
            }
            Some(outcome) => outcome,
            None => Outcome::Unknown,
        }
    }

    fn try_exchange(&mut self, kind: u8, body: &[u8]) -> Option<Outcome> {
        self.sync += 1;
        let mut packet = vec![0xce, 0, 0, 0, 0, 0x82, 0x00, kind, 0x01];
        msgpack::encode_uint(&mut packet, self.sync);
        packet.extend_from_slice(body);
        let length = (packet.len() - 5) as u32;
        packet[1..5].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&packet, self.patience).ok()?;
        self.receive(5)?;
        let length = u32::from_be_bytes(self.input[1..5].try_into().ok()?) as usize;
        self.receive(5 + length)?;
        let answer: Vec<u8> = self.input.drain(..5 + length).skip(5).collect();
        let mut reader = Reader::new(&answer);
        let mut code = 0;
        for _ in 0..reader.read_map().ok()? {
            let (key, value) = (reader.read_uint().ok()?, reader.read_uint().ok()?);
            match key {
                0 => code = value,
                1 if value != self.sync => return None,
                _ => {}
            }
        }
        Some(Outcome::decode((code & 0x7fff) as u32, reader.rest()))
    }

    /// Waits until so many bytes are there.
    fn receive(&mut self, count: usize) -> Option<()> {
        let mut buffer = [0; 4096];
        while self.input.len() < count {
            match self.stream.read(&mut buffer, self.patience) {
                Ok(got) if got > 0 => self.input.extend_from_slice(&buffer[..got]),
                _ => return None,
            }
        }
        Some(())
    }
}

/// What came of an operation, as a checker wants it.
pub(super) fn view(connection: &mut Connection, operation: &Operation) -> Result<Value, trial::Refusal> {
    match connection.perform(operation) {
        Outcome::Done(value) => Ok(value),
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::Unknown => Err(trial::Refusal { code: 0, text: "the connection died".to_string() }),
    }
}
