//! The calls that the command `misc` makes by name.

use super::Iteration;
use super::query;
use super::records::{Kind, Place, ROWS_AT_ONCE, Work, columns_of, join_columns, split_columns};
use super::request::Put;
use database::Result;
use runtime::fiber;

/// Records of one answer.
const RECORDS_MAX: usize = 1 << 20;

/// Makes a call. Returns the elements of its answer; None: it fails. May wait.
pub(super) fn call(
    work: &Work<'_>,
    iteration: &Iteration,
    name: &[u8],
    arguments: &[&[u8]],
) -> Result<Option<Vec<Vec<u8>>>> {
    let done = |is_done: bool| Ok(is_done.then(Vec::new));
    let is_table = work.kind == Kind::Table;
    // Key and value of the arguments; of a table, key and columns.
    let record = || match arguments {
        [key, value] if !is_table => Some((*key, value.to_vec())),
        [key, columns @ ..] if is_table => Some((*key, join_columns(&columns_of(columns)))),
        _ => None,
    };
    let put = |how: Put| match record() {
        Some((key, value)) => work.put(how, key, &value),
        None => Ok(false),
    };
    let max = |text: Option<&&[u8]>| {
        let number =
            text.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.trim().parse::<i64>().ok());
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(RECORDS_MAX).min(RECORDS_MAX)
    };
    match name {
        b"put" => done(put(Put::Set)?),
        b"putkeep" => done(put(Put::Keep)?),
        b"putcat" => done(put(Put::Append)?),
        b"out" => match arguments {
            [key, ..] => done(work.out(key)?),
            _ => Ok(None),
        },
        b"get" => match arguments {
            [key, ..] => Ok(work.get(key)?.map(|value| elements_of(work.kind, value))),
            _ => Ok(None),
        },
        b"getpart" => match arguments {
            [key, from, rest @ ..] => {
                let from = max(Some(from));
                Ok(work.get(key)?.filter(|value| from <= value.len()).map(|value| {
                    let length = max(rest.first()).min(value.len() - from);
                    vec![value[from..from + length].to_vec()]
                }))
            }
            _ => Ok(None),
        },
        b"putlist" => {
            for pair in arguments.chunks_exact(2) {
                work.put(Put::Set, pair[0], pair[1])?;
            }
            done(true)
        }
        b"outlist" => {
            for key in arguments {
                work.out(key)?;
            }
            done(true)
        }
        b"getlist" => {
            let mut elements = Vec::new();
            for key in arguments {
                if let Some(value) = work.get(key)? {
                    elements.extend([key.to_vec(), value]);
                }
            }
            Ok(Some(elements))
        }
        b"iterinit" => {
            let place = match arguments {
                [key, ..] => work.place_of(key)?,
                _ => Place::Start,
            };
            iteration.begin(place);
            done(true)
        }
        b"iternext" => {
            let Some(key) = iteration.next(work)? else { return Ok(None) };
            let value = work.get(&key)?.unwrap_or_default();
            Ok(Some([vec![key], elements_of(work.kind, value)].concat()))
        }
        b"range" => {
            let first = arguments.first().copied().unwrap_or(b"");
            let last = arguments.get(2).copied().filter(|key| !key.is_empty());
            range(work, first, max(arguments.get(1)), last).map(Some)
        }
        b"vanish" => {
            work.database.truncate(work.context, &work.bound.space)?;
            done(true)
        }
        b"sync" | b"optimize" | b"cacheclear" | b"defrag" | b"error" => done(true),
        // A search looks at all records: an index changes nothing but speed.
        b"setindex" if is_table => done(!arguments.is_empty()),
        b"genuid" if is_table => Ok(Some(vec![iteration.unique(work).to_string().into_bytes()])),
        b"search" | b"metasearch" if is_table => match query::read(arguments.iter().copied()) {
            Some((queries, wish)) => query::search(work, &queries, &wish).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// A value as elements: of a table, names and values by turns.
fn elements_of(kind: Kind, value: Vec<u8>) -> Vec<Vec<u8>> {
    match kind {
        Kind::Table => split_columns(&value).into_iter().flat_map(|(name, value)| [name, value]).collect(),
        _ => vec![value],
    }
}

/// Keys and values from one key to another.
fn range(work: &Work<'_>, first: &[u8], max: usize, last: Option<&[u8]>) -> Result<Vec<Vec<u8>>> {
    let mut elements = Vec::new();
    let mut place = Some(if first.is_empty() { Place::Start } else { work.place_of(first)? });
    while let Some(at) = place {
        let (rows, next) = work.rows_behind(&at, ROWS_AT_ONCE)?;
        for row in &rows {
            let (key, value) = work.read(row.data())?;
            let is_behind = last.is_some_and(|last| is_less(work.kind, last, &key) || last == key);
            if elements.len() / 2 >= max || is_behind && work.is_ordered() {
                return Ok(elements);
            }
            if !is_less(work.kind, &key, first) && !is_behind {
                elements.extend([key, value]);
            }
        }
        place = next;
        fiber::yield_now();
    }
    Ok(elements)
}

fn is_less(kind: Kind, a: &[u8], b: &[u8]) -> bool {
    match kind {
        Kind::Fixed => query::number_of(a) < query::number_of(b),
        _ => a < b,
    }
}
