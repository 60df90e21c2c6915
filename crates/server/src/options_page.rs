//! `lycosa options`: the table of options for people, and the page `docs/options.md` made of it.

use clap::Args;
use database::options::{Change, Kind, OPTIONS, Spec, Value};
use std::fmt::Write;

/// The page, with `{flags}`, `{cfg}` and `{inert}` where the tables stand.
const PAGE: &str = include_str!("options_page.md");
/// Options that are taken without effect and named in the page by what they begin with.
const FAMILIES: [&str; 3] = ["replication_", "election_", "feedback_"];
/// Options without a field that `box.cfg` refuses unless they say what is so anyhow.
const REFUSED: [&str; 2] = ["replication", "hot_standby"];

/// Options of `options`.
#[derive(Args, Debug)]
pub(crate) struct PageOptions {
    /// Print the page of the documentation instead of a list
    #[arg(long)]
    markdown: bool,
}

/// Prints the options. Returns the exit code.
pub(crate) fn print(options: &PageOptions) -> i32 {
    runtime::signals::end_on_closed_output();
    if options.markdown {
        print!("{}", page());
    } else {
        for (spec, flag) in OPTIONS.iter().filter_map(|spec| Some((spec, spec.flag?))) {
            println!("{:<26} {:<16} {}", spec.name, default_of(spec), flag.help);
        }
    }
    0
}

fn default_of(spec: &Spec) -> String {
    spec.flag_default().unwrap_or_else(|| "off".to_string())
}

/// A default that is a value and no words for it.
fn quoted(spec: &Spec) -> String {
    match default_of(spec).as_str() {
        words @ ("off" | "none" | "no limit" | "standard error") => words.to_string(),
        value => format!("`{value}`"),
    }
}

fn page() -> String {
    let mut flags = "| Option | Default | |\n|---|---|---|\n".to_string();
    for (spec, flag) in OPTIONS.iter().filter_map(|spec| Some((spec, spec.flag?))) {
        let more = if flag.more.is_empty() { String::new() } else { format!(". {}", flag.more) };
        // Writing to a String cannot fail.
        let _ = writeln!(flags, "| `{}` | {} | {}{more} |", spec.name, quoted(spec), flag.help);
    }
    let mut cfg = "| Option | Default | Changes while it runs |\n|---|---|---|\n".to_string();
    let mut inert = Vec::new();
    for (spec, side) in OPTIONS.iter().filter_map(|spec| Some((spec, spec.cfg?))) {
        if matches!(spec.kind, Kind::Inert(_)) {
            let is_told = REFUSED.contains(&spec.name) || FAMILIES.iter().any(|family| spec.name.starts_with(family));
            inert.extend((!is_told).then(|| format!("`{}`", spec.name)));
            continue;
        }
        let default = match (side.default_text, spec.cfg_default_value()) {
            (Some(text), _) => text.to_string(),
            (None, Some(Value::Text(text))) => format!("`{text}`"),
            (None, Some(value)) => value.to_string(),
            (None, None) => "none".to_string(),
        };
        let changes = match side.change {
            Change::Refused => "no",
            Change::AtOnce => "yes",
            Change::OnlyMore => "yes, not to less",
            Change::NextStart => "accepted; takes effect at the next start",
        };
        let _ = writeln!(cfg, "| `{}` | {default} | {changes} |", spec.name);
    }
    PAGE.replace("{flags}\n", &flags).replace("{cfg}\n", &cfg).replace("{inert}", &inert.join(", "))
}
