//! Temporary tables and views: those of one session, which hide others of their names from it.
//!
//! Such a table is a space of a session (`database/session_spaces.rs`): nothing of it is logged. In the catalog its name is `pg_temp_<session>_<name>`; a statement of
//! the session that says `<name>` means it. Making, changing and dropping one is a transaction of its own beside the one that is open, which goes on.
//!
//! Names are looked up for [`Sql::speaking`], the session whose statement is bound: binding never waits, so whoever binds says for whom first.

use crate::ddl::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::session::Session;
use crate::statement::Sql;
use crate::table::Table;
use database::{Context, Database, SESSION_PREFIX, Space};
use sqlparser::ast::{self, ObjectType};
use std::rc::Rc;
use tuple::{SpaceId, msgpack};

/// Temporary tables of a session.
pub const TEMPORARY_TABLES_MAX: usize = 1000;
/// Bytes of rows and index entries of a temporary table.
pub const TEMPORARY_BYTES_MAX: u64 = 1 << 30;
/// Temporary tables of sessions that have ended which could not be dropped yet.
const LEFT_MAX: usize = 10_000;

/// What becomes of a temporary table when a transaction commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCommit {
    Keep,
    DeleteRows,
    Drop,
}

/// A temporary table of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Temporary {
    pub(crate) id: SpaceId,
    pub(crate) on_commit: OnCommit,
    /// The open transaction has made it: it goes if that is rolled back.
    pub(crate) is_new: bool,
    /// The open transaction, which may have used it, has dropped it: it goes when that ends.
    pub(crate) is_gone: bool,
}

/// The name in the catalog of what a session calls so; `again`: once names of that number may be those of tables that wait for the end of a transaction.
fn own_name(session: u64, again: u64, name: &str) -> String {
    match again {
        0 => format!("{SESSION_PREFIX}{session}_{name}"),
        // Digits that no session has.
        again => format!("{SESSION_PREFIX}{again}{session:020}_{name}"),
    }
}

/// The name that its session calls a space by.
pub(crate) fn short_name(space: &Space) -> String {
    let name = space.name();
    if !space.def().is_session {
        return name;
    }
    let rest = name.strip_prefix(SESSION_PREFIX).and_then(|rest| rest.split_once('_'));
    rest.map_or(name.clone(), |(_, rest)| rest.to_string())
}

/// The options of the space of a temporary table.
pub(crate) fn options() -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_map(&mut out, 2);
    msgpack::encode_str(&mut out, b"temporary");
    msgpack::encode_bool(&mut out, true);
    msgpack::encode_str(&mut out, b"checks");
    msgpack::encode_map(&mut out, 2);
    msgpack::encode_str(&mut out, b"memory_limit");
    msgpack::encode_uint(&mut out, TEMPORARY_BYTES_MAX);
    msgpack::encode_str(&mut out, b"eviction");
    msgpack::encode_str(&mut out, b"none");
    out
}

/// The space that a name means to the session that speaks: its own temporary table, or one that everybody sees.
pub(crate) fn space_by_name(database: &Database, name: &str) -> Option<Rc<Space>> {
    if crate::schemas::is_nowhere(name) {
        return None;
    }
    let sql = Sql::of(database);
    let own = sql.own_space(database, name);
    own.or_else(|| database.catalog.space_by_name(name).filter(|space| sql.may_name(space)))
}

impl Sql {
    /// Names are looked up for a session from now on.
    pub(crate) fn speak(&self, context: &Context) {
        self.speaking.set(context.session.id);
    }

