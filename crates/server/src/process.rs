//! The server process: database, event loop, Lua, and what Lua asks of the process.

use crate::logging::{self, Log};
use crate::options::Options;
use database::options::change;
use database::{Database, Environment, Error, ErrorCode, GUEST, PUBLIC, SHUTDOWN_KEY, UserKind};
use lua::{Host, Lua, LuaConfig};
use protocol::iproto::Iproto;
use protocol::{Door, EventLoop, Listeners, NetConfig, Place, Protocol};
use runtime::net::{Address, Waker};
use runtime::signals::{
    HANG_UP, INTERRUPT, TERMINATE, USER_1, fail_writes_beyond_limit, handle_signals, raise_open_files_limit,
};
use runtime::{FileSystem, SystemClock, SystemFiles, SystemRandomness, fiber};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time a clean stop waits for Lua before it goes on without it.
const SHUTDOWN_NS: u64 = 800_000_000;
/// Longest time for requests that are under way to end and be answered before the process ends.
const DRAIN_NS: u64 = 2_000_000_000;
/// Longest time that clients have to go away by themselves, if they watch whether the server stops.
const CLIENTS_NS: u64 = 3_000_000_000;
/// Descriptors of the process for each run file kept open: a run takes up to two, and half of all are for connections.
const DISK_FILES_PART: u64 = 4;
/// A run that is read past the page cache, too, has two descriptors.
const DESCRIPTORS_PER_RUN: u64 = 2;
/// Stands for "no bound" on how long Lua code may run without waiting: thirty years.
const SLICE_UNBOUNDED_MS: u64 = 1_000_000_000_000;

/// A request to end the process.
#[derive(Clone)]
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    waker: Arc<Waker>,
    /// A console takes Ctrl-C: it cancels what runs there and does not end the process.
    has_console: Arc<AtomicBool>,
    is_interrupted: Arc<AtomicBool>,
}

impl Stop {
    /// From now on Ctrl-C is for a console, or no longer.
    pub(crate) fn set_console(&self, has_console: bool) {
        self.has_console.store(has_console, Ordering::Release);
    }

    /// True once after each Ctrl-C that was for the console.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.is_interrupted.swap(false, Ordering::AcqRel)
    }

    /// Ctrl-C.
    fn interrupt(&self) {
        if self.has_console.load(Ordering::Acquire) {
            self.is_interrupted.store(true, Ordering::Release);
            self.wake();
        } else {
            self.terminate();
        }
    }

    /// SIGTERM. A script that runs for ever must not keep the loop from hearing of it.
    fn terminate(&self) {
        lua::ask_to_stop();
        self.request();
    }

    /// Asks the event loop to end. From any thread.
    pub(crate) fn request(&self) {
        self.flag.store(true, Ordering::Release);
        self.wake();
    }

    /// Makes the event loop run a turn. From any thread.
    pub(crate) fn wake(&self) {
        // A loop that cannot be woken has ended.
        let _ = self.waker.wake();
    }
}

/// What the process runs.
pub(crate) struct Process {
    pub(crate) database: Rc<Database>,
    pub(crate) event_loop: EventLoop,
    pub(crate) host: Rc<ProcessHost>,
    pub(crate) stop: Stop,
}

/// The side of the process that Lua sees.
pub(crate) struct ProcessHost {
    database: Rc<Database>,
    listeners: Rc<Listeners>,
    /// The current options: flags and file first, `box.cfg` over them.
    options: RefCell<Options>,
    log: Log,
    stop: Stop,
    is_open: Cell<bool>,
    exit_code: Cell<i32>,
    /// An open address without a password is refused rather than only warned of.
    is_strict: bool,
}

