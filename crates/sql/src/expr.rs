//! Expressions whose names and types are known, and their values.
//!
//! A statement has one *frame*: a place for each column that it uses and each value that it computes. Whatever produces rows puts them into its places, and
//! expressions read there. So a join copies nothing, and a subquery sees the row around it without being told.

use crate::arithmetic::{Arithmetic, Manner, calculate, negate};
use crate::array::each::Each;
use crate::cast::{Strictness, cast, display};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::functions::Function;
use crate::plan::Plan;
use crate::run::{Flow, Run};
use crate::types::Type;
use crate::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;
use tuple::Collation;

/// A place in the frame of a statement.
pub(crate) type Slot = usize;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// What it says of an order.
    #[inline]
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order == Ordering::Equal,
            Comparison::NotEqual => order != Ordering::Equal,
            Comparison::Less => order == Ordering::Less,
            Comparison::LessOrEqual => order != Ordering::Greater,
            Comparison::Greater => order == Ordering::Greater,
            Comparison::GreaterOrEqual => order != Ordering::Less,
        }
    }

    /// The same with its sides exchanged.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }

    /// As it is written.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

/// How texts are compared; none: by their bytes.
pub(crate) type CollationOption = Option<Arc<Collation>>;

/// Where two values stand to each other, texts by a collation.
#[inline]
pub(crate) fn order(collation: &CollationOption, a: &Value, b: &Value) -> Ordering {
    match (collation, a, b) {
        (Some(collation), Value::Text(a), Value::Text(b)) => collation.compare(a.as_bytes(), b.as_bytes()),
        _ => a.order(b),
    }
}

/// A subquery within an expression.
pub(crate) struct Subquery {
    /// Its number within the statement: where its result is kept.
    pub(crate) number: usize,
    /// What is asked of its rows.
    pub(crate) asked: Asked,
    /// The rows.
    pub(crate) plan: Plan,
    /// Their columns.
    pub(crate) outputs: Vec<Slot>,
    /// It reads places of the query around it: its rows differ from row to row there.
    pub(crate) is_correlated: bool,
    /// Of several rows, where one is wanted, nothing is taken, and a warning tells: in statements of MySQL's with IGNORE.
    pub(crate) is_lenient: bool,
    /// How its rows are written: two that stand in one query and are written alike are the same.
    pub(crate) source: String,
}

/// What is asked of the rows of a subquery.
pub(crate) enum Asked {
    /// The value of its one row.
    Scalar,
    /// Whether there is any.
    Exists,
    /// How a value, or several, compare with any of them, or with all.
    Quantified {
        /// The values, one for each column.
        values: Vec<Expr>,
        /// How they compare: equal or not equal, if they are several.
        comparison: Comparison,
        /// With every row.
        all: bool,
        /// By which they compare.
        collation: CollationOption,
    },
}

/// An expression.
#[derive(Clone)]
pub(crate) enum Expr {
    Const(Value),
    Slot(Slot),
    Param(usize),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    IsNull(Box<Expr>),
    /// IS TRUE, IS FALSE: never null.
    Is(Box<Expr>, bool),
    Compare(Comparison, Box<Expr>, Box<Expr>, CollationOption),
    /// IS NOT DISTINCT FROM.
    Same(Box<Expr>, Box<Expr>, CollationOption),
    Arithmetic(Arithmetic, Type, Manner, Box<Expr>, Box<Expr>),
    Negate(Type, Box<Expr>),
    Concat(Box<Expr>, Box<Expr>),
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    Cast(Type, Strictness, Box<Expr>),
    /// A value on its way into a column of MySQL's.
    Assigned(Box<crate::mysql::assign::Assigned>),
    Call(&'static Function, Vec<Expr>),
    Like(Box<Like>),
    In(Box<Expr>, Vec<Expr>, CollationOption),
    /// Of texts that a collation takes for equal, always the same one: for groups, and rows that are to come once.
    Canonical(Arc<Collation>, Box<Expr>),
    Subquery(Rc<Subquery>),
    /// The first that is not null: those behind it are not looked at.
    Coalesce(Vec<Expr>),
    /// The value, which also goes to a place: what is set behind it reads it there.
    Keep(Slot, Box<Expr>),
    /// An array whose elements become something else.
    Each(Box<Each>),
}

/// Characters that LIKE compares between two looks at the clock.
const STEPS_OF_LIKE: usize = 4096;

/// A comparison with a pattern.
#[derive(Clone)]
pub(crate) struct Like {
    pub(crate) text: Expr,
    pub(crate) pattern: Expr,
    pub(crate) escape: Option<char>,
    pub(crate) ignores_case: bool,
    /// By which characters are the same, beside their case.
    pub(crate) collation: CollationOption,
}

/// Two values are compared: long texts take their time.
#[inline]
fn weigh_texts(run: &mut Run<'_>, a: &Value, b: &Value) -> Result<()> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => run.weigh(a.len().min(b.len())),
        _ => Ok(()),
    }
}

