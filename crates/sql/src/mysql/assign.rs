//! Values on their way into columns: what MySQL refuses where it is strict, and what it makes of them where it is not.

use crate::cast::{Strictness, cast, leading_double};
use crate::dialect::Dialect;
use crate::error::{Body, Condition, Error, Result};
use crate::expr::Expr;
use crate::run::Run;
use crate::session::Session;
use crate::types::{Base, Type};
use crate::value::Value;
use std::rc::Rc;
use tuple::datetime::Datetime;
use tuple::decimal::Decimal;

/// Warnings that are kept of a statement.
const WARNINGS_MAX: usize = 1024;

/// A value for a column.
#[derive(Clone)]
pub(crate) struct Assigned {
    pub(crate) column: String,
    pub(crate) to: Type,
    /// What ENUM and SET allow.
    pub(crate) choices: Option<Choices>,
    /// It comes from an ENUM: the text of no letters, which that has where nobody was strict, stays what it is.
    pub(crate) is_choice: bool,
    /// A null is refused where the value is computed, before those that follow it.
    pub(crate) refuses_null: bool,
    /// The column is computed, in this table: whoever is not strict is told that the value counts for nothing.
    pub(crate) computed_in: Option<String>,
    /// INSERT IGNORE, UPDATE IGNORE: what is wrong is put right, and a warning tells.
    pub(crate) is_lenient: bool,
    pub(crate) value: Expr,
}

/// The words that a column allows.
#[derive(Clone)]
pub(crate) struct Choices {
    words: Rc<[String]>,
    /// Several of them with commas between.
    is_set: bool,
}

impl Choices {
    /// From the declared type. None: it is another one.
    pub(crate) fn of(declared: &str) -> Option<Self> {
        let upper = declared.get(..5)?.to_ascii_uppercase();
        let is_set = upper.starts_with("SET(");
        if !is_set && !upper.starts_with("ENUM(") {
            return None;
        }
        let mut words = Vec::new();
        let mut rest = &declared[declared.find('(')? + 1..];
        while let Some(at) = rest.find('\'') {
            let mut word = String::new();
            let mut chars = rest[at + 1..].char_indices().peekable();
            let mut end = rest.len();
            while let Some((place, c)) = chars.next() {
                match c {
                    // As the literals of kept texts have it.
                    '\\' => match chars.next() {
                        Some((_, '0')) => word.push('\0'),
                        Some((_, 'n')) => word.push('\n'),
                        Some((_, 'r')) => word.push('\r'),
                        Some((_, 'Z')) => word.push('\u{1a}'),
                        Some((_, c)) => word.push(c),
                        None => {}
                    },
                    '\'' if chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                        chars.next();
                        word.push('\'');
                    }
                    '\'' => {
                        end = at + 1 + place + 1;
                        break;
                    }
                    c => word.push(c),
                }
            }
            words.push(word);
            rest = &rest[end..];
        }
        Some(Choices { words: words.into(), is_set })
    }

    /// The first of them: what a column has that says nothing else.
    pub(crate) fn first(&self) -> Value {
        if self.is_set { Value::text("") } else { self.words.first().map_or(Value::Null, text_of) }
    }

    /// All of them.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// True if a value may be several of them.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set
    }

    /// True if a text is one of them.
    pub(crate) fn allows(&self, text: &str) -> bool {
        self.find(&Value::text(text)).is_some()
    }

    fn one(&self, text: &str) -> Option<&String> {
        self.words.iter().find(|word| word.to_lowercase() == text.to_lowercase())
    }

    /// The value as it is kept. None: it is not allowed.
    fn find(&self, value: &Value) -> Option<Value> {
        if let Some(number) = value.as_integer() {
            return self.numbered(number);
        }
        // Parts of a number are cut.
        if let (Value::Double(_) | Value::Decimal(_), Some(number)) = (value, value.as_double()) {
            return self.numbered(number.trunc() as i128);
        }
        let text = value.as_text()?;
        // What is no word may be the number of one.
        let numbered = || text.parse::<i128>().ok().and_then(|number| self.numbered(number));
        if !self.is_set {
            return self.one(text).map(text_of).or_else(numbered);
        }
        let wanted: Option<Vec<&String>> =
            text.split(',').filter(|word| !word.is_empty()).map(|word| self.one(word)).collect();
        let Some(wanted) = wanted else { return numbered() };
        let words = self.words.iter().filter(|word| wanted.contains(word));
        Some(Value::text(words.map(String::as_str).collect::<Vec<_>>().join(",")))
    }

    /// The word of a number, or those whose bits a number has. None: it is that of none.
    fn numbered(&self, number: i128) -> Option<Value> {
        match self.is_set {
            false => usize::try_from(number).ok()?.checked_sub(1).and_then(|at| self.words.get(at)).map(text_of),
            true => {
                let bits = u64::try_from(number)
                    .ok()
                    .filter(|bits| self.words.len() >= 64 || bits >> self.words.len() == 0)?;
                let words = self.words.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
                Some(Value::text(words.map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(",")))
            }
        }
    }
}

