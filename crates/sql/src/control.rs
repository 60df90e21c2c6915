//! Statements that are about the session and not about rows: whoever holds the session carries them out.

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use crate::written::written;
use database::{Context, Database};
use sqlparser::ast::{self, Statement};

/// How far a transaction is kept apart from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what is committed when it begins; rows that are changed are locked.
    ReadCommitted,
    /// As if transactions ran one after the other; one that has met another one fails.
    Serializable,
}

/// What a transaction is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// As said; none: as the session has it.
    pub isolation: Option<Isolation>,
    /// What was said: a level may be kept by a stricter one.
    pub level: Option<&'static str>,
    /// True if it may not write.
    pub is_read_only: Option<bool>,
}

/// A statement about the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Opens a transaction.
    Begin(Modes),
    /// Ends it, and begins another one like it.
    Commit {
        /// `AND CHAIN`.
        is_chained: bool,
    },
    /// Takes it back, and begins another one like it.
    Rollback {
        /// `AND CHAIN`.
        is_chained: bool,
    },
    /// What the open transaction is, or those of the session.
    SetTransaction {
        /// What is said.
        modes: Modes,
        /// `SET SESSION CHARACTERISTICS`.
        is_session: bool,
    },
    /// A setting gets a value; none: the one that it had when the session began.
    Set {
        /// Its name, in small letters.
        name: String,
        /// The value, as text.
        value: Option<String>,
        /// Until the end of the transaction.
        is_local: bool,
    },
    /// Asks for a setting; none: for all.
    Show(Option<String>),
    /// Forgets a prepared statement; none: all.
    Deallocate(Option<String>),
    /// Prepares a statement under a name.
    Prepare {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
        /// Types of its parameters.
        types: Vec<crate::Type>,
    },
    /// Runs such a statement.
    Execute {
        /// Its name.
        name: String,
        /// A query for the values of its parameters; none: it has no parameters.
        values: Option<String>,
    },
    /// Forgets what the session keeps.
    Discard,
    /// Rows from the client, or to it.
    Copy(Box<Copy>),
    /// Rows of a file of the client's.
    Load(Box<Load>),
    /// Keeps the rows of a query under a name.
    Declare {
        /// The name.
        name: String,
        /// The query.
        query: Box<ast::Query>,
        /// The same, to be prepared.
        text: String,
        /// The rows outlive the transaction.
        is_held: bool,
        /// Nobody goes back in them.
        is_forward_only: bool,
        /// The simple protocol gives them in binary, too.
        is_binary: bool,
    },
    /// Goes in such rows, and gives those that it passes.
    Fetch {
        /// The name.
        name: String,
        /// Where it goes.
        step: Step,
        /// It gives none.
        is_move: bool,
    },
    /// Forgets such rows; none: all.
    Close(Option<String>),
    /// Wants messages of a channel.
    Listen(String),
    /// Wants them no more; none: those of no channel.
    Unlisten(Option<String>),
    /// Sends a message.
    Notify {
        /// The channel.
        channel: String,
        /// The message.
        payload: String,
    },
    /// Variables of MySQL's dialect get values: see [`Sql::assign`](crate::Sql::assign).
    Assign(Vec<Assignment>),
    /// Names the database.
    Use(String),
    /// Ends a session, or what it does.
    Kill {
        /// The number of the session.
        number: u32,
        /// Only what it does now.
        is_query: bool,
    },
    /// Prepares under a name what an expression gives.
    PrepareFrom {
        /// The name.
        name: String,
        /// Gives the text.
        text: Box<ast::Expr>,
    },
    /// Runs such a statement with values.
    ExecuteUsing {
        /// The name.
        name: String,
        /// They give the values of its parameters.
        values: Vec<ast::Expr>,
    },
    /// Has nothing to do here: what it was.
    Nothing(&'static str),
    /// SET CONSTRAINTS.
    DeferKeys {
        /// Of which constraints; none: of all.
        names: Option<Vec<String>>,
        /// They wait for the end of the transaction.
        waits: bool,
    },
}

/// LOAD DATA LOCAL of MySQL's dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The file, as its client is asked for it.
    pub file: String,
    /// How its lines become rows.
    pub lines: Lines,
    /// What each field of a line is for.
    pub fields: Vec<Field>,
    /// The names of the columns, if none are said: those of the table are asked for.
    pub table: String,
    /// The beginning of the INSERT, up to the table.
    pub verb: &'static str,
    /// Columns that get an expression: the name, the expression with `?` for fields, and which fields those are, by the names of variables.
    pub sets: Vec<(String, String, Vec<String>)>,
}

