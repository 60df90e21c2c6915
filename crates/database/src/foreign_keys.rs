//! Foreign keys: fields that name a row of another space, or of their own, by a unique key of it.
//!
//! ```text
//! child:  row comes, or names another --> look for the parent          FieldForeignKeyFailed, ComplexForeignKeyFailed
//! parent: row goes, or gets another key --> look for children --> refuse   ForeignKeyIntegrity
//!                                                            --> change them, then what names them, and so on
//! ```
//!
//! The look is taken where the write has its effect: when the row has changed and is recorded in the transaction of its statement. So a row may name
//! itself, and what happens to children is undone and logged together with the statement. Changes that follow from each other are a queue and no
//! recursion: how deep they go is a matter of a number ([`DEPTH_MAX`]) and not of the stack.
//!
//! What is refused only if it is so when the statement ends (NO ACTION, a row that names one which the same statement has yet to put in) is kept until
//! then. A statement is one write, or all that stands between the two ends of [`Database::as_one_statement`].
//!
//! Between transactions nothing is locked for this. A transaction that has never waited has met nobody. One that has looks at its foreign keys again
//! when it commits, with its changes in place and nobody else's: of two that would break a key between them the second to commit gets the
//! conflict. Locks of parents, as others have them, would have all who name one row wait for each other.

use crate::catalog::constraints::Link;
use crate::catalog::{Action, ForeignKeyDef, Space};
use crate::checks::shown_field;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::locks::Held;
use crate::session::Context;
use crate::statement::Operation;
use hashbrown::HashSet;
use runtime::fiber;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::rc::Rc;
use storage::{IndexDef, IndexKind, IteratorKind, Key, ScanRequest};
use tuple::msgpack::{self, Kind, Reader};
use tuple::{IndexId, KeyDef, Tuple};

/// How far changes of rows may follow from each other.
const DEPTH_MAX: u32 = 1000;
/// Rows that one change of a parent may change at once.
const CHILDREN_MAX: usize = 1_000_000;
/// Looks that are put off to the end of a statement.
pub(crate) const PENDING_MAX: usize = 100_000;
/// How long changes go on before others have a turn.
const SLICE_NS: u64 = 1_000_000;
/// How often a transaction that commits looks again because it had to wait meanwhile.
const LOOKS_MAX: u32 = 20;

/// A change of a parent that its children follow.
struct Cascade {
    link: Rc<Link>,
    old: Tuple,
    new: Option<Tuple>,
    depth: u32,
}

/// What has to be so when the statement ends, or the transaction.
#[derive(Clone)]
pub(crate) enum Pending {
    /// A row names another.
    Named { link: Rc<Link>, row: Tuple },
    /// Nobody names a row that is not there any more.
    Unnamed { link: Rc<Link>, old: Tuple },
}

impl Pending {
    /// The key that it is about.
    pub(crate) fn link(&self) -> &Rc<Link> {
        match self {
            Pending::Named { link, .. } | Pending::Unnamed { link, .. } => link,
        }
    }
}

/// What foreign keys have made of a statement so far.
#[derive(Default)]
pub(crate) struct ForeignWork {
    cascades: VecDeque<Cascade>,
    pending: Vec<Pending>,
    /// Somebody goes through the queue.
    is_driven: bool,
    /// How deep in changes that follow from each other the work is.
    depth: u32,
    /// Rows leave that come again under another key.
    is_moving: bool,
    /// Rows that others had locked, for a statement without a transaction of a client.
    held: Vec<Held>,
}

impl Database {
    // --- What the schema says ---

    /// The keys that name rows of others, and those that name rows of this space.
    pub(crate) fn links_of(&self, space: &Rc<Space>) -> (Vec<Rc<Link>>, Vec<Rc<Link>>) {
        let own = self.keys_in_force(space).into_iter().map(|key| Rc::new(self.link(space, key))).collect();
        let mut children = Vec::new();
        for id in self.catalog.children_of(space.id) {
            let Some(child) = self.catalog.space(id) else { continue };
            let keys = self.keys_in_force(&child).into_iter().filter(|key| key.space == space.id);
            children.extend(keys.map(|key| Rc::new(self.link(&child, key))));
        }
        (own, children)
    }