/// True or false, or not known.
fn truth(value: &Value) -> Result<Option<bool>> {
    match value {
        Value::Bool(value) => Ok(Some(*value)),
        Value::Null => Ok(None),
        Value::Int(value) => Ok(Some(*value != 0)),
        Value::Uint(_) => Ok(Some(true)),
        Value::Double(value) => Ok(Some(*value != 0.0)),
        Value::Decimal(value) => Ok(Some(value.parts().0 != 0)),
        _ => Err(Error::new(Condition::TypeMismatch, "a condition must be true or false")),
    }
}

fn known(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Bool)
}

impl Expr {
    /// The value for the row that the frame holds.
    ///
    /// Errors: those of the operations in it. May wait, in a subquery.
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        Ok(match self {
            Expr::Const(value) => value.clone(),
            Expr::Slot(slot) => run.frame[*slot].clone(),
            Expr::Param(number) => match run.params.get(*number) {
                Some(value) => value.clone(),
                None => {
                    return Err(Error::new(
                        Condition::InvalidArgument,
                        format!("parameter {} has no value", number + 1),
                    ));
                }
            },
            Expr::Not(inner) => known(truth(&inner.eval(run)?)?.map(|value| !value)),
            Expr::And(parts) => known(Self::all(parts, run)?),
            Expr::Or(parts) => {
                let mut result = Some(false);
                for part in parts {
                    match truth(&part.eval(run)?)? {
                        Some(true) => return Ok(Value::Bool(true)),
                        Some(false) => {}
                        None => result = None,
                    }
                }
                known(result)
            }
            Expr::IsNull(inner) => Value::Bool(inner.eval(run)?.is_null()),
            Expr::Is(inner, wanted) => Value::Bool(truth(&inner.eval(run)?)? == Some(*wanted)),
            Expr::Compare(comparison, a, b, collation) => {
                let a = a.eval(run)?;
                // Whatever the other side is, MySQL does not look at it.
                if a.is_null() && run.dialect == Dialect::Mysql {
                    return Ok(Value::Null);
                }
                let b = Self::beside(run, &a, b)?;
                if a.is_null() || b.is_null() {
                    return Ok(Value::Null);
                }
                weigh_texts(run, &a, &b)?;
                Value::Bool(comparison.holds(order(collation, &a, &b)))
            }
            Expr::Same(a, b, collation) => {
                let a = a.eval(run)?;
                let b = Self::beside(run, &a, b)?;
                weigh_texts(run, &a, &b)?;
                Value::Bool(order(collation, &a, &b) == Ordering::Equal)
            }
            Expr::Arithmetic(operation, result, manner, a, b) => {
                let (a, b) = (a.eval(run)?, b.eval(run)?);
                let value = calculate(*operation, *result, *manner, &a, &b)?;
                if value.is_null() && run.refuses_zero && !a.is_null() && !b.is_null() {
                    return Err(Error::new(Condition::DivisionByZero, "Division by 0"));
                }
                value
            }
            Expr::Negate(result, inner) => negate(*result, &inner.eval(run)?)?,
            Expr::Concat(a, b) => {
                let a = a.eval(run)?;
                let b = Self::beside(run, &a, b)?;
                Self::concat(run, &a, &b)?
            }
            Expr::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    if truth(&condition.eval(run)?)? == Some(true) {
                        return value.eval(run);
                    }
                }
                otherwise.eval(run)?
            }
            Expr::Cast(to, strictness, inner) => {
                let value = inner.eval(run)?;
                run.weigh(value.weight())?;
                let value = cast(run.dialect, value, *to, *strictness)?;
                match to.has_labels() {
                    true => crate::user_types::numbered(run.database, value, *to)?,
                    false => value,
                }
            }
            Expr::Assigned(assigned) => assigned.eval(run)?,
            Expr::Call(function, arguments) => {
                let before = run.held();
                let value = Self::call(function, arguments, run);
                run.hold_again(before);
                value?
            }
            Expr::Like(like) => like.eval(run)?,
            Expr::In(value, list, collation) => {
                let value = value.eval(run)?;
                let mut result = Some(false);
                for item in list {
                    let item = item.eval(run)?;
                    if value.is_null() || item.is_null() {
                        result = None;
                    } else if order(collation, &value, &item) == Ordering::Equal {
                        return Ok(Value::Bool(true));
                    }
                }
                known(result)
            }
            Expr::Canonical(collation, inner) => {
                let value = inner.eval(run)?;
                run.canonical(collation, value)?
            }
            Expr::Subquery(subquery) => subquery.eval(run)?,
            Expr::Each(each) => each.eval(run)?,
            Expr::Coalesce(parts) => {
                for part in parts {
                    let value = part.eval(run)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Value::Null
            }
            Expr::Keep(slot, inner) => {
                let value = inner.eval(run)?;
                run.frame[*slot] = value.clone();
                value
            }
        })
    }

    fn call(function: &Function, arguments: &[Expr], run: &mut Run<'_>) -> Result<Value> {
        let mut values = Vec::with_capacity(arguments.len());
        let mut bytes = 0;
        // All of them: one behind a null may be refused.
        for argument in arguments {
            let value = argument.eval(run)?;
            bytes += value.weight();
            run.hold(value.weight())?;
            values.push(value);
        }
        if function.is_strict && values.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        run.weigh(bytes)?;
        let value = (function.call)(run, &values)?;
        run.weigh(value.weight())?;
        Ok(value)
    }

    fn concat(run: &mut Run<'_>, a: &Value, b: &Value) -> Result<Value> {
        if a.is_null() || b.is_null() {
            return Ok(Value::Null);
        }
        run.weigh(a.weight() + b.weight())?;
        if let (Value::Bytes(a), Value::Bytes(b)) = (a, b) {
            run.check_length(a.len() + b.len())?;
            return Ok(Value::Bytes([&a[..], &b[..]].concat().into()));
        }
        let mut text = display(run.dialect, a);
        text.push_str(&display(run.dialect, b));
        run.check_length(text.len())?;
        Ok(Value::text(text))
    }

    /// Evaluates the second of two values while the first one is held.
    fn beside(run: &mut Run<'_>, first: &Value, second: &Expr) -> Result<Value> {
        let before = run.held();
        run.hold(first.weight())?;
        let value = second.eval(run);
        run.hold_again(before);
        value
    }

    /// True if a condition is fulfilled; what is not known is not.
    #[inline]
    pub(crate) fn is_true(&self, run: &mut Run<'_>) -> Result<bool> {
        // Without a copy where the usual form allows.
        if let Expr::Compare(comparison, a, b, None) = self
            && let (Expr::Slot(a), Expr::Const(b)) = (&**a, &**b)
        {
            let a = &run.frame[*a];
            return Ok(!a.is_null() && !b.is_null() && comparison.holds(a.order(b)));
        }
        // What is not known is enough: the parts behind it are not looked at.
        if let Expr::And(parts) = self {
            for part in parts {
                if !part.is_true(run)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Ok(truth(&self.eval(run)?)? == Some(true))
    }

    fn all(parts: &[Expr], run: &mut Run<'_>) -> Result<Option<bool>> {
        let mut result = Some(true);
        for part in parts {
            match truth(&part.eval(run)?)? {
                Some(false) => return Ok(Some(false)),
                Some(true) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// True for a call of the function of a name.
    pub(crate) fn is_call_of(&self, name: &str) -> bool {
        matches!(self, Expr::Call(function, _) if function.name == name)
    }

    /// Hands every expression within this one to `visit`, itself first; those that a subquery compares with, not those of its rows.
    pub(crate) fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        match self {
            Expr::Const(_) | Expr::Slot(_) | Expr::Param(_) => {}
            Expr::Assigned(assigned) => assigned.value.walk(visit),
            Expr::Each(each) => each.array.walk(visit),
            Expr::Not(inner)
            | Expr::IsNull(inner)
            | Expr::Is(inner, _)
            | Expr::Negate(_, inner)
            | Expr::Canonical(_, inner)
            | Expr::Keep(_, inner)
            | Expr::Cast(_, _, inner) => {
                inner.walk(visit);
            }
            Expr::And(parts) | Expr::Or(parts) | Expr::Call(_, parts) | Expr::Coalesce(parts) => {
                parts.iter().for_each(|part| part.walk(visit));
            }
            Expr::Compare(_, a, b, _) | Expr::Same(a, b, _) | Expr::Arithmetic(_, _, _, a, b) | Expr::Concat(a, b) => {
                a.walk(visit);
                b.walk(visit);
            }
            Expr::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    condition.walk(visit);
                    value.walk(visit);
                }
                otherwise.walk(visit);
            }
            Expr::Like(like) => {
                like.text.walk(visit);
                like.pattern.walk(visit);
            }
            Expr::In(value, list, _) => {
                value.walk(visit);
                list.iter().for_each(|item| item.walk(visit));
            }
            Expr::Subquery(subquery) => {
                if let Asked::Quantified { values, .. } = &subquery.asked {
                    values.iter().for_each(|value| value.walk(visit));
                }
            }
        }
    }

    /// Hands every place that the expression reads to `visit`, those that its subqueries read from around them among them.
    pub(crate) fn slots(&self, visit: &mut dyn FnMut(Slot)) {
        self.walk(&mut |expr| match expr {
            Expr::Slot(slot) => visit(*slot),
            Expr::Subquery(subquery) => subquery.plan.reads(visit),
            _ => {}
        });
    }

    /// True if both are written alike.
    pub(crate) fn is_like(&self, other: &Expr) -> bool {
        let all_like = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_like(b));
        match (self, other) {
            (Expr::Const(a), Expr::Const(b)) => {
                // A month is as long as thirty days, and not the same.
                let is_other = matches!((a, b), (Value::Interval(a), Value::Interval(b)) if a.fields != b.fields);
                std::mem::discriminant(a) == std::mem::discriminant(b) && a.order(b) == Ordering::Equal && !is_other
            }
            (Expr::Slot(a), Expr::Slot(b)) => a == b,
            (Expr::Param(a), Expr::Param(b)) => a == b,
            (Expr::Not(a), Expr::Not(b)) | (Expr::IsNull(a), Expr::IsNull(b)) => a.is_like(b),
            (Expr::Is(a, x), Expr::Is(b, y)) => x == y && a.is_like(b),
            (Expr::Negate(x, a), Expr::Negate(y, b)) => x == y && a.is_like(b),
            (Expr::Cast(x, _, a), Expr::Cast(y, _, b)) => x == y && a.is_like(b),
            (Expr::And(a), Expr::And(b)) | (Expr::Or(a), Expr::Or(b)) | (Expr::Coalesce(a), Expr::Coalesce(b)) => {
                all_like(a, b)
            }
            (Expr::Call(f, a), Expr::Call(g, b)) => std::ptr::eq(*f, *g) && !f.is_volatile && all_like(a, b),
            (Expr::Compare(x, a, b, _), Expr::Compare(y, c, d, _)) => x == y && a.is_like(c) && b.is_like(d),
            (Expr::Same(a, b, _), Expr::Same(c, d, _)) | (Expr::Concat(a, b), Expr::Concat(c, d)) => {
                a.is_like(c) && b.is_like(d)
            }
            (Expr::Arithmetic(x, t, _, a, b), Expr::Arithmetic(y, u, _, c, d)) => {
                x == y && t == u && a.is_like(c) && b.is_like(d)
            }
            (Expr::Case(a, x), Expr::Case(b, y)) => {
                let alike = a.iter().zip(b).all(|((a, b), (c, d))| a.is_like(c) && b.is_like(d));
                a.len() == b.len() && alike && x.is_like(y)
            }
            (Expr::In(a, x, _), Expr::In(b, y, _)) => a.is_like(b) && all_like(x, y),
            (Expr::Like(a), Expr::Like(b)) => {
                a.ignores_case == b.ignores_case && a.text.is_like(&b.text) && a.pattern.is_like(&b.pattern)
            }
            (Expr::Each(a), Expr::Each(b)) => a.of == b.of && a.to == b.to && a.array.is_like(&b.array),
            (Expr::Canonical(x, a), Expr::Canonical(y, b)) => x.id() == y.id() && a.is_like(b),
            (Expr::Subquery(a), Expr::Subquery(b)) => Rc::ptr_eq(a, b) || a.is_like(b),
            _ => false,
        }
    }

    /// The expression with each part replaced for which `change` gives another one.
    pub(crate) fn replaced(self, change: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Expr {
        if let Some(other) = change(&self) {
            return other;
        }
        let mut one = |inner: Box<Expr>| Box::new(inner.replaced(change));
        match self {
            same @ (Expr::Const(_) | Expr::Slot(_) | Expr::Param(_)) => same,
            Expr::Not(a) => Expr::Not(one(a)),
            Expr::IsNull(a) => Expr::IsNull(one(a)),
            Expr::Is(a, wanted) => Expr::Is(one(a), wanted),
            Expr::Canonical(collation, a) => Expr::Canonical(collation, one(a)),
            Expr::Keep(slot, a) => Expr::Keep(slot, one(a)),
            Expr::Each(each) => Expr::Each(Box::new(Each { array: each.array.replaced(change), ..*each })),
            Expr::Negate(result, a) => Expr::Negate(result, one(a)),
            Expr::Cast(to, strictness, a) => Expr::Cast(to, strictness, one(a)),
            Expr::Assigned(assigned) => {
                let mut assigned = *assigned;
                assigned.value = assigned.value.replaced(change);
                Expr::Assigned(Box::new(assigned))
            }
            Expr::Compare(comparison, a, b, collation) => Expr::Compare(comparison, one(a), one(b), collation),
            Expr::Same(a, b, collation) => Expr::Same(one(a), one(b), collation),
            Expr::Arithmetic(operation, result, manner, a, b) => {
                Expr::Arithmetic(operation, result, manner, one(a), one(b))
            }
            Expr::Concat(a, b) => Expr::Concat(one(a), one(b)),
            Expr::And(parts) => Expr::And(parts.into_iter().map(|part| part.replaced(change)).collect()),
            Expr::Or(parts) => Expr::Or(parts.into_iter().map(|part| part.replaced(change)).collect()),
            Expr::Coalesce(parts) => Expr::Coalesce(parts.into_iter().map(|part| part.replaced(change)).collect()),
            Expr::Call(function, parts) => {
                Expr::Call(function, parts.into_iter().map(|part| part.replaced(change)).collect())
            }
            Expr::Case(branches, otherwise) => {
                let branches = branches.into_iter().map(|(a, b)| (a.replaced(change), b.replaced(change))).collect();
                Expr::Case(branches, Box::new(otherwise.replaced(change)))
            }
            Expr::Like(like) => {
                let Like { text, pattern, escape, ignores_case, collation } = *like;
                let (text, pattern) = (text.replaced(change), pattern.replaced(change));
                Expr::Like(Box::new(Like { text, pattern, escape, ignores_case, collation }))
            }
            Expr::In(value, list, collation) => {
                let value = Box::new(value.replaced(change));
                Expr::In(value, list.into_iter().map(|item| item.replaced(change)).collect(), collation)
            }
            Expr::Subquery(subquery) => Expr::Subquery(match Rc::try_unwrap(subquery) {
                Ok(mut own) => {
                    if let Asked::Quantified { values, .. } = &mut own.asked {
                        for value in values {
                            *value = std::mem::replace(value, Expr::Const(Value::Null)).replaced(change);
                        }
                    }
                    Rc::new(own)
                }
                // Whoever has it as well reads it where it was.
                Err(shared) => shared,
            }),
        }
    }
}

impl Like {
    /// True if a text is as its constant pattern says. May wait. Errors: as of LIKE.
    pub(crate) fn matches(&self, run: &mut Run<'_>, text: &str) -> Result<bool> {
        let pattern = self.pattern.constant().and_then(Value::as_text).unwrap_or_default();
        is_like(run, text, pattern, self.escape, None)
    }

    fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        let (text, pattern) = (self.text.eval(run)?, self.pattern.eval(run)?);
        if text.is_null() || pattern.is_null() {
            return Ok(Value::Null);
        }
        let shown = |value: &Value| match (value, run.dialect) {
            (Value::Bytes(bytes), Dialect::Mysql) => String::from_utf8_lossy(bytes).into_owned(),
            (value, dialect) => display(dialect, value),
        };
        let (text, pattern) = (shown(&text), shown(&pattern));
        run.weigh(text.len() + pattern.len())?;
        let matches = match self.ignores_case {
            true => is_like(run, &text.to_lowercase(), &pattern.to_lowercase(), self.escape, self.collation.as_deref()),
            false => is_like(run, &text, &pattern, self.escape, None),
        };
        matches.map(Value::Bool)
    }
}

