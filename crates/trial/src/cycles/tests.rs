//! Histories of each phenomenon made by hand, histories of a store that keeps or breaks its promise, and every order of small ones.

use super::store::{Fault, Shape, history};
use super::*;
use std::collections::BTreeMap;

fn transaction(fate: Fate, invoked_at: u64, answered_at: u64, steps: &[Step]) -> Transaction {
    Transaction { steps: steps.to_vec(), fate, invoked_at, answered_at }
}

/// All at the same time.
fn committed(steps: &[Step]) -> Transaction {
    transaction(Fate::Committed, 1, 1000, steps)
}

fn append(key: u64, value: u64) -> Step {
    Step::Append { key, value }
}

fn list(key: u64, values: &[u64]) -> Step {
    Step::List { key, values: values.to_vec(), by_range: false }
}

fn scanned(key: u64, values: &[u64]) -> Step {
    Step::List { key, values: values.to_vec(), by_range: true }
}

fn write(key: u64, value: u64) -> Step {
    Step::Write { key, value }
}

fn register(key: u64, value: Option<u64>) -> Step {
    Step::Register { key, value, by_range: false }
}

#[track_caller]
fn assert_found(transactions: &[Transaction], phenomenon: Phenomenon, concerned: &[usize]) -> Anomaly {
    let found = anomalies(transactions, Promise::Serializable);
    let first = found.first().expect("something is wrong");
    assert_eq!(first.phenomenon, phenomenon, "{first}");
    let mut numbers = first.transactions.clone();
    numbers.sort_unstable();
    assert_eq!(numbers, concerned, "{first}");
    first.clone()
}

#[track_caller]
fn assert_clean(transactions: &[Transaction], promise: Promise) {
    let found = anomalies(transactions, promise);
    assert!(found.is_empty(), "{}", found[0]);
}

#[test]
fn what_has_an_order_is_left_alone() {
    let good = [
        committed(&[append(1, 10), append(2, 20)]),
        committed(&[list(1, &[10]), append(1, 11), list(1, &[10, 11])]),
        committed(&[list(1, &[10, 11]), list(2, &[20])]),
        committed(&[list(1, &[]), list(2, &[])]),
        committed(&[register(1, None), write(1, 5), register(1, Some(5))]),
        committed(&[register(1, Some(5)), write(1, 6), write(1, 7)]),
        transaction(Fate::Aborted, 1, 1000, &[append(1, 12), list(9, &[99]), write(1, 8)]),
        transaction(Fate::Unknown, 1, u64::MAX, &[append(1, 13)]),
        committed(&[register(1, Some(7)), list(1, &[10, 11])]),
    ];
    assert_clean(&good, Promise::Strict);
    assert_clean(&[], Promise::Strict);
}

#[test]
fn g0_is_a_cycle_of_writes() {
    let bad = [
        committed(&[append(1, 10), append(2, 10)]),
        committed(&[append(1, 20), append(2, 20)]),
        committed(&[list(1, &[10, 20]), list(2, &[20, 10])]),
    ];
    let found = assert_found(&bad, Phenomenon::G0, &[0, 1]);
    let text = found.to_string();
    assert!(text.starts_with("G0 (dirty write): 2 transactions"), "{text}");
    assert!(text.contains("T0 wrote to list 1 before T1 wrote 20 there"), "{text}");
    assert!(text.contains("T1 wrote to list 2 before T0 wrote 10 there"), "{text}");
    assert!(text.contains("T0 (Committed, 1..1000): append 10 to list 1; append 10 to list 2;"), "{text}");
}

#[test]
fn g1a_is_a_read_of_what_was_rolled_back() {
    let aborted = |steps: &[Step]| transaction(Fate::Aborted, 1, 1000, steps);
    assert_found(&[aborted(&[append(1, 10)]), committed(&[list(1, &[10])])], Phenomenon::G1a, &[0, 1]);
    let inside = [aborted(&[append(1, 10)]), committed(&[append(1, 11)]), committed(&[list(1, &[10, 11])])];
    assert_found(&inside, Phenomenon::G1a, &[0, 2]);
    assert_found(&[aborted(&[write(1, 10)]), committed(&[register(1, Some(10))])], Phenomenon::G1a, &[0, 1]);
}

