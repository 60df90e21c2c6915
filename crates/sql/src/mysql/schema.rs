//! `information_schema` as MySQL has it, and definitions of tables as its programs read them.

use crate::catalog::{View, Virtual, virtuals};
use crate::dialect::Dialect;
use crate::session::Session;
use crate::shown_constraints::Shown;
use crate::table::{Column, Index, Table};
use crate::types::{Base, Type};
use crate::value::Value;
use database::Database;
use std::fmt::Write;
use std::rc::Rc;

/// The name of the database where a session has named none.
const DATABASE: &str = "lycosa";
/// What text that is compared without regard to case and accents is said to be compared by, and all other text.
const COLLATION: &str = "utf8mb4_unicode_ci";
const BINARY_COLLATION: &str = "utf8mb4_bin";

/// The name of the database, as a session knows it.
pub(crate) fn database(session: Option<&Session>) -> String {
    let name = session.map(|session| session.database.borrow().clone()).unwrap_or_default();
    if name.is_empty() { DATABASE.to_string() } else { name }
}

/// The database of the catalog, and tables there that MySQL has not.
const CATALOG: &str = "information_schema";
const OWN_TABLES: [&str; 2] = ["shown_grants", "warnings"];

/// The type of a column as MySQL writes it: `int unsigned`, `varchar(20)`.
pub(crate) fn type_name(column: &Column) -> String {
    if let Some(declared) = &column.declared {
        return declared.clone();
    }
    let name = match column.ty.base {
        Base::Bool => "tinyint(1)",
        Base::Int1 => "tinyint",
        Base::Uint1 => "tinyint unsigned",
        Base::Int2 => "smallint",
        Base::Uint2 => "smallint unsigned",
        Base::Int4 => "int",
        Base::Uint4 => "int unsigned",
        Base::Int8 | Base::Integer => "bigint",
        Base::Uint8 => "bigint unsigned",
        Base::Double if column.ty.is_float() => "float",
        Base::Double => "double",
        Base::Decimal if column.ty.length > 0 => return format!("decimal({},{})", column.ty.length, column.ty.scale),
        Base::Decimal | Base::Number => "decimal(38,10)",
        Base::Text if column.ty.length > 0 => return format!("varchar({})", column.ty.length),
        Base::Text | Base::Scalar | Base::Any | Base::Unknown | Base::Enum => "longtext",
        Base::Bytes => "longblob",
        Base::Uuid => "char(36)",
        Base::Inet | Base::Cidr | Base::Macaddr | Base::Macaddr8 => "varchar(43)",
        Base::Int4Range | Base::Int8Range | Base::NumRange => "varchar(255)",
        Base::DateRange | Base::TsRange | Base::TstzRange => "varchar(255)",
        Base::Date => "date",
        Base::Timestamp | Base::TimestampTz => "datetime(6)",
        Base::Interval => "varchar(255)",
        Base::Time if column.ty.length > 1 => return format!("time({})", column.ty.length - 1),
        Base::Time if column.ty.length == 1 => "time",
        Base::Time | Base::TimeTz => "time(6)",
        Base::Json | Base::Array | Base::Map => "json",
    };
    name.to_string()
}

/// A declared type as it is shown: in small letters, without the width of numbers.
pub(crate) fn shown_type(declared: &str) -> String {
    let mut out = String::new();
    let mut is_quoted = false;
    for c in declared.chars() {
        is_quoted ^= c == '\'';
        match is_quoted {
            true => out.push(c),
            false => out.extend(c.to_lowercase()),
        }
    }
    let is_filled = out.contains(" zerofill");
    let out = out.replace(", ", ",").replace(" zerofill", "").replacen("character varying", "varchar", 1);
    let out = out.replacen("char varying", "varchar", 1);
    let (name, rest) = out.split_at(out.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(out.len()));
    let behind = rest.split_once(')').map_or("", |(_, behind)| behind);
    let is_number = matches!(name, "int" | "integer" | "bigint" | "smallint" | "mediumint" | "tinyint");
    let name = match name {
        "integer" => "int",
        "numeric" | "dec" => "decimal",
        "character" => "char",
        name => name,
    };
    match name {
        "bool" | "boolean" => "tinyint(1)".to_string(),
        // The width says how many zeros clients put before it.
        _ if is_number && is_filled => {
            let width = rest.strip_prefix('(').and_then(|rest| rest.split(')').next()).unwrap_or(match name {
                "tinyint" => "3",
                "smallint" => "5",
                "mediumint" => "8",
                "bigint" => "20",
                _ => "10",
            });
            format!("{name}({width}) unsigned zerofill")
        }
        "year" => "year".to_string(),
        "tinyint" if rest.starts_with("(1)") => format!("tinyint(1){behind}"),
        "float" if rest.starts_with('(') && !rest.contains(',') => {
            let bits = rest.trim_start_matches('(').split(')').next().and_then(|bits| bits.parse::<u32>().ok());
            format!("{}{behind}", if bits > Some(24) { "double" } else { "float" })
        }
        "decimal" if !rest.starts_with('(') => format!("decimal(10,0){rest}"),
        "decimal" if !rest.contains(',') => out.replacen(')', ",0)", 1).replacen("numeric", "decimal", 1),
        "char" | "binary" | "bit" if !rest.starts_with('(') => format!("{name}(1){rest}"),
        "text" | "blob" if rest.starts_with('(') => {
            let length = rest.trim_start_matches('(').split(')').next().and_then(|length| length.trim().parse().ok());
            format!("{}{name}{behind}", size_of(length.unwrap_or(u64::MAX), if name == "text" { 4 } else { 1 }))
        }
        _ if is_number && rest.starts_with('(') => format!("{name}{behind}"),
        name => format!("{name}{rest}"),
    }
}

