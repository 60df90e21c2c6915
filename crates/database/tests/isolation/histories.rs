//! Random transactions of several clients: what came of each is what comes of it alone, at its place.

use super::*;

pub(crate) struct Chooser(pub(crate) SeededRandomness);

impl Chooser {
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    pub(crate) fn row(&self, space: u32, keys: u64) -> Value {
        match space {
            HASHES => {
                let number = if self.below(3) == 0 { Value::Null } else { json!(self.below(keys)) };
                json!([format!("k{}", self.below(keys)), number, self.below(4)])
            }
            _ => json!([self.below(keys), self.below(4), self.below(4), self.below(4)]),
        }
    }

    /// A full key of a unique index.
    pub(crate) fn key(&self, space: u32, keys: u64) -> (u32, Value) {
        match (space, self.below(3)) {
            (TREES, 0) => (1, json!([self.below(4), self.below(4)])),
            (HASHES, 0) => (1, json!([self.below(keys)])),
            (HASHES, _) => (0, json!([format!("k{}", self.below(keys))])),
            _ => (0, json!([self.below(keys)])),
        }
    }

    /// A scan of a tree: index, kind and key.
    pub(crate) fn scan(&self, keys: u64) -> (u32, IteratorKind, Value) {
        let kind = IteratorKind::from_code(self.below(7)).unwrap();
        match self.below(6) {
            0 => (0, kind, json!([self.below(keys)])),
            1 => (1, kind, json!([self.below(4)])),
            2 => (1, kind, json!([self.below(4), self.below(4)])),
            3 => (2, kind, json!([self.below(4)])),
            _ => (self.below(3) as u32, kind, json!([])),
        }
    }

    pub(crate) fn op(&self, keys: u64) -> Op {
        let space = [TREES, TREES, HASHES, TEMPORARY, BLIND, BLIND][self.below(6) as usize];
        match self.below(16) {
            0 | 1 => Op::Insert(space, self.row(space, keys)),
            2 | 3 => Op::Replace(space, self.row(space, keys)),
            4 | 5 => {
                let (index_id, key) = self.key(space, keys);
                let number = self.below(4);
                Op::Update(space, index_id, key, json!([["=", 1 + self.below(2), number]]))
            }
            6 => {
                // Some would make a negative number, some would move the row: what comes of it depends on the row that is there.
                let (op, field) = (["+", "-"][self.below(2) as usize], [2, 2, 0][self.below(3) as usize]);
                // Operations that are noted for later fail, if they do, without a word.
                let (op, field) = if space == BLIND { ("+", 2) } else { (op, field) };
                Op::Upsert(space, self.row(space, keys), json!([[op, field, 1]]))
            }
            7 => {
                let (index_id, key) = self.key(space, keys);
                Op::Delete(space, index_id, key)
            }
            8 => {
                let (index_id, key) = self.key(space, keys);
                Op::Get(space, index_id, key)
            }
            9 if space == HASHES => Op::Select(HASHES, 0, IteratorKind::All, json!([]), 0, 100),
            9 | 10 => {
                let (index_id, kind, key) = self.scan(keys);
                Op::Select(TREES, index_id, kind, key, self.below(2), 1 + self.below(3))
            }
            11 => {
                let (index_id, kind, key) = self.scan(keys);
                Op::Count(TREES, index_id, kind, key)
            }
            12 => {
                let (index_id, kind, key) = self.scan(keys);
                Op::Iterate(index_id, kind, key)
            }
            13 => Op::Next,
            14 => Op::Savepoint,
            _ => Op::RollbackTo,
        }
    }
}

pub(crate) type Outcome = Result<String, u32>;

/// Everything in all indexes, in words.
pub(crate) fn contents(database: &Database) -> Vec<String> {
    let mut reader = Client::new(database);
    [(TREES, 0), (TREES, 1), (TREES, 2), (HASHES, 0), (HASHES, 1), (TEMPORARY, 0), (BLIND, 0)]
        .map(|(space, index_id)| {
            let all = Op::Select(space, index_id, IteratorKind::All, json!([]), 0, 1000);
            reader.run(database, &all).unwrap()
        })
        .to_vec()
}

