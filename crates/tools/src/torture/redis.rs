//! Operations of the workloads that Redis can express, in its commands: a space is a hash, a procedure is a script.

use runtime::net::{self, BlockingStream};
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;
use trial::{CLIENTS, Operation, Order, Outcome, REGISTERS_SPACE, Refusal, STOCK, Space, Value};

/// A connection that takes longer is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REGISTERS: &str = "registers";

/// Arguments: key, old, new.
const SWAP: &str = "if redis.call('HGET', 'registers', ARGV[1]) ~= ARGV[2] then return false end
redis.call('HSET', 'registers', ARGV[1], ARGV[3]) return 1";

/// Arguments: skus, warehouses, units of each.
const FILL: &str = "for sku = 1, tonumber(ARGV[1]) do for warehouse = 1, tonumber(ARGV[2]) do
redis.call('HSET', 'stock', sku * 100 + warehouse, ARGV[3]) end end return 1";

/// What capture and release begin with: a number that was seen is answered as before.
const ONCE: &str = "local last = redis.call('HMGET', 'client:' .. ARGV[1], 'number', 'answer')
local seen, number = tonumber(last[1] or 0), tonumber(ARGV[2])
if number == seen then return cjson.decode(last[2]) end
if number ~= seen + 1 then return redis.error_reply('number out of turn') end
local function keep(answer)
redis.call('HSET', 'client:' .. ARGV[1], 'number', number, 'answer', cjson.encode(answer))
redis.call('SADD', 'clients', ARGV[1]) return answer end ";

