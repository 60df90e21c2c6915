//! Rows of `_user` and `_priv`.

use super::space::check_name;
use super::{check_change, is_almighty};
use crate::access::{Grant, ObjectType, Privileges, denied};
use crate::catalog::{User, UserKind};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::{Fields, as_str, for_each_entry};
use crate::session::{ADMIN, Context, GUEST, NOBODY, PUBLIC, SUPER, UserId};
use crate::txn::Effect;
use base64::Engine;
use std::rc::Rc;
use tuple::msgpack::{Kind, Reader};
use tuple::{SpaceId, Tuple};

/// Users and roles in all.
const USER_MAX: usize = 32;

fn parse_user(row: &[u8]) -> Result<User> {
    let mut fields = Fields::new(row)?;
    let id = fields.uint()?;
    let owner = fields.uint()?;
    let name = fields.str()?.to_string();
    let kind = fields.str()?;
    let kind = match kind {
        "user" => UserKind::User,
        "role" => UserKind::Role,
        other => return Err(Error::new(ErrorCode::CreateUser, &[&name, &format!("unknown user type {other}")])),
    };
    let mut password_hash = None;
    if fields.has_more() {
        let auth = fields.raw()?;
        for_each_entry(auth, |key, value| {
            if key == "chap-sha1" {
                let text = as_str(value).unwrap_or("");
                let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok();
                password_hash = bytes.and_then(|bytes| <[u8; 20]>::try_from(bytes).ok());
                if password_hash.is_none() {
                    return Err(Error::new(ErrorCode::CreateUser, &[&name, &"invalid user password"]));
                }
            }
            Ok(())
        })
        .map_err(|error| {
            error.unwrap_or_else(|| {
                Error::new(
                    ErrorCode::CreateUser,
                    &[&name, &"invalid password format, use box.schema.user.passwd() to reset password"],
                )
            })
        })?;
    }
    check_name(&name)?;
    if id == GUEST && password_hash.is_some_and(|hash| hash != password_hash_of_nothing()) {
        return Err(Error::new(ErrorCode::GuestUserPassword, &[]));
    }
    Ok(User { id, birth: 0, owner, name, kind, password_hash })
}

/// What `_user` keeps of an empty password: guest's.
fn password_hash_of_nothing() -> [u8; 20] {
    wire::password_hash(b"")
}

/// Who manages accounts without all rights has none on those that have them: a password that it sets there would be its way in. Errors: `AccessDenied`.
fn check_not_above(
    database: &Database,
    context: &Context,
    id: UserId,
    wanted: u32,
    kind: ObjectType,
    name: &str,
) -> Result<()> {
    let user = context.user(&database.catalog);
    let is_above = super::has_all_rights(&database.catalog.rights_of(id));
    if !is_above || user == id || context.origin.is_replay() || is_almighty(database, context) {
        return Ok(());
    }
    Err(denied(wanted, kind, name, &database.catalog.user_name(user)))
}

/// Without the user of a protocol, nobody enters by it who does not prove to be somebody else. Errors: `DropUser`.
fn check_not_needed(database: &Database, context: &Context, user: &User) -> Result<()> {
    match database.is_needed_user(&user.name) && !context.origin.is_replay() {
        true => Err(Error::new(ErrorCode::DropUser, &[&user.name, &"clients of a listener act as this user"])),
        false => Ok(()),
    }
}

impl Database {
    /// Checks that a user or a role may be dropped as far as its rights go, which are taken from it before. Errors: `AccessDenied`; a protocol needs it.
    pub fn check_may_drop_account(&self, context: &Context, id: UserId) -> Result<()> {
        let Some(user) = self.catalog.user(id) else { return Ok(()) };
        check_not_needed(self, context, &user)?;
        check_not_above(self, context, id, Privileges::DROP, object_type(user.kind), &user.name)
    }
}

fn object_type(kind: UserKind) -> ObjectType {
    if kind == UserKind::User { ObjectType::User } else { ObjectType::Role }
}

