//! Spaces.

use super::constraints::{CheckDef, Constraints, ForeignKeyDef, GeneratedDef};
use super::{Sequence, Ttl};
use crate::error::Result;
use crate::eviction::Evictor;
use crate::session::{Context, UserId};
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use storage::lsm::LsmSpace;
use storage::{IndexDef, Rows};
use tuple::{FieldDef, Format, IndexId, KeyPart, SpaceId, Tuple};
use wal::Position;

/// What stands behind a space's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceKind {
    /// Rows in memory.
    Memory,
    /// Rows on disk.
    Disk,
    /// The rows of another space that the user may know of.
    View {
        /// The space whose rows are shown.
        base: SpaceId,
    },
    /// Writes are logged and forgotten.
    Blackhole,
    /// Computed by the server; reads as empty.
    Service,
}

/// A row of `_space`, understood.
#[derive(Clone, Debug)]
pub struct SpaceDef {
    /// Number; below 512 are the system's.
    pub id: SpaceId,
    /// Who made it.
    pub owner: UserId,
    /// Name.
    pub name: String,
    /// Engine by Tarantool's name.
    pub engine: String,
    /// Exact number of fields of a row; 0 for any.
    pub field_count: u32,
    /// Declared fields.
    pub fields: Vec<FieldDef>,
    /// 1 if writes stay on this instance, 0 if they are for the whole replica set.
    pub group_id: u32,
    /// Rows are neither logged nor put in snapshots.
    pub is_temporary: bool,
    /// It belongs to one session: not even its definition is logged.
    pub is_session: bool,
    /// It is a view of SQL, which reads with the rights of its owner.
    pub is_view: bool,
    /// When rows expire, if they do.
    pub ttl: Option<Ttl>,
    /// What rows and indexes may take, if that is bounded.
    pub memory_limit: Option<MemoryLimit>,
    /// What rows must be like beyond their format.
    pub checks: Vec<CheckDef>,
    /// Rows of other spaces that rows name.
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// Fields that are computed.
    pub generated: Vec<GeneratedDef>,
    /// Some field is of a type that has conditions for its values; SQL knows which, and what they are.
    pub has_domains: bool,
}

/// What writes have to heed, and the version of the schema that it belongs to.
pub(crate) type KnownConstraints = ((u64, u64), Rc<Constraints>);

/// Constraints that rows are looked at for, before they are in the definition of their space.
#[derive(Default)]
pub(crate) struct PendingConstraints {
    pub(crate) checks: Vec<CheckDef>,
    pub(crate) foreign_keys: Vec<ForeignKeyDef>,
}

/// The bound of the memory of one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes of rows with their headers and of all index entries.
    pub bytes: u64,
    /// Rows leave for those that come; otherwise writes are refused.
    pub evicts: bool,
}

/// A row of `_index`, understood as far as the engine is not concerned with it.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// Number within the space.
    pub id: IndexId,
    /// Name.
    pub name: String,
    /// Parts as declared.
    pub parts: Vec<KeyPart>,
    /// How it is kept if the space is on disk.
    pub tree: storage::lsm::TreeOptions,
}

/// Fills the first field of a row that is nil.
#[derive(Clone)]
pub struct SpaceSequence {
    /// The generator.
    pub sequence: Rc<Sequence>,
    /// The field, from 0.
    pub field_no: u32,
    /// Made together with the index and dropped with it.
    pub is_generated: bool,
}

/// Code that runs before or after a row is replaced, inside the transaction.
pub trait ReplaceTrigger {
    /// `old` and `new` are what the statement removes and puts in. A before-trigger answers with the row to put in instead
    /// (`None`: no row); what an on-trigger answers is ignored. An error refuses the statement.
    fn run(
        &self,
        context: &Context,
        old: Option<&Tuple>,
        new: Option<&Tuple>,
        space: &Rc<Space>,
        operation: &str,
    ) -> Result<Option<Tuple>>;
}

