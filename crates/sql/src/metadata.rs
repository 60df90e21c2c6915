//! What EXECUTE and PREPARE tell of the columns of a result, as Tarantool does: names and types, and the rest in sessions that have `sql_full_metadata` on.

use crate::dialect::Dialect;
use crate::error::Result;
use crate::mysql::Said;
use crate::statement::Column;
use crate::types::{Base, Type};
use database::Session;
use sqlparser::ast::{self, SelectItem};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use tuple::msgpack;
use wire::key;

/// What is told of the columns of a result.
#[derive(Debug, Default)]
pub struct Metadata {
    /// The columns.
    pub columns: Vec<Column>,
    /// By column, if the session wants it: its expression, and the collation that it names.
    full: Option<Vec<Written>>,
}

/// A column as the statement has it.
#[derive(Clone, Debug, Default)]
struct Written {
    /// None: `*` stands for it, among others.
    span: Option<String>,
    /// `... COLLATE name`.
    collation: Option<String>,
    /// It is nothing but the name of a column, or one of those of `*`.
    is_column: bool,
    /// It has an alias.
    has_alias: bool,
    /// It has the collation of what it is made of.
    is_collated: bool,
}

impl Metadata {
    /// Of the columns of a statement. Errors: those of the text.
    pub(crate) fn of(session: &Session, text: &str, columns: Vec<Column>) -> Result<Self> {
        let is_full = session.has_setting("sql_full_metadata");
        let has_full_names = session.has_setting("sql_full_column_names");
        let mut metadata = Metadata { columns, full: None };
        if !(is_full || has_full_names) || metadata.columns.is_empty() {
            return Ok(metadata);
        }
        let items = items(text)?;
        let written = metadata.columns.iter().map(|column| match column.item {
            Some(item) => items.get(item).cloned().unwrap_or_default(),
            None => Written { is_column: true, ..Written::default() },
        });
        let written: Vec<Written> = written.collect();
        if has_full_names {
            for (column, written) in metadata.columns.iter_mut().zip(&written) {
                let origin = column.origin.as_ref().filter(|_| written.is_column && !written.has_alias);
                if let Some(origin) = origin {
                    let table = if written.span.is_some() { &origin.table } else { &origin.alias };
                    column.name = format!("{table}.{}", column.name);
                }
            }
        }
        metadata.full = is_full.then_some(written);
        Ok(metadata)
    }

    /// Appends an array of a map for each column.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, by_name: bool) {
        msgpack::encode_array(out, self.columns.len() as u32);
        for (number, column) in self.columns.iter().enumerate() {
            let written = self.full.as_ref().map(|full| &full[number]);
            let origin = column.origin.as_ref().filter(|_| written.is_some_and(|written| written.is_column));
            let collation = written.and_then(|written| match origin {
                Some(origin) => origin.collation.as_deref(),
                None if written.collation.is_some() => written.collation.as_deref(),
                None => column.collation.as_ref().filter(|_| written.is_collated).map(|collation| collation.name()),
            });
            let is_generated = origin.is_some_and(|origin| origin.is_generated);
            let told = [collation.is_some(), origin.is_some(), is_generated, written.is_some()];
            msgpack::encode_map(out, 2 + told.iter().filter(|is_told| **is_told).count() as u32);
            encode_key(out, by_name, "name", key::FIELD_NAME);
            msgpack::encode_str(out, column.name.as_bytes());
            encode_key(out, by_name, "type", key::FIELD_TYPE);
            msgpack::encode_str(out, type_name(column.ty).as_bytes());
            if let Some(collation) = collation {
                encode_key(out, by_name, "collation", key::FIELD_COLLATION);
                msgpack::encode_str(out, collation.as_bytes());
            }
            if let Some(origin) = origin {
                encode_key(out, by_name, "is_nullable", key::FIELD_IS_NULLABLE);
                msgpack::encode_bool(out, !origin.is_required);
            }
            if is_generated {
                encode_key(out, by_name, "is_autoincrement", key::FIELD_IS_AUTOINCREMENT);
                msgpack::encode_bool(out, true);
            }
            if let Some(written) = written {
                encode_key(out, by_name, "span", key::FIELD_SPAN);
                match (&written.span, by_name) {
                    (Some(span), _) => msgpack::encode_str(out, span.as_bytes()),
                    // The name says it: the protocol does not repeat it.
                    (None, true) => msgpack::encode_str(out, column.name.as_bytes()),
                    (None, false) => msgpack::encode_nil(out),
                }
            }
        }
    }
}

/// Appends a key of an answer.
pub(crate) fn encode_key(out: &mut Vec<u8>, by_name: bool, name: &str, number: u64) {
    match by_name {
        true => msgpack::encode_str(out, name.as_bytes()),
        false => msgpack::encode_uint(out, number),
    }
}

/// What Tarantool calls the type of a column.
fn type_name(ty: Type) -> &'static str {
    match ty.base {
        Base::Unknown => "boolean",
        _ => ty.field_name(),
    }
}

