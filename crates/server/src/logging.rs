//! The log of events: standard error or a file that is opened anew on SIGHUP. Destination and level may change while it runs.

use runtime::{File, FileSystem, OpenMode, SystemFiles};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

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
}

fn open_at_end(path: &Path) -> io::Result<Open> {
    let file = SystemFiles.open(path, OpenMode { create: true, ..OpenMode::MODIFY })?;
    let end = file.len()?;
    Ok(Open { path: path.to_path_buf(), file, end })
}

impl Log {
    /// Begins to log to standard error.
    pub(crate) fn start(level: LevelFilter) -> Self {
        let mut log = Log::default();
        let writer = log.clone();
        let (filter, handle) = tracing_subscriber::reload::Layer::new(level);
        let lines =
            tracing_subscriber::fmt::layer().with_target(false).with_writer(move || writer.clone()).with_ansi(false);
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

    /// Goes on in a file.
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

/// A level by name (`info`) or by Tarantool's number (5).
pub(crate) fn level(text: &str) -> Result<LevelFilter, String> {
    Ok(match text {
        "0" | "1" | "2" | "3" | "fatal" | "syserror" | "error" | "crit" => LevelFilter::ERROR,
        "4" | "warn" => LevelFilter::WARN,
        "5" | "info" => LevelFilter::INFO,
        "6" | "verbose" | "7" | "debug" => LevelFilter::DEBUG,
        other => return Err(format!("Incorrect value for option 'log_level': '{other}'")),
    })
}
