//! One workload with everything in it; the power goes at every change of a file that the storage layer makes.

use crate::check::{Checker, Counts, Finding, Seeds};
use crate::model::Model;
use crate::report::Progress;
use crate::run::{Answers, Run, Wrap, plain};
use crate::script::Step;
use crate::world::{Engine, Layout};
use runtime::{FileOperation, SimulatedFiles};

/// Operations of which each row is one group of the log: submitted together, acknowledged together.
pub const WORKLOAD: &[&[Step]] = &[
    &[Step::Insert],
    &[Step::Insert, Step::TwoSpaces, Step::Update],
    &[Step::LargeInsert],
    &[Step::Replace, Step::CreateIndex, Step::Insert],
    &[Step::Checkpoint],
    &[Step::RolledBack, Step::Delete],
    &[Step::Rotate],
    &[Step::Insert, Step::LargeInsert, Step::Insert],
    &[Step::CreateSpace, Step::TwoSpaces],
    &[Step::Upsert, Step::Truncate, Step::Upsert],
    &[Step::DropIndex],
    &[Step::Checkpoint],
    &[Step::Insert],
    &[Step::DropSpace, Step::Insert],
    &[Step::Rotate, Step::Rotate],
    &[Step::Checkpoint],
    &[Step::Checkpoint],
    &[Step::CreateSpace],
    &[Step::Delete, Step::Insert, Step::Checkpoint],
];

/// What follows for rows on disk: runs in several ranges, of which some are merged and others not; deletes above older rows; an index over
/// them.
const DISK_WORKLOAD: &[&[Step]] = &[
    &[Step::Insert, Step::Insert, Step::Replace, Step::Insert, Step::Insert, Step::TwoSpaces],
    &[Step::Checkpoint],
    &[Step::Replace, Step::Insert],
    &[Step::Checkpoint],
    &[Step::Replace, Step::Upsert, Step::Insert],
    &[Step::Checkpoint],
    &[Step::Delete, Step::Delete, Step::Delete, Step::Delete],
    &[Step::Checkpoint],
    &[Step::CreateIndex, Step::Replace, Step::Insert],
    &[Step::Checkpoint],
    &[Step::DropIndex, Step::DropSpace],
    &[Step::Checkpoint],
];

/// All of it.
pub(crate) fn workload(engine: Engine) -> impl Iterator<Item = &'static [Step]> {
    let more = if engine == Engine::Disk { DISK_WORKLOAD } else { &[] };
    WORKLOAD.iter().chain(more).copied()
}

/// What to do.
#[derive(Clone, Copy)]
pub struct Options {
    /// Where files lie.
    pub layout: Layout,
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
        Options { layout: Layout::Apart, seeds: Seeds::new(4), again: true, wrap: plain, engine: Engine::Memory }
    }
}

/// What came of it.
pub struct Outcome {
    /// How much was looked at.
    pub counts: Counts,
    /// The first broken promise.
    pub finding: Option<Finding>,
    /// What the workload asked of the files.
    pub operations: Vec<FileOperation>,
    /// Dumps and compactions of the disk engine in it.
    pub disk_jobs: (u64, u64),
}

/// Runs the workload once, then loses the power at each of its changes.
pub fn run(options: Options, progress: &Progress) -> Outcome {
    let files = SimulatedFiles::default();
    files.keep_points();
    files.keep_operations();
    let mut checker = Checker::new(options.layout, options.seeds.range()).with_files(options.wrap);
    let mut disk_jobs = (0, 0);
    let finding = work(&files, options).map_or_else(
        |what| Some(Finding { work: "the workload".into(), at: "-".into(), loss: "-".into(), what }),
        |run| {
            let disk = run.database.disk_engine().map(|engine| engine.statistics().counts).unwrap_or_default();
            disk_jobs = (disk.dumps, disk.compactions);
            let points = files.take_points();
            progress.begin(points.len() as u64);
            points.iter().enumerate().find_map(|(at, point)| {
                progress.step();
                let allowed = run.digests(run.allowed_at(at as u64)).to_vec();
                let checked = checker.check_point(point, &allowed, options.again);
                checked.err().map(|finding| Finding { work: format!("the workload, change {at}"), ..finding })
            })
        },
    );
    progress.end();
    Outcome { counts: checker.counts, finding, operations: files.operations(), disk_jobs }
}

fn work(files: &SimulatedFiles, options: Options) -> Result<Run, String> {
    let mut run =
        Run::begin(files, options.wrap, (options.layout, options.engine), Model::default(), Answers::Exact, |_| {})
            .map_err(|error| error.to_string())?;
    run.prepare()?;
    run.drive()?;
    let mut salt = 0;
    for group in workload(options.engine) {
        for step in group {
            salt += 1;
            run.step(*step, salt).map_err(|what| format!("operation {salt}: {what}"))?;
        }
        run.drive().map_err(|what| format!("after operation {salt}: {what}"))?;
    }
    run.close().map_err(|error| error.to_string())?;
    Ok(run)
}
