//! What commands have come to: how often, how long, with which errors. `SLOWLOG`, `LATENCY`, and sections of `INFO`.
//!
//! Calls and errors are always counted. What a command takes is measured where it runs in a fiber, and for all others from the moment on when somebody asks for
//! it (`CONFIG RESETSTAT`, `LATENCY HISTOGRAM`, a threshold that is set): a look at the clock is dear beside a `GET`.

use super::call::Call;
use super::failure::Outcome;
use super::shared::Shared;
use super::state::State;
use super::table::{COMMANDS, Flag, Spec};
use crate::connection::Connection;
use database::UserId;
use runtime::fiber::FiberId;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// Kinds of errors that are counted by their first words.
const ERROR_KINDS_MAX: usize = 128;
/// Subcommands that are counted.
const SUBCOMMANDS_MAX: usize = 512;
/// Entries that the slow log may be told to hold.
const SLOW_ENTRIES_MAX: usize = 100_000;
/// Parts of a command that it shows, and bytes of one.
const SLOW_PARTS_MAX: usize = 32;
const SLOW_PART_BYTES_MAX: usize = 128;
/// Samples of one event of the latency monitor.
const SAMPLES_MAX: usize = 160;
/// Steps of a histogram between two powers of two.
const STEPS: usize = 4;

/// Durations, by their size.
type Histogram = [u32; 40 * STEPS];

/// What is counted of one command.
pub(super) struct Counted {
    calls: Cell<u64>,
    rejected: Cell<u64>,
    failed: Cell<u64>,
    ns: Cell<u64>,
    measured: Cell<u64>,
    histogram: RefCell<Option<Box<Histogram>>>,
}

impl Counted {
    fn new() -> Self {
        let zero = || Cell::new(0);
        Counted {
            calls: zero(),
            rejected: zero(),
            failed: zero(),
            ns: zero(),
            measured: zero(),
            histogram: RefCell::new(None),
        }
    }

    fn reset(&self) {
        [&self.calls, &self.rejected, &self.failed, &self.ns, &self.measured].iter().for_each(|count| count.set(0));
        self.histogram.replace(None);
    }

    fn note(&self, ns: u64) {
        self.ns.set(self.ns.get() + ns);
        self.measured.set(self.measured.get() + 1);
        let mut histogram = self.histogram.borrow_mut();
        let histogram = histogram.get_or_insert_with(|| Box::new([0; 40 * STEPS]));
        let at = bucket(ns).min(histogram.len() - 1);
        histogram[at] = histogram[at].saturating_add(1);
    }
}

/// The place of a duration in a histogram.
fn bucket(ns: u64) -> usize {
    let ns = ns.max(STEPS as u64);
    let power = ns.ilog2() as usize;
    power * STEPS + ((ns >> (power - STEPS.ilog2() as usize)) as usize & (STEPS - 1))
}

/// The end of a place in a histogram, in nanoseconds.
fn bucket_end(at: usize) -> u64 {
    let (power, step) = (at / STEPS, (at % STEPS) as u64);
    ((STEPS as u64 + step + 1) << power) / STEPS as u64
}

/// A command that took long.
struct Slow {
    id: u64,
    seconds: u64,
    us: u64,
    parts: Vec<Vec<u8>>,
    peer: String,
    name: Vec<u8>,
    /// Whose command it was.
    user: UserId,
}

/// What an event of the latency monitor has come to.
#[derive(Default)]
struct Samples {
    /// Seconds since the epoch, and milliseconds that it took.
    list: VecDeque<(u64, u64)>,
    max: u64,
}

