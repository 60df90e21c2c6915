//! The end of Lua code that holds the thread for too long.
//!
//! A thread looks ten times a second which slice (a fiber's time between two waits) the transaction thread is in. If it is the same one
//! for too long it sends the transaction thread a signal, whose handler makes LuaJIT's next check of hooks raise an error. The
//! handler compares the slice again, on the thread itself, so that a fiber that came after is not hit.

use crate::state::{State, interrupt};
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
/// How long code may hold the thread once the process is asked to stop, in periods.
const STOP_PERIODS: u64 = 10;
static IS_WATCHING: AtomicBool = AtomicBool::new(false);

fn on_signal() {
    let doomed = DOOMED.load(Ordering::Acquire);
    if doomed != 0 && fiber::running_slice() == doomed {
        interrupt(STATE.load(Ordering::Acquire));
    }
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
        let (mut last, mut periods) = (0, 0u64);
        loop {
            runtime::pause(PERIOD.as_nanos() as u64);
            let slice = fiber::running_slice();
            if slice == 0 || slice != last {
                (last, periods) = (slice, 0);
                continue;
            }
            periods += 1;
            let bound = SLICE_MAX_MS.load(Ordering::Acquire);
            let is_bounded = bound != 0 && slice & fiber::UNBOUNDED_SLICE == 0;
            let is_stopped = IS_STOP_ASKED.load(Ordering::Acquire) && periods >= STOP_PERIODS;
            if is_stopped || is_bounded && periods * PERIOD.as_millis() as u64 >= bound {
                DOOMED.store(slice, Ordering::Release);
                target.send();
            }
        }
    })?;
    Ok(())
}
