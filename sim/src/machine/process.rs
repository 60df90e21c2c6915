//! One life of the simulated server: the real database, event loop and Lua over a simulated machine.

use super::branch::Branch;
use super::client::ADMIN;
use super::watch;
use database::{Config, Database, Environment};
use lua::{Host, Lua, LuaConfig};
use protocol::iproto::Iproto;
use protocol::{Door, EventLoop, NetConfig, Place};
use runtime::{FileSystem, SeededRandomness, Simulation, fiber};
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use trial::{Doors, Engines};
use tuple::msgpack;

/// Where every life listens.
pub(super) fn address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 3301))
}

/// Where every life listens for clients of a door.
pub(super) fn door_address(door: trial::Door) -> SocketAddr {
    let port = match door {
        trial::Door::Redis => 6379,
        trial::Door::Memcached => 11211,
        trial::Door::Tyrant => 1978,
        trial::Door::Postgres => 5432,
        trial::Door::Mysql => 3306,
    };
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// What a life is told of the disk engine: all of it little, so that dumps, merges and splits are many.
#[derive(Clone, Debug)]
pub(super) struct DiskSettings {
    pub(super) memory: u64,
    pub(super) cache: u64,
    pub(super) page_size: u64,
    pub(super) range_size: u64,
    pub(super) run_count_per_level: u64,
    pub(super) bloom_fpr: f64,
    pub(super) write_threads: usize,
    pub(super) manifest_bytes: u64,
    pub(super) open_files_max: usize,
    pub(super) page_cache_sampled_one_of: u64,
}

/// What a life is told.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) writes_in_flight: usize,
    pub(super) wal_max_size: u64,
    pub(super) checkpoint_wal_threshold: u64,
    pub(super) checkpoint_count: usize,
    pub(super) memory: u64,
    pub(super) slice_rows: usize,
    pub(super) slice_pause_ns: u64,
    pub(super) statement_slice_ns: u64,
    /// A transaction with more statements than this keeps them to itself once it has waited.
    pub(super) in_place_max: usize,
    pub(super) wall_offset_ns: Arc<AtomicU64>,
    pub(super) disk: DiskSettings,
    pub(super) doors: Doors,
    /// What keeps the rows that the doors make.
    pub(super) engines: Engines,
}

impl DiskSettings {
    /// As `box.cfg` shows them to Lua, which gives them to new indexes.
    fn shown(&self) -> Vec<u8> {
        let numbers = [
            ("vinyl_page_size", self.page_size),
            ("vinyl_range_size", self.range_size),
            ("vinyl_run_count_per_level", self.run_count_per_level),
        ];
        let mut out = Vec::new();
        msgpack::encode_map(&mut out, numbers.len() as u32 + 1);
        for (name, number) in numbers {
            msgpack::encode_str(&mut out, name.as_bytes());
            msgpack::encode_uint(&mut out, number);
        }
        msgpack::encode_str(&mut out, b"vinyl_bloom_fpr");
        msgpack::encode_f64(&mut out, self.bloom_fpr);
        out
    }
}

/// A server that is open and listens.
pub(super) struct Process {
    database: Rc<Database>,
    event_loop: EventLoop,
}

struct NoHost;

impl Host for NoHost {
    fn configure(&self, _options: &[u8]) -> database::Result<()> {
        Ok(())
    }

    fn exit(&self, _code: i32) {}

    fn listen_addresses(&self) -> Vec<String> {
        vec![address().to_string()]
    }

    fn rotate_log(&self) {}
}

impl Process {
    /// Starts over the files that are there. Errors: in words; the process is gone.
    pub(super) fn start(
        simulation: &Rc<Simulation>,
        files: Arc<dyn FileSystem>,
        settings: &Settings,
    ) -> Result<Self, String> {
        // What an earlier machine has left on this thread.
        fiber::abandon();
        let made = Self::open(simulation, files, settings);
        if made.is_err() {
            fiber::abandon();
            Lua::abandon();
        }
        made
    }

    fn open(simulation: &Rc<Simulation>, files: Arc<dyn FileSystem>, settings: &Settings) -> Result<Self, String> {
        let (poll, waker) = EventLoop::poll().map_err(|error| error.to_string())?;
        let for_database = Arc::clone(&waker);
        let environment = Environment {
            files,
            clock: simulation.clock(Arc::clone(&settings.wall_offset_ns)),
            randomness: Arc::new(SeededRandomness::new(simulation.random())),
            wake: Arc::new(move || {
                // A loop that cannot be woken has ended.
                let _ = for_database.wake();
            }),
        };
        let config = Config {
            wal_dir: PathBuf::from("/log"),
            memtx_dir: PathBuf::from("/snapshots"),
            memtx_memory: settings.memory,
            slice_rows: settings.slice_rows,
            slice_pause_ns: settings.slice_pause_ns,
            statement_slice_ns: settings.statement_slice_ns,
            wal_max_size: settings.wal_max_size,
            wal_writes_in_flight: settings.writes_in_flight,
            wal_prepare_bytes: 16 << 10,
            wal_rewrite_bytes: 8 << 10,
            checkpoint_interval: 0,
            checkpoint_wal_threshold: settings.checkpoint_wal_threshold,
            checkpoint_count: settings.checkpoint_count,
            vinyl_dir: PathBuf::from("/disk"),
            vinyl_memory: settings.disk.memory,
            vinyl_cache: settings.disk.cache,
            vinyl_page_size: settings.disk.page_size,
            vinyl_range_size: settings.disk.range_size,
            vinyl_run_count_per_level: settings.disk.run_count_per_level,
            vinyl_bloom_fpr: settings.disk.bloom_fpr,
            vinyl_write_threads: settings.disk.write_threads,
            vinyl_manifest_bytes: settings.disk.manifest_bytes,
            vinyl_open_files_max: settings.disk.open_files_max,
            vinyl_page_cache_sampled_one_of: settings.disk.page_cache_sampled_one_of,
            ..Config::default()
        };
        let database = Database::new(config, environment).map_err(|error| error.to_string())?;
        database.limits.in_place_max.set(settings.in_place_max);
        let mut event_loop = EventLoop::new(poll, waker, Rc::clone(&database), NetConfig::default(), protocol::doors())
            .map_err(|error| error.to_string())?;
        Lua::start(&database, Rc::new(NoHost), LuaConfig { memory: 256 << 20, slice_max_ms: 0 })?;
        database.open().map_err(|error| error.to_string())?;
        Lua::opened(&settings.disk.shown());
        run_script(&mut event_loop, COLLECTOR.to_string())?;
        if database.catalog.user_by_name(ADMIN.0).is_none() {
            run_script(&mut event_loop, admin())?;
        }
        open_doors(&mut event_loop, &database, settings)?;
        event_loop.listeners().listen(&database, Iproto::NAME, &address().into()).map_err(|error| error.to_string())?;
        Ok(Process { database, event_loop })
    }