/// What a field of a line of [`Load`] is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A column.
    Column(String),
    /// A variable that expressions read.
    Variable(String),
}

/// How lines and fields of [`Load`] are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Stands between fields.
    pub between: Vec<u8>,
    /// Stands around fields.
    pub quote: Option<u8>,
    /// Stands before what is not itself.
    pub escape: Option<u8>,
    /// What is before it in a line is passed over, and lines without it.
    pub start: Vec<u8>,
    /// Ends a line.
    pub end: Vec<u8>,
    /// Lines at the beginning that are passed over.
    pub passed_over: u64,
}

/// Where a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Over so many rows, back if it is negative; `i64::MAX` and its negative: all.
    Forward(i64),
    /// To a row, counted from the end if it is negative; 0: before the first one.
    Absolute(i64),
    /// To the row that is so far away.
    Relative(i64),
}

/// A variable, and what gives its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub(crate) target: crate::mysql::variables::Target,
    /// None: what it was at the beginning.
    pub(crate) value: Option<ast::Expr>,
}

/// How rows of COPY are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFormat {
    /// Lines of columns with `\` before what is not itself.
    Text,
    /// Lines of columns within quotes.
    Csv,
    /// PostgreSQL's binary form.
    Binary,
}

/// What COPY is of.
#[derive(Clone, Debug, PartialEq)]
pub enum Copied {
    /// The rows of a query.
    Query(String),
    /// Some columns of a table; none: those that are not generated.
    Table(ast::ObjectName, Vec<ast::Ident>),
}

/// COPY.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// From the client; else to it.
    pub is_from: bool,
    /// Where rows come from or go.
    pub rows: Copied,
    /// How rows are written.
    pub format: CopyFormat,
    /// Stands between columns.
    pub delimiter: u8,
    /// What a null is written as.
    pub null: String,
    /// The first line has the names of the columns.
    pub has_header: bool,
    /// Stands around columns of CSV, and before a quote within one.
    pub quote: (u8, u8),
    /// Columns whose values always stand in quotes, are never read as null, and are null in quotes as well: FORCE QUOTE, NOT NULL, NULL.
    pub forced: [Vec<String>; 3],
}

/// Extensions whose functions are always there, as far as programs use them by themselves: `digest`, `gen_random_uuid`, `uuid_generate_v4`.
const EXTENSIONS: [&str; 3] = ["plpgsql", "pgcrypto", "uuid-ossp"];

