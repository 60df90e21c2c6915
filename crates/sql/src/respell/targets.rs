//! Places of a statement where PostgreSQL takes an expression and the parser a name only: what SET assigns to, and what ON CONFLICT means.

use super::{is_word, parenthesis, seen};
use crate::dialect::Dialect;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The function that stands before the value of a part of an array; no function has a space in its name.
pub(crate) const PART: &str = "part assigned";
/// What a name behind ON CONFLICT begins with that is an expression; no name of a column begins with it.
pub(crate) const CONFLICT_KEY: &str = "\u{1}key ";

/// Words from UPDATE to SET, at most: `UPDATE ONLY a.b.c * AS d SET`.
const BEFORE_SET_MAX: usize = 12;

/// `SET a[1:2] = value` as `SET a = "part assigned"(a[1:2]) OR value`: nothing binds less than OR, so the mark is the leftmost part of what is assigned.
pub(crate) fn parts(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| token.token == Token::LBracket) {
        return;
    }
    let seen = seen(tokens);
    let (mut depth, mut lists, mut place) = (0usize, Vec::new(), 0);
    let mut found = Vec::new();
    while place < seen.len() {
        let token = &tokens[seen[place]].token;
        let is_start = match token {
            Token::LParen | Token::LBracket => {
                depth += 1;
                false
            }
            Token::RParen | Token::RBracket => {
                depth = depth.saturating_sub(1);
                lists.retain(|at| *at <= depth);
                false
            }
            Token::SemiColon => {
                (depth, lists) = (0, Vec::new());
                false
            }
            Token::Comma => lists.last() == Some(&depth),
            token if is_word(token, "set") => {
                let from = place.saturating_sub(BEFORE_SET_MAX);
                let is_of_update = seen[from..place].iter().any(|at| is_word(&tokens[*at].token, "update"));
                if is_of_update && lists.last() != Some(&depth) {
                    lists.push(depth);
                }
                is_of_update
            }
            token => {
                if is_word(token, "returning") {
                    lists.retain(|at| *at != depth);
                }
                false
            }
        };
        place += 1;
        if is_start && let Some(equals) = target(tokens, &seen, place) {
            found.push((place, equals));
            place = equals;
        }
    }
    let space = || TokenWithSpan::wrap(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
    for (name, equals) in found.into_iter().rev() {
        let behind =
            [TokenWithSpan::wrap(Token::RParen), space(), TokenWithSpan::wrap(Token::make_keyword("OR")), space()];
        tokens.splice(seen[equals]..=seen[equals], behind);
        let before = [Token::Eq, Token::make_word(PART, Some('"')), Token::LParen].map(TokenWithSpan::wrap);
        let column = tokens[seen[name]].clone();
        tokens.splice(seen[name] + 1..=seen[name], before.into_iter().chain([column]));
    }
}

/// The place of the `=` behind a name and its subscripts. None: there is no such thing here.
fn target(tokens: &[TokenWithSpan], seen: &[usize], start: usize) -> Option<usize> {
    let token = |place: usize| seen.get(place).map(|at| &tokens[*at].token);
    let (Some(Token::Word(_)), Some(Token::LBracket)) = (token(start), token(start + 1)) else { return None };
    let (mut depth, mut place) = (0usize, start + 1);
    loop {
        match token(place)? {
            Token::LBracket => depth += 1,
            Token::RBracket => depth = depth.checked_sub(1)?,
            Token::Eq if depth == 0 => return Some(place),
            Token::SemiColon => return None,
            _ if depth == 0 => return None,
            _ => {}
        }
        place += 1;
    }
}

/// `ON CONFLICT (lower(name), (a + b))`: each expression as a name that begins with [`CONFLICT_KEY`].
pub(crate) fn conflict_keys(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(&token.token, "conflict")) {
        return;
    }
    let seen = seen(tokens);
    let mut found = Vec::new();
    for place in 1..seen.len() {
        let is_it = is_word(&tokens[seen[place]].token, "conflict") && is_word(&tokens[seen[place - 1]].token, "on");
        if !is_it || seen.get(place + 1).is_none_or(|at| tokens[*at].token != Token::LParen) {
            continue;
        }
        let Some((end, commas)) = parenthesis(tokens, &seen, place + 1) else { continue };
        let starts = std::iter::once(place + 2).chain(commas.iter().map(|comma| comma + 1));
        for (start, end) in starts.zip(commas.iter().copied().chain([end])) {
            if end > start + 1 {
                found.push((seen[start], seen[end - 1]));
            }
        }
    }
    for (first, last) in found.into_iter().rev() {
        let words = tokens[first..=last].iter().map(|token| crate::written::token(Dialect::Postgres, &token.token));
        let name = Token::make_word(&format!("{CONFLICT_KEY}{}", words.collect::<String>()), Some('"'));
        let span = tokens[first].span;
        tokens.splice(first..=last, [TokenWithSpan { token: name, span }]);
    }
}

/// `COMMENT ON CONSTRAINT c ON t IS ...`, which the parser does not know, as the comment of a collation whose name is that of the constraint before the
/// table's. A domain's constraint keeps none.
pub(crate) fn name_constraint(statement: &mut [TokenWithSpan]) {
    let seen = seen(statement);
    let [_, _, kind, name, on, table, ..] = seen[..] else { return };
    let Token::Word(word) = &statement[name].token else { return };
    if !is_word(&statement[kind].token, "constraint") || !is_word(&statement[on].token, "on") {
        return;
    }
    let folded = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
    let is_of_domain = is_word(&statement[table].token, "domain")
        && seen
            .get(6)
            .is_some_and(|at| matches!(statement[*at].token, Token::Word(_)) && !is_word(&statement[*at].token, "is"));
    statement[kind].token = Token::make_keyword("COLLATION");
    statement[name].token = Token::make_word(&format!("{}{folded}", crate::comments::CONSTRAINT), Some('"'));
    match is_of_domain {
        // A name of one part is of nothing that keeps a comment.
        true => {
            let end = seen.iter().position(|at| is_word(&statement[*at].token, "is")).unwrap_or(seen.len());
            for at in &seen[4..end] {
                statement[*at].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
            }
        }
        false => statement[on].token = Token::Period,
    }
}

#[cfg(test)]
mod tests {
    use crate::Dialect;

    fn spelled(text: &str) -> String {
        Dialect::Postgres
            .tokens(text)
            .map(|all| all.iter().map(|token| token.token.to_string()).collect())
            .unwrap_or_default()
    }

    #[test]
    fn parts_are_marked_where_they_are_assigned_and_nowhere_else() {
        let marked = "UPDATE t SET b=1, a=\"part assigned\"(a[1][2:]) OR  2 WHERE x RETURNING b, a[1] = 2";
        assert_eq!(spelled("UPDATE t SET b=1, a[1][2:]= 2 WHERE x RETURNING b, a[1] = 2"), marked);
        for other in [
            "SELECT set, a[1]=2",
            "UPDATE t SET b = a[1]=2",
            "UPDATE t SET b = (c, a[1]=2)",
            "UPDATE t SET a[1",
            "SET a[1] = 2",
        ] {
            assert_eq!(spelled(other), other);
        }
    }

    #[test]
    fn keys_of_conflicts_are_names() {
        let text = "INSERT INTO t VALUES (1) ON CONFLICT (a, lower(b ), (c || 'x\"')) DO NOTHING";
        let wanted =
            "INSERT INTO t VALUES (1) ON CONFLICT (a, \"\u{1}key lower(b )\", \"\u{1}key (c || 'x\"\"')\") DO NOTHING";
        assert_eq!(spelled(text), wanted);
    }
}
