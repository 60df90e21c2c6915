//! Names of files: the signature at which a file begins, and its kind.

use crate::error::WalError;
use runtime::FileSystem;
use std::path::{Path, PathBuf};

/// The name of a file that begins at a signature.
pub fn file_name(signature: i64, extension: &str) -> String {
    format!("{signature:020}.{extension}")
}

/// Log files of a directory by signature.
///
/// Errors: `Io`.
pub fn logs(files: &dyn FileSystem, dir: &Path) -> Result<Vec<(i64, PathBuf)>, WalError> {
    numbered(files, dir, ".xlog")
}

/// Removes log files that no snapshot from `signature` on needs. Returns how many. Any thread may do it beside the writer of the log.
///
/// Errors: `Io`; some may be removed.
pub fn remove_logs_before(files: &dyn FileSystem, dir: &Path, signature: i64) -> Result<usize, WalError> {
    let found = logs(files, dir)?;
    // A file is needed if rows behind the snapshot are in it: that is, unless the next one begins early enough.
    let obsolete: Vec<&PathBuf> =
        found.windows(2).filter(|pair| pair[1].0 <= signature).map(|pair| &pair[0].1).collect();
    for path in &obsolete {
        files.remove(path).map_err(WalError::io(format!("removing {}", path.display())))?;
    }
    if !obsolete.is_empty() {
        files.sync_dir(dir).map_err(WalError::io(format!("syncing {}", dir.display())))?;
    }
    Ok(obsolete.len())
}

pub(crate) fn numbered(files: &dyn FileSystem, dir: &Path, suffix: &str) -> Result<Vec<(i64, PathBuf)>, WalError> {
    let names = files.list(dir).map_err(WalError::io(format!("listing {}", dir.display())))?;
    let mut found: Vec<(i64, PathBuf)> = names
        .iter()
        .filter_map(|name| {
            let digits = name.strip_suffix(suffix).filter(|digits| digits.len() == 20)?;
            Some((digits.parse().ok()?, dir.join(name)))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// The kind that a file's header must name, by the file's own name.
pub(super) fn kind_of(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "xlog" => "XLOG",
        "snap" => "SNAP",
        "vylog" => "VYLOG",
        "run" => "RUN",
        "index" => "INDEX",
        _ => return None,
    })
}

/// The signature in the name of a log or snapshot.
pub(crate) fn signature_of(path: &Path) -> Option<i64> {
    let stem = path.file_stem()?.to_str()?;
    let kind = path.extension()?.to_str()?;
    let is_named_by_vclock = matches!(kind, "snap" | "xlog") && stem.len() == 20;
    if is_named_by_vclock { stem.parse().ok() } else { None }
}