/// The statement about the session that this is. None: it is another one. Errors: a form that is not known.
pub(crate) fn of(database: &Database, dialect: Dialect, statement: &Statement) -> Result<Option<Control>> {
    Ok(Some(match statement {
        Statement::StartTransaction { modes, .. } => Control::Begin(modes_of(modes)),
        Statement::Commit { chain, .. } => Control::Commit { is_chained: *chain },
        Statement::Rollback { chain, savepoint: None } => Control::Rollback { is_chained: *chain },
        Statement::Set(set) => set_of(dialect, set)?,
        Statement::Reset(reset) => match &reset.reset {
            ast::Reset::SessionAuthorization => {
                Control::Set { name: "session_authorization".to_string(), value: None, is_local: false }
            }
            ast::Reset::ALL => Control::Set { name: "all".to_string(), value: None, is_local: false },
            ast::Reset::ConfigurationParameter(name) => {
                Control::Set { name: name.to_string().to_lowercase(), value: None, is_local: false }
            }
        },
        Statement::ShowVariable { variable } => {
            let words: Vec<String> = variable.iter().map(|word| word.value.to_lowercase()).collect();
            match words.join(" ").as_str() {
                "all" => Control::Show(None),
                "transaction isolation level" => Control::Show(Some("transaction_isolation".to_string())),
                "time zone" => Control::Show(Some("timezone".to_string())),
                "session authorization" => Control::Show(Some("session_authorization".to_string())),
                _ => Control::Show(Some(words.join("."))),
            }
        }
        Statement::Discard { .. } => Control::Discard,
        Statement::Deallocate { name, .. } => {
            match name.value.eq_ignore_ascii_case("all") && name.quote_style.is_none() {
                true => Control::Deallocate(None),
                false => Control::Deallocate(Some(dialect.fold(name))),
            }
        }
        Statement::Prepare { name, data_types, statement } => {
            let named = data_types.iter().map(|declared| crate::user_types::resolve(database, dialect, declared));
            let types = named.map(|named| Ok(named?.of_parameter()));
            Control::Prepare {
                name: dialect.fold(name),
                text: written(dialect, statement),
                types: types.collect::<Result<_>>()?,
            }
        }
        Statement::Execute { name: Some(name), parameters, .. } => {
            let values: Vec<String> = parameters.iter().map(|value| written(dialect, value)).collect();
            let values = (!values.is_empty()).then(|| format!("SELECT {}", values.join(", ")));
            Control::Execute { name: dialect.object_name(name)?, values }
        }
        Statement::Copy { source, to, target, options, legacy_options, .. } => {
            Control::Copy(Box::new(copy_of(source, *to, target, options, legacy_options)?))
        }
        Statement::Declare { stmts, .. } => match stmts.as_slice() {
            [ast::Declare { names, for_query: Some(query), hold, scroll, binary, .. }] if names.len() == 1 => {
                Control::Declare {
                    name: dialect.fold(&names[0]),
                    text: written(dialect, &**query),
                    query: query.clone(),
                    is_held: *hold == Some(true),
                    is_forward_only: *scroll == Some(false),
                    is_binary: *binary == Some(true),
                }
            }
            _ => return Err(Error::new(Condition::Syntax, "syntax error: DECLARE name CURSOR FOR query")),
        },
        Statement::Close { cursor } => Control::Close(match cursor {
            ast::CloseCursor::All => None,
            ast::CloseCursor::Specific { name } => Some(dialect.fold(name)),
        }),
        Statement::LISTEN { channel } => Control::Listen(dialect.fold(channel)),
        Statement::UNLISTEN { channel } if channel.value == "*" => Control::Unlisten(None),
        Statement::UNLISTEN { channel } => Control::Unlisten(Some(dialect.fold(channel))),
        Statement::NOTIFY { channel, payload } => {
            Control::Notify { channel: dialect.fold(channel), payload: payload.clone().unwrap_or_default() }
        }
        Statement::Vacuum(vacuum) => {
            let name = vacuum.table_name.as_ref().and_then(|name| name.0.first()?.as_ident());
            let other = name.and_then(|name| crate::dialect::idle_tag(&name.value));
            Control::Nothing(other.unwrap_or("VACUUM"))
        }
        Statement::CreateExtension(extension) => {
            let name = dialect.fold(&extension.name);
            if !EXTENSIONS.contains(&name.as_str()) {
                return Err(Error::new(Condition::Unsupported, format!("extension \"{name}\" is not available")));
            }
            Control::Nothing("CREATE EXTENSION")
        }
        Statement::DropExtension(extensions) => {
            let names = extensions.names.iter().map(|name| dialect.fold(name));
            match names.into_iter().find(|name| !EXTENSIONS.contains(&name.as_str())) {
                Some(name) if !extensions.if_exists => {
                    let what = format!("extension \"{name}\" does not exist");
                    return Err(Error::new(Condition::UndefinedObject, what));
                }
                _ => Control::Nothing("DROP EXTENSION"),
            }
        }
        Statement::CreateDatabase { db_name, .. } => {
            let what = format!("database \"{}\" already exists", dialect.object_name(db_name)?);
            let hint = "There is one database, and it answers to every name.";
            return Err(Error::new(Condition::DuplicateDatabase, what).hint(hint));
        }
        Statement::CreateSchema { schema_name: ast::SchemaName::Simple(name), if_not_exists, .. }
            if dialect.object_name(name)? == "public" =>
        {
            match if_not_exists {
                true => Control::Nothing("CREATE SCHEMA"),
                false => {
                    return Err(Error::new(Condition::DuplicateSchema, "schema \"public\" already exists"));
                }
            }
        }
        Statement::Analyze(_) => Control::Nothing("ANALYZE"),
        Statement::Lock(_) => Control::Nothing("LOCK TABLE"),
        Statement::Comment {
            object_type:
                ast::CommentObject::Table
                | ast::CommentObject::Column
                | ast::CommentObject::View
                | ast::CommentObject::Index
                | ast::CommentObject::Sequence
                | ast::CommentObject::Type
                | ast::CommentObject::Domain
                | ast::CommentObject::Schema,
            ..
        } => return Ok(None),
        Statement::Comment { object_type: ast::CommentObject::Collation, object_name, .. }
            if object_name.0.len() > 1 && object_name.to_string().contains(crate::comments::CONSTRAINT) =>
        {
            return Ok(None);
        }
        Statement::Comment { .. } => Control::Nothing("COMMENT"),
        _ => return Ok(None),
    }))
}

