//! Operations and answers as bodies of the binary protocol. Headers, lengths and connections are the driver's.

use crate::history::{Outcome, Refusal};
use crate::operation::{Operation, Space};
use crate::value::Value;
use std::collections::BTreeMap;
use tuple::msgpack;
use wire::{key, request_type};

/// The view of all spaces, and its index by name.
const VSPACE: u32 = 281;
const VSPACE_BY_NAME: u32 = 2;

/// A map of a request body.
struct Body {
    bytes: Vec<u8>,
}

impl Body {
    fn new(entries: u8) -> Self {
        Body { bytes: vec![0x80 | entries] }
    }

    fn number(mut self, key: u64, number: u64) -> Self {
        msgpack::encode_uint(&mut self.bytes, key);
        msgpack::encode_uint(&mut self.bytes, number);
        self
    }

    fn text(mut self, key: u64, text: &str) -> Self {
        msgpack::encode_uint(&mut self.bytes, key);
        msgpack::encode_str(&mut self.bytes, text.as_bytes());
        self
    }

    fn values(mut self, key: u64, values: &[Value]) -> Self {
        msgpack::encode_uint(&mut self.bytes, key);
        msgpack::encode_array(&mut self.bytes, values.len() as u32);
        values.iter().for_each(|value| value.encode(&mut self.bytes));
        self
    }
}

/// The stream in which clients have their transactions.
const STREAM: u64 = 1;
const NO_STREAM: u64 = 0;

/// A connection, one request at a time.
pub trait Exchange {
    /// Sends a request of a stream (0: of none) and waits for what came of it.
    fn exchange(&mut self, stream: u64, kind: u64, body: &[u8]) -> Outcome;

    /// The numbers of spaces that were asked for by name.
    fn known_spaces(&mut self) -> &mut BTreeMap<&'static str, u64>;
}

impl Operation {
    /// Does it over a connection, and waits for what comes of it.
    pub fn perform(&self, over: &mut impl Exchange) -> Outcome {
        let Operation::Stream { requests } = self else { return self.perform_in(NO_STREAM, over) };
        let empty = Body::new(0).bytes;
        let begun = over.exchange(STREAM, request_type::BEGIN, &empty);
        if !begun.is_done() {
            return begun;
        }
        let mut answers = Vec::new();
        for request in requests {
            match request.perform_in(STREAM, over) {
                Outcome::Done(answer) => answers.push(answer),
                Outcome::Refused(refusal) => {
                    // Whether this is answered or not: nothing was committed.
                    over.exchange(STREAM, request_type::ROLLBACK, &empty);
                    return Outcome::Refused(refusal);
                }
                Outcome::Unknown => return Outcome::Unknown,
            }
        }
        match over.exchange(STREAM, request_type::COMMIT, &empty) {
            Outcome::Done(_) => Outcome::Done(Value::Array(answers)),
            other => other,
        }
    }

    fn perform_in(&self, stream: u64, over: &mut impl Exchange) -> Outcome {
        let mut space_id = |name| {
            if let Some(id) = over.known_spaces().get(name) {
                return Ok(*id);
            }
            let (kind, body) = Operation::find_space(name).encode(&mut |_| Err(Outcome::Unknown))?;
            let id = over.exchange(NO_STREAM, kind, &body).space_id(name)?;
            over.known_spaces().insert(name, id);
            Ok(id)
        };
        match self.encode(&mut space_id) {
            Ok((kind, body)) => over.exchange(stream, kind, &body),
            Err(outcome) => outcome,
        }
    }

