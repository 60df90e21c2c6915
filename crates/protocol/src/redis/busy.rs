//! Scripts that run long: from `busy-reply-threshold` on others are answered `BUSY` between slices of the script, until it ends or is ended by
//! `SCRIPT KILL` or `FUNCTION KILL`.
//!
//! A script is one transaction, so others see nothing of it meanwhile; requests of other protocols are served as always. One that has written cannot be
//! ended, as in Redis.

use super::attention;
use super::call::Call;
use super::connection::check_others;
use super::failure::Outcome;
use super::reply::Reply;
use super::shared::Shared;
use super::table::Spec;
use database::UserId;
use runtime::fiber;
use std::cell::Cell;
use std::rc::Rc;

/// After how many milliseconds a script is busy, unless `CONFIG SET` says otherwise.
pub(super) const THRESHOLD_MS: u64 = 5000;
/// How long a busy script goes on until others have their turn again.
const SLICE_MS: u64 = 5;
/// To give way costs about as much as some of its writes: so many of them add a millisecond to a slice.
const WRITES_OF_A_MS: u64 = 300;
/// Bytes of the command that `FUNCTION STATS` shows.
const SHOWN_COMMAND_BYTES_MAX: usize = 64 << 10;

pub(super) const SCRIPT_IS_BUSY: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const FUNCTION_IS_BUSY: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
const NOT_BUSY: &str = "NOTBUSY No scripts in execution right now.";
const UNKILLABLE: &str = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.";

/// A script under way, as others see it once it runs long.
pub(super) struct Busy {
    pub(super) name: String,
    is_function: bool,
    /// Of a function: the command that has called it, as the protocol has it.
    command: Vec<u8>,
    user: UserId,
    begun_ns: u64,
    pub(super) writes: Cell<u64>,
    is_killed: Cell<bool>,
}

impl Busy {
    pub(super) fn new(call: &Call<'_>, name: &str) -> Rc<Self> {
        let is_function = call.args[0].to_ascii_lowercase().starts_with(b"fcall");
        let mut command = Vec::new();
        if is_function {
            let bytes = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
            let shown = if bytes(call.args) <= SHOWN_COMMAND_BYTES_MAX { call.args } else { &call.args[..1] };
            let mut reply = Reply { out: &mut command, resp3: false };
            reply.array(shown.len());
            shown.iter().for_each(|part| reply.bulk(part));
        }
        Rc::new(Busy {
            name: name.to_string(),
            is_function,
            command,
            user: call.connection.session().user.get(),
            begun_ns: fiber::now_ns(),
            writes: Cell::new(0),
            is_killed: Cell::new(false),
        })
    }

    fn refusal(&self) -> &'static str {
        if self.is_function { FUNCTION_IS_BUSY } else { SCRIPT_IS_BUSY }
    }

    /// See `ScriptCommands::give_way`. Yields.
    pub(super) fn give_way(self: &Rc<Self>, shared: &Shared) -> Option<u64> {
        let is_first = shared.busy.borrow().is_none();
        if is_first {
            let took_ms = fiber::now_ns().saturating_sub(self.begun_ns) / 1_000_000;
            let way = if self.is_function { "FUNCTION KILL" } else { "SCRIPT KILL" };
            tracing::warn!(
                "script {} still runs after {took_ms} ms: others are refused until it ends; {way} ends it",
                self.name
            );
            *shared.busy.borrow_mut() = Some(Rc::clone(self));
            attention::look_again(shared);
        }
        let is_over = fiber::yield_turn() == fiber::Wake::Cancelled || self.is_killed.get();
        (!is_over).then(|| SLICE_MS + self.writes.get() / WRITES_OF_A_MS)
    }

    /// The script has ended.
    pub(super) fn end(self: &Rc<Self>, shared: &Shared) {
        let is_own = shared.busy.borrow().as_ref().is_some_and(|busy| Rc::ptr_eq(busy, self));
        if is_own {
            shared.busy.borrow_mut().take();
            attention::look_again(shared);
        }
    }
}

/// Why a command has to wait for the end of a script, if it has.
pub(super) fn refusal(shared: &Shared, spec: &Spec, args: &[&[u8]]) -> Option<&'static str> {
    let busy = shared.busy.borrow();
    let busy = busy.as_ref()?;
    let is_part = |words: &[&str]| {
        args.get(1).is_some_and(|part| words.iter().any(|word| part.eq_ignore_ascii_case(word.as_bytes())))
    };
    let is_allowed = match spec.name {
        "auth" | "hello" | "quit" | "reset" | "replconf" | "shutdown" | "multi" | "discard" | "watch" | "unwatch" => {
            true
        }
        "script" => is_part(&["kill"]),
        "function" => is_part(&["kill", "stats"]),
        _ => false,
    };
    (!is_allowed).then(|| busy.refusal())
}

/// `SCRIPT KILL` and `FUNCTION KILL`: for whom the script acts for, and for who may write the keys.
pub(super) fn kill(call: &mut Call<'_>, is_function: bool) -> Outcome {
    let busy = call.shared.busy.borrow().clone().ok_or(NOT_BUSY)?;
    if busy.user != call.connection.session().user.get() {
        call.check_writer()?;
    }
    if busy.writes.get() > 0 {
        return Err(UNKILLABLE.into());
    }
    if busy.is_function != is_function {
        return Err(busy.refusal().into());
    }
    busy.is_killed.set(true);
    call.reply().ok();
    Ok(())
}

/// What `FUNCTION STATS` says of a function that runs. Its arguments are for those who see them by `MONITOR`, too.
pub(super) fn describe(call: &mut Call<'_>) {
    let busy = call.shared.busy.borrow().clone();
    let Some(busy) = busy else {
        call.reply().null();
        return;
    };
    let shows_command = busy.user == call.connection.session().user.get() || check_others(call).is_ok();
    let mut reply = call.reply();
    reply.map(3);
    reply.text("name");
    reply.text(&busy.name);
    reply.text("command");
    match shows_command {
        true => reply.out.extend_from_slice(&busy.command),
        false => reply.array(0),
    }
    reply.text("duration_ms");
    reply.integer((fiber::now_ns().saturating_sub(busy.begun_ns) / 1_000_000) as i64);
}

/// Errors: a script runs long, and what is asked for is about functions.
pub(super) fn check_function(shared: &Shared) -> Outcome {
    match &*shared.busy.borrow() {
        Some(busy) if !busy.is_function => Err(SCRIPT_IS_BUSY.into()),
        _ => Ok(()),
    }
}
