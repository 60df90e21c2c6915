//! Rows that procedures lock: who waits, in which order, and what ends a wait.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "rig/mod.rs"]
mod rig;

use rig::{open, run, run_while};
use runtime::{Clock, ManualClock, fiber};
use std::rc::Rc;
use std::sync::Arc;

const PREPARE: &str = "
    fiber = require('fiber')
    for _, engine in ipairs({'memtx', 'vinyl'}) do
        local space = box.schema.space.create(engine .. '_rows', {engine = engine})
        space:create_index('primary')
        space:create_index('second', {parts = {2, 'unsigned'}})
        for i = 1, 60 do space:insert{i, i * 10, 0} end
    end
    log = {}
    function note(text) table.insert(log, text) end
    function said(expected)
        local text = table.concat(log, ' ')
        log = {}
        if text ~= expected then error(('%s instead of %s'):format(text, expected), 2) end
    end
    function go(work, ...)
        local made = fiber.new(work, ...)
        made:set_joinable(true)
        fiber.yield()
        return made
    end
    function join(...)
        for _, one in ipairs({...}) do
            local ok, failure = one:join()
            if not ok then error(failure, 2) end
        end
    end
    function code_of(work, ...)
        local ok, failure = pcall(work, ...)
        return ok and 0 or failure.code, failure
    end
";

const WAITS: &str = "
    for _, rows in ipairs({box.space.memtx_rows, box.space.vinyl_rows}) do
        -- Transactions get a row in the order in which they have asked, and each sees what the one before has put.
        box.begin()
        assert(rows:get(1, {for_update = true})[3] == 0)
        local function add(name)
            box.begin()
            local row = rows:get(1, {for_update = true})
            note(name .. row[3])
            rows:update(1, {{'=', 3, row[3] + 1}})
            fiber.yield()
            box.commit()
        end
        local a, b = go(add, 'a'), go(add, 'b')
        -- So does who writes without a lock, in a transaction or not, by any index; who reads does not wait.
        local c = go(function() rows:update(1, {{'+', 3, 10}}) note('c') end)
        local d = go(function()
            box.begin() rows.index.second:update(10, {{'+', 3, 100}}) note('d') box.commit()
        end)
        local e = go(function() rows:replace{1, 10, 7} note('e') end)
        go(function() note('read' .. rows:get(1)[3]) end)
        join(go(function() rows:replace{2, 20, 5} note('other') end))
        rows:update(1, {{'+', 3, 1}})
        fiber.yield()
        note('commit')
        box.commit()
        join(a, b, c, d, e)
        said('read0 other commit a1 b2 c d e')
        assert(rows:get(1)[3] == 7)

        -- A rollback frees, and so does the end of a fiber.
        box.begin()
        rows.index.second:get(30, {for_update = true})
        local f = go(function() rows:delete(3) note('f') end)
        box.rollback()
        join(f)
        local g = go(function() box.begin() rows:get(4, {for_update = true}) fiber.sleep(1) end)
        local h = go(function() rows:delete(4) note('h') end)
        said('f')
        g:cancel()
        join(h)
        pcall(g.join, g)
        said('h')

        -- An absent row can be locked by its primary key.
        box.begin()
        assert(rows:get(3, {for_update = true}) == nil)
        local i = go(function() rows:insert{3, 30, 0} note('i') end)
        rows:insert{3, 30, 1}
        box.commit()
        local ok, failure = i:join()
        assert(not ok and failure.code == box.error.TUPLE_FOUND)
        rows:insert{4, 40, 0}

        -- A savepoint does not free.
        box.begin()
        local savepoint = box.savepoint()
        rows:get(5, {for_update = true})
        box.rollback_to_savepoint(savepoint)
        local j = go(function() rows:replace{5, 50, 1} note('j') end)
        said('')
        box.commit()
        join(j)
        said('j')
    end
";