    fn keys_in_force(&self, space: &Space) -> Vec<ForeignKeyDef> {
        let mut keys = space.def().foreign_keys.clone();
        if let Some(pending) = &*space.pending.borrow() {
            keys.extend(pending.foreign_keys.iter().cloned());
        }
        keys
    }

    /// What a foreign key of a space means in the present schema.
    pub(crate) fn link(&self, child: &Rc<Space>, def: ForeignKeyDef) -> Link {
        let parent = self.catalog.space(def.space);
        let (child_def, parent_def) = (child.def(), parent.as_ref().map(|parent| parent.def()));
        let fields: Option<(Vec<u32>, Vec<u32>)> = parent_def.as_ref().and_then(|parent| {
            let pairs = def
                .pairs
                .iter()
                .map(|(local, foreign)| Some((local.resolve(&child_def.fields)?, foreign.resolve(&parent.fields)?)));
            pairs.collect::<Option<Vec<(u32, u32)>>>().map(|pairs| pairs.into_iter().unzip())
        });
        let (mut parent_index, mut child_index, mut in_order) = (None, None, fields.clone());
        if let (Some(parent), Some((local, foreign))) = (&parent, &fields) {
            let defs = parent.index_defs();
            let is_it = |def: &&IndexDef| {
                let parts = def.key_def.parts();
                def.is_unique
                    && parts.len() == foreign.len()
                    && parts.iter().all(|part| foreign.contains(&part.field_no))
                    && foreign.iter().all(|field| parts.iter().any(|part| part.field_no == *field))
            };
            if let Some(index) = defs.iter().find(is_it) {
                parent_index = Some(index.id);
                let ordered: Vec<u32> = index.key_def.parts().iter().map(|part| part.field_no).collect();
                let locals: Vec<u32> = ordered
                    .iter()
                    .filter_map(|field| foreign.iter().position(|other| other == field).map(|at| local[at]))
                    .collect();
                child_index = find_child_index(child, &locals, &index.key_def);
                in_order = Some((locals, ordered));
            }
        }
        Link { child: child.id, parent: def.space, parent_index, fields: in_order, child_index, def }
    }

    // --- A row has changed ---

    /// Several writes are one statement: what is so at its end counts. Errors: those of `work`, and those of keys that are broken then.
    pub fn as_one_statement<T, E: From<Error>>(
        &self,
        context: &Context,
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        if context.foreign.borrow().is_some() {
            return work();
        }
        *context.foreign.borrow_mut() = Some(Box::default());
        let done = work().and_then(|value| self.settle_foreign_keys(context).map(|()| value).map_err(E::from));
        *context.foreign.borrow_mut() = None;
        done
    }

    /// What a statement within `as_one_statement` has put off is looked at now, since something else is wrong with it. Errors: those of keys that are broken.
    pub fn look_at_foreign_keys_now(&self, context: &Context) -> Result<()> {
        self.settle_foreign_keys(context)
    }

    /// The rows that `work` removes come again under other keys, which [`Database::moved`] then reports: for a statement within `as_one_statement`.
    pub fn while_moving<T>(&self, context: &Context, work: impl FnOnce() -> T) -> T {
        let set = |is_moving: bool| {
            let mut foreign = context.foreign.borrow_mut();
            foreign.as_mut().is_some_and(|work| std::mem::replace(&mut work.is_moving, is_moving))
        };
        let before = set(true);
        let done = work();
        set(before);
        done
    }

    /// A row has another primary key now. Errors: it is named by others, who do not follow.
    pub fn moved(&self, context: &Context, space: &Rc<Space>, old: &[u8], new: &Tuple) -> Result<()> {
        if !space.has_constraints() {
            return Ok(());
        }
        let old = Tuple::new(&self.loose_rows, space.format().id(), old);
        let old = old.map_err(|error| self.storage_error(error.into(), space))?;
        self.as_one_statement(context, || {
            self.look_at_children(context, space, &old, Some(new))?;
            self.drive(context)
        })
    }

