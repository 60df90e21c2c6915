//! Shared libraries: code that is loaded while the process runs.
//!
//! What is loaded is a copy that has no name. So the file may be overwritten while its code runs, and the next one that is loaded from the same path is
//! another library, which the system would otherwise take for the first.
#![expect(unsafe_code, reason = "dlopen(3), dlsym(3), memfd_create(2)")]

use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A loaded library. Its code goes when it is dropped: nothing of it may run or be called then.
pub struct SharedLibrary {
    handle: *mut c_void,
    path: PathBuf,
    /// Open as long as the library is loaded: its number is a part of the name by which the system knows it.
    copy: OwnedFd,
}

/// What went wrong last. `shown` stands where the system names the copy.
fn last_error(copy: &str, shown: &Path) -> String {
    // SAFETY: the text belongs to this thread until its next call of these functions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown error".to_string();
    }
    // SAFETY: a text of C, ended by a zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().replace(copy, &shown.to_string_lossy())
}

fn copy_name(copy: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", copy.as_raw_fd())
}

fn copy_of(path: &Path) -> io::Result<OwnedFd> {
    // SAFETY: the name is a text of C.
    let descriptor = unsafe { libc::memfd_create(c"shared library".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just made and belongs to nobody else.
    let copy = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut target = File::from(copy);
    io::copy(&mut File::open(path)?, &mut target)?;
    Ok(target.into())
}

impl SharedLibrary {
    /// Loads a library. Runs what it runs when it is loaded. Errors: the reason, with the path.
    pub fn open(path: &Path) -> Result<SharedLibrary, String> {
        let copy = copy_of(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = copy_name(&copy);
        let c_name = CString::new(name.as_str()).expect("a number and letters");
        // SAFETY: the name is a text of C; what the library does when it is loaded is the caller's wish.
        let handle = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(last_error(&name, path));
        }
        Ok(SharedLibrary { handle, path: path.to_path_buf(), copy })
    }

    /// The address of a function, which is valid as long as this is. Errors: the reason, with the path.
    pub fn function(&self, name: &str) -> Result<*mut c_void, String> {
        let no_name = || format!("{}: undefined symbol: {}", self.path.display(), name.escape_debug());
        let symbol = CString::new(name).map_err(|_| no_name())?;
        // SAFETY: the handle is that of an open library.
        let address = unsafe { libc::dlsym(self.handle, symbol.as_ptr()) };
        if address.is_null() {
            return Err(last_error(&copy_name(&self.copy), &self.path));
        }
        Ok(address)
    }
}

impl Drop for SharedLibrary {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once. Nothing of it is in use: the promise of whoever drops it.
        unsafe { libc::dlclose(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::SharedLibrary;
    use std::path::Path;

    #[test]
    fn errors_name_the_file_and_not_its_copy() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let Err(reason) = SharedLibrary::open(&manifest) else { panic!("a text is no library") };
        assert!(reason.starts_with(&manifest.display().to_string()), "{reason}");
        let Err(reason) = SharedLibrary::open(Path::new("/nowhere/x.so")) else { panic!("there is no such file") };
        assert!(reason.starts_with("/nowhere/x.so: "), "{reason}");
    }
}
