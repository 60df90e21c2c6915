//! Who wants what: the stock and the operations of the inventory workload, made so that in order every operation can be carried out.

use load::Random;
use std::collections::BTreeMap;

/// Skus are 1..=SKUS.
const SKUS: u64 = 1000;
/// Warehouses, conditions and sources are 1..=KINDS.
const KINDS: u64 = 3;
/// Most items: all different places that there are.
pub(crate) const ITEMS_MAX: u64 = SKUS * KINDS * KINDS * KINDS;
/// Most units that one operation takes or gives.
const UNITS_MAX: u64 = 3;

/// Where units lie: unique among the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) sku: u64,
    pub(crate) warehouse: u64,
    pub(crate) condition: u64,
    pub(crate) source: u64,
}

impl Place {
    /// What a capture names: it does not care for the warehouse.
    pub(crate) fn group(&self) -> Group {
        Group { sku: self.sku, condition: self.condition, source: self.source }
    }
}

/// Items that are the same to a buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub(crate) sku: u64,
    pub(crate) condition: u64,
    pub(crate) source: u64,
}

/// A row of the initial stock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) place: Place,
    pub(crate) price: u64,
    pub(crate) count: u64,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Take units from any warehouse.
    Capture(Group, u64),
    /// Give units to one warehouse.
    Release(Place, u64),
}

/// The work of a seed.
pub(crate) struct Work {
    pub(crate) items: Vec<Item>,
    pub(crate) operations: Vec<Operation>,
    /// Units once everything is done.
    pub(crate) totals: BTreeMap<Group, u64>,
}

/// The generator's stock, from which an item that has units can be drawn at once.
struct Stock {
    counts: Vec<u64>,
    /// Items that have units, in no order.
    filled: Vec<usize>,
    /// For each item its index in `filled`; of no meaning while its count is 0.
    positions: Vec<usize>,
}

impl Stock {
    fn new(items: &[Item]) -> Self {
        let mut stock = Stock { counts: vec![0; items.len()], filled: Vec::new(), positions: vec![0; items.len()] };
        for (item, Item { count, .. }) in items.iter().enumerate() {
            stock.add(item, *count);
        }
        stock
    }

    fn add(&mut self, item: usize, count: u64) {
        if self.counts[item] == 0 && count > 0 {
            self.positions[item] = self.filled.len();
            self.filled.push(item);
        }
        self.counts[item] += count;
    }

    fn take(&mut self, item: usize, count: u64) {
        self.counts[item] -= count;
        if self.counts[item] == 0 {
            let hole = self.positions[item];
            self.filled.swap_remove(hole);
            if let Some(&moved) = self.filled.get(hole) {
                self.positions[moved] = hole;
            }
        }
    }
}

fn make_items(count: u64, random: &mut Random) -> Vec<Item> {
    assert!(count <= ITEMS_MAX, "places are distinct");
    // All places, of which the first `count` of a shuffle are taken: it ends also when nearly all are wanted.
    let mut places: Vec<u64> = (0..ITEMS_MAX).collect();
    (0..count)
        .map(|at| {
            places.swap(at as usize, random.between(at, ITEMS_MAX - 1) as usize);
            let number = places[at as usize];
            let place = Place {
                sku: number / KINDS.pow(3) + 1,
                warehouse: number / KINDS.pow(2) % KINDS + 1,
                condition: number / KINDS % KINDS + 1,
                source: number % KINDS + 1,
            };
            Item { place, price: random.between(400, 1500), count: random.between(0, 10) }
        })
        .collect()
}

/// Makes the work of a seed: half of the operations captures, half releases, in random order. A capture that comes while nothing at all has units
/// becomes a release, which happens with very few items only.
pub(crate) fn generate(items: u64, operations: usize, seed: u64) -> Work {
    assert!(items > 0, "a release needs an item");
    let mut random = Random::new(seed);
    let items = make_items(items, &mut random);
    let mut stock = Stock::new(&items);
    let mut captures_left = (operations / 2) as u64;
    let operations = (0..operations)
        .map(|at| {
            let is_capture = random.below((operations - at) as u64) < captures_left;
            captures_left -= u64::from(is_capture);
            if is_capture && !stock.filled.is_empty() {
                let item = stock.filled[random.below(stock.filled.len() as u64) as usize];
                let count = random.between(1, stock.counts[item].min(UNITS_MAX));
                stock.take(item, count);
                Operation::Capture(items[item].place.group(), count)
            } else {
                let item = random.below(items.len() as u64) as usize;
                let count = random.between(1, UNITS_MAX);
                stock.add(item, count);
                Operation::Release(items[item].place, count)
            }
        })
        .collect();
    let mut totals = BTreeMap::new();
    for (item, count) in items.iter().zip(&stock.counts) {
        *totals.entry(item.place.group()).or_default() += count;
    }
    Work { items, operations, totals }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_gives_the_same_work() {
        let (a, b, c) = (generate(100, 1000, 1), generate(100, 1000, 1), generate(100, 1000, 2));
        assert_eq!((&a.items, &a.operations, &a.totals), (&b.items, &b.operations, &b.totals));
        assert_ne!(a.operations, c.operations);
    }

    #[test]
    fn items_are_distinct_and_in_their_bounds() {
        for count in [1, 1000, ITEMS_MAX] {
            let items = generate(count, 0, 3).items;
            let places: BTreeSet<Place> = items.iter().map(|item| item.place).collect();
            assert_eq!((items.len() as u64, places.len() as u64), (count, count));
            for Item { place, price, count } in items {
                assert!((1..=SKUS).contains(&place.sku) && (400..=1500).contains(&price) && count <= 10);
                assert!([place.warehouse, place.condition, place.source].iter().all(|kind| (1..=KINDS).contains(kind)));
            }
        }
    }

    #[test]
    fn in_order_every_operation_can_be_carried_out() {
        for (items, operations, seed) in [(1, 1000, 1), (2, 1000, 2), (200, 20_000, 7), (ITEMS_MAX, 20_000, 8)] {
            let work = generate(items, operations, seed);
            let mut stock: BTreeMap<Group, u64> = BTreeMap::new();
            for item in &work.items {
                *stock.entry(item.place.group()).or_default() += item.count;
            }
            for operation in &work.operations {
                match *operation {
                    Operation::Capture(group, count) => {
                        assert!((1..=3).contains(&count));
                        let left = stock.get_mut(&group).unwrap();
                        *left = left.checked_sub(count).expect("there are enough");
                    }
                    Operation::Release(place, count) => {
                        assert!((1..=3).contains(&count) && work.items.iter().any(|item| item.place == place));
                        *stock.get_mut(&place.group()).unwrap() += count;
                    }
                }
            }
            assert_eq!(stock, work.totals);
        }
    }

    #[test]
    fn half_of_the_operations_are_captures() {
        let work = generate(1000, 20_001, 9);
        let captures = work.operations.iter().filter(|operation| matches!(operation, Operation::Capture(..))).count();
        assert_eq!(captures, 10_000);
    }
}