/// See the head of this file.
pub(super) struct Stats {
    by_command: Box<[Counted]>,
    by_subcommand: RefCell<BTreeMap<String, Counted>>,
    errors: RefCell<BTreeMap<String, u64>>,
    pub(super) errors_total: Cell<u64>,
    slow: RefCell<VecDeque<Slow>>,
    last_slow: Cell<u64>,
    /// Microseconds beyond which a command is in the log; negative: none is.
    pub(super) slow_us: Cell<i64>,
    pub(super) slow_entries: Cell<usize>,
    events: RefCell<BTreeMap<&'static str, Samples>>,
    /// Milliseconds beyond which a command is an event; 0: none is.
    pub(super) event_ms: Cell<u64>,
    /// `latency-tracking`: durations are kept.
    pub(super) keeps_durations: Cell<bool>,
    pub(super) percentiles: RefCell<Vec<f64>>,
    pub(super) monitors: RefCell<super::shared::Listening>,
    /// Fibers that wait for the end of a pause, by the numbers of their connections.
    pub(super) paused: RefCell<BTreeMap<u64, FiberId>>,
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            by_command: COMMANDS.iter().map(|_| Counted::new()).collect(),
            by_subcommand: RefCell::default(),
            errors: RefCell::default(),
            errors_total: Cell::new(0),
            slow: RefCell::default(),
            last_slow: Cell::new(0),
            slow_us: Cell::new(10_000),
            slow_entries: Cell::new(128),
            events: RefCell::default(),
            event_ms: Cell::new(0),
            keeps_durations: Cell::new(true),
            percentiles: RefCell::new(vec![50.0, 99.0, 99.9]),
            monitors: RefCell::default(),
            paused: RefCell::default(),
        }
    }
}

impl Stats {
    #[inline]
    pub(super) fn of(&self, spec: &'static Spec) -> &Counted {
        // The table is one array.
        let at = (std::ptr::from_ref(spec) as usize - COMMANDS.as_ptr() as usize) / size_of::<Spec>();
        &self.by_command[at]
    }

    /// Counts a command that runs.
    #[inline]
    pub(super) fn count(&self, spec: &'static Spec) {
        let calls = &self.of(spec).calls;
        calls.set(calls.get() + 1);
    }

    /// Has `work` done to what is counted of a command, and of its subcommand if that is one.
    fn each(&self, spec: &'static Spec, args: &[&[u8]], work: impl Fn(&Counted)) {
        if let Some(name) = subcommand(spec, args) {
            let mut all = self.by_subcommand.borrow_mut();
            if all.len() < SUBCOMMANDS_MAX || all.contains_key(&name) {
                work(all.entry(name).or_insert_with(Counted::new));
            }
        } else {
            work(self.of(spec));
        }
    }

    /// A command was refused before it ran.
    #[cold]
    pub(super) fn reject(&self, spec: &'static Spec) {
        let counted = self.of(spec);
        counted.rejected.set(counted.rejected.get() + 1);
    }

    /// A command that ran has come to an error.
    #[cold]
    pub(super) fn fail(&self, spec: &'static Spec, args: &[&[u8]]) {
        self.each(spec, args, |counted| counted.failed.set(counted.failed.get() + 1));
    }

    /// Counts an answer that is an error, by its text.
    #[cold]
    pub(super) fn count_error(&self, text: &[u8]) {
        self.errors_total.set(self.errors_total.get() + 1);
        let word = text.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
        let is_word = !word.is_empty()
            && word.len() <= 32
            && word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        let word = if is_word { String::from_utf8_lossy(word).into_owned() } else { "ERR".to_string() };
        let mut errors = self.errors.borrow_mut();
        if errors.len() < ERROR_KINDS_MAX || errors.contains_key(&word) {
            *errors.entry(word).or_default() += 1;
        }
    }

    pub(super) fn calls_total(&self) -> u64 {
        self.by_command.iter().map(|counted| counted.calls.get()).sum()
    }

    pub(super) fn reset(&self) {
        self.by_command.iter().for_each(Counted::reset);
        self.by_subcommand.borrow_mut().clear();
        self.errors.borrow_mut().clear();
        self.errors_total.set(0);
    }

