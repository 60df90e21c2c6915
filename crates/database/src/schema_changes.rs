//! Transactions that have changed the schema and wait.
//!
//! The idea is that of `isolation.rs`: while the transaction waits, the schema is as it was before, and it is changed again when the transaction goes
//! on. So nobody else sees what may be rolled back.
//!
//! ```text
//! begin  create t  insert into t | wait                    | select t  commit
//!                                | t is not there          | t and its row are there again
//! ```
//!
//! - *One at a time.* Who changes the schema in a transaction locks it until the end: others that want to change it wait, as for a row
//!   (`locks.rs`). Tables of a session are nobody else's and do not count.
//! - *Spaces that were there before* are locked with their definitions: others read them as they were, and wait if they want to write. So an index that
//!   was made over the rows is whole when it is put back in its place.
//! - *Spaces that it has emptied* have other rows in memory from then on, which change places as a whole with those that others still see. So what it puts
//!   in there stays where it is, too.
//! - *Many rows of other spaces*, as a table has that gets another shape, are not put back and forth at each wait either: once that has cost as much as the
//!   space has rows, a copy of it is made in which they are as they were, and both change places as a whole. The transaction keeps the definition for itself then.
//! - *Spaces of its own* are out of the catalog while it waits. Nobody else can see their rows, which stay where they are: a million rows
//!   that are loaded into a new table cost a wait nothing.
//! - *Versions.* While the transaction waits the schema has the version that it had before, and its own version again when it goes on, so what was
//!   prepared for either stays good ([`Catalog::schema_version`](crate::catalog::Catalog::schema_version)).
//!
//! Names are looked up before a statement is, so such a transaction goes on as soon as its fiber does, and not at its next statement.

use crate::alter::{
    CLUSTER_ID, COLLATION_ID, FUNC_ID, INDEX_ID, PRIV_ID, SCHEMA_ID, SEQUENCE_ID, SPACE_ID, SPACE_SEQUENCE_ID,
    TRUNCATE_ID, USER_ID,
};
use crate::catalog::Space;
use crate::database::Database;
use crate::disposal::Garbage;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::locks::{Held, Shown};
use crate::session::Context;
use crate::session_spaces::SESSION_ID_MIN;
use crate::statement::Operation;
use crate::txn::{Statement, Turn, Txn};
use runtime::fiber;
use std::collections::BTreeMap;
use std::rc::Rc;
use storage::MemorySpace;
use tuple::msgpack::Reader;
use tuple::{SpaceId, Tuple};

/// What a transaction has done to the schema.
#[derive(Default)]
pub(crate) struct SchemaChanges {
    /// A statement was about a system space.
    is_begun: bool,
    /// Spaces that it has made.
    own: Vec<SpaceId>,
    /// Sequences that it has made. What they have come to is written at its commit.
    own_sequences: Vec<u32>,
    /// Spaces that it has emptied by a truncation, and the places of these statements.
    emptied: Vec<(SpaceId, usize)>,
    /// Spaces that others see in a copy without its changes while it waits; and that copy, or the rows with its changes while that is in its place.
    exchanged: Vec<(Rc<Space>, MemorySpace)>,
    /// The places of those of its statements that others would see: all but rows in memory of its own spaces, of spaces that it has emptied before,
    /// and of those that are exchanged.
    shown: Vec<usize>,
    /// How often it has waited.
    waits: usize,
    /// Version of the schema without its changes.
    base_version: u64,
    /// Version with them, while it waits.
    own_version: u64,
    /// They are rolled back, because it waits.
    is_withdrawn: bool,
}

impl SchemaChanges {
    /// The transaction is about to do something to the schema, which has this version.
    pub(crate) fn begin(&mut self, version: u64) {
        if !self.is_begun {
            self.base_version = version;
        }
    }

    /// Version of the schema without the transaction's changes, if it has made any.
    pub(crate) fn version_before(&self) -> Option<u64> {
        self.is_begun.then_some(self.base_version)
    }

    /// The transaction has done one more statement, which has the place `at`. Those before the first that is about a system space need not be told.
    pub(crate) fn note(&mut self, statement: &Statement, at: usize) {
        if !self.is_begun {
            self.is_begun = true;
            self.shown = (0..at).collect();
        }
        self.own.extend(made_by(statement, SPACE_ID).map(SpaceId));
        self.own_sequences.extend(made_by(statement, SEQUENCE_ID));
        if statement.space.id == TRUNCATE_ID {
            self.emptied.extend(first_number(statement.change.new.as_ref()).map(|id| (SpaceId(id), at)));
        }
        if !self.is_hidden(statement) {
            self.shown.push(at);
        }
    }

