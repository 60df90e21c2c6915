-- checks: arguments by their types, those of the server among them
local checks = require('checks')
local tap = require('tap')
local uuid, decimal = require('uuid'), require('decimal')

local test = tap.test('checks')
test:plan(10)

local function call(a, b, options)
    checks('number', '?string', { flag = '?boolean', id = 'uint64' })
    return 'fine'
end

local function of_server(id, row, number, reason)
    checks('uuid', 'tuple', 'decimal', 'error')
    return 'fine'
end

local function refused(text, ...)
    local fine, reason = pcall(...)
    test:ok(not fine and reason:find(text, 1, true), text)
end

test:is(call(1, 'x', { id = 1 }), 'fine')
test:is(call(1, nil, { id = 5ULL, flag = true }), 'fine')
refused('bad argument #1', call, 'x')
refused('bad argument #2', call, 1, 2)
refused('bad argument options.id', call, 1, nil, {})
refused('unexpected argument options.other', call, 1, nil, { id = 1, other = 2 })
local reason = box.error.new(box.error.UNKNOWN)
test:is(of_server(uuid.new(), box.tuple.new({ 1 }), decimal.new(1), reason), 'fine')
refused('bad argument #2', of_server, uuid.new(), {}, decimal.new(1), reason)
refused('bad argument #3', of_server, uuid.new(), box.tuple.new({ 1 }), 1, reason)
refused('bad argument #4', of_server, uuid.new(), box.tuple.new({ 1 }), decimal.new(1), 'text')
os.exit(test:check() and 0 or 1)
