//! Why a statement was refused: one list of conditions, which every dialect has its own numbers for.

use crate::dialect::Dialect;
use std::fmt;

/// Result of the work on a statement.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! conditions {
    ($($(#[$doc:meta])* $name:ident = $state:literal, $mysql:literal, $tarantool:ident;)*) => {
        /// A condition, as the standard and both dialects have it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Condition { $($(#[$doc])* $name,)* }

        impl Condition {
            /// Its name here.
            fn name(self) -> &'static str {
                match self { $(Condition::$name => stringify!($name),)* }
            }

            fn of_name(name: &str) -> Option<Self> {
                match name { $(stringify!($name) => Some(Condition::$name),)* _ => None }
            }

            /// The five characters of SQLSTATE, as PostgreSQL gives them.
            pub fn sqlstate(self) -> &'static str {
                match self { $(Condition::$name => $state,)* }
            }

            /// MySQL's number.
            pub fn mysql_number(self) -> u16 {
                match self { $(Condition::$name => $mysql,)* }
            }

            /// Tarantool's code.
            pub fn tarantool_code(self) -> database::ErrorCode {
                match self { $(Condition::$name => database::ErrorCode::$tarantool,)* }
            }
        }
    };
}

conditions! {
    /// The text is no statement.
    Syntax = "42601", 1064, SqlParserGeneric;
    /// The text is empty.
    Empty = "42601", 1065, SqlStatementEmpty;
    /// What is asked for is not there.
    Unsupported = "0A000", 1235, SqlParserGeneric;
    /// No such table.
    UndefinedTable = "42P01", 1146, NoSuchSpace;
    /// No such schema.
    UndefinedSchema = "3F000", 1049, NoSuchSpace;
    /// No such column.
    UndefinedColumn = "42703", 1054, SqlCantResolveField;
    /// The name of a column means several.
    AmbiguousColumn = "42702", 1052, SqlParserGeneric;
    /// No such function, or none for these arguments.
    UndefinedFunction = "42883", 1305, NoSuchFunction;
    /// Several functions for these arguments.
    AmbiguousFunction = "42725", 1305, NoSuchFunction;
    /// No such object of another kind.
    UndefinedObject = "42704", 1091, SqlParserGeneric;
    /// A table of that name is there.
    DuplicateTable = "42P07", 1050, SpaceExists;
    /// A column of that name is there.
    DuplicateColumn = "42701", 1060, SpaceFieldIsDuplicate;
    /// A column is given two values.
    ColumnTwice = "42701", 1110, SpaceFieldIsDuplicate;
    /// An alias stands twice in one FROM.
    DuplicateAlias = "42712", 1066, SqlParserGeneric;
    /// An object of that name is there.
    DuplicateObject = "42710", 1061, IndexExistsInSpace;
    /// A user or a role of the name is there.
    DuplicateAccount = "42710", 1396, UserExists;
    /// No such user or role.
    UndefinedAccount = "42704", 1396, NoSuchUser;
    /// A name that is none of its kind.
    InvalidName = "42602", 1210, SqlParserGeneric;
    /// A name that is kept for the system.
    ReservedName = "42939", 1210, SqlParserGeneric;
    /// The definition of a table contradicts itself.
    InvalidTable = "42P16", 1068, CreateSpace;
    /// The types of a column's or an operator's sides do not fit.
    TypeMismatch = "42804", 1366, SqlTypeMismatch;
    /// There is no way from one type to the other.
    CannotCoerce = "42846", 1366, SqlTypeMismatch;
    /// The type of a parameter is not known.
    IndeterminateType = "42P18", 1210, SqlParserGeneric;
    /// An aggregate, a window or a column stands where it may not.
    Grouping = "42803", 1055, SqlParserGeneric;
    /// A window function stands where it may not.
    Windowing = "42P20", 3593, SqlParserGeneric;
    /// Bounds of a window's frame that are none.
    WindowFrame = "22013", 3586, SqlExecute;
    /// A null where none may be.
    NullNotAllowed = "22004", 1138, SqlExecute;
    /// The name of a table means several.
    AmbiguousAlias = "42P09", 1052, SqlParserGeneric;
    /// A number of elements that an array has not.
    SubscriptError = "2202E", 1210, SqlExecute;
    /// Columns of DISTINCT ON and ORDER BY that do not go together.
    InvalidColumnReference = "42P10", 1210, SqlParserGeneric;
    /// A moment beyond all moments.
    DatetimeOverflow = "22008", 1441, SqlExecute;
    /// A power of zero that is not there.
    InvalidPower = "2201F", 1690, SqlExecute;
    /// A part of a text that there is not.
    InvalidSubstring = "22011", 1210, SqlExecute;
    /// Others depend on what is to go.
    Dependents = "2BP01", 1217, DropSpace;
    /// A view that reads itself.
    Recursion = "42P17", 1462, SqlExecute;
    /// `ntile` of no part.
    InvalidNtile = "22014", 1210, SqlExecute;
    /// `nth_value` of no row that there can be.
    InvalidNth = "22016", 1210, SqlExecute;
    /// Several values or rows where one is wanted.
    Cardinality = "21000", 1242, SqlExecute;
    /// Numbers of columns differ.
    ColumnCount = "42601", 1136, SqlParserGeneric;
    /// A number is out of the range of its type.
    NumericOutOfRange = "22003", 1264, SqlExecute;
    /// What an operation gives is out of the range of its type.
    ResultOutOfRange = "22003", 1690, SqlExecute;
    /// A division by zero.
    DivisionByZero = "22012", 1365, SqlExecute;
    /// Text is no value of the type.
    InvalidText = "22P02", 1292, SqlTypeMismatch;
    /// Text is too long for its column.
    TooLong = "22001", 1406, SqlExecute;
    /// Text is no moment.
    InvalidDatetime = "22007", 1292, SqlTypeMismatch;
    /// An argument is one that a function does not take.
    InvalidArgument = "22023", 1210, SqlExecute;
    /// Values that do not fit together.
    DataException = "22000", 1210, SqlExecute;
    /// A regular expression is none.
    InvalidRegex = "2201B", 1139, SqlExecute;
    /// Bytes are no UTF-8.
    InvalidEncoding = "22021", 1366, SqlExecute;
    /// A null where none may be.
    NotNull = "23502", 1048, SqlExecute;
    /// A key is there already.
    UniqueViolation = "23505", 1062, TupleFound;
    /// A CHECK is not fulfilled.
    CheckViolation = "23514", 3819, SqlExecute;
    /// A row that is named is not there, or one would go that is.
    ForeignKeyViolation = "23503", 1452, SqlExecute;
    /// A foreign key that cannot be.
    InvalidForeignKey = "42830", 1822, CreateForeignKey;
    /// Other objects need it.
    DependentObjects = "2BP01", 1451, SqlExecute;
    /// The transaction met another one.
    Serialization = "40001", 1213, TransactionConflict;
    /// Transactions wait for each other.
    Deadlock = "40P01", 1213, TransactionConflict;
    /// A lock did not come in time.
    LockTimeout = "55P03", 1205, Timeout;
    /// The statement took too long or was cancelled.
    Cancelled = "57014", 1317, SqlExecute;
    /// The session was ended by somebody.
    Terminated = "57P01", 1317, SqlExecute;
    /// The user has no right.
    AccessDenied = "42501", 1142, AccessDenied;
    /// Only reading is allowed.
    ReadOnly = "25006", 1290, Readonly;
    /// No such variable.
    UnknownVariable = "42704", 1193, SqlExecute;
    /// A value that a variable cannot have.
    WrongValue = "22023", 1231, SqlExecute;
    /// A value of a type that a variable cannot have.
    WrongType = "22023", 1232, SqlExecute;
    /// A character set that is not spoken.
    UnknownCharset = "22023", 1115, SqlExecute;
    /// Only who administers the server may do it.
    SuperWanted = "42501", 1227, AccessDenied;
    /// There is a database of this name.
    DuplicateDatabase = "42P04", 1007, SqlExecute;
    /// There is a schema of this name.
    DuplicateSchema = "42P06", 1007, SqlExecute;
    /// No value for a column that needs one.
    NoDefault = "23502", 1364, SqlExecute;
    /// No such table among those of a DELETE.
    UnknownTable = "42P01", 1109, SqlExecute;
    /// What is to be changed is no table.
    NotUpdatable = "42809", 1288, SqlExecute;
    /// The object is of another kind than is wanted.
    WrongObject = "42809", 1235, SqlExecute;
    /// ANY and ALL with what is no array.
    NoArray = "42809", 1105, SqlExecute;
    /// A default that its column does not take.
    InvalidDefault = "42P16", 1067, SqlExecute;
    /// A value that a column's type does not have.
    Truncated = "22001", 1265, SqlExecute;
    /// A setting that is as it is.
    Unchangeable = "55P02", 1238, SqlExecute;
    /// No transaction is wanted, and there is one.
    ActiveTransaction = "25001", 1568, SqlExecute;
    /// The transaction has failed; only its end is waited for.
    FailedTransaction = "25P02", 1568, SqlExecute;
    /// No such prepared statement.
    UndefinedStatement = "26000", 1243, SqlExecute;
    /// No such cursor or portal.
    UndefinedCursor = "34000", 1324, SqlExecute;
    /// A prepared statement of that name is there.
    DuplicateStatement = "42P05", 1061, SqlExecute;
    /// A sequence has no more numbers.
    SequenceExhausted = "2200H", 1467, SqlExecute;
    /// A number of a statement's for a column that has numbers of its own only.
    GeneratedAlways = "428C9", 3105, SqlExecute;
    /// A cursor that only goes forward is to go back.
    NotInState = "55000", 1105, SqlExecute;
    /// A cursor or portal of that name is there.
    DuplicateCursor = "42P03", 1061, SqlExecute;
    /// A message of the protocol that is none.
    Protocol = "08P01", 1047, SqlExecute;
    /// Bytes of a binary value that are none.
    InvalidBinary = "22P03", 1366, SqlExecute;
    /// A character that text does not have here.
    Untranslatable = "22P05", 1366, SqlExecute;
    /// A zone that is too far from UTC.
    ZoneDisplacement = "22009", 1298, SqlExecute;
    /// A name of too many bytes.
    NameTooLong = "42622", 1059, SqlExecute;
    /// A line of COPY that is none.
    BadCopy = "22P04", 1366, SqlExecute;
    /// A transaction is wanted, or none.
    TransactionState = "25P01", 1568, SqlExecute;
    /// No such savepoint.
    UndefinedSavepoint = "3B001", 1305, NoSuchSavepoint;
    /// More memory or more of something than a statement may have.
    LimitExceeded = "54000", 1114, SqlExecute;
    /// A function is called with more arguments than any may have.
    TooManyArguments = "54023", 1582, SqlExecute;
    /// All statements have as much memory as they may have together.
    OutOfMemory = "53200", 1041, SqlExecute;
    /// The system has failed.
    System = "58000", 1105, System;
    /// Another error of the database.
    Other = "XX000", 1105, SqlExecute;
}

