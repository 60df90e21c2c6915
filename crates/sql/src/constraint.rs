//! CHECK and FOREIGN KEY of tables: rows of `_func` and options of the space, as `box.schema` writes them.

use crate::condition::{body_of, check_is_of_row, text_of};
use crate::ddl::{Ddl, encoded_key};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::shown_constraints::Shown;
use crate::table::Table;
use crate::types::Base;
use crate::written::{name as quoted_name, with_words, written};
use database::{Action, CheckDef, Deferral, FUNC_ID, FieldRef, ForeignKeyDef, Operation, SPACE_ID, Space};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;
use std::rc::Rc;
use storage::Key;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, SpaceId};

/// Foreign keys that wait for the table that they name, of all sessions.
pub const WAITING_KEYS_MAX: usize = 10_000;

/// A foreign key that names a table which is not there yet.
pub(crate) struct Waiting {
    pub(crate) session: u64,
    child: String,
    name: Option<String>,
    key: ast::ForeignKeyConstraint,
}

/// Constraints that a statement declares.
#[derive(Default)]
pub(crate) struct Declared {
    /// Name, the column that they stand at, condition.
    pub(crate) checks: Vec<(Option<String>, Option<String>, ast::Expr)>,
    /// With the name that is given.
    pub(crate) keys: Vec<(Option<String>, ast::ForeignKeyConstraint)>,
}

impl Declared {
    pub(crate) fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.keys.is_empty()
    }
}

