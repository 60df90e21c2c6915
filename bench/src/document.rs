//! docs/benchmarks.md, put together from the results that are kept, with pictures in a folder beside it.

use crate::chart::{Axis, Line, Scale, svg};
use crate::compare::DISTURBANCE_MAX;
use crate::goals;
use crate::report::rounded;
use crate::results::{Better, Figure, Results};
use crate::sections::SECTIONS;
use crate::sections::requests::{SHAPES, shape_name};
use std::fmt::Write;
use std::path::Path;

/// Figures that are kept and not shown in tables: what they are for is said in the text.
const HIDDEN: [&str; 2] = ["client CPU", "latency, median"];

/// A date of the civil calendar from days since 1970 (Hinnant's algorithm).
fn date(seconds_since_1970: u64) -> String {
    let days = (seconds_since_1970 / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String grows");
    out.push('\n');
}

fn put_goals(out: &mut String, all: &[Results]) {
    let verdicts = goals::judge(|section| all.iter().find(|results| results.section == section));
    let reached = verdicts.iter().filter(|verdict| verdict.is_reached).count();
    let measured = verdicts.iter().filter(|verdict| verdict.measured.is_some()).count();
    put(
        out,
        format_args!("## Goals\n\n{reached} of {measured} measured goals are reached; there are {}.\n", verdicts.len()),
    );
    put(out, format_args!("| | What | Wanted | Measured | Reached |\n|---|---|---|---|---|"));
    for verdict in verdicts {
        let answer = match (&verdict.measured, verdict.is_reached) {
            (None, _) => "",
            (_, true) => "yes",
            (_, false) => "**no**",
        };
        let measured = verdict.measured.as_deref().unwrap_or("not measured");
        put(out, format_args!("| {} | {} | {} | {measured} | {answer} |", verdict.line, verdict.what, verdict.wanted));
    }
    if reached < measured {
        put(
            out,
            format_args!(
                "\nWhat limits those that are missed, and how far the limit is: [bottlenecks.md](bottlenecks.md)."
            ),
        );
    }
    out.push('\n');
}

fn put_participants(out: &mut String, all: &[Results]) {
    put(out, format_args!("## Who takes part\n\n| | Version | Settings |\n|---|---|---|"));
    let mut seen: Vec<&str> = Vec::new();
    for participant in all.iter().flat_map(|results| &results.participants) {
        if !seen.contains(&participant.label.as_str()) {
            seen.push(&participant.label);
            let settings = if participant.settings.is_empty() { "as installed" } else { &participant.settings };
            put(
                out,
                format_args!("| {} | {} | `{settings}` |", participant.label, participant.version.replace('|', "/")),
            );
        }
    }
    let mut missing: Vec<&String> = all.iter().flat_map(|results| &results.missing).collect();
    missing.sort();
    missing.dedup();
    for missing in missing {
        put(out, format_args!("\nNot there: {missing}."));
    }
    out.push('\n');
}

/// A figure's median with its spread, and how it stands to ours.
fn cell(figure: &Figure, ours: Option<&Figure>) -> String {
    let spread = figure.spread() * 100.0;
    let mut text = rounded(figure.median());
    if figure.values.len() > 1 && spread.is_finite() {
        write!(text, " ± {spread:.0} %").expect("a String grows");
    }
    if let Some(ours) = ours.filter(|ours| ours.contender != figure.contender) {
        let ratio = match figure.better {
            Better::Higher => ours.median() / figure.median(),
            Better::Lower => figure.median() / ours.median(),
        };
        if ratio.is_finite() {
            write!(text, " ({ratio:.2})").expect("a String grows");
        }
    }
    text
}

/// A table for each kind of figure: a row for each case, a column for each contender.
fn put_tables(out: &mut String, results: &Results) {
    let mut names: Vec<(&str, &str, Better)> = Vec::new();
    for figure in &results.figures {
        let name = (figure.name.as_str(), figure.unit.as_str(), figure.better);
        if !HIDDEN.contains(&name.0) && !names.contains(&name) {
            names.push(name);
        }
    }
    let labels: Vec<&str> = results.participants.iter().map(|one| one.label.as_str()).collect();
    let (common, single): (Vec<_>, Vec<_>) = names.into_iter().partition(|(name, ..)| {
        let mut cases: Vec<&str> =
            results.figures.iter().filter(|figure| figure.name == *name).map(|figure| figure.case.as_str()).collect();
        cases.dedup();
        cases.len() > labels.len().max(2)
    });
    let row = |out: &mut String, head: &str, case: &str, name: &str| {
        let ours = results.find(case, name, labels.first().copied().unwrap_or(""));
        let cells: Vec<String> = labels
            .iter()
            .map(|label| results.find(case, name, label).map_or(String::new(), |figure| cell(figure, ours)))
            .collect();
        put(out, format_args!("| {head} | {} |", cells.join(" | ")));
    };
    let head = |out: &mut String, first: &str| {
        put(out, format_args!("| {first} | {} |\n|---|{}", labels.join(" | "), "---|".repeat(labels.len())));
    };
    let cases_of = |name: &str| {
        let mut cases: Vec<&str> = Vec::new();
        for figure in results.figures.iter().filter(|figure| figure.name == name) {
            if !cases.contains(&figure.case.as_str()) {
                cases.push(&figure.case);
            }
        }
        cases
    };
    for (name, unit, better) in common {
        let better = if better == Better::Higher { "more is better" } else { "less is better" };
        head(out, &format!("{name}, {unit} ({better})"));
        cases_of(name).into_iter().for_each(|case| row(out, case, case, name));
        out.push('\n');
    }
    if !single.is_empty() {
        head(out, "");
        for (name, unit, better) in single {
            let better = if better == Better::Higher { "more is better" } else { "less is better" };
            for case in cases_of(name) {
                row(out, &format!("{case}: {name}, {unit} ({better})"), case, name);
            }
        }
        out.push('\n');
    }
}

/// Pictures of a section: file name, title, content.
fn pictures(results: &Results) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let labels: Vec<&str> = results.participants.iter().map(|one| one.label.as_str()).collect();
    let mut shapes = SHAPES;
    shapes.sort_by_key(|(connections, depth)| *connections as u32 * depth);
    for operation in ["select", "replace", "set", "get"] {
        let lines: Vec<Line> = labels
            .iter()
            .map(|label| Line {
                label: label.to_string(),
                points: shapes
                    .iter()
                    .enumerate()
                    .filter_map(|(at, shape)| {
                        let case = format!("{operation} {}", shape_name(*shape));
                        Some((at as f64, results.find(&case, "requests", label)?.median()))
                    })
                    .collect(),
                span: None,
            })
            .filter(|line| line.points.len() > 1)
            .collect();
        if !lines.is_empty() {
            let names = shapes.iter().enumerate().map(|(at, shape)| (at as f64, shape_name(*shape))).collect();
            let x = Axis { label: "connections x requests in flight", scale: Scale::Linear, names };
            let y = Axis { label: "requests/s", scale: Scale::Logarithmic, names: Vec::new() };
            let title = format!("{operation}: throughput by depth");
            found.push((format!("{}-{operation}.svg", results.section), title.clone(), svg(&title, &x, &y, &lines)));
        }
    }
    for case in ["select 16 x 1", "replace 16 x 1", "capture and release"] {
        let lines: Vec<Line> = results
            .distributions
            .iter()
            .filter(|one| one.case == case)
            .map(|one| Line {
                label: one.contender.clone(),
                // Each further nine takes as much room as the one before.
                points: one
                    .points
                    .iter()
                    .filter(|(quantile, _)| (0.5..1.0).contains(quantile))
                    .map(|(quantile, us)| (-(1.0 - quantile).log10(), *us as f64))
                    .collect(),
                span: None,
            })
            .collect();
        if !lines.is_empty() {
            let names = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];
            let names = names.iter().map(|(quantile, name)| (-(1.0f64 - quantile).log10(), name.to_string())).collect();
            let x = Axis { label: "part of the requests that are faster", scale: Scale::Linear, names };
            let y = Axis { label: "latency, us", scale: Scale::Logarithmic, names: Vec::new() };
            let title = format!("{case}: latency");
            let file = format!("{}-latency-{}.svg", results.section, case.replace([' ', ','], "-"));
            found.push((file, title.clone(), svg(&title, &x, &y, &lines)));
        }
    }
    let mut cases: Vec<&str> = results.series.iter().map(|one| one.case.as_str()).collect();
    cases.dedup();
    cases.sort_unstable();
    cases.dedup();
    let is_one = cases.len() == 1;
    for case in cases {
        let lines: Vec<Line> = results
            .series
            .iter()
            .filter(|one| one.case == case)
            .map(|one| Line {
                label: one.contender.clone(),
                points: one.points.iter().enumerate().map(|(at, value)| (at as f64 + 0.5, *value)).collect(),
                span: one.span,
            })
            .collect();
        let has_event = lines.iter().any(|line| line.span.is_some());
        let label = if has_event { "seconds; the event is shaded" } else { "seconds" };
        let x = Axis { label, scale: Scale::Linear, names: Vec::new() };
        let y = Axis { label: "requests/s", scale: Scale::Linear, names: Vec::new() };
        let title = format!("{case}: each second");
        let name = if is_one { String::new() } else { format!("{}-", case.replace([' ', ','], "-")) };
        found.push((format!("{}-{name}seconds.svg", results.section), title.clone(), svg(&title, &x, &y, &lines)));
    }
    found
}