/// What stands before `text` or `blob` where it has to hold so many letters: the smallest that does.
fn size_of(length: u64, letter_bytes: u64) -> &'static str {
    match length.saturating_mul(letter_bytes) {
        // Without a length it is the usual one.
        0 | 256..=0xffff => "",
        1..=255 => "tiny",
        0x1_0000..=0xff_ffff => "medium",
        _ => "long",
    }
}

fn data_type(shown: &str) -> &str {
    &shown[..shown.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(shown.len())]
}

fn collation_of(column: &Column) -> Option<&'static str> {
    (column.ty.base == Base::Text).then_some(if column.collation.is_some() { COLLATION } else { BINARY_COLLATION })
}

/// A number as a column shows it: `-.001` as `-0.001`, and with the digits that its type has. None: the text is none.
fn shown_number(text: &str, column: &Column) -> Option<String> {
    text.parse::<f64>().ok()?;
    let value = crate::cast::cast(Dialect::Mysql, Value::text(text), column.ty, crate::cast::Strictness::Assignment);
    let value = value.ok()?;
    let declared = column.declared.as_deref().filter(|_| column.ty.base == Base::Double);
    let digits = declared.and_then(|declared| declared.split_once(',')?.1.split(')').next()?.trim().parse().ok());
    Some(match (digits, value.as_double()) {
        (Some(digits @ 0..=30usize), Some(number)) => format!("{number:.digits$}"),
        _ => crate::cast::display(Dialect::Mysql, &value),
    })
}

/// What stands in a column where nothing is said, as it is shown: without quotes. None: nothing or null.
fn shown_default(column: &Column) -> Option<(String, bool)> {
    let text = column.default.as_ref()?;
    if text.eq_ignore_ascii_case("null") {
        return None;
    }
    if let Some(bits) = text.strip_prefix("B'") {
        return Some((format!("b'{bits}"), false));
    }
    let bare = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    if column.ty.is_number()
        && let Some(number) = shown_number(bare.unwrap_or(text), column)
    {
        return Some((number, true));
    }
    match crate::written::meant(Dialect::Mysql, text) {
        Some(bare) => Some((bare, true)),
        None if text.parse::<f64>().is_ok() => Some((text.clone(), true)),
        // Texts within an expression stay as they are.
        None if text.contains(['\'', '"', '`']) => Some((text.clone(), false)),
        None => Some((text.to_uppercase().replace("()", ""), false)),
    }
}

fn extra(table: &Table, at: usize) -> String {
    let column = &table.columns[at];
    let mut words = Vec::new();
    if table.generated.is_some_and(|(field, _)| field == at) {
        words.push("auto_increment".to_string());
    }
    if shown_default(column).is_some_and(|(_, is_literal)| !is_literal) {
        words.push("DEFAULT_GENERATED".to_string());
    }
    if let Some(generated) = &column.generated {
        words.push(format!("{} GENERATED", generated.word()));
    }
    if let Some(update) = &column.on_update {
        words.push(format!("on update {}", update.to_uppercase().replace("()", "")));
    }
    words.join(" ")
}

