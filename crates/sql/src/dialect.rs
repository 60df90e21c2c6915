//! What differs between the dialects of SQL that are spoken here.

use crate::error::{Condition, Error, Result};
use crate::mysql::Said;
use hashbrown::HashMap;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Statement};
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::rc::Rc;

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Of `box.execute` and IPROTO's EXECUTE.
    Tarantool,
    /// Of PostgreSQL's protocol.
    Postgres,
    /// Of MySQL's protocol.
    Mysql,
}

/// Expressions within expressions, and queries within queries.
pub(crate) const DEPTH_MAX: usize = 50;
/// Bytes of the text of a statement.
pub const TEXT_MAX: usize = 16 << 20;

/// True for a collation of PostgreSQL's that orders text by its code points, as text is ordered here without any.
pub(crate) fn is_plain_collation(dialect: Dialect, name: &sqlparser::ast::ObjectName) -> bool {
    let last = name.0.last().map_or_else(String::new, |part| part.to_string());
    let names = ["C", "POSIX", "C.utf8", "C.UTF-8", "default", "ucs_basic"];
    dialect == Dialect::Postgres && names.contains(&last.trim_matches('"'))
}

/// Spells statements of PostgreSQL as the parser wants them: options of COPY are `true` and `false`, not `on` and `off`; what is said behind statements that
/// have nothing to do here is left out.
fn respell(tokens: &mut Vec<TokenWithSpan>) {
    leave_out_deferrable(tokens);
    leave_out_ownership(tokens);
    respell_deferral(tokens);
    crate::schemas::respell(tokens);
    crate::ddl::respell_sequences(tokens);
    crate::ddl::respell_likes(tokens);
    crate::ddl::respell_identities(tokens);
    leave_out_sequence_names(tokens);
    leave_out_operator_schemas(tokens);
    let word_of = |token: &Token| match token {
        Token::Word(word) => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let (mut first, mut before) = (None, String::new());
    // Behind a VACUUM that stands for another statement, which one that is.
    let mut told: Vec<(usize, String)> = Vec::new();
    for (at, token) in tokens.iter_mut().enumerate() {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => {
                (first, before) = (None, String::new());
                continue;
            }
            _ => {}
        }
        let word = word_of(&token.token);
        match first.get_or_insert_with(|| word.clone()).as_str() {
            "copy" if matches!(before.as_str(), "freeze" | "header") && matches!(word.as_str(), "on" | "off") => {
                token.token = Token::make_keyword(if word == "on" { "TRUE" } else { "FALSE" });
            }
            "vacuum" if idle_statement(&token.token).is_some() => {}
            "vacuum" | "analyze" | "reindex" | "checkpoint" | "cluster" => {
                let is_first = before.is_empty();
                if is_first && word != "vacuum" {
                    told.push((at + 1, word.to_uppercase()));
                }
                token.token = match is_first {
                    true => Token::make_keyword("VACUUM"),
                    false => Token::Whitespace(sqlparser::tokenizer::Whitespace::Space),
                };
            }
            _ => {}
        }
        before = if word.is_empty() { " ".to_string() } else { word };
    }
    for (at, tag) in told.into_iter().rev() {
        let (token, span) = (Token::make_word(&tag, Some('"')), tokens[at - 1].span);
        tokens.insert(at, TokenWithSpan { token, span });
    }
}

/// Statements that have nothing to do, and are written as VACUUM of a table that is called so.
const IDLE_STATEMENTS: [&str; 8] =
    ["SET", "ALTER SEQUENCE", "ALTER TYPE", "COMMENT", "ANALYZE", "REINDEX", "CHECKPOINT", "CLUSTER"];

/// Which of them a name behind VACUUM stands for.
fn idle_statement(token: &Token) -> Option<&'static str> {
    match token {
        Token::Word(word) if word.quote_style == Some('"') => idle_tag(&word.value),
        _ => None,
    }
}

/// The tag of a statement that is written as VACUUM of a table of this name. None: it is VACUUM.
pub(crate) fn idle_tag(name: &str) -> Option<&'static str> {
    IDLE_STATEMENTS.into_iter().find(|tag| *tag == name)
}

