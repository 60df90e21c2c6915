-- queue: every kind of tube, in memory and on disk, with consumers that wait and consumers that vanish
local fio, fiber, net, tap = require('fio'), require('fiber'), require('net.box'), require('tap')
local socket = fio.pathjoin(fio.cwd(), 'queue.sock')
box.cfg({ log_level = 2, wal_mode = 'write', listen = 'unix/:' .. socket })
queue = require('queue')
box.schema.user.create('worker', { password = 'secret' })
box.schema.user.grant('worker', 'super')

local function wait_for(condition)
    local deadline = fiber.clock() + 10
    while not condition() and fiber.clock() < deadline do
        fiber.sleep(0.01)
    end
    return condition()
end

local function try(test, kind, engine)
    local name = kind .. '_' .. engine
    local has_ttl, has_subqueues = kind:find('ttl') ~= nil, kind:find('utube') ~= nil
    test:plan(16 + (has_ttl and 6 or 0) + (kind == 'limfifottl' and 1 or 0))
    local tube = queue.create_tube(name, kind, { engine = engine, capacity = kind == 'limfifottl' and 3 or nil })
    local function options(subqueue, more)
        more = more or {}
        more.utube = has_subqueues and subqueue or nil
        return more
    end
    for i = 1, 3 do
        tube:put('task ' .. i, options(i < 3 and 'a' or 'b'))
    end
    local first, second = tube:take(1), nil
    test:is(first[3], 'task 1', 'the first one')
    second = tube:take(1)
    test:is(second[3], has_subqueues and 'task 3' or 'task 2', 'the second one, of another subqueue if there are some')
    test:is(queue.statistics(name).tasks.taken, 2, 'two are taken')
    test:is(tube:ack(first[1])[2], '-', 'done')
    test:is(tube:release(second[1])[2], 'r', 'given back')
    test:is(tube:bury(second[1])[2], '!', 'buried')
    test:is(tube:kick(5), 1, 'dug up')
    test:is(tube:peek(second[1])[2], 'r', 'ready again')
    test:ok(not pcall(tube.ack, tube, second[1]), 'what was not taken is not done')
    test:ok(not pcall(tube.peek, tube, 100), 'what is not there is not shown')
    -- A consumer waits for what is put later.
    local last
    fiber.create(function()
        local taken = { tube:take(5), tube:take(5), tube:take(5) }
        last = taken[3]
        for _, task in ipairs(taken) do
            tube:ack(task[1])
        end
    end)
    fiber.sleep(0.05)
    tube:put('late', options('c'))
    test:ok(wait_for(function() return last ~= nil end), 'a consumer waits')
    test:is(last and last[3], 'late', 'for this one')
    wait_for(function() return queue.statistics(name).tasks.total == 0 end)
    -- A consumer on the network vanishes with what it took.
    tube:put('lost', options('d'))
    local client = net.connect(('worker:secret@unix/:%s'):format(socket))
    local task = client:call('queue.tube.' .. name .. ':take', { 1 })
    test:is(task and task[3], 'lost', 'taken by the network')
    client:close()
    test:ok(wait_for(function() return tube:peek(task[1])[2] == 'r' end), 'given back when its consumer is gone')
    tube:delete(task[1])
    if has_ttl then
        task = tube:put('short', options('e', { ttl = 0.1 }))
        test:ok(wait_for(function() return not pcall(tube.peek, tube, task[1]) end), 'time to live')
        tube:put('delayed', options('f', { delay = 0.2 }))
        test:isnil(tube:take(0.01), 'not yet')
        task = tube:take(5)
        test:is(task and task[3], 'delayed', 'then')
        tube:ack(task[1])
        tube:put('slow', options('g', { ttr = 0.1 }))
        task = tube:take(1)
        test:ok(wait_for(function() return tube:peek(task[1])[2] == 'r' end), 'time to run')
        tube:delete(task[1])
        tube:put('low', options('h', { pri = 5 }))
        tube:put('high', options('i', { pri = 1 }))
        task = tube:take(1)
        test:is(task[3], 'high', 'priority')
        test:ok(pcall(tube.touch, tube, task[1], 5), 'more time')
        tube:ack(task[1])
        tube:delete(tube:take(1)[1])
    end
    if kind == 'limfifottl' then
        for _ = 1, 3 do
            tube:put('x')
        end
        test:isnil(tube:put('y', { timeout = 0.05 }), 'full')
    end
    tube:truncate()
    test:is(box.space[name]:count(), 0, 'emptied')
    test:ok(tube:drop(), 'dropped')
end

local kinds = { 'fifo', 'fifottl', 'utube', 'utubettl', 'limfifottl' }
local test = tap.test('queue')
test:plan(2 * #kinds - 1)
for _, kind in ipairs(kinds) do
    for _, engine in ipairs({ 'memtx', 'vinyl' }) do
        if kind ~= 'limfifottl' or engine ~= 'vinyl' then
            test:test(('%s, %s'):format(kind, engine), function(part) try(part, kind, engine) end)
        end
    end
end
os.exit(test:check() and 0 or 1)
