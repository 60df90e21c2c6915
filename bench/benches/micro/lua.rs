//! Crossings between Rust and Lua.

use crate::machine::Machine;
use crate::report::Report;
use database::{Config, Context, Database, Environment, SessionKind};
use lua::{Host, Lua, LuaConfig};
use runtime::{SeededRandomness, SimulatedFiles, SystemClock, fiber};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tuple::msgpack;

const CALLS: u64 = 100_000;
/// A call through a pointer, its arguments and its result through memory, there and back.
const CROSSING_NS: f64 = 5.0;

/// What the procedures are: each loops inside Lua as often as its argument says.
const SOURCE: &str = "
function nothing() end
function same(a) return a end
local row = box.tuple.new({1, 'two', 3})
function field(n) local sum = 0 for i = 1, n do sum = sum + row[3] end return sum end
function make(n) for i = 1, n do box.tuple.new({i, 'two', 3}) end end
function unpacked(n) for i = 1, n do row:unpack() end end
local s = box.schema.space.create('bench')
s:create_index('primary')
for i = 1, 1000 do s:replace({i, 'two', 3}) end
function get(n) for i = 1, n do s:get(i % 1000 + 1) end end
";

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

pub(crate) fn run(machine: &Machine, report: &Report) {
    if report.wants("lua")
        && let Err(error) = cases(machine, report)
    {
        println!("lua: {error}");
    }
}

fn cases(machine: &Machine, report: &Report) -> Result<(), String> {
    let environment = Environment {
        files: Arc::new(SimulatedFiles::default()),
        clock: Arc::new(SystemClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let config = Config {
        wal_dir: PathBuf::from("/log"),
        memtx_dir: PathBuf::from("/snapshots"),
        wal_mode: wal::WalMode::None,
        ..Config::default()
    };
    let database = Database::new(config, environment).map_err(|error| error.to_string())?;
    Lua::start(&database, Rc::new(NoHost), LuaConfig { memory: 256 << 20, slice_max_ms: 0 })?;
    database.open().map_err(|error| error.to_string())?;
    Lua::opened(&[0x80]);
    let outcome = Rc::new(RefCell::new(None));
    let told = Rc::clone(&outcome);
    Lua::run_script("bench.lua", SOURCE.into(), Vec::new(), move |result| *told.borrow_mut() = Some(result));
    while outcome.borrow().is_none() {
        database.turn();
        fiber::run_ready(usize::MAX);
    }
    if let Some(Err(error)) = outcome.take() {
        return Err(error.to_string());
    }
    let call = |name: &'static str, argument: Option<u64>| {
        let database = Rc::clone(&database);
        fiber::run_now("bench", move || {
            let session = database.open_session(SessionKind::Background, None);
            let context = Rc::new(Context::for_background(session));
            fiber::set_local(Rc::clone(&context) as Rc<dyn std::any::Any>);
            let mut arguments = Vec::new();
            msgpack::encode_array(&mut arguments, u32::from(argument.is_some()));
            argument.into_iter().for_each(|value| msgpack::encode_uint(&mut arguments, value));
            let mut out = Vec::new();
            let rounds = if matches!(argument, None | Some(1)) { CALLS } else { 1 };
            for _ in 0..rounds {
                out.clear();
                database.call(&context, name, &arguments, false, &mut out).expect("the procedure is there and works");
            }
        });
    };
    report.case("lua call of nothing", CALLS, 2.0 * CROSSING_NS, "there and back", || call("nothing", None));
    let bound_ns = 4.0 * CROSSING_NS;
    report.case("lua call, a number there and back", CALLS, bound_ns, "two values more", || call("same", Some(1)));
    let near = machine.near_miss_ns;
    report.case("lua field of a row", CALLS, near, "one near miss", || call("field", Some(CALLS)));
    report.case("lua row to values", CALLS, 3.0 * near, "three values made", || call("unpacked", Some(CALLS)));
    report.case("lua row made of a table", CALLS, 4.0 * near, "three values and a row", || call("make", Some(CALLS)));
    report.case("lua get from a space", CALLS, CROSSING_NS + 3.0 * near, "a crossing, a look-up", || {
        call("get", Some(CALLS));
    });
    fiber::abandon();
    Lua::abandon();
    Ok(())
}
