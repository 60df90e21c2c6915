//! A stack for work that goes deep by recursion, as parsers of libraries do: more of it than a fiber has.

use corosensei::stack::DefaultStack;
use std::cell::RefCell;
use std::io;

/// Address space of the stack, one a thread. It keeps as much memory as the deepest work so far has used.
const LARGE_STACK_BYTES: usize = 16 << 20;

thread_local! {
    static KEPT: RefCell<Option<DefaultStack>> = const { RefCell::new(None) };
}

/// Calls what goes deep and does not yield on a stack of 16 MiB instead of the one that runs. A panic of the work goes on here. Errors: there is no memory
/// for the stack.
pub fn on_large_stack<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    // Work within the work has another one.
    let mut stack = KEPT.take().map_or_else(|| DefaultStack::new(LARGE_STACK_BYTES), Ok)?;
    let done = corosensei::on_stack(&mut stack, work);
    KEPT.set(Some(stack));
    Ok(done)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::on_large_stack;
    use crate::fiber;
    use std::cell::Cell;
    use std::hint::black_box;
    use std::rc::Rc;

    /// Levels of 4 KiB and more.
    fn deep(levels: usize) -> usize {
        let frame = black_box([levels as u8; 4096]);
        if levels == 0 { 0 } else { 1 + deep(levels - 1) + usize::from(frame[0]) - usize::from(black_box(frame)[1]) }
    }

    #[test]
    fn a_fiber_may_go_deeper_than_its_stack() {
        let found = Rc::new(Cell::new((0, 0)));
        let slot = Rc::clone(&found);
        fiber::run_now("deep", move || {
            // 4 MiB and more, and a second time within.
            let outer = on_large_stack(|| (deep(1000), on_large_stack(|| deep(1000)).unwrap()));
            slot.set(outer.unwrap());
        });
        assert_eq!(found.get(), (1000, 1000));
    }

    #[test]
    fn a_panic_of_the_work_goes_on() {
        let fail: fn() = || panic!("within");
        let caught = std::panic::catch_unwind(|| on_large_stack(fail));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"within"));
        assert_eq!(on_large_stack(|| 1).unwrap(), 1);
    }
}