    /// A row of a space has changed, in a statement of the open transaction: keeps what foreign keys promise. May wait.
    ///
    /// Errors: `FieldForeignKeyFailed`, `ComplexForeignKeyFailed`, `ForeignKeyIntegrity`; those of changes that follow.
    pub(crate) fn keep_foreign_keys(
        &self,
        context: &Context,
        space: &Rc<Space>,
        old: Option<&Tuple>,
        new: Option<&Tuple>,
    ) -> Result<()> {
        let constraints = self.constraints_of(space);
        if constraints.parents.is_empty() && constraints.children.is_empty() || context.skips_foreign_keys.get() {
            return Ok(());
        }
        self.as_one_statement(context, || {
            if let Some(new) = new {
                for link in &constraints.parents {
                    self.look_at_parent(context, space, link, old, new)?;
                }
            }
            let is_moving = context.foreign.borrow().as_ref().is_some_and(|work| work.is_moving);
            if let Some(old) = old.filter(|_| !is_moving) {
                self.look_at_children(context, space, old, new)?;
            }
            self.drive(context)
        })
    }

    fn look_at_parent(
        &self,
        context: &Context,
        space: &Rc<Space>,
        link: &Rc<Link>,
        old: Option<&Tuple>,
        new: &Tuple,
    ) -> Result<()> {
        let Some((local, _)) = &link.fields else {
            return Err(parent_missing(space, link, "wrong local or foreign field name"));
        };
        if old.is_some_and(|old| local.iter().all(|field| old.field(*field) == new.field(*field))) {
            return Ok(());
        }
        match self.has_parent(context, space, link, new)? {
            true => Ok(()),
            // The same statement may put it in.
            false => self.put_off(context, Pending::Named { link: Rc::clone(link), row: new.clone() }, || {
                parent_missing(space, link, "foreign tuple was not found")
            }),
        }
    }

    /// Whether the row that another one names is there; true if it names none. May wait.
    ///
    /// Errors: it names what can be no key; there is no such index.
    pub(crate) fn has_parent(&self, context: &Context, child: &Rc<Space>, link: &Link, row: &Tuple) -> Result<bool> {
        let Some((local, _)) = &link.fields else {
            return Err(parent_missing(child, link, "wrong local or foreign field name"));
        };
        let Some(key) = key_of(row, local) else { return Ok(true) };
        let parent = self.catalog.space(link.parent);
        let (Some(parent), Some(index_id)) = (parent, link.parent_index) else {
            return Err(parent_missing(child, link, "foreign index was not found"));
        };
        let count = local.len() as u32;
        let fits = parent.index_def(index_id).is_some_and(|def| def.key_def.validate_key(&key, count, false).is_ok());
        if !fits {
            return Err(parent_missing(child, link, "wrong key type"));
        }
        let key = Key { parts: &key, part_count: count };
        context.see(self.written(&parent));
        Ok(self.until_ready(context, || self.row_of_key(context, &parent, index_id, key))?.is_some())
    }

    fn look_at_children(&self, context: &Context, space: &Rc<Space>, old: &Tuple, new: Option<&Tuple>) -> Result<()> {
        let constraints = self.constraints_of(space);
        for link in &constraints.children {
            if !self.loses_key(space, link, old, new) {
                continue;
            }
            let action = if new.is_some() { link.def.on_update } else { link.def.on_delete };
            if matches!(action, Action::Cascade | Action::SetNull | Action::SetDefault) {
                let cascade = |depth| Cascade { link: Rc::clone(link), old: old.clone(), new: new.cloned(), depth };
                if let Some(work) = context.foreign.borrow_mut().as_mut() {
                    let depth = work.depth + 1;
                    work.cascades.push_back(cascade(depth));
                }
                continue;
            }
            let is_named = !self.children(context, link, old, 1)?.is_empty();
            if is_named && action == Action::Restrict {
                return Err(self.is_referenced(space, link));
            }
            if is_named {
                let pending = Pending::Unnamed { link: Rc::clone(link), old: old.clone() };
                self.put_off(context, pending, || self.is_referenced(space, link))?;
            }
        }
        Ok(())
    }

