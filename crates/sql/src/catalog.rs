//! Tables that say what tables there are: `pg_catalog` of PostgreSQL and `information_schema` of the standard, computed when they are read.
//!
//! Programs join them by numbers: [`table_number`] and its like give each object one. What a user may not read is not shown.

mod absent;
mod depends;
mod standard;

pub(crate) use standard::{check_clauses, key_usage, references};
use standard::{
    standard_checks, standard_columns, standard_constraints, standard_keys, standard_references, standard_schemas,
    standard_sequences, standard_tables, standard_usage, standard_views,
};

use crate::dialect::Dialect;
use crate::run::Run;
use crate::shown_constraints::{self, Shown, words_of};
use crate::table::Table;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Context, Database, SpaceKind};
use std::rc::Rc;
use tuple::msgpack;

/// A computed table.
pub(crate) struct Virtual {
    pub(crate) schema: &'static str,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Base)],
    pub(crate) rows: fn(&View<'_>) -> Vec<Vec<Value>>,
}

/// What rows are made of.
pub(crate) struct View<'a> {
    pub(crate) database: &'a Database,
    pub(crate) context: &'a Rc<Context>,
}

macro_rules! virtuals {
    ($($schema:ident . $name:ident [$($column:ident: $base:ident),* $(,)?] => $rows:expr;)*) => {
        /// All of them.
        pub(crate) static VIRTUALS: &[$crate::catalog::Virtual] = &[$($crate::catalog::Virtual {
            schema: stringify!($schema),
            name: stringify!($name),
            columns: &[$((stringify!($column), $crate::types::Base::$base)),*],
            rows: $rows,
        },)*];
    };
}

pub(crate) use virtuals;

/// Numbers of schemas.
const PG_CATALOG: i64 = 11;
const PUBLIC: i64 = 2200;
const INFORMATION_SCHEMA: i64 = 13_000;
/// The number of the administrator as a role.
const ADMIN_NUMBER: i64 = database::ADMIN as i64 + 10;
/// The role that the schema `public` belongs to, as in PostgreSQL.
pub(crate) const DATABASE_OWNER: i64 = 6171;
/// Where the numbers of objects begin: they fit into 32 bits, as clients want them, for spaces below 2^23.
const TABLES: i64 = 100_000;
const INDEXES: i64 = 1 << 31;
const SEQUENCES: i64 = 1 << 30;
/// Indexes of one table have this many numbers.
const INDEXES_PER_TABLE: i64 = 256;

/// The number of a schema.
pub(crate) fn schema_number(name: &str) -> Option<i64> {
    let schemas = [("pg_catalog", PG_CATALOG), ("public", PUBLIC), ("information_schema", INFORMATION_SCHEMA)];
    schemas.iter().find(|(known, _)| *known == name.trim_matches('"')).map(|(_, number)| *number)
}

/// The number of a space as a table.
pub(crate) fn table_number(id: u32) -> i64 {
    TABLES + i64::from(id)
}

fn index_number(space: u32, index: u64) -> i64 {
    INDEXES + i64::from(space) * INDEXES_PER_TABLE + index as i64
}

/// The first number of a table's constraints that are no indexes.
const CONSTRAINTS_FIRST: i64 = 128;

fn constraint_number(space: u32, at: usize) -> i64 {
    INDEXES + i64::from(space) * INDEXES_PER_TABLE + CONSTRAINTS_FIRST + at as i64
}

fn sequence_number(id: u32) -> i64 {
    SEQUENCES + i64::from(id)
}

/// The name of the sequence of a number.
pub(crate) fn sequence_of_number(run: &Run<'_>, number: i64) -> Option<String> {
    let all = run.database.catalog.sequences();
    all.iter().map(|sequence| sequence.def()).find(|def| sequence_number(def.id) == number).map(|def| def.name.clone())
}

fn text(text: &str) -> Value {
    Value::text(text)
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

/// An array of whole numbers.
fn numbers(values: impl IntoIterator<Item = i64>) -> Value {
    let values: Vec<i64> = values.into_iter().collect();
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, values.len() as u32);
    values.iter().for_each(|value| msgpack::encode_int(&mut out, *value));
    Value::Document(out.into())
}

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
    (700, "float4", 4, "N", 1021, 0),
    (701, "float8", 8, "N", 1022, 0),
    (705, "unknown", -2, "X", 0, 0),
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
    (1042, "bpchar", -1, "S", 1014, 0),
    (1043, "varchar", -1, "S", 1015, 0),
    (1082, "date", 4, "D", 1182, 0),
    (1114, "timestamp", 8, "D", 1115, 0),
    (1115, "_timestamp", -1, "A", 0, 1114),
    (1182, "_date", -1, "A", 0, 1082),
    (1184, "timestamptz", 8, "D", 1185, 0),
    (1185, "_timestamptz", -1, "A", 0, 1184),
    (1186, "interval", 16, "T", 1187, 0),
    (1187, "_interval", -1, "A", 0, 1186),
    (1231, "_numeric", -1, "A", 0, 1700),
    (1700, "numeric", -1, "N", 1231, 0),
    (2205, "regclass", 4, "N", 2210, 0),
    (2206, "regtype", 4, "N", 2211, 0),
    (2950, "uuid", 16, "U", 2951, 0),
    (2951, "_uuid", -1, "A", 0, 2950),
    (3802, "jsonb", -1, "U", 3807, 0),
    (3807, "_jsonb", -1, "A", 0, 3802),
];

