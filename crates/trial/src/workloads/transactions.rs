//! Transactions of several statements that wait in between: some order of them must explain what each of them read.
//!
//! Lists are rows to which values are appended, by blind upserts, by updates, and by a read and a replace. Registers are rows that are read and
//! then replaced. Both lie in two spaces each, so that one transaction may be over memory and disk at once. The graph of what came before
//! what is that of [`crate::cycles`]. Transactions come as procedures that wait between their steps, and as requests in streams.
//!
//! Rows of a third kind are only touched under a lock, in the order of their keys. Whoever has a row marks it in a table of Lua, so that a second one
//! who is given it sees the mark.
//!
//! Keys are given up for new ones once a list has grown, so that rows and reads stay small in long runs.

use crate::cycles::{Anomaly, Fate, Phenomenon, Promise, Step, Transaction, anomalies};
use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};
use std::collections::BTreeMap;

/// Keys with an even number are in the first space, others in the second.
const LISTS: [u32; 2] = [3100, 3101];
const CELLS: [u32; 2] = [3102, 3103];
const LOCKED: u32 = 3104;
/// A register under a lock has its key from here on in histories.
const LOCKED_KEYS: u64 = 1 << 40;
/// What the procedure says when it is given a row that another one has.
const SHARED: &str = "a locked row was given to two";
const TRANSACT: &str = "trial_transact";
/// Keys that are in use at a time.
const KEYS: u64 = 6;
/// A list of so many values is left for new keys.
const FULL: usize = 12;

/// See the top of the file.
pub(crate) struct Transactions;

struct Player {
    dice: Dice,
    unique: Unique,
    /// The first of the keys in use.
    base: u64,
}

impl Workload for Transactions {
    fn name(&self) -> &'static str {
        "transactions"
    }

    fn about(&self) -> &'static str {
        "transactions that wait append to lists and change registers; some order explains all reads"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        // Each step has one element in the answer: what it read, or true.
        let transact = "function(steps)\n\
            local fiber = require('fiber')\n\
            local function of(one, other, key) return box.space[key % 2 == 0 and one or other] end\n\
            local function appended(row, key, value)\n\
                if row == nil then return { key, value } end\n\
                return row:update({ { '!', -1, value } })\n\
            end\n\
            local answer, mine, holders = {}, {}, package.loaded.trial_holders or {}\n\
            package.loaded.trial_holders = holders\n\
            local function let_go() for key in pairs(mine) do holders[key] = nil end end\n\
            local function run()\n\
            box.begin()\n\
            for at, step in ipairs(steps) do\n\
                local what, key, value = step[1], step[2], step[3]\n\
                local list = of('trial_lists_1', 'trial_lists_2', key)\n\
                local cell = of('trial_cells_1', 'trial_cells_2', key)\n\
                local seen = true\n\
                if what == 'read' then\n\
                    seen = list:get(key) or box.NULL\n\
                elseif what == 'scan' then\n\
                    seen = {}\n\
                    for _, row in list:pairs(key, { iterator = 'GE' }) do\n\
                        if row[1] > value then break end\n\
                        table.insert(seen, row)\n\
                    end\n\
                elseif what == 'upsert' then\n\
                    list:upsert({ key, value }, { { '!', -1, value } })\n\
                elseif what == 'replace' then\n\
                    local row = list:get(key)\n\
                    seen = row or box.NULL\n\
                    list:replace(appended(row, key, value))\n\
                elseif what == 'update' then\n\
                    seen = list:update(key, { { '!', -1, value } }) or list:insert({ key, value })\n\
                elseif what == 'undone' then\n\
                    local before = box.savepoint()\n\
                    list:upsert({ key, value }, { { '!', -1, value } })\n\
                    fiber.yield()\n\
                    box.rollback_to_savepoint(before)\n\
                elseif what == 'look' then\n\
                    seen = cell:get(key) or box.NULL\n\
                elseif what == 'change' then\n\
                    seen = cell:get(key) or box.NULL\n\
                    cell:replace({ key, value })\n\
                elseif what == 'lock' then\n\
                    local locked = box.space.trial_locked\n\
                    seen = locked:get(key, { for_update = true }) or box.NULL\n\
                    if holders[key] then error('a locked row was given to two') end\n\
                    holders[key], mine[key] = true, true\n\
                    if value then locked:replace({ key, value }) end\n\
                elseif what == 'wait' then\n\
                    fiber.sleep(key / 1000)\n\
                elseif what == 'leave' then\n\
                    box.rollback()\n\
                    return false\n\
                end\n\
                answer[at] = seen\n\
            end\n\
            let_go()\n\
            box.commit()\n\
            return answer\n\
            end\n\
            local is_done, result = pcall(run)\n\
            let_go()\n\
            if not is_done then error(result) end\n\
            return result\n\
        end";
        vec![
            Operation::create_space(engines, LISTS[0], "trial_lists_1"),
            Operation::create_space(engines, LISTS[1], "trial_lists_2"),
            Operation::create_space(engines, CELLS[0], "trial_cells_1"),
            Operation::create_space(engines, CELLS[1], "trial_cells_2"),
            Operation::create_space(engines, LOCKED, "trial_locked"),
            Operation::define(TRANSACT, transact),
        ]
    }

    fn clients_min(&self) -> usize {
        4
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { dice: Dice::new(seed, number), unique: Unique::new(number), base: 0 })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let mut transactions = Vec::with_capacity(history.records.len() + 1);
        for record in &history.records {
            check_locks(record)?;
            transactions.push(transaction(record, history.decided_at(record))?);
        }
        let last = transactions.len();
        transactions.push(last_look(&transactions, view)?);
        match anomalies(&transactions, Promise::Strict).first() {
            Some(anomaly) => Err(violation(anomaly, last)),
            None => Ok(()),
        }
    }
}

