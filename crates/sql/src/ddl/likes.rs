//! CREATE TABLE (LIKE other INCLUDING ...) of PostgreSQL's dialect.
//!
//! The parser knows no options but DEFAULTS. They are put before the name as if they were its schema.

use super::{Ddl, NewColumn, NewIndex};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use sqlparser::ast::{self, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tuple::SpaceId;

/// What the part of a name begins with that says what is taken over.
pub(crate) const MARK: &str = "including:";
/// What can be.
const OPTIONS: [&str; 9] =
    ["comments", "compression", "constraints", "defaults", "generated", "identity", "indexes", "statistics", "storage"];

/// Spells `(LIKE other INCLUDING x EXCLUDING y)` as the parser understands it. Unknown options are left for it to refuse.
pub(crate) fn respell(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| matches!(word_of(&token.token).as_str(), "including" | "excluding")) {
        return;
    }
    let places: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let word = |at: usize| places.get(at).map_or(String::new(), |place| word_of(&tokens[*place].token));
    let is = |at: usize, token: &Token| places.get(at).is_some_and(|place| tokens[*place].token == *token);
    // Where a name begins, what it is marked with, and the places of the words that say so.
    let mut found: Vec<(usize, String, Vec<usize>)> = Vec::new();
    for at in 1..places.len() {
        if word(at) != "like" || !is(at - 1, &Token::LParen) {
            continue;
        }
        let name = at + 1;
        let mut next = name + 1;
        while is(next, &Token::Period) {
            next += 2;
        }
        let (first, mut taken) = (next, Vec::new());
        while let is_taken @ ("including" | "excluding") = word(next).as_str() {
            let option = word(next + 1);
            let all: Vec<String> = match option.as_str() {
                "all" => OPTIONS.iter().map(ToString::to_string).collect(),
                option => vec![option.to_string()],
            };
            taken.retain(|known| !all.contains(known));
            if is_taken == "including" {
                taken.extend(all);
            }
            next += 2;
        }
        let is_known = taken.iter().all(|option| OPTIONS.contains(&option.as_str()));
        if next > first && is_known && is(next, &Token::RParen) {
            let gone = (first..next).map(|at| places[at]).collect();
            found.push((places[name], format!("{MARK}{}", taken.join(",")), gone));
        }
    }
    for (name, mark, gone) in found.into_iter().rev() {
        for at in gone {
            tokens[at].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        }
        let span = tokens[name].span;
        tokens.insert(name, TokenWithSpan { token: Token::Period, span });
        tokens.insert(name, TokenWithSpan { token: Token::make_word(&mark, Some('"')), span });
    }
}

