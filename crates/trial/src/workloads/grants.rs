//! A right is given and taken while its holder uses it: what was allowed and what was denied must fit one order.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::journal::Journal;
use crate::linear::{Action, Single, first_impossible};
use crate::operation::{Operation, Space, User};
use crate::value::Value;
use crate::workload::{Client, Unique, View, Workload, rows};

const SPACE: u32 = 3060;
const GRANTED: Space = Space::Id(SPACE);
const ACCESS_DENIED: u32 = 42;
const HOLDER: User = User::Named { name: "trial_holder", password: "held" };
const GRANT: &str =
    "box.schema.user.grant('trial_holder', 'write', 'space', 'trial_granted', { if_not_exists = true })";
const REVOKE: &str = "box.schema.user.revoke('trial_holder', 'write', 'space', 'trial_granted', { if_exists = true })";
/// The right as a number that is there or not.
const RIGHT: u64 = 1;

/// See the top of the file.
pub(crate) struct Grants;

/// Gives and takes by turns.
struct Owner {
    has_given: bool,
}

/// Tries to write.
struct Holder {
    unique: Unique,
}

impl Workload for Grants {
    fn name(&self) -> &'static str {
        "grants"
    }

    fn about(&self) -> &'static str {
        "a write is allowed while the right is granted, and only then"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let user = "if not box.schema.user.exists('trial_holder') then\n\
                        box.schema.user.create('trial_holder', { password = 'held' })\n\
                    end";
        vec![Operation::create_space(engines, SPACE, "trial_granted"), Operation::eval(user), Operation::eval(REVOKE)]
    }

    fn client(&self, number: usize, _seed: u64) -> Box<dyn Client> {
        match number {
            0 => Box::new(Owner { has_given: false }),
            _ => Box::new(Holder { unique: Unique::new(number) }),
        }
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let granted = "local user = box.space._user.index.name:get('trial_holder')\n\
                       return box.space._priv:get({ user[1], 'space', 3060 }) ~= nil";
        let answer = rows(view, Operation::eval(granted))?;
        let found = rows(view, Operation::select_all(GRANTED, 0))?;
        check_right(history, answer.first() == Some(&Value::Bool(true)), &found)
    }
}

fn check_right(history: &History, is_granted: bool, found: &[Value]) -> Result<(), Violation> {
    let mut journal = Journal::default();
    let mut uses: Vec<Single> = Vec::new();
    let mut now = history.crashes.values().copied().max().unwrap_or(0);
    for record in &history.records {
        now = now.max(record.answered_at);
        let action = match (&record.operation, &record.outcome) {
            (Operation::Insert { row, .. }, outcome) => {
                let id = row.first().and_then(Value::uint).unwrap_or(0);
                journal.ask(id, Value::Array(row.clone()), record, false);
                match outcome {
                    Outcome::Done(_) => Action::Read(Some(RIGHT)),
                    Outcome::Refused(refusal) if refusal.code == ACCESS_DENIED => Action::Read(None),
                    _ => continue,
                }
            }
            (_, Outcome::Refused(_)) => continue,
            (Operation::Eval { source: GRANT, .. }, _) => Action::Write(RIGHT),
            (Operation::Eval { source: REVOKE, .. }, _) => Action::Clear,
            _ => continue,
        };
        uses.push(Single {
            action,
            invoked_at: record.invoked_at,
            decided_at: history.decided_at(record),
            is_answered: !record.outcome.is_unknown(),
        });
    }
    let action = Action::Read(is_granted.then_some(RIGHT));
    uses.push(Single { action, invoked_at: now + 1, decided_at: now + 2, is_answered: true });
    if let Some(at) = first_impossible(None, &uses) {
        let text = format!("no order of granting and revoking explains {:?}", uses[at]);
        return Err(if at + 1 == uses.len() { Violation::lost(text) } else { Violation::order(text) });
    }
    journal.check("rows written under a grant", found)
}

impl Client for Owner {
    fn next(&mut self) -> Operation {
        Operation::eval(if self.has_given { REVOKE } else { GRANT })
    }

    fn answered(&mut self, outcome: &Outcome) {
        // Unknown: the same is asked again, which changes nothing if it happened.
        if outcome.is_done() {
            self.has_given = !self.has_given;
        }
    }
}

impl Client for Holder {
    fn user(&self) -> User {
        HOLDER
    }

    fn next(&mut self) -> Operation {
        Operation::Insert { space: GRANTED, row: vec![self.unique.next().into(), "by right".into()] }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}