fn violation(anomaly: &Anomaly, last: usize) -> Violation {
    let text = format!("T{last} is what is there now; {anomaly}");
    match anomaly.phenomenon {
        Phenomenon::Unwritten | Phenomenon::Duplicate | Phenomenon::G1a => Violation::wrong(text),
        _ if anomaly.needs_real_time && anomaly.transactions.contains(&last) => Violation::lost(text),
        _ => Violation::order(text),
    }
}

/// A row that was locked had one transaction.
fn check_locks(record: &Record) -> Result<(), Violation> {
    match &record.outcome {
        Outcome::Refused(refusal) if refusal.text.contains(SHARED) => {
            Err(Violation::order(format!("{}: {:?}", refusal.text, record.operation)))
        }
        _ => Ok(()),
    }
}

/// What is there now, as a transaction that reads all keys that anybody asked for.
fn last_look(transactions: &[Transaction], view: &mut View<'_>) -> Result<Transaction, Violation> {
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut cells: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for step in transactions.iter().flat_map(|one| &one.steps) {
        match step {
            Step::Append { key, .. } | Step::List { key, .. } => drop(lists.entry(*key).or_default()),
            Step::Write { key, .. } | Step::Register { key, .. } => drop(cells.entry(*key).or_default()),
        }
    }
    for space in LISTS {
        for row in rows(view, Operation::select_all(Space::Id(space), 0))? {
            let (key, values) = list_of(&row)?;
            lists.insert(key, values);
        }
    }
    for space in CELLS {
        for row in rows(view, Operation::select_all(Space::Id(space), 0))? {
            let (key, values) = list_of(&row)?;
            cells.insert(key, values.first().copied());
        }
    }
    for row in rows(view, Operation::select_all(Space::Id(LOCKED), 0))? {
        let (key, values) = list_of(&row)?;
        cells.insert(LOCKED_KEYS + key, values.first().copied());
    }
    let lists = lists.into_iter().map(|(key, values)| Step::List { key, values, by_range: false });
    let cells = cells.into_iter().map(|(key, value)| Step::Register { key, value, by_range: false });
    let steps = lists.chain(cells).collect();
    Ok(Transaction { steps, fate: Fate::Committed, invoked_at: u64::MAX - 1, answered_at: u64::MAX })
}

