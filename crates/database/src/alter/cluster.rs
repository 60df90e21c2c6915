//! Rows of `_schema` and `_cluster`: who this server is.

use super::is_almighty;
use crate::access::{ObjectType, Privileges, denied};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::session::Context;
use crate::session_spaces::SESSION_ID_MIN;
use crate::txn::Effect;
use tuple::Tuple;

/// Number of this server among those of its replica set.
const OWN_ID: u32 = 1;
/// The greatest number of a space of the system.
const LAST_SYSTEM_ID: u32 = 511;
/// Number of server ids: the parts of a vector clock.
const REPLICA_MAX: u32 = 32;

fn check_uuid(text: &str) -> Result<()> {
    // The one form that Tarantool reads.
    let is_good = text.len() == 36 && uuid::Uuid::try_parse(text).is_ok();
    if is_good { Ok(()) } else { Err(Error::new(ErrorCode::InvalidUuid, &[&text])) }
}

/// Errors: the key is not that of the last number of a space, or the number leaps, so that there would soon be no more.
fn check_next_number(
    database: &Database,
    context: &Context,
    key: &str,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<()> {
    let number = |row: &Tuple| -> Option<u32> {
        let mut fields = Fields::new(row.data()).ok()?;
        fields.str().ok()?;
        fields.uint().ok()
    };
    let spaces = database.catalog.spaces();
    let used = spaces.iter().map(|space| space.id.0).filter(|id| *id < SESSION_ID_MIN).max().unwrap_or(0);
    let last = old.and_then(number).unwrap_or(0).max(used).max(LAST_SYSTEM_ID);
    let is_next = key == "max_id" && new.is_some_and(|new| number(new).is_some_and(|given| given <= last + 1));
    if is_next {
        return Ok(());
    }
    let user = database.catalog.user_name(context.user(&database.catalog));
    Err(denied(Privileges::WRITE, ObjectType::Space, "_schema", &user))
}

/// A row of `_schema`. The identity of the replica set is given once; other keys are anybody's.
pub(super) fn on_schema(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let Some(row) = new.or(old).filter(|_| !context.origin.is_replay()) else { return Ok(None) };
    let mut fields = Fields::new(row.data())?;
    let key = fields.str()?;
    if !is_almighty(database, context) {
        // Who may make spaces counts their numbers, and has nothing to do with what else is here.
        check_next_number(database, context, key, old, new)?;
    }
    if key != "cluster" {
        return Ok(None);
    }
    if new.is_none() {
        return Err(Error::new(ErrorCode::ReplicasetUuidIsRo, &[]));
    }
    let uuid = fields.str()?;
    check_uuid(uuid)?;
    if uuid != database.replicaset_uuid() {
        return Err(Error::new(ErrorCode::ReplicasetUuidIsRo, &[]));
    }
    Ok(None)
}

/// A row of `_cluster`: number and identity of a server.
pub(super) fn on_cluster(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let Some(row) = new.or(old).filter(|_| !context.origin.is_replay()) else { return Ok(None) };
    let mut fields = Fields::new(row.data())?;
    let id = fields.uint()?;
    if id == 0 {
        return Err(Error::new(ErrorCode::ReplicaIdIsReserved, &[&id]));
    }
    if id >= REPLICA_MAX {
        return Err(Error::new(ErrorCode::ReplicaMax, &[&id]));
    }
    let uuid = fields.str()?;
    if new.is_some() {
        check_uuid(uuid)?;
    }
    if id == OWN_ID && (new.is_none() || uuid != database.instance_uuid()) {
        return Err(Error::new(ErrorCode::LocalInstanceIdIsReadOnly, &[&id]));
    }
    Ok(None)
}
