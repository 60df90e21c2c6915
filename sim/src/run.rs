//! A database that is worked on while the model follows, with notes of what was promised when.

use crate::model::{Digest, Model};
use crate::script::{self, Step};
use crate::world::{Engine, Layout, drive, open_with, request};
use database::{Config, Context, Database, Error, State};
use runtime::{FileSystem, SimulatedFiles};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use storage::lsm::{DiskKey, DiskScan, Stop};
use tuple::{IndexId, SpaceId};

/// The file system that a database is given: the simulated one, or a double around it that has a bug.
pub type Wrap = fn(&SimulatedFiles) -> Arc<dyn FileSystem>;

/// The simulated files themselves.
pub fn plain(files: &SimulatedFiles) -> Arc<dyn FileSystem> {
    Arc::new(files.clone())
}

/// What was true when so many changes of files had taken place.
#[derive(Clone, Copy)]
struct Mark {
    changes: u64,
    /// Transactions that were in the log.
    appended: usize,
    /// Transactions that were acknowledged.
    acknowledged: usize,
}

/// How strictly answers are compared with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Exactly what the model does.
    Exact,
    /// A refusal is allowed: something was made to fail.
    MayRefuse,
}

/// A scan under way.
struct Reader {
    id: u32,
    scan: DiskScan,
    /// The rows of the moment in which it began.
    expected: Vec<Rc<[u8]>>,
    found: Vec<Vec<u8>>,
}

impl Reader {
    /// Reads the rest. Errors: a finding, in words.
    fn end(mut self) -> Result<(), String> {
        loop {
            match self.scan.next_row() {
                Ok(Some(row)) => self.found.push(row.with(<[u8]>::to_vec)),
                Ok(None) => break,
                // Nothing but a turn is ever waited for here.
                Err(Stop::Wait(_)) => self.scan.hold(),
                Err(Stop::Failed(error)) => return Err(format!("a scan of space {}: {error}", self.id)),
            }
        }
        let is_same = self.found.len() == self.expected.len()
            && self.found.iter().zip(&self.expected).all(|(found, expected)| **found == **expected);
        if !is_same {
            let (found, expected) = (self.found.len(), self.expected.len());
            return Err(format!("a scan of space {} found {found} rows, other ones than the {expected}", self.id));
        }
        Ok(())
    }
}

/// See the head of this file.
pub struct Run {
    /// The files below.
    pub files: SimulatedFiles,
    /// Where its rows are.
    engine: Engine,
    /// The database.
    pub database: Rc<Database>,
    context: Context,
    model: Model,
    /// What was there after each transaction; the first is the beginning.
    digests: Vec<Digest>,
    models: Vec<Model>,
    positions: Vec<i64>,
    marks: Vec<Mark>,
    answers: Answers,
}

impl Run {
    /// Opens a database that holds `model`. Errors: as of a server that refuses to start.
    pub fn begin(
        files: &SimulatedFiles,
        wrap: Wrap,
        (layout, engine): (Layout, Engine),
        model: Model,
        answers: Answers,
        change: impl FnOnce(&mut Config),
    ) -> database::Result<Self> {
        let database = open_with(wrap(files), layout, change)?;
        let context = request(&database);
        let mark = Mark { changes: files.changes(), appended: 0, acknowledged: 0 };
        Ok(Run {
            files: files.clone(),
            engine,
            database,
            context,
            digests: vec![model.digest()],
            models: vec![model.clone()],
            model,
            positions: Vec::new(),
            // In the beginning there was nothing, acknowledged or not.
            marks: vec![Mark { changes: 0, ..mark }, mark],
            answers,
        })
    }

    /// Makes the beginning of `script`, in an empty database. Errors: a finding, in words.
    pub fn prepare(&mut self) -> Result<(), String> {
        let engine = self.engine;
        self.transaction("prepare", script::prepared(), true, |database, context| {
            script::prepare(database, context, engine)
        })
    }

    /// Does one operation. Errors: a finding, in words.
    pub fn step(&mut self, step: Step, salt: u64) -> Result<(), String> {
        let mut next = self.model.clone();
        let is_taken = step.apply(&mut next, salt);
        let engine = self.engine;
        self.transaction(&format!("{step:?}"), next, is_taken, |database, context| {
            step.run(database, context, salt, engine)
        })
    }

    /// Does one operation, which may be refused. Returns the refusal. Errors: a finding, in words.
    pub fn try_step(&mut self, step: Step, salt: u64) -> Result<Option<Error>, String> {
        let mut refused = None;
        let mut next = self.model.clone();
        let is_taken = step.apply(&mut next, salt);
        let engine = self.engine;
        let answers = std::mem::replace(&mut self.answers, Answers::MayRefuse);
        let done = self.transaction(&format!("{step:?}"), next, is_taken, |database, context| {
            let result = step.run(database, context, salt, engine);
            refused = result.as_ref().err().filter(|_| is_taken).cloned();
            result
        });
        self.answers = answers;
        done.map(|()| refused)
    }

