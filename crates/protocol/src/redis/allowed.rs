//! Who has rules: those of all users, kept beside the catalog, and each connection's own.
//!
//! Rules are rows of the space `redis_acl`, of users who have the role of that name. Who has some needs no rights on the spaces: what the rules allow is
//! done as the door's own user, who reaches these spaces and nothing else. So a key that is out of reach here is out of reach by every other door, too.
//!
//! Whichever door has changed users, grants or rows of rules: before a connection that has rules runs its next command, and when somebody logs in, they
//! are read again, and every connection gets its own.

use super::attention;
use super::call::Call;
use super::connection::{self, describe};
use super::failure::Outcome;
use super::refusals::Refusal;
use super::rules::{Denied, Rules, name_of};
use super::shared::Shared;
use super::state::State;
use super::table::{Spec, find};
use crate::connection::Connection;
use database::{Database, Key, ScanRequest, UserId};
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use storage::IteratorKind;
use tuple::IndexId;
use tuple::msgpack::Reader;
use wal::Position;

/// The space of rules, and the role of those who have some.
pub(super) const RULES: &str = "redis_acl";
/// The door's own user.
pub(super) const OWN_USER: &str = "redis";

/// Of users and grants, and of the space of rules: the last write to it, and its rows, which are gone without one when it is truncated.
type Version = (u64, Position, u64);

/// Rules of a user, and the text that gives them.
#[derive(Default)]
struct Known {
    text: Vec<u8>,
    rules: Rc<Rules>,
}

/// Rules by users.
#[derive(Default)]
pub(super) struct Allowed {
    /// What they are of.
    version: Option<Version>,
    by_user: HashMap<UserId, Known>,
}

fn version_now(shared: &Shared, database: &Database) -> Version {
    let spaces = shared.spaces(database);
    let (written, rows) =
        spaces.rules.as_ref().map_or_else(Default::default, |space| (space.last_write.get(), space.rows.len()));
    (database.catalog.access_version(), written, rows)
}

/// Reads the rules of all users. What cannot be read allows nothing: those who have the role have rules, whatever there is of them.
fn load(shared: &Shared, database: &Rc<Database>) {
    let catalog = &database.catalog;
    let mut by_user: HashMap<UserId, Known> = HashMap::new();
    if let Some(role) = catalog.user_by_name(RULES) {
        let have_role =
            catalog.users().into_iter().filter(|user| user.id != role.id && catalog.role_contains(user.id, role.id));
        by_user.extend(have_role.map(|user| (user.id, Known::default())));
    }
    if let Some(space) = &shared.spaces(database).rules {
        let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key { parts: &[], part_count: 0 });
        let read = database.select(&database.admin_context(), space, &request, |row| {
            let mut reader = Reader::new(row);
            let id = reader.read_array().and_then(|_| reader.read_uint()).ok().and_then(|id| u32::try_from(id).ok());
            if let (Some(id), Ok(text)) = (id, reader.read_str())
                && let Some(known) = by_user.get_mut(&id)
            {
                known.text = text.to_vec();
            }
            true
        });
        if let Err(error) = read {
            tracing::error!("rules of users of Redis' protocol cannot be read, and allow nothing: {error}");
        }
    }
    let mut allowed = shared.allowed.borrow_mut();
    for (id, known) in &mut by_user {
        known.rules = match allowed.by_user.remove(id).filter(|before| before.text == known.text) {
            Some(before) => before.rules,
            None => Rc::new(Rules::of_text(&known.text)),
        };
    }
    *allowed = Allowed { version: Some(version_now(shared, database)), by_user };
}

/// Has everybody have the rules that there are now.
fn keep_up(shared: &Shared, database: &Rc<Database>) {
    if shared.allowed.borrow().version != Some(version_now(shared, database)) {
        renew(shared, database);
    }
}

/// False: the user of a connection was dropped, even if another one has its number now.
fn is_known(connection: &Connection) -> bool {
    connection.database().user_of(connection.session()) == connection.session().user.get()
}

/// Gives a connection the rules of its user, as they were read last.
fn attach_read(shared: &Shared, connection: &Connection, state: &State) {
    let rules = match is_known(connection) {
        true => {
            let allowed = shared.allowed.borrow();
            allowed.by_user.get(&connection.session().user.get()).map(|known| Rc::clone(&known.rules))
        }
        false => Some(Rc::default()),
    };
    let own_user = connection.database().catalog.user_by_name(OWN_USER).map(|user| user.id);
    connection.act_as(own_user.filter(|_| rules.is_some()));
    *state.rules.borrow_mut() = rules;
    state.note_special(connection.must_log_in());
}

