//! Money moves and is neither made nor lost.
//!
//! Accounts are rows, and a Lua procedure moves money between two of them and writes the transfer into a journal, in one transaction. Purses are the
//! fields of one row, and a plain update moves money between two of them. At every read, and after every crash, the sums are what they were.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::journal::Journal;
use crate::operation::{Operation, Order, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};
use std::collections::BTreeMap;

const ACCOUNTS: Space = Space::Id(3010);
const TRANSFERS: Space = Space::Id(3011);
const PURSES: Space = Space::Id(3012);
const ACCOUNT_COUNT: u64 = 12;
const PURSE_ROWS: u64 = 3;
const PURSES_IN_ROW: u64 = 5;
const MONEY_EACH: u64 = 100;
const TRANSFER: &str = "trial_transfer";
const SUM: &str = "trial_sum";
/// So many of the newest transfers are read at a time.
const NEWEST: u32 = 5;

/// See the top of the file.
pub(crate) struct Bank;

struct Player {
    number: usize,
    dice: Dice,
    unique: Unique,
}

impl Workload for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    fn about(&self) -> &'static str {
        "transfers by a procedure and by plain updates; the sum is constant at every read"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        // What the account lacks is found out only after the first update, so that there is something to take back.
        let transfer = "function(id, from, to, amount)\n\
                            box.begin()\n\
                            local accounts = box.space.trial_accounts\n\
                            accounts:update(to, { { '+', 2, amount } })\n\
                            if accounts:get(from)[2] < amount then\n\
                                box.rollback()\n\
                                return false\n\
                            end\n\
                            accounts:update(from, { { '-', 2, amount } })\n\
                            box.space.trial_transfers:insert({ id, from, to, amount })\n\
                            box.commit()\n\
                            return true\n\
                        end";
        let sum = "function()\n\
                       local sum = 0\n\
                       box.begin()\n\
                       for _, row in box.space.trial_accounts:pairs() do sum = sum + row[2] end\n\
                       box.commit()\n\
                       return sum\n\
                   end";
        let fill = "local accounts, money, rows, purses = ...\n\
                    for id = 1, accounts do box.space.trial_accounts:insert({ id, money }) end\n\
                    for id = 1, rows do\n\
                        local row = { id }\n\
                        for purse = 1, purses do row[purse + 1] = money end\n\
                        box.space.trial_purses:insert(row)\n\
                    end";
        let arguments = [ACCOUNT_COUNT, MONEY_EACH, PURSE_ROWS, PURSES_IN_ROW].map(Value::Uint).to_vec();
        vec![
            Operation::create_space(engines, 3010, "trial_accounts"),
            Operation::create_space(engines, 3011, "trial_transfers"),
            Operation::create_space(engines, 3012, "trial_purses"),
            Operation::define(TRANSFER, transfer),
            Operation::define(SUM, sum),
            Operation::Eval { source: fill, arguments },
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { number, dice: Dice::new(seed, number), unique: Unique::new(number) })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let mut journal = Journal::default();
        for record in &history.records {
            match (&record.operation, &record.outcome) {
                (Operation::Call { name: TRANSFER, arguments }, _) => {
                    let has_declined = record.outcome.first() == Some(&Value::Bool(false));
                    let id = arguments.first().and_then(Value::uint).unwrap_or(0);
                    journal.ask(id, Value::Array(arguments.clone()), record, has_declined);
                }
                (Operation::Call { name: SUM, .. }, Outcome::Done(data)) => check_sum(data.uint_at(0))?,
                (Operation::Select { space: ACCOUNTS, .. }, Outcome::Done(data)) => {
                    check_sum(data.array().iter().map(|row| row.uint_at(1)).sum())?;
                }
                (Operation::Select { space: TRANSFERS, .. }, Outcome::Done(data)) => journal.see(data.array()),
                (Operation::Select { space: PURSES, .. } | Operation::Update { .. }, Outcome::Done(data)) => {
                    data.array().iter().try_for_each(check_purses)?;
                }
                _ => {}
            }
        }
        let transfers = rows(view, Operation::select_all(TRANSFERS, 0))?;
        journal.check("transfers", &transfers)?;
        check_balances(&rows(view, Operation::select_all(ACCOUNTS, 0))?, &transfers)?;
        let purses = rows(view, Operation::select_all(PURSES, 0))?;
        if purses.len() as u64 != PURSE_ROWS {
            return Err(Violation::lost(format!("{} rows of purses of {PURSE_ROWS}", purses.len())));
        }
        purses.iter().try_for_each(check_purses)
    }
}

