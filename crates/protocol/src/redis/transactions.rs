//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`. The commands of a transaction run one behind the other in one transaction of the database: they are seen all or
//! none, also after a crash. As in Redis, one that fails does not undo the others.

use super::allowed;
use super::call::{Call, Entry, Head};
use super::dispatch::run_inside;
use super::failure::{Failure, Outcome};
use super::state::{Multi, State, Watched};
use database::{Error, ErrorCode};
use std::rc::Rc;

/// Keys that one connection watches.
const WATCHED_MAX: usize = 10_000;

/// True if an error has ended the transaction that it came up in.
pub(super) fn ends_transaction(error: &Error) -> bool {
    let code = error.code();
    error.is_needs_fiber()
        || [ErrorCode::TransactionConflict, ErrorCode::TransactionTimeout, ErrorCode::ReadViewAborted, ErrorCode::WalIo]
            .iter()
            .any(|known| *known as u32 == code)
}

pub(super) fn multi(call: &mut Call<'_>) -> Outcome {
    let mut multi = call.state.multi.borrow_mut();
    if multi.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    *multi = Some(Multi::default());
    drop(multi);
    call.reply().ok();
    Ok(())
}

pub(super) fn discard(call: &mut Call<'_>) -> Outcome {
    if call.state.multi.borrow_mut().take().is_none() {
        return Err("ERR DISCARD without MULTI".into());
    }
    forget_watches(call);
    call.reply().ok();
    Ok(())
}

/// What a key has, as far as one state can be told from another.
fn state_of(entry: Option<Entry>) -> Option<(Option<Head>, Vec<u8>, Option<u64>)> {
    entry.map(|entry| (entry.head, entry.string().map(<[u8]>::to_vec).unwrap_or_default(), entry.expires))
}

pub(super) fn watch(call: &mut Call<'_>) -> Outcome {
    if call.state.multi.borrow().is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    for key in &call.args[1..] {
        let place = (call.db, key.to_vec());
        let mut watched = call.state.watched.borrow_mut();
        if watched.iter().any(|known| known.db == place.0 && known.key == place.1) {
            continue;
        }
        if watched.len() >= WATCHED_MAX {
            return Err(format!("ERR a connection watches at most {WATCHED_MAX} keys").into());
        }
        let before = state_of(call.find(key)?);
        watched.push(Watched { db: place.0, key: place.1.clone(), before });
        call.shared.watch(place, &call.state.is_dirty);
    }
    call.reply().ok();
    Ok(())
}

pub(super) fn unwatch(call: &mut Call<'_>) -> Outcome {
    forget_watches(call);
    call.reply().ok();
    Ok(())
}

/// Ends all watches of a connection.
pub(super) fn forget_all(shared: &super::shared::Shared, state: &State) {
    for watched in state.watched.take() {
        shared.unwatch(&(watched.db, watched.key), &state.is_dirty);
    }
    state.is_dirty.set(false);
}

fn forget_watches(call: &Call<'_>) {
    forget_all(call.shared, call.state);
}

/// True if a watched key is no longer what it was.
fn is_spoilt(call: &mut Call<'_>) -> Outcome<bool> {
    #[cfg(feature = "planted-bugs")]
    if runtime::planted::is_planted(runtime::planted::Plant::ForgetWatches) {
        return Ok(false);
    }
    if call.state.is_dirty.get() {
        return Ok(true);
    }
    let db = call.db;
    for watched in call.state.watched.borrow().iter() {
        call.db = watched.db;
        let is_same = state_of(call.find(&watched.key)?) == watched.before;
        call.db = db;
        if !is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn exec(call: &mut Call<'_>) -> Outcome {
    if call.state.multi.borrow().is_none() {
        return Err("ERR EXEC without MULTI".into());
    }
    let ran = run_queued(call);
    // Whatever has come of it, what follows is no part of the transaction any more.
    if !begins_again(call, &ran) {
        end(call.shared, call.state);
    }
    ran
}

/// True if the command will run again from its start, in a fiber or behind a conflict.
fn begins_again(call: &Call<'_>, ran: &Outcome) -> bool {
    let Err(Failure::Database(error)) = ran else { return false };
    error.is_needs_fiber() || call.may_wait && error.code() == ErrorCode::TransactionConflict as u32
}

/// Ends a transaction that was begun by `MULTI`, if there is one, and all watches.
pub(super) fn end(shared: &super::shared::Shared, state: &State) {
    state.multi.borrow_mut().take();
    forget_all(shared, state);
}

/// Runs what was queued.
fn run_queued(call: &mut Call<'_>) -> Outcome {
    match &*call.state.multi.borrow() {
        Some(multi) if multi.is_broken => {}
        // What runs in slices gives nobody else a turn in here; what must wait for the disk does so.
        Some(multi) if multi.queued.iter().any(|queued| queued.spec.waits()) => call.go_into_fiber()?,
        _ => {}
    }
    let is_broken = call.state.multi.borrow().as_ref().is_some_and(|multi| multi.is_broken);
    if is_broken {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    let needs_memory = |multi: &Multi| {
        multi.queued.iter().any(|queued| super::dispatch::is_too_much(call.database, call.shared, queued.spec))
    };
    if call.shared.maxmemory.get() > 0 && call.state.multi.borrow().as_ref().is_some_and(needs_memory) {
        return Err(
            "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."
                .into(),
        );
    }
    // Taken only when it has run: it may have to begin again in a fiber, or behind a conflict.
    let db = call.state.db.get();
    let queued = {
        let mut multi = call.state.multi.borrow_mut();
        Rc::new(std::mem::take(&mut multi.get_or_insert_default().queued))
    };
    let ran = call.atomically(|call| {
        // What is watched is looked at in the transaction: it may have to wait for the disk.
        if is_spoilt(call)? {
            return Ok(false);
        }
        call.reply().array(queued.len());
        for command in queued.iter() {
            let args: Vec<&[u8]> = command.args.iter().map(Vec::as_slice).collect();
            let asked = (command.spec, args.as_slice());
            match allowed::check(call.shared, call.connection, call.state, asked, allowed::Place::Multi) {
                Ok(()) => run_inside(call, command.spec, &args)?,
                Err(denied) => call.reply().error(&denied.text_in_exec()),
            }
        }
        Ok(true)
    });
    let ran = ran.map(|is_done| {
        if !is_done {
            call.reply().null_array();
        }
    });
    if begins_again(call, &ran) {
        call.state.db.set(db);
        if let Some(multi) = call.state.multi.borrow_mut().as_mut() {
            multi.queued = Rc::try_unwrap(queued).unwrap_or_default();
        }
    }
    ran
}
