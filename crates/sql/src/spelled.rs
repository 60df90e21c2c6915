//! What indexes of PostgreSQL's dialect say beyond their columns: expressions among their keys, DESC, WHERE, INCLUDE.
//!
//! It stands among the options of their space below `checks`, by their names, as texts. An expression is a generated column that nobody sees, and the
//! index is over that; so it is with all keys of a unique index with WHERE, which are null where the condition does not hold and so equal to no other.

use crate::comments::{below, put_below};
use crate::constraint::{encode_entries, raw_entries};
use crate::ddl::Ddl;
use crate::error::Result;
use database::{Database, Space};
use std::rc::Rc;
use tuple::SpaceId;
use tuple::msgpack::{self, Kind, Reader};

/// The key of their map.
const KEY: &str = "index_text";

/// One key of such an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpelledKey {
    /// The name of a column, or an expression.
    pub(crate) text: String,
    pub(crate) is_expression: bool,
    /// DESC; the index is in ascending order all the same, and read backwards.
    pub(crate) is_descending: bool,
    pub(crate) puts_nulls_first: bool,
    /// The class of operators that is named; it changes nothing.
    pub(crate) class: Option<String>,
}

impl SpelledKey {
    /// What stands behind it in CREATE INDEX.
    pub(crate) fn order(&self) -> &'static str {
        match (self.is_descending, self.puts_nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        }
    }
}

/// What such an index says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spelled {
    pub(crate) keys: Vec<SpelledKey>,
    pub(crate) condition: Option<String>,
    pub(crate) included: Vec<String>,
    /// NULLS NOT DISTINCT.
    pub(crate) has_equal_nulls: bool,
    /// What WITH says, as `name=value`; it changes nothing.
    pub(crate) options: Vec<String>,
}

impl Spelled {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Those that say nothing of classes and options are as they were before there were such.
        let says_more = !self.options.is_empty() || self.keys.iter().any(|key| key.class.is_some());
        msgpack::encode_array(&mut out, if says_more { 6 } else { 4 });
        msgpack::encode_array(&mut out, self.keys.len() as u32 * 4);
        for key in &self.keys {
            msgpack::encode_str(&mut out, key.text.as_bytes());
            for said in [key.is_expression, key.is_descending, key.puts_nulls_first] {
                msgpack::encode_bool(&mut out, said);
            }
        }
        match &self.condition {
            Some(text) => msgpack::encode_str(&mut out, text.as_bytes()),
            None => msgpack::encode_nil(&mut out),
        }
        msgpack::encode_array(&mut out, self.included.len() as u32);
        self.included.iter().for_each(|name| msgpack::encode_str(&mut out, name.as_bytes()));
        msgpack::encode_bool(&mut out, self.has_equal_nulls);
        if says_more {
            msgpack::encode_array(&mut out, self.keys.len() as u32);
            for key in &self.keys {
                msgpack::encode_str(&mut out, key.class.as_deref().unwrap_or_default().as_bytes());
            }
            msgpack::encode_array(&mut out, self.options.len() as u32);
            self.options.iter().for_each(|option| msgpack::encode_str(&mut out, option.as_bytes()));
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let mut found = Spelled::default();
        let text = |reader: &mut Reader<'_>| Some(String::from_utf8_lossy(reader.read_str().ok()?).into_owned());
        let count = reader.read_array().ok().filter(|count| matches!(count, 4 | 6))?;
        for _ in 0..reader.read_array().ok()? / 4 {
            found.keys.push(SpelledKey {
                text: text(&mut reader)?,
                is_expression: reader.read_bool().ok()?,
                is_descending: reader.read_bool().ok()?,
                puts_nulls_first: reader.read_bool().ok()?,
                class: None,
            });
        }
        match reader.kind().ok()? {
            Kind::Nil => reader.read_nil().ok()?,
            _ => found.condition = Some(text(&mut reader)?),
        }
        for _ in 0..reader.read_array().ok()? {
            found.included.push(text(&mut reader)?);
        }
        found.has_equal_nulls = reader.read_bool().ok()?;
        if count == 6 {
            for at in 0..reader.read_array().ok()? {
                let class = Some(text(&mut reader)?).filter(|class| !class.is_empty());
                found.keys.get_mut(at as usize)?.class = class;
            }
            for _ in 0..reader.read_array().ok()? {
                found.options.push(text(&mut reader)?);
            }
        }
        Some(found)
    }
}