/// Writes the document and its pictures.
pub(crate) fn write(path: &Path, kept: &Path) -> Result<(), String> {
    let mut all = Vec::new();
    for section in SECTIONS {
        all.extend(Results::load(kept, section.name)?);
    }
    let folder = path.with_extension("");
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let folder_name = folder.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let mut out = String::from("# Benchmarks\n\n");
    put(
        &mut out,
        format_args!(
            "Lycosa beside its rivals on one machine, section by section, by turns. `make compare` makes this page anew, and\n\
             `make compare QUICK=1` does it with less of everything within ten minutes; `lycosa-bench compare --only NAME` runs one section.\n\n\
             A cell is the median of the rounds, half the distance between best and worst round, and in brackets how many times better the\n\
             first column is. Client and servers share the machine; the client makes and checks more than three million requests a second\n\
             on one processor (`lycosa-bench sink`) and its processor time is kept with the results. Rivals are those of the Debian\n\
             packages, with the settings below and no others; `fsync` and `durable` mean that a write is on the device when it is\n\
             answered, the others answer earlier. All data is on the same disk.\n"
        ),
    );
    let disturbed: Vec<&Results> = all.iter().filter(|results| results.disturbance >= DISTURBANCE_MAX).collect();
    if let Some(worst) = disturbed.iter().map(|results| results.disturbance).reduce(f64::max) {
        let names: Vec<&str> = disturbed.iter().map(|results| results.section.as_str()).collect();
        put(
            &mut out,
            format_args!(
                "**Others used the machine** while this was measured, in sections {}: up to {worst:.2} of its processors. Figures of\n\
                 these sections, ratios too, say little; run them again when it is idle.\n",
                names.join(", ")
            ),
        );
    }
    put_goals(&mut out, &all);
    put_participants(&mut out, &all);
    for section in SECTIONS {
        put(&mut out, format_args!("## {}\n\n{}\n", section.title, section.about));
        let Some(results) = all.iter().find(|results| results.section == section.name) else {
            put(&mut out, format_args!("Not run.\n"));
            continue;
        };
        let quick = if results.is_quick { "a quick run, " } else { "" };
        put(
            &mut out,
            format_args!(
                "{}; {quick}{}, {} rounds; {}. Others used at most {:.2} processors meanwhile.\n",
                results.machine,
                date(results.seconds_since_1970),
                results.rounds,
                results.scale,
                results.disturbance
            ),
        );
        put_tables(&mut out, results);
        for (file, title, picture) in pictures(results) {
            let place = folder.join(&file);
            std::fs::write(&place, picture).map_err(|error| format!("{}: {error}", place.display()))?;
            put(&mut out, format_args!("![{title}]({folder_name}/{file})\n"));
        }
        for failure in &results.failures {
            put(&mut out, format_args!("Failed: {failure}\n"));
        }
        for note in &results.notes {
            put(&mut out, format_args!("{note}\n"));
        }
    }
    std::fs::write(path, out.trim_end().to_string() + "\n").map_err(failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::results::{Participant, Recorder, Turn};

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!([0, 951_782_400, 1_709_164_800].map(date), ["1970-01-01", "2000-02-29", "2024-02-29"]);
    }

    #[test]
    fn a_document_names_who_is_missing_and_what_was_not_measured() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::default();
        recorder.results.section = "requests".to_string();
        recorder.results.missing = vec!["Tarantool write: no such file".to_string()];
        let participant = |label: &str| Participant {
            label: label.to_string(),
            version: "1".to_string(),
            settings: "wal_mode=fsync".to_string(),
        };
        recorder.results.participants = vec![participant("Lycosa fsync"), participant("Tarantool write")];
        for (label, value) in [("Lycosa fsync", 300.0), ("Tarantool write", 100.0)] {
            let mut turn = Turn::default();
            turn.higher("select 4 x 256", "requests", "1/s", value);
            turn.higher("select 1 x 1", "requests", "1/s", value / 10.0);
            let mut latencies = load::histogram();
            latencies.record(7).unwrap();
            turn.latencies("select 16 x 1", latencies);
            recorder.add(label, turn);
        }
        recorder.finish().save(dir.path()).unwrap();
        let path = dir.path().join("b.md");
        write(&path, dir.path()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("Not there: Tarantool write: no such file."), "{text}");
        assert!(text.contains("100 (3.00)") && text.contains("| at least 3.00 times | 3.00 | yes |"), "{text}");
        assert!(text.contains("not measured") && text.contains("Not run."));
        for link in text.split("](").skip(1) {
            let file = link.split(')').next().unwrap();
            assert!(dir.path().join(file).exists(), "{file}");
        }
    }
}
