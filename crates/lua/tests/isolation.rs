//! Procedures whose transactions survive a wait: whatever Lua has read counts.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "rig/mod.rs"]
mod rig;

use rig::{open, run, run_while};
use runtime::{Clock, ManualClock, fiber};
use std::rc::Rc;
use std::sync::Arc;

const SPACES: &str = "
    for _, name in ipairs({'rows', 'beside'}) do
        local space = box.schema.space.create(name)
        space:create_index('primary')
    end
    box.space.rows:create_index('second', {unique = false, parts = {2, 'unsigned'}})
    for i = 1, 9 do box.space.rows:insert{i * 10, i % 3} end
";

/// Reads in a transaction, waits while another fiber changes something, and commits.
const SCRIPT: &str = "
    local fiber = require('fiber')
    local rows = box.space.rows
    local function try(read, change, is_reader)
        box.begin()
        read()
        if not is_reader then
            box.space.beside:replace{1}
        end
        local other = fiber.new(change)
        other:set_joinable(true)
        assert(other:join())
        local is_committed, failure = pcall(box.commit)
        assert(not box.is_in_txn())
        return is_committed or failure.code
    end
    local function insert(id, second)
        return function()
            rows:insert{id, second}
            rows:delete{id}
        end
    end
    local cases = {
        {function() rows:get{15} end, 15, 16},
        {function() rows:select({20}, {iterator = 'GE', limit = 2}) end, 25, 35},
        {function() rows:select({}, {limit = 1}) end, 5, 15},
        {function() rows:count({50}, {iterator = 'LT'}) end, 5, 55},
        {function() rows.index.second:min() end, {15, 0}, {15, 1}},
        {function() rows.index.second:select({1}) end, {15, 1}, {15, 2}},
        {function() for _, row in rows:pairs({30}, {iterator = 'LE'}) do if row[1] == 20 then break end end end, 25, 15},
        {function() for _, row in rows:pairs({30}, {iterator = 'GT'}) do if row[1] == 50 then break end end end, 35, 55},
        {function() rows:len() end, 15, nil},
        {function() rows.index.primary:random(3) end, 15, nil},
        {function() pcall(rows.insert, rows, {20, 0}) rows:update({90}, {{'+', 2, 1}}) end, 90, 15},
    }
    for at, case in ipairs(cases) do
        local function change(what)
            local id, second = what, 1
            if type(what) == 'table' then id, second = what[1], what[2] end
            return id == 90 and function() rows:update({90}, {{'+', 2, 1}}) end or insert(id, second)
        end
        local outcome = try(case[1], change(case[2]))
        assert(outcome == 97, 'case ' .. at .. ': ' .. tostring(outcome))
        -- The last one writes itself.
        outcome = at == #cases or try(case[1], change(case[2]), true)
        assert(outcome == true, 'case ' .. at .. ' of a reader: ' .. tostring(outcome))
        if case[3] then
            outcome = try(case[1], change(case[3]))
            assert(outcome == true, 'case ' .. at .. ' beside: ' .. tostring(outcome))
        end
    end

    -- Who only reads goes on in what it saw, whatever it asks.
    local hashes = box.schema.space.create('hashes')
    hashes:create_index('primary', {type = 'hash'})
    for i = 1, 9 do hashes:insert{i, 'old'} end
    local function all()
        local found = {rows:len(), rows:count(), hashes:len(), rows.index.second:max()[1]}
        for _, space in ipairs{rows, hashes} do
            local texts = {}
            for _, row in space:pairs() do table.insert(texts, tostring(row)) end
            table.sort(texts)
            table.insert(found, table.concat(texts, ' '))
        end
        table.insert(found, #rows:select({}, {after = {40}, limit = 3}))
        return table.concat(found, ' | ')
    end
    box.begin()
    local before = all()
    local other = fiber.new(function()
        for i = 1, 9 do hashes:replace{i, 'new'} end
        hashes:insert{10, 'new'}
        hashes:delete{3}
        rows:insert{46, 0}
        rows:delete{60}
    end)
    other:set_joinable(true)
    assert(other:join())
    assert(all() == before, all())
    for seed = 1, 50 do assert(rows.index.primary:random(seed)[1] ~= 46) end
    assert(not pcall(rows.replace, rows, {1, 1}))
    box.rollback()
    assert(all() ~= before)
    rows:delete{46} rows:insert{60, 0}

    -- A scan goes on where it was.
    box.begin()
    rows:insert{45, 7}
    local seen = {}
    for _, row in rows:pairs({40}, {iterator = 'GE'}) do
        table.insert(seen, row[1])
        fiber.yield()
        assert(box.is_in_txn())
    end
    assert(table.concat(seen, ' ') == '40 45 50 60 70 80 90')
    box.commit()
    assert(rows:get{45}[2] == 7)

    -- A doomed one gives the same error until it is rolled back.
    box.begin()
    rows:replace{45, 8}
    local other = fiber.new(function() rows:replace{45, 9} end)
    other:set_joinable(true)
    other:join()
    for _ = 1, 2 do
        local ok, failure = pcall(rows.get, rows, {10})
        assert(not ok and failure.code == box.error.TRANSACTION_CONFLICT)
        assert(tostring(failure) == 'Transaction has been aborted by conflict')
    end
    box.rollback()
    assert(rows:get{45}[2] == 9)

    -- What others have not touched is there after any number of waits.
    box.begin()
    rows:replace{45, 10}
    for _ = 1, 3 do fiber.yield() end
    assert(rows:get{45}[2] == 10)
    box.rollback()
    assert(rows:get{45}[2] == 9)

    -- A cancelled fiber takes its transaction with it.
    local waiting = fiber.new(function()
        box.begin()
        rows:replace{45, 11}
        fiber.sleep(1000)
    end)
    waiting:set_joinable(true)
    fiber.yield()
    waiting:cancel()
    waiting:join()
    assert(rows:get{45}[2] == 9)
";

const TIMEOUTS: &str = "
    local fiber = require('fiber')
    local rows = box.space.rows
    local function fails(code, work, ...)
        local ok, failure = pcall(work, ...)
        assert(not ok and failure.code == code, tostring(failure))
    end
    -- Its time is up while it waits.
    box.begin{timeout = 0.5}
    assert(rows:get{50}[2] == 2)
    rows:replace{50, 1}
    fiber.sleep(0.4)
    assert(rows:get{50}[2] == 1)
    fiber.sleep(0.2)
    fails(box.error.TRANSACTION_TIMEOUT, rows.get, rows, {50})
    fails(box.error.TRANSACTION_TIMEOUT, box.commit)
    assert(not box.is_in_txn() and rows:get{50}[2] == 2)

    -- Also if it has done nothing yet, and by the configuration.
    box.begin{timeout = 0.1}
    fiber.sleep(0.2)
    fails(box.error.TRANSACTION_TIMEOUT, rows.replace, rows, {50, 1})
    box.rollback()

    -- Who is done in time is not disturbed, nor is the next one.
    for _ = 1, 3 do
        box.begin{timeout = 0.3, txn_isolation = 'linearizable'}
        rows:replace{50, 3}
        fiber.sleep(0.2)
        box.commit()
    end
    box.atomic({timeout = 10}, function() rows:replace{50, 4} end)
    assert(rows:get{50}[2] == 4)

    -- What is wrong is said before anything is begun.
    fails(box.error.ILLEGAL_PARAMS, box.begin, {timeout = 0})
    fails(box.error.ILLEGAL_PARAMS, box.begin, {timeout = 'soon'})
    fails(box.error.ILLEGAL_PARAMS, box.begin, {txn_isolation = 'chaos'})
    fails(box.error.ILLEGAL_PARAMS, box.begin, {time = 1})
    fails(box.error.ILLEGAL_PARAMS, box.begin, 1)
    assert(not box.is_in_txn() and box.txn_id() == nil)
    box.begin{txn_isolation = box.txn_isolation_level.READ_CONFIRMED}
    assert(box.txn_id() > 0)
    box.rollback()

    -- Callbacks run as they were set; those of a rollback the last one first.
    local order = ''
    local function note(name) return function() order = order .. name end end
    box.begin()
    box.on_commit(note('a')) box.on_commit(note('b')) box.on_rollback(note('c'))
    box.commit()
    box.begin()
    box.on_rollback(note('1')) box.on_rollback(note('2')) box.on_commit(note('3'))
    box.rollback()
    assert(order == 'ab21', order)
";

#[test]
fn a_transaction_ends_when_its_time_is_up() {
    let clock = Arc::new(ManualClock::default());
    let (database, fiber_clock) = (open(&clock), Arc::clone(&clock));
    fiber::set_clock(Rc::new(move || fiber_clock.monotonic_ns()));
    run(&database, SPACES);
    run_while(&database, TIMEOUTS, || clock.advance(10_000_000));
    assert_eq!(database.suspended(), 0);
}

#[test]
fn what_a_procedure_has_read_counts_while_it_waits() {
    let database = open(&Arc::new(ManualClock::default()));
    run(&database, SPACES);
    run(&database, SCRIPT);
    assert_eq!(database.suspended(), 0);
}