/// What transactions did.
#[derive(Default)]
pub(crate) struct History {
    /// In the order of their commits.
    pub(crate) committed: Vec<Vec<(Op, Outcome)>>,
    /// Those that were given up, with the number of commits before their last statement that was answered.
    pub(crate) abandoned: Vec<(usize, Vec<(Op, Outcome)>)>,
}

/// Runs everything alone: what has committed in the order of the commits, what was given up where it had seen the database last.
pub(crate) fn replay(history: &History, engine: &str) -> Rc<Database> {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let mut client = Client::new(&database);
    let run = |client: &mut Client, txn: &[(Op, Outcome)]| {
        client.begin(&database);
        for (op, outcome) in txn {
            assert_eq!(&client.run(&database, op), outcome, "{op:?} of {txn:#?}");
        }
    };
    let mut abandoned = history.abandoned.clone();
    abandoned.sort_by_key(|(at, _)| *at);
    let mut abandoned = abandoned.iter().peekable();
    for at in 0..=history.committed.len() {
        while let Some((_, txn)) = abandoned.next_if(|(before, _)| *before == at) {
            run(&mut client, txn);
            database.rollback(&client.context).unwrap();
        }
        if let Some(txn) = history.committed.get(at) {
            run(&mut client, txn);
            database.commit(&client.context).unwrap();
        }
    }
    database
}

/// Which transactions read in a view, and the number of commits that their views show.
pub(crate) struct Pins(pub(crate) Vec<(Rc<Context>, Cell<Option<usize>>)>);

impl Pins {
    pub(crate) fn of(contexts: impl Iterator<Item = Rc<Context>>) -> Self {
        Pins(contexts.map(|context| (context, Cell::new(None))).collect())
    }

    /// The last of so many commits is just over: who has a view since shows the state before it.
    pub(crate) fn note_commit(&self, database: &Database, committed: usize) {
        for (context, pin) in &self.0 {
            match database.is_in_view(context) {
                true if pin.get().is_none() => pin.set(Some(committed - 1)),
                true => {}
                false => pin.set(None),
            }
        }
    }

    /// The number of commits before what a transaction saw, which has ended; without a view `seen`.
    pub(crate) fn take(&self, client: usize, seen: usize) -> (usize, bool) {
        let pin = self.0[client].1.take();
        (pin.unwrap_or(seen), pin.is_some())
    }
}

/// Transactions of several clients, suspended whenever another one has its turn. Returns how many committed, how many met a conflict, and how many
/// committed what they had read in a view.
pub(crate) fn run_seed(seed: u64, engine: &str) -> (usize, usize, usize) {
    let chooser = Chooser(SeededRandomness::new(seed));
    choose_limits(seed);
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let keys = if seed.is_multiple_of(2) { 6 } else { 24 };
    // With what each has done in its transaction, and how many had committed then.
    let mut clients: [_; 4] = std::array::from_fn(|_| (Client::new(&database), Vec::new(), 0));
    let pins = Pins::of(clients.iter().map(|(client, ..)| Rc::clone(&client.context)));
    let mut history = History::default();
    let (mut conflicts, mut views) = (0, 0);
    for _ in 0..400 {
        let at = chooser.below(4) as usize;
        let (client, done, seen) = &mut clients[at];
        // A few statements in a turn.
        for _ in 0..1 + chooser.below(3) {
            if !client.context.is_in_txn() {
                done.clear();
                if chooser.below(4) == 0 {
                    // Without a transaction: the short way.
                    let truncated = [TREES, HASHES, TEMPORARY][chooser.below(3) as usize];
                    let op = if chooser.below(20) == 0 { Op::Truncate(truncated) } else { chooser.op(keys) };
                    if !matches!(op, Op::Iterate(..) | Op::Next | Op::Savepoint | Op::RollbackTo) {
                        let outcome = client.run(&database, &op);
                        history.committed.push(vec![(op, outcome)]);
                        pins.note_commit(&database, history.committed.len());
                    }
                    continue;
                }
                client.begin(&database);
                pins.take(at, 0);
            }
            match chooser.below(12) {
                0 | 1 => match database.commit(&client.context) {
                    Ok(()) => match pins.take(at, 0) {
                        // It comes where its view was.
                        (shown, true) => {
                            history.abandoned.push((shown, std::mem::take(done)));
                            views += 1;
                        }
                        _ => {
                            history.committed.push(std::mem::take(done));
                            pins.note_commit(&database, history.committed.len());
                        }
                    },
                    Err(error) => {
                        assert_eq!(error.code(), CONFLICT);
                        history.abandoned.push((pins.take(at, *seen).0, std::mem::take(done)));
                        conflicts += 1;
                    }
                },
                2 => {
                    database.rollback(&client.context).unwrap();
                    history.abandoned.push((pins.take(at, *seen).0, std::mem::take(done)));
                }
                _ => {
                    let op = chooser.op(keys);
                    let outcome = client.run(&database, &op);
                    if outcome == Err(CONFLICT) {
                        conflicts += 1;
                        let again = client.run(&database, &Op::Get(TREES, 0, json!([1])));
                        assert_eq!(again, Err(CONFLICT), "what it sees is not for use");
                        assert!(client.context.is_in_txn());
                        database.rollback(&client.context).unwrap();
                        history.abandoned.push((pins.take(at, *seen).0, std::mem::take(done)));
                    } else {
                        done.push((op, outcome));
                        *seen = history.committed.len();
                    }
                }
            }
        }
        database.suspend(&client.context);
        if chooser.below(8) == 0 {
            database.submit();
            database.turn();
        }
    }
    clients.iter().for_each(|(client, ..)| database.abandon(&client.context));
    assert_eq!(database.suspended(), 0);
    let counts = database.view_counts();
    assert_eq!((counts.open, counts.bytes, counts.ended), (0, 0, 0), "nothing is left of views");
    assert_eq!(database.statistics.conflicts.get(), conflicts as u64);
    assert_eq!(contents(&database), contents(&replay(&history, engine)), "seed {seed}");
    (history.committed.len(), conflicts, views)
}

