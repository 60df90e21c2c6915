//! GENERATED ... AS IDENTITY of PostgreSQL's dialect: columns whose numbers come from a sequence of their own.
//!
//! A column of the primary key is filled by the space's sequence, another one by a default, as those of SERIAL are; the format of the space says beside it
//! (`sql_identity`) that it is one, and whether a row may say otherwise.
//!
//! The parser knows ADD GENERATED alone. What else ALTER COLUMN says of an identity is read as OPTIONS of the column, `identity` the first of them.

use super::declared::ColumnKeys;
use super::sequences::Said;
use super::{Ddl, NewColumn};
use crate::constraint::{encode_entries, raw_entries};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use crate::types::{Base, Type};
use database::{SEQUENCE_DATA_ID, SEQUENCE_ID, Sequence, SequenceDef};
use sqlparser::ast::{self, AlterGenericOption, SequenceOptions};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::rc::Rc;
use tuple::msgpack;

/// The option that says so.
const MARK: &str = "identity";

/// Whether rows may have numbers of their own in an identity column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Only where the statement says OVERRIDING SYSTEM VALUE.
    Always,
    /// As with any default.
    ByDefault,
}

impl Identity {
    /// What the format of a space says.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Identity::Always => "always",
            Identity::ByDefault => "by default",
        }
    }

    /// That of such a word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        [Identity::Always, Identity::ByDefault].into_iter().find(|identity| identity.word() == word)
    }

    /// What PostgreSQL's catalog says.
    pub(crate) fn letter(identity: Option<Self>) -> &'static str {
        match identity {
            None => "",
            Some(Identity::Always) => "a",
            Some(Identity::ByDefault) => "d",
        }
    }
}