/// The year that a value means: of two digits one between 1970 and 2069. Errors: YEAR has none such.
fn year_of(value: &Value) -> Result<Value> {
    let number = cast(Dialect::Mysql, value.clone(), Type::of(Base::Int8), Strictness::Assignment)?;
    // As a number 0 is no year; as a text of one or two digits it is 2000.
    let is_short = value.as_text().is_some_and(|text| text.trim().len() <= 2);
    match number.as_integer() {
        Some(0) if !is_short => Ok(Value::Int(0)),
        Some(year @ 0..=69) => Ok(Value::Int(year as i64 + 2000)),
        Some(year @ 70..=99) => Ok(Value::Int(year as i64 + 1900)),
        Some(year @ 1901..=2155) => Ok(Value::Int(year as i64)),
        _ => Err(Error::new(Condition::NumericOutOfRange, "")),
    }
}

fn text_of(word: impl AsRef<str>) -> Value {
    Value::text(word.as_ref())
}

/// True if the session wants bad values refused.
pub(crate) fn is_strict(session: Option<&Session>) -> bool {
    let Some(session) = session.filter(|session| session.is_mysql) else { return true };
    session.changed_to("sql_mode").is_none_or(|modes| modes.contains("STRICT_") || modes.contains("TRADITIONAL"))
}

/// True if the session wants divisions by zero refused where rows are put in or changed.
pub(crate) fn refuses_zero(session: Option<&Session>) -> bool {
    let Some(session) = session.filter(|session| session.is_mysql) else { return false };
    let modes = session.changed_to("sql_mode");
    modes.is_none_or(|modes| {
        modes.contains("TRADITIONAL") || modes.contains("STRICT_") && modes.contains("ERROR_FOR_DIVISION_BY_ZERO")
    })
}

/// True if the session wants 0 kept as the day that is none: `0000-00-00`.
fn takes_no_day(session: Option<&Session>) -> bool {
    let modes = session.filter(|session| session.is_mysql).and_then(|session| session.changed_to("sql_mode"));
    modes.is_some_and(|modes| !modes.contains("NO_ZERO_DATE") && !modes.contains("TRADITIONAL"))
}

/// True for the number 0.
fn is_nothing(value: &Value) -> bool {
    !matches!(value, Value::Text(_)) && value.as_double() == Some(0.0)
}

/// Notes a warning of the statement.
pub(crate) fn warn(session: Option<&Session>, condition: Condition, message: String) {
    warn_of(session, &Error::new(condition, message));
}

/// Notes an error as a warning of the statement.
pub(crate) fn warn_of(session: Option<&Session>, error: &Error) {
    if let Some(session) = session {
        let mut warnings = session.warnings.borrow_mut();
        if warnings.len() < WARNINGS_MAX {
            warnings.push(("Warning", error.mysql_number(), error.to_string()));
        }
    }
}

