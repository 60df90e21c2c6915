//! Statements that MySQL alone has: those about the session are taken apart here, those that ask for something become queries over `information_schema`.

use super::variables::{Scope, Target};
use crate::accounts::Accounts;
use crate::bind::PASSES_OVER;
use crate::control::{Assignment, Control, Isolation, Modes};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use sqlparser::ast;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};
use std::rc::Rc;

/// Stands in the name of a column before that of a table, which may be a view: what the column is called is known when the table is.
pub(crate) const TABLE_MARK: char = '\u{3}';

/// Bytes of a text in which a word behind SELECT is looked for.
const BEGINNING_BYTES: usize = 4096;

/// A statement as it was said.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// One that the parser knows.
    Parsed(ast::Statement),
    /// The same; the rows that it had found without its LIMIT are counted.
    Counted(ast::Statement),
    /// One about the session.
    Control(Control),
    /// One about users, roles and rights.
    Accounts(Rc<Accounts>),
}

/// The words of a statement.
pub(super) struct Words {
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
}

/// The statement, if it is one that the parser does not know. Errors: `Syntax`, `Unsupported`.
pub(crate) fn own(text: &str) -> Result<Option<Said>> {
    let first = first_word(text);
    let is_own = matches!(
        first.as_str(),
        "show"
            | "desc"
            | "describe"
            | "explain"
            | "set"
            | "use"
            | "start"
            | "begin"
            | "lock"
            | "unlock"
            | "kill"
            | "flush"
            | "reset"
            | "analyze"
            | "optimize"
            | "check"
            | "repair"
            | "checksum"
            | "do"
            | "prepare"
            | "execute"
            | "deallocate"
            | "drop"
            | "create"
            | "alter"
            | "rename"
            | "grant"
            | "revoke"
            | "handler"
            | "load"
            | "call"
            | "xa"
            | "change"
            | "install"
            | "uninstall"
            | "commit"
            | "rollback"
            | "select"
            | "delete"
    );
    if !is_own || first == "select" && !begins_with_word(text, "sql_calc_found_rows") {
        return Ok(None);
    }
    let tokens = Tokenizer::new(&MySqlDialect {}, text)
        .tokenize()
        .map_err(|error| Error::new(Condition::Syntax, format!("syntax error: {error}")))?;
    let tokens = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_)));
    let mut tokens: Vec<Token> = tokens.filter(|token| *token != Token::SemiColon).collect();
    crate::dialect::number_parameters(tokens.iter_mut());
    let mut words = Words { tokens, at: 0 };
    let first = words.next_word();
    Ok(Some(match first.as_str() {
        "show" => words.show()?,
        "desc" | "describe" | "explain" => {
            let next = words.word_at(0);
            let is_nested = matches!(words.token(0), Some(Token::LParen));
            if is_nested
                || matches!(
                    next.as_str(),
                    "select" | "insert" | "update" | "delete" | "replace" | "with" | "analyze" | "format" | "extended"
                )
            {
                return words.explain(&next);
            }
            let table = words.name()?;
            let like = words.rest_as_pattern();
            let filter = like.map_or_else(String::new, |like| format!(" WHERE Field LIKE {}", literal(&like)));
            parsed(&format!("SELECT * FROM ({}) AS c{filter}", columns_query(&table, false)))?
        }
        "set" => return words.set().map(Some),
        "use" => Said::Control(Control::Use(words.name()?)),
        "start" if words.word_at(0) == "transaction" => {
            words.at += 1;
            Said::Control(Control::Begin(words.modes()))
        }
        "begin" => Said::Control(Control::Begin(Modes::default())),
        "commit" => Said::Control(Control::Commit { is_chained: words.is_chained() }),
        "rollback" if matches!(words.word_at(0).as_str(), "to") || words.word_at(1) == "to" => return Ok(None),
        "rollback" => Said::Control(Control::Rollback { is_chained: words.is_chained() }),
        "lock" => Said::Control(Control::Nothing("LOCK TABLES")),
        "unlock" => Said::Control(Control::Nothing("UNLOCK TABLES")),
        "flush" | "reset" => Said::Control(Control::Nothing("FLUSH")),
        "kill" => words.kill()?,
        "analyze" | "optimize" | "check" | "repair" | "checksum" => words.maintenance(&first)?,
        "do" => {
            let values = words.expressions()?;
            let assignments =
                values.into_iter().map(|value| Assignment { target: Target::Nothing, value: Some(value) });
            Said::Control(Control::Assign(assignments.collect()))
        }
        "prepare" => {
            let name = words.name()?;
            words.expect("from")?;
            let text = words.expressions()?.pop();
            let text = text.ok_or_else(|| words.refused())?;
            Said::Control(Control::PrepareFrom { name, text: Box::new(text) })
        }
        "execute" => {
            let name = words.name()?;
            let values = if words.skip("using") { words.expressions()? } else { Vec::new() };
            Said::Control(Control::ExecuteUsing { name, values })
        }
        "deallocate" | "drop" if words.word_at(0) == "prepare" => {
            words.at += 1;
            Said::Control(Control::Deallocate(Some(words.name()?)))
        }
        "create" | "drop" | "alter" if matches!(words.word_at(0).as_str(), "database" | "schema") => {
            words.database(&first)?
        }
        "create" | "drop" | "alter" | "rename" if matches!(words.word_at(0).as_str(), "user" | "role") => {
            if first == "rename" {
                return Err(Error::unsupported("RENAME USER"));
            }
            return words.accounts(&first).map(Some);
        }
        "create" | "drop" | "alter"
            if matches!(
                words.word_at(0).as_str(),
                "trigger" | "procedure" | "function" | "event" | "definer" | "server" | "tablespace"
            ) =>
        {
            let what = format!("'{} {}'", first.to_uppercase(), words.word_at(0).to_uppercase());
            return Err(Error::unsupported(what));
        }
        "rename" if words.word_at(0) == "table" => words.rename()?,
        "load" => super::load::parse(&mut words)?,
        "grant" | "revoke" => words.accounts(&first)?,
        "alter" => return words.alter(),
        "delete" => return words.delete().map(|statement| statement.map(Said::Parsed)),
        "select" => words.counted()?,
        "create" | "drop" | "deallocate" | "start" | "rename" => return Ok(None),
        other => return Err(Error::unsupported(format!("'{}'", other.to_uppercase()))),
    }))
}

