//! `sim planted`: bugs put in on purpose, each of which must be found.

use crate::finding_json;
use serde_json::json;
use sim::machine::runs::{self, Choice, Options};
use sim::planted::{self, Bug};
use sim::report::Progress;
use std::io;

/// Seeds within which a bug must be found.
const SEEDS_MAX: u64 = 1000;

/// Looks for each by the exhaustive tools and by seeds; true if both find all.
pub(crate) fn run(is_json: bool, progress: impl Fn(&'static str) -> Progress) -> io::Result<bool> {
    let mut figures = Vec::new();
    let mut found_all = true;
    for &bug in Bug::ALL {
        let found = if bug.needs_seeds() { None } else { planted::find(bug, &progress("planted")) };
        let options = Options {
            program: std::env::current_exe()?,
            first: 0,
            count: SEEDS_MAX,
            jobs: super::seeds::cores(),
            choice: Choice::of(bug),
            until_found: true,
        };
        let by_seeds = runs::find_planted(&options, &progress("planted"))?;
        found_all &= (found.is_some() || bug.needs_seeds()) && by_seeds.is_some();
        if is_json {
            figures.push(json!({
                "bug": format!("{bug:?}"),
                "tool": found.as_ref().map(|found| found.tool),
                "states": found.as_ref().map(|found| found.states),
                "finding": finding_json(found.as_ref().map(|found| &found.finding)),
                "seeds": by_seeds.as_ref().map(|finding| finding.seed + 1),
                "finding_of_seeds": by_seeds,
            }));
            continue;
        }
        match found {
            Some(found) => {
                println!("{bug:?}: found by {} after {} states\n{}", found.tool, found.states, found.finding)
            }
            None if bug.needs_seeds() => {}
            None => println!("{bug:?}: NOT FOUND by the exhaustive tools"),
        }
        match by_seeds {
            Some(finding) => println!("{bug:?}: found by {} seeds\n{finding}", finding.seed + 1),
            None => println!("{bug:?}: NOT FOUND by {SEEDS_MAX} seeds"),
        }
    }
    if is_json {
        println!("{}", json!({ "planted": figures }));
    } else if !cfg!(feature = "planted-bugs") {
        println!("nineteen more need `--features planted-bugs`");
    }
    Ok(found_all)
}
