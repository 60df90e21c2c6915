//! Arithmetic of the module `decimal`: exact where the result fits, else rounded to 38 digits.

use crate::convert::{decimal_at, push_decimal};
use crate::state::{Function, Raise, State};
use dashu_float::DBig;
use dashu_int::IBig;
use std::ffi::c_int;
use tuple::decimal::Decimal;

type Outcome = Result<c_int, Raise>;

fn decimal_new(state: State) -> Outcome {
    match decimal_at(state, 1) {
        Some(decimal) => push_decimal(state, &decimal),
        None => return Err("incorrect value to convert to decimal as 1 argument".into()),
    }
    Ok(1)
}

fn decimal_text(state: State) -> Outcome {
    let decimal = decimal_at(state, 1).ok_or("a decimal is expected")?;
    state.push_str(&decimal.to_string());
    Ok(1)
}

/// Digits of results that are not exact.
const DECIMAL_DIGITS: usize = 38;
/// Exponents up to which powers are multiplied out.
const POWER_MAX: i128 = 1_000_000;

fn failed() -> Raise {
    "decimal operation failed".into()
}

fn wide(decimal: &Decimal) -> Result<DBig, Raise> {
    let (coefficient, scale) = decimal.parts();
    let value = DBig::from_parts(IBig::from(coefficient), -scale as isize);
    Ok(value.with_precision(2 * DECIMAL_DIGITS).value())
}

/// `coefficient * 10^-scale`, rounded. Errors: it is too large.
fn rounded(coefficient: &IBig, scale: i64) -> Result<Decimal, Raise> {
    let text = coefficient.to_string();
    let digits = text.trim_start_matches('-');
    Decimal::rounded(text.starts_with('-'), digits.as_bytes(), scale).ok_or_else(failed)
}

/// A result of at most 38 digits, with zeros at its end up to `scale` if it has fewer places. Errors: it is too large.
fn narrow(value: DBig, scale: i64) -> Result<Decimal, Raise> {
    let (mut significand, exponent) = value.with_precision(DECIMAL_DIGITS).value().into_repr().into_parts();
    let mut places = -(exponent as i64);
    let digits = significand.to_string().trim_start_matches('-').len() as i64;
    if places < scale {
        let zeros = (scale - places).clamp(0, (DECIMAL_DIGITS as i64 - digits).max(0));
        significand *= IBig::from(10).pow(zeros as usize);
        places += zeros;
    }
    rounded(&significand, places)
}

/// Both coefficients as of the larger scale, which is returned.
fn aligned(a: &Decimal, b: &Decimal) -> (IBig, IBig, i64) {
    let ((x, scale_x), (y, scale_y)) = (a.parts(), b.parts());
    let scale = scale_x.max(scale_y);
    let widened = |value: i128, by: i32| IBig::from(value) * IBig::from(10).pow((scale - by) as usize);
    (widened(x, scale_x), widened(y, scale_y), i64::from(scale))
}

/// What is too large or too small for a decimal is known before it is calculated, which would take for ever.
fn power(a: &Decimal, b: &Decimal) -> Result<Decimal, Raise> {
    let zero = Decimal::from(0i64);
    let exponent = b.to_integer();
    if *a == zero {
        return if *b > zero { Ok(zero) } else { Err(failed()) };
    }
    if *a < zero && exponent.is_none() {
        return Err(failed());
    }
    let is_negative = *a < zero && exponent.is_some_and(|exponent| exponent % 2 != 0);
    let magnitude = a.to_f64().abs().log10() * b.to_f64();
    if magnitude > 40.0 {
        return Err(failed());
    }
    if magnitude < -60.0 {
        return Decimal::with_sign(is_negative, 0, DECIMAL_DIGITS as i32).ok_or_else(failed);
    }
    if let Some(exponent) = exponent.filter(|exponent| exponent.abs() <= POWER_MAX) {
        let places = i64::from(a.parts().1.max(0)).saturating_mul(exponent.max(0) as i64);
        return narrow(wide(a)?.powi((exponent as i64).into()), places);
    }
    let base = wide(&if *a < zero { a.negated() } else { *a })?;
    let result = narrow(base.powf(&wide(b)?), 0)?;
    Ok(if is_negative { result.negated() } else { result })
}

