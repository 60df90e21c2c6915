//! `FUNCTION` and `FCALL`: libraries of functions are rows of the space `redis_functions` and outlive restarts.

use super::busy;
use super::call::Call;
use super::dispatch::{TOO_MUCH, is_full};
use super::dump;
use super::failure::{Failure, Outcome};
use super::glob;
use super::reply::Reply;
use super::scripts::{self, Run, Says};
use database::{Key, Operation, ScanRequest, ScriptFunction, Scripts, Space};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::IndexId;
use tuple::msgpack::{self, Reader};
use wal::Position;

/// What stands before a library in Redis' files.
const FILE_MARK: u8 = 245;
/// Bytes of a library.
const LIBRARY_BYTES_MAX: usize = 16 << 20;
/// Libraries that there may be.
const LIBRARIES_MAX: usize = 1000;

/// A library whose functions can be called.
struct Library {
    source: Vec<u8>,
    functions: Vec<ScriptFunction>,
}

/// Libraries as the space had them at a moment.
#[derive(Default)]
pub(super) struct Libraries {
    /// The version of the schema and the last write to the space that they belong to.
    version: Option<(u64, Position)>,
    by_name: BTreeMap<Vec<u8>, Library>,
    /// Library and place in it.
    functions: HashMap<Vec<u8>, (Vec<u8>, usize)>,
}

impl Libraries {
    fn index(&mut self) {
        self.functions.clear();
        for (name, library) in &self.by_name {
            for (at, function) in library.functions.iter().enumerate() {
                self.functions.insert(function.name.to_ascii_lowercase().into_bytes(), (name.clone(), at));
            }
        }
    }
}

fn forget(engine: &dyn Scripts, functions: &[ScriptFunction]) {
    functions.iter().for_each(|function| engine.forget(function.id));
}

fn row_of(row: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut reader = Reader::new(row);
    reader.read_array().ok()?;
    Some((reader.read_str().ok()?.to_vec(), reader.read_str().ok()?.to_vec()))
}

/// Has the libraries be as the space has them now.
fn refresh(call: &Call<'_>) -> Outcome {
    let space = call.spaces.functions()?;
    let version = Some((call.database.catalog.schema_version(), space.last_write.get()));
    if call.shared.libraries.borrow().version == version && !call.context.is_in_txn() {
        return Ok(());
    }
    call.go_into_fiber()?;
    let engine = scripts::engine(call)?;
    let mut rows = BTreeMap::new();
    let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key { parts: &[], part_count: 0 });
    call.database.select(call.context, space, &request, |row| {
        rows.extend(row_of(row));
        true
    })?;
    let mut libraries = call.shared.libraries.borrow_mut();
    libraries.by_name.retain(|name, library| {
        let is_same = rows.get(name) == Some(&library.source);
        if !is_same {
            forget(&*engine, &library.functions);
        }
        is_same
    });
    for (name, source) in rows {
        if libraries.by_name.contains_key(&name) {
            continue;
        }
        let loaded = first_line(&source).and_then(|(_, begin)| Ok(engine.load_library(&source[begin..])?));
        match loaded {
            Ok(functions) => {
                libraries.by_name.insert(name, Library { source, functions });
            }
            Err(failure) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                tracing::warn!("the library '{name}' of space redis_functions cannot be loaded: {failure:?}");
            }
        }
    }
    libraries.index();
    // What a transaction sees may never come to be.
    libraries.version = version.filter(|_| !call.context.is_in_txn());
    Ok(())
}

