//! CREATE TABLE after another table, or after a query.

use super::{Ddl, NewIndex};
use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::types::Base;
use crate::written::written;
use sqlparser::ast;
use tuple::msgpack;

impl Ddl<'_> {
    /// CREATE TABLE a LIKE b: columns, indexes and checks, and no rows.
    pub(super) fn create_like(&self, create: &ast::CreateTable, name: &str, like: &ast::ObjectName) -> Result<u64> {
        let table = self.table(like)?;
        self.database.check_space_access(self.context, &table.space, database::Privileges::READ)?;
        let row = self.space_row(table.space.id)?;
        let space_id = self.new_table_id(create.temporary)?;
        let mut fields = row.clone();
        let number = |value: u64| {
            let mut out = Vec::new();
            msgpack::encode_uint(&mut out, value);
            out
        };
        fields[0] = number(space_id);
        fields[1] = number(u64::from(self.context.user(&self.database.catalog)));
        fields[2].clear();
        msgpack::encode_str(&mut fields[2], self.full_name(name, create.temporary).as_bytes());
        fields[5] = match create.temporary {
            true => crate::temporary::options(),
            false => self.options_with(&table.space, &table.space.def().checks, &[])?,
        };
        if create.temporary {
            fields[3].clear();
            msgpack::encode_str(&mut fields[3], b"memtx");
        }
        self.put_space_row(&fields)?;
        if create.temporary {
            self.own(space_id, create.on_commit.as_ref())?;
        }
        let columns = self.columns_of(&table);
        for index in &table.indexes {
            let fields = index.parts.iter().map(|(field, ..)| *field).collect();
            let made = NewIndex { name: index.name.clone(), is_unique: index.is_unique, fields };
            self.put_index(space_id, u64::from(index.id.0), &index.name, &made, &columns)?;
        }
        if let Some((field, _)) = table.generated {
            self.put_sequence(space_id, &self.full_name(name, create.temporary), field, 1)?;
        }
        Ok(1)
    }

    /// CREATE TABLE ... AS: a table of a query's columns, and its rows.
    pub(super) fn create_as(&self, create: &ast::CreateTable, name: &str, query: &ast::Query) -> Result<u64> {
        if !create.columns.is_empty() || !create.constraints.is_empty() {
            return Err(Error::unsupported("CREATE TABLE with columns and a query"));
        }
        let sql = crate::Sql::of(self.database);
        let text = written(self.dialect, query);
        let prepared = sql.prepare(self.database, self.context, self.dialect, &text, &[])?;
        let quote = |name: &str| match self.dialect {
            Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
            _ => format!("\"{}\"", name.replace('"', "\"\"")),
        };
        let columns: Vec<String> = prepared
            .columns()
            .iter()
            .map(|column| {
                let ty = match column.ty.base {
                    Base::Unknown | Base::Any | Base::Scalar => "text".to_string(),
                    Base::Text if self.dialect == Dialect::Mysql => "longtext".to_string(),
                    Base::Double if column.ty.is_float() && self.dialect == Dialect::Mysql => "float".to_string(),
                    Base::Double if self.dialect == Dialect::Mysql => "double".to_string(),
                    _ => crate::user_types::with_names(self.database, &column.ty.name(self.dialect)).into_owned(),
                };
                format!("{} {ty}", quote(&column.name))
            })
            .collect();
        let engine = match self.engine_of(create)? {
            "vinyl" if self.dialect == Dialect::Mysql => " ENGINE = vinyl",
            "vinyl" => " WITH (engine = 'vinyl')",
            _ => "",
        };
        let kind = if create.temporary { "TEMPORARY TABLE" } else { "TABLE" };
        let mut made = format!("CREATE {kind} {} ({})", quote(name), columns.join(", "));
        if self.dialect == Dialect::Tarantool {
            made = made.replacen('(', "(\"__rowid\" INTEGER PRIMARY KEY AUTOINCREMENT, ", 1);
        }
        made.push_str(engine);
        if let Some(on_commit) = create.on_commit.as_ref().filter(|_| create.temporary) {
            made.push_str(match on_commit {
                ast::OnCommit::Drop => " ON COMMIT DROP",
                ast::OnCommit::DeleteRows => " ON COMMIT DELETE ROWS",
                ast::OnCommit::PreserveRows => "",
            });
        }
        let run = |text: &str| -> Result<u64> {
            let prepared = sql.prepare(self.database, self.context, self.dialect, text, &[])?;
            Ok(sql.run(self.database, self.context, &prepared, &[], &mut |_| Ok(()))?.counts.rows)
        };
        run(&made)?;
        let names: Vec<String> = prepared.columns().iter().map(|column| quote(&column.name)).collect();
        let fill = format!("INSERT INTO {} ({}) {text}", quote(name), names.join(", "));
        run(&fill).inspect_err(|_| {
            let _ = run(&format!("DROP TABLE {}", quote(name)));
        })
    }
}
