//! ALTER SEQUENCE, which the parser does not know: it is read as options of a table of that name, `sequence` the first of them.

use super::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::{Column, Table};
use database::{Operation, SEQUENCE_ID, SPACE_SEQUENCE_ID, SequenceDef};
use sqlparser::ast::{self, AlterTableOperation, SequenceOptions, SqlOption};
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
        let least = if self.dialect == Dialect::Tarantool { 0 } else { 1 };
        let start = i64::try_from(start).unwrap_or(i64::MAX);
        let def = self.sequence_def(name, is_temporary);
        self.put_definition(&SequenceDef { min: least, start, ..def }, true)
    }

    /// A sequence that counts from one.
    pub(crate) fn sequence_def(&self, name: &str, is_temporary: bool) -> SequenceDef {
        let id = match is_temporary {
            true => self.database.next_session_id(),
            false => self.database.next_sequence_id(),
        };
        let owner = self.context.user(&self.database.catalog);
        let name = name.to_string();
        SequenceDef { id, owner, name, step: 1, min: 1, max: i64::MAX, start: 1, cache: 0, is_cyclic: false }
    }

    /// Writes down what a sequence is. Returns its number.
    pub(crate) fn put_definition(&self, def: &SequenceDef, is_new: bool) -> Result<u64> {
        let mut row = Vec::new();
        let comment = if is_new { None } else { crate::comments::of_sequence(self.database, def.id) };
        msgpack::encode_array(&mut row, 9 + u32::from(comment.is_some()));
        msgpack::encode_uint(&mut row, u64::from(def.id));
        msgpack::encode_uint(&mut row, u64::from(def.owner));
        msgpack::encode_str(&mut row, def.name.as_bytes());
        for value in [def.step, def.min, def.max, def.start, def.cache] {
            msgpack::encode_int(&mut row, value);
        }
        msgpack::encode_bool(&mut row, def.is_cyclic);
        if let Some(comment) = comment {
            msgpack::encode_str(&mut row, comment.as_bytes());
        }
        self.execute(
            SEQUENCE_ID,
            if is_new { Operation::Insert { tuple: &row } } else { Operation::Replace { tuple: &row } },
        )?;
        Ok(u64::from(def.id))
    }

    /// A sequence that fills a column of the primary key, made and dropped together with the table.
    pub(crate) fn put_sequence(&self, space_id: u64, name: &str, field: usize, start: u64) -> Result<()> {
        let name = &self.free_sequence_name(name);
        let id = self.put_sequence_row(name, start, space_id >= u64::from(database::SESSION_ID_MIN))?;
        self.link_sequence(space_id, id, field)
    }

    /// A sequence fills a column of the primary key.
    pub(super) fn link_sequence(&self, space_id: u64, id: u64, field: usize) -> Result<()> {
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
        let said = options.iter().filter_map(|option| {
            let SqlOption::KeyValue { key, value } = option else { return None };
            let text = value.to_string().replace(' ', "");
            Some((
                key.to_string(),
                Some(text.trim_matches('\'').to_string()).filter(|text| !text.eq_ignore_ascii_case("null")),
            ))
        });
        let said: Vec<Said> = said.collect();
        self.put_changed(new, &said)?;
        Ok(Some(0))
    }

    /// A sequence is what it was but for what is said, and counts on from where that says. Errors: numbers that do not fit each other.
    pub(super) fn put_changed(&self, mut def: SequenceDef, said: &[Said]) -> Result<()> {
        let restart = change(&mut def, said, false)?;
        // The number before it is kept, and one that is too small means the first one.
        let is_before = |next: i64| match def.step > 0 {
            true => next > def.min && next.saturating_sub(def.step) < def.min,
            false => next < def.max && next.saturating_sub(def.step) > def.max,
        };
        if restart.is_some_and(|next| next != def.start && is_before(next)) {
            return Err(Error::unsupported("RESTART WITH a number that is nearer to the first one than a step"));
        }
        self.put_definition(&def, false)?;
        match restart {
            None => {}
            Some(next) if next == def.start => self.database.sequence_reset(self.context, def.id)?,
            Some(next) => self.database.sequence_set(self.context, def.id, next.saturating_sub(def.step))?,
        }
        Ok(())
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

/// An option of a sequence, and its value; None: there is none (NO MAXVALUE, RESTART).
pub(crate) type Said = (String, Option<String>);

/// What CREATE SEQUENCE says.
pub(crate) fn said_of(options: &[SequenceOptions]) -> Vec<Said> {
    let text = |expr: &ast::Expr| Some(expr.to_string().replace(' ', ""));
    let said = options.iter().filter_map(|option| {
        Some(match option {
            // What goes without saying.
            SequenceOptions::Cache(cache) if cache.to_string() == "1" => return None,
            SequenceOptions::DataType(ty) => ("as", Some(ty.to_string().to_lowercase())),
            SequenceOptions::IncrementBy(by, _) => ("increment", text(by)),
            SequenceOptions::MinValue(value) => ("minvalue", value.as_ref().and_then(text)),
            SequenceOptions::MaxValue(value) => ("maxvalue", value.as_ref().and_then(text)),
            SequenceOptions::StartWith(value, _) => ("start", text(value)),
            SequenceOptions::Cycle(is_no) => ("cycle", Some((!is_no).to_string())),
            SequenceOptions::Cache(cache) => ("cache", text(cache)),
            SequenceOptions::OwnedBy(_) => return None,
        })
    });
    said.map(|(name, value)| (name.to_string(), value)).collect()
}

/// What makes a sequence like another one.
pub(super) fn said_again(def: &SequenceDef) -> Vec<Said> {
    let numbers = [("increment", def.step), ("minvalue", def.min), ("maxvalue", def.max), ("start", def.start)];
    let mut said: Vec<Said> = numbers.iter().map(|(name, value)| (name.to_string(), Some(value.to_string()))).collect();
    said.push(("cycle".to_string(), Some(def.is_cyclic.to_string())));
    if def.cache > 1 {
        said.push(("cache".to_string(), Some(def.cache.to_string())));
    }
    said
}

/// The least and the greatest number of a sequence that is of a type.
pub(crate) fn range_of(ty: &str) -> Option<(i64, i64)> {
    match ty {
        "smallint" | "int2" => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        "integer" | "int" | "int4" => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        "bigint" | "int8" => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

/// Changes a sequence as is said. Returns the number that is to come next, if that is said. Errors: numbers that do not fit each other.
pub(crate) fn change(def: &mut SequenceDef, said: &[Said], is_new: bool) -> Result<Option<i64>> {
    let value_of = |wanted: &str| said.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.as_deref());
    let refuse = |what: String| Err(Error::new(Condition::InvalidArgument, what));
    let number = |text: &str| {
        let refused = || Error::new(Condition::InvalidArgument, format!("'{text}' is no number of a sequence"));
        text.parse::<i64>().map_err(|_| refused())
    };
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    if let Some(Some(ty)) = value_of("as") {
        let Some(range) = range_of(ty) else {
            return refuse("sequence type must be smallint, integer, or bigint".to_string());
        };
        (least, most) = range;
    }
    if let Some(Some(by)) = value_of("increment") {
        def.step = number(by)?;
    }
    if def.step == 0 {
        return refuse("INCREMENT must not be zero".to_string());
    }
    let rises = def.step > 0;
    // What is not said of a new one follows from its direction and its type; of one that is there it stays, but within the type.
    let (lowest, highest) = if rises { (1, most) } else { (least, -1) };
    match value_of("minvalue") {
        Some(Some(value)) => def.min = number(value)?,
        Some(None) => def.min = lowest,
        None if is_new => def.min = lowest,
        None => def.min = def.min.max(least),
    }
    match value_of("maxvalue") {
        Some(Some(value)) => def.max = number(value)?,
        Some(None) => def.max = highest,
        None if is_new => def.max = highest,
        None => def.max = def.max.min(most),
    }
    // How many numbers a session may take at once: each is taken alone, whatever that is.
    if let Some(Some(cache)) = value_of("cache") {
        def.cache = number(cache)?;
        if def.cache <= 0 {
            return refuse(format!("CACHE ({}) must be greater than zero", def.cache));
        }
    }
    if let Some(cycles) = value_of("cycle") {
        def.is_cyclic = cycles == Some("true");
    }
    for (what, value) in [("MINVALUE", def.min), ("MAXVALUE", def.max)] {
        if !(least..=most).contains(&value) {
            return refuse(format!("{what} ({value}) is out of range for the sequence data type"));
        }
    }
    if def.min >= def.max {
        return refuse(format!("MINVALUE ({}) must be less than MAXVALUE ({})", def.min, def.max));
    }
    match value_of("start").flatten() {
        Some(start) => def.start = number(start)?,
        None if is_new => def.start = if rises { def.min } else { def.max },
        None => {}
    }
    let restart = match value_of("restart") {
        None => None,
        Some(None) => Some(def.start),
        Some(Some(value)) => Some(number(value)?),
    };
    for (what, value) in [("START", Some(def.start)), ("RESTART", restart)] {
        match value {
            Some(value) if value < def.min => {
                return refuse(format!("{what} value ({value}) cannot be less than MINVALUE ({})", def.min));
            }
            Some(value) if value > def.max => {
                return refuse(format!("{what} value ({value}) cannot be greater than MAXVALUE ({})", def.max));
            }
            _ => {}
        }
    }
    Ok(restart)
}
