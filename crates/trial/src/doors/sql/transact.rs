//! Transactions of several statements, with the answer of one awaited before the next is sent.

use super::super::speaker::{Answer, Failure, Speaker};
use super::super::{Door, Level, Lock, Statement};
use super::end;
use super::wire::{Row, run};
use crate::value::Value;
use std::io::{Read, Write};

/// Performs the statements as one transaction of a level.
pub(super) fn perform<S: Read + Write>(speaker: &mut Speaker<S>, level: Level, statements: &[Statement]) -> Answer {
    if level == Level::Committed {
        // What is not there cannot be locked.
        ensure(speaker, statements)?;
    }
    if level == Level::Alone {
        return statements.iter().map(|statement| one(speaker, level, statement).map(Value::Array)).collect();
    }
    begin(speaker, level)?;
    let mut answers = Vec::with_capacity(statements.len());
    for statement in statements {
        if *statement == Statement::Leave {
            run(speaker, "ROLLBACK")?;
            return Ok(vec![Value::Bool(false)]);
        }
        match one(speaker, level, statement) {
            Ok(answer) => answers.push(Value::Array(answer)),
            Err(failure) => return end(speaker, Err(failure)),
        }
    }
    end(speaker, Ok(answers))
}

fn begin<S: Read + Write>(speaker: &mut Speaker<S>, level: Level) -> Result<(), Failure> {
    let name = match level {
        Level::Alone | Level::Committed => "READ COMMITTED",
        Level::Repeatable => "REPEATABLE READ",
        Level::Serializable => "SERIALIZABLE",
    };
    match speaker.tongue.door {
        Door::Postgres => run(speaker, &format!("BEGIN ISOLATION LEVEL {name}"))?,
        _ => {
            run(speaker, &format!("SET TRANSACTION ISOLATION LEVEL {name}"))?;
            run(speaker, "START TRANSACTION")?
        }
    };
    Ok(())
}

/// Makes the rows that are locked or written.
fn ensure<S: Read + Write>(speaker: &mut Speaker<S>, statements: &[Statement]) -> Result<(), Failure> {
    let (mut notes, mut cells) = (Vec::new(), Vec::new());
    for statement in statements {
        match statement {
            Statement::Read(key, _) | Statement::Append(key, _) | Statement::Extend(key, _) => notes.push(*key),
            Statement::Look(key, _) | Statement::Change(key, _) => cells.push(*key),
            _ => {}
        }
    }
    let is_postgres = speaker.tongue.door == Door::Postgres;
    for (table, field, empty, keys) in [("trial_notes", "body", "''", notes), ("trial_cells", "number", "0", cells)] {
        if keys.is_empty() {
            continue;
        }
        let list: Vec<String> = keys.iter().map(u64::to_string).collect();
        let given = run(speaker, &format!("SELECT id FROM {table} WHERE id IN ({})", list.join(", ")))?;
        let there: Vec<Option<u64>> = given.rows.iter().map(|row| number_at(row, 0)).collect();
        for key in keys.iter().filter(|key| !there.contains(&Some(**key))) {
            let (ignore, otherwise) = if is_postgres { ("", " ON CONFLICT DO NOTHING") } else { ("IGNORE ", "") };
            run(speaker, &format!("INSERT {ignore}INTO {table} (id, {field}) VALUES ({key}, {empty}){otherwise}"))?;
        }
    }
    Ok(())
}

fn number_at(row: &Row, at: usize) -> Option<u64> {
    std::str::from_utf8(row.get(at)?).ok()?.parse().ok()
}

/// A value of a row: numbers as numbers.
fn value_at(row: &Row, at: usize) -> Value {
    number_at(row, at).map_or_else(|| Value::text(row.get(at).map_or(&[][..], Vec::as_slice)), Value::Uint)
}