/// The name of a library and where its first line ends.
fn first_line(source: &[u8]) -> Outcome<(Vec<u8>, usize)> {
    if !source.starts_with(b"#!") {
        return Err("ERR Missing library metadata".into());
    }
    let end = source.iter().position(|byte| *byte == b'\n').ok_or("ERR Invalid library metadata")?;
    let line = String::from_utf8_lossy(&source[2..end]).into_owned();
    let (engine, words) = line.split_once(|letter: char| letter.is_ascii_whitespace()).unwrap_or((&line, ""));
    let words = words.split_ascii_whitespace();
    let mut name: Option<&str> = None;
    for word in words {
        let Some(given) = word.strip_prefix("name=") else {
            return Err(format!("ERR Invalid metadata value given: {word}").into());
        };
        if name.is_some() {
            return Err("ERR Invalid metadata value, name argument was given multiple times".into());
        }
        let unquoted = |quote: char| given.strip_prefix(quote).and_then(|given| given.strip_suffix(quote));
        name = Some(unquoted('"').or_else(|| unquoted('\'')).unwrap_or(given));
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(format!("ERR Engine '{engine}' not found").into());
    }
    let name = name.ok_or("ERR Library name was not given")?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long".into(),
        );
    }
    Ok((name.as_bytes().to_vec(), end))
}

fn put(call: &Call<'_>, space: &Rc<Space>, name: &[u8], source: &[u8]) -> Outcome {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 2);
    msgpack::encode_str(&mut row, name);
    msgpack::encode_str(&mut row, source);
    call.database.execute(call.context, space, Operation::Replace { tuple: &row })?;
    Ok(())
}

fn delete(call: &Call<'_>, space: &Rc<Space>, name: &[u8]) -> Outcome {
    let mut key = Vec::new();
    msgpack::encode_array(&mut key, 1);
    msgpack::encode_str(&mut key, name);
    call.database.execute(call.context, space, Operation::Delete { index_id: IndexId::PRIMARY, key: &key })?;
    Ok(())
}

/// Checks a library and puts it into its space. Returns its name.
fn load(call: &Call<'_>, source: &[u8], replaces: bool) -> Outcome<Vec<u8>> {
    if source.len() > LIBRARY_BYTES_MAX {
        return Err("ERR a library has at most 16 MiB".into());
    }
    if is_full(call.database, call.shared) {
        return Err(TOO_MUCH.into());
    }
    refresh(call)?;
    let (name, begin) = first_line(source)?;
    {
        let libraries = call.shared.libraries.borrow();
        let is_there = libraries.by_name.contains_key(&name);
        if is_there && !replaces {
            return Err(format!("ERR Library '{}' already exists", String::from_utf8_lossy(&name)).into());
        }
        if !is_there && libraries.by_name.len() >= LIBRARIES_MAX {
            return Err(format!("ERR there are {LIBRARIES_MAX} libraries, which is the most").into());
        }
    }
    let engine = scripts::engine(call)?;
    let functions = engine.load_library(&source[begin..]).map_err(|text| match text.contains("ran too long") {
        true => Failure::from("ERR FUNCTION LOAD timeout"),
        false => text.into(),
    })?;
    let taken = {
        let libraries = call.shared.libraries.borrow();
        let is_taken = |function: &&ScriptFunction| {
            libraries
                .functions
                .get(function.name.to_ascii_lowercase().as_bytes())
                .is_some_and(|(library, _)| *library != name)
        };
        functions.iter().find(is_taken).map(|function| function.name.clone())
    };
    // They are made again when the row is read.
    forget(&*engine, &functions);
    if let Some(taken) = taken {
        return Err(format!("ERR Function {taken} already exists").into());
    }
    put(call, call.spaces.functions()?, &name, source)?;
    Ok(name)
}

/// True if a function says that it does not write, or is not there.
pub(super) fn is_read_only(shared: &super::shared::Shared, name: &[u8]) -> bool {
    let libraries = shared.libraries.borrow();
    let found = libraries
        .functions
        .get(&name.to_ascii_lowercase())
        .and_then(|(library, at)| libraries.by_name.get(library).and_then(|library| library.functions.get(*at)));
    found.is_none_or(|function| function.flags.iter().any(|flag| flag == "no-writes"))
}

