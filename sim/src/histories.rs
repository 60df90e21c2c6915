//! Every sequence of a few operations, the power gone at every change of each, in every way.
//!
//! Sequences begin with the same prepared image. The changes of a sequence's last operation are looked at; those of the ones before it
//! are those of the shorter sequence.

use crate::check::{Checker, Counts, Finding, Seeds};
use crate::model::Model;
use crate::report::Progress;
use crate::run::{Answers, Run, Wrap, plain};
use crate::script::Step;
use crate::world::{Engine, Layout};
use runtime::{Loss, SimulatedFiles};

/// What to do.
#[derive(Clone, Copy)]
pub struct Options {
    /// Longest sequence.
    pub length: usize,
    /// Seeds of losses by chance, beside the named ones.
    pub seeds: Seeds,
    /// The power goes again during each recovery.
    pub again: bool,
    /// The files that the database is given.
    pub wrap: Wrap,
    /// Where rows are.
    pub engine: Engine,
}

impl Default for Options {
    fn default() -> Self {
        Options { length: 2, seeds: Seeds::new(1), again: false, wrap: plain, engine: Engine::Memory }
    }
}

/// What came of it.
pub struct Outcome {
    /// Sequences run.
    pub histories: u64,
    /// How much was looked at.
    pub counts: Counts,
    /// The first broken promise.
    pub finding: Option<Finding>,
}

/// Two snapshots, a log between them and one behind, as a power loss left them.
pub fn prepared_image(layout: Layout, engine: Engine) -> Result<(SimulatedFiles, Model), String> {
    let files = SimulatedFiles::default();
    let mut run = Run::begin(&files, plain, (layout, engine), Model::default(), Answers::Exact, |_| {})
        .map_err(|error| error.to_string())?;
    run.prepare()?;
    run.drive()?;
    run.step(Step::Checkpoint, 90)?;
    run.drive()?;
    run.step(Step::TwoSpaces, 91)?;
    run.drive()?;
    Ok((files.crash(Loss::All), run.model().clone()))
}

/// Runs all sequences up to the length.
pub fn run(options: Options, progress: &Progress) -> Outcome {
    let mut checker = Checker::new(Layout::Apart, options.seeds.range()).with_files(options.wrap);
    let kinds = Step::ALL.len() as u64;
    let total: u64 = (1..=options.length as u32).map(|length| kinds.pow(length)).sum();
    progress.begin(total);
    let mut histories = 0;
    let finding = prepared_image(Layout::Apart, options.engine).map_or_else(
        |what| Some(Finding { work: "preparing".into(), at: "-".into(), loss: "-".into(), what }),
        |(image, model)| {
            (1..=options.length as u32).find_map(|length| {
                (0..kinds.pow(length)).find_map(|number| {
                    progress.step();
                    histories += 1;
                    let steps = sequence(number, length);
                    let found = check(&mut checker, &image, &model, &steps, options);
                    found.err().map(|finding| Finding { work: format!("{steps:?}"), ..finding })
                })
            })
        },
    );
    progress.end();
    Outcome { histories, counts: checker.counts, finding }
}

/// The sequence with this number.
fn sequence(number: u64, length: u32) -> Vec<Step> {
    let kinds = Step::ALL.len() as u64;
    (0..length).rev().map(|place| Step::ALL[(number / kinds.pow(place) % kinds) as usize]).collect()
}

fn check(
    checker: &mut Checker,
    image: &SimulatedFiles,
    model: &Model,
    steps: &[Step],
    options: Options,
) -> Result<(), Finding> {
    let files = image.fork();
    let failed = |what: String| Finding { work: String::new(), at: "-".into(), loss: "-".into(), what };
    let mut run =
        Run::begin(&files, options.wrap, (Layout::Apart, options.engine), model.clone(), Answers::Exact, |_| {})
            .map_err(|error| failed(error.to_string()))?;
    for (at, step) in steps.iter().enumerate() {
        if at + 1 == steps.len() {
            files.keep_points();
        }
        run.step(*step, at as u64 + 1).and_then(|()| run.drive()).map_err(failed)?;
    }
    let points = files.take_points();
    let first = files.changes() - points.len() as u64;
    for (at, point) in points.iter().enumerate() {
        let allowed = run.digests(run.allowed_at(first + at as u64));
        checker.check_point(point, allowed, options.again)?;
    }
    // The end of the operation: it is acknowledged, nothing is in flight.
    let end = run.digests(run.allowed_now()).to_vec();
    checker.check_image(&files.crash(Loss::All), &end).map_err(failed)
}
