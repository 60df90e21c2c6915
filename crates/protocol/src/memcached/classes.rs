//! memcached's classes of sizes: in which of its slabs the real server would keep an item.
//!
//! It cuts pages of 1 MiB into chunks; each class has chunks a quarter larger than the one before, and the last one half a page, of which a larger item takes
//! several. Here rows lie in other slabs; what tools read about classes is found out by a walk over the items when somebody asks.

/// Classes that there are.
pub(super) const CLASSES: usize = 39;
/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 1 << 20;
const FIRST_BYTES: usize = 96;
const LAST_BYTES: usize = 512 << 10;
const ALIGNMENT: usize = 8;

/// Bytes of the chunks of each.
const CHUNKS: [usize; CLASSES] = {
    let mut chunks = [0; CLASSES];
    let (mut at, mut bytes) = (0, FIRST_BYTES);
    while at < CLASSES - 1 {
        chunks[at] = bytes.next_multiple_of(ALIGNMENT);
        bytes = chunks[at] * 5 / 4;
        at += 1;
    }
    chunks[CLASSES - 1] = LAST_BYTES;
    chunks
};
const _: () = assert!(CHUNKS[CLASSES - 2] < LAST_BYTES && CHUNKS[CLASSES - 2] * 5 / 4 > LAST_BYTES * 4 / 5);

/// The number of the class of an item of so many bytes.
pub(super) fn class_of(bytes: usize) -> usize {
    CHUNKS.partition_point(|chunk| *chunk < bytes).min(CLASSES - 1) + 1
}

/// Bytes of a chunk of a class.
pub(super) fn chunk_bytes(class: usize) -> u64 {
    CHUNKS[class - 1] as u64
}

/// Chunks that an item of so many bytes takes.
pub(super) fn chunks_of(bytes: usize) -> u64 {
    bytes.div_ceil(LAST_BYTES).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `memcached -vv` of 1.6.18 prints them.
    #[test]
    fn classes_are_those_of_memcached() {
        let expected = [
            96, 120, 152, 192, 240, 304, 384, 480, 600, 752, 944, 1184, 1480, 1856, 2320, 2904, 3632, 4544, 5680, 7104,
        ];
        assert_eq!(CHUNKS[..20], expected);
        assert_eq!(CHUNKS[30..], [82_792, 103_496, 129_376, 161_720, 202_152, 252_696, 315_872, 394_840, 524_288]);
        let of = |bytes: &[usize]| bytes.iter().map(|bytes| class_of(*bytes)).collect::<Vec<_>>();
        assert_eq!(
            of(&[0, 96, 97, 120, 66_620, 394_840, 394_841, 524_288, 524_289, usize::MAX]),
            [1, 1, 2, 2, 31, 38, 39, 39, 39, 39]
        );
        assert_eq!([chunks_of(1), chunks_of(524_288), chunks_of(524_289), chunks_of(1 << 20)], [1, 1, 2, 2]);
    }
}
