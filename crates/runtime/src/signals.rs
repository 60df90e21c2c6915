//! Signals, taken by a thread of their own.
#![expect(unsafe_code, reason = "sigwait(3)")]

use crate::thread::spawn_thread;
use std::io;
use std::sync::OnceLock;

/// Ask the process to end.
pub const TERMINATE: i32 = libc::SIGTERM;
/// Ctrl-C.
pub const INTERRUPT: i32 = libc::SIGINT;
/// Make a checkpoint.
pub const USER_1: i32 = libc::SIGUSR1;
/// Open log files anew.
pub const HANG_UP: i32 = libc::SIGHUP;

/// From now on `signals` no longer do what they do by default but are handed to `handle`, on another thread. Call it before other
/// threads start: they inherit that the signals are blocked. Errors: the system's, for a signal that cannot be handled.
pub fn handle_signals(signals: &[i32], handle: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    // SAFETY: the set is initialised by sigemptyset before it is used; all pointers are to locals.
    let set = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    spawn_thread("signals", move || {
        loop {
            let mut signal = 0;
            // SAFETY: the set is initialised and `signal` a local.
            if unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
                handle(signal);
            }
        }
    })?;
    Ok(())
}

static THREAD_HANDLER: OnceLock<fn()> = OnceLock::new();

extern "C" fn run_thread_handler(_signal: i32) {
    if let Some(handler) = THREAD_HANDLER.get() {
        handler();
    }
}

/// A thread that can be interrupted to run the handler of [`on_thread_signal`].
#[derive(Clone, Copy)]
pub struct SignalTarget {
    thread: libc::pthread_t,
}

impl SignalTarget {
    /// Interrupts the thread, wherever it is. The thread must still live.
    pub fn send(self) {
        // SAFETY: the caller of `on_thread_signal` promised that its thread lives as long as the process.
        unsafe { libc::pthread_kill(self.thread, libc::SIGURG) };
    }
}

/// Makes `handler` what the calling thread runs when it is interrupted through the returned target. The handler runs between any two
/// instructions: it may only read atomics and call what is documented as safe there. The thread must live as long as the process.
/// One handler per process. Errors: the system's, for a signal that cannot be handled.
pub fn on_thread_signal(handler: fn()) -> io::Result<SignalTarget> {
    let _ = THREAD_HANDLER.set(handler);
    // SAFETY: the structure is zeroed, which is valid, and filled; the handler is async-signal-safe by the contract above.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = run_thread_handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        if libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(SignalTarget { thread: libc::pthread_self() })
    }
}

/// Makes a write beyond the largest size that files may have an error (EFBIG) for who writes, and not the end of the process.
pub fn fail_writes_beyond_limit() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Makes the process end quietly when what it prints to is closed (`... | head`), as tools do. Not for servers.
pub fn end_on_closed_output() {
    // SAFETY: sets the default action of a signal; no pointers are involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Raises the limit of open files as far as allowed and returns it.
pub fn raise_open_files_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
    limit.rlim_cur
}
