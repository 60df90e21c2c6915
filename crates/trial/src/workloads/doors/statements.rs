//! Transactions of SQL that go statement by statement, and procedures that do the same over the same rows: some order explains what each of them read.
//!
//! Lists are texts of numbers, registers are numbers, in two tables. A transaction of READ COMMITTED locks what it reads and is about to write; what it
//! only reads is of the moment of the statement, and counts as a transaction of its own; behind a write or a lock each row does. The other levels lock nothing, or what they like: they are
//! serializable. Clients of the binary protocol call a procedure that waits between its steps.
//!
//! Rows are given up for new ones once a list has grown.

use super::drop_spaces;
use crate::cycles::{Fate, Phenomenon, Promise, Step, Transaction, anomalies};
use crate::doors::{Ask, Doors, Level, Lock, Statement, Tongue, numbers_of};
use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};
use std::collections::{BTreeMap, BTreeSet};
use tuple::SpaceId;

const NOTES: &str = "trial_notes";
const CELLS: &str = "trial_cells";
/// Stand for the spaces where engines are mixed.
const NOTES_ID: SpaceId = SpaceId(3121);
const CELLS_ID: SpaceId = SpaceId(3122);
const TRANSACT: &str = "trial_statements";
/// Rows of each table that are in use at a time.
const KEYS: u64 = 5;
/// Numbers of a list that is left for a new one.
const FULL: usize = 15;
const STEPS: u64 = 5;

/// See the top of the file.
pub(crate) struct Statements(pub(super) Doors);

struct Player {
    dice: Dice,
    unique: Unique,
    /// None: the binary protocol.
    tongue: Option<Tongue>,
    /// The first of the rows in use.
    base: u64,
}

impl Workload for Statements {
    fn name(&self) -> &'static str {
        "statements"
    }

    fn about(&self) -> &'static str {
        "transactions of several statements of SQL, at every level, beside procedures; some order explains all reads"
    }

    fn clients_min(&self) -> usize {
        (self.0.all().len() + 1) * 2
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let tables = "local notes, cells = ...\n\
            local function make(name, engine, field, kind)\n\
                local format = { { 'id', 'unsigned' }, { field, kind } }\n\
                box.schema.space.create(name, { engine = engine, format = format })\n\
                box.space[name]:create_index('primary', { parts = { 'id' } })\n\
            end\n\
            make('trial_notes', notes, 'body', 'string')\n\
            make('trial_cells', cells, 'number', 'unsigned')";
        // What each step has in the answer is what a statement of SQL has there.
        let transact = "function(steps)\n\
            local fiber = require('fiber')\n\
            local notes, cells = box.space.trial_notes, box.space.trial_cells\n\
            local function at(space, key, lock)\n\
                local row = space:get(key, lock and lock > 0 and { for_update = true } or nil)\n\
                return row, row and { row[2] } or {}\n\
            end\n\
            local function append(key, value)\n\
                notes:upsert({ key, value .. ',' }, { { ':', 2, -1, 0, value .. ',' } })\n\
            end\n\
            local answers = {}\n\
            local function run()\n\
                for number, step in ipairs(steps) do\n\
                    local what, key, value = step[1], step[2], step[3]\n\
                    local row, seen = nil, {}\n\
                    if what == 'read' then\n\
                        row, seen = at(notes, key, value)\n\
                    elseif what == 'look' then\n\
                        row, seen = at(cells, key, value)\n\
                    elseif what == 'range' then\n\
                        for _, row in notes:pairs(key, { iterator = 'GE' }) do\n\
                            if row[1] > value then break end\n\
                            table.insert(seen, { row[1], row[2] })\n\
                        end\n\
                    elseif what == 'append' then\n\
                        append(key, value)\n\
                    elseif what == 'extend' then\n\
                        row, seen = at(notes, key)\n\
                        notes:replace({ key, (row and row[2] or '') .. value .. ',' })\n\
                    elseif what == 'change' then\n\
                        row, seen = at(cells, key)\n\
                        cells:replace({ key, value })\n\
                    elseif what == 'undone' then\n\
                        local before = box.savepoint()\n\
                        append(key, value)\n\
                        fiber.yield()\n\
                        box.rollback_to_savepoint(before)\n\
                    elseif what == 'wait' then\n\
                        fiber.sleep(key / 1000)\n\
                    elseif what == 'leave' then\n\
                        box.rollback()\n\
                        return { false }\n\
                    end\n\
                    answers[number] = seen\n\
                    fiber.yield()\n\
                end\n\
                box.commit()\n\
                return answers\n\
            end\n\
            box.begin()\n\
            local is_done, result = pcall(run)\n\
            if not is_done then\n\
                box.rollback()\n\
                error(result)\n\
            end\n\
            return result\n\
        end";
        vec![
            drop_spaces(&[NOTES, CELLS]),
            Operation::Eval {
                source: tables,
                arguments: vec![engines.of(NOTES_ID).into(), engines.of(CELLS_ID).into()],
            },
            Operation::define(TRANSACT, transact),
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let tongue = super::tongue_or_binary(&self.0, number);
        Box::new(Player { dice: Dice::new(seed, number), unique: Unique::new(number), tongue, base: 0 })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let mut transactions = Vec::with_capacity(history.records.len() + 1);
        for record in &history.records {
            add(&mut transactions, record, history.decided_at(record))?;
        }
        let last = transactions.len();
        transactions.push(last_look(&transactions, view)?);
        let Some(anomaly) = anomalies(&transactions, Promise::Strict).into_iter().next() else { return Ok(()) };
        let text = format!("T{last} is what is there now; {anomaly}");
        Err(match anomaly.phenomenon {
            Phenomenon::Unwritten | Phenomenon::Duplicate | Phenomenon::G1a => Violation::wrong(text),
            _ if anomaly.needs_real_time && anomaly.transactions.contains(&last) => Violation::lost(text),
            _ => Violation::order(text),
        })
    }
}

