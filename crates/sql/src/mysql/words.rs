//! The words of a statement, read one after the other.

use crate::dialect::{DEPTH_MAX, Dialect};
use crate::error::{Condition, Error, Result};
use sqlparser::ast;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// The words of a statement.
pub(super) struct Words {
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
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

    pub(super) fn next_word(&mut self) -> String {
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
    pub(super) fn expressions(&mut self) -> Result<Vec<ast::Expr>> {
        let rest = self.tokens.split_off(self.at.min(self.tokens.len()));
        let mut parser = Parser::new(&MySqlDialect {}).with_recursion_limit(DEPTH_MAX).with_tokens(rest);
        Dialect::Mysql.read(|| parser.parse_comma_separated(Parser::parse_expr))
    }

    pub(super) fn rest_as_pattern(&mut self) -> Option<String> {
        match self.token(0) {
            Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => Some(text.clone()),
            Some(Token::Word(word)) => Some(word.value.clone()),
            _ => None,
        }
    }
}
