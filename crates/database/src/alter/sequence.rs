//! Rows of `_sequence`, `_sequence_data` and `_space_sequence`.

use super::space::{check_name, has_row};
use super::{check_change, check_given_owner};
use crate::access::{ObjectType, Privileges};
use crate::catalog::{SchemaObject, Sequence, SequenceDef, SpaceSequence};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::session::Context;
use crate::session_spaces::is_of_session;
use crate::txn::{Effect, Turn};
use std::rc::Rc;
use tuple::msgpack::Reader;
use tuple::{IndexId, SpaceId, Tuple};

fn parse(row: &[u8], failure: ErrorCode) -> Result<SequenceDef> {
    let mut fields = Fields::new(row)?;
    let def = SequenceDef {
        id: fields.uint()?,
        owner: fields.uint()?,
        name: fields.str()?.to_string(),
        step: fields.int()?,
        min: fields.int()?,
        max: fields.int()?,
        start: fields.int()?,
        cache: fields.int()?,
        is_cyclic: fields.bool()?,
    };
    check_name(&def.name)?;
    let refuse = |why: &str| Err(Error::new(failure, &[&def.name, &why]));
    if def.step == 0 {
        return refuse("step option must be non-zero");
    }
    if def.min > def.max {
        return refuse("max must be greater than or equal to min");
    }
    if !(def.min..=def.max).contains(&def.start) {
        return refuse("start must be between min and max");
    }
    Ok(def)
}

/// Errors: `FieldType` for a number of a definition beyond 2^63 - 1. What a start reads is taken as that.
fn check_numbers(row: &Tuple) -> Result<()> {
    for field_no in 3..8 {
        if row.field(field_no).is_some_and(|value| Reader::new(value).read_int().is_err()) {
            return Err(Error::new(ErrorCode::FieldType, &[&(field_no + 1), &"integer"]));
        }
    }
    Ok(())
}

pub(super) fn on_sequence(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let Some(new) = new else {
        let Some(old) = old else { return Ok(None) };
        let def = parse(old.data(), ErrorCode::DropSequence)?;
        check_change(database, context, Privileges::DROP, ObjectType::Sequence, def.id, def.owner, &def.name)?;
        let refuse = |why: &str| Err(Error::new(ErrorCode::DropSequence, &[&def.name, &why]));
        if has_row(database, super::SPACE_SEQUENCE_ID, IndexId(1), def.id)? {
            return refuse("the sequence is in use");
        }
        if has_row(database, super::SEQUENCE_DATA_ID, IndexId::PRIMARY, def.id)? {
            return refuse("the sequence has data");
        }
        if database.catalog.has_grants(ObjectType::Sequence, def.id) {
            return refuse("the sequence has grants");
        }
        let (id, gone) = (def.id, database.catalog.set_sequence(def.id, None));
        let back = move |database: &Database| drop(database.catalog.set_sequence(id, gone.clone()));
        return Ok(Some(Effect::of(back, move |database| drop(database.catalog.set_sequence(id, None)))));
    };
    if !context.origin.is_replay() {
        check_numbers(new)?;
    }
    if old.is_some() {
        let def = parse(new.data(), ErrorCode::AlterSequence)?;
        let Some(sequence) = database.catalog.sequence(def.id) else {
            return Err(Error::new(ErrorCode::NoSuchSequence, &[&def.name]));
        };
        let before = sequence.def();
        if is_of_session(def.id, &def.name) != is_of_session(def.id, &before.name) && !context.origin.is_replay() {
            let why = "the name and the number are those of sequences of temporary tables";
            return Err(Error::new(ErrorCode::AlterSequence, &[&before.name, &why]));
        }
        check_change(database, context, Privileges::ALTER, ObjectType::Sequence, def.id, before.owner, &before.name)?;
        check_given_owner(
            database,
            context,
            Some(before.owner),
            def.owner,
            Privileges::ALTER,
            ObjectType::Sequence,
            &def.name,
        )?;
        let (id, after) = (before.id, Rc::new(def));
        let set = move |database: &Database, def: &Rc<SequenceDef>| {
            sequence.set_def(Rc::clone(def));
            // Whoever knows sequences by name looks again.
            database.catalog.set_sequence(id, Some(Rc::clone(&sequence)));
        };
        set(database, &after);
        return Ok(Some(Effect::new(move |database, turn| match turn {
            Turn::Back => set(database, &before),
            Turn::Forth => set(database, &after),
            Turn::GiveUp => {}
        })));
    }
    let def = parse(new.data(), ErrorCode::CreateSequence)?;
    check_change(database, context, Privileges::CREATE, ObjectType::Sequence, def.id, def.owner, &def.name)?;
    let (id, made) = (def.id, Some(Rc::new(Sequence::new(def))));
    database.catalog.set_sequence(id, made.clone());
    let forth = move |database: &Database| drop(database.catalog.set_sequence(id, made.clone()));
    Ok(Some(Effect::of(move |database| drop(database.catalog.set_sequence(id, None)), forth)))
}

