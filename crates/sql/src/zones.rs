//! Zones of time: the one that a session reads and shows moments in, and what clocks there show.
//!
//! A moment is kept in UTC. Plans of sessions in UTC, as most are, know nothing of zones; those of others (`Binder::is_zoned`) call functions of this file
//! where a moment becomes something that a clock shows, or comes of it. They ask the session when they run, so that one plan serves all zones.

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::postgres_functions::{clock_in, moment_in, zone};
use crate::run::Run;
use crate::types::Base;
use crate::value::Value;
use jiff::tz::TimeZone;
use std::rc::Rc;
use tuple::datetime::{Datetime, Interval};

const STAMP: Returns = Returns::Type(Base::Timestamp);
const MOMENT: Returns = Returns::Type(Base::TimestampTz);

/// Hours that a zone which a session names by its distance may be from UTC: PostgreSQL takes up to a week.
const HOURS: i64 = 25;

/// A zone that is not UTC.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl From<TimeZone> for Zone {
    fn from(zone: TimeZone) -> Self {
        Zone(zone)
    }
}

impl Zone {
    /// Seconds that a clock there is ahead of UTC at a moment.
    pub fn ahead(&self, moment: &Datetime) -> i64 {
        offset_at(&self.0, moment.seconds)
    }

    /// What its time is called at a moment: `CEST`.
    pub(crate) fn abbreviation(&self, moment: &Datetime) -> String {
        let stamp = jiff::Timestamp::from_second(moment.seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        self.0.to_offset_info(stamp).abbreviation().to_string()
    }

    /// What a clock there shows.
    pub(crate) fn clock(&self, moment: &Datetime) -> Option<Datetime> {
        clock_in(&self.0, moment)
    }

    /// When a clock there shows it.
    pub(crate) fn moment(&self, clock: &Datetime) -> Option<Datetime> {
        moment_in(&self.0, clock)
    }

    /// The zone of a setting of PostgreSQL's or MySQL's, as it was checked. None: UTC.
    pub(crate) fn of_setting(setting: &str, is_mysql: bool) -> Option<Zone> {
        let found = if is_mysql { of_mysql(setting)? } else { zone(setting, true).ok()? };
        let is_utc = found == TimeZone::UTC || found.to_fixed_offset().is_ok_and(|offset| offset.is_zero());
        (!is_utc).then_some(Zone(found))
    }
}

/// Seconds that a clock is ahead of UTC at a moment, in seconds since 1970. Of times too far away it is what it is at the last that are known.
pub(crate) fn offset_at(zone: &TimeZone, seconds: i64) -> i64 {
    let last = if seconds < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    i64::from(zone.to_offset(jiff::Timestamp::from_second(seconds).unwrap_or(last)).seconds())
}

/// A zone by MySQL's names: `SYSTEM`, `+02:00`, `Europe/Berlin`.
pub(crate) fn of_mysql(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("system") {
        return Some(TimeZone::UTC);
    }
    if name.starts_with(['+', '-']) {
        let seconds = crate::mysql::moments::zone_seconds(name)?;
        return Some(TimeZone::fixed(jiff::tz::Offset::from_seconds(i32::try_from(seconds).ok()?).ok()?));
    }
    let is_name = name.len() < 100 && name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name.then(|| TimeZone::get(name).ok()).flatten()
}

/// PostgreSQL's setting as it is kept and shown. None: there is no such zone.
pub(crate) fn checked_setting(value: &str) -> Option<String> {
    let value = value.trim();
    if value.len() > 100 {
        return None;
    }
    let seconds = |text: &str| {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
        let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.split(':').next()?.parse::<i64>().ok()?);
        (hours <= HOURS && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    };
    let as_offset = |seconds: i64| {
        let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
        let shown = if minutes == 0 { format!("{hours:02}") } else { format!("{hours:02}:{minutes:02}") };
        if seconds < 0 { format!("<-{shown}>+{shown}") } else { format!("<+{shown}>-{shown}") }
    };
    if value.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("interval")) {
        return seconds(value.split('\'').nth(1)?.trim()).map(as_offset);
    }
    if let Ok(hours) = value.parse::<f64>() {
        return (hours.abs() <= HOURS as f64).then(|| as_offset((hours * 3600.0) as i64));
    }
    // A clock with seconds has some that leap, PostgreSQL says.
    if value.matches(':').count() > 1 {
        return None;
    }
    let found = zone(value, true).ok()?;
    Some(match found.iana_name() {
        Some(name) if name.eq_ignore_ascii_case(value) => name.to_string(),
        _ => value.to_string(),
    })
}

fn moment(value: &Value) -> Result<&Datetime> {
    match value {
        Value::Datetime(moment) => Ok(moment),
        _ => Err(Error::new(Condition::InvalidArgument, "a moment is wanted")),
    }
}

fn found(moment: Option<Datetime>) -> Result<Value> {
    let beyond = || Error::new(Condition::DatetimeOverflow, "timestamp out of range");
    moment.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(beyond)
}

/// The moment that a text says, by the zone of the session if it says none.
pub(crate) fn moment_of_text(zone: Option<&Zone>, text: &str) -> Result<Value> {
    let value = crate::parse_value(Dialect::Postgres, text, crate::Type::of(Base::TimestampTz))?;
    match (zone, &value) {
        (Some(zone), Value::Datetime(clock)) if !says_zone(text) => found(zone.moment(clock)),
        _ => Ok(value),
    }
}