/// The items behind the first SELECT of a statement. Errors: those of the text.
fn items(text: &str) -> Result<Vec<Written>> {
    let dialect = Dialect::Tarantool;
    let statements = dialect.statements(text)?;
    let Some(Said::Parsed(ast::Statement::Query(query))) = statements.first() else { return Ok(Vec::new()) };
    let Some(select) = first_select(&query.body) else { return Ok(Vec::new()) };
    let spans = spans(text, &dialect.tokens(text)?, &select.projection);
    let items = select.projection.iter().enumerate().map(|(number, item)| {
        let (expr, has_alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, false),
            SelectItem::ExprWithAlias { expr, .. } => (expr, true),
            _ => return Written::default(),
        };
        let collation = match expr {
            ast::Expr::Collate { collation, .. } => dialect.object_name(collation).ok(),
            _ => None,
        };
        let span = spans.as_ref().map_or_else(|| expr.to_string(), |spans| spans[number].to_string());
        let is_column = crate::bind::is_column(crate::bind::unnested(expr));
        let is_collated = match expr {
            ast::Expr::Cast { .. } | ast::Expr::Trim { .. } | ast::Expr::Substring { .. } => true,
            ast::Expr::Function(function) => {
                crate::bind::keeps_collation(&function.name.to_string().to_ascii_lowercase())
            }
            _ => false,
        };
        Written { span: Some(span), collation, is_column, has_alias, is_collated }
    });
    Ok(items.collect())
}

fn first_select(body: &ast::SetExpr) -> Option<&ast::Select> {
    match body {
        ast::SetExpr::Select(select) => Some(select),
        ast::SetExpr::SetOperation { left, .. } => first_select(left),
        ast::SetExpr::Query(query) => first_select(&query.body),
        _ => None,
    }
}

/// The parts of a text that are the items of its first SELECT, without their aliases. None: they are not found there.
fn spans<'a>(text: &'a str, tokens: &[TokenWithSpan], items: &[SelectItem]) -> Option<Vec<&'a str>> {
    let places = Places::of(text);
    let is_word = |at: usize, wanted: &str| matches!(&tokens[at].token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    let seen: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    // A query in parentheses before it is one of WITH.
    let has_with = seen.first().is_some_and(|at| is_word(*at, "with"));
    let (mut depth, mut begin) = (0usize, None);
    for (place, at) in seen.iter().enumerate() {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if is_word(*at, "select") && (depth == 0 || !has_with) => {
                begin = Some(place + 1);
                break;
            }
            _ => {}
        }
    }
    let mut begin = begin?;
    begin += usize::from(seen.get(begin).is_some_and(|at| is_word(*at, "distinct") || is_word(*at, "all")));
    let (mut depth, mut found, mut first) = (0usize, Vec::new(), begin);
    for place in begin..=seen.len() {
        let ends_list = match seen.get(place) {
            None => true,
            Some(at) => match tokens[*at].token {
                Token::LParen => {
                    depth += 1;
                    false
                }
                Token::RParen if depth == 0 => true,
                Token::RParen => {
                    depth -= 1;
                    false
                }
                Token::SemiColon => true,
                _ if depth > 0 => false,
                // IS DISTINCT FROM is an operator.
                _ if is_word(*at, "from") => place > first && !is_word(seen[place - 1], "distinct"),
                _ => ["where", "group", "having", "order", "limit", "union", "except", "intersect"]
                    .iter()
                    .any(|word| is_word(*at, word)),
            },
        };
        let is_comma = depth == 0 && seen.get(place).is_some_and(|at| tokens[*at].token == Token::Comma);
        if !ends_list && !is_comma {
            continue;
        }
        let mut end = place;
        if let Some(SelectItem::ExprWithAlias { .. }) = items.get(found.len()) {
            end = end.checked_sub(1)?;
            end -= usize::from(end > first && is_word(seen[end - 1], "as"));
        }
        if end <= first {
            return None;
        }
        let (from, to) = (tokens[seen[first]].span.start, tokens[seen[end - 1]].span.end);
        found.push(text.get(places.byte(from)?..places.byte(to)?)?);
        first = place + 1;
        if ends_list {
            break;
        }
    }
    (found.len() == items.len()).then_some(found)
}

/// Bytes of a text by lines and columns, which are counted from 1 in characters.
struct Places<'a> {
    text: &'a str,
    /// Where lines begin.
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    fn of(text: &'a str) -> Self {
        let begins = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Places { text, lines: std::iter::once(0).chain(begins).collect() }
    }

    fn byte(&self, at: sqlparser::tokenizer::Location) -> Option<usize> {
        let begin = *self.lines.get(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
        let column = usize::try_from(at.column).ok()?.checked_sub(1)?;
        let line = &self.text[begin..];
        line.char_indices().map(|(byte, _)| byte).chain([line.len()]).nth(column).map(|byte| begin + byte)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn check(text: &str, wanted: &[&str]) {
        let items = items(text).expect("the text is good");
        let spans: Vec<&str> = items.iter().map(|item| item.span.as_deref().unwrap_or("*")).collect();
        assert_eq!(spans, wanted, "{text}");
    }

    #[test]
    fn a_span_is_what_the_statement_has() {
        check("SELECT  id , a+ 1 AS x, (b)  y, 'ü,\n' || \"q\" FROM t", &["id", "a+ 1", "(b)", "'ü,\n' || \"q\""]);
        check("SELECT DISTINCT *, t.*, COUNT ( * ) FROM t", &["*", "*", "COUNT ( * )"]);
        check("WITH c AS (SELECT 1 AS q, 2) SELECT q -- why\n FROM c", &["q"]);
        check(
            "SELECT (SELECT a, b FROM t), CASE WHEN a THEN b ELSE c END e UNION SELECT 1, 2",
            &["(SELECT a, b FROM t)", "CASE WHEN a THEN b ELSE c END"],
        );
        check("SELECT a IS DISTINCT FROM b, ?, :name n FROM t;", &["a IS DISTINCT FROM b", "?", ":name"]);
        check("VALUES (1)", &[]);
    }
}