    fn visit(&self, mut visit: impl FnMut(&str, &Counted)) {
        for (spec, counted) in COMMANDS.iter().zip(&self.by_command) {
            if !spec.is(Flag::Container) || counted.rejected.get() > 0 {
                visit(spec.name, counted);
            }
        }
        self.by_subcommand.borrow().iter().for_each(|(name, counted)| visit(name, counted));
    }

    /// The section `Commandstats` of `INFO`.
    pub(super) fn command_lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        self.visit(|name, counted| {
            let (calls, rejected, failed) = (counted.calls.get(), counted.rejected.get(), counted.failed.get());
            if calls + rejected + failed == 0 {
                return;
            }
            // Those that were not measured count as the others.
            let us = counted.ns.get() as f64 / 1000.0;
            let each = if counted.measured.get() > 0 { us / counted.measured.get() as f64 } else { 0.0 };
            let total = (each * calls as f64) as u64;
            let text = format!(
                "calls={calls},usec={total},usec_per_call={each:.2},rejected_calls={rejected},failed_calls={failed}"
            );
            lines.push((format!("cmdstat_{name}"), text));
        });
        lines
    }

    /// The section `Errorstats`.
    pub(super) fn error_lines(&self) -> Vec<(String, String)> {
        let line = |(word, count): (&String, &u64)| (format!("errorstat_{word}"), format!("count={count}"));
        self.errors.borrow().iter().map(line).collect()
    }

    /// The section `Latencystats`.
    pub(super) fn latency_lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        if !self.keeps_durations.get() {
            return lines;
        }
        let percentiles = self.percentiles.borrow();
        self.visit(|name, counted| {
            let histogram = counted.histogram.borrow();
            let Some(histogram) = histogram.as_ref() else { return };
            let total: u64 = histogram.iter().map(|count| u64::from(*count)).sum();
            let value = |percentile: &f64| {
                let wanted = (percentile / 100.0 * total as f64).ceil().max(1.0) as u64;
                let mut seen = 0;
                let at = histogram.iter().position(|count| {
                    seen += u64::from(*count);
                    seen >= wanted
                });
                format!("p{percentile}={:.3}", bucket_end(at.unwrap_or(0)) as f64 / 1000.0)
            };
            let text: Vec<String> = percentiles.iter().map(value).collect();
            lines.push((format!("latency_percentiles_usec_{name}"), text.join(",")));
        });
        lines
    }
}

/// The name of a subcommand with its command.
fn subcommand(spec: &Spec, args: &[&[u8]]) -> Option<String> {
    let word = args.get(1).filter(|word| spec.is(Flag::Container) && word.len() <= 32)?;
    let word = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-').then(|| format!("{}|{word}", spec.name))
}

/// Parts of a command without what is secret.
pub(super) fn redacted<'a>(spec: &Spec, args: &[&'a [u8]]) -> Vec<&'a [u8]> {
    const HIDDEN: &[u8] = b"(redacted)";
    let mut parts = args.to_vec();
    let is = |at: usize, word: &[u8]| args.get(at).is_some_and(|part| part.eq_ignore_ascii_case(word));
    let hidden: Vec<usize> = match spec.name {
        "auth" => (1..args.len()).collect(),
        "hello" => {
            let auth = (2..args.len()).find(|at| is(*at, b"auth"));
            auth.map_or(Vec::new(), |at| (at + 1..(at + 3).min(args.len())).collect())
        }
        "acl" if is(1, b"setuser") || is(1, b"deluser") || is(1, b"getuser") => (2..args.len()).collect(),
        "config" if is(1, b"set") => {
            let secret = |at: &usize| is(*at, b"masterauth") || is(*at, b"requirepass") || is(*at, b"masteruser");
            (2..args.len()).step_by(2).filter(secret).map(|at| at + 1).collect()
        }
        "migrate" => {
            let one = (2..args.len()).filter(|at| is(*at, b"auth")).map(|at| at + 1);
            let two = (2..args.len()).filter(|at| is(*at, b"auth2")).flat_map(|at| [at + 1, at + 2]);
            one.chain(two).collect()
        }
        _ => Vec::new(),
    };
    for at in hidden {
        if let Some(part) = parts.get_mut(at) {
            *part = HIDDEN;
        }
    }
    parts
}

