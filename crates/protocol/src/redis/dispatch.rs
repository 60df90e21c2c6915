//! From the parts of a command to its answer.

use super::allowed::Place;
use super::call::{Call, Head};
use super::events::{self, Event};
use super::failure::{Failure, text_of};
use super::reply::Reply;
use super::resp::Parts;
use super::rules::name_of;
use super::shared::Shared;
use super::state::{Queued, State};
use super::table::{Flag, Spec, find};
use super::{allowed, attention, busy, leftovers, measure, tracking, transactions};
use crate::connection::Connection;
use database::{Context, Database, ErrorCode, Result};
use runtime::fiber;
use std::cell::RefCell;
use std::rc::Rc;
use wal::Position;

/// Attempts of a command whose rows others change meanwhile.
pub(super) const ATTEMPTS_MAX: usize = 100;
/// After so many it gives nobody a turn any more, as far as it has the choice.
const CALM_ATTEMPTS: usize = 4;
/// Bytes of the commands of one transaction.
const QUEUED_BYTES_MAX: usize = 64 << 20;
/// Bytes of a command's name that an error shows.
const SHOWN_BYTES_MAX: usize = 128;

/// Why a command is refused beyond `maxmemory`.
pub(super) const TOO_MUCH: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Commands that write and need no memory.
const FREEING: &[&str] = &[
    "del",
    "unlink",
    "expire",
    "pexpire",
    "expireat",
    "pexpireat",
    "persist",
    "lpop",
    "rpop",
    "lmpop",
    "blpop",
    "brpop",
    "blmpop",
    "lrem",
    "ltrim",
    "spop",
    "srem",
    "hdel",
    "zrem",
    "zpopmin",
    "zpopmax",
    "zmpop",
    "bzpopmin",
    "bzpopmax",
    "bzmpop",
    "zremrangebyrank",
    "zremrangebyscore",
    "zremrangebylex",
    "getdel",
    "getex",
    "flushall",
    "flushdb",
    "rename",
    "renamenx",
    "move",
    "swapdb",
    "smove",
    "xdel",
    "xtrim",
    "xack",
];

/// True if a command needs no memory, though it writes.
pub(super) fn is_freeing(name: &str) -> bool {
    FREEING.contains(&name)
}

/// True beyond `maxmemory`.
pub(super) fn is_full(database: &Database, shared: &Shared) -> bool {
    shared.maxmemory.get() > 0 && database.arena().used() as u64 > shared.maxmemory.get()
}

/// True if a command that needs memory comes beyond `maxmemory`.
#[cold]
pub(super) fn is_too_much(database: &Database, shared: &Shared, spec: &Spec) -> bool {
    spec.is(Flag::Write) && database.arena().used() as u64 > shared.maxmemory.get() && !FREEING.contains(&spec.name)
}

/// The name of a command, for a line of the log.
pub(super) fn describe(name: &[u8]) -> String {
    match find(name) {
        Some(spec) => spec.name.to_uppercase(),
        None => "an unknown command".to_string(),
    }
}

/// Answers with an error that depends on nothing.
fn refuse(connection: &Connection, shared: &Shared, text: &str) -> Result<()> {
    database::increment(&connection.counts.errors);
    shared.stats.count_error(text.as_bytes());
    connection.answer(Position::default(), 0, |out| {
        Reply { out, resp3: false }.error(text);
        Ok(())
    })
}