pub(super) fn on_user(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let Some(new) = new else {
        let Some(old) = old else { return Ok(None) };
        let user = parse_user(old.data())?;
        let id = user.id;
        let kind = object_type(user.kind);
        check_change(database, context, Privileges::DROP, kind, id, user.owner, &user.name)?;
        check_not_above(database, context, id, Privileges::DROP, kind, &user.name)?;
        check_not_needed(database, context, &user)?;
        let refuse = |why: &str| Err(Error::new(ErrorCode::DropUser, &[&user.name, &why]));
        if id <= ADMIN || id <= SUPER && user.kind == UserKind::Role {
            return refuse("the user or the role is a system");
        }
        let owns = database.catalog.spaces().iter().any(|space| space.owner() == id)
            || database.catalog.functions().iter().any(|function| function.owner == id)
            || database.catalog.sequences().iter().any(|sequence| sequence.def().owner == id)
            || database.catalog.grants().iter().any(|grant| grant.grantee == id || grant.grantor == id);
        if owns {
            return refuse("the user has objects");
        }
        let gone = database.catalog.set_user(id, None);
        let back = move |database: &Database| drop(database.catalog.set_user(id, gone.clone()));
        return Ok(Some(Effect::of(back, move |database| drop(database.catalog.set_user(id, None)))));
    };
    let mut user = parse_user(new.data())?;
    let id = user.id;
    let kind = object_type(user.kind);
    let known = database.catalog.user(id);
    user.birth = known.as_ref().map_or_else(|| database.catalog.next_birth(), |known| known.birth);
    match old {
        None => {
            if id == NOBODY && !context.origin.is_replay() {
                return Err(Error::new(ErrorCode::CreateUser, &[&user.name, &"the number of the user is too big"]));
            }
            check_change(database, context, Privileges::CREATE, kind, id, user.owner, &user.name)?;
            if database.catalog.users().len() >= USER_MAX && !context.origin.is_replay() {
                return Err(Error::new(ErrorCode::UserMax, &[&USER_MAX]));
            }
        }
        Some(_) => {
            // A user may change its own password. Who made a user has no more of it than that: a row that names a new owner must not
            // be what gives the right to write it.
            let (kind, name) =
                known.as_ref().map_or((kind, &user.name), |known| (object_type(known.kind), &known.name));
            check_change(database, context, Privileges::ALTER, kind, id, id, name)?;
            check_not_above(database, context, id, Privileges::ALTER, kind, name)?;
            let is_own = context.user(&database.catalog) == id;
            if id <= SUPER && !is_own && !context.origin.is_replay() && !is_almighty(database, context) {
                let asker = database.catalog.user_name(context.user(&database.catalog));
                return Err(denied(Privileges::ALTER, kind, name, &asker));
            }
            if known.is_some_and(|known| known.kind != user.kind) && !context.origin.is_replay() {
                return Err(Error::new(
                    ErrorCode::CreateUser,
                    &[&user.name, &"a user cannot become a role, nor a role a user"],
                ));
            }
        }
    }
    let made = Some(Rc::new(user));
    let before = database.catalog.set_user(id, made.clone());
    let back = move |database: &Database| drop(database.catalog.set_user(id, before.clone()));
    Ok(Some(Effect::of(back, move |database| drop(database.catalog.set_user(id, made.clone())))))
}

fn parse_grant(row: &[u8]) -> Result<Grant> {
    let mut fields = Fields::new(row)?;
    let grantor = fields.uint()?;
    let grantee = fields.uint()?;
    let type_name = fields.str()?;
    let object_type =
        ObjectType::from_name(type_name).ok_or_else(|| Error::new(ErrorCode::UnknownSchemaObject, &[&type_name]))?;
    let raw = fields.raw()?;
    let mut reader = Reader::new(raw);
    let object_id = match reader.kind() {
        // An empty string means every object of the kind.
        Ok(Kind::Str) => None,
        _ => match reader.read_uint().ok().and_then(|id| u32::try_from(id).ok()) {
            Some(id) => Some(id),
            None => return Err(Error::new(ErrorCode::FieldType, &[&4, &"unsigned"])),
        },
    };
    let privileges = fields.uint()?;
    Ok(Grant { grantor, grantee, object_type, object_id, privileges })
}