/// The key and values of a row.
fn list_of(row: &Value) -> Result<(u64, Vec<u64>), Violation> {
    let numbers: Option<Vec<u64>> = row.array().iter().map(Value::uint).collect();
    match numbers.as_deref() {
        Some([key, values @ ..]) if !values.is_empty() => Ok((*key, values.to_vec())),
        _ => Err(Violation::wrong(format!("{row} is there, which nobody asked for"))),
    }
}

/// The values of the row of a key, of which there may be none.
fn values_of(row: &Value, key: u64) -> Result<Vec<u64>, Violation> {
    if *row == Value::Nil {
        return Ok(Vec::new());
    }
    let (found, values) = list_of(row)?;
    if found != key {
        return Err(Violation::wrong(format!("{row} came for key {key}")));
    }
    Ok(values)
}

/// What a record says of the transaction that it asked for.
fn transaction(record: &Record, answered_at: u64) -> Result<Transaction, Violation> {
    let mut fate = match &record.outcome {
        Outcome::Done(_) => Fate::Committed,
        Outcome::Refused(_) => Fate::Aborted,
        Outcome::Unknown => Fate::Unknown,
    };
    let mut steps = Vec::new();
    match &record.operation {
        Operation::Select { key, .. } => {
            let key = key.first().and_then(Value::uint).unwrap_or(0);
            let values = values_of(record.outcome.first().unwrap_or(&Value::Nil), key)?;
            steps.push(Step::List { key, values, by_range: false });
        }
        Operation::Upsert { row, .. } => {
            let number = |at: usize| row.get(at).and_then(Value::uint).unwrap_or(0);
            steps.push(Step::Append { key: number(0), value: number(1) });
        }
        Operation::Stream { requests } => {
            let seen = match &record.outcome {
                Outcome::Done(answers) => answers.array(),
                _ => &[],
            };
            for (at, request) in requests.iter().enumerate() {
                add_request(&mut steps, request, seen.get(at))?;
            }
        }
        Operation::Call { arguments, .. } => {
            if record.outcome.first() == Some(&Value::Bool(false)) {
                fate = Fate::Aborted;
            }
            let asked = arguments.first().map_or(&[][..], Value::array);
            let seen = match fate {
                Fate::Committed => record.outcome.first().map_or(&[][..], Value::array),
                Fate::Aborted | Fate::Unknown => &[],
            };
            if fate == Fate::Committed && seen.len() != asked.len() {
                let text =
                    format!("{} steps were asked for and {} answered: {:?}", asked.len(), seen.len(), record.outcome);
                return Err(Violation::wrong(text));
            }
            for (at, step) in asked.iter().enumerate() {
                add_step(&mut steps, step, seen.get(at))?;
            }
        }
        other => return Err(Violation::wrong(format!("{other:?} is not of this workload"))),
    }
    Ok(Transaction { steps, fate, invoked_at: record.invoked_at, answered_at })
}

/// Adds a request of a stream; `seen` is its answer, if there was one.
fn add_request(steps: &mut Vec<Step>, request: &Operation, seen: Option<&Value>) -> Result<(), Violation> {
    let first = |values: &[Value]| values.first().and_then(Value::uint).unwrap_or(0);
    match request {
        Operation::Select { space, key, .. } => {
            let (key, Some(seen)) = (first(key), seen) else { return Ok(()) };
            let values = values_of(seen.array().first().unwrap_or(&Value::Nil), key)?;
            steps.push(match CELLS.iter().any(|cells| *space == Space::Id(*cells)) {
                true => Step::Register { key, value: values.first().copied(), by_range: false },
                false => Step::List { key, values, by_range: false },
            });
        }
        Operation::Upsert { row, .. } => steps.push(Step::Append { key: first(row), value: first(&row[1..]) }),
        Operation::Replace { row, .. } => steps.push(Step::Write { key: first(row), value: first(&row[1..]) }),
        other => return Err(Violation::wrong(format!("{other:?} is no request of a stream here"))),
    }
    Ok(())
}