    /// The newest statement is rolled back; it had the place `at`.
    pub(crate) fn forget(&mut self, statement: &Statement, at: usize) {
        self.shown.pop_if(|last| *last == at);
        self.emptied.pop_if(|(_, last)| *last == at);
        if let Some(id) = made_by(statement, SPACE_ID) {
            self.own.retain(|own| own.0 != id);
        }
        if let Some(id) = made_by(statement, SEQUENCE_ID) {
            self.own_sequences.retain(|own| *own != id);
        }
    }

    /// True for a space that the transaction has made.
    #[inline]
    pub(crate) fn is_own(&self, id: SpaceId) -> bool {
        !self.own.is_empty() && self.own.contains(&id)
    }

    /// True if one of the transaction's statements was about the definition of a space.
    pub(crate) fn has_defined(&self, id: SpaceId, statements: &[Statement]) -> bool {
        self.shown.iter().filter_map(|at| statements.get(*at)).any(|statement| {
            let row = statement.change.new.as_ref().or(statement.change.old.as_ref());
            matches!(statement.space.id, SPACE_ID | INDEX_ID | SPACE_SEQUENCE_ID | TRUNCATE_ID)
                && first_number(row) == Some(id.0)
        })
    }

    /// True for a space that the transaction has emptied.
    pub(crate) fn has_emptied(&self, id: SpaceId) -> bool {
        self.emptied.iter().any(|(emptied, _)| *emptied == id)
    }

    fn is_hidden(&self, statement: &Statement) -> bool {
        let id = statement.space.id;
        let is_exchanged = || self.exchanged.iter().any(|(space, _)| space.id == id);
        (self.is_own(id) || self.has_emptied(id) || is_exchanged()) && !statement.space.rows.may_wait()
    }

    /// Puts the other rows of the spaces that have such in their places.
    fn exchange(&mut self) {
        for (space, other) in &mut self.exchanged {
            if let Some(rows) = space.rows.memory() {
                rows.borrow_mut().lose_fork();
                std::mem::swap(&mut *rows.borrow_mut(), other);
            }
        }
    }

    /// What the transaction needs no longer at its end.
    pub(crate) fn take_copies(&mut self) -> impl Iterator<Item = Garbage> {
        std::mem::take(&mut self.exchanged).into_iter().map(|(_, copy)| Garbage::Space(copy))
    }

    /// The spaces in memory of which others would see rows that it has changed, and how many.
    fn changed_rows<'a>(&self, statements: &'a [Statement]) -> BTreeMap<SpaceId, (&'a Rc<Space>, usize)> {
        let mut counts = BTreeMap::new();
        for statement in self.shown.iter().filter_map(|at| statements.get(*at)) {
            if !statement.space.is_system() && statement.space.rows.memory().is_some() {
                counts.entry(statement.space.id).or_insert((&statement.space, 0)).1 += 1;
            }
        }
        counts
    }

    /// True if one of its statements was about more of a space than its rows and format: its indexes, all rows at once, or that it is there.
    fn has_rebuilt(&self, id: SpaceId, statements: &[Statement]) -> bool {
        self.shown.iter().filter_map(|at| statements.get(*at)).any(|statement| {
            let change = &statement.change;
            let is_meant = match statement.space.id {
                INDEX_ID | TRUNCATE_ID => true,
                SPACE_ID => change.old.is_none() || change.new.is_none(),
                _ => false,
            };
            is_meant && first_number(change.new.as_ref().or(change.old.as_ref())) == Some(id.0)
        })
    }

    /// True if one of the transaction's statements was about this system space.
    pub(crate) fn has_written(&self, system_space: SpaceId, statements: &[Statement]) -> bool {
        self.shown.iter().filter_map(|at| statements.get(*at)).any(|statement| statement.space.id == system_space)
    }

    /// True if what a statement did to the catalog is about a space of its own, which is out of the catalog when the transaction waits.
    fn is_within_own(&self, statement: &Statement) -> bool {
        let change = &statement.change;
        let is_meant = match statement.space.id {
            SPACE_ID => change.old.is_some() && change.new.is_some(),
            INDEX_ID | TRUNCATE_ID | SPACE_SEQUENCE_ID => true,
            _ => false,
        };
        is_meant && first_number(change.new.as_ref().or(change.old.as_ref())).is_some_and(|id| self.is_own(SpaceId(id)))
    }
}

