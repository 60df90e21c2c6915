//! DROP and TRUNCATE: what goes with what, and what keeps something from going.

use super::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use crate::value::Value;
use database::{INDEX_ID, Operation, SEQUENCE_ID, SPACE_ID, SPACE_SEQUENCE_ID};
use sqlparser::ast;
use std::rc::Rc;
use storage::{IteratorKind, Key, ScanRequest};
use tuple::{IndexId, SpaceId};

impl Ddl<'_> {
    /// TRUNCATE: tables that others name rows of go behind those others. Errors: one that is not among them has such rows.
    pub(super) fn truncate(&self, truncate: &ast::Truncate) -> Result<u64> {
        let mut waiting = Vec::new();
        for target in &truncate.table_names {
            waiting.push(self.table(&target.name)?);
        }
        if truncate.cascade == Some(ast::CascadeOption::Cascade) {
            let mut at = 0;
            while let Some(parent) = waiting.get(at).map(|table| table.space.id) {
                at += 1;
                for child in self.database.catalog.spaces() {
                    let is_child = child.def().foreign_keys.iter().any(|key| key.space == parent);
                    if is_child && !waiting.iter().any(|known| known.space.id == child.id) {
                        waiting.push(self.table_named(&child.name())?);
                    }
                }
            }
        }
        let restarts =
            self.dialect == Dialect::Mysql || truncate.identity == Some(ast::TruncateIdentityOption::Restart);
        loop {
            let before = waiting.len();
            let mut refused = None;
            let mut left = Vec::new();
            for table in waiting {
                match self.database.truncate(self.context, &table.space) {
                    Ok(()) => self.restart_sequences(&table, restarts)?,
                    Err(error)
                        if error.is(database::ErrorCode::AlterSpace) && error.message().contains("foreign key") =>
                    {
                        refused = Some(error);
                        left.push(table);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            let Some(error) = refused else { return Ok(0) };
            if left.len() == before && self.dialect == Dialect::Postgres && self.name_each_other_only(&left) {
                let skipped = self.context.skip_foreign_keys(true);
                let done = left.iter().try_for_each(|table| self.database.truncate(self.context, &table.space));
                self.context.skip_foreign_keys(skipped);
                done?;
                left.iter().try_for_each(|table| self.restart_sequences(table, restarts))?;
                return Ok(0);
            }
            if left.len() == before {
                let what = match self.dialect {
                    Dialect::Tarantool => return Err(error.into()),
                    Dialect::Mysql => "Cannot truncate a table referenced in a foreign key constraint",
                    Dialect::Postgres => "cannot truncate a table referenced in a foreign key constraint",
                };
                return Err(Error::new(Condition::Unsupported, what).mysql(1701));
            }
            waiting = left;
        }
    }

    /// True if rows of these tables are named by rows of one another, and by no others.
    fn name_each_other_only(&self, tables: &[Rc<Table>]) -> bool {
        let is_one = |id: SpaceId| tables.iter().any(|table| table.space.id == id);
        let mut others = self.database.catalog.spaces().into_iter().filter(|other| !is_one(other.id));
        others.all(|other| other.rows.is_empty() || !other.def().foreign_keys.iter().any(|key| is_one(key.space)))
    }

    /// Sequences of a table's columns begin anew, if that is asked for.
    fn restart_sequences(&self, table: &Table, restarts: bool) -> Result<()> {
        if let Some((_, sequence)) = table.generated.filter(|_| restarts) {
            self.as_admin(|| Ok(self.database.sequence_reset(self.context, sequence)?))?;
        }
        for at in (0..table.columns.len()).filter(|_| restarts && self.dialect == Dialect::Postgres) {
            let is_linked = table.generated.is_some_and(|(field, _)| field == at);
            if let Some(sequence) = self.sequence_of(table, at).filter(|_| !is_linked) {
                let id = sequence.def().id;
                self.as_admin(|| Ok(self.database.sequence_reset(self.context, id)?))?;
            }
        }
        Ok(())
    }

    pub(super) fn drop_table(&self, name: &ast::ObjectName, if_exists: bool) -> Result<u64> {
        let table = match self.table(name) {
            Err(error) if error.condition() == Condition::UndefinedTable && if_exists => return Ok(0),
            Err(error) if error.condition() == Condition::UndefinedTable && self.dialect == Dialect::Mysql => {
                return Err(Error::new(Condition::UndefinedTable, format!("Unknown table '{name}'")).mysql(1051));
            }
            Err(error) if error.condition() == Condition::UndefinedTable && self.dialect == Dialect::Postgres => {
                let what = error.to_string().replacen("relation ", "table ", 1);
                return Err(Error::new(Condition::UndefinedTable, what));
            }
            found => found?,
        };
        if self.dialect == Dialect::Mysql && if_exists && crate::views::of(self.database, &table.space).is_some() {
            return Ok(0);
        }
        if table.space.is_system() {
            return Err(Error::new(
                Condition::AccessDenied,
                format!("Can't drop space '{}': the space is a system space", table.name),
            ));
        }
        self.let_keys_wait(&table)?;
        self.check_not_referenced(&table)?;
        self.drop_found(&table)?;
        Ok(1)
    }

    /// A space is filled by no sequence any more; one that was made for it goes.
    pub(super) fn unlink_sequence(&self, space: &database::Space) -> Result<()> {
        let generated = space.sequence.borrow().as_ref().map(|link| (link.sequence.def().id, link.is_generated));
        let Some((sequence, is_own)) = generated else { return Ok(()) };
        self.delete(SPACE_SEQUENCE_ID, &[u64::from(space.id.0)])?;
        match is_own {
            true => self.as_admin(|| {
                self.delete(database::SEQUENCE_DATA_ID, &[u64::from(sequence)])?;
                self.delete(SEQUENCE_ID, &[u64::from(sequence)])
            }),
            false => Ok(()),
        }
    }

    /// Drops a table and what belongs to it.
    pub(crate) fn drop_found(&self, table: &Table) -> Result<()> {
        let id = u64::from(table.space.id.0);
        self.unlink_sequence(&table.space)?;
        for index in table.indexes.iter().rev() {
            self.delete(INDEX_ID, &[id, u64::from(index.id.0)])?;
        }
        self.as_admin(|| {
            self.drop_grants(id)?;
            self.delete(database::TRUNCATE_ID, &[id])
        })?;
        let checks = table.space.def().checks.clone();
        self.delete(SPACE_ID, &[id])?;
        self.drop_functions(&checks)?;
        match self.dialect {
            Dialect::Postgres => self.drop_serials(table),
            _ => Ok(()),
        }
    }

    /// Sequences that fill columns of a table that has gone, and have the names that SERIAL gives them, go with it, unless another table takes numbers of them.
    fn drop_serials(&self, table: &Table) -> Result<()> {
        (0..table.columns.len()).try_for_each(|at| self.drop_serial(table, at))
    }

    /// The same of one column that has gone.
    pub(super) fn drop_serial(&self, table: &Table, at: usize) -> Result<()> {
        let column = &table.columns[at];
        let is_linked = table.generated.is_some_and(|(field, _)| field == at);
        if column.identity.is_some() {
            // One of the primary key is gone already.
            let sequence = self.sequence_of(table, at).filter(|_| !is_linked);
            return sequence.map_or(Ok(()), |sequence| self.remove_sequence(u64::from(sequence.def().id)));
        }
        let name = format!("{}_{}_seq", table.space.name(), column.name);
        let named = |default: &Option<String>| {
            default.as_deref().and_then(|default| crate::catalog::sequence_named_by(self.database, default))
        };
        if named(&column.default).as_ref() != Some(&name) {
            return Ok(());
        }
        let others = self.database.catalog.spaces().into_iter().filter(|space| !space.is_system());
        let is_used = others.filter_map(|space| Table::of(self.database, space).ok()).any(|other| {
            let is_linked =
                |id: u32| self.database.catalog.sequence(id).is_some_and(|sequence| sequence.def().name == name);
            other.generated.is_some_and(|(_, id)| is_linked(id))
                || other.columns.iter().any(|column| named(&column.default).as_ref() == Some(&name))
        });
        match is_used {
            true => Ok(()),
            false => {
                self.drop_sequence(&ast::ObjectName::from(vec![ast::Ident::with_quote('"', &name)]), true).map(drop)
            }
        }
    }

    /// DROP ... CASCADE: foreign keys of others go with the table that they name.
    pub(super) fn drop_references(&self, name: &ast::ObjectName) -> Result<()> {
        let Ok(table) = self.table(name) else { return Ok(()) };
        for child in self.database.catalog.spaces() {
            let def = child.def();
            let mut keys = def.foreign_keys.clone();
            keys.retain(|key| key.space != table.space.id || key.field.is_some());
            if keys.len() != def.foreign_keys.len() && child.id != table.space.id {
                self.put_options(&child, &def.checks, &keys)?;
            }
        }
        Ok(())
    }

    /// Errors: rows of the table are named by those of another one.
    pub(super) fn check_not_referenced(&self, table: &Table) -> Result<()> {
        for child in self.database.catalog.spaces() {
            let def = child.def();
            let key = def.foreign_keys.iter().find(|key| key.space == table.space.id && child.id != table.space.id);
            let Some(key) = key else { continue };
            let what = match self.dialect {
                Dialect::Tarantool => return Ok(()),
                Dialect::Mysql => format!(
                    "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.",
                    table.name, key.name, def.name
                ),
                Dialect::Postgres => {
                    format!("cannot drop table {} because other objects depend on it", table.name)
                }
            };
            let detail = format!("constraint {} on table {} depends on table {}", key.name, def.name, table.name);
            let error = Error::new(Condition::DependentObjects, what).mysql(3730);
            return Err(match self.dialect {
                Dialect::Postgres => {
                    error.detail(detail).hint("Use DROP ... CASCADE to drop the dependent objects too.")
                }
                _ => error,
            });
        }
        Ok(())
    }

    /// The rights of others on a table go with it.
    pub(crate) fn drop_grants(&self, id: u64) -> Result<()> {
        let grants = self.system(database::PRIV_ID)?;
        let mut keys = Vec::new();
        let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
        self.database.select(self.context, &grants, &request, |row| {
            let kind = tuple::field(row, 2).map(Value::decode);
            let object = tuple::field(row, 3).map(Value::decode).and_then(|value| value.as_integer());
            let is_it = kind.as_ref().and_then(Value::as_text) == Some("space") && object == Some(i128::from(id));
            if is_it {
                keys.extend(crate::scan::primary_key(&grants, row));
            }
            true
        })?;
        for key in keys {
            self.execute(database::PRIV_ID, Operation::Delete { index_id: IndexId::PRIMARY, key: &key })?;
        }
        Ok(())
    }

    pub(super) fn drop_index(
        &self,
        name: &ast::ObjectName,
        table: Option<&ast::ObjectName>,
        if_exists: bool,
    ) -> Result<u64> {
        let name = self.dialect.object_name(name)?;
        let found = match table {
            Some(table) => {
                let table = self.table(table)?;
                let at = table.indexes.iter().position(|index| self.dialect.is_same(&index.name, &name));
                at.map(|at| (table, at))
            }
            None => {
                let found = crate::schemas::space_of_index(self.database, &name);
                let found = found.map(|(space, name)| (Table::of(self.database, space), name));
                let found = found.map(|(table, name)| table.map(|table| (table, name))).transpose()?;
                found.and_then(|(table, name)| {
                    let at = table.indexes.iter().position(|index| index.name == name)?;
                    Some((Rc::new(table.named_in(self.database, self.dialect)), at))
                })
            }
        };
        let Some((table, at)) = found else {
            if if_exists {
                return Ok(0);
            }
            let message = match self.dialect {
                Dialect::Tarantool => format!("No index '{name}' is defined in space"),
                _ => format!("index \"{name}\" does not exist"),
            };
            return Err(Error::new(Condition::UndefinedObject, message));
        };
        let index = &table.indexes[at];
        if index.id == IndexId::PRIMARY {
            let what = format!("cannot drop the primary key of '{}'", table.name);
            return Err(Error::new(Condition::InvalidTable, what));
        }
        if self.dialect == Dialect::Postgres && index.is_constraint {
            let what =
                format!("cannot drop index {name} because constraint {name} on table {} requires it", table.name);
            let hint = format!("You can drop constraint {name} on table {} instead.", table.name);
            return Err(Error::new(Condition::DependentObjects, what).hint(hint));
        }
        self.remove_index(&table, index)?;
        Ok(1)
    }
}
