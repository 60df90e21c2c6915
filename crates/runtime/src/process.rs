//! Other programs: started without a copy of this process, watched through a descriptor.
//!
//! `posix_spawn` shares the memory until the other program runs, so a server of many gigabytes starts one as fast as a small one. What this process has
//! open is closed to it: every descriptor is marked before the first program starts.
#![expect(unsafe_code, reason = "posix_spawn(3), pidfd_open(2), waitpid(2), kill(2)")]

use crate::simulation;
use std::ffi::{CString, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What one of the three standard streams of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardStream {
    /// That of this process.
    Inherit,
    /// Nothing: `/dev/null`.
    Null,
    /// Not open.
    Closed,
    /// A pipe to this process, whose end never blocks.
    Pipe,
}

/// A program to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, from the root or from the working directory.
    pub path: CString,
    /// Its arguments, from its name on.
    pub arguments: Vec<CString>,
    /// Its environment; none: that of this process.
    pub environment: Option<Vec<CString>>,
    /// Standard input, output and error.
    pub streams: [StandardStream; 3],
    /// It leads a session of its own.
    pub leads_session: bool,
    /// No other descriptors are open in it.
    pub closes_others: bool,
    /// Signals that this process ignores or blocks act on it as usual.
    pub restores_signals: bool,
}

/// A program that was started.
pub struct Running {
    /// Its number.
    pub pid: i32,
    /// Becomes readable when it ends.
    pub watch: OwnedFd,
    /// This process' ends of pipes.
    pub pipes: [Option<OwnedFd>; 3],
}

/// How a program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with a code.
    Exited(i32),
    /// By a signal.
    Signaled(i32),
}

/// The first descriptor behind the standard ones.
const FIRST_OTHER: u32 = 3;
/// Signals have the numbers below.
const SIGNALS_END: c_int = 65;

fn check(code: c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// What is done with descriptors in the program before it runs. Freed on drop.
struct Actions(MaybeUninit<libc::posix_spawn_file_actions_t>);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut actions = Actions(MaybeUninit::uninit());
        // SAFETY: the call fills the structure.
        let code = unsafe { libc::posix_spawn_file_actions_init(actions.0.as_mut_ptr()) };
        check(code).inspect_err(|_| std::process::abort()).map(|()| actions)
    }

    fn dup(&mut self, from: RawFd, to: RawFd) -> io::Result<()> {
        // SAFETY: the structure was filled by `new`.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(self.0.as_mut_ptr(), from, to) })
    }

    fn close(&mut self, fd: RawFd) -> io::Result<()> {
        // SAFETY: as above.
        check(unsafe { libc::posix_spawn_file_actions_addclose(self.0.as_mut_ptr(), fd) })
    }

    fn open_null(&mut self, fd: RawFd) -> io::Result<()> {
        // SAFETY: as above; the path ends with a zero and is copied.
        check(unsafe {
            libc::posix_spawn_file_actions_addopen(self.0.as_mut_ptr(), fd, c"/dev/null".as_ptr(), libc::O_RDWR, 0)
        })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: the structure was filled by `new`.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

/// Signals, session. Freed on drop.
struct Attributes(MaybeUninit<libc::posix_spawnattr_t>);

impl Attributes {
    fn new(program: &Program) -> io::Result<Self> {
        let mut attributes = Attributes(MaybeUninit::uninit());
        // SAFETY: the call fills the structure.
        check(unsafe { libc::posix_spawnattr_init(attributes.0.as_mut_ptr()) })
            .inspect_err(|_| std::process::abort())?;
        let mut flags = 0;
        if program.leads_session {
            flags |= libc::POSIX_SPAWN_SETSID as c_int;
        }
        if program.restores_signals {
            flags |= libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
            let mut all = MaybeUninit::uninit();
            let mut none = MaybeUninit::uninit();
            // SAFETY: the first call fills each set, the others change and copy filled ones; the attributes were filled above.
            unsafe {
                libc::sigemptyset(none.as_mut_ptr());
                libc::sigemptyset(all.as_mut_ptr());
                for signal in (1..SIGNALS_END).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)) {
                    libc::sigaddset(all.as_mut_ptr(), signal);
                }
                check(libc::posix_spawnattr_setsigdefault(attributes.0.as_mut_ptr(), all.as_ptr()))?;
                check(libc::posix_spawnattr_setsigmask(attributes.0.as_mut_ptr(), none.as_ptr()))?;
            }
        }
        // SAFETY: the attributes were filled above.
        check(unsafe { libc::posix_spawnattr_setflags(attributes.0.as_mut_ptr(), flags as _) })?;
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the structure was filled by `new`.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}

/// Both ends of a pipe: to read from, to write to. No program inherits them.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the call fills the array with two descriptors that are ours then.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        let ends = (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]));
        // A descriptor among the standard ones would be in the way of what is done there.
        if ends.0.as_raw_fd() < FIRST_OTHER as RawFd || ends.1.as_raw_fd() < FIRST_OTHER as RawFd {
            return Err(io::Error::other("a standard stream of this process is closed"));
        }
        Ok(ends)
    }
}

fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers are involved; the descriptor is open.
    let code = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts a program. Errors: the system's; that of running the file among them.
