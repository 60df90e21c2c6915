//! `EVAL` and its kin: a script runs in one transaction of the database, so others see all of what it did or nothing, also after a crash. As in Redis,
//! what it did before an error stands; what is ended by force is undone.

use super::busy::{self, Busy};
use super::call::{Call, Head};
use super::dispatch::{TOO_MUCH, is_full, is_too_much, run_inside};
use super::events::Event;
use super::failure::{Failure, Outcome};
use super::reply::Reply;
use super::shared::Shared;
use super::state::State;
use super::table::{Flag, Spec, find};
use super::tracking;
use super::{allowed, attention};
use crate::connection::Connection;
use database::{Context, Error, Privileges, Result, ScriptCall, ScriptCommands, ScriptFailure, ScriptId, Scripts};
use hashbrown::HashMap;
use runtime::fiber;
use sha1::{Digest, Sha1};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Scripts that are kept, and bytes of their sources: the oldest go first.
const SCRIPTS_MAX: usize = 10_000;
const SCRIPT_BYTES_MAX: usize = 64 << 20;

/// The SHA1 of a script in 40 hexadecimal digits.
type Name = [u8; 40];

/// A script of the cache.
#[derive(Clone, Copy)]
struct Script {
    id: ScriptId,
    says: Says,
    bytes: usize,
}

/// Scripts that were run or loaded; they are gone with a restart, as in Redis.
#[derive(Default)]
pub(super) struct Cache {
    by_name: HashMap<Name, Script>,
    /// The oldest first.
    order: VecDeque<Name>,
    bytes: usize,
}

impl Cache {
    fn add(&mut self, scripts: &dyn Scripts, name: Name, script: Script) {
        while self.order.len() >= SCRIPTS_MAX || !self.order.is_empty() && self.bytes + script.bytes > SCRIPT_BYTES_MAX
        {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(gone) = self.by_name.remove(&oldest) {
                self.bytes -= gone.bytes;
                scripts.forget(gone.id);
            }
        }
        self.bytes += script.bytes;
        self.order.push_back(name);
        self.by_name.insert(name, script);
    }

    pub(super) fn count(&self) -> usize {
        self.by_name.len()
    }

    fn clear(&mut self, scripts: &dyn Scripts) {
        self.by_name.drain().for_each(|(_, script)| scripts.forget(script.id));
        self.order.clear();
        self.bytes = 0;
    }
}

pub(super) fn engine(call: &Call<'_>) -> Outcome<Rc<dyn Scripts>> {
    call.database.scripts().ok_or_else(|| "ERR this server has no Lua".into())
}

fn name_of(source: &[u8]) -> Name {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut name = [0; 40];
    for (pair, byte) in name.chunks_exact_mut(2).zip(Sha1::digest(source)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    name
}

/// True if a script says that it does not write: its source, or its name in the cache.
pub(super) fn is_read_only(shared: &Shared, is_source: bool, args: &[&[u8]]) -> bool {
    let Some(text) = args.get(1) else { return true };
    if is_source {
        return first_line(text).is_ok_and(|(says, _)| says.is_read_only);
    }
    let name = Name::try_from(text.to_ascii_lowercase().as_slice());
    name.is_ok_and(|name| shared.scripts.borrow().by_name.get(&name).is_none_or(|script| script.says.is_read_only))
}

/// What a script says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Says {
    /// It says something: what it does not ask for it does not get.
    pub(super) has_flags: bool,
    pub(super) is_read_only: bool,
    /// It runs beyond `maxmemory`, too.
    pub(super) allows_oom: bool,
}

/// What the first line of a script says (`#!lua flags=...`), and where the line ends.
fn first_line(source: &[u8]) -> Outcome<(Says, usize)> {
    let mut says = Says::default();
    if !source.starts_with(b"#!") {
        return Ok((says, 0));
    }
    says.has_flags = true;
    let end = source.iter().position(|byte| *byte == b'\n').ok_or("ERR Invalid script shebang")?;
    let line = String::from_utf8_lossy(&source[..end]).into_owned();
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(format!("ERR Unexpected engine in script shebang: {engine}").into());
    }
    for word in words {
        let Some(flags) = word.strip_prefix("flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {word}").into());
        };
        for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
            match flag {
                "no-writes" => says.is_read_only = true,
                "allow-oom" => says.allows_oom = true,
                "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                _ => return Err(format!("ERR Unexpected flag in script shebang: {flag}").into()),
            }
        }
    }
    Ok((says, end))
}

