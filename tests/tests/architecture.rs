//! ARCHITECTURE.md and docs/bounds.md beside the source: their tables of steps, hooks, threads, unsafe code and bounds say what is there, and
//! all of it; and every crate has a place in the book.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Source, files, lines_with, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PAGE: &str = "ARCHITECTURE.md";
/// Public traits that are no hooks, and why.
const NO_HOOKS: [(&str, &str); 6] = [
    ("EntrySource", "which entries a row has in an index, inside of storage"),
    ("AnyDoor", "a `Door` as the event loop sees it"),
    ("Source", "where a merge of runs reads from, inside of storage"),
    (
        "Upserter",
        "how the disk engine applies operations, filled by tuple's caller in storage's own tests and database",
    ),
    ("Workload", "what torture and the simulator drive"),
    ("Client", "a client of a workload"),
];

fn page() -> String {
    std::fs::read_to_string(root().join(PAGE)).unwrap()
}

/// The rows of the first table under a heading, without its head: cells of each.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, rest) =
        page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("{PAGE} has no part {heading}"));
    let lines = rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<String>> = lines
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect())
        .collect();
    assert!(!rows.is_empty(), "{PAGE}: {heading} has no table");
    rows
}

/// Targets of the links in a cell.
fn targets(cell: &str) -> Vec<PathBuf> {
    cell.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(PathBuf::from).collect()
}

/// What stands between backquotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(ToString::to_string).collect()
}

/// The Rust files that a path stands for: itself, or all of its directory if it is the page of one.
fn sources(path: &Path) -> Vec<Source> {
    let is_dir = root().join(path).is_dir();
    let list = if is_dir { files(&path.display().to_string(), "rs") } else { vec![path.to_path_buf()] };
    list.iter().map(|path| Source::read(path)).collect()
}

/// True if a file declares a function, method, type or trait of this name; of a path the last part counts.
fn declares(source: &Source, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap();
    ["fn", "struct", "enum", "trait", "type"]
        .iter()
        .any(|word| !lines_with(&source.code, &format!("{word} {name}")).is_empty())
}

/// Rust files of the product.
fn product() -> impl Iterator<Item = Source> {
    Source::all("crates").into_iter().filter(|source| {
        let in_src = source.path.components().nth(2).is_some_and(|part| part.as_os_str() == "src");
        in_src && source.path.file_name().is_some_and(|name| name != "tests.rs")
    })
}

#[test]
fn steps_name_functions_that_are_there() {
    let page = page();
    for heading in ["The path of a write", "The path of a read from disk"] {
        for row in table(&page, heading) {
            let place = row.last().unwrap();
            let found: Vec<Source> = targets(place).iter().flat_map(|path| sources(path)).collect();
            assert!(!found.is_empty(), "{heading}: {place}");
            for name in quoted(place) {
                let is_there = found.iter().any(|source| declares(source, &name));
                assert!(is_there, "{PAGE}, {heading}: none of the files named beside it declares {name}: {place}");
            }
        }
    }
}

#[test]
fn the_table_of_hooks_is_complete() {
    let mut listed = BTreeSet::new();
    for row in table(&page(), "Hooks") {
        for link in row[0].split("](").collect::<Vec<_>>().windows(2) {
            let path = link[1].split(')').next().unwrap();
            let names = quoted(link[0].rsplit('[').next().unwrap());
            for name in names {
                assert!(declares(&Source::read(Path::new(path)), &name), "{PAGE}: {path} declares no {name}");
                assert_eq!(path.split('/').nth(1), Some(row[1].as_str()), "{PAGE}: the owner of {name}");
                listed.insert(name);
            }
        }
    }
    for source in product().filter(|source| source.path.iter().nth(1).is_some_and(|name| name != "tools")) {
        let code = source.product_code();
        for line in code.lines().filter_map(|line| line.trim().strip_prefix("pub trait ")) {
            let name = line.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            let is_known = listed.contains(name) || NO_HOOKS.iter().any(|(other, _)| *other == name);
            assert!(is_known, "{}: {name} is in no table of hooks and is no exception", source.path.display());
        }
    }
}

/// The names that a file gives to threads: the first text behind a call that starts one, or in the lines before it.
fn thread_names(source: &Source) -> Vec<String> {
    let code = source.product_code();
    let literal = |text: &str| text.split('"').nth(1).map(ToString::to_string);
    let calls = ["spawn_thread(", "run_job("].iter().flat_map(|call| code.match_indices(call));
    calls
        .filter(|(at, _)| !code[..*at].trim_end().ends_with("fn"))
        .filter_map(|(at, call)| {
            let behind = source.text[at + call.len()..].split(',').next().unwrap();
            match literal(behind) {
                Some(name) => Some(name),
                None if behind.trim() == "&name" => literal(source.text[..at].rsplit("format!(").next().unwrap()),
                // A parameter: its caller gives the name.
                None => None,
            }
        })
        .map(|name| match name.split_once('{') {
            Some((before, _)) => format!("{before}N"),
            None => name,
        })
        .collect()
}

