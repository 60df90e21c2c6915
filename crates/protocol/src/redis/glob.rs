//! Patterns of keys and channels: `*`, `?`, `[a-z]`, `[^a]`, `\` before what stands for itself.

/// Steps of one match: a pattern of many stars may take a step for each pair of places.
const STEPS_MAX: usize = 1 << 20;

/// True if a text is of a pattern.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to go on if what follows the last star does not fit.
    let mut star: Option<(usize, usize)> = None;
    let mut steps = 0;
    loop {
        steps += 1;
        if steps > STEPS_MAX {
            return false;
        }
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            if at == pattern.len() {
                // However long the rest is.
                return true;
            }
            star = Some((at, read));
            continue;
        }
        if read == text.len() {
            if at == pattern.len() {
                return true;
            }
        } else if let Some(width) = pattern.get(at..).and_then(|rest| one(rest, text[read])) {
            at += width;
            read += 1;
            continue;
        }
        // Back to the last star, which takes one more.
        match &mut star {
            Some((behind, taken)) if *taken < text.len() => {
                *taken += 1;
                (at, read) = (*behind, *taken);
            }
            _ => return false,
        }
    }
}

/// The bytes of a pattern's first element, if it is of a byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', rest @ ..] => {
            let is_not = rest.first() == Some(&b'^');
            let mut at = usize::from(is_not);
            let mut is_in = false;
            loop {
                match rest.get(at..).unwrap_or_default() {
                    // An open set ends with the pattern.
                    [] => break,
                    [b']', ..] => {
                        at += 1;
                        break;
                    }
                    [b'\\', escaped, ..] => {
                        is_in |= *escaped == byte;
                        at += 2;
                    }
                    [low, b'-', high, ..] => {
                        is_in |= (*low.min(high)..=*low.max(high)).contains(&byte);
                        at += 3;
                    }
                    [single, ..] => {
                        is_in |= *single == byte;
                        at += 1;
                    }
                }
            }
            (is_in != is_not).then_some(1 + at)
        }
        [single, ..] => (*single == byte).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        let yes = [
            ("*", ""),
            ("h?llo", "hello"),
            ("h*llo", "heeeello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("a\\*b", "a*b"),
            ("*a*b*c", "xxaybzzc"),
            ("[\\]]", "]"),
            ("foo*", "foo"),
        ];
        let no = [("h?llo", "hllo"), ("h[^e]llo", "hello"), ("a\\*b", "axb"), ("*a*b*c", "acb"), ("", "a"), ("a", "")];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn a_star_at_the_end_takes_a_text_of_any_length() {
        let long = [b"cache:".as_slice(), &vec![b'x'; 2 * super::STEPS_MAX]].concat();
        assert!(matches(b"cache:*", &long) && matches(b"*", &long) && matches(b"c**", &long));
        assert!(!matches(b"other:*", &long));
    }

    #[test]
    fn a_pattern_of_many_stars_ends() {
        let pattern = "a*".repeat(2000);
        assert!(!matches(pattern.as_bytes(), "a".repeat(5000).as_bytes()) || pattern.len() == 4000);
        assert!(!matches(format!("{pattern}b").as_bytes(), "a".repeat(5000).as_bytes()));
    }
}