/// A script of the cache, or compiled and put there.
fn load(call: &Call<'_>, source: &[u8]) -> Outcome<(Name, Script)> {
    let name = name_of(source);
    if let Some(script) = call.shared.scripts.borrow().by_name.get(&name) {
        return Ok((name, *script));
    }
    if source.len() > SCRIPT_BYTES_MAX {
        return Err("ERR a script has at most 64 MiB".into());
    }
    let scripts = engine(call)?;
    let (says, begin) = first_line(source)?;
    let id = scripts
        .compile(&source[begin..])
        .map_err(|message| format!("ERR Error compiling script (new function): {message}"))?;
    let script = Script { id, says, bytes: source.len() };
    call.shared.scripts.borrow_mut().add(&*scripts, name, script);
    Ok((name, script))
}

/// The commands of one script.
struct Commands {
    connection: Rc<Connection>,
    context: Rc<Context>,
    shared: Rc<Shared>,
    /// Of the script: it may choose another database without its client doing so.
    state: State,
    says: Says,
    busy: Rc<Busy>,
    left: RefCell<Vec<Head>>,
    events: RefCell<Vec<Event>>,
    /// Keys that it has declared.
    keys: Vec<Vec<u8>>,
    /// Why nothing more can be done.
    failure: RefCell<Option<Error>>,
    has_failed: Cell<bool>,
    /// The error that the last one of them which failed has come to.
    last_error: RefCell<Vec<u8>>,
}

impl Commands {
    fn refuse(&self, out: &mut Vec<u8>, spec: Option<&'static Spec>, text: &str) -> Result<()> {
        if let Some(spec) = spec {
            self.shared.stats.reject(spec);
        }
        self.shared.stats.count_error(text.as_bytes());
        *self.last_error.borrow_mut() = text.trim_end_matches('.').as_bytes().to_vec();
        Reply { out, resp3: false }.error(text);
        Ok(())
    }
}

impl ScriptCommands for Commands {
    fn command(&self, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        if self.has_failed.get() {
            return Err(Error::illegal("the script cannot go on"));
        }
        let Some(spec) = parts.first().and_then(|name| find(name)) else {
            return self.refuse(out, None, "ERR Unknown Redis command called from script");
        };
        if !spec.takes(parts.len()) {
            return self.refuse(out, Some(spec), "ERR Wrong number of args calling Redis command from script");
        }
        if spec.is(Flag::NotInScript) && !self.shared.allows_denied.get() {
            return self.refuse(out, Some(spec), "ERR This Redis command is not allowed from script");
        }
        if let Err(denied) =
            allowed::check(&self.shared, &self.connection, &self.state, (spec, parts), allowed::Place::Script)
        {
            return self.refuse(out, Some(spec), denied.text_for_script());
        }
        let is_for_others = matches!(spec.name, "publish" | "spublish" | "pfcount");
        if self.says.is_read_only && (spec.is(Flag::Write) || is_for_others) {
            return self.refuse(out, Some(spec), "ERR Write commands are not allowed from read-only scripts.");
        }
        if self.shared.maxmemory.get() > 0
            && !self.says.allows_oom
            && is_too_much(self.connection.database(), &self.shared, spec)
        {
            return self.refuse(out, Some(spec), TOO_MUCH);
        }
        if spec.is(Flag::Write) {
            self.busy.writes.set(self.busy.writes.get() + 1);
        }
        if self.shared.is_attentive.get() {
            attention::feed(&self.shared, (&self.connection, &self.state), spec, parts, true);
        }
        if self.shared.is_watchful.get() && spec.is(Flag::Read) {
            let keys: Vec<&[u8]> = self.keys.iter().map(Vec::as_slice).collect();
            tracking::remember_keys(&self.shared, (&self.connection, &self.state), &keys);
        }
        let database = self.connection.database();
        let mut call = Call {
            database,
            connection: &self.connection,
            context: &self.context,
            state: &self.state,
            shared: &self.shared,
            spaces: self.shared.spaces(database),
            out,
            args: parts,
            db: self.state.db.get(),
            is_write: false,
            may_wait: true,
            is_inside: true,
            is_script: true,
            is_hurried: false,
            left: RefCell::default(),
            events: RefCell::default(),
            group: RefCell::default(),
        };
        let begin = call.out.len();
        let outcome = run_inside(&mut call, spec, parts);
        if call.out.get(begin) == Some(&b'-') {
            let text = call.out[begin + 1..].strip_suffix(b"\r\n").unwrap_or_default();
            *self.last_error.borrow_mut() = text.strip_suffix(b".").unwrap_or(text).to_vec();
        }
        self.left.borrow_mut().append(&mut call.left.take());
        self.events.borrow_mut().append(&mut call.events.take());
        match outcome {
            Err(Failure::Database(error)) => {
                self.has_failed.set(true);
                self.failure.replace(Some(error));
                Err(Error::illegal("the script cannot go on"))
            }
            Err(Failure::Text(text)) => self.refuse(out, Some(spec), &text),
            Ok(()) => Ok(()),
        }
    }