/// True if a text is as a pattern of LIKE says. In time of at most the product of their lengths. May wait. Errors: the pattern ends with its escape; as
/// [`Run::weigh`].
fn is_like(
    run: &mut Run<'_>,
    text: &str,
    pattern: &str,
    escape: Option<char>,
    collation: Option<&Collation>,
) -> Result<bool> {
    // Characters that differ may still be the same to the collation: letters with and without accents.
    let is_same = |found: char, wanted: char| {
        let (mut a, mut b) = ([0; 4], [0; 4]);
        found == wanted
            || !(found.is_ascii() && wanted.is_ascii())
                && collation.is_some_and(|collation| {
                    let (a, b) = (found.encode_utf8(&mut a), wanted.encode_utf8(&mut b));
                    collation.compare(a.as_bytes(), b.as_bytes()) == Ordering::Equal
                })
    };
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where the last `%` was, and where the text was then.
    let mut last: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    let mut steps = 0_usize;
    loop {
        steps += 1;
        if steps.is_multiple_of(STEPS_OF_LIKE) {
            run.weigh(STEPS_OF_LIKE)?;
        }
        let mut behind = pattern.clone();
        let matches = match behind.next() {
            Some(c) if Some(c) == escape => match behind.next() {
                Some(c) => {
                    let mut rest = text.clone();
                    let fits = rest.next().is_some_and(|found| is_same(found, c));
                    if fits {
                        text = rest;
                    }
                    fits
                }
                None => {
                    return Err(Error::new(
                        Condition::InvalidArgument,
                        "LIKE pattern must not end with escape character",
                    ));
                }
            },
            Some('%') => {
                pattern = behind.clone();
                last = Some((behind, text.clone()));
                continue;
            }
            Some(c) => {
                let mut rest = text.clone();
                let fits = rest.next().is_some_and(|found| c == '_' || is_same(found, c));
                if fits {
                    text = rest;
                }
                fits
            }
            None if text.as_str().is_empty() => return Ok(true),
            None => false,
        };
        if matches {
            pattern = behind;
            continue;
        }
        // One character more for the last `%`.
        match &mut last {
            Some((after, from)) => {
                if from.next().is_none() {
                    return Ok(false);
                }
                text = from.clone();
                pattern = after.clone();
            }
            None => return Ok(false),
        }
    }
}

