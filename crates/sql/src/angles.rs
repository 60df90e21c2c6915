//! Functions of angles and their kin, as PostgreSQL has them: of doubles, and exact where they count in degrees and the result is.

use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::types::Base;
use crate::value::Value;
use tuple::decimal::Decimal;

const DOUBLE: Returns = Returns::Type(Base::Double);

/// A degree.
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

fn out_of_range() -> Error {
    Error::new(Condition::NumericOutOfRange, "input is out of range")
}

fn double(value: &Value) -> Result<f64> {
    let written = || match value {
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    value.as_double().or_else(written).ok_or_else(|| {
        let what = "invalid input syntax for type double precision";
        Error::new(Condition::InvalidText, what)
    })
}

/// What a function makes of an argument that is below infinity.
fn finite(value: &Value, of: fn(f64) -> f64) -> Result<Value> {
    let x = double(value)?;
    if x.is_infinite() { Err(out_of_range()) } else { Ok(Value::Double(of(x))) }
}

/// What a function makes of an argument between two others.
fn within(value: &Value, (least, most): (f64, f64), of: fn(f64) -> f64) -> Result<Value> {
    let x = double(value)?;
    if x < least || x > most { Err(out_of_range()) } else { Ok(Value::Double(of(x))) }
}

/// The sine of up to 30 degrees, 0.5 for those.
fn small_sine(x: f64) -> f64 {
    (x * DEGREE).sin() / (30.0 * DEGREE).sin() / 2.0
}

/// The cosine of up to 60 degrees, 0.5 for those.
fn small_cosine(x: f64) -> f64 {
    1.0 - (1.0 - (x * DEGREE).cos()) / (1.0 - (60.0 * DEGREE).cos()) / 2.0
}

/// The sine of up to 90 degrees.
fn sine(x: f64) -> f64 {
    if x <= 30.0 { small_sine(x) } else { small_cosine(90.0 - x) }
}

/// The cosine of up to 90 degrees.
fn cosine(x: f64) -> f64 {
    if x <= 60.0 { small_cosine(x) } else { small_sine(90.0 - x) }
}

/// An angle within a turn as one of up to 90 degrees, and whether sine and cosine have the other sign.
fn quadrant(x: f64) -> (f64, bool, bool) {
    let (x, is_back) = (x.abs() % 360.0, x < 0.0);
    let (x, is_back) = if x > 180.0 { (360.0 - x, !is_back) } else { (x, is_back) };
    if x > 90.0 { (180.0 - x, is_back, true) } else { (x, is_back, false) }
}

fn signed(value: f64, is_negative: bool) -> f64 {
    if is_negative { -value } else { value }
}

fn sine_of_degrees(x: f64) -> f64 {
    let (x, is_negative, _) = quadrant(x);
    signed(sine(x), is_negative)
}

fn cosine_of_degrees(x: f64) -> f64 {
    let (x, _, is_negative) = quadrant(x);
    signed(cosine(x), is_negative)
}

fn tangent_of_degrees(x: f64) -> f64 {
    let (x, a, b) = quadrant(x);
    // There is no zero below zero.
    signed(sine(x) / cosine(x) / (sine(45.0) / cosine(45.0)), a != b) + 0.0
}

fn cotangent_of_degrees(x: f64) -> f64 {
    let (x, a, b) = quadrant(x);
    signed(cosine(x) / sine(x) / (cosine(45.0) / sine(45.0)), a != b) + 0.0
}

/// The angle of a sine from 0 to 1, in degrees.
fn angle_of_sine(x: f64) -> f64 {
    if x <= 0.5 { x.asin() / 0.5f64.asin() * 30.0 } else { 90.0 - x.acos() / 0.5f64.acos() * 60.0 }
}

/// The angle of a cosine from 0 to 1, in degrees.
fn angle_of_cosine(x: f64) -> f64 {
    if x <= 0.5 { 90.0 - x.asin() / 0.5f64.asin() * 30.0 } else { x.acos() / 0.5f64.acos() * 60.0 }
}

macro_rules! functions {
    ($($name:literal ($count:literal) => $call:expr;)*) => {
        static FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            arguments: ($count, $count),
            result: DOUBLE,
            is_strict: true,
            is_volatile: false,
            call: $call,
        },)* Function {
            name: "factorial",
            arguments: (1, 1),
            result: Returns::Type(Base::Decimal),
            is_strict: true,
            is_volatile: false,
            call: |_, a| factorial(&a[0]),
        }];
    };
}

