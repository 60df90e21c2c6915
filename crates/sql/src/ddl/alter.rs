//! ALTER TABLE: what each operation changes, and the rows of `_space` it changes.

use super::{Ddl, encoded_key};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use database::{Operation, SPACE_ID};
use sqlparser::ast::{self, AlterTableOperation, ColumnOption};
use storage::Key;
use tuple::{IndexId, msgpack};

impl Ddl<'_> {
    pub(super) fn alter_table(&self, alter: &ast::AlterTable) -> Result<u64> {
        if alter.operations.iter().all(|operation| matches!(operation, AlterTableOperation::OwnerTo { .. })) {
            return Ok(0);
        }
        if alter.if_exists && self.dialect.is_nowhere(&alter.name) {
            return Ok(0);
        }
        if self.dialect == Dialect::Postgres
            && let Some(schema) = crate::schemas::wanted_schema(alter)
        {
            return crate::schemas::set_schema(self, alter, schema);
        }
        if let Some(count) = self.alter_sequence(alter)? {
            return Ok(count);
        }
        for operation in &alter.operations {
            let mut table = match self.table(&alter.name) {
                Err(error) if error.condition() == Condition::UndefinedTable && alter.if_exists => return Ok(0),
                found => found?,
            };
            if let AlterTableOperation::AddColumn { column_def: ast::ColumnDef { name, .. }, .. }
            | AlterTableOperation::RenameColumn { new_column_name: name, .. }
            | AlterTableOperation::ChangeColumn { new_name: name, .. } = operation
            {
                table = self.make_way(table, name)?;
            }
            match operation {
                AlterTableOperation::RenameTable { table_name } => {
                    let (ast::RenameTableNameKind::As(name) | ast::RenameTableNameKind::To(name)) = table_name;
                    let name = self.dialect.object_name(name)?;
                    let name = self.full_name(&name, table.space.def().is_session);
                    if self.dialect != Dialect::Tarantool && self.database.catalog.space_by_name(&name).is_some() {
                        let what = match self.dialect {
                            Dialect::Mysql => format!("Table '{name}' already exists"),
                            _ => format!("relation \"{name}\" already exists"),
                        };
                        return Err(Error::new(Condition::DuplicateTable, what));
                    }
                    self.update_space(&table, 2, |out| msgpack::encode_str(out, name.as_bytes()), None)?;
                }
                AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                    let old = self.dialect.fold(old_column_name);
                    let number = table.column(self.dialect, &old).ok_or_else(|| {
                        Error::new(Condition::UndefinedColumn, format!("column \"{old}\" does not exist"))
                    })?;
                    let new = self.dialect.fold(new_column_name);
                    let is_taken = table
                        .column(self.dialect, &new)
                        .is_some_and(|other| other != number || self.dialect == Dialect::Postgres);
                    if is_taken && self.dialect != Dialect::Tarantool {
                        let what = match self.dialect {
                            Dialect::Mysql => format!("Duplicate column name '{new}'"),
                            _ => format!("column \"{new}\" of relation \"{}\" already exists", table.name),
                        };
                        return Err(Error::new(Condition::DuplicateColumn, what));
                    }
                    let format = self.changed_format(&table, |format| {
                        if let Some(column) = format.get_mut(number) {
                            set_name(column, &self.dialect.fold(new_column_name));
                        }
                        crate::constraint::rename_in_generated(format, &old, &new);
                    })?;
                    self.rename_in_spelled(table.space.id, &table.columns[number].name, &new)?;
                    let checks = self.renamed_checks(&table, &old, &self.dialect.fold(new_column_name))?;
                    let def = table.space.def();
                    match checks == def.checks {
                        true => self.update_space(&table, 6, |out| out.extend_from_slice(&format), None)?,
                        // Both at once: a condition means something at any time.
                        false => {
                            let mut row = self.space_row(table.space.id)?;
                            row[5] = self.options_with(&table.space, &checks, &def.foreign_keys)?;
                            row[6] = format;
                            let before = self.context.trust_rows(true);
                            let put = self.put_space_row(&row);
                            self.context.trust_rows(before);
                            put?;
                            self.drop_functions(&def.checks)?;
                        }
                    }
                }
                AlterTableOperation::AddColumn { column_def, if_not_exists, column_position, .. } => {
                    let keys = self.computed_keys_of(column_def);
                    let is_there = table.column(self.dialect, &self.dialect.fold(&column_def.name)).is_some();
                    let add = || self.add_column(&table, column_def, *if_not_exists, column_position.as_ref());
                    match keys.is_empty() || is_there {
                        true => add()?,
                        false => self.at_once(|| {
                            add()?;
                            keys.iter().try_for_each(|key| self.add_key(&*self.table_named(&table.full)?, key))
                        })?,
                    }
                }
                AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                    let cascades = *drop_behavior == Some(ast::DropBehavior::Cascade);
                    self.drop_columns(&table, column_names, *if_exists, cascades)?;
                }
                AlterTableOperation::AlterColumn { column_name, op } => {
                    self.alter_column(&table, &self.dialect.fold(column_name), op)?;
                }
                AlterTableOperation::ModifyColumn { col_name, data_type, options, column_position } => {
                    let column = column_def(col_name, data_type, options);
                    self.change_column(&table, col_name, &column, column_position.as_ref())?;
                }
                AlterTableOperation::ChangeColumn { old_name, new_name, data_type, options, column_position } => {
                    let column = column_def(new_name, data_type, options);
                    let mut old = old_name;
                    let known = table.column(self.dialect, &self.dialect.fold(old_name));
                    if old_name.value != new_name.value
                        && known.is_some_and(|at| !self.generated_of(&table, at).is_empty())
                    {
                        // What is computed of it gets to know its name first.
                        let (old_column_name, new_column_name) = (old_name.clone(), new_name.clone());
                        let operation = AlterTableOperation::RenameColumn { old_column_name, new_column_name };
                        self.alter_table(&ast::AlterTable { operations: vec![operation], ..alter.clone() })?;
                        (table, old) = (self.table(&alter.name)?, new_name);
                    }
                    self.change_column(&table, old, &column, column_position.as_ref())?;
                }
                AlterTableOperation::DropPrimaryKey { .. } => {
                    let mut shape = self.shape_of(&table)?;
                    self.hide_primary(&table, &mut shape)?;
                    self.reshape(&table, shape)?;
                }
                AlterTableOperation::DropIndex { name } => {
                    let name = self.dialect.fold(name);
                    let index = table.indexes.iter().find(|index| self.dialect.is_same(&index.name, &name));
                    match index.filter(|index| index.id != IndexId::PRIMARY) {
                        Some(index) => self.remove_index(&table, index)?,
                        None => {
                            let what = format!("Can't DROP '{name}'; check that column/key exists");
                            return Err(Error::new(Condition::UndefinedObject, what));
                        }
                    }
                }
                AlterTableOperation::RenameConstraint { old_name, new_name } => {
                    let (old, new) = (self.dialect.fold(old_name), self.dialect.fold(new_name));
                    let is_index = table.indexes.iter().any(|index| {
                        (index.is_constraint || self.dialect != Dialect::Postgres)
                            && self.dialect.is_same(&index.name, &old)
                    });
                    let is_own = self.rename_constraint(&table, &old, &new)?;
                    if is_own {
                        self.rename_comments(table.space.id, &old, &new)?;
                    }
                    let is_renamed = is_own || is_index && self.rename_index(&table, &old, &new)?;
                    if !is_renamed {
                        let what = format!("constraint \"{old}\" for table \"{}\" does not exist", table.name);
                        return Err(Error::new(Condition::UndefinedObject, what));
                    }
                }
                AlterTableOperation::AutoIncrement { value, .. } => {
                    let number = value.to_string().parse::<i64>().unwrap_or(1);
                    if let Some((_, sequence)) = table.generated {
                        let before = number.saturating_sub(1).max(0);
                        let present = self.database.catalog.sequence(sequence).and_then(|sequence| sequence.value());
                        if before > present.unwrap_or(0) {
                            self.as_admin(|| Ok(self.database.sequence_set(self.context, sequence, before)?))?;
                        }
                    }
                }
                AlterTableOperation::ValidateConstraint { .. }
                | AlterTableOperation::Algorithm { .. }
                | AlterTableOperation::Lock { .. }
                | AlterTableOperation::ReplicaIdentity { .. } => {}
                AlterTableOperation::AddConstraint { constraint, .. } => self.add_key(&table, constraint)?,
                AlterTableOperation::DropConstraint { name, if_exists, drop_behavior } => {
                    let cascades = *drop_behavior == Some(ast::DropBehavior::Cascade);
                    self.drop_named(&table, &self.dialect.fold(name), *if_exists, cascades)?;
                    self.forget_comments(table.space.id, &self.dialect.fold(name))?;
                }
                AlterTableOperation::DropForeignKey { name, .. } => {
                    self.drop_named(&table, &self.dialect.fold(name), false, false)?;
                }
                AlterTableOperation::OwnerTo { .. } => {}
                other => return Err(Error::unsupported(format!("ALTER TABLE '{other}'"))),
            }
        }
        Ok(0)
    }

    /// Several changes, of which all are made or none.
    pub(crate) fn at_once(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.context.is_in_txn() {
            true => work(),
            false => crate::Sql::of(self.database).in_txn(self.database, self.context, work),
        }
    }

    /// The format of a space with its columns changed.
    pub(crate) fn changed_format(&self, table: &Table, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Result<Vec<u8>> {
        let spaces = self.system(SPACE_ID)?;
        let mut parts = Vec::new();
        msgpack::encode_uint(&mut parts, u64::from(table.space.id.0));
        let key = Key { parts: &parts, part_count: 1 };
        let row = self.database.get(self.context, &spaces, IndexId::PRIMARY, key)?;
        let mut columns = Vec::new();
        if let Some(format) = row.as_ref().and_then(|row| row.field(6)) {
            let mut reader = msgpack::Reader::new(format);
            for _ in 0..reader.read_array().unwrap_or(0) {
                columns.push(reader.read_value().unwrap_or(&[0xc0]).to_vec());
            }
        }
        change(&mut columns);
        let mut format = Vec::new();
        msgpack::encode_array(&mut format, columns.len() as u32);
        columns.iter().for_each(|column| format.extend_from_slice(column));
        Ok(format)
    }

    /// Replaces a row of `_space`.
    pub(crate) fn put_space_row(&self, fields: &[Vec<u8>]) -> Result<()> {
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, fields.len() as u32);
        fields.iter().for_each(|field| row.extend_from_slice(field));
        self.execute(SPACE_ID, Operation::Replace { tuple: &row })
    }

    pub(crate) fn update_space(
        &self,
        table: &Table,
        field: u64,
        encode: impl FnOnce(&mut Vec<u8>),
        field_count: Option<u64>,
    ) -> Result<()> {
        let key = encoded_key(&[u64::from(table.space.id.0)]);
        let mut ops = Vec::new();
        msgpack::encode_array(&mut ops, 1 + u32::from(field_count.is_some()));
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, b"=");
        msgpack::encode_uint(&mut ops, field);
        encode(&mut ops);
        if let Some(count) = field_count {
            msgpack::encode_array(&mut ops, 3);
            msgpack::encode_str(&mut ops, b"=");
            msgpack::encode_uint(&mut ops, 4);
            msgpack::encode_uint(&mut ops, count);
        }
        self.execute(SPACE_ID, Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 })
    }
}

