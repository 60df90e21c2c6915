//! Logging in, calling procedures, and what a user may see of the schema.

use crate::access::{ObjectType, Privileges, Rights, denied};
use crate::alter;
use crate::catalog::{Function, UserKind};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::SessionEvent;
use crate::session::{ADMIN, Context, NOBODY, PUBLIC, Session, UserId};
use crate::statistics::increment;
use runtime::fiber;
use std::rc::Rc;
use tuple::SpaceId;
use tuple::msgpack::{Kind, Reader};

impl Database {
    /// Logs a session in by chap-sha1. `scramble` answers the first 20 bytes of `salt`.
    ///
    /// Errors: `CredsMismatch`, whether the user is unknown or the password wrong; `AccessDenied` if the user may open no session.
    pub fn authenticate(&self, session: &Session, name: &str, scramble: &[u8], salt: &[u8]) -> Result<()> {
        increment(&self.statistics.auths);
        let mismatch = || Error::new(ErrorCode::CredsMismatch, &[]);
        let user = self.catalog.user_by_name(name).filter(|user| user.kind == UserKind::User).ok_or_else(mismatch)?;
        let (Some(stored), Ok(scramble)) = (user.password_hash, <[u8; 20]>::try_from(scramble)) else {
            return Err(mismatch());
        };
        if !wire::is_proof(&scramble, &stored, salt) {
            return Err(mismatch());
        }
        self.log_in(session, user.id)
    }

    /// Logs a session in by a password as it is. Errors: as `authenticate`.
    pub fn authenticate_plainly(&self, session: &Session, name: &str, password: &[u8]) -> Result<()> {
        // Its own proof: what is compared, and in what time, is the same as with any other.
        let salt = [0; 20];
        self.authenticate(session, name, &wire::scramble(password, &salt), &salt)
    }

    /// Makes a session a user's. Errors: `AccessDenied` if the user may open no sessions.
    pub fn log_in(&self, session: &Session, user: UserId) -> Result<()> {
        self.check_session(user)?;
        self.set_session_user(session, user);
        Ok(())
    }

    /// Makes a session a user's, unasked.
    pub fn set_session_user(&self, session: &Session, user: UserId) {
        session.user.set(user);
        session.birth.set((self.catalog.user(user).map_or(0, |user| user.birth), 0));
    }

    /// Who a session's work is checked as: its user, or nobody if that one was dropped, even if another user has the number now.
    #[inline]
    pub fn user_of(&self, session: &Session) -> UserId {
        let id = session.user.get();
        let (birth, checked) = session.birth.get();
        let version = self.catalog.access_version();
        // Neither guest nor the administrator can be dropped.
        if checked == version || id <= ADMIN {
            return id;
        }
        if self.catalog.user(id).is_none_or(|user| user.birth != birth) {
            return NOBODY;
        }
        session.birth.set((birth, version));
        id
    }

    /// Has the work of a context be checked as its session's user, or as nobody if that one was dropped.
    #[inline]
    pub fn act_for_session(&self, context: &Context) {
        context.act_for_session(self.user_of(&context.session), self.catalog.access_version());
        self.resume_schema(context);
    }

    fn rights(&self, context: &Context) -> Rc<Rights> {
        context.rights(&self.catalog)
    }