pub(crate) fn run_seeds(engine: &str) {
    let (mut committed, mut conflicts, mut views) = (0, 0, 0);
    for seed in 0..150 {
        let (more, other, in_views) = run_seed(seed, engine);
        committed += more;
        conflicts += other;
        views += in_views;
    }
    assert!(committed > 2 * conflicts && conflicts > 1000, "{committed} committed, {conflicts} conflicts");
    assert!(views > 50, "{views} committed in views");
}

#[test]
fn transactions_that_wait_are_serializable_in_the_order_of_their_commits() {
    run_seeds("memtx");
}

#[test]
fn so_are_those_on_disk() {
    run_seeds("vinyl");
}

/// A client in a fiber, which waits wherever a statement does. `history` has what came of it.
pub(crate) fn work(database: &Rc<Database>, seed: u64, history: &RefCell<History>, pins: &RefCell<Pins>) {
    let chooser = Chooser(SeededRandomness::new(seed));
    let keys = 12;
    let mut client = Client::new(database);
    fiber::set_local(Rc::clone(&client.context) as Rc<dyn std::any::Any>);
    let at = pins.borrow().0.len();
    pins.borrow_mut().0.push((Rc::clone(&client.context), Cell::new(None)));
    let note_commit = || pins.borrow().note_commit(database, history.borrow().committed.len());
    for _ in 0..12 {
        if chooser.below(4) == 0 {
            let op = chooser.op(keys);
            // A scan outside a transaction sees the rows of the moment at which it began.
            if !matches!(
                op,
                Op::Select(..) | Op::Count(..) | Op::Iterate(..) | Op::Next | Op::Savepoint | Op::RollbackTo
            ) {
                let outcome = client.run(database, &op);
                history.borrow_mut().committed.push(vec![(op, outcome)]);
                note_commit();
            }
            continue;
        }
        client.begin(database);
        pins.borrow().take(at, 0);
        let (mut done, mut seen, mut is_doomed) = (Vec::new(), 0, false);
        for _ in 0..1 + chooser.below(6) {
            let op = chooser.op(keys);
            let outcome = client.run(database, &op);
            is_doomed = outcome == Err(CONFLICT);
            if is_doomed {
                break;
            }
            done.push((op, outcome));
            seen = history.borrow().committed.len();
            if chooser.below(2) == 0 {
                fiber::sleep(chooser.below(200_000));
            }
        }
        let is_committed = !is_doomed && chooser.below(6) > 0 && database.commit(&client.context).is_ok();
        if !is_committed {
            database.rollback(&client.context).unwrap();
        }
        match (is_committed, pins.borrow().take(at, seen)) {
            (true, (_, false)) => history.borrow_mut().committed.push(done),
            // Where its view was, if it had one.
            (_, (shown, _)) => history.borrow_mut().abandoned.push((shown, done)),
        }
        note_commit();
    }
}

