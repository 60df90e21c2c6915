//! Places: members of a sorted set whose scores are geohashes.

use super::call::{Call, Head, Kind};
use super::failure::{Outcome, SYNTAX};
use super::geohash::{self, Place, STEPS, Shape};
use super::sorted_sets::{self, AddOptions, Range};
use std::ops::Bound;

const UNITS: &str = "ERR unsupported unit provided. please use M, KM, FT, MI";

/// Meters of a unit.
fn unit(call: &Call<'_>, at: usize) -> Outcome<f64> {
    let text = call.args.get(at).ok_or(SYNTAX)?.to_ascii_lowercase();
    Ok(match text.as_slice() {
        b"m" => 1.0,
        b"km" => 1000.0,
        b"ft" => 0.3048,
        b"mi" => 1609.34,
        _ => return Err(UNITS.into()),
    })
}

/// A place in two arguments. Errors: it is not on the map.
fn place_at(call: &Call<'_>, at: usize) -> Outcome<Place> {
    let place = Place { longitude: call.double(at)?, latitude: call.double(at + 1)? };
    if !place.is_on_the_map() {
        return Err(format!("ERR invalid longitude,latitude pair {:.6},{:.6}", place.longitude, place.latitude).into());
    }
    Ok(place)
}

pub(super) fn geoadd(call: &mut Call<'_>) -> Outcome {
    let (key, args) = (call.args[1], call.args);
    let (mut options, mut at) = (AddOptions::default(), 2);
    loop {
        if call.is_word(at, "nx") {
            options.is_nx = true;
        } else if call.is_word(at, "xx") {
            options.is_xx = true;
        } else if call.is_word(at, "ch") {
            options.counts_changed = true;
        } else {
            break;
        }
        at += 1;
    }
    let rest = args.get(at..).unwrap_or_default();
    if rest.is_empty() || !rest.len().is_multiple_of(3) || options.is_nx && options.is_xx {
        return Err(SYNTAX.into());
    }
    let mut pairs = Vec::with_capacity(rest.len() / 3);
    for at in (at..args.len()).step_by(3) {
        let bits = geohash::cell(&place_at(call, at)?, STEPS).bits;
        pairs.push((args[at + 2], bits as f64));
    }
    let (added, changed, _) = sorted_sets::add(call, key, &options, &pairs)?;
    call.reply().integer((added + if options.counts_changed { changed } else { 0 }) as i64);
    Ok(())
}

fn scores(call: &Call<'_>, key: &[u8], members: &[&[u8]]) -> Outcome<Vec<Option<u64>>> {
    let head = call.find_head(key, Kind::SortedSet)?.map(|(head, _)| head);
    let score = |member: &&[u8]| match &head {
        Some(head) => Ok(sorted_sets::score(call, head, member)?.map(|score| score as u64)),
        None => Ok(None),
    };
    members.iter().map(score).collect()
}

pub(super) fn geohash(call: &mut Call<'_>) -> Outcome {
    let scores = scores(call, call.args[1], &call.args[2..])?;
    let mut reply = call.reply();
    reply.array(scores.len());
    for score in scores {
        match score {
            Some(bits) => reply.text(&geohash::text(bits)),
            None => reply.null(),
        }
    }
    Ok(())
}

/// A coordinate with all digits that it has.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

fn write_place(reply: &mut super::reply::Reply<'_>, place: &Place) {
    reply.array(2);
    for value in [place.longitude, place.latitude] {
        match reply.resp3 {
            true => reply.out.extend_from_slice(format!(",{}\r\n", coordinate(value)).as_bytes()),
            false => reply.text(&coordinate(value)),
        }
    }
}

pub(super) fn geopos(call: &mut Call<'_>) -> Outcome {
    let scores = scores(call, call.args[1], &call.args[2..])?;
    let mut reply = call.reply();
    reply.array(scores.len());
    for score in scores {
        match score {
            Some(bits) => write_place(&mut reply, &geohash::place(bits)),
            None => reply.null_array(),
        }
    }
    Ok(())
}

pub(super) fn geodist(call: &mut Call<'_>) -> Outcome {
    let meters = match call.args.len() {
        4 => 1.0,
        5 => unit(call, 4)?,
        _ => return Err(SYNTAX.into()),
    };
    match scores(call, call.args[1], &call.args[2..4])?[..] {
        [Some(a), Some(b)] => {
            let distance = geohash::place(a).distance(&geohash::place(b)) / meters;
            call.reply().text(&format!("{distance:.4}"));
        }
        _ => call.reply().null(),
    }
    Ok(())
}

