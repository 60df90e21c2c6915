#![allow(clippy::unwrap_used, reason = "a test")]
use super::*;
use crate::{
    Fault, FileSystem, MachineConfig, OpenMode, PacedFiles, ReadFault, SimulatedFiles, Simulation, SystemFiles,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 300;

fn block(number: u64) -> Vec<u8> {
    (0..BLOCK).map(|at| (number as usize * 31 + at % 251) as u8).collect()
}

/// A file of `BLOCKS` blocks and a few bytes more.
fn fill(files: &dyn FileSystem, path: &Path) -> Arc<dyn File> {
    let file = files.open(path, OpenMode { create: true, ..OpenMode::MODIFY }).unwrap();
    (0..BLOCKS).for_each(|number| file.write_all_at(&block(number), number * BLOCK as u64).unwrap());
    file.write_all_at(b"tail", BLOCKS * BLOCK as u64).unwrap();
    file
}

type Outcomes = BTreeMap<u64, io::Result<Vec<u8>>>;

fn finish(queue: &mut ReadQueue, notifier: &Notifier) -> (Outcomes, Vec<u64>) {
    let (mut outcomes, mut order) = (BTreeMap::new(), Vec::new());
    while queue.in_flight() > 0 {
        assert!(notifier.wait(Duration::from_secs(60)), "every read ends");
        notifier.clear();
        queue.complete(|number, result| {
            order.push(number);
            assert!(outcomes.insert(number, result.map(<[u8]>::to_vec)).is_none(), "a read ends once");
        });
    }
    (outcomes, order)
}

/// Blocks, a short read at the end, one behind it, an empty one: more reads than fit at once.
fn read_everything(queue: &mut ReadQueue, notifier: &Notifier, file: &Arc<dyn File>) -> Vec<u64> {
    for number in 0..BLOCKS {
        queue.submit(number, Arc::clone(file), number * BLOCK as u64, BLOCK);
        if number % 100 == 99 {
            queue.flush();
        }
    }
    let end = BLOCKS * BLOCK as u64;
    queue.submit(1000, Arc::clone(file), end, 4);
    queue.submit(1001, Arc::clone(file), end, 5);
    queue.submit(1002, Arc::clone(file), end + 100, 1);
    queue.submit(1003, Arc::clone(file), 7, 0);
    queue.submit(1004, Arc::clone(file), 0, end as usize);
    queue.flush();
    assert_eq!(queue.in_flight() as u64, BLOCKS + 5);
    let (outcomes, order) = finish(queue, notifier);
    for number in 0..BLOCKS {
        assert_eq!(outcomes[&number].as_ref().unwrap(), &block(number));
    }
    assert_eq!(outcomes[&1000].as_ref().unwrap(), b"tail");
    for number in [1001, 1002] {
        assert_eq!(outcomes[&number].as_ref().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
    assert!(outcomes[&1003].as_ref().unwrap().is_empty());
    assert_eq!(outcomes[&1004].as_ref().unwrap().len() as u64, end);
    order
}

#[test]
fn many_reads_in_flight_all_arrive() {
    let dir = tempfile::tempdir().unwrap();
    let file = fill(&SystemFiles, &dir.path().join("f"));
    let notifier = Arc::new(Notifier::new().unwrap());
    // With a ring, where the machine has one, and with threads.
    let mut queue = ReadQueue::new(32, Arc::clone(&notifier)).unwrap();
    read_everything(&mut queue, &notifier, &file);
    read_everything(&mut queue, &notifier, &file);
    let mut queue = ReadQueue::with_threads(32, Arc::clone(&notifier));
    read_everything(&mut queue, &notifier, &file);
    assert!(queue.threads.in_flight() == 0 && queue.in_flight() == 0);
}

#[test]
fn reads_past_the_page_cache_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let file = fill(&SystemFiles, &dir.path().join("f"));
    file.sync().unwrap();
    let notifier = Arc::new(Notifier::new().unwrap());
    let mut queue = ReadQueue::new(8, Arc::clone(&notifier)).unwrap();
    // Not every machine has a ring, nor every file system such reads.
    let (true, Some(direct)) = (queue.has_ring(), file.open_direct()) else { return };
    let end = BLOCKS * BLOCK as u64;
    let places =
        [(0, BLOCK), (1, 10), (4000, 200), (5000, 3 * BLOCK), (77, 20 * BLOCK), (end - 3, 7), (end, 4), (end, 5)];
    for (number, (offset, length)) in places.into_iter().enumerate() {
        queue.submit_direct(number as u64, Arc::clone(&direct), offset, length);
        queue.submit(100 + number as u64, Arc::clone(&file), offset, length);
    }
    queue.flush();
    let (outcomes, _) = finish(&mut queue, &notifier);
    for number in 0..places.len() as u64 {
        match (&outcomes[&number], &outcomes[&(100 + number)]) {
            (Ok(direct), Ok(usual)) => assert_eq!(direct, usual, "{number}"),
            (Err(direct), Err(usual)) => assert_eq!(direct.to_string(), usual.to_string(), "{number}"),
            (direct, usual) => panic!("{number}: {direct:?}, {usual:?}"),
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_no_other_read_suffers() {
    let dir = tempfile::tempdir().unwrap();
    let file = fill(&SystemFiles, &dir.path().join("f"));
    // A directory opens and does not read.
    let directory: Arc<dyn File> = Arc::new(std::fs::File::open(dir.path()).unwrap());
    let notifier = Arc::new(Notifier::new().unwrap());
    for mut queue in
        [ReadQueue::new(4, Arc::clone(&notifier)).unwrap(), ReadQueue::with_threads(4, Arc::clone(&notifier))]
    {
        for number in 0..20 {
            let file = if number % 2 == 0 { &file } else { &directory };
            queue.submit(number, Arc::clone(file), 0, BLOCK);
        }
        queue.flush();
        let (outcomes, _) = finish(&mut queue, &notifier);
        assert!(outcomes.iter().all(|(number, result)| result.is_ok() == (number % 2 == 0)));
    }
}

#[test]
fn a_queue_is_dropped_with_reads_in_flight() {
    let dir = tempfile::tempdir().unwrap();
    let file = fill(&SystemFiles, &dir.path().join("f"));
    let notifier = Arc::new(Notifier::new().unwrap());
    for round in 0..20 {
        let make: [fn(usize, Arc<Notifier>) -> ReadQueue; 2] =
            [|depth, notifier| ReadQueue::new(depth, notifier).unwrap(), ReadQueue::with_threads];
        for make in make {
            let mut queue = make(8, Arc::clone(&notifier));
            (0..round).for_each(|number| queue.submit(number, Arc::clone(&file), number * BLOCK as u64, BLOCK));
            queue.flush();
            queue.submit(1000, Arc::clone(&file), 0, BLOCK);
        }
    }
    assert_eq!(Arc::strong_count(&file), 1, "nobody holds the file any more");
}

#[test]
fn what_is_in_memory_is_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = fill(&SystemFiles, &dir.path().join("f"));
    let mut bytes = vec![0; BLOCK];
    // Whether a page is in memory is up to the machine; what is read is right.
    if let Some(count) = file.read_cached_at(&mut bytes, BLOCK as u64).unwrap() {
        assert_eq!(bytes[..count], block(1)[..count]);
    }
    assert!(matches!(file.read_cached_at(&mut bytes, (BLOCKS + 1) * BLOCK as u64).unwrap(), None | Some(0)));
}

#[test]
fn simulated_reads_end_in_the_order_that_the_seed_says() {
    let run = |seed| {
        let simulation = Simulation::new(seed, MachineConfig::default());
        let off = || false;
        simulation.enter(|| {
            let files = PacedFiles { files: Arc::new(SimulatedFiles::default()), is_off: Arc::new(off) };
            let file = fill(&files, Path::new("/d/f"));
            let notifier = Arc::new(Notifier::new().unwrap());
            let mut queue = ReadQueue::new(32, Arc::clone(&notifier)).unwrap();
            let order = read_everything(&mut queue, &notifier, &file);
            let mut bytes = vec![0; BLOCK];
            let cached: Vec<bool> =
                (0..50).map(|at| file.read_cached_at(&mut bytes, at * BLOCK as u64).unwrap().is_some()).collect();
            assert!(cached.contains(&true) && cached.contains(&false), "both ways are met");
            queue.submit(1, Arc::clone(&file), 0, BLOCK);
            queue.flush();
            drop(queue);
            assert_eq!(simulation.threads(), 0, "threads end with their queue");
            (order, cached, simulation.hash())
        })
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn faults_of_simulated_files_reach_the_reader() {
    let simulation = Simulation::new(1, MachineConfig::default());
    simulation.enter(|| {
        let files = SimulatedFiles::default();
        let path = Path::new("/d/f");
        let file = fill(&files, path);
        files.add_read_fault(path, ReadFault::Unreadable(BLOCK as u64..BLOCK as u64 + 1));
        files.add_read_fault(path, ReadFault::Flipped(2 * BLOCK as u64 * 8));
        files.set_fault(Fault { read_bytes_max: Some(100), ..Fault::default() });
        let notifier = Arc::new(Notifier::new().unwrap());
        let mut queue = ReadQueue::new(32, Arc::clone(&notifier)).unwrap();
        (0..4).for_each(|number| queue.submit(number, Arc::clone(&file), number * BLOCK as u64, BLOCK));
        queue.flush();
        let (outcomes, _) = finish(&mut queue, &notifier);
        assert_eq!(outcomes[&0].as_ref().unwrap(), &block(0));
        assert!(outcomes[&1].is_err());
        assert_ne!(outcomes[&2].as_ref().unwrap(), &block(2));
        assert_eq!(outcomes[&3].as_ref().unwrap(), &block(3));
        let mut bytes = vec![0; BLOCK];
        assert!(file.read_cached_at(&mut bytes, BLOCK as u64).is_err());
        files.set_fault(Fault { is_cache_cold: true, ..Fault::default() });
        assert!(file.read_cached_at(&mut bytes, 0).unwrap().is_none());
    });
}
