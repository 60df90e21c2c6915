//! Histories made by hand, good and bad, for every checker.
#![allow(clippy::unwrap_used, reason = "a test")]

use super::*;
use crate::history::{History, Kind, Outcome, Record, Refusal, Violation};
use crate::operation::{Operation, Order, Space};
use crate::value::Value;

/// A history in the making: operations of clients that follow each other unless said otherwise.
#[derive(Default)]
struct Story {
    history: History,
    now: u64,
    incarnation: u64,
}

impl Story {
    fn tell(mut self, operation: Operation, outcome: Outcome) -> Self {
        let (invoked_at, answered_at) = (self.now + 1, self.now + 2);
        self.now += 2;
        let incarnation = self.incarnation;
        self.history.records.push(Record { client: 0, incarnation, operation, outcome, invoked_at, answered_at });
        self
    }

    fn done(self, operation: Operation, data: Value) -> Self {
        self.tell(operation, Outcome::Done(data))
    }

    fn unknown(self, operation: Operation) -> Self {
        self.tell(operation, Outcome::Unknown)
    }

    fn refused(self, operation: Operation, code: u32) -> Self {
        self.tell(operation, Outcome::Refused(Refusal { code, text: "no".into() }))
    }

    fn crash(mut self) -> Self {
        self.now += 1;
        self.history.crashes.insert(self.incarnation, self.now);
        self.incarnation += 1;
        self
    }

    /// Checks with a view that shows these rows of spaces and indexes, and `true` to whatever else is asked.
    fn check(&self, workload: &dyn Workload, spaces: &[(Space, &[Value])]) -> Result<(), Violation> {
        let mut view = |operation: Operation| match operation {
            Operation::Select { space, .. } => {
                let rows = spaces.iter().find(|(other, _)| *other == space);
                rows.map(|(_, rows)| Value::Array(rows.to_vec()))
                    .ok_or(Refusal { code: 36, text: "no such space".into() })
            }
            _ => Ok(Value::Array(vec![true.into()])),
        };
        workload.check(0, &self.history, &mut view)
    }

    fn assert_good(&self, workload: &dyn Workload, spaces: &[(Space, &[Value])]) {
        assert_eq!(self.check(workload, spaces), Ok(()));
    }

    fn assert_bad(&self, workload: &dyn Workload, spaces: &[(Space, &[Value])], kind: Kind) {
        let violation = self.check(workload, spaces).expect_err("it must be refused");
        assert_eq!(violation.kind, kind, "{violation}");
    }
}

fn rows(rows: &[&[u64]]) -> Vec<Value> {
    rows.iter().map(|row| Value::numbers(row)).collect()
}

fn row(numbers: &[u64]) -> Vec<Value> {
    numbers.iter().map(|number| Value::Uint(*number)).collect()
}

const NONE: &[Value] = &[];

#[test]
fn names_are_different_and_find_their_workload() {
    let names: Vec<&str> = all().iter().map(|workload| workload.name()).collect();
    let mut sorted = names.clone();
    sorted.dedup();
    assert_eq!(names, sorted);
    assert!(names.iter().all(|name| named(name).is_some_and(|workload| workload.name() == *name)));
    assert!(named("none").is_none());
}

#[test]
fn the_same_seed_gives_the_same_clients() {
    for workload in all() {
        let run = |seed| {
            let mut client = workload.client(1, seed);
            let step = |_| {
                let operation = client.next();
                client.answered(&Outcome::Unknown);
                operation
            };
            (0..50).map(step).collect::<Vec<Operation>>()
        };
        assert_eq!(run(1), run(1), "{}", workload.name());
    }
}

