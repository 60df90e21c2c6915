//! What the boundary code needs at hand: numbers of C types, references to Lua values, the database.

use crate::state::{Memory, State};
use database::{Context, Database};
use runtime::fiber;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::c_int;
use std::rc::Rc;

/// LuaJIT's numbers of the C types that values are told apart by.
#[derive(Clone, Copy, Default)]
pub(crate) struct CtypeIds {
    pub(crate) int64: u32,
    pub(crate) uint64: u32,
    pub(crate) null: u32,
    pub(crate) float: u32,
    pub(crate) double: u32,
    pub(crate) tuple: u32,
    pub(crate) uuid: u32,
    pub(crate) decimal: u32,
    pub(crate) datetime: u32,
    pub(crate) interval: u32,
    pub(crate) varbinary: u32,
    pub(crate) error: u32,
    /// `char *`
    pub(crate) bytes: u32,
    /// `const char *`
    pub(crate) const_bytes: u32,
}

/// One for each Lua state.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) ids: Cell<CtypeIds>,
    pub(crate) null: Cell<c_int>,
    /// Lua function: an object of binary data.
    pub(crate) make_varbinary: Cell<c_int>,
    /// Binary data become such objects, and not strings.
    pub(crate) decodes_varbinary: Cell<bool>,
    pub(crate) array_metatable: Cell<c_int>,
    pub(crate) map_metatable: Cell<c_int>,
    /// Lua table: methods of tuple objects.
    pub(crate) tuple_methods: Cell<c_int>,
    /// Lua table: for each format a table of field numbers by name; 0 until it is made.
    pub(crate) field_numbers: Cell<c_int>,
    /// The schema version that `field_numbers` belongs to.
    pub(crate) field_numbers_version: Cell<u64>,
    /// Lua function: a cdata of any other kind as a plain value.
    pub(crate) to_plain: Cell<c_int>,
    /// Lua function: makes an error object of its parts.
    pub(crate) make_error: Cell<c_int>,
    /// Lua function: the parts of an error object.
    pub(crate) error_parts: Cell<c_int>,
    /// Lua function: a fiber has ended with these results.
    pub(crate) fiber_ended: Cell<c_int>,
    /// Lua function: any value as text.
    pub(crate) to_text: Cell<c_int>,
    pub(crate) database: RefCell<Option<Rc<Database>>>,
    pub(crate) main: Cell<Option<State>>,
    /// Lua threads that no fiber uses: thread and its reference.
    pub(crate) threads: RefCell<Vec<(State, c_int)>>,
    /// A context for code that runs outside of requests.
    pub(crate) background: RefCell<Option<Rc<Context>>>,
    pub(crate) host: RefCell<Option<Rc<dyn crate::Host>>>,
    pub(crate) memory: Cell<Option<&'static Memory>>,
    /// Lua function: calls a procedure by name.
    pub(crate) call: Cell<c_int>,
    /// Lua function: calls a persistent function with a body.
    pub(crate) call_persistent: Cell<c_int>,
    /// The function of a constraint runs: its fiber may not wait.
    pub(crate) is_checking: Cell<bool>,
    /// Lua function: the file of a module in C.
    pub(crate) search_library: Cell<c_int>,
    /// Lua function: the function that the body of a persistent one stands for.
    pub(crate) compile_function: Cell<c_int>,
    /// Scans and savepoints that Lua holds, by address: any other pointer is refused.
    pub(crate) scans: RefCell<hashbrown::HashSet<usize>>,
    pub(crate) savepoints: RefCell<hashbrown::HashSet<usize>>,
    /// Key definitions that Lua holds, by their numbers.
    pub(crate) key_defs: RefCell<hashbrown::HashMap<u64, Rc<crate::key_defs::Definition>>>,
    /// The number of the last one.
    pub(crate) key_defs_made: Cell<u64>,
    /// Ciphers, digests and packed bodies that Lua feeds, by their numbers.
    pub(crate) byte_streams: RefCell<hashbrown::HashMap<u64, Box<dyn crate::byte_streams::ByteStream>>>,
    /// The number of the last one.
    pub(crate) byte_streams_made: Cell<u64>,
    /// Logs and snapshots that Lua reads, by their numbers.
    pub(crate) xlogs: RefCell<hashbrown::HashMap<u64, Rc<RefCell<wal::XlogReader>>>>,
    /// The number of the last one.
    pub(crate) xlogs_opened: Cell<u64>,
    /// Lua function: makes `box.space` and its like follow the schema.
    pub(crate) refresh: Cell<c_int>,
    /// The schema version that Lua's tables show.
    pub(crate) schema_version: Cell<u64>,
    /// Lua function: runs a line of a console, gives text.
    pub(crate) console: Cell<c_int>,
    /// Lua function: takes notice of options that were set from outside.
    pub(crate) opened: Cell<c_int>,
    /// Lua function: runs what is to run before the process ends.
    pub(crate) shutdown: Cell<c_int>,
    /// How long a stop may wait for triggers and for clients, in nanoseconds; None: as long as the process means to.
    pub(crate) shutdown_timeout_ns: Cell<Option<u64>>,
    /// Error objects in rows and results become text, as `msgpack.cfg` says.
    pub(crate) errors_as_text: Cell<bool>,
    /// How many error objects have become msgpack's extension.
    pub(crate) errors_encoded: Cell<u64>,
    /// Lua function: the stack of an error object, as msgpack has it.
    pub(crate) error_stack: Cell<c_int>,
    /// Lua function: an error object of such a stack.
    pub(crate) error_of_stack: Cell<c_int>,
    /// Lua function: runs triggers of sessions.
    pub(crate) session_event: Cell<c_int>,
    /// Lua function: makes and changes users and roles for statements of SQL.
    pub(crate) manage_accounts: Cell<c_int>,
    /// Functions that watch keys, by the numbers of their watches.
    pub(crate) watchers: RefCell<hashbrown::HashMap<u64, Rc<crate::watches::LuaWatcher>>>,
    /// Sockets with TLS.
    pub(crate) secure: RefCell<crate::secure::SecureSockets>,
    pub(crate) scripts: crate::scripts::ScriptRegistry,
    /// Which triggers of sessions there are.
    pub(crate) session_triggers: RefCell<HashSet<String>>,
}

