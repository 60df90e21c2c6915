//! Who may do what: privilege bits, the objects they are granted on, and the rights of a user through roles.

use crate::error::{Error, ErrorCode, Result};
use crate::session::{ADMIN, UserId};
use hashbrown::HashMap;

/// A set of privileges, by Tarantool's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges(pub u32);

impl Privileges {
    /// Read.
    pub const READ: u32 = 1;
    /// Write.
    pub const WRITE: u32 = 2;
    /// Execute a function, have a role.
    pub const EXECUTE: u32 = 4;
    /// Open a session.
    pub const SESSION: u32 = 8;
    /// Use anything at all.
    pub const USAGE: u32 = 16;
    /// Create objects.
    pub const CREATE: u32 = 32;
    /// Drop objects.
    pub const DROP: u32 = 64;
    /// Alter objects.
    pub const ALTER: u32 = 128;
    /// Put in new rows, where there is no right to write.
    pub const INSERT: u32 = 1 << 10;
    /// Change rows, likewise.
    pub const UPDATE: u32 = 1 << 11;
    /// Remove rows, likewise.
    pub const DELETE: u32 = 1 << 12;
    /// Give rights to others.
    pub(crate) const GRANT: u32 = 1 << 13;
    /// Take rights from others.
    pub(crate) const REVOKE: u32 = 1 << 14;
}

const NAMES: [&str; 15] = [
    "Read",
    "Write",
    "Execute",
    "Session",
    "Usage",
    "Create",
    "Drop",
    "Alter",
    "Reference",
    "Trigger",
    "Insert",
    "Update",
    "Delete",
    "Grant",
    "Revoke",
];

/// Name of the lowest privilege of a set, as errors print it.
pub(crate) fn privilege_name(bits: u32) -> &'static str {
    NAMES.get(bits.trailing_zeros() as usize).copied().unwrap_or("Unknown")
}

/// What privileges are granted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectType {
    /// Everything.
    Universe,
    /// A space.
    Space,
    /// A function.
    Function,
    /// A user.
    User,
    /// A role.
    Role,
    /// A sequence.
    Sequence,
    /// A collation. Nothing is granted on one: changing it takes a right on everything.
    Collation,
}

impl ObjectType {
    /// By the name in `_priv`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "universe" => ObjectType::Universe,
            "space" => ObjectType::Space,
            "function" => ObjectType::Function,
            "user" => ObjectType::User,
            "role" => ObjectType::Role,
            "sequence" => ObjectType::Sequence,
            _ => return None,
        })
    }

    /// The name in `_priv`.
    pub fn name(self) -> &'static str {
        match self {
            ObjectType::Universe => "universe",
            ObjectType::Space => "space",
            ObjectType::Function => "function",
            ObjectType::User => "user",
            ObjectType::Role => "role",
            ObjectType::Sequence => "sequence",
            ObjectType::Collation => "collation",
        }
    }
}

/// One row of `_priv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who gave it.
    pub grantor: UserId,
    /// Who has it.
    pub grantee: UserId,
    /// On what kind of object.
    pub object_type: ObjectType,
    /// On which; `None` means all of the kind.
    pub object_id: Option<u32>,
    /// What.
    pub privileges: u32,
}

/// Everything a user may do, roles included.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// On everything.
    pub universe: u32,
    kinds: HashMap<ObjectType, u32>,
    objects: HashMap<(ObjectType, u32), u32>,
}

impl Rights {
    /// Adds a grant.
    pub fn add(&mut self, grant: &Grant) {
        match (grant.object_type, grant.object_id) {
            (ObjectType::Universe, _) => self.universe |= grant.privileges,
            (kind, None) => *self.kinds.entry(kind).or_default() |= grant.privileges,
            (kind, Some(id)) => *self.objects.entry((kind, id)).or_default() |= grant.privileges,
        }
    }

    /// What is granted on one object, through the universe and the whole kind too.
    pub fn on(&self, kind: ObjectType, id: u32) -> u32 {
        self.universe | self.kinds.get(&kind).copied().unwrap_or(0) | self.on_object(kind, id)
    }

    /// What is granted on one object by its number.
    pub fn on_object(&self, kind: ObjectType, id: u32) -> u32 {
        self.objects.get(&(kind, id)).copied().unwrap_or(0)
    }

    /// What is granted on all objects of a kind.
    pub fn on_kind(&self, kind: ObjectType) -> u32 {
        self.universe | self.kinds.get(&kind).copied().unwrap_or(0)
    }
}

/// The check itself: `wanted` bits on an object owned by `owner`.
///
/// Errors: `AccessDenied` naming the first missing privilege, the object and the user.
#[expect(clippy::too_many_arguments, reason = "each is a different fact of one question")]
pub(crate) fn check(
    rights: &Rights,
    user: UserId,
    user_name: impl Fn() -> String,
    wanted: u32,
    kind: ObjectType,
    id: u32,
    owner: UserId,
    object_name: &str,
) -> Result<()> {
    if rights.universe & (wanted | Privileges::USAGE) == wanted | Privileges::USAGE || user == ADMIN {
        return Ok(());
    }
    if rights.universe & Privileges::USAGE == 0 {
        return Err(denied(Privileges::USAGE, ObjectType::Universe, "", &user_name()));
    }
    let missing = wanted & !rights.on(kind, id);
    if missing == 0 || owner == user {
        return Ok(());
    }
    Err(denied(missing, kind, object_name, &user_name()))
}

/// The error for a missing right.
pub(crate) fn denied(missing: u32, kind: ObjectType, object_name: &str, user_name: &str) -> Error {
    Error::new(ErrorCode::AccessDenied, &[&privilege_name(missing), &kind.name(), &object_name, &user_name])
        .with("access_type", privilege_name(missing))
        .with("object_type", kind.name())
        .with("object_name", object_name)
        .with("user", user_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(object_type: ObjectType, object_id: Option<u32>, privileges: u32) -> Grant {
        Grant { grantor: ADMIN, grantee: 40, object_type, object_id, privileges }
    }

    #[test]
    fn a_grant_on_one_space_opens_that_space_only() {
        let mut rights = Rights::default();
        rights.add(&grant(ObjectType::Universe, None, Privileges::USAGE | Privileges::SESSION));
        rights.add(&grant(ObjectType::Space, Some(512), Privileges::READ));
        let ask = |id, wanted| check(&rights, 40, || "u".into(), wanted, ObjectType::Space, id, ADMIN, "s");
        assert!(ask(512, Privileges::READ).is_ok());
        let error = ask(512, Privileges::WRITE).expect_err("not granted");
        assert_eq!(error.message(), "Write access to space 's' is denied for user 'u'");
        assert!(ask(513, Privileges::READ).is_err());
    }
}
