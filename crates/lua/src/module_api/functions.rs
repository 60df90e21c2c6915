//! Stored functions in C: `module.function` is that function of a library which is found on `package.cpath` at its first call.
//!
//! All functions of a module come from one library until it is loaded anew; calls that are under way then end in the old one, whose code goes with the last
//! of them. A function that is dropped is forgotten: one of the same name is loaded again.
#![expect(unsafe_code, reason = "code of libraries is called by its address, with pointers to arguments")]

use super::{errors, fibers, row, value};
use crate::convert::{encode_array, push_bytes_value, push_tuple};
use crate::registry::{Thread, context, database, registry};
use crate::state::{Raise, State};
use database::{Error, ErrorCode, Function, Result};
use runtime::SharedLibrary;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::rc::{Rc, Weak};
use tuple::{Tuple, msgpack};

/// What a stored function is: it gets its results' place and its arguments as msgpack; 0, or something else with an error left behind.
type Code = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int;

/// The library of a module.
struct Library(Option<SharedLibrary>);

impl Drop for Library {
    fn drop(&mut self) {
        if fibers::are_there() {
            // A fiber of some module goes on: its code stays, whosever it is.
            std::mem::forget(self.0.take());
        }
    }
}

/// A function that was called.
#[derive(Clone)]
struct Loaded {
    /// The definition that it was loaded for.
    function: Weak<Function>,
    code: Code,
    library: Rc<Library>,
}

thread_local! {
    /// By whole names. Bounded by the functions that are defined: see `forget_dropped`.
    /// Not taken down when the thread ends: nothing of a library may run then.
    static LOADED: ManuallyDrop<RefCell<HashMap<String, Loaded>>> = ManuallyDrop::default();
}

/// One result of a stored function.
enum Returned {
    Row(Tuple),
    /// Encoded.
    Value(Vec<u8>),
}

/// What a module knows as `box_function_ctx_t`.
#[derive(Default)]
struct Results(RefCell<Vec<Returned>>);

/// Returns a tuple.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_return_tuple(results: *mut c_void, tuple: *mut c_void) -> c_int {
    // SAFETY: what the function was called with, and a row of the module.
    let (results, row) = unsafe { (&*results.cast::<Results>(), row(tuple)) };
    results.0.borrow_mut().push(Returned::Row(row));
    0
}

/// Returns a value of msgpack.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_return_mp(results: *mut c_void, start: *const c_char, end: *const c_char) -> c_int {
    // SAFETY: what the function was called with, and the module's bytes.
    let (results, bytes) = unsafe { (&*results.cast::<Results>(), value(start, end)) };
    super::status(bytes.map(|bytes| results.0.borrow_mut().push(Returned::Value(bytes.to_vec()))))
}

/// Module and function of a name: what stands before the last dot, and behind it. Without a dot both have the whole name.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or((name, name))
}

/// The file of a module on `package.cpath`.
fn path_of(module: &str) -> Result<String> {
    let thread = Thread::take();
    let state = thread.state;
    state.push_ref(registry().search_library.get());
    state.push_str(module);
    let path = state.pcall(1, 1).ok().and_then(|()| state.string(-1));
    path.ok_or_else(|| Error::new(ErrorCode::LoadModule, &[&module, &"module not found"]))
}

fn open(module: &str) -> Result<Rc<Library>> {
    let path = path_of(module)?;
    let library = SharedLibrary::open(Path::new(&path));
    let library = library.map_err(|reason| Error::new(ErrorCode::LoadModule, &[&module, &reason]))?;
    Ok(Rc::new(Library(Some(library))))
}

fn find(library: &Rc<Library>, function: &Weak<Function>, name: &str) -> Result<Loaded> {
    let symbol = split(name).1;
    let opened = library.0.as_ref().expect("taken when it is dropped");
    let address = opened.function(symbol).map_err(|reason| Error::new(ErrorCode::LoadFunction, &[&symbol, &reason]))?;
    // SAFETY: that the symbol is a stored function is the promise of whoever made it one; an address of code fits a pointer to code.
    let code = unsafe { std::mem::transmute::<*mut c_void, Code>(address) };
    Ok(Loaded { function: Weak::clone(function), code, library: Rc::clone(library) })
}

/// Lets go of functions that are not defined any more.
fn forget_dropped(loaded: &mut HashMap<String, Loaded>) {
    let database = database();
    loaded.retain(|name, known| {
        let defined = database.catalog.function_by_name(name);
        defined.is_some_and(|defined| std::ptr::eq(Rc::as_ptr(&defined), Weak::as_ptr(&known.function)))
    });
}

/// The functions of a module that were called and are defined still.
fn called_of(module: &str) -> Vec<(String, Loaded)> {
    LOADED.with(|loaded| {
        let mut loaded = loaded.borrow_mut();
        forget_dropped(&mut loaded);
        let own = loaded.iter().filter(|(name, _)| split(name).0 == module);
        own.map(|(name, known)| (name.clone(), known.clone())).collect()
    })
}