/// decimal_combine(operation, a, b)
fn decimal_combine(state: State) -> Outcome {
    let operation = state.check_string(1, "operation")?;
    let (Some(a), Some(b)) = (decimal_at(state, 2), decimal_at(state, 3)) else {
        return Err("incorrect value to convert to decimal".into());
    };
    let zero = Decimal::from(0i64);
    let (scale_a, scale_b) = (i64::from(a.parts().1), i64::from(b.parts().1));
    let result = match operation.as_str() {
        "compare" => {
            state.push_number(f64::from(a.cmp(&b) as i32));
            return Ok(1);
        }
        "+" => a.checked_add(b).ok_or_else(failed)?,
        "-" => a.checked_sub(b).ok_or_else(failed)?,
        "*" => {
            let product = IBig::from(a.parts().0) * IBig::from(b.parts().0);
            let is_negative = a.is_negative() != b.is_negative();
            let digits = product.to_string();
            Decimal::rounded(is_negative, digits.trim_start_matches('-').as_bytes(), scale_a + scale_b)
                .ok_or_else(failed)?
        }
        "/" | "%" if b == zero => return Err(failed()),
        "/" => narrow(wide(&a)? / wide(&b)?, scale_a - scale_b)?,
        "%" => {
            let (x, y, scale) = aligned(&a, &b);
            if (&x / &y).to_string().trim_start_matches('-').len() > DECIMAL_DIGITS {
                return Err(failed());
            }
            rounded(&(x % y), scale)?
        }
        "^" => power(&a, &b)?,
        "sqrt" if a >= zero => narrow(wide(&a)?.sqrt(), (scale_a + 1).div_euclid(2))?,
        "exp" if a.to_f64() < -200.0 => Decimal::new(0, DECIMAL_DIGITS as i32).ok_or_else(failed)?,
        "exp" if a.to_f64() < 90.0 => narrow(wide(&a)?.exp(), 0)?,
        "ln" if a > zero => narrow(wide(&a)?.ln(), 0)?,
        "log10" if a > zero => {
            let ten = wide(&Decimal::from(10i64))?;
            narrow(wide(&a)?.ln() / ten.ln(), 0)?
        }
        _ => return Err(failed()),
    };
    push_decimal(state, &result);
    Ok(1)
}

/// decimal_parts(decimal) -> digits, scale
fn decimal_parts(state: State) -> Outcome {
    let decimal = decimal_at(state, 1).ok_or("a decimal is expected")?;
    let (coefficient, scale) = decimal.parts();
    let digits = coefficient.unsigned_abs().to_string().len();
    state.push_number(digits.max(scale.max(0) as usize) as f64);
    state.push_number(f64::from(scale.max(0)));
    Ok(2)
}

/// decimal_round(decimal, digits behind the point, true to drop zeros or "rescale" to add them)
fn decimal_round(state: State) -> Outcome {
    let decimal = decimal_at(state, 1).ok_or("a decimal is expected")?;
    let wanted = state.check_number(2, "scale")? as i32;
    let (mut coefficient, mut scale) = decimal.parts();
    if state.boolean(3) && state.string(3).is_none() {
        push_decimal(state, &decimal.normalized());
        return Ok(1);
    }
    if wanted < scale && (0..=38).contains(&wanted) {
        // Half away from zero, in one step.
        let factor = 10i128.checked_pow((scale - wanted) as u32).ok_or("decimal operation failed")?;
        let rest = coefficient % factor;
        coefficient /= factor;
        if rest.unsigned_abs() * 2 >= factor.unsigned_abs() {
            coefficient += rest.signum();
        }
        scale = wanted;
    } else if state.string(3).is_some() && wanted > scale && wanted <= 38 {
        let factor = 10i128.checked_pow((wanted - scale) as u32).ok_or("decimal operation failed")?;
        coefficient = coefficient.checked_mul(factor).ok_or("decimal operation failed")?;
        scale = wanted;
    }
    let result = Decimal::new(coefficient, scale).ok_or("decimal operation failed")?;
    push_decimal(state, &result);
    Ok(1)
}

/// Functions of `box.internal` for decimals.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("decimal_new", decimal_new),
    ("decimal_text", decimal_text),
    ("decimal_combine", decimal_combine),
    ("decimal_parts", decimal_parts),
    ("decimal_round", decimal_round),
];