/// CREATE TABLE for a table that is there.
pub(crate) fn definition(database: &Database, table: &Table) -> String {
    let name = |name: &str| crate::written::name(Dialect::Mysql, name);
    let literal = |text: &str| crate::written::literal(Dialect::Mysql, text);
    let mut lines = Vec::new();
    for at in table.visible() {
        let column = &table.columns[at];
        let mut line = format!("  {} {}", name(&column.name), type_name(column));
        if collation_of(column) == Some(BINARY_COLLATION) {
            let _ = write!(line, " CHARACTER SET utf8mb4 COLLATE {BINARY_COLLATION}");
        }
        if let Some(generated) = &column.generated {
            let _ = write!(line, " GENERATED ALWAYS AS ({}) {}", generated.text().1, generated.word());
        }
        match data_type(&type_name(column)) {
            _ if !column.is_nullable => line.push_str(" NOT NULL"),
            // It was NOT NULL by itself once.
            "timestamp" => line.push_str(" NULL"),
            _ => {}
        }
        let is_generated = table.generated.is_some_and(|(field, _)| field == at);
        match shown_default(column) {
            _ if is_generated => line.push_str(" AUTO_INCREMENT"),
            Some((text, true)) => _ = write!(line, " DEFAULT {}", literal(&text)),
            Some((text, false)) => _ = write!(line, " DEFAULT {text}"),
            None if column.is_nullable
                && column.generated.is_none()
                && !matches!(
                    data_type(&type_name(column)),
                    "text"
                        | "longtext"
                        | "mediumtext"
                        | "tinytext"
                        | "blob"
                        | "longblob"
                        | "mediumblob"
                        | "tinyblob"
                        | "json"
                ) =>
            {
                line.push_str(" DEFAULT NULL")
            }
            None => {}
        }
        if let Some(update) = &column.on_update {
            let _ = write!(line, " ON UPDATE {}", update.to_uppercase().replace("()", ""));
        }
        line.push_str(&crate::comments::shown(column.comment.as_deref(), " "));
        lines.push(line);
    }
    let mut indexes: Vec<&Index> = table.indexes.iter().collect();
    indexes.sort_by_key(|index| rank(table, index));
    for index in indexes {
        let key = |(field, ..): &(usize, bool, Option<std::sync::Arc<tuple::Collation>>)| {
            let column = &table.columns[*field];
            match (&column.generated, column.is_hidden) {
                (_, false) => Some(name(&column.name)),
                (Some(generated), true) => expression_of(generated).map(|text| format!("({text})")),
                (None, true) => None,
            }
        };
        let Some(columns) = index.parts.iter().map(key).collect::<Option<Vec<String>>>() else { continue };
        let listed = columns.join(",");
        lines.push(match (index.id.0, index.is_unique) {
            (0, _) => format!("  PRIMARY KEY ({listed})"),
            (_, true) => format!("  UNIQUE KEY {} ({listed})", name(&index.name)),
            (_, false) => format!("  KEY {} ({listed})", name(&index.name)),
        });
    }
    // Foreign keys in the order of their names, then checks in that of their making.
    let mut constraints = crate::shown_constraints::of(database, table);
    constraints.sort_by(|a, b| match (a, b) {
        (Shown::Key { name: a, .. }, Shown::Key { name: b, .. }) => a.cmp(b),
        (Shown::Check { .. }, Shown::Check { .. }) => std::cmp::Ordering::Equal,
        (Shown::Key { .. }, Shown::Check { .. }) => std::cmp::Ordering::Less,
        (Shown::Check { .. }, Shown::Key { .. }) => std::cmp::Ordering::Greater,
    });
    for shown in constraints {
        let definition = crate::shown_constraints::definition(Dialect::Mysql, &name, table, &shown);
        lines.push(format!("  CONSTRAINT {} {definition}", name(shown.name())));
    }
    let engine = if table.space.rows.may_wait() { "vinyl" } else { "InnoDB" };
    let kind = if table.space.def().is_session { "TEMPORARY TABLE" } else { "TABLE" };
    let mut out = format!("CREATE {kind} {} (\n{}\n) ENGINE={engine}", name(&table.name), lines.join(",\n"));
    if let Some(next) = next_number(database, table).filter(|next| *next > 1) {
        let _ = write!(out, " AUTO_INCREMENT={next}");
    }
    let _ = write!(out, " DEFAULT CHARSET=utf8mb4 COLLATE={COLLATION}");
    out.push_str(&crate::comments::shown(crate::comments::of(database, &table.space).as_deref(), "="));
    out
}

/// The place of an index among those of its table where they are listed: the primary key, unique ones without nulls, other unique ones, the rest.
fn rank(table: &Table, index: &Index) -> u8 {
    let may_be_null = index.parts.iter().any(|(field, ..)| table.columns[*field].is_nullable);
    match (index.id.0, index.is_unique) {
        (0, _) => 0,
        (_, true) if !may_be_null => 1,
        (_, true) => 2,
        (_, false) => 3,
    }
}

