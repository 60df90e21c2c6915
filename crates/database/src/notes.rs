//! What a transaction has read of rows in memory, noted so cheaply that one which never waits does not feel it.
//!
//! A note is where a scan began and the row that it has come to. Only a wait makes keys and intervals of them ([`Reads`](crate::reads::Reads)):
//! until then nobody else has run, so the notes say what the rows looked like at one moment.

use crate::catalog::Space;
use crate::isolation::{Seen, seen_by};
use std::rc::Rc;
use storage::{IteratorKind, Key, MemoryIterator, ordered_key};
use tuple::{IndexId, Tuple};

/// Notes that are kept as such; more become keys and intervals, which are bounded.
const NOTES_MAX: usize = 1_024;

/// A stretch of an index that was read.
struct Note {
    space: Rc<Space>,
    index_id: IndexId,
    kind: IteratorKind,
    part_count: u32,
    /// Where the parts of its key end in `keys`; they begin where those of the note before end.
    key_end: usize,
    /// It began behind this row.
    after: Option<Tuple>,
    /// The row it has come to; none if it has come to its end.
    last: Option<Tuple>,
}

/// The notes of one transaction.
#[derive(Default)]
pub(crate) struct Notes {
    list: Vec<Note>,
    keys: Vec<u8>,
    /// How often they were taken.
    taken: u64,
}

/// Which note a cursor goes on with.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NotePlace {
    txn_id: u64,
    taken: u64,
    at: usize,
}

impl Notes {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// True if there are so many that they should be taken.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.list.len() >= NOTES_MAX || self.keys.len() >= NOTES_MAX * 64
    }

    /// Notes a scan: all that key and kind mean up to the row `last`, or to the end.
    #[inline]
    pub(crate) fn add(
        &mut self,
        space: &Rc<Space>,
        index_id: IndexId,
        kind: IteratorKind,
        key: Key<'_>,
        last: Option<Tuple>,
    ) {
        self.keys.extend_from_slice(key.parts);
        let (space, part_count, key_end) = (Rc::clone(space), key.part_count, self.keys.len());
        self.list.push(Note { space, index_id, kind, part_count, key_end, after: None, last });
    }

    /// Notes that a cursor has come from the row `after`, or its beginning, to the row `last`, or its end: in its own note, if that is
    /// still here. Returns where it is.
    pub(crate) fn go_on(
        &mut self,
        txn_id: u64,
        place: NotePlace,
        space: &Rc<Space>,
        iterator: &MemoryIterator,
        (after, last): (Option<&Tuple>, Option<&Tuple>),
    ) -> NotePlace {
        let is_here = place.txn_id == txn_id && place.taken == self.taken;
        if is_here && let Some(note) = self.list.get_mut(place.at) {
            note.last = last.cloned();
            return place;
        }
        let (parts, part_count) = iterator.key();
        self.add(space, iterator.index_id(), iterator.kind(), Key { parts, part_count }, last.cloned());
        let at = self.list.len() - 1;
        self.list[at].after = after.cloned();
        NotePlace { txn_id, taken: self.taken, at }
    }

    /// Takes all notes: the space, the index and what was seen of it.
    pub(crate) fn take(&mut self, mut each: impl FnMut(&Space, IndexId, Seen)) {
        self.taken += 1;
        let mut start = 0;
        for note in self.list.drain(..) {
            let key = Key { parts: &self.keys[start..note.key_end], part_count: note.part_count };
            start = note.key_end;
            if let Some(def) = note.space.index_def(note.index_id) {
                let mut seen = seen_by(&def, note.kind, key, note.last.as_ref().map(Tuple::data));
                if let Seen::Range(low, high) = &mut seen
                    && let Some(after) = note.after.and_then(|row| ordered_key(&def.compare_def, row.data()))
                {
                    match note.kind.is_reverse() {
                        true => *high = Some(after),
                        false => *low = after,
                    }
                }
                each(&note.space, note.index_id, seen);
            }
        }
        self.keys.clear();
    }
}