/// Serves a command: now, or in a fiber if it has to wait. Errors: none but those of the database that ends.
#[inline]
pub(super) fn serve(
    connection: &Rc<Connection>,
    shared: &Rc<Shared>,
    state: &Rc<State>,
    parts: &Parts<'_>,
) -> Result<()> {
    let args: &[&[u8]] = parts;
    let Some(name) = args.first() else { return Ok(()) };
    let spec = match find(name) {
        Some(spec) if spec.takes(args.len()) => spec,
        known => return refuse_unknown(connection, shared, state, known, args),
    };
    state.last.set(Some(spec));
    if state.is_special.get() && !may_run(connection, shared, state, (spec, args))? {
        return Ok(());
    }
    if shared.maxmemory.get() > 0 && is_too_much(connection.database(), shared, spec) {
        if let Some(multi) = state.multi.borrow_mut().as_mut() {
            multi.is_broken = true;
        }
        shared.stats.reject(spec);
        return refuse(connection, shared, TOO_MUCH);
    }
    if shared.is_attentive.get()
        && let Some(text) = busy::refusal(shared, spec, args)
    {
        return refuse_busy(connection, shared, state, spec, text);
    }
    if spec.is(Flag::Login) {
        shared.stats.count(spec);
        if shared.is_attentive.get() {
            attention::begin(shared, (connection, state), spec, args);
        }
        return super::connection::log_in(connection, shared, state, spec, args);
    }
    if let Some(multi) = state.multi.borrow_mut().as_mut()
        && !spec.is(Flag::InMulti)
    {
        if spec.is(Flag::NotInMulti) {
            multi.is_broken = true;
            shared.stats.reject(spec);
            return refuse(connection, shared, &format!("ERR Command not allowed inside a transaction: {}", spec.name));
        }
        multi.bytes += args.iter().map(|part| part.len() + 32).sum::<usize>();
        if multi.bytes > QUEUED_BYTES_MAX {
            multi.is_broken = true;
            multi.queued.clear();
            return refuse(connection, shared, "ERR the commands of a transaction may have 64 MiB together");
        }
        multi.queued.push(Queued { spec, args: args.iter().map(|part| part.to_vec()).collect() });
        return connection.answer(Position::default(), 0, |out| {
            out.extend_from_slice(b"+QUEUED\r\n");
            Ok(())
        });
    }
    if shared.is_attentive.get() && attend(connection, shared, state, spec, args) {
        return Ok(());
    }
    if spec.waits() {
        serve_in_fiber(connection, shared, state, spec, args);
        return Ok(());
    }
    serve_here(connection, shared, state, spec, args)
}

/// Refuses a command while a script runs long.
#[cold]
fn refuse_busy(connection: &Connection, shared: &Shared, state: &State, spec: &'static Spec, text: &str) -> Result<()> {
    shared.stats.reject(spec);
    if spec.name == "exec" && state.multi.borrow().is_some() {
        transactions::end(shared, state);
        return refuse(connection, shared, &format!("EXECABORT Transaction discarded because of: {text}"));
    }
    if let Some(multi) = state.multi.borrow_mut().as_mut() {
        multi.is_broken = true;
    }
    refuse(connection, shared, text)
}

/// Looks at a command before it runs, where somebody wants that. True: it is served later, or there.
#[cold]
fn attend(
    connection: &Rc<Connection>,
    shared: &Rc<Shared>,
    state: &Rc<State>,
    spec: &'static Spec,
    args: &[&[u8]],
) -> bool {
    if attention::is_paused(shared, state, spec, args) {
        serve_in_fiber(connection, shared, state, spec, args);
        return true;
    }
    attention::begin(shared, (connection, state), spec, args);
    false
}