/// What the indexes of a space say, by their names.
pub(crate) fn of_space(database: &Database, space: &Space) -> Vec<(String, Rc<Spelled>)> {
    let found = below(database, space.id).into_iter().find(|(key, _)| key == KEY);
    let entries = found.map_or_else(Vec::new, |(_, map)| raw_entries(&map));
    entries.into_iter().filter_map(|(name, said)| Some((name, Rc::new(Spelled::decode(&said)?)))).collect()
}

/// The options of a space, whose indexes have other texts where there are some.
pub(crate) fn with_texts(options: &[u8], other: &dyn Fn(&str) -> Option<String>) -> Vec<u8> {
    let change = |text: &mut String| {
        if let Some(other) = other(text) {
            *text = other;
        }
    };
    let mut entries = raw_entries(options);
    for (_, below) in entries.iter_mut().filter(|(key, _)| key == "checks") {
        let mut known = raw_entries(below);
        for (_, map) in known.iter_mut().filter(|(key, _)| key == KEY) {
            let mut all = raw_entries(map);
            for (_, said) in &mut all {
                let Some(mut spelled) = Spelled::decode(said) else { continue };
                spelled.keys.iter_mut().filter(|key| key.is_expression).for_each(|key| change(&mut key.text));
                spelled.condition.iter_mut().for_each(change);
                *said = spelled.encode();
            }
            *map = encode_entries(&all);
        }
        *below = encode_entries(&known);
    }
    encode_entries(&entries)
}

impl Ddl<'_> {
    /// Keeps what an index says; none: it says no more than its columns.
    pub(crate) fn set_spelled(&self, space: SpaceId, name: &str, spelled: Option<&Spelled>) -> Result<()> {
        self.change_spelled(space, |all| {
            all.retain(|(known, _)| known != name);
            all.extend(spelled.map(|spelled| (name.to_string(), spelled.clone())));
        })
    }

    /// An index has another name.
    pub(crate) fn rename_spelled(&self, space: SpaceId, old: &str, new: &str) -> Result<()> {
        self.change_spelled(space, |all| {
            all.retain(|(known, _)| known != new);
            all.iter_mut().filter(|(known, _)| known == old).for_each(|(known, _)| *known = new.to_string());
        })
    }

    /// A column has another name.
    pub(crate) fn rename_in_spelled(&self, space: SpaceId, old: &str, new: &str) -> Result<()> {
        let renamed = |text: &mut String| {
            if let Some(changed) = crate::constraint::with_column_renamed(self.dialect, text, old, new) {
                *text = changed;
            }
        };
        self.change_spelled(space, |all| {
            for (_, spelled) in all {
                for key in &mut spelled.keys {
                    match key.is_expression {
                        true => renamed(&mut key.text),
                        false if key.text == old => key.text = new.to_string(),
                        false => {}
                    }
                }
                spelled.condition.iter_mut().for_each(renamed);
                spelled.included.iter_mut().filter(|name| *name == old).for_each(|name| *name = new.to_string());
            }
        })
    }

    fn change_spelled(&self, space: SpaceId, change: impl FnOnce(&mut Vec<(String, Spelled)>)) -> Result<()> {
        let Some(known) = self.database.catalog.space(space) else { return Ok(()) };
        let before = of_space(self.database, &known);
        let mut all: Vec<(String, Spelled)> =
            before.iter().map(|(name, spelled)| (name.clone(), Spelled::clone(spelled))).collect();
        change(&mut all);
        // What has gone meanwhile leaves the map, too.
        all.retain(|(name, _)| known.index_by_name(name).is_some());
        let is_same =
            all.len() == before.len() && all.iter().zip(&before).all(|(new, old)| new.0 == old.0 && new.1 == *old.1);
        if is_same {
            return Ok(());
        }
        let entries: Vec<(String, Vec<u8>)> =
            all.iter().map(|(name, spelled)| (name.clone(), spelled.encode())).collect();
        let map = (!entries.is_empty()).then(|| encode_entries(&entries));
        self.as_admin(|| put_below(self, space, KEY, map))
    }
}
