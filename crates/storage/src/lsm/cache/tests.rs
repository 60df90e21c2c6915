//! The cache against a map that forgets nothing, and its hit rate against the best there is.

#![allow(clippy::unwrap_used, reason = "a test")]

use super::*;
use crate::lsm::block::BlockBuilder;
use crate::lsm::entry::{Entry, EntryKind};
use hashbrown::HashMap;
use runtime::{Randomness, SeededRandomness};

const TREE: u64 = 7;

fn key_of(number: u64) -> [u8; 9] {
    let mut key = [3; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

fn get(cache: &mut Cache, number: u64) -> Option<CachedRow> {
    let key = key_of(number);
    cache.row(TREE, key_hash(&key), &key)
}

fn put(cache: &mut Cache, number: u64, row: &[u8]) {
    let key = key_of(number);
    cache.put_row(TREE, key_hash(&key), &key, row);
}

fn block_of(bytes: usize) -> Rc<Block> {
    let mut builder = BlockBuilder::new();
    let value = vec![7; bytes];
    builder.add(&Entry { key: b"key", kind: EntryKind::Put, value: &value }).unwrap();
    let mut stored = Vec::new();
    builder.finish(&mut stored);
    Rc::new(Block::decode(&stored).unwrap())
}

fn check(cache: &Cache) {
    assert!(cache.bytes() <= cache.bytes_max(), "{} of {} bytes", cache.bytes(), cache.bytes_max());
    let alive = cache.blocks.iter().flatten().count();
    assert_eq!(alive + cache.free_blocks.len(), cache.blocks.len());
    for queue in [&cache.young, &cache.kept] {
        let weights = queue.segments.iter().map(|number| cache.segments[*number as usize].weight());
        assert_eq!(weights.sum::<usize>(), queue.bytes);
    }
}

#[test]
fn what_is_found_is_what_was_put_last_and_memory_keeps_to_its_bound() {
    for seed in 0..12 {
        let random = SeededRandomness::new(seed);
        let pick = |below: u64| random.next_u64() % below;
        let bytes_max = 20_000 << (seed % 4 * 2);
        let mut cache = Cache::new(bytes_max);
        let mut rows: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut blocks: HashMap<u64, Rc<Block>> = HashMap::new();
        let mut held: Vec<(CachedRow, Vec<u8>)> = Vec::new();
        let mut found = 0;
        for step in 0..20_000u64 {
            let number = pick(20) * pick(40);
            match pick(8) {
                0..3 => {
                    let row = vec![step as u8; pick(if seed % 2 == 0 { 200 } else { 1500 }) as usize + 1];
                    if row.len() > bytes_max / ROW_PART_MIN {
                        // Whoever writes a row takes the old one out; in place of another only one that fits is put.
                        cache.remove_row(TREE, key_hash(&key_of(number)));
                    }
                    put(&mut cache, number, &row);
                    rows.insert(number, row);
                }
                3 => {
                    cache.remove_row(TREE, key_hash(&key_of(number)));
                    rows.remove(&number);
                }
                4 => {
                    let block = block_of(pick(3000) as usize);
                    cache.put_block(number, 5, &block);
                    blocks.insert(number, block);
                }
                5 => {
                    if let Some(block) = cache.block(number, 5) {
                        assert!(Rc::ptr_eq(&block, &blocks[&number]));
                        found += 1;
                    }
                }
                _ => {
                    if let Some(row) = get(&mut cache, number) {
                        assert_eq!(Some(row.row()), rows.get(&number).map(Vec::as_slice));
                        held.push((row, rows[&number].clone()));
                        found += 1;
                    }
                }
            }
            if held.len() > 10 {
                held.swap_remove(pick(10) as usize);
            }
            assert!(held.iter().all(|(row, bytes)| row.row() == bytes), "a row in hand stays as it is");
            if step % 64 == 0 {
                check(&cache);
            }
        }
        assert!(found > 500, "{found} found with {bytes_max} bytes");
    }
}

#[test]
fn a_row_of_usual_size_costs_little_beside_its_bytes() {
    let mut cache = Cache::new(16 << 20);
    let row = [1; 108];
    (0..200_000).for_each(|number| put(&mut cache, number, &row));
    let rows = (0..200_000).filter(|number| get(&mut cache, *number).is_some()).count();
    let each = cache.bytes_max() as f64 / rows as f64;
    println!("{each:.1} bytes of the budget for each row of {}", row.len());
    assert!(each < 136.0, "{each}");
}

/// Numbers by a zipf distribution, spread over all keys.
struct Zipf {
    sums: Vec<f64>,
    random: SeededRandomness,
}

impl Zipf {
    fn new(count: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let part = |rank: usize| {
            sum += 1.0 / ((rank + 1) as f64).powf(exponent);
            sum
        };
        Zipf { sums: (0..count).map(part).collect(), random: SeededRandomness::new(1) }
    }

    fn next(&self) -> u64 {
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let wanted = unit * self.sums[self.sums.len() - 1];
        self.sums.partition_point(|sum| *sum < wanted) as u64
    }

    /// What the most wanted `count` are asked for.
    fn share(&self, count: usize) -> f64 {
        self.sums[count - 1] / self.sums[self.sums.len() - 1]
    }
}

#[test]
fn zipf_keys_are_found_nearly_as_often_as_the_most_wanted_ones_could_be() {
    const ROWS: usize = 200_000;
    let row = [1; 108];
    let zipf = Zipf::new(ROWS, 0.99);
    let mut cache = Cache::new(ROWS * row.len() / 9);
    let (mut hits, mut requests) = (0, 0);
    for step in 0..12 * ROWS {
        let number = zipf.next();
        let is_hit = get(&mut cache, number).is_some();
        if !is_hit {
            put(&mut cache, number, &row);
        }
        // The first half warms it.
        if step >= 6 * ROWS {
            requests += 1;
            hits += usize::from(is_hit);
        }
    }
    let rate = f64::from(hits as u32) / f64::from(requests);
    let rows = (0..ROWS as u64).filter(|number| get(&mut cache, *number).is_some()).count();
    let ideal = zipf.share(cache.bytes_max() / (row.len() + 9));
    println!("hit rate {rate:.4} with {rows} rows; at best, with nothing but rows in the cache, {ideal:.4}");
    assert!(rate > ideal - 0.04, "{rate} of {ideal}");
}

#[test]
fn a_scan_of_keys_that_come_once_takes_nothing_from_those_that_come_often() {
    let mut cache = Cache::new(1 << 20);
    let row = [1; 108];
    for _ in 0..3 {
        for number in 0..2000 {
            if get(&mut cache, number).is_none() {
                put(&mut cache, number, &row);
            }
        }
    }
    (10_000..200_000).for_each(|number| put(&mut cache, number, &row));
    let stayed = (0..2000).filter(|number| get(&mut cache, *number).is_some()).count();
    assert_eq!(stayed, 2000);
}
