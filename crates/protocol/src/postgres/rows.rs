//! How columns and rows are written: `RowDescription` and `DataRow`.

use super::formats::{modifier_of, oid_of, put_value, size_of};
use super::message::{put, put_text, put_u16, put_u32};
use sql::{Column, Error, Value, Zone};

/// `RowDescription`.
pub(super) fn put_columns(out: &mut Vec<u8>, columns: &[Column], formats: &[bool]) {
    put(out, b'T', |out| {
        put_u16(out, columns.len());
        for (number, column) in columns.iter().enumerate() {
            put_text(out, &column.name);
            let origin = column.origin.as_ref().map(|origin| (origin.table_number, origin.number));
            let (table, number_there) = origin.unwrap_or((0, 0));
            put_u32(out, table);
            put_u16(out, usize::from(number_there));
            put_u32(out, oid_of(column.ty));
            out.extend_from_slice(&size_of(column.ty).to_be_bytes());
            out.extend_from_slice(&modifier_of(column.ty).to_be_bytes());
            put_u16(out, usize::from(is_binary(formats, number)));
        }
    });
}

fn is_binary(formats: &[bool], number: usize) -> bool {
    match formats {
        [all] => *all,
        formats => formats.get(number).copied().unwrap_or(false),
    }
}

/// `DataRow`, with moments in a zone. None: in UTC.
pub(super) fn put_row(
    out: &mut Vec<u8>,
    row: &[Value],
    columns: &[Column],
    formats: &[bool],
    zone: Option<&Zone>,
) -> Result<(), Error> {
    let start = out.len();
    let mut done = Ok(());
    put(out, b'D', |out| {
        put_u16(out, row.len());
        for (number, value) in row.iter().enumerate() {
            let ty = columns.get(number).map_or(sql::Type::TEXT, |column| column.ty);
            if let Err(error) = put_value(out, value, ty, is_binary(formats, number), zone) {
                done = Err(error);
                break;
            }
        }
    });
    if done.is_err() {
        out.truncate(start);
    }
    done
}