fn check_sum(sum: Option<u64>) -> Result<(), Violation> {
    let wanted = ACCOUNT_COUNT * MONEY_EACH;
    match sum {
        Some(sum) if sum == wanted => Ok(()),
        _ => Err(Violation::order(format!("all accounts together show {sum:?} instead of {wanted}"))),
    }
}

fn check_purses(row: &Value) -> Result<(), Violation> {
    let is_money = |value: &Value| match value {
        Value::Uint(money) => Some(*money as i128),
        Value::Int(debt) => Some(i128::from(*debt)),
        _ => None,
    };
    let sum: Option<i128> = row.array().iter().skip(1).map(is_money).sum();
    match sum {
        Some(sum) if sum == i128::from(PURSES_IN_ROW * MONEY_EACH) => Ok(()),
        _ => Err(Violation::order(format!("the purses of {row} have another sum than at the beginning"))),
    }
}

/// Every balance is what the transfers of the journal make it.
fn check_balances(accounts: &[Value], transfers: &[Value]) -> Result<(), Violation> {
    let mut expected: BTreeMap<u64, i128> = (1..=ACCOUNT_COUNT).map(|id| (id, i128::from(MONEY_EACH))).collect();
    for transfer in transfers {
        let [_, from, to, amount] = transfer.array() else { continue };
        let amount = i128::from(amount.uint().unwrap_or(0));
        *expected.entry(from.uint().unwrap_or(0)).or_default() -= amount;
        *expected.entry(to.uint().unwrap_or(0)).or_default() += amount;
    }
    for row in accounts {
        let (Some(id), Some(balance)) = (row.uint_at(0), row.uint_at(1)) else {
            return Err(Violation::wrong(format!("{row} is no account that holds money")));
        };
        let wanted = expected.remove(&id);
        if wanted != Some(i128::from(balance)) {
            return Err(Violation::wrong(format!("account {id} has {balance}, its transfers make {wanted:?}")));
        }
    }
    match expected.first_key_value() {
        Some((id, _)) => Err(Violation::lost(format!("account {id} is gone"))),
        None => Ok(()),
    }
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        match self.dice.below(10) {
            0..=3 => {
                let from = self.dice.between(1, ACCOUNT_COUNT);
                let to = (from + self.dice.below(ACCOUNT_COUNT - 1)) % ACCOUNT_COUNT + 1;
                let amount = self.dice.between(1, MONEY_EACH);
                Operation::call(TRANSFER, &[self.unique.next(), from, to, amount])
            }
            4 => Operation::call(SUM, &[]),
            5 => Operation::select_all(ACCOUNTS, 0),
            6 => {
                // The newest transfers of the client before this one, and of others.
                let key = vec![Value::Uint(((self.number as u64 + 1) << 32) - 1)];
                Operation::Select { space: TRANSFERS, index: 0, order: Order::LessOrEqual, key, limit: NEWEST }
            }
            7 => Operation::get(PURSES, self.dice.between(1, PURSE_ROWS)),
            _ => {
                let from = self.dice.between(1, PURSES_IN_ROW);
                let to = from % PURSES_IN_ROW + 1;
                let amount = self.dice.between(1, 9);
                let change = |sign: &str, purse: u64| Value::Array(vec![sign.into(), purse.into(), amount.into()]);
                let key = vec![self.dice.between(1, PURSE_ROWS).into()];
                Operation::Update { space: PURSES, index: 0, key, changes: vec![change("-", from), change("+", to)] }
            }
        }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(changes: &[(u64, i64)]) -> Vec<Value> {
        let change = |id| changes.iter().filter(|(other, _)| *other == id).map(|(_, change)| *change).sum::<i64>();
        (1..=ACCOUNT_COUNT).map(|id| Value::numbers(&[id, (MONEY_EACH as i64 + change(id)) as u64])).collect()
    }

    #[test]
    fn money_that_appears_or_vanishes_is_seen() {
        let transfers = [Value::numbers(&[1, 1, 2, 30])];
        assert!(check_balances(&accounts(&[(1, -30), (2, 30)]), &transfers).is_ok());
        assert!(check_balances(&accounts(&[(2, 30)]), &transfers).is_err(), "half of a transfer");
        assert!(check_balances(&accounts(&[]), &transfers).is_err(), "a transfer that only the journal has");
        assert!(check_balances(&accounts(&[])[1..], &[]).is_err(), "an account that is gone");
        assert!(check_sum(Some(ACCOUNT_COUNT * MONEY_EACH)).is_ok());
        assert!(check_sum(Some(ACCOUNT_COUNT * MONEY_EACH - 1)).is_err());
        assert!(check_purses(&Value::numbers(&[1, 90, 110, 100, 100, 100])).is_ok());
        assert!(check_purses(&Value::numbers(&[1, 90, 100, 100, 100, 100])).is_err());
    }
}
