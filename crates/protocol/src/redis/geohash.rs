//! Places on earth as numbers that sort near to each other if the places are: 26 bits of latitude and 26 of longitude, by turns.
//!
//! Source: the description of geohashes, and answers of Redis 7.0, whose cells and distances these are.

/// Bits of each coordinate.
pub(super) const STEPS: u32 = 26;
const LONGITUDES: (f64, f64) = (-180.0, 180.0);
const LATITUDES: (f64, f64) = (-85.051_128_78, 85.051_128_78);
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half of the equator in the projection that cells are of.
const MERCATOR_M: f64 = 20_037_726.37;

/// Degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

/// A cell: a number of `2 * steps` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) bits: u64,
    pub(super) steps: u32,
}

/// The edges of a cell.
struct Area {
    longitudes: (f64, f64),
    latitudes: (f64, f64),
}

impl Place {
    pub(super) fn is_on_the_map(&self) -> bool {
        (LONGITUDES.0..=LONGITUDES.1).contains(&self.longitude) && (LATITUDES.0..=LATITUDES.1).contains(&self.latitude)
    }

    /// The meters to another place.
    pub(super) fn distance(&self, other: &Place) -> f64 {
        let (lat1, lat2) = (self.latitude.to_radians(), other.latitude.to_radians());
        let u = ((lat2 - lat1) / 2.0).sin();
        let v = ((other.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        if v == 0.0 {
            return EARTH_RADIUS_M * (lat2 - lat1).abs();
        }
        2.0 * EARTH_RADIUS_M * (u * u + lat1.cos() * lat2.cos() * v * v).sqrt().asin()
    }
}

/// Puts zeros between the bits of a number.
fn spread(value: u32) -> u64 {
    (0..32).fold(0, |bits, at| bits | (u64::from(value >> at & 1) << (2 * at)))
}

fn gather(bits: u64) -> u32 {
    (0..32).fold(0, |value, at| value | (((bits >> (2 * at)) & 1) as u32) << at)
}

fn cell_between(place: &Place, steps: u32, longitudes: (f64, f64), latitudes: (f64, f64)) -> Cell {
    let scale = (1u64 << steps) as f64;
    let part = |value: f64, (min, max): (f64, f64)| (((value - min) / (max - min)) * scale) as u32;
    Cell { bits: spread(part(place.latitude, latitudes)) | spread(part(place.longitude, longitudes)) << 1, steps }
}

/// The cell of a place.
pub(super) fn cell(place: &Place, steps: u32) -> Cell {
    cell_between(place, steps, LONGITUDES, LATITUDES)
}

/// The middle of the smallest cell.
pub(super) fn place(bits: u64) -> Place {
    let area = area(&Cell { bits, steps: STEPS });
    let middle = |(min, max): (f64, f64), (least, most): (f64, f64)| ((min + max) / 2.0).clamp(least, most);
    Place { longitude: middle(area.longitudes, LONGITUDES), latitude: middle(area.latitudes, LATITUDES) }
}

fn area(cell: &Cell) -> Area {
    let scale = (1u64 << cell.steps) as f64;
    let edges = |part: u32, (min, max): (f64, f64)| {
        let edge = |part: f64| min + part / scale * (max - min);
        (edge(f64::from(part)), edge(f64::from(part) + 1.0))
    };
    Area { longitudes: edges(gather(cell.bits >> 1), LONGITUDES), latitudes: edges(gather(cell.bits), LATITUDES) }
}

impl Cell {
    /// The cell so many columns and rows away; the map ends where it begins.
    fn neighbor(&self, columns: i32, rows: i32) -> Cell {
        let mask = (1u64 << self.steps) - 1;
        let moved = |part: u32, by: i32| (i64::from(part) + i64::from(by)) as u64 & mask;
        let (x, y) = (moved(gather(self.bits >> 1), columns), moved(gather(self.bits), rows));
        Cell { bits: spread(y as u32) | spread(x as u32) << 1, steps: self.steps }
    }

    /// The smallest cells in it: from the first to before the last.
    pub(super) fn range(&self) -> (u64, u64) {
        let shift = 2 * (STEPS - self.steps);
        (self.bits << shift, (self.bits + 1) << shift)
    }
}

/// What is looked for: around a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Meters.
    Circle(f64),
    /// Width and height in meters.
    Box(f64, f64),
}

impl Shape {
    /// The distance of a place that is within.
    pub(super) fn within(&self, center: &Place, place: &Place) -> Option<f64> {
        let distance = || center.distance(place);
        match self {
            Shape::Circle(radius) => Some(distance()).filter(|distance| distance <= radius),
            Shape::Box(width, height) => {
                let beside = Place { longitude: center.longitude, ..*place };
                let above = Place { latitude: center.latitude, ..*place };
                let above = Place { longitude: center.longitude, ..above };
                let is_within = beside.distance(place) <= width / 2.0 && above.distance(&beside) <= height / 2.0;
                is_within.then(distance)
            }
        }
    }

