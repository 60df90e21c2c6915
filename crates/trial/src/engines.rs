//! Which engine keeps the rows of each space of a run.

use crate::operation::Space;
use tuple::SpaceId;

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engines {
    /// All rows in memory.
    #[default]
    Memory,
    /// All rows on disk.
    Disk,
    /// Some spaces of each; this number says which.
    Mixed(u64),
}

impl Engines {
    /// The option of a space with this number.
    pub fn of(self, space_id: SpaceId) -> &'static str {
        if self.is_disk(space_id) { "vinyl" } else { "memtx" }
    }

    /// True if the rows of a space are on disk.
    pub(crate) fn is_disk(self, space_id: SpaceId) -> bool {
        match self {
            Engines::Memory => false,
            Engines::Disk => true,
            // The top bit of a product depends on all bits below it.
            Engines::Mixed(number) => (number ^ u64::from(space_id)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1,
        }
    }

    /// True if a delete from a space shows nothing: what it removed is not looked for on disk.
    pub(crate) fn hides_deleted(self, space: Space) -> bool {
        match space {
            Space::Id(id) => self.is_disk(SpaceId(id)),
            Space::Name(_) => false,
        }
    }
}
