//! Moments and intervals: their bodies in msgpack, their order and their texts. What they mean together is the module `datetime` of Lua.
//!
//! ```text
//! datetime  seconds i64 | nanoseconds i32 | offset in minutes i16 | number of the zone i16    little endian; the last three absent if all are zero
//! interval  number of fields u8, then field and value of each as msgpack integers
//! ```

use crate::msgpack::{self, Reader};
use std::fmt;
use std::sync::OnceLock;

/// Nanoseconds of a second.
const SECOND_NS: i32 = 1_000_000_000;
/// Seconds of a day.
const DAY_S: i64 = 86_400;
/// The last day, 5879611-07-11, and the first, -5879610-06-22, in days since 1970.
const DAYS: std::ops::RangeInclusive<i64> = -2_148_202_811..=2_146_764_484;
/// Offsets of zones, in minutes.
const OFFSETS: std::ops::RangeInclusive<i16> = -720..=840;

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datetime {
    /// Seconds since 1970, in UTC.
    pub seconds: i64,
    /// Nanoseconds behind them.
    pub nanoseconds: i32,
    /// Minutes that its zone is ahead of UTC.
    pub offset: i16,
    /// The number of its zone; 0 if it has none.
    pub zone: i16,
}

/// A difference of moments. Fields have no order: a month is no number of days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Year, month, week, day, hour, minute, second, nanosecond.
    pub fields: [i64; 8],
    /// What becomes of a day that a month has not: 0 excess, 1 none, 2 last.
    pub adjust: i64,
}

/// Names of the fields, in their order.
const FIELD_NAMES: [&str; 8] = ["years", "months", "weeks", "days", "hours", "minutes", "seconds", "nanoseconds"];
/// The number of `adjust` among the fields.
const ADJUST: u64 = 8;
/// What `adjust` is if nobody says.
pub const ADJUST_NONE: i64 = 1;

impl Datetime {
    /// From the body of an extension. None: it is not one. A zone may have a number that is not known here: others make rows, too.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let (seconds, rest) = body.split_first_chunk::<8>()?;
        let mut found = Datetime { seconds: i64::from_le_bytes(*seconds), ..Datetime::default() };
        if !rest.is_empty() {
            let (nanoseconds, rest) = rest.split_first_chunk::<4>()?;
            let (offset, rest) = rest.split_first_chunk::<2>()?;
            found.nanoseconds = i32::from_le_bytes(*nanoseconds);
            found.offset = i16::from_le_bytes(*offset);
            found.zone = i16::from_le_bytes(*rest.first_chunk::<2>().filter(|_| rest.len() == 2)?);
        }
        found.is_good().then_some(found)
    }

    /// True if it is within the calendar, and its parts are within theirs.
    pub fn is_good(&self) -> bool {
        DAYS.contains(&self.seconds.div_euclid(DAY_S))
            && (0..SECOND_NS).contains(&self.nanoseconds)
            && OFFSETS.contains(&self.offset)
    }

    /// Appends the value as msgpack.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut body = [0; 16];
        body[..8].copy_from_slice(&self.seconds.to_le_bytes());
        body[8..12].copy_from_slice(&self.nanoseconds.to_le_bytes());
        body[12..14].copy_from_slice(&self.offset.to_le_bytes());
        body[14..].copy_from_slice(&self.zone.to_le_bytes());
        let is_short = self.nanoseconds == 0 && self.offset == 0 && self.zone == 0;
        msgpack::encode_ext(out, msgpack::EXT_DATETIME, &body[..if is_short { 8 } else { 16 }]);
    }

    /// Bytes that are ordered as moments are, wherever they were read off a clock.
    pub fn ordered(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&(self.seconds as u64 ^ 1 << 63).to_be_bytes());
        bytes[8..].copy_from_slice(&(self.nanoseconds as u32).to_be_bytes());
        bytes
    }
}

/// Year, month and day of a number of days since 1970, of the calendar that the Gregorian one makes if it has no beginning.
pub fn date_of(days: i64) -> (i64, u32, u32) {
    // Years begin in March, so the day that some have more is their last; 400 of them have always as many days.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month as u32, day as u32)
}