    /// True if a row had a key that can be named and that is not there any more.
    fn loses_key(&self, parent: &Space, link: &Link, old: &Tuple, new: Option<&Tuple>) -> bool {
        let Some((_, foreign)) = &link.fields else { return false };
        if key_of(old, foreign).is_none() {
            return false;
        }
        let Some(new) = new else { return true };
        match link.parent_index.and_then(|id| parent.index_def(id)) {
            Some(index) => index.key_def.compare_rows(old.data(), new.data()).is_ne(),
            None => foreign.iter().any(|field| old.field(*field) != new.field(*field)),
        }
    }

    fn put_off(&self, context: &Context, pending: Pending, error: impl FnOnce() -> Error) -> Result<()> {
        match context.foreign.borrow_mut().as_mut() {
            Some(work) if work.pending.len() < PENDING_MAX => work.pending.push(pending),
            _ => return Err(error()),
        }
        Ok(())
    }

    // --- Children ---

    /// Rows that name a row by its key, as far as `limit`. May wait, and gives others a turn if it has to look at many.
    fn children(&self, context: &Context, link: &Link, old: &Tuple, limit: usize) -> Result<Vec<Tuple>> {
        let (Some(child), Some((local, foreign))) = (self.catalog.space(link.child), &link.fields) else {
            return Ok(Vec::new());
        };
        let Some(parent) = self.catalog.space(link.parent) else { return Ok(Vec::new()) };
        let Some(order) = link.parent_index.and_then(|id| parent.index_def(id).map(|def| Rc::clone(&def.key_def)))
        else {
            return Ok(Vec::new());
        };
        let mut key = Vec::new();
        let request = match &link.child_index {
            Some((index_id, positions)) => {
                for position in positions {
                    key.extend_from_slice(old.field(foreign[*position]).unwrap_or(&[0xc0]));
                }
                let count = positions.len() as u32;
                let fits =
                    child.index_def(*index_id).is_some_and(|def| def.key_def.validate_key(&key, count, true).is_ok());
                if !fits {
                    // No row can have it.
                    return Ok(Vec::new());
                }
                ScanRequest::new(*index_id, IteratorKind::Eq, Key { parts: &key, part_count: count })
            }
            None if child.has_index(IndexId::PRIMARY) => {
                ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY)
            }
            None => return Ok(Vec::new()),
        };
        // Whoever declared the key had the right to look.
        let acting = context.act_as(crate::session::ADMIN, &self.catalog);
        let found = self.collect_children(context, &child, &request, &order, local, old, limit);
        context.act_again(acting);
        found
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one look")]
    fn collect_children(
        &self,
        context: &Context,
        child: &Rc<Space>,
        request: &ScanRequest<'_>,
        order: &KeyDef,
        local: &[u32],
        old: &Tuple,
        limit: usize,
    ) -> Result<Vec<Tuple>> {
        let mut cursor = self.cursor(context, child, request)?;
        let mut found = Vec::new();
        let mut slice = Slice::begin();
        while let Some(row) = cursor.next(self, context)? {
            if names(&row, local, order, old) {
                if found.len() >= CHILDREN_MAX {
                    let what = format!("rows of space '{}' that name one row", child.name());
                    return Err(Error::new(ErrorCode::MemoryIssue, &[&CHILDREN_MAX, &"a cascade", &what]));
                }
                found.push(row);
                if found.len() >= limit {
                    break;
                }
            }
            self.give_turn(context, &mut slice)?;
        }
        Ok(found)
    }