/// A word that is not quoted, in small letters.
fn word_of(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// Spells `ALTER COLUMN c SET GENERATED ...`, `SET` and `RESTART` of its sequence and `DROP IDENTITY` as the parser understands them.
pub(crate) fn respell(tokens: &mut Vec<TokenWithSpan>) {
    let has = |wanted: &str| tokens.iter().any(|token| word_of(&token.token) == wanted);
    if !has("alter") || !has("table") {
        return;
    }
    let seen: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let word = |place: usize| seen.get(place).map_or(String::new(), |at| word_of(&tokens[*at].token));
    let mut found: Vec<(usize, usize, Vec<Token>)> = Vec::new();
    let mut begins = 0;
    for place in 0..seen.len() {
        if tokens[seen[place]].token == Token::SemiColon {
            begins = place + 1;
        }
        if word(begins) != "alter" || word(begins + 1) != "table" || place <= begins || word(place) != "alter" {
            continue;
        }
        let name = if word(place + 1) == "column" { place + 2 } else { place + 1 };
        if let Some((end, spelled)) = options(&word, &|place| seen.get(place).map(|at| &tokens[*at].token), name + 1) {
            found.push((name + 1, end, spelled));
        }
    }
    for (first, end, spelled) in found.into_iter().rev() {
        let (from, to) = (seen[first], seen.get(end).copied().unwrap_or(tokens.len()));
        let span = tokens[from].span;
        tokens.splice(from..to, spelled.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// What is said from a place on: where it ends, and how the parser takes it. None: it says nothing of an identity.
fn options<'t>(
    word: &impl Fn(usize) -> String,
    token: &impl Fn(usize) -> Option<&'t Token>,
    first: usize,
) -> Option<(usize, Vec<Token>)> {
    let mut spelled = vec![Token::make_keyword("OPTIONS"), Token::LParen];
    let mut add = |verb: &str, name: &str, value: Option<String>| {
        if spelled.len() > 2 {
            spelled.push(Token::Comma);
        }
        spelled.push(Token::make_keyword(verb));
        spelled.push(Token::make_word(name, Some('"')));
        spelled.extend(value.map(Token::SingleQuotedString));
    };
    let mut at = first;
    if word(at) == "drop" && word(at + 1) == MARK {
        let is_lenient = word(at + 2) == "if" && word(at + 3) == "exists";
        add("DROP", if is_lenient { "identity_if_exists" } else { MARK }, None);
        spelled.push(Token::RParen);
        return Some((if is_lenient { at + 4 } else { at + 2 }, spelled));
    }
    add("SET", MARK, Some(String::new()));
    while matches!(word(at).as_str(), "set" | "restart") {
        at += usize::from(word(at) == "set");
        let is_no = word(at) == "no";
        at += usize::from(is_no);
        let name = word(at);
        at += 1;
        if matches!((name.as_str(), word(at).as_str()), ("restart" | "start", "with") | ("increment", "by")) {
            at += 1;
        }
        // A number, and how many tokens it is.
        let is_negative = token(at) == Some(&Token::Minus);
        let number = match token(at + usize::from(is_negative)) {
            Some(Token::Number(digits, _)) => {
                Some((format!("{}{digits}", if is_negative { "-" } else { "" }), 1 + usize::from(is_negative)))
            }
            _ => None,
        };
        match name.as_str() {
            "generated" if word(at) == "always" => {
                at += 1;
                add("SET", "generated", Some(Identity::Always.word().to_string()));
            }
            "generated" if word(at) == "by" && word(at + 1) == "default" => {
                at += 2;
                add("SET", "generated", Some(Identity::ByDefault.word().to_string()));
            }
            "cycle" => add("SET", "cycle", Some((!is_no).to_string())),
            "minvalue" | "maxvalue" if is_no => add("SET", &name, Some(String::new())),
            "restart" => {
                let (next, count) = number.unwrap_or_default();
                at += count;
                add("SET", "restart", Some(next));
            }
            "start" | "increment" | "minvalue" | "maxvalue" | "cache" if !is_no => {
                let (value, count) = number?;
                at += count;
                add("SET", &name, Some(value));
            }
            _ => return None,
        }
    }
    spelled.push(Token::RParen);
    (at > first).then_some((at, spelled))
}

fn not_in_state(what: String) -> Error {
    Error::new(Condition::NotInState, what)
}

impl Ddl<'_> {
    /// GENERATED ... AS IDENTITY of a column that is declared. Errors: what does not go with it.
    pub(super) fn declare_identity(
        &self,
        table: &str,
        column: &ast::ColumnDef,
        (new, keys): (&mut NewColumn, &mut ColumnKeys),
        (how, options): (ast::GeneratedAs, Option<&[SequenceOptions]>),
    ) -> Result<()> {
        if self.dialect == Dialect::Postgres {
            let name = &new.name;
            let refuse = |what: String| Err(Error::new(Condition::Syntax, what));
            if new.identity.is_some() {
                return refuse(format!("multiple identity specifications for column \"{name}\" of table \"{table}\""));
            }
            let has_default =
                column.options.iter().any(|option| matches!(option.option, ast::ColumnOption::Default(_)));
            if keys.is_generated || has_default {
                let what = "both default and identity specified for column";
                return refuse(format!("{what} \"{name}\" of table \"{table}\""));
            }
            if column.options.iter().any(|option| matches!(option.option, ast::ColumnOption::Null)) {
                return refuse(format!(
                    "conflicting NULL/NOT NULL declarations for column \"{name}\" of table \"{table}\""
                ));
            }
            check_type(new.ty)?;
            new.identity = Some(match how {
                ast::GeneratedAs::Always => Identity::Always,
                _ => Identity::ByDefault,
            });
            keys.sequence = super::said_of(options.unwrap_or_default());
            keys.sequence.insert(0, ("as".to_string(), Some(new.ty.name(Dialect::Postgres))));
        }
        keys.is_generated = true;
        new.is_nullable = false;
        Ok(())
    }

    /// A sequence that fills a column which is none of the primary key; only those are filled by the space itself. Returns the default of the column.
    pub(super) fn put_serial(&self, table: &str, column: &str, said: &[Said], is_temporary: bool) -> Result<String> {
        let name = self.full_name(&format!("{table}_{column}_seq"), is_temporary);
        let mut def = self.sequence_def(&self.free_sequence_name(&name), is_temporary);
        super::change_sequence(&mut def, said, true)?;
        self.put_definition(&def, true)?;
        Ok(format!("nextval('{}')", def.name.replace('\'', "''")))
    }

    /// A sequence that fills a column of the primary key, as is said of it.
    pub(super) fn put_linked(&self, space_id: u64, name: &str, field: usize, said: &[Said]) -> Result<()> {
        let is_temporary = space_id >= u64::from(database::SESSION_ID_MIN);
        let mut def = self.sequence_def(&self.free_sequence_name(name), is_temporary);
        super::change_sequence(&mut def, said, true)?;
        let id = self.put_definition(&def, true)?;
        self.link_sequence(space_id, id, field)
    }

    /// The sequence that fills a column.
    pub(super) fn sequence_of(&self, table: &Table, at: usize) -> Option<Rc<Sequence>> {
        crate::catalog::sequence_of_column(self.database, table, at)
    }

    /// The table and its identity column, not one of its key, that a sequence fills.
    pub(crate) fn identity_filled_by(&self, sequence: &str) -> Option<(String, String)> {
        let spaces = self.database.catalog.spaces().into_iter().filter(|space| !space.is_system());
        spaces.filter_map(|space| Table::of(self.database, space).ok()).find_map(|table| {
            let is_it = |at: &usize| {
                table.columns[*at].identity.is_some()
                    && self.sequence_of(&table, *at).is_some_and(|known| known.def().name == sequence)
            };
            let at = (0..table.columns.len()).find(is_it)?;
            Some((table.name.clone(), table.columns[at].name.clone()))
        })
    }

    /// ALTER COLUMN ... ADD GENERATED. Errors: the column may be null, has a default or is one already.
    pub(super) fn add_identity(
        &self,
        table: &Table,
        at: usize,
        how: Option<ast::GeneratedAs>,
        options: Option<&[SequenceOptions]>,
    ) -> Result<()> {
        let column = &table.columns[at];
        let of = format!("column \"{}\" of relation \"{}\"", column.name, table.name);
        check_type(column.ty)?;
        if column.is_nullable {
            return Err(not_in_state(format!("{of} must be declared NOT NULL before identity can be added")));
        }
        if column.identity.is_some() {
            return Err(not_in_state(format!("{of} is already an identity column")));
        }
        if column.default.is_some() || table.generated.is_some_and(|(field, _)| field == at) {
            return Err(not_in_state(format!("{of} already has a default value")));
        }
        let identity = match how {
            Some(ast::GeneratedAs::Always) => Identity::Always,
            _ => Identity::ByDefault,
        };
        let mut said = super::said_of(options.unwrap_or_default());
        said.insert(0, ("as".to_string(), Some(column.ty.name(Dialect::Postgres))));
        let is_key = table.primary_key().iter().any(|(field, ..)| *field == at);
        let is_temporary = table.space.def().is_session;
        if is_key && table.generated.is_none() {
            self.put_identity(table, at, Some(identity), None)?;
            let name = self.full_name(&format!("{}_{}_seq", table.full, column.name), is_temporary);
            return self.put_linked(u64::from(table.space.id.0), &name, at, &said);
        }
        let default = self.put_serial(&table.full, &column.name, &said, is_temporary)?;
        self.put_identity(table, at, Some(identity), Some(&default))
    }

    /// What else ALTER COLUMN says of an identity. Errors: the column is none.
    pub(super) fn alter_identity(&self, table: &Table, at: usize, options: &[AlterGenericOption]) -> Result<()> {
        let column = &table.columns[at];
        let none = || {
            not_in_state(format!("column \"{}\" of relation \"{}\" is not an identity column", column.name, table.name))
        };
        let said: Vec<(String, bool, String)> = options
            .iter()
            .filter_map(|option| match option {
                AlterGenericOption::Drop(name) => Some((name.value.clone(), true, String::new())),
                AlterGenericOption::Set(option) => Some((option.key.value.clone(), false, option.value.value.clone())),
                AlterGenericOption::Add { .. } => None,
            })
            .collect();
        match said.first() {
            Some((name, true, _)) if name.starts_with(MARK) => match column.identity {
                Some(_) => self.drop_identity(table, at),
                None if name != MARK => Ok(()),
                None => Err(none()),
            },
            Some((name, false, _)) if name == MARK => {
                let (Some(identity), Some(sequence)) = (column.identity, self.sequence_of(table, at)) else {
                    return Err(none());
                };
                let text = |value: &String| Some(value.clone()).filter(|text| !text.is_empty());
                let said: Vec<Said> = said[1..].iter().map(|(name, _, value)| (name.clone(), text(value))).collect();
                let how = said.iter().rev().find(|(name, _)| name == "generated").and_then(|(_, word)| word.as_deref());
                if let Some(other) = how.and_then(Identity::of_word).filter(|other| *other != identity) {
                    self.put_identity(table, at, Some(other), column.default.as_deref())?;
                }
                let mut said: Vec<Said> = said.into_iter().filter(|(name, _)| name != "generated").collect();
                if !said.is_empty() {
                    said.insert(0, ("as".to_string(), Some(column.ty.name(Dialect::Postgres))));
                    self.put_changed(SequenceDef::clone(&sequence.def()), &said)?;
                }
                Ok(())
            }
            _ => Err(Error::unsupported("ALTER COLUMN ... OPTIONS")),
        }
    }

    fn drop_identity(&self, table: &Table, at: usize) -> Result<()> {
        if table.generated.is_some_and(|(field, _)| field == at) {
            self.unlink_sequence(&table.space)?;
            return self.put_identity(table, at, None, None);
        }
        let sequence = self.sequence_of(table, at).map(|sequence| u64::from(sequence.def().id));
        self.put_identity(table, at, None, None)?;
        sequence.map_or(Ok(()), |id| self.remove_sequence(id))
    }

    /// A sequence goes that belongs to a column which has gone.
    pub(super) fn remove_sequence(&self, id: u64) -> Result<()> {
        self.as_admin(|| {
            self.delete(SEQUENCE_DATA_ID, &[id])?;
            self.delete(SEQUENCE_ID, &[id])
        })
    }

    /// Writes into the format of a space whether a column is an identity, and its default.
    fn put_identity(&self, table: &Table, at: usize, identity: Option<Identity>, default: Option<&str>) -> Result<()> {
        let format = self.changed_format(table, |format| {
            let Some(column) = format.get_mut(at) else { return };
            let mut entries = raw_entries(column);
            entries.retain(|(key, _)| key != "sql_identity" && key != "default");
            let said = [("sql_identity", identity.map(Identity::word)), ("default", default)];
            for (key, text) in said {
                if let Some(text) = text {
                    let mut value = Vec::new();
                    msgpack::encode_str(&mut value, text.as_bytes());
                    entries.push((key.to_string(), value));
                }
            }
            *column = encode_entries(&entries);
        })?;
        self.update_space(table, 6, |out| out.extend_from_slice(&format), None)
    }

    /// Errors: a column that is an identity is to have a default, none, or nulls.
    pub(super) fn check_no_identity(&self, table: &Table, at: usize, drops: bool) -> Result<()> {
        let column = &table.columns[at];
        if column.identity.is_none() {
            return Ok(());
        }
        let what = format!("column \"{}\" of relation \"{}\" is an identity column", column.name, table.name);
        let error = Error::new(Condition::Syntax, what);
        Err(match drops {
            true => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
            false => error,
        })
    }

    /// An identity column gets another type: its sequence keeps within that. Errors: it is none of whole numbers.
    pub(super) fn change_identity_type(&self, table: &Table, at: usize, ty: Type) -> Result<()> {
        if table.columns[at].identity.is_none() {
            return Ok(());
        }
        check_type(ty)?;
        let Some(sequence) = self.sequence_of(table, at) else { return Ok(()) };
        let before = super::sequences::range_of(&table.columns[at].ty.name(Dialect::Postgres));
        let mut def = SequenceDef::clone(&sequence.def());
        // Bounds that are those of the type become those of the other one.
        let mut said: Vec<Said> = vec![("as".to_string(), Some(ty.name(Dialect::Postgres)))];
        if before.is_some_and(|(_, most)| def.max == most) {
            said.push(("maxvalue".to_string(), None));
        }
        if before.is_some_and(|(least, _)| def.min == least) {
            said.push(("minvalue".to_string(), None));
        }
        super::change_sequence(&mut def, &said, false)?;
        self.put_definition(&def, false).map(drop)
    }
}

fn check_type(ty: Type) -> Result<()> {
    match ty.base {
        Base::Int2 | Base::Int4 | Base::Int8 => Ok(()),
        _ => Err(Error::new(Condition::InvalidArgument, "identity column type must be smallint, integer, or bigint")),
    }
}
