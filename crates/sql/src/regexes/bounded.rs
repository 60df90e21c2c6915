//! Regular expressions of clients, whatever they are, over texts of any length.

use regex_automata::hybrid::{self, regex::Cache};
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson;
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, Match};
use std::cell::{Cell, OnceCell, RefCell};

/// Bytes of the text of a regular expression: to take it apart takes a thousand times as many.
const REGEX_TEXT_MAX: usize = 32 << 10;
/// Bytes of a regular expression that was compiled.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// States of an expression times bytes of a text that are looked at in one go.
const REGEX_WORK_MAX: usize = 10_000_000;
/// Bytes of a text that is short for all expressions: none within the bound of bytes has more than one state for each sixteen of them.
pub(crate) const ALWAYS_SHORT: usize = REGEX_WORK_MAX / (REGEX_BYTES_MAX / 16);
/// Bytes of the states that a lazy automaton keeps; it begins anew when they are used up.
const AUTOMATON_BYTES_MAX: usize = 2 << 20;

/// How an expression is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Letters of either case are the same.
    pub folds_case: bool,
    /// `^` and `$` are the ends of lines.
    pub is_multi_line: bool,
    /// `.` is the end of a line, too.
    pub is_dot_any: bool,
    /// Space in it says nothing.
    pub skips_space: bool,
    /// It is one of bytes, and letters are ASCII's.
    pub is_of_bytes: bool,
}

impl Manner {
    fn syntax(self) -> syntax::Config {
        syntax::Config::new()
            .case_insensitive(self.folds_case)
            .multi_line(self.is_multi_line)
            .dot_matches_new_line(self.is_dot_any)
            .ignore_whitespace(self.skips_space)
            .unicode(!self.is_of_bytes)
            .utf8(!self.is_of_bytes)
            .nest_limit(50)
    }

    fn thompson(self) -> thompson::Config {
        thompson::Config::new().nfa_size_limit(Some(REGEX_BYTES_MAX)).utf8(!self.is_of_bytes)
    }
}

/// A lazy automaton, and its states so far.
type Automaton = (hybrid::regex::Regex, RefCell<Cache>);

/// The text is too long for the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// A regular expression that was compiled. Each look at a text has an end: over a short one, where states times bytes are bounded, any engine is run; over a
/// longer one a lazy automaton, which takes one step for each byte whatever the expression is, and gives up where it would need too many states.
pub struct Bounded {
    text: Box<str>,
    manner: Manner,
    regex: Regex,
    /// How many states it has; 0: nobody has counted them yet.
    states: Cell<usize>,
    automaton: OnceCell<Option<Box<Automaton>>>,
}

impl Bounded {
    /// From a text. Errors: why it is none.
    pub fn new(text: &str, manner: Manner) -> Result<Self, String> {
        if text.len() > REGEX_TEXT_MAX {
            return Err(format!("it has more than {REGEX_TEXT_MAX} bytes"));
        }
        let config = meta::Config::new()
            .nfa_size_limit(Some(REGEX_BYTES_MAX))
            .onepass_size_limit(Some(REGEX_BYTES_MAX))
            .hybrid_cache_capacity(AUTOMATON_BYTES_MAX)
            .utf8_empty(!manner.is_of_bytes);
        match Regex::builder().configure(config).syntax(manner.syntax()).build(text) {
            Ok(regex) => {
                Ok(Bounded { text: text.into(), manner, regex, states: Cell::new(0), automaton: OnceCell::new() })
            }
            Err(error) => Err(match error.syntax_error() {
                Some(error) => error.to_string(),
                None if error.size_limit().is_some() => format!("it needs more than {REGEX_BYTES_MAX} bytes"),
                None => error.to_string(),
            }),
        }
    }

    /// The text that it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How it was taken.
    pub fn manner(&self) -> Manner {
        self.manner
    }

    /// True if any engine may look at so many bytes in one go.
    fn is_short(&self, bytes: usize) -> bool {
        if bytes <= ALWAYS_SHORT {
            return true;
        }
        if self.states.get() == 0 {
            let mut compiler = thompson::NFA::compiler();
            let compiled = compiler.syntax(self.manner.syntax()).configure(self.manner.thompson()).build(&self.text);
            self.states.set(compiled.map_or(usize::MAX, |nfa| nfa.states().len()));
        }
        bytes.saturating_mul(self.states.get()) <= REGEX_WORK_MAX
    }

