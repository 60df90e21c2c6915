//! What tests of the disk engine set up alike: an engine over simulated files, and spaces whose rows begin with an id and a number, with an index of
//! each.

use runtime::{ManualClock, SimulatedFiles};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::lsm::{LsmConfig, LsmEngine, LsmEnvironment, LsmError};
use storage::{IndexDef, IndexKind, KeySource};
use tuple::msgpack::{self, Reader};
use tuple::{FieldType, Format, IndexId, KeyDef, KeyPart};

pub(crate) const DIR: &str = "/db/lsm";

/// Room for all that a small test does, without threads.
pub(crate) fn config() -> LsmConfig {
    LsmConfig {
        dir: PathBuf::from(DIR),
        memory_bytes_max: 1 << 20,
        cache_bytes_max: 1 << 20,
        is_threaded: false,
        compactions_max: 1,
        manifest_bytes: 1 << 20,
        open_files_max: 100,
        page_cache_sampled_one_of: 16,
        is_forced: false,
        instance_uuid: None,
    }
}

/// An engine that nobody is woken by: it goes on when it is polled.
pub(crate) fn open(
    config: LsmConfig,
    files: &SimulatedFiles,
    clock: &Arc<ManualClock>,
) -> Result<Rc<LsmEngine>, LsmError> {
    let clock = Arc::clone(clock);
    LsmEngine::open(config, LsmEnvironment { files: Arc::new(files.clone()), clock, wake: Arc::new(|| {}) })
}

fn key_def(fields: &[u32]) -> Rc<KeyDef> {
    Rc::new(KeyDef::new(fields.iter().map(|&field| KeyPart::new(field, FieldType::Unsigned)).collect()))
}

/// The primary index by id, or the secondary one by number.
pub(crate) fn def(id: u32) -> IndexDef {
    let (own, all): (&[u32], &[u32]) = if id == 0 { (&[0], &[0]) } else { (&[1], &[1, 0]) };
    IndexDef {
        id: IndexId(id),
        kind: IndexKind::Tree,
        is_unique: id == 0,
        key_def: key_def(own),
        compare_def: key_def(all),
        source: KeySource::Fields,
    }
}

pub(crate) fn format(space_id: u32) -> Format {
    Format::new(space_id, Vec::new(), 0, key_def(&[0, 1]).parts()).unwrap()
}

/// Id and number of a row.
pub(crate) fn numbers_of(row: &[u8]) -> (u64, u64) {
    let mut reader = Reader::new(row);
    reader.read_array().unwrap();
    (reader.read_uint().unwrap(), reader.read_uint().unwrap())
}

/// Operations that add to the number, fields counted from 0.
pub(crate) fn addition(number: u64) -> Vec<u8> {
    let mut operations = Vec::new();
    msgpack::encode_array(&mut operations, 1);
    msgpack::encode_array(&mut operations, 3);
    msgpack::encode_str(&mut operations, b"+");
    msgpack::encode_uint(&mut operations, 1);
    msgpack::encode_uint(&mut operations, number);
    operations
}