impl Process {
    /// Makes database, event loop and Lua; nothing is read or listened to yet. Errors: an option is wrong, the system refuses what the loop
    /// needs, a built-in module is broken.
    pub(crate) fn new(options: &Options, is_strict: bool) -> Result<Self, String> {
        let log = Log::start(logging::level(options.text_or_default("log_level"))?);
        log.set_json(logging::is_json(options.text_or_default("log_format"))?);
        if let Some(path) = options.path("log") {
            log.set_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let (poll, waker) = EventLoop::poll().map_err(|error| error.to_string())?;
        let for_database = Arc::clone(&waker);
        let environment = Environment {
            files: Arc::new(SystemFiles),
            clock: Arc::new(SystemClock::default()),
            randomness: Arc::new(SystemRandomness),
            wake: Arc::new(move || {
                // A loop that cannot be woken has ended.
                let _ = for_database.wake();
            }),
        };
        let stop = Stop {
            flag: Arc::default(),
            waker: Arc::clone(&waker),
            has_console: Arc::default(),
            is_interrupted: Arc::default(),
        };
        let (for_signals, log_of_signals) = (stop.clone(), log.clone());
        fail_writes_beyond_limit();
        let is_checkpoint_asked = Arc::new(AtomicBool::new(false));
        let ask_for_checkpoint = Arc::clone(&is_checkpoint_asked);
        handle_signals(&[TERMINATE, INTERRUPT, HANG_UP, USER_1], move |signal| match signal {
            HANG_UP => log_of_signals.rotate(),
            USER_1 => {
                ask_for_checkpoint.store(true, Ordering::Release);
                for_signals.wake();
            }
            INTERRUPT => for_signals.interrupt(),
            _ => for_signals.terminate(),
        })
        .map_err(|error| error.to_string())?;
        let mut config = options.config()?;
        config.vinyl_open_files_max = (raise_open_files_limit() / DISK_FILES_PART / DESCRIPTORS_PER_RUN) as usize;
        let database = Database::new(config, environment).map_err(|error| error.to_string())?;
        let net = NetConfig { requests_max: (options.number("net_msg_max")? as usize).max(2), ..NetConfig::default() };
        let mut event_loop = EventLoop::new(poll, waker, Rc::clone(&database), net, protocol::doors())
            .map_err(|error| error.to_string())?;
        let for_checkpoints = Rc::clone(&database);
        event_loop.on_turn(Box::new(move || {
            if is_checkpoint_asked.load(Ordering::Acquire) {
                is_checkpoint_asked.store(false, Ordering::Release);
                let database = Rc::clone(&for_checkpoints);
                fiber::spawn("checkpoint", move || {
                    if let Err(error) = database.make_checkpoint() {
                        tracing::warn!("no checkpoint: {error}");
                    }
                });
            }
        }));
        let host = Rc::new(ProcessHost {
            database: Rc::clone(&database),
            listeners: event_loop.listeners(),
            options: RefCell::new(options.clone()),
            log,
            stop: stop.clone(),
            is_open: Cell::new(false),
            exit_code: Cell::new(0),
            is_strict,
        });
        let slice_max = options.number("lua_slice_max")?;
        let lua = LuaConfig {
            memory: options.number("lua_memory")? as usize,
            // Without a bound code that runs is still watched, to be ended when the process stops.
            slice_max_ms: if slice_max <= 0.0 { SLICE_UNBOUNDED_MS } else { (slice_max * 1000.0) as u64 },
        };
        Lua::start(&database, Rc::clone(&host) as Rc<dyn Host>, lua)?;
        Ok(Process { database, event_loop, host, stop })
    }

    /// Listens where the options say, in a fiber: the doors of some protocols make spaces. Errors: as those of `listen`.
    pub(crate) fn listen(&mut self) -> Result<(), String> {
        let (outcome, host) = (Rc::new(RefCell::new(None)), Rc::clone(&self.host));
        let (for_fiber, stop) = (Rc::clone(&outcome), self.stop.clone());
        fiber::spawn("listen", move || {
            *for_fiber.borrow_mut() = Some(host.listen_as_configured());
            stop.wake();
        });
        self.event_loop.run(|| outcome.borrow().is_some()).map_err(|error| error.to_string())?;
        outcome.take().map_or(Ok(()), |outcome| outcome.map_err(|error| error.to_string()))
    }

    /// Runs until the process is asked to stop, then stops cleanly. Returns the exit code. Errors: the poll fails, the log cannot be completed.
    pub(crate) fn run(mut self) -> Result<i32, String> {
        let flag = Arc::clone(&self.stop.flag);
        let text = |error: std::io::Error| error.to_string();
        self.event_loop.run(|| flag.load(Ordering::Acquire)).map_err(text)?;
        let is_done = Rc::new(Cell::new(false));
        let (done, stop) = (Rc::clone(&is_done), self.stop.clone());
        Lua::shut_down(move || {
            done.set(true);
            stop.wake();
        });
        self.event_loop.listeners().close_all();
        // Clients that watch for it finish what they are at and close their connections.
        if let Err(error) = self.database.broadcast(SHUTDOWN_KEY, Some(&[0xc3])) {
            tracing::warn!("the stop is not announced: {error}");
        }
        let begun = fiber::now_ns();
        let deadline = begun.saturating_add(Lua::shutdown_timeout_ns().unwrap_or(SHUTDOWN_NS));
        let clients_deadline = begun.saturating_add(Lua::shutdown_timeout_ns().unwrap_or(CLIENTS_NS));
        self.stop.wake();
        let database = Rc::clone(&self.database);
        let is_over = move || {
            let now = fiber::now_ns();
            let awaits_clients = now <= clients_deadline && database.awaited_on_shutdown() > 0;
            !awaits_clients && (is_done.get() || now > deadline)
        };
        self.event_loop.run(is_over).map_err(text)?;
        self.event_loop.drain(fiber::now_ns() + DRAIN_NS).map_err(text)?;
        if self.host.is_open.get() {
            self.database.close().map_err(|error| error.to_string())?;
            self.host.remove_pid_file();
            tracing::info!("stopped");
        }
        Ok(self.host.exit_code.get())
    }
}

/// The place that a text stands for. Errors: it is none.
fn place_of(address: &str) -> Result<Place, Error> {
    Place::of(address).map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: &str, error: &std::io::Error) -> Error {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; another server may be running there: stop it, or give another address by --listen"
        }
        std::io::ErrorKind::PermissionDenied if Address::unix_path(address).is_none() => {
            "; ports below 1024 are for the administrator of the machine"
        }
        _ => "",
    };
    Error::system(format!("cannot listen at {address}: {error}{hint}"))
}

