//! Arithmetic of the module `decimal`: exact where the result fits, else rounded to 38 digits.

use crate::convert::{decimal_at, push_decimal};
use crate::state::{Function, Raise, State};
use dashu_float::DBig;
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

fn wide(decimal: &Decimal) -> Result<DBig, Raise> {
    let value: DBig = decimal.to_string().parse().map_err(|_| Raise::from("a decimal is expected"))?;
    Ok(value.with_precision(2 * DECIMAL_DIGITS).value())
}

/// A result of at most 38 digits. Errors: it is larger.
fn narrow(value: DBig) -> Result<Decimal, Raise> {
    let (mut significand, mut exponent) = value.with_precision(DECIMAL_DIGITS).value().into_repr().into_parts();
    let ten = dashu_int::IBig::from(10);
    // Not more than 38 digits behind the point.
    while exponent < -(DECIMAL_DIGITS as isize) {
        significand /= &ten;
        exponent += 1;
    }
    let mut coefficient = i128::try_from(significand).map_err(|_| Raise::from("decimal operation failed"))?;
    while exponent > 0 {
        coefficient = coefficient.checked_mul(10).ok_or("decimal operation failed")?;
        exponent -= 1;
    }
    Decimal::new(coefficient, -exponent as i32)
        .map(Decimal::normalized)
        .ok_or_else(|| "decimal operation failed".into())
}

/// decimal_combine(operation, a, b)
fn decimal_combine(state: State) -> Outcome {
    let operation = state.check_string(1, "operation")?;
    let (Some(a), Some(b)) = (decimal_at(state, 2), decimal_at(state, 3)) else {
        return Err("incorrect value to convert to decimal".into());
    };
    let zero = Decimal::from(0i64);
    let result = match operation.as_str() {
        "compare" => {
            state.push_number(f64::from(a.cmp(&b) as i32));
            return Ok(1);
        }
        "+" => a.checked_add(b).ok_or("decimal operation failed")?,
        "-" => a.checked_sub(b).ok_or("decimal operation failed")?,
        "*" => narrow(wide(&a)? * wide(&b)?)?,
        "/" | "%" if b == zero => return Err("decimal operation failed".into()),
        "/" => narrow(wide(&a)? / wide(&b)?)?,
        "%" => {
            let (x, y) = (wide(&a)?, wide(&b)?);
            let whole = (x.clone() / y.clone()).trunc();
            narrow(x - whole * y)?
        }
        "^" => match b.to_integer() {
            Some(exponent) if exponent.unsigned_abs() < 10_000 => narrow(wide(&a)?.powi((exponent as i64).into()))?,
            _ if a <= zero => return Err("decimal operation failed".into()),
            _ => narrow(wide(&a)?.powf(&wide(&b)?))?,
        },
        "sqrt" if a >= zero => narrow(wide(&a)?.sqrt())?,
        "exp" if a.to_f64() < 90.0 => narrow(wide(&a)?.exp())?,
        "ln" if a > zero => narrow(wide(&a)?.ln())?,
        "log10" if a > zero => {
            let ten = wide(&Decimal::from(10i64))?;
            narrow(wide(&a)?.ln() / ten.ln())?
        }
        _ => return Err("decimal operation failed".into()),
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
