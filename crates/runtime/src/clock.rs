//! Time.
#![expect(unsafe_code, reason = "clock_gettime(2)")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Two clocks: one that only goes forward and one that shows the time of day.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some moment; never goes back.
    fn monotonic_ns(&self) -> u64;
    /// The same, some milliseconds late, and cheaper to ask. To be compared with itself only.
    fn coarse_ns(&self) -> u64 {
        self.monotonic_ns()
    }
    /// Nanoseconds since 1970 in UTC; may jump.
    fn wall_ns(&self) -> u64;
    /// How long processors have worked for this process; nothing where time is simulated.
    fn processor_time(&self) -> ProcessorTime {
        ProcessorTime::default()
    }
}

/// How long processors have worked for a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// In the process itself, microseconds.
    pub user_us: u64,
    /// In the kernel for it, microseconds.
    pub system_us: u64,
}

/// The clocks of the operating system.
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn monotonic_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn coarse_ns(&self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a local. Without this clock it stays 0, and whoever asks sees no time pass.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn wall_ns(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    }

    fn processor_time(&self) -> ProcessorTime {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a local of that type, for which zeros are a value: it stays so if the call fails.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        ProcessorTime { user_us: us(usage.ru_utime), system_us: us(usage.ru_stime) }
    }
}

/// A clock that stands still until it is moved.
#[derive(Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn monotonic_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn wall_ns(&self) -> u64 {
        // Some moment in 2026, so that times look like times.
        1_790_000_000_000_000_000 + self.monotonic_ns()
    }
}
