//! What exists: spaces, users, functions, sequences, collations, each found by id and by name.
//!
//! The catalog mirrors the rows of the system spaces; `alter` keeps it so. Everything is reachable by `&self`: the
//! catalog belongs to the transaction thread and borrows last no longer than a look-up.

pub(crate) mod constraints;
mod function;
mod sequence;
mod space;
mod ttl;
mod user;

pub use constraints::{Action, CheckDef, Deferral, FieldRef, ForeignKeyDef, GeneratedDef};
pub use function::Function;
pub use sequence::{Sequence, SequenceDef};
pub(crate) use space::{Granted, PendingConstraints};
pub use space::{IndexInfo, MemoryLimit, ReplaceTrigger, Space, SpaceDef, SpaceKind, SpaceSequence};
pub use ttl::{Ttl, TtlUnit};
pub use user::{User, UserKind};

use crate::access::{Grant, ObjectType, Privileges, Rights};
use crate::session::{ADMIN, PUBLIC, UserId};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use tuple::{Collation, Format, SpaceId};

/// An object whose definition has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaObject {
    /// A space, its format, its indexes or the sequence of its rows; by number.
    Space(SpaceId),
    /// A sequence, by number.
    Sequence(u32),
    /// A function, by number.
    Function(u32),
    /// A collation.
    Collation,
}

/// Grants by grantee and object.
type Grants = BTreeMap<(UserId, ObjectType, Option<u32>), Grant>;

/// Changes that are kept in mind, for those who follow the schema step by step.
const CHANGES_MAX: usize = 1024;