    /// Lets others have a turn if the slice is over. May wait. Errors: as `resume`; the fiber is cancelled.
    fn give_turn(&self, context: &Context, slice: &mut Slice) -> Result<()> {
        if !slice.is_over() {
            return Ok(());
        }
        self.suspend(context);
        let woken = fiber::yield_now();
        *slice = Slice::begin();
        if woken == fiber::Wake::Cancelled {
            return Err(Error::new(ErrorCode::ProcLua, &[&"fiber is cancelled"]));
        }
        self.resume(context)
    }

    /// Goes through the queue, unless somebody does already. May wait.
    fn drive(&self, context: &Context) -> Result<()> {
        let is_mine = context.foreign.borrow_mut().as_mut().is_some_and(|work| {
            let is_mine = !work.is_driven && !work.cascades.is_empty();
            work.is_driven |= is_mine;
            is_mine
        });
        if !is_mine {
            return Ok(());
        }
        let mut slice = Slice::begin();
        let done = loop {
            let next = context.foreign.borrow_mut().as_mut().and_then(|work| work.cascades.pop_front());
            let Some(cascade) = next else { break Ok(()) };
            if let Err(error) = self.follow(context, &cascade, &mut slice) {
                break Err(error);
            }
        };
        if let Some(work) = context.foreign.borrow_mut().as_mut() {
            (work.is_driven, work.depth) = (false, 0);
            work.cascades.clear();
        }
        done
    }

    /// Changes the rows that name one which has gone or has another key.
    fn follow(&self, context: &Context, cascade: &Cascade, slice: &mut Slice) -> Result<()> {
        let Cascade { link, old, new, depth } = cascade;
        if *depth > DEPTH_MAX {
            let why = format!("changes follow from each other more than {DEPTH_MAX} times");
            let [child, space] = [link.child, link.parent]
                .map(|id| self.catalog.space(id).map_or_else(|| id.to_string(), |space| space.name()));
            return Err(Error::new(ErrorCode::ForeignKeyIntegrity, &[&link.def.name, &why])
                .with("space", space)
                .with("name", &link.def.name)
                .with("child", child)
                .with("depth", DEPTH_MAX));
        }
        let Some(child) = self.catalog.space(link.child) else { return Ok(()) };
        let found = self.children(context, link, old, usize::MAX)?;
        let acting = context.act_as(child.owner(), &self.catalog);
        if let Some(work) = context.foreign.borrow_mut().as_mut() {
            work.depth = *depth;
        }
        let done = found.iter().try_for_each(|row| {
            self.give_turn(context, slice)?;
            self.change_child(context, &child, link, (old, new.as_ref()), row)
        });
        context.act_again(acting);
        done
    }

