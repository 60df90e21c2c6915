//! Parents with children that name them by a foreign key, and a count of them at the parent: no child without its parent, no count that is not so, through
//! SQL and procedures, in transactions that wait.
//!
//! A parent that has left comes back under its number with another generation, and children name both: those of an older generation have left with it. Who
//! adopts reads the generation with or without a lock, so that parents leave in between.

use super::drop_spaces;
use crate::doors::{Ask, Doors, Level, Lock, Statement, Tongue};
use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};
use std::collections::BTreeMap;
use tuple::SpaceId;

const PARENTS: &str = "trial_parents";
const CHILDREN: &str = "trial_children";
/// Stand for the spaces where engines are mixed.
const PARENTS_ID: SpaceId = SpaceId(3123);
const CHILDREN_ID: SpaceId = SpaceId(3124);
const TRANSACT: &str = "trial_families";
const COUNT: u64 = 4;

/// See the top of the file.
pub(crate) struct Families(pub(super) Doors);

struct Player {
    dice: Dice,
    unique: Unique,
    /// None: the binary protocol.
    tongue: Option<Tongue>,
}

impl Workload for Families {
    fn name(&self) -> &'static str {
        "families"
    }

    fn about(&self) -> &'static str {
        "parents and children by a foreign key, with counts: no child without its parent, no transaction by halves"
    }

    fn clients_min(&self) -> usize {
        (self.0.all().len() + 1) * 2
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let tables = "local function run(text)\n\
                local _, problem = box.execute(text)\n\
                if problem ~= nil then error(problem) end\n\
            end\n\
            local parents, children = ...\n\
            run(([[CREATE TABLE \"trial_parents\" (\"id\" INTEGER PRIMARY KEY, \"generation\" INTEGER NOT NULL,\n\
                \"members\" INTEGER NOT NULL, UNIQUE (\"id\", \"generation\")) WITH (engine = '%s')]]):format(parents))\n\
            run(([[CREATE TABLE \"trial_children\" (\"id\" INTEGER PRIMARY KEY, \"parent\" INTEGER NOT NULL,\n\
                \"generation\" INTEGER NOT NULL, FOREIGN KEY (\"parent\", \"generation\")\n\
                REFERENCES \"trial_parents\" (\"id\", \"generation\") ON DELETE CASCADE) WITH (engine = '%s')]]):format(children))\n\
            run('CREATE INDEX \"by_parent\" ON \"trial_children\" (\"parent\", \"generation\")')";
        let transact = "function(steps)\n\
            local fiber = require('fiber')\n\
            local parents, children = box.space.trial_parents, box.space.trial_children\n\
            local function counted(parent, generation)\n\
                return children.index.by_parent:count({ parent, generation })\n\
            end\n\
            local answers = {}\n\
            local function run()\n\
                for number, step in ipairs(steps) do\n\
                    local what, parent, other = step[1], step[2], step[3]\n\
                    local seen = {}\n\
                    if what == 'found' then\n\
                        parents:insert({ parent, other, 0 })\n\
                    elseif what == 'adopt' then\n\
                        local row = parents:get(parent, step[4] > 0 and { for_update = true } or nil)\n\
                        if row ~= nil then\n\
                            fiber.yield()\n\
                            children:insert({ other, parent, row[2] })\n\
                            fiber.yield()\n\
                            if parents:update(parent, { { '+', 3, 1 } }) == nil then error('the parent has left') end\n\
                            seen = { row[2] }\n\
                        end\n\
                    elseif what == 'family' or what == 'census' then\n\
                        local row = parents:get(parent)\n\
                        if row ~= nil then\n\
                            fiber.yield()\n\
                            seen = { row[2], row[3], counted(parent, row[2]) }\n\
                        end\n\
                    elseif what == 'dissolve' then\n\
                        local row = parents:get(parent)\n\
                        if row ~= nil then\n\
                            fiber.yield()\n\
                            parents:delete(parent)\n\
                            seen = { row[2] }\n\
                        end\n\
                    elseif what == 'wait' then\n\
                        fiber.sleep(parent / 1000)\n\
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
        let arguments = vec![engines.of(PARENTS_ID).into(), engines.of(CHILDREN_ID).into()];
        vec![
            drop_spaces(&[CHILDREN, PARENTS]),
            Operation::Eval { source: tables, arguments },
            Operation::define(TRANSACT, transact),
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let tongue = super::tongue_or_binary(&self.0, number);
        Box::new(Player { dice: Dice::new(seed, number), unique: Unique::new(number), tongue })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let known = Known::of(history)?;
        known.check(&there(view)?)
    }
}

