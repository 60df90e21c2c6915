//! What the database needs from crates above it: `lua` implements these, `server` hands them over.

use crate::catalog::Function;
use crate::error::Result;
use crate::session::Context;
use std::rc::Rc;
use wal::Position;

/// Stored procedures.
pub trait Procedures {
    /// Calls a function by name (dots and a colon lead into tables) with encoded arguments (an array). Appends the results
    /// to `out`, one after the other, and returns how many there are. `is_old_style`: results are tuples, as CALL_16 has it.
    ///
    /// May wait.
    fn call(
        &self,
        context: &Rc<Context>,
        name: &str,
        function: Option<&Rc<Function>>,
        arguments: &[u8],
        is_old_style: bool,
        out: &mut Vec<u8>,
    ) -> Result<u32>;

    /// Runs source text with encoded arguments. As `call`.
    fn eval(&self, context: &Rc<Context>, source: &str, arguments: &[u8], out: &mut Vec<u8>) -> Result<u32>;

    /// Checks that the body of a persistent function is a function.
    fn check_function(&self, function: &Function) -> Result<()>;

    /// Whether `session_event` is to be called for this kind of event.
    fn wants(&self, _event: SessionEvent) -> bool {
        false
    }

    /// A session began, ended or has logged in. May wait.
    fn session_event(&self, _context: &Rc<Context>, _event: SessionEvent) {}
}

/// The way to the client of a session beside answers.
pub trait Channel {
    /// Sends an encoded value that belongs to a request, before the answer to it; `seen` as in answers. May wait until the client reads.
    /// Errors: `SessionClosed`; `Unsupported` if its protocol has nothing of the kind.
    fn push(&self, sync: u64, seen: Position, value: &[u8]) -> Result<()>;
}

/// What happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A connection was accepted.
    Connect,
    /// A connection is gone.
    Disconnect,
    /// Its user has logged in.
    Auth,
}

impl SessionEvent {
    /// Name of the trigger of `box.session`.
    pub fn name(self) -> &'static str {
        match self {
            SessionEvent::Connect => "on_connect",
            SessionEvent::Disconnect => "on_disconnect",
            SessionEvent::Auth => "on_auth",
        }
    }
}