    /// Calls a procedure for a client after checking access. Appends the encoded results to `out`; returns how many there are.
    ///
    /// May wait. Errors: `AccessDenied`, `NoSuchProc`, and whatever the procedure raises. A transaction left open is rolled back (`FunctionTxActive`).
    pub fn call(
        &self,
        context: &Rc<Context>,
        name: &str,
        arguments: &[u8],
        is_old_style: bool,
        out: &mut Vec<u8>,
    ) -> Result<u32> {
        increment(&self.statistics.calls);
        let function = self.catalog.function_by_name(name);
        let before = context.acting();
        self.check_execute(context, name, function.as_ref())?;
        if let Some(function) = function.as_ref().filter(|function| !matches!(function.language.as_str(), "LUA" | "C"))
        {
            // Its name must not be looked for among the globals of Lua.
            let what = format!("functions in {} yet", function.language);
            return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &what]));
        }
        let procedures = self.procedures().ok_or_else(|| Error::new(ErrorCode::NoSuchProc, &[&name]))?;
        if let Some(function) = function.as_ref().filter(|function| function.is_setuid) {
            context.act_as(function.owner, &self.catalog);
        }
        let result = procedures.call(context, name, function.as_ref(), arguments, is_old_style, out);
        context.act_again(before);
        self.end_request(context, result)
    }

    /// Checks the right to call a function. One that only Lua knows, or that evaluates its argument, takes the right to run anything: a
    /// grant on all functions is one on those of `_func`. Errors: `AccessDenied`.
    pub fn check_execute(&self, context: &Context, name: &str, function: Option<&Rc<Function>>) -> Result<()> {
        let rights = self.rights(context);
        let user = context.user(&self.catalog);
        let user_name = || self.catalog.user_name(user);
        let universal = Privileges::EXECUTE | Privileges::USAGE;
        if rights.universe & universal != universal && user != ADMIN {
            if rights.universe & Privileges::USAGE == 0 {
                return Err(denied(Privileges::USAGE, ObjectType::Universe, "", &user_name()));
            }
            let granted = match function {
                Some(function) if !function.evaluates() => {
                    function.owner == user || rights.on(ObjectType::Function, function.id) & Privileges::EXECUTE != 0
                }
                _ => false,
            };
            if !granted {
                return Err(denied(Privileges::EXECUTE, ObjectType::Function, name, &user_name()));
            }
        }
        Ok(())
    }

    /// Checks that a user may open sessions. Errors: `AccessDenied`; `NoSuchUser` if there is no such user.
    pub fn check_session(&self, user: UserId) -> Result<()> {
        if self.catalog.user(user).is_none() {
            return Err(Error::new(ErrorCode::NoSuchUser, &[&user]));
        }
        let rights = self.catalog.rights_of(user);
        if rights.universe & Privileges::SESSION == 0 {
            let name = self.catalog.user_name(user);
            return Err(denied(Privileges::SESSION, ObjectType::Universe, "", &name));
        }
        Ok(())
    }

    /// Tells procedures of a session's life, in a fiber of its own, if they want to know.
    pub fn announce(self: &Rc<Self>, session: &Rc<Session>, event: SessionEvent) {
        let Some(procedures) = self.procedures() else { return };
        if !procedures.wants(event) {
            return;
        }
        let context = Rc::new(Context::for_background(Rc::clone(session)));
        self.act_for_session(&context);
        let database = Rc::clone(self);
        let made = fiber::try_spawn("session trigger", move || {
            fiber::set_local(Rc::clone(&context) as Rc<dyn std::any::Any>);
            procedures.session_event(&context, event);
            if context.is_in_txn() {
                database.abandon(&context);
            }
        });
        if let Err(error) = made {
            tracing::warn!("triggers of {} are not run: {error}", event.name());
        }
    }

    /// Runs source text for a client. As `call`. Errors: `AccessDenied`, and whatever the text raises.
    pub fn eval(&self, context: &Rc<Context>, source: &str, arguments: &[u8], out: &mut Vec<u8>) -> Result<u32> {
        increment(&self.statistics.evals);
        self.check_execute_universe(context)?;
        let procedures = self.procedures().ok_or_else(|| Error::system("there is no Lua"))?;
        let result = procedures.eval(context, source, arguments, out);
        self.end_request(context, result)
    }

    /// Has Lua's half of the catalog make, change or drop a user or a role, or give rights, with the rights of who asks: the first of the arguments (an
    /// array) says what. Errors: `AccessDenied`; those of `box.schema.user` and `box.schema.role`.
    pub fn manage_accounts(&self, context: &Context, arguments: &[u8]) -> Result<()> {
        let procedures = self.procedures().ok_or_else(|| Error::system("there is no Lua"))?;
        procedures.manage_accounts(context, arguments)
    }

    /// Notes that clients of a listener act as a user of this name from now on, until the server ends: it is not dropped.
    pub fn need_user(&self, name: &'static str) {
        self.door_users.borrow_mut().insert(name);
    }

    /// True for a user whom a protocol needs.
    pub fn is_needed_user(&self, name: &str) -> bool {
        self.door_users.borrow().contains(name)
    }

    /// An object that belongs to a user or a role, as an error names it. None: nothing does.
    pub fn owned_by(&self, owner: UserId) -> Option<String> {
        let catalog = &self.catalog;
        let space = catalog.spaces().into_iter().find(|space| space.owner() == owner);
        let space = space.map(|space| format!("space '{}'", space.name()));
        let function = || {
            let found = catalog.functions().into_iter().find(|function| function.owner == owner)?;
            Some(format!("function '{}'", found.name))
        };
        let sequence = || {
            let found = catalog.sequences().into_iter().find(|sequence| sequence.def().owner == owner)?;
            Some(format!("sequence '{}'", found.def().name))
        };
        space.or_else(function).or_else(sequence)
    }

    /// Checks the right to run anything. Errors: `AccessDenied`.
    pub fn check_execute_universe(&self, context: &Context) -> Result<()> {
        let rights = self.rights(context);
        let missing = (Privileges::EXECUTE | Privileges::USAGE) & !rights.universe;
        if missing != 0 && context.user(&self.catalog) != ADMIN {
            let name = self.catalog.user_name(context.user(&self.catalog));
            return Err(denied(missing, ObjectType::Universe, "", &name));
        }
        Ok(())
    }

    fn end_request(&self, context: &Context, result: Result<u32>) -> Result<u32> {
        if context.is_in_txn() && !context.keeps_txn {
            self.abandon(context);
            return result.and(Err(Error::new(ErrorCode::FunctionTxActive, &[])));
        }
        result
    }

    /// True if a row of a system space shows in its view for a user: it is the user's own, or there is a right on what it describes.
    pub(crate) fn is_visible(&self, rights: &Rights, user: UserId, view: SpaceId, row: &[u8]) -> bool {
        const ANY: u32 = Privileges::READ | Privileges::WRITE | Privileges::ALTER | Privileges::DROP;
        let base = alter::view_base(view);
        if base == alter::COLLATION_ID || user == ADMIN || rights.universe & ANY != 0 {
            return true;
        }
        // Who may read the system space itself sees all of it here too.
        if rights.on_object(ObjectType::Space, base.0) & Privileges::READ != 0 {
            return true;
        }
        let number = |at: u32| {
            let mut reader = Reader::new(row);
            let count = reader.read_array().ok()?;
            (at < count).then_some(())?;
            for _ in 0..at {
                reader.skip_checked();
            }
            match reader.kind().ok()? {
                Kind::Uint => reader.read_uint().ok().map(|value| value as u32),
                _ => None,
            }
        };
        let (Some(first), second) = (number(0), number(1)) else {
            return false;
        };
        let has = |kind, bits| rights.on(kind, first) & bits != 0;
        match base {
            alter::SPACE_ID => second == Some(user) || has(ObjectType::Space, ANY),
            alter::INDEX_ID => {
                self.catalog.space(SpaceId(first)).is_some_and(|space| space.owner() == user)
                    || has(ObjectType::Space, ANY)
            }
            alter::FUNC_ID => second == Some(user) || has(ObjectType::Function, ANY | Privileges::EXECUTE),
            alter::USER_ID => first == user || first == PUBLIC || second == Some(user),
            alter::PRIV_ID => first == user || second == Some(user),
            alter::SEQUENCE_ID => second == Some(user) || has(ObjectType::Sequence, ANY | Privileges::EXECUTE),
            // `_vspace_sequence`: the space comes first.
            _ => {
                has(ObjectType::Space, ANY)
                    || self.catalog.space(SpaceId(first)).is_some_and(|space| space.owner() == user)
            }
        }
    }
}
