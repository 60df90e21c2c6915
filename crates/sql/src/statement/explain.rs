//! EXPLAIN of a prepared statement: what it is asked for, its columns, its rows.

use super::{Column, Prepared, Work};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::explain::Form;
use crate::measured::measured;
use crate::plan::Plan;
use crate::shown_plans::Viewer;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Context, Database};
use sqlparser::ast;

/// What EXPLAIN is asked for: whether to run the statement, and the form of the answer. Errors: another form.
pub(super) fn explain_form(
    dialect: Dialect,
    analyze: bool,
    format: Option<&ast::AnalyzeFormatKind>,
    options: Option<&[ast::UtilityOption]>,
) -> Result<(bool, Form)> {
    let mut analyze = analyze;
    let mut name = format.map(|format| match format {
        ast::AnalyzeFormatKind::Keyword(format) | ast::AnalyzeFormatKind::Assignment(format) => format.to_string(),
    });
    for option in options.unwrap_or_default() {
        let value = option.arg.as_ref().map(|arg| arg.to_string().trim_matches('\'').to_lowercase());
        let is_on = !matches!(value.as_deref(), Some("false" | "off" | "0"));
        match option.name.value.to_ascii_lowercase().as_str() {
            "analyze" => analyze = is_on,
            "format" => name = value,
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" => {}
            other => {
                let what = format!("unrecognized EXPLAIN option \"{other}\"");
                return Err(Error::new(Condition::Syntax, what));
            }
        }
    }
    let form = match (name.map(|name| name.to_ascii_lowercase()).as_deref(), dialect) {
        (Some("json"), _) => Form::Json,
        (Some("tree"), Dialect::Mysql) => Form::Tree,
        (Some("text"), Dialect::Postgres) => Form::Text,
        (Some("xml"), Dialect::Postgres) => Form::Xml,
        (Some("yaml"), Dialect::Postgres) => Form::Yaml,
        (None, Dialect::Mysql) if analyze => Form::Tree,
        (None | Some("traditional"), Dialect::Mysql) => Form::Table,
        (None, _) => Form::Text,
        (Some(other), _) => return Err(Error::unsupported(format!("EXPLAIN in the form '{other}'"))),
    };
    Ok((analyze, form))
}

pub(super) fn explain_columns(dialect: Dialect, form: Form) -> Vec<Column> {
    let column = |name: &str, base: Base| Column::named(name, Type::of(base));
    match dialect {
        Dialect::Tarantool => vec![
            column("selectid", Base::Integer),
            column("order", Base::Integer),
            column("from", Base::Integer),
            column("detail", Base::Text),
        ],
        Dialect::Mysql if form == Form::Table => {
            crate::explain::TABLE_COLUMNS.iter().map(|(name, base)| column(name, *base)).collect()
        }
        Dialect::Mysql => vec![column("EXPLAIN", Base::Text)],
        Dialect::Postgres if form == Form::Json => {
            vec![Column::named("QUERY PLAN", Type::json(false))]
        }
        Dialect::Postgres => vec![column("QUERY PLAN", Base::Text)],
    }
}

impl Prepared {
    /// Its plan. Errors: it has none.
    pub(super) fn planned(&self) -> Result<&Plan> {
        match &self.work {
            Work::Query(query) => Ok(&query.plan),
            Work::Write(write) => Ok(write.source()),
            _ => Err(Error::unsupported("EXPLAIN of a statement without a plan")),
        }
    }

    /// Checks that its plan may be shown. Errors: `AccessDenied`.
    pub(super) fn check_viewer(&self, database: &Database, context: &Context) -> Result<()> {
        let viewer = Viewer { database, context };
        match &self.work {
            Work::Write(write) => viewer.check_write(write),
            _ => viewer.check_plan(self.planned()?),
        }
    }

    /// The rows of EXPLAIN. Errors: a statement that has no plan.
    pub(super) fn explained(&self, form: Form, total_ns: Option<u64>) -> Result<Vec<Vec<Value>>> {
        let plan = self.planned()?;
        if form == Form::Table {
            return Ok(crate::explain::as_table(plan));
        }
        let lines = crate::explain::explain(plan);
        if self.dialect == Dialect::Tarantool {
            let row = |(number, line): (usize, crate::explain::Line)| {
                vec![Value::Int(0), Value::Int(number as i64), Value::Int(line.depth as i64), Value::text(line.text)]
            };
            return Ok(lines.into_iter().enumerate().map(row).collect());
        }
        if matches!(form, Form::Json | Form::Xml | Form::Yaml) {
            return Ok(vec![vec![Value::text(crate::explain::as_document(&lines, form, total_ns))]]);
        }
        let texts = crate::explain::as_text(&lines, form, total_ns);
        if self.dialect == Dialect::Mysql {
            return Ok(vec![vec![Value::text(texts.join("\n"))]]);
        }
        Ok(texts.into_iter().map(|text| vec![Value::text(text)]).collect())
    }

    /// The same statement with steps that count. Errors: it has none.
    pub(super) fn measured(mut self) -> Result<Prepared> {
        match &mut self.work {
            Work::Query(query) => {
                query.plan = measured(std::mem::replace(&mut query.plan, Plan::Nothing));
            }
            Work::Write(write) => write.within(measured),
            _ => return Err(Error::unsupported("EXPLAIN ANALYZE of a statement without a plan")),
        }
        Ok(self)
    }
}
