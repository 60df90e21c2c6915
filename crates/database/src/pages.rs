//! Reading an index page by page: a scan that goes on behind a row that an earlier one has ended with.
//!
//! A position is the key of a row, with the parts that tell it from all others of the index, as base64 of an encoded array: it stays good when rows
//! come and go, also that row itself, and for another connection.

use crate::catalog::Space;
use crate::cursor::Cursor;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::cell::Ref;
use std::cmp::Ordering;
use std::rc::Rc;
use storage::{IndexDef, IndexKind, IteratorKind, KeySource, ScanRequest};
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, Tuple};

/// Where a page begins.
#[derive(Clone, Copy, Debug)]
pub enum After<'a> {
    /// Behind a position that an earlier page has ended with; an empty one is the beginning.
    Position(&'a [u8]),
    /// Behind a row, which need not be there.
    Row(&'a [u8]),
}

fn wrong_position() -> Error {
    Error::illegal("Iterator position is invalid")
}

impl Database {
    /// The definition of an index whose rows have positions. Errors: `NoSuchIndexId`; `Unsupported` for other indexes.
    fn def_of_positions<'a>(&self, space: &'a Space, index_id: IndexId) -> Result<Ref<'a, IndexDef>> {
        let def = space.index_def(index_id).ok_or_else(|| crate::statement::no_such_index(space, index_id))?;
        if def.kind != IndexKind::Tree || !matches!(def.source, KeySource::Fields) {
            let what = format!("Index '{}' of space '{}'", space.index_name(index_id), space.name());
            return Err(Error::new(ErrorCode::Unsupported, &[&what, &"pagination"]));
        }
        Ok(def)
    }

    /// The position of a row in an index. Errors: the row has no key of the index; the index has no positions.
    pub fn position_of(&self, space: &Space, index_id: IndexId, row: &[u8]) -> Result<Vec<u8>> {
        let def = self.def_of_positions(space, index_id)?;
        Ok(STANDARD.encode(self.key_of(space, &def, row)?).into_bytes())
    }

    /// The key of any row by which it is found in the order of an index.
    fn key_of(&self, space: &Space, def: &IndexDef, row: &[u8]) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        def.compare_def.extract_key(row, &mut key);
        self.check_position(space, def, &key)?;
        Ok(key)
    }

    fn check_position(&self, space: &Space, def: &IndexDef, key: &[u8]) -> Result<()> {
        let mut reader = Reader::new(key);
        let count = reader.read_array().map_err(|_| wrong_position())?;
        if count as usize != def.compare_def.part_count() {
            return Err(wrong_position());
        }
        let refused = |error| self.key_error(error, space, def.id);
        def.compare_def.validate_key(reader.rest(), count, false).map_err(refused)
    }

    /// A row that stands where a key does in the order of an index.
    fn row_at(&self, space: &Space, def: &IndexDef, key: &[u8]) -> Result<Tuple> {
        let mut reader = Reader::new(key);
        reader.read_array().map_err(|_| wrong_position())?;
        let parts = def.compare_def.parts();
        let mut fields = vec![None; parts.iter().map(|part| part.field_no as usize + 1).max().unwrap_or(0)];
        for part in parts {
            fields[part.field_no as usize] = Some(reader.read_value().map_err(|_| wrong_position())?);
        }
        let mut row = Vec::with_capacity(key.len() + fields.len());
        msgpack::encode_array(&mut row, fields.len() as u32);
        for field in fields {
            match field {
                Some(value) => row.extend_from_slice(value),
                None => msgpack::encode_nil(&mut row),
            }
        }
        let made = Tuple::new(&self.loose_rows, space.format().id(), &row);
        made.map_err(|error| self.storage_error(error.into(), space))
    }

    /// The row behind which a page begins; none for the beginning of the index. Errors: it is no row or position of the index, or one that the
    /// scan would not come to.
    fn start_of(&self, space: &Space, request: &ScanRequest<'_>, after: After<'_>) -> Result<Option<Tuple>> {
        let def = self.def_of_positions(space, request.index_id)?;
        let key = match after {
            After::Position([]) => return Ok(None),
            After::Position(text) => {
                let key = STANDARD.decode(text).map_err(|_| wrong_position())?;
                if msgpack::check(&key) != Ok(key.len()) {
                    return Err(wrong_position());
                }
                self.check_position(space, &def, &key)?;
                key
            }
            After::Row(row) => self.key_of(space, &def, row)?,
        };
        let row = self.row_at(space, &def, &key)?;
        let order = match request.key.part_count {
            0 => return Ok(Some(row)),
            count => def.key_def.compare_row_key(row.data(), request.key.parts, count),
        };
        let is_reached = match request.kind {
            IteratorKind::Eq | IteratorKind::Req => order == Ordering::Equal,
            IteratorKind::All | IteratorKind::Ge => order != Ordering::Less,
            IteratorKind::Gt => order == Ordering::Greater,
            IteratorKind::Le => order != Ordering::Greater,
            _ => order == Ordering::Less,
        };
        if is_reached { Ok(Some(row)) } else { Err(wrong_position()) }
    }

    /// The rows of a scan, from a place on, and the position of the last of them: that of `after` if there are none. May wait if rows are on disk.
    ///
    /// Errors: as `select`; the place is none of the scan's; the index has no positions.
    pub fn select_page(
        &self,
        context: &Context,
        space: &Rc<Space>,
        request: &ScanRequest<'_>,
        after: Option<After<'_>>,
    ) -> Result<(Vec<Tuple>, Vec<u8>)> {
        // A cursor over copied rows copies what it is asked for.
        let whole = ScanRequest { offset: 0, limit: u64::MAX, ..*request };
        let mut cursor = self.cursor(context, space, &whole)?;
        let start = after.map(|after| self.start_of(space, request, after)).transpose()?.flatten();
        let order = Rc::clone(&self.def_of_positions(space, request.index_id)?.compare_def);
        if let Some(start) = &start {
            cursor.go_behind(start, &order, request.kind.is_reverse());
        }
        let rows = self.take_rows(context, &mut cursor, request)?;
        let position = match rows.last().or(start.as_ref()) {
            Some(last) => self.position_of(space, request.index_id, last.data())?,
            None => Vec::new(),
        };
        Ok((rows, position))
    }

    fn take_rows(&self, context: &Context, cursor: &mut Cursor, request: &ScanRequest<'_>) -> Result<Vec<Tuple>> {
        let mut rows = Vec::new();
        let mut skip = request.offset;
        while (rows.len() as u64) < request.limit
            && let Some(row) = cursor.next(self, context)?
        {
            match skip {
                0 => rows.push(row),
                _ => skip -= 1,
            }
        }
        Ok(rows)
    }
}
