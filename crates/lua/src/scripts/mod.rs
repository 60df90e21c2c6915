//! Scripts that work with another protocol's commands: Redis' `EVAL` and `FUNCTION`. `modules/scripts.lua` is the world that they see; here are the
//! ways out of it: commands, JSON, MessagePack, structures.

mod cjson;
mod cmsgpack;
mod resp;
mod structs;

use crate::lua::Lua;
use crate::registry::{Thread, registry};
use crate::state::{Function, Raise, State, clear_stale_interrupt};
use crate::watchdog::{self, ScriptWatch};
use database::{ScriptCall, ScriptCommands, ScriptFailure, ScriptFunction, ScriptId, Scripts};
use hashbrown::HashMap;
use mlua_sys as ffi;
use resp::Form;
use runtime::fiber::{self, FiberId};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

type Outcome = Result<c_int, Raise>;

/// Largest answer buffer that is kept.
const ANSWER_KEPT_MAX: usize = 64 << 10;
/// Parts of a command that need no allocation.
const INLINE: usize = 8;

/// A script under way.
struct Running {
    commands: Rc<dyn ScriptCommands>,
    is_resp3: Cell<bool>,
    /// Somebody wants it to end.
    is_killed: Cell<bool>,
}

/// What the boundary keeps for scripts.
#[derive(Default)]
pub(crate) struct ScriptRegistry {
    compile: Cell<c_int>,
    run: Cell<c_int>,
    library: Cell<c_int>,
    /// References to the functions of scripts.
    functions: RefCell<HashMap<ScriptId, c_int>>,
    last_id: Cell<u64>,
    /// By the fiber that it runs in.
    running: RefCell<HashMap<FiberId, Rc<Running>>>,
    answers: RefCell<Vec<u8>>,
}

impl ScriptRegistry {
    /// Keeps the function on top of the stack and pops it.
    fn keep(&self, state: State) -> ScriptId {
        let id = ScriptId(self.last_id.get() + 1);
        self.last_id.set(id.0);
        self.functions.borrow_mut().insert(id, state.make_ref());
        id
    }
}

/// A number as Redis gives it to commands: `%.17g`.
fn number_text(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return if value == 0.0 && value.is_sign_negative() { "-0".to_string() } else { (value as i64).to_string() };
    }
    if !value.is_finite() {
        return match (value.is_nan(), value > 0.0) {
            (true, _) => "nan",
            (false, true) => "inf",
            (false, false) => "-inf",
        }
        .to_string();
    }
    crate::json::format_number(value, 17)
}

/// Raises a table as Redis' errors are in Lua.
fn error_table(state: State, text: &str) -> Raise {
    state.reserve(4);
    state.new_table(0, 1);
    let table = state.top();
    state.push_str(text);
    state.set_field(table, "err");
    Raise::OnStack
}

/// Leaves an error as a value or raises it.
fn refused(state: State, raises: bool, text: &str) -> Outcome {
    let raise = error_table(state, text);
    if raises { Err(raise) } else { Ok(1) }
}

/// Hands the parts of a command on the stack to `work`; numbers become texts. Errors: the text of the refusal.
fn with_parts<T>(state: State, work: impl FnOnce(&[&[u8]]) -> T) -> Result<T, &'static str> {
    let count = state.top();
    if count == 0 {
        return Err("ERR Please specify at least one argument for this redis lib call");
    }
    let number_at = |index: c_int| state.number(index).map(number_text);
    let is_number = |index: &c_int| state.kind(*index) != ffi::LUA_TSTRING;
    let texts: Option<Vec<String>> = (1..=count).filter(is_number).map(number_at).collect();
    let Some(texts) = texts else {
        return Err("ERR Lua redis lib command arguments must be strings or integers");
    };
    let mut texts = texts.iter();
    let mut part_at = |index: c_int| match state.bytes(index) {
        Some(bytes) => bytes,
        None => texts.next().map_or(&[][..], |text| text.as_bytes()),
    };
    if count as usize <= INLINE {
        let mut parts: [&[u8]; INLINE] = [&[]; INLINE];
        for (part, index) in parts.iter_mut().zip(1..=count) {
            *part = part_at(index);
        }
        return Ok(work(&parts[..count as usize]));
    }
    let parts: Vec<&[u8]> = (1..=count).map(part_at).collect();
    Ok(work(&parts))
}

/// The script that runs in this fiber.
fn running() -> Option<Rc<Running>> {
    let fiber = fiber::current()?;
    registry().scripts.running.borrow().get(&fiber).cloned()
}

/// Lets others have their turn, if it is a script whose time has come. Yields. True: it is to end.
pub(crate) fn give_way() -> bool {
    if !watchdog::is_long() {
        return false;
    }
    let Some(running) = running() else { return false };
    let goes_on_for = running.commands.give_way().filter(|_| !watchdog::is_stop_asked());
    ScriptWatch::set_bound(goes_on_for.unwrap_or(u64::MAX));
    running.is_killed.set(goes_on_for.is_none());
    goes_on_for.is_none()
}

