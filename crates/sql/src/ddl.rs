//! CREATE, ALTER, DROP: rows of the system spaces, as `box.schema` writes them.

mod columns;
mod copies;
mod drop;
mod likes;
mod sequences;

pub(crate) use likes::respell as respell_likes;
pub(crate) use sequences::{is_alter as is_alter_sequence, respell as respell_sequences};

use crate::constraint::Declared;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Context, Database, INDEX_ID, Operation, SCHEMA_ID, SEQUENCE_ID, SPACE_ID, SPACE_SEQUENCE_ID, Space};
use sqlparser::ast::{self, AlterTableOperation, ColumnOption, ObjectType, TableConstraint};
use std::rc::Rc;
use storage::Key;
use tuple::{IndexId, SpaceId, msgpack};

/// A change of the schema that is under way.
pub(crate) struct Ddl<'d> {
    pub(crate) database: &'d Database,
    pub(crate) context: &'d Rc<Context>,
    pub(crate) dialect: Dialect,
}

/// A column that is to be.
#[derive(Clone)]
pub(crate) struct NewColumn {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) declared: String,
    pub(crate) is_nullable: bool,
    pub(crate) default: Option<String>,
    pub(crate) collation: Option<u32>,
    pub(crate) on_update: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) is_hidden: bool,
}

impl NewColumn {
    /// The key of rows that were declared without one.
    pub(crate) fn hidden_key() -> Self {
        NewColumn {
            name: HIDDEN_KEY.to_string(),
            ty: Type::of(Base::Uint8),
            declared: String::new(),
            is_nullable: false,
            default: None,
            collation: None,
            on_update: None,
            comment: None,
            is_hidden: true,
        }
    }
}

/// The column that is the key of a table that was declared without one.
pub(crate) const HIDDEN_KEY: &str = "__rowid";

/// An index that is to be.
pub(crate) struct NewIndex {
    pub(crate) name: String,
    pub(crate) is_unique: bool,
    pub(crate) fields: Vec<usize>,
}

/// Bytes of a name.
const NAME_MAX: usize = 65_000;

