//! Rows of `_schema` and `_cluster`: who this server is.

use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::session::Context;
use crate::txn::Effect;
use tuple::Tuple;

/// Number of this server among those of its replica set.
const OWN_ID: u32 = 1;
/// Number of server ids: the parts of a vector clock.
const REPLICA_MAX: u32 = 32;

fn check_uuid(text: &str) -> Result<()> {
    // The one form that Tarantool reads.
    let is_good = text.len() == 36 && uuid::Uuid::try_parse(text).is_ok();
    if is_good { Ok(()) } else { Err(Error::new(ErrorCode::InvalidUuid, &[&text])) }
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
    if fields.str()? != "cluster" {
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
