//! Workloads whose clients come through doors: some by each of them, all over the same rows. What is there now is seen through the binary protocol.

mod appends;
mod counters;
mod families;
mod items;
mod queues;
mod statements;

use crate::doors::{Door, Doors, Tongue};
use crate::engines::Engines;
use crate::history::Violation;
use crate::operation::Operation;
use crate::value::Value;
use crate::workload::{View, Workload, rows};

/// All that these doors can express.
pub(super) fn all(doors: &Doors) -> Vec<Box<dyn Workload>> {
    if doors.all().is_empty() {
        return Vec::new();
    }
    let mut all: Vec<Box<dyn Workload>> =
        vec![Box::new(appends::Appends(doors.clone())), Box::new(items::Items(doors.clone()))];
    let tyrants = doors.all().contains(&Door::Tyrant);
    // Numbers of Tokyo Tyrant are no texts, as those of the others are.
    if !tyrants || doors.only().is_some() {
        all.push(Box::new(counters::Counters(doors.clone())));
    }
    if doors.are_sql() {
        all.push(Box::new(statements::Statements(doors.clone())));
        all.push(Box::new(families::Families(doors.clone())));
    }
    if doors.only() == Some(Door::Redis) {
        all.push(Box::new(queues::Queues(doors.clone())));
    }
    all
}

/// Clients of each door and of each of its protocols.
fn clients_min(doors: &Doors) -> usize {
    doors.all().len() * 3
}

/// Makes the spaces empty, which the listeners have made; those of SQL are made here.
fn clear(doors: &Doors, engines: Engines) -> Operation {
    if doors.are_sql() {
        let source = "local name, engine = ...\n\
                      if box.space[name] ~= nil then box.space[name]:drop() end\n\
                      local format = { { 'key', 'string' }, { 'value', 'string' } }\n\
                      box.schema.space.create(name, { engine = engine, format = format })\n\
                      box.space[name]:create_index('primary', { parts = { 'key' } })";
        let arguments = vec![doors.space().into(), Doors::engine(engines).into()];
        return Operation::Eval { source, arguments };
    }
    let source = "local name = ...\n\
                  for _, space in pairs({ name, 'redis_hashes', 'redis_lists', 'redis_sets', 'redis_sorted_sets' }) do\n\
                      if box.space[space] ~= nil then box.space[space]:truncate() end\n\
                  end";
    Operation::Eval { source, arguments: vec![doors.space().into()] }
}

/// Drops spaces, the first one first.
fn drop_spaces(names: &[&str]) -> Operation {
    let source = "for _, name in ipairs({ ... }) do\n\
                      if box.space[name] ~= nil then box.space[name]:drop() end\n\
                  end";
    Operation::Eval { source, arguments: names.iter().map(|name| (*name).into()).collect() }
}

/// How a client speaks: some of each door, and some of the binary protocol.
fn tongue_or_binary(doors: &Doors, client: usize) -> Option<Tongue> {
    let kinds = doors.all().len() + 1;
    let round = client / kinds * doors.all().len();
    (client % kinds < doors.all().len()).then(|| doors.tongue(round + client % kinds))
}

/// The rows of the doors' space whose keys begin so, as pairs of key and value; values that are no text are left out.
fn texts(doors: &Doors, prefix: &str, view: &mut View<'_>) -> Result<Vec<(String, Vec<u8>)>, Violation> {
    let source = "local name, prefix = ...\n\
                  local found = {}\n\
                  for _, row in box.space[name]:pairs() do\n\
                      if row[1]:sub(1, #prefix) == prefix and type(row[2]) == 'string' then\n\
                          table.insert(found, { row[1], row[2] })\n\
                      end\n\
                  end\n\
                  return found";
    let found = rows(view, Operation::Eval { source, arguments: vec![doors.space().into(), prefix.into()] })?;
    let found = found.first().map_or(&[][..], Value::array);
    let pair = |row: &Value| match row.array() {
        [Value::Str(key), value] => {
            let mut text = Vec::new();
            match value {
                Value::Str(bytes) => text.extend_from_slice(bytes),
                Value::Repeat { byte, count } => text.resize(*count as usize, *byte),
                _ => return None,
            }
            Some((String::from_utf8_lossy(key).into_owned(), text))
        }
        _ => None,
    };
    found.iter().map(|row| pair(row).ok_or_else(|| Violation::wrong(format!("{row} is no text")))).collect()
}

/// The elements behind a key of Redis: rows without their number. Errors: their count is not that of the head.
fn elements(space: &'static str, key: &str, view: &mut View<'_>) -> Result<Vec<Value>, Violation> {
    let source = "local name, key = ...\n\
                  local head = box.space.redis:get(key)\n\
                  if head == nil then return end\n\
                  local found = {}\n\
                  for _, row in box.space[name]:pairs({ head[2][2] }) do\n\
                      table.insert(found, { row[2], row[3] })\n\
                  end\n\
                  return head[2][3], found";
    let found = rows(view, Operation::Eval { source, arguments: vec![space.into(), key.into()] })?;
    let [count, found] = &found[..] else { return Ok(Vec::new()) };
    let found = found.array();
    if count.uint() != Some(found.len() as u64) {
        return Err(Violation::wrong(format!("{key} says that it has {count} elements, it has {}", found.len())));
    }
    Ok(found.to_vec())
}
