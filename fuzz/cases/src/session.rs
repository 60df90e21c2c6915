//! Doubts that a server lives, and answers others, whatever a client of PostgreSQL's or MySQL's protocol sends behind its login: messages and packets, whole
//! and cut, with statements, parameters, copies and cursors in them.
//!
//! The input: a byte, even for PostgreSQL, odd for MySQL; then what the client sends. There is a table `t` with the columns `id` and `name`. A real
//! database, event loop and Lua on a simulated machine, which is kept from one input to the next; what an input leaves is dropped before the next one.

use database::{Config, Database, Environment};
use lua::{Host, Lua, LuaConfig};
use protocol::{EventLoop, NetConfig, Place};
use runtime::net::SimulatedStream;
use runtime::{MachineConfig, SeededRandomness, SimulatedFiles, Simulation, fiber};
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

const MEMORY: u64 = 64 << 20;
/// In simulated time: whoever says nothing for so long has said all.
const PATIENCE: Duration = Duration::from_millis(50);
/// In simulated time: a server that leaves somebody without an answer for so long hangs.
const HANG: Duration = Duration::from_secs(120);
const POSTGRES: u16 = 5432;
const MYSQL: u16 = 3306;
/// Bytes of answers that a client reads.
const ANSWER_MAX: usize = 4 << 20;