/// Adds what the procedure did for one of its steps; `seen` is what it read, if there was an answer.
fn add_step(steps: &mut Vec<Step>, asked: &Value, seen: Option<&Value>) -> Result<(), Violation> {
    let [Value::Str(what), numbers @ ..] = asked.array() else { return Ok(()) };
    let number = |at: usize| numbers.get(at).and_then(Value::uint).unwrap_or(0);
    let (key, value) = (number(0), number(1));
    let list = |seen: &Value| Ok(Step::List { key, values: values_of(seen, key)?, by_range: false });
    let register =
        |seen: &Value| Ok(Step::Register { key, value: values_of(seen, key)?.first().copied(), by_range: false });
    match what.as_slice() {
        b"read" => steps.extend(seen.map(list).transpose()?),
        b"scan" => {
            let Some(seen) = seen else { return Ok(()) };
            let mut found = BTreeMap::new();
            for row in seen.array() {
                let (key, values) = list_of(row)?;
                found.insert(key, values);
            }
            // The range is of one space, so every other key.
            for key in (key..=value).step_by(2) {
                steps.push(Step::List { key, values: found.remove(&key).unwrap_or_default(), by_range: true });
            }
            if let Some(key) = found.keys().next() {
                return Err(Violation::wrong(format!("a scan from {} to {value} showed key {key}", number(0))));
            }
        }
        b"upsert" => steps.push(Step::Append { key, value }),
        b"replace" => {
            steps.extend(seen.map(list).transpose()?);
            steps.push(Step::Append { key, value });
        }
        b"update" => {
            steps.push(Step::Append { key, value });
            steps.extend(seen.map(list).transpose()?);
        }
        b"look" => steps.extend(seen.map(register).transpose()?),
        b"lock" => {
            let key = LOCKED_KEYS + key;
            let values = seen.map(|seen| values_of(seen, number(0))).transpose()?;
            steps.extend(values.map(|values| Step::Register { key, value: values.first().copied(), by_range: false }));
            if numbers.len() > 1 {
                steps.push(Step::Write { key, value });
            }
        }
        b"change" => {
            steps.extend(seen.map(register).transpose()?);
            steps.push(Step::Write { key, value });
        }
        _ => {}
    }
    Ok(())
}

impl Player {
    fn key(&mut self) -> u64 {
        self.base + self.dice.below(KEYS)
    }

    fn read(&mut self) -> Value {
        let key = self.key();
        match self.dice.below(4) {
            0 => step("scan", &[self.base + key % 2, self.base + KEYS - 1]),
            1 => step("look", &[key]),
            _ => step("read", &[key]),
        }
    }

    fn write(&mut self) -> Value {
        let numbers = [self.key(), self.unique.next()];
        match self.dice.below(12) {
            0..3 => step("upsert", &numbers),
            3..5 => step("update", &numbers),
            5..8 => step("replace", &numbers),
            8 => step("undone", &numbers),
            _ => step("change", &numbers),
        }
    }

    /// A procedure that locks what it touches.
    fn transact_locked(&mut self) -> Operation {
        let mut steps = Vec::new();
        for key in 0..KEYS {
            if self.dice.one_in(2) {
                let value = self.unique.next();
                steps.push(if self.dice.one_in(4) { step("lock", &[key]) } else { step("lock", &[key, value]) });
                steps.push(step("wait", &[self.dice.below(2)]));
            }
        }
        Operation::Call { name: TRANSACT, arguments: vec![Value::Array(steps)] }
    }

    /// A transaction of a few requests in a stream: it waits between all of them.
    fn transact_in_stream(&mut self) -> Operation {
        let is_reader = self.dice.one_in(3);
        let request_count = if self.dice.one_in(20) { 25 } else { 1 + self.dice.below(5) };
        let requests = (0..request_count).map(|_| {
            let (key, is_read) = (self.key(), is_reader || self.dice.one_in(2));
            let cells = Space::Id(CELLS[(key % 2) as usize]);
            match (is_read, self.dice.one_in(3)) {
                (true, true) => Operation::get(cells, key),
                (true, false) => Operation::get(space_of(key), key),
                (false, true) => Operation::Replace { space: cells, row: vec![key.into(), self.unique.next().into()] },
                (false, false) => self.append(key),
            }
        });
        Operation::Stream { requests: requests.collect() }
    }