    /// Looks names up as if no session had tables of its own.
    pub(crate) fn for_nobody<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.speaking.replace(0);
        let done = work();
        self.speaking.set(before);
        done
    }

    /// The session that speaks.
    pub(crate) fn speaking_session(&self) -> Option<Rc<Session>> {
        self.sessions.borrow().get(&self.speaking.get()).cloned()
    }

    /// True if the zone of the session that speaks is not UTC.
    pub(crate) fn is_zoned(&self) -> bool {
        self.sessions.borrow().get(&self.speaking.get()).is_some_and(|session| session.is_zoned())
    }

    /// True if the session that speaks has temporary tables.
    pub(crate) fn has_own_tables(&self) -> bool {
        let session = self.sessions.borrow().get(&self.speaking.get()).cloned();
        session.is_some_and(|session| !session.temporary.borrow().is_empty())
    }

    /// The temporary table that the session that speaks calls so.
    pub(crate) fn own_space(&self, database: &Database, name: &str) -> Option<Rc<Space>> {
        if !self.has_own_tables() {
            return None;
        }
        let session = self.session(self.speaking.get())?;
        let is_own = |space: &Rc<Space>| space.def().is_session && self.owns(space);
        let found = database.catalog.space_by_name(&own_name(self.speaking.get(), 0, name)).filter(is_own);
        if found.is_some() || session.names_again.get() == 0 {
            return found;
        }
        let tables = session.temporary.borrow();
        let mut spaces =
            tables.iter().filter(|table| !table.is_gone).filter_map(|table| database.catalog.space(table.id));
        spaces.find(|space| short_name(space) == name)
    }

    /// The name in the catalog for what the session that speaks calls so: another one where the open transaction has dropped something.
    pub(crate) fn new_own_name(&self, database: &Database, name: &str) -> String {
        if let Some(space) = self.own_space(database, name) {
            return space.name();
        }
        let session = self.speaking.get();
        own_name(session, self.session(session).map_or(0, |session| session.names_again.get()), name)
    }

    /// DROP TABLE of temporary tables within a transaction: nobody finds them any more. None: it is another statement.
    pub(crate) fn hide(
        &self,
        database: &Database,
        dialect: Dialect,
        statement: &ast::Statement,
    ) -> Result<Option<u64>> {
        let ast::Statement::Drop { object_type, names, if_exists, .. } = statement else { return Ok(None) };
        if !matches!(object_type, ObjectType::Table | ObjectType::View) {
            return Ok(None);
        }
        let mut hidden = Vec::new();
        for name in names {
            let name = dialect.object_name(name)?;
            match self.own_space(database, &name) {
                Some(space) => {
                    let is_view = crate::views::of(database, &space).is_some();
                    if is_view != (*object_type == ObjectType::View) {
                        let kind = if is_view { "table" } else { "view" };
                        return Err(Error::new(Condition::NotUpdatable, format!("\"{name}\" is not a {kind}")));
                    }
                    hidden.push(space.id);
                }
                None if *if_exists => {}
                None => {
                    let what = format!("Unknown table '{name}'");
                    return Err(Error::new(Condition::UndefinedTable, what).mysql(1051));
                }
            }
        }
        if let Some(session) = self.session(self.speaking.get()) {
            let mut tables = session.temporary.borrow_mut();
            tables.iter_mut().filter(|table| hidden.contains(&table.id)).for_each(|table| table.is_gone = true);
            session.names_again.set(session.names_again.get() + u64::from(!hidden.is_empty()));
        }
        Ok(Some(hidden.len() as u64))
    }

    /// False for temporary tables of other sessions.
    pub(crate) fn may_name(&self, space: &Space) -> bool {
        !space.def().is_session || self.owns(space)
    }

    /// True for temporary tables of the session that speaks.
    pub(crate) fn owns(&self, space: &Space) -> bool {
        let session = self.sessions.borrow().get(&self.speaking.get()).cloned();
        session.is_some_and(|session| session.temporary.borrow().iter().any(|own| own.id == space.id && !own.is_gone))
    }

    /// True if a change of the schema is about temporary tables of the session alone: the open transaction goes on beside it.
    pub fn is_about_temporary(&self, database: &Database, context: &Context, prepared: &crate::Prepared) -> bool {
        prepared.schema().is_some_and(|statement| self.is_temporary(database, context, prepared.dialect(), statement))
    }

    pub(crate) fn is_temporary(
        &self,
        database: &Database,
        context: &Context,
        dialect: Dialect,
        statement: &ast::Statement,
    ) -> bool {
        self.speak(context);
        let is_own = |name: &ast::ObjectName| {
            dialect.object_name(name).is_ok_and(|name| self.own_space(database, &name).is_some())
        };
        match statement {
            ast::Statement::CreateTable(create) => create.temporary,
            ast::Statement::CreateView(create) => crate::views::is_temporary(database, dialect, create),
            ast::Statement::CreateIndex(create) => is_own(&create.table_name),
            ast::Statement::AlterTable(alter) => is_own(&alter.name),
            ast::Statement::Drop { object_type: ObjectType::View, names, .. } => names.iter().all(is_own),
            ast::Statement::Drop { object_type: ObjectType::Table, temporary, names, .. } => {
                *temporary || names.iter().all(is_own)
            }
            ast::Statement::Drop { object_type: ObjectType::Index, table: Some(table), .. } => is_own(table),
            ast::Statement::Drop { object_type: ObjectType::Index, names, .. } if self.has_own_tables() => {
                let names: Vec<String> = names.iter().filter_map(|name| dialect.object_name(name).ok()).collect();
                let spaces = database.catalog.spaces();
                let own = || spaces.iter().filter(|space| space.def().is_session && self.owns(space));
                names.iter().all(|name| own().any(|space| space.index_by_name(name).is_some()))
            }
            ast::Statement::Truncate(truncate) => truncate.table_names.iter().all(|target| is_own(&target.name)),
            _ => false,
        }
    }

    /// A transaction of a session has ended: tables are emptied or go that were made so, and those that a transaction has made which was rolled back.
    ///
    /// May wait. Errors: those of the writes.
    pub fn after_transaction(&self, database: &Database, context: &Rc<Context>, is_committed: bool) -> Result<()> {
        let Some(session) = self.session(context.session.id) else { return Ok(()) };
        if session.temporary.borrow().is_empty() || context.is_in_txn() {
            return Ok(());
        }
        let tables = session.temporary.borrow().clone();
        session.temporary.borrow_mut().iter_mut().for_each(|table| table.is_new = false);
        for table in tables {
            let Some(space) = database.catalog.space(table.id) else { continue };
            match (is_committed, table.on_commit) {
                _ if table.is_gone => self.drop_own(database, context, &space)?,
                (true, OnCommit::Drop) => self.drop_own(database, context, &space)?,
                (false, _) if table.is_new => self.drop_own(database, context, &space)?,
                (true, OnCommit::DeleteRows) if !space.rows.is_empty() => database.truncate(context, &space)?,
                _ => {}
            }
        }
        session.temporary.borrow_mut().retain(|table| database.catalog.space(table.id).is_some());
        if session.temporary.borrow().is_empty() {
            session.names_again.set(0);
        }
        Ok(())
    }

    fn drop_own(&self, database: &Database, context: &Rc<Context>, space: &Rc<Space>) -> Result<()> {
        let ddl = Ddl { database, context, dialect: Dialect::Postgres };
        let table = Table::of(database, Rc::clone(space))?;
        self.in_txn(database, context, || ddl.as_admin(|| ddl.drop_found(&table)))
    }

    /// Drops all temporary tables of a session that goes on. May wait. Errors: those of the writes.
    pub fn drop_temporary(&self, database: &Database, context: &Rc<Context>, session: &Session) -> Result<()> {
        for table in session.temporary.take() {
            if let Some(space) = database.catalog.space(table.id) {
                self.drop_own(database, context, &space)?;
            }
        }
        Ok(())
    }

    /// True if temporary tables of sessions that have ended are there.
    pub fn has_left_tables(&self) -> bool {
        !self.left.borrow().is_empty()
    }

    /// Drops temporary tables of sessions that have ended. In a fiber of its own; may wait.
    pub fn drop_left_tables(&self, database: &Database) {
        let left = self.left.take();
        if left.is_empty() {
            return;
        }
        let context = Rc::new(database.admin_context());
        for id in left {
            let Some(space) = database.catalog.space(id).filter(|space| space.def().is_session) else { continue };
            if self.drop_own(database, &context, &space).is_err() {
                // The next session that ends tries again.
                self.leave(id);
            }
        }
        database.close_session(&context.session);
    }

    pub(crate) fn leave(&self, id: SpaceId) {
        let mut left = self.left.borrow_mut();
        if left.len() < LEFT_MAX {
            left.push(id);
        }
    }
}

