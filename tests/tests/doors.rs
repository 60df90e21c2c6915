//! A second protocol on the event loop: what a door gets without writing it.
//!
//! The machine is simulated, so that answers wait for the log in fact: writes to it take time. Each client is a thread that sends all it has and
//! then reads to the end of the stream.
#![allow(clippy::unwrap_used, reason = "a test")]

mod echo;

use database::{Config, Database, Environment, State};
use echo::Echo;
use lycosa_tests::{Client, MEMORY, Seed, packet, request};
use protocol::iproto::Iproto;
use protocol::{Door, Doors, EventLoop, NetConfig, Protocol};
use runtime::net::{Address, SimulatedStream, SocketAddr};
use runtime::{Fault, MachineConfig, PacedFiles, SeededRandomness, SimulatedFiles, Simulation, fiber};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const DIR: &str = "/db";
const PATIENCE: Duration = Duration::from_secs(20);
/// A client that pauses while the server looks at what has come.
const PAUSE_NS: u64 = 50_000_000;

/// The table of doors, with one line more.
fn doors() -> Doors {
    let mut doors = protocol::doors();
    let open: Box<protocol::OpenDoor> = Box::new(|_, _| Ok(Rc::new(Echo)));
    doors.push(Protocol { name: Echo::NAME, clients: "anybody", has_logins: true, open });
    doors
}

fn echo_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7))
}

fn iproto_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 3301))
}

/// What a client sends, with pauses between the parts.
type Parts = Vec<Vec<u8>>;

fn lines(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| [text.as_bytes(), b"\n"].concat()).collect()
}

struct Rig {
    simulation: Rc<Simulation>,
    files: SimulatedFiles,
    database: Rc<Database>,
    event_loop: EventLoop,
    /// What clients have received, and how many are under way.
    received: Rc<RefCell<Vec<Vec<u8>>>>,
    clients: Rc<Cell<usize>>,
}

impl Rig {
    /// Runs a test on a machine of a seed.
    fn run(seed: u64, test: impl FnOnce(&mut Rig)) {
        let files = SimulatedFiles::default();
        let filled = Seed::open(Arc::new(files.clone()), Path::new(DIR)).unwrap();
        filled.create_space(echo::SPACE, "lines").unwrap();
        filled.create_index(echo::SPACE, 0, "primary", "tree", &[(0, "string", None)]).unwrap();
        filled.open_to_guest().unwrap();
        filled.close().unwrap();
        let simulation = Simulation::new(seed, MachineConfig::default());
        simulation.enter(|| {
            let mut rig = Rig::new(&simulation, files);
            test(&mut rig);
            let Rig { database, event_loop, .. } = rig;
            fiber::abandon();
            drop(event_loop);
            drop(database);
        });
    }

    fn new(simulation: &Rc<Simulation>, files: SimulatedFiles) -> Self {
        let (poll, waker) = EventLoop::poll().unwrap();
        let for_database = Arc::clone(&waker);
        let environment = Environment {
            files: Arc::new(PacedFiles { files: Arc::new(files.clone()), is_off: Arc::new(|| false) }),
            clock: simulation.clock(Arc::default()),
            randomness: Arc::new(SeededRandomness::new(1)),
            wake: Arc::new(move || for_database.wake().unwrap()),
        };
        let config = Config {
            wal_dir: PathBuf::from(DIR),
            memtx_dir: PathBuf::from(DIR),
            vinyl_dir: PathBuf::from(DIR),
            memtx_memory: MEMORY,
            checkpoint_interval: 0,
            wal_prepare_bytes: 16 << 10,
            ..Config::default()
        };
        let database = Database::new(config, environment).unwrap();
        let event_loop = EventLoop::new(poll, waker, Rc::clone(&database), NetConfig::default(), doors()).unwrap();
        database.open().unwrap();
        event_loop.listeners().listen(&database, Echo::NAME, &echo_address().into()).unwrap();
        event_loop.listeners().listen(&database, Iproto::NAME, &iproto_address().into()).unwrap();
        let simulation = Rc::clone(simulation);
        Rig { simulation, files, database, event_loop, received: Rc::default(), clients: Rc::default() }
    }

