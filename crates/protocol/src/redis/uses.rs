//! When keys were used, and how often: `OBJECT IDLETIME` and `OBJECT FREQ`.
//!
//! Noting it costs a look into a table at every key that is found, which nobody pays who does not want it: the table is made by the first
//! `OBJECT IDLETIME`, or by a `maxmemory-policy` of `lru` or `lfu`, and goes with a policy that is neither. What happened before is not known: such a key was used when
//! the table was made, as far as anybody can tell. Keys have their places in it by their hashes, so two may share one; then either counts as used when the
//! other is. The count is Redis' own: the greater, the more seldom it grows, and it falls by one a minute.

use super::call::Call;
use super::failure::Outcome;

/// Places of the table, 8 bytes each.
const PLACES: usize = 1 << 20;
/// What a key begins with, so that it does not leave before it could be used again.
const FIRST_COUNT: u8 = 5;

/// Commands that look at a key and do not use it.
const LOOKERS: &[&[u8]] =
    &[b"type", b"ttl", b"pttl", b"expiretime", b"pexpiretime", b"exists", b"object", b"memory", b"debug"];

const TRACKS_TIME: &str = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";
const TRACKS_NO_COUNT: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";

/// What is known of the keys of one place.
#[derive(Clone, Copy, Default)]
struct Use {
    /// Seconds since 1970; 0: not used since the table was made.
    at_s: u32,
    count: u8,
}

/// See the head of this file.
pub(super) struct Uses {
    places: Vec<Use>,
    begun_s: u32,
}

impl Uses {
    pub(super) fn new(now_ms: u64) -> Self {
        Uses { places: vec![Use::default(); PLACES], begun_s: seconds(now_ms) }
    }

