//! CREATE, ALTER and DROP of types.

use super::{
    Domain, KEY, Kind, LABEL_MAX, Label, UserType, VALUES_MAX, by_name, encode_domain, encode_kind, encode_labels,
    shown_name,
};
use crate::bind::Binder;
use crate::comments::put_below;
use crate::ddl::{Ddl, encoded_key};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use crate::types::Base;
use crate::value::Value;
use database::{Operation, SPACE_ID, Space};
use sqlparser::ast::{self, AlterTypeAddValuePosition as Position, AlterTypeOperation, ColumnOption};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::rc::Rc;
use tuple::{IndexId, msgpack};

/// The schema of a table that CREATE DOMAIN is written as: its one column is the domain.
const DOMAIN_MARK: &str = "create domain";

/// `CREATE DOMAIN name AS type ...` as `CREATE TABLE "create domain".name (value type ...)`, whose column has all that a domain may have.
pub(crate) fn respell(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: Option<&TokenWithSpan>, wanted: &str| {
        matches!(token.map(|token| &token.token), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
    };
    let is_seen = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let is_it = |tokens: &[TokenWithSpan]| {
        let mut words = tokens.iter().filter(is_seen);
        is_word(words.next(), "create") && is_word(words.next(), "domain")
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
        let mut rest = statement.iter().filter(is_seen).filter(|token| token.token != Token::EOF).skip(2).peekable();
        let span = rest.peek().map_or_else(sqlparser::tokenizer::Span::empty, |token| token.span);
        let mut put = |token: Token| {
            out.push(TokenWithSpan { token, span });
            out.push(TokenWithSpan { token: Token::Whitespace(sqlparser::tokenizer::Whitespace::Space), span });
        };
        put(Token::make_keyword("CREATE"));
        put(Token::make_keyword("TABLE"));
        put(Token::make_word(DOMAIN_MARK, Some('"')));
        put(Token::Period);
        // The name, which may have a schema before it.
        while let Some(token) = rest.next() {
            put(token.token.clone());
            if rest.next_if(|token| token.token == Token::Period).is_none() {
                break;
            }
            put(Token::Period);
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

fn already(what: &str, name: &str) -> Error {
    Error::new(Condition::DuplicateObject, format!("{what} \"{name}\" already exists"))
}

fn missing(name: &str) -> Error {
    Error::new(Condition::UndefinedObject, format!("type \"{name}\" does not exist"))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Errors: the text can be none of a value.
fn check_label(text: &str) -> Result<()> {
    match text.len() > LABEL_MAX {
        true => {
            let what = format!("invalid enum label \"{text}\"");
            let detail = format!("Labels must be {LABEL_MAX} bytes or less.");
            Err(Error::new(Condition::InvalidName, what).detail(detail))
        }
        false => Ok(()),
    }
}

fn check_count(count: usize) -> Result<()> {
    match count > VALUES_MAX {
        true => Err(Error::new(Condition::LimitExceeded, format!("a type has at most {VALUES_MAX} values"))),
        false => Ok(()),
    }
}

/// CREATE TYPE ... AS ENUM. Errors: the name is there; values that are none.
pub(crate) fn create_enum(ddl: &Ddl<'_>, name: &ast::ObjectName, labels: &[ast::Ident]) -> Result<u64> {
    check_count(labels.len())?;
    let mut known: Vec<Label> = Vec::with_capacity(labels.len());
    for (label, number) in labels.iter().zip(1..) {
        check_label(&label.value)?;
        known.push(Label { number: Value::Int(number), text: label.value.as_str().into() });
    }
    let mut texts: Vec<&str> = known.iter().map(|label| &*label.text).collect();
    texts.sort_unstable();
    if texts.windows(2).any(|pair| pair[0] == pair[1]) {
        let what = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
        return Err(Error::new(Condition::UniqueViolation, what));
    }
    put_new(ddl, name, "enum", encode_labels(&known))
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
        base: base.declared.clone().unwrap_or_else(|| column.data_type.to_string()),
        default: None,
        is_not_null: false,
        checks: Vec::new(),
    };
    let mut nullable = None;
    let mut conditions = Vec::new();
    for option in &column.options {
        match &option.option {
            ColumnOption::Default(expr) if domain.default.is_none() => domain.default = Some(expr.to_string()),
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
                conditions.push((named, check.expr.to_string()));
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
        let is_free = |name: &String| !domain.checks.iter().any(|(known, _)| known == name);
        let given = named.is_some();
        let mut numbered = (1..).map(|number| format!("{folded}_check{number}"));
        let mut chosen = named.unwrap_or_else(|| format!("{folded}_check"));
        while !is_free(&chosen) {
            if given {
                let what = format!("constraint \"{chosen}\" for domain {} already exists", shown_name(&folded));
                return Err(Error::new(Condition::DuplicateObject, what));
            }
            chosen = numbered.next().unwrap_or_default();
        }
        domain.checks.push((chosen, condition));
    }
    // What is no condition of such values, or no default, is refused now.
    let binder = Binder::new(ddl.database, ddl.dialect);
    binder.check_domain(&domain, base.ty)?;
    // In the order of their names, as they are looked at there.
    domain.checks.sort();
    put_new(ddl, &name, "domain", encode_domain(&domain))
}

fn put_new(ddl: &Ddl<'_>, name: &ast::ObjectName, kind: &str, definition: Vec<u8>) -> Result<u64> {
    let name = ddl.dialect.object_name(name)?;
    let catalog = &ddl.database.catalog;
    if catalog.space_by_name(&name).is_some() {
        return Err(already("type", &name));
    }
    let id = ddl.as_admin(|| ddl.new_space_id())?;
    let mut below = Vec::new();
    msgpack::encode_map(&mut below, 1);
    msgpack::encode_str(&mut below, KEY.as_bytes());
    below.extend_from_slice(&encode_kind(kind, definition));
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 7);
    msgpack::encode_uint(&mut row, id);
    msgpack::encode_uint(&mut row, u64::from(ddl.context.user(catalog)));
    msgpack::encode_str(&mut row, name.as_bytes());
    msgpack::encode_str(&mut row, b"memtx");
    msgpack::encode_uint(&mut row, 0);
    msgpack::encode_map(&mut row, 1);
    msgpack::encode_str(&mut row, b"checks");
    row.extend_from_slice(&below);
    msgpack::encode_array(&mut row, 0);
    ddl.execute(SPACE_ID, Operation::Insert { tuple: &row })?;
    Ok(1)
}

/// The type of a name. Errors: it is not there; the user is not its owner.
fn owned(ddl: &Ddl<'_>, name: &ast::ObjectName) -> Result<Rc<UserType>> {
    let name = ddl.dialect.object_name(name)?;
    let user = by_name(ddl.database, &name).ok_or_else(|| missing(&name))?;
    check_owner(ddl, &user)?;
    Ok(user)
}

fn check_owner(ddl: &Ddl<'_>, user: &UserType) -> Result<()> {
    match user.owner == ddl.context.user(&ddl.database.catalog) || ddl.database.is_almighty(ddl.context) {
        true => Ok(()),
        false => Err(Error::new(Condition::AccessDenied, format!("must be owner of type {}", shown_name(&user.name)))),
    }
}

fn no_label(text: &str) -> Error {
    Error::new(Condition::InvalidArgument, format!("\"{text}\" is not an existing enum label"))
}

/// ALTER TYPE. Errors: it is not there; the user is not its owner; values that are there or are not.
pub(crate) fn alter(ddl: &Ddl<'_>, alter: &ast::AlterType) -> Result<u64> {
    let user = owned(ddl, &alter.name)?;
    if let AlterTypeOperation::Rename(rename) = &alter.operation {
        return self::rename(ddl, &user, &ddl.dialect.fold(&rename.new_name));
    }
    let Some(labels) = user.labels() else {
        let what = format!("\"{}\" is not an enum", user.name);
        return Err(Error::new(Condition::NotUpdatable, what));
    };
    let mut labels = labels.to_vec();
    let place = |labels: &[Label], text: &str| labels.iter().position(|label| &*label.text == text);
    match &alter.operation {
        AlterTypeOperation::AddValue(add) => {
            check_label(&add.value.value)?;
            if place(&labels, &add.value.value).is_some() {
                return if add.if_not_exists { Ok(0) } else { Err(already("enum label", &add.value.value)) };
            }
            check_count(labels.len() + 1)?;
            let at = match &add.position {
                None => labels.len(),
                Some(Position::Before(other)) => place(&labels, &other.value).ok_or_else(|| no_label(&other.value))?,
                Some(Position::After(other)) => place(&labels, &other.value).ok_or_else(|| no_label(&other.value))? + 1,
            };
            let number = number_at(&labels, at)?;
            labels.insert(at, Label { number, text: add.value.value.as_str().into() });
        }
        AlterTypeOperation::RenameValue(rename) => {
            let (from, to) = (&rename.from.value, &rename.to.value);
            check_label(to)?;
            let at = place(&labels, from).ok_or_else(|| no_label(from))?;
            if place(&labels, to).is_some() {
                return Err(already("enum label", to));
            }
            labels[at].text = to.as_str().into();
            rename_defaults(ddl, &user, from, to)?;
        }
        AlterTypeOperation::Rename(_) => return Ok(0),
    }
    put_below(ddl, user.space, KEY, Some(encode_kind("enum", encode_labels(&labels))))?;
    Ok(1)
}

/// The number of a value that is to stand at a place. Errors: there is none left between its neighbours.
fn number_at(labels: &[Label], at: usize) -> Result<Value> {
    let double = |at: usize| labels.get(at).and_then(|label| label.number.as_double());
    let (before, behind) = (at.checked_sub(1).and_then(double), double(at));
    let number = match (before, behind) {
        (None, None) => 1.0,
        (Some(before), None) => before.floor() + 1.0,
        (None, Some(behind)) => behind.ceil() - 1.0,
        (Some(before), Some(behind)) => before + (behind - before) / 2.0,
    };
    if Some(number) == before || Some(number) == behind {
        let what = "there is no room left for a value between these two";
        return Err(Error::new(Condition::LimitExceeded, what).hint("Make another type and change the columns to it."));
    }
    Ok(if number.fract() == 0.0 { Value::Int(number as i64) } else { Value::Double(number) })
}

fn rename(ddl: &Ddl<'_>, user: &UserType, name: &str) -> Result<u64> {
    if ddl.database.catalog.space_by_name(name).is_some() {
        return Err(already("type", name));
    }
    let key = encoded_key(&[u64::from(user.space.0)]);
    let mut ops = Vec::new();
    msgpack::encode_array(&mut ops, 1);
    msgpack::encode_array(&mut ops, 3);
    msgpack::encode_str(&mut ops, b"=");
    msgpack::encode_uint(&mut ops, 2);
    msgpack::encode_str(&mut ops, name.as_bytes());
    ddl.execute(SPACE_ID, Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 })?;
    Ok(1)
}

/// Columns of a type, or of arrays of it.
fn columns_of(ddl: &Ddl<'_>, user: &UserType) -> Vec<(Rc<Table>, usize)> {
    let declared = user.declared();
    let is_it = |text: &str| text.strip_prefix(&declared).is_some_and(|rest| rest.is_empty() || rest == "[]");
    let mut found = Vec::new();
    for space in ddl.database.catalog.spaces().into_iter().filter(|space| !space.is_system()) {
        let Ok(table) = Table::of(ddl.database, space).map(Rc::new) else { continue };
        let columns = table.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| column.raw_declared.as_deref().is_some_and(is_it));
        found.extend(columns.map(|(at, _)| (Rc::clone(&table), at)).collect::<Vec<_>>());
    }
    found
}

/// Defaults that are a value which gets another text.
fn rename_defaults(ddl: &Ddl<'_>, user: &UserType, from: &str, to: &str) -> Result<()> {
    for (table, at) in columns_of(ddl, user) {
        if table.columns[at].default.as_deref() == Some(&quoted(from)) {
            ddl.as_admin(|| ddl.put_default_text(&table, at, Some(&quoted(to))))?;
        }
    }
    Ok(())
}

/// DROP TYPE. Errors: it is not there; the user is not its owner; something is of it.
pub(crate) fn drop_types(ddl: &Ddl<'_>, names: &[ast::ObjectName], if_exists: bool, cascade: bool) -> Result<u64> {
    let mut count = 0;
    for name in names {
        if if_exists && ddl.dialect.is_nowhere(name) {
            continue;
        }
        let folded = ddl.dialect.object_name(name)?;
        match by_name(ddl.database, &folded) {
            Some(_) => {}
            None if if_exists => continue,
            None => return Err(missing(&folded)),
        }
        let user = owned(ddl, name)?;
        drop_one(ddl, &user, cascade)?;
        count += 1;
    }
    Ok(count)
}

/// DROP DOMAIN. Errors: as of DROP TYPE; it is none.
pub(crate) fn drop_domain(ddl: &Ddl<'_>, drop: &ast::DropDomain) -> Result<u64> {
    let name = ddl.dialect.object_name(&drop.name)?;
    if by_name(ddl.database, &name).is_some_and(|user| user.domain().is_none()) {
        return Err(Error::new(Condition::NotUpdatable, format!("\"{name}\" is not a domain")));
    }
    let cascade = drop.drop_behavior == Some(ast::DropBehavior::Cascade);
    drop_types(ddl, std::slice::from_ref(&drop.name), drop.if_exists, cascade)
}

fn drop_one(ddl: &Ddl<'_>, user: &Rc<UserType>, cascade: bool) -> Result<()> {
    let name = shown_name(&user.name);
    let mut columns = columns_of(ddl, user);
    // Those of views go with the views.
    columns.retain(|(table, _)| crate::views::of(ddl.database, &table.space).is_none());
    // Those that name rows of others go before those others.
    columns.sort_by_key(|(table, _)| table.space.def().foreign_keys.is_empty());
    let declared = user.declared();
    let of_domains = super::all(ddl.database).into_iter().filter(|other| {
        let base = other.domain().map(|domain| domain.base.trim_end_matches("[]"));
        base == Some(&declared)
    });
    let domains: Vec<Rc<UserType>> = of_domains.collect();
    let views: Vec<Rc<Space>> = crate::views::of_type(ddl.database, user.space);
    let mut dependents: Vec<String> = Vec::new();
    for (table, at) in &columns {
        let column = shown_name(&table.columns[*at].name);
        dependents.push(format!("column {column} of table {} depends on type {name}", shown_name(&table.name)));
    }
    dependents.extend(domains.iter().map(|domain| format!("type {} depends on type {name}", shown_name(&domain.name))));
    dependents.extend(views.iter().map(|view| format!("view {} depends on type {name}", shown_name(&view.name()))));
    if !cascade && !dependents.is_empty() {
        let what = format!("cannot drop type {name} because other objects depend on it");
        return Err(Error::new(Condition::Dependents, what)
            .detail(dependents.join("\n"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    for view in &views {
        if ddl.database.catalog.space(view.id).is_some() {
            crate::views::remove_with_dependents(ddl, view)?;
        }
    }
    for domain in &domains {
        drop_one(ddl, domain, true)?;
    }
    for (table, at) in &columns {
        let column = ast::Ident::with_quote('"', &table.columns[*at].name);
        // Whoever drops a type drops its columns, whosever the tables are.
        ddl.as_admin(|| ddl.drop_columns(table, &[column], true, true))?;
    }
    ddl.as_admin(|| ddl.drop_grants(u64::from(user.space.0)))?;
    ddl.delete(SPACE_ID, &[u64::from(user.space.0)])
}

impl Ddl<'_> {
    /// The default of a column of an enum as it is kept: the text alone of a value that is cast to the type, so that the type may get another name. Errors: it
    /// is no value.
    pub(crate) fn default_of_enum(&self, column: &mut crate::ddl::NewColumn) -> Result<()> {
        if self.dialect != Dialect::Postgres || column.ty.base != Base::Enum {
            return Ok(());
        }
        let Some(text) = &column.default else { return Ok(()) };
        let mut expr = Binder::new(self.database, self.dialect).parse_expression(text)?;
        while let ast::Expr::Nested(inner) | ast::Expr::Cast { expr: inner, .. } = expr {
            expr = *inner;
        }
        if let ast::Expr::Value(value) = expr
            && let ast::Value::SingleQuotedString(text) = value.value
        {
            super::numbered(self.database, Value::text(text.as_str()), column.ty)?;
            column.default = Some(quoted(&text));
        }
        Ok(())
    }
}

impl Kind {
    /// `e` or `d`, as `pg_type` has it.
    pub(crate) fn letter(&self) -> &'static str {
        match self {
            Kind::Enum(_) => "e",
            Kind::Domain(_) => "d",
        }
    }
}
