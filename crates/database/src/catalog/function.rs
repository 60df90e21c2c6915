//! Registered functions.

use crate::session::{ADMIN, UserId};

/// One row of `_func`.
#[derive(Clone, Debug)]
pub struct Function {
    /// Number.
    pub id: u32,
    /// Who made it: setuid functions run as this user.
    pub owner: UserId,
    /// The name it is called by.
    pub name: String,
    /// Runs with the rights of its owner.
    pub is_setuid: bool,
    /// `LUA`, `C`, `SQL_BUILTIN`.
    pub language: String,
    /// Source text of a persistent function; empty if the name is looked up among the globals.
    pub body: String,
    /// Type of what it returns; nothing depends on it.
    pub returns: String,
    /// `none`, or `group` for SQL.
    pub aggregate: String,
    /// Gives many keys of a row.
    pub is_multikey: bool,
    /// Promises to return the same for the same arguments.
    pub is_deterministic: bool,
    /// Runs in an environment of its own.
    pub is_sandboxed: bool,
    /// Where it may be called from: `LUA`, `SQL`.
    pub exports: Vec<String>,
}

impl Function {
    /// True for the `LUA` of Tarantool's directories, which runs its argument as source text. There it is setuid and granted to everybody; here it
    /// runs with the rights of its caller, who needs the right to run anything.
    pub fn evaluates(&self) -> bool {
        self.owner == ADMIN && self.name == "LUA"
    }
}