/// The expression that a key of an index is, if it is one of this dialect.
fn expression_of(generated: &crate::generated::Generated) -> Option<&str> {
    let (dialect, text) = generated.text();
    (dialect == Dialect::Mysql).then_some(text)
}

/// The number that the next row gets.
fn next_number(database: &Database, table: &Table) -> Option<i64> {
    let (field, sequence) = table.generated?;
    if table.columns[field].is_hidden {
        return None;
    }
    let sequences = database.catalog.sequences();
    let sequence = sequences.iter().find(|known| known.def().id == sequence)?;
    let def = sequence.def();
    Some(sequence.value().map_or(def.start, |last| last.saturating_add(def.step)))
}

fn text(text: &str) -> Value {
    Value::text(text)
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

fn yes(is: bool) -> Value {
    text(if is { "YES" } else { "NO" })
}

fn nothing(_: &View<'_>) -> Vec<Vec<Value>> {
    Vec::new()
}

fn session(view: &View<'_>) -> Option<Rc<Session>> {
    crate::Sql::of(view.database).session(view.context.session.id)
}

fn schema(view: &View<'_>) -> Value {
    Value::text(database(session(view).as_deref()))
}

fn schemata(view: &View<'_>) -> Vec<Vec<Value>> {
    [text("information_schema"), schema(view)]
        .into_iter()
        .map(|name| vec![text("def"), name, text("utf8mb4"), text(COLLATION), Value::Null, text("NO")])
        .collect()
}

fn tables(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |table: Rc<Table>| {
        let rows = table.row_count() as i64;
        if view.is_view(&table) {
            let mut row = vec![Value::Null; 21];
            (row[0], row[1], row[2], row[3]) = (text("def"), schema(view), text(&table.name), text("VIEW"));
            row[20] = text("VIEW");
            return row;
        }
        vec![
            text("def"),
            schema(view),
            text(&table.name),
            text("BASE TABLE"),
            text(if table.space.rows.may_wait() { "vinyl" } else { "InnoDB" }),
            int(10),
            text("Dynamic"),
            int(rows),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            next_number(view.database, &table).map_or(Value::Null, int),
            Value::Null,
            Value::Null,
            Value::Null,
            text(COLLATION),
            Value::Null,
            text(""),
            text(&crate::comments::of(view.database, &table.space).unwrap_or_default()),
        ]
    };
    // Temporary ones are not listed, as in MySQL.
    let tables = view.tables().into_iter().filter(|table| !table.space.def().is_session);
    let of_catalog = VIRTUALS.iter().filter(|table| table.schema == CATALOG && !OWN_TABLES.contains(&table.name));
    let of_catalog = of_catalog.map(|table| {
        let mut row = vec![Value::Null; 21];
        (row[0], row[1], row[3]) = (text("def"), text(CATALOG), text("SYSTEM VIEW"));
        (row[2], row[20]) = (text(&table.name.to_uppercase()), text(""));
        row
    });
    tables.map(row).chain(of_catalog).collect()
}

fn views(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(table, query): (Rc<Table>, String)| {
        vec![
            text("def"),
            schema(view),
            text(&table.name),
            text(&query),
            text("NONE"),
            text("NO"),
            text(&format!("{}@%", view.database.catalog.user_name(table.space.owner()))),
            text("DEFINER"),
        ]
    };
    view.views().into_iter().map(row).collect()
}

/// `PRI`, `UNI`, `MUL` or nothing.
fn key_of(table: &Table, at: usize) -> &'static str {
    let mut found = "";
    for index in &table.indexes {
        let is_part = index.parts.iter().any(|(field, ..)| *field == at);
        let is_first = index.parts.first().is_some_and(|(field, ..)| *field == at);
        match index.id.0 {
            0 if is_part => return "PRI",
            _ if is_first && index.is_unique && index.parts.len() == 1 => found = "UNI",
            _ if is_first && found.is_empty() => found = "MUL",
            _ => {}
        }
    }
    found
}

