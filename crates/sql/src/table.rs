//! Tables: spaces as statements see them.

use crate::ddl::Identity;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::generated::Generated;
use crate::selectivity::Alike;
use crate::spelled::Spelled;
use crate::types::{Base, Type};
use database::{Database, SPACE_ID, Space};
use std::rc::Rc;
use std::sync::Arc;
use storage::IndexKind;
use tuple::msgpack::{self, Kind, Reader};
use tuple::{Collation, IndexId};

/// A table.
pub(crate) struct Table {
    pub(crate) space: Rc<Space>,
    pub(crate) name: String,
    /// The name that finds it again: of PostgreSQL's dialect with the schema that it is in, if that is not `public`.
    pub(crate) full: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) indexes: Vec<Index>,
    /// The column that a sequence fills where a row says nothing or null, and the sequence.
    pub(crate) generated: Option<(usize, u32)>,
}

/// A column.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) is_nullable: bool,
    /// An expression, as text.
    pub(crate) default: Option<String>,
    pub(crate) collation: Option<Arc<Collation>>,
    /// The type as MySQL's clients have declared it, and as it is shown to them.
    pub(crate) declared: Option<String>,
    /// The type as it was declared, in the words of its dialect.
    pub(crate) raw_declared: Option<String>,
    /// Its type was declared in PostgreSQL's dialect.
    pub(crate) is_declared_in_postgres: bool,
    /// What an UPDATE that says nothing of the column puts there: an expression, as text.
    pub(crate) on_update: Option<String>,
    /// What was said of it.
    pub(crate) comment: Option<String>,
    /// The key of rows that were declared without one: nobody sees it who does not name it with its table.
    pub(crate) is_hidden: bool,
    /// PostgreSQL's GENERATED ... AS IDENTITY.
    pub(crate) identity: Option<Identity>,
    /// GENERATED ALWAYS AS.
    pub(crate) generated: Option<Generated>,
    /// The domain that its values are of.
    pub(crate) domain: Option<Rc<crate::user_types::UserType>>,
}

impl Column {
    /// True for a key that an index over more than columns has for itself: nobody can name it.
    pub(crate) fn is_key(&self) -> bool {
        self.is_hidden && self.generated.is_some()
    }
}

/// An index.
pub(crate) struct Index {
    pub(crate) id: IndexId,
    pub(crate) name: String,
    pub(crate) is_unique: bool,
    /// It is what a PRIMARY KEY or UNIQUE of its table says, and not one that CREATE UNIQUE INDEX has made.
    pub(crate) is_constraint: bool,
    pub(crate) is_ordered: bool,
    /// Fields, and whether one may be null; its collation.
    pub(crate) parts: Vec<(usize, bool, Option<Arc<Collation>>)>,
    /// What it says beyond its columns.
    pub(crate) spelled: Option<Rc<Spelled>>,
    /// By the number of parts, from one: rows that are alike in them, as far as that is known.
    pub(crate) alike: Option<Alike>,
}

impl Table {
    /// The table of a name. Errors: `UndefinedTable`; `Unsupported` if its rows have no columns.
    pub(crate) fn find(database: &Database, dialect: Dialect, name: &str) -> Result<Rc<Table>> {
        let space = crate::temporary::space_by_name(database, name).or_else(|| {
            // As it is written, if it is written as it is there.
            (dialect == Dialect::Tarantool)
                .then(|| database.catalog.space_by_name(&name.to_lowercase()))
                .flatten()
                .filter(|space| space.is_system())
        });
        // What is no table but a type has no rows.
        let space = space.filter(|space| crate::user_types::by_id(database, space.id.0).is_none());
        let Some(space) = space else {
            let message = match dialect {
                Dialect::Tarantool => format!("Space '{name}' does not exist"),
                Dialect::Mysql => format!("Table '{name}' doesn't exist"),
                Dialect::Postgres => format!("relation \"{name}\" does not exist"),
            };
            return Err(Error::new(Condition::UndefinedTable, message));
        };
        Ok(Rc::new(Self::of(database, space)?.named_in(database, dialect)))
    }