    fn append(&mut self, key: u64) -> Operation {
        let value = self.unique.next();
        let changes = vec![Value::Array(vec!["!".into(), Value::Int(-1), value.into()])];
        Operation::Upsert { space: space_of(key), row: vec![key.into(), value.into()], changes }
    }

    /// A procedure of a few steps, most of them with a wait behind.
    fn transact(&mut self) -> Operation {
        let is_reader = self.dice.one_in(4);
        let mut steps = Vec::new();
        // Long ones keep their writes to themselves in another way than short ones.
        let step_count = if self.dice.one_in(20) { 25 } else { 1 + self.dice.below(5) };
        for _ in 0..step_count {
            let is_read = is_reader || self.dice.one_in(2);
            steps.push(if is_read { self.read() } else { self.write() });
            if !self.dice.one_in(3) {
                steps.push(step("wait", &[self.dice.below(3)]));
            }
        }
        if self.dice.one_in(15) {
            steps.push(step("leave", &[0]));
        }
        Operation::Call { name: TRANSACT, arguments: vec![Value::Array(steps)] }
    }
}

fn step(what: &str, numbers: &[u64]) -> Value {
    let mut values = vec![Value::from(what)];
    values.extend(numbers.iter().map(|number| Value::Uint(*number)));
    Value::Array(values)
}

