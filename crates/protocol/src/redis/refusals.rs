//! What was refused by rules, and logins that failed: `ACL LOG`.

use super::call::Call;
use super::failure::Outcome;
use std::collections::VecDeque;

/// Entries that are kept, until `acllog-max-len` says otherwise; and as many as it may say.
pub(super) const KEPT: usize = 128;
const KEPT_MAX: usize = 10_000;
/// Bytes that an entry shows of a name.
const OBJECT_BYTES_MAX: usize = 1024;
/// Within so many milliseconds the same refusal is counted where it is.
const SAME_MS: u64 = 60_000;

/// Something that was refused.
pub(super) struct Refusal {
    reason: &'static str,
    place: &'static str,
    object: Vec<u8>,
    user: String,
    count: u64,
    at_ms: u64,
    client: String,
}

impl Refusal {
    /// The user is whoever was named: of a login that failed, anybody and as long as one likes.
    pub(super) fn new(reason: &'static str, place: &'static str, object: &[u8], user: &str) -> Self {
        let object = object[..object.len().min(OBJECT_BYTES_MAX)].to_vec();
        let user = user[..user.floor_char_boundary(OBJECT_BYTES_MAX)].to_string();
        Refusal { reason, place, object, user, count: 1, at_ms: 0, client: String::new() }
    }

    fn is_like(&self, other: &Refusal) -> bool {
        (self.reason, self.place, &self.object, &self.user) == (other.reason, other.place, &other.object, &other.user)
    }
}

/// The newest first.
#[derive(Default)]
pub(super) struct Refusals {
    entries: VecDeque<Refusal>,
    /// How many are kept; none: [`KEPT`].
    kept: Option<usize>,
}

impl Refusals {
    /// Adds one, or counts it if it is there already and not long ago.
    pub(super) fn add(&mut self, mut refusal: Refusal, client: String, now_ms: u64) {
        let known = self
            .entries
            .iter()
            .position(|entry| entry.is_like(&refusal) && now_ms.saturating_sub(entry.at_ms) <= SAME_MS);
        if let Some(known) = known.and_then(|at| self.entries.remove(at)) {
            refusal.count = known.count + 1;
        }
        (refusal.client, refusal.at_ms) = (client, now_ms);
        self.entries.push_front(refusal);
        self.entries.truncate(self.kept.unwrap_or(KEPT));
    }

    /// How many are kept from now on.
    pub(super) fn keep(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(KEPT_MAX).min(KEPT_MAX);
        self.kept = Some(count);
        self.entries.truncate(count);
    }
}

/// `ACL LOG`.
pub(super) fn log(call: &mut Call<'_>) -> Outcome {
    call.check_writer()?;
    if call.is_word(2, "reset") {
        call.shared.refusals.borrow_mut().entries.clear();
        call.reply().ok();
        return Ok(());
    }
    let wanted = if call.args.len() == 3 { call.integer(2)? } else { 10 };
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let now_ms = call.database.now_ms();
    let shared = call.shared;
    let refusals = shared.refusals.borrow();
    let mut reply = call.reply();
    reply.array(refusals.entries.len().min(wanted));
    for entry in refusals.entries.iter().take(wanted) {
        reply.map(7);
        reply.text("count");
        reply.integer(entry.count as i64);
        for (name, value) in
            [("reason", entry.reason.as_bytes()), ("context", entry.place.as_bytes()), ("object", &entry.object)]
        {
            reply.text(name);
            reply.bulk(value);
        }
        reply.text("username");
        reply.text(&entry.user);
        reply.text("age-seconds");
        reply.double(now_ms.saturating_sub(entry.at_ms) as f64 / 1000.0);
        reply.text("client-info");
        reply.text(&entry.client);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        let refusal = Refusal::new("auth", "toplevel", b"AUTH", &"é".repeat(OBJECT_BYTES_MAX));
        assert_eq!(refusal.user.len(), OBJECT_BYTES_MAX);
        assert_eq!(
            Refusal::new("auth", "toplevel", b"AUTH", &format!("a{}", "é".repeat(OBJECT_BYTES_MAX))).user.len(),
            OBJECT_BYTES_MAX - 1
        );
    }

    #[test]
    fn the_same_refusal_is_counted_and_the_oldest_go() {
        let mut refusals = Refusals::default();
        let add = |refusals: &mut Refusals, object: &str, now_ms| {
            refusals.add(Refusal::new("key", "toplevel", object.as_bytes(), "bob"), String::new(), now_ms);
        };
        add(&mut refusals, "a", 1000);
        add(&mut refusals, "b", 2000);
        add(&mut refusals, "a", 3000);
        assert_eq!(refusals.entries.len(), 2);
        assert_eq!((refusals.entries[0].object.as_slice(), refusals.entries[0].count), (b"a".as_slice(), 2));
        add(&mut refusals, "a", 3001 + SAME_MS);
        assert_eq!(refusals.entries.len(), 3, "it was too long ago");
        (0..1000).for_each(|at| add(&mut refusals, &at.to_string(), at));
        assert_eq!(refusals.entries.len(), KEPT);
        refusals.keep(3);
        assert_eq!(refusals.entries.len(), 3);
    }
}
