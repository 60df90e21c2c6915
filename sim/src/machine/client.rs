//! A client of the simulated server: the binary protocol over a simulated connection, one request at a time.

use super::branch::Branch;
use super::process::door_address;
use super::watch;
use runtime::net::SimulatedStream;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use trial::{Door, Exchange, Operation, Outcome, Refusal, Speaker, Tongue, User, Value};
use wire::ClientError;

/// The user with all rights that the first life of the server makes.
pub(super) const ADMIN: (&str, &str) = ("trial_admin", "torture");
/// An answer that takes longer in simulated time is given up by the clients of a workload, for which its fate is unknown.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// The log failed: whether the operation happened is known after the next start.
const WAL_IO: u32 = 40;
/// All that Tokyo Tyrant's binary protocol says of a failure.
const MUTE: &str = "code 1";

/// A simulated stream that a client may wait at.
struct PatientStream {
    stream: SimulatedStream,
    /// Without a byte for longer than this in simulated time, the connection counts as dead.
    patience: Duration,
}

impl Read for PatientStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.read(out, self.patience)
    }
}

impl Write for PatientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write_all(bytes, self.patience).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that performs operations.
pub(super) struct Connection {
    to: To,
    spaces: BTreeMap<&'static str, u64>,
    /// The server has said that its log failed.
    pub(super) has_log_failed: bool,
}

/// Whom a connection speaks to.
enum To {
    Iproto(wire::Client<PatientStream>),
    Door(Box<Speaker<PatientStream>>),
}

impl Connection {
    /// Connects to a door. None: the server is not there, or died meanwhile.
    pub(super) fn enter(tongue: Tongue, patience: Duration) -> Option<Self> {
        let stream = SimulatedStream::connect(door_address(tongue.door)).ok()?;
        let to = To::Door(Box::new(Speaker::new(PatientStream { stream, patience }, tongue)?));
        Some(Connection { to, spaces: BTreeMap::new(), has_log_failed: false })
    }

    /// Connects and logs in. None: the server is not there, or died meanwhile.
    pub(super) fn open(address: SocketAddr, user: User, patience: Duration) -> Option<Self> {
        let (name, password) = match user {
            User::Admin => ADMIN,
            User::Named { name, password } => (name, password),
        };
        let stream = SimulatedStream::connect(address).ok()?;
        let mut client = wire::Client::greet(PatientStream { stream, patience }).ok()?;
        let welcome = client.log_in(name, password);
        let mut connection = Connection { to: To::Iproto(client), spaces: BTreeMap::new(), has_log_failed: false };
        match welcome {
            Ok(()) => Some(connection),
            Err(ClientError::Refused { code, text }) => {
                connection.note(Outcome::Refused(Refusal { code, text }));
                None
            }
            Err(_) => None,
        }
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        match (&mut self.to, operation) {
            (To::Door(speaker), Operation::Door(ask)) => {
                let is_mute = speaker.tongue().door == Door::Tyrant;
                let outcome = speaker.perform(ask);
                match outcome {
                    // A failure without words: the log, as far as anybody knows.
                    Outcome::Refused(refusal) if is_mute && refusal.text == MUTE => {
                        self.note(Outcome::Refused(Refusal { code: WAL_IO, ..refusal }))
                    }
                    other => self.note(other),
                }
            }
            (To::Door(_), other) => {
                Outcome::Refused(Refusal { code: 0, text: format!("{other:?} is nothing for a door") })
            }
            (To::Iproto(_), operation) => operation.perform(self),
        }
    }

    /// Takes notice of a log that has failed.
    fn note(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Refused(refusal) if refusal.code == WAL_IO => {
                watch::count(Branch::LogFailedAnswered);
                self.has_log_failed = true;
                Outcome::Unknown
            }
            other => other,
        }
    }
}

impl Exchange for Connection {
    fn exchange(&mut self, stream: u64, kind: u64, body: &[u8]) -> Outcome {
        let To::Iproto(client) = &mut self.to else { return Outcome::Unknown };
        client.set_stream(stream);
        let outcome = match client.exchange(kind, |out| out.extend_from_slice(body)) {
            Ok(answer) => Outcome::decode(answer.code, answer.body),
            Err(_) => Outcome::Unknown,
        };
        self.note(outcome)
    }

    fn known_spaces(&mut self) -> &mut BTreeMap<&'static str, u64> {
        &mut self.spaces
    }
}

/// What came of an operation, as a checker wants it.
pub(super) fn view(connection: &mut Connection, operation: &Operation) -> Result<Value, Refusal> {
    match connection.perform(operation) {
        Outcome::Done(value) => Ok(value),
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::Unknown => Err(Refusal { code: 0, text: "the connection died".to_string() }),
    }
}
