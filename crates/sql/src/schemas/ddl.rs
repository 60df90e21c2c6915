//! CREATE, ALTER and DROP SCHEMA.

use super::{KEY, SEPARATOR, UserSchema, by_name, split};
use crate::ddl::Ddl;
use crate::error::{Condition, Error, Result};
use database::{ADMIN, SPACE_ID, Space};
use sqlparser::ast::{self, Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::rc::Rc;
use tuple::SpaceId;

/// Schemas of a database.
pub const SCHEMAS_MAX: usize = 1000;
/// Bytes of the name of a schema, as in PostgreSQL.
const NAME_MAX: usize = 63;

/// The name of a schema in a statement. Errors: it is none.
fn name_of(ddl: &Ddl<'_>, name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [.., ObjectNamePart::Identifier(ident)] => Ok(ddl.dialect.fold(ident)),
        _ => Err(Error::new(Condition::Syntax, format!("'{name}' is no name"))),
    }
}

fn missing(name: &str) -> Error {
    Error::new(Condition::UndefinedSchema, format!("schema \"{name}\" does not exist"))
}

fn is_of_system(name: &str) -> bool {
    matches!(name, "public" | "information_schema") || name.starts_with("pg_")
}

/// Errors: the name is one that no schema can have.
fn check_name(ddl: &Ddl<'_>, name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        let what = format!("unacceptable schema name \"{name}\"");
        let detail = "The prefix \"pg_\" is reserved for system schemas.";
        return Err(Error::new(Condition::ReservedName, what).detail(detail));
    }
    if name.is_empty() || name.len() > NAME_MAX || name.contains(SEPARATOR) {
        let what = format!("the name of a schema has 1 to {NAME_MAX} bytes and no '{SEPARATOR}'");
        return Err(Error::new(Condition::InvalidName, what));
    }
    if is_of_system(name) || by_name(ddl.database, name).is_some() {
        return Err(Error::new(Condition::DuplicateSchema, format!("schema \"{name}\" already exists")));
    }
    let begin = format!("{name}{SEPARATOR}");
    let taken = ddl.database.catalog.spaces().into_iter().map(|space| space.name());
    let mut taken =
        taken.chain(ddl.database.catalog.sequences().into_iter().map(|sequence| sequence.def().name.clone()));
    match taken.find(|other| other.starts_with(&begin)) {
        Some(other) => {
            let what = format!("there is '{other}', which would be in schema \"{name}\"");
            Err(Error::new(Condition::DuplicateSchema, what).hint("Give it another name first."))
        }
        None => Ok(()),
    }
}

/// CREATE SCHEMA. Errors: it is there; the name is one that no schema can have.
pub(crate) fn create_schema(ddl: &Ddl<'_>, name: &ast::SchemaName, if_not_exists: bool) -> Result<u64> {
    let (name, owner) = match name {
        ast::SchemaName::Simple(name) => (name_of(ddl, name)?, None),
        ast::SchemaName::NamedAuthorization(name, owner) => (name_of(ddl, name)?, Some(owner)),
        ast::SchemaName::UnnamedAuthorization(owner) => (ddl.dialect.fold(owner), Some(owner)),
    };
    if if_not_exists && (is_of_system(&name) || by_name(ddl.database, &name).is_some()) {
        return Ok(0);
    }
    check_name(ddl, &name)?;
    if super::all(ddl.database).len() >= SCHEMAS_MAX {
        return Err(Error::new(Condition::LimitExceeded, format!("there are {SCHEMAS_MAX} schemas already")));
    }
    let own = ddl.context.user(&ddl.database.catalog);
    let owner = owner.map(|owner| user_of(ddl, owner)).transpose()?.unwrap_or(own);
    if owner != own && !ddl.database.is_almighty(ddl.context) {
        let what = format!("must be able to SET ROLE \"{}\"", ddl.database.catalog.user_name(owner));
        return Err(Error::new(Condition::AccessDenied, what));
    }
    let definition = |out: &mut Vec<u8>| tuple::msgpack::encode_bool(out, true);
    crate::user_types::put_definition(ddl, &format!("{name}{SEPARATOR}"), owner, KEY, definition)
}

fn user_of(ddl: &Ddl<'_>, ident: &Ident) -> Result<u32> {
    let name = ddl.dialect.fold(ident);
    if matches!(name.as_str(), "current_user" | "session_user" | "current_role") {
        return Ok(ddl.context.user(&ddl.database.catalog));
    }
    let users = ddl.database.catalog.users();
    let found = users.iter().find(|user| user.name == name || name == "postgres" && user.id == ADMIN);
    match found {
        Some(user) => Ok(user.id),
        None => Err(Error::new(Condition::UndefinedObject, format!("role \"{name}\" does not exist"))),
    }
}