/// True for a text of a moment that says its zone.
pub(crate) fn says_zone(text: &str) -> bool {
    let clock = text.trim().split_once([' ', 'T', 't']).map_or("", |(_, clock)| clock);
    let mut words = clock.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let is_zone = |word: &str| !["am", "pm", "ad", "bc"].iter().any(|other| word.eq_ignore_ascii_case(other));
    clock.contains(['+', '-']) || words.any(is_zone)
}

/// A moment so much later: days and months by the clock of the zone.
pub(crate) fn moved(zone: Option<&Zone>, from: &Datetime, interval: &Interval, sign: i64) -> Option<Datetime> {
    let Some(zone) = zone else { return crate::moments::moved(from, interval, sign) };
    let (mut days, mut clock) = (*interval, *interval);
    days.fields[4..].fill(0);
    clock.fields[..4].fill(0);
    let day = match days.fields.iter().all(|field| *field == 0) {
        true => *from,
        false => zone.moment(&crate::moments::moved(&zone.clock(from)?, &days, sign)?)?,
    };
    crate::moments::moved(&day, &clock, sign)
}

crate::functions::alike! {
    is_volatile: false;
    "clock_here" (1, 1) STAMP, true => |run, a| match run.zone() {
        Some(_) if moment(&a[0])?.seconds == crate::mysql::moments::ZERO_SECONDS => Ok(a[0].clone()),
        Some(zone) => found(zone.clock(moment(&a[0])?)),
        None => Ok(a[0].clone()),
    };
    "moment_here" (1, 1) MOMENT, true => |run, a| match run.zone() {
        // MySQL's day that is none.
        Some(_) if moment(&a[0])?.seconds == crate::mysql::moments::ZERO_SECONDS => Ok(a[0].clone()),
        Some(zone) => found(zone.moment(moment(&a[0])?)),
        None => Ok(a[0].clone()),
    };
    "moment_of_text" (1, 1) MOMENT, true => |run, a| match &a[0] {
        Value::Text(text) => moment_of_text(run.zone().as_ref(), text),
        other => Ok(other.clone()),
    };
    "moved_here" (3, 3) MOMENT, true => |run, a| match (&a[1], &a[2]) {
        (Value::Interval(interval), Value::Int(sign)) => found(moved(run.zone().as_ref(), moment(&a[0])?, interval, *sign)),
        _ => Err(Error::new(Condition::InvalidArgument, "a moment and an interval are wanted")),
    };
    "zone_part" (2, 2) Returns::Type(Base::Decimal), true => |run, a| {
        let moment = moment(&a[1])?;
        let ahead = run.zone().map_or(0, |zone| zone.ahead(moment));
        let unit = a[0].as_text().unwrap_or_default().to_ascii_lowercase();
        let number = match unit.as_str() {
            "timezone_hour" => ahead / 3600,
            "timezone_minute" => ahead / 60 % 60,
            _ => ahead,
        };
        Ok(Value::decimal(tuple::decimal::Decimal::from(number)))
    };
}

/// The function of a name.
pub(crate) fn find(dialect: Dialect, name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name).filter(|_| dialect != Dialect::Tarantool)
}

impl Run<'_> {
    /// The zone of the session. None: UTC.
    pub(crate) fn zone(&self) -> Option<Zone> {
        self.session.as_ref().and_then(|session| session.zone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn settings_are_kept_as_postgresql_shows_them() {
        for (value, kept) in [
            ("europe/berlin", Some("Europe/Berlin")),
            ("utc", Some("UTC")),
            ("2", Some("<+02>-02")),
            ("-7", Some("<-07>+07")),
            ("5.5", Some("<+05:30>-05:30")),
            ("INTERVAL '-08:00' HOUR TO MINUTE", Some("<-08>+08")),
            ("+02:00", Some("+02:00")),
            ("01:30", Some("01:30")),
            ("1:75", None),
            ("01:30:15", None),
            ("nowhere", None),
        ] {
            assert_eq!(checked_setting(value).as_deref(), kept, "{value}");
        }
        let ahead = |setting: &str, is_mysql| {
            let moment = Datetime { seconds: 1_720_000_000, ..Datetime::default() };
            Zone::of_setting(setting, is_mysql).map(|zone| zone.ahead(&moment))
        };
        assert_eq!(
            (ahead("Europe/Berlin", false), ahead("<+02>-02", false), ahead("UTC", false)),
            (Some(7200), Some(7200), None)
        );
        assert_eq!(
            (ahead("+02:00", false), ahead("01:30", false), ahead("+02:00", true), ahead("SYSTEM", true)),
            (Some(-7200), Some(-5400), Some(7200), None)
        );
    }

    #[test]
    fn texts_say_zones_or_not() {
        for text in [
            "2024-01-01 12:00+02",
            "2024-01-01T12:00:00Z",
            "2024-01-01 12:00 UTC",
            "2024-01-01 12:00:00-07:30",
            "2024-01-01 12:00 Europe/Berlin",
        ] {
            assert!(says_zone(text), "{text}");
        }
        for text in ["2024-01-01", "2024-01-01 12:00", "2024-01-01T12:00:00.5", "2024-01-01 12:00 PM"] {
            assert!(!says_zone(text), "{text}");
        }
    }
}
