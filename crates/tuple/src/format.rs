//! Space formats: which rows a space accepts.

use crate::error::{FieldName, FormatError, TupleError};
use crate::field::{FieldDef, FieldType};
use crate::key::KeyPart;
use crate::msgpack::{self, Kind, Reader};
use std::collections::HashMap;

/// What is required of one field, by the declared format and the indexes together.
#[derive(Clone, Copy, Debug)]
struct Required {
    field_type: FieldType,
    is_nullable: bool,
}

/// The fields of a space's rows. Immutable; an altered space gets another one.
#[derive(Clone, Debug)]
pub struct Format {
    id: u32,
    fields: Vec<FieldDef>,
    names: HashMap<String, u32>,
    required: Vec<Required>,
    /// Fields that a row must have.
    min_field_count: u32,
    /// 0 for any.
    exact_field_count: u32,
}

impl Format {
    /// A format from declared fields, an exact number of fields (0: any) and the parts of all indexes. Errors: two of them want
    /// other types of one field.
    pub fn new(id: u32, fields: Vec<FieldDef>, exact_field_count: u32, parts: &[KeyPart]) -> Result<Self, FormatError> {
        let mut required: Vec<Required> = fields
            .iter()
            .map(|field| Required { field_type: field.field_type, is_nullable: field.is_nullable })
            .collect();
        let mut from_part = vec![None; required.len()];
        let unknown = Required { field_type: FieldType::Any, is_nullable: true };
        for part in parts {
            let at = part.field_no as usize;
            if required.len() <= at {
                required.resize(at + 1, unknown);
                from_part.resize(at + 1, None);
            }
            let present = &mut required[at];
            let field = FieldName::Number(part.field_no + 1);
            if present.field_type.is_within(part.field_type) && present.field_type != FieldType::Any {
                // The narrower type stays.
            } else if part.field_type.is_within(present.field_type) {
                present.field_type = part.field_type;
            } else if let Some(first) = from_part[at] {
                return Err(FormatError::PartTypes { field, first, second: part.field_type });
            } else {
                let named = fields.get(at).map_or(field, |def| FieldName::Named(part.field_no + 1, def.name.clone()));
                return Err(FormatError::FormatAndPart {
                    field: named,
                    format: present.field_type,
                    part: part.field_type,
                });
            }
            from_part[at] = Some(part.field_type);
            if !part.is_nullable {
                present.is_nullable = false;
            }
        }
        let min_field_count = required.iter().rposition(|field| !field.is_nullable).map_or(0, |at| at as u32 + 1);
        let names = fields.iter().enumerate().map(|(at, field)| (field.name.clone(), at as u32)).collect();
        Ok(Format { id, fields, names, required, min_field_count, exact_field_count })
    }

    /// A format that accepts every array.
    pub fn any(id: u32) -> Self {
        Format {
            id,
            fields: Vec::new(),
            names: HashMap::new(),
            required: Vec::new(),
            min_field_count: 0,
            exact_field_count: 0,
        }
    }

    /// The number that rows carry.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Declared fields.
    pub fn fields(&self) -> &[FieldDef] {
        &self.fields
    }

    /// Number (from 0) of a declared field.
    pub fn field_no(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Name of a field (from 0).
    pub fn field_name(&self, field_no: u32) -> Option<&str> {
        self.fields.get(field_no as usize).map(|field| field.name.as_str())
    }

    /// True if no row that fits `other` has to be looked at to know that it fits this format.
    pub fn accepts_all_of(&self, other: &Format) -> bool {
        let unknown = Required { field_type: FieldType::Any, is_nullable: true };
        let is_wider = |(at, field): (usize, &Required)| {
            let before = other.required.get(at).unwrap_or(&unknown);
            before.field_type.is_within(field.field_type) && (field.is_nullable || !before.is_nullable)
        };
        (self.exact_field_count == 0 || self.exact_field_count == other.exact_field_count)
            && self.required.iter().enumerate().all(is_wider)
    }

    /// What the format and the indexes together require of a field (from 0).
    pub fn type_of(&self, field_no: usize) -> FieldType {
        self.required.get(field_no).map_or(FieldType::Any, |field| field.field_type)
    }

    fn name_of(&self, at: usize) -> FieldName {
        let number = at as u32 + 1;
        self.fields.get(at).map_or(FieldName::Number(number), |field| FieldName::Named(number, field.name.clone()))
    }

    /// Checks that `row` (any bytes) is a well-formed array that fits. Nothing may follow it.
    ///
    /// Errors: no msgpack, no array; the first field that is missing or of another type; too many fields.
    pub fn check(&self, row: &[u8]) -> Result<(), TupleError> {
        let length = msgpack::check(row).map_err(TupleError::Msgpack)?;
        if Reader::new(row).read_array().is_err() {
            return Err(TupleError::NotArray);
        }
        if length != row.len() {
            let error = msgpack::MsgpackError { offset: length, what: "bytes behind the row" };
            return Err(TupleError::Msgpack(error));
        }
        self.check_fields(row)
    }

    /// Checks that `row`, one checked value, is an array that fits. Errors: as `check`.
    pub fn check_fields(&self, row: &[u8]) -> Result<(), TupleError> {
        let mut reader = Reader::new(row);
        let count = reader.read_array().map_err(|_| TupleError::NotArray)?;
        if self.exact_field_count != 0 && count != self.exact_field_count {
            return Err(TupleError::FieldCount { got: count, expected: self.exact_field_count });
        }
        for (at, field) in self.required.iter().enumerate().take(count as usize) {
            let value = reader.rest();
            reader.skip_checked();
            if field.field_type == FieldType::Any || field.field_type.accepts(value) {
                continue;
            }
            let is_nil = Reader::new(value).kind() == Ok(Kind::Nil);
            if !(is_nil && field.is_nullable) {
                return Err(TupleError::FieldType { field: self.name_of(at), expected: field.field_type });
            }
        }
        if count < self.min_field_count {
            let missing = (count as usize..self.required.len())
                .find(|&at| !self.required[at].is_nullable)
                .unwrap_or(count as usize);
            return Err(TupleError::FieldMissing { field: self.name_of(missing) });
        }
        Ok(())
    }
}
