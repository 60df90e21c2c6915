//! Spellings that the parser does not know, as ones that it does: over the tokens of a text, before it is parsed.

mod targets;

pub(crate) use targets::{CONFLICT_KEY, PART, conflict_keys, name_constraint, parts};

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::borrow::Cow;

/// Units of MySQL that have two parts, and those of the parser's, which MySQL has not, that stand for them.
const UNITS: [(&str, &str); 11] = [
    ("SECOND_MICROSECOND", "MILLENNIUM"),
    ("MINUTE_MICROSECOND", "CENTURY"),
    ("MINUTE_SECOND", "DECADE"),
    ("HOUR_MICROSECOND", "DOW"),
    ("HOUR_SECOND", "DOY"),
    ("HOUR_MINUTE", "EPOCH"),
    ("DAY_MICROSECOND", "ISODOW"),
    ("DAY_SECOND", "ISOYEAR"),
    ("DAY_MINUTE", "JULIAN"),
    ("DAY_HOUR", "TIMEZONE_HOUR"),
    ("YEAR_MONTH", "TIMEZONE_MINUTE"),
];

/// The unit of two parts that a unit of the parser's stands for.
pub(crate) fn unit_of_parts(unit: &str) -> Option<&'static str> {
    UNITS.iter().find(|(_, stand_in)| unit.eq_ignore_ascii_case(stand_in)).map(|(parts, _)| *parts)
}

fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Numbers of the tokens that are no white space.
fn seen(tokens: &[TokenWithSpan]) -> Vec<usize> {
    (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect()
}

/// The place in `seen` where the parenthesis that opens at `open` closes, and the places of the commas directly within it.
fn parenthesis(tokens: &[TokenWithSpan], seen: &[usize], open: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0usize, Vec::new());
    for (place, at) in seen.iter().enumerate().skip(open) {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    return Some((place, commas));
                }
            }
            Token::Comma if depth == 1 => commas.push(place),
            _ => {}
        }
    }
    None
}

