//! What differs between the dialects of SQL that are spoken here.

use crate::error::{Condition, Error, Result};
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Statement};
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::{Parser, ParserError};

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Of `box.execute` and IPROTO's EXECUTE.
    Tarantool,
    /// Of PostgreSQL's protocol.
    Postgres,
    /// Of MySQL's protocol.
    Mysql,
}

/// Expressions within expressions, and queries within queries.
const DEPTH_MAX: usize = 50;
/// Bytes of the text of a statement.
pub const TEXT_MAX: usize = 16 << 20;

impl Dialect {
    /// Takes a text apart into statements. Errors: `Syntax`, `LimitExceeded`.
    pub fn parse(self, text: &str) -> Result<Vec<Statement>> {
        if text.len() > TEXT_MAX {
            let what = format!("the statement has {} bytes, more than {TEXT_MAX}", text.len());
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        let parser = match self {
            Dialect::Tarantool => Parser::new(&SQLiteDialect {}),
            Dialect::Postgres => Parser::new(&PostgreSqlDialect {}),
            Dialect::Mysql => Parser::new(&MySqlDialect {}),
        };
        let parsed = parser.with_recursion_limit(DEPTH_MAX).try_with_sql(text).and_then(|mut parser| parser.parse_statements());
        parsed.map_err(|error| match error {
            ParserError::RecursionLimitExceeded => {
                Error::new(Condition::LimitExceeded, format!("the statement is nested deeper than {DEPTH_MAX}"))
            }
            ParserError::TokenizerError(what) | ParserError::ParserError(what) => self.syntax_error(&what),
        })
    }

    /// What the parser says, in the words of the dialect where it says which word it is about.
    fn syntax_error(self, what: &str) -> Error {
        let place = what.rsplit_once(", found: ").and_then(|(_, found)| found.split_once(" at Line: "));
        let (Some((word, place)), Dialect::Tarantool) = (place, self) else {
            return Error::new(Condition::Syntax, format!("syntax error: {what}"));
        };
        let line = place.split(',').next().unwrap_or("1");
        Error::new(Condition::Syntax, format!("Syntax error at line {line} near '{word}'"))
            .detail(what.to_string())
            .tarantool(database::ErrorCode::SqlSyntaxNearToken)
    }

    /// The name that an identifier means.
    pub fn fold(self, ident: &Ident) -> String {
        match (ident.quote_style, self) {
            (Some(_), _) | (None, Dialect::Mysql) => ident.value.clone(),
            (None, Dialect::Tarantool) => ident.value.to_uppercase(),
            (None, Dialect::Postgres) => ident.value.to_lowercase(),
        }
    }

    /// True if two names of columns or aliases are the same.
    pub(crate) fn is_same(self, a: &str, b: &str) -> bool {
        match self {
            Dialect::Mysql => a.eq_ignore_ascii_case(b),
            Dialect::Tarantool | Dialect::Postgres => a == b,
        }
    }

    /// The last part of a name: schemas and databases before it are there for those who name them.
    pub(crate) fn object_name(self, name: &ObjectName) -> Result<String> {
        match name.0.last() {
            Some(ObjectNamePart::Identifier(ident)) => Ok(self.fold(ident)),
            _ => Err(Error::new(Condition::Syntax, format!("'{name}' is no name"))),
        }
    }

    /// True if a quotient of whole numbers is a whole number.
    pub(crate) fn divides_whole(self) -> bool {
        self != Dialect::Mysql
    }

    /// True if nulls come before all others in ascending order.
    pub(crate) fn has_nulls_first(self) -> bool {
        self != Dialect::Postgres
    }

    /// True if a division by zero gives null and not an error.
    pub(crate) fn zero_gives_null(self) -> bool {
        self == Dialect::Mysql
    }
}