impl Ddl<'_> {
    /// Adds constraints to a table. Errors: names that are there; what they speak of is not; rows that do not satisfy them.
    pub(crate) fn put_constraints(&self, table: &Table, declared: &Declared) -> Result<()> {
        if declared.is_empty() {
            return Ok(());
        }
        let def = table.space.def();
        let (mut checks, mut keys) = (def.checks.clone(), def.foreign_keys.clone());
        let mut taken: Vec<String> = checks.iter().map(|check| check.name.clone()).collect();
        taken.extend(keys.iter().map(|key| key.name.clone()));
        taken.extend(table.indexes.iter().filter(|index| index.is_unique).map(|index| index.name.clone()));
        let mut made = Vec::new();
        for (name, column, expr) in &declared.checks {
            let name = self.constraint_name(table, name.as_deref(), &taken, |number| match self.dialect {
                Dialect::Tarantool => format!("ck_unnamed_{}_{number}", table.name),
                Dialect::Mysql => format!("{}_chk_{number}", table.name),
                Dialect::Postgres => {
                    let column = column.clone().or_else(|| self.only_column(table, expr));
                    let middle = column.map_or_else(String::new, |column| format!("_{column}"));
                    numbered(&format!("{}{middle}_check", table.name), number)
                }
            })?;
            let text = written(self.dialect, expr);
            let binder = crate::bind::Binder::new(self.database, self.dialect);
            let shape = Rc::new(Table::of(self.database, Rc::clone(&table.space))?);
            check_is_of_row(&binder.bind_check(&shape, &text, None)?.0)?;
            let is_temporary = table.space.def().is_session;
            let function = self.full_name(&format!("check_{}_{name}", table.full), is_temporary);
            let function_id = self.put_function(&function, &text, is_temporary)?;
            made.push(function_id);
            taken.push(name.clone());
            checks.push(CheckDef { name, function_id, field: None });
        }
        for (name, key) in &declared.keys {
            let sql = crate::Sql::of(self.database);
            let parent = self.dialect.object_name(&key.foreign_table)?;
            let is_missing = crate::temporary::space_by_name(self.database, &parent).is_none();
            if is_missing && self.context.skips_foreign_keys() && sql.waiting.borrow().len() < WAITING_KEYS_MAX {
                sql.waiting.borrow_mut().push(Waiting {
                    session: self.context.session.id,
                    child: table.full.clone(),
                    name: name.clone(),
                    key: key.clone(),
                });
                continue;
            }
            let columns: Vec<String> = key.columns.iter().map(|column| self.dialect.fold(column)).collect();
            let given = name.as_deref();
            let name = self.constraint_name(table, given, &taken, |number| match self.dialect {
                Dialect::Tarantool => format!("fk_unnamed_{}_{number}", table.name),
                Dialect::Mysql => format!("{}_ibfk_{number}", table.name),
                Dialect::Postgres => numbered(&format!("{}_{}_fkey", table.name, columns.join("_")), number),
            });
            let own = match (name, given) {
                // What the key says is looked at before its name in MySQL.
                (Err(error), Some(given)) if self.dialect == Dialect::Mysql => {
                    return self.foreign_key(table, given.to_string(), &columns, key).and(Err(error));
                }
                (name, _) => self.foreign_key(table, name?, &columns, key)?,
            };
            if self.dialect == Dialect::Mysql {
                self.put_child_index(table, given, &own)?;
            }
            taken.push(own.name.clone());
            keys.push(own);
        }
        self.put_options(&table.space, &checks, &keys).inspect_err(|_| {
            for id in made {
                let _ = self.drop_function(id);
            }
        })
    }

    /// The name that is given, or the first free one.
    fn constraint_name(
        &self,
        table: &Table,
        given: Option<&str>,
        taken: &[String],
        make: impl Fn(usize) -> String,
    ) -> Result<String> {
        let is_taken = |name: &str| taken.iter().any(|known| self.dialect.is_same(known, name));
        match given {
            Some(name) if is_taken(name) => {
                let what = match self.dialect {
                    Dialect::Tarantool => format!("Constraint '{name}' already exists in space '{}'", table.name),
                    Dialect::Mysql => format!("Duplicate constraint name '{name}'"),
                    Dialect::Postgres => {
                        format!("constraint \"{name}\" for relation \"{}\" already exists", table.name)
                    }
                };
                Err(Error::new(Condition::DuplicateObject, what).mysql(1826))
            }
            Some(name) => Ok(name.to_string()),
            None => Ok((1..).map(make).find(|name| !is_taken(name)).unwrap_or_default()),
        }
    }

    /// The column of a condition that speaks of one only.
    fn only_column(&self, table: &Table, expr: &ast::Expr) -> Option<String> {
        let shape = Rc::new(Table::of(self.database, Rc::clone(&table.space)).ok()?);
        let binder = crate::bind::Binder::new(self.database, self.dialect);
        let (_, fields) = binder.bind_check(&shape, &written(self.dialect, expr), None).ok()?;
        match fields.as_slice() {
            [(field, _)] => Some(table.columns[*field as usize].name.clone()),
            _ => None,
        }
    }

    /// True if a number of one type is found among those of the other: in MySQL they are of one type, in PostgreSQL the referenced one may be wider.
    fn fits_number(&self, child: crate::types::Type, parent: crate::types::Type) -> bool {
        let rank = |ty: crate::types::Type| match ty.base {
            Base::Double if ty.is_float() => 2,
            Base::Double => 3,
            Base::Decimal => 1,
            _ => 0,
        };
        match self.dialect {
            Dialect::Mysql => false,
            Dialect::Postgres => rank(child) <= rank(parent),
            Dialect::Tarantool => true,
        }
    }

    fn foreign_key(
        &self,
        table: &Table,
        name: String,
        columns: &[String],
        key: &ast::ForeignKeyConstraint,
    ) -> Result<ForeignKeyDef> {
        if matches!(
            key.match_kind,
            Some(ast::ConstraintReferenceMatchKind::Full | ast::ConstraintReferenceMatchKind::Partial)
        ) && columns.len() > 1
        {
            return Err(Error::unsupported("MATCH FULL and PARTIAL"));
        }
        let no_column = |table: &Table, column: &str| {
            let what = match self.dialect {
                Dialect::Mysql => format!("Key column '{column}' doesn't exist in table"),
                _ => format!("column \"{column}\" referenced in foreign key constraint does not exist"),
            };
            Error::new(Condition::UndefinedColumn, what).mysql(1072).about(&table.full, Some(column), None)
        };
        let locals: Vec<usize> = columns
            .iter()
            .map(|column| table.column(self.dialect, column).ok_or_else(|| no_column(table, column)))
            .collect::<Result<_>>()?;
        let parent_name = self.dialect.object_name(&key.foreign_table)?;
        let parent = match self.table(&key.foreign_table) {
            Err(error) if error.condition() == Condition::UndefinedTable => {
                return Err(error
                    .mysql(1824)
                    .words_of_mysql(self.dialect, format!("Failed to open the referenced table '{parent_name}'")));
            }
            found => found?,
        };
        if table.space.def().is_session != parent.space.def().is_session {
            let what = match table.space.def().is_session {
                true => "constraints on temporary tables may reference only temporary tables",
                false => "constraints on permanent tables may reference only permanent tables",
            };
            return Err(Error::new(Condition::InvalidTable, what));
        }
        let foreign: Vec<usize> = match key.referred_columns.is_empty() {
            true => parent.primary_key().iter().map(|(field, ..)| *field).collect(),
            false => key
                .referred_columns
                .iter()
                .map(|column| {
                    let column = self.dialect.fold(column);
                    parent.column(self.dialect, &column).ok_or_else(|| no_column(&parent, &column))
                })
                .collect::<Result<_>>()?,
        };
        if foreign.len() != locals.len() {
            let what = "number of referencing and referenced columns for foreign key disagree";
            return Err(Error::new(Condition::InvalidForeignKey, what).mysql(1239));
        }
        let is_key = parent.indexes.iter().any(|index| {
            let fields: Vec<usize> = index.parts.iter().map(|(field, ..)| *field).collect();
            index.is_unique && fields.len() == foreign.len() && foreign.iter().all(|field| fields.contains(field))
        });
        if !is_key {
            let what = match self.dialect {
                Dialect::Mysql => format!(
                    "Failed to add the foreign key constraint. Missing index for constraint '{name}' in the referenced table '{}'",
                    parent.name
                ),
                _ => format!(
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    parent.name
                ),
            };
            return Err(Error::new(Condition::InvalidForeignKey, what).mysql(1822));
        }
        for (local, foreign) in locals.iter().zip(&foreign) {
            let (child, parent) = (&table.columns[*local], &parent.columns[*foreign]);
            let is_same = child.ty.is_float() == parent.ty.is_float() || self.dialect != Dialect::Mysql;
            let is_alike =
                child.ty.base == parent.ty.base && is_same && (child.ty.base != Base::Enum || child.ty == parent.ty)
                    || child.ty.is_number() && parent.ty.is_number() && self.fits_number(child.ty, parent.ty)
                    || [child.ty.base, parent.ty.base].iter().any(|base| matches!(base, Base::Any | Base::Scalar));
            if !is_alike {
                let what = match self.dialect {
                    Dialect::Mysql => format!(
                        "Referencing column '{}' and referenced column '{}' in foreign key constraint '{name}' are incompatible.",
                        child.name, parent.name
                    ),
                    _ => format!("foreign key constraint \"{name}\" cannot be implemented"),
                };
                let detail = format!(
                    "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                    child.name, parent.name, child.ty, parent.ty
                );
                return Err(Error::new(Condition::TypeMismatch, what).detail(detail).mysql(3780));
            }
        }
        let action = |action: &Option<ast::ReferentialAction>| match action {
            None | Some(ast::ReferentialAction::NoAction) => Action::NoAction,
            Some(ast::ReferentialAction::Restrict) => Action::Restrict,
            Some(ast::ReferentialAction::Cascade) => Action::Cascade,
            Some(ast::ReferentialAction::SetNull) => Action::SetNull,
            Some(ast::ReferentialAction::SetDefault) => Action::SetDefault,
        };
        if locals.iter().any(|local| table.columns[*local].generated.is_some()) {
            self.check_actions_on_generated(key)?;
        }
        let sets_null = [&key.on_delete, &key.on_update].contains(&&Some(ast::ReferentialAction::SetNull));
        if self.dialect == Dialect::Mysql
            && sets_null
            && let Some(local) = locals.iter().find(|local| !table.columns[**local].is_nullable)
        {
            return Err(cannot_be_null(&table.columns[*local].name, &name));
        }
        let field = |number: &usize| FieldRef::Number(*number as u32);
        Ok(ForeignKeyDef {
            name,
            space: parent.space.id,
            field: None,
            pairs: locals.iter().zip(&foreign).map(|(local, foreign)| (field(local), field(foreign))).collect(),
            on_delete: action(&key.on_delete),
            on_update: action(&key.on_update),
            deferral: if self.dialect == Dialect::Postgres { deferral_of(key)? } else { Deferral::Never },
        })
    }

    /// Errors: a key of generated columns is to be changed by what it names.
    fn check_actions_on_generated(&self, key: &ast::ForeignKeyConstraint) -> Result<()> {
        use ast::ReferentialAction::{Cascade, SetDefault, SetNull};
        let (event, action) = match (&key.on_update, &key.on_delete) {
            (Some(action @ (Cascade | SetNull | SetDefault)), _) => ("UPDATE", action),
            (_, Some(action @ (SetNull | SetDefault))) => ("DELETE", action),
            _ => return Ok(()),
        };
        let what = match self.dialect {
            Dialect::Mysql => {
                format!("Cannot define foreign key with ON {event} {action} clause on a generated column.")
            }
            _ => format!("invalid ON {event} action for foreign key constraint containing generated column"),
        };
        Err(Error::new(Condition::Syntax, what).mysql(3104))
    }

    /// Whoever removes a parent looks for its children. The index has the name that was given to the key, else that of the first column.
    fn put_child_index(&self, table: &Table, given: Option<&str>, key: &ForeignKeyDef) -> Result<()> {
        let table = Table::of(self.database, Rc::clone(&table.space))?;
        let own = |(own, _): &(FieldRef, FieldRef)| match own {
            FieldRef::Number(number) => Some(*number as usize),
            FieldRef::Name(_) => None,
        };
        let fields: Vec<usize> = key.pairs.iter().filter_map(own).collect();
        if table.indexes.iter().any(|index| crate::ddl::begins_with(index, &fields)) {
            return Ok(());
        }
        let Some(first) = fields.first() else { return Ok(()) };
        let name = self.add_index(&table, given.unwrap_or(&table.columns[*first].name), &fields, false)?;
        self.set_listed(table.space.id, crate::unique::MADE_KEY, &name, true)
    }

    /// A function whose body is a condition. Returns its number.
    pub(crate) fn put_function(&self, name: &str, text: &str, is_temporary: bool) -> Result<u32> {
        let mut known = std::iter::once(name.to_string()).chain((2..).map(|number| format!("{name}_{number}")));
        let name = known.find(|name| self.database.catalog.function_by_name(name).is_none()).unwrap_or_default();
        let id = match is_temporary {
            true => self.database.next_session_id(),
            false => self.database.next_function_id(),
        };
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, 19);
        msgpack::encode_uint(&mut row, u64::from(id));
        msgpack::encode_uint(&mut row, u64::from(self.context.user(&self.database.catalog)));
        msgpack::encode_str(&mut row, name.as_bytes());
        msgpack::encode_uint(&mut row, 0);
        msgpack::encode_str(&mut row, b"SQL_EXPR");
        msgpack::encode_str(&mut row, body_of(self.dialect, text).as_bytes());
        msgpack::encode_str(&mut row, b"function");
        msgpack::encode_array(&mut row, 0);
        for text in ["any", "none", "none"] {
            msgpack::encode_str(&mut row, text.as_bytes());
        }
        for flag in [true, false, true] {
            msgpack::encode_bool(&mut row, flag);
        }
        msgpack::encode_array(&mut row, 1);
        msgpack::encode_str(&mut row, b"LUA");
        msgpack::encode_map(&mut row, 0);
        for text in ["", "", ""] {
            msgpack::encode_str(&mut row, text.as_bytes());
        }
        // Whoever may change the table may have it checked.
        self.as_admin(|| self.execute(FUNC_ID, Operation::Insert { tuple: &row }))?;
        Ok(id)
    }

    fn drop_function(&self, id: u32) -> Result<()> {
        self.as_admin(|| self.delete(FUNC_ID, &[u64::from(id)]))
    }

    /// Removes the functions of checks that no space asks any more.
    pub(crate) fn drop_functions(&self, checks: &[CheckDef]) -> Result<()> {
        for check in checks {
            let function = self.database.catalog.function(check.function_id);
            let is_ours = function.is_some_and(|function| {
                let is_own = function.id >= database::SESSION_ID_MIN;
                function.language == "SQL_EXPR" && (is_own || function.name.starts_with("check_"))
            });
            let spaces = self.database.catalog.spaces();
            let is_used = spaces
                .iter()
                .any(|space| space.def().checks.iter().any(|other| other.function_id == check.function_id));
            if is_ours && !is_used {
                self.drop_function(check.function_id)?;
            }
        }
        Ok(())
    }

    /// Writes the constraints of a space into its row.
    pub(crate) fn put_options(&self, space: &Rc<Space>, checks: &[CheckDef], keys: &[ForeignKeyDef]) -> Result<()> {
        let options = self.options_with(space, checks, keys)?;
        let key = encoded_key(&[u64::from(space.id.0)]);
        let mut ops = Vec::new();
        msgpack::encode_array(&mut ops, 1);
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, b"=");
        msgpack::encode_uint(&mut ops, 5);
        ops.extend_from_slice(&options);
        let update = Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 };
        self.execute(SPACE_ID, update).map_err(|error| error.in_words_of(self.dialect))
    }

    /// A table goes. Foreign keys that name it wait for one of its name, if they are not looked at in this session; its own wait no more.
    pub(crate) fn let_keys_wait(&self, table: &Table) -> Result<()> {
        let sql = crate::Sql::of(self.database);
        let session = self.context.session.id;
        sql.waiting.borrow_mut().retain(|waiting| waiting.session != session || waiting.child != table.full);
        if self.dialect != Dialect::Mysql || !self.context.skips_foreign_keys() {
            return Ok(());
        }
        for space in self.database.catalog.spaces() {
            let def = space.def();
            let is_free = sql.waiting.borrow().len() + def.foreign_keys.len() <= WAITING_KEYS_MAX;
            if space.id == table.space.id || !is_free || !def.foreign_keys.iter().any(|key| key.space == table.space.id)
            {
                continue;
            }
            let child = Table::of(self.database, Rc::clone(&space))?;
            let mut gone = Vec::new();
            let quoted = |name: &str| match self.dialect {
                Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
                _ => crate::catalog::quoted(name),
            };
            for shown in crate::shown_constraints::of(self.database, &child) {
                if !matches!(&shown, Shown::Key { parent, .. } if parent.table.space.id == table.space.id) {
                    continue;
                }
                let definition = crate::shown_constraints::definition(self.dialect, &quoted, &child, &shown);
                let parsed = self.dialect.parse(&format!("ALTER TABLE t ADD {definition}"))?;
                let Some(ast::Statement::AlterTable(alter)) = parsed.into_iter().next() else { continue };
                let Some(ast::AlterTableOperation::AddConstraint {
                    constraint: ast::TableConstraint::ForeignKey(key),
                    ..
                }) = alter.operations.into_iter().next()
                else {
                    continue;
                };
                gone.push(shown.name().to_string());
                let name = Some(shown.name().to_string());
                sql.waiting.borrow_mut().push(Waiting { session, child: child.name.clone(), name, key });
            }
            let keys: Vec<ForeignKeyDef> =
                def.foreign_keys.iter().filter(|key| !gone.contains(&key.name)).cloned().collect();
            self.put_options(&space, &def.checks, &keys)?;
        }
        Ok(())
    }

    /// Adds foreign keys that have waited for the table that they name: those who load a dump say that they are not to be looked at.
    pub(crate) fn put_waiting(&self, name: &str) -> Result<()> {
        let sql = crate::Sql::of(self.database);
        let session = self.context.session.id;
        let mut ready = Vec::new();
        sql.waiting.borrow_mut().retain(|waiting: &Waiting| {
            let is_it = waiting.session == session
                && self
                    .dialect
                    .object_name(&waiting.key.foreign_table)
                    .is_ok_and(|parent| self.dialect.is_same(&parent, name));
            if is_it {
                ready.push((waiting.child.clone(), waiting.name.clone(), waiting.key.clone()));
            }
            !is_it
        });
        for (child, key_name, key) in ready {
            let Ok(table) = self.table_named(&child) else { continue };
            self.put_constraints(&table, &Declared { checks: Vec::new(), keys: vec![(key_name, key)] })?;
        }
        Ok(())
    }

    /// The options of a space with other constraints.
    pub(crate) fn options_with(
        &self,
        space: &Rc<Space>,
        checks: &[CheckDef],
        keys: &[ForeignKeyDef],
    ) -> Result<Vec<u8>> {
        let row = self.space_row(space.id)?;
        let mut entries = raw_entries(row.get(5).map_or(&[0x80][..], Vec::as_slice));
        entries.retain(|(key, _)| !matches!(key.as_str(), "constraint" | "foreign_key"));
        let own: Vec<&CheckDef> = checks.iter().filter(|check| check.field.is_none()).collect();
        if !own.is_empty() {
            let mut map = Vec::new();
            msgpack::encode_map(&mut map, own.len() as u32);
            for check in own {
                msgpack::encode_str(&mut map, check.name.as_bytes());
                msgpack::encode_uint(&mut map, u64::from(check.function_id));
            }
            entries.push(("constraint".to_string(), map));
        }
        let own: Vec<&ForeignKeyDef> = keys.iter().filter(|key| key.field.is_none()).collect();
        if !own.is_empty() {
            let mut map = Vec::new();
            msgpack::encode_map(&mut map, own.len() as u32);
            for key in own {
                msgpack::encode_str(&mut map, key.name.as_bytes());
                encode_foreign_key(&mut map, key, space.id);
            }
            entries.push(("foreign_key".to_string(), map));
        }
        let at = entries.iter().position(|(key, _)| key == "checks");
        let mut below = at.map_or_else(Vec::new, |at| raw_entries(&entries.remove(at).1));
        below.retain(|(key, _)| key != "foreign_key");
        let says_more = |key: &&ForeignKeyDef| {
            (key.on_delete, key.on_update) != (Action::Restrict, Action::Restrict) || key.deferral != Deferral::Never
        };
        let acting: Vec<&ForeignKeyDef> = keys.iter().filter(says_more).collect();
        if !acting.is_empty() {
            let mut map = Vec::new();
            msgpack::encode_map(&mut map, acting.len() as u32);
            for key in acting {
                msgpack::encode_str(&mut map, key.name.as_bytes());
                let deferral = key.deferral.name();
                msgpack::encode_map(&mut map, 2 + u32::from(deferral.is_some()));
                if let Some(deferral) = deferral {
                    msgpack::encode_str(&mut map, b"deferrable");
                    msgpack::encode_str(&mut map, deferral.as_bytes());
                }
                for (event, action) in [("on_delete", key.on_delete), ("on_update", key.on_update)] {
                    msgpack::encode_str(&mut map, event.as_bytes());
                    msgpack::encode_str(&mut map, action.name().as_bytes());
                }
            }
            below.push(("foreign_key".to_string(), map));
        }
        if !below.is_empty() {
            entries.push(("checks".to_string(), encode_entries(&below)));
        }
        Ok(encode_entries(&entries))
    }

    /// The fields of a row of `_space`.
    pub(crate) fn space_row(&self, id: SpaceId) -> Result<Vec<Vec<u8>>> {
        let spaces = self.system(SPACE_ID)?;
        let mut parts = Vec::new();
        msgpack::encode_uint(&mut parts, u64::from(id.0));
        let row = self.database.get(self.context, &spaces, IndexId::PRIMARY, Key { parts: &parts, part_count: 1 })?;
        let Some(row) = row else { return Err(Error::new(Condition::UndefinedTable, "the table is gone")) };
        let mut reader = Reader::new(row.data());
        let count = reader.read_array().unwrap_or(0);
        Ok((0..count).filter_map(|_| reader.read_value().ok().map(<[u8]>::to_vec)).collect())
    }

    /// DROP CONSTRAINT and its kin. False: there is none of that name.
    pub(crate) fn drop_constraint(&self, table: &Table, name: &str) -> Result<bool> {
        let def = table.space.def();
        let is_it = |known: &str| self.dialect.is_same(known, name);
        let (mut checks, mut keys) = (def.checks.clone(), def.foreign_keys.clone());
        checks.retain(|check| check.field.is_some() || !is_it(&check.name));
        keys.retain(|key| key.field.is_some() || !is_it(&key.name));
        if checks.len() == def.checks.len() && keys.len() == def.foreign_keys.len() {
            return Ok(false);
        }
        self.put_options(&table.space, &checks, &keys)?;
        self.drop_functions(&def.checks)?;
        Ok(true)
    }

    /// RENAME CONSTRAINT of a check or a foreign key. False: there is none of that name.
    pub(crate) fn rename_constraint(&self, table: &Table, old: &str, new: &str) -> Result<bool> {
        let def = table.space.def();
        let (mut checks, mut keys) = (def.checks.clone(), def.foreign_keys.clone());
        let mut count = 0;
        let names = checks.iter_mut().filter(|check| check.field.is_none()).map(|check| &mut check.name);
        for name in names.chain(keys.iter_mut().filter(|key| key.field.is_none()).map(|key| &mut key.name)) {
            if self.dialect.is_same(name, old) {
                *name = new.to_string();
                count += 1;
            }
        }
        if count > 0 {
            self.put_options(&table.space, &checks, &keys)?;
        }
        Ok(count > 0)
    }

    /// Conditions speak of a column by another name from now on: their functions are made anew. Returns the checks.
    pub(crate) fn renamed_checks(&self, table: &Table, old: &str, new: &str) -> Result<Vec<CheckDef>> {
        let mut checks = table.space.def().checks.clone();
        for check in checks.iter_mut().filter(|check| check.field.is_none()) {
            let Some(function) = self.database.catalog.function(check.function_id) else { continue };
            if function.language != "SQL_EXPR" {
                continue;
            }
            let (dialect, text) = text_of(&function.body);
            let Some(changed) = with_column_renamed(dialect, text, old, new) else { continue };
            let ddl = Ddl { database: self.database, context: self.context, dialect };
            check.function_id = {
                let is_temporary = table.space.def().is_session;
                let name = self.full_name(&format!("check_{}_{}", table.full, check.name), is_temporary);
                ddl.put_function(&name, &changed, is_temporary)?
            };
        }
        Ok(checks)
    }
}

