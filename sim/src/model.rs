//! What the spaces of users should hold: a few maps, and the same picture taken of a real database.

use crate::world::in_fiber;
use database::{Database, INDEX_ID, Key, SPACE_ID, ScanRequest};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use storage::IteratorKind;
use tuple::msgpack::Reader;
use tuple::{IndexId, SpaceId};

/// Spaces of users begin at this number.
const USER_SPACES: u32 = 512;

/// One space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpaceModel {
    /// Its name.
    pub name: String,
    /// Names of its indexes by number. All but number 0 are ordered by the second field, then the first.
    pub indexes: BTreeMap<u32, String>,
    /// Rows by their first field, as they are encoded.
    pub rows: BTreeMap<u64, Rc<[u8]>>,
}

/// All spaces of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Model {
    /// By number.
    pub spaces: BTreeMap<u32, SpaceModel>,
}

/// Two models are the same if their digests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u64);

/// First and second field of a row.
fn key_of(row: &[u8]) -> Option<(u64, u64)> {
    let mut reader = Reader::new(row);
    reader.read_array().ok()?;
    Some((reader.read_uint().ok()?, reader.read_uint().ok()?))
}

impl Model {
    /// Tells models apart.
    pub fn digest(&self) -> Digest {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        Digest(hasher.finish())
    }

    /// What a database holds. Errors, in words: indexes that disagree, a catalog that is not what its rows say.
    pub fn of(database: &Rc<Database>) -> Result<Self, String> {
        let mut model = Model::default();
        for row in rows(database, SPACE_ID.0, 0)? {
            let mut reader = Reader::new(&row);
            let fields = reader.read_array().and_then(|_| reader.read_uint()).map_err(|error| error.to_string())?;
            let id = fields as u32;
            if id < USER_SPACES {
                continue;
            }
            let Some(space) = database.catalog.space(SpaceId(id)) else {
                return Err(format!("_space has a row of {id}, which the catalog has not"));
            };
            model.spaces.insert(id, SpaceModel { name: space.name(), ..SpaceModel::default() });
        }
        let known = database.catalog.spaces().iter().filter(|space| space.id >= USER_SPACES).count();
        if known != model.spaces.len() {
            return Err(format!("the catalog has {known} spaces, _space {}", model.spaces.len()));
        }
        let mut index_rows = 0;
        for row in rows(database, INDEX_ID.0, 0)? {
            let Some((space_id, index_id)) = key_of(&row) else { return Err("a malformed row of _index".to_string()) };
            let Some(space_model) = model.spaces.get_mut(&(space_id as u32)) else { continue };
            index_rows += 1;
            let space = database.space(SpaceId(space_id as u32)).map_err(|error| error.to_string())?;
            let Some(info) = space.index(IndexId(index_id as u32)) else {
                return Err(format!("_index has a row of {space_id}/{index_id}, which the catalog has not"));
            };
            space_model.indexes.insert(info.id.0, info.name.clone());
        }
        let mut known = 0;
        for (id, space_model) in &mut model.spaces {
            let space = database.space(SpaceId(*id)).map_err(|error| error.to_string())?;
            known += space.indexes().len();
            space_model.rows = read_space(database, *id, &space_model.indexes)?;
        }
        if known != index_rows {
            return Err(format!("the catalog has {known} indexes, _index {index_rows}"));
        }
        Ok(model)
    }

    /// In words: spaces with their indexes and rows.
    pub fn describe(&self) -> String {
        let spaces = self.spaces.iter().map(|(id, space)| {
            let rows: Vec<String> = space
                .rows
                .iter()
                .map(|(key, row)| {
                    let value = key_of(row).map_or(0, |(_, value)| value);
                    if row.len() > 100 {
                        format!("{key}={value} ({} bytes)", row.len())
                    } else {
                        format!("{key}={value}")
                    }
                })
                .collect();
            let indexes: Vec<&str> = space.indexes.values().map(String::as_str).collect();
            format!("{id} {} [{}]: {}", space.name, indexes.join(" "), rows.join(", "))
        });
        spaces.collect::<Vec<_>>().join("; ")
    }
}

fn rows(database: &Rc<Database>, space_id: u32, index_id: u32) -> Result<Vec<Vec<u8>>, String> {
    match select(database, space_id, index_id) {
        Err(error) if error.is_needs_fiber() => {
            in_fiber(database, move |database| select(database, space_id, index_id))
        }
        found => found,
    }
    .map_err(|error| format!("space {space_id}, index {index_id}: {error}"))
}

fn select(database: &Database, space_id: u32, index_id: u32) -> database::Result<Vec<Vec<u8>>> {
    let context = database.admin_context();
    let space = database.space(SpaceId(space_id))?;
    let mut rows = Vec::new();
    database.select(&context, &space, &ScanRequest::new(IndexId(index_id), IteratorKind::All, Key::EMPTY), |row| {
        rows.push(row.to_vec());
        true
    })?;
    Ok(rows)
}

/// Rows of a space by the primary index, which all others must agree with.
fn read_space(
    database: &Rc<Database>,
    id: u32,
    indexes: &BTreeMap<u32, String>,
) -> Result<BTreeMap<u64, Rc<[u8]>>, String> {
    let mut found = BTreeMap::new();
    let mut by_value = Vec::new();
    if !indexes.contains_key(&0) {
        return Ok(found);
    }
    for row in rows(database, id, 0)? {
        let Some((key, value)) = key_of(&row) else { return Err(format!("space {id} has a malformed row")) };
        by_value.push((value, key));
        found.insert(key, Rc::from(row));
    }
    by_value.sort_unstable();
    for &index_id in indexes.keys().filter(|&&index_id| index_id != 0) {
        let mut seen = Vec::new();
        for row in rows(database, id, index_id)? {
            let pair = key_of(&row).map(|(key, value)| (value, key));
            let is_same = pair.is_some_and(|(_, key)| found.get(&key).is_some_and(|primary| **primary == *row));
            if !is_same {
                return Err(format!("index {index_id} of space {id} has a row that the primary has not: {pair:?}"));
            }
            seen.extend(pair);
        }
        if seen != by_value {
            return Err(format!("index {index_id} of space {id} has {seen:?}, the primary {by_value:?}"));
        }
    }
    Ok(found)
}