    fn transaction(
        &mut self,
        name: &str,
        next: Model,
        is_taken: bool,
        work: impl FnOnce(&Rc<Database>, &Context) -> database::Result<()>,
    ) -> Result<(), String> {
        let (before, digest_before) = (self.database.appended(), self.model.digest());
        let result = work(&self.database, &self.context);
        let after = self.database.appended();
        match &result {
            Ok(()) if is_taken => self.model = next,
            Ok(()) => return Err(format!("{name} was taken and should be refused")),
            Err(_) if after > before => return Err(format!("{name} was refused and is in the log")),
            Err(error) if is_taken && self.answers == Answers::Exact => return Err(format!("{name}: {error}")),
            Err(_) => {}
        }
        let digest = self.model.digest();
        if after > before {
            self.digests.push(digest);
            self.models.push(self.model.clone());
            self.positions.push(after.0);
        } else if digest != digest_before {
            return Err(format!("{name} changed rows and is not in the log"));
        }
        self.mark();
        Ok(())
    }

    /// A turn of the event loop, then the look at the rows that it leaves. Errors: a finding, in words.
    pub fn drive(&mut self) -> Result<(), String> {
        let readers = self.begin_readers();
        drive(&self.database);
        self.mark();
        for reader in readers {
            reader.end().or_else(|what| if self.answers == Answers::MayRefuse { Ok(()) } else { Err(what) })?;
        }
        if let State::LogFailed(_) = self.database.state() {
            // What was not durable is taken back.
            self.model = self.models[self.acknowledged()].clone();
        }
        // What fails does so once; the next look succeeds.
        let found = Model::of(&self.database).or_else(|what| match self.answers {
            Answers::Exact => Err(what),
            Answers::MayRefuse => Model::of(&self.database),
        })?;
        if found != self.model {
            return Err(format!("the database has {}; it should have {}", found.describe(), self.model.describe()));
        }
        Ok(())
    }

    /// Scans of all spaces on disk that stand behind their first rows while levels become runs, and runs others.
    fn begin_readers(&self) -> Vec<Reader> {
        let mut readers = Vec::new();
        for (&id, model) in &self.model.spaces {
            let Ok(space) = self.database.space(SpaceId(id)) else { continue };
            let Some(disk) = space.disk() else { continue };
            let mut scan = disk.scan(IndexId::PRIMARY, IteratorKind::All, DiskKey { parts: &[], part_count: 0 });
            // What cannot be read is told by the look at all rows.
            let Ok(first) = scan.next_row() else { continue };
            scan.hold();
            let found = first.iter().map(|row| row.with(<[u8]>::to_vec)).collect();
            readers.push(Reader { id, scan, expected: model.rows.values().cloned().collect(), found });
        }
        readers
    }

    /// Ends the database in order. Errors: as the database's.
    pub fn close(&mut self) -> database::Result<()> {
        let result = self.database.close();
        self.mark();
        result
    }

    /// Transactions acknowledged by now.
    pub fn acknowledged(&self) -> usize {
        let durable = self.database.durable().0;
        self.positions.iter().filter(|position| **position <= durable).count()
    }

    fn mark(&mut self) {
        let acknowledged = self.acknowledged().max(self.marks.last().map_or(0, |mark| mark.acknowledged));
        self.marks.push(Mark { changes: self.files.changes(), appended: self.positions.len(), acknowledged });
    }

    /// What may be there after a power loss at the change with this number, counted from 0: as many transactions.
    pub fn allowed_at(&self, change: u64) -> RangeInclusive<usize> {
        let acknowledged = self.marks.iter().rfind(|mark| mark.changes <= change).map_or(0, |mark| mark.acknowledged);
        let appended =
            self.marks.iter().find(|mark| mark.changes > change).map_or(self.positions.len(), |m| m.appended);
        acknowledged..=appended
    }

    /// What may be there after a power loss now.
    pub fn allowed_now(&self) -> RangeInclusive<usize> {
        self.marks.last().map_or(0, |mark| mark.acknowledged)..=self.positions.len()
    }

    /// What is there after so many transactions each.
    pub fn digests(&self, transactions: RangeInclusive<usize>) -> &[Digest] {
        &self.digests[transactions]
    }

    /// The model after all operations.
    pub fn model(&self) -> &Model {
        &self.model
    }
}