    /// Changes one of them, if it is still there and still names it.
    fn change_child(
        &self,
        context: &Context,
        child: &Rc<Space>,
        link: &Link,
        (old, new): (&Tuple, Option<&Tuple>),
        row: &Tuple,
    ) -> Result<()> {
        let Some((local, foreign)) = &link.fields else { return Ok(()) };
        let Some(primary) = child.index_def(IndexId::PRIMARY).map(|def| Rc::clone(&def.key_def)) else {
            return Ok(());
        };
        let mut key = Vec::new();
        primary.extract_key(row.data(), &mut key);
        let delete = Operation::Delete { index_id: IndexId::PRIMARY, key: &key };
        if self.forgets_reads(context) && self.is_in_explicit_txn(context) {
            // Others may change it until the transaction ends, and it would meet them.
            let acting = context.act_as(crate::session::ADMIN, &self.catalog);
            let locked = self.get_for_update(context, child, IndexId::PRIMARY, Key::decode(&key)?, None);
            context.act_again(acting);
            locked?;
        } else if self.locks.are_any()
            && let Some(held) = self.wait_for_lock(context, child, delete)?
            && let Some(work) = context.foreign.borrow_mut().as_mut()
        {
            work.held.push(held);
        }
        let decoded = Key::decode(&key)?;
        let present = self.until_ready(context, || self.row_of_key(context, child, IndexId::PRIMARY, decoded))?;
        let order = self.catalog.space(link.parent).and_then(|parent| {
            link.parent_index.and_then(|id| parent.index_def(id).map(|def| Rc::clone(&def.key_def)))
        });
        let Some((present, order)) = present.zip(order) else { return Ok(()) };
        if !names(&present, local, &order, old) {
            return Ok(());
        }
        let action = if new.is_some() { link.def.on_update } else { link.def.on_delete };
        let mut values: Vec<Vec<u8>> = Vec::with_capacity(local.len());
        for (at, field) in local.iter().enumerate() {
            values.push(match (action, new) {
                (Action::Cascade, None) => return self.execute_in_txn(context, child, delete, true).map(drop),
                (Action::Cascade, Some(new)) => new.field(foreign[at]).unwrap_or(&[0xc0]).to_vec(),
                (Action::SetDefault, _) => match self.expressions() {
                    Some(expressions) => expressions.default_value(self, child, *field)?,
                    None => vec![0xc0],
                },
                _ => vec![0xc0],
            });
        }
        let changed = with_fields(present.data(), local, &values);
        let mut new_key = Vec::new();
        child.format().check(&changed).map_err(|error| {
            let error = self.tuple_error(error, child);
            // Null where none may be.
            if values.contains(&vec![0xc0]) { error.with("set_null_by", &link.def.name) } else { error }
        })?;
        primary.extract_key(&changed, &mut new_key);
        if primary.compare_rows(present.data(), &changed) == Ordering::Equal {
            return self.execute_in_txn(context, child, Operation::Replace { tuple: &changed }, true).map(drop);
        }
        // It is another row by its own key: those who name it follow.
        self.while_moving(context, || self.execute_in_txn(context, child, delete, true))?;
        let moved = self.execute_in_txn(context, child, Operation::Insert { tuple: &changed }, true)?;
        match moved {
            Some(moved) => self.look_at_children(context, child, &present, Some(&moved)),
            None => Ok(()),
        }
    }

    /// The statement ends: what was put off is looked at. May wait.
    fn settle_foreign_keys(&self, context: &Context) -> Result<()> {
        let take = || context.foreign.borrow_mut().as_mut().map(|work| std::mem::take(&mut work.pending));
        let mut slice = Slice::begin();
        for pending in take().unwrap_or_default() {
            self.give_turn(context, &mut slice)?;
            if let Some(pending) = self.defer(context, pending) {
                self.look_at_pending(context, &pending)?;
            }
        }
        Ok(())
    }

    /// What was put off has to be so now. May wait. Errors: it is not.
    pub(crate) fn look_at_pending(&self, context: &Context, pending: &Pending) -> Result<()> {
        match pending {
            Pending::Named { link, row } => {
                if let Some((child, row)) = self.still_names(context, link, row)?
                    && !self.has_parent(context, &child, link, &row)?
                {
                    return Err(parent_missing(&child, link, "foreign tuple was not found"));
                }
            }
            Pending::Unnamed { link, old } => {
                if let Some(parent) = self.catalog.space(link.parent)
                    && self.is_broken(context, &parent, link, old)?
                {
                    return Err(self.is_referenced(&parent, link));
                }
            }
        }
        Ok(())
    }

    /// The row that has the key of another one now, if it names what that one did.
    fn still_names(&self, context: &Context, link: &Link, row: &Tuple) -> Result<Option<(Rc<Space>, Tuple)>> {
        let (Some(child), Some((local, _))) = (self.catalog.space(link.child), &link.fields) else { return Ok(None) };
        let present = self.until_ready(context, || self.same_key(context, &child, row.data()))?;
        let present = present.filter(|present| local.iter().all(|field| present.field(*field) == row.field(*field)));
        Ok(present.map(|present| (child, present)))
    }