/// What became of something that was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Unknown,
    Refused,
}

/// What a history says.
#[derive(Default)]
struct Known {
    /// Generations, with the number of the parent.
    founded: BTreeMap<u64, (u64, Fate)>,
    /// Children, with the number of the parent and, if it was told, the generation.
    adopted: BTreeMap<u64, (u64, Option<u64>, Fate)>,
    /// Generations that were removed, as answers have it.
    dissolved: BTreeMap<u64, u64>,
    /// Removals of a parent without an answer.
    maybe_dissolved: BTreeMap<u64, u64>,
    /// The greatest count of each generation that an answer has shown.
    seen: BTreeMap<u64, (u64, u64)>,
}

/// What there is.
#[derive(Default)]
struct There {
    /// Generation and count of each parent.
    parents: BTreeMap<u64, (u64, u64)>,
    /// Parent and generation of each child.
    children: BTreeMap<u64, (u64, u64)>,
}

fn there(view: &mut View<'_>) -> Result<There, Violation> {
    let mut there = There::default();
    for (space, rows_of) in [(PARENTS, &mut there.parents), (CHILDREN, &mut there.children)] {
        for row in rows(view, Operation::select_all(Space::Name(space), 0))? {
            match row.array() {
                [Value::Uint(id), Value::Uint(first), Value::Uint(second)] => rows_of.insert(*id, (*first, *second)),
                _ => return Err(Violation::wrong(format!("{row} is there, which nobody asked for"))),
            };
        }
    }
    Ok(there)
}

impl Known {
    fn of(history: &History) -> Result<Self, Violation> {
        let mut known = Known::default();
        for record in &history.records {
            known.add(record)?;
        }
        Ok(known)
    }

    fn add(&mut self, record: &Record) -> Result<(), Violation> {
        let strange = || Violation::wrong(format!("{:?} is not of this workload", record.operation));
        let (level, statements, answer) = match &record.operation {
            Operation::Door(Ask::Transact(level, statements)) => (
                *level,
                statements.clone(),
                match &record.outcome {
                    Outcome::Done(answer) => Some(answer.array()),
                    _ => None,
                },
            ),
            Operation::Call { arguments, .. } => {
                let words = arguments.first().map_or(&[][..], Value::array);
                let statements: Option<Vec<Statement>> = words.iter().map(Statement::of_words).collect();
                (Level::Serializable, statements.ok_or_else(strange)?, record.outcome.first().map(Value::array))
            }
            _ => return Err(strange()),
        };
        let (fate, answers) = match (&record.outcome, answer) {
            (Outcome::Done(_), Some([Value::Bool(false)])) => (Fate::Refused, &[][..]),
            (Outcome::Done(_), Some(answers)) if answers.len() == statements.len() => (Fate::Done, answers),
            (Outcome::Done(answer), _) => {
                return Err(Violation::wrong(format!("{} statements came to {answer}", statements.len())));
            }
            (Outcome::Unknown, _) => (Fate::Unknown, &[][..]),
            (Outcome::Refused(_), _) => (Fate::Refused, &[][..]),
        };
        // A statement of READ COMMITTED behind a write may see several moments.
        let mut sees_one = true;
        for (at, statement) in statements.iter().enumerate() {
            let seen = answers.get(at).map(Value::array);
            let number = |at: usize| seen.and_then(|seen| seen.get(at)).and_then(Value::uint);
            match *statement {
                Statement::Found(parent, generation) => {
                    self.founded.insert(generation, (parent, fate));
                }
                Statement::Adopt(parent, child, _) => {
                    // There was no parent: nothing was done.
                    let fate = if fate == Fate::Done && number(0).is_none() { Fate::Refused } else { fate };
                    self.adopted.insert(child, (parent, number(0), fate));
                }
                Statement::Dissolve(parent) => match (fate, number(0)) {
                    (Fate::Done, Some(generation)) => {
                        if self.dissolved.insert(generation, parent).is_some() {
                            return Err(Violation::order(format!(
                                "generation {generation} of parent {parent} has left twice"
                            )));
                        }
                    }
                    (Fate::Unknown, _) => *self.maybe_dissolved.entry(parent).or_default() += 1,
                    _ => {}
                },
                Statement::Family(parent) | Statement::Census(parent) if fate == Fate::Done => {
                    let Some((generation, members)) = number(0).zip(number(1)) else { continue };
                    if sees_one && number(2) != Some(members) {
                        let text = format!(
                            "parent {parent} was seen with {members} children counted, there were {:?}",
                            number(2)
                        );
                        return Err(Violation::order(text));
                    }
                    let seen = self.seen.entry(generation).or_default();
                    *seen = (parent, seen.1.max(members));
                }
                _ => {}
            }
            sees_one &= level != Level::Committed || matches!(statement, Statement::Family(_) | Statement::Wait(_));
        }
        Ok(())
    }

