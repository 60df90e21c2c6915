//! What of one document is in another one, and what two make together.

use super::Json;
use crate::error::Result;
use crate::run::Run;
use hashbrown::{HashMap, HashSet};

/// Whether the second is within the first, as `@>` of PostgreSQL says. In time of at most the product of their lengths. May wait. Errors: as [`Run::tick`].
pub(super) fn contains(run: &mut Run<'_>, whole: &Json, part: &Json) -> Result<bool> {
    match (whole, part) {
        (Json::Object(_), Json::Object(wanted)) => {
            for (name, wanted) in wanted {
                run.tick()?;
                let is_in = match whole.member(name) {
                    Some(value) => holds(run, value, wanted)?,
                    None => false,
                };
                if !is_in {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Array(elements), Json::Array(wanted)) => {
            for wanted in wanted {
                if !any(run, elements, &mut |run, element| holds(run, element, wanted))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        // An array may hold a plain value, if it is the whole document.
        (Json::Array(elements), wanted) if !matches!(wanted, Json::Object(_)) => {
            any(run, elements, &mut |_, element| Ok(element.is_same(wanted)))
        }
        (a, b) => Ok(a.is_same(b)),
    }
}

fn holds(run: &mut Run<'_>, value: &Json, wanted: &Json) -> Result<bool> {
    match (value, wanted) {
        (Json::Array(_), Json::Array(_)) | (Json::Object(_), Json::Object(_)) => contains(run, value, wanted),
        (a, b) => Ok(a.is_same(b)),
    }
}

fn any(
    run: &mut Run<'_>,
    elements: &[Json],
    is_it: &mut dyn FnMut(&mut Run<'_>, &Json) -> Result<bool>,
) -> Result<bool> {
    for element in elements {
        run.tick()?;
        if is_it(run, element)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a document is within another one, as MySQL says. As [`contains`].
pub(super) fn contained(run: &mut Run<'_>, target: &Json, candidate: &Json) -> Result<bool> {
    match (target, candidate) {
        (Json::Array(elements), Json::Array(wanted)) => {
            for wanted in wanted {
                if !any(run, elements, &mut |run, element| contained(run, element, wanted))? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Array(elements), wanted) => any(run, elements, &mut |run, element| contained(run, element, wanted)),
        (Json::Object(_), Json::Object(wanted)) => {
            for (name, wanted) in wanted {
                run.tick()?;
                let is_in = match target.member(name) {
                    Some(value) => contained(run, value, wanted)?,
                    None => false,
                };
                if !is_in {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (a, b) => Ok(a.is_same(b)),
    }
}

/// Whether two documents have something in common, as MySQL says. As [`contains`].
pub(super) fn overlaps(run: &mut Run<'_>, first: Json, second: Json) -> Result<bool> {
    if let (Json::Object(members), Json::Object(_)) = (&first, &second) {
        return Ok(members.iter().any(|(name, value)| second.member(name).is_some_and(|other| other.is_same(value))));
    }
    let listed = |json: Json| match json {
        Json::Array(elements) => elements,
        other => vec![other],
    };
    let others = listed(second);
    any(run, &listed(first), &mut |run, value| any(run, &others, &mut |_, other| Ok(other.is_same(value))))
}

/// The names of an object, the texts of an array, or the one text that a document is.
pub(super) enum Names<'j> {
    Members(&'j Json),
    Texts(HashSet<&'j str>),
}

impl<'j> Names<'j> {
    /// Those of a document.
    pub(super) fn of(json: &'j Json) -> Self {
        let text = |json: &'j Json| if let Json::Text(text) = json { Some(&text[..]) } else { None };
        match json {
            Json::Object(_) => Names::Members(json),
            Json::Array(elements) => Names::Texts(elements.iter().filter_map(text).collect()),
            other => Names::Texts(text(other).into_iter().collect()),
        }
    }

    /// True if a name is among them.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Names::Members(json) => json.member(name).is_some(),
            Names::Texts(texts) => texts.contains(name),
        }
    }
}

/// Members of an object that is changed: where each of them is, and what is left of them.
struct Members {
    places: HashMap<String, usize>,
    members: Vec<Option<(String, Json)>>,
}

impl Members {
    fn of(members: Vec<(String, Json)>) -> Self {
        let places = members.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        Members { places, members: members.into_iter().map(Some).collect() }
    }

    /// Gives a member the value that `change` makes of the one before; none: it leaves.
    fn change(&mut self, name: String, change: impl FnOnce(Option<Json>) -> Option<Json>) {
        match self.places.get(&name) {
            Some(at) => {
                let before = self.members[*at].take();
                self.members[*at] = change(before.map(|(_, value)| value)).map(|value| (name, value));
            }
            None => self.members.extend(change(None).map(|value| Some((name, value)))),
        }
    }

    fn object(self) -> Json {
        Json::object(self.members.into_iter().flatten().collect())
    }
}

/// JSON_MERGE_PATCH: members of the second take the place of the first one's, and nulls take them away.
pub(super) fn merge_patch(target: Json, patch: Json) -> Json {
    let Json::Object(changes) = patch else { return patch };
    let mut members = Members::of(match target {
        Json::Object(members) => members,
        _ => Vec::new(),
    });
    for (name, value) in changes {
        members.change(name, |before| match value {
            Json::Null => None,
            value => Some(merge_patch(before.unwrap_or(Json::Null), value)),
        });
    }
    members.object()
}

/// JSON_MERGE_PRESERVE: what both have becomes an array.
pub(super) fn merge_preserve(a: Json, b: Json) -> Json {
    match (a, b) {
        (Json::Object(members), Json::Object(more)) => {
            let mut members = Members::of(members);
            for (name, value) in more {
                members.change(name, |before| {
                    Some(match before {
                        Some(before) => merge_preserve(before, value),
                        None => value,
                    })
                });
            }
            members.object()
        }
        (Json::Array(mut elements), Json::Array(more)) => {
            elements.extend(more);
            Json::Array(elements)
        }
        (Json::Array(mut elements), other) => {
            elements.push(other);
            Json::Array(elements)
        }
        (other, Json::Array(mut elements)) => {
            elements.insert(0, other);
            Json::Array(elements)
        }
        (a, b) => Json::Array(vec![a, b]),
    }
}