impl Condition {
    /// The five characters of SQLSTATE, as MySQL gives them.
    pub fn mysql_state(self) -> &'static str {
        mysql_state(self.mysql_number())
    }
}

/// SQLSTATE of a number of MySQL's.
pub fn mysql_state(number: u16) -> &'static str {
    match number {
        1040 | 1047 | 1153 | 1156 => "08S01",
        1044 | 1049 | 1055 | 1061 | 1064 | 1065 | 1066 | 1068 | 1091 | 1115 | 1139 | 1142 | 1193 | 1203 | 1227
        | 1067 | 1110 | 1231 | 1232 | 1235 | 1305 | 1007 => "42000",
        1045 => "28000",
        1046 => "3D000",
        1048 | 1052 | 1062 | 1217 | 1451 | 1452 => "23000",
        1056 | 1059 | 1072 | 1075 | 1083 | 1090 | 1239 | 1286 | 1324 | 1461 | 1553 | 1582 | 1701 | 3057 | 3143
        | 3149 | 3153 | 3154 | 3165 | 3730 => "42000",
        1138 => "22004",
        1050 => "42S01",
        1109 => "42S02",
        1051 | 1146 => "42S02",
        1054 => "42S22",
        1060 => "42S21",
        1136 => "21S01",
        1213 => "40001",
        1222 | 1241 | 1242 => "21000",
        1264 | 1690 => "22003",
        1265 => "01000",
        1292 => "22007",
        1317 => "70100",
        1441 => "22008",
        1792 => "25006",
        3141 | 3158 => "22032",
        1365 => "22012",
        1406 => "22001",
        1568 => "25001",
        1835 => "08S01",
        _ => "HY000",
    }
}

