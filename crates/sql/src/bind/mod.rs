//! From text that was taken apart to a plan: what names mean, of what types expressions are, which statement it is.
//!
//! A query block is bound in one go: FROM gives the names, every expression becomes an [`Expr`] over places of the frame, and a column gets a place when
//! the first expression uses it. So scans fetch what is used and nothing else.

mod access;
mod aggregates;
mod arrays;
mod calls;
mod check;
mod choices;
mod exact;
mod expressions;
mod from;
mod groups;
mod identity;
mod implied;
mod insert;
mod joins;
mod json;
mod keyed;
mod locks;
mod merge;
mod moments;
mod mysql;
mod net;
mod operators;
mod origin;
mod parameters;
mod parts;
mod query;
mod ranges;
mod select;
mod sets;
mod subqueries;
mod times;
mod update;
mod user_types;
mod views;
mod windows;
mod write;
mod zones;

pub(crate) use calls::keeps_collation;
pub(crate) use merge::{MergeAction, MergeClause, Merged, refuse_twice};
pub use origin::{Origin, PartOf};
pub(crate) use query::unnested;
pub(crate) use select::is_column;
pub(crate) use write::{Change, Changed, OnConflict, PASSES_OVER, Write};

pub use exact::type_of_parameter;

use crate::aggregates::AggregateCall;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{CollationOption, Expr, Slot};
use crate::plan::Plan;
use crate::sets::SetCall;
use crate::table::Table;
use crate::types::Type;
use database::Database;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tuple::SpaceId;

/// Columns of one query.
pub(crate) const COLUMNS_MAX: usize = 2000;
/// Tables of one FROM.
pub(crate) const RELATIONS_MAX: usize = 64;
/// Tables that the WITHs of a statement name, those of its views among them: each makes a plan one level deeper, which is gone through and dropped by
/// recursion.
pub(crate) const WITHS_MAX: usize = 256;
/// Queries that UNION, EXCEPT and INTERSECT add to what they have combined already, each of which makes a plan one level deeper. Those that one UNION or
/// UNION ALL adds do not.
pub(crate) const SET_LEVELS_MAX: usize = 64;
/// Parameters of one statement.
pub const PARAMETERS_MAX: usize = 65_535;

/// Bytes of the stack that are left for whatever one level needs, and for running what was bound, which needs less a level.
const STACK_LEFT_MIN: usize = 400 << 10;
/// What a level of a plan takes of it that nothing showed while it was bound.
const LEVEL_BYTES: usize = 6 << 10;

/// Binds one statement.
pub(crate) struct Binder<'a> {
    pub(crate) database: &'a Database,
    pub(crate) dialect: Dialect,
    /// The zone of the session that the statement is for is not UTC.
    pub(crate) is_zoned: bool,
    slots: Cell<usize>,
    subqueries: Cell<usize>,
    tables: Cell<usize>,
    params: RefCell<Vec<Type>>,
    /// The types of parameters as the client has said them: domains among them.
    given_types: RefCell<Vec<Type>>,
    /// So many of the types of parameters the client has given.
    declared: Cell<usize>,
    names: RefCell<Vec<String>>,
    /// Tables of the statement's own that are known here, the innermost last.
    own: RefCell<Vec<Own>>,
    /// How many queries around this one build on themselves.
    recursions: Cell<usize>,
    /// What is calculated of parameters depends on the types that they have.
    pub(crate) calculates_with_params: Cell<bool>,
    /// INSERT IGNORE: what does not fit is made to.
    is_lenient: Cell<bool>,
    /// The query that is bound next is a side of a set operation.
    is_operand: Cell<bool>,
    /// Levels of the plan that set operations around what is bound make, beyond those that the stack shows.
    set_levels: Cell<usize>,
    /// The query that is bound here is one: its decimals keep all digits.
    keeps_digits: Cell<bool>,
    /// A query within changes rows.
    pub(crate) writes: Cell<bool>,
    /// Views that are being put in place here, the innermost last.
    views: RefCell<Vec<SpaceId>>,
    /// Names of spaces that it reads, for messages and rights.
    used: RefCell<Vec<Rc<Table>>>,
    /// Where columns come from.
    origins: RefCell<origin::Origins>,
    /// Types of users' own that it names.
    types: RefCell<Vec<SpaceId>>,
}