    /// The cells that hold all places within: the one of the center and those around it.
    pub(super) fn cells(&self, center: &Place) -> Vec<Cell> {
        let (width, height) = match self {
            Shape::Circle(radius) => (*radius, *radius),
            Shape::Box(width, height) => (width / 2.0, height / 2.0),
        };
        let radius = match self {
            Shape::Circle(radius) => *radius,
            Shape::Box(..) => (width * width + height * height).sqrt(),
        };
        let up = (height / EARTH_RADIUS_M).to_degrees();
        let aside = |latitude: f64| (width / EARTH_RADIUS_M / latitude.to_radians().cos()).to_degrees();
        let aside = if center.latitude < 0.0 { aside(center.latitude - up) } else { aside(center.latitude + up) };
        let longitudes = (center.longitude - aside, center.longitude + aside);
        let latitudes = (center.latitude - up, center.latitude + up);
        let mut steps = steps_for(radius, center.latitude);
        let mut own = cell(center, steps);
        let edge = |columns, rows| area(&own.neighbor(columns, rows));
        let is_too_small = edge(0, 1).latitudes.1 < latitudes.1
            || edge(0, -1).latitudes.0 > latitudes.0
            || edge(1, 0).longitudes.1 < longitudes.1
            || edge(-1, 0).longitudes.0 > longitudes.0;
        if steps > 1 && is_too_small {
            steps -= 1;
            own = cell(center, steps);
        }
        let around = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let here = area(&own);
        let is_wanted = |(columns, rows): &(i32, i32)| {
            steps < 2
                || !(*rows < 0 && here.latitudes.0 < latitudes.0
                    || *rows > 0 && here.latitudes.1 > latitudes.1
                    || *columns < 0 && here.longitudes.0 < longitudes.0
                    || *columns > 0 && here.longitudes.1 > longitudes.1)
        };
        let mut cells: Vec<Cell> =
            around.into_iter().filter(is_wanted).map(|(columns, rows)| own.neighbor(columns, rows)).collect();
        // Of a huge circle neighbors are the same.
        let mut seen = Vec::new();
        cells.retain(|cell| {
            let is_new = !seen.contains(&cell.bits);
            seen.push(cell.bits);
            is_new
        });
        cells
    }
}

fn steps_for(mut radius: f64, latitude: f64) -> u32 {
    if radius == 0.0 {
        return STEPS;
    }
    let mut steps = 1i32;
    while radius < MERCATOR_M {
        radius *= 2.0;
        steps += 1;
    }
    steps -= 2;
    // Cells are narrow near the poles.
    steps -= i32::from(latitude.abs() > 66.0) + i32::from(latitude.abs() > 80.0);
    steps.clamp(1, STEPS as i32) as u32
}

/// The standard geohash of eleven characters; the last one is always 0, since there are 52 bits.
pub(super) fn text(bits: u64) -> String {
    const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let place = place(bits);
    let standard = cell_between(&place, STEPS, LONGITUDES, (-90.0, 90.0)).bits;
    let letter = |at: u32| match at {
        10 => '0',
        _ => char::from(LETTERS[(standard >> (52 - (at + 1) * 5) & 31) as usize]),
    };
    (0..11).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Place = Place { longitude: 13.361389, latitude: 38.115556 };
    const CATANIA: Place = Place { longitude: 15.087269, latitude: 37.502669 };

    #[test]
    fn places_have_numbers_and_texts() {
        let bits = cell(&PALERMO, STEPS).bits;
        assert_eq!(bits, 3_479_099_956_230_698);
        assert_eq!(text(bits), "sqc8b49rny0");
        assert!((place(bits).longitude - 13.361_389_338_970_184).abs() < 1e-12);
        assert!((PALERMO.distance(&CATANIA) - 166_274.15).abs() < 1.0);
    }

    #[test]
    fn cells_hold_whatever_is_within() {
        for (latitude, radius) in [(0.0, 1000.0), (60.0, 50_000.0), (-84.0, 200_000.0), (38.0, 5_000_000.0)] {
            let center = Place { longitude: 15.0, latitude };
            let shape = Shape::Circle(radius);
            let cells = shape.cells(&center);
            for step in 0..3600 {
                let angle = f64::from(step) / 10.0;
                let (up, aside) = (angle.to_radians().sin(), angle.to_radians().cos());
                let degrees = (radius * 0.7 / EARTH_RADIUS_M).to_degrees();
                let place = Place {
                    longitude: center.longitude + aside * degrees / latitude.to_radians().cos(),
                    latitude: latitude + up * degrees,
                };
                if !place.is_on_the_map() || shape.within(&center, &place).is_none() {
                    continue;
                }
                let bits = cell(&place, STEPS).bits;
                let is_found = cells.iter().any(|cell| (cell.range().0..cell.range().1).contains(&bits));
                assert!(is_found, "{center:?} {radius} {place:?}");
            }
        }
    }
}