/// What a record asked for: at which level, and the statements.
fn asked(record: &Record) -> Result<(Level, Vec<Statement>), Violation> {
    let strange = || Violation::wrong(format!("{:?} is not of this workload", record.operation));
    match &record.operation {
        Operation::Door(Ask::Transact(level, statements)) => Ok((*level, statements.clone())),
        Operation::Call { arguments, .. } => {
            let words = arguments.first().map_or(&[][..], Value::array);
            let statements: Option<Vec<Statement>> = words.iter().map(Statement::of_words).collect();
            Ok((Level::Serializable, statements.ok_or_else(strange)?))
        }
        _ => Err(strange()),
    }
}

/// Adds what a record says: its transaction, and a transaction for each statement of it that stands by itself.
fn add(transactions: &mut Vec<Transaction>, record: &Record, answered_at: u64) -> Result<(), Violation> {
    let (level, statements) = asked(record)?;
    // What a procedure returns is one value, and that is the answer.
    let answer = match (&record.operation, &record.outcome) {
        (Operation::Call { .. }, outcome) => outcome.first().map(Value::array),
        (_, Outcome::Done(answer)) => Some(answer.array()),
        _ => None,
    };
    let mut fate = match &record.outcome {
        Outcome::Done(_) => Fate::Committed,
        Outcome::Refused(_) => Fate::Aborted,
        Outcome::Unknown => Fate::Unknown,
    };
    let mut seen = match (fate, answer) {
        (Fate::Committed, Some(answer)) => answer,
        _ => &[],
    };
    if matches!(seen, [Value::Bool(false)]) {
        (fate, seen) = (Fate::Aborted, &[]);
    }
    if fate == Fate::Committed && seen.len() != statements.len() {
        return Err(Violation::wrong(format!("{} statements came to {:?}", statements.len(), record.outcome)));
    }
    let (mut own, mut written, mut has_touched) = (Vec::new(), BTreeSet::new(), false);
    for (at, statement) in statements.iter().enumerate() {
        let mut steps = Vec::new();
        add_steps(&mut steps, statement, seen.get(at).map(Value::array))?;
        let is_by_itself = match statement {
            _ if level != Level::Committed => false,
            Statement::Read(key, Lock::None) => !written.contains(key),
            Statement::Range(low, high) => written.range(low..=high).next().is_none(),
            _ => false,
        };
        match is_by_itself {
            true if fate == Fate::Committed => {
                let invoked_at = record.invoked_at;
                let mut push = |steps| transactions.push(Transaction { steps, fate, invoked_at, answered_at });
                match has_touched {
                    true => steps.into_iter().for_each(|step| push(vec![step])),
                    false => push(steps),
                }
            }
            true => {}
            false => own.extend(steps),
        }
        if let Statement::Append(key, _) | Statement::Extend(key, _) = statement {
            written.insert(*key);
        }
        let only_reads =
            matches!(statement, Statement::Read(_, Lock::None) | Statement::Range(..) | Statement::Wait(_));
        has_touched |= !only_reads;
    }
    transactions.push(Transaction { steps: own, fate, invoked_at: record.invoked_at, answered_at });
    Ok(())
}