impl Registry {
    /// The memory account of the state.
    pub(crate) fn memory(&self) -> &'static Memory {
        self.memory.get().expect("set with the state")
    }
}

thread_local! {
    static REGISTRY: Cell<Option<&'static Registry>> = const { Cell::new(None) };
}

/// The registry of this thread.
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.with(|cell| match cell.get() {
        Some(registry) => registry,
        None => renew(),
    })
}

/// A registry for a new Lua state of this thread.
pub(crate) fn renew() -> &'static Registry {
    let registry: &'static Registry = Box::leak(Box::default());
    REGISTRY.with(|cell| cell.set(Some(registry)));
    registry
}

/// The database.
pub(crate) fn database() -> Rc<Database> {
    registry().database.borrow().clone().expect("set before any Lua code runs")
}

/// The context of the running fiber.
#[inline]
pub(crate) fn context() -> Rc<Context> {
    if let Some(context) = fiber::local::<Context>() {
        return context;
    }
    let registry = registry();
    let mut background = registry.background.borrow_mut();
    Rc::clone(background.get_or_insert_with(|| {
        let database = database();
        let session = database.open_session(database::SessionKind::Background, None);
        Rc::new(Context::for_background(session))
    }))
}

/// A Lua thread for one fiber: taken from the pool, given back when dropped.
pub(crate) struct Thread {
    pub(crate) state: State,
    reference: c_int,
}

impl Thread {
    pub(crate) fn take() -> Thread {
        let registry = registry();
        if let Some((state, reference)) = registry.threads.borrow_mut().pop() {
            return Thread { state, reference };
        }
        let main = registry.main.get().expect("the state is made first");
        main.reserve(4);
        let state = main.new_thread();
        let reference = main.make_ref();
        Thread { state, reference }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Whatever was interrupted is over; what goes on for too long outside is interrupted again.
        crate::state::clear_interrupt(self.state.0);
        self.state.set_top(0);
        let mut threads = registry().threads.borrow_mut();
        if threads.len() < 1024 {
            threads.push((self.state, self.reference));
        } else if let Some(main) = registry().main.get() {
            main.drop_ref(self.reference);
        }
    }
}