/// The number of the type of a column.
pub(crate) fn type_number(ty: Type) -> i64 {
    match ty.base {
        Base::Bool => 16,
        Base::Bytes => 17,
        Base::Int1 | Base::Uint1 | Base::Int2 => 21,
        Base::Int4 | Base::Uint2 => 23,
        Base::Int8 | Base::Integer | Base::Uint8 | Base::Uint4 => 20,
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
        Base::Json if ty.is_plain_json() => 114,
        Base::Json | Base::Map => 3802,
        Base::Array => {
            let element = type_number(ty.element());
            PG_TYPES.iter().find(|known| known.0 == element).map_or(1009, |known| known.4)
        }
    }
}

/// How values of a type of so many bytes are kept, as PostgreSQL says it.
fn storage_of(size: i64) -> &'static str {
    if size < 0 { "x" } else { "p" }
}

/// What a type has beside its number: length of text, digits of a number.
fn modifier(ty: Type) -> i64 {
    match ty.base {
        Base::Text if ty.length > 0 => i64::from(ty.length) + 4,
        Base::Decimal if ty.length > 0 => i64::from(ty.length << 16 | ty.scale) + 4,
        _ => -1,
    }
}

/// The name of a type as PostgreSQL shows it: `format_type`.
pub(crate) fn format_type(number: i64, modifier: i64) -> String {
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
        "timestamp" => "timestamp without time zone",
        "timestamptz" => "timestamp with time zone",
        "char" => "\"char\"",
        name => name,
    };
    match (number, modifier) {
        (1042 | 1043, modifier) if modifier > 4 => format!("{name}({})", modifier - 4),
        (1700, modifier) if modifier > 4 => {
            format!("{name}({},{})", (modifier - 4) >> 16, (modifier - 4) & 0xffff)
        }
        _ => name.to_string(),
    }
}

impl View<'_> {
    /// The tables that the user may read, but those of the system.
    pub(crate) fn tables(&self) -> Vec<Rc<Table>> {
        let mut found = Vec::new();
        let sql = crate::Sql::of(self.database);
        sql.speak(self.context);
        for space in self.database.catalog.spaces() {
            // A temporary table hides another one from its session.
            let is_hidden = match space.def().is_session {
                true => !sql.owns(&space),
                false => sql.own_space(self.database, &space.name()).is_some(),
            };
            if is_hidden {
                continue;
            }
            let is_one = !space.is_system() && !matches!(space.kind, SpaceKind::View { .. } | SpaceKind::Service);
            if !is_one {
                continue;
            }
            let may_read = self.database.check_space_access(self.context, &space, database::Privileges::READ).is_ok();
            if may_read && let Ok(table) = Table::of(self.database, space) {
                found.push(Rc::new(table));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// True for a view.
    pub(crate) fn is_view(&self, table: &Table) -> bool {
        crate::views::of(self.database, &table.space).is_some()
    }

    /// The views that the user may read, and their queries.
    pub(crate) fn views(&self) -> Vec<(Rc<Table>, String)> {
        let query = |table: Rc<Table>| {
            let view = crate::views::of(self.database, &table.space)?;
            let query = view.query().ok()?.to_string();
            Some((table, query))
        };
        self.tables().into_iter().filter_map(query).collect()
    }

    pub(crate) fn indexes(&self) -> Vec<(Rc<Table>, usize)> {
        let tables = self.tables();
        let indexes = tables.iter().flat_map(|table| (0..table.indexes.len()).map(|at| (Rc::clone(table), at)));
        // The key that nobody has declared is nobody's.
        indexes.filter(|(table, at)| !is_hidden(table, *at)).collect()
    }

    fn owner(&self, table: &Table) -> i64 {
        i64::from(table.space.owner()) + 10
    }
}

impl View<'_> {
    /// The constraints of all tables that are no indexes, and their positions within the table.
    pub(crate) fn constraints(&self) -> Vec<(Rc<Table>, usize, Shown)> {
        let mut found = Vec::new();
        for table in self.tables().into_iter().filter(|table| table.space.has_constraints()) {
            let shown = shown_constraints::of(self.database, &table);
            let most = (INDEXES_PER_TABLE - CONSTRAINTS_FIRST) as usize;
            found.extend(shown.into_iter().take(most).enumerate().map(|(at, shown)| (Rc::clone(&table), at, shown)));
        }
        found
    }
}

/// True for the index of a table's hidden key.
fn is_hidden(table: &Table, at: usize) -> bool {
    table.indexes[at].parts.iter().all(|(field, ..)| table.columns[*field].is_hidden)
}

/// Columns of a table as the catalog counts them: from 1, those that are seen.
fn columns_of(table: &Table) -> impl Iterator<Item = (i64, usize)> + '_ {
    table.visible().zip(1i64..).map(|(at, number)| (number, at))
}

fn column_number(table: &Table, field: usize) -> i64 {
    columns_of(table).find(|(_, at)| *at == field).map_or(0, |(number, _)| number)
}

/// `CREATE INDEX` for an index.
fn index_definition(table: &Table, at: usize) -> String {
    let index = &table.indexes[at];
    let columns: Vec<&str> = index.parts.iter().map(|(field, ..)| table.columns[*field].name.as_str()).collect();
    let unique = if index.is_unique { "UNIQUE " } else { "" };
    let method = if index.is_ordered { "btree" } else { "hash" };
    format!(
        "CREATE {unique}INDEX {} ON public.{} USING {method} ({})",
        quoted(&index.name),
        quoted(&table.name),
        columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
    )
}

