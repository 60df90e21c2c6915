//! Many seeds, in child processes of the same program.
//!
//! Each simulated crash leaves the dead process's fibers and Lua states in memory, on purpose: what they hold cannot be freed without running
//! them. So a child runs a few dozen seeds and ends. A child that panics, is killed by a signal or does not end is a finding of
//! the seed it was at.

use super::branch::Branch;
use super::limits::{Engine, Hazard, Limits};
use super::seed::{self, LIVES_MAX, LOAD_US_MAX, Plan, Verdict};
use crate::planted::Bug;
use crate::report::Progress;
use runtime::{Clock, SystemClock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Seeds of one child: about 150 MB.
const SEEDS_PER_CHILD: u64 = 40;
/// A seed that takes longer does not end.
const SEED_SECONDS_MAX: u64 = 120;
/// Bytes of a dead child's last words that are kept.
const LAST_WORDS_MAX: usize = 4000;

/// Characters of a finding that people are shown.
const SHOWN_MAX: usize = 1200;

/// What is run with every seed.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only these workloads; all if empty.
    pub workloads: Vec<String>,
    /// What is left out.
    pub limits: Limits,
    /// A bug that is put in.
    pub bug: Option<Bug>,
}

impl Choice {
    /// What is to find a planted bug.
    pub fn of(bug: Bug) -> Self {
        let engine = bug.is_in_memory().then_some(Engine::Memory);
        Choice { workloads: bug.workloads(), limits: Limits { engine, ..Limits::default() }, bug: Some(bug) }
    }

    /// The same on the command line.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: String| arguments.extend([name.to_string(), value]);
        if !self.workloads.is_empty() {
            add("--workload", self.workloads.join(","));
        }
        if let Some(count) = self.limits.clients_max {
            add("--clients", count.to_string());
        }
        if let Some(count) = self.limits.lives_max {
            add("--lives", count.to_string());
        }
        if let Some(us) = self.limits.load_us_max {
            add("--load-us", us.to_string());
        }
        if !self.limits.without.is_empty() {
            let names: Vec<&str> = self.limits.without.iter().map(|hazard| hazard.name()).collect();
            add("--without", names.join(","));
        }
        if let Some(engine) = self.limits.engine {
            add("--engine", engine.name().to_string());
        }
        if let Some(bug) = self.bug {
            add("--bug", bug.name().to_string());
        }
        arguments
    }

    /// Runs one seed in this process.
    pub fn run(&self, seed: u64, is_traced: bool) -> Verdict {
        let limits = self.limits.clone();
        let Some(bug) = self.bug else {
            return seed::run(&Plan { seed, workloads: &self.workloads, is_traced, wrap: None, limits });
        };
        let wrap = move |files| bug.wrap()(&files);
        let _planted = bug.plant();
        seed::run(&Plan { seed, workloads: &self.workloads, is_traced, wrap: Some(&wrap), limits })
    }
}

/// What a child says of a seed, one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The seed.
    pub seed: u64,
    /// Equal for equal histories.
    pub hash: u64,
    /// Workloads that ran.
    pub workloads: Vec<String>,
    /// Operations asked for.
    pub operations: u64,
    /// Of these, acknowledged.
    pub acknowledged: u64,
    /// Refused.
    pub refused: u64,
    /// Without an answer.
    pub unknown: u64,
    /// Steps of the simulation.
    pub steps: u64,
    /// Simulated time.
    pub simulated_ns: u64,
    /// How often each branch was reached.
    pub reached: BTreeMap<String, u64>,
    /// The broken promise and where it was seen.
    pub violation: Option<(String, String)>,
}

impl Line {
    fn new(seed: u64, verdict: Verdict) -> Self {
        Line {
            seed,
            hash: verdict.hash,
            workloads: verdict.workloads,
            operations: verdict.operations,
            acknowledged: verdict.acknowledged,
            refused: verdict.refused,
            unknown: verdict.unknown,
            steps: verdict.steps,
            simulated_ns: verdict.simulated_ns,
            reached: verdict.reached.into_iter().map(|(name, count)| (name.to_string(), count)).collect(),
            violation: verdict.violation,
        }
    }
}