    /// Runs until `is_done`. Errors: the process was killed.
    pub(super) fn run(&mut self, is_done: impl Fn() -> bool) -> Result<(), String> {
        let database = Rc::clone(&self.database);
        let sliced_commits = Cell::new(database.statistics.sliced_commits.get());
        let is_done = || {
            if database.suspended() > 0 {
                watch::count(Branch::Suspended);
            }
            if database.statistics.sliced_commits.get()
                > sliced_commits.replace(database.statistics.sliced_commits.get())
            {
                watch::count(Branch::CommittedInSlices);
            }
            if database.disk_engine().is_some_and(|engine| engine.is_full()) {
                watch::count(Branch::LevelsFull);
            }
            is_done()
        };
        self.event_loop.run(is_done).map_err(|error| error.to_string())
    }

    /// A clean stop, as far as it goes.
    pub(super) fn stop(self) -> Result<(), String> {
        let closed = self.database.close().map_err(|error| error.to_string());
        self.end();
        closed
    }

    /// The process is dead.
    pub(super) fn end(self) {
        if self.database.disk_engine().is_some_and(|engine| engine.statistics().waited_reads > 0) {
            watch::count(Branch::ReadWaited);
        }
        fiber::abandon();
        drop(self.event_loop);
        Lua::abandon();
        drop(self.database);
    }
}

/// Garbage is collected by the simulated time, often at first. Lua by itself does it by the size of its tables, which follows random numbers of the
/// process; with rows that a procedure has held it gives up their memory, and a turn of the event loop may have more to do.
const COLLECTOR: &str = "
    collectgarbage('stop')
    local fiber = require('fiber')
    fiber.create(function()
        local pause = 0.004
        while true do
            fiber.sleep(pause)
            pause = math.min(pause * 1.25, 0.5)
            collectgarbage()
            collectgarbage('stop')
        end
    end)
";

/// Listens for clients of the doors, if there are any, which make their spaces and users.
fn open_doors(event_loop: &mut EventLoop, database: &Rc<Database>, settings: &Settings) -> Result<(), String> {
    let mut texts = Vec::new();
    for door in settings.doors.all() {
        let (user, terms) = settings.doors.terms(*door, settings.engines, ADMIN.0);
        let user = user.map_or(String::new(), |user| format!("{user}@"));
        let terms: Vec<String> = terms.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let terms = if terms.is_empty() { String::new() } else { format!("?{}", terms.join("&")) };
        texts.push(format!("{}://{user}{}{terms}", door.name(), door_address(*door)));
    }
    if texts.is_empty() {
        return Ok(());
    }
    let outcome = Rc::new(RefCell::new(None));
    let (slot, listeners, database) = (Rc::clone(&outcome), event_loop.listeners(), Rc::clone(database));
    fiber::spawn("listen", move || {
        let open = || -> Result<(), String> {
            let mut opened = Vec::new();
            for text in texts {
                let place = Place::of(&text).map_err(|error| error.to_string())?;
                let door = listeners.open_door(&database, &place).map_err(|error| error.to_string())?;
                opened.push((place, door));
            }
            listeners.listen_only(opened).map_err(|(_, error)| error.to_string())
        };
        *slot.borrow_mut() = Some(open());
    });
    let is_over = || outcome.borrow().is_some();
    event_loop.run(is_over).map_err(|error| error.to_string())?;
    outcome.take().unwrap_or_else(|| Err("the doors were not opened".to_string()))
}

/// Makes the user that clients log in as.
fn admin() -> String {
    let (name, password) = ADMIN;
    format!(
        "box.schema.user.create('{name}', {{ password = '{password}', if_not_exists = true }})\n\
         box.schema.user.grant('{name}', 'super', nil, nil, {{ if_not_exists = true }})"
    )
}

fn run_script(event_loop: &mut EventLoop, source: String) -> Result<(), String> {
    let outcome = Rc::new(Cell::new(None));
    let slot = Rc::clone(&outcome);
    Lua::run_script("=start", source.into_bytes(), Vec::new(), move |result| slot.set(Some(result)));
    let is_over = {
        let outcome = Rc::clone(&outcome);
        move || {
            let result = outcome.take();
            let is_there = result.is_some();
            outcome.set(result);
            is_there
        }
    };
    event_loop.run(is_over).map_err(|error| error.to_string())?;
    match outcome.take() {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the start script did not end".to_string()),
    }
}