/// An error of a statement.
#[derive(Debug)]
pub struct Error(Box<Body>);

/// What there is to tell of it.
#[derive(Debug)]
pub struct Body {
    /// What it is.
    pub condition: Condition,
    /// What is wrong, in words.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What may help.
    pub hint: Option<String>,
    /// The table that it is about.
    pub table: Option<String>,
    /// The schema of the table, if that is one of a user's.
    pub schema: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// The constraint or index.
    pub constraint: Option<String>,
    /// The line and the column of the text that it is about, from 1 on.
    pub(crate) place: Option<(u64, u64)>,
    /// The character of the text that it is about, from 1 on.
    pub position: Option<usize>,
    /// MySQL's number, where it is not that of the condition.
    pub mysql: Option<u16>,
    /// The error of the database that it comes from.
    pub source: Option<database::Error>,
    /// Tarantool's code, where it is not that of the condition.
    pub tarantool: Option<database::ErrorCode>,
}

/// Bytes of the text of an error: values stand in it that may be as long as those of rows.
const MESSAGE_MAX: usize = 64 << 10;

impl Error {
    /// An error with a text, of which [`MESSAGE_MAX`] bytes are kept.
    pub fn new(condition: Condition, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_MAX {
            message.truncate(message.floor_char_boundary(MESSAGE_MAX));
            message.push_str("...");
        }
        Error(Box::new(Body {
            condition,
            message,
            detail: None,
            hint: None,
            table: None,
            schema: None,
            column: None,
            constraint: None,
            place: None,
            position: None,
            mysql: None,
            source: None,
            tarantool: None,
        }))
    }

