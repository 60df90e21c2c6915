//! What a table's columns and constraints say: from the statement, and to a space's format.

use super::sequences::Said;
use super::{Ddl, NewColumn, NewIndex};
use crate::condition::body_of;
use crate::constraint::Declared;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::generated::Generated;
use crate::types::{Base, Type};
use crate::value::Value;
use crate::written::{meant, written, written_type};
use sqlparser::ast::{self, ColumnOption, TableConstraint};
use tuple::msgpack;

/// What a column's own constraints say.
pub(super) struct ColumnKeys {
    pub(super) is_primary: bool,
    pub(super) is_unique: bool,
    /// What CONSTRAINT calls them; empty: it is not said.
    pub(super) primary_name: String,
    pub(super) unique_name: String,
    pub(super) is_generated: bool,
    /// What is said of the sequence that gives numbers.
    pub(super) sequence: Vec<Said>,
}

impl Ddl<'_> {
    /// The number of the collation that a name of MySQL's means.
    pub(super) fn collation_of(&self, name: &str) -> Option<u32> {
        let known = self.database.catalog.collation_by_name(crate::mysql::collation_name(name)?);
        known.map(|collation| collation.id())
    }

    /// Errors: null is the default of a column of MySQL's that may not be null. Such a text is refused whatever else is wrong.
    pub(super) fn check_null_default(&self, column: &ast::ColumnDef) -> Result<()> {
        let has = |is_it: &dyn Fn(&ColumnOption) -> bool| column.options.iter().any(|option| is_it(&option.option));
        let is_refused = self.dialect == Dialect::Mysql
            && has(&|option| matches!(option, ColumnOption::NotNull))
            && has(
                &|option| matches!(option, ColumnOption::Default(expr) if expr.to_string().eq_ignore_ascii_case("null")),
            );
        if is_refused { Err(invalid_default(&self.dialect.fold(&column.name))) } else { Ok(()) }
    }

    /// Errors: the default is none of the words that a column of MySQL's allows. That is looked at before it is asked whether such a column is there.
    pub(super) fn check_default_word(&self, column: &ast::ColumnDef) -> Result<()> {
        let default = column.options.iter().find_map(|option| match &option.option {
            ColumnOption::Default(expr) => Some(written(self.dialect, expr)),
            _ => None,
        });
        match default.filter(|_| self.dialect == Dialect::Mysql) {
            Some(text) => {
                self.check_word(&self.dialect.fold(&column.name), &written_type(self.dialect, &column.data_type), &text)
            }
            None => Ok(()),
        }
    }

    fn check_word(&self, column: &str, declared: &str, default: &str) -> Result<()> {
        let Some(choices) = crate::mysql::assign::Choices::of(declared) else { return Ok(()) };
        let word = meant(self.dialect, default);
        let is_number = default.parse::<f64>().is_ok();
        match word.is_some_and(|word| !choices.allows(&word)) || is_number {
            true => Err(invalid_default(column)),
            false => Ok(()),
        }
    }

    /// Errors: the default is no value of the column.
    pub(super) fn check_default(&self, column: &NewColumn) -> Result<()> {
        let refused = || invalid_default(&column.name);
        let Some(text) = column.default.as_deref() else { return Ok(()) };
        if crate::mysql::assign::Choices::of(&column.declared).is_some() {
            return self.check_word(&column.name, &column.declared, text);
        }
        let is_number =
            text.parse::<f64>().is_ok() && text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let literal = if is_number { Some(text.to_string()) } else { meant(self.dialect, text) };
        let Some(text) = literal else { return Ok(()) };
        if column.declared.contains('(') && column.ty.base == Base::Text {
            let is_long = text.chars().count() > column.ty.length as usize;
            let is_refused = self.dialect == Dialect::Mysql && column.ty.length > 0 && is_long;
            return if is_refused { Err(refused()) } else { Ok(()) };
        }
        if self.dialect == Dialect::Postgres {
            // Whether a literal is one of the type; how large it may be is looked at where a row gets it.
            let value = Value::text(text);
            let read = crate::cast::cast(
                self.dialect,
                value,
                Type { length: 0, ..column.ty },
                crate::cast::Strictness::Explicit,
            );
            return match read {
                Err(error) if !is_number && column.ty.base != Base::Text => Err(error),
                _ => Ok(()),
            };
        }
        let assigned = crate::mysql::assign::Assigned {
            column: column.name.clone(),
            to: column.ty,
            choices: None,
            is_choice: false,
            refuses_null: false,
            computed_in: None,
            is_lenient: false,
            value: crate::expr::Expr::Const(Value::Null),
        };
        let value = match is_number.then(|| text.parse::<tuple::decimal::Decimal>().ok()).flatten() {
            Some(number) => Value::decimal(number),
            None => Value::text(text),
        };
        assigned.taken(&value).map(drop).map_err(|_| refused())
    }

    /// The collation of a column of PostgreSQL's documents: numbers in them are equal however they are written.
    pub(super) fn order_of_documents(&self, ty: Type) -> Option<u32> {
        let is_ordered = self.dialect == Dialect::Postgres && ty.base == Base::Json && !ty.is_plain_json();
        is_ordered.then_some(tuple::JSON_COLLATION_ID)
    }

    pub(super) fn set_primary(&self, table: &str, primary: &mut Option<NewIndex>, index: NewIndex) -> Result<()> {
        match primary.replace(index) {
            None => Ok(()),
            Some(_) => Err(self.second_primary(table)),
        }
    }

    /// A table has one primary key.
    pub(super) fn second_primary(&self, table: &str) -> Error {
        let what = match self.dialect {
            Dialect::Tarantool => format!("Failed to create space '{table}': primary key has been already declared"),
            Dialect::Mysql => "Multiple primary key defined".to_string(),
            Dialect::Postgres => format!("multiple primary keys for table \"{table}\" are not allowed"),
        };
        Error::new(Condition::InvalidTable, what)
    }

    pub(super) fn new_column(
        &self,
        table: &str,
        column: &ast::ColumnDef,
        declared_constraints: &mut Declared,
    ) -> Result<(NewColumn, ColumnKeys)> {
        let named = crate::user_types::resolve(self.database, self.dialect, &column.data_type)?;
        let mut ty = named.ty;
        let declared = named.declared.unwrap_or_else(|| written_type(self.dialect, &column.data_type));
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
            identity: None,
            generated: None,
            declared: declared.clone(),
        };
        if self.dialect == Dialect::Mysql && ty.base == Base::Text {
            // Text is compared without regard to case, if nothing else is said.
            new.collation = self.collation_of("utf8mb4_0900_ai_ci");
        }
        new.collation = new.collation.or(self.order_of_documents(ty));
        let is_serial = declared.to_ascii_lowercase().contains("serial");
        let mut keys = ColumnKeys {
            is_primary: false,
            is_unique: false,
            primary_name: String::new(),
            unique_name: String::new(),
            is_generated: is_serial,
            sequence: Vec::new(),
        };
        new.is_nullable = !is_serial;
        for option in &column.options {
            let called = || match (&option.name, self.dialect) {
                (Some(name), Dialect::Postgres) => self.dialect.fold(name),
                _ => String::new(),
            };
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => new.is_nullable = false,
                ColumnOption::Default(expr) => new.default = Some(written(self.dialect, expr)),
                ColumnOption::PrimaryKey(_) => (keys.is_primary, keys.primary_name) = (true, called()),
                // Made when the table is there.
                ColumnOption::Unique(key) if self.has_equal_nulls(key) => {}
                ColumnOption::Unique(_) => (keys.is_unique, keys.unique_name) = (true, called()),
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
                ColumnOption::OnUpdate(expr) => new.on_update = Some(written(self.dialect, expr)),
                ColumnOption::Invisible => {}
                ColumnOption::Collation(name) => new.collation = self.ordered_by(name)?,
                ColumnOption::Generated { generation_expr: None, generated_as, sequence_options, .. } => {
                    self.declare_identity(
                        table,
                        column,
                        (&mut new, &mut keys),
                        (*generated_as, sequence_options.as_deref()),
                    )?;
                }
                ColumnOption::Generated { generation_expr: Some(expr), generation_expr_mode, .. } => {
                    self.declare_generated(table, &mut new, expr, *generation_expr_mode)?;
                }
                ColumnOption::Identity(_) => {
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
        if new.generated.is_some() && (new.default.is_some() || keys.is_generated) {
            let what = match new.default.is_some() {
                true => "both default and generation expression specified for column",
                false => "both identity and generation expression specified for column",
            };
            let what = format!("{what} \"{}\" of table \"{table}\"", new.name);
            return Err(Error::new(Condition::Syntax, what).mysql(1221));
        }
        if self.dialect == Dialect::Mysql {
            if let Some(default) = &new.default
                && default.eq_ignore_ascii_case("null")
            {
                if !new.is_nullable {
                    return Err(invalid_default(&new.name));
                }
                new.default = None;
            }
            self.check_default(&new)?;
        }
        if self.dialect == Dialect::Postgres {
            new.default = new.default.take().filter(|text| self.keeps_default(&new, text));
            self.default_of_enum(&mut new)?;
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

    /// GENERATED ALWAYS AS of a column that is declared; what the expression means is looked at when the table has it.
    fn declare_generated(
        &self,
        table: &str,
        new: &mut NewColumn,
        expr: &ast::Expr,
        mode: Option<ast::GeneratedExpressionMode>,
    ) -> Result<()> {
        if self.dialect == Dialect::Tarantool {
            return Err(Error::unsupported(format!("GENERATED ALWAYS AS of column {}", new.name)));
        }
        let is_virtual = mode != Some(ast::GeneratedExpressionMode::Stored);
        if is_virtual && self.dialect == Dialect::Postgres {
            return Err(Error::new(Condition::Syntax, "a generated column of PostgreSQL's is STORED"));
        }
        if new.generated.is_some() {
            let what =
                format!("multiple generation clauses specified for column \"{}\" of table \"{table}\"", new.name);
            return Err(Error::new(Condition::Syntax, what));
        }
        new.generated = Some(Generated { body: body_of(self.dialect, &written(self.dialect, expr)), is_virtual });
        Ok(())
    }

    pub(super) fn add_constraint(
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

    pub(crate) fn encode_column(&self, column: &NewColumn, row: &mut Vec<u8>) {
        // What the engine's type does not say.
        let declared = match self.dialect {
            Dialect::Tarantool => None,
            Dialect::Mysql => Some(&column.declared).filter(|_| !column.is_hidden),
            Dialect::Postgres => Some(&column.declared)
                .filter(|text| column.ty != Type::of(Base::Text) || crate::user_types::is_declared(text)),
        };
        let has_conditions = declared.is_some_and(|text| crate::user_types::has_conditions(self.database, text));
        let count = 4
            + u32::from(column.default.is_some())
            + u32::from(column.collation.is_some())
            + u32::from(declared.is_some())
            + u32::from(has_conditions)
            + u32::from(column.on_update.is_some())
            + u32::from(column.comment.is_some())
            + u32::from(column.identity.is_some())
            + column.generated.as_ref().map_or(0, |generated| 1 + u32::from(generated.is_virtual))
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
        if let Some(identity) = column.identity {
            put("sql_identity", identity.word());
        }
        if let Some(generated) = &column.generated {
            put("generated", &generated.body);
            if generated.is_virtual {
                msgpack::encode_str(row, b"sql_virtual");
                msgpack::encode_bool(row, true);
            }
        }
        for (key, is_so) in [("sql_hidden", column.is_hidden), ("sql_domain", has_conditions)] {
            if is_so {
                msgpack::encode_str(row, key.as_bytes());
                msgpack::encode_bool(row, true);
            }
        }
        msgpack::encode_str(row, b"is_nullable");
        msgpack::encode_bool(row, column.is_nullable);
        if let Some(collation) = column.collation {
            msgpack::encode_str(row, b"collation");
            msgpack::encode_uint(row, u64::from(collation));
        }
    }
}

fn invalid_default(column: &str) -> Error {
    Error::new(Condition::InvalidDefault, format!("Invalid default value for '{column}'"))
}
