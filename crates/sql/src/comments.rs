//! Comments of whatever has a name: COMMENT ON, `COMMENT = '...'`.
//!
//! That of a table, a view, a type or a schema stands among the options of its space below `checks`, where Tarantool passes it over, and those of indexes
//! and constraints stand there in a map of their own; that of a column in the map of its field, and that of a sequence behind the fields of its row.

use crate::constraint::{encode_entries, raw_entries};
use crate::ddl::{Ddl, encoded_key};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use database::{Database, Operation, SEQUENCE_ID, SPACE_ID, Space};
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

/// The same of a space by its number.
pub(crate) fn of_number(database: &Database, space: SpaceId) -> Option<String> {
    of(database, &*database.catalog.space(space)?)
}

/// What a table has that may have a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Index,
    Constraint,
}

/// The key of the map of comments of parts.
const PARTS: &str = "comments";

impl Part {
    fn key(self, name: &str) -> String {
        match self {
            Part::Index => format!("i {name}"),
            Part::Constraint => format!("c {name}"),
        }
    }
}

/// The comments of the parts of a table.
pub(crate) struct Parts(Vec<(String, Vec<u8>)>);

impl Parts {
    pub(crate) fn of(database: &Database, space: SpaceId) -> Self {
        let found = below(database, space).into_iter().find(|(key, _)| key == PARTS);
        Parts(found.map_or_else(Vec::new, |(_, map)| raw_entries(&map)))
    }

    pub(crate) fn get(&self, part: Part, name: &str) -> Option<String> {
        let key = part.key(name);
        let (_, comment) = self.0.iter().find(|(known, _)| *known == key)?;
        String::from_utf8(Reader::new(comment).read_str().ok()?.to_vec()).ok()
    }
}

/// The field of the row of a sequence that its comment is in.
const SEQUENCE_FIELD: u32 = 9;

/// What was said of a sequence.
pub(crate) fn of_sequence(database: &Database, sequence: u32) -> Option<String> {
    let key = encoded_key(&[u64::from(sequence)]);
    let sequences = database.space(SEQUENCE_ID).ok()?;
    let row = sequences.rows.memory()?.borrow().get(IndexId::PRIMARY, &key[1..], 1)?;
    let comment = Reader::new(row.field(SEQUENCE_FIELD)?).read_str().ok()?.to_vec();
    String::from_utf8(comment).ok().filter(|comment| !comment.is_empty())
}

