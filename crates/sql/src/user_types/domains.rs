//! CREATE, ALTER and DROP of domains.

use super::conditions::has_conditions_of;
use super::ddl::{check_owner, columns_of, missing, put_new, rename};
use super::{Domain, KEY, UserType, by_name, encode_domain, encode_kind, shown_name};
use crate::bind::Binder;
use crate::comments::put_below;
use crate::ddl::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::written::written;
use sqlparser::ast::{self, AlterTableOperation, ColumnOption};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::rc::Rc;

/// The schema of a table that CREATE DOMAIN is written as: its one column is the domain.
const DOMAIN_MARK: &str = "create domain";

/// The schema of a table that ALTER DOMAIN is written about.
const ALTERED_MARK: &str = "alter domain";
/// The same of ALTER TYPE ... OWNER TO.
const GIVEN_MARK: &str = "alter type";

/// `CREATE DOMAIN name AS type ...` as `CREATE TABLE "create domain".name (value type ...)`, whose column has all that a domain may have; `ALTER DOMAIN name ...`
/// as ALTER TABLE of such a table.
pub(crate) fn respell(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: Option<&TokenWithSpan>, wanted: &str| {
        matches!(token.map(|token| &token.token), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
    };
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let is_it = |tokens: &[TokenWithSpan]| {
        let mut words = tokens.iter().filter(is_seen);
        let first = words.next();
        let second = words.next();
        match is_word(first, "alter") && is_word(second, "type") {
            true => is_word(words.filter(|token| token.token != Token::EOF).rev().nth(2), "owner"),
            false => (is_word(first, "create") || is_word(first, "alter")) && is_word(second, "domain"),
        }
    };
    if !tokens.split(|token| token.token == Token::SemiColon).any(is_it) {
        return;
    }
    let mut out = Vec::with_capacity(tokens.len() + 8);
    for (number, statement) in tokens.split(|token| token.token == Token::SemiColon).enumerate() {
        if number > 0 {
            out.push(TokenWithSpan::wrap(Token::SemiColon));
        }
        if !is_it(statement) {
            out.extend_from_slice(statement);
            continue;
        }
        let mut rest = statement.iter().filter(is_seen).filter(|token| token.token != Token::EOF).peekable();
        let creates = is_word(rest.next(), "create");
        let mark = match (creates, is_word(rest.next(), "type")) {
            (true, _) => DOMAIN_MARK,
            (false, false) => ALTERED_MARK,
            (false, true) => GIVEN_MARK,
        };
        let span = rest.peek().map_or_else(sqlparser::tokenizer::Span::empty, |token| token.span);
        let mut put = |token: Token| {
            out.push(TokenWithSpan { token, span });
            out.push(TokenWithSpan { token: Token::Whitespace(sqlparser::tokenizer::Whitespace::Space), span });
        };
        put(Token::make_keyword(if creates { "CREATE" } else { "ALTER" }));
        put(Token::make_keyword("TABLE"));
        put(Token::make_word(mark, Some('"')));
        put(Token::Period);
        // The name, which may have a schema before it.
        while let Some(token) = rest.next() {
            put(token.token.clone());
            if rest.next_if(|token| token.token == Token::Period).is_none() {
                break;
            }
            put(Token::Period);
        }
        if !creates {
            let rest: Vec<&TokenWithSpan> = rest.collect();
            let is_of_value = (is_word(rest.first().copied(), "set") || is_word(rest.first().copied(), "drop"))
                && (is_word(rest.get(1).copied(), "default") || is_word(rest.get(1).copied(), "not"));
            if is_of_value {
                put(Token::make_keyword("ALTER"));
                put(Token::make_keyword("COLUMN"));
                put(Token::make_word("value", Some('"')));
            }
            rest.iter().for_each(|token| put(token.token.clone()));
            continue;
        }
        rest.next_if(|token| is_word(Some(token), "as"));
        put(Token::LParen);
        put(Token::make_word("value", Some('"')));
        rest.for_each(|token| put(token.token.clone()));
        put(Token::RParen);
    }
    *tokens = out;
}

/// True for a CREATE TABLE that stands for CREATE DOMAIN.
pub(crate) fn is_domain(create: &ast::CreateTable) -> bool {
    let schema = create.name.0.first().and_then(|part| part.as_ident());
    create.name.0.len() > 1 && schema.is_some_and(|schema| schema.value == DOMAIN_MARK)
}

/// The tag of what an ALTER TABLE stands for, if that is ALTER DOMAIN, or ALTER TYPE ... OWNER TO.
pub(crate) fn altered(alter: &ast::AlterTable) -> Option<&'static str> {
    let schema = alter.name.0.first().and_then(|part| part.as_ident()).filter(|_| alter.name.0.len() > 1)?;
    match schema.value.as_str() {
        ALTERED_MARK => Some("ALTER DOMAIN"),
        GIVEN_MARK => Some("ALTER TYPE"),
        _ => None,
    }
}

