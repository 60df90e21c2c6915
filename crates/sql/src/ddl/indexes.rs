//! Indexes: CREATE INDEX, and constraints that are indexes.

use super::computed_keys::Wanted;
use super::{Ddl, NewColumn, NewIndex};
use crate::constraint::Declared;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use crate::types::Base;
use database::{INDEX_ID, Operation};
use sqlparser::ast::{self, TableConstraint};
use tuple::{SpaceId, msgpack};

/// Rows of a table that gets a primary key in one go.
const AT_ONCE_MAX: u64 = 20_000;

impl Ddl<'_> {
    /// An index over fields, of a name or the first free one that begins so. Returns the name.
    pub(crate) fn add_index(&self, table: &Table, name: &str, fields: &[usize], is_unique: bool) -> Result<String> {
        let columns = self.columns_of(table);
        let number = table.indexes.iter().map(|index| u64::from(index.id.0)).max().map_or(0, |last| last + 1);
        let mut names = std::iter::once(name.to_string()).chain((2..).map(|number| format!("{name}_{number}")));
        let is_free = |name: &String| !table.indexes.iter().any(|index| self.dialect.is_same(&index.name, name));
        let name = names.find(is_free).unwrap_or_default();
        let index = NewIndex { name: name.clone(), is_unique, fields: fields.to_vec() };
        self.put_index(u64::from(table.space.id.0), number, &name, &index, &columns)?;
        Ok(name)
    }

    pub(super) fn index_name(&self, table: &str, index: &NewIndex, number: usize) -> String {
        let table = self.local(table);
        match (index.name.is_empty(), self.dialect, number) {
            (false, ..) => index.name.clone(),
            (true, Dialect::Tarantool, 0) => format!("pk_unnamed_{table}_1"),
            (true, Dialect::Tarantool, _) => format!("unique_unnamed_{table}_{}", number + 1),
            (true, Dialect::Mysql, 0) => "PRIMARY".to_string(),
            (true, Dialect::Mysql, _) => String::new(),
            (true, _, 0) => format!("{table}_pkey"),
            (true, ..) => String::new(),
        }
    }

    /// The name of an index that has none: of its columns, with a number if that is taken.
    pub(super) fn free_index_name(
        &self,
        table: &str,
        index: &NewIndex,
        columns: &[NewColumn],
        is_taken: impl Fn(&str) -> bool,
    ) -> String {
        let table = self.local(table);
        let names: Vec<&str> = index.fields.iter().map(|field| columns[*field].name.as_str()).collect();
        let (first, joint) = match self.dialect {
            Dialect::Mysql => (names.first().map_or_else(String::new, ToString::to_string), "_"),
            _ => (format!("{table}_{}_key", names.join("_")), ""),
        };
        let from = if self.dialect == Dialect::Mysql { 2 } else { 1 };
        let numbered = (from..).map(|number| format!("{first}{joint}{number}"));
        std::iter::once(first.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
    }

    pub(super) fn fields_of(
        &self,
        table: &str,
        columns: &[NewColumn],
        listed: &[ast::IndexColumn],
    ) -> Result<Vec<usize>> {
        let mut fields = Vec::new();
        for column in listed {
            let expr =
                if self.dialect == Dialect::Postgres { self.bare(&column.column.expr) } else { &column.column.expr };
            let name = match expr {
                ast::Expr::Identifier(ident) => self.dialect.fold(ident),
                // A number of characters that an index looks at: it looks at all of them.
                ast::Expr::Function(function) if self.dialect == Dialect::Mysql && is_prefix(function) => {
                    self.dialect.object_name(&function.name)?
                }
                other => return Err(Error::unsupported(format!("an index over '{other}'"))),
            };
            let found = columns.iter().position(|column| column.is_named(self.dialect, &name));
            fields.push(found.ok_or_else(|| {
                let what = match self.dialect {
                    Dialect::Tarantool => format!("Can’t resolve field '{name}'"),
                    Dialect::Mysql => format!("Key column '{name}' doesn't exist in table"),
                    Dialect::Postgres => format!("column \"{name}\" of relation \"{table}\" does not exist"),
                };
                Error::new(Condition::UndefinedColumn, what).mysql(1072)
            })?);
        }
        Ok(fields)
    }

    pub(super) fn put_index(
        &self,
        space_id: u64,
        number: u64,
        name: &str,
        index: &NewIndex,
        columns: &[NewColumn],
    ) -> Result<()> {
        if self.dialect == Dialect::Postgres && index.fields.iter().any(|field| columns[*field].ty.base == Base::Array)
        {
            return Err(Error::unsupported("an index of arrays"));
        }
        let is_taken = self.dialect != Dialect::Tarantool
            && u32::try_from(space_id)
                .ok()
                .and_then(|id| self.database.catalog.space(SpaceId(id)))
                .is_some_and(|space| space.indexes().iter().any(|known| self.dialect.is_same(&known.name, name)));
        if is_taken && self.dialect == Dialect::Postgres {
            return Err(Error::new(Condition::DuplicateTable, format!("relation \"{name}\" already exists")));
        }
        if is_taken {
            return Err(Error::new(Condition::DuplicateObject, format!("Duplicate key name '{name}'")));
        }
        let mut number = number;
        loop {
            let row = encode_index(space_id, number, name, index, columns);
            let done = self.execute(INDEX_ID, Operation::Insert { tuple: &row });
            // Another one was made meanwhile, and has this number.
            match done.as_ref().err().and_then(|error| self.number_behind(space_id, number, error)) {
                Some(next) => number = next,
                None => {
                    done?;
                    break;
                }
            }
        }
        match (self.dialect, u32::try_from(space_id)) {
            (Dialect::Mysql, Ok(space_id)) => self.drop_made(SpaceId(space_id), name),
            _ => Ok(()),
        }
    }

    /// The number for an index whose own one was taken while it was made. None: something else is wrong.
    fn number_behind(&self, space_id: u64, number: u64, error: &Error) -> Option<u64> {
        let space = self.database.catalog.space(SpaceId(u32::try_from(space_id).ok()?))?;
        let is_taken = space.index_defs().iter().any(|index| u64::from(index.id.0) == number);
        let is_found = error.condition() == Condition::UniqueViolation && number > 0 && is_taken;
        let last = space.index_defs().iter().map(|index| u64::from(index.id.0)).max();
        last.filter(|_| is_found && self.dialect != Dialect::Tarantool).map(|last| last + 1)
    }

    /// ALTER TABLE ADD of a constraint that is an index.
    pub(super) fn add_key(&self, table: &Table, constraint: &TableConstraint) -> Result<()> {
        if let TableConstraint::UniqueUsingIndex(using) = constraint {
            return self.take_index(table, using);
        }
        if let Some(key) = self.computed_key(constraint) {
            return self.add_computed_key(table, &key);
        }
        let columns = self.columns_of(table);
        let (mut primary, mut indexes, mut declared) = (None, Vec::new(), Declared::default());
        self.add_constraint(&table.name, &columns, constraint, (&mut primary, &mut indexes), &mut declared)?;
        if !declared.is_empty() {
            return self.put_constraints(table, &declared);
        }
        let id = u64::from(table.space.id.0);
        let next = table.indexes.iter().map(|index| u64::from(index.id.0)).max().map_or(0, |last| last + 1);
        for (number, index) in (next..).zip(&indexes) {
            let mut name = self.index_name(&table.name, index, number as usize);
            if name.is_empty() {
                name = self.free_index_name(&table.name, index, &columns, |known| {
                    table.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(known))
                });
            }
            self.put_index(id, number, &name, index, &columns)?;
            self.keep_of_index(table, &name, || self.set_constraint(table.space.id, &name, true))?;
        }
        let Some(primary) = primary else { return Ok(()) };
        let hidden = table.primary_key().iter().map(|(field, ..)| *field).find(|field| columns[*field].is_hidden);
        let Some(hidden) = hidden else {
            return Err(self.second_primary(&table.name));
        };
        let is_long = table.row_count() > AT_ONCE_MAX && table.space.rows.memory().is_some();
        // An index says, too, whether a column of its may be null: with such a one all is made anew.
        let is_in_index =
            |field: &usize| table.indexes.iter().any(|index| index.parts.iter().any(|part| part.0 == *field));
        let has_free = !primary.fields.iter().any(|field| table.columns[*field].is_nullable && is_in_index(field));
        let is_nobodys = !self.context.is_in_txn() || self.database.is_own_space(self.context, table.space.id);
        if is_long && has_free && is_nobodys {
            return self.show_primary_in_place(table, &primary, hidden);
        }
        let mut shape = self.shape_of(table)?;
        let name = primary.name.clone();
        self.show_primary(table, &mut shape, primary.fields, &name)?;
        self.reshape(table, shape)
    }

    /// What a constraint says that is an index over more than columns: UNIQUE NULLS NOT DISTINCT, and `KEY ((expression))` of MySQL's dialect.
    pub(super) fn computed_key<'s>(&self, constraint: &'s TableConstraint) -> Option<ComputedKey<'s>> {
        let (name, columns, is_unique, has_equal_nulls) = match constraint {
            TableConstraint::Unique(key) => {
                (key.index_name.as_ref().or(key.name.as_ref()), &key.columns, true, self.has_equal_nulls(key))
            }
            TableConstraint::Index(key) => (key.name.as_ref(), &key.columns, false, false),
            _ => return None,
        };
        let is_expression = |column: &ast::IndexColumn| matches!(column.column.expr, ast::Expr::Nested(_));
        let is_computed = has_equal_nulls || self.dialect == Dialect::Mysql && columns.iter().any(is_expression);
        let (include, options) = (&[], &[]);
        let wanted = Wanted { keys: columns, predicate: None, include, options, is_unique, has_equal_nulls };
        is_computed.then_some(ComputedKey { name, wanted })
    }

    /// UNIQUE NULLS NOT DISTINCT.
    pub(super) fn has_equal_nulls(&self, key: &ast::UniqueConstraint) -> bool {
        key.nulls_distinct == ast::NullsDistinctOption::NotDistinct && self.dialect == Dialect::Postgres
    }

    /// The constraints behind a column that are indexes over more than columns, as constraints of the table.
    pub(super) fn computed_keys_of(&self, column: &ast::ColumnDef) -> Vec<TableConstraint> {
        let constraint = |option: &ast::ColumnOptionDef| match &option.option {
            ast::ColumnOption::Unique(key) if self.has_equal_nulls(key) => {
                let mut key = key.clone();
                key.name = option.name.clone().or(key.name);
                key.columns = vec![column.name.clone().into()];
                Some(TableConstraint::Unique(key))
            }
            _ => None,
        };
        column.options.iter().filter_map(constraint).collect()
    }

    fn add_computed_key(&self, table: &Table, key: &ComputedKey<'_>) -> Result<()> {
        let columns = self.columns_of(table);
        let is_taken = |known: &str| table.indexes.iter().any(|index| self.dialect.is_same(&index.name, known));
        let name = match key.name {
            Some(name) => self.dialect.fold(name),
            None if self.dialect == Dialect::Mysql => {
                let numbered = (2..).map(|number| format!("functional_index_{number}"));
                let mut names = std::iter::once("functional_index".to_string()).chain(numbered);
                names.find(|name| !is_taken(name)).unwrap_or_default()
            }
            None => {
                let fields = self.fields_of(&table.name, &columns, key.wanted.keys)?;
                let index = NewIndex { name: String::new(), is_unique: true, fields };
                self.free_index_name(&table.name, &index, &columns, is_taken)
            }
        };
        if is_taken(&name) {
            return Err(match self.dialect {
                Dialect::Mysql => Error::new(Condition::DuplicateObject, format!("Duplicate key name '{name}'")),
                _ => Error::new(Condition::DuplicateTable, format!("relation \"{name}\" already exists")),
            });
        }
        self.create_computed(&key.wanted, table, &name, true)
    }

    /// Keeps what is said of an index that was just made, whatever time the statement has left. Errors: those of the work; the index goes again then.
    pub(super) fn keep_of_index(&self, table: &Table, name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let deadline = self.context.set_deadline(None);
        let done = work();
        if done.is_err()
            && let Some(index) = table.space.index_by_name(name)
        {
            // The first error is the one to tell.
            let _ = self.delete(INDEX_ID, &[u64::from(table.space.id.0), u64::from(index.id.0)]);
        }
        self.context.set_deadline(deadline);
        done
    }

    /// Columns become the primary key of a table of many rows, which are looked at a slice at a time. The hidden key stays as a column that nobody sees
    /// and nothing fills any more.
    ///
    /// Steps, each of which leaves a table that is as good as before. Errors: values that are null, or there twice.
    fn show_primary_in_place(&self, table: &Table, primary: &NewIndex, hidden: usize) -> Result<()> {
        for field in primary.fields.iter().filter(|field| table.columns[**field].is_nullable) {
            self.put_nullable(table, *field, false)?;
        }
        let mut columns = self.columns_of(table);
        primary.fields.iter().for_each(|field| columns[*field].is_nullable = false);
        let name = self.index_name(&table.name, primary, 0);
        let row = encode_index(u64::from(table.space.id.0), 0, &name, primary, &columns);
        self.execute(INDEX_ID, Operation::Replace { tuple: &row })?;
        match self.context.is_in_txn() {
            true => self.unlink_sequence(&table.space)?,
            false => {
                let sql = crate::Sql::of(self.database);
                sql.in_txn(self.database, self.context, || self.unlink_sequence(&table.space))?;
            }
        }
        self.put_nullable(table, hidden, true)
    }

    /// UNIQUE USING INDEX: an index that is there becomes a constraint.
    fn take_index(&self, table: &Table, using: &ast::ConstraintUsingIndex) -> Result<()> {
        let old = self.dialect.fold(&using.index_name);
        let new = using.name.as_ref().map_or_else(|| old.clone(), |name| self.dialect.fold(name));
        let Some(index) = table.indexes.iter().find(|index| self.dialect.is_same(&index.name, &old)) else {
            return Err(Error::new(Condition::UndefinedObject, format!("index \"{old}\" does not exist")));
        };
        if !index.is_unique || index.is_constraint {
            let what = match index.is_unique {
                true => format!("index \"{old}\" is already associated with a constraint"),
                false => format!("\"{old}\" is not a unique index"),
            };
            return Err(Error::new(Condition::InvalidTable, what));
        }
        if new != old {
            self.rename_index(table, &old, &new)?;
        }
        self.set_constraint(table.space.id, &new, true)
    }

    pub(super) fn create_index(&self, create: &ast::CreateIndex) -> Result<u64> {
        let table = self.table(&create.table_name)?;
        let columns: Vec<NewColumn> = self.columns_of(&table);
        let is_computed = self.is_computed(create);
        if !is_computed && (create.predicate.is_some() || !create.include.is_empty()) {
            return Err(Error::unsupported("CREATE INDEX with WHERE or INCLUDE"));
        }
        let fields = match is_computed {
            true => Vec::new(),
            false => self.fields_of(&table.name, &columns, &create.columns)?,
        };
        let name = match &create.name {
            Some(name) => self.dialect.object_name(name)?,
            None if self.dialect == Dialect::Postgres => self.name_of_keys(create, &table),
            None => {
                let names: Vec<&str> = fields.iter().map(|field| columns[*field].name.as_str()).collect();
                format!("{}_{}_idx", table.name, names.join("_"))
            }
        };
        if table.indexes.iter().any(|index| self.dialect.is_same(&index.name, &name)) {
            if create.if_not_exists {
                return Ok(0);
            }
            let message = match self.dialect {
                Dialect::Tarantool => format!("Index '{name}' already exists in space '{}'", table.name),
                Dialect::Mysql => format!("Duplicate key name '{name}'"),
                Dialect::Postgres => format!("relation \"{name}\" already exists"),
            };
            let condition =
                if self.dialect == Dialect::Postgres { Condition::DuplicateTable } else { Condition::DuplicateObject };
            return Err(Error::new(condition, message));
        }
        let is_constraint = self.dialect != Dialect::Postgres || !create.unique;
        match is_computed {
            true => self.create_computed(&Wanted::of(create), &table, &name, is_constraint)?,
            false => {
                let number = table.indexes.iter().map(|index| u64::from(index.id.0)).max().map_or(0, |last| last + 1);
                let index = NewIndex { name: name.clone(), is_unique: create.unique, fields };
                self.put_index(u64::from(table.space.id.0), number, &name, &index, &columns)?;
                self.keep_of_index(&table, &name, || self.set_constraint(table.space.id, &name, is_constraint))?;
            }
        }
        Ok(1)
    }
}