const REFUSALS: &str = "
    for _, rows in ipairs({box.space.memtx_rows, box.space.vinyl_rows}) do
        local get = function(key, timeout) return rows:get(key, {for_update = true, timeout = timeout}) end
        assert(code_of(get, 1) == box.error.NO_TRANSACTION)
        box.begin()
        assert(code_of(rows.get, rows, 1, {for_update = true, other = 1}) == box.error.ILLEGAL_PARAMS)
        assert(code_of(rows.get, rows, 1, {for_update = true, timeout = -1}) == box.error.ILLEGAL_PARAMS)
        assert(code_of(rows.get, rows, 1, 1) == box.error.ILLEGAL_PARAMS)
        assert(code_of(box.space._space.get, box.space._space, 280, {for_update = true}) ~= 0)
        box.rollback()

        -- Who has waited for long enough says so, and waits no more.
        box.begin()
        get(1)
        local late = go(function()
            box.begin()
            local began = fiber.clock()
            note(code_of(get, 1, 0.3))
            note(fiber.clock() - began >= 0.29 and 'waited' or 'did not wait')
            assert(get(2)[1] == 2)
            box.commit()
        end)
        join(late)
        said(box.error.TIMEOUT .. ' waited')
        -- A transaction whose time is up lets its locks go, and waits no more.
        local ended = go(function()
            box.begin{timeout = 0.5}
            get(7)
            note(code_of(get, 1))
            box.rollback()
        end)
        local after = go(function() box.begin() get(7) note('free') box.commit() end)
        join(ended, after)
        said('free ' .. box.error.TRANSACTION_TIMEOUT)
        box.commit()

        -- Two who wait for each other: the one that closes the circle is told who and what.
        local first = go(function()
            box.begin() get(1) fiber.yield() get(2) note('first') box.commit()
        end)
        box.begin()
        get(2)
        fiber.yield()
        local code, failure = code_of(get, 1)
        assert(code == box.error.TRANSACTION_CONFLICT)
        local text = tostring(failure)
        assert(text:find('a deadlock. Transaction %d+ would wait for row %[1%] of space', 1), text)
        assert(text:find('which transaction %d+ has locked; Transaction %d+ waits for row %[2%] of space', 1), text)
        assert(code_of(rows.get, rows, 5) == box.error.TRANSACTION_CONFLICT)
        box.rollback()
        join(first)
        said('first')

        -- A circle of fifty: one is refused, the others come to their ends.
        local all, refused = {}, 0
        for at = 1, 50 do
            all[at] = go(function()
                box.begin()
                get(at)
                fiber.sleep(0.1)
                local code = code_of(get, at % 50 + 1)
                if code ~= 0 then
                    assert(code == box.error.TRANSACTION_CONFLICT)
                    refused = refused + 1
                    return box.rollback()
                end
                rows:update(at, {{'+', 3, 1}})
                box.commit()
            end)
        end
        join(unpack(all))
        assert(refused == 1, refused)
    end
";

/// A transaction has written a row that nobody had locked; then somebody locks it. On disk, what is written to a space of one index is written without a
/// look at what is there.
const RELIES: &str = "
    for _, engine in ipairs({'memtx', 'vinyl'}) do
        local rows = box.schema.space.create(engine .. '_plain', {engine = engine})
        rows:create_index('primary')
        local writes = {
            function() rows:delete(1) end,
            function() rows:replace{1, 9} end,
            function() rows:upsert({1, 9}, {{'=', 2, 9}}) end,
            function() rows:update(1, {{'=', 2, 9}}) end,
        }
        for _, write in ipairs(writes) do
            rows:replace{1, 1}
            local other = go(function()
                box.begin()
                write()
                fiber.yield()
                note(code_of(box.commit))
            end)
            box.begin()
            local value = rows:get(1, {for_update = true})[2]
            assert(value == 1)
            join(other)
            rows:replace{1, value + 1}
            box.commit()
            said(tostring(box.error.TRANSACTION_CONFLICT))
            assert(rows:get(1)[2] == 2)
        end
    end
";

#[test]
fn who_has_the_lock_may_rely_on_the_row() {
    let clock = Arc::new(ManualClock::default());
    let (database, fiber_clock) = (open(&clock), Arc::clone(&clock));
    fiber::set_clock(Rc::new(move || fiber_clock.monotonic_ns()));
    run(&database, PREPARE);
    run_while(&database, RELIES, || clock.advance(10_000_000));
    assert_eq!((database.lock_counts(), database.suspended()), ((0, 0), 0));
}

#[test]
fn whoever_locks_or_writes_a_locked_row_waits_in_order() {
    let clock = Arc::new(ManualClock::default());
    let (database, fiber_clock) = (open(&clock), Arc::clone(&clock));
    fiber::set_clock(Rc::new(move || fiber_clock.monotonic_ns()));
    run(&database, PREPARE);
    run_while(&database, WAITS, || clock.advance(10_000_000));
    assert_eq!((database.lock_counts(), database.suspended()), ((0, 0), 0));
}

#[test]
fn no_wait_is_for_ever() {
    let clock = Arc::new(ManualClock::default());
    let (database, fiber_clock) = (open(&clock), Arc::clone(&clock));
    fiber::set_clock(Rc::new(move || fiber_clock.monotonic_ns()));
    run(&database, PREPARE);
    run_while(&database, REFUSALS, || clock.advance(10_000_000));
    assert_eq!((database.lock_counts(), database.suspended()), ((0, 0), 0));
}
