//! The end of Lua code that holds the thread for too long.
//!
//! A thread looks ten times a second which slice (a fiber's time between two waits) the transaction thread is in. If it is the same one
//! for too long it sends the transaction thread a signal, whose handler makes LuaJIT's next check of hooks raise an error. The
//! handler compares the slice again, on the thread itself, so that a fiber that came after is not hit.

use crate::state::{State, interrupt};
use runtime::fiber;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(100);

static STATE: AtomicPtr<mlua_sys::lua_State> = AtomicPtr::new(std::ptr::null_mut());
/// The slice that is to be ended.
static DOOMED: AtomicU64 = AtomicU64::new(0);

fn on_signal() {
    let doomed = DOOMED.load(Ordering::Acquire);
    if doomed != 0 && fiber::running_slice() == doomed {
        interrupt(STATE.load(Ordering::Acquire));
    }
}

/// Begins to watch the calling thread; `slice_max_ms` is the longest slice.
pub(crate) fn start(state: State, slice_max_ms: u64) -> std::io::Result<()> {
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
            if periods * PERIOD.as_millis() as u64 >= slice_max_ms {
                DOOMED.store(slice, Ordering::Release);
                target.send();
            }
        }
    })?;
    Ok(())
}
