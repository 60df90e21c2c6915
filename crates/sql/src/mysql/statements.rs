//! Statements that MySQL alone has: those about the session, accounts, databases and upkeep; SHOW and SET are beside this file.

use super::show::columns_query;
use super::variables::Target;
use super::words::Words;
use crate::accounts::Accounts;
use crate::bind::PASSES_OVER;
use crate::control::{Assignment, Control, Isolation, Modes};
use crate::dialect::{DEPTH_MAX, Dialect};
use crate::error::{Condition, Error, Result};
use sqlparser::ast;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};
use std::rc::Rc;

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
    let text = super::text::with_known_escapes(text);
    let tokens = Tokenizer::new(&MySqlDialect {}, &text)
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
        "create" if words.word_at(0) == "definer" && words.is_view() => return Ok(None),
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
    crate::written::literal(Dialect::Mysql, text)
}

pub(crate) fn quoted(name: &str) -> String {
    crate::written::name(Dialect::Mysql, name)
}

pub(super) fn parsed(query: &str) -> Result<Said> {
    let mut statements = Dialect::Mysql.parse(query)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(Said::Parsed(statement)),
        _ => Err(Error::new(Condition::Syntax, "a statement is wanted")),
    }
}

impl Words {
    /// True for CREATE DEFINER = ... [SQL SECURITY ...] VIEW.
    fn is_view(&self) -> bool {
        (0..)
            .map_while(|at| self.token(at).map(|_| self.word_at(at)))
            .find(|word| matches!(word.as_str(), "view" | "trigger" | "procedure" | "function" | "event"))
            .is_some_and(|word| word == "view")
    }

    fn is_chained(&mut self) -> bool {
        self.skip("work");
        self.word_at(0) == "and" && self.word_at(1) == "chain"
    }

    pub(super) fn modes(&mut self) -> Modes {
        let mut modes = Modes::default();
        while let Some(token) = self.token(0) {
            let is_word = matches!(token, Token::Word(_));
            match (self.word_at(0).as_str(), self.word_at(1).as_str()) {
                ("read", "only") => modes.is_read_only = Some(true),
                ("read", "write") => modes.is_read_only = Some(false),
                // One moment for all that it reads.
                ("consistent", "snapshot") => modes.isolation = Some(Isolation::Serializable),
                ("read", second) if is_word => {
                    modes.isolation = Some(Isolation::ReadCommitted);
                    modes.level = Some(if second == "uncommitted" { "READ-UNCOMMITTED" } else { "READ-COMMITTED" });
                }
                ("repeatable", _) => {
                    (modes.isolation, modes.level) = (Some(Isolation::Serializable), Some("REPEATABLE-READ"));
                    // Its second word is READ.
                    self.at += 1;
                }
                ("serializable", _) => {
                    (modes.isolation, modes.level) = (Some(Isolation::Serializable), Some("SERIALIZABLE"));
                }
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
        let parser = Parser::new(&MySqlDialect {}).with_recursion_limit(DEPTH_MAX);
        Dialect::Mysql.read(|| parser.with_tokens_with_locations(tokens).parse_statement())
    }

    /// A statement about accounts, whose first word was read.
    pub(super) fn accounts(&mut self, first: &str) -> Result<Said> {
        let mut tokens = vec![Token::make_word(first, None)];
        tokens.extend(self.tokens.drain(self.at..));
        Ok(Said::Accounts(Rc::new(crate::accounts::parse(Dialect::Mysql, tokens)?)))
    }
}
