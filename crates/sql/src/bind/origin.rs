//! Where columns of a result come from, for clients that ask: which table, which column there, and what holds for it.

use super::{Binder, Output, Place, Relation, TableUse};
use crate::dialect::Dialect;
use crate::expr::Slot;
use crate::table::Table;
use std::rc::Rc;

/// The column of a table that a column of a result is.
#[derive(Debug, PartialEq, Eq)]
pub struct Origin {
    /// What the statement calls the table.
    pub alias: String,
    /// Its name; empty for a query in FROM.
    pub table: String,
    /// The number that `pg_class` has for it.
    pub table_number: u32,
    /// The column's name.
    pub column: String,
    /// Its number in the table, from 1.
    pub number: u16,
    /// It is never null. In Tarantool's dialect this is said of the column, whatever may stand in its place.
    pub is_required: bool,
    /// A sequence gives it numbers.
    pub is_generated: bool,
    /// A row that says nothing of it has something there: a number, a default, null.
    pub has_default: bool,
    /// The most that it is of an index.
    pub key: PartOf,
    /// The name of the collation that it was declared with.
    pub collation: Option<String>,
}

/// What a column is to the indexes of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartOf {
    /// Part of none.
    Nothing,
    /// The first of an index that may have many rows of one value.
    Index,
    /// A unique index of its own.
    Unique,
    /// Part of the primary key.
    Primary,
}

/// Tables of a statement, and columns that are others once more.
#[derive(Default)]
pub(super) struct Origins {
    uses: Vec<Used>,
    copies: Vec<(Slot, Slot)>,
    /// Computed columns of queries in FROM, and what those are called.
    derived: Vec<(Slot, String)>,
}

struct Used {
    table: Rc<TableUse>,
    /// An outer join may have nothing in its place.
    is_outer: bool,
    /// It stands in a view, whose columns are the view's.
    is_in_view: bool,
}

impl Binder<'_> {
    pub(super) fn note_use(&self, used: &Rc<TableUse>) {
        // Tarantool's clients are told of the column behind the view.
        let is_in_view = self.dialect != Dialect::Tarantool && !self.views.borrow().is_empty();
        self.origins.borrow_mut().uses.push(Used { table: Rc::clone(used), is_outer: false, is_in_view });
    }

    /// A place has the same values as another one, once for each group.
    pub(super) fn note_copy(&self, of: Slot, to: Slot) {
        self.origins.borrow_mut().copies.push((of, to));
    }

    /// A place has the values of another one among those of other queries: Tarantool's clients are told of the column nevertheless.
    pub(super) fn note_same(&self, of: Slot, to: Slot) {
        if self.dialect == Dialect::Tarantool {
            self.note_copy(of, to);
        }
    }

    /// Columns are those of a query in FROM, which MySQL's clients are told the name of.
    pub(super) fn note_derived(&self, relation: &Relation) {
        if self.dialect != Dialect::Mysql {
            return;
        }
        let mut origins = self.origins.borrow_mut();
        for column in &relation.columns {
            if let Place::Slot(slot) = &column.place {
                origins.derived.push((*slot, relation.alias.clone()));
            }
        }
    }

    /// Nothing may stand in place of rows of these.
    pub(super) fn note_outer(&self, relations: &[Relation]) {
        if self.dialect == Dialect::Tarantool {
            return;
        }
        let mut origins = self.origins.borrow_mut();
        for column in relations.iter().flat_map(|relation| &relation.columns) {
            for used in &mut origins.uses {
                used.is_outer |= match &column.place {
                    Place::Field(table, _) => Rc::ptr_eq(table, &used.table),
                    Place::Slot(slot) => used.table.slots.borrow().contains(&Some(*slot)),
                    Place::Expr(_) => false,
                };
            }
        }
    }

    /// What is asked of the column of a table whose values a place has. None: it has others.
    pub(crate) fn column_of_slot<T>(
        &self,
        slot: Slot,
        read: impl FnOnce(&crate::table::Column) -> Option<T>,
    ) -> Option<T> {
        let origins = self.origins.borrow();
        let mut slot = slot;
        for (of, to) in origins.copies.iter().rev() {
            slot = if *to == slot { *of } else { slot };
        }
        let (used, field) = origins.uses.iter().find_map(|used| {
            let field = used.table.slots.borrow().iter().position(|known| *known == Some(slot))?;
            Some((used, field))
        })?;
        read(&used.table.table.columns[field])
    }

    /// Where a column of a result comes from. None: it is computed, or a view's.
    pub(crate) fn origin_of(&self, output: &Output) -> Option<Rc<Origin>> {
        let origins = self.origins.borrow();
        let mut slot = output.slot;
        // A copy was noted before copies of it.
        for (of, to) in origins.copies.iter().rev() {
            slot = if *to == slot { *of } else { slot };
        }
        let of_table = origins.uses.iter().filter(|used| !used.is_in_view).find_map(|used| {
            let field = used.table.slots.borrow().iter().position(|known| *known == Some(slot))?;
            Some(Rc::new(origin(&used.table, field, used.is_outer)))
        });
        of_table.or_else(|| {
            let (_, alias) = origins.derived.iter().rev().find(|(derived, _)| *derived == slot)?;
            Some(Rc::new(Origin {
                alias: alias.clone(),
                table: String::new(),
                table_number: 0,
                column: String::new(),
                number: 0,
                is_required: false,
                is_generated: false,
                has_default: false,
                key: PartOf::Nothing,
                collation: None,
            }))
        })
    }
}

fn origin(used: &TableUse, field: usize, is_outer: bool) -> Origin {
    let table = &used.table;
    let column = &table.columns[field];
    let is_generated = table.generated.is_some_and(|(generated, _)| generated == field);
    Origin {
        alias: used.alias.clone(),
        table: table.name.clone(),
        table_number: u32::try_from(crate::catalog::table_number(table.space.id.0)).unwrap_or(0),
        column: column.name.clone(),
        number: u16::try_from(field + 1).unwrap_or(0),
        is_required: !column.is_nullable && !is_outer,
        is_generated,
        has_default: is_generated || column.is_nullable || column.default.is_some(),
        key: part_of(table, field),
        collation: table.space.def().fields.get(field).and_then(|field| Some(field.collation.as_ref()?.name().into())),
    }
}

fn part_of(table: &Table, field: usize) -> PartOf {
    let of_index = table.indexes.iter().map(|index| {
        let fields = || index.parts.iter().map(|(field, ..)| *field);
        match () {
            () if index.id == tuple::IndexId::PRIMARY && fields().any(|of| of == field) => PartOf::Primary,
            () if index.is_unique && fields().eq([field]) => PartOf::Unique,
            () if fields().next() == Some(field) => PartOf::Index,
            () => PartOf::Nothing,
        }
    });
    of_index.max().unwrap_or(PartOf::Nothing)
}