fn space_of(key: u64) -> Space {
    Space::Id(LISTS[(key % 2) as usize])
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        match self.dice.below(10) {
            0 => {
                let key = self.key();
                Operation::get(space_of(key), key)
            }
            1 => {
                let key = self.key();
                self.append(key)
            }
            2 => self.transact_locked(),
            3..6 => self.transact_in_stream(),
            _ => self.transact(),
        }
    }

    fn answered(&mut self, outcome: &Outcome) {
        let Outcome::Done(data) = outcome else { return };
        // Rows are at one of three depths: of a select, of a step, of a scan.
        let mut open: Vec<&Value> = data.array().iter().collect();
        while let Some(value) = open.pop() {
            match value.array() {
                [Value::Uint(key), values @ ..] if values.len() >= FULL => {
                    self.base = self.base.max(key / KEYS * KEYS + KEYS)
                }
                values => open.extend(values.iter().filter(|inner| !inner.array().is_empty())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn call(client: usize, times: (u64, u64), steps: &[Value], outcome: Outcome) -> Record {
        let operation = Operation::Call { name: TRANSACT, arguments: vec![Value::Array(steps.to_vec())] };
        Record { client, incarnation: 0, operation, outcome, invoked_at: times.0, answered_at: times.1 }
    }

    fn done(values: Vec<Value>) -> Outcome {
        Outcome::Done(Value::Array(vec![Value::Array(values)]))
    }

    fn row(numbers: &[u64]) -> Value {
        Value::numbers(numbers)
    }

    #[test]
    fn a_lock_that_two_have_is_seen() {
        let refused = |text: &str| Outcome::Refused(crate::history::Refusal { code: 32, text: text.into() });
        let lock = |outcome| vec![call(0, (1, 2), &[step("lock", &[1, 7])], outcome)];
        assert_eq!(check(lock(refused("no")), [&[], &[]], &[]), Ok(()));
        let violation = check(lock(refused(&format!("line 1: {SHARED}"))), [&[], &[]], &[]).unwrap_err();
        assert_eq!(violation.kind.name(), "order");
    }

    fn check(records: Vec<Record>, lists: [&[Value]; 2], cells: &[Value]) -> Result<(), Violation> {
        let history = History { records, ..History::default() };
        let mut view = |operation: Operation| match operation {
            Operation::Select { space: Space::Id(3100), .. } => Ok(Value::Array(lists[0].to_vec())),
            Operation::Select { space: Space::Id(3101), .. } => Ok(Value::Array(lists[1].to_vec())),
            Operation::Select { space: Space::Id(3102), .. } => Ok(Value::Array(cells.to_vec())),
            _ => Ok(Value::Array(Vec::new())),
        };
        Transactions.check(0, &history, &mut view)
    }

    #[test]
    fn steps_and_answers_become_transactions() {
        let yes = Value::Bool(true);
        let first = [step("upsert", &[2, 10]), step("wait", &[1]), step("replace", &[3, 11]), step("change", &[2, 12])];
        let second = [step("scan", &[0, 5]), step("update", &[3, 13]), step("look", &[2]), step("undone", &[2, 99])];
        let third = [step("read", &[2]), step("leave", &[0])];
        let records = vec![
            call(0, (1, 2), &first, done(vec![yes.clone(), yes.clone(), Value::Nil, Value::Nil])),
            call(
                1,
                (3, 4),
                &second,
                done(vec![Value::Array(vec![row(&[2, 10])]), row(&[3, 11, 13]), row(&[2, 12]), yes]),
            ),
            call(0, (5, 6), &third, Outcome::Done(Value::Array(vec![false.into()]))),
            call(0, (7, 8), &[step("upsert", &[2, 14])], Outcome::Unknown),
        ];
        let told = |at: usize| transaction(&records[at], 9).unwrap();
        let words = |at: usize| told(at).steps.iter().map(Step::to_string).collect::<Vec<_>>().join("; ");
        assert_eq!(
            words(0),
            "append 10 to list 2; read list 3: []; append 11 to list 3; read register 2: nothing; write 12 to register 2"
        );
        assert_eq!(
            words(1),
            "read list 0: []; read list 2: [10]; read list 4: []; append 13 to list 3; read list 3: [11, 13]; read register 2: 12"
        );
        assert_eq!(told(2).fate, Fate::Aborted);
        let check = |even: &[u64], odd: &[u64], cell: &[u64]| {
            check(records.clone(), [&[row(even)], &[row(odd)]], &[row(cell)]).map_err(|violation| violation.kind.name())
        };
        assert_eq!(check(&[2, 10], &[3, 11, 13], &[2, 12]), Ok(()));
        assert_eq!(check(&[2, 10, 14], &[3, 11, 13], &[2, 12]), Ok(()), "without an answer it may have happened");
        assert_eq!(check(&[2, 10], &[3, 11], &[2, 12]), Err("lost"), "half of the second is gone");
        assert_eq!(check(&[2, 10, 99], &[3, 11, 13], &[2, 12]), Err("wrong"), "the savepoint was left");
    }

    #[test]
    fn a_lost_transaction_and_write_skew_are_seen() {
        let one = || call(0, (1, 2), &[step("upsert", &[2, 10])], done(vec![true.into()]));
        assert_eq!(check(vec![one()], [&[row(&[2, 10])], &[]], &[]), Ok(()));
        assert_eq!(check(vec![one()], [&[], &[]], &[]).unwrap_err().kind.name(), "lost");
        let skew = |client, read, write, value| {
            let steps = [step("read", &[read]), step("upsert", &[write, value])];
            call(client, (1, 9), &steps, done(vec![Value::Nil, true.into()]))
        };
        let violation =
            check(vec![skew(0, 2, 4, 10), skew(1, 4, 2, 11)], [&[row(&[2, 11]), row(&[4, 10])], &[]], &[]).unwrap_err();
        assert!(
            violation.to_string().contains("order: T2 is what is there now; G2-item (write skew): 2 trans"),
            "{violation}"
        );
    }

    #[test]
    fn full_lists_are_left_for_new_keys() {
        let mut player = Player { dice: Dice::new(1, 0), unique: Unique::new(0), base: 0 };
        let full: Vec<u64> = (0..=FULL as u64).map(|at| at + 3).collect();
        player.answered(&done(vec![true.into(), Value::Array(vec![row(&[1, 5]), row(&full)])]));
        assert_eq!(player.base, KEYS);
    }
}
