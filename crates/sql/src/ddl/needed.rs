//! Indexes that foreign keys need: what keeps them, and what takes their place.
//!
//! A foreign key names rows by a unique index of the table that it names; that index stays while the key does. In MySQL's dialect the rows that a key
//! belongs to are found by an index, too: one is made with the key if none is there, and goes again when another one can take its place.

use super::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::{Index, Table};
use crate::unique::{MADE_KEY, listed};
use database::{FieldRef, ForeignKeyDef, INDEX_ID, Space};
use std::rc::Rc;
use tuple::SpaceId;

impl Ddl<'_> {
    /// Removes an index that is not the primary key. Errors: a foreign key needs it.
    pub(crate) fn remove_index(&self, table: &Table, index: &Index) -> Result<()> {
        self.check_index_free(table, index)?;
        if !self.remove_computed(table, index)? {
            self.delete(INDEX_ID, &[u64::from(table.space.id.0), u64::from(index.id.0)])?;
        }
        self.set_spelled(table.space.id, &index.name, None)?;
        self.forget_comments(table.space.id, &index.name)?;
        self.set_constraint(table.space.id, &index.name, true)?;
        self.set_listed(table.space.id, MADE_KEY, &index.name, false)
    }

    /// Foreign keys, of a table itself and of others, that name rows by an index, and the tables that they belong to.
    pub(crate) fn keys_by_index(&self, table: &Table, index: &Index) -> Vec<(Rc<Space>, ForeignKeyDef)> {
        let own = table.space.def();
        let own = own.foreign_keys.iter().filter(|key| key.space == table.space.id);
        let own = own.map(|key| (Rc::clone(&table.space), key.clone()));
        let mut keys: Vec<(Rc<Space>, ForeignKeyDef)> = own.chain(self.children_of(table)).collect();
        keys.retain(|(_, key)| {
            let named = fields_of(table, key.pairs.iter().map(|(_, foreign)| foreign));
            // The first index over these fields is what the key goes by.
            let mut indexes = table.indexes.iter();
            indexes
                .find(|known| known.is_unique && has_exactly(known, &named))
                .is_some_and(|known| known.id == index.id)
        });
        keys
    }

    /// DROP ... CASCADE: foreign keys go that name rows by an index.
    pub(super) fn drop_keys_by_index(&self, table: &Table, index: &Index) -> Result<()> {
        for (child, key) in self.keys_by_index(table, index) {
            let def = child.def();
            let mut keys = def.foreign_keys.clone();
            keys.retain(|known| known.name != key.name || known.field.is_some());
            self.put_options(&child, &def.checks, &keys)?;
        }
        Ok(())
    }

    fn check_index_free(&self, table: &Table, index: &Index) -> Result<()> {
        let is_named = self.dialect != Dialect::Tarantool && !self.keys_by_index(table, index).is_empty();
        let is_needed = self.dialect == Dialect::Mysql && !self.context.skips_foreign_keys() && {
            table.space.def().foreign_keys.iter().any(|key| {
                let locals = fields_of(table, key.pairs.iter().map(|(local, _)| local));
                let mut others = table.indexes.iter().filter(|other| other.id != index.id);
                begins_with(index, &locals) && !others.any(|other| begins_with(other, &locals))
            })
        };
        if !is_named && !is_needed {
            return Ok(());
        }
        let what = match self.dialect {
            Dialect::Mysql => format!("Cannot drop index '{}': needed in a foreign key constraint", index.name),
            _ => {
                let kind = if index.is_constraint { "constraint" } else { "index" };
                format!("cannot drop {kind} {} on table {} because other objects depend on it", index.name, table.name)
            }
        };
        Err(Error::new(Condition::DependentObjects, what).mysql(1553))
    }

    /// An index has come: one that was made for a foreign key, and whose place it takes, goes.
    pub(super) fn drop_made(&self, space_id: SpaceId, new: &str) -> Result<()> {
        let Some(space) = self.database.catalog.space(space_id) else { return Ok(()) };
        self.set_listed(space_id, MADE_KEY, new, false)?;
        let made = listed(self.database, &space, MADE_KEY);
        if made.is_empty() {
            return Ok(());
        }
        let table = Table::of(self.database, space)?;
        let Some(new) = table.indexes.iter().find(|index| index.name == new) else { return Ok(()) };
        for index in table.indexes.iter().filter(|index| index.id != new.id && made.contains(&index.name)) {
            let fields: Vec<usize> = index.parts.iter().map(|(field, ..)| *field).collect();
            if begins_with(new, &fields) {
                self.remove_index(&table, index)?;
            }
        }
        Ok(())
    }
}

fn fields_of<'a>(table: &Table, fields: impl Iterator<Item = &'a FieldRef>) -> Vec<usize> {
    let known = &table.space.def().fields;
    fields.filter_map(|field| field.resolve(known).map(|number| number as usize)).collect()
}

fn has_exactly(index: &Index, fields: &[usize]) -> bool {
    index.parts.len() == fields.len() && begins_with(index, fields)
}

/// True if the first parts of an index are these fields, in any order.
pub(crate) fn begins_with(index: &Index, fields: &[usize]) -> bool {
    let first: Vec<usize> = index.parts.iter().take(fields.len()).map(|(field, ..)| *field).collect();
    !fields.is_empty() && first.len() == fields.len() && fields.iter().all(|field| first.contains(field))
}