fn call_as(call: &mut Call<'_>, is_read_only: bool) -> Outcome {
    call.go_into_fiber()?;
    refresh(call)?;
    let found = {
        let libraries = call.shared.libraries.borrow();
        libraries.functions.get(&call.args[1].to_ascii_lowercase()).and_then(|(library, at)| {
            libraries.by_name.get(library).and_then(|library| library.functions.get(*at)).cloned()
        })
    };
    let function = found.ok_or("ERR Function not found")?;
    let (keys, arguments) = scripts::keys_and_arguments(call, 2).map_err(|failure| match call.integer(2) {
        Ok(_) => failure,
        Err(_) => Failure::from("ERR Bad number of keys provided"),
    })?;
    let never_writes = function.flags.iter().any(|flag| flag == "no-writes");
    if is_read_only && !never_writes {
        return Err("ERR Can not execute a script with write flag using *_ro command.".into());
    }
    let says = Says {
        has_flags: true,
        is_read_only: never_writes,
        allows_oom: function.flags.iter().any(|flag| flag == "allow-oom"),
    };
    let run = Run { id: function.id, name: &function.name, says, keys, arguments };
    scripts::run(call, &run)
}

pub(super) fn fcall(call: &mut Call<'_>) -> Outcome {
    call_as(call, false)
}

pub(super) fn fcall_ro(call: &mut Call<'_>) -> Outcome {
    call_as(call, true)
}

fn list(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let (mut pattern, mut with_code, mut at) = (None, false, 2);
    while at < args.len() {
        if call.is_word(at, "withcode") && !with_code {
            with_code = true;
        } else if call.is_word(at, "libraryname") && pattern.is_none() {
            pattern = Some(*args.get(at + 1).ok_or("ERR library name argument was not given")?);
            at += 1;
        } else {
            return Err(format!("ERR Unknown argument {}", String::from_utf8_lossy(args[at])).into());
        }
        at += 1;
    }
    refresh(call)?;
    let shared = Rc::clone(call.shared);
    let libraries = shared.libraries.borrow();
    let shown: Vec<_> = libraries
        .by_name
        .iter()
        .filter(|(name, _)| pattern.is_none_or(|pattern| glob::matches(pattern, name)))
        .collect();
    let mut reply = call.reply();
    reply.array(shown.len());
    for (name, library) in shown {
        reply.map(if with_code { 4 } else { 3 });
        reply.text("library_name");
        reply.bulk(name);
        reply.text("engine");
        reply.text("LUA");
        reply.text("functions");
        reply.array(library.functions.len());
        for function in &library.functions {
            describe(&mut reply, function);
        }
        if with_code {
            reply.text("library_code");
            reply.bulk(&library.source);
        }
    }
    Ok(())
}

fn describe(reply: &mut Reply<'_>, function: &ScriptFunction) {
    reply.map(3);
    reply.text("name");
    reply.text(&function.name);
    reply.text("description");
    match &function.description {
        Some(description) => reply.text(description),
        None => reply.null(),
    }
    reply.text("flags");
    reply.set(function.flags.len());
    function.flags.iter().for_each(|flag| reply.simple(flag));
}

fn statistics(call: &mut Call<'_>) -> Outcome {
    busy::check_function(call.shared)?;
    refresh(call)?;
    let (libraries, functions) = {
        let libraries = call.shared.libraries.borrow();
        (libraries.by_name.len(), libraries.functions.len())
    };
    call.reply().map(2);
    call.reply().text("running_script");
    busy::describe(call);
    let mut reply = call.reply();
    reply.text("engines");
    reply.map(1);
    reply.text("LUA");
    reply.map(2);
    reply.text("libraries_count");
    reply.count(libraries);
    reply.text("functions_count");
    reply.count(functions);
    Ok(())
}

