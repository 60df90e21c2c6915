//! What the sections of a comparison found, and how it is kept: one file of JSON for each section, so that the document can be put together from
//! sections that ran at different times.

use crate::report::median;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Quantiles that a distribution is kept at.
const QUANTILES: [f64; 12] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 1.0];

/// Which way a figure gets better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Higher,
    Lower,
}

/// One figure of one contender, of all rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// What was done, such as `replace 4 x 256`.
    pub(crate) case: String,
    /// What was measured, such as `requests`.
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) contender: String,
    pub(crate) values: Vec<f64>,
}

impl Figure {
    pub(crate) fn median(&self) -> f64 {
        median(&self.values)
    }

    /// Half of the distance between the best and the worst round, as a share of the median.
    pub(crate) fn spread(&self) -> f64 {
        let (low, high) =
            self.values.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        if self.values.is_empty() { 0.0 } else { (high - low) / 2.0 / self.median().abs().max(f64::MIN_POSITIVE) }
    }
}

/// Figures of successive seconds, of the first round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) case: String,
    pub(crate) contender: String,
    pub(crate) unit: String,
    pub(crate) points: Vec<f64>,
    /// What the series is about happened between these seconds.
    pub(crate) span: Option<(f64, f64)>,
}

/// Latencies of all rounds: quantiles and microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Distribution {
    pub(crate) case: String,
    pub(crate) contender: String,
    pub(crate) points: Vec<(f64, u64)>,
}

/// Who took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Participant {
    pub(crate) label: String,
    pub(crate) version: String,
    pub(crate) settings: String,
}

/// What one section found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) section: String,
    pub(crate) machine: String,
    pub(crate) seconds_since_1970: u64,
    pub(crate) command: String,
    pub(crate) is_quick: bool,
    pub(crate) rounds: u64,
    /// Rows, times and the like, in words.
    pub(crate) scale: String,
    pub(crate) participants: Vec<Participant>,
    /// Who should have taken part and could not, and why.
    pub(crate) missing: Vec<String>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) series: Vec<Series>,
    pub(crate) distributions: Vec<Distribution>,
    /// Most processor time that other processes took during a turn that counts, in processors.
    pub(crate) disturbance: f64,
    /// Turns that failed, and why.
    #[serde(default)]
    pub(crate) failures: Vec<String>,
    /// What else a reader must know.
    pub(crate) notes: Vec<String>,
}

impl Results {
    pub(crate) fn find(&self, case: &str, name: &str, contender: &str) -> Option<&Figure> {
        self.figures.iter().find(|one| one.case == case && one.name == name && one.contender == contender)
    }

    fn path(dir: &Path, section: &str) -> PathBuf {
        dir.join(format!("{section}.json"))
    }

    /// Keeps the results in a directory, which is made.
    pub(crate) fn save(&self, dir: &Path) -> Result<(), String> {
        let path = Self::path(dir, &self.section);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, text)).map_err(failed)
    }

    /// What a directory holds of a section; `None` if it has not run.
    pub(crate) fn load(dir: &Path, section: &str) -> Result<Option<Self>, String> {
        let path = Self::path(dir, section);
        match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map(Some).map_err(|error| format!("{}: {error}", path.display()))
            }
        }
    }
}

/// What one turn of one contender found.
#[derive(Default)]
pub(crate) struct Turn {
    figures: Vec<(String, &'static str, &'static str, Better, f64)>,
    series: Vec<Series>,
    latencies: Vec<(String, Histogram<u64>)>,
    pub(crate) notes: Vec<String>,
    /// Why this server cannot do what is measured, if so; then there are no figures.
    pub(crate) absence: Option<String>,
}

impl Turn {
    fn add(&mut self, better: Better, case: &str, name: &'static str, unit: &'static str, value: f64) {
        self.figures.push((case.to_string(), name, unit, better, value));
    }

    pub(crate) fn higher(&mut self, case: &str, name: &'static str, unit: &'static str, value: f64) {
        self.add(Better::Higher, case, name, unit, value);
    }

    pub(crate) fn lower(&mut self, case: &str, name: &'static str, unit: &'static str, value: f64) {
        self.add(Better::Lower, case, name, unit, value);
    }

