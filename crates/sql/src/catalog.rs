//! Tables that say what tables there are: `pg_catalog` of PostgreSQL and `information_schema` of the standard, computed when they are read.
//!
//! Programs join them by numbers: [`table_number`] and its like give each object one. What a user may not read is not shown.

mod absent;
mod activity;
mod classes;
mod depends;
mod describe;
mod postgres;
mod seen;
mod standard;
mod types;
mod user_types;

pub(crate) use classes::check_class;
pub(crate) use describe::{
    describe_constraint, describe_index, describe_view, description, index_definition, is_visible, name_of, number_of,
    sequence_of_number, size_of,
};
pub(crate) use postgres::EVERYTHING;
pub(crate) use seen::Seen;
pub(crate) use standard::{check_clauses, key_usage, references};
pub(crate) use types::{PG_TYPES, format_type};
pub(crate) use user_types::{name_of_number, number_of_name, type_of_column};

use postgres::{
    access_method_rows, attribute_rows, class_rows, collation_rows, constraint_rows, database_rows, default_rows,
    description_rows, index_rows, namespace_rows, pg_indexes_rows, pg_sequences_rows, pg_tables_rows, pg_views_rows,
    role_rows, sequence_rows, setting_rows, table_statistics,
};
use standard::{
    standard_checks, standard_columns, standard_constraints, standard_keys, standard_references, standard_schemas,
    standard_sequences, standard_tables, standard_usage, standard_views,
};
use types::type_rows;

use crate::dialect::Dialect;
use crate::run::Run;
use crate::shown_constraints::{self, Shown};
use crate::table::Table;
use crate::types::Base;
use crate::value::Value;
use crate::written::written;
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
pub(crate) fn schema_number(database: &Database, name: &str) -> Option<i64> {
    let schemas = [("pg_catalog", PG_CATALOG), ("public", PUBLIC), ("information_schema", INFORMATION_SCHEMA)];
    let name = name.trim_matches('"');
    let known = schemas.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    known.or_else(|| crate::schemas::by_name(database, name).map(|schema| schema.number()))
}

/// The name of the schema of a number.
pub(crate) fn schema_of_number(database: &Database, number: i64) -> Option<String> {
    let schemas = [("pg_catalog", PG_CATALOG), ("public", PUBLIC), ("information_schema", INFORMATION_SCHEMA)];
    let known = schemas.iter().find(|(_, known)| *known == number).map(|(name, _)| (*name).to_string());
    let mut own = crate::schemas::all(database).iter().cloned().collect::<Vec<_>>().into_iter();
    known.or_else(|| own.find(|schema| schema.number() == number).map(|schema| schema.name.clone()))
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

fn text(text: &str) -> Value {
    Value::text(text)
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

/// An array of texts.
fn texts(values: &[String]) -> Value {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, values.len() as u32);
    values.iter().for_each(|value| msgpack::encode_str(&mut out, value.as_bytes()));
    Value::Document(out.into())
}

/// An array of whole numbers.
fn numbers(values: impl IntoIterator<Item = i64>) -> Value {
    let values: Vec<i64> = values.into_iter().collect();
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, values.len() as u32);
    values.iter().for_each(|value| msgpack::encode_int(&mut out, *value));
    Value::Document(out.into())
}

impl View<'_> {
    /// The tables that the user may read, but those of the system.
    pub(crate) fn tables(&self) -> Vec<Rc<Table>> {
        let mut found = Vec::new();
        let sql = crate::Sql::of(self.database);
        sql.speak(self.context);
        let is_mysql = sql.session(self.context.session.id).is_some_and(|session| session.is_mysql);
        let dialect = if is_mysql { Dialect::Mysql } else { Dialect::Postgres };
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
                found.push(Rc::new(table.named_in(self.database, dialect)));
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
            let query = written(view.dialect, &view.query().ok()?);
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
    let index = &table.indexes[at];
    index.spelled.is_none() && index.parts.iter().all(|(field, ..)| table.columns[*field].is_hidden)
}

/// Columns of a table as the catalog counts them: from 1, those that are seen.
fn columns_of(table: &Table) -> impl Iterator<Item = (i64, usize)> + '_ {
    table.visible().zip(1i64..).map(|(at, number)| (number, at))
}

fn column_number(table: &Table, field: usize) -> i64 {
    columns_of(table).find(|(_, at)| *at == field).map_or(0, |(number, _)| number)
}

/// A name as a statement has it.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// True for one literal of text.
fn is_literal(expression: &str) -> bool {
    let inner = expression.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    inner.is_some_and(|inner| !inner.replace("''", "").contains('\''))
}