/// `BEGIN DEFERRABLE`, `SET TRANSACTION READ ONLY, NOT DEFERRABLE`: nobody waits for a moment at which nothing can fail.
fn leave_out_deferrable(tokens: &mut [TokenWithSpan]) {
    let is_word =
        |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(wanted));
    for statement in tokens.split_mut(|token| token.token == Token::SemiColon) {
        let seen: Vec<usize> =
            (0..statement.len()).filter(|at| !matches!(statement[*at].token, Token::Whitespace(_))).collect();
        let word = |at: usize, wanted: &str| seen.get(at).is_some_and(|at| is_word(&statement[*at].token, wanted));
        let is_about_modes = word(0, "begin")
            || word(0, "start")
            || word(0, "set") && (word(1, "transaction") || word(1, "session") && word(2, "characteristics"));
        if !is_about_modes {
            continue;
        }
        let Some(at) = (1..seen.len()).find(|at| word(*at, "deferrable")) else { continue };
        let first = if word(at - 1, "not") { at - 1 } else { at };
        let mut gone: Vec<usize> = (first..=at).collect();
        let is_comma = |at: usize| seen.get(at).is_some_and(|at| statement[*at].token == Token::Comma);
        match () {
            () if is_comma(first - 1) => gone.push(first - 1),
            () if is_comma(at + 1) => gone.push(at + 1),
            () => {}
        }
        // Nothing else is said: what is there by itself.
        let is_alone = word(0, "set") && gone.len() + if word(1, "session") { 5 } else { 2 } == seen.len();
        for place in &gone {
            statement[seen[*place]].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        }
        if is_alone {
            statement[seen[0]].token = Token::make_keyword("VACUUM");
            statement[seen[1]].token = Token::make_word("SET", Some('"'));
            seen[2..].iter().for_each(|at| {
                statement[*at].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
            });
        }
    }
}

/// `ALTER SEQUENCE ... OWNED BY`, `OWNER TO`: whose a sequence is has no effect here. `COMMENT ON` what keeps no comment.
fn leave_out_ownership(tokens: &mut [TokenWithSpan]) {
    let is_word =
        |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(wanted));
    for statement in tokens.split_mut(|token| token.token == Token::SemiColon) {
        let mut words = statement.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let (first, second) = (words.next(), words.next());
        let begins = |verb: &str, object: &str| {
            first.is_some_and(|token| is_word(&token.token, verb))
                && second.is_some_and(|token| is_word(&token.token, object))
        };
        let is_owned = begins("alter", "sequence")
            && words.clone().any(|token| is_word(&token.token, "owned") || is_word(&token.token, "owner"));
        let is_comment = begins("comment", "on")
            && words.next().is_some_and(|token| {
                ["function", "trigger", "policy", "rule"].iter().any(|kind| is_word(&token.token, kind))
            });
        if begins("comment", "on") {
            crate::respell::name_constraint(statement);
        }
        let tag = match () {
            () if is_owned => "ALTER SEQUENCE",
            () if is_comment => "COMMENT",
            () => continue,
        };
        let tokens = statement.iter_mut().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        for (at, token) in tokens.enumerate() {
            token.token = match at {
                0 => Token::make_keyword("VACUUM"),
                1 => Token::make_word(tag, Some('"')),
                _ => Token::Whitespace(sqlparser::tokenizer::Whitespace::Space),
            };
        }
    }
}

/// The setting that SET CONSTRAINTS is written as.
pub(crate) const SET_CONSTRAINTS: &str = "SET CONSTRAINTS";