/// CREATE DOMAIN. Errors: the name is there; a type that is not; what no domain can have.
pub(crate) fn create_domain(ddl: &Ddl<'_>, create: &ast::CreateTable) -> Result<u64> {
    let name = ast::ObjectName(create.name.0[1..].to_vec());
    let [column] = create.columns.as_slice() else {
        return Err(Error::new(Condition::Syntax, "syntax error in CREATE DOMAIN"));
    };
    let folded = ddl.dialect.object_name(&name)?;
    let base = super::resolve(ddl.database, ddl.dialect, &column.data_type)?;
    let mut domain = Domain {
        base: base.declared.clone().unwrap_or_else(|| written(ddl.dialect, &column.data_type)),
        // One that is made of another domain begins with what that has.
        default: base.domain().and_then(|below| below.domain()?.default.clone()),
        is_not_null: false,
        checks: Vec::new(),
    };
    let (mut nullable, mut has_default) = (None, false);
    let mut conditions = Vec::new();
    for option in &column.options {
        match &option.option {
            ColumnOption::Default(expr) if !has_default => {
                has_default = true;
                domain.default = default_of(expr);
            }
            ColumnOption::Default(_) => return Err(Error::new(Condition::Syntax, "multiple default expressions")),
            ColumnOption::Null | ColumnOption::NotNull => {
                let may_be = matches!(option.option, ColumnOption::Null);
                if nullable.is_some_and(|known| known != may_be) {
                    return Err(Error::new(Condition::Syntax, "conflicting NULL/NOT NULL constraints"));
                }
                nullable = Some(may_be);
            }
            ColumnOption::Check(check) => {
                let named = option.name.as_ref().or(check.name.as_ref()).map(|name| ddl.dialect.fold(name));
                conditions.push((named, written(ddl.dialect, &check.expr)));
            }
            ColumnOption::Collation(name) if crate::dialect::is_plain_collation(ddl.dialect, name) => {}
            ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_) => {
                let kind = if matches!(option.option, ColumnOption::Unique(_)) { "unique" } else { "primary key" };
                return Err(Error::new(Condition::Syntax, format!("{kind} constraints not possible for domains")));
            }
            ColumnOption::ForeignKey(_) => {
                return Err(Error::new(Condition::Syntax, "foreign key constraints not possible for domains"));
            }
            other => return Err(Error::unsupported(format!("'{other}' of a domain"))),
        }
    }
    domain.is_not_null = nullable == Some(false);
    for (named, condition) in conditions {
        add_check(&mut domain, ddl.local(&folded), named, condition)?;
    }
    // What is no condition of such values, or no default, is refused now.
    let binder = Binder::new(ddl.database, ddl.dialect);
    binder.check_domain(&domain, base.ty)?;
    sort_checks(&mut domain);
    put_new(ddl, &name, "domain", encode_domain(&domain))
}