const NOT_RUNNING: &str = "ERR redis.call and its kin work within scripts only";

fn command(state: State, raises: bool) -> Outcome {
    let Some(running) = running() else { return refused(state, raises, NOT_RUNNING) };
    if running.is_killed.get() {
        return refused(state, true, KILLED);
    }
    state.check_may_wait()?;
    let scripts = &registry().scripts;
    let mut answer = scripts.answers.take();
    answer.clear();
    let outcome = with_parts(state, |parts| running.commands.command(parts, &mut answer));
    let pushed = match outcome {
        Ok(Ok(())) => {
            state.set_top(0);
            match resp::push_answer(state, &answer) {
                Ok(true) if raises => Err(Raise::OnStack),
                pushed => pushed.map(|_| 1),
            }
        }
        Ok(Err(error)) => refused(state, true, &format!("ERR {error}")),
        Err(text) => refused(state, raises, text),
    };
    if answer.capacity() <= ANSWER_KEPT_MAX {
        scripts.answers.replace(answer);
    }
    pushed
}

/// redis.call(command, parts...)
fn script_call(state: State) -> Outcome {
    command(state, true)
}

/// redis.pcall(command, parts...)
fn script_pcall(state: State) -> Outcome {
    command(state, false)
}

/// redis.acl_check_cmd(command, parts...) -> boolean
fn script_may_run(state: State) -> Outcome {
    let Some(running) = running() else { return refused(state, true, NOT_RUNNING) };
    match with_parts(state, |parts| running.commands.may_run(parts)) {
        Ok(Some(may)) => {
            state.push_bool(may);
            Ok(1)
        }
        Ok(None) => refused(state, true, "ERR Invalid command passed to redis.acl_check_cmd()"),
        Err(text) => refused(state, true, text),
    }
}

/// redis.setresp(version)
fn script_set_resp(state: State) -> Outcome {
    let Some(running) = running() else { return refused(state, true, NOT_RUNNING) };
    if state.top() != 1 {
        return refused(state, true, "ERR redis.setresp() requires one argument.");
    }
    let is_resp3 = match state.number(1) {
        Some(2.0) => false,
        Some(3.0) => true,
        _ => return refused(state, true, "ERR RESP version must be 2 or 3."),
    };
    running.is_resp3.set(is_resp3);
    running.commands.set_resp3(is_resp3);
    Ok(0)
}

/// script_log(level, text)
fn script_log(state: State) -> Outcome {
    let text = state.check_string(2, "text")?;
    match state.string(1).as_deref() {
        Some("debug" | "verbose") => tracing::debug!("script: {text}"),
        Some("warn") => tracing::warn!("script: {text}"),
        _ => tracing::info!("script: {text}"),
    }
    Ok(0)
}

/// script_null() -> what stands for null in JSON
fn script_null(state: State) -> Outcome {
    state.push_pointer(std::ptr::null_mut());
    Ok(1)
}

/// script_random_seed() -> whole number below 2^48
fn script_random_seed(state: State) -> Outcome {
    let mut bytes = [0; 8];
    crate::registry::database().environment().randomness.fill(&mut bytes);
    state.push_number((u64::from_le_bytes(bytes) >> 16) as f64);
    Ok(1)
}

/// scripts_setup({compile =, run =, library =})
fn scripts_setup(state: State) -> Outcome {
    let scripts = &registry().scripts;
    for (name, slot) in [("compile", &scripts.compile), ("run", &scripts.run), ("library", &scripts.library)] {
        state.get_field(1, name);
        slot.set(state.make_ref());
    }
    Ok(0)
}

/// Functions of `box.internal` for scripts.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("script_call", script_call),
    ("script_pcall", script_pcall),
    ("script_may_run", script_may_run),
    ("script_set_resp", script_set_resp),
    ("script_log", script_log),
    ("script_null", script_null),
    ("script_random_seed", script_random_seed),
    ("scripts_setup", scripts_setup),
    ("cjson_encode", cjson::encode),
    ("cjson_decode", cjson::decode),
    ("cmsgpack_pack", cmsgpack::pack),
    ("cmsgpack_unpack", cmsgpack::unpack),
    ("cmsgpack_unpack_one", cmsgpack::unpack_one),
    ("cmsgpack_unpack_limit", cmsgpack::unpack_limit),
    ("struct_pack", structs::pack),
    ("struct_unpack", structs::unpack),
    ("struct_size", structs::size),
];

/// The text of what was raised.
fn text_of(state: State, raise: Raise) -> String {
    crate::error::push_raise(state, raise);
    crate::error::take_error(state).to_string()
}

/// What a script that somebody has ended answers.
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL.";

