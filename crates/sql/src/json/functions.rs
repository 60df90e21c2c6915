//! Functions of JSON, of both dialects that have them.

use super::path::{Path, Place, change_at, weight};
use super::value::place_of;
use super::within::{Names, contained, contains, merge_patch, merge_preserve, overlaps};
use super::written::write_here;
use super::{Json, quote};
use crate::array::elements;
use crate::cast::display;
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::run::Run;
use crate::sets::document;
use crate::types::{Base, Type};
use crate::value::Value;
use hashbrown::HashSet;

const JSON: Returns = Returns::Type(Base::Json);
const TEXT: Returns = Returns::Type(Base::Text);
const BOOL: Returns = Returns::Type(Base::Bool);
const INT: Returns = Returns::Type(Base::Int4);
const MANY: usize = usize::MAX;

fn text_of(value: &Value) -> &str {
    value.as_text().unwrap_or_default()
}

fn shown(json: &Json) -> Value {
    Value::text(json.to_string())
}

fn plain(json: &Json) -> Value {
    json.plain().map_or(Value::Null, Value::text)
}

/// A document on its way out. Errors: `LimitExceeded`.
fn done(run: &Run<'_>, json: &Json) -> Result<Value> {
    let text = json.to_string();
    run.check_length(text.len())?;
    Ok(Value::text(text))
}

/// What a step leads to: in `json` the text as it stands there is not kept, but its normal form is close.
fn member<'j>(json: &'j Json, step: &Value) -> Option<&'j Json> {
    match step {
        Value::Text(name) => json.member(name),
        step => match (json, step.as_integer()?) {
            (Json::Array(_), number) => json.element(i64::try_from(number).ok()?),
            (Json::Object(_), _) => None,
            // A plain value is an array of one.
            (plain, 0 | -1) => Some(plain),
            _ => None,
        },
    }
}

fn at<'j>(json: &'j Json, path: &Value) -> Option<&'j Json> {
    let mut here = json;
    for step in elements(path) {
        here = here.step(step.as_text()?)?;
    }
    Some(here)
}

fn refused(what: impl Into<String>) -> Error {
    Error::new(Condition::InvalidArgument, what)
}

/// True if a document has no parts that a path could name. Errors: it can have none.
fn is_without_parts(json: &Json, what: &str) -> Result<bool> {
    match json {
        Json::Array(elements) => Ok(elements.is_empty()),
        Json::Object(members) => Ok(members.is_empty()),
        _ => Err(refused(format!("cannot {what} path in scalar"))),
    }
}

/// The places of a path of texts, as they are in a document.
fn places_of(json: &Json, path: &Value) -> Result<Option<Vec<Place>>> {
    let mut places = Vec::new();
    let mut here = Some(json);
    for (number, step) in elements(path).iter().enumerate() {
        let Some(step) = step.as_text() else {
            return Err(Error::new(Condition::NotNull, format!("path element at position {} is null", number + 1)));
        };
        let is_array = matches!(here, Some(Json::Array(_)));
        places.push(match is_array {
            true => match step.trim().parse() {
                Ok(number) => Place::Element(number),
                Err(_) => {
                    let what = format!("path element at position {} is not an integer: \"{step}\"", number + 1);
                    return Err(Error::new(Condition::InvalidText, what));
                }
            },
            false => Place::Member(step.to_string()),
        });
        here = here.and_then(|here| here.step(step));
    }
    Ok(Some(places))
}