    fn place(&self, db: usize, key: &[u8]) -> usize {
        // FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/
        let begin = 0xcbf2_9ce4_8422_2325_u64 ^ db as u64;
        let hash = key.iter().fold(begin, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        (hash ^ hash >> 32) as usize % PLACES
    }

    /// What a place comes to now: its count falls while nobody uses it.
    fn now(&self, place: usize, now_s: u32, minutes: u64) -> Use {
        let known = self.places[place];
        let idle_minutes = u64::from(now_s.saturating_sub(known.at_s)) / 60;
        let fallen = idle_minutes.checked_div(minutes).unwrap_or(0);
        Use { count: known.count.saturating_sub(u8::try_from(fallen).unwrap_or(u8::MAX)), ..known }
    }

    /// Notes a use. `random` is below 2^32.
    fn note(&mut self, db: usize, key: &[u8], now_ms: u64, (minutes, factor): (u64, u64), random: u64) {
        let (place, now_s) = (self.place(db, key), seconds(now_ms));
        let Use { at_s, count } = self.now(place, now_s, minutes);
        let count = match (at_s, u64::from(count).saturating_sub(u64::from(FIRST_COUNT))) {
            (0, _) => FIRST_COUNT,
            // The chance to grow is one in as many as it was used already, times the factor.
            (_, over) if count < u8::MAX && random.saturating_mul(over.saturating_mul(factor) + 1) >> 32 == 0 => {
                count + 1
            }
            _ => count,
        };
        self.places[place] = Use { at_s: now_s, count };
    }

    /// Says what a key has been, for one that comes from elsewhere.
    pub(super) fn set(&mut self, db: usize, key: &[u8], now_ms: u64, idle_s: u64, count: u8) {
        let place = self.place(db, key);
        let idle_s = u32::try_from(idle_s).unwrap_or(u32::MAX);
        self.places[place] = Use { at_s: seconds(now_ms).saturating_sub(idle_s).max(1), count };
    }

    fn idle_s(&self, db: usize, key: &[u8], now_ms: u64) -> u32 {
        let at_s = self.places[self.place(db, key)].at_s;
        seconds(now_ms).saturating_sub(if at_s == 0 { self.begun_s } else { at_s })
    }
}

fn seconds(now_ms: u64) -> u32 {
    u32::try_from(now_ms / 1000).unwrap_or(u32::MAX)
}

/// True if a policy wants to know when or how often keys are used.
pub(super) fn is_wanted_by(policy: &str) -> bool {
    policy.ends_with("lru") || policy.ends_with("lfu")
}

/// A key was found: whoever does more than look at it has used it.
#[cold]
pub(super) fn note(call: &Call<'_>, key: &[u8]) {
    if call.args.first().is_some_and(|name| LOOKERS.iter().any(|looker| name.eq_ignore_ascii_case(looker))) {
        return;
    }
    let pace = (super::config::number(call, "lfu-decay-time"), super::config::number(call, "lfu-log-factor"));
    let random = call.random(1 << 32);
    if let Some(uses) = call.shared.uses.borrow_mut().as_mut() {
        uses.note(call.db, key, call.database.now_ms(), pace, random);
    }
}

/// `OBJECT IDLETIME` and `OBJECT FREQ` of a key that is there.
pub(super) fn answer(call: &mut Call<'_>, key: &[u8]) -> Outcome {
    let counts = call.shared.config.borrow().get("maxmemory-policy").is_some_and(|policy| policy.ends_with("lfu"));
    let (now_ms, wants_count) = (call.database.now_ms(), call.is_word(1, "freq"));
    match (wants_count, counts) {
        (true, false) => return Err(TRACKS_NO_COUNT.into()),
        (false, true) => return Err(TRACKS_TIME.into()),
        _ => call.shared.note_uses(true, now_ms),
    }
    let minutes = super::config::number(call, "lfu-decay-time");
    let value = call.shared.uses.borrow().as_ref().map_or(0, |uses| match wants_count {
        true => u32::from(uses.now(uses.place(call.db, key), seconds(now_ms), minutes).count),
        false => uses.idle_s(call.db, key, now_ms),
    });
    call.reply().integer(i64::from(value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_idle_since_it_was_used_or_the_table_was_made() {
        let mut uses = Uses::new(1_000_000);
        assert_eq!(uses.idle_s(0, b"a", 1_005_000), 5);
        uses.note(0, b"a", 1_005_000, (1, 10), 0);
        assert_eq!(uses.idle_s(0, b"a", 1_005_900), 0);
        assert_eq!(uses.idle_s(0, b"a", 1_015_000), 10);
        assert_eq!(uses.idle_s(1, b"a", 1_015_000), 15, "another database");
        uses.set(0, b"b", 1_015_000, 1000, 7);
        assert_eq!(uses.idle_s(0, b"b", 1_015_000), 1000);
    }

    #[test]
    fn the_count_grows_by_chance_and_falls_by_minutes() {
        let mut uses = Uses::new(1_000_000);
        let count = |uses: &Uses, now_ms| uses.now(uses.place(0, b"a"), seconds(now_ms), 1).count;
        assert_eq!(count(&uses, 1_000_000), 0, "nothing is known of it");
        uses.note(0, b"a", 1_000_000, (1, 10), u64::from(u32::MAX));
        assert_eq!(count(&uses, 1_000_000), FIRST_COUNT);
        uses.note(0, b"a", 1_000_000, (1, 10), u64::from(u32::MAX));
        assert_eq!(count(&uses, 1_000_000), FIRST_COUNT + 1, "the first time it is sure");
        uses.note(0, b"a", 1_000_000, (1, 10), u64::from(u32::MAX));
        assert_eq!(count(&uses, 1_000_000), FIRST_COUNT + 1);
        uses.note(0, b"a", 1_000_000, (1, 10), 0);
        assert_eq!(count(&uses, 1_000_000), FIRST_COUNT + 2);
        assert_eq!(count(&uses, 1_000_000 + 3 * 60_000), FIRST_COUNT - 1);
        assert_eq!(count(&uses, 1_000_000 + 600 * 60_000), 0);
    }
}
