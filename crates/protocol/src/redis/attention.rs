//! What is looked at around commands only if somebody wants it: `MONITOR`, `CLIENT PAUSE`, durations. While nobody does, a command costs one look at a flag.

use super::call::Call;
use super::failure::{Failure, Outcome};
use super::shared::Shared;
use super::state::State;
use super::table::{Flag, Spec};
use super::{functions, measure, scripts, tracking};
use crate::connection::Connection;
use runtime::fiber;
use std::rc::{Rc, Weak};
use wal::Position;

/// `CLIENT PAUSE`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    /// By the clock of the fibers.
    until_ns: u64,
    /// Commands that read go on.
    only_writes: bool,
}

/// Bytes of one part of a command that `MONITOR` shows, and of all of them together, as they are written there.
const SHOWN_PART_BYTES_MAX: usize = 4096;
const SHOWN_LINE_BYTES_MAX: usize = 64 << 10;

/// Notes whether anything here is wanted.
pub(super) fn look_again(shared: &Shared) {
    let is_attentive = shared.is_watchful.get()
        || shared.measures.get()
        || shared.pause.get().is_some()
        || shared.busy.borrow().is_some()
        || !shared.stats.monitors.borrow().is_empty();
    shared.is_attentive.set(is_attentive);
}

/// From now on all commands are measured.
pub(super) fn measure(shared: &Shared) {
    shared.measures.set(true);
    look_again(shared);
}

/// True if a command writes, or what it does is to be seen by others: it waits while writes are paused.
fn may_write(shared: &Shared, state: &State, spec: &Spec, args: &[&[u8]]) -> bool {
    if spec.is(Flag::Write) || matches!(spec.name, "publish" | "spublish" | "pfcount") {
        return true;
    }
    match spec.name {
        "eval" | "evalsha" => !scripts::is_read_only(shared, spec.name == "eval", args),
        "fcall" => !functions::is_read_only(shared, args.get(1).copied().unwrap_or_default()),
        "exec" => state.multi.borrow().as_ref().is_some_and(|multi| {
            multi.queued.iter().any(|queued| {
                let args: Vec<&[u8]> = queued.args.iter().map(Vec::as_slice).collect();
                may_write(shared, state, queued.spec, &args)
            })
        }),
        _ => false,
    }
}

/// True if a command has to wait.
pub(super) fn is_paused(shared: &Shared, state: &State, spec: &Spec, args: &[&[u8]]) -> bool {
    let Some(pause) = shared.pause.get() else { return false };
    if fiber::now_ns() >= pause.until_ns {
        shared.pause.set(None);
        look_again(shared);
        return false;
    }
    // Who pauses must be able to end it.
    spec.name != "client" && (!pause.only_writes || may_write(shared, state, spec, args))
}

/// Waits until a command may run. False: its client is gone.
pub(super) fn wait_pause(
    shared: &Shared,
    (connection, state): (&Connection, &State),
    spec: &Spec,
    args: &[&[u8]],
) -> bool {
    let Some(own) = fiber::current() else { return true };
    shared.paused.set(shared.paused.get() + 1);
    shared.stats.paused.borrow_mut().insert(state.id, own);
    let goes_on = loop {
        if !is_paused(shared, state, spec, args) {
            break true;
        }
        // Whoever changes the pause, and the end of the client, wakes it before.
        let is_over = fiber::park_until(shared.pause.get().map(|pause| pause.until_ns)) == fiber::Wake::Cancelled;
        if is_over || state.has_left.get() || !connection.session().is_alive.get() {
            break false;
        }
    };
    shared.stats.paused.borrow_mut().remove(&state.id);
    shared.paused.set(shared.paused.get() - 1);
    goes_on
}

/// Has a client that is paused look whether it is still there.
pub(super) fn wake(shared: &Shared, id: u64) {
    if let Some(fiber) = shared.stats.paused.borrow().get(&id) {
        fiber::wake(*fiber);
    }
}

/// `CLIENT PAUSE` and `CLIENT UNPAUSE`.
pub(super) fn pause(call: &mut Call<'_>) -> Outcome {
    call.check_writer()?;
    if call.is_word(1, "unpause") {
        call.shared.pause.set(None);
        call.shared.stats.paused.borrow().values().for_each(|fiber| fiber::wake(*fiber));
    } else {
        let only_writes = call.is_word(3, "write");
        if call.args.len() > 3 && !only_writes && !call.is_word(3, "all") {
            return Err("ERR CLIENT PAUSE mode must be WRITE or ALL".into());
        }
        let ms = call.integer(2).map_err(|_| Failure::from("ERR timeout is not an integer or out of range"))?;
        let ms = u64::try_from(ms).map_err(|_| Failure::from("ERR timeout is negative"))?;
        let mut pause = Pause { until_ns: fiber::now_ns().saturating_add(ms.saturating_mul(1_000_000)), only_writes };
        if let Some(old) = call.shared.pause.get().filter(|old| old.until_ns > fiber::now_ns()) {
            pause.until_ns = pause.until_ns.max(old.until_ns);
            pause.only_writes &= old.only_writes;
        }
        call.shared.pause.set(Some(pause));
    }
    look_again(call.shared);
    call.reply().ok();
    Ok(())
}

