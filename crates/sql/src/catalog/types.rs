//! Types as PostgreSQL numbers and names them: `pg_type`, `format_type`.

use super::{PG_CATALOG, View, int, text};
use crate::types::{Base, Type};
use crate::value::Value;

/// PostgreSQL's types: number, name, bytes, category, the number of arrays of it, and that of the elements.
pub(crate) const PG_TYPES: &[(i64, &str, i64, &str, i64, i64)] = &[
    (16, "bool", 1, "B", 1000, 0),
    (17, "bytea", -1, "U", 1001, 0),
    (18, "char", 1, "Z", 1002, 0),
    (19, "name", 64, "S", 1003, 18),
    (20, "int8", 8, "N", 1016, 0),
    (21, "int2", 2, "N", 1005, 0),
    (22, "int2vector", -1, "A", 1006, 21),
    (23, "int4", 4, "N", 1007, 0),
    (24, "regproc", 4, "N", 1008, 0),
    (25, "text", -1, "S", 1009, 0),
    (26, "oid", 4, "N", 1028, 0),
    (114, "json", -1, "U", 199, 0),
    (199, "_json", -1, "A", 0, 114),
    (650, "cidr", -1, "I", 651, 0),
    (651, "_cidr", -1, "A", 0, 650),
    (700, "float4", 4, "N", 1021, 0),
    (701, "float8", 8, "N", 1022, 0),
    (705, "unknown", -2, "X", 0, 0),
    (774, "macaddr8", 8, "U", 775, 0),
    (775, "_macaddr8", -1, "A", 0, 774),
    (829, "macaddr", 6, "U", 1040, 0),
    (869, "inet", -1, "I", 1041, 0),
    (1000, "_bool", -1, "A", 0, 16),
    (1001, "_bytea", -1, "A", 0, 17),
    (1003, "_name", -1, "A", 0, 19),
    (1005, "_int2", -1, "A", 0, 21),
    (1007, "_int4", -1, "A", 0, 23),
    (1009, "_text", -1, "A", 0, 25),
    (1014, "_bpchar", -1, "A", 0, 1042),
    (1015, "_varchar", -1, "A", 0, 1043),
    (1016, "_int8", -1, "A", 0, 20),
    (1021, "_float4", -1, "A", 0, 700),
    (1022, "_float8", -1, "A", 0, 701),
    (1028, "_oid", -1, "A", 0, 26),
    (1040, "_macaddr", -1, "A", 0, 829),
    (1041, "_inet", -1, "A", 0, 869),
    (1042, "bpchar", -1, "S", 1014, 0),
    (1043, "varchar", -1, "S", 1015, 0),
    (1082, "date", 4, "D", 1182, 0),
    (1083, "time", 8, "D", 1183, 0),
    (1114, "timestamp", 8, "D", 1115, 0),
    (1115, "_timestamp", -1, "A", 0, 1114),
    (1182, "_date", -1, "A", 0, 1082),
    (1183, "_time", -1, "A", 0, 1083),
    (1184, "timestamptz", 8, "D", 1185, 0),
    (1185, "_timestamptz", -1, "A", 0, 1184),
    (1186, "interval", 16, "T", 1187, 0),
    (1187, "_interval", -1, "A", 0, 1186),
    (1231, "_numeric", -1, "A", 0, 1700),
    (1266, "timetz", 12, "D", 1270, 0),
    (1270, "_timetz", -1, "A", 0, 1266),
    (1700, "numeric", -1, "N", 1231, 0),
    (2205, "regclass", 4, "N", 2210, 0),
    (2206, "regtype", 4, "N", 2211, 0),
    (2278, "void", 4, "P", 0, 0),
    (2950, "uuid", 16, "U", 2951, 0),
    (2951, "_uuid", -1, "A", 0, 2950),
    (3802, "jsonb", -1, "U", 3807, 0),
    (3807, "_jsonb", -1, "A", 0, 3802),
    (3904, "int4range", -1, "R", 3905, 0),
    (3905, "_int4range", -1, "A", 0, 3904),
    (3906, "numrange", -1, "R", 3907, 0),
    (3907, "_numrange", -1, "A", 0, 3906),
    (3908, "tsrange", -1, "R", 3909, 0),
    (3909, "_tsrange", -1, "A", 0, 3908),
    (3910, "tstzrange", -1, "R", 3911, 0),
    (3911, "_tstzrange", -1, "A", 0, 3910),
    (3912, "daterange", -1, "R", 3913, 0),
    (3913, "_daterange", -1, "A", 0, 3912),
    (3926, "int8range", -1, "R", 3927, 0),
    (3927, "_int8range", -1, "A", 0, 3926),
];

