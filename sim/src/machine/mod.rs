//! The whole server on a simulated machine: database, event loop and Lua, files, sockets, threads and time, all from one seed.

pub mod branch;
mod client;
mod flip;
pub mod limits;
mod process;
pub mod runs;
pub mod seed;
mod watch;

pub use watch::trace_so_far;
