-- What the comparisons run on Lycosa and on Tarantool alike. Options come from the environment; what is not set there is left to the server.

box.cfg({
    listen = os.getenv('LISTEN'),
    work_dir = os.getenv('WORK_DIR'),
    wal_mode = os.getenv('WAL_MODE'),
    memtx_memory = tonumber(os.getenv('MEMTX_MEMORY')),
    vinyl_memory = tonumber(os.getenv('VINYL_MEMORY')),
    vinyl_cache = tonumber(os.getenv('VINYL_CACHE')),
    log_level = tonumber(os.getenv('LOG_LEVEL')),
})

local fio = require('fio')
package.path = fio.pathjoin(fio.dirname(fio.abspath(arg[0])), '?.lua') .. ';' .. package.path
-- Only now: a server that listens while it reads its logs must not answer by them.
inventory = require('inventory')
inventory.create_schema()
box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })
box.schema.user.create('bench', { password = 'bench', if_not_exists = true })
box.schema.user.grant('bench', 'read,write,execute', 'universe', nil, { if_not_exists = true })

-- Makes a space of rows {key, number, number, ..., text}, empty, with an index for each of the first `secondaries` numbers.
function bench_make(name, secondaries, engine)
    if box.space[name] ~= nil then
        box.space[name]:drop()
    end
    local space = box.schema.space.create(name, { engine = engine })
    space:create_index('primary', { parts = { { 1, 'unsigned' } } })
    for position = 1, secondaries do
        space:create_index('number' .. position, { parts = { { position + 1, 'unsigned' } }, unique = false })
    end
    return space.id
end

function bench_get(key)
    return box.space.requests:get(key)
end

-- Takes a unit of a row {key, units} and refuses to go below zero.
function bench_take(key)
    local hot = box.space.hot
    if hot:get(key)[2] < 1 then
        return false
    end
    hot:update(key, { { '-', 2, 1 } })
    return true
end

function bench_has_engine(engine)
    local has, space = pcall(box.schema.space.create, 'probe', { engine = engine })
    if has then
        space:drop()
    end
    return has
end

-- Makes the inventory anew in an engine.
function bench_inventory(engine)
    box.space.stock:drop()
    box.space.clients:drop()
    inventory.create_schema(engine)
end

-- Takes away the first `count` rows of a space, many in one transaction.
function bench_delete_first(name, count)
    local space = box.space[name]
    while count > 0 do
        local rows = space:select({}, { limit = math.min(count, 1000) })
        if #rows == 0 then
            return
        end
        box.begin()
        for _, row in ipairs(rows) do
            space:delete(row[1])
        end
        box.commit()
        count = count - #rows
    end
end

-- Answered as soon as all of the above is there.
function bench_ready()
    return true
end