    fn give_way(&self) -> Option<u64> {
        self.busy.give_way(&self.shared)
    }

    fn set_resp3(&self, resp3: bool) {
        self.state.resp3.set(resp3);
    }

    fn may_run(&self, parts: &[&[u8]]) -> Option<bool> {
        let spec = find(parts.first()?).filter(|spec| spec.takes(parts.len()))?;
        if let Some(rules) = allowed::rules_of(&self.shared, &self.connection) {
            return Some(rules.check(spec, parts).is_ok());
        }
        let database = self.connection.database();
        let spaces = self.shared.spaces(database);
        let wanted = match (spec.is(Flag::Write), spec.is(Flag::Read)) {
            (true, _) => Privileges::WRITE,
            (false, true) => Privileges::READ,
            (false, false) => return Some(true),
        };
        let space = spaces.keys(self.state.db.get()).ok()?;
        Some(database.check_space_access(&self.context, space, wanted).is_ok())
    }
}

/// How a script is run.
pub(super) struct Run<'a> {
    pub(super) id: ScriptId,
    pub(super) name: &'a str,
    pub(super) says: Says,
    pub(super) keys: &'a [&'a [u8]],
    pub(super) arguments: &'a [&'a [u8]],
}

/// Runs a script as one transaction and answers with its result.
pub(super) fn run(call: &mut Call<'_>, run: &Run<'_>) -> Outcome {
    call.go_into_fiber()?;
    let needs_memory = run.says.has_flags && !run.says.is_read_only && !run.says.allows_oom;
    if needs_memory && is_full(call.database, call.shared) {
        return Err("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'".into());
    }
    let scripts = engine(call)?;
    let Some(context) = fiber::local::<Context>() else { return Err("ERR scripts run in fibers".into()) };
    let state = State { id: call.state.id, begun_ns: call.state.begun_ns, ..State::default() };
    state.db.set(call.db);
    let commands = Rc::new(Commands {
        connection: Rc::clone(call.connection),
        context,
        shared: Rc::clone(call.shared),
        state,
        says: run.says,
        busy: Busy::new(call, run.name),
        left: RefCell::default(),
        events: RefCell::default(),
        keys: if call.shared.is_watchful.get() {
            run.keys.iter().map(|key| key.to_vec()).collect()
        } else {
            Vec::new()
        },
        failure: RefCell::default(),
        has_failed: Cell::new(false),
        last_error: RefCell::default(),
    });
    let resp3 = call.state.resp3.get();
    let script = ScriptCall {
        name: run.name,
        keys: run.keys,
        arguments: run.arguments,
        resp3,
        busy_after_ms: call.shared.busy_after_ms.get(),
    };
    let start = call.out.len();
    let refusal = call.atomically(|call| {
        let ran = scripts.run(run.id, &script, Rc::clone(&commands) as Rc<dyn ScriptCommands>, call.out);
        commands.busy.end(call.shared);
        if let Some(error) = commands.failure.take() {
            return Err(error.into());
        }
        let refusal = match ran {
            Ok(()) => None,
            Err(ScriptFailure::Raised(text)) => Some(text),
            Err(ScriptFailure::Ended(text)) => return Err(text.into()),
        };
        call.left.borrow_mut().append(&mut commands.left.borrow_mut());
        call.events.borrow_mut().append(&mut commands.events.borrow_mut());
        Ok(refusal)
    })?;
    let text = match refusal {
        // What it has done stands, so this is no failure of the command.
        Some(text) => {
            call.reply().error(&text);
            text.into_bytes()
        }
        None if call.out.get(start) == Some(&b'-') => call.out[start + 1..].to_vec(),
        None => return Ok(()),
    };
    if let Some(spec) = call.args.first().and_then(|name| find(name)) {
        call.shared.stats.fail(spec, call.args);
    }
    // An error of a command was counted with that.
    let last = commands.last_error.borrow();
    if last.is_empty() || !text.starts_with(&last) {
        call.shared.stats.count_error(&text);
    }
    Ok(())
}