/// The first word of a text, in small letters, behind comments and parentheses.
fn first_word(text: &str) -> String {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("/*") {
            if let Some(hint) = comment.strip_prefix('!') {
                rest = hint.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
                break;
            }
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest).trim_start();
        } else if rest.starts_with('#') || rest.starts_with("-- ") || rest.starts_with("--\n") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    rest[..end].to_ascii_lowercase()
}

/// True if a word stands near the beginning of a text.
fn begins_with_word(text: &str, word: &str) -> bool {
    let beginning = &text.as_bytes()[..text.len().min(BEGINNING_BYTES)];
    beginning.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// A text as a literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn parsed(query: &str) -> Result<Said> {
    let mut statements = Dialect::Mysql.parse(query)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(Said::Parsed(statement)),
        _ => Err(Error::new(Condition::Syntax, "a statement is wanted")),
    }
}

/// A query for what SHOW COLUMNS says.
fn columns_query(table: &str, is_full: bool) -> String {
    let table = literal(table);
    let (collation, more) = match is_full {
        true => (
            "collation_name AS Collation, ",
            ", 'select,insert,update,references' AS Privileges, column_comment AS Comment",
        ),
        false => ("", ""),
    };
    format!(
        "SELECT column_name AS Field, column_type AS Type, {collation}is_nullable AS `Null`, column_key AS `Key`, \
         column_default AS `Default`, extra AS Extra{more} FROM information_schema.columns \
         WHERE table_name = known_table({table}) ORDER BY ordinal_position"
    )
}

impl Words {
    pub(super) fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    /// A word that is not quoted, in small letters.
    pub(super) fn word_at(&self, ahead: usize) -> String {
        match self.token(ahead) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    fn next_word(&mut self) -> String {
        let word = self.word_at(0);
        self.at += 1;
        word
    }

    pub(super) fn skip(&mut self, word: &str) -> bool {
        let is_it = self.word_at(0) == word;
        self.at += usize::from(is_it);
        is_it
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        if self.skip(word) { Ok(()) } else { Err(self.refused()) }
    }

    pub(super) fn refused(&self) -> Error {
        let near: Vec<String> =
            self.tokens[self.at.min(self.tokens.len())..].iter().take(8).map(ToString::to_string).collect();
        Error::new(
            Condition::Syntax,
            format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line 1",
                near.join(" ")
            ),
        )
    }