impl ProcessHost {
    /// True once `box.cfg` or `serve` has opened the database.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.get()
    }

    /// Makes the process end with a code.
    pub(crate) fn end_with(&self, code: i32) {
        self.exit_code.set(code);
        self.stop.request();
    }

    /// Opens the database with the current options. Errors: an option is wrong, the pid file cannot be written, the recovery refuses.
    pub(crate) fn open(&self) -> Result<(), Error> {
        let options = self.options.borrow().clone();
        let config = options.config().map_err(Error::illegal)?;
        if let Some(path) = options.path("pid_file") {
            let text = std::process::id().to_string();
            runtime::write_file(path, text.as_bytes())
                .map_err(|error| Error::system(format!("{}: {error}", path.display())))?;
        }
        tracing::info!("Lycosa {}: {}", env!("CARGO_PKG_VERSION"), options.summary(&config));
        self.database.reconfigure(|current| *current = config);
        fiber::set_max(options.number("fibers_max").map_err(Error::illegal)? as usize);
        self.database.open()?;
        self.is_open.set(true);
        fiber::restart_slice();
        Ok(())
    }

    /// Listens where the options say, if they do. May wait. Errors: as those of `listen`.
    pub(crate) fn listen_as_configured(&self) -> Result<(), Error> {
        let addresses = self.options.borrow().list("listen").to_vec();
        if addresses.is_empty() { Ok(()) } else { self.listen(&addresses) }
    }

    /// Looks whether the configured addresses can be had. Errors: as those of listening there.
    pub(crate) fn check_addresses(&self) -> Result<(), Error> {
        for address in self.options.borrow().list("listen") {
            let place = place_of(address)?;
            self.listeners.protocol(&place.door).map_err(|error| cannot_listen(address, &error))?;
            self.listeners.try_address(&place.address).map_err(|error| cannot_listen(address, &error))?;
        }
        Ok(())
    }

    /// Listens at these addresses and no others. May wait. Errors: one is taken or no address; it is open to the world and nobody needs a password; its
    /// door cannot be made. Everything is as before then.
    fn listen(&self, addresses: &[String]) -> Result<(), Error> {
        let places: Vec<Place> = addresses.iter().map(|address| place_of(address)).collect::<Result<_, _>>()?;
        let mut opened = Vec::new();
        for (place, text) in places.into_iter().zip(addresses) {
            let protocol = self.listeners.protocol(&place.door).map_err(|error| cannot_listen(text, &error))?;
            self.check_openness(&place, protocol)?;
            let door = self.listeners.open_door(&self.database, &place).map_err(|mut error| {
                error.push_text(&format!(" (listening at {text})"));
                error
            })?;
            opened.push((place, door));
        }
        let before = self.listeners.all_addresses();
        let has_tls: Vec<bool> = opened.iter().map(|(place, _)| place.acceptor.is_some()).collect();
        self.listeners.listen_only(opened).map_err(|(at, error)| cannot_listen(&addresses[at], &error))?;
        let guest = if self.guest_may_nothing() { "; guest may do nothing until granted" } else { "" };
        // Places and addresses have one order.
        let by_tls = |at: usize| if has_tls.get(at) == Some(&true) { " over TLS" } else { "" };
        for (at, (door, local)) in self.listeners.all_addresses().into_iter().enumerate() {
            let clients = self.listeners.protocol(door).map_or(door, |protocol| protocol.clients);
            let guest = if door == Iproto::NAME { guest } else { "" };
            if !before.contains(&(door, local.clone())) {
                tracing::info!("ready: connect to {local}{} with {clients}{guest}", by_tls(at));
            }
        }
        Ok(())
    }

    /// Errors: others may come to this place, and nobody needs a password, or nobody could give one.
    fn check_openness(&self, place: &Place, protocol: &Protocol) -> Result<(), Error> {
        let Place { address, .. } = place;
        if address.is_local() {
            return Ok(());
        }
        if !protocol.has_logins && !place.checks_certificates {
            return Err(Error::system(format!(
                "refusing to listen at {address}: clients of {} cannot log in, so anybody could do anything. Listen at 127.0.0.1, or take \
                 certificates: ?transport=ssl&ssl_cert_file=...&ssl_key_file=...&ssl_ca_file=...",
                protocol.name
            )));
        }
        if self.has_password() {
            return Ok(());
        }
        if self.is_strict || protocol.name != Iproto::NAME {
            return Err(Error::system(format!(
                "refusing to listen at {address}: no user has a password, so anybody could try. Start at 127.0.0.1 and run\n  \
                 box.schema.user.create('me', {{password = 'a secret'}})\n  \
                 box.schema.user.grant('me', 'read,write,execute', 'universe')"
            )));
        }
        tracing::warn!("listening at {address}, open to other machines, although no user has a password");
        Ok(())
    }

    /// True if nothing was granted to guest beyond what every fresh directory grants.
    fn guest_may_nothing(&self) -> bool {
        use database::{ObjectType, Privileges};
        /// Spaces below are the system's; what a fresh directory grants on them lets nobody see rows of others.
        const FIRST_SPACE: u32 = 512;
        self.database.catalog.grants().iter().filter(|grant| [GUEST, PUBLIC].contains(&grant.grantee)).all(|grant| {
            match (grant.object_type, grant.object_id) {
                (ObjectType::Universe, _) => grant.privileges & !(Privileges::SESSION | Privileges::USAGE) == 0,
                (ObjectType::Role, id) => id == Some(PUBLIC),
                (ObjectType::Space, Some(id)) => id < FIRST_SPACE,
                // What runs with the rights of who calls it.
                (ObjectType::Function, Some(_)) => grant.grantee == PUBLIC,
                _ => false,
            }
        })
    }

    /// The file says no more that this process runs. It is left alone if it is another one's by now.
    fn remove_pid_file(&self) {
        let options = self.options.borrow();
        let Some(path) = options.path("pid_file") else { return };
        let pid = std::process::id().to_string();
        if runtime::read_file(path).is_ok_and(|text| text == pid.as_bytes()) {
            // A file that stays is only a nuisance.
            let _ = SystemFiles.remove(path);
        }
    }

    fn has_password(&self) -> bool {
        self.database
            .catalog
            .users()
            .iter()
            .any(|user| user.kind == UserKind::User && user.id != GUEST && user.password_hash.is_some())
    }
}