/// Arguments: client, number, sku, units. Redis has no way back from a write, so it looks before it takes.
const CAPTURE: &str = "local answer, missing, sku = {}, tonumber(ARGV[4]), tonumber(ARGV[3])
for warehouse = 1, 3 do
local part = math.min(tonumber(redis.call('HGET', 'stock', sku * 100 + warehouse) or 0), missing)
if part > 0 then answer[#answer + 1] = { sku, warehouse, part } missing = missing - part end end
if missing > 0 then return false end
for _, one in ipairs(answer) do redis.call('HINCRBY', 'stock', sku * 100 + one[2], -one[3]) end
return keep(answer)";

/// Arguments: client, number, sku, warehouse, units.
const RELEASE: &str = "redis.call('HINCRBY', 'stock', ARGV[3] * 100 + ARGV[4], ARGV[5]) return keep(1)";

const ALL_REGISTERS: &str = "local all, rows = redis.call('HGETALL', 'registers'), {}
for at = 1, #all, 2 do rows[#rows + 1] = { tonumber(all[at]), all[at + 1] } end return rows";

const ALL_STOCK: &str = "local all, rows = redis.call('HGETALL', 'stock'), {}
for at = 1, #all, 2 do local id = tonumber(all[at])
rows[#rows + 1] = { id, math.floor(id / 100), id % 100, tonumber(all[at + 1]) } end return rows";

const ALL_CLIENTS: &str = "local rows = {}
for _, id in ipairs(redis.call('SMEMBERS', 'clients')) do
local last = redis.call('HMGET', 'client:' .. id, 'number', 'answer')
rows[#rows + 1] = { tonumber(id), tonumber(last[1]), cjson.decode(last[2]) } end return rows";

/// A connection that performs operations.
pub(super) struct Connection {
    stream: BufReader<BlockingStream>,
}

/// An answer.
#[derive(Debug, PartialEq)]
enum Reply {
    Value(Value),
    Error(String),
}

impl Connection {
    /// Connects. Errors: in words.
    pub(super) fn open(address: &str) -> Result<Self, String> {
        let stream = net::connect(address, CONNECT_TIMEOUT).map_err(|error| format!("{address}: {error}"))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// True if it has read its files.
    pub(super) fn is_ready(&mut self) -> bool {
        matches!(self.command(&["PING".into()]), Ok(Reply::Value(_)))
    }

    /// Forgets everything. Errors: in words.
    pub(super) fn clear(&mut self) -> Result<(), String> {
        match self.command(&["FLUSHALL".into()]) {
            Ok(Reply::Value(_)) => Ok(()),
            Ok(Reply::Error(text)) => Err(text),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        let (command, shape) = match translate(operation) {
            Translation::Command(command, shape) => (command, shape),
            Translation::Nothing => return Outcome::Done(Value::Array(Vec::new())),
            Translation::Impossible => {
                let text = format!("{operation:?} cannot be expressed in Redis");
                return Outcome::Refused(Refusal { code: 0, text });
            }
        };
        match self.command(&command) {
            Err(_) => Outcome::Unknown,
            Ok(Reply::Error(text)) => Outcome::Refused(Refusal { code: 0, text }),
            Ok(Reply::Value(value)) => Outcome::Done(shape.apply(value)),
        }
    }

    fn command(&mut self, parts: &[String]) -> std::io::Result<Reply> {
        let mut out = format!("*{}\r\n", parts.len());
        for part in parts {
            out.push_str(&format!("${}\r\n{part}\r\n", part.len()));
        }
        self.stream.get_mut().write_all(out.as_bytes())?;
        read_reply(&mut self.stream)
    }
}

/// Reads one answer.
fn read_reply(stream: &mut impl BufRead) -> std::io::Result<Reply> {
    let malformed = || std::io::Error::other("malformed answer");
    let mut line = String::new();
    stream.read_line(&mut line)?;
    // A line without its end is one that was cut off.
    let line = line.strip_suffix("\r\n").ok_or_else(malformed)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(malformed)?;
    let number = || rest.parse::<i64>().map_err(|_| malformed());
    Ok(Reply::Value(match kind {
        "+" => rest.into(),
        "-" => return Ok(Reply::Error(rest.to_string())),
        ":" => match number()? {
            number if number >= 0 => Value::Uint(number as u64),
            number => Value::Int(number),
        },
        "$" => match number()? {
            -1 => Value::Nil,
            length => {
                let mut bytes = vec![0; length as usize + 2];
                stream.read_exact(&mut bytes)?;
                let text = String::from_utf8_lossy(&bytes[..length as usize]).into_owned();
                // All values of the workloads are numbers.
                text.parse().map_or_else(|_| text.as_str().into(), Value::Uint)
            }
        },
        "*" => {
            let mut values = Vec::new();
            for _ in 0..number()?.max(0) {
                match read_reply(stream)? {
                    Reply::Value(value) => values.push(value),
                    error => return Ok(error),
                }
            }
            Value::Array(values)
        }
        _ => return Err(malformed()),
    }))
}

/// How an answer is made to look like that of the binary protocol.
enum Shape {
    /// The row that was written.
    Written(Vec<Value>),
    /// The value of a key.
    ValueOf(u64),
    /// A list of rows.
    Rows,
    /// What a script returned.
    Returned,
}

impl Shape {
    fn apply(self, value: Value) -> Value {
        match self {
            Shape::Written(row) => Value::Array(vec![Value::Array(row)]),
            Shape::ValueOf(_) if value == Value::Nil => Value::Array(Vec::new()),
            Shape::ValueOf(key) => Value::Array(vec![Value::Array(vec![key.into(), value])]),
            Shape::Rows => Value::Array(value.array().iter().map(truth_in_row).collect()),
            Shape::Returned => Value::Array(vec![truth(value)]),
        }
    }
}

/// Scripts have no other words for true and false.
fn truth(value: Value) -> Value {
    match value {
        Value::Nil => Value::Bool(false),
        Value::Uint(1) => Value::Bool(true),
        other => other,
    }
}

/// The third field of a client's row is what a script returned.
fn truth_in_row(row: &Value) -> Value {
    match row.array() {
        [client, number, answer] => Value::Array(vec![client.clone(), number.clone(), truth(answer.clone())]),
        _ => row.clone(),
    }
}

enum Translation {
    Command(Vec<String>, Shape),
    /// Belongs to a schema, which Redis has none of.
    Nothing,
    Impossible,
}

fn script(source: &str, arguments: &[Value]) -> Vec<String> {
    let mut command = vec!["EVAL".to_string(), source.to_string(), "0".to_string()];
    command.extend(arguments.iter().map(ToString::to_string));
    command
}

fn translate(operation: &Operation) -> Translation {
    let all = |space: &Space| match *space {
        REGISTERS_SPACE => ALL_REGISTERS,
        STOCK => ALL_STOCK,
        CLIENTS => ALL_CLIENTS,
        _ => "",
    };
    let register = |command: &str, row: &[Value]| {
        let mut parts = vec![command.to_string(), REGISTERS.to_string()];
        parts.extend(row.iter().map(ToString::to_string));
        parts
    };
    match operation {
        Operation::Eval { .. } => Translation::Nothing,
        Operation::Replace { space: REGISTERS_SPACE, row } => {
            Translation::Command(register("HSET", row), Shape::Written(row.clone()))
        }
        Operation::Select { space: REGISTERS_SPACE, order: Order::Equal, key, .. } => {
            let shape = Shape::ValueOf(key.first().and_then(Value::uint).unwrap_or(0));
            Translation::Command(register("HGET", key), shape)
        }
        Operation::Select { space, order: Order::All, .. } if !all(space).is_empty() => {
            Translation::Command(script(all(space), &[]), Shape::Rows)
        }
        Operation::Call { name, arguments } => {
            let source = match *name {
                "trial_swap" => SWAP.to_string(),
                "trial_inventory_fill" => FILL.to_string(),
                "trial_capture" => format!("{ONCE}{CAPTURE}"),
                "trial_release" => format!("{ONCE}{RELEASE}"),
                _ => return Translation::Impossible,
            };
            Translation::Command(script(&source, arguments), Shape::Returned)
        }
        _ => Translation::Impossible,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn answers_of_every_kind_are_read() {
        let read = |text: &str| read_reply(&mut text.as_bytes());
        assert_eq!(read("+PONG\r\n").unwrap(), Reply::Value("PONG".into()));
        assert_eq!(read("-ERR no\r\n").unwrap(), Reply::Error("ERR no".into()));
        assert_eq!(read("$-1\r\n").unwrap(), Reply::Value(Value::Nil));
        let nested = Value::Array(vec![Value::numbers(&[1, 22]), Value::Nil]);
        assert_eq!(read("*2\r\n*2\r\n:1\r\n$2\r\n22\r\n$-1\r\n").unwrap(), Reply::Value(nested));
        assert!(read("").is_err() && read("$5\r\nab").is_err() && read(":1").is_err());
    }
}