fn numbers_in(text: &Value) -> Result<Vec<u64>, Violation> {
    let wrong = || Violation::wrong(format!("{text} was read, which nobody wrote"));
    match text {
        Value::Str(text) => numbers_of(text).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// The steps of a statement; `seen` is its answer, if there was one.
fn add_steps(steps: &mut Vec<Step>, statement: &Statement, seen: Option<&[Value]>) -> Result<(), Violation> {
    let list = |key: u64, seen: &[Value]| {
        let values = seen.first().map_or(Ok(Vec::new()), numbers_in)?;
        Ok::<Step, Violation>(Step::List { key, values, by_range: false })
    };
    let register = |key: u64, seen: &[Value]| {
        let value = seen.first().and_then(Value::uint).filter(|number| *number > 0);
        Step::Register { key, value, by_range: false }
    };
    match (*statement, seen) {
        // It may have been passed over.
        (Statement::Read(_, Lock::Skip) | Statement::Look(_, Lock::Skip), Some([])) => {}
        (Statement::Read(key, _), Some(seen)) => steps.push(list(key, seen)?),
        (Statement::Look(key, _), Some(seen)) => steps.push(register(key, seen)),
        (Statement::Range(low, high), Some(seen)) => {
            let mut found = BTreeMap::new();
            for pair in seen {
                let [Value::Uint(key), text] = pair.array() else {
                    return Err(Violation::wrong(format!("{pair} was read, which is no row")));
                };
                found.insert(*key, numbers_in(text)?);
            }
            for key in low..=high {
                steps.push(Step::List { key, values: found.remove(&key).unwrap_or_default(), by_range: true });
            }
            if let Some(key) = found.keys().next() {
                return Err(Violation::wrong(format!("rows from {low} to {high} were asked for, {key} came")));
            }
        }
        (Statement::Append(key, value), _) => steps.push(Step::Append { key, value }),
        (Statement::Extend(key, value), seen) => {
            steps.extend(seen.map(|seen| list(key, seen)).transpose()?);
            steps.push(Step::Append { key, value });
        }
        (Statement::Change(key, value), seen) => {
            steps.extend(seen.map(|seen| register(key, seen)));
            steps.push(Step::Write { key, value });
        }
        _ => {}
    }
    Ok(())
}

/// What is there now, as a transaction that reads all rows that anybody asked for.
fn last_look(transactions: &[Transaction], view: &mut View<'_>) -> Result<Transaction, Violation> {
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut registers: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for step in transactions.iter().flat_map(|one| &one.steps) {
        match step {
            Step::Append { key, .. } | Step::List { key, .. } => drop(lists.entry(*key).or_default()),
            Step::Write { key, .. } | Step::Register { key, .. } => drop(registers.entry(*key).or_default()),
        }
    }
    for row in rows(view, Operation::select_all(Space::Name(NOTES), 0))? {
        let [Value::Uint(key), text] = row.array() else {
            return Err(Violation::wrong(format!("{row} is there, which nobody asked for")));
        };
        lists.insert(*key, numbers_in(text)?);
    }
    for row in rows(view, Operation::select_all(Space::Name(CELLS), 0))? {
        let [Value::Uint(key), Value::Uint(number)] = row.array() else {
            return Err(Violation::wrong(format!("{row} is there, which nobody asked for")));
        };
        registers.insert(*key, Some(*number).filter(|number| *number > 0));
    }
    let lists = lists.into_iter().map(|(key, values)| Step::List { key, values, by_range: false });
    let registers = registers.into_iter().map(|(key, value)| Step::Register { key, value, by_range: false });
    let steps = lists.chain(registers).collect();
    Ok(Transaction { steps, fate: Fate::Committed, invoked_at: u64::MAX - 1, answered_at: u64::MAX })
}

impl Player {
    fn key(&mut self) -> u64 {
        self.base + self.dice.below(KEYS)
    }

    fn lock(&mut self) -> Lock {
        match self.dice.below(8) {
            0 if self.tongue.is_some() => Lock::NoWait,
            1 if self.tongue.is_some() => Lock::Skip,
            _ => Lock::Update,
        }
    }

    /// What transactions of all levels do in the same way.
    fn write(&mut self) -> Statement {
        let (key, value) = (self.key(), self.unique.next());
        match self.dice.below(12) {
            0..5 => Statement::Append(key, value),
            5..8 => Statement::Extend(key, value),
            8 => Statement::Undone(key, value),
            9 if self.tongue.is_some() => Statement::Fails(value),
            _ => Statement::Change(key, value),
        }
    }

    fn read(&mut self, level: Level) -> Statement {
        let key = self.key();
        let locks = level == Level::Committed || self.dice.one_in(4);
        match self.dice.below(5) {
            0 => Statement::Range(self.base, self.base + KEYS - 1),
            // Without a lock a register would have to stand by itself, too.
            1 => Statement::Look(key, if locks { self.lock() } else { Lock::None }),
            2 => Statement::Read(key, Lock::None),
            _ => Statement::Read(key, if locks { self.lock() } else { Lock::None }),
        }
    }

    fn transact(&mut self, level: Level) -> Vec<Statement> {
        let is_reader = self.dice.one_in(5);
        let mut statements = Vec::new();
        // Long ones keep their writes to themselves in another way than short ones.
        let count = if self.dice.one_in(20) { 20 } else { 1 + self.dice.below(STEPS) };
        let mut written = BTreeSet::new();
        for _ in 0..count {
            let statement = if is_reader || self.dice.one_in(2) { self.read(level) } else { self.write() };
            // What is read without a lock is of its own moment, but for what the transaction has written.
            let is_mixed = match statement {
                Statement::Range(..) => !written.is_empty(),
                Statement::Read(key, Lock::None) => written.contains(&key),
                _ => false,
            };
            if level == Level::Committed && is_mixed {
                continue;
            }
            if let Statement::Append(key, _) | Statement::Extend(key, _) = statement {
                written.insert(key);
            }
            statements.push(statement);
            if self.dice.one_in(6) {
                statements.push(Statement::Wait(self.dice.below(3)));
            }
        }
        if self.dice.one_in(15) {
            statements.push(Statement::Leave);
        }
        statements
    }
}

impl Client for Player {
    fn tongue(&self) -> Option<Tongue> {
        self.tongue
    }

    fn next(&mut self) -> Operation {
        if self.tongue.is_none() {
            let words = self.transact(Level::Serializable).into_iter().map(Statement::words).collect();
            return Operation::Call { name: TRANSACT, arguments: vec![Value::Array(words)] };
        }
        let (level, statements) = match self.dice.below(10) {
            0 => {
                let (key, value) = (self.key(), self.unique.next());
                let choice = self.dice.below(3);
                let one = match choice {
                    0 => Statement::Append(key, value),
                    1 => Statement::Read(key, Lock::None),
                    _ => Statement::Range(self.base, self.base + KEYS - 1),
                };
                (Level::Alone, vec![one])
            }
            1..5 => (Level::Committed, self.transact(Level::Committed)),
            5 | 6 => (Level::Repeatable, self.transact(Level::Repeatable)),
            _ => (Level::Serializable, self.transact(Level::Serializable)),
        };
        Operation::Door(Ask::Transact(level, statements))
    }

    fn answered(&mut self, outcome: &Outcome) {
        let Outcome::Done(answer) = outcome else { return };
        let mut open: Vec<&Value> = vec![answer];
        while let Some(value) = open.pop() {
            match value {
                Value::Str(text) if text.iter().filter(|byte| **byte == b',').count() >= FULL => {
                    self.base += KEYS;
                    return;
                }
                value => open.extend(value.array()),
            }
        }
    }
}
