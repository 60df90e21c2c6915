//! Hashes: a row `{id, field, value}` for each field.

use super::call::{Call, Head, Kind, SLICE};
use super::failure::Outcome;
use super::keys::read_text;
use super::resp::integer;
use super::strings::{add_floats, number};
use tuple::Tuple;
use tuple::msgpack::{self, Reader};

fn encode_key(out: &mut Vec<u8>, id: u64, field: &[u8]) {
    msgpack::encode_uint(out, id);
    msgpack::encode_str(out, field);
}

/// The value in a row.
fn value_of(row: &Tuple) -> &[u8] {
    let mut reader = Reader::new(row.data());
    let read = reader.read_array().and_then(|_| reader.read_uint()).and_then(|_| reader.read_str());
    read.and_then(|_| reader.read_str()).unwrap_or_default()
}

fn field(call: &Call<'_>, head: &Head, field: &[u8]) -> Outcome<Option<Tuple>> {
    call.get_element(Kind::Hash, 2, |out| encode_key(out, head.id, field))
}

/// The value of a field.
pub(super) fn value(call: &Call<'_>, head: &Head, name: &[u8]) -> Outcome<Option<Vec<u8>>> {
    Ok(field(call, head, name)?.map(|row| value_of(&row).to_vec()))
}

/// Puts a field. True if it is new.
fn put(call: &Call<'_>, head: &Head, field: &[u8], value: &[u8]) -> Outcome<bool> {
    call.put_member(head, field, 3, |out| msgpack::encode_str(out, value))
}

/// Puts fields. Returns how many are new.
pub(super) fn put_all<'a>(
    call: &mut Call<'_>,
    key: &[u8],
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
) -> Outcome<u64> {
    let found = call.find_head(key, Kind::Hash)?;
    call.together(Some(Kind::Hash), |call| {
        let (mut head, expires) = found.unwrap_or_else(|| (call.new_head(Kind::Hash), None));
        let mut added = 0;
        for (number, (name, value)) in pairs.clone().enumerate() {
            added += u64::from(put(call, &head, name, value)?);
            if number as u64 % SLICE == SLICE - 1 {
                call.give_way();
            }
        }
        match added {
            0 => call.touch(key),
            added => {
                head.count += added;
                call.put_head(key, &head, expires)?;
            }
        }
        Ok(added)
    })
}

fn hset_as(call: &mut Call<'_>, name: &str) -> Outcome<u64> {
    if call.args.len() % 2 == 1 {
        return Err(super::dispatch::wrong_count(name).into());
    }
    let args = call.args;
    put_all(call, args[1], args[2..].chunks_exact(2).map(|pair| (pair[0], pair[1])))
}

pub(super) fn hset(call: &mut Call<'_>) -> Outcome {
    let added = hset_as(call, "hset")?;
    call.reply().integer(added as i64);
    Ok(())
}

pub(super) fn hmset(call: &mut Call<'_>) -> Outcome {
    hset_as(call, "hmset")?;
    call.reply().ok();
    Ok(())
}

pub(super) fn hsetnx(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let is_there = match call.find_head(args[1], Kind::Hash)? {
        Some((head, _)) => field(call, &head, args[2])?.is_some(),
        None => false,
    };
    if !is_there {
        put_all(call, args[1], std::iter::once((args[2], args[3])))?;
    }
    call.reply().integer(i64::from(!is_there));
    Ok(())
}

pub(super) fn hget(call: &mut Call<'_>) -> Outcome {
    let row = match call.find_head(call.args[1], Kind::Hash)? {
        Some((head, _)) => field(call, &head, call.args[2])?,
        None => None,
    };
    match row {
        Some(row) => call.reply().bulk(value_of(&row)),
        None => call.reply().null(),
    }
    Ok(())
}

pub(super) fn hmget(call: &mut Call<'_>) -> Outcome {
    let found = call.find_head(call.args[1], Kind::Hash)?;
    let count = call.args.len() - 2;
    call.reply().array(count);
    for name in &call.args[2..] {
        let row = match &found {
            Some((head, _)) => field(call, head, name)?,
            None => None,
        };
        match row {
            Some(row) => call.reply().bulk(value_of(&row)),
            None => call.reply().null(),
        }
    }
    Ok(())
}

pub(super) fn hdel(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let removed = match call.find_head(key, Kind::Hash)? {
        None => 0,
        Some((head, expires)) => call.together(Some(Kind::Hash), |call| {
            let mut removed = 0;
            for name in &call.args[2..] {
                removed += u64::from(call.take_member(&head, name)?);
            }
            if removed > 0 {
                call.put_head(key, &Head { count: head.count - removed, ..head }, expires)?;
            }
            Ok(removed)
        })?,
    };
    call.reply().integer(removed as i64);
    Ok(())
}