/// What the list of modes says.
fn modes_of(modes: &[ast::TransactionMode]) -> Modes {
    let mut found = Modes::default();
    for mode in modes {
        match mode {
            ast::TransactionMode::AccessMode(mode) => {
                found.is_read_only = Some(*mode == ast::TransactionAccessMode::ReadOnly);
            }
            ast::TransactionMode::IsolationLevel(level) => {
                let (isolation, name) = match level {
                    ast::TransactionIsolationLevel::ReadUncommitted => (Isolation::ReadCommitted, "read uncommitted"),
                    ast::TransactionIsolationLevel::ReadCommitted => (Isolation::ReadCommitted, "read committed"),
                    ast::TransactionIsolationLevel::RepeatableRead => (Isolation::Serializable, "repeatable read"),
                    _ => (Isolation::Serializable, "serializable"),
                };
                (found.isolation, found.level) = (Some(isolation), Some(name));
            }
        }
    }
    found
}

fn set_of(dialect: Dialect, set: &ast::Set) -> Result<Control> {
    Ok(match set {
        ast::Set::SingleAssignment { variable, values, .. } if matches!(variable.0.as_slice(), [name] if name.as_ident().is_some_and(|name| name.value == crate::dialect::SET_CONSTRAINTS)) =>
        {
            let mut words = values.iter().map(value_text);
            let waits = words.next().is_some_and(|word| word == "deferred");
            let names: Vec<String> = words.collect();
            Control::DeferKeys { names: (!names.is_empty()).then_some(names), waits }
        }
        ast::Set::SingleAssignment { scope, variable, values, .. } => {
            let is_local = matches!(scope, Some(ast::ContextModifier::Local));
            let name = variable.to_string().to_lowercase();
            let values: Vec<String> = values.iter().map(value_text).collect();
            let is_default = matches!(values.as_slice(), [only] if only.eq_ignore_ascii_case("default"));
            Control::Set { name, value: (!is_default).then(|| values.join(", ")), is_local }
        }
        ast::Set::SetTransaction { modes, session, .. } => {
            Control::SetTransaction { modes: modes_of(modes), is_session: *session }
        }
        ast::Set::SetTimeZone { local, value } => {
            let is_distance = matches!(value, ast::Expr::Interval(_));
            let value = value_text(value);
            let value = if is_distance { format!("INTERVAL '{}'", value.trim_matches('\'')) } else { value };
            let is_default = value.eq_ignore_ascii_case("default") || value.eq_ignore_ascii_case("local");
            Control::Set { name: "timezone".to_string(), value: (!is_default).then_some(value), is_local: *local }
        }
        ast::Set::SetNames { charset_name, .. } => Control::Set {
            name: "client_encoding".to_string(),
            value: Some(charset_name.value.clone()),
            is_local: false,
        },
        ast::Set::SetRole { role_name, .. } => {
            let value = role_name.as_ref().map(|name| dialect.fold(name));
            Control::Set { name: "role".to_string(), value, is_local: false }
        }
        other => return Err(Error::unsupported(format!("'{other}'"))),
    })
}

/// A value of a setting as text.
fn value_text(value: &ast::Expr) -> String {
    match value {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        ast::Expr::Identifier(ident) => ident.value.clone(),
        // SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE.
        ast::Expr::Interval(interval) => value_text(&interval.value),
        other => other.to_string(),
    }
}