/// What is behind a statement that reads.
fn locking(lock: Lock) -> &'static str {
    match lock {
        Lock::None => "",
        Lock::Update => " FOR UPDATE",
        Lock::NoWait => " FOR UPDATE NOWAIT",
        Lock::Skip => " FOR UPDATE SKIP LOCKED",
    }
}

/// The lock of a statement that reads what it is about to write.
fn lock_before_write(level: Level) -> Lock {
    if level == Level::Committed { Lock::Update } else { Lock::None }
}

fn one<S: Read + Write>(speaker: &mut Speaker<S>, level: Level, statement: &Statement) -> Answer {
    let is_postgres = speaker.tongue.door == Door::Postgres;
    let numbers = |row: Option<&Row>, count: usize| {
        row.map_or_else(Vec::new, |row| (0..count).map(|at| value_at(row, at)).collect::<Vec<_>>())
    };
    match *statement {
        Statement::Read(key, lock) => {
            Ok(text(speaker, key, lock)?.map_or_else(Vec::new, |text| vec![Value::text(&text)]))
        }
        Statement::Range(low, high) => {
            let sql = format!("SELECT id, body FROM trial_notes WHERE id BETWEEN {low} AND {high} ORDER BY id");
            let pair = |row: &Row| {
                Value::Array(vec![value_at(row, 0), Value::text(row.get(1).map_or(&[][..], Vec::as_slice))])
            };
            Ok(run(speaker, &sql)?.rows.iter().map(pair).collect())
        }
        Statement::Append(key, value) => {
            // Half of them by one statement that changes what is there, if something is.
            if value % 2 == 0 {
                let longer =
                    if is_postgres { format!("body || '{value},'") } else { format!("CONCAT(body, '{value},')") };
                let given = run(speaker, &format!("UPDATE trial_notes SET body = {longer} WHERE id = {key}"))?;
                if given.changed == 1 {
                    return Ok(Vec::new());
                }
            }
            let otherwise = match is_postgres {
                true => "ON CONFLICT (id) DO UPDATE SET body = trial_notes.body || excluded.body",
                false => "ON DUPLICATE KEY UPDATE body = CONCAT(body, VALUES(body))",
            };
            run(speaker, &format!("INSERT INTO trial_notes (id, body) VALUES ({key}, '{value},') {otherwise}"))?;
            Ok(Vec::new())
        }
        Statement::Extend(key, value) => {
            let before = text(speaker, key, lock_before_write(level))?;
            let longer = format!("{}{value},", String::from_utf8_lossy(before.as_deref().unwrap_or_default()));
            let sql = match before {
                Some(_) => format!("UPDATE trial_notes SET body = '{longer}' WHERE id = {key}"),
                None => format!("INSERT INTO trial_notes (id, body) VALUES ({key}, '{longer}')"),
            };
            let given = run(speaker, &sql)?;
            if given.changed != 1 {
                return Err(Failure::Refused(format!("{sql} changed {} rows", given.changed)));
            }
            Ok(before.map_or_else(Vec::new, |text| vec![Value::text(&text)]))
        }
        Statement::Look(key, lock) => {
            let sql = format!("SELECT number FROM trial_cells WHERE id = {key}{}", locking(lock));
            Ok(numbers(run(speaker, &sql)?.rows.first(), 1))
        }
        Statement::Change(key, value) => {
            let lock = locking(lock_before_write(level));
            let given = run(speaker, &format!("SELECT number FROM trial_cells WHERE id = {key}{lock}"))?;
            let otherwise = match is_postgres {
                true => "ON CONFLICT (id) DO UPDATE SET number = excluded.number",
                false => "ON DUPLICATE KEY UPDATE number = VALUES(number)",
            };
            run(speaker, &format!("INSERT INTO trial_cells (id, number) VALUES ({key}, {value}) {otherwise}"))?;
            Ok(numbers(given.rows.first(), 1))
        }
        Statement::Undone(key, value) => {
            run(speaker, "SAVEPOINT before")?;
            one(speaker, level, &Statement::Append(key, value))?;
            run(speaker, "ROLLBACK TO SAVEPOINT before")?;
            Ok(Vec::new())
        }
        Statement::Fails(value) => {
            run(speaker, "SAVEPOINT before")?;
            let sql = format!("INSERT INTO trial_cells (id, number) VALUES ({value}, {value}), ({value}, {value})");
            match run(speaker, &sql) {
                Ok(_) => return Err(Failure::Refused(format!("{sql} was done"))),
                Err(Failure::Broken) => return Err(Failure::Broken),
                Err(Failure::Refused(_)) => {}
            }
            run(speaker, "ROLLBACK TO SAVEPOINT before")?;
            Ok(Vec::new())
        }
        Statement::Wait(ms) => {
            let sleep = if is_postgres { "pg_sleep" } else { "SLEEP" };
            run(speaker, &format!("SELECT {sleep}({:.3})", ms as f64 / 1000.0))?;
            Ok(Vec::new())
        }
        Statement::Leave => Ok(Vec::new()),
        Statement::Found(parent, generation) => {
            let values = format!("({parent}, {generation}, 0)");
            run(speaker, &format!("INSERT INTO trial_parents (id, generation, members) VALUES {values}"))?;
            Ok(Vec::new())
        }
        Statement::Adopt(parent, child, lock) => {
            let sql = format!("SELECT generation FROM trial_parents WHERE id = {parent}{}", locking(lock));
            let given = run(speaker, &sql)?;
            let Some(generation) = given.rows.first().and_then(|row| number_at(row, 0)) else { return Ok(Vec::new()) };
            let values = format!("({child}, {parent}, {generation})");
            run(speaker, &format!("INSERT INTO trial_children (id, parent, generation) VALUES {values}"))?;
            let sql = format!("UPDATE trial_parents SET members = members + 1 WHERE id = {parent}");
            match run(speaker, &sql)?.changed {
                1 => Ok(vec![generation.into()]),
                // It has left meanwhile: its children with it.
                _ => Err(Failure::Refused(format!("parent {parent} is not there any more"))),
            }
        }
        Statement::Family(parent) => {
            let sql = format!(
                "SELECT p.generation, p.members, count(c.id) FROM trial_parents AS p LEFT JOIN trial_children AS c ON c.parent = p.id \
                 WHERE p.id = {parent} GROUP BY p.generation, p.members"
            );
            Ok(numbers(run(speaker, &sql)?.rows.first(), 3))
        }
        Statement::Census(parent) => {
            let sql = format!("SELECT generation, members FROM trial_parents WHERE id = {parent}");
            let mut row = numbers(run(speaker, &sql)?.rows.first(), 2);
            let given = run(speaker, &format!("SELECT count(*) FROM trial_children WHERE parent = {parent}"))?;
            if !row.is_empty() {
                row.extend(numbers(given.rows.first(), 1));
            }
            Ok(row)
        }
        Statement::Dissolve(parent) => {
            let sql = format!(
                "SELECT generation FROM trial_parents WHERE id = {parent}{}",
                locking(lock_before_write(level))
            );
            let seen = numbers(run(speaker, &sql)?.rows.first(), 1);
            let given = run(speaker, &format!("DELETE FROM trial_parents WHERE id = {parent}"))?;
            if given.changed != seen.len() as u64 {
                return Err(Failure::Refused(format!(
                    "{} of {} parents {parent} have left",
                    given.changed,
                    seen.len()
                )));
            }
            Ok(seen)
        }
    }
}

/// The text of a list.
fn text<S: Read + Write>(speaker: &mut Speaker<S>, key: u64, lock: Lock) -> Result<Option<Vec<u8>>, Failure> {
    let given = run(speaker, &format!("SELECT body FROM trial_notes WHERE id = {key}{}", locking(lock)))?;
    Ok(given.rows.into_iter().next().and_then(|row| row.into_iter().next()))
}