    /// A name; of `a.b` the last part.
    pub(super) fn name(&mut self) -> Result<String> {
        let mut found = None;
        loop {
            match self.token(0) {
                Some(Token::Word(word)) => found = Some(word.value.clone()),
                Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => found = Some(text.clone()),
                _ => break,
            }
            self.at += 1;
            match self.token(0) {
                Some(Token::Period) => self.at += 1,
                // The tokenizer takes `.name` for one token behind some words.
                _ => break,
            }
        }
        found.ok_or_else(|| self.refused())
    }

    /// All that follows, as expressions between commas.
    fn expressions(&mut self) -> Result<Vec<ast::Expr>> {
        let rest = self.tokens.split_off(self.at.min(self.tokens.len()));
        let mut parser = Parser::new(&MySqlDialect {}).with_recursion_limit(50).with_tokens(rest);
        let found = parser.parse_comma_separated(Parser::parse_expr);
        found.map_err(|error| Error::new(Condition::Syntax, format!("syntax error: {error}")))
    }

    fn rest_as_pattern(&mut self) -> Option<String> {
        match self.token(0) {
            Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => Some(text.clone()),
            Some(Token::Word(word)) => Some(word.value.clone()),
            _ => None,
        }
    }

    fn is_chained(&mut self) -> bool {
        self.skip("work");
        self.word_at(0) == "and" && self.word_at(1) == "chain"
    }

    fn modes(&mut self) -> Modes {
        let mut modes = Modes::default();
        while let Some(token) = self.token(0) {
            let is_word = matches!(token, Token::Word(_));
            match (self.word_at(0).as_str(), self.word_at(1).as_str()) {
                ("read", "only") => modes.is_read_only = Some(true),
                ("read", "write") => modes.is_read_only = Some(false),
                // One moment for all that it reads.
                ("consistent", "snapshot") => modes.isolation = Some(Isolation::Serializable),
                ("read", _) if is_word => modes.isolation = Some(Isolation::ReadCommitted),
                ("repeatable", _) => {
                    modes.isolation = Some(Isolation::Serializable);
                    // Its second word is READ.
                    self.at += 1;
                }
                ("serializable", _) => modes.isolation = Some(Isolation::Serializable),
                _ => {}
            }
            self.at += 1;
        }
        modes
    }

    fn explain(&mut self, next: &str) -> Result<Option<Said>> {
        let (mut analyze, mut format, mut next) = (false, None, next.to_string());
        loop {
            match next.as_str() {
                "extended" => self.at += 1,
                "analyze" => {
                    analyze = true;
                    self.at += 1;
                }
                "format" => {
                    let name = self.token(2).map(ToString::to_string).unwrap_or_default();
                    format = Some(match name.trim_matches(['\'', '"']).to_lowercase().as_str() {
                        "json" => ast::AnalyzeFormat::JSON,
                        "tree" => ast::AnalyzeFormat::TREE,
                        "traditional" => ast::AnalyzeFormat::TRADITIONAL,
                        other => {
                            return Err(Error::new(
                                Condition::Syntax,
                                format!("Unknown EXPLAIN format name: '{other}'"),
                            )
                            .mysql(1791));
                        }
                    });
                    self.at += 3;
                }
                _ => break,
            }
            next = self.token(0).map(|token| token.to_string().to_lowercase()).unwrap_or_default();
        }
        let mut explained = Words { tokens: self.tokens.split_off(self.at.min(self.tokens.len())), at: 1 };
        let delete = if next == "delete" { explained.delete()? } else { None };
        let statement = delete.map_or_else(|| explained.reparsed(), Ok)?;
        Ok(Some(Said::Parsed(ast::Statement::Explain {
            describe_alias: ast::DescribeAlias::Explain,
            analyze,
            verbose: false,
            query_plan: false,
            estimate: false,
            statement: Box::new(statement),
            format: format.map(ast::AnalyzeFormatKind::Assignment),
            options: None,
        })))
    }

    fn kill(&mut self) -> Result<Said> {
        let is_query = self.skip("query");
        self.skip("connection");
        let number = match self.token(0) {
            Some(Token::Number(digits, _)) => digits.parse::<u32>().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.refused())?;
        Ok(Said::Control(Control::Kill { number, is_query }))
    }