/// Makes the libraries of a payload, all or none.
fn restore(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let (flushes, replaces) = match args.get(3).map(|word| word.to_ascii_lowercase()).as_deref() {
        None | Some(b"append") => (false, false),
        Some(b"replace") => (false, true),
        Some(b"flush") => (true, false),
        Some(_) => {
            return Err("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.".into());
        }
    };
    let mut reader = dump::Reader::new(dump::unseal(args[2])?);
    let mut sources = Vec::new();
    while !reader.is_empty() {
        if reader.byte()? != FILE_MARK {
            return Err("ERR given type is not a function".into());
        }
        sources.push(reader.text()?);
    }
    call.atomically(|call| {
        if flushes {
            flush(call)?;
        }
        sources.iter().try_for_each(|source| match load(call, source, replaces) {
            // Redis has it in other words here.
            Err(Failure::Text(text)) if text.starts_with("ERR Library '") => Err(text.replace('\'', "").into()),
            loaded => loaded.map(drop),
        })
    })?;
    call.reply().ok();
    Ok(())
}

fn flush(call: &mut Call<'_>) -> Outcome {
    let space = Rc::clone(call.spaces.functions()?);
    let mut names = Vec::new();
    let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key { parts: &[], part_count: 0 });
    call.database.select(call.context, &space, &request, |row| {
        names.extend(row_of(row).map(|(name, _)| name));
        true
    })?;
    names.iter().try_for_each(|name| delete(call, &space, name))
}

const HELP: &[&str] = &[
    "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DELETE <library name>",
    "    Removes a library.",
    "DUMP",
    "    Returns all libraries as one payload.",
    "FLUSH [ASYNC|SYNC]",
    "    Removes all libraries.",
    "KILL",
    "    Ends the function that runs long, if it has not written.",
    "LIST [LIBRARYNAME pattern] [WITHCODE]",
    "    Returns libraries and their functions.",
    "LOAD [REPLACE] <code>",
    "    Makes a library, or replaces it.",
    "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
    "    Makes the libraries of a payload.",
    "STATS",
    "    Returns the function that runs long, and how many libraries and functions there are.",
    "HELP",
    "    Prints this help.",
];

pub(super) fn function(call: &mut Call<'_>) -> Outcome {
    call.go_into_fiber()?;
    let args = call.args;
    match (args[1].to_ascii_lowercase().as_slice(), args.len()) {
        (b"load", 3..) => {
            let replaces = args.len() == 4 && call.is_word(2, "replace");
            if args.len() > 3 && !replaces {
                return Err(format!("ERR Unknown option given: {}", String::from_utf8_lossy(args[2])).into());
            }
            let name = load(call, args[args.len() - 1], replaces)?;
            call.reply().bulk(&name);
        }
        (b"delete", 3) => {
            refresh(call)?;
            if !call.shared.libraries.borrow().by_name.contains_key(args[2]) {
                return Err("ERR Library not found".into());
            }
            delete(call, call.spaces.functions()?, args[2])?;
            call.reply().ok();
        }
        (b"flush", 2 | 3) => {
            scripts::check_flush(call, "FUNCTION")?;
            call.atomically(flush)?;
            call.reply().ok();
        }
        (b"list", _) => list(call)?,
        (b"stats", 2) => statistics(call)?,
        (b"kill", 2) => busy::kill(call, true)?,
        (b"help", 2) => scripts::help(call, HELP),
        (b"dump", 2) => {
            refresh(call)?;
            let mut payload = Vec::new();
            for library in call.shared.libraries.borrow().by_name.values() {
                payload.push(FILE_MARK);
                dump::write_text(&mut payload, &library.source);
            }
            call.reply().bulk(&dump::seal(payload));
        }
        (b"restore", 3 | 4) => restore(call)?,
        _ => {
            let name = String::from_utf8_lossy(args[1]).into_owned();
            if args[1].eq_ignore_ascii_case(b"flush") || args[1].eq_ignore_ascii_case(b"restore") {
                return Err(format!(
                    "ERR unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP."
                )
                .into());
            }
            let known = ["load", "delete", "list", "stats", "kill", "dump", "help"];
            return Err(scripts::unknown_subcommand(call, "function", &known));
        }
    }
    Ok(())
}
