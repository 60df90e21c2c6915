//! What spaces, indexes and rows of the log are called by number.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $number:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $number);

        impl From<$number> for $name {
            fn from(number: $number) -> Self {
                $name(number)
            }
        }

        impl PartialEq<$number> for $name {
            fn eq(&self, number: &$number) -> bool {
                self.0 == *number
            }
        }

        impl PartialOrd<$number> for $name {
            fn partial_cmp(&self, number: &$number) -> Option<std::cmp::Ordering> {
                self.0.partial_cmp(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Number of a space.
    SpaceId, u32
}

id! {
    /// Number of an index within its space.
    IndexId, u32
}

id! {
    /// Position of a row in the log of an instance: its log sequence number. The first row has 1; 0 is before it.
    Lsn, i64
}

impl From<SpaceId> for u64 {
    fn from(id: SpaceId) -> Self {
        u64::from(id.0)
    }
}

impl From<IndexId> for u64 {
    fn from(id: IndexId) -> Self {
        u64::from(id.0)
    }
}

impl Lsn {
    /// That of the row behind it.
    pub fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }

    /// That of the row before it.
    pub fn previous(self) -> Lsn {
        Lsn(self.0 - 1)
    }
}

impl IndexId {
    /// The primary index of every space.
    pub const PRIMARY: IndexId = IndexId(0);
}
