//! Rows of `_func`.

use super::space::check_name;
use super::{check_change, check_given_owner};
use crate::access::{ObjectType, Privileges};
use crate::catalog::Function;
use crate::checks::EXPRESSION_LANGUAGE;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::{Fields, as_bool, for_each_entry};
use crate::session::Context;
use crate::txn::Effect;
use std::rc::Rc;
use tuple::Tuple;
use tuple::msgpack::Reader;

/// Types that parameters and results may be said to have.
const TYPES: [&str; 12] = [
    "any",
    "unsigned",
    "string",
    "number",
    "double",
    "integer",
    "boolean",
    "varbinary",
    "scalar",
    "decimal",
    "array",
    "map",
];

fn is_type(name: &str) -> bool {
    TYPES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The strings of an encoded list. Errors: `FieldType` naming the field.
fn strings(list: &[u8], field: u32) -> Result<Vec<String>> {
    let wrong = |expected: &str| Error::new(ErrorCode::FieldType, &[&field, &expected]);
    let mut reader = Reader::new(list);
    let count = reader.read_array().map_err(|_| wrong("array"))?;
    (0..count)
        .map(|_| {
            let text = reader.read_str().map_err(|_| wrong("string"))?;
            Ok(String::from_utf8_lossy(text).into_owned())
        })
        .collect()
}

fn parse(row: &[u8]) -> Result<Function> {
    let mut fields = Fields::new(row)?;
    let mut function = Function {
        id: fields.uint()?,
        owner: fields.uint()?,
        name: fields.str()?.to_string(),
        is_setuid: fields.has_more() && fields.bool()?,
        language: "LUA".to_string(),
        body: String::new(),
        returns: "any".to_string(),
        aggregate: "none".to_string(),
        is_multikey: false,
        is_deterministic: false,
        is_sandboxed: false,
        exports: vec!["LUA".to_string()],
    };
    let name = function.name.clone();
    check_name(&name)?;
    let refuse = |why: &str| Err(Error::new(ErrorCode::CreateFunction, &[&name, &why]));
    if fields.has_more() {
        function.language = fields.str()?.to_string();
    }
    if fields.has_more() {
        // body, routine_type, param_list, returns, aggregate, sql_data_access, is_deterministic, is_sandboxed, is_null_call
        function.body = fields.str()?.to_string();
        if fields.has_more() {
            let routine_type = fields.str()?;
            if !matches!(routine_type.to_ascii_lowercase().as_str(), "function" | "procedure") {
                return refuse("invalid routine_type value");
            }
        }
        if fields.has_more() && !strings(fields.raw()?, 8)?.iter().all(|name| is_type(name)) {
            return refuse("invalid argument type");
        }
        if fields.has_more() {
            function.returns = fields.str()?.to_string();
            if !is_type(&function.returns) {
                return refuse("invalid returns value");
            }
        }
        if fields.has_more() {
            function.aggregate = fields.str()?.to_string();
            if !matches!(function.aggregate.to_ascii_lowercase().as_str(), "none" | "group") {
                return refuse("invalid aggregate value");
            }
        }
        if fields.has_more() {
            fields.raw()?;
        }
        if fields.has_more() {
            function.is_deterministic = fields.bool()?;
            function.is_sandboxed = fields.bool()?;
            fields.bool()?;
        }
        if fields.has_more() {
            function.exports = strings(fields.raw()?, 15)?;
            if !function.exports.iter().all(|name| matches!(name.as_str(), "LUA" | "SQL")) {
                return refuse("invalid exports value");
            }
        }
        if fields.has_more() {
            for_each_entry(fields.raw()?, |key, value| {
                if key == "is_multikey" {
                    function.is_multikey = as_bool(value).unwrap_or(false);
                }
                Ok(())
            })
            .map_err(|error| error.unwrap_or_else(|| Error::new(ErrorCode::FieldType, &[&16, &"map"])))?;
        }
    }
    if function.language == "C" && (function.is_sandboxed || !function.body.is_empty()) {
        return refuse("body and is_sandboxed options are not compatible with C language");
    }
    if function.is_sandboxed && (function.body.is_empty() || function.language != "LUA") {
        return refuse("is_sandboxed option may be set only for a persistent Lua function (one with a non-empty body)");
    }
    function.is_setuid &= !function.evaluates();
    Ok(function)
}

pub(super) fn on_function(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let Some(new) = new else {
        let Some(old) = old else { return Ok(None) };
        let function = parse(old.data())?;
        let id = function.id;
        check_change(database, context, Privileges::DROP, ObjectType::Function, id, function.owner, &function.name)?;
        if database.catalog.has_grants(ObjectType::Function, id) {
            return Err(Error::new(ErrorCode::DropFunction, &[&id, &"function has grants"]));
        }
        if database.catalog.is_asked_by_constraint(id) && !context.origin.is_replay() {
            return Err(Error::new(ErrorCode::DropFunction, &[&id, &"function is referenced by constraint"]));
        }
        // What `set_function` returns is the one whose name is gone.
        let gone = database.catalog.set_function(id, None);
        let back = move |database: &Database| drop(database.catalog.set_function(id, gone.clone()));
        return Ok(Some(Effect::of(back, move |database| drop(database.catalog.set_function(id, None)))));
    };
    let function = parse(new.data())?;
    let id = function.id;
    if !context.origin.is_replay() {
        if !matches!(function.language.as_str(), "LUA" | "C" | EXPRESSION_LANGUAGE) {
            return Err(Error::new(ErrorCode::FunctionLanguage, &[&function.language, &function.name]));
        }
        if old.is_some() {
            return Err(Error::new(ErrorCode::Unsupported, &[&"function", &"alter"]));
        }
        check_change(database, context, Privileges::CREATE, ObjectType::Function, id, function.owner, &function.name)?;
        // A setuid function runs as its owner.
        check_given_owner(
            database,
            context,
            None,
            function.owner,
            Privileges::CREATE,
            ObjectType::Function,
            &function.name,
        )?;
        if function.language == EXPRESSION_LANGUAGE {
            if function.body.is_empty() {
                return Err(Error::new(ErrorCode::CreateFunction, &[&function.name, &"an expression has a body"]));
            }
        } else if !function.body.is_empty()
            && let Some(procedures) = database.procedures()
        {
            procedures.check_function(&function)?;
        }
    }
    let before = database.catalog.function(id);
    let made = Some(Rc::new(function));
    database.catalog.set_function(id, made.clone());
    let back = move |database: &Database| drop(database.catalog.set_function(id, before.clone()));
    Ok(Some(Effect::of(back, move |database| drop(database.catalog.set_function(id, made.clone())))))
}
