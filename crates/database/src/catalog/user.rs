//! Users and roles.

use crate::session::UserId;

/// A user logs in, a role is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// May open sessions.
    User,
    /// A set of grants.
    Role,
}

/// One row of `_user`.
#[derive(Clone, Debug)]
pub struct User {
    /// Number.
    pub id: UserId,
    /// Which of those that have had this number it is: numbers are given again, and sessions outlive their users.
    pub birth: u64,
    /// Who made it.
    pub owner: UserId,
    /// Name.
    pub name: String,
    /// User or role.
    pub kind: UserKind,
    /// sha1(sha1(password)) if there is a password.
    pub password_hash: Option<[u8; 20]>,
}
