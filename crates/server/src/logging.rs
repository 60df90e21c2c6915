//! The log of events: standard error or a file that is opened anew on SIGHUP.

use runtime::{File, FileSystem, OpenMode, SystemFiles};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A log file that can be moved away and opened again.
#[derive(Clone)]
pub(crate) struct LogFile {
    path: PathBuf,
    open: Arc<Mutex<(Arc<dyn File>, u64)>>,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = Self::open_at_end(path)?;
        Ok(LogFile { path: path.to_path_buf(), open: Arc::new(Mutex::new(file)) })
    }

    fn open_at_end(path: &Path) -> io::Result<(Arc<dyn File>, u64)> {
        let file = SystemFiles.open(path, OpenMode { create: true, ..OpenMode::MODIFY })?;
        let end = file.len()?;
        Ok((file, end))
    }

    /// Goes on in a new file of the same name.
    pub(crate) fn rotate(&self) {
        if let Ok(file) = Self::open_at_end(&self.path) {
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = file;
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.0.write_all_at(bytes, open.1)?;
        open.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins to log. Returns the file, if it is one, for rotation.
pub(crate) fn start(level: &str, file: Option<&Path>) -> Result<Option<LogFile>, String> {
    let level: tracing::Level = level.parse().map_err(|_| format!("'{level}' is no log level"))?;
    let builder = tracing_subscriber::fmt().with_max_level(level).with_target(false);
    match file {
        None => {
            builder.with_writer(io::stderr).with_ansi(false).init();
            Ok(None)
        }
        Some(path) => {
            let file = LogFile::open(path).map_err(|error| error.to_string())?;
            let writer = file.clone();
            builder.with_writer(move || writer.clone()).with_ansi(false).init();
            Ok(Some(file))
        }
    }
}
