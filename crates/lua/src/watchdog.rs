//! The end of Lua code that holds the thread for too long.
//!
//! A thread looks ten times a second which slice (a fiber's time between two waits) the transaction thread is in. If it is the same one
//! for too long it sends the transaction thread a signal, whose handler makes LuaJIT's next check of hooks raise an error. The
//! handler compares the slice again, on the thread itself, so that a fiber that came after is not hit.
//!
//! A script of another protocol (Redis' `EVAL`) may run longer: by the same way it is interrupted for a moment, gives way and goes on. While there is
//! one the thread looks more often.

use crate::state::{State, interrupt, interrupt_briefly};
use runtime::fiber;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(100);

static STATE: AtomicPtr<mlua_sys::lua_State> = AtomicPtr::new(std::ptr::null_mut());
/// The slice that is to be ended.
static DOOMED: AtomicU64 = AtomicU64::new(0);
/// Longest slice in milliseconds; 0 for no bound.
static SLICE_MAX_MS: AtomicU64 = AtomicU64::new(0);
/// The process is asked to stop: from now on no slice is unbounded.
static IS_STOP_ASKED: AtomicBool = AtomicBool::new(false);
/// Between two looks while scripts run.
const SCRIPT_PERIOD: Duration = Duration::from_millis(5);
/// Scripts under way, and how long one of them may have the thread before it gives way, in milliseconds.
static SCRIPTS: AtomicU64 = AtomicU64::new(0);
static SCRIPT_MS: AtomicU64 = AtomicU64::new(u64::MAX);
/// The slice that is to give way.
static LONG: AtomicU64 = AtomicU64::new(0);
/// How long code may hold the thread once the process is asked to stop.
const STOP_MS: u64 = 1000;
static IS_WATCHING: AtomicBool = AtomicBool::new(false);

fn on_signal() {
    let doomed = DOOMED.load(Ordering::Acquire);
    if doomed != 0 && fiber::running_slice() == doomed {
        interrupt(STATE.load(Ordering::Acquire));
    } else if is_long() {
        interrupt_briefly(STATE.load(Ordering::Acquire));
    }
}

/// While it is there a script runs that gives way.
pub(crate) struct ScriptWatch;

impl ScriptWatch {
    /// `busy_after_ms`: how long it may have the thread to itself.
    pub(crate) fn begin(busy_after_ms: u64) -> Self {
        SCRIPT_MS.store(busy_after_ms, Ordering::Release);
        SCRIPTS.fetch_add(1, Ordering::AcqRel);
        ScriptWatch
    }

    /// How long the one that runs may have the thread from now on.
    pub(crate) fn set_bound(milliseconds: u64) {
        SCRIPT_MS.store(milliseconds, Ordering::Release);
    }
}

impl Drop for ScriptWatch {
    fn drop(&mut self) {
        SCRIPTS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// True if the slice that runs is to give way.
pub(crate) fn is_long() -> bool {
    let slice = fiber::running_slice();
    slice != 0 && slice == LONG.load(Ordering::Acquire)
}

/// True once the process is asked to stop.
pub(crate) fn is_stop_asked() -> bool {
    IS_STOP_ASKED.load(Ordering::Acquire)
}

/// The slice that runs is to be ended.
pub(crate) fn doom_running_slice() {
    DOOMED.store(fiber::running_slice(), Ordering::Release);
}

/// True if the slice that runs is the one that is to be ended.
pub(crate) fn is_doomed() -> bool {
    fiber::running_slice() == DOOMED.load(Ordering::Acquire)
}

/// Says that the process is to stop: code that holds the thread, also that of the main script, is ended after a second. Any thread may call it.
pub fn ask_to_stop() {
    IS_STOP_ASKED.store(true, Ordering::Release);
}

/// Sets the longest slice; 0 for no bound. The first bound begins the watch over the calling thread, whose main Lua thread is `state`.
pub(crate) fn set_slice_max_ms(state: State, milliseconds: u64) -> std::io::Result<()> {
    SLICE_MAX_MS.store(milliseconds, Ordering::Release);
    if milliseconds == 0 || IS_WATCHING.swap(true, Ordering::AcqRel) { Ok(()) } else { start(state) }
}

fn start(state: State) -> std::io::Result<()> {
    STATE.store(state.0, Ordering::Release);
    let target = runtime::signals::on_thread_signal(on_signal)?;
    runtime::spawn_thread("watchdog", move || {
        let (mut last, mut held_ms) = (0, 0u64);
        loop {
            let has_scripts = SCRIPTS.load(Ordering::Acquire) > 0;
            let period = if has_scripts { SCRIPT_PERIOD } else { PERIOD };
            runtime::pause(period.as_nanos() as u64);
            let slice = fiber::running_slice();
            if slice == 0 || slice != last {
                (last, held_ms) = (slice, 0);
                continue;
            }
            held_ms += period.as_millis() as u64;
            let bound = SLICE_MAX_MS.load(Ordering::Acquire);
            let is_bounded = bound != 0 && slice & fiber::UNBOUNDED_SLICE == 0;
            let is_stopped = is_stop_asked() && held_ms >= STOP_MS;
            if has_scripts
                && held_ms >= SCRIPT_MS.load(Ordering::Acquire)
                && LONG.swap(slice, Ordering::AcqRel) != slice
            {
                target.send();
            } else if is_stopped || is_bounded && held_ms >= bound {
                DOOMED.store(slice, Ordering::Release);
                target.send();
            }
        }
    })?;
    Ok(())
}