/// A table of the statement's own.
#[derive(Clone)]
struct Own {
    name: String,
    number: usize,
    columns: Vec<(String, Type, CollationOption)>,
    /// Where its query has them.
    slots: Vec<Slot>,
}

/// An expression and what is known of it.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) expr: Expr,
    pub(crate) ty: Type,
    pub(crate) collation: CollationOption,
}

impl Bound {
    fn new(expr: Expr, ty: Type) -> Self {
        Bound { expr, ty, collation: None }
    }
}

/// A query whose rows can be found.
pub(crate) struct Query {
    pub(crate) plan: Plan,
    pub(crate) outputs: Vec<Output>,
}

/// A column of a query's result.
#[derive(Clone)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) slot: Slot,
    pub(crate) ty: Type,
    pub(crate) collation: CollationOption,
    /// The item of the list behind SELECT that it is alone, from 0; none for those that `*` stands for.
    pub(crate) item: Option<usize>,
}

/// What names mean somewhere.
struct Scope<'p> {
    parent: Option<&'p Scope<'p>>,
    relations: Vec<Relation>,
    /// Aggregates that expressions of this block have, where they may have any.
    calls: Option<RefCell<Vec<AggregateCall>>>,
    /// Windows that expressions of this block have, where they may have any.
    windows: Option<windows::Windows>,
    /// Calls of functions that give rows, where columns of this block may have any.
    sets: Option<RefCell<Vec<SetCall>>>,
    /// The columns of the result, where names mean them: in HAVING of MySQL's dialect.
    results: Vec<(String, Bound)>,
    /// Set while the arguments of an aggregate are bound.
    in_aggregate: Cell<bool>,
    /// The first relation that names mean: those before it are no part of the join whose condition is bound.
    first: Cell<usize>,
    /// How rows are locked that the block reads.
    locks: Vec<locks::RowLocks>,
}

impl<'p> Scope<'p> {
    fn new(parent: Option<&'p Scope<'p>>) -> Self {
        Scope {
            parent,
            relations: Vec::new(),
            calls: None,
            windows: None,
            sets: None,
            results: Vec::new(),
            in_aggregate: Cell::new(false),
            first: Cell::new(0),
            locks: Vec::new(),
        }
    }
}

/// Something in FROM.
struct Relation {
    alias: String,
    /// Its name with its schema, if it has no alias: two tables of one name are told apart by it.
    whole: Option<String>,
    columns: Vec<RelationColumn>,
}

/// A column of it.
struct RelationColumn {
    /// Empty: it has none.
    name: String,
    ty: Type,
    collation: CollationOption,
    place: Place,
    /// Merged into another one by USING: `*` leaves it out, and so do names that stand alone.
    is_hidden: bool,
}

impl RelationColumn {
    fn is_named(&self, dialect: Dialect, name: &str) -> bool {
        !self.name.is_empty() && dialect.is_same(&self.name, name)
    }
}

/// Where the value of a column is.
#[derive(Clone)]
enum Place {
    Slot(Slot),
    Field(Rc<TableUse>, usize),
    Expr(Expr),
}

/// A table in FROM.
pub(crate) struct TableUse {
    pub(crate) table: Rc<Table>,
    pub(crate) alias: String,
    /// By column, where its value goes once somebody uses it.
    slots: RefCell<Vec<Option<Slot>>>,
    /// Where the whole row goes, if somebody wants it.
    row: Cell<Option<Slot>>,
    lock: Cell<Option<crate::plan::Lock>>,
}

impl TableUse {
    /// The columns that are used, and where they go.
    fn fields(&self) -> Vec<(u32, Slot)> {
        let slots = self.slots.borrow();
        slots.iter().enumerate().filter_map(|(field, slot)| slot.map(|slot| (field as u32, slot))).collect()
    }
}

impl<'a> Binder<'a> {
    /// For one statement.
    pub(crate) fn new(database: &'a Database, dialect: Dialect) -> Self {
        Binder {
            database,
            dialect,
            is_zoned: dialect != Dialect::Tarantool && crate::Sql::of(database).is_zoned(),
            slots: Cell::new(0),
            subqueries: Cell::new(0),
            tables: Cell::new(0),
            params: RefCell::new(Vec::new()),
            given_types: RefCell::default(),
            declared: Cell::new(0),
            names: RefCell::new(Vec::new()),
            own: RefCell::new(Vec::new()),
            recursions: Cell::new(0),
            calculates_with_params: Cell::default(),
            is_lenient: Cell::new(false),
            is_operand: Cell::default(),
            set_levels: Cell::new(0),
            keeps_digits: Cell::default(),
            writes: Cell::new(false),
            views: RefCell::new(Vec::new()),
            used: RefCell::new(Vec::new()),
            origins: RefCell::default(),
            types: RefCell::default(),
        }
    }