/// The expressions of generated columns in a format speak of a column by another name from now on.
pub(crate) fn rename_in_generated(format: &mut [Vec<u8>], old: &str, new: &str) {
    for column in format {
        let mut entries = raw_entries(column);
        let Some((_, body)) = entries.iter_mut().find(|(key, _)| key == "generated") else { continue };
        let Ok(known) = Reader::new(body).read_str() else { continue };
        let known = String::from_utf8_lossy(known).into_owned();
        let (dialect, text) = text_of(&known);
        if let Some(changed) = with_column_renamed(dialect, text, old, new) {
            body.clear();
            msgpack::encode_str(body, body_of(dialect, &changed).as_bytes());
            *column = encode_entries(&entries);
        }
    }
}

/// A name that gets a number from the second try on.
fn numbered(name: &str, number: usize) -> String {
    if number == 1 { name.to_string() } else { format!("{name}{}", number - 1) }
}

/// The text of a condition with another name of a column. None: it does not speak of it.
pub(crate) fn with_column_renamed(dialect: Dialect, text: &str, old: &str, new: &str) -> Option<String> {
    // Words of the language stay in quotes.
    let is_bare = dialect == Dialect::Postgres
        && crate::catalog::quoted(new) == new
        && matches!(Token::make_word(new, None), Token::Word(word) if word.keyword == Keyword::NoKeyword);
    let written = if is_bare { new.to_string() } else { quoted_name(dialect, new) };
    with_words(dialect, text, |word| dialect.is_same(&dialect.fold(word), old).then(|| written.clone()))
}