impl Host for ProcessHost {
    fn configure(&self, changes: &[u8]) -> database::Result<()> {
        let before = self.options.borrow().clone();
        let options =
            before.with_changes(changes).map_err(|(name, reason)| Error::new(ErrorCode::Cfg, &[&name, &reason]))?;
        let has_changed = |name: &str| options.get(name) != before.get(name);
        if has_changed("log_level") {
            self.log.set_level(logging::level(options.text_or_default("log_level")).map_err(Error::illegal)?);
        }
        if has_changed("log_format") {
            self.log.set_json(logging::is_json(options.text_or_default("log_format")).map_err(Error::illegal)?);
        }
        if has_changed("log")
            && let Some(path) = options.path("log")
        {
            self.log.set_file(path).map_err(|error| Error::system(format!("{}: {error}", path.display())))?;
        }
        *self.options.borrow_mut() = options.clone();
        if !self.is_open.get() {
            if let Some(dir) = options.path("work_dir")
                && options.path("wal_dir").is_some()
            {
                // A script's work_dir is where it works; the other directories are relative to it.
                runtime::enter_directory(dir).map_err(|error| Error::system(format!("{}: {error}", dir.display())))?;
            }
            if let Err(error) = self.open() {
                *self.options.borrow_mut() = before;
                return Err(error);
            }
            // What a door keeps is made by a script, for which `box` is there.
            Lua::opened(&options.shown());
            let listens = self.listen_as_configured();
            if listens.is_err() {
                *self.options.borrow_mut() = options.without("listen");
            }
            return listens;
        }
        // What may fail comes first.
        let prepared = options.config().map_err(Error::illegal).and_then(|config| {
            // An address with parameters names files, which may be others by now.
            let listen = options.list("listen");
            if listen != before.list("listen") || listen.iter().any(|address| address.contains('?')) {
                self.listen(listen)?;
            }
            Ok(config)
        });
        match prepared {
            Ok(config) => self.database.reconfigure(|current| change(current, &config)),
            Err(error) => {
                *self.options.borrow_mut() = before;
                return Err(error);
            }
        }
        Ok(())
    }

    fn exit(&self, code: i32) {
        self.end_with(code);
    }

    fn listen_addresses(&self) -> Vec<String> {
        let text = |(door, address): (&str, Address)| match door {
            Iproto::NAME => address.to_string(),
            _ => format!("{door}://{address}"),
        };
        self.listeners.all_addresses().into_iter().map(text).collect()
    }

    fn rotate_log(&self) {
        self.log.rotate();
    }

    fn set_log(&self, level: Option<&str>, form: Option<&str>) -> database::Result<()> {
        if let Some(level) = level {
            self.log.set_level(logging::level(level).map_err(Error::illegal)?);
        }
        if let Some(form) = form {
            self.log.set_json(logging::is_json(form).map_err(Error::illegal)?);
        }
        Ok(())
    }
}