/// Parts of a command.
type List<'a> = &'a [&'a [u8]];

/// The keys and the other arguments behind a number of keys.
pub(super) fn keys_and_arguments<'a>(call: &Call<'a>, at: usize) -> Outcome<(List<'a>, List<'a>)> {
    let rest = &call.args[at + 1..];
    let count = call.integer(at)?;
    let count = usize::try_from(count).map_err(|_| "ERR Number of keys can't be negative")?;
    if count > rest.len() {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    Ok(rest.split_at(count))
}

fn run_by_name(call: &mut Call<'_>, name: Name, script: Script, is_read_only: bool) -> Outcome {
    let (keys, arguments) = keys_and_arguments(call, 2)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    if is_read_only && script.says.has_flags && !script.says.is_read_only {
        return Err("ERR Can not execute a script with write flag using *_ro command.".into());
    }
    let says = Says { is_read_only: is_read_only || script.says.is_read_only, ..script.says };
    run(call, &Run { id: script.id, name: &name, says, keys, arguments })
}

fn eval_as(call: &mut Call<'_>, is_read_only: bool) -> Outcome {
    call.go_into_fiber()?;
    keys_and_arguments(call, 2)?;
    let (name, script) = load(call, call.args[1])?;
    run_by_name(call, name, script, is_read_only)
}

pub(super) fn eval(call: &mut Call<'_>) -> Outcome {
    eval_as(call, false)
}

pub(super) fn eval_ro(call: &mut Call<'_>) -> Outcome {
    eval_as(call, true)
}

fn evalsha_as(call: &mut Call<'_>, is_read_only: bool) -> Outcome {
    call.go_into_fiber()?;
    keys_and_arguments(call, 2)?;
    let wanted = call.args[1].to_ascii_lowercase();
    let name = Name::try_from(wanted.as_slice()).ok();
    let found = name.and_then(|name| {
        let script = call.shared.scripts.borrow().by_name.get(&name).copied();
        script.map(|script| (name, script))
    });
    let (name, script) = found.ok_or("NOSCRIPT No matching script. Please use EVAL.")?;
    run_by_name(call, name, script, is_read_only)
}

pub(super) fn evalsha(call: &mut Call<'_>) -> Outcome {
    evalsha_as(call, false)
}

pub(super) fn evalsha_ro(call: &mut Call<'_>) -> Outcome {
    evalsha_as(call, true)
}

/// True if `SYNC`, `ASYNC` or nothing stands behind a subcommand that removes all.
pub(super) fn check_flush(call: &Call<'_>, name: &str) -> Outcome {
    match call.args.len() {
        2 => Ok(()),
        3 if call.is_word(2, "sync") || call.is_word(2, "async") => Ok(()),
        _ => Err(format!(
            "ERR {name} FLUSH only {} SYNC|ASYNC option",
            if name == "SCRIPT" { "support" } else { "supports" }
        )
        .into()),
    }
}

const HELP: &[&str] = &[
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "EXISTS <sha1> [<sha1> ...]",
    "    Returns for each whether it is in the cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Empties the cache.",
    "KILL",
    "    Ends the script that runs long, if it has not written.",
    "LOAD <script>",
    "    Compiles a script and keeps it in the cache.",
    "HELP",
    "    Prints this help.",
];

/// Answers with lines of help.
pub(super) fn help(call: &mut Call<'_>, lines: &[&str]) {
    let mut reply = call.reply();
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}

/// Refuses a subcommand that is not there or has other parts.
pub(super) fn unknown_subcommand(call: &Call<'_>, command: &str, known: &[&str]) -> Failure {
    let name = String::from_utf8_lossy(call.args[1]).into_owned();
    let lower = name.to_ascii_lowercase();
    match known.contains(&lower.as_str()) {
        true => format!("ERR wrong number of arguments for '{command}|{lower}' command").into(),
        false => format!("ERR unknown subcommand '{name}'. Try {} HELP.", command.to_uppercase()).into(),
    }
}

pub(super) fn script(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    match (args[1].to_ascii_lowercase().as_slice(), args.len()) {
        (b"load", 3) => {
            let (name, _) = load(call, args[2])?;
            call.reply().bulk(&name);
        }
        (b"exists", 3..) => {
            let cache = call.shared.scripts.borrow();
            let is_there = |name: &&[u8]| {
                Name::try_from(*name).is_ok_and(|name| cache.by_name.contains_key(&name.to_ascii_lowercase()[..]))
            };
            let found: Vec<bool> = args[2..].iter().map(is_there).collect();
            drop(cache);
            let mut reply = call.reply();
            reply.array(found.len());
            found.iter().for_each(|found| reply.integer(i64::from(*found)));
        }
        (b"flush", _) => {
            check_flush(call, "SCRIPT")?;
            // Others count on what is there.
            call.check_writer()?;
            let scripts = engine(call)?;
            call.shared.scripts.borrow_mut().clear(&*scripts);
            call.reply().ok();
        }
        (b"kill", 2) => busy::kill(call, false)?,
        (b"debug", 3) => match call.is_word(2, "no") {
            true => call.reply().ok(),
            false => return Err("ERR there is no debugger for scripts".into()),
        },
        (b"help", 2) => help(call, HELP),
        _ => return Err(unknown_subcommand(call, "script", &["load", "exists", "flush", "kill", "debug", "help"])),
    }
    Ok(())
}