    /// The type of the request and its body. `space_id` finds the number of a space that is known by name.
    ///
    /// Errors: what `space_id` says of a name that it does not find.
    fn encode(
        &self,
        space_id: &mut dyn FnMut(&'static str) -> Result<u64, Outcome>,
    ) -> Result<(u64, Vec<u8>), Outcome> {
        let mut id = |space: &Space| match space {
            Space::Id(id) => Ok(u64::from(*id)),
            Space::Name(name) => space_id(name),
        };
        let (kind, body) = match self {
            Operation::Select { space, index, order, key, limit } => {
                let body = Body::new(5)
                    .number(key::SPACE_ID, id(space)?)
                    .number(key::INDEX_ID, u64::from(*index))
                    .number(key::LIMIT, u64::from(*limit))
                    .number(key::ITERATOR, *order as u64)
                    .values(key::KEY, key);
                (request_type::SELECT, body)
            }
            Operation::Insert { space, row } => {
                (request_type::INSERT, Body::new(2).number(key::SPACE_ID, id(space)?).values(key::TUPLE, row))
            }
            Operation::Replace { space, row } => {
                (request_type::REPLACE, Body::new(2).number(key::SPACE_ID, id(space)?).values(key::TUPLE, row))
            }
            Operation::Update { space, index, key, changes } => {
                let body = Body::new(4)
                    .number(key::SPACE_ID, id(space)?)
                    .number(key::INDEX_ID, u64::from(*index))
                    .values(key::KEY, key)
                    .values(key::TUPLE, changes);
                (request_type::UPDATE, body)
            }
            Operation::Delete { space, index, key } => {
                let body = Body::new(3)
                    .number(key::SPACE_ID, id(space)?)
                    .number(key::INDEX_ID, u64::from(*index))
                    .values(key::KEY, key);
                (request_type::DELETE, body)
            }
            Operation::Upsert { space, row, changes } => {
                let body =
                    Body::new(3).number(key::SPACE_ID, id(space)?).values(key::TUPLE, row).values(key::OPS, changes);
                (request_type::UPSERT, body)
            }
            Operation::Eval { source, arguments } => {
                (request_type::EVAL, Body::new(2).text(key::EXPRESSION, source).values(key::TUPLE, arguments))
            }
            Operation::Call { name, arguments } => {
                (request_type::CALL, Body::new(2).text(key::FUNCTION_NAME, name).values(key::TUPLE, arguments))
            }
            // Of several requests, of which there are none within; of another protocol.
            Operation::Stream { .. } | Operation::Door(_) => (request_type::PING, Body::new(0)),
        };
        Ok((kind, body.bytes))
    }

    /// The request that asks for the number of a space, for `encode`'s argument: a select of the view of all spaces. Its first row begins with the
    /// number.
    fn find_space(name: &'static str) -> Operation {
        Operation::Select {
            space: Space::Id(VSPACE),
            index: VSPACE_BY_NAME,
            order: crate::operation::Order::Equal,
            key: vec![name.into()],
            limit: 1,
        }
    }
}

impl Outcome {
    /// What an answer with this code (0: all is well) and body says.
    pub fn decode(code: u32, body: &[u8]) -> Outcome {
        let Some(Value::Map(fields)) = Value::decode(body) else { return Outcome::Unknown };
        let field = |key| fields.into_iter().find(|(name, _)| *name == Value::Uint(key)).map(|(_, value)| value);
        if code == 0 {
            return Outcome::Done(field(key::DATA).unwrap_or(Value::Array(Vec::new())));
        }
        let text = match field(key::ERROR_24) {
            Some(Value::Str(text)) => String::from_utf8_lossy(&text).into_owned(),
            _ => String::new(),
        };
        Outcome::Refused(Refusal { code, text })
    }

    /// The number of the space that `Operation::find_space` asked for. Errors: there is none, or what else came of asking.
    fn space_id(self, name: &str) -> Result<u64, Outcome> {
        match self.first().and_then(|row| row.uint_at(0)) {
            Some(id) => Ok(id),
            None if self.is_done() => {
                Err(Outcome::Refused(Refusal { code: 36, text: format!("Space '{name}' does not exist") }))
            }
            None => Err(self),
        }
    }
}
