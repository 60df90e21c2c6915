//! CREATE TABLE: the rows of a table and of what comes with it.

use super::{Ddl, NewColumn, NewIndex};
use crate::constraint::Declared;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::value::Value;
use database::{Operation, SCHEMA_ID, SPACE_ID};
use sqlparser::ast;
use tuple::{IndexId, SpaceId, msgpack};

/// Bytes of a name.
const NAME_MAX: usize = 65_000;

impl Ddl<'_> {
    pub(super) fn create_table(&self, create: &ast::CreateTable) -> Result<u64> {
        self.dialect.check_new(&create.name)?;
        let name = self.dialect.object_name(&create.name)?;
        if create.partition_of.is_some() || create.partition_by.is_some() && self.dialect == Dialect::Postgres {
            return Err(Error::unsupported("PARTITION of a table"));
        }
        create.columns.iter().try_for_each(|column| self.check_null_default(column))?;
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
                Dialect::Postgres => format!("relation \"{}\" already exists", self.local(&name)),
            };
            let is_type = crate::user_types::by_name(self.database, &name).is_some();
            if is_type && self.dialect == Dialect::Postgres && !create.temporary {
                let what = format!("type \"{name}\" already exists");
                return Err(Error::new(Condition::DuplicateObject, what));
            }
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
        // Columns that sequences fill, and what is said of those.
        let mut serials = Vec::new();
        let mut primary: Option<NewIndex> = None;
        let mut declared = Declared::default();
        if self.dialect == Dialect::Mysql {
            // Names come before most of what is said of them.
            let mut names: Vec<String> = Vec::with_capacity(create.columns.len());
            for column in &create.columns {
                self.check_default_word(column)?;
                let name = self.dialect.fold(&column.name);
                if names.iter().any(|known| self.dialect.is_same(known, &name)) {
                    return Err(self.column_is_there(&name));
                }
                names.push(name);
            }
        }
        for (number, column) in create.columns.iter().enumerate() {
            let (column, keys) = self.new_column(&name, column, &mut declared)?;
            if columns.iter().any(|known: &NewColumn| self.dialect.is_same(&known.name, &column.name)) {
                return Err(self.column_is_there(&column.name));
            }
            if keys.is_generated && self.dialect == Dialect::Postgres {
                serials.push((number, keys.sequence));
            } else if keys.is_generated && generated.replace(number).is_some() {
                return Err(Error::new(Condition::InvalidTable, "there can be only one auto-increment column"));
            }
            if keys.is_primary {
                self.set_primary(
                    &name,
                    &mut primary,
                    NewIndex { name: keys.primary_name, is_unique: true, fields: vec![number] },
                )?;
            }
            if keys.is_unique {
                indexes.push(NewIndex { name: keys.unique_name, is_unique: true, fields: vec![number] });
            }
            columns.push(column);
        }
        for constraint in create.constraints.iter().filter(|constraint| self.computed_key(constraint).is_none()) {
            self.add_constraint(&name, &columns, constraint, (&mut primary, &mut indexes), &mut declared)?;
        }
        let mut said = Vec::new();
        for (field, options) in serials {
            let is_key = primary.as_ref().is_some_and(|primary| primary.fields.contains(&field));
            if is_key && generated.is_none() {
                (generated, said) = (Some(field), options);
                continue;
            }
            columns[field].default = Some(self.put_serial(&name, &columns[field].name, &options, create.temporary)?);
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
                Dialect::Tarantool => name.clone(),
                // PostgreSQL's catalogue has tables and sequences under one roof, so the name of the table would not do.
                Dialect::Postgres | Dialect::Mysql => format!("{name}_{}_seq", columns[field].name),
            };
            let sequence = self.full_name(&sequence, create.temporary);
            match said.is_empty() {
                true => self.put_sequence(space_id, &sequence, field, self.first_number(create))?,
                false => self.put_linked(space_id, &sequence, field, &said)?,
            }
        }
        if !declared.is_empty() {
            self.put_constraints(&*self.table_named(&name)?, &declared)?;
        }
        let of_columns: Vec<_> = create.columns.iter().flat_map(|column| self.computed_keys_of(column)).collect();
        let computed = of_columns.iter().chain(&create.constraints);
        for constraint in computed.filter(|constraint| self.computed_key(constraint).is_some()) {
            self.add_key(&*self.table_named(&name)?, constraint)?;
        }
        if let Some(comment) = crate::comments::given(create) {
            self.comment_table(&*self.table_named(&name)?, Some(&comment))?;
        }
        if !create.temporary {
            self.put_waiting(&name)?;
        }
        Ok(1)
    }

    /// A column of the name stands before this one.
    fn column_is_there(&self, name: &str) -> Error {
        let message = match self.dialect {
            Dialect::Tarantool => format!("Space field '{name}' is duplicate"),
            Dialect::Mysql => format!("Duplicate column name '{name}'"),
            Dialect::Postgres => format!("column \"{name}\" specified more than once"),
        };
        Error::new(Condition::DuplicateColumn, message)
    }

    /// The name in the catalog of what is made.
    pub(crate) fn full_name(&self, name: &str, is_temporary: bool) -> String {
        match is_temporary {
            true => crate::Sql::of(self.database).new_own_name(self.database, name),
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
    pub(super) fn first_number(&self, create: &ast::CreateTable) -> u64 {
        let ast::CreateTableOptions::Plain(options) = &create.table_options else { return 1 };
        let mut numbers = options.iter().filter_map(|option| {
            let text = option.to_string();
            let (name, value) = text.split_once('=')?;
            name.trim().eq_ignore_ascii_case("auto_increment").then(|| value.trim().parse::<u64>().ok())?
        });
        numbers.next().map_or(1, |number| number.clamp(1, i64::MAX as u64))
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

    pub(super) fn put_space(
        &self,
        id: u64,
        name: &str,
        engine: &str,
        columns: &[NewColumn],
        is_temporary: bool,
    ) -> Result<()> {
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

    pub(super) fn engine_of(&self, create: &ast::CreateTable) -> Result<&'static str> {
        let default = match self.dialect {
            Dialect::Tarantool => self.context.session.default_engine(),
            _ => "memtx",
        };
        let options = match &create.table_options {
            ast::CreateTableOptions::None => return Ok(default),
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
        Ok(default)
    }
}
