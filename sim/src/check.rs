//! What a recovery may find: all that was acknowledged, nothing by halves, nothing that was not submitted.
//!
//! Many power losses leave the same files, so each image is recovered once. The check of an image is: it opens, its indexes and catalog
//! agree, and its rows are those after some number of transactions between the acknowledged and the submitted ones. The
//! check of its recovery is: whatever change of it the power loss meets, the next recovery finds the same; and a row written
//! after it is there when it was acknowledged.

use crate::model::{Digest, Model};
use crate::run::{Wrap, plain};
use crate::script;
use crate::world::{Layout, drive, open, request};
use runtime::{ChangePoint, FileOperation, Loss, OperationKind, SimulatedFiles};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was done.
    pub work: String,
    /// The change at which the power went.
    pub at: String,
    /// What the power loss took.
    pub loss: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { work, at, loss, what } = self;
        write!(f, "{what}\n  work: {work}\n  at:   {at}\n  loss: {loss}")
    }
}

/// How much was looked at.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Changes at which the power went, by kind.
    pub points: BTreeMap<OperationKind, u64>,
    /// Changes of recoveries at which the power went once more, by kind.
    pub recovery_points: BTreeMap<OperationKind, u64>,
    /// Pairs of a change and a kind of loss.
    pub states: u64,
    /// Such pairs during recoveries.
    pub recovery_states: u64,
    /// Images that differ, each recovered.
    pub images: u64,
}

/// Seeds of losses by chance.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Seeds {
    /// So many, from 0 on.
    pub fn new(count: u64) -> Self {
        Seeds { first: 0, count }
    }

    pub(crate) fn range(self) -> Range<u64> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// Recovers images and remembers what it found.
pub struct Checker {
    layout: Layout,
    wrap: Wrap,
    /// Seeds of losses by chance, beside the named ones.
    seeds: Range<u64>,
    found: HashMap<u128, Result<Digest, String>>,
    /// Images whose recovery was crashed everywhere.
    crashed_again: HashSet<u128>,
    /// So far.
    pub counts: Counts,
}

/// Runs work whose panic is a finding too.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
        Err(format!("a panic: {text}"))
    })
}

impl Checker {
    /// A checker for databases of this layout.
    pub fn new(layout: Layout, seeds: Range<u64>) -> Self {
        Checker {
            layout,
            wrap: plain,
            seeds,
            found: HashMap::new(),
            crashed_again: HashSet::new(),
            counts: Counts::default(),
        }
    }

    /// Gives databases another file system.
    #[must_use]
    pub fn with_files(mut self, wrap: Wrap) -> Self {
        self.wrap = wrap;
        self
    }

    /// One seed at the most: recoveries are many.
    fn first_seed(&self) -> Range<u64> {
        self.seeds.start..self.seeds.end.min(self.seeds.start + 1)
    }

    /// What a machine finds that starts from this image, which stays as it is. Errors: in words.
    pub fn recover(&mut self, image: &SimulatedFiles) -> Result<Digest, String> {
        let fingerprint = image.fingerprint();
        if let Some(found) = self.found.get(&fingerprint) {
            return found.clone();
        }
        self.counts.images += 1;
        let files = (self.wrap)(&image.fork());
        let found = guarded(|| {
            let database = open(files, self.layout).map_err(|error| format!("does not start: {error}"))?;
            Model::of(&database).map(|model| model.digest())
        });
        self.found.insert(fingerprint, found.clone());
        found
    }

    /// The power goes at this change, in every way. Errors: a finding that knows no work yet.
    pub fn check_point(&mut self, point: &ChangePoint, allowed: &[Digest], again: bool) -> Result<(), Finding> {
        *self.counts.points.entry(point.operation.kind).or_default() += 1;
        for loss in Loss::kinds(point.unsynced(), self.seeds.clone()) {
            self.counts.states += 1;
            let image = point.crash(loss);
            let finding = |what: String| Finding {
                work: String::new(),
                at: point.operation.to_string(),
                loss: loss.to_string(),
                what,
            };
            let found = self.recover(&image).map_err(finding)?;
            if !allowed.contains(&found) {
                return Err(finding(self.describe(&image, allowed)));
            }
            if again {
                self.check_recovery(&image, found).map_err(finding)?;
            }
        }
        Ok(())
    }

    /// This very image, without a power loss. Errors: in words.
    pub fn check_image(&mut self, image: &SimulatedFiles, allowed: &[Digest]) -> Result<(), String> {
        let found = self.recover(image)?;
        if allowed.contains(&found) { Ok(()) } else { Err(self.describe(image, allowed)) }
    }

    fn describe(&self, image: &SimulatedFiles, allowed: &[Digest]) -> String {
        let found = open((self.wrap)(&image.fork()), self.layout)
            .map_err(|error| error.to_string())
            .and_then(|database| Model::of(&database));
        let found = found.map_or_else(|error| error, |model| model.describe());
        format!("recovered to none of the {} states that are allowed: {found}", allowed.len())
    }

    /// The power goes at every change of the recovery, and of the first write after it.
    fn check_recovery(&mut self, image: &SimulatedFiles, expected: Digest) -> Result<(), String> {
        if !self.crashed_again.insert(image.fingerprint()) {
            return Ok(());
        }
        let files = image.fork();
        files.keep_points();
        let (opened_at, after_probe) = guarded(|| {
            let database = open((self.wrap)(&files), self.layout).map_err(|error| error.to_string())?;
            let opened_at = files.changes();
            let mut model = Model::of(&database)?;
            if !script::apply_probe(&mut model) {
                return Ok((opened_at, expected));
            }
            script::probe(&database, &request(&database)).map_err(|error| format!("does not write: {error}"))?;
            drive(&database);
            if database.durable() < database.appended() {
                return Err("the first write after a recovery is not durable".to_string());
            }
            Ok((opened_at, model.digest()))
        })?;
        let points = files.take_points();
        for (at, point) in points.iter().enumerate() {
            *self.counts.recovery_points.entry(point.operation.kind).or_default() += 1;
            for loss in Loss::kinds(point.unsynced(), self.first_seed()) {
                self.counts.recovery_states += 1;
                let found = self.recover(&point.crash(loss)).map_err(|what| again(&point.operation, loss, &what))?;
                let is_written = at as u64 >= opened_at && found == after_probe;
                if found != expected && !is_written {
                    return Err(again(&point.operation, loss, "another state than the first recovery"));
                }
            }
        }
        match self.recover(&files.crash(Loss::All))? {
            found if found == after_probe => Ok(()),
            _ => Err("an acknowledged write after the recovery is gone".to_string()),
        }
    }
}

fn again(operation: &FileOperation, loss: Loss, what: &str) -> String {
    format!("power lost again in the recovery, at {operation} ({loss}): {what}")
}