impl Assigned {
    /// The value as the column takes it. Errors: it does not, and the session is strict.
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        if let Some(table) = &self.computed_in {
            if !self.is_lenient && is_strict(run.session.as_deref()) {
                return Err(crate::generated::refuse_computed(table, &self.column));
            }
            let (column, condition) = (&self.column, Condition::GeneratedAlways);
            let what =
                format!("The value specified for generated column '{column}' in table '{table}' has been ignored");
            warn_of(run.session.as_deref(), &Error::new(condition, what).mysql(1906));
            return Ok(Value::Null);
        }
        let value = self.value.eval(run)?;
        let session = run.session.as_deref().or(run.writer.as_deref());
        if self.refuses_null && value.is_null() && is_strict(session) {
            return Err(Error::new(Condition::NotNull, format!("Column '{}' cannot be null", self.column)));
        }
        match self.taken(&value) {
            Ok(value) => Ok(value),
            Err(_) if self.to.is_moment() && is_nothing(&value) && takes_no_day(session) => Ok(implicit(self.to)),
            Err(error) => {
                let error = self.named(error, &value);
                let is_lenient = self.is_lenient || !is_strict(session);
                if !is_lenient || error.condition() == Condition::LimitExceeded {
                    return Err(error);
                }
                warn(session, error.condition(), error.to_string());
                Ok(self.nearest(value))
            }
        }
    }

    /// The value, if the column takes it as it is.
    pub(crate) fn taken(&self, value: &Value) -> Result<Value> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        if let Some(choices) = &self.choices {
            if self.is_choice && !choices.is_set() && value.as_text() == Some("") {
                return Ok(value.clone());
            }
            return choices.find(value).ok_or_else(|| Error::new(Condition::Truncated, ""));
        }
        let is_bits = self.to.base == Base::Uint8 && self.to.length > 0;
        if self.to.is_number()
            && !is_bits
            && let Value::Text(text) = value
            && text.trim().parse::<f64>().is_err()
        {
            // What begins as a number is cut, what does not is none.
            let digits = text.trim_start().trim_start_matches(['+', '-', '.']);
            let is_cut = digits.starts_with(|c: char| c.is_ascii_digit());
            if is_cut {
                if self.to.base == Base::Double && leading_double(text).is_infinite() {
                    return Err(Error::new(Condition::NumericOutOfRange, ""));
                }
                // What is left may still be too large, which of decimals is not looked at.
                if self.to.base != Base::Decimal {
                    cast(Dialect::Mysql, value.clone(), self.to, Strictness::Assignment)?;
                }
                return Err(Error::new(Condition::Truncated, ""));
            }
            return Err(Error::new(Condition::TypeMismatch, ""));
        }
        if self.to == Type::YEAR {
            return year_of(value);
        }
        if self.to.base == Base::Double
            && let Value::Text(text) = value
            && leading_double(text).is_infinite()
        {
            return Err(Error::new(Condition::NumericOutOfRange, ""));
        }
        cast(Dialect::Mysql, value.clone(), self.to, Strictness::Assignment)
    }

    /// The error in MySQL's words.
    fn named(&self, error: Error, value: &Value) -> Error {
        let column = &self.column;
        let shown: String = value.display(Dialect::Mysql).chars().take(64).collect();
        let kind = match self.to.base {
            Base::Date => "date",
            Base::Timestamp | Base::TimestampTz => "datetime",
            Base::Time => "time",
            Base::Decimal | Base::Number => "decimal",
            Base::Double => "DOUBLE",
            Base::Text => "string",
            _ => "integer",
        };
        let Body { condition, hint, .. } = error.body();
        let (condition, message) = match condition {
            Condition::NumericOutOfRange => {
                (Condition::NumericOutOfRange, format!("Out of range value for column '{column}' at row 1"))
            }
            Condition::TooLong => (Condition::TooLong, format!("Data too long for column '{column}' at row 1")),
            Condition::InvalidDatetime => (
                Condition::InvalidDatetime,
                format!("Incorrect {kind} value: '{shown}' for column '{column}' at row 1"),
            ),
            Condition::Truncated => (Condition::Truncated, format!("Data truncated for column '{column}' at row 1")),
            Condition::TypeMismatch | Condition::InvalidText | Condition::InvalidEncoding
                if self.to.base == Base::Json =>
            {
                (Condition::InvalidText, format!("Invalid JSON text: '{shown}' for column '{column}'."))
            }
            Condition::TypeMismatch if self.to.is_moment() || self.to.base == Base::Time => (
                Condition::InvalidDatetime,
                format!("Incorrect {kind} value: '{shown}' for column '{column}' at row 1"),
            ),
            Condition::TypeMismatch | Condition::InvalidText | Condition::InvalidEncoding => {
                (Condition::TypeMismatch, format!("Incorrect {kind} value: '{shown}' for column '{column}' at row 1"))
            }
            _ => return error,
        };
        let named = Error::new(condition, message);
        match hint {
            Some(hint) => named.hint(hint.clone()),
            None => named,
        }
    }

    /// What comes nearest to the value.
    fn nearest(&self, value: Value) -> Value {
        if self.choices.is_some() {
            return Value::text("");
        }
        if let Some((least, greatest)) = self.to.range() {
            let wanted = cast(Dialect::Mysql, value, Type::of(Base::Decimal), Strictness::Explicit);
            let wanted = wanted.ok().and_then(|value| value.as_double()).unwrap_or(0.0);
            return Value::integer((wanted.round() as i128).clamp(least, greatest)).unwrap_or_default();
        }
        match cast(Dialect::Mysql, value, self.to, Strictness::Explicit) {
            Ok(Value::Null) => implicit(self.to),
            Ok(value) => value,
            Err(_) => implicit(self.to),
        }
    }
}

