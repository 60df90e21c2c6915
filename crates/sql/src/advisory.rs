//! Locks that programs agree on by names or numbers: `pg_advisory_lock` and its kin, GET_LOCK. They guard nothing by themselves.
//!
//! A session has what it has taken until it gives it back or ends; locks of a transaction end with it. Who would close a circle of waits is refused.

use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::run::Run;
use crate::types::Base;
use crate::value::Value;
use runtime::fiber;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Locks that all sessions have together.
pub const LOCKS_MAX: usize = 100_000;
/// Bytes of the name of a lock.
const NAME_MAX: usize = 64;

/// What a lock is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Number(i64),
    Pair(i32, i32),
    Text(String),
}

/// How often a session has a lock.
#[derive(Clone, Copy, Default)]
struct Holding {
    shared: u32,
    exclusive: u32,
}

/// The locks of a database.
#[derive(Default)]
pub(crate) struct Advisory {
    /// By name, the sessions that have it.
    held: RefCell<BTreeMap<Name, BTreeMap<u64, Holding>>>,
    /// Sessions that wait, what for, and their fibers.
    waiting: RefCell<BTreeMap<u64, (Name, fiber::FiberId)>>,
}

impl Advisory {
    fn may_have(&self, name: &Name, session: u64, is_shared: bool) -> bool {
        let held = self.held.borrow();
        let Some(holders) = held.get(name) else { return true };
        holders.iter().all(|(other, holding)| *other == session || is_shared && holding.exclusive == 0)
    }

