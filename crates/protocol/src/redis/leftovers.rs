//! Elements of keys that are gone: removed in slices by a fiber of its own, so that `DEL` of a million costs what `DEL` of one does.
//!
//! What is to be removed is kept in memory only. A start looks for elements whose key is not there, in slices as well.

use super::call::{Entry, Head, Kind};
use super::shared::{DATABASES, Shared};
use database::{Context, Database, Key, Operation, Result, ScanRequest, Space};
use hashbrown::HashSet;
use runtime::fiber;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, Tuple};

/// Elements that are removed before others have their turn.
const SLICE: u64 = 500;
/// Keys of no more elements are not counted as `lazyfreed_objects`: Redis frees them at once.
const FREED_AT_ONCE: u64 = 64;
/// Interval between searches for elements whose key has expired.
const SEARCH_NS: u64 = 60_000_000_000;

const KINDS: [Kind; 5] = [Kind::List, Kind::Set, Kind::SortedSet, Kind::Hash, Kind::Stream];

/// Has the elements of heads removed.
pub(super) fn add(shared: &Rc<Shared>, database: &Rc<Database>, heads: Vec<Head>) {
    shared.leftovers.borrow_mut().extend(heads);
    if !shared.is_clearing.replace(true) {
        let (shared, database) = (Rc::clone(shared), Rc::clone(database));
        fiber::spawn("redis leftovers", move || {
            let context = database.admin_context();
            loop {
                let next = shared.leftovers.borrow_mut().pop_front();
                let Some(head) = next else { break };
                shared.is_freeing.set(true);
                if let Err(error) = remove(&shared, &database, &context, &head) {
                    tracing::warn!(
                        "elements of a key of Redis' protocol that is gone stay until the next start: {error}"
                    );
                    shared.leftovers.borrow_mut().clear();
                } else if head.count > FREED_AT_ONCE {
                    shared.freed.set(shared.freed.get() + 1);
                }
                shared.is_freeing.set(false);
            }
            shared.is_clearing.set(false);
        });
    }
}

/// Removes all elements of a head, and what stands beside them.
fn remove(shared: &Shared, database: &Rc<Database>, context: &Context, head: &Head) -> Result<()> {
    // Without its space nothing is left.
    for (space, key_fields) in shared.spaces(database).all_of(head.kind) {
        remove_from(database, context, (&space, key_fields), head.id)?;
    }
    Ok(())
}

/// Removes the rows of a space that begin with a number.
fn remove_from(
    database: &Rc<Database>,
    context: &Context,
    (space, key_fields): (&Rc<Space>, u32),
    id: u64,
) -> Result<()> {
    let mut prefix = Vec::new();
    msgpack::encode_uint(&mut prefix, id);
    while !space.is_dropped.get() {
        let key = Key { parts: &prefix, part_count: 1 };
        let request = ScanRequest { limit: SLICE, ..ScanRequest::new(IndexId::PRIMARY, IteratorKind::Eq, key) };
        let rows = database.select_tuples(context, space, &request)?;
        if rows.is_empty() {
            break;
        }
        database.begin(context)?;
        let removed = rows.iter().try_for_each(|row| {
            let mut reader = Reader::new(row.data());
            let begin = reader.read_array().map_or(0, |_| reader.position());
            (0..key_fields).for_each(|_| reader.skip_checked());
            let mut key = vec![0x90 | key_fields as u8];
            key.extend_from_slice(&row.data()[begin..reader.position()]);
            database.execute(context, space, Operation::Delete { index_id: IndexId::PRIMARY, key: &key }).map(drop)
        });
        if let Err(error) = removed {
            database.abandon(context);
            return Err(error);
        }
        // Waits for the log: what is removed goes no faster than the disk.
        database.commit(context)?;
        if (rows.len() as u64) < SLICE {
            break;
        }
        fiber::yield_now();
    }
    Ok(())
}