#[test]
fn registers_lose_nothing_and_show_nothing_too_early() {
    let space = REGISTERS_SPACE;
    let write = |version| Operation::Replace { space, row: row(&[1, version]) };
    let written = |version| Value::Array(rows(&[&[1, version]]));
    let read = || Operation::get(space, 1);
    let there = |version: u64| rows(&[&[1, version]]);
    let workload = &registers::Registers;

    let story = Story::default().done(write(5), written(5)).crash();
    story.assert_good(workload, &[(space, &there(5))]);
    story.assert_bad(workload, &[(space, NONE)], Kind::Lost);

    // Without an answer it may be there or not, but not come and go.
    let story = Story::default().done(write(5), written(5)).unknown(write(6)).crash();
    story.assert_good(workload, &[(space, &there(5))]);
    story.assert_good(workload, &[(space, &there(6))]);
    let story = story.done(read(), written(5));
    story.assert_bad(workload, &[(space, &there(6))], Kind::Lost);

    // Shown to somebody, then taken back by the crash.
    let mut story = Story::default().unknown(write(6)).done(read(), written(6)).crash();
    story.history.records[0].answered_at = 10;
    story.history.crashes.insert(0, 10);
    story.assert_good(workload, &[(space, &there(6))]);
    story.assert_bad(workload, &[(space, NONE)], Kind::Lost);

    // A stale read.
    let story = Story::default().done(write(5), written(5)).done(write(6), written(6)).done(read(), written(5));
    story.assert_bad(workload, &[(space, &there(6))], Kind::Order);

    // Two swaps from one value.
    let swap = |new| Operation::call("trial_swap", &[1, 5, new]);
    let yes = || Value::Array(vec![true.into()]);
    let no = || Value::Array(vec![false.into()]);
    let story = Story::default().done(write(5), written(5)).done(swap(6), yes());
    story.assert_good(workload, &[(space, &there(6))]);
    story.done(swap(7), yes()).assert_bad(workload, &[(space, &there(7))], Kind::Order);
    let story = Story::default().done(write(5), written(5)).done(swap(7), no());
    story.assert_bad(workload, &[(space, &there(5))], Kind::Order);

    // Refused means not done.
    Story::default().refused(write(5), 40).assert_bad(workload, &[(space, &there(5))], Kind::Lost);
}

#[test]
fn large_rows_are_whole() {
    let space = Space::Id(3002);
    let Operation::Replace { row, .. } = (0..)
        .map(|seed| large::Large.client(0, seed).next())
        .find(|operation| matches!(operation, Operation::Replace { .. }))
        .unwrap()
    else {
        panic!("a replace was found")
    };
    let write = Operation::Replace { space, row: row.clone() };
    let whole = [Value::Array(row.clone())];
    let story = Story::default().done(write, Value::Array(whole.to_vec())).crash();
    story.assert_good(&large::Large, &[(space, &whole)]);
    let mut torn = row;
    torn[2] = Value::text(b"torn");
    story.assert_bad(&large::Large, &[(space, &[Value::Array(torn)])], Kind::Wrong);
    story.assert_bad(&large::Large, &[(space, NONE)], Kind::Lost);
}

#[test]
fn checkpoints_lose_nothing() {
    let space = Space::Id(3003);
    let write = Operation::Replace { space, row: row(&[1, 7, 6]) };
    let story = Story::default()
        .done(write, Value::Array(rows(&[&[1, 7, 6]])))
        .unknown(Operation::eval("box.snapshot()"))
        .crash();
    story.assert_good(&checkpoints::Checkpoints, &[(space, &rows(&[&[1, 7, 6]]))]);
    story.assert_bad(&checkpoints::Checkpoints, &[(space, NONE)], Kind::Lost);
}

#[test]
fn memory_may_run_out_for_rows_but_not_for_deletes() {
    let space = Space::Id(3070);
    let key = vec![1.into()];
    let delete = Operation::Delete { space, index: 0, key };
    Story::default().refused(delete, 2).assert_bad(&limit::Limit, &[(space, NONE)], Kind::Order);
    let mut client = limit::Limit.client(0, 1);
    let insert = client.next();
    let Operation::Insert { row, .. } = insert.clone() else { panic!("it begins with an insert") };
    Story::default().refused(insert.clone(), 2).assert_good(&limit::Limit, &[(space, NONE)]);
    let there = [Value::Array(row)];
    Story::default().refused(insert, 2).assert_bad(&limit::Limit, &[(space, &there)], Kind::Lost);
}

