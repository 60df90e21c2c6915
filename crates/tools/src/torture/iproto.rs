//! Operations in the binary protocol, one at a time.

use crate::client::Client;
use std::collections::BTreeMap;
use trial::{Exchange, Operation, Outcome, User};

/// The user with all rights that the start script makes.
pub(super) const ADMIN: (&str, &str) = ("trial_admin", "torture");

/// A connection that performs operations.
pub(super) struct Connection {
    client: Client,
    /// Numbers of spaces that were asked for by name.
    spaces: BTreeMap<&'static str, u64>,
}

impl Exchange for Connection {
    fn exchange(&mut self, stream: u64, kind: u64, body: &[u8]) -> Outcome {
        self.client.set_stream(stream);
        match self.client.exchange(kind, body) {
            Ok((code, answer)) => Outcome::decode(code, &answer),
            Err(_) => Outcome::Unknown,
        }
    }

    fn known_spaces(&mut self) -> &mut BTreeMap<&'static str, u64> {
        &mut self.spaces
    }
}

impl Connection {
    /// Connects and logs in. Errors: in words.
    pub(super) fn open(address: &str, user: User) -> Result<Self, String> {
        let (name, password) = match user {
            User::Admin => ADMIN,
            User::Named { name, password } => (name, password),
        };
        let client = Client::connect(&format!("{name}:{password}@{address}"))?;
        Ok(Connection { client, spaces: BTreeMap::new() })
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        operation.perform(self)
    }
}
