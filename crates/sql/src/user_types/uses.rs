//! Texts that are kept and may speak of a type: views, checks, defaults, generated columns, conditions of indexes, and what domains say.
//!
//! They name types and values of enums in words. So a type that gets another name, or a value that does, gets it in all of them; and a type that is to go
//! is looked for in them. Which words those are is asked of the binder: with a word in the place of one that nothing is called, it is refused by just that
//! word if it means a type there, or a value of the enum. A column, or a text, of the same name is not, and stays.

use super::ddl::{check_owner, columns_of, quoted};
use super::{Domain, KEY, UserType, encode_domain, encode_kind, shown_name};
use crate::bind::Binder;
use crate::comments::put_below;
use crate::condition::{body_of, text_of};
use crate::constraint::{encode_entries, raw_entries};
use crate::ddl::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Result};
use crate::table::Table;
use crate::types::Type;
use crate::written::offset;
use database::Space;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::ops::Range;
use std::rc::Rc;
use tuple::SpaceId;
use tuple::msgpack::{self, Reader};

/// What nothing is called.
const NOTHING: &str = "\u{1}nothing";

/// Where a text is kept.
#[derive(Clone)]
enum Place {
    View(Rc<Space>),
    /// The number among the checks of the space, and the field if it is of one.
    Check(Rc<Table>, usize, Option<u32>),
    Generated(Rc<Table>, usize),
    Default(Rc<Table>, usize),
    /// WHERE of an index, by its name.
    Index(Rc<Table>, String),
    /// A condition of a domain, by its number; none: its default.
    Domain(Rc<UserType>, Option<usize>),
}

struct Kept {
    place: Place,
    text: String,
}

/// Something that is named in texts from now on by another name.
enum Renamed<'a> {
    Type(&'a str, &'a str),
    Value(&'a UserType, &'a str, &'a str),
}

/// All texts of PostgreSQL's dialect.
fn all(ddl: &Ddl<'_>) -> Vec<Kept> {
    let mut found = Vec::new();
    for space in ddl.database.catalog.spaces().into_iter().filter(|space| !space.is_system()) {
        if let Some(view) = crate::views::of(ddl.database, &space) {
            if view.dialect == Dialect::Postgres {
                found.push(Kept { place: Place::View(space), text: view.text });
            }
            continue;
        }
        let Ok(table) = Table::of(ddl.database, Rc::clone(&space)).map(Rc::new) else { continue };
        for (at, check) in space.def().checks.iter().enumerate() {
            let Some(function) = ddl.database.catalog.function(check.function_id) else { continue };
            if let (Dialect::Postgres, text) = text_of(&function.body)
                && function.language == "SQL_EXPR"
            {
                let place = Place::Check(Rc::clone(&table), at, check.field);
                found.push(Kept { place, text: text.to_string() });
            }
        }
        for (at, column) in table.columns.iter().enumerate() {
            if let Some((Dialect::Postgres, text)) = column.generated.as_ref().map(|generated| generated.text()) {
                found.push(Kept { place: Place::Generated(Rc::clone(&table), at), text: text.to_string() });
            }
            if let Some(text) = column.default.clone().filter(|_| column.declared.is_none()) {
                found.push(Kept { place: Place::Default(Rc::clone(&table), at), text });
            }
        }
        for index in &table.indexes {
            let condition = index.spelled.as_ref().and_then(|spelled| spelled.condition.clone());
            found.extend(
                condition.map(|text| Kept { place: Place::Index(Rc::clone(&table), index.name.clone()), text }),
            );
        }
    }
    for user in super::all(ddl.database) {
        let Some(domain) = user.domain() else { continue };
        for (at, (_, text)) in domain.checks.iter().enumerate() {
            found.push(Kept { place: Place::Domain(Rc::clone(&user), Some(at)), text: text.clone() });
        }
        let default = domain.default.clone();
        found.extend(default.map(|text| Kept { place: Place::Domain(Rc::clone(&user), None), text }));
    }
    found
}

