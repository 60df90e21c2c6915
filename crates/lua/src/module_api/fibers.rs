//! Fibers and conditions. A pointer to a fiber is its number.
#![expect(unsafe_code, reason = "the boundary to modules in C: pointers and lengths that they give")]

use super::errors::set_last;
use super::{c_str, status};
use crate::registry::{context, database};
use database::{Error, ErrorCode, ErrorKind};
use runtime::fiber::{self, FiberId, Wake};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

/// A fiber of a module: what it runs, and what becomes of it.
#[derive(Default)]
struct ModuleFiber {
    /// Arguments of `fiber_start`, once it was called; null if it was woken instead.
    started: Cell<Option<*mut c_void>>,
    is_joinable: Cell<bool>,
    /// What its function returned.
    result: Cell<Option<c_int>>,
}

thread_local! {
    /// Those that have not ended, and those that somebody is going to wait for.
    static FIBERS: RefCell<HashMap<FiberId, Rc<ModuleFiber>>> = RefCell::default();
}

unsafe extern "C" {
    fn lycosa_call_fiber(function: *mut c_void, arguments: *mut c_void) -> c_int;
}

fn fiber_of(pointer: *mut c_void) -> FiberId {
    FiberId(pointer.addr() as u64)
}

/// Whether a fiber of a module is there, whose code has to stay.
pub(super) fn are_there() -> bool {
    FIBERS.with_borrow(|fibers| !fibers.is_empty())
}

fn module_fiber(id: FiberId) -> Option<Rc<ModuleFiber>> {
    FIBERS.with_borrow(|fibers| fibers.get(&id).cloned())
}

/// The running fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_self() -> *mut c_void {
    std::ptr::without_provenance_mut(fiber::current().map_or(1, |id| id.0 as usize))
}

/// A fiber that waits until it is started; no pointer if there are too many.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_new(name: *const c_char, function: *mut c_void) -> *mut c_void {
    let own = Rc::new(ModuleFiber::default());
    let creator = context();
    let new_context = Rc::new(database::Context::for_background(Rc::clone(&creator.session)));
    new_context.act_again(creator.acting());
    let inner = Rc::clone(&own);
    let function = function.expose_provenance();
    let made = fiber::try_spawn(&c_str(name), move || {
        fiber::set_local(Rc::clone(&new_context) as Rc<dyn Any>);
        while inner.started.get().is_none() && !fiber::is_cancelled() {
            if fiber::park() == Wake::Woken && inner.started.get().is_none() {
                inner.started.set(Some(std::ptr::null_mut()));
            }
        }
        let arguments = inner.started.get().unwrap_or(std::ptr::null_mut());
        // SAFETY: the module's function, and the arguments of a `fiber_start` that has not returned yet.
        let result = unsafe { lycosa_call_fiber(std::ptr::with_exposed_provenance_mut(function), arguments) };
        inner.result.set(Some(result));
        if new_context.is_in_txn() {
            database().abandon(&new_context);
        }
        if let (Some(id), false) = (fiber::current(), inner.is_joinable.get()) {
            FIBERS.with_borrow_mut(|fibers| fibers.remove(&id));
        }
    });
    match made {
        Ok(id) => {
            FIBERS.with_borrow_mut(|fibers| fibers.insert(id, own));
            std::ptr::without_provenance_mut(id.0 as usize)
        }
        Err(many) => {
            set_last(Error::new(ErrorCode::MemoryIssue, &[&many.stack_bytes, &"stacks", &"a fiber"]));
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lycosa_fiber_start(pointer: *mut c_void, arguments: *mut c_void) {
    let id = fiber_of(pointer);
    if let Some(own) = module_fiber(id) {
        own.started.set(Some(arguments));
    }
    fiber::wake(id);
    fiber::switch_to(id);
}

/// Lets the others run; goes on when woken.
#[unsafe(no_mangle)]
extern "C" fn fiber_yield() {
    fiber::park();
}

/// Lets the others run once.
#[unsafe(no_mangle)]
extern "C" fn fiber_reschedule() {
    fiber::yield_now();
}

/// Wakes a fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_wakeup(pointer: *mut c_void) {
    fiber::wake(fiber_of(pointer));
}

/// Cancels a fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_cancel(pointer: *mut c_void) {
    fiber::cancel(fiber_of(pointer));
}