    /// The same, and what may help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same, and more about it.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// The same about a place in the text of the statement.
    #[must_use]
    pub(crate) fn at(mut self, place: sqlparser::tokenizer::Location) -> Self {
        if place.line > 0 {
            self.0.place.get_or_insert((place.line, place.column));
        }
        self
    }

    /// The same with the number of the character that its place has in the text.
    #[must_use]
    pub fn located(mut self, text: &str) -> Self {
        if let (Some((line, column)), None) = (self.0.place, self.0.position) {
            let (line, column) = (line as usize, column as usize);
            let before: usize = text.split('\n').take(line - 1).map(|line| line.chars().count() + 1).sum();
            self.0.position = Some(before + column);
        }
        self
    }

    /// The same with another code of Tarantool's.
    #[must_use]
    pub(crate) fn tarantool(mut self, code: database::ErrorCode) -> Self {
        self.0.tarantool = Some(code);
        self
    }

    /// The same with another number of MySQL's.
    #[must_use]
    pub fn mysql(mut self, number: u16) -> Self {
        self.0.mysql = Some(number);
        self
    }

    /// MySQL's number.
    pub fn mysql_number(&self) -> u16 {
        self.0.mysql.unwrap_or_else(|| self.0.condition.mysql_number())
    }

    /// The same about a table, one of its columns, and a constraint or index.
    #[must_use]
    pub fn about(mut self, table: &str, column: Option<&str>, constraint: Option<&str>) -> Self {
        self.0.table = Some(table.to_string());
        self.0.column = column.map(str::to_string);
        self.0.constraint = constraint.map(str::to_string);
        self
    }

    /// The same about a table of a schema of a user's.
    pub(crate) fn of_schema(mut self, schema: &str, table: &str) -> Self {
        (self.0.schema, self.0.table) = (Some(schema.to_string()), Some(table.to_string()));
        self
    }

    /// An error of the database in the words of a dialect.
    pub(crate) fn of_database(source: database::Error, dialect: Dialect) -> Self {
        let error = Error::from(source);
        if dialect == Dialect::Tarantool {
            return error;
        }
        if matches!(error.condition(), Condition::CheckViolation | Condition::ForeignKeyViolation) {
            return error.of_constraint(dialect);
        }
        if let Some(null) = error.of_null(dialect) {
            return null;
        }
        if error.condition() != Condition::UniqueViolation {
            return error;
        }
        let message = error.0.message.clone();
        let mut quoted = message.split(['\'', '"']).skip(1).step_by(2);
        let (index, table) = (quoted.next().unwrap_or_default(), quoted.next().unwrap_or_default());
        let words = match dialect {
            Dialect::Mysql => format!("Duplicate entry for key '{table}.{index}'"),
            _ => format!("duplicate key value violates unique constraint \"{index}\""),
        };
        let mut error = error.about(table, None, Some(index));
        error.0.message = words;
        error
    }