    /// ANALYZE, OPTIMIZE, CHECK and REPAIR TABLE: nothing is to be done, and it is said in the form that is expected.
    fn maintenance(&mut self, what: &str) -> Result<Said> {
        self.skip("no_write_to_binlog");
        self.skip("local");
        self.expect("table")?;
        let mut selects = Vec::new();
        loop {
            let name = self.name()?;
            let row = match what {
                "checksum" => format!("SELECT known_table({}) AS `Table`, NULL AS Checksum", literal(&name)),
                _ => format!(
                    "SELECT CONCAT(DATABASE(), '.', known_table({})) AS `Table`, '{what}' AS Op, 'status' AS Msg_type, 'OK' AS Msg_text",
                    literal(&name)
                ),
            };
            selects.push(row);
            if self.token(0) != Some(&Token::Comma) {
                break;
            }
            self.at += 1;
        }
        parsed(&selects.join(" UNION ALL "))
    }

    fn database(&mut self, what: &str) -> Result<Said> {
        self.at += 1;
        let may_be_there = self.skip("if");
        if may_be_there {
            self.skip("not");
            self.expect("exists")?;
        }
        let name = if self.token(0).is_some() { self.name()? } else { String::new() };
        match what {
            "create" if !may_be_there => Err(Error::new(
                Condition::DuplicateDatabase,
                format!("Can't create database '{name}'; database exists"),
            )
            .hint("There is one database, and it answers to every name.")),
            "drop" => Err(Error::unsupported(format!("DROP DATABASE '{name}'"))
                .hint("There is one database, and it answers to every name: drop its tables.")),
            _ => Ok(Said::Control(Control::Nothing("CREATE DATABASE"))),
        }
    }

    fn rename(&mut self) -> Result<Said> {
        self.at += 1;
        let from = self.name()?;
        self.expect("to")?;
        let to = self.name()?;
        if self.token(0).is_some() {
            return Err(Error::unsupported("RENAME TABLE of several tables"));
        }
        parsed(&format!("ALTER TABLE {} RENAME TO {}", quoted(&from), quoted(&to)))
    }

