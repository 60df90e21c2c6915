//! What the door keeps with a connection.

use super::call::Head;
use super::rules::Rules;
use super::table::Spec;
use crate::terms::Terms;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// A command that waits for `EXEC`.
pub(super) struct Queued {
    pub(super) spec: &'static Spec,
    pub(super) args: Vec<Vec<u8>>,
}

/// A transaction between `MULTI` and `EXEC`.
#[derive(Default)]
pub(super) struct Multi {
    pub(super) queued: Vec<Queued>,
    /// Bytes of their parts.
    pub(super) bytes: usize,
    /// A command could not be queued: `EXEC` refuses the whole.
    pub(super) is_broken: bool,
}

/// What a key was when it was watched. A row that was replaced by an equal one is told apart by the registry of watches.
pub(super) struct Watched {
    pub(super) db: usize,
    pub(super) key: Vec<u8>,
    pub(super) before: Option<(Option<Head>, Vec<u8>, Option<u64>)>,
}

/// See the head of this file.
#[derive(Default)]
pub struct State {
    /// Of the connection, never used twice.
    pub(super) id: u64,
    /// The database that commands are about.
    pub(super) db: Cell<usize>,
    /// Answers are in the third version of the protocol.
    pub(super) resp3: Cell<bool>,
    /// `CLIENT SETNAME`.
    pub(super) name: RefCell<Vec<u8>>,
    /// The command that came last.
    pub(super) last: Cell<Option<&'static Spec>>,
    /// The subcommand of that if it was `CLIENT`, and the bytes that it took while it runs.
    pub(super) last_word: RefCell<Vec<u8>>,
    pub(super) last_bytes: Cell<usize>,
    pub(super) multi: RefCell<Option<Multi>>,
    pub(super) watched: RefCell<Vec<Watched>>,
    /// A watched key was written to since.
    pub(super) is_dirty: Rc<Cell<bool>>,
    pub(super) channels: RefCell<BTreeSet<Vec<u8>>>,
    pub(super) patterns: RefCell<BTreeSet<Vec<u8>>>,
    pub(super) shard_channels: RefCell<BTreeSet<Vec<u8>>>,
    /// `CLIENT REPLY OFF`, or `SKIP` for the next one.
    pub(super) is_silent: Cell<bool>,
    pub(super) skips_next: Cell<bool>,
    /// What the command that runs answers comes even so: who begins or ends listening is told.
    pub(super) answers_anyway: Cell<bool>,
    /// The same from the next one on.
    pub(super) skips_after: Cell<bool>,
    /// Another client ends its waiting: with an error, or as if the time were over.
    pub(super) unblocked: Cell<Option<bool>>,
    /// The client sends no more: who waits for a key need not go on.
    pub(super) has_left: Cell<bool>,
    /// Of the listener.
    pub(super) terms: Rc<Terms>,
    /// What its user may do, if that has rules; not of a script, see `allowed::rules_of`.
    pub(super) rules: RefCell<Option<Rc<Rules>>>,
    /// Whether it may run a command has to be looked at: it must log in, listens to channels, or has rules.
    pub(super) is_special: Cell<bool>,
    /// Nobody has logged in where it is asked for: commands are short.
    pub(super) is_stranger: Cell<bool>,
    pub(super) begun_ns: u64,
}

impl State {
    /// Channels and patterns that it listens to.
    pub(super) fn subscriptions(&self) -> usize {
        self.channels.borrow().len() + self.patterns.borrow().len()
    }

    /// Notes whether commands have to be looked at before they run.
    pub(super) fn note_special(&self, must_log_in: bool) {
        let listens = self.subscriptions() + self.shard_channels.borrow().len() > 0;
        let has_rules = self.rules.borrow().is_some();
        self.is_special.set(must_log_in || has_rules || listens && !self.resp3.get());
    }
}
