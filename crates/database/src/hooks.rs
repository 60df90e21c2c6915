//! What the database needs from crates above it: `lua` implements these, `server` hands them over.

use crate::catalog::{Function, Space};
use crate::database::Database;
use crate::error::Result;
use crate::session::{Context, Session};
use std::rc::Rc;
use tuple::Tuple;
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

    /// Makes, changes or drops a user or a role, or gives rights: the first of the arguments (an array) says what. Errors: those of
    /// `box.schema.user` and `box.schema.role`.
    fn manage_accounts(&self, _context: &Context, _arguments: &[u8]) -> Result<()> {
        Err(crate::error::Error::system("nobody manages accounts"))
    }

    /// Checks that the body of a persistent function is a function.
    fn check_function(&self, function: &Function) -> Result<()>;

    /// Asks a persistent function whether a row, or the value of one field, is as a constraint wants it. True if it returns true.
    ///
    /// Errors: those of the function.
    fn is_satisfied(&self, _function: &Function, _subject: Subject<'_>, _constraint: &str) -> Result<bool> {
        Ok(false)
    }

    /// Whether `session_event` is to be called for this kind of event.
    fn wants(&self, _event: SessionEvent) -> bool {
        false
    }

    /// A session began, ended or has logged in. May wait.
    fn session_event(&self, _context: &Rc<Context>, _event: SessionEvent) {}
}

/// What a constraint looks at.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A row.
    Row(&'a Tuple),
    /// The value of a field.
    Value(&'a [u8]),
}

/// Expressions in the language of statements, which functions of the language `SQL_EXPR` have for a body.
pub trait Expressions {
    /// Finds out what a body says of rows of a space, or of values of one field: good for the present version of the schema.
    ///
    /// Errors: it is no condition, or not one that depends on the row alone.
    fn condition(
        &self,
        database: &Database,
        space: &Rc<Space>,
        body: &str,
        field: Option<u32>,
    ) -> Result<Rc<dyn RowCondition>>;

    /// The value that stands in a field (from 0) of a row that says nothing of it, encoded. Errors: those of its expression.
    fn default_value(&self, database: &Database, space: &Rc<Space>, field: u32) -> Result<Vec<u8>>;

    /// Finds out what the generated fields of a space are computed by: good for the present version of the schema. Errors: an expression means nothing.
    fn generated_fields(&self, database: &Database, space: &Rc<Space>) -> Result<Rc<dyn GeneratedFields>>;

    /// Finds out which conditions the types of fields of a space have (`sql_domain` in its format): good for the present version of the schema. What is found
    /// fails with what is wrong with a row. Errors: a condition means nothing.
    fn domains(&self, database: &Database, space: &Rc<Space>) -> Result<Rc<dyn RowCondition>>;
}

/// Expressions that fields of rows are computed by.
pub trait GeneratedFields {
    /// A row with its generated fields as they have to be, encoded, whatever it has there, for the session of that number. Never waits. Errors: those of the
    /// expressions.
    fn fill(&self, database: &Database, session: u64, row: &[u8]) -> Result<Vec<u8>>;
}

/// An expression that was found out about.
pub trait RowCondition {
    /// Whether a row satisfies it: false if it is known that it does not. Never waits. Errors: those of the expression.
    fn holds(&self, database: &Database, row: &[u8]) -> Result<bool>;
}

/// A script that was compiled. The number is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScriptId(pub u64);

/// A function that a library of scripts has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFunction {
    /// To run it with.
    pub id: ScriptId,
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: Option<String>,
    /// As Redis has them: `no-writes` and its kin.
    pub flags: Vec<String>,
}

/// Why a script came to no result.
#[derive(Debug)]
pub enum ScriptFailure {
    /// It has raised an error: this is the text, its code first. What it did before stands.
    Raised(String),
    /// It was ended by force: it ran too long or wanted too much memory. Nothing of it is to stand.
    Ended(String),
}

/// What a script works with: commands of the protocol that it came by, one after the other.
pub trait ScriptCommands {
    /// Runs a command and appends its answer as the protocol (Redis', RESP) has it; one that is refused is an answer, too. Errors: nothing more can be
    /// done in this script.
    fn command(&self, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<()>;

    /// Says in which version of the protocol answers to commands are.
    fn set_resp3(&self, resp3: bool);

    /// True if whom the script acts for may run the command on these keys. None: there is no such command.
    fn may_run(&self, parts: &[&[u8]]) -> Option<bool>;

    /// The script has had the thread for long (`ScriptCall::busy_after_ms`, then as long as this has said): lets others have their turn. Yields. Returns for
    /// how many milliseconds it may go on; None: it is to be ended.
    fn give_way(&self) -> Option<u64>;
}

/// What a script is called with.
#[derive(Clone, Copy, Debug)]
pub struct ScriptCall<'a> {
    /// Its name in errors.
    pub name: &'a str,
    /// What the script finds as `KEYS`.
    pub keys: &'a [&'a [u8]],
    /// What it finds as `ARGV`.
    pub arguments: &'a [&'a [u8]],
    /// The result is wanted in the third version of the protocol.
    pub resp3: bool,
    /// How long it may have the thread to itself.
    pub busy_after_ms: u64,
}

/// Scripts in Lua that work with another protocol's commands (Redis' `EVAL`, `FUNCTION`), in a world of their own: they reach nothing but those.
pub trait Scripts {
    /// Compiles a script. Errors: the message of the compiler.
    fn compile(&self, source: &[u8]) -> std::result::Result<ScriptId, String>;

    /// Runs the source of a library, which registers functions. Errors: why it cannot be had.
    fn load_library(&self, source: &[u8]) -> std::result::Result<Vec<ScriptFunction>, String>;

    /// Lets go of a script.
    fn forget(&self, id: ScriptId);

    /// Runs a script in the fiber that calls and appends its result, in RESP. May wait as its commands do.
    fn run(
        &self,
        id: ScriptId,
        call: &ScriptCall<'_>,
        commands: Rc<dyn ScriptCommands>,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), ScriptFailure>;
}

/// The way to the client of a session beside answers.
pub trait Channel {
    /// Sends an encoded value that belongs to a request, before the answer to it; `seen` as in answers. May wait until the client reads.
    /// Errors: `SessionClosed`; `Unsupported` if its protocol has nothing of the kind.
    fn push(&self, sync: u64, seen: Position, value: &[u8]) -> Result<()>;
}

/// Somebody who is told of rows that were written: behind the log, and before it is durable.
pub trait RowWatcher {
    /// Rows of a space have changed; `seen` as in answers. Must not wait, and must not write. `was_evicted`: the row had to make room.
    fn written(
        &self,
        session: &Session,
        space: &Space,
        rows: (Option<&[u8]>, Option<&[u8]>),
        seen: Position,
        was_evicted: bool,
    );
}

/// Why a row has left that nobody has deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It had expired, and was in the way of a write.
    Expired,
    /// It had expired, and was found in the background.
    Swept,
    /// Another one needed its room.
    Evicted,
}

/// Somebody who is told of rows that leave by themselves: before that is durable, and while a transaction of which it is a part may still take it back.
pub trait LeavingWatcher {
    /// A row has left; in the session of whose work that was a part. Must not wait, and must not write.
    fn left(&self, session: &Session, space: &Space, row: &[u8], why: Leaving);
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
