//! Rows that expire, as procedures make and see them.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "rig/mod.rs"]
mod rig;

use rig::{open, run, run_while};
use runtime::{Clock, ManualClock, fiber};
use std::rc::Rc;
use std::sync::Arc;

const SCRIPT: &str = "
    local fiber, datetime = require('fiber'), require('datetime')
    local function refused(what, work, ...)
        local ok, failure = pcall(work, ...)
        assert(not ok and tostring(failure):find(what, 1, true), tostring(failure))
    end
    for _, engine in ipairs({'memtx', 'vinyl'}) do
        local format = {{'id', 'unsigned'}, {'expires', 'number', is_nullable = true}, {'what', 'string'}}
        local name = engine .. '_sessions'
        refused('unexpected option', box.schema.space.create, name, {format = format, ttl = {field = 'expires', no = 1}})
        refused('does not have', box.schema.space.create, name, {format = format, ttl = {field = 'gone'}})
        refused('of type string', box.schema.space.create, name, {format = format, ttl = {field = 3}})
        refused('ttl', box.schema.space.create, name, {format = format, ttl = 5})
        local space = box.schema.space.create(name, {engine = engine, format = format, ttl = {field = 'expires'}})
        space:create_index('primary')
        space:create_index('expires', {unique = false, parts = {{2, 'number', is_nullable = true}}})
        local now = fiber.time()
        space:insert{1, now + 1000, 'stays'}
        space:insert{2, now - 1, 'over'}
        space:insert{3, box.NULL, 'for ever'}
        space:insert{4, now + 0.5, 'soon over'}
        assert(space:get(2) == nil and space:count() == 3 and #space:select() == 3)
        assert(space.index.expires:min()[1] == 3 and space.index.primary:max()[1] == 4)
        fiber.sleep(2)
        assert(space:get(4) == nil and space:count() == 2)
        assert(space:update(4, {{'=', 3, 'x'}}) == nil and space:delete(4) == nil)
        space:insert{4, now + 1000, 'again'}
        space:upsert({2, now + 1000, 'upserted'}, {{'=', 3, 'wrong'}})
        assert(space:get(2)[3] == 'upserted')
        refused('Duplicate', space.insert, space, {4, now, 'twice'})
        refused('does not match', space.insert, space, {5, 'text', 'wrong type'})
        local ids = {}
        for _, row in space:pairs() do table.insert(ids, row[1]) end
        assert(table.concat(ids, ' ') == '1 2 3 4')
        box.begin()
        space:insert{9, fiber.time() + 1, 'mine'}
        assert(space:get(9))
        fiber.sleep(3)
        assert(space:get(9), 'the moment of a transaction is one')
        box.commit()
        assert(space:get(9) == nil)
        -- The option is taken away and given again, other options stay.
        space:insert{10, fiber.time() + 1, 'kept'}
        space:alter({ttl = box.NULL})
        fiber.sleep(5)
        assert(space:get(10))
        assert(box.space._space:get(space.id)[6].checks == nil)
        space:alter({ttl = {field = 2, unit = 's'}})
        assert(space:get(10) == nil)
        space:alter({ttl = {}})
        assert(space:get(10))
        space:alter({ttl = {field = 2, walk_rows_per_second = 10}})
        space:alter({name = engine .. '_renamed'})
        assert(space:get(10) == nil)
        refused('does not have', space.format, space, {{'id', 'unsigned'}})
        fiber.sleep(20)
        space:drop()
        -- Moments.
        space = box.schema.space.create(name, {engine = engine, ttl = {field = 'at'},
            format = {{'id', 'unsigned'}, {'at', 'datetime'}}})
        space:create_index('primary')
        space:insert{1, datetime.new{timestamp = fiber.time() + 10}}
        assert(space:get(1))
        fiber.sleep(20)
        assert(space:get(1) == nil and space:count() == 0)
        fiber.sleep(20)
        if engine == 'memtx' then assert(space:len() == 0) end
        space:drop()
    end
    local expiry = box.stat.expiry()
    assert(expiry.removed >= 4 and expiry.spaces == 0 and not expiry.is_behind, expiry.removed)
";

#[test]
fn procedures_make_spaces_with_a_limit() {
    let clock = Arc::new(ManualClock::default());
    let database = open(&clock);
    run(
        &database,
        "
        local function refused(what, work, ...)
            local ok, failure = pcall(work, ...)
            assert(not ok and tostring(failure):find(what, 1, true), tostring(failure))
        end
        refused('spaces of memtx', box.schema.space.create, 'cache', {engine = 'vinyl', memory_limit = 100})
        refused('needs', box.schema.space.create, 'cache', {eviction = 'none'})
        refused('clock', box.schema.space.create, 'cache', {memory_limit = 100, eviction = 'luck'})
        local cache = box.schema.space.create('cache', {memory_limit = 100000})
        cache:create_index('primary')
        for i = 1, 5000 do cache:replace{i, ('x'):rep(100)} end
        local counts = box.stat.eviction().cache
        assert(counts.limit == 100000 and counts.used < 104000 and counts.evicted + cache:len() == 5000)
        assert(cache:get(5000) and cache:get(6000) == nil)
        counts = box.stat.eviction().cache
        assert(counts.hits == 1 and counts.misses == 1)
        cache:alter({eviction = 'none'})
        refused('memory_limit', function() for i = 10000, 20000 do cache:insert{i, ('x'):rep(100)} end end)
        cache:alter({memory_limit = 0})
        for i = 20000, 22000 do cache:insert{i, ('x'):rep(100)} end
        assert(box.stat.eviction().cache == nil and box.space._space:get(cache.id)[6].checks == nil)
        ",
    );
}

#[test]
fn procedures_make_and_see_rows_that_expire() {
    let clock = Arc::new(ManualClock::default());
    let time = Arc::clone(&clock);
    fiber::set_clock(Rc::new(move || time.monotonic_ns()));
    let database = open(&clock);
    run_while(&database, SCRIPT, || clock.advance(10_000_000));
    run(&database, "assert(box.stat.expiry().spaces == 0)");
}
