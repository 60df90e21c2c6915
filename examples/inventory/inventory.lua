-- The inventory: units of goods in warehouses, taken and given back by many clients at once.
--
-- A procedure that does not wait is atomic, so `capture` needs no locks: it looks, decides and writes, and nobody is in between.
-- Runs on Lycosa and on Tarantool.

local inventory = {}

-- Makes the spaces and indexes if they are not there; `engine` says where their rows live, in memory if it is nil.
function inventory.create_schema(engine)
    box.schema.sequence.create('stock_id', { if_not_exists = true })
    local stock = box.schema.space.create('stock', {
        engine = engine,
        if_not_exists = true,
        format = {
            { name = 'id', type = 'unsigned' },
            { name = 'sku', type = 'unsigned' },
            { name = 'warehouse', type = 'unsigned' },
            { name = 'condition', type = 'unsigned' },
            { name = 'source', type = 'unsigned' },
            { name = 'price', type = 'unsigned' },
            { name = 'count', type = 'unsigned' },
        },
    })
    stock:create_index('primary', { sequence = 'stock_id', parts = { 'id' }, if_not_exists = true })
    stock:create_index('place', {
        parts = { 'sku', 'warehouse', 'condition', 'source' }, unique = true, if_not_exists = true,
    })
    stock:create_index('item', { parts = { 'sku', 'condition', 'source' }, unique = false, if_not_exists = true })
    -- The last operation of each client and its answer: a client that lost its connection asks again.
    local clients = box.schema.space.create('clients', {
        engine = engine,
        if_not_exists = true,
        format = {
            { name = 'client', type = 'unsigned' },
            { name = 'operation', type = 'unsigned' },
            { name = 'answer', type = 'any', is_nullable = true },
        },
    })
    clients:create_index('primary', { parts = { 'client' }, if_not_exists = true })
end

-- Adds a row of stock; its id comes from the sequence.
function inventory.add(sku, warehouse, condition, source, price, count)
    return box.space.stock:insert({ box.NULL, sku, warehouse, condition, source, price, count })
end

-- Takes n units from wherever there are some. Returns {{sku, warehouse, condition, source, taken}, ...}, or false (and takes nothing) if
-- there are fewer.
local function capture(sku, condition, source, n)
    local stock = box.space.stock
    local taken, missing = {}, n
    for _, row in ipairs(stock.index.item:select({ sku, condition, source })) do
        local here = row.count
        if here > 0 then
            local part = here < missing and here or missing
            taken[#taken + 1] = { row, part }
            missing = missing - part
            if missing == 0 then
                break
            end
        end
    end
    if missing > 0 then
        return false
    end
    local answer = {}
    for i, one in ipairs(taken) do
        local row, part = one[1], one[2]
        stock:update(row.id, { { '-', 'count', part } })
        answer[i] = { row.sku, row.warehouse, row.condition, row.source, part }
    end
    return answer
end

-- Gives n units back to a warehouse. Returns true, or false if there is no such row.
local function release(sku, warehouse, condition, source, n)
    local row = box.space.stock.index.place:update({ sku, warehouse, condition, source }, { { '+', 'count', n } })
    return row ~= nil
end

-- Several rows change together or not at all.
local function atomically(work, ...)
    box.begin()
    local ok, answer = pcall(work, ...)
    if not ok then
        box.rollback()
        error(answer, 0)
    end
    box.commit()
    return answer
end

function inventory.capture(sku, condition, source, n)
    return atomically(capture, sku, condition, source, n)
end

function inventory.release(sku, warehouse, condition, source, n)
    return release(sku, warehouse, condition, source, n)
end

-- The same for clients that may have to ask twice, because a connection broke and the fate of their last operation is unknown. Each client
-- numbers its operations 1, 2, 3...; the last number and its answer are kept in the same transaction as the change itself. A number that comes
-- again is answered as before and not done again. Any other number than the next one means that somebody lost something, and is refused.
-- A capture that found too little changed nothing and is not kept: it may be tried again under the same number.
local function once(client, operation, work, ...)
    local clients = box.space.clients
    local row = clients:get(client)
    local last = row ~= nil and row.operation or 0
    if operation == last then
        return row.answer
    end
    if operation ~= last + 1 then
        error(('client %d asks for operation %d after %d'):format(client, operation, last))
    end
    local answer = work(...)
    if answer ~= false then
        clients:replace({ client, operation, answer })
    end
    return answer
end

function inventory.capture_once(client, operation, ...)
    return atomically(once, client, operation, capture, ...)
end

function inventory.release_once(client, operation, ...)
    return atomically(once, client, operation, release, ...)
end

-- The stock of every item over all warehouses: {{sku, condition, source, count}, ...}
function inventory.totals()
    local sums, order = {}, {}
    for _, row in box.space.stock.index.item:pairs() do
        local key = row.sku .. ':' .. row.condition .. ':' .. row.source
        if sums[key] == nil then
            sums[key] = { row.sku, row.condition, row.source, 0 }
            order[#order + 1] = key
        end
        sums[key][4] = sums[key][4] + row.count
    end
    local result = {}
    for i, key in ipairs(order) do
        result[i] = sums[key]
    end
    return result
end

-- Forgets everything, so that the workload can be run again.
function inventory.clear()
    box.space.stock:truncate()
    box.space.clients:truncate()
    box.sequence.stock_id:reset()
end

return inventory