/// `SET CONSTRAINTS a, b DEFERRED`: a setting whose values are the last word and the names.
fn respell_deferral(tokens: &mut Vec<TokenWithSpan>) {
    let word = |token: Option<&TokenWithSpan>| match token.map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let is_it = |tokens: &[TokenWithSpan]| {
        let mut words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        word(words.next()) == "set" && word(words.next()) == "constraints"
    };
    if !tokens.split(|token| token.token == Token::SemiColon).any(is_it) {
        return;
    }
    let mut out = Vec::with_capacity(tokens.len() + 8);
    for (number, statement) in tokens.split(|token| token.token == Token::SemiColon).enumerate() {
        let span = statement.first().map_or_else(sqlparser::tokenizer::Span::empty, |token| token.span);
        let mut put = |token: Token| out.push(TokenWithSpan { token, span });
        if number > 0 {
            put(Token::SemiColon);
        }
        if !is_it(statement) {
            out.extend_from_slice(statement);
            continue;
        }
        let said: Vec<&TokenWithSpan> =
            statement.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).skip(2).collect();
        let mode = word(said.last().copied());
        let names = &said[..said.len().saturating_sub(1)];
        put(Token::make_keyword("SET"));
        if !matches!(mode.as_str(), "deferred" | "immediate") || names.is_empty() {
            // No statement begins so: the parser says what is wrong.
            put(Token::make_keyword("CONSTRAINTS"));
            continue;
        }
        put(Token::make_word(SET_CONSTRAINTS, Some('"')));
        put(Token::Eq);
        put(Token::SingleQuotedString(mode));
        if let [all] = names
            && word(Some(all)) == "all"
        {
            continue;
        }
        for (at, name) in names.iter().enumerate() {
            match &name.token {
                // The schema before a name.
                _ if names.get(at + 1).is_some_and(|next| next.token == Token::Period) => {}
                Token::Word(name) if name.quote_style.is_some() => {
                    put(Token::Comma);
                    put(Token::SingleQuotedString(name.value.clone()));
                }
                Token::Word(name) => {
                    put(Token::Comma);
                    put(Token::SingleQuotedString(name.value.to_lowercase()));
                }
                _ => {}
            }
        }
    }
    *tokens = out;
}

/// `ADD GENERATED ... AS IDENTITY (SEQUENCE NAME a.b ...)`: the sequence has the name that it gets by itself.
fn leave_out_sequence_names(tokens: &mut [TokenWithSpan]) {
    let mut places: Vec<usize> = Vec::new();
    let is_word =
        |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(wanted));
    let seen: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    for (number, window) in seen.windows(4).enumerate() {
        let [open, sequence, name, _] = window else { continue };
        let is_it = tokens[*open].token == Token::LParen
            && is_word(&tokens[*sequence].token, "sequence")
            && is_word(&tokens[*name].token, "name");
        if is_it {
            let mut at = number + 3;
            places.extend([*sequence, *name, seen[at]]);
            while seen.get(at + 1).is_some_and(|next| tokens[*next].token == Token::Period) && at + 2 < seen.len() {
                places.extend([seen[at + 1], seen[at + 2]]);
                at += 2;
            }
        }
    }
    for place in places {
        tokens[place].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
    }
}

/// `OPERATOR(pg_catalog.=)`: the operator alone.
fn leave_out_operator_schemas(tokens: &mut [TokenWithSpan]) {
    let is_word = |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    if !tokens.iter().any(|token| is_word(&token.token, "operator")) {
        return;
    }
    for at in 0..tokens.len().saturating_sub(5) {
        let is_it = is_word(&tokens[at].token, "operator")
            && tokens[at + 1].token == Token::LParen
            && is_word(&tokens[at + 2].token, "pg_catalog")
            && tokens[at + 3].token == Token::Period
            && tokens[at + 5].token == Token::RParen;
        if is_it {
            for place in [at, at + 1, at + 2, at + 3, at + 5] {
                tokens[place].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
            }
        }
    }
}