#[test]
fn g1b_is_a_read_of_an_intermediate_write() {
    let lists =
        [committed(&[append(1, 10), append(1, 11)]), committed(&[list(1, &[10])]), committed(&[list(1, &[10, 11])])];
    assert_found(&lists, Phenomenon::G1b, &[0, 1]);
    let registers = [committed(&[write(1, 10), write(1, 11)]), committed(&[register(1, Some(10))])];
    assert_found(&registers, Phenomenon::G1b, &[0, 1]);
}

#[test]
fn g1c_is_a_circle_of_information() {
    let lists = [committed(&[append(1, 10), list(2, &[20])]), committed(&[append(2, 20), list(1, &[10])])];
    assert_found(&lists, Phenomenon::G1c, &[0, 1]);
    let registers =
        [committed(&[write(1, 10), register(2, Some(20))]), committed(&[write(2, 20), register(1, Some(10))])];
    assert_found(&registers, Phenomenon::G1c, &[0, 1]);
}

#[test]
fn two_writers_over_one_version_lose_an_update() {
    let lists = [
        committed(&[append(1, 1)]),
        committed(&[list(1, &[1]), append(1, 2)]),
        committed(&[list(1, &[1]), append(1, 3)]),
        committed(&[list(1, &[1, 2, 3])]),
    ];
    assert_found(&lists, Phenomenon::LostUpdate, &[1, 2]);
    let registers = [committed(&[register(1, None), write(1, 5)]), committed(&[register(1, None), write(1, 6)])];
    assert_found(&registers, Phenomenon::LostUpdate, &[0, 1]);
}

#[test]
fn a_view_that_moves_is_read_skew() {
    let lists = [
        committed(&[append(1, 10), append(2, 20)]),
        committed(&[list(1, &[]), list(2, &[20])]),
        committed(&[list(1, &[10]), list(2, &[20])]),
    ];
    assert_found(&lists, Phenomenon::GSingle, &[0, 1]);
    let registers = [
        committed(&[register(1, None), write(1, 10), register(2, None), write(2, 20)]),
        committed(&[register(1, None), register(2, Some(20))]),
    ];
    assert_found(&registers, Phenomenon::GSingle, &[0, 1]);
}

#[test]
fn write_skew_is_g2() {
    let last = committed(&[list(1, &[10]), list(2, &[20])]);
    let items = [committed(&[list(1, &[]), append(2, 20)]), committed(&[list(2, &[]), append(1, 10)]), last.clone()];
    assert_found(&items, Phenomenon::G2Item, &[0, 1]);
    let ranges = [committed(&[scanned(1, &[]), append(2, 20)]), committed(&[scanned(2, &[]), append(1, 10)]), last];
    let text = assert_found(&ranges, Phenomenon::G2, &[0, 1]).to_string();
    assert!(text.contains("T0 scanned a range with list 1 and did not see 10, which T1 wrote"), "{text}");
    let registers = [
        committed(&[register(1, None), register(2, None), write(1, 10)]),
        committed(&[register(1, None), register(2, None), write(2, 20)]),
    ];
    assert_found(&registers, Phenomenon::G2Item, &[0, 1]);
}

#[test]
fn the_smallest_cycle_is_told() {
    // Five in a ring of write skew, and two of them in a smaller one.
    let reads_and_writes = |number: u64, also: &[u64]| {
        let mut steps = vec![list((number + 1) % 5, &[]), append(number, 100 + number)];
        steps.extend(also.iter().map(|key| list(*key, &[])));
        committed(&steps)
    };
    let mut ring: Vec<Transaction> = (0..5).map(|number| reads_and_writes(number, &[])).collect();
    ring.push(committed(&(0..5).map(|key| list(key, &[100 + key])).collect::<Vec<_>>()));
    assert_found(&ring, Phenomenon::G2Item, &[0, 1, 2, 3, 4]);
    ring[3] = reads_and_writes(3, &[2]);
    assert_found(&ring, Phenomenon::G2Item, &[2, 3]);
}