    /// Starts a client. Its place among the received.
    fn client(&mut self, address: SocketAddr, parts: Parts) -> usize {
        let place = self.received.borrow().len();
        self.received.borrow_mut().push(Vec::new());
        self.clients.set(self.clients.get() + 1);
        let (received, clients) = (Rc::clone(&self.received), Rc::clone(&self.clients));
        let simulation = Rc::clone(&self.simulation);
        self.simulation.spawn_thread("client", move || {
            let stream = SimulatedStream::connect(address).unwrap();
            for part in parts {
                stream.write_all(&part, PATIENCE).unwrap();
                simulation.sleep(PAUSE_NS);
            }
            let mut buffer = [0; 4096];
            while let Ok(count) = stream.read(&mut buffer, PATIENCE)
                && count > 0
            {
                received.borrow_mut()[place].extend_from_slice(&buffer[..count]);
            }
            clients.set(clients.get() - 1);
        });
        place
    }

    /// Runs until all clients have seen the end of their streams.
    fn finish(&mut self) {
        let clients = Rc::clone(&self.clients);
        self.event_loop.run(|| clients.get() == 0).unwrap();
    }

    fn received(&self, place: usize) -> String {
        String::from_utf8(self.received.borrow()[place].clone()).unwrap()
    }
}

/// Every test runs on several machines.
fn on_machines(test: impl Fn(&mut Rig)) {
    for seed in 0..8 {
        Rig::run(seed, &test);
    }
}

#[test]
fn pipelined_lines_are_answered_in_order_whatever_waits() {
    on_machines(|rig| {
        let requests =
            ["hello", "put a 1", "get a", "x", "sleep 1", "get b", "put b 2", "put c 3", "get b", "y", "quit", "z"];
        let client = rig.client(echo_address(), vec![lines(&requests)]);
        rig.finish();
        let expected = ["hello", "stored", "1", "x", "awake", "nothing", "stored", "stored", "2", "y", "bye"];
        assert_eq!(rig.received(client), String::from_utf8(lines(&expected)).unwrap());
    });
}

#[test]
fn two_connections_and_another_protocol_are_served_side_by_side() {
    on_machines(|rig| {
        let key = [0x91, 0xa1, b'k'];
        let select =
            request(&[(0x10, &[0xcd, 2, 0]), (0x11, &[0]), (0x12, &[10]), (0x13, &[0]), (0x14, &[0]), (0x20, &key)]);
        let first = rig.client(echo_address(), vec![lines(&["put k v", "sleep 1", "mine", "quit"])]);
        let second = rig.client(echo_address(), vec![lines(&["other"]), lines(&["get k", "quit"])]);
        // Closed by the server, because its last packet has no length.
        let third =
            rig.client(iproto_address(), vec![packet(64, 7, &[]), [packet(1, 8, &select), vec![0xc0]].concat()]);
        rig.finish();
        assert_eq!(rig.received(first), "stored\nawake\nmine\nbye\n");
        assert_eq!(rig.received(second), "other\nv\nbye\n");
        let received = rig.received.borrow()[third].clone();
        assert!(received.starts_with(b"Tarantool"));
        let replies = Client::replies(&received[128..]);
        assert_eq!(
            replies.iter().map(|reply| (reply.sync, reply.code())).collect::<Vec<_>>(),
            [(7, 0), (8, 0), (0, 20)]
        );
        assert_eq!(replies[1].data[replies[1].data.len() - 5..], [0x92, 0xa1, b'k', 0xa1, b'v']);
    });
}

#[test]
fn half_a_line_waits_for_its_rest_and_no_text_is_refused_in_its_turn() {
    on_machines(|rig| {
        let parts = vec![b"put a 1\nhal".to_vec(), b"f\nsleep 1\n\xff\xfe\nlast\nqu".to_vec(), b"it\n".to_vec()];
        let client = rig.client(echo_address(), parts);
        rig.finish();
        let received = rig.received(client);
        let (start, rest) = received.split_at("stored\nhalf\nawake\n".len());
        assert_eq!(start, "stored\nhalf\nawake\n");
        assert!(rest.starts_with("error ") && rest.ends_with("\nlast\nbye\n") && rest.lines().count() == 3, "{rest}");
    });
}