/// What a child does: runs the seeds and writes a line for each.
pub fn serve(first: u64, count: u64, choice: &Choice, out: &mut impl Write) -> io::Result<()> {
    for seed in first..first + count {
        let line = Line::new(seed, choice.run(seed, false));
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
        out.flush()?;
    }
    Ok(())
}

/// A seed that broke something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// Where it was seen: a workload, or a part of the simulation, or `process` if that died.
    pub workload: String,
    /// In words.
    pub text: String,
}

impl fmt::Display for Finding {
    /// Shortened in the middle: rows may be long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}: ", self.seed, self.workload)?;
        let length = self.text.chars().count();
        if length <= SHOWN_MAX {
            return f.write_str(&self.text);
        }
        let begin: String = self.text.chars().take(SHOWN_MAX / 2).collect();
        let end: String = self.text.chars().skip(length - SHOWN_MAX / 2).collect();
        write!(f, "{begin} ... {end}")
    }
}

/// What many seeds came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// Seeds that were run.
    pub seeds: u64,
    /// Operations asked for.
    pub operations: u64,
    /// Of these, acknowledged.
    pub acknowledged: u64,
    /// Refused.
    pub refused: u64,
    /// Without an answer.
    pub unknown: u64,
    /// Simulated time.
    pub simulated_ns: u64,
    /// Real time.
    pub elapsed_ms: u64,
    /// Seeds in which each branch was reached.
    pub reached: BTreeMap<String, u64>,
    /// Seeds in which each workload ran.
    pub workloads: BTreeMap<String, u64>,
    /// Stands for the histories of all seeds.
    pub hash: u64,
    /// By seed.
    pub findings: Vec<Finding>,
}

impl Totals {
    fn add(&mut self, line: &Line) {
        self.seeds += 1;
        self.operations += line.operations;
        self.acknowledged += line.acknowledged;
        self.refused += line.refused;
        self.unknown += line.unknown;
        self.simulated_ns += line.simulated_ns;
        // In any order of the seeds.
        self.hash = self.hash.wrapping_add(line.hash.wrapping_mul(line.seed | 1));
        for name in line.reached.keys() {
            *self.reached.entry(name.clone()).or_default() += 1;
        }
        for name in &line.workloads {
            *self.workloads.entry(name.clone()).or_default() += 1;
        }
        if let Some((workload, text)) = &line.violation {
            self.findings.push(Finding { seed: line.seed, workload: workload.clone(), text: text.clone() });
        }
    }

    /// Branches that no seed reached.
    pub fn gaps(&self) -> Vec<&'static str> {
        Branch::ALL.iter().map(|branch| branch.name()).filter(|name| !self.reached.contains_key(*name)).collect()
    }

    /// Names that were counted and that [`Branch`] does not have.
    pub fn strangers(&self) -> Vec<&str> {
        let is_known = |name: &str| Branch::ALL.iter().any(|branch| branch.name() == name);
        self.reached.keys().map(String::as_str).filter(|name| !is_known(name)).collect()
    }
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `sim`.
    pub program: PathBuf,
    /// First seed.
    pub first: u64,
    /// Seeds.
    pub count: u64,
    /// Children at a time.
    pub jobs: usize,
    /// With each of them.
    pub choice: Choice,
    /// Seeds behind the first finding are not wanted. Which finding is the first does not depend on `jobs`.
    pub until_found: bool,
}

/// What the jobs share.
struct Hunt<'a> {
    options: &'a Options,
    progress: &'a Progress,
    next: AtomicU64,
    /// The lowest seed that broke something.
    lowest: AtomicU64,
    totals: Mutex<Totals>,
}

/// Runs seeds. Errors: no child can be started.
pub fn run(options: &Options, progress: &Progress) -> io::Result<Totals> {
    let clock = SystemClock::default();
    let began_ns = clock.monotonic_ns();
    progress.begin(options.count);
    let hunt = Hunt {
        options,
        progress,
        next: AtomicU64::new(options.first),
        lowest: AtomicU64::new(u64::MAX),
        totals: Mutex::default(),
    };
    let results: Vec<io::Result<()>> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(|| hunt.job())).collect();
        let panicked = || Err(io::Error::other("a job panicked"));
        jobs.into_iter().map(|job| job.join().unwrap_or_else(|_| panicked())).collect()
    });
    progress.end();
    results.into_iter().collect::<io::Result<()>>()?;
    let mut totals = hunt.totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    totals.findings.sort();
    totals.elapsed_ms = (clock.monotonic_ns() - began_ns) / 1_000_000;
    Ok(totals)
}

