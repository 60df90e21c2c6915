-- expirationd: what is too old goes, in memory and on disk, with a transaction for each batch or without
local fiber, tap = require('fiber'), require('tap')
box.cfg({ log_level = 2, wal_mode = 'write' })
local expirationd = require('expirationd')

local test = tap.test('expirationd')
test:plan(16)

local function wait_for(condition)
    local deadline = fiber.clock() + 30
    while not condition() and fiber.clock() < deadline do
        fiber.sleep(0.01)
    end
    return condition()
end

for _, engine in ipairs({ 'memtx', 'vinyl' }) do
    for _, is_atomic in ipairs({ false, true }) do
        local what = ('%s, %s'):format(engine, is_atomic and 'in batches' or 'one by one')
        local s = box.schema.space.create('rows', { engine = engine })
        s:create_index('pk')
        s:create_index('until', { parts = { { 2, 'number' } }, unique = false })
        for i = 1, 3000 do
            s:insert({ i, fiber.time() + (i % 3 == 0 and 1000 or -1) })
        end
        local scans, reasons = 0, {}
        local options = {
            tuples_per_iteration = 200, full_scan_time = 1, iteration_delay = 0.01, full_scan_delay = 0.05,
            vinyl_assumed_space_len = 3000, atomic_iteration = is_atomic,
            on_full_scan_success = function() scans = scans + 1 end,
            on_full_scan_error = function(_, reason) reasons[#reasons + 1] = tostring(reason) end,
        }
        expirationd.start('old', s.id, function(_, row) return row[2] < fiber.time() end, options)
        test:ok(wait_for(function() return scans >= 2 end), what .. ': scans end ' .. (reasons[1] or ''))
        test:is(s:count(), 1000, what .. ': what is not too old stays')
        test:is(expirationd.stats('old').expired_count, 2000, what .. ': it counts')
        expirationd.kill('old')
        for i = 4001, 4100 do
            s:insert({ i, fiber.time() - 1 })
        end
        scans, options.index, options.iterator_type = 0, 'until', 'LE'
        options.start_key = function() return fiber.time() end
        expirationd.start('by index', 'rows', function() return true end, options)
        wait_for(function() return scans >= 1 end)
        test:is(s:count(), 1000, what .. ': by another index')
        expirationd.kill('by index')
        s:drop()
    end
end
os.exit(test:check() and 0 or 1)