/// A database whose rows lie on the disk of a simulated machine, and next to nothing of them in memory.
pub(crate) fn open_on_slow_disk(simulation: &Rc<Simulation>) -> Rc<Database> {
    open_on_machine(simulation, "vinyl")
}

fn open_on_machine(simulation: &Rc<Simulation>, engine: &str) -> Rc<Database> {
    let files = PacedFiles { files: Arc::new(SimulatedFiles::default()), is_off: Arc::new(|| false) };
    let clock = simulation.clock(Arc::default());
    let database = open_on(Arc::new(files), Arc::clone(&clock), 0);
    create_spaces_in(&database, engine);
    prepare_fibers(&database);
    fiber::set_clock(Rc::new(move || clock.monotonic_ns()));
    database
}

/// Rows lie on a disk that takes as long as the seed says, and next to nothing of it in memory.
pub(crate) fn run_waiting_seed(seed: u64, engine: &str) -> (usize, u64, u64) {
    let simulation = Simulation::new(seed, MachineConfig::default());
    choose_limits(seed);
    if engine == "memtx" {
        choose_slices(seed);
    }
    simulation.enter(|| {
        let database = open_on_machine(&simulation, engine);
        let history = Rc::new(RefCell::new(History::default()));
        let pins = Rc::new(RefCell::new(Pins(Vec::new())));
        let left = Rc::new(Cell::new(4));
        for client in 0..left.get() {
            let (database, history, left) = (Rc::clone(&database), Rc::clone(&history), Rc::clone(&left));
            let pins = Rc::clone(&pins);
            fiber::spawn("client", move || {
                work(&database, seed * 10 + client, &history, &pins);
                left.set(left.get() - 1);
            });
        }
        let mut waited = 0;
        for turns in 0.. {
            if left.get() == 0 {
                break;
            }
            turn(&database);
            waited = waited.max(database.suspended());
            simulation.sleep(10_000);
            if turns % 15 == 5 {
                let database = Rc::clone(&database);
                // What is there comes into runs. It fails if one is being made.
                fiber::spawn("checkpoint", move || database.make_checkpoint().unwrap_or_default());
            }
            assert!(turns < 1_000_000, "somebody waits for ever");
        }
        assert_eq!(database.suspended(), 0);
        let found = Rc::new(RefCell::new(None));
        let (slot, own) = (Rc::clone(&found), Rc::clone(&database));
        fiber::spawn("reader", move || *slot.borrow_mut() = Some(contents(&own)));
        while found.borrow().is_none() {
            turn(&database);
            simulation.sleep(10_000);
        }
        let history = history.borrow();
        assert_eq!(found.take().unwrap(), contents(&replay(&history, engine)), "seed {seed}");
        assert!(waited > 0, "nobody was suspended");
        let statistics = &database.statistics;
        (history.committed.len(), statistics.conflicts.get(), statistics.sliced_commits.get())
    })
}

#[test]
fn so_are_those_whose_reads_wait_for_the_disk() {
    let (mut committed, mut conflicts) = (0, 0);
    for seed in 0..60 {
        let (more, other, _) = run_waiting_seed(seed, "vinyl");
        committed += more;
        conflicts += other as usize;
    }
    assert!(committed > conflicts && conflicts > 100, "{committed} committed, {conflicts} conflicts");
}

/// Transactions are put in place in slices of a row or a few, and others have a turn between them.
#[test]
fn so_are_those_that_commit_in_slices() {
    let (mut committed, mut conflicts, mut sliced) = (0, 0, 0);
    for seed in 0..240 {
        let (more, other, slow) = run_waiting_seed(seed, "memtx");
        committed += more;
        conflicts += other as usize;
        sliced += slow;
    }
    choose_slice_rows(2000);
    assert!(committed > conflicts && conflicts > 100, "{committed} committed, {conflicts} conflicts");
    assert!(sliced > 100, "{sliced} in slices");
}