impl Subquery {
    /// True if both ask the same of rows that are written alike.
    fn is_like(&self, other: &Subquery) -> bool {
        let is_same = match (&self.asked, &other.asked) {
            (Asked::Scalar, Asked::Scalar) | (Asked::Exists, Asked::Exists) => true,
            (
                Asked::Quantified { values: a, comparison: x, all: s, .. },
                Asked::Quantified { values: b, comparison: y, all: t, .. },
            ) => x == y && s == t && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_like(b)),
            _ => false,
        };
        is_same && self.source == other.source
    }

    fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        match &self.asked {
            Asked::Scalar => self.scalar(run),
            Asked::Exists => self.exists(run),
            Asked::Quantified { values, comparison, all, collation } => {
                let mut wanted = Vec::with_capacity(values.len());
                for value in values {
                    wanted.push(value.eval(run)?);
                }
                self.quantified(run, &wanted, *comparison, *all, collation)
            }
        }
    }

    fn scalar(&self, run: &mut Run<'_>) -> Result<Value> {
        if !self.is_correlated
            && let Some(rows) = &run.subqueries[self.number]
        {
            return Ok(rows.first().and_then(|row| row.first()).cloned().unwrap_or_default());
        }
        let mut found: Option<Value> = None;
        let output = self.outputs[0];
        self.plan.run(run, &mut |run| {
            if found.is_some() && self.is_lenient {
                let what = "Subquery returns more than 1 row".to_string();
                crate::mysql::assign::warn(run.session.as_deref(), Condition::Cardinality, what);
                found = None;
                return Ok(Flow::Stop);
            }
            if found.is_some() {
                let what = match run.dialect {
                    Dialect::Tarantool => "Expression subquery returned more than 1 row",
                    Dialect::Mysql => "Subquery returns more than 1 row",
                    Dialect::Postgres => "more than one row returned by a subquery used as an expression",
                };
                return Err(Error::new(Condition::Cardinality, what));
            }
            found = Some(run.frame[output].clone());
            Ok(Flow::On)
        })?;
        let value = found.unwrap_or_default();
        if !self.is_correlated {
            run.subqueries[self.number] = Some(Rc::new(vec![vec![value.clone()]]));
        }
        Ok(value)
    }

    fn exists(&self, run: &mut Run<'_>) -> Result<Value> {
        if !self.is_correlated
            && let Some(rows) = &run.subqueries[self.number]
        {
            return Ok(Value::Bool(!rows.is_empty()));
        }
        let mut is_any = false;
        self.plan.run(run, &mut |_| {
            is_any = true;
            Ok(Flow::Stop)
        })?;
        if !self.is_correlated {
            run.subqueries[self.number] = Some(Rc::new(vec![Vec::new(); usize::from(is_any)]));
        }
        Ok(Value::Bool(is_any))
    }

    fn quantified(
        &self,
        run: &mut Run<'_>,
        wanted: &[Value],
        comparison: Comparison,
        all: bool,
        collation: &CollationOption,
    ) -> Result<Value> {
        let mut result = Some(all);
        let mut look = |row: &[&Value]| {
            let is = compare_rows(comparison, collation, wanted, row);
            match is {
                Some(is) if is != all => {
                    result = Some(is);
                    return Flow::Stop;
                }
                Some(_) => {}
                None => result = None,
            }
            Flow::On
        };
        if self.is_correlated {
            self.plan.run(run, &mut |run| {
                let row: Vec<&Value> = self.outputs.iter().map(|slot| &run.frame[*slot]).collect();
                Ok(look(&row))
            })?;
            return Ok(known(result));
        }
        let rows = self.rows(run)?;
        if comparison == Comparison::Equal && !all && collation.is_none() && wanted.len() == 1 {
            return Ok(known(run.is_among(self.number, &rows, &wanted[0])));
        }
        for row in rows.iter() {
            run.tick()?;
            let row: Vec<&Value> = row.iter().collect();
            if look(&row) == Flow::Stop {
                break;
            }
        }
        Ok(known(result))
    }

    /// All rows, computed once.
    fn rows(&self, run: &mut Run<'_>) -> Result<Rc<Vec<Vec<Value>>>> {
        if let Some(rows) = &run.subqueries[self.number] {
            return Ok(Rc::clone(rows));
        }
        let mut rows = Vec::new();
        self.plan.run(run, &mut |run| {
            let row: Vec<Value> = self.outputs.iter().map(|slot| run.frame[*slot].clone()).collect();
            run.take_row(&row)?;
            rows.push(row);
            Ok(Flow::On)
        })?;
        let rows = Rc::new(rows);
        run.subqueries[self.number] = Some(Rc::clone(&rows));
        Ok(rows)
    }
}

/// How two rows compare: as their first parts that differ. None: that is not known.
fn compare_rows(comparison: Comparison, collation: &CollationOption, a: &[Value], b: &[&Value]) -> Option<bool> {
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    let mut unknown = false;
    for (a, b) in a.iter().zip(b) {
        if a.is_null() || b.is_null() {
            unknown = true;
            if !is_equality {
                return None;
            }
            continue;
        }
        match order(collation, a, b) {
            Ordering::Equal => {}
            other => return Some(comparison.holds(other)),
        }
    }
    if unknown { None } else { Some(comparison.holds(Ordering::Equal)) }
}
