//! The inventory on Redis: a hash for each row, a set for each group as its index, kept by hand, and a script for each operation.

use super::Shop;
use crate::generator::{Group, Item, Place};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// KEYS[1]: the set of the group's rows. ARGV[1]: units wanted. Answers warehouse and part by turns, or nil.
const CAPTURE: &str = "\
local taken, missing = {}, tonumber(ARGV[1])
for _, row in ipairs(redis.call('SMEMBERS', KEYS[1])) do
    local here = tonumber(redis.call('HGET', row, 'count'))
    if here > 0 then
        local part = here < missing and here or missing
        taken[#taken + 1] = { row, part }
        missing = missing - part
        if missing == 0 then break end
    end
end
if missing > 0 then return false end
local answer = {}
for _, one in ipairs(taken) do
    redis.call('HINCRBY', one[1], 'count', -one[2])
    answer[#answer + 1] = redis.call('HGET', one[1], 'warehouse')
    answer[#answer + 1] = tostring(one[2])
end
return answer";

/// KEYS[1]: the row. ARGV[1]: units given.
const RELEASE: &str = "\
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
return redis.call('HINCRBY', KEYS[1], 'count', ARGV[1])";

/// Longest bulk that is believed.
const BULK_BYTES_MAX: usize = 1 << 24;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Status(String),
    Number(i64),
    Bulk(String),
    Array(Vec<Reply>),
}

/// A blocking connection.
pub(crate) struct Connection<S: Read + Write> {
    stream: BufReader<S>,
}

fn failed(error: std::io::Error) -> String {
    format!("redis: {error}")
}

impl<S: Read + Write> Connection<S> {
    fn new(stream: S) -> Self {
        Connection { stream: BufReader::new(stream) }
    }

    /// Asks and waits for the answer. Errors: the server's too.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Result<Reply, String> {
        let mut out = format!("*{}\r\n", words.len());
        for word in words {
            out.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(out.as_bytes()).map_err(failed)?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Reply, String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(failed)?;
        let absurd = || format!("redis: `{}` is no answer", line.escape_debug());
        let text = line.strip_suffix("\r\n").ok_or_else(absurd)?;
        let rest = text.get(1..).ok_or_else(absurd)?;
        match text.as_bytes()[0] {
            b'+' => Ok(Reply::Status(rest.to_string())),
            b'-' => Err(format!("redis: {rest}")),
            b':' => rest.parse().map(Reply::Number).map_err(|_| absurd()),
            b'$' if rest == "-1" => Ok(Reply::Nil),
            b'*' if rest == "-1" => Ok(Reply::Nil),
            b'$' => {
                let length: usize = rest.parse().ok().filter(|length| *length <= BULK_BYTES_MAX).ok_or_else(absurd)?;
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes).map_err(failed)?;
                bytes.truncate(length);
                String::from_utf8(bytes).map(Reply::Bulk).map_err(|_| absurd())
            }
            b'*' => {
                let count: usize = rest.parse().map_err(|_| absurd())?;
                (0..count).map(|_| self.reply()).collect::<Result<_, _>>().map(Reply::Array)
            }
            _ => Err(absurd()),
        }
    }
}

/// A client of the inventory.
pub(crate) struct RedisShop {
    connection: Connection<TcpStream>,
    /// Digests of the scripts.
    capture: String,
    release: String,
}

fn row_key(place: Place) -> String {
    let Place { sku, warehouse, condition, source } = place;
    format!("stock:{sku}:{warehouse}:{condition}:{source}")
}

fn group_key(group: Group) -> String {
    let Group { sku, condition, source } = group;
    format!("item:{sku}:{condition}:{source}")
}

fn text(reply: Reply) -> Result<String, String> {
    match reply {
        Reply::Bulk(text) | Reply::Status(text) => Ok(text),
        other => Err(format!("redis answered {other:?}")),
    }
}

impl RedisShop {
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let mut connection = Connection::new(stream);
        let mut load = |script| connection.ask(&["SCRIPT", "LOAD", script]).and_then(text);
        let (capture, release) = (load(CAPTURE)?, load(RELEASE)?);
        Ok(RedisShop { connection, capture, release })
    }
}

impl Shop for RedisShop {
    fn prepare(&mut self, items: &[Item]) -> Result<(), String> {
        self.connection.ask(&["FLUSHALL"])?;
        for Item { place, price, count } in items {
            let (row, group) = (row_key(*place), group_key(place.group()));
            let (warehouse, price, count) = (place.warehouse.to_string(), price.to_string(), count.to_string());
            self.connection.ask(&["HSET", &row, "warehouse", &warehouse, "price", &price, "count", &count])?;
            self.connection.ask(&["SADD", &group, &row])?;
        }
        Ok(())
    }

    fn capture(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, String> {
        let reply = self.connection.ask(&["EVALSHA", &self.capture, "1", &group_key(group), &count.to_string()])?;
        let Reply::Array(parts) = reply else {
            return if reply == Reply::Nil { Ok(None) } else { Err(format!("redis answered {reply:?}")) };
        };
        let numbers =
            parts.into_iter().map(|part| text(part)?.parse().map_err(|_| "redis answered no number".to_string()));
        let numbers: Vec<u64> = numbers.collect::<Result<_, String>>()?;
        Ok(Some(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()))
    }

    fn release(&mut self, place: Place, count: u64) -> Result<(), String> {
        match self.connection.ask(&["EVALSHA", &self.release, "1", &row_key(place), &count.to_string()])? {
            Reply::Number(_) => Ok(()),
            other => Err(format!("a release at {place:?} was answered by {other:?}")),
        }
    }

    fn stock(&mut self) -> Result<Vec<(Place, i64)>, String> {
        let Reply::Array(keys) = self.connection.ask(&["KEYS", "stock:*"])? else {
            return Err("redis has no list of keys".to_string());
        };
        keys.into_iter()
            .map(|key| {
                let key = text(key)?;
                let fields: Vec<u64> = key.split(':').skip(1).filter_map(|field| field.parse().ok()).collect();
                let [sku, warehouse, condition, source] = fields[..] else { return Err(format!("the key `{key}`")) };
                let count = text(self.connection.ask(&["HGET", &key, "count"])?)?;
                let count = count.parse().map_err(|_| format!("`{count}` units"))?;
                Ok((Place { sku, warehouse, condition, source }, count))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use std::io::Cursor;

    fn reply(bytes: &str) -> Result<Reply, String> {
        Connection::new(Cursor::new(bytes.as_bytes().to_vec())).reply()
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(reply("+OK\r\n").unwrap(), Reply::Status("OK".into()));
        assert_eq!(reply(":-3\r\n").unwrap(), Reply::Number(-3));
        assert_eq!((reply("$-1\r\n").unwrap(), reply("*-1\r\n").unwrap()), (Reply::Nil, Reply::Nil));
        let nested = reply("*2\r\n$1\r\na\r\n*1\r\n:1\r\n").unwrap();
        assert_eq!(nested, Reply::Array(vec![Reply::Bulk("a".into()), Reply::Array(vec![Reply::Number(1)])]));
        assert!(reply("-ERR no\r\n").unwrap_err().contains("ERR no"));
        assert!(reply("").is_err() && reply("$5\r\na\r\n").is_err() && reply("?\r\n").is_err());
    }
}
