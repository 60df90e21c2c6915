//! Checks: functions that must say true of every row, or of the value of a field.
//!
//! They are asked before a row is put in, whoever writes it, and never about rows of the log: what was good enough when it was written is not
//! questioned again. An expression of SQL is found out about once for each version of the schema.

use crate::catalog::constraints::{Check, CheckKind, Constraints};
use crate::catalog::{CheckDef, Space};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::Subject;
use crate::session::Context;
use crate::txn::TRIGGER_DEPTH_MAX;
use std::rc::Rc;
use tuple::Tuple;

/// The language of functions whose body is an expression.
pub(crate) const EXPRESSION_LANGUAGE: &str = "SQL_EXPR";

impl Database {
    /// What writes of a space have to heed, in the present schema.
    pub(crate) fn constraints_of(&self, space: &Rc<Space>) -> Rc<Constraints> {
        let version = self.catalog.constraint_version();
        if let Some((known, constraints)) = &*space.constraints.borrow()
            && *known == version
        {
            return Rc::clone(constraints);
        }
        let (def, pending) = (space.def(), space.pending.borrow().clone());
        let defs = def.checks.iter().chain(pending.iter().flat_map(|pending| &pending.checks));
        let checks = defs.map(|def| self.check_of(space, def)).collect();
        let (parents, children) = self.links_of(space);
        let generated = (!def.generated.is_empty()).then(|| match self.expressions() {
            Some(expressions) => expressions.generated_fields(self, space),
            None => Err(Error::new(ErrorCode::Unsupported, &[&"a database without SQL", &"its expressions"])),
        });
        let domains = def.has_domains.then(|| match self.expressions() {
            Some(expressions) => expressions.domains(self, space),
            None => Err(Error::new(ErrorCode::Unsupported, &[&"a database without SQL", &"its types"])),
        });
        let constraints = Rc::new(Constraints { generated, domains, checks, parents, children });
        *space.constraints.borrow_mut() = Some((version, Rc::clone(&constraints)));
        constraints
    }

    pub(crate) fn check_of(&self, space: &Rc<Space>, def: &CheckDef) -> Check {
        let kind = match self.catalog.function(def.function_id) {
            None => CheckKind::Missing,
            Some(function) if function.language == EXPRESSION_LANGUAGE => {
                CheckKind::Expression(match self.expressions() {
                    Some(expressions) => expressions.condition(self, space, &function.body, def.field),
                    None => Err(Error::new(ErrorCode::Unsupported, &[&"a database without SQL", &"its expressions"])),
                })
            }
            Some(function) => CheckKind::Function(function),
        };
        Check { def: def.clone(), kind }
    }

    /// The row with its generated fields as they have to be; none if the space has no such fields. Rows of the log have them already.
    ///
    /// Errors: those of the expressions.
    #[inline]
    pub(crate) fn with_generated(&self, context: &Context, space: &Rc<Space>, row: &[u8]) -> Result<Option<Vec<u8>>> {
        match space.has_constraints() && !context.origin.is_replay() {
            true => self.fill_generated(context, space, row),
            false => Ok(None),
        }
    }

    /// The same of any row.
    pub fn fill_generated(&self, context: &Context, space: &Rc<Space>, row: &[u8]) -> Result<Option<Vec<u8>>> {
        match &self.constraints_of(space).generated {
            None => Ok(None),
            Some(Ok(fields)) => fields.fill(self, context.session.id, row).map(Some),
            Some(Err(error)) => Err(error.clone()),
        }
    }

    /// Asks all checks of a space about a row that is to come. A function of Lua may not wait.
    ///
    /// Errors: `FieldConstraintFailed`, `TupleConstraintFailed`, behind them those of a function; those of an expression.
    pub(crate) fn check_constraints(&self, context: &Context, space: &Rc<Space>, new: Option<&Tuple>) -> Result<()> {
        let Some(row) = new else { return Ok(()) };
        let constraints = self.constraints_of(space);
        // A function that writes would change what was looked at for the row.
        let depth = context.trigger_depth.replace(TRIGGER_DEPTH_MAX);
        let answer = constraints
            .ask_domains(self, row)
            .and_then(|()| constraints.checks.iter().try_for_each(|check| self.ask(space, check, row)));
        context.trigger_depth.set(depth);
        answer
    }

    /// Asks one check about a row. Errors: as `check_constraints`.
    pub(crate) fn ask(&self, space: &Rc<Space>, check: &Check, row: &Tuple) -> Result<()> {
        let Check { def, kind } = check;
        let value = match def.field {
            Some(field) => match row.field(field) {
                // What may be nil or absent passes: that is a matter of the format.
                None | Some([0xc0]) => return Ok(()),
                Some(value) => Some(value),
            },
            None => None,
        };
        let answer = match kind {
            CheckKind::Missing => Ok(false),
            CheckKind::Expression(Ok(condition)) => match condition.holds(self, row.data()) {
                // The expression has failed and not the row.
                Err(error) => return Err(error),
                answer => answer,
            },
            CheckKind::Expression(Err(error)) => {
                Err(Error::raw(error.code(), error.body().kind, error.message().to_string()))
            }
            CheckKind::Function(function) => match self.procedures() {
                Some(procedures) => {
                    let subject = value.map_or(Subject::Row(row), Subject::Value);
                    procedures.is_satisfied(function, subject, &def.name)
                }
                None => Ok(false),
            },
        };
        match answer {
            Ok(true) => Ok(()),
            Ok(false) => Err(check_failed(space, def)),
            Err(error) => Err(check_failed(space, def).caused_by(error)),
        }
    }
}

impl Constraints {
    /// Errors: a field is not as the conditions of its type want it.
    fn ask_domains(&self, database: &Database, row: &Tuple) -> Result<()> {
        match &self.domains {
            None => Ok(()),
            Some(Ok(domains)) => domains.holds(database, row.data()).map(drop),
            Some(Err(error)) => Err(Error::raw(error.code(), error.body().kind, error.message().to_string())),
        }
    }
}

fn check_failed(space: &Space, def: &CheckDef) -> Error {
    let error = match def.field {
        Some(field) => Error::new(ErrorCode::FieldConstraintFailed, &[&def.name, &shown_field(space, field)]),
        None => Error::new(ErrorCode::TupleConstraintFailed, &[&def.name]),
    };
    error.with("space", space.name()).with("name", &def.name)
}

/// A field as messages show it: its number, from 1, and its name.
pub(crate) fn shown_field(space: &Space, field: u32) -> String {
    match space.format().field_name(field) {
        Some(name) => format!("{} ({name})", field + 1),
        None => (field + 1).to_string(),
    }
}
