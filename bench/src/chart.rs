//! Pictures of results: lines over an axis, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 46.0;
const COLORS: [&str; 8] = ["#1b6ca8", "#5aa9e6", "#c44536", "#e8998d", "#6a994e", "#a98467", "#7b5ea7", "#444444"];
/// Steps of an axis, at most.
const STEPS: f64 = 5.0;

/// One line.
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Shaded from here to there.
    pub(crate) span: Option<(f64, f64)>,
}

/// How values stand on an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// Each step is ten times the one before.
    Logarithmic,
}

/// An axis.
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) scale: Scale,
    /// Words for some values instead of numbers.
    pub(crate) names: Vec<(f64, String)>,
}

/// Text as XML wants it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `1.2M`, `300K`.
fn short(value: f64) -> String {
    let trimmed = |value: f64, unit: &str| {
        let text = format!("{value:.1}");
        format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
    };
    match value.abs() {
        size if size >= 1e6 => trimmed(value / 1e6, "M"),
        size if size >= 1e3 => trimmed(value / 1e3, "K"),
        _ => trimmed(value, ""),
    }
}

/// From a value to a place between 0 and 1.
struct Mapping {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Mapping {
    fn of(values: impl Iterator<Item = f64>, scale: Scale) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        match scale {
            // Lengths are only comparable from 0 on.
            Scale::Linear => {
                Mapping { low: low.clamp(f64::MIN, 0.0), high: if high > 0.0 { high } else { 1.0 }, scale }
            }
            Scale::Logarithmic => {
                let (low, high) = (low.max(1e-9), high.max(1e-9));
                Mapping { low: 10f64.powf(low.log10().floor()), high: 10f64.powf(high.log10().ceil()), scale }
            }
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.max(1e-9) / self.low).log10() / (self.high / self.low).log10().max(1e-9),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Values with a mark.
    fn marks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Logarithmic => {
                let (from, to) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
                (from..=to).map(|exponent| 10f64.powi(exponent)).collect()
            }
            Scale::Linear => {
                let raw = (self.high - self.low) / STEPS;
                let size = 10f64.powf(raw.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * size).find(|step| *step >= raw);
                let step = step.unwrap_or(raw).max(f64::MIN_POSITIVE);
                (0..).map(|at| self.low + f64::from(at) * step).take_while(|mark| *mark <= self.high * 1.0001).collect()
            }
        }
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String grows");
    out.push('\n');
}

fn put_text(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    put(
        out,
        format_args!(
            r##"<text x="{x:.1}" y="{y:.1}" font-size="11" text-anchor="{anchor}" fill="#222">{}</text>"##,
            escaped(text)
        ),
    );
}

/// The picture.
pub(crate) fn svg(title: &str, x: &Axis, y: &Axis, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let across = Mapping::of(points().map(|point| point.0), x.scale);
    let up = Mapping::of(points().map(|point| point.1), y.scale);
    let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let x_of = |value: f64| LEFT + across.place(value) * width;
    let y_of = |value: f64| TOP + (1.0 - up.place(value)) * height;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    put_text(&mut out, LEFT, 20.0, "start", title);
    for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
        if let Some((from, to)) = line.span {
            let (from, to) = (x_of(from), x_of(to));
            put(
                &mut out,
                format_args!(
                    r#"<rect x="{from:.1}" y="{TOP}" width="{:.1}" height="{height}" fill="{color}" fill-opacity="0.12"/>"#,
                    (to - from).max(1.0)
                ),
            );
        }
    }
    for mark in up.marks() {
        let y = y_of(mark);
        put(&mut out, format_args!(r##"<path d="M{LEFT} {y:.1}h{width}" stroke="#ddd"/>"##));
        put_text(&mut out, LEFT - 6.0, y + 4.0, "end", &short(mark));
    }
    let named: Vec<(f64, String)> = if x.names.is_empty() {
        across.marks().into_iter().map(|mark| (mark, short(mark))).collect()
    } else {
        x.names.clone()
    };
    for (value, name) in named {
        put_text(&mut out, x_of(value), HEIGHT - BOTTOM + 16.0, "middle", &name);
    }
    put_text(&mut out, LEFT + width / 2.0, HEIGHT - 8.0, "middle", x.label);
    put_text(&mut out, LEFT - 60.0, TOP - 8.0, "start", y.label);
    for (at, (line, color)) in lines.iter().zip(COLORS.iter().cycle()).enumerate() {
        let path: Vec<String> = line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y))).collect();
        put(
            &mut out,
            format_args!(r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="2"/>"#, path.join(" ")),
        );
        let y = TOP + 14.0 + 18.0 * at as f64;
        let x = WIDTH - RIGHT + 14.0;
        put(&mut out, format_args!(r#"<rect x="{x}" y="{:.1}" width="12" height="4" fill="{color}"/>"#, y - 5.0));
        put_text(&mut out, x + 18.0, y, "start", &line.label);
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale) -> Axis {
        Axis { label: "a < b", scale, names: Vec::new() }
    }

    #[test]
    fn text_cannot_break_the_picture() {
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
        let line = Line { label: "<x>".to_string(), points: vec![(0.0, 1.0), (1.0, 2.0)], span: Some((0.2, 0.4)) };
        let picture = svg("t&t", &axis(Scale::Linear), &axis(Scale::Linear), &[line]);
        assert!(picture.contains("&lt;x&gt;") && picture.contains("t&amp;t") && !picture.contains("NaN"));
    }

    #[test]
    fn nothing_and_no_numbers_make_a_picture_all_the_same() {
        for points in [vec![], vec![(0.0, f64::NAN)], vec![(1.0, 0.0), (1.0, 0.0)]] {
            let line = Line { label: "x".to_string(), points, span: None };
            for scale in [Scale::Linear, Scale::Logarithmic] {
                let picture = svg("t", &axis(scale), &axis(scale), std::slice::from_ref(&line));
                assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
            }
        }
    }

    #[test]
    fn marks_are_round_numbers() {
        let marks = |high, scale| Mapping::of([1.0, high].into_iter(), scale).marks();
        assert_eq!(marks(870.0, Scale::Linear), [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert_eq!(marks(870.0, Scale::Logarithmic), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!([1_250_000.0, 3000.0, 7.0].map(short), ["1.2M", "3K", "7"]);
    }
}