fn copy_of(
    source: &ast::CopySource,
    is_to: bool,
    target: &ast::CopyTarget,
    options: &[ast::CopyOption],
    legacy: &[ast::CopyLegacyOption],
) -> Result<Copy> {
    if !matches!(target, ast::CopyTarget::Stdin | ast::CopyTarget::Stdout) {
        let what = "COPY reads and writes no files and programs of the server";
        return Err(Error::new(Condition::AccessDenied, what)
            .hint("COPY ... FROM STDIN and TO STDOUT go to the client; so does psql's \\copy."));
    }
    let rows = match source {
        ast::CopySource::Query(_) if !is_to => return Err(Error::new(Condition::Syntax, "COPY FROM takes a table")),
        ast::CopySource::Query(query) => Copied::Query(written(Dialect::Postgres, query)),
        ast::CopySource::Table { table_name, columns } => Copied::Table(table_name.clone(), columns.clone()),
    };
    let mut format = CopyFormat::Text;
    let mut forced: [Vec<String>; 3] = Default::default();
    let names =
        |columns: &[ast::Ident]| -> Vec<String> { columns.iter().map(|name| Dialect::Postgres.fold(name)).collect() };
    let (mut delimiter, mut null, mut has_header, mut quote, mut escape) = (None, None, false, '"', None);
    for option in options {
        match option {
            ast::CopyOption::Format(name) => {
                format = match name.value.to_lowercase().as_str() {
                    "text" => CopyFormat::Text,
                    "csv" => CopyFormat::Csv,
                    "binary" => CopyFormat::Binary,
                    other => {
                        let what = format!("COPY format \"{other}\" not recognized");
                        return Err(Error::new(Condition::InvalidArgument, what));
                    }
                }
            }
            ast::CopyOption::Delimiter(wanted) => delimiter = Some(*wanted),
            ast::CopyOption::Null(text) => null = Some(text.clone()),
            ast::CopyOption::Header(is_there) => has_header = *is_there,
            ast::CopyOption::Quote(wanted) => quote = *wanted,
            ast::CopyOption::Escape(wanted) => escape = Some(*wanted),
            ast::CopyOption::ForceQuote(columns) => forced[0] = names(columns),
            ast::CopyOption::ForceNotNull(columns) => forced[1] = names(columns),
            ast::CopyOption::ForceNull(columns) => forced[2] = names(columns),
            ast::CopyOption::Freeze(_) | ast::CopyOption::Encoding(_) => {}
        }
    }
    for option in legacy {
        match option {
            ast::CopyLegacyOption::Binary => format = CopyFormat::Binary,
            ast::CopyLegacyOption::Delimiter(wanted) => delimiter = Some(*wanted),
            ast::CopyLegacyOption::Null(text) => null = Some(text.clone()),
            ast::CopyLegacyOption::Header => has_header = true,
            ast::CopyLegacyOption::Csv(options) => {
                format = CopyFormat::Csv;
                for option in options {
                    match option {
                        ast::CopyLegacyCsvOption::Header => has_header = true,
                        ast::CopyLegacyCsvOption::Quote(wanted) => quote = *wanted,
                        ast::CopyLegacyCsvOption::Escape(wanted) => escape = Some(*wanted),
                        ast::CopyLegacyCsvOption::ForceQuote(columns) => forced[0] = names(columns),
                        ast::CopyLegacyCsvOption::ForceNotNull(columns) => forced[1] = names(columns),
                    }
                }
            }
            other => return Err(Error::unsupported(format!("COPY option '{other}'"))),
        }
    }
    let byte = |wanted: char, what: &str| {
        u8::try_from(wanted).ok().filter(u8::is_ascii).ok_or_else(|| {
            Error::new(Condition::InvalidArgument, format!("COPY {what} must be a single one-byte character"))
        })
    };
    let is_csv = format == CopyFormat::Csv;
    Ok(Copy {
        is_from: !is_to,
        rows,
        format,
        delimiter: byte(delimiter.unwrap_or(if is_csv { ',' } else { '\t' }), "delimiter")?,
        null: null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_string() }),
        has_header,
        quote: (byte(quote, "quote")?, byte(escape.unwrap_or(quote), "escape")?),
        forced,
    })
}

impl Copied {
    /// A query for the rows, or for rows like those that come, and the beginning of an INSERT for these. Errors: a generated column is named.
    pub fn texts(&self, database: &Database, context: &Context) -> Result<(String, String)> {
        let (name, columns) = match self {
            Copied::Query(text) => return Ok((text.clone(), String::new())),
            Copied::Table(name, columns) => (name, columns),
        };
        crate::Sql::of(database).speak(context);
        // What is not there is refused where its rows are asked for.
        let found =
            Dialect::Postgres.object_name(name).and_then(|name| Table::find(database, Dialect::Postgres, &name));
        let mut listed = columns.clone();
        if let Some(table) = found.ok().filter(|table| table.has_generated()) {
            let is_generated = |at: usize| table.columns[at].generated.is_some();
            for column in columns {
                let column = Dialect::Postgres.fold(column);
                if table.column(Dialect::Postgres, &column).is_some_and(is_generated) {
                    let what = format!("column \"{column}\" is a generated column");
                    let error = Error::new(Condition::InvalidColumnReference, what);
                    return Err(error.detail("Generated columns cannot be used in COPY."));
                }
            }
            if columns.is_empty() {
                let names = table.visible().filter(|at| !is_generated(*at)).map(|at| &table.columns[at].name);
                listed = names.map(|name| ast::Ident::with_quote('"', name)).collect();
            }
        }
        let listed = listed.iter().map(|name| written(Dialect::Postgres, name)).collect::<Vec<_>>().join(", ");
        let (shown, given) = match listed.is_empty() {
            true => ("*", String::new()),
            false => (listed.as_str(), format!(" ({listed})")),
        };
        let name = written(Dialect::Postgres, name);
        Ok((format!("SELECT {shown} FROM {name}"), format!("INSERT INTO {name}{given} OVERRIDING SYSTEM VALUE")))
    }
}
