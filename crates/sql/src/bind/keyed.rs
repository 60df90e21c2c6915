//! Expressions that an index is over: where a query compares one, the generated column that the index has for it stands in its place, so that the rows
//! are found by the index.

use super::{Binder, Bound, Place, Relation, Scope};
use crate::dialect::Dialect;
use crate::error::Result;
use crate::written::written;
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

impl Binder<'_> {
    /// A value that is compared: a key of an index, if it is just what one is over. Errors: as of `bind`.
    pub(super) fn bind_compared(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Bound> {
        let key = match expr {
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) | ast::Expr::Value(_) => None,
            _ if self.dialect == Dialect::Postgres => self.key_of(scope, expr),
            _ => None,
        };
        match key {
            Some(key) => Ok(key),
            None => self.bind(scope, expr),
        }
    }

    fn key_of(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Option<Bound> {
        let relations = &scope.relations[scope.first.get()..];
        let mut words: Option<Vec<String>> = None;
        for relation in relations {
            let Some(Place::Field(used, _)) = relation.columns.first().map(|column| &column.place) else { continue };
            for (column, known) in relation.columns.iter().zip(&used.table.columns) {
                let Some(generated) = known.generated.as_ref().filter(|_| known.is_hidden) else { continue };
                let (Dialect::Postgres, text) = generated.text() else { continue };
                let words = words.get_or_insert_with(|| words_of(&written(Dialect::Postgres, expr)));
                if says_the_same(words, &words_of(text), relation, relations.len() == 1) {
                    return Some(self.at(column));
                }
            }
        }
        None
    }
}

/// The words of an expression: names as they are folded, each in quotes; nothing else is.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize().unwrap_or_default();
    let words = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).map(|token| match token {
        Token::Word(word) if word.quote_style.is_some() => format!("\"{}\"", word.value),
        Token::Word(word) => format!("\"{}\"", word.value.to_lowercase()),
        other => other.to_string(),
    });
    words.collect()
}

/// True for the expression of a key, in whose place columns may have the relation's name before them; they must, where there are others.
fn says_the_same(words: &[String], key: &[String], relation: &Relation, is_alone: bool) -> bool {
    let alias = format!("\"{}\"", relation.alias);
    let mut said = words.iter().peekable();
    for (at, wanted) in key.iter().enumerate() {
        let name = wanted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let is_call = key.get(at + 1).is_some_and(|next| next == "(");
        let is_column = !is_call && name.is_some_and(|name| relation.columns.iter().any(|column| column.name == name));
        let mut word = said.next();
        if is_column && said.peek().is_some_and(|next| *next == ".") {
            if word != Some(&alias) {
                return false;
            }
            said.next();
            word = said.next();
        } else if is_column && !is_alone {
            return false;
        }
        if word != Some(wanted) {
            return false;
        }
    }
    said.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::words_of;

    #[test]
    fn names_are_folded_and_texts_are_not() {
        assert_eq!(words_of("LOWER(\"b\") || 'X'"), ["\"lower\"", "(", "\"b\"", ")", "||", "'X'"]);
        assert_eq!(words_of("lower( B )||'X'"), words_of("LOWER(\"b\") || 'X'"));
    }
}