/// Gives a connection the rules of its user.
pub(super) fn attach(shared: &Shared, connection: &Connection, state: &State) {
    keep_up(shared, connection.database());
    attach_read(shared, connection, state);
}

/// False: a connection listens to what its rules do not allow any more, or shows commands without the right to.
fn may_stay(shared: &Shared, state: &State) -> bool {
    let Some(rules) = state.rules.borrow().clone() else { return true };
    let may_listen =
        |names: &BTreeSet<Vec<u8>>, are_patterns: bool| names.iter().all(|name| rules.may_listen(name, are_patterns));
    let is_monitor = shared.stats.monitors.borrow().contains_key(&state.id);
    may_listen(&state.channels.borrow(), false)
        && may_listen(&state.shard_channels.borrow(), false)
        && may_listen(&state.patterns.borrow(), true)
        && !(is_monitor && find(b"monitor").is_some_and(|spec| rules.check(spec, &[b"monitor"]).is_err()))
}

/// Reads rules again: all connections get theirs. Whose user is gone, and who listens to a channel that it may not listen to any more, is disconnected, as
/// by Redis; who waits looks whether it still may.
pub(super) fn renew(shared: &Shared, database: &Rc<Database>) {
    load(shared, database);
    let connections: Vec<Rc<Connection>> = shared.connections.borrow().values().filter_map(Weak::upgrade).collect();
    for connection in connections {
        let Some(state) = connection.state.downcast_ref::<Rc<State>>().map(Rc::clone) else { continue };
        attach_read(shared, &connection, &state);
        if !is_known(&connection) || !may_stay(shared, &state) {
            connection::end(shared, &connection, &state);
        }
        attention::wake(shared, state.id);
    }
    shared.wake_waiting();
}

/// The rules of a connection, as they are now.
pub(super) fn rules_of(shared: &Shared, connection: &Connection) -> Option<Rc<Rules>> {
    let state = connection.state.downcast_ref::<Rc<State>>()?;
    if state.rules.borrow().is_some() {
        keep_up(shared, connection.database());
    }
    state.rules.borrow().clone()
}

/// Where a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Top,
    Multi,
    Script,
}

impl Place {
    pub(super) fn name(self) -> &'static str {
        match self {
            Place::Top => "toplevel",
            Place::Multi => "multi",
            Place::Script => "lua",
        }
    }
}

/// Looks whether a connection's rules allow a command, and notes it if they do not. Errors: why.
pub(super) fn check(
    shared: &Shared,
    connection: &Connection,
    state: &State,
    (spec, args): (&'static Spec, &[&[u8]]),
    place: Place,
) -> Result<(), Denied> {
    let own = connection.state.downcast_ref::<Rc<State>>();
    if own.is_none_or(|own| own.rules.borrow().is_none()) {
        return Ok(());
    }
    let checked = match rules_of(shared, connection) {
        Some(rules) => rules.check(spec, args),
        // It has lost them just now: what it begins is done by its own rights, and what is under way was begun by others.
        None if place == Place::Top => Ok(()),
        None => Err(Denied::Command),
    };
    checked.inspect_err(|denied| {
        let (reason, object): (&'static str, &[u8]) = match denied {
            Denied::Command => ("command", name_of(spec, args).as_bytes()),
            Denied::Key(at) => ("key", args[*at]),
            Denied::Channel(at) => ("channel", args[*at]),
        };
        let user = connection.database().catalog.user_name(connection.session().user.get());
        note(shared, connection, state, Refusal::new(reason, place.name(), object, &user));
    })
}

/// Looks again whether a command may go on that has waited, and has it go on with the rights of now. Errors: why not.
pub(super) fn check_again(call: &Call<'_>) -> Outcome {
    call.connection.act(call.context);
    let Some(spec) = call.args.first().and_then(|name| find(name)) else { return Ok(()) };
    let checked = check(call.shared, call.connection, call.state, (spec, call.args), Place::Top);
    // What was read meanwhile may have changed whom it acts as.
    call.connection.act(call.context);
    checked.map_err(|denied| denied.text(name_of(spec, call.args)).into())
}

/// Notes a refusal for `ACL LOG`.
pub(super) fn note(shared: &Shared, connection: &Connection, state: &State, refusal: Refusal) {
    // A script has a state of its own.
    let state = connection.state.downcast_ref::<Rc<State>>().map_or(state, |own| own);
    let now_ns = connection.database().environment().clock.monotonic_ns();
    let client = describe(shared, connection, state, now_ns);
    let now_ms = connection.database().now_ms();
    shared.refusals.borrow_mut().add(refusal, client, now_ms);
}