/// Characters and bytes of text; digits and digits behind the point of numbers; digits of seconds.
fn sizes(shown: &str, ty: Type) -> [Value; 5] {
    let mut sizes = [const { Value::Null }; 5];
    match (ty.base, data_type(shown)) {
        (Base::Text | Base::Bytes, kind) => {
            let length = match kind {
                "tinytext" | "tinyblob" => 255,
                "text" | "blob" => 65_535,
                "mediumtext" | "mediumblob" => 16_777_215,
                _ if ty.length > 0 => i64::from(ty.length),
                _ => 4_294_967_295,
            };
            let bytes = if ty.length > 0 && ty.base == Base::Text { length * 4 } else { length };
            (sizes[0], sizes[1]) = (int(length), int(bytes));
        }
        (Base::Decimal, _) => {
            let digits = if ty.length == 0 { 10 } else { ty.length };
            (sizes[2], sizes[3]) = (int(i64::from(digits)), int(i64::from(ty.scale)));
        }
        (Base::Double, _) => sizes[2] = int(if ty.is_float() { 12 } else { 22 }),
        (Base::Int1 | Base::Uint1, _) => (sizes[2], sizes[3]) = (int(3), int(0)),
        (Base::Int2 | Base::Uint2, _) => (sizes[2], sizes[3]) = (int(5), int(0)),
        (Base::Int4 | Base::Uint4, _) => (sizes[2], sizes[3]) = (int(10), int(0)),
        (Base::Int8 | Base::Integer, _) => (sizes[2], sizes[3]) = (int(19), int(0)),
        (Base::Uint8, _) => (sizes[2], sizes[3]) = (int(20), int(0)),
        (Base::Timestamp | Base::TimestampTz | Base::Time, _) => sizes[4] = int(i64::from(ty.length.max(1)) - 1),
        _ => {}
    }
    sizes
}

fn columns(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in view.tables() {
        for (number, at) in (1..).zip(table.visible()) {
            let column = &table.columns[at];
            let shown = type_name(column);
            let collation = collation_of(column);
            let [characters, bytes, precision, scale, fraction] = sizes(&shown, column.ty);
            rows.push(vec![
                text("def"),
                schema(view),
                text(&table.name),
                text(&column.name),
                int(number),
                shown_default(column).map_or(Value::Null, |(default, _)| text(&default)),
                yes(column.is_nullable),
                text(data_type(&shown)),
                characters,
                bytes,
                precision,
                scale,
                fraction,
                collation.map_or(Value::Null, |_| text("utf8mb4")),
                collation.map_or(Value::Null, text),
                text(&shown),
                text(key_of(&table, at)),
                text(&extra(&table, at)),
                text("select,insert,update,references"),
                text(column.comment.as_deref().unwrap_or_default()),
                text(column.generated.as_ref().map_or("", |generated| generated.text().1)),
                Value::Null,
            ]);
        }
    }
    rows
}

fn statistics(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut indexes = view.indexes();
    for of_table in indexes.chunk_by_mut(|(a, _), (b, _)| Rc::ptr_eq(a, b)) {
        of_table.sort_by_key(|(table, at)| rank(table, &table.indexes[*at]));
    }
    for (table, at) in indexes {
        let index = &table.indexes[at];
        for ((field, ..), number) in index.parts.iter().zip(1..) {
            let column = &table.columns[*field];
            let expression = column.generated.as_ref().filter(|_| column.is_hidden).and_then(expression_of);
            if column.is_hidden && expression.is_none() {
                continue;
            }
            rows.push(vec![
                text("def"),
                schema(view),
                text(&table.name),
                int(i64::from(!index.is_unique)),
                schema(view),
                text(if index.id.0 == 0 { "PRIMARY" } else { &index.name }),
                int(number),
                if expression.is_some() { Value::Null } else { text(&column.name) },
                text("A"),
                int(table.row_count() as i64),
                Value::Null,
                Value::Null,
                text(if column.is_nullable { "YES" } else { "" }),
                text(if index.is_ordered { "BTREE" } else { "HASH" }),
                text(""),
                text(""),
                text("YES"),
                expression.map_or(Value::Null, text),
            ]);
        }
    }
    rows
}

fn constraints(view: &View<'_>) -> Vec<Vec<Value>> {
    let unique = view.indexes().into_iter().filter(|(table, at)| table.indexes[*at].is_unique);
    let row = |(table, at): (Rc<Table>, usize)| {
        let index = &table.indexes[at];
        let is_primary = index.id.0 == 0;
        vec![
            text("def"),
            schema(view),
            text(if is_primary { "PRIMARY" } else { &index.name }),
            schema(view),
            text(&table.name),
            text(if is_primary { "PRIMARY KEY" } else { "UNIQUE" }),
            text("YES"),
        ]
    };
    let mut rows: Vec<Vec<Value>> = unique.map(row).collect();
    for (table, _, shown) in view.constraints() {
        let kind = if matches!(shown, Shown::Check { .. }) { "CHECK" } else { "FOREIGN KEY" };
        let mut row = vec![text("def"), schema(view), text(shown.name()), schema(view)];
        row.extend([text(&table.name), text(kind), text("YES")]);
        rows.push(row);
    }
    rows
}