/// A name as a statement has it.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The default of a column as a statement has it.
fn default_of(view: &View<'_>, table: &Table, at: usize) -> Option<String> {
    let named =
        |sequence: &str| format!("nextval('{}{}'::regclass)", view.prefix(), quoted(sequence).replace('\'', "''"));
    let sequence = table.space.sequence.borrow();
    let link = sequence.as_ref().filter(|link| link.field_no as usize == at);
    match link {
        Some(link) => Some(named(&link.sequence.def().name)),
        None => {
            let default = table.columns[at].default.clone()?;
            Some(sequence_named_by(view.database, &default).map_or(default, |sequence| named(&sequence)))
        }
    }
}

/// The sequence whose next number a default is.
pub(crate) fn sequence_named_by(database: &Database, default: &str) -> Option<String> {
    let name = default.trim().strip_prefix("nextval('")?.strip_suffix(')')?;
    let name = match name.len().checked_sub("::regclass".len()).and_then(|end| name.split_at_checked(end)) {
        Some((name, cast)) if cast.eq_ignore_ascii_case("::regclass") => name,
        _ => name,
    };
    let name = name.strip_suffix('\'')?.replace("''", "'");
    let name = name.strip_prefix("public.").unwrap_or(&name).to_string();
    let name = match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name,
    };
    database.catalog.sequence_by_name(&name).map(|_| name)
}

/// `pg_get_indexdef`, `pg_get_constraintdef`, names of numbers: what functions ask for.
pub(crate) fn describe_index(run: &Run<'_>, number: i64, column: i64) -> Option<String> {
    let view = View::of(run);
    let (table, at) = view
        .indexes()
        .into_iter()
        .find(|(table, at)| index_number(table.space.id.0, u64::from(table.indexes[*at].id.0)) == number)?;
    if column == 0 {
        return Some(index_definition(&table, at));
    }
    let (field, ..) = table.indexes[at].parts.get(usize::try_from(column - 1).ok()?)?;
    Some(quoted(&table.columns[*field].name))
}

/// The definition of a constraint: its number is that of its index.
pub(crate) fn describe_constraint(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    let other =
        view.constraints().into_iter().find(|(table, at, _)| constraint_number(table.space.id.0, *at) == number);
    if let Some((table, _, shown)) = other {
        return Some(shown_constraints::definition(Dialect::Postgres, view.prefix(), &table, &shown));
    }
    let (table, at) = view
        .indexes()
        .into_iter()
        .find(|(table, at)| index_number(table.space.id.0, u64::from(table.indexes[*at].id.0)) == number)?;
    let index = table.indexes.get(at).filter(|index| index.is_constraint)?;
    let columns: Vec<String> = index.parts.iter().map(|(field, ..)| quoted(&table.columns[*field].name)).collect();
    let kind = if index.id.0 == 0 { "PRIMARY KEY" } else { "UNIQUE" };
    Some(format!("{kind} ({})", columns.join(", ")))
}

/// The name of a table, an index or a sequence.
pub(crate) fn name_of(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    class_rows(&view)
        .into_iter()
        .find(|row| row[0].as_integer() == Some(i128::from(number)))
        .and_then(|row| row[1].as_text().map(str::to_string))
}

/// The number of a table, an index or a sequence, whose name may have a schema before it.
pub(crate) fn number_of(run: &Run<'_>, name: &str) -> Option<i64> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let folded = match last.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => last.to_lowercase(),
    };
    let view = View::of(run);
    let found = class_rows(&view).into_iter().find(|row| row[1].as_text() == Some(&folded));
    found
        .and_then(|row| row[0].as_integer())
        .and_then(|number| i64::try_from(number).ok())
        .or_else(|| all().find(|table| table.schema == "pg_catalog" && table.name == folded).map(Virtual::number))
}

/// Bytes of the rows of a table, which is said by its number or its name.
pub(crate) fn size_of(run: &Run<'_>, table: &Value) -> Option<i64> {
    let number = match table {
        Value::Text(name) => number_of(run, name)?,
        number => i64::try_from(number.as_integer()?).ok()?,
    };
    let tables = View::of(run).tables();
    let bytes = tables
        .iter()
        .find(|table| table_number(table.space.id.0) == number)
        .map_or(0, |table| table.space.rows.row_bytes());
    Some(i64::try_from(bytes).unwrap_or(i64::MAX))
}

impl<'a> View<'a> {
    /// What stands before names of tables: nothing, if they are found without it.
    fn prefix(&self) -> &'static str {
        let session = crate::Sql::of(self.database).session(self.context.session.id);
        let path = session.filter(|session| !session.is_mysql).and_then(|session| session.get("search_path"));
        if path.is_some_and(|path| path.trim().trim_matches('"').is_empty()) { "public." } else { "" }
    }

    pub(crate) fn of(run: &Run<'a>) -> Self {
        View { database: run.database, context: run.context }
    }
}

/// Finds a computed table.
pub(crate) fn find(dialect: Dialect, schema: Option<&str>, name: &str) -> Option<&'static Virtual> {
    if dialect == Dialect::Mysql {
        return crate::mysql::schema::find(schema?, name);
    }
    let name = name.to_ascii_lowercase();
    let fits = |table: &&Virtual| match schema {
        Some(schema) => table.schema.eq_ignore_ascii_case(schema),
        None => table.schema == "pg_catalog",
    };
    all().filter(fits).find(|table| table.name == name)
}

