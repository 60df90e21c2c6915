//! Constraints that come to a space: whether they may be, and whether the rows that are there satisfy them.
//!
//! Rows are looked at before the statement that makes the change, in slices between which everybody else has a turn, as for an index (`build.rs`). What is
//! written meanwhile has to heed the new constraints already, so the look and the writes together have seen every row.

use super::build::{ROWS_IN_TXN_MAX, being_modified};
use crate::access::{Privileges, denied};
use crate::catalog::constraints::{Check, Link};
use crate::catalog::{PendingConstraints, Space, SpaceDef};
use crate::checks::EXPRESSION_LANGUAGE;
use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use crate::foreign_keys::parent_missing;
use crate::session::Context;
use crate::session_spaces::is_of_session;
use crate::time_share::{TimeShare, give_turn};
use runtime::fiber;
use std::rc::Rc;
use storage::{IteratorKind, Key, ScanRequest};
use tuple::{IndexId, KeyPart, Tuple};

/// Rows between two looks at the clock.
const STEP_ROWS: usize = 32;
/// Rows of a space that are looked at in one go.
const ROWS_AT_ONCE_MAX: usize = 20_000;

/// Constraints that writes heed while rows are looked at for them, and until the statement that makes them has come to its end.
pub(crate) struct Pending<'a> {
    database: &'a Database,
    space: Rc<Space>,
    constraints: Rc<PendingConstraints>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        *self.space.pending.borrow_mut() = None;
        self.database.catalog.remove_references(self.space.id, &self.constraints.foreign_keys);
    }
}

/// The constraints that a definition has and the present one does not.
fn new_constraints(space: Option<&Rc<Space>>, def: &SpaceDef) -> PendingConstraints {
    let present = space.map(|space| space.def());
    let is_new_check = |check: &&crate::catalog::CheckDef| {
        present.as_ref().is_none_or(|present| {
            !present.checks.iter().any(|known| known.function_id == check.function_id && known.field == check.field)
        })
    };
    let is_new_key = |key: &&crate::catalog::ForeignKeyDef| {
        present.as_ref().is_none_or(|present| {
            !present.foreign_keys.iter().any(|known| known.space == key.space && known.pairs == key.pairs)
        })
    };
    PendingConstraints {
        checks: def.checks.iter().filter(is_new_check).cloned().collect(),
        foreign_keys: def.foreign_keys.iter().filter(is_new_key).cloned().collect(),
    }
}

/// Whether the constraints of a definition may be. `space`: what is to be altered.
///
/// Errors: `CreateConstraint`, `CreateForeignKey`, `AlterSpace`, `AccessDenied`.
pub(super) fn check_def(
    database: &Database,
    context: &Context,
    space: Option<&Rc<Space>>,
    def: &SpaceDef,
) -> Result<()> {
    if context.origin.is_replay() {
        return Ok(());
    }
    let new = new_constraints(space, def);
    for check in &new.checks {
        let refuse =
            |why: &str| Err(Error::new(ErrorCode::CreateConstraint, &[&check.name, &def.name, &why.to_string()]));
        let Some(function) = database.catalog.function(check.function_id) else {
            return refuse("constraint function was not found");
        };
        match function.language.as_str() {
            "LUA" if function.body.is_empty() => return refuse("constraint lua function must have persistent body"),
            "LUA" | EXPRESSION_LANGUAGE => {}
            other => return refuse(&format!("constraint function can not be of language {other}")),
        }
        if !function.is_deterministic {
            return refuse("constraint function must be deterministic");
        }
        if is_of_session(function.id, &function.name) && !def.is_session {
            return refuse("constraint function is of a temporary table");
        }
    }
    for key in &new.foreign_keys {
        let refuse = |why: &str| Err(Error::new(ErrorCode::CreateForeignKey, &[&key.name, &def.name, &why]));
        if key.space == def.id {
            if def.ttl.is_some() || def.memory_limit.is_some_and(|limit| limit.evicts) {
                return refuse("rows that expire or are evicted can not be referenced");
            }
            continue;
        }
        let Some(parent) = database.catalog.space(key.space) else {
            return refuse("foreign space was not found");
        };
        let parent_def = parent.def();
        if !parent.has_rows() || parent.is_system() {
            return refuse("foreign space keeps no rows of clients");
        }
        if parent_def.is_temporary && !def.is_temporary {
            return refuse("foreign key from non-temporary space can't refer to temporary space");
        }
        if parent_def.group_id == 1 && def.group_id != 1 {
            return refuse("foreign key from non-local space can't refer to local space");
        }
        if parent_def.ttl.is_some() || parent_def.memory_limit.is_some_and(|limit| limit.evicts) {
            return refuse("rows that expire or are evicted can not be referenced");
        }
        // Who declares it binds those who write there, and learns which keys there are.
        let user = context.user(&database.catalog);
        let rights = context.rights(&database.catalog);
        let wanted = Privileges::READ | Privileges::WRITE;
        let granted = rights.on(crate::access::ObjectType::Space, parent.id.0);
        if granted & wanted != wanted && parent.owner() != user {
            let kind = crate::access::ObjectType::Space;
            return Err(denied(wanted & !granted, kind, &parent_def.name, &database.catalog.user_name(user)));
        }
    }
    if let Some(space) = space
        && space.has_constraints()
    {
        check_references(database, space, def)?;
    }
    Ok(())
}