functions! {
    "acos" (1) => |_, a| within(&a[0], (-1.0, 1.0), f64::acos);
    "acosd" (1) => |_, a| {
        within(&a[0], (-1.0, 1.0), |x| if x < 0.0 { 90.0 + angle_of_sine(-x) } else { angle_of_cosine(x) })
    };
    "acosh" (1) => |_, a| within(&a[0], (1.0, f64::INFINITY), f64::acosh);
    "asin" (1) => |_, a| within(&a[0], (-1.0, 1.0), f64::asin);
    "asind" (1) => |_, a| within(&a[0], (-1.0, 1.0), |x| signed(angle_of_sine(x.abs()), x < 0.0));
    "asinh" (1) => |_, a| Ok(Value::Double(double(&a[0])?.asinh()));
    "atan" (1) => |_, a| Ok(Value::Double(double(&a[0])?.atan()));
    "atan2" (2) => |_, a| Ok(Value::Double(double(&a[0])?.atan2(double(&a[1])?)));
    "atan2d" (2) => |_, a| Ok(Value::Double(double(&a[0])?.atan2(double(&a[1])?) / 1f64.atan() * 45.0));
    "atand" (1) => |_, a| Ok(Value::Double(double(&a[0])?.atan() / 1f64.atan() * 45.0));
    "atanh" (1) => |_, a| within(&a[0], (-1.0, 1.0), f64::atanh);
    "cbrt" (1) => |_, a| Ok(Value::Double(double(&a[0])?.cbrt()));
    "cos" (1) => |_, a| finite(&a[0], f64::cos);
    "cosd" (1) => |_, a| finite(&a[0], cosine_of_degrees);
    "cosh" (1) => |_, a| Ok(Value::Double(double(&a[0])?.cosh()));
    "cot" (1) => |_, a| finite(&a[0], |x| 1.0 / x.tan());
    "cotd" (1) => |_, a| finite(&a[0], cotangent_of_degrees);
    "degrees" (1) => |_, a| {
        let (x, found) = (double(&a[0])?, double(&a[0])? / DEGREE);
        let is_overflow = found.is_infinite() && !x.is_infinite();
        if is_overflow { Err(Error::new(Condition::NumericOutOfRange, "value out of range: overflow")) } else { Ok(Value::Double(found)) }
    };
    "radians" (1) => |_, a| Ok(Value::Double(double(&a[0])? * DEGREE));
    "sin" (1) => |_, a| finite(&a[0], f64::sin);
    "sind" (1) => |_, a| finite(&a[0], sine_of_degrees);
    "sinh" (1) => |_, a| Ok(Value::Double(double(&a[0])?.sinh()));
    "tan" (1) => |_, a| finite(&a[0], f64::tan);
    "tand" (1) => |_, a| finite(&a[0], tangent_of_degrees);
    "tanh" (1) => |_, a| Ok(Value::Double(double(&a[0])?.tanh()));
}

/// Errors: a number is below zero, or one that has more digits than numbers may have.
fn factorial(value: &Value) -> Result<Value> {
    let written = || double(value).ok().map(|number| number as i128);
    let count = value.as_integer().or_else(written).unwrap_or(0);
    if count < 0 {
        return Err(Error::new(Condition::NumericOutOfRange, "factorial of a negative number is undefined"));
    }
    let found = (1..=count).try_fold(1i128, i128::checked_mul).and_then(|product| Decimal::new(product, 0));
    found.map(Value::decimal).ok_or_else(|| Error::new(Condition::NumericOutOfRange, "value overflows numeric format"))
}
