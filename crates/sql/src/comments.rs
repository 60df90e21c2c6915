//! Comments of tables and columns: COMMENT ON, `COMMENT = '...'`.
//!
//! That of a table stands among the options of its space below `checks`, where Tarantool passes it over; that of a column in the map of its field.

use crate::constraint::{encode_entries, raw_entries};
use crate::ddl::{Ddl, encoded_key};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use database::{Database, Operation, SPACE_ID, Space};
use sqlparser::ast;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, SpaceId};

/// Bytes of a comment.
const COMMENT_MAX: usize = 8192;

/// Errors: the comment is too long.
pub(crate) fn check(comment: &str) -> Result<()> {
    match comment.len() <= COMMENT_MAX {
        true => Ok(()),
        false => {
            let what = format!("a comment has at most {COMMENT_MAX} bytes");
            Err(Error::new(Condition::LimitExceeded, what).mysql(1628))
        }
    }
}

/// What is kept of a table where Tarantool passes it over: the entries below `checks` among the options of its space.
pub(crate) fn below(database: &Database, space: SpaceId) -> Vec<(String, Vec<u8>)> {
    let mut key = Vec::new();
    msgpack::encode_uint(&mut key, u64::from(space.0));
    let row =
        database.space(SPACE_ID).ok().and_then(|spaces| spaces.rows.memory()?.borrow().get(IndexId::PRIMARY, &key, 1));
    let options = row.as_ref().and_then(|row| row.field(5)).map_or_else(Vec::new, raw_entries);
    let found = options.iter().find(|(key, _)| key == "checks");
    found.map_or_else(Vec::new, |(_, below)| raw_entries(below))
}

/// Changes one of them; none: it goes. Errors: those of the write.
pub(crate) fn put_below(ddl: &Ddl<'_>, space: SpaceId, name: &str, value: Option<Vec<u8>>) -> Result<()> {
    let row = ddl.space_row(space)?;
    let mut options = raw_entries(row.get(5).map_or(&[0x80][..], Vec::as_slice));
    let at = options.iter().position(|(key, _)| key == "checks");
    let mut below = at.map_or_else(Vec::new, |at| raw_entries(&options.remove(at).1));
    below.retain(|(key, _)| key != name);
    if let Some(value) = value {
        below.push((name.to_string(), value));
    }
    if !below.is_empty() {
        options.push(("checks".to_string(), encode_entries(&below)));
    }
    let key = encoded_key(&[u64::from(space.0)]);
    let mut ops = Vec::new();
    msgpack::encode_array(&mut ops, 1);
    msgpack::encode_array(&mut ops, 3);
    msgpack::encode_str(&mut ops, b"=");
    msgpack::encode_uint(&mut ops, 5);
    ops.extend_from_slice(&encode_entries(&options));
    ddl.execute(SPACE_ID, Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 })
}

/// What was said of a table.
pub(crate) fn of(database: &Database, space: &Space) -> Option<String> {
    let (_, comment) = below(database, space.id).into_iter().find(|(key, _)| key == "comment")?;
    let comment = Reader::new(&comment).read_str().ok()?.to_vec();
    String::from_utf8(comment).ok()
}

/// The comment of CREATE TABLE.
pub(crate) fn given(create: &ast::CreateTable) -> Option<String> {
    let ast::CreateTableOptions::Plain(options) = &create.table_options else { return None };
    options.iter().find_map(|option| match option {
        ast::SqlOption::Comment(ast::CommentDef::WithEq(comment) | ast::CommentDef::WithoutEq(comment)) => {
            Some(comment.clone()).filter(|comment| !comment.is_empty())
        }
        _ => None,
    })
}

impl Ddl<'_> {
    /// COMMENT ON. Errors: the object is not there; the comment is too long.
    pub(crate) fn comment(
        &self,
        kind: ast::CommentObject,
        name: &ast::ObjectName,
        comment: Option<&str>,
        if_exists: bool,
    ) -> Result<u64> {
        let comment = comment.filter(|comment| !comment.is_empty());
        if kind == ast::CommentObject::Table {
            return match self.table(name) {
                Err(error) if error.condition() == Condition::UndefinedTable && if_exists => Ok(0),
                found => self.comment_table(&*found?, comment).map(|()| 0),
            };
        }
        let mut parts = name.0.clone();
        let Some(ast::ObjectNamePart::Identifier(column)) = parts.pop() else {
            return Err(Error::new(Condition::Syntax, "column name must be qualified"));
        };
        if parts.is_empty() {
            return Err(Error::new(Condition::Syntax, "column name must be qualified"));
        }
        let table = self.table(&ast::ObjectName(parts))?;
        let column = self.dialect.fold(&column);
        let number = table.column(self.dialect, &column).ok_or_else(|| {
            let what = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
            Error::new(Condition::UndefinedColumn, what)
        })?;
        comment.map_or(Ok(()), check)?;
        let format = self.changed_format(&table, |format| {
            if let Some(field) = format.get_mut(number) {
                set_comment(field, comment);
            }
        })?;
        self.update_space(&table, 6, |out| out.extend_from_slice(&format), None)?;
        Ok(0)
    }

    /// Says something of a table, or nothing any more. Errors: it is too long; those of the write.
    pub(crate) fn comment_table(&self, table: &Table, comment: Option<&str>) -> Result<()> {
        comment.map_or(Ok(()), check)?;
        put_below(self, table.space.id, "comment", comment.map(encoded))
    }
}

fn encoded(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_str(&mut out, text.as_bytes());
    out
}

/// Puts a comment into the map of a field, or takes it out.
fn set_comment(field: &mut Vec<u8>, comment: Option<&str>) {
    let mut entries = raw_entries(field);
    entries.retain(|(key, _)| key != "comment");
    if let Some(comment) = comment {
        entries.push(("comment".to_string(), encoded(comment)));
    }
    *field = encode_entries(&entries);
}

/// ` COMMENT '...'` as SHOW CREATE TABLE has it.
pub(crate) fn shown(comment: Option<&str>, mark: &str) -> String {
    comment.map_or_else(String::new, |comment| {
        format!(" COMMENT{mark}{}", crate::written::literal(Dialect::Mysql, comment))
    })
}