    /// Errors: `LimitExceeded` if the stack is nearly used up. Asked at every level of an expression and of queries.
    fn check_stack(&self) -> Result<()> {
        let here = std::hint::black_box(0u8);
        let address = std::ptr::from_ref(&here) as usize;
        let kept_back = STACK_LEFT_MIN + self.set_levels.get() * LEVEL_BYTES;
        match runtime::fiber::stack_limit() {
            Some(limit) if address < limit + kept_back => {
                Err(Error::new(Condition::LimitExceeded, "the statement is nested too deep"))
            }
            _ => Ok(()),
        }
    }

    /// Says of which types parameters are, as far as the client knows.
    pub(crate) fn declare_params(&self, types: &[Type]) {
        let of_values = |ty: &Type| crate::user_types::of_parameter(self.database, *ty);
        *self.params.borrow_mut() = types.iter().map(of_values).collect();
        *self.given_types.borrow_mut() = types.to_vec();
        self.declared.set(types.len());
    }

    /// The types of the parameters, and their names if they have any.
    pub(crate) fn params(&self) -> (Vec<Type>, Vec<String>) {
        (self.params.borrow().clone(), self.names.borrow().clone())
    }

    /// How many places, subqueries and own tables there are.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        (self.slots.get(), self.subqueries.get(), self.tables.get())
    }

    /// True if what was bound reads a space.
    pub(crate) fn uses(&self, id: SpaceId) -> bool {
        self.used.borrow().iter().any(|table| table.space.id == id)
    }

    /// True if what was bound reads temporary tables.
    pub(crate) fn uses_temporary(&self) -> bool {
        self.used.borrow().iter().any(|table| table.space.def().is_session)
    }

    fn new_slot(&self) -> Slot {
        self.slots.set(self.slots.get() + 1);
        self.slots.get() - 1
    }

    /// The name that a table has for conditions of its own.
    fn own_name(&self, table: &Table) -> String {
        match self.dialect {
            Dialect::Postgres => crate::schemas::local(self.database, &table.name).to_string(),
            _ => table.name.clone(),
        }
    }

    fn find_table(&self, name: &str) -> Result<Rc<Table>> {
        let is_known = |table: &&Rc<Table>| table.full == name && !table.space.def().is_session;
        let known = match crate::Sql::of(self.database).has_own_tables() {
            true => None,
            false => self.used.borrow().iter().find(is_known).cloned(),
        };
        if let Some(table) = known {
            return Ok(table);
        }
        let table = Table::find(self.database, self.dialect, name)?;
        self.used.borrow_mut().push(Rc::clone(&table));
        Ok(table)
    }

    fn use_table(&self, table: Rc<Table>, alias: String) -> (Rc<TableUse>, Relation) {
        let slots = RefCell::new(vec![None; table.columns.len()]);
        let used =
            Rc::new(TableUse { table, alias: alias.clone(), slots, row: Cell::new(None), lock: Cell::new(None) });
        self.note_use(&used);
        let columns = used
            .table
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| RelationColumn {
                name: if column.is_key() { String::new() } else { column.name.clone() },
                ty: column.ty,
                collation: column.collation.clone(),
                place: Place::Field(Rc::clone(&used), number),
                is_hidden: column.is_hidden,
            })
            .collect();
        (used, Relation { alias, columns, whole: None })
    }

    /// The value of a column.
    fn at(&self, column: &RelationColumn) -> Bound {
        let expr = match &column.place {
            Place::Slot(slot) => Expr::Slot(*slot),
            Place::Expr(expr) => expr.clone(),
            Place::Field(used, number) => Expr::Slot(self.slot_of(used, *number)),
        };
        let bound = Bound { expr, ty: column.ty, collation: column.collation.clone() };
        let bound = match &column.place {
            Place::Field(used, number) if self.is_zoned => self.read_stamp(&used.table.columns[*number], bound),
            _ => bound,
        };
        self.in_order(bound)
    }

    fn slot_of(&self, used: &TableUse, number: usize) -> Slot {
        let mut slots = used.slots.borrow_mut();
        *slots[number].get_or_insert_with(|| self.new_slot())
    }

    /// The column that a name means, here or in a query around this one.
    fn resolve(&self, scope: &Scope<'_>, qualifier: Option<&str>, name: &str) -> Result<Bound> {
        let mut here = Some(scope);
        while let Some(scope) = here {
            let is_result = |known: &&(String, Bound)| self.dialect.is_same(&known.0, name);
            let may_be_result = qualifier.is_none() && !scope.in_aggregate.get();
            if let Some((_, bound)) = scope.results.iter().filter(|_| may_be_result).find(is_result) {
                return Ok(bound.clone());
            }
            let mut found: Option<&RelationColumn> = None;
            for relation in &scope.relations[scope.first.get()..] {
                if qualifier.is_some_and(|qualifier| !self.is_called(relation, qualifier)) {
                    continue;
                }
                for column in &relation.columns {
                    let is_seen = !column.is_hidden || qualifier.is_some() || name == "tableoid";
                    let is_it = is_seen && column.is_named(self.dialect, name);
                    if !is_it {
                        continue;
                    }
                    if found.is_some() {
                        return Err(match qualifier.filter(|_| self.dialect == Dialect::Postgres) {
                            Some(qualifier) => self.ambiguous_table(scope, qualifier).unwrap_or(self.ambiguous(name)),
                            None => self.ambiguous(name),
                        });
                    }
                    found = Some(column);
                }
            }
            if let Some(column) = found {
                return Ok(self.at(column));
            }
            here = scope.parent;
        }
        Err(self.no_such_column(scope, qualifier, name))
    }

    /// True if a qualifier before the name of a column means a relation.
    fn is_called(&self, relation: &Relation, qualifier: &str) -> bool {
        self.dialect.is_same(&relation.alias, qualifier) || relation.whole.as_deref() == Some(qualifier)
    }

    /// Errors: several tables without an alias have the name.
    fn ambiguous_table(&self, scope: &Scope<'_>, qualifier: &str) -> Option<Error> {
        let relations = &scope.relations[scope.first.get()..];
        let count = relations.iter().filter(|relation| self.is_called(relation, qualifier)).count();
        (count > 1)
            .then(|| Error::new(Condition::AmbiguousAlias, format!("table reference \"{qualifier}\" is ambiguous")))
    }

    fn ambiguous(&self, name: &str) -> Error {
        let message = match self.dialect {
            Dialect::Tarantool => format!("ambiguous column name: {name}"),
            Dialect::Mysql => format!("Column '{name}' in field list is ambiguous"),
            Dialect::Postgres => format!("column reference \"{name}\" is ambiguous"),
        };
        Error::new(Condition::AmbiguousColumn, message)
    }

    fn no_such_column(&self, scope: &Scope<'_>, qualifier: Option<&str>, name: &str) -> Error {
        let full = qualifier.map_or_else(|| name.to_string(), |qualifier| format!("{qualifier}.{name}"));
        let known = qualifier.filter(|_| self.dialect == Dialect::Tarantool).and_then(|qualifier| {
            scope.relations.iter().find(|relation| self.dialect.is_same(&relation.alias, qualifier))
        });
        if let Some(relation) = known {
            let what = format!("Field '{name}' was not found in space '{}' format", relation.alias);
            return Error::new(Condition::UndefinedColumn, what).tarantool(database::ErrorCode::NoSuchFieldNameInSpace);
        }
        let message = match self.dialect {
            Dialect::Tarantool => format!("Can’t resolve field '{full}'"),
            Dialect::Mysql => format!("Unknown column '{full}' in 'field list'"),
            Dialect::Postgres => match qualifier {
                Some(_) => format!("column {full} does not exist"),
                None => format!("column \"{full}\" does not exist"),
            },
        };
        let error = Error::new(Condition::UndefinedColumn, message);
        // The same in other letters, perhaps.
        let mut candidates = scope
            .relations
            .iter()
            .flat_map(|relation| relation.columns.iter().map(move |column| (&relation.alias, &column.name)));
        match candidates.find(|(_, column)| column.eq_ignore_ascii_case(name)) {
            Some((alias, column)) => error.hint(format!("Perhaps you meant the column \"{alias}\".\"{column}\".")),
            None => error,
        }
    }
}
