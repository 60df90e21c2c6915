//! CREATE, ALTER, DROP: rows of the system spaces, as `box.schema` writes them.

mod alter;
mod columns;
pub(crate) mod computed_keys;
mod copies;
mod declared;
mod drop;
mod identity;
mod indexes;
pub(crate) mod likes;
mod needed;
mod sequences;
mod tables;

pub(crate) use identity::{Identity, respell as respell_identities};
pub(crate) use indexes::encode_index;
pub(crate) use likes::respell as respell_likes;
pub(crate) use needed::begins_with;
pub(crate) use sequences::{
    change as change_sequence, is_alter as is_alter_sequence, respell as respell_sequences, said_of,
};

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::generated::Generated;
use crate::schemas;
use crate::table::Table;
use crate::types::{Base, Type};
use crate::user_types;
use database::{Context, Database, Operation, Space};
use sqlparser::ast::{self, AlterTableOperation, ObjectType, TableConstraint};
use std::rc::Rc;
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
    /// GENERATED ... AS IDENTITY.
    pub(crate) identity: Option<Identity>,
    /// GENERATED ALWAYS AS.
    pub(crate) generated: Option<Generated>,
}

impl NewColumn {
    /// True for one of this name; the keys that indexes have for themselves have none.
    pub(crate) fn is_named(&self, dialect: Dialect, name: &str) -> bool {
        !(self.is_hidden && self.generated.is_some()) && dialect.is_same(&self.name, name)
    }

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
            identity: None,
            generated: None,
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

impl Ddl<'_> {
    /// Carries out a statement of the schema. Returns the number of objects that were changed, as Tarantool counts them. Errors: those of the system spaces;
    /// what is not there.
    pub(crate) fn run(&self, statement: &ast::Statement) -> Result<u64> {
        match statement {
            ast::Statement::CreateTable(create) if user_types::is_domain(create) => {
                user_types::create_domain(self, create)
            }
            ast::Statement::CreateTable(create) => self.create_table(create),
            ast::Statement::CreateType {
                name,
                representation: Some(ast::UserDefinedTypeRepresentation::Enum { labels }),
            } => user_types::create_enum(self, name, labels),
            ast::Statement::AlterType(alter) => user_types::alter(self, alter),
            ast::Statement::DropDomain(drop) => user_types::drop_domain(self, drop),
            ast::Statement::Drop { object_type: ObjectType::Type, if_exists, names, cascade, .. } => {
                user_types::drop_types(self, names, *if_exists, *cascade)
            }
            ast::Statement::CreateIndex(create) => self.create_index(create),
            ast::Statement::CreateSchema { schema_name, if_not_exists, .. } => {
                schemas::create_schema(self, schema_name, *if_not_exists)
            }
            ast::Statement::AlterSchema(alter) => schemas::alter_schema(self, alter),
            ast::Statement::Drop { object_type: ObjectType::Schema, if_exists, names, cascade, .. }
                if self.dialect == Dialect::Postgres =>
            {
                schemas::drop_schemas(self, names, *if_exists, *cascade)
            }
            ast::Statement::Comment { object_type, object_name, comment, if_exists } => {
                self.comment(*object_type, object_name, comment.as_deref(), *if_exists)
            }
            ast::Statement::AlterTable(alter) if user_types::altered(alter).is_some() => {
                user_types::alter_domain(self, alter)
            }
            ast::Statement::AlterTable(alter) => self.alter_table(alter),
            ast::Statement::AlterIndex { name, operation: ast::AlterIndexOperation::RenameIndex { index_name } } => {
                let (old, new) = (self.dialect.object_name(name)?, self.dialect.object_name(index_name)?);
                match schemas::space_of_index(self.database, &old) {
                    Some((space, old)) => {
                        self.rename_index(&*self.table_named(&space.name())?, old, &new)?;
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
                    if *if_exists && self.dialect.is_nowhere(name) {
                        continue;
                    }
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
        if let ast::Statement::CreateIndex(create) = statement {
            // What it is comes behind it: until then it is a constraint.
            return create.unique;
        }
        if let ast::Statement::CreateTable(create) = statement {
            return create.query.is_some();
        }
        let ast::Statement::AlterTable(alter) = statement else { return false };
        user_types::altered(alter).is_none()
            && alter.operations.len() == 1
            && matches!(
                alter.operations[0],
                AlterTableOperation::AddConstraint {
                    constraint: TableConstraint::Check(_)
                        | TableConstraint::ForeignKey(_)
                        | TableConstraint::PrimaryKey(_)
                        | TableConstraint::Unique(_)
                        | TableConstraint::Index(_),
                    ..
                }
            )
    }

    /// A name of the catalog as the dialect shows it: PostgreSQL's without its schema.
    pub(crate) fn local<'n>(&self, name: &'n str) -> &'n str {
        match self.dialect {
            Dialect::Postgres => crate::schemas::local(self.database, name),
            Dialect::Mysql | Dialect::Tarantool => name,
        }
    }

    pub(crate) fn table(&self, name: &ast::ObjectName) -> Result<Rc<Table>> {
        self.table_named(&self.dialect.object_name(name)?)
    }

    /// The table of a name as it is in the catalog.
    pub(crate) fn table_named(&self, name: &str) -> Result<Rc<Table>> {
        crate::Sql::of(self.database).speak(self.context);
        Table::find(self.database, self.dialect, name)
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
            identity: column.identity,
            generated: column.generated.clone(),
        });
        columns.collect()
    }
}

pub(crate) fn encoded_key(parts: &[u64]) -> Vec<u8> {
    let mut key = Vec::new();
    msgpack::encode_array(&mut key, parts.len() as u32);
    parts.iter().for_each(|part| msgpack::encode_uint(&mut key, *part));
    key
}
