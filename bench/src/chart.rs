//! A comparison as a picture: for each workload two bars, as long as its main figure, the longer one filling the width.

use crate::compare::{Comparison, Outcome};
use crate::report::rounded;
use std::fmt::Write;

const WIDTH: usize = 720;
const BAR_LEFT: usize = 240;
const BAR_WIDTH: usize = 330;
const BAR_HEIGHT: usize = 16;
const GROUP_HEIGHT: usize = 56;
const TOP: usize = 92;
const BOTTOM: usize = 16;
const LYCOSA: &str = "#2a6f97";
const TARANTOOL: &str = "#b0b7bd";

/// Text as XML wants it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn put_text(out: &mut String, x: usize, y: usize, size: usize, text: &str) {
    let text = escaped(text);
    writeln!(out, r##"<text x="{x}" y="{y}" font-size="{size}" fill="#222">{text}</text>"##).expect("a String grows");
}

fn put_bar(out: &mut String, y: usize, share: f64, color: &str, label: &str) {
    // A figure that is no number has no bar.
    let length = if share.is_finite() { (share.clamp(0.0, 1.0) * BAR_WIDTH as f64).max(1.0) } else { 1.0 };
    writeln!(out, r#"<rect x="{BAR_LEFT}" y="{y}" width="{length:.1}" height="{BAR_HEIGHT}" fill="{color}"/>"#)
        .expect("a String grows");
    put_text(out, BAR_LEFT + length as usize + 6, y + BAR_HEIGHT - 4, 12, label);
}

fn put_group(out: &mut String, y: usize, one: &Comparison) {
    let (lycosa, tarantool) = one.medians();
    let longest = lycosa.max(tarantool);
    put_text(out, 16, y + 14, 14, one.workload);
    put_text(out, 16, y + 31, 11, &format!("{}, {} ({} is better)", one.name, one.unit, one.better()));
    let ratio = format!("{}, ratio {:.2}", rounded(lycosa), one.ratio());
    put_bar(out, y, lycosa / longest, LYCOSA, &ratio);
    put_bar(out, y + BAR_HEIGHT + 3, tarantool / longest, TARANTOOL, &rounded(tarantool));
}

/// The picture.
pub(crate) fn svg(outcome: &Outcome) -> String {
    let groups: Vec<&Comparison> = outcome.comparisons.iter().filter(|one| one.is_main).collect();
    let height = TOP + groups.len() * GROUP_HEIGHT + BOTTOM;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    put_text(&mut out, 16, 24, 12, &outcome.circumstances.machine);
    for (y, color, text) in
        [(44, LYCOSA, &outcome.circumstances.lycosa), (64, TARANTOOL, &outcome.circumstances.tarantool)]
    {
        writeln!(out, r#"<rect x="16" y="{}" width="12" height="12" fill="{color}"/>"#, y - 10)
            .expect("a String grows");
        put_text(&mut out, 34, y, 12, text);
    }
    for (at, one) in groups.into_iter().enumerate() {
        put_group(&mut out, TOP + at * GROUP_HEIGHT, one);
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_the_picture() {
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
    }

    #[test]
    fn a_figure_that_is_no_number_has_a_bar_of_no_length() {
        let mut out = String::new();
        put_bar(&mut out, 0, f64::NAN, LYCOSA, "x");
        assert!(out.contains("width=\"1.0\""), "{out}");
    }
}