    /// True if the key that a row had is not there, and somebody names it.
    fn is_broken(&self, context: &Context, parent: &Rc<Space>, link: &Link, old: &Tuple) -> Result<bool> {
        let (Some((_, foreign)), Some(index_id)) = (&link.fields, link.parent_index) else { return Ok(false) };
        let Some(key) = key_of(old, foreign) else { return Ok(false) };
        let key = Key { parts: &key, part_count: foreign.len() as u32 };
        let present = self.until_ready(context, || self.row_of_key(context, parent, index_id, key))?;
        Ok(present.is_none() && !self.children(context, link, old, 1)?.is_empty())
    }

    /// A row is named that would go.
    fn is_referenced(&self, parent: &Space, link: &Link) -> Error {
        let child = self.catalog.space(link.child).map_or_else(|| link.child.to_string(), |child| child.name());
        Error::new(ErrorCode::ForeignKeyIntegrity, &[&link.def.name, &"tuple is referenced"])
            .with("space", parent.name())
            .with("name", &link.def.name)
            .with("child", child)
    }

    // --- A transaction commits ---

    /// Looks again at the foreign keys that the open transaction has to do with, if others have had a turn since: its changes are in place. May wait.
    ///
    /// Errors: there is no fiber that could wait. A key that is broken now aborts the transaction with a conflict.
    pub(crate) fn look_at_foreign_keys_again(&self, context: &Context) -> Result<()> {
        if context.skips_foreign_keys.get() {
            return Ok(());
        }
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::ForgetForeignKeys) {
            return Ok(());
        }
        for _ in 0..LOOKS_MAX {
            let changes = {
                let mut txn = context.txn.borrow_mut();
                match txn.as_mut() {
                    Some(txn) if txn.has_waited && !txn.is_aborted() => {
                        txn.has_waited = false;
                        let statements = txn.statements().iter().filter(|statement| statement.space.has_constraints());
                        statements
                            .map(|one| (Rc::clone(&one.space), one.change.old.clone(), one.change.new.clone()))
                            .collect()
                    }
                    _ => Vec::new(),
                }
            };
            if changes.is_empty() {
                return Ok(());
            }
            let looked = self.as_one_statement(context, || {
                changes
                    .iter()
                    .try_for_each(|(space, old, new)| self.look_again(context, space, old.as_ref(), new.as_ref()))
            });
            match looked {
                Ok(()) => {}
                Err(error) if error.is_needs_fiber() => {
                    if let Some(txn) = context.txn.borrow_mut().as_mut() {
                        txn.has_waited = true;
                    }
                    return Err(error);
                }
                Err(error) => {
                    tracing::debug!("a transaction is given up: {error}");
                    self.abort_txn(context, ErrorCode::TransactionConflict);
                    return Ok(());
                }
            }
            // The look may have waited for the disk.
            let _ = self.bring_in_place(context);
        }
        let has_waited = context.txn.borrow().as_ref().is_some_and(|txn| txn.has_waited);
        if has_waited {
            self.abort_txn(context, ErrorCode::TransactionConflict);
        }
        Ok(())
    }

    fn look_again(&self, context: &Context, space: &Rc<Space>, old: Option<&Tuple>, new: Option<&Tuple>) -> Result<()> {
        let constraints = self.constraints_of(space);
        for link in constraints.parents.iter().filter(|_| new.is_some()) {
            let Some(row) = new else { continue };
            if let Some((child, row)) = self.still_names(context, link, row)?
                && !self.has_parent(context, &child, link, &row)?
            {
                return Err(parent_missing(&child, link, "foreign tuple was not found"));
            }
        }
        for link in &constraints.children {
            if let Some(old) = old.filter(|old| self.loses_key(space, link, old, new))
                && self.is_broken(context, space, link, old)?
            {
                return Err(self.is_referenced(space, link));
            }
        }
        Ok(())
    }

    /// Errors: `AlterSpace` if keys of other spaces name rows of this one, or if the space is `own` too.
    pub(crate) fn check_not_referenced(&self, space: &Space, counts_own: bool, counts_empty: bool) -> Result<()> {
        let is_referenced = self.catalog.children_of(space.id).any(|child| {
            (child != space.id || counts_own)
                && (counts_empty || self.catalog.space(child).is_some_and(|child| !child.rows.is_empty()))
        });
        match is_referenced {
            true => Err(Error::new(ErrorCode::AlterSpace, &[&space.name(), &"space is referenced by foreign key"])),
            false => Ok(()),
        }
    }
}

