//! The log of events: standard error or a file that is opened anew on SIGHUP. Destination, level and form may change while it runs.
//!
//! A line says when, which process, which thread, fiber and its name, where in the program, and how grave:
//! `2026-11-22 11:11:28.052 [4711] main/101/init.lua start.rs:77 I> read 3 rows`.

use runtime::terminal::local_time;
use runtime::{Clock, File, OpenMode, SystemClock, fiber, open_any};
use std::fmt::{self, Debug, Write as _};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

/// A log file and where it ends.
struct Open {
    path: PathBuf,
    file: Arc<dyn File>,
    end: u64,
}

/// Where lines go.
#[derive(Clone, Default)]
pub(crate) struct Log {
    file: Arc<Mutex<Option<Open>>>,
    set_level: Option<Arc<dyn Fn(LevelFilter) + Send + Sync>>,
    is_json: Arc<AtomicBool>,
}

fn open_at_end(path: &Path) -> io::Result<Open> {
    let file = open_any(path, OpenMode { create: true, ..OpenMode::MODIFY })?;
    let end = file.len()?;
    Ok(Open { path: path.to_path_buf(), file, end })
}

impl Log {
    /// Begins to log to standard error.
    pub(crate) fn start(level: LevelFilter) -> Self {
        let mut log = Log::default();
        let writer = log.clone();
        let (filter, handle) = tracing_subscriber::reload::Layer::new(level);
        let form = Form { clock: SystemClock::default(), pid: std::process::id(), is_json: Arc::clone(&log.is_json) };
        let lines =
            tracing_subscriber::fmt::layer().with_ansi(false).event_format(form).with_writer(move || writer.clone());
        tracing_subscriber::registry().with(filter).with(lines).init();
        log.set_level = Some(Arc::new(move |level| {
            // The subscriber lives as long as the process.
            let _ = handle.reload(level);
        }));
        log
    }

    /// Changes what is logged.
    pub(crate) fn set_level(&self, level: LevelFilter) {
        if let Some(set) = &self.set_level {
            set(level);
        }
    }

    /// Lines are JSON objects from now on, or plain text again.
    pub(crate) fn set_json(&self, is_json: bool) {
        self.is_json.store(is_json, Ordering::Relaxed);
    }

    /// Continues in a file. Errors: the file cannot be opened for writing.
    pub(crate) fn set_file(&self, path: &Path) -> io::Result<()> {
        let open = open_at_end(path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
        Ok(())
    }

    /// Goes on in a new file of the same name: the old one was moved away.
    pub(crate) fn rotate(&self) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &mut *file
            && let Ok(fresh) = open_at_end(&open.path)
        {
            *open = fresh;
        }
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.file.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(open) => {
                open.file.write_all_at(bytes, open.end)?;
                open.end += bytes.len() as u64;
                Ok(bytes.len())
            }
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How an event becomes a line.
struct Form {
    clock: SystemClock,
    pid: u32,
    is_json: Arc<AtomicBool>,
}

/// What an event says. A script's event has the place in the script in a field of its own.
#[derive(Default)]
struct Said {
    message: String,
    place: Option<String>,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "place" {
            self.place = Some(format!("{value:?}"));
        } else if field.name() == "message" {
            // A String takes whatever is written.
            let _ = write!(self.message, "{value:?}");
        } else {
            let _ = write!(self.message, " {}={value:?}", field.name());
        }
    }
}

/// The thread, and on the transaction thread the fiber that runs: number and name.
fn who() -> (String, Option<(u64, String)>) {
    let thread = runtime::thread_name();
    let fiber = fiber::current().map(|id| (id.0, fiber::name(id).unwrap_or_default()));
    (thread, fiber)
}

/// Tarantool's letter and its word in JSON.
fn grade(level: Level) -> (char, &'static str) {
    match level {
        Level::ERROR => ('E', "ERROR"),
        Level::WARN => ('W', "WARN"),
        Level::INFO => ('I', "INFO"),
        Level::DEBUG => ('D', "DEBUG"),
        Level::TRACE => ('V', "VERBOSE"),
    }
}

impl<S, N> FormatEvent<S, N> for Form
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let wall_ns = self.clock.wall_ns();
        let time = local_time((wall_ns / 1_000_000_000) as i64);
        let thousandths = wall_ns / 1_000_000 % 1000;
        let mut said = Said::default();
        event.record(&mut said);
        let metadata = event.metadata();
        let file = metadata.file().unwrap_or_default();
        let file = file.rsplit('/').next().unwrap_or(file);
        let place = said.place.take().unwrap_or_else(|| format!("{file}:{}", metadata.line().unwrap_or(0)));
        let (letter, word) = grade(*metadata.level());
        let (thread, fiber) = who();
        let day = format!("{:04}-{:02}-{:02}", time.year, time.month, time.day);
        let clock = format!("{:02}:{:02}:{:02}.{thousandths:03}", time.hour, time.minute, time.second);
        if self.is_json.load(Ordering::Relaxed) {
            let (sign, ahead) = if time.ahead < 0 { ('-', -time.ahead) } else { ('+', time.ahead) };
            let (file, line) = place.rsplit_once(':').unwrap_or((&place, "0"));
            let (id, name) = fiber.unwrap_or((0, "sched".to_string()));
            let line = serde_json::json!({
                "time": format!("{day}T{clock}{sign}{:02}{:02}", ahead / 3600, ahead / 60 % 60),
                "level": word, "message": said.message, "pid": self.pid, "cord_name": thread,
                "fiber_id": id, "fiber_name": name, "file": file, "line": line.parse::<u64>().unwrap_or(0),
            });
            return writeln!(out, "{line}");
        }
        write!(out, "{day} {clock} [{}] {thread}", self.pid)?;
        if let Some((id, name)) = fiber {
            write!(out, "/{id}/{name}")?;
        }
        writeln!(out, " {place} {letter}> {}", said.message)
    }
}

/// A form by name: whether it is JSON. Errors: there is no such form.
pub(crate) fn is_json(form: &str) -> Result<bool, String> {
    match form {
        "plain" => Ok(false),
        "json" => Ok(true),
        other => Err(format!("Incorrect value for option 'log_format': expected 'plain' or 'json', got '{other}'")),
    }
}

/// A level's number in Tarantool.
pub(crate) fn number(text: &str) -> u64 {
    match text {
        "fatal" => 0,
        "syserror" => 1,
        "error" => 2,
        "crit" => 3,
        "warn" => 4,
        "verbose" => 6,
        "debug" => 7,
        text => text.parse().unwrap_or(5),
    }
}

/// A level by name (`info`) or by Tarantool's number (5). Errors: there is no such level.
pub(crate) fn level(text: &str) -> Result<LevelFilter, String> {
    Ok(match text {
        "0" | "1" | "2" | "3" | "fatal" | "syserror" | "error" | "crit" => LevelFilter::ERROR,
        "4" | "warn" => LevelFilter::WARN,
        "5" | "info" => LevelFilter::INFO,
        "6" | "verbose" | "7" | "debug" => LevelFilter::DEBUG,
        other => {
            return Err(format!(
                "Incorrect value for option 'log_level': '{other}' is none of error, warn, info, verbose, debug or 0 to 7"
            ));
        }
    })
}