/// `BINARY x` of MySQL binds closer than any operator; the parser would take all that follows. Here it is a function of `x`, which ends behind its parentheses.
fn respell_binary(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    if !tokens.iter().any(|token| is_word(&token.token, "binary")) {
        return;
    }
    let seen: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let mut insertions = Vec::new();
    let (mut is_query, mut is_first) = (false, true);
    for number in 0..seen.len() {
        let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
        if std::mem::replace(&mut is_first, tokens[seen[number]].token == Token::SemiColon) {
            is_query = ["select", "insert", "replace", "update", "delete", "with", "set"]
                .iter()
                .any(|verb| is_word(&tokens[seen[number]].token, verb));
        }
        // The name of a type and of a set of characters stand behind other words.
        let is_behind = match number.checked_sub(1).and_then(token) {
            Some(Token::Word(word)) => [
                "select", "where", "and", "or", "not", "on", "like", "by", "when", "then", "else", "having", "between",
                "xor", "regexp", "rlike", "distinct",
            ]
            .iter()
            .any(|known| word.value.eq_ignore_ascii_case(known)),
            Some(Token::RParen) | None => false,
            Some(_) => true,
        };
        if !is_query || !is_behind || !is_word(&tokens[seen[number]].token, "binary") {
            continue;
        }
        let mut last = number + 1;
        match token(last) {
            Some(Token::Word(_)) => {
                while token(last + 1) == Some(&Token::Period) && matches!(token(last + 2), Some(Token::Word(_))) {
                    last += 2;
                }
                // A function is called.
                if token(last + 1) == Some(&Token::LParen) {
                    continue;
                }
            }
            Some(
                Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) | Token::Number(..) | Token::Placeholder(_),
            ) => {}
            _ => continue,
        }
        insertions.push((seen[number], seen[last]));
    }
    for (word, last) in insertions.into_iter().rev() {
        let span = tokens[word].span;
        tokens.insert(last + 1, TokenWithSpan { token: Token::RParen, span });
        tokens.insert(word + 1, TokenWithSpan { token: Token::LParen, span });
        tokens[word].token = Token::make_word("binary", Some('`'));
    }
}

/// Spells `a MOD b` of MySQL as `a % b`; `MOD(a, b)` stays a call.
fn respell_remainders(tokens: &mut [TokenWithSpan]) {
    for at in 1..tokens.len() {
        let is_mod = matches!(&tokens[at].token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("mod"));
        if !is_mod {
            continue;
        }
        let before = tokens[..at].iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_)));
        let ends_value = before
            .is_some_and(|token| matches!(token.token, Token::Number(..) | Token::RParen | Token::Placeholder(_)));
        let is_call = tokens.get(at + 1).is_some_and(|token| token.token == Token::LParen);
        if ends_value && !is_call {
            tokens[at].token = Token::Mod;
        }
    }
}

/// `UPDATE a, b SET` of MySQL: the parser knows a join in its place.
fn respell_updates(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    let (mut is_first, mut is_update, mut depth) = (true, false, 0);
    let mut commas = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => (is_first, is_update, depth) = (true, false, 0),
            token if std::mem::take(&mut is_first) => is_update = is_word(token, "update"),
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma if is_update && depth == 0 => commas.push(at),
            token if is_word(token, "set") && depth == 0 => is_update = false,
            _ => {}
        }
    }
    for at in commas.into_iter().rev() {
        let span = tokens[at].span;
        tokens[at].token = Token::make_keyword("CROSS");
        tokens.insert(at + 1, TokenWithSpan { token: Token::make_keyword("JOIN"), span });
    }
}

/// `DROP CHECK` of MySQL: the parser knows it by the name of the standard.
fn respell_checks(tokens: &mut [TokenWithSpan]) {
    let is_word = |token: &Token, wanted: &str| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted));
    let (mut first, mut is_behind_drop) = (None, false);
    for token in tokens.iter_mut() {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::SemiColon => first = None,
            word => {
                let is_alter = *first.get_or_insert_with(|| is_word(word, "alter"));
                let is_drop = is_word(word, "drop");
                if is_alter && is_behind_drop && is_word(word, "check") {
                    token.token = Token::make_keyword("CONSTRAINT");
                }
                is_behind_drop = is_drop;
            }
        }
    }
}

/// Stands before what the frame of a window leaves out, among what it is ordered by.
pub(crate) const EXCLUDE_MARK: char = '\u{2}';