/// The mark before the name of a constraint, which COMMENT ON CONSTRAINT is parsed with.
pub(crate) const CONSTRAINT: &str = "\u{1}constraint ";

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
    /// COMMENT ON. Errors: the object is not there, or of another kind; the comment is too long.
    pub(crate) fn comment(
        &self,
        kind: ast::CommentObject,
        name: &ast::ObjectName,
        comment: Option<&str>,
        if_exists: bool,
    ) -> Result<u64> {
        use ast::CommentObject as Kind;
        let comment = comment.filter(|comment| !comment.is_empty());
        comment.map_or(Ok(()), check)?;
        match kind {
            Kind::Table | Kind::View => {
                let table = match self.table(name) {
                    Err(error) if error.condition() == Condition::UndefinedTable && if_exists => return Ok(0),
                    found => found?,
                };
                let is_view = crate::views::of(self.database, &table.space).is_some();
                if is_view != (kind == Kind::View) {
                    return Err(self.other_kind(&table.name, if is_view { "a table" } else { "a view" }));
                }
                self.comment_table(&table, comment)?;
            }
            Kind::Index => {
                let name = self.dialect.object_name(name)?;
                let Some((space, index)) = crate::schemas::space_of_index(self.database, &name) else {
                    return Err(self.no_relation(&name, "an index"));
                };
                self.comment_part(space.id, Part::Index, index, comment)?;
            }
            Kind::Sequence => {
                let name = self.dialect.object_name(name)?;
                let Some(sequence) = self.database.catalog.sequence_by_name(&name) else {
                    return Err(self.no_relation(&name, "a sequence"));
                };
                self.comment_sequence(sequence.def().id, comment)?;
            }
            Kind::Type | Kind::Domain => {
                let name = self.dialect.object_name(name)?;
                let user = crate::user_types::by_name(self.database, &name).ok_or_else(|| {
                    Error::new(Condition::UndefinedObject, format!("type \"{}\" does not exist", self.local(&name)))
                })?;
                if kind == Kind::Domain && user.domain().is_none() {
                    return Err(self.other_kind(self.local(&name), "a domain"));
                }
                put_below(self, user.space, "comment", comment.map(encoded))?;
            }
            Kind::Schema => {
                let name = self.dialect.object_name(name)?;
                match crate::schemas::by_name(self.database, &name) {
                    Some(schema) => put_below(self, schema.space, "comment", comment.map(encoded))?,
                    // It has no space of its own, and no other comment than always.
                    None if name == "public" => {}
                    None => {
                        let what = format!("schema \"{name}\" does not exist");
                        return Err(Error::new(Condition::UndefinedSchema, what));
                    }
                }
            }
            Kind::Collation => self.comment_constraint(name, comment)?,
            _ => return self.comment_column(name, comment),
        }
        Ok(0)
    }

    fn other_kind(&self, name: &str, kind: &str) -> Error {
        Error::new(Condition::WrongObject, format!("\"{name}\" is not {kind}"))
    }

    /// No index or sequence has the name.
    fn no_relation(&self, name: &str, kind: &str) -> Error {
        let catalog = &self.database.catalog;
        let is_other = catalog.space_by_name(name).is_some()
            || catalog.sequence_by_name(name).is_some()
            || crate::schemas::space_of_index(self.database, name).is_some();
        match is_other {
            true => self.other_kind(self.local(name), kind),
            false => {
                let what = format!("relation \"{}\" does not exist", self.local(name));
                Error::new(Condition::UndefinedTable, what)
            }
        }
    }

    fn comment_constraint(&self, name: &ast::ObjectName, comment: Option<&str>) -> Result<()> {
        let mut parts = name.0.clone();
        let mark = parts.remove(0);
        let Some(constraint) = mark.as_ident().and_then(|ident| ident.value.strip_prefix(CONSTRAINT)) else {
            return Err(Error::unsupported("comments of collations"));
        };
        let table = self.table(&ast::ObjectName(parts))?;
        let is_index = table.indexes.iter().any(|index| index.is_constraint && index.name == constraint);
        let is_known = is_index
            || crate::shown_constraints::of(self.database, &table).iter().any(|known| known.name() == constraint);
        if !is_known {
            let what = format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
            return Err(Error::new(Condition::UndefinedObject, what));
        }
        self.comment_part(table.space.id, Part::Constraint, constraint, comment)
    }

    fn comment_part(&self, space: SpaceId, part: Part, name: &str, comment: Option<&str>) -> Result<()> {
        self.change_parts(space, |all| {
            all.retain(|(known, _)| *known != part.key(name));
            all.extend(comment.map(|comment| (part.key(name), encoded(comment))));
        })
    }

    /// An index or a constraint has gone. Errors: those of the write.
    pub(crate) fn forget_comments(&self, space: SpaceId, name: &str) -> Result<()> {
        let keys = [Part::Index.key(name), Part::Constraint.key(name)];
        self.as_admin(|| self.change_parts(space, |all| all.retain(|(known, _)| !keys.contains(known))))
    }

    /// An index or a constraint has another name. Errors: those of the write.
    pub(crate) fn rename_comments(&self, space: SpaceId, old: &str, new: &str) -> Result<()> {
        self.as_admin(|| {
            self.change_parts(space, |all| {
                for part in [Part::Index, Part::Constraint] {
                    let old = part.key(old);
                    all.iter_mut().filter(|(known, _)| *known == old).for_each(|(known, _)| *known = part.key(new));
                }
            })
        })
    }

    fn change_parts(&self, space: SpaceId, change: impl FnOnce(&mut Vec<(String, Vec<u8>)>)) -> Result<()> {
        let Parts(mut all) = Parts::of(self.database, space);
        let before = all.clone();
        change(&mut all);
        match all == before {
            true => Ok(()),
            false => put_below(self, space, PARTS, (!all.is_empty()).then(|| encode_entries(&all))),
        }
    }

    fn comment_sequence(&self, sequence: u32, comment: Option<&str>) -> Result<()> {
        let mut ops = Vec::new();
        msgpack::encode_array(&mut ops, 1);
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, b"=");
        msgpack::encode_uint(&mut ops, u64::from(SEQUENCE_FIELD));
        ops.extend_from_slice(&encoded(comment.unwrap_or_default()));
        let key = encoded_key(&[u64::from(sequence)]);
        let update = Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 };
        self.execute(SEQUENCE_ID, update)
    }

    fn comment_column(&self, name: &ast::ObjectName, comment: Option<&str>) -> Result<u64> {
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

/// Says something of a space by its number. Errors: those of the write.
pub(crate) fn put(ddl: &Ddl<'_>, space: u64, comment: Option<&str>) -> Result<()> {
    put_below(ddl, SpaceId(u32::try_from(space).unwrap_or_default()), "comment", comment.map(encoded))
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
