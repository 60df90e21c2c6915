//! The inventory: units of goods are captured and given back; nothing is oversold, and what is there is explained by what was acknowledged.
//!
//! Clients number their operations, and the procedures keep the last number of each client with its answer in the same transaction. A client
//! that lost its connection asks again under the same number and is answered as before if the operation had happened.

use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, View, Workload, rows};
use std::collections::BTreeMap;

/// The stock: rows of id, sku, warehouse, units.
pub const STOCK: Space = Space::Id(3080);
/// The last operation of each client: its number and its answer.
pub const CLIENTS: Space = Space::Id(3081);
const SKUS: u64 = 8;
const WAREHOUSES: u64 = 3;
const UNITS_EACH: u64 = 10;
const UNITS_MAX: u64 = 4;
const FILL: &str = "trial_inventory_fill";
const CAPTURE: &str = "trial_capture";
const RELEASE: &str = "trial_release";

/// See the top of the file.
pub(crate) struct Inventory;

struct Buyer {
    id: u64,
    dice: Dice,
    /// Number of the operation that is asked for.
    number: u64,
    /// Asked, and not known to have happened or not.
    open: Option<Operation>,
    /// Units in hand, by sku and warehouse.
    held: Vec<(u64, u64, u64)>,
    /// Of `held`, what the open release gives back.
    returning: Option<usize>,
}

impl Workload for Inventory {
    fn name(&self) -> &'static str {
        "inventory"
    }

    fn about(&self) -> &'static str {
        "units are captured and released; nothing is oversold, done twice or forgotten"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let index = "box.space.trial_stock:create_index('sku', { parts = { { 2, 'unsigned' } }, unique = false })\n\
                     box.space.trial_stock:create_index('place', { parts = { { 2, 'unsigned' }, { 3, 'unsigned' } } })";
        let fill = "function(skus, warehouses, units)\n\
                        for sku = 1, skus do\n\
                            for warehouse = 1, warehouses do\n\
                                box.space.trial_stock:insert({ sku * 100 + warehouse, sku, warehouse, units })\n\
                            end\n\
                        end\n\
                        return true\n\
                    end";
        let capture = "function(client, number, sku, wanted)\n\
                           local clients, stock = box.space.trial_clients, box.space.trial_stock\n\
                           box.begin()\n\
                           local last = clients:get(client)\n\
                           local seen = last ~= nil and last[2] or 0\n\
                           if number == seen then box.commit() return last[3] end\n\
                           if number ~= seen + 1 then error(('number %d after %d'):format(number, seen)) end\n\
                           local answer, missing = {}, wanted\n\
                           for _, row in ipairs(stock.index.sku:select({ sku })) do\n\
                               local part = math.min(row[4], missing)\n\
                               if part > 0 then\n\
                                   stock:update(row[1], { { '-', 4, part } })\n\
                                   answer[#answer + 1] = { sku, row[3], part }\n\
                                   missing = missing - part\n\
                               end\n\
                           end\n\
                           if missing > 0 then\n\
                               box.rollback()\n\
                               return false\n\
                           end\n\
                           clients:replace({ client, number, answer })\n\
                           box.commit()\n\
                           return answer\n\
                       end";
        let release = "function(client, number, sku, warehouse, units)\n\
                           local clients, stock = box.space.trial_clients, box.space.trial_stock\n\
                           box.begin()\n\
                           local last = clients:get(client)\n\
                           local seen = last ~= nil and last[2] or 0\n\
                           if number == seen then box.commit() return last[3] end\n\
                           if number ~= seen + 1 then error(('number %d after %d'):format(number, seen)) end\n\
                           stock.index.place:update({ sku, warehouse }, { { '+', 4, units } })\n\
                           clients:replace({ client, number, true })\n\
                           box.commit()\n\
                           return true\n\
                       end";
        vec![
            Operation::create_space(engines, 3080, "trial_stock"),
            Operation::create_space(engines, 3081, "trial_clients"),
            Operation::eval(index),
            Operation::define(FILL, fill),
            Operation::define(CAPTURE, capture),
            Operation::define(RELEASE, release),
            Operation::call(FILL, &[SKUS, WAREHOUSES, UNITS_EACH]),
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let (id, dice) = (number as u64 + 1, Dice::new(seed, number));
        Box::new(Buyer { id, dice, number: 1, open: None, held: Vec::new(), returning: None })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let stock = rows(view, Operation::select_all(STOCK, 0))?;
        let clients = rows(view, Operation::select_all(CLIENTS, 0))?;
        check_stock(history, &stock, &clients)
    }
}

type Counts = BTreeMap<(u64, u64), i128>;