fn keys(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (table, at) in view.indexes().into_iter().filter(|(table, at)| table.indexes[*at].is_unique) {
        let index = &table.indexes[at];
        let is_seen = |field: usize| !table.columns[field].is_hidden;
        for ((field, ..), number) in index.parts.iter().zip(1..).filter(|((field, ..), _)| is_seen(*field)) {
            rows.push(vec![
                text("def"),
                schema(view),
                text(if index.id.0 == 0 { "PRIMARY" } else { &index.name }),
                text("def"),
                schema(view),
                text(&table.name),
                text(&table.columns[*field].name),
                int(number),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
            ]);
        }
    }
    rows.extend(crate::catalog::key_usage(view, "def", &|_| schema(view)));
    rows
}

fn references(view: &View<'_>) -> Vec<Vec<Value>> {
    crate::catalog::references(view, "def", &|_| schema(view))
}

fn check_clauses(view: &View<'_>) -> Vec<Vec<Value>> {
    crate::catalog::check_clauses(view, "def", &|_| schema(view))
}

/// Accounts: all may know who there is, as of PostgreSQL's `pg_roles`.
fn accounts(view: &View<'_>) -> Vec<Vec<Value>> {
    let users = view.database.catalog.users();
    let row = |user: &Rc<database::User>| {
        let may_enter = user.kind == database::UserKind::User;
        let is_locked = if may_enter { "N" } else { "Y" };
        vec![text("%"), text(&user.name), text("mysql_native_password"), text(is_locked)]
    };
    users.iter().map(row).collect()
}

/// Who may read what was given to whom sees it; everybody sees what was given to them.
fn shown_grants(view: &View<'_>) -> Vec<Vec<Value>> {
    let database = view.database;
    let own = database.user_of(&view.context.session);
    let sees_all = database
        .space(database::PRIV_ID)
        .is_ok_and(|space| database.check_space_access(view.context, &space, database::Privileges::READ).is_ok());
    let session = crate::Sql::of(database).session(view.context.session.id);
    let schema = session.map_or_else(|| "lycosa".to_string(), |session| session.database_name());
    let users = database.catalog.users().into_iter().filter(|user| sees_all || user.id == own);
    users
        .flat_map(|user| {
            let shown = crate::accounts::shown_grants(database, user.id, &schema);
            shown.into_iter().map(move |grant| vec![text(&user.name), text(&grant)])
        })
        .collect()
}

fn engines(_: &View<'_>) -> Vec<Vec<Value>> {
    [
        ("InnoDB", "DEFAULT", "Rows in memory (memtx), every change in the log"),
        ("memtx", "YES", "Rows in memory, every change in the log"),
        ("vinyl", "YES", "Rows in an LSM tree on disk"),
    ]
    .iter()
    .map(|(name, support, about)| vec![text(name), text(support), text(about), text("YES"), text("NO"), text("YES")])
    .collect()
}

fn character_sets(_: &View<'_>) -> Vec<Vec<Value>> {
    [("binary", "binary", "Binary pseudo charset", 1), ("utf8mb4", COLLATION, "UTF-8 Unicode", 4)]
        .iter()
        .map(|(name, collation, about, length)| vec![text(name), text(collation), text(about), int(*length)])
        .collect()
}

fn collations(_: &View<'_>) -> Vec<Vec<Value>> {
    [
        ("binary", "binary", 63, "Yes", "NO PAD"),
        (COLLATION, "utf8mb4", 255, "Yes", "NO PAD"),
        (BINARY_COLLATION, "utf8mb4", 46, "", "PAD SPACE"),
        ("utf8mb4_general_ci", "utf8mb4", 45, "", "PAD SPACE"),
        ("utf8mb4_unicode_ci", "utf8mb4", 224, "", "PAD SPACE"),
    ]
    .iter()
    .map(|(name, set, id, is_default, pad)| {
        vec![text(name), text(set), int(*id), text(is_default), text("Yes"), int(1), text(pad)]
    })
    .collect()
}

fn session_variables(view: &View<'_>) -> Vec<Vec<Value>> {
    let all = super::variables::all(session(view).as_deref());
    all.into_iter().map(|(name, value)| vec![text(&name), text(&value)]).collect()
}

fn status(view: &View<'_>) -> Vec<Vec<Value>> {
    let statistics = &view.database.statistics;
    let sessions = crate::Sql::of(view.database).session_count();
    let seal = session(view).and_then(|session| session.seal.borrow().clone()).unwrap_or_default();
    let values = [
        ("Com_insert", statistics.inserts.get()),
        ("Com_replace", statistics.replaces.get()),
        ("Com_select", statistics.selects.get()),
        ("Com_delete", statistics.deletes.get()),
        ("Com_update", statistics.updates.get()),
        ("Connections", sessions as u64),
        ("Queries", statistics.requests.get()),
        ("Questions", statistics.requests.get()),
        ("Ssl_cipher", 0),
        ("Ssl_version", 0),
        ("Threads_connected", sessions as u64),
        ("Threads_running", 1),
        ("Uptime", view.database.uptime_ns() / 1_000_000_000),
    ];
    values
        .iter()
        .map(|(name, value)| {
            let shown = match *name {
                "Ssl_version" => seal.0.clone(),
                "Ssl_cipher" => seal.1.clone(),
                _ => value.to_string(),
            };
            vec![text(name), text(&shown)]
        })
        .collect()
}