fn column_def(name: &ast::Ident, data_type: &ast::DataType, options: &[ColumnOption]) -> ast::ColumnDef {
    let option = |option: &ColumnOption| ast::ColumnOptionDef { name: None, option: option.clone() };
    ast::ColumnDef { name: name.clone(), data_type: data_type.clone(), options: options.iter().map(option).collect() }
}

/// Gives the column of a format another name.
pub(super) fn set_name(column: &mut Vec<u8>, name: &str) {
    let mut reader = msgpack::Reader::new(column);
    let Ok(count) = reader.read_map() else { return };
    let mut changed = Vec::new();
    msgpack::encode_map(&mut changed, count);
    for _ in 0..count {
        let (Ok(key), Ok(value)) = (reader.read_value(), reader.read_value()) else { return };
        changed.extend_from_slice(key);
        match msgpack::Reader::new(key).read_str() {
            Ok(b"name") => msgpack::encode_str(&mut changed, name.as_bytes()),
            _ => changed.extend_from_slice(value),
        }
    }
    *column = changed;
}

/// Says of the column of a format whether it may be null.
pub(super) fn set_nullable(column: &mut Vec<u8>, is_nullable: bool) {
    let mut reader = msgpack::Reader::new(column);
    let Ok(count) = reader.read_map() else { return };
    let mut changed = Vec::new();
    msgpack::encode_map(&mut changed, count);
    for _ in 0..count {
        let (Ok(key), Ok(value)) = (reader.read_value(), reader.read_value()) else { return };
        changed.extend_from_slice(key);
        match msgpack::Reader::new(key).read_str() {
            Ok(b"is_nullable") => msgpack::encode_bool(&mut changed, is_nullable),
            Ok(b"nullable_action") => {
                msgpack::encode_str(&mut changed, if is_nullable { b"none" } else { b"abort" });
            }
            _ => changed.extend_from_slice(value),
        }
    }
    *column = changed;
}
