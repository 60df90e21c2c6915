//! Rows of system spaces are the same bytes wherever the same calls make them: nothing in them follows the order of a Lua table, which is
//! another in each process, or a clock that is not the runtime's.
#![allow(clippy::unwrap_used, reason = "a test")]

use database::{Config, Database, Environment};
use lua::{Host, Lua, LuaConfig};
use runtime::{ManualClock, SeededRandomness, SimulatedFiles, fiber};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

struct NoHost;

impl Host for NoHost {
    fn configure(&self, _options: &[u8]) -> database::Result<()> {
        Ok(())
    }

    fn exit(&self, _code: i32) {}

    fn listen_addresses(&self) -> Vec<String> {
        Vec::new()
    }

    fn rotate_log(&self) {}
}

const SCRIPT: &str = "
    local function assert_order(row, names)
        local bytes, last = require('msgpack').encode(row), 0
        for _, name in ipairs(names) do
            local at = bytes:find(name, last + 1, true)
            assert(at, name .. ' is not behind those before it')
            last = at
        end
    end
    local space = box.schema.space.create('rows', {
        format = {{nickname = 'x', is_nullable = false, type = 'unsigned', name = 'id'}, {'text', type = 'string'}}
    })
    assert_order(box.space._space:get(space.id), {'name', 'type', 'nickname', 'is_nullable', 'name', 'type'})
    local index = space:create_index('primary', {
        run_count_per_level = 2, run_size_ratio = 2.5, bloom_fpr = 0.5, page_size = 1024, range_size = 4096, unique = true,
        parts = {{field = 'text', type = 'string', is_nullable = false, collation = 'unicode'}},
    })
    local options = {'unique', 'bloom_fpr', 'page_size', 'range_size', 'run_size_ratio', 'run_count_per_level'}
    local parts = {'type', 'field', 'collation', 'is_nullable'}
    local function assert_index()
        local row = box.space._index:get({space.id, 0})
        assert_order(row, options)
        assert_order(row, parts)
    end
    assert_index()
    index:alter({page_size = 2048})
    assert(box.space._index:get({space.id, 0})[5].page_size == 2048)
    assert_index()
    box.schema.func.create('noted')
    local made = box.space._func.index.name:get('noted').created
    assert(made == os.date('%Y-%m-%d %H:%M:%S', 1790000000), made)
    box.schema.sequence.create('numbers')
    box.sequence.numbers:alter({max = 9, min = 1, step = 2, name = 'odd'})
    assert(box.space._sequence.index.name:get('odd')[6] == 9)
";

#[test]
fn the_same_calls_make_the_same_rows() {
    let config = Config {
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        memtx_memory: 64 << 20,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    };
    let environment = Environment {
        files: Arc::new(SimulatedFiles::default()),
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment).unwrap();
    Lua::start(&database, Rc::new(NoHost), LuaConfig { memory: 256 << 20, slice_max_ms: 0 }).unwrap();
    database.open().unwrap();
    Lua::opened(&[0x80]);
    let outcome = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&outcome);
    Lua::run_script("=test", SCRIPT.into(), Vec::new(), move |result| *slot.borrow_mut() = Some(result));
    while outcome.borrow().is_none() {
        fiber::run_ready(100);
        database.submit();
        database.turn();
    }
    outcome.take().unwrap().unwrap();
}