/// A default as it is kept: that it is null need not be said.
fn default_of(expr: &ast::Expr) -> Option<String> {
    Some(written(Dialect::Postgres, expr)).filter(|text| !text.eq_ignore_ascii_case("null"))
}

/// In the order of their names, as they are looked at there.
fn sort_checks(domain: &mut Domain) {
    domain.checks.sort();
}

/// Errors: the name is that of another condition.
fn add_check(domain: &mut Domain, name: &str, named: Option<String>, condition: String) -> Result<()> {
    let is_free = |name: &String| !domain.checks.iter().any(|(known, _)| known == name);
    let given = named.is_some();
    let mut numbered = (1..).map(|number| format!("{name}_check{number}"));
    let mut chosen = named.unwrap_or_else(|| format!("{name}_check"));
    while !is_free(&chosen) {
        if given {
            let what = format!("constraint \"{chosen}\" for domain {} already exists", shown_name(name));
            return Err(Error::new(Condition::DuplicateObject, what));
        }
        chosen = numbered.next().unwrap_or_default();
    }
    domain.checks.push((chosen, condition));
    Ok(())
}

/// ALTER DOMAIN, and ALTER TYPE ... OWNER TO. Errors: it is not there or is none; the user is not its owner; values of columns that do not fulfil a new condition.
pub(crate) fn alter_domain(ddl: &Ddl<'_>, alter: &ast::AlterTable) -> Result<u64> {
    let name = ddl.dialect.object_name(&ast::ObjectName(alter.name.0[1..].to_vec()))?;
    let user = by_name(ddl.database, &name).ok_or_else(|| missing(&name))?;
    if user.domain().is_none() && altered(alter) == Some("ALTER DOMAIN") {
        return Err(Error::new(Condition::NotUpdatable, format!("{} is not a domain", shown_name(&name))));
    }
    check_owner(ddl, &user)?;
    for operation in &alter.operations {
        ddl.at_once(|| change(ddl, &by_name(ddl.database, &name).unwrap_or_else(|| Rc::clone(&user)), operation))?;
    }
    Ok(0)
}

fn change(ddl: &Ddl<'_>, user: &Rc<UserType>, operation: &AlterTableOperation) -> Result<()> {
    use ast::AlterColumnOperation as Op;
    if let AlterTableOperation::OwnerTo { new_owner } = operation {
        return super::ddl::give(ddl, user, new_owner);
    }
    let Some(mut domain) = user.domain().cloned() else { return Ok(()) };
    let mut is_stricter = false;
    match operation {
        AlterTableOperation::AlterColumn { op: Op::SetDefault { value }, .. } => domain.default = default_of(value),
        AlterTableOperation::AlterColumn { op: Op::DropDefault, .. } => domain.default = None,
        AlterTableOperation::AlterColumn { op: Op::SetNotNull, .. } => {
            (is_stricter, domain.is_not_null) = (!domain.is_not_null, true);
        }
        AlterTableOperation::AlterColumn { op: Op::DropNotNull, .. } => domain.is_not_null = false,
        AlterTableOperation::AddConstraint { constraint: ast::TableConstraint::Check(check), not_valid } => {
            let named = check.name.as_ref().map(|name| ddl.dialect.fold(name));
            add_check(&mut domain, &user.name, named, written(ddl.dialect, &check.expr))?;
            is_stricter = !not_valid;
        }
        AlterTableOperation::DropConstraint { name, if_exists, .. } => {
            let name = ddl.dialect.fold(name);
            let count = domain.checks.len();
            domain.checks.retain(|(known, _)| *known != name);
            if domain.checks.len() == count {
                return if *if_exists { Ok(()) } else { Err(no_constraint(user, &name)) };
            }
        }
        AlterTableOperation::RenameConstraint { old_name, new_name } => {
            let (old, new) = (ddl.dialect.fold(old_name), ddl.dialect.fold(new_name));
            if domain.checks.iter().any(|(known, _)| *known == new) {
                let what = format!("constraint \"{new}\" for domain {} already exists", shown_name(&user.name));
                return Err(Error::new(Condition::DuplicateObject, what));
            }
            let known = domain.checks.iter_mut().find(|(known, _)| *known == old);
            known.ok_or_else(|| no_constraint(user, &old))?.0 = new;
        }
        AlterTableOperation::ValidateConstraint { name } => {
            let name = ddl.dialect.fold(name);
            if !domain.checks.iter().any(|(known, _)| *known == name) {
                return Err(no_constraint(user, &name));
            }
            is_stricter = true;
        }
        AlterTableOperation::RenameTable {
            table_name: ast::RenameTableNameKind::To(name) | ast::RenameTableNameKind::As(name),
        } => return rename(ddl, user, &ddl.dialect.object_name(name)?).map(drop),
        other => return Err(Error::unsupported(format!("ALTER DOMAIN '{other}'"))),
    }
    let base = super::of_declared(ddl.database, &user.declared())
        .ok_or_else(|| Error::new(Condition::UndefinedObject, "the type of the domain is gone"))?;
    Binder::new(ddl.database, ddl.dialect).check_domain(&domain, base.ty)?;
    sort_checks(&mut domain);
    put_below(ddl, user.space, KEY, Some(encode_kind("domain", encode_domain(&domain))))?;
    match is_stricter {
        true => look_at_values(ddl, user),
        false => Ok(()),
    }
}