    fn check(&self, there: &There) -> Result<(), Violation> {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (child, (parent, generation)) in &there.children {
            match self.adopted.get(child) {
                None => return Err(Violation::wrong(format!("child {child} is there, which nobody has put in"))),
                Some((_, _, Fate::Refused)) => {
                    return Err(Violation::wrong(format!("child {child} is there, which was refused")));
                }
                Some((asked, known, _)) if asked != parent || known.is_some_and(|known| known != *generation) => {
                    return Err(Violation::wrong(format!("child {child} is of {parent}, asked was {asked}")));
                }
                Some(_) => {}
            }
            if there.parents.get(parent).is_none_or(|(of, _)| of != generation) {
                let text =
                    format!("child {child} names generation {generation} of parent {parent}, which is not there");
                return Err(Violation::wrong(text));
            }
            *counts.entry(*parent).or_default() += 1;
        }
        for (parent, (generation, members)) in &there.parents {
            let count = counts.get(parent).copied().unwrap_or(0);
            if count != *members {
                return Err(Violation::wrong(format!("parent {parent} counts {members} children, there are {count}")));
            }
            match self.founded.get(generation) {
                Some((of, Fate::Done | Fate::Unknown)) if of == parent => {}
                _ => {
                    return Err(Violation::wrong(format!("generation {generation} of parent {parent} was not put in")));
                }
            }
            if self.dissolved.contains_key(generation) {
                return Err(Violation::lost(format!(
                    "generation {generation} of parent {parent} has left, and is there"
                )));
            }
            if let Some((_, seen)) = self.seen.get(generation).filter(|(_, seen)| seen > members) {
                return Err(Violation::lost(format!("parent {parent} was seen with {seen} children, has {members}")));
            }
        }
        for (child, (parent, generation, fate)) in &self.adopted {
            let (Fate::Done, Some(generation)) = (fate, generation) else { continue };
            let is_in_force = there.parents.get(parent).is_some_and(|(now, _)| now == generation);
            if is_in_force && !there.children.contains_key(child) {
                return Err(Violation::lost(format!("child {child} of parent {parent} was acknowledged and is gone")));
            }
        }
        self.check_parents(there)
    }

    /// Parents that were put in or shown are there, or somebody has removed them.
    fn check_parents(&self, there: &There) -> Result<(), Violation> {
        let mut gone: BTreeMap<u64, u64> = BTreeMap::new();
        let certain =
            self.founded.iter().filter(|(_, (_, fate))| *fate == Fate::Done).map(|(of, (parent, _))| (of, parent));
        let shown = self.seen.iter().map(|(of, (parent, _))| (of, parent));
        let all: BTreeMap<&u64, &u64> = certain.chain(shown).collect();
        for (generation, parent) in all {
            let is_there = there.parents.get(parent).is_some_and(|(now, _)| now == generation);
            if !is_there && !self.dissolved.contains_key(generation) {
                *gone.entry(*parent).or_default() += 1;
            }
        }
        for (parent, count) in gone {
            let maybe = self.maybe_dissolved.get(&parent).copied().unwrap_or(0);
            if count > maybe {
                let text =
                    format!("{count} generations of parent {parent} are gone, {maybe} have left without an answer");
                return Err(Violation::lost(text));
            }
        }
        Ok(())
    }
}

