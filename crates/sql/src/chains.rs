//! How long a statement may go on without a list: looked at before it is parsed.

use crate::error::{Condition, Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words in a row without a comma between them, those around the parentheses that they stand in among them: each operator makes a tree one level deeper, and
/// trees are gone through and dropped by recursion.
const WORDS_MAX: usize = 4000;
/// Queries that UNION, EXCEPT and INTERSECT combine, those around the parentheses among them: a tree of them is as deep, and copied by recursion.
const COMBINED_MAX: usize = 128;

/// Errors: `LimitExceeded` for more than [`WORDS_MAX`] words in a row, or more than [`COMBINED_MAX`] queries.
pub(crate) fn check_words(tokens: &[TokenWithSpan]) -> Result<()> {
    let (mut before, mut here, mut outer) = (0usize, 0usize, Vec::new());
    let (mut combined, mut combined_outside) = (0usize, Vec::new());
    for token in tokens {
        let word = match &token.token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
        match &token.token {
            Token::LParen => combined_outside.push(combined),
            Token::RParen => combined = combined_outside.pop().unwrap_or(0),
            Token::SemiColon => (combined, combined_outside) = (0, Vec::new()),
            _ => combined += usize::from(matches!(word, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT)),
        }
        if combined >= COMBINED_MAX {
            let what =
                format!("the statement combines more than {COMBINED_MAX} queries by UNION, EXCEPT and INTERSECT");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        // Branches of CASE are a list, as what stands between parentheses is.
        let is_in_case = matches!(outer.last(), Some((_, true)));
        match (&token.token, word) {
            (Token::Whitespace(_), _) => {}
            (Token::LParen, _) | (_, Keyword::CASE) => {
                outer.push((here, word == Keyword::CASE));
                before += here;
                here = 0;
            }
            (_, Keyword::WHEN | Keyword::THEN) if is_in_case => here = 1,
            (_, Keyword::END) if !is_in_case => here += 1,
            (Token::RParen, _) | (_, Keyword::END) => {
                (here, _) = outer.pop().unwrap_or((0, false));
                before = before.saturating_sub(here);
                here += 1;
            }
            (Token::Comma, _) => here = 0,
            (Token::SemiColon, _) => (before, here, outer) = (0, 0, Vec::new()),
            _ => here += 1,
        }
        if before + here > WORDS_MAX {
            let what = format!("the statement has more than {WORDS_MAX} words without a comma between them");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Dialect;

    fn is_taken(text: &str) -> bool {
        Dialect::Postgres.tokens(text).is_ok()
    }

    #[test]
    fn branches_of_case_are_a_list_and_operators_are_none() {
        assert!(is_taken(&format!("SELECT CASE {} END", "WHEN a = 1 THEN 2 ".repeat(5000))));
        assert!(!is_taken(&format!("SELECT CASE WHEN a {} THEN 1 END", "+ 1 ".repeat(2000))));
        assert!(!is_taken(&format!("SELECT CASE WHEN a THEN 1 END {}", "+ 1 ".repeat(2000))));
    }

    #[test]
    fn queries_are_combined_up_to_a_bound_also_within_each_other() {
        let chain = |count: usize| vec!["SELECT 1"; count].join(" UNION ");
        assert!(is_taken(&chain(128)));
        assert!(!is_taken(&chain(129)));
        assert!(is_taken(&format!("{}; {}", chain(128), chain(128))));
        assert!(is_taken(&format!("SELECT * FROM ({}) a, ({}) b", chain(128), chain(128))));
        assert!(!is_taken(&format!("{} UNION SELECT * FROM ({}) a", chain(64), chain(65))));
    }
}
