//! Keys, whatever they have: removing, naming, expiring them.

use super::call::{Call, Entry, Head, Kind};
use super::config;
use super::failure::{NO_KEY, NOT_INTEGER, Outcome, SYNTAX};
use super::resp::integer;
use super::scan::all_keys;
use super::shared::DATABASES;
use tuple::msgpack::{self, Reader};

/// When a key expires.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    /// Milliseconds since the epoch.
    pub(super) at_ms: u64,
}

/// How the words of a time are meant.
#[derive(Clone, Copy)]
pub(super) struct TimeUnit {
    is_ms: bool,
    is_absolute: bool,
}

impl Expiry {
    /// `EX`, `PX`, `EXAT`, `PXAT`.
    pub(super) fn of(word: &[u8]) -> Option<TimeUnit> {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let unit = |is_ms, is_absolute| Some(TimeUnit { is_ms, is_absolute });
        if is("ex") {
            unit(false, false)
        } else if is("px") {
            unit(true, false)
        } else if is("exat") {
            unit(false, true)
        } else if is("pxat") {
            unit(true, true)
        } else {
            None
        }
    }
}

/// A time that may be over.
fn moment(text: &[u8], unit: TimeUnit, now_ms: u64, name: &str) -> Outcome<i64> {
    let value = integer(text).ok_or(NOT_INTEGER)?;
    let invalid = || format!("ERR invalid expire time in '{name}' command");
    let ms = if unit.is_ms { Some(value) } else { value.checked_mul(1000) };
    let now = if unit.is_absolute { 0 } else { i64::try_from(now_ms).unwrap_or(i64::MAX) };
    Ok(ms.and_then(|ms| ms.checked_add(now)).ok_or_else(invalid)?)
}

impl TimeUnit {
    /// The moment that a text of this unit means. Errors: it is no number, or not positive.
    pub(super) fn with(self, text: &[u8], call: &Call<'_>, name: &str) -> Outcome<Expiry> {
        let at = moment(text, self, call.now_ms(), name)?;
        let is_positive = integer(text).is_some_and(|value| value > 0);
        match u64::try_from(at) {
            Ok(at_ms) if is_positive => Ok(Expiry { at_ms }),
            _ => Err(format!("ERR invalid expire time in '{name}' command").into()),
        }
    }
}

