//! Constraints of a space: what rows must be like beyond their format, and which rows of other spaces they name.
//!
//! They stand in the row of the space in `_space` as Tarantool 2.11 has them: `constraint` and `foreign_key` among the options, and in the format
//! of a field. What happens to rows when those that they name go is ours; it stands below `checks`, which Tarantool passes over.

use crate::error::Result;
use crate::fields::{as_str, as_uint, for_each_entry};
use crate::hooks::{GeneratedFields, RowCondition};
use std::rc::Rc;
use tuple::msgpack::{Kind, Reader};
use tuple::{FieldDef, IndexId, SpaceId};

/// A field, as a definition names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRef {
    /// By number, from 0.
    Number(u32),
    /// By the name that the format gives it.
    Name(String),
}

impl FieldRef {
    /// Its number, from 0.
    pub fn resolve(&self, fields: &[FieldDef]) -> Option<u32> {
        match self {
            FieldRef::Number(number) => Some(*number),
            FieldRef::Name(name) => fields.iter().position(|field| field.name == *name).map(|at| at as u32),
        }
    }

    fn decode(value: &[u8]) -> Option<Self> {
        match as_uint(value) {
            Some(number) => u32::try_from(number).ok().map(FieldRef::Number),
            None => as_str(value).map(|name| FieldRef::Name(name.to_string())),
        }
    }
}

/// A function that rows, or values of one field, must satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckDef {
    /// Its name.
    pub name: String,
    /// Number of the function.
    pub function_id: u32,
    /// The field, from 0; none if it looks at the row.
    pub field: Option<u32>,
}

/// A field whose value is computed of its row, whoever writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedDef {
    /// The field, from 0.
    pub field: u32,
    /// The expression, as the bodies of functions have it.
    pub body: String,
}

/// What happens to rows when the row that they name goes or gets another key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// The change is refused.
    #[default]
    Restrict,
    /// It is refused if the key is still named when the statement ends.
    NoAction,
    /// They go, too, or name the new key.
    Cascade,
    /// They name nothing.
    SetNull,
    /// They name what their default says.
    SetDefault,
}

impl Action {
    /// All of them with their names.
    pub const NAMES: [(&str, Action); 5] = [
        ("restrict", Action::Restrict),
        ("no_action", Action::NoAction),
        ("cascade", Action::Cascade),
        ("set_null", Action::SetNull),
        ("set_default", Action::SetDefault),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, action)| *action == self).map_or("restrict", |(name, _)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, action)| *action)
    }
}

/// Whether a look at a foreign key may wait for the end of the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deferral {
    /// It is taken when the statement ends.
    #[default]
    Never,
    /// The same, unless the transaction asks for its own end.
    Immediate,
    /// It is taken when the transaction ends, unless that asks for an earlier one.
    Deferred,
}

impl Deferral {
    /// Its name among the options of a space; none for what is meant without one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Deferral::Never => None,
            Deferral::Immediate => Some("immediate"),
            Deferral::Deferred => Some("deferred"),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Deferral::Immediate, Deferral::Deferred].into_iter().find(|deferral| deferral.name() == Some(name))
    }
}

/// Fields that name a row of a space by a unique key of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyDef {
    /// Its name.
    pub name: String,
    /// The space whose rows are named.
    pub space: SpaceId,
    /// The field in whose format it stands, from 0; none if it stands among the options of the space.
    pub field: Option<u32>,
    /// Fields of this space, and those of the other that they equal.
    pub pairs: Vec<(FieldRef, FieldRef)>,
    /// When a named row goes.
    pub on_delete: Action,
    /// When a named row gets another key.
    pub on_update: Action,
    /// When the look is taken.
    pub deferral: Deferral,
}

/// Reads `constraint`: a map of names and numbers of functions. Errors: what is wrong, in words.
pub(crate) fn parse_checks(
    value: &[u8],
    field: Option<u32>,
    checks: &mut Vec<CheckDef>,
) -> std::result::Result<(), String> {
    let mut wrong = None;
    let read = for_each_entry(value, |name, function| {
        match as_uint(function).and_then(|id| u32::try_from(id).ok()) {
            Some(function_id) => checks.push(CheckDef { name: name.to_string(), function_id, field }),
            None => wrong = Some("constraint function ID is expected to be a number".to_string()),
        }
        Ok(())
    });
    match (read, wrong) {
        (Err(_), _) => Err("constraint field is expected to be a MAP".to_string()),
        (Ok(()), Some(wrong)) => Err(wrong),
        (Ok(()), None) => Ok(()),
    }
}

/// Reads `foreign_key`: a map of names and definitions. `own`: the space that it is of. Errors: what is wrong, in words.
pub(crate) fn parse_foreign_keys(
    value: &[u8],
    field: Option<u32>,
    own: SpaceId,
    keys: &mut Vec<ForeignKeyDef>,
) -> std::result::Result<(), String> {
    let mut wrong = None;
    let read = for_each_entry(value, |name, definition| {
        match parse_foreign_key(name, definition, field, own) {
            Ok(key) => keys.push(key),
            Err(why) => wrong = Some(why),
        }
        Ok(())
    });
    match (read, wrong) {
        (Err(_), _) => Err("foreign key field is expected to be a MAP".to_string()),
        (Ok(()), Some(wrong)) => Err(wrong),
        (Ok(()), None) => Ok(()),
    }
}