/// What the text of a place means. Errors: nothing.
fn bind(ddl: &Ddl<'_>, binder: &Binder<'_>, place: &Place, text: &str) -> Result<()> {
    match place {
        Place::View(space) => {
            let parsed = Dialect::Postgres.parse(text)?.into_iter().next();
            let Some(ast::Statement::CreateView(create)) = parsed else { return Ok(()) };
            crate::views::for_owner(ddl.database, space, || binder.bind_statement(&create.query)).map(drop)
        }
        Place::Check(table, _, field) => binder.bind_check(table, text, *field).map(drop),
        Place::Index(table, _) => binder.bind_check(table, text, None).map(drop),
        Place::Generated(table, at) => binder.bind_generated(table, *at, text).map(drop),
        Place::Default(table, at) => binder.check_value(text, table.columns[*at].ty),
        Place::Domain(user, at) => {
            let base = super::of_declared(ddl.database, &user.declared()).map_or(Type::UNKNOWN, |found| found.ty);
            let (checks, default) = match at {
                Some(_) => (vec![(String::new(), text.to_string())], None),
                None => (Vec::new(), Some(text.to_string())),
            };
            let alone = Domain { base: String::new(), default, is_not_null: false, checks };
            binder.check_domain(&alone, base)
        }
    }
}

/// Words that may have to be others: where they stand, what stands there in a trial, and what is to stand there.
fn candidates(text: &str, renamed: &Renamed<'_>) -> Vec<(Range<usize>, String, String)> {
    let mut tokenizer = Tokenizer::new(&sqlparser::dialect::PostgreSqlDialect {}, text).with_unescape(false);
    let mut tokens: Vec<TokenWithSpan> = Vec::new();
    if tokenizer.tokenize_with_location_into_buf(&mut tokens).is_err() {
        return Vec::new();
    }
    let words = tokens.iter().filter_map(|token| {
        let (trial, wanted) = match (&token.token, renamed) {
            (Token::Word(word), Renamed::Type(old, new)) => {
                let name = match word.quote_style {
                    Some(_) => word.value.replace("\"\"", "\""),
                    None => word.value.to_lowercase(),
                };
                let prefix = match name.strip_suffix(old)? {
                    // The catalog's name of arrays.
                    prefix @ ("" | "_") => prefix,
                    _ => return None,
                };
                (format!("\"{NOTHING}\""), word_of(&format!("{prefix}{new}")))
            }
            (Token::SingleQuotedString(raw), Renamed::Value(_, old, new)) => {
                let value = raw.replace("''", "'");
                if value == *old {
                    (quoted(NOTHING), quoted(new))
                } else {
                    let (trial, wanted) = (in_array(&value, old, NOTHING)?, in_array(&value, old, new)?);
                    (quoted(&trial), quoted(&wanted))
                }
            }
            _ => return None,
        };
        Some((offset(text, token.span.start)..offset(text, token.span.end), trial, wanted))
    });
    words.collect()
}

/// The text of an array with another word in the place of one. None: it is no plain one, or has no such word.
fn in_array(text: &str, old: &str, new: &str) -> Option<String> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    if inner.contains(['"', '\\', '{', '}']) {
        return None;
    }
    let mut has_it = false;
    let words: Vec<String> = inner
        .split(',')
        .map(|word| {
            let is_it = word.trim() == old;
            has_it |= is_it;
            match is_it {
                true => format!("\"{}\"", new.replace('\\', "\\\\").replace('"', "\\\"")),
                false => word.to_string(),
            }
        })
        .collect();
    has_it.then(|| format!("{{{}}}", words.join(",")))
}