impl Player {
    fn transact(&mut self) -> Vec<Statement> {
        let parent = self.dice.below(COUNT);
        let lock = match self.dice.below(6) {
            0 if self.tongue.is_some() => Lock::NoWait,
            1 | 2 => Lock::Update,
            _ => Lock::None,
        };
        let mut statements = match self.dice.below(12) {
            0 => vec![Statement::Found(parent, self.unique.next())],
            1 => vec![Statement::Dissolve(parent)],
            2 => vec![Statement::Dissolve(parent), Statement::Found(parent, self.unique.next())],
            3 => vec![Statement::Family(parent)],
            4 => vec![Statement::Adopt(parent, self.unique.next(), lock), Statement::Family(parent)],
            5 => {
                let other = self.dice.below(COUNT);
                let second = Statement::Adopt(other, self.unique.next(), lock);
                vec![Statement::Adopt(parent, self.unique.next(), lock), second]
            }
            _ => vec![Statement::Adopt(parent, self.unique.next(), lock)],
        };
        if self.dice.one_in(6) {
            let at = self.dice.below(statements.len() as u64 + 1) as usize;
            statements.insert(at, Statement::Wait(self.dice.below(3)));
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
        let is_census = self.dice.one_in(10);
        let statements = if is_census { vec![Statement::Census(self.dice.below(COUNT))] } else { self.transact() };
        if self.tongue.is_none() {
            let words = statements.into_iter().map(Statement::words).collect();
            return Operation::Call { name: TRANSACT, arguments: vec![Value::Array(words)] };
        }
        let level = match self.dice.below(4) {
            // Two statements of one moment.
            0 | 1 if !is_census => Level::Committed,
            2 => Level::Repeatable,
            _ => Level::Serializable,
        };
        Operation::Door(Ask::Transact(level, statements))
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(statements: &[Statement], outcome: Outcome) -> Record {
        let operation = Operation::Door(Ask::Transact(Level::Committed, statements.to_vec()));
        Record { client: 0, incarnation: 0, operation, outcome, invoked_at: 1, answered_at: 2 }
    }

    fn done(answers: &[&[u64]]) -> Outcome {
        Outcome::Done(Value::Array(answers.iter().map(|answer| Value::numbers(answer)).collect()))
    }

    fn check(records: &[Record], parents: &[(u64, u64, u64)], children: &[(u64, u64, u64)]) -> Option<&'static str> {
        let history = History { records: records.to_vec(), ..History::default() };
        let rows = |rows: &[(u64, u64, u64)]| {
            Value::Array(rows.iter().map(|(id, first, second)| Value::numbers(&[*id, *first, *second])).collect())
        };
        let (parents, children) = (rows(parents), rows(children));
        let mut view = |operation: Operation| match operation {
            Operation::Select { space: Space::Name(PARENTS), .. } => Ok(parents.clone()),
            _ => Ok(children.clone()),
        };
        let outcome = Families(Doors::default()).check(0, &history, &mut view);
        outcome.err().map(|violation| violation.kind.name())
    }

    #[test]
    fn orphans_and_halves_are_seen() {
        let found = || record(&[Statement::Found(1, 70)], done(&[&[]]));
        let adopt = || record(&[Statement::Adopt(1, 90, Lock::None)], done(&[&[70]]));
        let both = || vec![found(), adopt()];
        assert_eq!(check(&both(), &[(1, 70, 1)], &[(90, 1, 70)]), None);
        assert_eq!(check(&both(), &[(1, 70, 0)], &[]), Some("lost"));
        assert_eq!(check(&both(), &[(1, 70, 0)], &[(90, 1, 70)]), Some("wrong"), "the count is missing");
        assert_eq!(check(&both(), &[], &[(90, 1, 70)]), Some("wrong"), "an orphan");
        assert_eq!(check(&both(), &[], &[]), Some("lost"), "nobody has removed it");
        let dissolve = |outcome| record(&[Statement::Dissolve(1)], outcome);
        assert_eq!(check(&[both(), vec![dissolve(Outcome::Unknown)]].concat(), &[], &[]), None);
        assert_eq!(check(&[both(), vec![dissolve(done(&[&[70]]))]].concat(), &[], &[]), None);
        assert_eq!(
            check(&[both(), vec![dissolve(done(&[&[70]]))]].concat(), &[(1, 70, 1)], &[(90, 1, 70)]),
            Some("lost")
        );
        let seen = |count, counted| record(&[Statement::Family(1)], done(&[&[70, count, counted]]));
        assert_eq!(check(&[both(), vec![seen(1, 0)]].concat(), &[(1, 70, 1)], &[(90, 1, 70)]), Some("order"));
        assert_eq!(check(&[both(), vec![seen(2, 2)]].concat(), &[(1, 70, 1)], &[(90, 1, 70)]), Some("lost"));
        let refused = Outcome::Refused(crate::history::Refusal { code: 0, text: String::new() });
        let other = record(&[Statement::Adopt(1, 91, Lock::None)], refused);
        assert_eq!(check(&[both(), vec![other]].concat(), &[(1, 70, 2)], &[(90, 1, 70), (91, 1, 70)]), Some("wrong"));
    }
}