/// A word that is not quoted, in small letters.
fn word_of(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

impl Ddl<'_> {
    /// CREATE TABLE a (LIKE b ...): columns and what may not be null, and what else it says. Errors: there is no such table.
    pub(super) fn create_like_with(
        &self,
        create: &ast::CreateTable,
        name: &str,
        like: &ast::CreateTableLike,
    ) -> Result<u64> {
        let marked = like.name.0.first().and_then(|part| match part {
            ObjectNamePart::Identifier(ident) => ident.value.strip_prefix(MARK),
            _ => None,
        });
        let has = |option: &str| {
            let is_listed = marked.is_some_and(|listed| listed.split(',').any(|one| one == option));
            is_listed || option == "defaults" && like.defaults == Some(ast::CreateTableLikeDefaults::Including)
        };
        if self.dialect != Dialect::Postgres || !create.columns.is_empty() || create.query.is_some() {
            return Err(Error::unsupported("CREATE TABLE (LIKE ...) with more than that"));
        }
        let table = self.table(&like.name)?;
        self.database.check_space_access(self.context, &table.space, database::Privileges::READ)?;
        let is_hidden = |at: usize| table.columns[at].is_hidden;
        // Identities get sequences of their own; whoever has not their option takes no default for them.
        let is_identity = |at: usize| table.columns[at].identity.is_some();
        let takes_generated = |at: usize| if is_identity(at) { has("identity") } else { has("defaults") };
        let mut columns: Vec<NewColumn> = self.columns_of(&table);
        for (at, column) in columns.iter_mut().enumerate() {
            column.default.take_if(|_| is_identity(at) || !has("defaults"));
            column.identity.take_if(|_| !has("identity"));
            column.comment.take_if(|_| !has("comments"));
            column.generated.take_if(|_| !has("generated") && !is_hidden(at));
        }
        let mut generated = table.generated.map(|(at, _)| at).filter(|at| takes_generated(*at) || is_hidden(*at));
        let mut said: Vec<Vec<super::sequences::Said>> = vec![Vec::new(); columns.len()];
        for at in (0..columns.len()).filter(|at| columns[*at].identity.is_some()) {
            said[at] = self
                .sequence_of(&table, at)
                .map_or(Vec::new(), |sequence| super::sequences::said_again(&sequence.def()));
        }
        // Whether those that are there, or one that nobody sees.
        let mut indexes: Vec<(u64, NewIndex)> = Vec::new();
        let mut alone: Vec<u64> = Vec::new();
        if has("indexes") && !table.indexes.is_empty() {
            for index in &table.indexes {
                let fields = index.parts.iter().map(|(field, ..)| *field).collect();
                if index.is_unique && !index.is_constraint {
                    alone.push(u64::from(index.id.0));
                }
                indexes.push((
                    u64::from(index.id.0),
                    NewIndex { name: String::new(), is_unique: index.is_unique, fields },
                ));
            }
        } else {
            if let Some(at) = generated.take().filter(|at| !is_hidden(*at) && !is_identity(*at)) {
                // Only a part of the primary key is filled by the space itself.
                let sequence = self.full_name(&format!("{name}_{}_seq", columns[at].name), create.temporary);
                self.put_sequence_row(&sequence, 1, create.temporary)?;
                columns[at].default = Some(format!("nextval('{}')", sequence.replace('\'', "''")));
            }
            columns.retain(|column| !column.is_hidden);
            generated = Some(columns.len());
            columns.push(NewColumn::hidden_key());
            indexes.push((0, NewIndex { name: String::new(), is_unique: true, fields: vec![columns.len() - 1] }));
        }
        for at in (0..columns.len()).filter(|at| generated != Some(*at)) {
            if columns[at].identity.is_some() {
                let column = columns[at].name.clone();
                columns[at].default = Some(self.put_serial(name, &column, &said[at], create.temporary)?);
            }
        }
        if columns.iter().all(|column| column.is_hidden) {
            return Err(Error::new(Condition::InvalidTable, "a table has at least one column"));
        }
        let space_id = self.new_table_id(create.temporary)?;
        self.put_space(
            space_id,
            &self.full_name(name, create.temporary),
            self.engine_of(create)?,
            &columns,
            create.temporary,
        )?;
        let mut names: Vec<String> = Vec::new();
        let mut spelled = Vec::new();
        for (number, index) in &indexes {
            let mut index_name = self.index_name(name, index, *number as usize);
            let is_alone = alone.contains(number);
            if index_name.is_empty() || !index.is_unique {
                let ending = if index.is_unique && !is_alone { "key" } else { "idx" };
                let listed: Vec<&str> = index.fields.iter().map(|field| columns[*field].name.as_str()).collect();
                let first = format!("{}_{}_{ending}", self.local(name), listed.join("_"));
                let numbered = (1..).map(|number| format!("{first}{number}"));
                let is_free = |known: &String| !names.contains(known);
                index_name = std::iter::once(first.clone()).chain(numbered).find(is_free).unwrap_or_default();
            }
            self.put_index(space_id, *number, &index_name, index, &columns)?;
            if is_alone && let Ok(id) = u32::try_from(space_id) {
                self.set_constraint(SpaceId(id), &index_name, false)?;
            }
            let said = table.indexes.iter().find(|known| u64::from(known.id.0) == *number);
            spelled.extend(said.and_then(|said| said.spelled.clone()).map(|said| (index_name.clone(), said)));
            names.push(index_name);
        }
        for (index, said) in spelled {
            self.set_spelled(SpaceId(u32::try_from(space_id).unwrap_or_default()), &index, Some(&said))?;
        }
        if let Some(field) = generated {
            let sequence = self.full_name(&format!("{name}_{}_seq", columns[field].name), create.temporary);
            match said.get(field).is_some_and(|said| !said.is_empty()) {
                true => self.put_linked(space_id, &sequence, field, &said[field])?,
                false => self.put_sequence(space_id, &sequence, field, 1)?,
            }
        }
        let checks = &table.space.def().checks;
        if has("constraints") && checks.iter().any(|check| check.field.is_none()) {
            self.put_options(&self.table_named(name)?.space, checks, &[])?;
        }
        Ok(1)
    }
}
