//! Rules of the tree that a machine can check. Each failure names file and line; each exception stands here with its reason.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Source, files, lines_with, root};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Crates, from the socket down. A crate uses only those listed below it.
const CRATES: [&str; 14] = [
    "server", "tools", "lua", "protocol", "sql", "database", "storage", "wal", "index", "trial", "load", "wire",
    "tuple", "runtime",
];
/// Crates that use nothing of ours.
const ALONE: [&str; 3] = ["index", "tuple", "runtime"];
/// Pairs that stand beside each other although the list has an order.
const APART: [(&str, &str); 3] = [("lua", "protocol"), ("tools", "lua"), ("tools", "protocol")];

/// Longest file.
const LINES_MAX: usize = 1200;
/// Files that are longer, and why. A table or an opcode switch may be long in peace.
const LONG: [(&str, &str); 0] = [];

/// The operating system: only `runtime` meets it.
const MACHINE: [&str; 5] = ["std::fs", "std::net", "std::thread", "Instant::now", "SystemTime::now"];
/// Where product code names it all the same: file, what, why.
const MACHINE_ALLOWED: [(&str, &str, &str); 6] = [
    ("crates/protocol/src/logins.rs", "std::net::IpAddr", "a value, not a socket"),
    ("crates/protocol/src/logins.rs", "std::net::Ipv4Addr", "a value, not a socket"),
    ("crates/protocol/src/logins.rs", "std::net::Ipv6Addr", "a value, not a socket"),
    ("crates/protocol/src/logins.rs", "std::net::SocketAddr", "a value, not a socket"),
    ("crates/index/src/tree.rs", "std::thread::panicking", "a drop that must not panic twice"),
    ("crates/database/src/batch.rs", "std::thread::panicking", "a drop that must not panic twice"),
];

/// Everything that is found, one line each; the test fails if there is anything.
struct Findings(String);

impl Findings {
    fn new() -> Self {
        Findings(String::new())
    }

    fn add(&mut self, path: &Path, line: usize, what: &str) {
        writeln!(self.0, "{}:{line}: {what}", path.display()).unwrap();
    }

    fn assert_none(self, rule: &str) {
        assert!(self.0.is_empty(), "{rule}\n{}", self.0);
    }
}

/// What a manifest depends on, in any table of dependencies, and the line that says so.
fn dependencies(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            let (start, end) = table.rsplit_once('.').unwrap_or(("", table));
            is_inside = end.ends_with("dependencies");
            if start.ends_with("dependencies") {
                found.push((end.to_string(), at + 1));
            }
            continue;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or("");
        if is_inside && !name.is_empty() && !name.starts_with('#') {
            found.push((name.to_string(), at + 1));
        }
    }
    found
}

/// Why a crate may not use another; `None` if it may.
fn refusal(from: &str, to: &str) -> Option<&'static str> {
    let place = |name: &str| CRATES.iter().position(|other| *other == name);
    let (Some(above), Some(below)) = (place(from), place(to)) else { return None };
    if ALONE.contains(&from) {
        return Some("this crate uses nothing of ours");
    }
    if APART.iter().any(|(a, b)| (from, to) == (*a, *b) || (to, from) == (*a, *b)) {
        return Some("these two do not know each other: what they share goes through a hook of `database`");
    }
    (above >= below).then_some("an arrow that goes up: let the lower crate own a trait instead")
}

