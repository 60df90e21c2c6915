//! SET in all its forms.

use super::statements::Said;
use super::variables::{Scope, Target};
use super::words::Words;
use crate::control::{Assignment, Control};
use crate::error::Result;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

impl Words {
    /// SET in all its forms.
    pub(super) fn set(&mut self) -> Result<Said> {
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
}

fn names(charset: Option<String>) -> Assignment {
    let value = charset.filter(|charset| !charset.eq_ignore_ascii_case("default"));
    Assignment {
        target: Target::System(Scope::Session, "names".to_string()),
        value: value.map(|charset| ast::Expr::Value(ast::Value::SingleQuotedString(charset).into())),
    }
}