/// Runs work with a Lua thread and a limit of memory that holds inside calls; what it made must not be charged to the next.
fn with_thread<T>(work: impl FnOnce(State) -> T) -> T {
    let thread = Thread::take();
    let state = thread.state;
    let memory = registry().memory();
    let depth = memory.exempt.replace(1);
    let result = work(state);
    memory.exempt.set(depth);
    if memory.is_scarce() {
        state.set_top(0);
        state.collect_garbage();
    }
    result
}

/// The function on top of the stack, or the message above it.
fn function_or_message(state: State) -> Result<(), String> {
    if state.kind(-2) == ffi::LUA_TNIL {
        return Err(state.string(-1).unwrap_or_default());
    }
    state.pop(1);
    Ok(())
}

fn push_list(state: State, values: &[&[u8]]) {
    state.new_table(values.len(), 0);
    let list = state.top();
    for (at, value) in values.iter().enumerate() {
        state.push_bytes(value);
        state.raw_set_index(list, at as c_int + 1);
    }
}

impl Scripts for Lua {
    fn compile(&self, source: &[u8]) -> Result<ScriptId, String> {
        let scripts = &registry().scripts;
        with_thread(|state| {
            clear_stale_interrupt(state.0);
            state.push_ref(scripts.compile.get());
            state.push_bytes(source);
            state.call_root(1, 2).map_err(|raise| text_of(state, raise))?;
            function_or_message(state)?;
            Ok(scripts.keep(state))
        })
    }

    fn load_library(&self, source: &[u8]) -> Result<Vec<ScriptFunction>, String> {
        let scripts = &registry().scripts;
        with_thread(|state| {
            clear_stale_interrupt(state.0);
            state.push_ref(scripts.library.get());
            state.push_bytes(source);
            state.call_root(1, 2).map_err(|raise| text_of(state, raise))?;
            function_or_message(state)?;
            let list = state.top();
            let mut functions = Vec::new();
            for at in 0..state.raw_length(list) {
                state.raw_get_index(list, at as c_int + 1);
                let one = list + 1;
                state.get_field(one, "name");
                let name = state.string(-1).unwrap_or_default();
                state.get_field(one, "description");
                let description = state.string(-1);
                state.get_field(one, "flags");
                let mut flags = Vec::new();
                let flag_list = state.top();
                for flag in 0..state.raw_length(flag_list) {
                    state.raw_get_index(flag_list, flag as c_int + 1);
                    flags.extend(state.string(-1));
                    state.pop(1);
                }
                state.get_field(one, "callback");
                let id = scripts.keep(state);
                functions.push(ScriptFunction { id, name, description, flags });
                state.set_top(list);
            }
            Ok(functions)
        })
    }

    fn forget(&self, id: ScriptId) {
        let registry = registry();
        let reference = registry.scripts.functions.borrow_mut().remove(&id);
        if let (Some(reference), Some(main)) = (reference, registry.main.get()) {
            main.drop_ref(reference);
        }
    }

    fn run(
        &self,
        id: ScriptId,
        call: &ScriptCall<'_>,
        commands: Rc<dyn ScriptCommands>,
        out: &mut Vec<u8>,
    ) -> Result<(), ScriptFailure> {
        let scripts = &registry().scripts;
        let reference = scripts.functions.borrow().get(&id).copied();
        let (Some(reference), Some(fiber)) = (reference, fiber::current()) else {
            return Err(ScriptFailure::Ended("ERR the script is not there any more".to_string()));
        };
        let running = Rc::new(Running { commands, is_resp3: Cell::new(false), is_killed: Cell::new(false) });
        let watch = ScriptWatch::begin(call.busy_after_ms);
        let outer = scripts.running.borrow_mut().insert(fiber, Rc::clone(&running));
        let outcome = with_thread(|state| {
            let ended = |raise| match running.is_killed.get() {
                true => ScriptFailure::Ended(format!("{KILLED} script: {}.", call.name)),
                false => ScriptFailure::Ended(format!("ERR {}", text_of(state, raise))),
            };
            clear_stale_interrupt(state.0);
            state.push_ref(scripts.run.get());
            state.push_ref(reference);
            state.push_str(call.name);
            push_list(state, call.keys);
            push_list(state, call.arguments);
            state.call_root(4, 2).map_err(ended)?;
            if !state.boolean(1) {
                return Err(ScriptFailure::Raised(state.string(2).unwrap_or_default()));
            }
            let start = out.len();
            let form = Form { script_resp3: running.is_resp3.get(), resp3: call.resp3 };
            resp::write_result(state, 2, out, form).map_err(|raise| {
                out.truncate(start);
                ScriptFailure::Raised(text_of(state, raise))
            })
        });
        drop(watch);
        let mut all = scripts.running.borrow_mut();
        match outer {
            Some(outer) => all.insert(fiber, outer),
            None => all.remove(&fiber),
        };
        outcome
    }
}