    /// A foreign key has put null where none may be. None: it is another error.
    fn of_null(&self, dialect: Dialect) -> Option<Self> {
        let source = self.0.source.as_ref()?;
        let field = |wanted: &str| {
            let fields = &source.body().fields;
            fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone())
        };
        let (_, table, column) = (field("set_null_by")?, field("space")?, field("field")?);
        let words = match dialect {
            Dialect::Mysql => format!("Column '{column}' cannot be null"),
            _ => format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"),
        };
        let mut error = Error::new(Condition::NotNull, words).about(&table, Some(&column), None);
        error.0.source = Some(source.clone());
        Some(error)
    }

    /// A constraint that is not fulfilled, in the words of a dialect.
    fn of_constraint(self, dialect: Dialect) -> Self {
        let Some(source) = &self.0.source else { return self };
        let field = |wanted: &str| {
            let fields = &source.body().fields;
            fields.iter().find(|(name, _)| *name == wanted).map_or_else(String::new, |(_, value)| value.clone())
        };
        let (table, mut name, child) = (field("space"), field("name"), field("child"));
        let too_deep = Some(field("depth")).filter(|depth| !depth.is_empty());
        let too_deep = too_deep.map(|depth| format!("Changes follow from each other more than {depth} times."));
        // The condition of a domain says itself what is wrong, in PostgreSQL's words.
        if !field("condition").is_empty() {
            if dialect != Dialect::Mysql {
                return self;
            }
            name = field("constraint");
        }
        let is_check = self.condition() == Condition::CheckViolation;
        let is_parent = source.is(database::ErrorCode::ForeignKeyIntegrity);
        let words = match (dialect, is_check, is_parent) {
            (Dialect::Mysql, true, _) => format!("Check constraint '{name}' is violated."),
            (Dialect::Mysql, _, true) => format!(
                "Cannot delete or update a parent row: a foreign key constraint fails (`{child}`, CONSTRAINT `{name}`)"
            ),
            (Dialect::Mysql, ..) => format!(
                "Cannot add or update a child row: a foreign key constraint fails (`{table}`, CONSTRAINT `{name}`)"
            ),
            (_, true, _) => format!("new row for relation \"{table}\" violates check constraint \"{name}\""),
            (_, _, true) => format!(
                "update or delete on table \"{table}\" violates foreign key constraint \"{name}\" on table \"{child}\""
            ),
            _ => format!("insert or update on table \"{table}\" violates foreign key constraint \"{name}\""),
        };
        let about = if is_parent && dialect != Dialect::Mysql { child.clone() } else { table.clone() };
        let mut error = self.about(&about, None, Some(&name));
        if is_parent {
            error.0.mysql = Some(1451);
        }
        error.0.message = words;
        match too_deep {
            Some(why) if dialect == Dialect::Mysql => error.0.message = format!("{}. {why}", error.0.message),
            Some(why) => error = error.detail(why),
            None => {}
        }
        error
    }

    /// The same in the words of a dialect, if it comes from the database as it is.
    pub(crate) fn in_words_of(self, dialect: Dialect) -> Self {
        let is_raw = self.0.table.is_none() && self.0.constraint.is_none();
        match self.0.source.is_some() && is_raw && dialect != Dialect::Tarantool {
            true if matches!(self.condition(), Condition::CheckViolation | Condition::ForeignKeyViolation) => {
                self.of_constraint(dialect)
            }
            _ => self,
        }
    }

    /// The same in other words, if the dialect is MySQL's.
    #[must_use]
    pub(crate) fn words_of_mysql(mut self, dialect: Dialect, words: String) -> Self {
        if dialect == Dialect::Mysql {
            self.0.message = words;
        }
        self
    }

    /// The same with its texts put in other words.
    #[must_use]
    pub(crate) fn reworded(mut self, change: impl Fn(&str) -> String) -> Self {
        self.0.message = change(&self.0.message);
        for text in [&mut self.0.detail, &mut self.0.hint].into_iter().flatten() {
            *text = change(text);
        }
        self
    }

    /// Everything there is to tell.
    pub fn body(&self) -> &Body {
        &self.0
    }

    /// What it is.
    pub fn condition(&self) -> Condition {
        self.0.condition
    }

    /// What is not there (yet).
    pub(crate) fn unsupported(what: impl fmt::Display) -> Self {
        let what = crate::dialect::without_numbers(&what.to_string());
        Error::new(Condition::Unsupported, format!("{what} is not supported"))
    }

    /// As an error of the database that is the same one again when it comes back through it: of expressions that it asks for.
    pub(crate) fn through_database(self) -> database::Error {
        let (name, mysql) = (self.0.condition.name(), self.mysql_number());
        let (detail, constraint) = (self.0.detail.clone(), self.0.constraint.clone());
        let mut error = self.into_database().with("condition", name).with("number", mysql);
        for (key, said) in [("detail", detail), ("constraint", constraint)] {
            if let Some(said) = said {
                error = error.with(key, said);
            }
        }
        error
    }

    /// As an error of Tarantool's protocol.
    pub fn into_database(self) -> database::Error {
        match self.0.source {
            Some(source) => source,
            None => {
                let code = self.0.tarantool.unwrap_or_else(|| self.0.condition.tarantool_code());
                let message = match code {
                    database::ErrorCode::SqlExecute => format!("Failed to execute SQL statement: {}", self.0.message),
                    _ => self.0.message,
                };
                database::Error::raw(code as u32, database::ErrorKind::Client, message)
            }
        }
    }
}

