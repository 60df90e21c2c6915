//! `watch evictions`: a line for each item that has left for others.
//!
//! The database tells of every row that it writes while somebody watches, and of nothing otherwise.

use super::Cache;
use database::{Database, RowWatcher, Session, Space};
use std::rc::{Rc, Weak};
use wal::Position;

struct Watcher {
    door: Weak<Cache>,
    database: Weak<Database>,
}

/// Begins to be told of rows, or ends it, as the clients of a listener wish by now.
pub(super) fn look_again(door: &Rc<Cache>, database: &Rc<Database>) {
    let wants = door.onlookers.wants_evictions();
    if door.sees_evictions.replace(wants) != wants {
        let watcher = Watcher { door: Rc::downgrade(door), database: Rc::downgrade(database) };
        let owner = format!("memcached {}", door.number);
        database.watch_rows(&owner, wants.then(|| Rc::new(watcher) as Rc<dyn RowWatcher>));
    }
}

impl RowWatcher for Watcher {
    fn written(
        &self,
        session: &Session,
        space: &Space,
        (old, new): (Option<&[u8]>, Option<&[u8]>),
        _seen: Position,
        was_evicted: bool,
    ) {
        let (Some(row), None, true) = (old, new, was_evicted) else { return };
        let (Some(door), Some(database)) = (self.door.upgrade(), self.database.upgrade()) else { return };
        let Ok(bound) = door.bound(&database) else { return };
        if bound.space.id != space.id {
            return;
        }
        let (Some(key), Ok(item)) = (bound.layout.read_key(row), bound.layout.read(row, false)) else { return };
        let now = door.now(&database);
        let (asked, is_read) = door.recent.look(key).unwrap_or((now, false));
        let fetch = if is_read { "yes" } else { "no" };
        let ttl = if item.expires == 0 { -1 } else { item.expires as i64 - now as i64 };
        let (asked, size) = (now.saturating_sub(asked), item.value.len());
        let words = format_args!("fetch={fetch} ttl={ttl} la={asked} clsid=1 size={size}");
        door.onlookers.evicted(&database, session.id, key, words);
    }
}