    fn take(&self, name: &Name, session: u64, is_shared: bool) -> Result<()> {
        let mut held = self.held.borrow_mut();
        if held.len() >= LOCKS_MAX && !held.contains_key(name) {
            let what = format!("there are more than {LOCKS_MAX} advisory locks");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        let holding = held.entry(name.clone()).or_default().entry(session).or_default();
        match is_shared {
            true => holding.shared += 1,
            false => holding.exclusive += 1,
        }
        Ok(())
    }

    /// True: the session had it.
    fn give_back(&self, name: &Name, session: u64, is_shared: bool) -> bool {
        let mut held = self.held.borrow_mut();
        let Some(holders) = held.get_mut(name) else { return false };
        let Some(holding) = holders.get_mut(&session) else { return false };
        let count = if is_shared { &mut holding.shared } else { &mut holding.exclusive };
        let Some(left) = count.checked_sub(1) else { return false };
        *count = left;
        if holding.shared == 0 && holding.exclusive == 0 {
            holders.remove(&session);
        }
        if holders.is_empty() {
            held.remove(name);
        }
        drop(held);
        self.wake(name);
        true
    }

    fn wake(&self, name: &Name) {
        self.waiting.borrow().values().filter(|(wanted, _)| wanted == name).for_each(|(_, id)| fiber::wake(*id));
    }

    /// Gives back all that a session has. Returns how often it had something.
    pub(crate) fn forget(&self, session: u64) -> u64 {
        let mut count = 0;
        let mut freed = Vec::new();
        self.held.borrow_mut().retain(|name, holders| {
            if let Some(holding) = holders.remove(&session) {
                count += u64::from(holding.shared) + u64::from(holding.exclusive);
                freed.push(name.clone());
            }
            !holders.is_empty()
        });
        freed.iter().for_each(|name| self.wake(name));
        count
    }

    /// True if whoever has a lock waits, through others perhaps, for the session.
    fn closes_circle(&self, name: &Name, session: u64) -> bool {
        let (held, waiting) = (self.held.borrow(), self.waiting.borrow());
        let (mut seen, mut next) = (vec![name], vec![name]);
        while let Some(name) = next.pop() {
            for holder in held.get(name).into_iter().flat_map(BTreeMap::keys) {
                if *holder == session && seen.len() > 1 {
                    return true;
                }
                if let Some((wanted, _)) = waiting.get(holder)
                    && *holder != session
                    && !seen.contains(&wanted)
                {
                    seen.push(wanted);
                    next.push(wanted);
                }
            }
        }
        false
    }
}

fn locks(run: &Run<'_>) -> Rc<Advisory> {
    crate::Sql::of(run.database).advisory()
}

/// Takes a lock, waiting for it if need be. False: it did not come in time. Errors: `Deadlock`, `Cancelled`, `LimitExceeded`.
fn acquire(run: &mut Run<'_>, name: &Name, is_shared: bool, timeout_ns: Option<u64>) -> Result<bool> {
    let session = run.context.session.id;
    let locks = locks(run);
    let deadline = timeout_ns.map(|timeout| fiber::now_ns().saturating_add(timeout));
    loop {
        if locks.may_have(name, session, is_shared) {
            locks.take(name, session, is_shared)?;
            return Ok(true);
        }
        if deadline.is_some_and(|deadline| fiber::now_ns() >= deadline) {
            return Ok(false);
        }
        let Some(id) = fiber::current() else { return Ok(false) };
        if locks.closes_circle(name, session) {
            return Err(Error::new(Condition::Deadlock, "deadlock detected"));
        }
        run.check_may_wait()?;
        locks.waiting.borrow_mut().insert(session, (name.clone(), id));
        run.database.suspend(run.context);
        let wake = fiber::park_until(deadline);
        locks.waiting.borrow_mut().remove(&session);
        run.database.resume(run.context)?;
        if wake == fiber::Wake::Cancelled {
            return Err(Error::new(Condition::Cancelled, "canceling statement due to user request"));
        }
    }
}

fn int(value: &Value) -> i64 {
    value.as_integer().and_then(|value| i64::try_from(value).ok()).unwrap_or(0)
}

fn name_of(a: &[Value]) -> Name {
    match a {
        [a, b] => Name::Pair(int(a) as i32, int(b) as i32),
        _ => Name::Number(a.first().map_or(0, int)),
    }
}

fn name_of_text(value: &Value) -> Result<Name> {
    let text = value.as_text().map_or_else(|| value.display(crate::Dialect::Mysql), str::to_string);
    match text.is_empty() || text.chars().count() > NAME_MAX {
        true => {
            Err(Error::new(Condition::InvalidArgument, format!("Incorrect user-level lock name '{text}'.")).mysql(3057))
        }
        false => Ok(Name::Text(text.to_lowercase())),
    }
}

/// Waits for a lock. Errors: as [`acquire`]; `LockTimeout`.
fn wait(run: &mut Run<'_>, a: &[Value], is_shared: bool) -> Result<Name> {
    let name = name_of(a);
    let timeout_ns = run.lock_timeout_ns;
    match acquire(run, &name, is_shared, timeout_ns)? {
        true => Ok(name),
        false => Err(Error::new(Condition::LockTimeout, "canceling statement due to lock timeout")),
    }
}

/// A lock that is given back when the transaction ends, or at once if there is none.
fn until_end(run: &Run<'_>, name: Name, is_shared: bool) -> Result<()> {
    let (session, locks) = (run.context.session.id, locks(run));
    if !run.context.is_in_txn() {
        locks.give_back(&name, session, is_shared);
        return Ok(());
    }
    for is_commit in [true, false] {
        let (name, locks) = (name.clone(), Rc::clone(&locks));
        let free = Box::new(move |_: &database::Context, _: &[database::ChangedRow]| {
            locks.give_back(&name, session, is_shared);
        });
        match is_commit {
            true => run.database.on_commit(run.context, free)?,
            false => run.database.on_rollback(run.context, free)?,
        }
    }
    Ok(())
}

const BOOL: Returns = Returns::Type(Base::Bool);
const TEXT: Returns = Returns::Type(Base::Text);
const INT: Returns = Returns::Type(Base::Int8);

macro_rules! functions {
    ($($set:ident: $($name:literal ($min:literal, $max:expr) $result:expr, $strict:literal => $call:expr;)*)*) => {$(
        static $set: &[Function] = &[$(Function {
            name: $name,
            arguments: ($min, $max),
            result: $result,
            is_strict: $strict,
            is_volatile: true,
            call: $call,
        },)*];
    )*};
}

fn nothing() -> Result<Value> {
    Ok(Value::text(""))
}

functions! {
    POSTGRES:
    "pg_advisory_lock" (1, 2) TEXT, true => |run, a| wait(run, a, false).and_then(|_| nothing());
    "pg_advisory_lock_shared" (1, 2) TEXT, true => |run, a| wait(run, a, true).and_then(|_| nothing());
    "pg_try_advisory_lock" (1, 2) BOOL, true => |run, a| acquire(run, &name_of(a), false, Some(0)).map(Value::Bool);
    "pg_try_advisory_lock_shared" (1, 2) BOOL, true => |run, a| acquire(run, &name_of(a), true, Some(0)).map(Value::Bool);
    "pg_advisory_unlock" (1, 2) BOOL, true => |run, a| Ok(Value::Bool(locks(run).give_back(&name_of(a), run.context.session.id, false)));
    "pg_advisory_unlock_shared" (1, 2) BOOL, true => |run, a| Ok(Value::Bool(locks(run).give_back(&name_of(a), run.context.session.id, true)));
    "pg_advisory_unlock_all" (0, 0) TEXT, true => |run, _| {
        locks(run).forget(run.context.session.id);
        nothing()
    };
    "pg_advisory_xact_lock" (1, 2) TEXT, true => |run, a| {
        let name = wait(run, a, false)?;
        until_end(run, name, false).and_then(|()| nothing())
    };
    "pg_advisory_xact_lock_shared" (1, 2) TEXT, true => |run, a| {
        let name = wait(run, a, true)?;
        until_end(run, name, true).and_then(|()| nothing())
    };
    "pg_try_advisory_xact_lock" (1, 2) BOOL, true => |run, a| try_until_end(run, a, false);
    "pg_try_advisory_xact_lock_shared" (1, 2) BOOL, true => |run, a| try_until_end(run, a, true);
    MYSQL:
    "get_lock" (2, 2) INT, false => |run, a| {
        let name = name_of_text(&a[0])?;
        let seconds = a[1].as_double().unwrap_or(-1.0);
        let timeout_ns = (seconds >= 0.0).then_some((seconds.min(1e9) * 1e9) as u64);
        Ok(Value::Int(i64::from(acquire(run, &name, false, timeout_ns)?)))
    };
    "release_lock" (1, 1) INT, false => |run, a| {
        let name = name_of_text(&a[0])?;
        let is_known = locks(run).held.borrow().contains_key(&name);
        Ok(match is_known {
            true => Value::Int(i64::from(locks(run).give_back(&name, run.context.session.id, false))),
            false => Value::Null,
        })
    };
    "release_all_locks" (0, 0) INT, false => |run, _| Ok(Value::Int(locks(run).forget(run.context.session.id) as i64));
    "is_free_lock" (1, 1) INT, false => |run, a| {
        let name = name_of_text(&a[0])?;
        Ok(Value::Int(i64::from(!locks(run).held.borrow().contains_key(&name))))
    };
    "is_used_lock" (1, 1) INT, false => |run, a| {
        let name = name_of_text(&a[0])?;
        let holder = locks(run).held.borrow().get(&name).and_then(|holders| holders.keys().next().copied());
        let session = holder.and_then(|holder| crate::Sql::of(run.database).session(holder));
        Ok(session.map_or(Value::Null, |session| Value::Int(i64::from(session.number))))
    };
}

fn try_until_end(run: &mut Run<'_>, a: &[Value], is_shared: bool) -> Result<Value> {
    let name = name_of(a);
    let is_taken = acquire(run, &name, is_shared, Some(0))?;
    if is_taken {
        until_end(run, name, is_shared)?;
    }
    Ok(Value::Bool(is_taken))
}

/// The function of a name.
pub(crate) fn find(dialect: crate::Dialect, name: &str) -> Option<&'static Function> {
    let set = match dialect {
        crate::Dialect::Tarantool => return None,
        crate::Dialect::Postgres => POSTGRES,
        crate::Dialect::Mysql => MYSQL,
    };
    set.iter().find(|function| function.name == name)
}
