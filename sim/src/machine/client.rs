//! A client of the simulated server: the binary protocol over a simulated connection, one request at a time.

use super::branch::Branch;
use super::watch;
use runtime::net::SimulatedStream;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use trial::{Exchange, Operation, Outcome, User, Value};
use wire::ClientError;

/// The user with all rights that the first life of the server makes.
pub(super) const ADMIN: (&str, &str) = ("trial_admin", "torture");
/// An answer that takes longer in simulated time is given up by the clients of a workload, for which its fate is unknown.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// The log failed: whether the operation happened is known after the next start.
const WAL_IO: u32 = 40;

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
    client: wire::Client<PatientStream>,
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
        let mut client = wire::Client::greet(PatientStream { stream, patience }).ok()?;
        let welcome = client.log_in(name, password);
        let mut connection = Connection { client, spaces: BTreeMap::new(), has_log_failed: false };
        match welcome {
            Ok(()) => Some(connection),
            Err(ClientError::Refused { code, text }) => {
                connection.note(Outcome::Refused(trial::Refusal { code, text }));
                None
            }
            Err(_) => None,
        }
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        operation.perform(self)
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
        self.client.set_stream(stream);
        let outcome = match self.client.exchange(kind, |out| out.extend_from_slice(body)) {
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
pub(super) fn view(connection: &mut Connection, operation: &Operation) -> Result<Value, trial::Refusal> {
    match connection.perform(operation) {
        Outcome::Done(value) => Ok(value),
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::Unknown => Err(trial::Refusal { code: 0, text: "the connection died".to_string() }),
    }
}