/// True if the running fiber is cancelled.
#[unsafe(no_mangle)]
extern "C" fn fiber_is_cancelled() -> bool {
    fiber::is_cancelled()
}

/// Accepted without effect: a fiber here can always be cancelled.
#[unsafe(no_mangle)]
extern "C" fn fiber_set_cancellable(_: bool) -> bool {
    true
}

/// Whether somebody will wait for the end of a fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_set_joinable(pointer: *mut c_void, is_joinable: bool) {
    if let Some(own) = module_fiber(fiber_of(pointer)) {
        own.is_joinable.set(is_joinable);
    }
}

/// Waits for the end of a fiber; what its function returned.
#[unsafe(no_mangle)]
extern "C" fn fiber_join(pointer: *mut c_void) -> c_int {
    let id = fiber_of(pointer);
    let own = module_fiber(id);
    while fiber::status(id) != fiber::Status::Dead {
        if fiber::join(id) == Wake::Cancelled {
            break;
        }
    }
    FIBERS.with_borrow_mut(|fibers| fibers.remove(&id));
    own.and_then(|own| own.result.get()).unwrap_or(-1)
}

pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 1e9) * 1e9) as u64
}

/// Waits for a time.
#[unsafe(no_mangle)]
extern "C" fn fiber_sleep(seconds: f64) {
    fiber::sleep(nanoseconds(seconds));
}

/// Seconds of the steady clock.
#[unsafe(no_mangle)]
extern "C" fn fiber_clock() -> f64 {
    fiber::now_ns() as f64 / 1e9
}

/// Microseconds of the steady clock.
#[unsafe(no_mangle)]
extern "C" fn fiber_clock64() -> u64 {
    fiber::now_ns() / 1000
}

/// Fibers that wait for something.
#[derive(Default)]
struct Waiting(RefCell<VecDeque<FiberId>>);

/// A condition.
#[unsafe(no_mangle)]
extern "C" fn fiber_cond_new() -> *mut c_void {
    Box::into_raw(Box::<Waiting>::default()).cast()
}

/// Ends a condition that nobody waits for.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_delete(cond: *mut c_void) {
    // SAFETY: what `fiber_cond_new` gave.
    drop(unsafe { Box::from_raw(cond.cast::<Waiting>()) });
}

/// Wakes one who waits.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_signal(cond: *mut c_void) {
    // SAFETY: what `fiber_cond_new` gave.
    let first = unsafe { &*cond.cast::<Waiting>() }.0.borrow_mut().pop_front();
    if let Some(id) = first {
        fiber::wake(id);
    }
}

/// Wakes all who wait.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_broadcast(cond: *mut c_void) {
    // SAFETY: what `fiber_cond_new` gave.
    let waiting = unsafe { &*cond.cast::<Waiting>() }.0.take();
    waiting.into_iter().for_each(fiber::wake);
}

/// Waits for a condition; -1 if the time is over or the fiber is cancelled.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_wait_timeout(cond: *mut c_void, seconds: f64) -> c_int {
    // SAFETY: what `fiber_cond_new` gave.
    let waiting = unsafe { &*cond.cast::<Waiting>() };
    let Some(id) = fiber::current() else { return -1 };
    waiting.0.borrow_mut().push_back(id);
    let wake = fiber::park_until((seconds < 1e9).then(|| fiber::now_ns().saturating_add(nanoseconds(seconds))));
    if wake == Wake::Woken {
        return 0;
    }
    waiting.0.borrow_mut().retain(|other| *other != id);
    status(Err(match wake {
        Wake::Cancelled => Error::raw(0, ErrorKind::Lua, "fiber is cancelled"),
        _ => Error::new(ErrorCode::Timeout, &[]),
    }))
}

/// Waits for a condition.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_wait(cond: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { fiber_cond_wait_timeout(cond, f64::INFINITY) }
}