/// `((SELECT ...) UNION ...)` in the place of a value, where the parser expects no query behind two parentheses: the inner ones go, if they hold nothing
/// together.
pub(crate) fn unions(tokens: &mut [TokenWithSpan]) {
    const COMBINING: [&str; 3] = ["union", "except", "intersect"];
    const ENDING: [&str; 5] = ["order", "limit", "offset", "fetch", "for"];
    // What is nested deeper is refused by the parser, and would be looked through as often as it is deep.
    const DEEPEST: usize = 200;
    let seen = seen(tokens);
    let (mut depth, mut deepest) = (0usize, 0);
    for at in &seen {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > DEEPEST {
        return;
    }
    let mut gone = Vec::new();
    for (place, at) in seen.iter().enumerate().skip(1) {
        let is_query = seen.get(place + 1).is_some_and(|next| is_word(&tokens[*next].token, "select"));
        if tokens[*at].token != Token::LParen || tokens[seen[place - 1]].token != Token::LParen || !is_query {
            continue;
        }
        let Some((end, _)) = parenthesis(tokens, &seen, place) else { continue };
        let is_one = |at: &usize, words: &[&str]| words.iter().any(|word| is_word(&tokens[*at].token, word));
        if !seen.get(end + 1).is_some_and(|next| is_one(next, &COMBINING)) {
            continue;
        }
        let mut depth = 0usize;
        let holds = seen[place..end].iter().any(|at| {
            match tokens[*at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            depth == 1 && (is_one(at, &COMBINING) || is_one(at, &ENDING))
        });
        if !holds {
            gone.extend([*at, seen[end]]);
        }
    }
    for at in gone {
        tokens[at].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
    }
}

/// Words that an operand of XOR ends at, going on from it.
const AFTER_OPERANDS: [&str; 32] = [
    "xor",
    "or",
    "then",
    "else",
    "when",
    "from",
    "where",
    "having",
    "on",
    "as",
    "group",
    "order",
    "limit",
    "union",
    "except",
    "intersect",
    "join",
    "left",
    "right",
    "inner",
    "outer",
    "cross",
    "natural",
    "straight_join",
    "for",
    "into",
    "window",
    "asc",
    "desc",
    "using",
    "set",
    "returning",
];
/// Words that it ends at, going back.
const BEFORE_OPERANDS: [&str; 18] = [
    "xor",
    "or",
    "select",
    "distinct",
    "all",
    "where",
    "having",
    "on",
    "when",
    "then",
    "else",
    "set",
    "by",
    "returning",
    "values",
    "limit",
    "offset",
    "update",
];

/// `a = b XOR c = d` of MySQL: XOR binds weaker than AND there, and the parser takes it for one that binds stronger than comparisons. So its operands
/// get parentheses.
pub(crate) fn exclusive_ors(tokens: &mut Vec<TokenWithSpan>) {
    let seen = seen(tokens);
    if !seen.iter().any(|at| is_word(&tokens[*at].token, "xor")) {
        return;
    }
    let is_one = |place: usize, words: &[&str]| words.iter().any(|word| is_word(&tokens[seen[place]].token, word));
    let is_call = |place: usize| {
        let next = seen.get(place + 1).map(|at| &tokens[*at].token);
        is_one(place, &["left", "right"]) && next == Some(&Token::LParen)
    };
    let sets = assignments(tokens, &seen);
    // Numbers of tokens before which parentheses come; whether they open.
    let mut put: Vec<(usize, bool)> = Vec::new();
    for place in (0..seen.len()).filter(|place| is_one(*place, &["xor"])) {
        let (mut depth, mut cases, mut first) = (0usize, 0usize, place);
        while let Some(before) = first.checked_sub(1) {
            match tokens[seen[before]].token {
                Token::RParen => depth += 1,
                Token::LParen if depth == 0 => break,
                Token::LParen => depth -= 1,
                _ if depth > 0 => {}
                _ if is_one(before, &["end"]) => cases += 1,
                _ if cases > 0 => cases -= usize::from(is_one(before, &["case"])),
                Token::Comma | Token::SemiColon | Token::Assignment | Token::StringConcat => break,
                _ if is_one(before, &BEFORE_OPERANDS) => break,
                _ => {}
            }
            first = before;
        }
        // `SET a = b XOR c` gives a column a value.
        if sets[first]
            && let Some(equals) = (first..place).find(|at| tokens[seen[*at]].token == Token::Eq)
        {
            first = equals + 1;
        }
        let (mut depth, mut cases, mut last) = (0usize, 0usize, place);
        while let Some(at) = seen.get(last + 1) {
            match tokens[*at].token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                _ if depth > 0 => {}
                _ if is_one(last + 1, &["case"]) => cases += 1,
                _ if cases > 0 => cases -= usize::from(is_one(last + 1, &["end"])),
                _ if is_one(last + 1, &["end"]) => break,
                Token::Comma | Token::SemiColon | Token::StringConcat | Token::EOF => break,
                // `LEFT(text, 1)` is a function.
                _ if is_one(last + 1, &AFTER_OPERANDS) && !is_call(last + 1) => break,
                _ => {}
            }
            last += 1;
        }
        if first == place || last == place {
            continue;
        }
        // The left side of one that follows another is the right side of that.
        if !(first > 0 && is_one(first - 1, &["xor"])) {
            put.extend([(seen[first], true), (seen[place], false)]);
        }
        put.extend([(seen[place + 1], true), (seen[last] + 1, false)]);
    }
    put.sort_by_key(|(at, opens)| (*at, *opens));
    let mut put = put.into_iter().peekable();
    let mut spelled = Vec::with_capacity(tokens.len() + put.len());
    let mut span = sqlparser::tokenizer::Span::empty();
    for (at, next) in std::mem::take(tokens).into_iter().enumerate() {
        span = next.span;
        while let Some((_, opens)) = put.next_if(|(before, _)| *before <= at) {
            spelled.push(parenthesis_at(opens, span));
        }
        spelled.push(next);
    }
    spelled.extend(put.map(|(_, opens)| parenthesis_at(opens, span)));
    *tokens = spelled;
}

fn parenthesis_at(opens: bool, span: sqlparser::tokenizer::Span) -> TokenWithSpan {
    TokenWithSpan { token: if opens { Token::LParen } else { Token::RParen }, span }
}

/// For each place whether what begins there is one of the assignments behind SET, or behind ON DUPLICATE KEY UPDATE.
fn assignments(tokens: &[TokenWithSpan], seen: &[usize]) -> Vec<bool> {
    let (mut found, mut outer, mut is_set) = (Vec::with_capacity(seen.len()), Vec::new(), false);
    for (place, at) in seen.iter().enumerate() {
        found.push(is_set);
        match &tokens[*at].token {
            Token::LParen => outer.push(std::mem::take(&mut is_set)),
            Token::RParen => is_set = outer.pop().unwrap_or(false),
            Token::SemiColon => is_set = false,
            token if is_word(token, "set") => is_set = true,
            token if is_word(token, "update") && place > 0 => is_set = is_word(&tokens[seen[place - 1]].token, "key"),
            token if ["where", "select", "having", "values"].iter().any(|word| is_word(token, word)) => is_set = false,
            _ => {}
        }
    }
    found
}

/// The default of a column by which ALTER TABLE says DROP EXPRESSION, which the parser does not know.
pub(crate) const DROPS_EXPRESSION: &str = "drop expression";
/// The same with IF EXISTS.
pub(crate) const DROPS_EXPRESSION_IF_ANY: &str = "drop expression if exists";

/// `ALTER COLUMN x DROP EXPRESSION [IF EXISTS]` of PostgreSQL, as a default that stands for it.
pub(crate) fn dropped_expressions(tokens: &mut [TokenWithSpan]) {
    let seen = seen(tokens);
    if !seen.first().is_some_and(|at| is_word(&tokens[*at].token, "alter")) {
        return;
    }
    for (place, at) in seen.iter().enumerate() {
        let word =
            |ahead: usize, wanted: &str| seen.get(place + ahead).is_some_and(|at| is_word(&tokens[*at].token, wanted));
        if !word(0, "drop") || !word(1, "expression") || place < 3 {
            continue;
        }
        let is_alter = |back: usize| is_word(&tokens[seen[place - back]].token, "alter");
        let is_column = is_alter(2) || is_alter(3) && is_word(&tokens[seen[place - 2]].token, "column");
        let ends = |ahead: usize| {
            let next = seen.get(place + ahead).map(|at| &tokens[*at].token);
            matches!(next, None | Some(Token::Comma | Token::SemiColon | Token::EOF))
        };
        let has_if = word(2, "if") && word(3, "exists");
        if !is_column || !ends(if has_if { 4 } else { 2 }) {
            continue;
        }
        let mark = if has_if { DROPS_EXPRESSION_IF_ANY } else { DROPS_EXPRESSION };
        let (drop, expression) = (*at, seen[place + 1]);
        let gone = if has_if { vec![seen[place + 2], seen[place + 3]] } else { Vec::new() };
        tokens[drop].token = Token::make_keyword("SET");
        // One word more is wanted: the white space behind it has room.
        let blank = expression - 1;
        tokens[blank].token = Token::make_keyword("DEFAULT");
        tokens[expression].token = Token::make_word(mark, Some('"'));
        for at in gone {
            tokens[at].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        }
    }
}

/// `ALTER COLUMN x TYPE t COLLATE "c"` of PostgreSQL, which the parser does not know, as `... TYPE t USING x COLLATE "c"`.
pub(crate) fn collations_of_types(tokens: &mut Vec<TokenWithSpan>) {
    let seen = seen(tokens);
    if !seen.first().is_some_and(|at| is_word(&tokens[*at].token, "alter")) {
        return;
    }
    let word = |place: usize, wanted: &str| seen.get(place).is_some_and(|at| is_word(&tokens[*at].token, wanted));
    let (mut column, mut moves) = (None, Vec::new());
    for place in 0..seen.len() {
        if word(place, "alter") {
            let name = place + 1 + usize::from(word(place + 1, "column"));
            let kind = name + 1 + if word(name + 1, "set") && word(name + 2, "data") { 2 } else { 0 };
            column = seen.get(name).filter(|_| word(kind, "type")).copied();
        }
        if word(place, "using") || tokens[seen[place]].token == Token::Comma {
            column = None;
        }
        if word(place, "collate")
            && let Some(column) = column.take()
        {
            moves.push((seen[place], column));
        }
    }
    for (collate, column) in moves.into_iter().rev() {
        let space = || TokenWithSpan::wrap(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
        let using = [TokenWithSpan::wrap(Token::make_keyword("USING")), space(), tokens[column].clone(), space()];
        tokens.splice(collate..collate, using);
    }
}

/// `AS (expression) PERSISTENT`, which is MariaDB's older word for STORED.
pub(crate) fn persistent(tokens: &mut [TokenWithSpan]) {
    let seen = seen(tokens);
    if !seen.iter().take(3).any(|at| is_word(&tokens[*at].token, "table")) {
        return;
    }
    for pair in seen.windows(2) {
        if tokens[pair[0]].token == Token::RParen && is_word(&tokens[pair[1]].token, "persistent") {
            tokens[pair[1]].token = Token::make_word("STORED", None);
        }
    }
}

/// `UPDATE LOW_PRIORITY IGNORE` of MySQL: the second word in SQLite's form, which the parser knows; the first one changes nothing.
pub(crate) fn lenient_updates(tokens: &mut Vec<TokenWithSpan>) {
    let seen = seen(tokens);
    let mut lenient = Vec::new();
    let mut is_first = true;
    for (place, at) in seen.iter().enumerate() {
        let begins = std::mem::replace(&mut is_first, tokens[*at].token == Token::SemiColon);
        if !begins || !is_word(&tokens[*at].token, "update") {
            continue;
        }
        let mut next = seen[place + 1..].iter().copied().peekable();
        if let Some(at) = next.next_if(|at| is_word(&tokens[*at].token, "low_priority")) {
            tokens[at].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        }
        lenient.extend(next.next_if(|at| is_word(&tokens[*at].token, "ignore")));
    }
    for at in lenient.into_iter().rev() {
        let span = tokens[at].span;
        tokens.insert(at, TokenWithSpan { token: Token::make_keyword("OR"), span });
    }
}

/// `ALTER TABLE ... DROP KEY k` and `RENAME KEY` of MySQL: a key is an index.
pub(crate) fn keys(tokens: &mut [TokenWithSpan]) {
    let seen = seen(tokens);
    let (mut is_first, mut alters) = (true, false);
    for (place, at) in seen.iter().enumerate() {
        if std::mem::replace(&mut is_first, tokens[*at].token == Token::SemiColon) {
            alters = is_word(&tokens[*at].token, "alter");
        }
        let goes = alters && ["drop", "rename"].iter().any(|word| is_word(&tokens[*at].token, word));
        if let Some(next) = seen.get(place + 1).filter(|next| goes && is_word(&tokens[**next].token, "key")) {
            tokens[*next].token = Token::make_keyword("INDEX");
        }
    }
}

/// SEQSCAN of Tarantool 2.11: `FROM SEQSCAN t` says that the whole space may be looked at, which is always so.
pub(crate) fn whole_spaces(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(&token.token, "seqscan")) {
        return;
    }
    let seen = seen(tokens);
    let is_table = |place: usize| {
        let before = place.checked_sub(1).map(|before| &tokens[seen[before]].token);
        let begins = before.is_some_and(|token| is_word(token, "from") || is_word(token, "join"));
        begins && seen.get(place + 1).is_some_and(|next| matches!(tokens[*next].token, Token::Word(_)))
    };
    let said: Vec<usize> = (0..seen.len())
        .filter(|place| is_word(&tokens[seen[*place]].token, "seqscan") && is_table(*place))
        .map(|place| seen[place])
        .collect();
    for at in said.into_iter().rev() {
        tokens.remove(at);
    }
}

/// `TABLE t` of PostgreSQL, where a query may stand: all of its rows.
pub(crate) fn tables(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(&token.token, "table")) {
        return;
    }
    let seen = seen(tokens);
    let begins = |place: usize| match place.checked_sub(1).map(|before| &tokens[seen[before]].token) {
        None => true,
        Some(token) => {
            matches!(token, Token::SemiColon | Token::LParen)
                || ["union", "except", "intersect", "all", "as", "explain"].iter().any(|word| is_word(token, word))
        }
    };
    let is_name = |place: usize| seen.get(place).is_some_and(|at| matches!(tokens[*at].token, Token::Word(_)));
    let found: Vec<usize> = (0..seen.len())
        .filter(|place| is_word(&tokens[seen[*place]].token, "table") && begins(*place) && is_name(place + 1))
        .map(|place| seen[place])
        .collect();
    for at in found.into_iter().rev() {
        let span = tokens[at].span;
        let spelled = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
        tokens.splice(at..=at, spelled.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// INTERVAL of MySQL: `INTERVAL 1 DAY_HOUR`, and `INTERVAL(n, a, b)`, which is a function.
pub(crate) fn intervals(tokens: &mut [TokenWithSpan]) {
    if !tokens.iter().any(|token| is_word(&token.token, "interval") || is_word(&token.token, "extract")) {
        return;
    }
    let seen = seen(tokens);
    for (place, at) in seen.iter().enumerate() {
        if is_word(&tokens[*at].token, "interval")
            && seen.get(place + 1).is_some_and(|next| tokens[*next].token == Token::LParen)
            && parenthesis(tokens, &seen, place + 1).is_some_and(|(_, commas)| !commas.is_empty())
        {
            tokens[*at].token = Token::make_word("interval", Some('`'));
        }
        let unit = match &tokens[*at].token {
            Token::Word(word) if word.quote_style.is_none() && place > 0 => {
                UNITS.iter().find(|(parts, _)| word.value.eq_ignore_ascii_case(parts))
            }
            _ => None,
        };
        if let Some((_, stand_in)) = unit {
            tokens[*at].token = Token::make_keyword(stand_in);
        }
    }
}

/// `CHAR(65 USING utf8mb4)` of MySQL: text is what CHAR gives.
pub(crate) fn characters(tokens: &mut [TokenWithSpan]) {
    if !tokens.iter().any(|token| is_word(&token.token, "using")) {
        return;
    }
    let seen = seen(tokens);
    for place in 0..seen.len() {
        let is_call = is_word(&tokens[seen[place]].token, "char")
            && seen.get(place + 1).is_some_and(|next| tokens[*next].token == Token::LParen);
        let Some((end, _)) = is_call.then(|| parenthesis(tokens, &seen, place + 1)).flatten() else { continue };
        if end > place + 3 && is_word(&tokens[seen[end - 2]].token, "using") {
            for at in [seen[end - 2], seen[end - 1]] {
                tokens[at].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
            }
        }
    }
}

/// `NATIONAL CHAR`, `NATIONAL VARCHAR` and `NCHAR` of MySQL: there is one character set.
pub(crate) fn national(tokens: &mut [TokenWithSpan]) {
    let seen = seen(tokens);
    for pair in seen.windows(2) {
        let [first, second] = pair else { continue };
        let is_type = ["char", "character", "varchar"].iter().any(|word| is_word(&tokens[*second].token, word));
        if is_type && is_word(&tokens[*first].token, "national") {
            tokens[*first].token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        }
        if is_word(&tokens[*second].token, "nchar") && matches!(tokens[*first].token, Token::Word(_)) {
            tokens[*second].token = Token::make_keyword("CHAR");
        }
    }
}

/// ROLLUP, CUBE and GROUPING SETS of PostgreSQL: an element may be an expression that begins with a parenthesis, which the parser takes for a list.
pub(crate) fn grouping_sets(tokens: &mut Vec<TokenWithSpan>) {
    let is_one = |token: &Token| ["rollup", "cube", "sets"].iter().any(|wanted| is_word(token, wanted));
    if !tokens.iter().any(|token| is_one(&token.token)) {
        return;
    }
    let seen = seen(tokens);
    let token = |place: usize| seen.get(place).map(|at| &tokens[*at].token);
    let mut insertions = Vec::new();
    for place in 0..seen.len() {
        if !token(place).is_some_and(is_one) || token(place + 1) != Some(&Token::LParen) {
            continue;
        }
        let Some((end, commas)) = parenthesis(tokens, &seen, place + 1) else { continue };
        let starts = std::iter::once(place + 2).chain(commas.iter().map(|comma| comma + 1));
        for (start, end) in starts.zip(commas.iter().copied().chain([end])) {
            let is_list = token(start) == Some(&Token::LParen)
                && parenthesis(tokens, &seen, start).is_some_and(|(close, _)| close + 1 == end)
                && !token(start + 1).is_some_and(|token| is_word(token, "select"));
            if token(start) == Some(&Token::LParen) && !is_list {
                insertions.push((seen[start], Token::LParen));
                insertions.push((seen[end - 1] + 1, Token::RParen));
            }
        }
    }
    insertions.sort_by_key(|(at, _)| *at);
    for (at, token) in insertions.into_iter().rev() {
        tokens.insert(at, TokenWithSpan::wrap(token));
    }
}

/// `FETCH FIRST (expression) ROWS ...` of PostgreSQL: the parser takes a plain value only, the expression stands in LIMIT before it.
pub(crate) fn fetches(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(&token.token, "fetch")) {
        return;
    }
    let seen = seen(tokens);
    let mut moves = Vec::new();
    for place in 1..seen.len() {
        let is_it = is_word(&tokens[seen[place]].token, "fetch")
            && seen
                .get(place + 1)
                .is_some_and(|at| ["first", "next"].iter().any(|word| is_word(&tokens[*at].token, word)))
            && seen.get(place + 2).is_some_and(|at| tokens[*at].token == Token::LParen);
        if is_it && let Some((end, _)) = parenthesis(tokens, &seen, place + 2) {
            moves.push((seen[place], seen[place + 2], seen[end]));
        }
    }
    for (fetch, start, end) in moves.into_iter().rev() {
        let mut limit = vec![TokenWithSpan::wrap(Token::make_keyword("LIMIT"))];
        limit.extend(tokens.drain(start..=end));
        limit.push(TokenWithSpan::wrap(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space)));
        tokens.splice(fetch..fetch, limit);
    }
}

/// `FOR NO KEY UPDATE` and `FOR KEY SHARE` as locks that the parser knows, and the tables behind OF, whose list it does not take, as a name of so many
/// parts.
pub(crate) fn locks(tokens: &mut [TokenWithSpan]) {
    const SPACE: Token = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
    if !tokens.iter().any(|token| is_word(&token.token, "for")) {
        return;
    }
    let seen = seen(tokens);
    for place in 0..seen.len() {
        let is = |tokens: &[TokenWithSpan], further: usize, word: &str| {
            seen.get(place + further).is_some_and(|at| is_word(&tokens[*at].token, word))
        };
        if !is(tokens, 0, "for") {
            continue;
        }
        let (passed, kind) = match () {
            () if is(tokens, 1, "no") && is(tokens, 2, "key") => (2, "update"),
            () if is(tokens, 1, "key") => (1, "share"),
            () if is(tokens, 1, "update") => (0, "update"),
            () => (0, "share"),
        };
        if !is(tokens, passed + 1, kind) {
            continue;
        }
        for at in &seen[place + 1..=place + passed] {
            tokens[*at].token = SPACE;
        }
        if !is(tokens, passed + 2, "of") {
            continue;
        }
        let mut comma = place + passed + 4;
        while seen.get(comma).is_some_and(|at| tokens[*at].token == Token::Comma) {
            tokens[seen[comma]].token = Token::Period;
            comma += 2;
        }
    }
}

/// `EXPLAIN (SELECT ...) UNION ...`, whose parenthesis the parser takes for one of options, as `EXPLAIN VERBOSE (SELECT ...)`.
pub(crate) fn explained(tokens: &mut Vec<TokenWithSpan>) {
    let seen = seen(tokens);
    let [explain, open, inner, ..] = seen[..] else { return };
    let is_query = tokens[inner].token == Token::LParen
        || ["select", "with", "values", "table"].iter().any(|word| is_word(&tokens[inner].token, word));
    if is_word(&tokens[explain].token, "explain") && tokens[open].token == Token::LParen && is_query {
        let space = TokenWithSpan::wrap(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
        tokens.splice(open..open, [TokenWithSpan::wrap(Token::make_keyword("VERBOSE")), space]);
    }
}

/// What is left of an operator in front of signs that are none of its own, as PostgreSQL takes operators: `>-1` compares with a number below zero, `%-` is
/// one operator. None: it is whole.
fn before_signs(operator: &str) -> Option<&str> {
    let rest = operator.trim_end_matches(['+', '-']);
    let is_one = rest.len() == operator.len() || operator.len() < 2;
    (!is_one && !operator.contains(['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'])).then_some(rest)
}

/// `+-1`, `x>-1`: signs behind an operator are none of it in PostgreSQL.
pub(crate) fn signs(tokens: &mut Vec<TokenWithSpan>) {
    let rest_of = |token: &Token| match token {
        Token::CustomBinaryOperator(text) => before_signs(text).map(|rest| (text.clone(), rest.len())),
        _ => None,
    };
    if !tokens.iter().any(|token| rest_of(&token.token).is_some()) {
        return;
    }
    let mut all = Vec::with_capacity(tokens.len() + 16);
    for token in std::mem::take(tokens) {
        let Some((text, length)) = rest_of(&token.token) else {
            all.push(token);
            continue;
        };
        let span = token.span;
        let before = Tokenizer::new(&PostgreSqlDialect {}, &text[..length]).tokenize().unwrap_or_default();
        let sign = |sign: char| if sign == '+' { Token::Plus } else { Token::Minus };
        let parts = before.into_iter().chain(text[length..].chars().map(sign));
        all.extend(parts.map(|token| TokenWithSpan { token, span }));
    }
    *tokens = all;
}

/// A text of PostgreSQL's dialect with space behind each `&>`: the library takes away whatever stands there.
pub(crate) fn apart(text: &str) -> Cow<'_, str> {
    if !text.contains("&>") {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let is_name = |at: usize| bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'_' | 0x80..);
    let behind = |from: usize, mark: &str| text.get(from..).and_then(|rest| rest.find(mark)).map(|at| from + at);
    let (mut out, mut copied, mut at) = (String::with_capacity(text.len() + 16), 0, 0);
    while at < bytes.len() {
        let next = bytes.get(at + 1);
        at = match bytes[at] {
            b'&' if next == Some(&b'>') => {
                out.push_str(&text[copied..at + 2]);
                out.push(' ');
                copied = at + 2;
                at + 2
            }
            b'-' if next == Some(&b'-') => behind(at, "\n").unwrap_or(bytes.len()),
            b'/' if next == Some(&b'*') => {
                let (mut depth, mut here) = (1, at + 2);
                while depth > 0 && here < bytes.len() {
                    (depth, here) = match &bytes[here..] {
                        [b'*', b'/', ..] => (depth - 1, here + 2),
                        [b'/', b'*', ..] => (depth + 1, here + 2),
                        _ => (depth, here + 1),
                    };
                }
                here
            }
            quote @ (b'\'' | b'"') => {
                let has_escapes = quote == b'\''
                    && at > 0
                    && bytes[at - 1].eq_ignore_ascii_case(&b'e')
                    && (at < 2 || !is_name(at - 2));
                let mut here = at + 1;
                while here < bytes.len() && (bytes[here] != quote || bytes.get(here + 1) == Some(&quote)) {
                    let is_two = bytes[here] == quote || has_escapes && bytes[here] == b'\\';
                    here += 1 + usize::from(is_two);
                }
                here + 1
            }
            b'$' if at == 0 || !is_name(at - 1) => {
                let mut end = at + 1;
                while end < bytes.len() && is_name(end) {
                    end += 1;
                }
                match bytes.get(end) {
                    Some(b'$') => {
                        let tag = &text[at..=end];
                        behind(end + 1, tag).map_or(bytes.len(), |found| found + tag.len())
                    }
                    _ => end,
                }
            }
            _ => at + 1,
        };
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::dialect::Dialect;

    fn spelled(dialect: Dialect, text: &str) -> String {
        dialect
            .tokens(text)
            .map(|tokens| tokens.iter().map(|token| token.token.to_string()).collect())
            .unwrap_or_default()
    }

    #[test]
    fn signs_behind_operators_are_none_of_theirs() {
        let of = |text: &str| {
            let tokens = Dialect::Postgres.tokens(text).unwrap();
            tokens.iter().map(|token| token.token.to_string()).collect::<Vec<_>>().join("_")
        };
        assert_eq!(of("x>-1"), "x_>_-_1");
        assert_eq!(of("x<>-1>=+-2"), "x_<>_-_1_>=_+_-_2");
        assert_eq!(of("j->-1->>-2"), "j_->_-_1_->>_-_2");
        assert_eq!(of("x%-1"), "x_%-_1");
        assert_eq!(apart("a&>b"), "a&> b");
        let others = "'&>' \"&>\" $x$ &> $x$ -- &>\n /* &> /* &> */ &> */ E'\\'&>' ";
        assert_eq!(apart(&format!("{others}&>b")), format!("{others}&> b"));
        assert_eq!(apart("'it''s &>' $1&>$2"), "'it''s &>' $1&> $2");
        assert_eq!(apart("E'a''\\'&>' || x&>y"), "E'a''\\'&>' || x&> y");
        assert_eq!(apart("é&>'"), "é&> '");
    }

    #[test]
    fn a_query_in_parentheses_is_explained() {
        let of = |text: &str| spelled(Dialect::Postgres, text);
        assert_eq!(of("EXPLAIN (SELECT 1) UNION (SELECT 2)"), "EXPLAIN VERBOSE (SELECT 1) UNION (SELECT 2)");
        assert_eq!(of("EXPLAIN (FORMAT JSON) (SELECT 1)"), "EXPLAIN (FORMAT JSON) (SELECT 1)");
    }

    #[test]
    fn a_collation_behind_a_type_is_one_of_the_column() {
        let of = |text: &str| spelled(Dialect::Postgres, text);
        let others = ", ALTER COLUMN b TYPE numeric(3, 1) USING b COLLATE \"C\"";
        assert_eq!(
            of(&format!("ALTER TABLE t ALTER \"A\" SET DATA TYPE varchar(3) COLLATE \"sv-x-icu\"{others}")),
            format!("ALTER TABLE t ALTER \"A\" SET DATA TYPE varchar(3) USING \"A\" COLLATE \"sv-x-icu\"{others}")
        );
    }

    #[test]
    fn locks_of_several_tables_and_of_no_key_are_ones_that_the_parser_knows() {
        let of = |text: &str| spelled(Dialect::Postgres, text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(of("select for no key update of a, \"b\" nowait"), "select for update of a. \"b\" nowait");
        assert_eq!(of("for key share of a for update of b,c"), "for share of a for update of b.c");
        assert_eq!(of("substring(x for 2), for update of"), "substring(x for 2), for update of");
    }

    #[test]
    fn elements_of_grouping_sets_are_lists_only_where_their_parentheses_end() {
        let of = |text: &str| spelled(Dialect::Postgres, text);
        assert_eq!(of("rollup ((a)::text, b)"), "rollup (((a)::text), b)");
        assert_eq!(of("cube ((a, b), c)"), "cube ((a, b), c)");
        assert_eq!(of("grouping sets ((a), ())"), "grouping sets ((a), ())");
        assert_eq!(of("rollup ((select 1), b)"), "rollup (((select 1)), b)");
        assert_eq!(of("rollup ((a"), "rollup ((a");
    }

    #[test]
    fn intervals_of_two_parts_have_a_unit_of_the_parsers() {
        let of = |text: &str| spelled(Dialect::Mysql, text);
        assert_eq!(of("x + INTERVAL '1 2' DAY_HOUR"), "x + INTERVAL '1 2' TIMEZONE_HOUR");
        assert_eq!(of("INTERVAL(3, 1, 5)"), "`interval`(3, 1, 5)");
        assert_eq!(of("x + INTERVAL(3) DAY"), "x + INTERVAL(3) DAY");
        assert_eq!(of("CHAR(65, 66 USING utf8mb4)"), "CHAR(65, 66    )");
        assert_eq!(unit_of_parts("timezone_hour"), Some("DAY_HOUR"));
    }

    #[test]
    fn signs_that_stand_together_are_signs() {
        assert_eq!(spelled(Dialect::Postgres, "select +-+1"), "select +-+1");
        let tokens = Dialect::Postgres.tokens("select +-+1").unwrap();
        assert_eq!(tokens.iter().filter(|token| token.token == Token::Plus).count(), 2);
    }
}