const RESET: &str = "
    for _ = 1, 5 do
        for _, row in box.space._space:pairs({ 512 }, { iterator = 'GE' }) do
            if row[3]:sub(1, 1) ~= '_' then pcall(box.schema.space.drop, row[1]) end
        end
    end
    for _, row in box.space._sequence:pairs() do pcall(box.schema.sequence.drop, row[1]) end
    box.execute([[CREATE TABLE \"t\" (\"id\" INTEGER PRIMARY KEY, \"name\" STRING)]])
    box.execute([[INSERT INTO \"t\" VALUES (1, 'a'), (2, 'b'), (3, NULL)]])
";

struct NoHost;

impl Host for NoHost {
    fn configure(&self, _options: &[u8]) -> database::Result<()> {
        Ok(())
    }

    fn exit(&self, _code: i32) {}

    fn listen_addresses(&self) -> Vec<String> {
        Vec::new()
    }

    fn rotate_log(&self) {}
}

struct Server {
    simulation: Rc<Simulation>,
    event_loop: EventLoop,
    _database: Rc<Database>,
}

/// Inputs on their way to the thread of the server, and what came of each: why it panicked, if it did.
struct Ways {
    inputs: Sender<Vec<u8>>,
    outcomes: Receiver<Option<String>>,
}

/// The thread of the server never ends: what it has there need not be taken down.
static WAYS: OnceLock<Mutex<Ways>> = OnceLock::new();
/// Something has panicked, if only in a fiber, which ends its connection and nothing else.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

impl Server {
    fn start(simulation: Rc<Simulation>) -> Self {
        let (poll, waker) = EventLoop::poll().expect("a simulated one");
        let for_database = Arc::clone(&waker);
        let environment = Environment {
            files: Arc::new(SimulatedFiles::default()),
            clock: simulation.clock(Arc::new(AtomicU64::new(0))),
            randomness: Arc::new(SeededRandomness::new(1)),
            wake: Arc::new(move || {
                // A loop that cannot be woken has ended.
                let _ = for_database.wake();
            }),
        };
        let dir = PathBuf::from("/db");
        let config = Config {
            wal_dir: dir.clone(),
            memtx_dir: dir,
            memtx_memory: MEMORY,
            wal_mode: wal::WalMode::None,
            wal_writes_in_flight: 0,
            checkpoint_interval: 0,
            ..Config::default()
        };
        let database = Database::new(config, environment).expect("nothing is asked for that is not there");
        let mut event_loop =
            EventLoop::new(poll, waker, Rc::clone(&database), NetConfig::default(), protocol::doors()).expect("a loop");
        Lua::start(&database, Rc::new(NoHost), LuaConfig { memory: 256 << 20, slice_max_ms: 0 }).expect("Lua starts");
        database.open().expect("the directory is empty");
        // An empty map of options.
        Lua::opened(&[0x80]);
        open_doors(&mut event_loop, &database);
        Server { simulation, event_loop, _database: database }
    }

    fn run_until(&mut self, is_over: impl Fn() -> bool) {
        let deadline = self.simulation.now_ns() + HANG.as_nanos() as u64 * 2;
        let simulation = Rc::clone(&self.simulation);
        let ran = self.event_loop.run(|| is_over() || simulation.now_ns() > deadline);
        ran.expect("the loop runs");
        assert!(is_over(), "the server does not answer");
    }

    fn reset(&mut self) {
        let result = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&result);
        Lua::run_script("=reset", RESET.as_bytes().to_vec(), Vec::new(), move |done| *slot.borrow_mut() = Some(done));
        self.run_until(|| result.borrow().is_some());
        let done = result.take().expect("it has ended");
        assert!(done.is_ok(), "the table is made: {:?}", done.map_err(|error| error.to_string()));
    }

    /// Serves a client that sends this behind its login, then another one.
    fn take(&mut self, input: &[u8]) {
        let Some((&first, bytes)) = input.split_first() else { return };
        let port = if first % 2 == 0 { POSTGRES } else { MYSQL };
        let bytes = bytes.to_vec();
        self.reset();
        self.beside(move || {
            let mut stream = enter(port);
            // A connection that the server has closed takes no more.
            let _ = stream.write_all(&bytes, PATIENCE);
            read_all(&mut stream, PATIENCE, &[]);
        });
        self.beside(|| {
            let mut stream = enter(POSTGRES);
            let _ = stream.write_all(b"Q\0\0\0\x0dSELECT 1\0", HANG);
            assert!(read_all(&mut stream, HANG, READY), "others are answered");
        });
    }

    /// Runs a client to its end.
    fn beside(&mut self, client: impl FnOnce() + 'static) {
        let is_done = Rc::new(Cell::new(false));
        let done = Rc::clone(&is_done);
        self.simulation.spawn_thread("client", move || {
            client();
            done.set(true);
        });
        self.run_until(|| is_done.get());
    }
}

fn open_doors(event_loop: &mut EventLoop, database: &Rc<Database>) {
    let outcome = Rc::new(RefCell::new(None));
    let (slot, listeners, database) = (Rc::clone(&outcome), event_loop.listeners(), Rc::clone(database));
    fiber::spawn("listen", move || {
        let open = || -> Result<(), String> {
            let mut opened = Vec::new();
            for (door, port) in [("postgres", POSTGRES), ("mysql", MYSQL)] {
                let place =
                    Place::of(&format!("{door}://admin@{}", address(port))).map_err(|error| error.to_string())?;
                let door = listeners.open_door(&database, &place).map_err(|error| error.to_string())?;
                opened.push((place, door));
            }
            listeners.listen_only(opened).map_err(|(_, error)| error.to_string())
        };
        *slot.borrow_mut() = Some(open());
    });
    event_loop.run(|| outcome.borrow().is_some()).expect("the loop runs");
    assert_eq!(outcome.take(), Some(Ok(())), "doors open");
}

/// Reads what comes until nothing more does. True if the last bytes are these.
fn read_all(stream: &mut SimulatedStream, patience: Duration, end: &[u8]) -> bool {
    let (mut all, mut part) = (Vec::new(), vec![0; 16 << 10]);
    while all.len() < ANSWER_MAX {
        match stream.read(&mut part, patience) {
            Ok(0) | Err(_) => break,
            Ok(length) => all.extend_from_slice(&part[..length]),
        }
        if !end.is_empty() && all.ends_with(end) {
            return true;
        }
    }
    all.ends_with(end)
}

/// PostgreSQL's way to say that it waits for the next statement, outside of a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";

/// The end of what MySQL says to who is let in: nothing was changed, it commits by itself, no warnings.
const WELCOME: &[u8] = b"\0\0\0\x02\0\0\0";

fn enter(port: u16) -> SimulatedStream {
    let mut stream = SimulatedStream::connect(address(port)).expect("somebody listens");
    let login = match port {
        POSTGRES => {
            let body = b"\0\x03\0\0user\0fuzz\0database\0fuzz\0\0";
            [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
        }
        _ => {
            // A database, 4.1, secure, authentication by a plugin, several statements and results, long data.
            let abilities: u32 = 1 | 1 << 3 | 1 << 7 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 17 | 1 << 19;
            let rest = b"fuzz\0\0fuzz\0mysql_native_password\0";
            let body = [&abilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23], rest].concat();
            let [a, b, c, _] = (body.len() as u32).to_le_bytes();
            [&[a, b, c, 1][..], &body].concat()
        }
    };
    let _ = stream.write_all(&login, HANG);
    let end = if port == POSTGRES { READY } else { WELCOME };
    assert!(read_all(&mut stream, HANG, end), "a login is answered");
    stream
}

/// One case.
pub fn run(input: &[u8]) {
    let ways = WAYS.get_or_init(|| Mutex::new(start())).lock().unwrap_or_else(PoisonError::into_inner);
    ways.inputs.send(input.to_vec()).expect("the server takes inputs");
    if let Some(words) = ways.outcomes.recv().expect("each input has an outcome") {
        panic!("{words}");
    }
    assert!(!HAS_PANICKED.swap(false, Ordering::Relaxed), "a fiber panicked");
}

fn start() -> Ways {
    let (inputs, taken) = channel::<Vec<u8>>();
    let (told, outcomes) = channel();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        HAS_PANICKED.store(true, Ordering::Relaxed);
        before(info);
    }));
    let serve = move || {
        let simulation = Simulation::new(1, MachineConfig { cut_one_in: 0, ..MachineConfig::default() });
        simulation.enter(|| {
            let mut server = Server::start(Rc::clone(&simulation));
            for input in taken {
                let outcome = catch_unwind(AssertUnwindSafe(|| server.take(&input)));
                let words = outcome.err().map(|panic| match panic.downcast_ref::<String>() {
                    Some(words) => words.clone(),
                    None => panic.downcast_ref::<&str>().map_or("no message", |words| words).to_string(),
                });
                if told.send(words).is_err() {
                    return;
                }
            }
        });
    };
    runtime::spawn_thread("session", serve).expect("a thread");
    Ways { inputs, outcomes }
}