/// Sessions of the user; of all users for the administrator.
fn processes(view: &View<'_>) -> Vec<Vec<Value>> {
    let mine = session(view);
    let is_admin = view.context.user(&view.database.catalog) == database::ADMIN;
    let mut rows: Vec<(u32, Vec<Value>)> = Vec::new();
    for session in crate::Sql::of(view.database).all_sessions() {
        let is_mine = mine.as_ref().is_some_and(|mine| *mine.user.borrow() == *session.user.borrow());
        if !is_admin && !is_mine {
            continue;
        }
        let is_this = mine.as_ref().is_some_and(|mine| mine.number == session.number);
        rows.push((
            session.number,
            vec![
                int(i64::from(session.number)),
                text(&session.user.borrow()),
                text("localhost"),
                text(&database(Some(&session))),
                text(if is_this { "Query" } else { "Sleep" }),
                int(0),
                text(if is_this { "executing" } else { "" }),
                Value::Null,
            ],
        ));
    }
    rows.sort_by_key(|row| row.0);
    rows.into_iter().map(|row| row.1).collect()
}

fn warnings(view: &View<'_>) -> Vec<Vec<Value>> {
    let Some(session) = session(view) else { return Vec::new() };
    let warnings = session.warnings.borrow();
    warnings.iter().map(|(level, code, message)| vec![text(level), int(i64::from(*code)), text(message)]).collect()
}