#[test]
fn a_transaction_keeps_to_what_it_did() {
    assert_found(&[committed(&[append(1, 10), list(1, &[])])], Phenomenon::Internal, &[0]);
    assert_found(&[committed(&[write(1, 10), register(1, None)])], Phenomenon::Internal, &[0]);
    let twice = [committed(&[append(1, 10)]), committed(&[list(1, &[]), list(1, &[10])])];
    assert_found(&twice, Phenomenon::Internal, &[1]);
    let early = [committed(&[list(1, &[10]), append(1, 10)])];
    assert_found(&early, Phenomenon::Internal, &[0]);
}

#[test]
fn values_come_from_writes_and_come_once() {
    assert_found(&[committed(&[list(1, &[7])])], Phenomenon::Unwritten, &[0]);
    assert_found(&[committed(&[register(1, Some(7))])], Phenomenon::Unwritten, &[0]);
    assert_found(&[committed(&[append(1, 7)]), committed(&[list(1, &[7, 7])])], Phenomenon::Duplicate, &[1]);
    let orders = [
        committed(&[append(1, 7)]),
        committed(&[append(1, 8)]),
        committed(&[list(1, &[7, 8])]),
        committed(&[list(1, &[8, 7])]),
    ];
    assert_found(&orders, Phenomenon::IncompatibleOrder, &[2, 3]);
    assert_found(&[committed(&[append(1, 7)]), committed(&[append(1, 7)])], Phenomenon::Unusable, &[0, 1]);
}

#[test]
fn without_an_answer_it_happened_wholly_or_not_at_all() {
    let lost = transaction(Fate::Unknown, 1, u64::MAX, &[append(1, 10), append(2, 20)]);
    let wholly = committed(&[list(1, &[10]), list(2, &[20])]);
    let not_at_all = committed(&[list(1, &[]), list(2, &[])]);
    let in_part = committed(&[list(1, &[10]), list(2, &[])]);
    assert_clean(&[lost.clone(), wholly], Promise::Strict);
    assert_clean(&[lost.clone(), not_at_all], Promise::Strict);
    assert_found(&[lost, in_part], Phenomenon::GSingle, &[0, 1]);
}

#[test]
fn an_old_view_is_wrong_only_in_real_time() {
    let at = |from, to, steps: &[Step]| transaction(Fate::Committed, from, to, steps);
    let stale =
        [at(1, 2, &[append(1, 10)]), at(3, 4, &[append(9, 9)]), at(5, 6, &[list(1, &[])]), at(7, 8, &[list(1, &[10])])];
    assert_clean(&stale, Promise::Serializable);
    let found = anomalies(&stale, Promise::Strict);
    assert_eq!((found[0].phenomenon, found[0].needs_real_time), (Phenomenon::GSingle, true), "{}", found[0]);
    assert_eq!(found[0].transactions.len(), 2, "{}", found[0]);
    assert!(found[0].text.contains("T0 was answered at 2, before T2 was asked at 5"), "{}", found[0]);
    // An acknowledged append that is gone.
    let gone = [at(1, 2, &[append(1, 10)]), at(3, 4, &[list(1, &[])])];
    assert!(anomalies(&gone, Promise::Strict)[0].needs_real_time);
    // Seen before it was asked for.
    let early = [at(5, 6, &[append(1, 10)]), at(1, 2, &[list(1, &[10])])];
    let found = anomalies(&early, Promise::Strict);
    assert_eq!((found[0].phenomenon, found[0].needs_real_time), (Phenomenon::G1c, true), "{}", found[0]);
    // What overlaps has any order.
    let overlapping = [at(1, 4, &[append(1, 10)]), at(4, 6, &[list(1, &[])])];
    assert_clean(&overlapping, Promise::Strict);
}

const SMALL: Shape = Shape {
    transactions: 600,
    live: 6,
    steps: 5,
    keys: 5,
    has_ranges: false,
    has_registers: true,
    has_last_reader: true,
};