#[test]
fn transfers_happen_wholly_or_not_at_all() {
    let (accounts, transfers, purses) = (Space::Id(3010), Space::Id(3011), Space::Id(3012));
    let transfer = |id| Operation::call("trial_transfer", &[id, 1, 2, 30]);
    let yes = || Value::Array(vec![true.into()]);
    let balances = |first: u64, second: u64| {
        let balance = |id| {
            if id == 1 {
                first
            } else if id == 2 {
                second
            } else {
                100
            }
        };
        (1..=12).map(|id| Value::numbers(&[id, balance(id)])).collect::<Vec<_>>()
    };
    let purse_rows = (1..=3).map(|id| Value::numbers(&[id, 100, 100, 100, 100, 100])).collect::<Vec<_>>();
    let made = rows(&[&[9, 1, 2, 30]]);
    let view = |balances: &[Value], journal: &[Value], story: &Story| {
        story.check(&bank::Bank, &[(accounts, balances), (transfers, journal), (purses, &purse_rows)])
    };
    let kind = |result: Result<(), Violation>| result.map_err(|violation| violation.kind);

    let story = Story::default().done(transfer(9), yes()).crash();
    assert_eq!(view(&balances(70, 130), &made, &story), Ok(()));
    assert_eq!(kind(view(&balances(100, 100), NONE, &story)), Err(Kind::Lost));
    assert_eq!(kind(view(&balances(70, 100), &made, &story)), Err(Kind::Wrong), "half of it");

    let story = Story::default().unknown(transfer(9)).crash();
    assert_eq!(view(&balances(70, 130), &made, &story), Ok(()));
    assert_eq!(view(&balances(100, 100), NONE, &story), Ok(()));

    // Declined, and yet done.
    let story = Story::default().done(transfer(9), Value::Array(vec![false.into()]));
    assert_eq!(kind(view(&balances(70, 130), &made, &story)), Err(Kind::Wrong));

    // Shown, then gone.
    let key = vec![Value::Uint(10)];
    let newest = Operation::Select { space: transfers, index: 0, order: Order::LessOrEqual, key, limit: 5 };
    let story = Story::default().unknown(transfer(9)).done(newest, Value::Array(made.clone())).crash();
    assert_eq!(kind(view(&balances(100, 100), NONE, &story)), Err(Kind::Lost));

    // A read in the middle of a transfer.
    let all = Operation::select_all(accounts, 0);
    let story = Story::default().done(all, Value::Array(balances(70, 100)));
    assert_eq!(kind(view(&balances(100, 100), NONE, &story)), Err(Kind::Order));
}

#[test]
fn a_ring_that_was_shown_closed_stays_closed() {
    let space = Space::Id(3020);
    let ring = |changes: u64| (0..30).map(|id| Value::numbers(&[id, (id + 1) % 30, changes])).collect::<Vec<_>>();
    let story = Story::default().done(Operation::select_all(space, 0), Value::Array(ring(0)));
    story.assert_good(&ring::Ring, &[(space, &ring(0))]);
    story.assert_bad(&ring::Ring, &[(space, &ring(0)[1..])], Kind::Lost);
    let walk = Operation::call("trial_ring_walk", &[60]);
    let story = Story::default().done(walk, Value::numbers(&[29]));
    story.assert_bad(&ring::Ring, &[(space, &ring(0))], Kind::Order);
}

#[test]
fn indexes_that_disagree_are_refused() {
    let space = Space::Id(3004);
    let text = |key: u64, version: u64| Value::text(format!("{key}/{version}").as_bytes());
    let full = |key: u64, version: u64| vec![key.into(), version.into(), (version % 7).into(), text(key, version)];
    let write = Operation::Replace { space, row: full(1, 9) };
    let there = [Value::Array(full(1, 9))];
    let story = Story::default().done(write, Value::Array(there.to_vec()));
    story.assert_good(&secondary::Secondary, &[(space, &there)]);
    let mut view = |operation: Operation| match operation {
        Operation::Select { index: 2, .. } => Ok(Value::Array(Vec::new())),
        _ => Ok(Value::Array(there.to_vec())),
    };
    let violation = secondary::Secondary.check(0, &story.history, &mut view).unwrap_err();
    assert_eq!(violation.kind, Kind::Wrong);
    // A row of another group than the one that was asked for.
    let key = vec![Value::Uint(3)];
    let by_group = Operation::Select { space, index: 2, order: Order::Equal, key, limit: 9 };
    let story = story.done(by_group, Value::Array(there.to_vec()));
    story.assert_bad(&secondary::Secondary, &[(space, &there)], Kind::Order);
}