impl Hunt<'_> {
    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self) -> io::Result<()> {
        let end = self.options.first + self.options.count;
        loop {
            let first = self.next.fetch_add(SEEDS_PER_CHILD, Ordering::Relaxed);
            if first >= end || self.is_unwanted(first) {
                return Ok(());
            }
            let last = (first + SEEDS_PER_CHILD).min(end);
            let mut seed = first;
            while seed < last && !self.is_unwanted(seed) {
                seed = self.child(seed, last)?;
            }
        }
    }

    fn is_unwanted(&self, seed: u64) -> bool {
        self.options.until_found && seed > self.lowest.load(Ordering::Relaxed)
    }

    fn take(&self, line: &Line) {
        if line.violation.is_some() {
            self.lowest.fetch_min(line.seed, Ordering::Relaxed);
        }
        let mut totals = self.totals();
        totals.add(line);
        if !totals.findings.is_empty() {
            self.progress.say(format!("seeds, {} BROKEN", totals.findings.len()));
        }
        drop(totals);
        self.progress.step();
    }

    /// Waits for the end of a child that has said all its lines. If that is no good one, it is a finding of the last seed.
    fn check_end(
        &self,
        child: &mut Child,
        seed: u64,
        lines: &mpsc::Receiver<Line>,
        words: &mpsc::Receiver<String>,
    ) -> io::Result<()> {
        // They end with the process.
        let is_stuck = lines.recv_timeout(Duration::from_secs(SEED_SECONDS_MAX)) == Err(RecvTimeoutError::Timeout);
        if is_stuck {
            // It may be gone already.
            let _ = child.kill();
        }
        let status = child.wait()?;
        if !status.success() {
            let text = format!("behind its last line: {}", how_it_ended(is_stuck, status, words));
            self.lowest.fetch_min(seed, Ordering::Relaxed);
            self.totals().findings.push(Finding { seed, workload: "process".to_string(), text });
        }
        Ok(())
    }

    /// Runs seeds up to `last` in a child. The first one that it did not come to.
    fn child(&self, first: u64, last: u64) -> io::Result<u64> {
        let mut child = Command::new(&self.options.program)
            .args(["run-seeds", "--first", &first.to_string(), "--count", &(last - first).to_string()])
            .args(self.options.choice.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let lines = lines_of(&mut child);
        let words = last_words_of(&mut child);
        let mut seed = first;
        let mut is_stuck = false;
        while seed < last && !self.is_unwanted(seed) {
            match lines.recv_timeout(Duration::from_secs(SEED_SECONDS_MAX)) {
                Ok(line) => {
                    self.take(&line);
                    seed = line.seed + 1;
                }
                Err(error) => {
                    is_stuck = error == RecvTimeoutError::Timeout;
                    break;
                }
            }
        }
        if seed == last {
            self.check_end(&mut child, last - 1, &lines, &words)?;
            return Ok(last);
        }
        // It may be gone already.
        let _ = child.kill();
        let status = child.wait()?;
        if self.is_unwanted(seed) {
            return Ok(last);
        }
        let what = how_it_ended(is_stuck, status, &words);
        self.take(&Line { seed, violation: Some(("process".to_string(), what)), ..Line::default() });
        Ok(seed + 1)
    }
}

/// A child's lines as they come. What is no line of ours ends them.
fn lines_of(child: &mut Child) -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            let parsed = BufReader::new(out).lines().map_while(Result::ok).map(|line| serde_json::from_str(&line));
            for line in parsed.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}

fn how_it_ended(is_stuck: bool, status: ExitStatus, words: &mpsc::Receiver<String>) -> String {
    match is_stuck {
        true => format!("it did not end in {SEED_SECONDS_MAX} s"),
        false => format!("{status}: {}", words.recv().unwrap_or_default().trim()),
    }
}