/// Errors: a value of a column, which is of the domain in some way, does not fulfil its conditions.
///
/// What is written meanwhile meets the transaction: it has read all rows.
fn look_at_values(ddl: &Ddl<'_>, user: &Rc<UserType>) -> Result<()> {
    for other in super::all(ddl.database) {
        let is_other = other.space != user.space;
        if is_other && (other.domain().is_none() || !has_conditions_of(ddl.database, &other, user.space)) {
            continue;
        }
        for (table, at) in columns_of(ddl, &other) {
            if !table.space.has_rows() || table.space.index_defs().is_empty() {
                continue;
            }
            let declared = table.columns[at].raw_declared.clone().unwrap_or_default();
            let broken = ddl.as_admin(|| super::conditions::look_at_column(ddl, &table, at, &declared))?;
            if let Some(why) = broken {
                let (column, name) = (&table.columns[at].name, &table.name);
                let (condition, what) = match why.condition() {
                    Condition::NotNull => {
                        (Condition::NotNull, format!("column \"{column}\" of table \"{name}\" contains null values"))
                    }
                    Condition::CheckViolation => (
                        Condition::CheckViolation,
                        format!(
                            "column \"{column}\" of table \"{name}\" contains values that violate the new constraint"
                        ),
                    ),
                    _ => return Err(why),
                };
                return Err(Error::new(condition, what).about(name, Some(column), None));
            }
        }
    }
    Ok(())
}

fn no_constraint(user: &UserType, name: &str) -> Error {
    let what = format!("constraint \"{name}\" of domain \"{}\" does not exist", user.name);
    Error::new(Condition::UndefinedObject, what)
}

/// DROP DOMAIN. Errors: as of DROP TYPE; it is none.
pub(crate) fn drop_domain(ddl: &Ddl<'_>, drop: &ast::DropDomain) -> Result<u64> {
    let name = ddl.dialect.object_name(&drop.name)?;
    if by_name(ddl.database, &name).is_some_and(|user| user.domain().is_none()) {
        return Err(Error::new(Condition::NotUpdatable, format!("\"{name}\" is not a domain")));
    }
    let cascade = drop.drop_behavior == Some(ast::DropBehavior::Cascade);
    super::drop_types(ddl, std::slice::from_ref(&drop.name), drop.if_exists, cascade)
}