/// A name as a statement has it: words of the language stand in quotes.
fn word_of(name: &str) -> String {
    let is_plain = crate::catalog::quoted(name) == name
        && matches!(Token::make_word(name, None), Token::Word(word) if word.keyword == Keyword::NoKeyword);
    if is_plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The text with the other name; none if it does not speak of it.
fn changed(ddl: &Ddl<'_>, kept: &Kept, renamed: &Renamed<'_>) -> Option<String> {
    let mut text = kept.text.clone();
    for (place, trial, wanted) in candidates(&kept.text, renamed).into_iter().rev() {
        let mut tried = kept.text.clone();
        tried.replace_range(place.clone(), &trial);
        let binder = Binder::new(ddl.database, Dialect::Postgres);
        let Err(error) = bind(ddl, &binder, &kept.place, &tried) else { continue };
        let error = error.with_type_names(ddl.database);
        let message = &error.body().message;
        let means_it = match renamed {
            Renamed::Type(..) => error.condition() == Condition::UndefinedObject && message.contains(NOTHING),
            Renamed::Value(user, ..) => {
                let begins = format!("invalid input value for enum {}: ", shown_name(&user.name));
                message.starts_with(&begins) && message.contains(NOTHING)
            }
        };
        if means_it {
            text.replace_range(place, &wanted);
        }
    }
    (text != kept.text).then_some(text)
}

/// A type gets another name by `rename`, and so it does in all texts. Errors: those of the change.
pub(super) fn rename_type(ddl: &Ddl<'_>, old: &str, new: &str, rename: impl FnOnce() -> Result<()>) -> Result<()> {
    rename_by(ddl, &Renamed::Type(old, new), rename)
}

/// The same of a value of an enum.
pub(super) fn rename_value(
    ddl: &Ddl<'_>,
    user: &UserType,
    (old, new): (&str, &str),
    rename: impl FnOnce() -> Result<()>,
) -> Result<()> {
    rename_by(ddl, &Renamed::Value(user, old, new), rename)
}

fn rename_by(ddl: &Ddl<'_>, renamed: &Renamed<'_>, rename: impl FnOnce() -> Result<()>) -> Result<()> {
    let ddl = &Ddl { database: ddl.database, context: ddl.context, dialect: Dialect::Postgres };
    let found: Vec<(Place, String)> =
        all(ddl).into_iter().filter_map(|kept| changed(ddl, &kept, renamed).map(|text| (kept.place, text))).collect();
    ddl.at_once(|| {
        rename()?;
        // Whoever may rename a type need not own what speaks of it.
        ddl.as_admin(|| put(ddl, &found))
    })
}

/// Writes other texts, those of one space at once: each means something at any time.
fn put(ddl: &Ddl<'_>, texts: &[(Place, String)]) -> Result<()> {
    for (at, (place, text)) in texts.iter().enumerate() {
        match place {
            Place::View(space) => {
                let mut row = ddl.space_row(space.id)?;
                let mut options = raw_entries(&row[5]);
                for (_, value) in options.iter_mut().filter(|(key, _)| key == "sql") {
                    value.clear();
                    msgpack::encode_str(value, crate::views::marked(Dialect::Postgres, text).as_bytes());
                }
                row[5] = encode_entries(&options);
                ddl.put_space_row(&row)?;
            }
            Place::Domain(user, number) => {
                let known = super::by_id(ddl.database, user.space.0);
                let Some(mut domain) = known.and_then(|user| user.domain().cloned()) else { continue };
                match number {
                    Some(number) => domain.checks[*number].1 = text.clone(),
                    None => domain.default = Some(text.clone()),
                }
                put_below(ddl, user.space, KEY, Some(encode_kind("domain", encode_domain(&domain))))?;
            }
            Place::Check(table, ..)
            | Place::Generated(table, _)
            | Place::Default(table, _)
            | Place::Index(table, _) => {
                let id = table.space.id;
                if texts[..at].iter().all(|(other, _)| other.table() != Some(id)) {
                    let own = texts.iter().filter(|(other, _)| other.table() == Some(id));
                    put_in_table(ddl, table, &own.collect::<Vec<_>>())?;
                }
            }
        }
    }
    Ok(())
}

impl Place {
    /// The space of a table's text.
    fn table(&self) -> Option<SpaceId> {
        match self {
            Place::Check(table, ..)
            | Place::Generated(table, _)
            | Place::Default(table, _)
            | Place::Index(table, _) => Some(table.space.id),
            Place::View(_) | Place::Domain(..) => None,
        }
    }

    /// As a message shows it.
    fn shown(&self, ddl: &Ddl<'_>) -> String {
        let column = |table: &Table, at: usize| {
            format!("column {} of table {}", shown_name(&table.columns[at].name), shown_name(&table.name))
        };
        match self {
            Place::View(space) => format!("view {}", shown_name(&space.name())),
            Place::Check(table, at, _) => {
                let name = table.space.def().checks[*at].name.clone();
                format!("constraint {} on table {}", shown_name(&name), shown_name(&table.name))
            }
            Place::Generated(table, at) if table.columns[*at].is_key() => {
                let found = table.indexes.iter().find(|index| index.parts.iter().any(|(field, ..)| field == at));
                format!("index {}", found.map_or_else(String::new, |index| shown_name(&index.name)))
            }
            Place::Generated(table, at) => column(table, *at),
            Place::Default(table, at) => format!("default value for {}", column(table, *at)),
            Place::Index(_, name) => format!("index {}", shown_name(name)),
            Place::Domain(user, at) => {
                let known = super::by_id(ddl.database, user.space.0).unwrap_or_else(|| Rc::clone(user));
                match at.and_then(|at| known.domain()?.checks.get(at).map(|(name, _)| shown_name(name))) {
                    Some(name) => format!("constraint {name} of domain {}", shown_name(&user.name)),
                    None => format!("default value of domain {}", shown_name(&user.name)),
                }
            }
        }
    }
}

fn put_in_table(ddl: &Ddl<'_>, table: &Rc<Table>, texts: &[&(Place, String)]) -> Result<()> {
    let def = table.space.def();
    let mut checks = def.checks.clone();
    let mut row = ddl.space_row(table.space.id)?;
    let mut format = Vec::new();
    let mut reader = Reader::new(&row[6]);
    for _ in 0..reader.read_array().unwrap_or(0) {
        format.push(reader.read_value().unwrap_or(&[0xc0]).to_vec());
    }
    let put_entry = |column: &mut Vec<u8>, key: &str, text: &str| {
        let mut entries = raw_entries(column);
        for (_, value) in entries.iter_mut().filter(|(known, _)| known == key) {
            value.clear();
            msgpack::encode_str(value, text.as_bytes());
        }
        *column = encode_entries(&entries);
    };
    // What indexes say is the text of their columns, or of their conditions.
    let mut spelled: Vec<(String, String)> = Vec::new();
    for (place, text) in texts {
        match place {
            Place::Check(_, at, _) => {
                let is_temporary = def.is_session;
                let name = ddl.full_name(&format!("check_{}_{}", table.full, checks[*at].name), is_temporary);
                checks[*at].function_id = ddl.put_function(&name, text, is_temporary)?;
            }
            Place::Generated(_, at) => {
                let before = table.columns[*at].generated.as_ref().map(|generated| generated.text().1.to_string());
                spelled.extend(before.map(|before| (before, text.clone())));
                put_entry(&mut format[*at], "generated", &body_of(Dialect::Postgres, text));
            }
            Place::Default(_, at) => put_entry(&mut format[*at], "default", text),
            Place::Index(_, name) => {
                let index = table.indexes.iter().find(|index| index.name == *name);
                let before = index.and_then(|index| index.spelled.as_ref()?.condition.clone());
                spelled.extend(before.map(|before| (before, text.clone())));
            }
            Place::View(_) | Place::Domain(..) => {}
        }
    }
    row[5] = ddl.options_with(&table.space, &checks, &def.foreign_keys)?;
    row[5] = crate::spelled::with_texts(&row[5], &|text| {
        let found = spelled.iter().find(|(before, _)| before == text);
        found.map(|(_, after)| after.clone())
    });
    row[6].clear();
    msgpack::encode_array(&mut row[6], format.len() as u32);
    format.iter().for_each(|column| row[6].extend_from_slice(column));
    let before = ddl.context.trust_rows(true);
    let put = ddl.put_space_row(&row);
    ddl.context.trust_rows(before);
    put?;
    ddl.drop_functions(&def.checks)
}

/// Something that speaks of a type which is to go.
pub(super) struct Use(Place);

/// What speaks of a type in its text, but views, and columns that go with it.
pub(super) fn of_type(ddl: &Ddl<'_>, user: &UserType) -> Vec<Use> {
    let columns = columns_of(ddl, user);
    let goes = |table: &Table, at: usize| {
        columns.iter().any(|(other, field)| other.space.id == table.space.id && *field == at)
    };
    let is_it = |kept: &Kept| {
        let is_other = match &kept.place {
            Place::View(_) => false,
            Place::Generated(table, at) | Place::Default(table, at) => !goes(table, *at),
            _ => true,
        };
        let binder = Binder::new(ddl.database, Dialect::Postgres);
        is_other && bind(ddl, &binder, &kept.place, &kept.text).is_ok() && binder.uses_type(user.space)
    };
    all(ddl).into_iter().filter(is_it).map(|kept| Use(kept.place)).collect()
}

impl Use {
    /// As a message shows it.
    pub(super) fn shown(&self, ddl: &Ddl<'_>) -> String {
        self.0.shown(ddl)
    }

    /// Takes it away. Errors: those of the change.
    pub(super) fn remove(&self, ddl: &Ddl<'_>) -> Result<()> {
        match &self.0 {
            Place::View(_) => Ok(()),
            Place::Check(table, at, _) => {
                let name = table.space.def().checks[*at].name.clone();
                let now = ddl.table_named(&table.full)?;
                let def = now.space.def();
                let left: Vec<_> = def.checks.iter().filter(|check| check.name != name).cloned().collect();
                ddl.put_options(&now.space, &left, &def.foreign_keys)?;
                ddl.drop_functions(&def.checks)
            }
            Place::Default(table, at) => {
                let now = ddl.table_named(&table.full)?;
                match now.column(Dialect::Postgres, &table.columns[*at].name) {
                    Some(at) => ddl.put_default_text(&now, at, None),
                    None => Ok(()),
                }
            }
            Place::Generated(table, at) if !table.columns[*at].is_key() => {
                let now = ddl.table_named(&table.full)?;
                let column = ast::Ident::with_quote('"', &table.columns[*at].name);
                ddl.drop_columns(&now, &[column], true, true)
            }
            Place::Generated(table, at) => {
                let found = table.indexes.iter().find(|index| index.parts.iter().any(|(field, ..)| field == at));
                found.map_or(Ok(()), |index| remove_index(ddl, table, &index.name))
            }
            Place::Index(table, name) => remove_index(ddl, table, name),
            Place::Domain(user, at) => {
                let Some(known) = super::by_id(ddl.database, user.space.0) else { return Ok(()) };
                check_owner(ddl, &known)?;
                let Some(mut domain) = known.domain().cloned() else { return Ok(()) };
                match at.and_then(|at| user.domain()?.checks.get(at)) {
                    Some((name, _)) => domain.checks.retain(|(known, _)| known != name),
                    None => domain.default = None,
                }
                put_below(ddl, known.space, KEY, Some(encode_kind("domain", encode_domain(&domain))))
            }
        }
    }
}

fn remove_index(ddl: &Ddl<'_>, table: &Table, name: &str) -> Result<()> {
    let now = ddl.table_named(&table.full)?;
    match now.indexes.iter().find(|index| index.name == name) {
        Some(index) => ddl.remove_index(&now, index),
        None => Ok(()),
    }
}