/// The computed tables of PostgreSQL and the standard.
fn all() -> impl Iterator<Item = &'static Virtual> {
    VIRTUALS.iter().chain(absent::VIRTUALS)
}

/// The numbers of those tables that clients know by heart.
const KNOWN_NUMBERS: &[(&str, i64)] = &[
    ("pg_type", 1247),
    ("pg_attribute", 1249),
    ("pg_proc", 1255),
    ("pg_class", 1259),
    ("pg_database", 1262),
    ("pg_am", 2601),
    ("pg_attrdef", 2604),
    ("pg_constraint", 2606),
    ("pg_description", 2609),
    ("pg_index", 2610),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_rewrite", 2618),
    ("pg_trigger", 2620),
    ("pg_opfamily", 2753),
    ("pg_extension", 3079),
    ("pg_collation", 3456),
];

impl Virtual {
    /// Its number as a table.
    pub(crate) fn number(&self) -> i64 {
        let known = KNOWN_NUMBERS.iter().find(|(name, _)| self.schema == "pg_catalog" && *name == self.name);
        known.map_or_else(
            || 12_000 + all().position(|table| std::ptr::eq(table, self)).unwrap_or(0) as i64,
            |(_, number)| *number,
        )
    }

    /// True for a column that is a `name` there: clients read arrays of names in another way than those of text.
    pub(crate) fn is_name(&self, column: &str) -> bool {
        match self.schema {
            "pg_catalog" => {
                column.ends_with("name") && column != "name"
                    || matches!(column, "tableowner" | "viewowner" | "tablespace")
            }
            "information_schema" => ["_name", "_catalog", "_schema"].iter().any(|ending| column.ends_with(ending)),
            _ => false,
        }
    }

    /// True if each row says in a hidden column, `tableoid`, which table it is of.
    pub(crate) fn has_table_number(&self) -> bool {
        self.schema == "pg_catalog"
    }

    /// Its rows as they are now.
    pub(crate) fn rows(&self, run: &Run<'_>) -> Vec<Vec<Value>> {
        let mut rows = (self.rows)(&View::of(run));
        if self.has_table_number() {
            let number = int(self.number());
            rows.iter_mut().for_each(|row| row.push(number.clone()));
        }
        rows
    }
}

fn class_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |number: i64, name: &str, kind: &str, owner: i64, columns: i64, rows: f64, has_index: bool| {
        vec![
            int(number),
            text(name),
            int(PUBLIC),
            int(0),
            int(0),
            int(owner),
            int(if kind == "i" { 403 } else { 2 }),
            int(number),
            int(0),
            int((rows / 100.0).ceil() as i64),
            Value::Double(rows),
            int(0),
            int(0),
            Value::Bool(has_index),
            Value::Bool(false),
            text("p"),
            text(kind),
            int(columns),
            int(0),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(true),
            text("d"),
            Value::Bool(false),
            int(0),
            Value::Null,
            Value::Null,
            Value::Null,
            int(0),
            int(0),
        ]
    };
    let mut rows = Vec::new();
    for table in view.tables() {
        let count = columns_of(&table).count() as i64;
        let has_index = (0..table.indexes.len()).any(|at| !is_hidden(&table, at));
        let owner = view.owner(&table);
        let number = table_number(table.space.id.0);
        let kind = if view.is_view(&table) { "v" } else { "r" };
        let mut class = row(number, &table.name, kind, owner, count, table.row_count() as f64, has_index);
        if table.space.has_constraints() {
            let shown = shown_constraints::of(view.database, &table);
            class[18] = int(shown.iter().filter(|one| matches!(one, Shown::Check { .. })).count() as i64);
            // Triggers keep foreign keys there: clients ask for keys where there are some.
            class[20] = Value::Bool(true);
        }
        rows.push(class);
        for (at, index) in table.indexes.iter().enumerate().filter(|(at, _)| !is_hidden(&table, *at)) {
            let number = index_number(table.space.id.0, u64::from(index.id.0));
            let parts = table.indexes[at].parts.len() as i64;
            rows.push(row(number, &index.name, "i", owner, parts, 0.0, false));
        }
    }
    for def in shown_sequences(view) {
        let owner = i64::from(def.owner) + 10;
        rows.push(row(sequence_number(def.id), &def.name, "S", owner, 3, 1.0, false));
    }
    rows
}

/// Comments of tables and columns, and that of the schema.
fn description_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = vec![vec![int(PUBLIC), int(2615), int(0), text("standard public schema")]];
    for table in view.tables() {
        let number = table_number(table.space.id.0);
        let mut add = |at: i64, comment: String| rows.push(vec![int(number), int(1259), int(at), Value::text(comment)]);
        if let Some(comment) = crate::comments::of(view.database, &table.space) {
            add(0, comment);
        }
        for (number, at) in columns_of(&table) {
            if let Some(comment) = &table.columns[at].comment {
                add(number, comment.clone());
            }
        }
    }
    rows
}

/// What is said of an object by its number in `pg_class`, or of a column of it.
pub(crate) fn description(run: &Run<'_>, object: i64, column: i64) -> Value {
    let view = View { database: run.database, context: run.context };
    let rows = description_rows(&view);
    let is_it =
        |row: &&Vec<Value>| row[0].as_integer() == Some(object.into()) && row[2].as_integer() == Some(column.into());
    rows.iter().find(is_it).map_or(Value::Null, |row| row[3].clone())
}