/// The code of a function, which is loaded if it is not there. Errors: `LoadModule`, `LoadFunction`.
fn load(function: &Rc<Function>) -> Result<Loaded> {
    let known = LOADED.with(|loaded| loaded.borrow().get(&function.name).cloned());
    if let Some(known) = known.filter(|known| std::ptr::eq(Weak::as_ptr(&known.function), Rc::as_ptr(function))) {
        return Ok(known);
    }
    let module = split(&function.name).0;
    let siblings = called_of(module);
    let library = match siblings.first() {
        Some((_, sibling)) => Rc::clone(&sibling.library),
        None => open(module)?,
    };
    let found = find(&library, &Rc::downgrade(function), &function.name)?;
    LOADED.with(|loaded| loaded.borrow_mut().insert(function.name.clone(), found.clone()));
    Ok(found)
}

/// Loads the library of a module anew; if it lacks one of the functions that were called, the old one stays. Errors: `NoSuchModule` if none of its functions
/// was called; `LoadModule`, `LoadFunction`.
fn reload(module: &str) -> Result<()> {
    let before = called_of(module);
    if before.is_empty() {
        let text = format!("Module '{module}' does not exist");
        return Err(Error::new(ErrorCode::NoSuchModule, &[&text]));
    }
    let library = open(module)?;
    let after = before.iter().map(|(name, known)| Ok((name.clone(), find(&library, &known.function, name)?)));
    let after = after.collect::<Result<Vec<_>>>()?;
    LOADED.with(|loaded| loaded.borrow_mut().extend(after));
    Ok(())
}

/// Runs a function with encoded arguments. May wait.
fn run(function: &Rc<Function>, arguments: &[u8]) -> Result<Vec<Returned>> {
    let loaded = load(function)?;
    let results = Results::default();
    errors::take_last();
    let range = arguments.as_ptr_range();
    // SAFETY: the code is there as long as `loaded`; it gets what `module.h` says. Results and arguments outlive the call.
    let status =
        unsafe { (loaded.code)(std::ptr::from_ref(&results).cast_mut().cast(), range.start.cast(), range.end.cast()) };
    if status != 0 {
        return Err(errors::take_last().unwrap_or_else(|| Error::new(ErrorCode::ProcC, &[&"unknown error"])));
    }
    Ok(results.0.take())
}

/// Calls a stored function for a client and appends its results, encoded: as one list of all, or one after the other in the old style. Returns how many values
/// that makes. May wait.
pub(crate) fn call(function: &Rc<Function>, arguments: &[u8], is_old_style: bool, out: &mut Vec<u8>) -> Result<u32> {
    let malformed = || Error::new(ErrorCode::InvalidMsgpack, &[&"arguments"]);
    let length = msgpack::check(arguments).map_err(|_| malformed())?;
    let arguments = &arguments[..length];
    if msgpack::Reader::new(arguments).kind() != Ok(msgpack::Kind::Array) {
        return Err(malformed());
    }
    let results = run(function, arguments)?;
    if !is_old_style {
        msgpack::encode_array(out, results.len() as u32);
    }
    for result in &results {
        match result {
            Returned::Row(row) => out.extend_from_slice(row.data()),
            Returned::Value(value) => out.extend_from_slice(value),
        }
    }
    Ok(if is_old_style { results.len() as u32 } else { 1 })
}

/// call_stored(id, arguments) -> results
pub(crate) fn call_stored(state: State) -> std::result::Result<c_int, Raise> {
    state.check_may_wait()?;
    let id = state.check_number(1, "id")? as u32;
    let function = database().catalog.function(id);
    let function = function.ok_or_else(|| Error::new(ErrorCode::NoSuchFunction, &[&id]))?;
    let mut arguments = Vec::new();
    encode_array(state, 2, &mut arguments)?;
    let outcome = run(&function, &arguments);
    crate::lua::sync_schema(state);
    let results = outcome?;
    if !state.reserve(results.len() as c_int + 8) {
        return Err("too many results".into());
    }
    for result in &results {
        match result {
            Returned::Row(row) => push_tuple(state, row),
            Returned::Value(value) => push_bytes_value(state, value)?,
        }
    }
    Ok(results.len() as c_int)
}

/// reload_module(name): its functions come from the library as it is now
pub(crate) fn reload_module(state: State) -> std::result::Result<c_int, Raise> {
    let name = state.check_string(1, "name")?;
    let (database, context) = (database(), context());
    if database.check_execute_universe(&context).is_err() {
        let user = database.catalog.user_name(context.user(&database.catalog));
        return Err(Error::new(ErrorCode::AccessDenied, &[&"Usage", &"universe", &"", &user]).into());
    }
    reload(&name)?;
    Ok(0)
}
