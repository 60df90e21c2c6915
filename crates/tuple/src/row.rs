//! A row: one pointer to a header and the row's bytes.
//!
//! ```text
//! 0        4       5           8              10
//! size u32 refs u8 format u24  generation u16 row bytes ...
//! ```
//!
//! Headers are as small as they can be, since there is one for each row. Most rows have one or two references; those beyond 255 are
//! counted in a table beside. Reference counts are plain integers, so a row never leaves its thread; read views of other threads read the
//! size and the bytes only, and the arena keeps rows that a view may reach.
#![expect(unsafe_code, reason = "rows are counted by hand to stay one pointer wide and 10 bytes of overhead")]

use crate::arena::{Arena, OutOfMemory};
use crate::msgpack::Reader;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What stands before the bytes of a row.
#[repr(C, packed(2))]
pub(crate) struct TupleHeader {
    /// Bytes of the row, header not included.
    size: u32,
    /// Number of [`Tuple`]s that share the row, up to `REFS_MAX`.
    refs: u8,
    /// Number of the format it was made with, from the lowest byte.
    format_id: [u8; 3],
    /// The arena's view counter when it was made.
    generation: u16,
}

const _: () = assert!(size_of::<TupleHeader>() == 10);

impl TupleHeader {
    /// Makes the header of a row without references hold an address beside the size.
    ///
    /// # Safety
    /// The row is alive, belongs to this thread, and nobody reads more of the header than the size.
    pub(crate) unsafe fn link(header: NonNull<TupleHeader>, address: usize) {
        let [bytes @ .., 0, 0] = (address as u64).to_le_bytes() else {
            panic!("addresses of a process have 48 bits at most");
        };
        // SAFETY: by the caller's promise; the six bytes behind the size end with the header.
        unsafe { (&raw mut (*header.as_ptr()).refs).cast::<[u8; 6]>().write(bytes) };
    }

    /// Bytes of the row with its header, and the address that `link` put there.
    ///
    /// # Safety
    /// `link` was called for the row, which is alive and belongs to this thread.
    pub(crate) unsafe fn linked(header: NonNull<TupleHeader>) -> (usize, usize) {
        // SAFETY: by the caller's promise.
        let (size, [a, b, c, d, e, f]) =
            unsafe { ((*header.as_ptr()).size, (&raw const (*header.as_ptr()).refs).cast::<[u8; 6]>().read()) };
        (size_of::<TupleHeader>() + size as usize, u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) as usize)
    }
}

/// References that a header counts.
const REFS_MAX: u8 = u8::MAX;
/// Formats from this number on are all the same to a row.
pub const FORMAT_ID_MAX: u32 = (1 << 24) - 1;

thread_local! {
    /// References beyond `REFS_MAX`, by the address of the row.
    static FURTHER_REFS: RefCell<BTreeMap<usize, u64>> = const { RefCell::new(BTreeMap::new()) };
}

#[cold]
fn add_further_ref(row: usize) {
    FURTHER_REFS.with_borrow_mut(|further| *further.entry(row).or_default() += 1);
}

/// False if there is none.
#[cold]
fn take_further_ref(row: usize) -> bool {
    FURTHER_REFS.with_borrow_mut(|further| {
        let Some(count) = further.get_mut(&row) else { return false };
        *count -= 1;
        if *count == 0 {
            further.remove(&row);
        }
        true
    })
}

/// A reference to a row in an [`Arena`]. Cloning counts; the last one dropped frees the row.
pub struct Tuple {
    header: NonNull<TupleHeader>,
    /// Not `Send`: counts are plain integers.
    thread: PhantomData<*const ()>,
}

impl Tuple {
    /// Bytes that stand before a row.
    pub const HEADER_BYTES: usize = size_of::<TupleHeader>();

    /// Copies `row`, one checked msgpack array, into the arena. Errors: the arena is at its limit.
    pub fn new(arena: &Arena, format_id: u32, row: &[u8]) -> Result<Tuple, OutOfMemory> {
        let block = arena.allocate(size_of::<TupleHeader>() + row.len())?;
        let header = block.cast::<TupleHeader>();
        // SAFETY: `allocate` gave a block of that size, aligned to 2, that nobody else uses.
        unsafe {
            let [a, b, c, _] = format_id.min(FORMAT_ID_MAX).to_le_bytes();
            let (size, generation) = (row.len() as u32, arena.generation());
            header.write(TupleHeader { size, refs: 1, format_id: [a, b, c], generation });
            header.add(1).cast::<u8>().copy_from_nonoverlapping(NonNull::from(row).cast(), row.len());
        }
        Ok(Tuple { header, thread: PhantomData })
    }

    fn header(&self) -> &TupleHeader {
        // SAFETY: a live Tuple points to a live header.
        unsafe { self.header.as_ref() }
    }

