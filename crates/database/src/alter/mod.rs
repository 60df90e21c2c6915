//! Changes of the schema: what a row of a system space means, put in force.
//!
//! A schema change is a write to a system space, so it is transactional, logged, replicated and recovered like any other
//! write. After the row itself is in place, `on_system_row` changes the catalog and returns how to take that back. On an
//! error the statement that wrote the row is undone by its caller.

mod access;
mod build;
mod disk;
mod function;
mod index;
mod sequence;
mod space;

use crate::access::{ObjectType, Privileges, denied};
use crate::catalog::Space;
use crate::database::{Database, State};
use crate::error::Result;
use crate::session::{Context, UserId};
use crate::txn::Effect;
use std::rc::Rc;
use tuple::Tuple;

/// `_schema`.
pub const SCHEMA_ID: u32 = 272;
/// `_collation`.
pub const COLLATION_ID: u32 = 276;
/// `_space`.
pub const SPACE_ID: u32 = 280;
/// `_sequence`.
pub const SEQUENCE_ID: u32 = 284;
/// `_sequence_data`.
pub const SEQUENCE_DATA_ID: u32 = 285;
/// `_index`.
pub const INDEX_ID: u32 = 288;
/// `_func`.
pub const FUNC_ID: u32 = 296;
/// `_user`.
pub const USER_ID: u32 = 304;
/// `_priv`.
pub const PRIV_ID: u32 = 312;
/// `_cluster`.
pub const CLUSTER_ID: u32 = 320;
/// `_truncate`.
pub const TRUNCATE_ID: u32 = 330;
/// `_space_sequence`.
pub const SPACE_SEQUENCE_ID: u32 = 340;

pub(crate) use disk::ReadyIndexes;
pub(crate) use index::{define_engine_indexes, parse_index};
pub(crate) use space::{kind_of, make_format, parse_space, view_base};

/// Puts a changed row of a system space in force.
pub(crate) fn on_system_row(
    database: &Database,
    context: &Context,
    space: &Rc<Space>,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    match space.id {
        COLLATION_ID => space::on_collation(database, context, old, new),
        SPACE_ID => space::on_space(database, context, old, new),
        INDEX_ID => index::on_index(database, context, old, new),
        TRUNCATE_ID => space::on_truncate(database, context, old, new),
        SEQUENCE_ID => sequence::on_sequence(database, context, old, new),
        SEQUENCE_DATA_ID => sequence::on_sequence_data(database, old, new),
        SPACE_SEQUENCE_ID => sequence::on_space_sequence(database, context, old, new),
        FUNC_ID => function::on_function(database, context, old, new),
        USER_ID => access::on_user(database, context, old, new),
        PRIV_ID => access::on_priv(database, context, old, new),
        _ => Ok(None),
    }
}

/// Rows that are read back at start are not questioned again.
fn is_recovering(database: &Database) -> bool {
    database.state() == State::Loading
}

/// Checks the right to change an object of the schema. Errors: 42.
fn check_change(
    database: &Database,
    context: &Context,
    wanted: u32,
    kind: ObjectType,
    id: u32,
    owner: UserId,
    name: &str,
) -> Result<()> {
    if is_recovering(database) {
        return Ok(());
    }
    let user = context.user.get();
    let rights = context.rights(database.catalog.access_version(), |user| database.catalog.rights_of(user));
    let user_name = || database.catalog.user_name(user);
    if rights.universe & Privileges::USAGE == 0 {
        return Err(denied(Privileges::USAGE, ObjectType::Universe, "", &user_name()));
    }
    // Who creates an object owns it; owning gives no right to create.
    let granted = if wanted == Privileges::CREATE { rights.on_kind(kind) } else { rights.on(kind, id) };
    if granted & wanted == wanted || (owner == user && wanted != Privileges::CREATE) {
        return Ok(());
    }
    Err(denied(wanted & !granted, kind, name, &user_name()))
}
