//! Changes of the schema: applies what a row of a system space means.
//!
//! A schema change is a write to a system space, so it is transactional, logged, replicated and recovered like any other
//! write. After the row itself is in place, `on_system_row` changes the catalog and returns how to roll that back. On an
//! error the statement that wrote the row is undone by its caller.

mod access;
mod build;
mod cluster;
mod constraints;
mod disk;
mod function;
mod index;
mod sequence;
mod space;

use crate::access::{ObjectType, Privileges, denied};
use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::session::{ADMIN, Context, UserId};
use crate::txn::Effect;
use std::rc::Rc;
use tuple::{SpaceId, Tuple};

/// `_vinyl_deferred_delete`.
const DEFERRED_DELETE_ID: SpaceId = SpaceId(257);
/// `_schema`.
pub const SCHEMA_ID: SpaceId = SpaceId(272);
/// `_collation`.
pub const COLLATION_ID: SpaceId = SpaceId(276);
/// `_space`.
pub const SPACE_ID: SpaceId = SpaceId(280);
/// `_sequence`.
pub const SEQUENCE_ID: SpaceId = SpaceId(284);
/// `_sequence_data`.
pub const SEQUENCE_DATA_ID: SpaceId = SpaceId(285);
/// `_index`.
pub const INDEX_ID: SpaceId = SpaceId(288);
/// `_func`.
pub const FUNC_ID: SpaceId = SpaceId(296);
/// `_user`.
pub const USER_ID: SpaceId = SpaceId(304);
/// `_priv`.
pub const PRIV_ID: SpaceId = SpaceId(312);
/// `_cluster`.
pub const CLUSTER_ID: SpaceId = SpaceId(320);
/// `_trigger`.
const TRIGGER_ID: SpaceId = SpaceId(328);
/// `_truncate`.
pub const TRUNCATE_ID: SpaceId = SpaceId(330);
/// `_space_sequence`.
pub const SPACE_SEQUENCE_ID: SpaceId = SpaceId(340);
/// `_fk_constraint`.
const FK_CONSTRAINT_ID: SpaceId = SpaceId(356);
/// `_ck_constraint`.
const CK_CONSTRAINT_ID: SpaceId = SpaceId(364);
/// `_func_index`.
const FUNC_INDEX_ID: SpaceId = SpaceId(372);

pub(crate) use build::Ready;
pub(crate) use index::{define_engine_indexes, parse_index};
pub(crate) use space::{kind_of, make_format, parse_space, rows_of_kind, view_base};

/// Applies a changed row of a system space to the catalog.
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
        SEQUENCE_DATA_ID => sequence::on_sequence_data(database, context, old, new),
        SPACE_SEQUENCE_ID => sequence::on_space_sequence(database, context, old, new),
        FUNC_ID => function::on_function(database, context, old, new),
        USER_ID => access::on_user(database, context, old, new),
        PRIV_ID => access::on_priv(database, context, old, new),
        SCHEMA_ID => cluster::on_schema(database, context, old, new),
        CLUSTER_ID => cluster::on_cluster(database, context, old, new),
        TRIGGER_ID | FK_CONSTRAINT_ID | CK_CONSTRAINT_ID | FUNC_INDEX_ID if !context.origin.is_replay() => {
            Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &format_args!("rows of space '{}' yet", space.name())]))
        }
        DEFERRED_DELETE_ID if !context.origin.is_replay() => {
            Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"deferred deletes: nobody but Tarantool writes them"]))
        }
        _ => Ok(None),
    }
}

/// True if a user may do everything, as the administrator and whoever has the role `super`.
impl Database {
    /// True for the administrator, and for whoever has all rights on everything.
    pub fn is_almighty(&self, context: &Context) -> bool {
        is_almighty(self, context)
    }
}

fn is_almighty(database: &Database, context: &Context) -> bool {
    context.user(&database.catalog) == ADMIN || has_all_rights(&context.rights(&database.catalog))
}

fn has_all_rights(rights: &crate::access::Rights) -> bool {
    /// All privileges that can be granted on the universe.
    const EVERYTHING: u32 = 0x1fff;
    rights.universe & EVERYTHING == EVERYTHING
}

/// Checks that the owner of an object is who makes it, or stays who it was, unless its owner gives it away. Errors: `AccessDenied`.
fn check_given_owner(
    database: &Database,
    context: &Context,
    old_owner: Option<UserId>,
    new_owner: UserId,
    wanted: u32,
    kind: ObjectType,
    name: &str,
) -> Result<()> {
    let user = context.user(&database.catalog);
    let is_fine = new_owner == old_owner.unwrap_or(user) || old_owner == Some(user);
    if is_fine || context.origin.is_replay() || is_almighty(database, context) {
        return Ok(());
    }
    Err(denied(wanted, kind, name, &database.catalog.user_name(user)))
}

/// Checks the right to change an object of the schema. Errors: `AccessDenied`.
fn check_change(
    database: &Database,
    context: &Context,
    wanted: u32,
    kind: ObjectType,
    id: u32,
    owner: UserId,
    name: &str,
) -> Result<()> {
    if context.origin.is_replay() {
        return Ok(());
    }
    let user = context.user(&database.catalog);
    let rights = context.rights(&database.catalog);
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
