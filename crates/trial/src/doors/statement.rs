//! Transactions that go statement by statement: what the doors of SQL say one by one, and a procedure of Lua step by step.

use crate::value::Value;

/// The isolation level of a transaction of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// No transaction around it: a statement alone.
    Alone,
    /// READ COMMITTED: each statement sees what is committed, and what is to stay as it was read is locked.
    Committed,
    /// REPEATABLE READ, which is serializable here.
    Repeatable,
    /// SERIALIZABLE.
    Serializable,
}

/// What a statement that reads does with the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Only reads it.
    None,
    /// `FOR UPDATE`.
    Update,
    /// `FOR UPDATE NOWAIT`: refused if somebody else has it.
    NoWait,
    /// `FOR UPDATE SKIP LOCKED`: passed over if somebody else has it.
    Skip,
}

/// One step of a transaction, with the number of a row first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// The text of a list, if it is there.
    Read(u64, Lock),
    /// All lists from one number to another one, as pairs of number and text.
    Range(u64, u64),
    /// Puts a number at the end of a list, by a statement that looks at nothing else.
    Append(u64, u64),
    /// Reads a list and writes it back with a number more: the text that was there.
    Extend(u64, u64),
    /// The number in a register, if it is there.
    Look(u64, Lock),
    /// Reads a register and puts a number there: the number that was there.
    Change(u64, u64),
    /// Puts a number at the end of a list and takes it back by a savepoint.
    Undone(u64, u64),
    /// Puts in two rows of one key, which fails, and goes back to a savepoint.
    Fails(u64),
    /// Waits for so many milliseconds.
    Wait(u64),
    /// Rolls the transaction back, which is its end.
    Leave,
    /// Puts in a parent of a generation.
    Found(u64, u64),
    /// Reads the generation of a parent, puts in a child of both, and counts it at the parent: that generation.
    Adopt(u64, u64, Lock),
    /// What a parent says of itself, and how many children it has: generation, count, and the children counted.
    Family(u64),
    /// The same by two statements.
    Census(u64),
    /// Removes a parent, and its children with it: generation, if it was there.
    Dissolve(u64),
}

/// The locks in the order of their numbers.
const LOCKS: [Lock; 4] = [Lock::None, Lock::Update, Lock::NoWait, Lock::Skip];

impl Statement {
    /// As an array for a procedure: a word, and numbers.
    pub(crate) fn words(self) -> Value {
        let (word, numbers) = match self {
            Statement::Read(key, lock) => ("read", vec![key, lock as u64]),
            Statement::Range(low, high) => ("range", vec![low, high]),
            Statement::Append(key, value) => ("append", vec![key, value]),
            Statement::Extend(key, value) => ("extend", vec![key, value]),
            Statement::Look(key, lock) => ("look", vec![key, lock as u64]),
            Statement::Change(key, value) => ("change", vec![key, value]),
            Statement::Undone(key, value) => ("undone", vec![key, value]),
            Statement::Fails(value) => ("fails", vec![value]),
            Statement::Wait(ms) => ("wait", vec![ms]),
            Statement::Leave => ("leave", vec![]),
            Statement::Found(parent, generation) => ("found", vec![parent, generation]),
            Statement::Adopt(parent, child, lock) => ("adopt", vec![parent, child, lock as u64]),
            Statement::Family(parent) => ("family", vec![parent]),
            Statement::Census(parent) => ("census", vec![parent]),
            Statement::Dissolve(parent) => ("dissolve", vec![parent]),
        };
        let mut words = vec![Value::from(word)];
        words.extend(numbers.into_iter().map(Value::Uint));
        Value::Array(words)
    }

    /// The one of these words.
    pub(crate) fn of_words(words: &Value) -> Option<Self> {
        let [Value::Str(word), numbers @ ..] = words.array() else { return None };
        let number = |at: usize| numbers.get(at).and_then(Value::uint);
        let lock = |at: usize| number(at).and_then(|lock| LOCKS.get(lock as usize)).copied();
        Some(match word.as_slice() {
            b"read" => Statement::Read(number(0)?, lock(1)?),
            b"range" => Statement::Range(number(0)?, number(1)?),
            b"append" => Statement::Append(number(0)?, number(1)?),
            b"extend" => Statement::Extend(number(0)?, number(1)?),
            b"look" => Statement::Look(number(0)?, lock(1)?),
            b"change" => Statement::Change(number(0)?, number(1)?),
            b"undone" => Statement::Undone(number(0)?, number(1)?),
            b"fails" => Statement::Fails(number(0)?),
            b"wait" => Statement::Wait(number(0)?),
            b"leave" => Statement::Leave,
            b"found" => Statement::Found(number(0)?, number(1)?),
            b"adopt" => Statement::Adopt(number(0)?, number(1)?, lock(2)?),
            b"family" => Statement::Family(number(0)?),
            b"census" => Statement::Census(number(0)?),
            b"dissolve" => Statement::Dissolve(number(0)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_come_back_from_their_words() {
        let all = [
            Statement::Read(1, Lock::Skip),
            Statement::Range(1, 2),
            Statement::Append(1, 2),
            Statement::Extend(1, 2),
            Statement::Look(1, Lock::Update),
            Statement::Change(1, 2),
            Statement::Undone(1, 2),
            Statement::Fails(1),
            Statement::Wait(1),
            Statement::Leave,
            Statement::Found(1, 2),
            Statement::Adopt(1, 2, Lock::NoWait),
            Statement::Family(1),
            Statement::Census(1),
            Statement::Dissolve(1),
        ];
        for statement in all {
            assert_eq!(Statement::of_words(&statement.words()), Some(statement));
        }
        assert_eq!(Statement::of_words(&Value::Array(vec!["read".into(), 1u64.into(), 9u64.into()])), None);
    }
}
