//! Operations in the binary protocol, one at a time.

use crate::client::Client;
use std::collections::HashMap;
use trial::{Operation, Outcome, Refusal, Space, User, Value};
use tuple::msgpack::encode_uint;

/// The user with all rights that the start script makes.
pub(super) const ADMIN: (&str, &str) = ("trial_admin", "torture");
/// The view of all spaces, and its index by name.
const VSPACE: u32 = 281;
const VSPACE_BY_NAME: u32 = 2;

/// Keys of request bodies.
mod key {
    pub(super) const SPACE_ID: u8 = 0x10;
    pub(super) const INDEX_ID: u8 = 0x11;
    pub(super) const LIMIT: u8 = 0x12;
    pub(super) const ITERATOR: u8 = 0x14;
    pub(super) const KEY: u8 = 0x20;
    pub(super) const TUPLE: u8 = 0x21;
    pub(super) const FUNCTION_NAME: u8 = 0x22;
    pub(super) const EXPRESSION: u8 = 0x27;
    pub(super) const OPERATIONS: u8 = 0x28;
    pub(super) const DATA: u64 = 0x30;
    pub(super) const ERROR: u64 = 0x31;
}

/// A connection that performs operations.
pub(super) struct Connection {
    client: Client,
    /// Numbers of spaces that were asked for by name.
    spaces: HashMap<&'static str, u32>,
}

/// A map of a request body.
struct Body {
    bytes: Vec<u8>,
}

impl Body {
    fn new(entries: u8) -> Self {
        Body { bytes: vec![0x80 | entries] }
    }

    fn number(mut self, key: u8, number: u64) -> Self {
        self.bytes.push(key);
        encode_uint(&mut self.bytes, number);
        self
    }

    fn text(mut self, key: u8, text: &str) -> Self {
        self.bytes.push(key);
        tuple::msgpack::encode_str(&mut self.bytes, text.as_bytes());
        self
    }

    fn values(mut self, key: u8, values: &[Value]) -> Self {
        self.bytes.push(key);
        tuple::msgpack::encode_array(&mut self.bytes, values.len() as u32);
        values.iter().for_each(|value| value.encode(&mut self.bytes));
        self
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
        Ok(Connection { client, spaces: HashMap::new() })
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        match self.encode(operation) {
            Ok((kind, body)) => self.exchange(kind, &body),
            Err(outcome) => outcome,
        }
    }

    fn exchange(&mut self, kind: u8, body: &Body) -> Outcome {
        let Ok((code, answer)) = self.client.exchange(kind, &body.bytes) else { return Outcome::Unknown };
        let Some(Value::Map(fields)) = Value::decode(&answer) else { return Outcome::Unknown };
        let field = |key| fields.into_iter().find(|(name, _)| *name == Value::Uint(key)).map(|(_, value)| value);
        if code == 0 {
            return Outcome::Done(field(key::DATA).unwrap_or(Value::Array(Vec::new())));
        }
        let text = match field(key::ERROR) {
            Some(Value::Str(text)) => String::from_utf8_lossy(&text).into_owned(),
            _ => String::new(),
        };
        Outcome::Refused(Refusal { code, text })
    }

    /// The number of a space. Errors: what came of asking for it.
    fn space(&mut self, space: Space) -> Result<u64, Outcome> {
        let name = match space {
            Space::Id(id) => return Ok(u64::from(id)),
            Space::Name(name) => name,
        };
        if let Some(id) = self.spaces.get(name) {
            return Ok(u64::from(*id));
        }
        let body = Body::new(5)
            .number(key::SPACE_ID, u64::from(VSPACE))
            .number(key::INDEX_ID, u64::from(VSPACE_BY_NAME))
            .number(key::LIMIT, 1)
            .number(key::ITERATOR, 0)
            .values(key::KEY, &[name.into()]);
        let outcome = self.exchange(1, &body);
        match outcome.first().and_then(|row| row.uint_at(0)) {
            Some(id) => {
                self.spaces.insert(name, id as u32);
                Ok(id)
            }
            None if outcome.is_done() => {
                Err(Outcome::Refused(Refusal { code: 36, text: format!("Space '{name}' does not exist") }))
            }
            None => Err(outcome),
        }
    }

    /// The kind of the request and its body.
    fn encode(&mut self, operation: &Operation) -> Result<(u8, Body), Outcome> {
        Ok(match operation {
            Operation::Select { space, index, order, key, limit } => {
                let body = Body::new(5)
                    .number(key::SPACE_ID, self.space(*space)?)
                    .number(key::INDEX_ID, u64::from(*index))
                    .number(key::LIMIT, u64::from(*limit))
                    .number(key::ITERATOR, *order as u64)
                    .values(key::KEY, key);
                (1, body)
            }
            Operation::Insert { space, row } => {
                (2, Body::new(2).number(key::SPACE_ID, self.space(*space)?).values(key::TUPLE, row))
            }
            Operation::Replace { space, row } => {
                (3, Body::new(2).number(key::SPACE_ID, self.space(*space)?).values(key::TUPLE, row))
            }
            Operation::Update { space, index, key, changes } => {
                let body = Body::new(4)
                    .number(key::SPACE_ID, self.space(*space)?)
                    .number(key::INDEX_ID, u64::from(*index))
                    .values(key::KEY, key)
                    .values(key::TUPLE, changes);
                (4, body)
            }
            Operation::Delete { space, index, key } => {
                let body = Body::new(3)
                    .number(key::SPACE_ID, self.space(*space)?)
                    .number(key::INDEX_ID, u64::from(*index))
                    .values(key::KEY, key);
                (5, body)
            }
            Operation::Upsert { space, row, changes } => {
                let body = Body::new(3)
                    .number(key::SPACE_ID, self.space(*space)?)
                    .values(key::TUPLE, row)
                    .values(key::OPERATIONS, changes);
                (9, body)
            }
            Operation::Eval { source, arguments } => {
                (8, Body::new(2).text(key::EXPRESSION, source).values(key::TUPLE, arguments))
            }
            Operation::Call { name, arguments } => {
                (10, Body::new(2).text(key::FUNCTION_NAME, name).values(key::TUPLE, arguments))
            }
        })
    }
}