/// Moves what frames of windows leave out (`EXCLUDE TIES`) to where the parser takes it: behind ORDER BY.
fn move_exclusions(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: &TokenWithSpan, wanted: &str| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted),
        _ => false,
    };
    if !tokens.iter().any(|token| is_word(token, "exclude")) {
        return;
    }
    // Of each parenthesis that is open: where its frame begins, and whether it has an order.
    let mut open: Vec<(Option<usize>, bool)> = Vec::new();
    let mut moves: Vec<(usize, std::ops::Range<usize>, String, bool)> = Vec::new();
    let words_behind = |at: usize| {
        let all = tokens[at..].iter().enumerate().filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
        all.take(4).map(|(number, token)| (at + number, token)).collect::<Vec<_>>()
    };
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => open.push((None, false)),
            Token::RParen => drop(open.pop()),
            Token::Word(_) => {
                let Some(window) = open.last_mut() else { continue };
                if is_word(token, "order") {
                    window.1 = true;
                } else if ["rows", "range", "groups"].iter().any(|units| is_word(token, units)) {
                    window.0 = Some(at);
                } else if let Some(frame) = window.0.filter(|_| is_word(token, "exclude")) {
                    let words = words_behind(at);
                    let is = |number: usize, wanted: &str| {
                        words.get(number).is_some_and(|(_, token)| is_word(token, wanted))
                    };
                    let (what, count) = match () {
                        () if is(1, "no") && is(2, "others") => ("nothing", 3),
                        () if is(1, "current") && is(2, "row") => ("current", 3),
                        () if is(1, "group") => ("group", 2),
                        () if is(1, "ties") => ("ties", 2),
                        () => continue,
                    };
                    if let Some((end, _)) = words.get(count).filter(|(_, token)| matches!(token.token, Token::RParen)) {
                        moves.push((frame, at..*end, what.to_string(), window.1));
                    }
                }
            }
            _ => {}
        }
    }
    for (frame, range, what, has_order) in moves.into_iter().rev() {
        tokens.drain(range);
        let mut put = |token: Token| tokens.insert(frame, TokenWithSpan::wrap(token));
        put(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
        put(Token::make_word(&format!("{EXCLUDE_MARK}{what}"), Some('"')));
        if has_order {
            put(Token::Comma);
        } else {
            put(Token::make_keyword("BY"));
            put(Token::make_keyword("ORDER"));
        }
    }
}

/// Stands between a parameter and its number.
pub(crate) const NUMBER_MARK: char = '\u{1}';

/// A text without the numbers that parameters got.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut parts = text.split(NUMBER_MARK);
    let mut out = parts.next().unwrap_or_default().to_string();
    parts.for_each(|part| out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit())));
    out
}

/// Makes one token of `:` and the name behind it: a parameter.
fn join_names(tokens: &mut Vec<TokenWithSpan>) {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens.drain(..) {
        match joined.last_mut() {
            Some(last)
                if last.token == Token::Colon
                    && matches!(&token.token, Token::Word(word) if word.quote_style.is_none()) =>
            {
                last.token = Token::Placeholder(format!(":{}", token.token));
                last.span.end = token.span.end;
            }
            _ => joined.push(token),
        }
    }
    *tokens = joined;
}

/// Gives parameters that have no numbers those of their places in the text: they are bound in another order.
pub(crate) fn number_parameters<'t>(tokens: impl Iterator<Item = &'t mut Token>) {
    let (mut names, mut count): (HashMap<String, usize>, usize) = (HashMap::new(), 0);
    for token in tokens {
        match token {
            Token::SemiColon => {
                names.clear();
                count = 0;
            }
            // `$1` has its number.
            Token::Placeholder(name) if !name.contains(NUMBER_MARK) && !name.starts_with('$') => {
                let known = if name == "?" { None } else { names.get(name.as_str()).copied() };
                let number = known.unwrap_or(count);
                if known.is_none() {
                    count += 1;
                    if name != "?" {
                        names.insert(name.clone(), number);
                    }
                }
                *name = format!("{name}{NUMBER_MARK}{number}");
            }
            _ => {}
        }
    }
}