fn manifest(name: &str) -> PathBuf {
    PathBuf::from(format!("crates/{name}/Cargo.toml"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn arrows_between_crates_go_down() {
    let mut findings = Findings::new();
    for name in CRATES {
        let path = manifest(name);
        for (dependency, line) in dependencies(&read(&path)) {
            if let Some(why) = refusal(name, &dependency) {
                findings.add(&path, line, &format!("{name} uses {dependency}: {why}"));
            }
        }
    }
    findings.assert_none("A crate uses only those listed below it in the root manifest.");
}

#[test]
fn the_rule_of_arrows_sees_what_it_should() {
    let text = "[package]\nname = \"wal\"\n[dependencies]\nruntime.workspace = true\n# lua\n[dev-dependencies]\n\
                database = { path = \"..\" }\n[target.'cfg(unix)'.dependencies.lua]\npath = \"x\"\n[lints]\nworkspace = true\n";
    let found: Vec<(String, usize)> = dependencies(text);
    let found: Vec<(&str, usize)> = found.iter().map(|(name, line)| (name.as_str(), *line)).collect();
    assert_eq!(found, [("runtime", 4), ("database", 7), ("lua", 8)]);
    assert!(
        refusal("wal", "runtime").is_none() && refusal("server", "lua").is_none() && refusal("wal", "serde").is_none()
    );
    assert!(refusal("wal", "database").is_some() && refusal("lua", "protocol").is_some());
    assert!(refusal("protocol", "lua").is_some() && refusal("tuple", "runtime").is_some());
}

#[test]
fn the_root_manifest_lists_all_crates_from_the_socket_down() {
    let path = Path::new("Cargo.toml");
    let manifest: toml::Table = read(path).parse().unwrap();
    let members: Vec<&str> =
        manifest["workspace"]["members"].as_array().unwrap().iter().filter_map(|member| member.as_str()).collect();
    let crates: Vec<&str> = members.iter().filter_map(|member| member.strip_prefix("crates/")).collect();
    assert_eq!(crates, CRATES, "{}: the order of the members", path.display());
    let folders: BTreeSet<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(folders, CRATES.iter().map(ToString::to_string).collect(), "folders below crates/ are members");
}

#[test]
fn every_crate_begins_with_a_page_about_itself() {
    let mut findings = Findings::new();
    let folders =
        CRATES.iter().map(|name| format!("crates/{name}/src")).chain(["tests/src".into(), "bench/src".into()]);
    for folder in folders {
        let roots: Vec<PathBuf> = ["lib.rs", "main.rs"]
            .iter()
            .map(|name| Path::new(&folder).join(name))
            .filter(|path| root().join(path).exists())
            .collect();
        assert!(!roots.is_empty(), "{folder} has neither lib.rs nor main.rs");
        for path in roots {
            if !read(&path).starts_with("//! ") {
                findings.add(&path, 1, "no `//!` page: what this is, what it is not, who calls it");
            }
        }
    }
    findings.assert_none("lib.rs and main.rs begin with a page about their crate.");
}

#[test]
fn files_are_of_a_length_that_one_idea_takes() {
    let mut findings = Findings::new();
    for extension in ["rs", "lua", "py", "js"] {
        for path in files("", extension) {
            let lines = read(&path).lines().count();
            let is_allowed = LONG.iter().any(|(allowed, _)| Path::new(allowed) == path);
            if lines > LINES_MAX && !is_allowed {
                findings.add(
                    &path,
                    lines,
                    &format!("{lines} lines, at most {LINES_MAX}: do two ideas share this file?"),
                );
            }
            if lines <= LINES_MAX && is_allowed {
                findings.add(&path, lines, "an exception that is not needed any more");
            }
        }
    }
    findings.assert_none("Files are not too long.");
}

/// Rust files that hold only tests.
fn is_test_file(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts[0] == "tests"
        || parts.iter().any(|part| part == "tests")
        || parts.last().is_some_and(|name| name == "tests.rs")
}

#[test]
fn no_test_is_ignored_and_nothing_is_left_to_do() {
    let mut findings = Findings::new();
    for source in Source::all("") {
        for (needle, what) in [
            ("#[ignore", "a test that is not run: mend it or remove it"),
            ("todo!", "unfinished code"),
            ("unimplemented!", "unfinished code"),
            ("dbg!", "a trace of debugging"),
        ] {
            for line in source.lines_with(needle) {
                findings.add(&source.path, line, what);
            }
        }
    }
    findings.assert_none("Tests run and code is finished.");
}

/// True for a doc comment that gives an error of clients by its number alone.
fn has_bare_error_number(line: &str) -> bool {
    let line = line.trim_start();
    let is_doc = line.starts_with("///") || line.starts_with("//!");
    let follows = |word: &str| {
        line.match_indices(word).any(|(at, _)| line[at + word.len()..].starts_with(|c: char| c.is_ascii_digit()))
    };
    is_doc && ["Errors: ", "Error ", " error ", "(code ", " code "].iter().any(|word| follows(word))
}

#[test]
fn errors_in_comments_have_names() {
    let mut findings = Findings::new();
    for source in Source::all("crates") {
        for (at, line) in source.text.lines().enumerate().filter(|(_, line)| has_bare_error_number(line)) {
            findings.add(&source.path, at + 1, &format!("name the error, as in error.rs: {}", line.trim()));
        }
    }
    findings.assert_none("Doc comments give errors by their names.");
    assert!(has_bare_error_number("    /// Errors: 42 if nobody may."));
    assert!(
        !has_bare_error_number("    /// Errors: `AccessDenied` (42) if nobody may.")
            && !has_bare_error_number("let x = 1; // Error 3")
    );
}

#[test]
fn tests_wait_for_events_and_do_not_sleep() {
    let mut findings = Findings::new();
    for source in Source::all("") {
        let product = source.product_code();
        for line in source.lines_with("sleep") {
            let code = source.code.lines().nth(line - 1).unwrap_or("");
            let is_test = is_test_file(&source.path) || product.lines().nth(line - 1).is_some_and(|rest| rest != code);
            let is_sleep = code.contains("thread::sleep(") || code.contains("thread::sleep;");
            if is_test && is_sleep {
                findings.add(&source.path, line, "a sleep in a test: wait for what must happen, with a bound");
            }
        }
    }
    findings.assert_none("Tests do not sleep.");
}

/// The path that begins at `text`; for a group, each path of it.
fn paths(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len());
    let path = &text[..end];
    match text[end..].strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((group, _)) if path.ends_with("::") => {
            let items = group.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(|item| format!("{path}{item}")).collect()
        }
        _ => vec![path.trim_end_matches(':').to_string()],
    }
}

/// Mentions of the machine in product code: line and what, with the item, so that exceptions are as narrow as possible.
fn machine_mentions(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for needle in MACHINE {
        for line in lines_with(code, needle) {
            let start: usize = code.split_inclusive('\n').take(line - 1).map(str::len).sum();
            let text = &code[start..];
            let start = text.find(needle).unwrap_or(0);
            found.extend(paths(&text[start..]).into_iter().map(|path| (line, path)));
        }
    }
    // `use std::{fs, ...}`.
    for (at, _) in code.match_indices("std::{") {
        let group = &code[at..code[at..].find(';').map_or(code.len(), |end| at + end)];
        for module in ["fs", "net", "thread"] {
            if !lines_with(group, module).is_empty() {
                found.push((code[..at].lines().count(), format!("std::{{{module}}}")));
            }
        }
    }
    found
}

#[test]
fn only_runtime_meets_the_operating_system() {
    let mut findings = Findings::new();
    let mut used = BTreeSet::new();
    for source in Source::all("crates") {
        let is_product = source.path.components().nth(2).is_some_and(|part| part.as_os_str() == "src");
        if source.path.starts_with("crates/runtime") || !is_product || is_test_file(&source.path) {
            continue;
        }
        for (line, what) in machine_mentions(&source.product_code()) {
            let allowed =
                MACHINE_ALLOWED.iter().position(|(path, item, _)| Path::new(path) == source.path && what == *item);
            match allowed {
                Some(at) => {
                    used.insert(at);
                }
                None => {
                    findings.add(&source.path, line, &format!("{what}: ask `runtime`, so that it can be simulated"))
                }
            }
        }
    }
    for (at, (path, item, _)) in MACHINE_ALLOWED.iter().enumerate() {
        if !used.contains(&at) {
            findings.add(Path::new(path), 1, &format!("the exception for {item} is not needed any more"));
        }
    }
    findings.assert_none("Files, sockets, threads and clocks come from `runtime` only.");
}

#[test]
fn the_rule_about_the_machine_sees_what_it_should() {
    let code = "use std::{\n  fs,\n  io};\nlet a = std::net::TcpStream::connect(x);\nlet b = Instant::now();\nuse std::io;\nuse std::net::{\n  IpAddr, TcpStream};\n";
    let found: Vec<(usize, String)> = machine_mentions(code);
    let found: Vec<(usize, &str)> = found.iter().map(|(line, what)| (*line, what.as_str())).collect();
    let expected = [
        (4, "std::net::TcpStream::connect"),
        (7, "std::net::IpAddr"),
        (7, "std::net::TcpStream"),
        (5, "Instant::now"),
        (1, "std::{fs}"),
    ];
    assert_eq!(found, expected);
}

/// Targets of links in a Markdown text, with their lines. Code is passed over.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        // Every second piece stands between backquotes.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("` `");
        for (start, _) in prose.match_indices("](") {
            let target = &prose[start + 2..];
            let target = target.split([')', ' ']).next().unwrap_or("");
            found.push((at + 1, target.to_string()));
        }
        if let Some((name, target)) = prose.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "))
            && !name.contains(']')
        {
            found.push((at + 1, target.trim().to_string()));
        }
    }
    found
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut findings = Findings::new();
    for path in files("", "md") {
        for (line, target) in links(&read(&path)) {
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:") || target.starts_with('#');
            let file = target.split('#').next().unwrap_or("");
            if is_elsewhere || file.is_empty() {
                continue;
            }
            let base = if file.starts_with('/') { root() } else { &root().join(path.parent().unwrap()) };
            if !base.join(file.trim_start_matches('/')).exists() {
                findings.add(&path, line, &format!("{target} is not there"));
            }
        }
    }
    findings.assert_none("Relative links resolve.");
}

#[test]
fn the_rule_about_links_sees_what_it_should() {
    let text = "See [a](b.md#c), `[x](y)` and ![d](e.png \"title\").\n```\n[no](no.md)\n```\n[f]: g.md\n";
    let found = links(text);
    let found: Vec<(usize, &str)> = found.iter().map(|(line, target)| (*line, target.as_str())).collect();
    assert_eq!(found, [(1, "b.md#c"), (1, "e.png"), (5, "g.md")]);
}
