//! Conditions of domains, asked about values: of rows that are written, whatever protocol writes them, and of elements of arrays.
//!
//! They belong to the type and not to its tables: a format says only that a field has some (`sql_domain`), so that a domain may get another condition, or
//! lose one, without a change of the tables. They are found out about once for each version of the schema.

use super::{DECLARED, DOMAINS_MAX, Kind, UserType, by_id, domains_below, of_declared};
use crate::array::elements;
use crate::bind::Binder;
use crate::condition::context_of;
use crate::ddl::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::run::Run;
use crate::statement::Sql;
use crate::table::Table;
use crate::types::Type;
use crate::value::Value;
use database::{Context, Database, RowCondition, Space};
use std::rc::Rc;
use storage::{IteratorKind, Key, ScanRequest};
use tuple::{IndexId, SpaceId};

/// Rows that are fetched at once.
const ROWS_AT_ONCE: usize = 64;

/// What a value of a domain has to fulfil, that of the domains below it as well.
pub(super) struct Conditions {
    /// Of a domain over arrays of a type with conditions, that type in a column's words.
    of_elements: Option<String>,
    /// Gives the value back, or fails. None: any value is good.
    expr: Option<Expr>,
    /// Where the value is put.
    slot: Slot,
    sizes: (usize, usize, usize),
    context: Rc<Context>,
}

/// The number of a type in a column's words, and how many arrays deep it is.
fn number_of(declared: &str) -> Option<(u32, usize)> {
    let rest = declared.strip_prefix(DECLARED)?;
    let number = rest.trim_end_matches("[]");
    Some((number.parse().ok()?, (rest.len() - number.len()) / 2))
}

/// True for the type in a column's format if it is a domain, or one that is made of some.
pub(crate) fn has_conditions(database: &Database, declared: &str) -> bool {
    number_of(declared).and_then(|(id, _)| by_id(database, id)).is_some_and(|user| user.domain().is_some())
}

/// True for a domain that is made of a type, through others perhaps.
pub(super) fn has_conditions_of(database: &Database, user: &UserType, below: SpaceId) -> bool {
    let mut base = user.domain().map(|domain| domain.base.clone());
    for _ in 0..DOMAINS_MAX {
        let Some((id, _)) = base.as_deref().and_then(number_of) else { return false };
        if id == below.0 {
            return true;
        }
        base = by_id(database, id).and_then(|user| Some(user.domain()?.base.clone()));
    }
    false
}

/// Errors: a value is none of the type that a column's format names.
pub(crate) fn check(database: &Database, declared: &str, value: &Value) -> Result<()> {
    check_within(database, declared, value, DOMAINS_MAX)
}

fn check_within(database: &Database, declared: &str, value: &Value, levels: usize) -> Result<()> {
    let Some((id, arrays)) = number_of(declared) else { return Ok(()) };
    let Some(user) = by_id(database, id).filter(|user| matches!(user.kind, Kind::Domain(_))) else { return Ok(()) };
    let conditions = conditions_of(database, &user)?;
    if conditions.expr.is_none() && conditions.of_elements.is_none() {
        return Ok(());
    }
    check_elements(database, &conditions, value, arrays > 0, levels)
}

/// The same of a value, or of all elements of an array, however many dimensions it has.
fn check_elements(
    database: &Database,
    conditions: &Conditions,
    value: &Value,
    is_array: bool,
    levels: usize,
) -> Result<()> {
    if is_array {
        if let Value::Document(_) = value {
            for element in elements(value) {
                let is_inner = matches!(element, Value::Document(_)) && conditions.of_elements.is_none();
                check_elements(database, conditions, &element, is_inner, levels)?;
            }
        }
        return Ok(());
    }
    if let Some(declared) = &conditions.of_elements
        && levels > 0
    {
        check_within(database, declared, value, levels - 1)?;
    }
    let Some(expr) = &conditions.expr else { return Ok(()) };
    let mut run = Run::of_row(database, &conditions.context, Dialect::Postgres, conditions.sizes);
    run.frame[conditions.slot] = value.clone();
    expr.eval(&mut run).map(drop)
}

fn conditions_of(database: &Database, user: &Rc<UserType>) -> Result<Rc<Conditions>> {
    // As of the version for which the type has been looked up.
    if let Some(known) = Sql::of(database).user_types.borrow().conditions.get(&user.space.0) {
        return Ok(Rc::clone(known));
    }
    let below = domains_below(database, user);
    let has_some =
        |user: &Rc<UserType>| user.domain().is_some_and(|domain| domain.is_not_null || !domain.checks.is_empty());
    let last = below.last().and_then(|user| Some(user.domain()?.base.clone()));
    let of_elements = last.filter(|base| number_of(base).is_some_and(|(_, arrays)| arrays > 0));
    let binder = Binder::new(database, Dialect::Postgres);
    let ty = of_declared(database, &user.declared()).map_or(Type::UNKNOWN, |found| found.ty);
    let (slot, bound) = binder.bind_domain_value(user, ty)?;
    let conditions = Rc::new(Conditions {
        of_elements: of_elements.filter(|base| has_conditions(database, base)),
        expr: below.iter().any(has_some).then_some(bound),
        slot,
        sizes: binder.sizes(),
        context: context_of(database),
    });
    Sql::of(database).user_types.borrow_mut().conditions.insert(user.space.0, Rc::clone(&conditions));
    Ok(conditions)
}

/// The fields of a space whose types have conditions.
struct OfFields(Vec<(u32, String)>);

/// What asks for the conditions of all fields of a space. Errors: it is no table.
pub(crate) fn of_space(database: &Database, space: &Rc<Space>) -> Result<Rc<dyn RowCondition>> {
    let table = Table::of(database, Rc::clone(space))?;
    let columns = table.columns.iter().zip(0u32..);
    let fields = columns.filter_map(|(column, number)| {
        let declared = column.raw_declared.clone()?;
        has_conditions(database, &declared).then_some((number, declared))
    });
    Ok(Rc::new(OfFields(fields.collect())))
}

impl RowCondition for OfFields {
    fn holds(&self, database: &Database, row: &[u8]) -> database::Result<bool> {
        for (field, declared) in &self.0 {
            let value = tuple::field(row, *field).map_or(Value::Null, Value::decode);
            check(database, declared, &value).map_err(|error| error.with_type_names(database).through_database())?;
        }
        Ok(true)
    }
}

/// Why a value of a column is none of its type; none if all are. May wait. Errors: those of reading rows; the statement is ended.
pub(super) fn look_at_column(ddl: &Ddl<'_>, table: &Table, at: usize, declared: &str) -> Result<Option<Error>> {
    let mut run = Run::new(ddl.database, ddl.context, ddl.dialect, &[], (0, 0, 0));
    let all = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
    let mut cursor = ddl.database.cursor(ddl.context, &table.space, &all)?;
    let mut rows = Vec::new();
    loop {
        cursor.next_some(ddl.database, ddl.context, ROWS_AT_ONCE, &mut rows)?;
        if rows.is_empty() {
            return Ok(None);
        }
        for row in rows.drain(..) {
            run.tick()?;
            let value = row.field(at as u32).map_or(Value::Null, Value::decode);
            match check(ddl.database, declared, &value) {
                Err(error) if matches!(error.condition(), Condition::NotNull | Condition::CheckViolation) => {
                    return Ok(Some(error));
                }
                done => done?,
            }
        }
    }
}