/// A constraint that is an index over more than columns.
pub(super) struct ComputedKey<'s> {
    name: Option<&'s ast::Ident>,
    wanted: Wanted<'s>,
}

/// True for `column(20)`.
fn is_prefix(function: &ast::Function) -> bool {
    let ast::FunctionArguments::List(list) = &function.args else { return false };
    matches!(list.args.as_slice(), [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value)))]
        if matches!(value.value, ast::Value::Number(..)))
}

/// The row of an index in `_index`.
pub(crate) fn encode_index(space_id: u64, number: u64, name: &str, index: &NewIndex, columns: &[NewColumn]) -> Vec<u8> {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 6);
    msgpack::encode_uint(&mut row, space_id);
    msgpack::encode_uint(&mut row, number);
    msgpack::encode_str(&mut row, name.as_bytes());
    msgpack::encode_str(&mut row, b"tree");
    msgpack::encode_map(&mut row, 1);
    msgpack::encode_str(&mut row, b"unique");
    msgpack::encode_bool(&mut row, index.is_unique);
    msgpack::encode_array(&mut row, index.fields.len() as u32);
    for field in &index.fields {
        let column = &columns[*field];
        msgpack::encode_map(&mut row, 5 + u32::from(column.collation.is_some()));
        msgpack::encode_str(&mut row, b"field");
        msgpack::encode_uint(&mut row, *field as u64);
        let mut put = |name: &str, value: &str| {
            msgpack::encode_str(&mut row, name.as_bytes());
            msgpack::encode_str(&mut row, value.as_bytes());
        };
        put("type", column.ty.field_name());
        put("sort_order", "asc");
        put("nullable_action", if column.is_nullable { "none" } else { "abort" });
        msgpack::encode_str(&mut row, b"is_nullable");
        msgpack::encode_bool(&mut row, column.is_nullable);
        if let Some(collation) = column.collation {
            msgpack::encode_str(&mut row, b"collation");
            msgpack::encode_uint(&mut row, u64::from(collation));
        }
    }
    row
}