/// A part of a command as the slow log keeps it.
fn shortened(part: &[u8]) -> Vec<u8> {
    let mut kept = part[..part.len().min(SLOW_PART_BYTES_MAX)].to_vec();
    if part.len() > kept.len() {
        let more = part.len() - kept.len();
        kept.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    }
    kept
}

/// Notes what a command has taken.
#[cold]
pub(super) fn note(
    shared: &Shared,
    (connection, state): (&Connection, &State),
    spec: &'static Spec,
    args: &[&[u8]],
    ns: u64,
) {
    let stats = &shared.stats;
    if stats.keeps_durations.get() {
        stats.each(spec, args, |counted| counted.note(ns));
    }
    let event_ms = stats.event_ms.get();
    if event_ms > 0 && ns / 1_000_000 >= event_ms && spec.name != "exec" {
        let event = if spec.is(Flag::Fast) { "fast-command" } else { "command" };
        note_event(shared, connection, event, ns / 1_000_000);
    }
    let least = stats.slow_us.get();
    let is_slow = least >= 0 && ns / 1000 >= least as u64 && stats.slow_entries.get() > 0;
    if !is_slow || matches!(spec.name, "exec") {
        return;
    }
    let all = redacted(spec, args);
    let kept = if all.len() > SLOW_PARTS_MAX { SLOW_PARTS_MAX - 1 } else { all.len() };
    let mut parts: Vec<Vec<u8>> = all[..kept].iter().map(|part| shortened(part)).collect();
    if kept < all.len() {
        parts.push(format!("... ({} more arguments)", all.len() - kept).into_bytes());
    }
    let id = stats.last_slow.get();
    stats.last_slow.set(id + 1);
    let seconds = connection.database().environment().clock.wall_ns() / 1_000_000_000;
    let peer = connection.session().peer.clone().unwrap_or_default();
    let name = state.name.borrow().clone();
    let mut slow = stats.slow.borrow_mut();
    let user = connection.session().user.get();
    slow.push_front(Slow { id, seconds, us: ns / 1000, parts, peer, name, user });
    slow.truncate(stats.slow_entries.get());
}

fn note_event(shared: &Shared, connection: &Connection, event: &'static str, ms: u64) {
    let seconds = connection.database().environment().clock.wall_ns() / 1_000_000_000;
    let mut events = shared.stats.events.borrow_mut();
    let samples = events.entry(event).or_default();
    samples.max = samples.max.max(ms);
    match samples.list.back_mut() {
        Some(last) if last.0 == seconds => last.1 = last.1.max(ms),
        _ => samples.list.push_back((seconds, ms)),
    }
    if samples.list.len() > SAMPLES_MAX {
        samples.list.pop_front();
    }
}

/// Counts a subcommand that runs.
#[cold]
pub(super) fn count_subcommand(shared: &Shared, spec: &'static Spec, args: &[&[u8]]) {
    shared.stats.each(spec, args, |counted| {
        if !std::ptr::eq(counted, shared.stats.of(spec)) {
            counted.calls.set(counted.calls.get() + 1);
        }
    });
}

