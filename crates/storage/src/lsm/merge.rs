//! Merging sorted sources into one: what dumps and compactions do, on worker threads.
//!
//! Sources stand in a heap by their next key, the newer first where keys are equal. Sixteen bytes of each key are kept beside, as a
//! number, and decide most comparisons without a look at the sources.

use super::entry::{Entry, EntryKind};
use super::error::LsmError;
use std::cmp::Ordering;
use tuple::msgpack;

/// Entries in ascending order of keys, each key once.
pub trait Source {
    /// The entry it stands at; `None` at the end.
    fn entry(&self) -> Option<Entry<'_>>;
    /// Goes to the next.
    fn advance(&mut self) -> Result<(), LsmError>;
}

/// What upserts make of a row.
pub trait Upserter: Send + Sync {
    /// Appends to `out` the row that the value of an upsert makes of `old`.
    fn apply(&self, old: Option<&[u8]>, operand: &[u8], out: &mut Vec<u8>);
}

/// Appends to `out` one upsert for two: `older` and then the operations of `newer`.
pub fn join_upserts(older: &[u8], newer: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(older);
    out.extend_from_slice(&newer[msgpack::skip(newer)..]);
}

/// Hands each key of the sources, the newest of which is the first, once to `out`, in ascending order.
///
/// At the bottom, below which there is nothing, deletes vanish and upserts become rows. Elsewhere upserts of a key are joined into one,
/// unless a put or delete of it is among the sources.
///
/// Errors: those of the sources and of `out`.
pub fn merge(
    sources: Vec<Box<dyn Source + '_>>,
    is_bottom: bool,
    upserter: &dyn Upserter,
    out: &mut dyn FnMut(Entry<'_>) -> Result<(), LsmError>,
) -> Result<(), LsmError> {
    #[cfg(feature = "planted-bugs")]
    let is_bottom = is_bottom || runtime::planted::is_planted(runtime::planted::Plant::DropTombstones);
    let mut heap = Heap::new(sources);
    let mut resolver = Resolver { is_bottom, upserter, value: Vec::new(), scratch: Vec::new() };
    let mut same: Vec<Head> = Vec::new();
    while let Some(&top) = heap.heads.first() {
        if !heap.is_tied() {
            let entry = heap.entry(top.source);
            match entry.kind {
                EntryKind::Put => out(entry)?,
                EntryKind::Delete if is_bottom => {}
                EntryKind::Delete => out(entry)?,
                EntryKind::Upsert => resolver.resolve(&heap, &[top], out)?,
            }
            heap.advance_top()?;
            continue;
        }
        same.clear();
        same.push(heap.pop());
        while heap.heads.first().is_some_and(|next| heap.compare_keys(next, &same[0]).is_eq()) {
            same.push(heap.pop());
        }
        resolver.resolve(&heap, &same, out)?;
        for head in &same {
            heap.sources[head.source].advance()?;
            heap.push(head.source);
        }
    }
    Ok(())
}

/// Decides what entries of one key come to.
struct Resolver<'a> {
    is_bottom: bool,
    upserter: &'a dyn Upserter,
    value: Vec<u8>,
    scratch: Vec<u8>,
}

impl Resolver<'_> {
    /// `same`: sources that stand at the same key, the newest first.
    fn resolve(
        &mut self,
        heap: &Heap<'_>,
        same: &[Head],
        out: &mut dyn FnMut(Entry<'_>) -> Result<(), LsmError>,
    ) -> Result<(), LsmError> {
        let newest = heap.entry(same[0].source);
        // Upserts, and what they meet: entries behind that are overwritten.
        let upserts = same.iter().take_while(|head| heap.entry(head.source).kind == EntryKind::Upsert).count();
        if upserts == 0 {
            let is_gone = newest.kind == EntryKind::Delete && self.is_bottom;
            return if is_gone { Ok(()) } else { out(newest) };
        }
        let base = same.get(upserts).map(|head| heap.entry(head.source));
        let operands = same[..upserts].iter().rev().map(|head| heap.entry(head.source).value);
        self.value.clear();
        if base.is_none() && !self.is_bottom {
            for operand in operands {
                let skipped = if self.value.is_empty() { 0 } else { msgpack::skip(operand) };
                self.value.extend_from_slice(&operand[skipped..]);
            }
            return out(Entry { kind: EntryKind::Upsert, value: &self.value, ..newest });
        }
        let row = base.filter(|base| base.kind == EntryKind::Put).map(|base| base.value);
        self.value.extend_from_slice(row.unwrap_or_default());
        let mut is_there = row.is_some();
        for operand in operands {
            self.scratch.clear();
            self.upserter.apply(is_there.then_some(self.value.as_slice()), operand, &mut self.scratch);
            std::mem::swap(&mut self.value, &mut self.scratch);
            is_there = true;
        }
        out(Entry { kind: EntryKind::Put, value: &self.value, ..newest })
    }
}