    fn automaton(&self) -> Result<&Automaton, TooLong> {
        let made = self.automaton.get_or_init(|| {
            let config = hybrid::dfa::Config::new()
                .cache_capacity(AUTOMATON_BYTES_MAX)
                .minimum_cache_clear_count(Some(3))
                .minimum_bytes_per_state(Some(10))
                .unicode_word_boundary(true);
            let mut builder = hybrid::regex::Regex::builder();
            builder.syntax(self.manner.syntax()).thompson(self.manner.thompson()).dfa(config);
            let built = builder.build(&self.text).ok()?;
            let cache = RefCell::new(built.create_cache());
            Some(Box::new((built, cache)))
        });
        made.as_deref().ok_or(TooLong)
    }

    fn search(&self, input: &Input<'_>) -> Result<Option<Match>, TooLong> {
        if self.is_short(input.get_span().len()) {
            return Ok(self.regex.search(input));
        }
        let (automaton, cache) = self.automaton()?;
        automaton.try_search(&mut cache.borrow_mut(), input).map_err(|_| TooLong)
    }

    /// What is found first at or behind a place. Errors: the text is too long for it.
    pub fn find_at(&self, text: &[u8], from: usize) -> Result<Option<Match>, TooLong> {
        self.search(&Input::new(text).range(from..))
    }

    /// True if it is found anywhere. Errors: the text is too long for it.
    pub fn is_match(&self, text: &[u8]) -> Result<bool, TooLong> {
        Ok(self.search(&Input::new(text).earliest(true))?.is_some())
    }

    /// The groups of what was found. Errors: that is too long for it.
    pub fn groups(&self, text: &[u8], found: Match) -> Result<Captures, TooLong> {
        if !self.is_short(found.len()) {
            return Err(TooLong);
        }
        let mut captures = self.regex.create_captures();
        let input = Input::new(text).range(found.range()).anchored(Anchored::Yes);
        self.regex.search_captures(&input, &mut captures);
        Ok(captures)
    }
}

impl std::fmt::Debug for Bounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bounded({:?})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Bounded {
        let manner = Manner {
            folds_case: false,
            is_multi_line: false,
            is_dot_any: true,
            skips_space: false,
            is_of_bytes: false,
        };
        Bounded::new(text, manner).expect("it is one")
    }

    proptest::proptest! {
        #[test]
        fn both_engines_find_the_same(
            parts in proptest::collection::vec(
                proptest::sample::select(vec!["a", "b", "[ab]", r"\w", r"\b", "(?:a|bb)", "x+", "a*?", ".", "é?", "$", "^"]),
                1..6,
            ),
            text in "[abxé ]{0,40}",
        ) {
            let bounded = made(&parts.concat());
            let (automaton, cache) = bounded.automaton().expect("it is small");
            let input = Input::new(&text);
            // Where it cannot tell, at a letter that is not ASCII's, it says so.
            if let Ok(found) = automaton.try_search(&mut cache.borrow_mut(), &input) {
                proptest::prop_assert_eq!(found, bounded.regex.search(&input));
            }
            if let Ok(Some(found)) = bounded.find_at(text.as_bytes(), 0) {
                let groups = bounded.groups(text.as_bytes(), found).expect("it is short");
                proptest::prop_assert_eq!(groups.get_match(), Some(found));
            }
        }
    }

    #[test]
    fn what_has_many_states_for_each_byte_is_for_short_texts() {
        let pattern = made("[01]*1[01]{500}2");
        let mut seed = 1_u64;
        let long: String = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 63 == 0 { '0' } else { '1' }
        })
        .take(1 << 20)
        .collect();
        assert_eq!(pattern.is_match(&long.as_bytes()[..1000]), Ok(false));
        assert_eq!(pattern.is_match(long.as_bytes()), Err(TooLong));
        assert_eq!(made("(0|1)*1111111").is_match(long.as_bytes()), Ok(true));
        assert_eq!(made("[01]+2").is_match(long.as_bytes()), Ok(false));
        assert!(Bounded::new("(a{1000}){1000}", pattern.manner()).is_err());
        assert!(Bounded::new(&"a".repeat(REGEX_TEXT_MAX + 1), pattern.manner()).is_err());
    }
}