pub(super) fn slowlog(call: &mut Call<'_>) -> Outcome {
    const LINES: &[&str] = &[
        "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GET [<count>]",
        "    Returns the newest entries (10 of them, or as many as are asked for; -1 for all): number, time, microseconds,",
        "    parts of the command, address and name of the client.",
        "LEN",
        "    Returns how many entries there are.",
        "RESET",
        "    Forgets all entries.",
        "HELP",
        "    Prints this help.",
    ];
    let shared = std::rc::Rc::clone(call.shared);
    let args = call.args;
    match (args[1].to_ascii_lowercase().as_slice(), args.len()) {
        (b"get", 2 | 3) => {
            call.check_writer()?;
            // What others have written is for who may see it all, as `MONITOR` shows it.
            let own = call.connection.session().user.get();
            let sees_all = call.database.check_execute_universe(call.context).is_ok();
            let count = match args.get(2) {
                Some(text) => super::resp::integer(text)
                    .filter(|count| *count >= -1)
                    .ok_or("ERR count should be greater than or equal to -1")?,
                None => 10,
            };
            let slow = shared.stats.slow.borrow();
            let seen: Vec<&Slow> = slow
                .iter()
                .filter(|entry| sees_all || entry.user == own)
                .take(usize::try_from(count).unwrap_or(usize::MAX))
                .collect();
            let mut reply = call.reply();
            reply.array(seen.len());
            for entry in seen {
                reply.array(6);
                reply.integer(entry.id as i64);
                reply.integer(entry.seconds as i64);
                reply.integer(entry.us as i64);
                reply.array(entry.parts.len());
                entry.parts.iter().for_each(|part| reply.bulk(part));
                reply.text(&entry.peer);
                reply.bulk(&entry.name);
            }
        }
        (b"len", 2) => {
            let count = shared.stats.slow.borrow().len();
            call.reply().count(count);
        }
        (b"reset", 2) => {
            call.check_writer()?;
            shared.stats.slow.borrow_mut().clear();
            call.reply().ok();
        }
        (b"help", 2) => super::scripts::help(call, LINES),
        _ => return Err(super::scripts::unknown_subcommand(call, "slowlog", &["get", "len", "reset", "help"])),
    }
    Ok(())
}

/// Bounds of the slow log that can be kept.
pub(super) fn slow_entries_of(wanted: u64) -> usize {
    usize::try_from(wanted).unwrap_or(usize::MAX).min(SLOW_ENTRIES_MAX)
}

fn histogram(call: &mut Call<'_>) -> Outcome {
    let shared = std::rc::Rc::clone(call.shared);
    // Measuring costs everybody: who may set parameters begins it.
    if call.check_writer().is_ok() {
        super::attention::measure(&shared);
    }
    let asked: Vec<String> = call.args[2..].iter().map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
    let is_asked = |name: &str| {
        asked.is_empty()
            || asked
                .iter()
                .any(|wanted| wanted == name || name.split_once('|').is_some_and(|(command, _)| command == wanted))
    };
    // By command: how many calls, and how many of them took no longer than so many microseconds.
    let mut found = Vec::new();
    shared.stats.visit(|name, counted| {
        let histogram = counted.histogram.borrow();
        let Some(histogram) = histogram.as_ref().filter(|_| is_asked(name)) else { return };
        let (mut lines, mut seen): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
        for (at, count) in histogram.iter().enumerate().filter(|(_, count)| **count > 0) {
            seen += u64::from(*count);
            let us = bucket_end(at).div_ceil(1000).next_power_of_two();
            match lines.last_mut() {
                Some(last) if last.0 == us => last.1 = seen,
                _ => lines.push((us, seen)),
            }
        }
        found.push((name.to_string(), seen, lines));
    });
    let mut reply = call.reply();
    reply.map(found.len());
    for (name, calls, lines) in found {
        reply.text(&name);
        reply.map(2);
        reply.text("calls");
        reply.integer(calls as i64);
        reply.text("histogram_usec");
        reply.map(lines.len());
        for (us, count) in lines {
            reply.integer(us as i64);
            reply.integer(count as i64);
        }
    }
    Ok(())
}