fn first_number(row: Option<&Tuple>) -> Option<u32> {
    row.and_then(|row| Fields::new(row.data()).and_then(|mut fields| fields.uint()).ok())
}

/// Number of the object that a statement has made by a row of this system space.
fn made_by(statement: &Statement, system_space: SpaceId) -> Option<u32> {
    let change = &statement.change;
    let is_new = statement.space.id == system_space && change.old.is_none();
    first_number(change.new.as_ref().filter(|_| is_new))
}

/// True for the system spaces whose rows are the schema, as far as one transaction at a time may change it.
fn is_schema(id: SpaceId) -> bool {
    matches!(
        id,
        SCHEMA_ID
            | COLLATION_ID
            | SPACE_ID
            | SEQUENCE_ID
            | INDEX_ID
            | FUNC_ID
            | USER_ID
            | PRIV_ID
            | CLUSTER_ID
            | SPACE_SEQUENCE_ID
    )
}

/// The lock of the whole schema.
fn schema_key() -> (SpaceId, Rc<[u8]>) {
    (SCHEMA_ID, Rc::from([]))
}

/// The lock of a space's definition.
fn definition_key(id: SpaceId) -> (SpaceId, Rc<[u8]>) {
    (SPACE_ID, Rc::from(id.0.to_be_bytes()))
}

impl Database {
    /// What a transaction has done that has changed the schema is rolled back as long as it waits.
    pub(crate) fn withdraw_schema(&self, txn: &mut Txn) {
        let mut schema = std::mem::take(&mut txn.schema);
        schema.own_version = self.catalog.schema_version();
        let copied = self.choose_copied(&mut schema, txn);
        let is_copied = |statement: &Statement| copied.iter().any(|space| space.id == statement.space.id);
        let (hidden, shown) = schema.shown.iter().partition(|at| txn.statements().get(**at).is_some_and(is_copied));
        schema.shown = shown;
        for at in schema.shown.iter().rev() {
            let Some(statement) = txn.statements_mut().get_mut(*at) else { continue };
            let is_within_own = schema.is_within_own(statement);
            if let Some(effect) = statement.effect.as_mut().filter(|_| !is_within_own) {
                (effect.turn)(self, Turn::Back);
            }
            debug_assert!(statement.space.rows.has_applied(&statement.change), "what is rolled back is there");
            statement.space.rows.undo(&statement.change);
        }
        schema.exchange();
        for space in copied {
            let Some(rows) = space.rows.memory() else { continue };
            rows.borrow_mut().lose_fork();
            let mut copy = rows.borrow().copied();
            let hidden: &Vec<usize> = &hidden;
            let changes = hidden.iter().rev().filter_map(|at| txn.statements().get(*at));
            changes
                .filter(|statement| statement.space.id == space.id)
                .for_each(|statement| copy.undo(&statement.change));
            std::mem::swap(&mut *rows.borrow_mut(), &mut copy);
            schema.exchanged.push((space, copy));
        }
        self.catalog.return_to_version(schema.base_version);
        schema.is_withdrawn = true;
        txn.schema = schema;
        self.count_schema_waits(1);
    }

    /// The spaces of which a copy is to be made at this wait, so that the rows which the transaction has changed in them need not be put back any more. It has
    /// their definitions then.
    fn choose_copied(&self, schema: &mut SchemaChanges, txn: &mut Txn) -> Vec<Rc<Space>> {
        schema.waits += 1;
        if schema.shown.len() <= self.limits.in_place_max.get() {
            return Vec::new();
        }
        let is_worth_it = |space: &Space, count: usize| {
            let rows = space.rows.memory().map_or(usize::MAX, |rows| rows.borrow().len());
            count.saturating_mul(schema.waits) >= rows && !space.is_being_changed()
        };
        let counts = schema.changed_rows(txn.statements());
        let worth = counts.into_values().filter(|(space, count)| is_worth_it(space, *count));
        let fit = worth.filter(|(space, _)| !schema.has_rebuilt(space.id, txn.statements()));
        let chosen: Vec<Rc<Space>> = fit.map(|(space, _)| Rc::clone(space)).collect();
        chosen.into_iter().filter(|space| self.has_or_takes_definition(txn, space)).collect()
    }

