//! JSON paths: `name.other[3]["key"]`. Positions count from 1, whatever an update operation counts fields from.

use std::str;

/// One step into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// An element of an array, from 0; in a map the value of the integer key that is larger by one.
    Index(u32),
    /// A value of a map.
    Key(&'a [u8]),
    /// `[*]`, all elements: nothing that one value could be found by.
    Any,
}

/// Reads a path step by step.
pub(crate) struct Lexer<'a> {
    path: &'a [u8],
    /// Bytes read.
    at: usize,
    /// Characters read: what positions in messages count.
    characters: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(path: &'a [u8]) -> Self {
        Lexer { path, at: 0, characters: 0 }
    }

    /// Characters read so far.
    pub(crate) fn position(&self) -> usize {
        self.characters
    }

    /// The next character, and its length in bytes. `None` at the end and before bytes that are no UTF-8.
    fn peek(&self) -> Option<(char, usize)> {
        let rest = &self.path[self.at..];
        let &first = rest.first()?;
        if first.is_ascii() {
            return Some((char::from(first), 1));
        }
        let length = (2..=4).find(|&length| rest.get(..length).is_some_and(|bytes| str::from_utf8(bytes).is_ok()))?;
        str::from_utf8(&rest[..length]).ok()?.chars().next().map(|character| (character, length))
    }

    fn read(&mut self) -> Result<char, usize> {
        let (character, length) = self.peek().ok_or(self.characters + 1)?;
        self.at += length;
        self.characters += 1;
        Ok(character)
    }

    fn at_end(&self) -> bool {
        self.at == self.path.len()
    }

    /// The next step, `None` at the end. Errors: the position, from 1, of the character that cannot be there.
    pub(crate) fn next(&mut self) -> Result<Option<Step<'a>>, usize> {
        if self.at_end() {
            return Ok(None);
        }
        let is_first = self.at == 0;
        match self.peek() {
            Some(('[', _)) => {
                self.read()?;
                self.bracket().map(Some)
            }
            Some(('.', _)) => {
                self.read()?;
                if self.at_end() { Err(self.characters + 1) } else { self.identifier().map(Some) }
            }
            _ if is_first => self.identifier().map(Some),
            _ => {
                self.read()?;
                Err(self.characters)
            }
        }
    }

    fn bracket(&mut self) -> Result<Step<'a>, usize> {
        let Some(&first) = self.path.get(self.at) else { return Err(self.characters) };
        let step = match first {
            b'"' | b'\'' => {
                self.read()?;
                let start = self.at;
                while self.read()? != char::from(first) {}
                if self.at - start == 1 {
                    return Err(self.characters);
                }
                Step::Key(&self.path[start..self.at - 1])
            }
            b'*' => {
                self.read()?;
                Step::Any
            }
            _ => {
                let digits = self.path[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let text = &self.path[self.at..self.at + digits];
                let add = |value: u32, digit: &u8| value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
                let number = text.iter().fold(0, add);
                if number == 0 {
                    return Err(self.characters + 1);
                }
                self.at += digits;
                self.characters += digits;
                Step::Index(number - 1)
            }
        };
        if self.path.get(self.at) != Some(&b']') {
            return Err(self.characters + 1);
        }
        self.read()?;
        Ok(step)
    }

    fn identifier(&mut self) -> Result<Step<'a>, usize> {
        let start = self.at;
        let first = self.read()?;
        if !first.is_alphabetic() && first != '_' {
            return Err(self.characters);
        }
        while let Some((character, _)) = self.peek()
            && (character.is_alphanumeric() || character == '_')
        {
            self.read()?;
        }
        Ok(Step::Key(&self.path[start..self.at]))
    }
}

/// Reads a path. `None` if it is malformed, empty, or leads to more than one value.
pub fn parse(text: &str) -> Option<Vec<Step<'_>>> {
    let mut lexer = Lexer::new(text.as_bytes());
    let mut steps = Vec::new();
    while let Some(step) = lexer.next().ok()? {
        steps.push(step);
    }
    (!steps.is_empty() && !steps.contains(&Step::Any)).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_read_or_refused() {
        let key = |name: &'static str| Step::Key(name.as_bytes());
        assert_eq!(parse("a.b[2]"), Some(vec![key("a"), key("b"), Step::Index(1)]));
        assert_eq!(parse("[3]['x y'].z"), Some(vec![Step::Index(2), key("x y"), key("z")]));
        for bad in ["", "a..b", "a[", "a[0]", "a[x]", "a b", "[1", "a.[1]", "a[*]", "a['']"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    /// Positions as Tarantool 2.6 names them.
    #[test]
    fn a_malformed_path_is_refused_with_its_place() {
        let place = |text: &'static str| {
            let mut lexer = Lexer::new(text.as_bytes());
            loop {
                match lexer.next() {
                    Ok(None) => return None,
                    Ok(Some(_)) => {}
                    Err(position) => return Some(position),
                }
            }
        };
        for (text, position) in
            [(".", 2), ("[", 1), ("[0]", 2), ("[-1]", 2), ("..n", 2), ("n.", 3), ("n n", 2), ("m[4].1x", 6), ("é[", 2)]
        {
            assert_eq!(place(text), Some(position), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_path_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..30), text in "[a\\[\\]'\".*0-9é]{0,12}") {
            for path in [&bytes[..], text.as_bytes()] {
                let mut lexer = Lexer::new(path);
                while let Ok(Some(_)) = lexer.next() {}
                prop_assert!(lexer.position() <= path.len());
            }
        }
    }
}