/// When others have a turn next.
struct Slice {
    until_ns: u64,
    steps: u32,
}

impl Slice {
    /// Steps between two looks at the clock.
    const STEPS: u32 = 32;

    fn begin() -> Self {
        Slice { until_ns: fiber::now_ns().saturating_add(SLICE_NS), steps: 0 }
    }

    fn is_over(&mut self) -> bool {
        self.steps += 1;
        if self.steps < Self::STEPS || fiber::current().is_none() {
            return false;
        }
        self.steps = 0;
        fiber::now_ns() >= self.until_ns
    }
}

/// The values of fields, one after the other; none if one of them is absent or nil: then the row names nothing.
fn key_of(row: &Tuple, fields: &[u32]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for field in fields {
        let value = row.field(*field)?;
        if Reader::new(value).kind().ok()? == Kind::Nil {
            return None;
        }
        key.extend_from_slice(value);
    }
    Some(key)
}

/// True if a row names another one by its key.
fn names(row: &Tuple, local: &[u32], order: &KeyDef, old: &Tuple) -> bool {
    let Some(key) = key_of(row, local) else { return false };
    let count = local.len() as u32;
    order.validate_key(&key, count, false).is_ok() && order.compare_row_key(old.data(), &key, count).is_eq()
}

/// The row with other values in some fields.
fn with_fields(row: &[u8], fields: &[u32], values: &[Vec<u8>]) -> Vec<u8> {
    let mut reader = Reader::new(row);
    let count = reader.read_array().unwrap_or(0);
    let length = fields.iter().map(|field| field + 1).max().unwrap_or(0).max(count);
    let mut changed = Vec::with_capacity(row.len() + 16);
    msgpack::encode_array(&mut changed, length);
    for number in 0..length {
        let present = if number < count { reader.read_value().ok() } else { None };
        match fields.iter().position(|field| *field == number) {
            Some(at) => changed.extend_from_slice(&values[at]),
            None => changed.extend_from_slice(present.unwrap_or(&[0xc0])),
        }
    }
    changed
}

/// An index by whose first parts rows are found that name a row, compared as the parent's index does.
fn find_child_index(child: &Space, local: &[u32], order: &KeyDef) -> Option<(IndexId, Vec<usize>)> {
    let defs = child.index_defs();
    defs.iter().find_map(|def| {
        let parts = def.key_def.parts();
        let is_usable = match def.kind {
            IndexKind::Tree => parts.len() >= local.len(),
            IndexKind::Hash => parts.len() == local.len(),
        };
        if !is_usable {
            return None;
        }
        let mut seen = HashSet::new();
        let positions = parts.iter().take(local.len()).map(|part| {
            let at = local.iter().position(|field| *field == part.field_no)?;
            let collation = |part: &tuple::KeyPart| {
                part.collation.as_ref().filter(|collation| !collation.is_binary()).map(|collation| collation.id())
            };
            let is_alike = order.parts().get(at).is_some_and(|other| collation(other) == collation(part));
            (is_alike && seen.insert(at)).then_some(at)
        });
        positions.collect::<Option<Vec<usize>>>().map(|positions| (def.id, positions))
    })
}

/// A row names none that is there.
pub(crate) fn parent_missing(child: &Space, link: &Link, why: &str) -> Error {
    let error = match link.def.field {
        Some(field) => {
            Error::new(ErrorCode::FieldForeignKeyFailed, &[&link.def.name, &shown_field(child, field), &why])
        }
        None => Error::new(ErrorCode::ComplexForeignKeyFailed, &[&link.def.name, &why]),
    };
    error.with("space", child.name()).with("name", &link.def.name)
}