/// A rollback leaves the value where it is: what was handed out never comes again.
pub(super) fn on_sequence_data(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let Some(row) = new.or(old) else { return Ok(None) };
    if row.field(1).is_some_and(|value| Reader::new(value).read_int().is_err()) && !context.origin.is_replay() {
        return Err(Error::new(ErrorCode::FieldType, &[&2, &"integer"]));
    }
    let mut fields = Fields::new(row.data())?;
    let id = fields.uint()?;
    let value = fields.int()?;
    let Some(sequence) = database.catalog.sequence(id) else {
        if context.origin.is_replay() {
            // Of one whose transaction was rolled back, as earlier versions wrote it beside.
            tracing::warn!("a row of '_sequence_data' is about the sequence {id}, which does not exist");
            return Ok(None);
        }
        return Err(Error::new(ErrorCode::NoSuchSequence, &[&id]));
    };
    let before = sequence.value();
    sequence.set_value(new.map(|_| value));
    if new.is_some() {
        return Ok(None);
    }
    // A reset that is rolled back leaves the sequence where it was.
    let again = Rc::clone(&sequence);
    Ok(Some(Effect::of(move |_| sequence.set_value(before), move |_| again.set_value(None))))
}

/// Rows of a space use up values of its sequence: that takes the right to write it. One made for the space goes with the space, so it
/// must be its maker's. Errors: `AccessDenied`.
fn check_attached(database: &Database, context: &Context, sequence: &Sequence, is_generated: bool) -> Result<()> {
    let def = sequence.def();
    if is_generated {
        let user = context.user(&database.catalog);
        return check_given_owner(
            database,
            context,
            Some(def.owner),
            user,
            Privileges::CREATE,
            ObjectType::Sequence,
            &def.name,
        );
    }
    database.check_sequence(context, sequence, Privileges::READ)?;
    database.check_sequence(context, sequence, Privileges::WRITE)
}

pub(super) fn on_space_sequence(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    let Some(row) = new.or(old) else { return Ok(None) };
    let mut fields = Fields::new(row.data())?;
    let space = database.space(SpaceId(fields.uint()?))?;
    let sequence_id = fields.uint()?;
    let is_generated = fields.bool()?;
    let field_no = if fields.has_more() {
        fields.uint()?
    } else {
        space.index(IndexId::PRIMARY).map_or(0, |primary| primary.parts.first().map_or(0, |part| part.field_no))
    };
    let Some(sequence) = database.catalog.sequence(sequence_id) else {
        return Err(Error::new(ErrorCode::NoSuchSequence, &[&sequence_id]));
    };
    check_change(database, context, Privileges::ALTER, ObjectType::Space, space.id.0, space.owner(), &space.name())?;
    if new.is_some() && !context.origin.is_replay() {
        check_attached(database, context, &sequence, is_generated)?;
        let def = sequence.def();
        if is_of_session(def.id, &def.name) && !space.def().is_session {
            let why = format!("the sequence '{}' is of a temporary table", def.name);
            return Err(Error::new(ErrorCode::AlterSpace, &[&space.name(), &why]));
        }
    }
    if new.is_some() && !context.origin.is_replay() {
        let covers = space.index(IndexId::PRIMARY).is_some_and(|primary| {
            primary.parts.iter().any(|part| {
                part.field_no == field_no
                    && matches!(part.field_type, tuple::FieldType::Unsigned | tuple::FieldType::Integer)
            })
        });
        if !covers {
            let name = space.index_name(IndexId::PRIMARY);
            return Err(Error::new(
                ErrorCode::ModifyIndex,
                &[&name, &space.name(), &"sequence cannot be used with a non-integer key"],
            ));
        }
    }
    let after = new.map(|_| SpaceSequence { sequence, field_no, is_generated });
    let before = space.sequence.borrow().clone();
    let set = move |database: &Database, attached: &Option<SpaceSequence>| {
        space.sequence.borrow_mut().clone_from(attached);
        database.catalog.note_change(SchemaObject::Space(space.id));
    };
    set(database, &after);
    Ok(Some(Effect::new(move |database, turn| match turn {
        Turn::Back => set(database, &before),
        Turn::Forth => set(database, &after),
        Turn::GiveUp => {}
    })))
}
