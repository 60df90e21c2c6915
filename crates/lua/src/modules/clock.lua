-- clock: times of day and of work.
local internal = ...

local ffi = require('ffi')

local clock = {
    time = internal.clock_wall, realtime = internal.clock_wall, monotonic = internal.clock_monotonic,
    time64 = function() return internal.clock_ns(true) end,
    realtime64 = function() return internal.clock_ns(true) end,
    monotonic64 = function() return internal.clock_ns(false) end,
    proc = os.clock, thread = os.clock,
    proc64 = function() return ffi.cast('uint64_t', os.clock() * 1e9) end,
    thread64 = function() return ffi.cast('uint64_t', os.clock() * 1e9) end,
}

function clock.bench(f, ...)
    local start = clock.proc()
    local results = { f(...) }
    table.insert(results, 1, clock.proc() - start)
    return results
end

package.loaded.clock = clock