    /// ALTER TABLE: what changes nothing here is left out.
    fn alter(&mut self) -> Result<Option<Said>> {
        let is_nothing = self.tokens.iter().any(|token| {
            matches!(token, Token::Word(word) if word.quote_style.is_none()
                && matches!(word.value.to_ascii_lowercase().as_str(), "keys"))
        }) && matches!(self.word_at(2).as_str(), "disable" | "enable");
        if is_nothing {
            return Ok(Some(Said::Control(Control::Nothing("ALTER TABLE"))));
        }
        if self.word_at(0) != "table" {
            return Ok(None);
        }
        // The name may have that of the database before it.
        let behind = if matches!(self.token(2), Some(Token::Period)) { 4 } else { 2 };
        let name: Vec<ast::ObjectNamePart> = (1..behind)
            .step_by(2)
            .filter_map(|at| match self.token(at) {
                Some(Token::Word(word)) => Some(ast::ObjectNamePart::Identifier(ast::Ident {
                    value: word.value.clone(),
                    quote_style: word.quote_style,
                    span: sqlparser::tokenizer::Span::empty(),
                })),
                _ => None,
            })
            .collect();
        let equals = usize::from(matches!(self.token(behind + 1), Some(Token::Eq)));
        let is_last = |words: &Self, at: usize| matches!(words.token(at), None | Some(Token::SemiColon | Token::EOF));
        let value = self.token(behind + 1 + equals).cloned();
        match (self.word_at(behind).as_str(), value) {
            ("engine", Some(Token::Word(engine))) if is_last(self, behind + 2 + equals) => {
                self.engine(&engine.value.to_ascii_lowercase()).map(Some)
            }
            ("comment", Some(Token::SingleQuotedString(comment) | Token::DoubleQuotedString(comment)))
                if is_last(self, behind + 2 + equals) =>
            {
                Ok(Some(Said::Parsed(ast::Statement::Comment {
                    object_type: ast::CommentObject::Table,
                    object_name: ast::ObjectName(name),
                    comment: Some(comment),
                    if_exists: false,
                })))
            }
            ("rename", Some(Token::Word(kind)))
                if matches!(kind.value.to_ascii_lowercase().as_str(), "index" | "key")
                    && kind.quote_style.is_none()
                    && self.word_at(behind + 3) == "to"
                    && is_last(self, behind + 5) =>
            {
                let (Some(Token::Word(old)), Some(Token::Word(new))) = (self.token(behind + 2), self.token(behind + 4))
                else {
                    return Ok(None);
                };
                let ident = |word: &sqlparser::tokenizer::Word| ast::Ident {
                    value: word.value.clone(),
                    quote_style: word.quote_style,
                    span: sqlparser::tokenizer::Span::empty(),
                };
                let operation =
                    ast::AlterTableOperation::RenameConstraint { old_name: ident(old), new_name: ident(new) };
                let alter = format!("ALTER TABLE {} DROP PRIMARY KEY", ast::ObjectName(name));
                let mut parsed =
                    Parser::parse_sql(&MySqlDialect {}, &alter).map_err(|error| Dialect::Mysql.refused(error))?;
                match parsed.pop() {
                    Some(ast::Statement::AlterTable(mut alter)) => {
                        alter.operations = vec![operation];
                        Ok(Some(Said::Parsed(ast::Statement::AlterTable(alter))))
                    }
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// `ALTER TABLE ... ENGINE =`: rows stay where they are. Errors: that is not where the engine has them.
    fn engine(&self, engine: &str) -> Result<Said> {
        match engine {
            "innodb" | "myisam" | "aria" | "memory" | "heap" => Ok(Said::Control(Control::Nothing("ALTER TABLE"))),
            "memtx" | "vinyl" | "rocksdb" | "tokudb" => {
                let hint = "Make another table, copy the rows in steps, and rename both.";
                Err(Error::unsupported("moving a table to another engine").hint(hint))
            }
            other => {
                let what = format!("Unknown storage engine '{other}'");
                Err(Error::new(Condition::UndefinedObject, what).mysql(1286))
            }
        }
    }

    /// DELETE LOW_PRIORITY QUICK IGNORE: two words that change nothing, and one that becomes a hint. None: they do not stand there.
    fn delete(&mut self) -> Result<Option<ast::Statement>> {
        let before = self.at;
        let mut passes_over = false;
        while matches!(self.word_at(0).as_str(), "low_priority" | "quick" | "ignore") {
            passes_over |= self.word_at(0) == "ignore";
            self.at += 1;
        }
        if self.at == before {
            return Ok(None);
        }
        self.tokens.drain(before..self.at);
        let mut statement = self.reparsed()?;
        if let ast::Statement::Delete(delete) = &mut statement
            && passes_over
        {
            let (prefix, text, style) = (PASSES_OVER.to_string(), String::new(), ast::OptimizerHintStyle::MultiLine);
            delete.optimizer_hints = vec![ast::OptimizerHint { prefix, text, style }];
        }
        Ok(Some(statement))
    }

    /// SELECT SQL_CALC_FOUND_ROWS.
    fn counted(&mut self) -> Result<Said> {
        self.tokens.retain(|token| {
            !matches!(token, Token::Word(word) if word.quote_style.is_none()
                && word.value.eq_ignore_ascii_case("sql_calc_found_rows"))
        });
        self.reparsed().map(Said::Counted)
    }

    fn reparsed(&mut self) -> Result<ast::Statement> {
        let tokens = std::mem::take(&mut self.tokens).into_iter();
        let mut tokens = tokens.map(|token| TokenWithSpan { token, span: Span::empty() }).collect();
        crate::dialect::respell_of_mysql(&mut tokens);
        let parser = Parser::new(&MySqlDialect {}).with_recursion_limit(50);
        let parsed = parser.with_tokens_with_locations(tokens).parse_statement();
        parsed.map_err(|error| Dialect::Mysql.refused(error))
    }

    fn own_grants(&self) -> Result<Said> {
        parsed(
            "SELECT shown AS `Grants` FROM information_schema.shown_grants WHERE BINARY grantee = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)",
        )
    }

    /// The name of an account, without the computer that it may come from.
    fn account(&mut self) -> Result<String> {
        let token = self.tokens.get(self.at).cloned();
        self.at = self.tokens.len();
        match token {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                Ok(word.value.split('@').next().unwrap_or_default().to_string())
            }
            Some(Token::Word(word)) => Ok(word.value),
            Some(Token::SingleQuotedString(name) | Token::DoubleQuotedString(name)) => Ok(name),
            _ => Err(self.refused()),
        }
    }

    /// A statement about accounts, whose first word was read.
    fn accounts(&mut self, first: &str) -> Result<Said> {
        let mut tokens = vec![Token::make_word(first, None)];
        tokens.extend(self.tokens.drain(self.at..));
        Ok(Said::Accounts(Rc::new(crate::accounts::parse(Dialect::Mysql, tokens)?)))
    }

    /// SET in all its forms.
    fn set(&mut self) -> Result<Said> {
        if matches!(self.word_at(0).as_str(), "character" | "charset") {
            self.at += if self.word_at(0) == "character" { 2 } else { 1 };
            return Ok(Said::Control(Control::Assign(vec![names(self.rest_as_pattern())])));
        }
        let ahead = usize::from(matches!(self.word_at(0).as_str(), "session" | "global" | "local"));
        if self.word_at(ahead) == "transaction" {
            let is_session = ahead == 1;
            self.at += ahead + 1;
            let modes = self.modes();
            return Ok(Said::Control(Control::SetTransaction { modes, is_session }));
        }
        if self.word_at(0) == "password" {
            return self.accounts("set");
        }
        if matches!((self.word_at(0).as_str(), self.word_at(1).as_str()), ("role", _) | ("default", "role")) {
            // Whoever has a role has all that it gives, always.
            return Ok(Said::Control(Control::Nothing("SET ROLE")));
        }
        let mut assignments = Vec::new();
        for part in self.parts() {
            let mut words = Words { tokens: part, at: 0 };
            if words.word_at(0) == "names" && !matches!(words.token(1), Some(Token::Eq | Token::Assignment)) {
                words.at += 1;
                assignments.push(names(words.rest_as_pattern()));
            } else {
                assignments.push(words.assignment()?);
            }
        }
        Ok(Said::Control(Control::Assign(assignments)))
    }

    /// What stands between the commas that are outside of parentheses.
    fn parts(&mut self) -> Vec<Vec<Token>> {
        let (mut parts, mut part, mut depth) = (Vec::new(), Vec::new(), 0);
        for token in self.tokens.split_off(self.at.min(self.tokens.len())) {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::Comma if depth == 0 => {
                    parts.push(std::mem::take(&mut part));
                    continue;
                }
                _ => {}
            }
            part.push(token);
        }
        parts.push(part);
        parts
    }

    fn assignment(&mut self) -> Result<Assignment> {
        let mut scope = Scope::Session;
        match self.word_at(0).as_str() {
            "global" | "persist" | "persist_only" => {
                scope = Scope::Global;
                self.at += 1;
            }
            "session" | "local" => self.at += 1,
            _ => {}
        }
        let Some(Token::Word(word)) = self.token(0) else { return Err(self.refused()) };
        let mut name = word.value.clone();
        self.at += 1;
        while self.token(0) == Some(&Token::Period) {
            let Some(Token::Word(word)) = self.token(1) else { return Err(self.refused()) };
            name = format!("{name}.{}", word.value);
            self.at += 2;
        }
        let target = Target::of(&name, scope);
        if !matches!(self.token(0), Some(Token::Eq | Token::Assignment)) {
            return Err(self.refused());
        }
        self.at += 1;
        // A word alone is what it says: `SET sql_mode = ANSI`.
        if let (Some(Token::Word(word)), None) = (self.token(0), self.token(1))
            && !word.value.starts_with('@')
            && matches!(target, Target::System(..))
        {
            let value = match word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") {
                true => None,
                false => Some(ast::Expr::Value(ast::Value::SingleQuotedString(word.value.clone()).into())),
            };
            return Ok(Assignment { target, value });
        }
        let mut values = self.expressions()?;
        match (values.pop(), values.is_empty()) {
            (Some(value), true) => Ok(Assignment { target, value: Some(value) }),
            _ => Err(self.refused()),
        }
    }

    /// LIKE or WHERE of SHOW, as a condition over its columns.
    fn filter(&mut self, column: &str) -> Result<String> {
        match self.word_at(0).as_str() {
            "like" => {
                self.at += 1;
                let pattern = self.rest_as_pattern().ok_or_else(|| self.refused())?;
                Ok(format!(" WHERE `{column}` LIKE {}", literal(&pattern)))
            }
            "where" => {
                self.at += 1;
                let condition = self.expressions()?.pop().ok_or_else(|| self.refused())?;
                Ok(format!(" WHERE {condition}"))
            }
            "" if self.token(0).is_none() => Ok(String::new()),
            _ => Err(self.refused()),
        }
    }

    /// The table that SHOW is about: `FROM t [FROM db]`.
    fn shown_table(&mut self) -> Result<String> {
        if !self.skip("from") && !self.skip("in") {
            return Err(self.refused());
        }
        let name = self.name()?;
        if self.skip("from") || self.skip("in") {
            self.name()?;
        }
        Ok(name)
    }

    fn show(&mut self) -> Result<Said> {
        let is_full = self.skip("full") || self.skip("extended") && self.skip("full");
        let is_global = self.skip("global");
        self.skip("session");
        self.skip("local");
        let what = self.next_word();
        let (query, column) = match what.as_str() {
            "databases" | "schemas" => {
                ("SELECT schema_name AS `Database` FROM information_schema.schemata".to_string(), "Database")
            }
            "tables" => {
                let mut schema = None;
                if self.skip("from") || self.skip("in") {
                    schema = Some(self.name()?);
                }
                return self.show_tables(is_full, schema);
            }
            "columns" | "fields" => {
                let table = self.shown_table()?;
                (columns_query(&table, is_full), "Field")
            }
            "index" | "indexes" | "keys" => {
                let table = self.shown_table()?;
                let query = format!(
                    "SELECT table_name AS `Table`, non_unique AS Non_unique, index_name AS Key_name, seq_in_index AS Seq_in_index, \
                     column_name AS Column_name, collation AS Collation, cardinality AS Cardinality, sub_part AS Sub_part, \
                     packed AS Packed, nullable AS `Null`, index_type AS Index_type, comment AS Comment, \
                     index_comment AS Index_comment, is_visible AS Visible, expression AS Expression \
                     FROM information_schema.statistics WHERE table_name = known_table({})",
                    literal(&table)
                );
                (query, "Key_name")
            }
            "table" if self.word_at(0) == "status" => {
                self.at += 1;
                if self.skip("from") || self.skip("in") {
                    self.name()?;
                }
                let query = "SELECT table_name AS Name, engine AS Engine, version AS Version, row_format AS Row_format, \
                     table_rows AS `Rows`, avg_row_length AS Avg_row_length, data_length AS Data_length, \
                     max_data_length AS Max_data_length, index_length AS Index_length, data_free AS Data_free, \
                     auto_increment AS Auto_increment, create_time AS Create_time, update_time AS Update_time, \
                     check_time AS Check_time, table_collation AS Collation, checksum AS Checksum, \
                     create_options AS Create_options, table_comment AS Comment \
                     FROM information_schema.tables WHERE table_schema = DATABASE()";
                (query.to_string(), "Name")
            }
            "create" => return self.show_create(),
            "variables" => (
                "SELECT variable_name AS Variable_name, variable_value AS Value FROM information_schema.session_variables"
                    .to_string(),
                "Variable_name",
            ),
            "status" => {
                let table = if is_global { "global_status" } else { "session_status" };
                (
                    format!(
                        "SELECT variable_name AS Variable_name, variable_value AS Value FROM information_schema.{table}"
                    ),
                    "Variable_name",
                )
            }
            "warnings" | "errors" => {
                let filter = if what == "errors" { " WHERE Level = 'Error'" } else { "" };
                let limit = self.limit()?;
                return parsed(&format!("SELECT Level, Code, Message FROM information_schema.warnings{filter}{limit}"));
            }
            "count" => {
                // SHOW COUNT(*) WARNINGS.
                let what = self.tokens.last().map(ToString::to_string).unwrap_or_default().to_ascii_lowercase();
                let filter = if what == "errors" { " WHERE Level = 'Error'" } else { "" };
                return parsed(&format!(
                    "SELECT COUNT(*) AS `@@session.{}_count` FROM information_schema.warnings{filter}",
                    what.trim_end_matches('s')
                ));
            }
            "engines" | "storage" => (
                "SELECT engine AS Engine, support AS Support, comment AS Comment, transactions AS Transactions, xa AS XA, \
                 savepoints AS Savepoints FROM information_schema.engines"
                    .to_string(),
                "Engine",
            ),
            "processlist" => (
                "SELECT id AS Id, user AS User, host AS Host, db AS db, command AS Command, time AS Time, state AS State, \
                 info AS Info FROM information_schema.processlist"
                    .to_string(),
                "User",
            ),
            "character" | "charset" => {
                self.skip("set");
                (
                    "SELECT character_set_name AS Charset, description AS Description, default_collate_name AS `Default collation`, \
                     maxlen AS Maxlen FROM information_schema.character_sets"
                        .to_string(),
                    "Charset",
                )
            }
            "collation" => (
                "SELECT collation_name AS Collation, character_set_name AS Charset, id AS Id, is_default AS `Default`, \
                 is_compiled AS Compiled, sortlen AS Sortlen, pad_attribute AS Pad_attribute FROM information_schema.collations"
                    .to_string(),
                "Collation",
            ),
            "plugins" => (
                "SELECT plugin_name AS Name, plugin_status AS Status, plugin_type AS Type, plugin_library AS Library, \
                 plugin_license AS License FROM information_schema.plugins"
                    .to_string(),
                "Name",
            ),
            "triggers" => (
                "SELECT trigger_name AS `Trigger`, event_manipulation AS Event, event_object_table AS `Table`, \
                 action_statement AS Statement FROM information_schema.triggers"
                    .to_string(),
                "Trigger",
            ),
            "procedure" | "function" => (
                "SELECT routine_schema AS Db, routine_name AS Name, routine_type AS Type FROM information_schema.routines"
                    .to_string(),
                "Name",
            ),
            "events" => ("SELECT event_schema AS Db, event_name AS Name FROM information_schema.events".to_string(), "Name"),
            "open" => ("SELECT '' AS `Database`, '' AS `Table`, 0 AS In_use, 0 AS Name_locked LIMIT 0".to_string(), "Table"),
            "privileges" => {
                ("SELECT '' AS Privilege, '' AS Context, '' AS Comment LIMIT 0".to_string(), "Privilege")
            }
            "grants" => {
                let name = match self.skip("for") && !self.skip("current_user") {
                    true => self.account()?,
                    false => return self.own_grants(),
                };
                let column = format!("Grants for {name}@%").replace('`', "``");
                let query = format!(
                    "SELECT shown AS `{column}` FROM information_schema.shown_grants WHERE grantee = {}",
                    literal(&name)
                );
                return parsed(&query);
            }
            "master" | "binary" | "slave" | "replica" | "binlog" => {
                return parsed("SELECT '' AS File, 0 AS Position LIMIT 0");
            }
            _ => {
                self.at = 1;
                return Err(self.refused());
            }
        };
        if matches!(what.as_str(), "status" | "triggers" | "events" | "open" | "procedure" | "function") {
            self.skip("status");
            if self.skip("from") || self.skip("in") {
                self.name()?;
            }
        }
        let filter = self.filter(column)?;
        parsed(&format!("SELECT * FROM ({query}) AS shown{filter}"))
    }

    fn limit(&mut self) -> Result<String> {
        if !self.skip("limit") {
            return Ok(String::new());
        }
        let numbers: Vec<String> = self.expressions()?.iter().map(ToString::to_string).collect();
        Ok(format!(" LIMIT {}", numbers.join(", ")))
    }

    fn show_tables(&mut self, is_full: bool, schema: Option<String>) -> Result<Said> {
        let schema_is = match &schema {
            Some(schema) => literal(schema),
            None => "DATABASE()".to_string(),
        };
        // The column has the name of the database, which a query cannot compute: the session puts it in.
        let column = format!("Tables_in_{}", schema.unwrap_or_else(|| super::variables::DATABASE_MARK.to_string()));
        let more = if is_full { ", table_type AS Table_type" } else { "" };
        let query = format!(
            "SELECT table_name AS {}{more} FROM information_schema.tables WHERE table_schema = {schema_is} ORDER BY 1",
            quoted(&column)
        );
        let filter = self.filter(&column)?;
        parsed(&format!("SELECT * FROM ({query}) AS shown{filter}"))
    }

    fn show_create(&mut self) -> Result<Said> {
        match self.next_word().as_str() {
            "table" => {
                let name = self.name()?;
                let (column, definition) =
                    (quoted(&format!("Table{TABLE_MARK}{name}")), quoted(&format!("Create Table{TABLE_MARK}{name}")));
                let name = literal(&name);
                parsed(&format!("SELECT known_table({name}) AS {column}, table_definition({name}) AS {definition}"))
            }
            "view" => {
                let name = literal(&self.name()?);
                parsed(&format!(
                    "SELECT known_table({name}) AS `View`, table_definition({name}) AS `Create View`, 'utf8mb4' AS character_set_client, 'utf8mb4_unicode_ci' AS collation_connection"
                ))
            }
            "database" | "schema" => {
                if self.skip("if") {
                    self.skip("not");
                    self.skip("exists");
                }
                let name = literal(&self.name()?);
                parsed(&format!(
                    "SELECT {name} AS `Database`, CONCAT('CREATE DATABASE `', {name}, '` /*!40100 DEFAULT CHARACTER SET utf8mb4 */') AS `Create Database`"
                ))
            }
            other => Err(Error::unsupported(format!("SHOW CREATE {}", other.to_uppercase()))),
        }
    }
}

fn names(charset: Option<String>) -> Assignment {
    let value = charset.filter(|charset| !charset.eq_ignore_ascii_case("default"));
    Assignment {
        target: Target::System(Scope::Session, "names".to_string()),
        value: value.map(|charset| ast::Expr::Value(ast::Value::SingleQuotedString(charset).into())),
    }
}
