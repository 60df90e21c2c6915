//! ALTER TABLE of columns: what each form makes of the table's shape.

use super::alter::set_nullable;
use super::declared::ColumnKeys;
use super::{Ddl, NewColumn, NewIndex};
use crate::constraint::Declared;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::mysql::assign::Choices;
use crate::respell::{DROPS_EXPRESSION, DROPS_EXPRESSION_IF_ANY};
use crate::table::{Index, Table};
use crate::types::Base;
use crate::written::{literal, name, written, written_type};
use database::{Action, FieldRef};
use sqlparser::ast;
use tuple::{IndexId, msgpack};

impl Ddl<'_> {
    /// DROP CONSTRAINT: a check, a foreign key, or a unique index.
    pub(super) fn drop_named(&self, table: &Table, name: &str, if_exists: bool, cascades: bool) -> Result<()> {
        if self.drop_constraint(table, name)? {
            return Ok(());
        }
        let is_one = |index: &&Index| match self.dialect {
            Dialect::Postgres => index.is_constraint,
            _ => index.is_unique,
        };
        let index = table.indexes.iter().filter(is_one).find(|index| self.dialect.is_same(&index.name, name));
        if let Some(index) = index.filter(|_| cascades) {
            self.drop_keys_by_index(table, index)?;
        }
        match index {
            Some(index) if index.id == IndexId::PRIMARY => {
                let mut shape = self.shape_of(table)?;
                self.hide_primary(table, &mut shape)?;
                self.reshape(table, shape)
            }
            Some(index) => self.remove_index(table, index),
            None if if_exists => Ok(()),
            None => {
                let what = match self.dialect {
                    Dialect::Tarantool => format!("Constraint '{name}' does not exist in space '{}'", table.name),
                    Dialect::Mysql => format!("Can't DROP '{name}'; check that column/key exists"),
                    Dialect::Postgres => {
                        format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name)
                    }
                };
                Err(Error::new(Condition::UndefinedObject, what))
            }
        }
    }

    /// ADD COLUMN whose rows get a value, or at a place within the row.
    pub(super) fn add_column_with(
        &self,
        table: &Table,
        (column, keys): (NewColumn, ColumnKeys),
        declared: &Declared,
        position: Option<&ast::MySQLColumnPosition>,
    ) -> Result<()> {
        let mut shape = self.shape_of(table)?;
        let (mut column, mut keys) = (column, keys);
        if keys.is_generated && !keys.is_primary && self.dialect == Dialect::Postgres {
            let is_temporary = table.space.def().is_session;
            column.default = Some(self.put_serial(&table.full, &column.name, &keys.sequence, is_temporary)?);
            keys.is_generated = false;
        }
        if keys.is_generated && keys.sequence.len() > 1 {
            return Err(Error::unsupported(
                "ADD COLUMN of an identity that is the primary key, with options of its sequence,",
            ));
        }
        let implicit = match self.dialect {
            // What a column holds that may not be null and of which nothing is said.
            _ if column.generated.is_some() => None,
            Dialect::Mysql if !column.is_nullable && !keys.is_generated => {
                // Of words the first one.
                let choices = Choices::of(&column.declared);
                let value =
                    choices.map_or_else(|| crate::mysql::assign::implicit(column.ty), |choices| choices.first());
                Some(crate::cast::display(self.dialect, &value)).map(|text| literal(self.dialect, &text))
            }
            _ => crate::user_types::of_declared(self.database, &column.declared)
                .and_then(|named| named.domain()?.domain()?.default.clone()),
        };
        let source = match keys.is_generated {
            true => crate::alter::Source::Number,
            false => crate::alter::Source::Expression(column.default.clone().or(implicit), None),
        };
        let mut at = self.place_column(table, &mut shape, position, None, column, source)?;
        let next = shape.indexes.iter().map(|(id, _)| *id).max().map_or(0, |last| last + 1);
        if keys.is_primary {
            self.show_primary(table, &mut shape, vec![at], &keys.primary_name)?;
            // The hidden key may have stood before it.
            at = shape.indexes.iter().find(|(id, _)| *id == 0).map_or(at, |(_, primary)| primary.fields[0]);
        }
        if keys.is_unique {
            let index = NewIndex { name: keys.unique_name.clone(), is_unique: true, fields: vec![at] };
            let mut index_name = self.index_name(&table.name, &index, next as usize);
            if index_name.is_empty() {
                index_name = self.free_index_name(&table.name, &index, &shape.columns, |known| {
                    shape.indexes.iter().any(|(_, index)| index.name == known)
                });
            }
            self.set_constraint(table.space.id, &index_name, true)?;
            shape.indexes.push((next, NewIndex { name: index_name, ..index }));
        }
        if keys.is_generated {
            if shape.generated.is_some() {
                let what = "there can be only one auto-increment column";
                return Err(Error::new(Condition::InvalidTable, what).mysql(1075));
            }
            shape.generated = Some(at);
        }
        self.reshape(table, shape)?;
        match declared.is_empty() {
            true => Ok(()),
            false => self.put_constraints(&*self.table_named(&table.full)?, declared),
        }
    }

    /// Columns become the primary key in the place of the hidden one, which goes.
    pub(super) fn show_primary(
        &self,
        table: &Table,
        shape: &mut crate::alter::Shape,
        fields: Vec<usize>,
        name: &str,
    ) -> Result<()> {
        let is_key = |at: &usize| shape.indexes.iter().any(|(id, index)| *id == 0 && index.fields.contains(at));
        let hidden = shape.columns.iter().position(|column| column.is_hidden && column.generated.is_none());
        let hidden = hidden.filter(is_key);
        let Some(hidden) = hidden else {
            let what = match self.dialect {
                Dialect::Mysql => "Multiple primary key defined".to_string(),
                _ => format!("multiple primary keys for table \"{}\" are not allowed", table.name),
            };
            return Err(Error::new(Condition::InvalidTable, what));
        };
        if let Some((_, primary)) = shape.indexes.iter_mut().find(|(id, _)| *id == 0) {
            let index = NewIndex { name: name.to_string(), is_unique: true, fields };
            *primary = NewIndex { name: self.index_name(&table.name, &index, 0), ..index };
        }
        self.remove_column(table, shape, hidden)
    }

    /// MODIFY, CHANGE: a column as if it were declared anew.
    pub(super) fn change_column(
        &self,
        table: &Table,
        old: &ast::Ident,
        column: &ast::ColumnDef,
        position: Option<&ast::MySQLColumnPosition>,
    ) -> Result<()> {
        self.check_null_default(column)?;
        let at = self.column_at(table, &self.dialect.fold(old))?;
        self.check_position(table, position)?;
        self.check_default_word(column)?;
        let (before, after) = (table.columns[at].name.clone(), self.dialect.fold(&column.name));
        let is_renamed = before != after;
        if is_renamed
            && table
                .columns
                .iter()
                .any(|known| self.dialect.is_same(&known.name, &after) && !self.dialect.is_same(&known.name, &before))
        {
            let what = format!("Duplicate column name '{after}'");
            return Err(Error::new(Condition::DuplicateColumn, what));
        }
        let mut declared = Declared::default();
        let (mut column, keys) = self.new_column(&table.name, column, &mut declared)?;
        let mut shape = self.shape_of(table)?;
        let known = table.columns[at].ty;
        let is_other = column.ty.base != known.base || column.ty.is_float() != known.is_float();
        if is_other && self.is_in_foreign_key(table, at) {
            let what = format!("Cannot change column '{}': used in a foreign key constraint", table.columns[at].name);
            return Err(Error::new(Condition::InvalidTable, what).mysql(1832));
        }
        if !column.is_nullable {
            self.check_not_set_null(table, at)?;
        }
        if is_renamed {
            shape.checks = self.renamed_checks(table, &before, &column.name)?;
        }
        let is_key = shape.indexes.iter().any(|(id, index)| *id == 0 && index.fields.contains(&at));
        column.is_nullable &= !is_key;
        let quoted = name(Dialect::Mysql, &before);
        let known = &table.columns[at];
        let choices = known.raw_declared.as_deref().and_then(Choices::of);
        let text = match choices.filter(|choices| column.ty.is_number() && !choices.is_set()) {
            // The number of the word among those that the column allowed.
            Some(choices) => {
                let words = choices.words().iter().map(|word| literal(Dialect::Mysql, word));
                format!("IF({quoted} IS NULL, NULL, FIELD({quoted}, {}))", words.collect::<Vec<_>>().join(", "))
            }
            None if known.ty.is_moment() && column.ty.is_number() => format!("{quoted} + 0"),
            // The word whose number is nearest.
            None if known.ty.is_number() && Choices::of(&column.declared).is_some() => format!("ROUND({quoted})"),
            // As text: `127` is no day then.
            None if known.ty.base == Base::Double && column.ty.is_moment() => format!("CAST({quoted} AS CHAR)"),
            // A time of today.
            None if known.ty.base == Base::Time && column.ty.is_moment() => format!("CAST({quoted} AS DATETIME(6))"),
            None if matches!(known.ty.base, Base::Date | Base::Time) && column.ty.base == Base::Text => {
                format!("CAST({quoted} AS CHAR)")
            }
            None => quoted,
        };
        let source = crate::alter::Source::Expression(Some(text), Some(at));
        let mut at = self.place_column(table, &mut shape, position, Some(at), column, source)?;
        match (keys.is_generated, shape.generated == Some(at)) {
            (true, false) if shape.generated.is_some() => {
                let what = "there can be only one auto-increment column";
                return Err(Error::new(Condition::InvalidTable, what).mysql(1075));
            }
            (true, _) => shape.generated = Some(at),
            (false, true) => shape.generated = None,
            (false, false) => {}
        }
        if keys.is_primary {
            self.show_primary(table, &mut shape, vec![at], "")?;
            // The hidden key may have stood before it.
            at = shape.indexes.iter().find(|(id, _)| *id == 0).map_or(at, |(_, primary)| primary.fields[0]);
        }
        if keys.is_unique {
            let next = shape.indexes.iter().map(|(id, _)| *id).max().map_or(0, |last| last + 1);
            let index = NewIndex { name: String::new(), is_unique: true, fields: vec![at] };
            let name = self.free_index_name(&table.name, &index, &shape.columns, |known| {
                shape.indexes.iter().any(|(_, index)| self.dialect.is_same(&index.name, known))
            });
            shape.indexes.push((next, NewIndex { name, ..index }));
        }
        self.reshape(table, shape)?;
        match declared.is_empty() {
            true => Ok(()),
            false => self.put_constraints(&*self.table_named(&table.full)?, &declared),
        }
    }

    /// Errors: the column behind which another one is to stand is not there.
    fn check_position(&self, table: &Table, position: Option<&ast::MySQLColumnPosition>) -> Result<()> {
        let Some(ast::MySQLColumnPosition::After(name)) = position else { return Ok(()) };
        self.column_at(table, &self.dialect.fold(name)).map(drop)
    }

    /// Errors: a foreign key of the table makes the column null, which it may not be any more.
    fn check_not_set_null(&self, table: &Table, at: usize) -> Result<()> {
        let own = table.space.def();
        let key = own.foreign_keys.iter().find(|key| {
            let is_part = |field: &FieldRef| matches!(field, FieldRef::Number(number) if *number as usize == at);
            [key.on_delete, key.on_update].contains(&Action::SetNull) && key.pairs.iter().any(|(own, _)| is_part(own))
        });
        match key {
            Some(key) => Err(crate::constraint::cannot_be_null(&table.columns[at].name, &key.name)),
            None => Ok(()),
        }
    }

    /// A column, which no index has, may be null or not. Errors: some of its values are.
    pub(super) fn put_nullable(&self, table: &Table, at: usize, is_nullable: bool) -> Result<()> {
        let format = self.changed_format(table, |format| {
            if let Some(column) = format.get_mut(at) {
                set_nullable(column, is_nullable);
            }
        })?;
        self.update_space(table, 6, |out| out.extend_from_slice(&format), None).map_err(|error| {
            let name = &table.columns[at].name;
            let what = format!("column \"{name}\" of relation \"{}\" contains null values", table.name);
            // In rows that are older than the column it is not there at all.
            let is_null = error.body().source.as_ref().is_some_and(|source| {
                source.is(database::ErrorCode::FieldType) || source.is(database::ErrorCode::FieldMissing)
            });
            match is_null {
                true => Error::new(Condition::NotNull, what).about(&table.full, Some(name), None),
                false => error,
            }
        })
    }

    /// ALTER COLUMN.
    pub(super) fn alter_column(&self, table: &Table, name: &str, operation: &ast::AlterColumnOperation) -> Result<()> {
        use ast::AlterColumnOperation as Op;
        let at = self.column_at(table, name)?;
        if let Op::SetDataType { .. } = operation
            && let indexes = self.computed_of(table, at)
            && !indexes.is_empty()
        {
            return self
                .remaking(table, &indexes, || self.alter_column(&*self.table_named(&table.full)?, name, operation));
        }
        let mut shape = self.shape_of(table)?;
        if let Op::SetDefault { value: ast::Expr::Identifier(mark) } = operation
            && matches!(mark.value.as_str(), DROPS_EXPRESSION | DROPS_EXPRESSION_IF_ANY)
        {
            return self.drop_expression(table, at, mark.value == DROPS_EXPRESSION_IF_ANY);
        }
        if table.columns[at].generated.is_some() && matches!(operation, Op::SetDefault { .. } | Op::DropDefault) {
            let what =
                format!("column \"{}\" of relation \"{}\" is a generated column", table.columns[at].name, table.name);
            let error = Error::new(Condition::Syntax, what).mysql(3106);
            return Err(match operation {
                Op::DropDefault => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
                _ => error,
            });
        }
        match operation {
            Op::SetDefault { value }
                if self.dialect == Dialect::Mysql
                    && !table.columns[at].is_nullable
                    && value.to_string().eq_ignore_ascii_case("null") =>
            {
                let what = format!("Invalid default value for '{}'", table.columns[at].name);
                Err(Error::new(Condition::InvalidDefault, what))
            }
            Op::SetDefault { value } => {
                self.check_no_identity(table, at, false)?;
                self.put_default(table, at, Some(written(self.dialect, value)))
            }
            Op::DropDefault => {
                self.check_no_identity(table, at, true)?;
                self.put_default(table, at, None)
            }
            Op::SetNotNull | Op::DropNotNull => {
                let is_nullable = matches!(operation, Op::DropNotNull);
                if is_nullable {
                    self.check_no_identity(table, at, false)?;
                }
                let is_key = table.primary_key().iter().any(|(field, ..)| *field == at);
                if is_nullable && is_key {
                    let what = format!("column \"{}\" is in a primary key", table.columns[at].name);
                    return Err(Error::new(Condition::InvalidTable, what));
                }
                if table.columns[at].is_nullable == is_nullable {
                    return Ok(());
                }
                let is_indexed = table.indexes.iter().any(|index| index.parts.iter().any(|(field, ..)| *field == at));
                if is_indexed {
                    shape.columns[at].is_nullable = is_nullable;
                    if let Some(raw) = &mut shape.formats[at] {
                        set_nullable(raw, is_nullable);
                    }
                    return self.reshape(table, shape);
                }
                self.put_nullable(table, at, is_nullable)
            }
            Op::SetDataType { data_type, using, .. } => {
                let named = crate::user_types::resolve(self.database, self.dialect, data_type)?;
                let ty = named.ty;
                let (using, ordered) = match using {
                    // What `TYPE text COLLATE "c"` is for the parser.
                    Some(ast::Expr::Collate { expr, collation })
                        if self.dialect == Dialect::Postgres && is_column_named(expr, &table.columns[at].name) =>
                    {
                        (None, self.ordered_by(collation)?)
                    }
                    using => (using.as_ref(), None),
                };
                let old = table.columns[at].ty;
                let is_automatic = old.base == ty.base
                    || ty.base == Base::Text
                    || old.is_number() && ty.is_number()
                    || old.is_moment() && ty.is_moment();
                let name = &table.columns[at].name;
                if self.dialect == Dialect::Postgres && using.is_none() && !is_automatic {
                    let what = format!("column \"{name}\" cannot be cast automatically to type {ty}");
                    let hint = format!("You might need to specify \"USING {name}::{ty}\".");
                    return Err(Error::new(Condition::TypeMismatch, what).hint(hint));
                }
                let known = &shape.columns[at];
                let has_default = known.default.as_ref().is_some_and(|text| self.keeps_default(known, text));
                if self.dialect == Dialect::Postgres && has_default && !is_automatic {
                    let what = format!("default for column \"{name}\" cannot be cast automatically to type {ty}");
                    return Err(Error::new(Condition::TypeMismatch, what));
                }
                let is_indexed = shape.indexes.iter().any(|(_, index)| index.fields.contains(&at));
                if self.dialect == Dialect::Postgres && ty.base == Base::Array && is_indexed {
                    return Err(Error::unsupported("an index of arrays"));
                }
                let is_kept = old.base == ty.base || old.is_integer() && ty.is_integer();
                if self.dialect == Dialect::Postgres && !is_kept && self.is_in_foreign_key(table, at) {
                    let what = format!("a foreign key constraint of column \"{name}\" cannot be implemented");
                    return Err(Error::new(Condition::TypeMismatch, what));
                }
                let computed = self.generated_of(table, at);
                let mut readers = computed.iter().filter(|reader| !table.columns[**reader].is_hidden);
                if let Some(reader) = readers.next().filter(|_| self.dialect == Dialect::Postgres) {
                    let what = "cannot alter type of a column used by a generated column";
                    let detail =
                        format!("Column \"{name}\" is used by generated column \"{}\".", table.columns[*reader].name);
                    return Err(Error::new(Condition::Unsupported, what).detail(detail));
                }
                self.change_identity_type(table, at, ty)?;
                let collation = self.order_of_documents(ty).or(ordered);
                let column = &mut shape.columns[at];
                (column.ty, column.declared) =
                    (ty, named.declared.unwrap_or_else(|| written_type(self.dialect, data_type)));
                if old.base == Base::Json || collation.is_some() || self.dialect == Dialect::Postgres {
                    column.collation = collation;
                }
                let quoted = format!("\"{}\"", column.name.replace('"', "\"\""));
                let text = using.as_ref().map_or(quoted, |using| written(self.dialect, *using));
                shape.formats[at] = None;
                shape.sources[at] = crate::alter::Source::Expression(Some(text), Some(at));
                self.reshape(table, shape)
            }
            Op::AddGenerated { generated_as, sequence_options } => {
                self.add_identity(table, at, *generated_as, sequence_options.as_deref())
            }
            Op::GenericOptions { options } => self.alter_identity(table, at, options),
        }
    }

    /// The number of a collation that a statement names; none: text is ordered by code points. Errors: there is no such one.
    pub(super) fn ordered_by(&self, name: &ast::ObjectName) -> Result<Option<u32>> {
        if crate::dialect::is_plain_collation(self.dialect, name) {
            return Ok(None);
        }
        let name = self.dialect.object_name(name)?;
        match crate::collations::find(self.database, self.dialect, &name) {
            Some(collation) => Ok(Some(collation.id())),
            None => {
                let error = Error::new(Condition::UndefinedObject, format!("Collation '{name}' does not exist"));
                Err(error.tarantool(database::ErrorCode::NoSuchCollation))
            }
        }
    }

    /// A generated column is one like any other from now on, with the values that it has. Errors: it is none.
    fn drop_expression(&self, table: &Table, at: usize, if_exists: bool) -> Result<()> {
        if table.columns[at].generated.is_none() {
            let what = format!(
                "column \"{}\" of relation \"{}\" is not a stored generated column",
                table.columns[at].name, table.name
            );
            return if if_exists { Ok(()) } else { Err(Error::new(Condition::NotInState, what)) };
        }
        let format = self.changed_format(table, |format| {
            if let Some(column) = format.get_mut(at) {
                let mut entries = crate::constraint::raw_entries(column);
                entries.retain(|(key, _)| !matches!(key.as_str(), "generated" | "sql_virtual"));
                *column = crate::constraint::encode_entries(&entries);
            }
        })?;
        self.update_space(table, 6, |out| out.extend_from_slice(&format), None)
    }

    pub(super) fn column_at(&self, table: &Table, name: &str) -> Result<usize> {
        table.column(self.dialect, name).ok_or_else(|| {
            let what = match self.dialect {
                Dialect::Mysql => format!("Unknown column '{name}' in '{}'", table.name),
                _ => format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
            };
            Error::new(Condition::UndefinedColumn, what)
        })
    }

    /// True for a default that is one: null is said to be that of any column, but PostgreSQL makes it one of the type where that has a length.
    pub(super) fn keeps_default(&self, column: &NewColumn, text: &str) -> bool {
        !text.eq_ignore_ascii_case("null")
            || self.dialect == Dialect::Postgres
                && (column.ty.length > 0 || crate::user_types::has_conditions(self.database, &column.declared))
    }

    pub(super) fn put_default(&self, table: &Table, at: usize, default: Option<String>) -> Result<()> {
        let mut column = self.columns_of(table).swap_remove(at);
        column.default = default.clone().filter(|text| self.keeps_default(&column, text));
        self.default_of_enum(&mut column)?;
        self.check_default(&column)?;
        self.put_default_text(table, at, column.default.as_deref())
    }

    /// The default of a column in its format.
    pub(crate) fn put_default_text(&self, table: &Table, at: usize, default: Option<&str>) -> Result<()> {
        let format = self.changed_format(table, |format| {
            if let Some(column) = format.get_mut(at) {
                let mut entries = crate::constraint::raw_entries(column);
                entries.retain(|(key, _)| key != "default");
                if let Some(text) = default {
                    let mut value = Vec::new();
                    msgpack::encode_str(&mut value, text.as_bytes());
                    entries.push(("default".to_string(), value));
                }
                *column = crate::constraint::encode_entries(&entries);
            }
        })?;
        self.update_space(table, 6, |out| out.extend_from_slice(&format), None)
    }

    pub(crate) fn drop_columns(
        &self,
        table: &Table,
        names: &[ast::Ident],
        if_exists: bool,
        cascades: bool,
    ) -> Result<()> {
        for name in names {
            let name = self.dialect.fold(name);
            let table = self.table_named(&table.full)?;
            let shown = table.column(self.dialect, &name).filter(|at| !table.columns[*at].is_hidden);
            let Some(at) = shown else {
                if if_exists {
                    continue;
                }
                let (condition, what) = match self.dialect {
                    Dialect::Mysql => {
                        (Condition::UndefinedObject, format!("Can't DROP COLUMN `{name}`; check that it exists"))
                    }
                    _ => {
                        let what = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
                        (Condition::UndefinedColumn, what)
                    }
                };
                return Err(Error::new(condition, what));
            };
            if self.dialect == Dialect::Mysql && self.is_in_foreign_key(&table, at) {
                let what = format!("Cannot drop column '{name}': needed in a foreign key constraint");
                return Err(Error::new(Condition::InvalidTable, what).mysql(1828));
            }
            self.drop_computed_of(&table, at)?;
            let table = self.table_named(&table.full)?;
            let computed = self.generated_of(&table, at);
            if cascades && self.dialect == Dialect::Postgres && !computed.is_empty() {
                let ident = |at: &usize| ast::Ident::with_quote('"', &table.columns[*at].name);
                let first: Vec<ast::Ident> =
                    computed.iter().map(ident).chain([ast::Ident::with_quote('"', &name)]).collect();
                self.drop_columns(&table, &first, if_exists, cascades)?;
                continue;
            }
            let mut shape = self.shape_of(&table)?;
            self.remove_column(&table, &mut shape, at)?;
            if shape.columns.iter().all(|column| column.is_hidden) && self.dialect == Dialect::Mysql {
                let what = "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
                return Err(Error::new(Condition::InvalidTable, what).mysql(1090));
            }
            self.reshape(&table, shape)?;
            if self.dialect == Dialect::Postgres {
                self.drop_serial(&table, at)?;
            }
        }
        Ok(())
    }

    pub(super) fn add_column(
        &self,
        table: &Table,
        column: &ast::ColumnDef,
        if_not_exists: bool,
        position: Option<&ast::MySQLColumnPosition>,
    ) -> Result<()> {
        let name = self.dialect.fold(&column.name);
        self.check_null_default(column)?;
        self.check_position(table, position)?;
        self.check_default_word(column)?;
        // Whatever else is said of it.
        if table.column(self.dialect, &name).is_some() {
            return if if_not_exists { Ok(()) } else { Err(column_is_there(table, &name)) };
        }
        let mut declared = Declared::default();
        let (column, keys) = self.new_column(&table.name, column, &mut declared)?;
        // A domain may have a default, and may refuse null.
        let is_of_domain = crate::user_types::has_conditions(self.database, &column.declared);
        let is_filled = is_of_domain && !table.space.rows.is_empty();
        let has_values = keys.is_generated || column.default.is_some() || column.generated.is_some() || is_filled;
        let is_plain = !keys.is_primary && !keys.is_unique && !has_values;
        if !is_plain || !column.is_nullable || position.is_some() {
            return self.add_column_with(table, (column, keys), &declared, position);
        }
        let mut encoded = Vec::new();
        self.encode_column(&column, &mut encoded);
        let format = self.changed_format(table, |format| format.push(encoded))?;
        // Rows that are there have fewer fields.
        self.update_space(table, 6, |out| out.extend_from_slice(&format), Some(0))?;
        match declared.is_empty() {
            true => Ok(()),
            false => self.put_constraints(&*self.table_named(&table.full)?, &declared),
        }
    }
}

/// True for the name of a column alone.
fn is_column_named(expr: &ast::Expr, name: &str) -> bool {
    matches!(expr, ast::Expr::Identifier(ident) if Dialect::Postgres.fold(ident) == name)
}

fn column_is_there(table: &Table, name: &str) -> Error {
    let what = format!("column \"{name}\" of relation \"{}\" already exists", table.name);
    Error::new(Condition::DuplicateColumn, what)
}
