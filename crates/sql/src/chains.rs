//! How long a statement may go on without a list: looked at before it is parsed.

use crate::error::{Condition, Error, Result};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words in a row without a comma between them, those around the parentheses that they stand in among them: each operator makes a tree one level deeper, and
/// trees are gone through and dropped by recursion.
const WORDS_MAX: usize = 4000;

/// Errors: `LimitExceeded` for more than [`WORDS_MAX`] words in a row.
pub(crate) fn check_words(tokens: &[TokenWithSpan]) -> Result<()> {
    let (mut before, mut here, mut outer) = (0usize, 0usize, Vec::new());
    for token in tokens {
        let word = match &token.token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
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
