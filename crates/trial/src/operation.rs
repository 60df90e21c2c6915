//! What a client asks for.

use crate::doors::Ask;
use crate::engines::Engines;
use crate::value::Value;
use tuple::SpaceId;

/// A space, by either of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// By name: the driver finds the number.
    Name(&'static str),
    /// By number.
    Id(u32),
}

/// Order and bounds of a select; the numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Rows of exactly this key.
    Equal = 0,
    /// All rows.
    All = 2,
    /// This key and smaller ones, from the largest down.
    LessOrEqual = 4,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// A user with all rights; the driver knows its name.
    Admin,
    /// A user that the workload made.
    Named {
        /// Its name.
        name: &'static str,
        /// Its password.
        password: &'static str,
    },
}

/// A request. `index` 0 is the primary one; rows, keys and arguments are the elements of arrays.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the protocol's words")]
pub enum Operation {
    Insert {
        space: Space,
        row: Vec<Value>,
    },
    Replace {
        space: Space,
        row: Vec<Value>,
    },
    Update {
        space: Space,
        index: u32,
        key: Vec<Value>,
        /// Each an array such as `{"=", 1, value}`; the first field has number 0.
        changes: Vec<Value>,
    },
    Upsert {
        space: Space,
        row: Vec<Value>,
        changes: Vec<Value>,
    },
    Delete {
        space: Space,
        index: u32,
        key: Vec<Value>,
    },
    Select {
        space: Space,
        index: u32,
        order: Order,
        key: Vec<Value>,
        limit: u32,
    },
    Call {
        name: &'static str,
        arguments: Vec<Value>,
    },
    /// A transaction of its own in a stream: begun, one request after the other, committed. Its answer has that of each request.
    Stream {
        requests: Vec<Operation>,
    },
    Eval {
        /// Lua; the arguments are `...`.
        source: &'static str,
        arguments: Vec<Value>,
    },
    /// In the words of the door that the client has come by.
    Door(Ask),
}

impl Operation {
    /// All rows of a space through an index.
    pub fn select_all(space: Space, index: u32) -> Self {
        Operation::Select { space, index, order: Order::All, key: Vec::new(), limit: u32::MAX }
    }

    /// The row of a primary key.
    pub fn get(space: Space, key: u64) -> Self {
        Operation::Select { space, index: 0, order: Order::Equal, key: vec![key.into()], limit: 1 }
    }

    /// A call with numbers.
    pub fn call(name: &'static str, arguments: &[u64]) -> Self {
        Operation::Call { name, arguments: arguments.iter().map(|argument| Value::Uint(*argument)).collect() }
    }

    /// Lua without arguments.
    pub fn eval(source: &'static str) -> Self {
        Operation::Eval { source, arguments: Vec::new() }
    }

    /// Makes a Lua function that the server keeps and finds again after a restart.
    pub(crate) fn define(name: &'static str, body: &str) -> Self {
        let source = "local name, body = ...\n\
                      box.schema.func.drop(name, { if_exists = true })\n\
                      box.schema.func.create(name, { body = body })";
        Operation::Eval { source, arguments: vec![name.into(), body.into()] }
    }

    /// Makes an empty space with a primary index over the first field, an unsigned number; one of that number that is there goes first.
    pub(crate) fn create_space(engines: Engines, id: u32, name: &'static str) -> Self {
        let source = "local id, name, engine = ...\n\
                      if box.space[id] ~= nil then box.space[id]:drop() end\n\
                      box.schema.space.create(name, { id = id, engine = engine })\n\
                      box.space[id]:create_index('primary', { parts = { { 1, 'unsigned' } } })";
        Operation::Eval { source, arguments: vec![u64::from(id).into(), name.into(), engines.of(SpaceId(id)).into()] }
    }
}
