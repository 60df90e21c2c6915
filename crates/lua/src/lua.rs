//! The one Lua state of the process, and how procedures are reached.

use crate::convert::{encode_results, push_bytes_value, push_next};
use crate::error::take_error;
use crate::modules::MODULES;
use crate::registry::{self, Thread, database, registry};
use crate::state::{Raise, State, new_state};
use crate::{api, decimals, error, fibers, json, library, remote, sockets, tuples, utf8, watchdog, yaml};
use database::{
    Context, Database, Error, ErrorCode, Function, Procedures, Result, SchemaObject, SessionEvent, SessionKind, Subject,
};
use mlua_sys as ffi;
use runtime::fiber;
use std::any::Any;
use std::rc::Rc;
use tuple::SpaceId;
use tuple::msgpack::{self, Reader};

/// What Lua needs of the process around it. `server` fills it.
pub trait Host {
    /// `box.cfg`: applies options given as a msgpack map of Tarantool's names. The first call opens the database. May wait.
    fn configure(&self, options: &[u8]) -> Result<()>;
    /// `os.exit`: ends the process soon; the caller's fiber does not go on.
    fn exit(&self, code: i32);
    /// Where the binary protocol listens.
    fn listen_addresses(&self) -> Vec<String>;
    /// Opens the log of events anew.
    fn rotate_log(&self);
    /// Changes what the log of events has (a level by name or number) and how its lines look (`plain` or `json`).
    fn set_log(&self, _level: Option<&str>, _form: Option<&str>) -> Result<()> {
        Ok(())
    }
}

/// Bounds on Lua code.
#[derive(Clone, Copy, Debug)]
pub struct LuaConfig {
    /// Bytes that Lua's own heap may have.
    pub memory: usize,
    /// Milliseconds that code may run without waiting; 0 for no bound.
    pub slice_max_ms: u64,
}

impl Default for LuaConfig {
    fn default() -> Self {
        LuaConfig { memory: 2 << 30, slice_max_ms: 5000 }
    }
}

/// See the head of this file. There is one per thread, for the life of the process.
pub struct Lua {
    _one_per_thread: std::marker::PhantomData<*const ()>,
}

impl Lua {
    /// Makes the Lua state over a database (that need not be open yet) and becomes its procedures.
    ///
    /// Errors: LuaJIT cannot start; a built-in module is broken.
    pub fn start(database: &Rc<Database>, host: Rc<dyn Host>, config: LuaConfig) -> std::result::Result<(), String> {
        let (state, memory) = new_state(config.memory).ok_or("LuaJIT cannot start")?;
        let registry = registry::renew();
        registry.memory.set(Some(memory));
        registry.main.set(Some(state));
        *registry.database.borrow_mut() = Some(Rc::clone(database));
        *registry.host.borrow_mut() = Some(host);
        state.new_table(0, 128);
        let internal = state.top();
        let parts = [
            api::FUNCTIONS,
            tuples::FUNCTIONS,
            fibers::FUNCTIONS,
            json::FUNCTIONS,
            crate::msgpack::FUNCTIONS,
            yaml::FUNCTIONS,
            utf8::FUNCTIONS,
            decimals::FUNCTIONS,
            library::FUNCTIONS,
            crate::watches::FUNCTIONS,
            sockets::FUNCTIONS,
            remote::FUNCTIONS,
            crate::queries::FUNCTIONS,
            crate::datetimes::FUNCTIONS,
            crate::processes::FUNCTIONS,
            crate::secure::FUNCTIONS,
            crate::key_defs::FUNCTIONS,
            crate::xlogs::FUNCTIONS,
            crate::byte_streams::FUNCTIONS,
            crate::crypto::FUNCTIONS,
            crate::inflate::FUNCTIONS,
            crate::scripts::FUNCTIONS,
        ];
        for (name, function) in parts.into_iter().flatten() {
            state.push_function(*function);
            state.set_field(internal, name);
        }
        for (name, source) in MODULES {
            let outcome = state.load(source.as_bytes(), &format!("@builtin/{name}.lua")).and_then(|()| {
                state.push_value(internal);
                state.pcall(1, 0)
            });
            if outcome.is_err() {
                return Err(format!("built-in module {name}: {}", take_error(state)));
            }
        }
        state.set_top(0);
        watchdog::set_slice_max_ms(state, config.slice_max_ms).map_err(|error| error.to_string())?;
        database.set_procedures(Rc::new(Lua { _one_per_thread: std::marker::PhantomData }));
        sql::serve_expressions(database);
        database.set_scripts(Rc::new(Lua { _one_per_thread: std::marker::PhantomData }));
        Ok(())
    }