/// What a column that may not be null has where nothing is said and nobody is strict.
pub(crate) fn implicit(ty: Type) -> Value {
    match ty.base {
        _ if ty.is_integer() => Value::Int(0),
        Base::Double | Base::Number => Value::Double(0.0),
        Base::Decimal => {
            Value::decimal(Decimal::new(0, i32::try_from(ty.scale).unwrap_or(0)).unwrap_or_else(|| 0i64.into()))
        }
        Base::Bool => Value::Bool(false),
        Base::Bytes => Value::Bytes((*b"").into()),
        Base::Json => Value::text("null"),
        Base::Time => crate::clock::value_of(0),
        _ if ty.is_moment() => {
            Value::Datetime(Rc::new(Datetime { seconds: super::moments::ZERO_SECONDS, ..Datetime::default() }))
        }
        _ => Value::text(""),
    }
}

/// The same, of a column: the first word of those that it allows.
pub(crate) fn implicit_of(column: &crate::table::Column) -> Value {
    let choices = column.declared.as_deref().and_then(Choices::of);
    choices.map_or_else(|| implicit(column.ty), |choices| choices.first())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn choices_are_read_and_looked_at() {
        let choices = Choices::of("ENUM('a', 'b''c', 'd')").unwrap();
        let found = |value: Value| choices.find(&value).and_then(|value| value.as_text().map(str::to_string));
        assert_eq!(found(Value::text("A")).as_deref(), Some("a"));
        assert_eq!(found(Value::text("b'c")).as_deref(), Some("b'c"));
        assert_eq!(
            (found(Value::Int(3)).as_deref(), found(Value::Int(4)), found(Value::text("x"))),
            (Some("d"), None, None)
        );
        assert_eq!(
            (found(Value::text("3")).as_deref(), found(Value::Double(2.9)).as_deref()),
            (Some("d"), Some("b'c"))
        );
        assert_eq!((found(Value::text("1.5")), found(Value::Double(0.9)), found(Value::text("4"))), (None, None, None));
        let choices = Choices::of("SET('a','b','c')").unwrap();
        let found = |value: Value| choices.find(&value).and_then(|value| value.as_text().map(str::to_string));
        assert_eq!((found(Value::text("c,a")).as_deref(), found(Value::Int(6)).as_deref()), (Some("a,c"), Some("b,c")));
        assert_eq!((found(Value::text("")).as_deref(), found(Value::Int(8))), (Some(""), None));
        assert_eq!((found(Value::text("5")).as_deref(), found(Value::text("9"))), (Some("a,c"), None));
        assert!(Choices::of("VARCHAR(5)").is_none() && Choices::of("INT").is_none());
    }
}
