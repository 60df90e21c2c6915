//! Vector clocks: how far each replica's rows are known.

use std::fmt;
use std::str::FromStr;
use tuple::Lsn;

/// Components of a vclock; number 0 counts rows that stay on their instance.
pub const REPLICA_MAX: usize = 32;

/// One lsn for each replica.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Vclock {
    lsns: [Lsn; REPLICA_MAX],
}

impl Default for Vclock {
    fn default() -> Self {
        Vclock { lsns: [Lsn(0); REPLICA_MAX] }
    }
}

impl Vclock {
    /// The lsn of a replica; 0 if nothing is known of it.
    pub fn get(&self, replica: u32) -> Lsn {
        self.lsns.get(replica as usize).copied().unwrap_or(Lsn(0))
    }

    /// Sets the lsn of a replica; ids out of range are ignored.
    pub fn set(&mut self, replica: u32, lsn: Lsn) {
        if let Some(slot) = self.lsns.get_mut(replica as usize) {
            *slot = lsn;
        }
    }

    /// The sum of all components, local ones included: the number in file names.
    pub fn signature(&self) -> i64 {
        self.lsns.iter().map(|lsn| lsn.0).sum()
    }

    /// True if no component is behind `other`'s.
    pub fn covers(&self, other: &Vclock) -> bool {
        self.lsns.iter().zip(&other.lsns).all(|(own, others)| own >= others)
    }

    /// The larger of both in every component.
    pub(crate) fn or(&self, other: &Vclock) -> Vclock {
        let mut larger = *self;
        larger.lsns.iter_mut().zip(&other.lsns).for_each(|(own, other)| *own = (*own).max(*other));
        larger
    }

    /// Replicas with an lsn, in order.
    pub fn components(&self) -> impl Iterator<Item = (u32, Lsn)> + '_ {
        self.lsns.iter().enumerate().filter(|(_, lsn)| **lsn != 0).map(|(id, lsn)| (id as u32, *lsn))
    }
}

impl fmt::Display for Vclock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (id, lsn)) in self.components().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{id}: {lsn}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Vclock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Vclock {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or(())?;
        let mut vclock = Vclock::default();
        for part in inner.split(',').filter(|part| !part.trim().is_empty()) {
            let (id, lsn) = part.split_once(':').ok_or(())?;
            let id: u32 = id.trim().parse().map_err(|_| ())?;
            let lsn = Lsn(lsn.trim().parse().map_err(|_| ())?);
            if id as usize >= REPLICA_MAX || lsn < 0 {
                return Err(());
            }
            vclock.set(id, lsn);
        }
        Ok(vclock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_and_signature() {
        let vclock: Vclock = "{0: 1, 1: 3220}".parse().expect("good text");
        assert_eq!(vclock.signature(), 3221);
        assert_eq!(vclock.to_string(), "{0: 1, 1: 3220}");
        assert!("{40: 1}".parse::<Vclock>().is_err() && "{".parse::<Vclock>().is_err());
    }
}
