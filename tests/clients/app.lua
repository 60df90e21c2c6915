#!/usr/bin/env tarantool
-- What the connectors' test programs expect to find: users, spaces, functions. Runs on Lycosa and on Tarantool.

box.cfg({ listen = os.getenv('LISTEN') or '127.0.0.1:3301', work_dir = os.getenv('WORK_DIR'), log_level = 4 })

local goods = box.schema.space.create('goods', {
    if_not_exists = true,
    format = {
        { name = 'id', type = 'unsigned' },
        { name = 'name', type = 'string' },
        { name = 'price', type = 'unsigned' },
        { name = 'note', type = 'any', is_nullable = true },
    },
})
goods:create_index('primary', { parts = { 'id' }, if_not_exists = true })
goods:create_index('name', { parts = { 'name' }, unique = true, if_not_exists = true })
goods:create_index('price', { parts = { 'price' }, unique = false, if_not_exists = true })

-- The oldest way to write it: a hash, its part by number, ids from a sequence.
box.schema.sequence.create('ticket_id', { if_not_exists = true })
local tickets = box.schema.space.create('tickets', { if_not_exists = true })
tickets:create_index('primary', {
    type = 'HASH', parts = { 1, 'unsigned' }, sequence = 'ticket_id', if_not_exists = true,
})

local secret = box.schema.space.create('secret', { if_not_exists = true })
secret:create_index('primary', { if_not_exists = true })

function echo(...)
    return ...
end

function sum(a, b)
    return a + b
end

function find_goods(id)
    return box.space.goods:get(id)
end

function all_goods()
    return box.space.goods:select()
end

function fail(text)
    error(text)
end

function fail_with_code()
    box.error(box.error.NO_SUCH_USER, 'nobody')
end

-- Two rows or none.
function insert_pair(first, second)
    box.atomic(function()
        box.space.goods:insert(first)
        box.space.goods:insert(second)
    end)
    return true
end

stock = { count = function(name) return box.space.goods.index.name:count(name) end }
function stock:describe()
    return type(self) == 'table' and self.count ~= nil
end

box.schema.user.create('tester', { password = 'secret word', if_not_exists = true })
for _, space in ipairs({ 'goods', 'tickets' }) do
    box.schema.user.grant('tester', 'read,write', 'space', space, { if_not_exists = true })
end
box.schema.user.grant('tester', 'read,write', 'sequence', 'ticket_id', { if_not_exists = true })
box.schema.user.grant('tester', 'execute', 'universe', nil, { if_not_exists = true })
-- The programs clean up through this: it needs rights that `tester` does not have.
box.schema.func.create('clear', { setuid = true, if_not_exists = true })
box.schema.user.grant('guest', 'execute', 'function', 'clear', { if_not_exists = true })

-- Changes the schema under connected clients.
box.schema.func.create('add_space', { setuid = true, if_not_exists = true })

function add_space(name)
    local space = box.schema.space.create(name, { format = { { name = 'id', type = 'unsigned' } } })
    space:create_index('primary')
    box.schema.user.grant('tester', 'read,write', 'space', name)
end

function clear()
    for _, name in ipairs({ 'goods', 'tickets' }) do
        box.space[name]:truncate()
    end
    for _, space in ipairs(box.space._space:select({ 512 }, { iterator = 'GE' })) do
        if space.name:match('^added_') then
            box.space[space.name]:drop()
        end
    end
end

-- Tells those who watch a key.
function announce(value)
    box.broadcast('clients.key', value)
end
box.schema.func.create('announce', { if_not_exists = true })
box.schema.user.grant('guest', 'execute', 'function', 'announce', { if_not_exists = true })

-- run.py looks for this: everything above is there.
function is_ready()
    return true
end
box.schema.func.create('is_ready', { if_not_exists = true })
box.schema.user.grant('guest', 'execute', 'function', 'is_ready', { if_not_exists = true })
