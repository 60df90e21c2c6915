//! The whole server on a simulated machine: database, event loop and Lua, files, sockets, threads and time, all from one seed.

mod client;
mod process;
pub mod seed;