/// Sequences, but those that fill keys nobody has declared.
fn shown_sequences(view: &View<'_>) -> Vec<Rc<database::SequenceDef>> {
    let spaces = view.database.catalog.spaces().into_iter().filter(|space| !space.is_system() && space.has_rows());
    let hidden: Vec<u32> = spaces
        .filter(|space| space.sequence.borrow().is_some())
        .filter_map(|space| Table::of(view.database, space).ok())
        .filter_map(|table| table.generated.filter(|(field, _)| table.columns[*field].is_hidden))
        .map(|(_, sequence)| sequence)
        .collect();
    let all = view.database.catalog.sequences();
    let shown = all.iter().map(|sequence| sequence.def());
    shown.filter(|def| !hidden.contains(&def.id) && def.id < database::SESSION_ID_MIN).collect()
}

fn attribute_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut add = |relation: i64, table: &Table, at: usize, number: i64| {
        let column = &table.columns[at];
        let number_of_type = type_number(column.ty);
        let size = PG_TYPES.iter().find(|known| known.0 == number_of_type).map_or(-1, |known| known.2);
        rows.push(vec![
            int(relation),
            text(&column.name),
            int(number_of_type),
            int(-1),
            int(size),
            int(number),
            int(0),
            int(-1),
            int(modifier(column.ty)),
            Value::Bool(size > 0 && size <= 8),
            text(storage_of(size)),
            text(""),
            text("i"),
            Value::Bool(!column.is_nullable),
            Value::Bool(default_of(view, table, at).is_some()),
            Value::Bool(false),
            text(""),
            text(""),
            Value::Bool(false),
            Value::Bool(true),
            int(0),
            int(if column.ty.base == Base::Text { 100 } else { 0 }),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ]);
    };
    for table in view.tables() {
        for (number, at) in columns_of(&table) {
            add(table_number(table.space.id.0), &table, at, number);
        }
        for (at, index) in table.indexes.iter().enumerate().filter(|(at, _)| !is_hidden(&table, *at)) {
            let relation = index_number(table.space.id.0, u64::from(index.id.0));
            for ((field, ..), number) in table.indexes[at].parts.iter().zip(1..) {
                add(relation, &table, *field, number);
            }
        }
    }
    rows
}

fn index_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(table, at): (Rc<Table>, usize)| {
        let index = &table.indexes[at];
        let is_primary = index.id.0 == 0;
        let keys: Vec<i64> = index.parts.iter().map(|(field, ..)| column_number(&table, *field)).collect();
        let zeros = || numbers(keys.iter().map(|_| 0));
        vec![
            int(index_number(table.space.id.0, u64::from(index.id.0))),
            int(table_number(table.space.id.0)),
            int(keys.len() as i64),
            int(keys.len() as i64),
            Value::Bool(index.is_unique),
            Value::Bool(false),
            Value::Bool(is_primary),
            Value::Bool(false),
            Value::Bool(true),
            Value::Bool(false),
            Value::Bool(true),
            Value::Bool(false),
            Value::Bool(true),
            Value::Bool(true),
            Value::Bool(false),
            numbers(keys.iter().copied()),
            zeros(),
            zeros(),
            zeros(),
            Value::Null,
            Value::Null,
        ]
    };
    view.indexes().into_iter().map(row).collect()
}

fn constraint_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let unique = view.indexes().into_iter().filter(|(table, at)| table.indexes[*at].is_constraint);
    let row = |(table, at): (Rc<Table>, usize)| {
        let index = &table.indexes[at];
        let number = index_number(table.space.id.0, u64::from(index.id.0));
        vec![
            int(number),
            text(&index.name),
            int(PUBLIC),
            text(if index.id.0 == 0 { "p" } else { "u" }),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(true),
            int(table_number(table.space.id.0)),
            int(0),
            int(number),
            int(0),
            int(0),
            text(" "),
            text(" "),
            text(" "),
            Value::Bool(true),
            int(0),
            Value::Bool(true),
            numbers(index.parts.iter().map(|(field, ..)| column_number(&table, *field))),
            Value::Null,
            Value::Null,
        ]
    };
    let mut rows: Vec<Vec<Value>> = unique.map(row).collect();
    for (table, at, shown) in view.constraints() {
        let letter = |action: database::Action| match action {
            database::Action::NoAction => "a",
            database::Action::Restrict => "r",
            database::Action::Cascade => "c",
            database::Action::SetNull => "n",
            database::Action::SetDefault => "d",
        };
        let number_of = |table: &Table, fields: &[usize]| {
            numbers(fields.iter().map(|field| column_number(table, *field)).collect::<Vec<_>>())
        };
        let (kind, columns, foreign) = match &shown {
            Shown::Check { columns, .. } => ("c", columns, None),
            Shown::Key { columns, parent, on_delete, on_update, .. } => {
                ("f", columns, Some((parent, on_delete, on_update)))
            }
        };
        let index = foreign
            .and_then(|(parent, ..)| parent.index.as_ref().map(|(id, _)| index_number(parent.table.space.id.0, *id)));
        rows.push(vec![
            int(constraint_number(table.space.id.0, at)),
            text(shown.name()),
            int(PUBLIC),
            text(kind),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(true),
            int(table_number(table.space.id.0)),
            int(0),
            int(index.unwrap_or(0)),
            int(0),
            int(foreign.map_or(0, |(parent, ..)| table_number(parent.table.space.id.0))),
            text(foreign.map_or(" ", |(_, _, on_update)| letter(*on_update))),
            text(foreign.map_or(" ", |(_, on_delete, _)| letter(*on_delete))),
            text(if kind == "f" { "s" } else { " " }),
            Value::Bool(true),
            int(0),
            Value::Bool(kind == "f"),
            number_of(&table, columns),
            foreign.map_or(Value::Null, |(parent, ..)| number_of(&parent.table, &parent.columns)),
            Value::Null,
        ]);
    }
    rows
}