pub(super) fn latency(call: &mut Call<'_>) -> Outcome {
    const LINES: &[&str] = &[
        "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "DOCTOR",
        "    Tells in words what took long.",
        "HISTOGRAM [COMMAND ...]",
        "    Returns how often commands took how long.",
        "HISTORY <event>",
        "    Returns when an event took how many milliseconds.",
        "LATEST",
        "    Returns the newest sample of every event.",
        "RESET [<event> ...]",
        "    Forgets events.",
        "HELP",
        "    Prints this help.",
    ];
    let shared = std::rc::Rc::clone(call.shared);
    let args = call.args;
    let mut events = shared.stats.events.borrow_mut();
    match (args[1].to_ascii_lowercase().as_slice(), args.len()) {
        (b"histogram", _) => {
            drop(events);
            return histogram(call);
        }
        (b"latest", 2) => {
            let mut reply = call.reply();
            reply.array(events.len());
            for (name, samples) in events.iter() {
                let (seconds, ms) = samples.list.back().copied().unwrap_or_default();
                reply.array(4);
                reply.text(name);
                [seconds, ms, samples.max].iter().for_each(|number| reply.integer(*number as i64));
            }
        }
        (b"history", 3) => {
            let found = events.iter().find(|(name, _)| name.as_bytes() == args[2]);
            let list = found.map(|(_, samples)| &samples.list);
            let mut reply = call.reply();
            reply.array(list.map_or(0, VecDeque::len));
            for (seconds, ms) in list.into_iter().flatten() {
                reply.array(2);
                reply.integer(*seconds as i64);
                reply.integer(*ms as i64);
            }
        }
        (b"reset", _) => {
            call.check_writer()?;
            let before = events.len();
            events.retain(|name, _| args.len() > 2 && !args[2..].contains(&name.as_bytes()));
            let gone = before - events.len();
            call.reply().count(gone);
        }
        (b"doctor", 2) => {
            let text = match (shared.stats.event_ms.get(), events.is_empty()) {
                (0, _) => {
                    "Nothing is watched: CONFIG SET latency-monitor-threshold <milliseconds> begins it.\n".to_string()
                }
                (_, true) => "No command has taken longer than latency-monitor-threshold says.\n".to_string(),
                (ms, false) => {
                    let line = |(name, samples): (&&str, &Samples)| {
                        format!("{name}: {} times, at most {} ms\n", samples.list.len(), samples.max)
                    };
                    let lines: String = events.iter().map(line).collect();
                    format!("Beyond {ms} ms:\n{lines}SLOWLOG GET tells which commands those were.\n")
                }
            };
            call.reply().verbatim(&text);
        }
        (b"help", 2) => {
            drop(events);
            super::scripts::help(call, LINES);
        }
        _ => {
            return Err(super::scripts::unknown_subcommand(
                call,
                "latency",
                &["latest", "history", "reset", "doctor", "histogram", "help"],
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_before_the_end_of_its_place() {
        for ns in [0, 1, 4, 5, 7, 8, 999, 1000, 123_456, 1 << 30, (1 << 30) + 1] {
            let at = bucket(ns);
            assert!(bucket_end(at) > ns, "{ns} is in {at}");
            assert!(
                at == 0 || ns < STEPS as u64 * 2 || bucket_end(at - 1) <= ns.max(STEPS as u64),
                "{ns} is not before {at}"
            );
        }
    }

    use super::super::table::find;

    #[test]
    fn what_is_secret_is_not_shown() {
        let shown = |words: &str| {
            let parts: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
            let spec = find(parts[0]).expect("a command");
            let parts = redacted(spec, &parts);
            String::from_utf8_lossy(&parts.join(&b' ')).into_owned()
        };
        assert_eq!(shown("auth a b"), "auth (redacted) (redacted)");
        assert_eq!(shown("hello 3 auth a b setname c"), "hello 3 auth (redacted) (redacted) setname c");
        assert_eq!(shown("config set hz 1 masterauth x"), "config set hz 1 masterauth (redacted)");
        assert_eq!(shown("set a b"), "set a b");
    }
}
