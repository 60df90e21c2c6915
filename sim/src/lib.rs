//! Breaks the database on purpose, in one thread and from fixed beginnings, and checks that it keeps its word.
//!
//! The database runs over simulated files ([`runtime::SimulatedFiles`]), which lose, tear and reorder whatever was not synced. What its
//! rows must be is known from a model of a page ([`model`]). Three tools are exhaustive over something small, one is random over
//! something large:
//!
//! * [`crash_points`]: one workload with everything in it; the power goes at every change of a file, in every way, and again at every change
//!   that the recovery makes.
//! * [`histories`]: every sequence of a few operations, the power gone at every change of each.
//! * [`errors`]: the N-th operation on files fails, and the N-th allocation, for every N.
//! * [`machine`]: the whole server with clients on a simulated machine, from many seeds.
//! * [`planted`]: bugs put in on purpose, each of which must be found.
//!
//! Reading order: `model`, `script` (operations on both the database and the model), `check` (what a recovery may find), then the tools.
//! Who calls it: the binary `sim`, and the tests in `sim/tests`. No part of the product uses this package.
//!
//! Invariant: the same arguments give the same states, findings and counts; no wall clock, no thread, no address matters.

pub mod check;
pub mod crash_points;
pub mod errors;

pub mod histories;
pub mod machine;
pub mod model;

pub mod planted;
pub mod removed;
pub mod report;
pub mod run;
pub mod script;
pub mod world;