virtuals! {
    information_schema.schemata [
        catalog_name: Text, schema_name: Text, default_character_set_name: Text, default_collation_name: Text, sql_path: Text,
        default_encryption: Text,
    ] => schemata;
    information_schema.tables [
        table_catalog: Text, table_schema: Text, table_name: Text, table_type: Text, engine: Text, version: Int8, row_format: Text,
        table_rows: Int8, avg_row_length: Int8, data_length: Int8, max_data_length: Int8, index_length: Int8, data_free: Int8,
        auto_increment: Int8, create_time: Timestamp, update_time: Timestamp, check_time: Timestamp, table_collation: Text,
        checksum: Int8, create_options: Text, table_comment: Text,
    ] => tables;
    information_schema.columns [
        table_catalog: Text, table_schema: Text, table_name: Text, column_name: Text, ordinal_position: Int8, column_default: Text,
        is_nullable: Text, data_type: Text, character_maximum_length: Int8, character_octet_length: Int8, numeric_precision: Int8,
        numeric_scale: Int8, datetime_precision: Int8, character_set_name: Text, collation_name: Text, column_type: Text,
        column_key: Text, extra: Text, privileges: Text, column_comment: Text, generation_expression: Text, srs_id: Int8,
    ] => columns;
    information_schema.statistics [
        table_catalog: Text, table_schema: Text, table_name: Text, non_unique: Int8, index_schema: Text, index_name: Text,
        seq_in_index: Int8, column_name: Text, collation: Text, cardinality: Int8, sub_part: Int8, packed: Text, nullable: Text,
        index_type: Text, comment: Text, index_comment: Text, is_visible: Text, expression: Text,
    ] => statistics;
    information_schema.table_constraints [
        constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, table_schema: Text, table_name: Text,
        constraint_type: Text, enforced: Text,
    ] => constraints;
    information_schema.key_column_usage [
        constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, table_catalog: Text, table_schema: Text, table_name: Text,
        column_name: Text, ordinal_position: Int8, position_in_unique_constraint: Int8, referenced_table_schema: Text,
        referenced_table_name: Text, referenced_column_name: Text,
    ] => keys;
    information_schema.referential_constraints [
        constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, unique_constraint_catalog: Text,
        unique_constraint_schema: Text, unique_constraint_name: Text, match_option: Text, update_rule: Text, delete_rule: Text,
        table_name: Text, referenced_table_name: Text,
    ] => references;
    information_schema.check_constraints [constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, check_clause: Text] => check_clauses;
    information_schema.views [
        table_catalog: Text, table_schema: Text, table_name: Text, view_definition: Text, check_option: Text, is_updatable: Text,
        definer: Text, security_type: Text,
    ] => views;
    information_schema.routines [
        specific_name: Text, routine_catalog: Text, routine_schema: Text, routine_name: Text, routine_type: Text, data_type: Text,
        routine_definition: Text, routine_comment: Text, definer: Text,
    ] => nothing;
    information_schema.parameters [specific_schema: Text, specific_name: Text, ordinal_position: Int8, parameter_mode: Text, parameter_name: Text, data_type: Text] => nothing;
    information_schema.triggers [
        trigger_catalog: Text, trigger_schema: Text, trigger_name: Text, event_manipulation: Text, event_object_schema: Text,
        event_object_table: Text, action_statement: Text, action_timing: Text,
    ] => nothing;
    information_schema.events [event_catalog: Text, event_schema: Text, event_name: Text, definer: Text] => nothing;
    information_schema.partitions [table_catalog: Text, table_schema: Text, table_name: Text, partition_name: Text] => nothing;
    information_schema.files [
        file_id: Int8, file_name: Text, file_type: Text, tablespace_name: Text, logfile_group_name: Text, engine: Text, extent_size: Int8,
        initial_size: Int8, total_extents: Int8, extra: Text,
    ] => nothing;
    information_schema.plugins [plugin_name: Text, plugin_status: Text, plugin_type: Text, plugin_library: Text, plugin_license: Text] => nothing;
    information_schema.user_privileges [grantee: Text, table_catalog: Text, privilege_type: Text, is_grantable: Text] => nothing;
    information_schema.column_statistics [schema_name: Text, table_name: Text, column_name: Text, histogram: Text] => nothing;
    information_schema.shown_grants [grantee: Text, shown: Text] => shown_grants;
    mysql.user [host: Text, user: Text, plugin: Text, account_locked: Text] => accounts;
    information_schema.engines [engine: Text, support: Text, comment: Text, transactions: Text, xa: Text, savepoints: Text] => engines;
    information_schema.character_sets [character_set_name: Text, default_collate_name: Text, description: Text, maxlen: Int8] => character_sets;
    information_schema.collations [
        collation_name: Text, character_set_name: Text, id: Int8, is_default: Text, is_compiled: Text, sortlen: Int8, pad_attribute: Text,
    ] => collations;
    information_schema.processlist [id: Int8, user: Text, host: Text, db: Text, command: Text, time: Int8, state: Text, info: Text] => processes;
    information_schema.session_variables [variable_name: Text, variable_value: Text] => session_variables;
    information_schema.global_variables [variable_name: Text, variable_value: Text] => session_variables;
    information_schema.session_status [variable_name: Text, variable_value: Text] => status;
    information_schema.global_status [variable_name: Text, variable_value: Text] => status;
    information_schema.warnings [level: Text, code: Int8, message: Text] => warnings;
    performance_schema.session_variables [variable_name: Text, variable_value: Text] => session_variables;
    performance_schema.global_variables [variable_name: Text, variable_value: Text] => session_variables;
    performance_schema.session_status [variable_name: Text, variable_value: Text] => status;
    performance_schema.global_status [variable_name: Text, variable_value: Text] => status;
}

/// A table of MySQL's dialect.
pub(crate) fn find(schema: &str, name: &str) -> Option<&'static Virtual> {
    VIRTUALS.iter().find(|table| table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_shown_as_mysql_shows_them() {
        for (declared, shown) in [
            ("INT(11) UNSIGNED", "int unsigned"),
            ("BIGINT(20)", "bigint"),
            ("TINYINT(1)", "tinyint(1)"),
            ("BOOL", "tinyint(1)"),
            ("VARCHAR(20)", "varchar(20)"),
            ("NUMERIC(10, 2)", "decimal(10,2)"),
            ("DECIMAL(10)", "decimal(10,0)"),
            ("ENUM('A', 'b')", "enum('A','b')"),
            ("DATETIME(6)", "datetime(6)"),
            ("LONGTEXT", "longtext"),
            ("INTEGER", "int"),
            ("TINYINT(4) ZEROFILL", "tinyint(4) unsigned zerofill"),
            ("INTEGER UNSIGNED ZEROFILL", "int(10) unsigned zerofill"),
            ("YEAR(4)", "year"),
            ("CHARACTER VARYING(7)", "varchar(7)"),
            ("BINARY", "binary(1)"),
            ("BIT", "bit(1)"),
            ("BLOB(0)", "blob"),
            ("BLOB(3)", "tinyblob"),
            ("TEXT(64)", "text"),
            ("TEXT(99999999999999999999)", "longtext"),
        ] {
            assert_eq!(shown_type(declared), shown, "{declared}");
        }
    }
}