/// The number of the type of a column.
pub(crate) fn type_number(ty: Type) -> i64 {
    match ty.base {
        Base::Bool => 16,
        Base::Bytes => 17,
        Base::Int1 | Base::Uint1 | Base::Int2 => 21,
        Base::Int4 | Base::Uint2 => 23,
        Base::Int8 if ty.is_oid() => 26,
        Base::Int8 | Base::Integer | Base::Uint8 | Base::Uint4 => 20,
        Base::Double if ty.is_float() => 700,
        Base::Double => 701,
        Base::Decimal | Base::Number => 1700,
        Base::Text if ty.length > 0 => 1043,
        Base::Text if ty.is_name() => 19,
        Base::Text | Base::Unknown | Base::Any | Base::Scalar => 25,
        Base::Uuid => 2950,
        Base::Date => 1082,
        Base::Timestamp => 1114,
        Base::TimestampTz => 1184,
        Base::Interval => 1186,
        Base::Time => 1083,
        Base::TimeTz => 1266,
        Base::Inet => 869,
        Base::Cidr => 650,
        Base::Macaddr => 829,
        Base::Macaddr8 => 774,
        Base::Int4Range => 3904,
        Base::Int8Range => 3926,
        Base::NumRange => 3906,
        Base::DateRange => 3912,
        Base::TsRange => 3908,
        Base::TstzRange => 3910,
        Base::Json if ty.is_plain_json() => 114,
        Base::Json | Base::Map => 3802,
        Base::Enum => i64::from(ty.user_number()),
        Base::Array if ty.element().base == Base::Enum => i64::from(ty.user_number()),
        Base::Array => {
            let element = type_number(ty.element());
            PG_TYPES.iter().find(|known| known.0 == element).map_or(1009, |known| known.4)
        }
    }
}

/// How values of a type of so many bytes are kept, as PostgreSQL says it.
pub(super) fn storage_of(size: i64) -> &'static str {
    if size < 0 { "x" } else { "p" }
}

/// What a type has beside its number: length of text, digits of a number.
pub(super) fn modifier(ty: Type) -> i64 {
    match ty.base {
        Base::Text if ty.length > 0 => i64::from(ty.length) + 4,
        Base::Decimal if ty.length > 0 => i64::from(ty.length << 16 | ty.scale) + 4,
        Base::Time | Base::TimeTz | Base::Timestamp | Base::TimestampTz if ty.length > 0 => i64::from(ty.length) - 1,
        Base::Interval => crate::spans::modifier(ty),
        _ => -1,
    }
}

/// The name of a type as PostgreSQL shows it: `format_type`.
pub(crate) fn format_type(number: i64, modifier: i64) -> String {
    if number == 0 {
        return "-".to_string();
    }
    let known = PG_TYPES.iter().find(|known| known.0 == number);
    let Some((_, name, _, _, _, element)) = known else { return "???".to_string() };
    if *element != 0 && *name != "name" && *name != "int2vector" {
        return format!("{}[]", format_type(*element, -1));
    }
    let name = match *name {
        "bool" => "boolean",
        "int8" => "bigint",
        "int2" => "smallint",
        "int4" => "integer",
        "float4" => "real",
        "float8" => "double precision",
        "bpchar" => "character",
        "varchar" => "character varying",
        "time" if modifier >= 0 => return format!("time({modifier}) without time zone"),
        "time" => "time without time zone",
        "timetz" if modifier >= 0 => return format!("time({modifier}) with time zone"),
        "timetz" => "time with time zone",
        "timestamp" if modifier >= 0 => return format!("timestamp({modifier}) without time zone"),
        "timestamptz" if modifier >= 0 => return format!("timestamp({modifier}) with time zone"),
        "timestamp" => "timestamp without time zone",
        "timestamptz" => "timestamp with time zone",
        "char" => "\"char\"",
        name => name,
    };
    match (number, modifier) {
        (1042 | 1043, modifier) if modifier > 4 => format!("{name}({})", modifier - 4),
        (1186, modifier) => format!("{name}{}", crate::spans::shown(modifier)),
        (1700, modifier) if modifier > 4 => {
            format!("{name}({},{})", (modifier - 4) >> 16, (modifier - 4) & 0xffff)
        }
        _ => name.to_string(),
    }
}

pub(super) fn type_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(number, name, size, category, array, element): &(i64, &str, i64, &str, i64, i64)| {
        let input = if *category == "A" { "array_in".to_string() } else { format!("{name}in") };
        vec![
            int(*number),
            text(name),
            int(PG_CATALOG),
            int(10),
            int(*size),
            Value::Bool(*size > 0 && *size <= 8),
            text(match *category {
                "P" => "p",
                "R" => "r",
                _ => "b",
            }),
            text(category),
            Value::Bool(false),
            Value::Bool(true),
            text(","),
            int(0),
            int(0),
            int(*element),
            int(*array),
            text(&input),
            Value::Bool(false),
            int(0),
            int(-1),
            int(0),
            int(if *category == "S" { 100 } else { 0 }),
            Value::Null,
            Value::Null,
            text(storage_of(*size)),
            Value::Null,
        ]
    };
    PG_TYPES.iter().map(row).chain(super::user_types::type_rows(view)).collect()
}