/// Spellings of MySQL's that the parser does not know.
pub(crate) fn respell_of_mysql(tokens: &mut Vec<TokenWithSpan>) {
    respell_checks(tokens);
    respell_binary(tokens);
    crate::respell::lenient_updates(tokens);
    crate::respell::keys(tokens);
    crate::respell::persistent(tokens);
    crate::respell::unions(tokens);
    crate::respell::locks(tokens);
    crate::respell::exclusive_ors(tokens);
    respell_updates(tokens);
    respell_remainders(tokens);
    crate::respell::intervals(tokens);
    crate::respell::characters(tokens);
    crate::respell::national(tokens);
}

/// True if a statement of the text may be one that the parser does not know.
fn has_own(text: &str) -> bool {
    text.split(';').any(|statement| {
        // A comment may stand before it.
        let start = statement.trim_start();
        let begins = |word: &str| start.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
        let words = ["fetch", "move", "--", "/*", "grant", "revoke", "create", "alter", "drop"];
        words.iter().any(|word| begins(word))
    })
}

/// What the parser says, in the words of PostgreSQL and with the place; what it has expected is a detail.
fn postgres_syntax_error(what: &str) -> Error {
    if let Some((expected, found)) = what.rsplit_once(", found: ") {
        let detail = expected.to_string();
        let error = |message: String| Error::new(Condition::Syntax, message).detail(format!("{detail}."));
        return match found.rsplit_once(" at Line: ") {
            Some((word, place)) if let Some((line, column)) = place.split_once(", Column: ") => {
                let message = match word {
                    "EOF" => "syntax error at end of input".to_string(),
                    word => format!("syntax error at or near \"{word}\""),
                };
                let location = sqlparser::tokenizer::Location {
                    line: line.trim().parse().unwrap_or(0),
                    column: column.trim().parse().unwrap_or(0),
                };
                error(message).at(location)
            }
            None if found == "EOF" => error("syntax error at end of input".to_string()),
            _ => error(format!("syntax error at or near \"{found}\"")),
        };
    }
    Error::new(Condition::Syntax, format!("syntax error: {what}"))
}

impl Dialect {
    /// Takes a text apart into statements. Errors: `Syntax`, `LimitExceeded`.
    pub fn parse(self, text: &str) -> Result<Vec<Statement>> {
        if text.len() > TEXT_MAX {
            let what = format!("the statement has {} bytes, more than {TEXT_MAX}", text.len());
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        let tokens = self.tokens(text)?;
        self.parse_tokens(tokens)
    }

    pub(crate) fn tokens(self, text: &str) -> Result<Vec<TokenWithSpan>> {
        let text = match self {
            Dialect::Postgres => crate::respell::apart(text),
            Dialect::Mysql => crate::mysql::text::with_known_escapes(text),
            Dialect::Tarantool => text.into(),
        };
        let mut tokens = Tokenizer::new(self.parser(), &text)
            .tokenize_with_location()
            .map_err(|error| Error::new(Condition::Syntax, format!("syntax error: {error}")))?;
        match self {
            Dialect::Postgres => {
                respell(&mut tokens);
                crate::user_types::respell(&mut tokens);
                crate::respell::tables(&mut tokens);
                crate::respell::unions(&mut tokens);
                crate::respell::dropped_expressions(&mut tokens);
                crate::respell::collations_of_types(&mut tokens);
                crate::respell::signs(&mut tokens);
                crate::respell::grouping_sets(&mut tokens);
                crate::respell::fetches(&mut tokens);
                crate::respell::locks(&mut tokens);
                crate::respell::explained(&mut tokens);
                crate::respell::parts(&mut tokens);
                crate::respell::conflict_keys(&mut tokens);
            }
            Dialect::Mysql => {
                respell_of_mysql(&mut tokens);
                number_parameters(tokens.iter_mut().map(|token| &mut token.token));
            }
            Dialect::Tarantool => {
                join_names(&mut tokens);
                crate::respell::whole_spaces(&mut tokens);
                number_parameters(tokens.iter_mut().map(|token| &mut token.token));
            }
        }
        crate::chains::check_words(&tokens)?;
        move_exclusions(&mut tokens);
        Ok(tokens)
    }

    fn parse_tokens(self, tokens: Vec<TokenWithSpan>) -> Result<Vec<Statement>> {
        let parser = Parser::new(self.parser()).with_recursion_limit(DEPTH_MAX);
        self.read(|| parser.with_tokens_with_locations(tokens).parse_statements())
    }

    /// Calls a parser, which takes up to 50 KiB of stack for a level: more than a fiber has for [`DEPTH_MAX`] of them. Errors: as [`Dialect::parse`].
    pub(crate) fn read<T>(self, parse: impl FnOnce() -> std::result::Result<T, ParserError>) -> Result<T> {
        match runtime::on_large_stack(parse) {
            Ok(parsed) => parsed.map_err(|error| self.refused(error)),
            Err(error) => {
                Err(Error::new(Condition::LimitExceeded, format!("no memory to read the statement: {error}")))
            }
        }
    }

    pub(crate) fn parser(self) -> &'static dyn sqlparser::dialect::Dialect {
        match self {
            Dialect::Tarantool => &SQLiteDialect {},
            Dialect::Postgres => &PostgreSqlDialect {},
            Dialect::Mysql => &MySqlDialect {},
        }
    }