pub fn start(program: &Program) -> io::Result<Running> {
    if simulation::current().is_some() {
        return Err(io::Error::other("no programs are simulated"));
    }
    let mut actions = Actions::new()?;
    let attributes = Attributes::new(program)?;
    let (mut pipes, mut theirs) = ([None, None, None], Vec::new());
    for (at, stream) in program.streams.iter().enumerate() {
        match stream {
            StandardStream::Inherit => {}
            StandardStream::Null => actions.open_null(at as RawFd)?,
            StandardStream::Closed => actions.close(at as RawFd)?,
            StandardStream::Pipe => {
                let (reading, writing) = pipe()?;
                let (own, other) = if at == 0 { (writing, reading) } else { (reading, writing) };
                set_nonblocking(&own)?;
                actions.dup(other.as_raw_fd(), at as RawFd)?;
                pipes[at] = Some(own);
                theirs.push(other);
            }
        }
    }
    if program.closes_others {
        // SAFETY: no pointers are involved; the descriptors stay as they are in this process. Kernels before 5.11 do not know the call, and then
        // only what was not opened for this process alone is inherited.
        unsafe { libc::syscall(libc::SYS_close_range, FIRST_OTHER, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    }
    let pointers = |texts: &[CString]| -> Vec<*mut libc::c_char> {
        texts.iter().map(|text| text.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
    };
    let arguments = pointers(&program.arguments);
    let environment = match &program.environment {
        Some(environment) => environment.clone(),
        None => own_environment(),
    };
    let environment = pointers(&environment);
    let mut pid = 0;
    // SAFETY: the lists end with null and their texts, which end with a zero, are borrowed beyond the call; the structures were filled.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.path.as_ptr(),
            actions.0.as_ptr(),
            attributes.0.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    })?;
    drop(theirs);
    // SAFETY: no pointers are involved. The number is that of our child, which stays until we have waited for it.
    let watch = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if watch < 0 {
        let error = io::Error::last_os_error();
        // Nobody could learn of its end.
        let _ = send_signal(pid, libc::SIGKILL, false);
        let mut status = 0;
        // SAFETY: the status is written to a variable; the child is ours.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        return Err(error);
    }
    // SAFETY: the call has made the descriptor for us.
    let watch = unsafe { OwnedFd::from_raw_fd(watch as RawFd) };
    Ok(Running { pid, watch, pipes })
}

fn own_environment() -> Vec<CString> {
    use std::os::unix::ffi::OsStrExt;
    let pairs = std::env::vars_os().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    pairs.filter_map(|pair| CString::new(pair).ok()).collect()
}

/// How a program has ended; none: it runs. After it has told, its number is no longer its own. Errors: it is none of ours.
pub fn look(pid: i32) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: the status is written to a variable.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        found if found == pid && libc::WIFSIGNALED(status) => Ok(Some(Ended::Signaled(libc::WTERMSIG(status)))),
        found if found == pid => Ok(Some(Ended::Exited(libc::WEXITSTATUS(status)))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a signal to a program of ours that `look` has not told the end of, or to its whole group. Errors: the system's.
pub fn send_signal(pid: i32, signal: i32, to_group: bool) -> io::Result<()> {
    if pid <= 1 {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // SAFETY: no pointers are involved.
    let code = unsafe { libc::kill(if to_group { -pid } else { pid }, signal) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    fn program(arguments: &[&str], streams: [StandardStream; 3]) -> Program {
        let arguments: Vec<CString> = arguments.iter().map(|text| CString::new(*text).unwrap()).collect();
        Program {
            path: arguments[0].clone(),
            arguments,
            environment: None,
            streams,
            leads_session: false,
            closes_others: true,
            restores_signals: true,
        }
    }

    fn ended(running: &Running) -> Ended {
        loop {
            if let Some(ended) = look(running.pid).unwrap() {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    fn read(end: OwnedFd) -> String {
        let mut file = File::from(end);
        let mut text = Vec::new();
        let mut some = [0; 1000];
        loop {
            match file.read(&mut some) {
                Ok(0) => return String::from_utf8(text).unwrap(),
                Ok(count) => text.extend_from_slice(&some[..count]),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    std::thread::yield_now();
                }
            }
        }
    }

    #[test]
    fn a_program_talks_through_its_pipes_and_tells_how_it_ended() {
        use StandardStream::{Closed, Inherit, Null, Pipe};
        let mut running = start(&program(&["/bin/cat"], [Pipe, Pipe, Inherit])).unwrap();
        File::from(running.pipes[0].take().unwrap()).write_all(b"hello").unwrap();
        assert_eq!(read(running.pipes[1].take().unwrap()), "hello");
        assert_eq!(ended(&running), Ended::Exited(0));
        assert!(look(running.pid).is_err(), "it has told");
        let mut running =
            start(&program(&["/bin/sh", "-c", "ls /proc/self/fd; exit 7"], [Null, Pipe, Closed])).unwrap();
        // What ls opens for itself comes behind.
        let open = read(running.pipes[1].take().unwrap());
        assert!(open.lines().all(|fd| fd.parse::<u32>().unwrap() <= 3), "{open}");
        assert_eq!(ended(&running), Ended::Exited(7));
        let running = start(&program(&["/bin/sleep", "100"], [Null; 3])).unwrap();
        send_signal(running.pid, libc::SIGTERM, false).unwrap();
        assert_eq!(ended(&running), Ended::Signaled(libc::SIGTERM));
        assert_eq!(
            start(&program(&["/no/such"], [Null; 3])).map(|_| ()).unwrap_err().raw_os_error(),
            Some(libc::ENOENT)
        );
        assert!(
            send_signal(-1, 9, false).is_err() && send_signal(0, 9, false).is_err() && send_signal(1, 9, true).is_err()
        );
    }
}