fn parse_foreign_key(
    name: &str,
    definition: &[u8],
    field: Option<u32>,
    own: SpaceId,
) -> std::result::Result<ForeignKeyDef, String> {
    const SHAPE: &str = "foreign key definition is expected to be {[space=..,] field=..}";
    let (mut space, mut pairs, mut wrong) = (own, Vec::new(), None);
    let read = for_each_entry(definition, |key, value| {
        match (key, field) {
            ("space", _) => match as_uint(value).and_then(|id| u32::try_from(id).ok()) {
                Some(0) => {}
                Some(id) => space = SpaceId(id),
                None => wrong = Some("foreign key: space must be a number"),
            },
            ("field", Some(number)) => match FieldRef::decode(value) {
                Some(foreign) => pairs.push((FieldRef::Number(number), foreign)),
                None => wrong = Some("foreign key: field must be number or string"),
            },
            ("field", None) => match parse_mapping(value) {
                Some(mapping) => pairs = mapping,
                None => wrong = Some("field mapping is expected to be a map"),
            },
            _ => wrong = Some(SHAPE),
        }
        Ok(())
    });
    match (read, wrong) {
        (Err(_), _) => Err("foreign key definition is expected to be a map".to_string()),
        (Ok(()), Some(wrong)) => Err(wrong.to_string()),
        (Ok(()), None) if pairs.is_empty() => Err(SHAPE.to_string()),
        (Ok(()), None) => Ok(ForeignKeyDef {
            name: name.to_string(),
            space,
            field,
            pairs,
            on_delete: Action::default(),
            on_update: Action::default(),
            deferral: Deferral::default(),
        }),
    }
}

/// A map of local fields and foreign ones, each a number or a name.
fn parse_mapping(value: &[u8]) -> Option<Vec<(FieldRef, FieldRef)>> {
    let mut reader = Reader::new(value);
    let count = match reader.kind().ok()? {
        // Lua writes what begins with the first field as a list.
        Kind::Array => {
            let count = reader.read_array().ok()?;
            let list = (0..count).map(|number| {
                let foreign = FieldRef::decode(reader.read_value().ok()?)?;
                Some((FieldRef::Number(number), foreign))
            });
            return list.collect();
        }
        _ => reader.read_map().ok()?,
    };
    let pairs = (0..count).map(|_| {
        let local = FieldRef::decode(reader.read_value().ok()?)?;
        let foreign = FieldRef::decode(reader.read_value().ok()?)?;
        Some((local, foreign))
    });
    pairs.collect::<Option<Vec<_>>>().filter(|pairs| !pairs.is_empty())
}

/// Reads what happens to rows when those that they name go: a map of names of foreign keys. Errors: what is wrong, in words.
pub(crate) fn parse_actions(value: &[u8], keys: &mut [ForeignKeyDef]) -> std::result::Result<(), String> {
    let mut wrong = None;
    let read = for_each_entry(value, |name, actions| {
        let mut found = (Action::default(), Action::default());
        let mut deferral = Deferral::default();
        let read = for_each_entry(actions, |key, value| {
            if key == "deferrable" {
                match as_str(value).and_then(Deferral::from_name) {
                    Some(found) => deferral = found,
                    None => {
                        wrong = Some(format!("foreign key '{name}': 'deferrable' must be immediate or deferred"));
                    }
                }
                return Ok(());
            }
            match (key, as_str(value).and_then(Action::from_name)) {
                ("on_delete", Some(action)) => found.0 = action,
                ("on_update", Some(action)) => found.1 = action,
                _ => {
                    wrong = Some(format!(
                        "foreign key '{name}': '{key}' must be restrict, no_action, cascade, set_null or set_default"
                    ))
                }
            }
            Ok(())
        });
        if read.is_err() {
            wrong = Some(format!("foreign key '{name}': actions must be a map"));
        }
        for key in keys.iter_mut().filter(|key| key.name == name) {
            (key.on_delete, key.on_update) = found;
            key.deferral = deferral;
        }
        Ok(())
    });
    match (read, wrong) {
        (Err(_), _) => Err("actions of foreign keys must be a map".to_string()),
        (Ok(()), Some(wrong)) => Err(wrong),
        (Ok(()), None) => Ok(()),
    }
}

/// What a check asks.
pub(crate) enum CheckKind {
    /// A function of Lua.
    Function(Rc<super::Function>),
    /// An expression of SQL, or why it is none.
    Expression(Result<Rc<dyn RowCondition>>),
    /// The function is not there.
    Missing,
}

/// A check, ready to be asked.
pub(crate) struct Check {
    pub(crate) def: CheckDef,
    pub(crate) kind: CheckKind,
}

/// A foreign key, with what it means in the present schema.
pub(crate) struct Link {
    pub(crate) def: ForeignKeyDef,
    /// The space whose rows name others.
    pub(crate) child: SpaceId,
    /// The space whose rows are named.
    pub(crate) parent: SpaceId,
    /// The unique index of the parent over just these fields; none: it is not there.
    pub(crate) parent_index: Option<IndexId>,
    /// Fields of the child and of the parent, in the order of that index; in that of the definition without it. None: a name means nothing.
    pub(crate) fields: Option<(Vec<u32>, Vec<u32>)>,
    /// An index of the child by whose first parts its rows are found, and for each of these the position within `fields`.
    pub(crate) child_index: Option<(IndexId, Vec<usize>)>,
}

/// All that writes of a space have to heed, as of one version of the schema.
pub(crate) struct Constraints {
    /// What computes fields of rows, or why nothing does.
    pub(crate) generated: Option<Result<Rc<dyn GeneratedFields>>>,
    /// What asks for the conditions of types of fields, or why nothing does.
    pub(crate) domains: Option<Result<Rc<dyn RowCondition>>>,
    pub(crate) checks: Vec<Check>,
    /// Keys of the space: rows of others that its own name.
    pub(crate) parents: Vec<Rc<Link>>,
    /// Keys of others, and its own, that name its rows.
    pub(crate) children: Vec<Rc<Link>>,
}
