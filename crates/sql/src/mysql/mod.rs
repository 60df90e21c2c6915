//! What MySQL's dialect has of its own.
//!
//! ```text
//! text.rs        a client's bytes -> texts of statements
//! words.rs       the words of a statement, read one after the other
//! statements.rs  statements that MySQL alone has
//! set.rs         SET in all its forms
//! show.rs        SHOW as queries over information_schema
//! load.rs        LOAD DATA LOCAL
//! variables.rs   @@system and @user variables
//! schema.rs      information_schema as MySQL has it
//! assign.rs      values on their way into columns, where it is strict and where not
//! functions.rs   functions of one row
//! moments.rs     days and moments: formats, parts, spans
//! ```

pub(crate) mod assign;
pub(crate) mod functions;
mod load;
pub(crate) mod moments;
pub(crate) mod schema;
mod set;
pub(crate) mod show;
pub(crate) mod statements;
pub(crate) mod text;
pub(crate) mod times;
pub(crate) mod variables;
mod words;

pub(crate) use statements::{Said, own};
pub use text::statements as texts;

/// Which of our collations one of MySQL's is; none: bytes are compared.
pub(crate) fn collation_name(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    match () {
        () if lower.ends_with("_bin") || lower == "binary" => None,
        () if lower.ends_with("_as_cs") || lower.ends_with("_cs") => Some("unicode"),
        () => Some("unicode_ci"),
    }
}
