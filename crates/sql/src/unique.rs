//! Which unique indexes are constraints: all but those that CREATE UNIQUE INDEX of PostgreSQL's dialect has made.
//!
//! The names of the latter stand among the options of their space below `checks`, where Tarantool passes them over. So an index of an older file, or of
//! `create_index`, is a constraint, and a name that has gone stale means nothing once a constraint has taken it.
//!
//! In the same way there is a list of the indexes that came with a foreign key of MySQL's dialect.

use crate::comments::{below, put_below};
use crate::ddl::Ddl;
use crate::error::Result;
use database::{Database, Space};
use tuple::SpaceId;
use tuple::msgpack::{self, Reader};

/// The key of their list.
const KEY: &str = "unique_index";
/// The key of the list of indexes that came with a foreign key of MySQL's dialect, and go when another one takes their place.
pub(crate) const MADE_KEY: &str = "made_index";

/// Names of unique indexes that are no constraints.
pub(crate) fn names(database: &Database, space: &Space) -> Vec<String> {
    listed(database, space, KEY)
}

/// Names in a list of indexes.
pub(crate) fn listed(database: &Database, space: &Space, key: &str) -> Vec<String> {
    let found = below(database, space.id).into_iter().find(|(known, _)| known == key);
    found.map_or_else(Vec::new, |(_, list)| read(&list).unwrap_or_default())
}

fn read(list: &[u8]) -> Option<Vec<String>> {
    let mut reader = Reader::new(list);
    let count = reader.read_array().ok()?;
    (0..count).map(|_| reader.read_str().ok().and_then(|name| String::from_utf8(name.to_vec()).ok())).collect()
}

impl Ddl<'_> {
    /// An index is no constraint any more, or is one again. The right to change it was asked for where its own row was written, in the same transaction.
    pub(crate) fn set_constraint(&self, space: SpaceId, name: &str, is_constraint: bool) -> Result<()> {
        self.set_listed(space, KEY, name, !is_constraint)
    }

    /// Puts the name of an index into a list, or takes it out.
    pub(crate) fn set_listed(&self, space: SpaceId, key: &str, name: &str, is_in: bool) -> Result<()> {
        let Some(known) = self.database.catalog.space(space) else { return Ok(()) };
        let mut listed = listed(self.database, &known, key);
        if is_in == listed.iter().any(|other| other == name) {
            return Ok(());
        }
        // What else has gone meanwhile leaves the list, too.
        listed.retain(|other| other != name && known.index_by_name(other).is_some());
        if is_in {
            listed.push(name.to_string());
        }
        let mut list = Vec::new();
        msgpack::encode_array(&mut list, listed.len() as u32);
        listed.iter().for_each(|name| msgpack::encode_str(&mut list, name.as_bytes()));
        self.as_admin(|| put_below(self, space, key, Some(list).filter(|_| !listed.is_empty())))
    }

    /// The same under another name.
    pub(crate) fn rename_unique(&self, space: SpaceId, old: &str, new: &str) -> Result<()> {
        let Some(known) = self.database.catalog.space(space) else { return Ok(()) };
        match names(self.database, &known).iter().any(|name| name == old) {
            true => {
                self.set_constraint(space, old, true)?;
                self.set_constraint(space, new, false)
            }
            false => self.set_constraint(space, new, true),
        }
    }
}