fn type_rows(_: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(number, name, size, category, array, element): &(i64, &str, i64, &str, i64, i64)| {
        let input = if *category == "A" { "array_in".to_string() } else { format!("{name}in") };
        vec![
            int(*number),
            text(name),
            int(PG_CATALOG),
            int(10),
            int(*size),
            Value::Bool(*size > 0 && *size <= 8),
            text("b"),
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
        ]
    };
    PG_TYPES.iter().map(row).collect()
}

fn namespace_rows(_: &View<'_>) -> Vec<Vec<Value>> {
    let schemas = [
        (PG_CATALOG, "pg_catalog", ADMIN_NUMBER),
        (PUBLIC, "public", DATABASE_OWNER),
        (INFORMATION_SCHEMA, "information_schema", ADMIN_NUMBER),
    ];
    schemas.iter().map(|(number, name, owner)| vec![int(*number), text(name), int(*owner), Value::Null]).collect()
}

/// The number of a column's default.
fn default_number(relation: i64, column: i64) -> i64 {
    relation * 2000 + column
}

fn default_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in view.tables() {
        for (number, at) in columns_of(&table) {
            if let Some(default) = default_of(view, &table, at) {
                let relation = table_number(table.space.id.0);
                rows.push(vec![int(default_number(relation, number)), int(relation), int(number), text(&default)]);
            }
        }
    }
    rows
}

fn database_name(view: &View<'_>) -> String {
    let session = crate::Sql::of(view.database).session(view.context.session.id);
    session.map_or_else(|| "lycosa".to_string(), |session| session.database.borrow().clone())
}

fn database_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    vec![vec![
        int(1),
        text(&database_name(view)),
        int(ADMIN_NUMBER),
        int(6),
        text("c"),
        Value::Bool(false),
        Value::Bool(true),
        int(-1),
        int(1663),
        text("C.UTF-8"),
        text("C.UTF-8"),
        Value::Null,
        Value::Null,
        Value::Null,
        int(0),
        int(0),
    ]]
}

/// All rights that can be granted on everything.
pub(crate) const EVERYTHING: u32 = 0x1fff;

fn role_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let users = view.database.catalog.users();
    let row = |user: &Rc<database::User>| {
        let rights = view.database.catalog.rights_of(user.id);
        let is_admin = user.id == database::ADMIN || rights.universe & EVERYTHING == EVERYTHING;
        vec![
            text(&user.name),
            Value::Bool(is_admin),
            Value::Bool(true),
            Value::Bool(is_admin),
            Value::Bool(is_admin),
            Value::Bool(user.kind == database::UserKind::User),
            Value::Bool(false),
            int(-1),
            Value::Null,
            Value::Null,
            Value::Bool(is_admin),
            Value::Null,
            int(i64::from(user.id) + 10),
        ]
    };
    let mut rows: Vec<Vec<Value>> = users.iter().map(row).collect();
    let mut owner = vec![text("pg_database_owner"), Value::Bool(false), Value::Bool(true)];
    owner.extend((0..4).map(|_| Value::Bool(false)));
    owner.extend([int(-1), Value::Null, Value::Null, Value::Bool(false), Value::Null, int(DATABASE_OWNER)]);
    rows.push(owner);
    rows
}

fn setting_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let session = crate::Sql::of(view.database).session(view.context.session.id);
    let all = session.map(|session| session.all()).unwrap_or_default();
    all.into_iter()
        .map(|(name, value, about)| {
            let value = text(&value);
            let rest = [text(&about), text("user"), text("string"), text("default"), value.clone(), value.clone()];
            [vec![text(&name), value, Value::Null, text("Settings")], rest.to_vec()].concat()
        })
        .collect()
}

fn pg_tables_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |table: Rc<Table>| {
        let has_index = (0..table.indexes.len()).any(|at| !is_hidden(&table, at));
        let owner = view.database.catalog.user_name(table.space.owner());
        vec![
            text("public"),
            text(&table.name),
            text(&owner),
            Value::Null,
            Value::Bool(has_index),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(false),
        ]
    };
    view.tables().into_iter().filter(|table| !view.is_view(table)).map(row).collect()
}

fn pg_views_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(table, query): (Rc<Table>, String)| {
        let owner = view.database.catalog.user_name(table.space.owner());
        vec![text("public"), text(&table.name), text(&owner), text(&query)]
    };
    view.views().into_iter().map(row).collect()
}

/// The query of a view, by its number.
pub(crate) fn describe_view(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    let found = view.tables().into_iter().find(|table| table_number(table.space.id.0) == number)?;
    let saved = crate::views::of(run.database, &found.space)?;
    let query = saved.query_with_schema(run.database, view.prefix()).ok()?;
    Some(format!(" {query};"))
}

fn pg_indexes_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(table, at): (Rc<Table>, usize)| {
        vec![
            text("public"),
            text(&table.name),
            text(&table.indexes[at].name),
            Value::Null,
            text(&index_definition(&table, at)),
        ]
    };
    view.indexes().into_iter().map(row).collect()
}