    /// What the parser says, as an error.
    pub(crate) fn refused(self, error: ParserError) -> Error {
        match error {
            ParserError::RecursionLimitExceeded => {
                Error::new(Condition::LimitExceeded, format!("the statement is nested deeper than {DEPTH_MAX}"))
            }
            ParserError::TokenizerError(what) | ParserError::ParserError(what) => self.syntax_error(&what),
        }
    }

    /// Takes a text apart into statements, those of the dialect's own among them. Errors: as [`Dialect::parse`].
    pub(crate) fn statements(self, text: &str) -> Result<Vec<Said>> {
        if self == Dialect::Mysql {
            if text.len() > TEXT_MAX {
                let what = format!("the statement has {} bytes, more than {TEXT_MAX}", text.len());
                return Err(Error::new(Condition::LimitExceeded, what));
            }
            if let Some(own) = crate::mysql::own(text)? {
                return Ok(vec![own]);
            }
        }
        if self == Dialect::Postgres && has_own(text) {
            return self.one_by_one(text);
        }
        Ok(self.parse(text)?.into_iter().map(Said::Parsed).collect())
    }

    /// A text some of whose statements the parser does not know.
    fn one_by_one(self, text: &str) -> Result<Vec<Said>> {
        if text.len() > TEXT_MAX {
            return self.parse(text).map(|_| Vec::new());
        }
        let mut found = Vec::new();
        for statement in self.tokens(text)?.split(|token| token.token == Token::SemiColon) {
            match () {
                () if crate::cursors::is_own(statement) => found.push(Said::Control(crate::cursors::parse(statement)?)),
                () if crate::accounts::are_own(statement) => {
                    let tokens = statement.iter().map(|token| token.token.clone());
                    let tokens = tokens.filter(|token| !matches!(token, Token::Whitespace(_))).collect();
                    found.push(Said::Accounts(Rc::new(crate::accounts::parse(self, tokens)?)));
                }
                () => found.extend(self.parse_tokens(statement.to_vec())?.into_iter().map(Said::Parsed)),
            }
        }
        Ok(found)
    }

    /// What the parser says, in the words of the dialect where it says which word it is about.
    fn syntax_error(self, what: &str) -> Error {
        let place = what.rsplit_once(", found: ").and_then(|(_, found)| found.split_once(" at Line: "));
        if self == Dialect::Postgres {
            return postgres_syntax_error(what);
        }
        let (Some((word, place)), Dialect::Tarantool) = (place, self) else {
            return Error::new(Condition::Syntax, format!("syntax error: {what}"));
        };
        let line = place.split(',').next().unwrap_or("1");
        Error::new(Condition::Syntax, format!("Syntax error at line {line} near '{word}'"))
            .detail(what.to_string())
            .tarantool(database::ErrorCode::SqlSyntaxNearToken)
    }