#[test]
fn a_name_has_one_owner() {
    let space = Space::Id(3050);
    let claim = |id| Operation::Insert { space, row: row(&[id, 3]) };
    let claimed = |id| Value::Array(rows(&[&[id, 3]]));
    let release = |id: u64| Operation::Delete { space, index: 0, key: vec![id.into()] };
    let workload = &unique::UniqueKeys;
    let story = Story::default().done(claim(1), claimed(1)).refused(claim(2), 3).crash();
    story.assert_good(workload, &[(space, &rows(&[&[1, 3]]))]);
    story.assert_bad(workload, &[(space, NONE)], Kind::Lost);
    story.assert_bad(workload, &[(space, &rows(&[&[2, 3]]))], Kind::Lost);
    let story = Story::default().done(claim(1), claimed(1)).done(claim(2), claimed(2));
    story.assert_bad(workload, &[(space, &rows(&[&[2, 3]]))], Kind::Order);
    story.assert_bad(workload, &[(space, &rows(&[&[1, 3], &[2, 3]]))], Kind::Wrong);
    // Refused because of a claim that nobody had.
    Story::default().refused(claim(2), 3).assert_bad(workload, &[(space, NONE)], Kind::Order);
    let story = Story::default().done(claim(1), claimed(1)).done(release(1), claimed(1)).done(claim(2), claimed(2));
    story.assert_good(workload, &[(space, &rows(&[&[2, 3]]))]);
}

#[test]
fn a_number_comes_once() {
    let space = Space::Id(3030);
    let insert = |mark: u64| Operation::Insert { space, row: vec![Value::Nil, mark.into()] };
    let got = |number, mark| Value::Array(rows(&[&[number, mark]]));
    let next = || Operation::call("trial_next", &[]);
    let workload = &sequences::Sequences;
    let story = Story::default().done(insert(70), got(1, 70)).unknown(insert(71)).crash().done(insert(72), got(3, 72));
    story.assert_good(workload, &[(space, &rows(&[&[1, 70], &[3, 72]]))]);
    story.assert_good(workload, &[(space, &rows(&[&[1, 70], &[2, 71], &[3, 72]]))]);
    story.assert_bad(workload, &[(space, &rows(&[&[3, 72]]))], Kind::Lost);
    story.assert_bad(workload, &[(space, &rows(&[&[1, 70], &[3, 72], &[4, 99]]))], Kind::Wrong);
    let twice = Story::default().done(next(), Value::numbers(&[8])).crash().done(next(), Value::numbers(&[8]));
    twice.assert_bad(workload, &[(space, NONE)], Kind::Wrong);
    let back = Story::default().done(next(), Value::numbers(&[8])).crash().done(next(), Value::numbers(&[7]));
    back.assert_bad(workload, &[(space, NONE)], Kind::Order);
}

#[test]
fn what_was_truncated_stays_away_and_what_came_later_stays() {
    let space = Space::Id(3040);
    let write = |version: u64| Operation::Replace { space, row: row(&[1, version, 1 + version]) };
    let written = |version: u64| Value::Array(rows(&[&[1, version, 1 + version]]));
    let empty = || Operation::call("trial_empty", &[]);
    let yes = || Value::Array(vec![true.into()]);
    let there = |version: u64| rows(&[&[1, version, 1 + version]]);
    let workload = &truncate::Truncate;
    let story = Story::default().done(write(5), written(5)).done(empty(), yes()).crash();
    story.assert_good(workload, &[(space, NONE)]);
    story.assert_bad(workload, &[(space, &there(5))], Kind::Lost);
    let story = story.done(write(6), written(6)).crash();
    story.assert_good(workload, &[(space, &there(6))]);
    story.assert_bad(workload, &[(space, NONE)], Kind::Lost);
    // A crash between drop and create: the space is not there at all.
    let story = story.unknown(Operation::call("trial_renew", &[])).crash();
    story.assert_good(workload, &[]);
    Story::default().done(write(5), written(5)).assert_bad(workload, &[], Kind::Lost);
}