    /// True if the transaction has the definition of a space for itself, or it was free and has it now.
    fn has_or_takes_definition(&self, txn: &mut Txn, space: &Space) -> bool {
        let key = definition_key(space.id);
        match self.locks.owner_of(&key) {
            Some(owner) => owner == txn.id(),
            None => self.take_free(txn.id(), key, &Shown::Definition(space.id)).map(|held| txn.hold(held)).is_ok(),
        }
    }

    /// Such a transaction goes on.
    pub(crate) fn restore_schema(&self, txn: &mut Txn) {
        let mut schema = std::mem::take(&mut txn.schema);
        let version = self.catalog.schema_version();
        schema.exchange();
        for at in &schema.shown {
            let Some(statement) = txn.statements_mut().get_mut(*at) else { continue };
            debug_assert!(
                statement.space.rows.has_rolled_back(&statement.change),
                "nobody has touched what comes back"
            );
            statement.space.rows.redo(&mut statement.change);
            let is_within_own = schema.is_within_own(statement);
            if let Some(effect) = statement.effect.as_mut().filter(|_| !is_within_own) {
                (effect.turn)(self, Turn::Forth);
            }
        }
        if version == schema.base_version {
            self.catalog.return_to_version(schema.own_version);
        }
        schema.base_version = version;
        txn.schema = schema;
        self.end_schema_wait(txn);
    }

    /// A transaction that has changed the schema waits no longer, or is rolled back meanwhile.
    pub(crate) fn end_schema_wait(&self, txn: &mut Txn) {
        if std::mem::take(&mut txn.schema.is_withdrawn) {
            self.count_schema_waits(-1);
        }
    }

    fn count_schema_waits(&self, change: isize) {
        let waits = self.schema_waits.get().saturating_add_signed(change);
        self.schema_waits.set(waits);
        fiber::call_after_yield(waits > 0);
    }

    /// Has the transaction of a context go on that has changed the schema: names mean what they mean in it. What has become of it meanwhile its next
    /// statement says.
    #[inline]
    pub(crate) fn resume_schema(&self, context: &Context) {
        if self.schema_waits.get() > 0 && context.txn.borrow().as_ref().is_some_and(|txn| txn.schema.is_withdrawn) {
            let _ = self.resume(context);
        }
    }

    /// Keeps others from changing the schema until the open transaction ends. If somebody else does that, waits for at most `timeout_ns`, or as long as it takes.
    ///
    /// Errors: `NoTransaction` without a transaction; as [`Database::get_for_update`].
    pub fn lock_schema(&self, context: &Context, timeout_ns: Option<u64>) -> Result<()> {
        self.enter(context)?;
        let schema = self.space(SCHEMA_ID)?;
        self.lock_key(context, &schema, schema_key(), &Shown::Schema, timeout_ns)
    }

    /// Gives the schema free again, unless the open transaction has changed it: for a statement that was refused.
    pub fn unlock_schema(&self, context: &Context) {
        if let Some(txn) = context.txn.borrow_mut().as_mut().filter(|txn| txn.system_statements() == 0) {
            txn.let_go(&schema_key());
        }
    }

