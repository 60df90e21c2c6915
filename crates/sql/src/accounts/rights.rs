//! What rights of SQL are as privileges of `box.schema.user.grant`, and what was given as statements.

use super::{READ, ROWS, Rights, SHAPE};
use crate::error::{Error, Result};
use database::{Database, ObjectType, Privileges};

/// A set of rights by their words: those on rows of a table and on its shape.
pub(super) fn rights_on_rows(wanted: &[String]) -> Result<u32> {
    let mut rights = 0;
    for word in wanted {
        rights |= match word.as_str() {
            "all" => READ | Privileges::WRITE | Privileges::ALTER | Privileges::DROP,
            "select" => READ,
            "insert" => Privileges::INSERT,
            "update" => Privileges::UPDATE,
            "delete" => Privileges::DELETE,
            // It takes all rows and leaves nothing to take back.
            "truncate" => Privileges::WRITE,
            "alter" | "index" | "create" => Privileges::ALTER,
            "drop" => Privileges::DROP,
            "usage" | "references" | "trigger" | "show" | "lock" => 0,
            other => return Err(no_right(other)),
        };
    }
    // Who may do all three may write, for every program: Tarantool knows no finer rights.
    Ok(if rights & ROWS == ROWS { rights & !ROWS | Privileges::WRITE } else { rights })
}

/// The same on all tables, those to come too.
pub(super) fn rights_on_all(wanted: &[String]) -> Result<u32> {
    let mut rights = 0;
    let mut rest = Vec::new();
    for word in wanted {
        match word.as_str() {
            "all" => rights |= READ | Privileges::WRITE | Privileges::EXECUTE | SHAPE,
            "create" => rights |= Privileges::CREATE,
            "execute" => rights |= Privileges::EXECUTE,
            "temporary" | "event" | "process" | "reload" => {}
            "file" => return Err(no_right(word)),
            _ => rest.push(word.clone()),
        }
    }
    Ok(rights | rights_on_rows(&rest)?)
}

pub(super) fn of_sequences(wanted: &[String]) -> Result<u32> {
    wanted.iter().try_fold(0, |rights, word| {
        Ok(rights
            | match word.as_str() {
                "all" => READ | Privileges::WRITE,
                "select" => READ,
                "usage" | "update" => Privileges::WRITE,
                other => return Err(no_right(other)),
            })
    })
}

pub(super) fn of_functions(wanted: &[String]) -> Result<u32> {
    match wanted.iter().find(|word| !matches!(word.as_str(), "all" | "execute" | "usage")) {
        Some(word) => Err(no_right(word)),
        None => Ok(Privileges::EXECUTE),
    }
}

/// On a schema or a database: there is one.
pub(super) fn of_schema(wanted: &[String]) -> Result<Rights> {
    let mut rights = Rights::Nothing;
    for word in wanted {
        match word.as_str() {
            "all" | "create" => rights = Rights::Making(Privileges::CREATE),
            "usage" | "connect" | "temporary" | "temp" => {}
            other => return Err(no_right(other)),
        }
    }
    Ok(rights)
}

/// On a schema of a user's: what is in it has rights of its own. Errors: the right to make something there, which is given for all schemas together.
pub(super) fn of_own_schema(wanted: &[String]) -> Result<()> {
    for word in wanted {
        match word.as_str() {
            "usage" => {}
            "all" | "create" => {
                let hint = "GRANT CREATE ON SCHEMA public gives it for all schemas.";
                return Err(Error::unsupported("the right to create in one schema").hint(hint));
            }
            other => return Err(no_right(other)),
        }
    }
    Ok(())
}

fn no_right(word: &str) -> Error {
    Error::unsupported(format!("the right {} on this", word.to_uppercase()))
}

/// Names of rights as MySQL shows them.
const SHOWN: [(u32, &str); 9] = [
    (READ, "SELECT"),
    (Privileges::INSERT, "INSERT"),
    (Privileges::UPDATE, "UPDATE"),
    (Privileges::DELETE, "DELETE"),
    (Privileges::CREATE, "CREATE"),
    (Privileges::DROP, "DROP"),
    (Privileges::ALTER, "ALTER"),
    (Privileges::EXECUTE, "EXECUTE"),
    (Privileges::SESSION | Privileges::USAGE, ""),
];

fn shown_rights(rights: u32) -> String {
    let rights = if rights & Privileges::WRITE != 0 { rights | ROWS } else { rights };
    let names: Vec<&str> =
        SHOWN.iter().filter(|(bits, name)| !name.is_empty() && rights & bits == *bits).map(|(_, name)| *name).collect();
    if names.is_empty() { "USAGE".to_string() } else { names.join(", ") }
}

/// What an account was given, as statements of MySQL's dialect. `schema`: what the session calls the database.
pub(crate) fn shown_grants(database: &Database, id: database::UserId, schema: &str) -> Vec<String> {
    let catalog = &database.catalog;
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let to = format!("{}@`%`", quoted(&catalog.user_name(id)));
    let all = READ | Privileges::WRITE | Privileges::EXECUTE | SHAPE;
    let (mut shown, mut of_everything) = (Vec::new(), 0);
    for grant in catalog.grants().into_iter().filter(|grant| grant.grantee == id) {
        match (grant.object_type, grant.object_id) {
            (ObjectType::Universe, _) => of_everything |= grant.privileges,
            (ObjectType::Role, Some(database::PUBLIC)) => {}
            (ObjectType::Role, Some(role)) => {
                shown.push(format!("GRANT {}@`%` TO {to}", quoted(&catalog.user_name(role))))
            }
            (ObjectType::Space, None) => {
                shown.push(format!("GRANT {} ON {}.* TO {to}", shown_rights(grant.privileges), quoted(schema)));
            }
            (ObjectType::Space, Some(space)) => {
                if let Some(space) = database.space(tuple::SpaceId(space)).ok().filter(|known| !known.is_system()) {
                    let on = format!("{}.{}", quoted(schema), quoted(&space.name()));
                    shown.push(format!("GRANT {} ON {on} TO {to}", shown_rights(grant.privileges)));
                }
            }
            (ObjectType::Function, Some(function)) => {
                if let Some(function) = catalog.function(function) {
                    let on = format!("{}.{}", quoted(schema), quoted(&function.name));
                    shown.push(format!("GRANT EXECUTE ON FUNCTION {on} TO {to}"));
                }
            }
            _ => {}
        }
    }
    let first = if of_everything & all == all { "ALL PRIVILEGES".to_string() } else { shown_rights(of_everything) };
    shown.insert(0, format!("GRANT {first} ON *.* TO {to}"));
    shown
}
