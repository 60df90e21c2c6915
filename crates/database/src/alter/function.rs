//! Rows of `_func`.

use super::space::check_name;
use super::{check_change, check_given_owner, is_recovering};
use crate::access::{ObjectType, Privileges};
use crate::catalog::Function;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::session::Context;
use crate::txn::Effect;
use std::rc::Rc;
use tuple::Tuple;
use tuple::msgpack::Reader;

fn parse(row: &[u8]) -> Result<Function> {
    let mut fields = Fields::new(row)?;
    let mut function = Function {
        id: fields.uint()?,
        owner: fields.uint()?,
        name: fields.str()?.to_string(),
        is_setuid: fields.has_more() && fields.bool()?,
        language: "LUA".to_string(),
        body: String::new(),
        is_deterministic: false,
        is_sandboxed: false,
        exports: vec!["LUA".to_string()],
    };
    if fields.has_more() {
        function.language = fields.str()?.to_string();
    }
    if fields.has_more() {
        // body, routine_type, param_list, returns, aggregate, sql_data_access, is_deterministic, is_sandboxed, is_null_call
        function.body = fields.str()?.to_string();
        for _ in 0..5 {
            if fields.has_more() {
                fields.raw()?;
            }
        }
        if fields.has_more() {
            function.is_deterministic = fields.bool()?;
            function.is_sandboxed = fields.bool()?;
            fields.bool()?;
        }
        if fields.has_more() {
            let mut exports = Reader::new(fields.raw()?);
            function.exports.clear();
            for _ in 0..exports.read_array().unwrap_or(0) {
                if let Ok(name) = exports.read_str() {
                    function.exports.push(String::from_utf8_lossy(name).into_owned());
                }
            }
        }
    }
    check_name(&function.name)?;
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
        let gone = database.catalog.set_function(id, None);
        return Ok(Some(Effect {
            undo: Box::new(move |database| {
                database.catalog.set_function(id, gone);
            }),
            finish: None,
            placed: None,
            rows: 0,
        }));
    };
    let function = parse(new.data())?;
    let id = function.id;
    if !is_recovering(database) {
        if !matches!(function.language.as_str(), "LUA" | "C") {
            return Err(Error::new(ErrorCode::FunctionLanguage, &[&function.language, &function.name]));
        }
        if function.language == "C" {
            return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"C functions yet"]));
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
        if !function.body.is_empty()
            && let Some(procedures) = database.procedures()
        {
            procedures.check_function(&function)?;
        }
    }
    let before = database.catalog.function(id);
    database.catalog.set_function(id, Some(Rc::new(function)));
    Ok(Some(Effect {
        undo: Box::new(move |database| {
            database.catalog.set_function(id, before);
        }),
        finish: None,
        placed: None,
        rows: 0,
    }))
}
