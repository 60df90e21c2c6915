//! Operator classes: indexes here have one order for each type, and say which class of PostgreSQL's that is, or which one CREATE INDEX has named.

use super::types::type_number;
use super::{PG_CATALOG, View};
use crate::error::{Condition, Error, Result};
use crate::table::{Index, Table};
use crate::types::Base;
use crate::value::Value;

/// The access method that they are all of.
const BTREE: i64 = 403;

/// Number, name, type, family; whether it is the one that is not named.
const CLASSES: [(i64, &str, i64, i64, bool); 36] = [
    (10_003, "bool_ops", 16, 424, true),
    (10_006, "bytea_ops", 17, 428, true),
    (10_007, "char_ops", 18, 429, true),
    (10_028, "name_ops", 19, 1994, true),
    (3124, "int8_ops", 20, 1976, true),
    (1979, "int2_ops", 21, 1976, true),
    (1978, "int4_ops", 23, 1976, true),
    (3126, "text_ops", 25, 1994, true),
    (4217, "text_pattern_ops", 25, 2095, false),
    (4218, "varchar_pattern_ops", 25, 2095, false),
    (10_044, "varchar_ops", 25, 1994, false),
    (1981, "oid_ops", 26, 1989, true),
    (10_012, "float4_ops", 700, 1970, true),
    (3123, "float8_ops", 701, 1970, true),
    (10_026, "macaddr8_ops", 774, 3371, true),
    (10_024, "macaddr_ops", 829, 1984, true),
    (10_015, "inet_ops", 869, 1974, true),
    (10_009, "cidr_ops", 869, 1974, false),
    (10_004, "bpchar_ops", 1042, 426, true),
    (4219, "bpchar_pattern_ops", 1042, 2097, false),
    (3122, "date_ops", 1082, 434, true),
    (10_038, "time_ops", 1083, 1996, true),
    (3128, "timestamp_ops", 1114, 434, true),
    (3127, "timestamptz_ops", 1184, 434, true),
    (10_022, "interval_ops", 1186, 1982, true),
    (10_041, "timetz_ops", 1266, 2000, true),
    (3125, "numeric_ops", 1700, 1988, true),
    (10_034, "record_ops", 2249, 2994, true),
    (10_000, "array_ops", ANY_ARRAY, 397, true),
    (10_065, "uuid_ops", 2950, 2968, true),
    (10_067, "pg_lsn_ops", 3220, 3253, true),
    (10_069, "enum_ops", ANY_ENUM, 3522, true),
    (10_071, "tsvector_ops", 3614, 3626, true),
    (10_074, "tsquery_ops", 3615, 3683, true),
    (10_088, "jsonb_ops", 3802, 4033, true),
    (10_076, "range_ops", ANY_RANGE, 3901, true),
];
const ANY_ARRAY: i64 = 2277;
const ANY_ENUM: i64 = 3500;
const ANY_RANGE: i64 = 3831;
const TEXT: i64 = 25;
const CIDR: i64 = 650;
const INET: i64 = 869;
const VARCHAR: i64 = 1043;

pub(super) fn class_rows(_: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(number, name, of, family, is_default): &(i64, &str, i64, i64, bool)| {
        vec![
            Value::Int(*number),
            Value::Int(BTREE),
            Value::text(*name),
            Value::Int(PG_CATALOG),
            Value::Int(10),
            Value::Int(*family),
            Value::Int(*of),
            Value::Bool(*is_default),
            Value::Int(0),
        ]
    };
    CLASSES.iter().map(row).collect()
}

/// Errors: there is no such class of operators.
pub(crate) fn check_class(name: &str) -> Result<()> {
    match CLASSES.iter().any(|(_, known, ..)| *known == name) {
        true => Ok(()),
        false => {
            let what = format!("operator class \"{name}\" does not exist for access method \"btree\"");
            Err(Error::new(Condition::UndefinedObject, what))
        }
    }
}

/// True for a class that indexes over its type are of if they name none: it is not shown.
pub(super) fn is_default(name: &str) -> bool {
    CLASSES.iter().any(|(_, known, _, _, is_default)| *known == name && *is_default)
}

/// The number of the class that a key of an index is of; 0: none is known.
pub(super) fn class_of(table: &Table, index: &Index, number: usize) -> i64 {
    let key = index.spelled.as_ref().and_then(|spelled| spelled.keys.get(number));
    let named = key.and_then(|key| key.class.as_deref());
    if let Some(named) = named {
        return CLASSES.iter().find(|(_, known, ..)| *known == named).map_or(0, |class| class.0);
    }
    // The fields of some indexes are not in the order of their keys: those of the columns are looked up by name.
    let by_name = key
        .filter(|key| !key.is_expression)
        .and_then(|key| table.columns.iter().find(|column| column.name == key.text));
    let column = by_name.or_else(|| index.parts.get(number).map(|(field, ..)| &table.columns[*field]));
    let Some(column) = column else { return 0 };
    let of = match column.ty.base {
        Base::Array => ANY_ARRAY,
        Base::Enum => ANY_ENUM,
        _ if column.ty.is_range() => ANY_RANGE,
        _ => match type_number(column.ty) {
            VARCHAR => TEXT,
            CIDR => INET,
            other => other,
        },
    };
    CLASSES.iter().find(|(.., known, _, is_default)| *known == of && *is_default).map_or(0, |class| class.0)
}