/// What is looked for, and how it is told.
struct Search<'a> {
    key: &'a [u8],
    center: Option<Place>,
    shape: Option<Shape>,
    /// Meters of the unit that distances are told in.
    unit: f64,
    /// Ascending, or descending.
    order: Option<bool>,
    count: Option<usize>,
    is_any: bool,
    with_place: bool,
    with_distance: bool,
    with_hash: bool,
    store: Option<&'a [u8]>,
    stores_distance: bool,
}

struct Found {
    member: Vec<u8>,
    bits: u64,
    /// Meters.
    distance: f64,
}

fn member_place(call: &Call<'_>, key: &[u8], member: &[u8]) -> Outcome<Option<Place>> {
    let Some((head, _)) = call.find_head(key, Kind::SortedSet)? else { return Ok(None) };
    let score = sorted_sets::score(call, &head, member)?.ok_or("ERR could not decode requested zset member")?;
    Ok(Some(geohash::place(score as u64)))
}

fn radius(call: &Call<'_>, at: usize) -> Outcome<(f64, f64)> {
    let radius = call.double(at).map_err(|_| "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err("ERR radius cannot be negative".into());
    }
    let meters = unit(call, at + 1)?;
    Ok((radius * meters, meters))
}

/// Reads options from an argument on.
fn options<'a>(call: &Call<'a>, search: &mut Search<'a>, mut at: usize, is_new: bool, may_store: bool) -> Outcome {
    let name = String::from_utf8_lossy(call.args[0]).to_lowercase();
    let mut has_center = search.center.is_some();
    while at < call.args.len() {
        let more = call.args.len() - at - 1;
        if call.is_word(at, "withdist") {
            search.with_distance = true;
        } else if call.is_word(at, "withhash") {
            search.with_hash = true;
        } else if call.is_word(at, "withcoord") {
            search.with_place = true;
        } else if call.is_word(at, "any") {
            search.is_any = true;
        } else if call.is_word(at, "asc") {
            search.order = Some(true);
        } else if call.is_word(at, "desc") {
            search.order = Some(false);
        } else if call.is_word(at, "count") && more > 0 {
            let count = call.integer(at + 1)?;
            search.count = Some(usize::try_from(count).ok().filter(|count| *count > 0).ok_or("ERR COUNT must be > 0")?);
            at += 1;
        } else if may_store && !is_new && more > 0 && (call.is_word(at, "store") || call.is_word(at, "storedist")) {
            search.stores_distance = call.is_word(at, "storedist");
            search.store = Some(call.args[at + 1]);
            at += 1;
        } else if is_new && search.store.is_some() && call.is_word(at, "storedist") {
            search.stores_distance = true;
        } else if is_new && !has_center && more > 0 && call.is_word(at, "frommember") {
            search.center = member_place(call, search.key, call.args[at + 1])?;
            has_center = true;
            at += 1;
        } else if is_new && !has_center && more > 1 && call.is_word(at, "fromlonlat") {
            search.center = Some(place_at(call, at + 1)?);
            has_center = true;
            at += 2;
        } else if is_new && search.shape.is_none() && more > 1 && call.is_word(at, "byradius") {
            let (meters, unit) = radius(call, at + 1)?;
            (search.shape, search.unit) = (Some(Shape::Circle(meters)), unit);
            at += 2;
        } else if is_new && search.shape.is_none() && more > 2 && call.is_word(at, "bybox") {
            let width = call.double(at + 1).map_err(|_| "ERR need numeric width")?;
            let height = call.double(at + 2).map_err(|_| "ERR need numeric height")?;
            if width < 0.0 || height < 0.0 {
                return Err("ERR height or width cannot be negative".into());
            }
            search.unit = unit(call, at + 3)?;
            search.shape = Some(Shape::Box(width * search.unit, height * search.unit));
            at += 3;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    if search.store.is_some() && (search.with_distance || search.with_hash || search.with_place) {
        let name =
            if is_new { "GEOSEARCHSTORE".to_string() } else { format!("STORE option in {}", name.to_uppercase()) };
        return Err(format!("ERR {name} is not compatible with WITHDIST, WITHHASH and WITHCOORD options").into());
    }
    if is_new && !has_center {
        return Err(format!("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}").into());
    }
    if is_new && search.shape.is_none() {
        return Err(format!("ERR exactly one of BYRADIUS and BYBOX can be specified for {name}").into());
    }
    if search.is_any && search.count.is_none() {
        return Err("ERR the ANY argument requires COUNT argument".into());
    }
    Ok(())
}

fn find(call: &Call<'_>, head: &Head, search: &Search<'_>) -> Outcome<Vec<Found>> {
    let (Some(center), Some(shape)) = (search.center, search.shape) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for cell in shape.cells(&center) {
        let (from, to) = cell.range();
        let range = Range::Score(Bound::Included(from as f64), Bound::Excluded(to as f64));
        for (member, score) in sorted_sets::select(call, head, &range, false, (0, u64::MAX))? {
            let bits = score as u64;
            if let Some(distance) = shape.within(&center, &geohash::place(bits)) {
                found.push(Found { member, bits, distance });
                if search.is_any && search.count == Some(found.len()) {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

fn answer(call: &mut Call<'_>, search: &Search<'_>) -> Outcome {
    let head = call.find_head(search.key, Kind::SortedSet)?.map(|(head, _)| head);
    let mut found = match &head {
        Some(head) => find(call, head, search)?,
        None => Vec::new(),
    };
    let order = search.order.or((search.count.is_some() && !search.is_any).then_some(true));
    match order {
        Some(true) => found.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
        Some(false) => found.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
        None => {}
    }
    found.truncate(search.count.unwrap_or(usize::MAX));
    if let Some(key) = search.store {
        let score = |one: &Found| if search.stores_distance { one.distance / search.unit } else { one.bits as f64 };
        let members: Vec<_> = found.iter().map(|one| (one.member.clone(), score(one))).collect();
        sorted_sets::store(call, key, &members)?;
        call.reply().count(found.len());
        return Ok(());
    }
    let more = [search.with_distance, search.with_hash, search.with_place].iter().filter(|with| **with).count();
    let mut reply = call.reply();
    reply.array(found.len());
    for one in &found {
        if more > 0 {
            reply.array(more + 1);
        }
        reply.bulk(&one.member);
        if search.with_distance {
            reply.text(&format!("{:.4}", one.distance / search.unit));
        }
        if search.with_hash {
            reply.integer(one.bits as i64);
        }
        if search.with_place {
            write_place(&mut reply, &geohash::place(one.bits));
        }
    }
    Ok(())
}

fn new_search(key: &[u8]) -> Search<'_> {
    Search {
        key,
        center: None,
        shape: None,
        unit: 1.0,
        order: None,
        count: None,
        is_any: false,
        with_place: false,
        with_distance: false,
        with_hash: false,
        store: None,
        stores_distance: false,
    }
}

pub(super) fn geosearch(call: &mut Call<'_>) -> Outcome {
    let mut search = new_search(call.args[1]);
    options(call, &mut search, 2, true, false)?;
    answer(call, &search)
}

pub(super) fn geosearchstore(call: &mut Call<'_>) -> Outcome {
    let mut search = Search { store: Some(call.args[1]), ..new_search(call.args[2]) };
    options(call, &mut search, 3, true, true)?;
    answer(call, &search)
}

fn around_place(call: &mut Call<'_>, may_store: bool) -> Outcome {
    let center = place_at(call, 2)?;
    let (meters, unit) = radius(call, 4)?;
    let mut search =
        Search { center: Some(center), shape: Some(Shape::Circle(meters)), unit, ..new_search(call.args[1]) };
    options(call, &mut search, 6, false, may_store)?;
    answer(call, &search)
}

fn around_member(call: &mut Call<'_>, may_store: bool) -> Outcome {
    let key = call.args[1];
    let center = member_place(call, key, call.args[2])?;
    let (meters, unit) = radius(call, 3)?;
    let mut search = Search { center, shape: Some(Shape::Circle(meters)), unit, ..new_search(key) };
    options(call, &mut search, 5, false, may_store)?;
    answer(call, &search)
}

pub(super) fn georadius(call: &mut Call<'_>) -> Outcome {
    around_place(call, true)
}

pub(super) fn georadius_ro(call: &mut Call<'_>) -> Outcome {
    around_place(call, false)
}

pub(super) fn georadiusbymember(call: &mut Call<'_>) -> Outcome {
    around_member(call, true)
}

pub(super) fn georadiusbymember_ro(call: &mut Call<'_>) -> Outcome {
    around_member(call, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_all_their_digits() {
        assert_eq!(coordinate(13.361_389_338_970_184), "13.36138933897018433");
        assert_eq!(coordinate(0.0), "0");
    }
}
