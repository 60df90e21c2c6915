//! What `stats items` and `stats slabs` tell by classes of sizes: what is there, by a walk when somebody asks, and what has left, counted as it leaves.
//!
//! Refused: sums that every write keeps. They would cost each `set` what few ever ask for.

use super::Cache;
use super::admin::{Place, some_rows};
use super::classes::{CLASSES, chunks_of, class_of};
use super::layout::Item;
use super::store::Work;
use super::text::item_size;
use crate::service::shutting_down;
use database::{Database, Error, Leaving, LeavingWatcher, Result, Session, Space};
use runtime::fiber;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// A walk that has taken so long is not made again at once.
const SHORT_NS: u64 = 50_000_000;
/// Its result is good for so many times as long as it took.
const GOOD_FACTOR: u64 = 10;

/// Items of a class.
#[derive(Clone, Copy, Default)]
pub(super) struct Class {
    pub(super) items: u64,
    /// Bytes as the real server counts them.
    pub(super) bytes: u64,
    pub(super) chunks: u64,
}

/// Items of a class that have left, or could not come.
#[derive(Clone, Copy, Default)]
pub(super) struct Left {
    pub(super) evicted: u64,
    /// Those of them that would have expired.
    pub(super) evicted_timed: u64,
    pub(super) expired: u64,
    /// Those of them that were found in the background.
    pub(super) swept: u64,
    pub(super) refused: u64,
}

/// Classes of sizes of a listener's items.
#[derive(Default)]
pub(super) struct Survey {
    last: RefCell<Option<Done>>,
    left: RefCell<Vec<Left>>,
}

/// A walk.
#[derive(Clone)]
struct Done {
    classes: Rc<Vec<Class>>,
    at_ns: u64,
    took_ns: u64,
}

/// The number of the class of an item.
pub(super) fn class(key: &[u8], item: &Item<'_>) -> usize {
    class_of(item_size(key, item.flags, item.value.len()))
}

impl Survey {
    /// Changes what is counted of a class.
    pub(super) fn count(&self, class: usize, change: impl FnOnce(&mut Left)) {
        let mut left = self.left.borrow_mut();
        left.resize(CLASSES, Left::default());
        change(&mut left[class - 1]);
    }

    /// What has left of a class. None: nothing ever has of any.
    pub(super) fn left(&self, class: usize) -> Left {
        self.left.borrow().get(class - 1).copied().unwrap_or_default()
    }

    /// Counts begin anew.
    pub(super) fn reset(&self) {
        self.left.borrow_mut().fill(Left::default());
    }
}

/// What is there, by classes; empty if the rows are on disk. Waits. Errors: as [`Error::needs_fiber`] outside of one; those of reads.
pub(super) fn look(work: &Work<'_>) -> Result<Rc<Vec<Class>>> {
    if work.bound.space.rows.memory().is_none() {
        return Ok(Rc::default());
    }
    if !work.is_in_fiber {
        return Err(Error::needs_fiber());
    }
    let survey = &work.door.survey;
    let began = fiber::now_ns();
    if let Some(done) = &*survey.last.borrow()
        && done.took_ns > SHORT_NS
        && began.saturating_sub(done.at_ns) < done.took_ns.saturating_mul(GOOD_FACTOR)
    {
        return Ok(Rc::clone(&done.classes));
    }
    let mut classes = vec![Class::default(); CLASSES];
    let mut place = Some(Place::Hash(0));
    while let Some(from) = place {
        let (rows, next) = some_rows(work, &from)?;
        for row in &rows {
            let layout = &work.bound.layout;
            if let (Some(key), Ok(item)) = (layout.read_key(row.data()), layout.read(row.data(), false)) {
                let bytes = item_size(key, item.flags, item.value.len());
                let class = &mut classes[class_of(bytes) - 1];
                class.items += 1;
                class.bytes += bytes as u64;
                class.chunks += chunks_of(bytes);
            }
        }
        drop(rows);
        place = next;
        if place.is_some() && fiber::yield_now() == fiber::Wake::Cancelled {
            return Err(shutting_down());
        }
    }
    let at_ns = fiber::now_ns();
    let classes = Rc::new(classes);
    let done = Done { classes: Rc::clone(&classes), at_ns, took_ns: at_ns.saturating_sub(began) };
    *survey.last.borrow_mut() = Some(done);
    Ok(classes)
}

/// Told by the database of rows that leave by themselves, for all listeners.
pub(super) struct Watcher {
    pub(super) doors: Rc<RefCell<Vec<Weak<Cache>>>>,
    pub(super) database: Weak<Database>,
}

impl LeavingWatcher for Watcher {
    fn left(&self, session: &Session, space: &Space, row: &[u8], why: Leaving) {
        let Some(database) = self.database.upgrade() else { return };
        for door in self.doors.borrow().iter().filter_map(Weak::upgrade) {
            // One that cannot be bound any more has no items.
            let Ok(bound) = door.bound(&database) else { continue };
            if bound.space.id == space.id
                && let (Some(key), Ok(item)) = (bound.layout.read_key(row), bound.layout.read(row, false))
            {
                door.note_leaving(&database, session, (key, &item), why);
            }
        }
    }
}

impl Cache {
    fn note_leaving(&self, database: &Database, session: &Session, (key, item): (&[u8], &Item<'_>), why: Leaving) {
        let class = class(key, item);
        self.survey.count(class, |left| match why {
            Leaving::Evicted => {
                left.evicted += 1;
                left.evicted_timed += u64::from(item.expires != 0);
            }
            Leaving::Expired => left.expired += 1,
            Leaving::Swept => {
                left.expired += 1;
                left.swept += 1;
            }
        });
        if why == Leaving::Evicted && self.onlookers.is_any() {
            let now = self.now(database);
            let (asked, is_read) = self.recent.look(key).unwrap_or((now, false));
            let fetch = if is_read { "yes" } else { "no" };
            let ttl = if item.expires == 0 { -1 } else { item.expires as i64 - now as i64 };
            let (asked, size) = (now.saturating_sub(asked), item.value.len());
            let words = format_args!("fetch={fetch} ttl={ttl} la={asked} clsid={class} size={size}");
            self.onlookers.evicted(database, session.id, key, words);
        }
    }
}