impl From<database::Error> for Error {
    fn from(source: database::Error) -> Self {
        use database::ErrorCode as Code;
        let of_code = [
            (Code::TupleFound, Condition::UniqueViolation),
            (Code::TupleConstraintFailed, Condition::CheckViolation),
            (Code::FieldConstraintFailed, Condition::CheckViolation),
            (Code::FieldForeignKeyFailed, Condition::ForeignKeyViolation),
            (Code::ComplexForeignKeyFailed, Condition::ForeignKeyViolation),
            (Code::ForeignKeyIntegrity, Condition::ForeignKeyViolation),
            (Code::AccessDenied, Condition::AccessDenied),
            (Code::TransactionConflict, Condition::Serialization),
            (Code::Timeout, Condition::LockTimeout),
            (Code::NoSuchSpace, Condition::UndefinedTable),
            (Code::SpaceExists, Condition::DuplicateTable),
            (Code::IndexExists, Condition::DuplicateObject),
            (Code::UserExists, Condition::DuplicateAccount),
            (Code::RoleExists, Condition::DuplicateAccount),
            (Code::NoSuchUser, Condition::UndefinedAccount),
            (Code::NoSuchRole, Condition::UndefinedAccount),
            (Code::Readonly, Condition::ReadOnly),
            (Code::NoSuchSavepoint, Condition::UndefinedSavepoint),
            (Code::System, Condition::System),
            (Code::WalIo, Condition::System),
            (Code::MemoryIssue, Condition::LimitExceeded),
            (Code::MemtxMaxTupleSize, Condition::LimitExceeded),
            (Code::VinylMaxTupleSize, Condition::LimitExceeded),
            (Code::SequenceOverflow, Condition::SequenceExhausted),
        ];
        let field = |wanted: &str| {
            let fields = &source.body().fields;
            fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone())
        };
        if let Some(condition) = field("condition").and_then(|name| Condition::of_name(&name)) {
            let message = source.to_string();
            let message = message.strip_prefix("Failed to execute SQL statement: ").unwrap_or(&message);
            let mut error = Error::new(condition, message);
            error.0.mysql = field("number").and_then(|number| number.parse().ok());
            error.0.detail = field("detail");
            error.0.constraint = field("constraint");
            error.0.source = Some(source);
            return error;
        }
        let known = of_code.iter().find(|(code, _)| source.is(*code));
        let condition = known.map_or(Condition::Other, |(_, condition)| *condition);
        let message = match condition {
            Condition::LockTimeout => "canceling statement due to lock timeout".to_string(),
            _ => source.to_string(),
        };
        let mut error = if database::is_deadlock(&source) {
            Error::new(Condition::Deadlock, "deadlock detected").detail(message)
        } else if database::is_cancelled(&source) {
            Error::new(Condition::Cancelled, "canceling statement due to user request")
        } else if database::is_out_of_time(&source) {
            Error::new(Condition::Cancelled, "canceling statement due to statement timeout")
        } else {
            Error::new(condition, message)
        };
        error.0.source = Some(source);
        error
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}
