//! The disk engine against sorted maps: random statements on several spaces and indexes, with dumps, compactions, restarts, transactions that are
//! rolled back and applied again, indexes that are built meanwhile, and readers that stay open. Every answer is compared at once.
//!
//! A failure names its seed: `LSM_MODEL_SEED=<seed> cargo test -p storage --test lsm_model one_seed` runs it alone.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "lsm_model/rows.rs"]
mod rows;
#[path = "lsm_model/world.rs"]
mod world;

use world::{Plan, run};

/// Operations of all tests here together are more than a million.
const OPERATIONS: u64 = 60_000;

fn run_seeds(seeds: std::ops::Range<u64>, plan: Plan) {
    for seed in seeds {
        run(seed, plan);
    }
}

#[test]
fn statements_and_scans_are_as_in_sorted_maps() {
    run_seeds(0..5, Plan { operations: OPERATIONS, is_threaded: false, is_cold: false });
}

#[test]
fn statements_and_scans_are_as_in_sorted_maps_without_a_cache() {
    run_seeds(100..105, Plan { operations: OPERATIONS, is_threaded: false, is_cold: false });
}

#[test]
fn other_threads_that_dump_and_merge_change_nothing() {
    run_seeds(200..204, Plan { operations: OPERATIONS, is_threaded: true, is_cold: false });
}

#[test]
fn reads_that_wait_find_what_is_there_by_then() {
    run_seeds(300..304, Plan { operations: OPERATIONS * 3 / 4, is_threaded: false, is_cold: true });
}

#[test]
fn one_seed() {
    let seed = std::env::var("LSM_MODEL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_000);
    let plan =
        Plan { operations: OPERATIONS, is_threaded: (200..300).contains(&seed), is_cold: (300..400).contains(&seed) };
    run(seed, plan);
}
