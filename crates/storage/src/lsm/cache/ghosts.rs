//! What was thrown out of the cache lately, by two bytes each: who is asked for again so soon has deserved a better place.

/// Hashes that share a bucket, newest first.
const BUCKET: usize = 8;

/// See the head of this file.
pub(super) struct Ghosts {
    buckets: Vec<[u16; BUCKET]>,
}

impl Ghosts {
    /// So many are remembered.
    pub(super) fn new(count: usize) -> Self {
        Ghosts { buckets: vec![[0; BUCKET]; count.div_ceil(BUCKET)] }
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<[u16; BUCKET]>()
    }

    /// The bucket of a hash, and what it is known by there, which is not 0.
    fn place(&self, hash: u64) -> (usize, u16) {
        let bucket = ((hash & u64::from(u32::MAX)) as usize * self.buckets.len()) >> 32;
        (bucket, (hash >> 32) as u16 | 1)
    }

    pub(super) fn add(&mut self, hash: u64) {
        let (bucket, mark) = self.place(hash);
        if let Some(marks) = self.buckets.get_mut(bucket) {
            marks.copy_within(..BUCKET - 1, 1);
            marks[0] = mark;
        }
    }

    /// True if a hash was remembered; it no longer is.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let (bucket, mark) = self.place(hash);
        let Some(marks) = self.buckets.get_mut(bucket) else { return false };
        let Some(at) = marks.iter().position(|other| *other == mark) else { return false };
        marks.copy_within(at + 1.., at);
        marks[BUCKET - 1] = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_once() {
        let mut ghosts = Ghosts::new(BUCKET);
        (0..20u64).for_each(|at| ghosts.add(at << 33));
        for at in 0..20u64 {
            assert_eq!(ghosts.take(at << 33), at >= 12, "{at}");
            assert!(!ghosts.take(at << 33));
        }
        assert!(!Ghosts::new(0).take(7));
    }
}
