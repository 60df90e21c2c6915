//! What the machine can do, measured first: the bounds of everything else are made of it.

use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Larger than any cache of the processor.
const MEMORY_BYTES: usize = 256 << 20;
const LINE_BYTES: usize = 64;
const SYNCED_BYTES: usize = 4096;

/// Costs of the machine's own operations, in nanoseconds.
pub(crate) struct Machine {
    /// A read of memory that no cache has, by an address that the read before gave.
    pub(crate) miss_ns: f64,
    /// The same of a line in the second cache.
    pub(crate) near_miss_ns: f64,
    /// Copying a byte from memory to memory.
    pub(crate) copy_byte_ns: f64,
    /// The same within the first cache.
    pub(crate) near_copy_byte_ns: f64,
    /// A system call that does nothing.
    pub(crate) call_ns: f64,
    /// Overwriting a page of a file and waiting until it is on the device.
    pub(crate) sync_ns: f64,
}

impl Machine {
    /// Takes a second or two.
    pub(crate) fn measure() -> Self {
        Machine {
            miss_ns: best(|| chase(MEMORY_BYTES)),
            near_miss_ns: chase(256 << 10),
            copy_byte_ns: best(|| copy(MEMORY_BYTES, 1)),
            near_copy_byte_ns: best(|| copy(8 << 10, 10_000)),
            call_ns: system_call(),
            sync_ns: sync(),
        }
    }
}

/// Follows a ring through all lines of so much memory, in no order that could be foreseen.
fn chase(bytes: usize) -> f64 {
    const STEP: usize = LINE_BYTES / size_of::<usize>();
    let lines = bytes / LINE_BYTES;
    let mut order: Vec<usize> = (0..lines).collect();
    let mut state = 1u64;
    for at in (1..lines).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    let mut ring = vec![0usize; lines * STEP];
    for pair in order.windows(2) {
        ring[pair[0] * STEP] = pair[1] * STEP;
    }
    ring[order[lines - 1] * STEP] = order[0] * STEP;
    let steps = 2_000_000;
    let mut at = 0;
    let begun = Instant::now();
    for _ in 0..steps {
        at = ring[at];
    }
    black_box(at);
    begun.elapsed().as_nanos() as f64 / f64::from(steps)
}

/// What disturbs a measurement only adds to it.
fn best(measure: impl Fn() -> f64) -> f64 {
    (0..3).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

fn copy(bytes: usize, times: usize) -> f64 {
    let source = vec![1u8; bytes];
    let mut target = vec![2u8; bytes];
    let begun = Instant::now();
    for _ in 0..times {
        target.copy_from_slice(black_box(&source));
        black_box(&target);
    }
    begun.elapsed().as_nanos() as f64 / (bytes * times) as f64
}

fn system_call() -> f64 {
    let (reader, _writer) = std::io::pipe().expect("two descriptors are left");
    let file = File::from(std::os::fd::OwnedFd::from(reader));
    assert!(file.as_raw_fd() >= 0);
    let calls = 200_000;
    let begun = Instant::now();
    for _ in 0..calls {
        // A pipe cannot be read at an offset: the call is refused at once.
        let _ = black_box(file.read_at(&mut [0], 0));
    }
    begun.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn sync() -> f64 {
    let file = tempfile::tempfile_in(".").expect("the current directory takes a file");
    let page = [7; SYNCED_BYTES];
    let pages = 64;
    for at in 0..pages {
        file.write_all_at(&page, at * SYNCED_BYTES as u64).expect("the disk has room for a few pages");
    }
    file.sync_all().expect("the disk works");
    let begun = Instant::now();
    for at in 0..pages {
        file.write_all_at(&page, at * SYNCED_BYTES as u64).expect("the pages are there");
        file.sync_data().expect("the disk works");
    }
    begun.elapsed().as_nanos() as f64 / pages as f64
}
