//! The machine: files, clock, randomness, threads and fibers, each with a real and a simulated half.
//!
//! The only crate that meets the operating system. Code above it is given a [`FileSystem`], a [`Clock`] and a [`Randomness`] and cannot
//! tell which half it has. Fibers are the same in both: their clock is set from outside.
//!
//! Invariants:
//! * Nothing here knows rows, logs or protocols.
//! * A write that was not synced may be lost or torn by the simulated half, always.

mod aligned;
mod allocator;
mod clock;
pub mod fiber;
mod file;
mod large_stack;
pub mod net;
mod notify;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod process;
mod random;
pub mod reactor;
mod read_queue;
mod read_ring;
mod read_threads;
mod shared_library;
pub mod signals;
mod simulation;
pub mod terminal;
mod thread;
pub mod tls;
mod write_ring;

pub use aligned::{AlignedBuffer, PAGE_BYTES};
pub use allocator::{Allocator, give_back, touch};
pub use clock::{Clock, ManualClock, ProcessorTime, SystemClock};
pub use file::{ChangePoint, Fault, FileOperation, Loss, OperationKind, ReadFault, SimulatedFiles, Tear};
pub use file::{File, FileDescription, FileKind, FileSystem, OpenMode, SlotFile, Slots, SystemFiles};
pub use file::{describe, enter_directory, open_any, read_file, write_file};
pub use large_stack::on_large_stack;
pub use notify::Notifier;
pub use random::{Randomness, SeededRandomness, SystemRandomness};
pub use read_queue::ReadQueue;
pub use shared_library::SharedLibrary;
pub use simulation::{MachineConfig, PacedFiles, Simulation};
pub use thread::{
    Condvar, JoinHandle, Pace, idle_priority, lower_priority, pause, physical_memory, processors, spawn_thread,
    thread_name, yield_priority, yield_thread,
};
pub use write_ring::WriteRing;