#[test]
fn nothing_is_found_in_serial_histories() {
    for seed in 0..30 {
        let shape = Shape { live: 1, has_ranges: seed % 2 == 0, ..SMALL };
        // With nobody beside it even a store without isolation is serial, as long as nobody rolls back.
        for fault in [Fault::None, Fault::ReadsForgotten, Fault::LockGivenToTwo, Fault::DirtyReads, Fault::NoIsolation]
        {
            assert_clean(&history(fault, shape, seed), Promise::Strict);
        }
    }
}

#[test]
fn nothing_is_found_in_a_store_that_keeps_its_promise() {
    for seed in 0..100 {
        let shape = Shape { has_ranges: seed % 2 == 0, live: 2 + seed as usize % 10, ..SMALL };
        assert_clean(&history(Fault::None, shape, seed), Promise::Strict);
    }
}

/// Every seed finds something, and what is found is of these kinds.
#[track_caller]
fn assert_planted(fault: Fault, shape: Shape, promise: Promise, phenomena: &[Phenomenon]) {
    let mut counts: BTreeMap<Phenomenon, u64> = BTreeMap::new();
    for seed in 0..30 {
        let found = anomalies(&history(fault, shape, seed), promise);
        assert!(!found.is_empty(), "{fault:?}, seed {seed}");
        for anomaly in found {
            assert!(phenomena.contains(&anomaly.phenomenon), "{fault:?}, seed {seed}: {anomaly}");
            *counts.entry(anomaly.phenomenon).or_default() += 1;
        }
    }
    for phenomenon in phenomena {
        assert!(counts.contains_key(phenomenon), "{fault:?}: no {phenomenon:?} in {counts:?}");
    }
}

#[test]
fn a_store_that_forgets_reads_shows_write_skew_and_nothing_worse() {
    assert_planted(Fault::ReadsForgotten, SMALL, Promise::Serializable, &[Phenomenon::G2Item]);
    let shape = Shape { has_ranges: true, has_registers: false, ..SMALL };
    assert_planted(Fault::ReadsForgotten, shape, Promise::Serializable, &[Phenomenon::G2Item, Phenomenon::G2]);
}

#[test]
fn a_store_that_forgets_ranges_shows_write_skew_over_ranges() {
    let shape = Shape { has_ranges: true, ..SMALL };
    assert_planted(Fault::RangesForgotten, shape, Promise::Serializable, &[Phenomenon::G2]);
}