#[test]
fn the_table_of_threads_is_complete() {
    let listed: BTreeSet<String> = table(&page(), "Threads").iter().flat_map(|row| quoted(&row[0])).collect();
    let serves = |source: &Source| {
        let name = source.path.iter().nth(1).unwrap().to_string_lossy().into_owned();
        !["tools", "trial", "load"].contains(&name.as_str())
    };
    let started: BTreeSet<String> = product().filter(serves).flat_map(|source| thread_names(&source)).collect();
    assert_eq!(listed, started, "{PAGE}: on the left the threads of the table, on the right those that are started");
}

#[test]
fn the_table_of_unsafe_code_is_complete() {
    let listed: BTreeSet<PathBuf> = table(&page(), "Unsafe").iter().flat_map(|row| targets(&row[0])).collect();
    let unsafes: BTreeSet<PathBuf> = product()
        .filter(|source| !lines_with(&source.product_code(), "unsafe_code").is_empty())
        .map(|source| source.path)
        .collect();
    assert_eq!(listed, unsafes, "{PAGE}: on the left the files of the table, on the right those that say unsafe_code");
}

/// The bounds that a line of code declares: name and value.
fn bound(line: &str) -> Option<(String, String)> {
    let (_, rest) =
        line.trim().split_once("const ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"))?;
    let (name, rest) = rest.split_once(':')?;
    let value = rest.split_once(" = ")?.1.strip_suffix(';')?;
    let is_bound = name.ends_with("_MAX") || name.contains("_MAX_");
    is_bound.then(|| (name.to_string(), value.to_string()))
}

#[test]
fn the_page_of_bounds_is_complete() {
    let page = std::fs::read_to_string(root().join("docs/bounds.md")).unwrap();
    let mut listed = BTreeSet::new();
    for part in page.split("\n## ").skip(1) {
        let name = part.split(':').next().unwrap();
        for line in part.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            assert!(cells.len() == 4 && cells.iter().all(|cell| !cell.is_empty()), "docs/bounds.md: {line}");
            listed.insert((name.to_string(), quoted(cells[0])[0].clone(), quoted(cells[1])[0].clone()));
        }
    }
    let mut declared = BTreeSet::new();
    for source in product() {
        let name = source.path.iter().nth(1).unwrap().to_string_lossy().into_owned();
        let is_simulated = source.path.iter().any(|part| part.to_string_lossy().starts_with("simulat"));
        if ["tools", "trial", "load"].contains(&name.as_str()) || is_simulated {
            continue;
        }
        let bounds = source.product_code();
        let bounds = bounds.lines().filter_map(bound).filter(|(bound, _)| !bound.starts_with("SIMULATED_"));
        declared.extend(bounds.map(|(bound, value)| (name.clone(), bound, value)));
    }
    let missing: Vec<_> = declared.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&declared).collect();
    assert!(missing.is_empty(), "docs/bounds.md lacks {missing:?}");
    assert!(gone.is_empty(), "docs/bounds.md has what the source has not: {gone:?}");
}

#[test]
fn every_crate_has_a_place_in_the_book() {
    let chapters: Vec<String> = files("docs", "md")
        .iter()
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(|c: char| c.is_ascii_digit()))
        .filter(|path| path.iter().count() == 2)
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap())
        .collect();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let link = format!("[crates/{name}](../crates/{name}/src/");
        assert!(chapters.iter().any(|chapter| chapter.contains(&link)), "no chapter of docs/ has a link {link}...)");
    }
}

#[test]
fn bounds_are_told_from_other_constants() {
    let pair = |name: &str, value: &str| Some((name.to_string(), value.to_string()));
    assert_eq!(bound("    pub(crate) const BYTES_MAX: usize = 4 << 20;"), pair("BYTES_MAX", "4 << 20"));
    assert_eq!(bound("const DELAY_MAX_NS: u64 = 3;"), pair("DELAY_MAX_NS", "3"));
    assert_eq!(bound("const SLICE_MIN: u64 = 3;"), None);
    assert_eq!(bound("if x > BYTES_MAX { const Y: u8 = 1; }"), None);
}

#[test]
fn the_names_of_threads_are_found() {
    let text = "fn a() { spawn_thread(\"one\", f); }\nfn b() { let name = format!(\"two-{}\", 1);\n spawn_thread(&name, f); }\n\
                fn run_job(name: &str) { spawn_thread(name, f) }\nfn c() { run_job(\n \"three\", g); spawn_thread(&format!(\"four-{n}\"), f); }\n";
    let path = PathBuf::from("x.rs");
    // What blanks strings is tested beside it.
    let source = Source { path, text: text.to_string(), code: text.replace('"', " ") };
    let mut names = thread_names(&source);
    names.sort();
    assert_eq!(names, ["four-N", "one", "three", "two-N"]);
}
