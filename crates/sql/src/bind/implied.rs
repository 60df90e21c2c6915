//! What one condition says of another: `ON CONFLICT (columns) WHERE condition` means an index whose own condition holds wherever that one does.

use super::keyed::words_of;
use crate::dialect::Dialect;
use crate::written::written;
use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value};

/// Words of two conditions that are looked into: the parts of one are compared with those of the other.
const IMPLIED_WORDS_MAX: usize = 400;

/// True if `wanted` is known to hold wherever `given` does. Long ones have to be written alike.
pub(super) fn implies(given: &Expr, wanted: &Expr) -> bool {
    let count = words(given).len() + words(wanted).len();
    if count > IMPLIED_WORDS_MAX { says_the_same(given, wanted) } else { follows(given, wanted) }
}

/// The same of any: they are written alike, or are parts of AND, OR and IN that are, or compare the same thing with
/// constants. Others are not looked into.
fn follows(given: &Expr, wanted: &Expr) -> bool {
    use BinaryOperator::{And, Or};
    match (given, wanted) {
        (Expr::Nested(given), wanted) => follows(given, wanted),
        (given, Expr::Nested(wanted)) => follows(given, wanted),
        (given, Expr::BinaryOp { left, op: And, right }) => follows(given, left) && follows(given, right),
        (Expr::BinaryOp { left, op: Or, right }, wanted) => follows(left, wanted) && follows(right, wanted),
        (Expr::In { expr, target: InTarget::List(list), negated: false, .. }, wanted) if !list.is_empty() => {
            says_the_same(given, wanted) || list.iter().all(|value| follows(&equal(expr, value), wanted))
        }
        (Expr::BinaryOp { left, op: And, right }, wanted) => follows(left, wanted) || follows(right, wanted),
        (given, Expr::BinaryOp { left, op: Or, right }) => follows(given, left) || follows(given, right),
        (given, Expr::In { expr, target: InTarget::List(list), negated: false, .. }) => {
            says_the_same(given, wanted) || list.iter().any(|value| follows(given, &equal(expr, value)))
        }
        (given, wanted) => says_the_same(given, wanted) || compares(given, wanted),
    }
}

fn says_the_same(given: &Expr, wanted: &Expr) -> bool {
    words(given) == words(wanted)
}

fn words(expr: &Expr) -> Vec<String> {
    match expr {
        Expr::Nested(inner) => words(inner),
        expr => words_of(&written(Dialect::Postgres, expr)),
    }
}

fn equal(expr: &Expr, value: &Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(expr.clone()), op: BinaryOperator::Eq, right: Box::new(value.clone()) }
}

/// What is compared, how, and with which number or other constant.
struct Compared {
    what: Vec<String>,
    how: BinaryOperator,
    with: Vec<String>,
    number: Option<f64>,
}

impl Compared {
    fn of(expr: &Expr) -> Option<Self> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let Expr::BinaryOp { left, op, right } = expr else { return None };
        let (what, how, with) = match (is_constant(left), is_constant(right)) {
            (false, true) => (left, op.clone(), right),
            (true, false) => {
                let flipped = match op {
                    Gt => Lt,
                    GtEq => LtEq,
                    Lt => Gt,
                    LtEq => GtEq,
                    same => same.clone(),
                };
                (right, flipped, left)
            }
            _ => return None,
        };
        let is_known = matches!(how, Eq | Gt | GtEq | Lt | LtEq | NotEq);
        let number = with.to_string().replace(' ', "").parse().ok();
        is_known.then(|| Compared { what: words(what), how, with: words(with), number })
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_constant(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            matches!(&**expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
        }
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_) | Value::Null),
        _ => false,
    }
}

/// The same for conditions without AND and OR.
fn compares(given: &Expr, wanted: &Expr) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let Some(given) = Compared::of(given) else { return false };
    if let Expr::IsNotNull(inner) = wanted {
        return words(inner) == given.what;
    }
    let Some(wanted) = Compared::of(wanted).filter(|wanted| wanted.what == given.what) else { return false };
    let (a, b) = match (given.number, wanted.number) {
        (Some(a), Some(b)) => (a, b),
        // Of two texts no order is known here.
        _ if given.with == wanted.with => (0.0, 0.0),
        _ => return false,
    };
    match (given.how, wanted.how) {
        (Eq, Eq) | (NotEq, NotEq) => a == b,
        (Eq, NotEq) => a != b,
        (Gt, NotEq) => a >= b,
        (GtEq, NotEq) | (Eq | GtEq, Gt) => a > b,
        (Eq | Gt | GtEq, GtEq) | (Gt, Gt) => a >= b,
        (Lt, NotEq) => a <= b,
        (LtEq, NotEq) | (Eq | LtEq, Lt) => a < b,
        (Eq | Lt | LtEq, LtEq) | (Lt, Lt) => a <= b,
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::implies;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    #[test]
    fn conditions_follow_from_what_says_as_much() {
        let parsed = |text: &str| Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap();
        let follows = |given: &str, wanted: &str| implies(&parsed(given), &parsed(wanted));
        for (given, wanted) in [
            ("act", "ACT"),
            ("a > 1 AND act", "act AND (a > 1)"),
            ("a > 5", "a > 1"),
            ("a = 5", "5 <= a"),
            ("1 < a", "a >= 1"),
            ("a < -2", "a <> 3"),
            ("a = 'x'", "a IN ('w', 'x')"),
            ("a IN (3, 4)", "a > 2"),
            ("a > 5 OR a = 4", "a > 3"),
            ("b", "a OR b"),
            ("a = 'x'", "a IS NOT NULL"),
        ] {
            assert!(follows(given, wanted), "{given}: {wanted}");
        }
        for (given, wanted) in [
            ("act", "act AND a > 1"),
            ("a > 1", "a > 5"),
            ("a >= 1", "a > 1"),
            ("a > 5 OR b", "a > 5"),
            ("a > '5'", "a > '1'"),
            ("NOT act", "act"),
            ("a = 'x'", "a = 'X'"),
            ("b = 1", "a = 1"),
        ] {
            assert!(!follows(given, wanted), "{given}: {wanted}");
        }
    }
}