    /// A statement about a system space changes the schema, or the space that its row names: if another transaction has changed it and is not over,
    /// waits for its end. What is returned keeps it for the statement; a transaction keeps it until its end.
    pub(crate) fn wait_for_schema(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Held>> {
        let list = match operation {
            Operation::Insert { tuple } | Operation::Replace { tuple } | Operation::Upsert { tuple, .. } => tuple,
            Operation::Update { key, .. } | Operation::Delete { key, .. } | Operation::Expire { key } => key,
        };
        let mut reader = Reader::new(list);
        let named = reader.read_array().ok().filter(|count| *count > 0).and_then(|_| reader.read_uint().ok());
        let named = named.and_then(|id| u32::try_from(id).ok());
        let (key, shown) = match named {
            Some(id) if id >= SESSION_ID_MIN => return Ok(None),
            _ if is_schema(space.id) => (schema_key(), Shown::Schema),
            Some(id) if space.id == TRUNCATE_ID => (definition_key(SpaceId(id)), Shown::Definition(SpaceId(id))),
            _ => return Ok(None),
        };
        self.wait_for_key(context, space, key, &shown)
    }

    /// True if another transaction than that of the context has changed the definition of a space and is not over.
    pub(crate) fn is_definition_taken(&self, context: &Context, space: &Space) -> bool {
        self.locks.definitions.get() > 0
            && self.locks.owner_of(&definition_key(space.id)).is_some_and(|owner| self.txn_id(context) != Some(owner))
    }

    /// True if another transaction than `own` has.
    pub(crate) fn is_definition_of_other(&self, space: &Space, own: u64) -> bool {
        self.locks.owner_of(&definition_key(space.id)).is_some_and(|owner| owner != own)
    }

    /// True if some transaction has changed the definition of a space and is not over.
    pub(crate) fn is_definition_locked(&self, space: &Space) -> bool {
        self.locks.definitions.get() > 0 && self.locks.has(&definition_key(space.id))
    }

    /// A statement is about to write to a space: if another transaction has changed its definition, waits for its end.
    ///
    /// Errors: as `wait_for_lock`.
    pub(crate) fn wait_for_definition(
        &self,
        context: &Context,
        space: &Rc<Space>,
        timeout_ns: Option<u64>,
    ) -> Result<()> {
        while self.is_definition_taken(context, space) {
            let owner = self.txn_id_or_fresh(context);
            let shown = Shown::Definition(space.id);
            // Others may write to it as well.
            self.pass(context, space, owner, &definition_key(space.id), &shown, timeout_ns)?;
            self.enter(context)?;
        }
        Ok(())
    }

    /// True if nobody else writes to a space until the open transaction ends: it has made it, or changed its definition.
    pub(crate) fn has_alone(&self, context: &Context, space: &Space) -> bool {
        let txn = context.txn.borrow();
        txn.as_ref().is_some_and(|txn| {
            txn.system_statements() > 0
                && (txn.schema.is_own(space.id)
                    || self.locks.definitions.get() > 0
                        && self.locks.owner_of(&definition_key(space.id)) == Some(txn.id()))
        })
    }

    /// A transaction has changed the schema: until its end nobody else changes it, and nobody else writes to the space whose definition it was.
    ///
    /// Errors: another one has changed the schema meanwhile; there are too many locks.
    pub(crate) fn hold_schema(&self, context: &Context, space: &Space, row: Option<&Tuple>) -> Result<()> {
        if context.origin.is_replay() || !self.is_in_explicit_txn(context) {
            return Ok(());
        }
        let id = first_number(row);
        if id.is_some_and(|id| id >= SESSION_ID_MIN) {
            return Ok(());
        }
        if is_schema(space.id) {
            self.hold_key(context, schema_key(), &Shown::Schema)?;
        }
        let is_definition = matches!(space.id, SPACE_ID | INDEX_ID | SPACE_SEQUENCE_ID | TRUNCATE_ID);
        match id.filter(|_| is_definition) {
            Some(id) if !self.is_own_space(context, SpaceId(id)) => {
                self.hold_key(context, definition_key(SpaceId(id)), &Shown::Definition(SpaceId(id)))
            }
            _ => Ok(()),
        }
    }

    /// True for a space that the open transaction has made.
    pub fn is_own_space(&self, context: &Context, id: SpaceId) -> bool {
        context.txn.borrow().as_ref().is_some_and(|txn| txn.schema.is_own(id))
    }

    fn hold_key(&self, context: &Context, key: (SpaceId, Rc<[u8]>), shown: &Shown) -> Result<()> {
        let Some(own) = self.txn_id(context) else { return Ok(()) };
        match self.locks.owner_of(&key) {
            Some(owner) if owner == own => Ok(()),
            Some(_) => {
                let what = "the schema is being changed by another transaction";
                Err(Error::new(ErrorCode::AlterSpace, &[&"the schema", &what]))
            }
            None => {
                let held = self.take_free(own, key, shown)?;
                if let Some(txn) = context.txn.borrow_mut().as_mut() {
                    txn.hold(held);
                }
                Ok(())
            }
        }
    }

    /// True for a sequence that the open transaction has made, which nobody else knows.
    pub(crate) fn is_own_sequence(&self, context: &Context, id: u32) -> bool {
        context.txn.borrow().as_ref().is_some_and(|txn| txn.schema.own_sequences.contains(&id))
    }

    /// The sequences that the open transaction has made.
    pub(crate) fn own_sequences(&self, context: &Context) -> Vec<u32> {
        context.txn.borrow().as_ref().map_or_else(Vec::new, |txn| txn.schema.own_sequences.clone())
    }
}
