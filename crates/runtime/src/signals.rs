//! Signals, taken by a thread of their own.
#![expect(unsafe_code, reason = "sigwait(3)")]

use crate::thread::spawn_thread;
use std::io;

/// Ask the process to end.
pub const TERMINATE: i32 = libc::SIGTERM;
/// Ctrl-C.
pub const INTERRUPT: i32 = libc::SIGINT;
/// Open log files anew.
pub const HANG_UP: i32 = libc::SIGHUP;

/// From now on `signals` no longer do what they do by default but are handed to `handle`, on another thread. Call it before other
/// threads start: they inherit that the signals are blocked.
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
