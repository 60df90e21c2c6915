//! SQL over the rows of the database: text in, rows out.
//!
//! ```text
//! text --> statements --> names, types --> plan --> rows
//!          dialect.rs     bind/            plan.rs  run.rs, scan.rs, change.rs
//! ```
//!
//! Who calls it: `lua` for `box.execute` and `box.prepare`, `protocol` for EXECUTE and PREPARE. It uses `database` as every door does: rows are found by
//! cursors and changed by statements, so rights, triggers, locks and transactions are those that everybody has. It keeps no rows of its own beyond a
//! statement.
//!
//! Invariants:
//! * A statement changes all that it says or nothing.
//! * What a statement keeps in memory is bounded ([`MEMORY_MAX`]), and one that runs long gives others a turn.
//! * A plan is made of a schema and is not run under another one.

mod accounts;
mod advisory;
mod aggregates;
mod alter;
mod angles;
mod arithmetic;
mod array;
mod bind;
mod cast;
mod catalog;
mod chains;
mod change;
mod clock;
mod collations;
mod comments;
mod condition;
mod constraint;
mod control;
mod cursors;
mod ddl;
mod dialect;
mod error;
mod execute;
mod explain;
mod expr;
mod formats;
mod functions;
mod generated;
mod grouping;
mod json;
mod kept;
mod load;
mod measured;
mod merge;
mod metadata;
mod moments;
mod mysql;
mod net;
mod plan;
mod plan_documents;
mod postgres_functions;
mod range;
mod regexes;
mod respell;
mod run;
mod scan;
mod schemas;
mod selectivity;
mod sequence;
mod session;
mod sets;
mod shown_constraints;
mod shown_plans;
mod sort;
mod spans;
mod spelled;
mod spread;
mod statement;
mod system_functions;
mod table;
mod temporary;
mod text;
mod time_functions;
mod types;
mod unique;
mod user_types;
mod value;
mod views;
mod window;
mod written;
mod zones;

pub use advisory::LOCKS_MAX as ADVISORY_LOCKS_MAX;
pub use alter::REWRITTEN_MAX;
pub use array::{ELEMENTS_MAX, elements, parse_array};
pub use bind::{Origin, PARAMETERS_MAX, PartOf, type_of_parameter};
pub use change::Counts;
pub use condition::serve_expressions;
pub use constraint::{WAITING_KEYS_MAX, check_deferrable};
pub use control::{Assignment, Control, Copied, Copy, CopyFormat, Field, Isolation, Lines, Load, Modes, Step};
pub use cursors::{CursorEntry, CursorShown};
pub use dialect::{Dialect, TEXT_MAX};
pub use error::{Body, Condition, Error, Result, mysql_state};
pub use execute::{Answer, Description, PREPARED_MAX, RESULT_MAX, Source};
pub use load::{LoadedRows, Loader};
pub use metadata::Metadata;
pub use moments::{endless, endless_name};
pub use mysql::texts as mysql_texts;
pub use net::{network_of_wire, network_to_wire};
pub use range::{range_of_parts, range_parts};
pub use regexes::{Bounded, Manner, TooLong};
pub use run::{Granted, MEMORY_MAX, ROUNDS_MAX, STATEMENTS_BYTES_MAX};
pub use schemas::{PATH_MAX, SCHEMAS_MAX};
pub use session::{Session, Stop};
pub use statement::{CACHE_MAX, Column, Outcome, Parsed, Prepared, Sql};
pub use temporary::{TEMPORARY_BYTES_MAX, TEMPORARY_TABLES_MAX};
pub use text::{display_as, display_in, offset};
pub use types::{Base, Type};
pub use user_types::VALUES_MAX as ENUM_VALUES_MAX;
pub use value::Value;
pub use views::DEPTH_MAX as VIEW_DEPTH_MAX;
pub use zones::Zone;

/// A column as a session is shown it: some have the name of its database in theirs.
pub fn shown_column<'a>(column: &'a Column, database: &str) -> std::borrow::Cow<'a, Column> {
    match column.name.contains(mysql::variables::DATABASE_MARK) {
        false => std::borrow::Cow::Borrowed(column),
        true => std::borrow::Cow::Owned(Column {
            name: column.name.replace(mysql::variables::DATABASE_MARK, database),
            ..column.clone()
        }),
    }
}

/// Text as a value of a type. Errors: it is none.
pub fn parse_value(dialect: Dialect, text: &str, ty: Type) -> Result<Value> {
    cast::cast(dialect, Value::text(text), ty, cast::Strictness::Explicit)
}
