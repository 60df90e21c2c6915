//! JSON paths: `name.other[3]["key"]`.

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An element of an array, from 0.
    Index(u32),
    /// A value of a map.
    Key(String),
}

/// Reads a path; array positions in the text count from `index_base`. `None` if it is malformed.
pub fn parse(text: &str, index_base: u32) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let close = if after.starts_with(['"', '\'']) {
                let quote = after.chars().next()?;
                let end = after[1..].find(quote)? + 1;
                steps.push(Step::Key(after[1..end].to_string()));
                end + 1
            } else {
                let end = after.find(']')?;
                let number: u32 = after[..end].parse().ok()?;
                steps.push(Step::Index(number.checked_sub(index_base)?));
                end
            };
            rest = after[close..].strip_prefix(']')?;
        } else {
            let name = if steps.is_empty() { rest.strip_prefix('.').unwrap_or(rest) } else { rest.strip_prefix('.')? };
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if !name[..end].chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
                || !name[..end].chars().all(|c| c.is_alphanumeric() || c == '_')
            {
                return None;
            }
            steps.push(Step::Key(name[..end].to_string()));
            rest = &name[end..];
        }
    }
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_or_refused() {
        let key = |name: &str| Step::Key(name.to_string());
        assert_eq!(parse("a.b[2]", 1), Some(vec![key("a"), key("b"), Step::Index(1)]));
        assert_eq!(parse("[3]['x y'].z", 1), Some(vec![Step::Index(2), key("x y"), key("z")]));
        for bad in ["", "a..b", "a[", "a[0]", "a[x]", "a b", "[1", "a.[1]"] {
            assert_eq!(parse(bad, 1), None, "{bad}");
        }
    }
}