    /// A space as a table. Errors: `Unsupported` if its rows have no columns.
    pub(crate) fn of(database: &Database, space: Rc<Space>) -> Result<Table> {
        let def = space.def();
        let declared = declared_columns(database, &space);
        let columns: Vec<Column> = def
            .fields
            .iter()
            .enumerate()
            .map(|(number, field)| {
                let declared = declared.get(number);
                let raw = declared.and_then(|column| column.raw.as_deref());
                let user = raw.and_then(|raw| crate::user_types::of_declared(database, raw));
                Column {
                    name: field.name.clone(),
                    ty: user
                        .as_ref()
                        .map(|user| user.ty)
                        .or_else(|| declared.and_then(|column| column.ty))
                        // What was text before it was a type of its own is text.
                        .filter(|ty| ty.base != Base::Time || field.field_type.name() == "datetime")
                        .unwrap_or_else(|| Type::of_field(field.field_type)),
                    is_nullable: field.is_nullable,
                    default: declared.and_then(|column| column.default.clone()),
                    declared: declared.and_then(|column| column.shown.clone()),
                    raw_declared: declared.and_then(|column| column.raw.clone()),
                    is_declared_in_postgres: declared.is_some_and(|column| column.is_postgres),
                    on_update: declared.and_then(|column| column.on_update.clone()),
                    comment: declared.and_then(|column| column.comment.clone()),
                    collation: field.collation.clone().filter(|collation| !collation.is_binary()),
                    is_hidden: declared.is_some_and(|column| column.is_hidden),
                    identity: declared.and_then(|column| column.identity),
                    generated: declared.and_then(|column| column.generated.clone()),
                    domain: user.and_then(|user| user.domain().cloned()),
                }
            })
            .collect();
        if columns.is_empty() {
            let what = format!("SQL over space '{}', which has no format,", def.name);
            return Err(Error::unsupported(what).hint("Give it one: box.space.<name>:format({...})."));
        }
        let sql = crate::Sql::of(database);
        let has_unique = space.index_defs().iter().any(|index| index.is_unique && index.id != IndexId::PRIMARY);
        let alone = if has_unique { crate::unique::names(database, &space) } else { Vec::new() };
        let has_more = space.index_defs().iter().any(|index| index.id != IndexId::PRIMARY);
        let spelled = if has_more { crate::spelled::of_space(database, &space) } else { Vec::new() };
        let indexes = space
            .index_defs()
            .iter()
            .map(|index| (index, space.index_name(index.id)))
            .map(|(index, name)| Index {
                alike: match index.is_unique && index.key_def.parts().len() == 1 {
                    true => None,
                    false => sql.selectivity.of(database, &space, index),
                },
                id: index.id,
                is_constraint: index.is_unique && (index.id == IndexId::PRIMARY || !alone.contains(&name)),
                spelled: spelled.iter().find(|(known, _)| *known == name).map(|(_, spelled)| Rc::clone(spelled)),
                name,
                is_unique: index.is_unique,
                is_ordered: index.kind == IndexKind::Tree,
                parts: index
                    .key_def
                    .parts()
                    .iter()
                    .map(|part| {
                        (part.field_no as usize, part.is_nullable, part.collation.clone().filter(|c| !c.is_binary()))
                    })
                    .collect(),
            })
            .collect();
        let generated = space.sequence.borrow().as_ref().map(|link| (link.field_no as usize, link.sequence.def().id));
        let name = crate::temporary::short_name(&space);
        Ok(Table { full: name.clone(), name, columns, indexes, generated, space })
    }

    /// The same as a dialect calls it: PostgreSQL's without its schema.
    pub(crate) fn named_in(mut self, database: &Database, dialect: Dialect) -> Table {
        if dialect == Dialect::Postgres {
            self.name = crate::schemas::local(database, &self.full).to_string();
        }
        self
    }

    /// The number of a column. Those that indexes have for themselves are not found.
    pub(crate) fn column(&self, dialect: Dialect, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.is_key() && dialect.is_same(&column.name, name))
    }

    /// The fields of the primary key.
    pub(crate) fn primary_key(&self) -> &[(usize, bool, Option<Arc<Collation>>)] {
        self.indexes.first().map_or(&[], |index| &index.parts)
    }

    /// True if columns are computed of others.
    pub(crate) fn has_generated(&self) -> bool {
        self.columns.iter().any(|column| column.generated.is_some())
    }

    /// The numbers of those columns that everybody sees.
    pub(crate) fn visible(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden).map(|(number, _)| number)
    }

    /// Rows that there are, about.
    pub(crate) fn row_count(&self) -> u64 {
        match &self.space.rows {
            storage::Rows::Memory(rows) => rows.borrow().len() as u64,
            storage::Rows::Disk(disk, _) => disk.len_estimate().max(1),
            storage::Rows::Nowhere => 1000,
        }
    }
}