/// The default of a column as a statement has it.
fn default_of(view: &View<'_>, table: &Table, at: usize) -> Option<String> {
    let named = |sequence: &str| format!("nextval('{}'::regclass)", view.shown(sequence).replace('\'', "''"));
    if let Some(generated) = &table.columns[at].generated {
        return Some(format!("({})", generated.text().1));
    }
    // An identity has no default there.
    if table.columns[at].identity.is_some() {
        return None;
    }
    let sequence = table.space.sequence.borrow();
    let link = sequence.as_ref().filter(|link| link.field_no as usize == at);
    match link {
        Some(link) => Some(named(&link.sequence.def().name)),
        None => {
            let default = table.columns[at].default.clone()?;
            if table.columns[at].ty.base == Base::Enum && default.ends_with('\'') {
                let number = type_of_column(&table.columns[at]);
                let name = name_of_number(view.database, number).unwrap_or_default();
                return Some(format!("{default}::{name}"));
            }
            if let Some(sequence) = sequence_named_by(view.database, &default) {
                return Some(named(&sequence));
            }
            // A literal has its type behind it; a number and a truth value say what they are.
            let ty = table.columns[at].ty;
            let says_type = ty.is_number() || matches!(ty.base, Base::Bool | Base::Any | Base::Scalar);
            Some(match is_literal(&default) && !says_type {
                true => format!("{default}::{}", format_type(types::type_number(ty), -1)),
                false => default,
            })
        }
    }
}

/// The sequence that fills a column.
pub(crate) fn sequence_of_column(database: &Database, table: &Table, at: usize) -> Option<Rc<database::Sequence>> {
    match table.generated.filter(|(field, _)| *field == at) {
        Some((_, id)) => database.catalog.sequence(id),
        None => database.catalog.sequence_by_name(&sequence_named_by(database, table.columns[at].default.as_deref()?)?),
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
    if database.catalog.sequence_by_name(&name).is_some() {
        return Some(name);
    }
    let name = crate::schemas::named(database, crate::schemas::Kind::Relation, &name).ok()?;
    database.catalog.sequence_by_name(&name).map(|_| name)
}

impl<'a> View<'a> {
    /// A name of the catalog as statements have it: behind its schema, unless it is found without.
    pub(crate) fn shown(&self, name: &str) -> String {
        crate::Sql::of(self.database).speak(self.context);
        crate::schemas::shown(self.database, name)
    }

    /// The number and the name of the schema that something of the catalog is in, and the name that it has there.
    fn place<'n>(&self, name: &'n str) -> (i64, String, &'n str) {
        let (schema, local) = crate::schemas::split(self.database, name);
        match schema {
            Some(schema) => (schema.number(), schema.name.clone(), local),
            None => (PUBLIC, "public".to_string(), local),
        }
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
    VIRTUALS.iter().chain(activity::VIRTUALS).chain(absent::VIRTUALS)
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
                    || matches!(column, "enumlabel" | "tableowner" | "viewowner" | "tablespace")
            }
            "information_schema" => ["_name", "_catalog", "_schema"].iter().any(|ending| column.ends_with(ending)),
            _ => false,
        }
    }

    /// True for a column that is an `oid` there: clients have no other type of arrays of numbers that they know by themselves.
    pub(crate) fn is_object_number(&self, column: &str) -> bool {
        let endings = ["id", "namespace", "owner", "collation", "basetype"];
        self.schema == "pg_catalog"
            && column != "pid"
            && (endings.iter().any(|ending| column.ends_with(ending))
                || matches!(column, "typelem" | "typarray" | "rngsubtype" | "reltype" | "relam" | "reltablespace"))
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
        typdefaultbin: Text,
    ] => type_rows;
    pg_catalog.pg_enum [oid: Int8, enumtypid: Int8, enumsortorder: Double, enumlabel: Text] => user_types::enum_rows;
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
    pg_catalog.pg_collation [
        oid: Int8, collname: Text, collnamespace: Int8, collowner: Int8, collprovider: Text, collencoding: Int8, collisdeterministic: Bool,
    ] => collation_rows;
    pg_catalog.pg_am [oid: Int8, amname: Text, amhandler: Text, amtype: Text] => access_method_rows;
    pg_catalog.pg_sequences [
        schemaname: Text, sequencename: Text, sequenceowner: Text, data_type: Text, start_value: Int8, min_value: Int8, max_value: Int8,
        increment_by: Int8, cycle: Bool, cache_size: Int8, last_value: Int8,
    ] => pg_sequences_rows;
    pg_catalog.pg_views [schemaname: Text, viewname: Text, viewowner: Text, definition: Text] => pg_views_rows;
    information_schema.tables [
        table_catalog: Text, table_schema: Text, table_name: Text, table_type: Text, engine: Text, is_insertable_into: Text, is_typed: Text,
        table_rows: Int8, table_collation: Text, table_comment: Text, auto_increment: Int8,
    ] => standard_tables;
    pg_catalog.pg_opclass [
        oid: Int8, opcmethod: Int8, opcname: Text, opcnamespace: Int8, opcowner: Int8, opcfamily: Int8, opcintype: Int8, opcdefault: Bool,
        opckeytype: Int8,
    ] => classes::class_rows;
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