    /// Runs work with a Lua thread in a fiber of its own, as the administrator.
    fn in_fiber(name: &str, kind: SessionKind, is_bounded: bool, work: impl FnOnce(State) + 'static) {
        let database = database();
        let context = Rc::new(Context::for_background(database.open_session(kind, None)));
        fiber::spawn(name, move || {
            fiber::set_slice_bounded(is_bounded);
            fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
            let thread = Thread::take();
            work(thread.state);
            if context.is_in_txn() {
                database.abandon(&context);
            }
        });
    }

    /// Runs a script in a fiber. `arguments`: what `arg` and `...` are to be, from the script's name at 0; the binary is at -1.
    /// `done` gets the outcome.
    pub fn run_script(name: &str, source: Vec<u8>, arguments: Vec<String>, done: impl FnOnce(Result<()>) + 'static) {
        let chunk = if name.starts_with('=') { name.to_string() } else { format!("@{name}") };
        let fiber_name = name.rsplit('/').next().unwrap_or(name).to_string();
        Self::in_fiber(&fiber_name, SessionKind::Background, false, move |state| {
            sync_schema(state);
            state.new_table(arguments.len(), 2);
            for (at, argument) in arguments.iter().enumerate() {
                state.push_str(argument);
                state.raw_set_index(1, at as i32);
            }
            // Programs start others of their kind by it.
            if let Ok(binary) = std::env::current_exe() {
                state.push_str(&binary.to_string_lossy());
                state.raw_set_index(1, -1);
            }
            state.set_field(ffi::LUA_GLOBALSINDEX, "arg");
            // A first line for the shell is not Lua.
            let source = match source.strip_prefix(b"#") {
                Some(_) => [b"--".as_slice(), &source].concat(),
                None => source,
            };
            let outcome = state.load(&source, &chunk).and_then(|()| {
                for argument in arguments.iter().skip(1) {
                    state.push_str(argument);
                }
                state.call_root(arguments.len().saturating_sub(1) as i32, 0)
            });
            done(outcome.map_err(|raise| raised(state, raise)));
        });
    }

    /// Tells Lua that the database is open and which options are in force, as a msgpack map of Tarantool's names.
    pub fn opened(options: &[u8]) {
        let thread = Thread::take();
        let state = thread.state;
        state.push_ref(registry().opened.get());
        let outcome = push_next(state, &mut Reader::new(options)).and_then(|()| state.pcall(1, 0));
        if let Err(raise) = outcome {
            tracing::error!("options cannot be shown to Lua: {}", raised(state, raise));
        }
        sync_schema(state);
    }

    /// Ends this thread's Lua state without running anything more in it, and lets go of its database: the simulated process has died.
    /// Fibers that are in the middle of Lua code must be abandoned first.
    pub fn abandon() {
        let registry = registry();
        registry.threads.borrow_mut().clear();
        registry.background.borrow_mut().take();
        registry.watchers.borrow_mut().clear();
        if let Some(state) = registry.main.take() {
            state.close();
        }
        registry.host.borrow_mut().take();
        registry.database.borrow_mut().take();
        registry::renew();
    }

    /// How long a stop may wait for triggers and for clients, in nanoseconds, if `box.ctl.set_on_shutdown_timeout` has said so.
    pub fn shutdown_timeout_ns() -> Option<u64> {
        registry().shutdown_timeout_ns.get()
    }