#[test]
fn a_view_of_a_wrong_moment_is_found() {
    // Two readers that see two writers in different orders are G2.
    let within = [Phenomenon::Internal, Phenomenon::GSingle, Phenomenon::G2Item];
    assert_planted(Fault::ViewMoves, SMALL, Promise::Serializable, &within);
    for seed in 0..30 {
        let transactions = history(Fault::ViewIsOld, SMALL, seed);
        assert_clean(&transactions, Promise::Serializable);
        let found = anomalies(&transactions, Promise::Strict);
        assert!(found.iter().all(|anomaly| anomaly.needs_real_time) && !found.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_lock_given_to_two_loses_updates() {
    for seed in 0..30 {
        let found = anomalies(&history(Fault::LockGivenToTwo, SMALL, seed), Promise::Serializable);
        assert!(found.iter().any(|anomaly| anomaly.phenomenon == Phenomenon::LostUpdate), "seed {seed}");
    }
}

#[test]
fn a_lost_private_write_and_half_a_commit_are_found() {
    for fault in [Fault::PrivateWriteLost, Fault::HalfACommit, Fault::NoIsolation] {
        for seed in 0..30 {
            assert!(!anomalies(&history(fault, SMALL, seed), Promise::Strict).is_empty(), "{fault:?}, seed {seed}");
        }
    }
}

#[test]
fn dirty_reads_are_named() {
    for seed in 0..30 {
        let found = anomalies(&history(Fault::DirtyReads, SMALL, seed), Promise::Serializable);
        assert!(found.iter().any(|anomaly| anomaly.phenomenon == Phenomenon::G1a), "seed {seed}");
        assert!(found.iter().any(|anomaly| anomaly.phenomenon == Phenomenon::G1b), "seed {seed}");
    }
}

/// True if the transactions, done in this order, read what they read.
fn explains(order: &[&Transaction]) -> bool {
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut registers: BTreeMap<u64, u64> = BTreeMap::new();
    order.iter().flat_map(|one| one.steps.iter().map(|step| (step, one.fate))).all(|(step, fate)| match step {
        Step::Append { key, value } => {
            lists.entry(*key).or_default().push(*value);
            true
        }
        Step::Write { key, value } => {
            registers.insert(*key, *value);
            true
        }
        Step::List { key, values, .. } => fate == Fate::Unknown || lists.entry(*key).or_default() == values,
        Step::Register { key, value, .. } => fate == Fate::Unknown || registers.get(key) == value.as_ref(),
    })
}

/// Tries every order of the transactions that are left.
fn has_order<'a>(done: &mut Vec<&'a Transaction>, left: &mut Vec<&'a Transaction>, promise: Promise) -> bool {
    if !explains(done) {
        return false;
    }
    if left.is_empty() {
        return true;
    }
    for at in 0..left.len() {
        let one = left.remove(at);
        let is_next = promise == Promise::Serializable || left.iter().all(|other| other.answered_at >= one.invoked_at);
        done.push(one);
        let is_found = is_next && has_order(done, left, promise);
        done.pop();
        left.insert(at, one);
        if is_found {
            return true;
        }
    }
    false
}

/// The same with every choice of those without an answer.
fn is_explained(transactions: &[Transaction], promise: Promise) -> bool {
    let unknown: Vec<usize> = (0..transactions.len()).filter(|at| transactions[*at].fate == Fate::Unknown).collect();
    (0..1u32 << unknown.len()).any(|choice| {
        let is_chosen =
            |at: usize| unknown.iter().position(|other| *other == at).is_some_and(|bit| choice >> bit & 1 == 1);
        let mut left: Vec<&Transaction> = transactions
            .iter()
            .enumerate()
            .filter(|(at, one)| one.fate == Fate::Committed || is_chosen(*at))
            .map(|(_, one)| one)
            .collect();
        has_order(&mut Vec::new(), &mut left, promise)
    })
}

#[test]
fn the_verdict_is_that_of_trying_every_order() {
    let faults = [
        Fault::None,
        Fault::ReadsForgotten,
        Fault::RangesForgotten,
        Fault::ViewMoves,
        Fault::ViewIsOld,
        Fault::LockGivenToTwo,
        Fault::PrivateWriteLost,
        Fault::DirtyReads,
        Fault::NoIsolation,
        Fault::HalfACommit,
    ];
    let mut counts: BTreeMap<bool, u64> = BTreeMap::new();
    for seed in 0..6000 {
        let shape = Shape {
            transactions: 2 + seed as usize % 4,
            live: 3,
            steps: 4,
            keys: 2,
            has_ranges: seed % 3 == 0,
            has_registers: seed % 2 == 0,
            has_last_reader: true,
        };
        let transactions = history(faults[seed as usize % faults.len()], shape, seed);
        for promise in [Promise::Serializable, Promise::Strict] {
            let expected = is_explained(&transactions, promise);
            let found = anomalies(&transactions, promise);
            assert_eq!(found.is_empty(), expected, "seed {seed}, {promise:?}: {transactions:#?}\n{found:#?}");
            *counts.entry(expected).or_default() += 1;
        }
    }
    assert!(counts.values().all(|count| *count > 1000), "{counts:?}");
}

#[test]
fn many_transactions_are_checked_in_bounded_time() {
    // A million takes some seconds with optimisation; without it a tenth will do.
    let transactions = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let shape = Shape { transactions, live: 16, ..SMALL };
    assert_clean(&history(Fault::None, shape, 1), Promise::Strict);
    assert_eq!(anomalies(&history(Fault::ReadsForgotten, shape, 1), Promise::Strict)[0].phenomenon, Phenomenon::G2Item);
    // One component of nearly all of them.
    assert!(!anomalies(&history(Fault::NoIsolation, shape, 1), Promise::Strict).is_empty());
}