/// The schema of a name. Errors: it is not there; the user is not its owner.
fn owned(ddl: &Ddl<'_>, name: &str) -> Result<Rc<UserSchema>> {
    let schema = by_name(ddl.database, name).ok_or_else(|| missing(name))?;
    match schema.owner == ddl.context.user(&ddl.database.catalog) || ddl.database.is_almighty(ddl.context) {
        true => Ok(schema),
        false => Err(Error::new(Condition::AccessDenied, format!("must be owner of schema {name}"))),
    }
}

/// What is in a schema: spaces, types among them, and sequences that fill no key of those.
fn contents(ddl: &Ddl<'_>, schema: &UserSchema) -> (Vec<Rc<Space>>, Vec<String>) {
    let is_in = |name: &str| split(ddl.database, name).0.is_some_and(|other| other.space == schema.space);
    let mut spaces: Vec<Rc<Space>> =
        ddl.database.catalog.spaces().into_iter().filter(|space| is_in(&space.name())).collect();
    spaces.sort_by_key(|space| space.id.0);
    let sequences = ddl.database.catalog.sequences();
    let sequences = sequences.iter().map(|sequence| sequence.def().name.clone()).filter(|name| is_in(name));
    (spaces, sequences.collect())
}

/// DROP SCHEMA. Errors: it is not there; the user is not its owner; there is something in it, without CASCADE.
pub(crate) fn drop_schemas(ddl: &Ddl<'_>, names: &[ObjectName], if_exists: bool, cascade: bool) -> Result<u64> {
    let mut count = 0;
    for name in names {
        let name = name_of(ddl, name)?;
        if is_of_system(&name) {
            let what = format!("cannot drop schema {name} because it is required by the database system");
            return Err(Error::new(Condition::DependentObjects, what));
        }
        if if_exists && by_name(ddl.database, &name).is_none() {
            continue;
        }
        let schema = owned(ddl, &name)?;
        let (spaces, sequences) = contents(ddl, &schema);
        if !cascade && (!spaces.is_empty() || !sequences.is_empty()) {
            let what = format!("cannot drop schema {name} because other objects depend on it");
            let shown: Vec<String> = spaces
                .iter()
                .map(|space| format!("{} {} depends on schema {name}", kind_of(ddl, space), space.name()))
                .chain(sequences.iter().map(|sequence| format!("sequence {sequence} depends on schema {name}")))
                .take(100)
                .collect();
            return Err(Error::new(Condition::DependentObjects, what)
                .detail(shown.join("\n"))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        drop_contents(ddl, &spaces, &sequences)?;
        ddl.as_admin(|| ddl.drop_grants(u64::from(schema.space.0)))?;
        ddl.as_admin(|| ddl.delete(SPACE_ID, &[u64::from(schema.space.0)]))?;
        count += 1;
    }
    Ok(count)
}

fn kind_of(ddl: &Ddl<'_>, space: &Rc<Space>) -> &'static str {
    match () {
        () if crate::user_types::by_id(ddl.database, space.id.0).is_some() => "type",
        () if crate::views::of(ddl.database, space).is_some() => "view",
        () => "table",
    }
}

/// A name that a statement could have.
fn quoted(name: &str) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', name))])
}

/// Drops what is in a schema, with what depends on it: views, then tables, sequences and types.
fn drop_contents(ddl: &Ddl<'_>, spaces: &[Rc<Space>], sequences: &[String]) -> Result<()> {
    let of_kind = |kind: &str| -> Vec<&Rc<Space>> {
        let found = spaces.iter().filter(|space| kind_of(ddl, space) == kind);
        // What was made last goes first: others may depend on what was there before.
        let mut found: Vec<_> = found.collect();
        found.reverse();
        found
    };
    for kind in ["view", "table", "type"] {
        if kind == "type" {
            for name in sequences {
                ddl.drop_sequence(&quoted(name), true)?;
            }
        }
        let object_type = match kind {
            "view" => ast::ObjectType::View,
            "table" => ast::ObjectType::Table,
            _ => ast::ObjectType::Type,
        };
        for space in of_kind(kind) {
            // One may have gone with another.
            if ddl.database.catalog.space(space.id).is_none() {
                continue;
            }
            let drop = ast::Statement::Drop {
                object_type,
                if_exists: true,
                names: vec![quoted(&space.name())],
                cascade: true,
                restrict: false,
                purge: false,
                temporary: false,
                table: None,
            };
            crate::views::run(ddl, &drop)?;
        }
    }
    Ok(())
}

/// ALTER SCHEMA. Errors: it is not there; the user is not its owner; names that are taken, or that are in texts.
pub(crate) fn alter_schema(ddl: &Ddl<'_>, alter: &ast::AlterSchema) -> Result<u64> {
    let name = name_of(ddl, &alter.name)?;
    if alter.if_exists && by_name(ddl.database, &name).is_none() {
        return Ok(0);
    }
    let schema = owned(ddl, &name)?;
    for operation in &alter.operations {
        match operation {
            ast::AlterSchemaOperation::Rename { name: new } => rename(ddl, &schema, &name_of(ddl, new)?)?,
            ast::AlterSchemaOperation::OwnerTo { owner } => {
                let owner = match owner {
                    ast::Owner::Ident(ident) => user_of(ddl, ident)?,
                    _ => ddl.context.user(&ddl.database.catalog),
                };
                if !ddl.database.is_almighty(ddl.context) {
                    let what = format!("must be able to SET ROLE \"{}\"", ddl.database.catalog.user_name(owner));
                    return Err(Error::new(Condition::AccessDenied, what));
                }
                put_field(ddl, schema.space, 1, |out| tuple::msgpack::encode_uint(out, u64::from(owner)))?;
            }
            _ => return Err(Error::unsupported("this form of ALTER SCHEMA")),
        }
    }
    Ok(0)
}

/// A field of the row of a space gets another value.
fn put_field(ddl: &Ddl<'_>, id: SpaceId, field: u64, value: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
    let mut encoded = Vec::new();
    value(&mut encoded);
    crate::user_types::put_field(ddl, id, field, &encoded)
}

fn rename(ddl: &Ddl<'_>, schema: &UserSchema, new: &str) -> Result<()> {
    check_name(ddl, new)?;
    let (spaces, sequences) = contents(ddl, schema);
    let names: Vec<String> = spaces.iter().map(|space| space.name()).chain(sequences.iter().cloned()).collect();
    check_unnamed(ddl, &names)?;
    let put = |out: &mut Vec<u8>, name: &str| tuple::msgpack::encode_str(out, name.as_bytes());
    for space in &spaces {
        let name = format!("{new}{SEPARATOR}{}", super::local(ddl.database, &space.name()));
        put_field(ddl, space.id, 2, |out| put(out, &name))?;
    }
    for name in &sequences {
        if let Some(sequence) = ddl.database.catalog.sequence_by_name(name) {
            let mut def = (*sequence.def()).clone();
            def.name = format!("{new}{SEPARATOR}{}", super::local(ddl.database, name));
            ddl.put_definition(&def, false)?;
        }
    }
    put_field(ddl, schema.space, 2, |out| put(out, &format!("{new}{SEPARATOR}")))
}

/// The option by which ALTER TABLE ... SET SCHEMA reaches the parser, which does not know it.
const MARK: &str = "set schema";

/// Spells `ALTER TABLE t SET SCHEMA s` as the parser understands it: `ALTER TABLE t SET ("set schema" = 's')`. Views and sequences alike.
pub(crate) fn respell(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.windows(3).any(|window| is_word(&window[0], "set") && is_word(&window[2], "schema")) {
        return;
    }
    let mut spelled = Vec::with_capacity(tokens.len());
    for statement in tokens.split_inclusive(|token| token.token == Token::SemiColon) {
        match respelled(statement) {
            Some(changed) => spelled.extend(changed),
            None => spelled.extend_from_slice(statement),
        }
    }
    *tokens = spelled;
}

/// True for a word that is not quoted.
fn is_word(token: &TokenWithSpan, wanted: &str) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// None: it is another statement.
fn respelled(statement: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_part = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_) | Token::SemiColon);
    let mut begin = statement.iter().filter(is_part);
    let (alter, kind) = (begin.next()?, begin.next()?);
    let is_alter = is_word(alter, "alter") && ["table", "view", "sequence"].iter().any(|known| is_word(kind, known));
    if !is_alter {
        return None;
    }
    let mut words: Vec<TokenWithSpan> = statement.iter().filter(is_part).cloned().collect();
    let [_, _, _, .., set, schema, name] = words.as_slice() else { return None };
    let Token::Word(named) = &name.token else { return None };
    if !is_word(set, "set") || !is_word(schema, "schema") {
        return None;
    }
    let value = match named.quote_style {
        Some(_) => named.value.clone(),
        None => named.value.to_lowercase(),
    };
    let span = name.span;
    words.truncate(words.len() - 2);
    words[1].token = Token::make_keyword("TABLE");
    let option = [
        Token::LParen,
        Token::make_word(MARK, Some('"')),
        Token::Eq,
        Token::SingleQuotedString(value),
        Token::RParen,
        Token::SemiColon,
    ];
    let ends = statement.last().is_some_and(|last| last.token == Token::SemiColon);
    let option = option.into_iter().take(if ends { 6 } else { 5 });
    words.extend(option.map(|token| TokenWithSpan { token, span }));
    Some(words)
}