/// What the format of a space says of a column beyond what the engine looks at.
#[derive(Default)]
struct Declared {
    ty: Option<Type>,
    default: Option<String>,
    shown: Option<String>,
    on_update: Option<String>,
    comment: Option<String>,
    is_hidden: bool,
    is_postgres: bool,
    identity: Option<Identity>,
    generated: Option<Generated>,
    raw: Option<String>,
}

fn declared_columns(database: &Database, space: &Space) -> Vec<Declared> {
    let mut key = Vec::new();
    msgpack::encode_uint(&mut key, u64::from(space.id));
    let row = database.space(SPACE_ID).ok().and_then(|spaces| {
        let rows = spaces.rows.memory()?;
        rows.borrow().get(IndexId::PRIMARY, &key, 1)
    });
    row.and_then(|row| row.field(6).and_then(read_format)).unwrap_or_default()
}

fn read_format(bytes: &[u8]) -> Option<Vec<Declared>> {
    let mut reader = Reader::new(bytes);
    let count = reader.read_array().ok()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        let mut declared = Declared::default();
        if reader.kind().ok()? != Kind::Map {
            reader.read_value().ok()?;
            columns.push(declared);
            continue;
        }
        let mut is_virtual = false;
        for _ in 0..reader.read_map().ok()? {
            let name = reader.read_value().ok()?;
            let value = reader.read_value().ok()?;
            let text = Reader::new(value).read_str().ok().and_then(|text| std::str::from_utf8(text).ok());
            match (Reader::new(name).read_str().ok(), text) {
                (Some(b"generated"), Some(body)) => {
                    declared.generated = Some(Generated { body: body.to_string(), is_virtual: false });
                }
                (Some(b"sql_virtual"), None) => is_virtual = Reader::new(value).read_bool() == Ok(true),
                (Some(b"sql_hidden"), None) => declared.is_hidden = Reader::new(value).read_bool() == Ok(true),
                (Some(b"sql_type"), Some(text)) => {
                    declared.ty = match crate::user_types::is_declared(text) {
                        true => None,
                        false => read_type(Dialect::Postgres, text),
                    };
                    declared.is_postgres = true;
                    declared.raw = Some(text.to_string());
                }
                (Some(b"mysql_type"), Some(text)) => {
                    declared.ty = read_type(Dialect::Mysql, text);
                    declared.raw = Some(text.to_string());
                    declared.shown = Some(crate::mysql::schema::shown_type(text));
                }
                (Some(b"on_update"), Some(text)) => declared.on_update = Some(text.to_string()),
                (Some(b"sql_identity"), Some(text)) => declared.identity = Identity::of_word(text),
                (Some(b"comment"), Some(text)) => declared.comment = Some(text.to_string()),
                (Some(b"default"), Some(text)) => declared.default = Some(text.to_string()),
                _ => {}
            }
        }
        if let Some(generated) = &mut declared.generated {
            generated.is_virtual = is_virtual;
        }
        columns.push(declared);
    }
    Some(columns)
}

pub(crate) fn read_type(dialect: Dialect, text: &str) -> Option<Type> {
    if dialect == Dialect::Mysql {
        // Not all that a column can be is something that CAST knows.
        let parsed = dialect.parse(&format!("CREATE TABLE t (c {text})")).ok()?;
        let sqlparser::ast::Statement::CreateTable(create) = parsed.into_iter().next()? else { return None };
        return Type::of_ast(dialect, &create.columns.first()?.data_type).ok();
    }
    let statement = format!("SELECT CAST(NULL AS {text})");
    let parsed = dialect.parse(&statement).ok()?;
    let sqlparser::ast::Statement::Query(query) = parsed.into_iter().next()? else { return None };
    let sqlparser::ast::SetExpr::Select(select) = *query.body else { return None };
    match select.projection.into_iter().next()? {
        sqlparser::ast::SelectItem::UnnamedExpr(sqlparser::ast::Expr::Cast { data_type, .. }) => {
            Type::of_ast(dialect, &data_type).ok()
        }
        _ => None,
    }
}