/// Serves a command where it has come in, if it need not wait.
#[inline]
fn serve_here(
    connection: &Rc<Connection>,
    shared: &Rc<Shared>,
    state: &Rc<State>,
    spec: &'static Spec,
    args: &[&[u8]],
) -> Result<()> {
    let begun = if shared.measures.get() { now_ns(connection) } else { 0 };
    let context = connection.context();
    context.seen.set(Position::default());
    let done = shared.with_answer(|out| {
        let mut call = Call {
            database: connection.database(),
            connection,
            context,
            state,
            shared,
            spaces: shared.spaces(connection.database()),
            out,
            args,
            db: state.db.get(),
            is_write: spec.is(Flag::Write),
            may_wait: false,
            is_inside: false,
            is_script: false,
            is_hurried: false,
            left: RefCell::default(),
            events: RefCell::default(),
            group: RefCell::default(),
        };
        let outcome = (spec.run)(&mut call);
        let (left, events) = (call.left.take(), call.events.take());
        if needs_fiber(&outcome) {
            return None;
        }
        if call.is_write && context.seen.get() == Position::default() {
            call.see_all();
        }
        shared.stats.count(spec);
        if spec.is(Flag::Container) {
            measure::count_subcommand(shared, spec, args);
        }
        if outcome.is_err() {
            shared.stats.fail(spec, args);
        }
        if begun > 0 {
            measure::note(shared, (connection, state), spec, args, now_ns(connection).saturating_sub(begun));
        }
        if spec.name == "exec" && shared.is_attentive.get() {
            attention::feed(shared, (connection, state), spec, args, false);
        }
        Some(finish(connection, shared, state, context, (left, events), outcome, out))
    });
    match done {
        Some(answered) => answered,
        None => {
            serve_in_fiber(connection, shared, state, spec, args);
            Ok(())
        }
    }
}

#[cold]
fn now_ns(connection: &Connection) -> u64 {
    connection.database().environment().clock.monotonic_ns()
}

fn needs_fiber(outcome: &super::failure::Outcome) -> bool {
    matches!(outcome, Err(Failure::Database(error)) if error.is_needs_fiber())
}

/// Answers with what a command has written, or with why it was refused.
fn finish(
    connection: &Rc<Connection>,
    shared: &Rc<Shared>,
    state: &State,
    context: &Context,
    (left, events): (Vec<Head>, Vec<Event>),
    outcome: super::failure::Outcome,
    out: &mut Vec<u8>,
) -> Result<()> {
    if let Err(failure) = outcome {
        database::increment(&connection.counts.errors);
        out.clear();
        write_failure(out, &failure);
        shared.stats.count_error(out.get(1..).unwrap_or_default());
    } else if !left.is_empty() {
        leftovers::add(shared, connection.database(), left);
    }
    if !events.is_empty() {
        events::publish_all(shared, context.seen.get(), &events);
    }
    let answered = answer(connection, state, context, out);
    if !events.is_empty() {
        events::invalidate(shared, context.seen.get(), &events, state.id);
        events::expire_missed(shared, connection.database(), &events);
    }
    answered
}

/// Sends what a command has written, unless its client wants none.
#[inline]
fn answer(connection: &Connection, state: &State, context: &Context, out: &mut [u8]) -> Result<()> {
    let is_silent = state.is_silent.get() || state.skips_next.replace(false);
    state.skips_next.set(state.skips_after.replace(false));
    let is_silent = is_silent || state.skips_next.get() && out.is_empty();
    if is_silent && !state.answers_anyway.replace(false) {
        return Ok(());
    }
    connection.answer(context.seen.get(), 0, |to| {
        to.extend_from_slice(out);
        Ok(())
    })
}

/// Writes why a command was refused.
pub(super) fn write_failure(out: &mut Vec<u8>, failure: &Failure) {
    let mut reply = Reply { out, resp3: false };
    match failure {
        Failure::Text(text) => reply.error(text),
        Failure::Database(error) => reply.error(&text_of(error)),
    }
}