/// Looks at a command that is about to run, with nothing of it done.
#[cold]
pub(super) fn begin(shared: &Shared, (connection, state): (&Connection, &State), spec: &'static Spec, args: &[&[u8]]) {
    if shared.is_watchful.get() {
        tracking::begin(shared, state.id, spec);
        tracking::remember(shared, (connection, state), spec, args);
    }
    if spec.name != "exec" {
        feed(shared, (connection, state), spec, args, false);
    }
}

/// Shows a command to those who have asked for it by `MONITOR`.
#[cold]
pub(super) fn feed(
    shared: &Shared,
    (connection, state): (&Connection, &State),
    spec: &Spec,
    args: &[&[u8]],
    by_script: bool,
) {
    if spec.is(Flag::Admin) || spec.name == "reset" || shared.stats.monitors.borrow().is_empty() {
        return;
    }
    let own = connection.session().user.get();
    let sees = |monitor: &Rc<Connection>| {
        let session = monitor.session();
        session.is_alive.get()
            && (session.user.get() == own || monitor.database().check_execute_universe(monitor.context()).is_ok())
    };
    let all = shared.stats.monitors.borrow();
    let monitors: Vec<Rc<Connection>> = all.values().filter_map(Weak::upgrade).filter(sees).collect();
    drop(all);
    if monitors.is_empty() {
        return;
    }
    let line = line_of((connection, state), &measure::redacted(spec, args), by_script);
    for monitor in monitors {
        if monitor.unsent() > monitor.service.unread_max() {
            tracing::warn!("a client does not read what MONITOR shows: the connection is closed");
            monitor.end();
        } else {
            // What cannot be written to a client that is gone is no loss.
            let _ = monitor.answer(Position::default(), 0, |out| {
                out.extend_from_slice(&line);
                Ok(())
            });
        }
        monitor.service.mark(&monitor);
    }
}

/// A command as `MONITOR` shows it. Of a long one the beginning is shown, and how much is missing.
fn line_of((connection, state): (&Connection, &State), parts: &[&[u8]], by_script: bool) -> Vec<u8> {
    let us = connection.database().environment().clock.wall_ns() / 1000;
    let peer = if by_script { "lua" } else { connection.session().peer.as_deref().unwrap_or("unix:") };
    let mut line = format!("+{}.{:06} [{} {peer}]", us / 1_000_000, us % 1_000_000, state.db.get()).into_bytes();
    write_parts(&mut line, parts);
    line.extend_from_slice(b"\r\n");
    line
}

fn write_parts(line: &mut Vec<u8>, parts: &[&[u8]]) {
    let begin = line.len();
    for (at, part) in parts.iter().enumerate() {
        if line.len() - begin > SHOWN_LINE_BYTES_MAX {
            line.extend_from_slice(format!(" ... ({} more arguments)", parts.len() - at).as_bytes());
            return;
        }
        let shown = &part[..part.len().min(SHOWN_PART_BYTES_MAX)];
        line.extend_from_slice(b" \"");
        for byte in shown {
            match byte {
                b'\\' | b'"' => line.extend_from_slice(&[b'\\', *byte]),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                b'\t' => line.extend_from_slice(b"\\t"),
                7 => line.extend_from_slice(b"\\a"),
                8 => line.extend_from_slice(b"\\b"),
                b' '..=b'~' => line.push(*byte),
                _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            }
        }
        line.push(b'"');
        if part.len() > shown.len() {
            line.extend_from_slice(format!("... ({} more bytes)", part.len() - shown.len()).as_bytes());
        }
    }
}

/// `MONITOR`.
pub(super) fn monitor(call: &mut Call<'_>) -> Outcome {
    let weak = Rc::downgrade(call.connection);
    call.shared.stats.monitors.borrow_mut().insert(call.state.id, weak);
    look_again(call.shared);
    call.reply().ok();
    Ok(())
}

/// The client is gone, or wants to see no more.
pub(super) fn forget(shared: &Shared, id: u64) {
    shared.stats.monitors.borrow_mut().remove(&id);
    wake(shared, id);
    look_again(shared);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_command_the_beginning_is_shown() {
        let shown = |parts: &[&[u8]]| {
            let mut line = Vec::new();
            write_parts(&mut line, parts);
            String::from_utf8_lossy(&line).into_owned()
        };
        assert_eq!(shown(&[b"set", b"\"\x00\n"]), " \"set\" \"\\\"\\x00\\n\"");
        let long = vec![0; 1 << 20];
        let text = shown(&[b"set", &long]);
        assert!(text.len() < 5 * SHOWN_PART_BYTES_MAX, "{}", text.len());
        assert!(text.ends_with("\\x00\"... (1044480 more bytes)"));
        let many = vec![b"x".as_slice(); 100_000];
        let text = shown(&many);
        assert!(text.len() < SHOWN_LINE_BYTES_MAX + 100 && text.ends_with(" more arguments)"), "{}", text.len());
    }
}