    /// The bytes: one msgpack array.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: the row is alive as long as this reference.
        unsafe { Self::data_of_raw(self.as_raw()) }
    }

    /// Number of bytes.
    pub fn size(&self) -> usize {
        self.header().size as usize
    }

    /// Number of the format it was made with.
    pub fn format_id(&self) -> u32 {
        let [a, b, c] = self.header().format_id;
        u32::from_le_bytes([a, b, c, 0])
    }

    /// Number of fields.
    pub fn field_count(&self) -> u32 {
        Reader::new(self.data()).read_array().unwrap_or(0)
    }

    /// The raw bytes of a field, counted from 0.
    pub fn field(&self, field_no: u32) -> Option<&[u8]> {
        field_of(self.data(), field_no)
    }

    /// True if both are the same row in memory.
    pub fn ptr_eq(&self, other: &Tuple) -> bool {
        self.header == other.header
    }

    /// The address, as indexes store it. No reference is counted.
    #[inline]
    pub fn as_raw(&self) -> u64 {
        self.header.as_ptr() as u64
    }

    /// To be called some time before many rows are dropped one after the other: their memory comes meanwhile.
    pub fn foresee_drop(&self) {
        Arena::foresee_free(self.header.cast());
    }

    /// The address; the reference is kept by whoever holds it until `from_raw`.
    pub fn into_raw(self) -> u64 {
        let raw = self.as_raw();
        std::mem::forget(self);
        raw
    }

    /// Takes over the reference that `into_raw` gave away.
    ///
    /// # Safety
    /// `raw` comes from `into_raw`, on the same thread, and is used once.
    pub unsafe fn from_raw(raw: u64) -> Tuple {
        // SAFETY: addresses of rows are never null.
        Tuple { header: unsafe { NonNull::new_unchecked(raw as *mut TupleHeader) }, thread: PhantomData }
    }

    /// The bytes of a row by its address.
    ///
    /// # Safety
    /// The row stays alive for `'a`: a reference is held, or a view is open that was opened while it was alive.
    #[inline]
    pub unsafe fn data_of_raw<'a>(raw: u64) -> &'a [u8] {
        let header = raw as *const TupleHeader;
        // SAFETY: by the caller's promise the header and the bytes behind it are alive; `size` is never changed.
        unsafe { std::slice::from_raw_parts(header.add(1).cast::<u8>(), (*header).size as usize) }
    }
}

impl Clone for Tuple {
    fn clone(&self) -> Self {
        // SAFETY: the row is alive and belongs to this thread.
        let refs = unsafe { &mut (*self.header.as_ptr()).refs };
        if *refs == REFS_MAX {
            add_further_ref(self.header.as_ptr() as usize);
        } else {
            *refs += 1;
        }
        Tuple { header: self.header, thread: PhantomData }
    }
}

impl Drop for Tuple {
    fn drop(&mut self) {
        let header = self.header.as_ptr();
        // SAFETY: the row is alive and belongs to this thread; the last reference gives the block back.
        unsafe {
            if (*header).refs == REFS_MAX && take_further_ref(header as usize) {
                return;
            }
            (*header).refs -= 1;
            if (*header).refs == 0 {
                let size = size_of::<TupleHeader>() + (*header).size as usize;
                Arena::free(self.header.cast(), size, (*header).generation);
            }
        }
    }
}

impl std::fmt::Debug for Tuple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        crate::msgpack::format_value(self.data(), &mut text);
        f.write_str(&text)
    }
}

/// The raw bytes of a field of a row (checked bytes), counted from 0, and whatever follows.
#[inline]
pub(crate) fn field_from(row: &[u8], field_no: u32) -> Option<&[u8]> {
    let mut reader = Reader::new(row);
    let count = reader.read_array().ok()?;
    if field_no >= count {
        return None;
    }
    for _ in 0..field_no {
        reader.skip_checked();
    }
    Some(reader.rest())
}

/// The raw bytes of a field of a row (checked bytes), counted from 0.
pub fn field_of(row: &[u8], field_no: u32) -> Option<&[u8]> {
    let rest = field_from(row, field_no)?;
    Some(&rest[..crate::msgpack::skip(rest)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_references_may_share_a_row() {
        let arena = Arena::new(1 << 20);
        let row = Tuple::new(&arena, FORMAT_ID_MAX, &[0x91, 7]).expect("below the limit");
        for count in [1, 254, 255, 256, 1000] {
            let held: Vec<Tuple> = (0..count).map(|_| row.clone()).collect();
            assert!(held.iter().all(|other| other.ptr_eq(&row) && other.data() == [0x91, 7]));
            drop(held);
            assert!(arena.used() > 0 && row.format_id() == FORMAT_ID_MAX);
        }
        FURTHER_REFS.with_borrow(|further| assert!(further.is_empty()));
        drop(row);
        assert_eq!(arena.used(), 0);
    }
}