/// Runs a command that may wait: for what is on disk, for others, or because it takes long.
fn serve_in_fiber(
    connection: &Rc<Connection>,
    shared: &Rc<Shared>,
    state: &Rc<State>,
    spec: &'static Spec,
    args: &[&[u8]],
) {
    let owned: Vec<Vec<u8>> = args.iter().map(|part| part.to_vec()).collect();
    let (shared, state) = (Rc::clone(shared), Rc::clone(state));
    let own = Rc::clone(connection);
    let describe = |(spec, _): &(&'static Spec, Vec<Vec<u8>>)| spec.name.to_uppercase();
    connection.in_fiber(0, ((spec, owned), describe), move |_, context, (spec, owned)| {
        let connection = &own;
        let args: Vec<&[u8]> = owned.iter().map(Vec::as_slice).collect();
        if shared.is_attentive.get() && attention::is_paused(&shared, &state, spec, &args) {
            if !attention::wait_pause(&shared, (connection, &state), spec, &args) {
                return Ok(());
            }
            connection.act(context);
            if let Err(denied) = allowed::check(&shared, connection, &state, (spec, &args), Place::Top) {
                shared.stats.reject(spec);
                return refuse(connection, &shared, &denied.text(name_of(spec, &args)));
            }
            connection.act(context);
            attention::begin(&shared, (connection, &state), spec, &args);
        }
        let begun = now_ns(connection);
        let waited = fiber::waited_ns();
        let mut out = Vec::new();
        let mut attempt = 0;
        let (left, events, outcome) = loop {
            out.clear();
            attempt += 1;
            let mut call = Call {
                database: connection.database(),
                connection,
                context,
                state: &state,
                shared: &shared,
                spaces: shared.spaces(connection.database()),
                out: &mut out,
                args: &args,
                db: state.db.get(),
                is_write: false,
                may_wait: true,
                is_inside: false,
                is_script: false,
                is_hurried: attempt > CALM_ATTEMPTS,
                left: RefCell::default(),
                events: RefCell::default(),
                group: RefCell::default(),
            };
            // Others have their turn between what it looks at and what it writes.
            let outcome = if spec.is_one_transaction() { call.atomically(spec.run) } else { (spec.run)(&mut call) };
            let (left, events) = (call.left.take(), call.events.take());
            if is_conflict(&outcome) && attempt < ATTEMPTS_MAX {
                fiber::yield_now();
                continue;
            }
            if is_conflict(&outcome) && spec.name == "exec" {
                // There is no other attempt.
                transactions::end(&shared, &state);
            }
            break (left, events, outcome);
        };
        shared.tell_again();
        shared.stats.count(spec);
        if spec.is(Flag::Container) {
            measure::count_subcommand(&shared, spec, &args);
        }
        if outcome.is_err() {
            shared.stats.fail(spec, &args);
        }
        // Who waits for a key takes no time of the server.
        let idle = if spec.is(Flag::Blocking) { fiber::waited_ns() - waited } else { 0 };
        let taken = now_ns(connection).saturating_sub(begun).saturating_sub(idle);
        measure::note(&shared, (connection, &state), spec, &args, taken);
        if spec.name == "exec" && shared.is_attentive.get() {
            attention::feed(&shared, (connection, &state), spec, &args, false);
        }
        finish(connection, &shared, &state, context, (left, events), outcome, &mut out)
    });
}

pub(super) fn is_conflict<T>(outcome: &super::failure::Outcome<T>) -> bool {
    matches!(outcome, Err(Failure::Database(error)) if error.code() == ErrorCode::TransactionConflict as u32)
}

/// A command that is not there, or not with so many parts.
#[cold]
fn refuse_unknown(
    connection: &Rc<Connection>,
    shared: &Shared,
    state: &Rc<State>,
    known: Option<&'static Spec>,
    args: &[&[u8]],
) -> Result<()> {
    let name = args.first().copied().unwrap_or_default();
    if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
        let peer = connection.session().peer.as_deref().unwrap_or("a client");
        tracing::warn!(
            "{peer} speaks HTTP at an address of Redis' protocol, as a page of somebody else's would make a browser do: the connection is closed"
        );
        connection.end();
        return Ok(());
    }
    if connection.must_log_in() {
        return refuse(connection, shared, "NOAUTH Authentication required.");
    }
    if let Some(multi) = state.multi.borrow_mut().as_mut() {
        multi.is_broken = true;
    }
    let shown = |text: &[u8]| String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES_MAX)]).into_owned();
    match known {
        Some(spec) => {
            shared.stats.reject(spec);
            refuse(connection, shared, &wrong_count(spec.name))
        }
        None => {
            let mut text = format!("ERR unknown command '{}', with args beginning with: ", shown(name));
            for part in &args[1..] {
                if text.len() > 2 * SHOWN_BYTES_MAX {
                    break;
                }
                text.push_str(&format!("'{}' ", shown(part)));
            }
            refuse(connection, shared, &text)
        }
    }
}