/// A source and the beginning of its next key.
#[derive(Clone, Copy)]
struct Head {
    hint: u128,
    source: usize,
}

/// The first sixteen bytes of a key as a number that sorts as they do.
#[inline]
fn hint(key: &[u8]) -> u128 {
    match key.first_chunk::<16>() {
        Some(chunk) => u128::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 16];
            chunk[..key.len()].copy_from_slice(key);
            u128::from_be_bytes(chunk)
        }
    }
}

/// Sources that are not at their end, the one with the least key first.
struct Heap<'a> {
    sources: Vec<Box<dyn Source + 'a>>,
    heads: Vec<Head>,
}

impl<'a> Heap<'a> {
    fn new(sources: Vec<Box<dyn Source + 'a>>) -> Self {
        let mut heap = Heap { heads: Vec::with_capacity(sources.len()), sources };
        (0..heap.sources.len()).for_each(|source| heap.push(source));
        heap
    }

    /// The entry of a source that is not at its end.
    #[inline]
    fn entry(&self, source: usize) -> Entry<'_> {
        self.sources[source].entry().expect("sources in the heap are not at their end")
    }

    #[inline]
    fn compare_keys(&self, a: &Head, b: &Head) -> Ordering {
        a.hint.cmp(&b.hint).then_with(|| self.entry(a.source).key.cmp(self.entry(b.source).key))
    }

    #[inline]
    fn is_before(&self, a: &Head, b: &Head) -> bool {
        self.compare_keys(a, b).then(a.source.cmp(&b.source)).is_lt()
    }

    /// True if another source has the key of the first.
    #[inline]
    fn is_tied(&self) -> bool {
        let top = &self.heads[0];
        self.heads[1..].iter().take(2).any(|other| self.compare_keys(top, other).is_eq())
    }

    /// Puts a source where its next key belongs, unless it is at its end.
    fn push(&mut self, source: usize) {
        let Some(entry) = self.sources[source].entry() else { return };
        self.heads.push(Head { hint: hint(entry.key), source });
        let mut at = self.heads.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.is_before(&self.heads[at], &self.heads[parent]) {
                break;
            }
            self.heads.swap(at, parent);
            at = parent;
        }
    }

    /// Takes the first out. There must be one.
    fn pop(&mut self) -> Head {
        let top = self.heads.swap_remove(0);
        self.sift_down();
        top
    }

    /// Lets the first source go on, and puts it where its next key belongs.
    #[inline]
    fn advance_top(&mut self) -> Result<(), LsmError> {
        let source = self.heads[0].source;
        self.sources[source].advance()?;
        match self.sources[source].entry() {
            Some(entry) => self.heads[0].hint = hint(entry.key),
            None => _ = self.heads.swap_remove(0),
        }
        self.sift_down();
        Ok(())
    }

    #[inline]
    fn sift_down(&mut self) {
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heads.len() {
                break;
            }
            if child + 1 < self.heads.len() && self.is_before(&self.heads[child + 1], &self.heads[child]) {
                child += 1;
            }
            if !self.is_before(&self.heads[child], &self.heads[at]) {
                break;
            }
            self.heads.swap(at, child);
            at = child;
        }
    }
}