pub(super) fn hlen(call: &mut Call<'_>) -> Outcome {
    let count = call.find_head(call.args[1], Kind::Hash)?.map_or(0, |(head, _)| head.count);
    call.reply().integer(count as i64);
    Ok(())
}

pub(super) fn hexists(call: &mut Call<'_>) -> Outcome {
    let is_there = match call.find_head(call.args[1], Kind::Hash)? {
        Some((head, _)) => field(call, &head, call.args[2])?.is_some(),
        None => false,
    };
    call.reply().integer(i64::from(is_there));
    Ok(())
}

pub(super) fn hstrlen(call: &mut Call<'_>) -> Outcome {
    let length = match call.find_head(call.args[1], Kind::Hash)? {
        Some((head, _)) => field(call, &head, call.args[2])?.map_or(0, |row| value_of(&row).len()),
        None => 0,
    };
    call.reply().count(length);
    Ok(())
}

/// Answers with all fields, all values, or both.
fn all(call: &mut Call<'_>, with_fields: bool, with_values: bool) -> Outcome {
    let found = call.find_head(call.args[1], Kind::Hash)?;
    let mut list = Vec::new();
    let mut count = 0;
    if let Some((head, _)) = &found {
        call.walk(head, |reader| {
            let (name, value) = (read_text(reader), read_text(reader));
            let mut reply = super::reply::Reply { out: &mut list, resp3: true };
            if with_fields {
                reply.bulk(name);
            }
            if with_values {
                reply.bulk(value);
            }
            count += 1;
            true
        })?;
    }
    let mut reply = call.reply();
    if with_fields && with_values {
        reply.map(count)
    } else {
        reply.array(count)
    }
    call.out.extend_from_slice(&list);
    Ok(())
}

pub(super) fn hgetall(call: &mut Call<'_>) -> Outcome {
    all(call, true, true)
}

pub(super) fn hkeys(call: &mut Call<'_>) -> Outcome {
    all(call, true, false)
}

pub(super) fn hvals(call: &mut Call<'_>) -> Outcome {
    all(call, false, true)
}

/// The value of a field that is to be changed.
fn before(call: &Call<'_>) -> Outcome<Option<Tuple>> {
    match call.find_head(call.args[1], Kind::Hash)? {
        Some((head, _)) => field(call, &head, call.args[2]),
        None => Ok(None),
    }
}

pub(super) fn hincrby(call: &mut Call<'_>) -> Outcome {
    let by = call.integer(3)?;
    let old = match before(call)? {
        Some(row) => integer(value_of(&row)).ok_or("ERR hash value is not an integer")?,
        None => 0,
    };
    let value = old.checked_add(by).ok_or("ERR increment or decrement would overflow")?;
    let (args, text) = (call.args, number(value));
    put_all(call, args[1], std::iter::once((args[2], text.as_slice())))?;
    call.reply().integer(value);
    Ok(())
}

pub(super) fn hincrbyfloat(call: &mut Call<'_>) -> Outcome {
    match super::call::double(call.args[3]) {
        None => return Err(super::failure::NOT_FLOAT.into()),
        Some(by) if !by.is_finite() => return Err("ERR value is NaN or Infinity".into()),
        Some(_) => {}
    }
    let row = before(call)?;
    let old = row.as_ref().map_or(b"0".as_slice(), value_of);
    if super::call::double(old).is_none() {
        return Err("ERR hash value is not a float".into());
    }
    let (args, value) = (call.args, add_floats(old, call.args[3])?);
    put_all(call, args[1], std::iter::once((args[2], value.as_slice())))?;
    call.reply().bulk(&value);
    Ok(())
}

pub(super) fn hrandfield(call: &mut Call<'_>) -> Outcome {
    let with_values = match call.args.len() {
        2 | 3 => false,
        4 if call.is_word(3, "withvalues") => true,
        _ => return Err(super::failure::SYNTAX.into()),
    };
    let count = if call.args.len() > 2 { Some(call.integer(2)?) } else { None };
    let found = call.find_head(call.args[1], Kind::Hash)?;
    super::sets::answer_random(call, found.map(|(head, _)| head), count, |out, reader, resp3| {
        let (name, value) = (read_text(reader), read_text(reader));
        let mut reply = super::reply::Reply { out, resp3 };
        if with_values && resp3 {
            reply.array(2);
        }
        reply.bulk(name);
        if with_values {
            reply.bulk(value);
        }
        if with_values && !resp3 { 2 } else { 1 }
    })
}
