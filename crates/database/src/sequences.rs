//! Sequences: the next value for a row or for a procedure, and where each one stands in `_sequence_data`.

use crate::access::{self, ObjectType, Privileges};
use crate::alter;
use crate::catalog::{Sequence, Space};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use crate::statement::Operation;
use std::rc::Rc;
use tuple::{IndexId, msgpack};

impl Database {
    /// Puts the sequence's next value where the row has nil, or moves the sequence on behind the value given.
    pub(crate) fn fill_sequence(&self, context: &Context, space: &Rc<Space>, row: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(attached) = space.sequence.borrow().clone() else {
            return Ok(None);
        };
        // A sequence made with the index belongs to the space: who may write there may use it. Any other is moved by keys that are given, too.
        if !attached.is_generated {
            self.check_sequence(context, &attached.sequence, Privileges::WRITE)?;
        }
        let mut reader = msgpack::Reader::new(row);
        let Ok(count) = reader.read_array() else {
            return Ok(None);
        };
        if attached.field_no >= count {
            return Ok(None);
        }
        for _ in 0..attached.field_no {
            if reader.read_value().is_err() {
                return Ok(None);
            }
        }
        let start = reader.position();
        match reader.kind() {
            Ok(msgpack::Kind::Nil) => {}
            Ok(msgpack::Kind::Uint | msgpack::Kind::Int) => {
                if let Ok(value) = reader.read_i128()
                    && let Ok(value) = i64::try_from(value)
                    && attached.sequence.advance(value)
                {
                    self.store_sequence(context, attached.sequence.def().id, value)?;
                }
                return Ok(None);
            }
            _ => return Ok(None),
        }
        let _ = reader.read_nil();
        let value = attached.sequence.next()?;
        self.store_sequence(context, attached.sequence.def().id, value)?;
        let mut filled = Vec::with_capacity(row.len() + 8);
        filled.extend_from_slice(&row[..start]);
        msgpack::encode_int(&mut filled, value);
        filled.extend_from_slice(reader.rest());
        Ok(Some(filled))
    }

    /// Checks that the context's user may do `wanted` to a sequence. Errors: `AccessDenied`.
    pub fn check_sequence(&self, context: &Context, sequence: &Sequence, wanted: u32) -> Result<()> {
        let rights = context.rights(&self.catalog);
        let user = context.user(&self.catalog);
        let def = sequence.def();
        access::check(
            &rights,
            user,
            || self.catalog.user_name(user),
            wanted,
            ObjectType::Sequence,
            def.id,
            def.owner,
            &def.name,
        )
    }

    /// Writes where a sequence stands into `_sequence_data`. Of one that the open transaction has made, which is not there for others, the log must not speak
    /// before it tells that it was made: the commit writes that.
    fn store_sequence(&self, context: &Context, id: u32, value: i64) -> Result<()> {
        if self.is_own_sequence(context, id) {
            return Ok(());
        }
        self.write_sequence(context, id, value)
    }

    /// Writes where the sequences stand that the open transaction has made. For its commit.
    pub(crate) fn store_own_sequences(&self, context: &Context) -> Result<()> {
        for id in self.own_sequences(context) {
            if let Some(value) = self.catalog.sequence(id).and_then(|sequence| sequence.value()) {
                let data = self.space(alter::SEQUENCE_DATA_ID)?;
                let row = data_row(id, value);
                self.in_statement(context, || {
                    self.execute_in_txn(context, &data, Operation::Replace { tuple: &row }, true)
                })?;
            }
        }
        Ok(())
    }

    fn write_sequence(&self, context: &Context, id: u32, value: i64) -> Result<()> {
        let data = self.space(alter::SEQUENCE_DATA_ID)?;
        let row = data_row(id, value);
        self.beside_txn(context, alter::SEQUENCE_DATA_ID, || {
            self.in_statement(context, || self.execute_in_txn(context, &data, Operation::Replace { tuple: &row }, true))
        })?;
        Ok(())
    }

    /// `sequence:next()`. Checks access. Errors: `SequenceOverflow`.
    pub fn sequence_next(&self, context: &Context, id: u32) -> Result<i64> {
        let sequence = self.sequence(id)?;
        self.check_sequence(context, &sequence, Privileges::WRITE)?;
        self.check_writable()?;
        let value = sequence.next()?;
        self.store_sequence(context, id, value)?;
        Ok(value)
    }

    /// `sequence:set()`: the next value follows `value`. Checks access.
    ///
    /// Errors: `NoSuchSequence`, `AccessDenied`; those of a write.
    pub fn sequence_set(&self, context: &Context, id: u32, value: i64) -> Result<()> {
        let sequence = self.sequence(id)?;
        self.check_sequence(context, &sequence, Privileges::WRITE)?;
        self.check_writable()?;
        if self.is_own_sequence(context, id) {
            sequence.set_value(Some(value));
            return Ok(());
        }
        self.write_sequence(context, id, value)
    }

    /// `sequence:reset()`: as if never used. Checks access. Errors: as `sequence_set`.
    pub fn sequence_reset(&self, context: &Context, id: u32) -> Result<()> {
        let sequence = self.sequence(id)?;
        self.check_sequence(context, &sequence, Privileges::WRITE)?;
        if self.is_own_sequence(context, id) {
            sequence.set_value(None);
            return Ok(());
        }
        let data = self.space(alter::SEQUENCE_DATA_ID)?;
        let mut key = Vec::new();
        msgpack::encode_array(&mut key, 1);
        msgpack::encode_uint(&mut key, u64::from(id));
        let operation = Operation::Delete { index_id: IndexId::PRIMARY, key: &key };
        self.beside_txn(context, alter::SEQUENCE_DATA_ID, || self.execute_unchecked(context, &data, operation))?;
        Ok(())
    }

    fn sequence(&self, id: u32) -> Result<Rc<Sequence>> {
        self.catalog.sequence(id).ok_or_else(|| Error::new(ErrorCode::NoSuchSequence, &[&id]))
    }
}

/// A row of `_sequence_data`.
fn data_row(id: u32, value: i64) -> Vec<u8> {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 2);
    msgpack::encode_uint(&mut row, u64::from(id));
    msgpack::encode_int(&mut row, value);
    row
}

/// A row that is read back has used a value of its space's sequence.
pub(crate) fn advance_sequence(space: &Space, row: &[u8]) {
    if let Some(attached) = &*space.sequence.borrow()
        && let Some(value) = tuple::field(row, attached.field_no)
        && let Ok(value) = msgpack::Reader::new(value).read_int()
    {
        attached.sequence.advance(value);
    }
}