/// What names rows of a space goes on to mean something. Errors: `AlterSpace`.
fn check_references(database: &Database, space: &Rc<Space>, def: &SpaceDef) -> Result<()> {
    let refuse = |why: &str| Err(Error::new(ErrorCode::AlterSpace, &[&def.name, &why]));
    let before = space.def();
    let expires = def.ttl.is_some() || def.memory_limit.is_some_and(|limit| limit.evicts);
    for id in database.catalog.children_of(space.id) {
        if expires {
            return refuse("rows that are referenced by foreign key can not expire or be evicted");
        }
        let Some(child) = database.catalog.space(id).filter(|child| child.id != space.id) else { continue };
        for key in child.def().foreign_keys.iter().filter(|key| key.space == space.id) {
            let is_lost = |(_, foreign): &(_, crate::catalog::FieldRef)| {
                foreign.resolve(&before.fields) != foreign.resolve(&def.fields)
            };
            if key.pairs.iter().any(is_lost) {
                return refuse("a field is referenced by foreign key");
            }
        }
    }
    Ok(())
}

/// Errors: `AlterSpace` if foreign keys name rows by an index that is to go, or to be another.
pub(super) fn check_index_unused(
    database: &Database,
    space: &Rc<Space>,
    id: IndexId,
    becomes: Option<(&[KeyPart], bool)>,
) -> Result<()> {
    if !space.has_constraints() {
        return Ok(());
    }
    let constraints = database.constraints_of(space);
    let fields = |parts: &[KeyPart]| {
        let mut fields: Vec<u32> = parts.iter().map(|part| part.field_no).collect();
        fields.sort_unstable();
        fields
    };
    let before = space.index_def(id).map(|def| fields(def.key_def.parts()));
    let keeps = becomes.is_some_and(|(parts, is_unique)| is_unique && before == Some(fields(parts)));
    // A space that goes takes its own keys with it.
    let is_used = |link: &Rc<Link>| link.parent_index == Some(id) && (link.child != space.id || becomes.is_some());
    if !keeps && constraints.children.iter().any(is_used) {
        return Err(Error::new(ErrorCode::AlterSpace, &[&space.name(), &"space is referenced by foreign key"]));
    }
    Ok(())
}

/// The look at rows that the statement takes itself, if it was not taken ahead.
///
/// Errors: those of a row that does not satisfy a constraint; `MultistatementTransaction` if there are too many rows for one go.
pub(super) fn check_rows(
    database: &Database,
    context: &Context,
    space: &Rc<Space>,
    def: &SpaceDef,
    row: &Tuple,
) -> Result<()> {
    if context.origin.is_replay() || context.trusts_rows.get() {
        return Ok(());
    }
    let is_checked = database.ready.checked_constraints.take().is_some_and(|checked| checked.data() == row.data());
    if space.pending.borrow().is_some() && !is_checked {
        return Err(being_modified(space));
    }
    let mut new = new_constraints(Some(space), def);
    if context.skips_foreign_keys.get() {
        new.foreign_keys.clear();
    }
    if is_checked || new.checks.is_empty() && new.foreign_keys.is_empty() {
        return Ok(());
    }
    let is_serving = database.state() == State::Running && fiber::current().is_some();
    let at_once_max = if context.looks_at_once.get() { ROWS_IN_TXN_MAX } else { ROWS_AT_ONCE_MAX };
    if is_serving && space.rows.len() > at_once_max as u64 {
        return Err(Error::new(ErrorCode::MultistatementTransaction, &[&"a look at rows for constraints"]));
    }
    if space.rows.is_empty() || !space.has_index(IndexId::PRIMARY) {
        return Ok(());
    }
    let (checks, links) = database.meaning_of(space, &new);
    let all = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
    let acting = context.act_as(crate::session::ADMIN, &database.catalog);
    let rows = database.select_tuples(context, space, &all);
    context.act_again(acting);
    rows?.iter().try_for_each(|row| database.look_at_row(context, space, (&checks, &links), row))
}

