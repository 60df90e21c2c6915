//! Which tree of the manifest a start gives to an index.
#![allow(clippy::unwrap_used, reason = "a test")]

use runtime::{ManualClock, SimulatedFiles};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use storage::lsm::{Edit, LsmConfig, LsmEngine, LsmEnvironment, Manifest};
use tuple::{IndexId, Lsn, SpaceId};

const DIR: &str = "/db/lsm";
const SPACE: u32 = 512;

fn create(tree_id: u64, index_id: u32, created_lsn: i64) -> Edit {
    Edit::CreateTree { tree_id, space_id: SpaceId(SPACE), index_id: IndexId(index_id), created_lsn: Lsn(created_lsn) }
}

fn dumped(tree_id: u64, dumped_lsn: i64) -> Edit {
    Edit::Dumped { tree_id, dumped_lsn: Lsn(dumped_lsn), run_id: None, ranges: Vec::new() }
}

/// An engine whose manifest was told this.
fn open(edits: &[Edit]) -> Rc<LsmEngine> {
    let files = Arc::new(SimulatedFiles::default());
    let (mut manifest, _) = Manifest::open(files.clone(), Path::new(DIR)).unwrap();
    // The numbers that the edits use are taken.
    (0..10).for_each(|_| _ = manifest.next_id());
    manifest.append(edits).unwrap();
    let config = LsmConfig {
        dir: PathBuf::from(DIR),
        memory_bytes_max: 1 << 20,
        cache_bytes_max: 0,
        is_threaded: false,
        compactions_max: 1,
        manifest_bytes: 1 << 20,
        open_files_max: 100,
        page_cache_sampled_one_of: 16,
        is_forced: false,
        instance_uuid: None,
    };
    let clock = Arc::new(ManualClock::default());
    LsmEngine::open(config, LsmEnvironment { files, clock, wake: Arc::new(|| {}) }).unwrap()
}

#[test]
fn a_snapshot_claims_the_newest_tree_that_is_not_too_new() {
    let edits = [create(1, 0, 10), dumped(1, 15), create(2, 0, 20), dumped(2, 40), create(3, 0, 30), dumped(3, 40)];
    let engine = open(&edits);
    assert_eq!(engine.claim(SpaceId(SPACE), IndexId::PRIMARY, Lsn(25), false, None).map(|tree| tree.tree_id), Some(2));
}

#[test]
fn a_row_of_the_log_claims_only_what_it_made() {
    let engine = open(&[create(1, 0, 10), dumped(1, 15)]);
    assert!(engine.claim(SpaceId(SPACE), IndexId::PRIMARY, Lsn(12), true, None).is_none());
    assert_eq!(engine.claim(SpaceId(SPACE), IndexId::PRIMARY, Lsn(10), true, None).map(|tree| tree.tree_id), Some(1));
}

#[test]
fn a_secondary_index_is_claimed_only_where_its_primary_is() {
    // A truncation forgot the primary's tree and not yet that of the other.
    let engine = open(&[create(2, 1, 11), dumped(2, 15)]);
    assert!(engine.claim(SpaceId(SPACE), IndexId(1), Lsn(11), true, Some(Lsn(0))).is_none());
    assert!(engine.claim(SpaceId(SPACE), IndexId(1), Lsn(11), true, Some(Lsn(15))).is_some());
}