/// The end of what a child said of itself, once it is gone.
fn last_words_of(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, words) = mpsc::channel();
    if let Some(mut err) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What came before an error is what there is.
            let _ = err.read_to_end(&mut bytes);
            let kept = bytes.len().saturating_sub(LAST_WORDS_MAX);
            // Nobody may want to hear it.
            let _ = sender.send(String::from_utf8_lossy(&bytes[kept..]).into_owned());
        });
    }
    words
}

/// The first seed that breaks a promise with the bug of `options`, and breaks none without it. Errors: no child can be started.
pub fn find_planted(options: &Options, progress: &Progress) -> io::Result<Option<Finding>> {
    let end = options.first + options.count;
    let mut options = Options { until_found: true, ..options.clone() };
    while options.first < end {
        options.count = end - options.first;
        let Some(finding) = run(&options, progress)?.findings.into_iter().next() else { return Ok(None) };
        let choice = Choice { bug: None, ..options.choice.clone() };
        let alone = Options { choice, first: finding.seed, count: 1, ..options.clone() };
        if run(&alone, progress)?.findings.is_empty() {
            return Ok(Some(finding));
        }
        options.first = finding.seed + 1;
    }
    Ok(None)
}

/// The smallest run found that breaks the same promise.
#[derive(Clone, Debug)]
pub struct Smallest {
    /// What it is.
    pub choice: Choice,
    /// With this seed.
    pub line: Line,
    /// Runs that were tried.
    pub tried: u64,
}

/// Looks for a smaller run that still breaks something in the same workload: each bound is tightened, each fault left out, as long as the
/// seed itself or one of the next `neighbours` still fails. None: the seed does not fail. Errors: no child can be started.
pub fn minimise(options: &Options, neighbours: u64, progress: &Progress) -> io::Result<Option<Smallest>> {
    let mut tried = 0;
    let mut attempt = |choice: Choice, first: u64, count: u64| -> io::Result<Option<(Choice, Line)>> {
        let options = Options { choice, first, count, until_found: true, ..options.clone() };
        let totals = run(&options, progress)?;
        tried += totals.seeds;
        let Some(finding) = totals.findings.first() else { return Ok(None) };
        let violation = Some((finding.workload.clone(), finding.text.clone()));
        Ok(Some((options.choice, Line { seed: finding.seed, violation, ..Line::default() })))
    };
    let Some((mut choice, mut line)) = attempt(options.choice.clone(), options.first, 1)? else { return Ok(None) };
    let wanted = line.violation.as_ref().map(|(workload, _)| workload.clone()).unwrap_or_default();
    loop {
        let mut is_smaller = false;
        for candidate in smaller(&choice, &wanted) {
            let Some((found, with)) = attempt(candidate, line.seed, 1 + neighbours)? else { continue };
            if with.violation.as_ref().is_some_and(|(workload, _)| *workload == wanted) {
                (choice, line) = (found, with);
                is_smaller = true;
                break;
            }
        }
        if !is_smaller {
            return Ok(Some(Smallest { choice, line, tried }));
        }
    }
}

/// Choices that are a step smaller, the largest steps first.
fn smaller(choice: &Choice, wanted: &str) -> Vec<Choice> {
    let mut found = Vec::new();
    let mut add = |change: &dyn Fn(&mut Choice)| {
        let mut smaller = choice.clone();
        change(&mut smaller);
        found.push(smaller);
    };
    if choice.workloads.len() != 1 && trial::named(wanted).is_some() {
        add(&|smaller| smaller.workloads = vec![wanted.to_string()]);
    }
    for hazard in Hazard::ALL.iter().filter(|hazard| choice.limits.allow(**hazard)) {
        add(&|smaller| {
            smaller.limits.without.insert(*hazard);
        });
    }
    let lives = choice.limits.lives_max.unwrap_or(LIVES_MAX);
    for fewer in 1..lives {
        add(&|smaller| smaller.limits.lives_max = Some(fewer));
    }
    let clients = choice.limits.clients_max.unwrap_or(8);
    for fewer in [1, 2, 3, 4].into_iter().filter(|fewer| *fewer < clients) {
        add(&|smaller| smaller.limits.clients_max = Some(fewer));
    }
    let load_us = choice.limits.load_us_max.unwrap_or(LOAD_US_MAX);
    if load_us > 1_000 {
        for parts in [4, 2] {
            add(&|smaller| smaller.limits.load_us_max = Some(load_us / parts));
        }
    }
    found
}