impl fmt::Display for Datetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.seconds + i64::from(self.offset) * 60;
        let (year, month, day) = date_of(local.div_euclid(DAY_S));
        let second = local.rem_euclid(DAY_S);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match self.nanoseconds {
            0 => {}
            ns if ns % 1_000_000 == 0 => write!(f, ".{:03}", ns / 1_000_000)?,
            ns if ns % 1000 == 0 => write!(f, ".{:06}", ns / 1000)?,
            ns => write!(f, ".{ns:09}")?,
        }
        match (zone_name(self.zone).filter(|_| self.zone != 0), self.offset) {
            // A letter stands right behind, as Z does.
            (Some(name), _) if name.len() == 1 => f.write_str(name),
            (Some(name), _) => write!(f, " {name}"),
            (None, 0) => f.write_str("Z"),
            (None, offset) => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}{:02}", offset.unsigned_abs() / 60, offset.unsigned_abs() % 60)
            }
        }
    }
}

impl Interval {
    /// From the body of an extension. None: it is not one.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let (&count, rest) = body.split_first()?;
        let mut found = Interval { adjust: 0, ..Interval::default() };
        let mut reader = Reader::new(rest);
        for _ in 0..count {
            let field = reader.read_uint().ok()?;
            let value = i64::try_from(reader.read_i128().ok()?).ok()?;
            match field {
                ADJUST if (0..=2).contains(&value) => found.adjust = value,
                _ => *found.fields.get_mut(usize::try_from(field).ok()?)? = value,
            }
        }
        reader.rest().is_empty().then_some(found)
    }

    /// Appends the value as msgpack. Fields that are zero are left out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut body = vec![0];
        let all = self.fields.iter().chain([&self.adjust]);
        for (field, value) in all.enumerate().filter(|(_, value)| **value != 0) {
            msgpack::encode_uint(&mut body, field as u64);
            msgpack::encode_int(&mut body, *value);
            body[0] += 1;
        }
        msgpack::encode_ext(out, msgpack::EXT_INTERVAL, &body);
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for (value, name) in self.fields.iter().zip(FIELD_NAMES).filter(|(value, _)| **value != 0) {
            match std::mem::take(&mut is_first) {
                true => write!(f, "{value:+} {name}")?,
                false => write!(f, ", {value} {name}")?,
            }
        }
        if is_first { f.write_str("0 seconds") } else { Ok(()) }
    }
}

/// A time zone, or an abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its number.
    pub number: i16,
    /// Its name.
    pub name: &'static str,
    /// Minutes that an abbreviation is ahead of UTC; zones have rules.
    pub offset: Option<i16>,
    /// Several zones are abbreviated so.
    pub is_ambiguous: bool,
}

/// All zones, by their names.
pub fn zones() -> &'static [Zone] {
    static ZONES: OnceLock<Vec<Zone>> = OnceLock::new();
    let read = |line: &'static str| {
        let mut words = line.split(' ');
        let (number, name) = (words.next()?.parse().ok()?, words.next()?);
        let offset = words.next().and_then(|offset| offset.parse().ok());
        Some(Zone { number, name, offset, is_ambiguous: words.next().is_some() })
    };
    ZONES.get_or_init(|| {
        include_str!("zones.txt").lines().filter(|line| !line.starts_with('#')).filter_map(read).collect()
    })
}