#[test]
fn a_write_is_allowed_only_under_its_grant() {
    let space = Space::Id(3060);
    let mut owner = grants::Grants.client(0, 0);
    let grant = owner.next();
    owner.answered(&Outcome::Done(Value::Array(Vec::new())));
    let revoke = owner.next();
    let mut holder = grants::Grants.client(1, 0);
    let write = holder.next();
    let Operation::Insert { row, .. } = write.clone() else { panic!("a holder writes") };
    let there = [Value::Array(row)];
    let empty = || Value::Array(Vec::new());
    // The view says that the right is there now.
    let granted = Story::default().refused(write.clone(), 42).done(grant.clone(), empty());
    granted.assert_good(&grants::Grants, &[(space, NONE)]);
    let story = granted.done(holder.next(), empty()).crash();
    story.assert_bad(&grants::Grants, &[(space, NONE)], Kind::Lost);
    let story = Story::default().done(write.clone(), Value::Array(there.to_vec())).done(grant.clone(), empty());
    story.assert_bad(&grants::Grants, &[(space, &there)], Kind::Order);
    let story = Story::default().done(grant.clone(), empty()).refused(write, 42);
    story.assert_bad(&grants::Grants, &[(space, NONE)], Kind::Order);
    let lost = Story::default().done(grant, empty()).done(revoke, empty()).crash();
    lost.assert_bad(&grants::Grants, &[(space, NONE)], Kind::Lost);
}

#[test]
fn stock_is_what_the_operations_make_of_it() {
    let capture = Operation::call("trial_capture", &[1, 1, 4, 2]);
    let release = Operation::call("trial_release", &[1, 2, 4, 1, 2]);
    let parts = Value::Array(vec![Value::numbers(&[4, 1, 2])]);
    let stock = |units: u64| {
        let count = |sku, warehouse| if (sku, warehouse) == (4, 1) { units } else { 10 };
        (1..=8)
            .flat_map(|sku| (1..=3).map(move |at| Value::numbers(&[sku * 100 + at, sku, at, count(sku, at)])))
            .collect::<Vec<_>>()
    };
    let kept = |number: u64, answer: &Value| vec![Value::Array(vec![1.into(), number.into(), answer.clone()])];
    let workload = &inventory::Inventory;
    let story = Story::default().done(capture.clone(), Value::Array(vec![parts.clone()])).crash();
    story.assert_good(workload, &[(STOCK, &stock(8)), (CLIENTS, &kept(1, &parts))]);
    story.assert_bad(workload, &[(STOCK, &stock(10)), (CLIENTS, NONE)], Kind::Lost);
    story.assert_bad(workload, &[(STOCK, &stock(6)), (CLIENTS, &kept(1, &parts))], Kind::Wrong);
    story.assert_bad(workload, &[(STOCK, &stock(10)), (CLIENTS, &kept(2, &true.into()))], Kind::Wrong);
    let story = story.unknown(release).crash();
    story.assert_good(workload, &[(STOCK, &stock(8)), (CLIENTS, &kept(1, &parts))]);
    story.assert_good(workload, &[(STOCK, &stock(10)), (CLIENTS, &kept(2, &true.into()))]);
    // Half of an operation: the stock has it, the client's row has not.
    story.assert_bad(workload, &[(STOCK, &stock(10)), (CLIENTS, &kept(1, &parts))], Kind::Wrong);
    let refused = Story::default().done(capture, Value::Array(vec![Value::Bool(false)]));
    refused.assert_good(workload, &[(STOCK, &stock(10)), (CLIENTS, NONE)]);
    refused.assert_bad(workload, &[(STOCK, &stock(8)), (CLIENTS, NONE)], Kind::Wrong);
}