/// Books what an operation did according to its answer.
fn book(operation: &Operation, answer: &Value, counts: &mut Counts) -> Result<(), Violation> {
    match operation {
        Operation::Call { name: CAPTURE, arguments } => {
            let [_, _, sku, wanted] = &arguments[..] else { return Ok(()) };
            let mut taken = 0;
            for part in answer.array() {
                let [of_sku, Value::Uint(warehouse), Value::Uint(units)] = part.array() else {
                    return Err(Violation::wrong(format!("{operation:?} was answered by {answer}")));
                };
                if of_sku != sku {
                    return Err(Violation::wrong(format!("{operation:?} was answered by {answer}")));
                }
                *counts.entry((sku.uint().unwrap_or(0), *warehouse)).or_default() -= i128::from(*units);
                taken += units;
            }
            match Some(taken) == wanted.uint() {
                true => Ok(()),
                false => Err(Violation::wrong(format!("{operation:?} was answered by {answer}"))),
            }
        }
        Operation::Call { name: RELEASE, arguments } => {
            let [_, _, Value::Uint(sku), Value::Uint(warehouse), Value::Uint(units)] = arguments[..] else {
                return Ok(());
            };
            *counts.entry((sku, warehouse)).or_default() += i128::from(units);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What a client knows of its own operations.
#[derive(Default)]
struct Known<'a> {
    /// Number and answer of the last acknowledged one.
    last: Option<(u64, &'a Value)>,
    /// The last one without an answer.
    open: Option<(u64, &'a Operation)>,
}

fn identity(record: &Record) -> Option<(u64, u64)> {
    match &record.operation {
        Operation::Call { name: CAPTURE | RELEASE, arguments } => {
            Some((arguments.first()?.uint()?, arguments.get(1)?.uint()?))
        }
        _ => None,
    }
}

fn check_stock(history: &History, stock: &[Value], clients: &[Value]) -> Result<(), Violation> {
    let mut counts: Counts = BTreeMap::new();
    for sku in 1..=SKUS {
        counts.extend((1..=WAREHOUSES).map(|warehouse| ((sku, warehouse), i128::from(UNITS_EACH))));
    }
    let mut known: BTreeMap<u64, Known<'_>> = BTreeMap::new();
    for record in &history.records {
        let Some((client, number)) = identity(record) else { continue };
        let known = known.entry(client).or_default();
        match (&record.outcome, record.outcome.first()) {
            (Outcome::Unknown, _) => known.open = Some((number, &record.operation)),
            (Outcome::Done(_), Some(Value::Bool(false))) => {}
            (Outcome::Done(_), Some(answer)) => {
                if known.last.is_some_and(|(last, _)| number != last + 1) {
                    return Err(Violation::order(format!("client {client}: {number} was done out of turn")));
                }
                book(&record.operation, answer, &mut counts)?;
                known.last = Some((number, answer));
            }
            _ => {}
        }
    }
    let there: BTreeMap<u64, &Value> = clients.iter().map(|row| (row.uint_at(0).unwrap_or(0), row)).collect();
    for (client, known) in &known {
        let acknowledged = known.last.map_or(0, |(number, _)| number);
        let row = there.get(client);
        let kept = row.and_then(|row| row.uint_at(1)).unwrap_or(0);
        let answer = row.and_then(|row| row.array().get(2)).unwrap_or(&Value::Nil);
        match known.open {
            _ if kept < acknowledged => {
                let text = format!("client {client}: operation {acknowledged} was acknowledged, {kept} is kept");
                return Err(Violation::lost(text));
            }
            Some((open, operation)) if kept == acknowledged + 1 && open == kept => {
                book(operation, answer, &mut counts)?
            }
            _ if kept > acknowledged => {
                let text = format!("client {client}: operation {kept} is kept, asked was until {acknowledged}");
                return Err(Violation::wrong(text));
            }
            _ => {}
        }
        if let Some((number, acknowledged)) = known.last
            && number == kept
            && answer != acknowledged
        {
            let text = format!("client {client}: operation {number} was answered {acknowledged}, kept is {answer}");
            return Err(Violation::wrong(text));
        }
    }
    for row in stock {
        let (Some(sku), Some(warehouse), Some(units)) = (row.uint_at(1), row.uint_at(2), row.uint_at(3)) else {
            return Err(Violation::wrong(format!("{row} is no stock, or oversold")));
        };
        let wanted = counts.remove(&(sku, warehouse));
        if wanted != Some(i128::from(units)) {
            let text = format!("{units} units of {sku} in warehouse {warehouse}, the operations make {wanted:?}");
            return Err(Violation::wrong(text));
        }
    }
    match counts.first_key_value() {
        Some((place, _)) => Err(Violation::lost(format!("the stock of {place:?} is gone"))),
        None => Ok(()),
    }
}

impl Client for Buyer {
    fn next(&mut self) -> Operation {
        if let Some(open) = &self.open {
            return open.clone();
        }
        let operation = if self.held.is_empty() || self.dice.one_in(2) && self.held.len() < 20 {
            self.returning = None;
            let sku = self.dice.between(1, SKUS);
            Operation::call(CAPTURE, &[self.id, self.number, sku, self.dice.between(1, UNITS_MAX)])
        } else {
            let at = self.dice.below(self.held.len() as u64) as usize;
            self.returning = Some(at);
            let (sku, warehouse, units) = self.held[at];
            Operation::call(RELEASE, &[self.id, self.number, sku, warehouse, units])
        };
        self.open = Some(operation.clone());
        operation
    }

    fn answered(&mut self, outcome: &Outcome) {
        if outcome.is_unknown() {
            return;
        }
        self.open = None;
        let Some(answer) = outcome.first().filter(|answer| **answer != Value::Bool(false)) else { return };
        self.number += 1;
        match self.returning.take() {
            Some(at) => drop(self.held.swap_remove(at)),
            None => {
                let part = |part: &Value| Some((part.uint_at(0)?, part.uint_at(1)?, part.uint_at(2)?));
                self.held.extend(answer.array().iter().filter_map(part));
            }
        }
    }
}
