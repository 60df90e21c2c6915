//! Files of the tree, and Rust source with everything blanked that is no code.

use std::path::{Path, PathBuf};

/// Directories that hold nothing written by hand.
const PASSED_OVER: [&str; 6] = ["target", "node_modules", "data", "corpus", "artifacts", "__pycache__"];

/// The root of the tree.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the tree")
}

/// Files under a directory of the tree by extension, relative to the root, sorted.
pub fn files(under: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![root().join(under)];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                if !name.starts_with('.') && !PASSED_OVER.contains(&name.as_str()) {
                    dirs.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path.strip_prefix(root()).expect("it was found there").to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// A Rust file.
pub struct Source {
    /// Relative to the root of the tree.
    pub path: PathBuf,
    /// As it stands.
    pub text: String,
    /// Same length and lines, but comments and the insides of strings are spaces.
    pub code: String,
}

impl Source {
    /// Reads a file of the tree.
    pub fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let code = blank(&text);
        Source { path: path.to_path_buf(), text, code }
    }

    /// All Rust files under a directory of the tree.
    pub fn all(under: &str) -> Vec<Self> {
        files(under, "rs").iter().map(|path| Self::read(path)).collect()
    }

    /// Lines (from 1) whose code contains `needle`.
    pub fn lines_with(&self, needle: &str) -> Vec<usize> {
        lines_with(&self.code, needle)
    }

    /// The code without modules and functions that are compiled for tests only; lines keep their numbers.
    pub fn product_code(&self) -> String {
        without_tests(&self.code)
    }
}

/// Lines (from 1) that contain `needle` as whole words.
pub fn lines_with(code: &str, needle: &str) -> Vec<usize> {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let has = |line: &str| {
        line.match_indices(needle).any(|(at, _)| {
            let bytes = line.as_bytes();
            let starts_inside = is_word(needle.as_bytes().first()) && at > 0 && is_word(bytes.get(at - 1));
            let ends_inside = is_word(needle.as_bytes().last()) && is_word(bytes.get(at + needle.len()));
            !starts_inside && !ends_inside
        })
    };
    code.lines().enumerate().filter(|(_, line)| has(line)).map(|(at, _)| at + 1).collect()
}

/// Blanks comments and the insides of strings and characters, keeping every line end.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if let Some(length) = raw_string(bytes, at) {
            length
        } else if rest[0] == b'"' {
            quoted(rest, b'"')
        } else if rest[0] == b'\'' && is_character(rest) {
            quoted(rest, b'\'')
        } else {
            at += 1;
            continue;
        };
        out[at..at + length].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at += length;
    }
    // Only whole characters were replaced: what stays is what was UTF-8 before.
    String::from_utf8(out).expect("blanking keeps characters whole")
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 && at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
    }
    at.min(rest.len())
}

/// Length of a raw string, `r` included, that begins at `at`.
fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let is_inside_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let is_byte_string = at > 0 && bytes[at - 1] == b'b' && (at < 2 || !bytes[at - 2].is_ascii_alphanumeric());
    if bytes[at] != b'r' || is_inside_word && !is_byte_string {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let start = at + 1 + hashes;
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let mut end = b"\"".to_vec();
    end.resize(1 + hashes, b'#');
    let inside = &bytes[start + 1..];
    let length = inside.windows(end.len()).position(|window| window == end).unwrap_or(inside.len());
    Some((start + 1 + length + end.len()).min(bytes.len()) - at)
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// True for a character, false for a lifetime.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(first) => {
            let length = match first {
                0..=0x7f => 1,
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            rest.get(1 + length) == Some(&b'\'')
        }
        None => false,
    }
}

/// Blanks every item behind `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut out = code.as_bytes().to_vec();
    for (start, _) in code.match_indices(ATTRIBUTE) {
        let item = &code[start..];
        // The item ends with its block, or with a semicolon if it has none.
        let brace = item.find('{').unwrap_or(item.len());
        let semicolon = item.find(';').unwrap_or(item.len());
        let mut end = brace.min(semicolon);
        if brace < semicolon {
            let mut depth = 0;
            for (at, byte) in item.bytes().enumerate().skip(brace) {
                depth += i32::from(byte == b'{') - i32::from(byte == b'}');
                end = at;
                if depth == 0 {
                    break;
                }
            }
        }
        let end = (start + end + 1).min(out.len());
        out[start..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(out).expect("blanking keeps characters whole")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code() {
        let code = blank(
            "a(\"sleep \\\" now\"); // sleep\nb('\\'', '\"', 'é'); /* sleep /* deep */\n sleep */ c::<'a>(r#\"sleep\" \"#)",
        );
        assert!(!code.contains("sleep"), "{code}");
        assert_eq!(lines_with(&code, "b"), [2]);
        assert_eq!(lines_with(&code, "c::<'a>("), [3]);
    }

    #[test]
    fn only_whole_words_are_found() {
        assert_eq!(lines_with("my_std::fs\nstd::fs::read\nstd::fsx", "std::fs"), [2]);
    }

    #[test]
    fn items_for_tests_are_left_out() {
        let code = without_tests(
            "fn a() { x }\n#[cfg(test)]\nmod tests {\n  fn b() { x }\n}\n#[cfg(test)]\nuse x;\nfn c() { x }\n",
        );
        assert_eq!(lines_with(&code, "x"), [1, 8]);
    }
}