pub(super) fn expiry(call: &mut Call<'_>, unit: TimeUnit, name: &str) -> Outcome {
    let key = call.args[1];
    let (mut is_nx, mut is_xx, mut is_gt, mut is_lt) = (false, false, false, false);
    for number in 3..call.args.len() {
        if call.is_word(number, "nx") {
            is_nx = true;
        } else if call.is_word(number, "xx") {
            is_xx = true;
        } else if call.is_word(number, "gt") {
            is_gt = true;
        } else if call.is_word(number, "lt") {
            is_lt = true;
        } else {
            return Err(format!("ERR Unsupported option {}", String::from_utf8_lossy(call.args[number])).into());
        }
    }
    if is_nx && (is_xx || is_gt || is_lt) {
        return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if is_gt && is_lt {
        return Err("ERR GT and LT options at the same time are not compatible".into());
    }
    let at = moment(call.args[2], unit, call.now_ms(), name)?;
    let Some(entry) = call.find(key)? else {
        call.reply().integer(0);
        return Ok(());
    };
    let at_ms = u64::try_from(at).unwrap_or(0);
    let is_refused = match entry.expires {
        Some(expires) => is_nx || is_gt && at_ms <= expires || is_lt && at_ms >= expires,
        None => is_xx || is_gt,
    };
    if !is_refused {
        if at_ms <= call.now_ms() {
            call.remove(key)?;
        } else {
            call.put_entry(key, &entry, Some(at_ms))?;
        }
    }
    call.reply().integer(i64::from(!is_refused));
    Ok(())
}

const fn unit(is_ms: bool, is_absolute: bool) -> TimeUnit {
    TimeUnit { is_ms, is_absolute }
}

pub(super) fn expire(call: &mut Call<'_>) -> Outcome {
    expiry(call, unit(false, false), "expire")
}

pub(super) fn pexpire(call: &mut Call<'_>) -> Outcome {
    expiry(call, unit(true, false), "pexpire")
}

pub(super) fn expireat(call: &mut Call<'_>) -> Outcome {
    expiry(call, unit(false, true), "expireat")
}

pub(super) fn pexpireat(call: &mut Call<'_>) -> Outcome {
    expiry(call, unit(true, true), "pexpireat")
}

/// -2: no key, -1: it does not expire.
fn time_left(call: &mut Call<'_>, of: impl FnOnce(u64, u64) -> u64) -> Outcome {
    let now = call.now_ms();
    let answer = match call.find(call.args[1])? {
        None => -2,
        Some(Entry { expires: None, .. }) => -1,
        Some(Entry { expires: Some(at), .. }) => i64::try_from(of(at, now)).unwrap_or(i64::MAX),
    };
    call.reply().integer(answer);
    Ok(())
}

pub(super) fn ttl(call: &mut Call<'_>) -> Outcome {
    time_left(call, |at, now| (at.saturating_sub(now) + 500) / 1000)
}

pub(super) fn pttl(call: &mut Call<'_>) -> Outcome {
    time_left(call, |at, now| at.saturating_sub(now))
}

pub(super) fn expiretime(call: &mut Call<'_>) -> Outcome {
    time_left(call, |at, _| (at + 500) / 1000)
}

pub(super) fn pexpiretime(call: &mut Call<'_>) -> Outcome {
    time_left(call, |at, _| at)
}

pub(super) fn persist(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let entry = call.find(key)?.filter(|entry| entry.expires.is_some());
    if let Some(entry) = &entry {
        call.put_entry(key, entry, None)?;
    }
    call.reply().integer(i64::from(entry.is_some()));
    Ok(())
}

pub(super) fn del(call: &mut Call<'_>) -> Outcome {
    let removed = match call.args {
        [_, key] => i64::from(call.remove(key)?),
        [_, keys @ ..] => call.atomically(|call| {
            let mut removed = 0;
            for key in keys {
                removed += i64::from(call.remove(key)?);
            }
            Ok(removed)
        })?,
        [] => 0,
    };
    call.reply().integer(removed);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_>) -> Outcome {
    let mut count = 0;
    for key in &call.args[1..] {
        count += i64::from(call.find(key)?.is_some());
    }
    call.reply().integer(count);
    Ok(())
}

pub(super) fn kind(call: &mut Call<'_>) -> Outcome {
    let name = call.find(call.args[1])?.map_or("none", |entry| entry.kind_name());
    call.reply().simple(name);
    Ok(())
}

/// Moves a key to another name. False: it was to be free, and is not.
fn rename_to(call: &mut Call<'_>, only_free: bool) -> Outcome<bool> {
    let (from, to) = (call.args[1], call.args[2]);
    let entry = call.find(from)?.ok_or(NO_KEY)?;
    if from == to {
        return Ok(!only_free);
    }
    let taken = call.find(to)?;
    if only_free && taken.is_some() {
        return Ok(false);
    }
    call.atomically(|call| {
        call.remove_row(from)?;
        call.put_entry(to, &entry, entry.expires)?;
        if let Some(head) = taken.and_then(|taken| taken.head) {
            call.left.borrow_mut().push(head);
        }
        Ok(true)
    })
}

pub(super) fn rename(call: &mut Call<'_>) -> Outcome {
    rename_to(call, false)?;
    call.reply().ok();
    Ok(())
}

pub(super) fn renamenx(call: &mut Call<'_>) -> Outcome {
    let is_done = rename_to(call, true)?;
    call.reply().integer(i64::from(is_done));
    Ok(())
}

/// The number of a database. Errors: there is none, or its spaces are not there yet.
pub(super) fn database_number(call: &Call<'_>, at: usize) -> Outcome<usize> {
    let number = call.integer(at)?;
    usize::try_from(number).ok().filter(|db| *db < DATABASES).ok_or_else(|| "ERR DB index is out of range".into())
}

/// Makes the space of a database's keys, if it is not there. May wait.
pub(super) fn make_database(call: &mut Call<'_>, db: usize) -> Outcome {
    if !call.spaces.has_keys(db) {
        if call.is_inside {
            return Err(format!(
                "ERR database {db} is used for the first time: use SELECT {db} outside of a transaction or script once"
            )
            .into());
        }
        // It stays, and is one of few: it is for who may write what is there.
        call.check_writer()?;
        call.go_into_fiber()?;
        let engine = call.shared.engine.borrow().clone();
        crate::setup::set_up(call.database, super::SPACES, &[&engine, &db.to_string()])?;
        call.spaces = call.shared.spaces(call.database);
    }
    Ok(())
}

pub(super) fn move_key(call: &mut Call<'_>) -> Outcome {
    let (key, from, to) = (call.args[1], call.db, database_number(call, 2)?);
    if from == to {
        return Err("ERR source and destination objects are the same".into());
    }
    make_database(call, to)?;
    let Some(entry) = call.find(key)? else {
        call.reply().integer(0);
        return Ok(());
    };
    call.db = to;
    if call.find(key)?.is_some() {
        call.reply().integer(0);
        return Ok(());
    }
    call.atomically(|call| {
        call.put_entry(key, &entry, entry.expires)?;
        call.db = from;
        call.remove_row(key)
    })?;
    call.reply().integer(1);
    Ok(())
}

pub(super) fn copy(call: &mut Call<'_>) -> Outcome {
    let (from, to, own) = (call.args[1], call.args[2], call.db);
    let (mut db, mut replaces, mut at) = (own, false, 3);
    while at < call.args.len() {
        if call.is_word(at, "replace") {
            replaces = true;
        } else if call.is_word(at, "db") {
            call.after(at)?;
            db = database_number(call, at + 1)?;
            at += 1;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    if from == to && db == own {
        return Err("ERR source and destination objects are the same".into());
    }
    make_database(call, db)?;
    let entry = call.find(from)?;
    call.db = db;
    let taken = call.find(to)?;
    let (Some(entry), true) = (entry, taken.is_none() || replaces) else {
        call.reply().integer(0);
        return Ok(());
    };
    // Elements first, where nobody sees them.
    let copied = match entry.head {
        None => None,
        Some(head) => {
            let copied = super::call::Head { id: call.new_head(head.kind).id, ..head };
            let mut rows = Vec::new();
            call.walk(&head, |reader| {
                rows.push(reader.rest().to_vec());
                true
            })?;
            call.build(&copied, rows.len(), |call, at| {
                call.put_element(head.kind, |out| {
                    msgpack::encode_array(out, fields_of(head.kind));
                    msgpack::encode_uint(out, copied.id);
                    out.extend_from_slice(&rows[at]);
                })
            })?;
            if head.kind == Kind::Stream {
                call.atomically(|call| super::streams::copy_groups(call, &head, &copied))?;
            }
            Some(copied)
        }
    };
    let is_done = call.atomically(|call| {
        // Others may have come meanwhile.
        let taken = call.find(to)?;
        let is_free = taken.is_none() || replaces;
        match &copied {
            Some(head) if is_free => call.put_entry_head(to, head, entry.expires)?,
            None if is_free => call.put_entry(to, &entry, entry.expires)?,
            _ => {}
        }
        let left = if is_free { taken.and_then(|taken| taken.head) } else { copied };
        call.left.borrow_mut().extend(left);
        Ok(is_free)
    })?;
    call.reply().integer(i64::from(is_done));
    Ok(())
}

/// Fields of a row of elements.
pub(super) fn fields_of(kind: Kind) -> u32 {
    match kind {
        Kind::Set => 2,
        Kind::Stream => 4,
        Kind::List | Kind::SortedSet | Kind::Hash => 3,
    }
}

pub(super) fn randomkey(call: &mut Call<'_>) -> Outcome {
    /// Expired keys that are passed over.
    const ATTEMPTS: usize = 100;
    let now = call.now_ms();
    for _ in 0..ATTEMPTS {
        let seed = call.random(u64::MAX);
        let Some(row) = call.database.random_row(call.context, call.keys()?, seed)? else { break };
        if let Some(entry) = Entry::of(row).filter(|entry| entry.expires.is_none_or(|expires| expires > now)) {
            let key = entry.key();
            call.reply().bulk(key);
            return Ok(());
        }
    }
    // On disk, or hardly a key that has not expired: the first one that is there.
    let mut first = None;
    let mut cursor = 0;
    while first.is_none() {
        cursor =
            super::scan::some_keys(call, cursor, 100, |entry| first = first.take().or(Some(entry.key().to_vec())))?;
        if cursor == 0 {
            break;
        }
    }
    match first {
        Some(key) => call.reply().bulk(&key),
        None => call.reply().null(),
    }
    Ok(())
}

pub(super) fn dbsize(call: &mut Call<'_>) -> Outcome {
    let count = if call.spaces.has_keys(call.db) { call.keys()?.rows.len() } else { 0 };
    call.database.check_space_access(call.context, call.keys()?, database::Privileges::READ)?;
    call.reply().integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

/// `MIGRATE`: refused, unless there is nothing to move.
pub(super) fn migrate(call: &mut Call<'_>) -> Outcome {
    let spec = super::table::find(b"migrate").ok_or(SYNTAX)?;
    for place in super::places::key_places(spec, call.args) {
        if call.find(call.args[place])?.is_some() {
            return Err("ERR MIGRATE is not there: DUMP and RESTORE carry keys from one server to another".into());
        }
    }
    call.reply().simple("NOKEY");
    Ok(())
}

fn check_flush(call: &Call<'_>) -> Outcome {
    match call.args.len() {
        1 => Ok(()),
        2 if call.is_word(1, "async") || call.is_word(1, "sync") => Ok(()),
        _ => Err(SYNTAX.into()),
    }
}

pub(super) fn flushdb(call: &mut Call<'_>) -> Outcome {
    check_flush(call)?;
    call.go_into_fiber()?;
    // The elements' numbers first: they follow when the keys are gone.
    let mut heads = Vec::new();
    all_keys(call, |entry| heads.extend(entry.head))?;
    call.database.truncate(call.context, call.keys()?)?;
    call.left.borrow_mut().extend(heads);
    call.shared.wake_all(Some(call.db));
    super::events::note_all(call);
    call.reply().ok();
    Ok(())
}

pub(super) fn flushall(call: &mut Call<'_>) -> Outcome {
    check_flush(call)?;
    call.go_into_fiber()?;
    let kinds = [Kind::List, Kind::Set, Kind::SortedSet, Kind::Hash, Kind::Stream];
    let mut spaces: Vec<_> = (0..DATABASES).filter_map(|db| call.spaces.keys(db).ok()).collect();
    for kind in kinds {
        spaces.push(call.elements(kind)?);
    }
    // All or nothing: who may not write one of them empties none.
    for space in &spaces {
        call.database.check_space_access(call.context, space, database::Privileges::WRITE)?;
    }
    for space in spaces {
        call.database.truncate(call.context, space)?;
    }
    call.shared.leftovers.borrow_mut().clear();
    call.shared.wake_all(None);
    super::events::note_all(call);
    call.reply().ok();
    Ok(())
}

pub(super) fn swapdb(call: &mut Call<'_>) -> Outcome {
    let number = |at: usize, which: &str| -> Outcome<usize> {
        let number = call.integer(at).map_err(|_| format!("ERR invalid {which} DB index"))?;
        usize::try_from(number).ok().filter(|db| *db < DATABASES).ok_or_else(|| "ERR DB index is out of range".into())
    };
    let (a, b) = (number(1, "first")?, number(2, "second")?);
    if a != b {
        make_database(call, a)?;
        make_database(call, b)?;
        call.go_into_fiber()?;
        // The script has the administrator's rights: what it does to both is for who may write both.
        for db in [a, b] {
            call.database.check_space_access(call.context, call.spaces.keys(db)?, database::Privileges::WRITE)?;
        }
        let names = [super::shared::keys_name(a), super::shared::keys_name(b)];
        crate::setup::set_up(call.database, include_str!("swap.lua"), &[&names[0], &names[1]])?;
        call.shared.wake_all(Some(a));
        call.shared.wake_all(Some(b));
        super::events::note_all(call);
    }
    call.reply().ok();
    Ok(())
}

pub(super) fn touch(call: &mut Call<'_>) -> Outcome {
    exists(call)
}

/// The name by which Redis would call how it keeps a value, by what is in it and by the parameters of `CONFIG`; here all of a kind are kept alike.
pub(super) fn encoding_of(call: &Call<'_>, entry: &Entry) -> Outcome<&'static str> {
    /// Bytes up to which Redis packs a string.
    const PACKED_STRING: usize = 44;
    let Some(head) = entry.head else {
        let value = entry.string()?;
        return Ok(if integer(value).is_some() {
            "int"
        } else if value.len() <= PACKED_STRING {
            "embstr"
        } else {
            "raw"
        });
    };
    let (most, longest) = match head.kind {
        Kind::List => return Ok("quicklist"),
        Kind::Stream => return Ok("stream"),
        Kind::Set => {
            let is_small = head.count <= config::number(call, "set-max-intset-entries");
            return Ok(if is_small && all_texts(call, &head, 1, |text| integer(text).is_some())? {
                "intset"
            } else {
                "hashtable"
            });
        }
        Kind::SortedSet => ("zset-max-listpack-entries", "zset-max-listpack-value"),
        Kind::Hash => ("hash-max-listpack-entries", "hash-max-listpack-value"),
    };
    let (most, longest) = (config::number(call, most), config::number(call, longest));
    let texts = if head.kind == Kind::Hash { 2 } else { 1 };
    let is_small = head.count <= most && all_texts(call, &head, texts, |text| text.len() as u64 <= longest)?;
    Ok(match (is_small, head.kind) {
        (true, _) => "listpack",
        (false, Kind::Hash) => "hashtable",
        (false, _) => "skiplist",
    })
}

/// True if the first texts of all elements are as is asked for.
fn all_texts(call: &Call<'_>, head: &Head, texts: usize, is_good: impl Fn(&[u8]) -> bool) -> Outcome<bool> {
    let mut all = true;
    call.walk(head, |reader| {
        all = (0..texts).all(|_| is_good(read_text(reader)));
        all
    })?;
    Ok(all)
}

pub(super) fn object(call: &mut Call<'_>) -> Outcome {
    if call.is_word(1, "help") {
        let lines = [
            "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "ENCODING <key>",
            "    Return the name by which Redis would call how the value is kept.",
            "FREQ <key>",
            "    Return how much the key is used, on a scale to 255, with a maxmemory-policy of lfu.",
            "IDLETIME <key>",
            "    Return the seconds since the key was used.",
            "REFCOUNT <key>",
            "    Return 1 or, for numbers below 10,000, 2147483647.",
            "HELP",
            "    Print this help.",
        ];
        let mut reply = call.reply();
        reply.array(lines.len());
        lines.iter().for_each(|line| reply.simple(line));
        return Ok(());
    }
    if call.args.len() != 3 {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try OBJECT HELP.").into()
        );
    }
    let Some(entry) = call.find(call.args[2])? else {
        call.reply().null();
        return Ok(());
    };
    if call.is_word(1, "encoding") {
        let name = encoding_of(call, &entry)?;
        call.reply().text(name);
    } else if call.is_word(1, "refcount") {
        // Redis has small numbers once, for everybody; programs read so that a value is one of them.
        let is_shared =
            entry.head.is_none() && integer(entry.string()?).is_some_and(|number| (0..10_000).contains(&number));
        call.reply().integer(if is_shared { i64::from(i32::MAX) } else { 1 });
    } else if call.is_word(1, "idletime") || call.is_word(1, "freq") {
        super::uses::answer(call, call.args[2])?;
    } else {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try OBJECT HELP.").into()
        );
    }
    Ok(())
}

/// The bytes of a value behind the number of its head, for those who copy it.
pub(super) fn read_text<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    reader.read_str().unwrap_or_default()
}