/// Notes the numbers that are taken, and looks for elements without a key now and from time to time. Errors: those of reading.
pub(super) fn begin(shared: &Rc<Shared>, database: &Rc<Database>) -> Result<()> {
    if shared.is_searching.replace(true) {
        return Ok(());
    }
    let context = database.admin_context();
    let spaces = shared.spaces(database);
    for (space, _) in KINDS.into_iter().flat_map(|kind| spaces.all_of(kind)) {
        let request = ScanRequest { limit: 1, ..ScanRequest::new(IndexId::PRIMARY, IteratorKind::Le, Key::EMPTY) };
        database.select(&context, &space, &request, |row| {
            let mut reader = Reader::new(row);
            shared.note_id(reader.read_array().and_then(|_| reader.read_uint()).unwrap_or(0));
            true
        })?;
    }
    let (shared, database) = (Rc::clone(shared), Rc::clone(database));
    fiber::spawn("redis search", move || {
        let context = database.admin_context();
        loop {
            if let Err(error) = search(&shared, &database, &context) {
                tracing::warn!("elements of Redis' protocol without a key were not looked for: {error}");
            }
            if fiber::sleep(SEARCH_NS) == fiber::Wake::Cancelled {
                return;
            }
        }
    });
    Ok(())
}

/// Finds elements whose key is not there.
fn search(shared: &Rc<Shared>, database: &Rc<Database>, context: &Context) -> Result<()> {
    // Numbers before the keys: a key that is made meanwhile has a greater one than all that are looked at.
    let bound = shared.last_id();
    let mut found = Vec::new();
    let spaces = shared.spaces(database);
    let places =
        KINDS.into_iter().flat_map(|kind| spaces.all_of(kind).into_iter().map(move |(space, _)| (kind, space)));
    for (kind, space) in places {
        let mut after = Vec::new();
        while !space.is_dropped.get() {
            let part_count = u32::from(!after.is_empty());
            let key = Key { parts: &after, part_count };
            let request = ScanRequest { limit: 1, ..ScanRequest::new(IndexId::PRIMARY, IteratorKind::Gt, key) };
            let mut id = None;
            database.select(context, &space, &request, |row| {
                let mut reader = Reader::new(row);
                id = reader.read_array().and_then(|_| reader.read_uint()).ok();
                true
            })?;
            let Some(id) = id.filter(|id| *id <= bound) else { break };
            found.push(Head::new(kind, id));
            after.clear();
            msgpack::encode_uint(&mut after, id);
            if found.len().is_multiple_of(SLICE as usize) {
                fiber::yield_now();
            }
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let living = living(shared, database, context)?;
    let building = shared.building.borrow();
    let is_suspect = |head: &Head| !living.contains(&head.id) && !building.contains(&head.id);
    let suspects: Vec<Head> = found.into_iter().filter(is_suspect).collect();
    drop(building);
    // The keys were not looked at in one moment: one that was moved meanwhile may have been missed. It is not missed twice.
    let before = shared.suspects.replace(suspects.iter().map(|head| head.id).collect());
    let gone: Vec<Head> = suspects.into_iter().filter(|head| before.contains(&head.id)).collect();
    if !gone.is_empty() {
        add(shared, database, gone);
    }
    Ok(())
}

/// Numbers of the heads of all keys.
fn living(shared: &Shared, database: &Rc<Database>, context: &Context) -> Result<HashSet<u64>> {
    const KEYS: usize = 2000;
    let mut living = HashSet::new();
    for db in 0..DATABASES {
        let (mut place, mut last) = (0, Vec::new());
        loop {
            let spaces = shared.spaces(database);
            let Ok(space) = spaces.keys(db) else { break };
            let mut take = |row: &Tuple| living.extend(Entry::head_in(row.data()).map(|head| head.id));
            if let Some(next) = database.select_some(context, space, (place, KEYS), |row| take(&row))? {
                if next == 0 {
                    break;
                }
                place = next;
            } else {
                let (kind, part_count) = if last.is_empty() { (IteratorKind::Ge, 0) } else { (IteratorKind::Gt, 1) };
                let key = Key { parts: &last, part_count };
                let request = ScanRequest { limit: KEYS as u64, ..ScanRequest::new(IndexId::PRIMARY, kind, key) };
                let rows = database.select_tuples(context, space, &request)?;
                rows.iter().for_each(&mut take);
                let Some(row) = rows.last().filter(|_| rows.len() == KEYS) else { break };
                let mut reader = Reader::new(row.data());
                let key = reader.read_array().and_then(|_| reader.read_str()).unwrap_or_default();
                last.clear();
                msgpack::encode_str(&mut last, key);
            }
            fiber::yield_now();
        }
    }
    Ok(living)
}
