//! The C functions under the module `datetime`: time zones and texts. The arithmetic is the module's own.

use crate::convert::{datetime_at, interval_at};
use crate::state::{Function, Raise, State};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::ffi::c_int;
use tuple::datetime::{Zone, zone_name, zones};

type Outcome = Result<c_int, Raise>;

/// The zone of a name. Names of places have one spelling, abbreviations any.
fn zone_of(name: &str) -> Option<&'static Zone> {
    let all = zones();
    let exact = all.iter().find(|zone| zone.name == name);
    exact.or_else(|| all.iter().find(|zone| zone.offset.is_some() && zone.name.eq_ignore_ascii_case(name)))
}

/// Minutes that a zone is ahead of UTC at a moment, and whether its clocks are put forward then. None: nobody knows its rules.
fn offset_of(zone: &Zone, seconds: i64) -> Option<(i64, bool)> {
    if let Some(offset) = zone.offset {
        return Some((i64::from(offset), false));
    }
    let rules = TimeZone::get(zone.name).ok()?;
    // Beyond what the library counts rules are those of its ends.
    let moment = Timestamp::from_second(seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second())).ok()?;
    let found = rules.to_offset_info(moment);
    Some((i64::from(found.offset().seconds()).div_euclid(60), found.dst().is_dst()))
}

/// datetime_zone(name) -> number, true if the abbreviation is ambiguous; nothing if there is none
fn datetime_zone(state: State) -> Outcome {
    let name = state.check_string(1, "time zone")?;
    let Some(zone) = zone_of(&name) else { return Ok(0) };
    state.push_number(f64::from(zone.number));
    state.push_bool(zone.is_ambiguous);
    Ok(2)
}

/// datetime_offset(number, seconds, is_local) -> minutes ahead of UTC, is it summer time; nothing if the zone is not known.
/// `is_local`: the seconds are those that a clock there shows.
fn datetime_offset(state: State) -> Outcome {
    let (number, seconds) = (state.check_number(1, "zone")?, state.check_number(2, "seconds")? as i64);
    let Some(zone) = zones().iter().find(|zone| f64::from(zone.number) == number) else { return Ok(0) };
    let Some(mut found) = offset_of(zone, seconds) else { return Ok(0) };
    if state.boolean(3) {
        // A clock that shows this is so far ahead; near a change the second look corrects the first.
        for _ in 0..2 {
            found = offset_of(zone, seconds.saturating_sub(found.0 * 60)).unwrap_or(found);
        }
    }
    state.push_number(found.0 as f64);
    state.push_bool(found.1);
    Ok(2)
}

/// datetime_zone_name(number) -> name or nil
fn datetime_zone_name(state: State) -> Outcome {
    match state.number(1).and_then(|number| zone_name(number as i16)) {
        Some(name) => state.push_str(name),
        None => state.push_nil(),
    }
    Ok(1)
}

/// datetime_zones() -> {name = number, number = name}
fn datetime_zones(state: State) -> Outcome {
    state.new_table(0, 2 * zones().len());
    let table = state.top();
    for zone in zones() {
        state.push_number(f64::from(zone.number));
        state.set_field(table, zone.name);
        if zone_name(zone.number) == Some(zone.name) {
            state.push_str(zone.name);
            state.raw_set_index(table, c_int::from(zone.number));
        }
    }
    Ok(1)
}

/// datetime_here(seconds) -> minutes that clocks here are ahead of UTC
fn datetime_here(state: State) -> Outcome {
    let seconds = state.check_number(1, "seconds")? as i64;
    state.push_number((runtime::terminal::local_time(seconds).ahead / 60) as f64);
    Ok(1)
}

/// datetime_text(datetime) -> text
fn datetime_text(state: State) -> Outcome {
    let value = datetime_at(state, 1).ok_or("a datetime is expected")?;
    state.push_str(&value.to_string());
    Ok(1)
}

/// interval_text(interval) -> text
fn interval_text(state: State) -> Outcome {
    let value = interval_at(state, 1).ok_or("an interval is expected")?;
    state.push_str(&value.to_string());
    Ok(1)
}

/// Functions of `box.internal` for moments.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("datetime_zone", datetime_zone),
    ("datetime_offset", datetime_offset),
    ("datetime_zone_name", datetime_zone_name),
    ("datetime_zones", datetime_zones),
    ("datetime_here", datetime_here),
    ("datetime_text", datetime_text),
    ("interval_text", interval_text),
];