    /// Runs what `box.ctl.on_shutdown` holds, then `done`, in a fiber.
    pub fn shut_down(done: impl FnOnce() + 'static) {
        Self::in_fiber("shutdown", SessionKind::Background, true, move |state| {
            state.push_ref(registry().shutdown.get());
            if let Err(raise) = state.call_root(0, 0) {
                tracing::error!("on_shutdown: {}", raised(state, raise));
            }
            done();
        });
    }

    /// Does what a console asks for (`require('console').request`) in a fiber, as the administrator; `done` gets the answer as text and whether it
    /// is an error.
    pub fn run_console(request: [String; 4], done: impl FnOnce(String, bool) + 'static) {
        Self::in_fiber("console", SessionKind::Console, true, move |state| {
            sync_schema(state);
            state.push_ref(registry().console.get());
            request.iter().for_each(|part| state.push_str(part));
            let (text, is_error) = match state.call_root(request.len() as i32, 2) {
                Ok(()) => (state.string(-2).unwrap_or_default(), state.boolean(-1)),
                Err(raise) => (format!("---\n- error: {}\n...\n", raised(state, raise)), true),
            };
            done(text, is_error);
        });
    }
}

fn raised(state: State, raise: Raise) -> Error {
    error::push_raise(state, raise);
    take_error(state)
}

/// Makes `box.space` and its like show the schema as it is.
pub(crate) fn sync_schema(state: State) {
    let registry = registry();
    let version = database().catalog.schema_version();
    if registry.schema_version.get() == version || registry.refresh.get() == 0 {
        return;
    }
    let changes = database().catalog.changes_since(registry.schema_version.replace(version));
    state.reserve(8);
    state.push_ref(registry.refresh.get());
    match changes {
        Some(changes) => push_changes(state, &changes),
        // Everything is looked at.
        None => state.push_nil(),
    }
    if state.pcall(1, 0).is_err() {
        let error = take_error(state);
        tracing::error!("the schema cannot be shown to Lua: {error}");
    }
}

/// {space = {ids}, sequence = {ids}, func = {ids}}
fn push_changes(state: State, changes: &[SchemaObject]) {
    state.new_table(0, 3);
    let table = state.top();
    for name in ["space", "sequence", "func"] {
        state.new_table(0, 0);
        let list = state.top();
        let ids = changes.iter().filter_map(|change| match (name, change) {
            ("space", SchemaObject::Space(id)) => Some(*id),
            ("sequence", SchemaObject::Sequence(id)) => Some(SpaceId(*id)),
            ("func", SchemaObject::Function(id)) => Some(SpaceId(*id)),
            _ => None,
        });
        for (at, id) in ids.enumerate() {
            state.push_number(f64::from(id.0));
            state.raw_set_index(list, at as i32 + 1);
        }
        state.set_field(table, name);
    }
}

/// Pushes the values of an encoded array; returns how many.
fn push_arguments(state: State, arguments: &[u8]) -> std::result::Result<i32, Raise> {
    let length = msgpack::check(arguments).map_err(|_| Error::new(ErrorCode::InvalidMsgpack, &[&"arguments"]))?;
    let mut reader = Reader::new(&arguments[..length]);
    let count = reader.read_array().map_err(|_| Error::new(ErrorCode::InvalidMsgpack, &[&"arguments"]))?;
    if count > 8000 || !state.reserve(count as i32 + 10) {
        return Err("too many arguments".into());
    }
    for _ in 0..count {
        push_next(state, &mut reader)?;
    }
    Ok(count as i32)
}

/// Calls what `prepare` pushed, with the arguments, and encodes the results.
fn call_and_encode(
    prepare: impl FnOnce(State) -> std::result::Result<i32, Raise>,
    arguments: &[u8],
    is_old_style: bool,
    out: &mut Vec<u8>,
) -> Result<u32> {
    let thread = Thread::take();
    let state = thread.state;
    sync_schema(state);
    let run = || -> std::result::Result<u32, Raise> {
        let before = prepare(state)?;
        let count = push_arguments(state, arguments)?;
        state.call_root(before + count, ffi::LUA_MULTRET)?;
        let errors_as_text = !crate::registry::context().session.takes_errors.get();
        encode_results(state, 1, is_old_style, errors_as_text, out)
    };
    let memory = registry().memory();
    let depth = memory.exempt.replace(1);
    let outcome = run().map_err(|raise| raised(state, raise));
    memory.exempt.set(depth);
    if memory.is_scarce() {
        // What this request made must not be charged to the next.
        state.set_top(0);
        state.collect_garbage();
    }
    outcome
}