/// When a foreign key is looked at. Errors: `NOT DEFERRABLE INITIALLY DEFERRED`.
fn deferral_of(key: &ast::ForeignKeyConstraint) -> Result<Deferral> {
    let said = key.characteristics.unwrap_or(ast::ConstraintCharacteristics {
        deferrable: None,
        initially: None,
        enforced: None,
    });
    let is_deferred = said.initially == Some(ast::DeferrableInitial::Deferred);
    match said.deferrable {
        Some(false) if is_deferred => {
            Err(Error::new(Condition::Syntax, "constraint declared INITIALLY DEFERRED must be DEFERRABLE"))
        }
        _ if is_deferred => Ok(Deferral::Deferred),
        Some(true) => Ok(Deferral::Immediate),
        _ => Ok(Deferral::Never),
    }
}

/// Errors: `UndefinedObject` if a constraint that SET CONSTRAINTS names is not there, `WrongObject` if it does not wait for the end of a transaction.
///
/// Unique keys may be declared so, and are looked at at once all the same.
pub fn check_deferrable(database: &database::Database, names: &[String]) -> Result<()> {
    let spaces = database.catalog.spaces();
    for name in names {
        let mut is_known = false;
        let waits = spaces.iter().any(|space| {
            let def = space.def();
            let mut keys = def.foreign_keys.iter().filter(|key| key.name == *name);
            is_known |= def.checks.iter().any(|check| check.name == *name);
            is_known |= def.foreign_keys.iter().any(|key| key.name == *name);
            keys.any(|key| key.deferral != Deferral::Never) || space.index_by_name(name).is_some()
        });
        if !waits {
            return Err(match is_known {
                true => Error::new(Condition::WrongObject, format!("constraint \"{name}\" is not deferrable")),
                false => Error::new(Condition::UndefinedObject, format!("constraint \"{name}\" does not exist")),
            });
        }
    }
    Ok(())
}