    /// The name that an identifier means.
    pub fn fold(self, ident: &Ident) -> String {
        match (ident.quote_style, self) {
            (Some(_), _) | (None, Dialect::Mysql) => ident.value.clone(),
            (None, Dialect::Tarantool) => ident.value.to_uppercase(),
            (None, Dialect::Postgres) => ident.value.to_lowercase(),
        }
    }

    /// True if two names of columns or aliases are the same.
    pub(crate) fn is_same(self, a: &str, b: &str) -> bool {
        match self {
            Dialect::Mysql => a.eq_ignore_ascii_case(b),
            Dialect::Tarantool | Dialect::Postgres => a == b,
        }
    }

    /// The last part of a name. Databases before it are there for those who name them, and so are schemas but in PostgreSQL's dialect.
    ///
    /// Errors: `UndefinedSchema`: what somebody keeps apart by schemas would be one and the same.
    pub(crate) fn object_name(self, name: &ObjectName) -> Result<String> {
        if let (Dialect::Postgres, [.., ObjectNamePart::Identifier(schema), _]) = (self, name.0.as_slice()) {
            self.check_schema(&self.fold(schema))?;
        }
        match name.0.last() {
            Some(ObjectNamePart::Identifier(ident)) => Ok(self.fold(ident)),
            _ => Err(Error::new(Condition::Syntax, format!("'{name}' is no name"))),
        }
    }

    /// Errors: `AccessDenied` for the schemas of the system, in which nobody makes anything.
    pub(crate) fn check_new(self, name: &ObjectName) -> Result<()> {
        match name.0.as_slice() {
            [.., ObjectNamePart::Identifier(schema), _]
                if self == Dialect::Postgres
                    && matches!(self.fold(schema).as_str(), "pg_catalog" | "information_schema") =>
            {
                let what = format!("permission denied for schema {}", self.fold(schema));
                Err(Error::new(Condition::AccessDenied, what))
            }
            _ => Ok(()),
        }
    }

    /// Errors: `UndefinedSchema` for a schema that is not there.
    pub(crate) fn check_schema(self, schema: &str) -> Result<()> {
        let is_known = matches!(schema, "public" | "pg_catalog" | "information_schema")
            || schema.starts_with("pg_temp")
            || schema.starts_with(crate::ddl::likes::MARK);
        match is_known || self != Dialect::Postgres {
            true => Ok(()),
            false => Err(Error::new(Condition::UndefinedSchema, format!("schema \"{schema}\" does not exist"))),
        }
    }

    /// The same as [`Dialect::object_name`] of a table that rows are read from or written to. Errors: `UndefinedTable` where that has `UndefinedSchema`.
    pub(crate) fn table_name(self, name: &ObjectName) -> Result<String> {
        self.object_name(name).map_err(|error| match error.condition() {
            Condition::UndefinedSchema => {
                let parts: Vec<String> = name.0.iter().filter_map(|part| Some(self.fold(part.as_ident()?))).collect();
                Error::new(Condition::UndefinedTable, format!("relation \"{}\" does not exist", parts.join(".")))
            }
            _ => error,
        })
    }

    /// True if a schema is named that is not there.
    pub(crate) fn is_nowhere(self, name: &ObjectName) -> bool {
        self.object_name(name).is_err_and(|error| error.condition() == Condition::UndefinedSchema)
    }

    /// True if a quotient of whole numbers is a whole number.
    pub(crate) fn divides_whole(self) -> bool {
        self != Dialect::Mysql
    }

    /// True if nulls come before all others in ascending order.
    pub(crate) fn has_nulls_first(self) -> bool {
        self != Dialect::Postgres
    }

    /// True if a division by zero gives null and not an error.
    pub(crate) fn zero_gives_null(self) -> bool {
        self == Dialect::Mysql
    }
}
