//! Operations in the binary protocol, one at a time.

use crate::client::Client;
use std::collections::HashMap;
use trial::{Operation, Outcome, User};

/// The user with all rights that the start script makes.
pub(super) const ADMIN: (&str, &str) = ("trial_admin", "torture");

/// A connection that performs operations.
pub(super) struct Connection {
    client: Client,
    /// Numbers of spaces that were asked for by name.
    spaces: HashMap<&'static str, u64>,
}

impl Connection {
    /// Connects and logs in. Errors: in words.
    pub(super) fn open(address: &str, user: User) -> Result<Self, String> {
        let (name, password) = match user {
            User::Admin => ADMIN,
            User::Named { name, password } => (name, password),
        };
        let client = Client::connect(&format!("{name}:{password}@{address}"))?;
        Ok(Connection { client, spaces: HashMap::new() })
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        let Connection { client, spaces } = self;
        let mut space_id = |name| {
            if let Some(id) = spaces.get(name) {
                return Ok(*id);
            }
            let (kind, body) = Operation::find_space(name).encode(&mut |_| Err(Outcome::Unknown))?;
            let id = send(client, kind, &body).space_id(name)?;
            spaces.insert(name, id);
            Ok(id)
        };
        let request = operation.encode(&mut space_id);
        request.map_or_else(|outcome| outcome, |(kind, body)| send(client, kind, &body))
    }
}

fn send(client: &mut Client, kind: u64, body: &[u8]) -> Outcome {
    match client.exchange(kind, body) {
        Ok((code, answer)) => Outcome::decode(code, &answer),
        Err(_) => Outcome::Unknown,
    }
}
