//! Who has rules: those of all users, kept beside the catalog, and each connection's own.
//!
//! Rules are rows of the space `redis_acl`, of users who have the role of that name. Who has some needs no rights on the spaces: what the rules allow is
//! done as the door's own user, who reaches these spaces and nothing else. So a key that is out of reach here is out of reach by every other door, too.
//! They are read again when users or grants have changed and somebody logs in, and at once when `ACL` changes them.

use super::connection::describe;
use super::refusals::Refusal;
use super::rules::{Denied, Rules, name_of};
use super::shared::Shared;
use super::state::State;
use super::table::Spec;
use crate::connection::Connection;
use database::{Database, Key, ScanRequest, UserId};
use hashbrown::HashMap;
use std::rc::{Rc, Weak};
use storage::IteratorKind;
use tuple::IndexId;
use tuple::msgpack::Reader;

/// The space of rules, and the role of those who have some.
const RULES: &str = "redis_acl";
/// The door's own user.
const OWN_USER: &str = "redis";

/// Rules by users.
#[derive(Default)]
pub(super) struct Allowed {
    /// The version of users and grants that they are of.
    version: Option<u64>,
    /// With the user's birth: numbers are given again.
    by_user: HashMap<UserId, (u64, Rc<Rules>)>,
}

/// Reads the rules of all users. What cannot be read allows nothing: those who have the role have rules.
fn load(shared: &Shared, database: &Rc<Database>) {
    let catalog = &database.catalog;
    let mut allowed = Allowed { version: Some(catalog.access_version()), ..Allowed::default() };
    if let (Some(space), Some(role)) = (catalog.space_by_name(RULES), catalog.user_by_name(RULES)) {
        let have_role =
            catalog.users().into_iter().filter(|user| user.id != role.id && catalog.role_contains(user.id, role.id));
        allowed.by_user = have_role.map(|user| (user.id, (user.birth, Rc::default()))).collect();
        let request = ScanRequest {
            index_id: IndexId::PRIMARY,
            kind: IteratorKind::All,
            key: Key { parts: &[], part_count: 0 },
            offset: 0,
            limit: u64::MAX,
        };
        let read = database.select(&database.admin_context(), &space, &request, |row| {
            let mut reader = Reader::new(row);
            let id = reader.read_array().and_then(|_| reader.read_uint()).ok().and_then(|id| u32::try_from(id).ok());
            if let (Some(id), Ok(text)) = (id, reader.read_str())
                && let Some((_, rules)) = allowed.by_user.get_mut(&id)
            {
                *rules = Rc::new(Rules::of_text(text));
            }
            true
        });
        if let Err(error) = read {
            tracing::error!("rules of users of Redis' protocol cannot be read, and allow nothing: {error}");
        }
    }
    *shared.allowed.borrow_mut() = allowed;
}

/// The rules of a connection's user, if it has some.
fn rules_of(shared: &Shared, connection: &Connection) -> Option<Rc<Rules>> {
    let database = connection.database();
    if shared.allowed.borrow().version != Some(database.catalog.access_version()) {
        load(shared, database);
    }
    let id = connection.session().user.get();
    let birth = database.catalog.user(id)?.birth;
    let allowed = shared.allowed.borrow();
    allowed.by_user.get(&id).filter(|(known, _)| *known == birth).map(|(_, rules)| Rc::clone(rules))
}

/// Gives a connection the rules of its user.
pub(super) fn attach(shared: &Shared, connection: &Connection, state: &State) {
    let rules = rules_of(shared, connection);
    let own_user = connection.database().catalog.user_by_name(OWN_USER).map(|user| user.id);
    connection.act_as(own_user.filter(|_| rules.is_some()));
    *state.rules.borrow_mut() = rules;
    state.note_special(connection.must_log_in());
}

/// Rules were changed: all connections get theirs, and who listens to a channel that it may not listen to any more is disconnected, as by Redis.
pub(super) fn renew(shared: &Shared, database: &Rc<Database>) {
    load(shared, database);
    let connections: Vec<Rc<Connection>> = shared.connections.borrow().values().filter_map(Weak::upgrade).collect();
    for connection in connections {
        let Some(state) = connection.state.downcast_ref::<Rc<State>>().map(Rc::clone) else { continue };
        attach(shared, &connection, &state);
        let Some(rules) = state.rules.borrow().clone() else { continue };
        let may_listen = |names: &std::collections::BTreeSet<Vec<u8>>, are_patterns: bool| {
            names.iter().all(|name| rules.may_listen(name, are_patterns))
        };
        let may_go_on = may_listen(&state.channels.borrow(), false)
            && may_listen(&state.shard_channels.borrow(), false)
            && may_listen(&state.patterns.borrow(), true);
        if !may_go_on {
            connection.end();
            connection.service.mark(&connection);
        }
    }
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
    let Some(rules) = state.rules.borrow().clone() else { return Ok(()) };
    rules.check(spec, args).inspect_err(|denied| {
        let (reason, object): (&'static str, &[u8]) = match denied {
            Denied::Command => ("command", name_of(spec, args).as_bytes()),
            Denied::Key(at) => ("key", args[*at]),
            Denied::Channel(at) => ("channel", args[*at]),
        };
        let user = connection.database().catalog.user_name(connection.session().user.get());
        note(shared, connection, state, Refusal::new(reason, place.name(), object, user));
    })
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