impl Procedures for Lua {
    fn call(
        &self,
        _context: &Rc<Context>,
        name: &str,
        function: Option<&Rc<Function>>,
        arguments: &[u8],
        is_old_style: bool,
        out: &mut Vec<u8>,
    ) -> Result<u32> {
        if let Some(function) = function.filter(|function| function.language == "C") {
            return crate::module_api::functions::call(function, arguments, is_old_style, out);
        }
        let registry = registry();
        let prepare = |state: State| match function {
            Some(function) if !function.body.is_empty() => {
                state.push_ref(registry.call_persistent.get());
                state.push_number(f64::from(function.id));
                state.push_str(&function.body);
                state.push_bool(function.is_sandboxed);
                Ok(3)
            }
            _ => {
                state.push_ref(registry.call.get());
                state.push_str(name);
                Ok(1)
            }
        };
        call_and_encode(prepare, arguments, is_old_style, out)
    }

    fn eval(&self, _context: &Rc<Context>, source: &str, arguments: &[u8], out: &mut Vec<u8>) -> Result<u32> {
        call_and_encode(|state| state.load(source.as_bytes(), "=eval").map(|()| 0), arguments, false, out)
    }

    fn manage_accounts(&self, _context: &Context, arguments: &[u8]) -> Result<()> {
        let prepare = |state: State| {
            state.push_ref(registry().manage_accounts.get());
            Ok(0)
        };
        call_and_encode(prepare, arguments, false, &mut Vec::new()).map(drop)
    }

    fn check_function(&self, function: &Function) -> Result<()> {
        let thread = Thread::take();
        let state = thread.state;
        let failed = |text: &str| Error::new(ErrorCode::LoadFunction, &[&function.name, &text]);
        state.push_ref(registry().compile_function.get());
        state.push_str(&function.body);
        state.push_bool(function.is_sandboxed);
        if state.pcall(2, 1).is_err() {
            return Err(failed(take_error(state).message()));
        }
        if state.kind(-1) != ffi::LUA_TFUNCTION {
            return Err(failed("given body doesn't define a function"));
        }
        Ok(())
    }

    fn is_satisfied(&self, function: &Function, subject: Subject<'_>, constraint: &str) -> Result<bool> {
        let thread = Thread::take();
        let state = thread.state;
        state.push_ref(registry().call_persistent.get());
        state.push_number(f64::from(function.id));
        state.push_str(&function.body);
        state.push_bool(function.is_sandboxed);
        match subject {
            Subject::Row(row) => _ = api::push_found(state, Some(row.clone())),
            Subject::Value(value) => push_bytes_value(state, value).map_err(|raise| raised(state, raise))?,
        }
        state.push_str(constraint);
        // What was looked at for the row must not change.
        let before = registry().is_checking.replace(true);
        let called = state.pcall(5, 1);
        registry().is_checking.set(before);
        if called.is_err() {
            return Err(take_error(state));
        }
        Ok(state.kind(-1) == ffi::LUA_TBOOLEAN && state.boolean(-1))
    }

    fn wants(&self, event: SessionEvent) -> bool {
        registry().session_triggers.borrow().contains(event.name())
    }

    fn session_event(&self, _context: &Rc<Context>, event: SessionEvent) {
        let thread = Thread::take();
        let state = thread.state;
        state.push_ref(registry().session_event.get());
        state.push_str(event.name());
        if let Err(raise) = state.call_root(1, 0) {
            tracing::error!("{}: {}", event.name(), raised(state, raise));
        }
    }
}