/// The name of a zone's number.
pub fn zone_name(number: i16) -> Option<&'static str> {
    let all = zones();
    // Ordered by number; of several names the first is shown.
    let at = all.partition_point(|zone| zone.number < number);
    all.get(at).filter(|zone| zone.number == number).map(|zone| zone.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    fn body(bytes: &[u8]) -> &[u8] {
        Reader::new(bytes).read_ext().unwrap().1
    }

    #[test]
    fn texts_are_those_of_tarantool() {
        let text = |seconds, nanoseconds, offset, zone| Datetime { seconds, nanoseconds, offset, zone }.to_string();
        assert_eq!(text(0, 0, 0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(text(951_782_400, 1_000_000, 0, 0), "2000-02-29T00:00:00.001Z");
        assert_eq!(text(951_782_400, 12_000, 180, 0), "2000-02-29T03:00:00.000012+0300");
        assert_eq!(text(-1, 123, -90, 0), "1969-12-31T22:29:59.000000123-0130");
        let moscow = zones().iter().find(|zone| zone.name == "Europe/Moscow").unwrap();
        assert_eq!(text(1_640_995_200, 0, 180, moscow.number), "2022-01-01T03:00:00 Europe/Moscow");
        let interval = |fields| Interval { fields, adjust: 0 }.to_string();
        assert_eq!(interval([0; 8]), "0 seconds");
        assert_eq!(interval([1, -2, 0, 4, 0, 0, 7, 8]), "+1 years, -2 months, 4 days, 7 seconds, 8 nanoseconds");
        assert_eq!(interval([0, 0, 0, -1, 0, 0, 0, 0]), "-1 days");
    }

    #[test]
    fn zones_have_names_and_numbers() {
        assert!(zones().is_sorted_by_key(|zone| zone.number));
        assert_eq!(zone_name(1), Some("A"));
        assert!(zone_name(0).is_none() && zone_name(-1).is_none() && zone_name(i16::MAX).is_none());
        assert!(zones().iter().any(|zone| zone.name == "MSK" && zone.offset == Some(180) && !zone.is_ambiguous));
    }

    #[test]
    fn days_are_counted_without_a_gap() {
        let (mut before, mut count) = (date_of(-800_000), 0);
        for days in -799_999..800_000 {
            let (year, month, day) = date_of(days);
            count += 1;
            match before {
                (y, 12, 31) => assert_eq!((year, month, day), (y + 1, 1, 1)),
                (y, m, d) if (year, month) == (y, m) => assert_eq!(day, d + 1),
                (y, m, d) => {
                    assert_eq!((year, month, day), (y, m + 1, 1));
                    let is_leap = y.rem_euclid(4) == 0 && (y.rem_euclid(100) != 0 || y.rem_euclid(400) == 0);
                    let last =
                        [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][m as usize - 1];
                    assert_eq!(d, last, "{y}-{m}");
                }
            }
            before = (year, month, day);
        }
        assert_eq!((date_of(0), count), ((1970, 1, 1), 1_599_999));
        assert_eq!(date_of(*DAYS.start()), (-5_879_610, 6, 22));
        assert_eq!(date_of(*DAYS.end()), (5_879_611, 7, 11));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(seconds in -185_604_722_784_000i64..185_480_451_417_600, ns in 0..SECOND_NS, offset in -720..=840i16, zone in 0..2i16) {
            let value = Datetime { seconds, nanoseconds: ns, offset, zone };
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            prop_assert_eq!(Datetime::decode(body(&bytes)), Some(value));
        }

        #[test]
        fn moments_are_ordered_as_their_bytes(a in -1000..1000i64, b in -1000..1000i64, c in 0..3i32, d in 0..3i32) {
            let of = |seconds, nanoseconds, offset| Datetime { seconds, nanoseconds, offset, zone: 0 };
            let (x, y) = (of(a, c, 60), of(b, d, -60));
            prop_assert_eq!(x.ordered().cmp(&y.ordered()), (a, c).cmp(&(b, d)));
        }

        #[test]
        fn intervals_come_back(fields in any::<[i64; 8]>(), adjust in 0..3i64) {
            let value = Interval { fields, adjust };
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            prop_assert_eq!(Interval::decode(body(&bytes)), Some(value));
        }

        #[test]
        fn any_bytes_are_a_value_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            for text in [Datetime::decode(&bytes).map(|v| v.to_string()), Interval::decode(&bytes).map(|v| v.to_string())] {
                prop_assert!(text.is_none_or(|text| !text.is_empty()));
            }
        }
    }
}