/// A column that may not be null is a part of a foreign key that would make it so.
pub(crate) fn cannot_be_null(column: &str, key: &str) -> Error {
    let what = format!("Column '{column}' cannot be NOT NULL: needed in a foreign key constraint '{key}' SET NULL");
    Error::new(Condition::InvalidForeignKey, what).mysql(1830)
}

fn encode_foreign_key(out: &mut Vec<u8>, key: &ForeignKeyDef, own: SpaceId) {
    msgpack::encode_map(out, 1 + u32::from(key.space != own));
    if key.space != own {
        msgpack::encode_str(out, b"space");
        msgpack::encode_uint(out, u64::from(key.space.0));
    }
    msgpack::encode_str(out, b"field");
    msgpack::encode_map(out, key.pairs.len() as u32);
    for (local, foreign) in &key.pairs {
        for field in [local, foreign] {
            match field {
                FieldRef::Number(number) => msgpack::encode_uint(out, u64::from(*number)),
                FieldRef::Name(name) => msgpack::encode_str(out, name.as_bytes()),
            }
        }
    }
}

/// The entries of a map whose keys are texts.
pub(crate) fn raw_entries(map: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut reader = Reader::new(map);
    let Ok(count) = reader.read_map() else { return Vec::new() };
    let entries = (0..count).filter_map(|_| {
        let key = reader.read_value().ok()?;
        let value = reader.read_value().ok()?;
        let key = Reader::new(key).read_str().ok()?;
        Some((String::from_utf8_lossy(key).into_owned(), value.to_vec()))
    });
    entries.collect()
}

pub(crate) fn encode_entries(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut map = Vec::new();
    msgpack::encode_map(&mut map, entries.len() as u32);
    for (key, value) in entries {
        msgpack::encode_str(&mut map, key.as_bytes());
        map.extend_from_slice(value);
    }
    map
}