/// The schema that ALTER TABLE ... SET SCHEMA names.
pub(crate) fn wanted_schema(alter: &ast::AlterTable) -> Option<&str> {
    let [ast::AlterTableOperation::SetOptionsParens { options }] = alter.operations.as_slice() else { return None };
    let [ast::SqlOption::KeyValue { key, value }] = options.as_slice() else { return None };
    let is_mark = matches!(key.0.as_slice(), [ObjectNamePart::Identifier(key)] if key.value == MARK);
    match value {
        ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedString(schema), .. }) if is_mark => {
            Some(schema)
        }
        _ => None,
    }
}

/// ALTER TABLE ... SET SCHEMA. Errors: it is not there; the name is taken there; a text has it.
pub(crate) fn set_schema(ddl: &Ddl<'_>, alter: &ast::AlterTable, schema: &str) -> Result<u64> {
    let name = ddl.dialect.object_name(&alter.name)?;
    let catalog = &ddl.database.catalog;
    let (space, sequence) = (catalog.space_by_name(&name), catalog.sequence_by_name(&name));
    if space.is_none() && sequence.is_none() {
        return match alter.if_exists {
            true => Ok(0),
            false => Err(Error::new(Condition::UndefinedTable, format!("relation \"{name}\" does not exist"))),
        };
    }
    let local = super::local(ddl.database, &name).to_string();
    let target = by_name(ddl.database, schema);
    if target.is_none() && schema != "public" {
        return Err(missing(schema));
    }
    let full = |local: &str| target.as_ref().map_or_else(|| local.to_string(), |schema| schema.full(local));
    if full(&local) == name {
        return Ok(0);
    }
    // The sequences that fill columns go along.
    let mut sequences: Vec<Rc<database::Sequence>> = sequence.into_iter().collect();
    if let Some(space) = &space {
        let table = crate::table::Table::of(ddl.database, Rc::clone(space))?;
        let filled =
            (0..table.columns.len()).filter_map(|at| crate::catalog::sequence_of_column(ddl.database, &table, at));
        let own = super::split(ddl.database, &name).0.map(|schema| schema.space);
        sequences.extend(
            filled.filter(|sequence| {
                super::split(ddl.database, &sequence.def().name).0.map(|schema| schema.space) == own
            }),
        );
    }
    let sequence_names: Vec<String> = sequences.iter().map(|sequence| sequence.def().name.clone()).collect();
    check_unnamed(ddl, &[std::slice::from_ref(&name), sequence_names.as_slice()].concat())?;
    for new in sequence_names.iter().map(|name| super::local(ddl.database, name)).chain([local.as_str()]).map(full) {
        if catalog.space_by_name(&new).is_some() || catalog.sequence_by_name(&new).is_some() {
            let taken = super::local(ddl.database, &new);
            let what = format!("relation \"{taken}\" already exists in schema \"{schema}\"");
            return Err(Error::new(Condition::DuplicateTable, what));
        }
    }
    for sequence in sequences {
        let mut def = (*sequence.def()).clone();
        def.name = full(super::local(ddl.database, &def.name));
        ddl.put_definition(&def, false)?;
    }
    if let Some(space) = space {
        put_field(ddl, space.id, 2, |out| tuple::msgpack::encode_str(out, full(&local).as_bytes()))?;
    }
    Ok(0)
}

/// Errors: a view, a default, a condition or a type has one of these names in its text, which would mean nothing then.
fn check_unnamed(ddl: &Ddl<'_>, names: &[String]) -> Result<()> {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    let has_one = |text: &str| {
        quoted.iter().any(|name| text.contains(name)) || names.iter().any(|name| text.contains(&format!("'{name}'")))
    };
    let refuse = |what: &str| Err(Error::unsupported(format!("another schema for what {what} has in its text,")));
    for space in ddl.database.catalog.spaces().into_iter().filter(|space| !space.is_system()) {
        if let Some(view) = crate::views::of(ddl.database, &space) {
            if has_one(&view.query()?.to_string()) {
                return refuse(&format!("view {}", space.name()));
            }
            continue;
        }
        let Ok(table) = crate::table::Table::of(ddl.database, space) else { continue };
        if let Some(column) = table.columns.iter().find(|column| column.default.as_deref().is_some_and(has_one)) {
            return refuse(&format!("the default of column {} of table {}", column.name, table.full));
        }
    }
    Ok(())
}
