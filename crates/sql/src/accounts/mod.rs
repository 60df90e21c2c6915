//! CREATE USER, GRANT and their kin, of both dialects: accounts and rights are those of `box.schema.user` and `box.schema.role`.
//!
//! What a right of SQL is here stands in [`rights`]. A form that would give more than it says is refused.

mod rights;
mod run;
mod words;

pub(crate) use rights::shown_grants;
pub(crate) use run::run;
pub(crate) use words::parse;

use database::{ObjectType, Privileges};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A statement about accounts.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    /// It alone.
    pub(crate) text: String,
    pub(crate) tag: &'static str,
    changes: Vec<Change>,
    /// Accounts that were bound to the computers that they may come from.
    hosts: Vec<String>,
}

/// A user or a role.
#[derive(Clone, Debug, PartialEq)]
enum Who {
    Named(String),
    /// Whoever asks.
    Oneself,
}

#[derive(Clone, Debug)]
enum Change {
    Create {
        name: String,
        is_role: bool,
        if_absent: bool,
        /// What else is said of one that is new.
        then: Vec<Change>,
    },
    /// None: it has none any more, and nobody enters by it.
    Password {
        who: Who,
        password: Option<String>,
        if_there: bool,
    },
    /// May it open sessions?
    Login {
        who: Who,
        may: bool,
    },
    Drop {
        name: String,
        is_role: Option<bool>,
        if_there: bool,
    },
    Rights {
        what: Rights,
        to: Vec<Who>,
        is_given: bool,
    },
    Roles {
        roles: Vec<String>,
        to: Vec<Who>,
        is_given: bool,
    },
    /// All that it was given.
    RevokeAll(Who),
}

#[derive(Clone, Debug)]
enum Rights {
    /// On everything there is.
    Everything(u32),
    /// On all tables, those to come too.
    AllTables(u32),
    /// On all tables or sequences that there are in some schemas.
    Present(ObjectType, Vec<String>, u32),
    /// On schemas of users' own.
    Within(Vec<String>),
    /// On some.
    Named(ObjectType, Vec<String>, u32),
    /// To make tables and sequences.
    Making(u32),
    /// Those that everybody has.
    Nothing,
}

/// Accounts of one statement.
const NAMES_MAX: usize = 100;

const READ: u32 = Privileges::READ;
const ROWS: u32 = Privileges::INSERT | Privileges::UPDATE | Privileges::DELETE;
const SHAPE: u32 = Privileges::CREATE | Privileges::ALTER | Privileges::DROP;

/// True if a statement is one of these: its first words.
pub(crate) fn is_own(first: &str, second: &str, third: &str) -> bool {
    match first {
        "grant" | "revoke" => true,
        "create" | "alter" | "drop" => matches!(second, "user" | "role" | "group") && third != "mapping",
        _ => false,
    }
}

/// The same, of tokens with white space between them.
pub(crate) fn are_own(statement: &[TokenWithSpan]) -> bool {
    let mut words = statement.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    let mut next = || words.next().map_or_else(String::new, word_of);
    is_own(&next(), &next(), &next())
}

fn word_of(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::accounts::rights::rights_on_rows;
    use crate::dialect::Dialect;
    use crate::error::{Condition, Error, Result};
    use crate::mysql::Said;
    use std::rc::Rc;

    fn read(dialect: Dialect, text: &str) -> Result<Rc<Accounts>> {
        match dialect.statements(text)?.remove(0) {
            Said::Accounts(accounts) => Ok(accounts),
            _ => Err(Error::new(Condition::Other, "another statement")),
        }
    }

    #[test]
    fn rights_are_what_they_say_and_no_more() {
        let rights = |text: &str| rights_on_rows(&text.split(' ').map(str::to_string).collect::<Vec<_>>()).unwrap();
        assert_eq!(rights("select"), READ);
        assert_eq!(rights("select insert update"), READ | Privileges::INSERT | Privileges::UPDATE);
        assert_eq!(rights("insert update delete"), Privileges::WRITE);
        assert_eq!(rights("usage references"), 0);
        assert!(rights_on_rows(&["execute".to_string()]).is_err());
    }

    #[test]
    fn forms_that_would_give_more_than_they_say_are_refused() {
        for text in [
            "GRANT SELECT ON a.b TO c WITH GRANT OPTION",
            "GRANT SELECT (x) ON a TO c",
            "GRANT ALL ON *.* TO c REQUIRE SSL",
            "CREATE USER a IDENTIFIED BY PASSWORD '*AA'",
            "CREATE USER a IDENTIFIED BY 'x' PASSWORD EXPIRE",
            "CREATE USER a IDENTIFIED BY ''",
            "GRANT FILE ON *.* TO a",
            "GRANT CREATE USER ON *.* TO a",
            "GRANT SELECT ON a TO",
            "GRANT TO a",
            "DROP USER",
            "REVOKE ALL FROM a",
            "SET PASSWORD FOR a",
        ] {
            assert!(read(Dialect::Mysql, text).is_err(), "{text}");
        }
        for text in [
            "CREATE ROLE a CREATEROLE",
            "CREATE ROLE a VALID UNTIL '2030-01-01'",
            "CREATE ROLE a CONNECTION LIMIT 5",
            "ALTER ROLE a SET x = 1",
            "GRANT a TO b WITH ADMIN OPTION",
            "GRANT SELECT ON LARGE OBJECT 1 TO a",
            "GRANT CREATE ON TABLESPACE x TO a",
            "GRANT",
            "REVOKE GRANT OPTION FOR SELECT ON a FROM b",
        ] {
            assert!(read(Dialect::Postgres, text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_accounts_come_in_many_forms() {
        for text in [
            "DROP USER 'ann'@'%'",
            "DROP USER ann",
            "DROP USER `ann`@`10.0.0.1`",
            "DROP USER ann@localhost",
            "DROP USER ann@'%'",
        ] {
            let accounts = read(Dialect::Mysql, text).unwrap();
            assert!(
                matches!(&accounts.changes[..], [Change::Drop { name, .. }] if name == "ann"),
                "{text}: {accounts:?}"
            );
        }
        let accounts = read(Dialect::Postgres, "drop user Ann, \"Bob\"").unwrap();
        assert!(
            matches!(&accounts.changes[..], [Change::Drop { name: a, .. }, Change::Drop { name: b, .. }] if a == "ann" && b == "Bob")
        );
    }
}
