//! Parts of the server alone, each beside what the machine allows: `make micro`, or with the name of a case behind `--`.
//!
//! The harness is our own, since a bound that was measured in the same run has to stand beside each figure. The machine's costs come
//! first; a bound counts what a case cannot do without (cache misses that depend on each other, bytes that are copied, system calls,
//! syncs) and nothing else, so a case near 1.0 has nothing left to gain.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

mod codec;
mod index;
mod log;
mod lua;
mod machine;
mod report;
mod runs;
mod tuple;

use machine::Machine;
use report::Report;

/// The server's own allocator: large blocks lie in huge pages.
#[global_allocator]
static ALLOCATOR: runtime::Allocator = runtime::Allocator;

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let machine = Machine::measure();
    println!(
        "this machine: {:.0} ns a miss of all caches, {:.1} ns of the first, {:.1} GB/s copied, {:.0} ns a system call, {:.0} us a synced page",
        machine.miss_ns,
        machine.near_miss_ns,
        1.0 / machine.copy_byte_ns,
        machine.call_ns,
        machine.sync_ns / 1000.0,
    );
    let report = Report::new(filter);
    index::run(&machine, &report);
    tuple::run(&machine, &report);
    codec::run(&machine, &report);
    log::run(&machine, &report);
    runs::run(&machine, &report);
    lua::run(&machine, &report);
}

/// Numbers below `range` without end, in an order that no processor foresees.
fn scattered(range: u64) -> impl Iterator<Item = u64> {
    (0u64..).scan(1u64, move |state, _| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 20) % range)
    })
}