/// A space: definition, rows, triggers. Changed in place when it is altered.
pub struct Space {
    /// Number.
    pub id: SpaceId,
    /// What stands behind it.
    pub kind: SpaceKind,
    def: RefCell<Rc<SpaceDef>>,
    /// That of the definition.
    ttl: Cell<Option<Ttl>>,
    memory_limit: Cell<Option<MemoryLimit>>,
    /// Made with the limit.
    evictor: RefCell<Option<Rc<Evictor>>>,
    format: RefCell<Rc<Format>>,
    indexes: RefCell<Vec<Rc<IndexInfo>>>,
    /// What the engine needs to know of the indexes, by id.
    defs: RefCell<Vec<IndexDef>>,
    /// Rows, in all indexes.
    pub rows: Rows,
    /// Position of the newest logged write: a read before it is durable waits (promise 2).
    pub last_write: Cell<Position>,
    /// Triggers in the order they run.
    pub on_replace: RefCell<Vec<Rc<dyn ReplaceTrigger>>>,
    /// Triggers in the order they run.
    pub before_replace: RefCell<Vec<Rc<dyn ReplaceTrigger>>>,
    /// Cleared by `space:run_triggers(false)`.
    pub runs_triggers: Cell<bool>,
    /// Every format the space has had: rows carry their numbers.
    format_ids: RefCell<Vec<u32>>,
    /// Fills a nil field.
    pub sequence: RefCell<Option<SpaceSequence>>,
    /// Set when the space is dropped, for those who still hold it.
    pub is_dropped: Cell<bool>,
    /// What the last one who asked was granted here: while the version of access is this one.
    pub(crate) granted: Cell<Granted>,
    /// Writes have constraints to heed: its own, or keys of other spaces that name its rows.
    constrained: Cell<bool>,
    /// They, as of a version of the schema.
    pub(crate) constraints: RefCell<Option<KnownConstraints>>,
    /// Those that its rows are being looked at for.
    pub(crate) pending: RefCell<Option<Rc<PendingConstraints>>>,
}

/// What a user was granted on a space.
#[derive(Clone, Copy)]
pub(crate) struct Granted {
    /// The version of access that it belongs to.
    pub(crate) version: u64,
    pub(crate) user: UserId,
    pub(crate) privileges: u32,
}

impl Default for Granted {
    fn default() -> Self {
        Granted { version: u64::MAX, user: 0, privileges: 0 }
    }
}

impl Space {
    /// A space as its definition says.
    pub fn new(kind: SpaceKind, def: SpaceDef, format: Rc<Format>, rows: Rows) -> Self {
        Space {
            id: def.id,
            kind,
            ttl: Cell::new(def.ttl),
            memory_limit: Cell::new(def.memory_limit),
            evictor: RefCell::new(def.memory_limit.map(|_| Rc::default())),
            def: RefCell::new(Rc::new(def)),
            format: RefCell::new(format),
            indexes: RefCell::default(),
            defs: RefCell::default(),
            rows,
            last_write: Cell::new(Position::default()),
            on_replace: RefCell::default(),
            before_replace: RefCell::default(),
            sequence: RefCell::default(),
            runs_triggers: Cell::new(true),
            format_ids: RefCell::default(),
            is_dropped: Cell::new(false),
            granted: Cell::default(),
            constrained: Cell::new(false),
            constraints: RefCell::default(),
            pending: RefCell::default(),
        }
    }

    /// The definition.
    pub fn def(&self) -> Rc<SpaceDef> {
        Rc::clone(&self.def.borrow())
    }

    pub(crate) fn set_def(&self, def: Rc<SpaceDef>) {
        self.ttl.set(def.ttl);
        self.memory_limit.set(def.memory_limit);
        match def.memory_limit {
            Some(_) => _ = self.evictor.borrow_mut().get_or_insert_default(),
            None => *self.evictor.borrow_mut() = None,
        }
        *self.def.borrow_mut() = def;
    }

    /// When rows expire, if they do.
    #[inline]
    pub fn ttl(&self) -> Option<Ttl> {
        self.ttl.get()
    }

    /// The bound of its memory, if it has one.
    #[inline]
    pub fn memory_limit(&self) -> Option<MemoryLimit> {
        self.memory_limit.get()
    }

    pub(crate) fn evictor(&self) -> Option<Rc<Evictor>> {
        self.evictor.borrow().clone()
    }

    /// What new rows are checked against.
    pub fn format(&self) -> Rc<Format> {
        Rc::clone(&self.format.borrow())
    }

