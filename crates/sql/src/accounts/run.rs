//! Doing what such statements say.

use super::{Accounts, Change, READ, ROWS, Rights, SHAPE, Who};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::session::Session;
use crate::table::Table;
use database::{Context, Database, ObjectType, Privileges};
use tuple::msgpack;

/// Names of system spaces that somebody who makes tables writes to.
const SCHEMA_SPACES: [&str; 7] =
    ["_schema", "_space", "_index", "_sequence", "_sequence_data", "_space_sequence", "_func_index"];

/// Does what a statement says, with the rights of who asks. Errors: `AccessDenied`, `UndefinedAccount`, `DuplicateAccount`.
pub(crate) fn run(
    accounts: &Accounts,
    database: &Database,
    context: &Context,
    dialect: Dialect,
    session: Option<&Session>,
) -> Result<()> {
    let work = Work { database, context, dialect };
    for change in &accounts.changes {
        work.change(change)?;
    }
    for name in &accounts.hosts {
        let what = format!("'{name}' is not bound to a host: it may come from wherever a listener takes clients from");
        crate::mysql::assign::warn(session, Condition::Other, what);
    }
    Ok(())
}

struct Work<'a> {
    database: &'a Database,
    context: &'a Context,
    dialect: Dialect,
}

impl Work<'_> {
    fn call(&self, verb: &str, arguments: &[&str]) -> Result<()> {
        let mut encoded = Vec::new();
        msgpack::encode_array(&mut encoded, arguments.len() as u32 + 1);
        for argument in std::iter::once(&verb).chain(arguments) {
            msgpack::encode_str(&mut encoded, argument.as_bytes());
        }
        self.database.manage_accounts(self.context, &encoded).map_err(|error| {
            let error = Error::of_database(error, self.dialect);
            match error.condition() {
                Condition::AccessDenied => {
                    error.hint("Accounts are made by who may (the role super): log in as such a user. Rights are given by who owns the table.")
                }
                _ => error,
            }
        })
    }

    fn own_name(&self) -> String {
        self.database.catalog.user_name(self.database.user_of(&self.context.session))
    }

    fn name<'w>(&self, who: &'w Who, own: &'w mut String) -> &'w str {
        match who {
            Who::Named(name) => name,
            Who::Oneself => {
                *own = self.own_name();
                own
            }
        }
    }

    /// In whose name rights are given: an administrator gives those on what belongs to others, too. Empty: in that of who asks.
    fn grantor(&self) -> &'static str {
        let rights = self.database.catalog.rights_of(self.context.user(&self.database.catalog));
        if rights.universe & crate::catalog::EVERYTHING == crate::catalog::EVERYTHING { "admin" } else { "" }
    }

    /// The kind of an account. Errors: there is none of the name.
    fn is_role(&self, name: &str) -> Result<bool> {
        let known = self.database.catalog.user_by_name(name);
        known.map(|user| user.kind == database::UserKind::Role).ok_or_else(|| {
            let what = match self.dialect {
                Dialect::Mysql => format!("There is no account '{name}'"),
                _ => format!("role \"{name}\" does not exist"),
            };
            Error::new(Condition::UndefinedAccount, what)
        })
    }

    fn kind(&self, name: &str) -> Result<&'static str> {
        Ok(if self.is_role(name)? { "role" } else { "user" })
    }

    fn change(&self, change: &Change) -> Result<()> {
        let own = &mut String::new();
        match change {
            Change::Create { name, is_role, if_absent, then } => {
                if self.database.catalog.user_by_name(name).is_some() {
                    if *if_absent {
                        return Ok(());
                    }
                    let what = match self.dialect {
                        Dialect::Mysql => format!("Operation CREATE USER failed for '{name}'@'%': it is there"),
                        _ => format!("role \"{name}\" already exists"),
                    };
                    return Err(Error::new(Condition::DuplicateAccount, what));
                }
                self.call(if *is_role { "create_role" } else { "create_user" }, &[name])?;
                then.iter().try_for_each(|change| self.change(change))
            }
            Change::Password { who, password, if_there } => {
                let name = self.name(who, own);
                if *if_there && self.database.catalog.user_by_name(name).is_none() {
                    return Ok(());
                }
                if self.is_role(name)? {
                    return Err(Error::unsupported(format!(
                        "a password of \"{name}\", which is a role that nobody enters as,"
                    )));
                }
                match password {
                    None => self.call("no_password", &[name]),
                    Some(password) if name == self.own_name() => {
                        let known = self.database.catalog.user_by_name(name);
                        if known.is_none_or(|user| user.password_hash.is_none()) {
                            // It may be a listener's, and others', who would be kept out.
                            let what = format!("account '{name}' has no password: only an administrator gives it one");
                            return Err(Error::new(Condition::AccessDenied, what));
                        }
                        self.call("own_password", &[password])
                    }
                    Some(password) => self.call("password", &[name, password]),
                }
            }
            Change::Login { who, may } => {
                let name = self.name(who, own);
                if self.is_role(name)? {
                    return Err(Error::unsupported("LOGIN of a role that was made without it"));
                }
                self.call(if *may { "enable" } else { "disable" }, &[name, self.grantor()])
            }
            Change::Drop { name, is_role, if_there } => {
                let Some(known) = self.database.catalog.user_by_name(name) else {
                    return if *if_there { Ok(()) } else { self.is_role(name).map(drop) };
                };
                let kind = known.kind == database::UserKind::Role;
                if is_role.is_some_and(|wanted| wanted != kind) {
                    let what = format!("'{name}' is a {}", if kind { "role" } else { "user" });
                    return Err(Error::new(Condition::UndefinedAccount, what));
                }
                if self.database.is_needed_user(name) {
                    let what = match self.dialect {
                        Dialect::Mysql => format!("Operation DROP USER failed for '{name}'@'%': the system needs it"),
                        _ => format!("cannot drop role {name} because it is required by the database system"),
                    };
                    let error = Error::new(Condition::DependentObjects, what).mysql(1396);
                    return Err(error.hint("Clients of a listener act as this user if they name nobody else."));
                }
                if let Some(owned) = self.database.owned_by(known.id) {
                    let what = match self.dialect {
                        Dialect::Mysql => format!("Operation DROP USER failed for '{name}'@'%': {owned} is theirs"),
                        _ => format!("role \"{name}\" cannot be dropped because some objects depend on it"),
                    };
                    let error = Error::new(Condition::DependentObjects, what).detail(format!("owner of {owned}"));
                    return Err(error.hint("Drop what the account owns, or box.schema.user.drop does both."));
                }
                self.call(if kind { "drop_role" } else { "drop_user" }, &[name])
            }
            Change::RevokeAll(who) => {
                let name = self.name(who, own).to_string();
                self.call("revoke_all", &[self.kind(&name)?, &name])
            }
            Change::Roles { roles, to, is_given } => {
                for role in roles {
                    if !self.is_role(role)? {
                        return Err(Error::unsupported(format!("membership in \"{role}\", which is a user,")));
                    }
                    for who in to {
                        let name = self.name(who, own).to_string();
                        let verb = if *is_given { "grant_role" } else { "revoke_role" };
                        self.call(verb, &[self.kind(&name)?, &name, role, self.grantor()])?;
                    }
                }
                Ok(())
            }
            Change::Rights { what, to, is_given } => {
                for who in to {
                    let name = self.name(who, own).to_string();
                    let kind = self.kind(&name)?;
                    for (object_type, object, rights) in self.objects(what, *is_given)? {
                        if rights != 0 {
                            let verb = if *is_given { "grant" } else { "revoke" };
                            let rights = rights.to_string();
                            self.call(verb, &[kind, &name, &rights, object_type.name(), &object, self.grantor()])?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    /// A name of PostgreSQL's dialect as the catalog has it for the session that speaks.
    fn along_path(&self, name: &str) -> String {
        match self.dialect {
            crate::Dialect::Postgres => {
                let full = crate::schemas::along_path(self.database, crate::schemas::Kind::Relation, name);
                full.unwrap_or_else(|| name.to_string())
            }
            _ => name.to_string(),
        }
    }

    /// True if something of the catalog is in one of some schemas.
    fn is_within(&self, name: &str, schemas: &[String]) -> bool {
        let (schema, _) = crate::schemas::split(self.database, name);
        schemas.iter().any(|wanted| wanted == crate::schemas::schema_name(schema.as_deref()))
    }

    /// Errors: there is no such schema.
    fn check_schemas(&self, names: &[String]) -> Result<()> {
        let is_there = |name: &String| crate::schemas::by_name(self.database, name).is_some();
        names.iter().filter(|name| !is_there(name)).try_for_each(|name| crate::Dialect::Postgres.check_schema(name))
    }

    /// What rights are on, one after the other: an empty name stands for all of the kind.
    fn objects(&self, what: &Rights, is_given: bool) -> Result<Vec<(ObjectType, String, u32)>> {
        // Who has all rights to change rows has the one to write: taking one of them takes that.
        let taken = |rights: u32| if !is_given && rights & ROWS != 0 { rights | Privileges::WRITE } else { rights };
        let all = |rights: u32| {
            vec![
                (ObjectType::Space, String::new(), rights & !Privileges::EXECUTE),
                (ObjectType::Sequence, String::new(), rights & (READ | Privileges::WRITE | SHAPE)),
                (ObjectType::Function, String::new(), rights & Privileges::EXECUTE),
            ]
        };
        Ok(match what {
            Rights::Nothing => Vec::new(),
            Rights::Everything(rights) => vec![(ObjectType::Universe, String::new(), taken(*rights))],
            Rights::AllTables(rights) => {
                let mut objects = all(taken(*rights));
                if rights & Privileges::CREATE != 0 {
                    objects.extend(
                        SCHEMA_SPACES
                            .iter()
                            .map(|name| (ObjectType::Space, name.to_string(), READ | Privileges::WRITE)),
                    );
                }
                objects
            }
            Rights::Making(rights) => {
                let mut objects = all(*rights);
                objects.extend(
                    SCHEMA_SPACES.iter().map(|name| (ObjectType::Space, name.to_string(), READ | Privileges::WRITE)),
                );
                objects
            }
            Rights::Within(schemas) => {
                self.check_schemas(schemas)?;
                Vec::new()
            }
            Rights::Present(ObjectType::Sequence, schemas, rights) => {
                self.check_schemas(schemas)?;
                let names = self.database.catalog.sequences();
                let names = names.iter().map(|sequence| sequence.def().name.clone());
                let names = names.filter(|name| self.is_within(name, schemas));
                names.map(|name| (ObjectType::Sequence, name, *rights)).collect()
            }
            Rights::Present(_, schemas, rights) => {
                self.check_schemas(schemas)?;
                let spaces = self.database.catalog.spaces();
                let tables = spaces.iter().filter(|space| !space.is_system() && !space.def().is_session);
                let names = tables.map(|space| space.name()).filter(|name| self.is_within(name, schemas));
                names.map(|name| (ObjectType::Space, name, taken(*rights))).collect()
            }
            Rights::Named(ObjectType::Sequence, names, rights) if self.dialect == crate::Dialect::Postgres => {
                let full = |name: &String| self.along_path(name);
                names.iter().map(|name| (ObjectType::Sequence, full(name), *rights)).collect()
            }
            Rights::Named(ObjectType::Space, names, rights) => {
                let mut objects = Vec::with_capacity(names.len());
                for name in names {
                    let table = Table::find(self.database, self.dialect, &self.along_path(name))
                        .map_err(|error| error.freed_of_schemas(self.database, self.dialect))?;
                    objects.push((ObjectType::Space, table.space.name(), taken(*rights)));
                }
                objects
            }
            Rights::Named(kind, names, rights) => names.iter().map(|name| (*kind, name.clone(), *rights)).collect(),
        })
    }
}