/// The catalog.
pub struct Catalog {
    /// Ordered, because checkpoints write spaces in the order of their ids.
    spaces: RefCell<BTreeMap<SpaceId, Rc<Space>>>,
    space_names: RefCell<HashMap<String, SpaceId>>,
    /// The last space looked up by id: requests come in runs.
    recent_space: RefCell<Option<Rc<Space>>>,
    users: RefCell<BTreeMap<UserId, Rc<User>>>,
    /// By grantee and object.
    grants: RefCell<Grants>,
    /// How many grants there are on an object.
    granted_objects: RefCell<HashMap<(ObjectType, u32), usize>>,
    functions: RefCell<BTreeMap<u32, Rc<Function>>>,
    function_names: RefCell<HashMap<String, u32>>,
    sequences: RefCell<BTreeMap<u32, Rc<Sequence>>>,
    collations: RefCell<BTreeMap<u32, Arc<Collation>>>,
    /// That of documents, which no row says.
    json_collation: Arc<Collation>,
    formats: RefCell<Vec<Rc<Format>>>,
    schema_version: Cell<u64>,
    /// The highest version that there was.
    last_version: Cell<u64>,
    /// What the newest versions have changed, the newest last.
    changes: RefCell<VecDeque<SchemaObject>>,
    access_version: Cell<u64>,
    /// Users made in the life of the process.
    births: Cell<u64>,
    /// Rights of users as of an access version.
    rights: RefCell<(u64, BTreeMap<UserId, Rc<Rights>>)>,
    /// How many foreign keys of one space (the second) name rows of another (the first).
    references: RefCell<BTreeMap<(SpaceId, SpaceId), usize>>,
    /// Grows with every change of them.
    constraint_version: Cell<u64>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Catalog {
            spaces: RefCell::default(),
            space_names: RefCell::default(),
            recent_space: RefCell::default(),
            users: RefCell::default(),
            grants: RefCell::default(),
            granted_objects: RefCell::default(),
            functions: RefCell::default(),
            function_names: RefCell::default(),
            sequences: RefCell::default(),
            collations: RefCell::default(),
            json_collation: Arc::new(Collation::json()),
            formats: RefCell::default(),
            schema_version: Cell::new(1),
            last_version: Cell::new(1),
            changes: RefCell::default(),
            access_version: Cell::new(1),
            births: Cell::new(0),
            rights: RefCell::default(),
            references: RefCell::default(),
            constraint_version: Cell::new(0),
        }
    }

    /// Another one with every change of spaces, indexes or functions. It grows, but while a transaction that has changed the schema waits the version is
    /// the one of before again: one version is one state of the schema.
    pub fn schema_version(&self) -> u64 {
        self.schema_version.get()
    }

    /// The schema is as it was when it had a version that there was.
    pub(crate) fn return_to_version(&self, version: u64) {
        debug_assert!(version <= self.last_version.get(), "there was such a version");
        self.schema_version.set(version);
    }

    /// An object is not as it was, from now on.
    pub(crate) fn note_change(&self, object: SchemaObject) {
        let version = self.last_version.get() + 1;
        self.last_version.set(version);
        self.schema_version.set(version);
        let mut changes = self.changes.borrow_mut();
        if changes.len() == CHANGES_MAX {
            changes.pop_front();
        }
        changes.push_back(object);
    }

    /// What may be another one than when the schema had a version, in order; an object may come more than once. `None` if that is too long ago.
    pub fn changes_since(&self, version: u64) -> Option<Vec<SchemaObject>> {
        let count = usize::try_from(self.last_version.get().checked_sub(version)?).ok()?;
        let changes = self.changes.borrow();
        let first = changes.len().checked_sub(count)?;
        Some(changes.range(first..).copied().collect())
    }

    /// Grows with every change of users and grants.
    pub fn access_version(&self) -> u64 {
        self.access_version.get()
    }

    pub(crate) fn bump_access_version(&self) {
        self.access_version.set(self.access_version.get() + 1);
    }

    /// A space by number.
    pub fn space(&self, id: SpaceId) -> Option<Rc<Space>> {
        if let Some(space) = &*self.recent_space.borrow()
            && space.id == id
        {
            return Some(Rc::clone(space));
        }
        let space = self.spaces.borrow().get(&id).cloned()?;
        *self.recent_space.borrow_mut() = Some(Rc::clone(&space));
        Some(space)
    }

    /// A space by name.
    pub fn space_by_name(&self, name: &str) -> Option<Rc<Space>> {
        let id = *self.space_names.borrow().get(name)?;
        self.space(id)
    }

    /// All spaces by id.
    pub fn spaces(&self) -> Vec<Rc<Space>> {
        self.spaces.borrow().values().cloned().collect()
    }

    pub(crate) fn add_space(&self, space: Rc<Space>) {
        *self.recent_space.borrow_mut() = None;
        let id = space.id;
        self.space_names.borrow_mut().insert(space.name(), id);
        self.spaces.borrow_mut().insert(id, Rc::clone(&space));
        self.note_change(SchemaObject::Space(id));
        self.add_references(id, &space.def().foreign_keys);
    }

    pub(crate) fn remove_space(&self, id: SpaceId) -> Option<Rc<Space>> {
        *self.recent_space.borrow_mut() = None;
        let space = self.spaces.borrow_mut().remove(&id)?;
        let mut names = self.space_names.borrow_mut();
        if names.get(&space.name()) == Some(&id) {
            names.remove(&space.name());
        }
        drop(names);
        self.note_change(SchemaObject::Space(id));
        self.remove_references(id, &space.def().foreign_keys);
        Some(space)
    }

    /// Foreign keys of a space are in force from now on.
    pub(crate) fn add_references(&self, child: SpaceId, keys: &[ForeignKeyDef]) {
        for key in keys {
            *self.references.borrow_mut().entry((key.space, child)).or_default() += 1;
        }
        self.refresh_constraints(child, keys);
    }

    /// They are not any more.
    pub(crate) fn remove_references(&self, child: SpaceId, keys: &[ForeignKeyDef]) {
        for key in keys {
            let mut references = self.references.borrow_mut();
            if let Some(count) = references.get_mut(&(key.space, child)) {
                *count -= 1;
                if *count == 0 {
                    references.remove(&(key.space, child));
                }
            }
        }
        self.refresh_constraints(child, keys);
    }

    fn refresh_constraints(&self, child: SpaceId, keys: &[ForeignKeyDef]) {
        self.constraint_version.set(self.constraint_version.get() + 1);
        for id in keys.iter().map(|key| key.space).chain([child]) {
            if let Some(space) = self.space(id) {
                space.set_constrained(self.children_of(id).next().is_some());
            }
        }
    }

    /// The spaces whose rows name rows of this one, each once.
    pub(crate) fn children_of(&self, parent: SpaceId) -> impl Iterator<Item = SpaceId> {
        let references = self.references.borrow();
        let children: Vec<SpaceId> = references
            .range((parent, SpaceId(0))..=(parent, SpaceId(u32::MAX)))
            .map(|((_, child), _)| *child)
            .collect();
        children.into_iter()
    }

    /// What constraints mean: the version of the schema, and that of the constraints in force.
    pub(crate) fn constraint_version(&self) -> (u64, u64) {
        (self.schema_version.get(), self.constraint_version.get())
    }

    /// True if a constraint of a space asks a function.
    pub(crate) fn is_asked_by_constraint(&self, function_id: u32) -> bool {
        let spaces = self.spaces.borrow();
        spaces.values().any(|space| space.def().checks.iter().any(|check| check.function_id == function_id))
    }

    pub(crate) fn rename_space(&self, old_name: &str, new_name: &str, id: SpaceId) {
        let mut names = self.space_names.borrow_mut();
        names.remove(old_name);
        names.insert(new_name.to_string(), id);
    }

    /// Makes a format and gives it the number that its rows carry.
    pub(crate) fn add_format(&self, make: impl FnOnce(u32) -> Format) -> Rc<Format> {
        let mut formats = self.formats.borrow_mut();
        let format = Rc::new(make(formats.len() as u32));
        formats.push(Rc::clone(&format));
        format
    }

    /// Gives a space another format. Rows that were made with an earlier one show its names from now on.
    pub(crate) fn set_format(&self, space: &Space, format: Rc<Format>) {
        if let Some(disk) = space.disk() {
            disk.set_format((*format).clone());
        }
        let ids = space.set_format(Rc::clone(&format));
        let mut formats = self.formats.borrow_mut();
        for id in ids {
            if let Some(known) = formats.get_mut(id as usize) {
                *known = Rc::clone(&format);
            }
        }
    }

    /// The format of rows that carry a number.
    pub fn format(&self, id: u32) -> Option<Rc<Format>> {
        self.formats.borrow().get(id as usize).cloned()
    }

    /// A user or role by number.
    pub fn user(&self, id: UserId) -> Option<Rc<User>> {
        self.users.borrow().get(&id).cloned()
    }

    /// A user or role by name.
    pub fn user_by_name(&self, name: &str) -> Option<Rc<User>> {
        self.users.borrow().values().find(|user| user.name == name).cloned()
    }

    /// All users and roles by id.
    pub fn users(&self) -> Vec<Rc<User>> {
        self.users.borrow().values().cloned().collect()
    }

    /// Name of a user, or its number as text if it is gone.
    pub fn user_name(&self, id: UserId) -> String {
        self.user(id).map_or_else(|| id.to_string(), |user| user.name.clone())
    }

    /// A number that no user of the process has had.
    pub(crate) fn next_birth(&self) -> u64 {
        self.births.set(self.births.get() + 1);
        self.births.get()
    }

    pub(crate) fn set_user(&self, id: UserId, user: Option<Rc<User>>) -> Option<Rc<User>> {
        self.bump_access_version();
        let mut users = self.users.borrow_mut();
        match user {
            Some(user) => users.insert(id, user),
            None => users.remove(&id),
        }
    }

    /// All grants.
    pub fn grants(&self) -> Vec<Grant> {
        self.grants.borrow().values().cloned().collect()
    }

    /// True if somebody has rights on an object by its number.
    pub fn has_grants(&self, object_type: ObjectType, id: u32) -> bool {
        self.granted_objects.borrow().contains_key(&(object_type, id))
    }

    /// Sets the privileges of a grant with the same grantee and object; 0 removes it.
    pub(crate) fn set_grant(&self, grant: &Grant) {
        self.bump_access_version();
        let key = (grant.grantee, grant.object_type, grant.object_id);
        let mut grants = self.grants.borrow_mut();
        let before = if grant.privileges == 0 { grants.remove(&key) } else { grants.insert(key, grant.clone()) };
        let Some(id) = grant.object_id else { return };
        let mut granted = self.granted_objects.borrow_mut();
        let count = granted.entry((grant.object_type, id)).or_default();
        *count = *count + usize::from(grant.privileges != 0) - usize::from(before.is_some());
        if *count == 0 {
            granted.remove(&(grant.object_type, id));
        }
    }

    /// The rights of a user with those of all its roles. Computed again only when grants have changed.
    pub fn rights_of(&self, user: UserId) -> Rc<Rights> {
        let version = self.access_version();
        let mut cached = self.rights.borrow_mut();
        if cached.0 != version {
            *cached = (version, BTreeMap::new());
        }
        Rc::clone(cached.1.entry(user).or_insert_with(|| self.compute_rights(user)))
    }

    fn compute_rights(&self, user: UserId) -> Rc<Rights> {
        let grants = self.grants.borrow();
        let mut rights = Rights::default();
        let mut members = vec![user];
        let mut seen = Vec::new();
        while let Some(member) = members.pop() {
            if seen.contains(&member) {
                continue;
            }
            seen.push(member);
            for grant in grants_of(&grants, member) {
                match (grant.object_type, grant.object_id) {
                    (ObjectType::Role, Some(role)) => members.push(role),
                    _ => rights.add(grant),
                }
            }
        }
        if user == ADMIN {
            rights.universe = u32::MAX;
        } else if !seen.contains(&PUBLIC) && self.user(user).is_none() {
            rights = Rights::default();
        }
        Rc::new(rights)
    }

    /// True if a user has rights beyond those that everybody has: to open a session, and what is granted to all by the role `public`.
    pub fn has_more_than_a_session(&self, user: UserId) -> bool {
        const EVERYBODYS: u32 = Privileges::SESSION | Privileges::USAGE;
        grants_of(&self.grants.borrow(), user).any(|grant| match grant.object_type {
            ObjectType::Role => grant.object_id != Some(PUBLIC),
            ObjectType::Universe => grant.privileges & !EVERYBODYS != 0,
            _ => true,
        })
    }

    /// True if `role` has `member` among its roles, directly or not.
    pub fn role_contains(&self, role: UserId, member: UserId) -> bool {
        let grants = self.grants.borrow();
        let mut next = vec![role];
        let mut seen = Vec::new();
        while let Some(current) = next.pop() {
            if current == member {
                return true;
            }
            if seen.contains(&current) {
                continue;
            }
            seen.push(current);
            next.extend(
                grants_of(&grants, current)
                    .filter(|grant| grant.object_type == ObjectType::Role)
                    .filter_map(|grant| grant.object_id),
            );
        }
        false
    }

    /// A function by number.
    pub fn function(&self, id: u32) -> Option<Rc<Function>> {
        self.functions.borrow().get(&id).cloned()
    }

    /// A function by name.
    pub fn function_by_name(&self, name: &str) -> Option<Rc<Function>> {
        let id = *self.function_names.borrow().get(name)?;
        self.function(id)
    }

    /// All functions by id.
    pub fn functions(&self) -> Vec<Rc<Function>> {
        self.functions.borrow().values().cloned().collect()
    }

    pub(crate) fn set_function(&self, id: u32, function: Option<Rc<Function>>) -> Option<Rc<Function>> {
        self.note_change(SchemaObject::Function(id));
        let mut functions = self.functions.borrow_mut();
        let mut names = self.function_names.borrow_mut();
        let old = match function {
            Some(function) => {
                names.insert(function.name.clone(), id);
                functions.insert(id, Rc::clone(&function)).filter(|old| old.name != function.name)
            }
            None => functions.remove(&id),
        };
        if let Some(old) = &old {
            names.remove(&old.name);
        }
        old
    }

    /// A sequence by number.
    pub fn sequence(&self, id: u32) -> Option<Rc<Sequence>> {
        self.sequences.borrow().get(&id).cloned()
    }

    /// A sequence by name.
    pub fn sequence_by_name(&self, name: &str) -> Option<Rc<Sequence>> {
        self.sequences.borrow().values().find(|sequence| sequence.def().name == name).cloned()
    }

    /// All sequences by id.
    pub fn sequences(&self) -> Vec<Rc<Sequence>> {
        self.sequences.borrow().values().cloned().collect()
    }

    pub(crate) fn set_sequence(&self, id: u32, sequence: Option<Rc<Sequence>>) -> Option<Rc<Sequence>> {
        self.note_change(SchemaObject::Sequence(id));
        let mut sequences = self.sequences.borrow_mut();
        match sequence {
            Some(sequence) => sequences.insert(id, sequence),
            None => sequences.remove(&id),
        }
    }

    /// A collation by number.
    pub fn collation(&self, id: u32) -> Option<Arc<Collation>> {
        match id {
            tuple::JSON_COLLATION_ID => Some(Arc::clone(&self.json_collation)),
            _ => self.collations.borrow().get(&id).cloned(),
        }
    }

    /// A collation by name.
    pub fn collation_by_name(&self, name: &str) -> Option<Arc<Collation>> {
        let found = self.collations.borrow().values().find(|collation| collation.name() == name).cloned();
        found.or_else(|| (name == tuple::JSON_COLLATION_NAME).then(|| Arc::clone(&self.json_collation)))
    }

    pub(crate) fn set_collation(&self, id: u32, collation: Option<Arc<Collation>>) -> Option<Arc<Collation>> {
        self.note_change(SchemaObject::Collation);
        let mut collations = self.collations.borrow_mut();
        match collation {
            Some(collation) => collations.insert(id, collation),
            None => collations.remove(&id),
        }
    }
}

/// The grants of one user or role, without those of its roles.
fn grants_of(grants: &Grants, user: UserId) -> impl Iterator<Item = &Grant> {
    grants
        .range((user, ObjectType::Universe, None)..)
        .map(|(_, grant)| grant)
        .take_while(move |grant| grant.grantee == user)
}
