//! Workloads that doubt a database, and the checkers that judge what it did.
//!
//! A [`Workload`] says how to make its spaces, what its clients ask for and what must always hold. A [`Client`] is a state machine: it names
//! its next [`Operation`] and is told the [`Outcome`]. Whoever drives it (`lycosa torture` with threads and a real process, a simulator with
//! one thread) writes every operation into a [`History`] with the moments at which it was asked and answered, and tells when the server died.
//! From the history and a view of what is there now a workload finds the first [`Violation`], if there is one.
//!
//! What clients of other protocols ask for goes through their [`Doors`]: [`through_doors`] has its workloads, a [`Speaker`] the words.
//!
//! This crate opens no file, socket or thread, and knows no server: operations are values, not bytes.
//!
//! Invariants:
//! * The same seed gives the same clients, and the same history and view the same verdict.
//! * What every checker holds to: an acknowledged operation is there after any crash; one without an answer happened wholly or not at all; a
//!   refused one did not happen; and nothing that an answer showed is gone later.

mod cycles;
mod doors;
mod engines;
mod history;
mod journal;
mod keyed;
mod linear;
mod operation;
mod value;
mod wire;
mod workload;
mod workloads;

pub use cycles::{Anomaly, Fate, Phenomenon, Promise, Step, Transaction, anomalies};
pub use doors::{Ask, Door, Doors, Level, Lock, Place, Speaker, Spot, Statement, Tongue};
pub use engines::Engines;
pub use history::{History, Kind, Outcome, Record, Refusal, Violation};
pub use linear::{Action, Single, first_impossible};
pub use operation::{Operation, Order, Space, User};
pub use value::Value;
pub use wire::Exchange;
pub use workload::{Client, Dice, View, Workload};
pub use workloads::{CLIENTS, REGISTERS_SPACE, STOCK, all, named, through_doors};