#[test]
fn a_line_that_is_too_long_ends_its_connection_behind_the_answers_before_it() {
    for length in [echo::LINE_BYTES_MAX, 10 * echo::LINE_BYTES_MAX] {
        on_machines(|rig| {
            let longest = "x".repeat(echo::LINE_BYTES_MAX - 1);
            let mut bytes = lines(&["put a 1", &longest, "sleep 1"]);
            bytes.extend(vec![b'y'; length]);
            bytes.extend_from_slice(b"\nmore\n");
            let client = rig.client(echo_address(), vec![bytes]);
            rig.finish();
            let received = rig.received(client);
            let found: Vec<&str> = received.lines().collect();
            assert_eq!(found[..3], ["stored", &longest, "awake"]);
            assert!(found[3].starts_with("error 5:") && found.len() == 4, "{:?}", &found[3..]);
        });
    }
}

#[test]
fn a_log_that_fails_is_told_in_the_words_of_the_door() {
    let failed = Cell::new(0);
    on_machines(|rig| {
        // Whoever syncs first meets it: the log's own threads survive it, so it comes again.
        let files = rig.files.clone();
        rig.event_loop.on_turn(Box::new(move || {
            files.set_fault(Fault { syncs_until_error: Some(0), writes_until_error: Some(0), ..Fault::default() });
        }));
        let parts = vec![lines(&["first", "put a 1", "between", "put b 2"]), lines(&["get a", "put c 3", "quit"])];
        let client = rig.client(echo_address(), parts);
        rig.finish();
        assert!(matches!(rig.database.state(), State::LogFailed(_)));
        let received = rig.received(client);
        let found: Vec<&str> = received.lines().collect();
        assert_eq!(found.len(), 7, "{found:?}");
        // Another thread of the log may meet the fault first.
        let value = if found[1] == "stored" { "1" } else { "nothing" };
        assert_eq!([found[0], found[2], found[4], found[6]], ["first", "between", value, "bye"], "{found:?}");
        assert!([3, 5].iter().all(|at| found[*at].starts_with("error 40:")), "{found:?}");
        failed.set(failed.get() + u32::from(found[1].starts_with("error 40:")));
    });
    assert!(failed.get() > 0, "no parked answer became an error");
}

#[test]
fn a_server_that_stops_answers_what_is_under_way_and_refuses_the_rest_in_words() {
    on_machines(|rig| {
        let client = rig.client(echo_address(), vec![lines(&["put a 1", "sleep 1"]), lines(&["late"])]);
        let sleeper = rig.client(echo_address(), vec![lines(&["sleep 80", "behind it"])]);
        // The pause between the parts is longer than what it takes to serve the first.
        let until = rig.simulation.now_ns() + PAUSE_NS / 5;
        let simulation = Rc::clone(&rig.simulation);
        let (_, waker) = rig.event_loop.stop_flag();
        rig.simulation.call_at(until, move || waker.wake().unwrap());
        rig.event_loop.run(|| simulation.now_ns() >= until).unwrap();
        rig.event_loop.drain(fiber::now_ns() + 4 * PAUSE_NS).unwrap();
        rig.simulation.sleep(PAUSE_NS);
        let refusal = "error 115: the server is shutting down\n";
        assert_eq!(rig.received(client), format!("stored\nawake\n{refusal}"));
        assert_eq!(rig.received(sleeper), format!("awake\n{refusal}"));
        assert!(rig.event_loop.listeners().addresses(Echo::NAME).is_empty());
        assert!(SimulatedStream::connect(echo_address()).is_err(), "nobody is let in");
    });
}

#[test]
fn a_protocol_that_is_not_in_the_table_cannot_be_listened_for() {
    Rig::run(1, |rig| {
        let listeners = rig.event_loop.listeners();
        let address: Address = SocketAddr::from(([127, 0, 0, 1], 9)).into();
        let refused = listeners.listen(&rig.database, "gopher", &address).unwrap_err();
        assert!(refused.to_string().contains("gopher"), "{refused}");
        assert_eq!(listeners.addresses(Echo::NAME), [echo_address().into()]);
        listeners.close(Echo::NAME);
        assert!(listeners.addresses(Echo::NAME).is_empty());
        assert_eq!(listeners.addresses(Iproto::NAME), [iproto_address().into()]);
    });
}
