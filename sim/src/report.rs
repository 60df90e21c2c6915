//! Progress bars and figures.

use crate::check::Counts;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use runtime::OperationKind;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A bar on the terminal, or none.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar; drawn only if somebody looks.
    pub fn visible(what: &'static str) -> Self {
        let bar = ProgressBar::new(0).with_message(what);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar }
    }

    /// No bar.
    pub fn hidden() -> Self {
        Progress { bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()) }
    }

    pub(crate) fn begin(&self, steps: u64) {
        self.bar.set_length(steps);
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    pub(crate) fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn by_kind(points: &BTreeMap<OperationKind, u64>) -> Value {
    let fields = OperationKind::CHANGES.iter().map(|kind| {
        let count = points.get(kind).copied().unwrap_or(0);
        (kind.name().to_string(), Value::from(count))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

impl Counts {
    /// For machines.
    pub fn json(&self) -> Value {
        json!({
            "power_losses_at": by_kind(&self.points),
            "states": self.states,
            "power_losses_in_recovery_at": by_kind(&self.recovery_points),
            "states_in_recovery": self.recovery_states,
            "images_recovered": self.images,
        })
    }

    /// For people.
    pub fn print(&self) {
        let line = |name: &str, points: &BTreeMap<OperationKind, u64>| {
            let total: u64 = points.values().sum();
            let kinds = OperationKind::CHANGES
                .iter()
                .filter_map(|kind| points.get(kind).map(|count| format!("{} {count}", kind.name())));
            println!("{name:<24}{total} ({})", kinds.collect::<Vec<_>>().join(", "));
        };
        line("power lost at changes", &self.points);
        println!("{:<24}{}", "states", self.states);
        if self.recovery_states > 0 {
            line("again in recoveries at", &self.recovery_points);
            println!("{:<24}{}", "states", self.recovery_states);
        }
        println!("{:<24}{}", "images recovered", self.images);
    }
}