fn sequence_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    shown_sequences(view)
        .into_iter()
        .map(|def| {
            vec![
                int(sequence_number(def.id)),
                int(20),
                int(def.start),
                int(def.step),
                int(def.max),
                int(def.min),
                int(1),
                Value::Bool(def.is_cyclic),
            ]
        })
        .collect()
}

fn access_method_rows(_: &View<'_>) -> Vec<Vec<Value>> {
    [(2, "heap", "t"), (403, "btree", "i"), (405, "hash", "i")]
        .iter()
        .map(|(number, name, kind)| vec![int(*number), text(name), text(""), text(kind)])
        .collect()
}

/// Tables as `pg_statio_all_tables` and its like have them.
fn table_statistics(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |table: &Rc<Table>| {
        let rows = i64::try_from(table.row_count()).unwrap_or(i64::MAX);
        vec![int(table_number(table.space.id.0)), text("public"), text(&table.name), int(rows)]
    };
    view.tables().iter().filter(|table| !view.is_view(table)).map(row).collect()
}

virtuals! {
    pg_catalog.pg_namespace [oid: Int8, nspname: Text, nspowner: Int8, nspacl: Array] => namespace_rows;
    pg_catalog.pg_class [
        oid: Int8, relname: Text, relnamespace: Int8, reltype: Int8, reloftype: Int8, relowner: Int8, relam: Int8, relfilenode: Int8,
        reltablespace: Int8, relpages: Int8, reltuples: Double, relallvisible: Int8, reltoastrelid: Int8, relhasindex: Bool,
        relisshared: Bool, relpersistence: Text, relkind: Text, relnatts: Int2, relchecks: Int2, relhasrules: Bool, relhastriggers: Bool,
        relhassubclass: Bool, relrowsecurity: Bool, relforcerowsecurity: Bool, relispopulated: Bool, relreplident: Text,
        relispartition: Bool, relrewrite: Int8, relacl: Array, reloptions: Array, relpartbound: Text, relfrozenxid: Int8, relminmxid: Int8,
    ] => class_rows;
    pg_catalog.pg_attribute [
        attrelid: Int8, attname: Text, atttypid: Int8, attstattarget: Int8, attlen: Int2, attnum: Int2, attndims: Int4, attcacheoff: Int4,
        atttypmod: Int4, attbyval: Bool, attstorage: Text, attcompression: Text, attalign: Text, attnotnull: Bool, atthasdef: Bool,
        atthasmissing: Bool, attidentity: Text, attgenerated: Text, attisdropped: Bool, attislocal: Bool, attinhcount: Int4,
        attcollation: Int8, attacl: Array, attoptions: Array, attfdwoptions: Array, attmissingval: Text,
    ] => attribute_rows;
    pg_catalog.pg_attrdef [oid: Int8, adrelid: Int8, adnum: Int2, adbin: Text] => default_rows;
    pg_catalog.pg_index [
        indexrelid: Int8, indrelid: Int8, indnatts: Int2, indnkeyatts: Int2, indisunique: Bool, indnullsnotdistinct: Bool,
        indisprimary: Bool, indisexclusion: Bool, indimmediate: Bool, indisclustered: Bool, indisvalid: Bool, indcheckxmin: Bool,
        indisready: Bool, indislive: Bool, indisreplident: Bool, indkey: Array, indcollation: Array, indclass: Array, indoption: Array,
        indexprs: Text, indpred: Text,
    ] => index_rows;
    pg_catalog.pg_constraint [
        oid: Int8, conname: Text, connamespace: Int8, contype: Text, condeferrable: Bool, condeferred: Bool, convalidated: Bool,
        conrelid: Int8, contypid: Int8, conindid: Int8, conparentid: Int8, confrelid: Int8, confupdtype: Text, confdeltype: Text,
        confmatchtype: Text, conislocal: Bool, coninhcount: Int8, connoinherit: Bool, conkey: Array, confkey: Array, conbin: Text,
    ] => constraint_rows;
    pg_catalog.pg_type [
        oid: Int8, typname: Text, typnamespace: Int8, typowner: Int8, typlen: Int8, typbyval: Bool, typtype: Text, typcategory: Text,
        typispreferred: Bool, typisdefined: Bool, typdelim: Text, typrelid: Int8, typsubscript: Int8, typelem: Int8, typarray: Int8,
        typinput: Text, typnotnull: Bool, typbasetype: Int8, typtypmod: Int8, typndims: Int8, typcollation: Int8, typdefault: Text, typacl: Array, typstorage: Text,
    ] => type_rows;
    pg_catalog.pg_database [
        oid: Int8, datname: Text, datdba: Int8, encoding: Int8, datlocprovider: Text, datistemplate: Bool, datallowconn: Bool,
        datconnlimit: Int8, dattablespace: Int8, datcollate: Text, datctype: Text, daticulocale: Text, datcollversion: Text, datacl: Array, datfrozenxid: Int8,
        datminmxid: Int8,
    ] => database_rows;
    pg_catalog.pg_roles [
        rolname: Text, rolsuper: Bool, rolinherit: Bool, rolcreaterole: Bool, rolcreatedb: Bool, rolcanlogin: Bool, rolreplication: Bool,
        rolconnlimit: Int8, rolpassword: Text, rolvaliduntil: TimestampTz, rolbypassrls: Bool, rolconfig: Array, oid: Int8,
    ] => role_rows;
    pg_catalog.pg_settings [
        name: Text, setting: Text, unit: Text, category: Text, short_desc: Text, context: Text, vartype: Text, source: Text, boot_val: Text,
        reset_val: Text,
    ] => setting_rows;
    pg_catalog.pg_tables [
        schemaname: Text, tablename: Text, tableowner: Text, tablespace: Text, hasindexes: Bool, hasrules: Bool, hastriggers: Bool,
        rowsecurity: Bool,
    ] => pg_tables_rows;
    pg_catalog.pg_indexes [schemaname: Text, tablename: Text, indexname: Text, tablespace: Text, indexdef: Text] => pg_indexes_rows;
    pg_catalog.pg_sequence [
        seqrelid: Int8, seqtypid: Int8, seqstart: Int8, seqincrement: Int8, seqmax: Int8, seqmin: Int8, seqcache: Int8, seqcycle: Bool,
    ] => sequence_rows;
    pg_catalog.pg_depend [
        classid: Int8, objid: Int8, objsubid: Int8, refclassid: Int8, refobjid: Int8, refobjsubid: Int8, deptype: Text,
    ] => depends::rows;
    pg_catalog.pg_rewrite [
        oid: Int8, rulename: Text, ev_class: Int8, ev_type: Text, ev_enabled: Text, is_instead: Bool, ev_qual: Text, ev_action: Text,
    ] => depends::rules;
    pg_catalog.pg_description [objoid: Int8, classoid: Int8, objsubid: Int8, description: Text] => description_rows;
    pg_catalog.pg_am [oid: Int8, amname: Text, amhandler: Text, amtype: Text] => access_method_rows;
    pg_catalog.pg_views [schemaname: Text, viewname: Text, viewowner: Text, definition: Text] => pg_views_rows;
    information_schema.tables [
        table_catalog: Text, table_schema: Text, table_name: Text, table_type: Text, engine: Text, is_insertable_into: Text, is_typed: Text,
        table_rows: Int8, table_collation: Text, table_comment: Text, auto_increment: Int8,
    ] => standard_tables;
    information_schema.columns [
        table_catalog: Text, table_schema: Text, table_name: Text, column_name: Text, ordinal_position: Int4, column_default: Text,
        is_nullable: Text, data_type: Text, character_maximum_length: Int4, character_octet_length: Int4, numeric_precision: Int4,
        numeric_precision_radix: Int4, numeric_scale: Int4, datetime_precision: Int4, collation_name: Text, udt_name: Text,
        is_identity: Text, identity_generation: Text, is_generated: Text, is_updatable: Text, column_type: Text, column_key: Text,
        extra: Text, column_comment: Text, character_set_name: Text, generation_expression: Text, udt_catalog: Text, udt_schema: Text,
        identity_start: Text, identity_increment: Text, identity_maximum: Text, identity_minimum: Text, identity_cycle: Text,
        domain_catalog: Text, domain_schema: Text, domain_name: Text, collation_catalog: Text, collation_schema: Text, interval_type: Text,
        dtd_identifier: Text, is_self_referencing: Text,
    ] => standard_columns;
    information_schema.schemata [
        catalog_name: Text, schema_name: Text, schema_owner: Text, default_character_set_name: Text, default_collation_name: Text,
    ] => standard_schemas;
    information_schema.table_constraints [
        constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, table_catalog: Text, table_schema: Text, table_name: Text,
        constraint_type: Text, is_deferrable: Text, initially_deferred: Text, enforced: Text,
    ] => standard_constraints;
    information_schema.key_column_usage [
        constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, table_catalog: Text, table_schema: Text, table_name: Text,
        column_name: Text, ordinal_position: Int4, position_in_unique_constraint: Int4, referenced_table_schema: Text,
        referenced_table_name: Text, referenced_column_name: Text,
    ] => standard_keys;
    information_schema.sequences [
        sequence_catalog: Text, sequence_schema: Text, sequence_name: Text, data_type: Text, start_value: Text, minimum_value: Text,
        maximum_value: Text, increment: Text, cycle_option: Text,
    ] => standard_sequences;
    information_schema.views [
        table_catalog: Text, table_schema: Text, table_name: Text, view_definition: Text, check_option: Text, is_updatable: Text,
        is_insertable_into: Text,
    ] => standard_views;
    information_schema.constraint_column_usage [
        table_catalog: Text, table_schema: Text, table_name: Text, column_name: Text, constraint_catalog: Text, constraint_schema: Text,
        constraint_name: Text,
    ] => standard_usage;
    pg_catalog.pg_statio_all_tables [relid: Int8, schemaname: Text, relname: Text, n_live_tup: Int8] => table_statistics;
    pg_catalog.pg_stat_all_tables [relid: Int8, schemaname: Text, relname: Text, n_live_tup: Int8] => table_statistics;
    pg_catalog.pg_stat_user_tables [relid: Int8, schemaname: Text, relname: Text, n_live_tup: Int8] => table_statistics;
    information_schema.referential_constraints [
        constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, unique_constraint_catalog: Text,
        unique_constraint_schema: Text, unique_constraint_name: Text, match_option: Text, update_rule: Text, delete_rule: Text,
        table_name: Text, referenced_table_name: Text,
    ] => standard_references;
    information_schema.check_constraints [constraint_catalog: Text, constraint_schema: Text, constraint_name: Text, check_clause: Text] => standard_checks;
}
