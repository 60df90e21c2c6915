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
        None => {
            let position = state.check_number(2, "position")? as u32;
            return Err(format!("incorrect value to convert to decimal as {position} argument").into());
        }
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
    Ok(value.with_precision(3 * DECIMAL_DIGITS).value())
}

/// `coefficient * 10^-scale`, rounded. Errors: it is too large.
fn rounded(coefficient: &IBig, scale: i64) -> Result<Decimal, Raise> {
    let text = coefficient.to_string();
    let digits = text.trim_start_matches('-');
    Decimal::rounded(text.starts_with('-'), digits.as_bytes(), scale).ok_or_else(failed)
}

/// Rounds a result to 38 digits. One that had to be rounded (or `is_inexact`) has all of its digits, an exact one zeros at
/// its end up to `scale`. Errors: it is too large.
fn narrow(value: DBig, scale: i64, is_inexact: bool) -> Result<Decimal, Raise> {
    let digits_of = |number: &IBig| number.to_string().trim_start_matches('-').len() as i64;
    let (whole, _) = value.clone().into_repr().into_parts();
    let is_inexact = is_inexact || digits_of(&whole) > DECIMAL_DIGITS as i64;
    let (mut significand, exponent) = value.with_precision(DECIMAL_DIGITS).value().into_repr().into_parts();
    let mut places = -(exponent as i64);
    let room = (DECIMAL_DIGITS as i64 - digits_of(&significand)).max(0);
    let zeros = if is_inexact { room.min(DECIMAL_DIGITS as i64 - places) } else { (scale - places).min(room) };
    if zeros > 0 {
        significand *= IBig::from(10).pow(zeros as usize);
        places += zeros;
    }
    rounded(&significand, places)
}

/// The 38 digits of a result that is not exact, wherever the point is.
fn all_digits(value: DBig) -> Result<Decimal, Raise> {
    let (significand, exponent) = value.with_precision(DECIMAL_DIGITS).value().into_repr().into_parts();
    let digits = significand.to_string();
    let missing = DECIMAL_DIGITS.saturating_sub(digits.trim_start_matches('-').len());
    let coefficient = format!("{digits}{}", "0".repeat(missing)).parse::<i128>().map_err(|_| failed())?;
    let scale = i32::try_from(missing as i64 - exponent as i64).map_err(|_| failed())?;
    Decimal::new(coefficient, scale).ok_or_else(failed)
}

/// The places that a natural logarithm has at most.
const LOGARITHM_PLACES_MAX: i32 = 37;

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
        let is_negative = a.is_negative() && exponent.is_some_and(|exponent| exponent % 2 != 0);
        let result = Decimal::with_sign(is_negative, 0, 0).ok_or_else(failed)?;
        return if *b > zero { Ok(result) } else { Err(failed()) };
    }
    if *a == Decimal::from(1i64) && exponent.is_some() {
        return Ok(*a);
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
        return narrow(wide(a)?.powi((exponent as i64).into()), places, false);
    }
    let base = wide(&if *a < zero { a.negated() } else { *a })?;
    let result = narrow(base.powf(&wide(b)?), 0, true)?;
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
        "/" if a == zero => {
            let places = (scale_a - scale_b).clamp(0, DECIMAL_DIGITS as i64) as i32;
            Decimal::with_sign(a.is_negative() != b.is_negative(), 0, places).ok_or_else(failed)?
        }
        "/" => narrow(wide(&a)? / wide(&b)?, scale_a - scale_b, false)?,
        "%" => {
            let (x, y, scale) = aligned(&a, &b);
            if (&x / &y).to_string().trim_start_matches('-').len() > DECIMAL_DIGITS {
                return Err(failed());
            }
            let rest = x % y;
            if rest == IBig::ZERO {
                Decimal::with_sign(a.is_negative(), 0, scale as i32).ok_or_else(failed)?
            } else {
                rounded(&rest, scale)?
            }
        }
        "^" => power(&a, &b)?,
        "sqrt" if a >= zero => narrow(wide(&a)?.sqrt(), (scale_a + 1).div_euclid(2), false)?,
        "exp" if a == zero => Decimal::from(1i64),
        "exp" if a.to_f64() < -200.0 => Decimal::new(0, DECIMAL_DIGITS as i32).ok_or_else(failed)?,
        "exp" if a.to_f64() < 90.0 => narrow(wide(&a)?.exp(), 0, true)?,
        "ln" if a == Decimal::from(1i64) => zero,
        "ln" if a > zero => round_to(&narrow(wide(&a)?.ln(), 0, true)?, LOGARITHM_PLACES_MAX).ok_or_else(failed)?,
        "log10" if a > zero => {
            let (significand, exponent) = wide(&a)?.into_repr().into_parts();
            if significand == IBig::ONE {
                Decimal::from(exponent as i64)
            } else {
                let ten = wide(&Decimal::from(10i64))?;
                all_digits(wide(&a)?.ln() / ten.ln())?
            }
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
    // Zeros between the digits and the point count, too.
    let whole = digits + (-scale).max(0) as usize;
    state.push_number(whole.max(scale.max(0) as usize) as f64);
    state.push_number(f64::from(scale.max(0)));
    Ok(2)
}

/// With that many places at most: half away from zero, in one step.
fn round_to(decimal: &Decimal, places: i32) -> Option<Decimal> {
    let (mut coefficient, scale) = decimal.parts();
    if scale <= places {
        return Some(*decimal);
    }
    let factor = 10i128.checked_pow((scale - places) as u32)?;
    let rest = coefficient % factor;
    coefficient /= factor;
    if rest.unsigned_abs() * 2 >= factor.unsigned_abs() {
        coefficient += rest.signum();
    }
    Decimal::with_sign(decimal.is_negative(), coefficient.unsigned_abs(), places)
}

/// decimal_round(decimal, digits behind the point, true to drop zeros or "rescale" to add them). What cannot be done leaves
/// the decimal as it is.
fn decimal_round(state: State) -> Outcome {
    let decimal = decimal_at(state, 1).ok_or("a decimal is expected")?;
    let wanted = state.check_number(2, "scale")? as i32;
    let is_rescale = state.string(3).is_some();
    if !is_rescale && state.boolean(3) {
        push_decimal(state, &decimal.normalized());
        return Ok(1);
    }
    let (coefficient, scale) = decimal.parts();
    let widened = || {
        // A zero has a digit, too.
        if coefficient == 0 && wanted - scale >= DECIMAL_DIGITS as i32 {
            return None;
        }
        let factor = 10u128.checked_pow((wanted - scale) as u32)?;
        Decimal::with_sign(decimal.is_negative(), coefficient.unsigned_abs().checked_mul(factor)?, wanted)
    };
    let result = match (0..=DECIMAL_DIGITS as i32).contains(&wanted) {
        true if wanted < scale => round_to(&decimal, wanted),
        true if wanted > scale && is_rescale => widened(),
        _ => None,
    };
    push_decimal(state, &result.unwrap_or(decimal));
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