    /// Sets the format; returns the numbers of those it had before.
    pub(super) fn set_format(&self, format: Rc<Format>) -> Vec<u32> {
        let mut ids = self.format_ids.borrow_mut();
        for id in [self.format.borrow().id(), format.id()] {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        *self.format.borrow_mut() = format;
        ids.clone()
    }

    /// Name.
    pub fn name(&self) -> String {
        self.def.borrow().name.clone()
    }

    /// Who owns it.
    pub fn owner(&self) -> UserId {
        self.def.borrow().owner
    }

    /// True for the spaces that hold the schema.
    pub fn is_system(&self) -> bool {
        (256..512).contains(&self.id.0)
    }

    /// True if writes have constraints to heed: its own, or keys of other spaces that name its rows.
    #[inline]
    pub fn has_constraints(&self) -> bool {
        self.constrained.get()
    }

    pub(super) fn set_constrained(&self, is_referenced: bool) {
        let def = self.def.borrow();
        let has_rules = !def.checks.is_empty() || !def.foreign_keys.is_empty() || !def.generated.is_empty();
        let has_own = has_rules || def.has_domains || self.pending.borrow().is_some();
        self.constrained.set(has_own || is_referenced);
        *self.constraints.borrow_mut() = None;
    }

    /// True if its rows are being looked at for another definition.
    pub(crate) fn is_being_changed(&self) -> bool {
        self.rows.is_building() || self.pending.borrow().is_some()
    }

    /// True if a statement may wait, so that it needs a fiber: in a trigger, for a constraint, or because it changes what all rows of a space must be like.
    pub fn may_wait(&self) -> bool {
        self.has_triggers()
            || self.has_constraints()
            || matches!(self.id, crate::alter::INDEX_ID | crate::alter::SPACE_ID | crate::alter::TRUNCATE_ID)
    }

    /// True if a statement runs triggers.
    pub fn has_triggers(&self) -> bool {
        self.runs_triggers.get() && (!self.on_replace.borrow().is_empty() || !self.before_replace.borrow().is_empty())
    }

    /// True if the first field of a row is the first part of the primary key.
    pub fn key_starts_rows(&self) -> bool {
        self.indexes.borrow().first().is_some_and(|index| index.parts.first().is_some_and(|part| part.field_no == 0))
    }

    /// Names and parts of the indexes, by id.
    pub fn indexes(&self) -> Vec<Rc<IndexInfo>> {
        self.indexes.borrow().clone()
    }

    /// An index by number.
    pub fn index(&self, id: IndexId) -> Option<Rc<IndexInfo>> {
        self.indexes.borrow().iter().find(|index| index.id == id).cloned()
    }

    /// An index by name.
    pub fn index_by_name(&self, name: &str) -> Option<Rc<IndexInfo>> {
        self.indexes.borrow().iter().find(|index| index.name == name).cloned()
    }

    /// Name of an index for messages.
    pub fn index_name(&self, id: IndexId) -> String {
        self.index(id).map_or_else(|| id.to_string(), |index| index.name.clone())
    }

    /// The rows, if they are on disk.
    pub fn disk(&self) -> Option<&Rc<LsmSpace>> {
        self.rows.disk()
    }

    /// False if what it shows is in other spaces or computed, or if it forgets what is written.
    #[inline]
    pub fn has_rows(&self) -> bool {
        !self.rows.are_nowhere()
    }

    /// Definitions of the indexes, by id.
    #[inline]
    pub fn index_defs(&self) -> Ref<'_, [IndexDef]> {
        Ref::map(self.defs.borrow(), Vec::as_slice)
    }

    /// Definition of one index.
    #[inline]
    pub fn index_def(&self, id: IndexId) -> Option<Ref<'_, IndexDef>> {
        Ref::filter_map(self.defs.borrow(), |defs| match defs.get(id.0 as usize) {
            Some(def) if def.id == id => Some(def),
            _ => defs.iter().find(|def| def.id == id),
        })
        .ok()
    }

    /// True if there is an index with this number.
    pub fn has_index(&self, id: IndexId) -> bool {
        self.index_def(id).is_some()
    }

    /// Puts a definition in the place of the one with its number, which is returned.
    pub(crate) fn put_index_def(&self, def: IndexDef) -> Option<IndexDef> {
        let mut defs = self.defs.borrow_mut();
        let at = defs.partition_point(|other| other.id < def.id);
        match defs.get_mut(at) {
            Some(other) if other.id == def.id => Some(std::mem::replace(other, def)),
            _ => {
                defs.insert(at, def);
                None
            }
        }
    }

    pub(crate) fn remove_index_def(&self, id: IndexId) -> Option<IndexDef> {
        let mut defs = self.defs.borrow_mut();
        let at = defs.iter().position(|def| def.id == id)?;
        Some(defs.remove(at))
    }

    pub(crate) fn set_index(&self, id: IndexId, index: Option<Rc<IndexInfo>>) -> Option<Rc<IndexInfo>> {
        let mut indexes = self.indexes.borrow_mut();
        let at = indexes.partition_point(|other| other.id < id);
        let old = if indexes.get(at).is_some_and(|other| other.id == id) { Some(indexes.remove(at)) } else { None };
        if let Some(index) = index {
            indexes.insert(at, index);
        }
        old
    }
}