/// `wanted`: `GRANT` or `REVOKE`.
fn check_grant(database: &Database, context: &Context, grant: &Grant, wanted: u32) -> Result<()> {
    if context.origin.is_replay() {
        return Ok(());
    }
    let catalog = &database.catalog;
    let user = context.user(&database.catalog);
    let grantee = catalog.user(grant.grantee).ok_or_else(|| Error::new(ErrorCode::NoSuchUser, &[&grant.grantee]))?;
    let (owner, name) = match (grant.object_type, grant.object_id) {
        (ObjectType::Universe | ObjectType::Collation, _) | (_, None) => (ADMIN, String::new()),
        (ObjectType::Space, Some(id)) => {
            let space = database.space(SpaceId(id))?;
            (space.owner(), space.name())
        }
        (ObjectType::Function, Some(id)) => {
            let function = catalog.function(id).ok_or_else(|| Error::new(ErrorCode::NoSuchFunction, &[&id]))?;
            (function.owner, function.name.clone())
        }
        (ObjectType::Sequence, Some(id)) => {
            let sequence = catalog.sequence(id).ok_or_else(|| Error::new(ErrorCode::NoSuchSequence, &[&id]))?;
            (sequence.def().owner, sequence.def().name.clone())
        }
        (ObjectType::User, Some(id)) => {
            let target = catalog.user(id).ok_or_else(|| Error::new(ErrorCode::NoSuchUser, &[&id]))?;
            (target.owner, target.name.clone())
        }
        (ObjectType::Role, Some(id)) => {
            let role = catalog
                .user(id)
                .filter(|role| role.kind == UserKind::Role)
                .ok_or_else(|| Error::new(ErrorCode::NoSuchRole, &[&id]))?;
            if grantee.kind == UserKind::Role && catalog.role_contains(id, grant.grantee) {
                return Err(Error::new(ErrorCode::RoleLoop, &[&role.name, &grantee.name]));
            }
            (role.owner, role.name.clone())
        }
    };
    // Who gives a right is who asks, unless the right to grant in anybody's name was given.
    let rights = context.rights(catalog);
    let refuse = |by: UserId| Err(denied(wanted, grant.object_type, &name, &catalog.user_name(by)));
    if rights.universe & Privileges::USAGE == 0 && user != ADMIN {
        return Err(denied(Privileges::USAGE, ObjectType::Universe, "", &catalog.user_name(user)));
    }
    if grant.grantor != user && user != ADMIN && rights.universe & wanted == 0 {
        return refuse(user);
    }
    // Only the owner of an object and the administrator may give rights on it; `public` itself may be granted by all.
    let is_public = grant.object_type == ObjectType::Role && grant.object_id == Some(PUBLIC);
    if owner != grant.grantor && grant.grantor != ADMIN && !(is_public && grant.privileges == Privileges::EXECUTE) {
        return refuse(grant.grantor);
    }
    if wanted == Privileges::GRANT && grant.privileges == 0 {
        return Err(Error::new(ErrorCode::Grant, &[&"the grant tuple has no privileges"]));
    }
    if grant.grantee == ADMIN && grant.object_type == ObjectType::Universe && grant.privileges != u32::MAX {
        return Err(Error::new(ErrorCode::Grant, &[&"can't revoke universe from the admin user"]));
    }
    Ok(())
}

pub(super) fn on_priv(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let before = old.map(|old| parse_grant(old.data())).transpose()?;
    let after = new.map(|new| parse_grant(new.data())).transpose()?;
    let Some(grant) = after.clone().or_else(|| before.clone()) else {
        return Ok(None);
    };
    let wanted = if new.is_some() { Privileges::GRANT } else { Privileges::REVOKE };
    check_grant(database, context, &grant, wanted)?;
    let removed = Grant { privileges: 0, ..grant.clone() };
    let (before, after) = (before.unwrap_or_else(|| removed.clone()), after.unwrap_or(removed));
    database.catalog.set_grant(&after);
    let back = move |database: &Database| database.catalog.set_grant(&before);
    Ok(Some(Effect::of(back, move |database| database.catalog.set_grant(&after))))
}