    pub(crate) fn series(&mut self, case: &str, unit: &str, points: Vec<f64>, span: Option<(f64, f64)>) {
        self.series.push(Series {
            case: case.to_string(),
            contender: String::new(),
            unit: unit.to_string(),
            points,
            span,
        });
    }

    pub(crate) fn latencies(&mut self, case: &str, latencies: Histogram<u64>) {
        self.latencies.push((case.to_string(), latencies));
    }

    /// The figures on one line, for whoever watches; the first few.
    pub(crate) fn words(&self) -> String {
        let shown =
            self.figures.iter().take(4).map(|(case, name, unit, _, value)| {
                format!("{case}: {name} {} {unit}", crate::report::rounded(*value))
            });
        let more = self.figures.len().saturating_sub(4);
        let more = if more > 0 { format!(" and {more} more figures") } else { String::new() };
        shown.collect::<Vec<_>>().join(", ") + &more
    }
}

/// Collects turns.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) results: Results,
    latencies: Vec<(String, String, Histogram<u64>)>,
}

impl Recorder {
    /// Takes over what a turn found.
    pub(crate) fn add(&mut self, contender: &str, turn: Turn) {
        for (case, name, unit, better, value) in turn.figures {
            let figures = &mut self.results.figures;
            let found =
                figures.iter_mut().find(|one| one.case == case && one.name == name && one.contender == contender);
            match found {
                Some(figure) => figure.values.push(value),
                None => figures.push(Figure {
                    case,
                    name: name.to_string(),
                    unit: unit.to_string(),
                    better,
                    contender: contender.to_string(),
                    values: vec![value],
                }),
            }
        }
        for series in turn.series {
            let all = &mut self.results.series;
            if !all.iter().any(|one| one.case == series.case && one.contender == contender) {
                all.push(Series { contender: contender.to_string(), ..series });
            }
        }
        for (case, histogram) in turn.latencies {
            match self.latencies.iter_mut().find(|(one, name, _)| *one == case && name == contender) {
                Some((_, _, sum)) => sum.add(&histogram).expect("all histograms have the same bounds"),
                None => self.latencies.push((case, contender.to_string(), histogram)),
            }
        }
        for note in turn.notes {
            if !self.results.notes.contains(&note) {
                self.results.notes.push(note);
            }
        }
    }

    /// The results, with the distributions of all turns.
    pub(crate) fn finish(mut self) -> Results {
        for (case, contender, histogram) in self.latencies {
            let points = QUANTILES.iter().map(|quantile| (*quantile, histogram.value_at_quantile(*quantile))).collect();
            self.results.distributions.push(Distribution { case, contender, points });
        }
        self.results
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn turn(value: f64) -> Turn {
        let mut turn = Turn::default();
        turn.higher("a", "requests", "1/s", value);
        turn.series("a", "1/s", vec![value], Some((1.0, 2.0)));
        let mut latencies = load::histogram();
        latencies.record(value as u64).unwrap();
        turn.latencies("a", latencies);
        turn
    }

    #[test]
    fn turns_of_a_contender_go_together() {
        let mut recorder = Recorder::default();
        recorder.results.section = "x".to_string();
        [1.0, 4.0, 2.0].into_iter().for_each(|value| recorder.add("one", turn(value)));
        recorder.add("two", turn(9.0));
        let results = recorder.finish();
        let figure = results.find("a", "requests", "one").unwrap();
        assert_eq!((figure.values.len(), figure.median(), figure.spread()), (3, 2.0, 0.75));
        assert_eq!((results.figures.len(), results.series.len(), results.distributions.len()), (2, 2, 2));
        assert_eq!(results.distributions[0].points.last(), Some(&(1.0, 4)));
        let dir = tempfile::tempdir().unwrap();
        results.save(dir.path()).unwrap();
        let again = Results::load(dir.path(), "x").unwrap().unwrap();
        assert_eq!(again.find("a", "requests", "two").unwrap().values, [9.0]);
        assert!(Results::load(dir.path(), "y").unwrap().is_none());
    }
}