impl Ddl<'_> {
    /// Carries out a statement of the schema. Returns the number of objects that were changed, as Tarantool counts them. Errors: those of the system spaces;
    /// what is not there.
    pub(crate) fn run(&self, statement: &ast::Statement) -> Result<u64> {
        match statement {
            ast::Statement::CreateTable(create) => self.create_table(create),
            ast::Statement::CreateIndex(create) => self.create_index(create),
            ast::Statement::Comment { object_type, object_name, comment, if_exists } => {
                self.comment(*object_type, object_name, comment.as_deref(), *if_exists)
            }
            ast::Statement::AlterTable(alter) => self.alter_table(alter),
            ast::Statement::AlterIndex { name, operation: ast::AlterIndexOperation::RenameIndex { index_name } } => {
                let (old, new) = (self.dialect.object_name(name)?, self.dialect.object_name(index_name)?);
                let spaces = self.database.catalog.spaces();
                let owner = spaces.into_iter().find(|space| !space.is_system() && space.index_by_name(&old).is_some());
                match owner {
                    Some(space) => {
                        self.rename_index(&*self.table_named(&space.name())?, &old, &new)?;
                        Ok(0)
                    }
                    None => {
                        let what = format!("relation \"{old}\" does not exist");
                        Err(Error::new(Condition::UndefinedTable, what))
                    }
                }
            }
            ast::Statement::CreateSequence { if_not_exists, name, sequence_options, .. } => {
                self.create_sequence(name, *if_not_exists, sequence_options)
            }
            ast::Statement::Drop { object_type, if_exists, names, table, cascade, temporary, .. } => {
                let mut count = 0;
                let sql = crate::Sql::of(self.database);
                for name in names {
                    if *temporary {
                        sql.speak(self.context);
                        let name = self.dialect.object_name(name)?;
                        if sql.own_space(self.database, &name).is_none() {
                            if *if_exists {
                                continue;
                            }
                            let what = format!("Unknown table '{name}'");
                            return Err(Error::new(Condition::UndefinedTable, what).mysql(1051));
                        }
                    }
                    count += match object_type {
                        ObjectType::Table => {
                            if *cascade && self.dialect == Dialect::Postgres {
                                self.drop_references(name)?;
                            }
                            self.drop_table(name, *if_exists)?
                        }
                        ObjectType::Sequence => self.drop_sequence(name, *if_exists)?,
                        ObjectType::Index => self.drop_index(name, table.as_ref(), *if_exists)?,
                        other => return Err(Error::unsupported(format!("DROP {other}"))),
                    };
                }
                Ok(count)
            }
            ast::Statement::Truncate(truncate) => self.truncate(truncate),
            other => Err(Error::unsupported(format!(
                "'{}'",
                other.to_string().split_whitespace().take(2).collect::<Vec<_>>().join(" ")
            ))),
        }
    }

    /// True for CREATE TABLE AS.
    pub(crate) fn makes_of_query(statement: &ast::Statement) -> bool {
        matches!(statement, ast::Statement::CreateTable(create) if create.query.is_some())
    }

    /// True if a statement is run as one transaction after another.
    pub(crate) fn goes_in_steps(statement: &ast::Statement) -> bool {
        if let ast::Statement::CreateTable(create) = statement {
            return create.query.is_some();
        }
        let ast::Statement::AlterTable(alter) = statement else { return false };
        alter.operations.len() == 1
            && matches!(
                alter.operations[0],
                AlterTableOperation::AddConstraint {
                    constraint: TableConstraint::Check(_)
                        | TableConstraint::ForeignKey(_)
                        | TableConstraint::Unique(_)
                        | TableConstraint::Index(_),
                    ..
                }
            )
    }

    pub(crate) fn table(&self, name: &ast::ObjectName) -> Result<Rc<Table>> {
        self.table_named(&self.dialect.object_name(name)?)
    }

    /// The table of a name as it is in the catalog.
    pub(crate) fn table_named(&self, name: &str) -> Result<Rc<Table>> {
        crate::Sql::of(self.database).speak(self.context);
        Table::find(self.database, self.dialect, name)
    }

    /// An index over fields, of a name or the first free one that begins so.
    pub(crate) fn add_index(&self, table: &Table, name: &str, fields: &[usize], is_unique: bool) -> Result<()> {
        let columns = self.columns_of(table);
        let number = table.indexes.iter().map(|index| u64::from(index.id.0)).max().map_or(0, |last| last + 1);
        let mut names = std::iter::once(name.to_string()).chain((2..).map(|number| format!("{name}_{number}")));
        let is_free = |name: &String| !table.indexes.iter().any(|index| self.dialect.is_same(&index.name, name));
        let name = names.find(is_free).unwrap_or_default();
        let index = NewIndex { name: name.clone(), is_unique, fields: fields.to_vec() };
        self.put_index(u64::from(table.space.id.0), number, &name, &index, &columns)
    }

    pub(crate) fn system(&self, id: SpaceId) -> Result<Rc<Space>> {
        Ok(self.database.space(id)?)
    }

    pub(crate) fn execute(&self, id: SpaceId, operation: Operation<'_>) -> Result<()> {
        self.database.execute(self.context, &self.system(id)?, operation)?;
        Ok(())
    }

    pub(crate) fn delete(&self, id: SpaceId, key: &[u64]) -> Result<()> {
        let key = encoded_key(key);
        self.execute(id, Operation::Delete { index_id: IndexId::PRIMARY, key: &key })
    }

    /// What goes together with a table goes whoever drops it: the right to do so is asked for where the table's own row is removed, in the same transaction.
    pub(crate) fn as_admin<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let acting = self.context.act_as(database::ADMIN, &self.database.catalog);
        let done = work();
        self.context.act_again(acting);
        done
    }

    fn create_table(&self, create: &ast::CreateTable) -> Result<u64> {
        let name = self.dialect.object_name(&create.name)?;
        let sql = crate::Sql::of(self.database);
        sql.speak(self.context);
        let known = match create.temporary {
            true => sql.own_space(self.database, &name),
            false => self.database.catalog.space_by_name(&name),
        };
        if known.is_some() {
            if create.if_not_exists {
                return Ok(0);
            }
            let message = match self.dialect {
                Dialect::Tarantool => format!("Space '{name}' already exists"),
                Dialect::Mysql => format!("Table '{name}' already exists"),
                Dialect::Postgres => format!("relation \"{name}\" already exists"),
            };
            return Err(Error::new(Condition::DuplicateTable, message));
        }
        if create.inherits.is_some() {
            return Err(Error::unsupported("CREATE TABLE ... INHERITS"));
        }
        if create.temporary {
            self.own_session()?;
            if self.engine_of(create)? != "memtx" {
                return Err(Error::unsupported("a temporary table on disk"));
            }
        }
        match &create.like {
            Some(ast::CreateTableLikeKind::Plain(like)) if create.query.is_none() => {
                return self.create_like(create, &name, &like.name);
            }
            Some(ast::CreateTableLikeKind::Parenthesized(like)) => return self.create_like_with(create, &name, like),
            Some(_) => return Err(Error::unsupported("CREATE TABLE LIKE with more than that")),
            None => {}
        }
        if let Some(query) = &create.query {
            return self.create_as(create, &name, query);
        }
        if name.len() > NAME_MAX || name.is_empty() {
            return Err(Error::new(Condition::InvalidTable, format!("a name has 1 to {NAME_MAX} bytes")));
        }
        let engine = self.engine_of(create)?;
        let mut columns = Vec::new();
        let mut indexes: Vec<NewIndex> = Vec::new();
        let mut generated = None;
        let mut primary: Option<NewIndex> = None;
        let mut declared = Declared::default();
        for (number, column) in create.columns.iter().enumerate() {
            let (column, keys) = self.new_column(&name, column, &mut declared)?;
            if columns.iter().any(|other: &NewColumn| self.dialect.is_same(&other.name, &column.name)) {
                let message = match self.dialect {
                    Dialect::Tarantool => format!("Space field '{}' is duplicate", column.name),
                    Dialect::Mysql => format!("Duplicate column name '{}'", column.name),
                    Dialect::Postgres => format!("column \"{}\" specified more than once", column.name),
                };
                return Err(Error::new(Condition::DuplicateColumn, message));
            }
            if keys.is_generated && generated.replace(number).is_some() {
                return Err(Error::new(Condition::InvalidTable, "there can be only one auto-increment column"));
            }
            if keys.is_primary {
                self.set_primary(
                    &name,
                    &mut primary,
                    NewIndex { name: String::new(), is_unique: true, fields: vec![number] },
                )?;
            }
            if keys.is_unique {
                indexes.push(NewIndex { name: String::new(), is_unique: true, fields: vec![number] });
            }
            columns.push(column);
        }
        for constraint in &create.constraints {
            self.add_constraint(&name, &columns, constraint, (&mut primary, &mut indexes), &mut declared)?;
        }
        let is_outside = |field: usize| primary.as_ref().is_none_or(|primary| !primary.fields.contains(&field));
        if self.dialect == Dialect::Postgres
            && let Some(field) = generated.take_if(|field| is_outside(*field))
        {
            // Only a part of the primary key is filled by the space itself.
            let sequence = self.full_name(&format!("{name}_{}_seq", columns[field].name), create.temporary);
            let sequence = self.free_sequence_name(&sequence);
            self.put_sequence_row(&sequence, 1, create.temporary)?;
            columns[field].default = Some(format!("nextval('{}')", sequence.replace('\'', "''")));
        }
        let primary = match primary {
            Some(primary) => primary,
            None if self.dialect == Dialect::Tarantool => {
                let what = format!("Failed to create space '{name}': PRIMARY KEY missing");
                return Err(Error::new(Condition::InvalidTable, what));
            }
            None => {
                if generated.is_some() {
                    let what = "an auto-increment column of a table without a primary key";
                    return Err(Error::unsupported(what).hint("Declare the column PRIMARY KEY."));
                }
                generated = Some(columns.len());
                columns.push(NewColumn::hidden_key());
                NewIndex { name: String::new(), is_unique: true, fields: vec![columns.len() - 1] }
            }
        };
        for field in &primary.fields {
            columns[*field].is_nullable = false;
        }
        let space_id = self.new_table_id(create.temporary)?;
        self.put_space(space_id, &self.full_name(&name, create.temporary), engine, &columns, create.temporary)?;
        if create.temporary {
            self.own(space_id, create.on_commit.as_ref())?;
        }
        let mut names: Vec<String> = Vec::new();
        for (number, index) in std::iter::once(&primary).chain(&indexes).enumerate() {
            let mut index_name = self.index_name(&name, index, number);
            if index_name.is_empty() {
                index_name =
                    self.free_index_name(&name, index, &columns, |known| names.iter().any(|name| name == known));
            }
            if self.dialect == Dialect::Mysql && names.iter().any(|known| known.eq_ignore_ascii_case(&index_name)) {
                return Err(Error::new(Condition::DuplicateObject, format!("Duplicate key name '{index_name}'")));
            }
            self.put_index(space_id, number as u64, &index_name, index, &columns)?;
            names.push(index_name);
        }
        if let Some(field) = generated {
            let sequence = match self.dialect {
                Dialect::Postgres => format!("{name}_{}_seq", columns[field].name),
                _ => name.clone(),
            };
            let sequence = self.full_name(&sequence, create.temporary);
            let start = self.first_number(create);
            self.put_sequence(space_id, &sequence, field, start)?;
        }
        if !declared.is_empty() {
            self.put_constraints(&*self.table_named(&name)?, &declared)?;
        }
        if let Some(comment) = crate::comments::given(create) {
            self.comment_table(&*self.table_named(&name)?, Some(&comment))?;
        }
        if !create.temporary {
            self.put_waiting(&name)?;
        }
        Ok(1)
    }

    /// The name in the catalog of what is made.
    pub(crate) fn full_name(&self, name: &str, is_temporary: bool) -> String {
        match is_temporary {
            true => crate::temporary::own_name(self.context.session.id, name),
            false => name.to_string(),
        }
    }

    /// A number for a table that is made.
    pub(crate) fn new_table_id(&self, is_temporary: bool) -> Result<u64> {
        match is_temporary {
            true => Ok(u64::from(self.database.next_session_id())),
            false => self.as_admin(|| self.new_space_id()),
        }
    }

    /// The number that a table's first row gets: `AUTO_INCREMENT = n`.
    fn first_number(&self, create: &ast::CreateTable) -> u64 {
        let ast::CreateTableOptions::Plain(options) = &create.table_options else { return 1 };
        let mut numbers = options.iter().filter_map(|option| {
            let text = option.to_string();
            let (name, value) = text.split_once('=')?;
            name.trim().eq_ignore_ascii_case("auto_increment").then(|| value.trim().parse::<u64>().ok())?
        });
        numbers.next().map_or(1, |number| number.clamp(1, i64::MAX as u64))
    }

    /// The number of the collation that a name of MySQL's means.
    fn collation_of(&self, name: &str) -> Option<u32> {
        let known = self.database.catalog.collation_by_name(crate::mysql::collation_name(name)?);
        known.map(|collation| collation.id())
    }

    fn engine_of(&self, create: &ast::CreateTable) -> Result<&'static str> {
        let options = match &create.table_options {
            ast::CreateTableOptions::None => return Ok("memtx"),
            ast::CreateTableOptions::With(options)
            | ast::CreateTableOptions::Plain(options)
            | ast::CreateTableOptions::Options(options)
            | ast::CreateTableOptions::TableProperties(options) => options,
        };
        for option in options {
            let text = option.to_string();
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            if name.trim().eq_ignore_ascii_case("engine") {
                return match value.trim().trim_matches(['\'', '"']).to_ascii_lowercase().as_str() {
                    "memtx" | "memory" => Ok("memtx"),
                    "vinyl" | "disk" => Ok("vinyl"),
                    // What programs for other servers say.
                    "innodb" | "myisam" | "aria" | "rocksdb" | "tokudb" | "heap" if self.dialect == Dialect::Mysql => {
                        Ok("memtx")
                    }
                    other => {
                        Err(Error::new(Condition::UndefinedObject, format!("Space engine '{other}' does not exist")))
                    }
                };
            }
        }
        Ok("memtx")
    }

    fn set_primary(&self, table: &str, primary: &mut Option<NewIndex>, index: NewIndex) -> Result<()> {
        match primary.replace(index) {
            None => Ok(()),
            Some(_) => {
                let what = format!("Failed to create space '{table}': primary key has been already declared");
                Err(Error::new(Condition::InvalidTable, what))
            }
        }
    }

    fn index_name(&self, table: &str, index: &NewIndex, number: usize) -> String {
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
    fn free_index_name(
        &self,
        table: &str,
        index: &NewIndex,
        columns: &[NewColumn],
        is_taken: impl Fn(&str) -> bool,
    ) -> String {
        let names: Vec<&str> = index.fields.iter().map(|field| columns[*field].name.as_str()).collect();
        let (first, joint) = match self.dialect {
            Dialect::Mysql => (names.first().map_or_else(String::new, ToString::to_string), "_"),
            _ => (format!("{table}_{}_key", names.join("_")), ""),
        };
        let from = if self.dialect == Dialect::Mysql { 2 } else { 1 };
        let numbered = (from..).map(|number| format!("{first}{joint}{number}"));
        std::iter::once(first.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
    }

    fn new_column(
        &self,
        table: &str,
        column: &ast::ColumnDef,
        declared_constraints: &mut Declared,
    ) -> Result<(NewColumn, ColumnKeys)> {
        let mut ty = Type::of_ast(self.dialect, &column.data_type)?;
        let declared = column.data_type.to_string();
        if self.dialect == Dialect::Mysql
            && matches!(column.data_type, ast::DataType::Char(None) | ast::DataType::Character(None))
        {
            ty.length = 1;
        }
        let mut new = NewColumn {
            name: self.dialect.fold(&column.name),
            ty,
            is_nullable: true,
            default: None,
            collation: None,
            on_update: None,
            comment: None,
            is_hidden: false,
            declared: declared.clone(),
        };
        if self.dialect == Dialect::Mysql && ty.base == Base::Text {
            // Text is compared without regard to case, if nothing else is said.
            new.collation = self.collation_of("utf8mb4_0900_ai_ci");
        }
        new.collation = new.collation.or(self.order_of_documents(ty));
        let is_serial = declared.to_ascii_lowercase().contains("serial");
        let mut keys = ColumnKeys { is_primary: false, is_unique: false, is_generated: is_serial };
        new.is_nullable = !is_serial;
        for option in &column.options {
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => new.is_nullable = false,
                ColumnOption::Default(expr) => new.default = Some(expr.to_string()),
                ColumnOption::PrimaryKey(_) => keys.is_primary = true,
                ColumnOption::Unique(_) => keys.is_unique = true,
                ColumnOption::Comment(comment) => {
                    crate::comments::check(comment)?;
                    new.comment = Some(comment.clone()).filter(|comment| !comment.is_empty());
                }
                ColumnOption::Collation(name) if self.dialect == Dialect::Mysql => {
                    new.collation = self.collation_of(&self.dialect.object_name(name)?);
                }
                ColumnOption::CharacterSet(name) => {
                    if name.to_string().eq_ignore_ascii_case("binary") {
                        new.collation = None;
                    }
                }
                ColumnOption::OnUpdate(expr) => new.on_update = Some(expr.to_string()),
                ColumnOption::Invisible => {}
                ColumnOption::Collation(name) => {
                    let name = self.dialect.object_name(name)?;
                    let found = self
                        .database
                        .catalog
                        .collation_by_name(&name)
                        .or_else(|| self.database.catalog.collation_by_name(&name.to_lowercase()));
                    match found {
                        Some(collation) => new.collation = Some(collation.id()),
                        None => {
                            let what = format!("Collation '{name}' does not exist");
                            let error = Error::new(Condition::UndefinedObject, what);
                            return Err(error.tarantool(database::ErrorCode::NoSuchCollation));
                        }
                    }
                }
                ColumnOption::Generated { generation_expr: None, .. } | ColumnOption::Identity(_) => {
                    keys.is_generated = true;
                    new.is_nullable = false;
                }
                ColumnOption::DialectSpecific(tokens) => {
                    let text = tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                    match text.to_ascii_uppercase().as_str() {
                        "AUTOINCREMENT" => keys.is_generated = true,
                        "AUTO_INCREMENT" => {
                            keys.is_generated = true;
                            new.is_nullable = false;
                        }
                        _ => return Err(Error::unsupported(format!("'{text}' of column {}", new.name))),
                    }
                }
                ColumnOption::Check(check) => {
                    let name = option.name.as_ref().or(check.name.as_ref()).map(|name| self.dialect.fold(name));
                    declared_constraints.checks.push((name, Some(new.name.clone()), (*check.expr).clone()));
                }
                ColumnOption::ForeignKey(key) => {
                    let name = option.name.as_ref().or(key.name.as_ref()).map(|name| self.dialect.fold(name));
                    let mut key = key.clone();
                    key.columns = vec![column.name.clone()];
                    declared_constraints.keys.push((name, key));
                }
                other => return Err(Error::unsupported(format!("'{other}' of column {}", new.name))),
            }
        }
        if self.dialect == Dialect::Mysql {
            if let Some(default) = &new.default
                && default.eq_ignore_ascii_case("null")
            {
                if !new.is_nullable {
                    let what = format!("Invalid default value for '{}'", new.name);
                    return Err(Error::new(Condition::InvalidDefault, what));
                }
                new.default = None;
            }
            self.check_default(&new)?;
        }
        if self.dialect == Dialect::Postgres {
            // A text that is no value of the column is refused now.
            let literal = new.default.as_deref().and_then(|text| text.strip_prefix('\'')?.strip_suffix('\''));
            if let Some(text) = literal.filter(|text| !text.contains(['\'', '\\'])) {
                crate::cast::cast(self.dialect, Value::text(text), new.ty, crate::cast::Strictness::Assignment)?;
            }
        }
        if keys.is_generated && !ty.is_integer() {
            let what = format!(
                "Can't create or modify index 'pk_unnamed_{table}_1' in space '{table}': sequence cannot be used with a non-integer key"
            );
            return Err(Error::new(Condition::InvalidTable, what).tarantool(database::ErrorCode::ModifyIndex));
        }
        Ok((new, keys))
    }

    fn fields_of(&self, table: &str, columns: &[NewColumn], listed: &[ast::IndexColumn]) -> Result<Vec<usize>> {
        let mut fields = Vec::new();
        for column in listed {
            let name = match &column.column.expr {
                ast::Expr::Identifier(ident) => self.dialect.fold(ident),
                // A number of characters that an index looks at: it looks at all of them.
                ast::Expr::Function(function) if self.dialect == Dialect::Mysql && is_prefix(function) => {
                    self.dialect.object_name(&function.name)?
                }
                other => return Err(Error::unsupported(format!("an index over '{other}'"))),
            };
            let found = columns.iter().position(|column| self.dialect.is_same(&column.name, &name));
            fields.push(found.ok_or_else(|| {
                let what = match self.dialect {
                    Dialect::Tarantool => format!("Can’t resolve field '{name}'"),
                    Dialect::Mysql => format!("Key column '{name}' doesn't exist in table"),
                    Dialect::Postgres => format!("column \"{name}\" of relation \"{table}\" does not exist"),
                };
                Error::new(Condition::UndefinedColumn, what)
            })?);
        }
        Ok(fields)
    }

    fn add_constraint(
        &self,
        table: &str,
        columns: &[NewColumn],
        constraint: &TableConstraint,
        (primary, indexes): (&mut Option<NewIndex>, &mut Vec<NewIndex>),
        declared: &mut Declared,
    ) -> Result<()> {
        let named = |name: &Option<ast::Ident>| name.as_ref().map_or_else(String::new, |name| self.dialect.fold(name));
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let fields = self.fields_of(table, columns, &key.columns)?;
                self.set_primary(table, primary, NewIndex { name: named(&key.name), is_unique: true, fields })
            }
            TableConstraint::Unique(key) => {
                let fields = self.fields_of(table, columns, &key.columns)?;
                let name = named(&key.index_name.clone().or_else(|| key.name.clone()));
                indexes.push(NewIndex { name, is_unique: true, fields });
                Ok(())
            }
            TableConstraint::Index(key) => {
                let fields = self.fields_of(table, columns, &key.columns)?;
                indexes.push(NewIndex { name: named(&key.name), is_unique: false, fields });
                Ok(())
            }
            TableConstraint::Check(check) => {
                let name = check.name.as_ref().map(|name| self.dialect.fold(name));
                declared.checks.push((name, None, (*check.expr).clone()));
                Ok(())
            }
            TableConstraint::ForeignKey(key) => {
                let name = key.name.as_ref().or(key.index_name.as_ref()).map(|name| self.dialect.fold(name));
                declared.keys.push((name, key.clone()));
                Ok(())
            }
            other => Err(Error::unsupported(format!("'{other}'"))),
        }
    }

    /// The next number of a space, as `box.schema.space.create` finds it.
    pub(crate) fn new_space_id(&self) -> Result<u64> {
        let schema = self.system(SCHEMA_ID)?;
        let mut key = Vec::new();
        msgpack::encode_array(&mut key, 1);
        msgpack::encode_str(&mut key, b"max_id");
        let mut ops = Vec::new();
        msgpack::encode_array(&mut ops, 1);
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, b"+");
        msgpack::encode_uint(&mut ops, 1);
        msgpack::encode_uint(&mut ops, 1);
        loop {
            let update = Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 };
            let row = match self.database.execute(self.context, &schema, update)? {
                Some(row) => row,
                None => {
                    let top = self.database.catalog.spaces().into_iter().map(|space| space.id.0);
                    let top = top.filter(|id| *id < database::SESSION_ID_MIN).max().unwrap_or(0);
                    let mut first = Vec::new();
                    msgpack::encode_array(&mut first, 2);
                    msgpack::encode_str(&mut first, b"max_id");
                    msgpack::encode_uint(&mut first, u64::from(top.max(511)) + 1);
                    match self.database.execute(self.context, &schema, Operation::Insert { tuple: &first })? {
                        Some(row) => row,
                        None => return Err(Error::new(Condition::System, "a space has got no number")),
                    }
                }
            };
            let id =
                row.field(1).and_then(|bytes| Value::decode(bytes).as_integer()).and_then(|id| u32::try_from(id).ok());
            let Some(id) = id else { return Err(Error::new(Condition::System, "_schema.max_id is no number")) };
            if self.database.catalog.space(SpaceId(id)).is_none() {
                return Ok(u64::from(id));
            }
        }
    }

    fn put_space(&self, id: u64, name: &str, engine: &str, columns: &[NewColumn], is_temporary: bool) -> Result<()> {
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, 7);
        msgpack::encode_uint(&mut row, id);
        msgpack::encode_uint(&mut row, u64::from(self.context.user(&self.database.catalog)));
        msgpack::encode_str(&mut row, name.as_bytes());
        msgpack::encode_str(&mut row, engine.as_bytes());
        msgpack::encode_uint(&mut row, columns.len() as u64);
        match is_temporary {
            true => row.extend_from_slice(&crate::temporary::options()),
            false => msgpack::encode_map(&mut row, 0),
        }
        msgpack::encode_array(&mut row, columns.len() as u32);
        for column in columns {
            self.encode_column(column, &mut row);
        }
        self.execute(SPACE_ID, Operation::Insert { tuple: &row })
    }

    pub(crate) fn encode_column(&self, column: &NewColumn, row: &mut Vec<u8>) {
        // What the engine's type does not say.
        let declared = match self.dialect {
            Dialect::Tarantool => None,
            Dialect::Mysql => Some(&column.declared).filter(|_| !column.is_hidden),
            Dialect::Postgres => Some(&column.declared).filter(|_| column.ty != Type::of(Base::Text)),
        };
        let count = 4
            + u32::from(column.default.is_some())
            + u32::from(column.collation.is_some())
            + u32::from(declared.is_some())
            + u32::from(column.on_update.is_some())
            + u32::from(column.comment.is_some())
            + u32::from(column.is_hidden);
        msgpack::encode_map(row, count);
        let mut put = |name: &str, value: &str| {
            msgpack::encode_str(row, name.as_bytes());
            msgpack::encode_str(row, value.as_bytes());
        };
        put("name", &column.name);
        put("type", column.ty.field_name());
        put("nullable_action", if column.is_nullable { "none" } else { "abort" });
        if let Some(default) = &column.default {
            put("default", default);
        }
        if let Some(declared) = declared {
            put(if self.dialect == Dialect::Mysql { "mysql_type" } else { "sql_type" }, declared);
        }
        if let Some(on_update) = &column.on_update {
            put("on_update", on_update);
        }
        if let Some(comment) = &column.comment {
            put("comment", comment);
        }
        if column.is_hidden {
            msgpack::encode_str(row, b"sql_hidden");
            msgpack::encode_bool(row, true);
        }
        msgpack::encode_str(row, b"is_nullable");
        msgpack::encode_bool(row, column.is_nullable);
        if let Some(collation) = column.collation {
            msgpack::encode_str(row, b"collation");
            msgpack::encode_uint(row, u64::from(collation));
        }
    }

    fn put_index(&self, space_id: u64, number: u64, name: &str, index: &NewIndex, columns: &[NewColumn]) -> Result<()> {
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
        let row = encode_index(space_id, number, name, index, columns);
        self.execute(INDEX_ID, Operation::Insert { tuple: &row })
    }

    /// ALTER TABLE ADD of a constraint that is an index.
    fn add_key(&self, table: &Table, constraint: &TableConstraint) -> Result<()> {
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
        }
        let Some(primary) = primary else { return Ok(()) };
        let hidden = table.primary_key().iter().map(|(field, ..)| *field).find(|field| columns[*field].is_hidden);
        let Some(hidden) = hidden else {
            let what = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
            return Err(Error::new(Condition::InvalidTable, what));
        };
        let mut shape = self.shape_of(table)?;
        let name = primary.name.clone();
        let _ = hidden;
        self.show_primary(table, &mut shape, primary.fields, &name)?;
        self.reshape(table, shape)
    }

    /// The name of a sequence that fills a column: with a number, if another one has it, as of a table that has got another name.
    fn free_sequence_name(&self, name: &str) -> String {
        let is_free =
            |name: &String| self.dialect != Dialect::Postgres || self.database.catalog.sequence_by_name(name).is_none();
        let numbered = (1..).map(|number| format!("{name}{number}"));
        std::iter::once(name.to_string()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// A sequence. Returns its number.
    fn put_sequence_row(&self, name: &str, start: u64, is_temporary: bool) -> Result<u64> {
        let id = u64::from(match is_temporary {
            true => self.database.next_session_id(),
            false => self.database.next_sequence_id(),
        });
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, 9);
        msgpack::encode_uint(&mut row, id);
        msgpack::encode_uint(&mut row, u64::from(self.context.user(&self.database.catalog)));
        msgpack::encode_str(&mut row, name.as_bytes());
        msgpack::encode_uint(&mut row, 1);
        let least = if self.dialect == Dialect::Tarantool { 0 } else { 1 };
        msgpack::encode_uint(&mut row, least);
        msgpack::encode_uint(&mut row, i64::MAX as u64);
        msgpack::encode_uint(&mut row, start);
        msgpack::encode_uint(&mut row, 0);
        msgpack::encode_bool(&mut row, false);
        self.execute(SEQUENCE_ID, Operation::Insert { tuple: &row })?;
        Ok(id)
    }

    /// A sequence that fills a column of the primary key, made and dropped together with the table.
    pub(crate) fn put_sequence(&self, space_id: u64, name: &str, field: usize, start: u64) -> Result<()> {
        let name = &self.free_sequence_name(name);
        let id = self.put_sequence_row(name, start, space_id >= u64::from(database::SESSION_ID_MIN))?;
        let mut link = Vec::new();
        msgpack::encode_array(&mut link, 5);
        msgpack::encode_uint(&mut link, space_id);
        msgpack::encode_uint(&mut link, id);
        msgpack::encode_bool(&mut link, true);
        msgpack::encode_uint(&mut link, field as u64);
        msgpack::encode_str(&mut link, b"");
        self.execute(SPACE_SEQUENCE_ID, Operation::Insert { tuple: &link })
    }

    fn create_index(&self, create: &ast::CreateIndex) -> Result<u64> {
        let table = self.table(&create.table_name)?;
        if create.predicate.is_some() || !create.include.is_empty() {
            return Err(Error::unsupported("CREATE INDEX with WHERE or INCLUDE"));
        }
        let columns: Vec<NewColumn> = self.columns_of(&table);
        let fields = self.fields_of(&table.name, &columns, &create.columns)?;
        let name = match &create.name {
            Some(name) => self.dialect.object_name(name)?,
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
        let number = table.indexes.iter().map(|index| u64::from(index.id.0)).max().map_or(0, |last| last + 1);
        let index = NewIndex { name: name.clone(), is_unique: create.unique, fields };
        self.put_index(u64::from(table.space.id.0), number, &name, &index, &columns)?;
        Ok(1)
    }

    pub(crate) fn columns_of(&self, table: &Table) -> Vec<NewColumn> {
        let columns = table.columns.iter().map(|column| NewColumn {
            name: column.name.clone(),
            ty: column.ty,
            declared: column.raw_declared.clone().unwrap_or_default(),
            is_nullable: column.is_nullable,
            default: column.default.clone(),
            collation: column.collation.as_ref().map(|collation| collation.id()),
            on_update: column.on_update.clone(),
            comment: column.comment.clone(),
            is_hidden: column.is_hidden,
        });
        columns.collect()
    }

    fn alter_table(&self, alter: &ast::AlterTable) -> Result<u64> {
        if alter.operations.iter().all(|operation| matches!(operation, AlterTableOperation::OwnerTo { .. })) {
            return Ok(0);
        }
        if let Some(count) = self.alter_sequence(alter)? {
            return Ok(count);
        }
        for operation in &alter.operations {
            let table = match self.table(&alter.name) {
                Err(error) if error.condition() == Condition::UndefinedTable && alter.if_exists => return Ok(0),
                found => found?,
            };
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
                    })?;
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
                    self.add_column(&table, column_def, *if_not_exists, column_position.as_ref())?;
                }
                AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
                    self.drop_columns(&table, column_names, *if_exists)?;
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
                    self.change_column(&table, old_name, &column, column_position.as_ref())?;
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
                        Some(index) => {
                            self.delete(INDEX_ID, &[u64::from(table.space.id.0), u64::from(index.id.0)])?;
                        }
                        None => {
                            let what = format!("Can't DROP '{name}'; check that column/key exists");
                            return Err(Error::new(Condition::UndefinedObject, what));
                        }
                    }
                }
                AlterTableOperation::RenameConstraint { old_name, new_name } => {
                    let (old, new) = (self.dialect.fold(old_name), self.dialect.fold(new_name));
                    if !self.rename_constraint(&table, &old, &new)? && !self.rename_index(&table, &old, &new)? {
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
                AlterTableOperation::DropConstraint { name, if_exists, .. } => {
                    self.drop_named(&table, &self.dialect.fold(name), *if_exists)?;
                }
                AlterTableOperation::DropForeignKey { name, .. } => {
                    self.drop_named(&table, &self.dialect.fold(name), false)?;
                }
                AlterTableOperation::OwnerTo { .. } => {}
                other => return Err(Error::unsupported(format!("ALTER TABLE '{other}'"))),
            }
        }
        Ok(0)
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

/// True for `column(20)`.
fn is_prefix(function: &ast::Function) -> bool {
    let ast::FunctionArguments::List(list) = &function.args else { return false };
    matches!(list.args.as_slice(), [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value)))]
        if matches!(value.value, ast::Value::Number(..)))
}

/// What a column's own constraints say.
struct ColumnKeys {
    is_primary: bool,
    is_unique: bool,
    is_generated: bool,
}

pub(crate) fn encoded_key(parts: &[u64]) -> Vec<u8> {
    let mut key = Vec::new();
    msgpack::encode_array(&mut key, parts.len() as u32);
    parts.iter().for_each(|part| msgpack::encode_uint(&mut key, *part));
    key
}

/// Gives the column of a format another name.
fn set_name(column: &mut Vec<u8>, name: &str) {
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

/// Says of the column of a format whether it may be null.
fn set_nullable(column: &mut Vec<u8>, is_nullable: bool) {
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