pub(super) fn wrong_count(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

/// Looks whether a connection that must log in, has rules, or listens to channels, may run a command. False: it was refused.
#[cold]
fn may_run(
    connection: &Rc<Connection>,
    shared: &Shared,
    state: &State,
    (spec, args): (&'static Spec, &[&[u8]]),
) -> Result<bool> {
    if connection.must_log_in() && !spec.is(Flag::NoLogin) {
        shared.stats.reject(spec);
        refuse(connection, shared, "NOAUTH Authentication required.")?;
        return Ok(false);
    }
    if !connection.must_log_in() {
        state.is_stranger.set(false);
    }
    let place = if state.multi.borrow().is_some() { Place::Multi } else { Place::Top };
    if let Err(denied) = allowed::check(shared, connection, state, (spec, args), place) {
        if let Some(multi) = state.multi.borrow_mut().as_mut() {
            multi.is_broken = true;
        }
        shared.stats.reject(spec);
        refuse(connection, shared, &denied.text(name_of(spec, args)))?;
        return Ok(false);
    }
    if state.subscriptions() + state.shard_channels.borrow().len() > 0
        && !state.resp3.get()
        && !spec.is(Flag::WhileListening)
    {
        let text = format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            spec.name
        );
        shared.stats.reject(spec);
        refuse(connection, shared, &text)?;
        return Ok(false);
    }
    state.note_special(connection.must_log_in());
    Ok(true)
}

/// Runs a command inside of a transaction or a script: its answer is appended to `call.out`.
pub(super) fn run_inside(call: &mut Call<'_>, spec: &'static Spec, args: &[&[u8]]) -> super::failure::Outcome {
    let start = call.out.len();
    let mut inner = Call {
        database: call.database,
        connection: call.connection,
        context: call.context,
        state: call.state,
        shared: call.shared,
        spaces: call.shared.spaces(call.database),
        out: call.out,
        args,
        db: call.state.db.get(),
        is_write: spec.is(Flag::Write) && call.is_write,
        may_wait: call.may_wait,
        is_inside: true,
        is_script: call.is_script,
        is_hurried: call.is_hurried,
        left: RefCell::default(),
        events: RefCell::default(),
        group: RefCell::default(),
    };
    if call.shared.is_watchful.get() && !call.is_script {
        let keys = tracking::remember(call.shared, (call.connection, call.state), spec, args);
        events::note_reread(&mut call.events.borrow_mut(), call.state.db.get(), &keys);
    }
    if call.shared.is_attentive.get() && !call.is_script {
        attention::feed(call.shared, (call.connection, call.state), spec, args, false);
    }
    let begun = if call.shared.measures.get() { now_ns(call.connection) } else { 0 };
    let shared = call.shared;
    shared.stats.count(spec);
    if spec.is(Flag::Container) {
        measure::count_subcommand(shared, spec, args);
    }
    let outcome = (spec.run)(&mut inner);
    let (left, events) = (inner.left.take(), inner.events.take());
    if begun > 0 {
        let taken = now_ns(call.connection).saturating_sub(begun);
        measure::note(shared, (call.connection, call.state), spec, args, taken);
    }
    match outcome {
        Ok(()) => {
            call.left.borrow_mut().extend(left);
            call.events.borrow_mut().extend(events);
        }
        Err(Failure::Database(error)) if transactions::ends_transaction(&error) => return Err(error.into()),
        Err(failure) => {
            call.out.truncate(start);
            write_failure(call.out, &failure);
            shared.stats.fail(spec, args);
            shared.stats.count_error(call.out.get(start + 1..).unwrap_or_default());
        }
    }
    Ok(())
}
