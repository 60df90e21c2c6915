//! ALTER SEQUENCE, which the parser does not know: it is read as options of a table of that name, `sequence` the first of them.

use super::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::{Column, Table};
use database::{Operation, SEQUENCE_ID, SPACE_SEQUENCE_ID};
use sqlparser::ast::{self, AlterTableOperation, SqlOption};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tuple::msgpack;

/// The option that says so.
const MARK: &str = "sequence";

/// Spells ALTER SEQUENCE as the parser understands it. What is no option of a sequence is left as it is, for the parser to refuse.
pub(crate) fn respell(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: &TokenWithSpan, word: &str| word_of(&token.token) == word;
    let has_one = tokens.windows(3).any(|window| is_word(&window[0], "alter") && is_word(&window[2], MARK));
    if !has_one {
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

/// A word that is not quoted, in small letters.
fn word_of(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

fn respelled(statement: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let words: Vec<&TokenWithSpan> =
        statement.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|token| word_of(&token.token) == wanted);
    if !is(0, "alter") || !is(1, MARK) {
        return None;
    }
    let mut at = if is(2, "if") && is(3, "exists") { 4 } else { 2 };
    at += 1;
    while words.get(at).is_some_and(|token| token.token == Token::Period) {
        at += 2;
    }
    let span = statement.first()?.span;
    let mut out: Vec<TokenWithSpan> = words.get(..at)?.iter().map(|token| (*token).clone()).collect();
    out[1].token = Token::make_keyword("TABLE");
    let mut put = |token: Token| out.push(TokenWithSpan { token, span });
    if is(at, "rename") {
        words[at..].iter().for_each(|token| put(token.token.clone()));
        return Some(out);
    }
    put(Token::make_keyword("SET"));
    put(Token::LParen);
    put(Token::make_word(MARK, None));
    put(Token::Eq);
    put(Token::make_keyword("TRUE"));
    while at < words.len() && words[at].token != Token::SemiColon {
        let is_no = is(at, "no");
        at += usize::from(is_no);
        let name = word_of(&words.get(at)?.token);
        at += 1;
        let before = at;
        if matches!(
            (name.as_str(), word_of(&words.get(at).map_or(Token::EOF, |token| token.token.clone())).as_str()),
            ("restart" | "start", "with") | ("increment", "by")
        ) {
            at += 1;
        }
        put(Token::Comma);
        put(Token::make_word(&name, None));
        put(Token::Eq);
        match name.as_str() {
            "cycle" => put(Token::make_keyword(if is_no { "FALSE" } else { "TRUE" })),
            "minvalue" | "maxvalue" if is_no => put(Token::make_keyword("NULL")),
            "restart"
                if at == before
                    && !matches!(words.get(at).map(|token| &token.token), Some(Token::Number(..) | Token::Minus)) =>
            {
                put(Token::make_keyword("NULL"));
            }
            "as" => {
                put(Token::SingleQuotedString(word_of(&words.get(at)?.token)));
                at += 1;
            }
            "restart" | "start" | "increment" | "minvalue" | "maxvalue" | "cache" if !is_no => {
                if words.get(at)?.token == Token::Minus {
                    put(Token::Minus);
                    at += 1;
                }
                put(words.get(at)?.token.clone());
                at += 1;
            }
            _ => return None,
        }
    }
    put(Token::RParen);
    if words.get(at).is_some() {
        put(Token::SemiColon);
    }
    Some(out)
}

/// True for ALTER SEQUENCE.
pub(crate) fn is_alter(alter: &ast::AlterTable) -> bool {
    marked(alter).is_some()
}

/// The options of a sequence that it changes.
fn marked(alter: &ast::AlterTable) -> Option<&[SqlOption]> {
    let [AlterTableOperation::SetOptionsParens { options }] = alter.operations.as_slice() else { return None };
    let (first, rest) = options.split_first()?;
    matches!(first, SqlOption::KeyValue { key, .. } if key.to_string() == MARK).then_some(rest)
}

impl Ddl<'_> {
    /// The name of a sequence that fills a column: with a number, if another one has it, as of a table that has got another name.
    pub(super) fn free_sequence_name(&self, name: &str) -> String {
        let is_free = |name: &String| {
            self.dialect == Dialect::Tarantool || self.database.catalog.sequence_by_name(name).is_none()
        };
        let numbered = (1..).map(|number| format!("{name}{number}"));
        std::iter::once(name.to_string()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// A sequence. Returns its number.
    pub(super) fn put_sequence_row(&self, name: &str, start: u64, is_temporary: bool) -> Result<u64> {
        let id = u64::from(match is_temporary {
            true => self.database.next_session_id(),
            false => self.database.next_sequence_id(),
        });
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, 9);
        msgpack::encode_uint(&mut row, id);
        msgpack::encode_uint(&mut row, u64::from(self.context.user(&self.database.catalog)));
        msgpack::encode_str(&mut row, name.as_bytes());
        msgpack::encode_uint(&mut row, 1);
        let least = if self.dialect == Dialect::Tarantool { 0 } else { 1 };
        msgpack::encode_uint(&mut row, least);
        msgpack::encode_uint(&mut row, i64::MAX as u64);
        msgpack::encode_uint(&mut row, start);
        msgpack::encode_uint(&mut row, 0);
        msgpack::encode_bool(&mut row, false);
        self.execute(SEQUENCE_ID, Operation::Insert { tuple: &row })?;
        Ok(id)
    }

    /// A sequence that fills a column of the primary key, made and dropped together with the table.
    pub(crate) fn put_sequence(&self, space_id: u64, name: &str, field: usize, start: u64) -> Result<()> {
        let name = &self.free_sequence_name(name);
        let id = self.put_sequence_row(name, start, space_id >= u64::from(database::SESSION_ID_MIN))?;
        let mut link = Vec::new();
        msgpack::encode_array(&mut link, 5);
        msgpack::encode_uint(&mut link, space_id);
        msgpack::encode_uint(&mut link, id);
        msgpack::encode_bool(&mut link, true);
        msgpack::encode_uint(&mut link, field as u64);
        msgpack::encode_str(&mut link, b"");
        self.execute(SPACE_SEQUENCE_ID, Operation::Insert { tuple: &link })
    }

    /// ALTER SEQUENCE. None: it is about a table. Errors: there is no such sequence; numbers that do not fit each other.
    pub(super) fn alter_sequence(&self, alter: &ast::AlterTable) -> Result<Option<u64>> {
        if self.dialect != Dialect::Postgres {
            return Ok(None);
        }
        let name = self.dialect.object_name(&alter.name)?;
        let catalog = &self.database.catalog;
        let found = catalog.sequence_by_name(&name);
        let options = match (marked(alter), alter.operations.as_slice()) {
            (Some(options), _) => options,
            (None, [AlterTableOperation::RenameTable { .. }])
                if found.is_some() && catalog.space_by_name(&name).is_none() =>
            {
                &[]
            }
            _ => return Ok(None),
        };
        let Some(sequence) = found else {
            return match alter.if_exists {
                true => Ok(Some(0)),
                false => Err(Error::new(Condition::UndefinedTable, format!("relation \"{name}\" does not exist"))),
            };
        };
        let def = sequence.def();
        let mut new = (*def).clone();
        if let [AlterTableOperation::RenameTable { table_name }] = alter.operations.as_slice() {
            let (ast::RenameTableNameKind::As(other) | ast::RenameTableNameKind::To(other)) = table_name;
            new.name = self.dialect.object_name(other)?;
            if catalog.sequence_by_name(&new.name).is_some() || catalog.space_by_name(&new.name).is_some() {
                let what = format!("relation \"{}\" already exists", new.name);
                return Err(Error::new(Condition::DuplicateTable, what));
            }
            self.check_unnamed(&name)?;
        }
        let mut restart = None;
        for option in options {
            let SqlOption::KeyValue { key, value } = option else { continue };
            let text = value.to_string().replace(' ', "");
            let number = || {
                let what = || Error::new(Condition::InvalidArgument, format!("'{text}' is no number of a sequence"));
                text.parse::<i64>().map_err(|_| what())
            };
            let is_none = text.eq_ignore_ascii_case("null");
            match key.to_string().as_str() {
                "increment" => new.step = number()?,
                "minvalue" if is_none => new.min = if new.step > 0 { 1 } else { i64::MIN },
                "minvalue" => new.min = number()?,
                "maxvalue" if is_none => new.max = if new.step > 0 { i64::MAX } else { -1 },
                "maxvalue" => new.max = number()?,
                "start" => new.start = number()?,
                "restart" if is_none => restart = Some(None),
                "restart" => restart = Some(Some(number()?)),
                "cycle" => new.is_cyclic = text.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        let refuse = |what: String| Err(Error::new(Condition::InvalidArgument, what));
        if new.step == 0 {
            return refuse("INCREMENT must not be zero".to_string());
        }
        if new.min >= new.max {
            return refuse(format!("MINVALUE ({}) must be less than MAXVALUE ({})", new.min, new.max));
        }
        let restart = restart.map(|number| number.unwrap_or(new.start));
        for (what, value) in [("START", Some(new.start)), ("RESTART", restart)] {
            match value {
                Some(value) if value < new.min => {
                    return refuse(format!("{what} value ({value}) cannot be less than MINVALUE ({})", new.min));
                }
                Some(value) if value > new.max => {
                    return refuse(format!("{what} value ({value}) cannot be greater than MAXVALUE ({})", new.max));
                }
                _ => {}
            }
        }
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, 9);
        msgpack::encode_uint(&mut row, u64::from(new.id));
        msgpack::encode_uint(&mut row, u64::from(new.owner));
        msgpack::encode_str(&mut row, new.name.as_bytes());
        for value in [new.step, new.min, new.max, new.start, new.cache] {
            msgpack::encode_int(&mut row, value);
        }
        msgpack::encode_bool(&mut row, new.is_cyclic);
        self.execute(SEQUENCE_ID, Operation::Replace { tuple: &row })?;
        match restart {
            None => {}
            Some(next) if next == new.start => self.database.sequence_reset(self.context, new.id)?,
            Some(next) => self.database.sequence_set(self.context, new.id, next.saturating_sub(new.step))?,
        }
        Ok(Some(0))
    }

    /// Errors: the default of a column names the sequence, as text that would mean nothing then.
    fn check_unnamed(&self, name: &str) -> Result<()> {
        let call = format!("nextval('{}'", name.replace('\'', "''"));
        for space in self.database.catalog.spaces().into_iter().filter(|space| !space.is_system()) {
            let Ok(table) = Table::of(self.database, space) else { continue };
            let has_it = |column: &Column| column.default.as_ref().is_some_and(|default| default.contains(&call));
            if table.columns.iter().any(has_it) {
                let what = format!("renaming sequence {name}, which the default of a column of {} names,", table.name);
                return Err(Error::unsupported(what));
            }
        }
        Ok(())
    }
}