/// Errors: an expression among the checks of a space means nothing there.
pub(super) fn check_meaning(database: &Database, context: &Context, space: &Rc<Space>) -> Result<()> {
    let def = space.def();
    if context.origin.is_replay() || def.checks.is_empty() && def.generated.is_empty() && !def.has_domains {
        return Ok(());
    }
    drop(def);
    let constraints = database.constraints_of(space);
    if let Some(Err(error)) = &constraints.generated {
        return Err(error.clone());
    }
    if let Some(Err(error)) = &constraints.domains {
        return Err(error.clone());
    }
    check_compiled(&constraints.checks)
}

fn check_compiled(checks: &[Check]) -> Result<()> {
    for check in checks {
        if let crate::catalog::constraints::CheckKind::Expression(Err(error)) = &check.kind {
            return Err(Error::raw(error.code(), error.body().kind, error.message().to_string()));
        }
    }
    Ok(())
}

impl Database {
    /// Looks whether all rows satisfy the constraints that an altered definition adds. From now on until what is returned is dropped writes heed them. Yields.
    ///
    /// Errors: those of a row that does not satisfy one; the space is being modified.
    pub(super) fn look_at_constraints(
        &self,
        context: &Context,
        space: &Rc<Space>,
        row: &Tuple,
    ) -> Result<Option<Pending<'_>>> {
        let def = super::space::parse_space(self, context.origin, row.data(), ErrorCode::AlterSpace)?;
        let mut new = new_constraints(Some(space), &def);
        if context.skips_foreign_keys.get() {
            new.foreign_keys.clear();
        }
        let has_none = new.checks.is_empty() && new.foreign_keys.is_empty();
        if has_none || space.rows.is_empty() || context.trusts_rows.get() {
            return Ok(None);
        }
        if space.is_being_changed() {
            return Err(being_modified(space));
        }
        let constraints = Rc::new(new);
        *space.pending.borrow_mut() = Some(Rc::clone(&constraints));
        self.catalog.add_references(space.id, &constraints.foreign_keys);
        let pending = Pending { database: self, space: Rc::clone(space), constraints };
        // What a suspended transaction has written before has heeded nothing.
        self.doom_readers_of_space(space.id);
        let looked = self.apart(context, || self.look_at_all_rows(context, space, &pending.constraints));
        looked.inspect_err(|error| tracing::info!("a change of space '{}' is given up: {error}", space.name()))?;
        *self.ready.checked_constraints.borrow_mut() = Some(row.clone());
        Ok(Some(pending))
    }

    fn meaning_of(&self, space: &Rc<Space>, new: &PendingConstraints) -> (Vec<Check>, Vec<Link>) {
        let checks = new.checks.iter().map(|def| self.check_of(space, def)).collect();
        let links = new.foreign_keys.iter().map(|def| self.link(space, def.clone())).collect();
        (checks, links)
    }

    fn look_at_row(
        &self,
        context: &Context,
        space: &Rc<Space>,
        (checks, links): (&[Check], &[Link]),
        row: &Tuple,
    ) -> Result<()> {
        checks.iter().try_for_each(|check| self.ask(space, check, row))?;
        for link in links {
            if !self.has_parent(context, space, link, row)? {
                return Err(parent_missing(space, link, "foreign tuple was not found"));
            }
        }
        Ok(())
    }

    /// For whoever asks for it, whose time is bounded.
    fn look_at_all_rows(&self, asking: &Context, space: &Rc<Space>, new: &PendingConstraints) -> Result<()> {
        let context = self.admin_context();
        let (checks, links) = self.meaning_of(space, new);
        check_compiled(&checks)?;
        let all = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
        let mut cursor = self.cursor(&context, space, &all)?;
        let clock = &*self.environment.clock;
        let share = TimeShare::default();
        let step_rows = STEP_ROWS.min(self.slice_rows());
        let step = |cursor: &mut crate::cursor::Cursor| {
            for _ in 0..step_rows {
                let Some(row) = cursor.next(self, &context)? else { return Ok(false) };
                self.look_at_row(&context, space, (&checks, &links), &row)?;
            }
            Ok(true)
        };
        let done = loop {
            match share.run(clock, self.slice_rows() / step_rows, || step(&mut cursor)) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            // Not before the next turn of the loop.
            if let Err(error) = give_turn(asking, 1).and_then(|()| self.check_writable()) {
                break Err(error);
            }
            if space.is_dropped.get() {
                break Err(being_modified(space));
            }
        };
        self.close_session(&context.session);
        done
    }
}