fn without_nulls(json: Json) -> Json {
    match json {
        Json::Object(members) => Json::Object(
            members
                .into_iter()
                .filter(|(_, value)| *value != Json::Null)
                .map(|(name, value)| (name, without_nulls(value)))
                .collect(),
        ),
        Json::Array(elements) => Json::Array(elements.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

fn joined(a: Json, b: Json) -> Json {
    match (a, b) {
        (Json::Object(mut a), Json::Object(b)) => {
            a.extend(b);
            Json::object(a)
        }
        (Json::Array(mut a), Json::Array(b)) => {
            a.extend(b);
            Json::Array(a)
        }
        (Json::Array(mut a), b) => {
            a.push(b);
            Json::Array(a)
        }
        (a, Json::Array(mut b)) => {
            b.insert(0, a);
            Json::Array(b)
        }
        (a, b) => Json::Array(vec![a, b]),
    }
}

fn object_of(run: &Run<'_>, a: &[Value], is_binary: bool) -> Result<Value> {
    let mut out = String::from("{");
    for (number, pair) in a.chunks(2).enumerate() {
        if pair[0].is_null() {
            return Err(refused(format!("argument {}: key must not be null", number * 2 + 1)));
        }
        out.push_str(if number > 0 { ", " } else { "" });
        quote(&display(run.dialect, &pair[0]), &mut out);
        out.push_str(" : ");
        out.push_str(pair.get(1).and_then(Value::as_text).unwrap_or("null"));
        run.check_length(out.len())?;
    }
    out.push('}');
    Ok(Value::text(if is_binary { Json::normal(&out) } else { out }))
}

fn array_of(run: &Run<'_>, a: &[Value], is_binary: bool) -> Result<Value> {
    let mut out = String::from("[");
    for (number, value) in a.iter().enumerate() {
        out.push_str(if number > 0 { ", " } else { "" });
        out.push_str(value.as_text().unwrap_or("null"));
        run.check_length(out.len())?;
    }
    out.push(']');
    Ok(Value::text(if is_binary { Json::normal(&out) } else { out }))
}

/// An object of texts: names and values in turn, or in two arrays.
fn object_of_texts(run: &Run<'_>, a: &[Value]) -> Result<Value> {
    let mut names = elements(&a[0]);
    let values = match a.get(1) {
        Some(values) => elements(values),
        None => {
            if !names.len().is_multiple_of(2) {
                return Err(refused("array must have even number of elements"));
            }
            let mut values = Vec::new();
            let mut kept = Vec::new();
            for pair in names.chunks(2) {
                kept.push(pair[0].clone());
                values.push(pair[1].clone());
            }
            names = kept;
            values
        }
    };
    if names.len() != values.len() {
        return Err(refused("mismatched array dimensions"));
    }
    let mut members = Vec::new();
    for (name, value) in names.iter().zip(&values) {
        let name = name.as_text().ok_or_else(|| refused("null value not allowed for object key"))?;
        members.push((name.to_string(), value.as_text().map_or(Json::Null, |text| Json::Text(text.to_string()))));
    }
    done(run, &Json::object(members))
}

// MySQL's.

/// An argument as a document. Errors: it is none.
fn argument(a: &[Value], number: usize, function: &str) -> Result<Json> {
    let text = text_of(&a[number]);
    Json::parse_or(text, || {
        let what = format!(
            "Invalid JSON text in argument {} to function {function}: \"Invalid value.\" at position 0.",
            number + 1
        );
        Error::new(Condition::InvalidText, what).mysql(3141)
    })
}

fn path(value: &Value) -> Result<Path> {
    Path::parse_mysql(text_of(value))
}

fn single(value: &Value) -> Result<Vec<Place>> {
    let parsed = path(value)?;
    parsed.places().ok_or_else(|| {
        let what = "In this situation, path expressions may not contain the * and ** tokens or an array range.";
        refused(what).mysql(3149)
    })
}

/// How values are put at places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    Set,
    Insert,
    Replace,
    Append,
}

fn put(run: &mut Run<'_>, a: &[Value], how: Put, function: &str) -> Result<Value> {
    if a[0].is_null() {
        return Ok(Value::Null);
    }
    let mut json = argument(a, 0, function)?;
    for pair in a[1..].chunks(2) {
        if pair[0].is_null() {
            return Ok(Value::Null);
        }
        let places = single(&pair[0])?;
        let new = document(&pair[1])?;
        change_at(&mut json, &places, &mut |before| match (before, how) {
            (Some(_), Put::Set | Put::Replace) | (None, Put::Set | Put::Insert) => Some(new.clone()),
            (Some(before), Put::Insert) => Some(before),
            (Some(Json::Array(mut elements)), Put::Append) => {
                elements.push(new.clone());
                Some(Json::Array(elements))
            }
            (Some(before), Put::Append) => Some(Json::Array(vec![before, new.clone()])),
            (None, _) => None,
        });
    }
    done(run, &json)
}

fn depth(json: &Json) -> i64 {
    match json {
        Json::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 1,
    }
}

fn length(json: &Json) -> i64 {
    match json {
        Json::Array(elements) => elements.len() as i64,
        Json::Object(members) => members.len() as i64,
        _ => 1,
    }
}

fn search(
    run: &mut Run<'_>,
    json: &Json,
    wanted: &crate::expr::Like,
    at: &mut String,
    found: &mut Vec<String>,
) -> Result<()> {
    match json {
        Json::Text(text) if wanted.matches(run, text)? => found.push(at.clone()),
        Json::Array(elements) => {
            for (number, element) in elements.iter().enumerate() {
                let length = at.len();
                at.push_str(&format!("[{number}]"));
                search(run, element, wanted, at, found)?;
                at.truncate(length);
            }
        }
        Json::Object(members) => {
            for (name, value) in members {
                let length = at.len();
                let is_plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                at.push('.');
                match is_plain {
                    true => at.push_str(name),
                    false => quote(name, at),
                }
                search(run, value, wanted, at, found)?;
                at.truncate(length);
            }
        }
        _ => {}
    }
    Ok(())
}

fn kind_in_mysql(json: &Json) -> &'static str {
    match json {
        Json::Null => "NULL",
        Json::Bool(_) => "BOOLEAN",
        Json::Number(digits) if digits.contains(['.', 'e', 'E']) => "DOUBLE",
        Json::Number(digits) if digits.parse::<i64>().is_err() => "UNSIGNED INTEGER",
        Json::Number(_) => "INTEGER",
        Json::Text(_) => "STRING",
        Json::Array(_) => "ARRAY",
        Json::Object(_) => "OBJECT",
    }
}

crate::functions::alike! {
    is_volatile: false;
    "json_of" (2, 2) JSON, true => |run, a| {
        let ty = Type::of_code(a[1].as_integer().and_then(|code| i64::try_from(code).ok()).unwrap_or(0));
        let mut out = String::new();
        write_here(run.dialect, &a[0], ty, run.zone().as_ref(), &mut out);
        run.check_length(out.len())?;
        Ok(Value::text(out))
    };
    "json_row" (0, MANY) JSON, false => |run, a| {
        let mut out = String::from("{");
        for (number, pair) in a.chunks(2).enumerate() {
            out.push_str(if number > 0 { "," } else { "" });
            quote(text_of(&pair[0]), &mut out);
            out.push(':');
            out.push_str(pair.get(1).and_then(Value::as_text).unwrap_or("null"));
            run.check_length(out.len())?;
        }
        out.push('}');
        Ok(Value::text(out))
    };
    "json_member" (2, 2) JSON, true => |_, a| Ok(member(&document(&a[0])?, &a[1]).map_or(Value::Null, shown));
    "json_member_text" (2, 2) TEXT, true => |_, a| Ok(member(&document(&a[0])?, &a[1]).map_or(Value::Null, plain));
    "json_at" (2, 2) JSON, true => |_, a| Ok(at(&document(&a[0])?, &a[1]).map_or(Value::Null, shown));
    "json_at_text" (2, 2) TEXT, true => |_, a| Ok(at(&document(&a[0])?, &a[1]).map_or(Value::Null, plain));
    "json_includes" (2, 2) BOOL, true => |run, a| {
        let (whole, part) = (document(&a[0])?, document(&a[1])?);
        Ok(Value::Bool(contains(run, &whole, &part)?))
    };
    "json_has" (2, 2) BOOL, true => |_, a| Ok(Value::Bool(Names::of(&document(&a[0])?).has(text_of(&a[1]))));
    "json_has_any" (2, 2) BOOL, true => |_, a| {
        let json = document(&a[0])?;
        let names = Names::of(&json);
        Ok(Value::Bool(elements(&a[1]).iter().any(|name| names.has(text_of(name)))))
    };
    "json_has_all" (2, 2) BOOL, true => |_, a| {
        let json = document(&a[0])?;
        let names = Names::of(&json);
        Ok(Value::Bool(elements(&a[1]).iter().all(|name| names.has(text_of(name)))))
    };
    "json_joined" (2, 2) JSON, true => |run, a| done(run, &joined(document(&a[0])?, document(&a[1])?));
    "json_without" (2, 2) JSON, true => |run, a| {
        let mut json = document(&a[0])?;
        if !matches!(json, Json::Array(_) | Json::Object(_)) {
            return Err(refused("cannot delete from scalar"));
        }
        let names: Vec<Value> = match &a[1] {
            Value::Document(_) => elements(&a[1]),
            one => vec![one.clone()],
        };
        if let [Value::Int(number)] = &names[..] {
            match &mut json {
                Json::Array(elements) => {
                    if let Some(at) = place_of(*number, elements.len()) {
                        elements.remove(at);
                    }
                }
                _ => return Err(refused("cannot delete from object using integer index")),
            }
            return done(run, &json);
        }
        let names: HashSet<&str> = names.iter().map(text_of).collect();
        match &mut json {
            Json::Object(members) => members.retain(|(known, _)| !names.contains(&known[..])),
            Json::Array(elements) => {
                elements.retain(|element| !matches!(element, Json::Text(text) if names.contains(&text[..])));
            }
            _ => {}
        }
        done(run, &json)
    };
    "json_without_path" (2, 2) JSON, true => |run, a| {
        let mut json = document(&a[0])?;
        if is_without_parts(&json, "delete")? {
            return Ok(a[0].clone());
        }
        if let Some(places) = places_of(&json, &a[1])?.filter(|places| !places.is_empty()) {
            change_at(&mut json, &places, &mut |_| None);
        }
        done(run, &json)
    };
    "jsonb_set" (3, 4) JSON, true => |run, a| {
        let mut json = document(&a[0])?;
        let new = document(&a[2])?;
        is_without_parts(&json, "set")?;
        let makes = !matches!(a.get(3), Some(Value::Bool(false)));
        if let Some(places) = places_of(&json, &a[1])?.filter(|places| !places.is_empty()) {
            change_at(&mut json, &places, &mut |before| (before.is_some() || makes).then(|| new.clone()));
        }
        done(run, &json)
    };
    "jsonb_insert" (3, 4) JSON, true => |run, a| {
        let mut json = document(&a[0])?;
        let new = document(&a[2])?;
        is_without_parts(&json, "set")?;
        let is_behind = matches!(a.get(3), Some(Value::Bool(true)));
        let Some(mut places) = places_of(&json, &a[1])? else { return Ok(a[0].clone()) };
        match places.pop() {
            Some(Place::Element(number)) => change_at(&mut json, &places, &mut |before| match before {
                Some(Json::Array(mut elements)) => {
                    let at = place_of(number, elements.len()).map_or(if number < 0 { 0 } else { elements.len() }, |at| at + usize::from(is_behind));
                    elements.insert(at, new.clone());
                    Some(Json::Array(elements))
                }
                other => other,
            }),
            Some(place) => {
                places.push(place);
                let mut is_there = false;
                change_at(&mut json, &places, &mut |before| {
                    is_there = before.is_some();
                    before.or_else(|| Some(new.clone()))
                });
                if is_there {
                    return Err(refused("cannot replace existing key"));
                }
            }
            None => {}
        }
        done(run, &json)
    };
    "json_typeof" (1, 1) TEXT, true => |_, a| Ok(Value::text(document(&a[0])?.kind()));
    "jsonb_typeof" (1, 1) TEXT, true => |_, a| Ok(Value::text(document(&a[0])?.kind()));
    "json_array_length" (1, 1) INT, true => array_length;
    "jsonb_array_length" (1, 1) INT, true => array_length;
    "json_strip_nulls" (1, 1) JSON, true => |run, a| done(run, &without_nulls(document(&a[0])?));
    "jsonb_strip_nulls" (1, 1) JSON, true => |run, a| done(run, &without_nulls(document(&a[0])?));
    "jsonb_pretty" (1, 1) TEXT, true => |run, a| {
        let mut out = String::new();
        document(&a[0])?.write_pretty(0, 4, &mut out);
        run.check_length(out.len())?;
        Ok(Value::text(out))
    };
    "json_build_object" (0, MANY) JSON, false => |run, a| object_of(run, a, false);
    "jsonb_build_object" (0, MANY) JSON, false => |run, a| object_of(run, a, true);
    "json_build_array" (0, MANY) JSON, false => |run, a| array_of(run, a, false);
    "jsonb_build_array" (0, MANY) JSON, false => |run, a| array_of(run, a, true);
    "json_object" (1, 2) JSON, true => |run, a| object_of_texts(run, a);
    "jsonb_object" (1, 2) JSON, true => |run, a| object_of_texts(run, a);
    "jsonb_path_exists" (2, 3) BOOL, true => |run, a| {
        let variables = a.get(2).map(document).transpose()?;
        let found = Path::parse(text_of(&a[1]))?.find(run, &document(&a[0])?, variables.as_ref())?;
        Ok(Value::Bool(!found.is_empty()))
    };
    "jsonb_path_match" (2, 3) BOOL, true => |run, a| {
        let variables = a.get(2).map(document).transpose()?;
        let is = Path::parse(text_of(&a[1]))?.is_true(run, &document(&a[0])?, variables.as_ref())?;
        Ok(is.map_or(Value::Null, Value::Bool))
    };
    "jsonb_path_query_array" (2, 3) JSON, true => |run, a| {
        let variables = a.get(2).map(document).transpose()?;
        let found = Path::parse(text_of(&a[1]))?.find(run, &document(&a[0])?, variables.as_ref())?;
        done(run, &Json::Array(found))
    };
    "jsonb_path_query_first" (2, 3) JSON, true => |run, a| {
        let variables = a.get(2).map(document).transpose()?;
        let found = Path::parse(text_of(&a[1]))?.find(run, &document(&a[0])?, variables.as_ref())?;
        Ok(found.first().map_or(Value::Null, shown))
    };
}

fn array_length(_: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    match document(&a[0])? {
        Json::Array(elements) => Ok(Value::Int(elements.len() as i64)),
        Json::Object(_) => Err(refused("cannot get array length of a non-array")),
        _ => Err(refused("cannot get array length of a scalar")),
    }
}

pub(crate) mod mysql {
    //! Those of MySQL's dialect.

    use super::*;

    crate::functions::alike! {
        is_volatile: false;
        "json_object" (0, MANY) JSON, false => |run, a| {
            if a.chunks(2).any(|pair| pair[0].is_null()) {
                return Err(refused("JSON documents may not contain NULL member names.").mysql(3158));
            }
            object_of(run, a, true)
        };
        "json_array" (0, MANY) JSON, false => |run, a| array_of(run, a, true);
        "json_quote" (1, 1) TEXT, true => |run, a| {
            let mut out = String::new();
            quote(&display(run.dialect, &a[0]), &mut out);
            Ok(Value::text(out))
        };
        "json_unquote" (1, 1) TEXT, true => |run, a| {
            let text = display(run.dialect, &a[0]);
            Ok(match text.starts_with('"').then(|| Json::parse(&text)).flatten() {
                Some(Json::Text(inner)) => Value::text(inner),
                _ => Value::text(text),
            })
        };
        // A true one is 1, and a text has the number that it begins with.
        "number_of_document" (1, 1) TEXT, true => |run, a| {
            let text = display(run.dialect, &a[0]);
            Ok(match text.as_bytes().first() {
                Some(b't') => Value::text("1"),
                Some(b'f' | b'n') => Value::text("0"),
                Some(b'"') => match Json::parse(&text) {
                    Some(Json::Text(inner)) => Value::text(inner),
                    _ => Value::text(text),
                },
                _ => Value::text(text),
            })
        };
        "json_valid" (1, 1) INT, true => |_, a| {
            Ok(Value::Int(i64::from(matches!(&a[0], Value::Text(text) if super::super::check(text)))))
        };
        "json_extract" (2, MANY) JSON, true => |run, a| {
            let json = argument(a, 0, "json_extract")?;
            let mut found = Vec::new();
            let mut is_single = a.len() == 2;
            for wanted in &a[1..] {
                let wanted = path(wanted)?;
                is_single &= wanted.is_single();
                let more = wanted.find(run, &json, None)?;
                run.take(more.iter().map(weight).sum())?;
                found.extend(more);
            }
            match (is_single, found.as_slice()) {
                (_, []) => Ok(Value::Null),
                (true, [one]) => done(run, one),
                _ => done(run, &Json::Array(found)),
            }
        };
        "json_value" (2, 2) TEXT, true => |run, a| {
            let found = path(&a[1])?.find(run, &argument(a, 0, "json_value")?, None)?;
            Ok(found.first().map_or(Value::Null, plain))
        };
        "json_set" (3, MANY) JSON, false => |run, a| put(run, a, Put::Set, "json_set");
        "json_insert" (3, MANY) JSON, false => |run, a| put(run, a, Put::Insert, "json_insert");
        "json_replace" (3, MANY) JSON, false => |run, a| put(run, a, Put::Replace, "json_replace");
        "json_array_append" (3, MANY) JSON, false => |run, a| put(run, a, Put::Append, "json_array_append");
        "json_array_insert" (3, MANY) JSON, false => |run, a| {
            if a.iter().any(Value::is_null) {
                return Ok(Value::Null);
            }
            let mut json = argument(a, 0, "json_array_insert")?;
            for pair in a[1..].chunks(2) {
                let mut places = single(&pair[0])?;
                let new = document(&pair[1])?;
                let Some(Place::Element(number)) = places.pop() else {
                    return Err(refused("A path expression is not a path to a cell in an array.").mysql(3165));
                };
                change_at(&mut json, &places, &mut |before| match before {
                    Some(Json::Array(mut elements)) => {
                        let at = place_of(number, elements.len()).unwrap_or(if number < 0 { 0 } else { elements.len() });
                        elements.insert(at, new.clone());
                        Some(Json::Array(elements))
                    }
                    other => other,
                });
            }
            done(run, &json)
        };
        "json_remove" (2, MANY) JSON, true => |run, a| {
            let mut json = argument(a, 0, "json_remove")?;
            for wanted in &a[1..] {
                let places = single(wanted)?;
                if places.is_empty() {
                    return Err(refused("The path expression '$' is not allowed in this context.").mysql(3153));
                }
                change_at(&mut json, &places, &mut |_| None);
            }
            done(run, &json)
        };
        "json_contains" (2, 3) INT, true => |run, a| {
            let (json, wanted) = (argument(a, 0, "json_contains")?, argument(a, 1, "json_contains")?);
            let Some(at) = a.get(2) else {
                return Ok(Value::Int(i64::from(contained(run, &json, &wanted)?)));
            };
            let found = path(at)?.find(run, &json, None)?;
            match found.first() {
                Some(found) => Ok(Value::Int(i64::from(contained(run, found, &wanted)?))),
                None => Ok(Value::Null),
            }
        };
        "json_contains_path" (3, MANY) INT, true => |run, a| {
            let json = argument(a, 0, "json_contains_path")?;
            let all = match text_of(&a[1]).to_ascii_lowercase().as_str() {
                "all" => true,
                "one" => false,
                _ => return Err(refused("The oneOrAll argument to json_contains_path may take these values: 'one' or 'all'.").mysql(3154)),
            };
            let mut count = 0;
            for wanted in &a[2..] {
                count += usize::from(!path(wanted)?.find(run, &json, None)?.is_empty());
            }
            Ok(Value::Int(i64::from(if all { count == a.len() - 2 } else { count > 0 })))
        };
        "json_keys" (1, 2) JSON, true => |run, a| {
            let json = argument(a, 0, "json_keys")?;
            let found = match a.get(1) {
                Some(at) => path(at)?.find(run, &json, None)?.into_iter().next(),
                None => Some(json),
            };
            match found {
                Some(Json::Object(members)) => {
                    done(run, &Json::Array(members.into_iter().map(|(name, _)| Json::Text(name)).collect()))
                }
                _ => Ok(Value::Null),
            }
        };
        "json_length" (1, 2) INT, true => |run, a| {
            let json = argument(a, 0, "json_length")?;
            let Some(at) = a.get(1) else { return Ok(Value::Int(length(&json))) };
            let found = path(at)?.find(run, &json, None)?;
            Ok(found.first().map_or(Value::Null, |found| Value::Int(length(found))))
        };
        "json_depth" (1, 1) INT, true => |_, a| Ok(Value::Int(depth(&argument(a, 0, "json_depth")?)));
        "json_type" (1, 1) TEXT, true => |_, a| Ok(Value::text(kind_in_mysql(&argument(a, 0, "json_type")?)));
        "json_pretty" (1, 1) TEXT, true => |run, a| {
            let mut out = String::new();
            argument(a, 0, "json_pretty")?.write_pretty(0, 2, &mut out);
            run.check_length(out.len())?;
            Ok(Value::text(out))
        };
        "json_merge_patch" (2, MANY) JSON, true => |run, a| {
            let mut json = argument(a, 0, "json_merge_patch")?;
            for number in 1..a.len() {
                json = merge_patch(json, argument(a, number, "json_merge_patch")?);
                run.look()?;
            }
            done(run, &json)
        };
        "json_merge_preserve" (2, MANY) JSON, true => |run, a| {
            let mut json = argument(a, 0, "json_merge_preserve")?;
            for number in 1..a.len() {
                json = merge_preserve(json, argument(a, number, "json_merge_preserve")?);
                run.look()?;
            }
            done(run, &json)
        };
        "json_overlaps" (2, 2) INT, true => |run, a| {
            let (first, second) = (argument(a, 0, "json_overlaps")?, argument(a, 1, "json_overlaps")?);
            Ok(Value::Int(i64::from(overlaps(run, first, second)?)))
        };
        "member_of" (2, 2) INT, true => |_, a| {
            let wanted = document(&a[0])?;
            Ok(Value::Int(i64::from(match argument(a, 1, "member of")? {
                Json::Array(elements) => elements.iter().any(|element| element.is_same(&wanted)),
                other => other.is_same(&wanted),
            })))
        };
        "json_search" (3, MANY) JSON, false => |run, a| {
            if a[0].is_null() || a[1].is_null() || a[2].is_null() {
                return Ok(Value::Null);
            }
            let json = argument(a, 0, "json_search")?;
            let is_one = match text_of(&a[1]).to_ascii_lowercase().as_str() {
                "one" => true,
                "all" => false,
                _ => return Err(refused("The oneOrAll argument to json_search may take these values: 'one' or 'all'.").mysql(3154)),
            };
            let escape = a.get(3).and_then(Value::as_text).and_then(|text| text.chars().next()).unwrap_or('\\');
            let pattern = crate::expr::Expr::Const(a[2].clone());
            let wanted = crate::expr::Like { text: pattern.clone(), pattern, escape: Some(escape), ignores_case: false, collation: None };
            let mut found = Vec::new();
            search(run, &json, &wanted, &mut "$".to_string(), &mut found)?;
            if is_one {
                found.truncate(1);
            }
            let mut found: Vec<Json> = found.into_iter().map(Json::Text).collect();
            match found.len() {
                0 => Ok(Value::Null),
                1 => done(run, &found.remove(0)),
                _ => done(run, &Json::Array(found)),
            }
        };
    }

    /// The function of a name.
    pub(crate) fn find(name: &str) -> Option<&'static Function> {
        let name = match name {
            "json_merge" => "json_merge_preserve",
            "json_append" => "json_array_append",
            name => name,
        };
        FUNCTIONS.iter().find(|function| function.name == name)
    }
}

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}