impl Ddl<'_> {
    /// Notes a temporary table that was made. Errors: the session has too many.
    pub(crate) fn own(&self, id: u64, on_commit: Option<&ast::OnCommit>) -> Result<()> {
        let session = self.own_session()?;
        let mut tables = session.temporary.borrow_mut();
        tables.retain(|table| self.database.catalog.space(table.id).is_some());
        let on_commit = match on_commit {
            Some(ast::OnCommit::Drop) => OnCommit::Drop,
            Some(ast::OnCommit::DeleteRows) => OnCommit::DeleteRows,
            _ => OnCommit::Keep,
        };
        tables.push(Temporary {
            id: SpaceId(id as u32),
            on_commit,
            is_new: self.dialect == Dialect::Postgres,
            is_gone: false,
        });
        Ok(())
    }

    /// The session that a temporary table is for. Errors: it can have none, or no more.
    pub(crate) fn own_session(&self) -> Result<Rc<Session>> {
        let session = crate::Sql::of(self.database).session(self.context.session.id);
        let Some(session) = session else {
            return Err(Error::unsupported("CREATE TEMPORARY TABLE by this protocol"));
        };
        let mut tables = session.temporary.borrow_mut();
        tables.retain(|table| self.database.catalog.space(table.id).is_some());
        if tables.len() >= TEMPORARY_TABLES_MAX {
            let what = format!("a session has at most {TEMPORARY_TABLES_MAX} temporary tables");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        drop(tables);
        Ok(session)
    }
}
